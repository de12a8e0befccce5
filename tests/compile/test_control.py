"""Control flow, compiled: native loops and branches give what the interpreter gives."""

from __future__ import annotations

import threading
import time
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import weft as wf
import weft.nn.functional as F
from tests.compile.agreement import assert_agree, run_reference
from tests.compile.test_programs import examples
from tests.graph.test_control_gradients import W, X, curvature, scalar
from tests.programs.control_flow import PROGRAMS
from tests.programs.loops import LoopProgram
from tests.threads import assert_same_bits_on_threads

programs = pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
DOUBLE = ("rnn", "ragged_middle", "ragged_results")
TOLERANCE = {"float32": 2e-4, "float64": 1e-9}


def assert_close(found, expected, tolerance):
    bounds = dict.fromkeys(("float32", "float64"), tolerance)
    assert_agree(np.asarray(found), np.asarray(expected), bounds)


def interpreted_and_compiled(graph, fetches, feeds):
    """Return what both ways give, and the executable; the reference gives what the first does."""
    session = wf.Session(graph, compiled=True)
    expected = wf.Session(graph, compiled=False).run(fetches, feeds)
    found = session.run(fetches, feeds)
    executable = session.executable(fetches, feeds)
    if executable is not None:
        for a, b in zip(run_reference(graph, fetches, feeds), expected, strict=True):
            assert_agree(a, b, TOLERANCE)
    return expected, found, executable


def same(fn, *arrays, tolerance=1e-6):
    """Run a function of tensors both ways; return its results and the executable."""
    with wf.Graph() as graph:
        inputs = [wf.placeholder(np.shape(a), np.asarray(a).dtype) for a in arrays]
        results = list(wf.core.tree.flatten(fn(*inputs))[0])
    feeds = dict(zip(inputs, arrays, strict=True))
    expected, found, executable = interpreted_and_compiled(graph, results, feeds)
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape
        assert a.dtype == b.dtype
        assert_close(a, b, tolerance)
    return found, executable


def data(*shape, dtype=np.float32, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


# -- every program of the graph's own tests --------------------------------------------------------


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["plus", "minus"])
@programs
def test_values_and_derivatives(fn, sign, dtype):
    if dtype == "float32" and fn.__name__.endswith(DOUBLE):
        pytest.skip("the program has constants of float64")
    with wf.Graph() as graph:
        x, w = wf.placeholder(("n",), dtype), wf.placeholder(("n",), dtype)
        value = scalar(fn(x, w))
        first = wf.gradients(value, [x, w])
        second = wf.gradients(curvature(first), [x, w])
        forward = wf.forward_gradients(value, [x, w], [w, x])
    feeds = {x: (X * sign).astype(dtype), w: W.astype(dtype)}
    fetches = [value, *first, *second, forward]
    expected, found, _ = interpreted_and_compiled(graph, fetches, feeds)
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b, TOLERANCE[dtype])


@given(seed=st.integers(0, 2**32 - 1))
@examples(20, 500)
def test_random_loops(seed):
    program = LoopProgram(seed)
    expected, found, executable = interpreted_and_compiled(
        program.graph, program.fetches, program.feeds
    )
    assert executable is not None
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b, 1e-8)


@given(seed=st.integers(0, 2**32 - 1))
@examples(5, 100)
def test_threads_do_not_change_a_bit(seed):
    program = LoopProgram(seed, dtype=np.float32, sizes=(40, 300))
    assert_same_bits_on_threads(program.graph, program.fetches, program.feeds, (1, 2))


# -- what runs where -------------------------------------------------------------------------------


def test_a_recurrent_step_is_native():
    def fn(x, w):
        def step(h, row):
            h = wf.tanh(h @ w + row)
            return h, h

        h, hs = wf.scan(step, wf.zeros((4, 6)), x)
        return [h, hs, *wf.gradients((hs * hs).sum() + h.sum(), [x, w])]

    _, executable = same(fn, data(5, 4, 6), data(6, 6, seed=1) * 0.3, tolerance=1e-5)
    stats = executable.stats()
    assert stats["library"] == []
    assert stats["kernels"]["loop"] == 2


