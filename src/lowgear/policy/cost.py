"""What a network costs to run, and what an episode costs, in FLOPs.

A policy has two hidden layers of equal width and two Gaussian heads. Its price is the paper's rule, which reproduces
every published figure: `2·(obs·h + h·h + 2·h·act) + 3`. The master is charged for what is built: its matrix products.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

PAPER_MASTER_UNITS = 32
PAPER_PERIOD = 5


def policy_flops(obs_dim: int, act_dim: int, units: int) -> int:
    """FLOPs of one action of a gear with two hidden layers of `units`, both Gaussian heads counted."""
    return 2 * (obs_dim * units + units * units + 2 * units * act_dim) + 3


def units_for(obs_dim: int, act_dim: int, flops: float) -> int:
    """The narrowest policy that costs at least `flops`, the paper's `fit`: its width is solved for."""
    return next(units for units in itertools.count(1) if policy_flops(obs_dim, act_dim, units) >= flops)


def master_flops(obs_dim: int, choices: int, units: int) -> int:
    """FLOPs of one pick of a master with two hidden layers of `units` and one value for each choice.

    `obs_dim` counts every input it really has: the observation and, where a dial's prices are learned, the position.
    """
    return 2 * (obs_dim * units + units * units + units * choices)


class Prices(NamedTuple):
    """What a controller's parts cost each time they run, in FLOPs."""

    gears: tuple[int, ...]  # one action of each gear
    pick: int  # one pick of the master

    @property
    def gear_costs(self) -> tuple[float, ...]:
        """Price of each gear relative to the cheapest, c_ω of the paper."""
        return tuple(flops / self.gears[0] for flops in self.gears)

    @property
    def pick_cost(self) -> float:
        """Price of a pick in the same unit."""
        return self.pick / self.gears[0]


def prices(
    obs_dim: int, act_dim: int, gears: Sequence[int], master_units: int, durations: int = 1, sees_position: bool = False
) -> Prices:
    """Prices of a controller whose master chooses a gear and one of `durations`, and may see a dial's position."""
    return Prices(
        tuple(policy_flops(obs_dim, act_dim, units) for units in gears),
        master_flops(obs_dim + sees_position, len(gears) * durations, master_units),
    )


def tariff(costs: Sequence[float], pick_cost: float, periods: Sequence[int], discount: float) -> tuple[float, ...]:
    """What each choice of a master costs beyond the cheapest one, discounted step by step, at a coefficient of 1.

    Choice c is gear `c % gears` for the duration number `c // gears`. It is taken once, and the cheapest ever after:
    all that is certain of a choice's cost before anything is learned.
    """
    kept = [discount**period for period in periods for _ in costs]
    once = [cost * sum(discount**k for k in range(period)) + pick_cost for period in periods for cost in costs]
    ever = min(paid / (1 - keeps) for paid, keeps in zip(once, kept, strict=True))
    whole = [paid + keeps * ever for paid, keeps in zip(once, kept, strict=True)]
    return tuple(paid - min(whole) for paid in whole)


def gear_costs(obs_dim: int, act_dim: int, gears: Sequence[int]) -> tuple[float, ...]:
    """Price of each gear relative to the cheapest, c_ω of the paper."""
    flops = [policy_flops(obs_dim, act_dim, units) for units in gears]
    return tuple(f / flops[0] for f in flops)


def episode_flops(
    gear_flops: Sequence[float], gear_share: Sequence[float], master_flops: float, picks: float, steps: float
) -> float:
    """FLOPs of an episode of `steps` steps, `gear_share` of them in each gear, with `picks` picks of the master."""
    per_step = sum(f * share for f, share in zip(gear_flops, gear_share, strict=True))
    return per_step * steps + master_flops * picks


def flops_reduction(flops: float, reference_flops: float) -> float:
    """Fraction of the reference's FLOPs that is saved; negative where more is spent."""
    return 1.0 - flops / reference_flops


def paper_flops_reduction(obs_dim: int, act_dim: int, gears: Sequence[int], large_share: float) -> float:
    """The reduction by the paper's own accounting.

    It charges the master as a policy of 32 units every 5 steps, less than the dueling network its authors ran.
    """
    small, large = policy_flops(obs_dim, act_dim, gears[0]), policy_flops(obs_dim, act_dim, gears[-1])
    master = policy_flops(obs_dim, act_dim, PAPER_MASTER_UNITS)
    flops = episode_flops((small, large), (1 - large_share, large_share), master, 1 / PAPER_PERIOD, 1)
    return flops_reduction(flops, large)
