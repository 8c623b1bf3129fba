"""What a run's configuration means to the learners, the collector and the policy files: the paper's recipe and ours."""

import jax
import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.config.run import resolve
from lowgear.config.tasks import find
from lowgear.envs import make_env
from lowgear.envs.goals import Asked, Distance
from lowgear.envs.protocol import EnvSpec
from lowgear.learning.hindsight import Goals
from lowgear.policy.dial import Dial
from lowgear.training import algorithm
from lowgear.training.setup import (
    behaviour_of,
    cost_of,
    header_of,
    learners_needed,
    method_of,
    parameters_of,
    tariff_of,
)

WALKER = find("walker-stand")  # gears of 8 and 64 units, a coefficient of 0.01
SPEC = EnvSpec("walker-stand", 24, 6, (("", 24),), 1000, (-1.0,) * 6, (1.0,) * 6)
PUSH = find("FetchPush-v1")
LAYOUT = (("observation", 25), ("achieved_goal", 3), ("desired_goal", 3))
PUSH_SPEC = EnvSpec("FetchPush-v1", 31, 4, LAYOUT, 50, (-1.0,) * 4, (1.0,) * 4, (25, 28), (28, 31), True)
RULE = Distance(0.05)
ALL = ("asymmetric", "small-only", "large-only", "fixed-cost", "no-cost", "separate-buffers")


def master_shapes(method) -> list[tuple[int, ...]]:
    """Of the network that is deployed."""
    learners = jax.eval_shape(lambda seeds: algorithm.init(seeds, method), np.zeros(1, np.uint32))
    assert len(learners) == method.learner_count == len(method.gear_learners) + 1
    deployed = jax.eval_shape(jax.vmap(method.master.actor), learners[-1])
    return [layer.weight.shape[1:] for layer in deployed]


def value_bounds(method):
    """Of the targets of every gear."""
    (bounds,) = {learner.settings.value_bounds for learner in method.gear_learners}
    return bounds


def test_the_papers_recipe_is_the_papers_scheme() -> None:
    config = resolve(WALKER, "paper", variants=("asymmetric", "no-cost"), cost_coefficients=(0.01, 0.1))
    method, parameters, behaviour = method_of(config, SPEC), parameters_of(config, SPEC), behaviour_of(config)
    assert (method.cost.pick_cost, method.master.choices) == (0.0, 2)
    assert (method.dial, method.discount_by_step, method.master.known_costs) == (False, False, False)
    assert method.replay.longest_pick == 5
    assert master_shapes(method) == [(24, 32), (32, 32), (32, 2)]  # it sees the observation and picks a gear
    assert method.cost.pick_flops == 2 * (24 * 32 + 32 * 32 + 32 * 2)
    np.testing.assert_allclose(parameters.cost_low, [0.01, 0.1, 0])
    np.testing.assert_array_equal(parameters.cost_high, parameters.cost_low)
    assert not parameters.relative.any()
    assert behaviour.dial is None
    assert behaviour.periods == (5,)
    for agent, coefficient in enumerate((0.01, 0.1, 0.0)):
        header = header_of(config, SPEC, agent, 0)
        assert (header.dial, header.periods, header.cost_coefficient) == (None, (5,), coefficient)


@pytest.mark.parametrize(("known", "inputs"), [(True, 24), (False, 25)], ids=["known", "learned"])
def test_the_modern_recipe_charges_the_master_for_all_it_does(known: bool, inputs: int) -> None:
    overrides = {"periods": (2, 5, 20), "master_units": 16}
    config = resolve(WALKER, overrides=overrides | ({} if known else {"known_prices": False}))
    method = method_of(config, SPEC)
    assert method.master.known_costs == known
    pick = 2 * (inputs * 16 + 16 * 16 + 16 * 6)  # the position is one more input where prices are learned
    small, large = (2 * (24 * units + units * units + 2 * units * 6) + 3 for units in (8, 64))
    assert (method.cost.gear_flops, method.cost.pick_flops) == ((small, large), pick)
    assert method.cost.pick_cost == pytest.approx(pick / small)
    assert method.cost.gear_costs == pytest.approx((1, large / small))
    assert (method.master.choices, method.dial, method.replay.longest_pick) == (6, True, 20)
    assert master_shapes(method) == [(inputs, 16), (16, 16), (16, 6)]
    header = header_of(config, SPEC, 0, 0)
    assert header.cost == cost_of(config, SPEC) == method.cost
    assert header.known_prices == known
    assert header.sees_position == config.recipe.sees_position == (not known)


