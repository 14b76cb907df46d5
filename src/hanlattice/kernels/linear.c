/* The linear tagger: scores of tags from tables of features, the best tags, their entities, and training.
 *
 * A feature is a key of 64 bits. The features of a sentence are its character n-grams, the types of its characters, and
 * the lexicon words that cover a character. A model has rows of weights for its features, one weight for each tag. An
 * n-gram has a row for each position that it supports; the other features support one position:
 *
 *     window 2     n-gram  北 京         supports the positions from (its end - 2) to (its start + 2)
 *                  中 国 北 京 大 学
 *                      ^  ^  ^  ^
 *
 * Tags are in four groups of `lanes` columns: O and single, begin, inside, end. Label i is in the column i + 1 of each
 * group; column 0 is O in the first group and unused in the others. `fresh` tags (O, single, begin) follow `closed` tags
 * (O, single, end) with any labels; the others follow a begin or inside tag of their own label.
 */

#include <stdlib.h>
#include <string.h>

#include "texts.h"
#include "vectors.h"

/* An open hash table; a slot is free if its key is 0. `row` is the first of as many rows as the low POSITIONS bits of
 * `mask` have ones. The other bits of `mask`: see linear_follow. */
typedef struct {
    uint64_t key;
    uint32_t row, mask;
} Entry;

typedef struct {
    int64_t lanes, labels;                    /* columns of a group, a multiple of 8; labels < lanes */
    int64_t n_chars, n_kinds, window, longest; /* character ids, word kinds, see above; length of the longest n-gram */
    const uint8_t *types;                     /* of each character id, 1 to 7 */
    Entry *entries;
    int64_t slots;   /* a power of 2 */
    int64_t n_rows;
    const int8_t *rows;                       /* n_rows x 4 lanes */
    const int32_t *fresh;                     /* 2 lanes x 2 lanes: from closed tags (O and single, end) to fresh ones */
    const int32_t *inner;                     /* 4 x lanes: begin-inside, inside-inside, begin-end, inside-end */
    const int32_t *first, *last;              /* 2 lanes each: a fresh tag at the start, a closed tag at the end */
    double scale;                             /* a score is an integer times this number */
    const int32_t *of_types;                  /* rows of the features of types, see linear_types; or NULL: in `entries` */
    int64_t has_following;                    /* whether linear_follow was called */
} LinearModel;

typedef struct { /* weights and sums of squared gradients while training; small tables as in LinearModel, one after another */
    float *rows, *row_squares, *small, *small_squares;
    const int64_t *tags; /* the column of each character's gold tag */
    double rate, dropout;
    uint64_t seed;
} Learner;

const int64_t sizeof_LinearModel = sizeof(LinearModel), sizeof_Learner = sizeof(Learner); /* as kernels/structs.py has them */

#define GROUPS 4
#define AHEAD 32 /* uses between a prefetch and the use */
#define POSITIONS 8 /* bits of a mask for positions; the others are for the characters that follow */
#define FETCHED 16 /* keys between a prefetch and the use, when the table is made */
#define FOLLOWING (32 - POSITIONS)
#define FIVES (1 << 15) /* features of five types, and after these of three, in LinearModel.of_types */
#define THREES (1 << 9)
#define BOUNDARY 1u /* the id of a sentence's ends in n-grams; character id i is i + 2 */
#define TYPES ((uint64_t)0xFFFF << 48)   /* the first 16 bits of keys that are not n-grams */
#define TRIPLES ((uint64_t)0xFFFE << 48)
#define WORDS ((uint64_t)0xFFFD << 48)
#define BESIDE ((uint64_t)0xFFFC << 48)
#define LENGTHS 6 /* classes of word lengths: none, 1, 2, 3, 4, more */
#define NEVER (-(1 << 28))
#define SHIFTED 128 /* the best scores are shifted at every multiple of this position */
#define UNDER_THRESHOLD 1e-3f

typedef int8_t bytes __attribute__((vector_size(16), aligned(1), may_alias)); /* 16 weights */
typedef int16_t shorts __attribute__((vector_size(32), aligned(2), may_alias));

typedef int32_t ints __attribute__((vector_size(32), aligned(4), may_alias)); /* 8 scores; `lanes` is a multiple of 8 */
typedef float floats __attribute__((vector_size(32), aligned(4), may_alias));

typedef struct { /* a row that supports a position */
    int32_t position;
    uint32_t row;
} Use;

typedef struct { /* called for each feature: its key, the position that the first bit of its mask stands for, the number
                  * of bits. Returns whether longer n-grams with this prefix can have rows */
    const LinearModel *model;
    int64_t n;
    /* use */
    Use *uses;
    int64_t n_uses;
    /* count, select */
    const int64_t *tags;
    uint8_t *sketch;
    int64_t sketch_size, least, known;
} Visit;

static inline uint64_t hashed(uint64_t key) {
    key ^= key >> 32;
    key *= 0xD6E8FEB86659FD93u;
    key ^= key >> 29;
    key *= 0x9E3779B97F4A7C15u;
    return key ^ key >> 32;
}

/* The entry of a key, or a free slot; there is always a free slot. */
static inline Entry *entry_of(const LinearModel *m, uint64_t key) {
    uint64_t at = hashed(key) & (m->slots - 1);
    while (m->entries[at].key != key && m->entries[at].key) at = (at + 1) & (m->slots - 1);
    return m->entries + at;
}

static inline int popcount(uint32_t x) { return __builtin_popcount(x); }

static inline int use_entry(Visit *v, const Entry *e, int64_t position, int bits) {
    if (!e->key) return 0;
    uint32_t row = e->row, mask = e->mask;
    mask &= (1u << bits) - 1;
    if (mask) __builtin_prefetch(v->model->rows + (int64_t)row * GROUPS * v->model->lanes);
    while (mask) {
        int64_t at = position + __builtin_ctz(mask);
        mask &= mask - 1;
        if (at >= 0 && at < v->n) v->uses[v->n_uses++] = (Use){(int32_t)at, row};
        row++;
    }
    return 1;
}

static inline int use(Visit *v, uint64_t key, int64_t position, int bits) {
    return use_entry(v, entry_of(v->model, key), position, bits);
}

static inline uint64_t sketch_slot(const Visit *v, uint64_t key, int bit) {
    return hashed(key + 0x632BE59BD9B4E019u * (bit + 1)) & (v->sketch_size - 1);
}

