"""SAC: losses by hand and in NumPy, gradients kept apart, and probes whose answers are known."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowgear.learning import rng, sac
from lowgear.learning.learners import AgentParameters
from lowgear.learning.networks import CriticStyle, Layer, critic_values, sample_action
from lowgear.learning.sac import Sac, SacParams, SacSettings, SacState
from lowgear.learning.transitions import Transitions

OBS, ACT, BATCH = 3, 2, 6
SETTINGS = SacSettings("tanh", CriticStyle("relu", False), 0.005, -float(ACT))
RATE = jnp.float32(3e-4)


update = jax.jit(sac.update, static_argnames="settings")


def batch_losses(params, target_critics, batch, noise, settings):
    """The losses of a batch, its targets computed by the same networks."""
    target = sac.targets(SacState(params, target_critics, ()), batch, noise[0], settings)
    return sac.losses(params, batch, target, noise[1], settings)


def batch_gradient(params, target_critics, batch, noise, settings):
    target = sac.targets(SacState(params, target_critics, ()), batch, noise[0], settings)
    return jax.grad(sac.losses, has_aux=True)(params, batch, target, noise[1], settings)


losses = jax.jit(batch_losses, static_argnames="settings")
gradient = jax.jit(batch_gradient, static_argnames="settings")


def random_problem(seed: int = 0, log_alpha: float = -0.7) -> tuple[SacState, Transitions, jax.Array]:
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> jax.Array:
        return jnp.asarray(rng.normal(size=shape), jnp.float32)

    state = sac.init(jax.random.key(seed), OBS, ACT, 5, 7)
    params, target = jax.tree.map(lambda x: x + 0.3 * normal(*x.shape), (state.params, state.target_critics))
    params = params._replace(log_alpha=jnp.float32(log_alpha))
    discount = jnp.array([0.9, 0, 0.9, 0.9, 0, 0.9], jnp.float32)
    batch = Transitions(normal(BATCH, OBS), jnp.tanh(normal(BATCH, ACT)), normal(BATCH), discount, normal(BATCH, OBS))
    return state._replace(params=params, target_critics=target), batch, normal(2, BATCH, ACT)


class Reference:
    """The three losses in float64 NumPy, written from the paper and not from sac.py."""

    def __init__(self, state: SacState, batch: Transitions, noise: jax.Array) -> None:
        params, target, batch, noise = jax.tree.map(
            lambda x: np.asarray(x, np.float64), (state.params, state.target_critics, batch, noise)
        )
        alpha = math.exp(params.log_alpha)
        next_action, next_log_density = self.sample(params.actor, batch.next_observation, noise[0])
        soft = np.minimum(*self.values(target, batch.next_observation, next_action)) - alpha * next_log_density
        self.target = goal = batch.reward + batch.discount * soft
        value = self.values(params.critics, batch.observation, batch.action)
        self.critic = sum(0.5 * np.mean((v - goal) ** 2) for v in value)
        action, log_density = self.sample(params.actor, batch.observation, noise[1])
        climbed = np.minimum(*self.values(params.critics, batch.observation, action))
        self.actor = np.mean(alpha * log_density - climbed)
        self.entropy = -np.mean(log_density)
        self.temperature = params.log_alpha * (self.entropy - SETTINGS.target_entropy)
        self.value = np.mean(value)

    @staticmethod
    def net(layers, x, activation):
        for weight, bias in layers[:-1]:
            x = activation(x @ weight + bias)
        return x @ layers[-1][0] + layers[-1][1]

    def sample(self, actor, observation, noise):
        mean, log_std = np.split(self.net(actor, observation, np.tanh), 2, axis=-1)
        std = np.exp(np.clip(log_std, -20, 2))
        action = np.tanh(mean + std * noise)
        density = np.exp(-0.5 * noise**2) / (std * np.sqrt(2 * np.pi)) / (1 - action**2)
        return action, np.log(density).sum(axis=-1)

    def values(self, critics, observation, action):
        joined = np.concatenate([observation, action], axis=-1)
        return [
            self.net([(w[i], b[i]) for w, b in critics], joined, lambda x: np.maximum(x, 0))[:, 0] for i in range(2)
        ]


def constant(layers, last_bias) -> tuple[Layer, ...]:
    """The same shapes, all zero but the last layer's bias: a network that says the same whatever it sees."""
    zero = jax.tree.map(jnp.zeros_like, layers)
    return (*zero[:-1], Layer(zero[-1].weight, jnp.asarray(last_bias, jnp.float32)))


