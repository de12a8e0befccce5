"""Record functions, roll the loops in what came of it, and hold both against each other."""

from __future__ import annotations

import numpy as np

import weft as wf
from weft.core.modes import current_tracer
from weft.core.tree import tree_leaves
from weft.graph.control.ops import SCAN
from weft.graph.run import Program
from weft.graph.verify import verify
from weft.passes import roll

from .helpers import ops

RNG = np.random.default_rng(0)
F = wf.nn.functional
T = 16


def data(*shape):
    return RNG.normal(size=shape)


def recorded(fn, *arrays):
    """Return a function of arrays as a graph, its results and its inputs."""
    with wf.Graph() as graph:
        inputs = [wf.placeholder(a.shape, a.dtype) for a in arrays]
        made = [current_tracer().value_of(y) for y in tree_leaves(fn(*inputs))]
    return graph, made, [x.value for x in inputs]


def run(graph, fetches, feeds, arrays):
    wf.manual_seed(7)
    return Program(graph, fetches, feeds).run(arrays)


def rolled(fn, *arrays, **options):
    """Return the rolled graph of a function, which must give the very bits of the recorded one."""
    graph, results, feeds = recorded(fn, *arrays)
    made = roll(graph, results, **options)
    verify(made)
    expected, found = run(graph, results, feeds, arrays), run(made, made.outputs, feeds, arrays)
    for a, b in zip(found.fetched, expected.fetched, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    assert [state.key for state, _ in found.commits] == [state.key for state, _ in expected.commits]
    for (_, a), (_, b) in zip(found.commits, expected.commits, strict=True):
        np.testing.assert_array_equal(a, b)
    return made


def scans(graph):
    return [node for node in graph if node.op is SCAN]


def inside(node):
    return ops(node.attrs[0])


def steps(x, h):
    outs = []
    for t in range(T):
        h = wf.tanh(x[t] + h * 0.5 - 0.1) + h
        outs.append(h)
    return outs
