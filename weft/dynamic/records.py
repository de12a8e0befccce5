"""What was put off, as columns: rows of operations, one after another, and the data among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ..core.dtype import Array, DType
from .agenda import Ints, PutOffOperations
from .signatures import SignatureTable

NUMBERS = (int, float)


class Chunk(NamedTuple):
    """Rows of operations whose values are numbered from `first` on.

    signatures, levels   of each row
    refs                 the values that rows read, one after another; numbers below `first` are of
                         values that were there before
    firsts               the number of the first result of each row
    data                 for each type what examples brought: tensors, or arrays of several
    numbers              how many values are numbered
    is_new               whether no plan has said so
    plan                 the plan that is made of it, if any
    """

    first: int
    signatures: Sequence[int] | Ints
    levels: Sequence[int] | Ints
    refs: Sequence[int] | Ints
    firsts: Sequence[int] | Ints
    data: dict[int, list[Any]]
    numbers: int
    is_new: bool = True
    plan: Any = None


class Records:
    """Rows that are being put off, behind chunks of those before."""

    def __init__(self, first: int) -> None:
        self.first = self.start = first
        self.chunks: list[Chunk] = []
        self._begin(first)

    def _begin(self, first: int) -> None:
        self.start = first
        self.signatures: list[int] = []
        self.levels: list[int] = []
        self.refs: list[int] = []
        self.firsts: list[int] = []
        self.data: dict[int, list[Any]] = {}

    def cut(self, count: int) -> Chunk | None:
        """End the chunk that is being written, and return it if there is anything in it."""
        if not self.signatures:
            return None
        rows = self.signatures, self.levels, self.refs, self.firsts
        chunk = Chunk(self.start, *rows, self.data, count - self.start)
        self.chunks.append(chunk)
        self._begin(count)
        return chunk

    def add(self, chunk: Chunk, count: int) -> None:
        """Append rows that were put off before, of an example that was seen."""
        self.chunks.append(chunk)
        self.start = count

    def operations(self, table: SignatureTable) -> PutOffOperations:
        """Return all rows as columns."""
        signature = joined_column([c.signatures for c in self.chunks])
        last = self.chunks[-1]
        return PutOffOperations(
            signature,
            joined_column([c.levels for c in self.chunks]),
            joined_column([c.refs for c in self.chunks]),
            table.arity[signature],
            table.results[signature],
            joined_column([c.firsts for c in self.chunks]),
            self.first,
            last.first + last.numbers - self.first,
        )

    @property
    def is_new(self) -> bool:
        """Whether there are rows that no plan has said."""
        return bool(self.signatures) or any(chunk.is_new for chunk in self.chunks)

    def arranged(self, operations: PutOffOperations) -> PutOffOperations:
        """Let plans have what became of their rows; return those of the deepest examples first.

        So are examples put together that were seen (replaying.py): sums over members are the same,
        to the last bit, whether their code ran or a plan did.
        """
        firsts = np.array([chunk.first for chunk in self.chunks])
        owner = np.searchsorted(firsts, operations.firsts, "right") - 1
        depth = np.zeros(len(firsts), np.int64)
        np.maximum.at(depth, owner, operations.level)
        self._tell_plans(operations, firsts[owner], depth.tolist())
        return self._deepest_first(operations, owner, depth)

    def _tell_plans(self, operations: PutOffOperations, shift: Ints, depths: list[int]) -> None:
        """Let plans have the operations that became of their rows, shifted to where they begin."""
        edges = [number for c in self.chunks for number in (c.first, c.first + c.numbers)]
        bounds = np.searchsorted(operations.firsts, edges)
        ends = np.concatenate(([0], np.cumsum(operations.arity)))[bounds].tolist()
        columns = np.stack((operations.signature, operations.level, operations.firsts - shift))
        refs, rows = operations.refs - np.repeat(shift, operations.arity), bounds.tolist()
        for i, (chunk, depth) in enumerate(zip(self.chunks, depths, strict=True)):
            if chunk.plan is not None:
                begin, end = 2 * i, 2 * i + 1
                own = columns[:, rows[begin] : rows[end]], refs[ends[begin] : ends[end]]
                chunk.plan.take(*[column.copy() for column in own], depth)

    def _deepest_first(
        self, operations: PutOffOperations, owner: Ints, depth: Ints
    ) -> PutOffOperations:
        order = np.argsort(-depth, kind="stable")
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        if bool((rank[1:] > rank[:-1]).all()):
            return operations
        self.chunks = [self.chunks[i] for i in order.tolist()]
        return operations.ordered(np.argsort(rank[owner], kind="stable"))

    def payload(self, kind: int) -> list[Any]:
        """Return the data of a type, in the order of rows."""
        return [x for chunk in self.chunks for x in chunk.data.get(kind, ())]


def each_of(chunks: Sequence[Chunk], kind: int) -> Iterator[Any]:
    """Return the data of a type in some chunks that no plan has said: one for each row."""
    return chain.from_iterable(chunk.data.get(kind, ()) for chunk in chunks)


def joined_column(columns: list[Any]) -> Ints:
    """Return columns of whole numbers as one."""
    if all(column.__class__ is list for column in columns):
        return np.fromiter(chain.from_iterable(columns), np.int64, sum(map(len, columns)))
    arrays = [np.asarray(column, np.int64) for column in columns]
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def stacked(payload: Sequence[Any], dtype: DType) -> Array:
    """Return data as one array: tensors and numbers are one value each, arrays several."""
    parts: list[Array] = []
    alone: list[Any] = []
    for x in payload:
        if x.__class__ is np.ndarray:
            if alone:
                parts.append(np.array(alone, dtype))
                alone = []
            parts.append(x)
        else:
            alone.append(x if x.__class__ in NUMBERS else x._value)
    if alone:
        parts.append(np.array(alone, dtype))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
