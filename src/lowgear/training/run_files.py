"""What a run writes besides its checkpoints: metrics, policies, and which agents stopped."""

from collections.abc import Callable, Mapping

from lowgear.config.run_directory import RunDirectory
from lowgear.policy.file import Policy
from lowgear.policy.files import write_whole
from lowgear.training.metrics_file import MetricsFile
from lowgear.training.refusals import Refusals
from lowgear.training.stopped import Stopped, stopped_file


class RunFiles:
    """The files in a run's directory; without one, nothing is written."""

    def __init__(self, directory: RunDirectory | None, go_on: bool, tell: Callable[[str], None]) -> None:
        self.directory = directory
        self.metrics = MetricsFile(None if directory is None else directory.metrics)
        self.refusals = Refusals(go_on, tell)

    def save_policy(self, agent: int, policy: Policy, best: bool = False) -> None:
        """An agent's last policy, or its best."""
        if self.directory is not None:
            self.refusals.save(self.directory.policy(agent, best), policy.save)

    def save_stopped(self, stopped: Mapping[int, Stopped]) -> None:
        """Agents that go no further."""
        if self.directory is not None:
            data = stopped_file(stopped)
            self.refusals.save(self.directory.stopped, lambda path: write_whole(path, data))

    def write_waiting(self) -> None:
        """What could not be written before, and belongs to the next checkpoint."""
        self.refusals.retry()
        self.metrics.flush()
