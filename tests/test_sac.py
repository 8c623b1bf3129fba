"""SAC: losses by hand and in NumPy, gradients kept apart, and probes whose answers are known."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lowgear import noise, sac
from lowgear.networks import CriticStyle, Layer, critic_values, sample_action
from lowgear.sac import Bounds, Policy, SacKnobs, SacParams, SacState, Transitions

OBS, ACT, BATCH = 3, 2, 6
RATE = jnp.float32(3e-4)
PLAIN = CriticStyle(jnp.array(False), jnp.array(False))
KNOBS = SacKnobs(
    critic_rate=RATE,
    actor_rate=RATE,
    alpha_rate=RATE,
    target_rate=jnp.float32(0.005),
    target_entropy=jnp.float32(-ACT),
    first_alpha=jnp.float32(1),
    first_values=jnp.float32(1),
    pessimism=jnp.float32(1),
    actor_every=jnp.int32(1),
    critic_style=PLAIN,
)


def at_rate(knobs: SacKnobs, rate: float) -> SacKnobs:
    return knobs._replace(critic_rate=jnp.float32(rate), actor_rate=jnp.float32(rate), alpha_rate=jnp.float32(rate))


@jax.jit
def update(state: SacState, batch: Transitions, chance: jax.Array, knobs: SacKnobs):
    return sac.update(state, batch, chance, knobs, "tanh")


def fresh_losses(params, target_critics, batch, chance, knobs, bounds=None):
    """The losses of a batch whose targets the gear itself has computed."""
    state = SacState(params, target_critics, (), (), jnp.int32(0), jnp.float32(1))
    target = sac.targets(state, batch, chance[0], knobs, "tanh", bounds)
    return sac.losses(params, batch, target, chance[1], knobs, "tanh")


losses = jax.jit(fresh_losses)


@jax.jit
def gradient(params, target_critics, batch, chance, knobs, bounds=None):
    state = SacState(params, target_critics, (), (), jnp.int32(0), jnp.float32(1))
    target = sac.targets(state, batch, chance[0], knobs, "tanh", bounds)
    return jax.grad(sac.losses, has_aux=True)(params, batch, target, chance[1], knobs, "tanh")


def random_problem(seed: int = 0, log_alpha: float = -0.7) -> tuple[SacState, Transitions, jax.Array]:
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> jax.Array:
        return jnp.asarray(rng.normal(size=shape), jnp.float32)

    state = sac.init(jax.random.key(seed), OBS, ACT, 5, 7)
    params, target = jax.tree.map(lambda x: x + 0.3 * normal(*x.shape), (state.params, state.target_critics))
    params = with_log_alpha(params, log_alpha)
    discount = jnp.array([0.9, 0, 0.9, 0.9, 0, 0.9], jnp.float32)
    batch = Transitions(normal(BATCH, OBS), jnp.tanh(normal(BATCH, ACT)), normal(BATCH), discount, normal(BATCH, OBS))
    return state._replace(params=params, target_critics=target), batch, normal(2, BATCH, ACT)


def with_log_alpha(params: SacParams, log_alpha: float) -> SacParams:
    return params._replace(policy=params.policy._replace(log_alpha=jnp.float32(log_alpha)))


class Reference:
    """The three losses in float64 NumPy, written from the paper and not from sac.py."""

    def __init__(self, state: SacState, batch: Transitions, chance: jax.Array) -> None:
        params, target, batch, chance = jax.tree.map(
            lambda x: np.asarray(x, np.float64), (state.params, state.target_critics, batch, chance)
        )
        alpha = math.exp(params.policy.log_alpha)
        next_action, next_log_density = self.sample(params.policy.actor, batch.next_observation, chance[0])
        soft = np.minimum(*self.values(target, batch.next_observation, next_action)) - alpha * next_log_density
        goal = batch.reward + batch.discount * soft
        value = self.values(params.critics, batch.observation, batch.action)
        self.critic = sum(0.5 * np.mean((v - goal) ** 2) for v in value)
        action, log_density = self.sample(params.policy.actor, batch.observation, chance[1])
        climbed = np.minimum(*self.values(params.critics, batch.observation, action))
        self.actor = np.mean(alpha * log_density - climbed)
        self.entropy = -np.mean(log_density)
        self.temperature = params.policy.log_alpha * (self.entropy + ACT)
        self.value = np.mean(value)

    @staticmethod
    def net(layers, x, activation):
        for weight, bias in layers[:-1]:
            x = activation(x @ weight + bias)
        return x @ layers[-1][0] + layers[-1][1]

    def sample(self, actor, observation, chance):
        mean, log_std = np.split(self.net(actor, observation, np.tanh), 2, axis=-1)
        std = np.exp(np.clip(log_std, -20, 2))
        action = np.tanh(mean + std * chance)
        density = np.exp(-0.5 * chance**2) / (std * np.sqrt(2 * np.pi)) / (1 - action**2)
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
        # Mean 0, log_std 0: with noise 0 the log density is -½ log 2π.
        Policy(constant(fresh.params.policy.actor, [0, 0]), jnp.log(jnp.float32(0.5))),
        constant(fresh.params.critics, [[2], [5]]),
    )
    target_critics = constant(fresh.params.critics, [[4], [3]])
    zeros = jnp.zeros((2, OBS))
    batch = Transitions(zeros, jnp.zeros((2, 1)), jnp.array([1.0, 1.0]), jnp.array([0.9, 0.0]), zeros)
    knobs = KNOBS._replace(target_entropy=jnp.float32(-1))
    loss, metrics = losses(params, target_critics, batch, jnp.zeros((2, 2, 1)), knobs)

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
        Policy(constant(fresh.params.policy.actor, [0, 0]), jnp.log(jnp.float32(0.5))),
        constant(fresh.params.critics, [[2], [5]]),
    )
    target_critics = constant(fresh.params.critics, [[4], [3]])
    zeros = jnp.zeros((4, OBS))
    # Targets of 1 + 0.9 · soft, -7 + 0.9 · soft, 1 and -7, where soft is 3 + ¼ log 2π, about 3.46.
    reward, discount = jnp.array([1.0, -7, 1, -7]), jnp.array([0.9, 0.9, 0, 0])
    batch = Transitions(zeros, jnp.zeros((4, 1)), reward, discount, zeros)
    knobs = KNOBS._replace(target_entropy=jnp.float32(-1))
    soft = 0.9 * (3 + 0.25 * math.log(2 * math.pi))
    for bounds, goals in (
        (None, [1 + soft, -7 + soft, 1, -7]),
        ((-5.0, 2.5), [2.5, -7 + soft, 1, -5]),
        ((-20.0, 0.0), [0, -7 + soft, 0, -7]),
        ((0.0, 50.0), [1 + soft, 0, 1, 0]),
    ):
        arguments = (params, target_critics, batch, jnp.zeros((2, 4, 1)), knobs, bounds and Bounds(*map(jnp.float32, bounds)))
        _, metrics = losses(*arguments)
        by_hand = sum(0.5 * np.mean((value - np.array(goals)) ** 2) for value in (2, 5))
        assert metrics["critic_loss"] == pytest.approx(by_hand, rel=1e-5)
        # A target that was cut off still teaches: the critics' gradient is that of the bound.
        (slope,) = gradient(*arguments)[0].critics[-1].bias[0]
        assert slope == pytest.approx(np.mean(2 - np.array(goals)), rel=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_losses_against_numpy(seed: int) -> None:
    state, batch, chance = random_problem(seed)
    loss, metrics = losses(state.params, state.target_critics, batch, chance, KNOBS)
    expected = Reference(state, batch, chance)
    assert metrics["critic_loss"] == pytest.approx(expected.critic, rel=1e-4)
    assert metrics["value"] == pytest.approx(expected.value, rel=1e-4)
    assert metrics["entropy"] == pytest.approx(expected.entropy, rel=1e-4)
    assert loss == pytest.approx(expected.critic + expected.actor + expected.temperature, rel=1e-4)


def test_what_follows_a_real_end_does_not_matter() -> None:
    state, batch, chance = random_problem()
    ended = np.asarray(batch.discount == 0)
    moved = batch._replace(next_observation=jnp.where(ended[:, None], 100.0, batch.next_observation))
    other = batch._replace(next_observation=jnp.where(ended[:, None], batch.next_observation, 100.0))
    loss, moved_loss, other_loss = (
        losses(state.params, state.target_critics, b, chance, KNOBS)[1]["critic_loss"] for b in (batch, moved, other)
    )
    assert loss == moved_loss
    assert loss != other_loss


def test_each_part_gets_the_gradient_of_its_own_loss_alone() -> None:
    state, batch, chance = random_problem()
    params = state.params
    found = gradient(params, state.target_critics, batch, chance, KNOBS)[0]
    alpha = jnp.exp(params.policy.log_alpha)
    style, activation = PLAIN, "tanh"
    next_action, next_log_density = sample_action(params.policy.actor, batch.next_observation, chance[0], activation)
    lesser = critic_values(state.target_critics, batch.next_observation, next_action, style).min(axis=0)
    goal = batch.reward + batch.discount * (lesser - alpha * next_log_density)

    def critic_loss(critics):
        one, two = critic_values(critics, batch.observation, batch.action, style)
        return 0.5 * ((one - goal) ** 2).mean() + 0.5 * ((two - goal) ** 2).mean()

    def actor_loss(actor):
        action, log_density = sample_action(actor, batch.observation, chance[1], activation)
        one, two = critic_values(params.critics, batch.observation, action, style)
        return (alpha * log_density - jnp.minimum(one, two)).mean()

    def temperature_loss(log_alpha):
        log_density = sample_action(params.policy.actor, batch.observation, chance[1], activation)[1]
        return -(log_alpha * (log_density - ACT)).mean()

    expected = SacParams(
        Policy(
            jax.jit(jax.grad(actor_loss))(params.policy.actor),
            jax.jit(jax.grad(temperature_loss))(params.policy.log_alpha),
        ),
        jax.jit(jax.grad(critic_loss))(params.critics),
    )
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5), found, expected)
    assert all(np.abs(leaf).max() > 1e-3 for leaf in jax.tree.leaves(expected))


def test_temperature_falls_while_entropy_is_above_its_target() -> None:
    state, batch, chance = random_problem()
    entropy = Reference(state, batch, chance).entropy
    for target, sign in ((entropy - 1, -1), (entropy + 1, 1)):
        new_state, _ = update(state, batch, chance, KNOBS._replace(target_entropy=jnp.float32(target)))
        assert float(new_state.params.policy.log_alpha - state.params.policy.log_alpha) == pytest.approx(sign * 3e-4, rel=1e-3)


def test_first_adam_step_has_the_size_of_the_learning_rate() -> None:
    state, batch, chance = random_problem()
    new_state, _ = update(state, batch, chance, KNOBS)
    grads = gradient(state.params, state.target_critics, batch, chance, KNOBS)[0]
    for new, old, grad in zip(*map(jax.tree.leaves, (new_state.params, state.params, grads)), strict=True):
        felt = np.abs(grad) > 1e-4  # Adam's ε shortens the step of smaller ones
        assert felt.any()
        step = np.asarray(new, np.float64) - np.asarray(old, np.float64)
        np.testing.assert_allclose(step[felt], -RATE * np.sign(grad)[felt], rtol=2e-3)


def test_three_updates_against_adam_in_numpy() -> None:
    state, batch, chance = random_problem()
    leaves, tree = jax.tree.flatten(state.params)
    values = [np.asarray(leaf, np.float64) for leaf in leaves]
    mean, square = [np.zeros_like(v) for v in values], [np.zeros_like(v) for v in values]
    target = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(state.target_critics)]
    for t in range(1, 4):
        grads = gradient(state.params, state.target_critics, batch, chance, KNOBS)[0]
        for i, grad in enumerate(np.asarray(g, np.float64) for g in jax.tree.leaves(grads)):
            mean[i] = 0.9 * mean[i] + 0.1 * grad
            square[i] = 0.999 * square[i] + 0.001 * grad**2
            values[i] = values[i] - RATE * (mean[i] / (1 - 0.9**t)) / (np.sqrt(square[i] / (1 - 0.999**t)) + 1e-8)
        critics = jax.tree.leaves(jax.tree.unflatten(tree, values).critics)
        target = [0.995 * old + 0.005 * new for old, new in zip(target, critics, strict=True)]
        state, _ = update(state, batch, chance, KNOBS)
    for found, expected in zip(jax.tree.leaves(state.params), values, strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-6)
    for found, expected in zip(jax.tree.leaves(state.target_critics), target, strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-6)


@pytest.mark.parametrize("tau", [0.0, 0.25, 1.0])
def test_target_critics_move_by_tau_towards_the_new_critics(tau: float) -> None:
    state, batch, chance = random_problem()
    new_state, _ = update(state, batch, chance, at_rate(KNOBS, 0.1)._replace(target_rate=jnp.float32(tau)))
    for new, old, critic in zip(
        *map(jax.tree.leaves, (new_state.target_critics, state.target_critics, new_state.params.critics)), strict=True
    ):
        np.testing.assert_allclose(new, (1 - tau) * old + tau * critic, atol=1e-6)


def test_fresh_targets_are_the_critics() -> None:
    state = sac.init(jax.random.key(0), OBS, ACT, 5, 7)
    jax.tree.map(np.testing.assert_array_equal, state.params.critics, state.target_critics)
    assert state.params.policy.log_alpha == 0


@pytest.mark.parametrize("normalise", [False, True])
def test_losses_promote_no_dtype(normalise: bool) -> None:
    state, batch, chance = random_problem()
    knobs = KNOBS._replace(critic_style=CriticStyle(jnp.array(True), jnp.array(normalise)))
    with jax.numpy_dtype_promotion("strict"):  # Adam is optax's, which promotes its own counter
        grads, metrics = gradient(state.params, state.target_critics, batch, chance, knobs)
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves((grads, metrics)))
    assert all(metric.shape == () for metric in metrics.values())


def test_losses_promote_no_rank() -> None:
    state, batch, chance = random_problem()
    with jax.numpy_rank_promotion("raise"):
        fresh_losses(state.params, state.target_critics, batch, chance, KNOBS)


@partial(jax.jit, static_argnames="updates")
def train(state: SacState, data: Transitions, knobs: SacKnobs, updates: int) -> SacState:
    """Updates on batches drawn from `data`."""
    size, seed = 64, jnp.uint32(1)

    def body(state: SacState, now: jax.Array) -> tuple[SacState, None]:
        rows = (noise.uniform(seed, 0, now, size) * data.reward.shape[0]).astype(jnp.int32)
        chance = noise.normal(seed, 1, now, 2 * size).reshape(2, size, 1)
        return sac.update(state, jax.tree.map(lambda x: x[rows], data), chance, knobs, "tanh")[0], None

    return jax.lax.scan(body, state, jnp.arange(updates))[0]


def test_probe_one_step_bandit() -> None:
    action = np.random.default_rng(0).uniform(-1, 1, (512, 1)).astype(np.float32)
    zeros = jnp.zeros((512, 1))
    reward = jnp.asarray(-((action[:, 0] - 0.5) ** 2))
    data = Transitions(zeros, jnp.asarray(action), reward, jnp.zeros(512), zeros)
    knobs = at_rate(KNOBS, 5e-3)._replace(target_entropy=jnp.float32(-3), target_rate=jnp.float32(0.05))
    state = train(sac.init(jax.random.key(0), 1, 1, 8, 32), data, knobs, 800)
    best, _ = sample_action(state.params.policy.actor, jnp.zeros((1, 1)), jnp.zeros((1, 1)), "tanh")
    assert best[0, 0] == pytest.approx(0.5, abs=0.1)
    tried = jnp.array([[-0.5], [0.0], [0.5], [0.9]])
    values = critic_values(state.params.critics, jnp.zeros((4, 1)), tried, PLAIN)
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
    cold = fresh._replace(params=with_log_alpha(fresh.params, -20))  # entropy is worth nothing
    knobs = at_rate(KNOBS, 5e-3)._replace(target_rate=jnp.float32(0.05))
    state = train(cold, data, knobs, 800)
    seen = jnp.array([[0.0], [0.0], [1.0], [1.0]])
    values = critic_values(state.params.critics, seen, jnp.array([[-0.5], [0.5]] * 2), PLAIN)
    np.testing.assert_allclose(values, np.tile([0.5, 0.5, 1, 1], (2, 1)), atol=0.05)


def test_pessimism_runs_from_the_mean_to_the_minimum() -> None:
    values = jnp.array([[1.0, 4.0], [3.0, -2.0]])
    np.testing.assert_allclose(sac.agreed(values, jnp.float32(0)), [2, 1])
    np.testing.assert_allclose(sac.agreed(values, jnp.float32(0.5)), [1.5, -0.5])
    np.testing.assert_allclose(sac.agreed(values, jnp.float32(1)), [1, -2])


def test_actor_and_temperature_step_every_kth_update_alone() -> None:
    state, batch, chance = random_problem()
    knobs = KNOBS._replace(actor_every=jnp.int32(3))
    moved = []
    for _ in range(7):
        new, _ = update(state, batch, chance, knobs)
        same = jax.tree.map(np.array_equal, (new.params.policy, new.policy_adam), (state.params.policy, state.policy_adam))
        assert len(set(jax.tree.leaves(same))) == 1
        assert not np.array_equal(new.params.critics[0].weight, state.params.critics[0].weight)
        moved.append(not jax.tree.leaves(same)[0])
        state = new
    assert moved == [True, False, False, True, False, False, True]


def test_each_part_has_its_own_rate() -> None:
    state, batch, chance = random_problem()
    knobs = KNOBS._replace(critic_rate=jnp.float32(1e-3), actor_rate=jnp.float32(1e-4), alpha_rate=jnp.float32(0.0))
    new, _ = update(state, batch, chance, knobs)
    far = jax.tree.map(lambda n, o: float(np.abs(n - o).max()), new.params, state.params)
    assert max(jax.tree.leaves(far.critics)) == pytest.approx(1e-3, rel=1e-2)
    assert max(jax.tree.leaves(far.policy.actor)) == pytest.approx(1e-4, rel=1e-2)
    assert far.policy.log_alpha == 0


def test_critics_mean_the_same_on_another_scale_of_rewards() -> None:
    state, batch, _ = random_problem()
    for updates, keep, ratio in ((1, True, 0.25), (1, False, 1.0), (0, True, 1.0)):
        started = state._replace(updates=jnp.int32(updates), reward_scale=jnp.float32(2))
        moved = sac.rescale(started, jnp.float32(8), jnp.array(keep))
        assert moved.reward_scale == 8
        for old, new in ((state.params.critics, moved.params.critics), (state.target_critics, moved.target_critics)):
            before, after = (critic_values(c, batch.observation, batch.action, PLAIN) for c in (old, new))
            np.testing.assert_allclose(after, ratio * before, rtol=1e-5)


def test_fresh_critics_say_as_little_as_told() -> None:
    _, batch, _ = random_problem()
    loud, quiet = (sac.init(jax.random.key(0), OBS, ACT, 5, 7, first_values=v).params.critics for v in (1.0, 0.01))
    values = [critic_values(c, batch.observation, batch.action, PLAIN) for c in (loud, quiet)]
    np.testing.assert_allclose(values[1], 0.01 * values[0], rtol=1e-5)
