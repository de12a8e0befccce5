"""Lower a graph whose sizes are all known to kernels over buffers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from ..core.dtype import int64
from ..core.shape import Shape, size_of
from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.special import ASSIGN, CONSTANT, PLACEHOLDER, SOURCES, STATE
from ..graph.state import State
from .epilogues import fuse_epilogues
from .groups import DTYPES, FULL, ROW, Group, Grouping, kind_of, reduced_axes, reduced_count
from .indexing import index_bounds
from .kernels import (
    ColumnKernel,
    GemmKernel,
    Kernel,
    LibraryKernel,
    Operand,
    Output,
    RowKernel,
    views_of,
)
from .loops import collapse
from .parts import JOINS, copy_kernel, find_homes, part_views
from .places import Check, place_expressions
from .scalar import Expr, ScalarBuilder, computed_dtype
from .scans import scan_kernel
from .scatter import scatter_kernels
from .storage import Buffer, View, contiguous
from .views import RESHAPES, VIEWS

PRODUCTS = ("linear", "matmul")


class Lowered:
    """What a graph becomes: kernels in order, and where each of its values lies."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.kernels: list[Kernel] = []
        self.views: dict[Value, View] = {}
        self.assigned: list[tuple[State, Value]] = []
        self.copies: list[View] = []
        self.tables: dict[Any, View] = {}
        self._checked: set[Check] = set()
        self.flag: View | None = None  # where code reports an index out of range
        self._homes = find_homes(graph)
        self._wholes: dict[Node, View] = {}  # results of joins that some part was written to
        grouping = Grouping(graph)
        self._outside = _used_outside(graph, grouping)
        for group in sorted(grouping.groups, key=_sources_first):
            self._lower(group)
        self._fuse()

    @property
    def outputs(self) -> list[View]:
        """Return where the results lie."""
        return [self.views[value] for value in self.graph.outputs]

    def _fuse(self) -> None:
        """Join kernels, and forget values that are not stored any more."""
        kept = {view.buffer for view in self.outputs}
        self.kernels = fuse_epilogues(self.kernels, kept)
        used = kept | {view.buffer for kernel in self.kernels for view in views_of(kernel)}
        self.views = {
            value: view
            for value, view in self.views.items()
            if view.buffer.kind != "arena" or view.buffer in used
        }

    def _lower(self, group: Group) -> None:
        if group.domain is not None:
            self._lower_loops(group)
            return
        (node,) = group.nodes
        special = _SPECIAL.get(node.op)
        if special is not None:
            special(self, node)
        elif not self._as_view(node) and not self._as_join(node) and not self._as_product(node):
            self._as_scatter(node) or self._as_scan(node) or self._as_column_sum(
                node
            ) or self._as_library(node)

    def _new(self, value: Value) -> View:
        """Give a value memory of its own in the arena."""
        buffer = Buffer("arena", value.shape, value.dtype, value.name)
        self.views[value] = view = contiguous(buffer, value.shape)
        return view

    def new_element_result(self, value: Value) -> View:
        """Give memory to a value that a loop writes element by element: of its own, or at home."""
        join = self._homes.get(value)
        if join is None:
            return self._new(value)
        position = join.inputs.index(value)
        self.views[value] = view = part_views(self._whole(join), join)[position]
        return view

    def _whole(self, join: Node) -> View:
        if join not in self._wholes:
            self._wholes[join] = self._new(join.outputs[0])
        return self._wholes[join]

    def _as_join(self, node: Node) -> bool:
        """Lower a join: copy the parts that were not written to their places."""
        if node.op.name not in JOINS:
            return False
        values = [x for x in node.inputs if x is not None]
        for x, part in zip(values, part_views(self._whole(node), node), strict=True):
            if self.views[x] != part:
                self.kernels.append(copy_kernel(node.name, self.views[x], part))
        return True

    def copied(self, view: View) -> View:
        """Return a copy of a view in C order, made by a kernel of its own."""
        buffer = Buffer("arena", view.shape, view.dtype, f"copy of {view.buffer.name}")
        made = contiguous(buffer, view.shape)
        self.kernels.append(copy_kernel(buffer.name, view, made))
        self.copies.append(made)
        return made

    def needs(self, check: Check | None, happens: bool) -> bool:
        """Tell whether no kernel has checked the same indices yet; note that one does now."""
        if check is None:
            return True
        known = check in self._checked
        if happens:
            self._checked.add(check)
        return not known

    def error_flag(self) -> View:
        """Return the memory in which code reports an index out of range."""
        if self.flag is None:
            word = np.zeros(1, np.int64)
            buffer = Buffer("constant", (1,), word.dtype, "index out of range", word)
            self.flag = contiguous(buffer, (1,))
            self.copies.append(self.flag)
        return self.flag

    # -- sources and sinks -------------------------------------------------------------------------

    def _place_source(self, node: Node, kind: str, source: Any) -> None:
        (value,) = node.outputs
        buffer = Buffer(kind, value.shape, value.dtype, value.name, source)
        self.views[value] = contiguous(buffer, value.shape)

    def _feed(self, node: Node) -> None:
        self._place_source(node, "feed", node.outputs[0])

    def _constant(self, node: Node) -> None:
        self._place_source(node, "constant", node.attrs[0].array)

    def _state(self, node: Node) -> None:
        self._place_source(node, "state", node.attrs[0])

    def _assign(self, node: Node) -> None:
        (value,) = node.inputs
        assert value is not None
        self.views[node.outputs[0]] = self.views[value]
        self.assigned.append((node.attrs[0], value))

    # -- nodes that are no loops -------------------------------------------------------------------

    def _as_view(self, node: Node) -> bool:
        rule = VIEWS.get(node.op.name)
        source = node.inputs[0] if node.inputs else None
        if rule is None or source is None:
            return False
        made = rule(self.views[source], node)
        if made is None and node.op.name in RESHAPES:
            made = rule(self.copied(self.views[source]), node)
        if made is None:
            return False
        views = made if isinstance(made, list) else [made]
        self.views.update(zip(node.outputs, views, strict=True))
        return True

    def _as_product(self, node: Node) -> bool:
        if node.op.name not in PRODUCTS or node.outputs[0].dtype.name not in ("float32", "float64"):
            return False
        x, y, *rest = [None if v is None else self.views[v] for v in node.inputs]
        if x is None or y is None or len(x.shape) < 2 or len(y.shape) < 2:
            return False
        if node.op.name == "linear":
            y = y.permuted((1, 0))
        batch = node.outputs[0].shape[:-2]
        (m, k), n = x.shape[-2:], y.shape[-1]
        if node.op.name == "linear" and x.contiguous:
            batch, m = (), size_of(x.shape[:-1])
            flat = x.reshaped((m, k))
            assert flat is not None
            x = flat
        out = self._new(node.outputs[0]).reshaped((*batch, m, n))
        assert out is not None
        self.kernels.append(
            GemmKernel(
                node.name,
                batch,
                m,
                n,
                k,
                x.broadcast((*batch, m, k)),
                y.broadcast((*batch, k, n)),
                out,
                rest[0] if rest else None,
                [node],
            )
        )
        return True

    def _as_column_sum(self, node: Node) -> bool:
        """Lower a reduction over leading axes."""
        axes = _leading_axes(node)
        if axes is None:
            return False
        (source, *_) = node.inputs
        assert source is not None
        view, out = self.views[source], self._new(node.outputs[0])
        ndim = len(view.shape)
        kept = [a for a in range(ndim) if a not in axes]
        if not kept:
            return False
        builder = ScalarBuilder()
        value = builder.load(0, view.dtype)
        builder.result, builder.count = node.outputs[0].dtype, reduced_count(node)
        rule = node.op.lower_rule(builder, value, *node.attrs)
        if rule.kind != "reduce":
            return False
        order = [*kept[:-1], *axes, kept[-1]]
        strides = view.permuted(tuple(order)).strides
        flat = out.reshaped(tuple(view.shape[a] for a in kept))
        assert flat is not None
        out_strides = (*flat.strides[:-1], *[0] * len(axes), flat.strides[-1])
        self.kernels.append(
            ColumnKernel(
                node.name,
                tuple(view.shape[a] for a in order),
                tuple(a in axes for a in order),
                [Operand(view, strides), Operand(flat, out_strides)],
                Output(1, rule.args[0]),
                rule.data,
                [node],
            )
        )
        return True

    def _as_scatter(self, node: Node) -> bool:
        """Lower values that go to computed places."""
        if any(v.dtype not in DTYPES for v in (*node.inputs, *node.outputs) if v is not None):
            return False
        kernels = scatter_kernels(
            node,
            self.views.__getitem__,
            lambda: self._new(node.outputs[0]),
            lambda check, happens: self.error_flag() if self.needs(check, happens) else None,
            self.table,
        )
        self.kernels += kernels or ()
        return kernels is not None

    def _as_scan(self, node: Node) -> bool:
        """Lower a recurrence along an axis."""
        if any(v.dtype not in DTYPES for v in (*node.inputs, *node.outputs) if v is not None):
            return False
        result = node.outputs[0]
        kernel = scan_kernel(node, self.views.__getitem__, lambda: self._new(result))
        if kernel is not None:
            self.kernels.append(kernel)
        return kernel is not None

    def table(self, array: np.ndarray[Any, Any]) -> View:
        """Return where a constant array lies."""
        key = (array.dtype, array.shape, array.tobytes())
        if key not in self.tables:
            buffer = Buffer("constant", array.shape, array.dtype, "table", array)
            self.tables[key] = contiguous(buffer, array.shape)
            self.copies.append(self.tables[key])
        return self.tables[key]

    def _as_library(self, node: Node) -> bool:
        inputs = [None if x is None else self.views[x] for x in node.inputs]
        outputs = [self._new(value) for value in node.outputs]
        self.kernels.append(LibraryKernel(node.name, node, inputs, outputs, node.attrs))
        return True

    # -- loops -------------------------------------------------------------------------------------

    def _lower_loops(self, group: Group) -> None:
        _LoopBuilder(self, group).build()


