"""What trackers call an agent, and what they say it is."""

from collections.abc import Iterator
from typing import Any

from lowgear.config.run import RunConfig


def run_name(config: RunConfig, agent: int) -> str:
    """For example agent0-asymmetric-seed0-relative2, or agent3-fixed-cost-seed1-cost0.01."""
    own = config.agents[agent]
    name = f"agent{agent}-{own.variant}-seed{own.seed}"
    if own.forced_gear(config.gears) is not None:
        return name
    return f"{name}-{'relative' if own.relative else 'cost'}{own.cost_coefficient:g}"


def hparams(config: RunConfig, agent: int) -> dict[str, Any]:
    """What the agent is, and every setting of its recipe."""
    own = config.agents[agent]
    return {
        "task": config.task,
        "variant": own.variant,
        "seed": own.seed,
        "cost_coefficient": own.cost_coefficient,
        "relative": own.relative,
        "gears": ",".join(gear.label for gear in config.gears),
        "steps": config.steps,
        "gear_discount": own.discount,
        "gear_learning_rate": own.learning_rate,
        **{f"recipe/{name}": value for name, value in _plain(config.to_json()["recipe"])},
    }


def _plain(settings: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Settings as trackers take them: numbers, flags and texts."""
    for name, value in settings.items():
        if isinstance(value, list | tuple):
            yield name, ",".join(map(str, value))
        elif value is not None:
            yield name, value if isinstance(value, bool | int | float) else str(value)