/* Count the rows that support a character of an entity, or one beside it. */
static inline int count(Visit *v, uint64_t key, int64_t position, int bits) {
    for (int bit = 0; bit < bits; bit++) {
        int64_t at = position + bit;
        if (at < 0 || at >= v->n) continue;
        if (v->tags[at] || (at && v->tags[at - 1]) || (at + 1 < v->n && v->tags[at + 1])) {
            uint8_t *slot = v->sketch + sketch_slot(v, key, bit);
            *slot += *slot < 255;
        }
    }
    return 1;
}

/* Add the rows that were counted often enough, and all rows of lexicon words: there are few of them. */
static inline int select_rows(Visit *v, uint64_t key, int64_t position, int bits) {
    const int64_t least = key >= BESIDE && key < TRIPLES ? 0 : v->least;
    uint32_t mask = 0;
    for (int bit = 0; bit < bits; bit++) {
        int64_t at = position + bit;
        if (at >= 0 && at < v->n && v->sketch[sketch_slot(v, key, bit)] >= least) mask |= 1u << bit;
    }
    Entry *e = entry_of(v->model, key);
    if (!e->key) {
        if (!mask) return 1;
        if (v->known >= v->model->slots / 2) return 1;
        e->key = key;
        v->known++;
    }
    e->mask |= mask;
    return 1;
}

typedef struct { /* an n-gram that may have rows: its key, where it starts, and where its entry is likely to be */
    uint64_t key;
    int64_t start;
    const Entry *home;
} Gram;

/* Visit the n-grams of a sentence from the shortest on, at each position until a visit returns 0. */
#define N_GRAMS(visit)                                                                                                 \
    static void visit##_n_grams(Visit *v, const uint64_t *ids, int64_t n, Gram *grams) {                               \
        (void)grams;                                                                                                   \
        const LinearModel *m = v->model;                                                                               \
        for (int64_t s = -1; s <= n; s++) {                                                                            \
            uint64_t key = 0;                                                                                          \
            for (int64_t k = 0; k < m->longest && s + k <= n; k++) {                                                   \
                key |= ids[s + 1 + k] << (16 * k);                                                                     \
                int64_t from = s + k - m->window, to = s + m->window;                                                  \
                if (from > to || !visit(v, key, from, (int)(to - from + 1))) break;                                    \
            }                                                                                                          \
        }                                                                                                              \
    }                                                                                                                  \
    static inline void visit##_type(Visit *v, uint64_t key, int64_t place, int64_t p) {                                \
        (void)place;                                                                                                   \
        visit(v, key, p, 1);                                                                                           \
    }
N_GRAMS(count)
N_GRAMS(select_rows)

/* The bit of the characters in a mask. */
static inline uint32_t following_bit(uint64_t id) { return 1u << (POSITIONS + id % FOLLOWING); }

/* The same for `use`, for all n-grams of one length after the other: while the entry of one is fetched from memory, others
 * are looked up. The lookups of n-grams stop at the first that is unknown, so all prefixes of a known one have to be known.
 * `grams` has n + 2 elements. */
static void use_n_grams(Visit *v, const uint64_t *ids, int64_t n, Gram *grams) {
    const LinearModel *m = v->model;
    int64_t count = 0;
    for (int64_t s = -1; s <= n; s++) {
        grams[count] = (Gram){ids[s + 1], s, m->entries + (hashed(ids[s + 1]) & (m->slots - 1))};
        __builtin_prefetch(grams[count++].home);
    }
    for (int64_t k = 0; k < m->longest && k <= 2 * m->window; k++) {
        int64_t longer = 0;
        for (int64_t g = 0; g < count; g++) {
            const Gram one = grams[g];
            const Entry *e = one.home;
            if (e->key != one.key && e->key) e = entry_of(m, one.key);
            if (!e->key) continue;
            use_entry(v, e, one.start + k - m->window, (int)(2 * m->window + 1 - k));
            if (one.start + k + 1 > n || k + 1 == m->longest) continue;
            const uint64_t id = ids[one.start + k + 2], key = one.key | id << 16 * (k + 1);
            const Entry *home = m->entries + (hashed(key) & (m->slots - 1));
            const int may_follow = !m->has_following || e->mask & following_bit(id);
            grams[longer] = (Gram){key, one.start, home};
            longer += may_follow;
            __builtin_prefetch(may_follow ? home : e);
        }
        count = longer;
    }
}

static inline void use_type(Visit *v, uint64_t key, int64_t place, int64_t p) {
    const int32_t *rows = v->model->of_types;
    if (!rows) {
        use(v, key, p, 1);
    } else if (rows[place] >= 0) {
        v->uses[v->n_uses++] = (Use){(int32_t)p, (uint32_t)rows[place]};
    }
}

static inline int class_of(int64_t length) { return length < LENGTHS - 1 ? (int)length : LENGTHS - 1; }

/* Visit all features of sentence i. `scratch` has 4 kinds + (n + 4) * (1 + 3 kinds) bytes. */
#define VISIT_ALL(visit)                                                                                               \
    static int64_t visit##_all(Visit *v, const Sentences *lines, int64_t i, uint64_t *ids, uint8_t *scratch,               \
                               Gram *grams) {                                                                          \
        const LinearModel *m = v->model;                                                                               \
        const int64_t n = lines->first_char[i + 1] - lines->first_char[i], kinds = m->n_kinds;                         \
        const int64_t *chars = lines->chars + lines->first_char[i];                                                    \
        v->n = n;                                                                                                      \
        uint32_t *present = (uint32_t *)scratch;                                                                       \
        uint8_t *type = scratch + 4 * kinds, *begins = type + n + 4, *ends = begins + (n + 2) * kinds,                 \
                *inside = ends + (n + 2) * kinds;                                                                      \
        memset(type, 0, n + 4);                                                                                        \
        ids[0] = ids[n + 1] = BOUNDARY;                                                                                \
        for (int64_t p = 0; p < n; p++) {                                                                              \
            int64_t id = chars[p] >= 0 && chars[p] < m->n_chars ? chars[p] : 1;                                        \
            ids[p + 1] = id + 2;                                                                                       \
            type[p + 2] = m->types[id] & 7;                                                                            \
        }                                                                                                              \
        visit##_n_grams(v, ids, n, grams);                                                                             \
        for (int64_t p = 0; p < n; p++) {                                                                              \
            uint64_t five = type[p] | type[p + 1] << 3 | type[p + 2] << 6 | type[p + 3] << 9 | type[p + 4] << 12;      \
            visit##_type(v, TYPES | five, (int64_t)five, p);                                                           \
            visit##_type(v, TRIPLES | (five >> 3 & 511), FIVES + (int64_t)(five >> 3 & 511), p);                       \
        }                                                                                                              \
        if (lines->first_word[i] == lines->first_word[i + 1]) return n;                                                \
        memset(begins, 0, 3 * (n + 2) * kinds);                                                                        \
        const int64_t n_present = mark_words(m, lines, i, n, begins, ends, inside, present);                           \
        for (int64_t p = 0; p < n; p++)                                                                                \
            for (int64_t j = 0; j < n_present; j++) {                                                                  \
                const int64_t k = present[j], at = (p + 1) * kinds + k;                                                \
                const uint64_t b = begins[at], e = ends[at], next = begins[at + kinds], before = ends[at - kinds];     \
                if (b | e | inside[at]) visit(v, WORDS | k << 8 | (b * LENGTHS + e) * 2 | inside[at], p, 1);           \
                if (next | before) visit(v, BESIDE | k << 8 | (next * LENGTHS + before), p, 1);                        \
            }                                                                                                          \
        return n;                                                                                                      \
    }

