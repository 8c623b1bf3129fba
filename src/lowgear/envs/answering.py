"""One Gymnasium environment of a batch, whose failures are its own and not those of the vector around it."""

import contextlib
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from lowgear.envs import watchdog

CLOSE_S = 10.0


class Answering(gymnasium.Wrapper[Any, Any, Any, Any]):
    """One environment of a batch, which asks it: what can't be answered is zeros."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.ask: Callable[..., Any] = lambda function, *arguments: function(*arguments)
        self._answers = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """The first observation of an episode."""
        return self._asked(self._reset, seed, options) or (_zeros(self.env.observation_space), {})

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One step."""
        return self._asked(self._step, action) or (_zeros(self.env.observation_space), 0.0, False, False, {})

    def close(self) -> None:
        """Close it, as far as one that failed lets itself be closed."""
        if self._answers:
            self.env.close()
        else:
            with contextlib.suppress(Exception):
                watchdog.call(CLOSE_S, lambda _: f"{self.env} did not close for {CLOSE_S:g} s", self.env.close)

    def _asked(self, function: Callable[..., Any], *arguments: Any) -> Any:
        answer = self.ask(function, *arguments)
        self._answers = answer is not None
        return answer

    def _reset(self, seed: int | None, options: dict[str, Any] | None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        _check(self.env.observation_space, observation)
        return observation, info

    def _step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        _check(self.env.observation_space, observation)
        float(reward)  # what is no number is its error, not the batch's
        return observation, reward, bool(terminated), bool(truncated), info


def _zeros(space: gymnasium.Space[Any]) -> Any:
    if isinstance(space, gymnasium.spaces.Dict):
        return {key: _zeros(inner) for key, inner in space.spaces.items()}
    return np.zeros(space.shape or (), space.dtype)


def _check(space: gymnasium.Space[Any], observation: Any) -> None:
    """An observation that is not of its space's shape can't stand beside the others'."""
    if isinstance(space, gymnasium.spaces.Dict):
        for key, inner in space.spaces.items():
            _check(inner, observation[key])
    elif np.shape(observation) != space.shape:
        raise ValueError(f"an observation of shape {np.shape(observation)}, where its space has {space.shape}")
