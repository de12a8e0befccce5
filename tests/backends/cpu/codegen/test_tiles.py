"""Which kernels go by tiles and by vectors, and that their code compiles for other machines."""

import numpy as np
import pytest

from tests.backends.cpu.codegen.jit import assembly
from weft.backends.cpu.codegen import ModuleText, avx2, avx512, neon, sse2
from weft.backends.cpu.codegen.phases import Phases
from weft.backends.cpu.codegen.rows import write_row_kernel
from weft.backends.cpu.codegen.strided import by_vectors
from weft.backends.cpu.codegen.tiles import TILE_BYTES, tiling_of
from weft.core.scalar.builder import ScalarBuilder
from weft.lower.kernels import Operand, Output, RowKernel
from weft.lower.storage import Buffer, View
from weft.lower.transposed import LONG_ROW

MACHINES = [avx2(), avx512(), neon(), sse2()]


def operand(loops, strides, dtype):
    size = 1 + sum((n - 1) * abs(s) for n, s in zip(loops, strides, strict=True))
    buffer = Buffer("arena", (size,), np.dtype(dtype), "array")
    return Operand(View(buffer, loops, strides), strides)


def sum_kernel(loops, *all_strides, dtype="float32", reduces=False):
    """Return a kernel that adds two operands, or sums up the rows of what they add up to."""
    builder = ScalarBuilder()
    operands = [operand(loops, strides, dtype) for strides in all_strides]
    x, y = (builder.load(i, np.dtype(dtype)) for i in range(2))
    value = builder.add(x, y)
    if reduces:
        value = builder.reduce("sum", value)
    return RowKernel("sum", loops, operands, [Output(2, value)])


def matrix_sum(rows, columns, *, dtype="float32", reduces=False, turned=(1, None)):
    down, across = turned[0], turned[1] or rows
    result = (1, 0) if reduces else (columns, 1)
    strides = [(columns, 1), (down, across), result]
    return sum_kernel((rows, columns), *strides, dtype=dtype, reduces=reduces)


def tiling(kernel, target=MACHINES[0]):
    return tiling_of(kernel, Phases(kernel), target)


@pytest.mark.parametrize("target", MACHINES, ids=lambda t: t.cpu)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tiles_stay_in_the_first_cache(target, dtype):
    found = tiling(matrix_sum(500, 5000, dtype=dtype), target)
    assert found.turned == (1,)
    assert found.lanes == target.vector_bytes // np.dtype(dtype).itemsize
    size = found.rows * found.columns * np.dtype(dtype).itemsize
    assert TILE_BYTES // 2 <= size <= TILE_BYTES
    assert found.columns % found.lanes == 0


@pytest.mark.parametrize("target", MACHINES, ids=lambda t: t.cpu)
def test_passes_want_whole_rows(target):
    found = tiling(matrix_sum(500, LONG_ROW, reduces=True), target)
    assert (found.rows, found.columns) == (found.lanes, LONG_ROW)
    assert tiling(matrix_sum(500, LONG_ROW + 1, reduces=True), target) is None


@pytest.mark.parametrize(
    "kernel",
    [
        matrix_sum(500, 500, turned=(500, 1)),
        matrix_sum(500, 500, turned=(500, -1)),
        matrix_sum(500, 500, turned=(1000, 2)),
        matrix_sum(500, 500, turned=(-1, 500)),
        matrix_sum(500, 500, dtype="int16"),
        matrix_sum(7, 500),
        matrix_sum(500, 7),
    ],
    ids=["straight", "backwards", "gaps", "up", "short elements", "few rows", "few columns"],
)
def test_others_need_no_tiles(kernel):
    assert tiling(kernel) is None


@pytest.mark.parametrize("strides", [(500, 1), (500, -1), (1500, 3), (1, 500), (1, 0)], ids=str)
def test_operands_may_lie_anyhow(strides):
    assert by_vectors(sum_kernel((500, 500), (500, 1), strides, (500, 1)))


def test_results_lie_in_sequence():
    assert not by_vectors(sum_kernel((500, 500), (500, 1), (500, 1), (1000, 2)))


def test_short_rows_with_gaps_are_left_to_single_elements():
    assert not by_vectors(sum_kernel((500, 5), (5, 1), (10, 2), (5, 1)))
    assert by_vectors(sum_kernel((500, 5), (5, 1), (5, 1), (5, 1)))


@pytest.mark.parametrize("target", MACHINES, ids=lambda t: t.cpu)
@pytest.mark.parametrize("strides", [(1, 100), (77, -1), (231, 3)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int16"])
def test_code_for_other_machines_compiles(target, strides, dtype):
    module = ModuleText(target)
    kernel = sum_kernel((100, 77), (77, 1), strides, (77, 1), dtype=dtype)
    write_row_kernel(module, "sum", kernel)
    assert "sum" in assembly(module.text(), target)
