"""Smooth activations: relative errors in float32, also where naive formulas cancel."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.core.op import F

X = np.concatenate([np.linspace(-20, 20, 8_001), [1e-4, -3e-3, 0.02, 0.4]]).astype(np.float32)
UNIT = 2.0**-24


def shrunk(x):
    """Return x - tanh(x) in float64: by its series where that cancels."""
    series = x**3 * (1 / 3 - x**2 * (2 / 15 - x**2 * (17 / 315 - x**2 * 62 / 2835)))
    return np.where(np.abs(x) < 0.03, series, x - np.tanh(x))


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def sigmoid(x):
    return np.exp(-softplus(-x))


EXACT = {
    "sigmoid": sigmoid,
    "log_sigmoid": lambda x: -softplus(-x),
    "silu": lambda x: x * sigmoid(x),
    "softplus": softplus,
    "mish": lambda x: x * np.tanh(softplus(x)),
    "tanhshrink": shrunk,
    "softsign": lambda x: x / (1 + np.abs(x)),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
}


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("name", EXACT)
def test_smooth_activations_are_within_eight_units(name, compiled):
    x, fn = wf.tensor(X), getattr(F, name)
    found = (wf.compile(fn, x) if compiled else fn)(x).numpy()
    np.testing.assert_allclose(found, EXACT[name](X.astype(np.float64)), rtol=8 * UNIT)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_and_its_slope_far_below_zero(approximate, compiled):
    x = X[(X < -1) & (X > -9)]

    def both(x):
        slope = wf.grad(lambda x: F.gelu(x, approximate=approximate).sum())(x)
        return F.gelu(x, approximate=approximate), slope

    t = wf.tensor(x)
    found = (wf.compile(both, t) if compiled else both)(t)
    wide = x.astype(np.float64)
    if approximate == "none":
        cdf = F.normal_cdf(wf.tensor(wide)).numpy()
        slope = cdf + wide * np.exp(wide * wide / -2) / np.sqrt(2 * np.pi)
    else:
        inner = np.sqrt(2 / np.pi) * (wide + 0.044715 * wide**3)
        cdf = sigmoid(2 * inner)
        change = np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * wide**2)
        slope = cdf + wide * 2 * cdf * (1 - cdf) * change
    bound = (8 + 3 * wide**2) * UNIT
    assert np.all(np.abs(found[0].numpy() - wide * cdf) <= bound * np.abs(wide * cdf))
    assert np.all(np.abs(found[1].numpy() - slope) <= 8 * bound * np.abs(slope))


@pytest.mark.parametrize("compiled", [False, True])
def test_slopes_of_huge_values_are_their_limits(compiled):
    x = wf.tensor(np.array([-1e30, 1e30, -300.0, 300.0], np.float32))

    def slope(x):
        return wf.grad(lambda x: F.gelu(x, approximate="tanh").sum())(x)

    assert (wf.compile(slope, x) if compiled else slope)(x).tolist() == [0.0, 1.0, 0.0, 1.0]


@pytest.mark.parametrize("compiled", [False, True])
def test_sinc_is_zero_at_whole_numbers_and_finite_beyond(compiled):
    x = wf.tensor(np.array([0.0, 1.0, -2.0, 1e6, 3e38, 2.5, -0.5], np.float32))

    def both(x):
        return F.sinc(x), wf.grad(lambda x: F.sinc(x).sum())(x)

    value, slope = (wf.compile(both, x) if compiled else both)(x)
    expected = [1.0, 0.0, 0.0, 0.0, 0.0, 0.4 / np.pi, 2 / np.pi]
    np.testing.assert_allclose(value.numpy(), expected, rtol=3e-7)
    slopes = [0.0, -1.0, -0.5, 1e-6, 1 / 3e38, -0.16 / np.pi, 4 / np.pi]
    np.testing.assert_allclose(slope.numpy(), slopes, rtol=1e-6, atol=1e-7)
