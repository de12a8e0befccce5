"""Dtypes under PyTorch's names, their limits, and how they meet in an operation.

What differs from Weft's own rule is that a tensor without dimensions gives way to one with
dimensions, as a Python number does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..core import dtype as dt
from ..core.op import F
from ..core.tensor import Tensor
from .dtypes import BFLOAT16, dtype, named

_BEHIND = {
    "bool": dt.bool_,
    "uint8": dt.uint8,
    "uint16": dt.uint16,
    "uint32": dt.uint32,
    "uint64": dt.uint64,
    "int8": dt.int8,
    "int16": dt.int16,
    "int32": dt.int32,
    "int64": dt.int64,
    "float16": dt.float16,
    "float32": dt.float32,
    "float64": dt.float64,
    "short": dt.int16,
    "int": dt.int32,
    "long": dt.int64,
    "half": dt.float16,
    "float": dt.float32,
    "double": dt.float64,
}
DTYPES = {**{name: named(behind) for name, behind in _BEHIND.items()}, "bfloat16": BFLOAT16}
# What PyTorch calls a tensor of a dtype in its messages.
TYPE_NAMES = {
    dt.bool_: "Bool",
    dt.uint8: "Byte",
    dt.int8: "Char",
    dt.int16: "Short",
    dt.int32: "Int",
    dt.int64: "Long",
    dt.float16: "Half",
    dt.float32: "Float",
    dt.float64: "Double",
}


def type_name(dtype: dt.DType) -> str:
    """Return what PyTorch calls a dtype in messages: Float, Long ..."""
    return TYPE_NAMES.get(dtype, dtype.name)


def category(dtype: dt.DType) -> int:
    """Return which of boolean, integral and floating a dtype is, as a rank."""
    return 0 if dtype.kind == "b" else 1 if dtype.kind in "iu" else 2


def result_type(*operands: Any) -> dtype:
    """Return the dtype in which PyTorch computes with tensors and numbers.

    >>> from weft import torch
    >>> torch.result_type(torch.ones(2, dtype=torch.int32), 1.5)
    torch.float32
    """
    return named(met_type(*operands))


def met_type(*operands: Any) -> dt.DType:
    """Return the same as NumPy's object, which operators take."""
    dims = [x.dtype for x in operands if isinstance(x, Tensor) and x.ndim]
    zeros = [x.dtype for x in operands if isinstance(x, Tensor) and not x.ndim]
    numbers = [dt.scalar_dtype(x) for x in operands if isinstance(x, (bool, int, float))]
    found: dt.DType | None = None
    for dtypes in (dims, zeros, numbers):
        if not dtypes:
            continue
        joined = _joined(dtypes)
        if found is None:
            found = joined
        elif category(joined) > category(found):
            found = joined if dtypes is numbers else dt.promote(found, joined)
    return dt.default_float() if found is None else found


def _joined(dtypes: Iterable[dt.DType]) -> dt.DType:
    first, *others = dtypes
    for other in others:
        first = dt.promote(first, other)
    return first


def aligned(*operands: Any) -> tuple[Any, ...]:
    """Return operands of which those without dimensions have taken the dtype of the others."""
    tensors = [x for x in operands if isinstance(x, Tensor)]
    if len({x.dtype for x in tensors}) < 2 or len({x.ndim == 0 for x in tensors}) < 2:
        return operands
    wanted = met_type(*operands)
    return tuple(
        F.cast(x, wanted) if isinstance(x, Tensor) and not x.ndim and x.dtype != wanted else x
        for x in operands
    )


def promote_types(a: Any, b: Any) -> dtype:
    """Return the smallest dtype that values of two dtypes can be turned into."""
    return named(dt.promote(dt.as_dtype(a), dt.as_dtype(b)))


def can_cast(source: Any, target: Any) -> bool:
    """Tell whether PyTorch lets values of a dtype be written into a tensor of another."""
    return category(dt.as_dtype(source)) <= category(dt.as_dtype(target))


def check_cast(source: dt.DType, target: dt.DType) -> None:
    """Raise if values of a dtype are not written into a tensor of another, in PyTorch's words."""
    if not can_cast(source, target):
        raise RuntimeError(
            f"result type {type_name(source)} can't be cast to the desired output type "
            f"{type_name(target)}"
        )


class finfo:  # noqa: N801  (PyTorch's name)
    """The limits of a floating-point dtype.

    >>> from weft import torch
    >>> torch.finfo(torch.float32).max
    3.4028234663852886e+38
    """

    def __init__(self, dtype: Any = None) -> None:
        self._dtype = dt.default_float() if dtype is None else dt.as_dtype(dtype)
        if not dt.is_float(self._dtype):
            raise TypeError(
                "torch.finfo() requires a floating point input type. Use torch.iinfo to handle "
                "'torch.finfo'"
            )
        limits = dt.float_limits(self._dtype)
        self.bits = self._dtype.itemsize * 8
        self.eps, self.max, self.min = (float(getattr(limits, n)) for n in ("eps", "max", "min"))
        self.tiny = self.smallest_normal = float(limits.tiny)
        self.resolution = float(limits.resolution)
        self.dtype = self._dtype.name

    def __repr__(self) -> str:
        return (
            f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
            f"eps={self.eps:g}, smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, "
            f"dtype={self.dtype})"
        )


class iinfo:  # noqa: N801  (PyTorch's name)
    """The limits of an integer dtype.

    >>> from weft import torch
    >>> torch.iinfo(torch.int32).max
    2147483647
    """

    def __init__(self, dtype: Any) -> None:
        wanted = dt.as_dtype(dtype)
        if not dt.is_integer(wanted):
            raise TypeError(
                "torch.iinfo() requires an integer input type. Use torch.finfo to handle "
                "'torch.iinfo'"
            )
        limits = np.iinfo(wanted)
        self.bits, self.min, self.max, self.dtype = limits.bits, limits.min, limits.max, wanted.name

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"


def as_floats(x: Any, dtype: Any = None) -> Any:
    """Return a tensor of integers as one of floats; others as they are."""
    wanted = dt.to_float(x.dtype) if dtype is None else dt.as_dtype(dtype)
    return x if x.dtype == wanted else F.cast(x, wanted)
