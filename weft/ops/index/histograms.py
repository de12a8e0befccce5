"""Histograms: counts between two bounds, and of points in several dimensions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.dtype import float64
from ...core.errors import ArgumentError, ShapeError
from ...core.op import F, composite, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, as_int, size_of
from ...core.sums import widened
from ...core.tensor import Tensor, constant
from .._operands import concrete, names_errors
from ._checks import operands
from .search import bin_of


@composite(method=True)
@names_errors
def histc(x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """Return how many elements fall into each of `bins` intervals from min to max, as floats.

    With min = max = 0 they reach from the smallest to the largest element.

    >>> import weft as wf
    >>> wf.histc(wf.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
    tensor([0., 2., 1., 0.])
    """
    (x,) = operands(x)
    low, high = float(min), float(max)
    if low > high:
        raise ArgumentError(f"max must not be below min. Received: min={min}, max={max}")
    counts, _ = F.histogram(x, bins, None if low == high == 0 else (low, high))
    found: Tensor = F.cast(counts, x.dtype)
    return found


@op(general, promote="float", method=False)
def point_counts(
    x: Tensor,
    weights: Tensor | None,
    edges: tuple[tuple[float, ...], ...],
    density: bool = False,
) -> Tensor:
    """Return how many rows of x (N, D) fall into each cell between edges, or their weights' sum."""


@point_counts.canon
def _(x, weights, edges, density):
    edges = tuple(tuple(map(float, axis)) for axis in edges)
    if x.ndim != 2 or x.shape[1] != len(edges):
        raise ShapeError(
            f"x must have shape (N, {len(edges)}), as there are edges. Received: {tuple(x.shape)}"
        )
    if any(len(axis) < 2 or sorted(axis) != list(axis) for axis in edges):
        raise ArgumentError("edges must be two or more ascending numbers along each axis")
    return edges, bool(density)


@point_counts.infer
def _(x, weights, edges, density):
    return TensorType(tuple(len(axis) - 1 for axis in edges), x.dtype)


@point_counts.eval
def _(x, weights, edges, density):
    wide = None if weights is None else widened(weights)
    counts, _ = np.histogramdd(widened(x), [np.array(e) for e in edges], None, density, wide)
    return counts.astype(x.dtype)


@point_counts.expand
def _(x, weights, edges, density):
    if 0 in x.shape:
        return None
    wide, place, inside = F.cast(x, float64), 0, None
    for axis, given in enumerate(edges):
        own, holds = bin_of(wide[:, axis], np.array(given))
        place = place * (len(given) - 1) + own
        inside = holds if inside is None else inside & holds
    ones = F.ones_like(wide[:, 0]) if weights is None else F.cast(weights, float64)
    shape = tuple(len(given) - 1 for given in edges)
    values = F.where(inside, ones, F.zeros_like(ones))
    counts = F.reshape(F.take_adjoint(values, place, (size_of(shape),), 0), shape)
    if density:
        counts = counts / F.sum(counts) / _cells(edges)
    return F.cast(counts, x.dtype)


def _cells(edges: Any) -> Any:
    """Return the sizes of cells between edges."""
    sizes: Any = np.ones(())
    for given in edges:
        sizes = sizes[..., None] * np.diff(np.array(given))
    return sizes


@point_counts.samples
def _(s):
    edges = ((-2.0, 0.0, 2.0), (-2.0, -1.0, 1.0, 2.0))
    yield Sample(s.real(9, 2), None, edges, grad=0)
    yield Sample(s.real(9, 2), s.positive(9), edges, True, grad=0)
    yield Sample(s.real(0, 1), None, ((0.0, 1.0),), grad=0)


@point_counts.error_samples
def _(s):
    yield ErrorSample(s.real(9), None, ((0.0, 1.0),), error=ValueError, match=r"\(N, 1\).*\(9,\)")
    yield ErrorSample(s.real(9, 1), None, ((1.0, 0.0),), error=ValueError, match="ascending")


class PointHistogram(NamedTuple):
    """What `histogramdd` returns."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


@composite(lists=True)
@names_errors
def histogramdd(
    x: Tensor, bins: Any, *, range: Any = None, weight: Any = None, density: bool = False
) -> PointHistogram:
    """Return how many rows of x (..., D) fall into each cell of a grid, and the edges.

    bins      one number for all axes, one for each, or the edges themselves
    range     two numbers for each axis, one after the other; by default what the data spans
    weight    what each row counts, shape (...)
    density   True: over the size of cells and the sum of all

    >>> import weft as wf
    >>> points = wf.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 2.0]])
    >>> wf.histogramdd(points, 2).hist
    tensor([[0., 1.],
            [1., 1.]])
    """
    (x,) = operands(x)
    if x.ndim < 2:
        raise ShapeError(f"x must have shape (..., D). Received: {tuple(x.shape)}")
    dims = x.shape[-1]
    rows = F.reshape(x, (-1, dims))
    given = list(bins) if isinstance(bins, (tuple, list)) else [bins] * dims
    if len(given) != dims:
        raise ArgumentError(f"bins must be one number or {dims}. Received: {len(given)}")
    edges = [_edges(rows, axis, count, range) for axis, count in enumerate(given)]
    flat = None if weight is None else F.reshape(operands(weight)[0], (-1,))
    counts = F.point_counts(rows, flat, tuple(edges), density)
    made = tuple(_beside(x, np.array(edge, x.dtype)) for edge in edges)
    return PointHistogram(counts, made)


def _beside(x: Any, array: Any) -> Any:
    """Return an array as a tensor where x is."""
    made = constant(array)
    return made.to(x.device) if isinstance(x, Tensor) and not x.symbolic else made


def _edges(rows: Any, axis: int, bins: Any, span: Any) -> tuple[float, ...]:
    known = concrete(bins) if hasattr(bins, "ndim") else None
    if known is not None and known.ndim == 1:
        return tuple(known.tolist())
    count = as_int(bins if known is None else known.item(), "bins")
    if count < 1:
        raise ArgumentError(f"bins must be at least 1. Received: {count}")
    if span is not None:
        low, high = float(span[2 * axis]), float(span[2 * axis + 1])
    else:
        values = concrete(rows)
        if values is None:
            raise ArgumentError("range must be given in a graph, where values are not known")
        column = widened(values[:, axis]) if len(values) else np.zeros(1)
        low, high = float(column.min()), float(column.max())
    if low == high:
        low, high = low - 0.5, high + 0.5
    return tuple(np.linspace(low, high, count + 1).tolist())
