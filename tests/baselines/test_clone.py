from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowgear import LowgearError
from lowgear.baselines import clone
from lowgear.baselines.clone import MODERN, PAPER, CloneSettings
from lowgear.evaluation import evaluate
from lowgear.learning.networks import Layer
from lowgear.learning.optimiser import ADAM
from lowgear.policy.controller import Controller
from tests.fixtures.teachers import valley, valley_demonstrations

QUICK = CloneSettings(learning_rate=1e-3, epochs=3, batch=16)


def tiny():
    """One unit everywhere: the action is tanh(tanh(tanh(x)))."""
    ones = Layer(jnp.ones((1, 1)), jnp.zeros(1))
    return (ones, ones, Layer(jnp.array([[1.0, 0.0]]), jnp.zeros(2)))


def test_the_paper_settings():
    assert (PAPER.learning_rate, PAPER.epochs, PAPER.batch) == (1e-4, 100, 64)


def test_loss_is_the_mean_squared_error_of_the_rows_that_count():
    x = np.array([[0.5], [1.0], [9.0]], np.float32)
    wanted = np.array([[0.0], [0.1], [7.0]], np.float32)
    errors = [np.tanh(np.tanh(np.tanh(0.5))) ** 2, (np.tanh(np.tanh(np.tanh(1.0))) - 0.1) ** 2]
    found = clone.loss(tiny(), x, wanted, np.array([1, 1, 0], np.float32))
    assert found == pytest.approx(np.mean(errors), rel=1e-5)


def test_the_first_step_of_adam_is_the_learning_rate_against_the_gradients_sign():
    network = tiny()
    state = clone.CloneState(network, ADAM.init(network))
    batch = (jnp.array([[0.5]]), jnp.array([[-0.5]]), jnp.ones(1), jnp.float32(0.01))
    new, _ = clone.update(state, *batch)
    assert new.network[0].weight[0, 0] == pytest.approx(0.99, abs=1e-5)  # too high an action: the weight falls
    assert new.network[2].weight[0].tolist() == pytest.approx([0.99, 0.0], abs=1e-5)  # the spread is not taught


def test_a_batch_without_rows_changes_nothing():
    network = tiny()
    state = clone.CloneState(network, ADAM.init(network))
    new, _ = clone.update(state, jnp.ones((2, 1)), jnp.ones((2, 1)), jnp.zeros(2), jnp.float32(0.01))
    for before, after in zip(jax.tree.leaves(state), jax.tree.leaves(new), strict=True):
        np.testing.assert_array_equal(before, after)


def test_whole_trajectories_are_held_out_and_every_row_has_its_place():
    rows, held = clone.split(valley_demonstrations(10, 7), 0, 0.3)
    assert len(held) == 21
    assert sorted([*rows, *held]) == list(range(70))
    assert {r // 7 for r in rows}.isdisjoint({r // 7 for r in held})


def test_batches_hold_every_row_once_and_the_rest_does_not_count():
    first, second = np.arange(49), np.arange(5)
    batches = clone.batched([first, second], 16, 60)
    assert batches.rows.shape == (2, 4, 16)
    assert batches.weights.sum(axis=(1, 2)).tolist() == [49, 5]
    assert batches.rows[batches.weights > 0].tolist() == [*first, *second]


def test_a_student_learns_the_same_alone_and_in_company():
    data, longer = valley_demonstrations(6, 10), valley_demonstrations(9, 30, seed=1)
    settings = replace(QUICK, updates=9, anneal=True)
    alone = clone.fit([data], 4, [3], settings)
    company = clone.fit([longer, data], 4, [3, 3], settings)
    for mine, theirs in zip(alone.policies[0].weights.gears[0], company.policies[1].weights.gears[0], strict=True):
        np.testing.assert_allclose(mine[0], theirs[0], atol=1e-6)
    epochs = len(alone.history["validation_loss"])
    np.testing.assert_allclose(
        alone.history["validation_loss"][:, 0], company.history["validation_loss"][:epochs, 1], rtol=1e-5
    )
    assert np.isnan(company.history["validation_loss"][epochs:, 1]).all()


def test_same_seed_equal_other_seed_different():
    data = valley_demonstrations(4, 10)
    first, again, other = (clone.fit([data], 4, [seed], QUICK) for seed in (0, 0, 1))
    weights = [s.policies[0].weights.gears[0][0][0] for s in (first, again, other)]
    np.testing.assert_array_equal(weights[0], weights[1])
    assert not np.array_equal(weights[0], weights[2])


def test_updates_become_epochs():
    assert clone.epochs_for(PAPER, 1250) == 100
    assert clone.epochs_for(replace(PAPER, updates=10_000), 1125) == 556  # of 18 batches
    assert clone.epochs_for(replace(PAPER, updates=10), 200_000) == 1


def test_students_learn_the_valley_and_compile_once():
    data = valley_demonstrations(40, 20)
    counted = []
    clone.epoch.clear_cache()
    settings = replace(MODERN, learning_rate=5e-3, updates=4000)
    fitted = clone.fit([data] * 2, 32, [0, 1], settings, lambda done, total: counted.append((done, total)))
    assert clone.epoch._cache_size() == 1
    returns = evaluate.play_policies(fitted.policies, valley, 20, "greedy", 0).returns.mean(axis=1)
    assert (returns > 19).all()  # of 20
    losses = fitted.history["validation_loss"]
    assert (losses[-1] < 0.05 * losses[0]).all()
    assert counted == [(epoch, len(losses)) for epoch in range(1, len(losses) + 1)]
    assert {p.header.variant for p in fitted.policies} == {"bc"}


def test_the_papers_epochs_are_too_few_for_its_own_amount_of_data():
    data = valley_demonstrations(25, 50)
    few, more = (clone.fit([data] * 2, 8, [0, 1], settings) for settings in (PAPER, MODERN))
    last = [np.mean(f.history["validation_loss"][-1]) for f in (few, more)]
    assert last[1] < 0.2 * last[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epochs": 0}, "1 or more"),
        ({"updates": 0}, "1 or more"),
        ({"batch": 0}, "1 or more"),
        ({"learning_rate": 0.0}, "above 0"),
        ({"held_out": 1.0}, "held-out share"),
        ({"held_out": 0.5}, "record two"),
    ],
)
def test_bad_settings_are_errors(change, message):
    with pytest.raises(LowgearError, match=message):
        clone.fit([valley_demonstrations(1, 4)], 4, [0], replace(PAPER, **{"held_out": 0.0} | change))


def test_without_held_out_trajectories_there_is_no_validation_loss():
    fitted = clone.fit([valley_demonstrations(1, 4)], 4, [0], replace(QUICK, held_out=0.0))
    assert np.isnan(fitted.history["validation_loss"]).all()
    assert np.isfinite(fitted.history["training_loss"]).all()


def test_observations_are_normalised_and_the_first_layer_takes_that_in():
    near = valley_demonstrations(4, 10)
    mean, std = near.observations.mean(axis=0), near.observations.std(axis=0)
    normalised = replace(near, observations=(near.observations - mean) / std)
    far = replace(near, observations=1000 + 50 * near.observations)
    settings = replace(QUICK, normalise=True)
    (wanted,) = clone.fit([normalised], 3, [0], QUICK).policies
    for data in (near, far):
        (found,) = clone.fit([data], 3, [0], settings).policies
        actions = [
            Controller.from_policies([policy]).act_with(0, seen.observations[None])
            for policy, seen in ((found, data), (wanted, normalised))
        ]
        np.testing.assert_allclose(*actions, atol=2e-4)
    assert np.ptp(actions[0]) > 0.01  # they do differ by where the student is
