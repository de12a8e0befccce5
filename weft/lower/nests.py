"""Make the kernel of a group: its expressions, its operands, and where results go."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ..core.dim import size_max, size_min
from ..core.scalar.builder import (
    PLACED,
    Expr,
    ScalarBuilder,
    computed_dtype,
    postorder,
    substituted,
)
from ..core.shape import Size, size_of
from ..graph.node import Node, Value
from ..graph.special import CONSTANT
from .frames import COLUMN, FULL, ROW
from .groups import Group
from .index_maps import mapped_expressions
from .kernels import ColumnKernel, Operand, Output, RowKernel
from .kinds import kind_of, last_reduction, only_reduction, reduced_count
from .long_rows import LongRows
from .loops import collapse
from .nest_index_maps import NestIndexMaps
from .storage import Buffer, View, contiguous
from .transposed import straightened
from .views import views_of

if TYPE_CHECKING:
    from .lowering import Lowering

MOST_BLOCKS = 64
WORTH_A_BLOCK = 1 << 15  # elements
FEW_TO_COMBINE = 16  # rows
MANY_COLUMNS = 1 << 16


class Result(NamedTuple):
    """Something a kernel stores: an operand as the loops see it, and its value."""

    view: View
    value: Expr
    way: str | None = None


class NestBuilder:
    """Makes the kernel of one group of operations."""

    def __init__(self, lowered: Lowering, group: Group) -> None:
        assert group.frame is not None
        self.lowered = lowered
        self.group = group
        self.frame = group.frame
        self.builder = ScalarBuilder()
        if self.frame.split is not None:
            self.builder.row = size_of(self.frame.domain[self.frame.split :])
        self.operands: list[View] = []  # each broadcast to the domain
        self.exprs: dict[Value, Expr] = {}
        self.loads: dict[tuple[int, tuple[int, ...], int], Expr] = {}
        self.places = NestIndexMaps(self)

    def build(self) -> None:
        """Add the kernels to the lowered graph."""
        kinds = {node: kind_of(node) for node in self.group.nodes}
        for node in self.group.nodes:
            made = self._expressions(node, kinds[node])
            self.exprs.update(zip(node.outputs, made, strict=True))
        own = [n for n in self.group.nodes if kinds[n] != "view" and self._is_wanted(n)]
        columns = [n for n in own if self.group.level[n.outputs[0]] == COLUMN]
        values = [value for n in own if n not in columns for value in n.outputs]
        results = [self._result(value) for value in values if value in self.lowered.outside]
        if self.group.split is not None:
            self.operands = [self._in_sequence(view) for view in self.operands]
        if "reduce" in kinds.values():
            self._straighten()
        if columns and not results and self._suits_strips(columns):
            self._by_strips(columns)
        else:
            self._by_rows(results, columns)
        for node in self.group.nodes:
            if kinds[node] == "view" and self._is_wanted(node):
                self._place_view(node)

    def _is_wanted(self, node: Node) -> bool:
        return any(value in self.lowered.outside for value in node.outputs)

    def _place_view(self, node: Node) -> None:
        """Give a value that another is in a new shape its place: that of the other."""
        (source, *_) = node.inputs
        assert source is not None
        made = views_of(self.lowered.views[source], node)
        assert made is not None, node
        self.lowered.views.update(zip(node.outputs, made, strict=True))

    # -- expressions -------------------------------------------------------------------------------

    def _expressions(self, node: Node, kind: str | None) -> list[Expr]:
        """Return what a node computes, for each of its outputs."""
        if kind != "place":
            return [self._expression(node, kind)]
        placed, _ = mapped_expressions(node, self.places, self.lowered.views.get)
        assert placed is not None, node
        return placed

    def _expression(self, node: Node, kind: str | None) -> Expr:
        if kind == "view":
            (source, *_) = node.inputs
            assert source is not None
            return self.exprs[source]
        level = self.group.level[node.outputs[0]]
        reduces = kind in ("reduce", "column")
        levels = [FULL if reduces else level] * len(node.inputs)
        if node.op.kind == "general":  # an index per row picks from it, or places into it
            levels = [FULL if reduces else ROW, ROW]
        args = [
            None if x is None else self.builder.widened(self.operand(x, at))
            for x, at in zip(node.inputs, levels, strict=True)
        ]
        if node.op.kind == "general":
            assert args[1] is not None
            args[1] = self.places.picked_index(node, args[1])
        self.builder.result = computed_dtype(node.outputs[0].dtype)
        if reduces:
            self.builder.count = reduced_count(node)
        expr: Expr = node.op.lower_rule(self.builder, *args, *node.attrs)
        return self.builder.cast(expr, node.outputs[0].dtype)

    def operand(self, value: Value, level: str) -> Expr:
        """Return the element, or the value per row, of a value."""
        known = self.exprs.get(value)
        if known is not None:
            return known
        if value.node.op is CONSTANT and size_of(value.shape) == 1:
            return self.builder.constant(value.node.attrs[0].array.item(), value.dtype)
        view = self.lowered.views[value]
        spread = view.broadcast(self.frame.domain) if level == FULL else self._per_row(view)
        key = (id(spread.buffer), spread.strides, spread.offset)
        if key not in self.loads:
            self.operands.append(spread)
            self.loads[key] = self.builder.load(len(self.operands) - 1, view.dtype)
        return self.loads[key]

    def _in_sequence(self, view: View) -> View:
        """Return an operand whose rows can be read as one run of elements, copied if need be."""
        split = self.frame.split
        sizes, strides = self.frame.domain[split:], view.strides[split:]
        axes = [(n, s) for n, s in zip(sizes, strides, strict=True) if n != 1]
        if all(s == 0 for _, s in axes) or all(
            outer == inner * n for (_, outer), (n, inner) in pairwise(axes)
        ):
            return view
        return self.lowered.copied(view)

    def _straighten(self) -> None:
        """Copy the operands that are loaded in order and lie in an order too bad for that."""
        assert self.frame.split is not None
        numbers = [load.data for load in self.loads.values()]
        views = straightened(self.lowered, [self.operands[i] for i in numbers], self.frame.split)
        for number, view in zip(numbers, views, strict=True):
            self.operands[number] = view

    def _per_row(self, view: View) -> View:
        if view.shape == ():
            return view.broadcast(self.frame.domain)
        aligned = view.reshaped(self.frame.row_shapes[1])
        assert aligned is not None, view
        return aligned.broadcast(self.frame.domain)

    def _result(self, value: Value) -> Result:
        """Return where a value goes: one per row has stride 0 along the row."""
        full = self.group.level[value] == FULL
        at_home = full and self.frame.split is None
        view = self.lowered.new_element_result(value) if at_home else self.lowered.new(value)
        return Result(view if full else self._per_row(view), self.exprs[value])

    # -- kernels -----------------------------------------------------------------------------------

    def _by_rows(self, results: list[Result], columns: Sequence[Node]) -> None:
        """Add the kernel that goes from row to row, and those that complete its results."""
        parts = [self._partial(node) for node in columns]
        results = [*results, *(part.result for part in parts)]
        if not results:
            return
        operands, loops = self._collapsed([r.view for r in results])
        first = len(self.operands)
        outputs = [Output(first + i, r.value, r.way) for i, r in enumerate(results)]
        block = self._rows_of_a_block() if columns else 1
        kernel = RowKernel(
            self.group.nodes[-1].name,
            loops,
            tuple(operands),
            tuple(outputs),
            self.lowered.origins(*self.group.nodes),
            block,
            tuple(self.places.collapsed),
            self.places.flag_view,
        )
        if self.frame.is_long and not columns and LongRows.suits(kernel):
            LongRows(self.lowered, kernel).add()
        else:
            self.lowered.kernels.append(kernel)
        for part in parts:
            part.add_finish(self.lowered)

    def _collapsed(self, views: Sequence[View]) -> tuple[list[Operand], tuple[int, ...]]:
        every = [*self.operands, *views]
        all_strides = [*(v.strides for v in every), *self.places.iotas]
        loops, strides = collapse(self.frame.domain, all_strides, self.frame.split)
        self.places.collapsed = strides[len(every) :]
        return [Operand(v, s) for v, s in zip(every, strides, strict=False)], loops

    @property
    def _rows(self) -> Size:
        return size_of(self.frame.rows)

    @property
    def _columns(self) -> Size:
        return size_of(self.frame.domain) // self._rows

    def _rows_of_a_block(self) -> Size:
        """Return how many rows are combined at a time: so that there are neither few nor many."""
        blocks = size_max(1, self._rows * self._columns // WORTH_A_BLOCK)
        return -(-self._rows // size_min(MOST_BLOCKS, blocks))

    def _partial(self, node: Node) -> _Partial:
        (value,) = node.outputs
        expr = self.exprs[value]
        reduction = last_reduction(expr)
        assert reduction is not None, node
        out = self.lowered.new(value).reshaped((self._columns,))
        assert out is not None
        blocks = -(-self._rows // self._rows_of_a_block())
        whole = blocks == 1 and expr is reduction
        made = out
        if not whole:
            made = self.lowered.scratch((blocks, self._columns), reduction.dtype, value.name)
        strides = (0,) * len(self.frame.rows)
        spread = View(made.buffer, self.frame.domain, (*strides, *self._inner_strides()))
        result = Result(spread, reduction.args[0], reduction.data)
        return _Partial(node, expr, reduction, result, None if whole else made, out)

    def _inner_strides(self) -> tuple[int, ...]:
        buffer = contiguous(Buffer("", (), self.builder.result, ""), self.frame.domain)
        return buffer.strides[self.frame.split :]

    def _suits_strips(self, columns: Sequence[Node]) -> bool:
        """Tell whether going down columns is better: no row must be known as a whole."""
        exprs = [self.exprs[node.outputs[0]] for node in columns]
        if any(e.kind in PLACED for e in postorder(exprs)):
            return False
        each = all(only_reduction(expr) is not None for expr in exprs)
        return each and (self._columns > MANY_COLUMNS or self._has_few_rows())

    def _has_few_rows(self) -> bool:
        """Tell whether there are so few rows, and they so long, that going down columns is better.

        Few short rows are one block, and take little time in any way.
        """
        one_block = (FEW_TO_COMBINE - 1) * self._columns < 2 * WORTH_A_BLOCK
        return not one_block and self._rows < FEW_TO_COMBINE

    def _by_strips(self, columns: Sequence[Node]) -> None:
        """Add a kernel for each reduction over rows that goes down strips of columns."""
        for node in columns:
            expr = self.exprs[node.outputs[0]]
            reduction = last_reduction(expr)
            assert reduction is not None
            out = self.lowered.new(node.outputs[0]).reshaped((self._columns,))
            assert out is not None
            strides = (*(0,) * len(self.frame.rows), *self._inner_strides())
            operands, loops = self._collapsed([View(out.buffer, self.frame.domain, strides)])
            reduced = (*(True,) * (len(loops) - 1), False)
            self.lowered.kernels.append(
                ColumnKernel(
                    node.name,
                    loops,
                    reduced,
                    tuple(operands),
                    Output(len(operands) - 1, reduction.args[0]),
                    reduction.data,
                    self.lowered.origins(*self.group.nodes),
                    expr,
                )
            )


class _Partial(NamedTuple):
    """A reduction over rows: its results for blocks of rows, and how they become one."""

    node: Node
    expr: Expr
    reduction: Expr
    result: Result
    made: View | None
    out: View

    def add_finish(self, lowered: Lowering) -> None:
        """Add the kernel that combines the blocks, unless there is only one."""
        if self.made is None:
            return
        blocks, columns = self.made.shape
        builder = ScalarBuilder()
        load = builder.load(0, self.made.dtype)
        total = builder.reduce(self.reduction.data, load)
        finish = substituted(builder, self.expr, {self.reduction: total})
        lowered.kernels.append(
            ColumnKernel(
                f"{self.node.name} (blocks)",
                (blocks, columns),
                (True, False),
                (Operand(self.made, (columns, 1)), Operand(self.out, (0, 1))),
                Output(1, load),
                self.reduction.data,
                lowered.origins(self.node),
                finish,
            )
        )
