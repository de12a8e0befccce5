"""Tables that are multiplied before they are looked up: what is left, and that results stay."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.passes.test_scan_split import static_graph
from weft.graph.run import run_function
from weft.graph.verify import verify
from weft.passes import canonicalize, remove_dead
from weft.passes.tables import multiply_tables

RNG = np.random.default_rng(0)
TABLE, WEIGHT, BIAS = (RNG.normal(size=shape) for shape in [(7, 32), (48, 32), (48,)])
INDEX = RNG.integers(0, 7, (5, 6))
INDEX[INDEX == 2] = 3  # nobody looks up row 2

FORMS = {
    "linear": lambda t, w, b, i: wf.linear(wf.embedding(t, i), w, b),
    "linear without a bias": lambda t, w, b, i: wf.linear(wf.embedding(t, i), w),
    "matmul": lambda t, w, b, i: wf.embedding(t, i) @ w.T + b,
    "take": lambda t, w, b, i: wf.linear(wf.take(t, i, 0), w, b),
    "one axis": lambda t, w, b, i: wf.linear(wf.embedding(t, i.reshape(-1)), w, b),
    "time first": lambda t, w, b, i: wf.linear(wf.embedding(t, i).swapaxes(0, 1), w, b),
    "flattened": lambda t, w, b, i: wf.linear(wf.embedding(t, i).reshape(-1, 32), w, b),
    "both": lambda t, w, b, i: wf.linear(wf.embedding(t, i).swapaxes(0, 1).reshape(-1, 32), w, b),
    "two products": lambda t, w, b, i: (
        wf.linear(wf.embedding(t, i), w, b) + wf.embedding(t, i) @ w.T
    ),
}


def with_gradients(form):
    """Return a function that gives the result of a form, and gradients of a loss of it."""

    def run(table, weight, bias, index):
        y = form(table, weight, bias, index)
        loss = wf.sum(wf.tanh(y) * wf.arange(y.size, dtype=y.dtype).reshape(y.shape))
        return [y, *wf.gradients(loss, [table, weight])]

    return run


def multiplied(fn, *arrays):
    """Return the graph of a function before and after the pass; check that results stay."""
    graph = static_graph(fn, *arrays)
    made = canonicalize(remove_dead(multiply_tables(graph)))
    verify(made)
    expected, found = run_function(graph, arrays), run_function(made, arrays)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
    return graph, made


def multiplications(graph):
    """Return how many multiplications the products of a graph take."""
    return sum(
        node.op.multiplications_rule(*(None if x is None else x.shape for x in node.inputs))
        for node in graph
        if node.op.name in ("matmul", "linear")
    )


@pytest.mark.parametrize("form", FORMS)
def test_products_take_the_table_in_place_of_its_rows(form):
    before, after = multiplied(with_gradients(FORMS[form]), TABLE, WEIGHT, BIAS, INDEX)
    assert multiplications(after) * INDEX.size == multiplications(before) * len(TABLE)


def test_sums_of_products_and_others():
    def run(table, weight, bias, index):
        rows = wf.embedding(table, index)
        return with_gradients(lambda *_: rows @ weight.T + rows[0] @ weight.T + bias)(
            table, weight, bias, index
        )

    graph, made = multiplied(run, TABLE, WEIGHT, BIAS, INDEX)
    assert multiplications(made) < multiplications(graph) / 2


def test_row_without_a_gradient_stays_so():
    def padded(table, weight, bias, index):
        return wf.linear(wf.embedding(table, index, 3), weight, bias)

    graph, made = multiplied(with_gradients(padded), TABLE, WEIGHT, BIAS, INDEX)
    assert multiplications(made) < multiplications(graph)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_only_where_it_pays(dtype):
    run = with_gradients(FORMS["linear"])
    table, weight, bias = (a.astype(dtype) for a in (TABLE, WEIGHT, BIAS))

    def changes(*arrays):
        graph = static_graph(run, *arrays)
        return multiplications(canonicalize(remove_dead(multiply_tables(graph)))) < multiplications(
            graph
        )

    assert changes(table, weight, bias, INDEX)
    assert changes(table, weight, bias, INDEX.reshape(-1)[:14])
    assert not changes(table, weight, bias, INDEX.reshape(-1)[:13])  # too few lookups
    assert not changes(table[:, :31], weight[:, :31], bias, INDEX)  # narrow rows
    assert not changes(*(a.astype(np.float16) for a in (table, weight, bias)), INDEX)


# -- compiled --------------------------------------------------------------------------------------


def compiled_gradients(table, weight, index):
    """Return gradients of table and weight, from a compiled program."""
    with wf.Graph() as graph:
        feeds = [wf.placeholder(a.shape, a.dtype) for a in (table, weight, index)]
        y = wf.linear(wf.embedding(feeds[0], feeds[2]), feeds[1])
        fetches = wf.gradients(wf.sum(y), feeds[:2])
    return wf.Session(graph).run(fetches, dict(zip(feeds, (table, weight, index), strict=True)))


def test_what_is_not_finite_in_unused_rows_stays_there():
    table = TABLE.copy()
    table[2] = np.nan
    of_table, of_weight = compiled_gradients(table, WEIGHT, INDEX)
    assert np.isfinite(of_weight).all()
    weight = WEIGHT.copy()
    weight[0, 0] = np.inf
    of_table, _ = compiled_gradients(TABLE, weight, INDEX)
    assert (of_table[2] == 0).all()
    assert np.isinf(of_table[3, 0])


@pytest.mark.parametrize("wrong", [7, -1])
def test_wrong_indices_are_refused(wrong):
    index = INDEX.copy()
    index[1, 2] = wrong
    with pytest.raises(IndexError, match=str(wrong)):
        compiled_gradients(TABLE, WEIGHT, index)
