"""Training with a dial: one agent that is thrifty or lavish as it is told, and scores that charge the picks too."""

import numpy as np
import pytest

from lowgear import envs
from lowgear.config.run import resolve
from lowgear.config.tasks import Task
from lowgear.evaluation import evaluate
from lowgear.evaluation.evaluate import Played, play_policies, summarise
from lowgear.training.loop import Training
from tests.fixtures.probes import Counting, Valley


@pytest.mark.usefixtures("optimised")
@pytest.mark.parametrize(
    "known", [pytest.param(True, id="known"), pytest.param(False, id="learned", marks=pytest.mark.slow)]
)
def test_one_agent_uses_the_large_gear_where_it_is_cheap_and_not_where_it_is_dear(known):
    """Only the large gear can follow the valley: it earns about 0.36 more a step and costs 200 times as much.

    They tie at a coefficient of about 0.0018; the settings are 0.0001, 0.0006, 0.0034 and 0.02.
    """
    overrides = {"batch": 64, "critic_units": 32, "random_steps": 256, "explore_share": 0.5, "periods": (2, 5)}
    # What is picked changes nothing later, and what gears earned before they could follow is soon forgotten.
    master = {"master_discount": 0.5, "master_replay": 400, "master_copy_every": 50, "master_learning_rate": 3e-3}
    config = resolve(
        Task("valley", "gym", "valley", gears=(1, 32)),
        steps=4000,
        cost_coefficients=(0.0001, 0.02),
        learning_rates=(3e-3,),
        discounts=(0.5,),
        overrides=overrides | master | {"known_prices": known},
        evaluate_every=0,
    )
    assert len(config.agents) == 1
    training = Training(config, envs.wrap(Valley, 1), None)
    training.run()
    training.close()
    policy = training.policy(0)
    assert (policy.weights.tariff is not None) == known
    policies = [policy.at(value) for value in policy.header.dial.settings(4)]
    played = play_policies(policies, lambda count: envs.wrap(Valley, count), 10, "greedy", 0)
    found = [summarise(played, place, policy.header.cost) for place in range(4)]
    share = [each["large_share"] for each in found]
    assert share[0] > 0.8
    assert share[1] > 0.6
    assert share[2] < 0.3
    assert share[3] < 0.1
    assert found[0]["return_mean"] > found[3]["return_mean"] + 4
    assert found[0]["flops_per_step"] > 10 * found[3]["flops_per_step"]


@pytest.mark.parametrize("known", [True, False], ids=["known", "learned"])
@pytest.mark.parametrize("price_picks", [True, False])
def test_scores_are_return_minus_what_the_master_pays(monkeypatch, price_picks, known):
    task = Task("counting", "gym", "counting", gears=(2, 4), cost_coefficient=0.01)
    overrides = {"critic_units": 2, "master_units": 2, "periods": (2, 5), "price_picks": price_picks}
    overrides |= {"known_prices": known}
    config = resolve(task, cost_coefficients=(0.01, 0.1), variants=("asymmetric", "no-cost"), overrides=overrides)
    training = Training(config, Counting([5, 5]), lambda count: Counting([5] * count))
    # Two episodes of each agent: returns of 5 and 7, three and one steps in the large gear, 2 and 4 picks.
    played = Played(
        returns=np.array([[5.0, 7.0]] * 2),
        lengths=np.array([[5.0, 5.0]] * 2),
        picks=np.array([[2.0, 4.0]] * 2),
        gear_steps=np.array([[[2.0, 3.0], [4.0, 1.0]]] * 2),
        success=None,
    )
    monkeypatch.setattr(evaluate, "play_policies", lambda *_, **__: played)
    training.collector.steps = config.steps  # nothing is left to do but to evaluate
    training.run()
    training.close()
    small, large = (2 * (2 * units + units * units + 2 * units) + 3 for units in (2, 4))
    pick = 2 * ((2 + (not known)) * 2 + 2 * 2 + 2 * 4)
    paid = (3 * small + 2 * large + (3 * pick if price_picks else 0)) / small  # of a mean episode
    assert training.best == pytest.approx([6 - 0.01 * paid, 6])
    assert [line["flops_per_step"] for line in training.last_evaluation] == pytest.approx(
        [(6 * small + 4 * large + 6 * pick) / 10] * 2  # what ran, whoever pays
    )
