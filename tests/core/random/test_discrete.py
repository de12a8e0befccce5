"""Hold integers, coins, categories and permutations to their frequencies and bounds."""

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tests.core.laws import FLOATS, INTEGERS, KEY, N
from weft.core import random as rk
from weft.core.rng import philox_bits


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
    monkeypatch.setattr("weft.core.random.discrete.philox_bits", lambda *_: words)
    expected = [*range(1, 100, 2), *range(0, 100, 2)]
    assert rk.permutation(KEY, 0, 100).tolist() == expected


def test_permutation_refuses_bad_lengths() -> None:
    with pytest.raises(ValueError, match="negative"):
        rk.permutation(KEY, 0, -1)
    with pytest.raises(TypeError, match="n must be an integer"):
        rk.permutation(KEY, 0, 2.0)
