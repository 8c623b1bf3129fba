"""Runs the learners of a population on this machine's devices, beside whatever the caller does meanwhile.

On a CPU with several cores every agent is a job of its own, or several, one for each part of its learners, where there
are fewer agents than cores: a core then works on one agent's networks, which its cache holds. Agents and learners never
read each other, so the cut changes nothing but the time. On a GPU it is one job.
"""

import logging
import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from lowgear import asymmetric, dqn, normaliser, replay, scale
from lowgear.asymmetric import Knobs, Learners, Method, View
from lowgear.errors import LowgearError
from lowgear.normaliser import Statistics

Metrics = dict[str, npt.NDArray[np.float32]]


class Named(logging.Filter):
    """Drops what JAX logs about an error of ours that a callback raised: it is told once, without its traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log the record."""
        return not (record.exc_info and isinstance(record.exc_info[1], LowgearError))


logging.getLogger("jax._src.callback").addFilter(Named())


class Job(NamedTuple):
    """A part of the learners: a slice of the agents, and which of their learners."""

    shard: int
    which: tuple[int, ...]


class Memory(NamedTuple):
    """All that learning has left behind, on the host."""

    learners: Learners
    statistics: Statistics


class Learner:
    """The learners and rings of a population, updated chunk by chunk in the background; all learners or those named."""

    def __init__(
        self,
        method: Method,
        knobs: Knobs,
        capacity: int,
        cores: int | None = None,
        which: Sequence[int] | None = None,
    ) -> None:
        keep_compiled_programs()
        population = len(knobs.seed)
        if cores is None:
            cores = os.cpu_count() or 1 if jax.default_backend() == "cpu" else 1
        shards = _shards(population, cores)
        self.method = method
        self.time = 0  # updates so far
        self.bounds = [population * s // shards for s in range(shards + 1)]
        self._slices = [slice(a, b) for a, b in zip(self.bounds, self.bounds[1:], strict=False)]
        self._knobs = [jax.tree.map(lambda v, s=s: jnp.asarray(v[s]), knobs) for s in self._slices]
        # One program, which the next run finds in the cache; operation by operation it would be dozens.
        init = jax.jit(partial(asymmetric.init, method=method))
        self.learners = [list(init(k)) for k in self._knobs]
        self._lanes = method.replay.lanes
        begin = jax.jit(jax.vmap(lambda _: normaliser.init(method.obs_dim, self._lanes)))
        self._statistics: list[Statistics] = [begin(k.seed) for k in self._knobs]
        self._meet = jax.jit(partial(asymmetric.meet, method=method))
        self._view = jax.jit(partial(asymmetric.view, method=method))
        self._views: list[View] = [self._view(*of) for of in zip(self._statistics, self._knobs, strict=True)]
        rings = [self._lanes * (s.stop - s.start) for s in self._slices]
        self._rings = [replay.init(count, capacity // self._lanes, method.replay) for count in rings]
        self._shared = [jnp.repeat(k.shared, self._lanes) for k in self._knobs]
        named = range(len(method.gears) + 1) if which is None else which
        groups = _cut(method, -(-cores // shards), named)
        self._jobs = [Job(s, group) for s in range(shards) for group in groups]
        self._pool = ThreadPoolExecutor(min(len(self._jobs), cores), thread_name_prefix="learner")
        self._running: list[Future[Metrics]] = []
        self._insert = jax.jit(partial(replay.insert, settings=method.replay), donate_argnums=0)
        self._learn = jax.jit(
            partial(asymmetric.learn, method=method), static_argnames=("which", "updates"), donate_argnums=0
        )

    def insert(self, chunk: npt.NDArray[np.float32]) -> None:
        """Store the steps (P, K, width) that were just collected, one environment's after another's."""
        self.refill(chunk)
        for s, agents in enumerate(self._slices):
            self._statistics[s] = self._meet(self._statistics[s], chunk[agents], self._knobs[s])

    def refill(self, chunk: npt.NDArray[np.float32]) -> None:
        """Store steps that the statistics have met before, as a run does that goes on from a checkpoint."""
        width = chunk.shape[2]
        for s, (agents, shared) in enumerate(zip(self._slices, self._shared, strict=True)):
            lanes = chunk[agents].reshape(len(shared), -1, width)
            self._rings[s] = self._insert(self._rings[s], lanes, shared)

    def start(self, updates: int) -> None:
        """Begin to update every learner as many times as told; `wait` for it before anything else."""
        self._views = [self._view(*of) for of in zip(self._statistics, self._knobs, strict=True)]
        self._running = [self._begin(job, updates) for job in self._jobs]
        self.time += updates

    def wait(self) -> Metrics:
        """Until the updates are done; their metrics, (P,) each."""
        found = [future.result() for future in self._running]
        self._running = []
        names = sorted({name for metrics in found for name in metrics})
        return {name: np.concatenate([metrics[name] for metrics in found if name in metrics]) for name in names}

    def state(self) -> Memory:
        """Every learner of the whole population, and what they see observations through."""
        shards = [
            jax.tree.map(lambda x: np.array(x), Memory(tuple(learners), statistics))
            for learners, statistics in zip(self.learners, self._statistics, strict=True)
        ]
        joined: Memory = _join(shards)
        return joined

    def acting(self) -> Any:
        """What acts: each gear's actor, then the master, as layers of NumPy arrays, P on every leading axis."""
        shards = [
            tuple(
                jax.tree.map(lambda x: np.array(x), part)
                for part in (*(gear.params.policy.actor for gear in learners[:-1]), dqn.acting(learners[-1].params))
            )
            for learners in self.learners
        ]
        networks = _join(shards)
        seen = _join([jax.tree.map(lambda x: np.array(x), view.observations) for view in self._views])
        return tuple(scale.fold(network, seen) for network in networks)

    def restore(self, state: Memory, time: int) -> None:
        """Take over a state that `state` gave."""
        for s, agents in enumerate(self._slices):
            part = jax.tree.map(lambda x, a=agents: jnp.array(x[a]), state)
            self.learners[s], self._statistics[s] = list(part.learners), part.statistics
            self._views[s] = self._view(part.statistics, self._knobs[s])
        self.time = time

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _begin(self, job: Job, updates: int) -> Future[Metrics]:
        return self._pool.submit(self._run, job, self.time, updates)

    def _run(self, job: Job, time: int, updates: int) -> Metrics:
        mine: Learners = tuple(self.learners[job.shard][number] for number in job.which)
        ring, knobs, view = self._rings[job.shard], self._knobs[job.shard], self._views[job.shard]
        try:
            new, metrics = self._learn(mine, ring, knobs, view, np.int32(time), which=job.which, updates=updates)
            found = dict(jax.device_get(metrics))
        except jax.errors.JaxRuntimeError as error:
            # An environment that fails when asked about a goal fails inside the compiled program.
            _, name, message = str(error).rpartition("LowgearError: ")
            if not name:
                raise
            raise LowgearError(message.splitlines()[0]) from None
        for number, learner in zip(job.which, new, strict=True):
            self.learners[job.shard][number] = learner
        return found


def keep_compiled_programs() -> None:
    """Let JAX keep what it compiles on disk, so that the next run of the same shapes starts at once."""
    if jax.config.jax_compilation_cache_dir is None:  # type: ignore[attr-defined]
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        jax.config.update("jax_compilation_cache_dir", str(Path(home) / "lowgear" / "compiled"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


def _shards(population: int, cores: int) -> int:
    """Into how many equal parts the agents are cut: equal, so that one compiled program serves them all."""
    return population if cores > 1 else 1


def _cut(method: Method, parts: int, which: Sequence[int]) -> list[tuple[int, ...]]:
    """The learners named, in at most `parts` groups of work as even as may be, the dearest placed first."""
    groups: list[list[int]] = [[] for _ in range(max(1, min(parts, len(which))))]
    for number in sorted(which, key=lambda n: -_work(method, n)):
        min(groups, key=lambda group: sum(_work(method, n) for n in group)).append(number)
    return [tuple(sorted(group)) for group in groups]


def _work(method: Method, number: int) -> int:
    """What an update of a learner takes, roughly."""
    if number == len(method.gears):
        return method.master_batch * method.master_units**2
    return method.batch * (method.gears[number] ** 2 + 3 * method.critic_units[number] ** 2)


def _join(shards: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *parts: np.concatenate(parts), *shards)
