"""Layers that rearrange, repeat, pad and crop."""

import numpy as np
import pytest

from weft.core.errors import WeftError
from weft.keras import layers

X = np.arange(24.0, dtype="f").reshape(1, 2, 3, 4)


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (layers.Flatten(), X.reshape(1, 24)),
        (layers.Flatten("channels_first"), X.transpose(0, 2, 3, 1).reshape(1, 24)),
        (layers.Reshape((4, -1)), X.reshape(1, 4, 6)),
        (layers.Permute((3, 1, 2)), X.transpose(0, 3, 1, 2)),
        (layers.ZeroPadding2D(1), np.pad(X, [(0, 0), (1, 1), (1, 1), (0, 0)])),
        (
            layers.ZeroPadding2D(((1, 0), (0, 2))),
            np.pad(X, [(0, 0), (1, 0), (0, 2), (0, 0)]),
        ),
        (layers.Cropping2D(((1, 0), (1, 1))), X[:, 1:, 1:-1]),
        (layers.UpSampling2D((2, 1)), X.repeat(2, axis=1)),
    ],
)
def test_images(layer, expected):
    np.testing.assert_array_equal(layer(X).numpy(), expected)
    made = type(layer).from_config(layer.get_config())
    np.testing.assert_array_equal(made(X).numpy(), expected)


def test_sequences():
    x = X[0]
    np.testing.assert_array_equal(layers.RepeatVector(3)(x[:, 0]).numpy(), x[:, :1].repeat(3, 1))
    padded = layers.ZeroPadding1D((1, 2))(x).numpy()
    np.testing.assert_array_equal(padded, np.pad(x, [(0, 0), (1, 2), (0, 0)]))
    np.testing.assert_array_equal(layers.Cropping1D(1)(x).numpy(), x[:, 1:-1])
    np.testing.assert_array_equal(layers.UpSampling1D(2)(x).numpy(), x.repeat(2, 1))


def test_bad_options():
    with pytest.raises(WeftError, match="in some order"):
        layers.Permute((0, 1))
    with pytest.raises(WeftError, match="2 of them, or pairs"):
        layers.ZeroPadding2D((1, 2, 3))
