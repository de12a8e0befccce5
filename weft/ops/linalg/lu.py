"""The LU factorisation: factors, pivots and what is solved with them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.batching import shifted
from ...core.dim import size_min
from ...core.dtype import int32, int64
from ...core.errors import LinalgError, ShapeError
from ...core.op import F, composite, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, as_int
from ...core.tensor import Tensor
from .._halves import rounded_once
from .._operands import concrete, names_errors
from . import _elimination
from ._matrices import (
    as_flag,
    check_matrix,
    check_square,
    identity_like,
    in_working_precision,
    known_sides,
    operand,
    transposed,
)
from ._samples import regular


@op(general, promote="float", outputs=2, method=False, public=True, batch=shifted)
def lu_factor(x: Tensor, *, pivot: bool = True) -> tuple[Tensor, Tensor]:
    """Return L (below the diagonal) and U in one matrix, and the pivots (int32, from 1 on).

    x is P @ L @ U, where P comes from exchanging row i with row pivots[i] - 1, one after the other.

    pivot   False: rows stay in place; a zero on the way then spoils the factors

    Shapes: (..., m, n) -> (..., m, n) and (..., min(m, n)).
    """


@lu_factor.canon
def _(x, pivot):
    return (as_flag(pivot, "pivot"),)


@lu_factor.infer
def _(x, pivot):
    check_matrix(x)
    *batch, m, n = x.shape
    return TensorType(x.shape, x.dtype), TensorType((*batch, size_min(m, n)), int32)


@lu_factor.eval
@in_working_precision
def _(x, pivot):
    check_matrix(x)
    return _elimination.lu(x, pivot)


@lu_factor.vjp("x")
def _(g, out, pivot):
    (g, _), (factors, pivots) = g, out
    m, n = known_sides("lu_factor", *factors.shape[-2:])
    order = F.pivots_permutation(pivots, m)
    return _to_rows(_gradient(factors, g, m, n), order)


def _gradient(factors, g, m, n):
    """Return the gradient of L U, whose factors stand in one matrix.

    From L^-1 dA U^-1 = L^-1 dL + dU U^-1, whose terms are strictly lower and upper. What is beside
    the square part, L2 of tall and U2 of wide matrices, follows from it and is taken into account.
    """
    k = min(m, n)
    square, g_square = factors[..., :k, :k], g[..., :k, :k]
    lower, upper = _unit_lower(square), F.triu(square)
    left = F.matmul(transposed(lower), F.tril(g_square, -1))
    right = F.matmul(F.triu(g_square), transposed(upper))
    if m > k:
        right = right - F.matmul(transposed(factors[..., k:, :]), g[..., k:, :])
    if n > k:
        left = left - F.matmul(g[..., :, k:], transposed(factors[..., :, k:]))
    inner = F.tril(left, -1) + F.triu(right)
    inner = _left_solved(lower, inner)
    gx = _right_solved(upper, inner)
    if m > k:
        gx = F.concat([gx, _right_solved(upper, g[..., k:, :])], axis=-2)
    if n > k:
        gx = F.concat([gx, _left_solved(lower, g[..., :, k:])], axis=-1)
    return gx


def _left_solved(lower, x):
    return F.triangular_solve(lower, x, transpose=True, unit_diagonal=True)


def _right_solved(upper, x):
    return transposed(F.triangular_solve(upper, transposed(x), upper=True))


def _unit_lower(x):
    return F.tril(x, -1) + identity_like(x)


def _to_rows(x, order):
    """Return matrices with row i at place order[i]."""
    back = F.broadcast_to(F.argsort(order, -1)[..., None], tuple(x.shape))
    return F.take_along_axis(x, back, -2)


@lu_factor.samples
def _(s):
    for shape in ((3, 3), (4, 2), (2, 4), (2, 2, 2), (1, 1), (0, 2, 2), (0, 0), (2, 0, 0)):
        yield Sample(regular(s, *shape))
    yield Sample(regular(s, 3, 3) + 4 * np.eye(3), pivot=False)
    yield Sample(regular(s, 2, 3).T, label="non-contiguous")
    yield Sample(regular(s, 40, 40), grad=0, label="large")


@lu_factor.error_samples
def _(s):
    yield ErrorSample(s.real(3), error=ValueError, match=r"must be a matrix.*\(3,\)")
    yield ErrorSample(s.real(2, 2), pivot=1, error=TypeError, match="pivot must be.*1")


@op(general, method=False, batch=shifted)
def pivots_permutation(pivots: Tensor, rows: int) -> Tensor:
    """Return the order of rows that the pivots of `lu_factor` bring about."""


@pivots_permutation.canon
def _(pivots, rows):
    return (as_int(rows, "rows"),)


@pivots_permutation.infer
def _(pivots, rows):
    return TensorType((*pivots.shape[:-1], rows), int64)


@pivots_permutation.eval
def _(pivots, rows):
    if pivots.size and not (pivots.min() >= 1 and pivots.max() <= rows):
        raise LinalgError(f"pivots must be from 1 to {rows}. Received: {pivots.tolist()!r:.60}")
    return _elimination.permutation(pivots, rows)


@pivots_permutation.samples
def _(s):
    yield Sample(np.array([3, 2, 3], np.int32), 3)
    yield Sample(np.array([[2, 2], [4, 3]], np.int32), 4)
    yield Sample(np.zeros((2, 0), np.int32), 0, label="empty")


class Factors(NamedTuple):
    """P, L and U with x = P @ L @ U."""

    P: Tensor
    L: Tensor
    U: Tensor


@composite()
@names_errors
def lu(x: Any, *, pivot: bool = True) -> Factors:
    """Return P, L and U with x = P @ L @ U: a permutation, a unit lower and an upper triangle.

    >>> import weft as wf
    >>> p, l, u = wf.linalg.lu(wf.tensor([[1.0, 2.0], [4.0, 4.0]]))
    >>> u
    tensor([[4., 4.],
            [0., 1.]])
    """
    factors, pivots = F.lu_factor(operand(x), pivot=pivot)
    return lu_unpack(factors, pivots)


@composite()
@names_errors
def lu_unpack(
    factors: Any, pivots: Any, unpack_data: bool = True, unpack_pivots: bool = True
) -> Factors:
    """Return P, L and U of what `lu_factor` gave; parts that are not wanted are empty."""
    factors = operand(factors)
    check_matrix(factors, "factors")
    m, n = factors.shape[-2:]
    k = size_min(m, n)
    nothing = F.zeros_like(factors[..., :0, :0])
    p, lower, upper = nothing, nothing, nothing
    if unpack_pivots:
        order = F.pivots_permutation(operand(pivots), m)
        p = F.cast(order[..., None, :] == F.iota(m)[:, None], factors.dtype)
    if unpack_data:
        part = F.tril(factors[..., :, :k], -1)
        unit = F.cast(F.iota(m)[:, None] == F.iota(k), factors.dtype)
        lower, upper = part + unit, F.triu(factors[..., :k, :])
    return Factors(p, lower, upper)


@composite()
@names_errors
@rounded_once
def lu_solve(factors: Any, pivots: Any, b: Any, *, left: bool = True, adjoint: bool = False) -> Any:
    """Return x with a @ x = b from what `lu_factor` gave for square matrices a.

    left      False: x @ a = b
    adjoint   True: with the transpose of a
    """
    factors, pivots, b = operand(factors), operand(pivots), operand(b)
    check_square(factors, "factors")
    if b.ndim < 2:
        raise ShapeError(f"b must be a matrix or a stack of them. Received: shape {tuple(b.shape)}")
    if not left:
        return transposed(lu_solve(factors, pivots, transposed(b), adjoint=not adjoint))
    order = F.pivots_permutation(pivots, factors.shape[-1])
    flags = {"transpose": True} if adjoint else {}
    if adjoint:
        half = F.triangular_solve(factors, b, upper=True, **flags)
        solved = F.triangular_solve(factors, half, unit_diagonal=True, **flags)
        return _arranged(solved, F.argsort(order, -1))
    half = F.triangular_solve(factors, _arranged(b, order), unit_diagonal=True)
    return F.triangular_solve(factors, half, upper=True)


def _arranged(x: Any, order: Any) -> Any:
    """Return matrices with row order[i] at place i; both have batches that broadcast."""
    batch = F.broadcast_to(x, (*_batch(x, order), *x.shape[-2:]))
    return F.take_along_axis(batch, F.broadcast_to(order[..., None], tuple(batch.shape)), -2)


def _batch(x: Any, order: Any) -> Any:
    return np.broadcast_shapes(tuple(x.shape[:-2]), tuple(order.shape[:-1]))


# -- with a number that says whether it went well -------------------------------------------------


class FactorsAndInfo(NamedTuple):
    """What `lu_factor_ex` returns."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


