"""Normalisation: running statistics, stability, and gradients where norms vanish."""

from __future__ import annotations

import numpy as np
import pytest

from tests.ops import conformance as c  # noqa: F401  (imports every operator)
from weft.autodiff.reverse import gradients
from weft.core.op import F
from weft.core.tensor import make_leaf


def tensor(data, requires_grad=False, dtype=np.float64):
    return make_leaf(np.array(data, dtype), requires_grad, None)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


# -- batch_norm -----------------------------------------------------------------------------------


def test_training_moves_running_statistics_by_the_unbiased_variance(rng):
    x, mean, var = rng.normal(size=(4, 3, 5)), rng.normal(size=3), rng.uniform(1, 2, 3)
    running_mean, running_var = tensor(mean), tensor(var)
    F.batch_norm(tensor(x), running_mean, running_var, training=True, momentum=0.3)
    rows = x.transpose(1, 0, 2).reshape(3, -1)
    np.testing.assert_allclose(running_mean.numpy(), 0.7 * mean + 0.3 * rows.mean(axis=1))
    np.testing.assert_allclose(running_var.numpy(), 0.7 * var + 0.3 * rows.var(axis=1, ddof=1))


def test_evaluation_leaves_running_statistics_alone(rng):
    running_mean, running_var = tensor(np.zeros(3)), tensor(np.ones(3))
    y = F.batch_norm(tensor(rng.normal(size=(4, 3))), running_mean, running_var)
    assert not running_mean.numpy().any()
    assert (running_var.numpy() == 1).all()
    assert y.shape == (4, 3)


def test_running_statistics_are_outside_of_every_gradient(rng):
    x = tensor(rng.normal(size=(4, 3)), requires_grad=True)
    running_mean, running_var = tensor(np.zeros(3)), tensor(np.ones(3))
    earlier = running_mean * 1.0
    F.batch_norm(x, running_mean, running_var, training=True)
    assert not running_mean.requires_grad
    assert not running_var.requires_grad
    assert not earlier.numpy().any()  # a value taken before the update stays as it was


def test_frozen_parameters_do_not_freeze_statistics(rng):
    running_mean, running_var = tensor(np.zeros(3)), tensor(np.ones(3))
    weight, bias = tensor(np.ones(3)), tensor(np.zeros(3))
    F.batch_norm(tensor(rng.normal(size=(4, 3)) + 5), running_mean, running_var, weight, bias, True)
    assert (running_mean.numpy() > 0.1).all()


def test_training_output_does_not_depend_on_running_statistics(rng):
    x = tensor(rng.normal(size=(4, 3)))
    with_running = F.batch_norm(x, tensor(np.ones(3)), tensor(np.ones(3)), training=True)
    np.testing.assert_array_equal(with_running.numpy(), F.batch_norm(x, training=True).numpy())


def test_running_statistics_keep_their_dtype(rng):
    running_mean, running_var = tensor(np.zeros(3), dtype=np.float32), tensor(np.ones(3))
    x = tensor(rng.normal(size=(4, 3)), dtype=np.float16)
    y = F.batch_norm(x, running_mean, running_var, training=True)
    assert running_mean.dtype == np.float32
    assert y.dtype == np.float16


def test_instance_norm_follows_the_mean_of_its_samples(rng):
    x = rng.normal(size=(4, 3, 5))
    running_mean, running_var = tensor(np.zeros(3)), tensor(np.ones(3))
    F.instance_norm(tensor(x), running_mean, running_var, momentum=0.2)
    np.testing.assert_allclose(running_mean.numpy(), 0.2 * x.mean(axis=2).mean(axis=0))
    unbiased = x.var(axis=2, ddof=1).mean(axis=0)
    np.testing.assert_allclose(running_var.numpy(), 0.8 + 0.2 * unbiased)


# -- stability ------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_layer_norm_survives_a_large_mean(rng, offset):
    x = rng.normal(size=(3, 64)) * 100 + offset
    y = F.layer_norm(tensor(x, dtype=np.float32), 64).numpy()
    assert y.dtype == np.float32
    np.testing.assert_allclose(y.mean(axis=1), 0, atol=5e-3)
    np.testing.assert_allclose(y.std(axis=1), 1, atol=5e-3)


def test_constant_rows_normalise_to_zero():
    x = tensor(np.full((2, 4), 7.0), requires_grad=True)
    y = F.layer_norm(x, 4)
    assert not y.numpy().any()
    (g,) = gradients([F.sum(y * y)], [x])
    assert not g.numpy().any()


def test_rms_norm_of_zeros_has_a_finite_gradient():
    x = tensor(np.zeros((2, 4)), requires_grad=True)
    (g,) = gradients([F.sum(F.rms_norm(x, 4))], [x])
    assert np.isfinite(g.numpy()).all()


def test_normalize_of_zeros_has_a_finite_gradient():
    x = tensor(np.zeros((2, 4)), requires_grad=True)
    (g,) = gradients([F.sum(F.normalize(x))], [x])
    assert np.isfinite(g.numpy()).all()
    y = tensor(np.zeros((2, 4)), requires_grad=True)
    (g,) = gradients([F.sum(F.cosine_similarity(y, tensor(np.ones((2, 4)))))], [y])
    assert np.isfinite(g.numpy()).all()


def test_momentum_and_eps_must_be_numbers(rng):
    x = tensor(rng.normal(size=(4, 3)))
    with pytest.raises(TypeError, match="Received: 'a'"):
        F.batch_norm(x, training=True, eps="a")
    with pytest.raises(TypeError, match=r"momentum .*Received: None"):
        F.batch_norm(x, tensor(np.zeros(3)), tensor(np.ones(3)), training=True, momentum=None)
