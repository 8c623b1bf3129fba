"""A random policy's mean score against the authors', task by task.

The authors do not say over how many episodes theirs is a mean; 100 is assumed, so that a difference is judged
by both sides' sampling error. Fetch scores are success rates. The authors ended an episode on success, so
success at any step counts; for a random policy that is within a point of success at the last step.
"""

import math

import numpy as np
import pytest

from lowgear import envs
from lowgear.config.tasks import find, published_tasks

AUTHORS_EPISODES = 100
EPISODES = {"Fetch": 512, "Walker2d": 2048, "BipedalWalker": 256, "Ant": 256, "hopper": 256}
QUICK = ["MountainCarContinuous-v0", "HalfCheetah-v3", "Swimmer-v3", "Walker2d-v3"]


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


def errors_apart(scores: np.ndarray, published: float, authors_episodes: int) -> float:
    """How many standard errors of the difference lie between our mean and the authors'."""
    error = scores.std(ddof=1) * math.sqrt(1 / len(scores) + 1 / authors_episodes)
    return float((scores.mean() - published) / error)


def deviation(name: str, published: float, episodes: int) -> float:
    """`errors_apart` of a new sample."""
    scores = random_scores(name, episodes)
    found = errors_apart(scores, published, AUTHORS_EPISODES)
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
@pytest.mark.parametrize("name", [name for name in published_tasks() if name != "finger-spin"])
def test_every_task(name: str) -> None:
    episodes = next((count for part, count in EPISODES.items() if name.startswith(part)), 128)
    assert abs(deviation(name, published_random(name), episodes)) < 3


@pytest.mark.slow
def test_finger_spin_scores_as_in_dm_control() -> None:
    """The finger has the corrected model of `envs/assets.py`; with the installed one the mean is 0.1."""
    ours, theirs = random_scores("finger-spin", 1024), random_scores("dmc:finger-spin", 256)
    error = math.hypot(ours.std(ddof=1) / math.sqrt(len(ours)), theirs.std(ddof=1) / math.sqrt(len(theirs)))
    print(f"finger-spin: {ours.mean():.3f}, dm_control {theirs.mean():.3f}, standard error {error:.3f}")
    assert abs(ours.mean() - theirs.mean()) < 3 * error


@pytest.mark.slow
def test_finger_spin_scores_less_than_the_authors_say() -> None:
    """About 0.55 against 1.04, which only a mean over some 50 episodes or fewer could be by chance.

    Four episodes in five score 0 and a few up to 20 (standard deviation 1.5), so 50 episodes reach 1.04 once in 50
    times, 100 once in 600 and 200 never in 20,000 resamples. A likelier cause is the physics of the authors' time,
    whose -v3 robots ran on MuJoCo 2.1.0 or older: until 2.1.2 it computed a capsule's mass and inertia as those of a
    cylinder, and all moving parts of the finger are capsules. With such masses in MuJoCo 3.7.0 the mean is 0.90 +- 0.03
    over 4,000 episodes, as close to 1.04 as several hundred episodes can tell.
    """
    scores, published = random_scores("finger-spin", 1024), published_random("finger-spin")
    assert 0.35 < scores.mean() < 0.75
    assert -3 < errors_apart(scores, published, authors_episodes=50) < 0
    assert errors_apart(scores, published, authors_episodes=200) < -3
