"""A compiled export, called from Python."""

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lowgear.envs.protocol import BatchEnv
from lowgear.export.episode import starts
from lowgear.policy.controller import FloatArray
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
    """A shared library made of NAME.c."""

    def __init__(self, path: Path, name: str, act_dim: int) -> None:
        self._library = ctypes.CDLL(str(path))
        self._step: Any = getattr(self._library, f"{name}_step")
        self._init: Any = getattr(self._library, f"{name}_init")
        self._reset: Any = getattr(self._library, f"{name}_reset")
        self._set: Any = getattr(self._library, f"{name}_set_cost_coefficient", None)
        if self._set is not None:
            self._set.argtypes = (ctypes.POINTER(State), ctypes.c_float)
        self._action: FloatArray = np.zeros(act_dim, np.float32)

    def init(self) -> State:
        """A state ready for its first episode."""
        state = State()
        self._init(ctypes.byref(state))
        return state

    def reset(self, state: State) -> None:
        """Begin a new episode."""
        self._reset(ctypes.byref(state))

    def set_cost_coefficient(self, state: State, coefficient: float) -> int:
        """Turn the dial: 0, or -1 where it stays as it is."""
        return int(self._set(ctypes.byref(state), coefficient))

    @property
    def turns(self) -> bool:
        """Whether it has a dial to set."""
        return self._set is not None

    def step(self, state: State, observation: FloatArray) -> tuple[int, FloatArray]:
        """The gear that acted, and its action."""
        observation = np.ascontiguousarray(observation, np.float32)
        gear = self._step(ctypes.byref(state), observation.ctypes.data_as(FLOATS), self._action.ctypes.data_as(FLOATS))
        return int(gear), self._action.copy()


def drive(
    library: Library, policy: Policy, make_env: Callable[[int], BatchEnv], episodes: int, slots: int, seed: int
) -> npt.NDArray[np.float64]:
    """Returns of whole episodes in the real environment, started and ordered as `evaluate.play` does."""
    env = make_env(slots)
    quota = [len(range(slot, episodes, slots)) for slot in range(slots)]
    found: list[list[float]] = [[] for _ in range(slots)]
    low, high = np.array(policy.header.action_low), np.array(policy.header.action_high)
    states = [library.init() for _ in range(slots)]
    running = np.zeros(slots)
    try:
        observation = env.reset(starts(seed, slots))
        while any(len(done) < wanted for done, wanted in zip(found, quota, strict=True)):
            actions = np.array([library.step(state, row)[1] for state, row in zip(states, observation, strict=True)])
            unit = np.clip((actions - low) / np.maximum(high - low, 1e-30) * 2 - 1, -1, 1)  # environments scale it back
            step = env.step(unit.astype(np.float32))
            running += step.reward
            for slot in np.flatnonzero(step.terminated | step.truncated):
                found[slot].append(float(running[slot]))
                running[slot] = 0.0
                library.reset(states[slot])
            observation = step.observation
    finally:
        env.close()
    return np.array([found[i % slots][i // slots] for i in range(episodes)])
