"""In which order operations run and where their operands lie, against plain Python."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np
import pytest

from weft.backends.cpu.runtime import batch_order as native
from weft.backends.cpu.runtime.calls import ctypes_entry

KINDS = 3


class Operation(NamedTuple):
    """An operation: its signature, how deep it lies, what it reads, and its first result."""

    signature: int
    level: int
    refs: list[int]
    first: int


class Drawn:
    """Random operations behind values that were there before, and signatures for them."""

    def __init__(self, seed, count, kinds):
        rng = np.random.default_rng(seed)
        self.start = int(rng.integers(20))
        self.first = self.start + int(rng.integers(1, 5))
        self.results = [rng.integers(0, KINDS, rng.integers(1, 4)).tolist() for _ in range(kinds)]
        arities = [0, *rng.integers(0, 5, kinds - 1).tolist()]
        self.ragged = np.arange(kinds) % 4 == 3  # which operations have any number of operands
        self.end = self.first
        values, level = [*range(self.start, self.first)], defaultdict(lambda: -1)
        self.operations = []
        for _ in range(count):
            signature = int(rng.integers(kinds))
            near = values[-20:] if rng.random() < 0.7 else values
            many = int(rng.integers(1, 9)) if self.ragged[signature] else arities[signature]
            refs = rng.choice(near, many).tolist()
            deep = max([level[ref] for ref in refs], default=-1) + 1
            own = [self.end + i for i in range(len(self.results[signature]))]
            self.operations.append(Operation(signature, deep, refs, self.end))
            level.update(dict.fromkeys(own, deep))
            values += own
            self.end += len(own) + int(rng.random() < 0.1)  # some numbers are of nothing

    def columns(self):
        """Return the operations as native loops take them."""
        signature, level, refs, firsts = zip(*self.operations, strict=True)
        return native.OperationColumns(
            np.array(signature),
            np.array(level),
            np.array([ref for own in refs for ref in own], np.int64),
            np.array([len(own) for own in refs]),
            np.array([len(self.results[i]) for i in signature]),
            np.array(firsts),
            self.first,
            self.end - self.first,
        )

    def result_columns(self):
        """Return the types of results as native loops take them."""
        begins = np.cumsum([0, *map(len, self.results)])
        return native.ResultColumns(np.concatenate(self.results).astype(np.int64), begins)

    def turns(self):
        """Return which operations run as one, in order, as the agenda is described."""
        made = {
            op.first + i: (op.signature, op.level)
            for op in self.operations
            for i in range(len(self.results[op.signature]))
        }
        members, waits, levels = defaultdict(list), defaultdict(set), defaultdict(list)
        for row, op in enumerate(self.operations):
            members[op.signature, op.level].append(row)
            levels[op.signature].append(op.level)
            waits[op.signature, op.level] |= {made[ref] for ref in op.refs if ref in made}
        behind = {b: [c for c in sorted(members) if b in waits[c]] for b in members}
        ready = defaultdict(list)
        for b in sorted(members):
            if not waits[b]:
                ready[b[0]].append(b)

        def turn(signature):
            waiting = sum(len(members[c]) for c in behind[ready[signature][0]])
            return np.mean(levels[signature]), -waiting, signature

        while ready:
            run = ready.pop(min(ready, key=turn))
            yield [row for b in run for row in members[b]]
            for b in run:
                for c in behind[b]:
                    waits[c].discard(b)
                    if not waits[c]:
                        ready[c[0]].append(c)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("count", "kinds"), [(1, 1), (40, 3), (300, 6), (300, 60)])
def test_what_runs_as_one_in_its_order(seed, count, kinds):
    drawn = Drawn(seed, count, kinds)
    rows, sizes = native.batch_order(drawn.columns())
    found = np.split(rows, np.cumsum(sizes)[:-1])
    assert [batch.tolist() for batch in found] == [*drawn.turns()]


@pytest.mark.parametrize("seed", range(6))
def test_where_results_and_operands_lie(seed):
    drawn = Drawn(seed, 200, 8)
    columns = drawn.columns()
    order = native.batch_order(columns)
    rows = np.full(drawn.end - drawn.start, -1)
    rows[: drawn.first - drawn.start] = 1000 + np.arange(drawn.first - drawn.start)
    expected, ends = rows.copy(), np.array([10, 20, 30])
    last, operands = [*ends], []
    turns = [*drawn.turns()]
    for turn in turns:
        members = [drawn.operations[row] for row in turn]
        for i, kind in enumerate(drawn.results[members[0].signature]):
            for op in members:
                expected[op.first + i - drawn.start] = last[kind]
                last[kind] += 1
        if drawn.ragged[members[0].signature]:
            operands.append([ref for op in members for ref in op.refs])
        else:
            operands += [[op.refs[k] for op in members] for k in range(len(members[0].refs))]
    results, ragged = drawn.result_columns(), drawn.ragged.astype(np.int64)
    found = native.batch_places(columns, order, results, ragged, ends, rows, drawn.start)
    assert (rows.tolist(), ends.tolist()) == (expected.tolist(), last)
    read = [ref for operand in operands for ref in operand]
    assert found.starts.tolist() == np.cumsum([0, *map(len, operands)]).tolist()
    assert found.rows.tolist() == [rows[ref - drawn.start] for ref in read]
    final = {ref: i for i, ref in enumerate(read)}
    for i, operand in enumerate(operands):
        begin, steps = found.starts[i], np.diff([rows[ref - drawn.start] for ref in operand])
        is_last = all(final[ref] == begin + k for k, ref in enumerate(operand))
        assert bool(found.last[i]) == is_last
        assert bool(found.apart[i]) == bool((steps != 1).any())
        assert bool(found.distinct[i]) == (is_last or bool((steps > 0).all()))


def test_operations_that_wait_for_one_another_have_no_order():
    columns = native.OperationColumns(
        *map(np.array, ([0, 0], [0, 0], [1, 0], [1, 1], [1, 1], [0, 1])), 0, 2
    )
    assert native.batch_order(columns) is None


def test_columns_that_are_parts_of_others():
    drawn = Drawn(3, 100, 4)
    columns = drawn.columns()
    apart = [np.repeat(column, 2)[::2] for column in columns[:6]]
    narrow = [column.astype(np.int32) for column in columns[:6]]
    expected = native.batch_order(columns)
    for given in (apart, narrow):
        found = native.batch_order(
            columns._replace(**dict(zip(columns._fields, given, strict=False)))
        )
        assert found.rows.tolist() == expected.rows.tolist()


WRONG_NUMBERS = (-1, -(2**40), 2**40, 2**62, -(2**63), 2**63 - 1)


@pytest.mark.parametrize("number", WRONG_NUMBERS)
@pytest.mark.parametrize("name", ["signature", "level", "refs", "arity", "outs", "firsts"])
def test_columns_that_lead_outside_are_refused(name, number):
    """A mistake of ours must not write anywhere."""
    columns = Drawn(3, 60, 4).columns()
    past = name == "refs" and -(2**62) <= number < 0  # of what was there before
    if past or (name in ("signature", "level") and number > 0):  # room is made for the largest
        return
    for row in (0, 17, len(getattr(columns, name)) - 1):
        wrong = getattr(columns, name).copy()
        wrong[row] = number
        with pytest.raises(AssertionError, match="outside of one another"):
            native.batch_order(columns._replace(**{name: wrong}))
    with pytest.raises(AssertionError, match="outside of one another"):
        native.batch_order(columns._replace(**{name: getattr(columns, name)[:-1]}))


@pytest.mark.parametrize("number", WRONG_NUMBERS)
@pytest.mark.parametrize(
    "name", ["signature", "refs", "firsts", "rows", "sizes", "kinds", "begins"]
)
def test_places_that_lead_outside_are_refused(name, number):
    drawn = Drawn(3, 60, 4)
    columns, results = drawn.columns(), drawn.result_columns()
    order = native.batch_order(columns)
    ragged = drawn.ragged.astype(np.int64)
    parts = [columns, order, results]
    (at,) = [i for i, part in enumerate(parts) if name in part._fields]
    largest = int(order.sizes[: order.sizes.argmax()].sum())  # NumPy looks up the last of a batch
    for row in (largest,) if name == "rows" else (0, -1):
        wrong = getattr(parts[at], name).copy()
        wrong[row] = number
        given = [*parts]
        given[at] = parts[at]._replace(**{name: wrong})
        rows = np.zeros(drawn.end - drawn.start, np.int64)
        with pytest.raises((AssertionError, IndexError)):
            native.batch_places(*given, ragged, np.zeros(KINDS, np.int64), rows, drawn.start)


def test_places_without_room_are_refused():
    drawn = Drawn(3, 60, 4)
    columns, results = drawn.columns(), drawn.result_columns()
    order = native.batch_order(columns)
    ragged = drawn.ragged.astype(np.int64)
    for rows, ends in ((drawn.end - drawn.start - 4, KINDS), (drawn.end - drawn.start, 1)):
        room = np.zeros(ends, np.int64), np.zeros(rows, np.int64)
        with pytest.raises(AssertionError, match="outside of one another"):
            native.batch_places(columns, order, results, ragged, *room, drawn.start)


def test_without_native_calls(monkeypatch):
    """The loops run through ctypes as well, where objects are not laid out as CPython's."""
    drawn = Drawn(5, 100, 4)
    expected = native.batch_order(drawn.columns())
    addresses = [native._library().address(name) for name in native.EXPORTS]
    counts = len(native.ORDER), len(native.PLACES), len(native.DEPTHS)
    entries = [
        ctypes_entry(address, (None,) * count, 0, True, False, None)
        for address, count in zip(addresses, counts, strict=True)
    ]
    monkeypatch.setattr(native, "_entries", lambda: entries)
    found = native.batch_order(drawn.columns())
    assert found.rows.tolist() == expected.rows.tolist()
    assert found.sizes.tolist() == expected.sizes.tolist()


@pytest.mark.parametrize("seed", range(8))
def test_how_deep_operations_lie(seed):
    drawn = Drawn(seed, 200, 6)
    given = drawn.columns()
    found = native.batch_depths(given.refs, given.arity, given.outs, given.firsts, drawn.end)
    np.testing.assert_array_equal(found, given.level)
