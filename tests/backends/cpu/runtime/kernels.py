"""Kernels written by hand as IR, and how to run them: what the tests of the runtime share."""

import ctypes
from collections.abc import Sequence

import numpy as np

from weft.backends.cpu.codegen.target import host
from weft.backends.cpu.runtime.linking import Library, link
from weft.backends.cpu.runtime.objects import object_code
from weft.backends.cpu.runtime.threads import Pool, pool_symbols

AXPY = """
define void @axpy(ptr noalias %x, ptr noalias %y, i64 %n, float %a) nounwind {
  %first = insertelement <8 x float> poison, float %a, i64 0
  %as = shufflevector <8 x float> %first, <8 x float> poison, <8 x i32> zeroinitializer
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %px = getelementptr float, ptr %x, i64 %i
  %py = getelementptr float, ptr %y, i64 %i
  %vx = load <8 x float>, ptr %px, align 4
  %vy = load <8 x float>, ptr %py, align 4
  %sum = call <8 x float> @llvm.fma.v8f32(<8 x float> %as, <8 x float> %vx, <8 x float> %vy)
  store <8 x float> %sum, ptr %py, align 4
  %next = add i64 %i, 8
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)
"""

# context: x, y, partial sums; a chunk is 1024 elements, so the sum is the same on any threads.
DOT = """
declare void @weft_parallel_for(ptr, ptr, i64)

define void @dot_chunk(ptr %context, i64 %chunk, i64 %thread) nounwind {
  %x = load ptr, ptr %context
  %at.y = getelementptr ptr, ptr %context, i64 1
  %y = load ptr, ptr %at.y
  %at.sums = getelementptr ptr, ptr %context, i64 2
  %sums = load ptr, ptr %at.sums
  %start = mul i64 %chunk, 1024
  %stop = add i64 %start, 1024
  br label %loop
loop:
  %i = phi i64 [ %start, %0 ], [ %next, %loop ]
  %sum = phi double [ 0.0, %0 ], [ %sum.next, %loop ]
  %px = getelementptr double, ptr %x, i64 %i
  %py = getelementptr double, ptr %y, i64 %i
  %vx = load double, ptr %px
  %vy = load double, ptr %py
  %product = fmul double %vx, %vy
  %sum.next = fadd double %sum, %product
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %stop
  br i1 %more, label %loop, label %done
done:
  %at.sum = getelementptr double, ptr %sums, i64 %chunk
  store double %sum.next, ptr %at.sum
  ret void
}

define void @dot(ptr %table, ptr %chunks) nounwind {
  %n = ptrtoint ptr %chunks to i64
  call void @weft_parallel_for(ptr @dot_chunk, ptr %table, i64 %n)
  ret void
}
"""

# context: a counter for each chunk, 8 bytes; then come the largest thread number seen, and the jobs
# of @nested, which starts a job inside each chunk.
MARKS = """
declare void @weft_parallel_for(ptr, ptr, i64)

define void @mark(ptr %counts, i64 %chunk, i64 %thread) nounwind {
  %at = getelementptr i64, ptr %counts, i64 %chunk
  atomicrmw add ptr %at, i64 1 monotonic
  ret void
}

define void @mark_thread(ptr %counts, i64 %chunk, i64 %thread) nounwind {
  %at = getelementptr i64, ptr %counts, i64 %thread
  atomicrmw add ptr %at, i64 1 monotonic
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %next = add i64 %i, 1
  fence seq_cst
  %more = icmp slt i64 %next, 200
  br i1 %more, label %loop, label %done
done:
  ret void
}

; Counts how often a thread number is in use twice at the same time, at counts[64 + thread].
define void @collide(ptr %counts, i64 %chunk, i64 %thread) nounwind {
  %at = getelementptr i64, ptr %counts, i64 %thread
  %before = atomicrmw xchg ptr %at, i64 1 seq_cst
  %place = add i64 %thread, 64
  %at.clash = getelementptr i64, ptr %counts, i64 %place
  atomicrmw add ptr %at.clash, i64 %before seq_cst
  store atomic i64 0, ptr %at seq_cst, align 8
  ret void
}

define void @nested(ptr %counts, i64 %chunk, i64 %thread) nounwind {
  call void @weft_parallel_for(ptr @mark, ptr %counts, i64 16)
  ret void
}

define void @many(ptr %counts, ptr %jobs) nounwind {
  %n = ptrtoint ptr %jobs to i64
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  call void @weft_parallel_for(ptr @mark, ptr %counts, i64 16)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""
MARK_NAMES = ("mark", "mark_thread", "collide", "nested", "many")

JOBS = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


def load(text: str, *names: str, pool: Pool | None = None) -> Library:
    """Compile and link a module against the process's pool, or another."""
    names_here = pool_symbols() if pool is None else pool.symbols()
    return link([object_code(text, host())], names, names_here)


def addresses(arrays: Sequence[np.ndarray]) -> np.ndarray:
    return np.array([array.ctypes.data for array in arrays], np.uint64)
