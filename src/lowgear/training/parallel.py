"""Runs the learners of a population on this machine's devices, beside whatever the caller does meanwhile.

On a CPU with several cores every agent is a job of its own: a core then works on one agent's networks, which its cache
holds. Agents that are left over, where they do not share out evenly, are cut into jobs of some of their learners.
Agents and learners never read each other, so the cut changes nothing but the time. On a GPU it is one job, and the next
one is queued there before the last is done, by a thread of its own: neither the GPU nor the caller waits for the other.
"""

import contextlib
import itertools
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from typing import Any, NamedTuple

import jax
import numpy as np

from lowgear.config.cores import cores as machine_cores
from lowgear.learning.learners import AgentParameters
from lowgear.learning.method import Method
from lowgear.policy.arrays import FloatArray
from lowgear.training.device import DeviceThread, has_accelerator, keep_compiled_programs
from lowgear.training.shard import LearnerStates, Published, Shard, folded, on_host, own_errors, programs_of

Metrics = dict[str, FloatArray]


class LearnerJob(NamedTuple):
    """A part of the learners: a slice of the agents, and which of their learners."""

    shard: int
    which: tuple[int, ...]


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
        bounds = [population * s // shards for s in range(shards + 1)]
        self.method = method
        self.queues = has_accelerator()  # a round may be started before the last is done
        self._fused = not on_cores  # a job's learners are one program
        self.time = 0  # updates so far
        self.rounds, self.busy_seconds = 0, 0.0  # of updates, and what they took from start to the last job's end
        programs = programs_of(method)
        self._shards = [Shard(programs, slice(a, b), agents, capacity) for a, b in itertools.pairwise(bounds)]
        which = range(method.learner_count) if which is None else which
        left = shards % cores if parts is None else shards  # agents that are cut: those that do not share out evenly
        groups = balanced(which, parts or -(-cores // max(left, 1)), method)
        # Whole agents first, then the dearest parts: whichever core is free takes the next, so all end together.
        groups.sort(key=lambda group: -sum(map(method.flops, group)))
        self.jobs = [LearnerJob(s, tuple(sorted(which))) for s in range(shards - left)]
        self.jobs += [LearnerJob(s, group) for group in groups for s in range(shards - left, shards)]
        self._workers = ThreadPoolExecutor(min(len(self.jobs), cores), thread_name_prefix="learner")
        self._device = DeviceThread()
        self._remembering: Future[Any] | None = None  # by which the device's thread keeps the learners
        self._remembered: list[LearnerStates] = []  # of each shard, on its device
        self._under_way: deque[_Round] = deque()
        self._ended = 0.0  # when the last round was done, by `time.perf_counter`

    def insert(self, chunk: FloatArray, known: bool = False) -> None:
        """Store the steps (P, K, width) that were just collected, one environment's after another's.

        Steps that are `known` are in the statistics already: a run that goes on restores both. The chunk stays as it is
        from then on.
        """
        if self.queues:
            self._device.tell(self._insert, chunk, known)
        else:
            self._insert(chunk, known)

    def rows(self) -> FloatArray:
        """Every step in the buffers, oldest first, (rings, steps, width): an agent's rings stand side by side."""
        self._device.settle()
        return np.concatenate([shard.rows() for shard in self._shards])

    def grow(self, capacity: int, chunk: int) -> None:
        """Make room for more steps of each agent; those that are there stay, inserted anew `chunk` by chunk."""
        self._device.settle()
        for shard in self._shards:
            shard.grow(capacity, chunk)

    def start(self, updates: int) -> None:
        """Begin to update every learner as many times as told.

        Before anything else is done, `wait` for it; a learner that `queues` takes the next round at any time.
        """
        began, publishing = time.perf_counter(), None
        if self.queues:
            told = self._device.tell(self._dispatch_round, updates, self.time)
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
            self._remembering = self._device.tell(self._remember)
        else:
            self._remember()

    def remembered(self) -> LearnerStates:
        """The learners as they were then, on the host; what the device was told since is not waited for."""
        if self._remembering is not None:
            self._remembering.result()
        joined: LearnerStates = on_host(self._remembered)
        return joined

    def states(self) -> LearnerStates:
        """Every learner of the whole population, and what they see observations through, on the host."""
        self._device.settle()
        joined: LearnerStates = on_host([shard.states() for shard in self._shards])
        return joined

    def published(self) -> Published:
        """What acts and pays, in NumPy, P on every leading axis."""
        self._device.settle()
        return folded([shard.published() for shard in self._shards])

    def restore(self, states: LearnerStates, time: int) -> None:
        """Take over what `states` gave."""
        self._device.settle()
        for shard in self._shards:
            shard.restore(states)
        self.time = time

    @property
    def buffer_bytes(self) -> int:
        """Of all agents' replay buffers."""
        return sum(leaf.nbytes for shard in self._shards for leaf in jax.tree.leaves(shard.buffer))

    def drain(self) -> None:
        """Wait for all that is under way, whatever comes of it."""
        while self._under_way:
            with contextlib.suppress(Exception):
                self.wait()
        with contextlib.suppress(Exception):
            self._device.settle()

    def close(self) -> None:
        """End the threads; those that still compile the first round end by themselves."""
        compiling = self.rounds == 0 and bool(self._under_way)
        self._device.close(wait=not compiling)
        self._workers.shutdown(wait=not compiling, cancel_futures=True)

    def _insert(self, chunk: FloatArray, known: bool) -> None:
        for shard in self._shards:
            shard.insert(chunk, known)

    def _remember(self) -> None:
        self._remembered = [shard.states() for shard in self._shards]

    def _run(self, job: LearnerJob, updates: int, clock: int) -> tuple[Metrics, float]:
        """One job's updates; their metrics, and when they were done."""
        return _arrived(self._update(job, updates, clock))

    def _update(self, job: LearnerJob, updates: int, clock: int) -> Any:
        """A job's updates on their way; their metrics."""
        # On a CPU a program for each learner, which compiles sooner than one for all, and serves other cuts as well.
        parts = [job.which] if self._fused else [(number,) for number in job.which]
        found = [self._shards[job.shard].update(part, updates, clock) for part in parts]
        return {name: value for metrics in found for name, value in metrics.items()}

    def _dispatch_round(self, updates: int, clock: int) -> _Dispatched:
        """A round's updates, and what is published after them, on their way."""
        metrics = [self._update(job, updates, clock) for job in self.jobs]
        dispatched = _Dispatched(metrics, [shard.published() for shard in self._shards])
        for leaf in jax.tree.leaves(dispatched):  # asked for now, they travel at once when they are there
            leaf.copy_to_host_async()
        return dispatched


def balanced(which: Sequence[int], groups: int, method: Method) -> list[tuple[int, ...]]:
    """The learners numbered `which` in at most so many groups of work as even as may be, the dearest placed first."""
    found: list[list[int]] = [[] for _ in range(max(1, min(groups, len(which))))]
    for number in sorted(which, key=lambda n: -method.flops(n)):
        min(found, key=lambda group: sum(map(method.flops, group))).append(number)
    return [tuple(sorted(group)) for group in found]


def _arrived(metrics: Any) -> tuple[Metrics, float]:
    """A job's metrics once they are there, and when that was."""
    with own_errors():
        return dict(jax.device_get(metrics)), time.perf_counter()


def _fetch(told: "Future[_Dispatched]", job: int) -> tuple[Metrics, float]:
    """As `_arrived`, of what the device's thread was told to do."""
    return _arrived(told.result().metrics[job])


def _fold(told: "Future[_Dispatched]") -> Published:
    return folded(told.result().published)
