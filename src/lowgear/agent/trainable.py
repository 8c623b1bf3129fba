"""What an agent learns on with: its configuration, its environment, and a training that is open or was put down."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lowgear import LowgearError
from lowgear.agent.given import GivenEnv
from lowgear.config.run import RunConfig, whole_chunks
from lowgear.config.run_directory import RunDirectory
from lowgear.config.tasks import check_trust
from lowgear.policy.header import PolicyHeader

if TYPE_CHECKING:
    from lowgear.training.open_ended import OpenEnded, Snapshot

OF_ENVIRONMENT = ("environments", "end_on_success", "max_episode_steps")  # settings of a recipe


class Trainable:
    """One agent's side of learning."""

    def __init__(
        self, config: RunConfig, given: GivenEnv | None = None, run: tuple[RunDirectory, RunConfig, int] | None = None
    ) -> None:
        self.config = config  # its steps are those of its first training, over which its master explores
        self.training: OpenEnded | None = None
        self._given = given
        self._run = run  # that it was loaded from, the run's own configuration, and the agent's number there
        self._snapshot: Snapshot | None = None
        self._lost: str | None = None  # why it cannot learn on

    @property
    def given(self) -> GivenEnv:
        """Its environment; a run's is made by name, if it may be."""
        if self._given is None:
            if self._run is None:
                raise LowgearError("the environment did not come along with the copy: call set_env(env) first")
            check_trust(self.config.task, self._run[0].config, self._run[0].trust)
            settings = {name: getattr(self.config.recipe, name) for name in OF_ENVIRONMENT}
            self._given = GivenEnv(self.config.task, self.config.recipe.name, settings)
        return self._given

    @property
    def has_env(self) -> bool:
        """Whether one was given, or made by name."""
        return self._given is not None

    def open(self, steps: int, done: int) -> "OpenEnded":
        """The training, taken up where it was, for so many steps more than were done."""
        from lowgear.training.open_ended import OpenEnded, read_run

        if self.training is not None:
            self.training.forget_stop()
            return self.training
        if self._lost is not None:
            raise LowgearError(
                f"this agent cannot learn on, {self._lost}: load what save_run kept, or make a new Agent"
            )
        if self._snapshot is not None and not self._snapshot.is_finite:
            raise LowgearError("this agent diverged: make a new one with a lower learning_rate")
        if self._snapshot is None:
            self.config = replace(self.config, steps=whole_chunks(done + steps, self.config.recipe.chunk))
        from_run = self._snapshot is None and self._run is not None
        training = OpenEnded(self.config, self.given.batch, self.config.capacity if from_run else None)
        if from_run and self._run is not None:
            self._snapshot = read_run(*self._run, training)
        if self._snapshot is not None:
            training.take_up(self._snapshot)
            self._snapshot = None
        self.training = training
        return training

    def latest(self) -> "Snapshot | None":
        """All that going on from here needs; None where nothing was learned, or not since the run was loaded."""
        return self._snapshot if self.training is None else self.training.snapshot()

    def rescue(self) -> None:
        """Put the training down after something went wrong in it."""
        assert self.training is not None
        try:
            self._snapshot = self.training.rescue()
        except Exception as error:  # of the learners themselves: what they held is gone
            self._lost = f"an error took what its learners held ({type(error).__name__})"
        self.training = None

    def move(self, env: Any, header: PolicyHeader | None) -> None:
        """Into another environment, of the same sizes."""
        settings = {name: getattr(self.config.recipe, name) for name in OF_ENVIRONMENT}
        given = GivenEnv(env, self.config.recipe.name, settings)
        spec = given.batch.spec
        if header is not None and (spec.obs_dim, spec.act_dim) != (header.obs_dim, header.act_dim):
            raise LowgearError(
                f"env has {spec.obs_dim} observations and {spec.act_dim} actions; this agent was trained on "
                f"{header.obs_dim} and {header.act_dim}"
            )
        self._snapshot, self.training, self._given = self.latest(), None, given

    def __getstate__(self) -> dict[str, Any]:
        given = self._given if self._given is not None and self._given.travels() else None
        return self.__dict__ | {"training": None, "_snapshot": self.latest(), "_given": given}
