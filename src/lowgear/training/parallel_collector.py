"""Collects for a population in several groups at once: while the environments of some step, others act.

Each group has agents, environments and a thread of its own. Agents never read each other, so the cut changes nothing
but the time: whichever group is faster, the rows are the same.
"""

import itertools
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from lowgear.envs.protocol import BatchEnv
from lowgear.policy.arrays import FloatArray
from lowgear.policy.controller import Weights, take
from lowgear.training import algorithm
from lowgear.training.collect import Behaviour, Collector, FinishedEpisode


class ParallelCollector:
    """The collectors of all groups, as one; environments that can't be stepped by several threads stay one group."""

    def __init__(self, env: BatchEnv, behaviour: Behaviour, weights: Weights, groups: int = 1) -> None:
        agents, environments = len(behaviour.seeds), behaviour.environments
        slices = _slices(agents, min(groups, agents))
        envs = env.split([(s.stop - s.start) * environments for s in slices]) if len(slices) > 1 else [env]
        self._slices = slices if len(envs) > 1 else _slices(agents, 1)
        self._threads = ThreadPoolExecutor(len(envs), thread_name_prefix="collector") if len(envs) > 1 else None

        def make(env: BatchEnv, agents: slice) -> Collector:
            return Collector(env, behaviour.of(agents), take(weights, agents))

        self._groups: list[Collector] = self._at_once(make, envs, self._slices)
        self._shape, self._weights = (agents, environments), weights
        self.columns = self._groups[0].columns

    @property
    def groups(self) -> int:
        """How many there are."""
        return len(self._groups)

    @property
    def steps(self) -> int:
        """Taken by each agent."""
        return self._groups[0].steps

    @steps.setter
    def steps(self, steps: int) -> None:
        for group in self._groups:
            group.steps = steps

    @property
    def weights(self) -> Weights:
        """What acts from the next chunk on."""
        return self._weights

    @weights.setter
    def weights(self, weights: Weights) -> None:
        self._weights = weights
        for group, agents in zip(self._groups, self._slices, strict=True):
            group.weights = take(weights, agents)

    @property
    def env_seconds(self) -> float:
        """Spent inside the environments, by the groups on average."""
        return sum(group.env_seconds for group in self._groups) / len(self._groups)

    def restart(self, number: int) -> None:
        """Open new episodes everywhere, from seeds that depend on the agents' seeds and `number` alone."""
        self._at_once(lambda group: group.restart(number), self._groups)

    def collect(self, steps: int, last: bool = False) -> tuple[FloatArray, list[FinishedEpisode]]:
        """Rows (P, E, steps, width), and the episodes that ended; with `last`, all end after the final step."""
        rows = np.empty((*self._shape, steps, self.columns.width), np.float32)

        def one(group: Collector, agents: slice) -> list[FinishedEpisode]:
            episodes = algorithm.collect(group, rows[agents], last)
            return [episode._replace(agent=agents.start + episode.agent) for episode in episodes]

        return rows, list(itertools.chain(*self._at_once(one, self._groups, self._slices)))

    def close(self) -> None:
        """End the threads and the environments."""
        if self._threads is not None:
            self._threads.shutdown()
        for group in self._groups:
            group.env.close()

    def _at_once(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
        """The function of each group's arguments, in the groups' threads."""
        return list((self._threads.map if self._threads else map)(function, *arguments))


def _slices(agents: int, groups: int) -> list[slice]:
    bounds = [agents * group // groups for group in range(groups + 1)]
    return [slice(a, b) for a, b in itertools.pairwise(bounds)]
