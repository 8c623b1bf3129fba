"""SAC: losses by hand and in NumPy, gradients kept apart, and probes whose answers are known."""

import math
from dataclasses import replace
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
SETTINGS = SacSettings("tanh", CriticStyle("relu", False))
RATE = 3e-4


def parameters(**changes: float) -> AgentParameters:
    """What the gears' learner goes by, as the paper has it but for the changes."""
    known = {"learning_rate": RATE, "actor_learning_rate": RATE, "target_rate": 0.005, "target_entropy": -ACT}
    values = known | {"pessimism": 1, "reward_scale": 1} | changes
    nothing = AgentParameters(*[None] * len(AgentParameters._fields))
    return nothing._replace(**{name: jnp.float32(value) for name, value in values.items()})


AGENT = parameters()
update = jax.jit(sac.update, static_argnames=("settings", "with_policy"))


def batch_losses(state, batch, noise, agent, settings):
    """The losses of a batch, its targets computed by the same networks."""
    actor, critics, log_alpha = state.params
    target = sac.targets(state, batch, noise[0], agent, settings)
    critic_loss, metrics = sac.critic_loss(critics, batch, target, settings)
    policy = (actor, log_alpha), critics, batch.observation, noise[1]
    policy_loss, others = sac.policy_loss(*policy, agent, settings)
    return critic_loss + policy_loss, metrics | others


def batch_gradient(state, batch, noise, agent, settings):
    """Of each part, by the loss that it steps on."""
    actor, critics, log_alpha = state.params
    target = sac.targets(state, batch, noise[0], agent, settings)
    of_critics, metrics = jax.grad(sac.critic_loss, has_aux=True)(critics, batch, target, settings)
    policy = (actor, log_alpha), critics, batch.observation, noise[1]
    (of_actor, of_alpha), others = jax.grad(sac.policy_loss, has_aux=True)(*policy, agent, settings)
    return SacParams(of_actor, of_critics, of_alpha), metrics | others


losses = jax.jit(batch_losses, static_argnames="settings")
gradient = jax.jit(batch_gradient, static_argnames="settings")


def random_problem(seed: int = 0, log_alpha: float = -0.7) -> tuple[SacState, Transitions, jax.Array]:
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> jax.Array:
        return jnp.asarray(rng.normal(size=shape), jnp.float32)

    state = sac.init(jax.random.key(seed), OBS, ACT, 5, 7, SETTINGS)
    params, target = jax.tree.map(lambda x: x + 0.3 * normal(*x.shape), (state.params, state.target_critics))
    params = params._replace(log_alpha=jnp.float32(log_alpha))
    discount = jnp.array([0.9, 0, 0.9, 0.9, 0, 0.9], jnp.float32)
    batch = Transitions(normal(BATCH, OBS), jnp.tanh(normal(BATCH, ACT)), normal(BATCH), discount, normal(BATCH, OBS))
    return state._replace(params=params, target_critics=target), batch, normal(2, BATCH, ACT)


class Reference:
    """The three losses in float64 NumPy, written from the paper and not from sac.py."""

    def __init__(self, state: SacState, batch: Transitions, noise: jax.Array, twins=np.minimum) -> None:
        params, target, batch, noise = jax.tree.map(
            lambda x: np.asarray(x, np.float64), (state.params, state.target_critics, batch, noise)
        )
        alpha = math.exp(params.log_alpha)
        next_action, next_log_density = self.sample(params.actor, batch.next_observation, noise[0])
        soft = twins(*self.values(target, batch.next_observation, next_action)) - alpha * next_log_density
        self.target = goal = batch.reward + batch.discount * soft
        value = self.values(params.critics, batch.observation, batch.action)
        self.critic = sum(0.5 * np.mean((v - goal) ** 2) for v in value)
        action, log_density = self.sample(params.actor, batch.observation, noise[1])
        climbed = twins(*self.values(params.critics, batch.observation, action))
        self.actor = np.mean(alpha * log_density - climbed)
        self.entropy = -np.mean(log_density)
        self.temperature = params.log_alpha * (self.entropy + ACT)
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


