"""Group the operations of a graph into kernels.

Nodes are taken in order. An elementwise operation or a reduction joins the group of a value it
takes if it runs over the same elements and everything else it takes is made before that group;
otherwise it starts a group. Groups run in the order in which they were started.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..core.shape import Shape, broadcast_axes, normalize_axes, size_of
from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.special import SOURCES
from .indexing import indexed_kind
from .places import has_plain_rows, stored_operands, stored_values
from .scalar import ScalarBuilder, computed_dtype, is_defined, postorder

FULL, ROW = "full", "row"
MOST_NODES = 96
MOST_OPERANDS = 28
DTYPES = frozenset(
    map(
        np.dtype,
        (
            "bool",
            *("float16", "float32", "float64"),
            *("int8", "int16", "int32", "int64"),
            *("uint8", "uint16", "uint32", "uint64"),
        ),
    )
)


class Group:
    """Operations that become one kernel.

    domain   the shape of the loop nest
    split    how many of its axes count rows; None until a reduction decides
    level    of each value made here: one per element, or one per row
    stored   values that must be in memory before it runs: it looks at them anywhere
    placed   whether some operation depends on the place of its elements
    """

    def __init__(self, index: int, domain: Shape | None) -> None:
        self.index = index
        self.domain = domain
        self.split: int | None = None
        self.nodes: list[Node] = []
        self.level: dict[Value, str] = {}
        self.loaded: set[Value] = set()
        self.stored: set[Value] = set()
        self.placed = False

    @property
    def fusible(self) -> bool:
        """Tell whether more operations may join."""
        return self.domain is not None and len(self.nodes) < MOST_NODES

    def row_shapes(self) -> tuple[Shape, Shape]:
        """Return the shapes of a value per row: without and with the reduced axes."""
        assert self.domain is not None
        assert self.split is not None
        rows = self.domain[: self.split]
        return rows, rows + (1,) * (len(self.domain) - self.split)

    def add(self, node: Node, level: str) -> None:
        """Take an operation in."""
        self.nodes.append(node)
        for value in node.outputs:
            self.level[value] = level
        self.loaded.update(x for x in node.inputs if x is not None and x not in self.level)

    def add_placed(self, node: Node) -> None:
        """Note what an operation with a place rule needs."""
        self.placed = True
        self.stored.update(stored_values(node))

    def take_in(self, other: Group) -> None:
        """Take in the operations of an earlier group, before this group's own."""
        self.nodes = [*other.nodes, *self.nodes]
        self.level |= other.level
        self.loaded = {x for x in self.loaded | other.loaded if x not in self.level}
        self.stored |= other.stored
        self.placed = self.placed or other.placed
        other.nodes = []


class Grouping:
    """The groups of a graph."""

    def __init__(self, graph: Graph) -> None:
        self.groups: list[Group] = []
        self.of: dict[Node, Group] = {}
        self._users: dict[Node, list[Node]] = {}  # of those placed so far
        for node in graph.nodes:
            self._place(node)
            for x in self._made(node):
                self._users.setdefault(x.node, []).append(node)
        self.groups = [group for group in self.groups if group.nodes]

    def _place(self, node: Node) -> None:
        kind = kind_of(node)
        if kind is None:
            self._alone(node)
            return
        earliest = max((self.of[x.node].index for x in self._made(node)), default=-1)
        for group in self._candidates(node, earliest):
            level = _joining_level(group, node, kind)
            if level is not None and len(group.loaded) < MOST_OPERANDS:
                self._join(group, node, level)
                self._draw_in(group, node)
                return
        group = self._start(node, kind)
        level = _joining_level(group, node, kind)
        assert level is not None, node
        self._join(group, node, level)

    def _draw_in(self, group: Group, node: Node) -> None:
        """Move earlier groups that a new member takes from into its group, if nothing hinders."""
        for x in self._made(node):
            other = self.of[x.node]
            if other is not group and self._can_move(other, group):
                for member in other.nodes:
                    self.of[member] = group
                group.take_in(other)

    def _can_move(self, other: Group, group: Group) -> bool:
        """Tell whether a group may run as part of a later one over the same elements."""
        if not other.fusible or other.domain != group.domain or other.split is not None:
            return False
        if len(other.nodes) + len(group.nodes) > MOST_NODES:
            return False
        if len(group.loaded | other.loaded) > MOST_OPERANDS:
            return False
        if group.stored & other.level.keys():
            return False
        if other.placed and not has_plain_rows(other.domain or (), group.split):
            return False
        users = (self.of[user] for n in other.nodes for user in self._users.get(n, ()))
        return all(user is other or user.index >= group.index for user in users)

    def _candidates(self, node: Node, earliest: int) -> list[Group]:
        """Return groups the node may join: where it takes something from, or beside others."""
        near = [self.of[x.node] for x in self._made(node)]
        return [g for g in dict.fromkeys(near) if g.fusible and g.index >= earliest]

    def _made(self, node: Node) -> list[Value]:
        """Return what a node takes that is computed: sources are there from the start."""
        return [x for x in node.inputs if x is not None and x.node.op not in SOURCES]

    def _start(self, node: Node, kind: str) -> Group:
        shape = _reduced_input(node).shape if kind == "reduce" else node.outputs[0].shape
        group = Group(len(self.groups), shape)
        self.groups.append(group)
        return group

    def _alone(self, node: Node) -> None:
        group = Group(len(self.groups), None)
        self.groups.append(group)
        group.add(node, FULL)
        self.of[node] = group

    def _join(self, group: Group, node: Node, level: str) -> None:
        kind = kind_of(node)
        if group.split is None and kind == "reduce":
            group.split = len(_reduced_input(node).shape) - len(reduced_axes(node))
        elif group.split is None and kind == "spread":
            group.split = len(node.outputs[0].shape) - 1
        group.add(node, level)
        if kind == "place":
            group.add_placed(node)
        self.of[node] = group


