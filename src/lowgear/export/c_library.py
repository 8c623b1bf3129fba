"""A compiled export, called from Python."""

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lowgear.envs.protocol import BatchEnv
from lowgear.export import compiler
from lowgear.export.check import ExportedStep
from lowgear.policy.arrays import DoubleArray, FloatArray
from lowgear.policy.file import Policy

FLOATS = ctypes.POINTER(ctypes.c_float)


class State(ctypes.Structure):
    """NAME_state of the header."""

    _fields_ = (
        ("choice", ctypes.c_int),
        ("left", ctypes.c_int),
        ("position", ctypes.c_float),
        ("cost_coefficient", ctypes.c_float),
    )


class Library:
    """NAME.c as a shared library."""

    def __init__(self, path: Path, name: str, policy: Policy) -> None:
        self.policy, self._name, self._library = policy, name, ctypes.CDLL(str(path))

    def function(self, what: str) -> Any:
        """NAME_what, which takes a state first; None where there is none."""
        return getattr(self._library, f"{self._name}_{what}", None)

    def init(self) -> State:
        """A state ready for its first episode."""
        state = State()
        self.function("init")(ctypes.byref(state))
        return state

    def step(self, state: State, observation: FloatArray) -> tuple[int, FloatArray]:
        """The gear that acted, and its action."""
        observation = np.ascontiguousarray(observation, np.float32)
        action = np.empty(self.policy.header.act_dim, np.float32)
        pointers = observation.ctypes.data_as(FLOATS), action.ctypes.data_as(FLOATS)
        return int(self.function("step")(ctypes.byref(state), *pointers)), action

    def step_from(self, choice: int, left: int, observation: FloatArray) -> ExportedStep:
        """One step from a state, whose dial stands as exported."""
        state, forced = self.init(), self.policy.header.forced_gear
        state.choice, state.left = choice if forced is None else forced, left
        gear, action = self.step(state, observation)
        return ExportedStep(int(state.choice), gear, action)


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
