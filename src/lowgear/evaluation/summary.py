"""What evaluating and tuning found, as the JSON that `lowgear evaluate` and `lowgear tune` print."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from lowgear import LowgearError
from lowgear.envs.protocol import BatchEnv
from lowgear.evaluation.evaluate import evaluation_row, play_policies
from lowgear.evaluation.tune import TuneResult
from lowgear.policy.file import Policy


def evaluation_report(
    numbered: Sequence[tuple[int, Policy]],
    make_env: Callable[[int], BatchEnv],
    episodes: int,
    master: str,
    seed: int,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Play episodes of every policy of a run, each with the number of its agent, and say what they came to.

    Agents whose environments fail are listed as missing; it is an error where all of them do. Gears are named where
    they are not all plain networks.
    """
    policies = [policy for _, policy in numbered]
    played = play_policies(policies, make_env, episodes, master, seed, progress, may_miss=True)
    if len(played.missing) == len(policies):
        raise LowgearError(played.missing[0])
    header = policies[0].header
    missing = [
        {"agent": numbered[place][0], "cost_coefficient": policies[place].header.cost_coefficient, "why": why}
        for place, why in played.missing.items()
    ]
    report = {
        "task": header.task,
        "recipe": header.recipe,
        "steps": header.steps,
        "episodes": episodes,
        "master": master,
        "agents": [
            evaluation_row(played, place, agent, policy)
            for place, (agent, policy) in enumerate(numbered)
            if place not in played.missing
        ],
    }
    if not all(gear.is_plain for gear in header.gears):
        report["gears"] = [gear.to_json() for gear in header.gears]
    return report | {"missing": missing} if missing else report


def tuning_report(
    policies: Mapping[int, Policy], found: Sequence[TuneResult], demand: Mapping[str, Any]
) -> dict[str, Any]:
    """Of policies by the number of their agent, and the setting of each; the `demand` is repeated."""
    return {
        "task": next(iter(policies.values())).header.task,
        **demand,
        "agents": [
            {
                "agent": agent,
                "variant": policy.header.variant,
                "seed": policy.header.seed,
                "relative_coefficient": policy.at(result.cost_coefficient).header.relative_coefficient,
                "cost_coefficient_before": policy.header.cost_coefficient,
            }
            | asdict(result)
            for (agent, policy), result in zip(policies.items(), found, strict=True)
        ],
    }
