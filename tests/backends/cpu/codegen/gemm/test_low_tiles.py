"""Rows that are left over by tiles of products whose rows only a run knows, by low tiles."""

from __future__ import annotations

import numpy as np
import pytest

from weft.backends.cpu.codegen.gemm.tile import low_rows
from weft.core.dim import run_time_size
from weft.core.dtype import float32, float64
from weft.core.op import F
from weft.graph.call import ProgramCall
from weft.graph.frontend import placeholder
from weft.graph.graph import Graph
from weft.graph.run import Program

DEPTH, COLUMNS = 200, 70  # panels of two vectors, of two that are not whole, and of one
MANY = 200  # columns for which rows that lie across are packed in stacks
ROWS = run_time_size("rows")
SHAPES = (
    (ROWS, DEPTH),
    (DEPTH, ROWS),
    (DEPTH, COLUMNS),
    (COLUMNS, DEPTH),
    (DEPTH, MANY),
    (COLUMNS,),
)


def program(make, dtype):
    """Return a program of x, of as many rows as a run has, and of more operands."""
    with Graph("product") as graph:
        feeds = [placeholder(shape, dtype) for shape in SHAPES]
        fetches = [y.value for y in make(F, *feeds)]
    return ProgramCall(Program(graph, fetches, [x.value for x in feeds]), "product")


def products(f, x, across, w, turned, wide, bias):
    along = f.matmul(x, w)
    return (
        along,
        f.matmul(x, f.transpose(turned)),
        f.tanh(along + bias),
        f.matmul(f.transpose(across), wide),
        f.matmul(turned, f.transpose(x)) + f.reshape(bias, (COLUMNS, 1)),
    )


def numbers(rows, dtype):
    """Return operands for so many rows."""
    rng = np.random.default_rng(rows)
    shapes = [[rows if n is ROWS else n for n in shape] for shape in SHAPES]
    return [rng.normal(0, 0.1, shape).astype(dtype) for shape in shapes]


@pytest.fixture(scope="module", params=[float32, float64], ids=str)
def call(request):
    return program(products, request.param), request.param


@pytest.mark.parametrize("rows", range(1, 53))
def test_products_of_any_number_of_rows(call, rows):
    run, dtype = call
    given = numbers(rows, dtype)
    exact = 1e-5 if dtype == float32 else 1e-12
    for y, wanted in zip(run.run(given), products(np, *given), strict=True):
        np.testing.assert_allclose(y, wanted, exact, exact)


def test_rows_are_the_same_whatever_tile_computes_them(call):
    run, dtype = call
    x, across, *given = numbers(48, dtype)
    whole = run.run([x, across, *given])
    for rows in range(25, 48):
        found = run.run([x[:rows], np.ascontiguousarray(across[:, :rows]), *given])
        for i in (0, 2, 3):
            assert np.array_equal(found[i], whole[i][:rows])


def test_low_tiles_keep_multipliers_busy():
    assert low_rows(12, 2) == 4
    assert low_rows(8, 2) == low_rows(6, 2) == 0  # two of them are no less
    assert low_rows(16, 1) == 0
    assert low_rows(9, 3) == 3
