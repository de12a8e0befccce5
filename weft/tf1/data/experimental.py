"""`tf.data.experimental`: stages that are applied, `dataset.apply(map_and_batch(...))`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...faces.absent import absent_names
from .dataset import Dataset

__all__ = ["AUTOTUNE", "map_and_batch", "shuffle_and_repeat"]

AUTOTUNE = -1
Stage = Callable[[Dataset], Dataset]


def map_and_batch(
    map_func: Any,
    batch_size: Any,
    num_parallel_batches: Any = None,
    drop_remainder: Any = False,
    num_parallel_calls: Any = None,
) -> Stage:
    """Return a stage: a function of each element, then batches."""
    return lambda dataset: dataset.map(map_func).batch(batch_size, drop_remainder)


def shuffle_and_repeat(buffer_size: Any, count: Any = None, seed: Any = None) -> Stage:
    """Return a stage: a random order, another one in each repetition."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


_REASONS = {
    "make_csv_dataset": "use tf.data.TextLineDataset and tf.decode_csv",
    "make_batched_features_dataset": "use tf.data.TFRecordDataset and tf.parse_example",
    "prefetch_to_device": "use prefetch: there is one device",
    "parallel_interleave": "use interleave",
    "ignore_errors": "use filter",
}
__getattr__ = absent_names(globals(), _REASONS)
