"""Convolution layers as functions, with PyTorch's names, layouts and signatures."""

from __future__ import annotations

from typing import Any

from ...core.dim import may_equal, surely_less
from ...core.errors import ArgumentError, ShapeError
from ...core.op import F, composite
from ...core.tensor import Tensor
from .._halves import rounded_once
from .convolution import Ints, Padding, canonical_settings
from .geometry import named, per_axis, with_batch

LARGE = 1 << 22  # multiplications, where compiling is soon worth its while


def _is_large(x: Any, weight: Any, *options: Any, **named_options: Any) -> bool:
    """Tell whether a convolution is large: as many multiplications as with stride 1."""
    try:
        return bool(x._value.size // x.shape[1] * weight._value.size >= LARGE)
    except (AttributeError, IndexError, ZeroDivisionError):  # no tensors, or of a graph, or bad
        return False


@composite(fused=_is_large)
@rounded_once
def conv1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Return the 1-d convolution (cross-correlation) of a batch of sequences.

    x is (N, C, L) or (C, L), weight (O, C/groups, k), bias (O,).
    """
    return _convolve("conv1d", x, weight, bias, (stride, padding, dilation, groups))


@composite(fused=_is_large)
@rounded_once
def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Return the 2-d convolution (cross-correlation) of a batch of images.

    x is (N, C, H, W) or (C, H, W), weight (O, C/groups, kh, kw), bias (O,). Padding is an int, one
    int for each axis, "valid", or "same", which keeps the size (stride 1).

    >>> import weft as wf
    >>> image = wf.ones((1, 1, 3, 3))
    >>> wf.nn.functional.conv2d(image, wf.ones((1, 1, 3, 3)), padding="same")
    tensor([[[[4., 6., 4.],
              [6., 9., 6.],
              [4., 6., 4.]]]])
    """
    return _convolve("conv2d", x, weight, bias, (stride, padding, dilation, groups))


@composite(fused=_is_large)
@rounded_once
def conv3d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Padding = 0,
    dilation: Ints = 1,
    groups: int = 1,
) -> Tensor:
    """Return the 3-d convolution (cross-correlation) of a batch of volumes.

    x is (N, C, D, H, W) or (C, D, H, W), weight (O, C/groups, kd, kh, kw), bias (O,).
    """
    return _convolve("conv3d", x, weight, bias, (stride, padding, dilation, groups))


@composite()
@rounded_once
def conv_transpose1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """Return the transposed 1-d convolution: the adjoint of `conv1d` applied to x.

    x is (N, C, L) or (C, L), weight (C, O/groups, k), bias (O,). The output has the length
    (L - 1) * stride - 2 * padding + dilation * (k - 1) + output_padding + 1.
    """
    options = (stride, padding, output_padding, groups, dilation)
    return _transpose("conv_transpose1d", x, weight, bias, options)


@composite()
@rounded_once
def conv_transpose2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """Return the transposed 2-d convolution: the adjoint of `conv2d` applied to x.

    x is (N, C, H, W) or (C, H, W), weight (C, O/groups, kh, kw), bias (O,); for the output size
    see `conv_transpose1d`.
    """
    options = (stride, padding, output_padding, groups, dilation)
    return _transpose("conv_transpose2d", x, weight, bias, options)


@composite()
@rounded_once
def conv_transpose3d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """Return the transposed 3-d convolution: the adjoint of `conv3d` applied to x.

    x is (N, C, D, H, W) or (C, D, H, W), weight (C, O/groups, kd, kh, kw), bias (O,); for the
    output size see `conv_transpose1d`.
    """
    options = (stride, padding, output_padding, groups, dilation)
    return _transpose("conv_transpose3d", x, weight, bias, options)


def _convolve(name: str, x: Any, weight: Any, bias: Any, settings: tuple[Any, ...]) -> Tensor:
    with named(name, "conv"):
        x, unbatched = _operands(name, x, weight)
        check_bias(bias, weight.shape[0])
        return _finish(F.conv(x, weight, *settings), bias, unbatched)


def _transpose(name: str, x: Any, weight: Any, bias: Any, options: tuple[Any, ...]) -> Tensor:
    stride, padding, output_padding, groups, dilation = options
    with named(name, "conv_input_grad"):
        x, unbatched = _operands(name, x, weight)
        strides, pairs, dilations, groups = canonical_settings(
            weight, stride, _numeric(padding), dilation, groups
        )
        if x.shape[1] != weight.shape[0]:
            raise ShapeError(
                f"input has {x.shape[1]} channels but weight expects {weight.shape[0]}. "
                f"Received: input {tuple(x.shape)}, weight {tuple(weight.shape)}; the layout of "
                "the weight is (channels, outputs / groups, *kernel)"
            )
        check_bias(bias, weight.shape[1] * groups)
        extra = _output_padding(output_padding, strides, dilations)
        # What output_padding adds at the end is not cut off there: that much less padding.
        pairs = tuple((lo, hi - e) for (lo, hi), e in zip(pairs, extra, strict=True))
        size = _transposed_size(x, weight, strides, pairs, dilations)
        out = F.conv_input_grad(x, weight, size, strides, pairs, dilations, groups)
        return _finish(out, bias, unbatched)


def _operands(name: str, x: Any, weight: Any) -> tuple[Any, bool]:
    spatial = int(name[-2])
    if getattr(weight, "ndim", None) != spatial + 2:
        received = tuple(weight.shape) if hasattr(weight, "shape") else weight
        raise ShapeError(
            f"weight must be a tensor of {spatial + 2} dimensions. Received: {received!r:.80}"
        )
    return with_batch(x, spatial, F.reshape)


def check_bias(bias: Any, outputs: int) -> None:
    """Raise unless bias is None or has one element for each output channel."""
    if bias is not None and not may_equal(tuple(getattr(bias, "shape", ())), (outputs,)):
        received = tuple(bias.shape) if hasattr(bias, "shape") else bias
        raise ShapeError(
            f"bias must have the shape ({outputs},), one element for each output channel. "
            f"Received: {received!r:.80}"
        )


def _finish(out: Tensor, bias: Any, unbatched: bool) -> Tensor:
    if bias is not None:
        out = out + F.reshape(bias, (1, bias.shape[0], *(1,) * (out.ndim - 2)))
    return F.reshape(out, out.shape[1:]) if unbatched else out


def _numeric(padding: Any) -> Any:
    if isinstance(padding, str):
        raise ArgumentError(
            f"padding must be numbers in a transposed convolution. Received: {padding!r}"
        )
    return padding


def _output_padding(value: Any, stride: tuple[int, ...], dilation: tuple[int, ...]) -> Any:
    extra = per_axis(value, len(stride), "output_padding", minimum=0)
    if any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation, strict=True)):
        raise ArgumentError(
            "output_padding must be smaller than the stride or the dilation. "
            f"Received: output_padding={extra}, stride={stride}, dilation={dilation}"
        )
    return extra


def _transposed_size(x: Any, weight: Any, stride: Any, pairs: Any, dilation: Any) -> Any:
    axes = zip(x.shape[2:], weight.shape[2:], stride, pairs, dilation, strict=True)
    size = tuple((n - 1) * s - lo - hi + d * (k - 1) + 1 for n, k, s, (lo, hi), d in axes)
    if any(surely_less(n, 1) for n in size):
        raise ShapeError(
            f"the output would have the size {size}; use less padding or a larger input. "
            f"Received: input {tuple(x.shape)}, weight {tuple(weight.shape)}"
        )
    return size
