"""Weight and spectral normalisation: values, gradients, state, copies and removal."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import weft as wf
from weft.autodiff.check import check_grads
from weft.nn.conv import Conv2d
from weft.nn.conv_transpose import ConvTranspose2d
from weft.nn.linear import Linear
from weft.nn.module import Module
from weft.nn.parameter import Parameter
from weft.nn.recurrent import LSTM
from weft.nn.reparametrize import (
    remove_spectral_norm,
    remove_weight_norm,
    spectral_norm,
    weight_norm,
)
from weft.nn.state import functional_call


def array(tensor):
    return tensor.detach().numpy()


def names(module):
    return [name for name, _ in module.named_parameters()]


@pytest.fixture
def rng():
    return np.random.default_rng(0)


# -- weight normalisation ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dim", "shape"),
    [(0, (4, 1, 1, 1)), (1, (1, 3, 1, 1)), (-1, (1, 1, 1, 2)), (None, ())],
)
def test_weight_norm_leaves_the_value_and_splits_it(rng, dim, shape):
    layer = Conv2d(3, 4, 2, dtype=wf.float64)
    before = array(layer.weight)
    assert weight_norm(layer, dim=dim) is layer
    assert layer.weight_g.shape == shape
    np.testing.assert_allclose(array(layer.weight), before, rtol=1e-12)
    assert np.array_equal(array(layer.weight_v), before)
    assert sorted(names(layer)) == ["bias", "weight_g", "weight_v"]
    x = wf.tensor(rng.normal(size=(1, 3, 4, 4)))
    plain = Conv2d(3, 4, 2, dtype=wf.float64)
    plain.load_state_dict({"weight": wf.tensor(before), "bias": layer.bias.detach()})
    np.testing.assert_allclose(array(layer(x)), array(plain(x)), rtol=1e-9)


def test_weight_norm_follows_its_formula_after_a_change(rng):
    layer = weight_norm(Linear(3, 2, dtype=wf.float64))
    g, v = rng.normal(size=(2, 1)), rng.normal(size=(2, 3))
    with wf.no_grad():
        layer.weight_g.copy_(g)
        layer.weight_v.copy_(v)
    expected = g * v / np.linalg.norm(v, axis=1, keepdims=True)
    np.testing.assert_allclose(array(layer.weight), expected)


def test_weight_norm_derivatives(rng):
    layer = weight_norm(Linear(3, 2, dtype=wf.float64))
    weights = {name: rng.normal(size=p.shape) for name, p in layer.named_parameters()}

    def run(x, weights):
        return functional_call(layer, weights, x)

    check_grads(run, (rng.normal(size=(2, 3)), weights), order=2)


def test_weight_norm_of_a_vector_is_its_sign(rng):
    module = Module()
    module.scale = Parameter(wf.tensor([2.0, -3.0]))
    weight_norm(module, "scale")
    assert array(module.scale_g).tolist() == [2.0, 3.0]
    assert array(module.scale).tolist() == [2.0, -3.0]


def test_a_zero_direction_gives_zero_and_no_nan():
    layer = Linear(3, 2)
    with wf.no_grad():
        layer.weight.zero_()
    weight_norm(layer)
    layer(wf.ones(1, 3)).sum().backward()
    assert not array(layer.weight).any()
    assert np.isfinite(layer.weight_v.grad.numpy()).all()
    assert np.isfinite(layer.weight_g.grad.numpy()).all()


def test_several_weights_of_one_module(rng):
    net = LSTM(3, 4, dtype=wf.float64)
    x = wf.tensor(rng.normal(size=(5, 2, 3)))
    expected = array(net(x)[0])
    weight_norm(net, "weight_ih_l0")
    weight_norm(net, "weight_hh_l0")
    spectral = array(net(x)[0])
    np.testing.assert_allclose(spectral, expected, rtol=1e-9)
    remove_weight_norm(net, "weight_ih_l0")
    assert "weight_hh_l0_g" in names(net)
    assert "weight_ih_l0_g" not in names(net)
    np.testing.assert_allclose(array(net(x)[0]), expected, rtol=1e-9)
    remove_weight_norm(net, "weight_hh_l0")
    assert type(net) is LSTM


def test_removal_gives_an_ordinary_layer_back():
    layer = weight_norm(Linear(3, 2))
    with wf.no_grad():
        layer.weight_g.copy_(array(layer.weight_g) * 2)
    value = array(layer.weight)
    assert remove_weight_norm(layer) is layer
    assert type(layer) is Linear
    assert sorted(names(layer)) == ["bias", "weight"]
    assert np.array_equal(array(layer.weight), value)
    assert layer.weight.requires_grad
    layer.weight = Parameter(wf.zeros(2, 3))


def test_a_frozen_weight_stays_frozen():
    layer = Linear(3, 2)
    layer.weight.requires_grad_(False)
    weight_norm(layer)
    assert not layer.weight_g.requires_grad
    assert not layer.weight.requires_grad
    assert not remove_weight_norm(layer).weight.requires_grad


# -- spectral normalisation ----------------------------------------------------------------------


@pytest.mark.parametrize("build", [lambda: Linear(6, 4), lambda: Conv2d(3, 4, 2)])
def test_iteration_finds_the_largest_singular_value(build):
    layer = spectral_norm(build().to(wf.float64), n_power_iterations=300)
    x = wf.zeros(1, 6, dtype=wf.float64) if isinstance(layer, Linear) else wf.zeros(1, 3, 4, 4)
    layer(x.to(wf.float64))
    original = array(layer.weight_orig).reshape(4, -1)
    expected = original / np.linalg.svd(original, compute_uv=False)[0]
    np.testing.assert_allclose(array(layer.weight).reshape(4, -1), expected, rtol=1e-6)


def test_one_call_in_training_makes_the_steps_asked_for(rng):
    layer = spectral_norm(Linear(3, 2, dtype=wf.float64), n_power_iterations=2)
    w, u = array(layer.weight_orig), array(layer.weight_u)
    for _ in range(2):
        v = w.T @ u / np.linalg.norm(w.T @ u)
        u = w @ v / np.linalg.norm(w @ v)
    x = rng.normal(size=(4, 3))
    got = layer(wf.tensor(x))
    np.testing.assert_allclose(array(layer.weight_u), u)
    np.testing.assert_allclose(array(layer.weight_v), v)
    expected = x @ (w / (u @ w @ v)).T + array(layer.bias)
    np.testing.assert_allclose(array(got), expected)


def test_evaluation_and_reading_make_no_steps():
    layer = spectral_norm(Linear(3, 2))
    before = array(layer.weight_u)
    assert array(layer.weight).shape == (2, 3)
    layer.eval()
    layer(wf.ones(1, 3))
    assert np.array_equal(array(layer.weight_u), before)
    layer.train()
    layer(wf.ones(1, 3))
    assert not np.array_equal(array(layer.weight_u), before)


def test_an_earlier_result_keeps_its_singular_vectors():
    layer = spectral_norm(Linear(3, 2, dtype=wf.float64))
    x = wf.ones(1, 3, dtype=wf.float64)
    alone = copy.deepcopy(layer)
    alone(x).sum().backward()
    first = layer(x)
    for _ in range(5):
        layer(x)
    first.sum().backward()
    np.testing.assert_allclose(layer.weight_orig.grad.numpy(), alone.weight_orig.grad.numpy())


def test_spectral_norm_derivatives(rng):
    layer = spectral_norm(Linear(3, 2, dtype=wf.float64)).eval()
    weights = {name: rng.normal(size=p.shape) for name, p in layer.named_parameters()}

    def run(x, weights):
        return functional_call(layer, weights, x)

    check_grads(run, (rng.normal(size=(2, 3)), weights), order=2)


def test_rows_of_a_transposed_convolution_are_its_outputs():
    assert spectral_norm(ConvTranspose2d(3, 4, 2)).weight_u.shape == (4,)
    assert spectral_norm(Conv2d(3, 4, 2)).weight_u.shape == (4,)
    layer = spectral_norm(Conv2d(3, 4, 2), dim=1)
    assert (layer.weight_u.shape, layer.weight_v.shape) == ((3,), (16,))


def test_a_zero_weight_stays_zero():
    layer = Linear(3, 2)
    with wf.no_grad():
        layer.weight.zero_()
    spectral_norm(layer)
    layer(wf.ones(1, 3)).sum().backward()
    assert not array(layer.weight).any()
    assert np.isfinite(layer.weight_orig.grad.numpy()).all()


def test_removal_keeps_the_normalised_value():
    layer = spectral_norm(Linear(3, 2))
    layer(wf.ones(1, 3))
    value = array(layer.weight)
    remove_spectral_norm(layer)
    assert type(layer) is Linear
    assert np.array_equal(array(layer.weight), value)
    assert layer.weight.requires_grad
    assert not list(layer.buffers())
    layer(wf.ones(1, 3))
    assert np.array_equal(array(layer.weight), value)


# -- both ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("normalize", [weight_norm, spectral_norm])
def test_copies_pickles_and_states(normalize, rng):
    layer = normalize(Linear(3, 2))
    x = wf.tensor(rng.normal(size=(4, 3)).astype(np.float32))
    expected = layer(x)  # a computed weight must not hinder copying
    layer.eval()
    expected = array(layer(x))
    fresh = normalize(Linear(3, 2)).eval()
    fresh.load_state_dict(layer.state_dict())
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), fresh):
        assert type(other) is type(layer)
        assert np.array_equal(array(other(x)), expected)
        other.train()
        other(x).sum().backward()
        assert layer.bias.grad is None
        with wf.no_grad():
            other.bias.zero_()
    assert np.array_equal(array(layer(x)), expected)


@pytest.mark.parametrize("normalize", [weight_norm, spectral_norm])
def test_a_normalised_layer_looks_and_trains_like_before(normalize):
    layer = normalize(Linear(3, 2))
    assert isinstance(layer, Linear)
    assert repr(layer) == repr(Linear(3, 2))
    layer.to(wf.float64)
    assert layer(wf.ones(1, 3, dtype=wf.float64)).dtype == wf.float64
    layer(wf.ones(1, 3, dtype=wf.float64)).sum().backward()
    assert all(p.grad is not None for p in layer.parameters())
    with pytest.raises(ValueError, match=r"Linear.weight is computed from weight_"):
        layer.weight = Parameter(wf.zeros(2, 3))


def test_a_refusal_changes_nothing():
    layer = Linear(3, 2)
    layer.weight_v = Parameter(wf.zeros(1))
    for normalize in (weight_norm, spectral_norm):
        with pytest.raises(ValueError, match="an attribute 'weight_v' already"):
            normalize(layer)
    assert names(layer) == ["weight", "bias", "weight_v"]
    assert type(layer) is Linear
    layer(wf.ones(1, 3))


@pytest.mark.parametrize(
    ("build", "error", "match"),
    [
        (lambda: weight_norm(3), TypeError, "weight_norm: expected a module. Received: int"),
        (
            lambda: weight_norm(Linear(3, 2), "wieght"),
            ValueError,
            "no parameter 'wieght'; it has: weight, bias",
        ),
        (lambda: weight_norm(weight_norm(Linear(3, 2))), ValueError, "normalised already"),
        (lambda: spectral_norm(weight_norm(Linear(3, 2))), ValueError, "normalised already"),
        (lambda: weight_norm(Linear(3, 2), dim=2), IndexError, "weight_norm: dim 2 is out of"),
        (lambda: weight_norm(Linear(None, 2)), ValueError, "no shape yet"),
        (lambda: spectral_norm(Linear(3, 2), n_power_iterations=0), ValueError, "at least 1"),
        (lambda: spectral_norm(Linear(3, 2), eps=-1), ValueError, "eps must be at least 0"),
        (lambda: spectral_norm(Linear(3, 2), dim=5), IndexError, "dim 5 is out of range"),
        (lambda: remove_weight_norm(Linear(3, 2)), ValueError, "no weight 'weight' of that"),
        (lambda: remove_spectral_norm(weight_norm(Linear(3, 2))), ValueError, "of that"),
    ],
)
def test_bad_input_is_explained(build, error, match):
    with pytest.raises(error, match=match):
        build()
