"""`tf.queue`: queues."""

from .queues import FIFOQueue as FIFOQueue
from .queues import PaddingFIFOQueue as PaddingFIFOQueue
from .queues import QueueBase as QueueBase
from .queues import RandomShuffleQueue as RandomShuffleQueue
