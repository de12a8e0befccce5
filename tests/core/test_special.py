"""Special functions: accuracy in ulp, exceptional values, dtypes and shapes.

SciPy is the oracle where it is good to a few ulp itself; where it is not (zeros of lgamma, far
tails, large orders) the references are tables computed with 60 digits.
"""

import math
import warnings

import numpy as np
import pytest

from weft.core import special

oracle = pytest.importorskip("scipy.special")

RNG = np.random.default_rng(20)
UNARY = ("erf", "erfc", "erfinv", "lgamma", "digamma")
ORACLES = {
    "erf": oracle.erf,
    "erfc": oracle.erfc,
    "erfinv": oracle.erfinv,
    "lgamma": oracle.gammaln,
    "digamma": oracle.digamma,
}
# Worst ulp measured against the exact function, rounded up to leave room for another libm.
MAX_ULP = {"erf": 4, "erfc": 7, "erfinv": 6, "lgamma": 4, "digamma": 4}
EXACT = {
    "erf": (
        (1e-310, 1.1283791670955e-310),
        (0.25, 0.27632639016823696),
        (0.999, 0.8422852702064969),
        (1.0, 0.8427007929497149),
        (2.5, 0.999593047982555),
        (5.8, 0.9999999999999998),
    ),
    "erfc": (
        (-3.0, 1.9999779095030015),
        (0.4999, 0.4795880048386134),
        (0.5, 0.4795001221869535),
        (2.4727085553073174, 0.0004706312431458859),
        (4.0, 1.541725790028002e-08),
        (7.825212801983334, 1.8234061524801277e-28),
        (15.5, 1.6632016400488723e-106),
        (26.0, 5.663192408856143e-296),
        (26.9, 1.1522406e-316),
    ),
    "erfinv": (
        (1e-310, 8.8622692545277e-311),
        (0.4898967524520367, 0.46575492701457843),
        (0.85, 1.0179024648320276),
        (0.9999, 2.75106390571208),
        (0.99999999999, 4.812924058944833),
        (0.9999999999999999, 5.8635847487551676),
    ),
    "lgamma": (
        (1e-310, 713.8013788281542),
        (0.25, 1.2880225246980774),
        (0.9999999999999999, 6.408381213480008e-17),
        (1.0000000000000002, -1.2816762426960008e-16),
        (1.0000001, -5.772155829918507e-08),
        (1.9999999, -4.2278430309861296e-08),
        (2.0000000000000004, 1.8775396131086244e-16),
        (2.5, 0.2846828704729192),
        (3.203753822274571, 0.8891568706129802),
        (8.0, 8.525161361065415),
        (1e10, 220258509288.81058),
        (1e305, 7.012884533631839e307),
        (-0.25, 1.589575312551186),
        (-1e-310, 713.8013788281542),
    ),
    "digamma": (
        (1e-300, -9.999999999999999e299),
        (0.25, -4.2274535333762655),
        (1.4616321449683622, -9.241265521729427e-17),
        (1.4616321449683625, 1.2245374622004068e-16),
        (1.46, -0.0015805619870834522),
        (1.47, 0.008066489011364869),
        (3.046363194663094, 0.9409310524829884),
        (8.0, 2.01564147795561),
        (1e10, 23.025850929890456),
        (1e305, 702.288453363184),
    ),
}
POLYGAMMA_EXACT = (
    (1, 0.001, 1000001.6425331958),
    (1, 1e300, 1e-300),
    (2, 7.5, -0.020305252536644666),
    (3, -1.25, 1558.2209125348506),
    (4, -0.5, -3.4742498266672253),
    (5, -7.125, 31457611.06485331),
    (6, -2.25, 11791224.534791825),
    (10, 11.077353527573239, -1.9885905202277694e-05),
    (30, 31.98950704628317, -9.65566699813057e-15),
    (50, -3.5, -1.476563990062509e31),
    (51, -3.5, 1.3971235678624885e82),
    (100, 1e4, -9.379363201543512e-245),
    (170, 2e3, -2.9755144706167717e-257),
    (200, 1e3, -4.3508192705971016e-228),
)
INF, NAN = math.inf, math.nan
EXCEPTIONAL = {
    "erf": ((INF, 1.0), (-INF, -1.0), (-0.0, -0.0), (1e308, 1.0)),
    "erfc": ((INF, 0.0), (-INF, 2.0), (0.0, 1.0), (30.0, 0.0), (-1e308, 2.0)),
    "erfinv": ((1.0, INF), (-1.0, -INF), (1.5, NAN), (-INF, NAN), (-0.0, -0.0)),
    "lgamma": ((0.0, INF), (-0.0, INF), (-3.0, INF), (-1e300, INF), (1.0, 0.0), (2.0, 0.0)),
    "digamma": ((0.0, -INF), (-0.0, INF), (-2.0, NAN), (-1e300, NAN), (INF, INF), (-INF, NAN)),
}


