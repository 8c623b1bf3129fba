"""ONNX graphs that are MLPs are read as they compute; others are refused by the operation that is in the way."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from lowgear import LowgearError
from lowgear.policy.foreign import read_foreign
from lowgear.policy.foreign.network import bounded
from tests.fixtures.foreign import HIGH, LOW, act, observations

RNG = np.random.default_rng(3)


def made(path: Path, nodes: list[Any], constants: dict[str, Any], outputs: int = 1) -> Path:
    """A model with observations (N, 3)."""
    graph = helper.make_graph(
        nodes,
        "policy",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", outputs])],
        [numpy_helper.from_array(np.asarray(value, np.float32), name) for name, value in constants.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def layer(fan_in: int, fan_out: int) -> tuple[np.ndarray, np.ndarray]:
    return RNG.normal(size=(fan_in, fan_out)), RNG.normal(size=fan_out)


def ran(path: Path) -> np.ndarray:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, {"x": observations()})[0])


def node(kind: str, inputs: str, output: str, **attributes: Any) -> Any:
    return helper.make_node(kind, inputs.split(), [output], **attributes)


def hidden(kind: str, source: str, output: str, **attributes: Any) -> list[Any]:
    """An activation; SiLU is two operations."""
    if kind != "Silu":
        return [node(kind, source, output, **attributes)]
    return [node("Sigmoid", source, f"{output}_s"), node("Mul", f"{source} {output}_s", output)]


@pytest.mark.parametrize("kind", ["Relu", "Tanh", "Elu", "LeakyRelu", "Silu"])
def test_normalised_scaled_and_squashed(tmp_path: Path, kind: str) -> None:
    (w0, b0), (w1, b1), (w2, b2) = layer(3, 5), layer(5, 4), layer(4, 1)
    nodes = [
        node("Sub", "x mean", "a"),
        node("Div", "a std", "b"),
        node("Clip", "b low high", "c"),
        node("Flatten", "c", "d"),
        node("Gemm", "d w0 b0", "e", transB=1),
        *hidden(kind, "e", "f"),
        node("MatMul", "f w1", "g"),
        node("Add", "g b1", "h"),
        *hidden(kind, "h", "i"),
        node("Gemm", "i w2 b2", "j"),
        node("Tanh", "j", "k"),
        node("Mul", "k two", "y"),
    ]
    constants = {"mean": [0.1, -0.2, 1], "std": [0.5, 0.7, 3], "low": -1.5, "high": 1.5, "w0": w0.T, "b0": b0}
    constants |= {"w1": w1, "b1": b1, "w2": w2, "b2": b2, "two": [2.0]}
    path = made(tmp_path / "policy.onnx", nodes, constants)
    policy = read_foreign(path)
    assert (policy.hidden, policy.squash, policy.normalised) == ((5, 4), "tanh", True)
    assert np.abs(act(policy, observations()) - ran(path)).max() < 1e-5


def test_a_mean_in_the_actions_units(tmp_path: Path) -> None:
    (w0, b0), (w1, b1) = layer(3, 5), layer(5, 1)
    nodes = [node("Gemm", "x w0 b0", "a"), node("Tanh", "a", "b"), node("Gemm", "b w1 b1", "y")]
    path = made(tmp_path / "policy.onnx", nodes, {"w0": w0, "b0": b0, "w1": w1, "b1": b1})
    policy = read_foreign(path)
    assert (policy.squash, policy.action_low) == ("clip", None)
    assert np.abs(act(policy, observations()) - np.clip(ran(path), -2, 2)).max() < 1e-5


def test_tanh_alone_is_scaled_to_the_bounds(tmp_path: Path) -> None:
    weight, bias = layer(3, 1)
    path = made(
        tmp_path / "policy.onnx", [node("Gemm", "x w b", "a"), node("Tanh", "a", "y")], {"w": weight, "b": bias}
    )
    policy = bounded(read_foreign(path), LOW, HIGH)
    assert policy.hidden == ()
    assert np.abs(act(policy, observations()) - 2 * ran(path)).max() < 1e-5


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([node("Conv", "x w", "y")], "Conv"),
        ([node("Gemm", "x w b", "a"), node("Softmax", "a", "y")], "Softmax"),
        ([node("Gemm", "x w b", "a"), node("Sigmoid", "a", "y")], "not the end of one line"),
        ([node("Gemm", "x w b", "a"), node("Elu", "a", "c", alpha=0.5), node("Gemm", "c u b", "y")], "slope of 0.5"),
        ([node("Relu", "x", "y")], "no linear layer"),
        ([node("Gemm", "x w b", "a"), node("Add", "a x", "y")], "no constant"),
        ([node("Gemm", "x w b", "y", transB=1)], "bias"),
    ],
)
def test_other_graphs(tmp_path: Path, nodes: list[Any], words: str) -> None:
    constants = {"w": RNG.normal(size=(3, 2)), "u": RNG.normal(size=(2, 2)), "b": np.zeros(2)}
    with pytest.raises(LowgearError) as caught:
        read_foreign(made(tmp_path / "policy.onnx", nodes, constants))
    assert words in str(caught.value)


def test_weights_in_another_file(tmp_path: Path) -> None:
    weight, bias = RNG.normal(size=(3, 500)), RNG.normal(size=500)
    path = made(tmp_path / "policy.onnx", [node("Gemm", "x w b", "y")], {"w": weight, "b": bias}, 500)
    onnx.save(onnx.load(path), tmp_path / "apart.onnx", save_as_external_data=True, location="weights.bin")
    with pytest.raises(LowgearError, match="in another file"):
        read_foreign(tmp_path / "apart.onnx")
