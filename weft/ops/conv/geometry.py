"""Arithmetic of sliding windows: sizes, strides, padding and the checks they need.

Tensors here are (batch, channels, *spatial). Attributes become tuples with one entry for each
spatial axis; padding becomes (before, after) pairs, in which a negative number crops.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from ...core.dim import surely_less
from ...core.errors import ArgumentError, ArgumentTypeError, ShapeError, WeftError
from ...core.shape import Shape, as_int

Pairs = tuple[tuple[int, int], ...]


def per_axis(value: Any, ndim: int, what: str, minimum: int = 1) -> Shape:
    """Return an int, or a sequence of one or `ndim` ints, as one int for each spatial axis."""
    given = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    sizes = tuple(as_int(v, f"each entry of {what}" if len(given) > 1 else what) for v in given)
    if len(sizes) not in (1, ndim):
        raise ArgumentError(
            f"{what} must be an int or {ndim} ints, one for each spatial axis. Received: {value!r}"
        )
    if any(surely_less(size, minimum) for size in sizes):
        raise ArgumentError(f"{what} must be at least {minimum}. Received: {value!r}")
    return sizes * ndim if len(sizes) == 1 else sizes


def spans(kernel: Shape, dilation: Shape) -> Shape:
    """Return the extent of a dilated kernel along each axis."""
    return tuple(d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True))


def padding_pairs(padding: Any, kernel: Shape, stride: Shape, dilation: Shape) -> Pairs:
    """Return padding (int, ints, pairs, "same" or "valid") as (before, after) pairs."""
    ndim = len(kernel)
    if isinstance(padding, str):
        return _named_padding(padding, kernel, stride, dilation)
    if is_pairs(padding):
        return _checked_pairs(padding, ndim)
    return tuple((p, p) for p in per_axis(padding, ndim, "padding", minimum=0))


def is_pairs(padding: Any) -> bool:
    """Tell whether padding is given as (before, after) pairs."""
    return (
        isinstance(padding, (tuple, list))
        and len(padding) > 0
        and isinstance(padding[0], (tuple, list))
    )


def _checked_pairs(padding: Any, ndim: int) -> Pairs:
    pairs = tuple(per_axis(pair, 2, "each pair of padding", minimum=-(2**62)) for pair in padding)
    if len(pairs) != ndim:
        raise ArgumentError(
            f"padding must hold {ndim} (before, after) pairs, one for each spatial axis. "
            f"Received: {padding!r}"
        )
    return tuple((before, after) for before, after in pairs)


def _named_padding(name: str, kernel: Shape, stride: Shape, dilation: Shape) -> Pairs:
    if name == "valid":
        return ((0, 0),) * len(kernel)
    if name != "same":
        raise ArgumentError(f'padding must be an int, ints, "same" or "valid". Received: {name!r}')
    if any(s != 1 for s in stride):
        raise ArgumentError(
            f'padding="same" needs stride 1. Received: stride={stride}; pass padding as numbers'
        )
    totals = [span - 1 for span in spans(kernel, dilation)]
    return tuple((total // 2, total - total // 2) for total in totals)


def window_counts(
    size: Shape, kernel: Shape, stride: Shape, pairs: Pairs, dilation: Shape
) -> Shape:
    """Return how many windows fit along each axis; raise if a kernel is larger than its input."""
    padded = tuple(n + before + after for n, (before, after) in zip(size, pairs, strict=True))
    extent = spans(kernel, dilation)
    if any(surely_less(n, e) for e, n in zip(extent, padded, strict=True)):
        dilated = f" (dilated: {extent})" if extent != kernel else ""
        raise ShapeError(
            f"kernel {kernel}{dilated} is larger than the padded input {padded}. "
            f"Received: input size {size}, padding {shown_pairs(pairs)}; use more padding or a "
            "smaller kernel"
        )
    return tuple((n - e) // s + 1 for n, e, s in zip(padded, extent, stride, strict=True))


def shown_pairs(pairs: Pairs) -> str:
    """Return padding as the user is likely to have written it."""
    if all(before == after for before, after in pairs):
        return str(tuple(before for before, _ in pairs))
    return str(pairs)


def require_rank(x: Any, what: str, minimum: int = 3) -> int:
    """Return the number of spatial axes of (batch, channels, *spatial); raise if there are none."""
    if x.ndim < minimum:
        raise ShapeError(
            f"{what} must have the shape (batch, channels, *spatial). Received: {tuple(x.shape)}"
        )
    return int(x.ndim) - 2


def with_batch(x: Any, spatial: int, reshape: Any) -> tuple[Any, bool]:
    """Return x as (batch, channels, *spatial), and whether the batch axis had to be added."""
    if not hasattr(x, "ndim"):
        raise ArgumentTypeError(
            f"the input must be a tensor. Received: {type(x).__name__}; use wf.tensor(data)"
        )
    if x.ndim == spatial + 2:
        return x, False
    if x.ndim == spatial + 1:
        return reshape(x, (1, *x.shape)), True
    axes = ", ".join(("depth", "height", "width")[-spatial:] if spatial > 1 else ("length",))
    raise ShapeError(
        f"the input must have {spatial + 2} dimensions (batch, channels, {axes}), or "
        f"{spatial + 1} without the batch. Received: shape {tuple(x.shape)}"
    )


class named:  # noqa: N801  (used as `with named(...)`, like contextlib's lower-case classes)
    """Let the errors of operators bear the name of the public function that called them."""

    __slots__ = ("inner", "outer")

    def __init__(self, outer: str, *inner: str) -> None:
        self.outer = outer
        self.inner = inner

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, WeftError):
            operator, colon, message = str(error).partition(": ")
            if not colon or operator not in self.inner:
                message = str(error)
            raise type(error)(f"{self.outer}: {message}") from None
