/* FLAT with one layer, on concatenated sentences.
 *
 * It computes the same as the PyTorch modules, without padding and without an attention table of all pairs: a loop over
 * the keys of each query reads each key together with its position encoding. Vectors of size D are stored with the
 * heads innermost (feature 0 of all heads, feature 1 of all heads, ...). So lane i of a vector belongs to head i % A,
 * and a sum of products of a query and a key has the scores of all heads next to each other.
 *
 * Notation: N characters and M words of all sentences together, D features, A heads.
 */

#include "layers.h"
#include "texts.h"

#define QUERIES 12 /* attention works on blocks of QUERIES x KEYS */
#define KEYS 16
#define TILE_QUERIES 3 /* and inside on tiles, whose sums stay in registers; see EXTRA_ROWS in native/flat.py */
#define TILE_KEYS 4
#define TILE_PARTS 4
#define GROUP 240 /* characters that go through the layer together, so that their activations stay in the cache */

/* ---- inputs; kernels/structs.py declares the same structures ---- */

typedef struct {
    Table chars, bigrams, words;
    Linear of_chars; /* from given vectors, character and bigram: query, key, value, residual, and three summands of composed words */
    Linear of_words; /* from a word vector: key and value */
    Linear output, inner, outer, emission;
    const float *u, *v; /* biases of the query for content and position, D each */
    const float *attention_norm, *feed_forward_norm; /* D weights and D biases each */
    const float *word_length, *word_label; /* summands of composed words; NULL: words are not composed */
    const float *const *encodings; /* position encodings by length of the key: 2 * window rows of D, and some more */
    const float *encoding_scale; /* of int16 encodings, by length of the key */
    int64_t d_model, heads, window;
    int64_t longest; /* the last row of word_length; longer words share it */
    int64_t given; /* size of vectors of characters from another kernel, or 0 */
    int64_t has_bigrams, has_output;
    int64_t carries_input; /* residual connections add the input of a sublayer; otherwise its own output */
    int64_t narrow; /* attention uses the 16-bit numbers of this build; see NARROW */
} Flat;

/* A key in memory. In 16 bits, two numbers take the place of one float32. Keys, queries and encodings pack the
 * same lane of two neighbouring vectors. Values pack the same feature of two neighbouring keys; only the first key of
 * such a pair points to them. */
typedef struct {
    const float *key, *value, *encoding; /* the encoding for the first query of the sentence */
    float scale;                         /* of the encoding, in int16 */
} Key;

typedef struct {          /* scratch memory. For the characters of a group: */
    const float *given;   /* vectors of all characters from another kernel */
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
    Key *keys;            /* characters, then words, up to a multiple of TILE_KEYS */
    float *queries;       /* QUERIES rows for content, then as many for position */
    float *scores;        /* QUERIES rows; see score_row */
    float *weights;       /* QUERIES rows */
    float *packed_keys;   /* keys and values in 16 bits */
    float *zeros;         /* D */
    float key_unit, value_unit; /* factors of keys and values in int16 */
    Int8Memory int8;
} Scratch;

/* Floats in a row of scores: the last tile and the last vector reach beyond the keys. */
static int64_t score_row(int64_t n_keys, int64_t heads) { return round_up(n_keys, TILE_KEYS) * heads + LANES; }

/* ---- embeddings ---- */

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

/* Numbers in attention: float32, or two numbers of 16 bits in each lane. NARROW is the type with 16 bits of this build. */
#define FLOAT32 0
#define BF16 1
#define INT16 2
#if defined(__AVX512BF16__)
#define NARROW BF16
#elif defined(__AVX512VNNI__) || (defined(__AVX2__) && LANES == 8)
#define NARROW INT16
#else
#define NARROW FLOAT32
#endif

/* Ranges of int16. D has at most 64 vectors, so a lane of a score sums up at most 128 products, and
 * 2 * 64 * 4095 * 4095 < 2^31. The weights of a query sum up to at most TOTAL before rounding, so to at most 2 * TOTAL
 * after it, whatever the number of keys, and 2 * 2^18 * 4095 < 2^31. */
#define LARGEST 4095.0f
#define LARGEST_WEIGHT 32767.0f
#define TOTAL 262144.0f

