"""Products of rows that were looked up in a table: the table is multiplied, not every row.

    t[i] @ w                t @ w, of which rows i are looked up
    g.T @ t[i]              rows of g added up by i, times t
    g @ w, added up by i    rows of g added up by i, times w

These are the product behind an embedding and both of its gradients. A text looks up some hundred
characters thousands of times, so that few multiplications are left. The first keeps its bits, as
far as products do; sums are rounded in another order. Rows that nobody looked up take no part in
sums: 0 times what is not finite in them would be NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..core.dtype import float32, float64
from ..core.shape import Shape, size_of
from ..graph.graph import Graph
from ..graph.node import Node, Value
from ..graph.special import CONSTANT, Literal
from ..ops.elementwise.arithmetic import add
from ..ops.elementwise.comparison import greater
from ..ops.elementwise.selection import where
from ..ops.index.embedding import embedding
from ..ops.index.take import take, take_adjoint
from ..ops.linalg.matmul import linear, matmul
from ..ops.movement.axes import permute
from ..ops.movement.broadcast import broadcast_to
from ..ops.movement.reshape import reshape
from .rewrite import Rebuild, pass_over

LEAST_USES: Final = 2  # lookups for each row of the table
LEAST_WIDTH: Final = 32  # a multiplication and addition takes this part of the time of a lookup
_TURNED: Final = (1, 0)


def multiply_tables(graph: Graph, outputs: Sequence[Value] | None = None) -> Graph:
    """Return the graph with tables multiplied in place of their rows; sizes must be known."""
    return pass_over(graph, outputs, _visit, multiply_tables)


def _visit(rebuild: Rebuild, node: Node) -> Sequence[Value] | None:
    found = None
    if node.op is matmul or node.op is linear:
        found = _product_of_lookup(rebuild, node)
    if found is None and node.op is matmul:
        found = _gradient_of_factor(rebuild, node)
    if node.op is take_adjoint:
        found = _gradient_of_table(rebuild, node)
    return None if found is None else [found]


# -- rows, and how they were moved about -----------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """A value whose last axis holds rows, and the moves that left them whole, latest first."""

    start: Value
    moves: list[Node]

    def forth(self, rebuild: Rebuild, value: Value) -> Value:
        """Return other rows, moved about in the same way."""
        for move in reversed(self.moves):
            value = _moved(rebuild, move, value, _axes(move), move.outputs[0])
        return value

    def back(self, rebuild: Rebuild, value: Value) -> Value:
        """Return other rows, moved back to where these began."""
        for move in self.moves:
            axes, (before,) = _axes(move), move.inputs
            assert before is not None
            undone = None if axes is None else tuple(map(axes.index, range(len(axes))))
            value = _moved(rebuild, move, value, undone, before)
        return value


def _axes(move: Node) -> tuple[int, ...] | None:
    return move.attrs[0] if move.op is permute else None


def _moved(rebuild: Rebuild, move: Node, value: Value, axes: Any, like: Value) -> Value:
    """Return rows with their axes in another order, or in as many axes as others."""
    if axes is not None:
        return rebuild.make(move, permute, value, attrs=(axes,))
    return rebuild.make(move, reshape, value, attrs=((*like.shape[:-1], value.shape[-1]),))


def _rows(value: Value) -> Rows:
    moves = []
    while _keeps_rows(value.node):
        moves.append(value.node)
        (before,) = value.node.inputs
        assert before is not None
        value = before
    return Rows(value, moves)


def _keeps_rows(node: Node) -> bool:
    if node.op is permute:
        axes = node.attrs[0]
        return bool(axes) and axes[-1] == len(axes) - 1
    if not node.op.reshapes:
        return False
    (before,), (after,) = node.inputs, node.outputs
    assert before is not None
    return bool(before.shape and after.shape) and before.shape[-1] == after.shape[-1]


@dataclass(frozen=True)
class Lookup:
    """Rows that were looked up in a table, and where they went from there."""

    node: Node
    table: Value
    index: Value
    rows: Rows


def _lookup(value: Value | None) -> Lookup | None:
    """Return the lookup that rows come from, if the table is worth to be multiplied."""
    if value is None:
        return None
    rows = _rows(value)
    node = rows.start.node
    if node.op is not embedding and not (node.op is take and node.attrs[0] == 0):
        return None
    table, index = node.inputs
    assert table is not None
    assert index is not None
    return Lookup(node, table, index, rows) if _pays(table, index) else None


def _pays(table: Value, index: Value) -> bool:
    return pays_to_multiply(table.shape, table.dtype, index.shape)


def pays_to_multiply(table: Shape, dtype: np.dtype[Any], index: Shape) -> bool:
    """Tell whether a table of this shape is worth to be multiplied, rather than its rows."""
    if len(table) != 2 or dtype not in (float32, float64):  # sums of halves lose digits
        return False
    count, width = table
    if width < LEAST_WIDTH:
        return False
    return not size_of(index) < LEAST_USES * count


# -- the three products ----------------------------------------------------------------------------


def _product_of_lookup(rebuild: Rebuild, node: Node) -> Value | None:
    """Return rows of a product in place of a product of rows."""
    rows, weight, *_ = node.inputs
    if weight is None or len(weight.shape) != 2:
        return None
    lookup = _lookup(rows)
    if lookup is None:
        return None
    product = rebuild.make(node, node.op, lookup.table, *node.inputs[1:], attrs=node.attrs)
    found = rebuild.make(lookup.node, lookup.node.op, product, lookup.index, attrs=_plain(lookup))
    return lookup.rows.forth(rebuild, found)


def _plain(lookup: Lookup) -> tuple[Any, ...]:
    """Return the attributes of a lookup of which no gradient will be taken."""
    return (None, False) if lookup.node.op is embedding else (0, False)


def _gradient_of_factor(rebuild: Rebuild, node: Node) -> Value | None:
    """Return a sum of outer products with looked-up rows, by rows of the table."""
    x, y = node.inputs
    assert x is not None
    assert y is not None
    if len(x.shape) != 2 or len(y.shape) != 2:
        return None
    lookup = _lookup(y)
    if lookup is not None:
        sums = _added_up(rebuild, node, rebuild.make(node, permute, x, attrs=(_TURNED,)), lookup)
        turned = rebuild.make(node, permute, sums, attrs=(_TURNED,))
        return rebuild.make(node, matmul, turned, _used_table(rebuild, lookup))
    lookup = _lookup(x.node.inputs[0]) if x.node.op is permute else None
    if lookup is None or x.node.attrs != (_TURNED,):
        return None
    table = _used_table(rebuild, lookup)
    turned = rebuild.make(node, permute, table, attrs=(_TURNED,))
    return rebuild.make(node, matmul, turned, _added_up(rebuild, node, y, lookup))


def _added_up(rebuild: Rebuild, node: Node, rows: Value, lookup: Lookup) -> Value:
    """Return the sum of those rows for each row of the table that stood beside its lookups."""
    beside = lookup.rows.back(rebuild, rows)
    shape = (lookup.table.shape[0], rows.shape[-1])
    return rebuild.make(node, take_adjoint, beside, lookup.index, attrs=(shape, 0))


def _gradient_of_table(rebuild: Rebuild, node: Node) -> Value | None:
    """Return a product of rows that were added up in place of products that are added up."""
    value, index = node.inputs
    assert value is not None
    assert index is not None
    if node.attrs[1] != 0 or not _comes_of_products(value) or not _pays(node.outputs[0], index):
        return None
    one = _number(rebuild, node, 1, value.dtype)
    ones = rebuild.make(node, broadcast_to, one, attrs=(index.shape,))
    return _where_used(rebuild, node, ones, index, _sum_of_products(rebuild, node, value, index))


def _comes_of_products(value: Value) -> bool:
    """Tell whether rows are products of rows with a matrix, or sums that have such."""
    start = _rows(value).start
    parts = [x for x in start.node.inputs if x is not None]
    if start.node.op is add:
        return all(x.shape == start.shape for x in parts) and any(map(_comes_of_products, parts))
    return start.node.op is matmul and len(parts[0].shape) > 1 and len(parts[1].shape) == 2


def _sum_of_products(rebuild: Rebuild, node: Node, value: Value, index: Value) -> Value:
    """Return rows added up by an index, those that come of products before they are multiplied."""
    if not _comes_of_products(value):
        return rebuild.make(node, take_adjoint, value, index, attrs=node.attrs)
    rows = _rows(value)
    x, y = rows.start.node.inputs
    assert x is not None
    assert y is not None
    if rows.start.node.op is add:
        parts = [rows.forth(rebuild, part) for part in (x, y)]
        sums = [_sum_of_products(rebuild, node, part, index) for part in parts]
        return rebuild.make(node, add, *sums)
    shape = (node.attrs[0][0], x.shape[-1])
    moved = rows.forth(rebuild, x)
    found = rebuild.make(node, take_adjoint, moved, index, attrs=(shape, 0))
    return rebuild.make(node, matmul, found, y)


def _used_table(rebuild: Rebuild, lookup: Lookup) -> Value:
    """Return a table with zeros in place of rows that nobody looked up.

    It is ones that are looked up to tell, so that indices are checked as they were.
    """
    node, table = lookup.node, lookup.table
    one = _number(rebuild, node, 1, table.dtype)
    ones = rebuild.make(node, broadcast_to, one, attrs=(table.shape[:1],))
    found = rebuild.make(node, node.op, ones, lookup.index, attrs=_plain(lookup))
    return _where_used(rebuild, node, found, lookup.index, table)


def _where_used(rebuild: Rebuild, node: Node, ones: Value, index: Value, rows: Value) -> Value:
    """Return rows, with zeros where no index points; the ones have its shape."""
    count, zero = rows.shape[0], _number(rebuild, node, 0, rows.dtype)
    uses = rebuild.make(node, take_adjoint, ones, index, attrs=((count,), 0))
    used = rebuild.make(node, greater, uses, zero)
    column = rebuild.make(node, reshape, used, attrs=((count, 1),))
    return rebuild.make(node, where, column, rows, zero)


def _number(rebuild: Rebuild, like: Node, number: float, dtype: Any) -> Value:
    literal = Literal(np.array(number, dtype))
    made = rebuild.fresh(like, CONSTANT, (), (literal,), [literal.type])
    rebuild.graph.append(made)
    return made.outputs[0]
