"""Index expressions: from what stands between brackets to a static form, and its result's shape.

`x[i, 1:3, None, ..., mask]` becomes a *spec*, a hashable tuple with one entry for each item,

    3                    an integer
    (start, stop, step)  a slice
    None                 a new axis
    ...                  as many full slices as are missing
    "array"              the next of the index arrays (integers or booleans), which are operands

so that everything known while a graph is built is an attribute, and everything that is data is an
input. Results are NumPy's in every case: the kernels hand the same index back to NumPy.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...core.dim import Dim, may_equal, size_max, size_min, surely_less
from ...core.errors import (
    ArgumentError,
    ArgumentTypeError,
    IndexOutOfRange,
    ShapeError,
    UnknownSizeError,
)
from ...core.operands import tensor_from
from ...core.shape import Shape, broadcast
from ...core.tensor import PLAIN, Tensor, constant
from ._checks import allowed, check_range

ARRAY = "array"
Spec = tuple[Any, ...]
_ONE_ARRAY = (ARRAY,)
UNKNOWN: Any = None  # a size that depends on values, in the shape a shape rule returns


# -- reading an index ---------------------------------------------------------------------------


def split_index(index: Any) -> tuple[Spec, Sequence[Tensor]]:
    """Return the spec of any index and the arrays in it."""
    kind = index.__class__
    if kind is int:
        return (index,), ()
    if kind in PLAIN:
        return _ONE_ARRAY, (_check_index_tensor(index, 0),)
    spec: list[Any] = []
    arrays: list[Tensor] = []
    for item in index if kind is tuple else (index,):
        kind = item.__class__
        if kind is int or item is None or item is ...:
            spec.append(item)
        elif kind is slice:
            spec.append(_slice_item(item))
        else:
            spec.append(_integer_or_array(item, arrays, len(spec)))
    return tuple(spec), arrays


def _integer_or_array(item: Any, arrays: list[Tensor], position: int) -> Any:
    """Return an integer of a foreign type as an int; anything else joins the index arrays."""
    if isinstance(item, Tensor):
        arrays.append(_check_index_tensor(item, position))
    elif isinstance(item, (bool, list, tuple, np.ndarray, np.bool)):
        arrays.append(_check_index_tensor(_index_array(item), position))
    else:
        return _as_index(item, position)
    return ARRAY


def _as_index(item: Any, position: int) -> Any:
    if item.__class__ is Dim:
        return item
    try:
        return operator.index(item)
    except TypeError:
        raise ArgumentTypeError(
            "an index must be an integer, a slice, None, ... or an array of integers or booleans. "
            f"Received: {type(item).__name__} {item!r:.60} at position {position} of the index"
        ) from None


def _check_index_tensor(tensor: Tensor, position: int) -> Tensor:
    if tensor.dtype.kind not in "iub":
        raise ArgumentTypeError(
            f"index arrays must hold integers or booleans. Received: dtype {tensor.dtype} "
            f"at position {position} of the index; convert it, e.g. i.to(wf.int64)"
        )
    return tensor


def _index_array(item: Any) -> Tensor:
    if isinstance(item, bool):
        return constant(np.array(item))
    array = tensor_from(item, "index")
    empty_list = array.size == 0 and isinstance(item, (list, tuple))
    return array.to(np.int64) if empty_list else array


def _slice_item(item: slice) -> tuple[Any, Any, Any]:
    start, stop, step = item.start, item.stop, item.step
    if (
        (start is None or start.__class__ is int)
        and (stop is None or stop.__class__ is int)
        and step is None
    ):
        return (start, stop, None)
    return (_bound(start, "start"), _bound(stop, "stop"), _bound(step, "step"))


def _bound(value: Any, what: str) -> Any:
    if value is None or value.__class__ is Dim:
        return value
    try:
        return operator.index(value)
    except TypeError:
        raise ArgumentTypeError(
            f"the {what} of a slice must be an integer or None. Received: {value!r:.60}"
        ) from None


# -- using a spec -------------------------------------------------------------------------------


def explicit(spec: Spec, ndim: int) -> list[Any]:
    """Return a spec with an entry for every axis: full slices for an ellipsis and at the end."""
    full = (None, None, None)
    missing = ndim - sum(item is not None and item is not ... for item in spec)
    items: list[Any] = []
    for item in spec:
        items += [full] * missing if item is ... else [item]
    if ... not in spec:
        items += [full] * missing
    return items


def native_basic(spec: Spec) -> Any:
    """Return the NumPy index of a spec without arrays."""
    if len(spec) == 1:
        item = spec[0]
        return slice(*item) if item.__class__ is tuple else item
    return _native_tuple(spec)


@lru_cache(4096)
def _native_tuple(spec: Spec) -> tuple[Any, ...]:
    return tuple(slice(*item) if item.__class__ is tuple else item for item in spec)


def native_index(spec: Spec, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """Return the NumPy index of a spec with its arrays filled in."""
    if len(spec) == 1:
        return (arrays[0],)
    rest = iter(arrays)
    return tuple(next(rest) if item == ARRAY else item for item in _native_tuple(spec))


def leading_array(spec: Spec, arrays: Sequence[Any]) -> bool:
    """Tell whether an index is one integer array on axis 0 and everything of the other axes."""
    if len(arrays) != 1 or spec[0] != ARRAY or arrays[0].dtype.kind not in "iu":
        return False
    return all(item is ... or item == (None, None, None) for item in spec[1:])


def repeats_possible(arrays: Sequence[Any]) -> bool:
    """Tell whether an index may name one element twice, which masks never do."""
    return any(a.dtype.kind != "b" and a.ndim > 0 for a in arrays)


# -- the shape of the result --------------------------------------------------------------------


def indexed_shape(shape: Shape, spec: Spec, arrays: Sequence[Any] = ()) -> Any:
    """Return the shape of `x[index]`; a size that depends on a mask's values is UNKNOWN.

    NumPy's rule: the dimensions that the index arrays (and, beside them, integers) broadcast to
    stand where the first of them stood, or in front if anything else stands between them.
    """
    walk = _Walk(shape, spec, arrays)
    for position, item in enumerate(spec):
        walk.take(position, item)
    dims = [*walk.dims, *shape[walk.axis :]]
    if not arrays:
        return tuple(dims)
    place = walk.place if walk.together else 0
    return (*dims[:place], *walk.selected_shape(), *dims[place:])


def selection(shape: Shape, spec: Spec, arrays: Sequence[Any]) -> tuple[int, int, bool]:
    """Return the place in `x[index]` of the dimensions that index arrays select, and their number.

    Also tell whether the arrays stand together in the index.
    """
    walk = _Walk(shape, spec, arrays)
    for position, item in enumerate(spec):
        walk.take(position, item)
    return walk.place if walk.together else 0, len(walk.selected_shape()), walk.together


class _Walk:
    """The state of reading a spec from left to right along the axes of a tensor."""

    def __init__(self, shape: Shape, spec: Spec, arrays: Sequence[Any]) -> None:
        self.shape, self.arrays = shape, iter(arrays)
        self.mixed = bool(arrays)
        self.axis = 0
        self.place = 0  # where the index arrays' dimensions go if they stand together
        self.dims: list[Any] = []
        self.selectors: list[int] = []  # positions in the spec of index arrays and integers
        self.index_shapes: list[Shape] = []
        self.has_mask = False
        self.skipped = len(shape) - _axes_used(shape, spec, arrays)

    def take(self, position: int, item: Any) -> None:
        """Read one entry of the spec."""
        if item is None:
            self.dims.append(1)
        elif item is ...:
            self.dims += self.shape[self.axis : self.axis + self.skipped]
            self.axis += self.skipped
        elif isinstance(item, tuple):
            self.dims.append(slice_length(item, self.shape[self.axis]))
            self.axis += 1
        else:
            self._select(position, item)

    def _select(self, position: int, item: Any) -> None:
        if not self.selectors:
            self.place = len(self.dims)
        self.selectors.append(position)
        if item != ARRAY:
            check_integer_index(item, self.shape[self.axis], self.axis)
            self.axis += 1
            return
        array = next(self.arrays)
        if array.dtype.kind == "b":
            self._check_mask(array.shape)
            self.has_mask = True
            self.axis += array.ndim
        else:
            self.index_shapes.append(tuple(array.shape))
            self.axis += 1

    @property
    def together(self) -> bool:
        """Tell whether nothing stands between the index arrays (and integers)."""
        return self.selectors[-1] - self.selectors[0] + 1 == len(self.selectors)

    def _check_mask(self, mask_shape: Shape) -> None:
        covered = self.shape[self.axis : self.axis + len(mask_shape)]
        if not may_equal(tuple(mask_shape), tuple(covered)):
            raise ShapeError(
                f"a boolean mask must have the shape of the axes it selects from, {covered} from "
                f"axis {self.axis} of a tensor of shape {self.shape}. Received: {mask_shape}",
                mask=mask_shape,
                axis=self.axis,
            )

    def selected_shape(self) -> tuple[Any, ...]:
        """Return the shape that index arrays broadcast to; UNKNOWN where a mask's count decides."""
        try:
            known: tuple[Any, ...] = broadcast(*self.index_shapes)
        except ShapeError:
            shown = ", ".join(map(str, self.index_shapes))
            raise ShapeError(
                f"index arrays must broadcast to one shape. Received: shapes {shown}",
                indices=tuple(self.index_shapes),
            ) from None
        if not self.has_mask or (known and known[-1] != 1 and isinstance(known[-1], int)):
            return known
        return (*known[:-1], UNKNOWN)