def test_losses_by_hand() -> None:
    fresh = sac.init(jax.random.key(0), OBS, 1, 4, 4)
    params = SacParams(
        constant(fresh.params.actor, [0, 0]),  # mean 0, log_std 0: with noise 0 the log density is -½ log 2π
        constant(fresh.params.critics, [[2], [5]]),
        jnp.log(jnp.float32(0.5)),
    )
    target_critics = constant(fresh.params.critics, [[4], [3]])
    zeros = jnp.zeros((2, OBS))
    batch = Transitions(zeros, jnp.zeros((2, 1)), jnp.array([1.0, 1.0]), jnp.array([0.9, 0.0]), zeros)
    settings = SETTINGS._replace(target_entropy=-1.0)
    loss, metrics = losses(params, target_critics, batch, jnp.zeros((2, 2, 1)), settings)

    half_log = 0.5 * math.log(2 * math.pi)  # the entropy's estimate too
    goals = [1 + 0.9 * (3 + 0.5 * half_log), 1.0]  # the lesser target critic; nothing after a real end
    critic = (
        0.5 * ((2 - goals[0]) ** 2 + (2 - goals[1]) ** 2) / 2 + 0.5 * ((5 - goals[0]) ** 2 + (5 - goals[1]) ** 2) / 2
    )
    actor = 0.5 * -half_log - 2  # the lesser critic
    temperature = math.log(0.5) * (half_log + 1)
    assert metrics["critic_loss"] == pytest.approx(critic, rel=1e-5)
    assert metrics["value"] == pytest.approx(3.5)
    assert metrics["entropy"] == pytest.approx(half_log, rel=1e-5)
    assert metrics["alpha"] == pytest.approx(0.5)
    assert loss == pytest.approx(critic + actor + temperature, rel=1e-5)


