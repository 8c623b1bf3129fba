"""A controller as ONNX graphs: each gear, the master, and the whole controller with `If`, its state in and out."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowgear import LowgearError
from lowgear.export.c_arrays import Layer
from lowgear.policy.controller import Tariff
from lowgear.policy.file import Policy, PolicyHeader

try:
    import onnx
    from onnx import TensorProto, helper, numpy_helper
except ImportError:
    raise LowgearError("ONNX needs an extra: pip install 'lowgear[export]'") from None

OPSET = 17
IR_VERSION = 8  # ONNX 1.10 and ONNX Runtime 1.10, or later
FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64


class Constants:
    """The initialisers of one model; subgraphs see those of the graph around them."""

    def __init__(self) -> None:
        self.tensors: list[Any] = []

    def add(self, name: str, value: Any, dtype: Any = np.float32) -> str:
        """A constant, by name."""
        self.tensors.append(numpy_helper.from_array(np.ascontiguousarray(value, dtype), name))
        return name


def network(constants: Constants, name: str, layers: Sequence[Layer], source: str, activation: str) -> list[Any]:
    """Nodes from `source` to `NAME_out`."""
    nodes = []
    for place, one in enumerate(layers):
        weight = constants.add(f"{name}_{place}_weight", one.exact)
        bias = constants.add(f"{name}_{place}_bias", one.bias)
        last = place == len(layers) - 1
        out = f"{name}_out" if last else f"{name}_{place}_sum"
        nodes.append(helper.make_node("Gemm", [source, weight, bias], [out]))
        if not last:
            source = f"{name}_{place}"
            nodes.append(helper.make_node("Tanh" if activation == "tanh" else "Relu", [out], [source]))
    return nodes


def gear_nodes(constants: Constants, gear: int, layers: Sequence[Layer], header: PolicyHeader, out: str) -> list[Any]:
    """From `observation` to an action within its bounds."""
    name = f"gear{gear}"
    low, high = np.array(header.action_low), np.array(header.action_high)
    half = constants.add(f"{name}_half", (high - low) / 2)
    middle = constants.add(f"{name}_middle", (high + low) / 2)
    lower, upper = constants.add(f"{name}_low", low), constants.add(f"{name}_high", high)
    return [
        *network(constants, name, layers, "observation", header.activation),
        helper.make_node("Tanh", [f"{name}_out"], [f"{name}_unit"]),
        helper.make_node("Mul", [f"{name}_unit", half], [f"{name}_scaled"]),
        helper.make_node("Add", [f"{name}_scaled", middle], [f"{name}_moved"]),
        helper.make_node("Max", [f"{name}_moved", lower], [f"{name}_above"]),
        helper.make_node("Min", [f"{name}_above", upper], [out]),
    ]


def master_nodes(constants: Constants, layers: Sequence[Layer], policy: Policy, out: str) -> list[Any]:
    """From `observation` and, where there is a dial, `position` to the best choice."""
    header, tariff = policy.header, policy.weights.tariff
    source, nodes = "observation", []
    if header.sees_position:
        shape = constants.add("row", [1, 1], np.int64)
        nodes = [
            helper.make_node("Reshape", ["position", shape], ["position_row"]),
            helper.make_node("Concat", ["observation", "position_row"], ["inputs"], axis=1),
        ]
        source = "inputs"
    return [
        *nodes,
        *network(constants, "master", layers, source, header.activation),
        *([] if tariff is None else _charge(constants, tariff)),
        helper.make_node(
            "ArgMax",
            ["master_out" if tariff is None else "master_values"],
            [out],
            axis=1,
            keepdims=0,
            select_last_index=0,
        ),
    ]


def _charge(constants: Constants, tariff: Tariff) -> list[Any]:
    """From `master_out` to `master_values`: what choices cost at `position` taken off."""
    one, half = constants.add("whole", [1.0]), constants.add("half", [0.5])
    ratio, lowest = constants.add("ratio", tariff.ratio), constants.add("lowest", tariff.low[0] * tariff.each)
    return [
        helper.make_node("Add", ["position", one], ["turned"]),
        helper.make_node("Mul", ["turned", half], ["share"]),
        helper.make_node("Pow", [ratio, "share"], ["times"]),
        helper.make_node("Mul", ["times", lowest], ["charge"]),
        helper.make_node("Sub", ["master_out", "charge"], ["master_values"]),
    ]


def gear_model(gear: int, layers: Sequence[Layer], header: PolicyHeader) -> Any:
    """`observation` (1, obs) in, `action` (1, act) out."""
    constants = Constants()
    nodes = gear_nodes(constants, gear, layers, header, "action")
    return _model(f"gear{gear}", nodes, [_observation(header)], [_action(header)], constants)


def master_model(layers: Sequence[Layer], policy: Policy) -> Any:
    """`observation`, and `position` (1,) where there is a dial, in; `choice` (1,) out."""
    constants, header = Constants(), policy.header
    nodes = master_nodes(constants, layers, policy, "choice")
    inputs = [_observation(header)]
    if header.dial is not None:
        inputs.append(helper.make_tensor_value_info("position", FLOAT, [1]))
    return _model("master", nodes, inputs, [_integer("choice")], constants)


def controller_model(gears: Sequence[Sequence[Layer]], master: Sequence[Layer], policy: Policy) -> Any:
    """The whole controller, one step: state in and out as tensors, only the chosen gear computed."""
    constants, header = Constants(), policy.header
    zero, one = constants.add("zero", [0], np.int64), constants.add("one", [1], np.int64)
    count = constants.add("gear_count", [len(gears)], np.int64)
    periods = constants.add("periods", header.periods, np.int64)
    pick = master_nodes(constants, master, policy, "picked")
    keep = [helper.make_node("Identity", ["choice"], ["kept"])]
    nodes = [
        helper.make_node("LessOrEqual", ["left", zero], ["due"]),
        _branch("due", "next_choice", (pick, "picked", INT), (keep, "kept", INT)),
        helper.make_node("Div", ["next_choice", count], ["duration"]),
        helper.make_node("Gather", [periods, "duration"], ["period"]),
        helper.make_node("Where", ["due", "period", "left"], ["holds"]),
        helper.make_node("Sub", ["holds", one], ["next_left"]),
        helper.make_node("Mod", ["next_choice", count], ["gear"]),
        *_gears_from(constants, gears, header, 0, "action"),
    ]
    inputs = [_observation(header), _integer("choice"), _integer("left")]
    if header.dial is not None:
        inputs.append(helper.make_tensor_value_info("position", FLOAT, [1]))
    outputs = [_action(header), _integer("gear"), _integer("next_choice"), _integer("next_left")]
    return _model("controller", nodes, inputs, outputs, constants)


def _gears_from(
    constants: Constants, gears: Sequence[Sequence[Layer]], header: PolicyHeader, gear: int, out: str
) -> list[Any]:
    """Nodes that run this gear if it is chosen, else one of those after it."""
    if gear == len(gears) - 1:
        return gear_nodes(constants, gear, gears[gear], header, out)
    number = constants.add(f"number{gear}", [gear], np.int64)
    this, others = f"action{gear}", f"others{gear}"
    return [
        helper.make_node("Equal", ["gear", number], [f"is{gear}"]),
        _branch(
            f"is{gear}",
            out,
            (gear_nodes(constants, gear, gears[gear], header, this), this, FLOAT),
            (_gears_from(constants, gears, header, gear + 1, others), others, FLOAT),
        ),
    ]


def _branch(condition: str, out: str, then: tuple[list[Any], str, int], other: tuple[list[Any], str, int]) -> Any:
    """An `If` whose branches are lists of nodes with the name and type of what they end in."""
    graphs = [
        helper.make_graph(nodes, f"{out}_{name}", [], [helper.make_tensor_value_info(name, kind, None)])
        for nodes, name, kind in (then, other)
    ]
    return helper.make_node("If", [condition], [out], then_branch=graphs[0], else_branch=graphs[1])


def _observation(header: PolicyHeader) -> Any:
    return helper.make_tensor_value_info("observation", FLOAT, [1, header.obs_dim])


def _action(header: PolicyHeader) -> Any:
    return helper.make_tensor_value_info("action", FLOAT, [1, header.act_dim])


def _integer(name: str) -> Any:
    return helper.make_tensor_value_info(name, INT, [1])


def _model(name: str, nodes: list[Any], inputs: list[Any], outputs: list[Any], constants: Constants) -> Any:
    graph = helper.make_graph(nodes, name, inputs, outputs, constants.tensors)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="lowgear"
    )
    onnx.checker.check_model(model, full_check=True)
    return model
