"""Pooling layers; channels are last by default."""

from __future__ import annotations

from typing import Any

from ..nn.pooling import pool
from ..recording import Tensor
from .convolutional import _FORMATS, sizes


def _pooling(public: str, kind: str, spatial: int) -> Any:
    def called(
        inputs: Any,
        pool_size: Any,
        strides: Any,
        padding: str = "valid",
        data_format: str = "channels_last",
        name: str | None = None,
    ) -> Tensor:
        window, steps = sizes(pool_size, spatial, "pool_size"), sizes(strides, spatial, "strides")
        layout = _FORMATS[data_format][spatial]
        return pool(
            inputs, window, kind, padding, strides=steps, name=name or public, data_format=layout
        )

    called.__name__ = called.__qualname__ = public
    called.__doc__ = f"Return {public} of inputs."
    return called


max_pooling1d, max_pooling2d, max_pooling3d = (
    _pooling(f"max_pooling{n}d", "MAX", n) for n in (1, 2, 3)
)
average_pooling1d, average_pooling2d, average_pooling3d = (
    _pooling(f"average_pooling{n}d", "AVG", n) for n in (1, 2, 3)
)
