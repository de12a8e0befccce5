"""Special functions that load late: over their whole ranges, against SciPy; tables by 40 digits.

Where functions have zeros, errors are measured in ulp of the height of their waves.
"""

import numpy as np
import pytest

from weft.core.special import airy, bessel, gaussian, hurwitz, incomplete, polynomials

oracle = pytest.importorskip("scipy.special")

RNG = np.random.default_rng(7)
POSITIVE = np.concatenate([10.0 ** RNG.uniform(-8, 0, 200), RNG.uniform(0, 60, 400), [650.0]])


def ulps(found, expected, scale=0.0):
    return np.abs(found - expected) / np.spacing(np.maximum(np.abs(expected), scale))


@pytest.mark.parametrize(
    ("kernel", "reference"),
    [
        (bessel.i0, oracle.i0),
        (bessel.i0e, oracle.i0e),
        (bessel.i1, oracle.i1),
        (bessel.i1e, oracle.i1e),
        (bessel.k0, oracle.k0),
        (bessel.k0e, oracle.k0e),
        (bessel.k1, oracle.k1),
        (bessel.k1e, oracle.k1e),
    ],
)
def test_modified_bessel_functions(kernel, reference):
    assert ulps(kernel(POSITIVE), reference(POSITIVE)).max() < 14  # SciPy's own are up to 10


# Computed with 40 digits.
BESSEL = {
    "j0": (
        (0.03, 0.9997750126559336),
        (0.9, 0.8075237981225448),
        (2.4, 0.002507683297243859),
        (17.3, -0.1337006470757642),
        (30.1, -0.07410137232401859),
        (650.0, -0.014327335075682901),
        (100000.0, -0.0017192011162359723),
    ),
    "j1": (
        (0.03, 0.014998312563280063),
        (0.9, 0.4059495460788057),
        (2.4, 0.520185268181931),
        (17.3, -0.141423335492014),
        (30.1, -0.12637268272143992),
        (650.0, 0.027812398473643418),
        (100000.0, 0.0018467575628825677),
    ),
    "y0": (
        (0.03, -2.30548630393068),
        (0.9, 0.005628306635205559),
        (2.4, 0.5104147486657438),
        (17.3, -0.13750521344352495),
        (30.1, -0.12512486778507473),
        (650.0, 0.027823411262355408),
        (100000.0, 0.001846766158865064),
    ),
    "y1": (
        (0.03, -21.260020718712394),
        (0.9, -0.8731265824563288),
        (2.4, 0.10048893833108442),
        (17.3, 0.1297853467390839),
        (30.1, 0.07203366369400514),
        (650.0, 0.014348741925907545),
        (100000.0, 0.0017192103500882562),
    ),
}


@pytest.mark.parametrize("name", list(BESSEL))
def test_bessel_functions(name):
    kernel, reference = getattr(bessel, name), getattr(oracle, name)
    x = POSITIVE[(POSITIVE > 1e-3) & (POSITIVE < 60)]
    np.testing.assert_allclose(kernel(x), reference(x), rtol=1e-14, atol=4e-15)  # SciPy's error
    points, expected = map(np.array, zip(*BESSEL[name], strict=True))
    assert ulps(kernel(points), expected, np.sqrt(2 / np.pi / points) * (points > 0.5)).max() < 6


def test_bessel_functions_at_the_ends():
    edges = np.array([0.0, np.inf, -1.0, np.nan])
    for kernel, expected in (
        (bessel.j0, [1.0, 0.0, oracle.j0(1.0), np.nan]),
        (bessel.j1, [0.0, 0.0, -oracle.j1(1.0), np.nan]),
        (bessel.y0, [-np.inf, 0.0, np.nan, np.nan]),
        (bessel.k1, [np.inf, 0.0, np.nan, np.nan]),
        (bessel.i1, [0.0, np.inf, -oracle.i1(1.0), np.nan]),
        (bessel.i0e, [1.0, 0.0, oracle.i0e(1.0), np.nan]),
    ):
        np.testing.assert_allclose(kernel(edges), expected, rtol=1e-15)
    assert np.isfinite(bessel.i0(713.0))


# Computed with 40 digits.
AIRY = (
    (-1000.0, 0.05597189577301992),
    (-83327.04161035817, -0.02722594672118757),
    (-11.9, 0.03767302433935815),
    (0.0, 0.3550280538878172),
    (12.1, 9.825703489721681e-14),
    (83.0, 1.0916633227426434e-220),
)


def test_airy_against_a_table():
    for x, expected in AIRY:
        assert ulps(airy.airy_ai(x), expected).max() < 30, x


def test_airy_and_its_slope():
    x = RNG.uniform(-12, 20, 500)
    value, slope = oracle.airy(x)[:2]
    assert np.abs(airy.airy_ai(x) - value).max() < 1e-14
    assert np.abs(airy.airy_ai_slope(x) - slope).max() < 3e-14
    assert airy.airy_ai(np.inf) == 0 == airy.airy_ai(-np.inf)


