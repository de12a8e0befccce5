"""Functions with the arguments and results of PyTorch's kernels: modes as numbers, statistics."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import tensor as core
from ...core.op import F
from ..adoption import adopt
from ..calls import write_out
from ..deferred import weft_function
from .adapted import nonzero_rows

_MODES = ("bilinear", "nearest", "bicubic")
_PADDINGS = ("zeros", "border", "reflection")


def grid_sampler(
    input: Any, grid: Any, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Any:
    """Return an image, or a volume, read at the places of a grid; modes are numbers."""
    sample: Any = weft_function("grid_sample", "nn.functional")
    mode, padding = _MODES[interpolation_mode], _PADDINGS[padding_mode]
    return adopt(sample(input, grid, mode, padding, align_corners))


def _statistics(x: Any, axes: tuple[int, ...], eps: float, keepdims: bool) -> tuple[Any, Any]:
    """Return means, and by what deviations are multiplied."""
    var, mean = weft_function("var_mean")(x, axes, correction=0, keepdims=keepdims)  # type: ignore[misc]  # there
    return adopt(mean), adopt(F.rsqrt(var + eps))


def native_layer_norm(input: Any, normalized_shape: Any, weight: Any, bias: Any, eps: float) -> Any:
    """Return layer normalization, with the means and reciprocal deviations it used."""
    normalize: Any = weft_function("layer_norm", "nn.functional")
    found = normalize(input, tuple(normalized_shape), weight, bias, eps)
    axes = tuple(range(input.ndim - len(normalized_shape), input.ndim))
    return adopt(found), *_statistics(input, axes, eps, keepdims=True)


def native_group_norm(
    input: Any, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float
) -> Any:
    """Return group normalization, with the means and reciprocal deviations it used."""
    normalize: Any = weft_function("group_norm", "nn.functional")
    found = normalize(input, group, weight, bias, eps)
    rows = F.reshape(input, (N, group, C // group * HxW))
    return adopt(found), *_statistics(rows, (2,), eps, keepdims=False)


def native_batch_norm(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    """Return batch normalization, with the means and reciprocal deviations of the batch."""
    normalize: Any = weft_function("batch_norm", "nn.functional")
    found = normalize(input, running_mean, running_var, weight, bias, training, momentum, eps)
    if not training:
        nothing = adopt(core.wrap(np.zeros(0, input.dtype)))
        return adopt(found), nothing, nothing
    axes = (0, *range(2, input.ndim))
    return adopt(found), *_statistics(input, axes, eps, keepdims=False)


def nonzero_static(input: Any, *, size: int, fill_value: int = -1, out: Any = None) -> Any:
    """Return the places of elements that are not zero as rows: so many, filled up or cut off."""
    places = nonzero_rows(input)._read()[:size]
    rows = np.full((size, input.ndim), fill_value, np.int64)
    rows[: len(places)] = places
    found = adopt(core.wrap(rows))
    return found if out is None else write_out(found, out)


FUNCTIONS: dict[str, Any] = {
    "grid_sampler": grid_sampler,
    "grid_sampler_2d": grid_sampler,
    "grid_sampler_3d": grid_sampler,
    "native_layer_norm": native_layer_norm,
    "native_group_norm": native_group_norm,
    "native_batch_norm": native_batch_norm,
    "nonzero_static": nonzero_static,
}
