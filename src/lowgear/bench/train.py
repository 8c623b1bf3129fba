"""How fast a population trains here, where the time goes, and how far it is from the machine's own rate.

All of it is timed from outside: the loop, the learner and the collector are those of any run. One round of the loop
is insert, start, collect, wait: `collect` is the environments' steps and acting, and the learner runs beside it.
"""

import gc
import math
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import jax

from lowgear import LowgearError
from lowgear.bench import floor
from lowgear.config.run import RunConfig
from lowgear.envs.protocol import BatchEnv, EnvSpec, FloatArray, Step
from lowgear.training.loop import Line, Training

Progress = Callable[[str], None]

WARM_UPDATES = 1_024  # of each agent before the clock starts: the compiler and the caches are done by then
WARM_S = 5.0  # of updates; enough instead, where many agents make updates slow
WARM_ROUNDS = 4  # of the loop, at the least
SHOW_EVERY_S = 0.5


def measure(config: RunConfig, env: BatchEnv, seconds: float, progress: Progress = lambda _: None) -> dict[str, Any]:
    """Train for about `seconds` past random steps and compiling, then close `env`; what it took, ready for JSON.

    `env` holds `config.environments` environments; nothing is evaluated or saved. A run that ends before is measured
    for as long as it lasted. Shares are of the main loop's wall time.

    - `task`, `recipe`, `gears`, `critic_units`, `agents`, `environments` (of each agent), `backend`
    - `agent_steps`, `seconds`, `agent_steps_per_s`: steps of all agents together, each with one update of its agent
    - `share_environment` inside `env.step`, `share_acting` the rest of collecting, `share_waiting` for the learner,
      `share_other`; they add up to 1
    - `learner_busy_share`: time from the start of each round's jobs to the end of the last, over wall time;
      `learner_updates_per_s`: of all agents, in that time
    - `update_mflop`: products of one update of one agent; `gemm_gflop_per_s`: the machine's rate on such products,
      the better of `gemm_gflop_per_s_before` and `gemm_gflop_per_s_after`; `learner_share_of_gemm` and
      `loop_share_of_gemm`: of that rate, what the learner reaches while it runs, and what the whole loop reaches
    - `startup_s`: from Training's construction to the end of its first round of updates, random steps included
    - `peak_resident_bytes`, `peak_device_bytes` (None where JAX does not tell): of the process so far, so whatever ran
      in it before counts; `replay_bytes`: of all agents' rings
    """
    if not (0 < seconds < math.inf):
        raise LowgearError(f"--seconds {seconds:g}: write a number above 0, for example 20")
    with closing(env):
        progress("the machine's rate")
        before = floor.machine_rate(config)
        found = _train(config, env, seconds, progress)
    gc.collect()  # the rings, before another case makes its own
    progress("the machine's rate")
    return found | _distance(found, before, floor.machine_rate(config))


def _train(config: RunConfig, env: BatchEnv, seconds: float, progress: Progress) -> dict[str, Any]:
    """All but the machine's rate."""
    clocks = Clocks()
    began = time.perf_counter()
    training = Training(replace(config, evaluate_every=0), ClockedEnv(env, clocks), None)
    meter = Meter(training, clocks, seconds, progress)
    try:
        with _clocked(training, clocks):
            training.run([meter])
        return _sizes(config, training) | meter.found(began)
    finally:
        training.learner.close()


@dataclass
class Clocks:
    """Seconds that the parts of the loop have taken so far."""

    environment: float = 0.0
    collecting: float = 0.0  # the environment's included
    waiting: float = 0.0
    learning: float = 0.0  # each round's, from its start to the end of its last job
    rounds: int = 0  # of updates
    first_round: float | None = None  # when it had ended
    started: float = 0.0  # when the round that runs did
    ended: list[float] = field(default_factory=list)  # when its jobs had


class ClockedEnv:
    """An environment whose steps are clocked."""

    def __init__(self, env: BatchEnv, clocks: Clocks) -> None:
        self.spec: EnvSpec = env.spec
        self.num_envs, self.goal_rule = env.num_envs, env.goal_rule
        self.reset, self.close = env.reset, env.close
        self._step, self._clocks = env.step, clocks

    def step(self, actions: FloatArray) -> Step:
        """As the environment's own."""
        began = time.perf_counter()
        step = self._step(actions)
        self._clocks.environment += time.perf_counter() - began
        return step


