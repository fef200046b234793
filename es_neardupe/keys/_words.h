/* What words are made of: the table of unicode.py, and what a code point is in its context. For the modules in C that make
 * or count words. */

#include <stdint.h>

#define BLANK 0x20
#define CODE_POINTS 0x110000
#define TARGET 0x1FFFFF
#define WORD (1u << 24)
#define SINGLE (1u << 25)
#define EXPANDS (1u << 26)
#define MARK (1u << 27)
#define DIGIT (1u << 28)
#define FIRST (1u << 29)
#define SECOND (1u << 30)
#define DOTTED (1u << 31)
#define DOT_ABOVE 0x307

/* The arrays of unicode.py. */
typedef struct {
    const uint32_t *entries;
    const uint8_t *combining;
    const uint32_t *pool;
    Py_ssize_t pool_size;
    const uint64_t *pairs; /* sorted: the two code points of a canonical composition and, in its last bits, the result */
    Py_ssize_t pair_count;
} Table;

/* What canonical composition of the text so far depends on, and whether a mark has a base. */
typedef struct {
    uint32_t first;
    uint8_t combining;
    int base;
    uint32_t dotted; /* whether a dot above would belong to an i */
} Context;

/* Whether a mapped code point is a dot above that belongs to an i. */
static int is_dot_of_i(uint32_t entry, uint32_t *dotted)
{
    if ((entry & TARGET) == DOT_ABOVE && *dotted)
        return 1;
    if (!(entry & MARK) || !(entry & DOTTED))
        *dotted = entry & DOTTED;
    return 0;
}

/* Whether a mapped code point is part of a word; a mark is one only after a word character. */
static inline int in_word(uint32_t entry, Context *context)
{
    context->base = (entry & WORD) && (context->base || !(entry & MARK));
    return context->base;
}

/* Whether the text so far, with this word character, may not be composed canonically; then it is composed, which takes
 * longer but is never wrong. */
static inline int may_compose(const Table *table, uint32_t entry, Context *context)
{
    uint32_t point = entry & TARGET;
    uint8_t combining = (entry & MARK) && point < CODE_POINTS ? table->combining[point] : 0;
    int found = ((entry & SECOND) && context->first) || (combining && context->combining > combining);
    if (!combining)
        context->first = entry & FIRST;
    context->combining = combining;
    return found;
}

/* The entries of the code points that replace one: their number, 0 for one that is removed. A code point of a text that
 * is composed already is mapped to itself. */
static Py_ssize_t mapped(const Table *table, Py_UCS4 point, uint32_t *one, const uint32_t **several)
{
    uint32_t entry = table->entries[point];
    *several = NULL;
    if (!(entry & EXPANDS)) {
        *one = entry;
        return 1;
    }
    Py_ssize_t place = entry & TARGET;
    if (place >= table->pool_size || (Py_ssize_t)table->pool[place] > table->pool_size - place - 1)
        return 0;
    *several = table->pool + place + 1;
    return table->pool[place];
}

static uint32_t entry_of(const Table *table, uint32_t point)
{
    return point < CODE_POINTS ? table->entries[point] & ~EXPANDS : BLANK;
}
