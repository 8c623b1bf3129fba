"""`--format onnx`: a model for each gear, the master and the whole controller, checked with ONNX Runtime."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowgear import LowgearError
from lowgear.evaluation.record import Episode
from lowgear.export.check import ExportedController, ExportedStep, action_error
from lowgear.export.request import ExportFiles, ExportRequest
from lowgear.policy.arrays import FloatArray
from lowgear.policy.controller import Controller
from lowgear.policy.file import Policy

CHECKED_STEPS = 100  # of each gear's own model


def export_onnx(request: ExportRequest) -> ExportFiles:
    """The models, checked."""
    from lowgear.export.onnx_model import IR_VERSION, OPSET, onnx_files

    source = request.source
    files, episodes = onnx_files(source.policy), source.episodes(request.episodes)
    report = {
        "opset": OPSET,
        "ir_version": IR_VERSION,
        "checked": source.check(onnx_controller(source.policy, files), episodes, "the ONNX controller"),
        "gears_alone_error": _gears_alone_error(source.policy, files, episodes),
    }
    return ExportFiles(files, report)


def session(model: bytes) -> Any:
    """An ONNX Runtime session with one thread: a controller's products are too small for more."""
    try:
        import onnxruntime
    except ImportError:
        raise LowgearError("ONNX needs an extra: pip install 'lowgear[export]'") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def onnx_controller(policy: Policy, files: dict[str, bytes]) -> ExportedController:
    """Runs the whole-controller model, or the one gear of a policy that never shifts."""
    return (
        OnnxController(policy, files)
        if policy.header.forced_gear is None
        else OnnxGear(policy.header.forced_gear, files)
    )


class OnnxController:
    """controller.onnx, from any state."""

    def __init__(self, policy: Policy, files: dict[str, bytes]) -> None:
        self._session, dial = session(files["controller.onnx"]), policy.header.dial
        position = None if dial is None else dial.position(policy.header.cost_coefficient)
        self._dial = {} if position is None else {"position": np.array([position], np.float32)}

    def step_from(self, choice: int, left: int, observation: FloatArray) -> ExportedStep:
        """One step from a state."""
        inputs = {"observation": observation[None], "choice": np.array([choice]), "left": np.array([left])}
        action, gear, chosen, _ = self._session.run(None, inputs | self._dial)
        return ExportedStep(int(chosen[0]), int(gear[0]), action[0])


class OnnxGear:
    """gearG.onnx alone."""

    def __init__(self, gear: int, files: dict[str, bytes]) -> None:
        self._session, self._gear = session(files[f"gear{gear}.onnx"]), gear

    def step_from(self, choice: int, left: int, observation: FloatArray) -> ExportedStep:
        """One step; it has no state."""
        del choice, left
        (action,) = self._session.run(None, {"observation": observation[None]})
        return ExportedStep(self._gear, self._gear, action[0])


def _gears_alone_error(policy: Policy, files: dict[str, bytes], episodes: Sequence[Episode]) -> float:
    """Largest error of the gears' own models, in halves of the range."""
    network, largest = Controller.from_policies([policy]), 0.0
    observation = np.concatenate([episode.observation[:CHECKED_STEPS] for episode in episodes])
    for gear in range(network.gears):
        if f"gear{gear}.onnx" in files:
            alone = OnnxGear(gear, files)
            actions = np.array([alone.step_from(0, 0, row).action for row in observation])
            expected = policy.bounds.scale(network.act_with(gear, observation[None]))[0]
            largest = max(largest, action_error(policy, actions, expected))
    return largest
