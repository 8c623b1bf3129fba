"""GAIL: the student learns by trust-region steps from the reward of an adversary that tells it from its teacher.

Ho and Ermon, "Generative adversarial imitation learning" (NeurIPS 2016), with the authors' generator and numbers: TRPO
on batches of 1024 steps, three updates of the policy to one of the adversary. It sees the teacher's pairs and plays the
task, but never sees the task's reward. Three things differ from the authors': several environments fill a batch, time
limits are bootstrapped through, and the student is a gear's squashed Gaussian.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from lowgear import LowgearError
from lowgear.baselines import adversary, student, trpo
from lowgear.baselines.adversary import Adversary
from lowgear.baselines.demonstrations import Demonstrations
from lowgear.baselines.generate import Generator, Rollout
from lowgear.baselines.record import MakeEnv, Progress
from lowgear.baselines.student import Students
from lowgear.baselines.trpo import TrpoSettings, TrpoState
from lowgear.learning import rng
from lowgear.training.parallel import keep_compiled_programs

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

    generator: TrpoState
    adversary: Adversary


class Pairs(NamedTuple):
    """One teacher's pairs, padded to the longest set."""

    observations: jax.Array  # (N, obs)
    actions: jax.Array  # (N, act)
    rows: jax.Array  # how many are real


