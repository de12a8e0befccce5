"""Keras: layers called on an Input, a Model, `fit`."""

from task import BATCH, EPOCHS, HIDDEN, INPUTS, OUTPUTS, RATE, Trained, data, recorded, start

from weft import keras, mean, square


def loss(y_true, y_pred):
    """Return the mean over all elements at once; Keras's own takes that of each row first."""
    return mean(square(y_pred - y_true))


def train() -> Trained:
    """Train by fit of a functional model."""
    inputs = keras.Input((INPUTS,))
    hidden = keras.layers.Dense(HIDDEN, activation="relu")
    output = keras.layers.Dense(OUTPUTS)
    model = keras.Model(inputs, output(hidden(inputs)))
    w1, b1, w2, b2 = start()
    hidden.set_weights([w1.T, b1])
    output.set_weights([w2.T, b2])
    model.compile(keras.optimizers.SGD(RATE), loss)
    model.fit(*data(), batch_size=BATCH, epochs=EPOCHS, shuffle=False, verbose=0)
    (w1, b1), (w2, b2) = hidden.get_weights(), output.get_weights()
    return Trained([w1.T, b1, w2.T, b2], recorded(model._compiled.captures))
