"""What TensorFlow says of operations that cannot be: its words around Weft's reasons."""

from __future__ import annotations

from typing import Any

from .shapes import listed

_PRODUCTS = ("MatMul", "BatchMatMul")


def shape_error(operation: Any, error: Exception) -> Exception:
    """Return the error for an operation that cannot be made from its inputs."""
    if getattr(error, "in_words", False):
        return error
    shapes = [tensor.shape for tensor in operation.inputs]
    where = (
        f"for {operation.name!r} (op: {operation.type!r}) with input shapes: "
        f"{', '.join(map(listed, shapes))}."
    )
    pair = _unequal(operation, shapes)
    reason = f"Dimensions must be equal, but are {pair[0]} and {pair[1]}" if pair else str(error)
    made = TypeError if isinstance(error, TypeError) and not pair else ValueError
    return in_words(made(f"{reason} {where}"))


def in_words(error: Exception) -> Exception:
    """Return an error that already has TensorFlow's words."""
    error.in_words = True  # type: ignore[attr-defined]
    return error


def _unequal(operation: Any, shapes: Any) -> tuple[int, int] | None:
    """Return the two sizes that should be equal, where the kind of operation says which."""
    if len(shapes) != 2 or any(shape.sizes is None for shape in shapes):
        return None
    a, b = (list(shape.sizes) for shape in shapes)
    if operation.type in _PRODUCTS:
        if len(a) < 2 or len(b) < 2:
            return None
        settings = operation.compute.keywords  # of _matmul in math_ops.py
        left = a[-2] if settings["transpose_a"] else a[-1]
        right = b[-1] if settings["transpose_b"] else b[-2]
        return None if left == right else (left, right)
    if operation.type in _BROADCAST:
        for m, n in zip(reversed(a), reversed(b), strict=False):
            if m != n and 1 not in (m, n):
                return m, n
    return None


_BROADCAST = (
    *("Add", "Sub", "Mul", "RealDiv", "FloorDiv", "FloorMod", "Pow", "Maximum", "Minimum"),
    *("SquaredDifference", "Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual"),
    *("LogicalAnd", "LogicalOr", "Atan2"),
)
