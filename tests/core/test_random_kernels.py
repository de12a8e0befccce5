"""Hold every distribution to its law (SciPy is the oracle), its bounds and its reproducibility."""

import math
from collections.abc import Callable
from decimal import Decimal, localcontext
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from weft.core import random_kernels as rk
from weft.core.random_lanes import CHUNK, standard_normal
from weft.core.random_math import normal_cdf, normal_magnitude, normal_quantile
from weft.core.rng import philox_bits

KEY, N = 20240229, 100_000
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = [np.dtype(name) for name in ("float16", "float32", "float64")] + [BFLOAT16]
INTEGERS = [np.dtype(f"{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)]

# Each draws ``shape`` elements from (key, counter); used where all must behave alike.
SHAPED: dict[str, Callable[..., Any]] = {
    "uniform": rk.uniform,
    "normal": rk.normal,
    "truncated_normal": rk.truncated_normal,
    "exponential": rk.exponential,
    "gamma": partial(rk.gamma, alpha=0.7),
    "randint": partial(rk.randint, high=1000),
    "bernoulli": partial(rk.bernoulli, p=0.3),
}
# Results at key 1, counter 2.
PINNED = {
    "uniform": [0.7383471727371216, 0.9002684354782104, 0.3391403555870056],
    "normal": [-0.7116290330886841, -0.2526523172855377, 0.9909310936927795],
    "truncated_normal": [0.6052765250205994, 1.1853281259536743, -0.3948967456817627],
    "exponential": [0.3033410608768463, 0.10506227612495422, 1.0813411474227905],
    "gamma": [0.7172825932502747, 0.5285978317260742, 0.10507561266422272],
    "randint": [900, 52, 745],
    "bernoulli": [False, True, False],
    "normal64": [-0.25265230646123354, 0.130884514542039, -0.6900295890753845],
    "permutation": [1, 5, 3, 6, 4, 2, 7, 0],
    "categorical": [3, 0, 3, 1, 1, 0, 1, 3],
    "subset": [2, 0, 3, 1],
}

CONTINUOUS = ["uniform", "normal", "truncated_normal", "exponential", "gamma"]


def assert_follows(sample: np.ndarray, law: Any) -> None:
    """Assert that a Kolmogorov-Smirnov test and the first two moments do not reject the law."""
    flat = sample.astype(np.float64).ravel()
    assert stats.kstest(flat, law.cdf).pvalue > 1e-3
    mean, variance, kurtosis = (float(v) for v in law.stats(moments="mvk"))
    assert abs(flat.mean() - mean) < 4 * math.sqrt(variance / flat.size)
    spread = variance * math.sqrt((kurtosis + 2) / flat.size)
    assert abs(flat.var() - variance) < 4 * spread


def ulps(values: np.ndarray, exact: list[Decimal]) -> float:
    """Return the largest error in units of the last place of the exact result."""
    pairs = zip(values.tolist(), exact, strict=True)
    return max(float(abs(Decimal(v) - e)) / math.ulp(float(e)) for v, e in pairs)


# ---- elementary functions -----------------------------------------------------------------------


@pytest.mark.parametrize(("low", "high"), [(-1000, 1000), (-3, 3), (-0.7, 0.7), (-1e-3, 1e-3)])
def test_exact_log_is_within_one_ulp(low: float, high: float) -> None:
    x = 2.0 ** np.random.default_rng(0).uniform(low, high, 2000)
    with localcontext(prec=40):
        assert ulps(rk.exact_log(x), [Decimal(v).ln() for v in x.tolist()]) < 1


@pytest.mark.parametrize(("low", "high"), [(-708, 709), (-30, 0), (-0.4, 0.4)])
def test_exact_exp_is_within_one_ulp(low: float, high: float) -> None:
    x = np.random.default_rng(0).uniform(low, high, 2000)
    with localcontext(prec=40):
        assert ulps(rk.exact_exp(x), [Decimal(v).exp() for v in x.tolist()]) < 1


def test_exact_log_in_float32_is_within_one_ulp() -> None:
    x = (2.0 ** np.random.default_rng(0).uniform(-148, 127, N)).astype(np.float32)
    y, exact = rk.exact_log(x), np.log(x.astype(np.float64))
    assert y.dtype == np.float32
    assert np.max(np.abs(y - exact) / np.spacing(np.abs(exact).astype(np.float32))) < 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exact_log_of_special_values(dtype: type) -> None:
    smallest = np.finfo(dtype).smallest_subnormal
    x = np.array([0.0, -0.0, 1.0, np.inf, -np.inf, -1.0, np.nan, smallest], dtype)
    expected = [-np.inf, -np.inf, 0.0, np.inf, np.nan, np.nan, np.nan, math.log(smallest)]
    np.testing.assert_array_equal(rk.exact_log(x), np.array(expected, dtype))
    assert rk.exact_log(np.zeros((2, 0), dtype)).shape == (2, 0)
    assert rk.exact_log(dtype(1)).shape == ()
    assert rk.exact_log([1, 2]).tolist() == [0, math.log(2)]


def test_exact_exp_of_special_values() -> None:
    x = [0.0, -0.0, np.inf, -np.inf, np.nan, 709.8, 1e300, -745.0, -746.0, -1e300]
    expected = [1.0, 1.0, np.inf, 0.0, np.nan, np.inf, np.inf, 5e-324, 0.0, 0.0]
    np.testing.assert_array_equal(rk.exact_exp(x), expected)
    assert rk.exact_exp(np.zeros((2, 0))).shape == (2, 0)
    assert rk.exact_exp(1.0).shape == ()


def test_normal_quantile_agrees_with_scipy() -> None:
    p = np.concatenate([10.0 ** np.linspace(-300, -0.31, 5000), np.linspace(0.4, 1 - 1e-12, 5000)])
    np.testing.assert_allclose(normal_quantile(p), special.ndtri(p), rtol=2e-14)


def test_normal_magnitude_in_float32_agrees_with_scipy() -> None:
    tail = np.linspace(2.0**-33, 0.499, 10001).astype(np.float32)
    z = normal_magnitude(np.float32(0.5) - tail, tail)
    np.testing.assert_allclose(z, -special.ndtri(tail.astype(np.float64)), rtol=1e-6, atol=1e-7)


def test_normal_cdf_agrees_with_scipy() -> None:
    x = np.linspace(-37, 9, 1001)
    values = [normal_cdf(v) for v in x.tolist()]
    np.testing.assert_allclose(values, stats.norm.cdf(x), rtol=1e-12)
    assert [normal_cdf(v) for v in (-math.inf, -40.0, 0.0, math.inf)] == [0, 0, 0.5, 1]
    assert math.isnan(normal_cdf(math.nan))


# ---- what all distributions have in common ------------------------------------------------------


@pytest.mark.parametrize("draw", SHAPED.values(), ids=SHAPED)
@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (2, 3), (5,)])
def test_shapes(draw: Callable[..., Any], shape: tuple[int, ...]) -> None:
    sample = draw(KEY, 0, shape)
    assert isinstance(sample, np.ndarray)
    assert sample.shape == shape
    assert sample.flags.writeable


