"""Graphs from data that may be anything: everything is checked before it is used.

No operator's rule sees attributes of a form that the operator itself would not give them, nothing
is allocated by what the data claims, and what comes out has passed the verifier.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.device import check_device
from ...core.dim import FUNCTIONS, Dim, unknown_size
from ...core.dispatch import group
from ...core.dtype import Array, as_dtype, is_float
from ...core.errors import ArgumentError, GraphError, WeftError
from ...core.rng import Generator, default_generator
from ...core.shape import TensorType
from ...core.tensor import make_leaf
from ..builder import as_state
from ..graph import Graph
from ..identity.content import same_content
from ..inline import inline
from ..node import Node, Value, attr_items, is_graph, type_text
from ..operators import operator_named
from ..special import ASSIGN, CONSTANT, PLACEHOLDER, STATE, Literal
from ..state import CHAIN_STATE, State
from ..verify import MAX_DEPTH, verify
from .encode import MAX_ATOMS, TAG, check_complexity

MAX_TUPLES = 16  # of tuples in tuples
MAX_NDIM = 64
MAX_SIZE = 1 << 63
GROUP = "fused"  # in files of former versions: elementwise nodes that ran as one


def decode_graph(
    data: Any, arrays: Mapping[str, Array], states: Mapping[str, Any] | None = None
) -> Graph:
    """Return the graph that `encode_graph` took apart, or raise GraphError.

    states   tensors and generators for states of the graph, by name; others are made anew
    """
    try:
        known = decode_states(_field(data, "states", list), arrays, dict(states or {}))
        graph = _Decoder(arrays, known).graph(_field(data, "graph", dict), 0)
        verify(graph)
    except RecursionError:
        raise GraphError("the graph is nested too deeply") from None
    return graph


# -- states ----------------------------------------------------------------------------------------


def decode_states(
    data: list[Any], arrays: Mapping[str, Array], given: dict[str, Any]
) -> list[State]:
    """Return the states: those given, others as new tensors with the saved values."""
    found: dict[str, State] = {}
    for item in data:
        name = _field(item, "name", str)
        if name in found:
            raise GraphError(f"two states are named {name!r:.60}")
        value = _array(arrays, _field(item, "value", str))
        found[name] = _chosen(name, given[name], value) if name in given else _new(item, value)
    unknown = sorted(set(given) - set(found))
    if unknown:
        raise ArgumentError(
            f"the graph has no state named {unknown[0]!r:.60}; it has {sorted(found)!r:.200}"
        )
    return list(found.values())


def _chosen(name: str, source: Any, saved: Array) -> State:
    state = as_state(source, name)
    wanted = TensorType(saved.shape, saved.dtype)
    if state.type != wanted:
        raise ArgumentError(
            f"the state {name!r:.60} must be {type_text(wanted)}. Received: {type_text(state.type)}"
        )
    return state


def _new(item: Any, value: Array) -> State:
    name, kind = item["name"], _field(item, "kind", str)
    if kind == "tensor":
        flag = _field(item, "requires_grad", bool)
        if flag and not is_float(value.dtype):
            raise GraphError(f"the state {name!r:.60} of {value.dtype} cannot have gradients")
        return as_state(make_leaf(value, flag, None), name)
    if kind == "effects":
        return CHAIN_STATE
    if kind not in ("generator", "default generator"):
        raise GraphError(f"the state {name!r:.60} is of an unknown kind: {kind!r:.60}")
    if value.dtype != np.uint64 or value.shape != (3,):
        raise GraphError(f"the state {name!r:.60} is not that of a random generator")
    if kind == "default generator":
        return as_state(default_generator, name)
    low, high, counter = value.tolist()
    place = {"key": f"{low | high << 64:#x}", "counter": f"{counter:#x}"}
    fresh = Generator(0)
    return as_state(fresh.set_state({**fresh.get_state(), **place}), name)


# -- graphs ----------------------------------------------------------------------------------------


class _Decoder:
    """Reads one graph and its bodies."""

    def __init__(self, arrays: Mapping[str, Array], states: Sequence[State]) -> None:
        self.arrays = arrays
        self.states = states

    def graph(self, data: Any, depth: int) -> Graph:
        """Return a graph or a body."""
        if depth > MAX_DEPTH:
            raise GraphError(f"control flow is nested more than {MAX_DEPTH} deep")
        graph = Graph(_field(data, "name", str))
        values: list[Value] = []
        nodes = _field(data, "nodes", list)
        _reserve_names(graph, nodes)
        for i, item in enumerate(nodes):
            try:
                values += self._results(graph, item, values, depth)
            except WeftError as error:
                raise GraphError(f"node {i} of {graph.name!r:.60}: {error}") from error
        graph.inputs = [_value(values, i) for i in _field(data, "inputs", list)]
        graph.outputs = [_value(values, i) for i in _field(data, "outputs", list)]
        for name, i in _field(data, "names", dict).items():
            try:
                graph.name_value(_value(values, i), name)
            except WeftError as error:
                raise GraphError(str(error)) from error
        return graph

    def _results(
        self, graph: Graph, data: Any, values: Sequence[Value], depth: int
    ) -> Sequence[Value]:
        """Append a node and return its results."""
        if _field(data, "op", str) == GROUP:
            return self._members(graph, data, values, depth)
        return graph.append(self._node(data, values, depth)).outputs

    def _members(
        self, graph: Graph, data: Any, values: Sequence[Value], depth: int
    ) -> Sequence[Value]:
        """Append what a node of former files stands for."""
        attrs = [self._attr(a, depth, 0) for a in _field(data, "attrs", list)]
        if len(attrs) != 1 or not is_graph(attrs[0]):
            raise GraphError(f"{GROUP} has one attribute, a graph. Received: {attrs!r:.80}")
        (body,) = attrs
        verify(body)
        inputs = [_value(values, i) for i in _field(data, "inputs", list)]
        if len(inputs) != len(body.inputs):
            raise GraphError(f"{GROUP} takes {len(body.inputs)} values. Received: {len(inputs)}")
        found = inline(graph, body, inputs)
        return [found[value] for value in body.outputs]

    def _node(self, data: Any, values: Sequence[Value], depth: int) -> Node:
        op = operator_named(_field(data, "op", str))
        inputs = [None if i is None else _value(values, i) for i in _field(data, "inputs", list)]
        given = [self._attr(a, depth, 0) for a in _field(data, "attrs", list)]
        attrs = (*given, *_later_options(op, len(given)))
        types = [decode_type(t) for t in _field(data, "types", list)]
        _check_operation(op, inputs, attrs, len(types))
        return Node(
            op,
            inputs,
            attrs,
            types,
            name=_field(data, "name", str),
            scope=_scope(data),
            site=_field(data, "site", str) if "site" in data else None,
            device=str(check_device(data.get("device", "cpu"))),
            pinned=data.get("device") == "cpu",
        )

    def _attr(self, data: Any, depth: int, tuples: int) -> Any:
        if data is None or isinstance(data, (bool, int, str)):
            return data
        if isinstance(data, float):
            if not math.isfinite(data):  # JSON reads 1e999 as infinity
                raise GraphError("a number is out of range")
            return data
        if isinstance(data, list):
            if tuples > MAX_TUPLES:
                raise GraphError("an attribute is nested too deeply")
            return tuple(self._attr(item, depth, tuples + 1) for item in data)
        kind = _field(data, TAG, str)
        if kind == "graph":
            return self.graph(data, depth + 1)
        if kind not in _READERS:
            raise GraphError(f"an attribute is of an unknown kind: {kind!r:.60}")
        return _READERS[kind](self, data)

    def _constant(self, data: Any) -> Literal:
        array = _array(self.arrays, _field(data, "key", str))
        array.flags.writeable = False  # nobody else has it: no copy is needed
        return Literal(array)

    def _state(self, data: Any) -> State:
        index: int = _field(data, "index", int)
        if not 0 <= index < len(self.states):
            raise GraphError(f"there is no state number {index}")
        return self.states[index]


def _reserve_names(graph: Graph, nodes: list[Any]) -> None:
    """Keep the names of nodes free for them where members of groups come before."""
    if any(isinstance(item, dict) and item.get("op") == GROUP for item in nodes):
        for item in nodes:
            if _field(item, "op", str) != GROUP:
                graph.unique_name(_field(item, "name", str))


def _read_float(_: Any, data: Any) -> float:
    text = _field(data, "value", str)
    if text not in ("nan", "inf", "-inf"):
        raise GraphError(f"{text!r:.60} is no number")
    return float(text)


_READERS: dict[str, Callable[[_Decoder, Any], Any]] = {
    "float": _read_float,
    "ellipsis": lambda *_: Ellipsis,
    "dtype": lambda _, data: as_dtype(_field(data, "name", str)),
    "type": lambda _, data: decode_type(_field(data, "type", dict)),
    "size": lambda _, data: decode_size(data),
    "constant": _Decoder._constant,
    "state": _Decoder._state,
}


# -- operations ------------------------------------------------------------------------------------

_ATTRIBUTES = {PLACEHOLDER: TensorType, CONSTANT: Literal, STATE: State, ASSIGN: State}

# How many results there are, without the rule that would make so many: it may be a claimed size.
_RESULTS: dict[str, Callable[..., Any]] = {
    "split": lambda types, sizes, axis: len(sizes),
    "unbind": lambda types, axis: types[0].shape[axis],
}


def _later_options(op: Any, given: int) -> list[bool]:
    """Return the options, off by default, that an operator has had only since a file was made."""
    missing = list(op.attrs.values())[given:] if isinstance(op.attrs, Mapping) else []
    return missing if all(default is False for default in missing) else []


def _check_operation(
    op: Any, inputs: Sequence[Value | None], attrs: tuple[Any, ...], outputs: int
) -> None:
    """Raise unless attributes are in the form in which the operator would put them itself."""
    types = [None if value is None else value.type for value in inputs]
    least = len(op.inputs) - op.variadic
    if len(types) < least or (len(types) > least and not op.variadic):
        raise GraphError(f"{op.name} takes {least} values. Received: {len(types)}")
    if len(attrs) != len(op.attrs):
        raise GraphError(f"{op.name} has {len(op.attrs)} attributes. Received: {len(attrs)}")
    if op.outputs is not None and outputs != op.outputs:
        raise GraphError(f"{op.name} makes {op.outputs} values. Received: types of {outputs}")
    try:
        _check_kinds(op, attrs)
        if op.name in _RESULTS and _RESULTS[op.name](types, *attrs) != outputs:
            raise GraphError(f"{op.name} does not make {outputs} values")
        _check_canonical(op, types, attrs)
    except WeftError:
        raise
    except Exception as error:  # rules may fail in any way on what no program gives them
        raise GraphError(f"{op.name} cannot have these attributes: {error!r:.80}") from error


def _check_kinds(op: Any, attrs: tuple[Any, ...]) -> None:
    wanted = _ATTRIBUTES.get(op)
    if wanted is not None:
        if not isinstance(attrs[0], wanted):
            raise GraphError(f"{op.name} refers to a {type(attrs[0]).__name__}")
        return
    has_bodies = getattr(op, "canonicalize", None) is None and op.kind == "control"
    for item in attr_items(attrs):
        if isinstance(item, (TensorType, Literal, State)) or (is_graph(item) and not has_bodies):
            raise GraphError(f"{op.name} cannot have a {type(item).__name__} as attribute")


def _check_canonical(op: Any, types: Sequence[Any], attrs: tuple[Any, ...]) -> None:
    rule = getattr(op, "canonicalize", None)
    if rule is None:
        return
    canonical = tuple(rule(*group(op, types), *attrs))
    if not same_content(canonical, attrs):
        raise GraphError(f"{op.name} has attributes {attrs!r:.80} instead of {canonical!r:.80}")


# -- types -----------------------------------------------------------------------------------------


def decode_type(data: Any) -> TensorType:
    """Return the type that data describes."""
    shape = _field(data, "shape", list)
    if len(shape) > MAX_NDIM:
        raise GraphError(f"a shape of {len(shape)} dimensions is more than an array can have")
    sizes = tuple(decode_size(size) for size in shape)
    check_complexity(sizes)
    for size in sizes:
        if not isinstance(size, Dim) and not 0 <= size < MAX_SIZE:
            raise GraphError(f"{size} is not the size of an array")
    return TensorType(sizes, as_dtype(_field(data, "dtype", str)))


def decode_size(data: Any, nested: int = 0) -> Any:
    """Return the size that data describes."""
    if isinstance(data, int) and not isinstance(data, bool):
        return data
    if not isinstance(data, dict) or nested > MAX_ATOMS:
        raise GraphError(f"{data!r:.60} is not a size")
    terms = _field(data, "terms", list)
    if not 0 < len(terms) <= MAX_ATOMS:
        raise GraphError("a size is an expression that is too long, or empty")
    size = sum(_decode_term(term, nested) for term in terms)
    if not isinstance(size, Dim) or len(size.terms) != len(terms):
        raise GraphError(f"{size!r:.60} is not a size in normal form")
    check_complexity((size,))
    return size


def _decode_term(data: Any, nested: int) -> Any:
    if not isinstance(data, list) or not 0 < len(data) <= MAX_ATOMS or type(data[0]) is not int:
        raise GraphError(f"{data!r:.60} is not a term of a size")
    term = data[0]
    for atom in data[1:]:
        term = _decode_atom(atom, nested) * term
    return term


def _decode_atom(data: Any, nested: int) -> Any:
    if isinstance(data, str) and data:
        return unknown_size(data)
    if not isinstance(data, list) or len(data) != 3 or data[0] not in FUNCTIONS:
        raise GraphError(f"{data!r:.60} is not part of a size")
    name, a, b = data
    atom = FUNCTIONS[name](decode_size(a, nested + 1), decode_size(b, nested + 1))
    # Anything but a single call would have been written as what it is; products of sums explode.
    if not isinstance(atom, Dim) or len(atom.terms) != 1:
        raise GraphError(f"{atom!r:.60} is not a size in normal form")
    return atom


# -- fields ----------------------------------------------------------------------------------------


def _field(data: Any, name: str, kind: type) -> Any:
    """Return a field of an object; raise unless it is there and of the right kind."""
    if not isinstance(data, dict):
        raise GraphError(f"expected an object with {name!r}. Received: {data!r:.60}")
    if name not in data:
        raise GraphError(f"{name!r} is missing in {data!r:.60}")
    value = data[name]
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise GraphError(f"{name!r} must be of type {kind.__name__}. Received: {value!r:.60}")
    return value


def _value(values: Sequence[Value], index: Any) -> Value:
    if type(index) is not int or not 0 <= index < len(values):
        raise GraphError(f"value {index!r:.60} is not made before it is used")
    return values[index]


def _array(arrays: Mapping[str, Array], key: str) -> Array:
    if key not in arrays:
        raise GraphError(f"the file lacks the array {key!r:.60}")
    return arrays[key]


def _scope(data: Any) -> tuple[str, ...]:
    scope = _field(data, "scope", list) if "scope" in data else []
    if not all(isinstance(part, str) and part for part in scope):
        raise GraphError(f"a name scope must be made of names. Received: {scope!r:.60}")
    return tuple(scope)
