/* The inner loops of the hot path in C. They give the same bits as the numpy code beside each of their callers, which
 * does the work where this was not built: without a compiler, and on big-endian machines. Every access to memory is
 * within what was handed in, whatever that holds. Only the limited API is used, so that one wheel serves each Python. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "_words.h"

#if !PY_LITTLE_ENDIAN
#error "words are read as little-endian"
#endif

#ifdef _MSC_VER
#include <intrin.h>
#define RESTRICT __restrict
#else
#define RESTRICT restrict
#endif

#define ONES UINT64_C(0x0101010101010101)
#define BLANKS (BLANK * ONES)
#define GOLDEN UINT64_C(0x9E3779B97F4A7C15)
#define MULTIPLIER UINT64_C(0xD1342543DE82EF95)
#define MIX_FIRST UINT64_C(0xBF58476D1CE4E5B9)
#define MIX_SECOND UINT64_C(0x94D049BB133111EB)

static uint64_t mix64(uint64_t value)
{
    value = (value ^ (value >> 30)) * MIX_FIRST;
    value = (value ^ (value >> 27)) * MIX_SECOND;
    return value ^ (value >> 31);
}

/* Bytes that grow. */
typedef struct {
    uint8_t *bytes;
    Py_ssize_t length, capacity;
} Content;

static int reserve(Content *content, Py_ssize_t bytes)
{
    if (content->capacity - content->length >= bytes)
        return 1;
    Py_ssize_t capacity = 2 * content->capacity + bytes;
    uint8_t *grown = realloc(content->bytes, capacity); /* without the global lock */
    if (!grown)
        return 0;
    content->bytes = grown;
    content->capacity = capacity;
    return 1;
}

/* Write a code point as UTF-8: at most 4 bytes. */
static uint8_t *write_utf8(uint8_t *at, uint32_t point)
{
    if (point < 0x80)
        *at++ = (uint8_t)point;
    else if (point < 0x800) {
        *at++ = (uint8_t)(0xC0 | point >> 6);
        *at++ = 0x80 | (point & 0x3F);
    } else if (point < 0x10000) {
        *at++ = (uint8_t)(0xE0 | point >> 12);
        *at++ = 0x80 | (point >> 6 & 0x3F);
        *at++ = 0x80 | (point & 0x3F);
    } else {
        *at++ = (uint8_t)(0xF0 | point >> 18);
        *at++ = 0x80 | (point >> 12 & 0x3F);
        *at++ = 0x80 | (point >> 6 & 0x3F);
        *at++ = 0x80 | (point & 0x3F);
    }
    return at;
}

/* The code point that ends before a place, and where it begins; 0 if nothing is there. */
static uint32_t last_point(const uint8_t *start, uint8_t *end, uint8_t **from)
{
    uint8_t *at = end;
    uint32_t point = 0;
    int bits = 0;
    while (at > start && (*--at & 0xC0) == 0x80 && bits < 18) {
        point |= (uint32_t)(*at & 0x3F) << bits;
        bits += 6;
    }
    *from = at;
    return at == end ? 0 : bits ? point | (uint32_t)(*at & (0x3F >> bits / 6)) << bits : *at;
}

/* The canonical composition of two adjacent code points, or 0. Syllables of Hangul are computed (The Unicode Standard,
 * chapter 3.12). */
