"""The master's learner: targets by hand, the target copy, and a probe whose values are known."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowgear.learning import dqn
from lowgear.learning.dqn import Dqn, DqnSettings, DqnState, Dueling
from lowgear.learning.networks import Layer, mlp
from lowgear.learning.transitions import MasterTransitions

SETTINGS = DqnSettings("tanh", 3)
update = jax.jit(dqn.update, static_argnames="settings")
squared_error = jax.jit(dqn.squared_error, static_argnames="activation")
gradient = jax.jit(jax.grad(dqn.squared_error, has_aux=True), static_argnames="activation")


def table(values) -> tuple[Layer, ...]:
    """A network whose values for the one-hot observation of state s are `values[s]`."""
    values = jnp.asarray(values, jnp.float32)
    eye = jnp.eye(len(values), dtype=jnp.float32)
    zero = jnp.zeros(len(values), jnp.float32)
    return (Layer(eye, zero), Layer(eye, zero), Layer(values, jnp.zeros(values.shape[1], jnp.float32)))


def one_hot(states) -> jax.Array:
    return jax.nn.one_hot(jnp.asarray(states), 2, dtype=jnp.float32)


def random_batch(seed: int = 0, size: int = 8) -> MasterTransitions:
    rng = np.random.default_rng(seed)
    return MasterTransitions(
        observation=jnp.asarray(rng.normal(size=(size, 4)), jnp.float32),
        choice=jnp.asarray(rng.integers(0, 3, size), jnp.int32),
        reward=jnp.asarray(rng.normal(size=size), jnp.float32),
        discount=jnp.asarray(rng.choice([0.0, 0.9], size), jnp.float32),
        next_observation=jnp.asarray(rng.normal(size=(size, 4)), jnp.float32),
    )


def test_online_network_picks_and_target_network_values() -> None:
    params, target = table([[1, 2], [4, 3]]), table([[10, 5], [7, 20]])
    batch = MasterTransitions(
        observation=one_hot([0, 1, 0, 1]),
        choice=jnp.array([0, 1, 1, 0], jnp.int32),
        reward=jnp.array([0.5, -1.0, 2.0, 0.0], jnp.float32),
        discount=jnp.array([0.9, 0.5, 0.0, 0.9], jnp.float32),
        next_observation=one_hot([1, 0, 1, 1]),
    )
    with jax.numpy_dtype_promotion("strict"):
        loss, value = squared_error(params, target, batch, "relu")
    # Online prefers 1 in state 0 and 0 in state 1; the target values these at 5 and 7, its own best at 10 and 20.
    goals = np.array([0.5 + 0.9 * 7, -1 + 0.5 * 5, 2.0, 0.9 * 7])
    assert loss == pytest.approx(np.mean((np.array([1, 3, 2, 4]) - goals) ** 2), rel=1e-6)
    assert value == pytest.approx(2.5)


# The value of state s at position p is `table[s] + p · table[2]`. Each pick is paid at a price of its own.
DUELING = Dueling(table([[1, 2], [4, 3]]), table([[0.5], [-1], [2]]))
DUELING_TARGET = Dueling(table([[10, 5], [7, 20]]), table([[1], [3], [-2]]))
PAID = MasterTransitions(
    observation=jnp.array([[1, 0, 0.5], [0, 1, 1]], jnp.float32),
    choice=jnp.array([1, 0], jnp.int32),
    reward=jnp.array([0.5, -1.0], jnp.float32),
    discount=jnp.array([0.9, 0.5], jnp.float32),
    next_observation=jnp.array([[0, 1, 0.5], [1, 0, 1]], jnp.float32),
    choice_cost=jnp.array([[2, 0.25], [3, 0]], jnp.float32),
)
VALUES = np.array([2 + (0.5 + 0.5 * 2) - 0.25, 4 + (-1 + 1 * 2) - 3])
# Next, online prefers 1 (2.75 to 2, for what 0 costs), then 1 (2 to -2); the target has a value of its own.
GOALS = np.array([0.5 + 0.9 * (20 + (3 - 0.5 * 2) - 0.25), -1 + 0.5 * (5 + (1 - 1 * 2) - 0)])


def test_where_costs_are_known_q_is_advantage_and_value_less_the_cost() -> None:
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        loss, value = squared_error(DUELING, DUELING_TARGET, PAID, "relu")
    assert loss == pytest.approx(np.mean((VALUES - GOALS) ** 2), rel=1e-6)
    assert value == pytest.approx(VALUES.mean())


def test_the_value_learns_and_has_no_say_in_what_is_best() -> None:
    grad, _ = gradient(DUELING, DUELING_TARGET, PAID, "relu")
    error = VALUES - GOALS  # the derivative of the mean of two squares
    np.testing.assert_allclose(grad.advantage[-1].weight, [[0, error[0]], [error[1], 0]], rtol=1e-5)
    np.testing.assert_allclose(grad.value[-1].weight[:, 0], [error[0], error[1], 0.5 * error[0] + error[1]], rtol=1e-5)
    # Any other value moves Q by itself, and leaves the goals, so the picks in them, where they were.
    other = DUELING._replace(value=table([[100], [-50], [7]]))
    moved = VALUES + np.array([100 + 0.5 * 7, -50 + 7]) - np.array([0.5 + 0.5 * 2, -1 + 2])
    loss, _ = squared_error(other, DUELING_TARGET, PAID, "relu")
    assert loss == pytest.approx(np.mean((moved - GOALS) ** 2), rel=1e-6)


def test_a_master_that_knows_costs_learns_from_nothing_else() -> None:
    with pytest.raises(AssertionError, match="knows its costs"):
        dqn.squared_error(DUELING, DUELING_TARGET, PAID._replace(choice_cost=None), "relu")


def learner(known: bool) -> Dqn:
    return Dqn(inputs=4, choices=3, units=5, batch=8, known_costs=known, settings=SETTINGS)


def test_what_is_deployed_are_the_advantages_which_see_no_position() -> None:
    known, plain = (jax.eval_shape(learner(each).init, jax.random.key(0)) for each in (True, False))
    dueling = known.params
    assert isinstance(dueling, Dueling)
    assert [layer.weight.shape for layer in dueling.advantage] == [(3, 5), (5, 5), (5, 3)]
    units = dqn.VALUE_UNITS
    assert [layer.weight.shape for layer in dueling.value] == [(4, units), (units, units), (units, 1)]
    assert jax.eval_shape(learner(True).actor, known) == dueling.advantage
    assert jax.eval_shape(learner(False).actor, plain) == plain.params
    assert [layer.weight.shape for layer in plain.params] == [(4, 5), (5, 5), (5, 3)]


def values_of(state: DqnState, observation: jax.Array, cost: jax.Array | None) -> list[np.ndarray]:
    """Of network and target, in the task's rewards; `cost` is in them too."""
    scale = state.reward_scale
    batch = random_batch()._replace(choice_cost=None if cost is None else cost / scale)
    return [np.asarray(scale * dqn.q_values(part, batch, observation, "tanh")) for part in (state.params, state.target)]


