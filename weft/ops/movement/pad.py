"""Extend a tensor at the ends of its axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.dim import surely_less
from ...core.dtype import is_float
from ...core.errors import ArgumentError, ArgumentTypeError, DTypeError, ShapeError
from ...core.op import F, composite, movement, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import TensorType, as_int
from ...core.tensor import Tensor
from .._halves import through_float32

Widths = tuple[tuple[int, int], ...]

# Our names (and their other names) -> how NumPy calls the mode.
MODES = {
    "constant": "constant",
    "edge": "edge",
    "reflect": "reflect",
    "symmetric": "symmetric",
    "circular": "wrap",
}
OTHER_NAMES = {"replicate": "edge", "wrap": "circular"}


@op(movement)
def pad(x: Tensor, pad_width: Any, mode: str = "constant", value: float = 0) -> Tensor:
    """Return x with elements added before and after it along its axes.

    pad_width is a pair (before, after) for each axis, or one pair or number for all of them. mode:
    "constant" adds `value`; "edge" ("replicate") repeats the outermost element; "reflect" mirrors
    without repeating it, "symmetric" with; "circular" ("wrap") continues from the other end.

    >>> import weft as wf
    >>> wf.pad(wf.tensor([1, 2, 3]), (2, 1), mode="reflect")
    tensor([3, 2, 1, 2, 3, 2])
    """


@pad.canon
def _(x, pad_width, mode, value):
    mode = OTHER_NAMES.get(mode, mode) if isinstance(mode, str) else mode
    if mode not in MODES:
        raise ArgumentError(f"mode must be one of {tuple(MODES)}. Received: {mode!r}")
    widths = _as_widths(pad_width, x)
    if mode != "constant":
        _check_source(x, widths, mode)
    return widths, mode, _as_value(value, x.dtype)


@pad.infer
def _(x, pad_width, mode, value):
    sizes = zip(x.shape, pad_width, strict=True)
    return TensorType(tuple(before + dim + after for dim, (before, after) in sizes), x.dtype)


@pad.eval
def _(x, pad_width, mode, value):
    if mode == "constant":
        return _constant_pad(x, pad_width, value)
    for axis, (before, after) in enumerate(pad_width):
        if before or after:
            x = np.take(x, _sources(x.shape[axis], before, after, mode), axis)
    return x


@pad.vjp("x")
def _(g, x_shape, pad_width, mode):
    if mode == "constant":
        return g[_inner(pad_width, x_shape)]
    return F.pad_adjoint(g, pad_width, mode)


@pad.place
def _(b, x, pad_width, mode, value):
    if mode != "constant":
        pairs = zip(b.coordinates, x.shape, pad_width, strict=True)
        return x.at(*(_source_place(b, i, n, pair, mode) for i, n, pair in pairs))
    places, where = [], None
    for i, n, (before, after) in zip(b.coordinates, x.shape, pad_width, strict=True):
        places.append(i - before)
        if before or after:
            where = b.both(where, b.inside(i - before, n))
    if where is None:
        return x.at(*places)
    if 0 in x.shape:
        return b.constant(value, x.dtype)
    return b.select(where, x.at(*places, where=where), value)


def _source_place(b, place, size, pair, mode):
    before, after = pair
    return b.table(_sources(size, before, after, mode)).at(place) if before or after else place


@pad.batch
def _(x, pad_width, mode, value):
    return F.pad(x, ((0, 0), *pad_width), mode, value)


@pad.samples
def _(s):
    yield Sample(s.real(), ())
    yield Sample(s.real(3), 1)
    yield Sample(s.real(3), (0, 2), value=1.5)
    yield Sample(s.real(0), (1, 2), label="empty")
    yield Sample(s.real(2, 3), [(1, 0), [0, 2]])
    yield Sample(s.real(2, 3), ((1, 2),), label="one pair for all axes")
    yield Sample(s.integers(3), 1, value=7, label="integers")
    for mode in ("edge", "reflect", "symmetric", "circular", "replicate", "wrap"):
        yield Sample(s.real(3), (2, 1), mode=mode)
        yield Sample(s.real(2, 3), ((1, 1), (0, 2)), mode=mode)
        yield Sample(s.real(2), (5, 4), mode=mode, label="wider than the tensor")
        yield Sample(s.strided(2, 3), ((0, 0), (1, 1)), mode=mode, label="non-contiguous")


@pad.error_samples
def _(s):
    yield ErrorSample(s.real(3), -1, error=ValueError, match=r"\(-1, -1\)")
    yield ErrorSample(s.real(2, 3), ((1, 1),) * 3, error=ValueError, match=r"2 dimension.*3 pair")
    yield ErrorSample(s.real(3), 1, mode="mirror", error=ValueError, match="Received: 'mirror'")
    yield ErrorSample(s.real(0), 1, mode="edge", error=ValueError, match=r"axis 0 .*\(0,\)")
    yield ErrorSample(s.real(3), 0.5, error=TypeError, match="Received: 0.5")
    yield ErrorSample(s.real(3), 1, value="a", error=TypeError, match="Received: 'a'")
    yield ErrorSample(s.integers(3), 1, value=0.5, error=TypeError, match="int64.*0.5")


@op(movement, linear=("x",), method=False)
def pad_adjoint(x: Tensor, pad_width: Widths, mode: str) -> Tensor:
    """Return the padded elements added back onto those they were copied from.

    The adjoint of `pad` in the modes that copy elements.
    """


@pad_adjoint.canon
def _(x, pad_width, mode):
    widths = _as_widths(pad_width, x)
    if mode not in MODES or mode == "constant":
        raise ArgumentError(f"mode must be one that copies elements. Received: {mode!r}")
    for axis, (dim, pair) in enumerate(zip(x.shape, widths, strict=True)):
        if surely_less(dim, sum(pair)) or (dim == sum(pair) and dim != 0):
            raise ShapeError(
                f"nothing is left of axis {axis} of shape {tuple(x.shape)}. Received: {pair}"
            )
    return widths, mode


@pad_adjoint.infer
def _(x, pad_width, mode):
    sizes = zip(x.shape, pad_width, strict=True)
    return TensorType(tuple(dim - before - after for dim, (before, after) in sizes), x.dtype)


@pad_adjoint.eval
@through_float32
def _(x, pad_width, mode):
    for axis, (before, after) in enumerate(pad_width):
        if before or after:
            x = _fold_axis(x, axis, before, after, mode)
    return x


@pad_adjoint.vjp("x")
def _(g, pad_width, mode):
    return F.pad(g, pad_width, mode)


@pad_adjoint.expand  # axis by axis
def _(x, pad_width, mode):
    axes = [axis for axis, pair in enumerate(pad_width) if any(pair)]
    if len(axes) < 2:
        return None
    for axis in axes:
        alone = [pair if a == axis else (0, 0) for a, pair in enumerate(pad_width)]
        x = F.pad_adjoint(x, alone, mode)
    return x


@pad_adjoint.place
def _(b, x, pad_width, mode):
    axes = [axis for axis, pair in enumerate(pad_width) if any(pair)]
    if len(axes) != 1:
        return None
    (axis,) = axes
    size = b.shape[axis]
    before, after = pad_width[axis]
    readers = _readers(size, before, after, mode)
    if len(readers) > WIDEST_FOLD:
        return None
    table = b.table(readers)
    places, total = list(b.coordinates), None
    for k in range(len(readers)):  # in the order in which the reference adds them
        reader = table.at(k, b.coordinates[axis])
        places[axis] = b.maximum(reader, 0)
        part = b.select(reader >= 0, x.at(*places), 0)
        total = part if total is None else total + part
    return total


WIDEST_FOLD = 16


def _readers(size: int, before: int, after: int, mode: str) -> Any:
    """Return, for each element, the places of a padded axis that it was copied to; then -1."""
    sources = _sources(size, before, after, mode)
    middle = np.arange(before, before + size)
    copies = np.delete(np.arange(len(sources)), middle)
    columns = [[place, *copies[sources[copies] == i]] for i, place in enumerate(middle)]
    most = max(map(len, columns), default=1)
    table = [column + [-1] * (most - len(column)) for column in columns]
    return np.array(table, np.int64).reshape(size, most).T


@pad_adjoint.batch
def _(x, pad_width, mode):
    return F.pad_adjoint(x, ((0, 0), *pad_width), mode)


@pad_adjoint.samples
def _(s):
    for mode in ("edge", "reflect", "symmetric", "circular"):
        yield Sample(s.real(6), ((2, 1),), mode)
        yield Sample(s.real(4, 5), ((1, 1), (0, 2)), mode)
        yield Sample(s.real(9), ((3, 4),), mode, label="wider than the tensor")


@pad_adjoint.error_samples
def _(s):
    yield ErrorSample(s.real(3), ((1, 0), (2, 0)), "edge", error=ValueError, match="2 pair")
    yield ErrorSample(s.real(3), ((1, 2),), "edge", error=ValueError, match=r"\(3,\).*\(1, 2\)")
    yield ErrorSample(s.real(3), ((1, 0),), "none", error=ValueError, match="Received: 'none'")


def _fold_axis(x: Any, axis: int, before: int, after: int, mode: str) -> Any:
    """Add what padding along one axis had copied back onto its origins."""
    rows = np.moveaxis(x, axis, 0)
    size = rows.shape[0] - before - after
    sources = _sources(size, before, after, mode)
    folded = rows[before : before + size].copy()
    np.add.at(folded, sources[:before], rows[:before])
    np.add.at(folded, sources[before + size :], rows[before + size :])
    return np.moveaxis(folded, 0, axis)


def _sources(size: int, before: int, after: int, mode: str) -> Any:
    """Return for each place along a padded axis the place its element comes from."""
    how: Any = MODES[mode]
    return np.pad(np.arange(size), (before, after), how)


def _constant_pad(x: Any, widths: Widths, value: float) -> Any:
    sizes = zip(x.shape, widths, strict=True)
    shape = tuple(before + dim + after for dim, (before, after) in sizes)
    padded = np.full(shape, value, x.dtype)
    padded[_inner(widths, x.shape)] = x
    return padded


def _inner(widths: Widths, shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Return the index of the original elements in the padded tensor."""
    pairs = zip(shape, widths, strict=True)
    return tuple(slice(before, before + dim) for dim, (before, _) in pairs)


