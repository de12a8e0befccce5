"""Taking and putting elements: slices, gather, where, scatter, segments."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.op import F
from ..ops.creation import tensor as make_constant
from .array_ops import _number, shape_tensor
from .dtypes import as_dtype, int64
from .dtypes import bool as boolean
from .environment import whole_numbers
from .math_ops import late
from .recording import Tensor, constant, convert_to_tensor, is_tensor, known_int, pair, record
from .reductions import reduce_max

# -- slices ----------------------------------------------------------------------------------------


class _Operand:
    """The place of a tensor in an index."""

    def __init__(self, position: int) -> None:
        self.position = position


def getitem(tensor: Any, key: Any, name: str | None = "strided_slice") -> Tensor:
    """Return a part of a tensor: `x[1:, ..., tf.newaxis, i]`."""
    tensors: list[Tensor] = []
    keys = key if isinstance(key, tuple) else (key,)
    if isinstance(key, list):
        keys = tuple(key)
    places = [_place(item, tensors) for item in keys]
    if len(tensors) == 1 and len(places) == 1 and tensors[0].dtype == boolean:
        return boolean_mask(tensor, tensors[0])

    def compute(x: Any, *given: Any) -> Any:
        return x[tuple(_filled(place, given) for place in places)]

    x = convert_to_tensor(tensor)
    sized = [i + 1 for i in range(len(tensors)) if _in_slice(places, i)]
    made: Tensor = record(
        "StridedSlice", compute, [x, *tensors], fold=_folded(places), static=sized, name=name
    )
    return made


def _folded(places: list[Any]) -> Any:
    def fold(x: Any, *given: Any) -> Any:
        numbers = [whole_numbers(g)[0] for g in given]
        return np.asarray(x[tuple(_filled(place, numbers) for place in places)], x.dtype)

    return fold


def _place(item: Any, tensors: list[Tensor]) -> Any:
    if isinstance(item, slice):
        return slice(*(_place(part, tensors) for part in (item.start, item.stop, item.step)))
    if is_tensor(item):
        tensors.append(convert_to_tensor(item))
        return _Operand(len(tensors) - 1)
    if item is None or item is Ellipsis or isinstance(item, (int, np.integer)):
        return item if item is None or item is Ellipsis else int(item)
    if hasattr(item, "value"):
        return _number(item)
    raise TypeError(
        "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar "
        f"tf.int32/tf.int64 tensors are valid indices, got {item!r:.60}"
    )


def _in_slice(places: list[Any], position: int) -> bool:
    parts = [p for s in places if isinstance(s, slice) for p in (s.start, s.stop, s.step)]
    return any(isinstance(p, _Operand) and p.position == position for p in parts)


def _filled(place: Any, given: Any) -> Any:
    if isinstance(place, _Operand):
        found = given[place.position]
        return whole_numbers(found)[0] if isinstance(found, np.ndarray) else found
    if isinstance(place, slice):
        return slice(*(_filled(part, given) for part in (place.start, place.stop, place.step)))
    return place


def slice_(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """Return a part of a tensor that begins somewhere and has a size; -1: all that is left."""

    def compute(x: Any, start: Any, count: Any) -> Any:
        begins, sizes = whole_numbers(start), whole_numbers(count)
        return x[tuple(_span(b, s) for b, s in zip(begins, sizes, strict=True))]

    inputs = [convert_to_tensor(input_), shape_tensor(begin), shape_tensor(size)]
    made: Tensor = record("Slice", compute, inputs, static=[1, 2], fold=compute, name=name)
    return made


def _span(begin: Any, size: Any) -> slice:
    whole = isinstance(size, int) and size == -1
    return slice(begin, None if whole else begin + size)


def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return a part of a tensor by where it begins and ends."""
    steps = [1] * len(begin) if strides is None else strides
    key: list[Any] = []
    for i, (a, b, s) in enumerate(zip(begin, end, steps, strict=True)):
        bit = 1 << i
        if ellipsis_mask & bit:
            key.append(Ellipsis)
        elif new_axis_mask & bit:
            key.append(None)
        elif shrink_axis_mask & bit:
            key.append(a)
        else:
            key.append(slice(None if begin_mask & bit else a, None if end_mask & bit else b, s))
    return getitem(input_, tuple(key), name or "strided_slice")


# -- gather ----------------------------------------------------------------------------------------


