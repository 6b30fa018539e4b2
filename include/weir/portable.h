/*
 * One kernel text for three compilers: C++20 for the host, OpenCL C 1.2 and CUDA C++ (NVRTC).
 *
 *   #include <weir/portable.h>
 *
 *   WEIR_KERNEL(saxpy, 256, 1, 1, WEIR_GLOBAL float* WEIR_RESTRICT y,
 *               WEIR_GLOBAL const float* WEIR_RESTRICT x, float a, weir_i32 n) {
 *     WEIR_ITEMS {
 *       weir_i64 i = WEIR_ITEM_X;
 *       if (i < n) y[i] += a * x[i];
 *     }
 *   }
 *
 * A kernel runs in groups of X * Y * Z items. Its body is a sequence of phases, WEIR_ITEMS { ... }:
 * the code of a phase runs for each item, and all items of the group complete it before one begins
 * the next. Code outside of phases runs for the whole group: loops and branches around phases, and
 * variables that have the same value for all items. On the host a phase is a loop over the items,
 * which the compiler vectorises; on other devices it is code between two barriers. There, the
 * device's compiler gets the source after this header, without its #include lines for weir.
 *
 * weir_kernel_register_portable() makes a kernel of it. On the host WEIR_KERNEL() also defines a
 * constant of type weir_portable_kernel under the kernel's name, for that call.
 *
 * Rules:
 * - C that all three languages share: no templates, classes, references, recursion, function
 *   pointers or variable-length arrays; only what this header defines and mathematical functions.
 *   Do not use names that one of the languages reserves: half, local, global, kernel, uint.
 * - Parameters are pointers, integers of 32 or 64 bits, float or double. Pointers are the operands
 *   of the action in their order, the others its scalars in theirs. A pointer is to the first byte
 *   of an operand: a tile also needs its leading dimension, as a scalar.
 * - Within a phase items are independent: no item reads or writes what another item writes, except
 *   by atomic operations. Groups are always independent.
 * - Text outside of phases may read what an earlier phase wrote, but the phase after it must not
 *   change that; it writes neither shared nor global memory.
 * - All items of a group take the same branches around phases. Phases do not nest.
 * - `continue` ends a phase for its item. No break, return or goto leaves a phase.
 * - A variable of an item that lives for more than one phase is a WEIR_PRIVATE().
 * - Helpers are WEIR_FUNCTION and have no phases.
 *
 * With WEIR_PORTABLE_BACKWARDS=1 in the environment, kernels that are registered run the items of
 * each phase backwards on the host: a result that changes violates these rules.
 */
#ifndef WEIR_PORTABLE_H
#define WEIR_PORTABLE_H

/*
 * Reference:
 *
 * WEIR_KERNEL(name, X, Y, Z, parameters...) { ... }   a kernel for groups of X * Y * Z items
 * WEIR_GLOBAL      before the type that a pointer to an operand points to
 * WEIR_LOCAL       before the type that a pointer to shared memory points to, in a helper
 * WEIR_RESTRICT    after the * of a pointer through which alone its memory is used
 * WEIR_FUNCTION    before a helper: WEIR_FUNCTION float square(float x) { return x * x; }
 * WEIR_CONSTANT    before a table outside of functions: WEIR_CONSTANT float kTaps[2] = {1, 2};
 *
 * WEIR_ITEMS { ... }               a phase
 * WEIR_ITEMS_LAST { ... }          the last phase of a kernel: nothing waits for its end
 * WEIR_ITEMS_BELOW(n) { ... }      a phase of the items with WEIR_ITEM_X < n, an integer that all
 * WEIR_ITEMS_LAST_BELOW(n) { ... } items of the group agree on: faster on the host than an if
 *
 * WEIR_SHARED(T, v, n);            T v[n] that the items of a group share; at the top of a kernel
 * WEIR_LARGE(T, v, n);             the same, once in a kernel, for more than the 48 KiB that CUDA
 *                                  has for all others: up to 227 KiB per group on an H100
 * WEIR_LARGE_BYTES(name, bytes);   before such a kernel of that name: the size of its WEIR_LARGE()
 * WEIR_PRIVATE(T, v);              a T of each item; in phases it is WEIR_V(v)
 * WEIR_PRIVATE_ARRAY(T, v, n);     n of them: WEIR_V(v)[k]
 *
 * WEIR_LOCAL_X, _Y, _Z    index of the item in its group, in phases only    (all of them int)
 * WEIR_GROUP_X, _Y, _Z    index of the group
 * WEIR_GROUPS_X, _Y, _Z   number of groups
 * WEIR_SIZE_X, _Y, _Z     number of items of a group
 * WEIR_ITEM_X, _Y, _Z     index of the item among those of all groups, a weir_i64; in phases only
 *
 * weir_i32, weir_u32, weir_i64, weir_u64, and for memory weir_i8, weir_u8, weir_i16, weir_u16
 * WEIR_MIN(a, b), WEIR_MAX(a, b)   evaluate the smaller or the larger twice
 * acos asin atan atan2 cbrt ceil cos cosh exp exp2 expm1 fabs floor fma fmax fmin fmod hypot log
 * log10 log1p log2 pow round sin sinh sqrt tan tanh trunc, of float and double
 *
 * weir_atomic_add(p, v)                    on 32 and 64-bit integers, float and double
 * weir_atomic_min(p, v), weir_atomic_max(p, v), weir_atomic_exchange(p, v),
 * weir_atomic_compare(p, expected, v)      on 32-bit integers
 *     return the previous value, with relaxed ordering; p points to shared or global memory.
 *
 * weir_float4, weir_double4    with members x, y, z, w and the operators + - * on two of them, and
 *                              * on one and its element type
 * weir_make_float4(x, y, z, w), weir_make_double4(x, y, z, w)
 * weir_load4(p), weir_store4(v, p)    p points to four elements, aligned to 16 bytes
 */

