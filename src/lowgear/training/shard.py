"""A shard of a population: some agents with their learners, buffers and statistics, on one device."""

import contextlib
import logging
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lowgear import LowgearError
from lowgear.learning import normalisation, replay
from lowgear.learning.learners import AgentParameters
from lowgear.learning.method import Method
from lowgear.learning.normalisation import Statistics
from lowgear.learning.replay import Replay
from lowgear.policy.arrays import FloatArray
from lowgear.training import algorithm
from lowgear.training.algorithm import Learners
from lowgear.training.device import has_accelerator


class _OwnErrors(logging.Filter):
    """Drops what JAX logs about an error of ours that a callback raised: it is told once, without its traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], LowgearError))


logging.getLogger("jax._src.callback").addFilter(_OwnErrors())


class LearnerStates(NamedTuple):
    """All that learning has left behind."""

    learners: Learners
    statistics: Statistics | None  # of what the agents have met, where it is kept account of


class Published(NamedTuple):
    """What acts and pays, as NumPy arrays of P agents."""

    networks: tuple[Any, ...]  # layers of each trained gear's actor, then of the master
    cost_units: FloatArray | None  # (P,): of relative cost coefficients, where the scale of rewards is known


class Programs:
    """What is compiled: one program of each kind, which serves all shards of a population, as they are equal."""

    def __init__(self, method: Method) -> None:
        self.method = method
        # One program, which the next run finds in the cache; operation by operation it would be dozens.
        self.init = jax.jit(partial(algorithm.init, method=method))
        self.insert = jax.jit(partial(replay.insert, settings=method.replay), donate_argnums=0)
        self.observe = jax.jit(partial(algorithm.observe, method=method))
        self.publish = jax.jit(self._published)
        # Nothing is donated: the learners from before a round are there until the next one (`remember`).
        update = partial(algorithm.update, method=method, unrolled=has_accelerator())
        self.update = jax.jit(update, static_argnames=("which", "updates"))

    def _published(self, learners: Sequence[Any], statistics: Statistics | None, agents: AgentParameters) -> Any:
        if statistics is None:
            return self._actors(learners), None, None
        units = algorithm.cost_units(statistics, agents, self.method)
        return self._actors(learners), algorithm.normalisers(statistics, self.method), units

    def _actors(self, learners: Sequence[Any]) -> tuple[Any, ...]:
        """Of every gear that is trained, in order, then the master's."""
        actors: dict[int, Any] = {}
        for learner, state in zip(self.method.gear_learners, learners[:-1], strict=True):
            actors |= dict(zip(learner.gear_numbers, learner.actors(state), strict=True))
        return (*(actors[gear] for gear in sorted(actors)), jax.vmap(self.method.master.actor)(learners[-1]))


@lru_cache(maxsize=4)
def programs_of(method: Method) -> Programs:
    """Those of a method; a run that goes on, or the next one of the same shapes, finds them compiled."""
    return Programs(method)


class Shard:
    """The `agents` of a population, as they stand on their device; what it gives may still be on its way there."""

    def __init__(self, programs: Programs, agents: slice, parameters: AgentParameters, capacity: int) -> None:
        self._programs, self._replay = programs, programs.method.replay
        self._slice = agents
        self._agents: AgentParameters = jax.tree.map(lambda value: jnp.asarray(value[agents]), parameters)
        self._learners: list[Any] = list(programs.init(self._agents.seed))
        self._statistics = _no_statistics(programs.method, len(self._agents.seed))
        self._shared = jnp.repeat(self._agents.shared, self._replay.environments)
        self.buffer = self._empty_buffer(capacity)

    def insert(self, chunk: FloatArray, known: bool) -> None:
        """Its part of a chunk (P, K, width) of all agents; what is `known` is in the statistics already."""
        new = jnp.asarray(chunk[self._slice])  # taken to the device once
        rows = new.reshape(len(self._shared), -1, chunk.shape[2])
        self.buffer = self._programs.insert(self.buffer, rows, self._shared)
        if self._statistics is not None and not known:
            self._statistics = self._programs.observe(self._statistics, new, self._agents)

    def update(self, which: tuple[int, ...], updates: int, clock: int) -> Any:
        """Update the learners numbered `which`; their metrics."""
        mine = tuple(self._learners[number] for number in which)
        with own_errors():
            new, metrics = self._programs.update(
                mine,
                self.buffer,
                self._agents,
                self._statistics,
                np.int32(clock),
                which=which,
                updates=updates,
            )
        for number, learner in zip(which, new, strict=True):
            self._learners[number] = learner
        return metrics

    def published(self) -> Any:
        """What acts and pays, for `folded`."""
        return self._programs.publish(self._learners, self._statistics, self._agents)

    def states(self) -> LearnerStates:
        """Its learners, and what they see observations through."""
        return LearnerStates(tuple(self._learners), self._statistics)

    def restore(self, states: LearnerStates) -> None:
        """Take over its part of the states of all agents."""
        part = jax.tree.map(lambda value: jnp.array(value[self._slice]), states)
        self._learners, self._statistics = list(part.learners), part.statistics

    def rows(self) -> FloatArray:
        """Every step in its buffer, oldest first, in NumPy."""
        written, capacity = int(self.buffer.written), self.buffer.rows.shape[1]
        rows = np.array(self.buffer.rows)
        return rows[:, :written] if written <= capacity else np.roll(rows, -(written % capacity), axis=1)

    def grow(self, capacity: int, chunk: int) -> None:
        """Make room for more steps of each agent; those that are there are inserted anew, `chunk` by chunk."""
        rows, each = self.rows(), chunk // self._replay.environments
        self.buffer = self._empty_buffer(capacity)
        for start in range(0, rows.shape[1], each):
            self.buffer = self._programs.insert(self.buffer, rows[:, start : start + each], self._shared)

    def _empty_buffer(self, capacity: int) -> Replay:
        return replay.init(len(self._shared), capacity // self._replay.environments, self._replay)


def folded(shards: Sequence[Any]) -> Published:
    """What the shards have published, in NumPy, the normaliser folded into the networks."""
    networks, normaliser, cost_units = on_host(shards)
    if normaliser is not None:
        networks = tuple(normalisation.fold(network, normaliser) for network in networks)
    return Published(tuple(networks), cost_units)


def on_host(shards: Sequence[Any]) -> Any:
    """What shards gave, in the same shapes, as one, in NumPy."""
    return jax.tree.map(lambda *parts: np.concatenate([np.array(part) for part in parts]), *shards)


@contextlib.contextmanager
def own_errors() -> Iterator[None]:
    """An environment that fails when asked about a goal fails inside the compiled program: the error as it was."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        _, name, message = str(error).rpartition("LowgearError: ")
        if not name:
            raise
        raise LowgearError(message.splitlines()[0]) from None


def _no_statistics(method: Method, population: int) -> Statistics | None:
    if not method.tracks_statistics:
        return None
    one = normalisation.init(method.replay.columns.obs_dim, method.replay.environments)
    found: Statistics = jax.tree.map(lambda x: jnp.broadcast_to(x, (population, *x.shape)), one)
    return found
