"""A short run of a task with random actions: does it work here, and how fast is it?"""

import time
from collections.abc import Callable
from contextlib import closing

import numpy as np

from lowgear import envs
from lowgear.config.tasks import Task

TRIAL_ENVS = 32
TRIAL_S = 1.0


def steps_per_second(task: Task, on_progress: Callable[[float], None] = lambda _: None) -> float:
    """Environment steps a second, over about a second; `on_progress` is told the share that is done."""
    with closing(envs.make(task, TRIAL_ENVS)) as env:
        env.reset(range(TRIAL_ENVS))
        rng = np.random.default_rng(0)
        steps, elapsed, start = 0, 0.0, time.perf_counter()
        while elapsed < TRIAL_S:
            env.step(rng.uniform(-1, 1, (TRIAL_ENVS, env.spec.act_dim)).astype(np.float32))
            steps += TRIAL_ENVS
            elapsed = time.perf_counter() - start
            on_progress(min(1.0, elapsed / TRIAL_S))
        return steps / elapsed
