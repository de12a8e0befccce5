"""What every back end is held to: the results of the reference back end, operator by operator.

Samples are built into one graph, many at a time: compilers of devices take long to start.
"""

from __future__ import annotations

import os
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

import weft as wf
from tests.compile.agreement import OPERATOR, PROGRAM, assert_agree
from tests.graph.test_control_gradients import curvature, scalar
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

    tolerance = OPERATOR

    def __init__(self, cases, convert=np.copy):
        self.samples, self.feeds = [], {}
        self.convert = convert
        with wf.Graph() as self.graph:
            for case in cases:
                self._add(case)

    def _add(self, case):
        before = len(self.graph.nodes)
        try:
            given = c.Arguments.of(case.drawn()).map(self.convert).map(self._placeholder)
            fetches = self._results(case, given)
        except wf.WeftError:  # not for graphs
            return
        nodes = [node for node in self.graph.nodes[before:] if node.op not in SOURCES]
        self.samples.append(Sample(case, fetches, all(node.op.exact for node in nodes)))

    def _results(self, case, given):
        """Return what is fetched of a sample."""
        leaves = tree_leaves(given.call(case.function))
        return [y for y in leaves if isinstance(y, Tensor) and y.symbolic]

    def _placeholder(self, array):
        symbol = wf.placeholder(array.shape, array.dtype)
        self.feeds[symbol] = array
        return symbol

    def run(self, device, change=np.copy):
        """Return the results on a device, sample by sample, and the executable."""
        fetches = [y for sample in self.samples for y in sample.fetches]
        executable = wf.Session(self.graph, device=device).executable(fetches, self.feeds)
        arrays = [change(np.asarray(a, symbol.dtype)) for symbol, a in self.feeds.items()]
        found = iter(executable.run(arrays))
        return [[to_array(next(found)) for _ in s.fetches] for s in self.samples], executable

    def slack(self, sample, expected, position):
        """Return how far results may be apart beyond the tolerance: what their condition allows."""
        return 4 * _rounding_error(sample.case, expected, position)


class DerivativeBatch(Batch):
    """A number that follows from each sample, with its derivatives of first and second order."""

    tolerance = PROGRAM

    def __init__(self, cases):
        super().__init__([case for case in cases if case.drawn().grad > 0])
        self._nearby = None

    def _results(self, case, given):
        inputs = [x for x in _tensors(given) if x.dtype.kind == "f"]
        value = scalar(given.call(case.differentiated()))
        first = [g for g in wf.gradients(value, inputs) if g is not None]
        second = []
        if case.drawn().grad > 1 and first:
            second = [g for g in wf.gradients(curvature(first), inputs) if g is not None]
        return [value, *first, *second]

    def slack(self, sample, expected, position):
        """Return what results change by when each number that is fed is the next one."""
        if self._nearby is None:
            self._nearby = dict(
                zip(map(id, self.samples), self.run("reference", next_numbers)[0], strict=True)
            )
        return condition(self._nearby[id(sample)][position], expected)


def condition(nearby, expected):
    """Return how far a result may be off, by what it is when each number fed is the next one."""
    with np.errstate(invalid="ignore"):  # inf - inf
        change = np.abs(nearby - expected)
    return 16 * float(change[np.isfinite(change)].max(initial=0))


def next_numbers(array):
    """Return the floats that follow those of an array; other elements as they are."""
    return np.nextafter(array, np.inf) if array.dtype.kind == "f" else array


def _tensors(given):
    return [x for x in tree_leaves((given.args, given.kwargs)) if isinstance(x, Tensor)]


def to_array(value):
    """Return a result as an array of the host."""
    return value if isinstance(value, np.ndarray) else value.to_host()


def assert_as_reference(batch, device):
    """Hold a back end's results against those of the reference; return the executable."""
    failures, executable = differences(batch, device)
    if failures:
        raise ExceptionGroup("not as the reference", failures)
    return executable


def differences(batch, device):
    """Return what is not as the reference has it, an error for each sample, and the executable."""
    expected, _ = batch.run("reference")
    found, executable = batch.run(device)
    failures = []
    for sample, ours, theirs in zip(batch.samples, found, expected, strict=True):
        try:
            _assert_sample(batch, sample, ours, theirs)
        except AssertionError as error:
            failures.append(error)
    return failures, executable


def _assert_sample(batch, sample, ours, theirs):
    tolerance = None if sample.exact else batch.tolerance
    for i, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        try:
            assert_agree(a, b, tolerance, sample.case.id)
        except AssertionError:  # what the condition allows takes long to find
            slack = 0.0 if tolerance is None else batch.slack(sample, b, i)
            assert_agree(a, b, tolerance, sample.case.id, slack=slack)


def _rounding_error(case, single, position):
    from tests.compile.test_registry import rounding_error  # noqa: PLC0415  (it collects the cases)

    return rounding_error(case, single, position)


def names():
    """Return the devices to be held: that of WEFT_BACKEND, or all with memory of their own."""
    chosen = os.environ.get("WEFT_BACKEND")
    others = [str(d) for d in wf.devices() if str(d) not in ("cpu", "reference")]
    return [chosen] if chosen else others


@cache
def why_not(device):
    """Return why tests cannot run on a device; None if they can.

    A driver may be here that does not know the processor, and compiles nothing for it.
    """
    try:
        found = (wf.ones(2, device=device) + 1).tolist()
    except wf.WeftError as error:
        return f"{device}: {error}"
    return None if found == [2, 2] else f"{device} finds that 1 + 1 is {found[0]}"


def each_device():
    """Return what makes a test one of each device; it is skipped where there is none."""
    missing = pytest.mark.skip(reason="no device but the CPU is here")
    held = [pytest.param(name, marks=_skipped_if(why_not(name))) for name in names()]
    return pytest.mark.parametrize("device", held or [pytest.param("none", marks=missing)])


def _skipped_if(reason):
    """Return the mark of a test that a device cannot run; one that is named must run it."""
    chosen = os.environ.get("WEFT_BACKEND")
    return () if reason is None or chosen else pytest.mark.skip(reason=reason)