def _axes_used(shape: Shape, spec: Spec, arrays: Sequence[Any]) -> int:
    """Return how many axes a spec consumes; raise if there are not that many."""
    masks = sum(a.ndim - 1 for a in arrays if a.dtype.kind == "b")
    used: int = masks + sum(item is not None and item is not ... for item in spec)
    if used > len(shape):
        raise IndexOutOfRange(
            f"too many indices: the tensor has {len(shape)} dimension(s), shape {tuple(shape)}. "
            f"Received: {used} indices"
        )
    if sum(item is ... for item in spec) > 1:
        raise IndexOutOfRange("an index can hold only one ellipsis (...)")
    return used


def check_integer_index(index: int, size: int, axis: int) -> None:
    """Raise if an integer index lies outside its axis."""
    if surely_less(index, -size) or surely_less(size - 1, index):
        raise IndexOutOfRange(
            f"index {index} is out of range for {allowed(size, axis)}",
            index=index,
            axis=axis,
            size=size,
        )


def slice_length(item: tuple[Any, Any, Any], size: Any) -> Any:
    """Return how many elements a slice takes from an axis."""
    start, stop, step = item
    if not isinstance(step, Dim) and step == 0:
        raise ArgumentError(f"the step of a slice must not be zero. Received: {slice(*item)}")
    if not any(isinstance(value, Dim) for value in (*item, size)):
        return len(range(*slice(*item).indices(size)))
    try:
        return _unknown_length(start, stop, 1 if step is None else step, size)
    except UnknownSizeError:  # a bound that may count from the front or from the end
        return UNKNOWN


