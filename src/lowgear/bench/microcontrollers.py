"""Estimates for microcontrollers, from exact counts of operations and assumed cycles for each.

    cycles = multiply-adds · a + tanh · t + steps · c

`a` is a scalar multiply-add with its two loads and its share of the loop, `t` one rational tanh (14 products and sums,
one division), `c` the call and the scaling of the action. The M4F's 6.5 are the cycles of gcc's inner loop by Arm's
table of instruction timings; the others are scaled from it by what their pipelines overlap. Weights in fast memory.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from lowgear.policy.file import PolicyHeader


class Microcontroller(NamedTuple):
    """A named part and the cycles assumed for it."""

    name: str
    mhz: int
    multiply_add: float
    tanh: float
    step: float


MICROCONTROLLERS = (
    Microcontroller("Cortex-M4F, 168 MHz (STM32F407)", 168, 6.5, 60.0, 300.0),
    Microcontroller("Cortex-M7, 480 MHz (STM32H743)", 480, 2.5, 40.0, 150.0),
    Microcontroller("Xtensa LX6, 240 MHz (ESP32)", 240, 5.0, 90.0, 300.0),
)


def operations(header: PolicyHeader, gear: int) -> tuple[int, int]:
    """Multiply-adds and tanh of one action of a gear, its mean head only."""
    units, obs, act = header.gears[gear], header.obs_dim, header.act_dim
    hidden = 2 * units if header.activation == "tanh" else 0
    return obs * units + units * units + units * act, hidden + act


def pick_operations(header: PolicyHeader) -> tuple[int, int]:
    """Multiply-adds and tanh of one pick."""
    units, choices = header.master_units, len(header.gears) * len(header.periods)
    inputs = header.obs_dim + header.sees_position
    hidden = 2 * units if header.activation == "tanh" else 0
    return inputs * units + units * units + units * choices, hidden


def estimates(header: PolicyHeader, shares: Sequence[float], picks_per_step: float) -> list[dict[str, Any]]:
    """Microseconds per step of the controller and of each gear alone, for every part."""
    gears = [operations(header, gear) for gear in range(len(header.gears))]
    pick = pick_operations(header)
    found = []
    for part in MICROCONTROLLERS:

        def us(counts: tuple[float, float], part: Microcontroller = part) -> float:
            return (counts[0] * part.multiply_add + counts[1] * part.tanh + part.step) / part.mhz

        mixed = tuple(
            sum(share * counts[k] for share, counts in zip(shares, gears, strict=True)) + picks_per_step * pick[k]
            for k in range(2)
        )
        alone = [us(counts) for counts in gears]
        whole = us((mixed[0], mixed[1]))
        found.append(
            {
                "name": part.name,
                "estimate": True,
                "controller_us": whole,
                "gears_us": alone,
                "time_reduction": 1 - whole / alone[-1],
                "cycles": {"multiply_add": part.multiply_add, "tanh": part.tanh, "step": part.step},
            }
        )
    return found