/* Mark the words of a sentence. Returns how many kinds they have, which are written to `present` in order.
 *
 * For each position and kind: the length class of the longest word that begins or ends there, and whether one covers it
 * without beginning or ending there. Tables have a column for each kind, and a row before the first character. */
static int64_t mark_words(const LinearModel *m, const Sentences *lines, int64_t i, int64_t n, uint8_t *begins, uint8_t *ends,
                          uint8_t *inside, uint32_t *present) {
    const int64_t kinds = m->n_kinds;
    int64_t n_present = 0;
    memset(present, 0, sizeof(uint32_t) * kinds);
    for (int64_t word = lines->first_word[i]; word < lines->first_word[i + 1]; word++) {
        int64_t start = lines->start[word], end = lines->end[word], kind = lines->label[word];
        if (start < 0 || start >= end || end > n || kind < 0 || kind >= kinds) continue;
        uint8_t length = (uint8_t)class_of(end - start);
        uint8_t *b = begins + (start + 1) * kinds + kind, *e = ends + end * kinds + kind;
        if (*b < length) *b = length;
        if (*e < length) *e = length;
        /* `inside` counts how far the words that begin here reach, up to 255, until the loop below */
        uint8_t *reach = inside + (start + 1) * kinds + kind;
        int64_t far = end - start < 255 ? end - start : 255;
        if (*reach < far) *reach = (uint8_t)far;
        present[kind] = 1;
    }
    for (int64_t kind = 0; kind < kinds; kind++) {
        if (!present[kind]) continue;
        present[n_present++] = (uint32_t)kind;
        int64_t until = 0; /* the last character of the words that began before */
        for (int64_t p = 0; p < n; p++) {
            uint8_t *here = inside + (p + 1) * kinds + kind;
            int64_t end = *here ? p + *here : 0;
            *here = p + 1 < until;
            if (end > until) until = end;
        }
    }
    return n_present;
}

VISIT_ALL(use)
VISIT_ALL(count)
VISIT_ALL(select_rows)

static int64_t longest_line(const Sentences *lines) {
    int64_t longest = 1;
    for (int64_t i = 0; i < lines->n; i++) {
        int64_t n = lines->first_char[i + 1] - lines->first_char[i];
        if (n > longest) longest = n;
    }
    return longest;
}

typedef struct { /* memory for the longest sentence; from `uses` on in one block */
    int32_t *scores, *best; /* n x 4 lanes */
    float *emissions, *alpha, *beta;
    Use *uses;
    uint64_t *ids;
    int64_t *tags;
    int64_t *live, n_live; /* places of closed tags, and of fresh tags, in tables of transitions: those with a label */
    int32_t *behind; /* see distances_from_o */
    float *masses;   /* 2 lanes */
    Gram *grams;
    uint8_t *bytes;
} Scratch;

static void release(Scratch *s) {
    void *all[] = {s->scores, s->best, s->emissions, s->alpha, s->beta, s->uses};
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) free(all[i]);
}

/* The largest number of rows that support a character. */
static inline int64_t rows_of_character(const LinearModel *m) {
    return m->longest * (2 * m->window + 1) + 2 + 2 * m->n_kinds;
}

/* Memory of a size that is rounded up to a cache line, from the block that begins at `start`. */
static void *part(char *start, int64_t *used, int64_t bytes) {
    void *found = start ? start + *used : NULL;
    *used += (bytes + 63) / 64 * 64;
    return found;
}

/* Divide the block that begins at `start`, if there is one, and return its size. */
static int64_t divide(const LinearModel *m, int64_t n, char *start, Scratch *s) {
    int64_t used = 0;
    s->uses = part(start, &used, sizeof(Use) * (n + 2) * rows_of_character(m));
    s->ids = part(start, &used, sizeof(uint64_t) * (n + 2));
    s->tags = part(start, &used, sizeof(int64_t) * (n + 1));
    s->live = part(start, &used, sizeof(int64_t) * 2 * m->lanes);
    s->behind = part(start, &used, sizeof(int32_t) * 2 * m->lanes);
    s->masses = part(start, &used, sizeof(float) * 2 * m->lanes);
    s->grams = part(start, &used, sizeof(Gram) * (n + 2));
    s->bytes = part(start, &used, 4 * m->n_kinds + (n + 4) * (1 + 3 * m->n_kinds));
    return used;
}

/* Returns 0 if memory is short. */
static int reserve(const LinearModel *m, int64_t n, Scratch *s) {
    const int64_t rows = sizeof(float) * GROUPS * m->lanes * (n + 1);
    *s = (Scratch){.scores = malloc(rows), .best = malloc(rows), .emissions = malloc(rows), .alpha = malloc(rows),
                   .beta = malloc(rows)};
    divide(m, n, malloc(divide(m, n, NULL, s)), s);
    if (!(s->scores && s->best && s->emissions && s->alpha && s->beta && s->uses)) {
        release(s);
        return 0;
    }
    for (int64_t p = 0; p <= m->labels; p++) s->live[s->n_live++] = p;
    for (int64_t p = 1; p <= m->labels; p++) s->live[s->n_live++] = m->lanes + p;
    return 1;
}

/* An n-gram without its last character; 0 if it has one character. */
static inline uint64_t prefix_of(uint64_t key) {
    return key & (((uint64_t)1 << (63 - __builtin_clzll(key)) / 16 * 16) - 1);
}

