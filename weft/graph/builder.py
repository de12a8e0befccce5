"""Building graphs node by node, exactly as written: what the text of a printed graph calls.

    from weft.graph.builder import define, float32

    def build(F):
        n = F.size("n")
        x = F.placeholder("x", float32[n, 3])
        two = F.constant(2.0, float32[()])
        mul = F.mul(x, two)
        return ()

    graph = define(build)

Nothing is promoted, lifted or put in canonical form on the way; operators' rules infer the types.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core.dim import broadcast_sizes, size_max, size_min, unknown_size
from ..core.dispatch import ERRORS, explain, group
from ..core.dtype import as_dtype
from ..core.errors import ArgumentError, ArgumentTypeError, GraphError, user_site
from ..core.op import REQUIRED
from ..core.rng import Generator
from ..core.shape import TensorType
from ..core.tensor import Tensor
from .graph import Graph
from .node import Node, Value, map_attr, type_text
from .operators import operator_named
from .special import ASSIGN, CONSTANT, PLACEHOLDER, STATE, Literal
from .state import State, generator_state, tensor_state

inf, nan = math.inf, math.nan


class ElementType:
    """An element type that makes types by subscript: `float32[n, 3]`, `float32[()]`."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the dtype."""
        return as_dtype(self.name)

    def __getitem__(self, sizes: Any) -> TensorType:
        """Return the type of tensors with these sizes."""
        return TensorType(sizes if isinstance(sizes, tuple) else (sizes,), self.dtype)

    def __repr__(self) -> str:
        return ELEMENT_NAMES[self.name]