def discounted_charge(config, gear, period, steps=40_000):
    """Step by step: a gear held once for a period, then the small one for 20 steps at a time, for ever."""
    charges, held = np.zeros(steps), cost_of(config, SPEC)
    charges[:period] = held.gear_costs[gear]
    charges[period:] = 1
    charges[0] += held.pick_cost
    charges[period::20] += held.pick_cost
    return (charges * config.recipe.master_discount ** np.arange(steps)).sum()


def test_masters_of_dials_are_told_what_their_choices_cost() -> None:
    config = resolve(WALKER, variants=("asymmetric", "fixed-cost"), cost_coefficients=(0.001, 0.1))
    tariff = tariff_of(config, cost_of(config, SPEC))
    assert tariff is not None
    np.testing.assert_allclose(tariff.low, [0.001, 0.001, 0.1])
    np.testing.assert_allclose(tariff.high, [0.1, 0.001, 0.1])
    whole = np.array([discounted_charge(config, gear, period) for period in (2, 5, 20) for gear in (0, 1)])
    assert whole.argmin() == 4  # the small gear, held for 20 steps
    np.testing.assert_allclose(tariff.each, [whole - whole.min()] * 3, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(parameters_of(config, SPEC, tariff).choice_cost, tariff.each)
    assert parameters_of(config, SPEC).choice_cost is None
    unpaid = resolve(WALKER, overrides={"price_picks": False})
    free = tariff_of(unpaid, cost_of(unpaid, SPEC))
    assert free is not None
    np.testing.assert_allclose(free.each[0, ::2], 0, atol=1e-4)  # then all periods of the small gear cost the same
    for learned in (resolve(WALKER, overrides={"known_prices": False}), resolve(WALKER, "paper")):
        assert tariff_of(learned, cost_of(learned, SPEC)) is None
        assert not header_of(learned, SPEC, 0, 0).known_prices


@pytest.mark.parametrize(
    ("variants", "needed"),
    [
        (("small-only",), (0,)),
        (("large-only",), (1,)),
        (("small-only", "large-only"), (0, 1)),
        (("large-only", "asymmetric"), (0, 1, 2)),
    ],
)
def test_learners_that_nobody_acts_with_are_not_needed(variants: tuple[str, ...], needed: tuple[int, ...]) -> None:
    config = resolve(WALKER, variants=variants)
    assert learners_needed(config, method_of(config, SPEC)) == needed


@pytest.mark.parametrize("dial", [False, True])
@pytest.mark.parametrize("periods", [(5,), (2, 5)])
@pytest.mark.parametrize("price_picks", [False, True])
def test_dial_periods_and_price_are_set_apart(dial: bool, periods: tuple[int, ...], price_picks: bool) -> None:
    overrides = {"dial": dial, "periods": periods, "price_picks": price_picks}
    config = resolve(WALKER, "paper", cost_coefficients=(0.01, 0.1), overrides=overrides)
    method = method_of(config, SPEC)
    assert len(config.agents) == (1 if dial else 2)
    first, *_, last = master_shapes(method)
    assert (first[0], last[-1]) == (24 + dial, 2 * len(periods))
    assert (method.cost.pick_cost > 0) == price_picks
    assert (behaviour_of(config).dial is None) == (not dial)


def test_who_turns_a_dial_and_who_is_forced() -> None:
    config = resolve(WALKER, variants=ALL, cost_coefficients=(0.001, 0.1))
    assert [agent.variant for agent in config.agents] == [*ALL[:4], "fixed-cost", *ALL[4:]]
    behaviour, parameters = behaviour_of(config), parameters_of(config, SPEC)
    assert behaviour.dial is not None
    assert behaviour.dial.tolist() == [True, False, False, False, False, False, True]
    assert behaviour.forced_gear.tolist() == [-1, 0, 1, -1, -1, -1, -1]
    np.testing.assert_allclose(parameters.cost_low, [0.001, 0, 0, 0.001, 0.1, 0, 0.001])
    np.testing.assert_allclose(parameters.cost_high, [0.1, 0, 0, 0.001, 0.1, 0, 0.1])
    assert not parameters.relative.any()
    assert parameters.shared.tolist() == [True] * 6 + [False]
    dials = [header_of(config, SPEC, agent, 0).dial for agent in range(7)]
    free, full = Dial(0.0, 0.0), Dial(0.001, 0.1)
    assert dials == [full, free, free, Dial(0.001, 0.001), Dial(0.1, 0.1), free, full]


def test_relative_coefficients_are_in_rewards_once_their_units_are_known() -> None:
    config = resolve(WALKER, variants=("asymmetric", "fixed-cost", "no-cost"))
    assert method_of(config, SPEC).relative_costs
    assert method_of(config, SPEC).tracks_statistics
    parameters = parameters_of(config, SPEC)
    assert parameters.relative.tolist() == [True, True, False]
    np.testing.assert_allclose(parameters.cost_low, [-1, 2, 0])
    np.testing.assert_allclose(parameters.cost_high, [10, 2, 0])
    units = np.array([0.5, 0.25, 0.125], np.float32)
    tariff = tariff_of(config, cost_of(config, SPEC), units)
    assert tariff is not None
    np.testing.assert_allclose(tariff.low, [-0.5, 0.5, 0])
    np.testing.assert_allclose(tariff.high, [5, 0.5, 0])
    headers = [header_of(config, SPEC, agent, 0, units) for agent in range(3)]
    assert [header.dial for header in headers] == [Dial(-0.5, 5.0), Dial(0.5, 0.5), Dial(0.0, 0.0)]
    assert [header.cost_coefficient for header in headers] == pytest.approx([1, 0.5, 0])
    assert [header.cost_unit for header in headers] == [0.5, 0.25, None]
    assert [header.relative_coefficient for header in headers] == [2.0, 2.0, None]
    given = resolve(WALKER, cost_coefficients=(0.001, 0.1))
    assert not method_of(given, SPEC).relative_costs
    header = header_of(given, SPEC, 0, 0, np.array([0.5], np.float32))
    assert (header.dial, header.cost_unit) == (Dial(0.001, 0.1), None)


@pytest.mark.parametrize("scaled", [False, True])
def test_targets_are_bounded_where_rewards_are_scaled(scaled: bool) -> None:
    method = method_of(resolve(WALKER, overrides={"scale_rewards": scaled}), SPEC)
    # Twice the largest return on the scale of the rewards, which is 5.
    assert {gear.settings.largest_value for gear in method.gear_learners} == {10.0 if scaled else None}


def test_goals_in_the_papers_recipe_and_in_ours() -> None:
    paper, modern = (method_of(resolve(PUSH, recipe), PUSH_SPEC, RULE) for recipe in ("paper", "modern"))
    assert paper.goals == Goals((25, 28), (28, 31), RULE, share=0.8, shift=1.0, ends=True)
    assert modern.goals == Goals((25, 28), (28, 31), RULE, share=0.8, shift=0.0, ends=False)
    for method in (paper, modern):
        assert method.replay.track_episodes
    assert value_bounds(paper) is None
    assert value_bounds(modern) == pytest.approx((-20.0, 0.0))  # -1 a step at a discount of 0.95
    assert (paper.normalise_observations, modern.normalise_observations) == (False, True)
    assert behaviour_of(resolve(PUSH), has_goals=True).random_share == 0.3
    assert behaviour_of(resolve(PUSH, "paper"), has_goals=True).random_share == 0
    for recipe in ("paper", "modern"):
        assert header_of(resolve(PUSH, recipe), PUSH_SPEC, 0, 0).hindsight


def test_hindsight_only_where_there_are_goals() -> None:
    for recipe in ("paper", "modern"):
        config = resolve(WALKER, recipe, overrides={"bound_targets": True})
        method = method_of(config, SPEC)
        assert (method.goals, method.replay.track_episodes, value_bounds(method)) == (None, False, None)
        assert method.normalise_observations == config.recipe.normalise_observations
        assert behaviour_of(config).random_share == 0
        assert not header_of(config, SPEC, 0, 0).hindsight
    config = resolve(PUSH, overrides={"hindsight_share": 0.0, "bound_targets": True})
    method = method_of(config, PUSH_SPEC, RULE)
    assert (method.goals, method.replay.track_episodes, value_bounds(method)) == (None, False, None)
    assert not header_of(config, PUSH_SPEC, 0, 0).hindsight


def test_settings_of_sac_reach_the_learners_and_the_agents() -> None:
    paper = parameters_of(resolve(WALKER, "paper", learning_rates=(1e-3, 2e-3)), SPEC)
    np.testing.assert_allclose(paper.learning_rate, [1e-3, 2e-3])
    np.testing.assert_array_equal(paper.actor_learning_rate, paper.learning_rate)
    np.testing.assert_allclose(paper.target_rate, [0.005] * 2)
    np.testing.assert_array_equal(paper.target_entropy, [-6, -6])
    np.testing.assert_array_equal(paper.pessimism, [1, 1])
    np.testing.assert_array_equal(paper.reward_scale, [1, 1])
    overrides = {
        "actor_learning_rate": 5e-4,
        "actor_every": 2,
        "first_alpha": 0.1,
        "target_entropy": 0.5,
        "target_rate": 0.01,
    }
    config = resolve(WALKER, "paper", learning_rates=(1e-3, 2e-3), overrides=overrides)
    changed = parameters_of(config, SPEC)
    np.testing.assert_allclose(changed.learning_rate, [1e-3, 2e-3])
    np.testing.assert_allclose(changed.actor_learning_rate, [5e-4] * 2)
    np.testing.assert_allclose(changed.target_entropy, [-3] * 2)
    np.testing.assert_allclose(changed.target_rate, [0.01] * 2)
    for method, every, alpha in (
        (method_of(config, SPEC), 2, 0.1),
        (method_of(resolve(WALKER, "paper"), SPEC), 1, 1.0),
    ):
        assert {learner.settings.actor_every for learner in method.gear_learners} == {every}
        assert {learner.cycle for learner in method.gear_learners} == {every}
        assert {learner.settings.first_alpha for learner in method.gear_learners} == {alpha}


@pytest.mark.parametrize("name", ["normalise_observations", "scale_rewards", "lenient_twins"])
def test_statistics_are_tracked_where_anything_goes_by_them(name: str) -> None:
    names = ("normalise_observations", "scale_rewards", "lenient_twins")
    off = dict.fromkeys(names, False)
    method = method_of(resolve(WALKER, overrides=off | {name: True}), SPEC)
    assert [getattr(method, each) for each in names] == [each == name for each in names]
    assert method.tracks_statistics
    given = resolve(WALKER, overrides=off, cost_coefficients=(0.001, 0.1))
    assert not method_of(given, SPEC).tracks_statistics
    assert method_of(resolve(WALKER, overrides=off), SPEC).tracks_statistics  # a relative dial does


def test_goals_that_nobody_can_judge_are_an_error_with_a_remedy() -> None:
    with pytest.raises(LowgearError, match=r"FetchPush-v1 has goals.*compute_reward.*hindsight_share to 0") as caught:
        method_of(resolve(PUSH), PUSH_SPEC, None)
    assert "\n" not in str(caught.value)
    assert method_of(resolve(PUSH, overrides={"hindsight_share": 0}), PUSH_SPEC, None).goals is None


@pytest.mark.parametrize(
    ("recipe", "discounts", "shift", "bounds"),
    [
        ("modern", (0.9,), 0.0, (-10, 0)),  # -1 a step for ever
        ("modern", (0.9, 0.98), 0.0, (-50, 0)),  # the longest horizon of the population
        ("paper", (0.99,), 1.0, (0, 100)),  # 0 or 1 a step
        ("paper", (0.9,), 0.5, (-5, 5)),
        ("paper", (0.9,), -1.0, (-20, 0)),  # an end is worth 0, whatever the rewards
        ("paper", (0.9,), 3.0, (0, 30)),
        ("paper", (0.0,), 1.0, (0, 1)),
    ],
)
def test_value_bounds_by_hand(recipe: str, discounts: tuple[float, ...], shift: float, bounds) -> None:
    overrides = {"bound_targets": True, "goal_reward_shift": shift}
    config = resolve(PUSH, recipe, discounts=discounts, overrides=overrides)
    assert value_bounds(method_of(config, PUSH_SPEC, RULE)) == pytest.approx(bounds, abs=1e-9)


def test_no_bounds_where_rewards_are_not_known() -> None:
    config = resolve(PUSH, overrides={"bound_targets": True})
    for rule in (Distance(0.05, sparse=False), Asked("any", None)):
        assert value_bounds(method_of(config, PUSH_SPEC, rule)) is None


def test_episodes_end_as_the_recipe_has_it() -> None:
    """Straight at the goal, which is reached long before the time is up."""
    task = find("envpool:FetchReach-v1")
    for recipe, ends in (("paper", True), ("modern", False)):
        env = make_env(resolve(task, recipe, gears=(4, 8), cost_coefficients=(0.001,)), 2)
        observation, ended, succeeded = env.reset([0, 1]), np.zeros(2, bool), np.zeros(2, bool)
        for _ in range(40):
            away = np.clip(10 * (observation[:, 13:16] - observation[:, 10:13]), -1, 1)
            step = env.step(np.concatenate([away, np.zeros((2, 1), np.float32)], axis=1))
            observation = step.observation
            ended, succeeded = ended | step.terminated, succeeded | step.success
        assert succeeded.all()
        assert ended.tolist() == [ends] * 2
        env.close()
