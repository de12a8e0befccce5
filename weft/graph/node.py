"""Nodes and values: what a graph is made of.

A node is one operation: an operator, the values it takes, attributes, and the values it makes. Both
are frozen; identity is what tells them apart. A node knows nothing of the graphs it stands in, so
that a pass can keep the nodes it does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from ..core.dim import Dim, SizeVar, evaluate, variables
from ..core.errors import Site, format_site
from ..core.shape import Shape, TensorType


class Value:
    """One result of a node: who makes it, and its type."""

    __slots__ = ("index", "node", "type")

    node: Node
    index: int
    type: TensorType

    def __init__(self, node: Node, index: int, type: TensorType) -> None:
        _set_node(self, node)
        _set_index(self, index)
        _set_type(self, type)

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a value of a graph is frozen; {name} cannot be set")

    @property
    def shape(self) -> Shape:
        """Return its sizes, unknown ones as Dim."""
        return self.type.shape

    @property
    def dtype(self) -> Any:
        """Return its element type."""
        return self.type.dtype

    @property
    def name(self) -> str:
        """Return the node's name, with the position of this result if there are several."""
        return self.node.name if len(self.node.outputs) == 1 else f"{self.node.name}:{self.index}"

    def __repr__(self) -> str:
        return f"<{self.name}: {type_text(self.type)}>"


class Node:
    """One operation of a graph.

    op        the operator: an Op, or one of the graph's own in graph/special.py
    inputs    the values it takes; None for an optional operand that was left out
    attrs     its attributes in canonical form, in the order in which the operator declares them
    outputs   the values it makes
    name      unique in the graph it was built in
    scope     the name scopes around it, outermost first
    site      the user's line that built it: a code position, or text if it was loaded
    device    where it runs; "cpu" too if it was placed nowhere
    pinned    whether it was placed on the CPU, and does not go where others are
    """

    __slots__ = ("attrs", "device", "inputs", "name", "op", "outputs", "pinned", "scope", "site")

    op: Any
    inputs: tuple[Value | None, ...]
    attrs: tuple[Any, ...]
    outputs: tuple[Value, ...]
    name: str
    scope: tuple[str, ...]
    site: Site | str
    device: str
    pinned: bool

    def __init__(
        self,
        op: Any,
        inputs: Sequence[Value | None],
        attrs: tuple[Any, ...],
        types: Iterable[TensorType],
        *,
        name: str,
        scope: tuple[str, ...] = (),
        site: Site | str = None,
        device: str = "cpu",
        pinned: bool = False,
    ) -> None:
        _set_op(self, op)
        _set_inputs(self, tuple(inputs))
        _set_attrs(self, attrs)
        _set_name(self, name)
        _set_scope(self, scope)
        _set_site(self, site)
        _set_device(self, device)
        _set_pinned(self, pinned)
        _set_outputs(self, tuple([Value(self, i, t) for i, t in enumerate(types)]))

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(f"a node of a graph is frozen; {name} cannot be set")

    @property
    def where(self) -> str | None:
        """Return the user's line that built it as `file.py:12`, if it is known."""
        return self.site if isinstance(self.site, str) else format_site(self.site)

    def attr(self, name: str) -> Any:
        """Return an attribute by its name."""
        return self.attrs[list(self.op.attrs).index(name)]

    def rebuilt(self, inputs: Sequence[Value | None], **changes: Any) -> Node:
        """Return the same operation on other inputs (or with another field changed)."""
        fields: dict[str, Any] = {
            "op": self.op,
            "attrs": self.attrs,
            "types": [value.type for value in self.outputs],
            "name": self.name,
            "scope": self.scope,
            "site": self.site,
            "device": self.device,
            "pinned": self.pinned,
        }
        return Node(inputs=inputs, **(fields | changes))

    def __repr__(self) -> str:
        shown = ", ".join("None" if x is None else x.name for x in self.inputs)
        made = ", ".join(type_text(value.type) for value in self.outputs)
        return f"<{self.name} = {self.op.name}({shown}) -> {made}>"


# Graphs have thousands of nodes, which are made several times: what sets their slots is found once.
_set_node, _set_index, _set_type = (
    Value.__dict__[name].__set__ for name in ("node", "index", "type")
)
_set_op, _set_inputs, _set_attrs, _set_outputs, _set_name, _set_scope, _set_site = (
    Node.__dict__[name].__set__
    for name in ("op", "inputs", "attrs", "outputs", "name", "scope", "site")
)
_set_device, _set_pinned = (Node.__dict__[name].__set__ for name in ("device", "pinned"))


def rename(node: Node, name: str) -> None:
    """Give a node another name; for the graph that has just made it."""
    _set_name(node, name)


def type_text(type: TensorType) -> str:
    """Return a type as text, e.g. `float32[n, 784]`."""
    return f"{type.dtype.name}[{', '.join(map(str, type.shape))}]"


# -- what attributes contain -----------------------------------------------------------------------


def map_attr(fn: Callable[[Any], Any], attr: Any) -> Any:
    """Return an attribute with a function applied to everything in it that is no tuple."""
    if attr.__class__ is tuple:
        changed = tuple(map_attr(fn, item) for item in attr)
        return attr if all(a is b for a, b in zip(attr, changed, strict=True)) else changed
    return fn(attr)


def attr_items(attr: Any) -> Iterator[Any]:
    """Yield everything in an attribute that is no tuple."""
    if attr.__class__ is tuple:
        for item in attr:
            yield from attr_items(item)
    else:
        yield attr


def size_variables(node: Node) -> set[SizeVar]:
    """Return the unknown sizes that a node must know to run, those of its subgraphs included."""
    found: set[SizeVar] = set()
    for item in attr_items(node.attrs):
        if isinstance(item, Dim):
            found.update(variables(item))
        elif is_graph(item):
            found |= item.free_sizes()
    return found


def resolve_attrs(attrs: tuple[Any, ...], sizes: Mapping[SizeVar, Any]) -> tuple[Any, ...]:
    """Return attributes with the unknown sizes put in."""
    resolved: tuple[Any, ...] = map_attr(
        lambda item: evaluate(item, sizes) if item.__class__ is Dim else item, attrs
    )
    return resolved


def is_graph(item: Any) -> bool:
    """Tell whether an attribute is the subgraph of a control-flow node."""
    return hasattr(item, "free_sizes")


def subgraphs(node: Node) -> list[Any]:
    """Return the subgraphs of a control-flow node."""
    return [item for item in attr_items(node.attrs) if is_graph(item)]
