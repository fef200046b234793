/* The inner loops of the hot path in C. They give the same bits as the numpy code beside each of their callers, which
 * does the work where this was not built: without a compiler, and on big-endian machines. Every access to memory is
 * within what was handed in, whatever that holds. Only the limited API is used, so that one wheel serves each Python. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#if !PY_LITTLE_ENDIAN
#error "words are read as little-endian"
#endif

#ifdef _MSC_VER
#include <intrin.h>
#endif

/* One function for each kind of processor, chosen when it is loaded: glibc can, musl and macOS cannot. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

#define BLANK 0x20
#define ONES UINT64_C(0x0101010101010101)
#define BLANKS (BLANK * ONES)
#define GOLDEN UINT64_C(0x9E3779B97F4A7C15)
#define MULTIPLIER UINT64_C(0xD1342543DE82EF95)

static uint64_t mix64(uint64_t value)
{
    value = (value ^ (value >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94D049BB133111EB);
    return value ^ (value >> 31);
}

#define CODE_POINTS 0x110000
#define TARGET 0x1FFFFF
#define WORD (1u << 24)
#define SINGLE (1u << 25)
#define EXPANDS (1u << 26)
#define MARK (1u << 27)
#define FIRST (1u << 29)
#define SECOND (1u << 30)

/* The arrays of unicode.py. */
typedef struct {
    const uint32_t *entries;
    const uint8_t *combining;
    const uint32_t *pool;
    Py_ssize_t pool_size;
    const uint64_t *pairs; /* sorted: the two code points of a canonical composition and, in its last bits, the result */
    Py_ssize_t pair_count;
} Table;

/* The code points of a text, in memory that is used for one text after the other. */
typedef struct {
    Py_UCS4 *points;
    Py_ssize_t size, capacity;
} Text;

/* The bytes of a content as they are made; a token is open while further characters can belong to it. */
typedef struct {
    uint8_t *bytes;
    Py_ssize_t length, capacity;
    int open;
} Content;

/* What canonical composition of the text so far depends on, and whether a mark has a base. */
typedef struct {
    uint32_t first;
    uint8_t combining;
    int base;
} Context;

static int reserve(Content *content, Py_ssize_t bytes)
{
    if (content->capacity - content->length >= bytes)
        return 1;
    Py_ssize_t capacity = 2 * content->capacity + bytes;
    uint8_t *grown = PyMem_Realloc(content->bytes, capacity);
    if (!grown)
        return 0;
    content->bytes = grown;
    content->capacity = capacity;
    return 1;
}

/* Write a character as UTF-8, after a blank if it begins a token: at most 5 bytes. A mark of a script with blanks stays
 * with the single character before it. */
static void write_character(Content *content, uint32_t entry)
{
    uint32_t point = entry & TARGET;
    int single = (entry & SINGLE) != 0, attached = !single && (entry & MARK);
    uint8_t *at = content->bytes + content->length;
    if (content->length && !attached && (single || !content->open))
        *at++ = BLANK;
    if (point < 0x80)
        *at++ = point;
    else if (point < 0x800) {
        *at++ = 0xC0 | point >> 6;
        *at++ = 0x80 | (point & 0x3F);
    } else if (point < 0x10000) {
        *at++ = 0xE0 | point >> 12;
        *at++ = 0x80 | (point >> 6 & 0x3F);
        *at++ = 0x80 | (point & 0x3F);
    } else {
        *at++ = 0xF0 | point >> 18;
        *at++ = 0x80 | (point >> 12 & 0x3F);
        *at++ = 0x80 | (point >> 6 & 0x3F);
        *at++ = 0x80 | (point & 0x3F);
    }
    content->open = attached ? content->open : !single;
    content->length = at - content->bytes;
}

/* Whether a mapped code point is part of a word; a mark is one only after a word character. */
static int in_word(uint32_t entry, Context *context)
{
    context->base = (entry & WORD) && (context->base || !(entry & MARK));
    return context->base;
}

/* Whether the text so far, with this word character, may not be composed canonically; then it is composed, which takes
 * longer but is never wrong. */
static int may_compose(const Table *table, uint32_t entry, Context *context)
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

/* Read the code points of a str. Returns 1, or 0 with an exception. */
static int read_text(PyObject *source, Text *text)
{
    text->size = PyUnicode_GetLength(source);
    if (text->size > text->capacity) {
        PyMem_Free(text->points);
        text->capacity = 0;
        if (!(text->points = PyMem_New(Py_UCS4, text->size))) {
            PyErr_NoMemory();
            return 0;
        }
        text->capacity = text->size;
    }
    return !text->size || PyUnicode_AsUCS4(source, text->points, text->size, 0);
}

