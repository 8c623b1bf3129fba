"""What the protocol adds to EnvPool: its time for a transition over that of plain `pool.step`.

Both sides step their own pool, seeded alike, with the same actions, and take turns in short slices whose
order flips every round, so that a busy machine slows both; a figure is the median over rounds. EnvPool spends
one step in each episode on its auto-reset. Such a step simulates nothing and is no transition, so both sides
are charged per transition; the ratio per call, where EnvPool gets these steps for free, stands beside it.
"""

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import envpool
import numpy as np
from rich.console import Console
from rich.table import Table

from lowgear import envs
from lowgear.config import tasks

TASKS = (
    "MountainCarContinuous-v0",
    "BipedalWalker-v3",
    "walker-stand",
    "Ant-v3",
    "Walker2d-v3",
    "FetchPush-v1",
)
BATCHES = (32, 128)
SLICE_S = 0.15
ROUNDS = 15
LIMIT = 1.10

Flags = tuple[Any, Any]  # terminated, truncated


def time_slice(step: Callable[[Any], Flags], actions: list[Any], count: int) -> tuple[float, int]:
    """Seconds of one call, and how many episodes ended over `count` calls."""
    flags: list[Flags] = []
    start = time.perf_counter()
    for k in range(count):
        flags.append(step(actions[k % len(actions)]))
    elapsed = time.perf_counter() - start
    return elapsed / count, sum(int((terminated | truncated).sum()) for terminated, truncated in flags)


def measure(name: str, num_envs: int) -> dict[str, Any]:
    task = tasks.find(name)
    seeds = list(range(num_envs))
    env = envs.make(task, num_envs)
    env.reset(seeds)
    pool = envpool.make_gymnasium(task.env_id, num_envs=num_envs, seed=seeds)
    pool.reset()
    rng = np.random.default_rng(0)
    actions = list(rng.uniform(-1, 1, (64, num_envs, env.spec.act_dim)).astype(np.float32))

    def direct(action: Any) -> Flags:
        _, _, terminated, truncated, _ = pool.step(action)
        return terminated, truncated

    def protocol(action: Any) -> Flags:
        step = env.step(action)
        return step.terminated, step.truncated

    time_slice(protocol, actions, 20)
    count = max(5, int(SLICE_S / time_slice(direct, actions, 20)[0]))
    direct_s, protocol_s, reset_steps = [], [], 0
    for k in range(ROUNDS):
        for side in (direct, protocol) if k % 2 else (protocol, direct):
            call_s, ended = time_slice(side, actions, count)
            (direct_s if side is direct else protocol_s).append(call_s)
            reset_steps += ended if side is direct else 0
    env.close()
    per_call = statistics.median(p / d for p, d in zip(protocol_s, direct_s, strict=True))
    transitions = 1 - reset_steps / (ROUNDS * count * num_envs)
    return {
        "task": name,
        "num_envs": num_envs,
        "direct_us": 1e6 * statistics.median(direct_s),
        "protocol_us": 1e6 * statistics.median(protocol_s),
        "ratio_per_call": per_call,
        "ratio": per_call * transitions,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows as JSON")
    parser.add_argument("--tasks", nargs="+", default=TASKS, metavar="TASK")
    arguments = parser.parse_args()

    console = Console()
    table = Table("task", "envs", "EnvPool µs", "protocol µs", "per call", "ratio", title="One batched step")
    rows = []
    with console.status("") as status:
        for name in arguments.tasks:
            for num_envs in BATCHES:
                status.update(f"{name}, {num_envs} environments")
                row = measure(name, num_envs)
                rows.append(row)
                colour = "green" if row["ratio"] <= LIMIT else "red"
                table.add_row(
                    name,
                    str(num_envs),
                    f"{row['direct_us']:.0f}",
                    f"{row['protocol_us']:.0f}",
                    f"{row['ratio_per_call']:.3f}",
                    f"[{colour}]{row['ratio']:.3f}[/]",
                )
    console.print(table)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    # EnvPool's own step builds Gymnasium spaces, which complain about float64 bounds.
    warnings.filterwarnings("ignore", message=".*precision lowered by casting.*")
    main()
