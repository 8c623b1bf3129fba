"""How near imported policies are to Stable-Baselines3's own, both computed in double precision.

    python benchmarks/sb3_policies.py --out sb3
    python benchmarks/import_exactness.py sb3 --json results/import-exactness.json

In float32 either library rounds, in its own order of sums; in double precision what differs is the import. Run it where
Stable-Baselines3 is installed.
"""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import stable_baselines3
import torch
from stable_baselines3.common import policies

from lowgear import envs
from lowgear.config.tasks import find
from lowgear.evaluation.imported import import_policy
from lowgear.policy.controller import Controller
from lowgear.policy.files import write_whole
from lowgear.policy.foreign import load_statistics
from lowgear.policy.networks import doubled
from lowgear.training.provenance import provenance

POLICIES = {
    "ppo-pendulum": ("PPO", "gym:Pendulum-v1"),
    "sac-halfcheetah": ("SAC", "gym:HalfCheetah-v5"),
    "td3-reacher": ("TD3", "gym:Reacher-v5"),
}
ENVIRONMENTS, STEPS = 4, 250


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
@click.option("--json", "json_path", type=click.Path(path_type=Path))
def main(folder, json_path):
    policies.preprocess_obs = lambda observation, *_, **__: observation  # which would make it float32
    cases = [compared(folder, name, *which) for name, which in POLICIES.items()]
    if json_path is not None:
        found = {"observations": ENVIRONMENTS * STEPS, "provenance": provenance(), "cases": cases}
        write_whole(json_path, (json.dumps(found, indent=1) + "\n").encode())


def compared(folder, name, algorithm, task):
    path, statistics = folder / f"{name}.zip", folder / f"{name}.npz"
    statistics = statistics if statistics.exists() else None
    policy = import_policy(path, task, normalise=statistics).policy
    seen = observations(policy, task)
    exact = acted(replace(policy, weights=doubled(policy.weights)), seen.astype(np.float64))
    low, high = policy.bounds.low, policy.bounds.high
    original = in_halves(original_actions(path, algorithm, statistics, seen, low, high), low, high)
    case = {
        "policy": name,
        "double": float(np.abs(exact - original).max()),
        "float32_rounding": float(np.abs(exact - acted(policy, seen)).max()),
    }
    click.echo(f"{name}: {case['double']:.1e} apart; our own rounding in float32 {case['float32_rounding']:.1e}")
    return case


def observations(policy, task):
    """What the imported policy meets."""
    controller, seen = Controller.from_policies([policy], ENVIRONMENTS), []
    with closing(envs.make(find(task), ENVIRONMENTS)) as env:
        observation = env.reset(list(range(ENVIRONMENTS)))
        for _ in range(STEPS):
            seen.append(observation)
            controller.pick(observation[None])
            observation = env.step(controller.act(observation[None])[0]).observation
    return np.concatenate(seen)


def acted(policy, seen):
    """Actions in [-1, 1]."""
    controller = Controller.from_policies([policy], len(seen))
    controller.pick(seen[None])
    return controller.act(seen[None])[0]


def original_actions(path, algorithm, statistics, seen, low, high):
    """In the environment's units."""
    policy = getattr(stable_baselines3, algorithm).load(path, device="cpu").policy.double()
    seen = seen.astype(np.float64)
    if statistics is not None:
        normal = load_statistics(statistics)
        seen = np.clip((seen - normal.mean) / normal.std, -normal.clip, normal.clip)
    with torch.no_grad():
        action = policy._predict(torch.as_tensor(seen), deterministic=True).numpy()
    return np.clip(low + (action + 1) / 2 * (high - low) if policy.squash_output else action, low, high)


def in_halves(action, low, high):
    return (action - low) / (high - low) * 2 - 1


if __name__ == "__main__":
    main()
