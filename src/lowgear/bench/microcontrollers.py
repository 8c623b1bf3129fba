"""Estimates for microcontrollers, from exact counts of operations and assumed cycles for each.

    cycles = multiply-adds · a + tanh · t + steps · c

`a` is a scalar multiply-add with its two loads and its share of the loop, `t` one rational tanh (14 products and sums,
one division), `c` the call and the scaling of the action. The M4F's 6.5 are the cycles of gcc's inner loop by Arm's
table of instruction timings; the others are scaled from it by what their pipelines overlap. Weights in fast memory.
"""

import itertools
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
    """Multiply-adds and tanh, or what takes as long, of one action of a gear, its mean head only."""
    kind = header.gears[gear]
    if not kind.computes:
        return 0, 0
    products, curved = _operations((header.obs_dim, *kind.hidden, header.act_dim), kind.activation or header.activation)
    return products, curved + (header.act_dim if kind.squash == "tanh" else 0)


def pick_operations(header: PolicyHeader) -> tuple[int, int]:
    """Multiply-adds and tanh of one pick."""
    units = header.master_units
    return _operations((header.master_inputs, units, units, header.choices), header.activation)


def _operations(sizes: Sequence[int], activation: str) -> tuple[int, int]:
    curved = 0 if activation in ("relu", "leaky_relu") else sum(sizes[1:-1])
    return sum(a * b for a, b in itertools.pairwise(sizes)), curved


def estimates(header: PolicyHeader, shares: Sequence[float], picks_per_step: float) -> list[dict[str, Any]]:
    """Microseconds per step of the controller and of each gear alone, for every part."""
    gears, pick = [operations(header, gear) for gear in range(len(header.gears))], pick_operations(header)
    products, tanhs = (
        sum(share * counts[k] for share, counts in zip(shares, gears, strict=True)) + picks_per_step * pick[k]
        for k in range(2)
    )
    rows = []
    for part in MICROCONTROLLERS:
        controller_us, *gears_us = (
            (a * part.multiply_add + t * part.tanh + part.step) / part.mhz for a, t in [(products, tanhs), *gears]
        )
        rows.append(
            {
                "name": part.name,
                "estimate": True,
                "controller_us": controller_us,
                "gears_us": gears_us,
                "time_reduction": 1 - controller_us / gears_us[-1],
                "cycles": {"multiply_add": part.multiply_add, "tanh": part.tanh, "step": part.step},
            }
        )
    return rows