def ulp_error(got, want):
    """Return the largest distance from `want` in units of its last place."""
    got, want = np.asarray(got), np.asarray(want)
    step = np.spacing(np.abs(want.astype(got.dtype))).astype(np.float64)
    return float(np.max(np.abs(got.astype(np.float64) - want) / step))


def grid(low, high, count=200_001):
    return np.linspace(low, high, count)


def either_sign(low, high, count=20_000):
    """Return numbers of both signs, their decimal exponents spread over [low, high]."""
    return np.concatenate([s * 10.0 ** RNG.uniform(low, high, count) for s in (-1.0, 1.0)])


@pytest.mark.parametrize("name", EXACT)
def test_agrees_with_exact_values(name):
    x, want = np.array(EXACT[name]).T
    assert ulp_error(getattr(special, name)(x), want) <= MAX_ULP[name]


# The bound adds the oracle's own error on that range to ours.
@pytest.mark.parametrize(
    ("name", "x", "bound"),
    [
        ("erf", grid(-7, 7), 5),
        ("erf", either_sign(-323, 0), 4),
        ("erfc", grid(-7, 1), 12),
        ("erfc", grid(1, 4), 24),
        ("erfinv", grid(-0.999999, 0.999999), 8),
        ("erfinv", either_sign(-323, -1), 6),
        ("lgamma", grid(3, 50), 6),
        ("lgamma", 10.0 ** grid(-307, -1), 6),
        ("lgamma", 10.0 ** grid(1, 305), 5),
        ("lgamma", grid(-0.5, -1e-6), 6),
        ("digamma", grid(1e-6, 50), 7),
        ("digamma", 10.0 ** grid(-307, 305), 7),
    ],
)
def test_agrees_with_scipy_in_ulp(name, x, bound):
    assert ulp_error(getattr(special, name)(x), ORACLES[name](x)) <= bound


def test_erfc_tail_matches_the_c_library():
    x = grid(4, 27.2, 5_001)
    assert ulp_error(special.erfc(x), np.array([math.erfc(v) for v in x])) <= 8


def test_lgamma_between_its_zeros_has_small_absolute_error():
    x = grid(0.5, 3)
    np.testing.assert_allclose(special.lgamma(x), oracle.gammaln(x), rtol=0, atol=1e-15)


@pytest.mark.parametrize("span", [(-1, -0.5), (-3, -2), (-20, -10), (-1000, -900)])
def test_lgamma_on_the_negative_axis_is_accurate_to_the_reflected_terms(span):
    x = RNG.uniform(*span, 20_000)
    scale = 1.0 + np.abs(oracle.gammaln(-x))
    assert np.max(np.abs(special.lgamma(x) - oracle.gammaln(x)) / scale) < 3e-15


