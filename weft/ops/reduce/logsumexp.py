"""Sums of exponentials in the log domain."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.op import F, op, reduction
from ...core.samples import ErrorSample, Sample
from ...core.shape import Axes
from ...core.tensor import Tensor
from ._common import (
    canon_reduction,
    reduced_type,
    reduction_samples,
    spread,
    unreduce,
)


def _joined(part: Any, exchange: Any) -> Any:
    """Return the logarithm of a sum of which each process has a part."""
    top = exchange(part, "max")
    top = F.where(F.isfinite(top), top, 0)  # inf - inf would be NaN
    return F.log(exchange(F.exp(part - top), "sum")) + top


@op(reduction, promote="float", public=("wf", "special"), combines=_joined)
def logsumexp(x: Tensor, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return log(sum(exp(x))) over the given axes, without overflow.

    Where all elements are -inf, and over no elements, the result is -inf; the gradient there is 0.

    >>> import weft as wf
    >>> wf.logsumexp(wf.tensor([1000.0, 0.0]))
    tensor(1000.)
    """


logsumexp.canon(canon_reduction)
logsumexp.infer(reduced_type)


@logsumexp.vjp("x")
def _(g, out, x, axis, keepdims):
    # The gradient is softmax(x); a sum of nothing (-inf) has no elements to share it among.
    top = unreduce(F.where(out == -np.inf, F.zeros_like(out), out), x.shape, axis, keepdims)
    return spread(g, x.shape, axis, keepdims) * F.exp(x - top)


@logsumexp.lower
def _(b, x, axis, keepdims):
    top = b.reduce("max", x)
    top = b.select(b.abs(top) < float("inf"), top, 0.0)  # inf - inf would be NaN
    return b.log(b.reduce("sum", b.exp(x - top))) + top


@logsumexp.samples
def _(s):
    yield from reduction_samples(s)
    yield Sample(np.array([1e4, 1e4 + 1, -1e4]), label="would overflow")
    yield Sample(s.integers(2, 3), axis=0, label="integers")
    infinite = np.array([[-np.inf, -np.inf], [0.5, -np.inf], [np.inf, 1.0], [np.nan, 1.0]])
    yield Sample(infinite, axis=1, grad=0, label="inf and nan")


@logsumexp.error_samples
def _(s):
    yield ErrorSample(s.real(2, 3), axis=2, error=IndexError, match="axis 2 is out of range")
    yield ErrorSample(s.real(3), axis=(0, 0), error=ValueError, match="more than once")
