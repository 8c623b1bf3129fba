"""With what a run was made: versions, machine, commit."""

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import jax

PACKAGES = ("lowgear", "jax", "jaxlib", "optax", "numpy", "envpool", "gymnasium", "dm_control", "mujoco")


def provenance() -> dict[str, Any]:
    """For config.json; a person who reads it can set up the same again."""
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "device": jax.devices()[0].device_kind,
        "versions": {package: _version(package) for package in PACKAGES if _version(package)},
        "commit": _commit(),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """Of the checkout that this package runs from, if it is one."""
    command = [
        "git",
        "--no-optional-locks",
        "-C",
        str(Path(__file__).parent),
        "describe",
        "--always",
        "--dirty",
        "--abbrev=12",
    ]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
