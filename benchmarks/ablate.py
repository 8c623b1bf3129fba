"""Settings × seeds of one task as one population: which settings of the learners are worth having?

    python benchmarks/ablate.py hopper-stand settings.json --steps 150000 --seconds 480 --out hopper-stand.json

`settings.json` has `common`, recipe fields of every agent (those that change a shape must stand here), and `settings`,
a list of {"name", "seeds", "variant", and recipe fields that differ}. Every agent plays a few episodes at fixed
intervals; the curves are written to `--out` after each, so that a run that is cut short has told what it knows.
"""

import time

START = time.perf_counter()

import argparse  # noqa: E402
import json  # noqa: E402
import threading  # noqa: E402
from dataclasses import replace  # noqa: E402
from pathlib import Path  # noqa: E402

import jax  # noqa: E402
import numpy as np  # noqa: E402

from lowgear import envs, tasks  # noqa: E402
from lowgear.blueprint import behaviour_of, knobs_of, method_of, prices_of, tariff_of  # noqa: E402
from lowgear.config import RunConfig, resolve  # noqa: E402
from lowgear.evaluate import Players, play, summarise  # noqa: E402
from lowgear.runtime import Weights  # noqa: E402
from lowgear.train import Training  # noqa: E402

OWN = ("name", "seeds", "variant")  # of a setting; the rest are fields of the recipe
POINTS = 5  # along the dial, at the end


class KeptPool:
    """Environments for evaluation that are made once: a reset opens new episodes instead of a new pool."""

    def __init__(self, env):
        self.env, self.num_envs, self.spec, self.made = env, env.num_envs, env.spec, False
        self.step = env.step

    def reset(self, seeds):
        if self.made:
            return self.env._first_observations(self.env._ids)
        self.made = True
        return self.env.reset(seeds)


class Ablation(Training):
    """A population whose agents differ in their settings."""

    def __init__(self, config, parts, env, evaluation_env, arguments):
        spec = env.spec
        has_goals = spec.desired_goal is not None
        methods = {method_of(part, spec, env.goal_rule) for part in parts}
        if methods != {method_of(config, spec, env.goal_rule)}:
            raise SystemExit("a setting changes a shape or a static part of the program: put it under `common`")
        knobs = jax.tree.map(
            lambda *leaves: np.concatenate(leaves), *(knobs_of(part, spec, tariff_of(part, spec)) for part in parts)
        )
        held = np.concatenate([behaviour_of(part).held_noise for part in parts])
        behaviour = behaviour_of(config, has_goals)._replace(held_noise=held)
        super().__init__(config, env, None, knobs=knobs, behaviour=behaviour)
        self.names = [part.recipe.name for part in parts for _ in part.agents]
        self.arguments, self.evaluation_env = arguments, evaluation_env
        self.curves = [[] for _ in config.agents]
        self.dial_points = []
        self.clock = {"evaluate": 0.0, "first_update": None}
        self.compiling = threading.Thread(target=compile_ahead, args=(self,), daemon=True)
        self.compiling.start()

    def _learn_pending(self):
        if self.collector.steps >= self.config.recipe.random_steps:
            self.compiling.join()
        learning = super()._learn_pending()
        if learning and self.clock["first_update"] is None:
            self.clock["first_update"] = time.perf_counter() - START
        return learning

    def _evaluate(self):
        began = time.perf_counter()
        reward_scale = np.concatenate([np.asarray(view.reward_scale) for view in self.learner._views])
        for agent, found in enumerate(self._played([a.cost_coefficient for a in self.config.agents])):
            ended = self._intervals[agent].episodes
            trained = [e.success if e.success is not None else e.episode_return for e in ended]
            point = {
                "steps": self.collector.steps,
                "seconds": round(began - START, 1),
                "return": found["return_mean"],
                "success": found["success_rate"],
                "large_share": found["large_share"],
                "flops_reduction": found["flops_reduction"],
                "training": float(np.mean(trained)) if trained else None,
                "reward_scale": float(reward_scale[agent]),
            }
            point |= {name: float(value[agent]) for name, value in self._metrics.items()}
            self._intervals[agent].episodes.clear()
            self.curves[agent].append({k: float(f"{v:.5g}") if isinstance(v, float) else v for k, v in point.items()})
        self.clock["evaluate"] += time.perf_counter() - began
        self.write()
        shown = " ".join(f"{c[-1]['return'] if c[-1]['success'] is None else c[-1]['success']:.4g}" for c in self.curves)
        print(f"{self.config.task} {self.collector.steps} {time.perf_counter() - START:.0f}s {shown}", flush=True)

    def turn_dials(self):
        """Play agents that have a dial along it."""
        if not any(agent.dial.turns for agent in self.config.agents):
            return
        for point in range(POINTS):
            settings = [agent.dial.settings(POINTS)[point] if agent.dial.turns else 0.0 for agent in self.config.agents]
            for agent, found in enumerate(self._played(settings)):
                if self.config.agents[agent].dial.turns:
                    kept = {k: found[k] for k in ("return_mean", "success_rate", "large_share", "flops_reduction")}
                    self.dial_points.append({"agent": agent, "coefficient": settings[agent]} | kept)
        self.write()

    def _played(self, coefficients):
        config, behaviour = self.config, self.collector.behaviour
        position = None
        if behaviour.dial is not None:
            position = np.array([a.dial.position(c) for a, c in zip(config.agents, coefficients)], np.float32)
        weights: Weights = self.weights
        players = Players(
            weights, behaviour.forced_gear, config.recipe.periods, behaviour.activation, "greedy", position
        )
        played = play(players, self.evaluation_env, config.evaluate_episodes, 20_000)
        prices = prices_of(config, self.spec)
        return [summarise(played, agent, prices) for agent in range(len(config.agents))]

    def write(self):
        seconds, steps = time.perf_counter() - START, self.collector.steps
        agents = [
            {"setting": name, "variant": agent.variant, "seed": agent.seed, "curve": curve}
            for name, agent, curve in zip(self.names, self.config.agents, self.curves)
        ]
        found = {
            "task": self.config.task,
            "common": self.arguments["common"],
            "settings": self.arguments["settings"],
            "steps": steps,
            "seconds": seconds,
            "agent_steps_per_second": steps * len(agents) / seconds,
            "clock": self.clock,
            "device": str(jax.devices()[0]),
            "agents": agents,
            "dial": self.dial_points,
        }
        whole = self.arguments["out"].with_suffix(".part")
        whole.write_text(json.dumps(found))
        whole.rename(self.arguments["out"])


