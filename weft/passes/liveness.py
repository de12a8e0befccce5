"""Liveness: which storage each value of a graph needs, and from when to when.

Time is the position of a node in the order of running. A storage is alive from the node that makes
its first value until the last node that takes any value in it; what is fetched lives to the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from math import prod
from typing import Any

from ..core.errors import ArgumentTypeError
from ..core.op import elementwise
from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.special import ASSIGN, CONSTANT, PLACEHOLDER, SOURCES, STATE
from ..graph.symbol import Symbol
from ..graph.update import Update
from .layout import Layout, dense, is_dense, may_be_view, view_layouts
from .sizes import Known, known_attrs, known_shape

# What may start from its operand's storage besides elementwise operators: the operand's position.
OVERWRITES = {"setitem": 0, "setitem_arrays": 0, "scatter_along": 0, "random_dropout": 1}
POINTWISE = (elementwise,)  # kinds whose results need one element of each operand at a time
ORIGINS = {PLACEHOLDER: "feed", CONSTANT: "constant", STATE: "state"}


class Storage:
    """Bytes that one value or several share.

    origin   "feed", "constant" or "state" if it comes from outside of the run, else None
    birth    the time at which its first value is made
    death    the last time at which a value in it is needed
    values   what lives in it, in order: the first, its views, and what overwrites it
    """

    __slots__ = ("birth", "bytes", "death", "origin", "values")

    def __init__(self, nbytes: int, birth: int, origin: str | None) -> None:
        self.bytes = nbytes
        self.birth = birth
        self.death = birth
        self.origin = origin
        self.values: list[Value] = []

    def __repr__(self) -> str:
        name = self.values[0].name if self.values else "scratch"
        return f"<storage of {name}: {self.bytes} bytes, alive {self.birth}..{self.death}>"


class Liveness:
    """The storages of the nodes that compute some values.

    nodes      what runs, in order
    storages   all storages, in the order of their births
    homes      the storage of each value
    layouts    where in it the elements lie
    views      values without elements of their own
    """

    def __init__(
        self, nodes: Sequence[Node], kept: Iterable[Value], known: Known, *, in_place: bool = True
    ) -> None:
        self.nodes = list(nodes)
        self.storages: list[Storage] = []
        self.homes: dict[Value, Storage] = {}
        self.layouts: dict[Value, Layout] = {}
        self.views: set[Value] = set()
        self._known = known
        self._in_place = in_place
        self._last = last_uses(self.nodes, kept)
        for time, node in enumerate(self.nodes):
            self._step(node, time)

    def _step(self, node: Node, time: int) -> None:
        """Give a home to every result of a node."""
        if node.op in SOURCES:
            self._open(node.outputs[0], time, ORIGINS[node.op])
        elif not (self._as_views(node, time) or self._over_input(node, time)):
            for value in node.outputs:
                self._open(value, time, None)

    def _open(self, value: Value, time: int, origin: str | None) -> None:
        storage = Storage(self.bytes_of(value), time, origin)
        self.storages.append(storage)
        self._enter(value, storage, dense(self.shape_of(value)), time)

    def _enter(self, value: Value, storage: Storage, layout: Layout, time: int) -> None:
        storage.values.append(value)
        storage.death = max(storage.death, self._last.get(value, time))
        self.homes[value] = storage
        self.layouts[value] = layout

    def _as_views(self, node: Node, time: int) -> bool:
        source = node.inputs[0] if node.inputs else None
        if source is None or not may_be_view(node):
            return False
        shapes = [self.shape_of(value) for value in node.outputs]
        attrs = known_attrs(node.attrs, self._known)
        found = view_layouts(node, self.layouts[source], self.shape_of(source), attrs, shapes)
        if found is None:
            return False
        for value, layout in zip(node.outputs, found, strict=True):
            self._enter(value, self.homes[source], layout, time)
            self.views.add(value)
        return True

    def _over_input(self, node: Node, time: int) -> bool:
        """Let the result overwrite an operand that nobody needs any more, if there is one."""
        if not self._in_place or len(node.outputs) != 1:
            return False
        (value,) = node.outputs
        for source in self._overwritable(node):
            if source is not None and self._can_overwrite(value, source, node, time):
                self._enter(value, self.homes[source], self.layouts[source], time)
                return True
        return False

    def _overwritable(self, node: Node) -> Sequence[Value | None]:
        if node.op.kind in POINTWISE:
            return node.inputs
        position = OVERWRITES.get(node.op.name)
        return () if position is None else (node.inputs[position],)

    def _can_overwrite(self, value: Value, source: Value, node: Node, time: int) -> bool:
        storage, layout, shape = self.homes[source], self.layouts[source], self.shape_of(value)
        others = [x for x in node.inputs if x is not None and x is not source]
        return (
            storage.origin is None
            and storage.death == time
            and storage.bytes == self.bytes_of(value)
            and self.shape_of(source) == shape
            and source.dtype.itemsize == value.dtype.itemsize
            and is_dense(layout, shape)
            and not any(self._interferes(x, storage, layout, node) for x in others)
        )

    def _interferes(self, other: Value, storage: Storage, layout: Layout, node: Node) -> bool:
        """Tell whether another operand would be read where the result is written already."""
        if self.homes[other] is not storage:
            return False
        return node.op.kind not in POINTWISE or self.layouts[other] != layout

    def shape_of(self, value: Value) -> tuple[int, ...]:
        """Return the shape of a value, all sizes known."""
        return known_shape(value, self._known)

    def bytes_of(self, value: Value) -> int:
        """Return the number of bytes of a value's elements."""
        return prod(self.shape_of(value)) * int(value.dtype.itemsize)

    def profile(self) -> list[int]:
        """Return the number of bytes alive at each time, without what comes from outside."""
        return live_profile([s for s in self.storages if s.origin is None], len(self.nodes))


def last_uses(nodes: Sequence[Node], kept: Iterable[Value]) -> dict[Value, int]:
    """Return the time of the last node that takes each value; those kept are needed at the end."""
    last = {x: time for time, node in enumerate(nodes) for x in node.inputs if x is not None}
    end = len(nodes)
    last.update(dict.fromkeys(kept, end))
    last.update((n.outputs[0], end) for n in nodes if n.op is ASSIGN)
    return last


def live_profile(storages: Iterable[Any], length: int) -> list[int]:
    """Return the sum of bytes alive at each time from 0 to `length`, both included."""
    changes = [0] * (length + 2)
    for storage in storages:
        changes[storage.birth] += storage.bytes
        changes[storage.death + 1] -= storage.bytes
    return list(accumulate(changes))[: length + 1]


def wanted_values(graph: Graph, outputs: Any, what: str) -> list[Value]:
    """Return the values that are fetched: those given in any nest, or the results of the graph."""
    if outputs is None:
        return graph.results()
    if isinstance(outputs, str):
        return [graph.find(outputs)]
    if isinstance(outputs, (Symbol, Value)):
        value = outputs.value if isinstance(outputs, Symbol) else outputs
        return [graph.check_member(value, what)]
    if isinstance(outputs, Update):
        return [graph.check_member(symbol.value, what) for symbol in outputs.symbols]
    if isinstance(outputs, Mapping):
        outputs = list(outputs.values())
    if isinstance(outputs, (list, tuple)):
        return [value for item in outputs for value in wanted_values(graph, item, what)]
    raise ArgumentTypeError(
        f"{what}: outputs must be symbols, names or updates. Received: {outputs!r:.60}"
    )