@pytest.mark.parametrize("span", [(-1, 0), (-3, -2), (-20, -10)])
def test_digamma_on_the_negative_axis_satisfies_the_recurrence(span):
    x = RNG.uniform(*span, 20_000)
    poles = [1.0 / (x + k) for k in range(-span[0] + 1)]
    scale = 1.0 + np.max(np.abs(poles), axis=0)
    want = oracle.digamma(x + len(poles)) - np.sum(poles, axis=0)
    assert np.max(np.abs(special.digamma(x) - want) / scale) < 3e-15


def test_digamma_keeps_its_precision_far_out_and_close_to_a_pole():
    x = np.array([-0.9999206113820384, -986.9999438204429])
    assert ulp_error(special.digamma(x), [-12595.841126109332, -17793.173774532297]) <= 4


@pytest.mark.parametrize(("n", "x", "want"), POLYGAMMA_EXACT)
def test_polygamma_agrees_with_exact_values(n, x, want):
    bound = (n + 5) if x < 0 else 10  # a power of the cotangent multiplies its error
    if n != 50:
        assert ulp_error(special.polygamma(n, x), want) <= bound
    else:
        # The half-integers are near the zeros of even orders; the cotangent part cancels exactly.
        assert float(special.polygamma(n, x)) == pytest.approx(want, rel=1e-13)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 13, 20])
def test_polygamma_agrees_with_scipy_on_the_positive_axis(n):
    x = np.concatenate([grid(0.01, 12, 5_001), grid(12, 100, 5_001)])
    np.testing.assert_allclose(special.polygamma(n, x), oracle.polygamma(n, x), rtol=5e-15)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
def test_polygamma_agrees_with_scipy_on_the_negative_axis(n):
    x = RNG.uniform(-12, 0, 5_000)
    scale = math.factorial(n) / np.abs(x - np.rint(x)) ** (n + 1)  # the nearest pole
    error = np.abs(special.polygamma(n, x) - oracle.polygamma(n, x)) / scale
    assert np.max(error) < (n + 2) * 1e-15


def test_polygamma_of_order_zero_is_digamma():
    x = grid(-5.05, 5, 1_001)
    np.testing.assert_array_equal(special.polygamma(0, x), special.digamma(x))


@pytest.mark.parametrize("n", [1, 2, 5, 6])
def test_polygamma_at_poles_and_infinities(n):
    sign = 1.0 if n % 2 else -1.0
    got = special.polygamma(n, np.array([0.0, -0.0, -1.0, -7.0, INF, -INF, NAN]))
    np.testing.assert_array_equal(got, [sign * INF] * 4 + [0.0, NAN, NAN])


def test_polygamma_is_the_derivative_of_the_order_below():
    x, h = np.array([0.3, 1.7, 6.0, 14.0, -0.6, -2.3]), 1e-5
    for n in range(6):
        slope = (special.polygamma(n, x + h) - special.polygamma(n, x - h)) / (2 * h)
        np.testing.assert_allclose(slope, special.polygamma(n + 1, x), rtol=1e-6)


@pytest.mark.parametrize("s", [1.0001, 1.5, 2.0, 3.7, 12.0, 60.0])
def test_zeta_agrees_with_scipy(s):
    q = np.concatenate([grid(0.05, 20, 2_001), grid(20, 300, 2_001)])
    np.testing.assert_allclose(special.zeta(s, q), oracle.zeta(s, q), rtol=1e-14)


def test_zeta_at_poles_and_negative_arguments():
    got = special.zeta(2.5, np.array([0.0, -1.0, -0.5, NAN, INF, -INF]))
    np.testing.assert_array_equal(got, [INF, INF, NAN, NAN, 0.0, NAN])


@pytest.mark.parametrize("name", EXCEPTIONAL)
def test_exceptional_values(name):
    for x, want in (*EXCEPTIONAL[name], (NAN, NAN)):
        got = getattr(special, name)(np.float64(x))
        np.testing.assert_array_equal(got, want)
        assert math.isnan(want) or np.signbit(got) == np.signbit(want) or want == 0.0 != x


def test_lgamma_at_infinities_follows_c99():
    np.testing.assert_array_equal(special.lgamma(np.array([INF, -INF])), [INF, INF])


