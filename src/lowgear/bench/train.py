"""How fast a population trains here, where the time goes, and how far it is from the machine's own rate.

The loop keeps its own timings. One round of it is insert, start, collect, wait: collecting is the environments' steps
and acting, and the learner runs beside it.
"""

import gc
import math
import resource
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, NamedTuple

import jax

from lowgear import LowgearError
from lowgear.bench import alone, floor
from lowgear.config.run import RunConfig
from lowgear.envs.protocol import BatchEnv
from lowgear.training.loop import Training
from lowgear.training.pipeline import Timings
from lowgear.training.progress import Listener

Progress = Callable[[str], None]
Prepare = Callable[[Training], Sequence[Listener]]

WARM_UPDATES = 1_024  # of each agent before the clock starts: the compiler and the caches are done by then
WARM_S = 5.0  # of updates; enough instead, where many agents make updates slow
WARM_ROUNDS = 4  # of the loop, at the least
ALONE_S = 2.0  # of the learner, and of the environments, each with the machine for itself
SHOW_EVERY_S = 0.5


def measure(
    config: RunConfig,
    env: BatchEnv,
    seconds: float,
    progress: Progress = lambda _: None,
    prepare: Prepare = lambda _: (),
) -> dict[str, Any]:
    """Train for about `seconds` past random steps and compiling, then close `env`; what it took, ready for JSON.

    `env` holds `config.environments` environments; nothing is evaluated or saved. A run that ends before is measured
    for as long as it lasted. `prepare` may change the training before it begins, and gives it further listeners. Shares
    are of the main loop's wall time.

    - `task`, `recipe`, `gears`, `critic_units`, `agents`, `environments` (of each agent), `backend`
    - `agent_steps`, `seconds`, `agent_steps_per_s`: steps of all agents together, each with one update of its agent
    - `share_environment` inside `env.step`, `share_acting` the rest of collecting, `share_waiting` for the learner,
      `share_other`; they add up to 1
    - `learner_busy_share`: time from the start of each round's jobs to the end of the last, over wall time;
      `learner_updates_per_s`: of all agents, in that time
    - `update_mflop`: products of one update of one agent; `gemm_gflop_per_s`: the machine's rate on such products,
      the better of `gemm_gflop_per_s_before` and `gemm_gflop_per_s_after`; `learner_share_of_gemm` and
      `loop_share_of_gemm`: of that rate, what the learner reaches while it runs, and what the whole loop reaches
    - `environments_alone_per_s`, `learner_alone_per_s`: steps of the same environments with random actions, and
      steps that the updates would do for, of all agents, each with the machine for itself, in the same run;
      `share_of_slower`: `agent_steps_per_s` over the lesser of the two; `updates_per_step` of each learner
    - `groups`: of agents that collect at once
    - `startup_s`: from Training's construction to the end of its first round of updates, random steps included
    - `peak_resident_bytes`, `peak_device_bytes` (None where JAX does not tell): of the process so far, so whatever ran
      in it before counts; `replay_bytes`: of all agents' rings
    """
    if not (0 < seconds < math.inf):
        raise LowgearError(f"--seconds {seconds:g}: write a number above 0, for example 20")
    with closing(env):
        progress("the machine's rate")
        before = floor.machine_rate(config)
        began = time.perf_counter()
        training = Training(replace(config, evaluate_every=0), env, None)
        with closing(training):
            speed = SpeedListener(training, seconds, progress)
            training.run([speed, *prepare(training)])
            report = _sizes(training) | speed.report(began)
            progress("the learner alone")
            learning = alone.learner_rate(training.learner, config.recipe, len(config.agents), ALONE_S)
            progress("the environments alone")
            stepping = alone.environments_rate(env, ALONE_S)
        report |= {
            "environments_alone_per_s": stepping,
            "learner_alone_per_s": learning,
            "share_of_slower": report["agent_steps_per_s"] / min(stepping, learning),
        }
    del training, speed
    gc.collect()  # the replay buffers, before another case makes its own
    progress("the machine's rate")
    return report | _distance(report, before, floor.machine_rate(config))


class Mark(NamedTuple):
    """A moment of the run."""

    at: float  # by `time.perf_counter`
    steps: int
    timings: Timings


