"""Operands from what programs give: numbers, arrays, and nested lists of them or of tensors.

A list that holds tensors is stacked, by a recorded operation: gradients flow to the tensors in it,
and in a graph it is a value like any other. All other data becomes a constant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np

from . import dtype as dt
from .dim import Dim, may_equal
from .dim.number import RealDim
from .errors import ArgumentTypeError, DTypeError, ShapeError
from .masked import check_unmasked, plain_array
from .tensor import Constant, Tensor, constant

Number = bool | int | float


# -- tensors --------------------------------------------------------------------------------------


def tensor_from(data: Any, what: str, dtype: dt.DType | None = None) -> Tensor:
    """Return data as a tensor, in the dtype that it implies or in a given one."""
    data = _opened(data)
    if not holds_tensors(data):
        return constant(array_from(data, what) if dtype is None else array_in(data, dtype, what))
    if isinstance(data, Tensor) and dtype is None:
        return data
    return _stacked(data, nest_dtype(data, what) if dtype is None else dtype, what)


def holds_tensors(data: Any) -> bool:
    """Tell whether data is a tensor or a nest of lists with one in it (or a size of a graph)."""
    return _holds(_opened(data), (Tensor, Dim))


def holds_floats(data: Any) -> bool:
    """Tell whether data is a nest of lists with a floating-point tensor in it."""
    return any(isinstance(leaf, Tensor) and dt.is_float(leaf.dtype) for leaf in _leaves(data))


def _opened(data: Any) -> Any:
    """Return what an array stands for: one of objects for nested lists, a recorded one a tensor."""
    if not isinstance(data, np.ndarray):
        return data
    if data.dtype == object:
        return data.tolist()
    return getattr(data, "recorded", data)


def _stacked(data: Any, dtype: dt.DType, what: str) -> Tensor:
    data = _opened(data)
    if not _holds(data, (Tensor, Dim)):
        return constant(array_in(data, dtype, what))
    if not isinstance(data, (list, tuple)):
        tensor: Tensor = to_dtype(data, dtype)
        if tensor.weak:  # a number of a graph, which would take the dtype of what it meets
            tensor = find("reshape")(tensor, ())
        return tensor
    rows = [_stacked(item, dtype, what) for item in data]
    if not all(may_equal(row.shape, rows[0].shape) for row in rows):
        raise _ragged(data, what)
    stacked: Tensor = find("stack")(rows, 0)
    return stacked


def nest_dtype(data: Any, what: str) -> dt.DType:
    """Return the dtype in which the tensors, arrays and weak numbers of a nest meet."""
    leaves = list(_leaves(data))
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, (np.ndarray, np.generic)):
            leaves[i] = constant(array_from(leaf, what))
        elif not isinstance(leaf, (Tensor, Dim, bool, int, float)):
            raise _no_numbers(data, what)
    if all(not isinstance(leaf, Tensor) or leaf.weak for leaf in leaves):
        found = [
            common_dtype([leaf]) for leaf in leaves
        ]  # as a list of numbers, by the widest kind
        return max(found, key=lambda dtype: "biuf".index(dtype.kind), default=dt.default_float())
    return common_dtype(leaves)


def _leaves(data: Any) -> Iterator[Any]:
    data = _opened(data)
    if not isinstance(data, (list, tuple)):
        yield data
        return
    for item in data:
        yield from _leaves(item)


def _holds(data: Any, kinds: tuple[type, ...]) -> bool:
    if not isinstance(data, (list, tuple)):
        return isinstance(data, kinds)
    types = set(map(type, data))  # few, where the items may be many
    if any(issubclass(t, kinds) for t in types):
        return True
    if not any(issubclass(t, (list, tuple)) for t in types):
        return False
    return any(_holds(item, kinds) for item in data)


# -- arrays ---------------------------------------------------------------------------------------


def array_from(data: Any, what: str) -> np.ndarray[Any, Any]:
    """Return array-like data as a fresh array of a supported dtype; lists take default dtypes."""
    if isinstance(data, (np.ndarray, np.generic)):
        check_unmasked(data, what)
        array = np.array(data, data.dtype.newbyteorder("="))
        dt.check_dtype(array.dtype)
        return array
    plain = _plain(data, what)
    try:
        array = np.array(plain)
    except ValueError:
        raise _ragged(data, what) from None
    if array.dtype == object and all(isinstance(v, int) for v in array.flat):
        raise DTypeError(f"{what} holds an integer beyond 64 bits. Received: {data!r:.80}")
    if array.dtype.kind not in "biuf":
        raise _no_numbers(data, what)
    has_dtype = _holds(plain, (np.ndarray, np.generic))
    if array.size == 0 or (array.dtype == dt.float64 and not has_dtype):
        with np.errstate(over="ignore"):  # as everywhere: beyond the largest number is infinity
            return array.astype(dt.default_float())  # Python floats carry no dtype of their own
    return array


def _plain(data: Any, what: str) -> Any:
    """Return data with the values of its tensors, and arrays of no subclass, in it."""
    if isinstance(data, Tensor):
        return data.numpy()
    if isinstance(data, (list, tuple)) and _holds(data, (Tensor, np.ndarray)):
        return [_plain(item, what) for item in data]
    return plain_array(data, what) if isinstance(data, np.ndarray) else data


def array_in(data: Any, dtype: dt.DType, what: str) -> np.ndarray[Any, Any]:
    """Return array-like data in a dtype; Python numbers must fit in it if it is an integer one."""
    array = array_from(data, what)
    if isinstance(data, (np.ndarray, np.generic)):
        return array.astype(dtype)
    if dt.is_integer(dtype):
        try:
            return np.array(_plain(data, what), dtype)
        except (OverflowError, ValueError) as error:
            raise DTypeError(
                f"{what} does not fit in {dtype}: {error}. Received: {data!r:.60}"
            ) from None
    # Straight from the Python floats: by way of the default float, digits would be lost.
    exact = np.array(_plain(data, what), np.float64) if dt.is_float(array.dtype) else array
    with np.errstate(over="ignore"):
        return exact.astype(dtype)


def _ragged(data: Any, what: str) -> ShapeError:
    return ShapeError(
        f"{what} is ragged: rows of a nested list must have equal lengths. Received: {data!r:.80}"
    )


def _no_numbers(data: Any, what: str) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"{what} must hold numbers. Received: {type(data).__name__} {data!r:.80}"
    )


def scalar_array(scalar: Number, dtype: dt.DType) -> np.ndarray[Any, Any]:
    """Return a Python number as a 0-d array of a dtype that must be able to hold it."""
    try:
        return np.array(scalar, dtype)
    except OverflowError:
        shown = (
            f"{scalar}" if abs(scalar) < 10**40 else f"of {int(math.log10(abs(scalar))) + 1} digits"
        )
        raise DTypeError(f"the Python integer {shown} does not fit in {dtype}") from None


def is_number(value: Any, number: Number) -> bool:
    """Tell whether an option is a certain number itself, not a tensor that may equal it."""
    return isinstance(value, (int, float, np.number)) and bool(value == number)


# -- dtypes ----------------------------------------------------------------------------------------


def common_dtype(operands: Sequence[Any]) -> dt.DType:
    """Return the dtype in which tensors and weak Python numbers meet."""
    dtypes = [x.dtype for x in operands if isinstance(x, Tensor) and not x.weak]
    scalars = [x for x in operands if isinstance(x, (bool, int, float))]
    scalars += [x.dtype.type(1).item() for x in operands if isinstance(x, Tensor) and x.weak]
    scalars += [1.0 if isinstance(x, RealDim) else 1 for x in operands if isinstance(x, Dim)]
    if not dtypes:
        return reduce(dt.promote, map(dt.scalar_dtype, scalars)) if scalars else dt.default_float()
    return reduce(dt.promote_weak, scalars, reduce(dt.promote, dtypes))


def to_dtype(x: Any, dtype: dt.DType) -> Any:
    """Return a tensor or a number as a tensor of a dtype, by a recorded cast; None stays None.

    A literal stays one, which goes where the tensors beside it are.
    """
    if isinstance(x, Tensor):
        if x.dtype == dtype:
            return x
        if x.__class__ is Constant:
            return constant(x._value.astype(dtype))
        return find("cast")(x, dtype)
    if isinstance(x, Dim):
        return find("size_value")(x, dtype)
    return x if x is None else constant(scalar_array(x, dtype))


def find(name: str) -> Any:
    """Return the public function of an operator by name (op.py sits above this module)."""
    return _find_operator(name)


_find_operator: Callable[[str], Any]


def use_operators(find_operator: Callable[[str], Any]) -> None:
    """Let this module look operators up; called once by op.py."""
    global _find_operator  # noqa: PLW0603  (one assignment at import, instead of a cycle)
    _find_operator = find_operator
