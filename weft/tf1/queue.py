"""`tf.queue`: queues."""

from .queues import (
    FIFOQueue,
    PaddingFIFOQueue,
    QueueBase,
    RandomShuffleQueue,
)

__all__ = [
    "FIFOQueue",
    "PaddingFIFOQueue",
    "QueueBase",
    "RandomShuffleQueue",
]
