"""Pooled arrays: ordinary ndarrays whose memory is used again."""

import gc
import os
import subprocess
import sys
import threading
from textwrap import dedent

import numpy as np
import pytest

from weft.backends.cpu.runtime.buffers import (
    POOLED_FROM,
    array_maker,
    pool_info,
    pooled_arena,
    pooled_empty,
)

FLOAT = np.dtype(np.float32)
LARGE = (1000, 700)


def address(array):
    return array.__array_interface__["data"][0]


def run(program, **environment):
    """Run a program in a process of its own and return what it prints."""
    command = [sys.executable, "-c", dedent(program)]
    result = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split()


@pytest.mark.parametrize("dtype", ["bool", "int64", "float16", "float32", "float64"])
def test_arrays_are_ordinary(dtype):
    array = pooled_empty(LARGE, np.dtype(dtype))
    plain = np.empty(LARGE, dtype)
    assert type(array) is np.ndarray
    assert array.base is None
    assert array.flags.num == plain.flags.num
    assert (array.shape, array.strides, array.dtype) == (plain.shape, plain.strides, plain.dtype)
    assert address(array) % 64 == 0
    array[...] = 1
    assert (array == 1).all()


@pytest.mark.parametrize("nbytes", [1, 100_000, 244_352, POOLED_FROM, 10 * POOLED_FROM + 7])
def test_arenas_begin_at_a_line(nbytes):
    """Vectors are stored there by instructions that fail elsewhere."""
    arenas = [pooled_arena(nbytes) for _ in range(20)]
    assert {address(arena) % 64 for arena in arenas} == {0}
    assert {arena.nbytes for arena in arenas} == {nbytes}


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 10**6), (7,)])
def test_small_arrays_are_left_to_numpy(shape):
    before = pool_info()
    assert pooled_empty(shape, FLOAT).shape == shape
    assert pool_info() == before


def test_memory_is_used_again():
    array = pooled_empty(LARGE, FLOAT)
    place = address(array)
    del array
    before = pool_info()
    again = pooled_empty(LARGE, FLOAT)
    assert address(again) == place
    assert pool_info().reused == before.reused + 1
    assert pool_info().made == before.made


def test_living_arrays_share_nothing():
    arrays = [pooled_empty(LARGE, FLOAT) for _ in range(5)]
    for i, array in enumerate(arrays):
        array[...] = i
    assert [float(array.min()) for array in arrays] == [0, 1, 2, 3, 4]
    assert [float(array.max()) for array in arrays] == [0, 1, 2, 3, 4]


def test_views_keep_the_memory():
    array = pooled_empty(LARGE, FLOAT)
    array[...] = 1
    view = array[10:20].T.reshape(-1)[::3]
    outer = array[5:]
    del array
    other = pooled_empty(LARGE, FLOAT)
    other[...] = 2
    assert (outer == 1).all()
    assert (view == 1).all()


def test_neighbouring_sizes_share_memory():
    place = address(pooled_empty((300_000,), FLOAT))
    assert address(pooled_empty((299_000,), FLOAT)) == place


def test_resizing_keeps_the_content():
    array = pooled_empty((300_000,), FLOAT)
    array[...] = np.arange(300_000)
    array.resize((900_000,), refcheck=False)
    assert (array[:300_000] == np.arange(300_000)).all()
    array.resize((10,), refcheck=False)
    assert array.tolist() == list(range(10))


def test_impossible_sizes_raise():
    with pytest.raises(MemoryError, match="Unable to allocate"):
        pooled_empty((2**45,), FLOAT)
    with pytest.raises((MemoryError, ValueError)):
        pooled_empty((2**62,), FLOAT)


def test_all_sizes_hold_their_bytes():
    for size in (POOLED_FROM, POOLED_FROM + 1, 300_001, 2**20 - 1, 2**20, 2**20 + 1, 5_000_011):
        array = pooled_empty((size,), np.dtype(np.uint8))
        array[...] = 255
        other = pooled_empty((size,), np.dtype(np.uint8))
        other[...] = 0
        assert array.min() == 255


def test_maker_serves_one_type():
    make = array_maker((500, 500), FLOAT)
    x, y = make(), make()
    x[...], y[...] = 1, 2
    assert x.shape == (500, 500)
    assert (x == 1).all()


def test_threads_may_allocate_and_free():
    def work(number):
        kept = []
        for i in range(200):
            array = pooled_empty((POOLED_FROM + 1000 * (i % 7),), np.dtype(np.uint8))
            array[:8], array[-8:] = number, number
            kept.append(array)
            if len(kept) > 3:
                wrong.extend(a for a in kept if a[0] != number or a[-1] != number)
                del kept[: 1 + i % 3]

    wrong = []
    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_pool_is_bounded():
    program = """
        import numpy as np
        from weft.backends.cpu.runtime.buffers import pool_info, pooled_empty
        arrays = [pooled_empty((10**6 + 10**5 * i,), np.dtype(np.uint8)) for i in range(20)]
        del arrays
        print(0 < pool_info().held <= pool_info().limit == 8 * 2**20)
        del [pooled_empty((10**8,), np.dtype(np.uint8))][0]
        print(pool_info().held <= pool_info().limit)
    """
    assert run(program, WEFT_POOL_MB="8") == ["True", "True"]


def test_pool_may_keep_nothing():
    program = """
        import numpy as np
        from weft.backends.cpu.runtime.buffers import pool_info, pooled_empty
        for _ in range(3):
            pooled_empty((10**6,), np.dtype(np.uint8))
        print(pool_info().held, pool_info().made)
    """
    assert run(program, WEFT_POOL_MB="0") == ["0", "3"]


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "atexit.register(lambda: print(x[0]))"])
def test_arrays_may_outlive_everything(end):
    program = f"""
        import atexit, sys
        import numpy as np
        from weft.backends.cpu.runtime.buffers import pooled_empty
        x = pooled_empty((10**6,), np.dtype(np.uint8))
        x[:] = 7
        sys.keep = np.keep = x[5:]  # die with their modules
        class Late:
            def __del__(self, make=pooled_empty, dtype=x.dtype):
                make((10**6,), dtype)[:] = 1
        late = Late()
        {end}
    """
    run(program)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process")  # fork with threads, from Python 3.12 on
def test_child_has_memory_of_its_own():
    array = pooled_empty(LARGE, FLOAT)
    array[...] = 1
    child = os.fork()
    if child == 0:
        array[...] = 2
        del array
        fresh = [pooled_empty(LARGE, FLOAT) for _ in range(3)]
        for x in fresh:
            x[...] = 3
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert (array == 1).all()


def test_arrays_in_cycles_are_freed():
    array = pooled_empty(LARGE, FLOAT)
    place = address(array)
    cycle = [array]
    cycle.append(cycle)
    del array, cycle
    gc.collect()
    assert address(pooled_empty(LARGE, FLOAT)) == place
