"""Divergences against quadrature of their definition."""

import numpy as np
import pytest

import weft as wf
from weft import distributions as d


def double(value):
    return wf.tensor(np.asarray(value, np.float64))


NORMAL = d.Normal(double(0.3), double(0.9))
GAMMA = d.Gamma(double(2.2), double(1.3))
EXPONENTIAL = d.Exponential(double(0.7))
BETA = d.Beta(double(2.5), double(1.7))
GUMBEL = d.Gumbel(double(0.2), double(1.4))
LAPLACE = d.Laplace(double(0.1), double(0.8))
UNIFORM = d.Uniform(double(0.2), double(0.9))
PARETO = d.Pareto(double(0.1), double(2.7))
CONTINUOUS_BERNOULLI = d.ContinuousBernoulli(double(0.3))
OTHERS = {
    d.Normal: d.Normal(double(-0.2), double(1.1)),
    d.Gamma: d.Gamma(double(1.6), double(0.8)),
    d.Exponential: d.Exponential(double(1.1)),
    d.Beta: d.Beta(double(1.4), double(2.1)),
    d.Gumbel: d.Gumbel(double(0.4), double(1.1)),
    d.Laplace: d.Laplace(double(0.4), double(1.1)),
    d.Uniform: d.Uniform(double(-0.1), double(1.3)),
    d.ContinuousBernoulli: d.ContinuousBernoulli(double(0.6)),
    d.Pareto: d.Pareto(double(0.05), double(2.2)),
    d.HalfNormal: d.HalfNormal(double(1.3)),
    d.Cauchy: d.Cauchy(double(0.3), double(1.2)),
    d.InverseGamma: d.InverseGamma(double(2.0), double(1.4)),
}
PAIRS = [
    (p, q)
    for p, kinds in (
        (NORMAL, (d.Normal, d.Gumbel, d.Laplace)),
        (GAMMA, (d.Gamma, d.Exponential, d.Gumbel, d.Normal)),
        (EXPONENTIAL, (d.Exponential, d.Gamma, d.Gumbel, d.Normal)),
        (BETA, (d.Beta, d.Exponential, d.Gamma, d.Normal, d.Uniform, d.ContinuousBernoulli)),
        (GUMBEL, (d.Gumbel, d.Normal)),
        (LAPLACE, (d.Laplace, d.Normal)),
        (
            UNIFORM,
            (
                *(d.Uniform, d.Beta, d.Exponential, d.Gamma, d.Gumbel, d.Normal, d.Pareto),
                d.ContinuousBernoulli,
            ),
        ),
        (PARETO, (d.Pareto, d.Exponential, d.Gamma, d.Normal)),
        (CONTINUOUS_BERNOULLI, (d.ContinuousBernoulli, d.Exponential, d.Normal, d.Uniform)),
        (d.HalfNormal(double(0.8)), (d.HalfNormal,)),
        (d.InverseGamma(double(3.0), double(1.1)), (d.InverseGamma,)),
    )
    for q in (OTHERS[kind] for kind in kinds)
]


def by_quadrature(p, q):
    """Return the divergence as an integral over quantiles or, where there are none, over values."""
    if type(p).icdf is not d.Distribution.icdf:
        count = 100000
        x = p.icdf(double((np.arange(count) + 0.5) / count))
        weights = np.full(count, 1 / count)
    else:
        x, weights = _grid(p)
    return float(((p.log_prob(x) - q.log_prob(x)) * double(weights)).sum())


def _grid(p):
    low, high = (1e-7, 1 - 1e-7) if isinstance(p, d.Beta) else (1e-4, 60.0)
    x = np.linspace(low, high, 400001)
    density = np.exp(p.log_prob(double(x)).numpy())
    return double(x), density * (x[1] - x[0])


@pytest.mark.parametrize(
    ("p", "q"), PAIRS, ids=[f"{type(p).__name__}-{type(q).__name__}" for p, q in PAIRS]
)
def test_pairs(p, q):
    found = float(d.kl_divergence(p, q))
    assert found == pytest.approx(by_quadrature(p, q), rel=2e-3, abs=2e-3)


def test_discrete_pairs():
    k = double(np.arange(200.0))
    for p, q in (
        (d.Poisson(double(3.1)), d.Poisson(double(2.4))),
        (d.Geometric(double(0.4)), d.Geometric(double(0.6))),
    ):
        a, b = p.log_prob(k).numpy(), q.log_prob(k).numpy()
        np.testing.assert_allclose(float(d.kl_divergence(p, q)), (np.exp(a) * (a - b)).sum())
    p, q = d.Bernoulli(double(0.3)), d.Bernoulli(double(0.6))
    expected = 0.3 * np.log(0.5) + 0.7 * np.log(0.7 / 0.4)
    np.testing.assert_allclose(float(d.kl_divergence(p, q)), expected)
    p, q = d.Categorical(double([0.0, 0.4, 0.6])), d.Categorical(double([0.2, 0.3, 0.5]))
    expected = 0.4 * np.log(0.4 / 0.3) + 0.6 * np.log(0.6 / 0.5)
    np.testing.assert_allclose(float(d.kl_divergence(p, q)), expected)


def test_normal_vectors():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(2, 3, 3))
    cov = root @ np.swapaxes(root, 1, 2) + np.eye(3)
    p = d.MultivariateNormal(double(np.ones(3)), double(cov[0]))
    q = d.MultivariateNormal(double(np.zeros(3)), double(cov[1]))
    inverse = np.linalg.inv(cov[1])
    expected = np.trace(inverse @ cov[0]) + inverse.sum() - 3
    expected += np.linalg.slogdet(cov[1])[1] - np.linalg.slogdet(cov[0])[1]
    np.testing.assert_allclose(float(d.kl_divergence(p, q)), expected / 2)
    low = d.LowRankMultivariateNormal(double(np.zeros(3)), double(root[1]), double(np.ones(3)))
    np.testing.assert_allclose(float(d.kl_divergence(p, low)), expected / 2)


def test_of_composed_distributions():
    p, q = d.LogNormal(double(0.1), double(0.5)), d.LogNormal(double(0.4), double(0.9))
    plain = d.kl_divergence(p.base_dist, q.base_dist)
    np.testing.assert_allclose(float(d.kl_divergence(p, q)), float(plain))
    base, other = d.Normal(wf.zeros(3), 1.0), d.Normal(wf.ones(3), 1.0)
    whole = d.kl_divergence(d.Independent(base, 1), d.Independent(other, 1))
    assert float(whole) == pytest.approx(1.5)


def test_what_q_never_takes_is_infinitely_far():
    assert float(d.kl_divergence(NORMAL, GAMMA)) == np.inf
    assert float(d.kl_divergence(OTHERS[d.Uniform], UNIFORM)) == np.inf


def test_unknown_pairs_are_named_and_can_be_declared():
    class Mine(d.Normal):
        pass

    with pytest.raises(NotImplementedError, match="VonMises from Gumbel"):
        d.kl_divergence(GUMBEL, d.VonMises(0.0, 1.0))

    @d.register_kl(Mine, d.Normal)
    def _(p, q):
        return wf.tensor(7.0)

    assert float(d.kl_divergence(Mine(0.0, 1.0), d.Normal(0.0, 1.0))) == 7
    with pytest.raises(TypeError, match="classes of distributions"):
        d.register_kl(int, d.Normal)