def test_scaled_erfc_and_the_logarithm_of_the_normal_distribution():
    x = np.concatenate([RNG.uniform(-26, 10, 500), 10.0 ** RNG.uniform(1, 9, 100)])
    np.testing.assert_allclose(gaussian.erfcx(x), oracle.erfcx(x), rtol=1e-13)
    x = np.concatenate([RNG.uniform(-1, 8, 200), -(10.0 ** RNG.uniform(-1, 5, 200))])
    np.testing.assert_allclose(gaussian.log_ndtr(x), oracle.log_ndtr(x), rtol=1e-13)
    assert gaussian.erfcx(-30.0) == np.inf
    assert gaussian.log_ndtr(50.0) == 0


def test_normal_quantile():
    p = np.concatenate([10.0 ** RNG.uniform(-300, -1, 300), RNG.uniform(0, 1, 300)])
    np.testing.assert_allclose(gaussian.ndtri(p), oracle.ndtri(p), rtol=4e-15, atol=1e-16)
    np.testing.assert_array_equal(
        gaussian.ndtri([0.0, 1.0, -1.0, 2.0]), [-np.inf, np.inf, *[np.nan] * 2]
    )


def test_zeta():
    s, q = RNG.uniform(1.01, 80, 500), 10.0 ** RNG.uniform(-3, 4, 500)
    np.testing.assert_allclose(hurwitz.hurwitz_zeta(s, q), oracle.zeta(s, q), rtol=2e-14)
    # The sum over (-2.5 + k)**-3 is that of its three negative terms and of those above zero.
    direct = sum((-2.5 + k) ** -3.0 for k in range(3)) + oracle.zeta(3.0, 0.5)
    np.testing.assert_allclose(hurwitz.hurwitz_zeta(3.0, -2.5), direct, rtol=1e-13)
    np.testing.assert_array_equal(
        hurwitz.hurwitz_zeta([1.0, 0.5, 2.0, 2.5], [2.0, 2.0, -1.0, -0.5]),
        [np.inf, np.nan, np.inf, np.nan],
    )


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gamma(name):
    kernel = {"gammainc": incomplete.igamma, "gammaincc": incomplete.igammac}[name]
    a = 10.0 ** RNG.uniform(-3, 4, 1500)
    x = np.abs(a + RNG.normal(size=1500) * 4 * np.sqrt(a)) * 10.0 ** RNG.uniform(-2, 0.2, 1500)
    expected = getattr(oracle, name)(a, x)
    known = expected > 1e-60
    np.testing.assert_allclose(kernel(a, x)[known], expected[known], rtol=4e-12)


def test_incomplete_gamma_at_the_ends():
    a, x = [1.0, 1.0, 0.0, -1.0, 1.0, np.inf], [0.0, np.inf, 1.0, 1.0, -1.0, 2.0]
    np.testing.assert_array_equal(incomplete.igamma(a, x), [0, 1, 1, np.nan, np.nan, 0])
    np.testing.assert_array_equal(incomplete.igammac(a, x), [1, 0, 0, np.nan, np.nan, 1])


def test_how_draws_of_the_gamma_distribution_move():
    # A small step of the shape, at fixed probability, by SciPy's inverse.
    a = np.array([0.05, 0.4, 1.0, 3.0, 29.0, 31.0, 900.0])[:, None]
    p = np.array([0.02, 0.4, 0.9])
    x, h = oracle.gammaincinv(a, p), 1e-5
    moved = (oracle.gammaincinv(a * (1 + h), p) - oracle.gammaincinv(a * (1 - h), p)) / (2 * a * h)
    np.testing.assert_allclose(incomplete.gamma_draw_slope(a, x), moved, rtol=2e-6)


def test_polynomials_have_derivatives_without_poles():
    x = np.array([-1.0, 0.0, 0.3, 1.0])
    for family, cls in (
        ("legendre_p", np.polynomial.Legendre),
        ("chebyshev_t", np.polynomial.Chebyshev),
        ("hermite_h", np.polynomial.Hermite),
        ("hermite_he", np.polynomial.HermiteE),
        ("laguerre_l", np.polynomial.Laguerre),
    ):
        for degree in range(6):
            basis = cls.basis(degree)
            for order in range(3):
                found = polynomials.polynomial(x, float(degree), family, order)
                np.testing.assert_allclose(found, basis.deriv(order)(x), atol=1e-12)
    assert polynomials.polynomial(0.5, -1.0, "legendre_p") == 0


def test_narrow_dtypes_are_rounded_once():
    x = RNG.uniform(0.1, 20, 200).astype(np.float32)
    for kernel in (bessel.j0, bessel.k1e, airy.airy_ai, gaussian.erfcx):
        found = kernel(x)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, kernel(x.astype(np.float64)).astype(np.float32))


def test_integers_are_refused():
    with pytest.raises(TypeError, match=r"i0: expected float16.*received int64"):
        bessel.i0(np.arange(3))
    with pytest.raises(TypeError, match=r"igamma: expected float16.*received int64"):
        incomplete.igamma(np.arange(3), np.ones(3))
