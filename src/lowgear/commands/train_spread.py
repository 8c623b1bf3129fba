"""`lowgear train --jobs N` and `--ray`: a population spread over several programs."""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from lowgear import LowgearError
from lowgear.commands import ctrl_c
from lowgear.commands.executors import Place

if TYPE_CHECKING:
    from lowgear.config.run import RunConfig
    from lowgear.config.run_directory import RunDirectory
    from lowgear.studies.overview import Overview
    from lowgear.studies.program import Program


def train_spread(directory: "RunDirectory", config: "RunConfig", place: Place, shards: int | None) -> None:
    """Train, or go on; a run that ends is put together, and is one as any other then."""
    from rich.console import Console

    from lowgear.config.run_directory import RunDirectory
    from lowgear.config.tasks import trust_flag
    from lowgear.studies import executors
    from lowgear.studies import shards as spread
    from lowgear.studies.progress import StudyDisplay
    from lowgear.studies.tracked import TrackedShards
    from lowgear.training.trackers.choice import default_trackers
    from lowgear.training.trackers.passed import NAME, Passed
    from lowgear.training.trackers.tracking import tracked

    place.keep_below(directory.path.name)
    runs = directory.path / spread.FOLDER
    again = f"lowgear train --resume {directory.path}{trust_flag(config.task)}{place.words}"
    with ExitStack() as opened:
        with place.pool(runs, always=True) as (pool, slots):
            assert pool is not None
            programs = spread.existing(directory, config) or spread.split(config, shards or slots)
            folders = [RunDirectory(runs / program.name, trust=True) for program in programs]
            overview, display = _overview(directory, programs, folders, slots), StudyDisplay(Console(stderr=True))
            tracking = opened.enter_context(
                tracked(directory, config, default_trackers(), display.notice, Passed(directory.beside(NAME)))
            )
            watcher = TrackedShards(overview, tracking, runs, programs, place.remote)
            directory.keep_steps(config)
            overview.begin()
            display.watch(overview)
            state, failures = "stopped", []
            ctrl_c.will_say(f"stopped; go on with `{again}`")
            try:
                for program, result in executors.carry_out(pool, programs, watcher):
                    why = result.why if result.kind == "failed" else ""
                    if place.remote is not None and result.kind == "done":
                        why = place.remote.bring(runs / program.name)
                    if why:
                        failures.append(f"{program.name}: {why}")
                        overview.change(program.name, state="failed", why=why)
                    watcher.follow(program)
                state = "failed" if failures else "done"
            except (KeyboardInterrupt, SystemExit):
                display.close()
                watcher.finish(directory, finished=False)
                raise
            finally:
                display.close()
                overview.end(state)
        if failures:
            raise LowgearError(f"{failures[0]}; mend it and go on with `{again}`")
        spread.merge(directory, folders)
        watcher.finish(directory, finished=True)
    click.echo(str(directory.path))


def _overview(
    directory: "RunDirectory", programs: "Sequence[Program]", folders: "Sequence[RunDirectory]", slots: int
) -> "Overview":
    """Of the programs as they stand; each has its directory from now on."""
    from lowgear.studies.overview import Overview, ProgramStatus
    from lowgear.training.checkpoint import read_latest

    overview = Overview(directory.path, "train", slots)
    for program, folder in zip(programs, folders, strict=True):
        folder.path.mkdir(parents=True, exist_ok=True)
        latest, config = read_latest(folder) if folder.config.exists() else None, program.config
        agents, done, gears = len(config.agents), latest.steps if latest else 0, ",".join(map(str, config.gears))
        overview.plan([ProgramStatus(program.name, config.task, gears, agents, config.steps, done=done)])
    return overview
