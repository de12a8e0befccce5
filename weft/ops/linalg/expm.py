"""The matrix exponential."""

from __future__ import annotations

import numpy as np

from ...core.batching import shifted
from ...core.op import F, general, op
from ...core.products import products
from ...core.samples import Sample
from ...core.tensor import Tensor
from . import _lapack
from ._matrices import check_square, in_working_precision, square_type, transposed
from ._samples import square_errors

# Coefficients of the [13/13] Pade approximant of exp, and the norm up to which it is accurate in
# double precision (Higham 2005, "The scaling and squaring method", tables 2.1 and 2.3).
PADE = (
    64764752532480000,
    32382376266240000,
    7771770303897600,
    1187353796428800,
    129060195264000,
    10559470521600,
    670442572800,
    33522128640,
    1323241920,
    40840800,
    960960,
    16380,
    182,
    1,
)
LARGEST_NORM = 5.371920351148152


@op(general, promote="float", aliases=("matrix_exp",), batch=shifted)
def expm(x: Tensor) -> Tensor:
    """Return the exponentials of square matrices, by scaling and squaring."""


expm.infer(square_type)


@expm.eval
@in_working_precision
def _(x):
    check_square(x)
    norm = np.abs(x).sum(axis=-2).max(axis=-1, initial=0.0)
    finite = np.isfinite(norm)
    halvings = np.ceil(np.log2(np.where(finite & (norm > 0), norm, 1.0) / LARGEST_NORM))
    halvings = np.maximum(halvings, 0).astype(np.int32)[..., None, None]
    result = _pade(np.ldexp(np.where(finite[..., None, None], x, 0), -halvings))
    for done in range(int(halvings.max(initial=0))):
        result = np.where(done < halvings, products(result, result), result)
    return np.where(finite[..., None, None], result, x.dtype.type(np.nan))


def _pade(x):
    """Return the [13/13] approximant: (V - U)^-1 (V + U) with odd part U and even part V."""
    b = [x.dtype.type(c) for c in PADE]
    one = np.eye(x.shape[-1], dtype=x.dtype)
    x2 = products(x, x)
    x4 = products(x2, x2)
    x6 = products(x4, x2)
    odd = products(x6, b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2
    even = products(x6, b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2
    u, v = products(x, odd + b[1] * one), even + b[0] * one
    return _lapack.solve(v - u, v + u)


@expm.vjp("x")
def _(g, x):
    # The adjoint of the derivative at x is the derivative at x^T, which stands in the corner of
    # exp([[x^T, g], [0, x^T]]) (Najfeld and Havel 1995).
    n, turned = x.shape[-1], transposed(x)
    top = F.concat([turned, g], axis=-1)
    bottom = F.concat([F.zeros_like(turned), turned], axis=-1)
    return F.expm(F.concat([top, bottom], axis=-2))[..., :n, n:]


@expm.samples
def _(s):
    for shape in ((2, 2), (2, 2, 2), (1, 1), (0, 0), (0, 2, 2)):
        yield Sample(s.real(*shape))
    yield Sample(np.zeros((2, 2)), label="zero")
    yield Sample(s.strided(2, 2), label="non-contiguous")
    spread = np.stack([10 * s.real(3, 3), 0.01 * s.real(3, 3)])
    yield Sample(spread, grad=0, label="different scalings")


expm.error_samples(square_errors)