@pytest.mark.parametrize("draw", SHAPED.values(), ids=SHAPED)
def test_an_element_depends_on_its_position_alone(draw: Callable[..., Any]) -> None:
    long = draw(KEY, 3, (CHUNK + 100,))
    for n in (1, 2, 7, CHUNK - 1, CHUNK + 1):
        assert np.array_equal(draw(KEY, 3, n), long[:n])
    assert np.array_equal(draw(KEY, 3, (2, 3, 5)).ravel(), long[:30])


@pytest.mark.parametrize("draw", SHAPED.values(), ids=SHAPED)
def test_key_and_counter_choose_the_stream(draw: Callable[..., Any]) -> None:
    base = draw(KEY, 0, 64)
    assert np.array_equal(draw(KEY, 0, 64), base)
    assert not np.array_equal(draw(KEY + 1, 0, 64), base)
    assert not np.array_equal(draw(KEY, 16, 64), base)


@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_continuous_dtypes(name: str, dtype: np.dtype) -> None:
    sample = SHAPED[name](KEY, 0, 1000, dtype=dtype)
    assert sample.dtype == dtype
    assert np.all(np.isfinite(sample.astype(np.float64)))


@pytest.mark.parametrize("name", [name for name in CONTINUOUS if name != "gamma"])
def test_half_precision_is_the_rounded_float32(name: str) -> None:
    single = SHAPED[name](KEY, 0, 1000)
    for dtype in (np.dtype(np.float16), BFLOAT16):
        half = SHAPED[name](KEY, 0, 1000, dtype=dtype)
        expected = single.astype(dtype)
        differs = half != expected
        assert np.all(expected[differs] == 1)  # only where rounding up would touch the bound
        assert np.count_nonzero(differs) < 10