class Meter:
    """Listens to a run: starts the clock once it is warm and ends the run when the time is over."""

    def __init__(self, training: Training, clocks: Clocks, seconds: float, progress: Progress) -> None:
        self._training, self._clocks, self._seconds, self._progress = training, clocks, seconds, progress
        self._start: tuple[float, int, Clocks] | None = None
        self._stop: tuple[float, int, Clocks] | None = None
        self._shown = 0.0

    def on_log(self, lines: list[Line]) -> None:
        """Nothing: the rates are our own."""

    def on_evaluation(self, lines: list[Line]) -> None:
        """Never called: nothing is evaluated."""

    def on_steps(self, steps: int) -> bool | None:
        """After each round, when the learner is at rest; False when the time is over."""
        now = time.perf_counter()
        mark = now, steps, replace(self._clocks)
        if self._start is None:
            self._show(now, f"warming up, {steps:,} steps")
            if self._warm(now):
                self._start = mark
            return None
        self._stop, passed = mark, now - self._start[0]
        self._show(now, f"{passed:.0f} of {self._seconds:g} s")
        return passed < self._seconds

    def found(self, began: float) -> dict[str, Any]:
        """The rates and shares, of a run whose construction began then."""
        if self._start is None or self._stop is None or self._clocks.first_round is None:
            config = self._training.config
            raise LowgearError(
                f"{config.steps} steps of {config.task} are over before the learners are warm: "
                f"give the run {config.recipe.random_steps + 10 * WARM_UPDATES} or more"
            )
        (start, first, then), (stop, last, now) = self._start, self._stop
        wall, agents = stop - start, len(self._training.config.agents)
        environment, collecting = now.environment - then.environment, now.collecting - then.collecting
        waiting, learning = now.waiting - then.waiting, now.learning - then.learning
        updates = (now.rounds - then.rounds) * self._training.config.recipe.chunk * agents
        return {
            "agent_steps": (last - first) * agents,
            "seconds": wall,
            "agent_steps_per_s": (last - first) * agents / wall,
            "share_environment": environment / wall,
            "share_acting": (collecting - environment) / wall,
            "share_waiting": waiting / wall,
            "share_other": (wall - collecting - waiting) / wall,
            "learner_busy_share": learning / wall,
            "learner_updates_per_s": updates / learning,
            "startup_s": self._clocks.first_round - began,
        }

    def _warm(self, now: float) -> bool:
        clocks, updates = self._clocks, self._training.learner.time
        if clocks.first_round is None or clocks.rounds < WARM_ROUNDS:
            return False
        return updates >= WARM_UPDATES or now - clocks.first_round >= WARM_S

    def _show(self, now: float, text: str) -> None:
        if now - self._shown >= SHOW_EVERY_S:
            self._shown = now
            self._progress(text)


@contextmanager
def _clocked(training: Training, clocks: Clocks) -> Iterator[None]:
    """Clocks around what the loop calls, on these instances and for as long as it runs."""
    learner, collector = training.learner, training.collector
    start, run, wait, collect = learner.start, learner._run, learner.wait, collector.collect

    def clocked_start(updates: int) -> None:
        clocks.started = time.perf_counter()
        start(updates)

    def clocked_run(*job: Any) -> Any:  # in the learner's threads, once for each job
        metrics = run(*job)
        clocks.ended.append(time.perf_counter())
        return metrics

    def clocked_wait() -> Any:
        began = time.perf_counter()
        metrics = wait()
        now = time.perf_counter()
        clocks.waiting += now - began
        if clocks.ended:
            clocks.learning += max(clocks.ended) - clocks.started
            clocks.rounds += 1
            clocks.ended.clear()
            clocks.first_round = now if clocks.first_round is None else clocks.first_round
        return metrics

    def clocked_collect(*arguments: Any, **named: Any) -> Any:
        began = time.perf_counter()
        chunk = collect(*arguments, **named)
        clocks.collecting += time.perf_counter() - began
        return chunk

    places = (
        (learner, "start", clocked_start),
        (learner, "_run", clocked_run),
        (learner, "wait", clocked_wait),
        (collector, "collect", clocked_collect),
    )
    for owner, name, call in places:
        setattr(owner, name, call)
    try:
        yield
    finally:
        for owner, name, _ in places:
            delattr(owner, name)  # the class's own again


def _sizes(config: RunConfig, training: Training) -> dict[str, Any]:
    """What was run, and what it holds."""
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    device = jax.local_devices()[0].memory_stats() or {}  # a CPU gives None
    return {
        "task": config.task,
        "recipe": config.recipe.name,
        "gears": list(config.gears),
        "critic_units": list(config.critic_units),
        "agents": len(config.agents),
        "environments": config.recipe.environments,
        "backend": jax.default_backend(),
        "update_mflop": floor.update_flops(config, training.spec.obs_dim, training.spec.act_dim) / 1e6,
        "peak_resident_bytes": resident if sys.platform == "darwin" else resident * 1024,
        "peak_device_bytes": device.get("peak_bytes_in_use"),
        "replay_bytes": sum(leaf.nbytes for leaf in jax.tree.leaves(training.learner._rings)),
    }


def _distance(found: dict[str, Any], before: float, after: float) -> dict[str, Any]:
    """How near the learner and the loop come to the machine's rate: noise only lowers that, so the better one holds."""
    rate, flops = max(before, after), found["update_mflop"] * 1e6
    return {
        "gemm_gflop_per_s": rate / 1e9,
        "gemm_gflop_per_s_before": before / 1e9,
        "gemm_gflop_per_s_after": after / 1e9,
        "learner_share_of_gemm": found["learner_updates_per_s"] * flops / rate,
        "loop_share_of_gemm": found["agent_steps_per_s"] * flops / rate,
    }
