"""What `lowgear advise` says of what it found: sentences, and the commands that go on from there.

Only what certainly keeps enough is called worth training. Where nothing cheaper than the best width does, but something
might, that is said to be undecided, and the first command makes the sweep larger.
"""

import shlex
from collections.abc import Iterator, Sequence
from typing import Any

LONGER = 10  # times the sweep's steps: what a training is advised to take
LARGER = 3  # times its own steps: the sweep after one that was too short
NO_MASTER = "No master is needed, unless longer training asks for more."
Report = dict[str, Any]  # of advice.json


def words(report: Report) -> list[str]:
    """The advice in sentences, with what it cannot tell."""
    if not report["learned"]:
        return [
            f"Cannot tell: after {report['steps']:,} steps no width certainly does better than random actions, "
            "so nothing can be said of their sizes. Give it more --steps."
        ]
    found = [*(_of_the_best(report) if _is_best(report) else _of_something_cheaper(report))]
    if report["periods"]:
        found.append(_of_periods(report))
    if report["still_rising"]:
        found.append("Returns were still rising: wider gears may gain more from longer training. More --steps tell.")
    return found


def _is_best(report: Report) -> bool:
    """Whether nothing cheaper than the best width certainly keeps enough."""
    return bool(report["chosen"]["gears"] == [report["best_width"]])


def _of_the_best(report: Report) -> Iterator[str]:
    best, keep, candidate = report["best_width"], f"{report['keep']:.0%}", report["candidate"]
    if candidate is None and best == _narrowest(report):
        yield f"Worth training: {best} units alone. They are the narrowest and gain most. {NO_MASTER}"
    elif candidate is None:
        yield f"Worth training: {best} units alone, the best width. All that is cheaper certainly loses too much."
    else:
        yield (
            f"Undecided: nothing cheaper than {best} units alone, the best width, certainly keeps {keep} "
            "of what they gain over random actions."
        )
        kept, flops = (_percents(candidate[name]) for name in ("kept", "flops"))
        yield (
            f"Most promising: {_named(candidate)}. Kept {kept}, at {flops} of the widest gear's FLOPs: "
            f"the interval reaches across {keep}."
        )
        others = [_widths(one) for one in _undecided(report) if one["gears"] != candidate["gears"]]
        if others:
            yield f"Unclear as well: {'; '.join(others)}."


def _of_something_cheaper(report: Report) -> Iterator[str]:
    chosen = report["chosen"]
    kept, flops = (_percents(chosen[name]) for name in ("kept", "flops"))
    gained = f"of what {report['best_width']} units alone gain over random actions"
    yield f"Worth training: {_named(chosen)}. Kept {kept} {gained}, at {flops} of the widest gear's FLOPs."
    cheaper = [_widths(one) for one in _undecided(report) if one["gears"] != chosen["gears"]]
    if cheaper:
        yield (
            f"Cheaper, and undecided: {'; '.join(cheaper)}. More --seeds, --steps and --episodes tell, "
            "or training them does."
        )
    if chosen["gears"] == [_narrowest(report)]:
        yield f"The narrowest width does it alone. {NO_MASTER}"


def _undecided(report: Report) -> list[Report]:
    """What is cheaper than what was chosen, and might keep enough."""
    most = report["chosen"]["flops"][0]
    return [one for one in report["options"] if one["verdict"] == "unclear" and one["flops"][0] < most]


def _of_periods(report: Report) -> str:
    chosen = report["chosen"]
    clear = [one for one in report["periods"] if one["verdict"] != "unclear"]
    if len(chosen["periods"]) == 1:
        return f"A period of {chosen['periods'][0]} alone does as well."
    if not clear:
        return f"Periods: no one of them is certainly better or worse; keep {','.join(map(str, chosen['periods']))}."
    lost = [str(one["periods"][0]) for one in clear if one["verdict"] == "loses"]
    worse = f" Alone, {' and '.join(lost)} certainly lose too much." if lost else ""
    return f"Periods: no one alone is cheaper; keep {','.join(map(str, chosen['periods']))}.{worse}"


