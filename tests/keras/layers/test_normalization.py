"""Normalisation with Keras's momentum, epsilon and variance."""

import numpy as np
import pytest

from weft.core.errors import WeftError
from weft.keras import layers


@pytest.mark.parametrize("shape", [(6, 3), (4, 5, 3), (2, 4, 4, 3)])
def test_moving_statistics_are_those_of_keras(shape):
    x = np.random.default_rng(0).normal(2.0, 3.0, shape).astype("f")
    layer = layers.BatchNormalization(momentum=0.9, epsilon=0.5)
    made = layer(x, training=True).detach().numpy()
    axes = tuple(range(len(shape) - 1))
    mean, variance = x.mean(axes), x.var(axes)
    np.testing.assert_allclose(made, (x - mean) / np.sqrt(variance + 0.5), rtol=1e-4, atol=1e-5)
    gamma, beta, moving_mean, moving_variance = layer.get_weights()
    assert (gamma == 1).all()
    assert (beta == 0).all()
    np.testing.assert_allclose(moving_mean, 0.1 * mean, rtol=1e-4)
    np.testing.assert_allclose(moving_variance, 0.9 + 0.1 * variance, rtol=1e-4)
    after = layer(x).detach().numpy()
    np.testing.assert_allclose(
        after, (x - moving_mean) / np.sqrt(moving_variance + 0.5), rtol=1e-4, atol=1e-5
    )


def test_a_frozen_layer_uses_and_keeps_the_moving_statistics():
    x = np.random.default_rng(1).normal(size=(8, 2)).astype("f")
    layer = layers.BatchNormalization(trainable=False)
    made = layer(x, training=True).detach().numpy()
    np.testing.assert_allclose(made, x / np.sqrt(1.001), rtol=1e-5)
    np.testing.assert_array_equal(layer.get_weights()[2], [0, 0])


def test_channels_first_and_without_scale():
    x = np.random.default_rng(2).normal(size=(4, 3, 5, 5)).astype("f")
    layer = layers.BatchNormalization(axis=1, scale=False)
    made = layer(x, training=True).detach().numpy()
    np.testing.assert_allclose(made.mean((0, 2, 3)), np.zeros(3), atol=1e-5)
    assert [w.name for w in layer.weights] == ["beta", "moving_mean", "moving_variance"]


def test_layer_normalisation():
    x = np.random.default_rng(3).normal(size=(4, 6)).astype("f")
    expected = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-3)
    made = layers.LayerNormalization()(x).detach().numpy()
    np.testing.assert_allclose(made, expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(WeftError, match="last axes"):
        layers.LayerNormalization(axis=1)(np.zeros((2, 3, 4), "f"))
