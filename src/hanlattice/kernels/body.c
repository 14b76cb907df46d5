/* A character Transformer, which `hanlattice pretrain` makes (embeddings/body.py), on concatenated texts.
 *
 * Layers are pre-norm, positions are rotary. Nothing is padded: linear layers read the characters of several texts
 * together, and attention reads one text after the other.
 *
 * Notation: N characters of all texts together, boundaries included, D features, A heads.
 */

#include "layers.h"

#define GROUP 240 /* characters that go through the layers together, so that their activations stay in the cache */
#define QUERIES 4 /* attention works on tiles of queries and of PARTS vectors of values, whose sums stay in registers */
#define PARTS 2

/* ---- inputs; kernels/structs.py declares the same structures ---- */

typedef struct {
    const float *attention_norm, *feed_forward_norm; /* D weights and D biases each */
    Linear query_key_value; /* queries include the scale of the attention */
    Linear output, inner, outer;
} BodyLayer;

typedef struct {
    Table embedding;
    const BodyLayer *layers;
    const float *norm;         /* D weights and D biases */
    const float *cosine, *sine; /* of the positions, D / A / 2 each */
    int64_t n_layers, d_model, heads;
} Body;

typedef struct {
    int64_t n;            /* texts */
    const int64_t *ids;   /* N */
    const int64_t *first; /* n + 1: the first character of each text */
} Texts;

typedef struct {       /* scratch memory. For the characters of a group: */
    float *x;          /* the residual stream */
    float *h;          /* LayerNorm of it, or attention */
    float *projected;  /* queries, keys and values */
    float *hidden;     /* inside the feed-forward network */
    float *added;      /* what a sublayer adds */
    /* For attention in a text: */
    float *keys;       /* of a head, one row for each feature */
    float *scores;     /* QUERIES rows */
    Int8Memory int8;
} Scratch;

/* ---- attention ---- */

/* Rotate the queries and keys of a text by their positions: feature i of the first half of a head and feature i of the
 * second half are a pair. */
static NOINLINE void rotate(const Body *m, float *projected, int64_t n) {
    int64_t d = m->d_model, half = d / m->heads / 2;
    for (int64_t position = 0; position < n; position++) {
        const float *cosine = m->cosine + position * half, *sine = m->sine + position * half;
        float *row = projected + position * 3 * d;
        for (int64_t start = 0; start < 2 * d; start += 2 * half) {
            float *first = row + start, *second = first + half;
            for (int64_t k = 0; k < half; k++) {
                float a = first[k], b = second[k];
                first[k] = a * cosine[k] - b * sine[k], second[k] = b * cosine[k] + a * sine[k];
            }
        }
    }
}

/* Scores of QUERIES queries for all keys, two vectors of keys at a time. */
INLINE void score(const float *const *query, const float *keys, int64_t n_padded, int64_t width, float *scores) {
    for (int64_t j = 0; j < n_padded; j += 2 * LANES) {
        vec left[QUERIES], right[QUERIES];
        UNROLL for (int64_t i = 0; i < QUERIES; i++) left[i] = right[i] = (vec){0};
        for (int64_t k = 0; k < width; k++) {
            vec first = CV(keys + k * n_padded + j), second = CV(keys + k * n_padded + j + LANES);
            UNROLL for (int64_t i = 0; i < QUERIES; i++) {
                vec value = broadcast(query[i][k]);
                left[i] += value * first, right[i] += value * second;
            }
        }
        UNROLL for (int64_t i = 0; i < QUERIES; i++) {
            V(scores + i * n_padded + j) = left[i], V(scores + i * n_padded + j + LANES) = right[i];
        }
    }
}

/* Replace the scores of a query by its weights; returns 1 divided by their sum. */
INLINE float exp_scores(float *scores, int64_t n, int64_t n_padded) {
    for (int64_t j = n; j < n_padded; j++) scores[j] = -1e30f; /* its exp is nearly 0 */
    vec largest = CV(scores), sum = {0};
    for (int64_t j = LANES; j < n_padded; j += LANES) largest = maximum(largest, CV(scores + j));
    for (int64_t by = LANES / 2; by; by /= 2) largest = maximum(largest, swap_lanes(largest, by));
    for (int64_t j = 0; j < n_padded; j += LANES) {
        vec weight = exp_of_score(CV(scores + j) - largest);
        V(scores + j) = weight;
        sum += weight;
    }
    return 1.0f / sum_lanes(sum);
}

/* The weighted sums of `parts` vectors of all values, for QUERIES queries. All sums stay in registers. */
INLINE void read_values(const float *weights, int64_t n_padded, const float *values, int64_t stride, int64_t n,
                        const int64_t parts, vec sum[QUERIES][PARTS]) {
    UNROLL for (int64_t i = 0; i < QUERIES; i++)
        UNROLL for (int64_t p = 0; p < parts; p++) sum[i][p] = (vec){0};
    for (int64_t j = 0; j < n; j++, values += stride)
        UNROLL for (int64_t i = 0; i < QUERIES; i++) {
            vec weight = broadcast(weights[i * n_padded + j]);
            UNROLL for (int64_t p = 0; p < parts; p++) sum[i][p] += weight * CV(values + p * LANES);
        }
}

