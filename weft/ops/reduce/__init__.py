"""Operators that make fewer elements of many: sums, extrema, moments, norms, running totals."""

from . import (
    extrema,
    logsumexp,
    moments,
    norms,
    products,
    quantiles,
    running,
    scans,
    sums,
)

__all__ = [
    "extrema",
    "logsumexp",
    "moments",
    "norms",
    "products",
    "quantiles",
    "running",
    "scans",
    "sums",
]