def test_targets_stay_within_their_bounds_by_hand() -> None:
    fresh = sac.init(jax.random.key(0), OBS, 1, 4, 4)
    params = SacParams(
        constant(fresh.params.actor, [0, 0]), constant(fresh.params.critics, [[2], [5]]), jnp.log(jnp.float32(0.5))
    )
    target_critics = constant(fresh.params.critics, [[4], [3]])
    zeros = jnp.zeros((4, OBS))
    # Targets of 1 + 0.9 · soft, -7 + 0.9 · soft, 1 and -7, where soft is 3 + ¼ log 2π, about 3.46.
    reward, discount = jnp.array([1.0, -7, 1, -7]), jnp.array([0.9, 0.9, 0, 0])
    batch = Transitions(zeros, jnp.zeros((4, 1)), reward, discount, zeros)
    settings = SETTINGS._replace(target_entropy=-1.0)
    soft = 0.9 * (3 + 0.25 * math.log(2 * math.pi))
    for bounds, goals in (
        (None, [1 + soft, -7 + soft, 1, -7]),
        ((-5.0, 2.5), [2.5, -7 + soft, 1, -5]),
        ((-20.0, 0.0), [0, -7 + soft, 0, -7]),
        ((0.0, 50.0), [1 + soft, 0, 1, 0]),
    ):
        arguments = (params, target_critics, batch, jnp.zeros((2, 4, 1)), settings._replace(value_bounds=bounds))
        grads, metrics = gradient(*arguments)
        by_hand = sum(0.5 * np.mean((value - np.array(goals)) ** 2) for value in (2, 5))
        assert metrics["critic_loss"] == pytest.approx(by_hand, rel=1e-5)
        # A target that was cut off still teaches: the critics' gradient is that of the bound.
        (slope,) = grads.critics[-1].bias[0]
        assert slope == pytest.approx(np.mean(2 - np.array(goals)), rel=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_losses_against_numpy(seed: int) -> None:
    state, batch, noise = random_problem(seed)
    loss, metrics = losses(state.params, state.target_critics, batch, noise, SETTINGS)
    expected = Reference(state, batch, noise)
    assert metrics["critic_loss"] == pytest.approx(expected.critic, rel=1e-4)
    assert metrics["value"] == pytest.approx(expected.value, rel=1e-4)
    assert metrics["entropy"] == pytest.approx(expected.entropy, rel=1e-4)
    assert loss == pytest.approx(expected.critic + expected.actor + expected.temperature, rel=1e-4)


def test_what_follows_a_real_end_does_not_matter() -> None:
    state, batch, noise = random_problem()
    ended = np.asarray(batch.discount == 0)
    moved = batch._replace(next_observation=jnp.where(ended[:, None], 100.0, batch.next_observation))
    other = batch._replace(next_observation=jnp.where(ended[:, None], batch.next_observation, 100.0))
    loss, moved_loss, other_loss = (
        losses(state.params, state.target_critics, b, noise, SETTINGS)[1]["critic_loss"] for b in (batch, moved, other)
    )
    assert loss == moved_loss
    assert loss != other_loss


def test_each_part_gets_the_gradient_of_its_own_loss_alone() -> None:
    state, batch, noise = random_problem()
    params = state.params
    found = gradient(params, state.target_critics, batch, noise, SETTINGS)[0]
    alpha = jnp.exp(params.log_alpha)
    style, activation = SETTINGS.critic_style, SETTINGS.actor_activation
    next_action, next_log_density = sample_action(params.actor, batch.next_observation, noise[0], activation)
    lesser = critic_values(state.target_critics, batch.next_observation, next_action, style).min(axis=0)
    goal = batch.reward + batch.discount * (lesser - alpha * next_log_density)

    def critic_loss(critics):
        one, two = critic_values(critics, batch.observation, batch.action, style)
        return 0.5 * ((one - goal) ** 2).mean() + 0.5 * ((two - goal) ** 2).mean()

    def actor_loss(actor):
        action, log_density = sample_action(actor, batch.observation, noise[1], activation)
        one, two = critic_values(params.critics, batch.observation, action, style)
        return (alpha * log_density - jnp.minimum(one, two)).mean()

    def temperature_loss(log_alpha):
        log_density = sample_action(params.actor, batch.observation, noise[1], activation)[1]
        return -(log_alpha * (log_density + SETTINGS.target_entropy)).mean()

    expected = SacParams(
        jax.jit(jax.grad(actor_loss))(params.actor),
        jax.jit(jax.grad(critic_loss))(params.critics),
        jax.jit(jax.grad(temperature_loss))(params.log_alpha),
    )
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5), found, expected)
    assert all(np.abs(leaf).max() > 1e-3 for leaf in jax.tree.leaves(expected))


def test_temperature_falls_while_entropy_is_above_its_target() -> None:
    state, batch, noise = random_problem()
    entropy = Reference(state, batch, noise).entropy
    for target, sign in ((entropy - 1, -1), (entropy + 1, 1)):
        new_state, _ = update(state, batch, noise, RATE, SETTINGS._replace(target_entropy=float(target)))
        assert float(new_state.params.log_alpha - state.params.log_alpha) == pytest.approx(sign * 3e-4, rel=1e-3)


def test_first_adam_step_has_the_size_of_the_learning_rate() -> None:
    state, batch, noise = random_problem()
    new_state, _ = update(state, batch, noise, RATE, SETTINGS)
    grads = gradient(state.params, state.target_critics, batch, noise, SETTINGS)[0]
    for new, old, grad in zip(*map(jax.tree.leaves, (new_state.params, state.params, grads)), strict=True):
        felt = np.abs(grad) > 1e-4  # Adam's ε shortens the step of smaller ones
        assert felt.any()
        step = np.asarray(new, np.float64) - np.asarray(old, np.float64)
        np.testing.assert_allclose(step[felt], -RATE * np.sign(grad)[felt], rtol=2e-3)


