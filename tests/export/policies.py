"""Policies of random weights in every form an export may meet, and their episodes."""

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np

from lowgear import runtime
from lowgear.checkpoint import RunDirectory
from lowgear.config import resolve
from lowgear.dial import Dial
from lowgear.export.episode import imagine
from lowgear.export.source import Source
from lowgear.runtime import Policy, PolicyHeader, Tariff, Weights
from lowgear.tasks import find

HEADER = PolicyHeader(
    task="cartpole-swingup",
    recipe="modern",
    variant="asymmetric",
    seed=3,
    cost_coefficient=0.01,
    dial=Dial(0.001, 0.1),
    known_prices=True,
    steps=1000,
    obs_dim=5,
    act_dim=1,
    layout=(("position", 3), ("velocity", 2)),
    action_low=(-1.0,),
    action_high=(1.0,),
    gears=(3, 9),
    master_units=7,
    periods=(2, 5, 20),
    activation="tanh",
    forced_gear=None,
    boltzmann=False,
    hindsight=False,
)
LEARNED = replace(HEADER, known_prices=False)
WIDE = {"obs_dim": 24, "act_dim": 6, "layout": (("", 24),), "action_low": (-1.0,) * 6, "action_high": (1.0,) * 6}
STEPS = 200
BOUNDED = {"act_dim": 2, "action_low": (-0.4, 0.0), "action_high": (0.4, 30.0)}

FORMS = {
    "dial": HEADER,
    "learned prices": LEARNED,
    "learned prices, equal ends": replace(LEARNED, dial=Dial(0.01, 0.01)),
    "learned prices, three gears, wide, relu": replace(LEARNED, gears=(2, 8, 64), activation="relu", **WIDE),
    "no dial, one period": replace(LEARNED, recipe="paper", dial=None, periods=(5,)),
    "equal ends": replace(HEADER, dial=Dial(0.01, 0.01)),
    "three gears": replace(HEADER, gears=(2, 8, 16)),
    "small-only": replace(HEADER, forced_gear=0, variant="small-only"),
    "large-only": replace(HEADER, forced_gear=1, variant="large-only"),
    "relu": replace(HEADER, activation="relu"),
    "one of each": replace(HEADER, obs_dim=1, layout=(("x", 1),), gears=(1, 1), master_units=1, periods=(1,)),
    "wide": replace(HEADER, gears=(8, 64), master_units=16, **WIDE),
    "other bounds": replace(HEADER, **BOUNDED),
}


def policy_of(header: PolicyHeader = HEADER, seed: int = 0) -> Policy:
    """Weights about as large as training makes them."""
    rng = np.random.default_rng(seed)

    def layers(*sizes: int):
        return [
            (
                (rng.normal(size=(1, a, b)) * 1.5 / np.sqrt(a)).astype(np.float32),
                (rng.normal(size=(1, b)) * 0.5).astype(np.float32),
            )
            for a, b in itertools.pairwise(sizes)
        ]

    gears = tuple(layers(header.obs_dim, units, units, 2 * header.act_dim) for units in header.gears)
    inputs, choices = header.obs_dim + header.sees_position, len(header.gears) * len(header.periods)
    master = layers(inputs, header.master_units, header.master_units, choices)
    tariff = None
    if header.known_prices and header.dial is not None:
        each = rng.uniform(0, 40, (1, choices)).astype(np.float32)
        tariff = Tariff(np.float32([header.dial.low]), np.float32([header.dial.ratio]), each)
    return Policy(header, Weights(gears, master, tariff))


def stored(policy: Policy, count: int = 2):
    return imagine(policy, count, 0, STEPS)


def source_of(policy: Policy, tmp_path: Path, make_env=None) -> Source:
    path = tmp_path / "agent0.safetensors"
    policy.save(path)
    return Source(runtime.load(path), path, None, make_env, "" if make_env else "no environment in this test")


def run_of(policies: list[Policy], path: Path) -> Path:
    """A run directory as training leaves it, its policies untrained."""
    run = RunDirectory(path)
    run.create(resolve(find(HEADER.task), steps=100, seeds=range(len(policies)), gears=HEADER.gears), {})
    for agent, policy in enumerate(policies):
        policy.save(run.policy(agent))
    return path
