"""Demonstrations as a Minari dataset, for the offline-learning libraries that read those.

The file of `demonstrations` stays the original: it is one file, needs no further package, and keeps what Minari has no
place for. A dataset's actions are scaled to the bounds of the action space, as Minari wants them, and are cut to them.
"""

import warnings

import numpy as np
from gymnasium.spaces import Box

from lowgear import LowgearError
from lowgear.baselines.demonstrations import Demonstrations


def to_minari(demonstrations: Demonstrations, dataset_id: str) -> None:
    """Make the local dataset `dataset_id`, such as `lowgear/cartpole-swingup/large-only-v0`, in Minari's own place.

    Trajectories that do not reach the end of their episode are marked as truncated, which every Minari episode must be
    unless it terminated. One that exists already is an error.
    """
    try:
        import minari
        from minari.data_collector import EpisodeBuffer
    except ImportError:
        raise LowgearError("Minari is not installed: pip install 'lowgear[minari]'") from None
    if dataset_id in minari.list_local_datasets():
        raise LowgearError(f"Minari has a dataset {dataset_id} already: choose another name or delete that one")
    origin = demonstrations.origin
    low, high = (np.array(bound, np.float32) for bound in (origin.action_low, origin.action_high))
    scaled = np.clip(low + (demonstrations.actions + 1) / 2 * (high - low), low, high)
    buffers = []
    for i in range(demonstrations.trajectories):
        rows = slice(int(demonstrations.bounds[i]), int(demonstrations.bounds[i + 1]))
        observations = demonstrations.observations[rows]
        last = np.arange(len(observations)) == len(observations) - 1
        buffers.append(
            EpisodeBuffer(
                id=i,
                observations=np.concatenate([observations, demonstrations.last_observations[i : i + 1]]),
                actions=scaled[rows],
                rewards=demonstrations.rewards[rows],
                terminations=last & demonstrations.terminated[i],
                truncations=last & ~demonstrations.terminated[i],
            )
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about authors and links, which are the owner's to add
            minari.create_dataset_from_buffers(
                dataset_id,
                buffers,
                observation_space=Box(-np.inf, np.inf, (origin.obs_dim,), np.float32),
                action_space=Box(low, high, dtype=np.float32),
                algorithm_name=f"Lowgear {origin.recipe} {origin.variant}, {origin.units} units, seed {origin.seed}",
                description=f"Deterministic actions of a trained policy on {origin.task} ({origin.env_id}).",
            )
    except (OSError, ValueError, AssertionError) as error:
        raise LowgearError(f"Minari refused to make {dataset_id}: {error}") from None
