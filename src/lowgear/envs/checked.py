"""What every adapter does around its simulator: bad seeds, actions and numbers are refused, with the name of it.

One environment that fails, where somebody hears of it, fails alone: it is retired and gives zeros from then on.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from types import FrameType
from typing import TypeVar

import numpy as np

from lowgear import LowgearError
from lowgear.config.ranges import MAX_SEED
from lowgear.envs import lines, watchdog
from lowgear.envs.goals import GoalRule
from lowgear.envs.protocol import EnvSpec, OnBad, Step
from lowgear.envs.spaces import one_line
from lowgear.policy.arrays import FloatArray
from lowgear.policy.controller import ActionBounds

Answer = TypeVar("Answer")


class CheckedEnv(ABC):
    """A batch of environments; its adapter has `_begin`, which resets all, and `_advance`, which takes a step."""

    goal_rule: GoalRule | None = None
    on_bad: OnBad | None = None
    limit_s = 0.0
    first = 0  # the number of the first one, where they are some of several batches

    def __init__(self, spec: EnvSpec, bounds: ActionBounds, num_envs: int) -> None:
        self.spec, self.num_envs = spec, num_envs
        self.retired: set[int] = set()
        self._bounds, self._seeds = bounds, [0] * num_envs
        self._own_file: str | None = None  # of the environments' class, where it is known
        self._doing = ""
        self._steps: int | None = None  # since the last reset; None before it, and once closed

    def reset(self, seeds: Sequence[int]) -> FloatArray:
        """Start every environment anew from its own seed and return the first observations."""
        if len(seeds) != self.num_envs:
            raise LowgearError(f"{len(seeds)} seeds for {self.num_envs} environments; give one for each")
        for seed in seeds:
            if not 0 <= seed <= MAX_SEED:
                raise LowgearError(f"seed {seed} is outside 0 to {MAX_SEED}; choose one within")
        self._seeds, self._doing = [int(seed) for seed in seeds], "on reset"
        with blamed_on(self.spec.name, self._doing):
            observation = self._begin(self._seeds)
        self._steps = 0
        if all_finite(observation):
            return observation
        for number in np.flatnonzero(~np.isfinite(observation).all(axis=1)).tolist():
            self._tell(number, self._not_finite(number, observation[[number]], None, None))
        return _zeroed(observation)

    def step(self, actions: FloatArray) -> Step:
        """Step all environments; where none ended, `last_observation` may be the same array as `observation`."""
        name, shape = self.spec.name, (self.num_envs, self.spec.act_dim)
        if self._steps is None:
            raise LowgearError(f"{name} was stepped before it was reset; call reset(seeds) first")
        if actions.shape != shape:  # NumPy would silently broadcast some to the wrong environments
            raise LowgearError(
                f"actions of shape {actions.shape} for {self.num_envs} environments of {name}; give {shape}"
            )
        self._steps += 1
        self._doing = f"at step {self._steps}"
        with blamed_on(name, self._doing):
            step = self._advance(self._bounds.scale(actions))
        arrays = [step.last_observation, step.reward]
        if step.observation is not step.last_observation:
            arrays.append(step.observation)
        return step if all(map(all_finite, arrays)) else self._without_bad(step, actions)

    def step_bare(self, actions: FloatArray) -> None:
        """A step, for measurements."""
        self.step(actions)

    def split(self, sizes: Sequence[int]) -> "Sequence[CheckedEnv]":  # noqa: ARG002
        """Itself: what a person made here need not be there in another process."""
        return [self]

    @abstractmethod
    def close(self) -> None:
        """Free what the environments hold."""

    @abstractmethod
    def _begin(self, seeds: list[int]) -> FloatArray:
        """Reset all; the first observations."""

    @abstractmethod
    def _advance(self, actions: FloatArray) -> Step:
        """Take a step; actions are in the environment's own units."""

    def _ask(self, number: int, function: Callable[..., Answer], *arguments: object) -> Answer | None:
        """What one environment's function returns; None once it is retired, as it is where it raises or hangs."""
        if number in self.retired:
            return None
        try:
            return watchdog.call(self.limit_s, self._describes[number], function, *arguments)
        except LowgearError as error:
            self._tell(number, error)
        except watchdog.HangError as error:
            self._tell(number, LowgearError(str(error)))
        except Exception as error:
            line = lines.of_traceback(error.__traceback__, self._own_file)
            said = f"{self.spec.name} raised {type(error).__name__} {self._doing}: {one_line(error) or 'no message'}"
            self._tell(number, LowgearError(f"{said} ({self._which(number)}, {line})"), error)
        self.retired.add(number)
        return None

    @cached_property
    def _describes(self) -> list[watchdog.Describe]:
        return [partial(self._hangs, number) for number in range(self.num_envs)]

    def _hangs(self, number: int | None, frame: FrameType | None) -> str:
        """What is said of an environment, or of all, that did not return from where the thread is."""
        which = f"{self.num_envs} environments" if number is None else self._which(number)
        return (
            f"{self.spec.name} did not return for {self.limit_s:g} s {self._doing} "
            f"({which}, {lines.of_frame(frame, self._own_file)}): mend it, or give it more time with --env-timeout"
        )

    def _which(self, number: int) -> str:
        return f"environment {self.first + number}, seed {self._seeds[number]}"

    def _tell(self, number: int, error: LowgearError, cause: Exception | None = None) -> None:
        """Of an environment that failed: whoever hears of it, or else as an error."""
        if self.on_bad is None:
            raise error from cause
        self.on_bad(number, str(error))

    def _without_bad(self, step: Step, actions: FloatArray) -> Step:
        """The step with 0 for what is not finite, if somebody hears of it."""
        for number, reward in enumerate(step.reward):
            here = slice(number, number + 1)
            for observation in (step.last_observation[here], step.observation[here]):
                if not (all_finite(observation) and np.isfinite(reward)):
                    self._tell(number, self._not_finite(number, observation, step.reward[here], actions[here]))
                    break
        observation, reward, last = map(_zeroed, (step.observation, step.reward, step.last_observation))
        return step._replace(observation=observation, reward=reward, last_observation=last)

    def _not_finite(
        self, number: int, observation: FloatArray, reward: FloatArray | None, actions: FloatArray | None
    ) -> LowgearError:
        """The error that says which number was not finite; actions first, because what goes in comes out."""
        at = f"at step {self._steps} ({self._which(number)})"
        if actions is not None and not all_finite(actions):
            given = f"{self.spec.name} was given {_first_bad(actions)} as an action {at}"
            return LowgearError(f"{given}: the policy diverged; lower its learning rate")
        if reward is not None and not all_finite(reward):
            what, value = "reward", _first_bad(reward)
        else:
            column = int(np.flatnonzero(~np.isfinite(observation).all(axis=0))[0])
            what, value = self._field_at(column), _first_bad(observation)
        return LowgearError(f"{self.spec.name} returned {value} in its {what} {at}: fix the environment")

    def _field_at(self, column: int) -> str:
        names = [(key, index) for key, size in self.spec.layout for index in range(size)]
        key, index = names[column]
        return f"observation {key!r}[{index}]" if key else f"observation[{index}]"


def check_num_envs(num_envs: int) -> int:
    """The number of environments, if there is at least one."""
    if num_envs < 1:
        raise LowgearError(f"{num_envs} environments cannot be stepped; ask for 1 or more")
    return num_envs


def all_finite(array: FloatArray) -> bool:
    """Whether no number is NaN or infinite; written for speed, because it runs at every step."""
    return bool(np.count_nonzero(np.isfinite(array)) == array.size)


@contextmanager
def blamed_on(name: str, doing: str, remedy: str = "") -> Iterator[None]:
    """Whatever an environment raises, as our error with its message on one line; an error of ours stays as it is."""
    try:
        yield
    except LowgearError:
        raise
    except watchdog.HangError as error:
        raise LowgearError(str(error)) from None
    except Exception as error:
        said = one_line(error) or "no message"
        raise LowgearError(f"{name} raised {type(error).__name__} {doing}: {said}{remedy}") from error


def _zeroed(array: FloatArray) -> FloatArray:
    """With 0 for what is not finite."""
    return np.nan_to_num(array, nan=0, posinf=0, neginf=0)


def _first_bad(array: FloatArray) -> str:
    return str(array[~np.isfinite(array)][0])