/* Build the hash table of n sorted, distinct keys, none of them 0. `slots` is more than n and a power of 2. */
void linear_index(Entry *entries, int64_t slots, int64_t n, const uint64_t *keys, const uint8_t *masks) {
    LinearModel m = {.entries = entries, .slots = slots};
    memset(entries, 0, sizeof(Entry) * slots);
    uint32_t row = 0;
    for (int64_t i = 0; i < n + FETCHED; i++) {
        if (i < n) __builtin_prefetch(entries + (hashed(keys[i]) & (slots - 1)));
        if (i < FETCHED) continue;
        const int64_t at = i - FETCHED;
        *entry_of(&m, keys[at]) = (Entry){keys[at], row, masks[at]};
        row += popcount(masks[at]);
    }
}

/* Mark in the mask of each n-gram which characters can follow it, as one of FOLLOWING bits: most look-ups of longer
 * n-grams that would find nothing are not made. Keys are as in linear_index. */
void linear_follow(Entry *entries, int64_t slots, int64_t n, const uint64_t *keys) {
    const LinearModel m = {.entries = entries, .slots = slots};
    for (int64_t i = 0; i < n + FETCHED; i++) {
        if (i < n && keys[i] < BESIDE) __builtin_prefetch(entries + (hashed(prefix_of(keys[i])) & (slots - 1)));
        if (i < FETCHED || keys[i - FETCHED] >= BESIDE) continue;
        const uint64_t key = keys[i - FETCHED], prefix = prefix_of(key);
        if (!prefix) continue;
        Entry *e = entry_of(&m, prefix);
        if (e->key) e->mask |= following_bit(key >> (63 - __builtin_clzll(key)) / 16 * 16);
    }
}

/* The first row of each feature of types: `rows` has FIVES + THREES elements; -1 for a feature without rows. */
void linear_types(const LinearModel *m, int32_t *rows) {
    for (int64_t place = 0; place < FIVES + THREES; place++) {
        const Entry *e = entry_of(m, place < FIVES ? TYPES | (uint64_t)place : TRIPLES | (uint64_t)(place - FIVES));
        rows[place] = e->key && (e->mask & 1) ? (int32_t)e->row : -1;
    }
}

/* Write 8 of 8 numbers: number k is given[places[k]], or 0 if that place is 255. */
static inline void spread(const int8_t *given, const uint8_t *places, int8_t *out) {
#if defined(__AVX2__)
    const __m128i all = _mm_loadl_epi64((const __m128i *)given), from = _mm_loadl_epi64((const __m128i *)places);
    _mm_storel_epi64((__m128i *)out, _mm_shuffle_epi8(all, from));
#elif defined(__ARM_NEON)
    vst1_s8(out, vtbl1_s8(vld1_s8(given), vreinterpret_s8_u8(vld1_u8(places))));
#else
    for (int k = 0; k < 8; k++) out[k] = places[k] == 255 ? 0 : given[places[k]];
#endif
}

/* Unpack rows of weights, of which only those that are not 0 are stored: bit k of `columns` is set if weight k is stored.
 * Returns the number of stored weights that the bits stand for; if it is not n_weights, the rows are not complete. */
int64_t linear_rows(const uint8_t *columns, int64_t n_bytes, const int8_t *weights, int64_t n_weights, int8_t *rows) {
    int64_t at = 0;
    uint8_t places[256][8]; /* for each byte of bits, where its weights come from; 255: there is none */
    for (int bits = 0; bits < 256; bits++)
        for (int k = 0, next = 0; k < 8; k++) places[bits][k] = bits >> k & 1 ? next++ : 255;
    for (int64_t i = 0; i < n_bytes; i++) {
        if (at + 8 <= n_weights) {
            spread(weights + at, places[columns[i]], rows + 8 * i);
            at += popcount(columns[i]);
            continue;
        }
        for (int k = 0; k < 8; k++) { /* the last ones, whose neighbours must not be read */
            const int stored = columns[i] >> k & 1;
            rows[8 * i + k] = stored && at < n_weights ? weights[at] : 0;
            at += stored;
        }
    }
    return at;
}

/* Sum the rows of all features, in int16 if no sum can be too large for that. */
static void score(const LinearModel *m, const Scratch *s, int64_t n, int64_t n_uses) {
    const int64_t columns = GROUPS * m->lanes;
    if (rows_of_character(m) * 128 > INT16_MAX) {
        memset(s->scores, 0, sizeof(int32_t) * n * columns);
        for (int64_t u = 0; u < n_uses; u++) {
            const int8_t *row = m->rows + s->uses[u].row * columns;
            int32_t *to = s->scores + s->uses[u].position * columns;
            for (int64_t k = 0; k < columns; k++) to[k] += row[k];
        }
        return;
    }
    int16_t *sums = (int16_t *)s->best; /* which is written after this */
    memset(sums, 0, sizeof(int16_t) * n * columns);
    for (int64_t u = 0; u < n_uses; u++) {
        if (u + AHEAD < n_uses) __builtin_prefetch(m->rows + s->uses[u + AHEAD].row * columns);
        const int8_t *row = m->rows + s->uses[u].row * columns;
        int16_t *to = sums + s->uses[u].position * columns;
        for (int64_t k = 0; k < columns; k += 16)
            *(shorts *)(to + k) += __builtin_convertvector(*(const bytes *)(row + k), shorts);
    }
    for (int64_t k = 0; k < n * columns; k++) s->scores[k] = sums[k];
}

static inline ints larger(ints a, ints b) {
    const ints more = a > b;
    return (a & more) | (b & ~more);
}

/* behind[p]: by how much a transition from closed tag p can be better than that from O to the same tag. If p is further
 * behind O, no best path leaves it for a fresh tag. 2 lanes; NEVER for O itself and for places without a label. */
static void distances_from_o(const LinearModel *m, int32_t *behind) {
    const int64_t lanes = m->lanes, open = 2 * lanes;
    for (int64_t p = 0; p < open; p++) {
        behind[p] = NEVER;
        if (p % lanes == 0 || p % lanes > m->labels) continue;
        for (int64_t k = 0; k < open; k++) {
            const int32_t more = m->fresh[p * open + k] - m->fresh[k];
            if (m->fresh[k] > NEVER / 2 && more > behind[p]) behind[p] = more;
        }
    }
}

/* Whether some closed tag but O can come before a fresh tag on a best path. */
static inline int any_near_o(const int32_t *before, const int32_t *behind, int64_t lanes) {
    ints near = {0};
    for (int64_t k = 0; k < lanes; k += 8) {
        near |= *(const ints *)(before + k) + *(const ints *)(behind + k) >= before[0];
        near |= *(const ints *)(before + 3 * lanes + k) + *(const ints *)(behind + lanes + k) >= before[0];
    }
    typedef int64_t longs __attribute__((vector_size(32)));
    const longs any = (longs)near;
    return (any[0] | any[1] | any[2] | any[3]) != 0;
}

