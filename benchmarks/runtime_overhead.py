"""Measure what the runtime itself costs: making code, calling it, and spreading it over threads.

Each figure is the minimum of many repetitions, on whatever machine this runs on; there is no peer.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import weft as wf
from weft import get_num_threads, set_num_threads
from weft.backends.cpu.codegen.target import host
from weft.backends.cpu.runtime.arena import aligned_empty
from weft.backends.cpu.runtime.calls import ArraySpec, ctypes_entry, make_entry
from weft.backends.cpu.runtime.linking import compile_module, link
from weft.backends.cpu.runtime.objects import ObjectCache
from weft.backends.cpu.runtime.threads import pool, pool_symbols
from weft.backends.store import ObjectStore

NANO, MICRO, MILLI = 1e9, 1e6, 1e3

# `work` reads its turns from the context. `meet` returns when two threads are inside, so its job
# takes as long as reaching another thread and coming back. `repeat` runs a job many times without
# leaving native code, as the kernels of a training step do.
CODE = """
declare void @weft_parallel_for(ptr, ptr, i64)

define void @run(ptr %table, ptr %context) nounwind {
  ret void
}

define void @plain(ptr %a, ptr %b, ptr %c, ptr %d, ptr %e, ptr %f, ptr %g, ptr %h, ptr %i, ptr %j)
    nounwind {
  ret void
}

define void @work(ptr %turns, i64 %chunk, i64 %thread) nounwind {
  %n = load i64, ptr %turns
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %x = phi double [ 1.0, %0 ], [ %y, %loop ]
  %y = call double @llvm.fma.f64(double %x, double 0.5, double 1.0)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  %at = getelementptr double, ptr %turns, i64 1
  %odd = fcmp ogt double %y, 5.0
  br i1 %odd, label %keep, label %leave
keep:
  store double %y, ptr %at
  br label %leave
leave:
  ret void
}

define void @meet(ptr %counter, i64 %chunk, i64 %thread) nounwind {
  %before = atomicrmw add ptr %counter, i64 1 seq_cst
  %pair = and i64 %before, -2
  %both = add i64 %pair, 2
  br label %wait
wait:
  %now = load atomic i64, ptr %counter acquire, align 8
  %alone = icmp slt i64 %now, %both
  br i1 %alone, label %wait, label %done
done:
  ret void
}

define void @repeat(ptr %function, ptr %context, i64 %chunks, i64 %jobs) nounwind {
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  call void @weft_parallel_for(ptr %function, ptr %context, i64 %chunks)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %jobs
  br i1 %more, label %loop, label %done
done:
  ret void
}

