"""Where the elements of a tensor lie in memory, as PyTorch counts: strides and an offset.

Weft's values have no memory of their own that programs could see, so this is arithmetic alone: a
tensor that was made by an operation is contiguous, and a view follows from what it is a view of. It
decides which reshapes are views and which are copies, and which writes would overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple


class Geometry(NamedTuple):
    """Sizes, strides in elements, and where the first element is."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def is_contiguous(self) -> bool:
        """Tell whether the elements lie one after the other, in their order."""
        expected = 1
        for size, stride in zip(reversed(self.sizes), reversed(self.strides), strict=True):
            if size == 0:
                return True
            if size != 1:
                if stride != expected:
                    return False
                expected *= size
        return True

    @property
    def overlaps(self) -> bool:
        """Tell whether two elements may lie at one place, as in what was expanded."""
        pairs = zip(self.sizes, self.strides, strict=True)
        axes = sorted((stride, size) for size, stride in pairs if size > 1)
        reach = 0
        for stride, size in axes:
            if stride <= reach:
                return True
            reach += stride * (size - 1)
        return False

    def permuted(self, axes: Sequence[int]) -> Geometry:
        """Return the geometry with its axes in another order."""
        return Geometry(
            tuple(self.sizes[a] for a in axes), tuple(self.strides[a] for a in axes), self.offset
        )

    def expanded(self, sizes: Sequence[int]) -> Geometry:
        """Return the geometry with axes of size 1 repeated, and new ones in front."""
        added = len(sizes) - len(self.sizes)
        own = zip(self.sizes, self.strides, sizes[added:], strict=True)
        kept = [stride if size == wanted else 0 for size, stride, wanted in own]
        return Geometry(tuple(sizes), (*[0] * added, *kept), self.offset)

    def sliced(self, items: Sequence[int | tuple[int, int, int] | None]) -> Geometry:
        """Return the part that an index of numbers, (start, step, count) and None selects."""
        sizes, strides, offset, axis = [], [], self.offset, 0
        for item in items:
            if item is None:
                sizes.append(1)
                strides.append(self._stride_of_new(axis))
                continue
            start = item if isinstance(item, int) else item[0]
            offset += start * self.strides[axis]
            if not isinstance(item, int):
                sizes.append(item[2])
                strides.append(item[1] * self.strides[axis])
            axis += 1
        return Geometry(tuple(sizes), tuple(strides), offset)

    def _stride_of_new(self, axis: int) -> int:
        """Return the stride that PyTorch gives an axis that `unsqueeze` puts before another."""
        if axis < len(self.sizes):
            return self.sizes[axis] * self.strides[axis]
        return 1

    def diagonal(self, offset: int, dim1: int, dim2: int) -> Geometry:
        """Return the geometry of a diagonal, which becomes the last axis."""
        rows, columns = self.sizes[dim1], self.sizes[dim2]
        count = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
        shift = offset * self.strides[dim2] if offset >= 0 else -offset * self.strides[dim1]
        rest = [a for a in range(len(self.sizes)) if a not in (dim1, dim2)]
        return Geometry(
            (*[self.sizes[a] for a in rest], count),
            (*[self.strides[a] for a in rest], self.strides[dim1] + self.strides[dim2]),
            self.offset + (shift if count else 0),
        )

    def windows(self, dim: int, size: int, step: int) -> Geometry:
        """Return the geometry of windows along an axis; their elements become the last axis."""
        if not self.sizes:
            return Geometry((size,), (1,), self.offset)
        count = (self.sizes[dim] - size) // step + 1
        sizes, strides = list(self.sizes), list(self.strides)
        sizes[dim], strides[dim] = count, step * self.strides[dim]
        return Geometry((*sizes, size), (*strides, self.strides[dim]), self.offset)

    def viewed(self, sizes: Sequence[int]) -> Geometry | None:
        """Return the geometry of another shape over the same memory; None if there is none."""
        if prod(sizes) == 0 or self.is_contiguous:
            return Geometry(tuple(sizes), contiguous_strides(sizes), self.offset)
        strides = self._viewed_strides(list(sizes))
        return None if strides is None else Geometry(tuple(sizes), tuple(strides), self.offset)

    def _viewed_strides(self, sizes: list[int]) -> list[int] | None:
        """Split each run of axes that lie one after the other among those that are wanted."""
        strides, wanted = [0] * len(sizes), len(sizes) - 1
        count, base = 1, self.strides[-1]
        for axis in reversed(range(len(self.sizes))):
            count *= self.sizes[axis]
            joined = axis and (self.sizes[axis - 1] == 1 or self.strides[axis - 1] == count * base)
            if joined:
                continue
            taken = 1
            while wanted >= 0 and (taken < count or sizes[wanted] == 1):
                strides[wanted] = taken * base
                taken *= sizes[wanted]
                wanted -= 1
            if taken != count:
                return None
            if axis:
                count, base = 1, self.strides[axis - 1]
        return strides if wanted == -1 else None


def contiguous_strides(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a tensor whose elements lie in their order."""
    strides, step = [], 1
    for size in reversed(sizes):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def contiguous(sizes: Sequence[int]) -> Geometry:
    """Return the geometry of a tensor that an operation made."""
    return Geometry(tuple(sizes), contiguous_strides(sizes))


def geometry_of(tensor: Any) -> Geometry:
    """Return where the elements of a tensor lie, as PyTorch counts."""
    found: Geometry | None = getattr(tensor, "_geometry", None)
    return contiguous(tensor.shape) if found is None else found
