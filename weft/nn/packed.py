"""Sequences of different lengths in one batch: padded to the longest, or packed without padding.

A packed batch lists, for every time step, the rows of those sequences that are still running. With
the longest sequence first, step t is a prefix of step t - 1, so a recurrent net computes exactly
the elements that exist. Names and meaning are those of `torch.nn.utils.rnn`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ..core import dtype as dt
from ..core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from ..core.operands import array_from
from ..core.shape import as_int
from ..core.tensor import Tensor, wrap
from .calls import F

Integers = np.ndarray[Any, np.dtype[np.int64]]


class PackedSequence(NamedTuple):
    """A batch of sequences without padding; make one with `pack_sequence` and its relatives.

    data              (total length, ...): all first elements, then all second ones, and so on
    batch_sizes       how many sequences are still running at each time step
    sorted_indices    where each packed sequence stood in the batch; None if it was sorted already
    unsorted_indices  the inverse: where each sequence of the batch stands in the packed order
    """

    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None = None
    unsorted_indices: Tensor | None = None

    def to(self, dtype: Any) -> PackedSequence:
        """Return the same batch with its data in another dtype."""
        return self._replace(data=self.data.to(dtype))


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack a padded batch, (time, batch, ...) or (batch, time, ...) with `batch_first`.

    `lengths` holds the length of each sequence. With `enforce_sorted` they must not increase;
    without it the batch is sorted here and `pad_packed_sequence` restores its order.

    >>> import weft as wf
    >>> padded = wf.tensor([[1, 2, 3], [4, 0, 0]])
    >>> packed = pack_padded_sequence(padded, [3, 1], batch_first=True)
    >>> packed.data, packed.batch_sizes
    (tensor([1, 4, 2, 3]), tensor([2, 1, 1]))
    """
    fn = "pack_padded_sequence"
    if input.ndim < 2:
        raise ShapeError(
            f"{fn}: input must have shape (time, batch, ...), or (batch, time, ...) with "
            f"batch_first=True. Received: {input.shape}"
        )
    batch, steps = input.shape[:2] if batch_first else input.shape[1::-1]
    sizes = _checked_lengths(fn, lengths, batch, steps)
    order = _sorting_order(fn, sizes, enforce_sorted)
    columns = np.arange(batch) if order is None else order
    running = np.arange(sizes.max())[:, None] < sizes[columns]
    times = np.arange(len(running))[:, None]
    places = columns * steps + times if batch_first else times * batch + columns
    rows = F.reshape(input, (batch * steps, *input.shape[2:]))
    data = F.take(rows, wrap(places[running]), 0)
    batch_sizes = wrap(running.sum(axis=1, dtype=np.int64))
    if order is None:
        return PackedSequence(data, batch_sizes)
    return PackedSequence(data, batch_sizes, wrap(order), wrap(_inverse(order)))


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Return a packed batch as a padded one, in its first order, and the lengths.

    `total_length` asks for that many time steps, at least those of the longest sequence.

    >>> import weft as wf
    >>> packed = pack_sequence([wf.tensor([4]), wf.tensor([1, 2, 3])], enforce_sorted=False)
    >>> pad_packed_sequence(packed, batch_first=True)
    (tensor([[4, 0, 0],
            [1, 2, 3]]), tensor([1, 3]))
    """
    fn = "pad_packed_sequence"
    if not isinstance(sequence, PackedSequence):
        raise ArgumentTypeError(
            f"{fn}: expected a PackedSequence. Received: {type(sequence).__name__}"
        )
    batch_sizes = np.array(batch_sizes_of(sequence))
    running = np.arange(batch_sizes[0]) < batch_sizes[:, None]
    running = _lengthened(fn, running, total_length)
    places = np.zeros(running.shape, np.int64)
    places[running] = np.arange(batch_sizes.sum())
    order = restoring_order(sequence)
    if order is not None:
        running, places = running[:, order.numpy()], places[:, order.numpy()]
    lengths = wrap(running.sum(axis=0, dtype=np.int64))
    if batch_first:
        running, places = running.T, places.T
    padded = F.take(sequence.data, wrap(places), 0)
    if not running.all():
        there = running.reshape(*running.shape, *(1,) * (padded.ndim - 2))
        padded = F.where(wrap(there), padded, _padding(fn, padding_value, padded.dtype))
    return padded, lengths


def pad_sequence(
    sequences: Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stack sequences of shape (length, ...) into one batch, padded to the longest.

    >>> import weft as wf
    >>> pad_sequence([wf.tensor([1, 2]), wf.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    if padding_side not in ("left", "right"):
        raise ArgumentError(
            f"pad_sequence: padding_side must be 'left' or 'right'. Received: {padding_side!r}"
        )
    rows = _checked_sequences("pad_sequence", sequences)
    longest = max(row.shape[0] for row in rows)
    padded = [_padded(row, longest, padding_value, padding_side) for row in rows]
    return F.stack(padded, 0 if batch_first else 1)


def pack_sequence(sequences: Iterable[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences of shape (length, ...), longest first unless `enforce_sorted` is off.

    >>> import weft as wf
    >>> pack_sequence([wf.tensor([1, 2, 3]), wf.tensor([4])]).data
    tensor([1, 4, 2, 3])
    """
    rows = _checked_sequences("pack_sequence", sequences)
    lengths = [row.shape[0] for row in rows]
    return pack_padded_sequence(pad_sequence(rows), lengths, enforce_sorted=enforce_sorted)


