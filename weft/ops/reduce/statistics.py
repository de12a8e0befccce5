"""Statistics of samples: moments in pairs, covariance and correlation, the k-th smallest."""

from __future__ import annotations

from typing import Any

from ...core.dim import may_equal, surely_less
from ...core.dtype import default_float, is_float
from ...core.errors import ArgumentError, ShapeError
from ...core.op import F, composite
from ...core.shape import Axes, as_int, normalize_axis
from .._halves import rounded_once
from .._operands import operand
from .._pairs import Pair, pair_at


@composite(public=("wf",))
def var_mean(x: Any, axis: Axes = None, *, correction: float = 1, keepdims: bool = False) -> Any:
    """Return the variance and the mean over the given axes, as PyTorch's: unbiased by default.

    >>> import weft as wf
    >>> wf.var_mean(wf.tensor([1.0, 3.0]))
    (tensor(2.), tensor(2.))
    """
    x = operand("var_mean", "x", x)
    spread = F.var(x, axis, correction=correction, keepdims=keepdims)
    return spread, F.mean(x, axis, keepdims)


@composite(public=("wf",))
def std_mean(x: Any, axis: Axes = None, *, correction: float = 1, keepdims: bool = False) -> Any:
    """Return the standard deviation and the mean over axes, as PyTorch's: unbiased by default.

    >>> import weft as wf
    >>> wf.std_mean(wf.tensor([0.0, 2.0]), correction=0)
    (tensor(1.), tensor(1.))
    """
    x = operand("std_mean", "x", x)
    spread = F.std(x, axis, correction=correction, keepdims=keepdims)
    return spread, F.mean(x, axis, keepdims)


@composite(method=True, public=("wf",))
def kthvalue(x: Any, k: int, axis: int = -1, keepdims: bool = False) -> Any:
    """Return the k-th smallest element along an axis, counting from 1, and its index.

    >>> import weft as wf
    >>> wf.kthvalue(wf.tensor([5.0, 1.0, 3.0]), 2)
    Pair(values=tensor(3.), indices=tensor(2))
    """
    x, k = operand("kthvalue", "x", x), as_int(k, "kthvalue: k")
    if x.ndim == 0:
        return Pair(x, F.zeros_like(x, dtype="int64"))
    axis = normalize_axis(axis, x.ndim, "kthvalue: axis")
    if k < 1 or surely_less(x.shape[axis], k):
        raise ArgumentError(
            f"kthvalue: k must be from 1 to {x.shape[axis]}, the size of axis {axis}. "
            f"Received: k={k}"
        )
    order = F.narrow(F.argsort(x, axis), axis, k - 1, 1)
    return pair_at(x, order, axis, reduced=not keepdims)


@composite(public=("wf",))
@rounded_once
def cov(x: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    """Return the covariance matrix of variables, which are rows, over observations, the columns.

    fweights   how often each observation is counted
    aweights   how much each observation weighs

    >>> import weft as wf
    >>> wf.cov(wf.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    x = operand("cov", "x", x)
    if x.ndim > 2:
        raise ShapeError(f"cov: x must have at most 2 dimensions. Received: {tuple(x.shape)}")
    rows = F.reshape(x, (1, -1)) if x.ndim < 2 else x
    rows = rows if is_float(rows.dtype) else F.cast(rows, default_float())
    weights = _weights(rows, fweights, aweights)
    if weights is None:
        centred = rows - F.mean(rows, 1, keepdims=True)
        product = F.matmul(centred, centred.T) / _positive(rows.shape[1] - correction)
    else:
        total = F.sum(weights)
        centred = rows - F.sum(rows * weights, 1, keepdims=True) / total
        lost = correction if aweights is None else _lost(weights, total, aweights, correction)
        product = F.matmul(centred * weights, centred.T) / F.maximum(total - lost, 0)
    return product if x.ndim == 2 else F.reshape(product, ())


def _positive(count: Any) -> Any:
    return count if not surely_less(count, 0) else 0


def _weights(rows: Any, fweights: Any, aweights: Any) -> Any:
    """Return the product of both kinds of weights of the observations, None without any."""
    given = [
        _checked_weights(name, weights, rows)
        for name, weights in (("fweights", fweights), ("aweights", aweights))
        if weights is not None
    ]
    if not given:
        return None
    return given[0] if len(given) == 1 else given[0] * given[1]


def _checked_weights(name: str, weights: Any, rows: Any) -> Any:
    weights = operand("cov", name, weights)
    if not may_equal(tuple(weights.shape), (rows.shape[1],)):
        raise ShapeError(
            f"cov: {name} must hold a weight for each of {rows.shape[1]} observations. "
            f"Received: shape {tuple(weights.shape)}"
        )
    return F.cast(weights, rows.dtype)


def _lost(weights: Any, total: Any, aweights: Any, correction: int) -> Any:
    """Return how many observations the estimate of the mean has used up."""
    return (
        correction
        * F.sum(weights * F.cast(operand("cov", "aweights", aweights), weights.dtype))
        / total
    )


@composite(public=("wf",))
@rounded_once
def corrcoef(x: Any) -> Any:
    """Return the correlations between variables, which are rows, over observations, the columns.

    >>> import weft as wf
    >>> wf.corrcoef(wf.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    c = F.cov(x)
    if c.ndim == 0:
        return c / c
    spread = F.sqrt(F.diagonal(c))
    return F.clip(c / F.unsqueeze(spread, 1) / F.unsqueeze(spread, 0), -1, 1)
