"""Sessions: what can be fetched and fed, what runs, and what a run leaves behind."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pytest

import weft as wf
from weft.core.op import find_op

F32 = np.float32


class Pair(NamedTuple):
    left: Any
    right: Any


@pytest.fixture
def simple():
    """Return a graph of y = 2 x + 1 and total = sum(y), x with an unknown size."""
    with wf.Graph() as graph:
        x = wf.placeholder((None, 2), wf.float32, name="x")
        y = x * 2.0 + 1.0
        y.name = "y"
        total = y.sum()
    return graph, x, y, total


X = np.arange(6, dtype=F32).reshape(3, 2)


# -- fetches ---------------------------------------------------------------------------------------


def test_nested_fetches(simple):
    graph, x, y, total = simple
    fetches = {"a": [y, (total, None)], "b": Pair("y", OrderedDict(k=total)), "c": ()}
    found = wf.Session(graph).run(fetches, {x: X})
    assert list(found) == ["a", "b", "c"]
    assert isinstance(found["b"], Pair)
    assert isinstance(found["b"].right, OrderedDict)
    assert found["a"][1][1] is None
    np.testing.assert_array_equal(found["a"][0], X * 2 + 1)
    np.testing.assert_array_equal(found["b"].left, X * 2 + 1)
    assert found["b"].right["k"] == found["a"][1][0] == (X * 2 + 1).sum()


@pytest.mark.parametrize("fetches", [None, [], (), {}])
def test_nothing_to_fetch(simple, fetches):
    assert wf.Session(simple[0]).run(fetches) == fetches


def test_results_are_arrays_of_the_declared_type(simple):
    graph, x, y, total = simple
    for value, symbol in zip(
        wf.Session(graph).run([x, y, total], {x: X}), (x, y, total), strict=True
    ):
        assert type(value) is np.ndarray
        assert value.dtype == symbol.dtype


def test_fetch_by_names(simple):
    graph, x, _, total = simple
    session = wf.Session(graph)
    assert session.run(total.name, {"x": X}) == session.run(total, {x: X})
    np.testing.assert_array_equal(session.run("y", {"x": X}), X * 2 + 1)


def test_a_name_is_that_of_the_value_also_for_several_results():
    with wf.Graph() as graph:
        x = wf.placeholder((2, 2), wf.float64, name="x")
        q, r = wf.linalg.qr(x)
    assert (q.name, r.name) == ("qr:0", "qr:1")
    a, b = wf.Session(graph).run(["qr:0", "qr:1"], {x: np.eye(2)})
    np.testing.assert_allclose(a @ b, np.eye(2), atol=1e-15)


def test_fetching_one_value_twice_gives_two_arrays(simple):
    graph, x, y, _ = simple
    a, b = wf.Session(graph).run([y, y], {x: X})
    a[:] = 0
    np.testing.assert_array_equal(b, X * 2 + 1)


def test_the_order_of_fetches_does_not_matter(simple):
    graph, x, y, total = simple
    session = wf.Session(graph)
    a, b = session.run([y, total], {x: X})
    c, d = session.run([total, y], {x: X})
    np.testing.assert_array_equal(a, d)
    assert b == c


def test_fetching_parameters_constants_and_tensors_from_outside():
    w, b = wf.nn.Parameter(wf.tensor([1.0, 2.0])), wf.tensor(3.0)
    with wf.Graph() as graph:
        c = wf.tensor([5.0])
        y = (w * b).sum() + c
    session = wf.Session(graph)
    found = session.run([w, b, c, y])
    for array, expected in zip(found, ([1, 2], 3, [5], [14]), strict=True):
        np.testing.assert_array_equal(array, expected)
        array[...] = -1  # nobody else sees this
    np.testing.assert_array_equal(w.numpy(), [1, 2])
    assert float(b) == 3
    np.testing.assert_array_equal(session.run(y), [14])


# -- feeds -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [[[1, 2]], [[1.5, 2.5]], ((1.0, 2.0),), X, wf.tensor([[1.0, 2.0]]), X[::-1], X[:0]]
)
def test_what_can_be_fed(simple, value):
    graph, x, y, _ = simple
    array = value.numpy() if isinstance(value, wf.Tensor) else np.array(value, F32)
    np.testing.assert_array_equal(wf.Session(graph).run(y, {x: value}), array * 2 + 1)


def test_numbers_are_fed_in_the_dtype_of_the_placeholder():
    with wf.Graph() as graph:
        x, n = wf.placeholder((), wf.float64), wf.placeholder((), wf.int8)
        flag = wf.placeholder((), wf.bool)
        fetches = [x + 0, n + 0, ~flag]
    a, b, c = wf.Session(graph).run(fetches, {x: 0.1, n: 5, flag: True})
    assert (a, b, c) == (0.1, 5, False)
    assert (a.dtype, b.dtype, c.dtype) == (np.float64, np.int8, np.bool_)


def test_a_feed_is_not_changed_and_not_shared(simple):
    graph, x, _, _ = simple
    array = X.copy()
    found = wf.Session(graph).run(x, {x: array})
    found[:] = -1
    np.testing.assert_array_equal(array, X)


def test_feeding_a_value_in_the_middle_cuts_what_is_before(simple):
    graph, _, y, total = simple
    assert wf.Session(graph).run(total, {y: [[1.0, 1.0]]}) == 2.0
    assert wf.Session(graph).run(total, {"y": [[1.0, 1.0], [1.0, 1.0]]}) == 4.0


def test_a_fed_value_tells_unknown_sizes():
    with wf.Graph() as graph:
        x = wf.placeholder((None, 2), wf.float32, name="x")
        y = x * 2
        mean = y.sum() / y.shape[0]
        rows = wf.zeros((y.shape[0] + 1, 2)) + y[:1]
    found = wf.Session(graph).run([mean, rows], {y: np.ones((4, 2), F32)})
    assert found[0] == 2.0
    assert found[1].shape == (5, 2)


@pytest.mark.parametrize("compiled", [None, False])
def test_a_placeholder_that_was_written_to_is_fed_what_enters(compiled):
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32, name="x")
        x /= 2.0
        x[0] = 5.0
        y = x * 1.0
    session = wf.Session(graph, compiled=compiled)
    for key in (x, "x"):
        found = session.run([x, y], {key: [2, 4, 6]})
        np.testing.assert_array_equal(found, [[5, 2, 3]] * 2)
    with pytest.raises(ValueError, match="x is fed twice"):
        session.run(y, {x: [2, 4, 6], "x": [2, 4, 6]})
    fixed = graph.substitute({x: np.array([2, 4, 6], np.float32)})
    np.testing.assert_array_equal(wf.Session(fixed).run(y), [5, 2, 3])
    given = wf.tensor([2.0, 4.0, 6.0])
    np.testing.assert_array_equal(session.run(y, {x: given}, donate=x), [5, 2, 3])


def test_only_ancestors_run():
    with wf.Graph() as graph:
        x = wf.placeholder((), wf.int64, name="x")
        table = wf.tensor([1.0, 2.0])
        bad = table[x]
        good = table.sum()
        missing = wf.placeholder((), wf.float32) * 2
    session = wf.Session(graph)
    assert session.run(good) == 3.0
    with pytest.raises(IndexError):
        session.run([good, bad], {x: 7})
    with pytest.raises(RuntimeError, match="must be fed"):
        session.run([good, missing])


def test_feeding_states():
    w = wf.nn.Parameter(wf.tensor([1.0, 2.0]))
    with wf.Graph() as graph:
        y = w.sum()
    session = wf.Session(graph)
    assert session.run(y, {w: [10.0, 20.0]}) == 30.0
    assert session.run(y) == 3.0
    np.testing.assert_array_equal(w.numpy(), [1, 2])


def test_feeding_several_results_of_one_node():
    with wf.Graph() as graph:
        x = wf.placeholder((4,), wf.float32, name="x")
        a, b = wf.split(x, 2)
        both = a + b
    session = wf.Session(graph)
    np.testing.assert_array_equal(session.run(both, {a: [1.0, 2.0], b: [3.0, 4.0]}), [4, 6])
    found = session.run(both, {a: [1.0, 2.0], x: [0.0, 0.0, 5.0, 6.0]})
    np.testing.assert_array_equal(found, [6, 8])


def test_feeding_results_of_control_flow():
    with wf.Graph() as graph:
        x = wf.placeholder((None,), wf.float32)
        last, ys = wf.scan(lambda c, v: (c + v, c), wf.zeros(()), x)
        y = last + ys.sum()
    assert wf.Session(graph).run(y, {last: 1.0, ys: [2.0, 3.0]}) == 6.0
    assert wf.Session(graph).run(y, {last: 1.0, x: [2.0, 3.0]}) == 3.0


def test_named_sizes_agree():
    with wf.Graph() as graph:
        a, b = wf.placeholder(("n", 2), wf.float32), wf.placeholder(("n",), wf.float32)
        y = a.sum(axis=1) * b
    session = wf.Session(graph)
    np.testing.assert_array_equal(session.run(y, {a: X, b: [1, 2, 3]}), [1, 10, 27])
    with pytest.raises(ValueError, match="size n is 2 here and 3 elsewhere"):
        session.run(y, {a: X, b: [1, 2]})


def test_a_fed_value_must_agree_with_sizes_computed_from_others():
    with wf.Graph() as graph:
        x = wf.placeholder((None,), wf.float32)
        y = wf.concat([x, x])
        z = y.sum() + x.sum()
    session = wf.Session(graph)
    assert session.run(z, {x: [1.0], y: [1.0, 2.0]}) == 4.0
    with pytest.raises(ValueError, match=r"the size .* is 2. Received: shape \(3,\)"):
        session.run(z, {x: [1.0], y: [1.0, 2.0, 3.0]})


# -- life of a session -----------------------------------------------------------------------------


def test_two_sessions_on_one_graph(simple):
    graph, x, _, total = simple
    first, second = wf.Session(graph), wf.Session(graph)
    assert first.run(total, {x: X}) == second.run(total, {x: X})
    first.close()
    assert second.run(total, {x: X}) == 36.0


def test_a_graph_grows_between_runs(simple):
    graph, x, y, total = simple
    session = wf.Session(graph)
    before = session.run(total, {x: X})
    with graph:
        mean = total / y.shape[0]
        (g,) = wf.gradients(mean, [x])
    value, grad = session.run([mean, g], {x: X})
    assert value == before / 3
    np.testing.assert_array_equal(grad, np.full((3, 2), F32(2) / F32(3)))
    assert session.run(total, {x: X}) == before


def test_a_session_runs_while_its_graph_is_open():
    with wf.Graph() as graph:
        x = wf.placeholder((), wf.float32)
        y = x * 2
        assert wf.Session(graph).run(y, {x: 3.0}) == 6.0
        z = y + 1
    assert wf.Session(graph).run(z, {x: 3.0}) == 7.0


def test_results_are_tensors_again_in_eager_mode(simple):
    graph, x, y, _ = simple
    eager = wf.tensor(wf.Session(graph).run(y, {x: X})) + 1
    np.testing.assert_array_equal(eager.numpy(), X * 2 + 2)


def test_opening_a_graph_twice_nests():
    with wf.Graph() as graph:
        x = wf.placeholder((), wf.float32)
        with graph:
            y = x * 2
        with wf.Graph() as other:
            z = wf.placeholder((), wf.float32) + 1
        w = y + 1
    assert z.graph is other
    assert wf.Session(graph).run(w, {x: 1.0}) == 3.0


def test_an_error_inside_with_closes_the_graph():
    graph = wf.Graph()

    def fail():
        with graph:
            wf.placeholder((), wf.float32, name="x")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert float(wf.tensor(1.0) + 1) == 2.0
    with graph:
        y = wf.placeholder((), wf.float32, name="y") * 2
    assert wf.Session(graph).run(y, {"y": 2.0}) == 4.0


def test_threads_share_a_session():
    w = wf.nn.Parameter(wf.tensor(np.ones((8, 8), F32)))
    with wf.Graph() as graph:
        x = wf.placeholder((None, 8), wf.float32)
        y = wf.scan(lambda c, _: ((c @ w).tanh(), None), x, length=5)[0].sum()
        (g,) = wf.gradients(y, [x])
    session = wf.Session(graph)
    inputs = [np.random.default_rng(i).standard_normal((i + 1, 8)).astype(F32) for i in range(8)]
    expected = [session.run([y, g], {x: a}) for a in inputs]
    found: dict[int, Any] = {}
    fresh = wf.Session(graph)

    def work(i):
        for _ in range(5):
            found[i] = fresh.run([y, g], {x: inputs[i]})

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(8):
        for a, b in zip(found[i], expected[i], strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_thread_does_not_see_another_threads_open_graph():
    found = []
    with wf.Graph():
        wf.placeholder((), wf.float32)
        thread = threading.Thread(target=lambda: found.append(float(wf.tensor(1.0) + 1)))
        thread.start()
        thread.join()
    assert found == [2.0]


def test_values_are_freed_as_soon_as_nobody_needs_them(monkeypatch):
    """A long chain holds a few arrays at a time, not all of them."""
    alive, peak = 0, 0
    op = find_op("tanh")
    kernel = op.kernel

    class Counted(np.ndarray):
        def __del__(self):
            nonlocal alive
            alive -= 1

    def counting(x):
        nonlocal alive, peak
        alive += 1
        peak = max(peak, alive)
        return kernel(np.asarray(x)).view(Counted)

    with wf.Graph() as graph:
        x = wf.placeholder((4,), wf.float32)
        y = x
        for _ in range(50):
            y = y.tanh()
    monkeypatch.setattr(op, "_kernel", counting)
    wf.Session(graph).run(y, {x: np.ones(4, F32)})
    assert peak <= 3


@pytest.mark.parametrize(
    "fn",
    [lambda x: x.detach(), lambda x: x.reshape(2), lambda x: x[:], lambda x: x.reshape(1, 2)[0]],
)
def test_operations_that_hand_on_their_input_give_a_copy(fn):
    w = wf.tensor([1.0, 2.0])
    with wf.Graph() as graph:
        x = wf.placeholder((2,), wf.float32)
        fetches = [fn(x), fn(w), fn(wf.tensor([3.0, 4.0]))]
    array = np.array([5, 6], F32)
    session = wf.Session(graph)
    expected = [[5, 6], [1, 2], [3, 4]]
    for _ in range(2):
        found = session.run(fetches, {x: array})
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)
            a[:] = -1
    np.testing.assert_array_equal(array, [5, 6])


def test_fetch_of_a_view_owns_its_memory():
    with wf.Graph() as graph:
        x = wf.placeholder((4,), wf.float32)
        y = x * 2
        a, b = y[:2], y.reshape(2, 2)
    found = wf.Session(graph).run([a, b, y], {x: [1.0, 2.0, 3.0, 4.0]})
    found[2][:] = 0
    np.testing.assert_array_equal(found[0], [2, 4])
    np.testing.assert_array_equal(found[1], [[2, 4], [6, 8]])


def test_later_runs_check_what_is_fed():
    with wf.Graph() as graph:
        x, y = wf.placeholder((None, 2), name="x"), wf.placeholder((2,), name="y")
        z = x * y
    session = wf.Session(graph)
    for rows in (3, 3, 4, 3):
        found = session.run(z, {x: np.ones((rows, 2), np.float32), y: wf.full((2,), 3.0)})
        np.testing.assert_array_equal(found, np.full((rows, 2), 3.0))
    with pytest.raises(ValueError, match="x must be fed with"):
        session.run(z, {x: np.ones((3, 3), np.float32), y: wf.ones(2)})
    with pytest.raises(TypeError, match="y must be fed with"):
        session.run(z, {x: np.ones((3, 2), np.float32), y: np.ones(2, int)})
    graph_by_node = wf.Session(graph, compiled=False)
    fed = {x: np.ones((3, 2), np.float32), y: wf.full((2,), 3.0)}
    np.testing.assert_array_equal(graph_by_node.run(z, fed), np.full((3, 2), 3.0))


def test_subclasses_of_arrays_are_fed_as_arrays():
    class Other(np.ndarray):
        pass

    with wf.Graph() as graph:
        x = wf.placeholder((3,), name="x")
        y = x + 1
    for _ in range(2):
        found = wf.Session(graph).run(y, {x: np.ones(3, np.float32).view(Other)})
        assert type(found) is np.ndarray
        np.testing.assert_array_equal(found, [2, 2, 2])


@pytest.mark.parametrize(
    "make", [lambda: wf.Session("host:1"), lambda: wf.Session(target="host:1")]
)
def test_there_are_no_remote_sessions(make):
    with pytest.raises(ValueError, match=r"no remote ones. Received: target 'host:1'; serve the"):
        make()
