"""Rows of states are written in place, behind all that can fail: no table is copied."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.lower.copies import copied_views
from weft.lower.kernels import ScatterKernel, may_fail
from weft.lower.verify import verify

ROWS, WIDTH, COUNT = 50, 4, 6


def tables(count):
    made = [wf.nn.Embedding(ROWS, WIDTH, sparse=True) for _ in range(count)]
    return made, [p for table in made for p in table.parameters()]


def built(loss_of, optimizer, more=lambda table: []):
    with wf.Graph() as graph:
        index = wf.placeholder((COUNT,), wf.int64)
        loss = loss_of(index)
        step = optimizer.minimize(loss)
        fetches = [step, *more(index)]
    session = wf.Session(graph)
    feeds = {index: np.arange(COUNT) * 7 % ROWS}
    return session, fetches, feeds


def program_of(session, fetches, feeds):
    program = session.executable(fetches, feeds).program
    verify(program)
    return program


@pytest.mark.parametrize("count", [1, 3])
def test_tables_are_written_in_place_and_never_copied(count):
    made, params = tables(count)
    session, fetches, feeds = built(
        lambda index: sum((table(index) ** 2).sum() for table in made),
        wf.optim.Adam(params, lr=0.1),
    )
    program = program_of(session, fetches, feeds)
    assert not any(map(copied_views, program.kernels))
    whole = [b for b in program.memory.in_place if b.shape == (ROWS, WIDTH)]
    assert len(whole) == 3 * count  # the table and both moments
    scatters = [i for i, k in enumerate(program.kernels) if _writes_state(program, k)]
    assert scatters == list(range(len(program.kernels) - 3 * count, len(program.kernels)))
    assert not any(may_fail(program.kernels[i]) for i in scatters)
    assert program.memory.arena_bytes < count * ROWS * WIDTH * 4 * 8
    largest = max(b.nbytes for b in program.memory.in_arena())
    assert largest < ROWS * WIDTH * 4  # nothing of the size of a table


def _writes_state(program, kernel):
    return isinstance(kernel, ScatterKernel) and kernel.operands[-1].view.buffer in (
        program.memory.shared
    )


def test_what_reads_the_old_value_still_does():
    (table,), params = tables(1)
    before = table.weight.numpy().copy()
    session, fetches, feeds = built(
        lambda index: (table(index) ** 2).sum(),
        wf.optim.SGD(params, lr=0.1),
        more=lambda index: [table.weight.detach() * 1.0, (table(index) ** 2).sum()],
    )
    program_of(session, fetches, feeds)
    _, seen, loss = session.run(fetches, feeds)
    np.testing.assert_array_equal(seen, before)
    index = next(iter(feeds.values()))
    np.testing.assert_allclose(loss, (before[index] ** 2).sum(), rtol=1e-5)
    expected = before.copy()
    expected[index] -= 0.1 * 2 * before[index]
    np.testing.assert_allclose(table.weight.numpy(), expected, rtol=1e-6)


def test_a_value_that_others_hold_is_not_written_over():
    (table,), params = tables(1)
    session, fetches, feeds = built(
        lambda index: (table(index) ** 2).sum(), wf.optim.SGD(params, lr=0.1)
    )
    session.run(fetches, feeds)
    held = table.weight.detach()
    before = held.numpy().copy()
    session.run(fetches, feeds)
    np.testing.assert_array_equal(held.numpy(), before)
    assert not np.array_equal(table.weight.numpy(), before)


def test_other_writes_by_index_are_as_before():
    x = wf.tensor(np.arange(12.0).reshape(4, 3))

    @wf.jit
    def write(index, value):
        x[index] = value
        return x.sum()

    expected = np.arange(12.0).reshape(4, 3)
    for i in ([0, 2], [1, 1], [3, 0]):
        value = np.full((2, 3), 5.0 * i[0])
        expected[i] = value
        assert float(write(wf.tensor(i), wf.tensor(value))) == expected.sum()
    np.testing.assert_array_equal(x.numpy(), expected)


def test_a_copy_of_a_state_that_is_read_stays():
    table = wf.tensor(np.arange(6, dtype=np.int32).reshape(1, 2, 3))
    with wf.Graph() as graph:
        same = wf.roll(wf.reshape(table, (1, 2, 3)), 1, 0)  # of an axis of one element: a copy
        fetches = [same, table.assign(same)]
    session = wf.Session(graph)
    program_of(session, fetches, {})
    for _ in range(2):
        np.testing.assert_array_equal(session.run(fetches)[0], table.numpy())
    np.testing.assert_array_equal(table.numpy().ravel(), np.arange(6))
