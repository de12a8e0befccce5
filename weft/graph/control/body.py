"""Trace the bodies of control flow into closed subgraphs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ...core.dim import may_equal
from ...core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from ...core.modes import interpret_with
from ...core.op import F
from ...core.operands import tensor_from
from ...core.shape import TensorType
from ...core.tensor import Tensor
from ...core.tree import Structure, container_of, flatten, flatten_with_paths
from ..graph import Graph
from ..node import Node, Value, type_text
from ..state import State
from ..symbol import Symbol, make_symbol
from ..tracer import Tracer


class Body:
    """A traced function: its graph, what it took from outside, and the states it writes.

    graph      inputs: the parameters, one for each threaded state, then what is captured
    captured   values of the graph around it that enter through the last inputs
    states     the states it writes, whose new values are its last outputs
    result     the structure of what the function returned
    names      what messages call the parts of it

    `labels` are paths of the parameters in the trees that they come from, which name them.
    """

    def __init__(
        self,
        outer: Tracer,
        name: str,
        fn: Callable[..., Any],
        types: Sequence[TensorType],
        states: Sequence[State] = (),
        *,
        what: str = "the result",
        labels: Sequence[str] = (),
    ) -> None:
        self.tracer = Tracer(Graph(name), parent=outer)
        called = [_label(path, i) for i, path in enumerate(labels)]
        called += [f"arg_{i}" for i in range(len(called), len(types))]
        self.parameters = [
            self.tracer.parameter(t, label) for t, label in zip(types, called, strict=True)
        ]
        self.threads = [self.tracer.parameter(s.type, s.name) for s in states]
        for state, value in zip(states, self.threads, strict=True):
            self.tracer.write_state(state, value)
        with interpret_with(self.tracer):
            symbols = [make_symbol(self.tracer.graph, value) for value in self.parameters]
            returned, self.names, self.result = tensors_of(fn(*symbols), what)
            self.outputs = [self.tracer.value_of(leaf) for leaf in returned]
        self.states = [state for state, _ in self.tracer.written.values()]

    @property
    def captured(self) -> list[Value]:
        """Return the values of the graph around it that the body uses."""
        return list(self.tracer.captured)

    def close(
        self, states: Sequence[State], captured: Sequence[Value], extra: Sequence[Value] = ()
    ) -> Graph:
        """Return the graph with inputs for all states and captured values, used or not."""
        graph, tracer = self.graph, self.tracer
        finals = [tracer.read_state(state) for state in states]
        graph.inputs = [*self.parameters, *self.threads, *map(tracer.capture, captured)]
        graph.outputs = [*self.outputs, *finals, *extra]
        return graph

    @property
    def graph(self) -> Graph:
        """Return the graph that is traced into."""
        return self.tracer.graph


def _label(path: str, position: int) -> str:
    """Return what to call a parameter that stands at a path of a tree: its key, if it has one."""
    keys = re.findall(r"[\['.]([A-Za-z_]\w*)'?\]?$", path)
    return keys[-1] if keys else f"arg_{position}"


def trace_until_settled(
    outer: Tracer,
    name: str,
    fn: Callable[..., Any],
    types: Sequence[TensorType],
    labels: Sequence[str] = (),
) -> Body:
    """Trace a loop body with every state that it writes threaded through it."""
    states: list[State] = []
    while True:
        body = Body(outer, name, fn, types, states, labels=labels)
        if len(body.states) == len(states):
            return body
        states = body.states


# -- operands --------------------------------------------------------------------------------------


def as_tensor(leaf: Any, what: str) -> Tensor:
    """Return a leaf of a tree as a tensor."""
    if isinstance(leaf, Tensor):
        return leaf
    if container_of(leaf) is not None:
        raise ArgumentTypeError(f"{what} must be a tensor or a number. Received: {leaf!r:.60}")
    try:
        return tensor_from(leaf, what)
    except (TypeError, ValueError) as error:
        raise ArgumentTypeError(f"{what} must be a tensor or a number. {error}") from None


def tensors_of(tree: Any, what: str) -> tuple[list[Tensor], list[str], Structure]:
    """Return the leaves of a tree as tensors, their names for messages, and its structure."""
    leaves, structure = flatten(tree)
    names = [f"{what}{path}" for path, _ in flatten_with_paths(tree)]
    return [as_tensor(leaf, n) for leaf, n in zip(leaves, names, strict=True)], names, structure


def carried(structure: Structure, tree: Any, names: Sequence[str], what: str) -> list[Tensor]:
    """Return the leaves of a carry that a body gave, which must keep its structure."""
    leaves = structure.flatten_like(tree, what)
    return [as_tensor(leaf, f"{what}: {n}") for leaf, n in zip(leaves, names, strict=True)]


def check_function(fn: Any, what: str) -> None:
    """Raise unless an argument can be called."""
    if not callable(fn):
        raise ArgumentTypeError(f"{what} must be a function. Received: {fn!r:.60}")


def check_predicate(type: TensorType, what: str) -> None:
    """Raise unless a type is that of one truth value."""
    if type.shape != () or type.dtype.kind != "b":
        raise ArgumentTypeError(
            f"{what} must be a boolean without dimensions. Received: {type_text(type)}; compare, "
            "as in x > 0, and reduce with .any() or .all()"
        )


def check_same_types(
    before: Sequence[TensorType], after: Sequence[TensorType], names: Sequence[str], what: str
) -> None:
    """Raise if a carried value changes its type, naming the variable."""
    for old, new, name in zip(before, after, names, strict=True):
        if old.dtype != new.dtype:
            raise DTypeError(
                f"{what}: {name} enters as {type_text(old)} and leaves as {type_text(new)}; cast "
                "it in the body, or start with another dtype"
            )
        if old.shape != new.shape:
            raise ShapeError(
                f"{what}: {name} enters as {type_text(old)} and leaves as {type_text(new)}; a "
                "carried value must keep its shape"
            )


def check_joinable(
    left: Sequence[TensorType], right: Sequence[TensorType], names: Sequence[str]
) -> list[TensorType]:
    """Return the types two branches agree on; raise naming the result in which they differ."""
    joined = []
    for a, b, name in zip(left, right, names, strict=True):
        if a.dtype != b.dtype or not may_equal(a.shape, b.shape):
            raise ArgumentError(
                f"cond: both branches must return the same types, but {name} is {type_text(a)} if "
                f"true and {type_text(b)} if false"
            )
        shape = tuple(x if x == y else None for x, y in zip(a.shape, b.shape, strict=True))
        joined.append(TensorType(shape, a.dtype))
    return joined


def labels_of(values: Sequence[Value], prefix: str = "") -> list[str]:
    """Return the names of values, without scopes, each with a prefix."""
    names = [_maker(value).name.rpartition("/")[2] for value in values]
    return [f"{prefix}{name.lstrip('_') if prefix else name}" for name in names]


def _maker(value: Value) -> Node:
    """Return the node that makes a value, behind those that only pass it on."""
    node = value.node
    while node.op.identity and node.inputs[0] is not None:
        node = node.inputs[0].node
    return node


def symbols_for(tracer: Tracer, values: Sequence[Value]) -> list[Symbol]:
    """Return symbols for values of the tracer's graph."""
    return [make_symbol(tracer.graph, value) for value in values]


