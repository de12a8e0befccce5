"""`scan`: a function applied along the leading axis, carrying a state from step to step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.dim import Dim
from ...core.effects import TripCount
from ...core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ...core.modes import current_tracer
from ...core.op import F
from ...core.shape import TensorType, as_int, type_of
from ...core.tensor import Tensor
from ...core.tree import flatten
from ..node import Value
from .body import (
    as_tensor,
    carried,
    check_function,
    check_predicate,
    check_same_types,
    symbols_for,
    tensors_of,
    trace_until_settled,
)
from .calling import calling
from .ops import SCAN
from .shapes import sizes_outside


def scan(
    fn: Callable[..., tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    *,
    length: int | None = None,
    reverse: bool = False,
    until: Callable[[Any, Any], Any] | None = None,
) -> tuple[Any, Any]:
    """Return the last carry and the stacked results of `carry, y = fn(carry, x)` over xs.

    init      the first carry: a tree of tensors that keep their shapes and dtypes
    xs        a tree of tensors with one leading size, taken apart along it; None for none
    length    the number of steps, needed if there are no xs
    reverse   start at the end of xs; the results still stand at the places of their xs
    until     stop after the first step at which until(carry, y) holds; the results have as many
              rows as steps were taken

    >>> import weft as wf
    >>> wf.scan(lambda total, x: (total + x, total), wf.tensor(0.0), wf.tensor([1.0, 2.0, 3.0]))
    (tensor(6.), tensor([0., 1., 3.]))
    """
    check_function(fn, "scan: fn")
    if until is not None:
        check_function(until, "scan: until")
    if not isinstance(reverse, bool):
        raise ArgumentTypeError(f"scan: reverse must be True or False. Received: {reverse!r:.60}")
    call = _Scan(fn, init, xs, length, reverse, until)
    tracer = current_tracer()
    return call.run() if tracer is None else call.trace(tracer)


class _Scan:
    """One call of scan, checked."""

    def __init__(self, fn: Any, init: Any, xs: Any, length: Any, reverse: bool, until: Any) -> None:
        self.fn, self.reverse, self.until = fn, reverse, until
        self.init, self.names, self.structure = tensors_of(init, "carry")
        self.xs, self.x_names, self.x_structure = tensors_of(xs, "xs")
        self.length = _length([type_of(x) for x in self.xs], self.x_names, length)

    def step(self, carry: Any, x: Any) -> tuple[list[Tensor], Any]:
        """Run the function once; return the leaves of the carry, and the tree of results."""
        with calling(self.fn, "scan: fn", ("carry", "x"), (carry, x)):
            return self._parts(self.fn(carry, x))

    def _parts(self, result: Any) -> tuple[list[Tensor], Any]:
        if not isinstance(result, tuple) or len(result) != 2:
            length = f" of {len(result)}" if isinstance(result, (tuple, list)) else ""
            raise ArgumentTypeError(
                "scan: fn must return a pair (carry, y); y may be None. "
                f"Received: {type(result).__name__}{length}"
            )
        after = carried(self.structure, result[0], self.names, "scan: fn's carry")
        leaves, _, structure = tensors_of(result[1], "scan: fn's result")
        return after, structure.unflatten(leaves)

    def stops(self, carry: Any, y: Any) -> Any:
        """Return the truth value by which the scan ends early."""
        with calling(self.until, "scan: until", ("carry", "y"), (carry, y)):
            stop = as_tensor(self.until(carry, y), "scan: until's result")
            check_predicate(type_of(stop), "scan: until's result")
            return stop

    # -- eagerly -----------------------------------------------------------------------------------

    def run(self) -> tuple[Any, Any]:
        """Take the steps one after another."""
        types = [type_of(x) for x in self.init]
        carry = self.structure.unflatten(self.init)
        rows: list[list[Any]] = []
        result = None
        order = range(self.length)
        with TripCount() as at:
            for i in reversed(order) if self.reverse else order:
                at(i)
                after, y = self.step(carry, self.x_structure.unflatten(x[i] for x in self.xs))
                check_same_types(types, [type_of(v) for v in after], self.names, "scan")
                carry = self.structure.unflatten(after)
                if result is None:
                    result = flatten(y)[1]
                rows.append(result.flatten_like(y, "scan: fn's result"))
                if self.until is not None and bool(self.stops(carry, y)):
                    break
        return carry, self._stacked(rows, result)

    def _stacked(self, rows: list[list[Any]], result: Any) -> Any:
        if result is None:
            return self._no_rows()
        if self.reverse:
            rows.reverse()
        columns = zip(*rows, strict=True)
        return result.unflatten(F.stack(list(column)) for column in columns)

    def _no_rows(self) -> Any:
        """Return the results of no step at all: empty, of the types a step would give."""
        from ..graph import Graph  # noqa: PLC0415  (only to learn the types)

        with Graph("scan") as graph:
            traced = self._body(graph.tracer)
        ys = traced.outputs[self._first_y :]
        return self.y_structure.unflatten(
            F.broadcast_to(as_tensor(0, "zero").to(y.dtype), (0, *_found_sizes(y))) for y in ys
        )

    # -- in a graph --------------------------------------------------------------------------------

    @property
    def _first_y(self) -> int:
        return (self.until is not None) + len(self.init)

    def _body(self, tracer: Any) -> Any:
        """Trace the function: [stop flag,] carries and results."""
        carries = len(self.init)

        def body(*args: Any) -> Any:
            x = self.x_structure.unflatten(args[carries:])
            after, y = self.step(self.structure.unflatten(args[:carries]), x)
            leaves, self.y_structure = flatten(y)
            carry = self.structure.unflatten(after)
            flag = [] if self.until is None else [self.stops(carry, y)]
            return [*flag, *after, *leaves]

        types = [type_of(v) for v in self.init]
        rows = [TensorType(x.shape[1:], x.dtype) for x in self.xs]
        labels = [*self.names, *self.x_names]
        return trace_until_settled(tracer, "fn", body, [*types, *rows], labels)

    def trace(self, tracer: Any) -> tuple[Any, Any]:
        """Add the scan to the graph as one node."""
        init = [tracer.value_of(v) for v in self.init]
        xs = [tracer.value_of(x) for x in self.xs]
        body = self._body(tracer)
        flags = int(self.until is not None)
        n = len(init)
        after = [v.type for v in body.outputs[flags : flags + n]]
        check_same_types([v.type for v in init], after, self.names, "scan")
        states = body.states
        starts = [tracer.read_state(state) for state in states]
        ys = body.outputs[self._first_y :]
        # The order of a node: parameters, states and xs; so states stand behind the carries.
        body.outputs = body.outputs[: flags + n]
        graph = body.close(states, body.captured, extra=ys)
        graph.inputs = [
            *body.parameters[:n],
            *body.threads,
            *body.parameters[n:],
            *graph.inputs[len(body.parameters) + len(states) :],
        ]
        steps = tracer.fresh_size("scan") if flags else self.length
        types = [v.type for v in (*init, *starts)]
        types += [TensorType((steps, *sizes_outside(graph, y)), y.dtype) for y in ys]
        carries = n + len(states)
        threads = tuple((n + i, n + i) for i in range(len(states)))
        attrs = (graph, carries, len(xs), self.length, self.reverse, bool(flags), threads)
        node = tracer.add(SCAN, [*init, *starts, *xs, *body.captured], attrs, types)
        for state, value in zip(states, node.outputs[n:carries], strict=True):
            tracer.write_state(state, value)
        symbols = symbols_for(tracer, node.outputs)
        return (
            self.structure.unflatten(symbols[:n]),
            self.y_structure.unflatten(symbols[carries:]),
        )


def _found_sizes(y: Value) -> list[int]:
    """Return the sizes of what a step would give; 0 for those that only a step can tell."""
    return [0 if isinstance(size, Dim) else size for size in y.shape]


def _length(types: list[TensorType], names: list[str], length: Any) -> Any:
    """Return the number of steps; raise if the xs disagree with one another or with `length`."""
    sizes: dict[str, Any] = {} if length is None else {"length": _given_length(length)}
    for kind, name in zip(types, names, strict=True):
        if not kind.shape:
            raise ShapeError(f"scan: {name} has no leading axis to scan over; its shape is ()")
        sizes[name] = kind.shape[0]
    if not sizes:
        raise ArgumentError("scan: without xs, length must say how many steps to take")
    first = next(iter(sizes.values()))
    if any(size != first for size in sizes.values()):
        shown = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise ShapeError(f"scan: xs must have the same leading size, and length. Received: {shown}")
    return next((size for size in sizes.values() if not isinstance(size, Dim)), first)


def _given_length(length: Any) -> Any:
    given: Any = as_int(length, "scan: length")
    if not isinstance(given, Dim) and given < 0:
        raise ArgumentError(f"scan: length must not be negative. Received: {length}")
    return given
