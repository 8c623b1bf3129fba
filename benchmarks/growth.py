"""What growth costs on this machine: time per step and peak memory against the sizes of a run, and its start-up.

    python benchmarks/growth.py [--seconds 6] [--only width] [--json FILE]

cartpole-swingup with the modern recipe and rings of 100,000 steps, one thing grown at a time. Every case is a process
of its own with an empty cache of compiled programs. Peak memory is that after compiling (Linux; elsewhere the compiler
counts too), beside the peak until then. Families take turns, so that a busy minute does not hit one of them alone. The
replay family's rings are full before the clock starts. The steps family is one run four times as long, with a ring that
it goes round, told by quarters. Start-up ends with a process's first chunk of updates.
"""

import ctypes
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np
from rich.console import Console
from rich.table import Table

TASK, RING, CHUNK, RANDOM = "cartpole-swingup", 100_000, 64, 1_024  # RANDOM: the recipe's 1,000 in whole chunks
FAMILIES = {
    "agents": (1, 2, 4, 8, 16),
    "width": (32, 64, 128, 256, 512),  # of the large gear and of all critics; the small gear keeps its 8
    "gears": (2, 3, 4),  # of 32 units each, with the recipe's critics
    "replay": (10_000, 100_000, 1_000_000),
    "steps": (4_096,),  # the ring of its one run
    "start-up": ("empty", "warm") * 3,
}
UNITS = {"agents": "an agent", "width": "a unit", "gears": "a gear", "replay": "a step", "steps": "a step"}
STAGES = ("imports", "set-up", "random steps", "first updates")


class Law(NamedTuple):
    """y = a · x^b, or y = a + b · x; `worst` is how far the worst point lies from it, as a share."""

    a: float
    b: float
    worst: float


def power_law(x, y):
    """y = a · x^b, by least squares in logarithms."""
    b, log_a = fit = np.polyfit(np.log(x), np.log(y), 1)
    return Law(float(np.exp(log_a)), float(b), float(np.abs(y / np.exp(np.polyval(fit, np.log(x))) - 1).max()))


def straight_line(x, y):
    """y = a + b · x, by least squares."""
    b, a = fit = np.polyfit(x, y, 1)
    return Law(float(a), float(b), float(np.abs(y / np.polyval(fit, x) - 1).max()))


def in_turn(families):
    """(family, number, x) of every case: the first of each family, then the second of each, and so on."""
    columns = [[(name, number, x) for number, x in enumerate(values)] for name, values in families.items()]
    return [case for row in itertools.zip_longest(*columns) for case in row if case is not None]


class Clock:
    """Listens to a run from step `first` on: marks time, steps and peak memory, and stops it once they are enough."""

    def __init__(self, first, enough=lambda marks: False, forget=False):  # noqa: ARG005
        self.first, self.enough, self.forget, self.marks = first, enough, forget, []

    def on_log(self, lines):
        pass

    on_evaluation = on_notice = on_phase = on_log

    def on_steps(self, steps):
        if steps < self.first:
            return None
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        self.marks.append((time.monotonic(), steps, peak))
        if self.forget and len(self.marks) == 1 and sys.platform == "linux":
            # The compiler's peak would hide what training holds: give back what it freed, and count anew.
            ctypes.CDLL(None).malloc_trim(0)
            Path("/proc/self/clear_refs").write_text("5")
        return not self.enough(self.marks)


def run_case(family, x, seconds, began):
    """One case, in a process of its own that `began` then; what it found, ready for JSON."""
    if family == "start-up":
        return start_up(began)
    from lowgear.bench.train import measure
    from lowgear.config import tasks
    from lowgear.config.run import resolve
    from lowgear.envs import make_env

    gears = (8, x) if family == "width" else (32,) * x if family == "gears" else None
    overrides = {"replay": x if family in ("replay", "steps") else RING}
    if family == "width":
        overrides["critic_units"] = x
    options = {"seeds": range(x if family == "agents" else 1), "gears": gears, "overrides": overrides}
    config = resolve(tasks.find(TASK), steps=10**8, evaluate_every=0, **options)
    env = make_env(config, config.environments)
    if family == "steps":
        return quarters(config, env, 4 * seconds)
    clock = Clock(RANDOM + 2 * CHUNK, forget=True)

    def prepare(training):
        if family == "replay":
            fill_ring(training)
        return [clock]

    found = measure(config, env, seconds, prepare=prepare)
    kept = {key: found[key] for key in ("agents", "agent_steps", "seconds", "startup_s", "replay_bytes")}
    kept |= {"memory_bytes": found["peak_resident_bytes"], "compiling_bytes": clock.marks[0][2]}
    return kept | {"x": x, "step_s": found["agents"] / found["agent_steps_per_s"]}


