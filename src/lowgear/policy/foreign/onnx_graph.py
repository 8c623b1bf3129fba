"""A graph in an ONNX file: its nodes and its constants, read without the onnx package."""

import math
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from lowgear.policy.fields import BadField, shown
from lowgear.policy.foreign.protobuf import fields_of, signed, varints

KINDS: dict[int, np.dtype[Any]] = {
    1: np.dtype("<f4"),
    6: np.dtype("<i4"),
    7: np.dtype("<i8"),
    10: np.dtype("<f2"),
    11: np.dtype("<f8"),
}
MOST_NODES = 10_000
MOST_AXES = 8
EXTERNAL = "its weights are in another file: export it again with all in one (external_data=False)"


@dataclass
class Node:
    """One operation."""

    kind: str = ""
    domain: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass
class Graph:
    """What a file computes."""

    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, npt.NDArray[Any]] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)


def read_graph(data: bytes) -> Graph:
    """The graph of a model; one with parts that need more than arithmetic is refused by their names."""
    graphs = [value for number, value in fields_of(data) if number == 7 and isinstance(value, memoryview)]
    if len(graphs) != 1:
        raise BadField("it is no ONNX model: it has no graph")
    graph = Graph()
    for number, value in fields_of(graphs[0]):
        if not isinstance(value, memoryview):
            continue
        if number == 1:
            graph.nodes.append(_node(value))
        elif number == 5:
            name, array = _tensor(value)
            graph.constants[name] = array
        elif number in (11, 12):
            (graph.inputs if number == 11 else graph.outputs).append(_text(dict(fields_of(value)).get(1)))
        if len(graph.nodes) > MOST_NODES:
            raise BadField(f"it has more than {MOST_NODES:,} nodes")
    graph.inputs = [name for name in graph.inputs if name not in graph.constants]
    return graph


def _node(message: memoryview) -> Node:
    node = Node()
    for number, value in fields_of(message):
        if number in (1, 2):
            (node.inputs if number == 1 else node.outputs).append(_text(value))
        elif number == 4:
            node.kind = _text(value)
        elif number == 7:
            node.domain = _text(value)
        elif number == 5 and isinstance(value, memoryview):
            name, found = _attribute(value)
            node.attributes[name] = found
    return node


def _attribute(message: memoryview) -> tuple[str, Any]:
    """Name and value; values of kinds that no operation of ours has are left out."""
    name, found = "", None
    listed: list[int] = []
    for number, value in fields_of(message):
        if number == 1:
            name = _text(value)
        elif number == 2 and isinstance(value, memoryview) and len(value) == 4:
            found = struct.unpack("<f", value)[0]
        elif number == 3 and isinstance(value, int):
            found = signed(value)
        elif number == 5 and isinstance(value, memoryview):
            found = _tensor(value)[1]
        elif number == 8:
            listed += [value] if isinstance(value, int) else varints(value)
    return name, [signed(value) for value in listed] if listed else found


def _tensor(message: memoryview) -> tuple[str, npt.NDArray[Any]]:
    dims: list[int] = []
    name, kind, raw = "", 0, b""
    for number, value in fields_of(message):
        if number == 1:
            dims += [value] if isinstance(value, int) else varints(value)
        elif number == 2 and isinstance(value, int):
            kind = value
        elif number == 8:
            name = _text(value)
        elif number == 13 or (number == 14 and value):
            raise BadField(EXTERNAL)
        elif number in (4, 9, 10) and isinstance(value, memoryview):
            raw += bytes(value)
        elif number in (5, 7):
            values = [value] if isinstance(value, int) else varints(value)
            raw += np.array([signed(one) for one in values], np.int64).astype("<i4" if number == 5 else "<i8").tobytes()
    if kind not in KINDS:
        return name, np.zeros(0, np.bool_)  # refused where it is used
    if len(dims) > MOST_AXES or math.prod(dims) * KINDS[kind].itemsize != len(raw):
        raise BadField(f"constant {shown(name)} does not have the bytes of its shape")
    return name, np.frombuffer(raw, KINDS[kind]).reshape(dims)


def _text(value: Any) -> str:
    if not isinstance(value, memoryview) or len(value) > 1000:
        raise BadField("a name in it is no text")
    return bytes(value).decode("utf-8", "replace")
