"""Expert data: state-action pairs of a teacher, trajectory after trajectory, and the file that keeps them.

The file is safetensors, which any language reads without Lowgear and which can't run code. Its tensors are the arrays
of `Demonstrations` under their own names; its metadata entry `lowgear-demonstrations` is `Origin` as JSON.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save as to_bytes

from lowgear import LowgearError
from lowgear.config.tasks import find
from lowgear.policy import fields
from lowgear.policy.arrays import BoolArray, FloatArray
from lowgear.policy.fields import MAX_COUNT, MAX_SEED, entry
from lowgear.policy.file import Policy
from lowgear.policy.files import write_whole
from lowgear.policy.gears import MOST_UNITS
from lowgear.policy.header import read_bounds, read_layout
from lowgear.policy.tensors import open_tensors, unique

ENTRY = "lowgear-demonstrations"
FORMAT = 1
REMEDY = "record it again"
MOST_BYTES = 1 << 32  # of a file


class Trajectory(NamedTuple):
    """Consecutive steps of one episode, and how they ended."""

    observations: FloatArray  # (L, obs)
    actions: FloatArray  # (L, act), in [-1, 1]: what the teacher does there
    rewards: FloatArray  # (L,)
    last_observation: FloatArray  # (obs,): where the last action led
    terminated: bool
    truncated: bool  # neither, where the episode went on
    episode_return: float  # of the whole episode it was cut from


@dataclass(frozen=True)
class Origin:
    """Which teacher on which task: all that a student's policy file must know."""

    task: str
    env_id: str
    recipe: str
    variant: str
    seed: int  # the teacher's
    steps: int  # it was trained for
    units: int  # of its hidden layers
    layout: tuple[tuple[str, int], ...]  # (key, size) in the order of the flat observation
    action_low: tuple[float, ...]  # the space's own bounds, which [-1, 1] is scaled to
    action_high: tuple[float, ...]
    recorded_with_seed: int
    format: int = FORMAT

    @classmethod
    def of(cls, teacher: Policy, seed: int) -> "Origin":
        """Of a policy that acts with one gear, recorded with `seed`."""
        header = teacher.header
        assert header.forced_gear is not None
        try:
            env_id = find(header.task).env_id
        except LowgearError:  # a task that was passed in from Python has no other name than its own
            env_id = header.task
        names = ("task", "recipe", "variant", "seed", "steps", "layout", "action_low", "action_high")
        shared = {name: getattr(header, name) for name in names}
        units = max(header.gears[header.forced_gear].hidden, default=1)
        return cls(**shared, env_id=env_id, units=units, recorded_with_seed=seed)

    @property
    def obs_dim(self) -> int:
        """Size of a flat observation."""
        return sum(size for _, size in self.layout)

    @property
    def act_dim(self) -> int:
        """Number of actions."""
        return len(self.action_low)


@dataclass(frozen=True)
class Demonstrations:
    """T trajectories of N pairs in all; trajectory i is rows `bounds[i]` to `bounds[i + 1]`."""

    origin: Origin
    observations: FloatArray  # (N, obs)
    actions: FloatArray  # (N, act), in [-1, 1]
    rewards: FloatArray  # (N,)
    bounds: npt.NDArray[np.int64]  # (T + 1,)
    last_observations: FloatArray  # (T, obs): where each trajectory's last action led
    terminated: BoolArray  # (T,): the trajectory ended with its episode, for real
    truncated: BoolArray  # (T,): or at the time limit
    episode_returns: FloatArray  # (T,): of the whole episodes the trajectories were cut from

    def __len__(self) -> int:
        return len(self.observations)

    @property
    def trajectories(self) -> int:
        """T."""
        return len(self.bounds) - 1

    def save(self, path: str | Path) -> None:
        """Write the file whole or not at all."""
        tensors = {name: np.ascontiguousarray(getattr(self, name)) for name in _shapes(self.origin, 0, 0)}
        write_whole(Path(path), to_bytes(tensors, {ENTRY: json.dumps(asdict(self.origin))}))


