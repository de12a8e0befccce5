"""Code for many sizes computes what code for each of them does, to the last bit.

Sizes that change become numbers that every run is told: one executable takes them all. Here they
are held against executables for each of the shapes, on any number of threads.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import numpy as np
import pytest

import weft as wf
import weft.nn.functional as F
from tests.ops import conformance as c
from tests.ops.by_operator import over, two_of_each_kind
from weft.compiler import stages
from weft.core.errors import ShapeError
from weft.core.tensor import Tensor
from weft.core.tree import tree_leaves
from weft.graph import call as graph_call

SIZES = (5, 130)
MORE_SIZES = (2, 5, 37, 130)  # with --long: each is compiled for itself, too


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def feeds_of(symbols, arrays):
    return dict(zip(symbols, arrays, strict=True))


def run_both(graph, fetches, feeds, session):
    """Return what code for these shapes gives, and what a session gives that has seen others."""
    return wf.Session(graph).run(fetches, feeds), session.run(fetches, feeds)


def assert_same_bits(expected, found, what=""):
    assert len(expected) == len(found)
    for a, b in zip(expected, found, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype), what
        np.testing.assert_array_equal(a, b, err_msg=what)
        if a.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(a), np.signbit(b), err_msg=what)


def is_sized(session, fetches, feeds):
    return session.executable(fetches, feeds).sized is not None


class Counter:
    """Counts compilations, of either kind."""

    def __init__(self, monkeypatch):
        self.count = 0
        for slot, function in (
            ("_compile_program", stages.compile_program),
            ("_compile_sized", stages.compile_for_sizes),
        ):
            monkeypatch.setattr(graph_call, slot, self._counting(function))

    def _counting(self, function):
        def compile(*args, **options):
            self.count += 1
            return function(*args, **options)

        return compile


# -- every operator --------------------------------------------------------------------------------

# What keeps sizes as numbers, whatever the sample.
FIXED = frozenset(("conv", "conv1d", "conv2d", "conv3d", "conv_input_grad", "conv_weight_grad"))
CASES = [case for case in c.cases() if not case.is_random]
ASCENDING = frozenset(("sorted_search", "searchsorted"))  # what they look in
# An operator refuses a size, where it runs or where it is compiled.
REFUSALS = (ValueError, IndexError, ArithmeticError, RuntimeWarning, wf.WeftError)


def resized(array, size):
    """Return an array with as many leading entries, which repeat if they must."""
    times = -(-size // array.shape[0])
    return np.concatenate([array] * times)[:size].copy()


@over(CASES, ordinary=two_of_each_kind)
def test_operators_give_equal_bits(case):
    check_sizes(case, [SIZES[case.index % 2]])


@pytest.mark.long
@over(CASES)
def test_operators_give_equal_bits_for_more_sizes(case):
    check_sizes(case, MORE_SIZES)


def check_sizes(case, sizes):
    """Hold code for many sizes, which met the sample's own first, against code for each of them."""
    given = c.Arguments.of(case.drawn()).map(
        lambda a: a.astype(np.float32) if a.dtype == np.float64 else a.copy()
    )
    leading = [a.shape[0] for a in given.arrays() if a.ndim and a.shape[0] > 1]
    feeds = []

    def to_placeholder(array):
        changes = bool(array.ndim) and array.shape[0] == leading[0]
        shape = (None, *array.shape[1:]) if changes else array.shape
        feeds.append((wf.placeholder(shape, array.dtype), array, changes))
        return feeds[-1][0]

    if not leading:
        pytest.skip("no operand has a leading dimension")
    try:
        with wf.Graph() as graph:
            result = given.map(to_placeholder).call(case.function)
    except (ValueError, TypeError, wf.WeftError) as error:
        pytest.skip(f"needs a known size: {error}")
    fetches = [y for y in tree_leaves(result) if isinstance(y, Tensor) and y.symbolic]
    session = wf.Session(graph)
    with suppress(*REFUSALS):  # the first sizes that it meets are taken for the only ones
        session.run(fetches, {s: a for s, a, _ in feeds})
    for size in sizes:
        fed = {s: resized(a, size) if changes else a for s, a, changes in feeds}
        if case.name in ASCENDING:
            fed = {s: np.sort(a) if a.ndim == 1 else a for s, a in fed.items()}
        try:
            wf.Session(graph, compiled=False).run(fetches, fed)
            expected = wf.Session(graph).run(fetches, fed)
        except REFUSALS:
            continue
        assert_same_bits(expected, session.run(fetches, fed), f"{case.id} of size {size}")
        executable = session.executable(fetches, fed)
        if executable is not None and case.name in FIXED and size != leading[0]:
            assert "numbers" in executable.stats()["fixed_because"]


