"""Slices of bounded norm, and derivatives of sampled functions."""

from __future__ import annotations

from typing import Any

from ...core.dim import surely_less
from ...core.errors import ArgumentError, ShapeError
from ...core.op import F, composite
from ...core.shape import normalize_axes, normalize_axis
from .._halves import rounded_once
from .._operands import names_errors, operand


@composite(method=True)
@names_errors
@rounded_once
def renorm(x: Any, p: float, dim: int, maxnorm: float) -> Any:
    """Return x with the slices along an axis scaled to a p-norm of at most maxnorm.

    >>> import weft as wf
    >>> wf.renorm(wf.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6, 0.8],
            [0.3, 0.4]])
    """
    x = operand("renorm", "x", x)
    if not (p > 0 and maxnorm >= 0):
        raise ArgumentError(
            f"p must be positive and maxnorm not negative. Received: {p}, {maxnorm}"
        )
    if x.ndim < 2:
        raise ShapeError(f"x must have at least two dimensions. Received: {tuple(x.shape)}")
    axis = normalize_axis(dim, x.ndim, "dim")
    others = tuple(i for i in range(x.ndim) if i != axis)
    norms = F.vector_norm(x, p, others, True)
    large = norms > maxnorm
    factor = maxnorm / (F.where(large, norms, F.ones_like(norms)) + 1e-7)
    return x * F.where(large, factor, F.ones_like(norms))


@composite(public=("wf",), lists=True)
@names_errors
@rounded_once
def gradient(x: Any, *, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> Any:
    """Return the derivatives of sampled values along axes, a list with one tensor for each.

    spacing      the distance of samples: one number, one for each axis, or their coordinates
    dim          the axes, by default all
    edge_order   1 or 2: the order of the differences at the ends

    Inside, differences are of second order, also where distances differ.

    >>> import weft as wf
    >>> wf.gradient(wf.tensor([1.0, 4.0, 9.0, 16.0]))
    [tensor([3., 4., 6., 7.])]
    """
    x = operand("gradient", "x", x)
    axes = normalize_axes(dim, x.ndim, "dim")
    if dim is not None and not isinstance(dim, int):
        axes = tuple(normalize_axis(d, x.ndim, "dim") for d in dim)
    if edge_order not in (1, 2):
        raise ArgumentError(f"edge_order must be 1 or 2. Received: {edge_order}")
    return [
        _derivative(x, axis, step, edge_order)
        for axis, step in zip(axes, _steps(spacing, axes), strict=True)
    ]


def _steps(spacing: Any, axes: tuple[int, ...]) -> list[Any]:
    """Return for each axis a distance, or coordinates."""
    if isinstance(spacing, (tuple, list)):
        if len(spacing) != len(axes):
            raise ArgumentError(
                f"spacing must have an entry for each of {len(axes)} axes. Received: {len(spacing)}"
            )
        return list(spacing)
    return [spacing] * len(axes)


def _derivative(x: Any, axis: int, step: Any, edge_order: int) -> Any:
    size = x.shape[axis]
    if surely_less(size, edge_order + 1):
        raise ShapeError(
            f"axis {axis} must have at least {edge_order + 1} elements. Received: {size}"
        )
    x = x if x.dtype.kind == "f" else F.true_divide(x, 1)
    moved = F.moveaxis(x, axis, -1)
    even = not hasattr(step, "ndim") or step.ndim == 0
    gaps = None if even else F.cast(step[1:] - step[:-1], moved.dtype)
    if gaps is not None and gaps.shape[0] != size - 1:
        raise ShapeError(f"spacing must hold {size} coordinates. Received: {gaps.shape[0] + 1}")
    inner = _inside(moved, gaps)
    first, last = _ends(moved, gaps, edge_order)
    found = F.concat([first, inner, last], -1)
    return F.moveaxis(found / step if even else found, -1, axis)


def _inside(x: Any, gaps: Any) -> Any:
    if gaps is None:
        return (x[..., 2:] - x[..., :-2]) / 2
    before, after = gaps[:-1], gaps[1:]
    rise, fall = x[..., 2:] - x[..., 1:-1], x[..., 1:-1] - x[..., :-2]
    return (before**2 * rise + after**2 * fall) / (before * after * (before + after))


def _ends(x: Any, gaps: Any, order: int) -> tuple[Any, Any]:
    first, last = x[..., 1:2] - x[..., :1], x[..., -1:] - x[..., -2:-1]
    g = (1.0,) * 4 if gaps is None else (gaps[:1], gaps[1:2], gaps[-2:-1], gaps[-1:])
    if order == 1:
        return first / g[0], last / g[3]
    second, before = x[..., 2:3] - x[..., 1:2], x[..., -2:-1] - x[..., -3:-2]
    start = first / g[0] + (first / g[0] - second / g[1]) * g[0] / (g[0] + g[1])
    end = last / g[3] + (last / g[3] - before / g[2]) * g[3] / (g[2] + g[3])
    return start, end