def _as_widths(pad_width: Any, x: Any) -> Widths:
    if not isinstance(pad_width, (tuple, list)):
        pad_width = (pad_width, pad_width)
    if pad_width and not isinstance(pad_width[0], (tuple, list)):
        pad_width = (pad_width,)
    if len(pad_width) == 1:
        pad_width = tuple(pad_width) * x.ndim
    if len(pad_width) != x.ndim:
        raise ShapeError(
            f"pad_width must give one pair for each of the {x.ndim} dimension(s) of shape "
            f"{tuple(x.shape)}. Received: {len(pad_width)} pair(s) {pad_width!r}"
        )
    return tuple(_as_pair(pair) for pair in pad_width)


def _as_pair(pair: Any) -> tuple[int, int]:
    if not isinstance(pair, (tuple, list)) or len(pair) not in (1, 2):
        raise ArgumentTypeError(f"each of pad_width must be (before, after). Received: {pair!r}")
    before, after = (as_int(width, "each width in pad_width") for width in (pair[0], pair[-1]))
    if surely_less(before, 0) or surely_less(after, 0):
        raise ShapeError(f"widths must not be negative. Received: {(before, after)}")
    return before, after


def _check_source(x: Any, widths: Widths, mode: str) -> None:
    for axis, (dim, pair) in enumerate(zip(x.shape, widths, strict=True)):
        if dim == 0 and any(pair):
            raise ShapeError(
                f"mode {mode!r} has nothing to copy from along axis {axis} of shape "
                f"{tuple(x.shape)}"
            )


