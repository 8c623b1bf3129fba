"""`--format onnx`: a model for each gear, the master and the whole controller, checked with ONNX Runtime."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowgear import LowgearError
from lowgear.evaluation.record import Episode
from lowgear.export.check import ExportedStep, StateBefore, action_error
from lowgear.export.layers import holds
from lowgear.export.source import ExportFiles, ExportRequest
from lowgear.policy.arrays import FloatArray
from lowgear.policy.controller import Controller
from lowgear.policy.file import Policy

CHECKED_STEPS = 100  # of each gear's own model
START = -1  # the choice that begins an episode, where a gear holds the last action


def export_onnx(request: ExportRequest) -> ExportFiles:
    """The models, checked."""
    from lowgear.export.onnx_model import IR_VERSION, OPSET, onnx_files

    source = request.source
    files, episodes = onnx_files(source.policy), source.episodes(request.episodes)
    report = {
        "opset": OPSET,
        "ir_version": IR_VERSION,
        "checked": source.check(OnnxController(source.policy, files), episodes, "the ONNX controller"),
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


class OnnxController:
    """controller.onnx, from any state; of a policy that never shifts, the model of its one gear."""

    def __init__(self, policy: Policy, files: dict[str, bytes]) -> None:
        header = policy.header
        self._forced, self._holds = header.forced_gear, holds(header)
        self._session = session(files["controller.onnx" if self._forced is None else f"gear{self._forced}.onnx"])
        position = None if header.dial is None else header.dial.position(header.cost_coefficient)
        self._dial = {} if position is None else {"position": np.array([position], np.float32)}

    def step_from(self, state: StateBefore, observation: FloatArray) -> ExportedStep:
        """One step from a state."""
        if self._forced is not None:
            return ExportedStep(self._forced, self._forced, act_alone(self._session, observation))
        choice = START if self._holds and state.fresh else state.choice
        inputs = {"observation": observation[None], "choice": np.array([choice]), "left": np.array([state.left])}
        if self._holds:
            inputs["last_action"] = state.last_action[None]
        action, gear, chosen, _, *last_action = self._session.run(None, inputs | self._dial)
        return ExportedStep(int(chosen[0]), int(gear[0]), action[0], last_action[0][0] if last_action else None)


def act_alone(gear: Any, observation: FloatArray) -> FloatArray:
    """What a gear's own model does."""
    action: FloatArray = gear.run(None, {"observation": observation[None]})[0][0]
    return action


def _gears_alone_error(policy: Policy, files: dict[str, bytes], episodes: Sequence[Episode]) -> float:
    """Largest error of the gears' own models, in halves of the range."""
    network, largest = Controller.from_policies([policy]), 0.0
    observation = np.concatenate([episode.observation[:CHECKED_STEPS] for episode in episodes])
    for gear in range(network.gear_count):
        if f"gear{gear}.onnx" in files:
            alone = session(files[f"gear{gear}.onnx"])
            actions = np.array([act_alone(alone, row) for row in observation])
            expected = policy.bounds.scale(network.act_with(gear, observation[None]))[0]
            largest = max(largest, action_error(policy, actions, expected))
    return largest
