"""Statistics by which observations are normalised: an .npz, or the pickle of Stable-Baselines3's VecNormalize.

The pickle is followed without being run. Where that fails, this line makes the .npz, in an environment that has
Stable-Baselines3, of a pickle that one trusts:

    python -c "import pickle, numpy as n; v = pickle.load(open('vecnormalize.pkl', 'rb')); n.savez('stats.npz',
    mean=v.obs_rms.mean, var=v.obs_rms.var, clip_obs=v.clip_obs, epsilon=v.epsilon)"
"""

import io
from typing import Any

import numpy as np
import numpy.typing as npt

from lowgear.policy import fields
from lowgear.policy.fields import BadField, shown
from lowgear.policy.foreign.network import Statistics
from lowgear.policy.foreign.pickles import read_pickle
from lowgear.policy.foreign.records import is_made, numbers, state_of
from lowgear.policy.foreign.zips import Archive, is_zip

VEC_NORMALIZE = "stable_baselines3.common.vec_env.vec_normalize.VecNormalize"
RUNNING = "stable_baselines3.common.running_mean_std.RunningMeanStd"
KEYS = ("mean", "var", "clip_obs", "epsilon")
MOST_MEMBER = 1 << 24  # bytes
EPSILON = 1e-8  # the libraries' own
LARGEST = 1e30


def read_statistics(data: bytes) -> Statistics | None:
    """The statistics in a file; None where it says that observations are not normalised."""
    if is_zip(data):
        return _statistics(_npz(data))
    if data[:1] != b"\x80":
        raise BadField("it is neither an .npz nor a pickle of VecNormalize")
    made = read_pickle(data)
    if not is_made(made, VEC_NORMALIZE):
        raise BadField(f"it is {shown(made)}, not VecNormalize")
    state = state_of(made, "VecNormalize")
    if state.get("norm_obs") is False:
        return None
    running = state.get("obs_rms")
    if not is_made(running, RUNNING):
        raise BadField("its obs_rms is not of one flat observation")
    values = {name: value for name, value in state_of(running, "obs_rms").items() if name in KEYS}
    return _statistics(values | {name: state[name] for name in ("clip_obs", "epsilon") if name in state})


def _npz(data: bytes) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an .npz, each checked before its numbers are read."""
    archive = Archive(data)
    found = {}
    for name in archive.names:
        key = name.removesuffix(".npy")
        if key in KEYS:
            found[key] = _npy(key, archive.read(name, MOST_MEMBER))
    return found


def _npy(what: str, data: bytes) -> npt.NDArray[Any]:
    """One array; its header is NumPy's to read, which runs nothing and allows no objects."""
    try:
        found: npt.NDArray[Any] = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    except Exception as error:
        raise BadField(f"{what} is no whole array ({type(error).__name__})") from None
    return found


def _statistics(values: dict[str, Any]) -> Statistics:
    mean, variance = (numbers(name, fields.entry(values, name)) for name in ("mean", "var"))
    if mean.shape != variance.shape or mean.ndim != 1 or not mean.size:
        raise BadField(f"mean has shape {mean.shape} and var {variance.shape}: they are not of one flat observation")
    if np.abs(mean).max() > LARGEST or variance.min() < 0 or variance.max() > LARGEST:
        raise BadField("mean or var hold values that no observation has")
    epsilon = _one("epsilon", values["epsilon"]) if "epsilon" in values else EPSILON
    clip = _one("clip_obs", values["clip_obs"]) if "clip_obs" in values else None
    if clip is not None and clip <= 0:
        raise BadField(f"clip_obs is {clip:g}, not above 0")
    spread = variance + fields.number("epsilon", epsilon, 0, 1)
    if spread.min() < 1e-18:
        raise BadField("var and epsilon are 0, by which nothing can be divided")
    return Statistics(mean, np.sqrt(spread), clip)


def _one(what: str, value: Any) -> float:
    found = numbers(what, value)
    if found.size != 1:
        raise BadField(f"{what} is not one number")
    return fields.number(what, float(found.reshape(())), -LARGEST, LARGEST)
