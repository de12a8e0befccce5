"""Softmax and its logarithm: rows that have no distribution, and large logits."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from weft.core.op import F

NO_DISTRIBUTION = [[np.inf, 1.0, 2.0], [-np.inf] * 3, [np.nan, 1.0, 2.0], [np.inf, np.inf, 0.0]]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
def test_rows_without_a_distribution_are_nan_throughout(axis, compiled):
    """The shares of a row that holds inf are as unknown as their logarithms and gradients."""
    rows = np.array([*NO_DISTRIBUTION, [0.0, -np.inf, 1.0]], np.float32)
    x = wf.tensor(rows if axis == 1 else rows.T.copy())

    def all_four(x):
        log_slope = wf.grad(lambda x: F.log_softmax(x, axis)[..., :1].sum())(x)
        slope = wf.grad(lambda x: F.softmax(x, axis)[..., :1].sum())(x)
        return F.softmax(x, axis), F.log_softmax(x, axis), slope, log_slope

    found = (wf.compile(all_four, x) if compiled else all_four)(x)
    shares, logs, *slopes = [y.numpy() if axis == 1 else y.numpy().T for y in found]
    assert np.isnan(shares[:4]).all()
    assert np.isnan(logs[:4]).all()
    np.testing.assert_allclose(np.exp(logs[4]), shares[4], rtol=1e-6)
    if axis == 1:
        assert all(np.isnan(slope[:4]).all() for slope in slopes)


def test_log_softmax_of_large_logits_is_accurate():
    logits = np.array([1000.0, 999.5, 998.0], np.float32)
    exact = logits.astype(np.float64) - 1000
    exact = exact - np.log(np.exp(exact).sum())
    np.testing.assert_allclose(F.log_softmax(wf.tensor(logits)).numpy(), exact, rtol=3e-7)
