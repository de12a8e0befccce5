"""Eigenvalues and eigenvectors of symmetric matrices."""

from __future__ import annotations

import numpy as np

from ...core.batching import shifted
from ...core.errors import ArgumentError
from ...core.op import F, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType
from ...core.tensor import Tensor
from . import _lapack
from ._matrices import (
    check_square,
    column,
    in_working_precision,
    naming_failures,
    reciprocal_gap,
    row,
    symmetric_part,
    transposed,
)
from ._samples import symmetric

FAILED = "the eigenvalues did not converge"
ASYMMETRY = 0.01  # of the largest element: more than rounding, even in 16 bits, brings about


@op(general, promote="float", outputs=2, batch=shifted)
def eigh(x: Tensor, UPLO: str | None = None) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues, ascending, and the eigenvectors (columns) of symmetric matrices.

    UPLO   None: x is symmetric (its symmetric part is taken, which evens out rounding);
           "L" or "U": read only that triangle

    NumPy and PyTorch read the lower triangle unasked, so that for None a matrix that is plainly not
    symmetric is refused.

    Signs of the eigenvectors are LAPACK's. Gradients are those of exactly what is read: symmetric
    for None, inside the triangle otherwise. Where eigenvalues coincide they are right for functions
    that do not depend on the choice of basis in that eigenspace; others have none.

    >>> import weft as wf
    >>> values, vectors = wf.linalg.eigh(wf.tensor([[2.0, 1.0], [1.0, 2.0]]))
    >>> values
    tensor([1., 3.])
    """


@op(general, promote="float", batch=shifted)
def eigvalsh(x: Tensor, UPLO: str | None = None) -> Tensor:
    """Return the eigenvalues of symmetric matrices in ascending order; see `eigh`.

    Where eigenvalues coincide the gradient is that of one choice of eigenvectors; symmetric
    functions of them (their sum, for example) are differentiated correctly.
    """


def _check_triangle(x, UPLO):
    if UPLO not in (None, "L", "U", "l", "u"):
        raise ArgumentError(f"UPLO must be None, 'L' or 'U'. Received: {UPLO!r}")
    return (UPLO and UPLO.upper(),)


eigh.canon(_check_triangle)
eigvalsh.canon(_check_triangle)


@eigh.infer
def _(x, UPLO):
    check_square(x)
    return TensorType(x.shape[:-1], x.dtype), TensorType(x.shape, x.dtype)


@eigvalsh.infer
def _(x, UPLO):
    check_square(x)
    return TensorType(x.shape[:-1], x.dtype)


_eigh = naming_failures(_lapack.eigh, FAILED)
_eigvalsh = naming_failures(_lapack.eigvalsh, FAILED)


@eigh.spelling
def _(types, UPLO):
    return "np.linalg.eigh({symmetric}({x}))", {"symmetric": _SYMMETRIC[UPLO]}


@eigvalsh.spelling
def _(types, UPLO):
    return "np.linalg.eigvalsh({symmetric}({x}))", {"symmetric": _SYMMETRIC[UPLO]}


def _symmetric(x):
    return (x + np.swapaxes(x, -1, -2)) / 2


def _of_lower(x):
    return np.tril(x) + np.swapaxes(np.tril(x, -1), -1, -2)


def _of_upper(x):
    return np.triu(x) + np.swapaxes(np.triu(x, 1), -1, -2)


_SYMMETRIC = {None: _symmetric, "L": _of_lower, "U": _of_upper}


@eigh.eval
@in_working_precision
def _(x, UPLO):
    return _eigh(_read(x, UPLO))


@eigvalsh.eval
@in_working_precision
def _(x, UPLO):
    return _eigvalsh(_read(x, UPLO))


def _read(x, UPLO):
    """Return the symmetric matrices that x stands for."""
    check_square(x)
    if UPLO is None:
        _check_symmetric(x)
        return symmetric_part(x)
    if UPLO == "U":
        x = np.swapaxes(x, -1, -2)
    return np.tril(x) + np.swapaxes(np.tril(x, -1), -1, -2)


def _check_symmetric(x):
    """Raise unless matrices are symmetric up to rounding: others have no one meaning."""
    size = np.max(np.abs(x), initial=0.0)
    difference = np.max(np.abs(x - np.swapaxes(x, -1, -2)), initial=0.0)
    if difference > ASYMMETRY * size:
        raise ArgumentError(
            "x is not symmetric; say UPLO='L' to read its lower triangle, as NumPy and PyTorch do, "
            "UPLO='U' for the upper one, or give the symmetric part (x + x.mT) / 2. "
            f"Received: elements up to {size:.4g} that differ from their mirror by {difference:.4g}"
        )


def _read_adjoint(g, UPLO):
    """Return the gradient of x from that of the symmetric matrices it stands for."""
    if UPLO is None:
        return symmetric_part(g)
    if UPLO == "U":
        return F.triu(g) + transposed(F.tril(g, -1))
    return F.tril(g) + transposed(F.triu(g, 1))


@eigh.vjp("x")
def _(g, out, UPLO):
    # Giles 2008, section 3.1: V (diag(gw) + (V^T gV) / (w_j - w_i)) V^T.
    (gw, gv), (w, v) = g, out
    turn = F.matmul(transposed(v), gv) * reciprocal_gap(row(w) - column(w))
    core = turn + F.diag_embed(gw)
    return _read_adjoint(F.matmul(F.matmul(v, core), transposed(v)), UPLO)


@eigvalsh.vjp("x")
def _(g, x, UPLO):
    v = F.eigh(x, UPLO)[1]
    return _read_adjoint(F.matmul(v * row(g), transposed(v)), UPLO)


def _symmetric_samples(s):
    for shape in ((3, 3), (2, 2, 2), (1, 1), (0, 0), (0, 2, 2)):
        yield Sample(symmetric(s, *shape))
    for triangle in ("L", "U"):
        yield Sample(symmetric(s, 3, 3), UPLO=triangle)
        yield Sample(symmetric(s, 3, 3) + np.triu(s.real(3, 3), 1) * 0.1, UPLO=triangle)
    yield Sample(symmetric(s, 3, 3) + 1e-4 * s.real(3, 3), label="not quite symmetric")
    yield Sample(np.array([[2, 1], [1, 5]]), grad=0, label="integers")


def _symmetric_errors(s):
    yield ErrorSample(s.real(1, 3), error=ValueError, match=r"square.*\(1, 3\)")
    yield ErrorSample(s.real(3), error=ValueError, match=r"must be a matrix.*\(3,\)")
    yield ErrorSample(np.array([[1.0, 2.0], [0.0, 1.0]]), error=ValueError, match="not symmetric")
    yield ErrorSample(np.eye(2), UPLO="X", error=ValueError, match="UPLO must be.*'X'")


eigh.samples(_symmetric_samples)
eigvalsh.samples(_symmetric_samples)
eigh.error_samples(_symmetric_errors)
eigvalsh.error_samples(_symmetric_errors)