def fit(
    demonstrations: Sequence[Demonstrations],
    make_env: MakeEnv,
    units: int,
    seeds: Sequence[int],
    settings: GailSettings = GailSettings(),  # noqa: B008
    progress: Progress | None = None,
) -> Students:
    """Student p of width `units` imitates `demonstrations[p]` with `seeds[p]`; `progress` is told of a batch's steps.

    The history, (batches, P), holds `episode_return`, the task's own return of the episodes that ended in a batch (NaN:
    none), and the learners' metrics. Steps are rounded up to whole batches.
    """
    student.check(demonstrations, units, seeds)
    _check(settings)
    keep_compiled_programs()
    pairs = _pairs(demonstrations)
    keys = jnp.stack([jax.random.key(seed) for seed in seeds])
    program = replace(settings, steps=0)  # compiled once for trainings of any length
    state = init(keys, pairs, units, program)
    numbers = jnp.asarray(seeds, jnp.uint32)
    batches = -(-settings.steps // settings.batch_steps)
    history: list[dict[str, npt.NDArray[np.float32]]] = []
    env = make_env(len(seeds) * settings.environments)
    try:
        generator = Generator(env, seeds)
        for number in range(batches):
            layers = student.layers_of(state.generator.actor)
            rollout, returns = generator.collect(layers, settings.batch_steps // settings.environments)
            time = jnp.asarray(number, jnp.uint32)
            state, metrics = improve(state, rollout, numbers, time, program)
            if (number + 1) % settings.policy_updates == 0:
                state, judged = oppose(state, rollout, pairs, (numbers, time), program)
                metrics |= judged
            history.append({"episode_return": returns} | {name: np.array(value) for name, value in metrics.items()})
            if progress:
                progress(settings.batch_steps)
    finally:
        env.close()
    layers = student.layers_of(state.generator.actor)
    origins = [d.origin for d in demonstrations]
    policies = student.policies_of(layers, "gail", origins, seeds, [batches * settings.batch_steps] * len(seeds))
    return Students(policies, _columns(history, len(seeds)))


@partial(jax.jit, static_argnames=("units", "settings"))
def init(keys: jax.Array, pairs: Pairs, units: int, settings: GailSettings) -> GailState:
    """Fresh students, one for each of P keys."""

    def one(key: jax.Array, pairs: Pairs) -> GailState:
        obs_dim, act_dim = pairs.observations.shape[-1], pairs.actions.shape[-1]
        mine, other, rows = jax.random.split(key, 3)
        shown = jax.random.randint(rows, (settings.batch_steps,), 0, pairs.rows)
        return GailState(
            trpo.init(mine, obs_dim, act_dim, units, settings.value_units),
            adversary.init(other, pairs.observations[shown], act_dim, settings.adversary_units),
        )

    return jax.vmap(one)(keys, pairs)


@partial(jax.jit, static_argnames="settings")
def improve(
    state: GailState, rollout: Rollout, seeds: jax.Array, time: jax.Array, settings: GailSettings
) -> tuple[GailState, Metrics]:
    """One update of every student's policy and value on a batch of its own steps."""
    return jax.vmap(partial(_improve, settings=settings), in_axes=(0, 0, 0, None))(state, rollout, seeds, time)


def _improve(
    state: GailState, rollout: Rollout, seed: jax.Array, time: jax.Array, settings: GailSettings
) -> tuple[GailState, Metrics]:
    chosen, generator, judge = settings.trpo, state.generator, state.adversary
    observation, raw, after = (_flat(x) for x in (rollout.observation, rollout.raw, rollout.last_observation))
    paid = adversary.reward(judge, observation, jnp.tanh(raw))
    seen, seen_after = (adversary.standardise(judge.moments, x) for x in (observation, after))
    value, next_value = trpo.values(generator.value, seen), trpo.values(generator.value, seen_after)
    shape = rollout.over.shape
    advantage = trpo.advantages(
        paid.reshape(shape),
        value.reshape(shape),
        next_value.reshape(shape),
        (jnp.asarray(rollout.terminated), jnp.asarray(rollout.over)),
        chosen,
    ).reshape(-1)
    actor, metrics = trpo.improve(generator.actor, observation, raw, jax.nn.standardize(advantage), chosen)
    batches = len(paid) // chosen.value_batch
    words = rng.bits(seed, ORDERS, time, chosen.value_epochs * len(paid)).reshape(chosen.value_epochs, -1)
    rows = jnp.argsort(words, axis=1)[:, : batches * chosen.value_batch].reshape(-1, chosen.value_batch)
    new_value, adam = trpo.fit_value(
        generator.value, generator.value_adam, seen, advantage + value, rows, chosen.value_rate
    )
    metrics = metrics | {"adversary_reward": paid.mean()}
    return GailState(TrpoState(actor, new_value, adam), judge), metrics


@partial(jax.jit, static_argnames="settings")
def oppose(
    state: GailState, rollout: Rollout, pairs: Pairs, chance: tuple[jax.Array, jax.Array], settings: GailSettings
) -> tuple[GailState, Metrics]:
    """A turn of every adversary, on its student's pairs and each time as many others of the teacher's.

    `chance` is the seeds (P,) and the time that the teacher's pairs are drawn for.
    """

    def one(state: GailState, rollout: Rollout, pairs: Pairs, seed: jax.Array) -> tuple[GailState, Metrics]:
        mine = (_flat(rollout.observation), jnp.tanh(_flat(rollout.raw)))
        share = rng.uniform(seed, TEACHER_ROWS, chance[1], settings.adversary_updates * settings.batch_steps)
        rows = jnp.minimum((share * pairs.rows).astype(jnp.int32), pairs.rows - 1)

        def step(judge: Adversary, rows: jax.Array) -> tuple[Adversary, Metrics]:
            teachers = (pairs.observations[rows], pairs.actions[rows])
            return adversary.update(judge, mine, teachers, settings.adversary_rate, settings.adversary_entropy)

        judge, metrics = jax.lax.scan(step, state.adversary, rows.reshape(settings.adversary_updates, -1))
        return GailState(state.generator, judge), {name: value[-1] for name, value in metrics.items()}

    return jax.vmap(one)(state, rollout, pairs, chance[0])


def _flat(x: jax.Array | npt.NDArray[np.float32]) -> jax.Array:
    """(T, E, size) as (T E, size)."""
    return jnp.asarray(x).reshape(-1, x.shape[-1])


def _pairs(demonstrations: Sequence[Demonstrations]) -> Pairs:
    longest = max(len(d) for d in demonstrations)

    def padded(name: str) -> jax.Array:
        arrays = [getattr(d, name) for d in demonstrations]
        return jnp.asarray(np.stack([np.pad(a, ((0, longest - len(a)), (0, 0))) for a in arrays]))

    counts = jnp.asarray([len(d) for d in demonstrations], jnp.int32)
    return Pairs(padded("observations"), padded("actions"), counts)


def _columns(history: Sequence[dict[str, Any]], population: int) -> dict[str, npt.NDArray[np.float32]]:
    """Each metric over time; NaN in batches that had none."""
    names = sorted({name for row in history for name in row})
    none = np.full(population, np.nan, np.float32)
    return {name: np.stack([row.get(name, none) for row in history]).astype(np.float32) for name in names}


def _check(settings: GailSettings) -> None:
    for name in (
        "steps",
        "batch_steps",
        "environments",
        "policy_updates",
        "adversary_updates",
        "adversary_units",
        "value_units",
    ):
        if getattr(settings, name) < 1:
            raise LowgearError(f"{name.replace('_', ' ')} {getattr(settings, name)}: write 1 or more")
    if settings.batch_steps % settings.environments:
        raise LowgearError(
            f"{settings.environments} environments cannot share batches of {settings.batch_steps} steps evenly: "
            "choose a divisor"
        )
    if settings.trpo.value_batch > settings.batch_steps:
        raise LowgearError(
            f"value batches of {settings.trpo.value_batch} do not fit into a batch of {settings.batch_steps} steps"
        )
