"""Norms of vectors and matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dtype import as_dtype, is_float
from ...core.errors import ArgumentError, ArgumentTypeError, ShapeError
from ...core.op import F, composite, op, reduction
from ...core.samples import ErrorSample, Sample
from ...core.shape import Axes, normalize_axes, normalize_axis, reduced_shape, type_of
from ...core.sums import sum_array, widened
from ...core.tensor import Tensor
from .._halves import rounded_once
from ._common import (
    canon_reduction,
    check_not_empty,
    count_of,
    reduced_behind,
    reduced_type,
    reduction_samples,
    spread,
    unreduce,
)

INF = float("inf")


@op(reduction, promote="float", public=("linalg",))
def vector_norm(x: Tensor, ord: float = 2.0, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return the norm of the elements over the given axes, taken as one vector.

    ord 2 is the Euclidean norm (free of overflow), 1 the sum of magnitudes, inf and -inf the
    largest and smallest magnitude, 0 the number of elements other than zero, any other p
    sum(abs(x)**p)**(1/p). The gradient is 0 where a norm has none (at the zero vector); equal
    largest or smallest magnitudes share it.

    >>> import weft as wf
    >>> wf.linalg.vector_norm(wf.tensor([3.0, 4.0]))
    tensor(5.)
    """


@vector_norm.by_keywords()
def _(x, ord=2.0, axis=None, keepdims=False, dtype=None):
    return F.vector_norm(_as_floats(x, dtype), ord, axis, keepdims)


@vector_norm.canon
def _(x, ord, axis, keepdims):
    if isinstance(ord, bool) or not isinstance(ord, (int, float, np.number)):
        raise ArgumentTypeError(f"ord must be a number, inf or -inf. Received: {ord!r}")
    if np.isnan(ord):
        raise ArgumentError(f"ord must not be nan. Received: {ord!r}")
    return float(ord), *canon_reduction(x, axis, keepdims)


@vector_norm.infer
def _(x, ord, axis, keepdims):
    if ord < 0:
        check_not_empty(x, axis, f"the norm of order {ord}")
    return reduced_type(x, axis, keepdims)


@vector_norm.eval
def _(x, ord, axis, keepdims):
    if not x.size:
        kind = vector_norm.type_rule((type_of(x),), (ord, axis, keepdims))
        return np.zeros(kind.shape, kind.dtype)
    if ord == 2:  # half the time that scaling takes, which is needed where squares leave the range
        wide = widened(x)
        norm = np.sqrt(sum_array(np.square(wide), axis, keepdims))
        safe = np.sqrt(np.finfo(wide.dtype).tiny) / np.finfo(wide.dtype).eps
        if ((norm > safe) & (norm < np.inf)).all():
            return norm.astype(x.dtype, copy=False)
    return vector_norm.derived(x, ord, axis, keepdims)


@vector_norm.expand
def _(x, ord, axis, keepdims):
    behind = reduced_behind(x, axis)
    if behind is None:
        return None
    norm = F.vector_norm(behind[0], ord, behind[1])
    return F.reshape(norm, reduced_shape(x.shape, axis, keepdims))


@vector_norm.lower
def _(b, x, ord, axis, keepdims):
    size = b.abs(x)
    if ord == 1:
        return b.reduce("sum", size)
    if abs(ord) == INF:
        return b.reduce("max" if ord > 0 else "min", size)
    if ord == 0:
        return b.reduce("sum", b.cast(b.ne(x, 0.0), x.dtype))
    extreme = b.reduce("max" if ord > 0 else "min", size)
    scale = b.select((extreme > 0.0) & (extreme < INF), extreme, 1.0)  # powers of 1 are in range
    if ord == 2:
        return b.sqrt(b.reduce("sum", b.square(x / scale))) * scale
    power = b.constant(ord, x.dtype)
    root = b.constant(1.0 / ord, x.dtype)
    return b.pow(b.reduce("sum", b.pow(size / scale, power)), root) * scale


@vector_norm.vjp("x")
def _(g, out, x, ord, axis, keepdims):
    if ord == 0 or count_of(x.shape, axis) == 0:
        return F.zeros_like(x)
    if abs(ord) == INF:
        return _gradient_of_extreme(g, out, x, axis, keepdims)
    # A norm is homogeneous, so its gradient depends on x / norm only, which cannot overflow.
    norm = unreduce(out, x.shape, axis, keepdims)
    zero = norm == 0
    unit = x / F.where(zero, F.ones_like(norm), norm)
    wanted = F.where(out == 0, F.zeros_like(g), g)
    return spread(wanted, x.shape, axis, keepdims) * _power_slope(unit, ord)


