/* Places of UTF-8, whitespace, and the words of a text. For the modules in C that prepare texts. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "../_words.h"

typedef const uint8_t *Place;

/* The code point at a place of UTF-8, which is moved on. */
static uint32_t code_point(Place *at)
{
    uint32_t first = *(*at)++;
    if (first < 0x80)
        return first;
    int more = first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
    uint32_t point = first & (0x3Fu >> more);
    while (more--)
        point = point << 6 | (*(*at)++ & 0x3F);
    return point;
}

/* The whitespace of str.split in ASCII. */
static int is_space(uint8_t byte)
{
    return byte == ' ' || (byte >= 9 && byte <= 13) || (byte >= 28 && byte <= 31);
}

/* The size of the whitespace of str.split at a place, which is not ASCII; 0 for anything else. */
static int unicode_space(Place at)
{
    uint32_t point = code_point(&(Place){at});
    if (point == 0x85 || point == 0xA0)
        return 2;
    return point == 0x1680 || (point >= 0x2000 && point <= 0x200A) || point == 0x2028 || point == 0x2029 || point == 0x202F ||
                   point == 0x205F || point == 0x3000
               ? 3
               : 0;
}

/* The bytes of a str as UTF-8; NULL if it has lone surrogates, or with an exception. */
static Place bytes_of(PyObject *source, Py_ssize_t *size)
{
    Place bytes = (Place)PyUnicode_AsUTF8AndSize(source, size);
    if (!bytes && PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
        PyErr_Clear();
    return bytes;
}

static const uint64_t ONES = UINT64_MAX / 255, HIGH = UINT64_MAX / 255 * 128; /* 1 and 128 in each byte */

/* The first 8 bytes of a string, or fewer, the first of them lowest. */
static uint64_t first_of(Place bytes, int64_t size)
{
    uint64_t word = 0;
    for (int k = 0; k < size && k < 8; k++)
        word |= (uint64_t)bytes[k] << 8 * k;
    return word;
}

/* The same, read at once if there are 8 bytes before the end of the text. */
static uint64_t first_within(Place bytes, int64_t size, Place end)
{
    const uint16_t two_bytes = 1;
    uint64_t word;
    if (end - bytes < 8 || !*(Place)&two_bytes) /* the latter is known to the compiler */
        return first_of(bytes, size);
    memcpy(&word, bytes, 8);
    return size < 8 ? word & ~(UINT64_MAX << 8 * size) : word;
}

/* The highest bit of each byte of ASCII from `first` to `last`. */
static uint64_t bytes_between(uint64_t word, int first, int last)
{
    return (word + ONES * (uint64_t)(0x80 - first)) & ~(word + ONES * (uint64_t)(0x7F - last)) & HIGH;
}

/* The words of a text so far, which may consist of several parts. */
typedef struct {
    Context context;
    int open; /* whether the last word can go on */
    int words;
} Count;

/* Count the words of a part, up to `most` of all. 0 if canonical composition might change their number: it only does if
 * two tokens of a script without spaces may become one, as kana and a voicing mark do. */
static int count_words(const Table *table, Count *count, Place at, Place end, int most)
{
    Context *context = &count->context;
    while (at < end && count->words < most) {
        uint32_t one = BLANK;
        if (*at < 0x80) { /* ASCII: only the last character of a run matters to what follows */
            int open = count->open, words = 0;
            while (end - at >= 8) { /* letters, digits and _ */
                uint64_t bytes = first_within(at, 8, end);
                if (bytes & HIGH)
                    break;
                uint64_t word = bytes_between(bytes | ONES * 0x20, 'a', 'z') | bytes_between(bytes, '0', '9') | bytes_between(bytes, '_', '_');
                uint64_t begins = word & ~(word << 8 | (uint64_t)open << 7);
                words += (int)((begins >> 7) * ONES >> 56);
                open = (int)(word >> 63);
                at += 8;
            }
            while (at < end && *at < 0x80) {
                int word = (table->entries[*at++] & WORD) != 0;
                words += word & !open;
                open = word;
            }
            one = table->entries[at[-1]];
            count->words += words;
            count->open = context->base = open;
            context->first = open ? one & FIRST : 0;
            context->combining = 0;
            context->dotted = one & DOTTED;
            continue;
        }
        const uint32_t *several;
        Py_ssize_t size = mapped(table, code_point(&at), &one, &several);
        for (Py_ssize_t k = 0; k < size; k++) {
            uint32_t entry = several ? entry_of(table, several[k]) : one;
            if (is_dot_of_i(entry, &context->dotted))
                continue;
            if (!in_word(entry, context)) {
                count->open = 0;
                context->first = context->combining = 0;
                continue;
            }
            int composes = may_compose(table, entry, context), single = (entry & SINGLE) != 0;
            if (composes && single)
                return 0;
            int attached = !single && (entry & MARK);
            count->words += !attached && (single || !count->open);
            count->open = attached ? count->open : !single;
        }
    }
    return 1;
}

/* The table of unicode.py of its four arrays; 0 for arrays that do not fit together. */
static int make_table(Table *table, const Py_buffer arrays[4])
{
    *table = (Table){arrays[0].buf, arrays[2].buf, arrays[1].buf, arrays[1].len / 4, arrays[3].buf, arrays[3].len / 8};
    if (arrays[0].len == 4 * CODE_POINTS && arrays[2].len == CODE_POINTS)
        return 1;
    PyErr_Format(PyExc_ValueError, "arrays that do not fit together");
    return 0;
}
