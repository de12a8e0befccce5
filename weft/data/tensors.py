"""The dataset of arrays: rows of tensors that lie in memory."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np

from ..core.device_array import host_array
from ..core.dtype import check_dtype
from ..core.errors import ArgumentError, ShapeError
from ..core.masked import plain_array
from ..core.operands import array_from
from ..core.tensor import Tensor, wrap
from .dataset import Dataset, normal_index
from .streams import Array


class TensorDataset(Dataset):
    """Rows of tensors or arrays of equal length: item i is the tuple of their rows i.

    With one tensor an item is its row, not a tuple of one. Data is not copied unless it is a list.

    >>> import numpy as np
    >>> from weft.data import TensorDataset
    >>> dataset = TensorDataset(np.zeros((5, 2)), np.arange(5))
    >>> len(dataset), dataset[3]
    (5, (tensor([0., 0.], dtype=float64), tensor(3)))
    """

    def __init__(self, *tensors: Any) -> None:
        if not tensors:
            raise ArgumentError("TensorDataset needs at least one tensor")
        self._arrays = tuple(_rows(tensor) for tensor in tensors)
        lengths = {array.shape[0] for array in self._arrays}
        if len(lengths) > 1:
            shapes = ", ".join(str(array.shape) for array in self._arrays)
            raise ShapeError(
                f"TensorDataset: tensors must have the same length. Received: {shapes}"
            )

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Return the whole columns."""
        return tuple(wrap(array) for array in self._arrays)

    def __len__(self) -> int:
        return int(self._arrays[0].shape[0])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return self.take_batch(np.arange(len(self))[index])
        i = normal_index(index, len(self), "TensorDataset")
        # `asarray`, because a row of a 1-d array is a scalar
        row = tuple(wrap(np.asarray(array[i])) for array in self._arrays)
        return row if len(row) > 1 else row[0]

    def take_batch(self, indices: Array | range) -> Any:
        """Return the rows at `indices`, all columns at once."""
        if self._follow(indices):  # they are copied in one go
            part = slice(indices.start, indices.stop)
            rows = tuple([wrap(array[part].copy()) for array in self._arrays])
        else:
            rows = tuple([wrap(array.take(indices, axis=0)) for array in self._arrays])
        return rows if len(rows) > 1 else rows[0]

    def _follow(self, indices: Array | range) -> TypeGuard[range]:
        """Tell whether indices are of rows that follow one another."""
        if type(indices) is not range or indices.step != 1:
            return False
        return indices.start >= 0 and indices.stop <= self._arrays[0].shape[0]


def _rows(data: Any) -> Array:
    """Return data as an array with at least one dimension."""
    if isinstance(data, Tensor):
        array: Array = host_array(data.detach()._value, "TensorDataset: data")
    elif isinstance(data, np.ndarray):
        check_dtype(data.dtype)
        array = plain_array(data, "TensorDataset: data")
    else:
        array = array_from(list(data) if isinstance(data, range) else data, "TensorDataset: data")
    if array.ndim == 0:
        raise ShapeError("TensorDataset: tensors need a first dimension. Received: a 0-d tensor")
    return array
