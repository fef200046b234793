/* The inner loops of the hot path in C. They give the same bits as the numpy code beside each of their callers, which
 * does the work where this was not built: without a compiler, on big-endian machines, with another compiler than gcc or
 * clang. Every access to memory is within what was handed in, whatever that holds. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <string.h>

#if !defined(__GNUC__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "words are read as little-endian, and their first zero byte is found by a builtin of gcc and clang"
#endif

/* One function for each kind of processor, chosen when it is loaded: glibc can, musl and macOS cannot. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

#define BLANK 0x20
#define BLANKS UINT64_C(0x2020202020202020)
#define END 0xFF
#define GOLDEN UINT64_C(0x9E3779B97F4A7C15)
#define MULTIPLIER UINT64_C(0xD1342543DE82EF95)

static uint64_t mix64(uint64_t value)
{
    value = (value ^ (value >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94D049BB133111EB);
    return value ^ (value >> 31);
}

/* Tokens joined by single blanks, none at either end; returns the number of bytes written. */
static Py_ssize_t joined_tokens(const uint8_t *text, Py_ssize_t size, uint8_t *out)
{
    Py_ssize_t length = 0;
    int before = 1; /* whether a blank was written last, or nothing */
    for (Py_ssize_t at = 0; at < size; at++) {
        int blank = text[at] == BLANK;
        out[length] = text[at];
        length += !(blank & before);
        before = blank;
    }
    return length && out[length - 1] == BLANK ? length - 1 : length;
}

PyDoc_STRVAR(contents_doc, "contents(folded) -> list of bytes: the tokens of each text, joined by single blanks.");

static PyObject *contents(PyObject *self, PyObject *folded)
{
    Py_buffer view;
    if (PyObject_GetBuffer(folded, &view, PyBUF_SIMPLE) < 0)
        return NULL;
    PyObject *found = PyList_New(0);
    const uint8_t *text = view.buf, *last = text + view.len;
    const uint8_t *end;
    while (found && text < last && (end = memchr(text, END, last - text))) {
        PyObject *content = PyBytes_FromStringAndSize(NULL, end - text);
        if (content) {
            Py_ssize_t length = joined_tokens(text, end - text, (uint8_t *)PyBytes_AS_STRING(content));
            _PyBytes_Resize(&content, length);
        }
        if (!content || PyList_Append(found, content) < 0)
            Py_CLEAR(found);
        Py_XDECREF(content);
        text = end + 1;
    }
    PyBuffer_Release(&view);
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

/* Bytes before the first blank of a word; 8 if it has none. (Warren, Hacker's Delight, chapter 6: the first zero byte.) */
static int before_blank(uint64_t word)
{
    uint64_t other = word ^ BLANKS;
    uint64_t found = (other - UINT64_C(0x0101010101010101)) & ~other & UINT64_C(0x8080808080808080);
    return found ? __builtin_ctzll(found) / 8 : 8;
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
    return *array ? PyByteArray_AS_STRING(*array) : NULL;
}

PyDoc_STRVAR(token_runs_doc,
             "token_runs(contents: list of bytes) -> (uint64[tokens], int64[texts + 1]), as bytearrays: the hashes of all "
             "tokens, and where those of each text begin.");

static PyObject *token_runs(PyObject *self, PyObject *list)
{
    if (!PyList_Check(list))
        return PyErr_Format(PyExc_TypeError, "a list of bytes is needed");
    PyObject *hashes, *bounds = NULL;
    Py_ssize_t texts = PyList_GET_SIZE(list), tokens = 0;
    int64_t *bound = new_array(&bounds, texts + 1);
    if (!bound)
        return NULL;
    bound[0] = 0;
    for (Py_ssize_t k = 0; k < texts; k++) {
        PyObject *content = PyList_GET_ITEM(list, k);
        if (!PyBytes_Check(content)) {
            Py_DECREF(bounds);
            return PyErr_Format(PyExc_TypeError, "a list of bytes is needed");
        }
        tokens += count_tokens((uint8_t *)PyBytes_AS_STRING(content), PyBytes_GET_SIZE(content));
        bound[k + 1] = tokens;
    }
    uint64_t *hash = new_array(&hashes, tokens);
    for (Py_ssize_t k = 0; hash && k < texts; k++) {
        PyObject *content = PyList_GET_ITEM(list, k);
        const uint8_t *token = (uint8_t *)PyBytes_AS_STRING(content);
        hash_tokens(token, token + PyBytes_GET_SIZE(content), hash + bound[k]);
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
    {"contents", contents, METH_O, contents_doc},
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
