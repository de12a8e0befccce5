"""Copies that turn matrices, against NumPy: any division, odd sizes, many matrices."""

from itertools import pairwise

import numpy as np
import pytest

from tests.backends.cpu.codegen.jit import Native, assembly
from weft.backends.cpu.codegen import ModuleText, avx2, avx512, host, neon, sse2
from weft.backends.cpu.codegen.rows import write_row_kernel
from weft.backends.cpu.codegen.turning import is_turning
from weft.lower.copies import copy_kernel
from weft.lower.storage import Buffer, View

RNG = np.random.default_rng(3)
DTYPES = ["float32", "float64", "int32", "int64", "uint8", "bool", "float16"]


def view_of(array):
    strides = tuple(s // array.itemsize for s in array.strides)
    return View(Buffer("feed", (array.size,), array.dtype, "array"), array.shape, strides)


def array(shape, dtype):
    return (RNG.standard_normal(shape) * 50).astype(dtype)


def copied(source, cuts=()):
    """Return a copy in C order, made by a kernel whose units are divided at `cuts`."""
    target = np.zeros(source.shape, source.dtype)
    kernel = copy_kernel("copy", view_of(source), view_of(target))
    module = ModuleText(host())
    write_row_kernel(module, "copy", kernel)
    run = Native(module.text(), host())
    ends = [0, *(int(kernel.units * cut) for cut in cuts), kernel.units]
    for begin, end in pairwise(ends):
        run("copy", source, target, begin, end)
    return kernel, target


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(16, 16), (8, 100), (33, 21), (64, 9), (7, 50), (50, 3)])
def test_matrices_are_turned(shape, dtype):
    source = array(shape, dtype).T
    _, target = copied(source, cuts=[0.2, 0.55])
    assert np.array_equal(target, source)


def test_many_matrices_are_turned():
    source = array((3, 4, 20, 18), "float32").transpose(1, 0, 3, 2)
    kernel, target = copied(source, cuts=[0.1, 0.15, 0.7])
    assert is_turning(kernel, avx2())
    assert np.array_equal(target, source)


def test_parts_of_matrices_are_turned():
    source = array((40, 60), "float64")[3:30, 5:50].T
    kernel, target = copied(source)
    assert is_turning(kernel, avx2())
    assert np.array_equal(target, source)


@pytest.mark.parametrize(
    "source",
    [
        np.zeros((20, 30), "float32"),
        np.zeros((20, 30), "float32")[:, ::2],
        np.zeros((30, 20), "float32")[::-1].T,
        np.zeros((3, 20), "float32").T,
        np.zeros((30, 20), "int16").T,
    ],
    ids=["straight", "gaps", "backwards", "narrow", "short elements"],
)
def test_other_copies_are_not(source):
    target = np.zeros(source.shape, source.dtype)
    assert not is_turning(copy_kernel("copy", view_of(source), view_of(target)), avx2())


@pytest.mark.parametrize("target", [avx2(), avx512(), neon(), sse2()], ids=lambda t: t.cpu)
def test_code_for_other_machines_compiles(target):
    source, result = np.zeros((40, 50), "float32").T, np.zeros((50, 40), "float32")
    module = ModuleText(target)
    write_row_kernel(module, "copy", copy_kernel("copy", view_of(source), view_of(result)))
    assert "copy" in assembly(module.text(), target)
