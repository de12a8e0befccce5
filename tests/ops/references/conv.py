"""References of convolution: SciPy's correlate, and loops over every product."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
from scipy.signal import correlate

from weft.core.samples import ErrorSample, Sample

# -- windows --------------------------------------------------------------------------------------


def _each(value, ndim):
    return tuple(np.broadcast_to(value, ndim).tolist())


def _pairs(padding, kernel, dilation):
    ndim = len(kernel)
    if padding == "valid":
        return [(0, 0)] * ndim
    if padding == "same":
        totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return [(t // 2, t - t // 2) for t in totals]
    if np.ndim(padding) == 2:
        return [tuple(pair) for pair in padding]
    return [(p, p) for p in _each(padding, ndim)]


def _padded(x, pairs):
    x = np.pad(x, [(0, 0), (0, 0), *[(max(lo, 0), max(hi, 0)) for lo, hi in pairs]])
    crops = [
        slice(max(-lo, 0), n - max(-hi, 0)) for (lo, hi), n in zip(pairs, x.shape[2:], strict=True)
    ]
    return x[(..., *crops)]


def _float(x):
    return x if x.dtype.kind == "f" else x.astype(np.float32)


def _dilated(kernel, dilation):
    shape = [d * (k - 1) + 1 for k, d in zip(kernel.shape, dilation, strict=True)]
    wide = np.zeros(shape, kernel.dtype)
    wide[tuple(slice(None, None, d) for d in dilation)] = kernel
    return wide


def _meetings(size, kernel, counts, stride, pairs, dilation):
    """Yield (input place, kernel place, output place) for every product inside the input."""
    for out in product(*map(range, counts)):
        for k in product(*map(range, kernel)):
            places = zip(out, k, stride, pairs, dilation, strict=True)
            place = tuple(o * s - lo + i * d for o, i, s, (lo, _), d in places)
            if all(0 <= p < n for p, n in zip(place, size, strict=True)):
                yield place, k, out


# -- convolution ----------------------------------------------------------------------------------


def conv(x, weight, stride=1, padding=0, dilation=1, groups=1):
    ndim = weight.ndim - 2
    stride, dilation = _each(stride, ndim), _each(dilation, ndim)
    x, weight = _float(x), _float(weight)
    x = _padded(x, _pairs(padding, weight.shape[2:], dilation))
    inputs, outputs = weight.shape[1], weight.shape[0] // groups
    rows = []
    for image in x:
        maps = []
        for o, filters in enumerate(weight):
            part = image[(o // outputs) * inputs :][:inputs]
            full = sum(
                correlate(c, _dilated(f, dilation), mode="valid", method="direct")
                for c, f in zip(part, filters, strict=True)
            )
            maps.append(full[tuple(slice(None, None, s) for s in stride)])
        rows.append(maps)
    if not rows:
        spans = [d * (k - 1) for k, d in zip(weight.shape[2:], dilation, strict=True)]
        counts = [(n - r - 1) // s + 1 for n, r, s in zip(x.shape[2:], spans, stride, strict=True)]
        return np.zeros((0, len(weight), *counts), x.dtype)
    return np.array(rows)


def conv_input_grad(y, weight, input_size, stride=1, padding=0, dilation=1, groups=1):
    ndim = weight.ndim - 2
    stride, dilation = _each(stride, ndim), _each(dilation, ndim)
    pairs = _pairs(padding, weight.shape[2:], dilation)
    size = _each(input_size, ndim)
    inputs, outputs = weight.shape[1], weight.shape[0] // groups
    result = np.zeros((y.shape[0], inputs * groups, *size), y.dtype)
    meetings = _meetings(size, weight.shape[2:], y.shape[2:], stride, pairs, dilation)
    for place, k, out in meetings:
        for group in range(groups):
            i, o = slice(group * inputs, (group + 1) * inputs), slice(group * outputs, None)
            values = y[(slice(None), o, *out)][:, :outputs]
            filters = weight[(o, slice(None), *k)][:outputs]
            result[(slice(None), i, *place)] += values @ filters
    return result


def conv_weight_grad(x, y, kernel_size, stride=1, padding=0, dilation=1, groups=1):
    ndim = x.ndim - 2
    kernel = _each(kernel_size, ndim)
    stride, dilation = _each(stride, ndim), _each(dilation, ndim)
    pairs = _pairs(padding, kernel, dilation)
    inputs, outputs = x.shape[1] // groups, y.shape[1] // groups
    result = np.zeros((y.shape[1], inputs, *kernel), x.dtype)
    for place, k, out in _meetings(x.shape[2:], kernel, y.shape[2:], stride, pairs, dilation):
        for o in range(y.shape[1]):
            channels = x[(slice(None), slice(o // outputs * inputs, None), *place)][:, :inputs]
            result[(o, slice(None), *k)] += y[(slice(None), o, *out)] @ channels
    return result


def _with_bias(out, bias):
    return out if bias is None else out + bias.reshape(-1, *[1] * (out.ndim - 2))


def conv_nd(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    if x.ndim < weight.ndim:
        return conv_nd(x[None], weight, bias, stride, padding, dilation, groups)[0]
    return _with_bias(conv(x, weight, stride, padding, dilation, groups), bias)


def conv_transpose_nd(
    x, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1
):
    """Paint every element's kernel onto an empty canvas, then cut the padding off."""
    if x.ndim < weight.ndim:
        options = (stride, padding, output_padding, groups, dilation)
        return conv_transpose_nd(x[None], weight, bias, *options)[0]
    ndim = weight.ndim - 2
    names = (stride, padding, output_padding, dilation)
    stride, padding, extra, dilation = (_each(v, ndim) for v in names)
    spans = [d * (k - 1) + 1 for k, d in zip(weight.shape[2:], dilation, strict=True)]
    full = [
        (n - 1) * s + r + e for n, s, r, e in zip(x.shape[2:], stride, spans, extra, strict=True)
    ]
    inputs, outputs = weight.shape[0] // groups, weight.shape[1]
    canvas = np.zeros((x.shape[0], outputs * groups, *full), x.dtype)
    for place in product(*map(range, x.shape[2:])):
        area = tuple(
            slice(p * s, p * s + r, d)
            for p, s, r, d in zip(place, stride, spans, dilation, strict=True)
        )
        for i in range(x.shape[1]):
            target = slice(i // inputs * outputs, (i // inputs + 1) * outputs)
            canvas[(slice(None), target, *area)] += np.multiply.outer(
                x[(slice(None), i, *place)], weight[i]
            )
    cut = tuple(slice(p, n - p) for p, n in zip(padding, full, strict=True))
    return _with_bias(canvas[(..., *cut)], bias)


# -- patches --------------------------------------------------------------------------------------


def unfold_patches(x, kernel_size, dilation=1, padding=0, stride=1):
    ndim = x.ndim - 2
    kernel, dilation, stride = (_each(v, ndim) for v in (kernel_size, dilation, stride))
    x = _padded(x, _pairs(padding, kernel, dilation))
    spans = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    starts = [range(0, n - r + 1, s) for n, r, s in zip(x.shape[2:], spans, stride, strict=True)]
    columns = [
        x[(..., *[slice(a, a + r, d) for a, r, d in zip(start, spans, dilation, strict=True)])]
        for start in product(*starts)
    ]
    stacked = np.stack([c.reshape(len(x), x.shape[1] * prod(kernel)) for c in columns], axis=-1)
    return stacked.astype(x.dtype)


def fold(x, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """Add columns where they point, as seen by unfolding an image of running numbers."""
    given = (output_size, kernel_size, dilation, padding, stride)
    ndim = max([np.size(v) for v in given if np.ndim(v)], default=2)
    size, kernel = _each(output_size, ndim), _each(kernel_size, ndim)
    numbers = np.arange(1, prod(size) + 1).reshape(1, 1, *size)
    places = unfold_patches(numbers, kernel, dilation, padding, stride)[0]
    channels = x.shape[1] // prod(kernel)
    split = x.reshape(len(x), channels, prod(kernel), x.shape[2])
    flat = np.zeros((len(x), channels, prod(size) + 1), x.dtype)
    for place in np.ndindex(places.shape):
        flat[:, :, places[place]] += split[(slice(None), slice(None), *place)]
    return flat[:, :, 1:].reshape(len(x), channels, *size)


REFERENCES = {
    "conv": conv,
    "conv_input_grad": conv_input_grad,
    "conv_weight_grad": conv_weight_grad,
    "conv1d": conv_nd,
    "conv2d": conv_nd,
    "conv3d": conv_nd,
    "conv_transpose1d": conv_transpose_nd,
    "conv_transpose2d": conv_transpose_nd,
    "conv_transpose3d": conv_transpose_nd,
    "unfold_patches": unfold_patches,
    "fold": fold,
}


# -- samples --------------------------------------------------------------------------------------


def _conv1d(s):
    yield Sample(s.real(2, 2, 5), s.real(3, 2, 3), s.real(3))
    yield Sample(s.real(2, 5), s.real(1, 2, 2), stride=2, label="unbatched")
    yield Sample(s.real(1, 4, 5), s.real(4, 1, 3), None, 1, "same", 1, 4, label="depthwise")


def _conv2d(s):
    yield Sample(s.real(1, 2, 4, 3), s.real(2, 2, 2, 2), s.real(2), padding=1)
    yield Sample(s.real(2, 3, 3), s.real(1, 2, 2, 2), s.real(1), label="unbatched")
    yield Sample(s.real(1, 2, 4, 4), s.real(2, 1, 3, 3), stride=(2, 1), padding="valid", groups=2)
    yield Sample(s.real(0, 2, 3, 3), s.real(2, 2, 2, 2), s.real(2), label="empty batch")


def _conv3d(s):
    yield Sample(s.real(1, 1, 3, 2, 3), s.real(2, 1, 2, 2, 2), s.real(2))
    yield Sample(s.real(1, 3, 3, 2), s.real(1, 1, 2, 2, 2), padding=(0, 1, 0), label="unbatched")


def _conv_transpose1d(s):
    yield Sample(s.real(2, 2, 3), s.real(2, 3, 2), s.real(3), stride=2)
    yield Sample(s.real(1, 3), s.real(1, 2, 3), output_padding=1, stride=2, label="unbatched")
    yield Sample(s.real(1, 1, 3), s.real(1, 1, 2), None, 1, 0, 2, 1, 3, label="wide dilation")


def _conv_transpose2d(s):
    yield Sample(s.real(1, 2, 2, 3), s.real(2, 2, 2, 2), s.real(2))
    yield Sample(
        s.real(1, 2, 3, 2),
        s.real(2, 1, 3, 2),
        stride=(2, 3),
        padding=(1, 0),
        output_padding=(1, 2),
        groups=2,
    )


def _conv_transpose3d(s):
    yield Sample(s.real(1, 1, 2, 1, 2), s.real(1, 2, 2, 2, 1), s.real(2), stride=(1, 2, 2))


COMPOSITE_SAMPLES = {
    "conv1d": _conv1d,
    "conv2d": _conv2d,
    "conv3d": _conv3d,
    "conv_transpose1d": _conv_transpose1d,
    "conv_transpose2d": _conv_transpose2d,
    "conv_transpose3d": _conv_transpose3d,
}


def _conv2d_errors(s):
    x, w = s.real(1, 3, 5, 5), s.real(2, 3, 3, 3)
    yield ErrorSample(
        x,
        s.real(2, 4, 3, 3),
        error=ValueError,
        match="^conv2d: input has 3 channels but weight expects 4",
    )
    yield ErrorSample(s.real(5, 5), w, error=ValueError, match=r"^conv2d: .*4 dim.*shape \(5, 5\)")
    yield ErrorSample(x, s.real(2, 3, 3), error=ValueError, match=r"weight must be .*\(2, 3, 3\)")
    yield ErrorSample(x, w, s.real(3), error=ValueError, match=r"bias must have .*\(3,\)")
    yield ErrorSample(x, w, stride=0, error=ValueError, match="^conv2d: stride must be at least 1")
    yield ErrorSample(
        [[1.0]], w, error=TypeError, match="^conv2d: the input must be a tensor.*list"
    )


def _conv_transpose2d_errors(s):
    x, w = s.real(1, 3, 2, 2), s.real(3, 2, 3, 3)
    yield ErrorSample(
        x, s.real(2, 3, 3, 3), error=ValueError, match="input has 3 channels but weight expects 2"
    )
    yield ErrorSample(x, w, output_padding=1, error=ValueError, match=r"output_padding=\(1, 1\)")
    yield ErrorSample(x, w, padding="same", error=ValueError, match="'same'")
    yield ErrorSample(x, w, padding=2, error=ValueError, match=r"size \(0, 0\)")
    yield ErrorSample(x, w, s.real(3), error=ValueError, match=r"bias must have the shape \(2,\)")


COMPOSITE_ERROR_SAMPLES = {
    "conv2d": _conv2d_errors,
    "conv_transpose2d": _conv_transpose2d_errors,
}