class _LoopBuilder:
    """Makes the kernel of one group of elementwise operations and reductions."""

    def __init__(self, lowered: Lowered, group: Group) -> None:
        assert group.domain is not None
        self.lowered = lowered
        self.group = group
        self.domain: Shape = group.domain
        self.builder = ScalarBuilder()
        self.operands: list[View] = []  # each broadcast to the domain
        self.exprs: dict[Value, Expr] = {}
        self.loads: dict[tuple[int, tuple[int, ...], int], Expr] = {}
        self.iotas: list[tuple[int, ...]] = []
        self.moved: dict[tuple[int, tuple[int, ...]], int] = {}  # operands of loads by offsets
        self.flag_number: int | None = None

    def build(self) -> None:
        """Add the kernel to the lowered graph."""
        outputs: list[tuple[View, Expr]] = []
        for node in self.group.nodes:
            self.exprs.update(zip(node.outputs, self._expressions(node), strict=True))
        for value in (value for node in self.group.nodes for value in node.outputs):
            if value in self.lowered._outside:
                at_home = self.group.level[value] == FULL and self.group.split is None
                stored = (
                    self.lowered.new_element_result(value) if at_home else self.lowered._new(value)
                )
                outputs.append((self._spread(stored, value), self.exprs[value]))
        if not outputs:
            return
        if self.group.split is not None:
            self.operands = [self._in_sequence(view) for view in self.operands]
        first = len(self.operands)
        views = [*self.operands, *(view for view, _ in outputs)]
        all_strides = [*(v.strides for v in views), *self.iotas]
        loops, strides = collapse(self.domain, all_strides, self.group.split)
        self.lowered.kernels.append(
            RowKernel(
                self.group.nodes[-1].name,
                loops,
                [Operand(v, s) for v, s in zip(views, strides, strict=False)],
                [Output(first + i, expr) for i, (_, expr) in enumerate(outputs)],
                list(self.group.nodes),
                strides[len(views) :],
                None if self.flag_number is None else self.lowered.flag,
            )
        )

    # -- for place rules ---------------------------------------------------------------------------

    def iota(self, strides: tuple[int, ...]) -> Expr:
        """Return the sum of each loop's counter times its stride."""
        if strides not in self.iotas:
            self.iotas.append(strides)
        return self.builder.iota(self.iotas.index(strides))

    def load_from(self, view: View, offset: Expr | None, guard: Expr | None) -> Expr:
        """Return the element of a view of the loops' shape, moved on by an offset."""
        key = (id(view.buffer), view.strides)
        if key not in self.moved:
            self.operands.append(view)
            self.moved[key] = len(self.operands) - 1
        number = self.moved[key]
        ahead = view.offset - self.operands[number].offset
        if offset is None and guard is None and not ahead:
            return self.builder.load(number, view.dtype)
        if ahead:
            offset = self.builder.constant(ahead, int64) if offset is None else offset + ahead
        return self.builder.load_at(number, view.dtype, offset, guard)

    def load_here(self, value: Value) -> Expr:
        """Return the element of a value that broadcasts to the loops' shape."""
        return self._operand(value, FULL)

    def flag(self, check: Check | None) -> int | None:
        """Return the operand that takes the report of an index out of range, if need be."""
        if not self.lowered.needs(check, size_of(self.domain) > 0):
            return None
        if self.flag_number is None:
            view = self.lowered.error_flag()
            self.operands.append(View(view.buffer, self.domain, (0,) * len(self.domain)))
            self.flag_number = len(self.operands) - 1
        return self.flag_number

    def table(self, array: np.ndarray[Any, Any]) -> View:
        """Return where a constant array lies."""
        return self.lowered.table(array)

    # -- expressions -------------------------------------------------------------------------------

    def _expressions(self, node: Node) -> list[Expr]:
        """Return what a node computes, for each of its outputs."""
        if kind_of(node) != "place":
            return [self._expression(node)]
        placed, _ = place_expressions(node, self, self.lowered.views.get)
        assert placed is not None, node
        return placed

    def _expression(self, node: Node) -> Expr:
        level = self.group.level[node.outputs[0]]
        kind = kind_of(node)
        reduces = kind == "reduce"
        levels = [FULL if reduces else level] * len(node.inputs)
        if node.op.kind == "general":  # an index per row picks from it, or places into it
            levels = [FULL if reduces else ROW, ROW]
        args = [
            None if x is None else self.builder.widened(self._operand(x, at))
            for x, at in zip(node.inputs, levels, strict=True)
        ]
        if node.op.kind == "general":
            assert args[1] is not None
            args[1] = self._checked_index(node, args[1])
        self.builder.result = computed_dtype(node.outputs[0].dtype)
        if reduces:
            self.builder.count = reduced_count(node)
        expr: Expr = node.op.lower_rule(self.builder, *args, *node.attrs)
        return self.builder.cast(expr, node.outputs[0].dtype)

    def _checked_index(self, node: Node, index: Expr) -> Expr:
        size, wraps, ignored = index_bounds(node)
        view = self.lowered.views.get(node.inputs[1])  # type: ignore[arg-type]  # it has an index
        flag = self.flag(None if view is None else Check(view, size, wraps, ignored))
        return self.builder.checked(index, size, flag, wraps, ignored)

    def _operand(self, value: Value, level: str) -> Expr:
        known = self.exprs.get(value)
        if known is not None:
            return known
        if value.node.op is CONSTANT and size_of(value.shape) == 1:
            return self.builder.constant(value.node.attrs[0].array.item(), value.dtype)
        view = self.lowered.views[value]
        spread = view.broadcast(self.domain) if level == FULL else self._per_row(view)
        key = (id(spread.buffer), spread.strides, spread.offset)
        if key not in self.loads:
            self.operands.append(spread)
            self.loads[key] = self.builder.load(len(self.operands) - 1, view.dtype)
        return self.loads[key]

    def _in_sequence(self, view: View) -> View:
        """Return an operand whose rows can be read as one run of elements, copied if need be."""
        split = self.group.split
        sizes, strides = self.domain[split:], view.strides[split:]
        axes = [(n, s) for n, s in zip(sizes, strides, strict=True) if n != 1]
        if all(s == 0 for _, s in axes) or all(
            outer == inner * n for (_, outer), (n, inner) in pairwise(axes)
        ):
            return view
        return self.lowered.copied(view)

    def _per_row(self, view: View) -> View:
        if view.shape == ():
            return view.broadcast(self.domain)
        aligned = view.reshaped(self.group.row_shapes()[1])
        assert aligned is not None, view
        return aligned.broadcast(self.domain)

    def _spread(self, view: View, value: Value) -> View:
        """Return an output as the loops see it: a value per row has stride 0 along the row."""
        if self.group.level[value] == FULL:
            return view
        return self._per_row(view)


def _sources_first(group: Group) -> bool:
    return group.nodes[0].op not in SOURCES


def _used_outside(graph: Graph, grouping: Grouping) -> set[Value]:
    """Return the values that somebody outside of their group needs."""
    needed = set(graph.outputs)
    for node in graph.nodes:
        for value in node.inputs:
            if value is not None and grouping.of.get(value.node) is not grouping.of[node]:
                needed.add(value)
    return needed


def _leading_axes(node: Node) -> tuple[int, ...] | None:
    """Return the axes of a reduction that keeps some axes behind them, else None."""
    op = node.op
    if op.kind != "reduction" or getattr(op, "lower_rule", None) is None:
        return None
    if node.outputs[0].dtype != node.inputs[0].dtype or size_of(node.inputs[0].shape) == 0:  # type: ignore[union-attr]  # a reduction has an input
        return None
    if node.outputs[0].dtype != computed_dtype(node.outputs[0].dtype):
        return None
    return reduced_axes(node)


_SPECIAL: dict[Any, Callable[[Lowered, Node], None]] = {
    PLACEHOLDER: Lowered._feed,
    CONSTANT: Lowered._constant,
    STATE: Lowered._state,
    ASSIGN: Lowered._assign,
}
