"""NumPy's and JAX's arrays, from the records of their pickles."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from lowgear.policy import fields
from lowgear.policy.arrays import DoubleArray
from lowgear.policy.fields import BadField, shown
from lowgear.policy.foreign.pickles import Made, Name

DTYPES = {code: np.dtype(f"<{code}") for code in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "b1")}
NUMPY = ("numpy.core", "numpy._core")  # before and after NumPy 2
MOST_AXES = 8


def is_made(value: Any, *names: str) -> bool:
    """Whether it is the record of a call of one of these."""
    return isinstance(value, Made) and isinstance(value.maker, Name) and str(value.maker) in names


def state_of(value: Any, what: str) -> dict[Any, Any]:
    """The attributes in an object's record."""
    if not isinstance(value, Made) or type(value.state) is not dict:
        raise BadField(f"{what} is {shown(value)}, not an object")
    return value.state


def array_of(what: str, value: Any) -> npt.NDArray[Any]:
    """The array that a record describes."""
    if is_made(value, "jax._src.array._reconstruct_array") and len(value.arguments) >= 3:
        return _from_state(what, value.arguments[2])
    if is_made(value, *(f"{module}.multiarray._reconstruct" for module in NUMPY)):
        return _from_state(what, value.state)
    if is_made(value, *(f"{module}.numeric._frombuffer" for module in NUMPY)) and len(value.arguments) == 4:
        data, dtype, shape, order = value.arguments
        return _array(what, data, dtype, shape, order == "F")
    if is_made(value, *(f"{module}.multiarray.scalar" for module in NUMPY)) and len(value.arguments) == 2:
        return _array(what, value.arguments[1], value.arguments[0], (), False)
    raise BadField(f"{what} is {shown(value)}, not an array")


def numbers(what: str, value: Any) -> DoubleArray:
    """The finite numbers of an array or of one number."""
    array = np.asarray(value) if type(value) in (int, float) else value
    array = array if isinstance(array, np.ndarray) else array_of(what, array)
    if array.dtype.kind not in "fiu":
        raise BadField(f"{what} holds {array.dtype}, not numbers")
    with np.errstate(invalid="ignore"):  # of NaN, which is refused
        found: DoubleArray = array.astype(np.float64)
    if not np.isfinite(found).all():
        raise BadField(f"{what} holds values that are not finite")
    return found


def _from_state(what: str, state: Any) -> npt.NDArray[Any]:
    """From what an array is told after it was made: version, shape, type, order, bytes."""
    if type(state) is not tuple or len(state) != 5:
        raise BadField(f"{what} is no whole array")
    return _array(what, state[4], state[2], state[1], state[3] is True)


def _array(what: str, data: Any, dtype: Any, shape: Any, fortran: bool) -> npt.NDArray[Any]:
    if type(data) not in (bytes, bytearray):
        raise BadField(f"{what} is no whole array")
    kind = _dtype(what, dtype)
    axes = fields.items(f"the shape of {what}", shape, 0, MOST_AXES)
    sizes = [fields.whole(f"an axis of {what}", axis, 0, 2**32) for axis in axes]
    if math.prod(sizes) * kind.itemsize != len(data):
        raise BadField(f"{what} does not have the bytes of its shape")
    return np.frombuffer(data, kind).reshape(sizes, order="F" if fortran else "C")


def _dtype(what: str, value: Any) -> np.dtype[Any]:
    code = value.arguments[0] if is_made(value, "numpy.dtype") and value.arguments else None
    if type(code) is not str or code not in DTYPES:
        raise BadField(f"{what} holds {shown(code)}, not numbers that can be read")
    if type(value.state) is tuple and len(value.state) > 1 and value.state[1] == ">":
        raise BadField(f"{what} has its bytes in big-endian order")
    return DTYPES[code]