/* Two vectors in one: `low` in the lower 16 bits of each lane, `high` in the upper ones. */
INLINE vec pack_pair(vec low, vec high, const int type) {
    if (type == BF16) {
        ivec rounded = (ivec)high + 0x8000, other = (ivec)low + 0x8000;
        return (vec)((rounded & (int)0xffff0000) | ((other >> 16) & 0xffff));
    }
    const float shift = 12582912.0f; /* 1.5 * 2^23: adding it rounds; the lower bits of the sum are the integer */
    return (vec)(((ivec)(high + shift) << 16) | ((ivec)(low + shift) & 0xffff));
}

/* out = (x + plus) * by, in the numbers of `type`. */
INLINE void pack(const float *x, const float *plus, float by, int64_t parts, const int type, float *out) {
    if (type == FLOAT32)
        for (int64_t p = 0; p < parts; p++) V(out + p * LANES) = CV(x + p * LANES) + CV(plus + p * LANES);
    else
        for (int64_t p = 0; p < parts; p += 2)
            V(out + p / 2 * LANES) =
                pack_pair((CV(x + p * LANES) + CV(plus + p * LANES)) * by,
                          (CV(x + (p + 1) * LANES) + CV(plus + (p + 1) * LANES)) * by, type);
}

/* sum + x * y; with 16 bits, two products in each lane. The sums of int16 are int32. */
INLINE vec add_product(vec sum, vec x, vec y, const int type) {
#if NARROW == BF16 && defined(__clang__)
    if (type == BF16) return (vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)x, (__m512bh)y);
#elif NARROW == BF16
    if (type == BF16) {
        __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(x), "vm"(y));
        return sum;
    }
#elif NARROW == INT16 && defined(__AVX512VNNI__)
    if (type == INT16) {
        __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(x), "vm"(y));
        return sum;
    }
#elif NARROW == INT16 && defined(__AVXVNNI__)
    if (type == INT16) {
        __asm__("%{vex%} vpdpwssd %2, %1, %0" : "+x"(sum) : "x"(x), "xm"(y));
        return sum;
    }
#elif NARROW == INT16 && !defined(__clang__)
    if (type == INT16) {
        vec products;
        __asm__("vpmaddwd %2, %3, %1\n\tvpaddd %1, %0, %0" : "+x"(sum), "=&x"(products) : "xm"(y), "x"(x));
        return sum;
    }
#elif NARROW == INT16
    if (type == INT16) return (vec)_mm256_add_epi32((__m256i)sum, _mm256_madd_epi16((__m256i)x, (__m256i)y));
#endif
    (void)type;
    return sum + x * y;
}

/* A sum of products as float32. */
INLINE vec as_float(vec sum, const int type) { return type == INT16 ? __builtin_convertvector((ivec)sum, vec) : sum; }

/* Attention scores of TILE_QUERIES queries for TILE_KEYS keys. The encodings for the first of these queries are `ahead`
 * floats after the encodings for the first query of the sentence. All sums stay in registers. */
INLINE void score(const float *content, const float *position, const float *scale, const Key *keys, int64_t ahead,
                  const int64_t vectors, const int64_t heads, const int type, float *scores, int64_t row) {
    const int64_t width = vectors * LANES;
    vec sum[TILE_QUERIES][TILE_KEYS];
    const float *key[TILE_KEYS], *encoding[TILE_KEYS];
    UNROLL for (int64_t j = 0; j < TILE_KEYS; j++) {
        key[j] = keys[j].key, encoding[j] = keys[j].encoding + ahead;
        UNROLL for (int64_t i = 0; i < TILE_QUERIES; i++) sum[i][j] = (vec){0};
    }
    for (int64_t p = 0; p < width; p += LANES) {
        UNROLL for (int64_t j = 0; j < TILE_KEYS; j++)
            UNROLL for (int64_t i = 0; i < TILE_QUERIES; i++)
                sum[i][j] = add_product(sum[i][j], CV(content + i * width + p), CV(key[j] + p), type);
        UNROLL for (int64_t i = 0; i < TILE_QUERIES; i++)
            UNROLL for (int64_t j = 0; j < TILE_KEYS; j++)
                sum[i][j] = add_product(sum[i][j], CV(position + i * width + p), CV(encoding[j] + i * width + p), type);
    }
    UNROLL for (int64_t i = 0; i < TILE_QUERIES; i++)
        UNROLL for (int64_t j = 0; j < TILE_KEYS; j++) {
            vec done = as_float(sum[i][j], type);
            if (type == INT16) done *= scale[i] * keys[j].scale;
            done = sum_by_head(done, heads);
            memcpy(scores + i * row + j * heads, &done, heads * sizeof(float));
        }
}

