"""Sequential models, with and without the shape of the input."""

import numpy as np
import pytest

from weft import keras
from weft.core.errors import WeftError
from weft.keras import layers

X = np.random.default_rng(0).normal(size=(64, 8, 8, 1)).astype("f")
Y = (X.mean((1, 2, 3)) > 0).astype("f")


def test_a_stack_learns():
    model = keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            layers.Conv2D(4, 3, padding="same", activation="relu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(1, activation="sigmoid"),
        ]
    )
    assert model.output_shape == (None, 1)
    assert model.count_params() == 40 + 16 + 65
    model.compile(keras.optimizers.Adam(0.02), "binary_crossentropy", metrics=["accuracy"])
    history = model.fit(X, Y, epochs=12, batch_size=16, verbose=0).history
    assert history["accuracy"][-1] > 0.9
    assert model.evaluate(X, Y, verbose=0)[0] == pytest.approx(
        keras.losses.BinaryCrossentropy()(Y[:, None], model(X)).item(), rel=1e-4
    )


def test_sizes_may_come_with_the_data():
    model = keras.Sequential()
    model.add(layers.Flatten())
    model.add(layers.Dense(3, activation="relu"))
    model.add(layers.Dense(1))
    with pytest.raises(WeftError, match="shape of its input"):
        _ = model.output_shape
    model.compile("sgd", "mse")
    model.fit(X, Y, verbose=0)
    assert [w.shape for w in model.get_weights()] == [(64, 3), (3,), (3, 1), (1,)]
    model.build((None, 8, 8, 1))
    assert model.output_shape == (None, 1)
    model.pop()
    assert model(X).shape == (64, 3)


def test_stacks_are_layers_too():
    inner = keras.Sequential([layers.Dense(4, input_shape=(6,)), layers.ReLU()], name="inner")
    inputs = keras.Input((6,))
    model = keras.Model(inputs, layers.Dense(2)(inner(inputs)))
    assert model.get_layer("inner") is inner
    assert model.output_shape == (None, 2)
    again = keras.models.model_from_json(model.to_json())
    again.set_weights(model.get_weights())
    x = X[:, :6, 0, 0]
    np.testing.assert_array_equal(model.predict(x, verbose=0), again.predict(x, verbose=0))


def test_bad_stacks():
    with pytest.raises(TypeError, match="takes layers"):
        keras.Sequential([3])
    with pytest.raises(WeftError, match="the name 'a'"):
        keras.Sequential([layers.Dense(1, name="a"), layers.Dense(1, name="a")])
    with pytest.raises(WeftError, match="has no layers"):
        keras.Sequential()(X)
    with pytest.raises(WeftError, match="first layer"):
        keras.Sequential([layers.Dense(1), keras.Input((3,))])
