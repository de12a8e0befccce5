"""References of segments: a plain loop over segments, with NumPy's reduction of each."""

from __future__ import annotations

import numpy as np

from weft.core.samples import ErrorSample, Sample

IDS = np.array([0, 2, 0, 4, 2, 2, -1])


def _ids(values, segment_ids, row_splits):
    if row_splits is None:
        return np.asarray(segment_ids, int)
    splits = np.asarray(row_splits)
    return np.repeat(np.arange(len(splits) - 1), np.diff(splits))


def _reducer(reduce, empty):
    def reduced(values, segment_ids=None, num_segments=None, *, row_splits=None):
        ids = _ids(values, segment_ids, row_splits)
        if row_splits is not None:
            num_segments = len(row_splits) - 1
        count = max(ids, default=-1) + 1 if num_segments is None else num_segments
        ids = np.where(ids < 0, ids + count, ids)
        rows = [values[ids == i] for i in range(count)]
        dtype = reduce(np.ones((1, *values.shape[1:]), values.dtype)).dtype
        nothing = np.full(values.shape[1:], empty(values.dtype), dtype)
        made = [reduce(part) if len(part) else nothing for part in rows]
        return np.array(made, dtype).reshape(count, *values.shape[1:])

    return reduced


def _softmax(values, segment_ids=None, num_segments=None, *, row_splits=None):
    ids = _ids(values, segment_ids, row_splits)
    ids = np.where(ids < 0, ids + (num_segments or 0), ids)
    out = np.empty_like(values)
    for i in set(ids.tolist()):
        e = np.exp(values[ids == i] - values[ids == i].max(0))
        out[ids == i] = e / e.sum(0)
    return out


def _lowest(dtype):
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _highest(dtype):
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


REFERENCES = {
    "segment_sum": _reducer(lambda rows: rows.sum(0), lambda dtype: 0),
    "segment_mean": _reducer(lambda rows: rows.mean(0), lambda dtype: 0.0),
    "segment_max": _reducer(lambda rows: rows.max(0), _lowest),
    "segment_min": _reducer(lambda rows: rows.min(0), _highest),
    "segment_prod": _reducer(lambda rows: rows.prod(0), lambda dtype: 1),
    "segment_softmax": _softmax,
}


def _samples(s):
    yield Sample(s.distinct(7), IDS, 5)
    yield Sample(s.distinct(7, 2), IDS, 5)
    yield Sample(s.distinct(4, 1, 2), np.array([1, 0, 1, 3], np.int32), label="counted")
    yield Sample(s.distinct(5, 2), row_splits=np.array([0, 2, 2, 5]))
    yield Sample(s.distinct(2, 3), row_splits=np.array([0, 0, 2, 2]), label="empty rows")
    yield Sample(s.distinct(3)[::-1], np.array([0, 0, 0]), 1, label="non-contiguous")


def _empty_samples(s):
    yield Sample(s.real(0, 2), np.zeros(0, int), 3, label="empty")
    yield Sample(s.real(0), row_splits=np.array([0]), label="no segments")


def _number_samples(s):
    yield from _samples(s)
    yield from _empty_samples(s)
    yield Sample(s.integers(5), np.array([0, 1, 0, 2, 1]), 4, label="integers")


def _prod_samples(s):
    yield from _number_samples(s)
    zeros = np.array([1.5, 0.0, 2.0, 0.0, 3.0, 0.0, -2.0])
    yield Sample(zeros, np.array([0, 0, 0, 1, 1, 1, 1]), label="zeros")


COMPOSITE_SAMPLES = {
    "segment_sum": _number_samples,
    "segment_mean": _number_samples,
    "segment_max": _number_samples,
    "segment_min": _number_samples,
    "segment_prod": _prod_samples,
    "segment_softmax": _samples,
}


def _errors(name):
    def errors(s):
        x, ids = s.real(3, 2), np.array([0, 1, 0])
        yield ErrorSample(x, error=ValueError, match=f"^{name}: give segment_ids or row_splits")
        yield ErrorSample(x, ids, row_splits=ids, error=ValueError, match="Received: both")
        yield ErrorSample(x, s.real(3), error=TypeError, match="integers.*float64")
        yield ErrorSample(x, ids[:2], error=ValueError, match=r"\(3, 2\).*shape \(2,\)")
        yield ErrorSample(x, ids[:, None], error=ValueError, match=r"vector.*\(3, 1\)")
        yield ErrorSample(x[0, 0], ids, error=ValueError, match="must have rows")
        yield ErrorSample(x, ids, -1, error=ValueError, match="negative. Received: -1")
        yield ErrorSample(x, ids + 1, 2, error=IndexError, match=rf"^{name}: .* 2 .*size 2")
        yield ErrorSample(x, row_splits=[0, 2, 1, 3], error=ValueError, match="2 before 1")
        yield ErrorSample(x, row_splits=[0, 2], error=ValueError, match="from 0 to 3.*0 to 2")
        yield ErrorSample(x, row_splits=[], error=ValueError, match="begin with 0")
        yield ErrorSample(x, None, 1, row_splits=[0, 3], error=ValueError, match="num_segments too")

    return errors


COMPOSITE_ERROR_SAMPLES = {name: _errors(name) for name in REFERENCES}