def commands(
    report: Report, typed: Sequence[tuple[str, str]], assignments: Sequence[str], periods: Sequence[int]
) -> list[dict[str, str]]:
    """What to type next, each with its reason; `typed` are the options of the sweep that were not left to it."""
    if not report["learned"]:
        return [_command("More steps may tell:", _sweep(report, typed, _longer(report)))]
    train = _Trainings(report, assignments, periods)
    chosen, candidate = report["chosen"], report["candidate"]
    if not _is_best(report):
        return train.of(chosen["gears"], chosen["periods"], f"Trains {_named(chosen)}:")
    if candidate is None:
        return [_command(f"Trains {_named(chosen)}:", train.alone(beside_wider=True))]
    if report["still_rising"]:
        why, larger = "A longer sweep may decide it, since returns still rose:", _longer(report)
    else:
        seeds = _seeds(_twice(report["seeds"]))
        why, larger = "More seeds may decide it; only those are trained:", {"--seeds": seeds}
    first = _command(why, _sweep(report, typed, larger))
    return [
        first,
        *train.of(candidate["gears"], candidate["periods"], f"Or put {_named(candidate)} to the test at length:"),
    ]


class _Trainings:
    """`lowgear train` with ten times the sweep's steps."""

    def __init__(self, report: Report, assignments: Sequence[str], periods: Sequence[int]) -> None:
        self._report, self._periods = report, periods
        self._assignments = [word for one in assignments for word in ("--set", one)]

    def of(self, gears: Sequence[int], periods: Sequence[int], why: str) -> list[dict[str, str]]:
        """These gears and each end of them alone; the best width too, in a run of its own where it is no end."""
        best = self._report["best_width"]
        if len(gears) == 1:  # always narrower than the best width, which is dearer
            return [_command(why, self._train((gears[0], best), "small-only,large-only"))]
        found = [_command(why, self._train(gears, "asymmetric,small-only,large-only", periods or self._periods))]
        if best not in (gears[0], gears[-1]):
            found.append(_command(f"And {best} units alone, which it is measured by:", self.alone()))
        return found

    def alone(self, beside_wider: bool = False) -> list[str]:
        """The best width alone, and the widest alone where it might do better in the end."""
        best = self._report["best_width"]
        widths = [one["gears"][0] for one in self._report["options"] if len(one["gears"]) == 1]
        if best == widths[-1] or (not beside_wider and best != widths[0]):
            return self._train((widths[0], best), "large-only")
        return self._train((best, widths[-1]), "small-only,large-only" if beside_wider else "small-only")

    def _train(self, gears: Sequence[int], variants: str, periods: Sequence[int] = ()) -> list[str]:
        report = self._report
        parts = ["lowgear", "train", report["task"], "--gears", ",".join(map(str, gears))]
        parts += ["--period", ",".join(map(str, periods))] if periods else []
        parts += ["--steps", str(LONGER * report["steps"]), "--seeds", _seeds(report["seeds"])]
        return [*parts, "--variants", variants, *self._assignments]


def _sweep(report: Report, typed: Sequence[tuple[str, str]], changed: dict[str, str]) -> list[str]:
    """The same sweep, larger."""
    kept = [(option, value) for option, value in typed if option not in changed]
    return ["lowgear", "advise", report["task"], *(word for pair in (*kept, *changed.items()) for word in pair)]


def _longer(report: Report) -> dict[str, str]:
    return {"--steps": str(LARGER * report["steps"])}


def _command(why: str, parts: Sequence[str]) -> dict[str, str]:
    return {"why": why, "command": shlex.join(parts)}


def _twice(seeds: Sequence[int]) -> list[int]:
    """The seeds and as many new ones."""
    return [*seeds, *range(max(seeds) + 1, max(seeds) + 1 + len(seeds))]


def _seeds(seeds: Sequence[int]) -> str:
    row = list(range(seeds[0], seeds[0] + len(seeds)))
    return f"{seeds[0]}-{seeds[-1]}" if len(seeds) > 1 and list(seeds) == row else ",".join(map(str, seeds))


def _narrowest(report: Report) -> int:
    narrowest: int = min(min(one["gears"]) for one in report["options"])
    return narrowest


def _widths(option: Report) -> str:
    return ",".join(map(str, option["gears"]))


def _named(option: Report) -> str:
    return f"{_widths(option)} units alone" if len(option["gears"]) == 1 else f"gears {_widths(option)}"


def _percents(interval: Sequence[float | None]) -> str:
    mean, low, high = interval
    shown = "" if low is None or high is None else f" [{low:.0%}, {high:.0%}]"
    return f"{mean:.0%}{shown}"
