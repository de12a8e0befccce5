"""Colouring of the columns of a sparse matrix."""

import numpy as np
import pytest

from weft.autodiff.coloring import as_pattern, color
from weft.core.errors import ArgumentTypeError, ShapeError


@pytest.mark.parametrize("seed", range(5))
def test_colors_never_meet_in_a_row(seed):
    pattern = np.random.default_rng(seed).random((30, 40)) < 0.1
    colors, count = color(pattern)
    for row in pattern:
        assert len(set(colors[row])) == row.sum()
    assert set(colors) == set(range(count))


def test_known_patterns():
    assert color(np.eye(6, dtype=bool)).needed == 1
    assert color(np.ones((2, 6), bool)).needed == 6
    assert color(np.zeros((3, 0), bool)).needed == 0
    band = np.abs(np.subtract.outer(np.arange(9), np.arange(9))) <= 2
    assert color(band).needed == 5


def test_patterns_are_matrices_of_truth_values():
    assert as_pattern([[0.0, 2.5], [1.0, 0.0]]).tolist() == [[False, True], [True, False]]
    with pytest.raises(ArgumentTypeError, match="a matrix of truth values"):
        as_pattern([["a"]])
    with pytest.raises(ArgumentTypeError, match="a matrix of truth values"):
        as_pattern([[1], [1, 2]])
    with pytest.raises(ShapeError, match=r"shape \(3,\)"):
        as_pattern([1, 0, 1])
