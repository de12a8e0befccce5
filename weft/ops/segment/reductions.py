"""Reductions of segments: a row for each, of all rows of values that lie in it.

Every function takes the same three arguments, see `segment_sum`. Rows of a segment need not stand
together. Sums go in the order of the rows; what nothing goes to has the neutral element.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dim import is_known
from ...core.dtype import DType, is_float
from ...core.errors import DTypeError
from ...core.op import F, composite
from ...core.tensor import Tensor
from .._halves import rounded_once
from .._operands import names_errors
from ..creation import full
from ._places import segments

MOST_STEPS = 40  # of doubling the distance, where the number of rows is not known


@composite()
@names_errors
@rounded_once
def segment_sum(
    values: Tensor,
    segment_ids: Any = None,
    num_segments: int | None = None,
    *,
    row_splits: Any = None,
) -> Tensor:
    """Return the sums of rows that lie in one segment.

    values        rows along the first axis
    segment_ids   the segment of each row, in any order; negative ids count from the end
    num_segments  how many segments there are; otherwise as many as the largest id says, which is
                  read, and must be given where ids have no values yet
    row_splits    instead of ids: rows splits[i] to splits[i + 1] are segment i

    >>> import weft as wf
    >>> wf.segment_sum(wf.tensor([1.0, 2.0, 4.0]), [0, 2, 0], 4)
    tensor([5., 0., 2., 0.])
    >>> wf.segment_sum(wf.tensor([1.0, 2.0, 4.0]), row_splits=[0, 1, 3])
    tensor([1., 6.])
    """
    values, ids, count = segments("segment_sum", values, segment_ids, num_segments, row_splits)
    return _sums(_counting(values), ids, count)


@composite()
@names_errors
@rounded_once
def segment_mean(
    values: Tensor,
    segment_ids: Any = None,
    num_segments: int | None = None,
    *,
    row_splits: Any = None,
) -> Tensor:
    """Return the means of rows that lie in one segment; segments without rows have zeros.

    Arguments are those of `segment_sum`.

    >>> import weft as wf
    >>> wf.segment_mean(wf.tensor([1.0, 2.0, 4.0]), [0, 1, 0], 3)
    tensor([2.5, 2. , 0. ])
    """
    values, ids, count = segments("segment_mean", values, segment_ids, num_segments, row_splits)
    values = values if is_float(values.dtype) else values * 1.0
    rows = F.maximum(_sizes(ids, count, values.dtype), 1)
    return _sums(values, ids, count) / _beside(rows, values)


@composite()
@names_errors
@rounded_once
def segment_max(
    values: Tensor,
    segment_ids: Any = None,
    num_segments: int | None = None,
    *,
    row_splits: Any = None,
) -> Tensor:
    """Return the largest of the rows in one segment; -inf where there are none.

    Arguments are those of `segment_sum`. Integers have the least of their dtype instead of -inf.
    Ties share the gradient equally.

    >>> import weft as wf
    >>> wf.segment_max(wf.tensor([1.0, 2.0, 4.0]), [0, 1, 0], 2)
    tensor([4., 2.])
    """
    values, ids, count = segments("segment_max", values, segment_ids, num_segments, row_splits)
    return _extremes(values, ids, count, True)


@composite()
@names_errors
@rounded_once
def segment_min(
    values: Tensor,
    segment_ids: Any = None,
    num_segments: int | None = None,
    *,
    row_splits: Any = None,
) -> Tensor:
    """Return the smallest of the rows in one segment; inf where there are none.

    Arguments are those of `segment_sum`; see `segment_max`.

    >>> import weft as wf
    >>> wf.segment_min(wf.tensor([1.0, 2.0, 4.0]), [0, 1, 0], 2)
    tensor([1., 2.])
    """
    values, ids, count = segments("segment_min", values, segment_ids, num_segments, row_splits)
    return _extremes(values, ids, count, False)


@composite()
@names_errors
@rounded_once
def segment_prod(
    values: Tensor,
    segment_ids: Any = None,
    num_segments: int | None = None,
    *,
    row_splits: Any = None,
) -> Tensor:
    """Return the products of rows that lie in one segment; 1 where there are none.

    Arguments are those of `segment_sum`. Derivatives are exact at zeros, to any order.

    >>> import weft as wf
    >>> wf.segment_prod(wf.tensor([1.0, 2.0, 4.0]), [0, 1, 0], 3)
    tensor([4., 2., 1.])
    """
    values, ids, count = segments("segment_prod", values, segment_ids, num_segments, row_splits)
    values = _counting(values)
    ids = F.where(ids < 0, ids + count, ids)
    order = F.argsort(ids)
    running = _running_products(F.take(values, order, 0), F.take(ids, order, 0))
    sizes = _sizes(ids, count, np.dtype(np.int64))
    # A row of ones stands first, for segments without rows.
    one = full((1, *values.shape[1:]), 1, dtype=values.dtype)
    last = F.where(sizes > 0, F.cumsum(sizes, 0), 0)
    return F.take(F.concat([one, running], 0), last, 0)


@composite()
@names_errors
@rounded_once
def segment_softmax(
    values: Tensor,
    segment_ids: Any = None,
    num_segments: int | None = None,
    *,
    row_splits: Any = None,
) -> Tensor:
    """Return exp(values) divided by its sum over the rows of the same segment.

    Arguments are those of `segment_sum`; the result has the shape of values. Any finite values are
    safe: the largest of a segment is subtracted first.

    >>> import weft as wf
    >>> wf.segment_softmax(wf.tensor([0.0, 5.0, 0.0]), [0, 1, 0])
    tensor([0.5, 1. , 0.5])
    """
    values, ids, count = segments("segment_softmax", values, segment_ids, num_segments, row_splits)
    if not is_float(values.dtype):
        raise DTypeError(f"values must be floats. Received: dtype {values.dtype}")
    largest = _extremes(F.stop_gradient(values), ids, count, True)
    e = F.exp(values - F.take(largest, ids, 0))
    shares: Tensor = e / F.take(_sums(e, ids, count), ids, 0)
    return shares


# -- in operators ---------------------------------------------------------------------------------


def _sums(values: Any, ids: Any, count: Any) -> Any:
    return F.take_adjoint(values, ids, (count, *values.shape[1:]), 0)


def _sizes(ids: Any, count: Any, dtype: DType) -> Any:
    """Return how many rows each segment has."""
    return F.take_adjoint(F.full_like(ids, 1, dtype=dtype), ids, (count,), 0)


def _extremes(values: Any, ids: Any, count: Any, largest: bool) -> Any:
    """Return the extremes of segments, as what rows leave of a start that every number replaces."""
    start = full((count, *values.shape[1:]), _neutral(values.dtype, largest), dtype=values.dtype)
    places = F.broadcast_to(_beside(ids, values), tuple(values.shape))
    return F.scatter_extreme(start, places, values, 0, largest, True)


def _neutral(dtype: DType, largest: bool) -> Any:
    if is_float(dtype):
        return -np.inf if largest else np.inf
    if dtype == np.bool_:
        return not largest
    limits = np.iinfo(dtype)
    return limits.min if largest else limits.max


def _running_products(x: Any, ids: Any) -> Any:
    """Return for each row the product of the rows of its segment up to it; segments are sorted.

    By distances that double (Hillis and Steele 1986): nothing is divided, so that a zero spoils
    neither the products nor derivatives of any order.
    """
    rows = x.shape[0]
    place, distance = F.iota(rows), 1
    for _ in range((rows - 1).bit_length() if is_known((rows,)) else MOST_STEPS):
        before = F.maximum(place - distance, 0)
        joined = (place >= distance) & (F.take(ids, before, 0) == ids)
        factor = F.where(_beside(joined, x), F.take(x, before, 0), _number(1, x.dtype))
        x, distance = x * factor, 2 * distance
    return x


def _beside(per_row: Any, values: Any) -> Any:
    """Return a vector with the dimensions of values, to stand beside them."""
    return F.reshape(per_row, (per_row.shape[0], *(1,) * (values.ndim - 1)))


def _counting(values: Any) -> Any:
    """Return truth values as integers: sums and products count them."""
    return F.cast(values, np.dtype(np.int64)) if values.dtype == np.bool_ else values


def _number(value: Any, dtype: DType) -> Any:
    return np.asarray(value, dtype)
