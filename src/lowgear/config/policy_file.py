"""A policy file in the place of a run directory: a run of one agent, without its training."""

from dataclasses import replace
from functools import cached_property
from pathlib import Path

from lowgear import LowgearError
from lowgear.config import recipes
from lowgear.config.agents import AgentConfig
from lowgear.config.run import RunConfig
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import check_trust
from lowgear.policy.dial import Dial
from lowgear.policy.file import Policy, load


def open_run(path: str | Path, trust: bool = False) -> RunDirectory:
    """The run in a directory, or the one that a policy file stands for."""
    path = Path(path)
    if path.is_file():
        return PolicyFile(path, trust)
    if not path.is_dir():
        raise LowgearError(f"{path}: no such run directory or policy file; `lowgear train` makes one")
    return RunDirectory(path, trust)


class PolicyFile(RunDirectory):
    """What is found out about the policy goes beside the file: NAME-evaluation.json."""

    def __init__(self, path: Path, trust: bool = False) -> None:
        super().__init__(path, trust)
        self.evaluation = self.beside("evaluation.json")

    @cached_property
    def _policy(self) -> Policy:
        return load(self.path)

    def beside(self, name: str) -> Path:
        """A file of the run, named after the policy."""
        return self.path.with_name(f"{self.path.stem}-{name}")

    def read_config(self, environment: bool = True) -> RunConfig:
        """As far as the policy's header tells."""
        header = self._policy.header
        if environment:
            check_trust(header.task, self.path, self.trust)
        recipe = replace(
            recipes.behind(header),
            name=header.recipe,
            periods=header.periods,
            master_units=header.master_units,
            actor_activation=header.activation,
            dial=header.dial is not None,
            known_prices=header.known_prices,
        )
        return RunConfig(
            task=header.task,
            recipe=recipe,
            gears=header.gears,
            steps=max(1, header.steps),
            agents=(
                AgentConfig(
                    variant=header.variant,
                    seed=header.seed,
                    cost_coefficient=header.cost_coefficient,
                    dial=header.dial or Dial(header.cost_coefficient, header.cost_coefficient),
                    discount=recipe.discount,
                    learning_rate=recipe.learning_rate,
                ),
            ),
            boltzmann=header.boltzmann,
            evaluate_every=0,
            evaluate_episodes=1,
            checkpoint_every=recipe.chunk,
            log_every=recipe.chunk,
        )

    def load_policies(self, best: bool = False) -> list[Policy]:
        """The one that there is."""
        return [self.load_policy(self.read_config(), 0, best)]

    def load_policy(self, config: RunConfig, agent: int, best: bool = False) -> Policy:  # noqa: ARG002
        """The one that there is."""
        if best or agent:
            raise LowgearError(f"{self.path} is one policy: --agent and --best choose from a run directory")
        return self._policy

    def policy(self, agent: int, best: bool = False) -> Path:  # noqa: ARG002
        """The file."""
        return self.path
