/* Every word of a text, by the trie in a hash table that hanlattice/lexicon/trie.py builds and describes. */

#include <stdint.h>

#define CHARACTER_BITS 21
#define GOLDEN 0x9E3779B97F4A7C15u
#define TOGETHER 64 /* places from where words are looked for at once: one waits for memory while others go on */

typedef struct {
    uint64_t key, value;
} Cell;

typedef struct { /* from the start of a word: to the cell reached, or to that where the key should be */
    int64_t slot;
    uint64_t key;
    int32_t from;
} Walker;

typedef struct {
    int32_t *start, *end, *word;
} Matches;

static inline int64_t home(uint64_t key, uint64_t slots) { return ((key * GOLDEN >> 32) * slots) >> 32; }

/* Matches of some neighbouring places, from short to long, put in the order of their starts. */
static void sort(const Matches *met, int64_t n, int64_t low, const int32_t *at_each, const Matches *found) {
    int32_t next[TOGETHER], sum = 0;
    for (int i = 0; i < TOGETHER; sum += at_each[i], i++) next[i] = sum;
    for (int64_t m = 0; m < n; m++) {
        int32_t from = met->start[m], place = next[from]++;
        found->start[place] = low + from;
        found->end[place] = low + from + met->end[m];
        found->word[place] = met->word[m];
    }
}

/* How many words of at least `shortest` characters begin in `codes[low:high]`, whose end a code that no word holds marks.
 * They are written in the order of (start, end) if there is room for all of them. */
int64_t trie_search(const Cell *cells, int64_t slots, const int32_t *first, int64_t n_first, const uint32_t *codes,
                    int64_t low, int64_t high, int64_t shortest, int64_t room, const Matches *met,
                    const Matches *found) {
    int64_t count = 0;
    for (; low < high; low += TOGETHER) {
        Walker walkers[TOGETHER];
        int32_t at_each[TOGETHER] = {0};
        int64_t n = 0, n_met = 0;
        for (int32_t i = 0; i < TOGETHER && low + i < high; i++) {
            uint32_t code = codes[low + i];
            int32_t state = code < n_first ? first[code] : -1;
            if (state < 0) continue;
            __builtin_prefetch(cells + state);
            walkers[n++] = (Walker){state, 0, i};
        }
        for (int64_t length = 1; n; length++) {
            int64_t going = 0, left = 0;
            for (int64_t w = 0; w < n; w++) {
                Walker one = walkers[w];
                uint64_t value = cells[one.slot].value;
                uint32_t word = value, next = codes[low + one.from + length];
                if (word && length >= shortest) {
                    if (count + n_met < room) {
                        met->start[n_met] = one.from;
                        met->end[n_met] = length;
                        met->word[n_met] = word - 1;
                    }
                    n_met++;
                    at_each[one.from]++;
                }
                if (!(value >> (32 + (next & 31)) & 1)) continue;
                one.key = (uint64_t)one.slot << CHARACTER_BITS | next;
                one.slot = home(one.key, slots);
                __builtin_prefetch(cells + one.slot);
                walkers[going++] = one;
            }
            for (int64_t w = 0; w < going; w++) {
                Walker one = walkers[w];
                uint64_t seen;
                while ((seen = cells[one.slot].key) != one.key && seen)
                    one.slot = one.slot + 1 < slots ? one.slot + 1 : 0;
                if (seen) walkers[left++] = one;
            }
            n = left;
        }
        if (count + n_met <= room)
            sort(met, n_met, low, at_each, &(Matches){found->start + count, found->end + count, found->word + count});
        count += n_met;
    }
    return count;
}
