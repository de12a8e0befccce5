"""A whole step as NumPy text: from arrays and the states before to results and the states after.

def step(x, y, states):
weight = states["weight"]
...
return loss, {"weight": add_1}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ...core.errors import GraphError
from ...graph.graph import Graph
from ...graph.node import type_text
from ...graph.special import STATE
from ...graph.symbol import make_symbol
from .derivatives import READABLE
from .kernels import literal
from .loops import CONTROL
from .writer import INDENT, NumpyBlock, NumpyText


class PlacedValue(NamedTuple):
    """Where a value stands in a result: which output of the graph, and what is made of it."""

    output: int
    form: str = "{}"


class StepText(NamedTuple):
    """A graph to be written as a step.

    states    the names of states, by their keys
    result    the nest that is returned, with PlacedValue for values
    written   the states that are written, by name
    """

    name: str
    graph: Graph
    states: Mapping[Any, str]
    result: Any
    written: Mapping[str, PlacedValue | None]

    def source(self) -> str:
        """Return the text: a function of the graph's inputs, and of `states` by name.

        It returns the result and a dictionary of the states that are written.
        """
        symbols = [make_symbol(self.graph, value) for value in self.graph.outputs]
        graph = self.graph.optimize(symbols, passes=READABLE)
        name = self.name if self.name.isidentifier() else "program"
        program = NumpyText(CONTROL, name, "states")
        block = NumpyBlock(program, graph, typed=True)
        parameters = [block.name(value, value.node.name) for value in graph.inputs]
        head = [*_about(graph, parameters, self.states), *self._reads(block, graph)]
        found = block.write(graph.outputs)
        written = ", ".join(f"{_quoted(k)}: {_placed(v, found)}" for k, v in self.written.items())
        end = f"return {_nest(self.result, found)}, {{{written}}}"
        body = "\n".join(INDENT + line if line else "" for line in (*head, *block.lines, end))
        decorated = '@np.errstate(all="ignore")\n'
        return program.text(f"{decorated}def {name}({', '.join((*parameters, 'states'))}):\n{body}")

    def _reads(self, block: NumpyBlock, graph: Graph) -> list[str]:
        """Return the lines that take states from where they are given."""
        nodes = [node for node in graph.nodes if node.op is STATE]
        return [
            f"{block.name(node.outputs[0])} = states[{_quoted(self.states[node.attrs[0].key])}]"
            for node in nodes
        ]


def _about(graph: Graph, parameters: Sequence[str], states: Mapping[Any, str]) -> list[str]:
    """Return the text that says what the function takes."""
    given = [
        f"{name}: {type_text(value.type)}"
        for name, value in zip(parameters, graph.inputs, strict=True)
    ]
    kept = [
        f"states[{_quoted(states[node.attrs[0].key])}]: {type_text(node.outputs[0].type)}"
        for node in graph.nodes
        if node.op is STATE
    ]
    lines = ['"""Return the result, and the new states by name.', "", *given, *kept, '"""']
    return lines if given or kept else ['"""Return the result, and the new states by name."""']


def _nest(result: Any, found: Sequence[str]) -> str:
    """Return a result as an expression."""
    if isinstance(result, PlacedValue):
        return _placed(result, found)
    if type(result) in (list, tuple):
        inside = "".join(f"{_nest(x, found)}, " for x in result)
        return f"[{inside}]" if isinstance(result, list) else f"({inside})"
    if type(result) is dict:
        items = (f"{literal(k)}: {_nest(x, found)}" for k, x in result.items())
        return f"{{{', '.join(items)}}}"
    text = literal(result)
    if text is None:
        raise GraphError(f"a result of type {type(result).__name__} has no text: {result!r:.60}")
    return text


def _placed(place: PlacedValue | None, found: Sequence[str]) -> str:
    return "None" if place is None else place.form.format(found[place.output])


def _quoted(name: str) -> str:
    return repr(name) if '"' in name or "\\" in name else f'"{name}"'