@vector_norm.samples
def _(s):
    yield from reduction_samples(s, s.away)
    for order in (1, 0, INF, 3, 1.5, 4):
        yield Sample(s.distinct(3), order, grad=0 if order == 0 else 2)
        yield Sample(s.distinct(2, 3), order, 1, True, grad=0 if order == 0 else 2)
        yield Sample(s.distinct(2, 3), order, (0, 1), grad=0)
        yield Sample(s.real(2, 0), order, 1, label="empty")
    for order in (-INF, -1, 0.5, -2.5):
        yield Sample(s.distinct(2, 3), order, 1)
    yield Sample(np.zeros(3), grad=0, label="zero vector")
    yield Sample(np.array([3e25, 4e25], np.float32), grad=0, label="squares overflow")
    yield Sample(np.array([3e-25, 4e-25], np.float32), grad=0, label="squares underflow")
    yield Sample(np.array([3.0, np.inf, 4.0]), grad=0, label="inf")
    yield Sample(np.array([3.0, np.nan, 4.0]), 3, grad=0, label="nan")
    yield Sample(s.integers(2, 3), axis=0, label="integers")


@vector_norm.error_samples
def _(s):
    yield ErrorSample(s.real(3), "fro", error=TypeError, match="Received: 'fro'")
    yield ErrorSample(s.real(3), float("nan"), error=ValueError, match="nan")
    yield ErrorSample(s.real(2, 3), axis=2, error=IndexError, match="axis 2 is out of range")
    yield ErrorSample(s.real(0), -INF, error=ValueError, match=r"no identity.*\(0,\)")


def _power_slope(unit: Any, p: float) -> Any:
    """Return the derivative of the p-norm at a vector of norm 1: sign(x) * abs(x)**(p - 1)."""
    if p == 2.0:
        return unit
    if p == 1.0:
        return F.sign(unit)
    zero = unit == 0
    size = F.where(zero, F.ones_like(unit), F.abs(unit))  # 0 ** (p - 1) may be infinite
    return F.sign(unit) * F.pow(size, np.array(p - 1, unit.dtype))


