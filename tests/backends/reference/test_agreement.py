"""The kernels of random programs and of control flow, run by NumPy, give what eager mode gives."""

from __future__ import annotations

import pytest

import weft as wf
from tests.backends.reference.running import run_reference
from tests.compile.agreement import PROGRAM, assert_agree
from tests.compile.test_fuzz import assert_right, calls_of
from tests.graph.test_control_gradients import W, X
from tests.programs.control_flow import PROGRAMS
from tests.programs.loops import LoopProgram
from tests.programs.mixed import MixedProgram

LOOPS = {"float32": 2e-4, "float64": 1e-9}


def assert_reference_agrees(graph, fetches, feeds, exact, tolerance):
    """Hold the kernels of a program, run by NumPy, against the graph, run node by node."""
    expected = wf.Session(graph, compiled=False).run(fetches, feeds)
    found = run_reference(wf.Session(graph), fetches, feeds)
    for a, b, is_exact in zip(found, expected, exact, strict=False):
        assert_agree(a, b, None if is_exact else tolerance)


@pytest.mark.parametrize("seed", range(40))
def test_mixed_graphs(seed):
    program = MixedProgram(seed, 1 + seed % 16)
    exact = [kept.exact for kept in program.fetched]
    assert_reference_agrees(program.graph, program.fetches, program.feeds, exact, PROGRAM)


@pytest.mark.parametrize("seed", range(20))
def test_random_loops(seed):
    program = LoopProgram(seed)
    exact = [False] * len(program.fetches)
    assert_reference_agrees(program.graph, program.fetches, program.feeds, exact, LOOPS)


@pytest.mark.parametrize("fn", PROGRAMS, ids=lambda fn: fn.__name__)
def test_control_flow(fn):
    with wf.Graph() as graph:
        x, w = wf.placeholder(X.shape, X.dtype), wf.placeholder(W.shape, W.dtype)
        results = list(wf.core.tree.flatten(fn(x, w))[0])
    exact = [False] * len(results)
    assert_reference_agrees(graph, results, {x: X, w: W}, exact, LOOPS)


@pytest.mark.parametrize("seed", range(20))
def test_random_calls(seed):
    calls, feeds, fetches = calls_of(seed), {}, []
    with wf.Graph() as graph:
        for call in calls:
            symbols = [wf.placeholder(x.shape, x.dtype) for x in call.operands]
            feeds.update(zip(symbols, call.operands, strict=True))
            fetches.append(call.of_tensors(*symbols))
    for call, found in zip(calls, run_reference(wf.Session(graph), fetches, feeds), strict=True):
        assert_right(call, found, "reference")