def unpad_sequence(padded: Tensor, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """Return the sequences of a padded batch, each cut to its length."""
    batch, steps = padded.shape[:2] if batch_first else padded.shape[1::-1]
    sizes = _checked_lengths("unpad_sequence", lengths, batch, steps, least=0)
    rows = F.unbind(padded, 0 if batch_first else 1)
    return [row[:size] for row, size in zip(rows, sizes.tolist(), strict=True)]


def unpack_sequence(sequence: PackedSequence) -> list[Tensor]:
    """Return the sequences of a packed batch, in the order in which they were packed."""
    padded, lengths = pad_packed_sequence(sequence, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


# -- what recurrent nets ask of a packed batch ---------------------------------------------------


def batch_sizes_of(sequence: PackedSequence) -> tuple[int, ...]:
    """Return the number of running sequences at each step; raise if they do not fit the data."""
    sizes = tuple(np.asarray(sequence.batch_sizes).tolist())
    falling = all(a >= b for a, b in pairwise(sizes))
    if not sizes or not falling or sizes[-1] < 1 or sum(sizes) != sequence.data.shape[0]:
        raise ArgumentError(
            "PackedSequence: batch_sizes must be positive, must not increase and must add up to "
            f"the length of data, {sequence.data.shape[0]}. Received: {sizes}"
        )
    return sizes


def restoring_order(sequence: PackedSequence) -> Tensor | None:
    """Return the order that brings packed sequences back to that of the batch, or None."""
    if sequence.unsorted_indices is not None or sequence.sorted_indices is None:
        return sequence.unsorted_indices
    return wrap(_inverse(np.asarray(sequence.sorted_indices)))


# -- helpers -------------------------------------------------------------------------------------


def _checked_lengths(fn: str, lengths: Any, batch: int, steps: int, least: int = 1) -> Integers:
    sizes = np.asarray(lengths) if isinstance(lengths, Tensor) else array_from(lengths, "lengths")
    if sizes.size and not dt.is_integer(sizes.dtype):
        raise DTypeError(f"{fn}: lengths must be integers. Received: {sizes.dtype}")
    if sizes.shape != (batch,) or not batch:
        raise ShapeError(
            f"{fn}: lengths must hold one length for each of the {batch} sequences of the batch, "
            f"of which there must be some. Received: shape {sizes.shape}"
        )
    if sizes.min() < least or sizes.max() > steps:
        raise ArgumentError(
            f"{fn}: each length must lie in {least}..{steps} (the padded length). "
            f"Received: {sizes.tolist()}"
        )
    return sizes.astype(np.int64)


def _sorting_order(fn: str, sizes: Integers, enforce_sorted: bool) -> Integers | None:
    """Return the order with the longest sequence first, or None if it must stand already."""
    if not enforce_sorted:
        return np.argsort(-sizes, kind="stable")
    if (np.diff(sizes) > 0).any():
        raise ArgumentError(
            f"{fn}: lengths must not increase. Received: {sizes.tolist()}; pass "
            "enforce_sorted=False to have the batch sorted",
            increasing=sizes.tolist(),
        )
    return None


def _inverse(order: Integers) -> Integers:
    inverse = np.empty(len(order), np.int64)
    inverse[order] = np.arange(len(order))
    return inverse


def _lengthened(fn: str, running: Any, total_length: int | None) -> Any:
    """Return the table of running sequences with empty steps added up to the total length."""
    if total_length is None:
        return running
    missing = as_int(total_length, f"{fn}: total_length") - len(running)
    if missing < 0:
        raise ArgumentError(
            f"{fn}: total_length must be at least {len(running)}, the length of the longest "
            f"sequence. Received: {total_length}"
        )
    return np.pad(running, ((0, missing), (0, 0)))


def _padding(fn: str, value: Any, dtype: dt.DType) -> Tensor:
    """Return the value to pad with in the dtype of the data; raise if it would change."""
    wanted = np.asarray(value)
    with np.errstate(all="ignore"):
        padding = wanted.astype(dtype)
    if wanted.ndim or (not dt.is_float(dtype) and padding != wanted):
        raise ArgumentError(
            f"{fn}: padding_value must be a number that {dtype} can hold. Received: {value!r}"
        )
    return wrap(padding)


def _checked_sequences(fn: str, sequences: Iterable[Tensor]) -> list[Tensor]:
    rows = list(sequences)
    if not rows:
        raise ArgumentError(f"{fn}: expected at least one sequence. Received: none")
    for row in rows:
        if not isinstance(row, Tensor):
            raise ArgumentTypeError(
                f"{fn}: each sequence must be a tensor. Received: {type(row).__name__}"
            )
        if row.ndim == 0 or row.shape[1:] != rows[0].shape[1:]:
            raise ShapeError(
                f"{fn}: sequences must have shape (length, ...) with equal sizes after the "
                f"length. Received: {rows[0].shape} and {row.shape}"
            )
    return rows


def _padded(row: Tensor, length: int, value: float, side: str) -> Tensor:
    missing = length - row.shape[0]
    if not missing:
        return row
    width = (missing, 0) if side == "left" else (0, missing)
    return F.pad(row, (width, *((0, 0),) * (row.ndim - 1)), value=value)
