"""Graphs as functions of their placeholders, to be written like functions of Python's."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.errors import ArgumentError, ArgumentTypeError
from ...core.tensor import constant
from ...core.tree import tree_leaves
from ...graph.graph import Graph
from ...graph.node import Value, type_text
from ...graph.special import PLACEHOLDER
from ...graph.symbol import Symbol
from ...graph.text.expressions import Names


def function_of_graph(
    given: Any, examples: tuple[Any, ...]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return a function that computes a graph, or symbols of one, and examples for it."""
    graph, outputs = _graph_of(given)
    places = _placeholders(graph, outputs)
    names = Names(set())
    parameters = [
        inspect.Parameter(names.give(x.node.name), inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for x in places
    ]

    def fn(*args: Any) -> Any:
        fed = {x.name: value for x, value in zip(places, args, strict=True)}
        return graph(outputs=outputs, **fed)

    fn.__name__ = graph.name
    fn.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # inspect's own
    if len(examples) not in (0, len(places)):
        shown = ", ".join(x.name for x in places) or "none"
        raise ArgumentError(
            f"source: {graph.name} has the placeholders {shown}; give a value for each, or none. "
            f"Received: {len(examples)}"
        )
    return fn, examples or tuple(map(_example, places))


def _graph_of(given: Any) -> tuple[Graph, Any]:
    if isinstance(given, Graph):
        return given, None
    leaves = tree_leaves(given)
    graphs = {id(leaf.graph): leaf.graph for leaf in leaves if isinstance(leaf, Symbol)}
    if len(graphs) != 1 or not all(isinstance(leaf, Symbol) for leaf in leaves):
        raise ArgumentTypeError(
            f"source: takes a function, a graph, or symbols of one graph. Received: {given!r:.60}"
        )
    return next(iter(graphs.values())), given


def _placeholders(graph: Graph, outputs: Any) -> list[Value]:
    """Return the placeholders that the outputs need."""
    if outputs is None:
        return [x for x in graph.inputs if x.node.op is PLACEHOLDER]
    needed = graph.ancestors([leaf.value for leaf in tree_leaves(outputs)])
    return [n.outputs[0] for n in needed if n.op is PLACEHOLDER]


def _example(value: Value) -> Any:
    if not all(isinstance(size, int) for size in value.shape):
        raise ArgumentError(
            f"source: {value.name} is {type_text(value.type)}, whose sizes are not all known; give "
            "an example of each placeholder"
        )
    return constant(np.ones(value.shape, value.dtype))
