"""Layers that join inputs."""

import numpy as np
import pytest

from weft.core.errors import WeftError
from weft.keras import layers

A, B = np.array([[1.0, 5.0]], "f"), np.array([[3.0, 2.0]], "f")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Add", [[4, 7]]),
        ("Subtract", [[-2, 3]]),
        ("Multiply", [[3, 10]]),
        ("Average", [[2, 3.5]]),
        ("Maximum", [[3, 5]]),
        ("Minimum", [[1, 2]]),
        ("Concatenate", [[1, 5, 3, 2]]),
    ],
)
def test_joins(name, expected):
    np.testing.assert_array_equal(getattr(layers, name)()([A, B]).numpy(), expected)
    np.testing.assert_array_equal(getattr(layers, name.lower())([A, B]).numpy(), expected)


def test_dot_products():
    np.testing.assert_array_equal(layers.Dot(axes=1)([A, B]).numpy(), [[13]])
    same = layers.Dot(axes=1, normalize=True)([A, A]).numpy()
    np.testing.assert_allclose(same, [[1]], rtol=1e-6)
    x = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("f")
    y = np.random.default_rng(1).normal(size=(2, 5, 4)).astype("f")
    made = layers.Dot(axes=(2, 2))([x, y]).numpy()
    np.testing.assert_allclose(made, np.einsum("nik,njk->nij", x, y), rtol=1e-4, atol=1e-5)


def test_one_input_is_none_to_join():
    with pytest.raises(WeftError, match="two or more inputs"):
        layers.Add()(A)
    with pytest.raises(WeftError, match="two inputs"):
        layers.Subtract()([A, A, A])
