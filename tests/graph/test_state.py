"""State: what runs read from outside and write to it, together or not at all."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.core.op import find_op


def test_assign_is_committed_at_the_end_of_a_run():
    total = wf.tensor(1.0)
    with wf.Graph() as graph:
        x = wf.placeholder((), wf.float32)
        before = total * 1
        update = total.assign(total + x)
        after = total * 1
    session = wf.Session(graph)
    assert session.run([before, update, after], {x: 2.0}) == [1.0, 3.0, 1.0]
    assert float(total) == 3.0
    assert session.run([before, update], {x: 2.0}) == [3.0, 5.0]


def test_an_update_that_is_not_fetched_does_not_run():
    total = wf.tensor(1.0)
    with wf.Graph() as graph:
        y = total * 2
        total.assign(total + 1)
    assert wf.Session(graph).run(y) == 2.0
    assert float(total) == 1.0


def test_assign_broadcasts_and_casts():
    buffer = wf.tensor(np.zeros((2, 3), np.float32))
    with wf.Graph() as graph:
        n = wf.placeholder((3,), wf.int64)
        updates = [buffer.assign(n), buffer.assign(2.5), buffer.assign(np.ones((2, 1)))]
    session = wf.Session(graph)
    np.testing.assert_array_equal(session.run(updates[0], {n: [1, 2, 3]}), [[1, 2, 3]] * 2)
    assert buffer.dtype == wf.float32
    session.run(updates[1])
    np.testing.assert_array_equal(buffer.numpy(), np.full((2, 3), 2.5))
    session.run(updates[2])
    np.testing.assert_array_equal(buffer.numpy(), np.ones((2, 3)))


def test_assign_of_its_own_value_and_of_a_feed_shares_no_memory():
    buffer = wf.tensor([1.0, 2.0])
    with wf.Graph() as graph:
        x = wf.placeholder((2,), wf.float32)
        same, fed = buffer.assign(buffer), buffer.assign(x)
    session = wf.Session(graph)
    found = session.run(same)
    found[:] = 7
    np.testing.assert_array_equal(buffer.numpy(), [1, 2])
    array = np.array([3, 4], np.float32)
    found = session.run(fed, {x: array})
    array[:] = 9
    found[:] = 8
    np.testing.assert_array_equal(buffer.numpy(), [3, 4])


def test_a_swap_reads_both_before_it_writes():
    a, b = wf.tensor(1.0), wf.tensor(2.0)
    with wf.Graph() as graph:
        swap = [a.assign(b), b.assign(a)]
    wf.Session(graph).run(swap)
    assert (float(a), float(b)) == (2.0, 1.0)


def test_later_assignments_of_one_state_win():
    a = wf.tensor(1.0)
    with wf.Graph() as graph:
        first = a.assign(2.0)
        second = a.assign(3.0)
    session = wf.Session(graph)
    session.run([second, first])
    assert float(a) == 3.0
    session.run(first)
    assert float(a) == 2.0


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
def test_a_failing_run_changes_nothing(error, monkeypatch):
    a, b = wf.tensor(1.0), wf.tensor(2.0)
    with wf.Graph() as graph:
        drawn = wf.rand(2)
        updates = [a.assign(a + 1), b.assign(wf.sort(b + drawn, axis=0)[0])]
    wf.manual_seed(1)
    before = wf.get_rng_state()

    def failing(*_):
        raise error("stop")

    monkeypatch.setattr(find_op("sort"), "_kernel", failing)
    with pytest.raises(error):
        wf.Session(graph).run(updates)
    assert (float(a), float(b)) == (1.0, 2.0)
    np.testing.assert_array_equal(np.asarray(wf.get_rng_state()), np.asarray(before))


def test_an_assignment_of_a_wrong_size_changes_nothing():
    a, b = wf.tensor([1.0, 2.0]), wf.tensor(2.0)
    with wf.Graph() as graph:
        x = wf.placeholder((None,), wf.float32)
        updates = [b.assign(5.0), a.assign(x)]
    session = wf.Session(graph)
    with pytest.raises(ValueError, match=r"\(3,\)"):
        session.run(updates, {x: [1.0, 2.0, 3.0]})
    assert float(b) == 2.0
    session.run(updates, {x: [3.0, 4.0]})
    np.testing.assert_array_equal(a.numpy(), [3, 4])


def test_states_are_shared_with_eager_mode():
    w = wf.nn.Parameter(wf.tensor([1.0, 2.0]))
    with wf.Graph() as graph:
        y = (w * w).sum()
        double = w.assign(w * 2)
    session = wf.Session(graph)
    assert session.run(y) == 5.0
    with wf.no_grad():
        w.mul_(2) if hasattr(w, "mul_") else w.copy_(w * 2)
    assert session.run(y) == 20.0
    session.run(double)
    np.testing.assert_array_equal(w.numpy(), [4, 8])
    assert w.requires_grad
    (w * w).sum().backward()
    np.testing.assert_array_equal(w.grad.numpy(), [8, 16])


def test_eager_assign():
    w = wf.nn.Parameter(wf.tensor([1.0, 2.0]))
    assert w.assign(3.0) is w
    np.testing.assert_array_equal(w.numpy(), [3, 3])
    assert w.requires_grad
    assert w.is_leaf
    with pytest.raises(ValueError, match=r"\(3,\)"):
        w.assign([1.0, 2.0, 3.0])


def test_a_parameter_shared_by_two_graphs():
    w = wf.tensor(1.0)
    sessions = []
    for factor in (2.0, 3.0):
        with wf.Graph() as graph:
            update = w.assign(w * factor)
        sessions.append((wf.Session(graph), update))
    for session, update in sessions:
        session.run(update)
    assert float(w) == 6.0


def test_writing_in_place_inside_a_graph_changes_nothing_until_committed():
    norm = wf.nn.BatchNorm1d(2)
    before = norm.running_mean.numpy().copy()
    with wf.Graph() as graph:
        x = wf.placeholder((4, 2), wf.float32)
        y = norm(x)
    wf.Session(graph).run(y, {x: np.ones((4, 2), np.float32)})
    np.testing.assert_array_equal(norm.running_mean.numpy(), before)
    assert graph.pending_updates()


def test_generators_move_by_what_a_run_draws():
    with wf.Graph() as graph:
        a, b, c = wf.rand(3), wf.randn(2), wf.rand(4)
    wf.manual_seed(2)
    expected = [wf.rand(3), wf.randn(2), wf.rand(4)]
    end = wf.get_rng_state()
    wf.manual_seed(2)
    found = wf.Session(graph).run([a, b, c])
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y.numpy())
    np.testing.assert_array_equal(np.asarray(wf.get_rng_state()), np.asarray(end))
    wf.manual_seed(2)
    expected = [wf.rand(3), wf.rand(4)]
    wf.manual_seed(2)
    for x, y in zip(wf.Session(graph).run([a, c]), expected, strict=True):
        np.testing.assert_array_equal(x, y.numpy())


def test_each_run_draws_anew():
    with wf.Graph() as graph:
        a = wf.rand(3)
    session = wf.Session(graph)
    assert not np.array_equal(session.run(a), session.run(a))


def test_own_generators_are_states_of_their_own():
    generator = wf.Generator(5)
    with wf.Graph() as graph:
        a = wf.rand(3, generator=generator)
        b = wf.rand(3)
    wf.manual_seed(1)
    found = wf.Session(graph).run([a, b])
    wf.manual_seed(1)
    expected = [wf.rand(3, generator=wf.Generator(5)), wf.rand(3)]
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y.numpy())


def test_a_detached_parameter_is_read_anew_in_each_run():
    w = wf.nn.Parameter(wf.tensor(2.0))
    with wf.Graph() as graph:
        y = w * w.detach()
        (g,) = wf.gradients(y, [w])
        update = w.assign(w + 1)
    session = wf.Session(graph)
    assert session.run([y, g, update]) == [4.0, 2.0, 3.0]
    assert session.run([y, g, update]) == [9.0, 3.0, 4.0]


def test_a_weight_that_was_clipped_before_its_step_takes_the_step():
    w = wf.nn.Parameter(wf.tensor([1.0, 2.0]))
    with wf.Graph() as graph:
        with wf.no_grad():
            w.clamp_(-1.5, 1.5)
        loss = w.sum()
        update = wf.optim.SGD([w], lr=0.5).minimize(loss)
    assert wf.Session(graph).run([loss, update])[0] == 2.5
    np.testing.assert_array_equal(w.numpy(), [0.5, 1.0])
