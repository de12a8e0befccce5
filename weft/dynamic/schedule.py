"""Where operands and results lie, for all batches of a schedule before any of them runs.

Members of a batch stand in the order in which their operations were put off, and the results of a
batch are rows side by side. So all places follow from the schedule alone, by a few operations on
whole columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..backends.cpu.runtime.launches import address_of
from .agenda import Ints, PutOffOperations, batches, spans
from .signatures import BatchSignature, SignatureTable


class PlacedBatch(NamedTuple):
    """A batch, and where its operands lie.

    places     for each run of operands that differ between members: a slice of rows side by side,
               or the number of each row, in a line for each operand where there are several
    distinct   for each of these runs whether it is known that no row is there twice
    last       for each of these runs whether nothing that runs with it reads its rows later
    numbers    the address of the numbers of rows of each operand, if each is a run of its own
    """

    signature: BatchSignature
    size: int
    places: list[Any]
    distinct: list[bool]
    last: list[bool]
    numbers: list[int]

    def operands(self) -> Iterator[Any]:
        """Yield where each operand lies."""
        for place, count in zip(self.places, self.signature.runs, strict=True):
            yield from place if count > 1 else (place,)


class BatchSchedule(NamedTuple):
    """Batches in their order, and how many results of each type they have."""

    batches: list[PlacedBatch]
    counts: dict[int, int]


def scheduled(
    operations: PutOffOperations,
    table: SignatureTable,
    rows: Ints,
    start: int,
    size: Callable[[int], int],
) -> BatchSchedule:
    """Return the order in which operations run, and note where their results will lie.

    rows    for each value, numbered from `start` on, its row within its type
    size    tells how many values of a type there are already
    """
    order, sizes = batches(operations)
    if not len(sizes):
        return BatchSchedule([], {})
    starts = np.cumsum(sizes) - sizes
    signatures = [table.all[i] for i in operations.signature[order[starts]].tolist()]
    counts = _place_results(operations, order, sizes, signatures, rows, start, size)
    operands = _operands(operations, order, sizes, signatures, rows, start)
    return BatchSchedule(_cut(signatures, sizes.tolist(), operands), counts)


def _place_results(
    operations: PutOffOperations,
    order: Ints,
    sizes: Ints,
    signatures: Sequence[BatchSignature],
    rows: Ints,
    start: int,
    size: Callable[[int], int],
) -> dict[int, int]:
    """Write down the rows of all results; return how many there are of each type."""
    counts: dict[int, int] = {}
    begins: list[list[int]] = []
    for signature, members in zip(signatures, sizes.tolist(), strict=True):
        own = []
        for kind in signature.outs:
            before = counts.get(kind, 0)
            own.append(size(kind) + before)
            counts[kind] = before + members
        begins.append(own)
    firsts = operations.firsts[order] - start
    member = np.arange(len(order)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    for i in range(max(map(len, begins))):
        found = np.repeat([own[i] if i < len(own) else -1 for own in begins], sizes)
        there = found >= 0
        rows[firsts[there] + i] = (found + member)[there]
    return counts


class Operands(NamedTuple):
    """The operands of all batches, one after another: for each, its members side by side.

    rows       where they lie, and `address` where these numbers do
    starts     where in `rows` each operand begins
    firsts     the row of the first member of each
    apart      whether the rows of an operand do not lie side by side
    distinct   whether it is known that no row of an operand is there twice
    last       whether each of its values is read here for the last time, and once
    """

    rows: Ints
    address: int
    starts: list[int]
    firsts: list[int]
    apart: list[bool]
    distinct: list[bool]
    last: list[bool]


def _operands(
    operations: PutOffOperations,
    order: Ints,
    sizes: Ints,
    signatures: Sequence[BatchSignature],
    rows: Ints,
    start: int,
) -> Operands:
    arity = np.array([signature.arity for signature in signatures])
    batch = np.repeat(np.arange(len(sizes)), arity)  # of each operand
    if not len(batch):
        return Operands(rows[:0], 0, [], [], [], [], [])
    which, size = spans(np.zeros_like(arity), arity), sizes[batch]
    at = (np.cumsum(operations.arity) - operations.arity)[order]
    refs = at[spans((np.cumsum(sizes) - sizes)[batch], size)] + np.repeat(which, size)
    values = operations.refs - start
    starts = np.cumsum(size) - size
    read = values[refs]
    lie = rows[read]
    final = np.zeros(int(read.max()) + 1, np.int64)
    final[read] = np.arange(len(read))  # the last one of each stays
    last = np.logical_and.reduceat(final[read] == np.arange(len(read)), starts)
    steps = lie[1:] - lie[:-1]
    apart = _any_inside(steps != 1, starts, size)
    distinct = last | ~_any_inside(steps < 1, starts, size)
    flags = apart.tolist(), distinct.tolist(), last.tolist()
    return Operands(lie, address_of(lie), starts.tolist(), lie[starts].tolist(), *flags)


def _any_inside(found: NDArray[np.bool_], starts: Ints, sizes: Ints) -> NDArray[np.bool_]:
    """Tell of which parts something is found from one member to the next."""
    count = np.zeros(len(found) + 1, np.int64)
    np.cumsum(found, out=count[1:])
    inside: NDArray[np.bool_] = count[starts + sizes - 1] != count[starts]
    return inside


class CutOperands(NamedTuple):
    """The operands of one batch, as `PlacedBatch` has them."""

    places: list[Any]
    distinct: list[bool]
    last: list[bool]
    numbers: list[int]


def _cut(
    signatures: Sequence[BatchSignature], sizes: list[int], operands: Operands
) -> list[PlacedBatch]:
    """Return operands batch by batch."""
    found, begin = list[PlacedBatch](), 0
    for signature, size in zip(signatures, sizes, strict=True):
        end = begin + signature.arity
        cut = _cut_singly if len(signature.runs) == signature.arity else _cut_runs
        found.append(PlacedBatch(signature, size, *cut(signature, size, operands, begin, end)))
        begin = end
    return found


def _cut_singly(
    signature: BatchSignature, size: int, operands: Operands, begin: int, end: int
) -> CutOperands:
    """Return where operands lie, each of which is a run of its own."""
    rows, address, starts, firsts, apart, distinct, last = operands
    places: list[Any] = [
        rows[starts[i] : starts[i] + size] if apart[i] else slice(firsts[i], firsts[i] + size)
        for i in range(begin, end)
    ]
    numbers = [address + 8 * at for at in starts[begin:end]]
    return CutOperands(places, distinct[begin:end], last[begin:end], numbers)


def _cut_runs(
    signature: BatchSignature, size: int, operands: Operands, begin: int, end: int
) -> CutOperands:
    """Return where operands lie, of which many of one type are gathered as one."""
    places, distinct, last = list[Any](), list[bool](), list[bool]()
    for count in signature.runs:
        if count > 1:
            at, final = operands.starts[begin], all(operands.last[begin : begin + count])
            places.append(operands.rows[at : at + count * size].reshape(count, size))
            distinct.append(final)
            last.append(final)
        else:
            own = _cut_singly(signature, size, operands, begin, begin + 1)
            places += own.places
            distinct += own.distinct
            last += own.last
        begin += count
    return CutOperands(places, distinct, last, [])
