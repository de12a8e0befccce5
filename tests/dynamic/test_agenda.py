"""Schedules of put-off operations."""

from __future__ import annotations

import numpy as np

from weft.dynamic.agenda import PutOffOperations, alike, ancestors, batches, joined


def operations(rows):
    """Return columns from (signature, level, refs); each operation has one result."""
    signature, level, refs = zip(*rows, strict=True)
    count = len(rows)
    return PutOffOperations(
        np.array(signature),
        np.array(level),
        np.array([r for row in refs for r in row], np.int64),
        np.array([len(row) for row in refs]),
        np.ones(count, np.int64),
        np.arange(count),
        0,
        count,
    )


def in_turn(given):
    """Return the rows of each batch."""
    rows, sizes = batches(given)
    return np.split(rows, np.cumsum(sizes)[:-1]) if len(sizes) else []


def test_what_ends_a_computation_waits_for_all_of_its_kind():
    # Three chains of 1, 2 and 3 steps (signature 0), each with a loss (signature 1) at every step.
    rows, last = [], 0
    for length in (1, 2, 3):
        previous = []
        for level in range(length):
            rows.append((0, level, previous))
            last = len(rows) - 1
            previous = [last]
            rows.append((1, level + 1, [last]))
    found = in_turn(operations(rows))
    assert [len(batch) for batch in found] == [3, 2, 1, 6]


def test_every_operation_runs_once_behind_its_operands():
    rng = np.random.default_rng(0)
    rows, levels = [], []
    for i in range(300):
        refs = rng.integers(0, i, rng.integers(0, 3)).tolist() if i else []
        levels.append(max([levels[r] + 1 for r in refs], default=0))
        rows.append((int(rng.integers(5)), levels[-1], refs))
    found = in_turn(operations(rows))
    assert sorted(np.concatenate(found).tolist()) == list(range(300))
    done = set()
    for batch in found:
        assert len({rows[i][0] for i in batch}) == 1
        assert all(r in done for i in batch for r in rows[i][2])
        done.update(batch.tolist())


def test_nothing_is_scheduled_in_no_batches():
    empty = np.zeros(0, np.int64)
    assert in_turn(PutOffOperations(empty, empty, empty, empty, empty, empty, 0, 0)) == []


def test_what_a_value_needs_runs_with_others_of_its_kind():
    # Two chains of signature 0; each step has a loss (1), and a sum of the losses (2).
    rows = [(0, 0, []), (0, 1, [0]), (1, 1, [0]), (1, 2, [1]), (2, 3, [2, 3])]
    rows += [(0, 0, []), (0, 1, [5]), (1, 1, [5])]
    given = operations(rows)
    assert np.flatnonzero(ancestors(given, np.array([1]))).tolist() == [0, 1]
    nothing = np.zeros(0, np.int64)
    assert np.flatnonzero(alike(given, np.array([1]), nothing)).tolist() == [0, 1, 5, 6]
    assert alike(given, np.array([1]), np.array([0])) is None
    assert alike(given, np.array([3]), nothing).tolist() == [True] * 4 + [False] + [True] * 3


def test_operations_of_later_lie_behind():
    first = operations([(0, 0, []), (0, 1, [0])])
    later = operations([(0, 0, [1])])._replace(firsts=np.array([2]), first=2, numbers=1)
    both = joined([first, later])
    assert both.level.tolist() == [0, 1, 2]
    assert [batch.tolist() for batch in in_turn(both)] == [[0], [1], [2]]
