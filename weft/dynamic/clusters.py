"""Cells found by themselves: operations that always come together become one.

An operation whose results are read by operations of one cluster only joins it, so that a cluster
has one way out, its root. On no path to the root does a signature come twice: what a recursion or
a loop repeats are clusters of one kind, and not one cluster without end. Clusters of the same
operations, wired alike, have one signature and run as one batch, as calls of a cell do.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.op import random
from ..core.shape import TensorType, size_of
from .agenda import Ints, PutOffOperations
from .cell_work import LEAST_WORK
from .kernels import OpWork
from .places import moves
from .segments import REDUCTIONS, SegmentWork, adds_up, segments_of, sum_of
from .signatures import MANY, BatchSignature, SignatureTable

MOST_RESULTS = 64  # of an operation in a cluster
NEARLY_ALL = 0.9
MOST_ADDED = 128  # in a cluster: a sum that somebody asks for afterwards is computed recursively
BITS = 63  # signatures on a path are told apart modulo this; equal ones are too many only


def clustered(
    operations: PutOffOperations, table: SignatureTable, needed: Ints
) -> PutOffOperations:
    """Return operations with those that come together as one; needed values stay results."""
    if not any(_joins(table.all[i]) for i in np.flatnonzero(np.bincount(operations.signature))):
        return operations
    wiring = _Wiring(operations, table, needed)
    root = wiring.roots()
    if bool((root == np.arange(len(root))).all()):
        return operations
    return _merged(operations, table, wiring.maker, root)


class _Wiring:
    """Who reads what, by the levels of those who make it."""

    def __init__(self, operations: PutOffOperations, table: SignatureTable, needed: Ints) -> None:
        self.operations = operations
        self.maker = operations.makers()
        self.joins = np.array([_joins(s) for s in table.all])[operations.signature]
        self.joins &= operations.outs < MOST_RESULTS
        reader, made = operations.edges()
        ours = np.flatnonzero(self.joins[made])  # calls of cells join nothing
        reader, made = reader[ours], made[ours]
        edges = np.lexsort((made, operations.level[made]))
        self.reader, self.made = reader[edges], made[edges]
        self.free = self.joins & self._in_time()
        self._leave_alone(table)
        self.free[self.maker[needed - operations.first]] = False
        self.sums = self._sums(table, needed)
        self.grad = np.array([s.grad for s in table.all])[operations.signature]

    def _in_time(self) -> NDArray[np.bool_]:
        """Tell which operations are needed as soon as they can run, as nearly all of their kind.

        Others wait for what is deeper: many more of them can run at once if they stay apart, as
        the products of all inputs of a recurrent network do.
        """
        level, signature = self.operations.level, self.operations.signature
        needed_at = np.full(len(level), np.iinfo(np.int64).max)
        np.minimum.at(needed_at, self.made, level[self.reader])
        at_once = needed_at == level + 1
        share = np.bincount(signature, at_once) / np.maximum(np.bincount(signature), 1)
        found: NDArray[np.bool_] = at_once & (share >= NEARLY_ALL)[signature]
        return found

    def _leave_alone(self, table: SignatureTable) -> None:
        """Let sums of stacks be clusters of their own: of any length they run as one (segments.py).

        Their operands would run one after another with them, and as one where they are.
        """
        signature = self.operations.signature
        stacks = _long_stacks(table, np.flatnonzero(np.bincount(signature)).tolist())
        if stacks:
            is_stack = np.isin(signature, stacks)
            self.free[self.made[is_stack[self.reader]]] = False
            behind = self.reader[is_stack[self.made]]
            self.free[behind[_reduces(table)[signature[behind]]]] = False

    def _sums(self, table: SignatureTable, needed: Ints) -> list[list[int]]:
        """Return sums of many values that are added up one after another, and leave them alone."""
        chains = _chains(self.operations, table, self.maker, needed)
        signature = self.operations.signature
        long = {signature[chain[0]] for chain in chains if len(chain) >= MANY - 1}
        found = [chain for chain in chains if signature[chain[0]] in long]
        if not found:
            return []
        rows = np.array([row for chain in found for row in chain])
        self.free[rows] = False
        self.free[self.made[np.isin(self.reader, rows)]] = False
        return found

    def roots(self) -> Ints:
        """Return for each operation the root of its cluster."""
        root = self._joined()
        for chain in self.sums:
            root[chain] = chain[-1]
        return root

    def _joined(self) -> Ints:
        """Return the roots of operations that join others: level by level, the deepest first."""
        count = len(self.made)
        root = np.arange(len(self.joins))
        bit = np.int64(1) << (self.operations.signature % BITS)
        mask = bit.copy()
        if not count:
            return root
        levels = self.operations.level[self.made]
        cuts = np.flatnonzero(np.diff(levels)) + 1
        bounds = [0, *cuts.tolist(), count]
        for begin, end in zip(bounds[-2::-1], bounds[:0:-1], strict=True):
            self._join(slice(begin, end), root, bit, mask)
        return root

    def _join(self, edges: slice, root: Ints, bit: Ints, mask: Ints) -> None:
        """Let operations of one level join the cluster of those who read their results."""
        made, reader = self.made[edges], self.reader[edges]
        starts = np.flatnonzero(np.concatenate(([True], made[1:] != made[:-1])))
        rows, to = made[starts], root[reader]
        low, high = np.minimum.reduceat(to, starts), np.maximum.reduceat(to, starts)
        above = np.bitwise_or.reduceat(mask[reader], starts)
        joins = (
            (low == high) & self.free[rows] & self.joins[low] & (self.grad[rows] == self.grad[low])
        )
        joins &= (above & bit[rows]) == 0
        chosen = rows[joins]
        root[chosen] = low[joins]
        mask[chosen] |= above[joins]


def _chains(
    operations: PutOffOperations, table: SignatureTable, maker: Ints, needed: Ints
) -> list[list[int]]:
    """Return additions of which each reads what the one before makes, and nothing else does."""
    adds = np.array([_joins(s) and adds_up(s, table.types) for s in table.all])
    rows = np.flatnonzero(adds[operations.signature])
    if len(rows) < 2:
        return []
    first = operations.first
    reads = np.bincount(operations.refs[operations.refs >= first] - first, minlength=len(maker))
    reads[needed - first] = 2
    begins = np.cumsum(operations.arity) - operations.arity
    total = operations.refs[begins[rows]] - first  # what is added to
    before = np.where(total >= 0, maker[total], -1)
    signature = operations.signature
    linked = (before >= 0) & (signature[before] == signature[rows]) & (reads[total] == 1)
    ends: dict[int, list[int]] = {}
    for row, previous in zip(rows[linked].tolist(), before[linked].tolist(), strict=True):
        chain = ends.pop(previous, [previous])
        if len(chain) == MOST_ADDED:
            ends[previous], chain = chain, []
        chain.append(row)
        ends[row] = chain
    return [chain for chain in ends.values() if len(chain) > 1]


def _joins(signature: BatchSignature) -> bool:
    work = signature.work
    return isinstance(work, OpWork) and work.op.kind != random and not moves(work)


def _reduces(table: SignatureTable) -> NDArray[np.bool_]:
    return np.array([_joins(s) and s.work.op in REDUCTIONS for s in table.all])


def _long_stacks(table: SignatureTable, used: list[int]) -> list[int]:
    """Return which signatures stack what is stacked by the dozen, by themselves or by others."""
    found = {i: table.all[i].work.stacks for i in used if _joins(table.all[i])}
    keys = {i: (axis, table.all[i].specs[0]) for i, axis in found.items() if axis is not None}
    long = {key for i, key in keys.items() if table.all[i].arity >= MANY}
    return [i for i, key in keys.items() if key in long]


def _merged(
    operations: PutOffOperations, table: SignatureTable, maker: Ints, root: Ints
) -> PutOffOperations:
    """Return clusters as operations, in the order of their roots."""
    count = len(root)
    order = np.argsort(root, kind="stable")  # the members of each cluster, in their order
    heads = np.flatnonzero(np.concatenate(([True], np.diff(root[order]) != 0)))
    sizes = np.diff(np.append(heads, count))
    position = np.empty(count, np.int64)
    position[order] = np.arange(count) - np.repeat(heads, sizes)
    arity = operations.arity[order]
    old = np.cumsum(operations.arity) - operations.arity
    at = np.repeat(old[order] - (np.cumsum(arity) - arity), arity) + np.arange(int(arity.sum()))
    refs, reader = operations.refs[at], np.repeat(order, arity)
    code = _codes(operations, maker, root, refs, reader, position)
    lengths = arity + 1
    ends = np.cumsum(lengths)
    flat = np.empty(int(ends[-1]), np.int64)
    own = ends - lengths
    flat[own] = -1 - operations.signature[order]
    rest = np.ones(len(flat), np.bool_)
    rest[own] = False
    flat[rest] = code
    first, last = own[heads].tolist(), ends[heads + sizes - 1].tolist()
    single = sizes == 1
    signature = operations.signature[root[order[heads]]].copy()
    for i in np.flatnonzero(~single).tolist():
        signature[i] = table.cluster(flat[first[i] : last[i]].tobytes(), ClusterWork).index
    outside = code == 0
    roots = root[order[heads]]
    per_row = np.bincount(np.repeat(np.arange(count), arity)[outside], minlength=count)
    return PutOffOperations(
        signature,
        operations.level[roots],
        refs[outside],
        np.add.reduceat(per_row, heads),
        operations.outs[roots],
        operations.firsts[roots],
        operations.first,
        operations.numbers,
    )


def _codes(
    operations: PutOffOperations, maker: Ints, root: Ints, refs: Ints, reader: Ints, position: Ints
) -> Ints:
    """Return for each operand which result of which member it is; 0: one from outside."""
    code = np.zeros(len(refs), np.int64)
    pending = refs >= operations.first
    made = maker[refs[pending] - operations.first]
    inside = root[made] == root[reader[pending]]
    which = refs[pending] - operations.firsts[made]
    code[pending] = np.where(inside, position[made] * MOST_RESULTS + which + 1, 0)
    return code


class ClusterStep(NamedTuple):
    """A member of a cluster: its signature, and for each operand that is a value where it is from.

    sources   the member and the number of its result, or None for an operand of the cluster
    """

    signature: BatchSignature
    sources: list[tuple[int, int] | None]


class ClusterWork:
    """The operations of a cluster, as what a batch runs."""

    kind = "scope"

    def __init__(self, key: bytes, table: SignatureTable) -> None:
        self.steps = _steps(np.frombuffer(key, np.int64).tolist(), table)
        last = self.steps[-1].signature
        self.many, self.grad = last.many, last.grad
        self.name = "+".join(dict.fromkeys([step.signature.name for step in self.steps]))
        self._types = [table.types[kind] for kind in last.outs]
        self.segments = self._as_segments(table)
        work = sum(_work(step.signature, table) for step in self.steps)
        self.is_large = work >= LEAST_WORK and self.segments is None

    def _as_segments(self, table: SignatureTable) -> SegmentWork | None:
        """Return how it runs with any number of operands, if it is a sum, or a mean, of many."""
        first, *rest = self.steps
        if rest and all(step.signature is first.signature for step in rest):
            return sum_of(first.signature) if adds_up(first.signature, table.types) else None
        from_outside = not any(first.sources)
        if from_outside and len(rest) == 1 and rest[0].sources == [(0, 0)]:
            return segments_of(first.signature, rest[0].signature, table.types)
        return None

    def types(self, types: Any, inputs: Any) -> list[TensorType]:
        """Return the types of the results."""
        return self._types

    def specs(self) -> tuple[Any, ...]:
        """Return the operands that do not come from inside."""
        found: list[Any] = []
        for signature, sources in self.steps:
            values = iter(sources)
            found += [
                spec
                for spec in signature.specs
                if spec is not None and (spec.__class__ is not int or next(values) is None)
            ]
        return tuple(found)

    def together(self, operands: tuple[Any, ...], flags: tuple[bool, ...], size: Any) -> Any:
        """Run the members one after another, each for all that the batch has of it."""
        return self._go_on([], operands, size)

    @property
    def stacks(self) -> int | None:
        """The axis along which all operands are stacked first, if that is how it begins."""
        first = self.steps[0]
        whole = all(source is None for source in first.sources)
        count = sum(spec is not None for spec in self.specs())
        return first.signature.work.stacks if whole and count == len(first.sources) else None

    def behind_stack(self, stacked: Any, size: Any) -> Any:
        """Run all members but the first, whose result is at hand."""
        return self._go_on([(stacked,)], (), size)

    def _go_on(self, made: list[tuple[Any, ...]], operands: tuple[Any, ...], size: Any) -> Any:
        """Run the members whose results are not there yet; operands are those from outside."""
        rest = iter(operands)
        for signature, sources in self.steps[len(made) :]:
            values, given = iter(sources), list[Any]()
            for spec in signature.specs:
                source = next(values) if spec.__class__ is int else None
                if spec is None:
                    given.append(None)
                else:
                    given.append(next(rest) if source is None else made[source[0]][source[1]])
            own = tuple([spec.__class__ is int for spec in signature.specs])
            found = signature.work.together(tuple(given), own, size)
            made.append(tuple(found) if isinstance(found, (tuple, list)) else (found,))
        return made[-1]


def _steps(codes: list[int], table: SignatureTable) -> list[ClusterStep]:
    steps: list[ClusterStep] = []
    for code in codes:
        if code < 0:
            steps.append(ClusterStep(table.all[-1 - code], []))
        else:
            source = divmod(code - 1, MOST_RESULTS) if code else None
            steps[-1].sources.append(source)
    return steps


def _work(signature: BatchSignature, table: SignatureTable) -> int:
    """Return how much a member takes: elements of results, and multiplications of products."""
    total = sum(size_of(table.types[kind].shape) for kind in signature.outs)
    if signature.work.op.multilinear:
        types = [
            table.types[s] if s.__class__ is int else s.type
            for s in signature.specs
            if s is not None
        ]
        total += max(size_of(t.shape) for t in types)
    return total
