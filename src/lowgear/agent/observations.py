"""Observations as environments give them, single ones and batches, arrays and dicts, as rows that a policy reads."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from lowgear import LowgearError
from lowgear.policy.arrays import FloatArray
from lowgear.policy.header import PolicyHeader


def as_rows(observation: Any, header: PolicyHeader) -> tuple[FloatArray, bool]:
    """The observation as (N, obs) rows, and whether it was a single one."""
    if isinstance(observation, Mapping):
        return _from_dict(observation, header)
    rows, size = np.asarray(observation, np.float32), header.obs_dim
    if rows.shape == (size,) or (rows.ndim > 1 and rows.size == size and rows.shape[-1] != size):
        return rows.reshape(1, size), True
    if rows.ndim < 2 or int(np.prod(rows.shape[1:])) != size:
        raise LowgearError(
            f"an observation of shape {rows.shape[1:] or rows.shape}; this policy was trained on ({size},)"
        )
    return rows.reshape(len(rows), size), False


def _from_dict(observation: Mapping[str, Any], header: PolicyHeader) -> tuple[FloatArray, bool]:
    """The parts side by side, in the layout's order."""
    layout = [(key, size) for key, size in header.layout if size]
    parts = [np.asarray(_part(observation, key, header), np.float32) for key, _ in layout]
    counts = [part.size // size for part, (_, size) in zip(parts, layout, strict=True)]
    for part, (key, size) in zip(parts, layout, strict=True):
        if part.size != counts[0] * size or not counts[0]:
            raise LowgearError(
                f"the observation's {key!r} has the shape {part.shape}; this policy was trained on {size} numbers there"
            )
    single = counts[0] == 1 and not all(part.ndim > 1 and len(part) == 1 for part in parts)
    return np.concatenate([part.reshape(counts[0], -1) for part in parts], axis=1), single


def _part(observation: Mapping[str, Any], key: str, header: PolicyHeader) -> Any:
    """The entry of a key; that of a dict within the dict is written with a dot: arm.joints."""
    found = _inside(observation, key)
    if found is None:
        raise LowgearError(f"the observation has no {key!r}; the policy was trained on {header.layout}")
    return found


def _inside(observation: Mapping[str, Any], key: str) -> Any:
    if key in observation:
        return observation[key]
    for place in (place for place, letter in enumerate(key) if letter == "."):
        inner = observation.get(key[:place])
        found = _inside(inner, key[place + 1 :]) if isinstance(inner, Mapping) else None
        if found is not None:
            return found
    return None
