"""Distributions against SciPy: densities, moments, draws; gradients, batches, and bad arguments."""

import numpy as np
import pytest

import weft as wf
from weft import distributions as d

stats = pytest.importorskip("scipy.stats")

A, B, C = 1.3, 2.4, 0.7


def double(value):
    return wf.tensor(np.asarray(value, np.float64))


# The distribution, SciPy's, and where its cdf is known in closed form.
CONTINUOUS = {
    "normal": (d.Normal(double(A), double(B)), stats.norm(A, B), True),
    "log_normal": (d.LogNormal(double(A), double(C)), stats.lognorm(C, scale=np.exp(A)), True),
    "half_normal": (d.HalfNormal(double(B)), stats.halfnorm(scale=B), True),
    "half_cauchy": (d.HalfCauchy(double(B)), stats.halfcauchy(scale=B), True),
    "laplace": (d.Laplace(double(A), double(B)), stats.laplace(A, B), True),
    "cauchy": (d.Cauchy(double(A), double(B)), stats.cauchy(A, B), True),
    "gumbel": (d.Gumbel(double(A), double(B)), stats.gumbel_r(A, B), True),
    "uniform": (d.Uniform(double(A), double(B)), stats.uniform(A, B - A), True),
    "exponential": (d.Exponential(double(B)), stats.expon(scale=1 / B), True),
    "pareto": (d.Pareto(double(A), double(3.5)), stats.pareto(3.5, scale=A), True),
    "generalized_pareto": (
        d.GeneralizedPareto(double(A), double(B), double(0.2)),
        stats.genpareto(0.2, A, B),
        True,
    ),
    "weibull": (d.Weibull(double(A), double(B)), stats.weibull_min(B, scale=A), True),
    "gamma": (d.Gamma(double(A), double(B)), stats.gamma(A, scale=1 / B), True),
    "chi2": (d.Chi2(double(B)), stats.chi2(B), True),
    "inverse_gamma": (d.InverseGamma(double(2.6), double(B)), stats.invgamma(2.6, scale=B), True),
    "beta": (d.Beta(double(A), double(B)), stats.beta(A, B), False),
    "fisher": (d.FisherSnedecor(double(5.0), double(6.0)), stats.f(5, 6), False),
    "student": (d.StudentT(double(3.5), double(A), double(B)), stats.t(3.5, A, B), False),
    "von_mises": (d.VonMises(double(0.3), double(B)), stats.vonmises(B, 0.3), False),
}
DISCRETE = {
    "bernoulli": (d.Bernoulli(double(0.3)), stats.bernoulli(0.3)),
    "geometric": (d.Geometric(double(0.3)), stats.geom(0.3, loc=-1)),
    "binomial": (d.Binomial(9, double(0.3)), stats.binom(9, 0.3)),
    "negative_binomial": (
        d.NegativeBinomial(double(3.5), double(0.3)),
        stats.nbinom(3.5, 0.7),
    ),
    "poisson": (d.Poisson(double(3.7)), stats.poisson(3.7)),
}


