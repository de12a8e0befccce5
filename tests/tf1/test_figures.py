"""What operations, gradients and training runs compute, against figures of TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest

import weft.tf1 as tf

from .cases import CASES
from .make_figures import FIGURES
from .training_cases import OPTIMIZERS, trained

KNOWN = np.load(FIGURES)


def check(name, values):
    wanted = [KNOWN[f"{name}/{i}"] for i in range(len(values))]
    assert f"{name}/{len(values)}" not in KNOWN
    for i, (value, figure) in enumerate(zip(values, wanted, strict=True)):
        assert np.shape(value) == figure.shape, (name, i)
        assert np.asarray(value).dtype == figure.dtype, (name, i)
        np.testing.assert_allclose(value, figure, rtol=3e-5, atol=3e-5, err_msg=f"{name}/{i}")


@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients_are_those_of_tensorflow(name):
    with tf.Graph().as_default():
        fetches = CASES[name](tf)
        with tf.Session() as session:
            check(name, session.run(fetches))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_losses_and_weights_of_training_are_those_of_tensorflow(name):
    with tf.Graph().as_default():
        check(f"train_{name}", trained(tf, name))


def test_static_shapes_are_those_of_the_values():
    for function in CASES.values():
        with tf.Graph().as_default():
            fetches = function(tf)
            with tf.Session() as session:
                for tensor, value in zip(fetches, session.run(fetches), strict=True):
                    assert tensor.shape.is_compatible_with(np.shape(value)), tensor
                    assert tensor.dtype == np.asarray(value).dtype, tensor
