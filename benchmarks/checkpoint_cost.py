"""What a checkpoint costs: how long training waits, how long the disk works beside it, and how long a resume takes.

    python benchmarks/checkpoint_cost.py

Real learners and real files, with made-up rows, at ring sizes from one hundred thousand to a million steps.
"""

import statistics
import tempfile
import time
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from lowgear import envs
from lowgear.config import tasks
from lowgear.config.run import resolve
from lowgear.config.run_directory import RunDirectory
from lowgear.training.checkpoint import read_latest, read_rows, read_state
from lowgear.training.checkpoint_writer import Checkpoints
from lowgear.training.parallel import ParallelLearner
from lowgear.training.setup import method_of, parameters_of

CASES = [(1, 100_000), (1, 1_000_000), (4, 100_000), (4, 1_000_000)]


def measure(agents, ring, every=40_000):
    task = tasks.find("walker-stand")
    config = resolve(task, steps=ring, seeds=range(agents), checkpoint_every=every)
    spec = envs.make(task, 1).spec
    method = method_of(config, spec)
    learner = ParallelLearner(method, parameters_of(config, spec), config.capacity)
    width, chunk = method.replay.columns.width, config.recipe.chunk
    rows = np.random.default_rng(0).normal(size=(agents, chunk, width)).astype(np.float32)
    rows[..., method.replay.columns.closed] = 0
    waits, writes, appends = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        directory = RunDirectory(Path(folder) / "run")
        directory.create(config, {})
        checkpoints = Checkpoints(directory, config)
        for number in range(1, ring // every + 1):
            began = time.perf_counter()
            for _ in range(every // chunk):
                checkpoints.append(rows)
            appends.append((time.perf_counter() - began) / (every // chunk))
            began = time.perf_counter()
            checkpoints.commit(number * every, 0, 0, [0.0] * agents, learner.states())
            waits.append(time.perf_counter() - began)
            checkpoints.wait()
            writes.append(time.perf_counter() - began)
        checkpoints.close()
        size = sum(path.stat().st_size for path in directory.checkpoint.iterdir())
        began = time.perf_counter()
        latest = read_latest(directory)
        learner.restore(read_state(directory, latest, learner.states()), 0)
        for found in read_rows(directory, latest, agents, chunk, width):
            learner.insert(found, known=True)
        learner.states()
        resume = time.perf_counter() - began
    learner.close()
    return statistics.median(appends), statistics.median(waits), max(writes), size, resume


@click.command()
def main():
    table = Table("agents", "ring", "a chunk's rows", "training waits", "written beside", "on disk", "resume")
    for agents, ring in CASES:
        append, wait, write, size, resume = measure(agents, ring)
        table.add_row(
            str(agents),
            f"{ring:,}",
            f"{append * 1e6:.0f} µs",
            f"{wait * 1e3:.0f} ms",
            f"{write * 1e3:.0f} ms at most",
            f"{size / 2**20:.0f} MiB",
            f"{resume:.1f} s",
        )
    Console(width=120).print("walker-stand, modern recipe, a checkpoint every 40,000 steps", table)


if __name__ == "__main__":
    main()
