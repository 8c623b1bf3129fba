"""Teachers and demonstrations made by hand."""

from itertools import pairwise

import numpy as np

from lowgear import envs
from lowgear.baselines.demonstrations import Origin, Trajectory, of_trajectories
from lowgear.runtime import Policy, PolicyHeader, Weights
from tests.probes import Valley


def layers(seed, *sizes):
    generator = np.random.default_rng(seed)
    return [
        (generator.normal(0, 1, (1, i, o)).astype(np.float32), generator.normal(0, 0.3, (1, o)).astype(np.float32))
        for i, o in pairwise(sizes)
    ]


def teacher(obs_dim=2, act_dim=1, units=8, seed=0, **changes):
    """A large-only policy with weights drawn at random."""
    facts = {
        "task": "counting",
        "recipe": "modern",
        "variant": "large-only",
        "seed": seed,
        "cost_coefficient": 0.0,
        "dial": None,
        "steps": 100,
        "obs_dim": obs_dim,
        "act_dim": act_dim,
        "layout": (("", obs_dim),),
        "action_low": (-1.0,) * act_dim,
        "action_high": (1.0,) * act_dim,
        "gears": (2, units),
        "master_units": 1,
        "periods": (1,),
        "activation": "tanh",
        "forced_gear": 1,
        "boltzmann": False,
        "hindsight": False,
    }
    header = PolicyHeader(**facts | changes)
    gears = tuple(layers(seed + g, obs_dim, width, width, 2 * act_dim) for g, width in enumerate(header.gears))
    return Policy(header, Weights(gears, layers(seed, obs_dim, 1, 1, 2)))


def origin(obs_dim=1, act_dim=1, **changes):
    facts = {
        "task": "valley",
        "env_id": "valley",
        "recipe": "modern",
        "variant": "large-only",
        "seed": 0,
        "steps": 100,
        "units": 64,
        "layout": (("", obs_dim),),
        "action_low": (-2.0,) * act_dim,
        "action_high": (2.0,) * act_dim,
        "recorded_with_seed": 0,
    }
    return Origin(**facts | changes)


def trajectory(observations, actions):
    observations, actions = np.asarray(observations, np.float32), np.asarray(actions, np.float32)
    rewards = np.ones(len(observations), np.float32)
    return Trajectory(observations, actions, rewards, observations[-1], False, True, float(len(observations)))


def valley_demonstrations(trajectories=20, length=20, seed=0):
    """What a perfect teacher does in the valley."""
    generator = np.random.default_rng(seed)
    seen = [generator.uniform(-1, 1, (length, 1)) for _ in range(trajectories)]
    return of_trajectories(origin(), [trajectory(x, 2 * np.abs(x) - 1) for x in seen])


def valley(num_envs):
    return envs.wrap(Valley, num_envs)
