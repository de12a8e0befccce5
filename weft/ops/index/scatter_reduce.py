"""Scattering with a reduction: sums, means and extremes of what goes to one place."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batching import shifted
from ...core.dim import may_equal
from ...core.errors import ArgumentError
from ...core.op import F, composite, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, normalize_axis
from ...core.tensor import Tensor
from .._halves import rounded_once
from .._operands import names_errors
from ._checks import check_integer, check_range, operands
from .gather import along, put_along

REDUCTIONS = ("sum", "mean", "amax", "amin")


@composite(method=True)
@names_errors
@rounded_once
def scatter_reduce(
    x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Return x with each element combined with the elements of src that `index` sends to it.

    reduce        "sum", "mean", "amax" or "amin"
    include_self  False: elements that receive anything forget their own value

    Ties of amax and amin share the gradient equally.

    >>> import weft as wf
    >>> x, src = wf.zeros(2), wf.tensor([1.0, 4.0, -2.0])
    >>> wf.scatter_reduce(x, 0, wf.tensor([0, 0, 1]), src, "amax")
    tensor([4., 0.])
    """
    if reduce not in REDUCTIONS:
        raise ArgumentError(f"reduce must be one of {', '.join(REDUCTIONS)}. Received: {reduce!r}")
    x, index, src = operands(x, index, src)
    if reduce in ("amax", "amin"):
        largest, own = reduce == "amax", bool(include_self)
        return F.scatter_extreme(x, index, src, dim, largest, own)
    counts = F.scatter_add(F.zeros_like(x), dim, index, F.full_like(src, 1))
    start = x if include_self else F.where(counts == 0, x, F.zeros_like(x))
    total: Tensor = F.scatter_add(start, dim, index, src)
    if reduce == "sum":
        return total
    own_count = F.full_like(x, 1) if include_self else F.cast(counts == 0, x.dtype)
    return total / (counts + own_count)


@op(general, promote=("x", "src"), method=False, batch=shifted)
def scatter_extreme(
    x: Tensor, index: Tensor, src: Tensor, dim: int, largest: bool, include_self: bool
) -> Tensor:
    """Return the largest (or smallest) of each element of x and what `index` sends to it."""


@scatter_extreme.canon
def _(x, index, src, dim, largest, include_self):
    check_integer(index)
    one_shape = may_equal(tuple(index.shape), tuple(src.shape))
    if not (x.ndim == index.ndim == src.ndim and one_shape):
        raise ArgumentError(
            f"index and src must have one shape, with as many dimensions as x, {tuple(x.shape)}. "
            f"Received: index {tuple(index.shape)}, src {tuple(src.shape)}"
        )
    return normalize_axis(dim, x.ndim, "dim"), bool(largest), bool(include_self)


@scatter_extreme.eval
def _(x, index, src, dim, largest, include_self):
    out, places = x.copy(), along(index, dim)
    choose = np.maximum if largest else np.minimum
    try:
        if not include_self:
            out[places] = src  # any of them: the true extreme follows
        choose.at(out, places, src)
    except IndexError:
        check_range(index, x.shape[dim], dim)
        raise
    return out


@scatter_extreme.scatter
def _(b, x, index, src, dim, largest, include_self):
    if not include_self:
        return None
    return put_along(b, index, src, x.shape[dim], dim, "max" if largest else "min", x)


@scatter_extreme.infer
def _(x, index, src, dim, largest, include_self):
    return TensorType(x.shape, x.dtype)


@scatter_extreme.vjp("x")
def _(g, x, index, src, out, dim, include_self):
    chosen, _, share = _shares(g, x, index, src, out, dim, include_self)
    return F.where(chosen, share, F.zeros_like(share))


@scatter_extreme.vjp("src")
def _(g, x, index, src, out, dim, include_self):
    _, sent, share = _shares(g, x, index, src, out, dim, include_self)
    received = F.gather(share, dim, index)
    return F.where(sent, received, F.zeros_like(received))


def _shares(
    g: Any, x: Any, index: Any, src: Any, out: Any, dim: int, include_self: bool
) -> tuple[Any, Any, Any]:
    """Return where x is the extreme, where src is, and the gradient shared among those."""
    shape = tuple(g.shape)
    sent = src == F.gather(out, dim, index)
    chosen = x == out
    if not include_self:
        touched = F.gather_adjoint(F.full_like(src, 1), index, shape, dim)
        chosen = chosen & (touched == 0)
    winners = F.gather_adjoint(F.cast(sent, g.dtype), index, shape, dim) + F.cast(chosen, g.dtype)
    return chosen, sent, g / F.where(winners == 0, F.full_like(winners, 1), winners)


@scatter_extreme.samples
def _(s):
    for largest in (True, False):
        for own in (True, False):
            values = s.distinct(7)
            yield Sample(values[:3], np.array([0, 2, 0, 2]), values[3:], 0, largest, own)
    values = s.distinct(10)
    yield Sample(
        values[:6].reshape(2, 3),
        np.array([[0, 2], [1, 1]]),
        values[6:].reshape(2, 2),
        1,
        True,
        True,
    )


@scatter_extreme.error_samples
def _(s):
    x, src = s.real(3), s.real(2)
    yield ErrorSample(
        x, np.array([0, 3]), src, 0, True, True, error=IndexError, match=r"index\[1\] = 3 .* size 3"
    )
    yield ErrorSample(
        x, np.array([0]), src, 0, True, True, error=ValueError, match=r"index \(1,\), src \(2,\)"
    )