def state_by_hand() -> SacState:
    """Of an action of one number: critics that say 2 and 5, targets that say 4 and 3, a temperature of ½."""
    fresh = sac.init(jax.random.key(0), OBS, 1, 4, 4, SETTINGS)
    params = SacParams(
        constant(fresh.params.actor, [0, 0]),  # mean 0, log_std 0: with noise 0 the log density is -½ log 2π
        constant(fresh.params.critics, [[2], [5]]),
        jnp.log(jnp.float32(0.5)),
    )
    return fresh._replace(params=params, target_critics=constant(fresh.params.critics, [[4], [3]]))


@pytest.mark.parametrize(("pessimism", "target", "climbed"), [(1, 3, 2), (0, 3.5, 3.5)], ids=["minimum", "mean"])
def test_losses_by_hand(pessimism: float, target: float, climbed: float) -> None:
    zeros = jnp.zeros((2, OBS))
    batch = Transitions(zeros, jnp.zeros((2, 1)), jnp.array([1.0, 1.0]), jnp.array([0.9, 0.0]), zeros)
    agent = parameters(target_entropy=-1, pessimism=pessimism)
    loss, metrics = losses(state_by_hand(), batch, jnp.zeros((2, 2, 1)), agent, SETTINGS)

    half_log = 0.5 * math.log(2 * math.pi)  # the entropy's estimate too
    goals = [1 + 0.9 * (target + 0.5 * half_log), 1.0]  # of the twin targets; nothing after a real end
    critic = (
        0.5 * ((2 - goals[0]) ** 2 + (2 - goals[1]) ** 2) / 2 + 0.5 * ((5 - goals[0]) ** 2 + (5 - goals[1]) ** 2) / 2
    )
    actor = 0.5 * -half_log - climbed
    temperature = math.log(0.5) * (half_log + 1)
    assert metrics["critic_loss"] == pytest.approx(critic, rel=1e-5)
    assert metrics["value"] == pytest.approx(3.5)
    assert metrics["entropy"] == pytest.approx(half_log, rel=1e-5)
    assert metrics["alpha"] == pytest.approx(0.5)
    assert loss == pytest.approx(critic + actor + temperature, rel=1e-5)


@pytest.mark.parametrize("scale", [1.0, 0.5, 4.0])
def test_targets_stay_within_their_bounds_by_hand(scale: float) -> None:
    """Bounds are in the task's rewards, targets in rewards that were divided by their scale."""
    zeros = jnp.zeros((4, OBS))
    # Targets of 1 + 0.9 · soft, -7 + 0.9 · soft, 1 and -7, where soft is 3 + ¼ log 2π, about 3.46.
    reward, discount = jnp.array([1.0, -7, 1, -7]), jnp.array([0.9, 0.9, 0, 0])
    batch = Transitions(zeros, jnp.zeros((4, 1)), reward, discount, zeros)
    agent = parameters(target_entropy=-1, reward_scale=scale)
    soft = 0.9 * (3 + 0.25 * math.log(2 * math.pi))
    for bounds, goals in (
        (None, [1 + soft, -7 + soft, 1, -7]),
        ((-5.0, 2.5), [2.5, -7 + soft, 1, -5]),
        ((-20.0, 0.0), [0, -7 + soft, 0, -7]),
        ((0.0, 50.0), [1 + soft, 0, 1, 0]),
    ):
        in_rewards = None if bounds is None else (bounds[0] * scale, bounds[1] * scale)
        settings = SETTINGS._replace(value_bounds=in_rewards)
        grads, metrics = gradient(state_by_hand(), batch, jnp.zeros((2, 4, 1)), agent, settings)
        by_hand = sum(0.5 * np.mean((value - np.array(goals)) ** 2) for value in (2, 5))
        assert metrics["critic_loss"] == pytest.approx(by_hand, rel=1e-5)
        # A target that was cut off still teaches: the critics' gradient is that of the bound.
        (slope,) = grads.critics[-1].bias[0]
        assert slope == pytest.approx(np.mean(2 - np.array(goals)), rel=1e-4)


