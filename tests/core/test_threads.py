"""The number of threads."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf


def test_a_number_that_was_set_is_read_back():
    before = wf.get_num_threads()
    try:
        wf.set_num_threads(1)
        assert wf.get_num_threads() == 1
        x = np.random.default_rng(0).normal(size=(64, 64))
        np.testing.assert_allclose((wf.tensor(x) @ wf.tensor(x)).numpy(), x @ x, rtol=1e-12)
    finally:
        wf.set_num_threads(before)
    assert wf.get_num_threads() == before


@pytest.mark.parametrize(("n", "error"), [(0, ValueError), (-2, ValueError), (1.5, TypeError)])
def test_bad_numbers_are_refused(n, error):
    with pytest.raises(error, match="set_num_threads: n must be"):
        wf.set_num_threads(n)
