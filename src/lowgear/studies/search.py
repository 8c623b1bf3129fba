"""A sweep: Optuna proposes settings, each trial is a program with several seeds, poor ones are stopped early.

Optuna, and not Ray Tune: it runs in this process alone, so a sweep needs no cluster and goes through the same pools as
a study; its journal is one file that a sweep goes on from. Trials are judged whenever they are evaluated, by successive
halving without rounds (ASHA): of those that came as far, the best third go on.
"""

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from lowgear import LowgearError
from lowgear.config.run import RunConfig
from lowgear.config.run_directory import RunDirectory
from lowgear.policy.files import read_text, write_whole
from lowgear.studies.child import Result
from lowgear.studies.executors import Watcher
from lowgear.studies.overview import Overview, ProgramStatus
from lowgear.studies.program import Program, cut_here
from lowgear.studies.progress_file import ProgramProgress, score_of
from lowgear.studies.space import Choices, Space, to_json
from lowgear.studies.storage import Remote

INSTALL = "pip install 'lowgear[sweep]'"
JOURNAL, DEFINITION = "journal.log", "sweep.json"
REDUCTION = 3  # of ASHA
MOST_METRICS = 1 << 28  # bytes
MOST_FAILURES = 5  # in a row, from the first trial on


class Trial(NamedTuple):
    """How one stands, or ended."""

    number: int
    state: str  # done, pruned, failed, running
    score: float | None
    settings: dict[str, Any]
    why: str = ""


