"""Sizes that become known, or become others: put into the types, attributes and bodies of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.dim import Dim, SizeVar, evaluate, is_known, is_told, unknown_size, variables
from ..core.dispatch import ERRORS, canonical
from ..core.errors import DTypeError, ShapeError, UnknownSizeError
from ..core.shape import Shape, TensorType
from .graph import Graph
from .layout import has_unknown_sizes
from .node import Node, Value, is_graph, map_attr, type_text
from .run import located_error
from .special import PLACEHOLDER


class KnownSizes(dict[SizeVar, Any]):
    """What unknown sizes are; one that is not known stands for itself."""

    def __missing__(self, variable: SizeVar) -> Dim:
        return unknown_size(variable.name)

    def bind(self, variable: SizeVar, size: Any) -> None:
        """Let an unknown size be another one, in the sizes that are known too."""
        one = KnownSizes({variable: size})
        for known in self:
            self[known] = evaluate(self[known], one)
        self[variable] = size


# -- which sizes make one value fit in the place of another ----------------------------------------


class Fitting:
    """Finds the sizes with which values can stand for others.

    what    the function of the user's that errors name
    free    the unknown sizes that may become known: those that feeds tell, and only they, since
            what is fed is checked
    """

    def __init__(self, what: str, free: set[SizeVar]) -> None:
        self.what = what
        self.free = free
        self.sizes = KnownSizes()

    def fit(self, old: Value, new: Value) -> None:
        """Bind the sizes that differ; raise unless the new value can stand for the old one."""
        if old.dtype != new.dtype:
            raise DTypeError(f"{self._both(old, new)}; cast it, e.g. new.to({old.dtype.name!r})")
        if len(old.shape) != len(new.shape):
            raise ShapeError(f"{self._both(old, new)}; both must have one shape")
        for before, after in zip(old.shape, new.shape, strict=True):
            if not self._agree(evaluate(before, self.sizes), evaluate(after, self.sizes)):
                raise ShapeError(f"{self._both(old, new)}; {self._why(before, after)}")

    def _agree(self, a: Any, b: Any) -> bool:
        if a == b:
            return True
        for size, other in ((a, b), (b, a)):
            variable = size.variable() if isinstance(size, Dim) else None
            if variable in self.free and variable not in variables(other):
                self.sizes.bind(variable, other)
                return True
        return False

    def _why(self, a: Any, b: Any) -> str:
        if isinstance(a, Dim) or isinstance(b, Dim):
            return f"the size {a} is not known to be {b}"
        return f"the size {a} is not {b}"

    def _both(self, old: Value, new: Value) -> str:
        return f"{self.what}: {described(new)} cannot stand for {described(old)}"


def described(value: Value) -> str:
    """Return a value for a message: its name, type and line."""
    where = f", built at {value.node.where}" if value.node.where else ""
    return f"{value.name} ({type_text(value.type)}{where})"


def fed_sizes(graph: Graph) -> set[SizeVar]:
    """Return the unknown sizes that placeholders tell."""
    sources = graph.size_sources().items()
    return {variable for variable, value in sources if value.node.op is PLACEHOLDER}


# -- putting sizes in ------------------------------------------------------------------------------


def node_with_sizes(node: Node, inputs: Sequence[Value | None], sizes: KnownSizes) -> Node:
    """Return a node on given inputs, with sizes put in wherever it has them; itself if it can."""
    if not sizes:
        same = all(a is b for a, b in zip(inputs, node.inputs, strict=True))
        return node if same else node.rebuilt(inputs)
    attrs = map_attr(lambda item: _put(item, sizes), node.attrs)
    types = [type_with_sizes(value.type, sizes) for value in node.outputs]
    if has_unknown_sizes(node.op, node.inputs) and is_told_all(inputs):
        attrs = _located(node, inputs, attrs)
    same = attrs is node.attrs and all(
        a is b for a, b in zip(types, (y.type for y in node.outputs), strict=True)
    )
    if same and all(a is b for a, b in zip(inputs, node.inputs, strict=True)):
        return node
    return node.rebuilt(inputs, attrs=attrs, types=types)


def type_with_sizes(kind: TensorType, sizes: KnownSizes) -> TensorType:
    """Return a type with sizes put in; itself if it has none of them."""
    if not any(v in sizes for size in kind.shape for v in variables(size)):
        return kind
    return TensorType(tuple(evaluate(size, sizes) for size in kind.shape), kind.dtype)


def _put(item: Any, sizes: KnownSizes) -> Any:
    if isinstance(item, Dim):
        return evaluate(item, sizes) if any(v in sizes for v in variables(item)) else item
    if isinstance(item, TensorType):
        return type_with_sizes(item, sizes)
    return body_with_sizes(item, sizes) if is_graph(item) else item


def body_with_sizes(body: Graph, sizes: KnownSizes) -> Graph:
    """Return a body of control flow with sizes put in; itself if it has none of them."""
    made = Graph(body.name)
    now: dict[Value | None, Value | None] = {None: None}
    for node in body.nodes:
        copy = made.append(node_with_sizes(node, [now[x] for x in node.inputs], sizes))
        now.update(zip(node.outputs, copy.outputs, strict=True))
    if all(a is b for a, b in zip(made.nodes, body.nodes, strict=True)):
        return body
    made.inputs = [now[value] for value in body.inputs]  # type: ignore[misc]  # no input is left out
    made.outputs = [now[value] for value in body.outputs]  # type: ignore[misc]  # nor is a result
    made.is_function = body.is_function
    return made


def _located(node: Node, inputs: Sequence[Value | None], attrs: tuple[Any, ...]) -> tuple[Any, ...]:
    try:
        found = checked_attrs(node.op, inputs, attrs)
    except UnknownSizeError:
        return attrs  # looks at more than sizes: it is checked when the graph runs
    except ERRORS as error:
        raise located_error(node, error, inputs, attrs) from None
    return found


# -- checks that had to wait for sizes -------------------------------------------------------------


def is_told_all(values: Sequence[Value | None]) -> bool:
    """Tell whether all sizes of values are known, or told to every run."""
    return all(value is None or is_told(value.shape) for value in values)


def checked_attrs(
    op: Any, inputs: Sequence[Value | None], attrs: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Return attributes after the checks of an operator, which may look at sizes."""
    try:
        return canonical(op, tuple(map(_stand_in, inputs)), attrs)
    except AttributeError as error:
        raise UnknownSizeError(f"{op.name} looks at more than sizes: {error}") from None


class _Operand(NamedTuple):
    """What the checks of an operator see of an operand whose sizes every run is told."""

    shape: Shape
    dtype: Any

    @property
    def ndim(self) -> int:
        return len(self.shape)


def _stand_in(value: Value | None) -> Any:
    """Return an array of a value's shape and dtype, for the checks of an operator, at no cost."""
    if value is None:
        return None
    if not is_known(value.shape):
        return _Operand(value.shape, value.dtype)
    return np.broadcast_to(np.zeros((), value.dtype), value.shape)


def renamed_sizes(used: set[SizeVar], known: set[SizeVar], graph: Graph) -> KnownSizes:
    """Return other names for those of the unknown sizes that a graph knows in another meaning."""
    names = {variable.name for variable in known}
    found = KnownSizes()
    for variable in sorted(used & known, key=lambda variable: variable.name):
        name = variable.name
        while name in names:
            name = graph.unique_name(variable.name)
        found[variable] = unknown_size(name)
    return found
