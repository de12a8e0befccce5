"""The pseudo-inverse and least squares."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.batching import shifted
from ...core.dispatch import sum_to
from ...core.op import F, composite, general, op
from ...core.products import products
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType
from ...core.tensor import Tensor
from .._halves import rounded_once
from . import _lapack
from ._matrices import (
    as_flag,
    as_tolerance,
    check_matrix,
    check_square,
    column,
    in_working_precision,
    naming_failures,
    operand,
    solution_shape,
    solved,
    symmetric_part,
    transposed,
)
from ._samples import regular
from .svd import FAILED, default_rtol


@op(general, promote="float", batch=shifted)
def pinv(
    x: Tensor, *, rtol: float | None = None, atol: float | None = None, hermitian: bool = False
) -> Tensor:
    """Return the Moore-Penrose inverses of matrices, (..., m, n) -> (..., n, m).

    rtol        singular values below this part of the largest count as zero; by default max(m, n)
                times the machine epsilon, or 0 if atol is given
    atol        those below this too; with both, the larger limit counts
    hermitian   take the matrices for symmetric: the symmetric part is inverted

    The gradient holds as long as the rank does not change.
    """


@pinv.canon
def _(x, rtol, atol, hermitian):
    return as_tolerance(rtol, "rtol"), as_tolerance(atol, "atol"), as_flag(hermitian, "hermitian")


@pinv.infer
def _(x, rtol, atol, hermitian):
    (check_square if hermitian else check_matrix)(x)
    *batch, m, n = x.shape
    return TensorType((*batch, n, m), x.dtype)


_svd = naming_failures(lambda x: _lapack.svd(x, False), FAILED, square=False)


@pinv.eval
@in_working_precision
def _(x, rtol, atol, hermitian):
    if rtol is None and atol is not None:
        rtol = 0.0
    u, inverse, vh = _truncated(symmetric_part(x) if hermitian else x, rtol, atol or 0.0)
    return products(np.swapaxes(vh, -1, -2), inverse * np.swapaxes(u, -1, -2))


def _truncated(x, rtol, atol=0.0):
    """Return U, the reciprocal singular values as a column (zero for negligible ones), and Vh."""
    u, s, vh = _svd(x)
    limit = (default_rtol(x) if rtol is None else rtol) * s.max(axis=-1, keepdims=True, initial=0)
    large = s > np.maximum(limit, atol)
    inverse = np.divide(1, s, where=large, out=np.zeros_like(s))
    return u, inverse[..., None], vh


@pinv.vjp("x")
def _(g, x, out, hermitian):
    if hermitian:
        return symmetric_part(_pinv_gradient(g, symmetric_part(x), out))
    return _pinv_gradient(g, x, out)


def _pinv_gradient(g, x, out):
    # Golub and Pereyra 1973, equation 4.12, transposed.
    p, pt = out, transposed(out)
    inner = F.matmul(F.matmul(pt, g), pt)
    tall = _outside(x, p, F.matmul(transposed(g), F.matmul(p, pt)))
    wide = F.matmul(F.matmul(pt, p), transposed(g))
    return tall - inner + wide - F.matmul(wide, F.matmul(p, x))


def _outside(x, p, y):
    """Return y without its part in the column space of x."""
    return y - F.matmul(x, F.matmul(p, y))


@pinv.samples
def _(s):
    for shape in ((3, 3), (4, 2), (2, 3), (2, 3, 2), (1, 1), (0, 0), (0, 3, 2), (0, 2), (2, 0)):
        yield Sample(regular(s, *shape))
    yield Sample(np.outer([1.0, 2.0, 3.0], [1.0, 0.0]), grad=0, label="rank one")
    yield Sample(np.diag([4.0, 2.0, 0.5]), rtol=0.2, grad=0)
    yield Sample(np.diag([4.0, 2.0, 0.5]), atol=1.0, grad=0)
    yield Sample(regular(s, 3, 3), hermitian=True)
    yield Sample(np.array([[2, 1], [1, 5], [0, 1]]), grad=0, label="integers")


@pinv.error_samples
def _(s):
    yield ErrorSample(s.real(3), error=ValueError, match=r"must be a matrix.*\(3,\)")
    yield ErrorSample(s.real(2, 2), rtol=-1.0, error=ValueError, match="rtol must not.*-1.0")
    yield ErrorSample(np.full((2, 2), np.nan), error=ValueError, match="NaN or infinity")


@op(general, promote="float", method=False, batch=solved)
def lstsq_solution(a: Tensor, b: Tensor, *, rtol: float | None = None) -> Tensor:
    """Return the x of least norm that minimises |a @ x - b|; shapes are those of `solve`.

    The gradient holds as long as the rank of a does not change.
    """


@lstsq_solution.canon
def _(a, b, rtol):
    return (as_tolerance(rtol, "rtol"),)


@lstsq_solution.infer
def _(a, b, rtol):
    return TensorType(solution_shape(a, b), a.dtype)


@lstsq_solution.eval
@in_working_precision
def _(a, b, rtol):
    solution_shape(a, b)
    u, inverse, vh = _truncated(a, rtol)
    right = b[:, None] if b.ndim == 1 else b
    right = products(np.swapaxes(u, -1, -2), right)
    x = products(np.swapaxes(vh, -1, -2), inverse * right)
    return x[..., 0] if b.ndim == 1 else x


@lstsq_solution.vjp("a")
def _(g, a, b, out, a_shape, rtol):
    # x = P b, so this is the rule of pinv for the gradient g b^T, multiplied out.
    if b.ndim == 1:
        g, b, out = column(g), column(b), column(out)
    p = F.pinv(a, rtol=rtol)
    pt = transposed(p)
    residual = b - F.matmul(a, out)
    back = F.matmul(pt, g)
    normal = F.matmul(p, back)
    null = g - F.matmul(transposed(a), back)
    ga = F.matmul(residual, transposed(normal)) - F.matmul(back, transposed(out))
    return sum_to(ga + F.matmul(F.matmul(pt, out), transposed(null)), a_shape)


@lstsq_solution.vjp("b")
def _(g, a, b_shape, rtol):
    pt = transposed(F.pinv(a, rtol=rtol))
    if len(b_shape) == 1:
        return sum_to(F.matmul(pt, column(g))[..., 0], b_shape)
    return sum_to(F.matmul(pt, g), b_shape)


LEAST_SQUARES_SHAPES = (
    ((4, 2), (4,)),
    ((4, 2), (4, 2)),
    ((3, 3), (3, 1)),
    ((2, 3), (2, 1)),
    ((2, 3, 2), (2, 3, 1)),
    ((2, 3, 2), (3, 1)),
    ((3, 2), (2, 3, 1)),
    ((2, 3, 2), (3,)),
    ((0, 0), (0,)),
)


@lstsq_solution.samples
def _(s):
    for a, b in LEAST_SQUARES_SHAPES:
        yield Sample(regular(s, *a), s.real(*b))
    yield Sample(np.outer([1.0, 2.0, 3.0], [1.0, 2.0]), s.real(3), grad=0, label="rank one")


@lstsq_solution.error_samples
def _(s):
    yield ErrorSample(s.real(3), s.real(3), error=ValueError, match=r"a must be a matrix.*\(3,\)")
    yield ErrorSample(s.real(3, 2), s.real(2), error=ValueError, match="3 and 2 rows")
    rtol = "rtol must be a number.*'a'"
    yield ErrorSample(s.real(2, 2), s.real(2), rtol="a", error=TypeError, match=rtol)


class LeastSquares(NamedTuple):
    """What `lstsq` returns."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


@composite()
@rounded_once
def lstsq(a: Any, b: Any, rtol: float | None = None) -> LeastSquares:
    """Return the least-squares solution of a @ x = b, with its quality.

    solution           the x of least norm that minimises |a @ x - b|
    residuals          squared errors, one for each right-hand side (always, unlike NumPy's)
    rank               number of singular values of a that count, see `pinv`
    singular_values    of a, descending
    """
    a, b = operand(a), operand(b)
    solution = F.lstsq_solution(a, b, rtol=rtol)
    error = F.matmul(a, solution if b.ndim > 1 else column(solution)) - (
        b if b.ndim > 1 else column(b)
    )
    squares = F.sum(error * error, axis=-2)
    residuals = squares if b.ndim > 1 else squares[..., 0]
    return LeastSquares(solution, residuals, F.matrix_rank(a, rtol=rtol), F.svdvals(a))
