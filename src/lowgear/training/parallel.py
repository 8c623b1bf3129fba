"""Runs the learners of a population on this machine's devices, beside whatever the caller does meanwhile.

On a CPU with several cores every agent is a job of its own, or several, one for each part of its learners, where there
are fewer agents than cores: a core then works on one agent's networks, which its cache holds. Agents and learners never
read each other, so the cut changes nothing but the time. On a GPU it is one job, and the next one is queued there
before the last is done, by a thread of its own: neither the GPU nor the caller waits for the other.
"""

import contextlib
import itertools
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lowgear import LowgearError
from lowgear.config.cores import cores as machine_cores
from lowgear.learning import normalisation, replay
from lowgear.learning.learners import AgentParameters
from lowgear.learning.method import Method
from lowgear.learning.normalisation import Statistics
from lowgear.learning.replay import Replay
from lowgear.policy.arrays import FloatArray
from lowgear.training import algorithm
from lowgear.training.algorithm import Learners

Metrics = dict[str, FloatArray]


class _OwnErrors(logging.Filter):
    """Drops what JAX logs about an error of ours that a callback raised: it is told once, without its traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.exc_info and isinstance(record.exc_info[1], LowgearError))


logging.getLogger("jax._src.callback").addFilter(_OwnErrors())


class Job(NamedTuple):
    """A part of the learners: a slice of the agents, and which of their learners."""

    shard: int
    which: tuple[int, ...]


class LearnerStates(NamedTuple):
    """All that learning has left behind, on the host."""

    learners: Learners
    statistics: Statistics | None  # of what the agents have met, where it is kept account of


class Published(NamedTuple):
    """What acts and pays, as NumPy arrays of P agents."""

    networks: tuple[Any, ...]  # layers of each trained gear's actor, then of the master
    cost_units: FloatArray | None  # (P,): of relative cost coefficients, where the scale of rewards is known


class Learned(NamedTuple):
    """What a round of updates has come to."""

    metrics: Metrics  # (P,) each
    published: Published


class _Dispatched(NamedTuple):
    """What a round will have come to, on its way from the device."""

    metrics: list[Any]  # of each job
    published: list[Any]  # of each shard


class _Round(NamedTuple):
    """A round of updates that was started."""

    began: float  # by `time.perf_counter`
    running: "list[Future[tuple[Metrics, float]]]"  # its jobs: their metrics, and when they were done
    publishing: "Future[Published] | None"  # what it will have come to; None: to be asked for when it is done


class ParallelLearner:
    """The learners and buffers of a population, updated chunk by chunk in the background; all learners or `which`."""

    def __init__(
        self,
        method: Method,
        agents: AgentParameters,
        capacity: int,
        cores: int | None = None,
        which: Sequence[int] | None = None,
        parts: int | None = None,  # that an agent's learners are cut into; None: as many as keep the cores busy
    ) -> None:
        keep_compiled_programs()
        population = len(agents.seed)
        on_cores = jax.default_backend() == "cpu"
        if cores is None:
            cores = machine_cores() if on_cores else 1
        cut = on_cores and (cores > 1 or parts is not None)
        shards = population if cut else 1  # equal ones, so that one compiled program serves them all
        parts = -(-cores // shards) if parts is None else parts
        bounds = [population * s // shards for s in range(shards + 1)]
        self.method = method
        self.queues = has_accelerator()  # a round may be started before the last is done
        self.time = 0  # updates so far
        self.rounds, self.busy_seconds = 0, 0.0  # of updates, and what they took from start to the last job's end
        self._slices = [slice(a, b) for a, b in itertools.pairwise(bounds)]
        self._agents = [jax.tree.map(lambda v, s=s: jnp.asarray(v[s]), agents) for s in self._slices]
        # One program, which the next run finds in the cache; operation by operation it would be dozens.
        init = jax.jit(partial(algorithm.init, method=method))
        self._learners = [list(init(a.seed)) for a in self._agents]
        self._statistics = [self._no_statistics(len(a.seed)) for a in self._agents]
        self._shared = [jnp.repeat(a.shared, method.replay.environments) for a in self._agents]
        self._buffers = self._empty_buffers(capacity)
        groups = balanced(range(method.learners) if which is None else which, parts, method)
        self.jobs = [Job(s, group) for s in range(shards) for group in groups]
        self._workers = ThreadPoolExecutor(min(len(self.jobs), cores), thread_name_prefix="learner")
        self._device = ThreadPoolExecutor(1, thread_name_prefix="device")
        self._told: Future[Any] | None = None  # what that thread was told last
        self._remembering: Future[Any] | None = None  # which is told to keep them
        self._remembered: list[LearnerStates] = []  # of each shard, on its device
        self._under_way: deque[_Round] = deque()
        self._ended = 0.0  # when the last round was done, by `time.perf_counter`
        self._insert = jax.jit(partial(replay.insert, settings=method.replay), donate_argnums=0)
        self._observe = jax.jit(partial(algorithm.observe, method=method))
        self._publish = jax.jit(self._published)
        # Nothing is donated: the learners from before a round are there until the next one (`remember`).
        self._update = jax.jit(partial(algorithm.update, method=method), static_argnames=("which", "updates"))

    def insert(self, chunk: FloatArray, known: bool = False) -> None:
        """Store the steps (P, K, width) that were just collected, one environment's after another's.

        Steps that are `known` are in the statistics already: a run that goes on restores both. The chunk stays as it is
        from then on.
        """
        if self.queues:
            self._tell_device(self._insert_chunk, chunk, known)
        else:
            self._insert_chunk(chunk, known)

    def rows(self) -> FloatArray:
        """Every step in the buffers, oldest first, (rings, steps, width): an agent's rings stand side by side."""
        self._settle()
        return np.concatenate([_in_order(buffer) for buffer in self._buffers])

    def grow(self, capacity: int, chunk: int) -> None:
        """Make room for more steps of each agent; those that are there stay, inserted anew `chunk` by chunk."""
        self._settle()
        kept, self._buffers = [_in_order(buffer) for buffer in self._buffers], self._empty_buffers(capacity)
        each = chunk // self.method.replay.environments
        for s, (rows, shared) in enumerate(zip(kept, self._shared, strict=True)):
            for start in range(0, rows.shape[1], each):
                self._buffers[s] = self._insert(self._buffers[s], rows[:, start : start + each], shared)

    def start(self, updates: int) -> None:
        """Begin to update every learner as many times as told.

        Before anything else is done, `wait` for it; a learner that `queues` takes the next round at any time.
        """
        began, publishing = time.perf_counter(), None
        if self.queues:
            told = self._tell_device(self._dispatch_round, updates, self.time)
            running = [self._workers.submit(_fetch, told, number) for number in range(len(self.jobs))]
            publishing = self._workers.submit(_fold, told)
        else:
            running = [self._workers.submit(self._run, job, updates, self.time) for job in self.jobs]
        self._under_way.append(_Round(began, running, publishing))
        self.time += updates

    def done_within(self, seconds: float) -> bool:
        """Whether the first round under way is done, waiting for it so long."""
        return not wait_for(self._under_way[0].running, seconds).not_done

    def wait(self) -> Learned | None:
        """What the first round under way has come to, once it is done; None where there is none."""
        if not self._under_way:
            return None
        began, running, publishing = self._under_way.popleft()
        found, ended = zip(*(future.result() for future in running), strict=True)
        self.rounds += 1
        self.busy_seconds += max(ended) - max(began, self._ended)
        self._ended = max(ended)
        names = sorted({name for metrics in found for name in metrics})
        metrics = {name: np.concatenate([each[name] for each in found if name in each]) for name in names}
        return Learned(metrics, self.published() if publishing is None else publishing.result())

    @property
    def under_way(self) -> int:
        """Rounds that were started and not waited for."""
        return len(self._under_way)

    def remember(self) -> None:
        """Keep the learners as they stand, until this is asked for again."""
        if self.queues:
            self._remembering = self._tell_device(self._remember)
        else:
            self._remember()

    def remembered(self) -> LearnerStates:
        """The learners as they were then; what the device was told since is not waited for."""
        if self._remembering is not None:
            self._remembering.result()
        joined: LearnerStates = _on_host(self._remembered)
        return joined

    def states(self) -> LearnerStates:
        """Every learner of the whole population, and what they see observations through."""
        self._settle()
        joined: LearnerStates = _on_host(self._shards())
        return joined

    def published(self) -> Published:
        """What acts and pays, in NumPy, P on every leading axis."""
        self._settle()
        return _folded(self._publish_shards())

    def restore(self, states: LearnerStates, time: int) -> None:
        """Take over what `states` gave."""
        self._settle()
        for s, agents in enumerate(self._slices):
            part = jax.tree.map(lambda x, a=agents: jnp.array(x[a]), states)
            self._learners[s], self._statistics[s] = list(part.learners), part.statistics
        self.time = time

    @property
    def buffer_bytes(self) -> int:
        """Of all agents' replay buffers."""
        return sum(leaf.nbytes for leaf in jax.tree.leaves(self._buffers))

    def drain(self) -> None:
        """Wait for all that is under way, whatever comes of it."""
        with contextlib.suppress(Exception):
            while self._under_way:
                self.wait()
            self._settle()

    def close(self) -> None:
        """End the threads; those that still compile the first round end by themselves."""
        compiling = self.rounds == 0 and bool(self._under_way)
        self._device.shutdown(wait=not compiling, cancel_futures=True)
        self._workers.shutdown(wait=not compiling, cancel_futures=True)

    def _shards(self) -> list[LearnerStates]:
        """Each shard's part, on its device."""
        shards = zip(self._learners, self._statistics, strict=True)
        return [LearnerStates(tuple(learners), statistics) for learners, statistics in shards]

    def _remember(self) -> None:
        self._remembered = self._shards()

    def _insert_chunk(self, chunk: FloatArray, known: bool) -> None:
        for s, (agents, shared) in enumerate(zip(self._slices, self._shared, strict=True)):
            new = jnp.asarray(chunk[agents])  # taken to the device once
            self._buffers[s] = self._insert(self._buffers[s], new.reshape(len(shared), -1, chunk.shape[2]), shared)
            if self._statistics[s] is not None and not known:
                self._statistics[s] = self._observe(self._statistics[s], new, self._agents[s])

    def _empty_buffers(self, capacity: int) -> list[Replay]:
        settings = self.method.replay
        return [replay.init(len(shared), capacity // settings.environments, settings) for shared in self._shared]

    def _run(self, job: Job, updates: int, clock: int) -> tuple[Metrics, float]:
        """One job's updates; their metrics, and when they were done."""
        return _arrived(self._dispatch(job, updates, clock))

    def _tell_device(self, call: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        """Let the device's thread do something after what it was told before; once a thing fails, all after it do."""
        before = self._told

        def do() -> Any:
            if before is not None:
                before.result()
            return call(*arguments)

        self._told = self._device.submit(do)
        return self._told

    def _settle(self) -> None:
        """Wait until the device's thread has done what it was told."""
        if self._told is not None:
            self._told.result()

    def _dispatch_round(self, updates: int, clock: int) -> "_Dispatched":
        """A round's updates, and what is published after them, on their way."""
        metrics = [self._dispatch(job, updates, clock) for job in self.jobs]
        dispatched = _Dispatched(metrics, self._publish_shards())
        for leaf in jax.tree.leaves(dispatched):  # asked for now, they travel at once when they are there
            leaf.copy_to_host_async()
        return dispatched

    def _dispatch(self, job: Job, updates: int, clock: int) -> Any:
        """Hand one job's updates to its device; their metrics, which may still be on their way."""
        s, mine = job.shard, tuple(self._learners[job.shard][number] for number in job.which)
        with _own_errors():
            new, metrics = self._update(
                mine,
                self._buffers[s],
                self._agents[s],
                self._statistics[s],
                np.int32(clock),
                which=job.which,
                updates=updates,
            )
        for number, learner in zip(job.which, new, strict=True):
            self._learners[s][number] = learner
        return metrics

    def _publish_shards(self) -> list[Any]:
        """What acts and pays, of each shard, on its device."""
        shards = zip(self._learners, self._statistics, self._agents, strict=True)
        return [self._publish(*shard) for shard in shards]

    def _actors(self, learners: Sequence[Any]) -> tuple[Any, ...]:
        """Of every gear that is trained, in order, then the master's."""
        actors: dict[int, Any] = {}
        for learner, state in zip(self.method.gears, learners[:-1], strict=True):
            actors |= dict(zip(learner.gears, learner.actors(state), strict=True))
        return (*(actors[gear] for gear in sorted(actors)), jax.vmap(self.method.master.actor)(learners[-1]))

    def _published(self, learners: Sequence[Any], statistics: Statistics | None, agents: AgentParameters) -> Any:
        if statistics is None:
            return self._actors(learners), None, None
        units = algorithm.cost_units(statistics, agents, self.method)
        return self._actors(learners), algorithm.normalisers(statistics, self.method), units

    def _no_statistics(self, population: int) -> Statistics | None:
        if not self.method.tracks_statistics:
            return None
        settings = self.method.replay
        one = normalisation.init(settings.columns.obs_dim, settings.environments)
        found: Statistics = jax.tree.map(lambda x: jnp.broadcast_to(x, (population, *x.shape)), one)
        return found


def has_accelerator() -> bool:
    """Whether learners run on a device of their own, and the cores are free for the environments."""
    return jax.default_backend() != "cpu"


def keep_compiled_programs() -> None:
    """Let JAX keep what it compiles on disk, so that the next run of the same shapes starts at once."""
    if jax.config.jax_compilation_cache_dir is None:  # type: ignore[attr-defined]
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        jax.config.update("jax_compilation_cache_dir", str(Path(home) / "lowgear" / "compiled"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


def balanced(which: Sequence[int], groups: int, method: Method) -> list[tuple[int, ...]]:
    """The learners numbered `which` in at most so many groups of work as even as may be, the dearest placed first."""
    found: list[list[int]] = [[] for _ in range(max(1, min(groups, len(which))))]
    for number in sorted(which, key=lambda n: -method.flops(n)):
        min(found, key=lambda group: sum(map(method.flops, group))).append(number)
    return [tuple(sorted(group)) for group in found]


def _in_order(buffer: Replay) -> FloatArray:
    """Rows of a buffer, oldest first, in NumPy."""
    written, capacity = int(buffer.written), buffer.rows.shape[1]
    rows = np.array(buffer.rows)
    return rows[:, :written] if written <= capacity else np.roll(rows, -(written % capacity), axis=1)


def _arrived(metrics: Any) -> tuple[Metrics, float]:
    """A job's metrics once they are there, and when that was."""
    with _own_errors():
        return dict(jax.device_get(metrics)), time.perf_counter()


def _fetch(told: "Future[_Dispatched]", job: int) -> tuple[Metrics, float]:
    """As `_arrived`, of what the device's thread was told to do."""
    return _arrived(told.result().metrics[job])


def _fold(told: "Future[_Dispatched]") -> Published:
    return _folded(told.result().published)


def _folded(shards: Sequence[Any]) -> Published:
    """What was published, in NumPy, the normaliser folded into the networks."""
    networks, normaliser, cost_units = _on_host(shards)
    if normaliser is not None:
        networks = tuple(normalisation.fold(network, normaliser) for network in networks)
    return Published(tuple(networks), cost_units)


@contextlib.contextmanager
def _own_errors() -> Iterator[None]:
    """An environment that fails when asked about a goal fails inside the compiled program: the error as it was."""
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        _, name, message = str(error).rpartition("LowgearError: ")
        if not name:
            raise
        raise LowgearError(message.splitlines()[0]) from None


def _on_host(shards: Sequence[Any]) -> Any:
    """Shards of the same shapes as one, in NumPy."""
    return jax.tree.map(lambda *parts: np.concatenate([np.array(part) for part in parts]), *shards)
