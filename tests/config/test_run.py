import json
import math
from functools import partial

import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.config.run import RunConfig, resolve
from lowgear.config.tasks import find
from lowgear.policy.dial import Dial
from lowgear.policy.gears import gears_of

WALKER = find("walker-stand")


def test_a_population_is_every_combination_once():
    config = resolve(
        WALKER,
        "paper",
        seeds=(0, 1),
        variants=("asymmetric", "small-only", "no-cost"),
        cost_coefficients=(0.01, 0.1),
        discounts=(0.9, 0.99),
    )
    asymmetric = [a for a in config.agents if a.variant == "asymmetric"]
    assert len(asymmetric) == 2 * 2 * 2
    # A coefficient means nothing to agents that do not pay: they are there once for each seed and discount.
    assert len([a for a in config.agents if a.variant == "small-only"]) == 2 * 2
    assert {a.cost_coefficient for a in config.agents if a.variant == "no-cost"} == {0.0}
    assert len(set(config.agents)) == len(config.agents) == 8 + 4 + 4


def settings(config, variant="asymmetric"):
    return [(agent.cost_coefficient, agent.dial) for agent in config.agents if agent.variant == variant]


def test_coefficients_are_the_ends_of_one_agents_dial():
    config = resolve(WALKER, cost_coefficients=(0.1, 0.03, 0.02), seeds=(0, 1))
    # The task's own 0.01 lies below, so the agent stands in the middle while it is scored.
    assert settings(config) == [(pytest.approx(math.sqrt(0.002)), Dial(0.02, 0.1))] * 2
    assert settings(resolve(WALKER, cost_coefficients=(0.001, 0.1))) == [(0.01, Dial(0.001, 0.1))]
    assert settings(resolve(WALKER, cost_coefficients=(0.01, 0.1))) == [(0.01, Dial(0.01, 0.1))]


def test_one_coefficient_is_a_dial_that_does_not_turn():
    assert settings(resolve(WALKER, cost_coefficients=(0.3,))) == [(0.3, Dial(0.3, 0.3))]
    assert settings(resolve(WALKER, cost_coefficients=(0.0,))) == [(0.0, Dial(0.0, 0.0))]


def test_without_coefficients_a_dial_is_measured_against_rewards():
    (agent,) = resolve(WALKER).agents
    assert (agent.cost_coefficient, agent.dial, agent.relative) == (2.0, Dial(-1.0, 10.0), True)
    config = resolve(WALKER, overrides={"dial_ends": [0.5, 2.0], "dial_setting": 0.5})  # a list, as JSON gives it
    assert settings(config) == [(0.5, Dial(0.5, 2.0))]
    # Those that are given are in the task's rewards, and so are the paper's.
    assert not resolve(WALKER, cost_coefficients=(0.001, 0.1)).agents[0].relative
    assert not resolve(WALKER, "paper").agents[0].relative
    assert settings(resolve(WALKER, "paper")) == [(0.01, Dial(0.01, 0.01))]


def test_relative_coefficients_in_rewards():
    (agent,) = resolve(WALKER).agents
    paid = agent.in_rewards(0.02)
    assert (paid.cost_coefficient, paid.dial) == (pytest.approx(0.04), Dial(-0.02, 0.2))
    assert not paid.relative
    assert paid.in_rewards(0.02) is paid  # it is in rewards by now
    (given,) = resolve(WALKER, cost_coefficients=(0.001, 0.1)).agents
    assert given.in_rewards(0.02) is given


@pytest.mark.parametrize("recipe", ["modern", "paper"])
def test_each_fixed_coefficient_is_an_agent_of_its_own(recipe):
    config = resolve(WALKER, recipe, variants=("fixed-cost",), cost_coefficients=(0.1, 0.03), seeds=(0, 1))
    expected = [(0.1, Dial(0.1, 0.1))] * 2 + [(0.03, Dial(0.03, 0.03))] * 2
    assert settings(config, "fixed-cost") == expected
    assert not any(agent.relative for agent in config.agents)
    (own,) = resolve(WALKER, recipe, variants=("fixed-cost",)).agents
    # Where none is given, that of the dial beside it, or the paper's.
    value = 2.0 if recipe == "modern" else 0.01
    assert (own.cost_coefficient, own.dial, own.relative) == (value, Dial(value, value), recipe == "modern")


def test_without_a_dial_every_coefficient_is_an_agent():
    config = resolve(WALKER, cost_coefficients=(0.1, 0.0), overrides={"dial": False})
    assert settings(config) == [(0.1, Dial(0.1, 0.1)), (0.0, Dial(0.0, 0.0))]


