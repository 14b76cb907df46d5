/* FLAT with one layer, on concatenated sentences.
 *
 * It computes the same as the PyTorch modules, without padding and without an attention table of all pairs: a loop over
 * the keys of each query reads each key together with its position encoding. Vectors of size D are stored with the
 * heads innermost (feature 0 of all heads, feature 1 of all heads, ...). So lane i of a vector belongs to head i % A,
 * and a sum of products of a query and a key has the scores of all heads next to each other.
 *
 * Notation: N characters and M words of all sentences together, D features, A heads.
 */

#include <string.h>
#if defined(__AVX512VNNI__)
#include <immintrin.h>
#endif

#include "vectors.h"

/* A matrix product is computed in blocks of ROWS x COLUMNS outputs, whose sums fill most vector registers. */
#define ROWS (LANES == 16 ? 12 : 6)
#define COLUMNS (2 * LANES)
#define PARTS 64  /* largest number of vectors (parts) of D floats */
#define QUERIES 8 /* attention works on blocks of QUERIES x KEYS */
#define KEYS 16
#define GROUP 240 /* characters that go through the layer together, so that their activations stay in the cache */

/* ---- inputs ----
 *
 * kernels/structs.py declares the same structures. Their sizes, exported below, are compared when the library is
 * opened. */

typedef struct { /* an embedding table: rows of float32, or rows of int8 with a scale for each row */
    const void *rows;
    const float *scale; /* NULL: float32 */
    int64_t width;
} Table;

typedef struct { /* a linear layer; its weights are stored in panels of COLUMNS outputs, as int8 if it has scales */
    const void *panels;
    const float *bias;
    const float *scale;  /* one for each output, or NULL: float32 */
    const int32_t *zero; /* initial sums of int8 products: they cancel the zero point 128 of the inputs */
    int64_t n_in, n_out;
} Linear;

typedef struct {
    Table chars, bigrams, words;
    Linear of_chars; /* from an embedding: query, key, value, residual, and three summands of composed words */
    Linear of_words; /* from a word vector: key and value */
    Linear output, inner, outer, emission;
    const float *u, *v; /* biases of the query for content and position, D each */
    const float *attention_norm, *feed_forward_norm; /* D weights and D biases each */
    const float *word_length, *word_label; /* summands of composed words; NULL: words are not composed */
    const float *const *encodings; /* position encodings by length of the key: 2 * window rows of D */
    int64_t d_model, heads, window;
    int64_t longest; /* the last row of word_length; longer words share it */
    int64_t has_bigrams, has_output;
    int64_t carries_input; /* residual connections add the input of a sublayer; otherwise its own output */
    int64_t bf16;
} Flat;

typedef struct {
    int64_t n;                     /* sentences */
    const int64_t *chars, *bigrams; /* N */
    const int64_t *first_char;     /* n + 1 */
    const int64_t *words, *start, *end, *label; /* M; a word covers the characters [start, end) of its sentence */
    const int64_t *first_word;     /* n + 1 */
} Sentences;

/* ---- linear layers ---- */

/* Each sum is a variable of its own, two for each row, so that every compiler keeps them in registers. */
#if LANES == 16
#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#else
#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)
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
    for (int64_t column = 0; column < w->n_out; column += COLUMNS)
        for (int64_t row = 0; row < rows; row += ROWS) {
            const float *given = x + row * stride, *panel = (const float *)w->panels + column * w->n_in;
            EACH_ROW(START)
            for (int64_t k = 0; k < w->n_in; k++, panel += COLUMNS) {
                vec left = CV(panel), right = CV(panel + LANES);
                EACH_ROW(ADD)
            }
            EACH_ROW(WRITE)
        }
#undef START
#undef ADD
#undef FINISHED
}

#if defined(__AVX512VNNI__)
/* Quantise a row to uint8 with the zero point 128; returns its scale. */
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
        __m512i byte = _mm512_add_epi32(whole, _mm512_set1_epi32(128));
        _mm512_mask_cvtepi32_storeu_epi8(out + k, there, byte);
    }
    return scale;
}

/* Inline assembly, because compilers copy the sums between registers when they use the intrinsic. */
#define ADD_INT8_PRODUCTS(sum, x, y) __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y))

