"""Entries of basic indices, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from weft.passes.rolling.row_index import (
    axes_at,
    is_everything,
    linear,
    positions,
    varying_entries,
    widened,
    without,
)

ALL = (None, None, None)
X = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5)


def native(spec):
    return tuple(slice(*item) if isinstance(item, tuple) else item for item in spec)


@pytest.mark.parametrize(
    ("spec", "entry"),
    [
        ((1,), 0),
        ((ALL, 2), 1),
        ((..., 3), 1),
        ((0, ..., 3), 2),
        ((None, 1, ..., None, 2), 4),
        ((None, 1, ..., None, 2), 1),
        (((0, 2, None), None, 2, ...), 2),
    ],
)
def test_the_rest_of_an_index_is_for_a_row(spec, entry):
    taken, made = axes_at(spec, entry, X.ndim)
    expected = X[native(spec)]
    row = X.take(spec[entry], axis=taken)
    np.testing.assert_array_equal(row[native(without(spec, [entry]))], expected)
    whole = X[native(widened(spec, [entry]))]
    np.testing.assert_array_equal(whole.take(spec[entry], axis=made), expected)


def test_entries_that_differ():
    assert varying_entries([(0, ALL, 1), (1, ALL, 1), (2, ALL, 1)]) == [0]
    assert varying_entries([(0, (0, 3, None)), (1, (1, 4, None))]) == [0, 1]
    assert varying_entries([(0,), (0,)]) == []


def test_everything():
    assert is_everything(())
    assert is_everything((..., ALL))
    assert not is_everything((0,))
    assert not is_everything((None,))
    assert not is_everything(((0, 3, None),))


def test_positions_along_an_axis():
    assert positions(-1, 5) == 4
    assert positions((1, 4, None), 5) == [1, 2, 3]
    assert positions((None, -4, -1), 5) == [4, 3, 2]


@pytest.mark.parametrize("step", [1, 2, -1, -3])
def test_steps_of_one_size(step):
    found = range(20, 20 + 5 * step, step)
    assert linear(list(found)) == found


def test_other_steps():
    assert linear([0, 1, 3]) is None
    assert linear([2, 2, 2]) is None
    assert linear([7]) == range(7, 8)
