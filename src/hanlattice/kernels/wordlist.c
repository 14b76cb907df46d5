/* Read a word list: lines `word` and `word TAB label`. lexicon/wordlist.py reads the lists that this function refuses. */

#include <stdint.h>
#include <string.h>

#define MOST_LABELS 256

static inline int is_space(uint32_t c) { /* as str.isspace in Python */
    if (c > 0x3000) return 0;
    return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/* The character at a position, which then moves behind it; 0 if the bytes are not UTF-8, or at a NUL character. */
static inline uint32_t next_character(const uint8_t *text, int64_t n, int64_t *at) {
    const uint8_t *p = text + *at;
    const int64_t left = n - *at;
    if (p[0] < 0x80) {
        *at += 1;
        return p[0];
    }
    if (p[0] < 0xE0) {
        if (p[0] < 0xC2 || left < 2 || (p[1] & 0xC0) != 0x80) return 0;
        *at += 2;
        return (p[0] & 0x1Fu) << 6 | (p[1] & 0x3Fu);
    }
    if (p[0] < 0xF0) {
        if (left < 3 || (p[1] & 0xC0) != 0x80 || (p[2] & 0xC0) != 0x80) return 0;
        const uint32_t c = (p[0] & 0xFu) << 12 | (p[1] & 0x3Fu) << 6 | (p[2] & 0x3Fu);
        *at += 3;
        return c < 0x800 || (c >= 0xD800 && c <= 0xDFFF) ? 0 : c;
    }
    if (left < 4 || (p[1] & 0xC0) != 0x80 || (p[2] & 0xC0) != 0x80 || (p[3] & 0xC0) != 0x80) return 0;
    const uint32_t c = (p[0] & 0x7u) << 18 | (p[1] & 0x3Fu) << 12 | (p[2] & 0x3Fu) << 6 | (p[3] & 0x3Fu);
    *at += 4;
    return p[0] > 0xF4 || c < 0x10000 || c > 0x10FFFF ? 0 : c;
}

/* The character of three bytes at a position if it is from U+3400 to U+9FFF, else 0. */
static inline uint32_t chinese(const uint8_t *text, int64_t n, int64_t at) {
    uint32_t four;
    if (n - at < 4) return 0;
    memcpy(&four, text + at, 4);
    const uint32_t c = (four & 0xF) << 12 | (four >> 2 & 0xFC0) | (four >> 16 & 0x3F);
    return (four & 0xC0C0F0) == 0x8080E0 && c >= 0x3400 && c <= 0x9FFF ? c : 0;
}

/* Whether bytes are a label: UTF-8 without tabs, NUL characters, or white space at its ends. `characters` is their number. */
static int is_label(const uint8_t *text, int64_t at, int64_t end, int64_t *characters) {
    uint32_t c = ' ';
    for (*characters = 0; at < end; ++*characters) {
        const int is_first = !*characters;
        c = next_character(text, end, &at);
        if (!c || c == '\t' || (is_first && is_space(c))) return 0;
    }
    return !is_space(c);
}

typedef struct { /* distinct labels: where they are in the list, in bytes, and their lengths in characters */
    int64_t *places, n, last, characters[MOST_LABELS];
} Labels;

/* The number of a label, which is added if it is new; -1 if it is not a label, or one too many. */
static inline int64_t label_of(const uint8_t *text, int64_t start, int64_t end, Labels *labels) {
    const int64_t size = end - start, *places = labels->places;
#define IS(i) (places[2 * (i) + 1] - places[2 * (i)] == size && !memcmp(text + places[2 * (i)], text + start, size))
    if (labels->n && IS(labels->last)) return labels->last; /* mostly that of the line before */
    int64_t id = 0;
    while (id < labels->n && !IS(id)) id++;
#undef IS
    if (id == labels->n) {
        if (id == MOST_LABELS || !is_label(text, start, end, labels->characters + id)) return -1;
        labels->places[2 * id] = start;
        labels->places[2 * id + 1] = end;
        labels->n++;
    }
    return labels->last = id;
}

/* Whether a word comes after another one in the order of code points. */
static inline int follows(const uint32_t *other, int64_t other_length, const uint32_t *word, int64_t length) {
    int64_t i = 0;
    while (i < other_length && i < length && word[i] == other[i]) i++;
    return i < length && (i == other_length || word[i] > other[i]);
}

/* Read a list of n bytes. `codes` has space for n characters, `offsets` for a number per line and one more, `label_ids` for
 * a number per line; `places` for start and end, in bytes, of MOST_LABELS distinct labels, of which there are *n_labels.
 * *is_sorted is 1 if each word comes after the one before it in the order of code points, else 0.
 *
 * Returns the number of lines, or -1 if the list has anything but these lines: an error, a second tab, a blank line, an
 * empty field or white space around one, a line of more than `longest` characters, more labels. */
int64_t wordlist_read(const uint8_t *text, int64_t n, int64_t longest, uint32_t *codes, int64_t *offsets, int32_t *label_ids,
                      int64_t *places, int64_t *n_labels, int64_t *is_sorted) {
    int64_t at = n >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3) ? 3 : 0, lines = 0, n_codes = 0, before = 0;
    Labels labels = {.places = places};
    offsets[0] = 0;
    *is_sorted = 1;
    for (int64_t first; at < n; before = first) {
        first = n_codes;
        uint32_t c = 0;
        while (at < n) {
            while ((c = chinese(text, n, at))) { /* most of the characters of most lists */
                codes[n_codes++] = c;
                at += 3;
            }
            if (at == n) break;
            c = next_character(text, n, &at);
            if (!c) return -1;
            if (c == '\t' || c == '\n') break;
            codes[n_codes++] = c;
        }
        int64_t length = n_codes - first, id = -1;
        if (!length || is_space(codes[first]) || is_space(codes[n_codes - 1])) return -1;
        if (c == '\t') {
            int64_t end = at;
            while (end < n && text[end] != '\n') end++;
            if ((id = label_of(text, at, end, &labels)) < 0) return -1;
            length += 1 + labels.characters[id];
            at = end + 1;
        }
        if (length > longest) return -1;
        if (lines && *is_sorted) *is_sorted = follows(codes + before, first - before, codes + first, n_codes - first);
        label_ids[lines] = (int32_t)id;
        offsets[++lines] = n_codes;
    }
    *n_labels = labels.n;
    return lines;
}
