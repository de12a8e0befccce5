"""Hold continuous distributions to their laws (SciPy is the oracle) and their bounds."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from tests.core.laws import BFLOAT16, FLOATS, KEY, N, assert_follows
from weft.core import random as rk
from weft.core.random.lanes import standard_normal
from weft.core.rng import philox_bits


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
        {"a": 50, "b": 60},
        {"a": 0.1, "b": 0.1 + 1e-17 * 2},
        {"a": 0.1001, "b": 0.10011, "dtype": "float16"},
    ],
    ids=str,
)
def test_truncated_normal_refuses_intervals_without_numbers(parameters: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="truncated_normal"):
        rk.truncated_normal(KEY, 0, 3, **parameters)


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
