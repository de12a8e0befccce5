"""Layers that rearrange or resize their input."""

from __future__ import annotations

from typing import Any

from ..core.errors import ArgumentError
from ..core.shape import as_int
from ..core.tensor import Tensor
from .arguments import as_number, as_size
from .calls import F
from .module import Module

Sizes = int | tuple[int, ...]
MODES = ("nearest", "linear", "bilinear", "bicubic", "trilinear", "nearest-exact", "area")


class Flatten(Module):
    """Join the dimensions from start_dim to end_dim into one; by default all but the batch.

    >>> import weft as wf
    >>> wf.nn.Flatten()(wf.zeros(8, 3, 4)).shape
    (8, 12)
    """

    _printed = ("start_dim", "end_dim")

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = as_int(start_dim, "Flatten: start_dim")
        self.end_dim = as_int(end_dim, "Flatten: end_dim")

    def forward(self, x: Tensor) -> Tensor:
        """Return x with dimensions joined."""
        return F.flatten(x, self.start_dim, self.end_dim)


class Unflatten(Module):
    """Split dimension `dim` into the sizes `unflattened_size`, one of which may be -1."""

    _printed = ("dim", "unflattened_size")

    def __init__(self, dim: int, unflattened_size: tuple[int, ...] | list[int]) -> None:
        super().__init__()
        self.dim = as_int(dim, "Unflatten: dim")
        if not isinstance(unflattened_size, (tuple, list)):
            raise ArgumentError(
                "Unflatten: unflattened_size must be a tuple of sizes. "
                f"Received: {unflattened_size!r}"
            )
        self.unflattened_size = tuple(
            as_int(size, "Unflatten: each size") for size in unflattened_size
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return x with the dimension split."""
        return F.unflatten(x, self.dim, self.unflattened_size)


class PixelShuffle(Module):
    """Turn (N, C * r * r, H, W) into (N, C, H * r, W * r) (Shi et al. 2016)."""

    _printed = ("upscale_factor",)

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = as_size(self, "upscale_factor", upscale_factor)

    def forward(self, x: Tensor) -> Tensor:
        """Return the larger image."""
        return F.pixel_shuffle(x, self.upscale_factor)


class PixelUnshuffle(Module):
    """Turn (N, C, H * r, W * r) into (N, C * r * r, H, W)."""

    _printed = ("downscale_factor",)

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = as_size(self, "downscale_factor", downscale_factor)

    def forward(self, x: Tensor) -> Tensor:
        """Return the smaller image with more channels."""
        return F.pixel_unshuffle(x, self.downscale_factor)


class ChannelShuffle(Module):
    """Interleave the channels of `groups` groups (Zhang et al. 2018)."""

    _printed = ("groups",)

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = as_size(self, "groups", groups)

    def forward(self, x: Tensor) -> Tensor:
        """Return x with channels in another order."""
        return F.channel_shuffle(x, self.groups)


class Upsample(Module):
    """Resize (N, C, *spatial) to `size`, or by `scale_factor`.

    mode is "nearest", "linear" (3-d input), "bilinear" or "bicubic" (4-d), "trilinear" (5-d),
    "nearest-exact" or "area"; align_corners maps corners to corners in the (bi-, tri-)linear and
    bicubic modes.

    >>> import weft as wf
    >>> wf.nn.Upsample(scale_factor=2)(wf.zeros(1, 3, 4, 4)).shape
    (1, 3, 8, 8)
    """

    def __init__(
        self,
        size: Sizes | None = None,
        scale_factor: float | tuple[float, ...] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        if (size is None) == (scale_factor is None):
            raise ArgumentError(
                f"{type(self).__name__}: give either size or scale_factor. "
                f"Received: size={size!r}, scale_factor={scale_factor!r}"
            )
        if mode not in MODES:
            raise ArgumentError(f"Upsample: mode must be one of {MODES}. Received: {mode!r}")
        self.size = size
        self.scale_factor = self._factors(scale_factor)
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def _factors(self, given: Any) -> float | tuple[float, ...] | None:
        if isinstance(given, (tuple, list)):
            return tuple(float(as_number(self, "scale_factor", factor)) for factor in given)
        return None if given is None else float(as_number(self, "scale_factor", given))

    def forward(self, x: Tensor) -> Tensor:
        """Return x resized."""
        options = (self.mode, self.align_corners, self.recompute_scale_factor)
        return F.interpolate(x, self.size, self.scale_factor, *options)

    def extra_repr(self) -> str:
        """Return the size or the factor, and the mode."""
        size = f"size={self.size}"
        if self.scale_factor is not None:
            size = f"scale_factor={self.scale_factor}"
        return f"{size}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Resize images (N, C, H, W) by repeating pixels."""

    def __init__(
        self, size: Sizes | None = None, scale_factor: float | tuple[float, ...] | None = None
    ) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Resize images (N, C, H, W) bilinearly, corners mapped to corners."""

    def __init__(
        self, size: Sizes | None = None, scale_factor: float | tuple[float, ...] | None = None
    ) -> None:
        super().__init__(size, scale_factor, "bilinear", align_corners=True)


class Unfold(Module):
    """Cut (N, C, H, W) into windows, as columns: (N, C * kh * kw, number of windows)."""

    _printed = ("kernel_size", "dilation", "padding", "stride")

    def __init__(
        self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
    ) -> None:
        super().__init__()
        self.kernel_size, self.dilation = kernel_size, dilation
        self.padding, self.stride = padding, stride

    def forward(self, x: Tensor) -> Tensor:
        """Return the windows."""
        options = (self.dilation, self.padding, self.stride)
        return F.unfold_patches(x, self.kernel_size, *options)


class Fold(Module):
    """Add windows, as Unfold makes them, at their places in an image of output_size."""

    _printed = ("output_size", "kernel_size", "dilation", "padding", "stride")

    def __init__(
        self,
        output_size: Sizes,
        kernel_size: Sizes,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        stride: Sizes = 1,
    ) -> None:
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, x: Tensor) -> Tensor:
        """Return the sums of the windows."""
        options = (self.dilation, self.padding, self.stride)
        return F.fold(x, self.output_size, self.kernel_size, *options)
