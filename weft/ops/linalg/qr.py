"""The QR factorisation."""

from __future__ import annotations

import numpy as np

from ...core.batching import shifted
from ...core.dim import size_min
from ...core.errors import ArgumentError, GradientError
from ...core.op import F, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType
from ...core.tensor import Tensor
from . import _lapack
from ._matrices import check_matrix, in_working_precision, known_sides, transposed
from ._samples import regular

MODES = ("reduced", "complete")


@op(general, promote="float", outputs=2, batch=shifted)
def qr(x: Tensor, mode: str = "reduced") -> tuple[Tensor, Tensor]:
    """Return orthonormal Q and upper triangular R with x = Q @ R.

    mode   "reduced": Q is (..., m, k) and R is (..., k, n) with k = min(m, n);
           "complete": Q is (..., m, m) and R is (..., m, n)

    Signs are LAPACK's. Gradients need the first k columns of x to be linearly independent; those of
    the complete factorisation of a tall matrix do not exist: its last columns are arbitrary.
    """


@qr.canon
def _(x, mode):
    if mode not in MODES:
        raise ArgumentError(f"mode must be 'reduced' or 'complete'. Received: {mode!r}")
    return (mode,)


@qr.infer
def _(x, mode):
    check_matrix(x)
    *batch, m, n = x.shape
    k = m if mode == "complete" else size_min(m, n)
    return TensorType((*batch, m, k), x.dtype), TensorType((*batch, k, n), x.dtype)


@qr.eval
@in_working_precision
def _(x, mode):
    return _lapack.qr(x, mode)


@qr.vjp("x")
def _(g, out, mode):
    (gq, gr), (q, r) = g, out
    m, n = known_sides("qr", q.shape[-2], r.shape[-1])
    if m > n and q.shape[-1] == m:
        raise GradientError(
            f"qr: the complete factorisation of a tall ({m}, {n}) matrix has no gradient; "
            'use mode="reduced"'
        )
    if m >= n:
        return _gradient(q, r, gq, gr)
    # A wide matrix is [X Y] with X = Q R1 square and Y = Q R2, so that R2 = Q^T Y.
    r1, r2, g1, g2 = r[..., :m], r[..., m:], gr[..., :m], gr[..., m:]
    gx = _gradient(q, r1, gq + F.matmul(q, F.matmul(r2, transposed(g2))), g1)
    return F.concat([gx, F.matmul(q, g2)], axis=-1)


def _gradient(q, r, gq, gr):
    """Return the gradient of x = Q R for m >= n (Walter and Lehmann 2010, theorem 3)."""
    inner = F.matmul(r, transposed(F.triu(gr))) - F.matmul(transposed(gq), q)
    lower = F.tril(inner)
    mirrored = lower + transposed(F.tril(inner, -1))
    left = gq + F.matmul(q, mirrored)
    return transposed(F.triangular_solve(r, transposed(left), upper=True))


@qr.samples
def _(s):
    for shape in ((3, 3), (4, 2), (2, 4), (2, 3, 2), (1, 1), (3, 1), (1, 3), (0, 0), (0, 3, 2)):
        yield Sample(regular(s, *shape))
    yield Sample(regular(s, 3, 3), mode="complete")
    yield Sample(regular(s, 2, 3), mode="complete")
    yield Sample(regular(s, 4, 2), mode="complete", grad=0)
    yield Sample(regular(s, 3, 2).T.copy().T, label="non-contiguous")
    yield Sample(np.array([[2, 1], [1, 3]]), grad=0, label="integers")


@qr.error_samples
def _(s):
    yield ErrorSample(s.real(3), error=ValueError, match=r"must be a matrix.*\(3,\)")
    yield ErrorSample(s.real(3, 3), mode="full", error=ValueError, match="mode must be.*'full'")
