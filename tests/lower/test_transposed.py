"""Operands of long rows that lie transposed are copied before kernels that reduce the rows."""

import numpy as np
import pytest

import weft as wf
from weft.lower.transposed import LONG_ROW


def compiled(function, *shapes):
    rng = np.random.default_rng(0)
    with wf.Graph() as graph:
        feeds = {wf.placeholder(s, "float64"): rng.normal(size=s) for s in shapes}
        out = function(*feeds)
    session = wf.Session(graph, compiled=True)
    return session.executable(out, feeds).program, session.run(out, feeds), list(feeds.values())


def test_long_rows_are_copied():
    shape = (20, LONG_ROW + 1)
    program, found, (x, y) = compiled(lambda x, y: (x * y.T).sum(1), shape, shape[::-1])
    assert len(program.kernels) == 2
    np.testing.assert_allclose(found, (x * y.T).sum(1), atol=1e-9)


def test_what_is_repeated_is_copied_once():
    n, m = 20, LONG_ROW + 1
    program, found, (x, y) = compiled(lambda x, y: (x * y.T).sum(2), (3, n, m), (m, n))
    (copy,) = [b for b in program.used_buffers if b.name.startswith("copy of")]
    assert copy.size == n * m
    np.testing.assert_allclose(found, (x * y.T).sum(2), atol=1e-9)


def test_there_is_room_for_some_elements_of_all_turned_operands():
    shape = (LONG_ROW // 2 + 1, 20)
    program, found, (x, y) = compiled(lambda x, y: (x.T * y.T).sum(1), shape, shape)
    assert len(program.kernels) == 3
    np.testing.assert_allclose(found, (x * y).sum(0), atol=1e-9)


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (lambda x, y: (x * y.T).sum(1), [(20, LONG_ROW), (LONG_ROW, 20)]),
        (lambda x, y: (x * y.T).sum(1), [(7, LONG_ROW + 1), (LONG_ROW + 1, 7)]),
        (lambda x, y: x * y.T, [(20, 2 * LONG_ROW), (2 * LONG_ROW, 20)]),
        (lambda x, y: (x * y).sum(1), [(20, 2 * LONG_ROW), (20, 2 * LONG_ROW)]),
    ],
    ids=["short rows", "few rows", "no reduction", "in order"],
)
def test_others_are_not(function, shapes):
    program, found, arrays = compiled(function, *shapes)
    assert len(program.kernels) == 1
    np.testing.assert_allclose(found, function(*arrays), atol=1e-9)
