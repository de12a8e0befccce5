"""`chainer.training.updaters`."""

from __future__ import annotations

from .updater import ParallelUpdater, StandardUpdater

__all__ = [
    "ParallelUpdater",
    "StandardUpdater",
]
