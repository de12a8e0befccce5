"""References of histograms, of derivatives of samples and of bounded slices: NumPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from weft.core.samples import ErrorSample, Sample, Sampler


def _point_counts(x: Any, weights: Any, edges: Any, density: bool = False) -> Any:
    found = np.histogramdd(x, [np.array(e) for e in edges], density=density, weights=weights)
    return found[0].astype(x.dtype)


def _histogramdd(x: Any, bins: Any, range: Any = None, weight: Any = None, **options: Any) -> Any:
    pairs = None if range is None else np.reshape(range, (-1, 2))
    counts, edges = np.histogramdd(x, bins, pairs, weights=weight, **options)
    return counts, tuple(edges)


def _histc(x: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    span = None if min == max == 0 else (min, max)
    return np.histogram(x, bins, span)[0].astype(x.dtype)


def _renorm(x: Any, p: float, dim: int, maxnorm: float) -> Any:
    rows = np.moveaxis(x.copy(), dim, 0)
    for i in range(len(rows)):
        norm = (np.abs(rows[i]) ** p).sum() ** (1 / p)
        if norm > maxnorm:
            rows[i] *= maxnorm / (norm + 1e-7)
    return np.moveaxis(rows, 0, dim)


def _gradient(x: Any, spacing: Any = 1, dim: Any = None, edge_order: int = 1) -> Any:
    axes = tuple(range(x.ndim)) if dim is None else np.atleast_1d(dim)
    steps = spacing if isinstance(spacing, (tuple, list)) else [spacing] * len(axes)
    return [
        np.gradient(x, step, axis=int(axis), edge_order=edge_order)
        for axis, step in zip(axes, steps, strict=True)
    ]


REFERENCES: dict[str, Callable[..., Any]] = {
    "point_counts": _point_counts,
    "histogramdd": _histogramdd,
    "histc": _histc,
    "renorm": _renorm,
    "gradient": _gradient,
}
COMPOSITE_SAMPLES: dict[str, Callable[[Sampler], Any]] = {
    "histogramdd": lambda s: [
        Sample(s.real(7, 2), [2, 3], range=(-2.0, 2.0, -2.0, 2.0), grad=0),
        Sample(s.real(7, 2), 2, range=(-2, 2, -1, 1), weight=s.positive(7), grad=0),
        Sample(s.real(7, 1), 3, range=(-2.0, 2.0), density=True, grad=0),
    ],
    "histc": lambda s: [
        Sample(s.real(9), bins=4, min=-1, max=1, grad=0),
        Sample(s.real(9), bins=3, grad=0),
    ],
    "renorm": lambda s: [Sample(s.real(3, 2) * 3, 2, 0, 1.5), Sample(s.real(2, 3, 2), 1, 2, 2.0)],
    "gradient": lambda s: [
        Sample(s.real(4, 3)),
        Sample(s.real(4), spacing=0.5, edge_order=2),
        Sample(s.real(4), spacing=[np.array([0.0, 0.5, 2.0, 2.5])], edge_order=2),
        Sample(s.real(2, 4), spacing=[np.array([0.0, 0.5, 2.0, 2.5])], dim=(1,)),
    ],
}
COMPOSITE_ERROR_SAMPLES: dict[str, Callable[[Sampler], Any]] = {
    "histogramdd": lambda s: [
        ErrorSample(s.real(7), 2, error=ValueError, match=r"\(..., D\).*\(7,\)"),
        ErrorSample(s.real(7, 2), [1, 2, 3], error=ValueError, match="one number or 2.*3"),
        ErrorSample(s.real(7, 2), 0, error=ValueError, match="at least 1.*0"),
    ],
    "histc": lambda s: [ErrorSample(s.real(3), min=2, max=1, error=ValueError, match="min=2")],
    "renorm": lambda s: [
        ErrorSample(s.real(3), 2, 0, 1.0, error=ValueError, match=r"two dimensions.*\(3,\)"),
        ErrorSample(s.real(3, 2), 0, 0, 1.0, error=ValueError, match="p must be positive"),
    ],
    "gradient": lambda s: [
        ErrorSample(s.real(1), error=ValueError, match="at least 2 elements.*1"),
        ErrorSample(s.real(4), edge_order=3, error=ValueError, match="1 or 2.*3"),
        ErrorSample(s.real(4), spacing=[1, 2], error=ValueError, match="1 axes.*2"),
    ],
}
