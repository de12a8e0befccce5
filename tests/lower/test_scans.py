"""Recurrences along an axis."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.programs.running import check_native

rng = np.random.default_rng(0)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("size", [1, 3, 17, 130])
def test_running_sums_are_the_same_bits(axis, size):
    x = rng.normal(size=(5, size, size % 7 + 1)).astype(np.float32)
    check_native(
        lambda x: (
            wf.cumsum(x, axis),
            wf.cumsum(x, axis, reverse=True),
            wf.cumprod(x, axis, exclusive=True),
            wf.cummax(x, axis),
        ),
        x,
    )


def test_logarithms_and_gradients():
    x = rng.normal(size=(7, 33)).astype(np.float64)
    x[3, :5] = -np.inf
    check_native(lambda x: wf.logcumsumexp(x, 1), x, tolerance=1e-13)
    y = rng.normal(size=(7, 33))
    check_native(lambda y: wf.gradients((wf.cumprod(y, 0) ** 2).sum(), y), y, tolerance=1e-12)


def test_special_values():
    x = np.array([[1.0, np.nan, 3.0], [np.inf, -np.inf, np.inf], [2.0, 2.0, 1.0]])
    check_native(lambda x: (wf.cummax(x, 1), wf.cummin(x, 1), wf.cumsum(x, 1)), x)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float16"])
def test_other_dtypes(dtype):
    x = rng.integers(0, 3, (4, 40)).astype(dtype)
    check_native(lambda x: (wf.cumsum(x, 0), wf.cumsum(x, 1)), x)
