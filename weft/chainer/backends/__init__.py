"""`chainer.backends`."""

from __future__ import annotations

from . import cuda

__all__ = [
    "cuda",
]
