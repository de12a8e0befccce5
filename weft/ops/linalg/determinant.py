"""Determinants."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batching import shifted
from ...core.op import F, composite, general, op
from ...core.products import products
from ...core.samples import Sample
from ...core.shape import TensorType
from ...core.tensor import Tensor
from .._halves import rounded_once
from . import _lapack
from ._matrices import (
    check_square,
    column,
    in_working_precision,
    operand,
    square_type,
    transposed,
)
from ._samples import square_errors, square_samples


@op(general, promote="float", batch=shifted)
def det(x: Tensor) -> Tensor:
    """Return the determinants of square matrices, (..., n, n) -> (...).

    The gradient is exact for singular matrices too; second derivatives need invertible ones.

    >>> import weft as wf
    >>> wf.linalg.det(wf.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor(-2.)
    """


@det.infer
def _(x):
    check_square(x)
    return TensorType(x.shape[:-2], x.dtype)


det.eval(in_working_precision(_lapack.det))


@det.vjp("x")
def _(g, x):
    return column(column(g)) * F.cofactor(x)  # Jacobi's formula


@det.samples
def _(s):
    yield from square_samples(s)
    yield Sample(np.array([[1.0, 2.0], [2.0, 4.0]]), grad=1, label="singular")


det.error_samples(square_errors)


@op(general, promote="float", method=False, batch=shifted)
def cofactor(x: Tensor) -> Tensor:
    """Return the cofactor matrices: det(x) * inv(x).T, continued to singular matrices."""


cofactor.infer(square_type)


@cofactor.eval
@in_working_precision
def _(x):
    check_square(x)
    # cof(UV) = cof(U) cof(V), and an orthogonal matrix is its own cofactor up to sign.
    u, s, vh = _lapack.svd(x, True)
    sign = _lapack.det(u) * _lapack.det(vh)
    return products(u * (_products_of_others(s) * sign[..., None])[..., None, :], vh)


def _products_of_others(s):
    """Return for each element the product of all others along the last axis, without dividing."""
    ones = np.ones_like(s[..., :1])
    before = np.cumprod(np.concatenate([ones, s[..., :-1]], axis=-1), axis=-1)
    after = np.cumprod(np.concatenate([ones, s[..., :0:-1]], axis=-1), axis=-1)
    return before * after[..., ::-1]


@cofactor.vjp("x")
def _(g, x, out):
    # out = det(x) w with w = x^-T; d(det) = <out, dx> and dw = -w dx^T w.
    w = transposed(F.inv(x))
    scale = F.sum(g * w, axis=(-2, -1), keepdims=True)
    return scale * out - F.matmul(F.matmul(w, transposed(g)), out)


@cofactor.samples
def _(s):
    yield from square_samples(s)
    yield Sample(np.array([[1.0, 2.0], [2.0, 4.0]]), grad=0, label="singular")
    yield Sample(np.zeros((3, 3)), grad=0, label="zero")


cofactor.error_samples(square_errors)


@op(general, promote="float", outputs=2, batch=shifted)
def slogdet(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sign and the logarithm of the absolute value of determinants.

    The sign is constant as far as gradients are concerned. A singular matrix has sign 0 and
    logarithm -inf, and no gradient: asking for it raises LinalgError.
    """


@slogdet.infer
def _(x):
    check_square(x)
    kind = TensorType(x.shape[:-2], x.dtype)
    return kind, kind


slogdet.eval(in_working_precision(_lapack.slogdet))


@slogdet.vjp("x")
def _(g, x):
    return column(column(g[1])) * transposed(F.inv(x))


@slogdet.samples
def _(s):
    yield from square_samples(s)
    yield Sample(np.ones((2, 2)), grad=0, label="singular")


slogdet.error_samples(square_errors)


@composite(method=True)
@rounded_once
def logdet(x: Any) -> Any:
    """Return the logarithms of determinants; NaN where one is negative, -inf where it is zero."""
    sign, logarithm = F.slogdet(operand(x))
    return F.where(sign < 0, np.nan, logarithm)
