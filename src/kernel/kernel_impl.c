/* kernel_impl.c - every kernel of one table, compiled once for each instruction set and precision.
 *
 * CMake sets HL_ISA (a bare word such as avx2) and HL_DTYPE_f32 or HL_DTYPE_f64. The code is written with the compilers'
 * generic vectors: `vec` is one hardware vector of VL values, an entry of 16 lanes is NV of them. The parts:
 *   kernel_math.h         exp, log, tanh, ... of one vec
 *   kernel_elementwise.h  loops of these over entries
 *   kernel_misc.h         transposition, reductions, running sums, conversions
 *   kernel_gemm.h         products with a weight matrix, and its gradient
 *   kernel_conv.h         convolution, its transpose, and the gradient of its weights
 *
 * Invariant: the operations done on a value depend only on its place in the tensor, never on its lane or panel. Loops run
 * over whole vectors only, so there is no scalar tail with other arithmetic. */
#include <math.h>
#include <string.h>

#include "kernel/kernel.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(HL_DTYPE_f32)
typedef float real;
typedef int32_t integer;
typedef uint32_t natural;
#define DTYPE HL_F32
#define DTYPE_NAME f32
#elif defined(HL_DTYPE_f64)
typedef double real;
typedef int64_t integer;
typedef uint64_t natural;
#define DTYPE HL_F64
#define DTYPE_NAME f64
#else
#error "define HL_DTYPE_f32 or HL_DTYPE_f64"
#endif

/* VB: bytes of a hardware vector. UNITS: output units of a full register block, with two vecs each: 12 accumulators of
 * the 16 registers, or 16 of the 32. */
#if defined(__AVX512F__)
#define VB 64
#define UNITS 8
#elif defined(__AVX2__)
#define VB 32
#define UNITS 6
#else
#define VB 16
#define UNITS 6
#endif
/* NATIVE(min)(a, b) is the instruction a < b ? a : b on whole vecs, likewise max; undefined where there is none. */
#if defined(HL_DTYPE_f32)
#define NATIVE_(bits, op) _mm##bits##_##op##_ps
#else
#define NATIVE_(bits, op) _mm##bits##_##op##_pd
#endif
#if VB == 64
#define NATIVE(op) NATIVE_(512, op)
#elif VB == 32
#define NATIVE(op) NATIVE_(256, op)
#elif defined(__SSE2__)
#define NATIVE(op) NATIVE_(, op)
#endif
#define VL ((size_t)(VB / sizeof(real)))
#define NV (HL_LANES / VL)

typedef real vec __attribute__((vector_size(VB)));
typedef integer ivec __attribute__((vector_size(VB)));
typedef natural nvec __attribute__((vector_size(VB)));
/* In memory a vector is aligned only as its elements are. */
typedef real vec_in_memory __attribute__((vector_size(VB), aligned(sizeof(real)), may_alias));

#define INLINE static inline __attribute__((always_inline))
/* The unrolled loops would keep a sanitizing compiler busy for many minutes. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#define SANITIZED
#endif
#endif
#if defined(SANITIZED) || defined(__SANITIZE_ADDRESS__)
#define UNROLL
#define ONE_BY_ONE
#elif defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#define ONE_BY_ONE _Pragma("clang loop unroll(disable)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#define ONE_BY_ONE _Pragma("GCC unroll 1")
#endif
#define JOIN3_(a, b, c) a##b##_##c
#define JOIN3(a, b, c) JOIN3_(a, b, c)
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

INLINE vec load(const real *p)
{
    return *(const vec_in_memory *)p;
}
INLINE void store(real *p, vec v)
{
    *(vec_in_memory *)p = v;
}
INLINE vec splat(real s)
{
    return s - (vec){ 0 };
} /* s - 0 keeps the sign of zero and compiles to a broadcast */
/* Keep a vec that is used more than once in a register: with these instructions compilers load it again for every use. */
INLINE void in_register(vec *v)
{
#if defined(__AVX512F__)
    __asm__("" : "+v"(*v));
#else
    (void)v;
#endif
}
/* a b + sum, rounded once where the machine can. Said, not left to the compiler: some, from gcc 13 on, take two instructions for a
 * sum along a loop, but not for every number of units, and then bits depend on how the units are cut. */
