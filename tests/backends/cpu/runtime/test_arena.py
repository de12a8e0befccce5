"""Memory blocks: aligned, private, freed."""

import gc
import os
import weakref

import numpy as np
import pytest

from weft.backends.cpu.runtime.arena import ALIGNMENT, HUGE_FROM, HUGE_PAGE, aligned_empty
from weft.core.errors import AllocationError, ArgumentError

SIZES = [0, 1, 63, 64, 65, 4095, 4097, 100_000, HUGE_FROM - 1, HUGE_FROM, HUGE_FROM + 1]


@pytest.mark.parametrize("nbytes", SIZES)
def test_blocks_are_aligned_and_writeable(nbytes):
    block = aligned_empty(nbytes)
    assert block.dtype == np.uint8
    assert block.shape == (nbytes,)
    assert block.ctypes.data % ALIGNMENT == 0
    block[:] = 7
    assert int(block.sum(dtype=np.int64)) == 7 * nbytes


@pytest.mark.skipif(os.name != "posix", reason="mapped memory")
def test_large_blocks_start_at_huge_pages():
    assert aligned_empty(HUGE_FROM).ctypes.data % HUGE_PAGE == 0


@pytest.mark.parametrize("nbytes", [1000, HUGE_FROM])
def test_block_lives_as_long_as_its_views_and_no_longer(nbytes):
    block = aligned_empty(nbytes)
    owner = block
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    gone = weakref.ref(owner)
    view = block[: nbytes // 2 // 4 * 4].view(np.float32)
    del block, owner
    view[:] = 1.0
    assert gone() is not None
    del view
    gc.collect()
    assert gone() is None


def test_large_blocks_are_given_back():
    for _ in range(2000):  # more than there is, if they were kept
        aligned_empty(HUGE_FROM)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process")  # fork with threads, from Python 3.12 on
def test_child_does_not_write_into_its_parents_block():
    block = aligned_empty(HUGE_FROM)
    block[:] = 1
    child = os.fork()
    if child == 0:
        block[:] = 2
        os._exit(0)
    os.waitpid(child, 0)
    assert block.max() == 1


@pytest.mark.parametrize("nbytes", [2**60, 2**70])
def test_too_much_is_an_error_that_says_so(nbytes):
    with pytest.raises(AllocationError, match=str(nbytes)):
        aligned_empty(nbytes)


def test_negative_size_is_refused():
    with pytest.raises(ArgumentError, match="-1"):
        aligned_empty(-1)
