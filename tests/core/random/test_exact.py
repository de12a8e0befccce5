"""Elementary functions of random numbers are the same bits everywhere, and accurate."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy import stats

from tests.core.laws import N
from weft.core import random as rk
from weft.core.random.exact import normal_cdf


def ulps(values: np.ndarray, exact: list[Decimal]) -> float:
    """Return the largest error in units of the last place of the exact result."""
    pairs = zip(values.tolist(), exact, strict=True)
    return max(float(abs(Decimal(v) - e)) / math.ulp(float(e)) for v, e in pairs)


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


def test_normal_cdf_agrees_with_scipy() -> None:
    x = np.linspace(-37, 9, 1001)
    values = [normal_cdf(v) for v in x.tolist()]
    np.testing.assert_allclose(values, stats.norm.cdf(x), rtol=1e-12)
    assert [normal_cdf(v) for v in (-math.inf, -40.0, 0.0, math.inf)] == [0, 0, 0.5, 1]
    assert math.isnan(normal_cdf(math.nan))