@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.parametrize("dtype", ["int32", "bool"])
def test_continuous_distributions_refuse_other_dtypes(name: str, dtype: str) -> None:
    with pytest.raises(TypeError, match=f"{name} draws floats.*Received: {dtype}"):
        SHAPED[name](KEY, 0, 3, dtype=dtype)


@pytest.mark.parametrize("draw", SHAPED.values(), ids=SHAPED)
def test_bad_shapes(draw: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="negative"):
        draw(KEY, 0, (2, -1))
    with pytest.raises(TypeError, match="Received"):
        draw(KEY, 0, 2.5)


@pytest.mark.parametrize(
    ("shape", "dtype", "blocks"),
    [
        ((), "float32", 1),
        ((0,), "float32", 0),
        ((8,), "float32", 1),
        ((9,), "float16", 2),
        ((8,), "float64", 2),
        ((3, 3), "int8", 3),
        ((17,), BFLOAT16, 3),
    ],
)
def test_blocks_for(shape: tuple[int, ...], dtype: Any, blocks: int) -> None:
    assert rk.blocks_for(shape, dtype) == blocks


@pytest.mark.parametrize("name", ["uniform", "normal", "exponential"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_draw_reads_just_the_blocks_it_claims(name: str, dtype: str) -> None:
    n = 24
    blocks = rk.blocks_for(n, dtype)
    whole = SHAPED[name](KEY, 0, 3 * n, dtype=dtype)
    for i in range(3):
        part = SHAPED[name](KEY, i * blocks, n, dtype=dtype)
        assert np.array_equal(part, whole[i * n : (i + 1) * n])


def test_pinned_values() -> None:
    """Fix the streams: a change here breaks every stored experiment."""
    drawn = {name: draw(1, 2, 3).tolist() for name, draw in SHAPED.items()}
    drawn["normal64"] = rk.normal(1, 2, 3, dtype="float64").tolist()
    drawn["permutation"] = rk.permutation(1, 2, 8).tolist()
    weights = [0.1, 0.2, 0.3, 0.4]
    drawn["categorical"] = rk.categorical(1, 2, logits=weights, num_samples=8).tolist()
    drawn["subset"] = rk.categorical(
        1, 2, probabilities=weights, num_samples=4, replacement=False
    ).tolist()
    assert drawn == PINNED


# ---- uniform ------------------------------------------------------------------------------------


def test_uniform_takes_the_low_half_of_a_word_first() -> None:
    word = int(philox_bits(KEY, 0, 1)[0])
    expected = [(word & 0xFFFFFFFF) >> 8, word >> 40]
    assert (rk.uniform(KEY, 0, 2) * 2**24).tolist() == expected
    assert rk.uniform(KEY, 0, (), dtype="float64").item() * 2**53 == word >> 11


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 5), (1e6, 1e6 + 7)])
def test_uniform_law(dtype: str, low: float, high: float) -> None:
    sample = rk.uniform(KEY, 0, N, low=low, high=high, dtype=dtype)
    if np.spacing(np.dtype(dtype).type(high)) < 1e-5:  # ties would fail a continuous test
        assert_follows(sample, stats.uniform(low, high - low))
    assert sample.min() >= low
    assert sample.max() < high


@given(
    low=st.floats(-1e4, 1e4, width=16),
    steps=st.integers(1, 3),
    dtype=st.sampled_from(FLOATS),
)
def test_uniform_never_touches_high_even_in_the_narrowest_interval(
    low: float, steps: int, dtype: np.dtype
) -> None:
    first = np.asarray(low).astype(dtype)
    last = first
    for _ in range(steps):
        last = np.nextafter(last, np.asarray(np.inf, dtype))
    sample = rk.uniform(KEY, 0, 200, low=float(first), high=float(last), dtype=dtype)
    assert np.all(sample >= first)
    assert np.all(sample < last)


