"""What a person asks of `evaluate` and `tune`, checked alike for commands and functions: settings, demands."""

from collections.abc import Mapping, Sequence

from lowgear import LowgearError
from lowgear.evaluation.evaluate import at_settings
from lowgear.policy.file import Policy
from lowgear.policy.setting import deployed

DEMANDS = {  # the option of each, and what to write there
    "keep_return": ("--keep-return", "a share above 0 and at most 1, for example 0.95"),
    "max_flops": ("--max-flops", "a share of the large gear's FLOPs, for example 0.2"),
    "max_latency_us": ("--max-latency-us", "microseconds above 0, for example 0.5"),
}


def chosen_settings(
    policies: Sequence[Policy], coefficients: Sequence[float] | None, frontier: int | None
) -> list[tuple[int, Policy]]:
    """As `at_settings`, by the coefficients or the number of settings that a person asked for; else as deployed."""
    if coefficients is not None and frontier is not None:
        raise LowgearError("coefficients and a frontier both choose the settings: give one of them")
    if frontier is not None and frontier < 2:
        raise LowgearError(f"--frontier {frontier}: write 2 or more")
    settings = frontier or tuple(coefficients if coefficients is not None else ())
    if not settings:
        return [(number, deployed(policy)) for number, policy in enumerate(policies)]
    if not any(policy.turns for policy in policies):
        raise LowgearError("no agent has a dial to set: coefficients were settled when they were trained")
    return at_settings(policies, settings)


def check_demand(demands: Mapping[str, float | None], reference: object, episodes: int) -> None:
    """Refuse what a person cannot demand of a setting: none of DEMANDS, several, or a number that is out of range."""
    given = {name: value for name, value in demands.items() if value is not None}
    if len(given) != 1:
        raise LowgearError(
            "say what the setting must do: --keep-return 0.95 or --max-flops 0.2 or --max-latency-us 0.5, one of them"
        )
    for name, value in given.items():
        if not 0 < value < float("inf") or (name == "keep_return" and value > 1):
            option, remedy = DEMANDS[name]
            raise LowgearError(f"{option} {value:g}: write {remedy}")
    if reference is not None and "keep_return" not in given:
        raise LowgearError(f"--reference {reference} goes with --keep-return: what is spent is measured as it is")
    if episodes < 2:
        raise LowgearError(f"--episodes {episodes}: an interval needs 2 or more")
