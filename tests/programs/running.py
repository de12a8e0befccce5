"""Run a function of tensors compiled, at one and at two threads, and by the interpreter."""

from __future__ import annotations

import numpy as np

import weft as wf
from tests.threads import num_threads
from weft.core.tree import tree_leaves


def run_both(function, *arrays):
    """Return what compiled code and the interpreter give, and the operators that ran as library.

    Compiled results must be the same bits at one and at two threads.
    """
    graph, fetches, feeds = build(function, *arrays)
    expected = wf.Session(graph, compiled=False).run(fetches, feeds)
    found = at_threads(1, graph, fetches, feeds)
    for a, b in zip(found, at_threads(2, graph, fetches, feeds), strict=True):
        np.testing.assert_array_equal(a, b)
    library = wf.Session(graph).executable(fetches, feeds).stats()["library"]
    return found, expected, library


def build(function, *arrays):
    """Return a graph of a function, what to fetch and what to feed."""
    with wf.Graph() as graph:
        symbols = [wf.placeholder(array.shape, array.dtype) for array in arrays]
        fetches = tree_leaves(function(*symbols))
    return graph, fetches, dict(zip(symbols, arrays, strict=True))


def at_threads(count, graph, fetches, feeds):
    """Return the results of compiled code with so many threads."""
    with num_threads(count):
        executable = wf.Session(graph).executable(fetches, feeds)
        return executable.run([feeds[symbol] for symbol in feeds])


def check_native(function, *arrays, tolerance=0.0):
    """Check that a function runs wholly in code and gives what the interpreter gives."""
    found, expected, library = run_both(function, *arrays)
    assert library == []
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        scale = float(np.abs(b[np.isfinite(b)]).max(initial=1)) if b.dtype.kind == "f" else 1
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)
