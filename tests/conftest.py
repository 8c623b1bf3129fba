"""What must be known before JAX and MuJoCo are first imported, whichever test does that.

The default suite compiles hundreds of programs and runs each for moments, so XLA is told to compile in less time;
processes that tests start are told by the same variable. Proofs that take minutes are compiled as users' runs are, and
so is everything with `XLA_FLAGS= make test`.
"""

import ctypes.util
import os
import sys

import pytest

COMPILE_QUICKLY = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false"
)

if sys.platform == "linux" and not os.environ.get("DISPLAY") and ctypes.util.find_library("EGL"):
    os.environ.setdefault("MUJOCO_GL", "egl")


def pytest_configure(config: pytest.Config) -> None:
    if "not slow" in config.getoption("markexpr"):
        os.environ.setdefault("XLA_FLAGS", COMPILE_QUICKLY)
