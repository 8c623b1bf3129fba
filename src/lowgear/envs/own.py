"""What a person brings: an environment, a function that makes one, a vector of environments, or `module:name`.

A function that makes a gymnasium.vector.VectorEnv is called with `num_envs` if it takes that; otherwise as often as it
takes to have enough environments.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from lowgear import LowgearError
from lowgear.envs.checked import blamed_on, check_num_envs
from lowgear.envs.gym import batch, has_goals, name_of, time_limit, with_limit
from lowgear.envs.modules import attribute, import_module
from lowgear.envs.protocol import BatchEnv
from lowgear.envs.spaces import ANY_LIMIT
from lowgear.envs.vectors import AnyVectorEnv, SideBySide, Vector


def wrap(env: Any, num_envs: int, end_on_success: bool) -> BatchEnv:
    """What a person passed in, named after what it is."""
    if isinstance(env, VectorEnv):
        if num_envs not in (1, env.num_envs):
            raise LowgearError(f"a vector of {env.num_envs} environments cannot be {num_envs}; leave num_envs out")
        return _side_by_side(name_of(env), [env], env.num_envs, end_on_success, None)
    if isinstance(env, gymnasium.Env):
        if num_envs != 1:
            raise LowgearError(f"one environment cannot be {num_envs}; pass a function that makes a new one each time")
        return batch(name_of(env), [lambda: env], end_on_success)
    if not callable(env):
        raise LowgearError(
            f"{type(env).__name__} is no environment: pass a gymnasium.Env, a function that makes one, "
            "or a gymnasium.vector.VectorEnv"
        )
    return _from_factory(None, env, num_envs, end_on_success)


def from_module(name: str, num_envs: int, end_on_success: bool, max_episode_steps: int | None = None) -> BatchEnv:
    """`num_envs` environments of the class or function `module:name`; each is given a time limit if it has none."""
    return _from_factory(name, factory(name), num_envs, end_on_success, Limit(max_episode_steps))


def factory(name: str) -> Callable[..., Any]:
    """The class or function that `module:name` names."""
    module, _, inner = name.partition(":")
    found = attribute(name, import_module(name, module), inner)
    if not callable(found):
        raise LowgearError(
            f"{name} is a {type(found).__name__}: name a class or a function that makes a gymnasium.Env or a "
            "gymnasium.vector.VectorEnv"
        )
    made: Callable[..., Any] = found
    return made


def drawable(name: str) -> gymnasium.Env[Any, Any]:
    """One environment of `module:name` that renders pictures, where its class or function takes a `render_mode`."""
    make = factory(name)
    if not _takes(make, "render_mode"):
        raise LowgearError(f"{name} takes no render_mode, so that it cannot be drawn")
    with blamed_on(name, "when called"):
        made = make(render_mode="rgb_array")
    if not isinstance(made, gymnasium.Env):
        raise LowgearError(f"{name} made a {type(made).__name__}, which cannot be drawn")
    return with_limit(made, None)


def _from_factory(
    name: str | None,
    make: Callable[..., Any],
    num_envs: int,
    end_on_success: bool,
    limit: "Limit | None" = None,
) -> BatchEnv:
    check_num_envs(num_envs)
    counted = _takes(make, "num_envs")
    what = name or "the environment's factory"

    def one() -> Any:
        with blamed_on(what, "when called"):
            return make(num_envs=num_envs) if counted else make()

    first = one()
    name = name or (name_of(first) if isinstance(first, gymnasium.Env | VectorEnv) else None)
    if isinstance(first, VectorEnv):
        assert name is not None
        if counted and first.num_envs != num_envs:
            raise LowgearError(f"{name} made {first.num_envs} environments when it was asked for {num_envs}")
        check_num_envs(first.num_envs)
        vectors = [first, *(one() for _ in range((num_envs - 1) // first.num_envs))]
        return _side_by_side(name, vectors, num_envs, end_on_success, None if limit is None else limit.of_vector(first))
    if not isinstance(first, gymnasium.Env):
        raise LowgearError(
            f"{what} made a {type(first).__name__}; it must make a gymnasium.Env or a gymnasium.vector.VectorEnv"
        )
    assert name is not None
    made: list[Callable[[], Any]] = [lambda: first, *[one] * (num_envs - 1)]
    return batch(name, made if limit is None else [partial(limit.of, each) for each in made], end_on_success)


@dataclass(frozen=True)
class Limit:
    """A time limit for environments that were named: the one asked for, their own, or ANY_LIMIT."""

    steps: int | None

    def of(self, make: Callable[[], Any]) -> Any:
        """One environment with the limit."""
        return with_limit(make(), self.steps)

    def of_vector(self, vector: Vector) -> int | None:
        """The limit that a vector is to be given; None where it has its own."""
        return self.steps or (None if time_limit(vector) else ANY_LIMIT)


def _takes(make: Callable[..., Any], parameter: str) -> bool:
    try:
        return parameter in inspect.signature(make).parameters
    except (TypeError, ValueError):  # some built-ins have no signature
        return False


def _side_by_side(name: str, vectors: list[Vector], num_envs: int, end_on_success: bool, limit: int | None) -> BatchEnv:
    if end_on_success and has_goals(vectors[0].single_observation_space):
        raise LowgearError(f"{name}: a vector of environments ends its own episodes: pass a function that makes one")
    made = [AnyVectorEnv(name, vector, limit) for vector in vectors]
    return made[0] if len(made) == 1 and made[0].num_envs == num_envs else SideBySide(made, num_envs)
