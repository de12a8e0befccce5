"""The schedule of one round, in which examples wait for values: a batch for each signature.

Between two reads an example puts few operations off, and whoever waits does so at the same place
as others: a signature then stands on no way to itself, and its operations are one batch. That is
told by the signatures alone, of which there are a handful; where it is not so, the agenda looks at
buckets (agenda.py). There are as many rounds as steps, so what counts is the time of each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..backends.cpu.runtime.launches import address_of
from .agenda import Ints, PutOffOperations
from .schedule import BatchSchedule, PlacedBatch
from .signatures import BatchSignature, SignatureTable


def round_schedule(
    operations: PutOffOperations,
    used: set[int],
    table: SignatureTable,
    rows: Ints,
    start: int,
    size: Callable[[int], int],
) -> BatchSchedule | None:
    """Return one batch for each signature that is used, and note where results will lie.

    It is what `scheduled` does in general; None if signatures wait for one another, or for values
    that have not run.
    """
    order = _order(operations, used, rows, start)
    if order is None:
        return None
    begins = np.cumsum(operations.arity) - operations.arity
    found, counts = list[PlacedBatch](), dict[int, int]()
    for number in order:
        signature = table.all[number]
        chosen = np.flatnonzero(operations.signature == number)
        firsts = operations.firsts[chosen] - start
        for i, kind in enumerate(signature.outs):
            begin = size(kind) + counts.get(kind, 0)
            counts[kind] = begin - size(kind) + len(firsts)
            rows[firsts + i] = np.arange(begin, begin + len(firsts))
        each = np.arange(signature.arity)[:, None]
        lie = rows[operations.refs[begins[chosen] + each] - start] if len(each) else rows[:0]
        found.append(_placed(signature, len(firsts), lie))
    return BatchSchedule(found, counts)


def _order(operations: PutOffOperations, used: set[int], rows: Ints, start: int) -> Any:
    """Return signatures in an order in which all operations of each can run at once, if any."""
    refs, first = operations.refs, operations.first
    inside = refs >= first
    if bool((rows[refs[~inside] - start] < 0).any()):
        return None
    places = np.flatnonzero(inside)
    read, firsts = refs[places], operations.firsts
    maker = np.searchsorted(firsts, read, "right") - 1
    if bool((read >= firsts[maker] + operations.outs[maker]).any()):
        return None  # a value that nobody was to need
    reader = np.searchsorted(np.cumsum(operations.arity), places, "right")
    pairs = operations.signature[maker].tolist(), operations.signature[reader].tolist()
    return _in_turn(sorted(used), {*zip(*pairs, strict=True)})


def _in_turn(left: list[int], behind: set[tuple[int, int]]) -> list[int] | None:
    """Return signatures, each after those that it waits for."""
    found: list[int] = []
    while left:
        ready = next((s for s in left if not any((t, s) in behind for t in left)), None)
        if ready is None:
            return None
        left.remove(ready)
        found.append(ready)
    return found


def _placed(signature: BatchSignature, size: int, lie: Ints) -> PlacedBatch:
    """Return a batch whose operands lie so: a line for each.

    Who reads a value last is not known while examples go on.
    """
    batch, begin = PlacedBatch(signature, size, [], [], [], []), 0
    if not signature.arity:
        return batch
    steps = lie[:, 1:] - lie[:, :-1]
    apart: list[bool] = np.any(steps != 1, axis=-1).tolist()
    rising: list[bool] = np.all(steps > 0, axis=-1).tolist()
    if len(signature.runs) == signature.arity:
        address, line = address_of(lie), lie.strides[0]
        batch.numbers.extend([address + i * line for i in range(signature.arity)])
    for count in signature.runs:
        if count > 1:
            place: Any = lie[begin : begin + count]
        elif apart[begin]:
            place = lie[begin]
        else:
            first = int(lie[begin, 0])
            place = slice(first, first + size)
        batch.places.append(place)
        batch.distinct.append(count == 1 and rising[begin])
        batch.last.append(False)
        begin += count
    return batch
