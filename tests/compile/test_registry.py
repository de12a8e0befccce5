"""Compiled code computes what NumPy and the interpreter compute, over the whole registry.

Each sample of the conformance suite is built as a graph of placeholders and run three ways: as
machine code, by the reference back end from the same kind of kernels, and node by node. Operators
that are exact, and those without kernels, agree to the last bit; single functions to the units in
the last place that they state; others to a few units of the largest element.
"""

from __future__ import annotations

import numpy as np
import pytest

import weft as wf
from tests.compile.agreement import (
    OPERATOR,
    assert_agree,
    assert_within_units,
    run_reference,
    units_between,
)
from tests.ops import conformance as c
from tests.ops.by_operator import every_other, over, two_of_each_kind
from weft.core.tensor import Tensor
from weft.core.tree import tree_leaves
from weft.graph.special import SOURCES
from weft.lower.dynamic import is_dynamic
from weft.lower.kernels import CallKernel


def build(case, convert):
    """Return a session's graph of one sample, its fetches and its feeds."""
    feeds = {}

    def to_placeholder(array):
        symbol = wf.placeholder(array.shape, array.dtype)
        feeds[symbol] = array
        return symbol

    given = c.Arguments.of(case.drawn()).map(convert)
    with wf.Graph() as graph:
        result = given.map(to_placeholder).call(case.function)
    fetches = [y for y in tree_leaves(result) if isinstance(y, Tensor) and y.symbolic]
    return graph, fetches, feeds


def rounding_error(case, single, position):
    """Return how far a float32 result is from that in float64: what its condition allows."""
    if single.dtype != np.float32:
        return 0.0
    graph, fetches, feeds = build(case, np.copy)
    double = wf.Session(graph, compiled=False).run(fetches[position], feeds)
    with np.errstate(invalid="ignore"):  # inf - inf
        difference = np.abs(double.astype(np.float64) - single)
    return float(difference[np.isfinite(difference)].max(initial=0))


CASES = [case for case in c.cases() if not case.is_random]


def has_doubles(case):
    """Tell whether a sample differs from what it is in float32."""
    return any(a.dtype == np.float64 for a in c.Arguments.of(case.drawn()).arrays())


# What belongs to a library: it needs LAPACK, a sort, a search, or a series of its own.
LIBRARY = frozenset(
    (
        *("argsort", "histogram", "isin", "row_slots", "sort", "top_k"),
        *("cholesky", "cofactor", "det", "eigh", "eigvalsh", "expm", "inv", "lstsq_solution"),
        *("matrix_rank", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "triangular_solve"),
        *("cholesky_info", "geqrf", "ldl_factor", "ldl_solve", "lu_factor", "pivots_permutation"),
        *("digamma", "erfinv", "lgamma", "polygamma"),
        *("airy_ai", "airy_ai_slope", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1"),
        *("i0", "i0e", "i1", "i1e", "modified_bessel_k0", "modified_bessel_k1"),
        *("scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "erfcx", "log_ndtr", "ndtri"),
        *("gamma_draw_slope", "igamma", "igamma_slope", "igammac", "orthogonal_polynomial", "zeta"),
        *("binomial_draw", "poisson_draw", "von_mises_draw"),
        *("gcd", "lcm", "point_counts", "runs"),
        *("random_categorical", "random_gamma", "random_permutation"),
        *("last_writes", "pool_last_write"),
    )
)
# What loops do for some shapes and dtypes only.
SOMETIMES = frozenset(
    (
        *("argmax", "argmin", "count_nonzero", "gelu", "linear", "matmul", "sum_to", "vector_norm"),
        *("getitem_arrays_adjoint", "pad_adjoint", "roll", "scatter_extreme", "setitem_arrays"),
        *("isclose", "nextafter", "pow", "round", "scatter_product"),
    )
)


def runs_in_code(node):
    """Tell whether an operation must not need a library."""
    values = [v for v in (*node.inputs, *node.outputs) if v is not None]
    if is_dynamic(node) or any(0 in value.shape for value in values):
        return False
    if node.op.kind == "reduction" and "axis" in node.op.attrs and node.attr("axis") == ():
        return False  # over no axes
    if node.op.kind == "communication":  # with other processes: the host's
        return False
    return node.op.kind != "control" and node.op.name not in LIBRARY | SOMETIMES


@over(CASES, ordinary=two_of_each_kind)
def test_compiled_equals_interpreted(case):
    check_compiled(case, c.to_single)


@over(filter(has_doubles, CASES), ordinary=every_other)
def test_compiled_doubles_equal_interpreted_ones(case):
    check_compiled(case, np.copy)


def check_compiled(case, convert):
    """Run a sample as machine code, by the reference back end and node by node."""
    try:
        graph, fetches, feeds = build(case, convert)
    except wf.WeftError as error:
        pytest.skip(f"not for graphs: {error}")
    if not fetches:
        pytest.skip("nothing to run")
    expected = wf.Session(graph, compiled=False).run(fetches, feeds)
    session = wf.Session(graph, compiled=True)
    executable = session.executable(fetches, feeds)
    calls = [k for k in executable.program.kernels if isinstance(k, CallKernel)]
    called = [n for k in calls for n in executable.analysis.sources.origins(k)]
    assert not any(map(runs_in_code, called)), case.id
    found = session.run(fetches, feeds)
    meant = run_reference(graph, fetches, feeds)
    tolerance = None if is_exact(graph) else OPERATOR
    units = units_between(executable.program)
    for i, (a, b, n) in enumerate(zip(found, expected, meant, strict=True)):
        slack = 4 * rounding_error(case, b, i)
        assert_agree(a, b, tolerance, case.id, slack=slack)
        assert_agree(n, b, tolerance, f"{case.id}: reference", slack=slack)
        assert_within_units(a, n, units, f"{case.id}: reference")


def is_exact(graph):
    """Tell whether every operation rounds at most once, to bits that all ways must give."""
    return all(node.op.exact for node in graph.nodes if node.op not in SOURCES)


DRAWN = [case for case in c.cases() if case.is_random]


@over(DRAWN)
def test_draws_are_the_same_bits(case):
    graph, fetches, feeds = build(case, np.copy)
    expected = wf.Session(graph, compiled=False).run(fetches, feeds)
    found = wf.Session(graph, compiled=True).run(fetches, feeds)
    meant = run_reference(graph, fetches, feeds)
    for a, b, n in zip(found, expected, meant, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(n, b)
