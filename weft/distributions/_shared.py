"""What distributions share: parameters as tensors of one shape, shapes, draws without gradient."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from types import MappingProxyType
from typing import Any

import numpy as np

from ..core.dtype import default_float, is_float, promote
from ..core.errors import ArgumentError, ShapeError
from ..core.op import F
from ..core.operands import tensor_from
from ..core.shape import Shape, as_shape, broadcast
from ..core.tensor import Tensor
from ..ops.random import draw

TINY = 1.1754944e-38  # the smallest normal number of float32


def as_tensor(value: Any, what: str = "value") -> Tensor:
    """Return an argument as a tensor."""
    return value if isinstance(value, Tensor) else tensor_from(value, what)


def as_floats(value: Any, what: str = "a parameter") -> Tensor:
    """Return an argument as a tensor of floats: integers in the default dtype."""
    tensor = as_tensor(value, what)
    return tensor if is_float(tensor.dtype) else F.cast(tensor, default_float())


def constrained(**constraints: Any) -> Mapping[str, Any]:
    """Return what parameters of a class must satisfy, by their names."""
    return MappingProxyType(constraints)


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Return parameters as tensors of one shape and of the floats' dtype; numbers take theirs."""
    dtypes = [v.dtype for v in values if isinstance(v, (Tensor, np.ndarray)) and is_float(v.dtype)]
    dtype = reduce(promote, dtypes) if dtypes else default_float()
    tensors = [_in_dtype(as_tensor(value, "a parameter"), dtype) for value in values]
    shape = broadcast(*(tuple(t.shape) for t in tensors))
    return tuple(t if tuple(t.shape) == shape else F.broadcast_to(t, shape) for t in tensors)


def _in_dtype(x: Tensor, dtype: Any) -> Any:
    return x if x.dtype == dtype else F.cast(x, dtype)


def one_of(probs: Any, logits: Any, owner: str) -> tuple[str, Any]:
    """Return which of two parameters was given, and it."""
    if (probs is None) == (logits is None):
        raise ArgumentError(f"{owner}: give either probs or logits, and not both")
    return ("probs", probs) if logits is None else ("logits", logits)


def as_sizes(shape: Any) -> Shape:
    """Return a sample shape as a tuple."""
    return as_shape(tuple(shape) if not isinstance(shape, int) else (shape,), "sample_shape")


def check_batch(batch: Shape, wanted: Shape, owner: str) -> None:
    """Raise unless a batch shape can be expanded to another."""
    if broadcast(batch, wanted) != wanted:
        raise ShapeError(f"{owner}: a batch of shape {batch} does not expand to {wanted}")


def sum_last(x: Any, count: int) -> Any:
    """Return x summed over its last axes."""
    return x if count == 0 else F.sum(x, tuple(range(x.ndim - count, x.ndim)))


def standard_normal(shape: Shape, like: Any) -> Tensor:
    """Draw standard normal numbers in the dtype of a parameter."""
    return draw.randn(shape, dtype=like.dtype)


def unit_uniform(shape: Shape, like: Any) -> Tensor:
    """Draw from (0, 1): the ends, at which quantiles are infinite, are left out."""
    u = draw.rand(shape, dtype=like.dtype)
    step = float(np.finfo(like.dtype).eps) / 2 if like.dtype.kind == "f" else 2.0**-9
    inside: Tensor = F.clip(u, step / 2, 1 - step)
    return inside


def fine_uniform(shape: Shape) -> Tensor:
    """Draw from [0, 1) with 53 bits, for quantiles of discrete distributions."""
    return draw.rand(shape, dtype="float64")


def gamma_draw(shape: Shape, alpha: Any) -> Tensor:
    """Draw from the gamma distribution; gradients reach alpha (Figurnov et al. 2018)."""
    alpha = F.broadcast_to(alpha, shape)
    drawn: Tensor = F.moved_gamma(alpha, draw.gamma(F.stop_gradient(alpha), shape=shape))
    return drawn


def clamp_probs(probs: Any) -> Any:
    """Return probabilities as far from 0 and 1 as rounding is."""
    eps = float(np.finfo(probs.dtype).eps) if probs.dtype.kind == "f" else 2.0**-8
    return F.clip(probs, eps, 1 - eps)


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Return probabilities of logits: of one event, or of categories along the last axis."""
    return F.sigmoid(logits) if is_binary else F.softmax(logits, -1)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Return logits of probabilities: of one event, or of categories along the last axis."""
    clamped = clamp_probs(probs)
    return F.log(clamped) - F.log1p(-clamped) if is_binary else F.log(clamped)


def enumerated(count: int, batch_shape: Shape, dtype: Any, expand: bool) -> Any:
    """Return 0 ... count - 1 along a new first axis before those of a batch."""
    values = F.reshape(F.cast(F.iota(count), dtype), (count, *(1,) * len(batch_shape)))
    return F.broadcast_to(values, (count, *batch_shape)) if expand else values