#if defined(__OPENCL_VERSION__) /* ---- OpenCL C ---- */

#if defined(cl_khr_fp64)
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif
#if defined(cl_khr_int64_base_atomics)
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
#endif

typedef char weir_i8;
typedef uchar weir_u8;
typedef short weir_i16;
typedef ushort weir_u16;
typedef int weir_i32;
typedef uint weir_u32;
typedef long weir_i64;
typedef ulong weir_u64;

#define WEIR_KERNEL(name, X, Y, Z, ...) \
  kernel __attribute__((reqd_work_group_size(X, Y, Z))) void name(__VA_ARGS__)
#define WEIR_GLOBAL global
#define WEIR_LOCAL local
#define WEIR_RESTRICT restrict
#define WEIR_FUNCTION static inline
#define WEIR_CONSTANT constant
#if defined(WEIR_LOCAL_BYTES) && defined(__clang_major__) && __clang_major__ >= 15
/* PoCL 6 ends the process when an array is larger than the memory of a group. The compiler's
 * message has both sizes. */
#define WEIR_SHARED(T, v, n)                                               \
  _Static_assert(sizeof(T) * (n) <= WEIR_LOCAL_BYTES, "shared array " #v   \
                                                      " is too large for " \
                                                      "the device");       \
  local T v[n]
#else
#define WEIR_SHARED(T, v, n) local T v[n]
#endif
#define WEIR_BARRIER_() barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE)

#define WEIR_LOCAL_X ((int)get_local_id(0))
#define WEIR_LOCAL_Y ((int)get_local_id(1))
#define WEIR_LOCAL_Z ((int)get_local_id(2))
#define WEIR_GROUP_X ((int)get_group_id(0))
#define WEIR_GROUP_Y ((int)get_group_id(1))
#define WEIR_GROUP_Z ((int)get_group_id(2))
#define WEIR_GROUPS_X ((int)get_num_groups(0))
#define WEIR_GROUPS_Y ((int)get_num_groups(1))
#define WEIR_GROUPS_Z ((int)get_num_groups(2))
#define WEIR_SIZE_X ((int)get_local_size(0))
#define WEIR_SIZE_Y ((int)get_local_size(1))
#define WEIR_SIZE_Z ((int)get_local_size(2))

#define WEIR_OVERLOAD_ static inline __attribute__((overloadable))
#define WEIR_ATOMICS_(space, T)                                                                 \
  WEIR_OVERLOAD_ T weir_atomic_add(volatile space T* p, T v) { return atomic_add(p, v); }       \
  WEIR_OVERLOAD_ T weir_atomic_min(volatile space T* p, T v) { return atomic_min(p, v); }       \
  WEIR_OVERLOAD_ T weir_atomic_max(volatile space T* p, T v) { return atomic_max(p, v); }       \
  WEIR_OVERLOAD_ T weir_atomic_exchange(volatile space T* p, T v) { return atomic_xchg(p, v); } \
  WEIR_OVERLOAD_ T weir_atomic_compare(volatile space T* p, T old, T v) {                       \
    return atomic_cmpxchg(p, old, v);                                                           \
  }
