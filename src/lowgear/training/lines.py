"""What a run says of itself, line by line: the same to metrics.jsonl and to whoever listens."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lowgear.config.run import RunConfig
from lowgear.envs.protocol import EnvSpec
from lowgear.policy.arrays import FloatArray
from lowgear.training.collect import FinishedEpisode
from lowgear.training.progress import LogLine
from lowgear.training.stopped import Stopped


@dataclass
class Interval:
    """What happened to one agent since the last log line."""

    episodes: list[FinishedEpisode]
    last: FinishedEpisode | None = None  # of earlier intervals, shown until a new one ends

    @property
    def shown(self) -> list[FinishedEpisode]:
        """What a log line tells of."""
        return self.episodes or ([self.last] if self.last else [])

    def next(self) -> "Interval":
        """The one after the line."""
        return Interval([], self.shown[-1] if self.shown else None)


class Lines:
    """Makes a run's lines, of what has happened to each agent since the last ones."""

    def __init__(self, config: RunConfig, spec: EnvSpec) -> None:
        self._config, self._spec = config, spec
        self._clock = (time.perf_counter(), 0)
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget what has happened: new episodes have begun everywhere."""
        self.intervals = [Interval([]) for _ in self._config.agents]

    def start_clock(self, steps: int) -> None:
        """The rate counts from here."""
        self._clock = (time.perf_counter(), steps)

    def add(self, episodes: Sequence[FinishedEpisode]) -> None:
        """Episodes that have ended."""
        for episode in episodes:
            self.intervals[episode.agent].episodes.append(episode)

    def next_interval(self) -> None:
        """What happens from now on belongs to the next lines."""
        self.intervals = [interval.next() for interval in self.intervals]

    def of_training(
        self,
        steps: int,
        cost_units: FloatArray | None,
        metrics: Mapping[str, FloatArray],
        stopped: Mapping[int, Stopped],
    ) -> list[LogLine]:
        """One for each agent, of the interval that ends here."""
        now, (then, steps_then) = time.perf_counter(), self._clock
        rate = (steps - steps_then) / max(now - then, 1e-9)
        self._clock = (now, steps)
        lines = []
        for agent, interval in enumerate(self.intervals):
            ended = interval.shown
            told = any(e.success is not None for e in ended)
            line = self.head("train", agent, steps, cost_units) | {
                "steps_per_second": rate,
                "episodes": len(interval.episodes),
                "return": float(np.mean([e.episode_return for e in ended])) if ended else None,
                "large_share": float(np.mean([e.large_share for e in ended])) if ended else None,
                "success": float(np.mean([bool(e.success) for e in ended])) if told else None,
                "scored_by": "success" if self._spec.has_success else "return",
            }
            if agent in stopped:
                line["stopped"] = stopped[agent].why
            else:
                line |= {name: float(value[agent]) for name, value in metrics.items()}
            lines.append(line)
        self.next_interval()
        return lines

    def head(self, kind: str, agent: int, steps: int, cost_units: FloatArray | None) -> LogLine:
        """What every line begins with."""
        settings = self._config.agents[agent]
        unit = None if cost_units is None else float(cost_units[agent])
        return {
            "kind": kind,
            "steps": steps,
            "agent": agent,
            "variant": settings.variant,
            "seed": settings.seed,
            "cost_coefficient": settings.in_rewards(unit or 1.0).cost_coefficient,
            "relative_coefficient": settings.cost_coefficient if settings.relative else None,
        }
