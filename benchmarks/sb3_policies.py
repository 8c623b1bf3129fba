"""Policies of Stable-Baselines3 to import: trained here, seeded, with RL Zoo's settings where it has them.

    python benchmarks/sb3_policies.py --out sb3 [--only ppo-pendulum]

Needs the environment that `make test-peers` makes. Leaves NAME.zip, NAME.npz (observation statistics, where the policy
has them; NAME.pkl is Stable-Baselines3's own file of them) and NAME.json (returns of 20 episodes, settings, versions).
One thread: `OMP_NUM_THREADS=1`.
"""

import json
import time
from importlib.metadata import version
from pathlib import Path

import click
import numpy as np
import sb3_contrib
import stable_baselines3
import torch
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import VecNormalize

EPISODES = 20
POLICIES = {
    "ppo-pendulum": {
        "algorithm": "PPO",
        "env": "Pendulum-v1",
        "envs": 4,
        "steps": 200_000,
        "normalise": True,
        "settings": {
            "n_steps": 1024,
            "gamma": 0.9,
            "gae_lambda": 0.95,
            "learning_rate": 1e-3,
            "ent_coef": 0.0,
            "use_sde": True,
            "sde_sample_freq": 4,
        },
    },
    "sac-halfcheetah": {
        "algorithm": "SAC",
        "env": "HalfCheetah-v5",
        "envs": 1,
        "steps": 60_000,
        "normalise": False,
        "settings": {"learning_starts": 5_000},
    },
    "td3-reacher": {
        "algorithm": "TD3",
        "env": "Reacher-v5",
        "envs": 1,
        "steps": 30_000,
        "normalise": False,
        "noise": 0.1,
        "settings": {
            "learning_starts": 2_000,
            "batch_size": 256,
            "learning_rate": 1e-3,
            "train_freq": 1,
            "gradient_steps": 1,
        },
    },
    "tqc-hopper": {
        "algorithm": "TQC",
        "env": "Hopper-v5",
        "envs": 1,
        "steps": 80_000,
        "normalise": False,
        "settings": {"learning_starts": 5_000},
    },
}


def train(plan, seed):
    env = make_vec_env(plan["env"], plan["envs"], seed=seed)
    if plan["normalise"]:
        env = VecNormalize(env, gamma=plan["settings"]["gamma"])
    settings = dict(plan["settings"])
    if "noise" in plan:
        dims = env.action_space.shape[0]
        settings["action_noise"] = NormalActionNoise(np.zeros(dims), np.full(dims, plan["noise"]))
    library = sb3_contrib if plan["algorithm"] == "TQC" else stable_baselines3
    model = getattr(library, plan["algorithm"])("MlpPolicy", env, seed=seed, device="cpu", **settings)
    return model.learn(plan["steps"]), env


def score(model, env, plan):
    """Returns of fresh episodes, in the environment's own rewards."""
    fresh = make_vec_env(plan["env"], 1, seed=1_000)
    if plan["normalise"]:
        statistics = env
        fresh = VecNormalize(fresh, training=False, norm_reward=False)
        fresh.obs_rms, fresh.clip_obs, fresh.epsilon = statistics.obs_rms, statistics.clip_obs, statistics.epsilon
    return evaluate_policy(model, fresh, EPISODES, return_episode_rewards=True)[0]


def save(model, env, plan, path):
    model.save(path)
    if plan["normalise"]:
        env.save(path.with_suffix(".pkl"))
        rms = env.obs_rms
        np.savez(path.with_suffix(".npz"), mean=rms.mean, var=rms.var, clip_obs=env.clip_obs, epsilon=env.epsilon)


@click.command()
@click.option("--out", type=click.Path(path_type=Path), required=True)
@click.option("--only", type=click.Choice(list(POLICIES)), multiple=True)
@click.option("--steps", type=int, help="Instead of each policy's own.")
@click.option("--seed", default=0)
def main(out, only, steps, seed):
    torch.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    for name in only or POLICIES:
        plan = {**POLICIES[name], **({"steps": steps} if steps else {})}
        began = time.perf_counter()
        model, env = train(plan, seed)
        returns = score(model, env, plan)
        save(model, env, plan, out / f"{name}.zip")
        minutes = (time.perf_counter() - began) / 60
        versions = {package: version(package) for package in ("stable-baselines3", "torch", "gymnasium", "mujoco")}
        found = {"return_mean": float(np.mean(returns)), "return_std": float(np.std(returns)), "returns": returns}
        (out / f"{name}.json").write_text(
            json.dumps({**plan, "seed": seed, **found, "minutes": minutes, "versions": versions}, indent=1)
        )
        click.echo(f"{name}: {np.mean(returns):.1f} ± {np.std(returns):.1f} after {minutes:.1f} minutes")


if __name__ == "__main__":
    main()