def slice_places(item: tuple[Any, Any, Any], size: Any) -> tuple[Any, Any, Any]:
    """Return which element of an axis a slice takes first, how many it takes, and its step."""
    if not any(isinstance(value, Dim) for value in (*item, size)):
        taken = range(*slice(*item).indices(size))
        return taken.start if taken else 0, len(taken), taken.step
    start, stop, step = item
    step = 1 if step is None else step
    return _bounds(start, stop, step, size)[0], _unknown_length(start, stop, step, size), step


def _unknown_length(start: Any, stop: Any, step: Any, size: Any) -> Any:
    """Return how many elements a slice takes if an unknown size matters."""
    first, last = _bounds(start, stop, step, size)
    if step > 0:
        return size_max((last - first + step - 1) // step, 0)
    return size_max((first - last - step - 1) // -step, 0)


def _bounds(start: Any, stop: Any, step: Any, size: Any) -> tuple[Any, Any]:
    """Return the first element of a slice, and what is beyond the last, of an unknown size.

    Bounds are clipped to the axis on one side only: what lies beyond the other takes nothing.
    `size - size_min(k, size)` is the place that -k names, clipped to the beginning.
    """
    if step > 0:
        first = 0 if start is None else size - size_min(-start, size) if start < 0 else start
        last = size if stop is None else size + stop if stop < 0 else size_min(stop, size)
        return first, last
    first = size - 1 if start is None else size + start if start < 0 else size_min(start, size - 1)
    last = -1 if stop is None else size - size_min(-stop, size + 1) if stop < 0 else stop
    return first, last


def explain_bad_index(shape: Shape, spec: Spec, arrays: Sequence[Any]) -> None:
    """Raise for the first index array that points outside its axis, if there is one."""
    indexed_shape(shape, spec, arrays)
    axis, rest = 0, iter(arrays)
    skipped = len(shape) - _axes_used(shape, spec, arrays)
    for item in spec:
        if item == ARRAY:
            array = next(rest)
            if array.dtype.kind != "b":
                check_range(array, shape[axis], axis)
            axis += array.ndim if array.dtype.kind == "b" else 1
        elif item is ...:
            axis += skipped
        elif item is not None:
            axis += 1
