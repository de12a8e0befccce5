"""Distributions: densities, draws and divergences."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.chainer import distributions as D


def test_densities_and_draws() -> None:
    wf.manual_seed(0)
    normal = D.Normal(np.array([1.0], "f"), np.array([2.0], "f"))
    assert normal.log_prob(np.array([1.0], "f")).array == pytest.approx(
        -np.log(2 * np.sqrt(2 * np.pi))
    )
    draws = normal.sample(4000).array
    assert draws.shape == (4000, 1)
    assert draws.mean() == pytest.approx(1, abs=0.2)
    coin = D.Bernoulli(logit=np.array([0.0], "f"))
    assert coin.prob(np.array([1.0], "f")).array == pytest.approx(0.5)
    assert set(np.unique(coin.sample(50).array)) <= {0, 1}
    dice = D.Categorical(p=np.full(6, 1 / 6, "f"))
    assert dice.log_prob(np.array(3)).array == pytest.approx(np.log(1 / 6))
    assert dice.entropy.array == pytest.approx(np.log(6))
    even = D.Uniform(np.array([0.0], "f"), np.array([4.0], "f"))
    assert even.log_prob(np.array([1.0], "f")).array == pytest.approx(-np.log(4))


def test_divergences() -> None:
    p = D.Normal(np.array([1.0, 0.0], "f"), log_scale=np.zeros(2, "f"))
    q = D.Normal(np.zeros(2, "f"), np.ones(2, "f"))
    assert D.kl_divergence(p, q).array.tolist() == [0.5, 0]
    both = D.kl_divergence(D.Independent(p, 1), D.Independent(q, 1))
    assert both.array == 0.5
    with pytest.raises(NotImplementedError, match="Bernoulli from Normal is not known"):
        D.kl_divergence(D.Bernoulli(p=np.array([0.5], "f")), q)
    with pytest.raises(ValueError, match="either scale or log_scale"):
        D.Normal(np.zeros(1, "f"))
