"""Keys of kernels: equal keys mean equal code."""

from dataclasses import replace

import numpy as np
import pytest

from tests.programs.smooth import SmoothProgram
from weft.backends.cpu.codegen.columns import write_column_kernel
from weft.backends.cpu.codegen.gemm.kernel import write_gemm_kernel
from weft.backends.cpu.codegen.keys import kernel_key
from weft.backends.cpu.codegen.rows import write_row_kernel
from weft.backends.cpu.codegen.target import avx2
from weft.backends.cpu.codegen.text import ModuleText
from weft.compiler.stages import optimize_static
from weft.core.scalar.builder import ScalarBuilder
from weft.graph.run import Program
from weft.lower.kernels import ColumnKernel, GemmKernel, Operand, Output, RowKernel
from weft.lower.lowering import lower
from weft.lower.storage import Buffer, contiguous
from weft.passes.specialize import specialize

WRITERS = {
    RowKernel: write_row_kernel,
    ColumnKernel: write_column_kernel,
    GemmKernel: write_gemm_kernel,
}


def text_of(kernel):
    module = ModuleText(avx2())
    WRITERS[type(kernel)](module, "kernel", kernel)
    return module.text()


def kernels_of(seed):
    program = SmoothProgram(seed, np.float32)
    feeds = {x.value: a.shape for x, a in program.feeds.items()}
    asked = Program(program.graph, [y.value for y in program.fetches], list(feeds))
    found = lower(optimize_static(specialize(asked, feeds)))[0].kernels
    return [kernel for kernel in found if type(kernel) in WRITERS]


@pytest.mark.parametrize("seed", range(6))
def test_equal_keys_mean_equal_code(seed):
    texts = {}
    kernels = kernels_of(seed) + kernels_of(seed)
    for kernel in kernels:
        key = kernel_key(kernel)
        assert key is not None
        assert texts.setdefault(key, text_of(kernel)) == text_of(kernel)
    assert len(texts) <= len(kernels) // 2


def scaling(factor, dtype="float32", name="x", in_place=False):
    builder = ScalarBuilder()
    x = contiguous(Buffer("arena", (8,), np.dtype(dtype), name), (8,))
    y = x if in_place else contiguous(Buffer("arena", (8,), np.dtype(dtype), "y"), (8,))
    value = builder.load(0, np.dtype(dtype)) * factor
    return RowKernel(name, (8,), [Operand(x, (1,)), Operand(y, (1,))], [Output(1, value)])


def test_names_do_not_matter():
    assert kernel_key(scaling(2.0)) == kernel_key(scaling(2.0, name="other"))


@pytest.mark.parametrize(
    "other", [scaling(3.0), scaling(-0.0), scaling(2.0, "float64"), scaling(2.0, in_place=True)]
)
def test_what_matters_is_in_the_key(other):
    assert kernel_key(other) != kernel_key(scaling(2.0))


def test_zeros_of_either_sign_differ_and_nans_do_not():
    assert kernel_key(scaling(0.0)) != kernel_key(scaling(-0.0))
    assert kernel_key(scaling(float("nan"))) == kernel_key(scaling(float("nan")))


def test_what_is_unknown_has_no_key():
    assert kernel_key(replace(scaling(2.0), loops=object())) is None
