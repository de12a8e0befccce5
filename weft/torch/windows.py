"""Kinds of views: how the value of one follows from its base, and the base from a new value.

Each is a pair of operators, so gradients pass both ways, and recordings see plain operations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.device_array import DeviceArray
from ..core.modes import interpret_with, no_grad
from ..core.op import F
from ..core.tensor import Tensor, wrap
from ..ops.index import explicit
from .geometry import Geometry

Array = np.ndarray[Any, Any]


class Window(ABC):
    """What a view shows of its base."""

    __slots__ = ()
    several: tuple[int, str] | None = None  # which of the results of a function that has several
    detaches: bool = False  # whether it has no part in the history of its base

    @abstractmethod
    def read(self, base: Tensor) -> Tensor:
        """Return what is seen, by an operation."""

    @abstractmethod
    def put(self, base: Tensor, value: Tensor) -> Tensor:
        """Return the base with another value where this is seen."""

    @abstractmethod
    def array(self, base: Array) -> Array:
        """Return what is seen of an array."""

    def placed(self, base: DeviceArray) -> Any:
        """Return what is seen of a value in the memory of a device, by an operation there."""
        with interpret_with(None), no_grad():
            return self.read(wrap(base))._value  # type: ignore[arg-type]  # as tensors hold it

    @abstractmethod
    def geometry(self, base: Geometry) -> Geometry:
        """Return where its elements lie."""


class IndexWindow(Window):
    """A part that a basic index selects."""

    __slots__ = ("_native", "several", "spec")

    def __init__(self, spec: tuple[Any, ...], several: tuple[int, str] | None = None) -> None:
        self.spec = spec
        self.several = several
        native = [slice(*i) if isinstance(i, tuple) else i for i in spec]
        self._native = tuple(native if ... in spec else [*native, ...])  # an array in any case

    def read(self, base: Tensor) -> Tensor:
        """Return the part."""
        found: Tensor = F.getitem(base, self.spec)
        return found

    def put(self, base: Tensor, value: Tensor) -> Tensor:
        """Return the base with another part."""
        found: Tensor = F.setitem(base, value, self.spec)
        return found

    def array(self, base: Array) -> Array:
        """Return the part of an array."""
        found: Array = base[self._native]
        return found

    def geometry(self, base: Geometry) -> Geometry:
        """Return where the part lies."""
        return base.sliced(_explicit_items(self.spec, base.sizes))


def _explicit_items(spec: tuple[Any, ...], sizes: Sequence[int]) -> list[Any]:
    """Return an index as (start, step, count), numbers from the front, and None."""
    items: list[Any] = []
    axis = 0
    for item in explicit(spec, len(sizes)):
        if item is None:
            items.append(None)
            continue
        size = sizes[axis]
        if isinstance(item, tuple):
            start, stop, step = slice(*item).indices(size)
            items.append((start, step, len(range(start, stop, step))))
        else:
            items.append(item + size if item < 0 else item)
        axis += 1
    return items


class DetachedWindow(Window):
    """The whole of a leaf, without gradients: `w.data`, an entry of a state dictionary."""

    __slots__ = ()
    detaches = True

    def read(self, base: Tensor) -> Tensor:
        """Return the value, cut off from the graph."""
        found: Tensor = F.stop_gradient(base)
        return found

    def put(self, base: Tensor, value: Tensor) -> Tensor:
        """Return the value itself."""
        return value

    def array(self, base: Array) -> Array:
        """Return the array itself."""
        return base

    def geometry(self, base: Geometry) -> Geometry:
        """Return where the elements of the base lie."""
        return base


class ShapeWindow(Window):
    """All elements in their order, in another shape."""

    __slots__ = ("sizes",)

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)

    def read(self, base: Tensor) -> Tensor:
        """Return the base in this shape."""
        found: Tensor = F.reshape(base, self.sizes)
        return found

    def put(self, base: Tensor, value: Tensor) -> Tensor:
        """Return the value in the base's shape."""
        found: Tensor = F.reshape(value, base.shape)
        return found

    def array(self, base: Array) -> Array:
        """Return an array in this shape."""
        return base.reshape(self.sizes)

    def geometry(self, base: Geometry) -> Geometry:
        """Return where the elements lie: the shape was checked when the view was made."""
        found = base.viewed(self.sizes)
        assert found is not None, "a reshape that copies is no view"
        return found


