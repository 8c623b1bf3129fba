"""Environment steps per second with every learner updated once per step, and the distance to this machine's floor.

    python benchmarks/train_speed.py [--json FILE] [--seconds 20]

The floor is the multiplications that the updates need, over the rate this machine reaches on matrix products of the
same shapes, with every core at it. Cases are run in turn; the rate is measured before and after.
"""

import json
import os
import time

import click
import jax
from rich.console import Console
from rich.table import Table

from lowgear import envs, tasks
from lowgear.config import resolve
from lowgear.floor import gemm_rate, update_flops
from lowgear.train import Training

CASES = [
    ("one agent, 8/64", "walker-stand", (8, 64), 1, {}),
    ("four agents, 8/64", "walker-stand", (8, 64), 4, {}),
    ("one agent, 64/256", "Walker2d-v3", (64, 256), 1, {}),
    ("one agent, modern", "walker-stand", (8, 64), 1, {"recipe": "modern"}),
    ("four agents, modern", "walker-stand", (8, 64), 4, {"recipe": "modern"}),
]


class Meter:
    def __init__(self, seconds):
        self.seconds, self.start = seconds, None

    def on_log(self, lines):
        pass

    def on_evaluation(self, lines):
        pass

    def on_steps(self, steps):
        now = time.perf_counter()
        if self.start is None:
            if steps >= 2048:  # past the random steps and the compiler
                self.start = (now, steps)
            return None
        began, first = self.start
        self.rate = (steps - first) / (now - began)
        return now - began < self.seconds


def measure(task, gears, agents, options, seconds):
    named = tasks.find(task)
    config = resolve(
        named,
        options.get("recipe", "paper"),
        gears=gears,
        seeds=range(agents),
        steps=1_000_000,
        evaluate_every=0,
        overrides={"replay": 100_000},
    )
    rates = {units: gemm_rate(units) for units in set(config.critic_units)}
    training = Training(config, envs.make(named, agents), None)
    meter = Meter(seconds)
    training.run([meter])
    training.close()
    flops = update_flops(config, training.spec.obs_dim, training.spec.act_dim)
    widest = max(config.critic_units)
    rate = max(rates[widest], gemm_rate(widest))
    floor = rate / flops
    return {
        "agent_steps_per_s": meter.rate * agents,
        "update_mflop": flops / 1e6,
        "gemm_gflop_per_s": rate / 1e9,
        "floor_agent_steps_per_s": floor,
        "share_of_floor": meter.rate * agents / floor,
        "agents": agents,
        "task": task,
        "gears": gears,
        "recipe": config.recipe.name,
    }


@click.command()
@click.option("--seconds", default=20.0)
@click.option("--only", default="", help="Run the cases whose name holds this.")
@click.option("--json", "json_path", default=None)
def main(seconds, only, json_path):
    table = Table("case", "agent-steps/s", "MFLOP an update", "GEMM GFLOP/s", "floor", "share of floor")
    found = {}
    for name, *case in CASES:
        if only not in name:
            continue
        line = found[name] = measure(*case, seconds)
        table.add_row(
            name,
            f"{line['agent_steps_per_s']:.0f}",
            f"{line['update_mflop']:.0f}",
            f"{line['gemm_gflop_per_s']:.0f}",
            f"{line['floor_agent_steps_per_s']:.0f}",
            f"{line['share_of_floor']:.0%}",
        )
    Console(width=120).print(f"{os.cpu_count()} cores, {jax.default_backend()}, jax {jax.__version__}", table)
    if json_path:
        with open(json_path, "w") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
