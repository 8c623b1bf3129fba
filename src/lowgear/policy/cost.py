"""What a controller costs, and what its master pays for it.

A gear of the paper has two hidden layers of equal width and two Gaussian heads. Its FLOPs follow the paper's rule,
which reproduces every published figure: `2·(obs·h + h·h + 2·h·act) + 3`. Other depths, and gears that came from
elsewhere, follow the same rule; a gear that holds the last action costs nothing. The master is charged for what is
built: its matrix products.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lowgear.policy.gears import Gear, gears_of


def policy_flops(obs_dim: int, act_dim: int, units: int | Sequence[int]) -> int:
    """FLOPs of one action of a gear, both Gaussian heads counted; `units` of two hidden layers, or those of each."""
    hidden = (units, units) if isinstance(units, int) else units
    return 2 * sum(a * b for a, b in itertools.pairwise((obs_dim, *hidden, 2 * act_dim))) + 3


def gear_flops(gear: Gear, obs_dim: int, act_dim: int) -> int:
    """FLOPs of one action of a gear of any kind."""
    return policy_flops(obs_dim, act_dim, gear.hidden) if gear.computes else 0


def master_flops(obs_dim: int, choices: int, units: int) -> int:
    """FLOPs of one pick of a master with two hidden layers of `units` and one value for each choice.

    `obs_dim` counts every input it really has: the observation, the last action where a gear holds it, and the position
    where a dial's prices are learned.
    """
    return 2 * (obs_dim * units + units * units + units * choices)


def units_for(obs_dim: int, act_dim: int, flops: float) -> int:
    """The narrowest policy that costs at least `flops`, the paper's `fit`: its width is solved for."""
    return next(units for units in itertools.count(1) if policy_flops(obs_dim, act_dim, units) >= flops)


@dataclass(frozen=True)
class CostModel:
    """Prices of a controller's parts, and everything that follows from them.

    Costs are in actions of the cheapest gear that computes. What the master pays is decided by `charge` alone: its
    reward, the tariff of its choices and the score by which the best policy is kept all go through it.
    """

    gear_flops: tuple[int, ...]  # of one action of each gear; 0 of one that holds the last action
    pick_flops: int  # FLOPs of one pick of the master
    charges_picks: bool = True  # the master pays for its own inference

    @property
    def _unit(self) -> int:
        return next(flops for flops in self.gear_flops if flops)

    @property
    def gear_costs(self) -> tuple[float, ...]:
        """Price of an action of each gear, c_ω of the paper."""
        return tuple(flops / self._unit for flops in self.gear_flops)

    @property
    def pick_cost(self) -> float:
        """Price of a pick."""
        return self.pick_flops / self._unit if self.charges_picks else 0.0

    def charge(self, gear_cost: Any, steps: Any, picks: Any = 1) -> Any:
        """What the master pays, at a coefficient of 1, for `steps` in a gear of this cost and the picks that chose it.

        For numbers and for arrays, of NumPy or JAX. It must be a sum of what steps and what picks cost: a score adds up
        the steps in each gear and all picks of an episode.
        """
        return gear_cost * steps + picks * self.pick_cost

    def master_reward(self, reward: Any, coefficient: Any, gear_cost: Any, steps: Any) -> Any:
        """The master's reward for a pick: what the environment paid meanwhile, minus λ times the charge."""
        return reward - coefficient * self.charge(gear_cost, steps)

    def score(self, episode_return: Any, coefficient: float, gear_steps: Any, picks: Any) -> Any:
        """A return minus what the master paid for it; `gear_steps` has the gears on its last axis."""
        gears = sum(self.charge(cost, gear_steps[..., gear], 0) for gear, cost in enumerate(self.gear_costs))
        return episode_return - coefficient * (gears + self.charge(0, 0, picks))

    def tariff(self, periods: Sequence[int], discount: float) -> tuple[float, ...]:
        """What each choice costs beyond the cheapest one, discounted step by step, at a coefficient of 1.

        Choice c is gear `c % gears` for the period number `c // gears`. It is taken once, and the cheapest ever after:
        all that is certain of a choice's cost before anything is learned.
        """
        kept = [discount**period for period in periods for _ in self.gear_flops]
        once = [
            self.charge(cost, sum(discount**k for k in range(period))) for period in periods for cost in self.gear_costs
        ]
        ever = min(paid / (1 - keeps) for paid, keeps in zip(once, kept, strict=True))
        whole = [paid + keeps * ever for paid, keeps in zip(once, kept, strict=True)]
        return tuple(paid - min(whole) for paid in whole)

    def flops(self, gear_steps: Any, picks: Any) -> Any:
        """FLOPs of the steps in each gear, on the last axis, and of the picks."""
        return (
            sum(flops * gear_steps[..., gear] for gear, flops in enumerate(self.gear_flops)) + self.pick_flops * picks
        )

    def reduction(self, flops: float) -> float:
        """Fraction of the dearest gear's FLOPs per step that is saved; negative where more is spent."""
        return 1.0 - flops / self.gear_flops[-1]


def cost_model(
    obs_dim: int,
    act_dim: int,
    gears: Sequence[Gear | int],
    master_units: int,
    *,
    periods: int = 1,
    sees_position: bool = False,
    charges_picks: bool = True,
) -> CostModel:
    """Of these gears, or widths, and of a master that picks one of them and one of `periods` for it to hold.

    No master, of 0 units, costs nothing.
    """
    kinds = gears_of(gears)
    sees_action = act_dim if any(not gear.computes for gear in kinds) else 0
    return CostModel(
        tuple(gear_flops(gear, obs_dim, act_dim) for gear in kinds),
        master_flops(obs_dim + sees_action + sees_position, len(kinds) * periods, master_units),
        charges_picks,
    )