class AxesWindow(Window):
    """All elements with their axes in another order."""

    __slots__ = ("axes", "back")

    def __init__(self, axes: Sequence[int]) -> None:
        self.axes = tuple(axes)
        self.back = tuple(self.axes.index(a) for a in range(len(self.axes)))

    def read(self, base: Tensor) -> Tensor:
        """Return the base with its axes in this order."""
        found: Tensor = F.permute(base, self.axes)
        return found

    def put(self, base: Tensor, value: Tensor) -> Tensor:
        """Return the value with its axes in the base's order."""
        found: Tensor = F.permute(value, self.back)
        return found

    def array(self, base: Array) -> Array:
        """Return an array with its axes in this order."""
        return base.transpose(self.axes)

    def geometry(self, base: Geometry) -> Geometry:
        """Return where the elements lie."""
        return base.permuted(self.axes)


class ExpandedWindow(Window):
    """Elements that are repeated, each at one place: it is never written."""

    __slots__ = ("sizes",)

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)

    def read(self, base: Tensor) -> Tensor:
        """Return the base, repeated."""
        found: Tensor = F.broadcast_to(base, self.sizes)
        return found

    def put(self, base: Tensor, value: Tensor) -> Tensor:
        """Refuse, unless nothing was repeated."""
        if base.numel() != value.numel():
            raise RuntimeError(OVERLAPS)
        found: Tensor = F.reshape(value, base.shape)
        return found

    def array(self, base: Array) -> Array:
        """Return an array, repeated."""
        return np.broadcast_to(base, self.sizes)

    def geometry(self, base: Geometry) -> Geometry:
        """Return where the elements lie."""
        return base.expanded(self.sizes)


class DiagonalWindow(Window):
    """A diagonal of two axes."""

    __slots__ = ("place",)

    def __init__(self, offset: int, dim1: int, dim2: int) -> None:
        self.place = offset, dim1, dim2

    def read(self, base: Tensor) -> Tensor:
        """Return the diagonal."""
        found: Tensor = F.diagonal(base, *self.place)
        return found

    def put(self, base: Tensor, value: Tensor) -> Tensor:
        """Return the base with another diagonal."""
        found: Tensor = F.diagonal_scatter(base, value, *self.place)
        return found

    def array(self, base: Array) -> Array:
        """Return the diagonal of an array."""
        return np.diagonal(base, *self.place)

    def geometry(self, base: Geometry) -> Geometry:
        """Return where the diagonal lies."""
        return base.diagonal(*self.place)


class SlidingWindow(Window):
    """Windows along an axis, which may overlap."""

    __slots__ = ("place",)

    def __init__(self, dim: int, size: int, step: int) -> None:
        self.place = dim, size, step

    def read(self, base: Tensor) -> Tensor:
        """Return the windows."""
        found: Tensor = F.sliding_windows(base, *self.place)
        return found

    def put(self, base: Tensor, value: Tensor) -> Tensor:
        """Refuse: windows share elements, or leave some out."""
        raise RuntimeError(
            "writing into the windows of unfold is not supported; write into the tensor itself"
        )

    def array(self, base: Array) -> Array:
        """Return the windows of an array."""
        dim, size, step = self.place
        found = np.lib.stride_tricks.sliding_window_view(base, size, dim)
        return found[(*(slice(None),) * dim, slice(None, None, step))]

    def geometry(self, base: Geometry) -> Geometry:
        """Return where the windows lie."""
        return base.windows(*self.place)


OVERLAPS = (
    "unsupported operation: more than one element of the written-to tensor refers to a single "
    "memory location. Please clone() the tensor before performing the operation."
)