def of_trajectories(origin: Origin, trajectories: Sequence[Trajectory]) -> Demonstrations:
    """Trajectories laid end to end."""
    if not trajectories:
        raise LowgearError("there is no trajectory to learn from: record at least one")
    return Demonstrations(
        origin,
        observations=np.concatenate([t.observations for t in trajectories]),
        actions=np.concatenate([t.actions for t in trajectories]),
        rewards=np.concatenate([t.rewards for t in trajectories]),
        bounds=np.cumsum([0, *(len(t.observations) for t in trajectories)], dtype=np.int64),
        last_observations=np.stack([t.last_observation for t in trajectories]),
        terminated=np.array([t.terminated for t in trajectories], np.bool_),
        truncated=np.array([t.truncated for t in trajectories], np.bool_),
        episode_returns=np.array([t.episode_return for t in trajectories], np.float32),
    )


def load(path: str | Path) -> Demonstrations:
    """Read a file that `save` wrote; a damaged or edited one is an error that names what is wrong."""
    path = Path(path)
    with open_tensors(path, "file of demonstrations", REMEDY, MOST_BYTES) as file:
        if ENTRY not in file.metadata:
            raise LowgearError(
                f"{path} is a safetensors file but holds no demonstrations: it has no {ENTRY!r} entry; name another"
            )
        origin = _parse(path, file.metadata[ENTRY])
        first = {name: file.declared[name].shape for name in ("observations", "terminated") if name in file.declared}
        rows, trajectories = (
            shape[0] if shape else 0 for shape in (first.get("observations"), first.get("terminated"))
        )
        wanted = _shapes(origin, rows, trajectories)
        for name, (kind, shape) in wanted.items():
            file.require(name, kind, shape)
        extra = sorted(file.declared.keys() - wanted.keys())
        if extra:
            raise LowgearError(f"{path} holds a tensor of another kind of file: {fields.shown(extra[0])}; {REMEDY}")
        tensors: dict[str, Any] = {
            name: file.read_finite(name, shape) if kind is np.float32 else file.read(name, kind, shape)
            for name, (kind, shape) in wanted.items()
        }
    _check(path, tensors)
    return Demonstrations(origin, **tensors)


def _shapes(origin: Origin, rows: int, trajectories: int) -> dict[str, tuple[type, tuple[int, ...]]]:
    """Type and shape of every tensor of a file."""
    return {
        "observations": (np.float32, (rows, origin.obs_dim)),
        "actions": (np.float32, (rows, origin.act_dim)),
        "rewards": (np.float32, (rows,)),
        "bounds": (np.int64, (trajectories + 1,)),
        "last_observations": (np.float32, (trajectories, origin.obs_dim)),
        "terminated": (np.bool_, (trajectories,)),
        "truncated": (np.bool_, (trajectories,)),
        "episode_returns": (np.float32, (trajectories,)),
    }


def _parse(path: Path, text: str) -> Origin:
    try:
        raw = fields.entries("it", json.loads(text, object_pairs_hook=unique))
        if raw.get("format") != FORMAT:
            shown = fields.shown(raw.get("format"))
            raise LowgearError(f"{path} has format {shown} of demonstrations; this version reads {FORMAT}: {REMEDY}")

        def word(name: str) -> str:
            return fields.word(name, entry(raw, name))

        low, high = read_bounds(raw)
        origin = Origin(
            task=word("task"),
            env_id=word("env_id"),
            recipe=word("recipe"),
            variant=word("variant"),
            seed=fields.whole("seed", entry(raw, "seed"), 0, MAX_SEED),
            recorded_with_seed=fields.whole("recorded_with_seed", entry(raw, "recorded_with_seed"), 0, MAX_SEED),
            steps=fields.whole("steps", entry(raw, "steps"), 0, MAX_COUNT),
            units=fields.whole("units", entry(raw, "units"), 1, MOST_UNITS),
            layout=read_layout(entry(raw, "layout")),
            action_low=low,
            action_high=high,
        )
        fields.whole("the size of an observation", origin.obs_dim, 1, MOST_UNITS)
        return origin
    except (RecursionError, ValueError) as error:
        raise LowgearError(f"{path} has a damaged header ({fields.reason(error)}); {REMEDY}") from None


def _check(path: Path, tensors: dict[str, Any]) -> None:
    """Refuse arrays that do not belong together or hold what no teacher can have done."""
    bounds, rows = tensors["bounds"], len(tensors["observations"])
    if not rows or bounds[0] != 0 or bounds[-1] != rows or (bounds[1:] <= bounds[:-1]).any():
        raise LowgearError(f"{path}: its bounds do not cut {rows} rows into trajectories; {REMEDY}")
    if np.abs(tensors["actions"]).max() > 1:
        raise LowgearError(f"{path}: its actions leave [-1, 1]; {REMEDY}")
