"""Memory whose ends are guarded: what writes before or behind an array is found out.

    with guarded_memory() as guard:
        ...  # every array that NumPy makes on this thread, for results, feeds and arenas
        guard.check()

An array lies between two strips of known bytes. They are looked at when it is freed, by `check`
and at the end. Arenas and large arrays begin at a cache line, as they always do, and small ones
never, as they often do not. The allocator is native code, which NumPy takes as an array's own (NEP
49), so that whole test suites can run on it. Only for tests: nothing of it is in the package.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np

from weft.backends.cpu.codegen import host
from weft.backends.cpu.runtime import arena, buffers, calls
from weft.backends.cpu.runtime.linking import Library, compile_module, link

STRIP = 64  # bytes before and behind; the first hold size, previous and next block, what to free
_HEADER = 32
_PATTERN = 0xA5A5_5A5A_C3C3_3C3C
_SET_HANDLER = 304  # in NumPy's table of C functions
LARGE = buffers.POOLED_FROM
_NAMES = ("guard_malloc", "guard_calloc", "guard_realloc", "guard_free")


class Guard:
    """Looks after the arrays that were made while it was in force."""

    def __init__(self) -> None:
        self._check = ctypes.CFUNCTYPE(ctypes.c_int64)(_library().address("guard_broken"))

    def check(self) -> None:
        """Raise AssertionError if anything wrote beside an array, now or since the last check."""
        broken = self._check()
        assert broken == 0, f"{broken} arrays have changed bytes before or behind them"


@contextmanager
def guarded_memory() -> Iterator[Guard]:
    """Make all arrays of this thread in guarded memory, large ones and arenas too."""
    guard = Guard()
    guard._check()  # what was broken before is not ours
    before = buffers.POOLED_FROM, arena.HUGE_FROM, arena._allocated
    usual = _set_handler(_handler(LARGE))
    buffers.POOLED_FROM = arena.HUGE_FROM = 2**62
    arena._allocated = _guarded_arena
    buffers.array_maker.cache_clear()
    try:
        yield guard
        guard.check()
    finally:
        buffers.POOLED_FROM, arena.HUGE_FROM, arena._allocated = before
        buffers.array_maker.cache_clear()
        _set_handler(usual)


def _guarded_arena(nbytes: int) -> arena.Bytes:
    usual = _set_handler(_handler(0))
    try:
        return np.empty(nbytes, np.uint8)
    finally:
        _set_handler(usual)


def _set_handler(handler: object) -> object:
    function = calls.numpy_function(_SET_HANDLER)
    assert function is not None
    return ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(function)(handler)


@cache
def _handler(aligned_from: int) -> object:
    """Return the allocator as NumPy takes it; of a size from which on blocks are aligned."""
    record = buffers._Handler(b"guarded", 1, aligned_from, *map(_library().address, _NAMES))
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
        ("PyCapsule_New", ctypes.pythonapi)
    )
    buffers._keep(record)
    return new(ctypes.addressof(record), b"mem_handler", None)


@cache
def _library() -> Library:
    """Return the allocator. It is never freed: arrays may die after everything else."""
    library = link([compile_module(_text(), host())], [*_NAMES, "guard_broken"])
    buffers._keep(library)
    return library


def _text() -> str:
    """Return an allocator that keeps its blocks in a list; NumPy holds the GIL when it calls."""
    behind = [f"  %b{i} = getelementptr i8, ptr %end, i64 {8 * i}" for i in range(STRIP // 8)]
    before = [
        f"  %f{i} = getelementptr i8, ptr %block, i64 {_HEADER + 8 * i}"
        for i in range((STRIP - _HEADER) // 8)
    ]
    places = [line.split()[0] for line in (*before, *behind)]
    stores = [f"  store i64 {_PATTERN}, ptr {place}, align 1" for place in places]
    tests = ["  %t0 = or i1 false, false"]
    for i, place in enumerate(places):
        tests.append(f"  %w{i} = load i64, ptr {place}, align 1")
        tests.append(f"  %c{i} = icmp ne i64 %w{i}, {_PATTERN}")
        tests.append(f"  %t{i + 1} = or i1 %t{i}, %c{i}")
    return _TEMPLATE.format(
        strip=STRIP,
        whole=2 * STRIP + 64 + 16,
        triple=host().triple,
        places="\n".join([*before, *behind]),
        stores="\n".join(stores),
        tests="\n".join(tests),
        last=f"%t{len(places)}",
    )


_TEMPLATE = """
target triple = "{triple}"
@blocks = internal global ptr null
@broken = internal global i64 0
declare ptr @malloc(i64)
declare void @free(ptr)
declare ptr @memset(ptr, i32, i64)
declare ptr @memcpy(ptr, ptr, i64)

