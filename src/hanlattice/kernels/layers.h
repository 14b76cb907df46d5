/* What the kernels of neural networks share: embedding tables, linear layers in float32 and int8, and scratch memory. */

#ifndef LAYERS_H
#define LAYERS_H

#include <string.h>

#include "vectors.h"

/* A matrix product is computed in blocks of ROWS x COLUMNS outputs, whose sums fill most vector registers. The last
 * block has fewer rows, an even number of them, so that hardly any are computed for nothing. */
#define ROWS (LANES == 16 ? 12 : 6)
#define COLUMNS (2 * LANES)

/* ---- models ----
 *
 * kernels/structs.py declares the same structures. Their sizes are compared when the library is opened. */

typedef struct { /* an embedding table: rows of float32, or rows of int8 with a scale for each row */
    const void *rows;
    const float *scale; /* NULL: float32 */
    int64_t width;
} Table;

typedef struct { /* a linear layer; its weights are stored in panels of COLUMNS outputs, as int8 if it has scales */
    const void *panels;
    const float *bias;
    const float *scale;  /* one for each output, or NULL: float32 */
    const int32_t *zero; /* initial sums of int8 products: they cancel the zero point of the inputs */
    int64_t n_in, n_out;
} Linear;

/* ---- scratch memory ---- */

static int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

static int64_t max_of(int64_t a, int64_t b) { return a > b ? a : b; }

typedef struct { /* hands out memory from its start; without memory it only counts the bytes */
    char *memory;
    int64_t used;
} Arena;

static void *take(Arena *arena, int64_t bytes) {
    void *start = arena->memory ? arena->memory + arena->used : NULL;
    arena->used += bytes;
    return start;
}

/* Memory for `n` floats and one more vector, because loops write whole vectors. */
static float *take_floats(Arena *arena, int64_t n) {
    return take(arena, sizeof(float) * (round_up(n, LANES) + LANES));
}

/* ---- linear layers ---- */

/* Each sum is a variable of its own, two for each row, so that every compiler keeps them in registers. */
#define EACH_OF_2(DO) DO(0) DO(1)
#define EACH_OF_4(DO) EACH_OF_2(DO) DO(2) DO(3)
#define EACH_OF_6(DO) EACH_OF_4(DO) DO(4) DO(5)
#define EACH_OF_8(DO) EACH_OF_6(DO) DO(6) DO(7)
#define EACH_OF_10(DO) EACH_OF_8(DO) DO(8) DO(9)
#define EACH_OF_12(DO) EACH_OF_10(DO) DO(10) DO(11)
/* The block for n more rows; BLOCK(EACH) computes the one with these rows. */
#if LANES == 16
#define BLOCK_OF(n)                       \
    if (n > 10) BLOCK(EACH_OF_12)         \
    else if (n > 8) BLOCK(EACH_OF_10)     \
    else if (n > 6) BLOCK(EACH_OF_8)      \
    else if (n > 4) BLOCK(EACH_OF_6)      \
    else if (n > 2) BLOCK(EACH_OF_4)      \
    else BLOCK(EACH_OF_2)
#else
#define BLOCK_OF(n)                       \
    if (n > 4) BLOCK(EACH_OF_6)           \
    else if (n > 2) BLOCK(EACH_OF_4)      \
    else BLOCK(EACH_OF_2)
