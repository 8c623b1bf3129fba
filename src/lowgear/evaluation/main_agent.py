"""Which agent of a run stands for it where one has to: the page plays it, `lowgear export` takes it.

It is the asymmetric agent with the best mean score over the settings that were evaluated; without an evaluation, with
the best score when training was last evaluated; without that, the first. Where no agent is asymmetric, others that
shift come first.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any, NamedTuple

from lowgear.config.run import RunConfig
from lowgear.config.run_directory import RunDirectory
from lowgear.evaluation.evaluate import score_of
from lowgear.evaluation.results import read_evaluation, read_metrics

ONE_GEAR = ("small-only", "large-only")


class MainAgent(NamedTuple):
    """An agent, and in a few words why it and no other."""

    agent: int
    why: str


def of_run(run: RunDirectory, config: RunConfig, best: bool = False) -> MainAgent:
    """The agent of a run directory, of those that have a policy; the first where none has."""
    variants = {place: one.variant for place, one in enumerate(config.agents) if run.policy(place, best).is_file()}
    notices: list[str] = []
    scored = read_evaluation(run, config, notices)["agents"]
    metrics = [] if scored or len(variants) < 2 else read_metrics(run.metrics, config, notices)
    return choose(variants, scored, metrics)


def choose(
    variants: Mapping[int, str], scored: Iterable[Mapping[str, Any]], metrics: Iterable[Mapping[str, Any]]
) -> MainAgent:
    """From variants by agent, rows of an evaluation and lines of metrics."""
    if not variants:
        return MainAgent(0, "the first")
    groups = (
        ("asymmetric agent", [agent for agent, variant in variants.items() if variant == "asymmetric"]),
        ("agent that shifts", [agent for agent, variant in variants.items() if variant not in ONE_GEAR]),
        ("agent", list(variants)),
    )
    kind, agents = next((name, found) for name, found in groups if found)
    if len(agents) == 1:
        return MainAgent(agents[0], f"the only {kind}")
    for source, scores in (("evaluation.json", _mean_scores(scored)), ("training", _last_scores(metrics))):
        if any(agent in scores for agent in agents):
            best = max(agents, key=lambda agent: scores.get(agent, -math.inf))
            return MainAgent(best, f"the best {kind} by {source}")
    return MainAgent(agents[0], f"the first {kind}, for nothing was evaluated")


def best_of(agents: Iterable[int], scored: Iterable[Mapping[str, Any]], metrics: Iterable[Mapping[str, Any]]) -> int:
    """The best of some agents."""
    scores = _mean_scores(scored) or _last_scores(metrics)
    return max(agents, key=lambda agent: scores.get(agent, -math.inf))


def _mean_scores(rows: Iterable[Mapping[str, Any]]) -> dict[int, float]:
    """Of each agent, over its settings."""
    found: defaultdict[int, list[float]] = defaultdict(list)
    for row in rows:
        if math.isfinite(score_of(row)):
            found[row["agent"]].append(score_of(row))
    return {agent: fmean(values) for agent, values in found.items()}


def _last_scores(metrics: Iterable[Mapping[str, Any]]) -> dict[int, float]:
    """Of each agent, when training was last evaluated."""
    lines = [{**line, "success_rate": line.get("success_rate")} for line in metrics if "return_mean" in line]
    last = max((line["steps"] for line in lines), default=0)
    return _mean_scores([line for line in lines if line["steps"] == last])
