"""The singular value decomposition, and what is read off the singular values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batching import shifted
from ...core.dim import size_min
from ...core.dtype import int64
from ...core.errors import ArgumentError
from ...core.op import F, composite, general, op
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
    known_sides,
    naming_failures,
    operand,
    reciprocal_gap,
    row,
    symmetric_part,
    transposed,
)
from ._samples import regular

FAILED = "the singular values did not converge"


# Not a method: PyTorch's gives V.
@op(general, promote="float", outputs=3, method=False, public=True, batch=shifted)
def svd(x: Tensor, full_matrices: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Return U, S and Vh with x = U @ diag(S) @ Vh; S descends.

    full_matrices   True: U and Vh are square; False: U is (..., m, k) and Vh is (..., k, n) with
                    k = min(m, n)

    Signs of the singular vectors are LAPACK's. The gradient with respect to vectors needs distinct
    singular values (where two coincide exactly, it is right for functions that do not depend on
    the choice of basis), and positive ones if m != n. The vectors beyond the first k are any basis
    of their space: the gradient is right for functions of that space. For values alone use
    `svdvals`.

    >>> import weft as wf
    >>> u, s, vh = wf.linalg.svd(wf.tensor([[3.0, 0.0], [0.0, 4.0]]))
    >>> s
    tensor([4., 3.])
    """


@svd.canon
def _(x, full_matrices):
    return (as_flag(full_matrices, "full_matrices"),)


@svd.infer
def _(x, full_matrices):
    check_matrix(x)
    *batch, m, n = x.shape
    k = size_min(m, n)
    left, right = (m, n) if full_matrices else (k, k)
    shapes = ((*batch, m, left), (*batch, k), (*batch, right, n))
    return tuple(TensorType(shape, x.dtype) for shape in shapes)


_svd = naming_failures(_lapack.svd, FAILED, square=False)
svd.eval(in_working_precision(_svd))


@svd.vjp("x")
def _(g, out, full_matrices):
    (gu, gs, gvh), (u, s, vh) = g, out
    m, n = known_sides("svd", u.shape[-2], vh.shape[-1])
    k = min(m, n)
    beyond = None
    if full_matrices and m != n:
        u, gu, vh, gvh, beyond = _thin(u, gu, vh, gvh, s, k)
    # Giles 2008, section 3.2, with the rotations of both bases:
    # U (skew(U^T gU) / E S + S skew(V^T gV) / E + diag(gS)) V^T, E_ij = s_j^2 - s_i^2.
    si, sj = column(s), row(s)
    inverse_gap = reciprocal_gap((sj - si) * (sj + si))
    turn_u, turn_v = F.matmul(transposed(u), gu), F.matmul(vh, transposed(gvh))
    core = _skew(turn_u) * inverse_gap * sj + si * (_skew(turn_v) * inverse_gap)
    gx = F.matmul(F.matmul(u, core + F.diag_embed(gs)), vh)
    # What leaves the spaces that the thin factors span.
    if m > k:
        outside = (gu - F.matmul(u, turn_u)) * reciprocal_gap(sj)
        gx = gx + F.matmul(outside, vh)
    if n > k:
        outside = (gvh - F.matmul(transposed(turn_v), vh)) * reciprocal_gap(si)
        gx = gx + F.matmul(u, outside)
    return gx if beyond is None else gx - beyond


def _thin(u, gu, vh, gvh, s, k):
    """Return the thin factors with their gradients, and what follows from the vectors beyond.

    As the first k vectors turn out of their space, U1 -> U1 + U2 w, the others turn against them,
    U2 -> U2 - U1 w.T, with w = U2.T dx V1 / S; and so the rows of Vh.
    """
    inverse = reciprocal_gap(column(s))
    if u.shape[-1] > k:
        u1, u2, g1, g2 = u[..., :k], u[..., k:], gu[..., :k], gu[..., k:]
        turn = inverse * F.matmul(transposed(u1), g2)
        return u1, g1, vh, gvh, F.matmul(F.matmul(u2, transposed(turn)), vh)
    v1, v2, g1, g2 = vh[..., :k, :], vh[..., k:, :], gvh[..., :k, :], gvh[..., k:, :]
    turn = inverse * F.matmul(v1, transposed(g2))
    return u, gu, v1, g1, F.matmul(F.matmul(u, turn), v2)


def _skew(x):
    return x - transposed(x)


@svd.samples
def _(s):
    for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 2), (1, 1), (3, 1), (1, 3), (0, 0), (0, 3, 2)):
        yield Sample(regular(s, *shape), full_matrices=False)
    yield Sample(regular(s, 2, 2))
    yield Sample(regular(s, 4, 2))
    yield Sample(regular(s, 2, 4))
    yield Sample(regular(s, 2, 3).T, full_matrices=False, label="non-contiguous")
    yield Sample(np.array([[2, 1], [1, 5]]), grad=0, label="integers")


