"""Nanoseconds of a step of generated C, of many controllers in turn, each on its own recorded episodes.

Networks that always act take the same time whatever their weights are, so of each shape one is timed. That also holds
where weights are zero: the C of a pruned network multiplies with all of them. A controller that switches is timed for
each seed, because its shares of gears differ.
"""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lowgear.bench.c_driver import CompiledReplay
from lowgear.bench.clock import ROUNDS, interleave
from lowgear.export import compiler
from lowgear.export.source import MakeEnv, record_episodes
from lowgear.policy.file import Policy

EPISODES = 2  # that each controller replays
Key = tuple[Any, ...]


def step_times(
    contenders: Sequence[tuple[Sequence[Policy], str]],
    make_env: MakeEnv,
    progress: Callable[[int, int], None],
    rounds: int = ROUNDS,
) -> list[list[float | None]]:
    """Of each contender's policies, with float32 or int8 weights; None of all without a C compiler."""
    cc = compiler.find()
    if cc is None:
        return [[None] * len(policies) for policies, _ in contenders]
    keys = [[_key(policy, weights) for policy in policies] for policies, weights in contenders]
    chosen: dict[Key, tuple[Policy, str]] = {}
    for own, (policies, weights) in zip(keys, contenders, strict=True):
        for key, policy in zip(own, policies, strict=True):
            chosen.setdefault(key, (policy, weights))
    with tempfile.TemporaryDirectory(prefix="lowgear-") as folder:
        replays = {}
        for number, (key, (policy, weights)) in enumerate(chosen.items()):
            episodes = record_episodes(policy, make_env, EPISODES)
            name = f"rival{number}"
            replays[key] = CompiledReplay(policy, name, episodes, Path(folder) / name, cc, weights)
            progress(number + 1, len(chosen))
        times = interleave({key: replay.run for key, replay in replays.items()}, rounds)
    return [[times[key].median for key in own] for own in keys]


def _key(policy: Policy, weights: str) -> Key:
    """What decides the time: the shape of the only gear that acts, or else the very controller."""
    header = policy.header
    if header.forced_gear is None:
        return weights, id(policy)
    gear = header.gears[header.forced_gear]
    return weights, gear, gear.activation or header.activation
