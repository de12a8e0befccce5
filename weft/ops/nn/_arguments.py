"""Checks shared by the network functions: operands, axes, reductions and shapes.

Functions here take the name of the public function first and begin their messages with it.
Dimensions may be None (unknown until the graph runs); only known ones are compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtype as dt
from ...core import tensor as tensors
from ...core.dim import may_equal, surely_less
from ...core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from ...core.op import F
from ...core.shape import Shape, as_int, broadcast
from ...core.tensor import Tensor
from .._operands import operand

REDUCTIONS = ("mean", "sum", "none")


def operands(fn: str, **named: Any) -> list[Any]:
    """Return several arguments as something to compute with; None stays None."""
    return [None if x is None else operand(fn, name, x) for name, x in named.items()]


def constant(value: float, dtype: dt.DType) -> Tensor:
    """Return a number as a tensor: operators take it faster than a number to be converted."""
    return tensors.constant(np.array(value, dtype))


# -- reductions -------------------------------------------------------------------------------


def check_reduction(fn: str, reduction: Any, allowed: tuple[str, ...] = REDUCTIONS) -> None:
    """Raise unless `reduction` names one of the ways to reduce a loss."""
    if reduction not in allowed:
        shown = ", ".join(map(repr, allowed[:-1])) + f" or {allowed[-1]!r}"
        raise ArgumentError(f"{fn}: reduction must be {shown}. Received: {reduction!r}")


def reduce_loss(fn: str, loss: Any, reduction: str) -> Tensor:
    """Return the mean or sum of a loss, or its elements as they are."""
    check_reduction(fn, reduction)
    if reduction == "mean":
        loss = F.mean(loss)
    elif reduction == "sum":
        loss = F.sum(loss)
    return loss


def weighted(loss: Any, weight: Any) -> Any:
    """Return the loss times an optional weight."""
    return loss if weight is None else loss * weight


# -- shapes and values -------------------------------------------------------------------------


def same_dims(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Tell whether two shapes agree wherever both are known."""
    return a == b or may_equal(tuple(a), tuple(b))


def of_shape(x: Any, shape: tuple[Any, ...]) -> Any:
    """Return x; unless its shape surely is the given one, a graph checks that when it runs."""
    return x if tuple(x.shape) == tuple(shape) else F.ensure_shape(x, tuple(shape))


def check_same_shape(fn: str, input: Any, target: Any, names: str = "input and target") -> Any:
    """Return the second of two operands of one shape; raise: a loss never broadcasts silently."""
    if input.shape == target.shape:
        return target
    if not same_dims(input.shape, target.shape):
        raise ShapeError(
            f"{fn}: {names} must have the same shape. "
            f"Received: {input.shape} and {target.shape}{_shape_hint(input.shape, target.shape)}"
        )
    return of_shape(target, input.shape)


def pair(fn: str, input: Any, target: Any) -> tuple[Any, Any]:
    """Return input and target of a loss, which must have one shape."""
    input, target = operands(fn, input=input, target=target)
    return input, check_same_shape(fn, input, target)


def _shape_hint(a: tuple[Any, ...], b: tuple[Any, ...]) -> str:
    short, long = sorted((a, b), key=len)
    if len(short) < len(long) and tuple(d for d in long if d != 1) == short:
        return f"; remove the axis of size 1 with x.reshape({short}), or add it with x[..., None]"
    return "; a loss does not broadcast: use broadcast_to if that is meant"


def along_channels(vector: Any, x: Any) -> Any:
    """Return a vector over channels with trailing axes, so that it broadcasts along axis 1."""
    if vector is None or x.ndim <= 2:
        return vector
    return F.reshape(vector, (vector.shape[0], *(1,) * (x.ndim - 2)))


def broadcast_shapes(fn: str, *operands: Any) -> Shape:
    """Return the shape that operands broadcast to."""
    shapes = [tuple(x.shape) for x in operands]
    try:
        return broadcast(*shapes)
    except ShapeError as error:
        raise ShapeError(f"{fn}: {error}", **error.facts) from None


def check_ndim(fn: str, name: str, x: Any, least: int, layout: str) -> None:
    """Raise unless an operand has at least so many dimensions."""
    if x.ndim < least:
        raise ShapeError(f"{fn}: {name} must have shape {layout}. Received: {x.shape}")


def check_vector(fn: str, name: str, x: Any, size: Any, what: str = "channels") -> None:
    """Raise unless an optional operand is a vector with one element per channel."""
    if x is not None and not same_dims(tuple(x.shape), (size,)):
        raise ShapeError(
            f"{fn}: {name} must have shape ({size},) for {size} {what}. Received: {x.shape}"
        )


def check_integers(fn: str, name: str, x: Any, hint: str) -> None:
    """Raise unless an operand holds integers."""
    if not dt.is_integer(x.dtype):
        raise DTypeError(f"{fn}: {name} must hold integers; {hint}. Received: {x.dtype}")


def check_floats(fn: str, name: str, x: Any) -> None:
    """Raise unless an operand holds floating-point numbers."""
    if not dt.is_float(x.dtype):
        raise DTypeError(
            f"{fn}: {name} must hold floating-point numbers; cast it with x.to(wf.float32). "
            f"Received: {x.dtype}"
        )


def check_number(fn: str, name: str, value: Any, *, above: float | None = None) -> float:
    """Return a real-number option as a float; raise if it is none, or not above a bound."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ArgumentTypeError(f"{fn}: {name} must be a number. Received: {value!r}")
    if above is not None and not value > above:
        raise ArgumentError(f"{fn}: {name} must be above {above:g}. Received: {value!r}")
    return float(value)


def check_not_negative(fn: str, name: str, value: Any) -> float:
    """Return a real-number option that must not be negative as a float."""
    number = check_number(fn, name, value)
    if not number >= 0:
        raise ArgumentError(f"{fn}: {name} must not be negative. Received: {value!r}")
    return number


def check_probability(fn: str, p: Any, name: str = "p") -> float:
    """Return a probability option as a float in [0, 1]."""
    number = check_number(fn, name, p)
    if not 0 <= number <= 1:
        raise ArgumentError(f"{fn}: {name} must lie in [0, 1]. Received: {p!r}")
    return number


def check_positive_int(fn: str, name: str, value: Any) -> int:
    """Return an option that must be a positive integer."""
    number = as_int(value, f"{fn}: {name}")
    if surely_less(number, 1):
        raise ArgumentError(f"{fn}: {name} must be at least 1. Received: {number}")
    return number
