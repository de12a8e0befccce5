"""The guard of arrays finds what it is there for, and nothing else."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

import weft as wf
from tests.guard import guarded_memory
from weft.backends.cpu.runtime.arena import aligned_empty
from weft.backends.cpu.runtime.buffers import POOLED_FROM, pooled_empty

MAKERS = {
    "numpy": lambda n: np.empty(n, np.uint8),
    "zeros": lambda n: np.zeros(n, np.uint8),
    "result": lambda n: pooled_empty((n,), np.dtype(np.uint8)),
    "arena": aligned_empty,
}
each_maker = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def write_at(array: np.ndarray, offset: int) -> None:
    place = ctypes.c_uint8.from_address(array.ctypes.data + offset)
    place.value ^= 1


@each_maker
@pytest.mark.parametrize("size", [1, 63, 64, 1000, POOLED_FROM + 1])
@pytest.mark.parametrize("offset", [-1, 0, 7])
def test_bytes_beside_an_array(make, size, offset) -> None:
    with guarded_memory() as guard:
        array = make(size)
        array[0] = array[-1] = 1
        guard.check()
        write_at(array, offset if offset < 0 else size + offset)
        with pytest.raises(AssertionError, match="1 arrays have changed bytes"):
            guard.check()
        guard.check()  # it is said once


def test_arrays_that_are_gone() -> None:
    with guarded_memory() as guard:
        array = np.empty(10)
        write_at(array, 80)
        del array
        with pytest.raises(AssertionError, match="1 arrays have changed bytes"):
            guard.check()


def test_results_of_compiled_code_are_guarded() -> None:
    with guarded_memory() as guard:
        x = wf.tensor(np.ones((3, 5), np.float32))
        compiled = wf.compile(lambda x: (x * 2.0, x.sum()), x)
        y, _ = compiled(x)
        guard.check()
        write_at(y.numpy(), 60)
        with pytest.raises(AssertionError, match="1 arrays"):
            guard.check()


def test_usual_memory_comes_back() -> None:
    with guarded_memory():
        inside = np.arange(10)
    inside.resize(20, refcheck=False)
    assert inside.sum() == 45
    outside = np.empty(10)
    assert pooled_empty((POOLED_FROM,), np.dtype(np.uint8)).flags.owndata
    del inside, outside
