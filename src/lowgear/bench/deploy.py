"""What a controller costs where it runs: its C against its gears alone and against general runtimes, in one run.

Gears alone are exports of the same policy that never ask the master: what a small-only or large-only C would be. A gear
that holds the last action is timed with a master of one unit that picks it for as long as an episode lasts. All replay
the same recorded episodes. Steps are timed back to back; `chained`, where each step waits for the action before
it, is the whole latency of one, which out-of-order processors hide otherwise.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from lowgear.bench import callgrind, energy, microcontrollers, runtimes
from lowgear.bench.c_driver import CompiledReplay
from lowgear.bench.clock import ROUNDS, StepTime, interleave
from lowgear.evaluation.evaluate import Played
from lowgear.evaluation.record import Episode
from lowgear.export import compiler
from lowgear.export.c_format import weight_bytes
from lowgear.export.c_library import state_bytes
from lowgear.export.plain import default_name
from lowgear.export.source import MakeEnv, record_episodes
from lowgear.policy.arrays import DoubleArray
from lowgear.policy.file import Policy
from lowgear.policy.header import LONGEST_PERIOD

Progress = Callable[[str], None]
CONTROLLER, PICKING = "controller", "picking"


@dataclass(frozen=True)
class Latency:
    """Nanoseconds of each part of a compiled controller."""

    gears_ns: tuple[float, ...]
    pick_ns: float

    def us_each(self, played: Played, agent: int) -> DoubleArray:
        """Microseconds per step of each of one controller's episodes."""
        ns = played.gear_steps[agent] @ np.array(self.gears_ns) + played.picks[agent] * self.pick_ns
        us: DoubleArray = ns / played.lengths[agent] / 1000
        return us


def latency(policy: Policy, episodes: Sequence[Episode], rounds: int = ROUNDS) -> Latency:
    """Time the parts of a controller's C on this machine."""
    cc = compiler.need("the latency of the C controller")
    with tempfile.TemporaryDirectory(prefix="lowgear-") as folder:
        replays = _compile(policy, episodes, Path(folder), cc)
        return _parts(interleave({key: replay.run for key, replay in replays.items()}, rounds), replays)


def latency_of(policy: Policy, make_env: MakeEnv, what: str, rounds: int = ROUNDS) -> Latency:
    """The same on an episode that is played first; `what` needs it."""
    compiler.need(what)
    return latency(policy, record_episodes(policy, make_env, 1), rounds)


def measure(policy: Policy, episodes: Sequence[Episode], progress: Progress, rounds: int = ROUNDS) -> dict[str, Any]:
    """Everything that `lowgear bench deploy` reports."""
    cc = compiler.need("lowgear bench deploy")
    with tempfile.TemporaryDirectory(prefix="lowgear-") as folder:
        progress("compiling")
        replays = _compile(policy, episodes, Path(folder), cc)
        reported = {key: replay for key, replay in replays.items() if key != PICKING}
        contenders: dict[str, Mapping[str, Callable[[int], int]]] = {
            "c": {key: replay.run for key, replay in replays.items()},
            "chained": {key: partial(replay.run, chained=True) for key, replay in reported.items()},
            "onnx": runtimes.onnx(policy, episodes[0]),
            "torch": runtimes.torch(policy, episodes[0]),
        }
        progress("timing")
        timed = interleave({(kind, key): run for kind, runs in contenders.items() for key, run in runs.items()}, rounds)
        times = {kind: {key: timed[kind, key] for key in runs} for kind, runs in contenders.items()}
        counted: dict[str, float | None] = {}
        if callgrind.is_installed():
            for key, replay in reported.items():
                progress(f"counting instructions: {key}")
                counted[key] = callgrind.instructions(replay)
        joules = _joules(reported, progress)
    return _report(policy, episodes, times, _parts(times["c"], replays)) | {
        "compiler": compiler.version(cc),
        "flags": ["-std=c99", *compiler.FAST],
        "rounds": rounds,
        "instructions_per_step": counted,
        "instructions_flags": ["-std=c99", *callgrind.FLAGS] if counted else None,
        "joules_per_step": joules,
        "installed": {
            "valgrind": bool(counted),
            "onnxruntime": bool(contenders["onnx"]),
            "torch": bool(contenders["torch"]),
        },
    }


