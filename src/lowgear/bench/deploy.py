"""What a controller costs where it runs: its C against its gears alone and against general runtimes, in one run.

Gears alone are exports of the same policy that never ask the master: what a small-only or large-only C would be. All
replay the same stored episodes. Steps are timed back to back; `chained`, where each step waits for the action before
it, is the whole latency of one, which out-of-order processors hide otherwise.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lowgear.bench import callgrind, energy, microcontrollers, runtimes
from lowgear.bench.c_driver import Replay
from lowgear.bench.clock import ROUNDS, Timed, interleave
from lowgear.evaluation.evaluate import Played
from lowgear.export import compiler
from lowgear.export.c_header import default_name
from lowgear.export.episode import Episode
from lowgear.policy import cost
from lowgear.policy.file import Policy

Progress = Callable[[str], None]
CONTROLLER, PICKING = "controller", "picking"


@dataclass(frozen=True)
class Latency:
    """Nanoseconds of each part of a compiled controller."""

    gears_ns: tuple[float, ...]
    pick_ns: float

    def per_step(self, shares: Sequence[float], picks_per_step: float) -> float:
        """Of a controller that uses its gears in these shares."""
        return sum(ns * share for ns, share in zip(self.gears_ns, shares, strict=True)) + self.pick_ns * picks_per_step

    def us_each(self, played: Played, agent: int) -> npt.NDArray[np.float64]:
        """Microseconds per step of each of one controller's episodes."""
        ns = played.gear_steps[agent] @ np.array(self.gears_ns) + played.picks[agent] * self.pick_ns
        each: npt.NDArray[np.float64] = ns / played.lengths[agent] / 1000
        return each


def replays(policy: Policy, episodes: Sequence[Episode], folder: Path, found: str) -> dict[str, Replay]:
    """The controller, each gear alone, and a controller that picks before every step, compiled."""
    name, header = default_name(policy.header.task), policy.header
    policies = {CONTROLLER: policy}
    for gear in range(len(header.gears)):
        policies[f"gear{gear}"] = replace(policy, header=replace(header, forced_gear=gear))
    always = replace(header, periods=tuple(1 for _ in header.periods))
    policies[PICKING] = replace(policy, header=always)
    made = {key: Replay(each, f"{name}_{key}", episodes, folder / key, found) for key, each in policies.items()}
    return {key: replay.build(compiler.FAST) for key, replay in made.items()}


def latency(policy: Policy, episodes: Sequence[Episode], rounds: int = ROUNDS) -> Latency:
    """Time the parts of a controller's C on this machine."""
    found = compiler.need("the latency of the C controller")
    with tempfile.TemporaryDirectory(prefix="lowgear-") as folder:
        made = replays(policy, episodes, Path(folder), found)
        timed = interleave({key: replay.run for key, replay in made.items()}, rounds)
        return _parts(timed, made)


def measure(policy: Policy, episodes: Sequence[Episode], progress: Progress, rounds: int = ROUNDS) -> dict[str, Any]:
    """Everything that `lowgear bench deploy` reports."""
    found = compiler.need("lowgear bench deploy")
    with tempfile.TemporaryDirectory(prefix="lowgear-") as folder:
        progress("compiling")
        made = replays(policy, episodes, Path(folder), found)
        onnx, torch = runtimes.onnx(policy, episodes), runtimes.torch(policy, episodes)
        contenders = (
            {f"c/{key}": replay.run for key, replay in made.items()}
            | {f"chained/{key}": partial(replay.run, chained=True) for key, replay in made.items() if key != PICKING}
            | {f"onnx/{key}": run for key, run in onnx.items()}
            | {f"torch/{key}": run for key, run in torch.items()}
        )
        progress("timing")
        timed = interleave(contenders, rounds)
        parts = _parts({key: timed[f"c/{key}"] for key in made}, made)
        counted: dict[str, float | None] = {}
        if callgrind.present():
            for key, replay in made.items():
                progress(f"counting instructions: {key}")
                counted[key] = callgrind.instructions(replay)
        joules = _joules(made, progress)
    return _report(policy, episodes, timed, parts) | {
        "compiler": compiler.version(found),
        "flags": ["-std=c99", *compiler.FAST],
        "rounds": rounds,
        "instructions_per_step": {key: value for key, value in counted.items() if key != PICKING},
        "instructions_flags": ["-std=c99", *callgrind.FLAGS] if counted else None,
        "joules_per_step": joules,
        "installed": {"valgrind": bool(counted), "onnxruntime": bool(onnx), "torch": bool(torch)},
    }


def _parts(timed: dict[str, Timed], made: dict[str, Replay]) -> Latency:
    """A pick is what the controller that always picks takes beyond its gears."""
    gears = tuple(timed[key].median for key in made if key.startswith("gear"))
    used = made[PICKING].shares / made[PICKING].shares.sum()
    pick = timed[PICKING].median - float(np.dot(used, gears))
    return Latency(gears, max(0.0, pick))


def _report(policy: Policy, episodes: Sequence[Episode], timed: dict[str, Timed], parts: Latency) -> dict[str, Any]:
    header, prices = policy.header, policy.header.prices
    steps = sum(len(episode.observation) for episode in episodes)
    shares = [
        sum(int((episode.gear == gear).sum()) for episode in episodes) / steps for gear in range(len(header.gears))
    ]
    picks = sum(int(episode.due.sum()) for episode in episodes) / steps
    flops = cost.episode_flops(prices.gears, shares, prices.pick, picks, 1)
    flops_reduction = cost.flops_reduction(flops, prices.gears[-1])
    large = f"gear{len(header.gears) - 1}"
    times = {
        kind: {key.partition("/")[2]: ns._asdict() for key, ns in timed.items() if key.startswith(f"{kind}/")}
        for kind in ("c", "chained", "onnx", "torch")
    }
    times["c"].pop(PICKING)

    def saved(kind: str) -> float:
        return 1 - float(times[kind][CONTROLLER]["median"] / times[kind][large]["median"])

    return {
        "task": header.task,
        "gears": list(header.gears),
        "master_units": header.master_units,
        "cost_coefficient": header.cost_coefficient,
        "episodes": len(episodes),
        "steps": steps,
        "gear_share": shares,
        "picks_per_step": picks,
        "flops_per_step": {CONTROLLER: flops} | {f"gear{g}": flop for g, flop in enumerate(prices.gears)},
        "flops_reduction": flops_reduction,
        "ns_per_step": times,
        "pick_ns": parts.pick_ns,
        "time_reduction": saved("c"),
        "time_reduction_chained": saved("chained"),
        "flops_to_time": saved("c") / flops_reduction if flops_reduction > 0 else None,
        "flops_to_time_chained": saved("chained") / flops_reduction if flops_reduction > 0 else None,
        "times_faster_than_onnx": {
            key: times["onnx"][key]["median"] / times["c"][key]["median"] for key in times["onnx"]
        },
        "microcontrollers": microcontrollers.estimates(header, shares, picks),
    }


def _joules(made: dict[str, Replay], progress: Progress) -> dict[str, float] | None:
    meter = energy.Meter()
    if not meter.readable:
        return None
    found = {}
    for key, replay in made.items():
        if key == PICKING:
            continue
        progress(f"measuring energy: {key}")
        timed = interleave({key: replay.run}, 3)[key].median
        passes = max(1, round(energy.SECONDS * 1e9 / timed / replay.run(1)))
        found[key] = meter.joules(partial(replay.run, passes))
    return found
