"""Softmax and its logarithm.

Both are shift-invariant in exact arithmetic and subtract the largest logit, so logits of any finite
size are safe. A row of logits that is -inf throughout, or holds inf, has no distribution: it gives
NaN throughout, and so do its logarithm and its gradient.
"""

from __future__ import annotations

from typing import Any

from ...core.op import F, composite
from ...core.tensor import Tensor
from .._halves import rounded_once
from .._operands import chosen_axis, in_dtype, operand


@composite(method=True, fused=True, public=("wf", "nn.functional", "special"))
def softmax(x: Tensor, axis: int = -1, *, dim: int | None = None, dtype: Any = None) -> Tensor:
    """Return exp(x) divided by its sum along an axis: positive numbers that sum to one.

    >>> import weft as wf
    >>> wf.softmax(wf.tensor([0.0, 0.0, -float("inf")]))
    tensor([0.5, 0.5, 0. ])
    """
    x = in_dtype(operand("softmax", "x", x), dtype)
    axis = chosen_axis("softmax", x, axis, dim)
    return x if x.shape[axis] == 0 else _shares(x, axis)


@rounded_once
def _shares(x: Any, axis: int) -> Tensor:
    # Dividing keeps the sum at one to rounding; exp(x - logsumexp(x)) would be off by the
    # rounding of logsumexp, which grows with the logits.
    e = F.exp(_shifted(x, axis))
    return e / F.sum(e, axis=axis, keepdims=True)


@composite(method=True, fused=True, public=("wf", "nn.functional", "special"))
def log_softmax(x: Tensor, axis: int = -1, *, dim: int | None = None, dtype: Any = None) -> Tensor:
    """Return log(softmax(x)) along an axis, without underflow.

    >>> import weft as wf
    >>> wf.log_softmax(wf.tensor([1000.0, 0.0]))
    tensor([    0., -1000.])
    """
    x = in_dtype(operand("log_softmax", "x", x), dtype)
    axis = chosen_axis("log_softmax", x, axis, dim)
    return x if x.shape[axis] == 0 else _log_shares(x, axis)


@rounded_once
def _log_shares(x: Any, axis: int) -> Tensor:
    # Both parts have one sign, so that nothing cancels; x - logsumexp(x) would round at the size
    # of the logits.
    shifted = _shifted(x, axis)
    return shifted - F.log(F.sum(F.exp(shifted), axis=axis, keepdims=True))


def _shifted(x: Any, axis: int) -> Any:
    return x - F.max(F.stop_gradient(x), axis=axis, keepdims=True)