@pytest.mark.parametrize("known", [False, True], ids=["learned", "known"])
def test_another_scale_of_rewards_leaves_values_as_they_were(known: bool) -> None:
    """In units of rewards, for both networks; and what is deployed is in the task's own rewards throughout."""
    rng = np.random.default_rng(0)
    first = learner(known).init(jax.random.key(0))
    first = first._replace(target=jax.tree.map(lambda x: x + 0.1, first.params))
    observation = jnp.asarray(rng.normal(size=(6, 4)), jnp.float32)
    cost = jnp.asarray(rng.uniform(0, 3, (6, 3)), jnp.float32) if known else None
    assert first.reward_scale == 0
    begun = dqn.rescale(first, jnp.float32(2))
    assert begun.reward_scale == 2
    jax.tree.map(np.testing.assert_array_equal, begun.params, first.params)  # no values yet that could mean anything
    moved = dqn.rescale(begun, jnp.float32(50))
    assert moved.reward_scale == 50
    for now, before in zip(values_of(moved, observation, cost), values_of(begun, observation, cost), strict=True):
        np.testing.assert_allclose(now, before, rtol=1e-4, atol=1e-5)
    seen = observation[:, : 4 - known]
    deployed = [mlp(learner(known).actor(state), seen, "tanh") for state in (begun, moved)]
    np.testing.assert_allclose(*deployed, rtol=1e-4, atol=1e-5)
    network = begun.params.advantage if isinstance(begun.params, Dueling) else begun.params
    np.testing.assert_allclose(deployed[0], 2 * mlp(network, seen, "tanh"), rtol=1e-5, atol=1e-6)


def test_before_the_first_update_what_is_deployed_is_the_network_itself() -> None:
    state = learner(False).init(jax.random.key(0))
    jax.tree.map(np.testing.assert_array_equal, learner(False).actor(state), state.params)


@pytest.mark.parametrize("known", [False, True], ids=["learned", "known"])
def test_flops_are_those_of_the_products_of_an_update(known: bool) -> None:
    """Two forward passes for the target, one to fit, and its gradients: of all weights, and of all hidden inputs."""
    state, total = jax.eval_shape(learner(known).init, jax.random.key(0)), 0
    networks = state.params if isinstance(state.params, Dueling) else (state.params,)
    for network in networks:
        products = [layer.weight.size for layer in network]
        total += 2 * 8 * (3 * sum(products) + sum(products) + sum(products[1:]))
    assert learner(known).flops() == total