INLINE vec muladd(vec a, vec b, vec sum)
{
#if defined(__FMA__)
    return (vec)NATIVE(fmadd)(a, b, sum);
#else
    return a * b + sum;
#endif
}

/* The same on the first 8 lanes alone, where an entry is one vec; `half` is a constant where these are inlined. Other vecs are no longer
 * than half an entry. */
#if VB == 64 && defined(HL_DTYPE_f32)
#define HALF_VEC(v) _mm512_castps512_ps256(v)
#define WHOLE_VEC(v) ((vec)_mm512_castps256_ps512(v))
INLINE vec load_lanes(const real *p, const int half)
{
    return half ? WHOLE_VEC(_mm256_loadu_ps(p)) : load(p);
}
INLINE vec splat_lanes(real s, const int half)
{
    return half ? WHOLE_VEC(_mm256_set1_ps(s)) : splat(s);
}
INLINE vec muladd_lanes(vec a, vec b, vec sum, const int half)
{
    return half ? WHOLE_VEC(_mm256_fmadd_ps(HALF_VEC(a), HALF_VEC(b), HALF_VEC(sum))) : muladd(a, b, sum);
}
INLINE vec add_lanes(vec a, vec b, const int half)
{
    return half ? WHOLE_VEC(_mm256_add_ps(HALF_VEC(a), HALF_VEC(b))) : a + b;
}
INLINE void store_lanes(real *p, vec v, const int half)
{
    if (half) {
        _mm256_storeu_ps(p, HALF_VEC(v));
        _mm256_storeu_ps(p + HL_LANES / 2, HALF_VEC(v));
    } else {
        store(p, v);
    }
}
#else
#define load_lanes(p, half) load(p)
#define splat_lanes(s, half) splat(s)
#define muladd_lanes(a, b, sum, half) muladd(a, b, sum)
#define add_lanes(a, b, half) ((a) + (b))
INLINE void store_lanes(real *p, vec v, const int half)
{
    store(p, v);
    if (half)
        store(p + HL_LANES / 2, v);
}
#endif

#include "kernel/kernel_math.h"

#include "kernel/kernel_elementwise.h"

#include "kernel/kernel_misc.h"

#include "kernel/kernel_gemm.h"

#include "kernel/kernel_conv.h"

#define ENTRY_UN(name) [HL_UN_##name] = unary_##name,
#define ENTRY_BI(name) [HL_BI_##name] = binary_##name,
#define ENTRY_TE(name) [HL_TE_##name] = ternary_##name,
extern const hl_kernels JOIN3(hl_kernels_, HL_ISA, DTYPE_NAME);
const hl_kernels JOIN3(hl_kernels_, HL_ISA, DTYPE_NAME) = {
    .isa = TEXT(HL_ISA),
    .dtype = DTYPE,
    .unary = { HL_UNARY_LIST(ENTRY_UN) },
    .binary = { HL_BINARY_LIST(ENTRY_BI) },
    .ternary = { HL_TERNARY_LIST(ENTRY_TE) },
    .swish = swish,
    .tanh = tanh_slope,
    .gemm = gemm,
    .gemm_t = gemm_t,
    .gemm_w = gemm_w,
    .lane_sum = lane_sum,
    .lane_matmul = lane_matmul,
    .rows_to_panel = rows_to_panel,
    .panel_to_rows = panel_to_rows,
    .doubles_to_panel = doubles_to_panel,
    .panel_to_doubles = panel_to_doubles,
    .sum = sum_axis,
    .max = max_axis,
    .cumsum = cumsum_axis,
    .add = add,
    .fill = fill,
    .conv = conv,
    .conv_t = conv_t,
    .conv_w = conv_w,
    .flush = flush,
    .from_double = from_double,
    .fma_burst = fma_burst,
};