/* Attention of the n characters of a text to each other; rows of `out` have D floats. */
static NOINLINE void attend(const Body *m, const float *projected, int64_t n, Scratch *s, float *out) {
    int64_t d = m->d_model, stride = 3 * d, width = d / m->heads, n_padded = round_up(n, 2 * LANES);
    for (int64_t head = 0; head < d; head += width) {
        const float *keys = projected + d + head, *values = projected + 2 * d + head;
        memset(s->keys, 0, sizeof(float) * width * n_padded);
        for (int64_t j = 0; j < n; j++)
            for (int64_t k = 0; k < width; k++) s->keys[k * n_padded + j] = keys[j * stride + k];
        for (int64_t first = 0; first < n; first += QUERIES) {
            const float *query[QUERIES];
            float by[QUERIES];
            for (int64_t i = 0; i < QUERIES; i++)
                query[i] = projected + (first + i < n ? first + i : n - 1) * stride + head;
            score(query, s->keys, n_padded, width, s->scores);
            for (int64_t i = 0; i < QUERIES; i++) by[i] = exp_scores(s->scores + i * n_padded, n, n_padded);
            for (int64_t k = 0; k < width; k += PARTS * LANES) {
                vec sum[QUERIES][PARTS];
                int64_t parts = width - k < PARTS * LANES ? 1 : PARTS;
                if (parts == PARTS)
                    read_values(s->scores, n_padded, values + k, stride, n, PARTS, sum);
                else
                    read_values(s->scores, n_padded, values + k, stride, n, 1, sum);
                for (int64_t i = 0; i < QUERIES && first + i < n; i++)
                    for (int64_t p = 0; p < parts; p++)
                        V(out + (first + i) * d + head + k + p * LANES) = sum[i][p] * by[i];
            }
        }
    }
}

/* ---- layers ---- */

/* x += added, out = LayerNorm(x); nothing is added if it is NULL. */
static NOINLINE void add_and_norm(float *x, const float *added, int64_t rows, int64_t d, const float *norm, float *out) {
    for (int64_t i = 0; i < rows; i++, x += d, out += d) {
        if (added)
            for (int64_t k = 0; k < d; k += LANES) V(x + k) += CV(added + i * d + k);
        norm_row(x, d, norm, out);
    }
}

/* The vectors of the texts [from, to). */
static void read_group(const Body *m, const Texts *b, int64_t from, int64_t to, Scratch *s, float *out) {
    int64_t base = b->first[from], rows = b->first[to] - base, d = m->d_model;
    for (int64_t i = 0; i < rows; i++) look_up(&m->embedding, b->ids[base + i], s->x + i * d);
    const float *added = NULL;
    for (const BodyLayer *layer = m->layers; layer < m->layers + m->n_layers; layer++) {
        add_and_norm(s->x, added, rows, d, layer->attention_norm, s->h);
        multiply(s->h, rows, d, &layer->query_key_value, s->projected, 3 * d, 0, &s->int8);
        for (int64_t text = from; text < to; text++) {
            int64_t start = b->first[text] - base, n = b->first[text + 1] - base - start;
            rotate(m, s->projected + start * 3 * d, n);
            attend(m, s->projected + start * 3 * d, n, s, s->h + start * d);
        }
        multiply(s->h, rows, d, &layer->output, s->added, d, 0, &s->int8);
        add_and_norm(s->x, s->added, rows, d, layer->feed_forward_norm, s->h);
        multiply(s->h, rows, d, &layer->inner, s->hidden, layer->inner.n_out, 1, &s->int8);
        multiply(s->hidden, rows, layer->inner.n_out, &layer->outer, s->added, d, 0, &s->int8);
        added = s->added;
    }
    add_and_norm(s->x, added, rows, d, m->norm, out + base * d);
}

/* Assign the parts of the scratch memory; returns its size in bytes. Without `memory` it only computes the size. */
static int64_t lay_out(const Body *m, const Texts *b, char *memory, Scratch *s) {
    int64_t longest = 0, d = m->d_model;
    for (int64_t i = 0; i < b->n; i++) longest = max_of(longest, b->first[i + 1] - b->first[i]);
    int64_t rows = round_up(max_of(longest, GROUP), ROWS), n_padded = round_up(longest, 2 * LANES);
    int64_t hidden = m->layers[0].inner.n_out;
    Arena arena = {memory, 0};
    s->x = take_floats(&arena, rows * d);
    s->h = take_floats(&arena, rows * d);
    s->projected = take_floats(&arena, rows * 3 * d);
    s->hidden = take_floats(&arena, rows * hidden);
    s->added = take_floats(&arena, rows * d);
    s->keys = take_floats(&arena, d / m->heads * n_padded);
    s->scores = take_floats(&arena, QUERIES * n_padded);
    s->int8 = int8_memory(&arena, rows, max_of(d, hidden));
    return arena.used;
}

/* The size in bytes of the scratch memory for some texts. */
int64_t body_memory(const Body *m, const Texts *b) {
    Scratch s;
    return lay_out(m, b, NULL, &s);
}

/* Write N rows of D features. `memory` has as many bytes as `body_memory` returns, starts at a cache line, and need not
 * be initialised. No text is longer than the tables of positions. */
void body_vectors(const Body *m, const Texts *b, char *memory, float *out) {
    Scratch s;
    lay_out(m, b, memory, &s);
    for (int64_t from = 0, to; from < b->n; from = to) {
        for (to = from + 1; to < b->n && b->first[to + 1] - b->first[from] <= GROUP; to++) {}
        read_group(m, b, from, to, &s, out);
    }
}

const int64_t sizeof_BodyLayer = sizeof(BodyLayer), sizeof_Body = sizeof(Body), sizeof_Texts = sizeof(Texts);
