/* Search for every word of a lexicon in a text, and the trie for that. lexicon/trie.py describes its hash table. */

#include "texts.h"

#define CHARACTER_BITS 21
#define GOLDEN 0x9E3779B97F4A7C15u
#define LINE 4        /* cells in a cache line; they are compared together */
#define GROUP 64      /* walkers that advance in turns, so that waiting for memory overlaps */
#define STRETCH 1024  /* start positions whose matches are sorted together */
#define LINES 64      /* cache lines in which a key is searched, as in trie.py, which builds no table that needs more */

typedef struct { /* a candidate word: `length` characters from position `from`. It has reached the cell `slot`, or
                  * searches for `key` in the cache line of `slot`, after `lines` other lines */
    int64_t slot;
    uint64_t key;
    int32_t from, length, lines;
} Walker;

const int64_t sizeof_Trie = sizeof(Trie), sizeof_Matches = sizeof(Matches); /* as kernels/structs.py has them */

static inline int64_t home_slot(uint64_t key, uint64_t slots) { return ((key * GOLDEN >> 32) * slots) >> 32; }

/* Sort matches by start position; those of one position are already in the order of their length. */
static void sort(const Matches *unsorted, int64_t n, int64_t low, int32_t *at_each, int64_t places, const Matches *found) {
    for (int32_t i = 0, sum = 0; i < places; i++) {
        int32_t here = at_each[i];
        at_each[i] = sum;
        sum += here;
    }
    for (int64_t m = 0; m < n; m++) {
        int32_t from = unsorted->start[m], row = at_each[from]++;
        found->start[row] = low + from;
        found->end[row] = low + from + unsorted->end[m];
        found->word[row] = unsorted->word[m];
    }
}

/* Look for the key of each walker in `searching` in one cache line. Those whose key is there are written to `reached`;
 * those whose key may be in the next line stay in `searching`, and their number is returned.
 *
 * There is no branch on whether a key was found, because the processor could not predict it. Instead a walker is always
 * written to `reached`, and the counter advances only if its key was found. */
static inline int64_t look_up(const Cell *cells, int64_t slots, Walker *searching, int64_t n_searching, Walker *reached,
                              int64_t *n_reached) {
    int64_t still = 0, n = 0;
    for (int64_t w = 0; w < n_searching; w++) {
        Walker one = searching[w];
        int64_t line = one.slot & -LINE;
        unsigned hit = 0, free = 0;
        for (int i = 0; i < LINE; i++) {
            hit |= (unsigned)(cells[line + i].key == one.key) << i;
            free |= cells[line + i].key == 0;
        }
        one.slot = line + __builtin_ctz(hit | 1 << LINE);
        reached[n] = one;
        n += hit != 0;
        if (hit | free || ++one.lines == LINES) continue;
        one.slot = line + LINE < slots ? line + LINE : 0;
        __builtin_prefetch(cells + one.slot);
        searching[still++] = one;
    }
    *n_reached = n;
    return still;
}

/* Return the number of words with at least `shortest` characters that start in codes[low:high]. They are written in the
 * order of (start, end) if `capacity` is enough for all. Counting stops some time after `most`. The last code has to be 0,
 * which no word contains.
 *
 * Cells may come from a damaged or malicious file. Whatever they contain, slots stay inside the table and positions
 * inside the text, word ids are less than `n_words`, a walk ends after `longest` characters, and a search for a key ends
 * after LINES lines. */
