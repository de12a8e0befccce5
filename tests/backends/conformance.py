"""What every back end is held to: the results of the reference back end, operator by operator.

Samples are built into one graph, many at a time: compilers of devices take long to start.
"""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np
import pytest

import weft as wf
from tests.compile.agreement import OPERATOR, assert_agree
from tests.ops import conformance as c
from weft.core.tensor import Tensor
from weft.core.tree import tree_leaves
from weft.graph.special import SOURCES

BATCH = 24


class Sample(NamedTuple):
    """A sample of an operator in a graph: what is fetched of it, and how closely it must agree."""

    case: object
    fetches: list
    exact: bool


class Batch:
    """Samples of several operators as one graph."""

    def __init__(self, cases, convert):
        self.samples, self.feeds = [], {}
        with wf.Graph() as self.graph:
            for case in cases:
                self._add(case, convert)

    def _add(self, case, convert):
        before = len(self.graph.nodes)
        try:
            given = c.Arguments.of(case.drawn()).map(convert).map(self._placeholder)
            result = given.call(case.function)
        except wf.WeftError:  # not for graphs
            return
        fetches = [y for y in tree_leaves(result) if isinstance(y, Tensor) and y.symbolic]
        nodes = [node for node in self.graph.nodes[before:] if node.op not in SOURCES]
        self.samples.append(Sample(case, fetches, all(node.op.exact for node in nodes)))

    def _placeholder(self, array):
        symbol = wf.placeholder(array.shape, array.dtype)
        self.feeds[symbol] = array
        return symbol

    def run(self, device):
        """Return the results on a device, sample by sample, and the executable."""
        fetches = [y for sample in self.samples for y in sample.fetches]
        executable = wf.Session(self.graph, device=device).executable(fetches, self.feeds)
        arrays = [np.asarray(array, symbol.dtype) for symbol, array in self.feeds.items()]
        found = iter(executable.run(arrays))
        return [[to_array(next(found)) for _ in s.fetches] for s in self.samples], executable


def to_array(value):
    """Return a result as an array of the host."""
    return value if isinstance(value, np.ndarray) else value.to_host()


def assert_as_reference(batch, device):
    """Hold a back end's results against those of the reference; return the executable."""
    expected, _ = batch.run("reference")
    found, executable = batch.run(device)
    for sample, ours, theirs in zip(batch.samples, found, expected, strict=True):
        for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            slack = 4 * _rounding_error(sample.case, b, i)
            tolerance = None if sample.exact else OPERATOR
            assert_agree(a, b, tolerance, sample.case.id, slack=slack)
    return executable


def _rounding_error(case, single, position):
    from tests.compile.test_registry import rounding_error  # noqa: PLC0415  (it collects the cases)

    return rounding_error(case, single, position)


def names():
    """Return the devices to be held: that of WEFT_BACKEND, or all with memory of their own."""
    chosen = os.environ.get("WEFT_BACKEND")
    others = [str(d) for d in wf.devices() if str(d) not in ("cpu", "reference")]
    return [chosen] if chosen else others


def each_device():
    """Return what makes a test one of each device; it is skipped where there is none."""
    missing = pytest.mark.skip(reason="no device but the CPU is here")
    return pytest.mark.parametrize("device", names() or [pytest.param("none", marks=missing)])
