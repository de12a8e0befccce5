"""Images as files: grids of samples, and PNG."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.imports import require


def image_grid(images: Any, gap: int = 1) -> Any:
    """Return images (N, C, H, W) or (N, H, W) side by side as bytes (H', W', channels).

    >>> image_grid(np.ones((5, 1, 4, 4))).shape
    (9, 14, 3)
    """
    if images.ndim == 3:
        images = images[:, None]
    n, channels, height, width = images.shape
    columns = math.ceil(math.sqrt(n))
    rows = math.ceil(n / columns)
    grid = np.zeros((3, rows * (height + gap) - gap, columns * (width + gap) - gap))
    colours = np.repeat(images, 3, 1) if channels == 1 else images[:, :3]
    for i, image in enumerate(colours):
        top, left = (i // columns) * (height + gap), (i % columns) * (width + gap)
        grid[: len(image), top : top + height, left : left + width] = image
    return (np.clip(grid, 0.0, 1.0) * 255 + 0.5).astype(np.uint8).transpose(1, 2, 0)


def write_image(path: Any, pixels: Any) -> None:
    """Write bytes (H, W, 3) as a PNG file."""
    image = require("PIL.Image", "image", "writing images")
    image.fromarray(pixels).save(path)
