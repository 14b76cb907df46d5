/* Vectors of float32 as wide as the registers of the target, and the arithmetic on them that the kernels need. */

#ifndef HANLATTICE_VECTORS_H
#define HANLATTICE_VECTORS_H

#include <stdint.h>
#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#if defined(__AVX512F__)
#define LANES 16 /* floats in a vector */
#else
#define LANES 8
#endif
#define DOUBLES (LANES / 2) /* doubles in a vector */
#define VECTOR_BYTES (4 * LANES)

/* Vector types without alignment requirements. */
typedef float vec __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef int32_t ivec __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef double dvec __attribute__((vector_size(VECTOR_BYTES), aligned(8), may_alias));

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
/* The vector at an address: V, CV of float32, I, CI of int32, D, CD of double; C for const. */
#define V(p) (*(vec *)(p))
#define CV(p) (*(const vec *)(p))
#define I(p) (*(ivec *)(p))
#define CI(p) (*(const ivec *)(p))
#define D(p) (*(dvec *)(p))
#define CD(p) (*(const dvec *)(p))

/* Unroll the loop that follows. */
#if defined(__clang__)
#define UNROLL _Pragma("unroll 16")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

/* A vector whose lane i is lane f(i) of x. The compilers have different builtins, and clang needs constant indices. */
#if LANES == 16
#define EACH_LANE(f) f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7), f(8), f(9), f(10), f(11), f(12), f(13), f(14), f(15)
#else
#define EACH_LANE(f) f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7)
#endif
#if defined(__clang__)
#define SHUFFLED(x, f) __builtin_shufflevector(x, x, EACH_LANE(f))
#else
#define SHUFFLED(x, f) __builtin_shuffle(x, (ivec){EACH_LANE(f)})
#endif

/* Lane i of the result is lane i ^ by; `by` is a power of 2 and less than LANES. */
INLINE vec swap_lanes(vec x, int64_t by) {
#define AT(i) (i ^ 1)
    if (by == 1) return SHUFFLED(x, AT);
#undef AT
#define AT(i) (i ^ 2)
    if (by == 2) return SHUFFLED(x, AT);
#undef AT
#define AT(i) (i ^ 4)
    if (by == 4) return SHUFFLED(x, AT);
#undef AT
#define AT(i) ((i + 8) % LANES)
    return SHUFFLED(x, AT);
#undef AT
}

/* Lane i of the result is lane i % n; `n` is a power of 2 and at most LANES. */
INLINE vec repeat_lanes(vec x, int64_t n) {
#define AT(i) 0
    if (n == 1) return SHUFFLED(x, AT);
#undef AT
#define AT(i) (i % 2)
    if (n == 2) return SHUFFLED(x, AT);
#undef AT
#define AT(i) (i % 4)
    if (n == 4) return SHUFFLED(x, AT);
#undef AT
#define AT(i) (i % 8)
    if (n == 8) return SHUFFLED(x, AT);
#undef AT
    return x;
}

INLINE vec broadcast(float x) { return x - (vec){0}; }

#if defined(__AVX512F__)
INLINE vec maximum(vec a, vec b) { return (vec)_mm512_max_ps((__m512)a, (__m512)b); }
#elif defined(__AVX2__)
INLINE vec maximum(vec a, vec b) { return (vec)_mm256_max_ps((__m256)a, (__m256)b); }
#else
INLINE vec maximum(vec a, vec b) {
    ivec more = a > b;
    return (vec)(((ivec)a & more) | ((ivec)b & ~more));
}
#endif

INLINE vec minimum(vec a, vec b) { return -maximum(-a, -b); }

INLINE vec absolute(vec x) { return (vec)((ivec)x & 0x7fffffff); }

/* The sum of all lanes. */
INLINE float sum_lanes(vec x) {
    float sum = 0;
    for (int i = 0; i < LANES; i++) sum += x[i];
    return sum;
}

/* exp(x) with a relative error up to 2e-7, for x from -87 to 88; lower values count as -87.
 *
 * Cephes expf, S. Moshier: a power of 2, times a polynomial of the remainder. */
INLINE vec vec_exp(vec x) {
    const float shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer */
    x = maximum(x, broadcast(-87.0f));
    vec whole = x * 1.44269504f + shift;
    ivec power = ((ivec)whole - (ivec)broadcast(shift) + 127) << 23;
    whole -= shift;
    x = x - whole * 0.693359375f + whole * 2.12194440e-4f;
    vec sum = x * 1.9875691500e-4f + 1.3981999507e-3f;
    sum = sum * x + 8.3334519073e-3f;
    sum = sum * x + 4.1665795894e-2f;
    sum = sum * x + 1.6666665459e-1f;
    sum = sum * x + 5.0000001201e-1f;
    sum = sum * x * x + x + 1.0f;
    return sum * (vec)power;
}

/* exp(x) for x of at most 0; values below -60 count as -60. A softmax does not see the difference, and its weights and
 * their products stay normal numbers: with subnormal ones, Intel processors take several times as long. */
INLINE vec exp_of_score(vec x) { return vec_exp(maximum(x, broadcast(-60.0f))); }

#endif
