"""What the matrix operators share: checks of shapes, working precision, names for failures."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.batching import BatchedCall, with_rank
from ...core.dim import Dim, is_known
from ...core.dispatch import run
from ...core.dtype import Array, DType, float32, is_half
from ...core.errors import (
    ArgumentError,
    ArgumentTypeError,
    LinalgError,
    ShapeError,
    UnknownSizeError,
)
from ...core.op import F
from ...core.operands import tensor_from
from ...core.shape import Shape, TensorType, broadcast

# -- checks: they accept anything that has a shape ----------------------------------------------


def check_matrix(x: Any, name: str = "x") -> None:
    """Raise unless `x` is a matrix or a stack of matrices."""
    if x.ndim < 2:
        raise ShapeError(
            f"{name} must be a matrix or a stack of matrices, (..., m, n). "
            f"Received: shape {tuple(x.shape)}"
        )


def check_square(x: Any, name: str = "x") -> None:
    """Raise unless `x` is a square matrix or a stack of them."""
    check_matrix(x, name)
    if x.shape[-1] != x.shape[-2]:
        raise ShapeError(
            f"{name} must be square in its last two dimensions, (..., n, n). "
            f"Received: shape {tuple(x.shape)}"
        )


def square_type(x: Any, *attrs: Any) -> TensorType:
    """Return the type of square matrices: the shape rule of what makes others of their size."""
    check_square(x)
    return TensorType(x.shape, x.dtype)


def solution_shape(a: Any, b: Any) -> Shape:
    """Return the shape of x in `a @ x = b`; a 1-D b is one right-hand side, else columns are."""
    check_matrix(a, "a")
    if b.ndim == 0:
        raise ShapeError("b must be a vector or a stack of matrices. Received: a 0-d tensor")
    rows = b.shape[0] if b.ndim == 1 else b.shape[-2]
    if rows != a.shape[-2]:
        raise ShapeError(
            f"a and b must have equally many rows; got a of shape {tuple(a.shape)} and b of shape "
            f"{tuple(b.shape)}: {a.shape[-2]} and {rows} rows" + _vector_hint(a, b)
        )
    if b.ndim == 1:
        return (*a.shape[:-2], a.shape[-1])
    return (*batch_shape(a, b), a.shape[-1], b.shape[-1])


def _vector_hint(a: Any, b: Any) -> str:
    if b.ndim > 1 and b.shape[-1] == a.shape[-2]:
        return "; for a stack of vectors use b[..., None]"
    return ""


def batch_shape(x: Any, y: Any) -> Shape:
    """Return the common shape of the leading (batch) dimensions of two stacks of matrices."""
    try:
        return broadcast(tuple(x.shape[:-2]), tuple(y.shape[:-2]))
    except ShapeError:
        raise ShapeError(
            f"the batch dimensions of {tuple(x.shape)} and {tuple(y.shape)} do not broadcast: "
            f"{tuple(x.shape[:-2])} and {tuple(y.shape[:-2])}"
        ) from None


def known_sides(name: str, rows: Any, columns: Any) -> tuple[int, int]:
    """Return the sizes of matrices whose gradient takes another form for tall and for wide ones."""
    if not is_known((rows, columns)):
        raise UnknownSizeError(
            f"{name}: the gradient depends on which of the sizes {rows} and {columns} is larger, "
            "which is not known until the graph runs; give the placeholder known sizes"
        )
    return rows, columns


def as_flag(value: Any, name: str) -> bool:
    """Return a truth-valued attribute as a bool; raise if it is none."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    raise ArgumentTypeError(f"{name} must be True or False. Received: {value!r}")


def as_tolerance(value: Any, name: str) -> float | None:
    """Return a tolerance attribute as a float >= 0, or None where it is left to the operator."""
    if value is None:
        return None
    if isinstance(value, (bool, str)) or not isinstance(value, (int, float, np.number)):
        raise ArgumentTypeError(f"{name} must be a number or None. Received: {value!r}")
    if not value >= 0:
        raise ArgumentError(f"{name} must not be negative. Received: {value!r}")
    return float(value)


