"""The larger or smaller of two elements, and limiting to a range."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dim import Dim
from ...core.dtype import bool_, default_float, is_float
from ...core.errors import ArgumentError, DTypeError, WeftError
from ...core.op import F, composite, elementwise, op
from ...core.samples import ErrorSample, Sample
from ...core.tensor import Tensor
from ._shared import as_number, named


@op(elementwise, promote="common", laws=("idempotent",), total=True, scalar=True)
def maximum(x: Tensor, y: Tensor) -> Tensor:
    """Return the larger of x and y, NaN if either is; at a tie each gets half the gradient.

    >>> import weft as wf
    >>> wf.maximum(wf.tensor([1.0, 5.0]), 3)
    tensor([3., 5.])
    """


@maximum.vjp("x")
def _(g, x, y):
    return _share(g, x > y, x == y)


@maximum.vjp("y")
def _(g, x, y):
    return _share(g, y > x, x == y)


@op(elementwise, promote="common", laws=("idempotent",), total=True, scalar=True)
def minimum(x: Tensor, y: Tensor) -> Tensor:
    """Return the smaller of x and y, NaN if either is; at a tie each gets half the gradient."""


@minimum.vjp("x")
def _(g, x, y):
    return _share(g, x < y, x == y)


@minimum.vjp("y")
def _(g, x, y):
    return _share(g, y < x, x == y)


@op(elementwise, promote="common", laws=("idempotent",))
def fmax(x: Tensor, y: Tensor) -> Tensor:
    """Return the larger of x and y, ignoring a NaN; at a tie each gets half the gradient."""


def _unless_nan(b, better, x, y):
    """Return the better one, or the one that is a number."""
    best = better(x, y)
    if x.dtype.kind != "f":
        return best
    return b.select(b.is_nan(x), y, b.select(b.is_nan(y), x, best))


fmax.eval(np.fmax)  # a tenth of the time that choosing takes
fmax.lower(lambda b, x, y: _unless_nan(b, b.maximum, x, y))


@fmax.vjp("x")
def _(g, x, y):
    return _share(g, (x > y) | F.isnan(y), x == y)


@fmax.vjp("y")
def _(g, x, y):
    return _share(g, (y > x) | F.isnan(x), x == y)


@op(elementwise, promote="common", laws=("idempotent",))
def fmin(x: Tensor, y: Tensor) -> Tensor:
    """Return the smaller of x and y, ignoring a NaN; at a tie each gets half the gradient."""


fmin.eval(np.fmin)
fmin.lower(lambda b, x, y: _unless_nan(b, b.minimum, x, y))


@fmin.vjp("x")
def _(g, x, y):
    return _share(g, (x < y) | F.isnan(y), x == y)


@fmin.vjp("y")
def _(g, x, y):
    return _share(g, (y < x) | F.isnan(x), x == y)


def _share(g, chosen, tie):
    """Return the gradient where an operand was chosen, and half of it at ties."""
    return F.where(chosen, g, g * tie / 2)


def _samples(s):
    def numbered(*shape):  # multiples of 0.4, plus 0.2 for the other operand: never equal
        return s.integers(*shape, low=-4) * 0.4

    yield from s.binary(numbered, lambda *shape: numbered(*shape) + 0.2)
    yield Sample(s.integers(2, 3), s.integers(3), label="integers")
    yield Sample(s.booleans(3), s.booleans(3), label="booleans")
    yield Sample(numbered(3), 0.2, label="number")
    special = np.array([np.nan, np.inf, -np.inf, 1.0])
    yield Sample(special[:, None], special, grad=0, label="special values")


for _record in (maximum, minimum, fmax, fmin):
    _record.samples(_samples)


# -- clip -----------------------------------------------------------------------------------------


@composite(method=True, name="clamp")
@composite(method=True)
def clip(x: Any, min: Any = None, max: Any = None) -> Any:
    """Return x limited to the range from min to max: numbers, tensors, or None for no limit.

    Gradients pass where x lies within the range, bounds included, and go to a tensor bound
    elsewhere. NaN stays NaN; if min exceeds max the result is max.

    >>> import weft as wf
    >>> wf.clip(wf.tensor([-1.0, 0.5, 2.0]), 0, 1)
    tensor([0. , 0.5, 1. ])
    """
    if hasattr(min, "shape") or hasattr(max, "shape"):
        return _clip_above(_clip_below(x, min), max)
    if (isinstance(min, float) or isinstance(max, float)) and not is_float(x.dtype):
        x = F.cast(x, default_float())
    try:
        return F.clip_to(x, min, max)
    except Exception as error:
        if isinstance(min, Dim) or isinstance(max, Dim):
            return clip(x, _size_bound(min, x), _size_bound(max, x))
        if not isinstance(error, WeftError):
            raise
        raise named(error, "clip", "clip_to") from None


def _size_bound(bound: Any, x: Any) -> Any:
    """Return a bound; one that a graph knows only when it runs, as a tensor."""
    return F.size_value(bound, x.dtype) if isinstance(bound, Dim) else bound


def _clip_below(x: Any, low: Any) -> Any:
    if low is None:
        return x
    return F.where((x < low) | F.not_equal(low, low), low, x)  # a NaN bound gives NaN


def _clip_above(x: Any, high: Any) -> Any:
    if high is None:
        return x
    return F.where((x > high) | F.not_equal(high, high), high, x)


@op(elementwise, method=False, laws=("idempotent",))
def clip_to(x: Tensor, low: Any, high: Any) -> Tensor:
    """Return x limited to fixed bounds, either of which may be None; see `clip`."""


@clip_to.canon
def _(x, low, high):
    if low is None and high is None:
        raise ArgumentError("at least one of min and max must be given. Received: neither")
    return _bound(x, low, "min"), _bound(x, high, "max")


def _bound(x, bound, what):
    """Return a bound as a number of x's kind; one beyond all integers of the dtype is moved in."""
    if bound is None:
        return None
    bound = as_number(bound, what)
    if is_float(x.dtype):
        return float(bound)
    if x.dtype == bool_ or isinstance(bound, float):
        raise DTypeError(
            f"cannot clip {x.dtype} to {bound}; cast x first. Received: {what}={bound}"
        )
    limits = np.iinfo(x.dtype)
    beyond = bound > limits.max if what == "min" else bound < limits.min
    if beyond:
        raise DTypeError(f"{what}={bound} is not a value of {x.dtype}; cast x first")
    return int(np.clip(bound, limits.min, limits.max))