#define WEIR_ATOMIC_FLOAT_(space, T, Bits, bits, value, exchange)                      \
  WEIR_OVERLOAD_ T weir_atomic_add(volatile space T* p, T v) {                         \
    Bits seen = bits(*p), expected;                                                    \
    do {                                                                               \
      expected = seen;                                                                 \
      seen = exchange((volatile space Bits*)p, expected, bits(value(expected) + (v))); \
    } while (seen != expected);                                                        \
    return value(expected);                                                            \
  }
WEIR_ATOMICS_(global, int)
WEIR_ATOMICS_(local, int)
WEIR_ATOMICS_(global, uint)
WEIR_ATOMICS_(local, uint)
WEIR_ATOMIC_FLOAT_(global, float, uint, as_uint, as_float, atomic_cmpxchg)
WEIR_ATOMIC_FLOAT_(local, float, uint, as_uint, as_float, atomic_cmpxchg)
#if defined(cl_khr_int64_base_atomics)
#define WEIR_ATOMIC_64_(space, T) \
  WEIR_OVERLOAD_ T weir_atomic_add(volatile space T* p, T v) { return atom_add(p, v); }
WEIR_ATOMIC_64_(global, long)
WEIR_ATOMIC_64_(local, long)
WEIR_ATOMIC_64_(global, ulong)
WEIR_ATOMIC_64_(local, ulong)
#if defined(cl_khr_fp64)
WEIR_ATOMIC_FLOAT_(global, double, ulong, as_ulong, as_double, atom_cmpxchg)
WEIR_ATOMIC_FLOAT_(local, double, ulong, as_ulong, as_double, atom_cmpxchg)
#endif
#endif

typedef float4 weir_float4;
#define weir_make_float4(x, y, z, w) ((float4)(x, y, z, w))
#if defined(cl_khr_fp64)
typedef double4 weir_double4;
#define weir_make_double4(x, y, z, w) ((double4)(x, y, z, w))
#endif
#define weir_load4(p) vload4(0, (p))
#define weir_store4(v, p) vstore4((v), 0, (p))

#elif defined(__CUDACC__) || defined(__CUDACC_RTC__) /* ---- CUDA C++ ---- */

typedef signed char weir_i8;
typedef unsigned char weir_u8;
typedef short weir_i16;
typedef unsigned short weir_u16;
typedef int weir_i32;
typedef unsigned int weir_u32;
typedef long long weir_i64;
typedef unsigned long long weir_u64;

#define WEIR_KERNEL(name, X, Y, Z, ...) \
  extern "C" __global__ void __launch_bounds__((X) * (Y) * (Z)) name(__VA_ARGS__)
#define WEIR_GLOBAL
#define WEIR_LOCAL
#define WEIR_RESTRICT __restrict__
#define WEIR_FUNCTION __device__ __forceinline__
#define WEIR_CONSTANT static __constant__ const
#define WEIR_SHARED(T, v, n) __shared__ T v[n]
#define WEIR_LARGE(T, v, n)                              \
  extern __shared__ __align__(16) weir_u8 weir_large_[]; \
  T(&v)[n] = *(T(*)[n])weir_large_
template <unsigned n>
struct weir_units_ {
  weir_u8 each[n];
};
/* The driver tells how large the parameters of a kernel are: this one is never run. */
#define WEIR_LARGE_BYTES(name, bytes)                                                  \
  extern "C" __global__ void weir_large_of_##name(weir_units_<((bytes) + 63) / 64>) {} \
  static_assert((bytes) > 0, "the size of a WEIR_LARGE()")
#define WEIR_BARRIER_() __syncthreads()

#define WEIR_LOCAL_X ((int)threadIdx.x)
#define WEIR_LOCAL_Y ((int)threadIdx.y)
#define WEIR_LOCAL_Z ((int)threadIdx.z)
#define WEIR_GROUP_X ((int)blockIdx.x)
#define WEIR_GROUP_Y ((int)blockIdx.y)
#define WEIR_GROUP_Z ((int)blockIdx.z)
#define WEIR_GROUPS_X ((int)gridDim.x)
#define WEIR_GROUPS_Y ((int)gridDim.y)
#define WEIR_GROUPS_Z ((int)gridDim.z)
#define WEIR_SIZE_X ((int)blockDim.x)
#define WEIR_SIZE_Y ((int)blockDim.y)
#define WEIR_SIZE_Z ((int)blockDim.z)

#define WEIR_ATOMIC_ADD_(T, Word) \
  WEIR_FUNCTION T weir_atomic_add(T* p, T v) { return (T)atomicAdd((Word*)p, (Word)v); }