/* The content of a text. Returns 1, or 0 if the text must be composed first, or -1 without memory. */
static int make_content(const Table *table, const Text *text, int composed, Content *content)
{
    Context context = {0};
    for (Py_ssize_t at = 0; at < text->size; at++) {
        uint32_t one = BLANK;
        const uint32_t *several;
        Py_ssize_t count = mapped(table, text->points[at], &one, &several);
        if (!reserve(content, 5 * count))
            return -1;
        for (Py_ssize_t k = 0; k < count; k++) {
            uint32_t entry = several ? entry_of(table, several[k]) : one;
            if (!in_word(entry, &context)) {
                content->open = 0;
                context.first = context.combining = 0;
                continue;
            }
            if ((entry & (MARK | FIRST | SECOND)) || context.combining) {
                if (may_compose(table, entry, &context) && !composed)
                    return 0;
            } else
                context.first = 0;
            write_character(content, entry);
        }
    }
    return 1;
}

/* The content of a text of ASCII alone, which is never longer than the text. */
static void make_ascii_content(const Table *table, const uint8_t *data, Py_ssize_t size, Content *content)
{
    Py_ssize_t length = 0;
    int blank = 1; /* whether a blank was written last, or nothing */
    for (Py_ssize_t at = 0; at < size; at++) {
        uint8_t byte = (uint8_t)table->entries[data[at]];
        content->bytes[length] = byte;
        length += !((byte == BLANK) & blank);
        blank = byte == BLANK;
    }
    content->length = length && content->bytes[length - 1] == BLANK ? length - 1 : length;
}