def test_uniform_half_stays_below_one() -> None:
    for dtype in (np.float16, BFLOAT16):
        sample = rk.uniform(KEY, 0, N, dtype=dtype).astype(np.float32)
        assert sample.min() >= 0
        assert 0.99 < sample.max() < 1


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [
        (1, 1, "float32"),
        (2, 1, "float32"),
        (math.nan, 1, "float32"),
        (0, math.inf, "float64"),
        (-3e38, 3e38, "float32"),
        (0, 1e6, "float16"),
        (1, 1 + 1e-9, "float32"),
    ],
)
def test_uniform_refuses_bad_bounds(low: float, high: float, dtype: str) -> None:
    with pytest.raises(ValueError, match="Received"):
        rk.uniform(KEY, 0, 3, low=low, high=high, dtype=dtype)


# ---- normal and truncated normal ----------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("mean", "std"), [(0, 1), (-3, 0.5), (100, 7)])
def test_normal_law(dtype: str, mean: float, std: float) -> None:
    assert_follows(rk.normal(KEY, 0, N, mean=mean, std=std, dtype=dtype), stats.norm(mean, std))


@pytest.mark.parametrize(("unsigned", "bits"), [(np.uint32, 32), (np.uint64, 64)])
def test_normal_lanes_are_symmetric_finite_and_never_zero(unsigned: type, bits: int) -> None:
    top, half = 2**bits - 1, 2 ** (bits - 1)
    low = [0, 1, half // 5, half - 1]
    z = standard_normal(np.array(low + [top - v for v in low], unsigned))
    assert np.array_equal(z[:4], -z[4:])
    assert np.all(z[:4] > 0)
    assert z[3] == pytest.approx(-special.ndtri(2.0 ** (-bits - 1)), rel=1e-6)


def test_normal_with_zero_std_is_the_mean() -> None:
    assert rk.normal(KEY, 0, 3, mean=2, std=0).tolist() == [2, 2, 2]


def test_normal_overflow_is_infinite_without_a_warning() -> None:
    assert np.all(np.isinf(rk.normal(KEY, 0, 8, std=1e30, dtype="float16")))


@pytest.mark.parametrize(
    ("mean", "std", "error"),
    [
        (0, -1, ValueError),
        (math.nan, 1, ValueError),
        (0, math.inf, ValueError),
        ("a", 1, TypeError),
    ],
)
def test_normal_refuses_bad_parameters(mean: Any, std: float, error: type[Exception]) -> None:
    with pytest.raises(error, match="Received"):
        rk.normal(KEY, 0, 3, mean=mean, std=std)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("mean", "std", "a", "b"),
    [
        (0, 1, -2, 2),
        (1, 2, -1, 7),
        (0, 1, 4, 5),
        (0, 1, -9, -8),
        (0, 1, 12, math.inf),
        (0, 0.02, -math.inf, 0.01),
        (5, 1, -math.inf, math.inf),
    ],
)
def test_truncated_normal_law(dtype: str, mean: float, std: float, a: float, b: float) -> None:
    sample = rk.truncated_normal(KEY, 0, N, mean=mean, std=std, a=a, b=b, dtype=dtype)
    law = stats.truncnorm((a - mean) / std, (b - mean) / std, loc=mean, scale=std)
    assert stats.kstest(sample.astype(np.float64), law.cdf).pvalue > 1e-3
    assert np.all((sample >= a) & (sample <= b))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_truncated_normal_rounds_into_the_interval(dtype: np.dtype) -> None:
    a, b = 0.1, 0.1 + 2e-3
    sample = rk.truncated_normal(KEY, 0, 2000, a=a, b=b, dtype=dtype).astype(np.float64)
    assert np.all((sample >= a) & (sample <= b))


@pytest.mark.parametrize(
    "parameters",
    [
        {"std": 0},
        {"std": -1},
        {"a": 2, "b": 1},
        {"a": math.nan},
        {"mean": math.inf},
        {"a": 50, "b": 60},
        {"a": 0.1, "b": 0.1 + 1e-17 * 2},
        {"a": 0.1001, "b": 0.10011, "dtype": "float16"},
    ],
    ids=str,
)
def test_truncated_normal_refuses_bad_parameters(parameters: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"truncated_normal|must be finite"):
        rk.truncated_normal(KEY, 0, 3, **parameters)


