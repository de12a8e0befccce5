"""Kernel programs as text."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf


def text_of(function, *arrays):
    """Return the text of the program that a function of arrays becomes."""
    with wf.Graph() as graph:
        feeds = {wf.placeholder(a.shape, a.dtype, name=f"x{i}"): a for i, a in enumerate(arrays)}
        fetches = function(*feeds)
    session = wf.Session(graph, compiled=True)
    return repr(session.executable(fetches, feeds).program)


WIDE = np.ones((8, 5000), np.float32)  # of narrow ones, few rows are a row kernel
X, W, B = (np.ones(shape, np.float32) for shape in ((8, 20), (20, 30), (30,)))


def test_a_whole_program():
    assert text_of(lambda x, w, b: wf.relu(wf.nn.functional.linear(x, w.T, b)), X, W, B) == (
        "program of 1 kernel\n"
        "feed      float32[8, 20] %0 x0, float32[20, 30] %1 x1, float32[30] %2 x2\n"
        "arena     float32[8, 30] %3\n"
        "\n"
        "  0 gemm relu [8 x 30 x 20]\n"
        "      %3 = %0 @ %1 + %2\n"
        "      %3 = maximum(%3, 0.0)\n"
        "\n"
        "fetches   %3"
    )


LINES = {
    "elements": (lambda x: wf.exp(x) + x * 2.0, (X,), "= exp(%0) + (%0 * 2.0)"),
    "broadcast": (lambda x, r: x * r, (X, X[0]), "%2 = %0 * %1{0, 1}"),
    "slice": (lambda x: x[2:, :4] + 1.0, (X,), "= %0{20, 1}+40 + 1.0"),
    "rows": (lambda x: x.sum(axis=1), (X,), "%1{1, 0} = sum(%0)"),
    "columns": (lambda x: x.sum(axis=0), (WIDE,), "[8 x 5000], over 8: %1{0, 1} = sum(%0)"),
    "transposed": (lambda x, w: x @ w, (X, W.T.copy()[:20].T), "%2 = %0 @ %1"),
    "shared": (lambda x: wf.exp(x) * wf.exp(x), (X,), "t0 = exp(%0)"),
    "call": (lambda x: wf.sort(x, axis=1), (X,), "= sort(%0, 1, False, True)"),
    "scan": (lambda x: wf.cumsum(x, 0), (X,), "from c0 = 0.0"),
    "cast": (lambda x: x.astype(wf.int32), (X,), "%1 = int32(%0)"),
    "mask": (lambda x: wf.where(x > 0, x, 0.5), (X,), "select(%0 > 0.0, %0, 0.5)"),
}


@pytest.mark.parametrize("name", LINES)
def test_lines(name):
    function, arrays, wanted = LINES[name]
    found = text_of(function, *arrays)
    assert wanted in found, found


def test_what_is_done_again_refers_to_the_first():
    square = np.ones((20, 20), np.float32)
    found = text_of(lambda x, v, w: wf.relu(wf.relu(x @ v) @ w), square, square, square)
    assert "  1 gemm relu_1 [20 x 20 x 20]: as 0, with %4 %3 %2\n" in found


def test_control_flow():
    def function(x):
        carry, rows = wf.scan(lambda c, row: (c + row, c * row), x[0], x)
        return [wf.cond(carry.sum() > 0, lambda: rows * 2.0, lambda: rows)]

    found = text_of(function, X)
    assert "8 steps, index %" in found
    assert "window    float32[20] %" in found
    assert " if %" in found
    assert "      else\n" in found


def test_indices_and_states():
    weights = wf.tensor(X)
    with wf.Graph() as graph:
        index = wf.placeholder((3,), wf.int64)
        update = weights.assign(weights * 0.5)
        taken = wf.take(weights, index, axis=0)
    session = wf.Session(graph, compiled=True)
    program = session.executable([taken, update], {index: np.zeros(3, np.int64)}).program
    found = repr(program)
    assert "checked(%" in found
    assert "commits   %" in found
    assert "constant  int64[1] %" in found
