"""Dropout: of elements, of whole channels, and with the statistics of SELU kept.

A mask is drawn only in training and for p > 0; its shape alone fixes how many random numbers are
taken, so that the same program drops the same elements in every mode.
"""

from __future__ import annotations

import math
from typing import Any

from ...core.errors import ShapeError
from ...core.op import composite
from ...core.rng import Generator
from ...core.tensor import Tensor
from .._halves import rounded_once
from .._operands import operand
from ..random.draw import dropout_mask
from ._arguments import check_floats, check_probability

# -lambda * alpha of SELU: its limit for x -> -inf (Klambauer et al. 2017, section 3).
SELU_FLOOR = -1.7580993408473766


@composite()
def dropout(
    x: Tensor, p: float = 0.5, training: bool = True, *, generator: Generator | None = None
) -> Tensor:
    """Set elements to zero with probability p and scale the others by 1 / (1 - p).

    Outside training x is returned as it is (Srivastava et al. 2014, in the "inverted" form).
    """
    return _drop("dropout", x, p, training, generator, 0)


@composite()
def dropout1d(
    x: Tensor, p: float = 0.5, training: bool = True, *, generator: Generator | None = None
) -> Tensor:
    """Drop whole channels of x of shape (N, C, L) or (C, L), as dropout does elements."""
    return _drop("dropout1d", x, p, training, generator, 1)


@composite()
def dropout2d(
    x: Tensor, p: float = 0.5, training: bool = True, *, generator: Generator | None = None
) -> Tensor:
    """Drop whole channels of x of shape (N, C, H, W) or (C, H, W), as dropout does elements."""
    return _drop("dropout2d", x, p, training, generator, 2)


@composite()
def dropout3d(
    x: Tensor, p: float = 0.5, training: bool = True, *, generator: Generator | None = None
) -> Tensor:
    """Drop whole channels of x of shape (N, C, D, H, W) or (C, D, H, W), as dropout does."""
    return _drop("dropout3d", x, p, training, generator, 3)


@composite()
def alpha_dropout(
    x: Tensor, p: float = 0.5, training: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Drop elements to SELU's lower limit and rescale so that mean 0 and variance 1 stay.

    Klambauer et al. 2017 (arXiv:1706.02515), section 3.
    """
    return _alpha_drop("alpha_dropout", x, p, training, generator, 0)


@composite()
def feature_alpha_dropout(
    x: Tensor, p: float = 0.5, training: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Drop whole channels of x of shape (N, C, ...) as alpha_dropout does elements."""
    x = operand("feature_alpha_dropout", "x", x)
    spatial = max(x.ndim - 2, 0)
    return _alpha_drop("feature_alpha_dropout", x, p, training, generator, spatial)


def _drop(fn: str, x: Any, p: Any, training: bool, generator: Any, spatial: int) -> Tensor:
    x, p = _checked(fn, x, p, spatial)
    if not training or p == 0:
        return x
    return _masked(x, p, spatial, generator)


@rounded_once
def _masked(x: Any, p: float, spatial: int, generator: Any) -> Tensor:
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return x * dropout_mask(x, p, spatial, scale=scale, generator=generator)


def _alpha_drop(fn: str, x: Any, p: Any, training: bool, generator: Any, spatial: int) -> Tensor:
    x, p = _checked(fn, x, p, 0)
    if not training or p == 0:
        return x
    if p == 1:
        return x * 0.0
    return _alpha_masked(x, p, spatial, generator)


@rounded_once
def _alpha_masked(x: Any, p: float, spatial: int, generator: Any) -> Tensor:
    keep = dropout_mask(x, p, spatial, generator=generator)
    a = 1 / math.sqrt((1 - p) * (1 + p * SELU_FLOOR**2))
    return x * keep * a + (keep * (-a * SELU_FLOOR) + a * SELU_FLOOR * (1 - p))


def _checked(fn: str, x: Any, p: Any, spatial: int) -> tuple[Any, float]:
    x = operand(fn, "x", x)
    check_floats(fn, "x", x)
    if spatial and x.ndim not in (spatial + 1, spatial + 2):
        raise ShapeError(
            f"{fn}: x must have {spatial + 2} dimensions (N, C, ...), or {spatial + 1} without a "
            f"batch. Received: {x.shape}"
        )
    return x, check_probability(fn, p)
