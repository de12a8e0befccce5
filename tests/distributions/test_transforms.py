"""Transforms: there and back, and their stretch against the determinant of the Jacobian."""

import numpy as np
import pytest

import weft as wf
from weft import distributions as d
from weft.distributions import constraints


def double(value):
    return wf.tensor(np.asarray(value, np.float64))


X = np.array([0.3, -0.8, 1.1])
SCALAR = [
    (d.ExpTransform(), X),
    (d.SigmoidTransform(), X),
    (d.SoftplusTransform(), X),
    (d.TanhTransform(), X),
    (d.AffineTransform(0.5, -2.0), X),
    (d.PowerTransform(double(1.7)), np.abs(X)),
    (d.ComposeTransform([d.AffineTransform(0.1, 2.0), d.ExpTransform()]), X),
    (d.CumulativeDistributionTransform(d.Normal(double(0.0), double(1.0))), X),
    (d.ExpTransform().inv, np.abs(X)),
]


@pytest.mark.parametrize(("transform", "x"), SCALAR, ids=[repr(t) for t, _ in SCALAR])
def test_elementwise_transforms(transform, x):
    x = double(x)
    y = transform(x)
    np.testing.assert_allclose(transform.inv(y).numpy(), x.numpy(), rtol=1e-9)
    slope = wf.jacobian(transform)(x).numpy().diagonal()
    found = transform.log_abs_det_jacobian(x, y).numpy()
    np.testing.assert_allclose(found, np.log(np.abs(slope)), rtol=1e-7)
    assert (np.sign(slope) == np.sign(np.asarray(transform.sign) * np.ones(3))).all()


def test_breaking_a_stick():
    transform, x = d.StickBreakingTransform(), double(X)
    y = transform(x)
    assert transform.forward_shape((2, 3)) == (2, 4)
    np.testing.assert_allclose(float(y.sum()), 1)
    np.testing.assert_allclose(transform.inv(y).numpy(), X, rtol=1e-9)
    jacobian = wf.jacobian(lambda v: transform(v)[:-1])(x).numpy()
    found = float(transform.log_abs_det_jacobian(x, y))
    np.testing.assert_allclose(found, np.linalg.slogdet(jacobian)[1], rtol=1e-9)


def test_factors_of_correlations():
    transform, x = d.CorrCholeskyTransform(), double(X)
    y = transform(x)
    assert bool(constraints.corr_cholesky.check(y))
    np.testing.assert_allclose(transform.inv(y).numpy(), X, rtol=1e-9)
    rows, columns = np.tril_indices(3, -1)
    jacobian = wf.jacobian(lambda v: transform(v)[rows, columns])(x).numpy()
    found = float(transform.log_abs_det_jacobian(x, y))
    np.testing.assert_allclose(found, np.linalg.slogdet(jacobian)[1], rtol=1e-9)


def test_matrices():
    x = double(np.random.default_rng(0).normal(size=(3, 3)))
    lower = d.LowerCholeskyTransform()
    assert bool(constraints.lower_cholesky.check(lower(x)))
    np.testing.assert_allclose(lower.inv(lower(x)).numpy(), np.tril(x.numpy()), rtol=1e-9)
    definite = d.PositiveDefiniteTransform()
    assert bool(constraints.positive_definite.check(definite(x)))
    np.testing.assert_allclose(definite.inv(definite(x)).numpy(), np.tril(x.numpy()), rtol=1e-7)


def test_side_by_side():
    x = double(np.stack([X, X]))
    stacked = d.StackTransform([d.ExpTransform(), d.TanhTransform()], 0)
    np.testing.assert_allclose(stacked(x).numpy(), [np.exp(X), np.tanh(X)])
    np.testing.assert_allclose(stacked.inv(stacked(x)).numpy(), x.numpy())
    joined = d.CatTransform([d.ExpTransform(), d.TanhTransform()], -1, [1, 2])
    np.testing.assert_allclose(joined(double(X)).numpy(), [np.exp(X[0]), *np.tanh(X[1:])])
    stretch = joined.log_abs_det_jacobian(double(X), joined(double(X)))
    np.testing.assert_allclose(stretch.numpy()[0], X[0])


@pytest.mark.parametrize("draw", ["sample", "rsample"])
def test_a_cache_gives_the_very_operand_back(draw):
    loc = wf.tensor([0.5, 40.0], requires_grad=True)
    for transforms in (
        [d.TanhTransform(cache_size=1)],
        [d.TanhTransform(cache_size=1), d.AffineTransform(1.0, 2.0, cache_size=1)],
        d.ComposeTransform([d.TanhTransform(), d.AffineTransform(1.0, 2.0)], cache_size=1),
    ):
        made = d.TransformedDistribution(d.Normal(loc, wf.ones(2)), transforms)
        drawn = getattr(made, draw)()
        assert drawn.requires_grad == (draw == "rsample")
        density = made.log_prob(drawn)
        assert np.isfinite(density.numpy()).all()
        assert np.isfinite(wf.gradients(density.sum(), loc).numpy()).all()
    plain = d.TanhTransform()
    cached = plain.with_cache()
    x = wf.tensor([50.0])
    assert cached.inv(cached(x)) is x
    assert np.isinf(cached.inv(wf.tensor([1.0])).numpy()).all()
    assert np.isinf(plain.inv(plain(x)).numpy()).all()
    with pytest.raises(ValueError, match="0 or 1"):
        d.TanhTransform(cache_size=2)


def test_events():
    independent = d.IndependentTransform(d.ExpTransform(), 1)
    x = double(X)
    np.testing.assert_allclose(float(independent.log_abs_det_jacobian(x, independent(x))), X.sum())
    reshaped = d.ReshapeTransform((4,), (2, 2))
    assert reshaped(wf.zeros((3, 4))).shape == (3, 2, 2)
    assert reshaped.inv(wf.zeros((3, 2, 2))).shape == (3, 4)
    with pytest.raises(ValueError, match=r"does not end in \(4,\)"):
        reshaped(wf.zeros((3, 5)))
    with pytest.raises(ValueError, match="one size"):
        d.ReshapeTransform((4,), (3,))


REGIONS = [
    constraints.real,
    constraints.positive,
    constraints.greater_than(2.0),
    constraints.less_than(1.5),
    constraints.interval(-1.0, 3.0),
    constraints.unit_interval,
    constraints.simplex,
    constraints.lower_cholesky,
    constraints.positive_definite,
    constraints.corr_cholesky,
    constraints.real_vector,
    constraints.independent(constraints.positive, 1),
]


@pytest.mark.parametrize("registry", [d.biject_to, d.transform_to], ids=["biject", "transform"])
@pytest.mark.parametrize("region", REGIONS, ids=repr)
def test_registries_lead_into_regions(registry, region):
    size = (3, 3) if region.event_dim == 2 and region is not constraints.corr_cholesky else (3,)
    transform = registry(region)
    y = transform(double(np.random.default_rng(1).normal(size=size)))
    assert bool(np.all(region.check(y).numpy()))


def test_unknown_regions_are_named():
    with pytest.raises(NotImplementedError, match="no transform to boolean"):
        d.biject_to(constraints.boolean)
    assert d.ExpTransform() == d.ExpTransform() != d.TanhTransform()