@pytest.mark.parametrize("name", list(CONTINUOUS))
def test_continuous_distributions(name):
    ours, theirs, has_cdf = CONTINUOUS[name]
    p = np.array([0.03, 0.3, 0.5, 0.9])
    x = theirs.ppf(p)
    np.testing.assert_allclose(ours.log_prob(double(x)).numpy(), theirs.logpdf(x), rtol=1e-9)
    if has_cdf:
        np.testing.assert_allclose(ours.cdf(double(x)).numpy(), p, rtol=1e-9)
    if type(ours).icdf is not d.Distribution.icdf and has_cdf:
        np.testing.assert_allclose(ours.icdf(double(p)).numpy(), x, rtol=1e-7)
    if name not in ("von_mises", "cauchy"):  # a circular variance, and none
        np.testing.assert_allclose(ours.mean.numpy(), theirs.mean(), rtol=1e-9)
        np.testing.assert_allclose(ours.variance.numpy(), theirs.var(), rtol=1e-9)
    if type(ours).entropy is not d.Distribution.entropy:
        np.testing.assert_allclose(ours.entropy().numpy(), theirs.entropy(), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", list(CONTINUOUS))
def test_draws_have_the_distribution(name):
    ours, theirs, _ = CONTINUOUS[name]
    wf.manual_seed(3)
    drawn = ours.sample((3000,)).numpy()
    if name == "von_mises":
        drawn = np.mod(drawn - 0.3 + np.pi, 2 * np.pi) - np.pi + 0.3
    assert stats.kstest(drawn, theirs.cdf).pvalue > 1e-4


@pytest.mark.parametrize("name", list(DISCRETE))
def test_discrete_distributions(name):
    ours, theirs = DISCRETE[name]
    x = np.arange(2 if name == "bernoulli" else 9)
    np.testing.assert_allclose(ours.log_prob(double(x)).numpy(), theirs.logpmf(x), rtol=1e-9)
    np.testing.assert_allclose(ours.mean.numpy(), theirs.mean(), rtol=1e-9)
    np.testing.assert_allclose(ours.variance.numpy(), theirs.var(), rtol=1e-9)
    if type(ours).entropy is not d.Distribution.entropy:
        np.testing.assert_allclose(ours.entropy().numpy(), theirs.entropy(), rtol=1e-7)
    wf.manual_seed(3)
    drawn = ours.sample((4000,)).numpy()
    found = np.array([(drawn == k).mean() for k in x])
    assert np.abs(found - theirs.pmf(x)).max() < 0.04


def test_kumaraswamy_by_its_quantile():
    ours = d.Kumaraswamy(double(A), double(B))
    p = np.linspace(0.05, 0.95, 7)
    x = ours.icdf(double(p))
    np.testing.assert_allclose(ours.cdf(x).numpy(), p, rtol=1e-12)
    grid = np.linspace(1e-9, 1 - 1e-9, 20001)
    density = np.exp(ours.log_prob(double(grid)).numpy())
    np.testing.assert_allclose(np.trapezoid(density, grid), 1, rtol=1e-4)
    np.testing.assert_allclose(ours.mean.numpy(), np.trapezoid(density * grid, grid), rtol=1e-4)


def test_vectors_and_matrices():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3))
    cov, loc, x = root @ root.T + np.eye(3), rng.normal(size=3), rng.normal(size=(4, 3))
    theirs = stats.multivariate_normal(loc, cov)
    for ours in (
        d.MultivariateNormal(double(loc), double(cov)),
        d.MultivariateNormal(double(loc), precision_matrix=double(np.linalg.inv(cov))),
        d.MultivariateNormal(double(loc), scale_tril=double(np.linalg.cholesky(cov))),
        d.LowRankMultivariateNormal(double(loc), double(root), double(np.ones(3))),
    ):
        np.testing.assert_allclose(ours.log_prob(double(x)).numpy(), theirs.logpdf(x), rtol=1e-9)
        np.testing.assert_allclose(ours.entropy().numpy(), theirs.entropy(), rtol=1e-9)
        np.testing.assert_allclose(ours.precision_matrix.numpy(), np.linalg.inv(cov), rtol=1e-7)
    wishart = d.Wishart(double(4.5), double(cov))
    theirs = stats.wishart(4.5, cov)
    np.testing.assert_allclose(wishart.log_prob(double(cov)).numpy(), theirs.logpdf(cov), rtol=1e-9)
    np.testing.assert_allclose(wishart.entropy().numpy(), theirs.entropy(), rtol=1e-9)
    np.testing.assert_allclose(wishart.mean.numpy(), theirs.mean(), rtol=1e-9)
    drawn = wishart.sample((4000,)).numpy()
    np.testing.assert_allclose(drawn.mean(0), theirs.mean(), atol=1.2)


def test_simplices():
    a, x = np.array([0.8, 2.0, 1.5]), np.array([0.2, 0.5, 0.3])
    ours, theirs = d.Dirichlet(double(a)), stats.dirichlet(a)
    np.testing.assert_allclose(ours.log_prob(double(x)).numpy(), theirs.logpdf(x), rtol=1e-9)
    np.testing.assert_allclose(ours.entropy().numpy(), theirs.entropy(), rtol=1e-9)
    np.testing.assert_allclose(ours.mean.numpy(), theirs.mean(), rtol=1e-9)
    np.testing.assert_allclose(ours.variance.numpy(), theirs.var(), rtol=1e-9)
    counts = d.Multinomial(5, double(x))
    value = np.array([1.0, 3.0, 1.0])
    expected = stats.multinomial(5, x)
    np.testing.assert_allclose(counts.log_prob(double(value)).numpy(), expected.logpmf(value))
    np.testing.assert_allclose(counts.entropy().numpy(), expected.entropy(), rtol=1e-9)
    assert (counts.sample((7,)).sum(-1).numpy() == 5).all()