static NOINLINE void multiply_int8(const float *x, int64_t rows, int64_t stride, const Linear *w, float *out,
                                    int64_t out_stride, int relu, uint8_t *quantised, float *scales) {
    int64_t n_in = w->n_in;
    for (int64_t row = 0; row < rows; row++) scales[row] = quantise(x + row * stride, n_in, quantised + row * n_in);
#define START(r) __m512i left_##r = left_zero, right_##r = right_zero;
#define ADD(r)                                                 \
    {                                                          \
        int32_t four;                                          \
        memcpy(&four, given + r * n_in + k, sizeof(four));     \
        __m512i value = _mm512_set1_epi32(four);               \
        ADD_INT8_PRODUCTS(left_##r, value, left);                   \
        ADD_INT8_PRODUCTS(right_##r, value, right);                 \
    }
#define FINISHED(sum, lanes, r) \
    (vec)_mm512_cvtepi32_ps(sum) * broadcast(scales[row + r]) * CV(w->scale + column + lanes) + CV(w->bias + column + lanes)
    for (int64_t column = 0; column < w->n_out; column += COLUMNS) {
        __m512i left_zero = _mm512_loadu_si512(w->zero + column);
        __m512i right_zero = _mm512_loadu_si512(w->zero + column + LANES);
        for (int64_t row = 0; row < rows; row += ROWS) {
            const uint8_t *given = quantised + row * n_in;
            const int8_t *panel = (const int8_t *)w->panels + column * n_in;
            EACH_ROW(START)
            for (int64_t k = 0; k < n_in; k += 4, panel += 4 * COLUMNS) {
                __m512i left = _mm512_loadu_si512(panel), right = _mm512_loadu_si512(panel + 4 * LANES);
                EACH_ROW(ADD)
            }
            EACH_ROW(WRITE)
        }
    }
#undef START
#undef ADD
#undef FINISHED
}
#endif

/* A key in memory. With bf16, two bfloat16 numbers take the place of one float32. Keys, queries and encodings pack the
 * same lane of two neighbouring vectors. Values pack the same feature of two neighbouring keys; only the first key of
 * such a pair points to them. */
typedef struct {
    const float *key, *value, *encoding; /* the encoding for the first query of the sentence */
} Key;

typedef struct {          /* scratch memory. For the characters of a group: */
    float *embedded;      /* inputs of of_chars */
    float *projected;     /* outputs of of_chars */
    float *h;             /* attention, and the result of its LayerNorm */
    float *hidden;        /* inside the feed-forward network */
    float *fed;           /* outputs of linear layers of size D */
    /* For the words of a sentence: */
    float *prefix;        /* prefix sums of the summands of characters; see embed_words */
    float *word;          /* inputs of of_words */
    float *projected_word; /* outputs of of_words */
    /* For attention in a sentence: */
    Key *keys;            /* characters, then words */
    float *scores;        /* QUERIES rows */
    float *bf16_keys;     /* packed keys and values */
    float *zeros;         /* D */
    /* For int8 products: */
    uint8_t *quantised;   /* inputs */
    float *scales;        /* of the rows of the inputs */
} Scratch;

/* out = x W^T + b, with ReLU if `relu`. Rows are read and written ROWS at a time, so both arrays need memory up to
 * the next multiple of ROWS. */
static void multiply(const float *x, int64_t rows, int64_t stride, const Linear *w, float *out, int64_t out_stride,
                     int relu, Scratch *s) {
#if defined(__AVX512VNNI__)
    if (w->scale) {
        multiply_int8(x, rows, stride, w, out, out_stride, relu, s->quantised, s->scales);
        return;
    }
#endif
    (void)s;
    multiply_float32(x, rows, stride, w, out, out_stride, relu);
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

/* Prefix sums of the summands of characters: the sum over a word is the difference of two rows. */
static void prefix_sums(const float *summands, int64_t stride, int64_t n, int64_t width, float *sums) {
    memset(sums, 0, sizeof(float) * width);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < width; k++) sums[(i + 1) * width + k] = sums[i * width + k] + summands[i * stride + k];
}

/* ---- attention ---- */

/* Replaces each lane by the sum over all lanes of its head. Lane i belongs to head i % A. */
INLINE vec sum_by_head(vec x, int64_t heads) {
    for (int64_t by = LANES / 2; by >= heads; by /= 2) x += swap_lanes(x, by);
    return x;
}

#if defined(__AVX512BF16__)
#define HAS_BF16 1
/* Round to bfloat16: `low` in the lower 16 bits of each lane, `high` in the upper. */
INLINE vec pack_bf16(vec low, vec high) {
    ivec rounded = (ivec)high + 0x8000, other = (ivec)low + 0x8000;
    return (vec)((rounded & (int)0xffff0000) | ((other >> 16) & 0xffff));
}
#else
#define HAS_BF16 0
#define pack_bf16(low, high) (low)
#endif

/* out = x + plus, packed if `bf16`. */
INLINE void pack(const float *x, const float *plus, int64_t parts, const int bf16, float *out) {
    if (bf16)
        for (int64_t p = 0; p < parts; p += 2)
            V(out + p / 2 * LANES) = pack_bf16(CV(x + p * LANES) + CV(plus + p * LANES),
                                                CV(x + (p + 1) * LANES) + CV(plus + (p + 1) * LANES));
    else
        for (int64_t p = 0; p < parts; p++) V(out + p * LANES) = CV(x + p * LANES) + CV(plus + p * LANES);
}

/* sum + x * y; with bf16, two products in each lane. */
INLINE vec add_product(vec sum, vec x, vec y, const int bf16) {
#if HAS_BF16 && defined(__clang__)
    if (bf16) return (vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)x, (__m512bh)y);
#elif HAS_BF16
    if (bf16) {
        __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(x), "vm"(y));
        return sum;
    }
#endif
    (void)bf16;
    return sum + x * y;
}

