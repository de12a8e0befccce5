"""Constraints: which values they let pass."""

import numpy as np
import pytest

import weft as wf
from weft.distributions import constraints as c

CASES = [
    (c.boolean, [0.0, 1.0, 0.5], [True, True, False]),
    (c.nonnegative_integer, [0.0, 2.0, 1.5, -1.0], [True, True, False, False]),
    (c.positive_integer, [0.0, 2.0], [False, True]),
    (c.integer_interval(1, 3), [1.0, 2.5, 3.0, 4.0], [True, False, True, False]),
    (c.real, [0.0, np.inf, np.nan], [True, True, False]),
    (c.positive, [0.0, 1.0], [False, True]),
    (c.nonnegative, [0.0, -1.0], [True, False]),
    (c.half_open_interval(0.0, 1.0), [0.0, 1.0], [True, False]),
    (c.unit_interval, [0.0, 1.0, 1.1], [True, True, False]),
    (c.one_hot, [[0.0, 1.0], [1.0, 1.0]], [True, False]),
    (c.simplex, [[0.5, 0.5], [0.5, 0.6], [1.5, -0.5]], [True, False, False]),
    (c.multinomial(3), [[1.0, 2.0], [2.0, 2.0]], [True, False]),
    (c.real_vector, [[0.0, 1.0], [np.nan, 1.0]], [True, False]),
    (c.lower_triangular, [[1.0, 0.0], [2.0, -1.0]], True),
    (c.lower_cholesky, [[1.0, 0.0], [2.0, -1.0]], False),
    (c.symmetric, [[1.0, 2.0], [2.0, 1.0]], True),
    (c.positive_definite, [[1.0, 2.0], [2.0, 1.0]], False),
    (c.positive_semidefinite, [[1.0, 1.0], [1.0, 1.0]], True),
    (c.square, [[1.0, 1.0], [1.0, 1.0]], True),
]


@pytest.mark.parametrize(("constraint", "value", "expected"), CASES, ids=repr)
def test_check(constraint, value, expected):
    found = constraint.check(wf.tensor(np.array(value))).numpy()
    np.testing.assert_array_equal(found, expected)


def test_side_by_side():
    x = wf.tensor(np.array([[1.0, -1.0], [0.5, 2.0]]))
    stacked = c.stack([c.positive, c.unit_interval], 0)
    np.testing.assert_array_equal(stacked.check(x).numpy(), [[True, False], [True, False]])
    joined = c.cat([c.positive, c.real], 0, [1, 1])
    np.testing.assert_array_equal(joined.check(x).numpy(), [[True, False], [True, True]])


def test_dependent_constraints_cannot_be_checked():
    assert c.is_dependent(c.dependent(is_discrete=True, event_dim=1))
    with pytest.raises(ValueError, match="cannot be checked"):
        c.dependent.check(wf.zeros(2))