@pytest.mark.parametrize("discount", [1.0, 0.99999999])  # both are 1 to a learner
def test_a_dial_without_coefficients_needs_a_discount(discount):
    overrides = {"master_discount": discount}
    with pytest.raises(LowgearError, match=r"master discount .*; write 0.999999 at most, or give --cost-coefficients"):
        resolve(WALKER, overrides=overrides)
    resolve(WALKER, variants=["small-only", "no-cost"], overrides=overrides)  # these have no coefficient
    raw = resolve(WALKER).to_json()
    raw["recipe"] |= {"master_discount": discount, "known_prices": False}
    with pytest.raises(LowgearError, match="master discount"):
        RunConfig.from_json(raw)


WITHOUT = [{"dial": False}, {"discount_by_step": False}, {"master_discount": 1.0}]


def test_prices_are_known_in_the_modern_recipe_and_not_in_the_papers():
    assert resolve(WALKER).recipe.known_prices
    assert not resolve(WALKER).recipe.sees_position
    learned = resolve(WALKER, overrides={"known_prices": False}).recipe
    assert (learned.known_prices, learned.sees_position) == (False, True)
    paper = resolve(WALKER, "paper").recipe
    assert (paper.known_prices, paper.sees_position) == (False, False)
    assert resolve(WALKER, "paper", overrides={"dial": True}).recipe.sees_position


@pytest.mark.parametrize("overrides", WITHOUT, ids=lambda each: next(iter(each)))
def test_known_prices_give_way_where_they_were_not_asked_for_and_are_an_error_where_they_were(overrides):
    in_rewards = partial(resolve, WALKER, cost_coefficients=(0.001, 0.1))
    recipe = in_rewards(overrides=overrides).recipe
    assert not recipe.known_prices
    assert recipe.sees_position == recipe.dial
    assert not in_rewards(overrides=overrides | {"known_prices": False}).recipe.known_prices
    with pytest.raises(LowgearError, match=r"known prices need a dial.*the recipe modern has not: leave them out"):
        in_rewards(overrides=overrides | {"known_prices": True})
    # The paper's recipe has none of the three.
    with pytest.raises(LowgearError, match="the recipe paper has not"):
        resolve(WALKER, "paper", overrides={"known_prices": True})
    every = {"dial": True, "discount_by_step": True, "known_prices": True}
    assert resolve(WALKER, "paper", overrides=every).recipe.known_prices
    with pytest.raises(LowgearError, match="the recipe paper has not"):
        resolve(WALKER, "paper", overrides=every | overrides)


@pytest.mark.parametrize("variant", ["small-only", "large-only", "no-cost"])
def test_who_does_not_pay_has_nothing_to_set(variant):
    config = resolve(WALKER, variants=(variant, "asymmetric"), cost_coefficients=(0.001, 0.1))
    assert settings(config, variant) == [(0.0, Dial(0.0, 0.0))]
    assert not resolve(WALKER, variants=(variant,)).agents[0].relative
    assert settings(config) == [(0.01, Dial(0.001, 0.1))]


def test_separate_buffers_have_a_dial_too():
    config = resolve(WALKER, variants=("separate-buffers",), cost_coefficients=(0.001, 0.1))
    assert settings(config, "separate-buffers") == [(0.01, Dial(0.001, 0.1))]


def test_the_paper_recipe_is_the_papers():
    config = resolve(WALKER, "paper")
    recipe = config.recipe
    assert (config.steps - 2_500_000) in range(recipe.chunk)
    assert (config.critic_units, config.gears) == ((8, 64), gears_of((8, 64)))
    assert config.agents[0].cost_coefficient == 0.01
    assert (recipe.master_learning_rate, recipe.learning_rate) == (1e-3, 3e-4)
    assert (recipe.discount, recipe.master_discount, recipe.target_rate) == (0.99, 0.99, 0.005)
    assert (recipe.master_replay, recipe.replay, recipe.master_batch, recipe.batch) == (50_000, 1_000_000, 32, 256)
    assert (recipe.master_units, recipe.master_copy_every, recipe.explore_share, recipe.periods) == (32, 500, 0.1, (5,))
    assert recipe.actor_activation == recipe.critic_activation == "tanh"
    assert (recipe.dial, recipe.price_picks, recipe.discount_by_step, recipe.known_prices) == (False,) * 4
    assert recipe.sample_master


def test_the_paper_samples_its_master_where_it_says_so_and_the_modern_recipe_never():
    tasks = {name: find(name) for name in ("reacher-easy", "walker-stand")}
    assert {name: resolve(task, "paper").master for name, task in tasks.items()} == {
        "reacher-easy": "boltzmann",
        "walker-stand": "greedy",
    }
    assert resolve(tasks["reacher-easy"]).master == "greedy"
    assert resolve(tasks["reacher-easy"], overrides={"sample_master": True}).master == "boltzmann"


