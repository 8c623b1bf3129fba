"""A controller as ONNX graphs: each gear, the master, and the whole controller with `If`, its state in and out."""

from typing import Any

import numpy as np

from lowgear import LowgearError
from lowgear.export.layers import ExportedNetworks, activation_of, exported_networks, holds
from lowgear.export.plain import plain
from lowgear.policy.controller import OBSERVATION_LIMIT
from lowgear.policy.file import Policy

try:
    import onnx
    from onnx import TensorProto, numpy_helper
    from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info, set_model_props
except ImportError:
    raise LowgearError("ONNX needs an extra: pip install 'lowgear[export]'") from None

OPSET = 17
IR_VERSION = 8  # ONNX 1.10 and ONNX Runtime 1.10, or later
FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
ACTIVATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "tanh": ("Tanh", {}),
    "relu": ("Relu", {}),
    "elu": ("Elu", {}),
    "leaky_relu": ("LeakyRelu", {"alpha": 0.01}),
}  # those that are one node

Nodes = list[Any]


def onnx_files(policy: Policy) -> dict[str, bytes]:
    """gearG.onnx, and for a policy whose master picks master.onnx and controller.onnx.

    - gearG: `observation` (1, obs) in, `action` (1, act) out
    - master: `observation`, and `position` (1,) where there is a dial, in; `choice` (1,) out
    - controller, one step: `observation`, `choice`, `left` and `position` in; `action`, `gear`, `next_choice` and
      `next_left` out; only the chosen gear is computed

    Where gear 0 holds the last action, it has no model. The master has `last_action` (1, act), in [-1, 1], and `start`
    (1,), true before an episode's first step, as inputs. The controller has `last_action`, and a `choice` of -1 begins
    an episode; `next_last_action` comes out last.
    """
    header, networks = policy.header, exported_networks(policy)
    observation = make_tensor_value_info("observation", FLOAT, [1, header.obs_dim])
    action = make_tensor_value_info("action", FLOAT, [1, header.act_dim])
    position = [] if header.dial is None else [make_tensor_value_info("position", FLOAT, [1])]
    last, start, next_last = (
        [make_tensor_value_info(name, kind, shape)] if holds(header) else []
        for name, kind, shape in (
            ("last_action", FLOAT, [1, header.act_dim]),
            ("start", BOOL, [1]),
            ("next_last_action", FLOAT, [1, header.act_dim]),
        )
    )

    def integers(*names: str) -> list[Any]:
        return [make_tensor_value_info(name, INT, [1]) for name in names]

    models = {}
    for gear in networks.gears:
        graph = Graph(policy, networks)
        models[f"gear{gear}"] = graph.model(f"gear{gear}", graph.gear(gear, "action"), [observation], [action])
    if networks.master is not None:
        graph, inputs = Graph(policy, networks), [observation, *last, *start, *position]
        models["master"] = graph.model("master", graph.master("choice"), inputs, integers("choice"))
        graph, inputs = Graph(policy, networks), [observation, *integers("choice", "left"), *last, *position]
        outputs = [action, *integers("gear", "next_choice", "next_left"), *next_last]
        models["controller"] = graph.model("controller", graph.controller(), inputs, outputs)
    return {f"{name}.onnx": model.SerializeToString() for name, model in models.items()}


