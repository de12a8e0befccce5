"""Begin exchanges among processes early, and wait for them late: machine code runs in between.

An exchange becomes two nodes. All that one needs is computed, and it begins, before anything that
it does not need; who takes its result comes behind all that does not. Exchanges begin in the order
of the program, the same on all processes. Those in bodies of control flow stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..core.op import find_op
from ..graph.communication import START, WAIT
from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.rebuild import Rebuild
from ..graph.state import LINK
from .dce import remove_dead

GETITEM, MATMUL = find_op("getitem"), find_op("matmul")


def overlap_exchanges(graph: Graph) -> Graph:
    """Return a graph whose exchanges are begun and waited for, in an order that leaves time."""
    if not any(_is_exchange(node) for node in graph.nodes):
        return graph
    graph = remove_dead(_in_rows(graph))
    return _Overlap(graph, [node for node in graph.nodes if _is_exchange(node)]).graph


def _in_rows(graph: Graph) -> Graph:
    """Return a graph in which products that are needed in rows alone are computed in rows.

    So a gradient that travels in parts is computed in parts, the first of which travel meanwhile.
    """
    users = graph.users()
    rebuild = Rebuild(graph, graph.outputs)
    for node in graph.nodes:
        product = node.inputs[0] if _takes_rows(node) else None
        if product is not None and all(map(_takes_rows, users[product])):
            x, y = (rebuild.value(v) for v in product.node.inputs if v is not None)
            rows = rebuild.make(node, GETITEM, x, attrs=node.attrs)
            rebuild.replace(node, [rebuild.make(node, MATMUL, rows, y)])
        else:
            rebuild.place(node, rebuild.current(node))
    return rebuild.finish()


def _takes_rows(node: Node) -> bool:
    """Tell whether a node takes some rows of a product of two matrices."""
    if node.op is not GETITEM or len(node.attrs[0]) != 1 or not isinstance(node.attrs[0][0], tuple):
        return False
    (x,) = node.inputs
    if x is None or x.node.op is not MATMUL or node.attrs[0][0][2] not in (None, 1):
        return False
    return all(y is not None and len(y.shape) == 2 for y in x.node.inputs)


def _is_exchange(node: Node) -> bool:
    return bool(node.op.communicates) and node.op.kind == "general"


class _Overlap:
    """The new order of a graph's nodes."""

    def __init__(self, graph: Graph, exchanges: list[Node]) -> None:
        self._rebuild = Rebuild(graph, graph.outputs)
        self._exchanges = set(exchanges)
        self._known: set[Value] = set()  # values of the old graph that are computed by now
        self._tickets: dict[Node, Value] = {}
        self._left = dict.fromkeys(graph.nodes)
        for exchange in exchanges:
            self._begin(exchange)
        self._place_ready()
        for exchange in exchanges:
            self._wait(exchange)
            self._place_ready()
        assert not self._left
        self.graph = self._rebuild.finish()

    def _begin(self, exchange: Node) -> None:
        """Begin an exchange as soon as what it needs is there."""
        self._compute(exchange.inputs)
        if exchange in self._tickets:
            return
        rebuild = self._rebuild
        inputs = [rebuild.value(x) for x in exchange.inputs if x is not None]
        start = rebuild.fresh(exchange, START, inputs, exchange.attrs, [LINK, LINK])
        rebuild.graph.append(start)
        rebuild.redirect(exchange.outputs[0], start.outputs[0])
        self._known.add(exchange.outputs[0])
        self._tickets[exchange] = start.outputs[1]

    def _wait(self, exchange: Node) -> None:
        """Take the result of an exchange, unless somebody has needed it before."""
        if exchange not in self._left:
            return
        del self._left[exchange]
        result = exchange.outputs[1]
        attrs = (result.shape, result.dtype.str)
        ticket = self._tickets[exchange]
        wait = self._rebuild.fresh(exchange, WAIT, [ticket], attrs, [result.type])
        self._rebuild.graph.append(wait)
        self._rebuild.redirect(result, wait.outputs[0])
        self._known.add(result)

    def _compute(self, values: Iterable[Value | None]) -> None:
        """Place all that some values need, without recursion."""
        pending = [x for x in values if x is not None and x not in self._known]
        while pending:
            value = pending[-1]
            if value in self._known:
                pending.pop()
                continue
            node = value.node
            missing = [x for x in node.inputs if x is not None and x not in self._known]
            if missing:
                pending += missing
            elif node in self._exchanges:
                self._begin(node)
                if value is node.outputs[1]:
                    self._wait(node)
            else:
                self._place(node)

    def _place(self, node: Node) -> None:
        self._rebuild.place(node, self._rebuild.current(node))
        self._known.update(node.outputs)
        del self._left[node]

    def _place_ready(self) -> None:
        """Place all nodes, in the program's order, whose operands are there."""
        for node in list(self._left):
            if node not in self._exchanges and self._known.issuperset(_taken(node)):
                self._place(node)


def _taken(node: Node) -> list[Value]:
    return [x for x in node.inputs if x is not None]