class Stop:
    """Ends a run when its time is up."""

    def __init__(self, seconds):
        self.seconds = seconds

    def on_log(self, lines):
        pass

    def on_evaluation(self, lines):
        pass

    def on_steps(self, steps):
        return time.perf_counter() - START < self.seconds


def compile_ahead(training: Training) -> None:
    """Compile the learners' program while random steps are collected; the run then finds it in the cache."""
    learner = training.learner
    for job in learner._jobs:
        mine = tuple(learner.learners[job.shard][number] for number in job.which)
        learner._learn.lower(
            mine,
            learner._rings[job.shard],
            learner._knobs[job.shard],
            learner._views[job.shard],
            np.int32(0),
            which=job.which,
            updates=training.config.recipe.chunk,
        ).compile()
    print(f"{training.config.task} compiled at {time.perf_counter() - START:.0f}s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("task")
    parser.add_argument("settings", type=Path)
    parser.add_argument("--recipe", default="trial")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=480)
    parser.add_argument("--evaluate-every", type=int, default=20_000)
    parser.add_argument("--episodes", type=int, default=5)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    asked = json.loads(given.settings.read_text())
    task = tasks.find(given.task)
    parts: list[RunConfig] = []
    for setting in asked["settings"]:
        overrides = asked.get("common", {}) | {k: v for k, v in setting.items() if k not in OWN}
        config = resolve(
            task,
            given.recipe,
            steps=given.steps,
            seeds=setting.get("seeds", [0]),
            variants=[setting.get("variant", "large-only")],
            overrides=overrides,
            evaluate_every=given.evaluate_every,
            evaluate_episodes=given.episodes,
        )
        parts.append(replace(config, recipe=replace(config.recipe, name=setting["name"])))
    config = replace(parts[0], agents=tuple(agent for part in parts for agent in part.agents), log_every=10**9)
    make = lambda count: envs.make(task, count, given.threads, end_on_success=config.recipe.end_on_success)  # noqa: E731
    env = make(config.environments)
    evaluation_env = KeptPool(make(len(config.agents) * given.episodes))
    arguments = {"common": asked.get("common", {}), "settings": asked["settings"], "out": given.out}
    training = Ablation(config, parts, env, evaluation_env, arguments)
    print(f"{given.task}: {len(config.agents)} agents at {time.perf_counter() - START:.0f}s", flush=True)
    training.run([Stop(given.seconds)])
    training.turn_dials()
    print(f"{given.task} done: {training.collector.steps} steps, {time.perf_counter() - START:.0f}s", flush=True)


if __name__ == "__main__":
    main()