# ---- exponential and gamma ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rate", [1.0, 0.1, 30.0])
def test_exponential_law(dtype: str, rate: float) -> None:
    sample = rk.exponential(KEY, 0, N, rate=rate, dtype=dtype)
    assert_follows(sample, stats.expon(scale=1 / rate))
    assert sample.min() > 0


def test_exponential_rate_broadcasts() -> None:
    unit = rk.exponential(KEY, 0, (2, 3), dtype="float64")
    rates = np.array([[1.0], [4.0]])
    assert np.array_equal(rk.exponential(KEY, 0, (2, 3), rate=rates, dtype="float64"), unit / rates)
    with pytest.raises(ValueError, match=r"\(4,\)"):
        rk.exponential(KEY, 0, (2, 3), rate=np.ones(4))
    with pytest.raises(ValueError, match=r"\(5, 1\)"):
        rk.exponential(KEY, 0, (3,), rate=np.ones((5, 1)))


@pytest.mark.parametrize("rate", [0, -1, math.nan, math.inf, [1, 0]])
def test_exponential_refuses_bad_rates(rate: Any) -> None:
    with pytest.raises(ValueError, match="rate must be positive and finite"):
        rk.exponential(KEY, 0, 2, rate=rate)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("alpha", [0.05, 0.5, 1.0, 1.5, 20.0, 1e6])
def test_gamma_law(dtype: str, alpha: float) -> None:
    sample = rk.gamma(KEY, 0, N, alpha=alpha, dtype=dtype)
    if dtype == "float64" or 0.05 < alpha < 1e6:  # beyond, the range of float32 shows
        assert_follows(sample, stats.gamma(alpha))
    assert sample.min() > 0


def test_gamma_elements_do_not_disturb_each_other() -> None:
    alphas = np.resize([0.3, 1.0, 2.5, 50.0], 2000)
    mixed = rk.gamma(KEY, 0, 2000, alpha=alphas, dtype="float64")
    for i, alpha in enumerate([0.3, 1.0, 2.5, 50.0]):
        alone = rk.gamma(KEY, 0, 2000, alpha=alpha, dtype="float64")
        assert np.array_equal(mixed[i::4], alone[i::4])
    shifted = [rk.gamma(KEY, i, 1, alpha=a, dtype="float64")[0] for i, a in enumerate(alphas)]
    assert np.array_equal(mixed, shifted)


@pytest.mark.parametrize("alpha", [1e-300, 1e-5, 1e15, 1e300])
def test_gamma_of_extreme_alpha_is_positive_and_terminates(alpha: float) -> None:
    sample = rk.gamma(KEY, 0, 100, alpha=alpha, dtype="float64")
    assert np.all(sample >= np.finfo(np.float64).tiny)
    assert np.all(np.isfinite(sample))
    if alpha > 1:
        np.testing.assert_allclose(sample, alpha, rtol=1e-6)


def test_gamma_underflow_stays_a_normal_number_in_each_dtype() -> None:
    for dtype in FLOATS:
        sample = rk.gamma(KEY, 0, 100, alpha=1e-4, dtype=dtype).astype(np.float64)
        tiny = np.finfo(dtype if dtype != BFLOAT16 else np.float32).tiny
        assert sample.min() == tiny


def test_gamma_blocks_are_one_per_element() -> None:
    assert rk.gamma_blocks((3, 4)) == 12
    assert rk.gamma_blocks(()) == 1


@pytest.mark.parametrize("alpha", [0, -1, math.nan, math.inf])
def test_gamma_refuses_bad_alpha(alpha: float) -> None:
    with pytest.raises(ValueError, match="alpha must be positive and finite"):
        rk.gamma(KEY, 0, 2, alpha=alpha)


def test_gamma_refuses_counters_that_belong_to_its_rounds() -> None:
    with pytest.raises(ValueError, match="counter must stay below"):
        rk.gamma(KEY, 2**64 - 1, 2, alpha=1.0)


# ---- integers, coins, categories, orders --------------------------------------------------------


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_randint_covers_the_full_range_of_each_dtype(dtype: np.dtype) -> None:
    limits = np.iinfo(dtype)
    sample = rk.randint(KEY, 0, N, low=limits.min, high=limits.max + 1, dtype=dtype)
    assert sample.dtype == dtype
    unit = (sample.astype(np.float64) - limits.min) / 2.0**limits.bits
    if limits.bits > 8:
        assert stats.kstest(unit, "uniform").pvalue > 1e-3
    else:
        assert stats.chisquare(np.unique(sample, return_counts=True)[1]).pvalue > 1e-3