/* The best scores of fresh tags, before emissions. */
static inline void best_fresh(const LinearModel *m, const int32_t *behind, const int32_t *before, int32_t *v) {
    const int64_t lanes = m->lanes, open = 2 * lanes, closed = 3 * lanes;
    for (int64_t k = 0; k < open; k += 8) *(ints *)(v + k) = before[0] + *(const ints *)(m->fresh + k);
    if (!any_near_o(before, behind, lanes)) return;
    for (int64_t p = 1; p < open; p++) {
        const int32_t score = before[p < lanes ? p : p - lanes + closed];
        if (score + behind[p] < before[0]) continue;
        const int32_t *row = m->fresh + p * open;
        for (int64_t k = 0; k < open; k += 8)
            *(ints *)(v + k) = larger(*(ints *)(v + k), score + *(const ints *)(row + k));
    }
}

/* The best tags of n characters, from the last one, which is known, to the first. */
static void trace_back(const LinearModel *m, const Scratch *s, int64_t n) {
    const int64_t lanes = m->lanes, columns = GROUPS * lanes, open = 2 * lanes;
    for (int64_t t = n - 1; t > 0; t--) {
        const int64_t tag = s->tags[t], lane = tag % lanes;
        const int32_t *before = s->best + (t - 1) * columns;
        if (tag >= open) {
            const int32_t *inner = m->inner + (tag / lanes - 2) * open;
            s->tags[t - 1] = before[lanes + lane] + inner[lane] > before[2 * lanes + lane] + inner[lanes + lane]
                                 ? lanes + lane
                                 : 2 * lanes + lane;
            continue;
        }
        int32_t highest = 4 * NEVER;
        /* The search ends at the first tag that leads to the score that is known, unless that was shifted. */
        const int32_t reached = t % SHIFTED ? before[columns + tag] - s->scores[t * columns + tag] : 4 * NEVER - 1;
        for (int64_t l = 0; l < s->n_live && highest != reached; l++) {
            const int64_t p = s->live[l], from = p < lanes ? p : p + open;
            const int32_t x = before[from] + m->fresh[p * open + tag];
            if (x > highest) highest = x, s->tags[t - 1] = from;
        }
    }
}

/* The best tags of n characters; returns their score. `best` is n x columns. */
static int64_t best_tags(const LinearModel *m, const Scratch *s, int64_t n) {
    const int64_t lanes = m->lanes, columns = GROUPS * lanes, open = 2 * lanes;
    int32_t *v = s->best;
    int64_t shifted = 0;
    for (int64_t k = 0; k < open; k++) v[k] = m->first[k] + s->scores[k];
    for (int64_t k = open; k < columns; k++) v[k] = NEVER;
    for (int64_t t = 1; t < n; t++) {
        const int32_t *before = v, *e = s->scores + t * columns;
        v += columns;
        best_fresh(m, s->behind, before, v);
        for (int64_t k = 0; k < lanes; k += 8) {
            const ints begin = *(const ints *)(before + lanes + k), inside = *(const ints *)(before + 2 * lanes + k);
            const ints *inner = (const ints *)(m->inner + k);
            const int64_t next = lanes / 8;
            *(ints *)(v + 2 * lanes + k) = larger(begin + inner[0], inside + inner[next]);
            *(ints *)(v + 3 * lanes + k) = larger(begin + inner[2 * next], inside + inner[3 * next]);
        }
        for (int64_t k = 0; k < columns; k += 8)
            *(ints *)(v + k) = larger(*(ints *)(v + k) + *(const ints *)(e + k), (ints){0} + NEVER);
        if (t % SHIFTED == 0) { /* so that sums stay small on long texts */
            int32_t most = NEVER;
            for (int64_t k = 0; k < columns; k++) most = v[k] > most ? v[k] : most;
            for (int64_t k = 0; k < columns; k++) v[k] = v[k] - most > NEVER ? v[k] - most : NEVER;
            shifted += most;
        }
    }
    int32_t most = 4 * NEVER;
    for (int64_t l = 0; l < s->n_live; l++) {
        const int64_t p = s->live[l];
        int64_t tag = p < lanes ? p : p + open;
        if (v[tag] + m->last[p] > most) most = v[tag] + m->last[p], s->tags[n - 1] = tag;
    }
    trace_back(m, s, n);
    return most + shifted;
}

typedef struct { /* exp of the scores of transitions, in the layout of LinearModel */
    const float *fresh, *fresh_back, *inner, *first, *last;
} Moves;

static inline float exp_of(float x) {
    const vec found = vec_exp(broadcast(x));
    return found[0];
}

/* The natural logarithm of a positive, normal number. Kernels need no mathematical library, which not all systems link. */
static double log_of(double x) {
    union {
        double number;
        uint64_t bits;
    } mantissa = {x};
    const int64_t exponent = (int64_t)(mantissa.bits >> 52 & 0x7FF) - 1023;
    mantissa.bits = (mantissa.bits & 0xFFFFFFFFFFFFF) | (uint64_t)1023 << 52; /* 1 to 2 */
    const double z = (mantissa.number - 1.4142135623730951) / (mantissa.number + 1.4142135623730951), square = z * z;
    double term = z, sum = 0;
    for (int k = 1; k < 24; k += 2, term *= square) sum += term / k; /* z is at most 0.172 */
    return 2 * sum + (exponent + 0.5) * 0.6931471805599453;
}

/* Replace emissions by their exponentials, each character's divided by the largest; returns the sum of the logarithms of
 * what they were divided by. */
static double exponentials(const LinearModel *m, float *e, int64_t n) {
    const int64_t columns = GROUPS * m->lanes;
    double sum = 0;
    for (int64_t t = 0; t < n; t++, e += columns) {
        vec each = CV(e);
        for (int64_t k = LANES; k < columns; k += LANES) each = maximum(each, CV(e + k));
        for (int64_t by = LANES / 2; by; by /= 2) each = maximum(each, swap_lanes(each, by));
        const float most = each[0];
        sum += most;
        for (int64_t k = 0; k < columns; k += LANES) V(e + k) = vec_exp(CV(e + k) - most);
    }
    return sum;
}

/* out [2 lanes]: the sum of the rows of a table of transitions, times the masses of O and single tags and of the other
 * tags. The four sums do not wait for each other. */
