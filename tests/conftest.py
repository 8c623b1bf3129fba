"""What must be known before JAX and MuJoCo are first imported, whichever test does that, and the order of tests.

The default suite compiles hundreds of programs and runs each for moments, so XLA is told to compile in less time;
processes that tests start are told by the same variables. The few tests that run a program for long ask to be
`optimised`. Proofs that take minutes are compiled as users' runs are, and so is everything with `XLA_FLAGS= make test`.
"""

import ctypes.util
import gc
import os
import sys
from collections.abc import Iterator

import pytest

COMPILE_QUICKLY = (
    "--xla_backend_optimization_level=1 --xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false"
)
LONGEST = (
    "training/test_loop.py",
    "studies/test_study_commands.py",
    "training/",
    "commands/",
    "test_agent.py",
    "report/",
)

if sys.platform == "linux" and not os.environ.get("DISPLAY") and ctypes.util.find_library("EGL"):
    os.environ.setdefault("MUJOCO_GL", "egl")

gc.set_threshold(50_000, 20, 50)  # programs are traced in millions of objects, few of which are ever garbage


def pytest_configure(config: pytest.Config) -> None:
    chosen = config.getoption("markexpr")
    if ("not slow" in chosen or chosen == "faults") and "XLA_FLAGS" not in os.environ:
        os.environ["XLA_FLAGS"] = COMPILE_QUICKLY
        os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"] = "true"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first: whoever shares them out then ends with short ones."""
    items.sort(key=lambda item: next((n for n, name in enumerate(LONGEST) if name in item.nodeid), len(LONGEST)))


@pytest.fixture
def optimised() -> Iterator[None]:
    """For programs that run for long enough to be worth more time to compile."""
    from tests.fixtures.compilations import fully_optimised  # it imports JAX

    with fully_optimised():
        yield
