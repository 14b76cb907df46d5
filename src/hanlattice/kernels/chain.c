/* Linear-chain decoding: the best tags of a sentence (Viterbi), their entities, and the probability of each entity.
 *
 * As in decoders/structs/decoding.py, sums run in probability space and are rescaled at every step. There are Y tags;
 * rows are padded to whole vectors (`stride`) with tags that no transition leads to.
 */

#include <stdlib.h>
#include <string.h>

#include "texts.h"
#include "vectors.h"

typedef struct { /* tables lead from the tag of the row to the tag of the column, "back" tables the other way */
    int64_t n_tags, stride;
    const float *start, *end, *transitions, *transitions_back; /* scores */
    const double *opening, *closing;                           /* exp of start and end */
    const double *moves, *moves_back;                          /* exp of transitions */
    const double *joined, *between, *between_back;             /* moves within an entity, and all other moves */
    const int64_t *label;                                      /* of each tag, -1 for none */
} Chain;

const int64_t sizeof_Chain = sizeof(Chain), sizeof_Found = sizeof(Found); /* as kernels/structs.py has them */

#define BLOCK 16 /* tags whose scores are computed together; rows are padded to a multiple, see native/chain.py */
#define VECTORS (BLOCK / LANES)
#define DOUBLE_VECTORS (BLOCK / DOUBLES)

static const double LARGEST = 1e30; /* as in decoders/structs/decoding.py */

static float largest(const float *x, int64_t n) {
    float most = x[0];
    int64_t i = 0;
    if (n >= LANES) {
        vec each = CV(x);
        for (i = LANES; i + LANES <= n; i += LANES) each = maximum(each, CV(x + i));
        for (int64_t by = LANES / 2; by; by /= 2) each = maximum(each, swap_lanes(each, by));
        most = each[0];
    }
    for (; i < n; i++) most = x[i] > most ? x[i] : most;
    return most;
}

/* The first place of the largest number. */
static int64_t argmax(const float *x, int64_t n) {
    const float most = largest(x, n);
    int64_t i = 0;
    while (i + 1 < n && x[i] < most) i++;
    return i;
}

/* The best sequence of n tags; `score` is scratch memory for n rows. */
static void best_tags(const Chain *c, const float *emissions, int64_t width, int64_t n, float *score, int64_t *tags) {
    int64_t y = c->stride;
    for (int64_t k = 0; k < y; k += LANES) V(score + k) = CV(c->start + k) + CV(emissions + k);
    for (int64_t t = 1; t < n; t++) {
        const float *before = score + (t - 1) * y;
        for (int64_t k = 0; k < y; k += BLOCK) {
            vec best[VECTORS];
            UNROLL for (int64_t v = 0; v < VECTORS; v++) best[v] = before[0] + CV(c->transitions + k + v * LANES);
            for (int64_t from = 1; from < c->n_tags; from++) {
                const float *row = c->transitions + from * y + k;
                UNROLL for (int64_t v = 0; v < VECTORS; v++) best[v] = maximum(best[v], before[from] + CV(row + v * LANES));
            }
            UNROLL for (int64_t v = 0; v < VECTORS; v++)
                V(score + t * y + k + v * LANES) = best[v] + CV(emissions + t * width + k + v * LANES);
        }
    }
    float *last = score + (n - 1) * y;
    for (int64_t k = 0; k < y; k += LANES) V(last + k) += CV(c->end + k);
    tags[n - 1] = argmax(last, c->n_tags);
    for (int64_t t = n - 1; t > 0; t--) {
        float *before = score + (t - 1) * y;
        for (int64_t k = 0; k < y; k += LANES) V(before + k) += CV(c->transitions_back + tags[t] * y + k);
        tags[t - 1] = argmax(before, c->n_tags);
    }
}

/* out = row * table, multiplied by `by` element by element unless it is NULL. */
INLINE void step(const double *row, const double *table, int64_t n, int64_t y, const double *by, double *out) {
    for (int64_t k = 0; k < y; k += BLOCK) {
        dvec sum[DOUBLE_VECTORS];
        UNROLL for (int64_t v = 0; v < DOUBLE_VECTORS; v++) sum[v] = (dvec){0};
        for (int64_t i = 0; i < n; i++)
            UNROLL for (int64_t v = 0; v < DOUBLE_VECTORS; v++) sum[v] += row[i] * CD(table + i * y + k + v * DOUBLES);
        UNROLL for (int64_t v = 0; v < DOUBLE_VECTORS; v++) {
            if (by) sum[v] *= CD(by + k + v * DOUBLES);
            D(out + k + v * DOUBLES) = sum[v];
        }
    }
}

/* x *= by, element by element. */
INLINE void scale(double *x, double by, int64_t n) {
    for (int64_t k = 0; k < n; k += DOUBLES) D(x + k) *= by;
}

static double sum_of(const double *x, int64_t n) {
    dvec sums = {0};
    double sum = 0;
    for (int64_t k = 0; k < n; k += DOUBLES) sums += CD(x + k);
    for (int i = 0; i < DOUBLES; i++) sum += sums[i];
    return sum;
}

