"""Classes and vectors: embedding rows by index, and one-hot rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batching import repeat, shifted
from ...core.dim import surely_less
from ...core.division import Division
from ...core.dtype import as_dtype, int64
from ...core.errors import ArgumentError, IndexOutOfRange, ShapeError
from ...core.op import F, composite, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, as_int
from ...core.tensor import Tensor
from .._operands import names_errors
from ._batching import BatchIndex, batch_taken
from ._checks import allowed, check_integer, check_non_negative, check_range, operands
from ._spec import ARRAY
from .rows import row_gradient
from .take import taken


@op(general, method=False, public=True)
def embedding(
    weight: Tensor, index: Tensor, padding_idx: int | None = None, sparse: bool = False
) -> Tensor:
    """Return the rows of `weight` that `index` names: shape index.shape + weight.shape[1:].

    The row `padding_idx` receives no gradient. Negative indices are refused: they are almost always
    a padding value that was forgotten. With `sparse`, a leaf gets a row-sparse gradient.

    >>> import weft as wf
    >>> wf.embedding(wf.tensor([[0.0, 0.0], [1.0, 2.0]]), wf.tensor([1, 0, 1]))
    tensor([[1., 2.],
            [0., 0.],
            [1., 2.]])
    """


@embedding.canon
def _(weight, index, padding_idx, sparse):
    check_integer(index)
    if weight.ndim == 0:
        raise ShapeError("weight must hold rows. Received: a 0-d tensor")
    row = None if padding_idx is None else _padding_row(padding_idx, weight.shape[0])
    return row, bool(sparse)


def _padding_row(padding_idx: Any, rows: int) -> int:
    row = as_int(padding_idx, "padding_idx")
    if surely_less(row, -rows) or surely_less(rows - 1, row):
        raise IndexOutOfRange(f"padding_idx {row} is out of range for {allowed(rows, 0)}")
    return row + rows if row < 0 else row


@embedding.eval
def _(weight, index, padding_idx, sparse):
    check_non_negative(index, weight.shape[0], 0)
    try:
        return weight.take(index.astype(np.intp, copy=False), 0)
    except IndexError:
        check_range(index, weight.shape[0], 0, low=0)
        raise


@embedding.infer
def _(weight, index, padding_idx, sparse):
    return TensorType((*index.shape, *weight.shape[1:]), weight.dtype)


@embedding.division
def _(weight, index, padding_idx, sparse):
    places = tuple(("index", i) for i in range(index.ndim))
    rest = tuple(range(1, weight.ndim))

    def part(at, rows, index):
        if at.label != "row":
            return F.embedding(rows, index, padding_idx, sparse)
        here, place = at.places(index, weight.shape[0])
        here = F.reshape(here, (*here.shape, *[1] * len(rest)))
        found = F.embedding(rows, place)
        return F.where(here, found, F.zeros_like(found))

    return Division([("row", *rest), places], (*places, *rest), {"row": "sum"}, part)


@embedding.vjp("weight")
def _(g, index, weight_shape, padding_idx, sparse):
    if padding_idx is not None:
        padding = F.reshape(index == padding_idx, (*index.shape, *[1] * (len(weight_shape) - 1)))
        g = F.where(padding, F.zeros_like(g), g)
    if sparse:
        return row_gradient(g, index, weight_shape)
    return F.take_adjoint(g, index, weight_shape, 0)


@embedding.place
def _(b, weight, index, padding_idx, sparse):
    return taken(b, weight, index, 0, wraps=False)


@embedding.batch
def _(weight, index, padding_idx, sparse, batched, examples):
    if not batched[0]:
        return F.embedding(weight, index, padding_idx, sparse)
    rows = batch_taken(
        weight, True, BatchIndex(weight.shape[1:], [index], batched[1:], (ARRAY,), examples)
    )
    if padding_idx is None:
        return rows
    index = index if batched[1] else repeat(index, examples)
    padding = F.reshape(index == padding_idx, (*index.shape, *[1] * (weight.ndim - 2)))
    return F.where(padding, F.stop_gradient(rows), rows)


@embedding.samples
def _(s):
    yield Sample(s.real(4, 3), np.array([3, 0, 3]))
    yield Sample(s.real(4, 2), np.array([[1, 0], [1, 2]], np.int32))
    yield Sample(s.real(4, 2), np.array(2), label="0-d index")
    yield Sample(s.real(4), np.array([2, 2]), label="rows of one number")
    yield Sample(s.real(4, 2), np.zeros((0, 3), int), label="empty index")
    yield Sample(s.real(3, 2), np.array([1, 0, 1]), padding_idx=2, label="padding unused")
    yield Sample(s.real(3, 2), np.array([1, 0, 1]), padding_idx=-2, grad=0, label="padding")
    yield Sample(s.real(4, 2), np.array([[1, 0], [1, 2]]), sparse=True, label="sparse")


@embedding.error_samples
def _(s):
    weight = s.real(4, 3)
    yield ErrorSample(
        weight, np.array([[0, 4]]), error=IndexError, match=r"index\[0, 1\] = 4 .* axis 0 of size 4"
    )
    yield ErrorSample(weight, np.array([2, -1]), error=IndexError, match=r"= -1 .* use 0\.\.3")
    yield ErrorSample(weight, s.real(2), error=TypeError, match="integers.*float64")
    yield ErrorSample(
        weight,
        np.array([0]),
        padding_idx=4,
        error=IndexError,
        match="padding_idx 4 is out of range",
    )


@composite(public={"nn.functional": ("embedding",)})
def embedding_of(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, *, sparse: bool = False
) -> Tensor:
    """Return the rows of `weight` that `input` names, with PyTorch's order of arguments.

    With `sparse`, a weight that is a leaf gets a row-sparse gradient.

    >>> import weft as wf
    >>> wf.nn.functional.embedding(wf.tensor([1, 0]), wf.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    index, weight = operands(input, weight)
    return F.embedding(weight, index, padding_idx, sparse)


# -- one-hot ------------------------------------------------------------------------------------


@op(general, method=False, batch=shifted)
def one_hot_rows(index: Tensor, num_classes: int, dtype: Any = int64) -> Tensor:
    """Return a row of `num_classes` numbers for each index: one at that place, zeros elsewhere."""


@one_hot_rows.canon
def _(index, num_classes, dtype):
    check_integer(index)
    count = as_int(num_classes, "num_classes")
    if surely_less(count, 0):
        raise ArgumentError(f"num_classes must not be negative. Received: {count}")
    return count, as_dtype(dtype)


@one_hot_rows.eval
def _(index, num_classes, dtype):
    check_non_negative(index, num_classes, None)
    check_range(index, num_classes, None, low=0)
    return (index[..., None] == np.arange(num_classes)).astype(dtype)


@one_hot_rows.infer
def _(index, num_classes, dtype):
    return TensorType((*index.shape, num_classes), dtype)


@one_hot_rows.place
def _(b, index, num_classes, dtype):
    if not num_classes:
        return None
    *rows, column = b.coordinates
    return b.eq(b.index(index.at(*rows), num_classes, wraps=False), column.expr)


@one_hot_rows.samples
def _(s):
    yield Sample(np.array([2, 0, 1]), 3)
    yield Sample(np.array([[1], [0]], np.uint8), 4, "float32")
    yield Sample(np.array(1), 2, bool, label="0-d")
    yield Sample(np.array([], int), 2, label="empty")


@one_hot_rows.error_samples
def _(s):
    yield ErrorSample(
        np.array([0, 3]), 3, error=IndexError, match=r"index\[1\] = 3 .* size 3; use -?\w+\.\.2"
    )
    yield ErrorSample(np.array([0, -1]), 3, error=IndexError, match=r"= -1 .* use 0\.\.2")
    yield ErrorSample(s.real(2), 3, error=TypeError, match="integers.*float64")
    yield ErrorSample(np.array([0]), -2, error=ValueError, match="Received: -2")


@composite(public=("wf", "nn.functional"))
@names_errors
def one_hot(index: Tensor, num_classes: int = -1, *, dtype: Any = int64) -> Tensor:
    """Return one-hot rows: shape index.shape + (num_classes,), integers unless `dtype` says else.

    num_classes -1 stands for one more than the largest index.

    >>> import weft as wf
    >>> wf.one_hot(wf.tensor([2, 0]))
    tensor([[0, 0, 1],
            [1, 0, 0]])
    """
    (index,) = operands(index)
    if as_int(num_classes, "num_classes") == -1:
        if index.size == 0:
            raise ArgumentError("an empty index does not tell num_classes; give it")
        num_classes = int(F.max(index)) + 1
    return F.one_hot_rows(index, num_classes, dtype)
