"""Functions along an axis, of the elements that a mask lets through: softmax, cumsum and others."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.op import F, composite
from .._halves import rounded_once
from .._operands import names_errors
from ._shared import filled, read
from .reductions import masked_norm


@composite(public={"masked": ("softmax",)})
@names_errors
@rounded_once
def masked_softmax(x: Any, axis: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Return softmax over the elements where mask is True; the others get 0."""
    x, mask = read("softmax", x, mask, dtype)
    return F.softmax(filled(x, mask, -np.inf), axis)


@composite(public={"masked": ("log_softmax",)})
@names_errors
@rounded_once
def masked_log_softmax(x: Any, axis: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Return the logarithm of softmax over the elements where mask is True."""
    x, mask = read("log_softmax", x, mask, dtype)
    return F.log_softmax(filled(x, mask, -np.inf), axis)


@composite(public={"masked": ("softmin",)})
@names_errors
@rounded_once
def masked_softmin(x: Any, axis: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Return softmax of -x over the elements where mask is True; the others get 0."""
    x, mask = read("softmin", x, mask, dtype)
    return F.softmax(filled(-x, mask, -np.inf), axis)


@composite(public={"masked": ("normalize",)})
@names_errors
@rounded_once
def masked_normalize(
    x: Any, ord: float, axis: int, *, eps: float = 1e-12, dtype: Any = None, mask: Any = None
) -> Any:
    """Return x, 0 where mask is False, over its norm along an axis (at least eps)."""
    x, mask = read("normalize", x, mask, dtype)
    norm = masked_norm(x, ord, axis, True, mask=mask)
    return filled(x, mask, 0) / F.maximum(norm, eps)


@composite(public={"masked": ("cumsum",)})
@names_errors
@rounded_once
def masked_cumsum(x: Any, axis: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Return running sums along an axis of the elements where mask is True."""
    x, mask = read("cumsum", x, mask, dtype)
    return F.cumsum(filled(x, mask, 0), axis)


@composite(public={"masked": ("cumprod",)})
@names_errors
@rounded_once
def masked_cumprod(x: Any, axis: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Return running products along an axis of the elements where mask is True."""
    x, mask = read("cumprod", x, mask, dtype)
    return F.cumprod(filled(x, mask, 1), axis)


@composite(public={"masked": ("logaddexp",)})
@names_errors
@rounded_once
def masked_logaddexp(
    x: Any, y: Any, *, dtype: Any = None, x_mask: Any = None, y_mask: Any = None
) -> Any:
    """Return log(exp(x) + exp(y)), without the parts where their masks are False."""
    x, x_mask = read("logaddexp", x, x_mask, dtype)
    y, y_mask = read("logaddexp", y, y_mask, dtype)
    return F.logaddexp(filled(x, x_mask, -np.inf), filled(y, y_mask, -np.inf))