class Graph:
    """The nodes of one model, and its constants; subgraphs see those of the graph around them."""

    def __init__(self, policy: Policy, networks: ExportedNetworks) -> None:
        self.policy, self.networks = policy, networks
        self._constants: list[Any] = []

    def constant(self, name: str, value: Any, dtype: Any = np.float32) -> str:
        """A constant, by name."""
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(value, dtype), name))
        return name

    def network(self, name: str, x: str) -> Nodes:
        """From `x` to `NAME_out`, of the master or a gear."""
        layers = self.networks.master if name == "master" else self.networks.gears[int(name.removeprefix("gear"))]
        assert layers is not None
        header, nodes = self.policy.header, []
        activation = header.activation if name == "master" else activation_of(header, int(name.removeprefix("gear")))
        for place, layer in enumerate(layers):
            weight = self.constant(f"{name}_{place}_weight", layer.dequantised)
            bias = self.constant(f"{name}_{place}_bias", layer.bias)
            last = place == len(layers) - 1
            y = f"{name}_out" if last else f"{name}_{place}_sum"
            nodes.append(make_node("Gemm", [x, weight, bias], [y]))
            if not last:
                x = f"{name}_{place}"
                nodes += self.activation(activation, y, x)
        return nodes

    @staticmethod
    def activation(activation: str, x: str, y: str) -> Nodes:
        """From sums to what a hidden layer gives."""
        if activation in ACTIVATIONS:
            kind, attributes = ACTIVATIONS[activation]
            return [make_node(kind, [x], [y], **attributes)]
        return [make_node("Sigmoid", [x], [f"{x}_part"]), make_node("Mul", [x, f"{x}_part"], [y])]  # silu

    def readable(self) -> Nodes:
        """From `observation` to what networks read: 0 for NaN, a limit for what is infinite."""
        nothing, limit = self.constant("nothing", [0.0]), self.constant("limit", [OBSERVATION_LIMIT])
        return [
            make_node("IsNaN", ["observation"], ["is_nan"]),
            make_node("Where", ["is_nan", nothing, "observation"], ["number"]),
            make_node("IsInf", ["number"], ["is_infinite"]),
            make_node("Sign", ["number"], ["sign"]),
            make_node("Mul", ["sign", limit], ["edge"]),
            make_node("Where", ["is_infinite", "edge", "number"], ["readable"]),
        ]

    def gear(self, gear: int, out: str) -> Nodes:
        """From `readable` to an action within its bounds."""
        scaled = self.within(f"gear{gear}", out)
        return [*self.unit(gear, f"gear{gear}_unit"), *scaled]

    def within(self, name: str, out: str) -> Nodes:
        """From NAME_unit, in [-1, 1], to an action within its bounds."""
        low, high = self.policy.bounds.low, self.policy.bounds.high
        half = self.constant(f"{name}_half", (high - low) / 2)
        middle = self.constant(f"{name}_middle", (high + low) / 2)
        lower, upper = self.constant(f"{name}_low", low), self.constant(f"{name}_high", high)
        return [
            make_node("Mul", [f"{name}_unit", half], [f"{name}_scaled"]),
            make_node("Add", [f"{name}_scaled", middle], [f"{name}_moved"]),
            make_node("Max", [f"{name}_moved", lower], [f"{name}_above"]),
            make_node("Min", [f"{name}_above", upper], [out]),
        ]

    def unit(self, gear: int, out: str) -> Nodes:
        """From `readable` to an action in [-1, 1]."""
        name, seen, clip, nodes = f"gear{gear}", "readable", self.networks.clips.get(gear), []
        if clip is not None:
            seen, bounds = f"{name}_seen", [self.constant(f"{name}_clip_{k}", each) for k, each in enumerate(clip)]
            nodes += [
                make_node("Max", ["readable", bounds[0]], [f"{name}_raised"]),
                make_node("Min", [f"{name}_raised", bounds[1]], [seen]),
            ]
        nodes += self.network(name, seen)
        if self.policy.header.gears[gear].squash == "tanh":
            return [*nodes, make_node("Tanh", [f"{name}_out"], [out])]
        ends = [self.constant(f"{name}_{end}", [value]) for end, value in (("least", -1.0), ("most", 1.0))]
        return [
            *nodes,
            make_node("Max", [f"{name}_out", ends[0]], [f"{name}_lifted"]),
            make_node("Min", [f"{name}_lifted", ends[1]], [out]),
        ]

    def master(self, out: str) -> Nodes:
        """From `readable` and, where there are any, `last_action`, `start` and `position` to the best choice."""
        nodes: Nodes = []
        seen = ["readable"]
        if holds(self.policy.header):
            none = self.constant("none", [[0.0]])
            nodes.append(make_node("Where", ["start", none, "last_action"], ["last"]))
            seen.append("last")
        if self.policy.header.sees_position:
            row = self.constant("row", [1, 1], np.int64)
            nodes.append(make_node("Reshape", ["position", row], ["position_row"]))
            seen.append("position_row")
        if nodes:
            nodes.append(make_node("Concat", seen, ["inputs"], axis=1))
        nodes += self.network("master", "inputs" if nodes else "readable")
        values, tariff = "master_out", self.policy.weights.tariff
        if tariff is not None:  # what choices cost at `position` is taken off
            dial = self.policy.header.dial
            assert dial is not None
            start, end = (np.arcsinh(value / (dial.knee or 1.0)) for value in dial)
            values = "master_values"
            slope, middle = self.constant("slope", [(end - start) / 2]), self.constant("middle", [(end + start) / 2])
            knee_costs = self.constant("knee_costs", dial.knee * tariff.each)
            nodes += [
                make_node("Mul", ["position", slope], ["turned"]),
                make_node("Add", ["turned", middle], ["steps"]),
                make_node("Sinh", ["steps"], ["times"]),
                make_node("Mul", ["times", knee_costs], ["charge"]),
                make_node("Sub", ["master_out", "charge"], [values]),
            ]
        if holds(self.policy.header):
            nodes += self.without_hold(values, "open_values")
            values = "open_values"
        return [*nodes, make_node("ArgMax", [values], [out], axis=1, keepdims=0, select_last_index=0)]

    def without_hold(self, values: str, out: str) -> Nodes:
        """The values, -inf for what repeats the last action where `start` says that there is none."""
        header = self.policy.header
        is_hold = [not gear.computes for gear in header.gears] * len(header.periods)
        never, repeats = self.constant("never", [-np.inf]), self.constant("repeats", is_hold, np.bool_)
        return [
            make_node("And", ["start", repeats], ["closed"]),
            make_node("Where", ["closed", never, values], [out]),
        ]

    def controller(self) -> Nodes:
        """A whole step: pick where it is due, count the steps that the pick still holds, act."""
        zero, one = self.constant("zero", [0], np.int64), self.constant("one", [1], np.int64)
        count = self.constant("gear_count", [len(self.policy.header.gears)], np.int64)
        periods = self.constant("periods", self.policy.header.periods, np.int64)
        pick, keep = self.master("picked"), [make_node("Identity", ["choice"], ["kept"])]
        holding = holds(self.policy.header)
        return [
            *([make_node("Less", ["choice", zero], ["start"])] if holding else []),
            make_node("LessOrEqual", ["left", zero], ["due"]),
            _branch("due", "next_choice", INT, then=(pick, "picked"), otherwise=(keep, "kept")),
            make_node("Div", ["next_choice", count], ["duration"]),
            make_node("Gather", [periods, "duration"], ["period"]),
            make_node("Where", ["due", "period", "left"], ["holds"]),
            make_node("Sub", ["holds", one], ["next_left"]),
            make_node("Mod", ["next_choice", count], ["gear"]),
            *(self.holding_gears() if holding else self.gears_from(0, "action")),
        ]

    def holding_gears(self) -> Nodes:
        """Where gear 0 holds the last action: the next one, and the same within its bounds."""
        kept = make_node("Identity", ["held_unit"], ["next_last_action"])
        return [*self.gears_from(0, "held_unit"), kept, *self.within("held", "action")]

    def gear_or_hold(self, gear: int, out: str) -> Nodes:
        """An action within its bounds; where gear 0 holds the last one, in [-1, 1]."""
        if not holds(self.policy.header):
            return self.gear(gear, out)
        if gear in self.networks.gears:
            return self.unit(gear, out)
        return [make_node("Identity", ["last_action"], [out])]

    def gears_from(self, gear: int, out: str) -> Nodes:
        """Runs this gear if it is chosen, else one of those after it."""
        if gear == len(self.policy.header.gears) - 1:
            return self.gear_or_hold(gear, out)
        number, this, others = self.constant(f"number{gear}", [gear], np.int64), f"action{gear}", f"others{gear}"
        then, otherwise = (self.gear_or_hold(gear, this), this), (self.gears_from(gear + 1, others), others)
        is_chosen = f"is{gear}"
        return [
            make_node("Equal", ["gear", number], [is_chosen]),
            _branch(is_chosen, out, FLOAT, then=then, otherwise=otherwise),
        ]

    def model(self, name: str, nodes: Nodes, inputs: list[Any], outputs: list[Any]) -> Any:
        """The model, which ONNX has checked."""
        graph = make_graph([*self.readable(), *nodes], name, inputs, outputs, self._constants)
        opsets = [make_opsetid("", OPSET)]
        model = make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="lowgear")
        header = self.policy.header
        given = {"observation_names": header.observation_names, "action_names": header.action_names}
        set_model_props(model, {key: ",".join(map(plain, names)) for key, names in given.items() if names})
        onnx.checker.check_model(model, full_check=True)
        return model


def _branch(condition: str, out: str, kind: int, *, then: tuple[Nodes, str], otherwise: tuple[Nodes, str]) -> Any:
    """An `If` whose branches are nodes with the name of what they end in."""
    graphs = [
        make_graph(nodes, f"{out}_{name}", [], [make_tensor_value_info(name, kind, None)])
        for nodes, name in (then, otherwise)
    ]
    return make_node("If", [condition], [out], then_branch=graphs[0], else_branch=graphs[1])
