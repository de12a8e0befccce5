"""Run a function of tensors eagerly and as a graph, and compare."""

from __future__ import annotations

import numpy as np

import weft as wf
from weft.core.tree import flatten


def arrays_of(tree):
    """Return a tree of tensors as a tree of arrays."""
    leaves, structure = flatten(tree)
    return structure.unflatten(leaf.numpy() for leaf in leaves)


def eager(fn, *arrays):
    """Return fn of the arrays as tensors, as a tree of arrays."""
    return arrays_of(fn(*map(wf.tensor, arrays)))


def static(fn, *arrays, unknown=()):
    """Return the same by a graph; `unknown` axes of all placeholders have no size."""
    with wf.Graph() as graph:
        symbols = [placeholder_for(a, unknown, f"x{i}") for i, a in enumerate(arrays)]
        fetches = fn(*symbols)
    return wf.Session(graph).run(fetches, dict(zip(symbols, arrays, strict=True)))


def placeholder_for(array, unknown=(), name=None):
    """Return a placeholder that can be fed with an array."""
    array = np.asarray(array)
    shape = tuple(None if i in unknown else n for i, n in enumerate(array.shape))
    return wf.placeholder(shape, array.dtype, name=name)


def assert_same(found, expected):
    """Assert that two trees of arrays have the same structure and the same bits."""
    b, form = flatten(expected)
    a = form.flatten_like(found)
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y, strict=True)


def assert_close(found, expected, tolerance=1e-12):
    """Assert that two trees of arrays agree to a relative tolerance."""
    b, form = flatten(expected)
    a = form.flatten_like(found)
    for x, y in zip(a, b, strict=True):
        assert np.shape(x) == np.shape(y)
        scale = float(np.abs(y).max(initial=0)) or 1.0
        np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * scale)


def assert_graph_equals_eager(fn, *arrays, unknown=()):
    """Assert that a function gives the same bits in both modes; return them."""
    expected = eager(fn, *arrays)
    assert_same(static(fn, *arrays, unknown=unknown), expected)
    return expected
