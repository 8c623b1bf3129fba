"""Where an episode is played for the page: a simulator that can render, with the observations that the policy knows.

EnvPool, which trains, can't render. Its tasks have the same physics and observations in dm_control and Gymnasium
(docs/environments.md), so the episode is played there. Where that is not possible it is played where the policy was
trained, without frames, and `Simulator.render_error` says why.
"""

import os
import re
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lowgear import LowgearError, envs
from lowgear.config.tasks import SOURCES, Task, find, imported_module
from lowgear.envs.modules import import_module
from lowgear.envs.own import drawable
from lowgear.envs.protocol import BatchEnv
from lowgear.policy.file import PolicyHeader

Frame = npt.NDArray[np.uint8]  # (height, width, 3)
WIDTH, HEIGHT = 640, 360  # pixels of MuJoCo's frames: a wide view keeps a cart that drives to its end in the picture
PLAIN = ("shadow", "reflection")  # left out: without a GPU they take more time than all the rest
PACKAGES = "Debian's libegl1 and libgl1-mesa-dri draw without a GPU, the extras 'dmc' and 'gym' bring the simulators"
# Version 3 of these Gymnasium environments has no simulator today; version 4 has its physics and observations.
OLD_MUJOCO = re.compile(r"(HalfCheetah|Swimmer|Ant|Walker2d|Hopper|Humanoid|Reacher|Pusher)-v[23]")
FETCH = re.compile(r"(Fetch|Hand)\w+-v\d")


@dataclass(frozen=True)
class Simulator:
    """One environment to play in, and how to render it."""

    env: BatchEnv
    name: str  # of the environment, as a person would call it
    render: Callable[[], Frame] | None  # the state as it stands; None where it can't be rendered
    render_error: str | None = None
    close_renderer: Callable[[], None] = lambda: None
    step_s: float | None = None  # how long a step is; None where the simulation does not tell

    def close(self) -> None:
        """Free the simulation and its renderer."""
        self.close_renderer()
        self.env.close()


def open_simulator(header: PolicyHeader, end_on_success: bool, frames: bool = True) -> Simulator:
    """For the policy: one that renders if frames are wanted and possible, else where the policy was trained."""
    task = find(header.task)
    why = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # simulators complain of their own age; that is not the reader's concern
        if frames:
            try:
                return _rendering(task, header, end_on_success)
            except Exception as error:  # whatever a simulator or a driver raises, the rest of the report goes on
                why = _reason(error)
        env = envs.make(task, 1, end_on_success=end_on_success)
    return Simulator(env, f"{task.env_id} of {SOURCES[task.source]}", None, why)


def _rendering(task: Task, header: PolicyHeader, end_on_success: bool) -> Simulator:
    """One that renders what the policy was trained on, or an error."""
    simulator = _renderer(task, header, end_on_success)
    try:
        _check(simulator, header)
    except BaseException:
        simulator.close()
        raise
    return simulator


def _renderer(task: Task, header: PolicyHeader, end_on_success: bool) -> Simulator:
    draw_without_screen()
    if task.source == "dmc" or (task.published is not None and task.env_id != task.name):
        return _dm_control(task.name.removeprefix("dmc:"))
    if FETCH.fullmatch(task.env_id):
        raise LowgearError(
            f"{task.env_id} can be drawn only by gymnasium-robotics with MuJoCo before 3.12, which dm_control rejects"
        )
    if task.source == "python":
        return _drawn(drawable(task.name), task.env_id, end_on_success)
    return _gymnasium(task, header, end_on_success)


def _dm_control(name: str) -> Simulator:
    from lowgear.envs.dmc import DmcEnv

    env = DmcEnv(f"dmc:{name}", name, 1)

    def render() -> Frame:
        plain = dict.fromkeys(PLAIN, False)
        frame: Frame = env._envs[0].physics.render(HEIGHT, WIDTH, camera_id=0, render_flag_overrides=plain)
        return frame

    return Simulator(env, f"{name} of dm_control", render, step_s=env.step_s)