def _gradient_of_extreme(g: Any, out: Any, x: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    chosen = (F.abs(x) == unreduce(out, x.shape, axis, keepdims)) | F.isnan(x)
    chosen = F.cast(chosen, g.dtype)
    share = g / F.sum(chosen, axis, keepdims)
    return spread(share, x.shape, axis, keepdims) * chosen * F.sign(x)


@composite(public=("linalg",))
@rounded_once
def matrix_norm(
    x: Any,
    ord: Any = "fro",
    axis: tuple[int, int] = (-2, -1),
    keepdims: bool = False,
    *,
    dtype: Any = None,
) -> Any:
    """Return the norm of the matrices in two axes of x.

    ord "fro" is the root of the sum of squares, "nuc" the sum of the singular values, 2 and -2 the
    largest and smallest of these, 1 and -1 the largest and smallest column sum of magnitudes, inf
    and -inf the same of rows.
    """
    rows, columns = _matrix_axes(x, axis)
    is_kind = isinstance(ord, (str, int, float, np.number))  # not a tensor: it equals many things
    if not is_kind or ord not in ("fro", "nuc", 1, -1, 2, -2, INF, -INF):
        raise ArgumentError(
            f"matrix_norm: ord must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf. Received: {ord!r}"
        )
    x = x if dtype is None else F.cast(x, as_dtype(dtype))
    if ord == "fro":
        return F.vector_norm(x, 2.0, (rows, columns), keepdims)
    if ord in ("nuc", 2, -2):
        return _singular_norm(x, ord, rows, columns, keepdims)
    summed, compared = (rows, columns) if abs(ord) == 1 else (columns, rows)
    totals = F.vector_norm(x, 1.0, summed, True)
    extreme = F.max if ord > 0 else F.min
    result = extreme(totals, compared, True)
    return result if keepdims else F.squeeze(result, (rows, columns))


def _matrix_axes(x: Any, axis: Any) -> tuple[int, int]:
    if not isinstance(axis, (tuple, list)) or len(axis) != 2:
        raise ArgumentError(f"matrix_norm: axis must be two axes. Received: {axis!r}")
    if x.ndim < 2:
        raise ShapeError(f"matrix_norm: a matrix is needed. Received: shape {tuple(x.shape)}")
    rows, columns = (normalize_axis(a, x.ndim, "matrix_norm: axis") for a in axis)
    normalize_axes(axis, x.ndim, "matrix_norm: axis")  # raises on repeats
    return rows, columns


def _singular_norm(x: Any, ord: Any, rows: int, columns: int, keepdims: bool) -> Any:
    values = F.svdvals(F.moveaxis(x, (rows, columns), (-2, -1)))
    result = {"nuc": F.sum, 2: F.max, -2: F.min}[ord](values, -1)
    return F.unsqueeze(result, (rows, columns)) if keepdims else result


@composite(method=True)
def norm(
    x: Any,
    *order: Any,
    ord: Any = None,
    p: Any = None,
    axis: Axes = None,
    keepdims: bool = False,
    dtype: Any = None,
) -> Any:
    """Return a norm: `ord=` as in `linalg.norm`, `p=` as PyTorch's norm of the elements.

    Without either it is the root of the sum of squares. What stands behind x by place is the order,
    the axes and keepdims. An order by place is refused where the two differ: over two axes `ord`
    gives norms of matrices, `p` that of all their elements taken as one vector.

    >>> import weft as wf
    >>> x = wf.tensor([[3.0, 0.0], [0.0, 4.0]])
    >>> wf.norm(x), wf.norm(x, ord=1), wf.norm(x, p=1)
    (tensor(5.), tensor(4.), tensor(7.))
    """
    by_place, axis, keepdims = _norm_arguments(order, axis, keepdims)
    given = [o for o in (by_place, ord, p) if o is not None]
    if len(given) > 1:
        raise ArgumentError(f"norm: give one order: ord or p. Received: {given}")
    if p is None and ord is None and by_place is not None:
        return _unambiguous_norm(x, by_place, axis, keepdims, dtype)
    if p is None:
        return linalg_norm(x, ord, axis, keepdims, dtype=dtype)
    return _element_norm(x, p, axis, keepdims, dtype)


def _norm_arguments(order: tuple[Any, ...], axis: Axes, keepdims: Any) -> tuple[Any, Any, Any]:
    """Return the order, the axes and keepdims, which may follow x by place."""
    if len(order) > 3 or (len(order) > 1 and axis is not None):
        raise ArgumentTypeError(f"norm: an order, axes and keepdims, each once. Received: {order}")
    by_place, *rest = order or (None,)
    return by_place, rest[0] if rest else axis, rest[1] if len(rest) > 1 else keepdims


def _unambiguous_norm(x: Any, order: Any, axis: Axes, keepdims: bool, dtype: Any) -> Any:
    if order not in ("fro", "nuc") and len(normalize_axes(axis, x.ndim, "norm: axis")) == 2:
        raise ArgumentError(
            f"norm: the order {order!r} over two axes is that of matrices in NumPy, and of all "
            "their elements in PyTorch: say ord= for the first, p= for the second, or call "
            f"wf.linalg.norm. Received: shape {tuple(x.shape)}"
        )
    return _element_norm(x, order, axis, keepdims, dtype)


def _element_norm(x: Any, p: Any, axis: Axes, keepdims: bool, dtype: Any) -> Any:
    """Return PyTorch's norm: of all elements as one vector, whatever the axes."""
    if p == "nuc":
        return linalg_norm(x, "nuc", axis, keepdims, dtype=dtype)
    return F.vector_norm(_as_floats(x, dtype), 2.0 if p == "fro" else p, axis, keepdims)


def _as_floats(x: Any, dtype: Any) -> Any:
    if dtype is not None:
        return F.cast(x, as_dtype(dtype))
    return x if is_float(x.dtype) else F.mean(x, ())  # over no axes: the same values as floats


@composite(public={"linalg": ("norm",)})
def linalg_norm(
    x: Any, ord: Any = None, axis: Axes = None, keepdims: bool = False, *, dtype: Any = None
) -> Any:
    """Return a vector or matrix norm, as NumPy's and PyTorch's linalg.norm.

    One axis gives vector norms, two give matrix norms. Without an axis and with ord=None all
    elements count as one vector; with an ord, a vector or a matrix is needed. dtype= casts the
    elements first.

    >>> import weft as wf
    >>> wf.linalg.norm(wf.tensor([[3.0, 0.0], [0.0, 4.0]]), 1)
    tensor(4.)
    """
    x = _as_floats(x, dtype)
    if ord is None:
        return F.vector_norm(x, 2.0, axis, keepdims)
    count = len(_norm_axes(x, ord, axis))
    if count == 2:
        both: Any = (0, 1) if axis is None else axis
        return matrix_norm(x, ord, both, keepdims)
    return F.vector_norm(x, ord, axis, keepdims)


def _norm_axes(x: Any, ord: Any, axis: Axes) -> tuple[int, ...]:
    """Return the axes of a norm of given order: one for a vector norm, two for a matrix norm."""
    axes = normalize_axes(axis, x.ndim, "norm: axis")
    if len(axes) not in (1, 2):
        raise ShapeError(
            f"norm: ord={ord!r} is defined for vectors and matrices; name one or two axes. "
            f"Received: shape {tuple(x.shape)} with axis={axis!r}"
        )
    return axes
