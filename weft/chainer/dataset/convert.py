"""How examples become batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..backends.cuda import check_device


def converter() -> Any:
    """Return a decorator for functions that make batches."""
    return lambda function: function


def to_device(device: Any, x: Any) -> Any:
    """Return an array where it is: on the CPU."""
    check_device(device)
    return x


def concat_examples(batch: Sequence[Any], device: Any = None, padding: Any = None) -> Any:
    """Return examples as arrays: a tuple of them for tuples, a dictionary for dictionaries."""
    if not len(batch):
        raise ValueError("batch is empty")
    to_device(device, None)
    first = batch[0]
    if isinstance(first, tuple):
        pads = padding if isinstance(padding, tuple) else (padding,) * len(first)
        return tuple(_stacked([x[i] for x in batch], pads[i]) for i in range(len(first)))
    if isinstance(first, dict):
        by_key = padding if isinstance(padding, dict) else dict.fromkeys(first, padding)
        return {key: _stacked([x[key] for x in batch], by_key[key]) for key in first}
    return _stacked(batch, padding)


def _stacked(values: Sequence[Any], padding: Any) -> Any:
    if not isinstance(values[0], np.ndarray):
        return np.array(values, *_small_dtype(values[0]))
    if padding is None:
        return np.stack(values)
    shape = np.max([value.shape for value in values], axis=0)
    made = np.full((len(values), *shape), padding, values[0].dtype)
    for row, value in zip(made, values, strict=True):
        row[tuple(slice(n) for n in value.shape)] = value
    return made


def _small_dtype(value: Any) -> tuple[Any, ...]:
    """Return Chainer's dtype of Python's numbers, or nothing for others."""
    if isinstance(value, float):
        return (np.float32,)
    return (np.int32,) if isinstance(value, int) and not isinstance(value, bool) else ()


class ConcatWithAsyncTransfer:
    """Make batches; there is no device to transfer them to."""

    def __call__(self, batch: Sequence[Any], device: Any = None, padding: Any = None) -> Any:
        """Return a batch."""
        return concat_examples(batch, device, padding)