typedef struct { /* forward, backward, and rescaled emission probabilities; n rows each */
    double *alpha, *beta, *emissions;
} Messages;

/* The forward-backward algorithm. */
static void messages(const Chain *c, const float *emissions, int64_t width, int64_t n, Messages m) {
    int64_t y = c->stride;
    double product[y];
    for (int64_t t = 0; t < n; t++) {
        const float *e = emissions + t * width;
        double *share = m.emissions + t * y, *alpha = m.alpha + t * y;
        vec most = broadcast(largest(e, c->n_tags));
        for (int64_t k = 0; k < y; k += LANES) {
            float row[LANES];
            V(row) = vec_exp(CV(e + k) - most);
            for (int l = 0; l < LANES; l++) share[k + l] = k + l < c->n_tags ? row[l] : 0;
        }
        if (t)
            step(alpha - y, c->moves, c->n_tags, y, share, alpha);
        else
            for (int64_t k = 0; k < y; k++) alpha[k] = c->opening[k] * share[k];
        double by = 1 / sum_of(alpha, y);
        scale(alpha, by, y);
        scale(share, by, y);
    }
    double *beta = m.beta + (n - 1) * y, closing = 0;
    const double *alpha = m.alpha + (n - 1) * y;
    for (int64_t k = 0; k < c->n_tags; k++) closing += alpha[k] * c->closing[k];
    for (int64_t k = 0; k < y; k++) beta[k] = c->closing[k] / closing;
    for (int64_t t = n - 1; t > 0; t--, beta -= y) {
        for (int64_t k = 0; k < y; k++) product[k] = beta[k] * m.emissions[t * y + k];
        step(product, c->moves_back, c->n_tags, y, NULL, beta - y);
        for (int64_t k = 0; k < y; k++)
            if (beta[k - y] > LARGEST) beta[k - y] = LARGEST;
    }
}

/* The probability that the characters [start, end) are exactly one entity of the label. */
static double probability(const Chain *c, Messages m, int64_t n, int64_t start, int64_t end, int64_t label) {
    int64_t y = c->stride;
    double state[y], next[y], closed[y];
    if (start)
        step(m.alpha + (start - 1) * y, c->between, c->n_tags, y, m.emissions + start * y, state);
    else
        memcpy(state, m.alpha, sizeof(state));
    for (int64_t k = 0; k < c->n_tags; k++)
        if (c->label[k] != label) state[k] = 0;
    for (int64_t t = start + 1; t < end; t++) {
        step(state, c->joined, c->n_tags, y, m.emissions + t * y, next);
        memcpy(state, next, sizeof(state));
    }
    if (end < n) {
        for (int64_t k = 0; k < y; k++) next[k] = m.emissions[end * y + k] * m.beta[end * y + k];
        step(next, c->between_back, c->n_tags, y, NULL, closed);
    } else {
        memcpy(closed, m.beta + (n - 1) * y, sizeof(closed));
    }
    double sum = 0;
    for (int64_t k = 0; k < c->n_tags; k++) sum += state[k] * closed[k];
    return sum < 0 ? 0 : sum > 1 ? 1 : sum;
}

/* Write the entities of all sentences in order, and return their number, or -1 if memory is short. `found` has room for one for
 * every character. `width` is the length of a row of emissions, at least `stride`. */
int64_t chain_find(const void *chain, const Sentences *b, const float *emissions, int64_t width, Found *found) {
    const Chain *c = chain;
    int64_t longest = 1, y = c->stride, count = 0;
    const int64_t *first_char = b->first_char;
    for (int64_t i = 0; i < b->n; i++)
        if (first_char[i + 1] - first_char[i] > longest) longest = first_char[i + 1] - first_char[i];
    float *score = malloc(sizeof(float) * longest * y);
    int64_t *tags = malloc(sizeof(int64_t) * longest);
    double *sums = malloc(sizeof(double) * 3 * longest * y);
    if (!score || !tags || !sums) count = -1;
    Messages m = {sums, sums + longest * y, sums + 2 * longest * y};
    for (int64_t i = 0; i < b->n && count >= 0; i++) {
        const float *e = emissions + first_char[i] * width;
        int64_t n = first_char[i + 1] - first_char[i], first = count;
        if (!n) continue;
        best_tags(c, e, width, n, score, tags);
        for (int64_t t = 0; t < n; t++) {
            if (t && c->joined[tags[t - 1] * y + tags[t]] > 0)
                found[count - 1].end = t + 1;
            else if (c->label[tags[t]] >= 0)
                found[count++] = (Found){i, t, t + 1, c->label[tags[t]], 0};
        }
        if (count > first) messages(c, e, width, n, m);
        for (Found *one = found + first; one < found + count; one++)
            one->probability = probability(c, m, n, one->start, one->end, one->label);
    }
    free(score);
    free(tags);
    free(sums);
    return count;
}
