"""What a picture says of a node: its kind, and the lines in its box."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...graph.node import Node, Value, attr_items, is_graph, subgraphs, type_text
from ...graph.special import ASSIGN, CONSTANT, STATE, GraphOp
from .style import shortened

TITLE_LIMIT, LINE_LIMIT = 40, 46
MAX_TYPES = 3
_OPERAND, _NO_OPERAND = "·", "none"


def kind_of(node: Node) -> str:
    """Return the kind of a node, a key of style.LOOKS."""
    if isinstance(node.op, GraphOp):
        return str(node.op.name)
    if subgraphs(node):
        return "control"
    if node.op.multiplications_rule is not None:
        return "contraction"
    return str(getattr(node.op, "kind", "general"))


def title_of(node: Node, given: Mapping[Value, str]) -> str:
    """Return what to call a node: the name the user gave its value, or its own without scopes."""
    names = [given[value] for value in node.outputs if value in given]
    own = node.name.split("/")[-1] if node.op is STATE else own_name(node.name, node.scope)
    return shortened(", ".join(names) or own, TITLE_LIMIT)


def own_name(name: str, scope: tuple[str, ...]) -> str:
    """Return a name without the scopes in front of it.

    >>> own_name("block/conv_1", ("block",))
    'conv_1'
    """
    return name.removeprefix("".join(f"{part}/" for part in scope))


def detail_lines(node: Node, title: str) -> tuple[str, ...]:
    """Return the lines under the title: the operation, if the title hides it; types."""
    lines = [] if title.startswith(node.op.name) else [_operation(node)]
    lines += [shortened(text, LINE_LIMIT) for text in (operands_text(node), _attrs(node)) if text]
    return (*lines, *type_lines(node.outputs))


def type_lines(values: tuple[Value, ...]) -> tuple[str, ...]:
    """Return the types of some values; equal ones together, and the first if there are many."""
    counts = Counter(type_text(value.type) for value in values)
    texts = [text if count == 1 else f"{count} of {text}" for text, count in counts.items()]
    shown = tuple(shortened(text, LINE_LIMIT) for text in texts[:MAX_TYPES])
    rest = len(values) - sum(list(counts.values())[:MAX_TYPES])
    return (*shown, f"and {rest} more") if rest else shown


def tooltip(node: Node) -> str:
    """Return all that is known of a node, for when the reader points at it."""
    lines = [f"{node.name} = {node.op.name}"]
    lines += [f"-> {type_text(value.type)}" for value in node.outputs]
    lines += [f"{name} = {text}" for name, text in attr_texts(node)]
    lines += [f"on {node.device}"] if node.device != "cpu" else []
    lines += [f"built at {node.where}"] if node.where else []
    return "\n".join(lines)


def is_inline(node: Node) -> bool:
    """Tell whether a node is a constant so small that its consumer can show it."""
    return node.op is CONSTANT and node.attrs[0].array.size == 1


def _operation(node: Node) -> str:
    return f"to {node.attrs[0].name}" if node.op is ASSIGN else str(node.op.name)


def operands_text(node: Node) -> str:
    """Return the operands, if some are constants that have no box: `(·, 2.0)`."""
    if not any(value is not None and is_inline(value.node) for value in node.inputs):
        return ""
    return f"({', '.join(map(_operand, node.inputs))})"


def _operand(value: Value | None) -> str:
    if value is None:
        return _NO_OPERAND
    return _number(value.node.attrs[0].array) if is_inline(value.node) else _OPERAND


def _number(array: np.ndarray[Any, Any]) -> str:
    element = array.item()
    return f"{element:.5g}" if isinstance(element, float | complex) else str(element)


def _attrs(node: Node) -> str:
    return ", ".join(f"{name}={text}" for name, text in attr_texts(node))


def attr_texts(node: Node) -> Iterator[tuple[str, str]]:
    """Yield the names and values of the attributes that differ from their defaults."""
    if isinstance(node.op, GraphOp):
        return
    for (name, default), attr in zip(node.op.attrs.items(), node.attrs, strict=True):
        nested = any(is_graph(item) for item in attr_items(attr))
        if not nested and not _is_default(attr, default):
            yield name, _attr_text(attr)


def _is_default(attr: Any, default: Any) -> bool:
    # A Dim compares by its own rules, an array not at all: only plain values can be defaults.
    return attr is None or (type(attr) is type(default) and repr(attr) == repr(default))


def _attr_text(attr: Any) -> str:
    if isinstance(attr, tuple):
        inner = ", ".join(map(_attr_text, attr))
        return f"({inner},)" if len(attr) == 1 else f"({inner})"
    if isinstance(attr, np.dtype):
        return str(attr.name)
    return "..." if attr is Ellipsis else str(attr)
