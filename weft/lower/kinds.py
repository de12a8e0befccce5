"""What part an operation can have in a loop nest.

map      one element from the elements at the same place
reduce   one element from those along the last axes
column   one element from those along the first axes
spread   elements from one per row, at the place that an index names
view     the same elements in another shape
place    elements from others anywhere, by a place rule
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.dim import raise_if_told
from ..core.scalar.builder import Expr, ScalarBuilder, computed_dtype, is_defined, postorder
from ..core.shape import broadcast_axes, normalize_axes, size_of
from ..graph.node import Node, Value
from ..ops.movement.broadcast import broadcast_to
from .dynamic import is_dynamic
from .index_maps import stored_operands
from .indexing import indexed_kind
from .remember import remembered

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


def kind_of(node: Node) -> str | None:
    """Return the kind of an operation, or None if it is a kernel of its own."""
    op = node.op
    if is_dynamic(node):
        return None
    if op.identity or op.reshapes or op is broadcast_to:
        return "view"
    values = [*node.outputs, *(x for x in node.inputs if x is not None)]
    if any(value.dtype not in DTYPES for value in values):
        return None
    return _scalar_kind(node) or (None if stored_operands(node) is None else "place")


def _scalar_kind(node: Node) -> str | None:
    op = node.op
    if getattr(op, "lower_rule", None) is None or len(node.outputs) != 1:
        return None
    if op.kind == "elementwise":
        return "map" if scalar_code(node) is not None else None
    if op.kind == "general":
        return indexed_kind(node) if scalar_code(node) is not None else None
    return _kind_of_reduction(node) if op.kind == "reduction" else None


def _kind_of_reduction(node: Node) -> str | None:
    code = scalar_code(node) if reduced_count(node) else None
    axes, ndim = reduced_axes(node), len(reduced_input(node).shape)
    if code is None:
        return None
    if axes == tuple(range(ndim - len(axes), ndim)):
        return "reduce"
    leading = axes == tuple(range(len(axes))) and size_of(node.outputs[0].shape) > 0
    return "column" if leading and only_reduction(code) is not None else None


def scalar_code(node: Node) -> Expr | None:
    """Return what the rule of an operator gives, None if there is no code for these dtypes."""
    dtypes = tuple(None if x is None else x.dtype for x in node.inputs)
    return _code_for(node.op, node.attrs, dtypes, node.outputs[0].dtype)


@remembered
def _code_for(op: Any, attrs: tuple[Any, ...], dtypes: tuple[Any, ...], result: Any) -> Expr | None:
    builder = ScalarBuilder()
    builder.result = computed_dtype(result)
    args = [
        None if dtype is None else builder.widened(builder.load(i, dtype))
        for i, dtype in enumerate(dtypes)
    ]
    try:
        expr: Expr = op.lower_rule(builder, *args, *attrs)
    except (ArithmeticError, TypeError, ValueError) as error:
        raise_if_told(error)  # else it is a constant that the dtype cannot hold
        return None
    return expr if all(map(is_defined, postorder([expr]))) else None


def last_reduction(expr: Expr) -> Expr | None:
    """Return the reduction that an expression is a function of, if there is just one.

    Apart from it there may be constants only: then the rest can be computed after all partial
    results have been combined.
    """
    found: dict[int, Expr] = {}
    stack = [expr]
    while stack:
        part = stack.pop()
        if part.kind in ("load", "index"):
            return None
        if part.kind == "reduce":
            found[id(part)] = part
        else:
            stack.extend(part.args)
    return next(iter(found.values())) if len(found) == 1 else None


def only_reduction(expr: Expr) -> Expr | None:
    """Return the last reduction of an expression, if no other comes before it."""
    found = last_reduction(expr)
    alone = found is not None and all(e.kind != "reduce" for e in postorder([found.args[0]]))
    return found if alone else None


def reduced_axes(node: Node) -> tuple[int, ...]:
    """Return the axes over which a reduction runs."""
    shape = reduced_input(node).shape
    if node.op.kind == "general":  # it picks one element of a row
        return (len(shape) - 1,)
    if "shape" in node.op.attrs:  # it sums to a shape that broadcasts to that of its input
        return broadcast_axes(node.attr("shape"), shape)
    return normalize_axes(node.attr("axis"), len(shape))


def reduced_count(node: Node) -> int:
    """Return how many elements a reduction makes one of."""
    shape = reduced_input(node).shape
    return size_of(shape[a] for a in reduced_axes(node))


def reduced_input(node: Node) -> Value:
    """Return what a reduction takes."""
    value = node.inputs[0]
    assert value is not None
    return value
