"""Processes that share a batch draw what one process would draw for all rows."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.core.draw_rows import DrawRows, drawing_rows
from weft.nn import functional as F

DRAWS = {
    "dropout": lambda n: F.dropout(wf.ones(n, 16), 0.5),
    "dropout of few": lambda n: F.dropout(wf.ones(n, 3), 0.5),
    "channels": lambda n: F.dropout2d(wf.ones(n, 3, 2, 2), 0.5),
    "time first": lambda n: F.dropout(wf.ones(5, n, 3), 0.5),
    "normal": lambda n: wf.randn(n, 8),
    "double": lambda n: wf.rand(n, 3, dtype=wf.float64),
    "bernoulli": lambda n: wf.bernoulli(wf.full((n, 4), 0.3)),
    "integers": lambda n: wf.randint(0, 9, (n, 5)),
}


def whole_and_parts(draw, parts, batch):
    wf.manual_seed(7)
    whole = draw(parts * batch).numpy()
    after = wf.rand(2).numpy()
    found = []
    for index in range(parts):
        wf.manual_seed(7)
        with drawing_rows(DrawRows(index, parts, batch)):
            found.append(draw(batch).numpy())
        np.testing.assert_array_equal(wf.rand(2).numpy(), after)  # all count alike
    return whole, found


@pytest.mark.parametrize("parts", [1, 2, 3])
@pytest.mark.parametrize("name", DRAWS)
def test_rows_are_those_of_the_whole(name, parts):
    whole, found = whole_and_parts(DRAWS[name], parts, 4)
    axis = 1 if name == "time first" else 0
    np.testing.assert_array_equal(np.concatenate(found, axis), whole)


def test_what_is_not_for_rows_is_the_same_for_all():
    whole, found = whole_and_parts(lambda n: wf.rand(7), 2, 4)
    assert all(np.array_equal(part, whole) for part in found)


def test_in_graphs_and_jitted_functions():
    rows = DrawRows(1, 2, 4)

    def draw(x):
        with drawing_rows(rows):
            return F.dropout(x, 0.5) + wf.rand_like(x)

    x = wf.ones(4, 8)
    wf.manual_seed(7)
    expected = [draw(x).numpy() for _ in range(2)]
    wf.manual_seed(7)
    jitted = wf.jit(draw)
    for one in expected:
        np.testing.assert_array_equal(jitted(x).numpy(), one)
    wf.manual_seed(7)
    with wf.Graph() as graph:
        fed = wf.placeholder((4, 8), "float32")
        drawn = draw(fed)
    session = wf.Session(graph)
    for one in expected:
        np.testing.assert_array_equal(session.run(drawn, {fed: x}), one)
