"""Rows that are left over by tiles of products whose rows only a run knows, by low tiles."""

from __future__ import annotations

import numpy as np
import pytest

from weft.backends.cpu.codegen.gemm.tile import low_rows
from weft.core.dim import run_time_size
from weft.core.dtype import float32
from weft.core.op import F
from weft.graph.call import ProgramCall
from weft.graph.frontend import placeholder
from weft.graph.graph import Graph
from weft.graph.run import Program

DEPTH, COLUMNS = 200, 70  # panels of two vectors, of two that are not whole, and of one


def program(make):
    """Return a program of x, of as many rows as a run has, and of more operands."""
    rows = run_time_size("rows")
    with Graph("product") as graph:
        shapes = (rows, DEPTH), (DEPTH, COLUMNS), (COLUMNS, DEPTH), (COLUMNS,)
        feeds = [placeholder(shape, float32) for shape in shapes]
        fetches = [y.value for y in make(*feeds)]
    return ProgramCall(Program(graph, fetches, [x.value for x in feeds]), "product")


def products(x, w, turned, bias):
    along = F.matmul(x, w)
    return along, F.matmul(x, F.transpose(turned)), F.tanh(along + bias)


@pytest.fixture(scope="module")
def call():
    return program(products)


@pytest.mark.parametrize("rows", range(1, 53))
def test_products_of_any_number_of_rows(call, rows):
    rng = np.random.default_rng(rows)
    shapes = (rows, DEPTH), (DEPTH, COLUMNS), (COLUMNS, DEPTH), (COLUMNS,)
    x, w, turned, bias = (rng.normal(0, 0.1, shape).astype(np.float32) for shape in shapes)
    found = call.run([x, w, turned, bias])
    expected = x @ w, x @ turned.T, np.tanh(x @ w + bias)
    for y, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-5)


def test_rows_are_the_same_whatever_tile_computes_them(call):
    rng = np.random.default_rng(0)
    shapes = (48, DEPTH), (DEPTH, COLUMNS), (COLUMNS, DEPTH), (COLUMNS,)
    x, w, turned, bias = (rng.normal(0, 0.1, shape).astype(np.float32) for shape in shapes)
    whole = call.run([x, w, turned, bias])[0]
    for rows in range(25, 48):
        assert np.array_equal(call.run([x[:rows], w, turned, bias])[0], whole[:rows])


def test_low_tiles_keep_multipliers_busy():
    assert low_rows(12, 2) == 4
    assert low_rows(8, 2) == low_rows(6, 2) == 0  # two of them are no less
    assert low_rows(16, 1) == 0
    assert low_rows(9, 3) == 3
