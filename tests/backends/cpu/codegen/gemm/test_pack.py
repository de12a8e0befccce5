"""Copies of operands of products: stacks of rows, in the order in which tiles read them."""

import ctypes

import numpy as np
import pytest

from weft.backends.cpu.codegen import ModuleText, avx512, host, neon, sse2
from weft.backends.cpu.codegen.gemm.pack import PARAMETERS, Stacks, write_stacks
from weft.backends.cpu.codegen.gemm.source import LineStrides, PanelSource
from weft.backends.cpu.codegen.values import element_of
from weft.backends.cpu.runtime.linking import compile_module, link

RNG = np.random.default_rng(11)
GUARD = 7.0


def stacks_of(x, height, depths, target=None):
    """Return the copy of a matrix that lies along its rows or its columns, or neither."""
    lanes = (target or host()).vector_bytes // x.itemsize
    down, across = (stride // x.itemsize for stride in x.strides)
    by_row = across == 1
    lines = LineStrides(element_of(x.dtype), *((down, across) if by_row else (across, down)))
    room = max(depths) + 64 // x.itemsize
    return Stacks(lines.element, lanes, PanelSource((lines,)), height, room, by_row, depths)


def text_of(stacks, target=None):
    """Return a module with a function that calls the copy, which is internal."""
    module = ModuleText(target or host())
    write_stacks(module, "stacks", stacks)
    f = module.function("run", PARAMETERS)
    f.call("stacks", "void", *f.parameters)
    f.ret()
    return module.text()


def expected(x, stacks, filled):
    """Return what the target holds after a copy into memory full of a number."""
    rows, depth = x.shape
    count = -(-rows // stacks.height)
    result = np.full((count, stacks.room, stacks.height), filled, x.dtype)
    for number in range(count):
        start = min(number * stacks.height, rows - stacks.height)
        result[number, :depth] = x[start : start + stacks.height].T
    return result


def matrix(rows, depth, dtype, layout):
    values = RNG.standard_normal((rows, depth)).astype(dtype)
    return {
        "rows": lambda: values,
        "columns": lambda: np.asfortranarray(values),
        "neither": lambda: np.repeat(np.repeat(values, 2, 0), 2, 1)[::2, ::2],
    }[layout]()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", ["rows", "columns", "neither"])
@pytest.mark.parametrize("height", [1, 2, 5, 6, 8, 12, 14])
def test_stacks_hold_columns_one_behind_another(height, layout, dtype):
    depths = (1, 3) if height == 5 else (16, 21, 40)
    found = {}
    for depth in depths:
        for rows in (height, height + 1, 3 * height - 1, 3 * height, 50):
            x = matrix(rows, depth, dtype, layout)
            stacks = stacks_of(x, height, depths)
            library = found.setdefault(
                stacks, link([compile_module(text_of(stacks), host())], ["run"])
            )
            want = expected(x, stacks, GUARD)
            target = np.full(want.size + stacks.lanes, GUARD, dtype)
            run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)(
                library.address("run")
            )
            run(x.ctypes.data, target.ctypes.data, rows, depth)
            got = target[: want.size].reshape(want.shape)
            assert np.array_equal(got[:, :depth], want[:, :depth])


@pytest.mark.parametrize("layout", ["rows", "columns", "neither"])
@pytest.mark.parametrize("target", [avx512(), neon(), sse2()], ids=lambda t: t.cpu)
def test_stacks_for_other_machines_compile(target, layout):
    x = matrix(30, 32, "float32", layout)
    assert compile_module(text_of(stacks_of(x, 6, (32,), target), target), target)
