"""Wire the nodes of a graph anew: some take other values, some sizes are others, some are gone.

The graph that is made goes on where the old one stood: it can be built into, differentiated and
edited again, and finds what symbols of the old one mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.dim import Dim, unknown_size, variables
from ..core.errors import GraphError
from .custom import CustomGradient
from .edit_sizes import KnownSizes, node_with_sizes
from .graph import Graph
from .node import Node, Value, size_variables
from .rebuild import Rebuild
from .special import PLACEHOLDER


class Edit(Rebuild):
    """A rebuild whose result is as open as the old graph is."""

    def __init__(self, old: Graph) -> None:
        super().__init__(old, old.outputs)
        self.graph.take_names(old)

    def finish(self) -> Graph:
        """Return the new graph, with all that is needed to build further."""
        new, old = super().finish(), self.old
        new.inputs = [v for v in dict.fromkeys(new.inputs) if v.node.op is PLACEHOLDER and v in new]
        new.extended = {a: b for a, b in new.extended.items() if a.inputs == b.inputs}
        new.differentiated = {v for v in map(self.value, old.differentiated) if v in new}
        new.tracer.go_on_from(old.tracer, self._found)
        new.tracer.sequential = old.tracer.sequential
        new.add_origin(old)
        new.free_names({*old.names, *(node.name for node in old.nodes)})
        return new

    def _found(self, value: Value) -> Value | None:
        here = self.value(value)
        return here if here in self.graph else None


def copied(graph: Graph) -> Graph:
    """Return a graph of the same nodes, to build in without changing the first."""
    edit = Edit(graph)
    for node in graph.nodes:
        edit.graph.append(node)
    return edit.finish()


def rewired(
    graph: Graph,
    taken: Mapping[Value, Value],
    sizes: KnownSizes | None = None,
    gone: Sequence[Value] = (),
) -> Graph:
    """Return a graph in which nodes that took some values take others.

    taken   what is taken in place of values, except by nodes that lead to it
    sizes   what unknown sizes are
    gone    placeholders among the values, of which nothing is left
    """
    wiring = _Wiring(graph, taken, KnownSizes() if sizes is None else sizes, set(gone))
    edit = Edit(graph)
    for node in wiring.order():
        if node.outputs and node.outputs[0] in wiring.gone:
            continue
        inputs = [None if x is None else edit.value(x) for x in wiring.inputs(node)]
        if isinstance(node.op, CustomGradient) and wiring.changes_inside(node):
            edit.replace(node, node.op.passed_on(inputs, node.attrs))
        else:
            edit.place(node, node_with_sizes(node, inputs, wiring.sizes))
    for value in gone:
        edit.redirect(value, edit.value(taken[value]))
    edit.outputs = [taken.get(value, value) for value in edit.outputs]
    return edit.finish()


class _Wiring:
    """Who takes what, and in which order nodes can then run."""

    def __init__(
        self, graph: Graph, taken: Mapping[Value, Value], sizes: KnownSizes, gone: set[Value]
    ) -> None:
        self.graph = graph
        self.taken = taken
        self.sizes = sizes
        self.gone = gone
        self._leading = {old: set(graph.ancestors([new])) for old, new in taken.items()}
        self._tellers = graph.size_sources()

    def inputs(self, node: Node) -> list[Value | None]:
        """Return what a node takes."""
        return [self._taken_by(node, x) for x in node.inputs]

    def _taken_by(self, node: Node, x: Any) -> Any:
        return x if x not in self.taken or node in self._leading[x] else self.taken[x]

    def changes_inside(self, node: Node) -> bool:
        """Tell whether a checkpoint would compute again what is not there any more.

        Its gradient copies nodes as they were built, on the operands that it has now.
        """
        known = self.graph.aliases
        inside = {known.get(n.outputs[0], n.outputs[0]).node for n in node.op.nodes}
        if not inside or self.sizes:
            return bool(inside)
        pairs = [(user, x) for user in (node, *inside) for x in user.inputs if x is not None]
        return any(
            self._taken_by(user, x) is not (x if x.node in inside else self._taken_by(node, x))
            for user, x in pairs
        )

    # -- order -------------------------------------------------------------------------------------

    def order(self) -> list[Node]:
        """Return the nodes in an order in which they can run: the old one, where it can be kept."""
        if not self.taken and not self.sizes:
            return self.graph.nodes
        found: dict[Node, None] = {}
        for node in self.graph.nodes:
            if node not in found:
                self._visit(node, found)
        return list(found)

    def _visit(self, root: Node, found: dict[Node, None]) -> None:
        """Put a node behind all that it needs."""
        path: dict[Node, Iterator[Node]] = {root: self._needs(root)}
        while path:
            node, needs = next(reversed(path.items()))
            before = next((n for n in needs if n not in found), None)
            if before is None:
                del path[node]
                found[node] = None
            elif before in path:
                raise GraphError(
                    f"replace: {before.name} and {node.name} would each need the other; replace "
                    "the values one after another, as two edits"
                )
            else:
                path[before] = self._needs(before)

    def _needs(self, node: Node) -> Iterator[Node]:
        """Yield the nodes that must run before one, those that tell it sizes included."""
        for value in self.inputs(node):
            if value is not None:
                yield value.node
        for variable in size_variables(node):
            for known in variables(self.sizes[variable] if self.sizes else _size(variable)):
                teller = self._tellers.get(known)
                if teller is not None and teller.node is not node:
                    yield (self.taken[teller] if teller in self.gone else teller).node


def _size(variable: Any) -> Dim:
    return unknown_size(variable.name)
