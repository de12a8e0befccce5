"""Arrays as pictures for event files: bytes of a PNG, without another library."""

from __future__ import annotations

import math
import struct
import zlib
from typing import Any

import numpy as np

from ..core.errors import ArgumentError

Array = np.ndarray[Any, Any]

LAYOUTS = ("HW", "HWC", "CHW", "NHWC", "NCHW")
_BY_AXES = {2: "HW", 3: "CHW", 4: "NCHW"}
_COLOR_TYPES = {1: 0, 2: 4, 3: 2, 4: 6}  # of PNG: grey, grey with alpha, RGB, RGB with alpha
MARGIN = 2  # pixels between pictures that are put side by side


def as_image(array: Array, layout: str | None, what: str) -> Array:
    """Return an array as bytes (H, W, channels)."""
    known = _BY_AXES.get(array.ndim) if layout is None else layout
    if known not in LAYOUTS or len(known) != array.ndim:
        raise ArgumentError(
            f"{what}: must be (H, W), (C, H, W) or (N, C, H, W), or have its layout said, one of "
            f"{', '.join(LAYOUTS)}. Received: shape {array.shape}, layout {layout!r}"
        )
    order = [known.index(axis) for axis in "NHWC" if axis in known]
    pixels = _as_bytes(array.transpose(order), what)
    if "C" not in known:
        pixels = pixels[..., None]
    whole = side_by_side(pixels) if "N" in known else pixels
    if whole.shape[-1] not in _COLOR_TYPES or 0 in whole.shape:
        raise ArgumentError(
            f"{what}: a picture has pixels of 1 to 4 channels. Received: shape {array.shape} in "
            f"the layout {known}"
        )
    return whole


def side_by_side(pictures: Array) -> Array:
    """Return pictures (N, H, W, C) as one, in rows about as many as columns."""
    count, height, width, channels = pictures.shape
    columns = max(1, math.ceil(math.sqrt(count)))
    rows = max(1, math.ceil(count / columns))
    step_down, step_right = height + MARGIN, width + MARGIN
    whole = np.zeros((rows * step_down - MARGIN, columns * step_right - MARGIN, channels), np.uint8)
    for i, picture in enumerate(pictures):
        top, left = i // columns * step_down, i % columns * step_right
        whole[top : top + height, left : left + width] = picture
    return whole


def _as_bytes(array: Array, what: str) -> Array:
    if array.dtype == np.uint8:
        return array
    if array.dtype.kind == "b":
        return array.astype(np.uint8) * 255
    if array.dtype.kind in "iu":
        return np.clip(array, 0, 255).astype(np.uint8)
    if array.dtype.kind not in "fV":
        raise ArgumentError(f"{what}: takes floats of 0 to 1, or bytes. Received: {array.dtype}")
    clean = np.nan_to_num(array.astype(np.float64), nan=0.0)
    return (np.clip(clean, 0.0, 1.0) * 255 + 0.5).astype(np.uint8)


def encoded_png(pixels: Array) -> bytes:
    """Return bytes (H, W, channels) as a PNG file (ISO 15948)."""
    height, width, channels = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, _COLOR_TYPES[channels], 0, 0, 0)
    flat = np.ascontiguousarray(pixels).reshape(height, -1)
    lines = np.concatenate([np.zeros((height, 1), np.uint8), flat], axis=1)  # no filter
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)