#endif
#define WRITE(r) \
    write_row(out + (row + r) * out_stride + column, FINISHED(left_##r, 0, r), FINISHED(right_##r, LANES, r), relu);

INLINE void write_row(float *out, vec left, vec right, int relu) {
    V(out) = relu ? maximum(left, (vec){0}) : left;
    V(out + LANES) = relu ? maximum(right, (vec){0}) : right;
}

static NOINLINE void multiply_float32(const float *x, int64_t rows, int64_t stride, const Linear *w, float *out,
                                     int64_t out_stride, int relu) {
#define START(r) vec left_##r = {0}, right_##r = {0};
#define ADD(r)                                            \
    {                                                     \
        vec value = broadcast(given[r * stride + k]);        \
        left_##r += value * left, right_##r += value * right; \
    }
#define FINISHED(sum, lanes, r) sum + CV(w->bias + column + lanes)
#define BLOCK(EACH)                                             \
    {                                                           \
        EACH(START)                                             \
        for (int64_t k = 0; k < w->n_in; k++, panel += COLUMNS) { \
            vec left = CV(panel), right = CV(panel + LANES);    \
            EACH(ADD)                                           \
        }                                                       \
        EACH(WRITE)                                             \
    }
    for (int64_t column = 0; column < w->n_out; column += COLUMNS)
        for (int64_t row = 0; row < rows; row += ROWS) {
            const float *given = x + row * stride, *panel = (const float *)w->panels + column * w->n_in;
            BLOCK_OF(rows - row)
        }
#undef BLOCK
#undef START
#undef ADD
#undef FINISHED
}

/* Products of int8. Inputs and weights are whole numbers from -LARGEST_INT8 to LARGEST_INT8. `Quantised` is the type of inputs in
 * memory, INT8_STEP of which are multiplied by as many weights at a time, in INT8_AT_ONCE steps; the input 0 is stored as
 * ZERO_POINT. The sums are exact with all. */
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#define INT8_STEP 4
#define ZERO_POINT 128
#define LARGEST_INT8 127
typedef uint8_t Quantised;
#elif defined(__AVX2__)
/* AVX2 multiplies uint8 by int8 and adds two products in int16 (vpmaddubsw), which holds 4 * 127 * 63. So with 7 bits the sums of
 * two instructions fit. docs/decisions/int8-on-avx2.md compares this with products of 8 bits. */
#define INT8_STEP 4
#define INT8_AT_ONCE 2
#define ZERO_POINT 64
#define LARGEST_INT8 63
typedef uint8_t Quantised;
#elif defined(__ARM_FEATURE_DOTPROD)
#define INT8_STEP 4
#define ZERO_POINT 0
#define LARGEST_INT8 127
typedef int8_t Quantised;
#else
#define INT8_STEP 0
#define ZERO_POINT 0
#define LARGEST_INT8 0
typedef uint8_t Quantised;
#endif
#ifndef INT8_AT_ONCE
#define INT8_AT_ONCE 1
#endif

/* What both kinds of int8 products in registers of AVX2 share. */
#if defined(__AVX2__) && !defined(__AVX512VNNI__)
typedef __m256i Sums;
#define LOAD_SUMS(p) _mm256_loadu_si256((const __m256i *)(p))
#define BROADCAST_32(x) _mm256_set1_epi32(x)
#define INTEGERS(sums) (ivec)sums

/* The first n floats, or 8 if there are as many; the others are 0. */
INLINE __m256 load_some(const float *x, int64_t n) {
    if (n >= LANES) return _mm256_loadu_ps(x);
    __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_maskload_ps(x, _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), lane));
}

/* The scale at which the largest number of a row is LARGEST_INT8. */
INLINE float scale_of(const float *x, int64_t n) {
    vec most = {0}, other = {0};
    int64_t k = 0;
    for (; k + 2 * LANES <= n; k += 2 * LANES)
        most = maximum(most, absolute(CV(x + k))), other = maximum(other, absolute(CV(x + k + LANES)));
    for (; k < n; k += LANES) most = maximum(most, absolute((vec)load_some(x + k, n - k)));
    most = maximum(most, other);
    for (int64_t by = LANES / 2; by; by /= 2) most = maximum(most, swap_lanes(most, by));
    return most[0] > 0 ? most[0] / LARGEST_INT8 : 1.0f;
}