static inline void sums_of_rows(const LinearModel *m, const float *single, const float *other, const float *rows,
                                float *out) {
    const int64_t lanes = m->lanes, open = 2 * lanes;
    for (int64_t k = 0; k < open; k += 16) {
        const float *row = rows + k, *second = row + lanes * open;
        floats a = single[0] * *(const floats *)row, b = single[0] * *(const floats *)(row + 8), c = {0}, d = {0};
        for (int64_t p = 1; p <= m->labels; p++) {
            a += single[p] * *(const floats *)(row + p * open);
            b += single[p] * *(const floats *)(row + p * open + 8);
            c += other[p] * *(const floats *)(second + p * open);
            d += other[p] * *(const floats *)(second + p * open + 8);
        }
        *(floats *)(out + k) = a + c;
        *(floats *)(out + k + 8) = b + d;
    }
}

/* alpha: probabilities of tags given the characters so far. Emissions are divided by their sums. Returns the logarithm
 * of the product of these sums. */
static double forward(const LinearModel *m, const Moves *x, const Scratch *s, int64_t n) {
    float *e = s->emissions, *alpha = s->alpha;
    const int64_t lanes = m->lanes, columns = GROUPS * lanes, open = 2 * lanes;
    double log_sum = 0, product = 1; /* of what sums are multiplied by, until its logarithm is taken */
    for (int64_t t = 0; t < n; t++, e += columns, alpha += columns) {
        const float *before = alpha - columns;
        if (!t) {
            for (int64_t k = 0; k < open; k++) alpha[k] = x->first[k];
            for (int64_t k = open; k < columns; k++) alpha[k] = 0;
        } else {
            sums_of_rows(m, before, before + 3 * lanes, x->fresh, alpha);
            for (int64_t k = 0; k < lanes; k++) {
                const float begin = before[lanes + k], inside = before[2 * lanes + k];
                alpha[2 * lanes + k] = begin * x->inner[k] + inside * x->inner[lanes + k];
                alpha[3 * lanes + k] = begin * x->inner[2 * lanes + k] + inside * x->inner[3 * lanes + k];
            }
        }
        vec sums = {0};
        for (int64_t k = 0; k < columns; k += LANES) sums += V(alpha + k) *= CV(e + k);
        for (int64_t by = LANES / 2; by; by /= 2) sums += swap_lanes(sums, by);
        const float by = 1 / (sums[0] > 1e-30f ? sums[0] : 1e-30f);
        for (int64_t k = 0; k < columns; k++) alpha[k] *= by;
        for (int64_t k = 0; k < columns; k++) e[k] *= by;
        product *= by;
        if (product > 1e200 || product < 1e-200) {
            log_sum -= log_of(product);
            product = 1;
        }
    }
    return log_sum - log_of(product);
}

/* The probability mass of paths that may end after the last character. */
static float closing(const LinearModel *m, const Moves *x, const float *alpha) {
    float sum = 0;
    for (int64_t k = 0; k < m->lanes; k++)
        sum += alpha[k] * x->last[k] + alpha[3 * m->lanes + k] * x->last[m->lanes + k];
    return sum > 1e-30f ? sum : 1e-30f;
}

/* beta: alpha times beta is the probability of a tag. */
static void backward(const LinearModel *m, const Moves *x, const Scratch *s, int64_t n) {
    const float *e = s->emissions, *alpha = s->alpha;
    float *beta = s->beta;
    const int64_t lanes = m->lanes, columns = GROUPS * lanes, open = 2 * lanes;
    const float by = 1 / closing(m, x, alpha + (n - 1) * columns);
    float *b = beta + (n - 1) * columns;
    for (int64_t k = 0; k < lanes; k++) {
        b[k] = x->last[k] * by, b[3 * lanes + k] = x->last[lanes + k] * by;
        b[lanes + k] = b[2 * lanes + k] = 0;
    }
    for (int64_t t = n - 1; t > 0; t--, b -= columns) {
        const float *share = e + t * columns;
        float *to = b - columns;
        for (int64_t k = 0; k < open; k += 8)
            *(floats *)(s->masses + k) = *(const floats *)(b + k) * *(const floats *)(share + k);
        sums_of_rows(m, s->masses, s->masses + lanes, x->fresh_back, to);
        for (int64_t k = 0; k < lanes; k++) to[3 * lanes + k] = to[lanes + k]; /* and there the next loop writes */
        for (int64_t k = 0; k < lanes; k++) {
            const float inside = b[2 * lanes + k] * share[2 * lanes + k], end = b[3 * lanes + k] * share[3 * lanes + k];
            to[lanes + k] = inside * x->inner[k] + end * x->inner[2 * lanes + k];
            to[2 * lanes + k] = inside * x->inner[lanes + k] + end * x->inner[3 * lanes + k];
        }
        for (int64_t k = 0; k < columns; k++) to[k] = to[k] < 1e30f ? to[k] : 1e30f;
    }
}

/* The probability that the characters [start, end) are exactly one entity with the label in this lane. */
static double entity_probability(const LinearModel *m, const Moves *x, const Scratch *s, int64_t start, int64_t end,
                                 int64_t lane) {
    const int64_t lanes = m->lanes, columns = GROUPS * lanes;
    double p;
    if (end - start == 1) {
        p = (double)s->alpha[start * columns + lane] * s->beta[start * columns + lane];
    } else {
        p = s->alpha[start * columns + lanes + lane];
        for (int64_t t = start + 1; t < end - 1; t++)
            p *= (double)x->inner[(t > start + 1) * lanes + lane] * s->emissions[t * columns + 2 * lanes + lane];
        p *= (double)x->inner[(end - start > 2 ? 3 : 2) * lanes + lane] *
             s->emissions[(end - 1) * columns + 3 * lanes + lane] * s->beta[(end - 1) * columns + 3 * lanes + lane];
    }
    return p >= 0 ? p < 1 ? p : 1 : 0;
}

static void moves_of(const LinearModel *m, const float *small, float *out, Moves *x) {
    const int64_t open = 2 * m->lanes, n = open * open;
    float *fresh = out, *back = out + n, *rest = back + n;
    for (int64_t k = 0; k < n + 4 * open; k += LANES) {
        const ivec allowed = CV(small + k) > -1e4f;
        V((k < n ? fresh : rest - n) + k) = (vec)((ivec)vec_exp(CV(small + k)) & allowed);
    }
    for (int64_t p = 0; p < open; p++)
        for (int64_t q = 0; q < open; q++) back[q * open + p] = fresh[p * open + q];
    *x = (Moves){fresh, back, rest, rest + 2 * open, rest + 3 * open};
}

