"""GAIL: the student learns by trust-region steps from the reward of an adversary that tells it from its teacher.

Ho and Ermon, "Generative adversarial imitation learning" (NeurIPS 2016), with the authors' policy learner and numbers:
TRPO on batches of 1024 steps, three updates of the policy to one of the adversary. It sees the teacher's pairs and
plays the task, but never sees the task's reward. Three things differ from the authors': several environments fill a
batch, time limits are bootstrapped through, and the student is a gear's squashed Gaussian.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lowgear import LowgearError
from lowgear.baselines import adversary, student, trpo
from lowgear.baselines.adversary import Adversary
from lowgear.baselines.demonstrations import Demonstrations
from lowgear.baselines.record import MakeEnv, Progress
from lowgear.baselines.rollouts import Rollout, RolloutSampler
from lowgear.baselines.student import Pairs, Students
from lowgear.baselines.trpo import TrpoSettings, TrpoState
from lowgear.learning import rng
from lowgear.policy.arrays import FloatArray
from lowgear.training.device import keep_compiled_programs

Metrics = dict[str, jax.Array]
ORDERS, TEACHER_ROWS = 50 * rng.LEARNERS_AT_MOST, 51 * rng.LEARNERS_AT_MOST  # streams of random numbers


@dataclass(frozen=True)
class GailSettings:
    """How a student is trained; by default as in the paper."""

    steps: int = 4_000_000  # that each student takes
    batch_steps: int = 1024  # between updates of the policy
    environments: int = 8  # of each student, that share a batch evenly
    policy_updates: int = 3  # before the adversary has its turn, which learns from the last of these batches
    adversary_updates: int = 1  # in a turn
    adversary_units: int = 100  # of its two hidden layers
    adversary_entropy: float = 1e-3
    adversary_rate: float = 3e-4  # Adam's
    value_units: int = 64
    trpo: TrpoSettings = TrpoSettings()  # noqa: RUF009


# The adversary keeps pace with the policy, which outruns the paper's (docs/baselines.md).
MODERN = GailSettings(policy_updates=1, adversary_updates=5, adversary_rate=1e-3)


class GailState(NamedTuple):
    """One student, its value and its adversary."""

    policy: TrpoState
    adversary: Adversary


def fit(
    demonstrations: Sequence[Demonstrations],
    make_env: MakeEnv,
    units: int,
    seeds: Sequence[int],
    settings: GailSettings = GailSettings(),  # noqa: B008
    progress: Progress | None = None,
) -> Students:
    """Student p of width `units` imitates `demonstrations[p]` with `seeds[p]`; `progress` counts steps.

    The history, (batches, P), holds `episode_return`, the task's own return of the episodes that ended in a batch (NaN:
    none), and the learners' metrics. Steps are rounded up to whole batches.
    """
    student.check(demonstrations, units, seeds)
    _check(settings)
    keep_compiled_programs()
    pairs = student.stack_pairs(demonstrations)
    keys = jnp.stack([jax.random.key(seed) for seed in seeds])
    program = replace(settings, steps=0)  # compiled once for trainings of any length
    state = init(keys, pairs, units, program)
    own_seeds = jnp.asarray(seeds, jnp.uint32)
    batches = -(-settings.steps // settings.batch_steps)
    history: list[dict[str, FloatArray]] = []
    with closing(make_env(len(seeds) * settings.environments)) as env:
        sampler = RolloutSampler(env, seeds)
        for number in range(batches):
            actors = student.layers_of(state.policy.actor)
            rollout, returns = sampler.collect(actors, settings.batch_steps // settings.environments)
            time = jnp.asarray(number, jnp.uint32)
            state, metrics = update_policy(state, rollout, own_seeds, time, program)
            if (number + 1) % settings.policy_updates == 0:
                state, more = update_adversary(state, rollout, pairs, own_seeds, time, program)
                metrics |= more
            history.append({"episode_return": returns} | {name: np.array(value) for name, value in metrics.items()})
            if progress:
                progress((number + 1) * settings.batch_steps, batches * settings.batch_steps)
    steps = [batches * settings.batch_steps] * len(seeds)
    origins = [d.origin for d in demonstrations]
    policies = student.policies_of(student.layers_of(state.policy.actor), "gail", origins, seeds, steps)
    return Students(policies, _columns(history, len(seeds)))


@partial(jax.jit, static_argnames=("units", "settings"))
def init(keys: jax.Array, pairs: Pairs, units: int, settings: GailSettings) -> GailState:
    """Fresh students, one for each of P keys."""

    def one(key: jax.Array, pairs: Pairs) -> GailState:
        obs_dim, act_dim = pairs.observations.shape[-1], pairs.actions.shape[-1]
        policy_key, adversary_key, rows_key = jax.random.split(key, 3)
        rows = jax.random.randint(rows_key, (settings.batch_steps,), 0, pairs.rows)
        return GailState(
            trpo.init(policy_key, obs_dim, act_dim, units, settings.value_units),
            adversary.init(adversary_key, pairs.observations[rows], act_dim, settings.adversary_units),
        )

    return jax.vmap(one)(keys, pairs)


@partial(jax.jit, static_argnames="settings")
def update_policy(
    state: GailState, rollout: Rollout, seeds: jax.Array, time: jax.Array, settings: GailSettings
) -> tuple[GailState, Metrics]:
    """One update of every student's policy and value on a batch of its own steps."""
    return jax.vmap(partial(_update_policy, settings=settings), in_axes=(0, 0, 0, None))(state, rollout, seeds, time)