@pytest.mark.parametrize("name", UNARY)
def test_float32_is_rounded_from_float64(name):
    x = np.concatenate([RNG.uniform(0.01, 0.99, 20_000), RNG.uniform(3, 30, 20_000)])
    x = np.where(x > 1, 1 / x, x) if name == "erfinv" else x
    x = x.astype(np.float32)
    got = getattr(special, name)(x)
    assert got.dtype == np.float32
    want = ORACLES[name](x.astype(np.float64))
    normal = np.abs(want) > np.finfo(np.float32).tiny
    assert ulp_error(got[normal], want[normal]) <= 0.54


@pytest.mark.parametrize("name", ["erf"])
def test_float32_on_both_sides_of_zero(name):
    x = np.concatenate([grid(-80, 80), grid(-6, 6), either_sign(-37, 0)]).astype(np.float32)
    want = ORACLES[name](x.astype(np.float64))
    normal = np.abs(want) > np.finfo(np.float32).tiny
    assert ulp_error(getattr(special, name)(x)[normal], want[normal]) <= 0.54


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_keeps_its_dtype_and_rounds(name, dtype):
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    x = np.linspace(0.01, 0.99, 500).astype(dtype)
    got = getattr(special, name)(x)
    assert got.dtype == x.dtype
    want = ORACLES[name](x.astype(np.float64)).astype(dtype)
    np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64))


@pytest.mark.parametrize("name", UNARY)
def test_shapes_and_strides(name):
    function = getattr(special, name)
    x = np.linspace(0.1, 0.9, 24).reshape(2, 3, 4)
    flat = function(x.ravel())
    np.testing.assert_array_equal(function(x), flat.reshape(x.shape))
    np.testing.assert_array_equal(function(x.T), flat.reshape(x.shape).T)
    np.testing.assert_array_equal(function(x[:, ::-1, ::2]), function(x)[:, ::-1, ::2])
    assert function(np.empty((0, 3))).shape == (0, 3)
    assert function(0.5).shape == ()
    assert function(np.float32(0.5)).dtype == np.float32


@pytest.mark.parametrize("name", UNARY)
def test_blocks_join_and_the_input_is_left_alone(name):
    x = RNG.uniform(-0.9, 0.9, 20_011)
    kept = x.copy()
    whole = getattr(special, name)(x)
    parts = np.concatenate([getattr(special, name)(p) for p in np.array_split(x, 7)])
    np.testing.assert_array_equal(whole, parts)
    np.testing.assert_array_equal(x, kept)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_no_warning_is_emitted(name, dtype):
    info = np.finfo(dtype)
    edges = np.array([0.0, info.smallest_subnormal, info.tiny, 1.0, 3.0, info.max, INF, NAN], dtype)
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        getattr(special, name)(np.concatenate([edges, -edges]))
        special.polygamma(3, np.concatenate([edges, -edges]))


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("bad", [3, np.arange(3), True, 1j, "x"])
def test_dtypes_that_are_not_float_are_refused(name, bad):
    with pytest.raises(TypeError, match=f"{name}: .* received {np.asarray(bad).dtype.name}"):
        getattr(special, name)(bad)


@pytest.mark.parametrize(("n", "error"), [(-1, ValueError), (501, ValueError), (1.0, TypeError)])
def test_polygamma_refuses_a_bad_order(n, error):
    with pytest.raises(error, match="polygamma: n must be"):
        special.polygamma(n, 1.0)


@pytest.mark.parametrize("s", [1.0, 0.0, -2.0, 1e7, INF, NAN])
def test_zeta_refuses_a_bad_exponent(s):
    with pytest.raises(ValueError, match="zeta: s must be"):
        special.zeta(s, 1.0)


def test_erfinv_inverts_erf():
    x = grid(-0.999, 0.999, 10_001)
    np.testing.assert_allclose(special.erf(special.erfinv(x)), x, rtol=2e-15, atol=0)
