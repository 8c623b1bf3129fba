"""How wide the gears should be, by the paper's procedure.

A policy of 512 units is the criterion. Large is the narrowest candidate that reaches 90% of the criterion's score;
small is at most a quarter of large and scores about a third of the criterion or less. Every candidate is trained alone.
"""

from collections.abc import Sequence

from lowgear.config import paper
from lowgear.config.tasks import Task
from lowgear.studies.rows import TableRow
from lowgear.studies.setup import Group, Setup

CRITERION = paper.CRITERION_UNITS
CANDIDATES = (8, 32, 64, 128, 196, 256)
LARGE_SHARE = 0.9
SMALL_SHARE = 1 / 3
SMALL_WIDTH = 1 / 4


def groups(setup: Setup, task: Task) -> list[Group]:
    """Each width alone: two gears as wide, of which only one ever acts or learns."""
    return [
        Group(
            f"{units} units",
            setup.config(task, "large-only", gears=(units, units)),
            paper.width(task.name, units),
        )
        for units in (*CANDIDATES, CRITERION)
    ]


def reasoning(rows: Sequence[TableRow]) -> list[str]:
    """The rule applied to one task's scores, in words, with the chosen pair at the end."""
    task = rows[0].task
    floor = task.published.random if task.published is not None else 0.0
    top = rows[-1].score.mean
    words = [f"{task.name}: the criterion, {CRITERION} units, scores {top:.4g}; a random policy {floor:.4g}."]
    if top <= 0:
        return [*words, "Shares of a score that is not positive mean nothing: choose the gears by hand."]
    share = {units: row.score.mean / top for units, row in zip(CANDIDATES, rows, strict=False)}
    short = [units for units in CANDIDATES if share[units] < LARGE_SHARE]
    if short:
        shown = ", ".join(f"{units} units {share[units]:.0%}" for units in short)
        words.append(f"Short of {LARGE_SHARE:.0%} of it: {shown}.")
    large = next((units for units in CANDIDATES if units not in short), None)
    if large is None:
        advice = f"train for longer, or take {CRITERION} units as large."
        return [*words, f"No candidate reaches {LARGE_SHARE:.0%}: {advice}"]
    words.append(f"Large is {large} units, the narrowest that reaches {share[large]:.0%}.")
    narrow = [units for units in CANDIDATES if units <= SMALL_WIDTH * large]
    if not narrow:
        return [*words, f"No candidate is at most a quarter of {large} units: it is cheap enough to run alone."]
    poor = [units for units in narrow if share[units] <= SMALL_SHARE]
    small = poor[-1] if poor else narrow[0]
    why = (
        f"the widest of at most a quarter that scores a third of the criterion or less ({share[small]:.0%})"
        if poor
        else f"the narrowest, though it scores {share[small]:.0%} of the criterion: no candidate of at most a "
        "quarter scores a third or less, so the task may need no large gear"
    )
    words.append(f"Small is {small} units, {why}.")
    preset = f" (the paper chose {','.join(map(str, task.gears))})" if task.gears and task.published else ""
    return [*words, f"Chosen: --gears {small},{large}{preset}."]
