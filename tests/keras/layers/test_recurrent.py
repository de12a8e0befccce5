"""Recurrent layers: Keras's gates written out with NumPy."""

import numpy as np
import pytest

from weft.core.errors import WeftError
from weft.keras import layers

X = np.random.default_rng(0).normal(size=(2, 4, 3)).astype("f")


def sigmoid(x):
    """Return 1 / (1 + exp(-x))."""
    return 1 / (1 + np.exp(-x))


def lstm(x, kernel, recurrent, bias):
    """Return all outputs of Keras's LSTM: gates input, forget, candidate, output."""
    units = recurrent.shape[0]
    h, c, made = np.zeros((len(x), units)), np.zeros((len(x), units)), []
    for t in range(x.shape[1]):
        i, f, g, o = np.split(x[:, t] @ kernel + h @ recurrent + bias, 4, axis=1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        made.append(h)
    return np.stack(made, 1), c


def gru(x, kernel, recurrent, bias):
    """Return all outputs of Keras's GRU (reset_after): gates update, reset, candidate."""
    h, made = np.zeros((len(x), recurrent.shape[0])), []
    for t in range(x.shape[1]):
        xz, xr, xh = np.split(x[:, t] @ kernel + bias[0], 3, axis=1)
        hz, hr, hh = np.split(h @ recurrent + bias[1], 3, axis=1)
        z, r = sigmoid(xz + hz), sigmoid(xr + hr)
        h = z * h + (1 - z) * np.tanh(xh + r * hh)
        made.append(h)
    return np.stack(made, 1)


def drawn(layer):
    """Give a layer random weights, and return them."""
    layer(X)
    rng = np.random.default_rng(1)
    values = [rng.normal(size=w.shape).astype("f") for w in layer.get_weights()]
    layer.set_weights(values)
    for held, value in zip(layer.get_weights(), values, strict=True):
        np.testing.assert_array_equal(held, value)
    return values


def test_lstm():
    layer = layers.LSTM(5, return_sequences=True, return_state=True)
    expected, c = lstm(X, *drawn(layer))
    output, h_last, c_last = layer(X)
    np.testing.assert_allclose(output.detach().numpy(), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(h_last.detach().numpy(), expected[:, -1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(c_last.detach().numpy(), c, rtol=1e-4, atol=1e-5)


def test_lstm_begins_with_a_forget_bias_of_one():
    layer = layers.LSTM(2)
    layer(X)
    kernel, recurrent, bias = layer.get_weights()
    assert (kernel.shape, recurrent.shape) == ((3, 8), (2, 8))
    np.testing.assert_array_equal(bias, [0, 0, 1, 1, 0, 0, 0, 0])
    np.testing.assert_allclose(recurrent @ recurrent.T, np.eye(2), atol=1e-5)
    layer.trainable = False
    layer.trainable = True
    assert len(list(layer.parameters())) == 3


def test_gru():
    layer = layers.GRU(5, return_sequences=True)
    expected = gru(X, *drawn(layer))
    np.testing.assert_allclose(layer(X).detach().numpy(), expected, rtol=1e-4, atol=1e-5)
    last = layers.GRU(5)
    last(X)
    last.set_weights(layer.get_weights())
    np.testing.assert_allclose(last(X).detach().numpy(), expected[:, -1], rtol=1e-4, atol=1e-5)


def test_simple_rnn_from_a_state():
    layer = layers.SimpleRNN(2)
    kernel, recurrent, bias = drawn(layer)
    h = start = np.ones((2, 2), "f")
    for t in range(4):
        h = np.tanh(X[:, t] @ kernel + h @ recurrent + bias)
    made = layer(X, initial_state=start).detach().numpy()
    np.testing.assert_allclose(made, h, rtol=1e-4, atol=1e-5)


def test_both_directions_and_each_step():
    layer = layers.Bidirectional(layers.LSTM(3, return_sequences=True))
    made = layer(X).detach().numpy()
    assert made.shape == (2, 4, 6)
    ahead, behind = layer.get_weights()[:3], layer.get_weights()[3:]
    np.testing.assert_allclose(made[..., :3], lstm(X, *ahead)[0], rtol=1e-4, atol=1e-5)
    reverse = lstm(X[:, ::-1], *behind)[0][:, ::-1]
    np.testing.assert_allclose(made[..., 3:], reverse, rtol=1e-4, atol=1e-5)
    steps = layers.TimeDistributed(layers.Dense(2))
    np.testing.assert_allclose(
        steps(X).detach().numpy(), X @ steps.get_weights()[0], rtol=1e-4, atol=1e-5
    )


def test_what_is_not_served():
    with pytest.raises(WeftError, match="activation='relu' is not served"):
        layers.LSTM(3, activation="relu")
    with pytest.raises(WeftError, match="reset_after"):
        layers.GRU(3, reset_after=False)
    with pytest.raises(WeftError, match="Dropout layer"):
        layers.LSTM(3, dropout=0.2)
    with pytest.raises(WeftError, match="batch, steps, features"):
        layers.LSTM(3)(np.zeros((2, 3), "f"))
    with pytest.raises(WeftError, match="begins with 2 states"):
        layers.LSTM(2)(X, initial_state=[np.zeros((2, 2), "f")])
