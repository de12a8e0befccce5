"""Layers that rearrange, repeat, pad and crop; axes are Keras's, channels last."""

from __future__ import annotations

from typing import Any, ClassVar

from ... import nn
from ...core.errors import ArgumentError
from ...nn import functional, models
from .base import Layer
from .core import _CoreLayer


class Flatten(Layer):
    """Make each sample a vector.

    >>> import weft as wf
    >>> Flatten()(wf.zeros(2, 3, 4)).shape
    (2, 12)
    """

    def __init__(self, data_format: str | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.core = nn.Flatten()
        self.channels_first = data_format == "channels_first"

    def call(self, inputs: Any) -> Any:
        """Return the vectors, channels last in each, whatever the input's format."""
        if inputs.ndim == 1:
            return inputs.reshape(-1, 1)
        return self.core(inputs.moveaxis(1, -1) if self.channels_first else inputs)

    def get_config(self) -> dict[str, Any]:
        """Return the format beside the name."""
        chosen = "channels_first" if self.channels_first else "channels_last"
        return {**super().get_config(), "data_format": chosen}


class Reshape(_CoreLayer):
    """Give each sample another shape; one size may be -1."""

    _options = ("target_shape",)

    def __init__(self, target_shape: Any, **options: Any) -> None:
        super().__init__(**options)
        self.target_shape = tuple(target_shape)
        self.core = models.Reshape(list(self.target_shape))


class Permute(_CoreLayer):
    """Reorder the axes of each sample, which are counted from 1."""

    _options = ("dims",)

    def __init__(self, dims: Any, **options: Any) -> None:
        super().__init__(**options)
        self.dims = tuple(dims)
        if sorted(self.dims) != list(range(1, len(self.dims) + 1)):
            raise ArgumentError(f"Permute: dims must be 1 .. n in some order. Received: {dims!r}")
        self.core = models.Permute([0, *self.dims])


class RepeatVector(Layer):
    """Repeat (N, C) n times, to (N, n, C)."""

    _options = ("n",)

    def __init__(self, n: int, **options: Any) -> None:
        super().__init__(**options)
        self.n = n

    def call(self, inputs: Any) -> Any:
        """Return the copies."""
        return inputs[:, None, :].repeat_interleave(self.n, 1)


class _PadOrCrop(Layer):
    _spatial: ClassVar[int]

    def _pairs(self, given: Any) -> list[tuple[int, int]]:
        """Return what to do before and after along each axis: of 2, (1, 2) or ((1, 1), (2, 2))."""
        if isinstance(given, int):
            return [(given, given)] * self._spatial
        items = list(given)
        if self._spatial == 1 and all(isinstance(n, int) for n in items) and len(items) == 2:
            return [(items[0], items[1])]
        if len(items) != self._spatial:
            raise ArgumentError(
                f"{type(self).__name__} takes a number or {self._spatial} of them, or pairs. "
                f"Received: {given!r}"
            )
        return [(n, n) if isinstance(n, int) else (n[0], n[1]) for n in items]


class ZeroPadding1D(_PadOrCrop):
    """Put zeros before and after the steps of (N, T, C)."""

    _spatial, _options = 1, ("padding",)

    def __init__(self, padding: Any = 1, **options: Any) -> None:
        super().__init__(**options)
        self.padding = padding
        self._widths = [0, 0, *(n for pair in reversed(self._pairs(padding)) for n in pair)]

    def call(self, inputs: Any) -> Any:
        """Return the padded input."""
        return functional.pad(inputs, self._widths)


class ZeroPadding2D(ZeroPadding1D):
    """Put zeros around the pixels of (N, H, W, C)."""

    _spatial = 2


class Cropping1D(_PadOrCrop):
    """Leave out steps of (N, T, C) at both ends."""

    _spatial, _options = 1, ("cropping",)

    def __init__(self, cropping: Any = 1, **options: Any) -> None:
        super().__init__(**options)
        self.cropping = cropping
        self._ends = self._pairs(cropping)

    def call(self, inputs: Any) -> Any:
        """Return what is left."""
        kept = [slice(first, -last if last else None) for first, last in self._ends]
        return inputs[(slice(None), *kept)]


class Cropping2D(Cropping1D):
    """Leave out pixels of (N, H, W, C) at the edges."""

    _spatial = 2


class UpSampling1D(Layer):
    """Repeat each step of (N, T, C)."""

    _options = ("size",)

    def __init__(self, size: int = 2, **options: Any) -> None:
        super().__init__(**options)
        self.size = size

    def call(self, inputs: Any) -> Any:
        """Return the repeated steps."""
        return inputs.repeat_interleave(self.size, 1)


class UpSampling2D(Layer):
    """Enlarge (N, H, W, C) by whole factors, "nearest" or "bilinear"."""

    _options = ("size", "interpolation")

    def __init__(self, size: Any = 2, interpolation: str = "nearest", **options: Any) -> None:
        super().__init__(**options)
        if interpolation not in ("nearest", "bilinear"):
            raise ArgumentError(
                f"UpSampling2D: 'nearest' or 'bilinear'. Received: {interpolation!r}"
            )
        self.size = (size, size) if isinstance(size, int) else tuple(size)
        self.interpolation = interpolation
        self.core = nn.Upsample(scale_factor=self.size, mode=interpolation)

    def call(self, inputs: Any) -> Any:
        """Return the larger images."""
        return self.core(inputs.moveaxis(-1, 1)).moveaxis(1, -1)
