"""What a value of a graph is fed with, as an array of its dtype and of a shape it can have.

Feeds are cast within a kind, if their values fit: floats are rounded, integers keep their value.
Python numbers, which have no dtype of their own, may also be integers where floats are wanted.
Other kinds are refused: to cut a fraction off, or to count truth values, is for the user to say.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.device_array import is_placed
from ..core.dim import Dim
from ..core.dtype import Array, DType, float64, is_float, is_integer
from ..core.errors import ArgumentTypeError, DTypeError, ShapeError
from ..core.masked import plain_array
from ..core.operands import array_from, array_in
from ..core.tensor import Tensor
from .node import Value, type_text
from .symbol import Symbol


def as_feed(value: Value, given: Any, what: str) -> Array:
    """Return what a value is fed with as an array of its dtype and a shape it can have."""
    if isinstance(given, Symbol):
        raise ArgumentTypeError(
            f"{what}: {value.name} must be fed with a value. Received: {given!r}"
        )
    held = given._value if isinstance(given, Tensor) else given
    if is_placed(held):
        return _on_device(value, held, what)
    if not isinstance(given, (Tensor, np.ndarray)):
        array = _from_numbers(value, given, what)
    else:  # code takes no subclasses
        array = (
            Tensor.numpy(given)  # a face may refuse it
            if isinstance(given, Tensor)
            else plain_array(given, f"{what}: the value for {value.name}")
        )
        _check_kind(value, array.dtype, f"dtype {array.dtype}", what)
    if array.dtype != value.dtype:
        array = _cast(value, array, what)
    _check_shape(value, array, what)
    return array


def _on_device(value: Value, given: Any, what: str) -> Array:
    """Return a value of a device, cast there if need be: nobody looks whether elements fit."""
    if given.dtype == value.dtype and given.shape == value.type.shape:  # as nearly always
        as_it_is: Array = given
        return as_it_is
    _check_kind(value, given.dtype, f"dtype {given.dtype}", what)
    _check_shape(value, given, what)
    fed: Array = given.astype(value.dtype)  # a DeviceArray, in an array's place
    return fed


def _from_numbers(value: Value, given: Any, what: str) -> Array:
    """Return Python's numbers, and lists of them, as an array to be cast."""
    name = f"{what}: the value for {value.name}"
    array = array_from(given, name)
    if not array.size:
        return array.astype(value.dtype)
    if is_float(value.dtype) and is_integer(array.dtype):
        return array
    _check_kind(value, array.dtype, f"{given!r:.60}, which is {array.dtype}", what)
    return array_in(given, float64, name) if is_float(array.dtype) else array  # all digits


def _check_kind(value: Value, dtype: DType, shown: str, what: str) -> None:
    """Raise unless a dtype is of the kind that a value has: bool, integer or float."""
    if _kind(dtype) != _kind(value.dtype):
        advice = _advice(value.dtype)
        raise DTypeError(f"{_expected(value, what)} Received: {shown}; {advice}")


def _kind(dtype: DType) -> str:
    return "f" if is_float(dtype) else "i" if is_integer(dtype) else dtype.kind


def _advice(wanted: DType) -> str:
    if is_integer(wanted):
        return f"say how to make integers of it, e.g. np.round(value).astype({wanted.name!r})"
    if is_float(wanted):
        return f"convert it, e.g. value.astype({wanted.name!r})"
    return "say which values are true, e.g. value != 0"


def _cast(value: Value, array: Array, what: str) -> Array:
    """Return an array in the dtype of a value; raise if some number does not fit in it."""
    wanted = value.dtype
    with np.errstate(all="ignore"):
        cast = array.astype(wanted)
    lost = _beyond_integers(array, wanted) if is_integer(wanted) else _beyond_floats(array, cast)
    if lost is not None:
        raise DTypeError(
            f"{_expected(value, what)} Received: {lost}, which does not fit in {wanted}; "
            "clip what is fed, or give the placeholder a wider dtype"
        )
    return cast


def _beyond_integers(array: Array, dtype: DType) -> int | None:
    """Return a value that an integer dtype cannot hold, if there is one."""
    limits = np.iinfo(dtype)
    extremes = [int(array.min()), int(array.max())] if array.size else []
    return next((n for n in extremes if not limits.min <= n <= limits.max), None)


def _beyond_floats(array: Array, cast: Array) -> Any:
    """Return a finite value that a cast has made infinite, if there is one."""
    lost = np.isinf(cast) & np.isfinite(array)
    return array[lost][0] if lost.any() else None


def _expected(value: Value, what: str) -> str:
    return f"{what}: {value.name} must be fed with {type_text(value.type)}."


def _check_shape(value: Value, array: Array, what: str) -> None:
    """Raise unless an array has a shape that a value of the graph can have."""
    expected = value.type.shape
    fits = len(array.shape) == len(expected) and all(
        isinstance(size, Dim) or size == given
        for size, given in zip(expected, array.shape, strict=True)
    )
    if not fits:
        raise ShapeError(f"{_expected(value, what)} Received: shape {array.shape}")
