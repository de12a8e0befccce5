"""Products that compute their operands while they pack them, against NumPy; and when that pays."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.backends.cpu.codegen.gemm.test_kernel import (
    RNG,
    kernel_of,
    matrix,
    native_function,
    text_of,
    view_of,
)
from tests.backends.cpu.codegen.jit import assembly
from weft.backends.cpu.codegen import avx2, avx512, host, neon, sse2
from weft.backends.cpu.codegen.gemm.kernel import gemm_units, scratch_bytes
from weft.backends.cpu.codegen.gemm.plan import plan_for
from weft.backends.cpu.codegen.gemm.prologue import prologue_pays
from weft.core.scalar.builder import ScalarBuilder
from weft.lower.kernels import Prologue


def activation(dtype):
    """Return relu of the operand, and its function on arrays."""
    b = ScalarBuilder()
    return b.maximum(b.load(0, np.dtype(dtype)), b.constant(0, np.dtype(dtype)))


def combined(dtype, others):
    """Return the operand times 2 plus further ones, each converted."""
    b = ScalarBuilder()
    value = b.load(0, np.dtype(dtype)) * 2
    for i, other in enumerate(others):
        value = value + b.cast(b.load(i + 1, other.dtype), dtype)
    return value


def converted(source, dtype):
    b = ScalarBuilder()
    return b.cast(b.load(0, source), dtype)


def run(kernel, arrays, cuts=()):
    """Run a kernel, its units divided at `cuts` (fractions)."""
    assert len(kernel.views) == len(arrays)
    assert plan_for(kernel, host()).way == "outer"
    function = native_function(kernel, arrays)
    units = gemm_units(kernel, host())
    ends = [0, *sorted(int(units * cut) for cut in cuts), units]
    for begin, end in reversed(list(pairwise(ends))):
        function(begin, end)


def assert_product(out, x, y):
    expected = np.matmul(x.astype(np.float64), y.astype(np.float64))
    scale = np.matmul(np.abs(x).astype(np.float64), np.abs(y).astype(np.float64))
    assert np.all(np.abs(out - expected) <= (x.shape[-1] + 2) * np.finfo(out.dtype).eps * scale)


sizes = st.integers(4, 40) | st.sampled_from([48, 64, 65, 97])
layouts = st.sampled_from(["rows", "columns", "row gaps", "column gaps", "all gaps"])
EXTRAS = {
    "none": lambda shape, dtype: (),
    "like it": lambda shape, dtype: (RNG.standard_normal(shape).astype(dtype),),
    "row": lambda shape, dtype: (RNG.standard_normal(shape[-1:]).astype(dtype),),
    "column": lambda shape, dtype: (RNG.standard_normal((shape[-2], 1)).astype(dtype),),
    "mask and row": lambda shape, dtype: (
        RNG.standard_normal(shape) > 0,
        RNG.standard_normal(shape[-1:]).astype(np.float16),
    ),
}


@given(
    m=sizes,
    n=sizes,
    k=sizes | st.sampled_from([300, 520]),
    batch=st.sampled_from([(), (), (3,), (2, 2)]),
    lying=st.tuples(layouts, layouts, st.sampled_from(["rows", "columns"])),
    extras=st.tuples(st.sampled_from(sorted(EXTRAS)), st.sampled_from(sorted(EXTRAS))),
    dtype=st.sampled_from(["float32", "float64"]),
    cuts=st.lists(st.floats(0, 1), max_size=2),
)
@settings(max_examples=40, deadline=None)
def test_computed_operands_agree_with_numpy(m, n, k, batch, lying, extras, dtype, cuts):
    x, y = (
        matrix((*batch, *s), dtype, how) for s, how in zip([(m, k), (k, n)], lying, strict=False)
    )
    out = matrix((*batch, m, n), dtype, lying[2], fill=np.nan)
    kernel = kernel_of(x, y, out)
    computed, arrays = [], []
    for operand, name in ((x, extras[0]), (y, extras[1])):
        others = EXTRAS[name](operand.shape, dtype)
        spread = [np.broadcast_to(other, operand.shape) for other in others]
        value = combined(dtype, others)
        computed.append((Prologue(value, tuple(map(view_of, spread))), operand * 2 + sum(spread)))
        arrays += spread
    (x_from, wide_x), (y_from, wide_y) = computed
    kernel = replace(kernel, x_from=x_from, y_from=y_from)
    if plan_for(kernel, host()).way != "outer":
        return
    run(kernel, [x, y, out, *arrays], cuts)
    assert_product(out, wide_x.astype(dtype), wide_y.astype(dtype))


LARGE = [(257, 129, 600), (500, 300, 520), (1000, 40, 300), (300, 700, 40)]


@pytest.mark.parametrize("layout", ["NN", "NT", "TN", "TT"])
@pytest.mark.parametrize("size", LARGE, ids=str)
def test_large_products_of_halves(size, layout):
    m, n, k = size
    kinds = {"N": "rows", "T": "columns"}
    x = matrix((m, k), "float32", kinds[layout[0]])
    y = matrix((k, n), "float16", kinds[layout[1]])
    out = np.full((m, n), np.nan, "float32")
    kernel = kernel_of(x, y, out)
    y_from = Prologue(converted(y.dtype, "float32"))
    kernel = replace(kernel, x_from=Prologue(activation("float32")), y_from=y_from)
    run(kernel, [x, y, out])
    assert_product(out, np.maximum(x, 0), y)


@pytest.mark.parametrize("size", [(500, 300, 520), (40, 100, 300)], ids=str)
def test_the_division_and_where_it_is_computed_change_no_bit(size):
    m, n, k = size
    x, y = matrix((m, k), "float32", "rows"), matrix((k, n), "float32", "rows")
    whole, parts, plain = (np.full((m, n), np.nan, "float32") for _ in range(3))
    for out, divided in ((whole, False), (parts, True)):
        kernel = kernel_of(x, y, out)
        kernel = replace(kernel, x_from=Prologue(activation("float32")))
        units = gemm_units(kernel, host())
        run(kernel, [x, y, out], [i / units for i in range(1, units)] if divided else ())
    run(kernel_of(x, y, plain), [np.maximum(x, 0), y, plain])
    assert whole.tobytes() == parts.tobytes() == plain.tobytes()


@pytest.mark.parametrize("target", [avx2(), avx512(), neon(), sse2()], ids=lambda t: t.cpu)
def test_code_for_other_machines(target):
    x, y, out = (
        np.zeros((50, 70), "float32"),
        np.zeros((70, 45), "float16"),
        np.zeros((50, 45), "f4"),
    )
    kernel = kernel_of(x, y, out)
    y_from = Prologue(converted(y.dtype, "float32"))
    kernel = replace(kernel, x_from=Prologue(activation("float32")), y_from=y_from)
    assert "pack_y" in assembly(text_of(kernel, target), target)


# -- when it pays ----------------------------------------------------------------------------------


def pays(x, y, value, *, extras=(), side="x", threads=1, stored=None):
    """Tell whether computing an operand pays on a machine with AVX2."""
    out = np.empty((*x.shape[:-1], y.shape[-1]), "float32")
    operand = x if side == "x" else y
    stored = np.empty(operand.shape, "float32") if stored is None else stored
    before = kernel_of(stored if side == "x" else x, stored if side == "y" else y, out)
    after = kernel_of(x, y, out)
    spread = tuple(view_of(np.broadcast_to(extra, operand.shape)) for extra in extras)
    after = replace(after, **{f"{side}_from": Prologue(value, spread)})
    return prologue_pays(avx2(), threads, before, after, side)


def tanh():
    b = ScalarBuilder()
    return b.tanh(b.load(0, np.dtype("float32")))


def empty(*shape, dtype="float32"):
    return np.empty(shape, dtype)


def test_it_pays_where_elements_are_packed_once():
    assert pays(empty(512, 512), empty(512, 512), activation("float32"))
    assert pays(empty(512, 512), empty(512, 512), tanh())
    half = empty(512, 512, dtype="float16")
    for threads in (1, 2, 16):
        assert pays(
            empty(64, 512), half, converted(half.dtype, "float32"), side="y", threads=threads
        )


def test_functions_are_not_computed_by_every_thread():
    assert not pays(empty(512, 512), empty(512, 512), tanh(), threads=2)
    assert pays(empty(512, 512), empty(512, 512), tanh(), side="y", threads=2)


def test_functions_of_what_stays_in_the_cache_have_long_loops_of_their_own():
    assert not pays(empty(64, 64), empty(64, 64), tanh())


def test_nothing_is_computed_for_each_matrix_of_a_batch():
    """The factor they share would be packed anew for each: their rows are no single matrix."""
    shared = empty(256, 256)
    x = np.broadcast_to(empty(1, 64, 256), (16, 64, 256))
    assert not pays(empty(16, 256, 64).swapaxes(1, 2), shared, tanh(), side="y")
    assert not pays(x, np.broadcast_to(shared, (16, 256, 256)), tanh(), side="x")


def test_thin_products_take_operands_as_they_are():
    assert not pays(empty(1, 500), empty(500, 600), activation("float32"), side="y")
    assert not pays(empty(4, 500), empty(600, 500).T, activation("float32"))


def test_operands_that_lie_across_each_other_have_loops_of_their_own():
    value = combined("float32", [empty(1)])
    assert pays(empty(64, 96), empty(96, 64), value, extras=[empty(64, 96)])
    assert not pays(empty(64, 96), empty(96, 64), value, extras=[empty(96, 64).T])


def test_sums_are_added_up_as_without_it():
    """A factor that lies otherwise is cut at other places of the inner dimension."""
    x, lying = empty(24, 4000), empty(1000, 4000).T
    value = activation("float32")
    plans = [plan_for(kernel_of(x, y, empty(24, 1000)), avx2()) for y in (lying, lying.copy("C"))]
    assert plans[0].way != plans[1].way or plans[0].depth != plans[1].depth
    assert not pays(x, lying, value, side="y")


def test_packed_operands_have_room():
    x, y, out = empty(300, 4000), empty(4000, 16), empty(300, 16)
    kernel = kernel_of(x, y, out)
    before = scratch_bytes(kernel, avx2())
    kernel = replace(kernel, x_from=Prologue(activation("float32")))
    assert plan_for(kernel, avx2()).pack_x
    assert scratch_bytes(kernel, avx2()) > before
