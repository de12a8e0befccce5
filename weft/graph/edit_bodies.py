"""Edits inside the bodies of control flow, whose values are named by a path.

    scan/fn/tanh          the node tanh of the body fn of the node scan
    cond/true_fn/mul:1    bodies are called fn, body_fn, cond_fn, true_fn and false_fn

A body knows only what enters it: an edit of one uses the values of that body and constants.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..core.dim import SizeVar
from ..core.errors import ArgumentError, GraphError
from .edit_sizes import fed_sizes
from .edit_wiring import Edit, copied
from .graph import Graph
from .node import Node, map_attr, subgraphs
from .special import ASSIGN, STATE
from .verify import verify

# Edits a graph at a value; only the unknown sizes that are given may become known.
EditAt = Callable[[Graph, Any, set[SizeVar]], Graph]


class _Place(NamedTuple):
    """The rest of a path, inside of a body of a node."""

    node: Node
    body: Graph
    rest: str


def edited_at(graph: Graph, at: Any, edit: EditAt) -> Graph:
    """Return a graph edited at a value, which may be inside of control flow; it is verified."""
    made = _edited(graph, at, edit, fed_sizes(graph))
    verify(made)
    return made


def _edited(graph: Graph, at: Any, edit: EditAt, free: set[SizeVar]) -> Graph:
    place = _place(graph, at) if isinstance(at, str) else None
    if place is None:
        return edit(graph, at, free)
    work = copied(place.body)
    work.take_names(graph)  # unknown sizes must have other names than those around
    body = _edited(work, place.rest, edit, set())
    if any(node.op in (STATE, ASSIGN) for node in body.nodes):
        raise GraphError(
            f"{at}: an edit inside of control flow can use the values of that body and constants; "
            "tensors from outside and random numbers must enter as operands when it is built"
        )
    return _with_body(graph, place, body)


def _place(graph: Graph, path: str) -> _Place | None:
    """Return where a path leads inside of control flow; None if it names a value of the graph."""
    try:
        graph.find(path)
    except ArgumentError:
        for node in graph.nodes:
            for body in subgraphs(node):
                start = f"{node.name}/{body.name}/"
                if path.startswith(start):
                    return _Place(node, body, path[len(start) :])
    return None


def _with_body(graph: Graph, place: _Place, body: Graph) -> Graph:
    edit = Edit(graph)
    for node in graph.nodes:
        new = edit.current(node)
        if node is place.node:
            attrs = map_attr(lambda item: body if item is place.body else item, new.attrs)
            new = new.rebuilt(new.inputs, attrs=attrs)
        edit.place(node, new)
    made = edit.finish()
    changed = edit.value(place.node.outputs[0]).node
    made.extended = {a: b for a, b in made.extended.items() if changed not in (a, b)}
    return made
