/* What a model reads of texts, see inputs/reader.py: the rows of their characters, of their bigrams, and of the words of a
 * lexicon that occur in them. */

#include <stdlib.h>

#include "texts.h"

typedef struct {
    const Characters *characters;
    const Trie *tries;        /* the layers of the lexicon */
    const int64_t *first_ids; /* the id of the first word of each layer */
    int64_t n_tries;
    const uint8_t *present;   /* whether the word of each id is still in the lexicon; NULL: all are */
    const int64_t *rows;      /* of each id, the row of the word in its table plus 1, or 0 if it is not known yet */
    const int64_t *kinds;     /* of each id, the row of the kind of the word */
    int64_t shortest;         /* characters of a word */
    int64_t user_kind;        /* the kinds from here on are those of user words */
} Reader;

typedef struct { /* at the start of the memory of sentences */
    Sentences sentences;
    int64_t n_unknown; /* words whose rows are not known: `words` has -1 - id instead */
} Header;

const int64_t sizeof_Reader = sizeof(Reader), sizeof_Header = sizeof(Header); /* as kernels/structs.py has them */

static inline void copy(const Matches *from, int64_t row, const Matches *to, int64_t place) {
    to->start[place] = from->start[row];
    to->end[place] = from->end[row];
    to->word[place] = from->word[row];
}

/* Merge the first `a` matches with the `b` matches after them; both are in the order of (start, end). `scratch` has memory
 * for b matches. */
static void merge(const Matches *found, int64_t a, int64_t b, const Matches *scratch) {
    for (int64_t k = 0; k < b; k++) copy(found, a + k, scratch, k);
    for (int64_t i = a - 1, k = b - 1; k >= 0;) {
        const int before = i >= 0 && (found->start[i] > scratch->start[k] ||
                                      (found->start[i] == scratch->start[k] && found->end[i] > scratch->end[k]));
        const int64_t place = i + k + 1;
        if (before)
            copy(found, i--, found, place);
        else
            copy(scratch, k--, found, place);
    }
}

/* The words of all layers in codes[0:length]: their number, which may be more than `capacity`. */
static int64_t search(const Reader *r, const uint32_t *codes, int64_t length, int64_t most, int64_t capacity,
                      const Matches *scratch, const Matches *found) {
    int64_t count = 0;
    for (int64_t t = 0; t < r->n_tries && count <= most; t++) {
        const int64_t before = count < capacity ? count : capacity;
        const Matches rest = {found->start + before, found->end + before, found->word + before};
        const int64_t n =
            trie_search(r->tries + t, codes, 0, length, r->shortest, most, capacity - before, scratch, &rest);
        count += n;
        if (count > capacity) continue;
        for (int64_t m = 0; m < n; m++) rest.word[m] += (int32_t)r->first_ids[t];
        if (before && n) merge(found, before, n, scratch);
    }
    return count;
}

static inline int is_latin(uint32_t code) { return (code | 32) - 'a' < 26u || code - '0' < 10u; }

/* Whether a position is inside a run of Latin letters and digits. */
static inline int is_inside_a_run(const uint32_t *codes, int64_t at) {
    return at > 0 && is_latin(codes[at - 1]) && is_latin(codes[at]);
}

/* The kind of a match. User words that are a part of a longer Latin word, as AI in OpenAI, are ordinary words there. */
static inline int64_t kind_of(const Reader *r, const uint32_t *codes, const Matches *found, int64_t m) {
    const int64_t kind = r->kinds[found->word[m]];
    if (kind < r->user_kind) return kind;
    return is_inside_a_run(codes, found->start[m]) || is_inside_a_run(codes, found->end[m]) ? 0 : kind;
}

/* Write the matches that are still words, with positions in their texts, and where those of each text begin. */
static void write_words(const Reader *r, const uint32_t *codes, const Matches *found, int64_t count,
                        const int64_t *starts, int64_t n, Header *header, int64_t *words, int64_t *start, int64_t *end,
                        int64_t *label, int64_t *first_word) {
    int64_t text = 0, kept = 0;
    header->n_unknown = first_word[0] = 0;
    for (int64_t m = 0; m < count; m++) {
        const int32_t word = found->word[m];
        if (r->present && !r->present[word]) continue;
        while (found->start[m] >= starts[text + 1]) first_word[++text] = kept;
        start[kept] = found->start[m] - starts[text];
        end[kept] = found->end[m] - starts[text];
        header->n_unknown += !r->rows[word];
        words[kept] = r->rows[word] ? r->rows[word] - 1 : -1 - (int64_t)word;
        label[kept++] = kind_of(r, codes, found, m);
    }
    while (text < n) first_word[++text] = kept;
}

/* Read n texts, which are given as characters_rows takes them; a single text needs no `starts`. `memory` has the header, the rows of characters and of
 * bigrams, where the characters and the words of each text begin, and with space for `capacity` words their rows, starts,
 * ends and kinds. Returns how many words were found; if they are more than `capacity`, the sentences are not complete, and
 * counting stops some time after `most`. Returns -1 if memory is short. */
int64_t reader_read(const Reader *r, const uint32_t *codes, int64_t length, const int64_t *starts, int64_t n, int64_t most,
                    int64_t capacity, int64_t *memory) {
    const int64_t n_chars = length - n, of_one[] = {0, length};
    if (n == 1) starts = of_one;
    int64_t *chars = memory + sizeof(Header) / sizeof(int64_t), *bigrams = chars + n_chars;
    int64_t *first_char = bigrams + n_chars, *first_word = first_char + n + 1;
    int64_t *words = first_word + n + 1, *start = words + capacity, *end = start + capacity, *label = end + capacity;
    Header *header = (Header *)memory;
    int32_t *scratch_memory = malloc(6 * sizeof(int32_t) * (capacity + 1));
    if (!scratch_memory) return -1;
    const Matches scratch = {scratch_memory, scratch_memory + capacity, scratch_memory + 2 * capacity};
    const Matches found = {scratch_memory + 3 * capacity, scratch_memory + 4 * capacity, scratch_memory + 5 * capacity};
    header->sentences = (Sentences){n, chars, bigrams, first_char, words, start, end, label, first_word};
    for (int64_t i = 0; i <= n; i++) first_char[i] = starts[i] - i;
    characters_rows(r->characters, codes, starts, n, chars, bigrams);
    const int64_t count = search(r, codes, length ? length - 1 : 0, most, capacity, &scratch, &found);
    if (count <= capacity) write_words(r, codes, &found, count, starts, n, header, words, start, end, label, first_word);
    free(scratch_memory);
    return count;
}