@pytest.mark.parametrize("scale", [1.0, 40.0])
def test_targets_are_kept_within_the_largest_value_by_hand(scale: float) -> None:
    """Which is on the scale of the rewards, whatever that is."""
    zeros, noise = jnp.zeros((4, OBS)), jnp.zeros((4, 1))
    batch = Transitions(zeros, noise, jnp.array([1.0, -7, 1, -7]), jnp.array([0.9, 0.9, 0, 0]), zeros)
    agent = parameters(target_entropy=-1, reward_scale=scale)
    soft = 0.9 * (3 + 0.25 * math.log(2 * math.pi))
    targets = partial(jax.jit(sac.targets, static_argnames="settings"), state_by_hand(), batch, noise, agent)
    np.testing.assert_allclose(targets(SETTINGS), [1 + soft, -7 + soft, 1, -7], rtol=1e-5)
    held = SETTINGS._replace(largest_value=3.0)
    np.testing.assert_allclose(targets(held), [3, -3, 1, -3], rtol=1e-5)
    # Bounds that follow from the rewards hold as well.
    np.testing.assert_allclose(targets(held._replace(value_bounds=(-50 * scale, 0.0))), [0, -3, 0, -3], atol=1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("lenient", [False, True])
def test_losses_against_numpy(seed: int, lenient: bool) -> None:
    state, batch, noise = random_problem(seed)
    loss, metrics = losses(state, batch, noise, parameters(pessimism=0 if lenient else 1), SETTINGS)
    expected = Reference(state, batch, noise, (lambda one, two: (one + two) / 2) if lenient else np.minimum)
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
        losses(state, b, noise, AGENT, SETTINGS)[1]["critic_loss"] for b in (batch, moved, other)
    )
    assert loss == moved_loss
    assert loss != other_loss


def test_each_part_gets_the_gradient_of_its_own_loss_alone() -> None:
    state, batch, noise = random_problem()
    params = state.params
    found = gradient(state, batch, noise, AGENT, SETTINGS)[0]
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
        return -(log_alpha * (log_density - ACT)).mean()

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
        new_state, _ = update(state, batch, noise, parameters(target_entropy=target), SETTINGS)
        assert float(new_state.params.log_alpha - state.params.log_alpha) == pytest.approx(sign * 3e-4, rel=1e-3)


def test_first_adam_step_has_the_size_of_each_parts_learning_rate() -> None:
    state, batch, noise = random_problem()
    agent = parameters(learning_rate=3e-4, actor_learning_rate=1e-3)
    new_state, _ = update(state, batch, noise, agent, SETTINGS)
    grads = gradient(state, batch, noise, agent, SETTINGS)[0]
    for part, rate in (("actor", 1e-3), ("critics", 3e-4), ("log_alpha", 1e-3)):
        trees = (getattr(params, part) for params in (new_state.params, state.params, grads))
        for new, old, grad in zip(*map(jax.tree.leaves, trees), strict=True):
            felt = np.abs(grad) > 1e-4  # Adam's ε shortens the step of smaller ones
            assert felt.any()
            step = np.asarray(new, np.float64) - np.asarray(old, np.float64)
            np.testing.assert_allclose(step[felt], -rate * np.sign(grad)[felt], rtol=2e-3)


