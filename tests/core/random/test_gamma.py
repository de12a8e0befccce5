"""Hold the gamma distribution to its law (SciPy is the oracle) and its bounds."""

import math

import numpy as np
import pytest
from scipy import stats

from tests.core.laws import BFLOAT16, FLOATS, KEY, N, assert_follows
from weft.core import random as rk


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
