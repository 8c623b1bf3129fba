"""Small reports in the shape of `lowgear evaluate --json`."""

from typing import Any

LARGE_FLOPS = 1000.0


def row(agent: int, variant: str, coefficient: float, score: float, flops: float, **others: Any) -> dict[str, Any]:
    return {
        "agent": agent,
        "variant": variant,
        "seed": agent,
        "cost_coefficient": coefficient,
        "return_mean": score,
        "return_ci95": 2.0,
        "success_rate": None,
        "flops_per_step": flops,
        "flops_reduction": 1 - flops / LARGE_FLOPS,
        "flops_reduction_ci95": 0.01,
    } | others


def dial(agent: int, scores: dict[float, tuple[float, float]], variant: str = "asymmetric") -> list[dict[str, Any]]:
    return [row(agent, variant, coefficient, *scored) for coefficient, scored in scores.items()]


def report(agents: list[dict[str, Any]], task: str = "walker-stand") -> dict[str, Any]:
    return {
        "task": task,
        "recipe": "modern",
        "steps": 300_032,
        "episodes": 20,
        "master": "greedy",
        "agents": agents,
    }


TWO_DIALS = [
    *dial(0, {0.1: (80.0, 100.0), 0.01: (90.0, 300.0), 0.001: (98.0, 700.0)}),
    *dial(1, {0.1: (60.0, 200.0), 0.01: (96.0, 340.0), 0.001: (100.0, 900.0)}),
]
BASELINES = [
    row(2, "small-only", 0.0, 50.0, 60.0),
    row(3, "small-only", 0.0, 70.0, 60.0),
    row(4, "large-only", 0.0, 99.0, 1000.0),
    row(5, "large-only", 0.0, 95.0, 1000.0),
    row(6, "fixed-cost", 0.05, 85.0, 160.0),
    row(7, "fixed-cost", 0.05, 75.0, 200.0),
    row(8, "fixed-cost", 0.005, 91.0, 420.0),
    row(9, "no-cost", 0.0, 97.0, 950.0),
]
