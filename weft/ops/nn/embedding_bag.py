"""Sums, means and maxima of embeddings, one for each bag of indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import dtype as dt
from ...core.dim import is_known
from ...core.errors import ArgumentError, ShapeError
from ...core.op import F, composite
from ...core.shape import as_int
from ...core.tensor import Tensor
from .._halves import rounded_once
from .._operands import concrete, in_dtype
from ._arguments import check_integers, check_same_shape, of_shape, operands

MODES = ("sum", "mean", "max")


@composite()
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    *,
    mode: str = "mean",
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
    sparse: bool = False,
) -> Tensor:
    """Return one reduced embedding, a row of shape (D,), for each bag of indices.

    input is (B, L), a bag in each row, or one-dimensional with `offsets` at which bags begin (with
    include_last_offset the last one ends the last bag). per_sample_weights scale the embeddings
    (mode "sum" only); indices equal to padding_idx count for nothing. An empty bag gives zeros.
    With `sparse`, a weight that is a leaf gets a row-sparse gradient.
    """
    fn = "embedding_bag"
    input, weight, offsets, factors = operands(
        fn, input=input, weight=weight, offsets=offsets, per_sample_weights=per_sample_weights
    )
    _check_options(fn, input, weight, mode, factors)
    members = _members(fn, input, offsets, include_last_offset)
    index = F.reshape(input, (-1,))
    if padding_idx is not None:
        padding_idx = as_int(padding_idx, "embedding_bag: padding_idx")
        row = padding_idx + weight.shape[0] if padding_idx < 0 else padding_idx
        members = F.logical_and(members, index != row)
    if factors is not None:
        factors = F.reshape(of_shape(factors, input.shape), (-1, 1))
    return _reduced(members, F.embedding(weight, index, None, sparse), factors, mode)


@rounded_once
def _reduced(members: Any, rows: Any, factors: Any, mode: str) -> Tensor:
    """Return rows reduced by a matrix of truth values (B, n) that says which are in which bag."""
    rows = rows if factors is None else rows * factors
    if mode == "max":
        return _largest(members, rows)
    total: Tensor = F.matmul(F.cast(members, rows.dtype), rows)
    if mode == "sum":
        return total
    count = F.maximum(F.sum(members, axis=1, keepdims=True, dtype=rows.dtype), 1.0)
    return total / count


def _largest(members: Any, rows: Any) -> Tensor:
    if rows.shape[0] == 0:
        return F.matmul(F.cast(members, rows.dtype), rows)
    spread = F.where(members[:, :, None], rows, -np.inf)
    largest = F.max(spread, axis=1)
    return F.where(F.any(members, axis=1)[:, None], largest, 0.0)


def _members(fn: str, input: Any, offsets: Any, include_last: bool) -> Any:
    """Return which of the flattened indices belong to which bag, (B, n) truth values."""
    if input.ndim == 2:
        if offsets is not None:
            raise ArgumentError(f"{fn}: offsets are for one-dimensional input; rows are bags here")
        bags, length = input.shape
        if is_known((bags, length)):
            return np.arange(bags)[:, None] == np.repeat(np.arange(bags), length)
        return F.iota(bags)[:, None] == F.iota(bags * length) // length
    if input.ndim != 1 or offsets is None:
        raise ShapeError(
            f"{fn}: input must have shape (B, L), or (n,) with offsets. Received: {input.shape}"
            f"{' without offsets' if offsets is None else ''}"
        )
    _check_offsets(fn, offsets, input.shape[0], include_last)
    ends = offsets[1:]
    if not include_last:
        end = F.reshape(F.size_value(input.shape[0]), (1,))
        ends = F.concat([in_dtype(ends, dt.int64), end], axis=0)
    starts = offsets[:-1] if include_last else offsets
    place = F.iota(input.shape[0])
    return F.logical_and(starts[:, None] <= place, place < ends[:, None])


def _check_options(fn: str, input: Any, weight: Any, mode: Any, factors: Any) -> None:
    check_integers(fn, "input", input, "indices of embeddings")
    if weight.ndim != 2:
        raise ShapeError(f"{fn}: weight must have shape (rows, D). Received: {weight.shape}")
    if mode not in MODES:
        raise ArgumentError(f"{fn}: mode must be 'sum', 'mean' or 'max'. Received: {mode!r}")
    if factors is None:
        return
    if mode != "sum":
        raise ArgumentError(f"{fn}: per_sample_weights need mode='sum'. Received: {mode!r}")
    check_same_shape(fn, input, factors, "input and per_sample_weights")


def _check_offsets(fn: str, offsets: Any, size: int, include_last: bool) -> None:
    check_integers(fn, "offsets", offsets, "positions at which bags begin")
    if offsets.ndim != 1 or offsets.shape[0] == 0:
        raise ShapeError(f"{fn}: offsets must have shape (B,), B >= 1. Received: {offsets.shape}")
    value = concrete(offsets)
    if value is None:
        return
    ascending = bool((value[1:] >= value[:-1]).all())
    if value[0] != 0 or not ascending or value[-1] > size or (include_last and value[-1] != size):
        raise ArgumentError(
            f"{fn}: offsets must ascend from 0 to at most {size}, the number of indices (and reach "
            f"it with include_last_offset). Received: {value}"
        )
