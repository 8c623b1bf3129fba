"""Options of commands that carry out several programs: here, in several processes, or on a cluster."""

import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lowgear import LowgearError

if TYPE_CHECKING:
    from lowgear.studies.executors import Pool
    from lowgear.studies.storage import Remote

Function = TypeVar("Function", bound=Callable[..., Any])
NAMES = ("jobs", "ray", "storage", "cpus", "gpus")


def executor_options(function: Function) -> Function:
    """`--jobs`, `--ray`, `--storage`, `--cpus`, `--gpus`."""
    options = [
        click.option(
            "--jobs",
            type=int,
            metavar="N",
            help="Programs at once on this machine, which share its cores.  [default: 1]",
        ),
        click.option(
            "--ray",
            is_flag=False,
            flag_value="auto",
            metavar="[ADDRESS]",
            help="Carry out programs on a Ray cluster, whose head node is at HOST:PORT; without an address on that of "
            "this machine, or on one that is started for it. Needs the extra `ray`.",
        ),
        click.option(
            "--storage",
            metavar="DIR_OR_URL",
            help="With --ray, where runs are kept: a directory that all machines share, or an fsspec URL such as "
            "s3://bucket/runs.  [default: OUT, which they must share]",
        ),
        click.option(
            "--cpus",
            type=float,
            help="With --ray, of each program.  [default: all of a machine's, or a share for each GPU]",
        ),
        click.option("--gpus", type=float, help="With --ray, of each program.  [default: 1 if there are any]"),
    ]
    for option in reversed(options):
        function = option(function)
    return function


class Place:
    """Where programs are carried out, and where their runs are kept."""

    def __init__(self, jobs: int | None, ray: str | None, storage: str | None, cpus: float | None, gpus: float | None):
        from lowgear.studies import storage as stores

        for name, value in (("--storage", storage), ("--cpus", cpus), ("--gpus", gpus)):
            if ray is None and value is not None:
                raise LowgearError(f"{name} {value} is for --ray: add that, or leave it out")
        if ray is not None and jobs is not None:
            raise LowgearError(f"--jobs {jobs} is for this machine alone, --ray for a cluster: leave one out")
        if jobs is not None and jobs < 1:
            raise LowgearError(f"--jobs {jobs}: write 1 or more")
        for name, value in (("--cpus", cpus), ("--gpus", gpus)):
            if value is not None and not 0 <= value < 1e6:
                raise LowgearError(f"{name} {value:g}: write a number of 0 or more")
        self._jobs, self._ray, self._cpus, self._gpus = jobs, ray, cpus, gpus
        self.words = _as_written(jobs=jobs, ray=ray, storage=storage, cpus=cpus, gpus=gpus)
        if self.elsewhere:  # a GPU of this machine is for the programs
            os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        self.remote: Remote | None = None
        self.runs: Path | None = None  # where it is not the command's own
        if storage is not None and stores.is_url(storage):
            self.remote = stores.Remote(storage)
        elif storage is not None:
            self.runs = Path(storage) / "runs"

    @property
    def elsewhere(self) -> bool:
        """Whether it was named."""
        return self._jobs is not None or self._ray is not None

    def keep_below(self, name: str) -> None:
        """Let a URL or a directory hold the runs of several commands, each below a name of its own."""
        from lowgear.studies.storage import Remote

        if self.runs is not None:
            self.remote, self.runs = Remote(f"file://{self.runs.parent.absolute()}"), None
        if self.remote is not None:
            self.remote = Remote(f"{self.remote.url.rstrip('/')}/{name}")

    @contextmanager
    def pool(self, runs: Path, always: bool = False) -> "Iterator[tuple[Pool | None, int]]":
        """Who carries out programs, and how many at once; None: this process, unless there is `always` to be a pool."""
        from lowgear.envs import watchdog
        from lowgear.studies.executors import LocalPool

        if self._ray is None:
            jobs = self._jobs or 1
            yield LocalPool(jobs, runs, watchdog.limit_s) if jobs > 1 or always else None, jobs
            return
        from lowgear.studies import ray_pool

        ray_pool.connect(self._ray)
        if self.remote is not None:
            self.remote.check()
        pool = ray_pool.RayPool(runs, self.remote, self._cpus, self._gpus, watchdog.limit_s)
        try:
            yield pool, pool.slots
        finally:
            pool.close()


def _as_written(**options: int | float | str | None) -> str:
    """As they are given again; nothing where none are."""
    words = ""
    for name, value in options.items():
        if value is not None:
            text = shlex.quote(value) if isinstance(value, str) else f"{value:g}"
            words += f" --{name}" + ("" if (name, value) == ("ray", "auto") else f" {text}")
    return words
