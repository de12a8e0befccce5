"""Sums, extremes, moments and norms of the elements that a mask lets through."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtype import default_float, is_float
from ...core.op import F, composite
from ...core.shape import Axes
from .._halves import rounded_once
from .._operands import names_errors
from ._shared import counts, filled, highest, lowest, read


@composite(public={"masked": ("sum",)})
@names_errors
@rounded_once
def masked_sum(
    x: Any, axis: Axes = None, keepdims: bool = False, *, dtype: Any = None, mask: Any = None
) -> Any:
    """Return the sum over axes of the elements where mask is True."""
    x, mask = read("sum", x, mask, dtype)
    return F.sum(filled(x, mask, 0), axis, keepdims)


@composite(public={"masked": ("prod",)})
@names_errors
@rounded_once
def masked_prod(
    x: Any, axis: Axes = None, keepdims: bool = False, *, dtype: Any = None, mask: Any = None
) -> Any:
    """Return the product over axes of the elements where mask is True."""
    x, mask = read("prod", x, mask, dtype)
    return F.prod(filled(x, mask, 1), axis, keepdims)


@composite(public={"masked": ("amax",)})
@names_errors
def masked_amax(
    x: Any, axis: Axes = None, keepdims: bool = False, *, dtype: Any = None, mask: Any = None
) -> Any:
    """Return the largest over axes of the elements where mask is True; of none, the lowest."""
    x, mask = read("amax", x, mask, dtype)
    return F.amax(filled(x, mask, lowest(x)), axis, keepdims)


@composite(public={"masked": ("amin",)})
@names_errors
def masked_amin(
    x: Any, axis: Axes = None, keepdims: bool = False, *, dtype: Any = None, mask: Any = None
) -> Any:
    """Return the smallest over axes of the elements where mask is True; of none, the highest."""
    x, mask = read("amin", x, mask, dtype)
    return F.amin(filled(x, mask, highest(x)), axis, keepdims)


@composite(public={"masked": ("argmax",)})
@names_errors
def masked_argmax(
    x: Any, axis: int | None = None, keepdims: bool = False, *, dtype: Any = None, mask: Any = None
) -> Any:
    """Return where along an axis the largest element is of those where mask is True."""
    x, mask = read("argmax", x, mask, dtype)
    return F.argmax(filled(x, mask, lowest(x)), axis, keepdims)


@composite(public={"masked": ("argmin",)})
@names_errors
def masked_argmin(
    x: Any, axis: int | None = None, keepdims: bool = False, *, dtype: Any = None, mask: Any = None
) -> Any:
    """Return where along an axis the smallest element is of those where mask is True."""
    x, mask = read("argmin", x, mask, dtype)
    return F.argmin(filled(x, mask, highest(x)), axis, keepdims)


@composite(public={"masked": ("mean",)})
@names_errors
@rounded_once
def masked_mean(
    x: Any, axis: Axes = None, keepdims: bool = False, *, dtype: Any = None, mask: Any = None
) -> Any:
    """Return the mean over axes of the elements where mask is True; of none it is NaN."""
    x, mask = _floats(*read("mean", x, mask, dtype))
    return F.sum(filled(x, mask, 0), axis, keepdims) / counts(x, mask, axis, keepdims)


@composite(public={"masked": ("median",)})
@names_errors
def masked_median(
    x: Any, axis: int = -1, keepdims: bool = False, *, dtype: Any = None, mask: Any = None
) -> Any:
    """Return the (lower) median along an axis of the elements where mask is True."""
    x, mask = _floats(*read("median", x, mask, dtype))
    ordered = F.sort(filled(x, mask, np.inf), axis)
    middle = F.cast(counts(x, mask, axis, True), "int64")
    place = F.maximum(F.floor_divide(middle - 1, 2), 0)
    found = F.take_along_axis(ordered, place, axis)
    found = F.where(middle == 0, np.nan, found)
    return found if keepdims else F.squeeze(found, axis)


@composite(public={"masked": ("var",)})
@names_errors
@rounded_once
def masked_var(
    x: Any,
    axis: Axes = None,
    unbiased: bool = True,
    keepdims: bool = False,
    *,
    correction: float | None = None,
    dtype: Any = None,
    mask: Any = None,
) -> Any:
    """Return the variance over axes of the elements where mask is True.

    The sum of squares is divided by the number of these less `correction`: 1, or 0 if not unbiased.
    """
    less = (1 if unbiased else 0) if correction is None else correction
    x, mask = _floats(*read("var", x, mask, dtype))
    count = counts(x, mask, axis, True)
    mean = F.sum(filled(x, mask, 0), axis, True) / count
    squares = F.sum(filled((x - mean) ** 2, mask, 0), axis, keepdims)
    return squares / (counts(x, mask, axis, keepdims) - less)


@composite(public={"masked": ("std",)})
@names_errors
def masked_std(
    x: Any,
    axis: Axes = None,
    unbiased: bool = True,
    keepdims: bool = False,
    *,
    correction: float | None = None,
    dtype: Any = None,
    mask: Any = None,
) -> Any:
    """Return the standard deviation over axes of the elements where mask is True."""
    options = {"correction": correction, "dtype": dtype, "mask": mask}
    return F.sqrt(masked_var(x, axis, unbiased, keepdims, **options))


@composite(public={"masked": ("norm",)})
@names_errors
@rounded_once
def masked_norm(
    x: Any,
    ord: float = 2.0,
    axis: Axes = None,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    mask: Any = None,
) -> Any:
    """Return the vector norm over axes of the elements where mask is True."""
    x, mask = _floats(*read("norm", x, mask, dtype))
    return F.vector_norm(filled(x, mask, np.inf if ord < 0 else 0), ord, axis, keepdims)


@composite(public={"masked": ("logsumexp",)})
@names_errors
@rounded_once
def masked_logsumexp(
    x: Any, axis: Axes = None, keepdims: bool = False, *, dtype: Any = None, mask: Any = None
) -> Any:
    """Return log(sum(exp(x))) over axes of the elements where mask is True."""
    x, mask = _floats(*read("logsumexp", x, mask, dtype))
    return F.logsumexp(filled(x, mask, -np.inf), axis, keepdims)


def _floats(x: Any, mask: Any) -> tuple[Any, Any]:
    return (x if is_float(x.dtype) else F.cast(x, default_float())), mask