@clip_to.partial("x")
def _(x, low, high):
    if low is None:
        return x <= high
    return x >= low if high is None else (x >= low) & (x <= high)


@clip_to.lower
def _(b, x, low, high):
    raised = x if low is None else b.maximum(x, low)
    return raised if high is None else b.minimum(raised, high)


@clip_to.samples
def _(s):
    yield from s.unary(lambda *shape: s.away(*shape, points=(-0.5, 1.0)), low=-0.5, high=1)
    yield Sample(s.away(3), None, 0.0, label="above only")
    yield Sample(s.away(3), 0, None, label="below only")
    yield Sample(s.integers(3, high=9), 2, 5, label="integers")
    yield Sample(s.integers(3, high=9, dtype=np.uint8), -5, 300, label="beyond the dtype")
    yield Sample(np.array([np.nan, np.inf, -np.inf]), -1.0, 1.0, grad=0, label="special values")
    yield Sample(s.real(3), 1.0, -1.0, grad=0, label="crossed bounds")


@clip_to.error_samples
def _(s):
    yield ErrorSample(s.real(3), "a", 1.0, error=TypeError, match="min must be.*'a'")
    yield ErrorSample(s.integers(3), 0.5, None, error=TypeError, match="int64.*Received: min=0.5")
    yield ErrorSample(s.booleans(3), 0, 1, error=TypeError, match="cannot clip bool")
    byte = s.integers(3, dtype=np.uint8)
    yield ErrorSample(byte, 300, None, error=TypeError, match="min=300 is not a value of uint8")
