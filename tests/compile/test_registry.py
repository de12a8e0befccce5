"""Compiled code computes what the interpreter computes, over the whole registry.

Each sample of the conformance suite is built as a graph of placeholders and run by both. Operators
without a lowering run by their reference kernels, so they agree to the last bit; others to a few
units in the last place of the largest element.
"""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.compile.agreement import OPERATOR, assert_agree
from tests.ops import conformance as c
from weft.core.tensor import Tensor
from weft.core.tree import tree_leaves


def build(case, convert):
    """Return a session's graph of one sample, its fetches and its feeds."""
    feeds = {}

    def to_placeholder(array):
        symbol = wf.placeholder(array.shape, array.dtype)
        feeds[symbol] = array
        return symbol

    given = c.Arguments.of(case.drawn()).map(convert)
    with wf.Graph() as graph:
        result = given.map(to_placeholder).call(case.function)
    fetches = [y for y in tree_leaves(result) if isinstance(y, Tensor) and y.symbolic]
    return graph, fetches, feeds


def rounding_error(case, single, position):
    """Return how far a float32 result is from that in float64: what its condition allows."""
    if single.dtype != np.float32:
        return 0.0
    graph, fetches, feeds = build(case, np.copy)
    double = wf.Session(graph, compiled=False).run(fetches[position], feeds)
    with np.errstate(invalid="ignore"):  # inf - inf
        difference = np.abs(double.astype(np.float64) - single)
    return float(difference[np.isfinite(difference)].max(initial=0))


CASES = [case for case in c.cases() if not case.is_random]


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_compiled_equals_interpreted(case):
    for convert in (np.copy, c.to_single):
        try:
            graph, fetches, feeds = build(case, convert)
        except wf.WeftError as error:
            pytest.skip(f"not for graphs: {error}")
        if not fetches:
            pytest.skip("nothing to run")
        expected = wf.Session(graph, compiled=False).run(fetches, feeds)
        found = wf.Session(graph, compiled=True).run(fetches, feeds)
        for i, (a, b) in enumerate(zip(found, expected, strict=True)):
            assert_agree(a, b, OPERATOR, case.id, slack=4 * rounding_error(case, b, i))