def _as_value(value: Any, dtype: Any) -> float:
    if not isinstance(value, (bool, int, float, np.number, np.bool_)):
        raise ArgumentTypeError(f"value must be a number. Received: {value!r}")
    if not is_float(dtype) and value != int(value):
        raise DTypeError(f"a tensor of dtype {dtype} cannot hold the value. Received: {value!r}")
    return value if isinstance(value, (bool, int, float)) else value.item()


@composite(public={"nn.functional": ("pad",)})
def pad_torch(x: Any, pad: Any, mode: str = "constant", value: float | None = None) -> Any:
    """Return x padded as by PyTorch's functional pad: pairs from the last axis backwards.

    Negative widths cut elements off.

    >>> import weft as wf
    >>> from weft.core.op import F
    >>> F.pad_torch(wf.zeros(2, 3), (1, 1)).shape
    (2, 5)
    """
    widths = _pairs_from_the_end(pad, x)
    if mode in ("replicate", "edge"):
        widths = [_leaving_one(*pair, n) for pair, n in zip(widths, x.shape, strict=True)]
    cut = tuple(slice(_cut(before), -_cut(after) or None) for before, after in widths)
    if any(before < 0 or after < 0 for before, after in widths):
        x = x[cut]
    kept = tuple((max(before, 0), max(after, 0)) for before, after in widths)
    return F.pad(x, kept, mode, 0 if value is None else value)


def _leaving_one(before: int, after: int, size: Any) -> tuple[int, int]:
    """Return widths that give as many copies of the edge, and do not cut off what is copied."""
    if before < 0 < after and isinstance(size, int) and -before >= size:
        return 1 - size, after + before + size - 1
    if after < 0 < before and isinstance(size, int) and -after >= size:
        return before + after + size - 1, 1 - size
    return before, after


def _pairs_from_the_end(pad: Any, x: Any) -> list[tuple[int, int]]:
    if not isinstance(pad, (tuple, list)) or len(pad) % 2 or len(pad) > 2 * x.ndim:
        raise ArgumentError(
            "pad: widths must be pairs (before, after) for the last axes, at most "
            f"{x.ndim} for shape {tuple(x.shape)}. Received: {pad!r}"
        )
    flat = [as_int(width, "pad: each width") for width in pad]
    pairs = list(zip(flat[::2], flat[1::2], strict=True))
    return [(0, 0)] * (x.ndim - len(pairs)) + pairs[::-1]


def _cut(width: int) -> int:
    return max(-width, 0)