/* Attention scores of one query for some keys. Returns for each head the maximum of `largest` and of these scores. The
 * encodings for this query are `ahead` floats after the encodings for the first query. */
INLINE vec score(const float *content, const float *position, const Key *keys, int64_t n_keys, int64_t ahead,
                 const int64_t parts, const int64_t heads, const int bf16, vec largest, float *scores) {
    vec by_content[PARTS], by_position[PARTS];
    UNROLL for (int64_t p = 0; p < parts; p++) {
        by_content[p] = CV(content + p * LANES);
        by_position[p] = CV(position + p * LANES);
    }
    for (int64_t j = 0; j < n_keys; j++) {
        const float *key = keys[j].key, *encoding = keys[j].encoding + ahead;
        __asm__("" : "+r"(encoding)); /* keeps the compiler from computing an address for each part */
        vec one = {0}, other = {0};
        UNROLL for (int64_t p = 0; p < parts; p++) {
            one = add_product(one, by_content[p], CV(key + p * LANES), bf16);
            other = add_product(other, by_position[p], CV(encoding + p * LANES), bf16);
        }
        vec sum = sum_by_head(one + other, heads);
        memcpy(scores + j * heads, &sum, heads * sizeof(float));
        largest = maximum(largest, sum);
    }
    return largest;
}

/* Replace scores by exp(score - largest); returns the sum for each head. */
INLINE vec exp_scores(float *scores, int64_t n_keys, const int64_t heads, vec largest) {
    vec sum = {0};
    V(scores + n_keys * heads) = broadcast(-1e30f); /* padding of the last vector: its exp is nearly 0 */
    for (int64_t at = 0; at < n_keys * heads; at += LANES) {
        vec weight = vec_exp(CV(scores + at) - largest);
        V(scores + at) = weight;
        sum += weight;
    }
    return sum_by_head(sum, heads);
}

/* out += the weighted sum of the values of some keys. With bf16 the index of the first key has to be even. */
INLINE void read_values(const float *weights, const Key *keys, int64_t n_keys, const int64_t parts,
                        const int64_t heads, const int bf16, float *out) {
    vec sum[PARTS];
    UNROLL for (int64_t p = 0; p < parts; p++) sum[p] = CV(out + p * LANES);
    for (int64_t j = 0; j < n_keys; j += bf16 ? 2 : 1) {
        vec weight = repeat_lanes(CV(weights + j * heads), heads);
        if (bf16) weight = pack_bf16(weight, repeat_lanes(CV(weights + (j + 1) * heads), heads));
        const float *value = keys[j].value;
        UNROLL for (int64_t p = 0; p < parts; p++) sum[p] = add_product(sum[p], weight, CV(value + p * LANES), bf16);
    }
    UNROLL for (int64_t p = 0; p < parts; p++) V(out + p * LANES) = sum[p];
}

/* Attention of all queries of a sentence; rows of `out` have D floats. The encodings of a key for the next query are in
 * the next row.
 *
 * It works in blocks of QUERIES x KEYS, so that the keys and their encodings, most of which neighbouring queries share,
 * stay in the first-level cache. */
