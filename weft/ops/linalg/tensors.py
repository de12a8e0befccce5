"""Products of tensors of any number of dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dim import surely_less
from ...core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ...core.op import F, composite
from ...core.shape import as_int, normalize_axis, size_of
from .._halves import rounded_once
from ._matrices import column, operand


@composite(method=True, public=("wf", "linalg"))
def tensordot(x: Any, y: Any, axes: Any = 2, *, dims: Any = None) -> Any:
    """Return x and y multiplied and summed over pairs of axes.

    axes    n: the last n axes of x against the first n of y; (xs, ys): those axes, each an axis
            or a sequence of them. `dims` is another name of it.

    The result has the remaining axes of x, then those of y.
    """
    x, y = operand(x), operand(y)
    over_x, over_y = _contracted_axes(x, y, axes if dims is None else dims)
    for i, j in zip(over_x, over_y, strict=True):
        if x.shape[i] != y.shape[j]:
            raise ShapeError(
                f"tensordot: axis {i} of x and axis {j} of y must have equal sizes; "
                f"got {x.shape[i]} and {y.shape[j]} in shapes {tuple(x.shape)} and "
                f"{tuple(y.shape)}",
                i=i,
                j=j,
                left=x.shape[i],
                right=y.shape[j],
            )
    keep_x = [i for i in range(x.ndim) if i not in over_x]
    keep_y = [i for i in range(y.ndim) if i not in over_y]
    summed = size_of(x.shape[i] for i in over_x)
    shape = (*(x.shape[i] for i in keep_x), *(y.shape[i] for i in keep_y))
    left = F.reshape(
        F.permute(x, (*keep_x, *over_x)), (size_of(x.shape[i] for i in keep_x), summed)
    )
    right = F.reshape(
        F.permute(y, (*over_y, *keep_y)), (summed, size_of(y.shape[i] for i in keep_y))
    )
    return F.reshape(F.matmul(left, right), shape)


def _contracted_axes(x: Any, y: Any, axes: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if isinstance(axes, (int, np.integer)) and not isinstance(axes, bool):
        count = int(axes)
        if not 0 <= count <= min(x.ndim, y.ndim):
            raise ArgumentError(
                f"tensordot: axes must be 0..{min(x.ndim, y.ndim)} for shapes {x.shape} and "
                f"{y.shape}. Received: {count}"
            )
        return tuple(range(x.ndim - count, x.ndim)), tuple(range(count))
    if not isinstance(axes, (tuple, list)) or len(axes) != 2:
        raise ArgumentTypeError(
            f"tensordot: axes must be an int or a pair of axes or of sequences. Received: {axes!r}"
        )
    over_x, over_y = (_axis_list(a, t, n) for a, t, n in zip(axes, (x, y), "xy", strict=True))
    if len(over_x) != len(over_y):
        raise ArgumentError(
            f"tensordot: axes must name equally many axes of each. Received: {axes}"
        )
    return over_x, over_y


def _axis_list(axes: Any, t: Any, name: str) -> tuple[int, ...]:
    """Return axes counted from the front, in the given order."""
    given = axes if isinstance(axes, (tuple, list)) else (axes,)
    result = tuple(normalize_axis(a, t.ndim, f"tensordot: axis of {name}") for a in given)
    if len(set(result)) != len(result):
        raise ArgumentError(f"tensordot: axes of {name} name an axis twice. Received: {given}")
    return result


@composite(method=True, public=("wf",))
def kron(x: Any, y: Any) -> Any:
    """Return the Kronecker product: every element of x times the whole of y.

    Shapes are filled with leading ones to the same length and multiplied.
    """
    x, y = operand(x), operand(y)
    ndim = max(x.ndim, y.ndim)
    x_shape = (*[1] * (ndim - x.ndim), *x.shape)
    y_shape = (*[1] * (ndim - y.ndim), *y.shape)
    spread_x = [size for dim in x_shape for size in (dim, 1)]
    spread_y = [size for dim in y_shape for size in (1, dim)]
    product = F.reshape(x, spread_x) * F.reshape(y, spread_y)
    return F.reshape(product, tuple(a * b for a, b in zip(x_shape, y_shape, strict=True)))


@composite(keywords={"N": "n"}, public=("wf",))
@rounded_once
def vander(x: Any, n: int | None = None, *, increasing: bool = False) -> Any:
    """Return the Vandermonde matrices of vectors: columns are the powers 0..n-1, highest first."""
    x = operand(x)
    if x.ndim == 0:
        raise ShapeError("vander: x must have at least one dimension. Received: a 0-d tensor")
    n = x.shape[-1] if n is None else as_int(n, "vander: n")
    if surely_less(n, 0):
        raise ArgumentError(f"vander: n must not be negative. Received: {n}")
    powers = F.cast(F.iota(n), x.dtype)
    return column(x) ** (powers if increasing else powers[::-1])


@composite(keywords={"N": "n"}, public={"linalg": ("vander",)})
def powers_matrix(x: Any, n: int | None = None) -> Any:
    """Return the Vandermonde matrices of vectors: columns are the powers 0..n-1, lowest first.

    So PyTorch's linalg.vander; the flat `vander`, as NumPy's, begins with the highest.
    """
    return vander(x, n, increasing=True)
