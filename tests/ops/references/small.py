"""References of small additions: numbers by their bits, runs, strided reads, products scattered."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby
from typing import Any

import numpy as np

from weft.core.samples import ErrorSample, Sample, Sampler


def _frexp(x: Any) -> Any:
    mantissa, exponent = np.frexp(x)
    return mantissa, exponent.astype(np.int32)


def _runs(x: Any, axis: int | None = None) -> Any:
    rows = x.reshape(-1) if axis is None else np.moveaxis(x, axis, 0)
    found = [list(group) for _, group in groupby(range(len(rows)), lambda i: rows[i].tobytes())]
    values = np.array([rows[group[0]] for group in found], x.dtype)
    values = values.reshape(len(found), *rows.shape[1:])
    inverse = np.array([i for i, group in enumerate(found) for _ in group], np.int64)
    shape = x.shape if axis is None else (len(rows),)
    values = values if axis is None else np.moveaxis(values, 0, axis)
    return values, inverse.reshape(shape), np.array([len(group) for group in found], np.int64)


def _unique_consecutive(
    x: Any, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None
) -> Any:
    values, inverse, counts = _runs(x, axis)
    return (values, *[inverse] * return_inverse, *[counts] * return_counts)


def _as_strided(x: Any, size: Any, stride: Any, storage_offset: int = 0) -> Any:
    flat = np.ascontiguousarray(x).reshape(-1)[storage_offset:]
    strides = [step * x.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(flat, size, strides).copy()


def _scatter_product(x: Any, index: Any, src: Any, dim: int, include_self: bool = True) -> Any:
    out, touched = x.copy(), set()
    for place in np.ndindex(index.shape):
        target = (*place[:dim], int(index[place]), *place[dim + 1 :])
        if not include_self and target not in touched:
            out[target] = 1
        touched.add(target)
        out[target] *= src[place]
    return out


def _index_reduce(x: Any, dim: int, index: Any, source: Any, reduce: str, **options: Any) -> Any:
    moved, parts = np.moveaxis(x, dim, 0), np.moveaxis(source, dim, 0)
    out = moved.astype(np.float64)
    own = options.get("include_self", True)
    fold = {"prod": np.prod, "amax": np.max, "amin": np.min, "mean": np.mean}[reduce]
    for i in range(len(out)):
        sent = [parts[j] for j in range(len(index)) if index[j] == i]
        if sent:
            out[i] = fold(np.stack([moved[i], *sent] if own else sent), axis=0)
    return np.moveaxis(out, 0, dim)


REFERENCES: dict[str, Callable[..., Any]] = {
    "frexp": _frexp,
    "ldexp": np.ldexp,
    "nextafter": np.nextafter,
    "gcd": np.gcd,
    "lcm": np.lcm,
    "float_power": np.float_power,
    "runs": _runs,
    "unique_consecutive": _unique_consecutive,
    "unravel_index": lambda indices, shape: tuple(np.unravel_index(indices, shape)),
    "as_strided": _as_strided,
    "scatter_product": _scatter_product,
    "index_reduce": _index_reduce,
}


def _index_reduce_samples(s: Sampler) -> Any:
    index = np.array([2, 0, 2])
    for reduce in ("prod", "amax", "amin", "mean"):
        x, source = s.distinct(2, 3, 2)
        yield Sample(x, 0, index, source, reduce)
    yield Sample(s.away(2, 3), 1, index, s.away(2, 3), "prod", include_self=False)


COMPOSITE_SAMPLES: dict[str, Callable[[Sampler], Any]] = {
    "ldexp": lambda s: [Sample(s.real(2, 1), s.integers(3, low=-3, high=4))],
    "float_power": lambda s: [
        Sample(np.array([0.5, 2.0, 1.25]), 2.5),
        Sample(s.integers(3), np.array(2)),
    ],
    "unique_consecutive": lambda s: [
        Sample(np.array([1, 1, 2, 1])),
        Sample(np.array([1, 1, 2, 1]), return_inverse=True, return_counts=True),
        Sample(np.array([[1, 1, 2], [3, 3, 3]]), axis=1),
    ],
    "unravel_index": lambda s: [Sample(np.array([[0, 5], [3, 2]]), (2, 3))],
    "as_strided": lambda s: [
        Sample(s.real(6), (3, 2), (1, 2)),
        Sample(s.real(2, 4), (2, 2), (4, 1), 1),
        Sample(s.real(4), (), ()),
    ],
    "index_reduce": _index_reduce_samples,
}
COMPOSITE_ERROR_SAMPLES: dict[str, Callable[[Sampler], Any]] = {
    "as_strided": lambda s: [
        ErrorSample(s.real(4), (3, 2), (1, 2), error=ValueError, match="0 to 4 of 4"),
        ErrorSample(s.real(4), (3, 2), (1,), error=ValueError, match=r"\(3, 2\) and \(1,\)"),
    ],
    "index_reduce": lambda s: [
        ErrorSample(
            s.real(3),
            0,
            np.array([[0]]),
            s.real(1),
            "prod",
            error=ValueError,
            match=r"1-D.*\(1, 1\)",
        )
    ],
    "unravel_index": lambda s: [
        ErrorSample(s.real(2), (2, 3), error=TypeError, match="indices must hold integers")
    ],
}
