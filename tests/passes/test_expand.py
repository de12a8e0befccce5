"""Operators in others: what a rule says is what the operator computes."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.compile.agreement import OPERATOR, assert_agree
from tests.ops import conformance as c
from weft.core.op import registry
from weft.core.tensor import Tensor
from weft.core.tree import tree_leaves
from weft.graph.run import Program
from weft.passes.expand import expand
from weft.passes.specialize import specialize

EXPANDED = sorted(name for name, op in registry.items() if op.expand_rule is not None)
CASES = [case for case in c.cases() if case.id.rpartition("-")[0] in EXPANDED]


def of_each(cases):
    """Return the first sample of each operator: it has elements."""
    found = {}
    for case in cases:
        found.setdefault(case.id.rpartition("-")[0], case)
    return list(found.values())


def assert_expands(case):
    """Hold what a rule says against what the operator computes."""
    feeds = {}

    def placeholder(array):
        symbol = wf.placeholder(array.shape, array.dtype)
        feeds[symbol] = array
        return symbol

    with wf.Graph() as graph:
        result = c.Arguments.of(case.drawn()).map(np.copy).map(placeholder).call(case.function)
    fetches = [y for y in tree_leaves(result) if isinstance(y, Tensor) and y.symbolic]
    program = Program(graph, [y.value for y in fetches], [x.value for x in feeds])
    static = specialize(program, {x.value: x.shape for x in feeds})
    made = expand(static)
    arrays = list(feeds.values())
    expected = wf.Session(graph, compiled=False).run(fetches, feeds)
    found = Program(made, made.outputs, made.inputs).run(arrays).fetched
    for a, b in zip(found, expected, strict=True):
        assert_agree(a, b, OPERATOR, case.id)


@pytest.mark.parametrize("case", of_each(CASES), ids=lambda case: case.id)
def test_one_sample_of_each(case):
    assert_expands(case)


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_all_samples(case):
    assert_expands(case)


def test_bodies_of_loops_are_expanded_too():
    with wf.Graph() as graph:
        x = wf.placeholder((3,), wf.float64)
        y = wf.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, wf.lgamma(s[1])), (0, x))[1]
    program = Program(graph, [y.value], [x.value])
    made = expand(specialize(program, {x.value: (3,)}))
    assert "F.lgamma(" in str(graph)
    assert "F.lgamma(" not in str(made)
    array = np.array([3.5, 4.0, 9.0])
    (found,) = Program(made, made.outputs, made.inputs).run([array]).fetched
    np.testing.assert_allclose(found, wf.lgamma(wf.lgamma(wf.tensor(array))).numpy(), rtol=1e-12)


def test_nothing_to_expand_is_the_same_graph():
    with wf.Graph() as graph:
        x = wf.placeholder((3,))
        y = wf.exp(x)
    graph.outputs = [y.value]
    assert expand(graph) is graph


def test_rules_see_what_they_cannot_expand():
    """Sizes that are zero, and orders whose coefficients overflow, are left to the kernel."""
    for build, shape in ((wf.lgamma, (0,)), (lambda x: wf.polygamma(400, x), (2,))):
        with wf.Graph() as graph:
            x = wf.placeholder(shape, wf.float64)
            y = build(x)
        graph.outputs = [y.value]
        assert expand(graph) is graph
