"""A random policy's mean score against the authors', task by task.

The authors do not say over how many episodes theirs is a mean; 100 is assumed, so that a difference is judged
by both sides' sampling error. Fetch scores are success rates. The authors ended an episode on success, so
success at any step counts; for a random policy that is within a point of success at the last step.
"""

import math

import numpy as np
import pytest

from lowgear import envs
from lowgear.tasks import find, published_tasks

AUTHORS_EPISODES = 100
EPISODES = {"Fetch": 512, "Walker2d": 2048, "BipedalWalker": 256, "Ant": 256, "finger": 256, "hopper": 256}
QUICK = ["MountainCarContinuous-v0", "HalfCheetah-v3", "Swimmer-v3", "Walker2d-v3"]

SOFT_FINGER = pytest.mark.xfail(
    strict=True,
    reason="EnvPool 1.2.5 carries MuJoCo 3.6.0, whose finger hardly pushes the spinner: a random policy "
    "gets 0.1; with MuJoCo 2.3.7, 3.3.7 and 3.7.0 to 3.17.0 it gets 0.6, also through dm_control",
)


def random_scores(name: str, episodes: int, seed: int = 0) -> np.ndarray:
    """Scores of `episodes` episodes; every environment gives equally many, so short ones are not favoured."""
    num_envs = 64
    env = envs.make(find(name), num_envs)
    env.reset(range(seed, seed + num_envs))
    rng = np.random.default_rng(seed)
    each = episodes // num_envs
    scores: list[list[float]] = [[] for _ in range(num_envs)]
    total, succeeded = np.zeros(num_envs), np.zeros(num_envs, bool)
    while min(map(len, scores)) < each:
        step = env.step(rng.uniform(-1, 1, (num_envs, env.spec.act_dim)).astype(np.float32))
        total += step.reward
        if step.success is not None:
            succeeded |= step.success
        ended = step.terminated | step.truncated
        for i in np.flatnonzero(ended):
            scores[i].append(float(succeeded[i]) if env.spec.has_success else float(total[i]))
        total[ended], succeeded[ended] = 0, False
    env.close()
    return np.array([score for row in scores for score in row[:each]])


def deviation(name: str, published: float, episodes: int) -> float:
    """How many standard errors of the difference lie between our mean and the authors'."""
    scores = random_scores(name, episodes)
    error = scores.std(ddof=1) * math.sqrt(1 / len(scores) + 1 / AUTHORS_EPISODES)
    found = float((scores.mean() - published) / error)
    print(f"{name}: {scores.mean():.3f} over {len(scores)} episodes, published {published}, {found:+.1f} errors")
    return found


def published_random(name: str) -> float:
    published = published_tasks()[name].published
    assert published is not None
    return published.random


@pytest.mark.parametrize("name", QUICK)
def test_cheap_tasks(name: str) -> None:
    assert abs(deviation(name, published_random(name), episodes=64)) < 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=SOFT_FINGER if name == "finger-spin" else ()) for name in published_tasks()],
)
def test_every_task(name: str) -> None:
    episodes = next((count for part, count in EPISODES.items() if name.startswith(part)), 128)
    assert abs(deviation(name, published_random(name), episodes)) < 3


@pytest.mark.slow
def test_finger_spin_is_harder_in_envpool() -> None:
    """Why it is the exception: dm_control, with another MuJoCo, scores several times more (about 0.6)."""
    assert random_scores("dmc:finger-spin", 256).mean() > 3 * random_scores("finger-spin", 256).mean()