def test_gradient_is_that_of_the_chosen_values_alone() -> None:
    state, batch = dqn.init(jax.random.key(0), 4, 3, 5), random_batch()
    target = jax.tree.map(lambda x: x + 0.1, state.params)
    goal = batch.reward + batch.discount * jnp.take_along_axis(
        mlp(target, batch.next_observation, "tanh"),
        mlp(state.params, batch.next_observation, "tanh").argmax(axis=-1, keepdims=True),
        axis=-1,
    ).squeeze(-1)

    def plain(params):
        values = mlp(params, batch.observation, "tanh")
        return jnp.mean((values[jnp.arange(8), batch.choice] - goal) ** 2)

    found = gradient(state.params, target, batch, "tanh")[0]
    jax.tree.map(
        partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-6), found, jax.jit(jax.grad(plain))(state.params)
    )


def test_what_follows_a_real_end_does_not_matter() -> None:
    state, batch = dqn.init(jax.random.key(0), 4, 3, 5), random_batch()
    moved = batch._replace(next_observation=jnp.where(batch.discount[:, None] == 0, 9.0, batch.next_observation))
    assert not np.array_equal(moved.next_observation, batch.next_observation)
    losses = [squared_error(state.params, state.target, b, "tanh")[0] for b in (batch, moved)]
    assert losses[0] == losses[1]


def test_first_adam_step_has_the_size_of_the_learning_rate() -> None:
    state, batch, rate = dqn.init(jax.random.key(0), 4, 3, 5), random_batch(), jnp.float32(1e-3)
    new_state, _ = update(state, batch, rate, SETTINGS)
    grads = gradient(state.params, state.target, batch, "tanh")[0]
    for new, old, grad in zip(*map(jax.tree.leaves, (new_state.params, state.params, grads)), strict=True):
        felt = np.abs(grad) > 1e-4
        assert felt.any()
        np.testing.assert_allclose((new - old)[felt], -rate * np.sign(grad)[felt], rtol=2e-3)


@pytest.mark.parametrize("known", [False, True], ids=["learned", "known"])
def test_target_is_copied_exactly_when_due_and_not_between(known: bool) -> None:
    state, batch = dqn.init(jax.random.key(0), 4, 3, 5, known), random_batch()
    if known:
        batch = batch._replace(choice_cost=jnp.ones((8, 3)))
    jax.tree.map(np.testing.assert_array_equal, state.params, state.target)
    for count in range(1, 8):
        old_target = state.target
        state, _ = update(state, batch, jnp.float32(1e-3), SETTINGS)
        assert state.updates == count
        jax.tree.map(np.testing.assert_array_equal, state.target, state.params if count % 3 == 0 else old_target)
        for new, old in zip(jax.tree.leaves(state.params), jax.tree.leaves(old_target), strict=True):
            assert not np.array_equal(new, old)


def test_loss_promotes_no_rank() -> None:
    params, target = table([[1, 2], [4, 3]]), table([[10, 5], [7, 20]])
    batch = MasterTransitions(one_hot([0, 1]), jnp.zeros(2, jnp.int32), jnp.ones(2), jnp.ones(2), one_hot([1, 0]))
    with jax.numpy_rank_promotion("raise"):
        loss, value = squared_error(params, target, batch, "relu")
    assert loss.shape == value.shape == ()


# In 0, choice 0 leads to 1 for nothing and choice 1 ends with 0.5. In 1, choice 0 ends with 1 and choice 1 with 0.
TWO_STATES = MasterTransitions(
    observation=one_hot([0, 0, 1, 1]),
    choice=jnp.array([0, 1, 0, 1], jnp.int32),
    reward=jnp.array([0, 0.5, 1, 0], jnp.float32),
    discount=jnp.array([0.9, 0, 0, 0], jnp.float32),
    next_observation=one_hot([1, 0, 0, 0]),
)


def test_probe_two_states() -> None:
    settings = DqnSettings("tanh", 20)

    @jax.jit
    def train(state: DqnState) -> DqnState:
        def body(state: DqnState, _: None) -> tuple[DqnState, None]:
            return dqn.update(state, TWO_STATES, jnp.float32(1e-2), settings)[0], None

        return jax.lax.scan(body, state, length=400)[0]

    state = train(dqn.init(jax.random.key(0), 2, 2, 8))
    np.testing.assert_allclose(mlp(state.params, one_hot([0, 1]), "tanh"), [[0.9, 0.5], [1, 0]], atol=0.02)
