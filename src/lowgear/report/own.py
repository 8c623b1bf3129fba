"""Scores of the settings that are deployed, where an evaluation has none of them: `tune` came after it, for example."""

from dataclasses import replace
from functools import partial

from lowgear.envs import make_env
from lowgear.evaluation.evaluate import evaluation_row, play_policies
from lowgear.policy.file import Policy
from lowgear.policy.setting import deployed, same_setting
from lowgear.report.runs import RunData
from lowgear.report.settings import aggregate, own_settings

SEED = 0  # that of `lowgear evaluate`
EPISODES_AT_MOST = 1_000  # whatever an evaluation says of itself


def unscored(run: RunData) -> dict[int, Policy]:
    """The agents whose variant was evaluated, but not at what they are deployed at."""
    rows = run.scored["agents"]
    variants = {row["variant"] for row in rows}
    known = [(row["agent"], row["cost_coefficient"]) for row in rows]
    return {
        agent: deployed(run.policies[agent])
        for agent, own in own_settings(run.policies).items()
        if run.policies[agent].header.variant in variants
        and not any(other == agent and same_setting(value, own) for other, value in known)
    }


def score_own(run: RunData) -> RunData:
    """The run with as many episodes of those agents as its evaluation has of the others, within reason."""
    missing = unscored(run)
    if not missing:
        return run
    config, episodes = run.config, min(run.scored["episodes"], EPISODES_AT_MOST)
    played = play_policies(list(missing.values()), partial(make_env, config), episodes, config.master, SEED)
    rows = [evaluation_row(played, place, agent, policy) for place, (agent, policy) in enumerate(missing.items())]
    scored = run.scored | {"agents": [*run.scored["agents"], *rows]}
    return replace(run, scored=scored, evaluation=aggregate(scored, own_settings(run.policies)))
