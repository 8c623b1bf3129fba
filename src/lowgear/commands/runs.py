"""Runs as commands take them: one directory or several, as a shell's pattern gives them."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from glob import glob, has_magic
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lowgear import LowgearError
from lowgear.commands.output import show

if TYPE_CHECKING:
    from lowgear.config.run_directory import RunDirectory

Item = TypeVar("Item")
Report = dict[str, Any]
several_argument = click.argument(
    "directories", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path)
)


def expanded(directories: Sequence[Path]) -> list[Path]:
    """Each once; a pattern that no shell has expanded stands for what it matches, and matches something."""
    found: list[Path] = []
    for path in directories:
        matches = sorted(map(Path, glob(str(path)))) if has_magic(str(path)) and not path.exists() else [path]
        if not matches:
            raise LowgearError(f"{path} matches nothing: {_nearby(path.parent)}")
        found += matches
    return list(dict.fromkeys(found))


def open_runs(directories: Sequence[Path], trust: bool) -> "dict[Path, RunDirectory]":
    """Runs by their paths. All are read first: what is no run is told before anything is done with the others."""
    from lowgear.config.policy_file import open_run

    runs = {path: open_run(path, trust) for path in expanded(directories)}
    for run in runs.values():
        run.read_config()
    return runs


def show_each(
    items: Mapping[Path, Item],
    make: Callable[[Item], Report],
    as_json: bool,
    table: Callable[[Item, Report], None],
    after: Callable[[Item, Report], None] = lambda *_: None,
) -> list[Report]:
    """Make each item's report, show it, and do what comes `after`; several have their paths above them.

    As JSON one report stands alone, and several in one object, {"runs": [...]}, each with its `directory`.
    """
    reports = []
    for path, item in items.items():
        report = make(item)
        reports.append(report)
        if not as_json and len(items) > 1:
            click.echo(f"{path}:")
        if not as_json or len(items) == 1:
            show(report, as_json, partial(table, item))
        after(item, report)
    if as_json and len(items) > 1:
        together = [{"directory": str(path)} | report for path, report in zip(items, reports, strict=True)]
        click.echo(json.dumps({"runs": together}, indent=2))
    return reports


def tell_trackers(run: "RunDirectory", table: Sequence[Report] = (), files: Sequence[Path] = ()) -> None:
    """Add a table, and those of the files that are PNG, where a run is tracked."""
    from lowgear.training.trackers import tracking

    figures = [path for path in files if path.suffix == ".png"]
    tracking.add(run, run.read_config(), lambda text: click.echo(f"note: {text}", err=True), table, figures)


def _nearby(parent: Path) -> str:
    """What runs there are, or how to make one."""
    names = sorted(str(path.parent) for path in _configs(parent))
    if not names:
        return "there is no run there yet; `lowgear train TASK` makes one"
    return f"the runs there are {', '.join(names[:8])}{' ...' * (len(names) > 8)}"


def _configs(parent: Path) -> Iterator[Path]:
    return parent.glob("*/config.json") if parent.is_dir() else iter(())