/* Replace scores by exp(score - largest score of the head); returns the sum for each head. */
INLINE vec exp_scores(float *scores, int64_t n_keys, const int64_t heads) {
    vec largest = broadcast(-1e30f), sum = {0};
    V(scores + n_keys * heads) = largest; /* padding of the last vector: its exp is nearly 0 */
    for (int64_t at = 0; at < n_keys * heads; at += LANES) largest = maximum(largest, CV(scores + at));
    for (int64_t by = LANES / 2; by >= heads; by /= 2) largest = maximum(largest, swap_lanes(largest, by));
    for (int64_t at = 0; at < n_keys * heads; at += LANES) {
        vec weight = exp_of_score(CV(scores + at) - largest);
        V(scores + at) = weight;
        sum += weight;
    }
    return sum_by_head(sum, heads);
}

/* The weights of a query, `by` times the exponentials, in all lanes of a vector for each key, or for each two keys with
 * 16 bits. */
INLINE void weigh(const float *exponentials, int64_t n_keys, vec by, const int64_t heads, const int type, float *weights) {
    for (int64_t j = 0; j < n_keys; j += type == FLOAT32 ? 1 : 2, weights += LANES) {
        vec weight = repeat_lanes(CV(exponentials + j * heads), heads) * by;
        V(weights) = type == FLOAT32
            ? weight
            : pack_pair(weight, repeat_lanes(CV(exponentials + (j + 1) * heads), heads) * by, type);
    }
}

/* The weighted sums of `parts` parts of all values, for TILE_QUERIES queries. All sums stay in registers. */
INLINE void read_values(const float *weights, int64_t row, const Key *keys, int64_t n_keys, int64_t from,
                        const int64_t parts, const int type, vec sum[TILE_QUERIES][TILE_PARTS]) {
    UNROLL for (int64_t i = 0; i < TILE_QUERIES; i++)
        UNROLL for (int64_t p = 0; p < parts; p++) sum[i][p] = (vec){0};
    for (int64_t j = 0; j < n_keys; j += type == FLOAT32 ? 1 : 2, weights += LANES) {
        const float *value = keys[j].value + from * LANES;
        UNROLL for (int64_t p = 0; p < parts; p++)
            UNROLL for (int64_t i = 0; i < TILE_QUERIES; i++)
                sum[i][p] = add_product(sum[i][p], CV(weights + i * row), CV(value + p * LANES), type);
    }
}

/* The largest absolute value of x + plus. */
INLINE float largest_of(const float *x, const float *plus, int64_t n) {
    vec largest = {0};
    for (int64_t k = 0; k < n; k += LANES) largest = maximum(largest, absolute(CV(x + k) + CV(plus + k)));
    for (int64_t by = LANES / 2; by; by /= 2) largest = maximum(largest, swap_lanes(largest, by));
    return largest[0];
}

/* Pack a query for content and for position. Returns the factor of its scores in int16, for keys with the unit 1.
 *
 * The products with keys and those with encodings go into one sum, so their units have to agree: the unit of a key is
 * `key_unit` times that of its encoding, and the unit of the query for position `key_unit` times that for content. */
INLINE float pack_query(const Flat *m, const float *x, float key_unit, int64_t parts, const int type, float *content,
                        float *position) {
    float unit = 1.0f;
    if (type == INT16) {
        float by_content = largest_of(x, m->u, parts * LANES) * key_unit;
        float by_position = largest_of(x, m->v, parts * LANES);
        float largest = by_content > by_position ? by_content : by_position;
        if (largest > 0) unit = largest / LARGEST;
    }
    pack(x, m->u, type == INT16 ? key_unit / unit : 1.0f, parts, type, content);
    pack(x, m->v, type == INT16 ? 1.0f / unit : 1.0f, parts, type, position);
    return unit;
}

/* Attention of all queries of a sentence; rows of `out` have D floats. The encodings of a key for the next query are in
 * the next row.
 *
 * It works in blocks of QUERIES x KEYS, so that the keys and their encodings, most of which neighbouring queries share,
 * stay in the first-level cache, and inside in tiles whose sums stay in registers. The last tile may compute queries
 * beyond the sentence, which are not written. */
