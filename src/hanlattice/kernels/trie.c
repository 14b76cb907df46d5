/* Every word of a text, by the trie in a hash table that hanlattice/lexicon/trie.py builds and describes. */

#include <stdint.h>

#define CHARACTER_BITS 21
#define GOLDEN 0x9E3779B97F4A7C15u
#define LINE 4        /* cells that are looked at together, those of a line of the cache */
#define TOGETHER 64   /* walkers on their way at once: one waits for memory while others go on */
#define STRETCH 1024  /* places whose words are put in order together */
#define LINES 64      /* that a key is looked for in: as in trie.py, where no table is built that needs more */

typedef struct {
    uint64_t key, value;
} Cell;

typedef struct { /* `length` characters from place `from`: at the cell `slot`, or asking for `key` in the line of it,
                  * after `lines` others */
    int64_t slot;
    uint64_t key;
    int32_t from, length, lines;
} Walker;

typedef struct { /* the same structure is in trie.py; `slots` are whole lines, and no word is longer than `longest` */
    const Cell *cells;
    int64_t slots;
    const int32_t *first;
    int64_t n_first, n_words, longest;
} Trie;

typedef struct {
    int32_t *start, *end, *word;
} Matches;

static inline int64_t home(uint64_t key, uint64_t slots) { return ((key * GOLDEN >> 32) * slots) >> 32; }

/* Matches from some neighbouring places, of each from short to long, put in the order of the places. */
static void sort(const Matches *met, int64_t n, int64_t low, int32_t *at_each, int64_t places, const Matches *found) {
    for (int32_t i = 0, sum = 0; i < places; i++) {
        int32_t here = at_each[i];
        at_each[i] = sum;
        sum += here;
    }
    for (int64_t m = 0; m < n; m++) {
        int32_t from = met->start[m], row = at_each[from]++;
        found->start[row] = low + from;
        found->end[row] = low + from + met->end[m];
        found->word[row] = met->word[m];
    }
}

/* How many words of at least `shortest` characters begin in `codes[low:high]`; the last of all codes is 0, which no word
 * holds. They are written in the order of (start, end) if there is room for all of them; beyond `most` they are not
 * counted on.
 *
 * Cells may come from a file that anyone made. Whatever they hold, slots stay inside the table and places inside the
 * text, words are among the `n_words`, and a walk ends after `longest` characters, a look after `LINES` lines.
 *
 * Whether a key is found is as good as chance. A branch for it would be mistaken as often, so a walker is written down
 * as arrived before that is known, and then counted or not. */
int64_t trie_search(const Trie *trie, const uint32_t *codes, int64_t low, int64_t high, int64_t shortest, int64_t most,
                    int64_t room, const Matches *met, const Matches *found) {
    const Cell *cells = trie->cells;
    const int64_t slots = trie->slots, n_first = trie->n_first, longest = trie->longest;
    const uint32_t n_words = trie->n_words;
    int64_t count = 0;
    for (; low < high && count <= most; low += STRETCH) {
        Walker arrived[TOGETHER + 1], asking[TOGETHER + 1];
        int32_t at_each[STRETCH], places = high - low < STRETCH ? high - low : STRETCH;
        int64_t n_arrived = 0, n_asking = 0, n_met = 0;
        for (int32_t i = 0; i < places; i++) at_each[i] = 0;
        for (int32_t i = 0;;) {
            for (; i < places && n_arrived + n_asking < TOGETHER; i++) {
                uint32_t code = codes[low + i];
                int32_t state = code < n_first ? trie->first[code] : -1;
                if (state >= 0 && state < slots) arrived[n_arrived++] = (Walker){state, 0, i, 1, 0};
            }
            if (!n_arrived && !n_asking) break;
            for (int64_t w = 0; w < n_arrived; w++) {
                Walker one = arrived[w];
                uint64_t value = cells[one.slot].value;
                uint32_t word = (uint32_t)value - 1, next = codes[low + one.from + one.length];
                if (word < n_words && one.length >= shortest) {
                    if (count + n_met < room) {
                        met->start[n_met] = one.from;
                        met->end[n_met] = one.length;
                        met->word[n_met] = word;
                    }
                    n_met++;
                    at_each[one.from]++;
                }
                if (!(value >> (32 + (next & 31)) & 1) || !next || one.length >= longest) continue;
                one.key = (uint64_t)one.slot << CHARACTER_BITS | next;
                one.slot = home(one.key, slots);
                one.length++;
                one.lines = 0;
                __builtin_prefetch(cells + one.slot);
                asking[n_asking++] = one;
            }
            int64_t still = n_arrived = 0;
            for (int64_t w = 0; w < n_asking; w++) {
                Walker one = asking[w];
                int64_t line = one.slot & -LINE;
                unsigned hit = 0, free = 0;
                for (int i = 0; i < LINE; i++) {
                    hit |= (unsigned)(cells[line + i].key == one.key) << i;
                    free |= cells[line + i].key == 0;
                }
                one.slot = line + __builtin_ctz(hit | 1 << LINE);
                arrived[n_arrived] = one;
                n_arrived += hit != 0;
                if (hit | free || ++one.lines == LINES) continue;
                one.slot = line + LINE < slots ? line + LINE : 0;
                __builtin_prefetch(cells + one.slot);
                asking[still++] = one;
            }
            n_asking = still;
        }
        if (count + n_met <= room)
            sort(met, n_met, low, at_each, places,
                 &(Matches){found->start + count, found->end + count, found->word + count});
        count += n_met;
    }
    return count;
}
