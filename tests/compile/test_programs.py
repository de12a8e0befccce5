"""Whole programs, compiled: random graphs with gradients, training steps, threads."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import weft as wf
from tests.compile.agreement import OPERATOR, PROGRAM, assert_agree
from tests.programs.smooth import SmoothProgram
from tests.threads import assert_same_bits_on_threads, num_threads
from weft.lower.kernels import GemmKernel


def examples(ci, long):
    """Return the settings for a number of examples: more in long mode, by its profile."""
    count = long if settings.default.max_examples > 1000 else ci
    return settings(max_examples=count, deadline=None)


@pytest.mark.parametrize("dtype", PROGRAM)
@given(seed=st.integers(0, 2**32 - 1))
@example(seed=32)  # a row kernel with passes whose kept values depend on one another
@examples(25, 1000)
def test_random_graphs(dtype, seed):
    program = SmoothProgram(seed, dtype)
    expected = wf.Session(program.graph, compiled=False).run(program.fetches, program.feeds)
    found = wf.Session(program.graph, compiled=True).run(program.fetches, program.feeds)
    for a, b in zip(found, expected, strict=True):
        assert_agree(a, b, PROGRAM)


@given(seed=st.integers(0, 2**32 - 1))
@examples(10, 200)
def test_threads_do_not_change_a_bit(seed):
    program = SmoothProgram(seed, np.float32)
    assert_same_bits_on_threads(program.graph, program.fetches, program.feeds)


def make_mlp():
    wf.manual_seed(0)
    return wf.nn.Sequential(wf.nn.Linear(20, 33), wf.nn.GELU(), wf.nn.Linear(33, 5))


def make_convnet():
    wf.manual_seed(0)
    return wf.nn.Sequential(
        wf.nn.Unflatten(1, (1, 4, 5)),
        wf.nn.Conv2d(1, 3, 3, padding=1),
        wf.nn.BatchNorm2d(3),
        wf.nn.ReLU(),
        wf.nn.Flatten(),
        wf.nn.Linear(60, 5),
    )


@pytest.mark.parametrize("make", [make_mlp, make_convnet])
@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop"])
def test_training(make, name):
    """Thirty steps of training agree with the interpreter, states and all."""
    rng = np.random.default_rng(0)
    data = rng.normal(size=(30, 16, 20)).astype(np.float32)
    labels = rng.integers(0, 5, (30, 16))
    results = []
    for compiled in (False, True):
        net = make()
        optimizer = getattr(wf.optim, name)(net.parameters(), lr=1e-2)
        with wf.Graph() as graph:
            x = wf.placeholder((None, 20), wf.float32)
            y = wf.placeholder((None,), wf.int64)
            loss = wf.nn.functional.cross_entropy(net(x), y)
            train = optimizer.minimize(loss)
        session = wf.Session(graph, compiled=compiled)
        pairs = zip(data, labels, strict=True)
        losses = [float(session.run([loss, train], {x: a, y: b})[0]) for a, b in pairs]
        results.append((losses, [p.numpy() for p in net.state_dict().values()], optimizer.t))
    (expected, weights, count), (found, others, t) = results
    np.testing.assert_allclose(found, expected, rtol=1e-3)
    assert count == t == 30
    assert weights[0].shape == others[0].shape


@pytest.mark.parametrize("activation", ["ReLU", "GELU", "Tanh"])
@pytest.mark.parametrize("rows", [(64,), (130,), (3, 70)], ids=str)
def test_gradients_of_biases_are_sums_on_products(rows, activation):
    """They agree with the interpreter's, with the same bits at any number of threads."""
    wf.manual_seed(0)
    sizes = (20, 96, 70, 5)
    layers = [wf.nn.Linear(k, n) for k, n in pairwise(sizes)]
    between = getattr(wf.nn, activation)()
    with wf.Graph() as graph:
        x = wf.placeholder((*rows, 20), wf.float32)
        loss = (wf.nn.Sequential(layers[0], between, layers[1], between, layers[2])(x) ** 2).mean()
        fetches = [loss, *wf.gradients(loss, [p for layer in layers for p in layer.parameters()])]
    feeds = {x: np.random.default_rng(0).normal(size=(*rows, 20)).astype(np.float32)}
    expected = wf.Session(graph, compiled=False).run(fetches, feeds)
    session = wf.Session(graph, compiled=True)
    for count in (1, 2):
        with num_threads(count):
            for a, b in zip(session.run(fetches, feeds), expected, strict=True):
                assert_agree(a, b, PROGRAM)
    assert_same_bits_on_threads(graph, fetches, feeds)
    kernels = session.executable(fetches, feeds).program.kernels
    assert sum(isinstance(k, GemmKernel) and bool(k.row_sums) for k in kernels) == 2


