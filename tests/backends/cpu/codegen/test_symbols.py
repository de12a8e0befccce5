"""Code asks nothing of others that Weft does not provide: above all no library for narrow types.

Where a machine has no instruction, LLVM calls a function that some compiler's runtime library has,
and this process has not.
"""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

import weft as wf
from tests.backends.cpu.codegen.elf import undefined_symbols
from tests.backends.cpu.codegen.registry import code_of, samples
from tests.ops import conformance as c
from weft.backends.cpu.codegen import Target, avx2, avx512, neon, sse2
from weft.backends.cpu.runtime.linking import CodegenError, compile_module
from weft.core.dtype import bfloat16
from weft.core.samples import Sample

TARGETS = {"avx2": avx2(), "avx512": avx512(), "neon": neon(), "sse2": sse2()}
# Other modules of the program, the thread pool, and what every process has.
PROVIDED = re.compile(r"kernel_\w+|weft_parallel_for|mem(cpy|move|set)")
HALVES = {"float16": np.dtype(np.float16)}
HALVES["bfloat16"] = pytest.importorskip("ml_dtypes") and bfloat16()
SAMPLES = samples()


def asked_for(case: c.Case, target: Target, dtype: np.dtype) -> set[str]:
    """Return what the code of a sample lacks, its float64 operands having another dtype."""

    def feed(array: np.ndarray) -> wf.Tensor:
        return wf.placeholder(array.shape, dtype if array.dtype == np.float64 else array.dtype)

    code = code_of(case, target, feed)
    modules = code.text.modules.values() if code is not None else ()
    try:
        found = [undefined_symbols(compile_module(text, target)) for text in modules]
    except CodegenError:
        raise
    except RuntimeError as error:
        pytest.skip(f"LLVM was built without {target.triple}: {error}")
    return {name for names in found for name in names if not PROVIDED.fullmatch(name)}


@pytest.mark.parametrize("name", SAMPLES)
def test_operators_where_instructions_lack(name: str) -> None:
    assert not asked_for(SAMPLES[name][0], sse2(), HALVES["float16"])


@pytest.mark.long
@pytest.mark.parametrize("name", SAMPLES)
def test_all_samples(name: str) -> None:
    dtypes = (*HALVES.values(), np.dtype("float32"), np.dtype("float64"))
    for case, target, dtype in product(SAMPLES[name], TARGETS.values(), dtypes):
        assert not asked_for(case, target, dtype), (case.id, target.cpu)


x = np.zeros((3, 40))
CALLS = {
    "add": Sample(x, x),
    "cast": Sample(x, dtype="float32"),
    "concat": Sample([x, x], axis=1),
    "exp": Sample(x),
    "max": Sample(x, axis=0),
    "round": Sample(x),
    "stack": Sample([x, x]),
    "sum": Sample(x, axis=1),
    "where": Sample(x > 0, x, x),
}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CALLS)
def test_halves_on_every_machine(name: str, target: str, dtype: str) -> None:
    assert not asked_for(c.Case(name, CALLS[name], 0), TARGETS[target], HALVES[dtype])
