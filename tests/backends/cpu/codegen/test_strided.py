"""Elements that do not lie one behind another: every so many-th, backwards, windows of them."""

import ctypes
import sys

import numpy as np
import pytest

from tests.backends.cpu.codegen.gemm.test_kernel import at_the_end_of_memory
from tests.backends.cpu.codegen.jit import assembly
from tests.backends.cpu.codegen.test_tiles import MACHINES, sum_kernel
from tests.programs.running import check_native
from weft.backends.cpu.codegen import ModuleText, host
from weft.backends.cpu.codegen.rows import write_row_kernel
from weft.backends.cpu.codegen.strided import SHUFFLED, by_vectors
from weft.backends.cpu.runtime.linking import compile_module, link
from weft.nn import functional as F

RNG = np.random.default_rng(3)
COLUMNS = (1, 7, 8, 12, 16, 17, 33, 100)


@pytest.mark.parametrize("stride", [*SHUFFLED, 5, -1, -2])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "bool"])
def test_every_so_many_th_element(stride, dtype):
    arrays = [(RNG.normal(size=(5, n * abs(stride))) * 9).astype(dtype) for n in COLUMNS]

    def function(*xs):
        return tuple(x[:, ::stride] != x[:1, ::stride] for x in xs)

    check_native(function, *arrays)


@pytest.mark.parametrize("kernel", [2, 3, 4])
def test_maxima_of_windows_side_by_side(kernel):
    images = [RNG.normal(size=(2, 3, 2 * kernel, kernel * n)).astype(np.float32) for n in (9, 24)]
    images[0][0, 0, 1, 2] = np.nan
    check_native(lambda *xs: tuple(F.max_pool2d(x, kernel) for x in xs), *images)


def test_short_rows_are_worth_a_shuffle_and_no_collection():
    def rows_of(columns, stride):
        around = (columns, 1)
        return sum_kernel((500, columns), around, (columns * stride, stride), around)

    assert by_vectors(rows_of(8, 2))
    assert by_vectors(rows_of(8, 4))
    assert not by_vectors(rows_of(7, 2))
    assert not by_vectors(rows_of(15, 5))
    assert by_vectors(rows_of(16, 5))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="protects pages by mprotect")
@pytest.mark.parametrize("stride", [*SHUFFLED])
def test_nothing_is_read_behind_the_last_element(stride):
    module = ModuleText(host())
    columns = 2 * host().lanes("float32") + 3
    strides = (columns, 1), (columns * stride, stride), (columns, 1)
    write_row_kernel(module, "sum", sum_kernel((1, columns), *strides))
    library = link([compile_module(module.text(), host())], ["sum"])
    held = []
    x, out = RNG.normal(size=(2, columns)).astype(np.float32)
    y = at_the_end_of_memory(RNG.normal(size=(columns - 1) * stride + 1).astype(np.float32), held)
    kinds = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 2
    function = ctypes.CFUNCTYPE(None, *kinds)(library.address("sum"))
    function(x.ctypes.data, y.ctypes.data, out.ctypes.data, 0, 1)
    np.testing.assert_array_equal(out, x + y[::stride])


@pytest.mark.parametrize("target", MACHINES, ids=lambda t: t.cpu)
@pytest.mark.parametrize("stride", [*SHUFFLED])
def test_code_for_other_machines_compiles(target, stride):
    module = ModuleText(target)
    write_row_kernel(module, "sum", sum_kernel((9, 77), (77, 1), (77 * stride, stride), (77, 1)))
    assert "sum" in assembly(module.text(), target)