def test_three_updates_against_adam_in_numpy() -> None:
    state, batch, noise = random_problem()
    leaves, tree = jax.tree.flatten(state.params)
    values = [np.asarray(leaf, np.float64) for leaf in leaves]
    mean, square = [np.zeros_like(v) for v in values], [np.zeros_like(v) for v in values]
    target = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(state.target_critics)]
    for t in range(1, 4):
        grads = gradient(state, batch, noise, AGENT, SETTINGS)[0]
        for i, grad in enumerate(np.asarray(g, np.float64) for g in jax.tree.leaves(grads)):
            mean[i] = 0.9 * mean[i] + 0.1 * grad
            square[i] = 0.999 * square[i] + 0.001 * grad**2
            values[i] = values[i] - RATE * (mean[i] / (1 - 0.9**t)) / (np.sqrt(square[i] / (1 - 0.999**t)) + 1e-8)
        critics = jax.tree.leaves(jax.tree.unflatten(tree, values).critics)
        target = [0.995 * old + 0.005 * new for old, new in zip(target, critics, strict=True)]
        state, _ = update(state, batch, noise, AGENT, SETTINGS)
    for found, expected in zip(jax.tree.leaves(state.params), values, strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-6)
    for found, expected in zip(jax.tree.leaves(state.target_critics), target, strict=True):
        np.testing.assert_allclose(found, expected, atol=2e-6)


@pytest.mark.parametrize("tau", [0.0, 0.25, 1.0])
def test_target_critics_move_by_tau_towards_the_new_critics(tau: float) -> None:
    state, batch, noise = random_problem()
    new_state, _ = update(state, batch, noise, parameters(learning_rate=0.1, target_rate=tau), SETTINGS)
    for new, old, critic in zip(
        *map(jax.tree.leaves, (new_state.target_critics, state.target_critics, new_state.params.critics)), strict=True
    ):
        np.testing.assert_allclose(new, (1 - tau) * old + tau * critic, atol=1e-6)


def test_each_update_values_its_batch_with_the_networks_as_they_stand() -> None:
    """Three updates on one batch: the critics' loss of each is that of targets which the state before it gives."""
    state, batch, noise = random_problem()
    agent, lost = parameters(learning_rate=0.05, actor_learning_rate=0.05), []
    for _ in range(3):
        expected = Reference(state, batch, noise)
        state, metrics = update(state, batch, noise, agent, SETTINGS)
        assert metrics["critic_loss"] == pytest.approx(expected.critic, rel=1e-4)
        lost.append(expected.target)
    assert np.abs(lost[1] - lost[0]).max() > 0.01
    assert np.abs(lost[2] - lost[1]).max() > 0.01


@pytest.mark.parametrize("phase", [0, 1])
def test_the_learner_is_these_functions_for_one_gear(phase: int) -> None:
    state, batch, noise = random_problem()
    settings = SETTINGS._replace(actor_every=2, first_alpha=0.25)
    learner = Sac(gear=1, obs_dim=OBS, act_dim=ACT, units=5, critic_units=7, batch=BATCH, settings=settings)
    assert (learner.gear_numbers, learner.noise_dim, learner.cycle) == ((1,), 2 * ACT, 2)
    found, metrics = jax.jit(learner.update, static_argnums=4)(state, batch, noise.reshape(-1), AGENT, phase)
    expected, wanted = update(state, batch, noise, AGENT, settings, with_policy=phase == 0)
    jax.tree.map(np.testing.assert_allclose, (found, metrics), (expected, wanted))
    assert learner.actors(found) == (found.params.actor,)
    fresh, by_function = learner.init(jax.random.key(3)), sac.init(jax.random.key(3), OBS, ACT, 5, 7, settings)
    jax.tree.map(np.testing.assert_array_equal, fresh, by_function)


def test_without_the_policy_critics_step_as_ever_and_the_rest_stays() -> None:
    state, batch, noise = random_problem()
    whole, metrics = update(state, batch, noise, AGENT, SETTINGS)
    part, fewer = update(state, batch, noise, AGENT, SETTINGS, with_policy=False)
    for name in ("actor", "log_alpha"):
        old, moved, kept = (getattr(each.params, name) for each in (state, whole, part))
        jax.tree.map(np.testing.assert_array_equal, kept, old)
        assert all(bool((a != b).any()) for a, b in zip(*map(jax.tree.leaves, (moved, old)), strict=True))
    jax.tree.map(np.testing.assert_array_equal, part.policy_adam, state.policy_adam)
    critics = partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-7)
    jax.tree.map(critics, part.params.critics, whole.params.critics)
    jax.tree.map(critics, part.target_critics, whole.target_critics)
    jax.tree.map(critics, part.critic_adam, whole.critic_adam)
    assert fewer.keys() == metrics.keys() - {"entropy", "alpha"} == {"critic_loss", "value"}