class SpeedListener(Listener):
    """Begins to measure a run once it is warm and ends it when the time is over."""

    def __init__(self, training: Training, seconds: float, progress: Progress) -> None:
        self._training, self._seconds, self._progress = training, seconds, progress
        self._first: Mark | None = None
        self._last: Mark | None = None
        self._shown = 0.0

    def on_steps(self, steps: int) -> bool | None:
        """After each round, when the learner is at rest; False when the time is over."""
        mark = Mark(time.perf_counter(), steps, self._training.timings)
        if self._first is None:
            self._show(mark, f"warming up, {steps:,} steps")
            if self._is_warm(mark):
                self._first = mark
            return None
        self._last, passed = mark, mark.at - self._first.at
        self._show(mark, f"{passed:.0f} of {self._seconds:g} s")
        return passed < self._seconds

    def report(self, began: float) -> dict[str, Any]:
        """The rates and shares, of a run whose construction began then."""
        config, first, last = self._training.config, self._first, self._last
        if first is None or last is None or last.timings.first_round_at is None:
            raise LowgearError(
                f"{config.steps} steps of {config.task} are over before the learners are warm: "
                f"give the run {config.recipe.random_steps + 10 * WARM_UPDATES} or more"
            )
        wall, agents = last.at - first.at, len(config.agents)
        environment, collecting, waiting, learning, rounds = (
            getattr(last.timings, name) - getattr(first.timings, name)
            for name in ("environment", "collecting", "waiting", "learning", "rounds")
        )
        agent_steps = (last.steps - first.steps) * agents
        return {
            "agent_steps": agent_steps,
            "seconds": wall,
            "agent_steps_per_s": agent_steps / wall,
            "share_environment": environment / wall,
            "share_acting": (collecting - environment) / wall,
            "share_waiting": waiting / wall,
            "share_other": (wall - collecting - waiting) / wall,
            "learner_busy_share": learning / wall,
            "learner_updates_per_s": rounds * config.recipe.updates_per_chunk * agents / learning,
            "startup_s": last.timings.first_round_at - began,
        }

    def _is_warm(self, mark: Mark) -> bool:
        first_round_at = mark.timings.first_round_at
        if first_round_at is None or mark.timings.rounds < WARM_ROUNDS:
            return False
        return self._training.learner.time >= WARM_UPDATES or mark.at - first_round_at >= WARM_S

    def _show(self, mark: Mark, text: str) -> None:
        if mark.at - self._shown >= SHOW_EVERY_S:
            self._shown = mark.at
            self._progress(text)


def _sizes(training: Training) -> dict[str, Any]:
    """What was run, and what it holds."""
    config, spec = training.config, training.spec
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    device = jax.local_devices()[0].memory_stats() or {}  # a CPU gives None
    return {
        "task": config.task,
        "recipe": config.recipe.name,
        "gears": [gear.to_json() for gear in config.gears],
        "critic_units": list(config.critic_units),
        "agents": len(config.agents),
        "environments": config.recipe.environments,
        "updates_per_step": config.recipe.updates_per_step,
        "groups": training.collector.groups,
        "backend": jax.default_backend(),
        "update_mflop": floor.update_flops(config, spec.obs_dim, spec.act_dim) / 1e6,
        "peak_resident_bytes": resident if sys.platform == "darwin" else resident * 1024,
        "peak_device_bytes": device.get("peak_bytes_in_use"),
        "replay_bytes": training.learner.buffer_bytes,
    }


def _distance(report: dict[str, Any], before: float, after: float) -> dict[str, Any]:
    """How near the learner and the loop come to the machine's rate: noise only lowers that, so the better one holds."""
    rate, flops = max(before, after), report["update_mflop"] * 1e6
    return {
        "gemm_gflop_per_s": rate / 1e9,
        "gemm_gflop_per_s_before": before / 1e9,
        "gemm_gflop_per_s_after": after / 1e9,
        "learner_share_of_gemm": report["learner_updates_per_s"] * flops / rate,
        "loop_share_of_gemm": report["agent_steps_per_s"] * report["updates_per_step"] * flops / rate,
    }