def test_a_value_held_elsewhere_is_not_written_to():
    """Parameters are updated in place only where nobody can see it."""
    net = make_mlp()
    with wf.Graph() as graph:
        x = wf.placeholder((4, 20), wf.float32)
        train = wf.optim.SGD(net.parameters(), lr=0.1).minimize((net(x) ** 2).mean())
    session = wf.Session(graph, compiled=True)
    feed = {x: np.ones((4, 20), np.float32)}
    session.run(train, feed)
    held = net[0].weight.numpy()
    before = held.copy()
    session.run(train, feed)
    np.testing.assert_array_equal(held, before)
    assert not np.array_equal(net[0].weight.numpy(), before)


@pytest.mark.parametrize(
    "change",
    [
        lambda w: w + w.mT,
        lambda w: w - w[::-1],
        lambda w: w - w[:, ::-1],
        lambda w: w * 0.5 + w[0],
        lambda w: w + w[:, :1],
        lambda w: w + w.reshape(-1)[:20],
        lambda w: w * 2.0,
    ],
)
def test_states_updated_from_other_places_of_themselves(change):
    """What an update still has to read is not overwritten by what it has written."""
    results = []
    for compiled in (False, True):
        w = wf.tensor(np.arange(400, dtype=np.float32).reshape(20, 20))
        with wf.Graph() as graph:
            update = w.assign(change(w))
        session = wf.Session(graph, compiled=compiled)
        session.run(update)
        session.run(update)
        results.append(w.numpy())
    np.testing.assert_array_equal(*results)


def test_a_state_that_takes_a_part_of_a_larger_value():
    """The whole value must not be computed where the state lies."""
    w = wf.tensor(np.zeros(3, np.float32))
    with wf.Graph() as graph:
        z = wf.placeholder((5000,), wf.float32)
        update = w.assign((z + 1.0)[:3])
        before = w * 2.0
    executable = wf.Session(graph).executable([before, update], {z: np.ones(5000, np.float32)})
    assert executable.layout.changed == 0
    executable.run([np.ones(5000, np.float32)])
    np.testing.assert_array_equal(w.numpy(), [2.0, 2.0, 2.0])


@pytest.mark.parametrize("part", [slice(None, 3), slice(2, None), slice(0, 0), slice(None)])
def test_parts_of_values_are_fetched(part):
    with wf.Graph() as graph:
        z = wf.placeholder((5,), wf.float32)
        y = (z + 1.0)[part]
    (found,) = (
        wf.Session(graph)
        .executable(y, {z: np.zeros(5, np.float32)})
        .run([np.arange(5.0, dtype="f")])
    )
    np.testing.assert_array_equal(found, np.arange(1.0, 6.0)[part])


def test_fetches_are_arrays_of_their_own():
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32)
        y = x * 2.0
    session = wf.Session(graph, compiled=True)
    first = session.run(y, {x: [1.0, 2.0, 3.0]})
    second = session.run(y, {x: [4.0, 5.0, 6.0]})
    np.testing.assert_array_equal(first, [2.0, 4.0, 6.0])
    first[:] = 0
    np.testing.assert_array_equal(second, [8.0, 10.0, 12.0])


@pytest.mark.parametrize("order", ["C", "F", "strided", "offset"])
def test_feeds_of_any_layout(order):
    base = np.arange(24, dtype=np.float32).reshape(4, 6)
    layouts = {
        "C": base,
        "F": np.asfortranarray(base),
        "strided": np.repeat(base, 2, axis=1)[:, ::2],
        "offset": np.concatenate([base[:1], base])[1:],
    }
    with wf.Graph() as graph:
        x = wf.placeholder((4, 6), wf.float32)
        y = x.mT @ x + 1.0
    found = wf.Session(graph, compiled=True).run(y, {x: layouts[order]})
    np.testing.assert_array_equal(found, base.T @ base + 1.0)