declare double @llvm.fma.f64(double, double, double)
"""

Row = tuple[str, float, str]


def best(function: Callable[[], object], number: int, repeat: int = 30) -> float:
    """Return the least seconds a call took, on average over `number` calls in a row."""
    return min(_timed(function, number) for _ in range(repeat))


def _timed(function: Callable[[], object], number: int) -> float:
    start = time.perf_counter()
    for _ in range(number):
        function()
    return (time.perf_counter() - start) / number


def code_rows() -> Iterator[Row]:
    """Compiling, finding and linking one small module, and a hundred."""
    target = host()
    function = "define void @f{0}(ptr %x) nounwind {{\n  store i64 {0}, ptr %x\n  ret void\n}}\n"
    text = function.format(0)
    yield "compile a tiny module", best(lambda: compile_module(text, target), 1) * MICRO, "us"
    with tempfile.TemporaryDirectory() as folder:
        store = ObjectStore(Path(folder) / "cache")
        cache = ObjectCache(store)
        code = cache.get(text, target)
        yield "the same from memory", best(lambda: cache.get(text, target), 1000) * MICRO, "us"
        fresh = best(lambda: ObjectCache(store).get(text, target), 20)
        yield "the same from disk", fresh * MICRO, "us"
        yield "write it to disk", best(lambda: store.put(bytes(32), code), 5) * MICRO, "us"
    yield "link one object", best(lambda: link([code], ["f0"]), 1) * MILLI, "ms"
    objects = [compile_module(function.format(k), target) for k in range(100)]
    names = [f"f{k}" for k in range(100)]
    yield "link 100 objects", best(lambda: link(objects, names), 1, 10) * MILLI, "ms"


def call_rows() -> Iterator[Row]:
    """Ten arrays: checked natively, by ctypes, and not checked at all."""
    library = link([compile_module(CODE, host())], ["run", "plain"], pool_symbols())
    address = library.address("run")
    arrays = tuple(np.zeros((32, 8), np.float32) for _ in range(10))
    specs = (ArraySpec(np.dtype(np.float32), (32, 8)),) * 10
    empty = best(lambda: None, 10_000)
    for title, options in (("", {"releases_gil": False}), (", lock released", {})):
        entry = make_entry(address, specs, **options)
        net = best(lambda entry=entry: entry(arrays), 10_000) - empty
        yield f"call, 10 checked arrays{title}", net * NANO, "ns"
    entry = ctypes_entry(address, specs, 0, True, False, library)
    yield "the same by ctypes", (best(lambda: entry(arrays), 100) - empty) * NANO, "ns"
    plain = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 10)(library.address("plain"))
    pointers = [array.ctypes.data for array in arrays]
    net = best(lambda: plain(*pointers), 10_000) - empty
    yield "ctypes, 10 known addresses", net * NANO, "ns"


def thread_rows() -> Iterator[Row]:
    """Jobs of empty chunks, of chunks of some us, and after the workers slept."""
    names = ["repeat", "work", "meet"]
    library = link([compile_module(CODE, host())], names, pool_symbols())
    signature = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
    repeat = ctypes.CFUNCTYPE(None, *signature)(library.address("repeat"))
    work, meet = library.address("work"), library.address("meet")
    turns = np.zeros(16, np.int64)

    def job(function: int, chunks: int, jobs: int) -> float:
        # Short slots, many of them: on a busy machine some pass undisturbed.
        context = turns.ctypes.data
        return best(lambda: repeat(function, context, chunks, jobs), 1, 500) / jobs

    for count in dict.fromkeys((1, get_num_threads())):
        set_num_threads(count)
        pool().start_workers()
        for chunks in (2, 8):
            turns[0] = 1
            yield f"{count} threads: {chunks} empty chunks", job(work, chunks, 1000) * NANO, "ns"
        turns[0] = 5000
        yield f"{count} threads: 8 chunks of some us", job(work, 8, 5) * MICRO, "us"
    turns[0] = 1
    slept = _from_sleep(lambda: repeat(work, turns.ctypes.data, 2, 1))
    yield "empty job, workers asleep", slept * MICRO, "us"
    if count > 1:
        turns[0] = 0
        yield "two threads meet, spinning", job(meet, 2, 500) * NANO, "ns"
        slept = _from_sleep(lambda: repeat(meet, turns.ctypes.data, 2, 1))
        yield "two threads meet, one asleep", slept * MICRO, "us"


def _from_sleep(job: Callable[[], object]) -> float:
    def slept() -> float:
        time.sleep(0.002)
        return _timed(job, 1)

    return min(slept() for _ in range(300))


def arena_rows() -> Iterator[Row]:
    """Sixty-four megabytes: made and touched, against written again."""
    size = 64 * 2**20
    yield "arena of 64 MB, fresh", best(lambda: aligned_empty(size), 1, 5) * MILLI, "ms"
    block = aligned_empty(size)
    yield "the same memory, written again", best(lambda: block.fill(0), 1, 5) * MILLI, "ms"


def program_rows() -> Iterator[Row]:
    """Yield the same through the public faces: the sum of ten vectors of four."""
    tensors = [wf.full((4,), float(i)) for i in range(10)]
    total = wf.compile(lambda *xs: sum(xs[1:], xs[0]), *tensors)
    yield "compiled function of 10 tensors", best(lambda: total(*tensors), 1000) * MICRO, "us"
    with wf.Graph() as graph:
        feeds = [wf.placeholder((4,), "float32") for _ in tensors]
        out = sum(feeds[1:], feeds[0])
    session, given = wf.Session(graph), dict(zip(feeds, tensors, strict=True))
    yield "Session.run with 10 feeds", best(lambda: session.run(out, given), 1000) * MICRO, "us"


GROUPS = {
    "code": code_rows,
    "calls": call_rows,
    "programs": program_rows,
    "threads": thread_rows,
    "arena": arena_rows,
}


def main() -> None:
    """Print all figures, or those of the groups named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []], help="default: all")
    chosen = parser.parse_args().groups or list(GROUPS)
    if hasattr(os, "getloadavg"):
        print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} processors")
    for group in chosen:
        for title, value, unit in GROUPS[group]():
            print(f"{title:<36} {value:10.2f} {unit}")


if __name__ == "__main__":
    main()
