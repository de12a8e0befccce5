// The words of CUDA C++ and of OpenCL C, for a C++ compiler of the host.
//
// One work item runs at a time. Those of a group that wait for each other have a stack each, and go
// on in turns: all of them must come to the same line, or must all be done. What they share holds
// nothing that an earlier group has left there.

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ucontext.h>

struct weft_place { unsigned x, y, z; };
static weft_place blockIdx, threadIdx, blockDim;
static void weft_meet(int line);
#define WEFT_SHARED static __attribute__((section("weft_shared")))
extern char __start_weft_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_weft_shared[] __attribute__((weak, visibility("hidden")));

template <class To, class From> static inline To weft_bits(From x) {
  static_assert(sizeof(To) == sizeof(From), "as many bits");
  To y;
  memcpy(&y, &x, sizeof y);
  return y;
}

// -- CUDA C++ -------------------------------------------------------------------------------------

#define __global__
#define __device__
#define __shared__ WEFT_SHARED
#define __forceinline__ inline
#define __syncthreads() weft_meet(__LINE__)
static inline float __uint_as_float(unsigned x) { return weft_bits<float>(x); }
static inline unsigned __float_as_uint(float x) { return weft_bits<unsigned>(x); }
static inline double __longlong_as_double(long long x) { return weft_bits<double>(x); }
static inline long long __double_as_longlong(double x) { return weft_bits<long long>(x); }
static inline float __fmaf_rn(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static inline double __fma_rn(double a, double b, double c) { return __builtin_fma(a, b, c); }
static inline float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
static inline double __dsqrt_rn(double x) { return __builtin_sqrt(x); }
static inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)(((unsigned __int128)a * b) >> 64);
}

// -- OpenCL C -------------------------------------------------------------------------------------

#define __kernel extern "C"
#define __global
#define __local WEFT_SHARED
#define __constant static const
#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
#define barrier(fences) weft_meet(__LINE__)
#define cl_khr_fp64 1
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
static inline float as_float(uint x) { return weft_bits<float>(x); }
static inline uint as_uint(float x) { return weft_bits<uint>(x); }
static inline double as_double(ulong x) { return weft_bits<double>(x); }
static inline ulong as_ulong(double x) { return weft_bits<ulong>(x); }
static inline ulong mul_hi(ulong a, ulong b) { return (ulong)__umul64hi(a, b); }
static inline ulong get_group_id(int axis) {
  return axis == 0 ? blockIdx.x : axis == 1 ? blockIdx.y : blockIdx.z;
}
static inline ulong get_local_id(int) { return threadIdx.x; }
static inline ulong get_global_id(int) { return (ulong)blockIdx.x * blockDim.x + threadIdx.x; }

template <class T, int N> struct weft_vector {
  T lanes[N];
  weft_vector() = default;
  weft_vector(T x) { for (T &lane : lanes) lane = x; }
  friend weft_vector operator*(T a, const weft_vector &b) {
    weft_vector c;
    for (int i = 0; i < N; ++i) c.lanes[i] = a * b.lanes[i];
    return c;
  }
  friend weft_vector operator+(const weft_vector &a, const weft_vector &b) {
    weft_vector c;
    for (int i = 0; i < N; ++i) c.lanes[i] = a.lanes[i] + b.lanes[i];
    return c;
  }
};
typedef weft_vector<float, 8> float8;
typedef weft_vector<float, 16> float16;
typedef weft_vector<double, 4> double4;
typedef weft_vector<double, 8> double8;

// -- launches -------------------------------------------------------------------------------------

typedef void (*weft_function)(void **);
enum { WEFT_ITEMS = 1024, WEFT_STACK = 1 << 16 };
static ucontext_t weft_host, weft_items[WEFT_ITEMS];
static int weft_met[WEFT_ITEMS];  // the line at which an item waits; 0 if it is done
static unsigned weft_now;
static weft_function weft_called;
static void **weft_given;

static void weft_meet(int line) {
  weft_met[weft_now] = line;
  swapcontext(&weft_items[weft_now], &weft_host);
}

static void weft_item() {
  weft_called(weft_given);
  weft_met[weft_now] = 0;
}

static void weft_begin(unsigned items) {
  static char *stacks = (char *)malloc((size_t)WEFT_ITEMS * WEFT_STACK);
  for (unsigned i = 0; i < items; ++i) {
    getcontext(&weft_items[i]);
    weft_items[i].uc_stack.ss_sp = stacks + (size_t)i * WEFT_STACK;
    weft_items[i].uc_stack.ss_size = WEFT_STACK;
    weft_items[i].uc_link = &weft_host;
    makecontext(&weft_items[i], weft_item, 0);
  }
}

// Run a group; return 0, or the line at which some items wait for others that do not come.
static int weft_together(unsigned items, int backwards) {
  weft_begin(items);
  for (;;) {
    for (unsigned n = 0; n < items; ++n) {
      weft_now = threadIdx.x = backwards ? items - 1 - n : n;
      swapcontext(&weft_host, &weft_items[weft_now]);
    }
    for (unsigned i = 1; i < items; ++i)
      if (weft_met[i] != weft_met[0]) return weft_met[i] ? weft_met[i] : weft_met[0];
    if (!weft_met[0]) return 0;
  }
}

static int weft_apart(unsigned items, int backwards) {
  for (unsigned n = 0; n < items; ++n) {
    threadIdx.x = backwards ? items - 1 - n : n;
    weft_called(weft_given);
  }
  return 0;
}

// Run a function for all groups, from the last to the first one if `backwards`.
extern "C" int weft_launch(weft_function function, void **given, const unsigned *groups,
                           unsigned items, int waits, int backwards) {
  weft_called = function;
  weft_given = given;
  blockDim.x = items;
  blockDim.y = blockDim.z = 1;
  const unsigned long total = (unsigned long)groups[0] * groups[1] * groups[2];
  for (unsigned long n = 0; n < total; ++n) {
    const unsigned long g = backwards ? total - 1 - n : n;
    blockIdx.x = (unsigned)(g % groups[0]);
    blockIdx.y = (unsigned)(g / groups[0] % groups[1]);
    blockIdx.z = (unsigned)(g / groups[0] / groups[1]);
    memset(__start_weft_shared, 0xA5, __stop_weft_shared - __start_weft_shared);
    const int line = (waits ? weft_together : weft_apart)(items, backwards);
    if (line) return line;
  }
  return 0;
}
