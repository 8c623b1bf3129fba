"""ONNX graphs that are MLPs: linear layers with one activation, a normalisation before, tanh, clip and scaling behind.

The graph is followed from its input to its output as one line of stages; whatever is no such stage is refused by name.
A line that ends with tanh alone gives actions in [-1, 1], which are scaled to the bounds; one that scales or clips them
must do it to the environment's bounds; any other gives actions in their own units.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lowgear.policy.arrays import DoubleArray
from lowgear.policy.fields import BadField, shown
from lowgear.policy.foreign.network import ForeignPolicy, Layer, check_layers
from lowgear.policy.foreign.onnx_graph import Graph, Node, read_graph
from lowgear.policy.foreign.records import numbers

IGNORED = ("Identity", "Flatten", "Cast", "Dropout", "Reshape", "Squeeze", "Unsqueeze")
ACTIVATIONS = {"Relu": "relu", "Tanh": "tanh", "Elu": "elu", "LeakyRelu": "leaky_relu", "Silu": "silu"}
SLOPES = {"Elu": 1.0, "LeakyRelu": 0.01}  # of the attribute alpha; they are ONNX's defaults as well
READABLE = "linear layers, Relu, Tanh, Elu, LeakyRelu, SiLU, Clip and scaling can be imported"


class Stage(NamedTuple):
    """One step of the line."""

    kind: str  # "linear", "scale", "clip" or an activation
    first: Any = None  # weight, factor or low
    second: Any = None  # bias, offset or high


def read_onnx(data: bytes) -> ForeignPolicy:
    """The policy in an ONNX file."""
    return _policy(_stages(read_graph(data)))


def _stages(graph: Graph) -> list[Stage]:
    """The line from input to output."""
    if len(graph.inputs) != 1 or not graph.outputs:
        raise BadField(f"it has {len(graph.inputs)} inputs and {len(graph.outputs)} outputs, not one and one")
    constants = dict(graph.constants)
    live, stages, gate = {graph.inputs[0]}, [], ""
    for node in graph.nodes:
        if node.domain not in ("", "ai.onnx"):
            raise BadField(f"it has an operation {shown(node.kind)} of {shown(node.domain)}; {READABLE}")
        inputs = [name for name in node.inputs if name]
        if not node.outputs:
            raise BadField(f"an operation {shown(node.kind)} gives nothing")
        if not live.intersection(inputs) and not (gate and gate in inputs):
            constants[node.outputs[0]] = _constant(node, constants)
        elif node.kind == "Sigmoid" and not gate:  # x · sigmoid(x), in two operations
            gate = node.outputs[0]
            continue
        elif gate:
            if node.kind != "Mul" or gate not in inputs or not live.intersection(inputs):
                raise BadField(f"it has a Sigmoid; {READABLE}")
            stages.append(Stage("silu"))
            live, gate = {node.outputs[0]}, ""
        else:
            if sum(name in live for name in inputs) != 1:
                raise BadField(f"its line branches at {shown(node.kind)}; {READABLE}")
            stage = _stage(node, live, constants)
            if stage is None:
                live = live | {node.outputs[0]}
            else:
                stages.append(stage)
                live = {node.outputs[0]}
    if graph.outputs[0] not in live:
        raise BadField(f"its first output {shown(graph.outputs[0])} is not the end of one line; {READABLE}")
    return stages


def _constant(node: Node, constants: dict[str, npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """A node that computes a constant."""
    if node.kind == "Constant":
        for name in ("value", "value_float", "value_int"):
            if node.attributes.get(name) is not None:
                return np.asarray(node.attributes[name])
    source = constants.get(node.inputs[0]) if node.inputs else None
    if source is not None and node.kind in ("Identity", "Cast"):
        return source
    if source is not None and node.kind == "Transpose" and source.ndim == 2:
        return source.T
    raise BadField(f"it computes a constant with {shown(node.kind)}; {READABLE}")


def _stage(node: Node, live: set[str], constants: dict[str, npt.NDArray[Any]]) -> Stage | None:
    """What a node does to the line; None where it does nothing to a flat observation."""
    kind = node.kind
    if kind in IGNORED:
        return None
    if kind in ACTIVATIONS:
        alpha = node.attributes.get("alpha", SLOPES.get(kind))
        if alpha is not None and not math.isclose(alpha, SLOPES[kind], rel_tol=1e-5):
            raise BadField(f"its {kind} has a slope of {alpha:g}, not {SLOPES[kind]:g}")
        return Stage(ACTIVATIONS[kind])

    def value(place: int) -> DoubleArray:
        name = node.inputs[place] if place < len(node.inputs) else ""
        if name not in constants:
            raise BadField(f"input {place} of its {kind} is no constant; {READABLE}")
        return numbers(f"a constant of {kind}", constants[name])

    if kind == "Gemm":
        return _gemm(node, value)
    if kind == "MatMul" and node.inputs[0] in live:
        weight = value(1)
        return Stage("linear", weight, np.zeros(weight.shape[-1]))
    if kind == "Clip":
        ends = [value(place) if place < len(node.inputs) and node.inputs[place] else None for place in (1, 2)]
        low, high = (
            node.attributes.get(name) if end is None else end for name, end in zip(("min", "max"), ends, strict=True)
        )
        if low is None or high is None:
            raise BadField("its Clip has one end alone")
        return Stage("clip", np.ravel(np.float64(low)), np.ravel(np.float64(high)))
    if kind in ("Add", "Sub", "Mul", "Div") and len(node.inputs) == 2:
        first = node.inputs[0] in live
        other = value(1 if first else 0).ravel()
        if kind == "Add":
            return Stage("scale", np.ones(1), other)
        if kind == "Sub":
            return Stage("scale", np.ones(1), -other) if first else Stage("scale", -np.ones(1), other)
        if kind == "Mul" or (first and np.abs(other).min(initial=1) > 0):
            return Stage("scale", other if kind == "Mul" else 1 / other, np.zeros(1))
    raise BadField(f"it has an operation {shown(kind)}; {READABLE}")


def _gemm(node: Node, value: Any) -> Stage:
    alpha, beta = (float(node.attributes.get(name, 1.0)) for name in ("alpha", "beta"))
    if node.attributes.get("transA", 0):
        raise BadField("its Gemm transposes the observation")
    weight = value(1)
    if weight.ndim != 2:
        raise BadField("the weight of its Gemm has not two axes")
    weight = alpha * (weight.T if node.attributes.get("transB", 0) else weight)
    bias = beta * value(2).ravel() if len(node.inputs) > 2 else np.zeros(weight.shape[1])
    return Stage("linear", weight, np.broadcast_to(bias, weight.shape[1]) if bias.size == 1 else bias)


class _Line:
    """Stages taken from the front, one after the other."""

    def __init__(self, stages: list[Stage]) -> None:
        self.stages = stages

    def next_is(self, *kinds: str) -> bool:
        return bool(self.stages) and self.stages[0].kind in kinds

    def scaling(self, size: int) -> tuple[DoubleArray, DoubleArray]:
        """All scalings that come next, as one factor and offset for each of `size` numbers."""
        factor, offset = np.ones(size), np.zeros(size)
        while self.next_is("scale"):
            _, by, plus = self.stages.pop(0)
            if by.size not in (1, size) or plus.size not in (1, size):
                raise BadField(f"a scaling of it is not of the {size} numbers that it scales")
            factor, offset = factor * by, offset * by + plus
        return factor, offset


def _policy(stages: list[Stage]) -> ForeignPolicy:
    """The policy that the stages make."""
    inputs = next((stage.first.shape[0] for stage in stages if stage.kind == "linear" and stage.first.ndim == 2), 0)
    if not inputs:
        raise BadField(f"it has no linear layer; {READABLE}")
    line = _Line(list(stages))
    before, low, high = _seen(line, inputs)
    layers: list[Layer] = []
    activations: set[str] = set()
    while line.next_is("linear"):
        layers.append(_linear(line))
        if not line.next_is(*ACTIVATIONS.values()):
            break
        if any(stage.kind == "linear" for stage in line.stages):
            activations.add(line.stages.pop(0).kind)
    if len(activations) > 1:
        raise BadField(f"its hidden layers have several activations: {', '.join(sorted(activations))}")
    weight, bias = layers[0]
    if weight.shape[0] != before[0].size:
        raise BadField("its first layer does not take what comes before it")
    layers[0] = before[0][:, None] * weight, bias + before[1] @ weight
    checked = check_layers(layers)
    squash, bounds = _done(line, checked[-1][1].size)
    return ForeignPolicy(
        "ONNX",
        checked,
        activations.pop() if activations else "tanh",
        squash,
        *bounds,
        low,
        high,
        normalised=low is not None or bool((before[0] != 1).any() or before[1].any()),
    )


def _seen(line: _Line, size: int) -> tuple[tuple[DoubleArray, DoubleArray], Any, Any]:
    """Scaling before the first layer, and the ends that raw observations are clipped to."""
    factor, offset = line.scaling(size)
    if not line.next_is("clip"):
        return (factor, offset), None, None
    _, first, second = line.stages.pop(0)
    if (factor == 0).any():
        raise BadField("it multiplies an observation by 0")
    ends = [(np.broadcast_to(end, size) - offset) / factor for end in (first, second)]
    more, plus = line.scaling(size)
    return (factor * more, offset * more + plus), np.minimum(*ends), np.maximum(*ends)


def _linear(line: _Line) -> Layer:
    """A linear layer with the scalings behind it."""
    _, weight, bias = line.stages.pop(0)
    if weight.ndim != 2 or bias.shape != (weight.shape[1],):
        raise BadField(f"a layer of it has a weight of {weight.shape} and a bias of {bias.shape}")
    factor, offset = line.scaling(weight.shape[1])
    return weight * factor, bias * factor + offset


def _done(line: _Line, size: int) -> tuple[str, tuple[DoubleArray | None, DoubleArray | None]]:
    """How outputs become actions, and their bounds where the graph has them."""
    squash = "clip"
    low: DoubleArray | None = None
    high: DoubleArray | None = None
    if line.next_is("tanh"):
        line.stages.pop(0)
        squash = "tanh"
        if line.next_is("scale"):
            factor, offset = line.scaling(size)
            low, high = offset - np.abs(factor), offset + np.abs(factor)
            if (factor <= 0).any():
                raise BadField("it turns its actions around")
    if line.next_is("clip"):
        _, first, second = line.stages.pop(0)
        ends = np.broadcast_to(first, size), np.broadcast_to(second, size)
        low, high = ends if low is None or high is None else (np.maximum(low, ends[0]), np.minimum(high, ends[1]))
    if line.stages:
        raise BadField(f"behind its last layer comes {line.stages[0].kind}; {READABLE}")
    return squash, (low, high)
