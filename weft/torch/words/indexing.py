"""What PyTorch says of indices."""

from __future__ import annotations

from typing import Any

from ...core.errors import ArgumentTypeError, AxisError, DTypeError, IndexOutOfRange, ShapeError
from ..sentences import expanded_size
from .refused import Refused, Rule, sizes

INDICES = (
    "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
    "indices (got {})"
)


def out_of_bounds(refused: Refused, kind: type[Exception]) -> Exception:
    """Say it of an index beyond a dimension."""
    facts = refused.facts
    axis = facts.get("axis")
    if axis is None:
        axis = refused["dim"] if refused["dim"] is not None else 0
    return kind(
        f"index {facts['index']} is out of bounds for dimension {axis} with size {facts['size']}"
    )


def getitem(refused: Refused) -> Exception | None:
    """Say it of an index in brackets."""
    if refused.is_a(ArgumentTypeError):
        return _invalid(refused["index"])
    if refused.is_a(ShapeError) and "mask" in refused.facts:
        mask, axis = refused.facts["mask"], refused.facts["axis"]
        x = refused["x"]
        wrong = next(i for i, n in enumerate(mask) if n != x.shape[axis + i])
        return IndexError(
            f"The shape of the mask {list(mask)} at index {wrong} does not match the shape of the "
            f"indexed tensor {sizes(x)} at index {axis + wrong}"
        )
    if refused.is_a(ShapeError) and "indices" in refused.facts:
        shown = ", ".join(str(list(s)) for s in refused.facts["indices"])
        return IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shown}"
        )
    return None


def _invalid(index: Any) -> Exception | None:
    """Say it of what is no index."""
    for item in index if isinstance(index, tuple) else (index,):
        if isinstance(item, str):
            return TypeError("new(): invalid data type 'str'")
        if hasattr(item, "dtype"):
            if item.dtype.kind not in "iub":
                return IndexError("tensors used as indices must be long, int, byte or bool tensors")
        elif not isinstance(item, (int, slice, list, type(None), type(...))):
            return IndexError(INDICES.format(type(item).__name__))
    return None


def setitem(refused: Refused) -> Exception | None:
    """Say it of values that are written."""
    if refused.is_a(ShapeError) and "selected" in refused.facts:
        value = refused["value"]
        selected = refused.facts["selected"]
        if refused.function == "setitem":
            return expanded_size(selected, value.shape)
        return RuntimeError(
            f"shape mismatch: value tensor of shape {sizes(value)} cannot be broadcast to "
            f"indexing result of shape {list(selected)}"
        )
    return getitem(refused)


def by_index(words: str, beyond: type[Exception] = RuntimeError) -> Rule:
    """Return the rule of a function of indices along a dimension.

    words    what PyTorch says of indices that are no integers
    beyond   what it raises for those out of range
    """

    def rule(refused: Refused) -> Exception | None:
        src = refused["src"]
        if hasattr(src, "dtype") and src.dtype != refused["x"].dtype:
            return RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
        if refused.is_a(DTypeError):
            return RuntimeError(words)
        if refused.is_a(IndexOutOfRange) and "index" in refused.facts:
            return out_of_bounds(refused, beyond)
        if refused.is_a(ShapeError) and not refused.is_a(AxisError):
            return _index_shape(refused)
        return None

    return rule


def _index_shape(refused: Refused) -> Exception | None:
    """Say it of an index that has other sizes than the tensor."""
    x, index, dim = refused["x"], refused["index"], refused["dim"]
    if index.ndim != x.ndim:
        return RuntimeError("Index tensor must have the same number of dimensions as input tensor")
    axis = range(x.ndim)[dim]
    wrong = next(a for a in range(x.ndim) if a != axis and index.shape[a] > x.shape[a])
    return RuntimeError(
        f"Size does not match at dimension {wrong} expected index {sizes(index)} to be no larger "
        f"than self {sizes(x)} apart from dimension {axis}"
    )


def index_select(refused: Refused) -> Exception | None:
    """Say it of rows that are not there."""
    if refused.is_a(IndexOutOfRange):
        return IndexError("index out of range in self")
    if refused.is_a(DTypeError):
        return RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    return None


def take(refused: Refused) -> Exception | None:
    """Say it of places in the flat tensor."""
    if refused.is_a(IndexOutOfRange) and "index" in refused.facts:
        index, size = refused.facts["index"], refused.facts["size"]
        return IndexError(
            f"out of range: tried to access index {index} on a tensor of {size} elements."
        )
    return None


def embedding(refused: Refused) -> Exception | None:
    """Say it of rows of a table."""
    if refused.is_a(IndexOutOfRange):
        return IndexError("index out of range in self")
    if refused.is_a(DTypeError):
        index = refused["index"]
        return RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: "
            f"Long, Int; but got {index.type()} instead (while checking arguments for embedding)"
        )
    return None


def one_hot(refused: Refused) -> Exception | None:
    """Say it of classes."""
    if refused.is_a(DTypeError):
        return RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if refused.is_a(IndexOutOfRange):
        below = refused.facts.get("index", 0) < 0
        return RuntimeError(
            "Class values must be non-negative."
            if below
            else "Class values must be smaller than num_classes."
        )
    return None


def _numbers(function: str) -> Rule:
    """Return the rule of what makes Python numbers of tensors."""
    sentence = "only one element tensors can be converted to Python scalars"
    return lambda refused: ValueError(sentence)


RULES: dict[str, Rule] = {
    "getitem": getitem,
    "getitem_arrays": getitem,
    "setitem": setitem,
    "setitem_arrays": setitem,
    "index_select": index_select,
    "gather": by_index("gather(): Expected dtype int32/int64 for index"),
    "scatter": by_index("scatter(): Expected dtype int32/int64 for index"),
    "scatter_add": by_index("scatter(): Expected dtype int32/int64 for index"),
    "scatter_reduce": by_index("scatter(): Expected dtype int32/int64 for index"),
    "index_add": by_index("index_add_(): Expected dtype int32/int64 for index"),
    "index_copy": by_index("index_copy_(): Expected a long tensor for index", IndexError),
    "index_fill": by_index("index_fill_(): Expected dtype int64 for index.", IndexError),
    "take": take,
    "embedding": embedding,
    "one_hot": one_hot,
    "float()": _numbers("float"),
    "int()": _numbers("int"),
    "len()": lambda refused: TypeError("len() of a 0-d tensor"),
    "bool()": lambda refused: RuntimeError(
        "Boolean value of Tensor with more than one value is ambiguous"
    ),
    "item()": lambda refused: RuntimeError(
        f"a Tensor with {refused['x'].numel()} elements cannot be converted to Scalar"
    ),
}
