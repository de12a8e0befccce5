"""The operations of control flow: their types, and how they run on arrays.

    cond         pred, *operands           -> results of the branch that is taken
    while_loop   *carries, *captured       -> *carries, *stacked results of the trips
    scan         *carries, *xs, *captured  -> *carries, *stacked results of the steps

A subgraph is a function of the operands behind the predicate, of the carries and what is captured,
or of the carries, one row of each of the xs and what is captured. `threads` pairs the inputs and
outputs by which a state that the body writes (a random generator) passes through the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.dim import evaluate
from ...core.effects import TripCount
from ...core.errors import ShapeError, UnknownSizeError
from ...core.shape import Shape, TensorType
from ..graph import Graph
from ..node import Node
from ..run import Array, Sizes, run_function
from ..special import NodeOp
from . import adjoint, shapes, tangent

Threads = tuple[tuple[int, int], ...]


class ControlOp(NodeOp):
    """An operation with subgraphs; it takes any number of operands and gives several results."""

    kind = "control"
    variadic = True
    outputs = None
    differentiable = True

    def __init__(self, name: str, attrs: tuple[str, ...]) -> None:
        super().__init__(name, ("operands",), attrs)
        self.vjps = {"operands": self}  # by pull_back_node
        self.form: ControlOp = self  # which of the operations below it is, however it is run

    def threads(self, node: Node) -> Threads:
        """Return the pairs of input and output by which states pass through a node."""
        threads: Threads = node.attrs[-1]
        return threads


class Cond(ControlOp):
    """Runs one of two subgraphs."""

    def type_rule(self, types: tuple[Any, ...], attrs: tuple[Any, ...]) -> list[TensorType]:
        """Return the types of the results: sizes in which the branches differ are unknown."""
        yes, no = attrs[0].outputs, attrs[1].outputs
        return [
            TensorType(_joined(a.shape, b.shape), a.dtype) for a, b in zip(yes, no, strict=True)
        ]

    def kernel(
        self, operands: Sequence[Array], yes: Graph, no: Graph, threads: Threads, *, sizes: Sizes
    ) -> list[Array]:
        """Run the branch that the predicate chooses."""
        pred, *rest = operands
        return run_function(yes if pred else no, rest, dict(sizes))

    outputs_reached = staticmethod(shapes.cond_outputs_reached)
    inputs_leading = staticmethod(shapes.cond_inputs_leading)
    pull_back_node = staticmethod(adjoint.pull_back_cond)
    push_forward_node = staticmethod(tangent.push_forward_cond)


class LoopOp(ControlOp):
    """Repeats a subgraph."""

    outputs_reached = staticmethod(shapes.loop_outputs_reached)
    inputs_leading = staticmethod(shapes.loop_inputs_leading)
    pull_back_node = staticmethod(adjoint.pull_back_loop)
    push_forward_node = staticmethod(tangent.push_forward_loop)


class While(LoopOp):
    """Repeats a subgraph while another one gives true."""

    def type_rule(self, types: tuple[Any, ...], attrs: tuple[Any, ...]) -> list[TensorType]:
        """Return the types of the carries, and of the results stacked over an unknown size."""
        _, body, carries, _ = attrs
        rows = body.outputs[carries:]
        stacked = [TensorType((None, *y.shape), y.dtype) for y in rows]
        return [*types[0][:carries], *stacked]

    def kernel(
        self,
        operands: Sequence[Array],
        test: Graph,
        body: Graph,
        carries: int,
        threads: Threads,
        *,
        sizes: Sizes,
    ) -> list[Array]:
        """Run the body as long as the test holds."""
        state, captured = list(operands[:carries]), operands[carries:]
        rows: list[list[Array]] = []
        with TripCount() as at:
            while run_function(test, [*state, *captured], dict(sizes))[0]:
                at(len(rows))
                found = run_function(body, [*state, *captured], dict(sizes))
                state = found[:carries]
                rows.append(found[carries:])
        return [*state, *stack_rows(rows, body.outputs[carries:], sizes)]


class Scan(LoopOp):
    """Runs a subgraph once for each row of its xs."""

    def type_rule(self, types: tuple[Any, ...], attrs: tuple[Any, ...]) -> list[TensorType]:
        """Return the types of the carries, and of the results stacked over the steps."""
        body, carries, _, length, _, until, _ = attrs
        steps = None if until else length
        rows = body.outputs[until + carries :]
        stacked = [TensorType((steps, *y.shape), y.dtype) for y in rows]
        return [*types[0][:carries], *stacked]

    def kernel(
        self,
        operands: Sequence[Array],
        body: Graph,
        carries: int,
        xs: int,
        length: int,
        reverse: bool,
        until: bool,
        threads: Threads,
        *,
        sizes: Sizes,
    ) -> list[Array]:
        """Run the body over the rows."""
        state, captured = list(operands[:carries]), operands[carries + xs :]
        columns = operands[carries : carries + xs]
        check_lengths([x.shape for x in columns], length)
        rows: list[list[Array]] = []
        with TripCount() as at:
            for i in reversed(range(length)) if reverse else range(length):
                at(i)
                row = [x[i] for x in columns]
                found = run_function(body, [*state, *row, *captured], dict(sizes))
                stop = found.pop(0) if until else False
                state = found[:carries]
                rows.append(found[carries:])
                if stop:
                    break
        if reverse:
            rows.reverse()
        return [*state, *stack_rows(rows, body.outputs[until + carries :], sizes)]


def stack_rows(rows: list[list[Array]], values: Sequence[Any], sizes: Sizes) -> list[Array]:
    """Return the results of all steps, each stacked along a new leading axis."""
    if not rows:
        return [np.zeros((0, *map(_known(sizes), y.shape)), y.dtype) for y in values]
    return [_stack(column) for column in zip(*rows, strict=True)]


def _stack(column: Sequence[Array]) -> Array:
    first = column[0].shape
    for i, row in enumerate(column):
        if row.shape != first:
            raise ShapeError(
                "the results of steps must have one shape to be stacked. "
                f"Received: {first} and, {i} step(s) further, {row.shape}"
            )
    return np.stack(column)


def _known(sizes: Sizes) -> Any:
    def known(size: Any) -> int:
        try:
            found: int = evaluate(size, sizes)
        except UnknownSizeError:  # the size of something that no step has made
            return 0
        return found

    return known


def check_lengths(shapes: Sequence[Shape], length: int) -> None:
    """Raise unless all xs of a scan have as many rows as it takes steps."""
    for shape in shapes:
        if shape[0] != length:
            raise ShapeError(f"all xs must have the leading size {length}. Received: shape {shape}")


def _joined(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(x if x == y else None for x, y in zip(a, b, strict=True))


COND = Cond("cond", ("true_graph", "false_graph", "threads"))
WHILE = While("while_loop", ("cond_graph", "body_graph", "carries", "threads"))
SCAN = Scan("scan", ("body", "carries", "xs", "length", "reverse", "until", "threads"))
CONTROL = {op.name: op for op in (COND, WHILE, SCAN)}
