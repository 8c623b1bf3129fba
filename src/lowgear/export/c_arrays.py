"""Networks as C arrays: rows of one input each, columns padded to what vector units like, floats exact or in int8."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lowgear.policy.controller import Layers

FloatArray = npt.NDArray[np.float32]
WEIGHTS = ("float32", "int8")
INT8_MAX = 127
LINE = 100


class Shape(NamedTuple):
    """Of one layer: inputs, outputs, and columns of a row with the padding."""

    inputs: int
    outputs: int
    columns: int


class Layer(NamedTuple):
    """One layer as it is written down."""

    weight: npt.NDArray[Any]  # (inputs, outputs) of float32, or of int8 with `scale`
    bias: FloatArray
    scale: FloatArray | None  # (outputs,): what one step of int8 is worth

    @property
    def shape(self) -> Shape:
        """Its sizes."""
        inputs, outputs = self.weight.shape
        return Shape(inputs, outputs, padded(outputs))

    @property
    def exact(self) -> FloatArray:
        """The float weights that the layer really has."""
        if self.scale is None:
            return np.asarray(self.weight, np.float32)
        found: FloatArray = self.weight.astype(np.float32) * self.scale
        return found


def padded(outputs: int) -> int:
    """Columns of a row: whole groups of 8, or one of 4."""
    return 4 if outputs <= 4 else -(-outputs // 8) * 8


def layer(weight: FloatArray, bias: FloatArray, weights: str) -> Layer:
    """A layer in one of WEIGHTS; int8 has a scale for each output, so that the largest weight of each is 127 steps."""
    if weights == "float32":
        return Layer(weight, bias, None)
    largest = np.abs(weight).max(axis=0)
    scale = np.where(largest > 0, largest / INT8_MAX, 1.0).astype(np.float32)
    return Layer(np.clip(np.rint(weight / scale), -INT8_MAX, INT8_MAX).astype(np.int8), bias, scale)


def gear_layers(layers: Layers, act_dim: int, weights: str) -> list[Layer]:
    """An actor without the half of its last layer that only training needs."""
    found = [(weight[0], bias[0]) for weight, bias in layers]
    found[-1] = (found[-1][0][:, :act_dim], found[-1][1][:act_dim])
    return [layer(weight, bias, weights) for weight, bias in found]


def master_layers(layers: Layers, weights: str) -> list[Layer]:
    """The master, all of its inputs."""
    return [layer(weight[0], bias[0], weights) for weight, bias in layers]


def number(value: float) -> str:
    """A float literal that reads back as the same float32."""
    text = f"{np.float32(value):.9g}"
    return f"{text}f" if any(mark in text for mark in ".e") else f"{text}.0f"


def array(declaration: str, values: Sequence[float] | npt.NDArray[Any], kind: str = "float") -> str:
    """A constant array, wrapped."""
    flat = np.asarray(values).ravel().tolist()
    shown = [number(value) if kind == "float" else str(int(value)) for value in flat]
    lines, line = [], "   "
    for text in shown:
        if len(line) + len(text) > LINE:
            lines.append(line)
            line = "   "
        line += f" {text},"
    lines.append(line)
    body = "\n".join(lines).rstrip(",")
    return f"static const {kind} {declaration}[{len(flat)}] = {{\n{body}\n}};\n"


def layer_arrays(name: str, one: Layer) -> str:
    """`NAME_weight`, `NAME_bias` and, for int8, `NAME_scale`."""
    shape = one.shape
    weight = np.zeros((shape.inputs, shape.columns), one.weight.dtype)
    weight[:, : shape.outputs] = one.weight
    text = array(f"{name}_weight", weight, "float" if one.scale is None else "int8_t")
    text += array(f"{name}_bias", _filled(one.bias, shape.columns))
    if one.scale is not None:
        text += array(f"{name}_scale", _filled(one.scale, shape.columns))
    return text


def _filled(row: FloatArray, columns: int) -> FloatArray:
    found: FloatArray = np.zeros(columns, np.float32)
    found[: len(row)] = row
    return found
