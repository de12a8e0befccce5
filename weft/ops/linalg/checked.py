"""Factorisations and solutions with a number that says whether they exist, in place of an error."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.batching import shifted
from ...core.dtype import int32
from ...core.op import F, composite, general, op
from ...core.samples import Sample
from ...core.shape import TensorType
from ...core.tensor import Tensor
from .._operands import names_errors
from . import _lapack
from ._matrices import (
    check_square,
    identity_like,
    in_working_precision,
    operand,
    solution_shape,
    symmetric_part,
)
from ._samples import definite
from .lu import refuse_failures, singular_info


@op(general, promote="float", method=False, batch=shifted)
def cholesky_info(x: Tensor) -> Tensor:
    """Return 0 for positive definite matrices, else the order of the first minor that is not."""


@cholesky_info.infer
def _(x):
    check_square(x)
    return TensorType(x.shape[:-2], int32)


@cholesky_info.eval
@in_working_precision
def _(x):
    check_square(x)
    info = np.zeros(x.shape[:-2], np.int32)
    for index in np.ndindex(x.shape[:-2]):
        info[index] = _first_bad_minor(symmetric_part(x[index]))
    return info


def _first_bad_minor(x):
    if _is_definite(x):
        return 0
    good, bad = 0, len(x)  # the minor of order `good` is positive definite, that of `bad` is not
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if _is_definite(x[:middle, :middle]) else (good, middle)
    return bad


def _is_definite(x):
    try:
        _lapack.cholesky(x)
    except np.linalg.LinAlgError:
        return False
    return True


@cholesky_info.samples
def _(s):
    yield Sample(definite(s, 2, 3, 3), grad=0)
    yield Sample(np.diag([1.0, 2.0, -1.0, 3.0]), grad=0, label="indefinite")
    yield Sample(np.zeros((0, 0)), grad=0, label="empty")


class FactorAndInfo(NamedTuple):
    """What `cholesky_ex` returns."""

    L: Tensor
    info: Tensor


class InverseAndInfo(NamedTuple):
    """What `inv_ex` returns."""

    inverse: Tensor
    info: Tensor


class SolutionAndInfo(NamedTuple):
    """What `solve_ex` returns."""

    result: Tensor
    info: Tensor


@composite()
@names_errors
def cholesky_ex(x: Any, *, upper: bool = False, check_errors: bool = False) -> FactorAndInfo:
    """Return the Cholesky factor, and info: 0, or which minor is not positive definite.

    Where it is not 0, the factor is NaN.
    """
    x = operand(x)
    info = F.cholesky_info(x)
    refuse_failures("cholesky_ex", info, check_errors)
    fine = _for_matrices(info)
    factor = F.cholesky(F.where(fine, x, identity_like(x)), upper=upper)
    return FactorAndInfo(F.where(fine, factor, np.nan), info)


@composite()
@names_errors
def inv_ex(x: Any, *, check_errors: bool = False) -> InverseAndInfo:
    """Return the inverse, and info: 0, or which element of U's diagonal is 0 (see `lu_factor_ex`).

    Where it is not 0, the inverse is NaN.
    """
    x = operand(x)
    check_square(x)
    info = _info_of(x)
    refuse_failures("inv_ex", info, check_errors)
    fine = _for_matrices(info)
    inverse = F.inv(F.where(fine, x, identity_like(x)))
    return InverseAndInfo(F.where(fine, inverse, np.nan), info)


@composite()
@names_errors
def solve_ex(a: Any, b: Any, *, left: bool = True, check_errors: bool = False) -> SolutionAndInfo:
    """Return x with a @ x = b (left=False: x @ a = b), and info: see `inv_ex`."""
    a, b = operand(a), operand(b)
    check_square(a, "a")
    info = _info_of(a)
    refuse_failures("solve_ex", info, check_errors)
    fine = _for_matrices(info)
    regular = F.where(fine, a, identity_like(a))
    if not left:
        solved = F.swapaxes(F.solve(F.swapaxes(regular, -1, -2), F.swapaxes(b, -1, -2)), -1, -2)
        return SolutionAndInfo(F.where(fine, solved, np.nan), info)
    solution_shape(a, b)
    solved = F.solve(regular, b)
    fits = fine[..., 0] if b.ndim == 1 else fine
    return SolutionAndInfo(F.where(fits, solved, np.nan), info)


def _info_of(x: Any) -> Any:
    return singular_info(F.lu_factor(F.stop_gradient(x))[0])


def _for_matrices(info: Any) -> Any:
    return (info == 0)[..., None, None]


@composite()
@names_errors
def cholesky_inverse(factor: Any, *, upper: bool = False) -> Any:
    """Return the inverse of a, given the Cholesky factor of a."""
    factor = operand(factor)
    check_square(factor, "factor")
    return F.cholesky_solve(identity_like(factor), factor, upper=upper)
