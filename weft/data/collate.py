"""From a list of items to a batch: entries of the same place are stacked into one tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np

from ..core.device_array import host_array
from ..core.dtype import promote
from ..core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from ..core.masked import plain_array
from ..core.operands import array_from
from ..core.tensor import Tensor, wrap
from ..core.tree import Container, Keys, container_of, tree_structure
from .checks import as_choice, as_count
from .streams import Array

Leaf = Any
LeafCollate = Callable[[list[Leaf], str], Any]


def default_collate(items: Sequence[Any]) -> Any:
    """Return the batch of a list of items, of the same nest as one item.

    Tensors, arrays and NumPy numbers of equal shape are stacked, Python numbers become a tensor,
    strings and bytes a list. Items may be tuples, lists, dictionaries, named tuples or dataclasses
    of these, nested.

    >>> from weft.data import default_collate
    >>> default_collate([{"x": 1.0, "name": "a"}, {"x": 2.0, "name": "b"}])
    {'x': tensor([1., 2.]), 'name': ['a', 'b']}
    """
    return collate_tree(items, stack_leaves)


class PadCollate:
    """Collate sequences of different lengths: pad every entry to the largest size in the batch.

    Lists of numbers count as sequences. `padding_value` is one number, or one for each entry of
    an item (say, 0 for tokens and -100 for labels). All axes that differ are padded. `side` is
    where the padding goes; `multiple_of` rounds the padded length of the first axis up and
    `max_length` cuts longer sequences at their end. With `with_lengths` the result is
    `(batch, lengths)`, the lengths being those of the first axis of the first entry, as
    `pack_padded_sequence` takes them. `batch_first=False` puts the batch second.

    >>> from weft.data import PadCollate
    >>> PadCollate(with_lengths=True)([[1, 2, 3], [4]])
    (tensor([[1, 2, 3],
           [4, 0, 0]]), tensor([3, 1]))
    """

    def __init__(
        self,
        padding_value: float | Sequence[float] = 0,
        *,
        batch_first: bool = True,
        with_lengths: bool = False,
        max_length: int | None = None,
        multiple_of: int = 1,
        side: str = "right",
    ) -> None:
        self._values = padding_value
        self._batch_first, self._with_lengths = batch_first, with_lengths
        self._limit = None if max_length is None else as_count(self, "max_length", max_length)
        self._multiple = as_count(self, "multiple_of", multiple_of)
        self._side = as_choice(self, "side", side, ("right", "left"))

    def __call__(self, items: Sequence[Any]) -> Any:
        """Return the padded batch of a list of items."""
        place = iter(range(1 << 30))
        first_arrays: list[Array] = []

        def pad(leaves: list[Leaf], path: str) -> Any:
            value = self._value_at(next(place))
            if isinstance(leaves[0], str | bytes):
                return list(leaves)
            arrays = [self._cut(as_leaf_array(leaf, path)) for leaf in leaves]
            if not first_arrays:
                first_arrays.extend(arrays)
            return self._padded(arrays, value, path)

        batch = collate_tree(items, pad, is_leaf=_is_sequence)
        return (batch, _lengths(first_arrays)) if self._with_lengths else batch

    def _value_at(self, place: int) -> float:
        if not isinstance(self._values, Sequence):
            return self._values
        if place < len(self._values):
            return self._values[place]
        raise ArgumentError(
            f"PadCollate: padding_value must be one number, or one for each entry of an item. "
            f"Received: {self._values!r} for an item with more entries"
        )

    def _cut(self, array: Array) -> Array:
        return array if self._limit is None or array.ndim == 0 else array[: self._limit]

    def _padded(self, arrays: list[Array], value: float, path: str) -> Tensor:
        shape = self._common_shape(arrays, path)
        # An empty list has no dtype to speak of; it must not turn integers into floats.
        dtype = result_dtype([array for array in arrays if array.size] or arrays, path)
        if all(array.shape == shape for array in arrays):
            value = 0  # nothing to pad: it need not be a value of the dtype
        elif not _fits(value, dtype):
            raise DTypeError(
                f"PadCollate: {value!r} is no value of {dtype}{_at(path)}; give another "
                "padding_value, one for each entry of an item if need be"
            )
        out = np.full((len(arrays), *shape), value, dtype)
        for i, array in enumerate(arrays):
            out[i : i + 1][(slice(None), *self._place_of(array.shape, shape))] = array
        swap = not self._batch_first and out.ndim > 1
        return wrap(np.ascontiguousarray(out.swapaxes(0, 1)) if swap else out)

    def _common_shape(self, arrays: list[Array], path: str) -> tuple[int, ...]:
        if len({array.ndim for array in arrays}) > 1:
            shapes = sorted({str(array.shape) for array in arrays})
            raise ShapeError(
                f"PadCollate: items must have the same number of dimensions{_at(path)}. "
                f"Received shapes: {', '.join(shapes)}"
            )
        shape = [max(sizes) for sizes in zip(*(array.shape for array in arrays), strict=True)]
        if shape:
            shape[0] = -(-shape[0] // self._multiple) * self._multiple
        return tuple(shape)

    def _place_of(self, inner: tuple[int, ...], outer: tuple[int, ...]) -> tuple[slice, ...]:
        if self._side == "right":
            return tuple(slice(0, n) for n in inner)
        return tuple(slice(total - n, total) for n, total in zip(inner, outer, strict=True))


def _fits(value: float, dtype: np.dtype[Any]) -> bool:
    """Tell whether a number survives the cast to a dtype; floats may round it."""
    if dtype.kind not in "iub":
        return True
    with np.errstate(invalid="ignore"):
        return bool(np.asarray(value).astype(dtype) == value)


def _lengths(arrays: list[Array]) -> Tensor:
    if not arrays or arrays[0].ndim == 0:
        raise ArgumentError("PadCollate: with_lengths needs items whose first entry is a sequence")
    return wrap(np.array([array.shape[0] for array in arrays], np.int64))


def _is_sequence(value: Any) -> bool:
    """Tell whether a value is a list of numbers, or of such lists."""
    return isinstance(value, list) and all(
        isinstance(entry, bool | int | float) or _is_sequence(entry) for entry in value
    )


# -- nests ---------------------------------------------------------------------------------------


def collate_tree(
    values: Sequence[Any],
    collate_leaves: LeafCollate,
    is_leaf: Callable[[Any], bool] | None = None,
    path: str = "",
) -> Any:
    """Return the nest of one value with `collate_leaves(column, path)` in place of each leaf.

    Column by column rather than item by item, which takes a fraction of the time.
    """
    if len(values) == 0:
        raise ArgumentError("collate: cannot make a batch of no items")
    first = values[0]
    container = None if is_leaf is not None and is_leaf(first) else container_of(first)
    if container is None:
        return collate_leaves(list(values), path)
    data, _ = container.split(first)
    columns = zip(*_rows(values, container, data, path), strict=True)
    parts = [
        collate_tree(column, collate_leaves, is_leaf, path + container.label(i, data))
        for i, column in enumerate(columns)
    ]
    return container.join(data, tuple(parts))


def _rows(values: Sequence[Any], container: Container, data: Any, path: str) -> Iterator[Any]:
    """Yield the children of each value, in the order of the first one's."""
    kind, count = type(values[0]), len(container.split(values[0])[1])
    for i, value in enumerate(values):
        if type(value) is not kind:
            raise _structure_error(i, values, path)
        own, children = container.split(value)
        if own != data and isinstance(own, Keys) and set(own) == set(data):
            by_key = dict(zip(own, children, strict=True))
            children = tuple(by_key[key] for key in data)
        elif own != data or len(children) != count:
            raise _structure_error(i, values, path)
        yield children


