"""Epochs of training by Keras's face, beside the same networks of plain modules.

    python benchmarks/keras_face.py

mlp   784-128-64-10 with ReLU, 6,400 samples, batch 64
cnn   two convolutions with ReLU and pooling and a linear layer, 512 images of 28 x 28, batch 64;
      Keras's images have their channels last

Both train by `fit`, compiled, with Adam. They take turns, and a row gives the least times of an
epoch and their ratio. The first epoch, in which code is compiled, is not counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from weft import keras, nn
from weft.keras import layers

ROUNDS = 8


def mlp() -> tuple[Any, Any, Any, Any]:
    """Return both networks, and the inputs of each."""
    inputs = keras.Input((784,))
    hidden = layers.Dense(128, activation="relu")(inputs)
    hidden = layers.Dense(64, activation="relu")(hidden)
    model = keras.Model(inputs, layers.Dense(10)(hidden))
    plain = nn.Sequential(
        *(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
    )
    x = np.random.default_rng(0).normal(size=(6400, 784)).astype("f")
    return model, plain, x, x


def cnn() -> tuple[Any, Any, Any, Any]:
    """Return both networks, and the inputs of each."""
    model = keras.Sequential(
        [
            keras.Input((28, 28, 1)),
            *(layers.Conv2D(16, 3, activation="relu"), layers.MaxPooling2D()),
            *(layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D()),
            *(layers.Flatten(), layers.Dense(10)),
        ]
    )
    plain = nn.Sequential(
        *(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(800, 10)),
    )
    x = np.random.default_rng(0).normal(size=(512, 28, 28, 1)).astype("f")
    return model, plain, x, np.ascontiguousarray(x.transpose(0, 3, 1, 2))


def compare(name: str, make: Callable[[], tuple[Any, Any, Any, Any]]) -> None:
    """Train both by turns, and print a row."""
    model, plain, x, plain_x = make()
    labels = np.random.default_rng(1).integers(0, 10, len(x))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, jit_compile=True)
    plain.compile("adam", "cross_entropy", compile=True)
    best = [float("inf"), float("inf")]
    for number in range(ROUNDS + 1):
        for which, (net, data) in enumerate(((model, x), (plain, plain_x))):
            begin = time.perf_counter()
            net.fit(data, labels, batch_size=64, verbose=0)
            if number:
                best[which] = min(best[which], time.perf_counter() - begin)
    face, other = best
    print(f"{name}: keras {face * 1e3:.1f} ms, plain {other * 1e3:.1f} ms: {face / other:.2f}")


if __name__ == "__main__":
    compare("mlp", mlp)
    compare("cnn", cnn)
