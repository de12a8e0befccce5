"""The buffer pool: memory for large arrays, used again instead of asked for again.

    x = pooled_empty((1000, 1000), np.dtype("float32"))

The first touch of fresh memory costs about 1 ms a megabyte, far more than computing what is stored
there. An array from here is an ordinary ndarray that owns its data, 64-byte aligned if it is large
enough to be pooled; when it dies
(after the last view of it) its memory goes back to the pool, from any thread, and at most
WEFT_POOL_MB megabytes (512 unless set; 0 keeps nothing) wait there for the next array of about that
size. What a forked child takes is its own.

NumPy does the bookkeeping: an array carries the allocator of its memory (NEP 49), here that of
native/buffers.py, and NumPy gives the memory back to it. Where NumPy's functions and arrays are not
as expected, arrays are made in the usual way.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from ....core.dtype import Array
from ....core.heap import kept_memory_limit
from ..codegen.target import host
from .arena import ALIGNMENT, aligned_part
from .calls import (
    address_of_function,
    builtin,
    empty_maker,
    layout,
    native_calls_work,
    numpy_function,
)
from .linking import Library, link
from .native.buffers import (
    ALLOCATOR,
    EXPORTS,
    FIELDS,
    HANDLER_BEHIND_FLAGS,
    LINUX,
    POSIX,
    PYTHON_FUNCTIONS,
    WINDOWS,
    buffers_text,
)
from .objects import runtime_code

POOLED_FROM = 256 * 1024  # bytes; the C library reuses smaller blocks by itself

# Places in NumPy's table of C functions, part of its stable binary interface.
_NEW_FROM_DESCR, _GET_HANDLER = 94, 305
_HANDLER_NAME = b"mem_handler"


class PoolInfo(NamedTuple):
    """What the pool holds (bytes that wait to be used again), and how often that helped."""

    held: int
    limit: int
    reused: int
    made: int


def pooled_empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Return an array with undefined content; a large one in memory that was used before."""
    try:
        return array_maker(shape, dtype)()
    except MemoryError:  # NumPy says what cannot be allocated
        return np.empty(shape, dtype)


def pooled_arena(nbytes: int) -> Array:
    """Return memory for a program to compute in: aligned, whether it is large or not."""
    block = pooled_empty((nbytes + ALIGNMENT,), np.dtype(np.uint8))
    return aligned_part(block, nbytes, ALIGNMENT)


@lru_cache(maxsize=1024)
def array_maker(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Callable[[], Array]:
    """Return a function that makes arrays of one type, as `pooled_empty` does, at little cost."""
    if math.prod(shape) * dtype.itemsize < POOLED_FROM or not _works():
        return empty_maker(shape, dtype)
    return _native_maker(shape, dtype)


def pool_info() -> PoolInfo:
    """Return what the buffer pool holds."""
    return PoolInfo(*(_field(name).value for name in PoolInfo._fields))


class _Handler(ctypes.Structure):
    """NumPy's PyDataMem_Handler, version 1."""

    _fields_ = (
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    )


def _native_maker(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Callable[[], Array]:
    nbytes = math.prod(shape) * dtype.itemsize
    if nbytes >= 2**60:  # let NumPy say why that cannot be
        return partial(np.empty, shape, dtype)
    handler = _handler()
    record = np.array([id(dtype), id(handler), nbytes, len(shape), *shape], np.uint64)
    return builtin(_library().address("weft_new_array"), record, (dtype, handler))


@cache
def _works() -> bool:
    """Tell by a trial whether arrays are laid out as the code expects."""
    get_handler = numpy_function(_GET_HANDLER)
    if get_handler is None or not native_calls_work():
        return False
    at = layout().array_flags + HANDLER_BEHIND_FLAGS
    usual = ctypes.PYFUNCTYPE(ctypes.py_object)(get_handler)()
    array = np.empty(3)
    return ctypes.c_uint64.from_address(id(array) + at).value == id(usual)


@cache
def _handler() -> object:
    """Return the pool's allocator as NumPy takes it."""
    functions = [_library().address(name) for name in ALLOCATOR]
    record = _Handler(b"weft_pool", 1, None, *functions)
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
        ("PyCapsule_New", ctypes.pythonapi)
    )
    _keep(record)
    return new(ctypes.addressof(record), _HANDLER_NAME, None)


@cache
def _library() -> Library:
    """Return the allocator's code. It is never freed: arrays may die after everything else."""
    system = LINUX if sys.platform.startswith("linux") else POSIX
    text = buffers_text(
        host(),
        WINDOWS if sys.platform == "win32" else system,
        layout().array_data,
        layout().array_flags,
    )
    symbols = {
        **{name: address_of_function(name) for name in PYTHON_FUNCTIONS},
        "python_ndarray": id(np.ndarray),
        "numpy_new_from_descr": numpy_function(_NEW_FROM_DESCR) or 0,
    }
    library = link([runtime_code(text, host())], EXPORTS, symbols)
    limit = ctypes.c_int64.from_address(library.address(EXPORTS[0]) + FIELDS["limit"])
    limit.value = kept_memory_limit()
    _keep(library)
    return library


def _field(name: str) -> ctypes.c_int64:
    return ctypes.c_int64.from_address(_library().address(EXPORTS[0]) + FIELDS[name])


def _keep(thing: object) -> None:
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