@composite()
@names_errors
def lu_factor_ex(x: Any, *, pivot: bool = True, check_errors: bool = False) -> FactorsAndInfo:
    """Return what `lu_factor` does, and info: 0, or the first i for which U[i-1, i-1] is 0."""
    factors, pivots = F.lu_factor(operand(x), pivot=pivot)
    info = singular_info(factors)
    refuse_failures("lu_factor_ex", info, check_errors)
    return FactorsAndInfo(factors, pivots, info)


def singular_info(factors: Any) -> Any:
    """Return for each matrix 0, or which element of the diagonal of U is the first zero, from 1."""
    zero = F.diagonal(factors, 0, -2, -1) == 0
    if zero.shape[-1] == 0:
        return F.cast(F.any(zero, -1), int32)
    first = F.argmax(F.cast(zero, int32), -1) + 1
    return F.cast(F.where(F.any(zero, -1), first, 0), int32)


def refuse_failures(name: str, info: Any, check: bool) -> None:
    """Raise for the first matrix whose info is not 0, if asked to."""
    known = concrete(info) if check else None
    if known is not None and known.any():
        where = [int(i) for i in np.argwhere(known)[0]]
        raise LinalgError(
            f"{name}: failed at batch index {tuple(where)}: info {known[tuple(where)]}"
        )
