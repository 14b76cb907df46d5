/* Rows of characters and of bigrams in the tables of a model, see inputs/characters.py, and the characters that replace
 * those of a text, see text/normalise.py. */

#include "texts.h"

#define GOLDEN 0x9E3779B97F4A7C15u
#define CODE_BITS 21  /* of a code point */
#define ROW_BITS 22   /* of a row */
#define ROW(cell) ((int64_t)((cell) & (((uint64_t)1 << ROW_BITS) - 1)))
#define UNKNOWN 1
#define BLOCK 64      /* bigrams that are looked up together, so that waiting for memory overlaps */

const int64_t sizeof_Characters = sizeof(Characters); /* as kernels/structs.py has it */

static inline uint64_t key_of(uint32_t first, uint32_t second) { return (uint64_t)first << CODE_BITS | second; }

static inline uint64_t home_slot(uint64_t key, int64_t bits) { return key * GOLDEN >> (64 - bits); }

/* The cell of a key, or the free cell where it would be. */
static inline uint64_t slot_of(const uint64_t *cells, int64_t bits, uint64_t key, uint64_t slot) {
    while (cells[slot] && cells[slot] >> ROW_BITS != key) slot = (slot + 1) & (((uint64_t)1 << bits) - 1);
    return slot;
}

/* Insert n bigrams, given as pairs of code points, with the rows from `row` on. Of equal bigrams the first one counts. The
 * cells are 0, and there are more than n. */
void characters_insert(uint64_t *cells, int64_t bits, const uint32_t *pairs, int64_t n, int64_t row) {
    for (int64_t i = 0; i < n; i++) {
        const uint64_t key = key_of(pairs[2 * i], pairs[2 * i + 1]), slot = slot_of(cells, bits, key, home_slot(key, bits));
        if (!cells[slot]) cells[slot] = key << ROW_BITS | (uint64_t)(row + i);
    }
}

static inline int64_t row_of(const Characters *table, uint32_t first, uint32_t second) {
    const uint64_t key = key_of(first, second);
    const uint64_t cell = table->bigrams[slot_of(table->bigrams, table->bits, key, home_slot(key, table->bits))];
    if (cell) return ROW(cell);
    const uint32_t lower = first + table->shifts[first], next = second + table->shifts[second];
    if (lower == first && next == second) return UNKNOWN;
    const uint64_t other = key_of(lower, next);
    const uint64_t found = table->bigrams[slot_of(table->bigrams, table->bits, other, home_slot(other, table->bits))];
    return found ? ROW(found) : UNKNOWN;
}

/* Write the rows of the characters of n texts, and of the bigrams that begin with them. Text i has the code points
 * codes[starts[i]:starts[i + 1] - 1]; the boundary behind it ends its last bigram. */
void characters_rows(const Characters *table, const uint32_t *codes, const int64_t *starts, int64_t n, int64_t *chars,
                     int64_t *bigrams) {
    for (int64_t text = 0; text < n; text++) {
        const int64_t end = starts[text + 1] - 1;
        for (int64_t low = starts[text]; low < end; low += BLOCK) {
            const int64_t size = end - low < BLOCK ? end - low : BLOCK;
            const uint32_t *code = codes + low;
            if (!table->bigrams) {
                for (int64_t i = 0; i < size; i++) {
                    *chars++ = table->chars[code[i]] + UNKNOWN;
                    *bigrams++ = UNKNOWN;
                }
                continue;
            }
            for (int64_t i = 0; i < size; i++) {
                __builtin_prefetch(table->bigrams + home_slot(key_of(code[i], code[i + 1]), table->bits));
                *chars++ = table->chars[code[i]] + UNKNOWN;
            }
            for (int64_t i = 0; i < size; i++) *bigrams++ = row_of(table, code[i], code[i + 1]);
        }
    }
}

#define KNOWN 1 /* a bit of a state, as in text/normalise.py */

/* Translate n code points: `target` has the one that replaces each, or a negative number. Returns the states of all of them,
 * combined by or; without KNOWN if that of some code point is not known yet. Another thread may be filling the tables. It
 * writes the state of a code point last, so it is read first. */
int64_t characters_translate(const int32_t *target, const uint8_t *state, const uint32_t *codes, int64_t n, uint32_t *out) {
    uint8_t any = KNOWN, all = KNOWN;
    for (int64_t i = 0; i < n; i++) {
        const uint8_t here = __atomic_load_n(state + codes[i], __ATOMIC_ACQUIRE);
        const int32_t to = target[codes[i]];
        any |= here;
        all &= here;
        out[i] = to > 0 ? (uint32_t)to : 0;
    }
    return all ? any : any & ~KNOWN;
}