define internal void @link_block(ptr %block) {{
  %next = load ptr, ptr @blocks
  %at = getelementptr i8, ptr %block, i64 8
  store ptr null, ptr %at
  %behind = getelementptr i8, ptr %block, i64 16
  store ptr %next, ptr %behind
  store ptr %block, ptr @blocks
  %none = icmp eq ptr %next, null
  br i1 %none, label %done, label %some
some:
  %back = getelementptr i8, ptr %next, i64 8
  store ptr %block, ptr %back
  br label %done
done:
  ret void
}}

define internal void @unlink_block(ptr %block) {{
  %at = getelementptr i8, ptr %block, i64 8
  %before = load ptr, ptr %at
  %behind = getelementptr i8, ptr %block, i64 16
  %next = load ptr, ptr %behind
  %first = icmp eq ptr %before, null
  %forth = getelementptr i8, ptr %before, i64 16
  %from = select i1 %first, ptr @blocks, ptr %forth
  store ptr %next, ptr %from
  %none = icmp eq ptr %next, null
  br i1 %none, label %done, label %some
some:
  %back = getelementptr i8, ptr %next, i64 8
  store ptr %before, ptr %back
  br label %done
done:
  ret void
}}

define internal i64 @is_broken(ptr %block) {{
  %size = load i64, ptr %block
  %data = getelementptr i8, ptr %block, i64 {strip}
  %end = getelementptr i8, ptr %data, i64 %size
{places}
{tests}
{stores}
  %result = zext i1 {last} to i64
  ret i64 %result
}}

define ptr @guard_malloc(ptr %context, i64 %size) {{
  %whole = add i64 %size, {whole}
  %raw = call ptr @malloc(i64 %whole)
  %none = icmp eq ptr %raw, null
  br i1 %none, label %fail, label %made
made:
  %number = ptrtoint ptr %raw to i64
  %over = sub i64 0, %number
  %skip = and i64 %over, 63
  %line = getelementptr i8, ptr %raw, i64 %skip
  %limit = ptrtoint ptr %context to i64
  %small = icmp ult i64 %size, %limit
  %offset = select i1 %small, i64 16, i64 0
  %block = getelementptr i8, ptr %line, i64 %offset
  %kept = getelementptr i8, ptr %block, i64 24
  store ptr %raw, ptr %kept
  store i64 %size, ptr %block
  %data = getelementptr i8, ptr %block, i64 {strip}
  %end = getelementptr i8, ptr %data, i64 %size
{places}
{stores}
  call void @link_block(ptr %block)
  ret ptr %data
fail:
  ret ptr null
}}

define ptr @guard_calloc(ptr %context, i64 %count, i64 %each) {{
  %size = mul i64 %count, %each
  %data = call ptr @guard_malloc(ptr %context, i64 %size)
  %none = icmp eq ptr %data, null
  br i1 %none, label %done, label %made
made:
  call ptr @memset(ptr %data, i32 0, i64 %size)
  br label %done
done:
  ret ptr %data
}}

define ptr @guard_realloc(ptr %context, ptr %old, i64 %size) {{
  %data = call ptr @guard_malloc(ptr %context, i64 %size)
  %first = icmp eq ptr %old, null
  %none = icmp eq ptr %data, null
  %nothing = or i1 %first, %none
  br i1 %nothing, label %done, label %copy
copy:
  %block = getelementptr i8, ptr %old, i64 -{strip}
  %before = load i64, ptr %block
  %less = icmp ult i64 %before, %size
  %count = select i1 %less, i64 %before, i64 %size
  call ptr @memcpy(ptr %data, ptr %old, i64 %count)
  call void @guard_free(ptr %context, ptr %old, i64 %before)
  br label %done
done:
  ret ptr %data
}}

define void @guard_free(ptr %context, ptr %data, i64 %size) {{
  %none = icmp eq ptr %data, null
  br i1 %none, label %done, label %some
some:
  %block = getelementptr i8, ptr %data, i64 -{strip}
  %found = call i64 @is_broken(ptr %block)
  %before = load i64, ptr @broken
  %now = add i64 %before, %found
  store i64 %now, ptr @broken
  call void @unlink_block(ptr %block)
  %kept = getelementptr i8, ptr %block, i64 24
  %raw = load ptr, ptr %kept
  call void @free(ptr %raw)
  br label %done
done:
  ret void
}}

define i64 @guard_broken() {{
entry:
  %freed = load i64, ptr @broken
  store i64 0, ptr @broken
  %first = load ptr, ptr @blocks
  br label %test
test:
  %block = phi ptr [ %first, %entry ], [ %next, %look ]
  %count = phi i64 [ %freed, %entry ], [ %more, %look ]
  %none = icmp eq ptr %block, null
  br i1 %none, label %done, label %look
look:
  %found = call i64 @is_broken(ptr %block)
  %more = add i64 %count, %found
  %behind = getelementptr i8, ptr %block, i64 16
  %next = load ptr, ptr %behind
  br label %test
done:
  ret i64 %count
}}
"""
