"""Carries out `lowgear advise`: trains the candidates, plays what can be cut out of them, and says what to train.

DIR/runs/              the run, as `lowgear train` makes it: it is not repeated, and goes on where it was stopped
DIR/TASK/advice.json   every number, and the advice
"""

import json
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
from lowgear.studies.advice_text import commands, words
from lowgear.studies.imitation import make_directory
from lowgear.studies.run_store import RunStore
from lowgear.studies.setup import CHECKPOINTS, Group
from lowgear.training.provenance import provenance

SEED = 2  # of the episodes' starts: `lowgear evaluate` uses 0, `lowgear tune` 1
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
    typed: tuple[tuple[str, str], ...] = ()  # options and their values, as they were typed

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


@dataclass(frozen=True)
class Found:
    """What the sweep came to."""

    judge: Judge
    options: list[Judged]  # every choice of gears
    chosen: Judged | None = None  # what certainly keeps enough for least; None where nothing was learned
    candidate: Judged | None = None  # cheaper, and unclear: what is most likely to keep enough
    periods: Sequence[Judged] = ()  # what was chosen, with each of its periods alone


def carry_out(request: Request, store: RunStore) -> dict[str, Any]:
    """Train, play, judge; the report, which is also kept."""
    group = request.group()
    store.train([group])
    if store.failures:
        raise LowgearError(store.failures[0])
    agents, config = store.trained(group), group.config
    if len(agents) < 2:
        raise LowgearError(f"of {len(request.seeds)} agents {len(agents)} came to the end, too few to judge by")
    found = _judge(request, config, agents, store.progress)
    judge = found.judge

    def shown(one: Judged | None) -> dict[str, Any] | None:
        return None if one is None else advice.to_json(one, request.gears, request.periods)

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
        "still_rising": still_rising(_lines(store, group), config.steps, judge.gain[0]),
        "options": [shown(one) for one in found.options],
        "periods": [shown(one) for one in found.periods],
        "chosen": shown(found.chosen),
        "candidate": shown(found.candidate),
    }
    report |= {
        "words": words(report),
        "commands": commands(report, request.typed, request.assignments, request.periods),
        "provenance": provenance(),
    }
    path = store.path / file_name(request.task.name) / "advice.json"
    make_directory(path.parent)
    write_whole(path, json.dumps(report, indent=1).encode())
    return report


def _judge(
    request: Request, config: RunConfig, agents: Sequence[Any], progress: Callable[[str, int, int], None]
) -> Found:
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
    if not judge.learned:
        return Found(judge, judged)
    chosen = advice.choose(judged)
    candidate = advice.most_promising(advice.undecided(judged, chosen), request.keep)
    each = advice.period_options(chosen.option)
    periods = [judge.judge(own) for own in play(each, "playing periods")] if each else []
    return Found(judge, judged, advice.choose([chosen, *periods]), candidate, periods)


def _lines(store: RunStore, group: Group) -> list[dict[str, Any]]:
    """What was logged while the candidates trained."""
    texts = [run.directory.metrics.read_text(encoding="utf-8") for run in store.plan([group])]
    return [json.loads(line) for text in texts for line in text.splitlines()]


def still_rising(lines: Sequence[dict[str, Any]], steps: int, gain: float) -> bool | None:
    """Whether scores grew by a tenth of the gain in the last quarter; None where too few episodes ended to tell."""
    quarters: dict[int, list[float]] = {3: [], 4: []}
    for line in lines:
        quarter = -(-4 * line["steps"] // steps)
        if line["kind"] == "train" and line["episodes"] and quarter in quarters:
            by_success = line.get("success") is not None and line.get("scored_by") != "return"
            quarters[quarter].append(line["success" if by_success else "return"])
    if not all(quarters.values()) or gain <= 0:
        return None
    before, after = (sum(values) / len(values) for values in quarters.values())
    return after - before > RISING * gain