def _structure_error(index: int, values: Sequence[Any], path: str) -> ArgumentError:
    first, other = tree_structure(values[0]), tree_structure(values[index])
    return ArgumentError(
        f"collate: items must have the same structure{_at(path)}; item 0 of the batch is {first}, "
        f"item {index} is {other} (* stands for a value). Sequences of different lengths: use "
        "arrays and PadCollate()"
    )


# -- leaves --------------------------------------------------------------------------------------


def stack_leaves(leaves: list[Leaf], path: str) -> Any:
    """Return the values of one column as a tensor, or as a list if they are strings."""
    first = leaves[0]
    if isinstance(first, str | bytes):
        return _strings(leaves, path)
    if all(isinstance(leaf, bool | int | float) for leaf in leaves):
        return wrap(array_from(leaves, f"collate: the column{_at(path)}"))
    arrays = [as_leaf_array(leaf, path) for leaf in leaves]
    shape = arrays[0].shape
    for i, array in enumerate(arrays):
        if array.shape != shape:
            raise ShapeError(
                f"collate: items must have the same shape{_at(path)}; item 0 of the batch has "
                f"{shape}, item {i} has {array.shape}: resize or crop them, or use PadCollate()",
                first=shape,
                other=array.shape,
                place=i,
            )
    out = np.empty((len(arrays), *shape), result_dtype(arrays, path))
    return wrap(np.stack(arrays, out=out, casting="unsafe"))


def as_leaf_array(leaf: Leaf, path: str) -> Array:
    """Return a value of an item as an array."""
    if isinstance(leaf, Tensor):
        read: Array = host_array(leaf._value, f"collate: a value{_at(path)}")
        return read
    if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biufV":
        return plain_array(leaf, f"collate: a value{_at(path)}")
    if isinstance(leaf, bool | int | float | np.generic | list) and not isinstance(leaf, str):
        return array_from(leaf, f"collate: a value{_at(path)}")
    raise ArgumentTypeError(
        f"collate: cannot batch values of type {type(leaf).__name__}{_at(path)}; items may hold "
        "tensors, arrays, numbers, strings and nests of them: convert it in the dataset (for "
        "example with ToTensor) or give a collate_fn",
        kind=type(leaf),
    )


def result_dtype(arrays: list[Array], path: str) -> np.dtype[Any]:
    """Return the dtype of a stack: that of all arrays, or the one they promote to."""
    dtypes: set[np.dtype[Any]] = {array.dtype for array in arrays}
    if len(dtypes) == 1:
        return dtypes.pop()
    try:
        common: np.dtype[Any] = reduce(promote, (array.dtype for array in arrays))
        return common
    except DTypeError as error:
        raise DTypeError(f"collate: {error}{_at(path)}") from None


def _strings(leaves: list[Leaf], path: str) -> list[Any]:
    for leaf in leaves:
        if type(leaf) is not type(leaves[0]):
            raise ArgumentTypeError(
                f"collate: values must be of one type{_at(path)}. Received: "
                f"{type(leaves[0]).__name__} and {type(leaf).__name__}"
            )
    return list(leaves)


def _at(path: str) -> str:
    return f" at {path}" if path else ""
