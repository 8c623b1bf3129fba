"""`lowgear train --jobs N` and `--ray`: a population spread over several programs."""

from typing import TYPE_CHECKING

import click

from lowgear import LowgearError
from lowgear.commands import ctrl_c
from lowgear.commands.executors import Place

if TYPE_CHECKING:
    from lowgear.config.run import RunConfig
    from lowgear.config.run_directory import RunDirectory


def train_spread(directory: "RunDirectory", config: "RunConfig", place: Place, shards: int | None) -> None:
    """Train, or go on; a run that ends is put together, and is one as any other then."""
    from rich.console import Console

    from lowgear.config.run_directory import RunDirectory
    from lowgear.studies import executors
    from lowgear.studies import shards as spread
    from lowgear.studies.overview import Overview, ProgramStatus
    from lowgear.studies.progress import StudyDisplay
    from lowgear.training.checkpoint import read_latest

    place.keep_below(directory.path.name)
    runs = directory.path / spread.FOLDER
    with place.pool(runs, always=True) as (pool, slots):
        assert pool is not None
        programs = spread.existing(directory, config) if spread.is_spread(directory) else None
        programs = programs or spread.split(config, shards or slots)
        for program in programs:
            (runs / program.name).mkdir(parents=True, exist_ok=True)
        folders = [RunDirectory(runs / program.name, trust=True) for program in programs]
        overview, display = Overview(directory.path, "train", slots), StudyDisplay(Console(stderr=True))
        gears = ",".join(map(str, config.gears))
        for program, folder in zip(programs, folders, strict=True):
            latest = read_latest(folder) if folder.config.exists() else None
            agents, done = len(program.config.agents), latest.steps if latest else 0
            overview.plan([ProgramStatus(program.name, config.task, gears, agents, config.steps, done=done)])
        overview.begin()
        display.watch(overview)
        state, failures = "stopped", []
        ctrl_c.will_say(f"stopped; go on with `lowgear train --resume {directory.path}`")
        try:
            for program, result in executors.carry_out(pool, programs, overview):
                if result.kind == "failed":
                    failures.append(f"{program.name}: {result.why}")
                elif result.kind == "done" and place.remote is not None:
                    place.remote.fetch(runs / program.name)
            state = "failed" if failures else "done"
        finally:
            display.close()
            overview.end(state)
    if failures:
        raise LowgearError(f"{failures[0]}; mend it and go on with `lowgear train --resume {directory.path}`")
    spread.merge(directory, folders)
    click.echo(str(directory.path))
