"""Synthetic data: shapes, ranges, and that the problems are what they claim to be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft as wf
from weft.core.errors import ArgumentError, ShapeError
from weft.data import (
    make_blobs,
    make_moons,
    make_regression,
    make_shapes,
    make_sines,
    make_spirals,
)

MAKERS: list[Any] = [
    make_blobs,
    make_moons,
    make_spirals,
    make_regression,
    make_sines,
    make_shapes,
]


def arrays(dataset: Any) -> list[np.ndarray[Any, Any]]:
    return [tensor.numpy() for tensor in dataset.tensors]


@pytest.mark.parametrize("make", MAKERS)
def test_seed_decides(make: Any) -> None:
    for a, b in zip(arrays(make(20, seed=1)), arrays(make(20, seed=1)), strict=True):
        np.testing.assert_array_equal(a, b)
    assert (arrays(make(20, seed=1))[0] != arrays(make(20, seed=2))[0]).any()
    wf.manual_seed(4)
    first = arrays(make(20))[0]
    assert (arrays(make(20))[0] != first).any()
    wf.manual_seed(4)
    np.testing.assert_array_equal(arrays(make(20))[0], first)


@pytest.mark.parametrize("make", MAKERS)
def test_kinds(make: Any) -> None:
    x, y = make(7, seed=0).tensors
    assert len(x) == len(y) == 7
    assert x.dtype == wf.float32
    assert y.dtype in (wf.int64, wf.float32)
    assert bool(wf.isfinite(x).all())


@pytest.mark.parametrize("make", [make_blobs, make_moons, make_spirals, make_shapes])
def test_classes_are_balanced(make: Any) -> None:
    counts = np.bincount(arrays(make(101, seed=0))[1])
    assert counts.max() - counts.min() <= 1


def test_blobs_lie_around_their_centres() -> None:
    centres = [[0.0, 10.0, 0.0], [5.0, 0.0, -3.0]]
    x, y = arrays(make_blobs(4000, centers=centres, std=0.5, seed=0))
    for label, centre in enumerate(centres):
        np.testing.assert_allclose(x[y == label].mean(axis=0), centre, atol=0.05)
        np.testing.assert_allclose(x[y == label].std(axis=0), 0.5, atol=0.05)


def test_moons_and_spirals_lie_on_their_curves() -> None:
    x, y = arrays(make_moons(500, noise=0.0, seed=0))
    upper, lower = x[y == 0], x[y == 1]
    np.testing.assert_allclose(np.hypot(*upper.T), 1, rtol=1e-5)
    np.testing.assert_allclose(np.hypot(lower[:, 0] - 1, lower[:, 1] - 0.5), 1, rtol=1e-5)
    x, y = arrays(make_spirals(500, classes=3, turns=1, noise=0, seed=0))
    radius = np.hypot(*x.T)
    angle = (np.arctan2(x[:, 1], x[:, 0]) / (2 * np.pi) - radius - y / 3) % 1
    assert np.minimum(angle, 1 - angle).max() < 1e-5
    assert radius.max() <= 1


def test_regression_has_the_answer_it_tells() -> None:
    data: Any = make_regression(50, features=4, targets=2, informative=3, noise=0.0, seed=0)
    x, y = arrays(data)
    np.testing.assert_allclose(x @ data.coefficients + data.bias, y, rtol=1e-4, atol=1e-5)
    assert (data.coefficients[3] == 0).all()
    assert arrays(make_regression(5, seed=0))[1].shape == (5,)


def test_sines_continue() -> None:
    x, y = arrays(make_sines(30, length=20, horizon=3, seed=0))
    assert (x.shape, y.shape) == ((30, 20, 1), (30, 3))
    wave = np.concatenate([x[:, :, 0], y], axis=1).astype(np.float64)
    # sin(t+1) + sin(t-1) = 2 cos(w) sin(t): the same factor at every step
    middle, sides = wave[:, 1:-1], wave[:, 2:] + wave[:, :-2]
    factor = (sides * middle).sum(axis=1) / (middle**2).sum(axis=1)
    np.testing.assert_allclose(sides, factor[:, None] * middle, atol=1e-5)


def test_shapes_are_bright_on_dark() -> None:
    x, y = arrays(make_shapes(60, size=24, classes=6, channels=1, noise=0.0, seed=0))
    assert x.shape == (60, 1, 24, 24)
    assert 0 <= x.min() <= x.max() <= 1
    share = (x > 0.5).mean(axis=(1, 2, 3))
    assert (share > 0.02).all()
    assert (share < 0.7).all()
    assert len(np.unique(y)) == 6


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: make_blobs(0), ArgumentError, "n must be at least 1"),
        (lambda: make_blobs(5, centers=[1, 2]), ShapeError, "centers must have shape"),
        (lambda: make_blobs(5, std=-1), ArgumentError, "std must be"),
        (lambda: make_moons(5, noise=float("nan")), ArgumentError, "noise must be finite"),
        (lambda: make_regression(5, features=2, informative=3), ArgumentError, "at most 2"),
        (lambda: make_shapes(5, classes=7), ArgumentError, "there are 6 classes"),
        (lambda: make_shapes(5, size=2), ArgumentError, "size must be at least 8"),
        (lambda: make_sines(5, horizon=0), ArgumentError, "horizon must be at least 1"),
        (lambda: make_spirals(5, classes=0), ArgumentError, "classes must be at least 1"),
    ],
)
def test_bad_arguments(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
