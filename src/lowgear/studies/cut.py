"""A controller with fewer gears or periods, cut out of one that has more: no network learns anew.

The master's advantages of the choices that are left stay as they are, and its tariff is made for what is left. It has
learned with all of its choices at hand, so what is cut shows what a controller of these gears may do, not all it could.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lowgear.policy.file import Policy
from lowgear.policy.networks import Tariff, Weights


def alone(policy: Policy, gear: int) -> Policy:
    """One gear that always acts; the master is never asked."""
    return replace(policy, header=replace(policy.header, forced_gear=gear))


def cut(policy: Policy, gears: Sequence[int], periods: Sequence[int], master_discount: float) -> Policy:
    """The policy with the gears and periods of these numbers, at the relative coefficient it stands at.

    At a relative coefficient of 1 a step of the dearest gear costs as much as before, whatever the cheapest costs that
    prices are measured in. Needs a master that knows prices.
    """
    header, tariff = policy.header, policy.weights.tariff
    assert tariff is not None
    assert header.dial is not None
    left = replace(
        header,
        gears=tuple(header.gears[gear] for gear in gears),
        periods=tuple(header.periods[period] for period in periods),
    )
    factor = header.cost.gear_costs[-1] / left.cost.gear_costs[-1]
    dial = header.dial.times(factor)
    left = replace(
        left,
        dial=dial,
        cost_coefficient=header.cost_coefficient * factor,
        cost_unit=None if header.cost_unit is None else header.cost_unit * factor,
    )
    choices = [gear + len(header.gears) * period for period in periods for gear in gears]
    *hidden, (weight, bias) = policy.weights.master
    each = np.array([left.cost.tariff(left.periods, master_discount)], np.float32)
    return Policy(
        left,
        Weights(
            tuple(policy.weights.gears[gear] for gear in gears),
            [*hidden, (weight[:, :, choices], bias[:, choices])],
            Tariff(np.array([dial.low], np.float32), np.array([dial.high], np.float32), each),
        ),
    )
