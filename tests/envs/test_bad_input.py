"""Every way to hand over an environment that cannot be used: one line that names it, and what to do."""

import builtins
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from lowgear import LowgearError, envs
from lowgear.config.tasks import find

# Box2D's SWIG types warn while they load; an error in the middle of that ends the interpreter.
pytestmark = pytest.mark.filterwarnings("ignore:builtin type:DeprecationWarning")


class Probe(gymnasium.Env):
    """Spaces as given; from `bad_step` on it returns `bad` where `where` says, or raises."""

    def __init__(
        self,
        observation_space: Any = None,
        action_space: Any = None,
        where: str = "",
        bad: float = np.nan,
        bad_step: int = 2,
    ) -> None:
        self.observation_space = observation_space or spaces.Dict(
            arm=spaces.Box(-1, 1, (2,)), leg=spaces.Box(-1, 1, (3,))
        )
        self.action_space = action_space or spaces.Box(-1, 1, (1,))
        self.where, self.bad, self.bad_step = where, bad, bad_step
        self.taken = 0

    def observe(self) -> dict[str, Any]:
        leg = np.zeros(3, np.float32)
        if self.where == "leg" and self.taken >= self.bad_step:
            leg[1] = self.bad
        return {"arm": np.zeros(2, np.float32), "leg": leg}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self.taken = 0
        if self.where == "reset":
            raise RuntimeError("motor\nis unplugged")
        return self.observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        del action
        self.taken += 1
        broken = self.taken >= self.bad_step
        if self.where == "step" and broken:
            raise RuntimeError("motor\nis unplugged")
        return self.observe(), self.bad if self.where == "reward" and broken else 0.0, False, False, {}


def box(low: list[float], high: list[float]) -> spaces.Box:
    """Bounds that Gymnasium itself may refuse: a space is changed after it was made, as some packages do."""
    space = spaces.Box(-1, 1, (len(low),))
    space.low, space.high = np.array(low, np.float32), np.array(high, np.float32)
    return space


def error_of(make: Any) -> str:
    with pytest.raises(LowgearError) as caught:
        make()
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("gym:CartPole-v1", ["gym:CartPole-v1", "Discrete(2)", "needs a Box"]),
        ("envpool:CartPole-v1", ["envpool:CartPole-v1", "Discrete(2)", "needs a Box"]),
        ("envpool:Pong-v5", ["Discrete(6)"]),
        ("dmc:lqr-lqr_2_1", ["unbounded", "finite bounds"]),
        ("envpool:LqrLqr21-v1", ["unbounded", "finite bounds"]),
        ("envpool:CarRacing-v3", ["image", "(96, 96, 3)"]),
        ("gym:CarRacing-v3", ["image", "(96, 96, 3)"]),
        ("gym:Nope-v1", ["'Nope-v1'", "spelling"]),
        ("gym:nowhere:Nope-v1", ["nowhere", "lowgear[gym]"]),
        ("envpool:HalfCheeta-v4", ["did you mean HalfCheetah-v4"]),
        ("envpool:qqqq", ["'qqqq'", "envpool.list_all_envs()"]),
        ("dmc:walkr-stand", ["did you mean walker-stand"]),
    ],
)
def test_unusable_names(name: str, parts: list[str]) -> None:
    message = error_of(lambda: envs.make(find(name), 1))
    for part in parts:
        assert part in message


@pytest.mark.parametrize(
    ("env", "parts"),
    [
        (Probe(action_space=spaces.MultiDiscrete([2, 3])), ["Probe", "MultiDiscrete"]),
        (Probe(action_space=spaces.Box(-np.inf, np.inf, (2,))), ["Probe", "unbounded", "[-inf, inf]"]),
        (Probe(action_space=box([-1, np.nan], [1, 1])), ["unbounded", "action 1 is in [nan, 1]", "finite bounds"]),
        (Probe(action_space=box([-1, -1], [np.inf, 1])), ["unbounded", "action 0 is in [-1, inf]", "in a wrapper"]),
        (Probe(action_space=box([-1, 2, 0], [1, 2, 1])), ["action 1 no choice", "[2, 2]", "a low below its high"]),
        (Probe(action_space=box([-1, 3], [1, 2])), ["action 1 no choice", "[3, 2]"]),
        (Probe(action_space=spaces.Box(-1, 1, (2, 2))), ["(2, 2)", "flatten"]),
        (Probe(action_space=spaces.Box(0, 5, (2,), np.int32)), ["int32"]),
        (Probe(observation_space=spaces.Box(0, 255, (64, 64, 3), np.uint8)), ["image", "(64, 64, 3)"]),
        (
            Probe(observation_space=spaces.Dict(eye=spaces.Box(0, 255, (64, 64), np.uint8))),
            ["'eye'", "image"],
        ),
        (Probe(observation_space=spaces.Discrete(7)), ["Discrete(7)", "FlattenObservation"]),
        (Probe(observation_space=spaces.Box(-1, 1, (0,))), ["empty observation"]),
    ],
)
def test_unusable_spaces(env: gymnasium.Env, parts: list[str]) -> None:
    message = error_of(lambda: envs.wrap(env))
    for part in parts:
        assert part in message


