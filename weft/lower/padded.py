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
from ..core.scalar.builder import ScalarBuilder
from ..core.shape import Shape, size_of
from .copies import copy_kernel, fill_kernel
from .kernels import Kernel, Operand, Output, RowKernel
from .loops import collapse
from .storage import Buffer, View, contiguous_strides

VECTOR = 16  # elements: no target has longer vectors
NARROW = 8  # elements that are as well stored one by one


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
        self.start = VECTOR + sum(max(gap) for gap in self._gaps())
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
        source = x.sliced((0, 0, *starts), (1, 1, *steps), shape)
        copy = copy_kernel("padded", source, target)
        return self._with_row_gaps(source, target) if self._gaps_with_rows else copy

    @property
    def _gaps_with_rows(self) -> bool:
        """Tell whether gaps between rows are so narrow that they are filled as rows are copied."""
        single = all(axis.stride == 1 and axis.inside(0) for axis in self.axes)
        return single and 0 < sum(self._gaps()[-1]) <= NARROW

    def _with_row_gaps(self, source: View, target: View) -> RowKernel:
        """Return the kernel that copies rows and writes zeros between each and the next."""
        along = (*target.strides[:-1], 0)
        end = target.offset + target.shape[-1]
        gaps = [
            View(target.buffer, target.shape, along, end + i) for i in range(sum(self._gaps()[-1]))
        ]
        views = [source, target, *gaps]
        domain = target.shape
        loops, strides = collapse(domain, [v.strides for v in views], len(domain) - 1)
        builder = ScalarBuilder()
        zero = builder.constant(0, target.dtype)
        outputs = [Output(1, builder.load(0, source.dtype))]
        outputs += [Output(2 + i, zero) for i in range(len(gaps))]
        operands = [Operand(v, s) for v, s in zip(views, strides, strict=True)]
        return RowKernel("padded", loops, tuple(operands), tuple(outputs))

    def _padding(self) -> list[Kernel]:
        """Return kernels that write zeros between images, channels and rows.

        What follows a row and what comes before the next lies together. With several phases, all is
        filled. Where copies fill the gaps after rows, what comes before a first one is filled here.
        """
        if any(axis.stride > 1 for axis in self.axes):
            return [fill_kernel("padding", self.whole)]
        *gaps, (lead, tail) = self._gaps()
        beyond = lead if self._gaps_with_rows else 0
        kernels: list[Kernel] = []
        rows, total = size_of(self.lead), size_of(self.shape)
        for axis, (before, after) in zip(self.axes, gaps, strict=False):
            if before + after:
                slabs = (rows + 1, before + after + beyond), (total // rows, 1)
                kernels.append(self._filled(*slabs, -after))
            rows *= axis.length
        if not self._gaps_with_rows and lead + tail:
            kernels.append(self._filled((rows + 1, lead + tail), (total // rows, 1), -tail))
        elif beyond and not kernels:
            kernels.append(self._filled((beyond,), (1,), 0))
        return kernels

    def _filled(self, shape: Shape, strides: Shape, offset: int) -> Kernel:
        return fill_kernel("padding", View(self.whole.buffer, shape, strides, self.start + offset))

    def _gaps(self) -> list[tuple[int, int]]:
        """Return the elements of padding before and after what is one row of each axis."""
        gaps = []
        for axis, row in zip(self.axes, self.places, strict=True):
            inside = axis.inside(0) or range(axis.length, axis.length)
            gaps.append((inside.start * row, (axis.length - inside.stop) * row))
        return gaps
