import json
import math

import pytest

from lowgear import LowgearError
from lowgear.config.run import RunConfig, resolve
from lowgear.config.tasks import find
from lowgear.policy.dial import Dial

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


def test_the_preset_dial_reaches_around_the_papers_coefficient():
    (setting, dial), *others = settings(resolve(WALKER))
    assert not others
    assert setting == 0.01
    assert dial == (pytest.approx(0.01 / 30), pytest.approx(0.1))
    config = resolve(WALKER, overrides={"dial_reach": [0.5, 2.0]})  # a list, as JSON gives it
    assert settings(config) == [(0.01, Dial(0.005, 0.02))]
    above = resolve(WALKER, overrides={"dial_reach": (2.0, 8.0)})
    assert settings(above) == [(pytest.approx(0.04), Dial(0.02, 0.08))]


@pytest.mark.parametrize("recipe", ["modern", "paper"])
def test_each_fixed_coefficient_is_an_agent_of_its_own(recipe):
    config = resolve(WALKER, recipe, variants=("fixed-cost",), cost_coefficients=(0.1, 0.03), seeds=(0, 1))
    expected = [(0.1, Dial(0.1, 0.1))] * 2 + [(0.03, Dial(0.03, 0.03))] * 2
    assert settings(config, "fixed-cost") == expected
    assert settings(resolve(WALKER, recipe, variants=("fixed-cost",)), "fixed-cost") == [(0.01, Dial(0.01, 0.01))]


def test_without_a_dial_every_coefficient_is_an_agent():
    config = resolve(WALKER, cost_coefficients=(0.1, 0.0), overrides={"dial": False})
    assert settings(config) == [(0.1, Dial(0.1, 0.1)), (0.0, Dial(0.0, 0.0))]


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
    recipe = resolve(WALKER, overrides=overrides).recipe
    assert not recipe.known_prices
    assert recipe.sees_position == recipe.dial
    assert not resolve(WALKER, overrides=overrides | {"known_prices": False}).recipe.known_prices
    with pytest.raises(LowgearError, match=r"known prices need a dial.*the recipe modern has not: leave them out"):
        resolve(WALKER, overrides=overrides | {"known_prices": True})
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
    assert settings(config) == [(0.01, Dial(0.001, 0.1))]


def test_separate_buffers_have_a_dial_too():
    config = resolve(WALKER, variants=("separate-buffers",), cost_coefficients=(0.001, 0.1))
    assert settings(config, "separate-buffers") == [(0.01, Dial(0.001, 0.1))]


def test_the_paper_recipe_is_the_papers():
    config = resolve(WALKER, "paper")
    recipe = config.recipe
    assert (config.steps - 2_500_000) in range(recipe.chunk)
    assert config.critic_units == config.gears == (8, 64)
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
    overrides = {"critic_units": 17, "periods": (1, 3), "dial_reach": (0.1, 2.0)}
    config = resolve(WALKER, recipe, seeds=(3,), variants=variants, overrides=overrides)
    back = RunConfig.from_json(json.loads(json.dumps(config.to_json())))
    assert back == config
    assert {type(agent.dial) for agent in back.agents} == {Dial}
    assert back.agents[0].dial.turns == (recipe == "modern")
    assert hash(back.agents) == hash(config.agents)


def test_a_config_of_an_earlier_version_is_read():
    """It has another name for one field, and none for those that came later."""
    config = resolve(find("FetchPush-v1"))
    raw = json.loads(json.dumps(config.to_json()))
    recipe = raw["recipe"]
    recipe["goal_scale"] = recipe.pop("goal_normalise")
    for name in ("actor_every", "lenient_twins", "first_alpha", "normalise_observations", "scale_rewards"):
        del recipe[name]
    assert config.recipe.goal_normalise
    assert RunConfig.from_json(raw) == config


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"steps": 0}, "--steps 0"),
        ({"cost_coefficients": (-0.5,)}, "-0.5"),
        ({"cost_coefficients": (float("nan"),)}, "nan"),
        ({"variants": ("medium",)}, "medium"),
        ({"variants": ("two-large",)}, "--gears 64,64"),
        ({"seeds": (-1,)}, "-1"),
        ({"seeds": ()}, "--seeds"),
        ({"discounts": (1.5,)}, "1.5"),
        ({"learning_rates": (0.0,)}, "0.0"),
        ({"gears": (64, 8)}, "8,64"),
        ({"recipe": "classic"}, "classic"),
        ({"cost_coefficients": (0.0, 0.1)}, "from 0 to 0.1.*above 0"),
        ({"cost_coefficients": (0.1, float("inf"))}, "inf"),
        ({"overrides": {"periods": (0,)}}, "period 0"),
        ({"overrides": {"periods": (5, 2)}}, "period 5,2.*shortest first"),
        ({"overrides": {"periods": (2, 2)}}, "period 2,2"),
        ({"overrides": {"periods": ()}}, "period"),
        ({"overrides": {"periods": 0}}, "period 0"),
        ({"overrides": {"periods": (2.5,)}}, "periods = 2.5"),
        ({"overrides": {"period": 5}}, "period: .*did you mean periods"),
        ({"overrides": {"dial_reach": (0.0, 1.0)}}, "dial reach"),
        ({"overrides": {"dial_reach": (2.0, 1.0)}}, "dial reach.*lower first"),
        ({"overrides": {"dial_reach": (1.0, float("inf"))}}, "dial reach"),
        ({"overrides": {"dial_reach": (1.0,)}}, "dial reach"),
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


def test_an_unpublished_task_needs_widths_and_a_price():
    pendulum = find("gym:Pendulum-v1")
    with pytest.raises(LowgearError, match="--gears"):
        resolve(pendulum)
    with pytest.raises(LowgearError, match=r"--cost-coefficients.*is a dial"):
        resolve(pendulum, gears=(8, 64))
    with pytest.raises(LowgearError, match=r"--cost-coefficients.*is a start"):
        resolve(pendulum, "paper", gears=(8, 64))
    config = resolve(pendulum, gears=(8, 64), cost_coefficients=(0.001, 0.1))
    assert settings(config) == [(pytest.approx(0.01), Dial(0.001, 0.1))]
