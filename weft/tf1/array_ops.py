"""Shapes, and moving elements: reshape, concat, stack, split, transpose and their like."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.op import F
from .dtypes import as_dtype, int32
from .environment import is_known, size_array, sizes_of, whole_numbers
from .recording import (
    Tensor,
    _packers,
    constant,
    convert_to_tensor,
    is_tensor,
    known_int,
    record,
)
from .shapes import TensorShape

# -- what a tensor's shape is ----------------------------------------------------------------------


def shape(input: Any, name: str | None = None, out_type: Any = int32) -> Tensor:
    """Return the sizes of a tensor when it runs."""
    kind = as_dtype(out_type)

    def compute(x: Any) -> Any:
        sizes = sizes_of(x.shape)
        return sizes if sizes.dtype == object else sizes.astype(kind.dtype)

    def fold(x: Any) -> Any:
        return np.array(x.shape, kind.dtype)

    made: Tensor = record(
        "Shape", compute, [input], name=name, dtype=kind, fold=fold, differentiable=False
    )
    return made


def shape_n(input: Any, out_type: Any = int32, name: str | None = None) -> list[Tensor]:
    """Return the sizes of several tensors."""
    return [shape(x, name, out_type) for x in input]


def size(input: Any, name: str | None = None, out_type: Any = int32) -> Tensor:
    """Return the number of elements when it runs."""
    kind = as_dtype(out_type).dtype

    def compute(x: Any) -> Any:
        count = x.numel() if hasattr(x, "numel") else x.size
        return np.array(count, kind) if isinstance(count, (int, np.integer)) else size_array(count)

    made: Tensor = record(
        "Size", compute, [input], name=name, dtype=out_type, fold=compute, differentiable=False
    )
    return made


def rank(input: Any, name: str | None = None) -> Tensor:
    """Return the number of axes when it runs."""

    def compute(x: Any) -> Any:
        return np.array(x.ndim, np.int32)

    made: Tensor = record(
        "Rank", compute, [input], name=name, dtype=int32, fold=compute, differentiable=False
    )
    return made


# -- shapes that are given -------------------------------------------------------------------------


def shape_tensor(given: Any) -> Tensor:
    """Return a shape, of numbers and of tensors, as a tensor of whole numbers."""
    if is_tensor(given):
        return convert_to_tensor(given)
    if isinstance(given, TensorShape):
        given = given.as_list()
    if isinstance(given, (list, tuple)):
        if any(is_tensor(x) for x in given):
            return stack([_size_tensor(x) for x in given])
        if any(x is None for x in map(_number, given)):
            raise ValueError(
                "Tried to convert 'shape' to a tensor and failed. Error: None values not "
                "supported. "
                f"Received: {given!r:.80}"
            )
        return constant(np.array([_number(x) for x in given], np.int32), name="Const")
    return constant(given, name="Const")


def _number(size: Any) -> Any:
    return getattr(size, "value", size)


def _size_tensor(size: Any) -> Tensor:
    from_tensor = convert_to_tensor(size) if is_tensor(size) else constant(_number(size), int32)
    if from_tensor.dtype == int32:
        return from_tensor
    made: Tensor = record(
        "Cast", lambda x: F.cast(x, np.int32), [from_tensor], dtype=int32, fold=lambda x: x
    )
    return made


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """Return the elements in another shape; one size may be -1."""
    x = convert_to_tensor(tensor)

    def compute(x: Any, to: Any) -> Any:
        sizes = whole_numbers(to)
        known = all(isinstance(s, int) for s in (*sizes, *x.shape))
        if known and -1 not in sizes and np.prod(sizes) != np.prod(x.shape):
            raise ValueError(
                f"Cannot reshape a tensor with {int(np.prod(x.shape))} elements to shape "
                f"{list(sizes)} ({int(np.prod(sizes))} elements)"
            )
        return F.reshape(x, sizes)

    made: Tensor = record(
        "Reshape", compute, [x, shape_tensor(shape)], static=[1], fold=_folded_reshape, name=name
    )
    return made


def _folded_reshape(x: Any, to: Any) -> Any:
    return np.reshape(x, whole_numbers(to))


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """Return a tensor repeated along axes of one element."""
    made: Tensor = record(
        "BroadcastTo",
        lambda x, to: F.broadcast_to(x, whole_numbers(to)),
        [input, shape_tensor(shape)],
        static=[1],
        name=name,
    )
    return made


def expand_dims(input: Any, axis: Any = None, name: str | None = None, dim: Any = None) -> Tensor:
    """Return a tensor with another axis of one element."""
    place = known_int(dim if axis is None else axis, "axis")
    made: Tensor = record(
        "ExpandDims",
        lambda x: F.expand_dims(x, place),
        [input],
        fold=lambda x: np.expand_dims(x, place),
        name=name,
    )
    return made


def squeeze(
    input: Any, axis: Any = None, name: str | None = None, squeeze_dims: Any = None
) -> Tensor:
    """Return a tensor without axes of one element."""
    axes = squeeze_dims if axis is None else axis
    places = None if axes is None or axes == [] else tuple(np.atleast_1d(axes).tolist())

    def compute(x: Any) -> Any:
        return F.squeeze(x, places)

    made: Tensor = record(
        "Squeeze", compute, [input], fold=lambda x: np.squeeze(x, places), name=name
    )
    return made


def transpose(
    a: Any, perm: Any = None, name: str | None = "transpose", conjugate: bool = False
) -> Tensor:
    """Return a tensor with its axes in another order, by default the reverse one."""
    order = None if perm is None else tuple(int(i) for i in _known_list(perm, "perm"))

    def compute(x: Any) -> Any:
        return F.permute_dims(x, tuple(reversed(range(x.ndim))) if order is None else order)

    made: Tensor = record("Transpose", compute, [a], name=name)
    return made


def matrix_transpose(
    a: Any, name: str | None = "matrix_transpose", conjugate: bool = False
) -> Tensor:
    """Return matrices with rows and columns exchanged."""
    made: Tensor = record("Transpose", F.matrix_transpose, [a], name=name)
    return made


def _known_list(value: Any, what: str) -> Any:
    if isinstance(value, Tensor):
        if not is_known(value.shadow):
            raise ValueError(f"{what} must be known when the graph is built. Received: {value}")
        return value.shadow.tolist()
    return value


# -- joining and parting ---------------------------------------------------------------------------


def concat(values: Any, axis: Any, name: str | None = "concat") -> Tensor:
    """Return tensors one after another along an axis."""
    if isinstance(values, int) or (
        isinstance(values, Tensor) and values.dtype == int32 and not values.shape.ndims
    ):
        raise TypeError(
            "Expected int32, got list containing Tensors of type '_Message' instead: tf.concat "
            "takes "
            "the values first and the axis second, tf.concat(values, axis), since TensorFlow 1.0"
        )
    if not isinstance(values, (list, tuple)):
        values = [values]
    place = known_int(axis, "axis")
    tensors = _alike("ConcatV2", values)
    if len(tensors) == 1:
        made: Tensor = record("Identity", lambda x: x, tensors, fold=lambda x: x, name=name)
        return made
    return record(
        "ConcatV2",
        lambda *xs: F.concat(list(xs), place),
        tensors,
        fold=lambda *xs: _joined(np.concatenate, xs, place),
        name=name,
    )


def _joined(join: Any, arrays: Any, axis: int) -> Any:
    return join(arrays, axis=axis)


def _alike(type: str, values: Any) -> list[Tensor]:
    """Return values as tensors of the dtype that the first tensor among them has."""
    kinds = [convert_to_tensor(v).dtype for v in values if is_tensor(v)]
    tensors = [
        convert_to_tensor(v, None if is_tensor(v) or not kinds else kinds[0]) for v in values
    ]
    for tensor in tensors:
        if tensor.dtype != tensors[0].dtype:
            raise TypeError(
                f"Tensors in list passed to 'values' of '{type}' Op have types "
                f"[{', '.join(t.dtype.name for t in tensors)}] that don't all match."
            )
    return tensors


def stack(values: Any, axis: int = 0, name: str | None = "stack") -> Tensor:
    """Return tensors stacked along a new axis."""
    if is_tensor(values):
        values = unstack(values)
    place = known_int(axis, "axis")
    tensors = _alike("Pack", values)
    made: Tensor = record(
        "Pack",
        lambda *xs: F.stack(list(xs), place),
        tensors,
        fold=lambda *xs: _joined(np.stack, xs, place),
        name=name,
    )
    return made


_packers.append(stack)
pack = stack
parallel_stack = stack


def unstack(
    value: Any, num: int | None = None, axis: int = 0, name: str | None = "unstack"
) -> list[Tensor]:
    """Return the parts of a tensor along an axis."""
    x = convert_to_tensor(value)
    sizes = x.shape.sizes
    count = num if num is not None or sizes is None else sizes[axis]
    if count is None:
        raise ValueError(f"Cannot infer num from shape {x.shape}")
    made = record(
        "Unpack",
        lambda x: tuple(F.unstack(x, axis)),
        [x],
        fold=lambda x: tuple(np.asarray(part) for part in np.moveaxis(x, axis, 0)),
        outputs=count,
        name=name,
    )
    return list(made) if count != 1 else [made]


unpack = unstack


def split(
    value: Any,
    num_or_size_splits: Any,
    axis: Any = 0,
    num: int | None = None,
    name: str | None = "split",
) -> list[Tensor]:
    """Return a tensor in several parts along an axis: so many, or of these sizes."""
    x = convert_to_tensor(value)
    place = known_int(axis, "axis")
    if is_tensor(num_or_size_splits):
        num_or_size_splits = _known_list(num_or_size_splits, "num_or_size_splits")
    if isinstance(num_or_size_splits, (int, np.integer)):
        count, sizes = int(num_or_size_splits), None
    else:
        sizes = [int(_number(s)) for s in num_or_size_splits]
        count = len(sizes)

    def compute(x: Any) -> Any:
        whole = x.shape[place]
        if sizes is None and isinstance(whole, int) and whole % count:
            raise ValueError(f"Dimension size must be evenly divisible by {count} but is {whole}")
        parts = [whole // count] * count if sizes is None else _with_rest(sizes, whole)
        return tuple(F.split(x, tuple(parts), place))

    made = record("Split" if sizes is None else "SplitV", compute, [x], outputs=count, name=name)
    return list(made) if count != 1 else [made]


def _with_rest(sizes: list[int], whole: Any) -> list[Any]:
    if -1 not in sizes:
        return sizes
    rest = whole - sum(s for s in sizes if s != -1)
    return [rest if s == -1 else s for s in sizes]


def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """Return a tensor repeated along its axes."""
    made: Tensor = record(
        "Tile",
        lambda x, times: F.tile(x, whole_numbers(times)),
        [input, shape_tensor(multiples)],
        static=[1],
        name=name,
    )
    return made


def pad(
    tensor: Any,
    paddings: Any,
    mode: str = "CONSTANT",
    name: str | None = None,
    constant_values: Any = 0,
) -> Tensor:
    """Return a tensor with elements around it."""
    kinds = {"CONSTANT": "constant", "REFLECT": "reflect", "SYMMETRIC": "symmetric"}
    if mode.upper() not in kinds:
        raise ValueError(f"Unknown padding mode: {mode}")
    kind = kinds[mode.upper()]

    def compute(x: Any, around: Any) -> Any:
        pairs = tuple((int(a), int(b)) for a, b in around)
        if kind == "constant":
            return F.pad(x, pairs, value=constant_values)
        return F.pad(x, pairs, mode=kind)

    made: Tensor = record(
        "Pad", compute, [tensor, convert_to_tensor(paddings)], static=[1], name=name
    )
    return made


def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """Return a tensor with elements along axes in reverse order."""
    places = tuple(np.atleast_1d(_known_list(axis, "axis")).tolist())
    made: Tensor = record("ReverseV2", lambda x: F.flip(x, places), [tensor], name=name)
    return made


reverse_v2 = reverse


def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """Return a tensor with elements moved along axes, those from the end to the front."""
    made: Tensor = record("Roll", lambda x: F.roll(x, shift, axis), [input], name=name)
    return made
