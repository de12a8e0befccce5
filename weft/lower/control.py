"""Lower control flow: the kernels of bodies, repeated or chosen between, over windows of memory.

A body is lowered like any graph, with its inputs where the loop has them and its results where the
loop wants them:

    rows of the xs, rows of the results    windows that move with the index of the loop
    carries                                two copies; a step reads the one and writes the other
    a carry that is stacked too            rows of the result: a step reads the row before its own
    a carry that never changes             where it comes from

Steps therefore copy nothing, unless a result is no new value (an input, or the same twice).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..core.dim import is_known
from ..core.dtype import int64
from ..graph.control.ops import COND, SCAN, WHILE
from ..graph.control.shapes import LoopView, ScanLoop, loop_of
from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.special import CONSTANT, PARAMETER, PLACEHOLDER
from ..passes.rewrite import Rebuild
from .kernels import BranchKernel, Kernel, LoopKernel
from .kinds import DTYPES
from .products import TURNED, is_turned_matrix
from .storage import View, window

if TYPE_CHECKING:
    from .lowering import Lowering


def lower_control(lowered: Lowering, node: Node) -> bool:
    """Lower a node with bodies; False if it must stay with the interpreter."""
    if node.op not in (COND, SCAN, WHILE) or not all(map(_has_kernels, _values(node))):
        return False
    if node.op is COND:
        _lower_cond(lowered, node)
    else:
        _LoopLowering(lowered, loop_of(node)).lower()
    return True


def _values(node: Node) -> list[Value]:
    return [*(x for x in node.inputs if x is not None), *node.outputs]


def _has_kernels(value: Value) -> bool:
    return value.dtype in DTYPES


# -- bodies ----------------------------------------------------------------------------------------


def lower_body(
    lowered: Lowering,
    body: Graph,
    inputs: Sequence[View],
    results: Sequence[tuple[Value, View]],
) -> Lowering:
    """Lower a function on what lies in the graph around it, with its results put in places."""
    graph, now = _with_parameters(body)
    bound = {now.value(p): view for p, view in zip(body.inputs, inputs, strict=True)}
    places = [(now.value(y), view) for y, view in results]
    first = {y: view for y, view in reversed(places) if _is_computed(y)}
    inner = lowered.with_body(graph, bound, first)
    for y, view in places:
        if inner.views[y] is not view:
            inner.copy(inner.views[y], view)
    return inner


def _is_computed(value: Value) -> bool:
    return value.node.op not in (PLACEHOLDER, PARAMETER, CONSTANT)


def _with_parameters(body: Graph) -> tuple[Graph, Rebuild]:
    """Return a body whose inputs are no feeds: they lie in the graph around it."""
    rebuild = Rebuild(body, body.outputs)
    nodes = {value.node for value in body.inputs}
    for old in body.nodes:
        node = rebuild.current(old)
        rebuild.place(old, node.rebuilt((), op=PARAMETER) if old in nodes else node)
    return rebuild.finish(), rebuild


# -- branches --------------------------------------------------------------------------------------


def _lower_cond(lowered: Lowering, node: Node) -> None:
    chosen, *operands = node.inputs
    assert chosen is not None
    inputs = [lowered.views[x] for x in operands if x is not None]
    places = [lowered.new(y) for y in node.outputs]
    branches = []
    for graph in node.attrs[:2]:
        results = list(zip(graph.outputs, places, strict=True))
        branches.append(tuple(lower_body(lowered, graph, inputs, results).kernels))
    yes, no = branches
    origins = lowered.origins(node)
    kernel = BranchKernel(node.name, lowered.views[chosen], yes, no, tuple(places), origins)
    lowered.kernels.append(kernel)


# -- loops -----------------------------------------------------------------------------------------


class _LoopLowering:
    """Lowers one loop.

    inputs    where a step finds what it takes
    results   where a step puts what it gives: flags, carries, rows
    finals    where the carries are after the last step; windows if that depends on their number
    """

    def __init__(self, lowered: Lowering, loop: LoopView) -> None:
        self.lowered = lowered
        self.loop = loop
        self.node = loop.node
        self.length = loop.node.attrs[3] if isinstance(loop, ScanLoop) else None
        self.index = lowered.scratch((), int64, "index").buffer
        self.half = lowered.scratch((), int64, "half").buffer
        operands = [x for x in loop.node.inputs if x is not None]
        self.outside = [lowered.views[x] for x in operands]
        self.inputs: list[View] = []
        self.results: list[tuple[Value, View]] = []
        self.finals: list[View] = []
        self.room: list[View] = []

    def lower(self) -> None:
        """Add the kernel of the loop, with copies around it."""
        loop, n, m = self.loop, self.loop.carries, self.loop.carries + self.loop.xs
        for i in range(n):
            self._carry(i)
        self._stack_others()
        self.inputs += [self._row(view) for view in self.outside[n:m]]
        self.inputs += map(self._invariant, loop.body.inputs[m:], self.outside[m:])
        stops = self._flag("stops") if loop.flags else None
        if stops is not None:
            self.results.append((loop.body.outputs[0], stops))
        body = lower_body(self.lowered, loop.body, self.inputs, self.results)
        holds, test = self._test() if self.node.op is WHILE else (None, ())
        kernel = LoopKernel(
            self.node.name, self.index, self.half, self.length, loop.reverse, tuple(body.kernels),
            test, holds, stops, tuple(self.room), self.lowered.origins(self.node),
        )  # fmt: skip
        self.lowered.kernels.append(kernel)
        self._finish()

    def _flag(self, name: str) -> View:
        return self.lowered.scratch((), self.loop.body.outputs[0].dtype, name)

    def _test(self) -> tuple[View, tuple[Kernel, ...]]:
        """Return where the truth value lies that lets the loop go on, and what computes it."""
        (test, *_) = self.node.attrs
        holds = self.lowered.scratch((), test.outputs[0].dtype, "holds")
        found = [(test.outputs[0], holds)]
        return holds, tuple(lower_body(self.lowered, test, self.inputs, found).kernels)

    # -- rows ------------------------------------------------------------------------------------

    def _row(self, view: View) -> View:
        """Return the row of a view that a step works on."""
        row = View(view.buffer, view.shape[1:], view.strides[1:], view.offset)
        return window(row, self.index, view.strides[0])

    def _invariant(self, value: Value, view: View) -> View:
        """Return where steps find what is the same in all: a copy of a matrix that lies turned.

        Its columns follow one another in memory, and each product would turn it anew.
        """
        repeats = isinstance(self.loop, ScanLoop) and self.length != 1
        if not repeats or not is_turned_matrix(self.loop.body, value, view):
            return view
        return self.lowered.copied(view.permuted(TURNED)).permuted(TURNED)

    def _stacked(self, value: Value) -> list[Value]:
        """Return the results of the loop that are a value of its body, stacked, not yet placed."""
        n = self.loop.carries
        pairs = zip(self.loop.results[n:], self.node.outputs[n:], strict=True)
        return [y for found, y in pairs if found is value and y not in self.lowered.views]

    def _stack_others(self) -> None:
        """Give the stacked results that are no carries memory of their own."""
        n = self.loop.carries
        for value, y in zip(self.loop.results[n:], self.node.outputs[n:], strict=True):
            if y not in self.lowered.views:
                stack = self.lowered.new(y)
                self.room.append(stack)
                self.results.append((value, self._row(stack)))

    # -- carries ---------------------------------------------------------------------------------

    def _carry(self, i: int) -> None:
        value, start = self.loop.results[i], self.outside[i]
        entering = self.loop.body.inputs[i]
        if value is entering:
            self.inputs.append(start)
            self.finals.append(start)
        elif self.loop.length is not None and (self._stacked(value) or self._stacked(entering)):
            self._carry_in_rows(value, entering, start)
        else:
            self._carry_in_halves(value, start)

    def _carry_in_rows(self, value: Value, entering: Value, start: View) -> None:
        """Let each step read the row of the step before; the first row holds the start."""
        steps, reverse = self.loop.length, self.loop.reverse
        room = self.lowered.scratch((steps + 1, *start.shape), start.dtype, self.node.name)
        size, shape = room.strides[0], (steps, *start.shape)
        first, last = (
            View(room.buffer, start.shape, room.strides[1:], k * size) for k in (0, steps)
        )
        upper, lower = (View(room.buffer, shape, room.strides, k * size) for k in (0, 1))
        before, after = (lower, upper) if reverse else (upper, lower)
        self.room.append(room)
        for y in self._stacked(value):
            self.lowered.views[y] = after
        for y in self._stacked(entering):
            self.lowered.views[y] = before
        self.lowered.copy(start, last if reverse else first)
        self.finals.append(first if reverse else last)
        self.inputs.append(self._row(before))
        self.results.append((value, self._row(after)))

    def _carry_in_halves(self, value: Value, start: View) -> None:
        room = self.lowered.scratch((2, *start.shape), start.dtype, self.node.name)
        size = room.strides[0]
        halves = [View(room.buffer, start.shape, room.strides[1:], k * size) for k in (0, 1)]
        self.lowered.copy(start, halves[0])
        now = window(halves[0], self.half, size)
        self.inputs.append(now)
        self.results.append((value, window(halves[1], self.half, -size)))
        steps = self.loop.length
        known = steps is not None and is_known([steps])
        self.finals.append(halves[steps % 2] if known else now)

    def _finish(self) -> None:
        """Say where the carries are; copy those that may be in either half."""
        for y, view in zip(self.node.outputs, self.finals, strict=False):
            moving = view.buffer.window is not None and view.buffer.window.word is self.half
            if moving:
                self.lowered.copy(view, self.lowered.new(y))
            else:
                self.lowered.views[y] = view
