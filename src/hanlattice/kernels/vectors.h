/* Vectors of floats, as wide as the processor has them, and the little arithmetic that the kernels need. */

#ifndef HANLATTICE_VECTORS_H
#define HANLATTICE_VECTORS_H

#include <stdint.h>

#if defined(__AVX512F__)
#define LANES 16 /* of a vector of floats */
#else
#define LANES 8
#endif
#define HALF (LANES / 2) /* of a vector of doubles */
#define SIZE (4 * LANES) /* in bytes */

/* Memory need not be aligned for them. */
typedef float vec __attribute__((vector_size(SIZE), aligned(4), may_alias));
typedef int32_t ivec __attribute__((vector_size(SIZE), aligned(4), may_alias));
typedef double dvec __attribute__((vector_size(SIZE), aligned(8), may_alias));

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
#define V(p) (*(vec *)(p))
#define CV(p) (*(const vec *)(p))
#define D(p) (*(dvec *)(p))
#define CD(p) (*(const dvec *)(p))

INLINE vec spread(float x) { return x - (vec){0}; }

INLINE vec larger(vec a, vec b) {
    ivec more = a > b;
    return (vec)(((ivec)a & more) | ((ivec)b & ~more));
}

INLINE float total(vec x) {
    float sum = 0;
    for (int i = 0; i < LANES; i++) sum += x[i];
    return sum;
}

/* e to the x, within 2e-7 of it, for x from -87 to 88; what is lower is taken to be -87. */
INLINE vec exponential(vec x) {
    const float shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds to a whole number */
    x = larger(x, spread(-87.0f));
    vec whole = x * 1.44269504f + shift;
    ivec power = ((ivec)whole - (ivec)spread(shift) + 127) << 23;
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

#endif
