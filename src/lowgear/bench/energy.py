"""Joules from the processor's own meter (RAPL), where the machine has one and lets people read it."""

from collections.abc import Callable, Sequence
from pathlib import Path

POWERCAP = Path("/sys/class/powercap")
MEASURED_S = 0.5


def meters(root: Path = POWERCAP) -> list[Path]:
    """The packages' counters that can be read; they count microjoules and wrap around."""
    packages = [path for path in sorted(root.glob("*rapl:*")) if path.name.count(":") == 1]
    return [path for path in packages if _integer(path / "energy_uj") is not None]


def joules(meters: Sequence[Path], work: Callable[[], int]) -> float:
    """What one step took, all that the package drew meanwhile, idle power included; `work` returns its steps."""
    before = [_integer(path / "energy_uj") or 0 for path in meters]
    steps = work()
    total = 0
    for path, was in zip(meters, before, strict=True):
        gone = (_integer(path / "energy_uj") or 0) - was
        total += gone if gone >= 0 else gone + (_integer(path / "max_energy_range_uj") or 0)
    return total / 1e6 / steps


def _integer(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
