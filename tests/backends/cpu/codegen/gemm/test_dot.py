"""Dot products: how lanes are added up, where sums go, and when thin products are made of them."""

import numpy as np
import pytest

from tests.backends.cpu.codegen.gemm.test_kernel import (
    RNG,
    check,
    kernel_of,
    matrix,
    multiply,
    plan,
    run_with_epilogue,
    text_of,
)
from tests.backends.cpu.codegen.jit import Native, assembly
from weft.backends.cpu.codegen import ModuleText, avx2, avx512, host, neon, sse2
from weft.backends.cpu.codegen.gemm.dot import DotPlace, runs
from weft.backends.cpu.codegen.gemm.kernel import gemm_units
from weft.backends.cpu.codegen.gemm.plan import dot_tile, plan_for
from weft.backends.cpu.codegen.lane_sums import lane_sums, lane_sums_cost
from weft.backends.cpu.codegen.values import lanes_of

# -- lanes -----------------------------------------------------------------------------------------


def summed(lanes, count, element, together):
    """Return random vectors and the sums of their lanes, found together or one by one."""
    module = ModuleText(host())
    f = module.function("sums", ["ptr", "ptr"])
    source, target = f.parameters
    type = f"<{lanes} x {element}>" if lanes > 1 else element
    vectors = [f.load(type, f.gep(source, i * lanes, element)) for i in range(count)]
    found = lane_sums(f, vectors) if together else [f.reduce(v, f.fadd) for v in vectors]
    at = 0
    for value in found:
        f.store(value, f.gep(target, at, element))
        at += lanes_of(value.type)
    f.ret()
    dtype = {"float": "float32", "double": "float64"}[element]
    numbers = np.random.default_rng(lanes + count).standard_normal((count, lanes)).astype(dtype)
    sums = np.zeros(count + lanes, dtype)
    Native(module.text(), host())("sums", numbers, sums)
    return numbers, sums[:count]


@pytest.mark.parametrize("element", ["float", "double"])
@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
def test_sums_of_lanes_do_not_depend_on_their_neighbours(lanes, element):
    for count in range(1, 2 * lanes + 4):
        numbers, sums = summed(lanes, count, element, together=True)
        assert np.allclose(sums, numbers.sum(1), atol=1e-5)
        assert sums.tobytes() == summed(lanes, count, element, together=False)[1].tobytes()


def test_adding_lanes_of_several_vectors_costs_less():
    assert lane_sums_cost(1, 8) == 6
    assert lane_sums_cost(8, 8) == 21
    assert lane_sums_cost(12, 8) == lane_sums_cost(8, 8) + lane_sums_cost(4, 8)
    assert lane_sums_cost(5, 1) == 0


# -- places ----------------------------------------------------------------------------------------


def test_sums_that_lie_in_sequence_are_stored_at_once():
    places = [DotPlace(i, 0, i) for i in range(12)]
    assert runs(places, 8) == [(0, 8), (8, 4)]
    assert runs(places[:7], 8) == [(0, 4), (4, 2), (6, 1)]


def test_sums_with_gaps_or_other_biases_are_stored_apart():
    assert runs([DotPlace(2 * i, 0, i) for i in range(3)], 4) == [(0, 1), (1, 1), (2, 1)]
    columns = [DotPlace(i, i % 2, i) for i in range(4)]
    assert runs(columns, 4) == [(0, 2), (2, 2)]
    assert runs([DotPlace(i, i, i) for i in range(4)], 4) == [(0, 4)]
    assert runs([DotPlace(i, 3 * i, i) for i in range(2)], 4) == [(0, 1), (1, 1)]


# -- products --------------------------------------------------------------------------------------

DEPTHS = (2, 3, 4, 5, 7, 8, 12, 16, 17, 24, 31, 33)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", DEPTHS)
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_thin_products_of_any_depth(n, k, dtype):
    bias = RNG.standard_normal(n).astype(dtype)
    for m in (1, 2, 3, 5, 8, 13, 64):
        x, y = matrix((m, k), dtype, "row gaps"), matrix((k, n), dtype, "column gaps")
        check(x, y, matrix((m, n), dtype, "rows", fill=np.inf), bias)
        check(x, y, matrix((m, n), dtype, "columns", fill=np.inf), bias)
        check(y.T, x.T, matrix((n, m), dtype, "row gaps", fill=np.inf))


