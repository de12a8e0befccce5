"""Exported libraries give the bits that Python gives, over the whole registry.

Samples of the conformance suite are put into a few graphs, many in each: a library is made of each
graph, and its outputs are compared with those of a session that runs the graph compiled.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

import weft as wf
from tests.exported import Model
from tests.ops import conformance as c
from weft.compiler.stages import plan_program
from weft.core.dim import is_known
from weft.core.tensor import Tensor
from weft.core.tree import tree_leaves
from weft.graph.run import Program
from weft.lower.kernels import CallKernel, walk

MANY = 40
CASES = list(c.cases())
FIRST = [*{case.name: case for case in CASES[::-1]}.values()]

# What passes make of one operator of the graph, so that other work is done while it waits.
PARTS = {"exchange_start": "exchange", "exchange_wait": "exchange"}

pytestmark = pytest.mark.skipif(os.name != "posix", reason="libraries are for Linux")


def groups(cases):
    return [cases[i : i + MANY] for i in range(0, len(cases), MANY)]


def built(cases, convert):
    """Return a graph of samples, its fetches and its feeds."""
    feeds, fetches = {}, []

    def to_placeholder(array):
        symbol = wf.placeholder(array.shape, array.dtype)
        feeds[symbol] = array
        return symbol

    with wf.Graph() as graph:
        for case in cases:
            given = c.Arguments.of(case.drawn()).map(convert)
            try:
                result = given.map(to_placeholder).call(case.function)
            except wf.WeftError:
                continue  # not for graphs
            fetches += [y for y in tree_leaves(result) if isinstance(y, Tensor) and y.symbolic]
    return graph, fetches, feeds


def exportable(session, fetches, feeds):
    """Return fetches whose program calls nothing from Python, and what they need."""
    while True:
        needed = set(session.graph.ancestors([fetch.value for fetch in fetches]))
        given = {symbol: array for symbol, array in feeds.items() if symbol.value.node in needed}
        called = called_from_python(session.graph, fetches, given) if fetches else set()
        if not called:
            return fetches, given
        kept = [fetch for fetch in fetches if not called & operators(session.graph, fetch)]
        assert len(kept) < len(fetches), f"{called} are called, but no fetch has them"
        fetches = kept


def called_from_python(graph, fetches, feeds):
    """Return the operators that a program calls, as it is planned: no code is made for that."""
    fed = [symbol.value for symbol in feeds]
    program = Program(graph, [fetch.value for fetch in fetches], fed)
    planned = plan_program(program, {value: value.shape for value in fed})
    calls = [k for k in walk(planned.program.kernels) if isinstance(k, CallKernel)]
    names = {planned.sources.origins(kernel)[0].op.name for kernel in calls}
    return {PARTS.get(name, name) for name in names}


def operators(graph, fetch):
    return {node.op.name for node in graph.ancestors([fetch.value])}


def assert_same_bits(cases, convert, folder):
    graph, fetches, feeds = built(cases, convert)
    session = wf.Session(graph, compiled=True)
    wanted, given = exportable(session, [y for y in fetches if is_static(y)], feeds)
    if not wanted:
        return 0
    session.export(folder / "operators.so", wanted, given)
    found = Model(str(folder / "operators.so"))(*given.values())
    expected = session.run(wanted, given)
    for fetch, a, b in zip(wanted, found, expected, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), fetch
        assert a.tobytes() == np.ascontiguousarray(b).tobytes(), fetch
    return len(wanted)


def is_static(symbol):
    nodes = symbol.graph.ancestors([symbol.value])
    return all(is_known(value.shape) for node in nodes for value in node.outputs)


def test_one_sample_of_each_operator(tmp_path):
    compared = 0
    for i, cases in enumerate(groups(FIRST)):
        folder = tmp_path / str(i)
        folder.mkdir()
        compared += assert_same_bits(cases, c.to_single, folder)
    assert compared > 200


@pytest.mark.long
@pytest.mark.parametrize("number", range(len(groups(CASES))))
@pytest.mark.parametrize("convert", [np.copy, c.to_single])
def test_every_sample(number, convert, tmp_path):
    assert_same_bits(groups(CASES)[number], convert, tmp_path)