/* The canonical composition of two adjacent code points, or 0. */
static uint32_t composed_pair(const Table *table, uint32_t first, uint32_t second)
{
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
static PyObject *mapped_text(const Table *table, const Text *text)
{
    Py_ssize_t length = 0, capacity = 0;
    uint32_t one = BLANK;
    const uint32_t *several;
    for (Py_ssize_t at = 0; at < text->size; at++)
        capacity += mapped(table, text->points[at], &one, &several);
    Py_UCS4 *points = PyMem_New(Py_UCS4, capacity);
    if (!points)
        return PyErr_NoMemory();
    for (Py_ssize_t at = 0; at < text->size; at++) {
        Py_ssize_t count = mapped(table, text->points[at], &one, &several);
        for (Py_ssize_t k = 0; k < count; k++) {
            uint32_t entry = several ? entry_of(table, several[k]) : one;
            uint32_t point = (entry & WORD) && (entry & TARGET) < CODE_POINTS ? entry & TARGET : BLANK, pair = 0;
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

/* The content of a text as bytes, or as a str the mapped text that must be composed first. */
static PyObject *normalized(const Table *table, PyObject *source, PyObject *is_ascii, int composed, Text *text,
                            Content *content)
{
    if (!PyUnicode_Check(source))
        return PyErr_Format(PyExc_TypeError, "a list of texts is needed");
    PyObject *answer = PyObject_CallFunctionObjArgs(is_ascii, source, NULL);
    if (!answer)
        return NULL;
    int ascii = answer == Py_True;
    Py_DECREF(answer);
    Py_ssize_t size;
    const char *data = ascii ? PyUnicode_AsUTF8AndSize(source, &size) : NULL; /* of ASCII alone, it is not copied */
    if (ascii ? !data : !read_text(source, text))
        return NULL;
    content->length = 0;
    content->open = 0;
    if (!reserve(content, ascii ? size : text->size))
        return PyErr_NoMemory();
    int made = 1;
    if (ascii)
        make_ascii_content(table, (const uint8_t *)data, size, content);
    else
        made = make_content(table, text, composed, content);
    if (made < 0)
        return PyErr_NoMemory();
    return made ? PyBytes_FromStringAndSize((char *)content->bytes, content->length) : mapped_text(table, text);
}

PyDoc_STRVAR(normalize_doc,
             "normalize(texts: list of str, uint32 entries[0x110000], uint32 pool, uint8 combining[0x110000], uint64 "
             "pairs, composed: bool) -> list of bytes and str: the tokens of each text, joined by single blanks; or the mapped text, if "
             "it must be composed canonically before its tokens are made. That is not asked of texts said to be composed.");

static PyObject *normalize(PyObject *self, PyObject *args)
{
    PyObject *texts;
    Py_buffer entries, pool, combining, pairs;
    int composed;
    if (!PyArg_ParseTuple(args, "O!y*y*y*y*p", &PyList_Type, &texts, &entries, &pool, &combining, &pairs, &composed))
        return NULL;
    PyObject *found = NULL, *is_ascii = PyObject_GetAttrString((PyObject *)&PyUnicode_Type, "isascii");
    Text text = {0};
    Content content = {0};
    Table table = {entries.buf, combining.buf, pool.buf, pool.len / 4, pairs.buf, pairs.len / 8};
    if (entries.len != 4 * CODE_POINTS || combining.len != CODE_POINTS)
        PyErr_Format(PyExc_ValueError, "arrays that do not fit together");
    else if (is_ascii)
        found = PyList_New(PyList_Size(texts));
    for (Py_ssize_t k = 0; found && k < PyList_Size(found); k++) {
        PyObject *source = PyList_GetItem(texts, k); /* an exception if the list has become shorter */
        PyObject *one = source ? normalized(&table, source, is_ascii, composed, &text, &content) : NULL;
        if (!one || PyList_SetItem(found, k, one) < 0)
            Py_CLEAR(found);
    }
    Py_XDECREF(is_ascii);
    PyMem_Free(text.points);
    PyMem_Free(content.bytes);
    PyBuffer_Release(&entries);
    PyBuffer_Release(&pool);
    PyBuffer_Release(&combining);
    PyBuffer_Release(&pairs);
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

/* Bytes before the first blank of a word; 8 if it has none. (Warren, Hacker's Delight, chapter 6: the first zero byte.) */
static int before_blank(uint64_t word)
{
    uint64_t other = word ^ BLANKS, found = (other - ONES) & ~other & (ONES << 7);
    return found ? trailing_zeros(found) / 8 : 8;
}

/* A term of the sum over the 8-byte words j of a token: mix64(word + GOLDEN * (size + 2^32 * j)). */
static uint64_t term(uint64_t word, Py_ssize_t size, Py_ssize_t number)
{
    Py_ssize_t rest = size - 8 * number;
    if (rest < 8)
        word &= (UINT64_C(1) << (8 * rest)) - 1;
    return mix64(word + GOLDEN * ((uint64_t)size + ((uint64_t)number << 32)));
}

static void hash_tokens(const uint8_t *at, const uint8_t *end, uint64_t *hash)
{
    while (at < end) {
        uint64_t first = word_at(at, end);
        Py_ssize_t size = before_blank(first);
        if (size == 8) {
            const uint8_t *blank = memchr(at + 8, BLANK, end - at - 8);
            size = (blank ? blank : end) - at;
        }
        uint64_t sum = term(first, size, 0);
        for (Py_ssize_t number = 1; 8 * number < size; number++)
            sum += term(word_at(at + 8 * number, end), size, number);
        *hash++ = sum;
        at += size + 1;
    }
}

static Py_ssize_t count_tokens(const uint8_t *content, Py_ssize_t size)
{
    Py_ssize_t blanks = 0;
    for (Py_ssize_t at = 0; at < size; at++)
        blanks += content[at] == BLANK;
    return size ? blanks + 1 : 0;
}

/* What a function returns for an array: numpy.frombuffer reads it, and may write to it. */
static void *new_array(PyObject **array, Py_ssize_t numbers)
{
    *array = PyByteArray_FromStringAndSize(NULL, 8 * numbers);
    return *array ? PyByteArray_AsString(*array) : NULL;
}

PyDoc_STRVAR(token_runs_doc,
             "token_runs(contents: list of bytes) -> (uint64[tokens], int64[texts + 1]), as bytearrays: the hashes of all "
             "tokens, and where those of each text begin.");

static PyObject *token_runs(PyObject *self, PyObject *list)
{
    if (!PyList_Check(list))
        return PyErr_Format(PyExc_TypeError, "a list of bytes is needed");
    PyObject *hashes, *bounds = NULL;
    Py_ssize_t texts = PyList_Size(list), tokens = 0;
    int64_t *bound = new_array(&bounds, texts + 1);
    if (!bound)
        return NULL;
    bound[0] = 0;
    for (Py_ssize_t k = 0; k < texts; k++) {
        PyObject *content = PyList_GetItem(list, k);
        if (!PyBytes_Check(content)) {
            Py_DECREF(bounds);
            return PyErr_Format(PyExc_TypeError, "a list of bytes is needed");
        }
        tokens += count_tokens((uint8_t *)PyBytes_AsString(content), PyBytes_Size(content));
        bound[k + 1] = tokens;
    }
    uint64_t *hash = new_array(&hashes, tokens);
    for (Py_ssize_t k = 0; hash && k < texts; k++) {
        PyObject *content = PyList_GetItem(list, k);
        const uint8_t *token = (uint8_t *)PyBytes_AsString(content);
        hash_tokens(token, token + PyBytes_Size(content), hash + bound[k]);
    }
    if (!hash) {
        Py_DECREF(bounds);
        return NULL;
    }
    return Py_BuildValue("NN", hashes, bounds);
}

static int are_bounds(const int64_t *bound, Py_ssize_t texts, Py_ssize_t values)
{
    int in_order = bound[0] >= 0 && bound[texts] <= values;
    for (Py_ssize_t text = 0; text < texts; text++)
        in_order &= bound[text] <= bound[text + 1];
    return in_order;
}

/* mix64 of the Horner sum of some tokens, begun with their number. */
static uint64_t shingle(const uint64_t *token, Py_ssize_t size)
{
    uint64_t sum = (uint64_t)size;
    for (Py_ssize_t k = 0; k < size; k++)
        sum = sum * MULTIPLIER + token[k];
    return mix64(sum);
}

/* Shingles of a text of so many tokens: one of all of them if they are fewer than its size. */
static Py_ssize_t count_shingles(Py_ssize_t tokens, Py_ssize_t size)
{
    return tokens < size ? tokens > 0 : tokens - size + 1;
}

PyDoc_STRVAR(shingle_runs_doc,
             "shingle_runs(uint64 hashes, int64 bounds[texts + 1], size) -> (uint64[shingles], int64[texts + 1]), as "
             "bytearrays: the shingle hashes of all texts, in their order, and where those of each text begin.");

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
        for (Py_ssize_t k = 0; k < start[text + 1] - start[text]; k++)
            *value++ = shingle(token + bound[text] + k, tokens < size ? tokens : size);
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

/* The extremes of one text, value by value with each multiplier. */
FOR_EACH_PROCESSOR
static void permute(const uint32_t *values, Py_ssize_t size, uint32_t shift, uint32_t multiplier, uint32_t *least,
                    uint32_t *greatest)
{
    uint32_t low = UINT32_MAX, high = 0;
    for (Py_ssize_t k = 0; k < size; k++) {
        uint32_t permuted = (values[k] + shift) * multiplier;
        low = permuted < low ? permuted : low;
        high = permuted > high ? permuted : high;
    }
    *least = low;
    *greatest = high;
}

PyDoc_STRVAR(extremes_doc,
             "extremes(uint32 values, int64 bounds[texts + 1], uint32 shifts, uint32 multipliers, uint32 out[2 * "
             "multipliers, texts]): the least of each permutation, then the greatest. Each text must have a value.");

static PyObject *extremes(PyObject *self, PyObject *args)
{
    Py_buffer values, bounds, shifts, multipliers, out;
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*", &values, &bounds, &shifts, &multipliers, &out))
        return NULL;
    const uint32_t *value = values.buf, *shift = shifts.buf, *multiplier = multipliers.buf;
    const int64_t *bound = bounds.buf;
    uint32_t *extreme = out.buf;
    Py_ssize_t half = multipliers.len / 4, texts = bounds.len / 8 - 1, lanes = shifts.len / 4;
    int fits = texts >= 0 && lanes > 0 && out.len == 8 * half * texts && are_bounds(bound, texts, values.len / 4);
    Py_BEGIN_ALLOW_THREADS;
    for (Py_ssize_t text = 0; fits && text < texts; text++)
        for (Py_ssize_t k = 0; k < half; k++)
            permute(value + bound[text], bound[text + 1] - bound[text], shift[k % lanes], multiplier[k],
                    extreme + k * texts + text, extreme + (half + k) * texts + text);
    Py_END_ALLOW_THREADS;
    PyBuffer_Release(&values);
    PyBuffer_Release(&bounds);
    PyBuffer_Release(&shifts);
    PyBuffer_Release(&multipliers);
    PyBuffer_Release(&out);
    if (!fits)
        return PyErr_Format(PyExc_ValueError, "arrays that do not fit together");
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"normalize", normalize, METH_VARARGS, normalize_doc},
    {"token_runs", token_runs, METH_O, token_runs_doc},
    {"shingle_runs", shingle_runs, METH_VARARGS, shingle_runs_doc},
    {"extremes", extremes, METH_VARARGS, extremes_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_kernel", .m_doc = "The inner loops of signing.", .m_methods = methods};

PyMODINIT_FUNC PyInit__kernel(void)
{
    return PyModule_Create(&module);
}
