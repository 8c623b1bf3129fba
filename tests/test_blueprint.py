"""What a run's configuration means to the learners, the collector and the policy files: the paper's recipe and ours."""

import jax
import numpy as np
import pytest

from lowgear import asymmetric, cost
from lowgear.blueprint import behaviour_of, header_of, knobs_of, method_of, prices_of
from lowgear.config import resolve
from lowgear.dial import Dial
from lowgear.envs.protocol import EnvSpec
from lowgear.tasks import find

WALKER = find("walker-stand")  # gears of 8 and 64 units, a coefficient of 0.01
SPEC = EnvSpec("walker-stand", 24, 6, (("", 24),), 1000, (-1.0,) * 6, (1.0,) * 6)
ALL = ("asymmetric", "small-only", "large-only", "fixed-cost", "no-cost", "separate-buffers")


def master_shapes(method) -> list[tuple[int, ...]]:
    learners = jax.eval_shape(lambda seeds: asymmetric.init(seeds, method), np.zeros(1, np.uint32))
    assert len(learners) == len(method.gears) + 1
    return [layer.weight.shape[1:] for layer in learners[-1].params]


def test_the_papers_recipe_is_the_papers_scheme() -> None:
    config = resolve(WALKER, "paper", variants=("asymmetric", "no-cost"), cost_coefficients=(0.01, 0.1))
    method, knobs, behaviour = method_of(config, SPEC), knobs_of(config), behaviour_of(config)
    assert (method.pick_cost, method.durations, method.dial, method.discount_by_step) == (0.0, 1, False, False)
    assert method.replay.longest_pick == 5
    assert master_shapes(method) == [(24, 32), (32, 32), (32, 2)]  # it sees the observation and picks a gear
    assert prices_of(config, SPEC).pick == cost.master_flops(24, 2, 32)
    np.testing.assert_allclose(knobs.cost_low, [0.01, 0.1, 0])
    np.testing.assert_array_equal(knobs.cost_ratio, [1, 1, 1])
    assert behaviour.dial is None
    assert behaviour.periods == (5,)
    for agent, coefficient in enumerate((0.01, 0.1, 0.0)):
        header = header_of(config, SPEC, agent, 0)
        assert (header.dial, header.periods, header.cost_coefficient) == (None, (5,), coefficient)


def test_the_modern_recipe_charges_the_master_for_all_it_does() -> None:
    config = resolve(WALKER, overrides={"periods": (2, 5, 20), "master_units": 16})
    method = method_of(config, SPEC)
    pick = 2 * (25 * 16 + 16 * 16 + 16 * 6)
    assert prices_of(config, SPEC).pick == pick
    assert method.pick_cost == pytest.approx(pick / cost.policy_flops(24, 6, 8))
    assert method.gear_costs == cost.gear_costs(24, 6, (8, 64))
    assert (method.durations, method.dial, method.replay.longest_pick) == (3, True, 20)
    assert master_shapes(method) == [(25, 16), (16, 16), (16, 6)]
    assert header_of(config, SPEC, 0, 0).prices == prices_of(config, SPEC)


@pytest.mark.parametrize("dial", [False, True])
@pytest.mark.parametrize("periods", [(5,), (2, 5)])
@pytest.mark.parametrize("price_picks", [False, True])
def test_dial_durations_and_price_are_set_apart(dial: bool, periods: tuple[int, ...], price_picks: bool) -> None:
    overrides = {"dial": dial, "periods": periods, "price_picks": price_picks}
    config = resolve(WALKER, "paper", cost_coefficients=(0.01, 0.1), overrides=overrides)
    method = method_of(config, SPEC)
    assert len(config.agents) == (1 if dial else 2)
    first, *_, last = master_shapes(method)
    assert (first[0], last[-1]) == (24 + dial, 2 * len(periods))
    assert (method.pick_cost > 0) == price_picks
    assert (behaviour_of(config).dial is None) == (not dial)


def test_who_turns_a_dial_and_who_is_forced() -> None:
    config = resolve(WALKER, variants=ALL, cost_coefficients=(0.001, 0.1))
    assert [agent.variant for agent in config.agents] == [*ALL[:4], "fixed-cost", *ALL[4:]]
    behaviour, knobs = behaviour_of(config), knobs_of(config)
    assert behaviour.dial is not None
    assert behaviour.dial.tolist() == [True, False, False, False, False, False, True]
    assert behaviour.forced_gear.tolist() == [-1, 0, 1, -1, -1, -1, -1]
    np.testing.assert_allclose(knobs.cost_low, [0.001, 0, 0, 0.001, 0.1, 0, 0.001])
    np.testing.assert_allclose(knobs.cost_ratio, [100, 1, 1, 1, 1, 1, 100], rtol=1e-6)
    assert knobs.shared.tolist() == [True] * 6 + [False]
    dials = [header_of(config, SPEC, agent, 0).dial for agent in range(7)]
    free, full = Dial(0.0, 0.0), Dial(0.001, 0.1)
    assert dials == [full, free, free, Dial(0.001, 0.001), Dial(0.1, 0.1), free, full]
