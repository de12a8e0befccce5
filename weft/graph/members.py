"""What users name when they run a graph: symbols, names, parameters and updates, as its values."""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core.errors import ArgumentTypeError, GraphError
from ..core.tensor import Tensor
from .graph import Graph
from .node import Value
from .symbol import Symbol
from .update import Update


class Wanted(NamedTuple):
    """The values behind fetches.

    fetches    values to return
    targets    updates to commit; a fetch that is an update returns None
    returned   for each fetch, whether it returns a value
    """

    fetches: tuple[Value, ...]
    targets: tuple[Value, ...]
    returned: list[bool]


def wanted_values(graph: Graph, leaves: list[Any], what: str) -> Wanted:
    """Return the values behind fetches; `what` is the function of the user's, for errors."""
    fetches: list[Value] = []
    targets: list[Value] = []
    for leaf in leaves:
        if isinstance(leaf, Update):
            targets += [graph.check_member(symbol.value, what) for symbol in leaf.symbols]
        else:
            fetches.append(member(graph, leaf, what, "fetch"))
    returned = [not isinstance(leaf, Update) for leaf in leaves]
    return Wanted(tuple(fetches), tuple(targets), returned)


def member(graph: Graph, leaf: Any, what: str, verb: str) -> Value:
    """Return the value that a symbol, a name or a tensor from outside stands for."""
    if isinstance(leaf, str):
        return graph.find(leaf)
    if isinstance(leaf, Symbol):
        return graph.check_member(leaf.value, what)
    if isinstance(leaf, Value):
        return graph.check_member(leaf, f"{what}: {verb}")
    if isinstance(leaf, Tensor):
        return _state_value(graph, leaf, what, verb)
    raise ArgumentTypeError(
        f"{what}: cannot {verb} {type(leaf).__name__} {leaf!r:.60}; give a symbol, a name "
        "or a parameter of the graph"
    )


def fed_member(graph: Graph, leaf: Any, what: str, verb: str) -> Value:
    """Return the value that is given when a symbol, a name or a tensor from outside is given one.

    A placeholder goes on being fed what enters, whatever has been written to it since.
    """
    if isinstance(leaf, Symbol):
        return graph.check_member(leaf.fed, what)
    return member(graph, leaf, what, verb)


def _state_value(graph: Graph, tensor: Tensor, what: str, verb: str) -> Value:
    known = graph.states_by_key().get((id(tensor), ""))
    if known is None:
        raise GraphError(
            f"{what}: cannot {verb} a tensor that the graph does not use: "
            f"{tensor.dtype}{list(tensor.shape)}; read it directly, with .numpy()"
        )
    return known
