"""What the master pays is decided in one function: change it, and all that follows from it follows."""

import re
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from click.testing import CliRunner

from lowgear.commands.cli import cli
from lowgear.config.run import resolve
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import Task
from lowgear.evaluation import evaluate
from lowgear.evaluation.evaluate import Played, play_policies
from lowgear.learning.replay import UnpaidPicks
from lowgear.learning.transitions import MasterTransitions
from lowgear.policy.cost import CostModel
from lowgear.policy.file import load
from lowgear.training import algorithm
from lowgear.training.loop import Training
from lowgear.training.setup import parameters_of, tariff_of
from tests.fixtures.probes import Counting

PERIODS, DISCOUNT, COEFFICIENT = (2, 5), 0.9, 0.01
CONFIG = resolve(
    Task("counting", "gym", "counting", gears=(2, 4), cost_coefficient=COEFFICIENT),
    cost_coefficients=(0.001, 0.1),
    overrides={"critic_units": 2, "master_units": 2, "periods": PERIODS, "master_discount": DISCOUNT},
)
SMALL, LARGE = (2 * (2 * units + units * units + 2 * units) + 3 for units in (2, 4))
PICK = 2 * (2 * 2 + 2 * 2 + 2 * 4)
PRICES = {"small": 1.0, "large": LARGE / SMALL, "pick": PICK / SMALL}


def squared(self, gear_cost, steps, picks=1):
    """A gear costs the square of what it did, and a pick three times as much."""
    return gear_cost**2 * steps + 3 * picks * self.pick_cost


CHARGES = {
    "as it is": PRICES,
    "squared": {"small": 1.0, "large": PRICES["large"] ** 2, "pick": 3 * PRICES["pick"]},
}


@pytest.fixture(params=CHARGES)
def prices(request, monkeypatch):
    """What a step in each gear and a pick cost, by hand."""
    if request.param == "squared":
        monkeypatch.setattr(CostModel, "charge", squared)
    return CHARGES[request.param]


def tariff(prices) -> np.ndarray:
    """Step by step: each choice once, then the small gear for 5 steps at a time, for ever; beyond the cheapest."""
    whole = []
    for period in PERIODS:
        for gear in ("small", "large"):
            charges = np.full(2000, prices["small"])
            charges[:period] = prices[gear]
            charges[0] += prices["pick"]
            charges[period::5] += prices["pick"]
            whole.append((charges * DISCOUNT ** np.arange(2000)).sum())
    return np.array(whole) - min(whole)


@pytest.fixture
def training(tmp_path):
    directory = RunDirectory(tmp_path / "run")
    directory.create(CONFIG, {})
    made = Training(CONFIG, Counting([5]), lambda count: Counting([5] * count), directory)
    yield made
    made.close()


def test_the_reward_of_the_masters_batch_follows(prices, training) -> None:
    zero = jnp.zeros((4, 2))
    # Choices 0 to 3 are small and large for 2 steps, small and large for 5; the last was cut short after 3.
    discounted = np.array([sum(DISCOUNT**k for k in range(steps)) for steps in (2, 2, 5, 3)], np.float32)
    picks = MasterTransitions(zero, jnp.arange(4), jnp.full(4, 7.0), jnp.ones(4), zero)
    unpaid = UnpaidPicks(picks, jnp.asarray(discounted), jnp.array([2, 2, 5, 3]))
    agent = parameters_of(CONFIG, training.spec, tariff_of(CONFIG, training.learner.method.cost))
    agent = agent._replace(**{name: jnp.asarray(value)[0] for name, value in agent._asdict().items()})
    paid = algorithm.pay(unpaid, agent, jnp.full(4, 0.5), training.learner.method)  # the dial's middle, 0.01
    gear = np.array([prices["small"], prices["large"]] * 2)
    np.testing.assert_allclose(paid.reward, 7 - 0.01 * (gear * discounted + prices["pick"]), rtol=1e-5)
    assert paid.choice_cost is not None
    np.testing.assert_allclose(paid.choice_cost, np.tile(0.01 * tariff(prices), (4, 1)), rtol=1e-4, atol=1e-6)


def test_the_score_of_the_best_policy_follows(prices, training, monkeypatch) -> None:
    # Two episodes: returns of 5 and 7, three and one steps in the large gear, 2 and 4 picks.
    played = Played(
        returns=np.array([[5.0, 7.0]]),
        lengths=np.array([[5.0, 5.0]]),
        picks=np.array([[2.0, 4.0]]),
        gear_steps=np.array([[[2.0, 3.0], [4.0, 1.0]]]),
        success=None,
    )
    monkeypatch.setattr(evaluate, "play_policies", lambda *_, **__: played)
    training.collector.steps = CONFIG.steps  # nothing is left to do but to evaluate
    training.run()
    paid = 3 * prices["small"] + 2 * prices["large"] + 3 * prices["pick"]  # of a mean episode
    assert training.best == pytest.approx([6 - COEFFICIENT * paid])


def test_the_policy_file_what_it_picks_and_its_export_follow(prices, training, tmp_path) -> None:
    training.save_policies()
    policy = load(tmp_path / "run" / "policies" / "agent0.safetensors")
    assert policy.weights.tariff is not None
    expected = tariff(prices)
    np.testing.assert_allclose(policy.weights.tariff.each[0], expected, rtol=1e-4, atol=1e-4)

    # The large gear for 5 steps is worth 0.2 more: at a coefficient of 0.01 it costs less, but not if squared.
    (first, second, (weight, _)) = policy.weights.master
    advantage = np.array([[0.0, 0.0, 0.0, 0.2]], np.float32)
    master = [first, second, (0 * weight, advantage)]
    policy = replace(policy, weights=policy.weights._replace(master=master))
    played = play_policies([policy], lambda count: Counting([10] * count), 2, "greedy", 0)
    best = int((advantage[0] - COEFFICIENT * expected).argmax())
    assert best == (3 if prices is PRICES else 2)
    np.testing.assert_array_equal(played.gear_steps[0], [[0, 10] if best == 3 else [10, 0]] * 2)
    np.testing.assert_array_equal(played.picks[0], [2, 2])

    path = tmp_path / "unknown.safetensors"
    replace(policy, header=replace(policy.header, task="gym:NoSuchThing-v9")).save(path)
    out = tmp_path / "c"
    done = CliRunner().invoke(cli, ["export", str(path), "--format", "c", "--name", "robot", "--out", str(out)])
    assert done.exit_code == 0, done.output
    (written,) = re.findall(r"robot_\w*tariff\[\d*\]\s*=\s*\{(.*?)\}", (out / "robot.c").read_text(), re.DOTALL)
    numbers = [float(number.strip().rstrip("f")) for number in written.split(",")]
    np.testing.assert_allclose(numbers, expected, rtol=1e-4, atol=1e-4)
