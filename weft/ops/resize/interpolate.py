"""Interpolation of (N, C, *spatial), with PyTorch's names and conventions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dim import Dim, known_size
from ...core.dtype import is_float, to_float
from ...core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ...core.op import F, composite
from ...core.tensor import Tensor
from .._halves import rounded_once
from ..conv.geometry import named, per_axis

# public mode -> mode along each axis, and the number of spatial axes it is for (None: any)
MODES: dict[str, tuple[str, int | None]] = {
    "nearest": ("nearest", None),
    "nearest-exact": ("nearest-exact", None),
    "area": ("area", None),
    "linear": ("linear", 1),
    "bilinear": ("linear", 2),
    "trilinear": ("linear", 3),
    "bicubic": ("cubic", 2),
}
MOST_EXACT = 2**20  # numerators of factors by which sizes are scaled without rounding


@composite(aliases=("upsample",))
@rounded_once
def interpolate(
    x: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Return (N, C, *spatial) resized to `size`, or by `scale_factor` (sizes rounded down).

    mode                     "nearest", "nearest-exact", "area" (averages); "linear" (1-d),
                             "bilinear", "bicubic" (2-d), "trilinear" (3-d)
    align_corners            linear and cubic: let the centres of the corner elements coincide,
                             instead of the outer borders
    recompute_scale_factor   step by the ratio of the sizes, not by the given factor, where
                             rounding makes them differ
    antialias                "bilinear", "bicubic": widen the filter where the image shrinks, so
                             that every element counts

    Coordinates are computed in double precision, so "nearest" never depends on the dtype of x.

    >>> import weft as wf
    >>> x = wf.tensor([[[0.0, 4.0]]])
    >>> wf.nn.functional.interpolate(x, size=4, mode="linear")
    tensor([[[0., 1., 3., 4.]]])
    """
    with named("interpolate", "resize_axis"):
        kind = _checked_mode(x, mode, align_corners) + _suffix(mode, antialias)
        sizes, steps = _sizes_and_steps(x.shape[2:], size, scale_factor)
        if recompute_scale_factor or align_corners or kind == "area":
            steps = (None,) * len(sizes)
        if not is_float(x.dtype) and not kind.startswith("nearest"):
            x = F.cast(x, to_float(x.dtype))
        for axis, (count, step) in enumerate(zip(sizes, steps, strict=True), start=2):
            x = F.resize_axis(x, count, axis, kind, bool(align_corners), step)
        return x


def _checked_mode(x: Any, mode: Any, align_corners: Any) -> str:
    if mode not in MODES:
        raise ArgumentError(f"mode must be one of {', '.join(MODES)}. Received: {mode!r}")
    kind, spatial = MODES[mode]
    if x.ndim < 3 or spatial not in (None, x.ndim - 2):
        needed = "at least 1" if spatial is None else spatial
        raise ShapeError(
            f"mode {mode!r} needs (batch, channels, *spatial) with {needed} spatial axes. "
            f"Received: shape {tuple(x.shape)}"
        )
    if align_corners is not None and kind not in ("linear", "cubic"):
        raise ArgumentError(
            f"align_corners applies to linear and cubic modes only. "
            f"Received: align_corners={align_corners!r}, mode={mode!r}"
        )
    return kind


def _suffix(mode: str, antialias: Any) -> str:
    if antialias and mode not in ("bilinear", "bicubic"):
        raise ArgumentError(f"antialias applies to bilinear and bicubic only. Received: {mode!r}")
    return "-antialias" if antialias else ""


def _sizes_and_steps(
    current: tuple[int, ...], size: Any, scale_factor: Any
) -> tuple[tuple[int, ...], tuple[float | None, ...]]:
    """Return the new sizes and, for given factors, the distance of outputs in inputs."""
    if (size is None) == (scale_factor is None):
        raise ArgumentError(
            "give either size or scale_factor. "
            f"Received: size={size!r}, scale_factor={scale_factor!r}"
        )
    if size is not None:
        return per_axis(size, len(current), "size", minimum=1), (None,) * len(current)
    factors = _factors(scale_factor, len(current))
    sizes = tuple(_scaled(n, f) for n, f in zip(current, factors, strict=True))
    if 0 in sizes:
        raise ArgumentError(
            f"scale_factor {scale_factor!r} leaves nothing of the size {current}: it gives {sizes}"
        )
    return sizes, tuple(1.0 / f for f in factors)


def _scaled(size: Any, factor: float) -> Any:
    """Return a size times a factor, rounded down."""
    numerator, denominator = factor.as_integer_ratio()
    if isinstance(size, Dim) and numerator < MOST_EXACT:  # then the product of floats is exact
        return size * numerator // denominator
    return int(np.floor(known_size(size, f"the size scaled by {factor}") * factor))


def _factors(scale_factor: Any, spatial: int) -> tuple[float, ...]:
    given = scale_factor if isinstance(scale_factor, (tuple, list)) else (scale_factor,)
    for factor in given:
        if isinstance(factor, bool) or not isinstance(factor, (int, float, np.number)):
            raise ArgumentTypeError(f"scale_factor must be a number. Received: {scale_factor!r}")
    if len(given) not in (1, spatial) or not all(0 < factor < np.inf for factor in given):
        raise ArgumentError(
            f"scale_factor must be a positive number or {spatial} of them. "
            f"Received: {scale_factor!r}"
        )
    factors = tuple(float(factor) for factor in given)
    return factors * spatial if len(factors) == 1 else factors
