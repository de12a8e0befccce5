"""Fillers: their distributions and shapes."""

import numpy as np
import pytest

from weft.caffe.errors import CaffeError
from weft.caffe.fillers import fill
from weft.caffe.message import FillerParameter

SHAPE = (64, 32, 5, 5)


def filled(shape=SHAPE, **fields):
    return fill(FillerParameter(**fields), shape)


def test_uniform_and_gaussian_numbers():
    values = filled(type="uniform", min=-1, max=3)
    assert -1 <= values.min() < -0.99
    assert 2.99 < values.max() <= 3
    values = filled(type="gaussian", mean=2, std=0.5)
    assert abs(values.mean() - 2) < 0.01
    assert abs(values.std() - 0.5) < 0.01


def test_sparse_numbers():
    values = filled(type="gaussian", std=1, sparse=16)
    assert abs((values != 0).mean() - 16 / 64) < 0.01


@pytest.mark.parametrize(
    ("norm", "n"), [("FAN_IN", 32 * 25), ("FAN_OUT", 64 * 25), ("AVERAGE", 48 * 25)]
)
def test_fans(norm, n):
    values = filled(type="xavier", variance_norm=norm)
    assert np.abs(values).max() == pytest.approx(np.sqrt(3 / n), rel=1e-3)
    values = filled(type="msra", variance_norm=norm)
    assert values.std() == pytest.approx(np.sqrt(2 / n), rel=0.02)


def test_rows_that_sum_to_1():
    values = filled((5, 7), type="positive_unitball")
    np.testing.assert_allclose(values.sum(1), 1, rtol=1e-6)
    assert (values >= 0).all()


def test_bilinear_filters_interpolate():
    values = filled((2, 1, 4, 4), type="bilinear")
    ramp = np.array([0.25, 0.75, 0.75, 0.25])
    np.testing.assert_allclose(values[1, 0], np.outer(ramp, ramp))


def test_scalars_and_empty_shapes():
    assert filled((), type="constant", value=3).tolist() == 3
    assert filled((0, 3), type="xavier").shape == (0, 3)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"type": "xaver"}, "Unknown filler name: 'xaver'; there are"),
        ({"type": "uniform", "min": 2}, "min must not exceed max"),
        ({"type": "gaussian", "std": -1}, "std must not be negative"),
        ({"type": "bilinear"}, None),
    ],
)
def test_what_is_refused(fields, message):
    shape = (2, 1, 4, 3) if message is None else SHAPE
    with pytest.raises(CaffeError, match=message or "Blob must be 4 dim, and square"):
        filled(shape, **fields)
