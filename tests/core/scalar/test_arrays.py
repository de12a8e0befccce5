"""Formulas of a builder as functions of arrays."""

from __future__ import annotations

import numpy as np
import pytest

from weft.core.scalar.arrays import on_arrays


def scaled(b, x, factor):
    """Return a formula of an array and a number."""
    return b.maximum(b.sqrt(x) * factor - 1.0, 0.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_formula_is_computed_in_the_dtype_it_meets(dtype):
    x = np.array([0.0, 4.0, 9.0], dtype)
    found = on_arrays(scaled)(x, 3.0)
    assert found.dtype == dtype
    assert found.tolist() == [0, 5, 8]
    assert x.tolist() == [0, 4, 9]


def test_numbers_are_parameters_and_arrays_have_types():
    run = on_arrays(scaled)
    x = np.array([4.0])
    assert [run(x, factor).item() for factor in (1.0, 2.0, -0.0)] == [1, 3, 0]
    assert run(x, np.array([10.0])).tolist() == [19]


def test_rare_cases_are_computed_for_the_elements_they_are_for():
    def root(b, x):
        return b.sqrt(-x) * 2.0

    def rule(b, x):
        return b.rare(x < 0.0, root, [x], x * x)

    run = on_arrays(rule)
    x = np.array([1.0, -4.0, 3.0])
    assert [run(x).tolist() for _ in range(2)] == [[1.0, 4.0, 9.0]] * 2
    assert run(np.array([2.0])).tolist() == [4.0]
    assert x.tolist() == [1, -4, 3]


def test_a_rare_case_does_not_change_what_is_wanted_elsewhere():
    def rule(b, x):
        square = x * x
        return b.rare(x < 0.0, lambda b, x: -x, [x], square) + square

    assert on_arrays(rule)(np.array([2.0, -3.0])).tolist() == [8, 12]
