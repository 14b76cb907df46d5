/* A FLAT of one layer, for sentences laid end to end.
 *
 * The same numbers as the modules of torch, without padding and without a table of all pairs: a query walks over its
 * keys, each with the encoding of where it stands. Vectors of the model's size are kept with the heads innermost, so
 * that a product of a query and a key leaves the scores of all heads side by side.
 *
 * Letters: N characters and M words of all sentences together, D features, A heads.
 */

#include <string.h>
#if defined(__AVX512VNNI__)
#include <immintrin.h>
#endif

#include "vectors.h"

#define ROWS (LANES == 16 ? 12 : 6) /* of a block of a product: its sums fill most registers, */
#define COLUMNS (2 * LANES)         /* two vectors a row */
#define PARTS 64     /* vectors of a model's size, at most */
#define QUERIES 8    /* that attend together, */
#define KEYS 16      /* to so many keys at a time */
#define TOGETHER 240 /* characters that are worked on together, so that their activations stay near the core */

/* ---- what comes in; the same structures are in flat.py ---- */

typedef struct { /* rows of floats, or of bytes with a scale for each */
    const void *rows;
    const float *scale; /* NULL: floats */
    int64_t width;
} Table;

typedef struct { /* weights in panels of COLUMNS outputs; in 8 bits where there is a scale */
    const void *panels;
    const float *bias;
    const float *scale;  /* of each output, or NULL */
    const int32_t *zero; /* where sums of products of bytes begin, so that a byte of 128 counts for nothing */
    int64_t n_in, n_out;
} Linear;

typedef struct {
    Table chars, bigrams, words;
    Linear of_chars; /* to query, key, value, what is carried past attention, and shares in words composed of it */
    Linear of_words; /* to key and value */
    Linear output, inner, outer, emission;
    const float *u, *v; /* D */
    const float *attention_norm, *feed_forward_norm; /* D weights and D biases each */
    const float *word_length, *word_label; /* what they add to a composed word; NULL: words are not composed */
    const float *const *encodings; /* by length of the key: 2 * window rows of D */
    int64_t d_model, heads, window, longest, has_bigrams, has_output, carries_input, halves;
} Flat;

typedef struct {
    int64_t n;                     /* sentences */
    const int64_t *chars, *bigrams; /* N */
    const int64_t *first_char;     /* n + 1 */
    const int64_t *words, *start, *end, *label; /* M; a word covers the characters [start, end) of its sentence */
    const int64_t *first_word;     /* n + 1 */
} Sentences;

/* ---- linear layers ---- */

