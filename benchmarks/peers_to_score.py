"""Minutes until a single SAC passes the paper's large-only score: Lowgear's large-only agent and its peers, in turn.

    python benchmarks/peers_to_score.py --seeds 700-701 --json results/peers-to-score.json

Needs the environment that `make bench-peers` makes. All train in the same EnvPool environment, with networks of the
same width and batches of 256, one update a step; what else they set is their own default. Compiling and evaluations
count, as they do for a person who waits. Every run is a process of its own; one that never passes counts with the time
of all its steps, as "more than".
"""

import json
import statistics
import subprocess
import sys
import time
from functools import partial
from importlib.metadata import version

import click
import gymnasium
import numpy as np
from rich.console import Console
from rich.table import Table

from lowgear.commands import lists
from lowgear.config import tasks
from lowgear.config.run import resolve
from lowgear.envs import make, make_env
from lowgear.training.loop import Listener, Training
from lowgear.training.provenance import provenance

TASK, SCORE, UNITS = "cartpole-swingup", 819.8, 64
BATCH, EVERY, EPISODES = 256, 2_500, 10
PEERS = {"lowgear": "lowgear", "sb3": "stable-baselines3", "sbx": "sbx-rl"}


class Single(gymnasium.Env):
    """One of EnvPool's environments as Gymnasium has them."""

    def __init__(self, seed):
        self._env = make(tasks.find(TASK), 1)
        self._seeds = np.random.default_rng(seed)
        spec = self._env.spec
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (spec.obs_dim,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1, 1, (spec.act_dim,), np.float32)
        self._next = None  # the first observation of the episode that has begun by itself

    def reset(self, *, seed=None, options=None):  # noqa: ARG002
        if self._next is None:
            self._next = self._env.reset([int(self._seeds.integers(2**31))])[0]
        observation, self._next = self._next, None
        return observation, {}

    def step(self, action):
        step = self._env.step(np.asarray(action, np.float32)[None])
        terminated, truncated = bool(step.terminated[0]), bool(step.truncated[0])
        if terminated or truncated:
            self._next = step.observation[0]
        return step.last_observation[0], float(step.reward[0]), terminated, truncated, {}


class Stopwatch(Listener):
    """Ends a run when an evaluation passes the score."""

    def __init__(self):
        self.began, self.passed = time.perf_counter(), None

    def look(self, steps, score):
        if self.passed is None and score >= SCORE:
            self.passed = {"minutes": self.minutes, "steps": steps, "score": score}

    @property
    def minutes(self):
        return (time.perf_counter() - self.began) / 60

    def on_evaluation(self, lines):
        self.look(lines[0]["steps"], lines[0]["return_mean"])

    def on_steps(self, steps):  # noqa: ARG002
        return self.passed is None


def lowgear(seed, steps, watch):
    config = resolve(
        tasks.find(TASK),
        steps=steps,
        seeds=[seed],
        variants=("large-only",),
        gears=(8, UNITS),
        evaluate_every=EVERY,
        evaluate_episodes=EPISODES,
    )
    training = Training(config, make_env(config, config.environments), partial(make_env, config))
    try:
        training.run([watch])
    finally:
        training.close()


def sb3(seed, steps, watch):
    from stable_baselines3 import SAC

    _stable(SAC, seed, steps, watch, {"device": "cpu"})


def sbx(seed, steps, watch):
    from sbx import SAC

    _stable(SAC, seed, steps, watch, {})


def _stable(algorithm, seed, steps, watch, more):
    from stable_baselines3.common.callbacks import BaseCallback

    played = Single(seed + 1)

    class Callback(BaseCallback):
        def _on_step(self):
            if self.num_timesteps % EVERY == 0:
                watch.look(self.num_timesteps, np.mean([_score(self.model, played) for _ in range(EPISODES)]))
            return watch.passed is None

    width = {"net_arch": [UNITS, UNITS]}
    model = algorithm("MlpPolicy", Single(seed), seed=seed, batch_size=BATCH, policy_kwargs=width, **more)
    model.learn(steps, callback=Callback())


def _score(model, env):
    """The return of an episode."""
    (observation, _), total, ended = env.reset(), 0.0, False
    while not ended:
        action, _ = model.predict(observation, deterministic=True)
        observation, reward, terminated, truncated, _ = env.step(action)
        total, ended = total + reward, terminated or truncated
    return total


def timed(name, seed, steps):
    """In a process of its own: what passed the score, and when."""
    command = [sys.executable, __file__, "--worker", name, "--seeds", seed, "--steps", steps]
    began = time.perf_counter()
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode:
        raise click.ClickException(f"{name} failed:\n{done.stderr[-2000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    return found | {"seed": seed, "process_minutes": (time.perf_counter() - began) / 60}


def work(name, seed, steps):
    watch = Stopwatch()
    globals()[name](seed, steps, watch)
    print(json.dumps(watch.passed or {"more_than_minutes": watch.minutes}))


def minutes(runs):
    """Of each seed, the least it took."""
    return [run.get("minutes", run.get("more_than_minutes")) for run in runs]


@click.command()
@click.option("--seeds", default="700-701")
@click.option("--steps", default=150_000)
@click.option("--peers", default="sb3,sbx")
@click.option("--worker", hidden=True)
@click.option("--json", "json_path", default=None)
def main(seeds, steps, peers, worker, json_path):
    """Lowgear's large-only agent beside its peers, in minutes."""
    numbers = lists.integers("--seeds", seeds)
    if worker:
        work(worker, numbers[0], steps)
        return
    found = {name: [] for name in ["lowgear", *peers.split(",")]}
    for seed in numbers:
        for name, runs in found.items():
            runs.append(timed(name, seed, steps))
            Console(stderr=True).print(name, runs[-1])
    table = Table("", "version", "minutes", "steps", "median / Lowgear's")
    own = statistics.median(minutes(found["lowgear"]))
    for name, runs in found.items():
        table.add_row(
            name,
            version(PEERS[name]),
            ", ".join(("" if "minutes" in run else ">") + f"{minutes([run])[0]:.1f}" for run in runs),
            ", ".join(f"{run.get('steps', steps):,}" for run in runs),
            f"{statistics.median(minutes(runs)) / own:.1f}",
        )
    Console(width=100).print(f"{TASK}, a mean of {SCORE:g} over {EPISODES} episodes, large-only, {UNITS} units", table)
    if json_path:
        with open(json_path, "w", encoding="utf-8") as file:
            versions = {name: version(PEERS[name]) for name in found}
            json.dump({"provenance": provenance(), "score": SCORE, "versions": versions, "runs": found}, file, indent=1)


if __name__ == "__main__":
    main()
