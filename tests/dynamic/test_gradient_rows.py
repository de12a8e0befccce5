"""Gradients by row."""

from __future__ import annotations

import numpy as np
import pytest

from weft.dynamic import gradient_rows
from weft.dynamic.gradient_rows import GradientRows

ROWS = 40


def zeros(dtype=np.float64):
    """Return the gradient of what nobody has looked at."""
    return np.broadcast_to(np.zeros((), dtype), (ROWS, 3))


@pytest.fixture(params=["small", "large"])
def large(request, monkeypatch):
    if request.param == "large":
        monkeypatch.setattr(gradient_rows, "LARGE", 1)
    return request.param == "large"


@pytest.mark.parametrize("at_once", [True, False])
def test_rows_are_written_and_added_to(large, at_once):
    grads, expected = GradientRows(zeros(), at_once), np.zeros((ROWS, 3))
    assert grads.is_blank == at_once
    if at_once:
        grads.array[:ROWS] = np.nan if large else 0  # what was there before
        grads.write(np.array([3, 1]), np.ones((2, 3)))
        expected[[3, 1]] = 1
    grads.add(np.array([1, 5, 5]), np.ones((3, 3)), False)
    np.add.at(expected, [1, 5, 5], 1)
    grads.add(slice(4, 6), np.full((2, 3), 2.0), False)
    expected[4:6] += 2
    grads.add(np.array([9, 8]), np.ones((2, 3)), True)
    expected[[9, 8]] += 1
    np.testing.assert_array_equal(grads.seed(slice(0, 12), 12), expected[:12])
    np.testing.assert_array_equal(grads.total([20]), expected[20])
    np.testing.assert_array_equal(grads.total([5, 21]), expected[[5, 21]].sum(0))


def test_what_is_given_stays(large):
    given = np.arange(3.0 * ROWS).reshape(ROWS, 3)
    grads = GradientRows(given, True)
    assert not grads.is_blank
    grads.add(slice(0, 1), np.ones((1, 3)), True)
    np.testing.assert_array_equal(grads.seed(slice(0, 2), 2), given[:2] + np.array([[1], [0]]))
    np.testing.assert_array_equal(given[0], [0, 1, 2])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_rows_of_several_operands_are_added_to(large, dtype):
    """They come as lines of rows, of which many are there twice."""
    rng = np.random.default_rng(0)
    where, g = rng.integers(0, ROWS, (4, 50)), rng.integers(-4, 4, (4, 50, 3)).astype(dtype)
    grads, expected = GradientRows(zeros(dtype), at_once=True), np.zeros((ROWS, 3), dtype)
    for given in (g, g[:, :, ::-1]):
        grads.add(where, given, False)
        np.add.at(expected, where.ravel(), given.reshape(-1, 3))
    np.testing.assert_array_equal(grads.seed(slice(0, ROWS), ROWS), expected)