/* Write the entities of the tags of sentence i behind the `count` entities before them, and return the new number. */
static int64_t write_entities(const int64_t *tags, int64_t n, int64_t lanes, int64_t i, Found *found, int64_t count) {
    const int64_t first = count;
    for (int64_t t = 0; t < n; t++) {
        if (tags[t] >= 2 * lanes && count > first)
            found[count - 1].end = t + 1;
        else if (tags[t])
            found[count++] = (Found){i, t, t + 1, tags[t] % lanes - 1, 0};
    }
    return count;
}

/* The moves of the transitions in the model; `small` has memory for three numbers for each of them. */
static void moves_of_scores(const LinearModel *m, float *small, Moves *x) {
    const int64_t open = 2 * m->lanes;
    const int32_t *parts[] = {m->fresh, m->inner, m->first, m->last};
    const int64_t sizes[] = {open * open, 2 * open, open, open};
    int64_t at = 0;
    for (int64_t part = 0; part < 4; part++)
        for (int64_t k = 0; k < sizes[part]; k++)
            small[at++] = parts[part][k] > NEVER / 2 ? (float)(parts[part][k] * m->scale) : -1e5f;
    moves_of(m, small, small + at, x);
}

/* Write the entities of all sentences in order, and return their number, or -1 if memory is short. `found` has room for one for
 * every character. `certainty` gets the probability of the best tags of each sentence, or is NULL. */
int64_t linear_find(const LinearModel *m, const Sentences *lines, Found *found, double *certainty) {
    const int64_t lanes = m->lanes, columns = GROUPS * lanes, open = 2 * lanes, n_small = open * open + 4 * open;
    Scratch s;
    float *small = malloc(sizeof(float) * (n_small + 2 * n_small));
    if (!small) return -1;
    if (!reserve(m, longest_line(lines), &s)) {
        free(small);
        return -1;
    }
    Moves x = {0}; /* made when they are first needed */
    distances_from_o(m, s.behind);
    int64_t count = 0;
    for (int64_t i = 0; i < lines->n; i++) {
        if (certainty) certainty[i] = 1;
        if (lines->first_char[i + 1] <= lines->first_char[i]) continue;
        Visit v = {.model = m, .uses = s.uses};
        const int64_t n = use_all(&v, lines, i, s.ids, s.bytes, s.grams), first = count;
        score(m, &s, n, v.n_uses);
        const int64_t best = best_tags(m, &s, n);
        count = write_entities(s.tags, n, lanes, i, found, count);
        if (count == first && !certainty) continue;
        if (!x.fresh) moves_of_scores(m, small, &x);
        const float scale = (float)m->scale;
        for (int64_t k = 0; k < n * columns; k++) s.emissions[k] = (float)s.scores[k] * scale;
        double log_sum = exponentials(m, s.emissions, n) + forward(m, &x, &s, n);
        log_sum += log_of(closing(m, &x, s.alpha + (n - 1) * columns));
        if (certainty) {
            const double p = exp_of((float)(best * m->scale - log_sum));
            certainty[i] = p >= 0 ? p < 1 ? p : 1 : 0;
        }
        if (count > first) backward(m, &x, &s, n);
        for (Found *one = found + first; one < found + count; one++)
            one->probability = entity_probability(m, &x, &s, one->start, one->end, one->label + 1);
    }
    release(&s);
    free(small);
    return count;
}

/* Add the scores of tags to rows of `width` emissions: those of tag y are in columns[y]. Returns 0, or -1 if memory is
 * short. */
int64_t linear_add(const LinearModel *m, const Sentences *lines, const int64_t *columns, int64_t n_tags, float *emissions,
                   int64_t width) {
    const int64_t n_columns = GROUPS * m->lanes;
    const float scale = (float)m->scale;
    Scratch s;
    if (!reserve(m, longest_line(lines), &s)) return -1;
    for (int64_t i = 0; i < lines->n; i++) {
        if (lines->first_char[i + 1] <= lines->first_char[i]) continue;
        Visit v = {.model = m, .uses = s.uses};
        const int64_t n = use_all(&v, lines, i, s.ids, s.bytes, s.grams);
        score(m, &s, n, v.n_uses);
        float *to = emissions + lines->first_char[i] * width;
        for (int64_t t = 0; t < n; t++, to += width)
            for (int64_t y = 0; y < n_tags; y++) to[y] += (float)s.scores[t * n_columns + columns[y]] * scale;
    }
    release(&s);
    return 0;
}

/* Count rows in `sketch`, which has a power of 2 of counters; returns 0, or -1 if memory is short. */
int64_t linear_count(const LinearModel *m, const Sentences *lines, const int64_t *tags, uint8_t *sketch, int64_t sketch_size) {
    Scratch s;
    if (!reserve(m, longest_line(lines), &s)) return -1;
    for (int64_t i = 0; i < lines->n; i++) {
        Visit v = {.model = m, .tags = tags + lines->first_char[i], .sketch = sketch, .sketch_size = sketch_size};
        count_all(&v, lines, i, s.ids, s.bytes, s.grams);
    }
    release(&s);
    return 0;
}

/* Add the features with rows that were counted `least` times to the table; returns the number of features, or -1 if
 * memory is short. If it is half of the slots, there may be more. */
int64_t linear_select(const LinearModel *m, const Sentences *lines, uint8_t *sketch, int64_t sketch_size, int64_t least,
                      int64_t known) {
    Scratch s;
    if (!reserve(m, longest_line(lines), &s)) return -1;
    for (int64_t i = 0; i < lines->n; i++) {
        Visit v = {.model = m, .sketch = sketch, .sketch_size = sketch_size, .least = least, .known = known};
        select_rows_all(&v, lines, i, s.ids, s.bytes, s.grams);
        known = v.known;
    }
    release(&s);
    return known;
}

static inline uint64_t next_random(uint64_t *state) { /* xorshift64* */
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545F4914F6CDD1Du;
}

/* A step of AdaGrad. */
static inline void step(float *w, float *squares, const float *gradient, int64_t n, float rate) {
    for (int64_t k = 0; k < n; k += 8)
        for (int j = 0; j < 8; j++) {
            const float g = gradient[k + j];
            squares[k + j] += g * g;
            w[k + j] -= rate * g / __builtin_sqrtf(squares[k + j] + 1e-6f);
        }
}