# -- what may be fused -----------------------------------------------------------------------------


def kind_of(node: Node) -> str | None:
    """Return how an operation can be part of a loop nest, None if it cannot.

    "map", "reduce", "spread" (an element per row to a place of it), or "place" (by a place rule)
    """
    values = [*node.outputs, *(x for x in node.inputs if x is not None)]
    if any(value.dtype not in DTYPES for value in values):
        return None
    return _scalar_kind(node) or (None if stored_operands(node) is None else "place")


def _scalar_kind(node: Node) -> str | None:
    op = node.op
    if getattr(op, "lower_rule", None) is None or len(node.outputs) != 1:
        return None
    if op.kind == "elementwise" and _has_code(node):
        return "map"
    if op.kind == "general" and _has_code(node):
        return indexed_kind(node)
    if op.kind == "reduction" and _is_trailing(node) and reduced_count(node) and _has_code(node):
        return "reduce"
    return None


def _has_code(node: Node) -> bool:
    """Tell whether the rule of an operator gives code for the dtypes at hand."""
    dtypes = tuple(None if x is None else x.dtype for x in node.inputs)
    result = node.outputs[0].dtype
    kinds = tuple(map(type, node.attrs))  # 1, 1.0 and True are equal keys
    try:
        return _gives_code(node.op, node.attrs, kinds, dtypes, result)
    except TypeError:  # an attribute that is no key
        return _gives_code.__wrapped__(node.op, node.attrs, kinds, dtypes, result)


@lru_cache(4096)
def _gives_code(
    op: Any, attrs: tuple[Any, ...], kinds: tuple[type, ...], dtypes: tuple[Any, ...], result: Any
) -> bool:
    builder = ScalarBuilder()
    builder.result = computed_dtype(result)
    args = [
        None if dtype is None else builder.widened(builder.load(i, dtype))
        for i, dtype in enumerate(dtypes)
    ]
    try:
        expr = op.lower_rule(builder, *args, *attrs)
    except (ArithmeticError, TypeError, ValueError):  # a constant that the dtype cannot hold
        return False
    return all(map(is_defined, postorder([expr])))


def reduced_axes(node: Node) -> tuple[int, ...]:
    """Return the axes over which a reduction runs."""
    shape = _reduced_input(node).shape
    if node.op.kind == "general":  # it picks one element of a row
        return (len(shape) - 1,)
    if "shape" in node.op.attrs:  # it sums to a shape that broadcasts to that of its input
        return broadcast_axes(node.attr("shape"), shape)
    return normalize_axes(node.attr("axis"), len(shape))


def reduced_count(node: Node) -> int:
    """Return how many elements a reduction makes one of."""
    shape = _reduced_input(node).shape
    return size_of(shape[a] for a in reduced_axes(node))


def _reduced_input(node: Node) -> Value:
    value = node.inputs[0]
    assert value is not None
    return value


def _is_trailing(node: Node) -> bool:
    ndim = len(_reduced_input(node).shape)
    axes = reduced_axes(node)
    return len(axes) > 0 and axes == tuple(range(ndim - len(axes), ndim))


def _joining_level(group: Group, node: Node, kind: str) -> str | None:
    """Return the level at which a node would join a group, or None if it does not fit."""
    if group.domain is None:
        return None
    inside = [x for x in node.inputs if x is not None and x in group.level]
    if kind == "reduce":
        return _reduce_level(group, node, inside)
    if kind == "spread":
        return _spread_level(group, node, inside)
    if kind == "place" and not _places_fit(group, node, inside):
        return None
    shape = node.outputs[0].shape
    if shape == group.domain and all(_aligned(group, x) for x in inside):
        return FULL
    if kind == "map" and group.split is not None and shape in group.row_shapes():
        rows = all(group.level[x] == ROW and x.shape == shape for x in inside)
        return ROW if inside and rows and _rows_align(group, node, shape) else None
    return None


def _places_fit(group: Group, node: Node, inside: Sequence[Value]) -> bool:
    """Tell whether coordinates can be had in a group, and operands where they are needed."""
    assert group.domain is not None
    stored = stored_values(node)
    return has_plain_rows(group.domain, group.split) and not any(x in stored for x in inside)


def _reduce_level(group: Group, node: Node, inside: Sequence[Value]) -> str | None:
    x = _reduced_input(node)
    if x.shape != group.domain or any(group.level[v] != FULL for v in inside):
        return None
    split = len(x.shape) - len(reduced_axes(node))
    if group.placed and not has_plain_rows(group.domain, split):
        return None
    return ROW if group.split in (None, split) else None


def _spread_level(group: Group, node: Node, inside: Sequence[Value]) -> str | None:
    shape = node.outputs[0].shape
    fits = shape == group.domain and group.split in (None, len(shape) - 1)
    return FULL if fits and all(group.level[v] == ROW for v in inside) else None


def _aligned(group: Group, value: Value) -> bool:
    """Tell whether a value made in the group stands at its place when broadcast to the domain."""
    if group.level[value] == FULL:
        return value.shape == group.domain
    return value.shape == group.row_shapes()[1]


def _rows_align(group: Group, node: Node, shape: Shape) -> bool:
    """Tell whether everything a row-level operation takes can be read once per row."""
    for x in node.inputs:
        if x is None or x in group.level:
            continue
        if x.shape not in (shape, ()):
            return False
    return True


def describe(groups: Sequence[Group]) -> list[Any]:
    """Return the operators of each group, for tests and printing."""
    return [[node.op.name for node in group.nodes] for group in groups]
