"""Policies of other libraries in an environment of ours: read, fitted to it, and held against the original."""

import importlib
import importlib.util
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lowgear import LowgearError, envs
from lowgear.config.tasks import find
from lowgear.envs.protocol import BatchEnv
from lowgear.policy import file
from lowgear.policy.arrays import DoubleArray, FloatArray
from lowgear.policy.controller import ActionBounds, Controller
from lowgear.policy.fields import BadField, reason
from lowgear.policy.file import Policy
from lowgear.policy.foreign import ForeignPolicy, load_statistics, read_foreign
from lowgear.policy.foreign.convert import Place, to_policy

Actor = Callable[[FloatArray], npt.NDArray[Any]]  # observations (N, obs) to actions in the environment's units

STEPS, ENVIRONMENTS = 250, 4  # of the check
LARGEST_ERROR = 1e-4  # of an action, in halves of its range
CONTRIBUTED = ("TQC", "TRPO")  # algorithms of sb3-contrib


class Check(NamedTuple):
    """How near the imported policy is to the original."""

    library: str
    observations: int
    largest_action_error: float  # in halves of an action's range


class Imported(NamedTuple):
    """What was read, and the policy that it became."""

    foreign: ForeignPolicy
    policy: Policy
    check: Check | None  # None: the original was not loaded

    def report(self) -> dict[str, Any]:
        """In JSON's values."""
        foreign, header = self.foreign, self.policy.header
        return {
            "source": foreign.source,
            "task": header.task,
            "obs_dim": header.obs_dim,
            "act_dim": header.act_dim,
            "hidden": list(foreign.hidden),
            "activation": foreign.activation,
            "squash": foreign.squash,
            "normalised": foreign.normalised,
            "flops_per_step": header.cost.gear_flops[0],
            "checked": None if self.check is None else self.check._asdict(),
            "notes": list(foreign.notes),
        }


def import_policy(
    path: str | Path, task: str, *, normalise: str | Path | None = None, kind: str | None = None, check: bool = False
) -> Imported:
    """The policy in another library's file, for a task whose environment it fits.

    With `check`, the file's own library loads it, runs what is in it, and must act alike. An ONNX graph is held against
    ONNX Runtime in any case, where that is installed: it runs no code.
    """
    path, normalise = Path(path), None if normalise is None else Path(normalise)
    foreign = read_foreign(path, kind, normalise)
    env = envs.make(find(task), ENVIRONMENTS)
    try:
        policy = _fitted(foreign, env, task, path)
        checks = check or (foreign.kind == "onnx" and _installed("onnxruntime"))
        return Imported(foreign, policy, _check(foreign, policy, env, path, normalise) if checks else None)
    finally:
        env.close()


def _fitted(foreign: ForeignPolicy, env: BatchEnv, task: str, path: Path) -> Policy:
    """The policy as its file will have it."""
    spec = env.spec
    names = spec.observation_names, spec.action_names
    place = Place(find(task).name, spec.layout, spec.action_low, spec.action_high, *names)
    try:
        policy = to_policy(foreign, place)
    except BadField as error:
        raise LowgearError(f"{path} cannot act in {task}: {reason(error)}") from None
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "policy.safetensors"
        policy.save(copy)
        return file.load(copy)  # which refuses what could overflow


def _check(foreign: ForeignPolicy, policy: Policy, env: BatchEnv, path: Path, normalise: Path | None) -> Check:
    """Both on the observations of episodes that the imported policy plays."""
    library, original = _original(foreign, path, normalise, policy.bounds)
    seen = _observations(policy, env)
    ours = policy.bounds.scale(_act(policy, seen)).astype(np.float64)
    low, high = policy.bounds.low, policy.bounds.high
    theirs = np.clip(np.asarray(original(seen), np.float64).reshape(ours.shape), low, high)
    error = float(np.abs((ours - theirs) / ((high - low) / 2)).max())
    if not error <= LARGEST_ERROR:
        raise LowgearError(
            f"{path}: {library} acts otherwise than what was imported, by {error:.1e} of half an action's range; "
            + ("give its statistics with --normalise" if not foreign.normalised else "are the statistics its own?")
        )
    return Check(library, len(seen), error)


def _act(policy: Policy, seen: FloatArray) -> FloatArray:
    """Actions in [-1, 1] of (N, obs)."""
    controller = Controller.from_policies([policy], len(seen))
    controller.pick(seen[None])
    actions: FloatArray = controller.act(seen[None])[0]
    return actions


def _observations(policy: Policy, env: BatchEnv) -> FloatArray:
    controller = Controller.from_policies([policy], ENVIRONMENTS)
    observation = env.reset(list(range(ENVIRONMENTS)))
    seen = []
    for _ in range(STEPS):
        seen.append(observation)
        controller.pick(observation[None])
        observation = env.step(controller.act(observation[None])[0]).observation
    return np.concatenate(seen)


def _original(foreign: ForeignPolicy, path: Path, normalise: Path | None, bounds: ActionBounds) -> tuple[str, Actor]:
    """The original as its own library runs it, with the library's name."""
    if foreign.kind == "onnx":
        return "ONNX Runtime", _onnx(path, foreign, bounds)
    if foreign.kind == "cleanrl":
        raise LowgearError(f"--check: CleanRL has no library that could load {path}; leave it out")
    algorithm = foreign.source.split()[1]
    module = "sbx" if foreign.kind == "sbx" else "sb3_contrib" if algorithm in CONTRIBUTED else "stable_baselines3"
    model = getattr(_module(module), algorithm).load(path, device="cpu")
    statistics = None if normalise is None else load_statistics(normalise)

    def act(seen: FloatArray) -> npt.NDArray[Any]:
        x: DoubleArray | FloatArray = seen
        if statistics is not None:
            x = (seen.astype(np.float64) - statistics.mean) / statistics.std
            x = (x if statistics.clip is None else np.clip(x, -statistics.clip, statistics.clip)).astype(np.float32)
        actions: npt.NDArray[Any] = model.predict(x, deterministic=True)[0]
        return actions

    return module, act


def _onnx(path: Path, foreign: ForeignPolicy, bounds: ActionBounds) -> Actor:
    session = _module("onnxruntime").InferenceSession(str(path), providers=["CPUExecutionProvider"])
    given = session.get_inputs()[0]
    in_units_of_one = foreign.squash == "tanh" and foreign.action_low is None
    batched = not given.shape or not isinstance(given.shape[0], int)

    def act(seen: FloatArray) -> npt.NDArray[Any]:
        rows = [seen] if batched else [row[None] for row in seen]
        out = np.concatenate([np.asarray(session.run(None, {given.name: row})[0]) for row in rows])
        return bounds.scale(out) if in_units_of_one else out

    return act


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise LowgearError(f"--check needs {name}: install it beside Lowgear, or leave --check out") from None


def _installed(name: str) -> bool:
    return importlib.util.find_spec(name) is not None
