"""The work of one asymmetric agent, by Lowgear and by its peers, in turns on one machine.

    python benchmarks/peers.py [--gears 8,64] [--rounds 3] [--seconds 10] [--json FILE]

Needs an environment with Stable-Baselines3, SBX and RLtools beside Lowgear: `make bench-peers` makes one. The work of a
step is one environment step, one SAC update of each gear's width on a batch of 256, and for Lowgear the master's update
too. A peer trains one SAC at a time, so its time for the work is the sum over the widths; the environment is Swimmer,
EnvPool's for Lowgear and Gymnasium's for the peers. Every measurement is a process of its own, past its warm-up; rounds
interleave them, and ratios are taken within a round.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from importlib.metadata import version

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

PEERS = {"sb3": "stable-baselines3", "sbx": "sbx-rl", "rltools": "rltools"}
WARM_UP = 1_500  # steps; peers begin to learn after 1,000
BATCH = 256


class Clock:
    """Steps a second between the end of the warm-up and the end of the time."""

    def __init__(self, seconds):
        self.seconds, self.began = seconds, None

    def goes_on(self, steps):
        now = time.perf_counter()
        if self.began is None:
            if steps >= WARM_UP:
                self.began = (now, steps)
            return True
        began, first = self.began
        self.rate = (steps - first) / (now - began)
        return now - began < self.seconds


def lowgear(units, seconds):
    from lowgear import envs
    from lowgear.config import tasks
    from lowgear.config.run import resolve
    from lowgear.training.loop import Listener, Training

    task = tasks.find("Swimmer-v3")
    config = resolve(task, "paper", gears=units, steps=10**6, evaluate_every=0, overrides={"replay": 100_000})
    training = Training(config, envs.make(task, 1), None)
    clock = Clock(seconds)

    class Ends(Listener):
        def on_steps(self, steps):
            return clock.goes_on(steps)

    training.run([Ends()])
    training.close()
    return clock.rate


def sb3(units, seconds):
    from stable_baselines3 import SAC

    return _stable(SAC, units, seconds, {"device": "cpu"})


def sbx(units, seconds):
    from sbx import SAC

    return _stable(SAC, units, seconds, {})


def _stable(algorithm, units, seconds, more):
    from stable_baselines3.common.callbacks import BaseCallback

    clock = Clock(seconds)

    class Callback(BaseCallback):
        def _on_step(self):
            return clock.goes_on(self.num_timesteps)

    model = algorithm(
        "MlpPolicy",
        _swimmer(),
        batch_size=BATCH,
        buffer_size=100_000,
        learning_starts=1_000,
        policy_kwargs={"net_arch": list(units * 2)},
        **more,
    )
    model.learn(10**6, callback=Callback())
    return clock.rate


def rltools(units, seconds):
    from rltools import SAC

    module = SAC(
        _swimmer,
        enable_evaluation=False,
        interface_name=f"lowgear_{units[0]}",
        ACTOR_BATCH_SIZE=BATCH,
        CRITIC_BATCH_SIZE=BATCH,
        N_WARMUP_STEPS=1_000,
        STEP_LIMIT=10**6,
        REPLAY_BUFFER_CAP=100_000,
        ACTOR_HIDDEN_DIM=units[0],
        CRITIC_HIDDEN_DIM=units[0],
        COLLECT_EPISODE_STATS=False,
    )
    state, clock, steps = module.State(0), Clock(seconds), 0
    while clock.goes_on(steps):
        state.step()
        steps += 1
    return clock.rate


def _swimmer():
    import gymnasium
    from gymnasium.wrappers import RescaleAction

    env = RescaleAction(gymnasium.make("Swimmer-v5"), -1, 1)
    env.reset(seed=0)
    return env


def measure(name, units, seconds):
    """In a process of its own; None where the peer is not installed."""
    command = [sys.executable, __file__, "--worker", name, "--gears", ",".join(map(str, units)), "--seconds", seconds]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise click.ClickException(f"{name} failed at {units}:\n{done.stderr[-2000:]}")
    return float(done.stdout.splitlines()[-1])


def work_rate(name, gears, seconds):
    """Steps of an asymmetric agent's work a second."""
    if name == "lowgear":
        return measure(name, gears, seconds)
    return 1 / sum(1 / measure(name, (units,), seconds) for units in gears)


@click.command()
@click.option("--gears", default="8,64")
@click.option("--rounds", default=3)
@click.option("--seconds", default=10.0)
@click.option("--peers", default=",".join(PEERS))
@click.option("--worker", hidden=True)
@click.option("--json", "json_path", default=None)
def main(gears, rounds, seconds, peers, worker, json_path):
    """Lowgear beside its peers, as ratios."""
    units = tuple(int(part) for part in gears.split(","))
    if worker:
        print(globals()[worker](units, seconds))
        return
    names = ["lowgear", *peers.split(",")]
    found = {name: [] for name in names}
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("", total=rounds * len(names))
        for number in range(rounds):
            for name in names if number % 2 == 0 else names[::-1]:
                progress.update(bar, description=f"round {number + 1}: {name}")
                found[name].append(work_rate(name, units, seconds))
                progress.advance(bar)
    table = Table("", "version", "steps/s", "Lowgear is faster by", "lowest to highest")
    for name, rates in found.items():
        ratios = [own / other for own, other in zip(found["lowgear"], rates, strict=True)]
        table.add_row(
            name,
            version(PEERS.get(name, name)),
            f"{statistics.median(rates):.0f}",
            f"{statistics.median(ratios):.1f}",
            f"{min(ratios):.1f} to {max(ratios):.1f}",
        )
    Console(width=100).print(
        f"gears {gears}, {os.cpu_count()} cores, {platform.processor() or platform.machine()}", table
    )
    if json_path:
        versions = {name: version(PEERS.get(name, name)) for name in names}
        with open(json_path, "w") as file:
            json.dump({"gears": units, "seconds": seconds, "steps_per_s": found, "versions": versions}, file, indent=1)


if __name__ == "__main__":
    main()