def _compile(policy: Policy, episodes: Sequence[Episode], folder: Path, cc: str) -> dict[str, CompiledReplay]:
    """The controller, each gear alone, and a controller that picks before every step."""
    name, header = default_name(policy.header.task), policy.header
    policies = {CONTROLLER: policy}
    for number, gear in enumerate(header.gears):
        alone = replace(policy, header=replace(header, forced_gear=number)) if gear.computes else _holding(policy)
        policies[f"gear{number}"] = alone
    if header.forced_gear is None:
        policies[PICKING] = replace(policy, header=replace(header, periods=(1,) * len(header.periods)))
    return {key: CompiledReplay(each, f"{name}_{key}", episodes, folder / key, cc) for key, each in policies.items()}


def _holding(policy: Policy) -> Policy:
    """The policy with a master that picks hold and stays with it, once the cheapest other gear has acted for a step."""
    periods, gears = (1, LONGEST_PERIOD), len(policy.header.gears)
    header = replace(policy.header, dial=None, known_prices=False, periods=periods, master_units=1)
    values = np.zeros((1, header.choices), np.float32)
    values[0, [1, gears]] = 1, 2  # the cheapest other gear for 1 step, hold for the longest period
    hidden = [
        (np.zeros((1, inputs, 1), np.float32), np.zeros((1, 1), np.float32)) for inputs in (header.master_inputs, 1)
    ]
    master = [*hidden, (np.zeros((1, 1, header.choices), np.float32), values)]
    return Policy(header, policy.weights._replace(master=master, tariff=None))


def _parts(times: Mapping[str, StepTime], replays: Mapping[str, CompiledReplay]) -> Latency:
    """A pick is what the controller that always picks takes beyond its gears; nothing where there is one gear."""
    gears = tuple(times[key].median for key in replays if key.startswith("gear"))
    if PICKING not in replays:
        return Latency(gears, 0.0)
    share = replays[PICKING].shares / replays[PICKING].shares.sum()
    return Latency(gears, max(0.0, times[PICKING].median - float(np.dot(share, gears))))


def _joules(replays: Mapping[str, CompiledReplay], progress: Progress) -> dict[str, float] | None:
    meters, joules = energy.meters(), {}
    if not meters:
        return None
    for key, replay in replays.items():
        progress(f"measuring energy: {key}")
        ns = interleave({key: replay.run}, 3)[key].median
        passes = max(1, round(energy.MEASURED_S * 1e9 / ns / replay.run(1)))
        joules[key] = energy.joules(meters, partial(replay.run, passes))
    return joules


def _report(
    policy: Policy, episodes: Sequence[Episode], times: Mapping[str, Mapping[str, StepTime]], parts: Latency
) -> dict[str, Any]:
    header, cost = policy.header, policy.header.cost
    steps = sum(episode.steps for episode in episodes)
    share = np.sum([episode.gear_steps for episode in episodes], axis=0) / steps
    picks = sum(int(episode.asked.sum()) for episode in episodes) / steps
    flops = float(cost.flops(share, picks))
    flops_reduction = cost.reduction(flops)
    c, chained = ({key: time.median for key, time in times[kind].items()} for kind in ("c", "chained"))
    large = f"gear{len(header.gears) - 1}"
    saved, saved_chained = (1 - ns[CONTROLLER] / ns[large] for ns in (c, chained))
    return {
        "task": header.task,
        "gears": [gear.to_json() for gear in header.gears],
        "master_units": header.master_units,
        "cost_coefficient": header.cost_coefficient,
        "episodes": len(episodes),
        "steps": steps,
        "gear_share": share.tolist(),
        "picks_per_step": picks,
        "flops_per_step": {CONTROLLER: flops} | {f"gear{gear}": each for gear, each in enumerate(cost.gear_flops)},
        "flops_reduction": flops_reduction,
        "ns_per_step": {
            kind: {key: time._asdict() for key, time in each.items() if key != PICKING} for kind, each in times.items()
        },
        "pick_ns": parts.pick_ns,
        "time_reduction": saved,
        "time_reduction_chained": saved_chained,
        "flops_to_time": saved / flops_reduction if flops_reduction > 0 else None,
        "flops_to_time_chained": saved_chained / flops_reduction if flops_reduction > 0 else None,
        "times_faster_than_onnx": {key: time.median / c[key] for key, time in times["onnx"].items()},
        "bytes": {"weights": weight_bytes(policy, "float32"), "state": state_bytes(header)},
        "microcontrollers": microcontrollers.estimates(header, share.tolist(), picks),
    }