INLINE void attend(const Flat *m, const float *queries, int64_t stride, int64_t n, int64_t n_keys, const Scratch *s,
                   float *out, const int64_t parts, const int64_t heads, const int type) {
    const int64_t d = parts * LANES, vectors = type == FLOAT32 ? parts : parts / 2, width = vectors * LANES;
    const int64_t row = score_row(n_keys, heads), weight_row = (n_keys + 1) * LANES;
    float *content = s->queries, *position = s->queries + QUERIES * width, scale[QUERIES];
    vec finish[QUERIES];
    for (int64_t first = 0; first < n; first += QUERIES) {
        int64_t n_queries = n - first < QUERIES ? n - first : QUERIES;
        for (int64_t i = 0; i < round_up(n_queries, TILE_QUERIES); i++) {
            int64_t query = first + i < n ? first + i : n - 1;
            scale[i] = pack_query(m, queries + query * stride, s->key_unit, parts, type, content + i * width,
                                  position + i * width);
        }
        for (int64_t from = 0; from < n_keys; from += KEYS)
            for (int64_t i = 0; i < n_queries; i += TILE_QUERIES)
                for (int64_t j = from; j < n_keys && j < from + KEYS; j += TILE_KEYS)
                    score(content + i * width, position + i * width, scale + i, s->keys + j, (first + i) * width,
                          vectors, heads, type, s->scores + i * row + j * heads, row);
        for (int64_t i = 0; i < n_queries; i++) {
            vec sum = exp_scores(s->scores + i * row, n_keys, heads), by = 1.0f / sum;
            if (type == INT16) by = minimum(by * TOTAL, broadcast(LARGEST_WEIGHT));
            finish[i] = s->value_unit / (by * sum);
            weigh(s->scores + i * row, n_keys, by, heads, type, s->weights + i * weight_row);
        }
        for (int64_t from = 0; from < parts; from += TILE_PARTS)
            for (int64_t i = 0; i < n_queries; i += TILE_QUERIES) {
                vec sum[TILE_QUERIES][TILE_PARTS];
                const float *weights = s->weights + i * weight_row;
                int64_t n_parts = parts - from < TILE_PARTS ? 2 : TILE_PARTS;
                if (n_parts == TILE_PARTS)
                    read_values(weights, weight_row, s->keys, n_keys, from, TILE_PARTS, type, sum);
                else
                    read_values(weights, weight_row, s->keys, n_keys, from, 2, type, sum);
                for (int64_t r = 0; r < TILE_QUERIES && i + r < n_queries; r++)
                    for (int64_t p = 0; p < n_parts; p++) {
                        vec done = as_float(sum[r][p], type);
                        if (type == INT16) done *= finish[i + r];
                        V(out + (first + i + r) * d + (from + p) * LANES) = done;
                    }
            }
    }
}

/* The units of keys and values in int16: see pack_query. */
INLINE void set_units(int64_t n_keys, int64_t d, Scratch *s) {
    float key = 0, value = 0;
    for (int64_t j = 0; j < n_keys; j++) {
        float largest = largest_of(s->keys[j].key, s->zeros, d) / s->keys[j].scale;
        float of_value = largest_of(s->keys[j].value, s->zeros, d);
        key = largest > key ? largest : key, value = of_value > value ? of_value : value;
    }
    s->key_unit = key > 0 ? key / LARGEST : 1.0f, s->value_unit = value > 0 ? value / LARGEST : 1.0f;
}

/* Pack the float32 keys and values of all keys into `s->packed_keys`. */
INLINE void pack_keys(int64_t n_keys, int64_t parts, const int type, Scratch *s) {
    int64_t d = parts * LANES;
    float *memory = s->packed_keys;
    Key *keys = s->keys;
    if (type == INT16) set_units(n_keys, d, s);
    float by = type == INT16 ? 1.0f / s->value_unit : 1.0f;
    for (int64_t j = 0; j < n_keys; j += 2) {
        const float *value = keys[j].value, *next = j + 1 < n_keys ? keys[j + 1].value : s->zeros;
        for (int64_t k = 0; k < d; k += LANES) V(memory + k) = pack_pair(CV(value + k) * by, CV(next + k) * by, type);
        keys[j].value = memory;
        memory += d;
        for (int64_t both = j; both < j + 2 && both < n_keys; both++, memory += d / 2) {
            float of_key = type == INT16 ? 1.0f / (s->key_unit * keys[both].scale) : 1.0f;
            pack(keys[both].key, s->zeros, of_key, parts, type, memory);
            keys[both].key = memory;
        }
    }
}

