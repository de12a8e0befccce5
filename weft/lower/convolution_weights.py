"""The adjoint of a convolution in the weight: y times windows, for all their places.

Its columns are elements of weights. They go through the kernel for each channel; or, where there
are many channels, through these for each element of the kernel, because that is what lies along the
memory of images whose channels come last: a vector is then one piece, and not one for every few
elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.shape import Shape, size_of
from ..graph.node import Node
from .kernels import GemmKernel, Windows
from .padded import VECTOR, Axis, Padded
from .split import split_inner, sum_of_parts
from .storage import View
from .windows import Columns, Places, padded_images, reshaped, steps, sums_of, window_operand

if TYPE_CHECKING:
    from .lowering import Lowering


@dataclass(frozen=True)
class Taken:
    """What y is multiplied with: a row for each of its places, a column for each of a weight's.

    places    that y's take along each axis
    columns   axes of channels and of the kernel, or of the kernel and of channels
    group     elements from one group of channels to the next
    """

    padded: Padded
    places: Places
    columns: Columns
    group: int

    def operand(
        self, lowered: Lowering, batch: Shape, images: np.ndarray[Any, Any]
    ) -> tuple[View, Windows]:
        """Return it as an operand of products, with rows of all images that begin somewhere."""
        offsets = sums_of(images, self.places)
        return window_operand(lowered, self.padded, batch, self.group, offsets, self.columns)


def lower_weight_gradient(lowered: Lowering, node: Node, x: View, y: View, out: View) -> None:
    """Add the kernels of the adjoint in the weight."""
    kernel, stride, padding, dilation, groups = node.attrs
    counts = y.shape[2:]
    x, stride = _seen_alone(x, kernel, stride, padding, counts)
    settings = (x.shape[2:], kernel, counts, stride, padding, dilation)
    axes = [_whole_axis(*each) for each in zip(*settings, strict=True)]
    apart = (y.shape[0], groups, y.shape[1] // groups, size_of(counts))
    rows = reshaped(lowered, y, apart)
    small = x.shape[0] > 1 and size_of(out.shape[1:]) < size_of(counts)
    multiply = _sum_over_images if small else _multiply_all_images
    if not _turns(x, axes, out.shape[1]):
        multiply(lowered, node, rows, _taken(lowered, node, x, axes, counts, stride), out)
        return
    taken = _taken_channels_last(lowered, node, x, axes, counts, stride)
    made = lowered.scratch((out.shape[0], *kernel, out.shape[1]), out.dtype, node.name)
    multiply(lowered, node, rows, taken, made)
    lowered.copy(made.permuted((0, len(out.shape) - 1, *range(1, len(out.shape) - 1))), out)


def _seen_alone(
    x: View, kernel: Shape, stride: Shape, padding: Sequence[tuple[int, int]], counts: Shape
) -> tuple[View, Shape]:
    """Return images of those places alone that windows of one element see, and strides of these."""
    alone = [k == 1 and tuple(p) == (0, 0) for k, p in zip(kernel, padding, strict=True)]
    every = [s if one else 1 for s, one in zip(stride, alone, strict=True)]
    sizes = [c if one else n for c, n, one in zip(counts, x.shape[2:], alone, strict=True)]
    strides = [s * e for s, e in zip(x.strides[2:], every, strict=True)]
    seen = View(x.buffer, (*x.shape[:2], *sizes), (*x.strides[:2], *strides), x.offset)
    return seen, tuple(s // e for s, e in zip(stride, every, strict=True))


def _turns(x: View, axes: Sequence[Axis], channels: int) -> bool:
    """Tell whether channels are so many that windows are best read along them.

    A kernel has a few elements along memory, so a vector would be made of many pieces. The copy
    that pads images turns them, by squares that must be filled.
    """
    whole = all(axis.before == 0 and axis.length == axis.size for axis in axes)
    along = size_of(x.shape[2:]) if whole else x.shape[-1]
    return bool(channels >= VECTOR and along >= VECTOR)


def _taken(
    lowered: Lowering, node: Node, x: View, axes: Sequence[Axis], counts: Shape, stride: Shape
) -> Taken:
    """Return windows whose columns go through the kernel for each channel."""
    kernel, _, _, dilation, groups = node.attrs
    padded = padded_images(lowered, x, axes)
    channels, channel = x.shape[1] // groups, padded.strides[1]
    spread = [steps(*each) for each in zip(counts, _scaled(padded.places, stride), strict=True)]
    taps = zip(kernel, _scaled(padded.places, dilation), strict=True)
    columns = _along_memory(((channels, channel), *taps))
    return Taken(padded, spread, columns, channels * channel)


def _taken_channels_last(
    lowered: Lowering, node: Node, x: View, axes: Sequence[Axis], counts: Shape, stride: Shape
) -> Taken:
    """Return windows whose columns go through the channels for each element of the kernel."""
    kernel, _, _, dilation, groups = node.attrs
    (images, channels, *sizes), (image, channel, *strides) = x.shape, x.strides
    turned = View(x.buffer, (images, 1, *sizes, channels), (image, 0, *strides, channel), x.offset)
    padded = padded_images(lowered, turned, [*axes, Axis(channels, 0, channels)])
    places = padded.places[:-1]
    spread = [steps(*each) for each in zip(counts, _scaled(places, stride), strict=True)]
    taps = zip(kernel, _scaled(places, dilation), strict=True)
    group = channels // groups
    return Taken(padded, spread, _joined((*taps, (group, 1))), group)


def _sum_over_images(lowered: Lowering, node: Node, y: View, taken: Taken, out: View) -> None:
    """Multiply image by image and add up: the products are smaller than y, which need not move."""
    *batch, outputs, depth = y.shape
    seen, windows = taken.operand(lowered, tuple(batch), steps(1, 0))
    width = seen.shape[-1]
    parts = lowered.scratch((*batch, outputs, width), out.dtype, f"{node.name} parts")
    sizes = (outputs, width, depth)
    product = GemmKernel(
        node.name,
        tuple(batch),
        *sizes,
        y,
        seen,
        parts,
        None,
        lowered.origins(node),
        windows=windows,
    )
    lowered.kernels += [product, sum_of_parts(product, parts, out)]


def _multiply_all_images(lowered: Lowering, node: Node, y: View, taken: Taken, out: View) -> None:
    """Multiply once, the places of all images being one inner dimension."""
    images, groups, outputs, count = y.shape
    rows = reshaped(lowered, y.permuted((1, 2, 0, 3)), (groups, outputs, images * count))
    firsts = steps(images, taken.padded.strides[0])
    seen, windows = taken.operand(lowered, (groups,), firsts)
    lying = out.reshaped((groups, outputs, seen.shape[-1]))
    assert lying is not None
    sizes = (outputs, seen.shape[-1], images * count)
    made = split_inner(
        GemmKernel(
            node.name,
            (groups,),
            *sizes,
            rows,
            seen,
            lying,
            None,
            lowered.origins(node),
            windows=windows,
        )
    )
    lowered.kernels += made
    lowered.copies += [kernel.out for kernel in made[:-1] if isinstance(kernel, GemmKernel)]


def _whole_axis(
    size: int, kernel: int, count: int, stride: int, padding: tuple[int, int], dilation: int
) -> Axis:
    """Return an axis of images whose windows are rows of the operand: they need no phases."""
    return Axis(size, padding[0], (count - 1) * stride + (kernel - 1) * dilation + 1)


def _scaled(strides: Shape, factors: Shape) -> Shape:
    return tuple(s * f for s, f in zip(strides, factors, strict=True))


def _along_memory(columns: Columns) -> Columns:
    """Return axes of which the last lies along memory, perhaps one of a single element."""
    size, stride = columns[-1]
    return columns if size == 1 or stride == 1 else (*columns, (1, 1))


def _joined(columns: Columns) -> Columns:
    """Return axes with those made one that lie one behind another."""
    joined = [columns[-1]]
    for size, stride in reversed(columns[:-1]):
        inner, step = joined[0]
        if stride == inner * step:
            joined[0] = (size * inner, step)
        else:
            joined.insert(0, (size, stride))
    return tuple(joined)
