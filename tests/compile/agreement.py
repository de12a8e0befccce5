"""How closely compiled and interpreted results must agree, and why no closer.

Both compute the same graph; they differ in how functions are approximated (a few units in the last
place each, see tests/backends/cpu/codegen/functions.py), in the order of sums, and in products that
are added without being rounded. Whatever involves no rounding must be equal: integers, truth
values, moved and chosen elements, and whole numbers in floats.
"""

from __future__ import annotations

import numpy as np

# One operator: some ten units in the last place of the largest element, since sums cancel.
OPERATOR = {"float16": 2e-3, "float32": 3e-6, "float64": 1e-13}
# A program of some forty steps, gradients included: each step can double what came before it.
PROGRAM = {"float32": 2e-4, "float64": 1e-10}


def assert_agree(found, expected, tolerance, what="", slack=0.0):
    """Hold results against expected ones, relative to the largest finite element.

    tolerance   a table by the name of a dtype, or None if they must be equal
    slack       what is allowed beyond that, for operators whose condition is bad
    """
    assert found.shape == expected.shape, what
    assert found.dtype == expected.dtype, what
    if tolerance is None or expected.dtype.kind != "f":
        np.testing.assert_array_equal(found, expected, err_msg=what)
        return
    bound = tolerance[expected.dtype.name]
    finite = np.abs(expected[np.isfinite(expected)])
    scale = float(finite.max(initial=1))
    np.testing.assert_allclose(
        found, expected, rtol=bound, atol=bound * scale + slack, err_msg=what
    )