bool_ = ElementType("bool")  # `bool` would hide Python's own
int8, int16, int32, int64 = (ElementType(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (ElementType(f"uint{n}") for n in (8, 16, 32, 64))
float16, float32, float64 = (ElementType(f"float{n}") for n in (16, 32, 64))
bfloat16 = ElementType("bfloat16")
ELEMENT_NAMES = {
    value.name: name for name, value in globals().items() if type(value) is ElementType
}


def define(
    build: Callable[[Builder], Any],
    *,
    states: Mapping[str, Any] | None = None,
    constants: Mapping[str, Any] | None = None,
) -> Graph:
    """Return the graph that a function builds with a Builder; what it returns are the outputs.

    states      what the graph reads and writes, by name: tensors, generators or graph states
    constants   arrays that are too large to be written down, by name
    """
    builder = Builder(Graph(), states or {}, constants or {})
    builder.graph.outputs = _outputs(build(builder))
    return builder.graph


class Builder:
    """Adds nodes to a graph; every operator is a method: `F.mul(x, y)`.

    Inputs are positional (None for one that is left out), attributes are keywords and stand for
    themselves; those left out have their defaults.
    """

    def __init__(
        self, graph: Graph, states: Mapping[str, Any], constants: Mapping[str, Any]
    ) -> None:
        self.graph = graph
        self._states = states
        self._constants = constants
        self._known: dict[str, State] = {}
        self._scope: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        op = operator_named(name)

        def apply(*inputs: Value | None, **attrs: Any) -> Any:
            return self.apply(op, inputs, **attrs)

        setattr(self, name, apply)
        return apply

    def apply(
        self,
        op: Any,
        inputs: Sequence[Value | None],
        *,
        name_: str | None = None,
        device_: str = "cpu",
        types_: Sequence[TensorType] | None = None,
        **attrs: Any,
    ) -> Any:
        """Add an operation; return its result, or a tuple of them if it may have several.

        name_    its name, if it is not the operator's
        types_   the types of its results, where they say more than the operator's rule
        """
        canonical = _attributes(op, attrs)
        types = _infer(op, inputs, canonical) if types_ is None else types_
        outputs = self._add(op, inputs, canonical, types, name_, device_).outputs
        return outputs[0] if op.outputs == 1 else outputs

    def _add(
        self,
        op: Any,
        inputs: Sequence[Value | None],
        attrs: tuple[Any, ...],
        types: Sequence[TensorType],
        name: str | None = None,
        device: str = "cpu",
    ) -> Node:
        own = name or "/".join((*self._scope, op.name))
        return self.graph.append(
            Node(
                op,
                inputs,
                attrs,
                types,
                name=self.graph.unique_name(own),
                scope=self._scope,
                site=user_site(),
                device=device,
            )
        )

    # -- where values come from, and where they are kept -------------------------------------------

    def placeholder(self, name: str, type: TensorType) -> Value:
        """Add a value that each run is fed with."""
        return self._add(PLACEHOLDER, (), (type,), (type,), name).outputs[0]

    def constant(
        self,
        content: Any,
        type: TensorType | None = None,
        *,
        name_: str | None = None,
        device_: str = "cpu",
    ) -> Value:
        """Add a constant: numbers (or the bits, in hexadecimal) and a type, or a name."""
        literal = Literal(self._array(content, type))
        node = self._add(CONSTANT, (), (literal,), (literal.type,), name_, device_)
        return node.outputs[0]

    def _array(self, content: Any, type: TensorType | None) -> np.ndarray[Any, Any]:
        if type is None:
            return np.asarray(_entry(self._constants, content, "constant"))
        if isinstance(content, str):
            flat = np.frombuffer(bytearray.fromhex(content), type.dtype)
        else:
            flat = np.array(content, type.dtype)
        return flat.reshape(type.shape)

    def state(self, name: str, *, name_: str | None = None) -> Value:
        """Add the value that a run reads from a state when it starts."""
        state = self._state(name)
        return self._add(STATE, (), (state,), (state.type,), name_ or name).outputs[0]

    def assign(
        self, state: str, value: Value, *, name_: str | None = None, device_: str = "cpu"
    ) -> Value:
        """Add a value that, when a run computes it, the state has afterwards."""
        own = self._state(state)
        return self._add(ASSIGN, (value,), (own,), (own.type,), name_, device_).outputs[0]

    def _state(self, name: str) -> State:
        if name not in self._known:
            self._known[name] = as_state(_entry(self._states, name, "state"), name)
        return self._known[name]

    def inputs(self, *values: Value) -> None:
        """Say in which order the placeholders are the inputs of the graph."""
        self.graph.inputs = list(values)

    def name(self, value: Value, name: str) -> None:
        """Give a value a name by which it can be fetched and fed."""
        self.graph.name_value(value, name)

    @contextmanager
    def scope(self, path: str) -> Iterator[None]:
        """Put the nodes built inside into a name scope."""
        self._scope = tuple(path.split("/"))
        try:
            yield
        finally:
            self._scope = ()

    # -- sizes and subgraphs -----------------------------------------------------------------------

    def size(self, name: str) -> Any:
        """Return an unknown size by its name."""
        return unknown_size(name)

    size_min, size_max = staticmethod(size_min), staticmethod(size_max)
    size_broadcast = staticmethod(broadcast_sizes)

    def body(self, function: Callable[..., Any]) -> Graph:
        """Return a function as a subgraph; its parameters after F are annotated with types."""
        builder = Builder(Graph(function.__name__), {}, self._constants)
        types = [(n, t) for n, t in function.__annotations__.items() if n != "return"]
        inputs = [builder.placeholder(name, type) for name, type in types]
        builder.graph.outputs = _outputs(function(builder, *inputs))
        return builder.graph


def as_state(source: Any, name: str) -> State:
    """Return a tensor, a random generator or a state as a state for graphs."""
    if isinstance(source, State):
        return source
    if isinstance(source, Generator):
        return generator_state(source)
    if isinstance(source, Tensor):
        return tensor_state(source, name)
    raise ArgumentTypeError(
        f"the state {name!r} must be a tensor or a wf.Generator. Received: {type(source).__name__}"
    )


def _entry(table: Mapping[str, Any], name: Any, what: str) -> Any:
    if name not in table:
        raise ArgumentError(
            f"the graph needs the {what} {name!r:.80}; pass {what}s={{{name!r:.80}: ...}}. "
            f"Received: {sorted(table)!r:.200}"
        )
    return table[name]


def _outputs(returned: Any) -> list[Value]:
    if returned is None:
        return []
    return list(returned) if isinstance(returned, (tuple, list)) else [returned]


def _attributes(op: Any, given: dict[str, Any]) -> tuple[Any, ...]:
    """Return attributes in the order in which the operator declares them."""
    unknown = [name for name in given if name not in op.attrs]
    missing = [n for n, default in op.attrs.items() if n not in given and default is REQUIRED]
    if unknown or missing:
        raise ArgumentTypeError(
            f"{op.name}: its attributes are {', '.join(op.attrs) or 'none'}. "
            f"Received: {', '.join(given) or 'none'}"
        )
    attrs = tuple(given.get(name, default) for name, default in op.attrs.items())
    resolved: tuple[Any, ...] = map_attr(_plain, attrs)
    return resolved


def _plain(item: Any) -> Any:
    return item.dtype if isinstance(item, ElementType) else item


def _infer(op: Any, inputs: Sequence[Value | None], attrs: tuple[Any, ...]) -> Sequence[TensorType]:
    types = [None if value is None else value.type for value in inputs]
    try:
        found = op.type_rule(group(op, types), attrs)
    except ERRORS as error:
        raise explain(op, error, types, attrs) from None
    found = [found] if isinstance(found, TensorType) else list(found)
    for type in found:
        if any(size is None for size in type.shape):  # `in` would ask unknown sizes, which say yes
            raise GraphError(
                f"{op.name}: a size of {type_text(type)} is not known before the graph runs; say "
                "with types_=[...] which unknown size it is"
            )
    return found
