"""All programs that back ends are held to the reference in, by kinds and numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

import weft as wf
from tests.backends.conformance import (
    Batch,
    DerivativeBatch,
    condition,
    differences,
    next_numbers,
    to_array,
)
from tests.compile.agreement import PROGRAM, assert_agree
from tests.graph.test_control_gradients import W, X, curvature, scalar
from tests.ops import conformance as c
from tests.ops.by_operator import grouped
from tests.programs.control_flow import PROGRAMS
from tests.programs.mixed import MixedProgram
from tests.programs.smooth import SmoothProgram

TOLERANCE = {"float32": 2e-4, "float64": 1e-9}
CASES = c.cases()


def one_of_each_first(cases):
    """Return cases with one of each operator first, that with most axes; then the next of each."""
    groups = [sorted(group, key=_axes, reverse=True) for group in grouped(cases).values()]
    return [case for row in zip_longest(*groups) for case in row if case is not None]


def _axes(case):
    return max((array.ndim for array in c.Arguments.of(case.drawn()).arrays()), default=0)


DIFFERENTIABLE = one_of_each_first(case for case in CASES if case.drawn().grad > 0)
SIGNED = [(fn, sign) for fn in PROGRAMS for sign in (1.0, -1.0)]
GRAPHS = 500


def run(device, graph, fetches, feeds):
    """Return results on a device, not by Session.run, which would quietly interpret."""
    executable = wf.Session(graph, device=device).executable(fetches, feeds)
    arrays = [np.asarray(array, symbol.dtype) for symbol, array in feeds.items()]
    return [to_array(value) for value in executable.run(arrays)]


def assert_same(device, graph, fetches, feeds, tolerance=TOLERANCE):
    """Hold the results of a graph against those of the reference."""
    expected = run("reference", graph, fetches, feeds)
    for a, b in zip(run(device, graph, fetches, feeds), expected, strict=True):
        assert_agree(a, b, tolerance)


def derivatives(fn, sign, dtype="float64"):
    """Return a program's value with its derivatives of first and second order, and its feeds."""
    with wf.Graph() as graph:
        x, w = wf.placeholder(X.shape, dtype), wf.placeholder(W.shape, dtype)
        value = scalar(fn(x, w))
        first = wf.gradients(value, [x, w])
        second = wf.gradients(curvature(first), [x, w])
    feeds = {x: (X * sign).astype(dtype), w: W.astype(dtype)}
    return graph, [value, *first, *second], feeds


def assert_control_flow(device, number):
    """Hold a program with loops or branches, and its derivatives, against the reference."""
    assert_same(device, *derivatives(*SIGNED[number]))


def assert_mixed(device, seed, steps=None):
    """Hold a random graph against the reference."""
    program = MixedProgram(seed, 1 + seed % 16 if steps is None else steps)
    expected = run("reference", program.graph, program.fetches, program.feeds)
    found = run(device, program.graph, program.fetches, program.feeds)
    for kept, a, b in zip(program.fetched, found, expected, strict=True):
        assert_agree(a, b, None if kept.exact else PROGRAM, repr(kept.symbol))


def assert_smooth(device, seed):
    """Hold a random graph with derivatives of first and second order against the reference."""
    program = SmoothProgram(seed, ("float32", "float64")[seed % 2], 4 + seed % 12)
    fetches = [*program.fetches, *program.second_order()]
    expected = run("reference", program.graph, fetches, program.feeds)
    found = run(device, program.graph, fetches, program.feeds)
    try:
        for a, b in zip(found, expected, strict=True):
            assert_agree(a, b, PROGRAM)
    except AssertionError:
        feeds = {symbol: next_numbers(array) for symbol, array in program.feeds.items()}
        nearby = run("reference", program.graph, fetches, feeds)
        for a, b, near in zip(found, expected, nearby, strict=True):
            assert_agree(a, b, PROGRAM, slack=condition(near, b))


class Samples:
    """Samples of the registry, many in one graph."""

    def __init__(self, batch: Callable[[Sequence[Any]], Batch], cases: Sequence[Any]) -> None:
        self.batch, self.cases = batch, cases

    def __len__(self) -> int:
        return len(self.cases)

    def failures(self, device: str, first: int, last: int) -> dict[str, Any]:
        """Return how many were run, were left out, and which are not as the reference has them."""
        made = self.batch(self.cases[first:last])
        count = len(made.samples)
        failed = [] if count == 0 else differences(made, device)[0]
        told = [str(error)[:600] for error in failed]
        return {"run": count, "left out": last - first - count, "failed": told}


class Numbered:
    """Programs that are checked one by one."""

    def __init__(self, check: Callable[[str, int], None], count: int) -> None:
        self.check, self.count = check, count

    def __len__(self) -> int:
        return self.count

    def failures(self, device: str, first: int, last: int) -> dict[str, Any]:
        """Return how many were run, and which are not as the reference has them."""
        failed = []
        for number in range(first, last):
            try:
                self.check(device, number)
            except AssertionError as error:
                failed.append(f"{number}: {str(error)[:600]}")
        return {"run": last - first, "left out": 0, "failed": failed}


def _in_single(cases: Sequence[Any]) -> Batch:
    return Batch(cases, c.to_single)


KINDS: dict[str, Samples | Numbered] = {
    "registry": Samples(Batch, CASES),
    "float32": Samples(_in_single, CASES),
    "derivatives": Samples(DerivativeBatch, DIFFERENTIABLE),
    "control": Numbered(assert_control_flow, len(SIGNED)),
    "graphs": Numbered(assert_mixed, GRAPHS),
    "smooth graphs": Numbered(assert_smooth, GRAPHS),
}
