"""Layers that pad: with zeros, a constant, the mirror image, the border or the other end.

Widths are one int for every side, or pairs (before, after) for each axis from the last one
backwards, as in PyTorch: (left, right, top, bottom, front, back). Negative widths crop.
"""

from __future__ import annotations

from typing import Any, ClassVar

from ..core.errors import ArgumentError, ShapeError
from ..core.shape import as_int
from ..core.tensor import Tensor
from .arguments import as_number
from .calls import F
from .module import Module

Widths = int | tuple[int, ...]


class _Pad(Module):
    _printed: ClassVar[tuple[str, ...]] = ("*padding",)
    _spatial: ClassVar[int]
    _mode: ClassVar[str] = "constant"

    def __init__(self, padding: Widths) -> None:
        super().__init__()
        name, count = type(self).__name__, 2 * self._spatial
        given = tuple(padding) if isinstance(padding, (tuple, list)) else (padding,) * count
        if len(given) != count:
            raise ArgumentError(
                f"{name}: padding must be an int or {count} ints. Received: {padding!r}"
            )
        self.padding = tuple(as_int(width, f"{name}: each width") for width in given)

    def forward(self, x: Tensor) -> Tensor:
        """Return x padded."""
        self._check(x)
        return F.pad_torch(x, self.padding, self._mode)

    def _check(self, x: Any) -> None:
        if x.ndim not in (self._spatial + 1, self._spatial + 2):
            raise ShapeError(
                f"{type(self).__name__}: the input must have {self._spatial + 2} dimensions, or "
                f"{self._spatial + 1} without the batch. Received: {tuple(x.shape)}"
            )


class _ConstantPad(_Pad):
    _printed: ClassVar[tuple[str, ...]] = ("padding", "value")

    def __init__(self, padding: Widths, value: float) -> None:
        super().__init__(padding)
        self.value = as_number(self, "value", value)

    def forward(self, x: Tensor) -> Tensor:
        """Return x padded with the value."""
        return F.pad_torch(x, self.padding, "constant", self.value)


class ConstantPad1d(_ConstantPad):
    """Pad the last axis with a value."""

    _spatial = 1


class ConstantPad2d(_ConstantPad):
    """Pad the last two axes with a value.

    >>> import weft as wf
    >>> wf.nn.ConstantPad2d((1, 0, 0, 1), 7.0)(wf.zeros(1, 1, 2))
    tensor([[[7., 0., 0.],
             [7., 7., 7.]]])
    """

    _spatial = 2


class ConstantPad3d(_ConstantPad):
    """Pad the last three axes with a value."""

    _spatial = 3


class _ZeroPad(_ConstantPad):
    _printed = ("*padding",)

    def __init__(self, padding: Widths) -> None:
        super().__init__(padding, 0.0)


class ZeroPad1d(_ZeroPad):
    """Pad the last axis with zeros."""

    _spatial = 1


class ZeroPad2d(_ZeroPad):
    """Pad the last two axes with zeros."""

    _spatial = 2


class ZeroPad3d(_ZeroPad):
    """Pad the last three axes with zeros."""

    _spatial = 3


class ReflectionPad1d(_Pad):
    """Pad (N, C, L) with its mirror image, the border not repeated."""

    _spatial, _mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """Pad (N, C, H, W) with its mirror image, the border not repeated."""

    _spatial, _mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """Pad (N, C, D, H, W) with its mirror image, the border not repeated."""

    _spatial, _mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """Pad (N, C, L) by repeating the border."""

    _spatial, _mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """Pad (N, C, H, W) by repeating the border."""

    _spatial, _mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """Pad (N, C, D, H, W) by repeating the border."""

    _spatial, _mode = 3, "replicate"


class CircularPad1d(_Pad):
    """Pad (N, C, L) with elements from its other end."""

    _spatial, _mode = 1, "circular"


class CircularPad2d(_Pad):
    """Pad (N, C, H, W) with elements from its other ends."""

    _spatial, _mode = 2, "circular"


class CircularPad3d(_Pad):
    """Pad (N, C, D, H, W) with elements from its other ends."""

    _spatial, _mode = 3, "circular"
