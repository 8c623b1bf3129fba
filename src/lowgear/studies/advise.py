"""Carries out `lowgear advise`: trains the candidates, plays what can be cut out of them, and says what to train.

DIR/runs/              the run, as `lowgear train` makes it: it is not repeated, and goes on where it was stopped
DIR/TASK/advice.json   every number, and the advice
"""

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from lowgear import LowgearError
from lowgear.config.run import RunConfig, resolve
from lowgear.config.tasks import Task, file_name
from lowgear.envs import make_env
from lowgear.policy.files import write_whole
from lowgear.studies import advice
from lowgear.studies.advice import Judge, Judged, Measured, Option
from lowgear.studies.imitation import make_directory
from lowgear.studies.run_store import RunStore
from lowgear.studies.setup import CHECKPOINTS, Group
from lowgear.training.provenance import provenance

SEED = 2  # of the episodes' starts: `lowgear evaluate` uses 0, `lowgear tune` 1
LONGER = 10  # times the sweep's steps: what a training is advised to take
RISING = 0.1  # of the gain over random actions, in the last quarter of the sweep: agents that still learn


@dataclass(frozen=True)
class Request:
    """What was asked for."""

    task: Task
    gears: tuple[int, ...]  # candidate widths
    periods: tuple[int, ...]  # candidate periods
    seeds: tuple[int, ...]
    steps: int  # of the sweep, for each agent
    episodes: int  # of each controller
    keep: float  # of the best width's gain over random actions
    assignments: tuple[str, ...] = ()  # settings of the recipe, as they were typed
    overrides: dict[str, Any] | None = None  # the same, read

    def group(self) -> Group:
        """The agents to train: one for each seed, all in one program."""
        config = resolve(
            self.task,
            steps=self.steps,
            seeds=self.seeds,
            gears=self.gears,
            overrides=(self.overrides or {}) | {"periods": self.periods},
            evaluate_every=0,
            checkpoint_every=max(1, self.steps // CHECKPOINTS),
        )
        if not config.recipe.known_prices:
            raise LowgearError("advice is cut out of agents that know prices: leave out --set known_prices or dial")
        return Group("candidates", config)


def carry_out(request: Request, store: RunStore) -> dict[str, Any]:
    """Train, play, judge; the report, which is also kept."""
    group = request.group()
    store.train([group])
    if store.failures:
        raise LowgearError(store.failures[0])
    agents, config = store.trained(group), group.config
    if len(agents) < 2:
        raise LowgearError(f"of {len(request.seeds)} agents {len(agents)} came to the end, too few to judge by")
    judge, judged, chosen, periods = _judge(request, config, agents, store.progress)
    report: dict[str, Any] = {
        "task": request.task.name,
        "steps": config.steps,
        "seeds": list(request.seeds),
        "episodes": request.episodes,
        "keep": request.keep,
        "random_score": judge.floor,
        "best_width": request.gears[judge.best.option.gears[0]],
        "gain": list(judge.gain),
        "learned": judge.learned,
        "still_rising": _still_rising(store, group, judge.gain[0]),
        "options": [advice.to_json(one, request.gears, request.periods) for one in judged],
        "periods": [advice.to_json(one, request.gears, request.periods) for one in periods],
        "chosen": advice.to_json(chosen, request.gears, request.periods),
    }
    report |= {"words": words(report), "command": command(request, report), "provenance": provenance()}
    path = store.path / file_name(request.task.name) / "advice.json"
    make_directory(path.parent)
    write_whole(path, json.dumps(report, indent=1).encode())
    return report


def _judge(
    request: Request, config: RunConfig, agents: Sequence[Any], progress: Callable[[str, int, int], None]
) -> tuple[Judge, list[Judged], Judged, list[Judged]]:
    """Options of gears, the one that is chosen, and its periods one by one."""
    make, discount = partial(make_env, config), config.recipe.master_discount

    def play(options: Sequence[Option], what: str) -> list[list[Measured]]:
        settings = sum(1 if len(option.gears) == 1 else len(advice.RELATIVE) for option in options)
        total, done = settings * len(agents) * request.episodes, [0]

        def count(more: int) -> None:
            done[0] += more
            progress(what, done[0], total)

        found = advice.play_options(options, agents, make, request.episodes, discount, SEED, count)
        return [[one for one in found if one.option == option] for option in options]

    options = advice.options(len(request.gears), len(request.periods))
    played = play(options, "playing gears")
    random = advice.play_randomly(make, max(8, request.episodes), SEED)
    judge = Judge([own[0] for own in played if len(own[0].option.gears) == 1], random, request.keep)
    judged = [judge.judge(own) for own in played]
    chosen = advice.choose(judged, request.keep)
    each = advice.period_options(chosen.option) if judge.learned else []
    periods = [judge.judge(own) for own in play(each, "playing periods")] if each else []
    return judge, judged, advice.choose([chosen, *periods], request.keep) if periods else chosen, periods


def _still_rising(store: RunStore, group: Group, gain: float) -> bool | None:
    """Whether returns grew by a tenth of the gain in the last quarter; None where too few episodes ended to tell."""
    quarters: dict[int, list[float]] = {3: [], 4: []}
    texts = [run.directory.metrics.read_text(encoding="utf-8") for run in store.plan([group])]
    for line in map(json.loads, "".join(texts).splitlines()):
        quarter = -(-4 * line["steps"] // group.config.steps)
        score = line["return"] if line.get("success") is None else line["success"]
        if line["kind"] == "train" and line["episodes"] and quarter in quarters:
            quarters[quarter].append(score)
    if not all(quarters.values()) or gain <= 0:
        return None
    before, after = (sum(values) / len(values) for values in quarters.values())
    return after - before > RISING * gain


def words(report: dict[str, Any]) -> list[str]:
    """The advice in sentences, with what it cannot tell."""
    chosen, keep = report["chosen"], f"{report['keep']:.0%}"
    if not report["learned"]:
        return [
            f"Cannot tell: after {report['steps']:,} steps no width certainly does better than random actions, "
            "so nothing can be said of their sizes. Give it more --steps."
        ]
    widths = ",".join(map(str, chosen["gears"]))
    what = f"{widths} units alone" if len(chosen["gears"]) == 1 else f"gears {widths}"
    gained = f"of what {report['best_width']} units alone gain over random actions"
    kept, flops = (_percents(chosen[name]) for name in ("kept", "flops"))
    found = [f"Worth training: {what}. Kept {kept} {gained}, at {flops} of the widest gear's FLOPs."]
    if chosen["gears"] == [report["best_width"]]:  # which keeps all of its own
        found = [f"Nothing cheaper than {what}, the best width, certainly keeps {keep} of what it gains."]
    elif chosen["verdict"] != "keeps":
        found.append(
            f"Not certain: the interval does not clear {keep}. More --seeds and --steps narrow it; until then train "
            "the widest gear beside it, as the command does."
        )
    unclear = [
        one
        for one in report["options"]
        if one["verdict"] == "unclear" and one["flops"][0] < chosen["flops"][0] and one["gears"] != chosen["gears"]
    ]
    if unclear:
        shown = "; ".join(",".join(map(str, one["gears"])) for one in unclear)
        found.append(
            f"Cheaper, and undecided: {shown}. More --seeds, --steps and --episodes tell, or training them does."
        )
    if len(chosen["gears"]) == 1 and chosen["gears"][0] == min(min(one["gears"]) for one in report["options"]):
        found.append("The narrowest width does it alone: no master is needed, unless longer training asks for more.")
    if report["periods"]:
        found.append(_of_periods(report))
    if report["still_rising"]:
        found.append("Returns were still rising: wider gears may gain more from longer training. More --steps tell.")
    return found


def _of_periods(report: dict[str, Any]) -> str:
    chosen = report["chosen"]
    clear = [one for one in report["periods"] if one["verdict"] != "unclear"]
    if len(chosen["periods"]) == 1:
        return f"A period of {chosen['periods'][0]} alone does as well."
    if not clear:
        return f"Periods: no one of them is certainly better or worse; keep {','.join(map(str, chosen['periods']))}."
    lost = [str(one["periods"][0]) for one in clear if one["verdict"] == "loses"]
    worse = f" Alone, {' and '.join(lost)} certainly lose too much." if lost else ""
    return f"Periods: no one alone is cheaper; keep {','.join(map(str, chosen['periods']))}.{worse}"


def command(request: Request, report: dict[str, Any]) -> str | None:
    """The training that is advised; None where nothing can be told."""
    if not report["learned"]:
        return None
    chosen = report["chosen"]
    widths = sorted({*chosen["gears"], request.gears[-1]})
    if len(widths) == 1:  # the widest alone: what is beside it is there to be compared
        widths = [request.gears[0], *widths]
    periods = chosen["periods"] or request.periods
    parts = ["lowgear", "train", request.task.name, "--gears", ",".join(map(str, widths))]
    parts += ["--period", ",".join(map(str, periods)), "--steps", str(LONGER * report["steps"])]
    parts += ["--seeds", _seeds(request.seeds), "--variants", "asymmetric,small-only,large-only"]
    for assignment in request.assignments:
        parts += ["--set", assignment]
    return shlex.join(parts)


def _seeds(seeds: Sequence[int]) -> str:
    row = list(range(seeds[0], seeds[0] + len(seeds)))
    return f"{seeds[0]}-{seeds[-1]}" if len(seeds) > 1 and list(seeds) == row else ",".join(map(str, seeds))


def _percents(interval: Sequence[float | None]) -> str:
    mean, low, high = interval
    shown = "" if low is None or high is None else f" [{low:.0%}, {high:.0%}]"
    return f"{mean:.0%}{shown}"
