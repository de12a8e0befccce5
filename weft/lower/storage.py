"""Where values lie: buffers, and views of them by strides.

A movement operation on a stored value is another view of its buffer: no kernel, no copy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ..core.dtype import DType
from ..core.shape import Shape, Size, TensorType, size_of


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Buffer:
    """A piece of memory: of the arena, or an array from outside. Each is itself and no other.

    kind     "arena", or where the array comes from: "feed", "constant", "state"; "window", a part
             of another buffer that moves; "object", an array whose size only a run can tell
    slot     which of the program's feeds, constants or states it is
    number   its place among the buffers of its program
    """

    kind: str
    shape: Shape
    dtype: DType
    name: str
    slot: int = -1
    number: int = -1
    window: Window | None = None

    @property
    def size(self) -> Size:
        """Return the number of its elements."""
        return size_of(self.shape)

    @property
    def type(self) -> TensorType:
        """Return its shape and dtype."""
        return TensorType(self.shape, self.dtype)

    @property
    def nbytes(self) -> Size:
        """Return its bytes."""
        return self.size * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}: {self.dtype}[{self.size}]>"


@dataclass(frozen=True, slots=True)
class Window:
    """A part of a buffer that moves as a loop runs: it starts at offset + word * step.

    word   a buffer of one int64 that holds, say, the number of the row that a step works on
    """

    buffer: Buffer
    offset: Size
    word: Buffer
    step: Size


@dataclass(frozen=True, slots=True)
class View:
    """A tensor in a buffer: the element at index i lies at offset + sum(i * strides)."""

    buffer: Buffer
    shape: Shape
    strides: Shape
    offset: Size = 0

    @property
    def dtype(self) -> DType:
        """Return the element type."""
        return self.buffer.dtype

    @property
    def contiguous(self) -> bool:
        """Tell whether the elements lie one after another in C order."""
        expected = contiguous_strides(self.shape)
        pairs = zip(self.shape, self.strides, expected, strict=True)
        return all(size == 1 or stride == wanted for size, stride, wanted in pairs)

    @property
    def whole(self) -> bool:
        """Tell whether it shows all elements of its buffer, in C order."""
        return self.offset == 0 and size_of(self.shape) == self.buffer.size and self.contiguous

    def within(self, buffers: Mapping[Buffer, Buffer]) -> View:
        """Return the same view of the buffer that takes the place of its own."""
        return View(buffers[self.buffer], self.shape, self.strides, self.offset)

    def permuted(self, axes: tuple[int, ...]) -> View:
        """Return the view with its axes in another order."""
        return View(
            self.buffer,
            tuple(self.shape[a] for a in axes),
            tuple(self.strides[a] for a in axes),
            self.offset,
        )

    def broadcast(self, shape: Shape) -> View:
        """Return the view repeated to a shape: the new axes have stride 0."""
        lead = len(shape) - len(self.shape)
        strides = [0] * lead
        for size, stride, wanted in zip(self.shape, self.strides, shape[lead:], strict=True):
            strides.append(0 if size == 1 and wanted != 1 else stride)
        return View(self.buffer, shape, tuple(strides), self.offset)

    def reshaped(self, shape: Shape) -> View | None:
        """Return the view in another shape, or None if only a copy can have it."""
        strides = reshaped_strides(self.shape, self.strides, shape)
        return None if strides is None else View(self.buffer, shape, strides, self.offset)

    def restrided(self, shape: Shape, strides: tuple[int, ...], start: int = 0) -> View:
        """Return other elements of the same memory, the first of them so many further on."""
        return View(self.buffer, shape, strides, self.offset + start)

    def sliced(self, starts: Any, steps: Any, shape: Shape) -> View:
        """Return every steps-th element from starts on, along each axis."""
        offset = self.offset + sum(s * d for s, d in zip(starts, self.strides, strict=True))
        strides = tuple(d * step for d, step in zip(self.strides, steps, strict=True))
        return View(self.buffer, shape, strides, offset)


def window(view: View, word: Buffer, step: Size) -> View:
    """Return a view that moves by so many elements for each unit of a word in memory."""
    source = Window(view.buffer, view.offset, word, step)
    moving = Buffer("window", view.shape, view.dtype, view.buffer.name, window=source)
    return View(moving, view.shape, view.strides)


def buffers_behind(buffer: Buffer) -> list[Buffer]:
    """Return the buffers that hold a buffer's elements and tell where they are."""
    found = []
    while buffer.window is not None:
        found.append(buffer.window.word)
        buffer = buffer.window.buffer
    return [buffer, *found]


def contiguous_strides(shape: Shape) -> Shape:
    """Return the strides, in elements, of a tensor in C order."""
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def contiguous(buffer: Buffer, shape: Shape) -> View:
    """Return a tensor that fills a buffer in C order."""
    return View(buffer, shape, contiguous_strides(shape))


def reshaped_strides(shape: Shape, strides: Shape, wanted: Shape) -> Shape | None:
    """Return the strides of the same elements in another shape, or None if there are none.

    Axes are taken in groups of equal size from both shapes; within a group the old axes must lie
    one behind another in memory.
    """
    if size_of(shape) == 0:
        return contiguous_strides(wanted)
    old = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size != 1]
    result: list[Size] = [0] * len(wanted)
    axis = 0
    position = 0
    while axis < len(wanted):
        if wanted[axis] == 1:
            axis += 1
            continue
        end, product = axis + 1, wanted[axis]
        stop, total = position + 1, old[position][0]
        while product != total:
            if product < total:
                product *= wanted[end]
                end += 1
            else:
                total *= old[stop][0]
                stop += 1
        if not _consecutive(old[position:stop]):
            return None
        step = old[stop - 1][1]
        for k in range(end - 1, axis - 1, -1):
            result[k] = step
            step *= wanted[k]
        axis, position = end, stop
    return tuple(result)


def _consecutive(axes: list[tuple[Size, Size]]) -> bool:
    return all(a[1] == b[0] * b[1] for a, b in pairwise(axes))