/* Quantise a row to uint8; returns its scale. Up to 7 numbers after the row are overwritten. */
INLINE float quantise(const float *x, int64_t n, uint8_t *out) {
    const float scale = scale_of(x, n);
    const __m256 by = _mm256_set1_ps(1.0f / scale);
    const __m256i zero = _mm256_set1_epi8((char)ZERO_POINT), order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    int64_t k = 0;
    for (; k + 4 * LANES <= n; k += 4 * LANES) {
        __m256i whole[4];
        UNROLL for (int i = 0; i < 4; i++) whole[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + k + i * LANES), by));
        __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(whole[0], whole[1]), _mm256_packs_epi32(whole[2], whole[3]));
        bytes = _mm256_add_epi8(_mm256_permutevar8x32_epi32(bytes, order), zero);
        _mm256_storeu_si256((__m256i *)(out + k), bytes);
    }
    for (; k < n; k += LANES) {
        __m256i whole = _mm256_cvtps_epi32(_mm256_mul_ps(load_some(x + k, n - k), by));
        __m128i half = _mm_packs_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256(whole, 1));
        __m128i bytes = _mm_add_epi8(_mm_packs_epi16(half, half), _mm256_castsi256_si128(zero));
        _mm_storel_epi64((__m128i *)(out + k), bytes);
    }
    return scale;
}
#endif

#if defined(__AVX512VNNI__)
/* Quantise a row to uint8; returns its scale. */
INLINE float quantise(const float *x, int64_t n, uint8_t *out) {
    __m512 most = _mm512_setzero_ps();
    for (int64_t k = 0; k < n; k += LANES) {
        __mmask16 there = n - k < LANES ? (1u << (n - k)) - 1 : 0xffff;
        most = _mm512_max_ps(most, _mm512_abs_ps(_mm512_maskz_loadu_ps(there, x + k)));
    }
    float largest = _mm512_reduce_max_ps(most);
    float scale = largest > 0 ? largest / 127.0f : 1.0f;
    __m512 by = _mm512_set1_ps(1.0f / scale);
    for (int64_t k = 0; k < n; k += LANES) {
        __mmask16 there = n - k < LANES ? (1u << (n - k)) - 1 : 0xffff;
        __m512i whole = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_maskz_loadu_ps(there, x + k), by));
        __m512i byte = _mm512_add_epi32(whole, _mm512_set1_epi32(ZERO_POINT));
        _mm512_mask_cvtepi32_storeu_epi8(out + k, there, byte);
    }
    return scale;
}

/* Inline assembly, because compilers copy the sums between registers when they use the intrinsic. */
#define ADD_INT8_PRODUCTS(sum, x, y) __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y))
typedef __m512i Sums;
#define LOAD_SUMS(p) _mm512_loadu_si512(p)
#define BROADCAST_32(x) _mm512_set1_epi32(x)
#define INTEGERS(sums) (ivec)sums
#elif defined(__AVXVNNI__)
#define ADD_INT8_PRODUCTS(sum, x, y) __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(x), "x"(y))
#elif defined(__AVX2__)
static const int16_t ONES[2 * LANES] __attribute__((aligned(VECTOR_BYTES))) = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

/* Two steps. Inline assembly, because compilers move the products before the sums and then run out of registers. */
#define ADD_INT8_PRODUCTS(sum, x, y, next_x, next_y)                                                      \
    {                                                                                                     \
        __m256i product, next;                                                                            \
        __asm__("vpmaddubsw %3, %4, %1\n\tvpmaddubsw %5, %6, %2\n\tvpaddw %2, %1, %1\n\t"                \
                "vpmaddwd %7, %1, %1\n\tvpaddd %1, %0, %0"                                                \
                : "+x"(sum), "=&x"(product), "=&x"(next)                                                  \
                : "x"(y), "x"(x), "x"(next_y), "x"(next_x), "m"(*(const __m256i *)ONES));                 \
    }
#elif defined(__ARM_FEATURE_DOTPROD)

/* Quantise a row to -127..127; returns its scale. The length is a multiple of INT8_STEP. */
INLINE float quantise(const float *x, int64_t n, int8_t *out) {
    float32x4_t most = vdupq_n_f32(0);
    for (int64_t k = 0; k < n; k += 4) most = vmaxq_f32(most, vabsq_f32(vld1q_f32(x + k)));
    float largest = vmaxvq_f32(most), scale = largest > 0 ? largest / 127.0f : 1.0f, by = 1.0f / scale;
    for (int64_t k = 0; k < n; k += 4) {
        int32x4_t whole = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + k), by));
        for (int i = 0; i < 4; i++) out[k + i] = (int8_t)whole[i];
    }
    return scale;
}

