"""No store of a kernel is wider than what it stores, over the whole registry.

LLVM makes a store of one lane, cut from wider integers, as wide as those were, if it can see that
it is one: it overwrites what lies behind the end of a row. So operators are compiled on rows of one
element more than whole vectors, with results cut to every narrow dtype, for a machine that has such
instructions. What is made is read, not run: any machine can do that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

import weft as wf
from tests.backends.cpu.codegen.registry import code_of, samples
from tests.ops import conformance as c
from weft.backends.cpu.codegen import avx512
from weft.backends.cpu.runtime.linking import assembly
from weft.core.samples import Sample
from weft.core.tensor import Tensor
from weft.lower.schedule import Piece

COLUMNS = 4 * 64 + 1  # one more than a multiple of every number of lanes
NARROW = {
    "bytes": ("bool", "int8", "uint8"),
    "halves": ("int16", "uint16", "float16"),
    "words": ("int32", "uint32", "float32"),
}
SAMPLES = samples()
TRIES = 3  # samples of an operator, until one has rows

# What stores less than a whole register.
NAMES = {
    1: "movb vpextrb",
    2: "movw vpextrw vmovw vmovsh",
    4: "movl vpextrd vmovd vmovss vextractps",
    8: "movq vpextrq vmovq vmovsd vmovlps vmovhps vmovlpd vmovhpd",
}
BYTES = {name: size for size, names in NAMES.items() for name in names.split()}
STORE = re.compile(r"^\s+(\w+)\s.*%\w+, [-\w]*\((?!%rsp|%rbp)[^)]*\)$", re.MULTILINE)


def sizes_of_stores(text: str) -> set[int]:
    """Return the sizes of the stores in an assembly that write less than a register."""
    return {BYTES[name] for name in STORE.findall(text) if name in BYTES}


def long_rows(array: np.ndarray) -> Tensor:
    """Return a symbol with rows of so many elements, and gaps between, where an array has rows."""
    if array.ndim < 2 or array.shape[-1] == 1:
        return wf.placeholder(array.shape, array.dtype)
    return wf.placeholder((*array.shape[:-1], COLUMNS + 3), array.dtype)[..., :COLUMNS]


def kernels_of(case: c.Case, dtypes: tuple[str, ...]) -> Iterator[tuple[Piece, str]]:
    """Yield the kernels of a sample that go along long rows, with the code of their functions."""
    code = code_of(case, avx512(), long_rows, dtypes)
    for piece in code.text.schedule.pieces if code is not None else ():
        if getattr(piece.kernel, "loops", (0,))[-1] == COLUMNS:
            function = code.text.function_of(piece)
            text = assembly(code.text.modules[function], avx512())
            yield piece, text[text.index(f"{function}:") :]  # behind those that it calls


def assert_no_store_is_too_wide(piece: Piece, text: str) -> None:
    sizes = {piece.views[i].dtype.itemsize for i in piece.written}
    assert max(sizes_of_stores(text), default=0) <= max(sizes), (piece.kernel.name, text)


@pytest.mark.parametrize("name", SAMPLES)
def test_operators(name: str) -> None:
    for case in SAMPLES[name][:TRIES]:
        found = list(kernels_of(case, NARROW["bytes"]))
        for piece, text in found:
            assert_no_store_is_too_wide(piece, text)
        if found:
            return


@pytest.mark.long
@pytest.mark.parametrize("name", SAMPLES)
def test_all_samples(name: str) -> None:
    for case, dtypes in product(SAMPLES[name], NARROW.values()):
        for piece, text in kernels_of(case, dtypes):
            assert_no_store_is_too_wide(piece, text)


WIDE = ("int64", "uint32", "int16", "float64", "float32", "float16")


@pytest.mark.parametrize("wanted", [dtype for dtypes in NARROW.values() for dtype in dtypes])
@pytest.mark.parametrize("given", WIDE)
def test_dtypes(given: str, wanted: str) -> None:
    """One result in each kernel, so that a byte is not stored as two either."""
    x = np.zeros((3, 4), given)
    for function, sample in (("add", Sample(x, x)), ("sum", Sample(x, axis=0))):
        for piece, text in kernels_of(c.Case(function, sample, 0), (wanted,)):
            assert_no_store_is_too_wide(piece, text)


def test_the_reader_finds_stores() -> None:
    text = """
        movq\t%rax, (%rsi)
        movl\t%eax, 8(%rsi,%rdi)
        movw\t%ax, 8(%rsp)
        vmovlps\t%xmm0, 1024(%r10)
        vpextrb\t$0, %xmm0, (%rsi)
        vmovups\t%zmm0, (%rsi)
        movw\t(%rsi), %ax
    """
    assert sizes_of_stores(text) == {8, 4, 1}
