"""Pooling against loops over windows, with Caffe's rounding and counting."""

import math

import numpy as np
import pytest

import weft as wf
from weft.caffe.errors import CaffeError

from .checking import apart, check, layer, normal


def pooled(x, k, s=1, p=0, *, average=False, up=True):
    """Pool as Caffe's loops do."""
    pairs = [(v, v) if isinstance(v, int) else v for v in (k, s, p)]
    (kh, kw), (sh, sw), (ph, pw) = pairs
    height, width = x.shape[2:]
    rounded = math.ceil if up else math.floor
    oh = rounded((height + 2 * ph - kh) / sh) + 1
    ow = rounded((width + 2 * pw - kw) / sw) + 1
    if ph or pw:
        oh -= (oh - 1) * sh >= height + ph
        ow -= (ow - 1) * sw >= width + pw
    y = np.zeros((*x.shape[:2], oh, ow))
    for n, c, i, j in np.ndindex(*y.shape):
        top, left = i * sh - ph, j * sw - pw
        bottom, right = min(top + kh, height + ph), min(left + kw, width + pw)
        size = (bottom - top) * (right - left)
        window = x[n, c, max(top, 0) : min(bottom, height), max(left, 0) : min(right, width)]
        if average:
            y[n, c, i, j] = window.sum() / size if size > 0 else 0
        else:
            y[n, c, i, j] = window.max(initial=np.finfo(np.float32).min)
    return y


WINDOWS = {
    "kernel_size: 2 stride: 2": ((2, 2), {}),
    "kernel_size: 3 stride: 2": ((3, 2), {}),
    "kernel_size: 3 stride: 2 pad: 1": ((3, 2, 1), {}),
    "kernel_size: 2 stride: 2 pad: 1": ((2, 2, 1), {}),
    "kernel_size: 3 stride: 3 pad: 2": ((3, 3, 2), {}),
    "kernel_size: 1 stride: 3": ((1, 3), {}),
    "kernel_h: 2 kernel_w: 3 stride_h: 1 stride_w: 2 pad_w: 1": (((2, 3), (1, 2), (0, 1)), {}),
    "kernel_size: 2 stride: 2 round_mode: FLOOR": ((2, 2), {"up": False}),
    "kernel_size: 3 stride: 2 pad: 1 round_mode: FLOOR": ((3, 2, 1), {"up": False}),
}


@pytest.mark.parametrize("average", [False, True], ids=["MAX", "AVE"])
@pytest.mark.parametrize("options", WINDOWS)
def test_windows(options, average):
    sizes, named = WINDOWS[options]
    pool = "AVE" if average else "MAX"
    text = f'type: "Pooling" pooling_param {{ pool: {pool} {options} }}'
    x = apart(1, 2, 5, 6)
    # Maxima of windows without elements are so large that differences drown in them.
    steep = average or options != "kernel_size: 1 stride: 3"
    check(text, x, reference=lambda x: pooled(x, *sizes, average=average, **named), gradients=steep)


def test_global_pooling():
    text = 'type: "Pooling" pooling_param { pool: AVE global_pooling: true }'
    check(text, normal(2, 3, 4, 5), reference=lambda x: x.mean((2, 3), keepdims=True))


def test_the_second_top_says_where_maxima_were():
    made = layer(
        'type: "Pooling" top: "y" top: "m" pooling_param { kernel_size: 2 stride: 2 }',
        normal(1, 1, 4, 4),
    )
    x = wf.arange(16.0).reshape(1, 1, 4, 4)
    values, places = made(x)
    assert places.tolist() == values.tolist() == [[[[5.0, 7.0], [13.0, 15.0]]]]


def test_stochastic_pooling_draws_by_values():
    text = 'type: "Pooling" pooling_param { pool: STOCHASTIC kernel_size: 2 stride: 2 }'
    x = np.tile(np.array([[1.0, 3.0], [0.0, 4.0]]), (1, 1, 100, 100))
    drawn = layer(text, x)(wf.tensor(x)).numpy()
    found, counts = np.unique(drawn, return_counts=True)
    assert found.tolist() == [1, 3, 4]
    np.testing.assert_allclose(counts / drawn.size, [1 / 8, 3 / 8, 4 / 8], atol=0.03)


def test_stochastic_pooling_is_a_mean_by_values_when_tested():
    text = 'type: "Pooling" pooling_param { pool: STOCHASTIC kernel_size: 2 stride: 2 }'

    def reference(x):
        windows = x.reshape(1, 1, 2, 2, 2, 2)
        return (windows**2).sum((3, 5)) / windows.sum((3, 5))

    check(text, np.abs(normal(1, 1, 4, 4)) + 0.1, reference=reference, phase=1)


@pytest.mark.parametrize("pool", ["MAX", "AVE"])
def test_pyramids(pool):
    def reference(x):
        parts = []
        for level in range(2):
            bins = 2**level
            k = (-(-5 // bins), -(-4 // bins))
            p = ((k[0] * bins - 5 + 1) // 2, (k[1] * bins - 4 + 1) // 2)
            parts.append(pooled(x, k, k, p, average=pool == "AVE").reshape(len(x), -1))
        return np.concatenate(parts, 1)

    check(
        f'type: "SPP" spp_param {{ pyramid_height: 2 pool: {pool} }}',
        apart(2, 1, 5, 4),
        reference=reference,
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "Filter dimensions cannot be zero"),
        ("kernel_size: 2 kernel_h: 2", "kernel_size OR kernel_h, kernel_w"),
        ("kernel_size: 2 pad: 2", "pad .* must be smaller than the kernel"),
        ("kernel_size: 2 pad: 1 pool: STOCHASTIC", "Padding implemented only for average and max"),
        ("global_pooling: true kernel_size: 3", "With Global_pooling: true Filter size cannot"),
        ("kernel_size: 2 stride: 0", "stride dimensions cannot be zero"),
        ("kernel_size: 9", "does not fit into"),
    ],
)
def test_what_is_refused(options, message):
    with pytest.raises(CaffeError, match=message):
        layer(f'name: "p" type: "Pooling" pooling_param {{ {options} }}', normal(1, 1, 4, 4))
