"""Pooling, with Keras's meaning of padding="same"."""

import numpy as np
import pytest

from weft.keras import layers

IMAGE = np.arange(25.0, dtype="f").reshape(1, 5, 5, 1)


def test_windows_of_images():
    np.testing.assert_array_equal(
        layers.MaxPooling2D()(IMAGE).numpy()[0, :, :, 0], [[6, 8], [16, 18]]
    )
    np.testing.assert_array_equal(
        layers.AveragePooling2D((2, 2), strides=1)(IMAGE).numpy()[0, :2, :2, 0], [[3, 4], [8, 9]]
    )


def test_same_pads_at_the_end_and_counts_for_nothing():
    pooled = layers.MaxPooling2D(2, padding="same")(-IMAGE).numpy()[0, :, :, 0]
    np.testing.assert_array_equal(pooled, [[0, -2, -4], [-10, -12, -14], [-20, -22, -24]])
    means = layers.AveragePooling2D(2, padding="same")(IMAGE).numpy()[0, :, :, 0]
    np.testing.assert_allclose(means, [[3, 5, 6.5], [13, 15, 16.5], [20.5, 22.5, 24]])


def test_steps_of_sequences():
    x = np.arange(6.0, dtype="f").reshape(1, 6, 1)
    np.testing.assert_array_equal(layers.MaxPooling1D(2)(x).numpy().ravel(), [1, 3, 5])
    np.testing.assert_array_equal(layers.AveragePooling1D(3)(x).numpy().ravel(), [1, 4])


@pytest.mark.parametrize(("kind", "expected"), [("Average", 12.0), ("Max", 24.0)])
def test_all_positions(kind, expected):
    layer = getattr(layers, f"Global{kind}Pooling2D")
    np.testing.assert_array_equal(layer()(IMAGE).numpy(), [[expected]])
    assert layer(keepdims=True)(IMAGE).shape == (1, 1, 1, 1)
    flat = getattr(layers, f"Global{kind}Pooling1D")()(IMAGE[0])
    assert flat.shape == (5, 1)
    first = layer(data_format="channels_first")(IMAGE.transpose(0, 3, 1, 2))
    np.testing.assert_array_equal(first.numpy(), [[expected]])