@pytest.mark.parametrize("phase", [0, 1])
def test_one_program_makes_updates_with_and_without_the_policy(phase: int) -> None:
    state, batch, noise = random_problem()
    settings = SETTINGS._replace(actor_every=2)
    learner = Sac(gear=0, obs_dim=OBS, act_dim=ACT, units=5, critic_units=7, batch=BATCH, settings=settings)
    found, metrics = jax.jit(learner.update)(state, batch, noise.reshape(-1), AGENT, phase)
    expected, wanted = update(state, batch, noise, AGENT, settings, with_policy=phase == 0)
    wanted = dict.fromkeys(sac.POLICY_METRICS, 0) | wanted
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-7), (found, metrics), (expected, wanted))


@pytest.mark.parametrize("normalise", [False, True])
def test_rescaled_critics_mean_the_same(normalise: bool) -> None:
    state, batch, _ = random_problem()
    style = CriticStyle("relu", normalise)
    state = state._replace(reward_scale=jnp.float32(2))
    new = sac.rescale(state, jnp.float32(5))
    assert new.reward_scale == 5
    for critics, rescaled in (
        (state.params.critics, new.params.critics),
        (state.target_critics, new.target_critics),
    ):
        before, after = (critic_values(each, batch.observation, batch.action, style) for each in (critics, rescaled))
        np.testing.assert_allclose(5 * after, 2 * before, rtol=1e-5, atol=1e-6)
        assert np.abs(after - before).max() > 0.1
    jax.tree.map(np.testing.assert_array_equal, new.params.actor, state.params.actor)
    same = sac.rescale(new, jnp.float32(5))
    jax.tree.map(np.testing.assert_array_equal, same, new)


def test_fresh_critics_take_the_first_scale_as_they_are() -> None:
    fresh = sac.init(jax.random.key(0), OBS, ACT, 5, 7, SETTINGS)
    assert fresh.reward_scale == 0
    first = sac.rescale(fresh, jnp.float32(300))
    assert first.reward_scale == 300
    jax.tree.map(np.testing.assert_array_equal, first.params, fresh.params)
    jax.tree.map(np.testing.assert_array_equal, first.target_critics, fresh.target_critics)


def test_an_update_puts_the_critics_on_the_agents_scale_first() -> None:
    state, batch, noise = random_problem()
    state, agent = state._replace(reward_scale=jnp.float32(2)), parameters(reward_scale=5)
    found, metrics = update(state, batch, noise, agent, SETTINGS)
    expected, wanted = update(sac.rescale(state, jnp.float32(5)), batch, noise, agent, SETTINGS)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6), (found, metrics), (expected, wanted))
    assert found.reward_scale == 5


def test_twins_by_hand() -> None:
    values = jnp.array([[1.0, 5.0], [3.0, -5.0]])
    np.testing.assert_array_equal(sac.combine(values, jnp.float32(1)), [1, -5])
    np.testing.assert_array_equal(sac.combine(values, jnp.float32(0)), [2, 0])


def test_flops_are_those_of_the_products_of_an_update() -> None:
    learner = Sac(gear=0, obs_dim=OBS, act_dim=ACT, units=5, critic_units=7, batch=BATCH, settings=SETTINGS)
    actor, critic = [OBS * 5, 5 * 5, 5 * 2 * ACT], [(OBS + ACT) * 7, 7 * 7, 7]
    # Targets: one pass of the actor, one of each critic. Fit: a pass of each, and gradients of all its weights and
    # hidden inputs. Climb: a pass of both, their gradients of inputs alone, the actor's of weights and hidden inputs.
    targets = sum(actor) + 2 * sum(critic)
    fit = 2 * (2 * sum(critic) + sum(critic[1:]))
    climb = 2 * (sum(critic) + sum(critic[1:]) + ACT * 7) + 2 * sum(actor) + sum(actor[1:])
    assert learner.flops() == 2 * BATCH * (targets + fit + climb)
    rarely = replace(learner, settings=SETTINGS._replace(actor_every=2))
    assert rarely.flops() == 2 * BATCH * (targets + fit) + BATCH * climb