/* LANES sums in two registers. */
typedef struct {
    int32x4_t low, high;
} Sums;

/* sdot: each lane adds four products of bytes. */
#define ADD_INT8_PRODUCTS(sum, x, y)                                                                         \
    {                                                                                                        \
        sum.low = vdotq_s32(sum.low, vreinterpretq_s8_s32(x.low), vreinterpretq_s8_s32(y.low));              \
        sum.high = vdotq_s32(sum.high, vreinterpretq_s8_s32(x.high), vreinterpretq_s8_s32(y.high));          \
    }
#define LOAD_SUMS(p) load_sums(p)
#define BROADCAST_32(x) broadcast_32(x)
#define INTEGERS(sums) integers(sums)
INLINE Sums load_sums(const void *p) {
    return (Sums){vld1q_s32((const int32_t *)p), vld1q_s32((const int32_t *)p + 4)};
}
INLINE Sums broadcast_32(int32_t x) { return (Sums){vdupq_n_s32(x), vdupq_n_s32(x)}; }
INLINE ivec integers(Sums sums) {
    ivec out;
    vst1q_s32((int32_t *)&out, sums.low), vst1q_s32((int32_t *)&out + 4, sums.high);
    return out;
}
#endif

/* Two steps at once need more registers for weights and inputs, so a block has fewer rows. */
#if INT8_AT_ONCE == 2
#define INT8_ROWS 4
#define INT8_BLOCK_OF(n)        \
    if (n > 2) BLOCK(EACH_OF_4) \
    else BLOCK(EACH_OF_2)
#else
#define INT8_ROWS ROWS
#define INT8_BLOCK_OF(n) BLOCK_OF(n)
#endif

