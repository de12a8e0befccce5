"""The Cholesky factorisation."""

from __future__ import annotations

import numpy as np

from ...core.batching import shifted
from ...core.op import F, general, op
from ...core.samples import ErrorSample, Sample
from ...core.tensor import Tensor
from . import _lapack
from ._matrices import (
    as_flag,
    check_square,
    in_working_precision,
    naming_failures,
    square_type,
    symmetric_part,
    transposed,
)
from ._samples import definite


@op(general, promote="float", batch=shifted)
def cholesky(x: Tensor, *, upper: bool = False) -> Tensor:
    """Return the triangular factor L of symmetric positive definite matrices, x = L @ L.T.

    upper   return L.T instead

    The factor is that of the symmetric part (x + x.T) / 2, so the gradient is symmetric.

    >>> import weft as wf
    >>> wf.linalg.cholesky(wf.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """


@cholesky.canon
def _(x, upper):
    return (as_flag(upper, "upper"),)


cholesky.infer(square_type)


@cholesky.spelling
def _(types, upper):
    text = "{factor}({x})"
    return f"np.swapaxes({text}, -1, -2)" if upper else text, {"factor": _lower_factor}


def _lower_factor(x):
    return np.linalg.cholesky((x + np.swapaxes(x, -1, -2)) / 2)


def _factor(x, upper):
    lower = _lapack.cholesky(symmetric_part(x))
    return np.swapaxes(lower, -1, -2) if upper else lower


_named_factor = naming_failures(_factor, "the matrix is not positive definite")


@cholesky.eval
@in_working_precision
def _(x, upper):
    check_square(x)
    return _named_factor(x, upper)


@cholesky.vjp("x")
def _(g, out, upper):
    # Murray 2016, equation 10: L^-T Phi(L^T g) L^-1, where Phi keeps the lower triangle and
    # halves the diagonal.
    factor, g = (transposed(out), transposed(g)) if upper else (out, g)
    full = F.matmul(transposed(factor), F.tril(g))
    phi = (F.tril(full) + F.tril(full, -1)) / 2
    left = F.triangular_solve(factor, phi, transpose=True)
    both = F.triangular_solve(factor, transposed(left), transpose=True)
    return symmetric_part(both)


@cholesky.samples
def _(s):
    for shape in ((3, 3), (2, 2, 2), (1, 1), (0, 0), (0, 2, 2)):
        yield Sample(definite(s, *shape))
    yield Sample(definite(s, 3, 3), upper=True)
    yield Sample(definite(s, 6, 6)[::2, ::2], label="non-contiguous")
    yield Sample(np.array([[4, 2], [2, 5]]), grad=0, label="integers")


@cholesky.error_samples
def _(s):
    yield ErrorSample(s.real(1, 3), error=ValueError, match=r"square.*\(1, 3\)")
    yield ErrorSample(s.real(3), error=ValueError, match=r"must be a matrix.*\(3,\)")
    indefinite = np.stack([np.eye(2), -np.eye(2)])
    where = r"not positive definite at batch index \(1,\)"
    yield ErrorSample(indefinite, error=ValueError, match=where)
    yield ErrorSample(np.eye(2), upper=1, error=TypeError, match="upper must be.*1")
