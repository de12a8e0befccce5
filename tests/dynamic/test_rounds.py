"""Schedules of rounds: one batch for each signature, where that is possible."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.dynamic.test_schedule import table_of
from weft.dynamic.agenda import PutOffOperations
from weft.dynamic.rounds import round_schedule


def operations(table, rows, first):
    """Return columns from (signature, refs); each has one result, numbered from `first` on."""
    signature = np.array([s for s, _ in rows])
    refs = np.array([r for _, given in rows for r in given], np.int64)
    places = first + np.arange(len(rows))
    count = len(rows)
    columns = signature, np.zeros(count, np.int64), refs, table.arity[signature]
    return PutOffOperations(*columns, table.results[signature], places, first, count)


def found(rows, known):
    """Return the schedule of rows behind so many values, of which some have not run."""
    table = table_of([1, 2])
    places = np.array([*known, *[-1] * len(rows)])
    made = operations(table, rows, len(known))
    used = {s for s, _ in rows}
    return round_schedule(made, used, table, places, 0, lambda kind: 10), places


def test_each_signature_is_one_batch_behind_what_it_reads():
    # Two pairs, of which one holds what is made here, behind it in number and not in order.
    plan, places = found([(2, [0, 1]), (1, [2]), (2, [4, 2])], [3, 4, 5])
    assert [(batch.signature.index, batch.size) for batch in plan.batches] == [(1, 1), (2, 2)]
    assert plan.counts == {0: 3}
    assert places.tolist() == [3, 4, 5, 11, 10, 12]
    first, second = plan.batches
    assert first.places == [slice(5, 6)]
    assert second.places[0].tolist() == [3, 10]
    assert second.places[1] == slice(4, 6)
    assert second.distinct == [True, True]
    assert second.last == [False, False]


@pytest.mark.parametrize(
    ("rows", "known"),
    [
        ([(1, [0]), (1, [1])], [0]),  # a chain
        ([(1, [0]), (2, [1, 0]), (1, [2])], [0]),  # by way of another
        ([(1, [0])], [-1]),  # what it reads has not run
    ],
)
def test_others_are_left_to_the_agenda(rows, known):
    plan, places = found(rows, known)
    assert plan is None
    assert places.tolist() == [*known, *[-1] * len(rows)]


def test_rounds_equal_one_by_one():
    weight = wf.tensor(np.random.default_rng(0).normal(size=(4, 4)), requires_grad=True)

    def walk(start):
        h, seen = wf.tensor(np.full(4, start)), []
        while len(seen) < 9:
            h = wf.tanh(h @ weight)
            seen.append(h.sum())
            if seen[-1] > 0:
                h = h * 2.0
        return wf.stack([*seen, seen[0], seen[0]]).sum()  # many operands, one of them thrice

    starts = [-1.5, 0.25, 2.0, 0.5]
    together = wf.batched(walk)(starts)
    grads = wf.gradients([sum(together)], [weight])
    apart = [walk(start) for start in starts]
    np.testing.assert_allclose([x.item() for x in together], [x.item() for x in apart], rtol=1e-12)
    expected = wf.gradients([sum(apart)], [weight])
    np.testing.assert_allclose(grads[0].numpy(), expected[0].numpy(), rtol=1e-10)
