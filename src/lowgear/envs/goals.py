"""What a goal environment pays for reaching a goal: needed whenever hindsight swaps a goal for another.

A rule that is written in operators alone runs on the learner's device. Any other environment is asked on the host, in
bulk, through Gymnasium's `compute_reward`.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lowgear import LowgearError
from lowgear.policy.arrays import FloatArray


class GoalRule(Protocol):
    """Rewards of (achieved, desired) goals, whose last axis is a goal's numbers; the other axes are kept."""

    @property
    def on_device(self) -> bool:
        """Whether JAX can trace it."""
        ...

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The least and the most that a step can pay; None where unknown."""
        ...

    def reward(self, achieved: Any, desired: Any) -> Any:
        """What the step that achieved one goal pays where another was desired."""
        ...

    def reached(self, achieved: Any, desired: Any) -> Any:
        """Whether that is a success."""
        ...


@dataclass(frozen=True)
class Distance:
    """Gymnasium-Robotics' rule: -1 until within `threshold` of the goal, then 0; or minus the distance itself."""

    threshold: float
    sparse: bool = True
    on_device = True

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Known for sparse rewards."""
        return (-1.0, 0.0) if self.sparse else None

    def reward(self, achieved: Any, desired: Any) -> Any:
        """Minus one for each step outside the threshold, or minus the distance."""
        distance = _distance(achieved, desired)
        return -(distance > self.threshold).astype("float32") if self.sparse else -distance

    def reached(self, achieved: Any, desired: Any) -> Any:
        """Whether the distance is within the threshold."""
        return _distance(achieved, desired) <= self.threshold


class Asked:
    """The rule of an environment that has Gymnasium's `compute_reward(achieved, desired, info)`."""

    on_device = False
    bounds: tuple[float, float] | None = None

    def __init__(self, name: str, env: Any) -> None:
        self._name, self._env = name, env
        self._in_bulk: bool | None = None  # whether the environment takes many pairs at once; found out when asked

    def reward(self, achieved: FloatArray, desired: FloatArray) -> FloatArray:
        """One call for all pairs where the environment can, one for each otherwise."""
        # JAX hands over arrays of its own, whose operations would wait for the device that waits for this answer.
        achieved, desired = np.asarray(achieved), np.asarray(desired)
        shape, width = achieved.shape[:-1], achieved.shape[-1]
        a, g = achieved.reshape(-1, width), np.broadcast_to(desired, achieved.shape).reshape(-1, width)
        if self._in_bulk is None:
            self._in_bulk = self._takes_many(a[:1], g[:1])
        if self._in_bulk:
            found = self._call(a, g, [{}] * len(a))
        else:
            found = np.array([self._call(x, y, {}) for x, y in zip(a, g, strict=True)])
        return np.asarray(found, np.float32).reshape(shape)

    def reached(self, achieved: FloatArray, desired: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether it pays what the goal itself would, whatever the scale: -1 and 0, or 0 and 1."""
        return self.reward(achieved, desired) >= self.reward(desired, desired)

    def _takes_many(self, a: FloatArray, g: FloatArray) -> bool:
        two = np.repeat(a, 2, axis=0), np.repeat(g, 2, axis=0)
        try:
            return bool(np.shape(self._env.compute_reward(*two, [{}, {}])) == (2,))
        except Exception:
            return False

    def _call(self, a: FloatArray, g: FloatArray, info: Any) -> Any:
        try:
            return self._env.compute_reward(a, g, info)
        except Exception as error:
            raise LowgearError(
                f"{self._name}: compute_reward(achieved, desired, info) raised {type(error).__name__}: {error}; "
                "hindsight needs it for goals other than the episode's own, with an empty info"
            ) from error


def _distance(achieved: Any, desired: Any) -> Any:
    # Number by number: along a last axis this short, neither NumPy's nor the compiler's sum is vectorised.
    return sum((achieved[..., i] - desired[..., i]) ** 2 for i in range(achieved.shape[-1])) ** 0.5
