/* Products per nanosecond of the ways to multiply int8 with AVX2, beside those of float32:
 *
 *   cc -O3 -march=x86-64-v3 -o int8_products benchmarks/int8_products.c && ./int8_products
 *
 * Each way computes a block of 6 (4) rows x 2 vectors of outputs as layers.h does, with everything in the first-level cache.
 * The time is the lowest of several runs. docs/decisions/int8-on-avx2.md uses the figures. */

#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define N 480 /* inputs */
#define RUNS 30
#define CALLS 1000
#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)

#define ROWS_OF_TWO 4 /* two steps at once need more registers for weights and inputs */

/* Not static, so that the compiler does not know their contents. */
char weights[1 << 16] __attribute__((aligned(64))), inputs[1 << 16] __attribute__((aligned(64)));
__m256i results[6];

#define START(r) __m256i left_##r = _mm256_setzero_si256(), right_##r = left_##r;
#define STORE(r) results[r] = _mm256_xor_si256(left_##r, right_##r);

/* A loop over the inputs, `step` at a time, each of `bytes`. */
#define BLOCK(name, step, bytes, ADD)                                                                       \
    static __attribute__((noinline)) void name(void) {                                                      \
        const __m256i ones = _mm256_set1_epi16(1);                                                          \
        (void)ones;                                                                                         \
        EACH_ROW(START)                                                                                     \
        const char *panel = weights;                                                                        \
        for (int k = 0; k < N; k += step, panel += 64) {                                                    \
            __m256i left = _mm256_load_si256((const __m256i *)panel);                                       \
            __m256i right = _mm256_load_si256((const __m256i *)(panel + 32));                               \
            EACH_ROW(ADD)                                                                                   \
        }                                                                                                   \
        EACH_ROW(STORE)                                                                                     \
    }
#define GIVEN(r, bytes)                                       \
    int32_t given;                                            \
    memcpy(&given, inputs + (r * N + k) * bytes, sizeof(given)); \
    __m256i value = _mm256_set1_epi32(given), t;

#define FLOAT32_ONE(sum, w) __asm__("vfmadd231ps %1, %2, %0" : "+x"(sum) : "x"(w), "x"(value));
#define WIDE_ONE(sum, w) \
    __asm__("vpmaddwd %2, %3, %1\n\tvpaddd %1, %0, %0" : "+x"(sum), "=&x"(t) : "x"(w), "x"(value));
#define SEVEN_ONE(sum, w)                                                            \
    __asm__("vpmaddubsw %2, %3, %1\n\tvpmaddwd %4, %1, %1\n\tvpaddd %1, %0, %0" \
            : "+x"(sum), "=&x"(t) : "x"(w), "x"(value), "xm"(ones));
#define SIGN_ONE(sum, w)                                                                                   \
    __asm__("vpsignb %3, %2, %1\n\tvpmaddubsw %1, %4, %1\n\tvpmaddwd %5, %1, %1\n\tvpaddd %1, %0, %0" \
            : "+x"(sum), "=&x"(t) : "x"(w), "x"(value), "x"(size), "xm"(ones));

#define FLOAT32(r) { GIVEN(r, 4) (void)t; FLOAT32_ONE(left_##r, left) FLOAT32_ONE(right_##r, right) }
#define WIDE(r) { GIVEN(r, 2) WIDE_ONE(left_##r, left) WIDE_ONE(right_##r, right) }
#define SEVEN(r) { GIVEN(r, 1) SEVEN_ONE(left_##r, left) SEVEN_ONE(right_##r, right) }
#define SIGN(r) { GIVEN(r, 1) __m256i size = _mm256_abs_epi8(value); SIGN_ONE(left_##r, left) SIGN_ONE(right_##r, right) }

BLOCK(float32, 1, 4, FLOAT32)
BLOCK(wide, 2, 2, WIDE)
BLOCK(seven, 4, 1, SEVEN)
BLOCK(sign, 4, 1, SIGN)

/* Both of 7 bits: the products of two steps are added up in int16. */
#define TWO_ONE(sum, w, next_w)                                                                             \
    __asm__("vpmaddubsw %3, %5, %1\n\tvpmaddubsw %4, %6, %2\n\tvpaddw %2, %1, %1\n\t"                      \
            "vpmaddwd %7, %1, %1\n\tvpaddd %1, %0, %0"                                                      \
            : "+x"(sum), "=&x"(t), "=&x"(u)                                                                 \
            : "x"(w), "x"(next_w), "x"(value), "x"(next), "m"(ones));
#define TWO(r)                                                                     \
    {                                                                              \
        int32_t given, other;                                                      \
        memcpy(&given, inputs + r * N + k, sizeof(given));                         \
        memcpy(&other, inputs + r * N + k + 4, sizeof(other));                     \
        __m256i value = _mm256_set1_epi32(given), next = _mm256_set1_epi32(other), t, u; \
        TWO_ONE(left_##r, left, next_left)                                         \
        TWO_ONE(right_##r, right, next_right)                                      \
    }
#define EACH_OF_TWO(DO) DO(0) DO(1) DO(2) DO(3)
static __attribute__((noinline)) void two(void) {
    const __m256i ones = _mm256_set1_epi16(1);
    EACH_OF_TWO(START)
    const char *panel = weights;
    for (int k = 0; k < N; k += 8, panel += 128) {
        __m256i left = _mm256_load_si256((const __m256i *)panel);
        __m256i right = _mm256_load_si256((const __m256i *)(panel + 32));
        __m256i next_left = _mm256_load_si256((const __m256i *)(panel + 64));
        __m256i next_right = _mm256_load_si256((const __m256i *)(panel + 96));
        EACH_OF_TWO(TWO)
    }
    EACH_OF_TWO(STORE)
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

static void measure(const char *name, void (*block)(void), int rows) {
    double lowest = 1e9;
    for (int run = 0; run < RUNS; run++) {
        double start = seconds();
        for (int i = 0; i < CALLS; i++) block();
        double taken = seconds() - start;
        if (taken < lowest) lowest = taken;
    }
    printf("%-55s %6.1f products/ns\n", name, rows * 16.0 * N * CALLS / lowest * 1e-9);
}

int main(void) {
    measure("float32 (vfmadd231ps)", float32, 6);
    measure("int8 in 16 bits (vpmaddwd)", wide, 6);
    measure("inputs of 7 bits (vpmaddubsw, vpmaddwd)", seven, 6);
    measure("inputs and weights of 7 bits (2 vpmaddubsw, vpmaddwd)", two, ROWS_OF_TWO);
    measure("signs moved (vpsignb, vpmaddubsw, vpmaddwd)", sign, 6);
}
