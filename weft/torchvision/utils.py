"""torchvision.utils: images side by side, and in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..core import tensor as core
from ..torch.tensor import wrap
from ..viz.summary_images import encoded_png


def make_grid(
    tensor: Any,
    nrow: int = 8,
    padding: int = 2,
    normalize: bool = False,
    value_range: Any = None,
    scale_each: bool = False,
    pad_value: float = 0.0,
) -> Any:
    """Return a batch of images as one, in rows."""
    images = _images(tensor)
    if normalize:
        low, high = value_range or (images.min(), images.max())
        images = np.clip((images - low) / max(float(high - low), 1e-5), 0, 1)
    count, channels, height, width = images.shape
    columns = min(nrow, count)
    rows = -(-count // columns)
    tall, wide = height + padding, width + padding
    grid = np.full(
        (channels, rows * tall + padding, columns * wide + padding), pad_value, images.dtype
    )
    for i in range(count):
        top, left = i // columns * tall + padding, i % columns * wide + padding
        grid[:, top : top + height, left : left + width] = images[i]
    return wrap(grid)


def _images(tensor: Any) -> Any:
    """Return images as an array (count, 3, height, width)."""
    if isinstance(tensor, (list, tuple)):
        array = np.stack([np.asarray(t.detach()) for t in tensor])
    else:
        array = np.asarray(tensor.detach() if isinstance(tensor, core.Tensor) else tensor)
    array = array[None] if array.ndim == 2 else array
    array = array[None] if array.ndim == 3 else array
    return np.repeat(array, 3, 1) if array.shape[1] == 1 else array


def save_image(tensor: Any, fp: Any, format: Any = None, **options: Any) -> None:
    """Write a batch of images, side by side, to a file: as PNG, whatever its name."""
    grid = np.asarray(make_grid(tensor, **options))
    pixels = np.clip(grid * 255 + 0.5, 0, 255).transpose(1, 2, 0).astype(np.uint8)
    if hasattr(fp, "write"):
        fp.write(encoded_png(pixels))
    else:
        Path(fp).write_bytes(encoded_png(pixels))
