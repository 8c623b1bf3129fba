"""Joules from the processor's own meter (RAPL), where the machine has one and lets people read it."""

from collections.abc import Callable
from pathlib import Path

POWERCAP = Path("/sys/class/powercap")
MEASURED_S = 0.5


class EnergyMeter:
    """The packages' counters, in microjoules; they wrap around."""

    def __init__(self, root: Path = POWERCAP) -> None:
        domains = [path for path in sorted(root.glob("*rapl:*")) if path.name.count(":") == 1]
        self._files = [path for path in domains if _integer(path / "energy_uj") is not None]

    @property
    def readable(self) -> bool:
        """Whether there is anything to read."""
        return bool(self._files)

    def joules(self, work: Callable[[], int]) -> float:
        """What one step took, all that the package drew meanwhile, idle power included; `work` returns its steps."""
        before = [_integer(path / "energy_uj") or 0 for path in self._files]
        steps = work()
        total = 0
        for path, was in zip(self._files, before, strict=True):
            gone = (_integer(path / "energy_uj") or 0) - was
            total += gone if gone >= 0 else gone + (_integer(path / "max_energy_range_uj") or 0)
        return total / 1e6 / steps


def _integer(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
