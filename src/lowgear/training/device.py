"""This machine's device for learning: whether there is one besides the cores, and the thread that hands it its work."""

import os
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax


def has_accelerator() -> bool:
    """Whether learners run on a device of their own, and the cores are free for the environments."""
    return jax.default_backend() != "cpu"


def keep_compiled_programs() -> None:
    """Let JAX keep what it compiles on disk, so that the next run of the same shapes starts at once.

    JAX compiles anew what it can't read there: another run writes it just now, or was killed meanwhile. It says so in a
    warning, which would only frighten.
    """
    warnings.filterwarnings("ignore", "Error reading persistent compilation cache entry", UserWarning)
    if jax.config.jax_compilation_cache_dir is None:  # type: ignore[attr-defined]
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        jax.config.update("jax_compilation_cache_dir", str(Path(home) / "lowgear" / "compiled"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


class DeviceThread:
    """Does what it is told one after the other, so that whoever tells it never waits for the device."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="device")
        self._told: Future[Any] | None = None  # the last

    def tell(self, call: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        """Let it do something after what it was told before; once a thing fails, all after it do."""
        before = self._told

        def do() -> Any:
            if before is not None:
                before.result()
            return call(*arguments)

        self._told = self._thread.submit(do)
        return self._told

    def settle(self) -> None:
        """Wait until it has done what it was told."""
        if self._told is not None:
            self._told.result()

    def close(self, wait: bool) -> None:
        """End the thread, once it has done what it is at."""
        self._thread.shutdown(wait=wait, cancel_futures=True)