@svd.error_samples
def _(s):
    yield ErrorSample(s.real(3), error=ValueError, match=r"must be a matrix.*\(3,\)")
    nan = np.full((2, 3), np.nan)
    yield ErrorSample(nan, error=ValueError, match=r"NaN or infinity.*\(2, 3\)")
    flag = "full_matrices must be True or False.*'no'"
    yield ErrorSample(s.real(2, 2), full_matrices="no", error=TypeError, match=flag)


@op(general, promote="float", method=False, public=True, batch=shifted)
def svdvals(x: Tensor) -> Tensor:
    """Return the singular values of matrices in descending order.

    Shapes: (..., m, n) -> (..., min(m, n)). The gradient is that of `svd` without its vectors.
    """


@svdvals.infer
def _(x):
    check_matrix(x)
    return TensorType((*x.shape[:-2], size_min(*x.shape[-2:])), x.dtype)


_svdvals = naming_failures(_lapack.svdvals, FAILED, square=False)
svdvals.eval(in_working_precision(_svdvals))


@svdvals.vjp("x")
def _(g, x):
    u, _, vh = F.svd(x, False)
    return F.matmul(u * row(g), vh)


@svdvals.samples
def _(s):
    for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 2), (1, 1), (0, 0), (0, 3, 2)):
        yield Sample(regular(s, *shape))


@svdvals.error_samples
def _(s):
    yield ErrorSample(s.real(3), error=ValueError, match=r"must be a matrix.*\(3,\)")
    yield ErrorSample(s.real(), error=ValueError, match=r"must be a matrix.*\(\)")


@op(general, promote="float", keywords={"atol": "tol"}, batch=shifted)
def matrix_rank(
    x: Tensor, *, tol: float | None = None, rtol: float | None = None, hermitian: bool = False
) -> Tensor:
    """Return the number of singular values above a tolerance, as int64; it has no gradient.

    tol         absolute tolerance
    rtol        tolerance relative to the largest singular value; by default max(m, n) times the
                machine epsilon. With both, the larger tolerance counts.
    hermitian   take the matrices for symmetric, and their eigenvalues for singular values
    """


@matrix_rank.canon
def _(x, tol, rtol, hermitian):
    return as_tolerance(tol, "tol"), as_tolerance(rtol, "rtol"), as_flag(hermitian, "hermitian")


@matrix_rank.infer
def _(x, tol, rtol, hermitian):
    (check_square if hermitian else check_matrix)(x)
    return TensorType(x.shape[:-2], int64)


@matrix_rank.eval
@in_working_precision
def _(x, tol, rtol, hermitian):
    values = np.abs(_lapack.eigvalsh(symmetric_part(x))) if hermitian else _svdvals(x)
    if rtol is None:
        rtol = default_rtol(x) if tol is None else 0.0
    largest = values.max(axis=-1, keepdims=True, initial=0.0)
    limit = np.maximum(rtol * largest, tol or 0.0)
    return np.count_nonzero(values > limit, axis=-1)


def default_rtol(x: Any) -> float:
    """Return the relative size below which a singular value is taken for rounding noise."""
    return float(max(x.shape[-2:]) * np.finfo(x.dtype).eps)


@matrix_rank.samples
def _(s):
    for shape in ((3, 3), (4, 2), (2, 2, 3), (0, 0), (0, 2, 2)):
        yield Sample(regular(s, *shape), grad=0)
    singular = np.outer([1.0, 2.0, 3.0], [1.0, 0.0, 1.0])
    yield Sample(singular, grad=0, label="rank one")
    yield Sample(np.stack([singular, np.eye(3), np.zeros((3, 3))]), grad=0, label="mixed")
    yield Sample(np.diag([4.0, 2.0, 0.5]), tol=1.0, grad=0)
    yield Sample(np.diag([4.0, 2.0, 0.5]), rtol=0.6, grad=0)
    yield Sample(np.diag([-4.0, 2.0, 0.0]), hermitian=True, grad=0)


@matrix_rank.error_samples
def _(s):
    yield ErrorSample(s.real(3), error=ValueError, match=r"must be a matrix.*\(3,\)")
    yield ErrorSample(s.real(2, 2), tol=-1.0, error=ValueError, match="tol must not.*-1.0")
    yield ErrorSample(s.real(2, 2), rtol="a", error=TypeError, match="rtol must be a number.*'a'")


@composite()
@rounded_once
def cond(x: Any, p: int | float | str | None = None) -> Any:
    """Return condition numbers: by default the ratio of the extreme singular values.

    p   None or 2, -2: of singular values; 1, -1, inf, -inf, "fro", "nuc": |x| |inv(x)| in that norm
    """
    x = operand(x)
    check_matrix(x, "cond: x")
    if p in (None, 2, -2):
        values = F.svdvals(x)
        if 0 in x.shape[-2:]:
            raise ArgumentError(f"cond: an empty matrix has none. Received: shape {x.shape}")
        largest, smallest = values[..., 0], values[..., -1]
        return smallest / largest if p == -2 else largest / smallest
    check_square(x, "cond: x")
    axes = (-2, -1)
    return F.linalg_norm(x, p, axes) * F.linalg_norm(F.inv(x), p, axes)
