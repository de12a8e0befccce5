"""Convolutions and poolings in Keras's layouts, against sums written out."""

import numpy as np
import pytest

import weft as wf
from weft import nn
from weft.core.errors import WeftError
from weft.keras import layers


def by_hand(x, kernel, stride, padding):
    """Return a convolution of (N, H, W, C) by (kh, kw, C, F), as Keras defines it."""
    kh, kw = kernel.shape[:2]
    sizes = x.shape[1:3]
    if padding == "same":
        totals = [
            max((-(-n // stride) - 1) * stride + k - n, 0)
            for n, k in zip(sizes, (kh, kw), strict=True)
        ]
        x = np.pad(x, [(0, 0), *[(t // 2, t - t // 2) for t in totals], (0, 0)])
    rows = range(0, x.shape[1] - kh + 1, stride)
    columns = range(0, x.shape[2] - kw + 1, stride)
    return np.stack(
        [
            np.stack(
                [np.einsum("nijc,ijcf->nf", x[:, i : i + kh, j : j + kw], kernel) for j in columns],
                axis=1,
            )
            for i in rows
        ],
        axis=1,
    )


@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize(("stride", "size"), [(1, 3), (2, 3), (2, 2), (3, 4)])
def test_convolution_of_images(padding, stride, size):
    rng = np.random.default_rng(0)
    x, kernel = rng.normal(size=(2, 7, 8, 3)), rng.normal(size=(size, size, 3, 4))
    layer = layers.Conv2D(4, size, strides=stride, padding=padding)
    layer(x)
    layer.set_weights([kernel, np.ones(4)])
    expected = by_hand(x, kernel, stride, padding) + 1
    np.testing.assert_allclose(layer(x).detach().numpy(), expected, rtol=1e-4, atol=1e-4)


def test_convolution_is_that_of_weft_with_axes_moved():
    layer = layers.Conv2D(5, (3, 2), activation="relu", padding="same")
    x = np.random.default_rng(1).normal(size=(2, 6, 6, 3)).astype("f")
    made = layer(x).detach().numpy()
    plain = nn.Conv2d(3, 5, (3, 2), padding="same")
    kernel, bias = layer.get_weights()
    assert kernel.shape == (3, 2, 3, 5)
    plain.load_state_dict({"weight": kernel.transpose(3, 2, 0, 1), "bias": bias})
    expected = wf.relu(plain(wf.tensor(x.transpose(0, 3, 1, 2)))).detach().numpy()
    np.testing.assert_allclose(made, expected.transpose(0, 2, 3, 1), rtol=1e-6)
    first = layers.Conv2D(
        5, (3, 2), activation="relu", padding="same", data_format="channels_first"
    )
    first(x.transpose(0, 3, 1, 2))
    first.set_weights([kernel, bias])
    np.testing.assert_allclose(first(x.transpose(0, 3, 1, 2)).detach().numpy(), expected, rtol=1e-6)


def test_causal_convolution_sees_the_past_alone():
    layer = layers.Conv1D(1, 3, padding="causal", use_bias=False)
    x = np.zeros((1, 6, 1), "f")
    x[0, 3] = 1
    layer(x)
    layer.set_weights([np.array([1.0, 2.0, 3.0]).reshape(3, 1, 1)])
    np.testing.assert_allclose(layer(x).detach().numpy().ravel(), [0, 0, 0, 3, 2, 1])


def test_depthwise_and_separable():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(2, 5, 5, 3)).astype("f")
    layer = layers.DepthwiseConv2D(3, depth_multiplier=2, use_bias=False)
    layer(x)
    kernel = rng.normal(size=(3, 3, 3, 2)).astype("f")
    layer.set_weights([kernel])
    np.testing.assert_array_equal(layer.get_weights()[0], kernel)
    for channel in range(3):
        one = by_hand(
            x[..., channel : channel + 1], kernel[:, :, channel : channel + 1], 1, "valid"
        )
        made = layer(x).detach().numpy()[..., 2 * channel : 2 * channel + 2]
        np.testing.assert_allclose(made, one, rtol=1e-4, atol=1e-5)
    separable = layers.SeparableConv2D(4, 3, padding="same")
    assert separable(x).shape == (2, 5, 5, 4)
    shapes = [w.shape for w in separable.get_weights()]
    assert shapes == [(3, 3, 3, 1), (1, 1, 3, 4), (4,)]


@pytest.mark.parametrize("padding", ["valid", "same"])
@pytest.mark.parametrize(("stride", "size"), [(1, 3), (2, 3), (3, 2)])
def test_transposed_convolution_is_the_gradient_of_the_convolution(padding, stride, size):
    rng = np.random.default_rng(3)
    small = rng.normal(size=(1, 4, 4, 2)).astype("f")
    layer = layers.Conv2DTranspose(3, size, strides=stride, padding=padding, use_bias=False)
    made = layer(small)
    length = 4 * stride if padding == "same" else 4 * stride + max(size - stride, 0)
    assert made.shape == (1, length, length, 3)
    forward = layers.Conv2D(2, size, strides=stride, padding=padding, use_bias=False)
    x = wf.tensor(rng.normal(size=made.shape).astype("f"), requires_grad=True)
    forward(x)
    forward.set_weights(layer.get_weights())  # (window, 3, 2): outputs of one, inputs of the other
    output = forward(x)
    kept = output[:, :4, :4]
    kept.backward(wf.tensor(small))
    np.testing.assert_allclose(made.detach().numpy(), x.grad.numpy(), rtol=1e-4, atol=1e-4)


def test_sizes_that_are_wrong_or_unknown():
    with pytest.raises(WeftError, match="takes inputs of 4 dimensions"):
        layers.Conv2D(2, 3)(np.zeros((2, 5, 5), "f"))
    with pytest.raises(WeftError, match="padding is one of valid, same"):
        layers.Conv2D(2, 3, padding="full")
    with pytest.raises(WeftError, match="data_format"):
        layers.MaxPooling2D(data_format="NHWC")


def test_training_in_a_model_moves_only_what_is_trainable():
    layer = layers.Conv2D(2, 3)
    layer(np.zeros((1, 5, 5, 1), "f"))
    layer.trainable = False
    assert [w.trainable for w in layer.weights] == [False, False]
