"""NumPy arrays as arguments of a function that is recorded.

The function is given something that calls itself an array and has its shape and dtype, and a tensor
in place of the values. What the function turns into a tensor is fed, as tensors are, and so are
parts by basic indices, and other shapes. What NumPy computes with it nobody would repeat: that ends
the recording. It is none of NumPy's arrays, whose memory any code in C could read unseen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ..core.op import F
from ..core.tensor import Tensor
from .recorded import RecordedTensor
from .recorded_size import is_recorded_size

_REASON = "NumPy computes with an argument; make a tensor of it, or pass one"


class ArgumentArray(np.ndarray[Any, Any]):
    """The class that recorded arrays say they are of."""


class RecordedArray:
    """An argument, or a part of one, known by the tensor that stands for it."""

    __slots__ = ("__weakref__", "recorded")

    recorded: RecordedTensor

    def __init__(self, recorded: Any) -> None:
        self.recorded = recorded

    @property  # type: ignore[misc]  # for whoever asks it is an array
    def __class__(self) -> type:
        return ArgumentArray

    # -- what is known without the values ----------------------------------------------------------

    @property
    def dtype(self) -> np.dtype[Any]:
        """Return the dtype."""
        return self.recorded.dtype

    @property
    def shape(self) -> tuple[Any, ...]:
        """Return the sizes; where a recording holds for many, they know their numbers."""
        return self.recorded.shape

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return self.recorded.ndim

    @property
    def size(self) -> Any:
        """Return the number of elements."""
        return self.recorded.numel()

    @property
    def itemsize(self) -> int:
        """Return the bytes of an element."""
        return self.recorded.dtype.itemsize

    @property
    def nbytes(self) -> Any:
        """Return the number of bytes."""
        return self.recorded.nbytes

    def __len__(self) -> int:
        return len(self.recorded)

    # -- other arrays of the same values -----------------------------------------------------------

    def __getitem__(self, index: Any) -> RecordedArray:
        given = index if isinstance(index, tuple) else (index,)
        if not all(map(_is_basic, given)):
            self._refuse()
        return RecordedArray(self.recorded[index])

    @property
    def T(self) -> RecordedArray:  # noqa: N802  (NumPy's name)
        """Return the array with its axes in reverse order."""
        return self.transpose()

    def transpose(self, *axes: Any) -> RecordedArray:
        """Return the array with its axes in another order, the reverse one by default."""
        given = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        order = given or tuple(reversed(range(self.ndim)))
        return RecordedArray(F.permute(self.recorded, order))

    def reshape(self, *shape: Any, **options: Any) -> RecordedArray:
        """Return the array in another shape; an order of elements that is not C's is refused."""
        if options:
            self._refuse()
        return RecordedArray(self.recorded.reshape(*shape))

    def ravel(self, *options: Any, **others: Any) -> RecordedArray:
        """Return the array with one axis."""
        if options or others:
            self._refuse()
        return self.reshape(-1)

    flatten = ravel

    def copy(self, order: str = "C") -> RecordedArray:
        """Return the array itself: nobody can write into either."""
        return self

    def astype(self, dtype: Any, *options: Any, **others: Any) -> RecordedArray:
        """Return the array in another dtype; floats as integers are left to NumPy."""
        kind = np.dtype(dtype)
        if others.pop("copy", True) not in (True, False) or options or others:
            self._refuse()
        if kind.kind not in "biuf" or (self.dtype.kind == "f" and kind.kind != "f"):
            self._refuse()
        return RecordedArray(F.cast(self.recorded, kind))

    # -- what needs the values ---------------------------------------------------------------------

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        self.recorded.graph.tracer.refuse(_REASON)
        raise AssertionError("a refusal ends the recording")

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        known = _KNOWN.get(function)
        if known is None or kwargs or len(args) != 1:
            self._refuse()
        return known(args[0])

    def __getattr__(self, name: str) -> Any:
        if not hasattr(np.ndarray, name):
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")
        return self._refuse()


_KNOWN: dict[Any, Callable[[Any], Any]] = {
    np.shape: lambda array: array.shape,
    np.ndim: lambda array: array.ndim,
    np.size: lambda array: array.size,
}
_REFLECTED = {  # what a tensor is asked in place of an array on the left
    **{
        f"__{n[3:]}": n
        for n in dir(np.ndarray)
        if n[:3] == "__r" and f"__{n[3:]}" in dir(np.ndarray)
    },
    **{"__lt__": "__gt__", "__gt__": "__lt__"} | {"__le__": "__ge__", "__ge__": "__le__"},
    **{name: name for name in ("__eq__", "__ne__")},
}
_OF_ANY_OBJECT = {
    *("__class__", "__new__", "__init__", "__getattribute__", "__setattr__", "__delattr__"),
    *("__dir__", "__doc__", "__init_subclass__", "__subclasshook__", "__class_getitem__"),
    *("__sizeof__", "__getstate__", "__hash__"),
}


def _beside(self: RecordedArray, other: Any) -> Any:
    """Leave what is computed with a tensor to the tensor."""
    return NotImplemented if isinstance(other, Tensor) else self._refuse()


for _name in {*dir(np.ndarray)} - _OF_ANY_OBJECT - {*vars(RecordedArray)}:
    if _name.startswith("__") and callable(getattr(np.ndarray, _name)):
        beside = hasattr(Tensor, _name) and hasattr(Tensor, _REFLECTED.get(_name, ""))
        setattr(RecordedArray, _name, _beside if beside else RecordedArray._refuse)
RecordedArray.__hash__ = None  # type: ignore[assignment]  # as NumPy's


def _is_basic(index: Any) -> bool:
    """Tell whether an index takes no values to say which part is meant."""
    if isinstance(index, slice):
        return all(map(_is_bound, (index.start, index.stop, index.step)))
    return index is Ellipsis or _is_bound(index)


def _is_bound(number: Any) -> bool:
    if number is None or is_recorded_size(number):
        return True
    return isinstance(number, int | np.integer) and not isinstance(number, bool)