def test_categories():
    probs = np.array([[0.1, 0.2, 0.7], [0.5, 0.4, 0.1]])
    ours = d.Categorical(double(probs))
    assert (ours.batch_shape, ours.event_shape) == ((2,), ())
    np.testing.assert_allclose(
        ours.log_prob(wf.tensor([2, 0])).numpy(), np.log([0.7, 0.5]), rtol=1e-12
    )
    np.testing.assert_allclose(ours.entropy().numpy(), -(probs * np.log(probs)).sum(-1), rtol=1e-12)
    drawn = ours.sample((5000,)).numpy()
    assert abs((drawn[:, 0] == 2).mean() - 0.7) < 0.03
    assert ours.enumerate_support().shape == (3, 2)
    hot = d.OneHotCategoricalStraightThrough(probs=double(probs))
    assert (hot.sample((4,)).sum(-1).numpy() == 1).all()
    assert d.RelaxedOneHotCategorical(0.5, double(probs)).rsample().shape == (2, 3)


def test_correlations():
    ours = d.LKJCholesky(3, double(1.7))
    factor = ours.sample((500,))
    correlation = (factor @ factor.mT).numpy()
    np.testing.assert_allclose(np.diagonal(correlation, axis1=1, axis2=2), 1, rtol=1e-6)
    # Its density by its definition: det**(eta - 1), and the Jacobian of the factorisation.
    value = factor.numpy()[:2]
    diagonal = np.diagonal(value, axis1=1, axis2=2)
    log_density = 2 * 0.7 * np.log(diagonal).sum(-1) + np.log(diagonal[:, 1])
    found = ours.log_prob(double(value)).numpy()
    np.testing.assert_allclose(found[0] - found[1], log_density[0] - log_density[1], rtol=1e-6)


# -- gradients ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "parameters"),
    [
        (d.Normal, (0.3, 1.2)),
        (d.Gamma, (1.7, 0.6)),
        (d.Beta, (1.2, 2.3)),
        (d.StudentT, (5.0, 0.3, 1.4)),
        (d.InverseGamma, (3.0, 1.2)),
        (d.Gumbel, (0.3, 1.2)),
        (d.Weibull, (1.1, 2.1)),
        (d.FisherSnedecor, (6.0, 9.0)),
    ],
)
def test_gradients_of_draws_are_those_of_the_mean(make, parameters):
    values = [wf.tensor(np.float64(p), requires_grad=True) for p in parameters]
    wf.manual_seed(1)
    make(*values).rsample((20000,)).mean().backward()
    found = [float(v.grad) for v in values]
    again = [wf.tensor(np.float64(p), requires_grad=True) for p in parameters]
    make(*again).mean.backward()
    expected = [0.0 if v.grad is None else float(v.grad) for v in again]
    np.testing.assert_allclose(found, expected, atol=0.09)


def test_samples_carry_no_gradient():
    loc = wf.tensor(0.5, requires_grad=True)
    assert not d.Normal(loc, 1.0).sample().requires_grad
    assert not d.Gamma(loc, 1.0).sample((2,)).requires_grad
    assert d.Gamma(loc, 1.0).rsample((2,)).requires_grad


def test_log_prob_is_differentiable_in_parameters():
    a = wf.tensor(np.float64(1.7), requires_grad=True)
    d.Gamma(a, 2.0).log_prob(double(0.9)).backward()
    from scipy.special import digamma  # noqa: PLC0415  (a test of optional SciPy)

    np.testing.assert_allclose(float(a.grad), np.log(2) + np.log(0.9) - digamma(1.7), rtol=1e-10)


# -- other modes ----------------------------------------------------------------------------------


def test_under_jit_the_same_numbers_are_drawn():
    def step(loc, scale):
        q = d.Normal(loc, scale)
        z = q.rsample((3,))
        g = d.Gamma(scale, 1.0).rsample()
        return q.log_prob(z), d.kl_divergence(q, d.Normal(0.0, 1.0)), g

    loc, scale = wf.tensor([0.1, 0.2]), wf.tensor([1.0, 2.0])
    wf.manual_seed(5)
    expected = step(loc, scale)
    wf.manual_seed(5)
    jitted = wf.jit(step)
    for found, value in zip(jitted(loc, scale), expected, strict=True):
        np.testing.assert_allclose(found.numpy(), value.numpy(), rtol=2e-5)


