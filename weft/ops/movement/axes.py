"""Reorder the axes of a tensor."""

from __future__ import annotations

from typing import Any

from ...core.batching import behind
from ...core.division import Division
from ...core.errors import ArgumentTypeError, AxisError, ShapeError
from ...core.op import F, composite, movement, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, normalize_axis
from ...core.tensor import Tensor


@op(movement, linear=("x",), aliases=("permute_dims",), numpy="np.transpose({x}, {axes})")
def permute(x: Tensor, axes: tuple[int, ...]) -> Tensor:
    """Return x with its axes in another order: axis i of the result is axis axes[i] of x.

    >>> import weft as wf
    >>> wf.permute(wf.zeros(2, 3, 4), (2, 0, 1)).shape
    (4, 2, 3)
    """


@permute.canon
def _(x, axes):
    if not isinstance(axes, (tuple, list)):
        raise ArgumentTypeError(f"axes must be a sequence of ints. Received: {axes!r}")
    order = tuple(normalize_axis(axis, x.ndim, "axes: axis") for axis in axes)
    if len(order) != x.ndim or len(set(order)) != x.ndim:
        raise AxisError(
            f"axes must name each of the {x.ndim} dimension(s) of shape {tuple(x.shape)} once. "
            f"Received: {tuple(axes)}"
        )
    return (order,)


@permute.infer
def _(x, axes):
    return TensorType(tuple(x.shape[i] for i in axes), x.dtype)


@permute.eval
def _(x, axes):
    return x.transpose(axes)


@permute.view
def _(x, axes):
    return x.permuted(axes)


@permute.division
def _(x, axes):
    return Division([tuple(range(x.ndim))], axes)


@permute.vjp("x")
def _(g, axes):
    return F.permute(g, inverse_permutation(axes))


@permute.as_method
def _permute_method(x: Tensor, *axes: Any) -> Tensor:
    """Return x with its axes reordered: x.permute(2, 0, 1) or x.permute((2, 0, 1))."""
    one_sequence = len(axes) == 1 and isinstance(axes[0], (tuple, list))
    return permute.function(x, axes[0] if one_sequence else axes)


@permute.batch
def _(x, axes):
    return F.permute(x, (0, *map(behind, axes)))


@permute.samples
def _(s):
    for shape, axes in (((), ()), ((3,), (0,)), ((2, 3), (1, 0)), ((2, 3), (0, 1))):
        yield Sample(s.real(*shape), axes)
    yield Sample(s.real(2, 1, 3), (2, 0, 1))
    yield Sample(s.real(2, 1, 3), [-1, 0, -2], label="negative axes")
    yield Sample(s.real(2, 0, 3), (1, 2, 0), label="empty")
    yield Sample(s.strided(2, 3), (1, 0), label="non-contiguous")
    yield Sample(s.integers(2, 3), (1, 0), label="integers")


@permute.error_samples
def _(s):
    yield ErrorSample(s.real(2, 3), (0, 0), error=ValueError, match=r"once. Received: \(0, 0\)")
    yield ErrorSample(s.real(2, 3), (0,), error=ValueError, match=r"2 dimension.*\(0,\)")
    yield ErrorSample(s.real(2, 3), (0, 2), error=IndexError, match="axis 2 is out of range")
    yield ErrorSample(s.real(2, 3), 1, error=TypeError, match="Received: 1")


def inverse_permutation(axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the order of axes that undoes a permutation."""
    inverse = [0] * len(axes)
    for place, axis in enumerate(axes):
        inverse[axis] = place
    return tuple(inverse)


@composite(method=True, aliases=("swapdims",), keywords={"dim0": "axis0", "dim1": "axis1"})
def swapaxes(x: Any, axis0: int, axis1: int) -> Any:
    """Return x with two axes exchanged."""
    first = normalize_axis(axis0, x.ndim, "swapaxes: axis")
    second = normalize_axis(axis1, x.ndim, "swapaxes: axis")
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    return F.permute(x, tuple(order))


@composite(method=True)
def transpose(x: Any, dim0: Any = None, dim1: Any = None) -> Any:
    """Return x with two axes exchanged, as PyTorch's transpose.

    Without axes all of them are reversed; a sequence of all axes is taken as `permute` takes it.

    >>> import weft as wf
    >>> wf.transpose(wf.zeros(2, 3, 4), 0, 2).shape
    (4, 3, 2)
    """
    if dim0 is None and dim1 is None:
        return F.permute(x, tuple(range(x.ndim))[::-1])
    if isinstance(dim0, (tuple, list)) and dim1 is None:
        return F.permute(x, dim0)
    if dim1 is None or dim0 is None:
        given = dim0 if dim1 is None else dim1
        raise ArgumentTypeError(
            f"transpose: two axes are needed to exchange them. Received: {given!r}"
        )
    return swapaxes(x, dim0, dim1)


@composite(method=True, aliases=("movedim",))
def moveaxis(x: Any, source: Any, destination: Any) -> Any:
    """Return x with the axes `source` moved to the places `destination`; others keep their order.

    >>> import weft as wf
    >>> wf.moveaxis(wf.zeros(2, 3, 4), 0, -1).shape
    (3, 4, 2)
    """
    sources = _each_axis(source, x.ndim, "moveaxis: source axis")
    places = _each_axis(destination, x.ndim, "moveaxis: destination axis")
    if len(sources) != len(places):
        raise AxisError(
            "moveaxis: source and destination must be equally many. "
            f"Received: {source!r} and {destination!r}"
        )
    order = [axis for axis in range(x.ndim) if axis not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        order.insert(place, axis)
    return F.permute(x, tuple(order))


def _each_axis(axes: Any, ndim: int, what: str) -> list[int]:
    given = axes if isinstance(axes, (tuple, list)) else (axes,)
    result = [normalize_axis(axis, ndim, what) for axis in given]
    if len(set(result)) != len(result):
        raise AxisError(f"{what}es name a dimension more than once. Received: {axes!r}")
    return result


def full_transpose(x: Any) -> Any:
    """Return the transposed matrix (x.T); vectors and scalars are returned as they are."""
    if x.ndim > 2:
        raise ShapeError(
            f"x.T is for matrices; this tensor has shape {tuple(x.shape)}: use x.mT to exchange "
            "the last two axes or x.permute(*axes) to reorder all"
        )
    return F.permute(x, (1, 0)) if x.ndim == 2 else x


@composite(public=("wf", "linalg"))
def matrix_transpose(x: Any) -> Any:
    """Return x with its last two axes exchanged (x.mT)."""
    if x.ndim < 2:
        raise ShapeError(
            f"matrix_transpose: x.mT needs two dimensions or more. Received: shape {tuple(x.shape)}"
        )
    return swapaxes(x, -2, -1)


PROPERTIES = {"T": full_transpose, "mT": matrix_transpose}