def function_of(
    outer: Tracer,
    name: str,
    types: Sequence[TensorType],
    fn: Callable[[Tracer, list[Any]], Sequence[Any]],
    *,
    labels: Sequence[str],
) -> Graph:
    """Return a function of symbols of given types as a closed graph; it gets the tracer too.

    labels   what to call its parameters
    """
    return open_function_of(outer, name, types, fn, labels=labels).graph


def open_function_of(
    outer: Tracer,
    name: str,
    types: Sequence[TensorType],
    fn: Callable[[Tracer, list[Any]], Sequence[Any]],
    *,
    labels: Sequence[str],
) -> Tracer:
    """Return the tracer of the same; what it took from outside has no operands yet."""
    inner = Tracer(Graph(name), parent=outer)
    inner.site = outer.site
    inner.graph.inputs = [inner.parameter(t, n) for t, n in zip(types, labels, strict=True)]
    with interpret_with(inner):
        outputs = fn(inner, list(symbols_for(inner, inner.graph.inputs)))
        inner.graph.outputs = [inner.value_of(y) for y in outputs]
    return inner


def symbol_or_none(tracer: Tracer, value: Value | None) -> Any:
    """Return a symbol for a value that may be missing."""
    return None if value is None else make_symbol(tracer.graph, value)


def symbol_or_zeros(tracer: Tracer, found: Any, like: Value | None) -> Any:
    """Return a derivative; zeros like a value where there is none."""
    return F.zeros_like(symbol_or_none(tracer, like)) if found is None else found