#define WEIR_ATOMICS_(T)                                                       \
  WEIR_ATOMIC_ADD_(T, T)                                                       \
  WEIR_FUNCTION T weir_atomic_min(T* p, T v) { return atomicMin(p, v); }       \
  WEIR_FUNCTION T weir_atomic_max(T* p, T v) { return atomicMax(p, v); }       \
  WEIR_FUNCTION T weir_atomic_exchange(T* p, T v) { return atomicExch(p, v); } \
  WEIR_FUNCTION T weir_atomic_compare(T* p, T old, T v) { return atomicCAS(p, old, v); }
WEIR_ATOMICS_(int)
WEIR_ATOMICS_(unsigned int)
WEIR_ATOMIC_ADD_(long, unsigned long long)
WEIR_ATOMIC_ADD_(unsigned long, unsigned long long)
WEIR_ATOMIC_ADD_(long long, unsigned long long)
WEIR_ATOMIC_ADD_(unsigned long long, unsigned long long)
WEIR_ATOMIC_ADD_(float, float)
WEIR_ATOMIC_ADD_(double, double)

#define WEIR_VECTOR_(V, T)                                               \
  struct __align__(16) V { T x, y, z, w; };                              \
  WEIR_FUNCTION V weir_make_##T##4(T x, T y, T z, T w) {                 \
    V v = {x, y, z, w};                                                  \
    return v;                                                            \
  }                                                                      \
  WEIR_FUNCTION V operator+(V a, V b) {                                  \
    return weir_make_##T##4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); \
  }                                                                      \
  WEIR_FUNCTION V operator-(V a, V b) {                                  \
    return weir_make_##T##4(a.x - b.x, a.y - b.y, a.z - b.z, a.w - b.w); \
  }                                                                      \
  WEIR_FUNCTION V operator*(V a, V b) {                                  \
    return weir_make_##T##4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w); \
  }                                                                      \
  WEIR_FUNCTION V operator*(V a, T b) {                                  \
    return weir_make_##T##4(a.x * b, a.y * b, a.z * b, a.w * b);         \
  }                                                                      \
  WEIR_FUNCTION V operator*(T a, V b) { return b * a; }                  \
  WEIR_FUNCTION V weir_load4(const T* p) { return *(const V*)p; }        \
  WEIR_FUNCTION void weir_store4(V v, T* p) { *(V*)p = v; }
WEIR_VECTOR_(weir_float4, float)
WEIR_VECTOR_(weir_double4, double)

#else /* ---- The host ---- */

#include <weir/kernel.h>
#ifdef __cplusplus /* kernels are C++ here, their registration is C as well */
#include <weir/portable_host.hpp>
#endif

#endif

#if defined(WEIR_BARRIER_) /* ---- Devices on which every item has a thread ---- */

#define WEIR_ITEMS for (int weir_once_ = 1; weir_once_; weir_once_ = 0, WEIR_BARRIER_())
#define WEIR_ITEMS_LAST for (int weir_once_ = 1; weir_once_; weir_once_ = 0)
#define WEIR_ITEMS_BELOW(n) WEIR_ITEMS if (WEIR_ITEM_X < (n))
#define WEIR_ITEMS_LAST_BELOW(n) WEIR_ITEMS_LAST if (WEIR_ITEM_X < (n))
#define WEIR_PRIVATE(T, v) T v
#define WEIR_PRIVATE_ARRAY(T, v, n) T v[n]
#define WEIR_V(v) v

#endif

#if !defined(WEIR_LARGE) /* ---- Devices whose shared memory is all of one kind ---- */

#define WEIR_LARGE(T, v, n) WEIR_SHARED(T, v, n)
#define WEIR_LARGE_BYTES(name, bytes) typedef char weir_large_of_##name[bytes]

#endif

#define WEIR_ITEM_X ((weir_i64)WEIR_GROUP_X * WEIR_SIZE_X + WEIR_LOCAL_X)
#define WEIR_ITEM_Y ((weir_i64)WEIR_GROUP_Y * WEIR_SIZE_Y + WEIR_LOCAL_Y)
#define WEIR_ITEM_Z ((weir_i64)WEIR_GROUP_Z * WEIR_SIZE_Z + WEIR_LOCAL_Z)
#define WEIR_MIN(a, b) ((b) < (a) ? (b) : (a))
#define WEIR_MAX(a, b) ((a) < (b) ? (b) : (a))

#endif /* WEIR_PORTABLE_H */