@given(low=st.integers(-(2**63), 2**63 - 1), span=st.integers(1, 2**64) | st.integers(1, 2**33))
def test_randint_is_the_upper_half_of_the_product(low: int, span: int) -> None:
    high = min(low + span, 2**63)
    words = philox_bits(KEY, 5, 6).tolist()
    expected = [low + (word * (high - low) >> 64) for word in words]
    assert rk.randint(KEY, 5, 6, low=low, high=high).tolist() == expected


def test_randint_is_uniform_and_stays_within_its_bounds() -> None:
    sample = rk.randint(KEY, 0, N, low=-3, high=7, dtype="int8")
    values, counts = np.unique(sample, return_counts=True)
    assert values.tolist() == list(range(-3, 7))
    assert stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize(
    ("low", "high", "dtype", "error"),
    [
        (0, 0, "int64", ValueError),
        (5, 2, "int64", ValueError),
        (-1, 5, "uint8", ValueError),
        (0, 257, "uint8", ValueError),
        (0, 2**63 + 1, "int64", ValueError),
        (0, 2, "float32", TypeError),
        (0, 2, "bool", TypeError),
        (0.5, 2, "int64", TypeError),
    ],
)
def test_randint_refuses_bad_ranges(
    low: Any, high: int, dtype: str, error: type[Exception]
) -> None:
    with pytest.raises(error, match="Received"):
        rk.randint(KEY, 0, 3, low=low, high=high, dtype=dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("p", [0.0, 0.125, 0.5, 0.9375, 1.0])
def test_bernoulli_frequency(dtype: np.dtype, p: float) -> None:
    sample = rk.bernoulli(KEY, 0, N, p=np.asarray(p).astype(dtype))
    assert sample.dtype == np.bool
    assert abs(sample.mean() - p) <= 4 * math.sqrt(p * (1 - p) / N)


def test_bernoulli_probabilities_broadcast_and_may_be_integers() -> None:
    sample = rk.bernoulli(KEY, 0, (1000, 3), p=np.array([0, 1, 0]))
    assert sample.mean(axis=0).tolist() == [0, 1, 0]
    with pytest.raises(ValueError, match="does not broadcast"):
        rk.bernoulli(KEY, 0, (3,), p=np.full((2, 3), 0.5))


@pytest.mark.parametrize("p", [-0.1, 1.1, math.nan, [0.5, 2.0]])
def test_bernoulli_refuses_bad_probabilities(p: Any) -> None:
    with pytest.raises(ValueError, match=r"p must lie in \[0, 1\]. Received"):
        rk.bernoulli(KEY, 0, 2, p=p)


WEIGHTS = np.array([[0.1, 0.0, 0.6, 0.3], [5.0, 1.0, 1.0, 0.0]])


@pytest.mark.parametrize("as_logits", [False, True])
@pytest.mark.parametrize("num_samples", [20, N])
def test_categorical_frequencies(as_logits: bool, num_samples: int) -> None:
    repeats = N // num_samples
    weights = np.tile(WEIGHTS, (repeats, 1))
    with np.errstate(divide="ignore"):
        given_as = {"logits": np.log(weights)} if as_logits else {"probabilities": weights}
    sample = rk.categorical(KEY, 0, num_samples=num_samples, **given_as)
    assert sample.shape == (2 * repeats, num_samples)
    assert sample.dtype == np.int64
    for row, weight in enumerate(WEIGHTS):
        counts = np.bincount(sample[row::2].ravel(), minlength=4)
        possible = weight > 0
        assert counts[~possible].sum() == 0
        expected = weight[possible] / weight.sum() * counts.sum()
        assert stats.chisquare(counts[possible], expected).pvalue > 1e-3


def test_categorical_searches_agree() -> None:
    weights = np.random.default_rng(0).random(37)
    many = rk.categorical(KEY, 0, probabilities=weights, num_samples=200)
    few = rk.categorical(KEY, 0, probabilities=np.tile(weights, (10, 1)), num_samples=20)
    assert np.array_equal(many, few.ravel())


def test_categorical_without_replacement_draws_in_proportion() -> None:
    """Check the first draw, and the second given the first, against sequential sampling."""
    weight = np.array([0.5, 0.3, 0.2, 0.0])
    rows = np.tile(weight, (N, 1))
    sample = rk.categorical(KEY, 0, probabilities=rows, num_samples=2, replacement=False)
    first = np.bincount(sample[:, 0], minlength=3)
    assert stats.chisquare(first, weight[:3] * N).pvalue > 1e-3
    second = np.bincount(sample[sample[:, 0] == 0, 1], minlength=3)
    assert stats.chisquare(second[1:], np.array([0.6, 0.4]) * second.sum()).pvalue > 1e-3
    assert np.all(sample[:, 0] != sample[:, 1])


def test_categorical_without_replacement_keeps_categories_that_would_underflow() -> None:
    logits = [0.0, -2000.0, -np.inf, -4000.0]
    sample = rk.categorical(KEY, 0, logits=logits, num_samples=3, replacement=False)
    assert sample.tolist() == [0, 1, 3]


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e308])
def test_categorical_weights_of_any_scale(scale: float) -> None:
    sample = rk.categorical(KEY, 0, probabilities=np.full(3, scale), num_samples=300)
    assert set(sample.tolist()) == {0, 1, 2}


