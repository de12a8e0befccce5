"""Tensors of one number: zeros, ones, and others."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.op import F
from ..ops.creation import full as make_full
from .array_ops import shape_tensor
from .dtypes import as_dtype
from .environment import whole_numbers
from .recording import Tensor, convert_to_tensor, record


def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
    """Return a tensor in which all elements are the same."""

    def compute(to: Any, x: Any) -> Any:
        return F.broadcast_to(x, whole_numbers(to))

    x = convert_to_tensor(value)
    made: Tensor = record(
        "Fill", compute, [shape_tensor(dims), x], static=[0], name=name, dtype=x.dtype
    )
    return made


def _filled(public: str, value: int) -> Any:
    def called(shape: Any, dtype: Any = "float32", name: str | None = None) -> Tensor:
        kind = as_dtype(dtype)

        def compute(to: Any) -> Any:
            sizes = whole_numbers(to)
            if kind.is_integer and all(isinstance(s, int) for s in sizes):
                return np.full(sizes, value, kind.dtype)
            return make_full(sizes, value, dtype=kind.dtype)

        made: Tensor = record(
            public.capitalize(),
            compute,
            [shape_tensor(shape)],
            static=[0],
            name=name or public,
            dtype=kind,
        )
        return made

    called.__name__ = called.__qualname__ = public
    called.__doc__ = f"Return a tensor of {public}."
    return called


zeros, ones = _filled("zeros", 0), _filled("ones", 1)


def zeros_like(
    tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Return zeros in the shape of a tensor."""
    return _like(tensor, 0, dtype, name or "zeros_like")


def ones_like(
    tensor: Any, dtype: Any = None, name: str | None = None, optimize: bool = True
) -> Tensor:
    """Return ones in the shape of a tensor."""
    return _like(tensor, 1, dtype, name or "ones_like")


def _like(tensor: Any, value: int, dtype: Any, name: str) -> Tensor:
    x = convert_to_tensor(tensor)
    kind = x.dtype if dtype is None else as_dtype(dtype)
    make = F.ones_like if value else F.zeros_like
    made: Tensor = record(
        "OnesLike" if value else "ZerosLike",
        lambda x: F.cast(make(x), kind.dtype),
        [x],
        name=name,
        dtype=kind,
        differentiable=False,
    )
    return made