def test_three_updates_against_adam_in_numpy() -> None:
    state, batch, noise = random_problem()
    leaves, tree = jax.tree.flatten(state.params)
    values = [np.asarray(leaf, np.float64) for leaf in leaves]
    mean, square = [np.zeros_like(v) for v in values], [np.zeros_like(v) for v in values]
    target = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(state.target_critics)]
    for t in range(1, 4):
        grads = gradient(state.params, state.target_critics, batch, noise, SETTINGS)[0]
        for i, grad in enumerate(np.asarray(g, np.float64) for g in jax.tree.leaves(grads)):
            mean[i] = 0.9 * mean[i] + 0.1 * grad
            square[i] = 0.999 * square[i] + 0.001 * grad**2
            values[i] = values[i] - RATE * (mean[i] / (1 - 0.9**t)) / (np.sqrt(square[i] / (1 - 0.999**t)) + 1e-8)
        critics = jax.tree.leaves(jax.tree.unflatten(tree, values).critics)
        target = [0.995 * old + 0.005 * new for old, new in zip(target, critics, strict=True)]
        state, _ = update(state, batch, noise, RATE, SETTINGS)
    for found, expected in zip(jax.tree.leaves(state.params), values, strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-6)
    for found, expected in zip(jax.tree.leaves(state.target_critics), target, strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-6)


@pytest.mark.parametrize("tau", [0.0, 0.25, 1.0])
def test_target_critics_move_by_tau_towards_the_new_critics(tau: float) -> None:
    state, batch, noise = random_problem()
    new_state, _ = update(state, batch, noise, jnp.float32(0.1), SETTINGS._replace(target_rate=tau))
    for new, old, critic in zip(
        *map(jax.tree.leaves, (new_state.target_critics, state.target_critics, new_state.params.critics)), strict=True
    ):
        np.testing.assert_allclose(new, (1 - tau) * old + tau * critic, atol=1e-6)


def test_each_update_values_its_batch_with_the_networks_as_they_stand() -> None:
    """Three updates on one batch: the critics' loss of each is that of targets which the state before it gives."""
    state, batch, noise = random_problem()
    lost = []
    for _ in range(3):
        expected = Reference(state, batch, noise)
        state, metrics = update(state, batch, noise, jnp.float32(0.05), SETTINGS)
        assert metrics["critic_loss"] == pytest.approx(expected.critic, rel=1e-4)
        lost.append(expected.target)
    assert np.abs(lost[1] - lost[0]).max() > 0.01
    assert np.abs(lost[2] - lost[1]).max() > 0.01


def test_the_learner_is_these_functions_for_one_gear() -> None:
    state, batch, noise = random_problem()
    learner = Sac(gear=1, obs_dim=OBS, act_dim=ACT, units=5, critic_units=7, batch=BATCH, settings=SETTINGS)
    assert (learner.gears, learner.noise_dim) == ((1,), 2 * ACT)
    agent = AgentParameters(*[None] * 8)._replace(learning_rate=RATE)
    found, metrics = jax.jit(learner.update)(state, batch, noise.reshape(-1), agent)
    expected, wanted = update(state, batch, noise, RATE, SETTINGS)
    jax.tree.map(np.testing.assert_allclose, (found, metrics), (expected, wanted))
    assert learner.actors(found) == (found.params.actor,)
    fresh, by_function = learner.init(jax.random.key(3)), sac.init(jax.random.key(3), OBS, ACT, 5, 7)
    jax.tree.map(np.testing.assert_array_equal, fresh, by_function)


def test_flops_are_those_of_the_products_of_an_update() -> None:
    learner = Sac(gear=0, obs_dim=OBS, act_dim=ACT, units=5, critic_units=7, batch=BATCH, settings=SETTINGS)
    actor, critic = [OBS * 5, 5 * 5, 5 * 2 * ACT], [(OBS + ACT) * 7, 7 * 7, 7]
    # Targets: one pass of the actor, one of each critic. Fit: a pass of each, and gradients of all its weights and
    # hidden inputs. Climb: a pass of both, their gradients of inputs alone, the actor's of weights and hidden inputs.
    targets = sum(actor) + 2 * sum(critic)
    fit = 2 * (2 * sum(critic) + sum(critic[1:]))
    climb = 2 * (sum(critic) + sum(critic[1:]) + ACT * 7) + 2 * sum(actor) + sum(actor[1:])
    assert learner.flops() == 2 * BATCH * (targets + fit + climb)


