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
from .convolution_weights import lower_weight_gradient
from .copies import fill_kernel
from .kernels import GemmKernel, Windows
from .padded import Axis, Padded
from .products import DTYPES
from .storage import View
from .windows import Places, padded_images, reshaped, steps, sums_of, window_operand

if TYPE_CHECKING:
    from .lowering import Lowering


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


# -- forward ---------------------------------------------------------------------------------------


def _conv(lowered: Lowering, node: Node, x: View, weight: View, out: View) -> None:
    stride, padding, dilation, groups = node.attrs
    kernel, counts = weight.shape[2:], out.shape[2:]
    outputs, depth = weight.shape[0] // groups, size_of(weight.shape[1:])
    filters = reshaped(lowered, weight, (groups, outputs, depth))
    if _is_pointwise(node, kernel) or _is_one_window(node, x.shape[2:], kernel):
        y = reshaped(lowered, x, (x.shape[0], groups, depth, size_of(counts)))
        _multiply(lowered, node, filters, y, None, out)
        return
    settings = (x.shape[2:], kernel, counts, stride, padding, dilation)
    padded = padded_images(lowered, x, [_axis(*each) for each in zip(*settings, strict=True)])
    taps = [
        _taps(axis, size, d, padded.phases[i], padded.places[i])
        for i, (axis, size, d) in enumerate(zip(padded.axes, kernel, dilation, strict=True))
    ]
    _correlate(lowered, node, filters, padded, taps, out)


def _is_pointwise(node: Node, kernel: Shape) -> bool:
    """Tell whether each window is one element, and each element a window."""
    return _is_unpadded(node) and all(n == 1 for n in (*kernel, *node.attr("stride")))


def _is_one_window(node: Node, image: Shape, kernel: Shape) -> bool:
    """Tell whether an image is one window, all of it: then it is a row of a matrix."""
    return _is_unpadded(node) and image == kernel


def _is_unpadded(node: Node) -> bool:
    return all(pair == (0, 0) for pair in node.attr("padding"))


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
    offsets = sums_of(steps(channels, padded.strides[1]), taps)
    columns = tuple(zip(out.shape[2:], padded.places, strict=True))
    group = channels * padded.strides[1]
    y, windows = window_operand(lowered, padded, batch, group, offsets, columns)
    _multiply(lowered, node, filters, y, windows, out)


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
    (outputs, channels), kernel = weight.shape[:2], weight.shape[2:]
    if _is_one_window(node, out.shape[2:], kernel):
        _spread(lowered, node, y, weight, out)
        return
    grouped = reshaped(lowered, weight, (groups, outputs // groups, channels, *kernel))
    transposed = grouped.permuted((0, 2, 1, *range(3, len(grouped.shape))))
    if _is_pointwise(node, kernel):
        shape = (y.shape[0], groups, outputs // groups, size_of(y.shape[2:]))
        shown = (transposed.shape[:3], transposed.strides[:3], transposed.offset)
        filters = View(transposed.buffer, *shown)
        _multiply(lowered, node, filters, reshaped(lowered, y, shape), None, out)
        return
    settings = (out.shape[2:], kernel, stride, padding, dilation)
    shares = [_shares(*each) for each in zip(*settings, strict=True)]
    axes = [_reach(*each) for each in zip(y.shape[2:], shares, strict=True)]
    padded = padded_images(lowered, y, axes)
    for combination in product(*shares):
        _add_share(lowered, node, transposed, padded, combination, out)


def _spread(lowered: Lowering, node: Node, y: View, weight: View, out: View) -> None:
    """Multiply weights with the only place of each image of y: windows would be padding, mostly."""
    groups = node.attr("groups")
    outputs, depth = weight.shape[0] // groups, size_of(weight.shape[1:])
    filters = reshaped(lowered, weight, (groups, outputs, depth)).permuted((0, 2, 1))
    columns = reshaped(lowered, y, (y.shape[0], groups, outputs, 1))
    _multiply(lowered, node, filters, columns, None, out)


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
    return reshaped(lowered, part, (groups, channels, outputs * size_of(map(len, taps))))


_RULES: dict[str, Callable[..., None]] = {
    "result": _conv,
    "input": _conv_input_grad,
    "weight": lower_weight_gradient,
}
