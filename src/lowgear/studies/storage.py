"""Runs kept at an fsspec URL, for machines that share no directory.

A run is sent after each checkpoint, latest.json after the files that it names, and what nothing names any more is
deleted last: whenever a machine is lost, what is there is a run as its last checkpoint left it.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

from lowgear import LowgearError
from lowgear.config.run_directory import RunDirectory
from lowgear.studies.progress_file import NAME as PROGRESS
from lowgear.training.checkpoint import read_latest
from lowgear.training.progress import Listener

INSTALL = "pip install 'lowgear[ray]'"
SEND_PROGRESS_EVERY_S = 10.0
LAST = "checkpoint/latest.json"
KEPT_HERE = ("lock", PROGRESS)  # and what is being written


def is_url(text: str) -> bool:
    """Whether it is one, and not a directory."""
    return "://" in text


class Remote:
    """A folder of runs at a URL."""

    def __init__(self, url: str) -> None:
        self.url = url
        try:
            import fsspec
        except ImportError:
            raise LowgearError(f"--storage {url} needs fsspec: {INSTALL}, or name a directory") from None
        try:
            self._files, self._root = fsspec.core.url_to_fs(url)
        except ImportError as error:  # of the package that this kind of URL needs
            raise LowgearError(f"--storage {url}: {error}") from None
        except (ValueError, OSError) as error:
            raise LowgearError(f"--storage {url} cannot be opened ({error}): name a directory or another URL") from None

    def check(self) -> None:
        """That something can be written there, and read back."""
        path = self._path("lowgear-was-here")
        with self._met("be written to"):
            self._files.makedirs(self._root, exist_ok=True)
            self._files.pipe_file(path, b"1")
            self._files.rm_file(path)

    def names(self) -> list[str]:
        """Of the runs there."""
        with self._met("be listed"):
            self._files.invalidate_cache()
            if not self._files.exists(self._root):
                return []
            return sorted(PurePosixPath(path).name for path in self._files.ls(self._root, detail=False))

    def fetch(self, folder: Path, checkpoints: bool = True) -> bool:
        """Bring a run here, under its name; whether there is one. Without checkpoints: to be read, not gone on with."""
        found = self._sizes(folder.name)
        if "config.json" not in found:
            return False
        wanted = [name for name in found if checkpoints or not name.startswith("checkpoint/")]
        for name in sorted(wanted, key=lambda name: (name == "config.json", name == LAST)):
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if name == "config.json" and target.exists():
                continue
            partial = target.with_name(target.name + ".partial")
            with self._met("be read"):
                self._files.get_file(self._path(folder.name, name), str(partial))
            partial.replace(target)
        for part in ("policies", "checkpoint"):
            (folder / part).mkdir(exist_ok=True)
        return True

    def bring(self, folder: Path, checkpoints: bool = True) -> str:
        """The same of a run that another machine has left; why it can't be, or nothing."""
        try:
            found = self.fetch(folder, checkpoints)
        except LowgearError as error:
            return str(error)
        return "" if found else f"{self.url} has no run {folder.name}: name a place that all machines see as --storage"

    def send(self, directory: RunDirectory) -> None:
        """Everything of a run that counts, so that what is there is whole at any moment."""
        here, there, run = _files_of(directory), self._sizes(directory.path.name), directory.path.name
        with self._met("be written to"):
            for name in sorted(here, key=lambda name: (name == LAST, name)):
                if not (_is_final(name) and there.get(name) == here[name]):
                    self._put(directory.path / name, self._path(run, name))
            for name in there.keys() - here.keys():
                self._files.rm_file(self._path(run, name))

    def send_file(self, path: Path, run: str) -> None:
        """One file of a run."""
        with self._met("be written to"):
            self._put(path, self._path(run, path.name))

    def fetch_file(self, name: str, folder: Path) -> None:
        """One file of a run, where there is such a file."""
        with suppress(FileNotFoundError, OSError):
            self._files.invalidate_cache()
            data = self._files.cat_file(self._path(folder.name, name))
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)

    def fetch_longer(self, name: str, folder: Path) -> None:
        """One file of a run that only grows, where there is more of it than here."""
        here = folder / name
        with suppress(OSError):
            self._files.invalidate_cache()
            size = self._files.info(self._path(folder.name, name))["size"]
            if not here.exists() or here.stat().st_size != size:
                self.fetch_file(name, folder)

    def _put(self, source: Path, path: str) -> None:
        self._files.makedirs(str(PurePosixPath(path).parent), exist_ok=True)
        self._files.pipe_file(path, source.read_bytes())

    def _sizes(self, run: str) -> dict[str, int]:
        """Bytes of each file of a run there."""
        top = self._path(run)
        with self._met("be listed"):
            self._files.invalidate_cache()
            found: dict[str, Any] = self._files.find(top, detail=True)
        start = len(self._files._strip_protocol(top)) + 1
        return {path[start:]: int(info["size"]) for path, info in found.items() if not path.endswith(".partial")}

    def _path(self, *parts: str) -> str:
        return "/".join((self._root.rstrip("/"), *parts))

    @contextmanager
    def _met(self, what: str) -> Iterator[None]:
        """What goes wrong, in a line; stores raise errors of their own kinds."""
        try:
            yield
        except LowgearError:
            raise
        except Exception as error:
            said = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise LowgearError(f"--storage {self.url} cannot {what} ({said}): check the URL and its keys") from None


class Mirror(Listener):
    """Sends a run whenever a checkpoint is on disk."""

    def __init__(self, remote: Remote, directory: RunDirectory) -> None:
        self._remote, self._directory, self._sent = remote, directory, 0.0

    def on_checkpoint(self) -> None:
        """Training waits until it is there."""
        self._remote.send(self._directory)

    def send_progress(self) -> None:
        """Now and then."""
        now = time.monotonic()
        if now - self._sent >= SEND_PROGRESS_EVERY_S:
            self._sent = now
            with suppress(LowgearError, OSError):
                self._remote.send_file(self._directory.path / PROGRESS, self._directory.path.name)


def _files_of(directory: RunDirectory) -> dict[str, int]:
    """Bytes of the files that count: of a checkpoint's, those that latest.json names."""
    latest = read_latest(directory)
    named = {directory.latest}
    if latest is not None:
        named |= {directory.state(latest.number, latest.open_steps)}
        named |= {directory.rows(number) for number, _ in latest.segments}
    found = {}
    for path in directory.path.rglob("*"):
        counts = path.parent != directory.checkpoint or path in named
        if counts and path.is_file() and path.name not in KEPT_HERE and path.suffix != ".partial":
            found[path.relative_to(directory.path).as_posix()] = path.stat().st_size
    return found


def _is_final(name: str) -> bool:
    """Whether a file of this name and size stays as it is."""
    return name.startswith("checkpoint/") and name != LAST