class Search(Watcher):
    """Proposes programs, hears how they go, keeps what they came to."""

    def __init__(
        self,
        out: Path,
        space: Space,
        trials: int,
        resolve: Callable[[dict[str, Any]], RunConfig],  # a trial's settings
        overview: Overview,
        seed: int = 0,
        remote: Remote | None = None,  # where its programs keep their runs, if not in `out`
    ) -> None:
        try:
            import optuna
        except ImportError:
            raise LowgearError(f"a sweep needs Optuna: {INSTALL}") from None
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._out, self._space, self._trials, self._resolve, self._overview = out, space, trials, resolve, overview
        self._remote = remote
        self._live: dict[str, Any] = {}  # trials by their programs' names
        self._pruned: set[str] = set()
        self._reported: dict[str, set[int]] = {}  # steps at which a program was judged
        example = resolve({})
        _keep_definition(out, example, space)
        self._study = optuna.create_study(
            storage=JournalStorage(JournalFileBackend(str(out / JOURNAL))),
            study_name="sweep",
            direction="maximize",
            load_if_exists=True,
            sampler=optuna.samplers.TPESampler(seed=seed),
            pruner=optuna.pruners.SuccessiveHalvingPruner(
                min_resource=max(1, example.evaluate_every), reduction_factor=REDUCTION
            ),
        )

    def programs(self) -> Iterator[Program]:
        """Trials that were running when a sweep was killed, then new ones, each when there is room for it."""
        from optuna.trial import Trial as Live
        from optuna.trial import TrialState

        for frozen in self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            program = self._begin(Live(self._study, frozen._trial_id))
            if program is not None:
                yield program
        while len(self._study.get_trials(deepcopy=False)) < self._trials:
            program = self._begin(self._study.ask())
            if program is not None:
                yield program

    def on_progress(self, program: Program, progress: ProgramProgress) -> bool | None:
        """Its scores are reported; False where it is not worth going on."""
        self._overview.on_progress(program, progress)
        trial, known = self._live[program.name], self._reported[program.name]
        for steps, score in progress.scores:
            if steps not in known and steps < program.config.steps:
                known.add(steps)
                trial.report(score, steps)
                if trial.should_prune():
                    self._pruned.add(program.name)
                    return False
        return None

    def on_loss(self, program: Program, why: str) -> None:
        """It is started again."""
        self._overview.on_loss(program, why)

    def on_end(self, program: Program, result: Result) -> None:
        """Keep what it came to; one that a signal has stopped goes on with the sweep."""
        from optuna.trial import TrialState

        trial, path = self._live.pop(program.name), self._out / "runs" / program.name
        if self._remote is not None and result.kind != "failed":
            why = self._remote.bring(path, checkpoints=False)
            result = Result("failed", why) if why and result.kind == "done" else result
        self._overview.on_end(program, result)
        if result.kind == "done":
            score = final_score(RunDirectory(path))
            if score is not None and math.isfinite(score):
                self._study.tell(trial, score)
                return
            result = Result("failed", "it was never evaluated")
        if program.name in self._pruned:
            self._study.tell(trial, state=TrialState.PRUNED)
        elif result.kind == "failed":
            self._fail(trial, result.why)

    def results(self) -> list[Trial]:
        """The best first; then those that were stopped early, as far as they came."""
        words = {"COMPLETE": "done", "PRUNED": "stopped early", "FAIL": "failed", "RUNNING": "running"}
        found = [
            Trial(
                one.number,
                words.get(one.state.name, one.state.name.lower()),
                one.value if one.value is not None else max(one.intermediate_values.items(), default=(0, None))[1],
                self._named(one.params),
                one.user_attrs.get("why", ""),
            )
            for one in self._study.get_trials(deepcopy=False)
        ]
        order = ("done", "stopped early", "running", "failed")
        return sorted(
            found, key=lambda one: (order.index(one.state), -(one.score if one.score is not None else -1e300))
        )

    def _begin(self, trial: Any) -> Program | None:
        """A trial's program; None where its settings make none."""
        name = f"trial{trial.number:04d}"
        try:
            config = self._resolve(self._named(self._suggest(trial)))
        except LowgearError as error:
            self._fail(trial, str(error))
            return None
        self._live[name] = trial
        self._reported[name] = set(self._study.trials[trial.number].intermediate_values)
        gears = ",".join(map(str, config.gears))
        self._overview.plan([ProgramStatus(name, config.task, gears, len(config.agents), config.steps)])
        return Program(name, config, *cut_here(len(config.agents)))

    def _fail(self, trial: Any, why: str) -> None:
        from optuna.trial import TrialState

        trial.set_user_attr("why", why)
        self._study.tell(trial, state=TrialState.FAIL)
        ended = self._study.get_trials(deepcopy=False)
        if len(ended) >= MOST_FAILURES and all(one.state == TrialState.FAIL for one in ended):
            raise LowgearError(f"the first {len(ended)} trials have failed, the last because: {why}")

    def _suggest(self, trial: Any) -> dict[str, Any]:
        for name, part in self._space.items():
            if isinstance(part, Choices):
                trial.suggest_categorical(name, list(range(len(part.values))))
            elif part.whole:
                trial.suggest_int(name, int(part.low), int(part.high), log=part.log)
            else:
                trial.suggest_float(name, part.low, part.high, log=part.log)
        found: dict[str, Any] = dict(trial.params)
        return found

    def _named(self, params: dict[str, Any]) -> dict[str, Any]:
        """Choices by their values: Optuna knows their numbers."""
        return {
            name: part.values[params[name]] if isinstance(part, Choices) else params[name]
            for name, part in self._space.items()
            if name in params
        }


def final_score(directory: RunDirectory) -> float | None:
    """The agents' mean score at the last evaluation of a run."""
    text = read_text(directory.metrics, "file of metrics", "start a new run", MOST_METRICS)
    lines = [json.loads(line) for line in text.splitlines()]
    evaluations = [line for line in lines if line["kind"] == "evaluation"]
    last = max((line["steps"] for line in evaluations), default=0)
    return score_of([line for line in evaluations if line["steps"] == last])


def _keep_definition(out: Path, config: RunConfig, space: Space) -> None:
    """A directory holds one sweep: another one's trials would mean nothing beside it."""
    wanted = json.dumps({"run": config.to_json(), "space": to_json(space)}, indent=1, sort_keys=True)
    path = out / DEFINITION
    if not path.exists():
        out.mkdir(parents=True, exist_ok=True)
        write_whole(path, wanted.encode())
    elif read_text(path, "sweep", "choose another --out") != wanted:
        raise LowgearError(f"{out} is of another sweep: choose another --out, or give the options that it began with")