INLINE void attend(const Flat *m, const float *queries, int64_t stride, int64_t n, const Key *keys, int64_t n_keys,
                   float *scores, float *out, const int64_t parts, const int64_t heads, const int bf16) {
    const int64_t d = parts * LANES, vectors = bf16 ? parts / 2 : parts, width = vectors * LANES;
    const int64_t row = n_keys * heads + LANES;
    _Alignas(64) float content[QUERIES * PARTS * LANES], position[QUERIES * PARTS * LANES];
    for (int64_t first = 0; first < n; first += QUERIES) {
        int64_t n_queries = n - first < QUERIES ? n - first : QUERIES;
        vec largest[QUERIES], sum[QUERIES];
        for (int64_t i = 0; i < n_queries; i++) {
            pack(queries + (first + i) * stride, m->u, parts, bf16, content + i * width);
            pack(queries + (first + i) * stride, m->v, parts, bf16, position + i * width);
            for (int64_t k = 0; k < d; k += LANES) V(out + (first + i) * d + k) = (vec){0};
            largest[i] = broadcast(-1e30f);
        }
        for (int64_t j = 0; j < n_keys; j += KEYS) {
            int64_t n_block = n_keys - j < KEYS ? n_keys - j : KEYS;
            for (int64_t i = 0; i < n_queries; i++)
                largest[i] = score(content + i * width, position + i * width, keys + j, n_block, (first + i) * width,
                                   vectors, heads, bf16, largest[i], scores + i * row + j * heads);
        }
        for (int64_t i = 0; i < n_queries; i++) sum[i] = exp_scores(scores + i * row, n_keys, heads, largest[i]);
        for (int64_t j = 0; j < n_keys; j += KEYS) {
            int64_t n_block = n_keys - j < KEYS ? n_keys - j : KEYS;
            for (int64_t i = 0; i < n_queries; i++)
                read_values(scores + i * row + j * heads, keys + j, n_block, parts, heads, bf16,
                            out + (first + i) * d);
        }
        for (int64_t i = 0; i < n_queries; i++)
            for (int64_t k = 0; k < d; k += LANES) V(out + (first + i) * d + k) /= sum[i];
    }
}

/* Pack the float32 keys and values of all keys into `memory` as bfloat16. */
static void pack_keys(Key *keys, int64_t n_keys, int64_t parts, const float *zeros, float *memory) {
    int64_t d = parts * LANES;
    for (int64_t j = 0; j < n_keys; j += 2) {
        const float *value = keys[j].value, *next = j + 1 < n_keys ? keys[j + 1].value : zeros;
        for (int64_t k = 0; k < d; k += LANES) V(memory + k) = pack_bf16(CV(value + k), CV(next + k));
        keys[j].value = memory;
        memory += d;
        for (int64_t both = j; both < j + 2 && both < n_keys; both++, memory += d / 2) {
            pack(keys[both].key, zeros, parts, 1, memory);
            keys[both].key = memory;
        }
    }
}

/* Attention of the n characters of a sentence to its characters and words, s->keys. */
static NOINLINE void attend_to_all(const Flat *m, const float *queries, int64_t stride, int64_t n,
                                   int64_t n_keys, Scratch *s, float *out) {
    int64_t parts = m->d_model / LANES;
    if (m->bf16) pack_keys(s->keys, n_keys, parts, s->zeros, s->bf16_keys);
    /* With sizes known to the compiler, queries stay in registers. These are the sizes of the packaged model. */
    if (parts == 10 && m->heads == 8 && m->bf16)
        attend(m, queries, stride, n, s->keys, n_keys, s->scores, out, 10, 8, HAS_BF16);
    else if (parts == 10 && m->heads == 8)
        attend(m, queries, stride, n, s->keys, n_keys, s->scores, out, 10, 8, 0);
    else if (m->bf16)
        attend(m, queries, stride, n, s->keys, n_keys, s->scores, out, parts, m->heads, HAS_BF16);
    else
        attend(m, queries, stride, n, s->keys, n_keys, s->scores, out, parts, m->heads, 0);
}

