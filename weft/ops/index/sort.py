"""Sorting: values, the permutation that sorts, and the k largest.

NaN counts as larger than every number. Sorting is stable, also downwards: equal elements keep their
order. The gradient of a sorted value goes to the element it came from.
"""

from __future__ import annotations

import numpy as np

from ...core.batching import shifted
from ...core.dim import surely_less
from ...core.dtype import int64
from ...core.errors import ArgumentError
from ...core.op import F, composite, general, op
from ...core.ordering import Ordering, first_places, sorted_values, sorting_places
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, as_int, normalize_axis, size_of
from ...core.tensor import Tensor
from .._operands import names_errors
from .._pairs import Pair, one_axis, pair_at
from ._checks import flat_axis, operands


@op(general, batch=shifted)
def sort(x: Tensor, axis: int | None = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the elements of x sorted along an axis (None: all of them, as a 1-D tensor).

    Returns values only; `argsort` gives the permutation, and `dim=` both, as PyTorch does. `stable`
    is accepted for its name's sake: every sort is stable.

    >>> import weft as wf
    >>> wf.sort(wf.tensor([3.0, 1.0, 2.0]), descending=True)
    tensor([3., 2., 1.])
    >>> wf.sort(wf.tensor([3.0, 1.0, 2.0]), dim=0)
    Pair(values=tensor([1., 2., 3.]), indices=tensor([1, 2, 0]))
    """


@sort.by_keywords(pairs=True)
def _(x, dim, descending=False, stable=True):
    axis = one_axis("sort", x, dim)
    return pair_at(x, F.argsort(x, axis, descending), axis)


@sort.canon
def _(x, axis, descending, stable):
    return flat_axis(x, axis), bool(descending), True


@sort.eval
def _(x, axis, descending, stable):
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis)
    return sorted_values(x, axis, descending)


@sort.infer
def _(x, axis, descending, stable):
    return TensorType((size_of(x.shape),) if axis is None else x.shape, x.dtype)


@sort.ordering
def _(axis, descending, stable):
    return Ordering(axis, descending, ("values",))


@sort.vjp("x")
def _(g, x, x_shape, axis, descending):
    order = F.argsort(x, axis, descending)
    if axis is None:
        return F.take_adjoint(g, order, x_shape, None)
    return F.gather_adjoint(g, order, x_shape, axis)


@sort.samples
def _(s):
    yield Sample(s.distinct(5))
    yield Sample(s.distinct(2, 3), axis=0, descending=True)
    yield Sample(s.distinct(2, 3), axis=-1)
    yield Sample(s.distinct(2, 3), axis=None, descending=True)
    yield Sample(s.distinct(4, 6)[::2, ::-1].T, axis=0, label="non-contiguous")
    yield Sample(s.real(2, 0), label="empty")
    yield Sample(s.real(), axis=None, label="0-d")
    yield Sample(s.integers(2, 5), descending=True, label="ties")
    yield Sample(s.booleans(4), label="booleans")
    yield Sample(np.array([np.nan, 1.0, np.inf, -np.inf]), grad=0, label="nan")


@sort.error_samples
def _(s):
    yield ErrorSample(s.real(2, 3), axis=2, error=IndexError, match="axis 2 is out of range")
    yield ErrorSample(s.real(), error=IndexError, match="axis -1 .* 0-d")


@op(general, batch=shifted)
def argsort(
    x: Tensor, axis: int | None = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """Return the indices (int64) that sort x along an axis (None: of the flattened x).

    >>> import weft as wf
    >>> wf.argsort(wf.tensor([3.0, 1.0, 2.0]))
    tensor([1, 2, 0])
    """


@argsort.canon
def _(x, axis, descending, stable):
    return flat_axis(x, axis), bool(descending), True


@argsort.eval
def _(x, axis, descending, stable):
    x, axis = (x.reshape(-1), 0) if axis is None else (x, axis)
    return sorting_places(x, axis, descending)


@argsort.infer
def _(x, axis, descending, stable):
    return TensorType((size_of(x.shape),) if axis is None else x.shape, int64)


@argsort.ordering
def _(axis, descending, stable):
    return Ordering(axis, descending, ("places",))


@argsort.samples
def _(s):
    yield Sample(s.real(5), grad=0)
    yield Sample(s.real(2, 3), axis=0, descending=True, grad=0)
    yield Sample(s.integers(3, 4), axis=None, descending=True, label="ties")
    yield Sample(s.integers(2, 6, high=2), label="ties")
    yield Sample(s.strided(3, 2), axis=0, grad=0, label="non-contiguous")
    yield Sample(s.real(0), grad=0, label="empty")
    yield Sample(np.array([np.nan, 1.0, np.nan, -np.inf]), descending=True, grad=0, label="nan")


@argsort.error_samples
def _(s):
    yield ErrorSample(s.real(2, 3), axis=-3, error=IndexError, match="axis -3 is out of range")
    yield ErrorSample(s.real(2, 3), axis=1.0, error=TypeError, match=r"Received: 1\.0")


# -- the k largest ------------------------------------------------------------------------------


@composite(method=True)
@names_errors
def topk(x: Tensor, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> Pair:
    """Return the k largest (or smallest) elements along an axis, and their indices.

    Of equal elements the first ones are taken. The order is from the best on if `sorted`, else not
    specified.

    >>> import weft as wf
    >>> wf.topk(wf.tensor([3.0, 1.0, 4.0, 2.0]), 2)
    Pair(values=tensor([4., 3.]), indices=tensor([2, 0]))
    """
    (x,) = operands(x)
    return Pair(*F.top_k(x, k, axis, largest, sorted))


@op(general, outputs=2, method=False, batch=shifted)
def top_k(
    x: Tensor, k: int, axis: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """Return the k largest (or smallest) elements along an axis, and their indices."""


@top_k.canon
def _(x, k, axis, largest, sorted):
    axis, k = normalize_axis(axis, x.ndim), as_int(k, "k")
    if surely_less(k, 0) or surely_less(x.shape[axis], k):
        raise ArgumentError(
            f"k must lie between 0 and the size {x.shape[axis]} of axis {axis}. Received: {k}"
        )
    return k, axis, bool(largest), bool(sorted)


@top_k.eval
def _(x, k, axis, largest, sorted):
    places = first_places(x.swapaxes(axis, -1), k, largest)
    indices = np.ascontiguousarray(places.swapaxes(axis, -1))
    return np.take_along_axis(x, indices, axis), indices


@top_k.infer
def _(x, k, axis, largest, sorted):
    shape = (*x.shape[:axis], k, *x.shape[axis + 1 :])
    return TensorType(shape, x.dtype), TensorType(shape, int64)


@top_k.ordering
def _(k, axis, largest, sorted):
    return Ordering(axis, largest, ("values", "places"), k)


@top_k.vjp("x")
def _(g, out, x_shape, axis):
    return F.gather_adjoint(g[0], out[1], x_shape, axis)


@top_k.samples
def _(s):
    yield Sample(s.distinct(5), 2)
    yield Sample(s.distinct(2, 4), 3, axis=-1, largest=False)
    yield Sample(s.distinct(4, 2), 2, dim=0, sorted=False)
    yield Sample(s.distinct(2, 4), 4)
    yield Sample(s.distinct(2, 4), 0, label="none")
    yield Sample(s.integers(3, 6, high=3), 4, label="ties")
    yield Sample(s.integers(2, 600, high=40), 50, grad=0, label="long, ties")
    yield Sample(s.real(2, 600), 5, largest=False, grad=0, label="long")
    yield Sample(np.array([np.nan, 1.0, 3.0]), 2, grad=0, label="nan")


@top_k.error_samples
def _(s):
    yield ErrorSample(s.real(3), 4, error=ValueError, match="size 3 of axis 0. Received: 4")
    yield ErrorSample(s.real(3), 1.5, error=TypeError, match=r"Received: 1\.5")
    yield ErrorSample(s.real(3), 1, axis=1, error=IndexError, match="axis 1 is out of range")