@pytest.mark.parametrize("shared", ["", "x", "y"])
@pytest.mark.parametrize(("m", "n", "k"), [(32, 1, 16), (7, 3, 5), (1, 1, 9), (2, 4, 12)])
def test_batches_of_thin_products(m, n, k, shared):
    x = matrix((m, k) if shared == "x" else (5, m, k), "float32", "rows")
    y = matrix((k, n) if shared == "y" else (5, k, n), "float32", "columns")
    check(x, y, np.full((5, m, n), np.inf, "float32"), cuts=[0.3, 0.7])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("m", "n", "k"), [(9000, 1, 16), (5000, 3, 8), (1, 9000, 7), (90, 3, 20)])
def test_results_do_not_depend_on_the_division(m, n, k, dtype):
    x, y = matrix((m, k), dtype, "rows"), matrix((k, n), dtype, "columns")
    whole, parts = np.zeros((m, n), dtype), np.ones((m, n), dtype)
    multiply(x, y, whole)
    units = gemm_units(kernel_of(x, y, whole), host())
    multiply(x, y, parts, cuts=[i / units for i in range(1, units)])
    assert whole.tobytes() == parts.tobytes()


@pytest.mark.parametrize("transposed_out", [False, True])
@pytest.mark.parametrize(
    ("m", "n", "k"), [(33, 1, 16), (1, 33, 16), (13, 3, 7), (3, 21, 24), (2000, 2, 16)]
)
def test_an_epilogue_of_dot_products(m, n, k, transposed_out):
    x, y = matrix((m, k), "float32", "rows"), matrix((k, n), "float32", "columns")
    out = matrix((m, n), "float32", "columns" if transposed_out else "rows", fill=np.nan)
    assert plan_of(x, y, out).way == "dot"
    bias, other = RNG.standard_normal(n).astype("float32"), matrix((m, n), "float32", "rows")
    run_with_epilogue(x, y, out, bias, [other], lambda b, product, by: product * by + 1.0)
    assert np.allclose(out, (x @ y + bias) * other + 1, atol=1e-4)


def test_nan_and_infinity_stay_in_their_row():
    x, y = np.ones((9, 5), "float32"), np.ones((5, 1), "float32")
    x[2, 1], x[5, 4] = np.nan, np.inf
    out = np.zeros((9, 1), "float32")
    multiply(x, y, out)
    assert np.flatnonzero(np.isnan(out)).tolist() == [2]
    assert np.flatnonzero(np.isinf(out)).tolist() == [5]


# -- plans -----------------------------------------------------------------------------------------


def plan_of(x, y, out):
    return plan_for(kernel_of(x, y, out), avx2())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("k", DEPTHS)
def test_matrix_times_vector_is_made_of_dot_products(k, dtype):
    for m in (1, 5, 32, 10_000):
        assert plan(m, 1, k, dtype=dtype).way == "dot"
        assert plan(1, m, k, "NT", dtype=dtype).way == "dot"
    assert plan(32, 1, k, batch=(40,), dtype=dtype).way == "dot"


def test_shallow_products_of_many_columns_are_not():
    for k in (2, 4, 8, 16):
        assert plan(64, 16, k, "NT").way == "outer"
    assert plan(64, 1, 1, "NT").way == "outer"  # one multiplication: nothing to add up


@pytest.mark.parametrize("target", [avx2(), avx512(), neon(), sse2()], ids=lambda t: t.cpu)
def test_tiles_stay_in_registers_and_fill_vectors(target):
    lanes = target.lanes("float32")
    for m, n, k in [(64, 1, 16), (64, 2, 16), (64, 3, 300), (64, 8, 3), (5, 7, 40)]:
        form, _ = dot_tile(m, n, k, target, lanes)
        sums, held = form.rows * form.vectors, min(form.rows, form.vectors)
        assert sums + held + 1 <= target.registers
    assert dot_tile(64, 1, 16, avx2(), 8)[0].rows == 8
    assert dot_tile(32, 2, 16, avx2(), 8)[0].rows == 4


@pytest.mark.parametrize("target", [avx2(), avx512(), neon(), sse2()], ids=lambda t: t.cpu)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_code_for_other_machines_compiles(target, dtype):
    for m, n, k in [(32, 1, 16), (9, 3, 7), (2, 2, 3), (1, 40, 5)]:
        x, y = matrix((m, k), dtype, "rows"), matrix((k, n), dtype, "columns")
        kernel = kernel_of(x, y, np.zeros((m, n), dtype))
        assert "product" in assembly(text_of(kernel, target), target)


def test_a_vector_of_sums_is_stored_at_once():
    x, y, out = (np.zeros(s, "float32") for s in ((32, 16), (16, 1), (32, 1)))
    listing = assembly(text_of(kernel_of(x, y, out), avx2()), avx2())
    stores = [line for line in listing.splitlines() if "vmov" in line and line.endswith(")")]
    assert any("%ymm" in line.split(",", 1)[0] for line in stores)
    assert "vmovss" not in listing