/* out = LayerNorm(x + residual). Without a residual it is LayerNorm(x + x), as in the code of the FLAT authors. */
static NOINLINE void add_and_norm(const float *x, const float *residual, int64_t stride, int64_t rows, int64_t d,
                              const float *norm, float *out) {
    for (int64_t i = 0; i < rows; i++) {
        const float *a = x + i * d, *b = residual ? residual + i * stride : a;
        float *y = out + i * d;
        vec sum = {0}, squares = {0};
        for (int64_t k = 0; k < d; k += LANES) {
            vec value = CV(a + k) + CV(b + k);
            V(y + k) = value;
            sum += value;
        }
        float mean = sum_lanes(sum) / d;
        for (int64_t k = 0; k < d; k += LANES) {
            vec off = CV(y + k) - mean;
            squares += off * off;
        }
        float by = 1.0f / __builtin_sqrtf(sum_lanes(squares) / d + 1e-5f);
        for (int64_t k = 0; k < d; k += LANES)
            V(y + k) = (CV(y + k) - mean) * by * CV(norm + k) + CV(norm + d + k);
    }
}

/* ---- a group of sentences ---- */

static int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

/* Project the words of a sentence to keys and values.
 *
 * The vector of a composed word is its row of the table, plus a summand for its length and for its label, plus three
 * summands that of_chars computed: of its first character, of its last one, and the mean over all its characters. */
static NOINLINE void embed_words(const Flat *m, const Sentences *b, int64_t sentence, int64_t base, Scratch *s) {
    int64_t width = m->words.width, d = m->d_model, stride = m->of_chars.n_out;
    int64_t c0 = b->first_char[sentence], n = b->first_char[sentence + 1] - c0;
    const float *summands = s->projected + (c0 - base) * stride + (m->carries_input ? 4 : 3) * d;
    if (m->word_length) prefix_sums(summands + 2 * width, stride, n, width, s->prefix);
    int64_t w0 = b->first_word[sentence], w1 = b->first_word[sentence + 1];
    for (int64_t w = w0; w < w1; w++) {
        float *out = s->word + (w - w0) * m->of_words.n_in;
        prefetch(&m->words, b->words, w, b->first_word[b->n]);
        look_up(&m->words, b->words[w], out);
        zero_pad(out, width, m->of_words.n_in);
        if (!m->word_length) continue;
        int64_t start = b->start[w], end = b->end[w], length = end - start;
        const float *first = summands + start * stride, *last = summands + (end - 1) * stride + width;
        const float *before = s->prefix + start * width, *until = s->prefix + end * width;
        const float *of_length = m->word_length + (length < m->longest ? length : m->longest) * width;
        const float *of_label = m->word_label + b->label[w] * width;
        float by = 1.0f / length;
        for (int64_t k = 0; k < width; k++)
            out[k] += first[k] + last[k] + (until[k] - before[k]) * by + of_length[k] + of_label[k];
    }
    multiply(s->word, w1 - w0, m->of_words.n_in, &m->of_words, s->projected_word, m->of_words.n_out, 0, s);
}

INLINE Key key_at(const Flat *m, const float *key, int64_t start, int64_t end) {
    int64_t width = m->bf16 ? m->d_model / 2 : m->d_model;
    return (Key){key, key + m->d_model, m->encodings[end - start] + (m->window - start) * width};
}

/* Emissions of the sentences [from, to). */
static void read_group(const Flat *m, const Sentences *b, int64_t from, int64_t to, Scratch *s, float *emissions) {
    int64_t base = b->first_char[from], rows = b->first_char[to] - base, d = m->d_model;
    int64_t n_in = m->of_chars.n_in, stride = m->of_chars.n_out;
    for (int64_t i = 0; i < rows; i++) {
        if (m->has_bigrams) prefetch(&m->bigrams, b->bigrams + base, i, rows);
        look_up(&m->chars, b->chars[base + i], s->embedded + i * n_in);
        if (m->has_bigrams) look_up(&m->bigrams, b->bigrams[base + i], s->embedded + i * n_in + m->chars.width);
        zero_pad(s->embedded + i * n_in, m->chars.width + (m->has_bigrams ? m->bigrams.width : 0), n_in);
    }
    multiply(s->embedded, rows, n_in, &m->of_chars, s->projected, stride, 0, s);
    for (int64_t sentence = from; sentence < to; sentence++) {
        int64_t start = b->first_char[sentence] - base, n = b->first_char[sentence + 1] - base - start;
        int64_t w0 = b->first_word[sentence], n_words = b->first_word[sentence + 1] - w0;
        float *projected = s->projected + start * stride;
        if (n_words) embed_words(m, b, sentence, base, s);
        for (int64_t j = 0; j < n; j++)
            s->keys[j] = key_at(m, projected + j * stride + d, j, j + 1);
        for (int64_t j = 0; j < n_words; j++)
            s->keys[n + j] = key_at(m, s->projected_word + j * m->of_words.n_out, b->start[w0 + j], b->end[w0 + j]);
        attend_to_all(m, projected, stride, n, n + n_words, s, s->h + start * d);
    }
    float *attended = s->h;
    if (m->has_output) {
        multiply(s->h, rows, d, &m->output, s->fed, d, 0, s);
        attended = s->fed;
    }
    const float *residual = m->carries_input ? s->projected + 3 * d : NULL;
    add_and_norm(attended, residual, stride, rows, d, m->attention_norm, s->h);
    multiply(s->h, rows, d, &m->inner, s->hidden, m->inner.n_out, 1, s);
    multiply(s->hidden, rows, m->inner.n_out, &m->outer, s->fed, d, 0, s);
    add_and_norm(s->fed, m->carries_input ? s->h : NULL, d, rows, d, m->feed_forward_norm, s->fed);
    multiply(s->fed, rows, d, &m->emission, emissions + base * m->emission.n_out, m->emission.n_out, 0, s);
}

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

