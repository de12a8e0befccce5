"""Images in memory of their own with padding around them, to be read as windows by products.

    [slack] [image, channel, phase..., place...] [slack]

Where windows are a stride apart, there is a phase for each remainder of places divided by it: what
a window's element takes from one window to the next then lies one behind another. Slack is memory
that vectors may reach into, and that rows of padding may be written to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from ..core.dtype import DType
from ..core.shape import Shape, size_of
from .kernels import Kernel, Operand, Output, RowKernel
from .loops import collapse
from .parts import copy_kernel
from .scalar import ScalarBuilder
from .storage import Buffer, View, contiguous_strides

VECTOR = 16  # elements: no target has longer vectors


@dataclass(frozen=True)
class Axis:
    """A spatial axis.

    size      of the images
    before    places of padding before them; less than none crops
    length    places of a phase that windows reach
    stride    how many places apart those of one phase are
    phases    the remainders that windows use
    """

    size: int
    before: int
    length: int
    stride: int = 1
    phases: tuple[int, ...] = (0,)

    def inside(self, phase: int) -> range:
        """Return the places of a phase that lie in the image."""
        first = -((phase - self.before) // self.stride)
        last = (self.size - 1 + self.before - phase) // self.stride
        return range(max(0, first), max(0, min(self.length, last + 1)))

    def source(self, phase: int) -> int:
        """Return the place in the image of the first place of a phase that lies there."""
        return self.inside(phase).start * self.stride + phase - self.before


class Padded:
    """Memory for images with their padding, in phases.

    start     where the first image begins
    strides   of images and channels
    phases    strides of phases, for each axis
    places    strides of places, for each axis
    """

    def __init__(self, lead: Shape, axes: Sequence[Axis], dtype: DType) -> None:
        self.lead = lead
        self.axes = axes
        self.shape = (*lead, *(len(a.phases) for a in axes), *(a.length for a in axes))
        strides = contiguous_strides(self.shape)
        self.strides = strides[: len(lead)]
        self.phases = strides[len(lead) : len(lead) + len(axes)]
        self.places = strides[len(lead) + len(axes) :]
        self.start = max([VECTOR, *(max(gap) for gap in self._gaps())])
        room = size_of(self.shape) + 2 * self.start
        self.whole = View(Buffer("arena", (room,), dtype, "padded images"), (room,), (1,))

    def kernels(self, x: View) -> list[Kernel]:
        """Return kernels that copy images here, and write the padding around them."""
        copies = [self._copy(x, phases) for phases in product(*(a.phases for a in self.axes))]
        return [*self._padding(), *(copy for copy in copies if copy is not None)]

    def _copy(self, x: View, phases: tuple[int, ...]) -> Kernel | None:
        """Return the kernel that copies what belongs to a phase of each axis."""
        pairs = list(zip(self.axes, phases, strict=True))
        inside = [axis.inside(phase) for axis, phase in pairs]
        if not all(inside):
            return None
        numbers = (axis.phases.index(phase) for axis, phase in pairs)
        offset = self.start
        offset += sum(i * stride for i, stride in zip(numbers, self.phases, strict=True))
        offset += sum(r.start * stride for r, stride in zip(inside, self.places, strict=True))
        shape = (*self.lead, *map(len, inside))
        target = View(self.whole.buffer, shape, (*self.strides, *self.places), offset)
        starts = [axis.source(phase) for axis, phase in pairs]
        steps = [axis.stride for axis in self.axes]
        return copy_kernel("padded", x.sliced((0, 0, *starts), (1, 1, *steps), shape), target)

    def _padding(self) -> list[Kernel]:
        """Return kernels that write zeros between images, channels and rows.

        What follows a row and what comes before the next lies together. With several phases, all is
        filled.
        """
        if any(axis.stride > 1 for axis in self.axes):
            return [fill_kernel("padding", self.whole)]
        kernels: list[Kernel] = []
        rows, total = size_of(self.lead), size_of(self.shape)
        for axis, (before, after) in zip(self.axes, self._gaps(), strict=True):
            if before + after:
                shape, strides = (rows + 1, before + after), (total // rows, 1)
                gaps = View(self.whole.buffer, shape, strides, self.start - after)
                kernels.append(fill_kernel("padding", gaps))
            rows *= axis.length
        return kernels

    def _gaps(self) -> list[tuple[int, int]]:
        """Return the elements of padding before and after what is one row of each axis."""
        gaps = []
        for axis, row in zip(self.axes, self.places, strict=True):
            inside = axis.inside(0) or range(axis.length, axis.length)
            gaps.append((inside.start * row, (axis.length - inside.stop) * row))
        return gaps


def fill_kernel(name: str, target: View) -> RowKernel:
    """Return the kernel that writes zeros."""
    loops, (strides,) = collapse(target.shape, [target.strides], None)
    zero = ScalarBuilder().constant(0, target.dtype)
    return RowKernel(name, loops, [Operand(target, strides)], [Output(0, zero)])