def test_goals_in_the_papers_recipe_and_in_ours():
    push = find("FetchPush-v1")
    paper, modern = resolve(push, "paper").recipe, resolve(push).recipe
    assert (paper.hindsight_share, modern.hindsight_share) == (0.8, 0.8)
    assert (paper.end_on_success, paper.goal_reward_shift) == (True, 1.0)  # rewards of 0 and 1
    assert (modern.end_on_success, modern.goal_reward_shift) == (False, 0.0)
    assert not paper.bound_targets
    assert resolve(push, overrides={"hindsight_share": 0}).recipe.hindsight_share == 0
    assert resolve(push, overrides={"hindsight_share": 1}).recipe.hindsight_share == 1


def test_steps_and_capacity_are_whole_chunks():
    config = resolve(WALKER, steps=1001)
    assert config.steps == 1024
    assert config.capacity == 1024
    assert resolve(WALKER, steps=10_000, overrides={"replay": 100}).capacity == 128


def test_evaluations_come_after_whole_chunks():
    assert resolve(WALKER, steps=10_000, evaluate_every=1_000).evaluate_every == 1_024
    assert resolve(WALKER, steps=10_000).evaluate_every == 1_024  # a tenth of 10,048 steps
    assert resolve(WALKER, steps=10_000, evaluate_every=0).evaluate_every == 0


@pytest.mark.parametrize("recipe", ["modern", "paper"])
def test_config_survives_json(recipe):
    variants = ("asymmetric", "large-only", "fixed-cost")
    overrides = {"critic_units": 17, "periods": (1, 3), "dial_ends": (-0.5, 2.0)}
    config = resolve(WALKER, recipe, seeds=(3,), variants=variants, overrides=overrides)
    back = RunConfig.from_json(json.loads(json.dumps(config.to_json())))
    assert back == config
    assert {type(agent.dial) for agent in back.agents} == {Dial}
    assert back.agents[0].dial.turns == back.agents[0].relative == (recipe == "modern")
    assert hash(back.agents) == hash(config.agents)


def test_a_config_of_an_earlier_version_is_read():
    """It has fields that are gone, and none for those that came later."""
    config = resolve(find("FetchPush-v1"), "paper")
    raw = json.loads(json.dumps(config.to_json()))
    recipe = raw["recipe"]
    recipe |= {"goal_scale": True, "goal_normalise": True, "dial_reach": [1 / 30, 10.0]}
    later = ("actor_every", "lenient_twins", "first_alpha", "normalise_observations", "scale_rewards")
    for name in (*later, "dial_ends", "dial_setting", "updates_per_step"):
        del recipe[name]
    for agent in raw["agents"]:
        del agent["relative"]
    assert RunConfig.from_json(raw) == config


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"steps": 0}, "--steps 0"),
        ({"cost_coefficients": (-0.5,)}, "-0.5"),
        ({"cost_coefficients": (float("nan"),)}, "nan"),
        ({"cost_coefficients": (0.1, float("nan"))}, "nan"),
        ({"cost_coefficients": (-0.5, 0.0)}, "-0.5.*begin below 0, and ends above"),
        ({"cost_coefficients": (float("-inf"), 0.1)}, "-inf"),
        ({"cost_coefficients": (-0.5, 0.1), "variants": ("fixed-cost",)}, "-0.5"),
        ({"cost_coefficients": (-0.5, 0.1), "recipe": "paper"}, "-0.5"),
        ({"variants": ("medium",)}, "medium"),
        ({"variants": ("two-large",)}, "--gears 64,64"),
        ({"seeds": (-1,)}, "seed -1: write a whole number from 0 to 2147483647"),
        ({"seeds": (1.5,)}, "seed 1.5: write a whole number"),
        ({"seeds": ("a",)}, "seed 'a': write a whole number"),
        ({"seeds": ()}, "--seeds"),
        ({"discounts": (1.5,)}, "1.5"),
        ({"learning_rates": (0.0,)}, "0.0"),
        ({"gears": (64,)}, "gears '64': two are needed"),
        ({"recipe": "classic"}, "classic"),
        ({"cost_coefficients": (0.1, float("inf"))}, "inf"),
        ({"overrides": {"periods": (0,)}}, "period 0"),
        ({"overrides": {"master_replay": 2, "environments": 4}}, "master replay 2: 4 environments share it"),
        ({"overrides": {"periods": (5, 2)}}, "period 5,2.*shortest first"),
        ({"overrides": {"periods": (2, 2)}}, "period 2,2"),
        ({"overrides": {"periods": ()}}, "period"),
        ({"overrides": {"periods": 0}}, "period 0"),
        ({"overrides": {"periods": (2.5,)}}, "periods = 2.5"),
        ({"overrides": {"period": 5}}, "period: .*did you mean periods"),
        ({"overrides": {"dial_ends": (-1.0, 0.0)}}, "dial ends.*above 0"),
        ({"overrides": {"dial_ends": (2.0, 1.0)}}, "dial ends.*lower first"),
        ({"overrides": {"dial_ends": (1.0, float("inf"))}}, "dial.ends"),
        ({"overrides": {"dial_ends": (1.0,)}}, "dial ends"),
        ({"overrides": {"dial_setting": 11.0}}, "setting 11.0.*between them"),
        ({"overrides": {"dial_setting": float("nan")}}, "setting.*nan"),
        ({"overrides": {"dial_reach": (0.1, 1.0)}}, "dial_reach"),
        ({"evaluate_episodes": 0}, "--evaluate-episodes 0"),
        ({"overrides": {"hindsight_share": -0.1}}, "hindsight share -0.1"),
        ({"overrides": {"hindsight_share": 1.5}}, "hindsight share 1.5"),
        ({"overrides": {"hindsight_share": float("nan")}}, "hindsight share nan"),
    ],
)
def test_bad_values_are_named(options, named):
    with pytest.raises(LowgearError, match=named) as caught:
        resolve(WALKER, **options)
    assert "\n" not in str(caught.value)