@pytest.mark.parametrize(
    ("product", "turned"),
    [
        (F.linear, True),
        (lambda h, w: h @ w.T, True),
        (lambda h, w: h @ w, False),
        (lambda h, w: F.linear(h, w) + h @ w, False),  # taken in both ways
    ],
    ids=["linear", "transpose", "in order", "two uses"],
)
def test_a_loop_turns_a_matrix_once(product, turned):
    def step(w, h, x):
        h = wf.tanh(product(h, w) + x)
        return h, h

    with wf.Graph() as graph:
        w = wf.placeholder((20, 20), wf.float32, name="matrix")
        xs = wf.placeholder((9, 6, 20), wf.float32)
        fetches = list(wf.scan(partial(step, w), wf.zeros((6, 20)), xs))
    feeds = {w: data(20, 20) / 4, xs: data(9, 6, 20)}
    expected, found, executable = interpreted_and_compiled(graph, fetches, feeds)
    for a, b in zip(found, expected, strict=True):
        assert_close(a, b, 1e-5)
    names = [kernel.name for kernel in executable.program.kernels]
    assert ("copy of matrix" in names) == turned


def test_a_body_with_a_library_call_runs_over_buffers():
    """Sorting has no native code: Python drives the loop, and the rest of the body stays native."""

    def fn(x):
        def step(c, row):
            c = wf.sort(c * 0.5 + row)
            return c, c.sum()

        return wf.scan(step, x[0] * 0, x, reverse=True)

    _, executable = same(fn, data(6, 5))
    stats = executable.stats()
    assert "scan" not in stats["library"]
    assert "sort" in stats["library"]
    assert stats["kernels"]["loop"] == 1


def test_library_calls_in_branches_and_tests():
    def fn(x):
        def body(c):
            i, v = c
            after = wf.cond(v.sum() > 4, lambda u: wf.sort(u) - 1, lambda u: wf.sort(-u) + 0.5, v)
            return i + 1, after

        return wf.while_loop(lambda c: (wf.sort(c[1], axis=0)[0] > -9) & (c[0] < 6), body, (0, x))

    _, executable = same(fn, data(7) + 2)
    assert set(executable.stats()["library"]) == {"sort"}


def test_long_loops_let_other_threads_run():
    """The GIL is released while a loop runs."""
    with wf.Graph() as graph:
        n = wf.placeholder((), wf.int64)
        count = wf.while_loop(lambda c: c < n, lambda c: c + 1, wf.tensor(0))
    session = wf.Session(graph, compiled=True)
    session.run(count, {n: 1})
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(None)
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        before = len(ticks)
        assert session.run(count, {n: 20_000_000}) == 20_000_000
        assert len(ticks) > before + 2
    finally:
        done.set()
        thread.join()


# -- where values lie ------------------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_carries_of_all_kinds(steps, reverse):
    """Carries that are results, that never change, that change places, that come from rows."""

    def fn(x, w):
        def step(carry, row):
            h, kept, a, b, last = carry
            h = wf.sin(h + row * kept)
            return (h, kept, b, a, row), (h, h, kept, last, a * b, row)

        return wf.scan(step, (w, w * 2, w + 1, w - 1, w * 0), x, reverse=reverse)

    same(fn, data(steps, 3), data(3, seed=1))


@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (17,), (2, 3, 4)])
def test_shapes_of_carries_and_rows(shape):
    def fn(x):
        return wf.scan(lambda c, row: (c * 0.5 + row, (c - row, row)), x[0], x)

    same(fn, data(4, *shape))


@pytest.mark.parametrize(
    "dtype", [np.bool_, np.uint8, np.int16, np.int32, np.int64, np.uint64, np.float32, np.float64]
)
def test_carries_and_rows_of_all_dtypes(dtype):
    x = (np.arange(12).reshape(4, 3) % 5 > 1).astype(dtype)
    same(lambda x: wf.scan(lambda c, row: (row, (c, row)), x[0], x), x)
    same(lambda x: wf.cond(x.any(), lambda v: (v, v), lambda v: (v[::-1], v), x), x)


def test_rows_of_strided_operands():
    """What a loop takes apart may be transposed, sliced, or repeated."""

    def fn(x):
        xs = (x.mT, x[::-1].mT, wf.broadcast_to(x[0][:, None], (5, 4)))
        return wf.scan(lambda c, rows: (c + rows[0] * rows[1], rows[2] - c), x[:, 0], xs)

    same(fn, data(4, 5))


def test_results_of_a_loop_in_a_loop_in_a_branch():
    def fn(x):
        def inner(c, row):
            return wf.sin(c + row), c

        def outer(c, block):
            last, rows = wf.scan(inner, c, block)
            return last, (rows, rows[0])

        return wf.cond(
            x.sum() > -1e9, lambda: wf.scan(outer, x[0, 0], x), lambda: wf.scan(outer, x[0, 0], -x)
        )

    same(fn, data(3, 4, 2))


