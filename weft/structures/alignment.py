"""What stands beside a ragged tensor in an operation, brought to the form of its values."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.errors import ArgumentTypeError, ShapeError
from ..core.op import F, Op
from ..core.tensor import Tensor, constant
from .splits import known


def aligned(op: Op, like: Any, x: Any) -> Any:
    """Return an operand as it goes with the values of a ragged one.

    Another ragged tensor must have the same splits. A tensor of as many dimensions, with size 1 in
    place of the rows' lengths, has a value for each row (or, with size 1 there too, one for all);
    one of fewer dimensions goes with the inner sizes, as in broadcasting.
    """
    if type(x) is type(like):
        return x.values if same_splits(op, like, x) else None
    if x is None or isinstance(x, bool | int | float | np.generic):
        return x
    x = x if isinstance(x, Tensor) else constant(np.asarray(x))
    if x.ndim < like.values.ndim:
        return x
    if x.ndim == like.ndim and x.shape[1] == 1 and x.shape[0] in (1, like.num_rows):
        per_row = F.reshape(x, (x.shape[0], *x.shape[2:]))
        return per_row if x.shape[0] == 1 else F.take(per_row, like.row_ids, 0)
    raise ShapeError(
        f"{op.name}: beside a ragged tensor of shape {like.shape} goes a ragged tensor of the same "
        f"rows, a tensor ({like.num_rows}, 1, ...) with a value for each row, or one that fits "
        f"its inner sizes {tuple(like.values.shape[1:])}. Received: shape {tuple(x.shape)}"
    )


def same_splits(op: Op, a: Any, b: Any) -> bool:
    """Return True; raise if two ragged tensors are known to be split in other places."""
    if a.row_splits is b.row_splits:
        return True
    first, second = known(a.row_splits), known(b.row_splits)
    if a.num_rows != b.num_rows:
        raise ShapeError(
            f"{op.name}: ragged tensors must have equally many rows. "
            f"Received: {a.num_rows} and {b.num_rows}"
        )
    if first is not None and second is not None and (first != second).any():
        row = int(np.flatnonzero(np.diff(first) != np.diff(second))[0])
        sizes = [int(np.diff(s)[row]) for s in (first, second)]
        raise ShapeError(
            f"{op.name}: ragged tensors must have rows of the same lengths. "
            f"Received: row {row} with {sizes[0]} and {sizes[1]} values"
        )
    return True


def refused(op: Op) -> ArgumentTypeError:
    """Return the error of an operator that has no meaning for rows of different lengths."""
    return ArgumentTypeError(
        f"{op.name}: not for ragged tensors. Use its methods for rows (sum, max, softmax, "
        "to_padded), or r.apply(f) and r.values for what does not look at rows"
    )
