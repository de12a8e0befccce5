"""Blobs of plain arrays: what Python layers are given."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]


class BlobSizes:
    """The sizes of a blob, by the names that they have in four axes."""

    data: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return tuple(self.data.shape)

    @property
    def count(self) -> int:
        """How many elements there are."""
        return math.prod(self.shape)

    @property
    def num(self) -> int:
        """The first size."""
        return self._size(0)

    @property
    def channels(self) -> int:
        """The second size."""
        return self._size(1)

    @property
    def height(self) -> int:
        """The third size."""
        return self._size(2)

    @property
    def width(self) -> int:
        """The fourth size."""
        return self._size(3)

    def _size(self, axis: int) -> int:
        """Return a size; axes that are not there have size 1, as Caffe's old accessors say."""
        return self.shape[axis] if axis < len(self.shape) else 1


class ArrayBlob(BlobSizes):
    """Values and their gradients.

    >>> blob = ArrayBlob(np.zeros((2, 3), "f"))
    >>> blob.reshape(4, 5)
    >>> blob.data.shape, blob.diff.shape, blob.num
    ((4, 5), (4, 5), 4)
    """

    def __init__(self, data: Array) -> None:
        self.data = data
        self.diff: Array = np.zeros_like(data)

    def reshape(self, *shape: int) -> None:
        """Give it another shape; what it holds stays if there is as much of it."""
        sizes = tuple(int(n) for n in shape)
        if sizes == self.shape:
            return
        if math.prod(sizes) == self.data.size:
            self.data, self.diff = self.data.reshape(sizes), self.diff.reshape(sizes)
        else:
            self.data = np.zeros(sizes, self.data.dtype)
            self.diff = np.zeros(sizes, self.data.dtype)
