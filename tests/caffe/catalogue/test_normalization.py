"""Normalisation, scales and shifts against loops and sums."""

import numpy as np
import pytest

import weft as wf
from weft.caffe.errors import CaffeError

from .checking import check, layer, normal

X = normal(2, 5, 4, 3)


def test_lrn_across_channels():
    def reference(x):
        y = np.zeros_like(x)
        for c in range(x.shape[1]):
            near = x[:, max(c - 1, 0) : c + 2]
            y[:, c] = x[:, c] / (2 + 0.5 / 3 * (near**2).sum(1)) ** 0.75
        return y

    text = 'type: "LRN" lrn_param { local_size: 3 alpha: 0.5 beta: 0.75 k: 2 }'
    check(text, X, reference=reference)


def test_lrn_within_channels_divides_by_the_whole_window_and_takes_no_k():
    def reference(x):
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))) ** 2
        y = np.zeros_like(x)
        for i, j in np.ndindex(*x.shape[2:]):
            mean = padded[:, :, i : i + 3, j : j + 3].sum((2, 3)) / 9
            y[:, :, i, j] = x[:, :, i, j] * (1 + 0.5 * mean) ** -0.75
        return y

    text = 'type: "LRN" lrn_param { local_size: 3 alpha: 0.5 k: 9 norm_region: WITHIN_CHANNEL }'
    check(text, X, reference=reference)


@pytest.mark.parametrize("shape", [(3, 2, 2, 2), (4, 3), (5,)])
def test_batches_are_normalised_by_their_own_statistics(shape):
    axes = tuple(i for i in range(len(shape)) if i != 1 or len(shape) == 1)

    def reference(x, *_):
        centred = x - x.mean(axes, keepdims=True)
        return centred / np.sqrt((centred**2).mean(axes, keepdims=True) + 1e-5)

    check('type: "BatchNorm"', normal(*shape), reference=reference)


def test_statistics_gather_as_sums_that_fade():
    made = layer('type: "BatchNorm" batch_norm_param { moving_average_fraction: 0.9 }', X)
    for spec in made.blob_specs:
        made.__dict__[spec.name].zero_()
    sums = [np.zeros(5), np.zeros(5), np.zeros(1)]
    for _ in range(3):
        x = normal(2, 5, 4, 3)
        made(wf.tensor(x))
        new = x.mean((0, 2, 3)), x.var((0, 2, 3), ddof=1), np.ones(1)
        sums = [0.9 * old + value for old, value in zip(sums, new, strict=True)]
    for index, expected in enumerate(sums):
        np.testing.assert_allclose(made.blob(index).numpy(), expected, rtol=1e-6)


@pytest.mark.parametrize("factor", [0.0, 2.5])
def test_gathered_statistics_are_divided_by_their_weight(factor):
    made = layer('type: "BatchNorm" batch_norm_param { eps: 0.1 }', X, phase=1)
    made.variance.copy_(made.variance.abs())
    made.scale_factor.copy_(wf.tensor([factor], dtype=wf.float64))

    def reference(x, mean, variance, weight):
        part = 0 if weight[0] == 0 else 1 / weight[0]
        shape = (1, 5, 1, 1)
        spread = np.sqrt(variance * part + 0.1).reshape(shape)
        return (x - (mean * part).reshape(shape)) / spread

    check("", X, reference=reference, made=made, gradients=False)


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("variance", [False, True])
def test_mvn(across, variance):
    axes = (1, 2, 3) if across else (2, 3)

    def reference(x):
        centred = x - x.mean(axes, keepdims=True)
        spread = np.sqrt((centred**2).mean(axes, keepdims=True)) + 1e-9
        return centred / spread if variance else centred

    options = f"across_channels: {across} normalize_variance: {variance}"
    check(f'type: "MVN" mvn_param {{ {options} }}', X, reference=reference)


def test_scales_and_shifts_are_laid_along_axes():
    check('type: "Scale"', X, reference=lambda x, a: x * a[:, None, None])
    text = 'type: "Scale" scale_param { axis: 1 num_axes: 2 bias_term: true }'
    check(text, X, reference=lambda x, a, b: x * a[..., None] + b[..., None])
    check('type: "Scale" scale_param { num_axes: 0 }', X, reference=lambda x, a: x * a)
    every = 'type: "Bias" bias_param { axis: 0 num_axes: -1 }'
    check(every, X, reference=lambda x, b: x + b)
    check('type: "Bias" bias_param { axis: -1 }', X, reference=lambda x, b: x + b)


def test_the_second_bottom_may_be_the_scale():
    text = 'type: "Scale" scale_param { axis: 0 bias_term: true }'
    check(
        text, X, normal(2, 5), reference=lambda x, a, b: x * a[..., None, None] + b[..., None, None]
    )
    check('type: "Bias"', X, normal(5, 4), reference=lambda x, b: x + b[..., None])
    check('type: "Scale"', X, normal(), reference=lambda x, a: x * a)


@pytest.mark.parametrize(
    ("text", "bottoms", "message"),
    [
        ('type: "LRN" lrn_param { local_size: 4 }', (X,), "only supports odd values"),
        ('type: "Scale"', (X, normal(4)), "dimension mismatch between bottom"),
        ('type: "Scale" scale_param { axis: 3 num_axes: 2 }', (X,), "extends past"),
        ('type: "Scale" scale_param { axis: 4 }', (X,), "axis 4 out of range for 4-D Blob"),
    ],
)
def test_what_is_refused(text, bottoms, message):
    with pytest.raises(CaffeError, match=message):
        layer(text, *bottoms)