int64_t trie_search(const Trie *trie, const uint32_t *codes, int64_t low, int64_t high, int64_t shortest, int64_t most,
                    int64_t capacity, const Matches *unsorted, const Matches *found) {
    const Cell *cells = trie->cells;
    const int64_t slots = trie->slots, n_first = trie->n_first, longest = trie->longest;
    const uint32_t n_words = trie->n_words;
    int64_t count = 0;
    for (; low < high && count <= most; low += STRETCH) {
        Walker reached[GROUP + 1], searching[GROUP + 1];
        int32_t at_each[STRETCH], places = high - low < STRETCH ? high - low : STRETCH;
        int64_t n_reached = 0, n_searching = 0, n_unsorted = 0;
        for (int32_t i = 0; i < places; i++) at_each[i] = 0;
        for (int32_t i = 0;;) {
            for (; i < places && n_reached + n_searching < GROUP; i++) {
                uint32_t code = codes[low + i];
                int32_t state = code < n_first ? trie->first[code] : -1;
                if (state >= 0 && state < slots) reached[n_reached++] = (Walker){state, 0, i, 1, 0};
            }
            if (!n_reached && !n_searching) break;
            for (int64_t w = 0; w < n_reached; w++) {
                Walker one = reached[w];
                uint64_t value = cells[one.slot].value;
                uint32_t word = (uint32_t)value - 1, next = codes[low + one.from + one.length];
                if (word < n_words && one.length >= shortest) {
                    if (count + n_unsorted < capacity) {
                        unsorted->start[n_unsorted] = one.from;
                        unsorted->end[n_unsorted] = one.length;
                        unsorted->word[n_unsorted] = word;
                    }
                    n_unsorted++;
                    at_each[one.from]++;
                }
                if (!(value >> (32 + (next & 31)) & 1) || !next || one.length >= longest) continue;
                one.key = (uint64_t)one.slot << CHARACTER_BITS | next;
                one.slot = home_slot(one.key, slots);
                one.length++;
                one.lines = 0;
                __builtin_prefetch(cells + one.slot);
                searching[n_searching++] = one;
            }
            n_searching = look_up(cells, slots, searching, n_searching, reached, &n_reached);
        }
        if (count + n_unsorted <= capacity)
            sort(unsorted, n_unsorted, low, at_each, places,
                 &(Matches){found->start + count, found->end + count, found->word + count});
        count += n_unsorted;
    }
    return count;
}

/* How many characters a word shares with the one before it, from the first on. Their states are known, so that sorted
 * words make a trie in about half the time. */
static inline int64_t n_shared(const uint32_t *codes, const int64_t *offsets, int64_t word) {
    const int64_t start = offsets[word], before = offsets[word - 1];
    const int64_t length = offsets[word + 1] - start, most = start - before < length ? start - before : length;
    int64_t n = 0;
    while (n < most && codes[start + n] == codes[before + n]) n++;
    return n;
}

/* The number of distinct prefixes of n words, as trie.py estimates it: equal hashes count once. `marks` has n_marks bits,
 * all 0. */
int64_t trie_count(const uint32_t *codes, const int64_t *offsets, int64_t n, uint64_t *marks, int64_t n_marks) {
    int64_t count = 0;
    for (int64_t word = 0; word < n; word++) {
        uint64_t hash = 0;
        const int64_t known = offsets[word] + (word ? n_shared(codes, offsets, word) : 0);
        for (int64_t i = offsets[word]; i < offsets[word + 1]; i++) {
            hash = (hash ^ codes[i]) * GOLDEN;
            hash ^= hash >> 29;
            if (i < known) continue;
            const int64_t at = home_slot(hash, n_marks);
            count += !(marks[at >> 6] >> (at & 63) & 1);
            marks[at >> 6] |= (uint64_t)1 << (at & 63);
        }
    }
    return count;
}

/* The slot of a key, which is inserted if it is new; -1 if `most_lines` cache lines from its home have no free slot. */
static inline int64_t inserted(Cell *cells, int64_t slots, uint64_t key, int64_t home, int most_lines) {
    int64_t line = home & -LINE;
    for (int lines = 0; lines < most_lines; lines++) {
        int64_t free = -1;
        for (int i = LINE - 1; i >= 0; i--) { /* the order of trie.py is from the home slot on */
            const int64_t slot = line | ((home + i) & (LINE - 1));
            if (cells[slot].key == key) return slot;
            if (!cells[slot].key) free = slot;
        }
        if (free >= 0) {
            cells[free].key = key;
            return free;
        }
        line = line + LINE < slots ? line + LINE : 0;
    }
    return -1;
}

