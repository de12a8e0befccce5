"""How closely compiled, reference and interpreted results must agree, and why no closer.

All compute the same graph; they differ in how functions are approximated (a few units in the last
place each, see tests/backends/cpu/codegen/functions.py), in the order of sums, and in products that
are added without being rounded. Whatever involves no rounding must be equal: integers, truth
values, moved and chosen elements, and whole numbers in floats.
"""

from __future__ import annotations

from math import inf

import numpy as np

import weft as wf
from weft.core.scalar.builder import postorder
from weft.core.scalar.functions import FUNCTIONS
from weft.lower.kernels import ColumnKernel, GemmKernel, RowKernel, ScanKernel, ScatterKernel, walk

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


def run_reference(graph, fetches, feeds):
    """Return what a graph's kernels mean: their results by NumPy."""
    session = wf.Session(graph, device="reference")
    assert session.executable(fetches, feeds) is not None
    return session.run(fetches, feeds)


# NumPy's own functions have errors too, which their authors give as up to four units.
UNITS_OF_NUMPY = 4.0


def units_between(program):
    """Return by how many units in the last place machine code and NumPy may differ.

    For float32 and float64, as the scalar functions of a program say; infinite where errors add up.
    """
    found = [_units_of(kernel) for kernel in walk(program.kernels)]
    rounding = [units for units in found if units != (0.0, 0.0)]
    return rounding[0] if len(rounding) == 1 == len(found) else (inf, inf) if rounding else (0, 0)


def _units_of(kernel):
    if isinstance(kernel, GemmKernel):
        return (inf, inf)
    roots = _roots(kernel)
    order = postorder(roots)
    sums = [e for e in order if e.kind == "reduce" and e.data in ("sum", "prod")]
    if isinstance(kernel, ColumnKernel) and kernel.way in ("sum", "prod"):
        sums.append(kernel.output.value)
    if any(e.dtype.kind == "f" for e in sums):
        return (inf, inf)
    inexact = [e for e in order if e.kind in FUNCTIONS and max(FUNCTIONS[e.kind].ulps) > 0.5]
    if not inexact:
        return (0.0, 0.0)
    (last, *others) = inexact
    alone = not others and all(_without_casts(root) is last for root in roots)
    units = FUNCTIONS[last.kind].ulps if alone else (inf, inf)
    return tuple(u + UNITS_OF_NUMPY for u in units)


def _without_casts(expr):
    while expr.kind == "cast" and expr.dtype.kind == "f":
        (expr,) = expr.args
    return expr


def _roots(kernel):
    if isinstance(kernel, (RowKernel, ScatterKernel)):
        return [output.value for output in kernel.outputs]
    if isinstance(kernel, ColumnKernel):
        return [kernel.output.value, *([] if kernel.finish is None else [kernel.finish])]
    if isinstance(kernel, ScanKernel):
        return [kernel.value, *(after for _, after in kernel.carried)]
    return []  # calls are the same in both, and kernels inside control flow are there themselves


def assert_within_units(found, expected, units, what=""):
    """Hold results of machine code against those of NumPy, unit by unit in the last place."""
    assert found.shape == expected.shape, what
    assert found.dtype == expected.dtype, what
    allowed = units[found.dtype == np.float64]
    if allowed == 0 or found.dtype.kind != "f":
        np.testing.assert_array_equal(found, expected, err_msg=what)
    elif allowed < inf:
        finite = np.isfinite(expected)
        np.testing.assert_array_equal(found[~finite], expected[~finite], err_msg=what)
        # A half is a float32 rounded once more: a neighbour at most.
        least = allowed if found.dtype != np.float16 else 1.0
        limit = least * np.spacing(np.abs(expected[finite]))
        assert (np.abs(found[finite] - expected[finite]) <= limit).all(), what
