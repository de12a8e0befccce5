"""The LDL factorisation of symmetric matrices that need not be positive definite.

The algorithm of Bunch and Kaufman (1977), with LAPACK's packing and pivots. It has no gradient.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.batching import shifted, with_rank
from ...core.dtype import int32
from ...core.errors import ShapeError
from ...core.op import F, composite, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType
from ...core.tensor import Tensor
from .._operands import names_errors
from . import _elimination
from ._matrices import batch_shape, check_square, in_working_precision, operand
from ._samples import symmetric
from .lu import refuse_failures


@op(general, promote="float", outputs=2, method=False, public=True, batch=shifted)
def ldl_factor(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return L and D in the lower triangle, and pivots (int32, from 1 on), of symmetric matrices.

    A negative pivot stands twice, for a block of two rows in D. Only the lower triangle is read.
    """


@ldl_factor.infer
def _(x):
    check_square(x)
    return TensorType(x.shape, x.dtype), TensorType(x.shape[:-1], int32)


@ldl_factor.eval
@in_working_precision
def _(x):
    check_square(x)
    return _elimination.ldl(x)


@ldl_factor.samples
def _(s):
    yield Sample(symmetric(s, 3, 3), grad=0)
    yield Sample(symmetric(s, 2, 4, 4), grad=0)
    yield Sample(np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]]), grad=0)
    yield Sample(np.zeros((0, 0)), grad=0, label="empty")


@ldl_factor.error_samples
def _(s):
    yield ErrorSample(s.real(2, 3), error=ValueError, match=r"square.*\(2, 3\)")


@op(general, promote=("factors", "b"), method=False, public=True)
def ldl_solve(factors: Tensor, pivots: Tensor, b: Tensor) -> Tensor:
    """Return x with a @ x = b from what `ldl_factor` gave for a; columns of b are solved for."""


@ldl_solve.infer
def _(factors, pivots, b):
    check_square(factors, "factors")
    if b.ndim < 2 or b.shape[-2] != factors.shape[-1]:
        raise ShapeError(
            f"b must have shape (..., {factors.shape[-1]}, k). Received: {tuple(b.shape)}"
        )
    return TensorType((*batch_shape(factors, b), *b.shape[-2:]), b.dtype)


@ldl_solve.eval
@in_working_precision
def _(factors, pivots, b):
    return _elimination.ldl_solve(factors, pivots, b)


@ldl_solve.batch
def _(factors, pivots, b):
    ndim = max(factors.ndim, b.ndim) - 1
    return F.ldl_solve(with_rank(factors, ndim), with_rank(pivots, ndim - 1), with_rank(b, ndim))


@ldl_solve.samples
def _(s):
    a = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])
    yield Sample(*_elimination.ldl(a), s.real(3, 2), grad=0)
    yield Sample(*_elimination.ldl(symmetric(s, 2, 3, 3)), s.real(3, 1), grad=0)
    yield Sample(*_elimination.ldl(symmetric(s, 3, 3)), s.real(2, 3, 1), grad=0)


@ldl_solve.error_samples
def _(s):
    factors = _elimination.ldl(np.eye(2))
    yield ErrorSample(*factors, s.real(3, 1), error=ValueError, match=r"Received: \(3, 1\)")


class SymmetricFactors(NamedTuple):
    """What `ldl_factor_ex` returns."""

    LD: Tensor
    pivots: Tensor
    info: Tensor


@composite()
@names_errors
def ldl_factor_ex(x: Any, *, check_errors: bool = False) -> SymmetricFactors:
    """Return what `ldl_factor` does, and info: 0, or which element of D's diagonal is 0, from 1."""
    factors, pivots = F.ldl_factor(operand(x))
    zero = (F.diagonal(factors, 0, -2, -1) == 0) & (pivots > 0)
    first = F.argmax(F.cast(zero, int32), -1) + 1 if zero.shape[-1] else 0
    info = F.cast(F.where(F.any(zero, -1), first, 0), int32)
    refuse_failures("ldl_factor_ex", info, check_errors)
    return SymmetricFactors(factors, pivots, info)