def gather(
    params: Any,
    indices: Any,
    validate_indices: Any = None,
    name: str | None = None,
    axis: Any = 0,
    batch_dims: int = 0,
) -> Tensor:
    """Return elements of an axis by their numbers."""
    place = known_int(axis or 0, "axis")
    if batch_dims:
        raise ValueError("gather: batch_dims is not served; use tf.gather_nd")
    x = convert_to_tensor(params)
    made: Tensor = record(
        "GatherV2",
        lambda x, i: F.take(x, i, place),
        [x, convert_to_tensor(indices)],
        fold=lambda x, i: np.asarray(np.take(x, i.astype(int), place)),
        name=name,
    )
    return made


def gather_nd(params: Any, indices: Any, name: str | None = None) -> Tensor:
    """Return elements or slices by their positions, which the last axis of the indices holds."""

    def compute(x: Any, i: Any) -> Any:
        return x[tuple(i[..., axis] for axis in range(i.shape[-1]))]

    made: Tensor = record("GatherNd", compute, [params, indices], name=name)
    return made


def embedding_lookup(
    params: Any,
    ids: Any,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: Any = None,
) -> Tensor:
    """Return rows of a table by their numbers."""
    if isinstance(params, (list, tuple)):
        if len(params) != 1:
            raise ValueError(
                "embedding_lookup: tables in several parts are not served; use tf.concat"
            )
        params = params[0]
    if max_norm is not None:
        raise ValueError(
            "embedding_lookup: max_norm is not served; use tf.clip_by_norm(rows, ..., axes=-1)"
        )
    return gather(params, ids, name=name or "embedding_lookup")


# -- by conditions ---------------------------------------------------------------------------------


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """Return elements of x where a condition holds, else of y; or the positions where it does."""
    flags = convert_to_tensor(condition)
    if (x is None) != (y is None):
        raise ValueError("x and y must both be non-None or both be None.")
    if x is None:
        made: Tensor = record(
            "Where", late("argwhere"), [flags], name=name, dtype=int64, differentiable=False
        )
        return made
    left, right = pair("Select", x, y)
    return record("Select", _select, [flags, left, right], name=name, dtype=left.dtype)


def _select(condition: Any, x: Any, y: Any) -> Any:
    if condition.ndim == 1 and x.ndim > 1:  # a vector chooses rows
        condition = F.reshape(condition, (condition.shape[0], *(1,) * (x.ndim - 1)))
    return F.where(condition, x, y)


def boolean_mask(
    tensor: Any, mask: Any, name: str | None = "boolean_mask", axis: Any = None
) -> Tensor:
    """Return the elements at which a mask holds."""
    if axis:
        raise ValueError("boolean_mask: only axis 0 is served; use tf.transpose before")
    made: Tensor = record("BooleanMask", lambda x, m: x[m], [tensor, mask], name=name)
    return made


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: Any = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return vectors that are one at a position and zero elsewhere."""
    kind = as_dtype(
        "float32" if dtype is None and on_value is None else dtype or constant(on_value).dtype
    )
    on, off = 1 if on_value is None else on_value, 0 if off_value is None else off_value

    def compute(i: Any, d: Any) -> Any:
        count = whole_numbers(d)[0]
        numbers = constant_range(count, i.dtype)
        hot = F.cast(F.expand_dims(i, -1) == numbers, kind.dtype)
        made = hot if (on, off) == (1, 0) else hot * on + (1 - hot) * off
        return made if axis in (None, -1) else F.moveaxis(made, -1, axis)

    made: Tensor = record(
        "OneHot",
        compute,
        [indices, convert_to_tensor(_number(depth))],
        static=[1],
        name=name,
        dtype=kind,
        differentiable=False,
    )
    return made


def constant_range(count: int, dtype: Any) -> Any:
    """Return the numbers below a count as a tensor of Weft's."""
    from_numpy = np.arange(count).astype(dtype)
    return make_constant(from_numpy)


def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: Any = boolean, name: str | None = None
) -> Tensor:
    """Return which of the first positions of rows are within their lengths."""
    kind = as_dtype(dtype)
    count = convert_to_tensor(lengths)
    most = reduce_max(count) if maxlen is None else convert_to_tensor(_number(maxlen))

    def compute(n: Any, m: Any) -> Any:
        numbers = constant_range(whole_numbers(m)[0], n.dtype)
        return F.cast(F.expand_dims(n, -1) > numbers, kind.dtype)

    made: Tensor = record(
        "SequenceMask",
        compute,
        [count, most],
        static=[1],
        name=name,
        dtype=kind,
        differentiable=False,
    )
    return made
