"""Networks as C arrays: a row for each input, columns padded for vector units, floats that read back exactly."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lowgear.export.layers import ExportedLayer

LINE = 100  # characters


class Shape(NamedTuple):
    """Of one layer in C."""

    inputs: int
    outputs: int

    @property
    def columns(self) -> int:
        """Of a row with its padding: whole groups of 8, or one of 4."""
        return 4 if self.outputs <= 4 else -(-self.outputs // 8) * 8

    def loop(self, name: str) -> str:
        """The head of a loop over a row, with the padding where vector units have use for it."""
        return f"for (j = 0; j < {name.upper()}_COLUMNS({self.outputs}, {self.columns}); ++j)"

    def pad(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Rows of outputs, filled up with zeros."""
        return np.pad(rows, [(0, 0)] * (rows.ndim - 1) + [(0, self.columns - self.outputs)])


def shape_of(layer: ExportedLayer) -> Shape:
    """Of a layer."""
    return Shape(*layer.weight.shape)


def number(value: float) -> str:
    """A float literal that reads back as the same float32."""
    text = f"{np.float32(value):.9g}"
    return f"{text}f" if any(mark in text for mark in ".e") else f"{text}.0f"


def array(declaration: str, values: Sequence[float] | npt.NDArray[Any], kind: str = "float") -> str:
    """A constant array, wrapped."""
    flat = np.asarray(values).ravel().tolist()
    lines, line = [], "   "
    for value in flat:
        text = number(value) if kind == "float" else str(int(value))
        if len(line) + len(text) > LINE:
            lines.append(line)
            line = "   "
        line += f" {text},"
    lines.append(line)
    body = "\n".join(lines).rstrip(",")
    return f"static const {kind} {declaration}[{len(flat)}] = {{\n{body}\n}};\n"


def padded_arrays(layer: ExportedLayer) -> dict[str, npt.NDArray[Any]]:
    """`weight`, `bias` and, for int8, `scale`, as C holds them."""
    parts = {"weight": layer.weight, "bias": layer.bias} | ({} if layer.scale is None else {"scale": layer.scale})
    return {what: shape_of(layer).pad(part) for what, part in parts.items()}


def layer_arrays(name: str, layer: ExportedLayer) -> str:
    """NAME_weight, NAME_bias and, for int8, NAME_scale."""
    arrays = padded_arrays(layer).items()
    return "".join(array(f"{name}_{what}", x, "int8_t" if x.dtype == np.int8 else "float") for what, x in arrays)