#if INT8_STEP
static NOINLINE void multiply_int8(const float *x, int64_t rows, int64_t stride, const Linear *w, float *out,
                                    int64_t out_stride, int relu, Quantised *quantised, float *scales) {
    int64_t n_in = w->n_in;
    for (int64_t row = 0; row < rows; row++) scales[row] = quantise(x + row * stride, n_in, quantised + row * n_in);
#define START(r) Sums left_##r = left_zero, right_##r = right_zero;
#define INPUTS(r, step)                                                            \
    int32_t inputs_##step;                                                         \
    memcpy(&inputs_##step, given + r * n_in + k + step * INT8_STEP, INT8_STEP);    \
    Sums value_##step = BROADCAST_32(inputs_##step);
#define WEIGHTS(step)                                                              \
    Sums left_weights_##step = LOAD_SUMS(panel + step * INT8_STEP * COLUMNS);      \
    Sums right_weights_##step = LOAD_SUMS(panel + step * INT8_STEP * COLUMNS + INT8_STEP * LANES);
#if INT8_AT_ONCE == 2
#define LOAD_WEIGHTS WEIGHTS(0) WEIGHTS(1)
#define ADD(r)                                                                                   \
    {                                                                                            \
        INPUTS(r, 0)                                                                             \
        INPUTS(r, 1)                                                                             \
        ADD_INT8_PRODUCTS(left_##r, value_0, left_weights_0, value_1, left_weights_1)            \
        ADD_INT8_PRODUCTS(right_##r, value_0, right_weights_0, value_1, right_weights_1)         \
    }
#else
#define LOAD_WEIGHTS WEIGHTS(0)
#define ADD(r)                                                    \
    {                                                             \
        INPUTS(r, 0)                                              \
        ADD_INT8_PRODUCTS(left_##r, value_0, left_weights_0);     \
        ADD_INT8_PRODUCTS(right_##r, value_0, right_weights_0);   \
    }
#endif
#define FINISHED(sum, lanes, r)                                                          \
    __builtin_convertvector(INTEGERS(sum), vec) * broadcast(scales[row + r]) * CV(w->scale + column + lanes) + \
        CV(w->bias + column + lanes)
#define BLOCK(EACH)                                                                                               \
    {                                                                                                             \
        EACH(START)                                                                                               \
        for (int64_t k = 0; k < n_in; k += INT8_AT_ONCE * INT8_STEP, panel += INT8_AT_ONCE * INT8_STEP * COLUMNS) { \
            LOAD_WEIGHTS                                                                                          \
            EACH(ADD)                                                                                             \
        }                                                                                                         \
        EACH(WRITE)                                                                                               \
    }
    for (int64_t column = 0; column < w->n_out; column += COLUMNS) {
        Sums left_zero = LOAD_SUMS(w->zero + column), right_zero = LOAD_SUMS(w->zero + column + LANES);
        for (int64_t row = 0; row < rows; row += INT8_ROWS) {
            const Quantised *given = quantised + row * n_in;
            const int8_t *panel = (const int8_t *)w->panels + column * n_in;
            INT8_BLOCK_OF(rows - row)
        }
    }
#undef BLOCK
#undef START
#undef INPUTS
#undef WEIGHTS
#undef LOAD_WEIGHTS
#undef ADD
#undef FINISHED
}
#endif

typedef struct {     /* memory for int8 products */
    void *quantised; /* inputs, of the type Quantised */
    float *scales;   /* of the rows of the inputs */
} Int8Memory;

/* Memory for inputs of at most `rows` rows, rounded up to ROWS, and `widest` numbers in a row. */
static Int8Memory int8_memory(Arena *arena, int64_t rows, int64_t widest) {
    void *quantised = take_floats(arena, round_up(rows * widest * sizeof(Quantised), 4) / 4);
    return (Int8Memory){quantised, take_floats(arena, rows)};
}

/* out = x W^T + b, with ReLU if `relu`. Rows are read and written ROWS at a time, so both arrays need memory up to
 * the next multiple of ROWS. */
static void multiply(const float *x, int64_t rows, int64_t stride, const Linear *w, float *out, int64_t out_stride,
                     int relu, const Int8Memory *memory) {
#if INT8_STEP
    if (w->scale) {
        multiply_int8(x, rows, stride, w, out, out_stride, relu, memory->quantised, memory->scales);
        return;
    }
#endif
    (void)memory;
    multiply_float32(x, rows, stride, w, out, out_stride, relu);
}

/* out = LayerNorm(x), of d numbers; `norm` has d weights, then d biases. Both may be the same array. */
INLINE void norm_row(const float *x, int64_t d, const float *norm, float *out) {
    vec sum = {0}, squares = {0};
    for (int64_t k = 0; k < d; k += LANES) sum += CV(x + k);
    float mean = sum_lanes(sum) / d;
    for (int64_t k = 0; k < d; k += LANES) {
        vec off = CV(x + k) - mean;
        squares += off * off;
    }
    float by = 1.0f / __builtin_sqrtf(sum_lanes(squares) / d + 1e-5f);
    for (int64_t k = 0; k < d; k += LANES) V(out + k) = (CV(x + k) - mean) * by * CV(norm + k) + CV(norm + d + k);
}

/* ---- embeddings ---- */

INLINE void look_up(const Table *table, int64_t id, float *out) {
    if (table->scale) {
        const int8_t *row = (const int8_t *)table->rows + id * table->width;
        float scale = table->scale[id];
        for (int64_t k = 0; k < table->width; k++) out[k] = row[k] * scale;
    } else {
        memcpy(out, (const float *)table->rows + id * table->width, sizeof(float) * table->width);
    }
}

/* Tables are larger than the caches, so rows are prefetched some steps before they are used. */
#define AHEAD 12
INLINE void prefetch(const Table *table, const int64_t *ids, int64_t at, int64_t end) {
    if (at + AHEAD >= end) return;
    int64_t id = ids[at + AHEAD], width = table->width * (table->scale ? 1 : sizeof(float));
    const char *row = (const char *)table->rows + id * width;
    __builtin_prefetch(row);
    __builtin_prefetch(row + width - 1);
    if (table->scale) __builtin_prefetch(table->scale + id);
}

/* Set row[n..end) to zero: int8 products take inputs four at a time. */
INLINE void zero_pad(float *row, int64_t n, int64_t end) {
    for (; n < end; n++) row[n] = 0;
}

#endif
