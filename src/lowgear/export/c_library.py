"""A compiled export, called from Python."""

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lowgear.envs.protocol import BatchEnv
from lowgear.export import compiler
from lowgear.export.check import ExportedStep, StateBefore
from lowgear.export.layers import holds
from lowgear.policy.arrays import DoubleArray, FloatArray
from lowgear.policy.file import Policy, PolicyHeader

FLOATS = ctypes.POINTER(ctypes.c_float)


class State(ctypes.Structure):
    """NAME_state of the header."""

    _fields_ = (
        ("choice", ctypes.c_int),
        ("left", ctypes.c_int),
        ("position", ctypes.c_float),
        ("cost_coefficient", ctypes.c_float),
    )
    last_action: Any  # of controllers with a gear that holds it


def state_type(header: PolicyHeader) -> type[State]:
    """With the last action where a gear holds it."""
    last = (("last_action", ctypes.c_float * header.act_dim),)
    return type("HoldingState", (State,), {"_fields_": last}) if holds(header) else State


def state_bytes(header: PolicyHeader) -> int:
    """Of RAM that a controller needs between steps."""
    return ctypes.sizeof(state_type(header))


class Library:
    """NAME.c as a shared library."""

    def __init__(self, path: Path, name: str, policy: Policy) -> None:
        self.policy, self._name, self._library = policy, name, ctypes.CDLL(str(path))
        self._state = state_type(policy.header)

    def function(self, what: str) -> Any:
        """NAME_what, which takes a state first; None where there is none."""
        return getattr(self._library, f"{self._name}_{what}", None)

    def init(self) -> State:
        """A state ready for its first episode."""
        state = self._state()
        self.function("init")(ctypes.byref(state))
        return state

    def step(self, state: State, observation: FloatArray) -> tuple[int, FloatArray]:
        """The gear that acted, and its action."""
        observation = np.ascontiguousarray(observation, np.float32)
        action = np.empty(self.policy.header.act_dim, np.float32)
        pointers = observation.ctypes.data_as(FLOATS), action.ctypes.data_as(FLOATS)
        return int(self.function("step")(ctypes.byref(state), *pointers)), action

    def step_from(self, before: StateBefore, observation: FloatArray) -> ExportedStep:
        """One step from a state, whose dial stands as exported."""
        state, forced = self.init(), self.policy.header.forced_gear
        if not (before.fresh and holds(self.policy.header)):  # else as reset leaves it
            state.choice, state.left = before.choice if forced is None else forced, before.left
        if not holds(self.policy.header):
            gear, action = self.step(state, observation)
            return ExportedStep(int(state.choice), gear, action)
        state.last_action[:] = before.last_action.tolist()
        gear, action = self.step(state, observation)
        return ExportedStep(int(state.choice), gear, action, np.array(state.last_action, np.float32))


def build_library(files: dict[str, bytes], name: str, policy: Policy, folder: Path, cc: str) -> Library:
    """Compile the files with every warning an error, and load them."""
    for file, data in files.items():
        (folder / file).write_bytes(data)
    flags = [*compiler.STRICT, *compiler.FAST, *compiler.SHARED]
    # A fresh name each time: a loaded library of the same path would be taken instead.
    path = folder / f"lib{name}-{folder.name}.so"
    return Library(compiler.build(cc, flags, [folder / f"{name}.c"], path), name, policy)


def library_returns(library: Library, env: BatchEnv, seeds: Sequence[int]) -> DoubleArray:
    """Return of the first episode of each environment, driven by the compiled controller."""
    states, bounds = [library.init() for _ in seeds], library.policy.bounds
    size = np.maximum(bounds.high - bounds.low, 1e-30)
    returns, running = np.zeros(len(seeds)), np.ones(len(seeds), bool)
    observation = env.reset(seeds)
    while running.any():
        actions = np.array([library.step(state, row)[1] for state, row in zip(states, observation, strict=True)])
        unit = (actions - bounds.low) / size * 2 - 1  # environments scale it back
        step = env.step(np.clip(unit, -1, 1).astype(np.float32))
        returns[running] += step.reward[running]
        running &= ~(step.terminated | step.truncated)
        observation = step.observation
    return returns
