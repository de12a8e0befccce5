"""Recurrent layers behind an embedding: distinct rows are multiplied, and nothing else changes."""

import numpy as np
import pytest

import weft as wf
from tests.threads import num_threads
from weft.core.large import LARGE
from weft.eager import composites
from weft.eager.lookups import looked_up

ROWS, WIDTH, HIDDEN, BATCH, TIME = 7, 32, 40, 30, 70
assert BATCH * TIME * WIDTH >= LARGE
LAYERS = {
    "lstm": lambda: wf.nn.LSTM(WIDTH, HIDDEN, batch_first=True),
    "lstm with time first": lambda: wf.nn.LSTM(WIDTH, HIDDEN),
    "gru": lambda: wf.nn.GRU(WIDTH, HIDDEN, batch_first=True),
    "rnn without bias": lambda: wf.nn.RNN(WIDTH, HIDDEN, bias=False, batch_first=True),
    "both directions": lambda: wf.nn.GRU(WIDTH, HIDDEN, bidirectional=True, batch_first=True),
    "projected": lambda: wf.nn.LSTM(WIDTH, HIDDEN, proj_size=8, batch_first=True),
}


@pytest.fixture(autouse=True)
def _switched_on(monkeypatch):
    monkeypatch.setattr(wf.config, "eager_kernels", True)
    wf.zeros(LARGE)  # opens the door for large tensors


def table(rows=ROWS):
    return wf.nn.Parameter(np.random.default_rng(1).normal(size=(rows, WIDTH)).astype(np.float32))


def index(rows=ROWS, dtype=np.int64):
    return wf.tensor(np.random.default_rng(2).integers(0, rows, (BATCH, TIME)).astype(dtype))


def layer(name):
    wf.manual_seed(3)
    return LAYERS[name]()


def results(layer, weight, x):
    """Return what a layer computes of rows, and gradients of all parameters and of the rows."""
    x.retain_grad()
    out = layer(x)[0]
    (out * out).sum().backward()
    found = [out, x.grad, weight.grad, *[p.grad for p in layer.parameters()]]
    for p in (weight, *layer.parameters()):
        p.grad = None
    return [value.numpy() for value in found]


def by_operators(monkeypatch, compute):
    with monkeypatch.context() as patched:
        patched.setattr(wf.config, "eager_kernels", False)
        return compute()


def near(found, expected):
    for got, wanted in zip(found, expected, strict=True):
        scale = np.abs(wanted).max() + 1e-6
        np.testing.assert_allclose(got / scale, wanted / scale, atol=3e-5)


def programs_with_lookups(monkeypatch):
    """Return a list that grows with each call of a composite: whether it was told of an index."""
    told, record = [], composites._record

    def noting(kernel, tensors, more):
        told.append(bool(more))
        return record(kernel, tensors, more)

    monkeypatch.setattr(composites, "_record", noting)
    return told


@pytest.mark.parametrize("name", LAYERS)
def test_results_and_gradients_are_those_of_the_operators(name, monkeypatch):
    weight, net, told = table(), layer(name), programs_with_lookups(monkeypatch)

    def compute():
        return results(net, weight, wf.embedding(weight, index()))

    near(compute(), by_operators(monkeypatch, compute))
    assert told == [True] * len(told)
    assert told


def test_padding_and_small_integers(monkeypatch):
    weight, net = table(), layer("gru")

    def compute():
        return results(net, weight, wf.embedding(weight, index(dtype=np.int32), padding_idx=2))

    near(compute(), by_operators(monkeypatch, compute))


def test_rows_that_nobody_looked_up_may_hold_anything():
    weight, net = table(ROWS + 2), layer("gru")
    with wf.no_grad():
        weight[ROWS] = np.inf
    found = results(net, weight, wf.embedding(weight, index()))
    assert all(np.isfinite(value).all() for value in found)


def test_a_second_derivative_goes_through(monkeypatch):
    weight, net = table(), layer("rnn without bias")

    def compute():
        out = net(wf.embedding(weight, index()))[0]
        (g,) = wf.gradients(out.sum(), [weight], create_graph=True)
        (g * g).sum().backward()
        found = [g.numpy(), weight.grad.numpy()]
        weight.grad = None
        return found

    near(compute(), by_operators(monkeypatch, compute))


def test_bits_do_not_depend_on_the_number_of_threads():
    found = []
    for count in (1, 2):
        weight, net = table(), layer("lstm")
        with num_threads(count):
            found.append(results(net, weight, wf.embedding(weight, index())))
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)


# -- when an index tells nothing -------------------------------------------------------------------


def test_rows_are_told_apart_from_other_tensors():
    weight = table()
    x = wf.embedding(weight, index())
    assert looked_up(x) is not None
    assert looked_up(x * 1.0) is None
    assert looked_up(x.detach()) is None
    assert looked_up(weight) is None


def test_rows_that_were_written_to_are_no_rows_of_the_table(monkeypatch):
    weight, net = table(), layer("gru")

    def compute():
        x = wf.embedding(weight, index())
        x[0, 0] = 100.0
        assert looked_up(x) is None
        return [net(x)[0].detach().numpy()]

    near(compute(), by_operators(monkeypatch, compute))


def test_an_index_in_memory_of_the_user_is_not_believed():
    weight, mine = table(), index().numpy().copy()
    x = wf.embedding(weight, wf.from_numpy(mine))
    mine[:] = 0
    assert looked_up(x) is None


def test_large_tables_are_not_multiplied():
    rows = BATCH * TIME
    assert looked_up(wf.embedding(table(rows), index(rows))) is None


def test_rows_without_a_history_are_as_they_are():
    with wf.no_grad():
        assert looked_up(wf.embedding(table(), index())) is None


def test_distinct_rows_and_index_make_the_rows():
    x = wf.embedding(table(), index())
    found = looked_up(x)
    np.testing.assert_array_equal(found.distinct[found.places], x.numpy())
    assert found.types == (((ROWS, WIDTH), np.float32), ((BATCH, TIME), np.int64))
