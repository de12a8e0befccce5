"""Reflectors of Householder: QR in LAPACK's packed form, and products with its Q."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batching import shifted
from ...core.dim import size_min
from ...core.errors import ShapeError
from ...core.op import F, composite, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType
from ...core.tensor import Tensor
from .._halves import rounded_once
from .._operands import names_errors
from ._matrices import check_matrix, column, in_working_precision, operand, row, transposed
from ._samples import regular


@op(general, promote="float", outputs=2, method=False, public=True, batch=shifted)
def geqrf(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return R with reflectors below its diagonal, and their factors tau. It has no gradient.

    `householder_product` makes Q of them; for gradients use `qr`.
    """


@geqrf.infer
def _(x):
    check_matrix(x)
    *batch, m, n = x.shape
    return TensorType(x.shape, x.dtype), TensorType((*batch, size_min(m, n)), x.dtype)


@geqrf.eval
@in_working_precision
def _(x):
    check_matrix(x)
    packed, tau = np.linalg.qr(x, mode="raw")
    return np.ascontiguousarray(np.swapaxes(packed, -1, -2)), tau


@geqrf.samples
def _(s):
    for shape in ((3, 3), (4, 2), (2, 3), (2, 3, 2)):
        yield Sample(regular(s, *shape), grad=0)


@geqrf.error_samples
def _(s):
    yield ErrorSample(s.real(3), error=ValueError, match=r"must be a matrix.*\(3,\)")


@composite()
@names_errors
@rounded_once
def householder_product(x: Any, tau: Any) -> Any:
    """Return the first columns of the product of reflectors 1 - tau[i] v v.T.

    v is column i of x below the diagonal, with a 1 on it. Shapes: (..., m, n) and (..., k) with
    m >= n >= k give (..., m, n).
    """
    x, tau = operand(x), operand(tau)
    m, n, _ = _checked(x, tau)
    if m < n:
        raise ShapeError(f"x must not be wider than high. Received: shape {tuple(x.shape)}")
    unit = F.cast(F.iota(m)[:, None] == F.iota(n), x.dtype)
    return _reflected(x, tau, F.zeros_like(x) + unit, False)


@composite()
@names_errors
@rounded_once
def ormqr(x: Any, tau: Any, other: Any, left: bool = True, transpose: bool = False) -> Any:
    """Return Q @ other, Q being the (square) product of reflectors as `geqrf` packs them.

    left        False: other @ Q
    transpose   True: with the transpose of Q
    """
    x, tau, other = operand(x), operand(tau), operand(other)
    m, _, _ = _checked(x, tau)
    check_matrix(other, "other")
    if other.shape[-2 if left else -1] != m:
        raise ShapeError(
            f"x of shape {tuple(x.shape)} gives a Q of {m} rows and columns, which other of shape "
            f"{tuple(other.shape)} does not fit"
        )
    if left:
        return _reflected(x, tau, other, transpose)
    return transposed(_reflected(x, tau, transposed(other), not transpose))


def _checked(x: Any, tau: Any) -> tuple[Any, Any, Any]:
    check_matrix(x)
    m, n = x.shape[-2:]
    if tau.ndim < 1 or tau.shape[-1] > min(m, n):
        raise ShapeError(
            f"tau must have shape (..., k), k being at most {min(m, n)}. "
            f"Received: {tuple(tau.shape)}"
        )
    return m, n, tau.shape[-1]


def _reflected(x: Any, tau: Any, other: Any, transpose: bool) -> Any:
    """Return what reflectors make of columns: the last comes first unless transposed."""
    m, count = x.shape[-2], tau.shape[-1]
    for i in range(count) if transpose else reversed(range(count)):
        below = F.iota(m) > i
        v = F.where(below, x[..., :, i], F.cast(F.iota(m) == i, x.dtype))
        along = F.matmul(row(v), other)
        other = other - column(tau[..., i : i + 1] * v) * along
    return other
