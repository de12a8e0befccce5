"""N-d convolution and its two adjoints.

All three are bilinear, and each one's derivatives are the other two, so that every order of
derivative is a convolution again.
"""

from __future__ import annotations

from typing import Any

from ...core.batching import unfold
from ...core.dim import may_equal
from ...core.division import Division
from ...core.errors import ArgumentError, ShapeError
from ...core.op import F, general, op
from ...core.samples import ErrorSample, Sample
from ...core.shape import Shape, TensorType, as_int, size_of
from ...core.tensor import Tensor
from .channels import apart, batch_by_weight, beside, from_channels, into_channels
from .geometry import Pairs, padding_pairs, per_axis, require_rank, window_counts
from .kernels import correlate, correlate_input, correlate_weight

Ints = int | tuple[int, ...]
Padding = Ints | Pairs | str
Settings = tuple[Shape, Pairs, Shape, int]


@op(general, promote="float", multilinear=("x", "weight"), method=False, convolution="result")
def conv(
    x: Tensor,
    weight: Tensor,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Return the cross-correlation of x with a bank of filters.

    x is (N, C, *spatial), weight (O, C/groups, *kernel), the result (N, O, *output). The kernel is
    not flipped. Padding is zero padding: an int for all sides, one int for each axis, (before,
    after) pairs in which a negative number crops, "valid" (none), or "same" (stride 1: the output
    has the size of the input; an odd element goes behind).
    """


@conv.canon
def _(x, weight, stride, padding, dilation, groups):
    settings = canonical_settings(weight, stride, padding, dilation, groups)
    check_channels(x, weight, settings[3])
    window_counts(x.shape[2:], weight.shape[2:], *settings[:3])
    return settings


@conv.multiplications
def _(x, weight, stride, padding, dilation, groups):
    counts = window_counts(x[2:], weight[2:], stride, padding, dilation)
    return x[0] * size_of(counts) * size_of(weight)


@conv.infer
def _(x, weight, stride, padding, dilation, groups):
    counts = window_counts(x.shape[2:], weight.shape[2:], stride, padding, dilation)
    return TensorType((x.shape[0], weight.shape[0], *counts), x.dtype)


conv.eval(correlate)


@conv.division
def _(x, weight, stride, padding, dilation, groups):
    space = (None,) * (x.ndim - 2)
    if groups > 1:
        return Division([("n", None, *space), (None, None, *space)], ("n", None, *space))
    return Division([("n", "c", *space), ("o", "c", *space)], ("n", "o", *space), {"c": "sum"})


@conv.vjp("x")
def _(g, weight, x_shape, stride, padding, dilation, groups):
    return F.conv_input_grad(g, weight, x_shape[2:], stride, padding, dilation, groups)


@conv.vjp("weight")
def _(g, x, weight_shape, stride, padding, dilation, groups):
    return F.conv_weight_grad(x, g, weight_shape[2:], stride, padding, dilation, groups)


@op(general, promote="float", multilinear=("y", "weight"), method=False, convolution="input")
def conv_input_grad(
    y: Tensor,
    weight: Tensor,
    input_size: tuple[int, ...],
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Return the adjoint of `conv` in x: the transposed convolution of y.

    y is (N, O, *output), weight (O, C/groups, *kernel), the result (N, C, *input_size).
    """


@conv_input_grad.canon
def _(y, weight, input_size, stride, padding, dilation, groups):
    settings = canonical_settings(weight, stride, padding, dilation, groups)
    size = per_axis(input_size, require_rank(weight, "weight"), "input_size", minimum=0)
    check_output(y, weight.shape, size, settings)
    return (size, *settings)


@conv_input_grad.multiplications
def _(y, weight, *settings):
    return y[0] * size_of(y[2:]) * size_of(weight)


@conv_input_grad.infer
def _(y, weight, input_size, stride, padding, dilation, groups):
    return TensorType((y.shape[0], weight.shape[1] * groups, *input_size), y.dtype)


conv_input_grad.eval(correlate_input)


@conv_input_grad.division
def _(y, weight, input_size, stride, padding, dilation, groups):
    space = (None,) * (y.ndim - 2)
    if groups > 1:
        return Division([("n", None, *space), (None, None, *space)], ("n", None, *space))
    return Division([("n", "o", *space), ("o", "c", *space)], ("n", "c", *space), {"o": "sum"})


@conv_input_grad.vjp("y")
def _(g, weight, stride, padding, dilation, groups):
    return F.conv(g, weight, stride, padding, dilation, groups)


@conv_input_grad.vjp("weight")
def _(g, y, weight_shape, stride, padding, dilation, groups):
    return F.conv_weight_grad(g, y, weight_shape[2:], stride, padding, dilation, groups)


@op(general, promote="float", multilinear=("x", "y"), method=False, convolution="weight")
def conv_weight_grad(
    x: Tensor,
    y: Tensor,
    kernel_size: tuple[int, ...],
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Return the adjoint of `conv` in its weight: x correlated with y.

    x is (N, C, *spatial), y (N, O, *output), the result (O, C/groups, *kernel_size).
    """


@conv_weight_grad.canon
def _(x, y, kernel_size, stride, padding, dilation, groups):
    kernel = per_axis(kernel_size, require_rank(x, "x"), "kernel_size")
    groups = as_groups(groups)
    if x.shape[0] != y.shape[0]:
        raise ShapeError(
            f"x and y must have the same batch size. Received: {tuple(x.shape)}, {tuple(y.shape)}"
        )
    check_divides(groups, x.shape[1], "input")
    weight = TensorType((y.shape[1], x.shape[1] // groups, *kernel), x.dtype)
    settings = canonical_settings(weight, stride, padding, dilation, groups)
    check_output(y, weight.shape, x.shape[2:], settings)
    return (kernel, *settings)


@conv_weight_grad.multiplications
def _(x, y, kernel_size, stride, padding, dilation, groups):
    return size_of(y) * (x[1] // groups) * size_of(kernel_size)


@conv_weight_grad.infer
def _(x, y, kernel_size, stride, padding, dilation, groups):
    return TensorType((y.shape[1], x.shape[1] // groups, *kernel_size), x.dtype)


conv_weight_grad.eval(correlate_weight)


@conv_weight_grad.division
def _(x, y, kernel_size, stride, padding, dilation, groups):
    space = (None,) * (x.ndim - 2)
    if groups > 1:
        inputs = [("n", None, *space), ("n", None, *space)]
        return Division(inputs, (None, None, *space), {"n": "sum"})
    return Division([("n", "c", *space), ("n", "o", *space)], ("o", "c", *space), {"n": "sum"})


@conv_weight_grad.vjp("x")
def _(g, y, x_shape, stride, padding, dilation, groups):
    return F.conv_input_grad(y, g, x_shape[2:], stride, padding, dilation, groups)


@conv_weight_grad.vjp("y")
def _(g, x, stride, padding, dilation, groups):
    return F.conv(x, g, stride, padding, dilation, groups)


# -- batching ---------------------------------------------------------------------------------


@conv.batch
def _(call):
    return batch_by_weight(call, lambda weight, groups: into_channels(weight, 1, groups))


@conv_input_grad.batch
def _(call):
    return batch_by_weight(call, lambda weight, _: beside(weight))


@conv_weight_grad.batch
def _(x, y, kernel_size, stride, padding, dilation, groups, batched, examples):
    settings = (kernel_size, stride, padding, dilation)
    if not batched[1]:
        found = F.conv_weight_grad(into_channels(x, 2, groups), y, *settings, groups)
        return apart(found, 1, examples)
    if not batched[0]:
        found = F.conv_weight_grad(x, into_channels(y, 2, groups), *settings, groups)
        return from_channels(found, 0, groups, examples)
    found = F.conv_weight_grad(beside(x), beside(y), *settings, groups * examples)
    return unfold(found, examples)


# -- checks -----------------------------------------------------------------------------------


def canonical_settings(
    weight: Any, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Settings:
    """Return stride, padding, dilation and groups, checked against the weight."""
    spatial = _spatial_axes(weight)
    kernel = tuple(weight.shape[2:])
    if 0 in kernel:
        raise ShapeError(f"the kernel must not be empty. Received: weight {tuple(weight.shape)}")
    strides = per_axis(stride, spatial, "stride")
    dilations = per_axis(dilation, spatial, "dilation")
    pairs = padding_pairs(padding, kernel, strides, dilations)
    groups = as_groups(groups)
    check_divides(groups, weight.shape[0], "output")
    return strides, pairs, dilations, groups


def _spatial_axes(weight: Any) -> int:
    if weight.ndim < 3:
        raise ShapeError(
            "weight must have the shape (outputs, channels / groups, *kernel). "
            f"Received: {tuple(weight.shape)}"
        )
    return int(weight.ndim) - 2


def as_groups(groups: Any) -> int:
    """Return the number of groups as a positive int."""
    count = as_int(groups, "groups")
    if count < 1:
        raise ArgumentError(f"groups must be at least 1. Received: {count}")
    return count


def check_divides(groups: int, channels: int, what: str) -> None:
    """Raise unless channels split evenly into groups."""
    if channels % groups != 0:
        raise ShapeError(
            f"groups must divide the {what} channels. Received: groups={groups}, "
            f"{channels} {what} channels"
        )


def check_channels(x: Any, weight: Any, groups: int) -> None:
    """Raise unless x has the rank and the channels that the weight expects."""
    if x.ndim != weight.ndim:
        raise ShapeError(
            f"a weight of {weight.ndim} dimensions needs an input of as many "
            f"(batch, channels, *spatial). Received: input {tuple(x.shape)}, "
            f"weight {tuple(weight.shape)}"
        )
    expected = weight.shape[1] * groups
    if x.shape[1] != expected:
        check_divides(groups, x.shape[1], "input")
        grouped = f" ({weight.shape[1]} x {groups} groups)" if groups > 1 else ""
        raise ShapeError(
            f"input has {x.shape[1]} channels but weight expects {expected}{grouped}. "
            f"Received: input {tuple(x.shape)}, weight {tuple(weight.shape)}; the layout is "
            "(batch, channels, *spatial) and (outputs, channels / groups, *kernel)"
        )


def check_output(y: Any, weight_shape: Shape, size: Shape, settings: Settings) -> None:
    """Raise unless y has the shape of the convolution's output."""
    stride, pairs, dilation, _ = settings
    counts = window_counts(size, weight_shape[2:], stride, pairs, dilation)
    expected = (weight_shape[0], *counts)
    if y.shape[1:] != expected and not may_equal(tuple(y.shape[1:]), expected):
        raise ShapeError(
            f"y must have the shape (batch, {', '.join(map(str, expected))}) that a convolution "
            f"of size {size} has. Received: {tuple(y.shape)}"
        )


# -- samples ----------------------------------------------------------------------------------

# (x, weight, settings): every option alone and in company, in one, two and three dimensions
CASES: tuple[tuple[Shape, Shape, dict[str, Any]], ...] = (
    ((2, 2, 5), (3, 2, 3), {}),
    ((1, 1, 6), (2, 1, 2), {"stride": 2, "padding": 1}),
    ((1, 2, 7), (2, 1, 3), {"dilation": 2, "padding": 2, "groups": 2}),
    ((2, 2, 4, 3), (2, 2, 2, 2), {}),
    ((1, 3, 3, 2), (2, 3, 1, 1), {}),
    ((1, 2, 4, 3), (2, 2, 1, 1), {"stride": (2, 1)}),
    ((1, 2, 4, 4), (4, 1, 3, 3), {"padding": 1, "groups": 2, "stride": 2}),
    ((1, 1, 4, 5), (2, 1, 2, 3), {"stride": (2, 1), "padding": (0, 1), "dilation": (1, 2)}),
    ((1, 1, 2, 2), (1, 1, 4, 3), {"padding": (1, 1)}),
    ((1, 1, 4, 3), (1, 1, 2, 4), {"padding": "same"}),
    ((1, 1, 4, 3), (1, 1, 2, 2), {"padding": "valid"}),
    ((1, 1, 4, 4), (1, 1, 2, 2), {"padding": ((1, 0), (-1, 2))}),
    ((1, 1, 3, 3), (6, 1, 2, 2), {"padding": 1}),
    ((1, 1, 3, 2, 2), (2, 1, 2, 2, 1), {"padding": (1, 0, 0)}),
    ((1, 2, 3, 3, 2), (2, 1, 2, 1, 2), {"stride": (1, 2, 1), "groups": 2}),
    ((0, 2, 4, 4), (3, 2, 3, 3), {"padding": 1}),
)


def case_output(x: Shape, weight: Shape, settings: dict[str, Any]) -> Shape:
    """Return the shape of the convolution of a case."""
    full = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1} | settings
    stride, pairs, dilation, _ = canonical_settings(
        TensorType(weight, None), **full
    )  # only the shape is read
    return (x[0], weight[0], *window_counts(x[2:], weight[2:], stride, pairs, dilation))


@conv.samples
def _(s):
    for x, weight, settings in CASES:
        yield Sample(s.real(*x), s.real(*weight), **settings)
    yield Sample(s.strided(1, 2, 4, 3), s.strided(2, 2, 2, 2), label="non-contiguous")
    integers = s.integers(1, 1, 4), s.integers(1, 1, 2)
    yield Sample(*integers, grad=0, label="integers")


@conv_input_grad.samples
def _(s):
    for x, weight, settings in CASES:
        y = s.real(*case_output(x, weight, settings))
        yield Sample(y, s.real(*weight), x[2:], **settings)


@conv_weight_grad.samples
def _(s):
    for x, weight, settings in CASES:
        y = s.real(*case_output(x, weight, settings))
        yield Sample(s.real(*x), y, weight[2:], **settings)


@conv.error_samples
def _(s):
    x, w = s.real(2, 3, 5, 5), s.real(4, 3, 3, 3)
    yield ErrorSample(
        x, s.real(4, 2, 3, 3), error=ValueError, match="input has 3 channels but weight expects 2"
    )
    yield ErrorSample(x, s.real(4, 3, 3), error=ValueError, match=r"input \(2, 3, 5, 5\)")
    yield ErrorSample(x, s.real(4, 3), error=ValueError, match=r"weight must have .*\(4, 3\)")
    yield ErrorSample(x, w, stride=0, error=ValueError, match="stride must be at least 1.*0")
    yield ErrorSample(
        x, w, stride=(1, 2, 3), error=ValueError, match=r"stride must be.*\(1, 2, 3\)"
    )
    yield ErrorSample(x, w, stride=1.5, error=TypeError, match="stride must be an integer.*1.5")
    yield ErrorSample(x, w, dilation=0, error=ValueError, match="dilation must be at least 1")
    yield ErrorSample(x, w, dilation=3, error=ValueError, match=r"dilated: \(7, 7\)\) is larger")
    yield ErrorSample(x, w, padding=-1, error=ValueError, match="padding must be at least 0.*-1")
    yield ErrorSample(x, w, padding="full", error=ValueError, match="'full'")
    yield ErrorSample(x, w, padding="same", stride=2, error=ValueError, match=r"stride=\(2, 2\)")
    yield ErrorSample(x, w, groups=3, error=ValueError, match="groups=3, 4 output channels")
    yield ErrorSample(x, w, groups=2, error=ValueError, match="groups=2, 3 input channels")
    yield ErrorSample(x, w, groups=0, error=ValueError, match="groups must be at least 1")
    yield ErrorSample(
        s.real(2, 3, 2, 2), w, error=ValueError, match=r"kernel \(3, 3\) is larger .*\(2, 2\)"
    )


@conv_input_grad.error_samples
def _(s):
    y, w = s.real(2, 4, 3, 3), s.real(4, 3, 3, 3)
    yield ErrorSample(y, w, (6, 5), error=ValueError, match=r"4, 4, 3\) .*\(2, 4, 3, 3\)")
    yield ErrorSample(y, w, (5,), stride=0, error=ValueError, match="stride must be at least 1")
    yield ErrorSample(y, w, (2, 2), error=ValueError, match=r"kernel \(3, 3\) is larger")


@conv_weight_grad.error_samples
def _(s):
    x, y = s.real(2, 3, 5, 5), s.real(2, 4, 3, 3)
    yield ErrorSample(x, y, (2, 2), error=ValueError, match=r"4, 4, 4\) .*\(2, 4, 3, 3\)")
    yield ErrorSample(x, y[:1], (3, 3), error=ValueError, match="same batch size")
    yield ErrorSample(x, y, (3, 3), groups=2, error=ValueError, match="3 input channels")