def fill_ring(training):
    """Its random steps over and over: rows of an empty ring would all fit in the caches."""
    chunks = [training.collector.collect()[0] for _ in range(RANDOM // CHUNK)]
    for chunk in itertools.islice(itertools.cycle(chunks), training.config.capacity // CHUNK):
        training.learner.insert(chunk.reshape(len(chunk), CHUNK, -1))


def quarters(config, env, seconds):
    """The pace and the peak memory of each quarter of the time; x is the steps trained by its middle."""
    from lowgear.training.loop import Training

    training = Training(config, env, None)
    clock = Clock(2 * RANDOM, lambda marks: marks[-1][0] - marks[0][0] >= seconds, forget=True)
    training.run([clock])
    training.close()
    at, steps, memory = map(np.array, zip(*clock.marks, strict=True))
    ends = np.searchsorted(at, np.linspace(at[0], at[-1], 5))
    lines = []
    for a, b in itertools.pairwise(ends):
        pace = (at[b] - at[a]) / (steps[b] - steps[a])
        kept = {"agents": 1, "memory_bytes": int(memory[b]), "compiling_bytes": int(memory[0])}
        lines.append(kept | {"x": float(steps[a] + steps[b]) / 2, "step_s": pace})
    return {"quarters": lines}


def start_up(began):
    """Seconds of each stage from the start of the process, as `lowgear train` goes through them but for its files."""
    import lowgear.commands.train
    import lowgear.envs.pool
    import lowgear.training.progress  # noqa: F401
    from lowgear.config import tasks
    from lowgear.config.run import resolve
    from lowgear.envs import make_env
    from lowgear.training.loop import Training

    imported = time.monotonic()
    config = resolve(tasks.find(TASK), evaluate_every=0)
    training = Training(config, make_env(config, 1), None)
    ready = time.monotonic()
    clock = Clock(RANDOM, lambda marks: len(marks) == 2)  # the random steps are done, the first updates are done
    training.run([clock])
    training.close()
    moments = [began, imported, ready, *(at for at, _, _ in clock.marks)]
    return dict(zip(STAGES, np.diff(moments).tolist(), strict=True)) | {"total": moments[-1] - began}


def in_own_process(family, x, seconds, cache):
    # Linux counts this process's memory into the peak of one it starts: nothing heavy is imported here before the last.
    kept = {key: value for key, value in os.environ.items() if key != "JAX_COMPILATION_CACHE_DIR"}
    command = [sys.executable, __file__, "--case", json.dumps([family, x, seconds, time.monotonic()])]
    done = subprocess.run(command, env=kept | {"XDG_CACHE_HOME": str(cache)}, capture_output=True, text=True)
    if done.returncode:
        raise click.ClickException(f"{family} {x} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def laws_of(lines):
    """How the time of a step of the whole population grows, and how memory does."""
    x, pace, memory = ([line[key] for line in lines] for key in ("x", "step_s", "memory_bytes"))
    return power_law(x, pace), straight_line(x, memory)


def in_words(family, pace, memory):
    each, unit = (memory.b / 1e6, "MB") if abs(memory.b) >= 1e5 else (memory.b / 1e3, "kB")
    return (
        f"time of a step ∝ {family}^{pace.b:.2f} (within {pace.worst:.0%}), memory {memory.a / 1e6:.0f} MB "
        f"{'-' if each < 0 else '+'} {abs(each):.3g} {unit} {UNITS[family]} (within {memory.worst:.0%})"
    )


def show_family(console, family, lines, pace, memory):
    table = Table(family, "step of all agents, ms", "agent-step, ms", "agent-steps/s", "peak MB", "compiling")
    for line in lines:
        step_ms, agents = 1e3 * line["step_s"], line["agents"]
        times = line["x"], step_ms, step_ms / agents, 1e3 * agents / step_ms
        cells = *times, line["memory_bytes"] / 1e6, line["compiling_bytes"] / 1e6
        table.add_row(*(f"{cell:,.{digits}f}" for cell, digits in zip(cells, (0, 3, 3, 0, 0, 0), strict=True)))
    console.print(table, in_words(family, pace, memory))
    if family == "steps":
        console.print(f"the last quarter runs at {lines[0]['step_s'] / lines[-1]['step_s']:.1%} of the first's rate")


def show_start_up(console, lines):
    table = Table("cache", "total, s", *STAGES)
    for cache in ("empty", "warm"):
        each = [[line[stage] for line in lines if line["cache"] == cache] for stage in ("total", *STAGES)]
        table.add_row(cache, *(f"{statistics.median(s):.2f} ({min(s):.2f} to {max(s):.2f})" for s in each))
    console.print("start-up, median and range", table)


@click.command()
@click.option("--seconds", default=6.0, show_default=True, type=click.FloatRange(0.5), help="Of each case, once warm.")
@click.option("--only", type=click.Choice(list(FAMILIES)), help="Run one family.")
@click.option("--json", "json_path", type=click.Path(path_type=Path))
@click.option("--case", hidden=True)
def main(seconds, only, json_path, case):
    if case:
        print(json.dumps(run_case(*json.loads(case))))
        return
    found = {name: [] for name in FAMILIES if only in (None, name)}
    with tempfile.TemporaryDirectory() as caches, Console(stderr=True).status("") as status:
        for family, number, x in in_turn({name: FAMILIES[name] for name in found}):
            status.update(f"{family} {x}")
            cache = f"{family}-{number // 2 if family == 'start-up' else number}"  # a warm one after its empty one
            line = in_own_process(family, x, seconds, Path(caches) / cache)
            found[family] += line.get("quarters") or [line | {"cache": x} if family == "start-up" else line]
    console, laws = Console(width=140), {}
    for family, lines in found.items():
        if family == "start-up":
            show_start_up(console, lines)
        else:
            pace, memory = laws_of(lines)
            show_family(console, family, lines, pace, memory)
            laws[family] = {"step_s": pace._asdict(), "memory_bytes": memory._asdict()}
    if json_path:
        from lowgear.training.provenance import provenance

        kept = {"provenance": provenance(), "seconds": seconds, "found": found, "laws": laws}
        json_path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
