"""Putting elements to places: scatter, segments, unique."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.op import F
from .array_ops import _number, shape_tensor
from .dtypes import as_dtype, int32
from .environment import whole_numbers
from .filling import ones_like
from .host import host_operation
from .recording import Tensor, convert_to_tensor, is_tensor, record
from .reductions import reduce_max
from .variable import change

# -- scatter ---------------------------------------------------------------------------------------


def _scatter(public: str, type: str, compute: Any) -> Any:
    def called(
        ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
    ) -> Tensor:
        places = convert_to_tensor(indices)
        values = convert_to_tensor(updates, None if is_tensor(updates) else ref.dtype)
        return change(
            ref,
            type,
            lambda env, v, i, u: compute(env.read(v), *_rows(i, u, v)),
            [places, values],
            name,
        )

    called.__name__ = called.__qualname__ = public
    called.__doc__ = f"Return an operation that changes rows of a variable: {public}."
    return called


def _rows(indices: Any, updates: Any, variable: Any) -> tuple[Any, Any]:
    rest = tuple(variable.shape.as_list()[1:])
    flat = F.reshape(indices, (-1,))
    whole = (*indices.shape, *rest)
    updates = updates if updates.shape == whole else F.broadcast_to(updates, whole)
    return flat, F.reshape(updates, (-1, *rest))


scatter_update = _scatter(
    "scatter_update", "ScatterUpdate", lambda x, i, u: F.index_set(x, (i,), u)
)
scatter_add = _scatter("scatter_add", "ScatterAdd", lambda x, i, u: F.index_add(x, 0, i, u))
scatter_sub = _scatter("scatter_sub", "ScatterSub", lambda x, i, u: F.index_add(x, 0, i, -u))


def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None) -> Tensor:
    """Return zeros to which updates are added at positions."""

    def compute(i: Any, u: Any, to: Any) -> Any:
        sizes = whole_numbers(to)
        depth = i.shape[-1]
        strides = [int(np.prod(sizes[k + 1 : depth])) for k in range(depth)]
        flat = sum(i[..., k] * strides[k] for k in range(depth))
        rows = (int(np.prod(sizes[:depth])), *sizes[depth:])
        zero = F.zeros_like(F.broadcast_to(F.reshape(u, (-1,))[:1].reshape((1,) * len(rows)), rows))
        added = F.index_add(zero, 0, F.reshape(flat, (-1,)), F.reshape(u, (-1, *sizes[depth:])))
        return F.reshape(added, sizes)

    values = convert_to_tensor(updates)
    made: Tensor = record(
        "ScatterNd",
        compute,
        [indices, values, shape_tensor(shape)],
        static=[2],
        name=name,
        dtype=values.dtype,
    )
    return made


# -- segments --------------------------------------------------------------------------------------


def unsorted_segment_sum(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> Tensor:
    """Return the sums of rows that have the same number."""
    made: Tensor = record(
        "UnsortedSegmentSum",
        lambda x, i, n: _segments(x, i, whole_numbers(n)[0]),
        [data, segment_ids, convert_to_tensor(_number(num_segments))],
        static=[2],
        name=name,
    )
    return made


def _segments(x: Any, ids: Any, count: int) -> Any:
    rest = x.shape[ids.ndim :]
    zero = F.broadcast_to(F.zeros_like(F.reshape(x, (-1, *rest))[:1]), (count, *rest))
    return F.index_add(zero, 0, F.reshape(ids, (-1,)), F.reshape(x, (-1, *rest)))


def segment_sum(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Return the sums of rows that have the same number, up to the last one."""
    ids = convert_to_tensor(segment_ids)
    return unsorted_segment_sum(data, ids, reduce_max(ids) + 1, name or "SegmentSum")


def segment_mean(data: Any, segment_ids: Any, name: str | None = None) -> Tensor:
    """Return the means of rows that have the same number."""
    ids = convert_to_tensor(segment_ids)
    total = segment_sum(data, ids)
    values = convert_to_tensor(data)
    counts = unsorted_segment_sum(ones_like(values), ids, reduce_max(ids) + 1)
    made: Tensor = record("SegmentMean", F.div, [total, counts], name=name)
    return made


def unique(x: Any, out_idx: Any = int32, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return the different elements in the order of their first occurrence, and which each is."""
    return _unique_host(x, as_dtype(out_idx), name)


def _unique_host(x: Any, kind: Any, name: str | None) -> tuple[Tensor, Tensor]:
    values = convert_to_tensor(x)

    def call(session: Any, array: Any) -> Any:
        found, first, inverse = np.unique(array, return_index=True, return_inverse=True)
        order = np.argsort(first)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return found[order], place[inverse].astype(kind.dtype)

    made = host_operation(
        "Unique", call, [values], outputs=[(values.dtype, [None]), (kind, values.shape)], name=name
    )
    return made[0], made[1]