/* Assign the parts of the scratch memory; returns its size in bytes. Without `memory` it only computes the size. */
static int64_t lay_out(const Flat *m, const Sentences *b, char *memory, Scratch *s) {
    int64_t longest = 0, most_words = 0;
    for (int64_t i = 0; i < b->n; i++) {
        longest = max_of(longest, b->first_char[i + 1] - b->first_char[i]);
        most_words = max_of(most_words, b->first_word[i + 1] - b->first_word[i]);
    }
    int64_t rows = round_up(max_of(longest, GROUP), ROWS), words = round_up(most_words, ROWS);
    int64_t n_keys = longest + most_words + 1, d = m->d_model;
    int64_t widest = max_of(max_of(m->of_chars.n_in, m->of_words.n_in), max_of(d, m->inner.n_out));
    Arena arena = {memory, 0};
    s->embedded = take_floats(&arena, rows * m->of_chars.n_in);
    s->projected = take_floats(&arena, rows * m->of_chars.n_out);
    s->prefix = take_floats(&arena, (longest + 1) * m->words.width);
    s->word = take_floats(&arena, words * m->of_words.n_in);
    s->projected_word = take_floats(&arena, words * m->of_words.n_out);
    s->scores = take_floats(&arena, QUERIES * ((longest + most_words) * m->heads + LANES));
    s->h = take_floats(&arena, rows * d);
    s->hidden = take_floats(&arena, rows * m->inner.n_out);
    s->fed = take_floats(&arena, rows * d);
    s->scales = take_floats(&arena, max_of(rows, words));
    s->bf16_keys = take_floats(&arena, m->bf16 ? 2 * n_keys * d : 0);
    s->zeros = take_floats(&arena, d);
    s->quantised = (uint8_t *)take_floats(&arena, (max_of(rows, words) * widest + 3) / 4);
    s->keys = take(&arena, sizeof(Key) * n_keys);
    return arena.used;
}

/* The size in bytes of the scratch memory for some sentences. */
int64_t flat_memory(const Flat *m, const Sentences *b) {
    Scratch s;
    return lay_out(m, b, NULL, &s);
}

/* Write N rows of `emission.n_out` emissions; `emissions` needs memory for ROWS more rows. `memory` has as many bytes
 * as `flat_memory` returns, starts at a cache line, and need not be initialised. */
void flat_emissions(const Flat *m, const Sentences *b, char *memory, float *emissions) {
    Scratch s;
    lay_out(m, b, memory, &s);
    memset(s.zeros, 0, sizeof(float) * m->d_model);
    for (int64_t from = 0, to; from < b->n; from = to) {
        for (to = from + 1; to < b->n && b->first_char[to + 1] - b->first_char[from] <= GROUP; to++) {}
        read_group(m, b, from, to, &s, emissions);
    }
}

const int64_t sizeof_Table = sizeof(Table), sizeof_Linear = sizeof(Linear), sizeof_Flat = sizeof(Flat);
const int64_t sizeof_Sentences = sizeof(Sentences);

/* Whether this build has int8 and bfloat16 dot products. */
int has_int8(void) {
#if defined(__AVX512VNNI__)
    return 1;
#else
    return 0;
#endif
}

int has_bf16(void) { return HAS_BF16; }

int lanes(void) { return LANES; }