def test_a_dial_may_begin_at_0_or_below():
    assert settings(resolve(WALKER, cost_coefficients=(0.0, 0.1))) == [(0.01, Dial(0.0, 0.1))]
    assert settings(resolve(WALKER, cost_coefficients=(0.1, -0.02))) == [(0.01, Dial(-0.02, 0.1))]


def test_no_critic_is_narrower_than_the_widest_gear():
    assert resolve(WALKER, overrides={"critic_units": 64}, gears=(8, 32)).critic_units == (64, 64)
    assert resolve(WALKER, overrides={"critic_units": 64}, gears=(8, 256)).critic_units == (256, 256)
    assert resolve(WALKER, overrides={"critic_units": 64}, gears=(8, 16, 32)).critic_units == (64,) * 3
    assert resolve(WALKER, "paper", gears=(8, 256)).critic_units == (8, 256)


def test_an_unpublished_task_needs_a_price_where_there_is_no_dial():
    pendulum = find("gym:Pendulum-v1")
    config = resolve(pendulum)
    assert config.gears == gears_of((16, 128))
    assert config.agents[0].relative
    assert settings(config) == settings(resolve(WALKER))
    assert resolve(pendulum, gears=(8, 64)).gears == gears_of((8, 64))
    wanted = r"gym:Pendulum-v1 has no .*the recipe paper needs: give --cost-coefficients .*is a start.*--recipe modern"
    with pytest.raises(LowgearError, match=wanted) as caught:
        resolve(pendulum, "paper", gears=(8, 64))
    assert "\n" not in str(caught.value)
    with pytest.raises(LowgearError, match="the recipe modern needs: give --cost-coefficients"):
        resolve(pendulum, overrides={"dial": False})
    config = resolve(pendulum, gears=(8, 64), cost_coefficients=(0.001, 0.1))
    assert settings(config) == [(pytest.approx(0.01), Dial(0.001, 0.1))]


@pytest.mark.parametrize(
    ("task", "recipe", "overrides", "alone", "accelerated"),
    [
        ("walker-stand", "modern", {}, 1, 4),
        ("walker-stand", "modern", {"environments": 2}, 2, 2),
        ("walker-stand", "modern", {"chunk": 2}, 1, 2),
        ("walker-stand", "paper", {}, 1, 1),
        ("gym:Pendulum-v1", "modern", {}, 1, 1),  # each would be stepped by Python
    ],
)
def test_an_accelerator_is_fed_by_more_environments(task, recipe, overrides, alone, accelerated):
    options = {"overrides": overrides, "cost_coefficients": (0.001,)}
    found = [
        resolve(find(task), recipe, accelerator=accelerator, **options).recipe.environments
        for accelerator in (False, True)
    ]
    assert found == [alone, accelerated]


def test_numbers_of_numpy_become_ones_that_files_can_hold():
    numbers = np.arange(2), np.float64([0.01, 0.1]), np.float32([0.5]), np.float64([1e-3])
    names = "seeds", "cost_coefficients", "discounts", "learning_rates"
    found = resolve(WALKER, **{name: list(each) for name, each in zip(names, numbers, strict=True)})
    assert found == resolve(WALKER, **{name: each.tolist() for name, each in zip(names, numbers, strict=True)})
    assert RunConfig.from_json(json.loads(json.dumps(found.to_json()))) == found


@pytest.mark.parametrize("recipe", ["modern", "paper"])
def test_no_coefficients_are_as_good_as_none_given(recipe):
    variants = ("asymmetric", "fixed-cost")
    assert resolve(WALKER, recipe, cost_coefficients=(), variants=variants) == resolve(
        WALKER, recipe, variants=variants
    )
