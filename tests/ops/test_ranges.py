"""Tensors of evenly spaced numbers."""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.ops.test_creation import same


@pytest.mark.parametrize(
    "args", [(5,), (2, 7), (7, 2), (7, 2, -2), (0,), (-3,), (0.0, 1.0, 0.25), (1.5,), (3, 0, -0.5)]
)
def test_arange_is_numpys(args):
    expected = np.arange(*args)
    dtype = np.int64 if expected.dtype.kind == "i" else np.float32
    same(wf.arange(*args), expected.astype(dtype))
    same(wf.arange(*args, dtype="float64"), expected.astype(np.float64))


def test_arange_takes_zero_dimensional_tensors():
    assert wf.arange(wf.tensor(3)).tolist() == [0, 1, 2]


def test_bad_ranges():
    with pytest.raises(ValueError, match="step must not be zero"):
        wf.arange(0, 3, 0)
    with pytest.raises(ValueError, match=r"finite.*inf"):
        wf.arange(0, float("inf"))
    with pytest.raises(TypeError, match=r"stop must be a number.*'a'"):
        wf.arange("a")
    with pytest.raises(ValueError, match="negative"):
        wf.linspace(0, 1, -2)
    with pytest.raises(TypeError, match=r"2\.5"):
        wf.linspace(0, 1, 2.5)


def test_linspace_and_logspace():
    same(wf.linspace(0, 1, 5), np.linspace(0, 1, 5, dtype=np.float32))
    same(wf.linspace(0, 1, 4, endpoint=False), np.linspace(0, 1, 4, False).astype(np.float32))
    same(wf.linspace(2, 3, 1), np.array([2], np.float32))
    same(wf.linspace(2, 3, 0), np.array([], np.float32))
    same(wf.linspace(-1, 1, 3, dtype="int64"), np.array([-1, 0, 1]))
    found = wf.logspace(0, 3, 4, base=2.0, dtype="float64")
    np.testing.assert_allclose(found.numpy(), [1, 2, 4, 8], rtol=1e-15)
