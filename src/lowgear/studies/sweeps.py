"""Score and share of the large gear against the cost coefficient and against the period."""

from lowgear.config.tasks import Task
from lowgear.studies.setup import Group, Setup

COEFFICIENTS = (1 / 30, 1 / 10, 1 / 3, 1.0, 3.0, 10.0)  # times the task's own
RELATIVE = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # along a dial that is measured against the task's rewards
PERIODS = (1, 3, 5, 10, 15, 20)


def cost_coefficient(setup: Setup, task: Task) -> list[Group]:
    """Along the dial of one agent for each seed, or one agent for each coefficient where the recipe has no dial."""
    config = setup.config(task, "asymmetric")
    dial = config.agents[0].dial
    if config.agents[0].relative:
        return [Group(f"relative λ {x:g}", config, setting=x, x=x) for x in RELATIVE if dial.holds(x)]
    if dial.turns:
        return [Group(f"λ {x:.3g}", config, setting=x, x=x) for x in dial.settings(len(COEFFICIENTS))]
    values = setup.cost_coefficients or [(task.cost_coefficient or 0.0) * factor for factor in COEFFICIENTS]
    return [Group(f"λ {x:.3g}", setup.config(task, "asymmetric", cost_coefficients=[x]), x=x) for x in values]


def period(setup: Setup, task: Task) -> list[Group]:
    """Picks that hold for so many steps, whatever the recipe's choice."""
    return [
        Group(f"period {steps}", setup.config(task, "asymmetric", overrides={"periods": (steps,)}), x=steps)
        for steps in PERIODS
    ]
