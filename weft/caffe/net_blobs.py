"""Blobs of pycaffe's Net: values of tensors as arrays that can be written."""

from __future__ import annotations

import math
import weakref
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..core.tensor import Tensor, wrap
from .arrays import BlobSizes

Array: TypeAlias = NDArray[Any]


class Blob(BlobSizes):
    """A blob between layers. Arrays are made when they are asked for, and stand from then on."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._shape = shape
        self._value: Tensor | None = None
        self._gradient: Tensor | None = None
        self._data: Array | None = None
        self._diff: Array | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return self._shape

    @property
    def data(self) -> Array:  # type: ignore[override]  # made when it is read
        """The values; what is written into them, the next layers read."""
        if self._data is None:
            self._data = _array(self._value, self._shape)
        return self._data

    @property
    def diff(self) -> Array:
        """The gradients."""
        if self._diff is None:
            self._diff = _array(self._gradient, self._shape)
        return self._diff

    def tensor(self) -> Tensor:
        """Return the values as a tensor of its own."""
        if self._data is None and self._value is not None:
            return self._value.detach()
        return wrap(np.array(self.data))

    def put(self, value: Tensor) -> None:
        """Take the values of a tensor, and its shape."""
        self._value = value.detach()
        self._data = _kept(self._data, value)
        if tuple(value.shape) != self._shape:
            self._shape, self._diff, self._gradient = tuple(value.shape), None, None

    def put_diff(self, value: Tensor | None) -> None:
        """Take the gradients of a tensor; none are zeros."""
        found = wrap(np.zeros(self._shape, np.float32)) if value is None else value.detach()
        self._gradient = found
        self._diff = _kept(self._diff, found)

    def reshape(self, *shape: int) -> None:
        """Give it another shape; what it holds stays if there is as much of it."""
        sizes = tuple(int(n) for n in shape)
        if sizes == self._shape:
            return
        kept = math.prod(sizes) == math.prod(self._shape)
        self._data = self.data.reshape(sizes) if kept else None
        self._diff = self.diff.reshape(sizes) if kept else None
        self._shape, self._value, self._gradient = sizes, None, None


class ParameterBlob(BlobSizes):
    """A blob of a layer: its data is the memory of a parameter, its diff sums up gradients."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor_ = tensor
        self._handed: weakref.ref[Array] | None = None
        self._diff: Array | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return tuple(self.tensor_.shape)

    @property
    def data(self) -> Array:  # type: ignore[override]  # the parameter's own array
        """The values; what is written into them is written into the net."""
        value = self.tensor_._value
        handed = self._handed() if self._handed is not None else None
        if handed is not None and handed is not value and handed.shape == value.shape:
            handed[...] = value  # a solver has made another array: the program holds this one
            value = self.tensor_._value = handed
        elif not value.flags.writeable:
            value = self.tensor_._value = value.copy()
        self._handed = weakref.ref(value)
        return value

    @property
    def diff(self) -> Array:
        """The gradients since they were cleared."""
        if self._diff is None:
            self._diff = np.zeros(self.shape, np.float32)
        return self._diff


def _array(value: Tensor | None, shape: tuple[int, ...]) -> Array:
    return np.zeros(shape, np.float32) if value is None else np.array(value.detach().numpy())


def _kept(array: Array | None, value: Tensor) -> Array | None:
    """Return an array that is out already with new values in it; None if it does not fit."""
    if array is None or array.shape != tuple(value.shape):
        return None
    array[...] = value.detach().numpy()
    return array
