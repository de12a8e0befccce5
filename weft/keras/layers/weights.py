"""Weights in Keras's layouts: views of the tensors of Weft's layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.dtype import Array
from ...core.errors import ShapeError
from ...core.modes import no_grad

Rearranged = Callable[[Array], Array]


def same(array: Array) -> Array:
    """Return the array."""
    return array


class Weight:
    """A weight of a layer, as Keras lays it out.

    show, take   from the tensor's layout to Keras's, and back
    """

    def __init__(
        self, name: str, tensor: Any, show: Rearranged = same, take: Rearranged = same
    ) -> None:
        self.name, self.tensor = name, tensor
        self._show, self._take = show, take

    @property
    def trainable(self) -> bool:
        """Tell whether it is trained."""
        return bool(self.tensor.requires_grad)

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the shape in Keras's layout."""
        return tuple(self.numpy().shape)

    @property
    def dtype(self) -> Any:
        """Return the dtype."""
        return self.tensor.dtype

    def numpy(self) -> Array:
        """Return a copy of the values."""
        return np.array(self._show(np.asarray(self.tensor.detach())))

    def assign(self, value: Any) -> None:
        """Take other values."""
        given, wanted = np.asarray(value), self.shape
        if given.shape != wanted:
            raise ShapeError(
                f"the weight {self.name!r} has the shape {wanted}. Received: {given.shape}"
            )
        with no_grad():
            self.tensor.copy_(np.ascontiguousarray(self._take(given)))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __repr__(self) -> str:
        return f"<Weight {self.name}, shape={self.shape}, dtype={self.dtype}>"


def transposed(name: str, tensor: Any) -> Weight:
    """Return the weight of a matrix product: (in, out) here, (out, in) inside."""
    return Weight(name, tensor, np.transpose, np.transpose)


def kernel(name: str, tensor: Any) -> Weight:
    """Return the weight of a convolution: (*window, in, out) here, (out, in, *window) inside."""
    return Weight(name, tensor, _window_first, _window_last)


def _window_first(array: Array) -> Array:
    return np.moveaxis(array, (0, 1), (-1, -2))


def _window_last(array: Array) -> Array:
    return np.moveaxis(array, (-1, -2), (0, 1))
