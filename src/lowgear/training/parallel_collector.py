"""Collects for a population in several groups at once: while the environments of some step, others act.

Each group has agents, environments and a process of its own. Agents never read each other, so the cut changes nothing
but the time: whichever group is faster, the rows are the same.
"""

import itertools
from collections.abc import Iterable

import numpy as np

from lowgear.envs.protocol import BatchEnv
from lowgear.learning.replay import Columns
from lowgear.policy.arrays import FloatArray
from lowgear.policy.networks import Weights, take
from lowgear.training.collect import Behaviour, FinishedEpisode
from lowgear.training.collector_process import Collected, CollectorHere, CollectorProcess


class ParallelCollector:
    """The groups as one. `chunk`: steps of each agent that are collected at once, in all its environments together."""

    def __init__(self, env: BatchEnv, behaviour: Behaviour, weights: Weights, chunk: int, groups: int = 1) -> None:
        agents, environments = len(behaviour.seeds), behaviour.environments
        groups = min(groups, agents)
        bounds = [agents * group // groups for group in range(groups + 1)]
        sizes = [(b - a) * environments for a, b in itertools.pairwise(bounds)]
        envs = env.split(sizes) if groups > 1 else [env]
        self._slices = [slice(a, b) for a, b in itertools.pairwise(bounds)] if len(envs) > 1 else [slice(0, agents)]
        self.columns = Columns(env.spec.obs_dim, env.spec.act_dim, behaviour.holds)
        self.steps = 0  # taken by each agent
        self.env_seconds = 0.0  # spent inside the environments, by the groups on average
        self.bad: dict[int, str] = {}  # agents whose environments failed, and what came first
        self._chunk, self._weights = chunk, weights
        make = CollectorProcess if len(envs) > 1 else CollectorHere
        shape = environments, chunk // environments, self.columns.width
        self._groups = [
            make(each, behaviour.of(agents), take(weights, agents), (agents.stop - agents.start, *shape))
            for each, agents in zip(envs, self._slices, strict=True)
        ]

    @property
    def groups(self) -> int:
        """How many there are."""
        return len(self._groups)

    @property
    def weights(self) -> Weights:
        """What acts from the next chunk on."""
        return self._weights

    @weights.setter
    def weights(self, weights: Weights) -> None:
        self._weights = weights
        for group, agents in zip(self._groups, self._slices, strict=True):
            group.use(take(weights, agents))

    def restart(self, number: int) -> None:
        """Open new episodes everywhere, from seeds that depend on the agents' seeds and `number` alone."""
        self._all("restart", number, self.steps)

    def retire(self, agents: Iterable[int]) -> None:
        """Step the environments of these no more, where that can be had; what they give is not looked at."""
        for group, own in zip(self._groups, self._slices, strict=True):
            group.begin("retire", [agent - own.start for agent in agents if own.start <= agent < own.stop])
            group.result()

    def collect(self, last: bool = False) -> tuple[FloatArray, list[FinishedEpisode]]:
        """A chunk: rows (P, E, steps, width), and the episodes that ended; with `last`, all end after it."""
        episodes = self._all("collect", last)
        self.steps += self._chunk
        return np.concatenate([group.rows for group in self._groups]), episodes

    def collect_again(self, rows: FloatArray) -> list[FinishedEpisode]:
        """Take a chunk's steps once more; raises `Unrepeatable` where environments do not repeat themselves."""
        for group, agents in zip(self._groups, self._slices, strict=True):
            group.rows[:] = rows[agents]
        episodes = self._all("collect_again")
        self.steps += self._chunk
        return episodes

    def close(self) -> None:
        """End the processes and the environments."""
        for group in self._groups:
            group.close()

    def _all(self, what: str, *arguments: object) -> list[FinishedEpisode]:
        """Let every group do something; the episodes that ended meanwhile.

        What goes wrong in one is raised when all have answered: an answer left unread would be taken for the next.
        """
        for group in self._groups:
            group.begin(what, *arguments)
        found: list[tuple[slice, Collected]] = []
        failed: Exception | None = None
        for group, agents in zip(self._groups, self._slices, strict=True):
            try:
                found.append((agents, group.result()))
            except Exception as error:
                failed = failed or error
        if failed is not None:
            raise failed
        self.env_seconds = sum(collected.env_seconds for _, collected in found) / len(found)
        self.bad = {agents.start + agent: why for agents, collected in found for agent, why in collected.bad.items()}
        return [
            episode._replace(agent=agents.start + episode.agent)
            for agents, collected in found
            for episode in collected.episodes
        ]