@pytest.mark.parametrize("thing", ["Pendulum-v1", 3, None])
def test_things_that_are_no_environment(thing: Any) -> None:
    assert "pass a gymnasium.Env" in error_of(lambda: envs.wrap(thing))


def test_factories_that_fail() -> None:
    def broken() -> gymnasium.Env:
        raise FileNotFoundError("no robot.xml")

    assert "FileNotFoundError when called: no robot.xml" in error_of(lambda: envs.wrap(broken, num_envs=2))
    assert "made a dict" in error_of(lambda: envs.wrap(dict))
    assert "0 environments" in error_of(lambda: envs.wrap(Probe, num_envs=0))
    assert "0 environments" in error_of(lambda: envs.make(find("walker-stand"), 0))


@pytest.mark.parametrize(
    ("where", "bad", "expected"),
    [
        ("leg", np.nan, "Probe returned nan in its observation 'leg'[1] at step 2"),
        ("leg", np.inf, "Probe returned inf in its observation 'leg'[1] at step 2"),
        ("reward", np.nan, "Probe returned nan in its reward at step 2"),
        ("reward", -np.inf, "Probe returned -inf in its reward at step 2"),
        ("step", 0, "Probe raised RuntimeError at step 2: motor is unplugged"),
    ],
)
def test_an_environment_that_breaks_mid_episode(where: str, bad: float, expected: str) -> None:
    env = envs.wrap(Probe(where=where, bad=bad))
    env.reset([0])
    env.step(np.zeros((1, 1), np.float32))
    assert expected in error_of(lambda: env.step(np.zeros((1, 1), np.float32)))


def test_an_environment_that_breaks_on_reset() -> None:
    assert "RuntimeError on reset: motor is unplugged" in error_of(lambda: envs.wrap(Probe(where="reset")).reset([0]))
    broken = envs.wrap(Probe(where="leg", bad_step=0))
    assert "observation 'leg'[1] at step 0" in error_of(lambda: broken.reset([0]))


@pytest.mark.parametrize("name", ["Swimmer-v3", "gym:Pendulum-v1", "dmc:cartpole-swingup"])
def test_wrong_calls_of_the_protocol(name: str) -> None:
    env = envs.make(find(name), 2)
    assert "1 seeds for 2 environments" in error_of(lambda: env.reset([1]))
    assert "seed -1 is outside" in error_of(lambda: env.reset([1, -1]))
    assert f"seed {2**31}" in error_of(lambda: env.reset([1, 2**31]))
    env.reset([1, 2])
    width = env.spec.act_dim
    assert f"give (2, {width})" in error_of(lambda: env.step(np.zeros((1, width), np.float32)))
    assert f"give (2, {width})" in error_of(lambda: env.step(np.zeros(2 * width, np.float32)))
    env.close()


@pytest.mark.parametrize("name", ["Swimmer-v3", "dmc:cartpole-swingup"])
def test_step_before_reset(name: str) -> None:
    env = envs.make(find(name), 1)
    assert "call reset(seeds) first" in error_of(lambda: env.step(np.zeros((1, env.spec.act_dim), np.float32)))


def test_a_policy_that_diverged_is_not_blamed_on_the_environment() -> None:
    env = envs.make(find("MountainCarContinuous-v0"), 2)
    env.reset([0, 1])
    message = error_of(lambda: env.step(np.array([[0], [np.nan]], np.float32)))
    assert "was given nan as an action at step 1" in message


@pytest.mark.parametrize(
    ("package", "adapter", "name", "remedy"),
    [
        ("dm_control", "lowgear.envs.dmc", "dmc:walker-walk", "pip install 'lowgear[dmc]'"),
        ("envpool", "lowgear.envs.pool", "walker-stand", "pip install envpool==1.2.5"),
    ],
)
def test_missing_packages(monkeypatch: pytest.MonkeyPatch, package: str, adapter: str, name: str, remedy: str) -> None:
    real_import = builtins.__import__

    def without(module: str, *args: Any, **kwargs: Any) -> Any:
        if module.split(".")[0] == package:
            raise ImportError(f"No module named {package!r}")
        return real_import(module, *args, **kwargs)

    monkeypatch.delitem(sys.modules, adapter, raising=False)
    monkeypatch.setattr(builtins, "__import__", without)
    assert remedy in error_of(lambda: envs.make(find(name), 1))


def test_published_task_with_other_sizes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from lowgear.envs import pool

    monkeypatch.setattr(pool, "DM_CONTROL_KEYS", {})
    message = error_of(lambda: envs.make(find("finger-spin"), 1))
    assert "finger-spin has 12 observations" in message
    assert "9" in message
