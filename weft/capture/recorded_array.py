"""NumPy arrays as arguments of a function that is recorded.

An array that the function turns into a tensor is fed, as tensors are. What NumPy computes with it
nobody would repeat: that ends the recording.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np

from ..core.dim import is_known
from .recorded import RecordedTensor


class RecordedArray(np.ndarray[Any, Any]):
    """An argument, with the tensor that stands for it."""

    recorded: RecordedTensor

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        recorder = self.recorded.graph.tracer
        recorder.refuse("NumPy computes with an argument; make a tensor of it, or pass one")
        raise AssertionError("a refusal ends the recording")

    def __array_finalize__(self, source: Any) -> None:
        """Refuse parts and copies, which would not be known."""
        if isinstance(source, RecordedArray):
            source._refuse()

    def __iter__(self) -> Iterator[Any]:
        self._refuse()

    __array_ufunc__ = __array_function__ = _refuse
    __getitem__ = __setitem__ = __contains__ = _refuse
    __bool__ = __int__ = __float__ = __index__ = __complex__ = _refuse
    __repr__ = __str__ = __format__ = _refuse
    item = tolist = tobytes = dump = dumps = tofile = fill = sort = partition = put = _refuse
    argsort = argpartition = searchsorted = nonzero = choose = _refuse


class SizedArray(RecordedArray):
    """An argument of a recording that holds for many sizes: its own are not those of all calls."""

    @property  # type: ignore[misc]  # NumPy's can be set, which it advises against
    def shape(self) -> Any:
        """Return the sizes, which know their numbers."""
        return self.recorded.shape

    @property
    def size(self) -> Any:
        """Return the number of elements."""
        return self.recorded.numel()

    @property
    def nbytes(self) -> Any:
        """Return the number of bytes."""
        return self.recorded.nbytes

    def __len__(self) -> int:
        return len(self.recorded)

    def _refused(self) -> Any:
        return self._refuse()

    strides = data = ctypes = flat = base = property(_refused)


def recorded_array(array: np.ndarray[Any, Any], recorded: RecordedTensor) -> RecordedArray:
    """Return an array for the function to work with, known as a recorded tensor."""
    seen = array.view(RecordedArray if is_known(recorded.value.shape) else SizedArray)
    seen.recorded = recorded
    seen.flags.writeable = False
    return seen