/* Attention of the n characters of a sentence to its characters and words, s->keys. */
static NOINLINE void attend_to_all(const Flat *m, const float *queries, int64_t stride, int64_t n,
                                   int64_t n_keys, Scratch *s, float *out) {
    int64_t parts = m->d_model / LANES;
    if (m->narrow) pack_keys(n_keys, parts, NARROW, s);
    for (int64_t j = n_keys; j % TILE_KEYS; j++) s->keys[j] = s->keys[n_keys - 1]; /* for the last tile */
    /* With sizes known to the compiler, tiles need fewer instructions. These are the sizes of the packaged model. */
    if (parts == 160 / LANES && m->heads == 8 && m->narrow)
        attend(m, queries, stride, n, n_keys, s, out, 160 / LANES, 8, NARROW);
    else if (parts == 160 / LANES && m->heads == 8)
        attend(m, queries, stride, n, n_keys, s, out, 160 / LANES, 8, FLOAT32);
    else if (m->narrow)
        attend(m, queries, stride, n, n_keys, s, out, parts, m->heads, NARROW);
    else
        attend(m, queries, stride, n, n_keys, s, out, parts, m->heads, FLOAT32);
}

/* out = LayerNorm(x + residual). Without a residual it is LayerNorm(x + x), as in the code of the FLAT authors. */
static NOINLINE void add_and_norm(const float *x, const float *residual, int64_t stride, int64_t rows, int64_t d,
                                  const float *norm, float *out) {
    for (int64_t i = 0; i < rows; i++) {
        const float *a = x + i * d, *b = residual ? residual + i * stride : a;
        float *y = out + i * d;
        for (int64_t k = 0; k < d; k += LANES) V(y + k) = CV(a + k) + CV(b + k);
        norm_row(y, d, norm, y);
    }
}

/* ---- a group of sentences ---- */

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
    multiply(s->word, w1 - w0, m->of_words.n_in, &m->of_words, s->projected_word, m->of_words.n_out, 0, &s->int8);
}

INLINE Key key_at(const Flat *m, const float *key, int64_t start, int64_t end) {
    int64_t width = m->narrow ? m->d_model / 2 : m->d_model, length = end - start;
    return (Key){
        key, key + m->d_model, m->encodings[length] + (m->window - start) * width, m->encoding_scale[length]};
}

/* The vectors of character i, of which `end` are read, one after the other. */
static void embed_char(const Flat *m, const Sentences *b, const float *given, int64_t i, int64_t end, float *out) {
    int64_t at = m->given;
    if (at) memcpy(out, given + i * at, sizeof(float) * at);
    look_up(&m->chars, b->chars[i], out + at);
    at += m->chars.width;
    if (m->has_bigrams) {
        prefetch(&m->bigrams, b->bigrams, i, end);
        look_up(&m->bigrams, b->bigrams[i], out + at);
        at += m->bigrams.width;
    }
    zero_pad(out, at, m->of_chars.n_in);
}

/* Emissions of the sentences [from, to). */
static void read_group(const Flat *m, const Sentences *b, int64_t from, int64_t to, Scratch *s, float *emissions) {
    int64_t base = b->first_char[from], rows = b->first_char[to] - base, d = m->d_model;
    int64_t n_in = m->of_chars.n_in, stride = m->of_chars.n_out;
    for (int64_t i = -AHEAD; i < 0; i++) { /* the first rows */
        prefetch(&m->words, b->words, b->first_word[from] + i, b->first_word[to]);
        if (m->has_bigrams) prefetch(&m->bigrams, b->bigrams, base + i, base + rows);
    }
    for (int64_t i = 0; i < rows; i++) embed_char(m, b, s->given, base + i, base + rows, s->embedded + i * n_in);
    multiply(s->embedded, rows, n_in, &m->of_chars, s->projected, stride, 0, &s->int8);
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
        multiply(s->h, rows, d, &m->output, s->fed, d, 0, &s->int8);
        attended = s->fed;
    }
    const float *residual = m->carries_input ? s->projected + 3 * d : NULL;
    add_and_norm(attended, residual, stride, rows, d, m->attention_norm, s->h);
    multiply(s->h, rows, d, &m->inner, s->hidden, m->inner.n_out, 1, &s->int8);
    multiply(s->hidden, rows, m->inner.n_out, &m->outer, s->fed, d, 0, &s->int8);
    add_and_norm(s->fed, m->carries_input ? s->h : NULL, d, rows, d, m->feed_forward_norm, s->fed);
    multiply(s->fed, rows, d, &m->emission, emissions + base * m->emission.n_out, m->emission.n_out, 0, &s->int8);
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
    s->queries = take_floats(&arena, 2 * QUERIES * d);
    s->scores = take_floats(&arena, QUERIES * score_row(n_keys, m->heads));
    s->weights = take_floats(&arena, QUERIES * (n_keys + 1) * LANES);
    s->h = take_floats(&arena, rows * d);
    s->hidden = take_floats(&arena, rows * m->inner.n_out);
    s->fed = take_floats(&arena, rows * d);
    s->int8 = int8_memory(&arena, max_of(rows, words), widest);
    s->packed_keys = take_floats(&arena, m->narrow ? 2 * n_keys * d : 0);
    s->zeros = take_floats(&arena, d);
    s->keys = take(&arena, sizeof(Key) * round_up(n_keys, TILE_KEYS));
    return arena.used;
}

