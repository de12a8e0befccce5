"""Symbolic tensors: shapes that calls tell, and what has no value."""

import numpy as np
import pytest

from weft import keras
from weft.core.errors import WeftError
from weft.keras import layers


def test_calls_tell_shapes_and_make_weights():
    x = keras.Input((28, 28, 1))
    conv = layers.Conv2D(8, 3, strides=2, padding="same")
    made = conv(x)
    assert (x.shape, made.shape) == ((None, 28, 28, 1), (None, 14, 14, 8))
    assert conv.count_params() == 80
    assert layers.GlobalAveragePooling2D()(made).shape == (None, 8)
    assert (conv.input, conv.output) == (x, made)


def test_sizes_may_be_unknown_and_batches_fixed():
    steps = keras.Input((None, 4), batch_size=3)
    assert layers.LSTM(5, return_sequences=True)(steps).shape == (3, None, 5)
    words = keras.Input((None,), dtype="int64")
    made = layers.Embedding(10, 6)(words)
    assert made.shape == (None, None, 6)
    assert layers.GlobalMaxPooling1D()(made).shape == (None, 6)


def test_layers_with_several_outputs():
    output, h, c = layers.LSTM(5, return_state=True)(keras.Input((7, 2)))
    assert [t.shape for t in (output, h, c)] == [(None, 5)] * 3
    assert [t.index for t in (output, h, c)] == [0, 1, 2]


def test_there_is_no_value():
    x = keras.Input((3,))
    with pytest.raises(WeftError, match="has no value"):
        bool(x)
    with pytest.raises(WeftError, match=r"layers\.Lambda"):
        np.asarray(x)
    with pytest.raises(WeftError, match="do not go together"):
        layers.Add()([x, np.zeros((1, 3))])
    with pytest.raises(WeftError, match="without the batch"):
        keras.Input()
    with pytest.raises(WeftError, match="positive numbers"):
        keras.Input((0,))
    with pytest.raises(WeftError, match="without inputs"):
        layers.Dense(3)()
    with pytest.raises(TypeError, match=r"takes tensors or arrays. Received: str 'a'"):
        layers.Dense(3)("a")


def test_models_check_the_sizes_that_their_inputs_told():
    x = keras.Input((3, None), name="x")
    model = keras.Model(x, x * 2)
    assert model(np.ones((4, 3, 7), "f")).shape == (4, 3, 7)
    with pytest.raises(
        WeftError, match=r"'x' has the shape \(None, 3, None\). Received: \(4, 2, 7\)"
    ):
        model(np.ones((4, 2, 7), "f"))


def test_errors_of_shapes_are_those_of_the_call():
    x = keras.Input((3,))
    with pytest.raises(WeftError, match="4 dimensions"):
        layers.Conv2D(2, 3)(x)
    dense = layers.Dense(2)
    dense(x)
    with pytest.raises(WeftError):
        dense(keras.Input((4,)))


def test_arithmetic_is_noted():
    x, y = keras.Input((2,), name="x"), keras.Input((2,), name="y")
    model = keras.Model([x, y], -(2.0 * x + y) / 4 - (1 - x) ** 2 * y)
    a, b = np.array([[1.0, -2.0]], "f"), np.array([[3.0, 0.5]], "f")
    expected = -(2 * a + b) / 4 - (1 - a) ** 2 * b
    np.testing.assert_allclose(model([a, b]).numpy(), expected, rtol=1e-6)
    again = keras.models.model_from_json(model.to_json())
    np.testing.assert_allclose(again([a, b]).numpy(), expected, rtol=1e-6)
    with pytest.raises(TypeError, match="unsupported operand"):
        _ = x + "y"
    with pytest.raises(WeftError, match="Lambda"):
        _ = x[:, 0]
