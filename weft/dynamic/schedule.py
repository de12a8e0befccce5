"""Where operands and results lie, for all batches of a schedule before any of them runs.

Members of a batch stand in the order in which their operations were put off, and the results of a
batch are rows side by side. So all places follow from the schedule alone, by native loops over
whole columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..backends.cpu.runtime.batch_order import FoundPlaces, batch_places
from ..backends.cpu.runtime.launches import address_of
from .agenda import Ints, PutOffOperations, batches
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
    order = batches(operations)
    if not len(order.sizes):
        return BatchSchedule([], {})
    firsts = order.rows[np.cumsum(order.sizes) - order.sizes]
    signatures = [table.all[i] for i in operations.signature[firsts].tolist()]
    before = [size(kind) for kind in range(len(table.types))]
    ends = np.array(before, np.int64)
    found = batch_places(operations, order, table.result_columns, ends, rows, start)
    counts = {i: n - m for i, (m, n) in enumerate(zip(before, ends.tolist(), strict=True)) if n > m}
    return BatchSchedule(_cut(signatures, order.sizes.tolist(), _operands(found)), counts)


class Operands(NamedTuple):
    """The operands of all batches (batch_order.py), in lists.

    numbers   the address of the numbers of rows of each
    firsts    the row of the first member of each
    """

    rows: Ints
    starts: list[int]
    numbers: list[int]
    firsts: list[int]
    apart: list[bool]
    distinct: list[bool]
    last: list[bool]


def _operands(found: FoundPlaces) -> Operands:
    starts = found.starts[:-1]
    numbers = starts * found.rows.itemsize + address_of(found.rows)
    columns = starts, numbers, found.rows[starts], found.apart, found.distinct, found.last
    return Operands(found.rows, *[column.tolist() for column in columns])


def _cut(
    signatures: Sequence[BatchSignature], sizes: list[int], operands: Operands
) -> list[PlacedBatch]:
    """Return operands batch by batch."""
    found, begin = list[PlacedBatch](), 0
    for signature, size in zip(signatures, sizes, strict=True):
        end = begin + signature.arity
        if len(signature.runs) == signature.arity:  # each is a run of its own
            own = slice(begin, end)
            cut = operands.distinct[own], operands.last[own], operands.numbers[own]
            batch = PlacedBatch(signature, size, _places(size, operands, begin, end), *cut)
        else:
            batch = _cut_runs(signature, size, operands, begin)
        found.append(batch)
        begin = end
    return found


def _places(size: int, operands: Operands, begin: int, end: int) -> list[Any]:
    """Return where some operands lie: side by side or, if not, the rows of all members."""
    rows, starts, _, firsts, apart, _, _ = operands
    return [
        rows[starts[i] : starts[i] + size] if apart[i] else slice(firsts[i], firsts[i] + size)
        for i in range(begin, end)
    ]


def _cut_runs(signature: BatchSignature, size: int, operands: Operands, begin: int) -> PlacedBatch:
    """Return a batch of whose operands many of one type are gathered as one."""
    batch = PlacedBatch(signature, size, [], [], [], [])
    for count in signature.runs:
        end = begin + count
        if count > 1:
            at, last = operands.starts[begin], all(operands.last[begin:end])
            batch.places.append(operands.rows[at : at + count * size].reshape(count, size))
            distinct = last
        else:
            batch.places.extend(_places(size, operands, begin, end))
            distinct, last = operands.distinct[begin], operands.last[begin]
        batch.distinct.append(distinct)
        batch.last.append(last)
        begin = end
    return batch
