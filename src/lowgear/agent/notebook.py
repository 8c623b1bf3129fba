"""An agent as a notebook shows it: a table, and its learning curve where the extra for pictures is installed."""

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lowgear.agent.agent import Agent
    from lowgear.policy.gears import Gear


def as_html(agent: "Agent") -> str:
    """The table, with the picture under it."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in _facts(agent))
    return f"<table>{rows}</table>{_curve(agent)}"


def _facts(agent: "Agent") -> list[tuple[str, str]]:
    trained, config = agent.is_trained, agent.config if agent.can_learn else None
    if not trained:
        assert config is not None
        return [("task", config.task), ("gears", _widths(config.gears)), ("steps", "0: call learn(total_timesteps)")]
    header = agent.policy.header
    found = [
        ("task", header.task),
        ("variant", f"{header.variant}, {header.recipe} recipe, seed {header.seed}"),
        ("gears", _widths(header.gears)),
        ("FLOPs of an action", ", ".join(f"{flops:,}" for flops in header.cost.gear_flops)),
        ("steps", f"{header.steps:,}"),
    ]
    if header.forced_gear is None:
        dial = header.dial
        ends = f", on a dial from {dial.low:.3g} to {dial.high:.3g}" if dial is not None and dial.turns else ""
        found.append(("cost coefficient", f"{header.cost_coefficient:.3g}{ends}"))
    return found + _scores(agent.history)


def _scores(history: list[dict[str, Any]]) -> list[tuple[str, str]]:
    found = []
    trained = [line for line in history if line["kind"] == "train" and line["return"] is not None]
    if trained:
        last = trained[-1]
        found.append(("return while training", f"{last['return']:.4g}, large gear {last['large_share']:.0%} of steps"))
    evaluated = [line for line in history if line["kind"] == "evaluation"]
    if evaluated:
        last = evaluated[-1]
        saved = f"{last['flops_reduction']:.1%} of the large gear's FLOPs saved"
        found.append(("return, evaluated", f"{last['return_mean']:.4g} ± {last['return_ci95']:.2g}, {saved}"))
    return found


def _widths(gears: "tuple[Gear, ...]") -> str:
    return ", ".join(map(str, gears))


def _curve(agent: "Agent") -> str:
    """Return over steps, or nothing where there is nothing to draw, or nothing to draw with."""
    if not agent.is_trained or not agent.can_learn:
        return ""
    try:
        from lowgear.report.curves import describe_lines
        from lowgear.report.matplotlib_figure import svg
    except ImportError:
        return ""
    figure = describe_lines(agent.history, agent.policy.header.task, agent.policy.header.recipe)
    return "" if figure is None else svg(figure)
