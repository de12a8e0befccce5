"""Kinds of scalar operations: what they cost, where they may stand, what they are defined on."""

from __future__ import annotations

from .scalar import COMPARISONS, Expr

CHEAP = frozenset(
    (
        "abs",
        "add",
        "and",
        "cast",
        "const",
        "eq",
        "ge",
        "gt",
        "le",
        "load",
        "lt",
        "maximum",
        "minimum",
        "mul",
        "ne",
        "neg",
        "not",
        "or",
        "select",
        "square",
        "sub",
        "xor",
    )
)
ON_INTEGERS = frozenset(
    (
        "abs",
        "add",
        "and",
        "floor_divide",
        "fmod",
        "maximum",
        "minimum",
        "mod",
        "mul",
        "neg",
        "not",
        "or",
        "quotient",
        "remainder",
        "shift_left",
        "shift_right",
        "square",
        "sub",
        "upper_product",
        "xor",
    )
)
ON_TRUTH = frozenset(
    ("abs", "add", "and", "maximum", "minimum", "mul", "not", "or", "square", "xor")
)
CARRIED = frozenset(("carry", "step"))  # only in a scan
PLACED = frozenset(("checked", "iota", "load_at", "random"))  # they depend on where the loops stand
ANYWHERE = (
    frozenset(("bits", "cast", "const", "index", "load", "select")) | COMPARISONS | PLACED | CARRIED
)


def is_defined(expr: Expr) -> bool:
    """Tell whether there is code for an operation on the dtypes it meets."""
    kind = expr.kind
    if kind in ANYWHERE:
        return True
    if kind == "reduce":
        return expr.dtype.kind != "b" or expr.data in ("max", "min")
    if expr.args[0].dtype.kind == "f":
        return kind not in ("and", "not", "or", "xor", "shift_left", "shift_right")
    return kind in (ON_TRUTH if expr.args[0].dtype.kind == "b" else ON_INTEGERS)
