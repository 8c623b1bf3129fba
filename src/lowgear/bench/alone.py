"""What each side of the training loop reaches when it has the machine for itself: the loop can't be faster."""

import itertools
import time
from collections.abc import Callable

import numpy as np

from lowgear.config.recipes import Recipe
from lowgear.envs.protocol import BatchEnv
from lowgear.training.parallel import ParallelLearner

BLOCK = 64  # steps between looks at the clock
WARM_BLOCKS = 2


def environments_rate(env: BatchEnv, seconds: float) -> float:
    """Steps per second of the environments together, with random actions and nothing else."""
    random = np.random.default_rng(0)
    shape = env.num_envs, env.spec.act_dim
    actions = itertools.cycle([random.uniform(-1, 1, shape).astype(np.float32) for _ in range(BLOCK)])
    env.reset(range(env.num_envs))

    def block() -> None:
        for action in itertools.islice(actions, BLOCK):
            env.step_bare(action)

    return env.num_envs * BLOCK * _rate(block, seconds)


def learner_rate(learner: ParallelLearner, recipe: Recipe, agents: int, seconds: float) -> float:
    """Steps per second of all agents together that are learned from, on what is in the buffers."""

    def round_of_updates() -> None:
        learner.start(recipe.updates_per_chunk)
        while learner.under_way > learner.queues:
            learner.wait()

    rate = _rate(round_of_updates, seconds)
    while learner.under_way:
        learner.wait()
    return agents * recipe.chunk * rate


def _rate(call: Callable[[], None], seconds: float) -> float:
    """Calls per second."""
    for _ in range(WARM_BLOCKS):
        call()
    began, count = time.perf_counter(), 0
    while (taken := time.perf_counter() - began) < seconds or not count:
        call()
        count += 1
    return count / taken
