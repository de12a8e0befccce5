"""Rearrangements between channels and pixels; they only move elements."""

from __future__ import annotations

from typing import Any

from ...core.errors import ArgumentError, ShapeError
from ...core.op import F, composite
from ...core.shape import as_int
from ...core.tensor import Tensor


@composite()
def pixel_shuffle(x: Tensor, upscale_factor: int) -> Tensor:
    """Return (..., C * r * r, H, W) rearranged to (..., C, H * r, W * r) (Shi et al. 2016).

    >>> import weft as wf
    >>> wf.nn.functional.pixel_shuffle(wf.arange(4.0).reshape(1, 4, 1, 1), 2)
    tensor([[[[0., 1.],
              [2., 3.]]]])
    """
    r = _factor("pixel_shuffle", "upscale_factor", upscale_factor)
    *lead, channels, height, width = _image_shape("pixel_shuffle", x)
    if channels % (r * r) != 0:
        raise ShapeError(
            f"pixel_shuffle: upscale_factor {r} needs a multiple of {r * r} channels. "
            f"Received: {channels} channels in shape {tuple(x.shape)}"
        )
    k = len(lead)
    split = F.reshape(x, (*lead, channels // (r * r), r, r, height, width))
    moved = F.permute(split, (*range(k), k, k + 3, k + 1, k + 4, k + 2))
    return F.reshape(moved, (*lead, channels // (r * r), height * r, width * r))


@composite()
def pixel_unshuffle(x: Tensor, downscale_factor: int) -> Tensor:
    """Return (..., C, H * r, W * r) rearranged to (..., C * r * r, H, W): undo `pixel_shuffle`."""
    r = _factor("pixel_unshuffle", "downscale_factor", downscale_factor)
    *lead, channels, height, width = _image_shape("pixel_unshuffle", x)
    if height % r != 0 or width % r != 0:
        raise ShapeError(
            f"pixel_unshuffle: downscale_factor {r} must divide height and width. "
            f"Received: shape {tuple(x.shape)}"
        )
    k = len(lead)
    split = F.reshape(x, (*lead, channels, height // r, r, width // r, r))
    moved = F.permute(split, (*range(k), k, k + 2, k + 4, k + 1, k + 3))
    return F.reshape(moved, (*lead, channels * r * r, height // r, width // r))


@composite()
def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """Return (N, C, *spatial) with the channels of all groups interleaved (Zhang et al. 2018)."""
    count = _factor("channel_shuffle", "groups", groups)
    if x.ndim < 3:
        raise ShapeError(
            f"channel_shuffle: the input must be (batch, channels, *spatial). "
            f"Received: {tuple(x.shape)}"
        )
    batch, channels, *rest = x.shape
    if channels % count != 0:
        raise ShapeError(
            f"channel_shuffle: groups must divide the channels. Received: groups={count}, "
            f"{channels} channels"
        )
    split = F.reshape(x, (batch, count, channels // count, *rest))
    moved = F.permute(split, (0, 2, 1, *range(3, x.ndim + 1)))
    return F.reshape(moved, x.shape)


def _factor(name: str, what: str, value: Any) -> int:
    factor = as_int(value, f"{name}: {what}")
    if factor < 1:
        raise ArgumentError(f"{name}: {what} must be at least 1. Received: {factor}")
    return factor


def _image_shape(name: str, x: Any) -> tuple[int, ...]:
    if x.ndim < 3:
        raise ShapeError(
            f"{name}: the input must be (..., channels, height, width). Received: {tuple(x.shape)}"
        )
    return tuple(x.shape)
