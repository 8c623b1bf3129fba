"""`--format onnx`: a model for each gear, the master and the whole controller, checked with ONNX Runtime."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowgear import LowgearError
from lowgear.export.check import Stepped, compare, demand
from lowgear.export.episode import Episode, bounds, position
from lowgear.export.form import Exported, Request
from lowgear.export.layers import arrange
from lowgear.policy.controller import FloatArray, act
from lowgear.policy.file import Policy

CHECKED_STEPS = 100  # of each gear's own model


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


def models(policy: Policy) -> dict[str, bytes]:
    """gearG.onnx, and for a policy whose master picks master.onnx and controller.onnx."""
    from lowgear.export import onnx_model

    gears, master = arrange(policy, "float32")
    header, forced = policy.header, policy.header.forced_gear
    used = [forced] if forced is not None else range(len(gears))
    made = {f"gear{gear}.onnx": onnx_model.gear_model(gear, gears[gear], header) for gear in used}
    if master is not None:
        made["master.onnx"] = onnx_model.master_model(master, policy)
        made["controller.onnx"] = onnx_model.controller_model(gears, master, policy)
    return {name: model.SerializeToString() for name, model in made.items()}


def export_onnx(request: Request) -> Exported:
    """The models, checked."""
    from lowgear.export.onnx_model import IR_VERSION, OPSET

    policy = request.source.policy
    files = models(policy)
    episodes = request.source.episodes(request.episodes)
    worst = _gears_alone(policy, files, episodes)
    checked = demand(compare(policy, controller(policy, files), episodes), "the ONNX controller")
    report = {"opset": OPSET, "ir_version": IR_VERSION, "checked": checked.to_json(), "gears_alone_error": worst}
    return Exported(files, report)


def controller(policy: Policy, files: dict[str, bytes]) -> "Controller | Forced":
    """Runs the whole-controller model, or the one gear of a policy that never shifts."""
    forced = policy.header.forced_gear
    return Controller(policy, files["controller.onnx"]) if forced is None else Forced(files, forced)


class Controller:
    """controller.onnx, from any state."""

    def __init__(self, policy: Policy, model: bytes) -> None:
        self._session = session(model)
        dial = policy.header.dial is not None
        self._dial = {"position": np.array([position(policy.header)], np.float32)} if dial else {}

    def step(self, choice: int, left: int, observation: FloatArray) -> Stepped:
        """One step."""
        inputs = {"observation": observation[None], "choice": np.array([choice]), "left": np.array([left])}
        action, gear, chosen, _ = self._session.run(None, inputs | self._dial)
        return Stepped(int(chosen[0]), int(gear[0]), action[0])


class Forced:
    """gearG.onnx of a policy that never shifts."""

    def __init__(self, files: dict[str, bytes], gear: int) -> None:
        self._session, self._gear = session(files[f"gear{gear}.onnx"]), gear

    def step(self, choice: int, left: int, observation: FloatArray) -> Stepped:
        """One step; it has no state."""
        del choice, left
        (action,) = self._session.run(None, {"observation": observation[None]})
        return Stepped(self._gear, self._gear, action[0])


def _gears_alone(policy: Policy, files: dict[str, bytes], episodes: Sequence[Episode]) -> float:
    """Largest error of the gears' own models, in halves of the range."""
    observation = np.concatenate([episode.observation[:CHECKED_STEPS] for episode in episodes])
    half = np.maximum((bounds(policy).high - bounds(policy).low) / 2, 1e-30)
    worst = 0.0
    for gear in range(len(policy.header.gears)):
        if f"gear{gear}.onnx" not in files:
            continue
        runs = session(files[f"gear{gear}.onnx"])
        found = np.array([runs.run(None, {"observation": row[None]})[0][0] for row in observation])
        number = np.full((1, len(observation)), gear, np.int32)
        expected = bounds(policy).scale(act(policy.weights.gears, observation[None], number, policy.header.activation))
        worst = max(worst, float((np.abs(found - expected[0]) / half).max()))
    return worst
