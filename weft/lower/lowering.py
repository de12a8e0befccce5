"""Lower a graph whose sizes are all known to kernels over buffers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..core.dim import is_told
from ..core.scalar.builder import ScalarBuilder, computed_dtype
from ..core.shape import Shape, size_of
from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.special import ASSIGN, CONSTANT, PARAMETER, PLACEHOLDER, SOURCES, STATE
from ..graph.state import State
from ..ops.sizes import size_value
from .concat import find_homes, part_views
from .control import lower_control
from .convolutions import lower_convolution
from .copies import copy_kernel
from .dynamic import array_of_its_own, is_dynamic
from .epilogues import fuse_epilogues
from .groups import Group, Grouping
from .index_maps import Check
from .kernels import (
    CallKernel,
    ColumnKernel,
    GemmKernel,
    Kernel,
    Operand,
    Origins,
    Output,
    buffers_of,
)
from .kinds import DTYPES, kind_of, only_reduction, reduced_axes, reduced_count
from .layouts import laid_out, wanted_layouts
from .nests import NestBuilder
from .numbering import Numbering
from .products import is_product, product_kernel
from .program import KernelProgram, Sources
from .recompute import recompute_cheap
from .row_sums import fuse_row_sums
from .scans import scan_kernel
from .scatter import scatter_kernels
from .size_numbers import SizeNumber
from .split import split_inner
from .storage import Buffer, View, contiguous
from .views import views_of


def lower(
    graph: Graph, commits: Sequence[State] = (), first: Sequence[Value] = ()
) -> tuple[KernelProgram, Sources]:
    """Return the program of a graph, and what its numbers stand for.

    The last outputs of the graph are the new values of the states to commit, the others fetches.
    What is to be computed `first` no update of a state is computed with, which would then come too
    early to be written in place.
    """
    return Lowering(graph, committed=len(commits), first=first).program(commits)


class Lowering:
    """A graph on its way: kernels in order, and where each of its values lies."""

    def __init__(
        self,
        graph: Graph,
        bound: Mapping[Value, View] | None = None,
        wanted: Mapping[Value, View] | None = None,
        around: Lowering | None = None,
        committed: int | None = None,
        first: Sequence[Value] = (),
    ) -> None:
        """Lower a graph.

        Of a body, `bound` says where inputs are, `wanted` where results go, and `around` what it is
        a part of. Of a program, the last outputs, so many as are `committed`, go to states; what is
        needed for those that come `first` runs before all else.
        """
        self.graph = graph
        self.root: Lowering = self if around is None else around.root
        self.kernels: list[Kernel] = []
        self.views: dict[Value, View] = dict(bound or {})
        self.wanted = dict(wanted or {})
        self.copies: list[View] = []
        self.tables: dict[Any, View] = {}
        self._given: dict[Buffer, Any] = {}  # what lies behind those from outside
        self._nodes: dict[Node, int] = {}
        self._checked: set[Check] = set()
        self.flag: View | None = None  # where code reports an index out of range
        self._homes = find_homes(graph)
        self._wholes: dict[Node, View] = {}  # results of joins that some part was written to
        self._layouts = wanted_layouts(graph)
        grouping = Grouping(graph, graph.ancestors(first))
        self.outside = _used_outside(graph, grouping)
        for group in sorted(grouping.groups, key=_sources_first):
            self._lower(group)
        for change in (recompute_cheap, fuse_epilogues):
            self.rewrite(change)
        start = 0 if committed is None else len(graph.outputs) - committed
        self.rewrite(partial(fuse_row_sums, updates={x.buffer for x in self.outputs[start:]}))

    @property
    def outputs(self) -> list[View]:
        """Return where the results lie."""
        return [self.views[value] for value in self.graph.outputs]

    def program(self, commits: Sequence[State]) -> tuple[KernelProgram, Sources]:
        """Return all of it as a program, and what its numbers stand for."""
        numbering = Numbering(self.graph, self.buffers(), self._given)
        return numbering.program(self.kernels, self.outputs, commits, self.flag, [*self._nodes])

    def origins(self, *nodes: Node) -> Origins:
        """Return the numbers of the nodes that a kernel computes."""
        known = self.root._nodes
        return tuple(known.setdefault(node, len(known)) for node in nodes)

    def given(self, kind: str, shape: Shape, dtype: Any, name: str, source: Any) -> View:
        """Return memory for what comes from outside."""
        buffer = Buffer(kind, shape, dtype, name)
        self.root._given[buffer] = source
        return contiguous(buffer, shape)

    def rewrite(
        self, change: Callable[[Sequence[Kernel], Collection[Buffer]], list[Kernel]]
    ) -> None:
        """Put others in the place of kernels, and forget values that are not stored any more.

        The change is told which buffers are wanted after the last kernel.
        """
        kept = {view.buffer for view in self.outputs}
        self.kernels = change(self.kernels, kept)
        used = kept | {buffer for kernel in self.kernels for buffer in buffers_of(kernel)}
        self.copies = [v for v in self.copies if v.buffer.kind != "arena" or v.buffer in used]
        self.views = {
            value: view
            for value, view in self.views.items()
            if view.buffer.kind != "arena" or view.buffer in used
        }

    def _lower(self, group: Group) -> None:
        if group.frame is not None:
            NestBuilder(self, group).build()
            return
        (node,) = group.nodes
        special = _SPECIAL.get(node.op)
        if special is not None:
            special(self, node)
        elif is_dynamic(node) or not any(way(self, node) for way in _WAYS):
            self._as_library(node)

    def buffers(self) -> list[Buffer]:
        """Return all memory that is used, by the bodies of control flow too."""
        known = (view.buffer for view in (*self.views.values(), *self.copies))
        used = (buffer for kernel in self.kernels for buffer in buffers_of(kernel))
        return list(dict.fromkeys((*known, *used)))

    def with_body(
        self, graph: Graph, bound: Mapping[Value, View], wanted: Mapping[Value, View]
    ) -> Lowering:
        """Return a body of control flow lowered: its inputs are bound, its results go to places."""
        return Lowering(graph, bound, wanted, self)

    def new(self, value: Value) -> View:
        """Give a value memory of its own in the arena, or the place that waits for it."""
        view = self.wanted.get(value)
        if not is_told(value.shape):
            view = array_of_its_own(value)
        elif view is None:
            view = contiguous(Buffer("arena", value.shape, value.dtype, value.name), value.shape)
        self.views[value] = view
        return view

    def scratch(self, shape: Shape, dtype: Any, name: str) -> View:
        """Return memory in the arena for something between kernels that is no value."""
        made = contiguous(Buffer("arena", shape, dtype, name), shape)
        self.copies.append(made)
        return made

    def new_element_result(self, value: Value) -> View:
        """Give memory to a value that a loop writes element by element: of its own, or at home."""
        join = self._homes.get(value)
        if join is None:
            return self.new(value)
        position = join.inputs.index(value)
        self.views[value] = view = part_views(self._whole(join), join)[position]
        return view

    def _whole(self, join: Node) -> View:
        if join not in self._wholes:
            self._wholes[join] = self.new(join.outputs[0])
        return self._wholes[join]

    def _as_join(self, node: Node) -> bool:
        """Lower a join: copy the parts that were not written to their places."""
        if node.op.join_rule is None:
            return False
        values = [x for x in node.inputs if x is not None]
        for x, part in zip(values, part_views(self._whole(node), node), strict=True):
            if self.views[x] != part:
                self.kernels.append(copy_kernel(node.name, self.views[x], part))
        return True

    def copied(self, view: View) -> View:
        """Return a copy of a view in C order, made by a kernel of its own."""
        made = self.scratch(view.shape, view.dtype, f"copy of {view.buffer.name}")
        self.copy(view, made)
        return made

    def copy(self, view: View, target: View) -> None:
        """Add a kernel that copies a view to a place of the same shape."""
        self.kernels.append(copy_kernel(target.buffer.name, view, target))

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
        root = self.root
        if root.flag is None:
            word = np.zeros(1, np.int64)
            root.flag = self.given("constant", (1,), word.dtype, "index out of range", word)
            root.copies.append(root.flag)
        return root.flag

    # -- sources and sinks -------------------------------------------------------------------------

    def _place_source(self, node: Node, kind: str, source: Any) -> None:
        (value,) = node.outputs
        if value in self.views:  # an input of a body
            return
        self.views[value] = self.given(kind, value.shape, value.dtype, value.name, source)

    def _feed(self, node: Node) -> None:
        self._place_source(node, "feed", node.outputs[0])

    def _constant(self, node: Node) -> None:
        self._place_source(node, "constant", node.attrs[0].array)

    def _state(self, node: Node) -> None:
        self._place_source(node, "state", node.attrs[0])

    def _size_number(self, node: Node) -> bool:
        """Lower a number that follows from sizes: the host computes it before a run."""
        if node.op is not size_value:
            return False
        expression, dtype = node.attrs
        (value,) = node.outputs
        made = self.given("constant", (), dtype, value.name, SizeNumber(expression, dtype))
        self.views[value] = made
        return True

    def _assign(self, node: Node) -> None:
        (value,) = node.inputs
        assert value is not None
        self.views[node.outputs[0]] = self.views[value]

    # -- nodes that are no loops -------------------------------------------------------------------

    def _as_view(self, node: Node) -> bool:
        source = node.inputs[0] if node.inputs else None
        if source is None or not node.op.is_view:
            return False
        made = views_of(self.views[source], node)
        if made is None and node.op.reshapes:
            made = views_of(self.copied(self.views[source]), node)
        if made is None:
            return False
        self.views.update(zip(node.outputs, made, strict=True))
        return True

    def _as_product(self, node: Node) -> bool:
        if not is_product(node):
            return False
        operands = [None if v is None else self.views[v] for v in node.inputs]
        (value,) = node.outputs
        order = self._layouts.get(value)
        out = self.new(value) if order is None else laid_out(value, order)
        self.views[value] = out
        kernels = split_inner(product_kernel(node, operands, out, self.origins(node)))
        self.kernels += kernels
        self.copies += [kernel.out for kernel in kernels[:-1] if isinstance(kernel, GemmKernel)]
        return True

    def _as_column_sum(self, node: Node) -> bool:
        """Lower a reduction over leading axes."""
        axes = _leading_axes(node)
        if axes is None:
            return False
        (source, *_) = node.inputs
        assert source is not None
        view, out = self.views[source], self.new(node.outputs[0])
        ndim = len(view.shape)
        kept = [a for a in range(ndim) if a not in axes]
        if not kept:
            return False
        builder = ScalarBuilder()
        value = builder.load(0, view.dtype)
        builder.result, builder.count = node.outputs[0].dtype, reduced_count(node)
        rule = builder.cast(node.op.lower_rule(builder, value, *node.attrs), builder.result)
        reduction = only_reduction(rule)
        if reduction is None:
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
                (Operand(view, strides), Operand(flat, out_strides)),
                Output(1, reduction.args[0]),
                reduction.data,
                self.origins(node),
                rule,
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
            lambda: self.new(node.outputs[0]),
            lambda check, happens: self.error_flag() if self.needs(check, happens) else None,
            self.table,
            self.origins(node),
        )
        self.kernels += kernels or ()
        return kernels is not None

    def _as_scan(self, node: Node) -> bool:
        """Lower a recurrence along an axis."""
        if any(v.dtype not in DTYPES for v in (*node.inputs, *node.outputs) if v is not None):
            return False
        result = node.outputs[0]
        kernel = scan_kernel(
            node, self.views.__getitem__, lambda: self.new(result), self.origins(node)
        )
        if kernel is not None:
            self.kernels.append(kernel)
        return kernel is not None

    def table(self, array: np.ndarray[Any, Any]) -> View:
        """Return where a constant array lies."""
        key, root = (array.dtype, array.shape, array.tobytes()), self.root
        if key not in root.tables:
            root.tables[key] = self.given("constant", array.shape, array.dtype, "table", array)
            root.copies.append(root.tables[key])
        return root.tables[key]

    def _as_library(self, node: Node) -> bool:
        inputs = tuple(None if x is None else self.views[x] for x in node.inputs)
        outputs = tuple(self.new(value) for value in node.outputs)
        origins = self.origins(node)
        self.kernels.append(CallKernel(node.name, node.op, inputs, outputs, node.attrs, origins))
        return True


def _sources_first(group: Group) -> bool:
    return group.nodes[0].op not in SOURCES


def _used_outside(graph: Graph, grouping: Grouping) -> set[Value]:
    """Return the values that somebody outside of their group needs."""
    needed = set(graph.outputs)
    for node in graph.nodes:
        for value in node.inputs:
            if value is not None and grouping.of.get(value.node) is not grouping.of[node]:
                needed.add(value)
    for node in reversed(graph.nodes):  # what is seen in another shape must be there itself
        if kind_of(node) == "view" and node.outputs[0] in needed:
            needed.update(x for x in node.inputs if x is not None)
    return needed


def _leading_axes(node: Node) -> tuple[int, ...] | None:
    """Return the axes of a reduction that keeps some axes behind them, else None."""
    op = node.op
    if op.kind != "reduction" or getattr(op, "lower_rule", None) is None:
        return None
    if node.outputs[0].dtype not in DTYPES:
        return None
    if node.outputs[0].dtype != node.inputs[0].dtype or size_of(node.inputs[0].shape) == 0:  # type: ignore[union-attr]  # a reduction has an input
        return None
    if node.outputs[0].dtype != computed_dtype(node.outputs[0].dtype):
        return None
    return reduced_axes(node)


_SPECIAL: dict[Any, Callable[[Lowering, Node], None]] = {
    PLACEHOLDER: Lowering._feed,
    PARAMETER: Lowering._feed,
    CONSTANT: Lowering._constant,
    STATE: Lowering._state,
    ASSIGN: Lowering._assign,
}
_WAYS: tuple[Callable[[Lowering, Node], bool], ...] = (
    Lowering._size_number,
    Lowering._as_view,
    Lowering._as_join,
    Lowering._as_product,
    lower_convolution,
    Lowering._as_scatter,
    Lowering._as_scan,
    Lowering._as_column_sum,
    lower_control,
)