# -- products --------------------------------------------------------------------------------------

BATCHES = (7, 12, 2, 3, 5, 6, 8, 16, 17, 24, 25, 40, 100, 130, 300)

PRODUCTS = {
    "layer": (F.linear, [(None, 300), (96, 300), (96,)]),
    "thin layer": (lambda x, w, b: wf.relu(F.linear(x, w, b)), [(None, 96), (10, 96), (10,)]),
    "gradient of weights": (lambda x, y: x.T @ y, [(None, 33), (None, 50)]),
    "gradient of one row": (lambda x, y: y.T @ x, [(None, 64), (None, 1)]),
    "matrix and vector": (lambda x, v: x @ v, [(None, 64), (64,)]),
    "vector and matrix": (lambda x, v: v @ x, [(None, 64), (None,)]),
    "with itself": (lambda x: x @ x.T, [(None, 64)]),
    "attention": (
        lambda q, k: wf.softmax(q @ wf.swapaxes(k, 1, 2), -1) @ k,
        [(3, None, 32), (3, None, 32)],
    ),
    "batch": (lambda q, k: q @ k, [(None, 5, 7), (None, 7, 9)]),
    "sums of rows": (lambda x, w: (x @ w).sum(0), [(None, 200), (200, 128)]),
    "deep": (lambda x, w: x @ w, [(None, 900), (900, 40)]),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_give_equal_bits(name, threads, rng, few_threads):
    few_threads(threads)
    build, shapes = PRODUCTS[name]
    with wf.Graph() as graph:
        symbols = [wf.placeholder(shape, wf.float32) for shape in shapes]
        fetches = [build(*symbols)]
    session = wf.Session(graph)
    for size in BATCHES:
        arrays = [
            rng.normal(size=[size if n is None else n for n in shape]).astype(np.float32)
            for shape in shapes
        ]
        feeds = feeds_of(symbols, arrays)
        assert_same_bits(*run_both(graph, fetches, feeds, session), f"{name} of {size}")
    assert is_sized(session, fetches, feeds)


@pytest.fixture
def few_threads():
    """Return what sets the number of threads, to be undone at the end."""
    before = wf.get_num_threads()
    yield wf.set_num_threads
    wf.set_num_threads(before)


# -- training --------------------------------------------------------------------------------------


def perceptron(seed, sizes=(20, 70, 10)):
    """Return a training step with Adam: its graph, feeds, fetches and parameters."""
    rng = np.random.default_rng(seed)
    layers = []
    for n, m in pairwise(sizes):
        linear = wf.nn.Linear(n, m)
        with wf.no_grad():
            linear.weight.copy_(rng.normal(size=(m, n)).astype(np.float32) / 8)
            linear.bias.copy_(rng.normal(size=m).astype(np.float32))
        layers += [linear, wf.nn.ReLU()]
    net = wf.nn.Sequential(*layers[:-1])
    with wf.Graph() as graph:
        x = wf.placeholder((None, sizes[0]), wf.float32, name="x")
        t = wf.placeholder((None,), wf.int64, name="t")
        loss = F.cross_entropy(net(x), t)
        step = wf.optim.Adam(net.parameters(), lr=1e-2).minimize(loss)
    return graph, [x, t], [loss, step], net


def batch(size, features=20, classes=10):
    rng = np.random.default_rng(int(size))
    return rng.normal(size=(size, features)).astype(np.float32), rng.integers(0, classes, size)


def test_batches_of_all_sizes_take_three_compilations(monkeypatch):
    counter = Counter(monkeypatch)
    graph, symbols, fetches, _ = perceptron(3)
    session = wf.Session(graph)
    for size in np.random.default_rng(0).permutation(np.arange(1, 131)):
        session.run(fetches, feeds_of(symbols, batch(size)))
    assert counter.count == 3


@pytest.mark.parametrize("threads", [1, 2])
def test_training_on_batches_of_many_sizes_is_the_same(threads, few_threads):
    few_threads(threads)
    graph, symbols, fetches, net = perceptron(3)
    expected_graph, expected_symbols, expected_fetches, expected_net = perceptron(3)
    session = wf.Session(graph)
    for size in (64, 32, 2, 97, 1, 5, 16, 130, 3, 95, 200):
        arrays = batch(size)
        loss, _ = session.run(fetches, feeds_of(symbols, arrays))
        fed = feeds_of(expected_symbols, arrays)
        expected, _ = wf.Session(expected_graph).run(expected_fetches, fed)
        np.testing.assert_array_equal(loss, expected)
        for p, q in zip(net.parameters(), expected_net.parameters(), strict=True):
            np.testing.assert_array_equal(p.numpy(), q.numpy(), err_msg=f"size {size}")


def recurrent(seed, hidden=12):
    """Return a training step of a hand-written cell over sequences of any length."""
    rng = np.random.default_rng(seed)
    weights = [
        wf.nn.Parameter(rng.normal(size=shape).astype(np.float32) / 4)
        for shape in ((5, hidden), (hidden, hidden))
    ]
    into, along = weights
    with wf.Graph() as graph:
        x = wf.placeholder((None, 3, 5), wf.float32, name="x")

        def step(h, row):
            h = wf.tanh(row @ into + h @ along)
            return h, h

        last, rows = wf.scan(step, wf.zeros((3, hidden)), x)
        loss = (rows * rows).mean() + last.sum()
        update = wf.optim.SGD(weights, lr=1e-2).minimize(loss)
    return graph, x, [loss, update], weights


def test_recurrences_of_all_lengths_are_the_same(monkeypatch):
    counter = Counter(monkeypatch)
    graph, x, fetches, weights = recurrent(1)
    expected_graph, expected_x, expected_fetches, expected_weights = recurrent(1)
    session, others = wf.Session(graph), 0
    for number, length in enumerate(np.random.default_rng(2).permutation(np.arange(1, 21))):
        rows = np.random.default_rng(number).normal(size=(length, 3, 5)).astype(np.float32)
        loss, _ = session.run(fetches, {x: rows})
        before = counter.count
        expected, _ = wf.Session(expected_graph).run(expected_fetches, {expected_x: rows})
        others += counter.count - before
        np.testing.assert_array_equal(loss, expected, err_msg=f"length {length}")
    for p, q in zip(weights, expected_weights, strict=True):
        np.testing.assert_array_equal(p.numpy(), q.numpy())
    assert counter.count - others <= 3


def test_tables_are_multiplied_for_the_same_sizes(rng):
    table, weight = wf.nn.Parameter(rng.normal(size=(7, 32))), wf.nn.Parameter(np.ones((9, 32)))
    with wf.Graph() as graph:
        index = wf.placeholder((None, None), wf.int64)
        y = wf.tanh(F.linear(wf.embedding(table, index), weight))
        fetches = [y, *wf.gradients((y * y).sum(), [table, weight])]
    session = wf.Session(graph)
    for shape in ((4, 7), (5, 7), (2, 3), (3, 5), (2, 7), (13, 2), (30, 30)):
        feeds = {index: rng.integers(0, 7, shape)}
        assert_same_bits(*run_both(graph, fetches, feeds, session), f"{shape}")
    assert is_sized(session, fetches, feeds)


def test_two_sizes_change_at_their_own_times(rng):
    with wf.Graph() as graph:
        x = wf.placeholder((None, None, 6), wf.float32)
        fetches = [wf.softmax(x, 1).sum(0), x.transpose(0, 1) * 2.0]
    session = wf.Session(graph)
    for shape in ((4, 7), (9, 7), (9, 3), (2, 30), (40, 2)):
        feeds = {x: rng.normal(size=(*shape, 6)).astype(np.float32)}
        assert_same_bits(*run_both(graph, fetches, feeds, session), f"{shape}")
    assert session.executable(fetches, feeds).stats()["sizes"] == {"n0": 40, "n1": 2}


# -- what sizes decide -----------------------------------------------------------------------------


def test_a_size_of_one_is_not_taken_for_another(rng):
    with wf.Graph() as graph:
        x = wf.placeholder((None, 3), wf.float32)
        y = wf.placeholder((None, 3), wf.float32)
        fetches = [x + y]
    session = wf.Session(graph)
    for first, second in ((4, 4), (7, 7), (1, 7), (7, 1), (1, 1), (9, 9), (1, 9)):
        shapes = ((first, 3), (second, 3))
        arrays = [rng.normal(size=shape).astype(np.float32) for shape in shapes]
        (found,) = session.run(fetches, feeds_of((x, y), arrays))
        np.testing.assert_array_equal(found, arrays[0] + arrays[1])
    with pytest.raises(ShapeError, match="broadcast"):
        session.run(fetches, feeds_of((x, y), (np.ones((4, 3), np.float32), np.ones((5, 3), "f4"))))


def test_empty_feeds_have_code_of_their_own():
    with wf.Graph() as graph:
        x = wf.placeholder((None, 3), wf.float32)
        fetches = [x.sum(), (x * 2.0).sum(0)]
    session = wf.Session(graph)
    for size in (4, 6, 0, 9):
        total, rows = session.run(fetches, {x: np.ones((size, 3), np.float32)})
        assert total == 3 * size
        np.testing.assert_array_equal(rows, np.full(3, 2.0 * size, np.float32))


def test_shapes_that_an_operator_refuses_are_refused_still():
    with wf.Graph() as graph:
        x = wf.placeholder((None,), wf.float32)
        fetches = [x.reshape((2, -1)), x + 1.0]
    session = wf.Session(graph)
    for size in (4, 6, 10):
        session.run(fetches, {x: np.ones(size, np.float32)})
    with pytest.raises(ValueError, match="reshape"):
        session.run(fetches, {x: np.ones(7, np.float32)})


def test_an_index_out_of_range_is_reported_for_every_size():
    with wf.Graph() as graph:
        x = wf.placeholder((None, 4), wf.float32)
        i = wf.placeholder((None,), wf.int64)
        fetches = [wf.take(x, i, 0)]
    session = wf.Session(graph)
    for size in (3, 8, 5):
        table = np.arange(4.0 * size, dtype=np.float32).reshape(size, 4)
        (found,) = session.run(fetches, {x: table, i: np.array([0, size - 1])})
        np.testing.assert_array_equal(found, table[[0, size - 1]])
        with pytest.raises(IndexError):
            session.run(fetches, {x: table, i: np.array([0, size])})


def test_other_code_is_made_where_another_choice_is_right(rng):
    with wf.Graph() as graph:
        x = wf.placeholder((None,), wf.float32)
        fetches = [x.sum(), x.max()]
    session = wf.Session(graph)
    for size in (100, 200, 40_000, 33_000, 32_768, 32_767, 70_000):
        feeds = {x: rng.normal(size=size).astype(np.float32)}
        assert_same_bits(*run_both(graph, fetches, feeds, session), f"size {size}")
        if size != 100:
            assert session.executable(fetches, feeds).stats()["sizes"] == {"n0": size}


def test_what_needs_numbers_says_so(rng):
    with wf.Graph() as graph:
        x = wf.placeholder((None, 2, 8, 8), wf.float32)
        w = wf.placeholder((3, 2, 3, 3), wf.float32)
        fetches = [F.conv2d(x, w)]
    session = wf.Session(graph)
    for size in (2, 5):
        shapes = ((size, 2, 8, 8), (3, 2, 3, 3))
        feeds = feeds_of((x, w), [rng.normal(size=s).astype(np.float32) for s in shapes])
        session.run(fetches, feeds)
    stats = session.executable(fetches, feeds).stats()
    assert "convolutions are written for sizes that are numbers" in stats["fixed_because"]


def test_library_calls_and_profiles_work_with_run_time_sizes(rng):
    with wf.Graph() as graph:
        x = wf.placeholder((None, 6), wf.float32)
        fetches = [wf.sort(x * 2.0, axis=0) + 1.0, x.mean()]
    session = wf.Session(graph)
    for size in (4, 9, 30):
        feeds = {x: rng.normal(size=(size, 6)).astype(np.float32)}
        assert_same_bits(*run_both(graph, fetches, feeds, session), f"size {size}")
    executable = session.executable(fetches, feeds)
    assert executable.stats()["library"]
    assert str(executable.profile([feeds[x]], runs=2))


def test_results_of_earlier_sizes_stay_when_the_arena_grows(rng):
    with wf.Graph() as graph:
        x = wf.placeholder((None, 40), wf.float32)
        y = wf.sort(wf.exp(x), axis=1)
        fetches = [y.cumsum(0), y]
    session, kept = wf.Session(graph), []
    for size in (3, 7, 2000, 7, 50, 3000, 3):
        feeds = {x: rng.normal(size=(size, 40)).astype(np.float32)}
        expected, found = run_both(graph, fetches, feeds, session)
        kept.append((expected, found))
    for expected, found in kept:
        assert_same_bits(expected, found)
