"""Rows that are named several times: the places in which what goes to each is added up."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtype import int64
from ...core.errors import ShapeError
from ...core.op import F, general, op
from ...core.row_sparse import RowSparse, sorted_rows
from ...core.samples import ErrorSample, Sample
from ...core.shape import Shape, TensorType
from ...core.tensor import Tensor
from ._checks import check_integer
from ._spec import ARRAY


@op(general, outputs=2, method=False)
def row_slots(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return a place for each of n rows, the same for equal ones, and the row of each place.

    There are n places, so that sizes do not depend on values. The distinct rows take the last of
    them, in ascending order; those before stand for the lowest row, and nothing goes there. Where
    values are written back in order, what the lowest row is given last stays.
    """


@row_slots.canon
def _(rows):
    check_integer(rows, "rows")
    if rows.ndim != 1:
        raise ShapeError(f"rows must be a vector. Received: shape {tuple(rows.shape)}")
    return ()


@row_slots.eval
def _(rows):
    count = rows.size
    order, ascending, begins = sorted_rows(rows)
    distinct = ascending[begins]
    places = np.cumsum(begins)
    places += count - distinct.size - 1
    slots = np.empty(count, np.int64)
    slots[order] = places
    shown = np.empty(count, np.int64)
    shown[: count - distinct.size] = ascending[:1]
    shown[count - distinct.size :] = distinct
    return slots, shown


@row_slots.expand
def _(rows):
    count = rows.shape[0]
    order = F.argsort(rows, 0)
    ascending = F.cast(F.take(rows, order, 0), int64)
    begins = F.concat([F.ones_like(order[:1]), F.cast(ascending[1:] != ascending[:-1], int64)], 0)
    places = F.cumsum(begins, 0) + (count - 1 - F.sum(begins))
    lowest = F.broadcast_to(ascending[:1], (count,))
    return with_rows_at(lowest, order, places), with_rows_at(lowest, places, ascending)


@row_slots.infer
def _(rows):
    found = TensorType(rows.shape, int64)
    return found, found


@row_slots.samples
def _(s):
    yield Sample(np.array([5, 2, 5, 9, 2, 2]))
    yield Sample(np.array([3, 1, 2], np.int32), label="distinct")
    yield Sample(np.array([4, 4], np.uint8), label="one row")
    yield Sample(np.zeros(0, int), label="empty")


@row_slots.error_samples
def _(s):
    yield ErrorSample(s.real(3), error=TypeError, match="integers.*float64")
    yield ErrorSample(np.zeros((2, 2), int), error=ValueError, match=r"vector.*\(2, 2\)")


def row_gradient(g: Any, index: Any, shape: Shape, *, wraps: bool = False) -> RowSparse:
    """Return the gradient of a table of `shape`, of which `index` has read rows, by rows.

    wraps   whether an index may be negative, and counts from the end then
    """
    rows = F.reshape(index, (-1,))
    rows = rows if rows.dtype == int64 else F.cast(rows, int64)
    rows = F.where(rows < 0, rows + shape[0], rows) if wraps else rows
    return RowSparse(rows, F.reshape(g, (*rows.shape, *shape[1:])), shape)


def index_counts(index: Any) -> Any:
    """Return how often each of the integers of a tensor stands in it, in its shape."""
    flat = F.reshape(index, (-1,))
    slots, _ = F.row_slots(flat)
    counts = F.take_adjoint(F.ones_like(slots), slots, tuple(flat.shape), 0)
    return F.reshape(F.take(counts, slots, 0), tuple(index.shape))


def with_rows_at(table: Any, rows: Any, values: Any) -> Any:
    """Return a table with other values in some rows; of several for one row the last stays."""
    return F.setitem_arrays(table, values, [rows], (ARRAY,))
