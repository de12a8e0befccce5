"""Convolutions against loops over places and filters."""

import itertools

import numpy as np
import pytest

from weft.caffe.errors import CaffeError

from .checking import check, layer, normal


def correlated(x, w, b=None, *, stride=1, pad=0, dilation=1, groups=1):
    """Convolve (N, C, *spatial) by loops."""
    dims = x.ndim - 2
    s, p, d = ((v,) * dims if isinstance(v, int) else v for v in (stride, pad, dilation))
    x = np.pad(x, [(0, 0), (0, 0), *((q, q) for q in p)])
    kernel = w.shape[2:]
    out = [
        (n - e * (k - 1) - 1) // t + 1 for n, k, t, e in zip(x.shape[2:], kernel, s, d, strict=True)
    ]
    y = np.zeros((len(x), len(w), *out))
    inside, outside = w.shape[1], len(w) // groups
    for n, o in np.ndindex(len(x), len(w)):
        first = o // outside * inside
        for place in np.ndindex(*out):
            window = tuple(
                slice(i * t, i * t + e * (k - 1) + 1, e)
                for i, t, k, e in zip(place, s, kernel, d, strict=True)
            )
            y[(n, o, *place)] = np.sum(x[(n, slice(first, first + inside), *window)] * w[o])
            y[(n, o, *place)] += 0 if b is None else b[o]
    return y


def transposed(x, w, b=None, *, stride=1, pad=0, dilation=1, groups=1):
    """Add each element of (N, C, H, W) times its filter where that lies."""
    inside, outside = x.shape[1] // groups, w.shape[1]
    size = [
        stride * (n - 1) + dilation * (k - 1) + 1
        for n, k in zip(x.shape[2:], w.shape[2:], strict=True)
    ]
    y = np.zeros((len(x), outside * groups, *size))
    for n, c, i, j in np.ndindex(*x.shape):
        for o, u, v in itertools.product(range(outside), range(w.shape[2]), range(w.shape[3])):
            place = (
                n,
                c // inside * outside + o,
                i * stride + u * dilation,
                j * stride + v * dilation,
            )
            y[place] += x[n, c, i, j] * w[c, o, u, v]
    y = y[:, :, pad : size[0] - pad, pad : size[1] - pad]
    return y if b is None else y + b[:, None, None]


CASES = {
    "num_output: 3 kernel_size: 3": {},
    "num_output: 2 kernel_size: 2 stride: 2 pad: 1": {"stride": 2, "pad": 1},
    "num_output: 4 kernel_size: 2 group: 2": {"groups": 2},
    "num_output: 2 kernel_size: 2 dilation: 2": {"dilation": 2},
    "num_output: 2 kernel_h: 1 kernel_w: 3 stride_h: 2 stride_w: 1 pad_h: 0 pad_w: 1": {
        "stride": (2, 1),
        "pad": (0, 1),
    },
    "num_output: 2 kernel_size: 3 kernel_size: 2 bias_term: false": {},
}


@pytest.mark.parametrize("options", CASES)
def test_convolutions(options):
    text = f'type: "Convolution" convolution_param {{ {options} }}'
    check(text, normal(2, 2, 5, 4), reference=lambda *a: correlated(*a, **CASES[options]))


def test_one_and_three_axes():
    text = 'type: "Convolution" convolution_param { num_output: 2 kernel_size: 2 }'
    check(text, normal(2, 2, 5), reference=correlated)
    check(text, normal(1, 2, 3, 3, 2), reference=correlated)


def test_channels_may_stand_behind_other_axes():
    text = 'type: "Convolution" convolution_param { num_output: 2 kernel_size: 2 axis: 2 }'

    def reference(x, w, b):
        return correlated(x.reshape(6, 2, 3, 3), w, b).reshape(2, 3, 2, 2, 2)

    check(text, normal(2, 3, 2, 3, 3), reference=reference)


def test_several_bottoms_share_the_filters():
    text = (
        'type: "Convolution" top: "a" top: "b" convolution_param { num_output: 2 kernel_size: 2 }'
    )

    def reference(x, y, w, b):
        return correlated(x, w, b), correlated(y, w, b)

    check(text, normal(1, 2, 3, 3), normal(1, 2, 3, 3), reference=reference)


DECONVOLUTIONS = {
    "num_output: 2 kernel_size: 2": {},
    "num_output: 2 kernel_size: 3 stride: 2 pad: 1": {"stride": 2, "pad": 1},
    "num_output: 4 kernel_size: 2 group: 2 bias_term: false": {"groups": 2},
    "num_output: 1 kernel_size: 2 dilation: 2": {"dilation": 2},
}


@pytest.mark.parametrize("options", DECONVOLUTIONS)
def test_deconvolutions(options):
    text = f'type: "Deconvolution" convolution_param {{ {options} }}'
    check(text, normal(1, 2, 3, 2), reference=lambda *a: transposed(*a, **DECONVOLUTIONS[options]))


def test_im2col_puts_patches_into_channels():
    def reference(x):
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        rows = [
            padded[:, c, u : u + 5 : 2, v : v + 4 : 2]
            for c in range(2)
            for u in range(2)
            for v in range(2)
        ]
        return np.stack(rows, 1)

    text = 'type: "Im2col" convolution_param { kernel_size: 2 stride: 2 pad: 1 }'
    check(text, normal(1, 2, 4, 3), reference=reference)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("num_output: 3", "kernel_size must be specified"),
        ("kernel_size: 3", "num_output must be positive"),
        ("num_output: 3 kernel_size: 3 group: 2", "Number of output should be multiples of group"),
        ("num_output: 3 kernel_size: 9", "the kernel of 9 does not fit into 5"),
        ("num_output: 3 kernel_size: 3 kernel_h: 3", "Either kernel_size or kernel_h/kernel_w"),
        ("num_output: 3 kernel_size: [1, 2, 3]", "specified 3 times; 2 spatial dims"),
        ("num_output: 3 kernel_size: 0", "kernel dimensions must be nonzero"),
        ("num_output: 4000000000 kernel_size: 3", "blob size exceeds INT_MAX"),
        ("num_output: 50000000 kernel_size: 3", "more than the 1073741824 that are left"),
    ],
)
def test_what_is_refused(options, message):
    text = f'name: "c" type: "Convolution" convolution_param {{ {options} }}'
    with pytest.raises(CaffeError, match=message):
        layer(text, normal(1, 4, 5, 5)).shapes_for([(1, 4, 5, 5)])
