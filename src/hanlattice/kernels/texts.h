/* What several kernels share: texts as a model reads them, the tables of characters, and the tries of a lexicon. */

#ifndef TEXTS_H
#define TEXTS_H

#include <stdint.h>

typedef struct { /* sentences without padding, as inputs/encoded.py has them: N characters and M words of all together */
    int64_t n;                                  /* sentences */
    const int64_t *chars, *bigrams;             /* N */
    const int64_t *first_char;                  /* n + 1 */
    const int64_t *words, *start, *end, *label; /* M; a word covers the characters [start, end) of its sentence */
    const int64_t *first_word;                  /* n + 1 */
} Sentences;

typedef struct { /* `chars` has the row of each code point minus UNKNOWN, `shifts` what is added to it to get its lower case.
                  * `bigrams` is a hash table of 1 << bits cells, first code << 43 | second code << 22 | row, of which at
                  * least one is 0; or NULL: a model without bigrams */
    const int64_t *chars;
    const uint32_t *shifts;
    const uint64_t *bigrams;
    int64_t bits;
} Characters;

typedef struct {
    uint64_t key, value;
} Cell;

typedef struct { /* `slots` is a multiple of 4, the cells of a cache line; no word is longer than `longest` */
    const Cell *cells;
    int64_t slots;
    const int32_t *first;
    int64_t n_first, n_words, longest;
} Trie;

typedef struct {
    int32_t *start, *end, *word;
} Matches;

typedef struct { /* an entity that a tagger finds; engines/found.py reads it */
    int64_t sentence, start, end, label;
    double probability;
} Found;

void characters_rows(const Characters *table, const uint32_t *codes, const int64_t *starts, int64_t n, int64_t *chars,
                     int64_t *bigrams);
int64_t trie_search(const Trie *trie, const uint32_t *codes, int64_t low, int64_t high, int64_t shortest, int64_t most,
                    int64_t capacity, const Matches *unsorted, const Matches *found);
int64_t chain_find(const void *chain, const Sentences *b, const float *emissions, int64_t width, Found *found);

#endif
