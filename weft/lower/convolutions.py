"""Convolutions as matrix products whose second operand is read out of windows.

For each image, the weights (outputs x elements of a window) are multiplied with the windows
(elements of a window x places of the result). The windows are never stored: the product packs them
out of the image (codegen/gemm_windows.py). For that the image is copied first to memory

    [slack] [image, channel, phase..., place...] [slack]

with its padding, and with a phase for each remainder of places divided by the stride: what a
window's element takes from one place of the result to the next then lies one behind another. Slack
is memory that vectors may reach into, and that rows of padding may be written to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dim import is_known
from ..core.dtype import DType
from ..core.shape import Shape, size_of
from ..graph.node import Node
from .kernels import GemmKernel, Kernel, Operand, Output, RowKernel, Windows
from .loops import collapse
from .parts import copy_kernel
from .products import DTYPES
from .scalar import ScalarBuilder
from .storage import Buffer, View, contiguous_strides

if TYPE_CHECKING:
    from .lowering import Lowered

VECTOR = 16  # elements: no target has longer vectors


def lower_convolution(lowered: Lowered, node: Node) -> bool:
    """Lower a convolution; False if it stays with the reference kernel."""
    if node.op.name != "conv" or node.outputs[0].dtype.name not in DTYPES:
        return False
    x, weight = (lowered.views[v] for v in node.inputs if v is not None)
    shapes = (x.shape, weight.shape, node.outputs[0].shape)
    if not all(map(is_known, shapes)) or not all(map(size_of, shapes)):
        return False
    convolve(lowered, node, x, weight, lowered.new(node.outputs[0]))
    return True


def convolve(lowered: Lowered, node: Node, x: View, weight: View, out: View) -> None:
    """Add the kernels of a convolution to those of a graph."""
    stride, padding, dilation, groups = node.attrs
    befores = tuple(before for before, _ in padding)
    sizes = (x.shape[2:], weight.shape[2:], out.shape[2:], stride, befores, dilation)
    axes = [Axis(*each) for each in zip(*sizes, strict=True)]
    outputs = weight.shape[0] // groups
    batch, places = (x.shape[0], groups), size_of(out.shape[2:])
    depth = size_of(weight.shape[1:])
    filters = _reshaped(lowered, weight, (groups, outputs, depth))
    y, windows = _windows(lowered, x, axes, (*batch, depth, places))
    wanted = (*batch, outputs, places)
    lying = out.reshaped(wanted)
    kernel = GemmKernel(
        node.name,
        batch,
        outputs,
        places,
        depth,
        filters.broadcast((*batch, outputs, depth)),
        y,
        lying or lowered.scratch(wanted, out.dtype, node.name),
        None,
        [node],
        windows=windows,
    )
    lowered.kernels.append(kernel)
    if lying is None:
        lowered.copy(View(kernel.out.buffer, out.shape, contiguous_strides(out.shape)), out)


def _reshaped(lowered: Lowered, view: View, shape: Shape) -> View:
    """Return a view in another shape, or a copy if it lies in no such."""
    made = view.reshaped(shape) or lowered.copied(view).reshaped(shape)
    assert made is not None
    return made


def _windows(
    lowered: Lowered, x: View, axes: Sequence[Axis], shape: Shape
) -> tuple[View, Windows | None]:
    """Return images as an operand of products of a shape (images, groups, depth, places)."""
    groups = shape[1]
    if all(axis.is_point for axis in axes):
        return _reshaped(lowered, x, shape), None
    frame = Frame(x.shape[:2], axes, x.dtype)
    lowered.copies.append(frame.whole)
    lowered.kernels += frame.kernels(x)
    image, channel, *_ = frame.strides
    per_group = x.shape[1] // groups
    y = View(frame.buffer, shape, (image, per_group * channel, 0, 0), frame.slack)
    table = lowered.table(frame.offsets(per_group))
    offsets = View(table.buffer, shape, (0, 0, 1, 0))
    return y, Windows(offsets, frame.places)


@dataclass(frozen=True)
class Axis:
    """A spatial axis: of the image, the kernel and the result; and how windows go along it."""

    image: int
    kernel: int
    count: int
    stride: int
    before: int
    dilation: int

    @property
    def phases(self) -> list[int]:
        """Return the remainders of places that windows use."""
        return sorted({k * self.dilation % self.stride for k in range(self.kernel)})

    @property
    def length(self) -> int:
        """Return how many places of a phase windows reach."""
        return self.count + (self.kernel - 1) * self.dilation // self.stride

    def tap(self, k: int) -> tuple[int, int]:
        """Return the phase, by number, and the first place that an element of the kernel takes."""
        place, phase = divmod(k * self.dilation, self.stride)
        return self.phases.index(phase), place

    def inside(self, phase: int) -> range:
        """Return the places of a phase that lie in the image."""
        first = -((phase - self.before) // self.stride)
        last = (self.image - 1 + self.before - phase) // self.stride
        return range(max(0, first), max(0, min(self.length, last + 1)))

    @property
    def is_point(self) -> bool:
        """Tell whether each window is one element, and each element a window."""
        same = self.image == self.count and self.before == 0
        return self.kernel == 1 and self.stride == 1 and same


class Frame:
    """Memory for images with their padding, in phases."""

    def __init__(self, lead: Shape, axes: Sequence[Axis], dtype: DType) -> None:
        self.lead = lead
        self.axes = axes
        phases = tuple(len(axis.phases) for axis in axes)
        shape = (*lead, *phases, *(axis.length for axis in axes))
        self.shape = shape
        self.strides = contiguous_strides(shape)
        self.slack = max([VECTOR, *(max(gap) for gap in self._gaps())])
        room = size_of(shape) + 2 * self.slack
        self.buffer = Buffer("arena", (room,), dtype, "framed images")
        self.whole = View(self.buffer, (room,), (1,))

    @property
    def places(self) -> tuple[tuple[int, int], ...]:
        """Return sizes and strides of the places of the result, the last axis along memory."""
        counts = [axis.count for axis in self.axes]
        return tuple(zip(counts, self.strides[-len(counts) :], strict=True))

    def offsets(self, channels: int) -> np.ndarray[Any, Any]:
        """Return where each element of a window begins, for so many channels."""
        spatial = len(self.axes)
        found = np.arange(channels, dtype=np.int64) * self.strides[1]
        for i, axis in enumerate(self.axes):
            steps = (self.strides[2 + i], self.strides[2 + spatial + i])
            taps = np.array([axis.tap(k) for k in range(axis.kernel)], np.int64)
            found = found[..., None] + taps @ np.array(steps, np.int64)
        return found.reshape(-1)

    def kernels(self, x: View) -> list[Kernel]:
        """Return kernels that copy images into the frame, and write the padding around them."""
        copies = [self._copy(x, phases) for phases in product(*(a.phases for a in self.axes))]
        return [*self._padding(), *(copy for copy in copies if copy is not None)]

    def _copy(self, x: View, phases: tuple[int, ...]) -> Kernel | None:
        """Return the kernel that copies what belongs to some phase of each axis."""
        inside = [axis.inside(phase) for axis, phase in zip(self.axes, phases, strict=True)]
        if not all(inside):
            return None
        numbers = [a.phases.index(phase) for a, phase in zip(self.axes, phases, strict=True)]
        firsts = [places.start for places in inside]
        shape = (*self.lead, *map(len, inside))
        at = (*numbers, *firsts)
        offset = self.slack + sum(i * s for i, s in zip(at, self.strides[2:], strict=True))
        spatial = len(self.axes)
        strides = (*self.strides[:2], *self.strides[2 + spatial :])
        target = View(self.buffer, shape, strides, offset)
        starts = [
            first * axis.stride + phase - axis.before
            for first, axis, phase in zip(firsts, self.axes, phases, strict=True)
        ]
        steps = [axis.stride for axis in self.axes]
        return copy_kernel("frame", x.sliced((0, 0, *starts), (1, 1, *steps), shape), target)

    def _padding(self) -> list[Kernel]:
        """Return kernels that write zeros between images, channels and rows."""
        if any(len(axis.phases) > 1 or axis.stride > 1 for axis in self.axes):
            return [fill_kernel("padding", self.whole)]
        kernels: list[Kernel] = []
        rows = size_of(self.lead)
        for axis, (before, after) in zip(self.axes, self._gaps(), strict=True):
            step = size_of(self.shape) // rows
            if before + after:
                shape, strides = (rows + 1, before + after), (step, 1)
                gaps = View(self.buffer, shape, strides, self.slack - after)
                kernels.append(fill_kernel("padding", gaps))
            rows *= axis.length
        return kernels

    def _gaps(self) -> list[tuple[int, int]]:
        """Return the elements of padding before and after the rows of each axis, for stride 1."""
        gaps, row = [], 1
        for axis in reversed(self.axes):
            inside = axis.inside(0)
            row_gaps = (inside.start * row, (axis.length - inside.stop) * row)
            gaps.append(row_gaps)
            row *= axis.length
        return gaps[::-1]


def fill_kernel(name: str, target: View) -> RowKernel:
    """Return the kernel that writes zeros."""
    loops, (strides,) = collapse(target.shape, [target.strides], None)
    zero = ScalarBuilder().constant(0, target.dtype)
    return RowKernel(name, loops, [Operand(target, strides)], [Output(0, zero)])
