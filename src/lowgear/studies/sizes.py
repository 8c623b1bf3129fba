"""How wide the gears should be, by the paper's procedure.

A policy of 512 units is the criterion. Large is the narrowest candidate that reaches 90% of the criterion's score;
small is at most a quarter of large and scores about a third of the criterion or less. Every candidate is trained alone.
"""

from collections.abc import Sequence

from lowgear.config.tasks import Task
from lowgear.studies import published
from lowgear.studies.lines import Line
from lowgear.studies.setup import NOTHING, Group, Setup

CRITERION = 512
CANDIDATES = (8, 32, 64, 128, 196, 256)
LARGE_SHARE = 0.9
SMALL_SHARE = 1 / 3
SMALL_WIDTH = 1 / 4


def groups(setup: Setup, task: Task) -> list[Group]:
    """Each width alone: two gears as wide, of which only one ever acts or learns."""
    figures = published.sizes(task)
    return [
        Group(
            f"{units} units",
            setup.config(task, "large-only", gears=(units, units)),
            paper=figures.get(units, NOTHING),
        )
        for units in (*CANDIDATES, CRITERION)
    ]


def reasoning(lines: Sequence[Line]) -> list[str]:
    """The rule applied to one task's scores, in words, with the chosen pair at the end."""
    task = lines[0].task
    floor = task.published.random if task.published is not None else 0.0
    score = dict(zip((*CANDIDATES, CRITERION), (line.score.mean for line in lines), strict=True))
    top = score[CRITERION]
    words = [f"{task.name}: the criterion, {CRITERION} units, scores {top:.4g}; a random policy {floor:.4g}."]
    if top <= 0:
        return [*words, "Shares of a score that is not positive mean nothing: choose the gears by hand."]
    fit = [units for units in CANDIDATES if score[units] >= LARGE_SHARE * top]
    missed = [units for units in CANDIDATES if score[units] < LARGE_SHARE * top]
    if missed:
        shown = ", ".join(f"{units} units {score[units] / top:.0%}" for units in missed)
        words.append(f"Short of {LARGE_SHARE:.0%} of it: {shown}.")
    if not fit:
        return [
            *words,
            f"No candidate reaches {LARGE_SHARE:.0%}: train for longer, or take {CRITERION} units as large.",
        ]
    large = fit[0]
    words.append(f"Large is {large} units, the narrowest that reaches {score[large] / top:.0%}.")
    narrow = [units for units in CANDIDATES if units <= SMALL_WIDTH * large]
    if not narrow:
        return [*words, f"No candidate is at most a quarter of {large} units: it is cheap enough to run alone."]
    poor = [units for units in narrow if score[units] <= SMALL_SHARE * top]
    small = poor[-1] if poor else narrow[0]
    why = (
        f"the widest of at most a quarter that scores a third of the criterion or less ({score[small] / top:.0%})"
        if poor
        else f"the narrowest, though it scores {score[small] / top:.0%} of the criterion: no candidate of at most a "
        "quarter scores a third or less, so the task may need no large gear"
    )
    words.append(f"Small is {small} units, {why}.")
    preset = f" (the paper chose {','.join(map(str, task.gears))})" if task.gears and task.published else ""
    return [*words, f"Chosen: --gears {small},{large}{preset}."]