@pytest.mark.parametrize("order", ["strided", "backwards"])
def test_feeds_with_gaps_that_no_code_touches(order):
    """Views of feeds are fetched, and taken by reference kernels, without any code between."""
    base = np.arange(5, dtype=np.float32)
    feed = {"strided": np.repeat(base, 2)[::2], "backwards": base[::-1].copy()[::-1]}[order]
    with wf.Graph() as graph:
        x = wf.placeholder((5,), wf.float32)
        fetches = [x[1:], wf.sort(x), x.reshape(5, 1)]
    found = wf.Session(graph, compiled=True).run(fetches, {x: feed})
    for a, b in zip(found, (base[1:], base, base[:, None]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_shapes_that_depend_on_values_are_interpreted():
    with wf.Graph() as graph:
        x = wf.placeholder((None,), wf.float32)
        y = wf.nonzero(x)[0]
    session = wf.Session(graph, compiled=True)
    np.testing.assert_array_equal(session.run(y, {x: [0.0, 3.0, 0.0, 1.0]}), [1, 3])
    np.testing.assert_array_equal(session.run(y, {x: [0.0]}), [])


def test_a_failing_run_changes_nothing():
    total = wf.tensor([1.0, 2.0])
    with wf.Graph() as graph:
        index = wf.placeholder((1,), wf.int64)
        update = total.assign(total + wf.take(total, index))
    session = wf.Session(graph, compiled=True)
    with pytest.raises(IndexError):
        session.run(update, {index: [7]})
    np.testing.assert_array_equal(total.numpy(), [1.0, 2.0])
    session.run(update, {index: [1]})
    np.testing.assert_array_equal(total.numpy(), [3.0, 4.0])


def test_loops_run_inside():
    with wf.Graph() as graph:
        a = wf.placeholder((), wf.float64)
        root = wf.while_loop(
            lambda r: abs(r * r - a) > 1e-12,
            lambda r: 0.5 * (r + a / r),
            wf.ones((), dtype=wf.float64),
        )
        slope = wf.gradients(root * 3.0, a)
    session = wf.Session(graph, compiled=True)
    for number in (2.0, 9.0, 100.0):
        found = session.run([root, slope], {a: number})
        np.testing.assert_allclose(found, [number**0.5, 1.5 * number**-0.5], rtol=1e-12)


def classifier(ignore_index=-100):
    with wf.Graph() as graph:
        x = wf.placeholder((None, 7), wf.float32, name="x")
        y = wf.placeholder((None,), wf.int64, name="y")
        loss = wf.nn.functional.cross_entropy(x, y, ignore_index=ignore_index)
        slope = wf.gradients(loss, x)
    return graph, [loss, slope], x, y


@pytest.mark.parametrize(
    ("labels", "ignored"), [([0, 6, 3], -100), ([-100, 2, 2], -100), ([1, 1, 5], 1)]
)
def test_classes_are_picked_in_code(labels, ignored):
    graph, fetches, x, y = classifier(ignored)
    feeds = {x: np.random.default_rng(0).normal(size=(3, 7)).astype(np.float32), y: labels}
    session = wf.Session(graph, compiled=True)
    expected = wf.Session(graph, compiled=False).run(fetches, feeds)
    for a, b in zip(session.run(fetches, feeds), expected, strict=True):
        assert_agree(a, b, OPERATOR)
    assert session.executable(fetches, feeds).stats()["library"] == []


@pytest.mark.parametrize("label", [7, -1, 100])
def test_a_class_that_is_not_there_is_an_error(label):
    graph, fetches, x, y = classifier()
    session = wf.Session(graph, compiled=True)
    feeds = {x: np.zeros((2, 7), np.float32), y: [0, label]}
    with pytest.raises(IndexError, match=f"{label} .*7 classes"):
        session.run(fetches, feeds)


def test_values_of_actions():
    """What deep Q-learning needs: gather one column of each row, and its adjoint."""
    with wf.Graph() as graph:
        q = wf.placeholder((5, 3), wf.float32)
        action = wf.placeholder((5,), wf.int64)
        chosen = wf.gather(q, 1, action[:, None])[:, 0]
        slope = wf.gradients((chosen * chosen).sum(), q)
    values = np.arange(15, dtype=np.float32).reshape(5, 3)
    session = wf.Session(graph, compiled=True)
    for actions in ([0, 1, 2, 0, 1], [-1, 0, -3, 2, 1]):  # negative ones count from the end
        feeds = {q: values, action: actions}
        expected = wf.Session(graph, compiled=False).run([chosen, slope], feeds)
        for a, b in zip(session.run([chosen, slope], feeds), expected, strict=True):
            np.testing.assert_array_equal(a, b)


# -- failures --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("failure", "advice"), [(ValueError, "please report"), (MemoryError, "more memory")]
)
def test_code_that_fails_is_reported_and_replaced(monkeypatch, failure, advice):
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float32, name="x")
        y = x * 2.0

    def fail(*_):
        raise failure("lost")

    monkeypatch.setattr("weft.backends.cpu.runtime.executable.Executable.run", fail)
    with pytest.warns(RuntimeWarning, match=rf"failed \({failure.__name__}: lost\).*{advice}"):
        found = wf.Session(graph).run(y, {x: np.ones(3, np.float32)})
    np.testing.assert_array_equal(found, np.full(3, 2, np.float32))


@pytest.mark.parametrize("batch", [(), (1,), (5,)])
@pytest.mark.parametrize("rows", [1, 3, 8, 17, 33])
def test_epilogues_of_products_with_one_column(batch, rows):
    rng = np.random.default_rng(rows)
    arrays = [rng.normal(size=(*batch, *s)).astype(np.float32) for s in ((rows, 16), (16, 1))]
    more = rng.normal(size=(*batch, rows, 1)).astype(np.float32)

    def program(x, y, z):
        return wf.relu(x @ y - z) * 2.0 + z

    tensors = [wf.tensor(a) for a in (*arrays, more)]
    compiled = wf.compile(program, *tensors)
    assert compiled.stats()["library"] == []
    found = compiled(*tensors).numpy()
    np.testing.assert_allclose(found, program(*tensors).numpy(), rtol=2e-5, atol=2e-5)
