"""What languages spell differently: macros and types that stand before the kernels of a program."""

from __future__ import annotations

from dataclasses import dataclass

from .function import VECTOR_BYTES

_NUMBERS = """
#define F32(bits) as_float((u32)(bits))
#define F64(bits) as_double((u64)(bits))
#define BITS32(x) as_uint(x)
#define BITS64(x) as_ulong(x)
"""

_OPENCL = """
#pragma OPENCL FP_CONTRACT OFF
#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double f64;
#endif
typedef float f32;
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef char i8;
typedef short i16;
typedef int i32;
typedef long i64;
#define FUNCTION static inline
#define GLOBAL __global
#define LOCAL __local
#define CONSTANT __constant
#define GROUP(axis) ((i64)get_group_id(axis))
#define ITEM ((i64)get_local_id(0))
#define THREAD ((i64)get_global_id(0))
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)
#define UPPER(x, y) mul_hi((u64)(x), (u64)(y))
"""

# Compilers of processors know these as single instructions, and loops of them as vectors.
_OPENCL_SERIAL = """
#define FMA32 __builtin_fmaf
#define FMA64 __builtin_fma
#define SQRT32 __builtin_sqrtf
#define SQRT64 __builtin_sqrt
#define ARRIVED(word) (__atomic_fetch_add(word, 1, __ATOMIC_ACQ_REL) + 1)
#define PRAGMA(words) _Pragma(#words)
#define LANES(count) PRAGMA(clang loop vectorize_width(count))
#define APART _Pragma("clang loop vectorize(assume_safety) interleave_count(4)")
#define APART_SHORT _Pragma("clang loop vectorize(assume_safety) interleave_count(1)")
#define REDUCED _Pragma("clang loop vectorize(enable) interleave_count(4)")
#define REDUCED_SHORT _Pragma("clang loop vectorize(enable) interleave_count(1)")
#define CONTRACTED _Pragma("OPENCL FP_CONTRACT ON")
#define REASSOCIATED _Pragma("clang fp reassociate(on)")
"""

_OPENCL_GROUPS = """
#define FMA32 fma
#define FMA64 fma
#define SQRT32 sqrt
#define SQRT64 sqrt
"""

_CUDA = """
typedef float f32;
typedef double f64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
#define KERNEL extern "C" __global__
#define FUNCTION static __device__ __forceinline__
#define GLOBAL
#define LOCAL __shared__
#define CONSTANT static __device__ const
#define GROUP(axis) ((i64)(axis == 0 ? blockIdx.x : axis == 1 ? blockIdx.y : blockIdx.z))
#define ITEM ((i64)threadIdx.x)
#define THREAD ((i64)blockIdx.x * blockDim.x + threadIdx.x)
#define BARRIER __syncthreads()
#define UPPER(x, y) __umul64hi((u64)(x), (u64)(y))
#define as_float(x) __uint_as_float(x)
#define as_uint(x) __float_as_uint(x)
#define as_double(x) __longlong_as_double((i64)(x))
#define as_ulong(x) ((u64)__double_as_longlong(x))
#define FMA32 __fmaf_rn
#define FMA64 __fma_rn
#define SQRT32 __fsqrt_rn
#define SQRT64 __dsqrt_rn
"""


@dataclass(frozen=True, slots=True)
class Dialect:
    """A language: its name, and what stands before kernels.

    serial   whether a work item runs on a thread of a processor and takes a long stretch of work;
             else work items run side by side, in groups that share memory
    group    how many work items such a group has
    units    how many groups a machine runs at a time
    vector_bytes   of the vectors of a processor, if more than compilers take by themselves
    """

    name: str
    prelude: str
    serial: bool
    group: int = 128
    units: int = 1
    vector_bytes: int = VECTOR_BYTES


def opencl(*, serial: bool, units: int = 1, vector_bytes: int = VECTOR_BYTES) -> Dialect:
    """Return OpenCL C 1.2, for processors or for devices that run groups of threads."""
    ways = _OPENCL_SERIAL if serial else _OPENCL_GROUPS
    wide = f"__attribute__((min_vector_width({8 * vector_bytes}))) "
    kernel = f"#define KERNEL {wide if vector_bytes > VECTOR_BYTES else ''}__kernel"
    prelude = _OPENCL + kernel + ways + _NUMBERS
    return Dialect("opencl", prelude, serial, units=units, vector_bytes=vector_bytes)


def cuda(units: int = 64) -> Dialect:
    """Return CUDA C++."""
    return Dialect("cuda", _CUDA + _NUMBERS, False, units=units)