/* Build the trie of n words, none of them empty. Word i has the id ids[i], or i if there are no `ids`. `cells` are 0 and
 * `first` is -1, with an element for each first character. Returns the number of distinct words; of equal words the first
 * counts. Returns -1 if a key has no free slot in `lines` cache lines from its home (at most LINES); then the table has to be
 * larger.
 *
 * GROUP words advance together, one character in each round, so that waiting for memory overlaps. */
int64_t trie_build(Cell *cells, int64_t slots, int32_t *first, const uint32_t *codes, const int64_t *offsets,
                   const int32_t *ids, int64_t n, int lines) {
    int64_t distinct = 0;
    cells[0].key = 1; /* reserved: no state has the number 0, and no transition has the key 0 */
    for (int64_t low = 0; low < n; low += GROUP) {
        int64_t state[GROUP], home[GROUP], length[GROUP], shared[GROUP], open[GROUP];
        int64_t n_open = n - low < GROUP ? n - low : GROUP;
        for (int64_t w = 0; w < n_open; w++) {
            open[w] = w;
            state[w] = slots;
            length[w] = offsets[low + w + 1] - offsets[low + w];
            shared[w] = w ? n_shared(codes, offsets, low + w) : 0;
        }
        for (int64_t depth = 0; n_open; depth++) {
            for (int64_t i = 0; i < n_open; i++) {
                const int64_t w = open[i];
                if (depth < shared[w]) continue;
                const uint32_t code = codes[offsets[low + w] + depth];
                home[w] = home_slot((uint64_t)state[w] << CHARACTER_BITS | code, slots);
                __builtin_prefetch(cells + home[w]);
                if (depth) cells[state[w]].value |= (uint64_t)1 << (32 + (code & 31));
            }
            int64_t still = 0;
            for (int64_t i = 0; i < n_open; i++) {
                const int64_t w = open[i];
                const uint32_t code = codes[offsets[low + w] + depth];
                state[w] = depth < shared[w]
                               ? state[w - 1]
                               : inserted(cells, slots, (uint64_t)state[w] << CHARACTER_BITS | code, home[w], lines);
                if (state[w] < 0) return -1;
                if (!depth) first[code] = state[w];
                open[still] = w;
                still += depth + 1 < length[w];
                if (depth + 1 < length[w]) continue;
                Cell *end = cells + state[w];
                if ((uint32_t)end->value) continue;
                end->value |= (uint64_t)((ids ? ids[low + w] : low + w) + 1);
                distinct++;
            }
            n_open = still;
        }
    }
    return distinct;
}

#define PAIR_BITS 18 /* of the hash of two characters */
#define PAIR(first, second) (((uint64_t)(first) << CHARACTER_BITS | (second)) * GOLDEN >> (64 - PAIR_BITS))

/* Write to `chosen` which of n words may occur in a text of `length` characters: those whose first two characters follow each
 * other there, those of one character that is there, and a few others, because pairs with equal hashes count as equal. No
 * word is empty. Returns their number. */
int64_t trie_choose(const uint32_t *codes, const int64_t *offsets, int64_t n, const uint32_t *text, int64_t length,
                    int32_t *chosen) {
    uint64_t marks[(1 << PAIR_BITS) / 64] = {0};
    for (int64_t i = 0; i < length; i++) {
        const uint64_t alone = PAIR(text[i], 0), pair = PAIR(text[i], i + 1 < length ? text[i + 1] : 0);
        marks[alone >> 6] |= (uint64_t)1 << (alone & 63);
        marks[pair >> 6] |= (uint64_t)1 << (pair & 63);
    }
    int64_t count = 0;
    for (int64_t word = 0; word < n; word++) {
        const uint32_t *at = codes + offsets[word];
        const uint64_t pair = PAIR(at[0], offsets[word + 1] - offsets[word] > 1 ? at[1] : 0);
        chosen[count] = (int32_t)word;
        count += marks[pair >> 6] >> (pair & 63) & 1;
    }
    return count;
}