def _update_policy(
    state: GailState, rollout: Rollout, seed: jax.Array, time: jax.Array, settings: GailSettings
) -> tuple[GailState, Metrics]:
    chosen, policy, moments = settings.trpo, state.policy, state.adversary.moments
    observation, raw, after = (_flat(x) for x in (rollout.observation, rollout.raw, rollout.last_observation))
    reward = adversary.reward(state.adversary, observation, jnp.tanh(raw))
    standardised = adversary.standardise(moments, observation)
    value = trpo.values(policy.value, standardised)
    next_value = trpo.values(policy.value, adversary.standardise(moments, after))
    shape = rollout.ended.shape
    advantage = trpo.advantages(
        reward.reshape(shape),
        value.reshape(shape),
        next_value.reshape(shape),
        jnp.asarray(rollout.terminated),
        jnp.asarray(rollout.ended),
        chosen,
    ).reshape(-1)
    actor, metrics = trpo.improve(policy.actor, observation, raw, jax.nn.standardize(advantage), chosen)
    batches = len(reward) // chosen.value_batch
    words = rng.bits(seed, ORDERS, time, chosen.value_epochs * len(reward)).reshape(chosen.value_epochs, -1)
    rows = jnp.argsort(words, axis=1)[:, : batches * chosen.value_batch].reshape(-1, chosen.value_batch)
    new_value, adam = trpo.fit_value(
        policy.value, policy.value_adam, standardised, advantage + value, rows, jnp.asarray(chosen.value_rate)
    )
    new = GailState(TrpoState(actor, new_value, adam), state.adversary)
    return new, metrics | {"adversary_reward": reward.mean()}


@partial(jax.jit, static_argnames="settings")
def update_adversary(
    state: GailState, rollout: Rollout, pairs: Pairs, seeds: jax.Array, time: jax.Array, settings: GailSettings
) -> tuple[GailState, Metrics]:
    """A turn of every adversary, on its student's pairs and each time as many others of the teacher's."""

    def one(state: GailState, rollout: Rollout, pairs: Pairs, seed: jax.Array) -> tuple[GailState, Metrics]:
        own = (_flat(rollout.observation), jnp.tanh(_flat(rollout.raw)))
        share = rng.uniform(seed, TEACHER_ROWS, time, settings.adversary_updates * settings.batch_steps)
        rows = jnp.minimum((share * pairs.rows).astype(jnp.int32), pairs.rows - 1)
        rate = jnp.asarray(settings.adversary_rate)

        def step(current: Adversary, rows: jax.Array) -> tuple[Adversary, Metrics]:
            teachers = (pairs.observations[rows], pairs.actions[rows])
            return adversary.update(current, own, teachers, rate, settings.adversary_entropy)

        new, metrics = jax.lax.scan(step, state.adversary, rows.reshape(settings.adversary_updates, -1))
        return GailState(state.policy, new), {name: value[-1] for name, value in metrics.items()}

    return jax.vmap(one)(state, rollout, pairs, seeds)


def _flat(x: jax.Array | FloatArray) -> jax.Array:
    """(T, E, size) as (T E, size)."""
    return jnp.asarray(x).reshape(-1, x.shape[-1])


def _columns(history: Sequence[dict[str, Any]], population: int) -> dict[str, FloatArray]:
    """Each metric over time; NaN in batches that had none."""
    names = sorted({name for row in history for name in row})
    none = np.full(population, np.nan, np.float32)
    return {name: np.stack([row.get(name, none) for row in history]).astype(np.float32) for name in names}


def _check(settings: GailSettings) -> None:
    for name, value in vars(settings).items():
        if isinstance(value, int) and value < 1:
            raise LowgearError(f"{name.replace('_', ' ')} {value}: write 1 or more")
    if settings.batch_steps % settings.environments:
        raise LowgearError(
            f"{settings.environments} environments cannot share batches of {settings.batch_steps} steps evenly: "
            "choose a divisor"
        )
    if settings.trpo.value_batch > settings.batch_steps:
        raise LowgearError(
            f"value batches of {settings.trpo.value_batch} do not fit into a batch of {settings.batch_steps} steps"
        )