/* The length of a word that has no position encodings yet, or 0. */
static int64_t unknown_length(const Flat *m, const Sentences *b) {
    for (int64_t w = 0; w < b->first_word[b->n]; w++)
        if (!m->encodings[b->end[w] - b->start[w]]) return b->end[w] - b->start[w];
    return 0;
}

/* Write N rows of `emission.n_out` emissions; `emissions` needs memory for ROWS more rows. `given` has N rows, or is NULL.
 * `memory` starts at a cache line, and need not be initialised. Returns 0, or the number of bytes that are needed if `memory`
 * has less than that (`size`), or the negative length of words for which encodings are needed, or INT64_MIN if a sentence
 * is longer than the window; then nothing is written. */
int64_t flat_emissions(const Flat *m, const Sentences *b, const float *given, char *memory, int64_t size, float *emissions) {
    Scratch s;
    for (int64_t i = 0; i < b->n; i++)
        if (b->first_char[i + 1] - b->first_char[i] > m->window) return INT64_MIN;
    const int64_t needed = lay_out(m, b, memory, &s), unknown = unknown_length(m, b);
    if (unknown) return -unknown;
    if (needed > size) return needed;
    s.given = given;
    memset(s.zeros, 0, sizeof(float) * m->d_model);
    s.key_unit = s.value_unit = 1.0f;
    for (int64_t from = 0, to; from < b->n; from = to) {
        for (to = from + 1; to < b->n && b->first_char[to + 1] - b->first_char[from] <= GROUP; to++) {}
        read_group(m, b, from, to, &s, emissions);
    }
    return 0;
}

/* Write the entities of all sentences: the emissions of flat_emissions, decoded by chain_find, whose tags `chain` has. Returns
 * their number, or -1 if memory is short, or -2 if flat_emissions would not return 0. `found` is as in chain_find, the others
 * as in flat_emissions. */
int64_t flat_find(const Flat *m, const Sentences *b, const float *given, char *memory, int64_t size, float *emissions,
                  const void *chain, Found *found) {
    if (flat_emissions(m, b, given, memory, size, emissions)) return -2;
    return chain_find(chain, b, emissions, m->emission.n_out, found);
}

/* One linear layer alone: `out` has the same rows as `x`, and both have memory up to the next multiple of ROWS.
 * `quantised` has memory for the numbers of x and one vector more, `scales` for one number for each row of x. */
void flat_linear(const Linear *w, const float *x, int64_t rows, float *out, void *quantised, float *scales) {
    multiply(x, rows, w->n_in, w, out, w->n_out, 0, &(Int8Memory){quantised, scales});
}

const int64_t sizeof_Table = sizeof(Table), sizeof_Linear = sizeof(Linear), sizeof_Flat = sizeof(Flat);
const int64_t sizeof_Sentences = sizeof(Sentences);

/* What this build has for int8: how many inputs are multiplied and added up at a time, which is the order of the weights
 * in memory; 0 without int8 products. */
int int8_step(void) { return INT8_STEP; }

/* The stored number of the input 0 in int8 products. */
int int8_zero_point(void) { return ZERO_POINT; }

/* The largest number of int8 products, of inputs and weights. */
int int8_largest(void) { return LARGEST_INT8; }

/* The number of inputs of int8 products is a multiple of this. */
int int8_multiple(void) { return INT8_AT_ONCE * INT8_STEP; }

/* The 16-bit numbers of attention: 0 none, 1 bfloat16, 2 int16. */
int narrow_type(void) { return NARROW; }

int lanes(void) { return LANES; }
