"""Begin exchanges among processes early, and wait for them late: machine code runs in between.

An exchange becomes two nodes. All that one needs is computed, and it begins, before anything that
it does not need; who takes its result comes behind all that does not. Exchanges begin in the order
of the program, the same on all processes. Those in bodies of control flow stay as they are.

Memory sets limits to that. A gather of parts that are there from the start (sharded parameters)
could begin at once, and all of them would: it begins when the result of the one before it is taken,
and so is on its way while that is used. Of sums that are scattered, whose operands are larger than
their results, two are on their way at most. And new values of states are computed when no exchange
is left that could fail, so that they can be written in place.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from ..core.op import find_op
from ..graph.communication import START, WAIT
from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.rebuild import Rebuild
from ..graph.special import SOURCES
from ..graph.state import LINK
from ..ops.collective.exchange import GATHERS, SCATTERS
from .dce import remove_dead

GETITEM, MATMUL = find_op("getitem"), find_op("matmul")
AHEAD = 1  # gathers of what is there from the start that are on their way at a time
SCATTERED = 2  # sums on their way of which each process gets a part


def overlap_exchanges(graph: Graph, committed: int = 0) -> Graph:
    """Return a graph whose exchanges are begun and waited for, in an order that leaves time.

    The last outputs, so many as are `committed`, are new values of states.
    """
    if not any(_is_exchange(node) for node in graph.nodes):
        return graph
    graph = remove_dead(_in_rows(graph))
    exchanges = [node for node in graph.nodes if _is_exchange(node)]
    return _Overlap(graph, exchanges, _updates(graph, exchanges, committed)).graph


def _updates(graph: Graph, exchanges: Iterable[Node], committed: int) -> set[Node]:
    """Return the nodes that new values of states alone need."""
    fetched = graph.outputs[: len(graph.outputs) - committed]
    given = [x for node in exchanges for x in (*node.inputs, *node.outputs) if x is not None]
    other = {*graph.ancestors([*fetched, *given])}
    return {node for node in graph.nodes if node not in other and node.op not in SOURCES}


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

    def __init__(self, graph: Graph, exchanges: Sequence[Node], updates: set[Node]) -> None:
        self._rebuild = Rebuild(graph, graph.outputs)
        self._positions = {node: i for i, node in enumerate(graph.nodes)}
        self._exchanges = set(exchanges)
        self._early = {x for x in exchanges if x.attrs[0] in GATHERS and _is_there(graph, x)}
        self._updates = updates
        self._known: set[Value] = set()  # values of the old graph that are computed by now
        self._tickets: dict[Node, Value] = {}
        self._link: Value | None = None  # of the exchange that was begun last
        self._waiting = deque(exchanges)  # those that have not begun
        self._gathered: deque[Node] = deque()  # those on their way that were there from the start
        self._scattered: deque[Node] = deque()
        self._left = dict.fromkeys(graph.nodes)
        for exchange in exchanges:
            if exchange not in self._early:
                self._begin(exchange)
        self._place_ready(updates)
        for exchange in exchanges:
            self._wait(exchange)
            self._place_ready(updates)
        self._place_ready(())
        assert not self._left
        self.graph = self._rebuild.finish()

    def _begin(self, exchange: Node) -> None:
        """Begin an exchange as soon as what it needs is there, behind those before it."""
        if exchange in self._tickets:
            return
        self._compute(exchange.inputs[1:])
        while exchange not in self._tickets:
            self._begin_next()
        if exchange not in self._early:
            self._begin_ahead()

    def _begin_next(self) -> None:
        """Begin the next exchange of the program; its link keeps it behind the one before."""
        exchange = self._waiting[0]
        self._compute(exchange.inputs if self._link is None else exchange.inputs[1:])
        if exchange.attrs[0] in SCATTERS:
            while len(self._scattered) >= SCATTERED:
                self._wait(self._scattered[0])
            self._scattered.append(exchange)
        elif exchange in self._early:
            self._gathered.append(exchange)
        self._waiting.popleft()
        rebuild = self._rebuild
        link, *inputs = (rebuild.value(x) for x in exchange.inputs if x is not None)
        given = [link if self._link is None else self._link, *inputs]
        start = rebuild.fresh(exchange, START, given, (*exchange.attrs, True), [LINK, LINK])
        rebuild.graph.append(start)
        self._link, self._tickets[exchange] = start.outputs
        rebuild.redirect(exchange.outputs[0], self._link)
        self._known.add(exchange.outputs[0])

    def _begin_ahead(self) -> None:
        """Begin gathers of what is there from the start, as many as may be on their way."""
        while self._waiting and self._waiting[0] in self._early and len(self._gathered) < AHEAD:
            self._begin_next()

    def _wait(self, exchange: Node) -> None:
        """Take the result of an exchange, unless somebody has needed it before."""
        if exchange not in self._left:
            return
        self._begin(exchange)
        del self._left[exchange]
        result = exchange.outputs[1]
        attrs = (result.shape, result.dtype.str, True)
        ticket = self._tickets[exchange]
        wait = self._rebuild.fresh(exchange, WAIT, [ticket], attrs, [result.type])
        self._rebuild.graph.append(wait)
        self._rebuild.redirect(result, wait.outputs[0])
        self._known.add(result)
        for on_their_way in (self._gathered, self._scattered):
            if exchange in on_their_way:
                on_their_way.remove(exchange)
        self._begin_ahead()

    def _compute(self, values: Iterable[Value | None]) -> None:
        """Place all that some values need, in the program's order."""
        needed = self._missing(values)
        for node in sorted({value.node for value in needed}, key=self._positions.__getitem__):
            if node in self._exchanges:
                take = self._wait if node.outputs[1] in needed else self._begin
                take(node)
            elif node in self._left:
                self._place(node)

    def _missing(self, values: Iterable[Value | None]) -> set[Value]:
        """Return what is not known of values and what they need, up to exchanges."""
        pending = [x for x in values if x is not None]
        found: set[Value] = set()
        while pending:
            value = pending.pop()
            if value not in self._known and value not in found:
                found.add(value)
                if value.node not in self._exchanges:
                    pending += _taken(value.node)
        return found

    def _place(self, node: Node) -> None:
        self._rebuild.place(node, self._rebuild.current(node))
        self._known.update(node.outputs)
        del self._left[node]

    def _place_ready(self, later: Iterable[Node]) -> None:
        """Place all nodes, in the program's order, whose operands are there, but for some."""
        for node in [node for node in self._left if node not in later]:
            if node not in self._exchanges and self._known.issuperset(_taken(node)):
                self._place(node)


def _taken(node: Node) -> list[Value]:
    return [x for x in node.inputs if x is not None]


def _is_there(graph: Graph, exchange: Node) -> bool:
    """Tell whether what an exchange takes is there when the program begins, but for its form."""
    behind = graph.ancestors([x for x in exchange.inputs[1:] if x is not None])
    return all(x.op in SOURCES or x.op.is_view or x.op.kind == "elementwise" for x in behind)
