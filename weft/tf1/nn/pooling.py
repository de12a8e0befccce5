"""Pooling: channels last by default, padding "SAME" or "VALID"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.op import F
from ..recording import Tensor, record
from .windows import Layout


def _pool(
    type: str,
    compute: Callable[..., Any],
    spatial: int,
    value: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: Any,
    name: str | None,
) -> Tensor:
    layout = Layout(spatial, data_format, padding, strides)
    window = layout.sizes(ksize, "ksize")

    def run(x: Any) -> Any:
        inner = layout.inward(x)
        pairs = layout.pairs(inner.shape[2:], window)
        return layout.outward(compute(inner, window, layout.strides, pairs))

    made: Tensor = record(type, run, [value], name=name)
    return made


def _maxima(x: Any, window: Any, strides: Any, pairs: Any) -> Any:
    return F.max_pool(x, window, strides, pairs)[0]


def _means(x: Any, window: Any, strides: Any, pairs: Any) -> Any:
    total = F.sum_pool(x, window, strides, pairs)
    if all(pair == (0, 0) for pair in pairs):
        count = 1
        for size in window:
            count *= size
        return total / count
    return total / F.sum_pool(F.ones_like(x), window, strides, pairs)  # padding is not counted


def max_pool(
    value: Any = None,
    ksize: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: Any = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """Return the maxima of windows of images."""
    return _pool(
        "MaxPool",
        _maxima,
        2,
        value if input is None else input,
        ksize,
        strides,
        padding,
        data_format,
        name,
    )


def avg_pool(
    value: Any = None,
    ksize: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: Any = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """Return the means of windows of images; padding is not counted."""
    return _pool(
        "AvgPool",
        _means,
        2,
        value if input is None else input,
        ksize,
        strides,
        padding,
        data_format,
        name,
    )


def max_pool3d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: Any = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """Return the maxima of windows of volumes."""
    return _pool("MaxPool3D", _maxima, 3, input, ksize, strides, padding, data_format, name)


def avg_pool3d(
    input: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: Any = "NDHWC",
    name: str | None = None,
) -> Tensor:
    """Return the means of windows of volumes."""
    return _pool("AvgPool3D", _means, 3, input, ksize, strides, padding, data_format, name)


def pool(
    input: Any,
    window_shape: Any,
    pooling_type: str,
    padding: Any,
    dilation_rate: Any = None,
    strides: Any = None,
    name: str | None = None,
    data_format: Any = None,
) -> Tensor:
    """Return the maxima ("MAX") or means ("AVG") of windows over one to three axes."""
    compute = {"MAX": _maxima, "AVG": _means}[pooling_type.upper()]
    spatial = len(window_shape)
    return _pool(
        pooling_type,
        compute,
        spatial,
        input,
        window_shape,
        strides,
        padding,
        data_format,
        name or "pool",
    )
