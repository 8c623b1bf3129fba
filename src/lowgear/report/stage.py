"""Where an episode is played for pictures: a simulator that can draw, with the observations that the policy knows.

EnvPool, which trains, can't draw. Its tasks have the same physics and observations in dm_control and Gymnasium
(docs/environments.md), so the episode is played there. Where that is not possible it is played where the policy was
trained, without pictures, and `Stage.why_blind` says why.
"""

import contextlib
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lowgear import LowgearError, envs
from lowgear.config.tasks import SOURCES, Task, find
from lowgear.envs.protocol import BatchEnv
from lowgear.policy.file import PolicyHeader

Picture = npt.NDArray[np.uint8]
PIXELS = 256  # width and height of MuJoCo's pictures
PACKAGES = "Debian's libegl1 and libgl1-mesa-dri draw without a GPU, the extras 'dmc' and 'gym' bring the simulators"
# Version 3 of these Gymnasium environments has no simulator today; version 4 has its physics and observations.
OLD_MUJOCO = re.compile(r"(HalfCheetah|Swimmer|Ant|Walker2d|Hopper|Humanoid|Reacher|Pusher)-v[23]")
FETCH = re.compile(r"(Fetch|Hand)\w+-v\d")


@dataclass(frozen=True)
class Stage:
    """One environment to play in, and how to see it."""

    env: BatchEnv
    name: str  # of the environment, as a person would call it
    draw: Callable[[], Picture] | None  # the state as it stands; None where nothing can be drawn
    why_blind: str | None = None
    curtain: Callable[[], None] = lambda: None  # frees what draws

    def close(self) -> None:
        """Free the simulation and what draws it."""
        self.curtain()
        self.env.close()


def open_stage(header: PolicyHeader, end_on_success: bool, pictures: bool = True) -> Stage:
    """A stage for the policy: one with pictures if they are wanted and possible, else where it was trained."""
    task = find(header.task)
    why = None
    if pictures:
        try:
            with _quiet():
                stage = _seen(task, header, end_on_success)
                try:
                    _check(stage, header)
                except BaseException:
                    stage.close()
                    raise
                return stage
        except Exception as error:  # whatever a simulator or a driver raises, the rest of the report goes on
            why = _reason(error)
    with _quiet():
        env = envs.make(task, 1, end_on_success=end_on_success)
    return Stage(env, f"{task.env_id} of {SOURCES[task.source]}", None, why)


def _seen(task: Task, header: PolicyHeader, end_on_success: bool) -> Stage:
    if _headless():
        os.environ.setdefault("MUJOCO_GL", "egl")
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # of the classic controls' drawings
    if task.source == "dmc" or (task.published is not None and task.env_id != task.name):
        return _dm_control(task.name.removeprefix("dmc:"))
    if FETCH.fullmatch(task.env_id):
        raise LowgearError(
            f"{task.env_id} can be drawn only by gymnasium-robotics with MuJoCo before 3.12, which dm_control rejects"
        )
    return _gymnasium(task.env_id, header, end_on_success)


def _dm_control(name: str) -> Stage:
    from lowgear.envs.dmc import DmcEnv

    env = DmcEnv(f"dmc:{name}", name, 1)

    def draw() -> Picture:
        picture: Picture = env._envs[0].physics.render(PIXELS, PIXELS, camera_id=0)
        return picture

    return Stage(env, f"{name} of dm_control", draw)


def _gymnasium(env_id: str, header: PolicyHeader, end_on_success: bool) -> Stage:
    import gymnasium

    known = OLD_MUJOCO.fullmatch(env_id)
    drawn = f"{known[1]}-v4" if known else env_id
    one: gymnasium.Env[Any, Any] = gymnasium.make(drawn, render_mode="rgb_array", disable_env_checker=True)
    missing = header.obs_dim - int(np.prod(one.observation_space.shape or (0,)))
    if known and known[1] == "Ant" and missing > 0:
        one = _padded(one, missing)

    env, name = envs.wrap(one, end_on_success=end_on_success), f"{drawn} of Gymnasium"
    if hasattr(one.unwrapped, "model") and hasattr(one.unwrapped, "data"):
        draw, curtain = _mujoco(one.unwrapped)
        return Stage(env, name, draw, curtain=curtain)
    return Stage(env, name, lambda: np.asarray(one.render(), np.uint8))


def _mujoco(robot: Any) -> tuple[Callable[[], Picture], Callable[[], None]]:
    """MuJoCo's own renderer: Gymnasium's leaves the second environment of a process black, and runners out of sight."""
    import mujoco
    from mujoco import gl_context

    if _headless() and gl_context.GLContext.__module__ == "mujoco.glfw":  # would end the process
        raise LowgearError("MuJoCo was loaded for a screen and there is none: set MUJOCO_GL=egl before it is imported")
    renderer = mujoco.Renderer(robot.model, PIXELS, PIXELS)
    followed = mujoco.mj_name2id(robot.model, mujoco.mjtObj.mjOBJ_CAMERA, "track")

    def draw() -> Picture:
        renderer.update_scene(robot.data, camera=followed)
        picture: Picture = renderer.render()
        return picture

    return draw, renderer.close


def _headless() -> bool:
    return sys.platform == "linux" and not os.environ.get("DISPLAY")


def _padded(one: Any, missing: int) -> Any:
    """Ant-v3's observation ends with contact forces, which its MuJoCo left at 0: so does EnvPool's."""
    import gymnasium

    size = one.observation_space.shape[0] + missing
    space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float64)
    return gymnasium.wrappers.TransformObservation(one, lambda seen: np.pad(seen, (0, missing)), space)


def _check(stage: Stage, header: PolicyHeader) -> None:
    """Refuse a simulator whose observations are not what the policy was trained on; draw once, which finds the rest."""
    spec = stage.env.spec
    if (spec.layout, spec.act_dim) != (header.layout, header.act_dim):
        raise LowgearError(f"{stage.name} has other observations than {header.task}")
    stage.env.reset([0])
    assert stage.draw is not None
    picture = stage.draw()
    if picture.ndim != 3 or picture.shape[-1] != 3 or not picture.any():
        raise LowgearError(f"{stage.name} draws nothing that is a picture")


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    if isinstance(error, LowgearError) and "GL" not in text:
        return text
    return f"drawing failed ({type(error).__name__}: {text}); {PACKAGES}"


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Simulators complain of their own age; that is not the reader's concern."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
