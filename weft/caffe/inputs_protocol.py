"""What a layer that brings data gives to a net, and how a net asks for one.

`weft/caffe/inputs` has a function for each type of such layers ("Data", "HDF5Data", "ImageData",
"MemoryData", "WindowData"): it is given the LayerParameter and the phase, and returns an
`InputSource`. A net calls `next()` once for each forward pass, before it runs its layers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from .message import Message

Array: TypeAlias = NDArray[Any]
Shape: TypeAlias = tuple[int, ...]


@runtime_checkable
class InputSource(Protocol):
    """Batches, one after another, as float32 arrays: one array for each top of the layer."""

    def shapes(self) -> tuple[Shape, ...]:
        """Return the shapes of the tops, known before anything is read."""
        ...

    def next(self) -> tuple[Array, ...]:
        """Return the next batch; after the last example comes the first."""
        ...


OpenInput: TypeAlias = Callable[[Message, int], InputSource]  # a layer and its phase (TRAIN, TEST)


class ArraySource:
    """Batches from arrays: the same ones each time, or slices of `batch` examples after another.

    >>> source = ArraySource(np.arange(6.0).reshape(3, 2), batch=2)
    >>> [batch[0].tolist() for batch in (source.next(), source.next())]
    [[[0.0, 1.0], [2.0, 3.0]], [[4.0, 5.0], [0.0, 1.0]]]
    """

    def __init__(self, *arrays: Any, batch: int | None = None) -> None:
        self.arrays = tuple(np.asarray(a, np.float32) for a in arrays)
        self.batch = len(self.arrays[0]) if batch is None else batch
        self._at = 0

    def shapes(self) -> tuple[Shape, ...]:
        """Return the shapes of the batches."""
        return tuple((self.batch, *a.shape[1:]) for a in self.arrays)

    def next(self) -> tuple[Array, ...]:
        """Return the next batch."""
        rows = (np.arange(self.batch) + self._at) % len(self.arrays[0])
        self._at = int(rows[-1]) + 1 if len(rows) else 0
        return tuple(a[rows] for a in self.arrays)