def test_under_vmap():
    locs, xs = wf.tensor([0.0, 1.0, 2.0]), wf.tensor([0.5, 0.5, 0.5])
    found = wf.vmap(lambda loc, x: d.Normal(loc, 2.0).log_prob(x))(locs, xs)
    np.testing.assert_allclose(found.numpy(), d.Normal(locs, 2.0).log_prob(xs).numpy(), rtol=1e-6)


# -- composition ----------------------------------------------------------------------------------


def test_independent_and_transformed():
    base = d.Normal(wf.zeros((2, 3)), wf.ones(3))
    whole = d.Independent(base, 1)
    assert (whole.batch_shape, whole.event_shape) == ((2,), (3,))
    x = whole.sample((4,))
    np.testing.assert_allclose(
        whole.log_prob(x).numpy(), base.log_prob(x).sum(-1).numpy(), rtol=1e-5
    )
    moved = d.TransformedDistribution(base, [d.AffineTransform(1.0, 2.0), d.ExpTransform()])
    direct = d.LogNormal(wf.ones((2, 3)), 2.0)
    y = direct.sample((4,))
    np.testing.assert_allclose(moved.log_prob(y).numpy(), direct.log_prob(y).numpy(), rtol=1e-5)
    np.testing.assert_allclose(moved.cdf(y).numpy(), direct.cdf(y).numpy(), rtol=1e-4)
    assert moved.expand((5, 2, 3)).sample().shape == (5, 2, 3)


def test_mixtures():
    weights = d.Categorical(double([0.3, 0.7]))
    mixed = d.MixtureSameFamily(weights, d.Normal(double([-2.0, 3.0]), double([1.0, 0.5])))
    x = np.linspace(-4, 5, 5)
    density = 0.3 * stats.norm(-2, 1).pdf(x) + 0.7 * stats.norm(3, 0.5).pdf(x)
    np.testing.assert_allclose(mixed.log_prob(double(x)).numpy(), np.log(density), rtol=1e-9)
    np.testing.assert_allclose(mixed.mean.numpy(), 1.5, rtol=1e-12)
    wf.manual_seed(2)
    drawn = mixed.sample((4000,)).numpy()
    assert abs((drawn > 0.5).mean() - 0.7) < 0.04
    np.testing.assert_allclose(drawn.var(), mixed.variance.numpy(), rtol=0.1)


@pytest.mark.parametrize("name", ["gamma", "normal", "chi2", "half_normal", "student"])
def test_expansion(name):
    ours = CONTINUOUS[name][0].expand((2, 3))
    assert ours.batch_shape == (2, 3)
    assert ours.sample((4,)).shape == (4, 2, 3)


# -- bad arguments --------------------------------------------------------------------------------


def test_bad_parameters_and_values_are_named():
    with pytest.raises(ValueError, match=r"Normal: scale must satisfy greater_than\(0.0\).*-1"):
        d.Normal(0.0, -1.0)
    with pytest.raises(ValueError, match=r"Uniform: low must be less than high"):
        d.Uniform(1.0, 0.0)
    with pytest.raises(ValueError, match=r"Exponential: a value must satisfy.*-2"):
        d.Exponential(1.0).log_prob(wf.tensor(-2.0))
    with pytest.raises(ValueError, match="either probs or logits"):
        d.Bernoulli()
    with pytest.raises(ValueError, match=r"event shape \(3,\).*\(2,\)"):
        d.Dirichlet(wf.ones(3)).log_prob(wf.tensor([0.5, 0.5]))
    with pytest.raises(ValueError, match="exactly one"):
        d.MultivariateNormal(wf.zeros(2))
    with pytest.raises(NotImplementedError, match="Poisson has no differentiable draws"):
        d.Poisson(1.0).rsample()
    d.Normal(0.0, -1.0, validate_args=False)
    d.set_default_validate_args(False)
    try:
        d.Normal(0.0, -1.0)
    finally:
        d.set_default_validate_args(True)


def test_they_print_their_parameters():
    assert repr(d.Normal(0.0, 1.0)) == "Normal(loc: 0, scale: 1)"
    assert repr(d.Gamma(wf.ones(3), 1.0)) == "Gamma(concentration: (3,), rate: (3,))"