def operand(x: Any) -> Any:
    """Return an operand that has a shape as it is, and numbers or lists lifted to a tensor."""
    return x if hasattr(x, "ndim") else tensor_from(x, "an operand")


# -- kernels ------------------------------------------------------------------------------------


def in_working_precision(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that computes 16-bit floats in float32 and rounds the results back."""

    @functools.wraps(kernel)
    def run(x: Array, *rest: Any) -> Any:
        if not is_half(x.dtype):
            return kernel(x, *rest)
        half = x.dtype
        wide = [_cast(value, half, float32) for value in (x, *rest)]
        result = kernel(*wide)
        if isinstance(result, tuple):
            return tuple(_cast(part, float32, half) for part in result)
        return _cast(result, float32, half)

    return run


def _cast(value: Any, source: DType, target: DType) -> Any:
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype == source:
        return value.astype(target)
    return value


def naming_failures(
    kernel: Callable[..., Any],
    problem: str,
    *,
    square: bool = True,
    probe: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """Return a kernel whose failure says which matrix of the stack has the problem.

    square   whether the kernel needs square matrices
    probe    function that fails for the same single matrices; by default the kernel itself
    """

    @functools.wraps(kernel)
    def run(x: Array, *rest: Any) -> Any:
        try:
            return kernel(x, *rest)
        except np.linalg.LinAlgError:
            if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
                raise  # the operator's shape rule explains it
            found = _failing_matrix(probe or kernel, x, rest)
        if not np.isfinite(x).all():
            raise LinalgError(f"the matrix holds NaN or infinity. Received: shape {x.shape}")
        where = f" at batch index {found}" if x.ndim > 2 else ""
        raise LinalgError(f"{problem}{where}. Received: shape {x.shape}")

    return run


def _failing_matrix(probe: Callable[..., Any], x: Array, rest: tuple[Any, ...]) -> Any:
    """Return the index of the first matrix that fails; searched only once something has failed."""
    for index in np.ndindex(x.shape[:-2]):
        try:
            probe(x[index], *rest)
        except np.linalg.LinAlgError:
            return index
    return None


# -- batching -----------------------------------------------------------------------------------


def solved(call: BatchedCall) -> Any:
    """Solve the systems of all examples; a vector in each becomes a column."""
    a, b = call.everywhere()
    vectors = call.ndim(1) == 1
    b = column(b) if vectors else b
    ndim = max(a.ndim, b.ndim) - 1
    x = run(call.op, (with_rank(a, ndim), with_rank(b, ndim)), call.attrs)
    return x[..., 0] if vectors else x


# -- pieces of derivative rules -----------------------------------------------------------------


def transposed(x: Any) -> Any:
    """Return a stack of matrices with rows and columns exchanged."""
    return F.swapaxes(x, -1, -2)


def symmetric_part(x: Any) -> Any:
    """Return (x + x^T) / 2, scaled first so that large elements do not overflow."""
    half = x / 2
    return half + transposed(half)


def identity_like(x: Any) -> Any:
    """Return a stack of identity matrices of the shape and dtype of the square matrices `x`."""
    size = x.shape[-1]
    if not isinstance(size, Dim):
        return F.zeros_like(x) + np.eye(size, dtype=x.dtype)
    return F.zeros_like(x) + F.cast(F.iota(size)[:, None] == F.iota(size), x.dtype)


def column(x: Any) -> Any:
    """Return x[..., None]."""
    return F.unsqueeze(x, -1)


def row(x: Any) -> Any:
    """Return x[..., None, :]."""
    return F.unsqueeze(x, -2)


def reciprocal_gap(gap: Any) -> Any:
    """Return 1 / gap, and zero where the gap is exactly zero.

    Gaps are differences of eigenvalues. Functions that do not depend on the choice of basis in a
    degenerate eigenspace have no component there, so zero is their correct limit.
    """
    closed = gap == 0
    return F.where(closed, 0, 1 / F.where(closed, 1, gap))