/* Add the expected number of each transition, minus its gold number, to `gradient`. */
static void transition_gradient(const LinearModel *m, const Moves *x, const Scratch *s, const int64_t *gold, int64_t n,
                                float *gradient) {
    const int64_t lanes = m->lanes, columns = GROUPS * lanes, open = 2 * lanes;
    float *inner = gradient + open * open, *first = inner + 2 * open, *last = first + open;
    for (int64_t k = 0; k < open; k++) {
        first[k] += s->alpha[k] * s->beta[k];
        const int64_t tag = (n - 1) * columns + (k < lanes ? k : k + open);
        last[k] += s->alpha[tag] * s->beta[tag];
    }
    first[gold[0]] -= 1;
    last[gold[n - 1] < lanes ? gold[n - 1] : gold[n - 1] - open] -= 1;
    for (int64_t t = 1; t < n; t++) {
        const float *a = s->alpha + (t - 1) * columns, *e = s->emissions + t * columns, *b = s->beta + t * columns;
        for (int64_t l = 0; l < s->n_live; l++) {
            const int64_t p = s->live[l];
            const float from = a[p < lanes ? p : p + open];
            if (from < 1e-6f) continue;
            const float *row = x->fresh + p * open;
            float *to = gradient + p * open;
            for (int64_t k = 0; k < open; k++) to[k] += from * row[k] * e[k] * b[k];
        }
        for (int64_t k = 0; k < lanes; k++) {
            const float begin = a[lanes + k], inside = a[2 * lanes + k];
            const float m_ = e[2 * lanes + k] * b[2 * lanes + k], e_ = e[3 * lanes + k] * b[3 * lanes + k];
            inner[k] += begin * x->inner[k] * m_;
            inner[lanes + k] += inside * x->inner[lanes + k] * m_;
            inner[2 * lanes + k] += begin * x->inner[2 * lanes + k] * e_;
            inner[3 * lanes + k] += inside * x->inner[3 * lanes + k] * e_;
        }
        const int64_t from = gold[t - 1], to = gold[t];
        if (to < open)
            gradient[(from < lanes ? from : from - open) * open + to] -= 1;
        else
            inner[((to / lanes - 2) * 2 + (from / lanes - 1)) * lanes + to % lanes] -= 1;
    }
}

/* The score of the transitions between gold tags. */
static double transition_score(const LinearModel *m, const float *small, const int64_t *gold, int64_t n) {
    const int64_t lanes = m->lanes, open = 2 * lanes;
    const float *inner = small + open * open, *first = inner + 2 * open, *last = first + open;
    double sum = first[gold[0]] + last[gold[n - 1] < lanes ? gold[n - 1] : gold[n - 1] - open];
    for (int64_t t = 1; t < n; t++) {
        const int64_t from = gold[t - 1], to = gold[t];
        sum += to < open ? small[(from < lanes ? from : from - open) * open + to]
                         : inner[((to / lanes - 2) * 2 + (from / lanes - 1)) * lanes + to % lanes];
    }
    return sum;
}

/* The emissions of n characters: the sums of the rows of the `kept` uses, scaled as dropout requires. */
static void sum_rows(const Learner *l, const Scratch *s, int64_t columns, int64_t n, int64_t kept) {
    const float grow = (float)(1 / (1 - l->dropout));
    memset(s->emissions, 0, sizeof(float) * n * columns);
    for (int64_t u = 0; u < kept; u++) {
        if (u + 8 < kept) __builtin_prefetch(l->rows + s->uses[u + 8].row * columns);
        const float *row = l->rows + s->uses[u].row * columns;
        float *to = s->emissions + s->uses[u].position * columns;
        for (int64_t k = 0; k < columns; k += 8)
            for (int j = 0; j < 8; j++) to[k + j] += row[k + j] * grow;
    }
}

/* Replace alpha by the gradients of the emissions, and tags by whether those of a character are large enough to count. */
static void emission_gradient(const Scratch *s, const int64_t *gold, int64_t columns, int64_t n) {
    for (int64_t t = 0; t < n; t++) {
        float *a = s->alpha + t * columns, most = 0;
        for (int64_t k = 0; k < columns; k++) a[k] *= s->beta[t * columns + k];
        a[gold[t]] -= 1;
        for (int64_t k = 0; k < columns; k++) most = __builtin_fabsf(a[k]) > most ? __builtin_fabsf(a[k]) : most;
        s->tags[t] = most > UNDER_THRESHOLD;
    }
}

/* Learn from the sentences in this order, one step each. Returns the sum of their losses, or -1 if memory is short. Gold
 * tags must follow the transitions described at the top of this file. */
double linear_learn(const LinearModel *m, const Sentences *lines, const int64_t *order, int64_t n_order, Learner *l) {
    const int64_t lanes = m->lanes, columns = GROUPS * lanes, open = 2 * lanes, n_small = open * open + 4 * open;
    Scratch s;
    float *small = malloc(sizeof(float) * 3 * n_small);
    if (!small) return -1;
    if (!reserve(m, longest_line(lines), &s)) {
        free(small);
        return -1;
    }
    const float rate = (float)l->rate;
    const uint64_t dropped = (uint64_t)(l->dropout * 4294967296.0);
    float *gradient = small + 2 * n_small;
    double loss = 0;
    for (int64_t o = 0; o < n_order; o++) {
        const int64_t i = order[o], *gold = l->tags + lines->first_char[i];
        if (lines->first_char[i + 1] <= lines->first_char[i]) continue;
        Visit v = {.model = m, .uses = s.uses};
        const int64_t n = use_all(&v, lines, i, s.ids, s.bytes, s.grams);
        int64_t kept = 0;
        for (int64_t u = 0; u < v.n_uses; u++)
            if (next_random(&l->seed) >> 32 >= dropped) s.uses[kept++] = s.uses[u];
        Moves x;
        moves_of(m, l->small, small, &x);
        sum_rows(l, &s, columns, n, kept);
        double gold_score = transition_score(m, l->small, gold, n);
        for (int64_t t = 0; t < n; t++) gold_score += s.emissions[t * columns + gold[t]];
        loss += exponentials(m, s.emissions, n) - gold_score;
        loss += forward(m, &x, &s, n) + log_of(closing(m, &x, s.alpha + (n - 1) * columns));
        backward(m, &x, &s, n);
        memset(gradient, 0, sizeof(float) * n_small);
        transition_gradient(m, &x, &s, gold, n, gradient);
        emission_gradient(&s, gold, columns, n);
        for (int64_t u = 0; u < kept; u++) {
            const Use one = s.uses[u];
            if (!s.tags[one.position]) continue;
            step(l->rows + one.row * columns, l->row_squares + one.row * columns, s.alpha + one.position * columns,
                 columns, rate);
        }
        step(l->small, l->small_squares, gradient, n_small, rate);
    }
    release(&s);
    free(small);
    return loss;
}