def _gymnasium(task: Task, header: PolicyHeader, end_on_success: bool) -> Simulator:
    import gymnasium

    env_id, module = task.env_id, imported_module(task.name)
    if module is not None:
        import_module(task.name, module)
    known = OLD_MUJOCO.fullmatch(env_id)
    rendered = f"{known[1]}-v4" if known else env_id
    one: gymnasium.Env[Any, Any] = gymnasium.make(rendered, render_mode="rgb_array", disable_env_checker=True)
    missing = header.obs_dim - int(np.prod(one.observation_space.shape or (0,)))
    if known and known[1] == "Ant" and missing > 0:
        one = _padded(one, missing)
    return _drawn(one, f"{rendered} of Gymnasium", end_on_success)


def _drawn(one: Any, name: str, end_on_success: bool) -> Simulator:
    """A Gymnasium environment that was made to be rendered."""
    env = envs.wrap(one, end_on_success=end_on_success)
    if hasattr(one.unwrapped, "model") and hasattr(one.unwrapped, "data"):
        render, close = _mujoco(one.unwrapped)
        return Simulator(env, name, render, close_renderer=close, step_s=_step_s(one))
    return Simulator(env, name, lambda: np.asarray(one.render(), np.uint8), step_s=_step_s(one))


def _step_s(one: Any) -> float | None:
    """Of a Gymnasium environment: MuJoCo's tell it, others name the rate that they are drawn at."""
    rate = one.metadata.get("render_fps")
    dt = getattr(one.unwrapped, "dt", None)
    found = dt if isinstance(dt, float) else 1 / rate if isinstance(rate, int | float) and rate > 0 else None
    return found if found is not None and 1e-4 < found < 10 else None


def _mujoco(robot: Any) -> tuple[Callable[[], Frame], Callable[[], None]]:
    """MuJoCo's own renderer: Gymnasium's leaves the second environment of a process black, and runners out of sight."""
    import mujoco
    from mujoco import gl_context

    if _headless() and gl_context.GLContext.__module__ == "mujoco.glfw":  # would end the process
        raise LowgearError("MuJoCo was loaded for a screen and there is none: set MUJOCO_GL=egl before it is imported")
    renderer = mujoco.Renderer(robot.model, HEIGHT, WIDTH)
    followed = mujoco.mj_name2id(robot.model, mujoco.mjtObj.mjOBJ_CAMERA, "track")

    def render() -> Frame:
        renderer.update_scene(robot.data, camera=followed)
        for flag in PLAIN:
            renderer.scene.flags[getattr(mujoco.mjtRndFlag, f"mjRND_{flag.upper()}")] = 0
        frame: Frame = renderer.render()
        return frame

    return render, renderer.close


def draw_without_screen() -> None:
    """Where there is none, let MuJoCo and the classic controls draw all the same; before they are imported."""
    if _headless():
        os.environ.setdefault("MUJOCO_GL", "egl")
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")


def _headless() -> bool:
    return sys.platform == "linux" and not os.environ.get("DISPLAY")


def _padded(one: Any, missing: int) -> Any:
    """Ant-v3's observation ends with contact forces, which its MuJoCo left at 0: so does EnvPool's."""
    import gymnasium

    size = one.observation_space.shape[0] + missing
    space = gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float64)
    return gymnasium.wrappers.TransformObservation(one, lambda seen: np.pad(seen, (0, missing)), space)


def _check(simulator: Simulator, header: PolicyHeader) -> None:
    """Refuse a simulator whose observations are not what the policy was trained on; render once to find the rest."""
    spec = simulator.env.spec
    if (spec.layout, spec.act_dim) != (header.layout, header.act_dim):
        raise LowgearError(f"{simulator.name} has other observations than {header.task}")
    simulator.env.reset([0])
    assert simulator.render is not None
    frame = simulator.render()
    if frame.ndim != 3 or frame.shape[-1] != 3 or not frame.any():
        raise LowgearError(f"{simulator.name} draws nothing that is a picture")


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    if isinstance(error, LowgearError) and "GL" not in text:
        return text
    return f"drawing failed ({type(error).__name__}: {text}); {PACKAGES}"