def test_special_values_pass_through():
    x = np.array([[np.nan, np.inf], [-np.inf, -0.0], [0.0, 1e-45], [3e38, -1.0]], np.float32)
    with wf.Graph() as graph:
        rows = wf.placeholder((4, 2), wf.float32)
        last, doubled = wf.scan(lambda c, row: (row, c * 2.0), rows[0], rows)
    expected, found, _ = interpreted_and_compiled(graph, [last, doubled], {rows: x})
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(np.signbit(a), np.signbit(b))


def test_a_nan_ends_a_loop_as_numpy_compares():
    def fn(x):
        return wf.while_loop(lambda c: c < 10, lambda c: c * c, x)

    for start in (2.0, np.nan, np.inf, -np.inf):
        same(fn, np.float64(start))


def test_states_written_in_a_loop():
    results = []
    for compiled in (False, True):
        total = wf.zeros(2)
        with wf.Graph() as graph:
            x = wf.placeholder((3, 2), wf.float32)

            def step(c, row, total=total):
                total.add_(row)
                return c, total * 2.0

            _, rows = wf.scan(step, wf.zeros(()), x)
            update = total.assign(total * 1.0)
        session = wf.Session(graph, compiled=compiled)
        runs = [session.run([rows, update], {x: data(3, 2, seed=i)})[0] for i in range(3)]
        results.append([*runs, total.numpy()])
    for a, b in zip(*results, strict=True):
        assert_close(a, b, 1e-6)


def test_one_executable_runs_again_with_other_values():
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float64)
        y = wf.while_loop(lambda c: (c * c).sum() > 1.0, lambda c: c * 0.7, x)
    session = wf.Session(graph, compiled=True)
    for scale in (0.1, 100.0, 1.0, 0.0):
        feeds = {x: np.array([1.0, 2.0, 3.0]) * scale}
        assert_close(session.run(y, feeds), wf.Session(graph, compiled=False).run(y, feeds), 1e-12)


# -- recurrent nets --------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"bidirectional": True, "num_layers": 2}])
@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_recurrent_nets(name, options):
    wf.manual_seed(0)
    net = getattr(wf.nn, name)(5, 7, batch_first=True, **options)
    with wf.Graph() as graph:
        x = wf.placeholder((None, "time", 5), wf.float32)
        y, _ = net(x)
        gs = wf.gradients((y * y).sum(), [x, *net.parameters()])
    loops = 0
    for steps in (1, 6):
        feeds = {x: data(3, steps, 5)}
        expected, found, executable = interpreted_and_compiled(graph, [y, *gs], feeds)
        for a, b in zip(found, expected, strict=True):
            assert_close(a, b, 1e-4)
        loops = executable.stats()["kernels"]["loop"]
    assert loops == 2 * net.num_directions * net.num_layers


# -- errors ----------------------------------------------------------------------------------------


def test_an_error_in_a_loop_says_where_and_changes_nothing():
    total = wf.tensor([1.0, 2.0])
    with wf.Graph() as graph:
        index = wf.placeholder((3,), wf.int64)

        def step(c, i):
            return c + wf.take(total, i), None

        last, _ = wf.scan(step, wf.zeros(()), index)
        update = total.assign(total + last)
    session = wf.Session(graph, compiled=True)
    with pytest.raises(IndexError, match=r"7.*test_control.py"):
        session.run(update, {index: [0, 7, 1]})
    np.testing.assert_array_equal(total.numpy(), [1.0, 2.0])
    session.run(update, {index: [0, 1, 1]})
    np.testing.assert_array_equal(total.numpy(), [6.0, 7.0])


@pytest.mark.parametrize("label", [[0, 2, 1], [0, 3, 1]])
def test_classes_picked_in_a_loop_are_checked(label):
    """An index that comes from a feed through a loop is checked before the code runs."""
    with wf.Graph() as graph:
        x = wf.placeholder((3, 3), wf.float32)
        y = wf.placeholder((3,), wf.int64)

        def step(c, row):
            scores, target = row
            return c + wf.nn.functional.cross_entropy(scores[None] + c, target[None]), None

        loss, _ = wf.scan(step, wf.zeros(()), (x, y))
    feeds = {x: data(3, 3), y: label}
    session = wf.Session(graph, compiled=True)
    if max(label) < 3:
        assert_close(
            session.run(loss, feeds), wf.Session(graph, compiled=False).run(loss, feeds), 1e-6
        )
    else:
        with pytest.raises(IndexError, match="3 classes"):
            session.run(loss, feeds)
