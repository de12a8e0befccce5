"""Kernels with operands that lie turned, backwards or with gaps, against NumPy."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import weft as wf
from tests.threads import assert_same_bits_on_threads

SIZES = [(1, 1), (3, 7), (7, 3), (17, 17), (8, 300), (300, 9), (33, 1025), (1003, 66)]
DTYPES = ["float32", "float64", "int32", "bool"]

# Of x (n, m), y (m, n) and z (n, 3 m): what is computed, with either library.
EVERY_DTYPE = {
    "turned": lambda lib, x, y, z: lib.where(x, y.T, x),
    "turned twice": lambda lib, x, y, z: lib.logical_or(y.T, lib.flip(y.T, (0,))),
    "turned alike": lambda lib, x, y, z: lib.logical_xor(y, x.T),
    "backwards": lambda lib, x, y, z: lib.logical_xor(lib.flip(x, (1,)), x),
    "backwards both ways": lambda lib, x, y, z: lib.logical_and(lib.flip(x, (0, 1)), x),
    "backwards and turned": lambda lib, x, y, z: lib.where(x, lib.flip(y, (0,)).T, x),
    "gaps of two": lambda lib, x, y, z: lib.logical_or(z[:, : 2 * x.shape[1] : 2], x),
    "gaps of three": lambda lib, x, y, z: lib.where(x, z[:, 1::3], x),
}
NUMBERS = {
    "sum of rows": lambda lib, x, y, z: (x * y.T).sum(1),
    "sum of columns": lambda lib, x, y, z: (x * y.T).sum(0),
    "sum of rows backwards": lambda lib, x, y, z: (lib.flip(x, (1,)) * x).sum(1),
    "sum of all": lambda lib, x, y, z: (x + y.T + z[:, ::3]).sum(),
    "maximum": lambda lib, x, y, z: lib.flip(x + y.T, (1,)).max(1),
    "passes": lambda lib, x, y, z: (x - y.T) - (x + y.T).max(1, keepdims=True),
}
FLOATS = {
    "functions": lambda lib, x, y, z: lib.exp(-x * x) * y.T + lib.flip(x, (1,)),
    "softmax": lambda lib, x, y, z: _softmax(lib, x + y.T),
}


def _softmax(lib, x):
    e = lib.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def arrays(shape, dtype):
    n, m = shape
    rng = np.random.default_rng(n + m)
    shapes = [(n, m), (m, n), (n, 3 * m)]
    return [rng.integers(-3, 4, s).astype(dtype) for s in shapes]


def program(function, operands):
    with wf.Graph() as graph:
        feeds = {wf.placeholder(a.shape, a.dtype): a for a in operands}
        fetch = function(wf, *feeds)
    return graph, [fetch], feeds


def assert_as_numpy(function, shape, dtype):
    operands = arrays(shape, dtype)
    graph, fetches, feeds = program(function, operands)
    (found,) = wf.Session(graph, compiled=True).run(fetches, feeds)
    expected = function(np, *operands)
    tolerance = {"float32": 1e-5, "float64": 1e-12}.get(dtype, 0)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def in_turn(names, dtypes):
    """Return names, sizes and dtypes, half of them in long runs only: each is compiled."""
    every = product(enumerate(names), enumerate(SIZES), enumerate(dtypes))
    params = [
        pytest.param(
            *(name, shape, dtype),
            id=f"{name}-{shape}-{dtype}",
            marks=pytest.mark.long if (i + j + k) % 2 else (),
        )
        for (i, name), (j, shape), (k, dtype) in every
    ]
    return pytest.mark.parametrize(("name", "shape", "dtype"), params)


@in_turn(EVERY_DTYPE, DTYPES)
def test_elements(name, shape, dtype):
    function = EVERY_DTYPE[name]
    assert_as_numpy(lambda lib, *xs: function(Truths(lib), *xs), shape, dtype)


class Truths:
    """A library whose conditions take numbers of any kind."""

    def __init__(self, lib):
        self.flip = lib.flip
        self.where = lambda c, a, b: lib.where(c != 0, a, b)
        self.logical_or = lambda a, b: (a != 0) | (b != 0)
        self.logical_and = lambda a, b: (a != 0) & (b != 0)
        self.logical_xor = lambda a, b: (a != 0) ^ (b != 0)


@in_turn(NUMBERS, ["float32", "float64", "int32"])
def test_reductions(name, shape, dtype):
    assert_as_numpy(NUMBERS[name], shape, dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SIZES, ids=str)
@pytest.mark.parametrize("name", FLOATS)
def test_functions(name, shape, dtype):
    assert_as_numpy(FLOATS[name], shape, dtype)


@pytest.mark.parametrize("name", [*NUMBERS, *FLOATS])
def test_threads_do_not_change_a_bit(name):
    function = {**NUMBERS, **FLOATS}[name]
    assert_same_bits_on_threads(*program(function, arrays((517, 263), "float32")))


@pytest.mark.parametrize("axes", [(0, 2, 1), (2, 1, 0), (1, 2, 0), (2, 0, 1), (1, 0, 2)], ids=str)
def test_axes_in_any_order(axes):
    rng = np.random.default_rng(0)
    y = rng.normal(size=(19, 33, 42)).astype("float32")
    x = rng.normal(size=[y.shape[a] for a in axes]).astype("float32")
    graph, fetches, feeds = program(lambda lib, x, y: x * lib.transpose(y, axes), [x, y])
    (found,) = wf.Session(graph, compiled=True).run(fetches, feeds)
    np.testing.assert_array_equal(found, x * y.transpose(axes))