@pytest.mark.parametrize("alpha", [1.0, 0.1])
def test_fresh_targets_are_the_critics_and_the_temperature_is_as_told(alpha: float) -> None:
    state = sac.init(jax.random.key(0), OBS, ACT, 5, 7, SETTINGS._replace(first_alpha=alpha))
    jax.tree.map(np.testing.assert_array_equal, state.params.critics, state.target_critics)
    assert math.exp(state.params.log_alpha) == pytest.approx(alpha)


@pytest.mark.parametrize("normalise", [False, True])
def test_losses_promote_no_dtype(normalise: bool) -> None:
    state, batch, noise = random_problem()
    settings = SETTINGS._replace(critic_style=CriticStyle("tanh", normalise))
    with jax.numpy_dtype_promotion("strict"):  # Adam is optax's, which promotes its own counter
        grads, metrics = gradient(state, batch, noise, AGENT, settings)
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves((grads, metrics)))
    assert all(metric.shape == () for metric in metrics.values())


def test_losses_promote_no_rank() -> None:
    state, batch, noise = random_problem()
    with jax.numpy_rank_promotion("raise"):
        jax.eval_shape(partial(batch_losses, settings=SETTINGS), state, batch, noise, AGENT)


@partial(jax.jit, static_argnames=("settings", "updates"))
def train(state: SacState, data: Transitions, settings: SacSettings, agent: AgentParameters, updates: int) -> SacState:
    """Updates on batches drawn from `data`."""
    size, seed = 64, jnp.uint32(1)

    def body(state: SacState, now: jax.Array) -> tuple[SacState, None]:
        rows = (rng.uniform(seed, 0, now, size) * data.reward.shape[0]).astype(jnp.int32)
        noise = rng.normal(seed, 1, now, 2 * size).reshape(2, size, 1)
        return sac.update(state, jax.tree.map(lambda x: x[rows], data), noise, agent, settings)[0], None

    return jax.lax.scan(body, state, jnp.arange(updates))[0]


def test_probe_one_step_bandit() -> None:
    action = np.random.default_rng(0).uniform(-1, 1, (512, 1)).astype(np.float32)
    zeros = jnp.zeros((512, 1))
    reward = jnp.asarray(-((action[:, 0] - 0.5) ** 2))
    data = Transitions(zeros, jnp.asarray(action), reward, jnp.zeros(512), zeros)
    agent = parameters(target_entropy=-3, target_rate=0.05, learning_rate=5e-3, actor_learning_rate=5e-3)
    state = train(sac.init(jax.random.key(0), 1, 1, 8, 32, SETTINGS), data, SETTINGS, agent, 800)
    best, _ = sample_action(state.params.actor, jnp.zeros((1, 1)), jnp.zeros((1, 1)), "tanh")
    assert best[0, 0] == pytest.approx(0.5, abs=0.1)
    tried = jnp.array([[-0.5], [0.0], [0.5], [0.9]])
    values = critic_values(state.params.critics, jnp.zeros((4, 1)), tried, SETTINGS.critic_style)
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
    fresh = sac.init(jax.random.key(0), 1, 1, 8, 32, SETTINGS)
    cold = fresh._replace(params=fresh.params._replace(log_alpha=jnp.float32(-20)))  # entropy is worth nothing
    agent = parameters(target_rate=0.05, learning_rate=5e-3, actor_learning_rate=5e-3)
    state = train(cold, data, SETTINGS, agent, 800)
    seen = jnp.array([[0.0], [0.0], [1.0], [1.0]])
    values = critic_values(state.params.critics, seen, jnp.array([[-0.5], [0.5]] * 2), SETTINGS.critic_style)
    np.testing.assert_allclose(values, np.tile([0.5, 0.5, 1, 1], (2, 1)), atol=0.05)
