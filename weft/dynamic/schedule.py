"""Where operands and results lie, for all batches of a schedule before any of them runs.

Members of a batch stand in the order in which their operations were put off, and the results of a
batch are rows side by side. So all places follow from the schedule alone, by native loops over
whole columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from ..backends.cpu.runtime.batch_order import FoundPlaces, batch_places
from ..backends.cpu.runtime.launches import address_of
from ..core.tensor import Tensor, constant
from .agenda import Ints, PutOffOperations, batches
from .signatures import BatchSignature, SignatureTable


class PlacedBatch(NamedTuple):
    """A batch, and where its operands lie.

    places     for each run of operands that differ between members: a slice of rows side by side,
               or the number of each row, in a line for each operand where there are several
    distinct   for each of these runs whether it is known that no row is there twice
    last       for each of these runs whether nothing that runs with it reads its rows later
    numbers    the address of the numbers of rows of each operand, if each is a run of its own
    splits     where the rows of each member begin and end, if it has any number of them
    """

    signature: BatchSignature
    size: int
    places: list[Any]
    distinct: list[bool]
    last: list[bool]
    numbers: list[int]
    splits: Tensor | None = None

    @property
    def rows(self) -> int:
        """How many rows of operands there are: one for each member, as a rule."""
        return self.size if self.splits is None else int(self.splits._value[-1])

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
    operations = operations._replace(signature=table.merged[operations.signature])
    order = batches(operations)
    if not len(order.sizes):
        return BatchSchedule([], {})
    firsts = order.rows[np.cumsum(order.sizes) - order.sizes]
    signatures = [table.all[i] for i in operations.signature[firsts].tolist()]
    before = [size(kind) for kind in range(len(table.types))]
    ends = np.array(before, np.int64)
    results, ragged = table.result_columns, table.ragged
    found = batch_places(operations, order, results, ragged, ends, rows, start)
    counts = {i: n - m for i, (m, n) in enumerate(zip(before, ends.tolist(), strict=True)) if n > m}
    sizes = order.sizes.tolist()
    splits = _splits(signatures, sizes, operations.arity, order.rows)
    return BatchSchedule(_cut(signatures, sizes, splits, _operands(found)), counts)


def _splits(
    signatures: Sequence[BatchSignature], sizes: list[int], arity: Ints, rows: Ints
) -> Iterator[Tensor]:
    """Yield where rows are split between members, of each batch whose members have any number."""
    for signature, size, end in zip(signatures, sizes, accumulate(sizes), strict=True):
        if signature.ragged:
            yield constant(np.concatenate(([0], np.cumsum(arity[rows[end - size : end]]))))


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
    signatures: Sequence[BatchSignature],
    sizes: list[int],
    splits: Iterator[Tensor],
    operands: Operands,
) -> list[PlacedBatch]:
    """Return operands batch by batch."""
    found, begin = list[PlacedBatch](), 0
    for signature, size in zip(signatures, sizes, strict=True):
        end = begin + signature.arity
        if len(signature.runs) == signature.arity:  # each is a run of its own
            own = slice(begin, end)
            cut = operands.distinct[own], operands.last[own], operands.numbers[own]
            split = next(splits) if signature.ragged else None
            rows = size if split is None else int(split._value[-1])
            batch = PlacedBatch(signature, size, _places(rows, operands, begin, end), *cut, split)
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
