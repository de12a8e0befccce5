"""Loads and stores of the first lanes of a vector: nothing beyond them is touched."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.cpu.codegen.jit import Native, assembly
from weft.backends.cpu.codegen import ModuleText, avx512, element_of, host, vector_of
from weft.backends.cpu.codegen.text import FunctionText
from weft.backends.cpu.codegen.values import IRValue

INTEGERS = ("int8", "int16", "int32", "int64")
CUTS = [(a, b) for a in INTEGERS for b in INTEGERS if np.dtype(a).itemsize > np.dtype(b).itemsize]


def known(f: FunctionText, count: int) -> IRValue:
    return f.constant("i64", count)


def computed(f: FunctionText, count: int) -> IRValue:
    """Return a number that is no constant in the text, but one for whoever computes."""
    return f.sub(f.constant("i64", 100 + count), 100)


def cut_and_stored(target, given, wanted, lanes, how) -> str:
    """Return a module with a function for each number of lanes, which cuts and stores them."""
    module = ModuleText(target)
    for count in range(1, lanes + 1):
        f = module.function(f"store_{count}", ["ptr", "ptr"])
        x, y = f.parameters
        wide = f.load(vector_of(element_of(given), lanes), x)
        f.store(f.trunc(wide, element_of(wanted)), y, count=how(f, count))
        f.ret()
    return module.text()


@pytest.mark.parametrize("vectors", [1, 2])
@pytest.mark.parametrize("how", [known, computed])
@pytest.mark.parametrize(("given", "wanted"), CUTS)
def test_stores_of_some_lanes_write_nothing_else(given, wanted, how, vectors) -> None:
    lanes = vectors * host().lanes(given)
    native = Native(cut_and_stored(host(), given, wanted, lanes, how), host())
    x = np.arange(1, lanes + 1, dtype=given)
    for count in range(1, lanes + 1):
        out = np.full(2 * lanes, -1, wanted)
        native(f"store_{count}", x, out[lanes // 2 :])
        expected = np.full_like(out, -1)
        expected[lanes // 2 :][:count] = x[:count]
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("how", [known, computed])
@pytest.mark.parametrize(("given", "wanted"), CUTS)
def test_one_lane_is_stored_as_one_where_registers_hold_masks(given, wanted, how) -> None:
    """Which LLVM does not do by itself: it stores the integer before it was cut."""
    plain = {"int8": ("movb", "vpextrb"), "int16": ("movw", "vpextrw"), "int32": ("movl", "vmovd")}
    lanes = avx512().lanes(given)
    text = assembly(cut_and_stored(avx512(), given, wanted, lanes, how), avx512())
    store = next(line.split() for line in text.splitlines() if "(%rsi)" in line)
    assert store[0] in plain[wanted] or store[-1] == "{%k1}"