static uint32_t composed_pair(const Table *table, uint32_t first, uint32_t second)
{
    if (first - 0x1100 < 19 && second - 0x1161 < 21)
        return 0xAC00 + ((first - 0x1100) * 21 + (second - 0x1161)) * 28;
    if (first - 0xAC00 < 19 * 21 * 28 && (first - 0xAC00) % 28 == 0 && second - 0x11A8 < 27)
        return first + (second - 0x11A7);
    uint64_t wanted = (uint64_t)first << 43 | (uint64_t)second << 22;
    Py_ssize_t low = 0, high = table->pair_count;
    while (low < high) {
        Py_ssize_t middle = low + (high - low) / 2;
        if (table->pairs[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == table->pair_count || (table->pairs[low] ^ wanted) >> 22)
        return 0;
    return table->pairs[low] & TARGET;
}

/* A text with each code point mapped and separators as blanks: canonical composition is what remains to be done. Adjacent
 * pairs are composed at once. The text stays canonically equivalent, and usually needs no more, which is quick to see. */
static PyObject *mapped_text(const Table *table, const Py_UCS4 *source, Py_ssize_t size)
{
    Py_ssize_t length = 0, capacity = 0;
    uint32_t one = BLANK, dotted = 0;
    const uint32_t *several;
    for (Py_ssize_t at = 0; at < size; at++)
        capacity += mapped(table, source[at], &one, &several);
    Py_UCS4 *points = PyMem_New(Py_UCS4, capacity);
    if (!points)
        return PyErr_NoMemory();
    for (Py_ssize_t at = 0; at < size; at++) {
        Py_ssize_t count = mapped(table, source[at], &one, &several);
        for (Py_ssize_t k = 0; k < count; k++) {
            uint32_t entry = several ? entry_of(table, several[k]) : one;
            uint32_t point = (entry & WORD) && (entry & TARGET) < CODE_POINTS ? entry & TARGET : BLANK, pair = 0;
            if (is_dot_of_i(entry, &dotted))
                continue;
            if ((entry & SECOND) && length)
                pair = composed_pair(table, points[length - 1], point);
            if (pair && pair < CODE_POINTS)
                points[length - 1] = pair;
            else
                points[length++] = point;
        }
    }
    int little_endian = -1;
    PyObject *found = PyUnicode_DecodeUTF32((char *)points, 4 * length, "surrogatepass", &little_endian);
    PyMem_Free(points);
    return found;
}

/* The 8 bytes at a place; blanks stand for what lies behind the end. */
static uint64_t word_at(const uint8_t *at, const uint8_t *end)
{
    uint64_t word = BLANKS;
    if (end - at >= 8)
        memcpy(&word, at, 8);
    else if (end > at)
        memcpy(&word, at, end - at);
    return word;
}

/* The zero bits below the lowest one. Arithmetic instead of the instruction makes hashing take a fifth more time. */
static int trailing_zeros(uint64_t value)
{
#ifdef _MSC_VER
    unsigned long count;
    _BitScanForward64(&count, value);
    return (int)count;
#else
    return __builtin_ctzll(value);
#endif
}

/* A term of the sum over the 8-byte words j of a token: mix64(word + GOLDEN * (size + 2^32 * j)). */
static uint64_t term(uint64_t word, Py_ssize_t size, Py_ssize_t number)
{
    Py_ssize_t rest = size - 8 * number;
    if (rest < 8)
        word &= (UINT64_C(1) << (8 * rest)) - 1;
    return mix64(word + GOLDEN * ((uint64_t)size + ((uint64_t)number << 32)));
}

/* What a function returns for an array: numpy.frombuffer reads it, and may write to it. */
static void *new_array(PyObject **array, Py_ssize_t numbers)
{
    *array = PyByteArray_FromStringAndSize(NULL, 8 * numbers);
    return *array ? PyByteArray_AsString(*array) : NULL;
}

static int are_bounds(const int64_t *bound, Py_ssize_t texts, Py_ssize_t values)
{
    int in_order = bound[0] >= 0 && bound[texts] <= values;
    for (Py_ssize_t text = 0; text < texts; text++)
        in_order &= bound[text] <= bound[text + 1];
    return in_order;
}

/* A token or character, given its hash, or letters of ASCII and the hashes of all. */
static inline uint64_t unit(const uint64_t *hash, const uint8_t *letter, Py_ssize_t k)
{
    return letter ? hash[letter[k]] : hash[k];
}

/* The Horner sum of some units. That of a shingle begins with their number. */
static inline uint64_t sum_units(const uint64_t *hash, const uint8_t *letter, Py_ssize_t from, Py_ssize_t size, uint64_t sum)
{
    for (Py_ssize_t k = from; k < from + size; k++)
        sum = sum * MULTIPLIER + unit(hash, letter, k);
    return sum;
}

/* Shingles of a text of so many tokens: one of all of them if they are fewer than its size. */
static Py_ssize_t count_shingles(Py_ssize_t tokens, Py_ssize_t size)
{
    return tokens < size ? tokens > 0 : tokens - size + 1;
}

#define BATCH 64
#define GROUP 32
#define SHIFTS 8
#define PAD 80 /* blanks behind a folded text: a block of 64 bytes and two words are read beyond its end */

/* Where values meet others: each writes its number to its place in a table, and looks it up when all have done so: beside
 * the permutations, whose vectors leave other parts of the processor idle. */
typedef struct {
    uint16_t *last, *met; /* the table; the numbers of those that find another one there, or NULL: numbers are written */
    uint64_t mask;
    Py_ssize_t meetings;
} Places;

static inline void take_place(Places *places, uint64_t value, Py_ssize_t number)
{
    uint16_t *last = &places->last[value & places->mask];
    if (!places->met) {
        *last = (uint16_t)number;
        return;
    }
    places->met[places->meetings] = (uint16_t)number;
    places->meetings += *last != (uint16_t)number;
}

typedef struct {
    void (*fold_ascii)(const uint8_t *, Py_ssize_t, uint8_t *);
    Py_ssize_t (*fold_prefix)(const Py_UCS4 *, uint8_t *);
    Py_ssize_t (*find_edges)(const uint8_t *, Py_ssize_t, uint32_t *);
    void (*hash_batch)(const uint64_t *, const uint64_t *, uint64_t *);
    void (*hash_windows)(const uint64_t *, const uint8_t *, Py_ssize_t, Py_ssize_t, uint64_t *);
    void (*extremes_of_group)(const uint64_t *, Py_ssize_t, const uint32_t *, const uint32_t *, uint32_t *, uint32_t *,
                              Places *);
    int letters; /* whether hash_windows takes letters */
} Loops;

#if defined(__x86_64__) && defined(__GNUC__) && !defined(NO_LANES)
#include <immintrin.h>
#define HAVE_LANES

typedef uint64_t Four __attribute__((vector_size(32))); /* a vector of GCC and Clang, with operators */

/* Of 16 bytes, see fold_ascii. */
static inline __m128i fold_16(__m128i source)
{
    const __m128i bit = _mm_set1_epi8(0x20);
    __m128i lower = _mm_or_si128(source, bit), from_a = _mm_sub_epi8(lower, _mm_set1_epi8('a'));
    __m128i from_0 = _mm_sub_epi8(source, _mm_set1_epi8('0'));
    __m128i word = _mm_or_si128(_mm_cmpeq_epi8(_mm_min_epu8(from_a, _mm_set1_epi8(25)), from_a),
                                _mm_cmpeq_epi8(_mm_min_epu8(from_0, _mm_set1_epi8(9)), from_0));
    __m128i line = _mm_cmpeq_epi8(source, _mm_set1_epi8('_'));
    __m128i kept = _mm_or_si128(_mm_and_si128(word, lower), _mm_and_si128(line, source));
    return _mm_or_si128(kept, _mm_andnot_si128(_mm_or_si128(word, line), bit));
}
#endif

#define NAME(x) x##_plain
#define PROCESSOR
#define LANE_BITS 0
#include "_lanes.h"
#undef NAME
#undef PROCESSOR
#undef LANE_BITS

#ifdef HAVE_LANES
#define NAME(x) x##_256
#define PROCESSOR __attribute__((target("avx2,bmi,popcnt")))
#define LANE_BITS 256
#include "_lanes.h"
#undef NAME
#undef PROCESSOR
#undef LANE_BITS
#define NAME(x) x##_512
#define PROCESSOR __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi2,bmi,popcnt")))
#define LANE_BITS 512
#include "_lanes.h"
#undef NAME
#undef PROCESSOR
#undef LANE_BITS
#endif

static const Loops *loops = &loops_plain;

/* Choose the loops of the widest vectors that this processor has, at most so many bits. Returns the bits. */
static int choose_loops(int most)
{
    loops = &loops_plain;
#ifdef HAVE_LANES
    __builtin_cpu_init(); /* Clang does not do so for a shared library */
    if (most < 256 || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi") ||
        !__builtin_cpu_supports("popcnt"))
        return 0;
    loops = &loops_256;
    if (most < 512 || !__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl") ||
        !__builtin_cpu_supports("avx512vbmi2"))
        return 256;
    loops = &loops_512;
    return 512;
#else
    (void)most;
    return 0;
#endif
}

PyDoc_STRVAR(use_lanes_doc, "use_lanes(bits) -> int: use vectors of at most so many bits, 0: plain C; returns the bits "
                            "of those that this processor has. The widest are used without this call, which is for tests.");

static PyObject *use_lanes(PyObject *self, PyObject *bits)
{
    long most = PyLong_AsLong(bits);
    if (most == -1 && PyErr_Occurred())
        return NULL;
    return PyLong_FromLong(choose_loops(most < 256 ? 0 : most < 512 ? 256 : 512));
}

/* Flags of the short table; between the lower four and the upper one is the number of bytes. */
#define IS_SINGLE 1u
#define IS_SLOW 2u
#define IS_FIRST 4u
#define IS_WORD 8u
#define IS_DOTTED 128u

/* The table of unicode.py in two levels: blocks of 256 code points, each as the UTF-8 of what replaces it. */
typedef struct {
    const uint16_t *block;
    const uint32_t *bytes;
    const uint8_t *flags;
} Short;

/* What decides about the next character of a text that is folded. */
typedef struct {
    uint32_t before; /* flags of the character before: IS_WORD, IS_FIRST, IS_DOTTED */
    uint32_t closed; /* 1: it ends its token */
    uint8_t combining;
} State;

/* Any code point: those that map to several or none, marks, and those that may compose with the one before. */
static int fold_point(const Table *table, Py_UCS4 point, int composed, State *state, Content *folded, Py_ssize_t left)
{
    uint32_t one = BLANK;
    const uint32_t *several;
    Py_ssize_t count = mapped(table, point, &one, &several);
    if (!reserve(folded, 5 * count + 8 * left + PAD))
        return -1;
    uint8_t *at = folded->bytes + folded->length;
    for (Py_ssize_t k = 0; k < count; k++) {
        uint32_t entry = several ? entry_of(table, several[k]) : one, target = entry & TARGET;
        uint32_t dotted = state->before & IS_DOTTED;
        if (is_dot_of_i(entry, &dotted))
            continue;
        if (!(entry & WORD) || ((entry & MARK) && !(state->before & IS_WORD))) {
            *at++ = BLANK;
            state->before = state->closed = state->combining = 0;
            continue;
        }
        uint8_t combining = (entry & MARK) && target < CODE_POINTS ? table->combining[target] : 0;
        int second = !composed && (entry & SECOND) && (state->before & IS_FIRST);
        if (!composed && combining && state->combining > combining)
            return 0; /* to be reordered */
        if (second && !state->combining) { /* directly after the first: no other mark is between them */
            uint8_t *from;
            uint32_t pair = composed_pair(table, last_point(folded->bytes, at, &from), target);
            if (pair && pair < CODE_POINTS && (table->entries[pair] & (EXPANDS | TARGET)) == pair) {
                at = write_utf8(from, pair);
                state->before = IS_WORD | IS_FIRST | (dotted ? IS_DOTTED : 0);
                continue;
            }
        }
        if (second)
            return 0;
        if (!combining)
            state->before = IS_WORD | (entry & FIRST ? IS_FIRST : 0);
        state->before = (state->before & ~IS_DOTTED) | (dotted ? IS_DOTTED : 0);
        state->combining = combining;
        int single = (entry & SINGLE) != 0, attached = !single && (entry & MARK);
        if (!attached && (single || state->closed))
            *at++ = BLANK;
        at = write_utf8(at, target);
        state->closed = attached ? state->closed : (uint32_t)single;
    }
    folded->length = at - folded->bytes;
    return 1;
}

/* The folded bytes of a text, separators as blanks. Returns 1, 0 if it must be composed first, or -1 without memory. */
static int fold_points(const Table *table, const Short *brief, const Py_UCS4 *points, Py_ssize_t size, int composed,
                       Content *folded)
{
    const uint16_t *block = brief->block;
    const uint32_t *bytes = brief->bytes;
    const uint8_t *flags_of = brief->flags;
    uint32_t before = 0, closed = 0; /* as in State */
    uint8_t combining = 0;
    folded->length = 0;
    for (Py_ssize_t from = 0; from < size; from += 16) {
        Py_ssize_t count = size - from < 16 ? size - from : 16, k = 0;
        if (!reserve(folded, 8 * count + PAD))
            return -1;
        uint8_t *at = folded->bytes + folded->length;
        if (count == 16 && points[from] < 0x80) {
            *at = BLANK;
            at += closed;
            k = loops->fold_prefix(points + from, at);
            at += k;
            before = flags_of[(size_t)block[0] << 8 | at[-1]];
            closed = combining = 0;
        }
        for (; k < count; k++) {
            Py_UCS4 point = points[from + k];
            size_t place = (size_t)block[point >> 8] << 8 | (point & 0xFF);
            uint32_t flags = flags_of[place];
            if (flags & IS_SLOW) {
                State state = {before, closed, combining};
                folded->length = at - folded->bytes;
                int made = fold_point(table, point, composed, &state, folded, count - k);
                if (made < 1)
                    return made;
                at = folded->bytes + folded->length;
                before = state.before;
                closed = state.closed;
                combining = state.combining;
                continue;
            }
            *at = BLANK;
            at += (flags & IS_SINGLE) | closed;
            memcpy(at, &bytes[place], 4);
            at += flags >> 4 & 7;
            before = flags;
            closed = flags & IS_SINGLE;
            combining = 0;
        }
        folded->length = at - folded->bytes;
    }
    return reserve(folded, PAD) ? 1 : -1;
}

/* Memory that is used for one text after the other. */
typedef struct {
    Content folded;
    uint32_t *edge;
    uint64_t *unit, *value, *table; /* unit: the hashes of tokens or characters */
    uint16_t *last, *met;
    Py_ssize_t edges, units;
    uint64_t word[2 * BATCH], size[BATCH];
} Work;

static int grow(void *pointer, Py_ssize_t *capacity, Py_ssize_t wanted, size_t size)
{
    void **memory = pointer;
    if (*capacity >= wanted)
        return 1;
    void *grown = realloc(*memory, (size_t)wanted * size);
    if (!grown)
        return 0;
    *memory = grown;
    *capacity = wanted;
    return 1;
}

/* What is found out about a text. */
typedef struct {
    const uint8_t *ascii; /* or NULL */
    Py_ssize_t first, size; /* of its code points, then of its content */
    Py_ssize_t tokens, units, features;
    Py_ssize_t sampled, samples; /* where its sampled keys begin, and their number */
    int made, numeric;
    uint8_t *slots, *keys;
} Signed;

#define POINTS 0x180 /* code points of which tables are made: those of one byte, and the first of two */

/* The bytes of two words that belong to a token of so many, and the hashes of the first characters. */
static uint64_t PARTS[17][2], CHARACTERS[POINTS];

static void make_constants(void)
{
    for (int size = 0; size <= 16; size++)
        for (int byte = 0; byte < size; byte++)
            PARTS[size][byte / 8] |= UINT64_C(0xFF) << (8 * (byte % 8));
    for (uint32_t point = 0; point < POINTS; point++) {
        uint8_t bytes[8] = {0};
        uint64_t word, size = (uint64_t)(write_utf8(bytes, point) - bytes);
        memcpy(&word, bytes, 8);
        CHARACTERS[point] = mix64(word + GOLDEN * size);
    }
}

/* Hash some characters, given the hashes of the first code points. Returns their number. */
static Py_ssize_t hash_characters(const uint8_t *at, const uint8_t *end, const uint64_t *first, uint64_t *hash)
{
    uint64_t *next = hash;
    while (at < end) {
        uint64_t word = word_at(at, end);
        if (!(word & ONES << 7) && end - at >= 8) {
            for (int k = 0; k < 8; k++)
                *next++ = first[*at++];
            continue;
        }
        int size = *at < 0x80 ? 1 : *at < 0xE0 ? 2 : *at < 0xF0 ? 3 : 4;
        uint64_t point = size == 1 ? *at : (word & 0x1F) << 6 | (word >> 8 & 0x3F);
        word &= (UINT64_C(1) << (8 * size)) - 1;
        *next++ = size < 3 && point < POINTS ? first[point] : mix64(word + GOLDEN * (uint64_t)size);
        at += size;
    }
    return next - hash;
}

/* Hash the tokens between edges, and write them with single blanks: the end of the content. Words and sizes of a batch
 * are numbers of earlier ones where the last batch has fewer tokens. */
static uint8_t *hash_edges(Work *work, Py_ssize_t tokens, uint64_t *hash, uint8_t *content)
{
    const uint32_t *edge = work->edge;
    for (Py_ssize_t from = 0; from < tokens; from += BATCH) {
        Py_ssize_t count = tokens - from < BATCH ? tokens - from : BATCH;
        int any_long = 0;
        for (Py_ssize_t k = 0; k < count; k++, edge += 2) {
            uint64_t size = edge[1] - edge[0], some = size < 16 ? size : 16, word[2];
            const uint8_t *at = work->folded.bytes + edge[0];
            memcpy(word, at, 16);
            memcpy(content, word, 16);
            work->word[2 * k] = word[0] & PARTS[some][0];
            work->word[2 * k + 1] = word[1] & PARTS[some][1];
            work->size[k] = size;
            if (size > 16) {
                memcpy(content + 16, at + 16, size - 16);
                any_long = 1;
            }
            content[size] = BLANK;
            content += size + 1;
        }
        loops->hash_batch(work->word, work->size, hash + from);
        for (Py_ssize_t k = 0; any_long && k < count; k++)
            for (Py_ssize_t number = 2; 8 * number < (Py_ssize_t)work->size[k]; number++) {
                uint64_t word;
                memcpy(&word, work->folded.bytes + work->edge[2 * (from + k)] + 8 * number, 8);
                hash[from + k] += term(word, (Py_ssize_t)work->size[k], number);
            }
    }
    return tokens ? content - 1 : content;
}

#define FEW 16

/* How many of some numbers differ, by a hash table of 16 places or more. */
static Py_ssize_t count_in_table(const uint64_t *number, Py_ssize_t count, uint64_t *slot)
{
    uint64_t mask = 15;
    while (mask < 2 * (uint64_t)count)
        mask = 2 * mask + 1;
    memset(slot, 0, 8 * (size_t)(mask + 1));
    Py_ssize_t distinct = 0, zero = 0;
    for (Py_ssize_t k = 0; k < count; k++) {
        uint64_t place = number[k] >> 32 & mask;
        while (slot[place] && slot[place] != number[k])
            place = (place + 1) & mask;
        zero |= !number[k];
        distinct += number[k] && !slot[place];
        slot[place] = number[k];
    }
    return distinct + zero;
}

/* A table of four places or more for each of some values. */
static Places empty_places(const Work *work, Py_ssize_t size)
{
    Places places = {work->last, NULL, 255, 0};
    while (places.mask < 4 * (uint64_t)size)
        places.mask = 2 * places.mask + 1;
    return places;
}

static Places find_meetings(const Work *work, const uint64_t *value, Py_ssize_t size, int shift)
{
    Places places = empty_places(work, size);
    for (Py_ssize_t k = 0; k < size; k++)
        take_place(&places, value[k] >> shift, k);
    places.met = work->met;
    for (Py_ssize_t k = 0; k < size; k++)
        take_place(&places, value[k] >> shift, k);
    return places;
}

/* How many of fewer than UINT16_MAX numbers differ. Each has written its number to its place in a table, without a branch;
 * nearly all have found it there again. Those that found an equal one are counted with it; those that found another one
 * take places by other bits. */
static Py_ssize_t count_few(const Work *work, Places places, const uint64_t *value, Py_ssize_t size)
{
    uint64_t *other = work->table;
    Py_ssize_t distinct = 0;
    for (int shift = 0;; places = find_meetings(work, value, size, shift)) {
        Py_ssize_t others = 0;
        for (Py_ssize_t m = 0; m < places.meetings; m++) {
            uint64_t one = value[places.met[m]];
            other[others] = one;
            others += value[places.last[one >> shift & places.mask]] != one;
        }
        distinct += size - places.meetings;
        value = other;
        size = others;
        other += others;
        shift += 16;
        if (size <= FEW || shift == 64)
            return distinct + count_in_table(value, size, other);
    }
}

/* How many numbers differ. Many are first divided, in place, by 8 of their bits from `shift` on, the upper ones first.
 * (McIlroy, Bostic & McIlroy, Engineering radix sort, 1993: American flag sort.) */
static Py_ssize_t count_distinct(const Work *work, uint64_t *value, Py_ssize_t size, int shift)
{
    if (size < UINT16_MAX)
        return count_few(work, find_meetings(work, value, size, 0), value, size);
    if (shift < 0)
        return 1;
    Py_ssize_t next[256], end[256] = {0}, distinct = 0;
    for (Py_ssize_t k = 0; k < size; k++)
        end[value[k] >> shift & 255]++;
    for (Py_ssize_t part = 0, from = 0; part < 256; part++) {
        next[part] = from;
        from = end[part] += from;
    }
    for (Py_ssize_t part = 0, from = 0; part < 256; from = end[part++]) {
        while (next[part] < end[part]) {
            uint64_t one = value[next[part]], other;
            for (Py_ssize_t home; (home = one >> shift & 255) != part; one = other) {
                other = value[next[home]];
                value[next[home]++] = one;
            }
            value[next[part]++] = one;
        }
        distinct += count_distinct(work, value + from, end[part] - from, shift - 8);
    }
    return distinct;
}

typedef struct {
    Py_ssize_t shingle, permutations, bands, rows, sample_mod;
    const uint64_t *characters; /* hashes of the first code points; NULL: shingles consist of tokens */
    const uint32_t *shift, *multiplier; /* multipliers: a whole number of groups */
} Recipe;

static uint8_t cut(uint32_t value)
{
    value = (value ^ value >> 16) * 0x85EBCA6Bu;
    value = (value ^ value >> 13) * 0xC2B2AE35u;
    return (uint8_t)(value >> 24);
}

#define KEY_BYTES 8 /* of a key, in Latin-1 */

static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/* Write a number as so many digits of base64. */
static void write_base64(uint64_t number, int digits, uint8_t *at)
{
    for (int k = 6 * (digits - 1); k >= 0; k -= 6)
        *at++ = (uint8_t)DIGITS[number >> k & 63];
}

static void write_keys(const Recipe *recipe, const uint8_t *slot, uint8_t *key)
{
    for (Py_ssize_t band = 0; band < recipe->bands; band++, key += KEY_BYTES) {
        uint64_t sum = 0;
        for (Py_ssize_t row = 0; row < recipe->rows; row++)
            sum = sum * MULTIPLIER + *slot++ + 1;
        *key = band < 64 ? (uint8_t)DIGITS[band] : (uint8_t)(0xC0 + band - 64);
        write_base64(mix64(sum) >> 22, KEY_BYTES - 1, key + 1);
    }
}

static int in_order(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

/* Sort some numbers that are few, or nearly in order, by insertion. */
static void insert_each(uint64_t *number, Py_ssize_t count)
{
    for (Py_ssize_t k = 1; k < count; k++) {
        uint64_t one = number[k];
        Py_ssize_t to = k;
        for (; to && number[to - 1] > one; to--)
            number[to] = number[to - 1];
        number[to] = one;
    }
}

/* Append the sampled keys of some shingle hashes, sorted and distinct; `chosen` has room for all hashes. Returns their
 * number, or -1 without memory. */
static Py_ssize_t write_samples(const uint64_t *value, Py_ssize_t size, uint64_t mod, uint64_t *chosen, Content *keys)
{
    Py_ssize_t found = 0, distinct = 0;
    int twos = trailing_zeros(mod);
    uint64_t odd = mod >> twos, inverse = odd, limit = UINT64_MAX / mod;
    for (int k = 0; k < 5; k++)
        inverse *= 2 - odd * inverse; /* modulo 2^64, by Newton's method */
    for (Py_ssize_t k = 0; k < size; k++) {
        /* A multiple is one that this gives its quotient. (Warren, Hacker's Delight, chapter 10-17.) */
        uint64_t quotient = value[k] * inverse;
        quotient = quotient >> twos | quotient << (-twos & 63);
        chosen[found] = value[k];
        found += quotient <= limit;
    }
    if (found > 64)
        qsort(chosen, (size_t)found, sizeof(uint64_t), in_order);
    else
        insert_each(chosen, found);
    if (!reserve(keys, KEY_BYTES * found))
        return -1;
    for (Py_ssize_t k = 0; k < found; k++)
        if (!k || chosen[k] != chosen[k - 1]) {
            write_base64(chosen[k] >> 16, KEY_BYTES, keys->bytes + keys->length);
            keys->length += KEY_BYTES;
            distinct++;
        }
    return distinct;
}

/* Whether all tokens consist of digits: the first character says no to nearly every text. */
static int only_digits(const Table *table, const uint8_t *at, const uint8_t *end)
{
    while (at < end) {
        int more = *at < 0x80 ? 0 : *at < 0xE0 ? 1 : *at < 0xF0 ? 2 : 3;
        uint32_t point = *at < 0x80 ? *at : *at & (0x3Fu >> more);
        for (at++; more && at < end; more--)
            point = point << 6 | (*at++ & 0x3F);
        if (point != BLANK && !(entry_of(table, point) & DIGIT))
            return 0;
    }
    return 1;
}

/* Find the edges of the tokens of folded bytes. Returns the number of tokens, or -1 without memory. */
static Py_ssize_t find_folded(Work *work)
{
    Content *folded = &work->folded;
    memset(folded->bytes + folded->length, BLANK, PAD);
    if (folded->length >= UINT32_MAX - PAD || !grow(&work->edge, &work->edges, folded->length + 80, sizeof(uint32_t)))
        return -1;
    return loops->find_edges(folded->bytes, folded->length, work->edge) / 2;
}

/* Fold a text, and find the edges of its tokens. Returns their number, or -1 without memory; 0 with `made` 0 for a text
 * that must be composed first. */
static Py_ssize_t find_tokens(const Table *table, const Short *brief, Signed *one, const Py_UCS4 *points, int composed,
                              Work *work)
{
    Content *folded = &work->folded;
    if (one->ascii) {
        folded->length = 0;
        if (!reserve(folded, one->size + PAD))
            return -1;
        loops->fold_ascii(one->ascii, one->size, folded->bytes);
        folded->length = one->size;
        one->made = 1;
    } else
        one->made = fold_points(table, brief, points + one->first, one->size, composed, folded);
    return one->made < 1 ? one->made : find_folded(work);
}

/* Write the tokens between edges with so many blanks behind each: the end of the last one. */
static inline uint8_t *write_tokens(const Work *work, Py_ssize_t tokens, int blanks, uint8_t *content)
{
    const uint32_t *edge = work->edge;
    for (Py_ssize_t k = 0; k < tokens; k++, edge += 2) {
        const uint8_t *token = work->folded.bytes + edge[0];
        size_t size = edge[1] - edge[0];
        memcpy(content, token, 16); /* what is too much is written over */
        if (size > 16)
            memcpy(content + 16, token + 16, size - 16);
        content[size] = BLANK;
        content += size + blanks;
    }
    return tokens ? content - blanks : content;
}

/* Hash the shingles of the tokens between edges, and write the content. Returns the number of shingles. */
static Py_ssize_t hash_shingles(const Recipe *recipe, Signed *one, Py_ssize_t tokens, Work *work, uint8_t *content,
                                uint8_t **end)
{
    const uint8_t *letters = NULL;
    one->units = tokens;
    if (!recipe->characters)
        *end = hash_edges(work, tokens, work->unit, content);
    else {
        *end = write_tokens(work, tokens, 0, content);
        letters = one->ascii && loops->letters ? content : NULL;
        one->units = letters ? *end - content : hash_characters(content, *end, recipe->characters, work->unit);
    }
    Py_ssize_t windows = count_shingles(one->units, recipe->shingle);
    Py_ssize_t size = one->units < recipe->shingle ? one->units : recipe->shingle;
    if (!letters)
        memset(work->unit + one->units, 0, 8 * (size_t)(BATCH + size));
    loops->hash_windows(letters ? recipe->characters : work->unit, letters, size, windows, work->value);
    if (recipe->characters)
        *end = write_tokens(work, tokens, 1, content);
    return windows;
}

/* Sign a text; its content and sampled keys are appended. Returns 0 without memory. */
static int sign_text(const Table *table, const Short *brief, const Recipe *recipe, Signed *one, const Py_UCS4 *points,
                     int composed, Work *work, Content *contents, Content *samples)
{
    Content *folded = &work->folded;
    Py_ssize_t tokens = find_tokens(table, brief, one, points, composed, work), shingle = recipe->shingle;
    if (tokens < 0 || !one->made)
        return tokens >= 0;
    Py_ssize_t space = (recipe->characters ? folded->length : tokens) + shingle + 2 * BATCH;
    if (work->units < space) {
        Py_ssize_t old[5] = {0};
        Py_ssize_t most = space < UINT16_MAX ? space : UINT16_MAX;
        work->units = 0;
        if (!grow(&work->unit, &old[0], space, 8) || !grow(&work->value, &old[1], space, 8) ||
            !grow(&work->table, &old[2], 8 * most + 64, 8) || !grow(&work->last, &old[3], 8 * most + 256, 2) ||
            !grow(&work->met, &old[4], space + 1, 2))
            return 0;
        work->units = space;
    }
    if (!reserve(contents, folded->length + 32))
        return 0;
    uint8_t *content = contents->bytes + contents->length, *end;
    Py_ssize_t windows = hash_shingles(recipe, one, tokens, work, content, &end);
    one->first = contents->length;
    one->size = end - content;
    contents->length += one->size;
    one->tokens = tokens;
    if (!windows)
        return 1;
    uint32_t least[GROUP], greatest[GROUP];
    uint8_t low[GROUP], high[GROUP];
    Py_ssize_t half = (recipe->permutations + 1) / 2;
    Places places = empty_places(work, windows < UINT16_MAX ? windows : 0);
    for (Py_ssize_t from = 0; from < half; from += GROUP) {
        if (from) { /* all have written their numbers */
            places.met = work->met;
            places.meetings = 0;
        }
        loops->extremes_of_group(work->value, windows, recipe->shift, recipe->multiplier + from, least, greatest, &places);
        for (int k = 0; k < GROUP; k++) {
            low[k] = cut(least[k]);
            high[k] = cut(~greatest[k]);
        }
        Py_ssize_t lows = half - from < GROUP ? half - from : GROUP, highs = recipe->permutations - half - from;
        memcpy(one->slots + from, low, (size_t)lows);
        if (highs > 0)
            memcpy(one->slots + half + from, high, (size_t)(highs < GROUP ? highs : GROUP));
    }
    write_keys(recipe, one->slots, one->keys);
    one->numeric = only_digits(table, content, end);
    one->sampled = samples->length;
    if (recipe->sample_mod)
        one->samples = write_samples(work->value, windows, (uint64_t)recipe->sample_mod, work->unit, samples);
    if (half > GROUP && windows < UINT16_MAX)
        one->features = count_few(work, places, work->value, windows);
    else
        one->features = count_distinct(work, work->value, windows, 56);
    return one->samples >= 0;
}

/* Setters of the fields of a class with slots, which are called without their names being looked up. */
typedef struct {
    PyObject *field[9];
    descrsetfunc set[9];
} Fields;

static int set_field(const Fields *fields, int number, PyObject *made, PyObject *value)
{
    int failed = !value || fields->set[number](fields->field[number], made, value) < 0;
    Py_XDECREF(value);
    return !failed;
}

static PyObject *increased(PyObject *object)
{
    Py_INCREF(object);
    return object;
}

/* A tuple of keys; NULL with an exception. */
static PyObject *key_tuple(const uint8_t *key, Py_ssize_t count)
{
    PyObject *keys = PyTuple_New(count);
    for (Py_ssize_t k = 0; keys && k < count; k++) {
        PyObject *one = PyUnicode_DecodeLatin1((const char *)key + KEY_BYTES * k, KEY_BYTES, NULL);
        if (!one || PyTuple_SetItem(keys, k, one) < 0)
            Py_CLEAR(keys);
    }
    if (keys && count)
        PyObject_GC_UnTrack(keys); /* str alone: as the collector does itself */
    return keys;
}

/* The record of a signed text; NULL with an exception. */
static PyObject *record(const Recipe *recipe, const Signed *one, const uint8_t *contents, const uint8_t *sampled,
                        PyTypeObject *class, PyObject *none, const Fields *fields, PyObject *id, PyObject *states,
                        PyObject *digest)
{
    PyObject *content = PyBytes_FromStringAndSize((const char *)contents + one->first, one->size);
    PyObject *hash = content ? PyObject_CallFunctionObjArgs(digest, content, NULL) : NULL;
    Py_XDECREF(content);
    PyObject *keys = hash ? key_tuple(one->keys, recipe->bands) : NULL, *samples = NULL;
    if (keys)
        samples = recipe->sample_mod ? key_tuple(sampled + one->sampled, one->samples) : increased(Py_None);
    PyObject *made = samples ? PyType_GenericNew(class, none, NULL) : NULL;
    PyObject *state = PyTuple_GetItem(states, one->units >= recipe->shingle ? 0 : 1);
    if (!made || !state || !set_field(fields, 0, made, increased(id)) || !set_field(fields, 1, made, increased(state)) ||
        !set_field(fields, 2, made, increased(hash)) || !set_field(fields, 3, made, increased(keys)) ||
        !set_field(fields, 4, made, PyBytes_FromStringAndSize((const char *)one->slots, recipe->permutations)) ||
        !set_field(fields, 5, made, PyLong_FromSsize_t(one->tokens)) ||
        !set_field(fields, 6, made, PyLong_FromSsize_t(one->features)) ||
        !set_field(fields, 7, made, PyBool_FromLong(one->numeric)) || !set_field(fields, 8, made, increased(samples)))
        Py_CLEAR(made);
    else
        PyObject_GC_UnTrack(made); /* frozen, and it refers to no container that is tracked */
    Py_XDECREF(hash);
    Py_XDECREF(keys);
    Py_XDECREF(samples);
    return made;
}

#define ARRAYS 7

/* The tables of four and of three arrays. Returns 0 for arrays that do not fit together. */
static int make_tables(const Py_buffer *array, Table *table, Short *brief)
{
    *table = (Table){array[0].buf, array[2].buf, array[1].buf, array[1].len / 4, array[3].buf, array[3].len / 8};
    *brief = (Short){array[4].buf, array[5].buf, array[6].buf};
    int fits = array[0].len == 4 * CODE_POINTS && array[2].len == CODE_POINTS && array[4].len == 2 * (CODE_POINTS >> 8) &&
               array[5].len == 4 * array[6].len;
    for (Py_ssize_t k = 0; fits && k < CODE_POINTS >> 8; k++)
        fits = 256 * ((Py_ssize_t)brief->block[k] + 1) <= array[6].len;
    return fits;
}

static void release(Py_buffer *array)
{
    for (int k = 0; k < ARRAYS; k++)
        PyBuffer_Release(&array[k]);
}

static void free_work(Work *work)
{
    free(work->folded.bytes);
    free(work->edge);
    free(work->unit);
    free(work->value);
    free(work->table);
    free(work->last);
    free(work->met);
}

/* The code points of texts that are not ASCII, one after the other. */
typedef struct {
    Py_UCS4 *points;
    Py_ssize_t length, capacity;
} Points;

/* Find the characters of the texts of a tuple: the bytes of ASCII, or code points. Returns 0 with an exception. */
static int read_texts(PyObject *texts, Signed *one, Points *all)
{
    PyObject *is_ascii = PyObject_GetAttrString((PyObject *)&PyUnicode_Type, "isascii");
    Py_ssize_t count = PyTuple_Size(texts), k = 0;
    for (; is_ascii && k < count; k++) {
        PyObject *text = PyTuple_GetItem(texts, k);
        if (!PyUnicode_Check(text)) {
            PyErr_Format(PyExc_TypeError, "a list of texts is needed");
            break;
        }
        PyObject *answer = PyObject_CallFunctionObjArgs(is_ascii, text, NULL);
        if (!answer)
            break;
        int ascii = answer == Py_True;
        Py_DECREF(answer);
        if (ascii) { /* of ASCII alone, the bytes are not copied */
            if (!(one[k].ascii = (const uint8_t *)PyUnicode_AsUTF8AndSize(text, &one[k].size)))
                break;
            continue;
        }
        one[k].first = all->length;
        one[k].size = PyUnicode_GetLength(text);
        if (all->capacity - all->length < one[k].size &&
            !grow(&all->points, &all->capacity, 2 * all->capacity + one[k].size, sizeof(Py_UCS4))) {
            PyErr_NoMemory();
            break;
        }
        if (!PyUnicode_AsUCS4(text, all->points + all->length, one[k].size, 0))
            break;
        all->length += one[k].size;
    }
    int read = is_ascii && k == count;
    Py_XDECREF(is_ascii);
    return read;
}

PyDoc_STRVAR(normalize_doc,
             "normalize(texts: list of str, composed: bool, arrays of the table, arrays of the short table) -> list of bytes "
             "and str: the tokens of each text, joined by single blanks; or the mapped text, if it must be composed "
             "canonically before its tokens are made. That is not asked of texts said to be composed.");

static PyObject *normalize(PyObject *self, PyObject *args)
{
    PyObject *list, *found = NULL;
    Py_buffer array[ARRAYS];
    int composed, enough = 1;
    if (!PyArg_ParseTuple(args, "O!p(y*y*y*y*)(y*y*y*)", &PyList_Type, &list, &composed, &array[0], &array[1], &array[2],
                          &array[3], &array[4], &array[5], &array[6]))
        return NULL;
    PyObject *texts = PyList_AsTuple(list); /* which nobody changes */
    Py_ssize_t count = texts ? PyTuple_Size(texts) : 0;
    Signed *one = calloc((size_t)count + 1, sizeof(Signed));
    Points all = {0};
    Content contents = {0};
    Work work = {0};
    Table table;
    Short brief;
    if (!make_tables(array, &table, &brief))
        PyErr_Format(PyExc_ValueError, "arrays that do not fit together");
    else if (texts && !one)
        PyErr_NoMemory();
    else if (texts && read_texts(texts, one, &all)) {
        Py_BEGIN_ALLOW_THREADS;
        for (Py_ssize_t k = 0; enough && k < count; k++) {
            Py_ssize_t tokens = find_tokens(&table, &brief, &one[k], all.points, composed, &work);
            enough = tokens >= 0;
            if (enough && one[k].made && (enough = reserve(&contents, work.folded.length + 32))) {
                one[k].first = contents.length;
                contents.length = write_tokens(&work, tokens, 1, contents.bytes + contents.length) - contents.bytes;
                one[k].size = contents.length - one[k].first;
            }
        }
        Py_END_ALLOW_THREADS;
        found = enough ? PyList_New(count) : PyErr_NoMemory();
    }
    for (Py_ssize_t k = 0; found && k < count; k++) {
        PyObject *made = one[k].made
                             ? PyBytes_FromStringAndSize((char *)contents.bytes + one[k].first, one[k].size)
                             : mapped_text(&table, all.points + one[k].first, one[k].size);
        if (!made || PyList_SetItem(found, k, made) < 0)
            Py_CLEAR(found);
    }
    Py_XDECREF(texts);
    free(one);
    free(all.points);
    free(contents.bytes);
    free_work(&work);
    release(array);
    return found;
}

/* Hashes of tokens that grow, and room for the content that is made beside them. */
typedef struct {
    uint64_t *hash;
    Py_ssize_t tokens, capacity;
    Content copy;
} Hashes;

/* Append those of the tokens between edges. Returns 0 without memory. */
static int append_hashes(Hashes *all, Work *work, Py_ssize_t tokens)
{
    Py_ssize_t space = all->tokens + tokens + BATCH;
    all->copy.length = 0;
    if (!reserve(&all->copy, work->folded.length + 32) ||
        !grow(&all->hash, &all->capacity, space > all->capacity ? 2 * space : 0, 8))
        return 0;
    hash_edges(work, tokens, all->hash + all->tokens, all->copy.bytes);
    all->tokens += tokens;
    return 1;
}

static void free_hashes(Hashes *all)
{
    free(all->hash);
    free(all->copy.bytes);
}

PyDoc_STRVAR(token_runs_doc,
             "token_runs(contents: list of bytes) -> (uint64[tokens], int64[texts + 1]), as bytearrays: the hashes of all "
             "tokens, and where those of each text begin.");

static PyObject *token_runs(PyObject *self, PyObject *list)
{
    if (!PyList_Check(list))
        return PyErr_Format(PyExc_TypeError, "a list of bytes is needed");
    PyObject *hashes = NULL, *bounds = NULL, *contents = PyList_AsTuple(list);
    Py_ssize_t texts = contents ? PyTuple_Size(contents) : 0;
    int64_t *bound = contents ? new_array(&bounds, texts + 1) : NULL;
    Hashes found = {0};
    Work work = {0};
    int enough = bound != NULL;
    if (bound)
        bound[0] = 0;
    for (Py_ssize_t k = 0; enough && k < texts; k++) {
        PyObject *content = PyTuple_GetItem(contents, k);
        if (!PyBytes_Check(content)) {
            PyErr_Format(PyExc_TypeError, "a list of bytes is needed");
            break;
        }
        Py_ssize_t size = PyBytes_Size(content), some = -1;
        work.folded.length = 0;
        if (reserve(&work.folded, size + PAD)) {
            memcpy(work.folded.bytes, PyBytes_AsString(content), (size_t)size);
            work.folded.length = size;
            some = find_folded(&work);
        }
        enough = some >= 0 && append_hashes(&found, &work, some);
        bound[k + 1] = found.tokens;
    }
    if (!enough && !PyErr_Occurred())
        PyErr_NoMemory();
    if (!PyErr_Occurred())
        hashes = PyByteArray_FromStringAndSize((char *)found.hash, 8 * found.tokens);
    free_hashes(&found);
    free_work(&work);
    Py_XDECREF(contents);
    if (!hashes) {
        Py_XDECREF(bounds);
        return NULL;
    }
    return Py_BuildValue("NN", hashes, bounds);
}

PyDoc_STRVAR(text_runs_doc,
             "text_runs(texts: list of str, arrays of the table, arrays of the short table) -> (uint64[tokens], "
             "int64[texts + 1]), as bytearrays: `token_runs` of the normalised texts; None if one must be composed first.");

static PyObject *text_runs(PyObject *self, PyObject *args)
{
    PyObject *list, *hashes = NULL, *bounds = NULL;
    Py_buffer array[ARRAYS];
    if (!PyArg_ParseTuple(args, "O!(y*y*y*y*)(y*y*y*)", &PyList_Type, &list, &array[0], &array[1], &array[2], &array[3],
                          &array[4], &array[5], &array[6]))
        return NULL;
    PyObject *texts = PyList_AsTuple(list); /* which nobody changes */
    Py_ssize_t count = texts ? PyTuple_Size(texts) : 0;
    Signed *one = calloc((size_t)count + 1, sizeof(Signed));
    int64_t *bound = texts && one ? new_array(&bounds, count + 1) : NULL;
    Hashes found = {0};
    Points all = {0};
    Work work = {0};
    Table table;
    Short brief;
    int enough = bound != NULL, made = 1;
    if (!make_tables(array, &table, &brief))
        PyErr_Format(PyExc_ValueError, "arrays that do not fit together");
    else if (enough && read_texts(texts, one, &all)) {
        Py_BEGIN_ALLOW_THREADS;
        bound[0] = 0;
        for (Py_ssize_t k = 0; enough && made && k < count; k++) {
            Py_ssize_t tokens = find_tokens(&table, &brief, &one[k], all.points, 0, &work);
            made = one[k].made;
            enough = tokens >= 0 && (!made || append_hashes(&found, &work, tokens));
            bound[k + 1] = found.tokens;
        }
        Py_END_ALLOW_THREADS;
        if (enough)
            hashes = made ? PyByteArray_FromStringAndSize((char *)found.hash, 8 * found.tokens) : increased(Py_None);
    }
    if (!hashes && !PyErr_Occurred())
        PyErr_NoMemory();
    Py_XDECREF(texts);
    free(one);
    free_hashes(&found);
    free(all.points);
    free_work(&work);
    release(array);
    if (hashes && made)
        return Py_BuildValue("NN", hashes, bounds);
    Py_XDECREF(bounds);
    return hashes;
}

/* The hashes of the first windows of some units, and no access to memory behind them. */
static void hash_exactly(const uint64_t *unit, Py_ssize_t windows, Py_ssize_t size, uint64_t *value)
{
    Py_ssize_t full = windows / BATCH * BATCH;
    loops->hash_windows(unit, NULL, size, full, value);
    for (Py_ssize_t k = full; k < windows; k++)
        value[k] = mix64(sum_units(unit, NULL, k, size, (uint64_t)size));
}

PyDoc_STRVAR(shingle_runs_doc,
             "shingle_runs(uint64 hashes, int64 bounds[texts + 1], size) -> (uint64[shingles], int64[texts + 1]), as "
             "bytearrays: the shingle hashes of one text after the other, in any order within a text, and where those of each "
             "text begin.");

static PyObject *shingle_runs(PyObject *self, PyObject *args)
{
    Py_buffer hashes, bounds;
    Py_ssize_t size;
    if (!PyArg_ParseTuple(args, "y*y*n", &hashes, &bounds, &size))
        return NULL;
    const uint64_t *token = hashes.buf;
    const int64_t *bound = bounds.buf;
    Py_ssize_t texts = bounds.len / 8 - 1, total = 0;
    PyObject *values = NULL, *starts = NULL;
    if (texts < 0 || size < 1 || !are_bounds(bound, texts, hashes.len / 8)) {
        PyErr_Format(PyExc_ValueError, "arrays that do not fit together");
        goto done;
    }
    int64_t *start = new_array(&starts, texts + 1);
    if (!start)
        goto done;
    for (Py_ssize_t text = 0; text < texts; text++) {
        start[text] = total;
        total += count_shingles(bound[text + 1] - bound[text], size);
    }
    start[texts] = total;
    uint64_t *value = new_array(&values, total);
    for (Py_ssize_t text = 0; value && text < texts; text++) {
        Py_ssize_t tokens = bound[text + 1] - bound[text];
        hash_exactly(token + bound[text], start[text + 1] - start[text], tokens < size ? tokens : size, value);
        value += start[text + 1] - start[text];
    }
done:
    PyBuffer_Release(&hashes);
    PyBuffer_Release(&bounds);
    if (!values) {
        Py_XDECREF(starts);
        return NULL;
    }
    return Py_BuildValue("NN", values, starts);
}

#define MANY 32 /* values of one part that are not put in order one by one: a power of two */

/* Write the distinct ones of some values, sorted: their number. The values are hashes, which their upper bits divide into
 * about as many parts as they are: then nearly all are in order, and insertion moves the others by little. `part` has room for
 * all values, and `end` for UINT16_MAX + 2 numbers. */
static Py_ssize_t write_distinct(const uint64_t *value, Py_ssize_t size, uint64_t *part, uint32_t *end, uint64_t *found)
{
    if (!size)
        return 0;
    int shift = 64 - 4;
    while (shift > 64 - 16 && size >> (64 - shift))
        shift--;
    Py_ssize_t parts = (Py_ssize_t)1 << (64 - shift), distinct = 0;
    memset(end, 0, (size_t)(parts + 1) * sizeof(uint32_t));
    for (Py_ssize_t k = 0; k < size; k++)
        end[(value[k] >> shift) + 1]++;
    uint32_t sizes = 0;
    for (Py_ssize_t p = 1; p <= parts; p++)
        sizes |= end[p];
    for (Py_ssize_t p = 1; p <= parts; p++)
        end[p] += end[p - 1];
    for (Py_ssize_t k = 0; k < size; k++) /* what was the begin of a part becomes its end */
        part[end[value[k] >> shift]++] = value[k];
    for (Py_ssize_t p = 0, from = 0; sizes >= MANY && p < parts; from = end[p++])
        if (end[p] - from >= MANY)
            qsort(part + from, (size_t)(end[p] - from), sizeof(uint64_t), in_order);
    insert_each(part, size);
    for (Py_ssize_t k = 0; k < size; k++) {
        found[distinct] = part[k];
        distinct += k + 1 == size || part[k] != part[k + 1];
    }
    return distinct;
}

PyDoc_STRVAR(distinct_runs_doc,
             "distinct_runs(uint64 values, int64 bounds[texts + 1]) -> (uint64[distinct], int64[texts + 1]), as bytearrays: "
             "the distinct values of each text, sorted, and where those of each text begin.");

static PyObject *distinct_runs(PyObject *self, PyObject *args)
{
    Py_buffer values, bounds;
    if (!PyArg_ParseTuple(args, "y*y*", &values, &bounds))
        return NULL;
    const uint64_t *value = values.buf;
    const int64_t *bound = bounds.buf;
    Py_ssize_t texts = bounds.len / 8 - 1, total = 0, longest = 0;
    PyObject *found = NULL, *starts = NULL;
    uint64_t *part = NULL, *distinct = NULL;
    uint32_t *end = NULL;
    int64_t *start = NULL;
    int enough = 0;
    if (texts < 0 || !are_bounds(bound, texts, values.len / 8)) {
        PyErr_Format(PyExc_ValueError, "arrays that do not fit together");
        goto done;
    }
    for (Py_ssize_t text = 0; text < texts; text++)
        longest = bound[text + 1] - bound[text] > longest ? bound[text + 1] - bound[text] : longest;
    if (longest >= UINT32_MAX) {
        PyErr_Format(PyExc_ValueError, "a text with too many values");
        goto done;
    }
    start = new_array(&starts, texts + 1);
    distinct = start ? new_array(&found, bound[texts] - bound[0]) : NULL;
    if (!distinct)
        goto done;
    part = malloc((size_t)(longest + 1) * sizeof(uint64_t));
    end = malloc((UINT16_MAX + 2) * sizeof(uint32_t));
    if (!part || !end) {
        PyErr_NoMemory();
        goto done;
    }
    Py_BEGIN_ALLOW_THREADS;
    start[0] = 0;
    for (Py_ssize_t text = 0; text < texts; text++) {
        total += write_distinct(value + bound[text], bound[text + 1] - bound[text], part, end, distinct + total);
        start[text + 1] = total;
    }
    Py_END_ALLOW_THREADS;
    enough = !PyByteArray_Resize(found, 8 * total);
done:
    free(part);
    free(end);
    PyBuffer_Release(&values);
    PyBuffer_Release(&bounds);
    if (!enough) {
        Py_XDECREF(found);
        Py_XDECREF(starts);
        return NULL;
    }
    return Py_BuildValue("NN", found, starts);
}

PyDoc_STRVAR(signed_texts_doc,
             "signed_texts(texts: list of str, composed: bool, arrays of the table, arrays of the short table, (shingle, "
             "permutations, bands, rows, sample_mod), uint16 characters, uint32 shifts[8], uint32 multipliers, class, "
             "fields, id, states, digest, empty) -> (list, list of int): for each text its record, ``empty`` without tokens; "
             "and the numbers of those in whose place is, as a str, the text that must be composed first. Characters: the "
             "code points that stand for the first ones in shingles; none for shingles of tokens.");

static PyObject *signed_texts(PyObject *self, PyObject *args)
{
    PyObject *list, *class, *names, *id, *states, *digest, *empty;
    Py_buffer array[ARRAYS], characters, shifts, multipliers;
    Recipe recipe = {0};
    int composed;
    if (!PyArg_ParseTuple(args, "O!p(y*y*y*y*)(y*y*y*)(nnnnn)y*y*y*O!O!OO!OO", &PyList_Type, &list, &composed,
                          &array[0], &array[1], &array[2], &array[3], &array[4], &array[5], &array[6], &recipe.shingle, &recipe.permutations,
                          &recipe.bands, &recipe.rows, &recipe.sample_mod, &characters, &shifts, &multipliers,
                          &PyType_Type, &class, &PyTuple_Type, &names, &id, &PyTuple_Type, &states, &digest, &empty))
        return NULL;
    PyObject *found = NULL, *later = NULL, *none = NULL;
    PyObject *texts = PyList_AsTuple(list); /* which nobody changes */
    Fields fields = {{0}, {0}};
    Points all = {0};
    Py_ssize_t count = texts ? PyTuple_Size(texts) : 0;
    Content contents = {0}, samples = {0};
    Work work = {0};
    Signed *one = NULL;
    uint8_t *results = NULL;
    Table table;
    Short brief;
    recipe.shift = shifts.buf;
    recipe.multiplier = multipliers.buf;
    uint64_t hash[POINTS];
    const uint16_t *point = characters.buf;
    int fits = characters.len == 0 || characters.len == 2 * POINTS;
    for (int k = 0; fits && k < characters.len / 2; k++) {
        fits = point[k] < POINTS;
        hash[k] = fits ? CHARACTERS[point[k]] : 0;
        recipe.characters = hash;
    }
    fits = fits && shifts.len == 4 * SHIFTS && multipliers.len % (4 * GROUP) == 0 && recipe.shingle > 0 &&
               recipe.shingle <= INT32_MAX && recipe.sample_mod >= 0 && recipe.permutations > 0 &&
               recipe.permutations <= multipliers.len / 2 && recipe.bands > 0 && recipe.bands <= 128 && recipe.rows > 0 &&
               recipe.rows <= recipe.permutations / recipe.bands && PyTuple_Size(names) == 9 && PyTuple_Size(states) == 2;
    fits = make_tables(array, &table, &brief) && fits;
    if (texts && !fits)
        PyErr_Format(PyExc_ValueError, "arrays that do not fit together");
    for (int k = 0; fits && k < 9; k++) {
        fields.field[k] = PyObject_GetAttr(class, PyTuple_GetItem(names, k));
        void *setter = fields.field[k] ? PyType_GetSlot(Py_TYPE(fields.field[k]), Py_tp_descr_set) : NULL;
        memcpy(&fields.set[k], &setter, sizeof(setter)); /* standard C has no cast to a function */
        if (!fields.set[k]) {
            fits = 0;
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_TypeError, "a class with slots is needed");
        }
    }
    if (!texts || !fits || !(none = PyTuple_New(0)) || !(later = PyList_New(0)))
        goto done;
    Py_ssize_t width = recipe.permutations + KEY_BYTES * recipe.bands;
    one = calloc((size_t)count + 1, sizeof(Signed));
    results = malloc((size_t)(count + 1) * (size_t)width);
    if (!one || !results) {
        PyErr_NoMemory();
        goto done;
    }
    for (Py_ssize_t k = 0; k < count; k++) {
        one[k].slots = results + k * width;
        one[k].keys = one[k].slots + recipe.permutations;
    }
    if (!read_texts(texts, one, &all))
        goto done;
    int enough = 1;
    Py_BEGIN_ALLOW_THREADS;
    for (Py_ssize_t k = 0; enough && k < count; k++) {
        Signed kept = one[k];
        enough = sign_text(&table, &brief, &recipe, &one[k], all.points, composed, &work, &contents, &samples);
        if (!one[k].made) { /* to be composed first */
            one[k].first = kept.first;
            one[k].size = kept.size;
        }
    }
    Py_END_ALLOW_THREADS;
    if (!enough) {
        PyErr_NoMemory();
        goto done;
    }
    found = PyList_New(count);
    for (Py_ssize_t k = 0; found && k < count; k++) {
        PyObject *made;
        if (!one[k].made) {
            PyObject *number = PyLong_FromSsize_t(k);
            if (!number || PyList_Append(later, number) < 0) {
                Py_XDECREF(number);
                Py_CLEAR(found);
                break;
            }
            Py_DECREF(number);
            made = mapped_text(&table, all.points + one[k].first, one[k].size);
        } else if (!one[k].tokens)
            made = increased(empty);
        else
            made = record(&recipe, &one[k], contents.bytes, samples.bytes, (PyTypeObject *)class, none, &fields, id,
                          states, digest);
        if (!made || PyList_SetItem(found, k, made) < 0)
            Py_CLEAR(found);
    }
done:
    for (int k = 0; k < 9; k++)
        Py_XDECREF(fields.field[k]);
    Py_XDECREF(none);
    Py_XDECREF(texts);
    free(one);
    free(results);
    free(all.points);
    free(contents.bytes);
    free(samples.bytes);
    free_work(&work);
    release(array);
    PyBuffer_Release(&characters);
    PyBuffer_Release(&shifts);
    PyBuffer_Release(&multipliers);
    if (!found) {
        Py_XDECREF(later);
        return NULL;
    }
    return Py_BuildValue("NN", found, later);
}

static PyMethodDef methods[] = {
    {"normalize", normalize, METH_VARARGS, normalize_doc},
    {"token_runs", token_runs, METH_O, token_runs_doc},
    {"text_runs", text_runs, METH_VARARGS, text_runs_doc},
    {"shingle_runs", shingle_runs, METH_VARARGS, shingle_runs_doc},
    {"distinct_runs", distinct_runs, METH_VARARGS, distinct_runs_doc},
    {"signed_texts", signed_texts, METH_VARARGS, signed_texts_doc},
    {"use_lanes", use_lanes, METH_O, use_lanes_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_kernel", .m_doc = "The inner loops of signing.", .m_methods = methods};

PyMODINIT_FUNC PyInit__kernel(void)
{
    make_constants();
    choose_loops(512);
    return PyModule_Create(&module);
}