@pytest.mark.parametrize("replacement", [False, True])
def test_categorical_shapes_and_blocks(replacement: bool) -> None:
    draw = partial(rk.categorical, KEY, 0, replacement=replacement)
    assert draw(probabilities=np.ones(3)).shape == (1,)
    assert draw(probabilities=np.ones((2, 5, 3)), num_samples=2).shape == (2, 5, 2)
    assert draw(probabilities=np.ones((0, 3)), num_samples=2).shape == (0, 2)
    assert draw(probabilities=np.ones((4, 3)), num_samples=0).shape == (4, 0)
    assert draw(probabilities=[7.0]).tolist() == [0]
    assert rk.categorical_blocks((5, 3), 2, replacement=replacement) == (3 if replacement else 4)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({}, "either probabilities or logits"),
        ({"probabilities": [1.0], "logits": [1.0]}, "either probabilities or logits"),
        ({"probabilities": [0.5, -0.1]}, "finite and not negative"),
        ({"probabilities": [0.5, math.nan]}, "finite and not negative"),
        ({"probabilities": [0.5, math.inf]}, "finite and not negative"),
        ({"probabilities": [[1.0, 0.0], [0.0, 0.0]]}, "at least one category"),
        ({"logits": [0.0, math.inf]}, "below inf"),
        ({"logits": [0.0, math.nan]}, "below inf"),
        ({"logits": [-math.inf, -math.inf]}, "at least one category"),
        ({"probabilities": 1.0}, "K >= 1"),
        ({"probabilities": np.ones((2, 0))}, "K >= 1"),
        ({"probabilities": [1.0, 1.0], "num_samples": -1}, "negative"),
        (
            {"probabilities": [1.0, 0.0, 1.0], "num_samples": 3, "replacement": False},
            "only 2 of non-zero weight",
        ),
    ],
)
def test_categorical_refuses_bad_input(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rk.categorical(KEY, 0, **parameters)


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_permutation_holds_each_index_once(n: int) -> None:
    order = rk.permutation(KEY, 0, n)
    assert order.dtype == np.int64
    assert np.array_equal(np.sort(order), np.arange(n))


def test_permutations_are_equally_likely() -> None:
    counts: dict[bytes, int] = {}
    for counter in range(6000):
        order = rk.permutation(KEY, counter, 3).tobytes()
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


def test_permutation_breaks_ties_by_position(monkeypatch: pytest.MonkeyPatch) -> None:
    words = np.array([3, 1] * 50, np.uint64)
    monkeypatch.setattr("weft.core.random_discrete.philox_bits", lambda *_: words)
    expected = [*range(1, 100, 2), *range(0, 100, 2)]
    assert rk.permutation(KEY, 0, 100).tolist() == expected


def test_permutation_refuses_bad_lengths() -> None:
    with pytest.raises(ValueError, match="negative"):
        rk.permutation(KEY, 0, -1)
    with pytest.raises(TypeError, match="n must be an integer"):
        rk.permutation(KEY, 0, 2.0)
