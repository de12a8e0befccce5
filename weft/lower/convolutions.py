"""Convolutions and their adjoints as matrix products with an operand that is read out of windows.

    conv               weights (outputs x window) times windows (window x places), for each image
    conv_input_grad    the same with y for the images, for each remainder of places divided by the
                       stride; the elements of the kernel that meet it are the window
    conv_weight_grad   y (outputs x places of all images) times windows (places x window)

Windows are never stored: products pack them out of padded images (padded.py, and
backends/cpu/codegen/gemm/windows.py for the code).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dim import is_known
from ..core.errors import UnknownSizeError
from ..core.shape import Shape, size_of
from ..graph.node import Node
from .copies import fill_kernel
from .kernels import GemmKernel, Windows
from .padded import Axis, Padded
from .products import DTYPES
from .split import split_inner, sum_of_parts
from .storage import View

if TYPE_CHECKING:
    from .lowering import Lowering

Places = Sequence[np.ndarray[Any, Any]]  # for each axis, offsets of its places
Columns = tuple[tuple[int, int], ...]  # sizes and strides of axes


def lower_convolution(lowered: Lowering, node: Node) -> bool:
    """Lower a convolution or one of its adjoints; False if it stays with the reference kernel."""
    rule = _RULES.get(node.op.convolution)
    (value,) = node.outputs[:1]
    if rule is None or value.dtype.name not in DTYPES:
        return False
    views = [lowered.views[v] for v in node.inputs if v is not None]
    shapes = [view.shape for view in views] + [value.shape]
    if not all(map(is_known, shapes)):
        raise UnknownSizeError(f"{node.name}: convolutions are written for sizes that are numbers")
    if not all(map(size_of, shapes)):
        return False
    out = lowered.new(value)
    if not out.contiguous:
        target, out = out, lowered.scratch(out.shape, out.dtype, value.name)
        rule(lowered, node, *views, out)
        lowered.copy(out, target)
    else:
        rule(lowered, node, *views, out)
    return True


def _reshaped(lowered: Lowering, view: View, shape: Shape) -> View:
    """Return a view in another shape, or a copy if it has none."""
    made = view.reshaped(shape) or lowered.copied(view).reshaped(shape)
    assert made is not None
    return made


def _padded(lowered: Lowering, images: View, axes: Sequence[Axis]) -> Padded:
    """Return images with padding, copied by kernels that are added."""
    padded = Padded(images.shape[:2], axes, images.dtype)
    lowered.copies.append(padded.whole)
    lowered.kernels += padded.kernels(images)
    return padded


def _sums(first: np.ndarray[Any, Any], places: Places) -> np.ndarray[Any, Any]:
    """Return the sums of all combinations of offsets, as one row."""
    for offsets in places:
        first = np.add.outer(first, offsets)
    return first.reshape(-1)


def _steps(count: int, stride: int) -> np.ndarray[Any, Any]:
    return np.arange(count, dtype=np.int64) * stride


# -- forward ---------------------------------------------------------------------------------------


def _conv(lowered: Lowering, node: Node, x: View, weight: View, out: View) -> None:
    stride, padding, dilation, groups = node.attrs
    kernel, counts = weight.shape[2:], out.shape[2:]
    outputs, depth = weight.shape[0] // groups, size_of(weight.shape[1:])
    filters = _reshaped(lowered, weight, (groups, outputs, depth))
    if _is_pointwise(node, kernel):
        y = _reshaped(lowered, x, (x.shape[0], groups, depth, size_of(counts)))
        _multiply(lowered, node, filters, y, None, out)
        return
    settings = (x.shape[2:], kernel, counts, stride, padding, dilation)
    padded = _padded(lowered, x, [_axis(*each) for each in zip(*settings, strict=True)])
    taps = [
        _taps(axis, size, d, padded.phases[i], padded.places[i])
        for i, (axis, size, d) in enumerate(zip(padded.axes, kernel, dilation, strict=True))
    ]
    _correlate(lowered, node, filters, padded, taps, out)


def _is_pointwise(node: Node, kernel: Shape) -> bool:
    """Tell whether each window is one element, and each element a window."""
    stride, padding = node.attr("stride"), node.attr("padding")
    unpadded = all(pair == (0, 0) for pair in padding)
    return unpadded and all(n == 1 for n in (*kernel, *stride))


def _axis(
    size: int, kernel: int, count: int, stride: int, padding: tuple[int, int], dilation: int
) -> Axis:
    phases = tuple(sorted({k * dilation % stride for k in range(kernel)}))
    length = count + (kernel - 1) * dilation // stride
    return Axis(size, padding[0], length, stride, phases)


def _taps(
    axis: Axis, kernel: int, dilation: int, phase_stride: int, stride: int
) -> np.ndarray[Any, Any]:
    """Return where the elements of a kernel begin along an axis."""
    pairs = (divmod(k * dilation, axis.stride) for k in range(kernel))
    offsets = [place * stride + axis.phases.index(phase) * phase_stride for place, phase in pairs]
    return np.array(offsets, np.int64)


def _correlate(
    lowered: Lowering, node: Node, filters: View, padded: Padded, taps: Places, out: View
) -> None:
    """Multiply filters (groups, outputs, window) with windows of padded images."""
    batch = (padded.lead[0], filters.shape[0])
    channels = padded.lead[1] // batch[1]
    offsets = _sums(_steps(channels, padded.strides[1]), taps)
    columns = tuple(zip(out.shape[2:], padded.places, strict=True))
    y, windows = _operand(lowered, padded, batch, channels, offsets, columns)
    _multiply(lowered, node, filters, y, windows, out)


def _operand(
    lowered: Lowering,
    padded: Padded,
    batch: Shape,
    channels: int,
    offsets: np.ndarray[Any, Any],
    columns: Columns,
) -> tuple[View, Windows]:
    """Return padded images as an operand with a row for each offset, and how it lies.

    The batch is (images, groups), or only groups, of so many channels each.
    """
    image, channel = padded.strides
    lead = (image, channels * channel)[-len(batch) :]
    shape = (*batch, len(offsets), size_of(size for size, _ in columns))
    y = View(padded.whole.buffer, shape, (*lead, 0, 0), padded.start)
    table = lowered.table(offsets)
    rows = View(table.buffer, shape, (*[0] * len(batch), 1, 0))
    return y, Windows(rows, columns)


def _multiply(
    lowered: Lowering, node: Node, filters: View, y: View, windows: Windows | None, out: View
) -> None:
    """Multiply filters with windows, for each image and group."""
    (*batch, depth, places), outputs = y.shape, filters.shape[1]
    shape = (*batch, outputs)
    x, lying = filters.broadcast((*shape, depth)), out.reshaped((*shape, places))
    assert lying is not None
    sizes = (outputs, places, depth)
    kernel = GemmKernel(
        node.name, tuple(batch), *sizes, x, y, lying, None, lowered.origins(node), windows=windows
    )
    lowered.kernels.append(kernel)


# -- the adjoint in the input ----------------------------------------------------------------------


@dataclass(frozen=True)
class Share:
    """The places of an axis with one remainder divided by the stride, and what goes into them.

    first     the first such place of the input
    count     how many there are
    taps      elements of the kernel that meet them
    places    of y that the taps take for the first place
    """

    first: int
    count: int
    taps: range
    places: tuple[int, ...]


def _shares(
    size: int, kernel: int, stride: int, padding: tuple[int, int], dilation: int
) -> list[Share]:
    """Return the shares of an axis of the input: at h, tap k takes y at (h + pad - k d) / s."""
    shares = []
    for first in range(min(size, stride)):
        number, remainder = divmod(first + padding[0], stride)
        taps = [k for k in range(kernel) if k * dilation % stride == remainder]
        places = tuple(number - k * dilation // stride for k in taps)
        step = taps[1] - taps[0] if len(taps) > 1 else 1
        met = range(taps[0], taps[-1] + 1, step) if taps else range(0)
        shares.append(Share(first, len(range(first, size, stride)), met, places))
    return shares


def _reach(size: int, shares: Sequence[Share]) -> Axis:
    """Return the axis of y with as much padding as the shares of the input reach."""
    met = [share for share in shares if share.places]
    low = min((min(share.places) for share in met), default=0)
    high = max((max(share.places) + share.count for share in met), default=1)
    return Axis(size, -low, high - low)


def _conv_input_grad(lowered: Lowering, node: Node, y: View, weight: View, out: View) -> None:
    _, stride, padding, dilation, groups = node.attrs
    outputs, channels, *kernel = weight.shape
    grouped = _reshaped(lowered, weight, (groups, outputs // groups, channels, *kernel))
    transposed = grouped.permuted((0, 2, 1, *range(3, len(grouped.shape))))
    if _is_pointwise(node, tuple(kernel)):
        shape = (y.shape[0], groups, outputs // groups, size_of(y.shape[2:]))
        shown = (transposed.shape[:3], transposed.strides[:3], transposed.offset)
        filters = View(transposed.buffer, *shown)
        _multiply(lowered, node, filters, _reshaped(lowered, y, shape), None, out)
        return
    settings = (out.shape[2:], kernel, stride, padding, dilation)
    shares = [_shares(*each) for each in zip(*settings, strict=True)]
    axes = [_reach(*each) for each in zip(y.shape[2:], shares, strict=True)]
    padded = _padded(lowered, y, axes)
    for combination in product(*shares):
        _add_share(lowered, node, transposed, padded, combination, out)


def _add_share(
    lowered: Lowering,
    node: Node,
    weight: View,
    padded: Padded,
    shares: Sequence[Share],
    out: View,
) -> None:
    """Compute the places of the input with some remainder along each axis."""
    starts = (0, 0, *(share.first for share in shares))
    steps = (1, 1, *node.attr("stride"))
    shape = (*out.shape[:2], *(share.count for share in shares))
    part = out.sliced(starts, steps, shape)
    if not all(share.taps for share in shares):
        lowered.kernels.append(fill_kernel(node.name, part))
        return
    lying = part if part.contiguous else lowered.scratch(shape, out.dtype, node.name)
    taps = [
        (np.array(share.places, np.int64) + axis.before) * stride
        for share, axis, stride in zip(shares, padded.axes, padded.places, strict=True)
    ]
    _correlate(lowered, node, _filters(lowered, weight, shares), padded, taps, lying)
    if lying is not part:
        lowered.copy(lying, part)


def _filters(lowered: Lowering, weight: View, shares: Sequence[Share]) -> View:
    """Return the weights of some taps (groups, channels, outputs, *kernel) as filters."""
    taps = [share.taps for share in shares]
    lead = weight.shape[:3]
    starts, steps = (0, 0, 0, *(t.start for t in taps)), (1, 1, 1, *(t.step for t in taps))
    part = weight.sliced(starts, steps, (*lead, *map(len, taps)))
    groups, channels, outputs = lead
    return _reshaped(lowered, part, (groups, channels, outputs * size_of(map(len, taps))))


# -- the adjoint in the weight ---------------------------------------------------------------------


@dataclass(frozen=True)
class Taken:
    """What y is multiplied with: a row for each of its places, a column for each of a weight's.

    places    that y's take along each axis
    columns   axes of channels and of the kernel
    """

    padded: Padded
    places: Places
    columns: Columns

    def operand(
        self, lowered: Lowering, batch: Shape, images: np.ndarray[Any, Any]
    ) -> tuple[View, Windows]:
        """Return it as an operand of products, with rows of all images that begin somewhere."""
        offsets = _sums(images, self.places)
        channels = self.columns[0][0]
        return _operand(lowered, self.padded, batch, channels, offsets, self.columns)


def _conv_weight_grad(lowered: Lowering, node: Node, x: View, y: View, out: View) -> None:
    kernel, stride, padding, dilation, groups = node.attrs
    counts = y.shape[2:]
    settings = (x.shape[2:], kernel, counts, stride, padding, dilation)
    padded = _padded(lowered, x, [_whole_axis(*each) for each in zip(*settings, strict=True)])
    apart = (y.shape[0], groups, y.shape[1] // groups, size_of(counts))
    rows = _reshaped(lowered, y, apart)
    spread = [_steps(*each) for each in zip(counts, _scaled(padded.places, stride), strict=True)]
    taps = zip(kernel, _scaled(padded.places, dilation), strict=True)
    columns = _along_memory(((x.shape[1] // groups, padded.strides[1]), *taps))
    small = x.shape[0] > 1 and size_of(out.shape[1:]) < size_of(counts)
    multiply = _sum_over_images if small else _multiply_all_images
    multiply(lowered, node, rows, Taken(padded, spread, columns), out)


def _sum_over_images(lowered: Lowering, node: Node, y: View, taken: Taken, out: View) -> None:
    """Multiply image by image and add up: the products are smaller than y, which need not move."""
    *batch, outputs, depth = y.shape
    seen, windows = taken.operand(lowered, tuple(batch), _steps(1, 0))
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
    rows = _reshaped(lowered, y.permuted((1, 2, 0, 3)), (groups, outputs, images * count))
    firsts = _steps(images, taken.padded.strides[0])
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


_RULES: dict[str, Callable[..., None]] = {
    "result": _conv,
    "input": _conv_input_grad,
    "weight": _conv_weight_grad,
}
