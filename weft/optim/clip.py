"""Clip gradients in place of what backward left: by their joint norm or by value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial, reduce
from operator import add, mul
from typing import Any

import numpy as np

from ..core.errors import ArgumentError, ArgumentTypeError, GradientError
from ..core.modes import current_recorder
from ..core.op import F
from ..core.row_sparse import as_array, kept_values, with_kept_values
from ..core.tensor import Tensor, wrap
from .placed_step import is_elsewhere


class SpreadParameter:
    """A parameter of which each process has a part; sums over elements are those of all parts."""

    __slots__ = ()

    def of_all_parts(self, x: Tensor, how: str) -> Tensor:
        """Return the sum ("sum") or the largest ("max") of a number of each part."""
        raise NotImplementedError


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    *,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scale all gradients so that their joint norm is at most `max_norm`; return the norm before.

    Row-sparse gradients count as what they stand for, each row's values added up; parts of what
    several processes have (ZeRO) count with those of the others.

    >>> import weft as wf
    >>> w = wf.tensor([0.0, 0.0], requires_grad=True)
    >>> (w * wf.tensor([3.0, 4.0])).sum().backward()
    >>> clip_grad_norm_([w], 1.0)
    tensor(5.)
    >>> [round(g, 4) for g in w.grad.tolist()]
    [0.6, 0.8]
    """
    params = _with_grads(parameters)
    limit, order = _positive("max_norm", max_norm), _positive("norm_type", norm_type)
    if params and (current_recorder() is not None or any(map(_has_no_value_here, params))):
        return _clip_recorded(params, limit, order, error_if_nonfinite)
    total = total_norm((as_array(kept_values(p.grad)) for p in params), order)
    if error_if_nonfinite and not math.isfinite(total):
        raise GradientError(f"clip_grad_norm_: the {order}-norm of the gradients is {total}")
    # PyTorch's constant: a zero norm gives no division by zero.
    factor = limit / (total + 1e-6)
    if not factor >= 1.0:  # so that a NaN reaches the gradients, where it can be seen
        with np.errstate(all="ignore"):
            for p in params:
                p.grad = with_kept_values(p.grad, partial(_scaled, factor=factor))
    return wrap(np.asarray(total, params[0].grad.dtype if params else np.float32))


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Bound each element of the gradients to [-clip_value, clip_value]."""
    limit = _positive("clip_value", clip_value)
    for p in _with_grads(parameters):
        p.grad = with_kept_values(p.grad.detach(), lambda g: F.clip(g, -limit, limit))


def _scaled(g: Tensor, factor: float) -> Tensor:
    return wrap(np.asarray(g._value * factor, g.dtype))


def _has_no_value_here(p: Tensor) -> bool:
    return isinstance(p, SpreadParameter) or is_elsewhere(p)


def _clip_recorded(params: list[Tensor], limit: float, order: float, strict: bool) -> Tensor:
    """Do what `clip_grad_norm_` does where gradients have no value here: recorded, on a device."""
    grads = [p.grad.detach() for p in params]
    clipped, total = clipped_together(grads, limit, order, owners=params)
    if strict and not bool(F.isfinite(total)):
        raise GradientError(f"clip_grad_norm_: the {order}-norm of the gradients is {total.item()}")
    for p, g in zip(params, clipped, strict=True):
        p.grad = g
    norm: Tensor = F.cast(total, grads[0].dtype)
    return norm


def clipped_together(
    grads: list[Any], max_norm: float, order: float = 2.0, *, owners: Sequence[Tensor]
) -> tuple[list[Any], Any]:
    """Return symbolic gradients, scaled so that their joint norm is at most max_norm, and it.

    owners   the parameters that they are of
    """
    limit = _positive("max_norm", max_norm)
    wide = [F.cast(kept_values(g), np.dtype(np.float64)) for g in grads]
    narrow = all(g.dtype.itemsize < 8 for g in grads)
    total = _joint_norm(wide, order, owners, narrow=narrow)
    factor = limit / (total + 1e-6)
    scale = F.where(factor >= 1.0, 1.0, factor)
    return [with_kept_values(g, partial(mul, F.cast(scale, g.dtype))) for g in grads], total


def _joint_norm(grads: list[Any], order: float, owners: Sequence[Tensor], *, narrow: bool) -> Any:
    """Return the norm of all elements, where some may be parts of what other processes have."""
    spread = [p for p in owners if isinstance(p, SpreadParameter)]
    if not spread:
        return _recorded_norm(grads, order, narrow=narrow)
    pairs = list(zip(owners, grads, strict=True))
    parts = [g for p, g in pairs if isinstance(p, SpreadParameter)]
    whole = [g for p, g in pairs if not isinstance(p, SpreadParameter)]
    mine = _recorded_norm(parts, order, narrow=narrow)
    rest = _recorded_norm(whole, order, narrow=narrow) if whole else F.zeros_like(mine)
    if order == math.inf:
        return F.maximum(spread[0].of_all_parts(mine, "max"), rest)
    return (spread[0].of_all_parts(mine**order, "sum") + rest**order) ** (1.0 / order)


def _recorded_norm(grads: list[Any], order: float, *, narrow: bool) -> Any:
    """Return the norm of all elements; a power of the largest element may not overflow."""
    if not any(g.size for g in grads):  # no rows at all
        return F.sum(grads[0])
    largest = reduce(F.maximum, [F.max(F.abs(g)) for g in grads if g.size])
    if order == math.inf:
        return largest
    if order == 2.0 and narrow:
        return F.sqrt(reduce(add, [F.sum(F.square(g)) for g in grads]))  # of floats: no overflow
    scale = F.where((largest > 0.0) & F.isfinite(largest), largest, 1.0)
    powers = [F.sum(F.abs(g / scale) ** order) for g in grads]
    return scale * reduce(add, powers) ** (1.0 / order)


def total_norm(arrays: Iterable[Any], order: float = 2.0) -> float:
    """Return the norm of all elements of several arrays, taken as one vector."""
    norms = [_norm(array, order) for array in arrays if array.size]
    if not norms:
        return 0.0
    return _norm(np.asarray(norms), order)


def _norm(array: Any, order: float) -> float:
    flat = array.reshape(-1)
    with np.errstate(all="ignore"):
        if order == 2.0 and flat.dtype.itemsize >= 4:
            square = float(flat @ flat)
            if 1e-30 < square < math.inf:  # squares neither overflowed nor vanished
                return math.sqrt(square)
        return _careful_norm(np.abs(flat.astype(np.float64)), order)


def _careful_norm(sizes: Any, order: float) -> float:
    """Return a norm without overflow or underflow of the powers."""
    largest = float(sizes.max())
    if order == math.inf or largest == 0.0 or not math.isfinite(largest):
        return largest
    return largest * float(((sizes / largest) ** order).sum() ** (1.0 / order))


def _with_grads(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    params = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    for p in params:
        if not isinstance(p, Tensor):
            raise ArgumentTypeError(f"expected parameters. Received: {type(p).__name__}")
    return [p for p in params if p.grad is not None]


def _positive(name: str, value: Any) -> float:
    number = float(value)
    if not number > 0.0:
        raise ArgumentError(f"{name} must be positive. Received: {value!r}")
    return number
