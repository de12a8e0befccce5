"""Reductions over any axes, taken apart and compiled, against the interpreter."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pytest

import weft as wf
from weft.lower import reductions
from weft.lower.reductions import split_reductions, two_steps

FLOATS = ("sum", "mean", "max", "min", "any", "all", "var", "std", "logsumexp")
SHAPES = [(1,), (3,), (1000,), (70_001,), (4, 5), (7, 1), (100, 64), (2, 40_000), (8, 3, 70)]
SHAPES += [(2, 3, 4, 5), (20, 70_000), (16, 1, 3)]


@pytest.mark.parametrize(
    ("axes", "shape", "expected"),
    [
        ((1,), (4, 5), None),
        ((0,), (4, 5), None),
        ((1,), (4, 5, 6), None),
        ((0, 2, 3), (2, 3, 4, 5), ((2, 3), (0,))),
        ((0, 2), (2, 3, 1), None),
        ((0, 1), (100, 64), ((1,), (0,))),
        ((0, 1), (100, 8), None),
        ((0, 1), (2, 4000), ((1,), (0,))),
        ((0, 1), (1, 4000), None),
    ],
)
def test_two_steps(axes, shape, expected):
    assert two_steps(axes, shape) == expected


def axes_of(shape):
    ndim = len(shape)
    return [None, *chain(*(combinations(range(ndim), n) for n in range(1, ndim + 1)))]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
def test_every_axis(shape, dtype):
    array = (np.random.default_rng(0).normal(size=shape) * 3).astype(dtype)
    with wf.Graph() as graph:
        x = wf.placeholder(shape, dtype)
        made = {}
        for axis in axes_of(shape):
            for name in FLOATS if dtype.startswith("float") else FLOATS[:6]:
                made[name, axis] = getattr(wf, name)(x, axis=axis)
                made[name, axis, True] = getattr(wf, name)(x, axis=axis, keepdims=True)
        for axis in (None, *range(len(shape))):
            made["argmax", axis] = wf.argmax(x, axis=axis)
            made["argmin", axis] = wf.argmin(x, axis=axis)
    expected = wf.Session(graph, compiled=False).run(made, {x: array})
    found = wf.Session(graph, compiled=True).run(made, {x: array})
    tolerance = 1e-10 if dtype == "float64" else 2e-5
    for key, value in expected.items():
        assert found[key].dtype == value.dtype, key
        np.testing.assert_allclose(
            found[key], value, rtol=tolerance, atol=tolerance, err_msg=str(key)
        )


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("shape", [(5, 70), (40_000,), (3, 4, 5)], ids=str)
def test_special_values(special, shape):
    array = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    array.flat[[3, 17]] = special
    with wf.Graph() as graph:
        x = wf.placeholder(shape, wf.float32)
        names = ("sum", "max", "min", "mean", "logsumexp", "var")
        made = {(name, axis): getattr(wf, name)(x, axis=axis) for name in names for axis in (0, -1)}
        made["argmax"] = wf.argmax(x, axis=-1)
        made["argmin"] = wf.argmin(x)
    expected = wf.Session(graph, compiled=False).run(made, {x: array})
    found = wf.Session(graph, compiled=True).run(made, {x: array})
    for key, value in expected.items():
        np.testing.assert_allclose(found[key], value, rtol=2e-5, atol=2e-5, err_msg=str(key))


@pytest.mark.parametrize("shape", [(8, 100), (12, 3, 70), (9, 100)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("function", [wf.sum, wf.mean])
def test_arrays_in_memory_are_summed_from_several_places(function, dtype, shape, monkeypatch):
    monkeypatch.setattr(reductions, "STREAMED_FROM", 0)
    values = np.random.default_rng(0).integers(-9, 9, shape).astype(dtype)
    with wf.Graph() as graph:
        x = wf.placeholder(shape, dtype)
        y = function(x.to(wf.float64) if dtype is np.int64 else x)
    found = wf.Session(graph, compiled=True).run(y, {x: values})
    expected = wf.Session(graph, compiled=False).run(y, {x: values})
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def shares_over(axis, other):
    def function(x):
        e = wf.exp(x - wf.max(x, axis=axis, keepdims=True))
        return e / wf.sum(e, axis=other, keepdims=True)

    return function


@pytest.mark.parametrize(
    ("function", "divides"),
    [
        (wf.softmax, False),
        (shares_over(0, 0), False),
        (shares_over(0, 1), True),
        (lambda x: x / wf.sum(wf.exp(x), axis=-1, keepdims=True), True),
        (lambda x: x / wf.sum(x, axis=-1, keepdims=True), True),
    ],
)
def test_shares_of_a_softmax_are_products(function, divides):
    """Only a sum that is surely neither tiny nor huge is inverted."""
    with wf.Graph() as graph:
        y = function(wf.placeholder((4, 5), wf.float32))
    made = split_reductions(graph, [y])
    assert ("div" in {node.op.name for node in made.nodes}) == divides


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-6), (np.float64, 4e-15)])
@pytest.mark.parametrize("shape", [(3, 1), (5, 3), (70, 1000)])
def test_softmax_is_accurate(shape, dtype, tolerance):
    array = np.random.default_rng(0).normal(size=shape).astype(dtype)
    with wf.Graph() as graph:
        x = wf.placeholder(shape, dtype)
        y = wf.softmax(x, -1)
    found = wf.Session(graph, compiled=True).run(y, {x: array})
    exact = np.exp(array.astype(np.longdouble))
    exact /= exact.sum(-1, keepdims=True)
    np.testing.assert_allclose(found, exact, rtol=tolerance)


@pytest.mark.parametrize("row", [[np.inf, 1.0], [np.nan, 1.0], [-np.inf, -np.inf], [-np.inf, 1.0]])
def test_softmax_of_special_values(row):
    array = np.array([row], np.float32)
    with wf.Graph() as graph:
        x = wf.placeholder(array.shape, wf.float32)
        y = wf.softmax(x, -1)
    with np.errstate(invalid="ignore"):
        expected = wf.Session(graph, compiled=False).run(y, {x: array})
    np.testing.assert_array_equal(wf.Session(graph, compiled=True).run(y, {x: array}), expected)


def test_sums_over_axes_that_a_reshape_divided():
    """They are computed where the rows are, in one kernel with these."""

    def function(x):
        rows = wf.softmax(x, -1)
        return rows, rows.reshape((5, 14, 70)).sum((0, 1)), rows.reshape((70, 7, 10)).sum((0, 1))

    array = np.random.default_rng(0).normal(size=(70, 70)).astype(np.float32)
    with wf.Graph() as graph:
        x = wf.placeholder(array.shape, array.dtype)
        made = function(x)
    session = wf.Session(graph)
    found = session.run(made, {x: array})
    for a, b in zip(found, wf.Session(graph, compiled=False).run(made, {x: array}), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    kernels = session.executable(made, {x: array}).program.kernels
    assert sum(kernel.loops == (70, 70) for kernel in kernels) == 1
