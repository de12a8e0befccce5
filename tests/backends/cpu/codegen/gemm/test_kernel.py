"""Matrix products: every way to compute them against NumPy, any division, any machine."""

import ctypes
import mmap
import re
import sys
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.backends.cpu.codegen import ModuleText, avx2, avx512, host, neon, sse2
from weft.backends.cpu.codegen.gemm import tile
from weft.backends.cpu.codegen.gemm.kernel import (
    STACK_BYTES,
    gemm_chunks,
    gemm_units,
    scratch_bytes,
    write_gemm_kernel,
)
from weft.backends.cpu.codegen.gemm.pack import pieces, transposed
from weft.backends.cpu.codegen.gemm.plan import plan_for
from weft.backends.cpu.codegen.gemm.product import product_of
from weft.backends.cpu.device import CpuDevice
from weft.backends.cpu.runtime.arena import aligned_empty
from weft.backends.cpu.runtime.linking import assembly, compile_module, link
from weft.core.scalar.builder import ScalarBuilder
from weft.lower.kernels import GemmKernel, Output
from weft.lower.program import KernelProgram
from weft.lower.storage import Buffer, View
from weft.plan.products import with_scratch

RNG = np.random.default_rng(7)


def view_of(array):
    strides = tuple(s // array.itemsize for s in array.strides)
    return View(Buffer("feed", array.size, array.dtype, "array"), array.shape, strides)


def kernel_of(x, y, out, bias=None):
    """Return the kernel of a product of arrays; the batch axes of x and y are broadcast."""
    batch = out.shape[:-2]
    x = np.broadcast_to(x, (*batch, *x.shape[-2:]))
    y = np.broadcast_to(y, (*batch, *y.shape[-2:]))
    return GemmKernel(
        "product",
        batch,
        *(x.shape[-2], y.shape[-1], x.shape[-1]),
        *(view_of(a) for a in (x, y, out)),
        None if bias is None else view_of(bias),
    )


def text_of(kernel, target=None):
    module = ModuleText(target or host())
    write_gemm_kernel(module, "product", kernel)
    return module.text()


@lru_cache(maxsize=64)
def native(text):
    library = link([compile_module(text, host())], ["product"])
    return library, library.address("product")


def multiply(x, y, out, bias=None, cuts=()):
    """Run the kernel, its units divided at `cuts` (fractions)."""
    kernel = kernel_of(x, y, out, bias)
    arrays = [a for a in (x, y, out, bias) if a is not None]
    assert len(kernel.views) == len(arrays)
    function = native_function(kernel, arrays)
    units = gemm_units(kernel, host())
    ends = [0, *sorted(int(units * cut) for cut in cuts), units]
    for begin, end in reversed(list(pairwise(ends))):
        function(begin, end)


def native_function(kernel, arrays):
    """Return the function of a kernel, of the units to compute."""
    _, address = native(text_of(kernel))
    kinds = [ctypes.c_void_p] * len(arrays) + [ctypes.c_int64] * 2
    function = ctypes.CFUNCTYPE(None, *kinds)(address)
    return lambda begin, end: function(*(a.ctypes.data for a in arrays), begin, end)


def check(x, y, out, bias=None, cuts=()):
    base = out if out.base is None else out.base
    before = base.copy()
    multiply(x, y, out, bias, cuts)
    wide = np.matmul(x.astype(np.float64), y.astype(np.float64))
    scale = np.matmul(np.abs(x).astype(np.float64), np.abs(y).astype(np.float64))
    if bias is not None:
        wide, scale = wide + bias, scale + np.abs(bias)
    tolerance = (x.shape[-1] + 2) * np.finfo(out.dtype).eps * scale
    assert np.all(np.abs(out - wide) <= tolerance)
    result = out.copy()
    out[...] = 0  # nothing but the result was written
    written = base.copy()
    out[...] = result
    assert np.count_nonzero(written != before) <= out.size


LAYOUTS = ("rows", "columns", "row gaps", "all gaps", "column gaps", "reversed")


def matrix(shape, dtype, layout, fill=None):
    """Return an array of random numbers that lies in memory as said."""
    *batch, m, n = shape

    def made(*shape):
        values = RNG.standard_normal((*batch, *shape)).astype(dtype)
        return values if fill is None else np.full_like(values, fill)

    return {
        "rows": lambda: made(m, n),
        "columns": lambda: made(n, m).swapaxes(-1, -2),
        "row gaps": lambda: made(m, n + 3)[..., :n],
        "all gaps": lambda: made(2 * m, 3 * n)[..., ::2, ::3],
        "column gaps": lambda: made(n, m + 5)[..., :m].swapaxes(-1, -2),
        "reversed": lambda: made(m, n)[..., ::-1, :],
    }[layout]()


sizes = st.integers(1, 40) | st.sampled_from([48, 64, 65, 97])
layouts = st.sampled_from(LAYOUTS)


@given(
    m=sizes,
    n=sizes,
    k=sizes | st.sampled_from([0, 200, 300]),
    batch=st.sampled_from([(), (), (3,), (2, 3)]),
    lying=st.tuples(layouts, layouts, st.sampled_from(["rows", "rows", "rows", *LAYOUTS])),
    bias=st.sampled_from([None, "plain", "gaps", "same"]),
    dtype=st.sampled_from(["float32", "float64"]),
    cuts=st.lists(st.floats(0, 1), max_size=3),
    shared=st.sampled_from(["", "", "x", "y"]),
)
@settings(max_examples=120, deadline=None)
def test_products_agree_with_numpy(m, n, k, batch, lying, bias, dtype, cuts, shared):
    x = matrix((*(() if shared == "x" else batch), m, k), dtype, lying[0])
    y = matrix((*(() if shared == "y" else batch), k, n), dtype, lying[1])
    out = matrix((*batch, m, n), dtype, lying[2], fill=np.inf)
    biases = {
        None: lambda: None,
        "plain": lambda: RNG.standard_normal(n).astype(dtype),
        "gaps": lambda: RNG.standard_normal(2 * n).astype(dtype)[::2],
        "same": lambda: np.broadcast_to(RNG.standard_normal(1).astype(dtype), (n,)),
    }
    check(x, y, out, biases[bias](), cuts)


LARGE = [
    (257, 129, 600),  # several inner blocks, edges everywhere
    (500, 300, 520),  # groups of row blocks that share packed panels
    (1000, 17, 300),
    (16, 1030, 700),
    (7, 260, 1111),
    (1, 3000, 257),
    (3000, 1, 257),
    (24, 200, 333),
    (64, 64, 2048),
    (300, 700, 9),
]


LAYOUTS_OF_TWO = ("NN", "NT", "TN", "TT")


def large_products():
    """Yield sizes and layouts in either dtype, half of them in long runs only: each is compiled."""
    for i, size in enumerate(LARGE):
        for j, layout in enumerate(LAYOUTS_OF_TWO):
            for k, dtype in enumerate(("float32", "float64")):
                marks = pytest.mark.long if (i + j + k) % 2 else ()
                yield pytest.param(size, layout, dtype, marks=marks, id=f"{size}-{layout}-{dtype}")


@pytest.mark.parametrize(("size", "layout", "dtype"), list(large_products()))
def test_large_products(size, layout, dtype):
    m, n, k = size
    kinds = {"N": "rows", "T": "columns"}
    x = matrix((m, k), dtype, kinds[layout[0]])
    y = matrix((k, n), dtype, kinds[layout[1]])
    bias = RNG.standard_normal(n).astype(dtype) if layout in ("NN", "TT") else None
    check(x, y, np.full((m, n), np.nan, dtype), bias)


@pytest.mark.parametrize("layout", ["NN", "NT", "TN"])
@pytest.mark.parametrize("size", [(500, 300, 520), (40, 100, 300), (1, 5000, 50), (90, 3, 64)])
def test_results_do_not_depend_on_the_division(size, layout):
    m, n, k = size
    kinds = {"N": "rows", "T": "columns"}
    x = matrix((m, k), "float32", kinds[layout[0]])
    y = matrix((k, n), "float32", kinds[layout[1]])
    whole, parts = np.zeros((m, n), "float32"), np.ones((m, n), "float32")
    multiply(x, y, whole)
    units = gemm_units(kernel_of(x, y, whole), host())
    multiply(x, y, parts, cuts=[i / units for i in range(1, units)])
    assert whole.tobytes() == parts.tobytes()


def test_an_empty_inner_dimension_gives_the_bias():
    out, bias = np.full((5, 40), np.nan, "float32"), np.arange(40, dtype="float32")
    multiply(np.zeros((5, 0), "float32"), np.zeros((0, 40), "float32"), out, bias)
    assert np.array_equal(out, np.broadcast_to(bias, (5, 40)))


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_an_empty_result_has_no_units(shape):
    out = np.zeros(shape, "float32")
    x, y = np.ones((shape[0], 4), "float32"), np.ones((4, shape[1]), "float32")
    assert gemm_units(kernel_of(x, y, out), host()) == 0
    assert gemm_chunks(kernel_of(x, y, out), host(), 2) == 1
    multiply(x, y, out)


@pytest.mark.parametrize("size", [(13, 27, 40), (300, 300, 300), (5, 3, 100), (1, 50, 40)])
def test_nan_and_infinity_stay_in_their_row_and_column(size):
    m, n, k = size
    x, y = matrix((m, k), "float32", "rows"), matrix((k, n), "float32", "columns")
    x[-1, 1], y[2, -1] = np.nan, np.inf
    out = np.zeros((m, n), "float32")
    multiply(x, y, out)
    with np.errstate(invalid="ignore"):
        expected = x @ y
    assert np.array_equal(np.isnan(out), np.isnan(expected))
    assert np.array_equal(np.isinf(out), np.isinf(expected))


# -- memory ----------------------------------------------------------------------------------------


def at_the_end_of_memory(array, held):
    """Return a copy that ends where a page begins that must not be touched."""
    page = mmap.PAGESIZE
    room = -(-array.nbytes // page) * page
    region = mmap.mmap(-1, room + page)
    held.append(region)
    start = ctypes.addressof(ctypes.c_char.from_buffer(region))
    process = ctypes.CDLL(None)
    assert process.mprotect(ctypes.c_void_p(start + room), ctypes.c_size_t(page), 0) == 0
    copy = np.frombuffer(region, array.dtype, array.size, room - array.nbytes)
    copy = copy.reshape(array.shape)
    copy[...] = array
    return copy


def scratched(kernel, target, threads):
    """Return a product with the memory that a program gives it."""
    program = KernelProgram((kernel,), (), 0, (), (), ())
    device = CpuDevice("cpu", threads, "", target)
    made = with_scratch(program, device)
    assert program.kernels[0].scratch is None
    assert [buffer.number for buffer in made.buffers] == [0]
    return made.kernels[0]


@pytest.mark.parametrize("target", [avx2(), avx512(), neon(), sse2()], ids=lambda t: t.cpu)
def test_large_blocks_do_not_lie_on_the_stack(target):
    kernel = kernel_of(*(np.zeros((2048, 2048), "float32") for _ in range(3)))
    kernel = scratched(kernel, target, 2)
    areas, size = kernel.scratch.shape
    assert areas == gemm_chunks(kernel, target, 7) > 1
    assert size >= scratch_bytes(kernel, target, areas) > STACK_BYTES
    assert areas * size >= scratch_bytes(kernel, target)
    sizes = re.findall(r"alloca float, i64 (\d+)", text_of(kernel, target))
    assert sum(4 * int(size) for size in sizes) < STACK_BYTES


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("size", [(500, 600, 520), (1000, 700, 300)])  # too large for a stack
def test_parts_have_areas_of_their_own(size, threads):
    m, n, k = size
    x, y = matrix((m, k), "float32", "rows"), matrix((k, n), "float32", "columns")
    out = np.zeros((m, n), "float32")
    kernel = kernel_of(x, y, out)
    kernel = scratched(kernel, host(), threads)
    chunks, bytes_each = kernel.scratch.shape
    areas = aligned_empty(chunks * bytes_each).reshape(chunks, bytes_each)
    function = native_function(kernel, [x, y, out, areas])
    units = gemm_units(kernel, host())
    for part in range(chunks):
        areas[:] = 171
        function(part * units // chunks, (part + 1) * units // chunks)
        untouched = np.delete(areas, part, axis=0)
        assert (untouched == 171).all()
    expected = np.zeros_like(out)
    multiply(x, y, expected)
    assert out.tobytes() == expected.tobytes()


@pytest.mark.skipif(sys.platform == "win32", reason="mprotect is a Unix function")
@pytest.mark.parametrize("layout", ["NN", "NT", "TN", "TT"])
@pytest.mark.parametrize(
    "size",
    [
        (7, 5, 3),
        (6, 16, 8),
        (13, 33, 45),
        (1, 21, 35),
        (21, 1, 35),
        (30, 24, 261),
        (9, 300, 40),
        (29, 130, 45),
    ],
)
def test_nothing_is_read_behind_the_operands(size, layout):
    m, n, k = size
    held = []
    x = RNG.standard_normal((m, k) if layout[0] == "N" else (k, m)).astype("float32")
    y = RNG.standard_normal((k, n) if layout[1] == "N" else (n, k)).astype("float32")
    x, y, out, bias = (
        at_the_end_of_memory(a, held)
        for a in (x, y, np.zeros((m, n), "float32"), np.ones(n, "float32"))
    )
    x = x if layout[0] == "N" else x.T
    y = y if layout[1] == "N" else y.T
    multiply(x, y, out, bias)
    assert np.allclose(out, x @ y + 1, atol=1e-3)


# -- plans -----------------------------------------------------------------------------------------


def plan(m, n, k, layout="NN", dtype="float32", batch=(), target=None):
    kinds = {"N": "rows", "T": "columns"}
    x = matrix((*batch, m, k), dtype, kinds[layout[0]])
    y = matrix((*batch, k, n), dtype, kinds[layout[1]])
    return plan_for(kernel_of(x, y, np.zeros((*batch, m, n), dtype)), target or avx2())


def test_the_tile_follows_from_the_machine():
    assert plan(600, 640, 600).form.rows == 6
    assert plan(600, 640, 600).form.vectors == 2
    for target in (avx2(), avx512(), neon(), sse2()):
        form = plan(600, 640, 600, target=target).form
        assert form.rows * form.vectors + form.vectors + 1 <= target.registers


@pytest.mark.parametrize(
    ("size", "layout", "way"),
    [
        ((16, 2048, 2048), "NT", "dot"),
        ((2048, 1, 2048), "NN", "dot"),
        ((1, 2048, 2048), "NN", "sweep"),
        ((2048, 1, 2048), "TN", "sweep"),
        ((128, 512, 784), "NT", "outer"),
        ((16, 2048, 2048), "NN", "outer"),
    ],
)
def test_the_way_follows_from_shape_and_strides(size, layout, way):
    assert plan(*size, layout).way == way


def test_a_batch_that_shares_y_becomes_rows():
    x, y = np.zeros((4, 5, 6, 7), "float32"), np.zeros((7, 8), "float32")
    product = product_of(kernel_of(x, y, np.zeros((4, 5, 6, 8), "float32")))
    assert (product.batch, product.m) == ((), 120)


def test_a_batch_of_vectors_that_shares_x_becomes_columns():
    x, y = np.zeros((9, 7), "float32"), np.zeros((4, 5, 7, 1), "float32")
    product = product_of(kernel_of(x, y, np.zeros((4, 5, 9, 1), "float32")))
    assert product.swapped
    assert (product.batch, product.m, product.n, product.k) == ((), 20, 9, 7)


def test_a_batch_of_matrices_that_shares_x_stays_one():
    x, y = np.zeros((9, 7), "float32"), np.zeros((4, 7, 3), "float32")
    assert product_of(kernel_of(x, y, np.zeros((4, 9, 3), "float32"))).batch == (4,)


@pytest.mark.parametrize("bias", [None, "plain", "same"])
@pytest.mark.parametrize("n", [1, 3])
def test_columns_of_a_batch_that_shares_x(n, bias):
    x, y = matrix((33, 20), "float32", "rows"), matrix((50, 20, n), "float32", "rows")
    columns = RNG.standard_normal(n).astype("float32")
    biases = {None: None, "plain": columns, "same": np.broadcast_to(columns[:1], (n,))}
    out = np.full((50, n, 33), np.inf, "float32").swapaxes(-1, -2)
    check(x, y, out, biases[bias], cuts=[0.4])
    check(x, y, np.full((50, 33, n), np.inf, "float32"), biases[bias], cuts=[0.4])


def test_a_transposed_result_is_computed_transposed():
    out = np.zeros((100, 90), "float32").T
    x, y = np.zeros((90, 50), "float32"), np.zeros((50, 100), "float32")
    assert plan_for(kernel_of(x, y, out), avx2()).product.swapped


@pytest.mark.parametrize("n", [16, 32, 48])
def test_tiles_are_no_higher_than_a_cache_has_ways_for_rows_that_meet_there(n):
    apart, meeting = (plan(120, n, k, target=avx512()) for k in (1000, 1024))
    assert not meeting.pack_x
    assert meeting.highest_tile <= 8 < apart.highest_tile


def test_every_block_of_rows_is_as_high_as_a_tile():
    for m in range(1, 700):
        made = plan(m, 200, 300)
        assert made.last_rows >= min(m, made.highest_tile)
        assert (made.row_blocks - 1) * made.row_block + made.last_rows == m


def test_units_of_a_large_product_have_about_as_many_blocks_of_rows():
    for m in range(500, 4000, 100):
        large = plan(m, 2048, 2048)
        last = large.row_blocks - (large.row_groups - 1) * large.group
        assert large.group - last < large.row_groups


def test_work_is_divided_evenly_and_only_where_it_pays():
    assert plan(1024, 1024, 1024).chunks(1) == 1
    assert plan(16, 16, 16).chunks(8) == 1
    for threads in (2, 3, 8):
        assert plan(1024, 1024, 1024).chunks(threads) % threads == 0
        assert plan(64, 64, 64, batch=(100,)).chunks(threads) % threads == 0


def test_columns_are_stored_by_pieces():
    assert pieces(16, 8) == [(0, 8), (8, 8)]
    assert pieces(15, 8) == [(0, 8), (8, 4), (12, 2), (14, 1)]
    assert pieces(3, 1) == [(0, 1), (1, 1), (2, 1)]


# -- code ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [avx2(), avx512(), neon(), sse2()], ids=lambda t: t.cpu)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_code_for_other_machines_compiles(target, dtype):
    for m, n, k, layout in [
        (70, 50, 33, "TT"),
        (600, 300, 600, "NN"),
        (5, 64, 64, "NT"),
        (1, 9, 40, "NN"),
    ]:
        kinds = {"N": "rows", "T": "columns"}
        x = matrix((m, k), dtype, kinds[layout[0]])
        y = matrix((k, n), dtype, kinds[layout[1]])
        kernel = kernel_of(x, y, np.zeros((m, n), dtype))
        assert "product" in assembly(text_of(kernel, target), target)


def inner_loop(listing):
    """Return the block of assembly with the most multiplications."""
    blocks = re.split(r"^\S+:", listing, flags=re.MULTILINE)
    return max(blocks, key=lambda block: block.count("vfmadd"))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_sums_stay_in_registers(dtype):
    arrays = [np.zeros((600, 600), dtype) for _ in range(3)]
    loop = inner_loop(assembly(text_of(kernel_of(*arrays), avx2()), avx2()))
    assert loop.count("vfmadd") in (12, 24, 48)  # one, two or four steps a turn
    assert "rsp" not in loop
    assert "rbp" not in loop


def test_equal_kernels_have_equal_text():
    arrays = [np.zeros((60, 60), "float32") for _ in range(3)]
    assert text_of(kernel_of(*arrays)) == text_of(kernel_of(*arrays))


def test_other_dtypes_are_refused():
    arrays = [np.zeros((4, 4), "int32") for _ in range(3)]
    with pytest.raises(TypeError, match="float32 and float64; got i32"):
        text_of(kernel_of(*arrays))


@pytest.mark.parametrize("lanes", [2, 4, 8])
@pytest.mark.parametrize("element", ["float", "double"])
def test_squares_are_transposed_by_shuffles(lanes, element):
    module = ModuleText(host())
    f = module.function("turn", ["ptr", "ptr"])
    source, target = f.parameters
    type = f"<{lanes} x {element}>"
    rows = [f.load(type, f.gep(source, i * lanes, element)) for i in range(lanes)]
    for i, value in enumerate(transposed(f, rows)):
        f.store(value, f.gep(target, i * lanes, element))
    f.ret()
    library = link([compile_module(module.text(), host())], ["turn"])
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2)(library.address("turn"))
    dtype = {"float": "float32", "double": "float64"}[element]
    square, turned = (
        RNG.standard_normal((lanes, lanes)).astype(dtype),
        np.zeros((lanes, lanes), dtype),
    )
    function(square.ctypes.data, turned.ctypes.data)
    assert np.array_equal(turned, square.T)


# -- epilogues -------------------------------------------------------------------------------------


def run_with_epilogue(x, y, out, bias, extras, write):
    """Run a kernel whose epilogue is `write(builder, product, *extras)`."""
    builder = ScalarBuilder()
    loads = [builder.load(i, a.dtype) for i, a in enumerate((out, *extras))]
    kernel = kernel_of(x, y, out, bias)
    views = tuple(view_of(np.broadcast_to(a, out.shape)) for a in extras)
    kernel = replace(kernel, outputs=(Output(0, write(builder, *loads)),), extras=views)
    arrays = [a for a in (x, y, out, bias, *extras) if a is not None]
    native_function(kernel, arrays)(0, gemm_units(kernel, host()))


@pytest.mark.parametrize("transposed_out", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "size", [(7, 5, 3), (33, 50, 300), (500, 300, 520), (9, 70, 64), (1, 70, 50), (90, 1, 64)]
)
def test_an_epilogue_sees_the_complete_product(size, dtype, transposed_out):
    m, n, k = size
    x, y = matrix((m, k), dtype, "rows"), matrix((k, n), dtype, "columns")
    out = matrix((m, n), dtype, "columns" if transposed_out else "rows", fill=np.nan)
    bias = RNG.standard_normal(n).astype(dtype)
    residual, mask = matrix((m, n), dtype, "row gaps"), RNG.random((m, 1)) < 0.5

    def write(b, product, other, kept):
        return b.select(kept, b.maximum(product, 0.0), 0.0) * 0.5 + other

    run_with_epilogue(x, y, out, bias, [residual, mask], write)
    expected = np.where(mask, np.maximum(x @ y + bias, 0), 0) * 0.5 + residual
    assert np.allclose(out, expected, rtol=1e-4, atol=1e-4 * k)


def test_an_epilogue_of_a_batch():
    x, y = matrix((2, 3, 20, 30), "float32", "rows"), matrix((3, 30, 40), "float32", "rows")
    out, scale = np.zeros((2, 3, 20, 40), "float32"), matrix((2, 1, 1, 40), "float32", "rows")
    run_with_epilogue(x, y, out, None, [scale], lambda b, product, by: product * by)
    assert np.allclose(out, (x @ y) * scale, atol=1e-3)


# -- rows combined by an epilogue ------------------------------------------------------------------

WAYS = {"sum": np.add, "max": np.maximum, "min": np.minimum}


def run_combining(x, y, out, residual, ways, block, cuts=()):
    """Store half of (the product + a residual); return it combined in each way, by blocks."""
    builder = ScalarBuilder()
    value = (builder.load(0, out.dtype) + builder.load(1, out.dtype)) * 0.5
    kernel = kernel_of(x, y, out)
    m, n = out.shape
    totals = [np.full((-(-m // block), n), np.nan, out.dtype) for _ in ways]
    outputs = [Output(2 + i, value, way) for i, way in enumerate(ways)]
    views = tuple(view_of(a) for a in (residual, *totals))
    kernel = replace(kernel, outputs=(Output(0, value), *outputs), extras=views, block=block)
    function = native_function(kernel, [x, y, out, residual, *totals])
    units = gemm_units(kernel, host())
    places = sorted({0, units, *(cut % (units + 1) for cut in cuts)})
    for begin, end in pairwise(places):
        function(begin, end)
    return totals


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", ["rows", "columns"])
@pytest.mark.parametrize(
    ("size", "block"),
    [
        ((7, 5, 3), 7),
        ((1, 70, 50), 1),
        ((90, 1, 64), 90),
        ((20, 70, 64), 20),  # dot products if both lie so
        ((500, 20, 64), 48),
        ((33, 50, 300), 33),
        ((128, 96, 70), 48),
        ((601, 70, 40), 48),
        ((600, 300, 520), 96),
        ((9, 40, 0), 4),
    ],
)
def test_an_epilogue_combines_rows(size, block, layout, dtype):
    m, n, k = size
    x, y = matrix((m, k), dtype, "rows"), matrix((k, n), dtype, layout)
    out, residual = matrix((m, n), dtype, "rows", fill=np.nan), matrix((m, n), dtype, "row gaps")
    totals = run_combining(x, y, out, residual, WAYS, block)
    assert np.allclose(out, (x @ y + residual) * 0.5, rtol=1e-4, atol=1e-5 * max(k, 1))
    starts = range(0, m, block)
    for way, total in zip(WAYS.values(), totals, strict=True):
        assert np.allclose(total, way.reduceat(out, starts, axis=0), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("size", [(600, 300, 520), (128, 96, 70), (20, 70, 64), (64, 128, 128)])
def test_combined_rows_do_not_depend_on_the_division(size):
    m, n, k = size
    x, y = matrix((m, k), "float32", "rows"), matrix((k, n), "float32", "rows")
    residual = matrix((m, n), "float32", "rows")
    outs = [np.zeros((m, n), "float32") for _ in range(2)]
    whole = run_combining(x, y, outs[0], residual, ["sum"], 48)
    parts = run_combining(x, y, outs[1], residual, ["sum"], 48, cuts=(1, 3, 4, 7, 100))
    assert whole[0].tobytes() == parts[0].tobytes()
    assert outs[0].tobytes() == outs[1].tobytes()


def test_nan_is_the_greatest_and_the_least_of_its_column():
    x, y = matrix((60, 30), "float32", "rows"), matrix((30, 40), "float32", "rows")
    residual = np.zeros((60, 40), "float32")
    residual[50, 3], residual[2, 4] = np.nan, np.inf
    out = np.zeros((60, 40), "float32")
    totals = run_combining(x, y, out, residual, WAYS, 48)
    for way, total in zip(WAYS.values(), totals, strict=True):
        expected = way.reduceat(out, (0, 48), axis=0)
        np.testing.assert_allclose(total, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("target", [avx2(), avx512(), neon(), sse2()], ids=lambda t: t.cpu)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [(1000, 700, 300), (3000, 4000, 2000), (129, 16, 5000)])
def test_blocks_of_rows_hold_those_that_are_combined(size, dtype, target):
    m, n, k = size
    arrays = (np.zeros(shape, dtype) for shape in ((m, k), (k, n), (m, n)))
    kernel = kernel_of(*arrays)
    kernel = replace(kernel, block=48)
    made = plan_for(kernel, target)
    assert made.row_block % 48 == 0 or made.row_blocks == 1
    assert not made.product.swapped
    assert made.last_rows >= made.highest_tile


@pytest.mark.parametrize("shape", [(24, 32, 50), (5, 64, 33), (1, 40, 20), (3, 17, 64)])
def test_steps_of_a_turn_do_not_change_bits(shape, monkeypatch):
    m, columns, k = shape
    x, y = matrix((m, k), "float32", "rows"), matrix((k, columns), "float32", "rows")
    found = []
    for busy in (1, 8, 64):
        monkeypatch.setattr(tile, "BUSY", busy)
        out = np.empty((m, columns), "float32")
        multiply(x, y, out)
        found.append(out)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", ["NN", "NT", "TN"])
def test_columns_of_half_a_vector(dtype, layout):
    """The last panel may be narrower than a vector: as narrow as a half, or less."""
    kinds, lanes = {"N": "rows", "T": "columns"}, host().lanes(dtype)
    for n in (lanes // 2, 2 * lanes + 1, 4 * lanes + lanes // 2, 5 * lanes + lanes // 2):
        x = matrix((70, 300), dtype, kinds[layout[0]])
        y = matrix((300, n), dtype, kinds[layout[1]])
        check(x, y, np.zeros((70, n), dtype))


def test_wide_vectors_are_halved_where_half_of_the_last_has_no_columns():
    x, y, out = (np.zeros(shape, "float32") for shape in ((70, 300), (300, 200), (70, 200)))
    assert "fma.v8f32" in text_of(kernel_of(x, y, out), avx512())
    assert "fma.v4f32" not in text_of(kernel_of(x, y, out), avx2())
    wide = np.zeros((70, 208), "float32")
    assert "fma.v8f32" not in text_of(kernel_of(x, np.zeros((300, 208), "float32"), wide), avx512())
