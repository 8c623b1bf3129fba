"""`lowgear sweep`: searches settings of a recipe, with early stopping."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lowgear import LowgearError
from lowgear.commands import ctrl_c, lists
from lowgear.commands.completion import assignments as complete_assignments
from lowgear.commands.completion import task_names
from lowgear.commands.executors import NAMES, Place, executor_options
from lowgear.commands.options import (
    env_timeout_option,
    gears_option,
    list_option,
    recipe_option,
    seed_option,
    steps_option,
    track_option,
)

if TYPE_CHECKING:
    from lowgear.studies.search import Trial

EVALUATIONS = 9  # of a trial: it may be stopped at the first and the third


@click.command()
@click.argument("task", shell_complete=task_names)
@click.option(
    "--set",
    "assignments",
    multiple=True,
    required=True,
    metavar="NAME=LOW:HIGH",
    shell_complete=complete_assignments,
    help="A setting to search: NAME=LOW:HIGH, NAME=LOW:HIGH:log, NAME=A|B; NAME=VALUE is the same in all trials.",
)
@click.option("--trials", default=20, show_default=True, help="Settings to try.")
@list_option("--seeds", lists.integers, "Agents of each trial: 0-2.", metavar=None, default="0-2", show_default=True)
@steps_option
@recipe_option
@gears_option
@click.option("--evaluate-episodes", default=5, show_default=True, help="Episodes of each agent at an evaluation.")
@seed_option("--search-seed", 0, "Of the proposals.")
@click.option("--out", type=click.Path(path_type=Path), help="The sweep's directory.  [default: sweeps/TASK-RECIPE]")
@track_option("none", each_run=True)
@executor_options
@env_timeout_option
def sweep(
    task: str, assignments: tuple[str, ...], trials: int, search_seed: int, out: Path | None, **options: Any
) -> None:
    """Search settings of the recipe for TASK: those whose agents score highest after their last step.

    Each trial is a run of its own in OUT/runs, with an agent for each seed. Optuna proposes settings from what earlier
    ones came to (TPE), and a trial that is not among the best third of those that came as far is stopped, at a
    checkpoint. The same command goes on with a sweep that was stopped, or has more --trials. Needs the extra `sweep`.

    \b
      lowgear sweep cartpole-swingup --set learning_rate=1e-4:1e-2:log --set batch=64:512 --steps 50000 --trials 12
      lowgear sweep walker-stand --set "actor_activation=tanh|relu" --jobs 4
      lowgear sweep walker-stand --set target_entropy=0.25:1.0 --ray 10.0.0.1:6379
    """
    from rich.console import Console

    from lowgear.config.run import resolve
    from lowgear.config.tasks import file_name, find
    from lowgear.envs import make, sized
    from lowgear.studies import executors, space
    from lowgear.studies.overview import Overview
    from lowgear.studies.progress import StudyDisplay
    from lowgear.studies.search import Search
    from lowgear.studies.tracked import tracked
    from lowgear.training.device import has_accelerator

    if trials < 1:
        raise LowgearError(f"--trials {trials}: write 1 or more")
    searched, fixed = space.parse(assignments)
    place, named = Place(**{name: options.pop(name) for name in NAMES}), sized(find(task), options["gears"])
    steps = options.pop("steps") or named.steps

    def config(settings: dict[str, Any]) -> Any:
        return resolve(
            named,
            steps=steps,
            overrides=fixed | settings,
            evaluate_every=-(-steps // EVALUATIONS),
            checkpoint_every=-(-steps // EVALUATIONS),
            accelerator=has_accelerator(),
            **options,
        )

    config({})
    make(named, 1).close()
    out = out or Path("sweeps") / f"{file_name(named.name)}-{options['recipe']}"
    place.keep_below(out.name)
    with place.pool(out / "runs", always=True) as (pool, slots):
        assert pool is not None
        overview, display = Overview(out, "sweep", slots), StudyDisplay(Console(stderr=True))
        search, state = Search(out, searched, trials, config, overview, search_seed, place.remote), "stopped"
        overview.begin()
        display.watch(overview)
        ctrl_c.will_say("stopped; the same command goes on from here")
        try:
            with tracked(search, out / "runs", display.notice, place.remote) as watcher:
                for program, result in executors.carry_out(pool, search.programs(), watcher, slots):
                    watcher.finish(program, result)
            state = "done"
        finally:
            display.close()
            overview.end(state)
    _tell(search.results(), task, out)


def _tell(found: "list[Trial]", task: str, out: Path) -> None:
    """The trials, on the terminal and as CSV; the best one's command."""
    from rich import box
    from rich.table import Table

    from lowgear.evaluation.numbers import score
    from lowgear.policy.files import write_whole
    from lowgear.report.terminal import print_table
    from lowgear.report.text import csv_text
    from lowgear.studies.space import shown

    names = list(found[0].settings)
    table = Table("trial", *names, "score", "state", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    rows: list[list[object]] = []
    for trial in found:
        values = [shown(trial.settings[name]) if name in trial.settings else "" for name in names]
        table.add_row(str(trial.number), *values, "" if trial.score is None else score(trial.score), trial.state)
        rows.append([trial.number, *values, trial.score, trial.state, trial.why])
    print_table(table)
    write_whole(out / "trials.csv", csv_text(",".join(["trial", *names, "score", "state", "why"]), rows).encode())
    click.echo(str(out / "trials.csv"), err=True)
    best = found[0]
    if best.state != "done":
        raise LowgearError(f"no trial came to its end: {best.why or 'give more --trials'}")
    chosen = " ".join(f"--set {name}={shown(value)}" for name, value in best.settings.items())
    click.echo(f"best: {out / 'runs' / f'trial{best.number:04d}'}, as `lowgear train {task} {chosen}` makes it")
