"""The setting of a dial that is deployed: which one `evaluate`, `tune`, `report` and `export` speak of.

A policy file carries it. Training writes the first, `tune` another, and whatever runs the policy goes by it unless a
person names a coefficient.
"""

import math

from lowgear.policy.file import Policy

SAME = 1e-6  # relative: a coefficient that was written down and read again


def deployed(policy: Policy, coefficient: float | None = None) -> Policy:
    """The policy as it is run: at the coefficient that was asked for, else at its own."""
    return policy if coefficient is None else policy.at(coefficient)


def own_setting(policy: Policy) -> float:
    """The coefficient that the policy is run at where none is asked for."""
    return deployed(policy).header.cost_coefficient


def same_setting(one: float, other: float) -> bool:
    """Whether two coefficients are one setting."""
    return math.isclose(one, other, rel_tol=SAME)
