"""What a step of the controller takes as C, on the machine that makes the report."""

import platform
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from lowgear.report.settings import Setting


@dataclass(frozen=True)
class StepTimes:
    """Microseconds of the parts of a controller."""

    gears_us: tuple[float, ...]
    pick_us: float
    machine: str

    def of(self, setting: Setting) -> float | None:
        """Of a mean step at a setting; None where an evaluation does not tell the shares of its gears."""
        if setting.gear_share is None or len(setting.gear_share) != len(self.gears_us):
            return None
        picks = 1 / setting.period if setting.period else 0.0
        return float(np.dot(setting.gear_share, self.gears_us)) + picks * self.pick_us


def machine_name() -> str:
    """The processor, as it calls itself."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8", errors="replace").splitlines() if info.is_file() else []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()