/* Sums are variables of their own, two vectors a row, so that every compiler keeps them in registers. */
#if LANES == 16
#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11)
#else
#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5)
#endif
#define WRITE(r) \
    write_row(out + (row + r) * out_stride + column, FINISHED(left_##r, 0, r), FINISHED(right_##r, LANES, r), relu);

INLINE void write_row(float *out, vec left, vec right, int relu) {
    V(out) = relu ? larger(left, (vec){0}) : left;
    V(out + LANES) = relu ? larger(right, (vec){0}) : right;
}

static NOINLINE void multiply_floats(const float *x, int64_t rows, int64_t stride, const Linear *w, float *out,
                                     int64_t out_stride, int relu) {
#define START(r) vec left_##r = {0}, right_##r = {0};
#define ADD(r)                                            \
    {                                                     \
        vec value = spread(given[r * stride + k]);        \
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
/* A row as bytes around 128; returns its scale. */
INLINE float to_bytes(const float *x, int64_t n, uint8_t *out) {
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

/* As an instruction of its own: compilers copy the sums of the intrinsic to and fro. */
#define ADD_PRODUCTS(sum, x, y) __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y))

static NOINLINE void multiply_bytes(const float *x, int64_t rows, int64_t stride, const Linear *w, float *out,
                                    int64_t out_stride, int relu, uint8_t *bytes, float *scales) {
    int64_t n_in = w->n_in;
    for (int64_t row = 0; row < rows; row++) scales[row] = to_bytes(x + row * stride, n_in, bytes + row * n_in);
#define START(r) __m512i left_##r = left_zero, right_##r = right_zero;
#define ADD(r)                                                 \
    {                                                          \
        int32_t four;                                          \
        memcpy(&four, given + r * n_in + k, sizeof(four));     \
        __m512i value = _mm512_set1_epi32(four);               \
        ADD_PRODUCTS(left_##r, value, left);                   \
        ADD_PRODUCTS(right_##r, value, right);                 \
    }
#define FINISHED(sum, lanes, r) \
    (vec)_mm512_cvtepi32_ps(sum) * spread(scales[row + r]) * CV(w->scale + column + lanes) + CV(w->bias + column + lanes)
    for (int64_t column = 0; column < w->n_out; column += COLUMNS) {
        __m512i left_zero = _mm512_loadu_si512(w->zero + column);
        __m512i right_zero = _mm512_loadu_si512(w->zero + column + LANES);
        for (int64_t row = 0; row < rows; row += ROWS) {
            const uint8_t *given = bytes + row * n_in;
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

typedef struct { /* memory to work in */
    float *x, *projected, *sums, *word, *of_word, *scores, *h, *hidden, *fed, *scales, *halves, *zeros;
    uint8_t *bytes;
} Scratch;

/* Rows are taken ROWS at a time, so there must be memory, whatever it holds, up to the next multiple. */
static void multiply(const float *x, int64_t rows, int64_t stride, const Linear *w, float *out, int64_t out_stride,
                     int relu, Scratch *s) {
#if defined(__AVX512VNNI__)
    if (w->scale) {
        multiply_bytes(x, rows, stride, w, out, out_stride, relu, s->bytes, s->scales);
        return;
    }
#endif
    (void)s;
    multiply_floats(x, rows, stride, w, out, out_stride, relu);
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

/* Rows lie far apart in tables larger than caches: they are asked for some steps before they are needed. */
#define AHEAD 12
INLINE void ask_for(const Table *table, const int64_t *ids, int64_t at, int64_t end) {
    if (at + AHEAD >= end) return;
    int64_t id = ids[at + AHEAD], width = table->width * (table->scale ? 1 : sizeof(float));
    const char *row = (const char *)table->rows + id * width;
    __builtin_prefetch(row);
    __builtin_prefetch(row + width - 1);
    if (table->scale) __builtin_prefetch(table->scale + id);
}

/* Bytes are taken four at a time. */
INLINE void fill_up(float *row, int64_t n, int64_t end) {
    for (; n < end; n++) row[n] = 0;
}

/* Sums of what characters add to the words that they are in, from the sentence's start to each. */
static void sum_up(const float *shares, int64_t stride, int64_t n, int64_t width, float *sums) {
    memset(sums, 0, sizeof(float) * width);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < width; k++) sums[(i + 1) * width + k] = sums[i * width + k] + shares[i * stride + k];
}

/* ---- attention ---- */

/* Lanes hold parts of A heads, over and over: the sum over parts in every part. */
INLINE vec gathered(vec x, int64_t heads) {
    for (int64_t by = LANES / 2; by >= heads; by /= 2) {
        ivec turned;
        for (int i = 0; i < LANES; i++) turned[i] = i ^ (int)by;
        x += __builtin_shuffle(x, turned);
    }
    return x;
}

/* Memory of a key. Where halves are used, everything is in floats of 16 bits (bfloat16), two in the place of one: of
 * keys, queries and encodings two neighbouring vectors, of values those of this key and the next, for every other. */
typedef struct {
    const float *key, *value, *encoding; /* the encoding for the first query */
} Key;

#if defined(__AVX512BF16__)
#define HALVES 1
INLINE vec two_in_one(vec low, vec high) {
    ivec rounded = (ivec)high + 0x8000, other = (ivec)low + 0x8000;
    return (vec)((rounded & (int)0xffff0000) | ((other >> 16) & 0xffff));
}
#else
#define HALVES 0
#define two_in_one(low, high) (low)
#endif

/* Of vectors at `x`, whole or two in one, into `out`. */
INLINE void pack(const float *x, const float *plus, int64_t parts, const int halves, float *out) {
    if (halves)
        for (int64_t p = 0; p < parts; p += 2)
            V(out + p / 2 * LANES) = two_in_one(CV(x + p * LANES) + CV(plus + p * LANES),
                                                CV(x + (p + 1) * LANES) + CV(plus + (p + 1) * LANES));
    else
        for (int64_t p = 0; p < parts; p++) V(out + p * LANES) = CV(x + p * LANES) + CV(plus + p * LANES);
}

INLINE vec with_product(vec sum, vec x, vec y, const int halves) {
#if HALVES
    if (halves) {
        __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(x), "vm"(y));
        return sum;
    }
#endif
    (void)halves;
    return sum + x * y;
}

/* Scores of a query for some keys, and the largest of each head so far. The encodings are `ahead` floats further on
 * than those for the first query. */
INLINE vec score(const float *content, const float *position, const Key *keys, int64_t n_keys, int64_t ahead,
                 const int64_t parts, const int64_t heads, const int halves, vec largest, float *scores) {
    vec by_content[PARTS], by_position[PARTS];
#pragma GCC unroll 16
    for (int64_t p = 0; p < parts; p++) {
        by_content[p] = CV(content + p * LANES);
        by_position[p] = CV(position + p * LANES);
    }
    for (int64_t j = 0; j < n_keys; j++) {
        const float *key = keys[j].key, *encoding = keys[j].encoding + ahead;
        __asm__("" : "+r"(encoding)); /* one address, not one for each of its parts */
        vec one = {0}, other = {0};
#pragma GCC unroll 16
        for (int64_t p = 0; p < parts; p++) {
            one = with_product(one, by_content[p], CV(key + p * LANES), halves);
            other = with_product(other, by_position[p], CV(encoding + p * LANES), halves);
        }
        vec sum = gathered(one + other, heads);
        memcpy(scores + j * heads, &sum, heads * sizeof(float));
        largest = larger(largest, sum);
    }
    return largest;
}

/* Scores to weights, of which the sums are returned; as many keys as fill whole vectors. */
INLINE vec weigh(float *scores, int64_t n_keys, const int64_t heads, vec largest) {
    vec sum = {0};
    V(scores + n_keys * heads) = spread(-1e30f); /* what fills the last vector weighs next to nothing */
    for (int64_t at = 0; at < n_keys * heads; at += LANES) {
        vec weight = exponential(CV(scores + at) - largest);
        V(scores + at) = weight;
        sum += weight;
    }
    return gathered(sum, heads);
}

/* Add to what a query read the values of some keys; the first is one of those that have them. */
INLINE void read_values(const float *weights, const Key *keys, int64_t n_keys, const int64_t parts,
                        const int64_t heads, const int halves, float *out) {
    vec sum[PARTS];
    ivec repeat;
    for (int l = 0; l < LANES; l++) repeat[l] = l % (int)heads;
#pragma GCC unroll 16
    for (int64_t p = 0; p < parts; p++) sum[p] = CV(out + p * LANES);
    for (int64_t j = 0; j < n_keys; j += halves ? 2 : 1) {
        vec weight = __builtin_shuffle(CV(weights + j * heads), repeat);
        if (halves) weight = two_in_one(weight, __builtin_shuffle(CV(weights + (j + 1) * heads), repeat));
        const float *value = keys[j].value;
#pragma GCC unroll 16
        for (int64_t p = 0; p < parts; p++) sum[p] = with_product(sum[p], weight, CV(value + p * LANES), halves);
    }
#pragma GCC unroll 16
    for (int64_t p = 0; p < parts; p++) V(out + p * LANES) = sum[p];
}

/* What each query of a sentence reads: D floats a row. Encodings for the next query are one row further on.
 *
 * A few queries go over a few keys before the next few keys are fetched, so that these and the encodings, of which
 * neighbouring queries share most, come from the nearest cache. */
INLINE void attend(const Flat *m, const float *queries, int64_t stride, int64_t n, const Key *keys, int64_t n_keys,
                   float *scores, float *out, const int64_t parts, const int64_t heads, const int halves) {
    const int64_t d = parts * LANES, met = halves ? parts / 2 : parts, width = met * LANES;
    const int64_t row = n_keys * heads + LANES;
    _Alignas(64) float content[QUERIES * PARTS * LANES], position[QUERIES * PARTS * LANES];
    for (int64_t first = 0; first < n; first += QUERIES) {
        int64_t asking = n - first < QUERIES ? n - first : QUERIES;
        vec largest[QUERIES], sum[QUERIES];
        for (int64_t i = 0; i < asking; i++) {
            pack(queries + (first + i) * stride, m->u, parts, halves, content + i * width);
            pack(queries + (first + i) * stride, m->v, parts, halves, position + i * width);
            for (int64_t k = 0; k < d; k += LANES) V(out + (first + i) * d + k) = (vec){0};
            largest[i] = spread(-1e30f);
        }
        for (int64_t j = 0; j < n_keys; j += KEYS) {
            int64_t asked = n_keys - j < KEYS ? n_keys - j : KEYS;
            for (int64_t i = 0; i < asking; i++)
                largest[i] = score(content + i * width, position + i * width, keys + j, asked, (first + i) * width,
                                   met, heads, halves, largest[i], scores + i * row + j * heads);
        }
        for (int64_t i = 0; i < asking; i++) sum[i] = weigh(scores + i * row, n_keys, heads, largest[i]);
        for (int64_t j = 0; j < n_keys; j += KEYS) {
            int64_t asked = n_keys - j < KEYS ? n_keys - j : KEYS;
            for (int64_t i = 0; i < asking; i++)
                read_values(scores + i * row + j * heads, keys + j, asked, parts, heads, halves,
                            out + (first + i) * d);
        }
        for (int64_t i = 0; i < asking; i++)
            for (int64_t k = 0; k < d; k += LANES) V(out + (first + i) * d + k) /= sum[i];
    }
}

/* `key` and `value` of all keys, which lie D apart in rows of floats, made halves in memory of their own. */
static void halve(Key *keys, int64_t n_keys, int64_t parts, const float *zeros, float *memory) {
    int64_t d = parts * LANES;
    for (int64_t j = 0; j < n_keys; j += 2) {
        const float *value = keys[j].value, *next = j + 1 < n_keys ? keys[j + 1].value : zeros;
        for (int64_t k = 0; k < d; k += LANES) V(memory + k) = two_in_one(CV(value + k), CV(next + k));
        keys[j].value = memory;
        memory += d;
        for (int64_t both = j; both < j + 2 && both < n_keys; both++, memory += d / 2) {
            pack(keys[both].key, zeros, parts, 1, memory);
            keys[both].key = memory;
        }
    }
}

static NOINLINE void attend_any(const Flat *m, const float *queries, int64_t stride, int64_t n, Key *keys,
                                int64_t n_keys, Scratch *s, float *out) {
    int64_t parts = m->d_model / LANES;
    if (m->halves) halve(keys, n_keys, parts, s->zeros, s->halves);
    /* Sizes that are known beforehand stay in registers. */
    if (parts == 10 && m->heads == 8 && m->halves)
        attend(m, queries, stride, n, keys, n_keys, s->scores, out, 10, 8, HALVES);
    else if (parts == 10 && m->heads == 8)
        attend(m, queries, stride, n, keys, n_keys, s->scores, out, 10, 8, 0);
    else if (m->halves)
        attend(m, queries, stride, n, keys, n_keys, s->scores, out, parts, m->heads, HALVES);
    else
        attend(m, queries, stride, n, keys, n_keys, s->scores, out, parts, m->heads, 0);
}

/* out = norm(x + carried), or of twice x where nothing is carried. */
static NOINLINE void add_and_normalise(const float *x, const float *carried, int64_t stride, int64_t rows, int64_t d,
                              const float *norm, float *out) {
    for (int64_t i = 0; i < rows; i++) {
        const float *a = x + i * d, *b = carried ? carried + i * stride : a;
        float *y = out + i * d;
        vec sum = {0}, squares = {0};
        for (int64_t k = 0; k < d; k += LANES) {
            vec value = CV(a + k) + CV(b + k);
            V(y + k) = value;
            sum += value;
        }
        float mean = total(sum) / d;
        for (int64_t k = 0; k < d; k += LANES) {
            vec off = CV(y + k) - mean;
            squares += off * off;
        }
        float by = 1.0f / __builtin_sqrtf(total(squares) / d + 1e-5f);
        for (int64_t k = 0; k < d; k += LANES)
            V(y + k) = (CV(y + k) - mean) * by * CV(norm + k) + CV(norm + d + k);
    }
}

/* ---- a group of sentences ---- */

static int64_t whole(int64_t n, int64_t parts) { return (n + parts - 1) / parts * parts; }

static NOINLINE void embed_words(const Flat *m, const Sentences *b, int64_t sentence, int64_t base, Scratch *s) {
    int64_t width = m->words.width, d = m->d_model, stride = m->of_chars.n_out;
    int64_t c0 = b->first_char[sentence], n = b->first_char[sentence + 1] - c0;
    const float *shares = s->projected + (c0 - base) * stride + (m->carries_input ? 4 : 3) * d;
    if (m->word_length) sum_up(shares + 2 * width, stride, n, width, s->sums);
    int64_t w0 = b->first_word[sentence], w1 = b->first_word[sentence + 1];
    for (int64_t w = w0; w < w1; w++) {
        float *out = s->word + (w - w0) * m->of_words.n_in;
        ask_for(&m->words, b->words, w, b->first_word[b->n]);
        look_up(&m->words, b->words[w], out);
        fill_up(out, width, m->of_words.n_in);
        if (!m->word_length) continue;
        int64_t start = b->start[w], end = b->end[w], length = end - start;
        const float *first = shares + start * stride, *last = shares + (end - 1) * stride + width;
        const float *before = s->sums + start * width, *until = s->sums + end * width;
        const float *of_length = m->word_length + (length < m->longest ? length : m->longest) * width;
        const float *of_label = m->word_label + b->label[w] * width;
        float share = 1.0f / length;
        for (int64_t k = 0; k < width; k++)
            out[k] += first[k] + last[k] + (until[k] - before[k]) * share + of_length[k] + of_label[k];
    }
    multiply(s->word, w1 - w0, m->of_words.n_in, &m->of_words, s->of_word, m->of_words.n_out, 0, s);
}

INLINE Key key_at(const Flat *m, const float *key, int64_t start, int64_t end) {
    int64_t width = m->halves ? m->d_model / 2 : m->d_model;
    return (Key){key, key + m->d_model, m->encodings[end - start] + (m->window - start) * width};
}

static void read_group(const Flat *m, const Sentences *b, int64_t from, int64_t to, Key *keys, Scratch *s,
                       float *emissions) {
    int64_t base = b->first_char[from], rows = b->first_char[to] - base, d = m->d_model;
    int64_t n_in = m->of_chars.n_in, stride = m->of_chars.n_out;
    for (int64_t i = 0; i < rows; i++) {
        if (m->has_bigrams) ask_for(&m->bigrams, b->bigrams + base, i, rows);
        look_up(&m->chars, b->chars[base + i], s->x + i * n_in);
        if (m->has_bigrams) look_up(&m->bigrams, b->bigrams[base + i], s->x + i * n_in + m->chars.width);
        fill_up(s->x + i * n_in, m->chars.width + (m->has_bigrams ? m->bigrams.width : 0), n_in);
    }
    multiply(s->x, rows, n_in, &m->of_chars, s->projected, stride, 0, s);
    for (int64_t sentence = from; sentence < to; sentence++) {
        int64_t start = b->first_char[sentence] - base, n = b->first_char[sentence + 1] - base - start;
        int64_t w0 = b->first_word[sentence], n_words = b->first_word[sentence + 1] - w0;
        float *projected = s->projected + start * stride;
        if (n_words) embed_words(m, b, sentence, base, s);
        for (int64_t j = 0; j < n; j++)
            keys[j] = key_at(m, projected + j * stride + d, j, j + 1);
        for (int64_t j = 0; j < n_words; j++)
            keys[n + j] = key_at(m, s->of_word + j * m->of_words.n_out, b->start[w0 + j], b->end[w0 + j]);
        attend_any(m, projected, stride, n, keys, n + n_words, s, s->h + start * d);
    }
    float *attended = s->h;
    if (m->has_output) {
        multiply(s->h, rows, d, &m->output, s->fed, d, 0, s);
        attended = s->fed;
    }
    const float *carried = m->carries_input ? s->projected + 3 * d : NULL;
    add_and_normalise(attended, carried, stride, rows, d, m->attention_norm, s->h);
    multiply(s->h, rows, d, &m->inner, s->hidden, m->inner.n_out, 1, s);
    multiply(s->hidden, rows, m->inner.n_out, &m->outer, s->fed, d, 0, s);
    add_and_normalise(s->fed, m->carries_input ? s->h : NULL, d, rows, d, m->feed_forward_norm, s->fed);
    multiply(s->fed, rows, d, &m->emission, emissions + base * m->emission.n_out, m->emission.n_out, 0, s);
}

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* Bytes of memory to work in; laid out there, unless there is none yet. */
static int64_t lay_out(const Flat *m, const Sentences *b, float *memory, Scratch *s, Key **keys) {
    int64_t longest = 0, most_words = 0;
    for (int64_t i = 0; i < b->n; i++) {
        longest = most(longest, b->first_char[i + 1] - b->first_char[i]);
        most_words = most(most_words, b->first_word[i + 1] - b->first_word[i]);
    }
    int64_t rows = whole(most(longest, TOGETHER), ROWS), words = whole(most_words, ROWS), d = m->d_model;
    int64_t widest = most(most(m->of_chars.n_in, m->of_words.n_in), most(d, m->inner.n_out));
    int64_t sizes[] = {
        rows * m->of_chars.n_in, rows * m->of_chars.n_out, (longest + 1) * m->words.width,
        words * m->of_words.n_in, words * m->of_words.n_out, QUERIES * ((longest + most_words) * m->heads + LANES),
        rows * d, rows * m->inner.n_out, rows * d, most(rows, words),
        m->halves ? 2 * (longest + most_words + 1) * d : 0, d, (most(rows, words) * widest + 3) / 4,
    };
    enum { ARRAYS = sizeof(sizes) / sizeof(*sizes) };
    int64_t all = 0;
    for (int i = 0; i < ARRAYS; i++) all += sizes[i] = whole(sizes[i], LANES) + LANES;
    if (memory) {
        float *parts[ARRAYS], *at = memory;
        for (int i = 0; i < ARRAYS; at += sizes[i], i++) parts[i] = at;
        *s = (Scratch){parts[0], parts[1], parts[2], parts[3], parts[4], parts[5],
                       parts[6], parts[7], parts[8], parts[9], parts[10], parts[11], (uint8_t *)parts[12]};
        *keys = (Key *)at;
        memset(s->zeros, 0, sizeof(float) * d);
    }
    return all * sizeof(float) + sizeof(Key) * (longest + most_words + 1);
}

int64_t flat_memory(const Flat *m, const Sentences *b) { return lay_out(m, b, NULL, NULL, NULL); }

/* Emissions, N rows of `emission.n_out` and memory for ROWS more; `memory` is of as many bytes as `flat_memory` says,
 * whatever they hold, and begins where a line of the cache does. */
void flat_emissions(const Flat *m, const Sentences *b, float *memory, float *emissions) {
    Scratch s;
    Key *keys;
    lay_out(m, b, memory, &s, &keys);
    for (int64_t from = 0, to; from < b->n; from = to) {
        for (to = from + 1; to < b->n && b->first_char[to + 1] - b->first_char[from] <= TOGETHER; to++) {}
        read_group(m, b, from, to, keys, &s, emissions);
    }
}

/* Whether products of bytes, and of halves, are to be had. */
int has_bytes(void) {
#if defined(__AVX512VNNI__)
    return 1;
#else
    return 0;
#endif
}

int has_halves(void) { return HALVES; }

int lanes(void) { return LANES; }