def test_fresh_targets_are_the_critics() -> None:
    state = sac.init(jax.random.key(0), OBS, ACT, 5, 7)
    jax.tree.map(np.testing.assert_array_equal, state.params.critics, state.target_critics)
    assert state.params.log_alpha == 0


@pytest.mark.parametrize("normalise", [False, True])
def test_losses_promote_no_dtype(normalise: bool) -> None:
    state, batch, noise = random_problem()
    settings = SETTINGS._replace(critic_style=CriticStyle("tanh", normalise))
    with jax.numpy_dtype_promotion("strict"):  # Adam is optax's, which promotes its own counter
        grads, metrics = gradient(state.params, state.target_critics, batch, noise, settings)
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves((grads, metrics)))
    assert all(metric.shape == () for metric in metrics.values())


def test_losses_promote_no_rank() -> None:
    state, batch, noise = random_problem()
    with jax.numpy_rank_promotion("raise"):
        jax.eval_shape(partial(batch_losses, settings=SETTINGS), state.params, state.target_critics, batch, noise)


@partial(jax.jit, static_argnames=("settings", "updates"))
def train(state: SacState, data: Transitions, settings: SacSettings, rate: jax.Array, updates: int) -> SacState:
    """Updates on batches drawn from `data`."""
    size, seed = 64, jnp.uint32(1)

    def body(state: SacState, now: jax.Array) -> tuple[SacState, None]:
        rows = (rng.uniform(seed, 0, now, size) * data.reward.shape[0]).astype(jnp.int32)
        noise = rng.normal(seed, 1, now, 2 * size).reshape(2, size, 1)
        return sac.update(state, jax.tree.map(lambda x: x[rows], data), noise, rate, settings)[0], None

    return jax.lax.scan(body, state, jnp.arange(updates))[0]


def test_probe_one_step_bandit() -> None:
    action = np.random.default_rng(0).uniform(-1, 1, (512, 1)).astype(np.float32)
    zeros = jnp.zeros((512, 1))
    reward = jnp.asarray(-((action[:, 0] - 0.5) ** 2))
    data = Transitions(zeros, jnp.asarray(action), reward, jnp.zeros(512), zeros)
    settings = SETTINGS._replace(target_entropy=-3.0, target_rate=0.05)
    state = train(sac.init(jax.random.key(0), 1, 1, 8, 32), data, settings, jnp.float32(5e-3), 800)
    best, _ = sample_action(state.params.actor, jnp.zeros((1, 1)), jnp.zeros((1, 1)), "tanh")
    assert best[0, 0] == pytest.approx(0.5, abs=0.1)
    tried = jnp.array([[-0.5], [0.0], [0.5], [0.9]])
    values = critic_values(state.params.critics, jnp.zeros((4, 1)), tried, settings.critic_style)
    np.testing.assert_allclose(values, np.tile([-1, -0.25, 0, -0.16], (2, 1)), atol=0.06)


def test_probe_two_steps_bootstraps_with_the_discount() -> None:
    # From 0 every action leads to 1 for nothing; from 1 every action earns 1 and ends.
    rng = np.random.default_rng(0)
    at = jnp.asarray(rng.integers(0, 2, (512, 1)), jnp.float32)
    data = Transitions(
        observation=at,
        action=jnp.asarray(rng.uniform(-1, 1, (512, 1)), jnp.float32),
        reward=at[:, 0],
        discount=0.5 * (1 - at[:, 0]),
        next_observation=1 - at,
    )
    fresh = sac.init(jax.random.key(0), 1, 1, 8, 32)
    cold = fresh._replace(params=fresh.params._replace(log_alpha=jnp.float32(-20)))  # entropy is worth nothing
    settings = SETTINGS._replace(target_rate=0.05)
    state = train(cold, data, settings, jnp.float32(5e-3), 800)
    seen = jnp.array([[0.0], [0.0], [1.0], [1.0]])
    values = critic_values(state.params.critics, seen, jnp.array([[-0.5], [0.5]] * 2), settings.critic_style)
    np.testing.assert_allclose(values, np.tile([0.5, 0.5, 1, 1], (2, 1)), atol=0.05)
