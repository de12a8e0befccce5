"""The outline of a program: its operations and how they depend on one another, as lines of text.

Processes that train together compare outlines, so what may well differ from one to the next is left
out: sizes (of rows, of sentences), numbers (a rank's place), values of constants, and operations
with a constant that change no type (`x + rank` is `x` on rank 0). Which real numbers a program
computes with is told apart from that, for those who ask whether such a difference is meant.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from .node import Node, Value, attr_items, is_graph
from .run import Program
from .special import CONSTANT


class OutlineLine(NamedTuple):
    """An operation of a program, and the user's line that it comes from, if that is known."""

    text: str
    site: str


def outline(program: Program) -> list[OutlineLine]:
    """Return a line for each operation of a program, in the order in which they run."""
    return list(_lines(program.order, program.resolved))


def real_numbers(program: Program) -> list[OutlineLine]:
    """Return a line for each operation with the real numbers that the program gives to it."""
    found = []
    for node in program.order:
        given = [program.resolved(x).node for x in node.inputs if x is not None]
        arrays = [x.attrs[0].array for x in given if x.op is CONSTANT]
        numbers = [float(a) for a in arrays if not a.ndim and a.dtype.kind == "f"]
        numbers += [item for item in attr_items(node.attrs) if isinstance(item, float)]
        if numbers:
            shown = ", ".join(map(repr, numbers))
            found.append(OutlineLine(f"{node.op.name}(..., {shown})", node.where or ""))
    return found


def sizes_of(program: Program) -> str:
    """Return the shapes of all that a program computes, as a text."""
    return " ".join(str(value.shape) for node in program.order for value in node.outputs)


def _lines(nodes: Iterable[Node], resolved: Callable[[Value], Value]) -> Iterator[OutlineLine]:
    places: dict[Value, str] = {}
    number = 0
    for node in nodes:
        inputs = [None if x is None else resolved(x) for x in node.inputs]
        if node.op is CONSTANT:
            places[node.outputs[0]] = "constant"
            continue
        changed = _only_changed(node, inputs)
        if changed is not None:
            places[node.outputs[0]] = places.get(changed, "outer")
            continue
        for value in node.outputs:
            places[value] = f"{number}.{value.index}"
        number += 1
        taken = ["-" if x is None else places.get(x, "outer") for x in inputs]
        made = [f"{value.dtype.name} ({len(value.shape)}-d)" for value in node.outputs]
        text = f"{node.op.name}({', '.join([*taken, *_words(node)])}) -> {', '.join(made)}"
        yield OutlineLine(text, node.where or "")


def _only_changed(node: Node, inputs: list[Value | None]) -> Value | None:
    """Return the operand that a node changes by constants alone, into something of its type."""
    others = [x for x in inputs if x is not None and x.node.op is not CONSTANT]
    if len(others) != 1 or len(inputs) < 2 or len(node.outputs) != 1 or node.op.advances:
        return None
    return others[0] if others[0].type == node.outputs[0].type else None


def _words(node: Node) -> Iterator[str]:
    """Yield what attributes say that is the same on all processes: words, and graphs inside."""
    for item in attr_items(node.attrs):
        if isinstance(item, str | bool):
            yield repr(item)
        elif is_graph(item):
            yield f"[{'; '.join(line.text for line in _lines(item.nodes, lambda value: value))}]"
