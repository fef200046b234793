/* Comparing signatures in C: equal slots, and the choice of the texts that have most of them. It gives the same results
 * as the code in Python beside its callers, which does the work where this was not built. Every access to memory is
 * within what was handed in. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MOST_KEYS UINT8_MAX /* of a document: counts of common keys have 8 bits */
#define MOST_SLOTS 256 /* of a signature */

#define EACH_BYTE(value) (UINT64_C(0x0101010101010101) * (value))
#define EACH_OTHER_BYTE UINT64_C(0x00FF00FF00FF00FF)

/* Equal slots, eight at a time: the number of each place of a word is in its byte, at most MOST_SLOTS / 8. */
static int16_t count_equal(const uint8_t *one, const uint8_t *other, Py_ssize_t slots)
{
    uint64_t counts = 0;
    Py_ssize_t slot = 0;
    for (; slot + 8 <= slots; slot += 8) {
        uint64_t a, b;
        memcpy(&a, one + slot, 8);
        memcpy(&b, other + slot, 8);
        uint64_t differ = a ^ b;
        differ |= (differ & EACH_BYTE(0x7F)) + EACH_BYTE(0x7F); /* the highest bit of each byte that is not zero */
        counts += ~differ >> 7 & EACH_BYTE(1);
    }
    counts = (counts & EACH_OTHER_BYTE) + (counts >> 8 & EACH_OTHER_BYTE);
    int16_t equal = (int16_t)(counts * (EACH_OTHER_BYTE & EACH_BYTE(1)) >> 48);
    for (; slot < slots; slot++)
        equal += one[slot] == other[slot];
    return equal;
}

PyDoc_STRVAR(equal_slots_doc,
             "equal_slots(signature, list of signatures) -> int16[signatures]: how many slots a signature has in common "
             "with each of some others; one of another size is zero.");

static PyObject *equal_slots(PyObject *self, PyObject *args)
{
    static const uint8_t zero[MOST_SLOTS];
    const char *signature;
    Py_ssize_t slots;
    PyObject *others;
    if (!PyArg_ParseTuple(args, "y#O!", &signature, &slots, &PyList_Type, &others))
        return NULL;
    if (slots > MOST_SLOTS)
        return PyErr_Format(PyExc_ValueError, "a signature of %zd slots", slots);
    Py_ssize_t number = PyList_Size(others);
    int16_t *equal = calloc((size_t)number + 1, sizeof(int16_t));
    if (!equal)
        return PyErr_NoMemory();
    PyObject *result = NULL;
    for (Py_ssize_t k = 0; k < number; k++) {
        char *other;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(PyList_GetItem(others, k), &other, &size) < 0)
            goto end;
        equal[k] = count_equal((const uint8_t *)signature, size == slots ? (const uint8_t *)other : zero, slots);
    }
    result = PyBytes_FromStringAndSize((const char *)equal, number * (Py_ssize_t)sizeof(int16_t));
end:
    free(equal);
    return result;
}

/* Texts with their keys and signatures, and a new document. */
typedef struct {
    const int32_t *keys; /* the numbers of the keys of the document */
    const int64_t *bounds; /* the texts with key k are those from bounds[k] to bounds[k + 1] */
    const int32_t *with_key;
    const uint8_t *flags; /* of the first keys: whether each text has it */
    const int64_t *sizes; /* how many documents of each text count */
    const uint8_t *signatures, *signature;
    Py_ssize_t number_of_keys, number_of_bounds, number_with_key, texts, slots;
    Py_ssize_t flagged; /* keys with flags */
    Py_ssize_t minimum, most, maximum;
} Texts;

typedef struct {
    uint8_t *shared; /* how many keys of the document each text has; 0 if no document of it counts */
    int64_t *places, *best; /* of the texts whose signatures are compared, and of those that are chosen */
    int16_t *equal, *best_equal;
    Py_ssize_t compared, chosen;
    int64_t number, others;
} Choice;

/* Count the common keys of each text. Returns 0 if the arrays do not fit together. */
static int count_keys(const Texts *texts, uint8_t *shared)
{
    for (Py_ssize_t k = 0; k < texts->number_of_keys; k++) {
        int32_t key = texts->keys[k];
        if (key < 0 || key >= texts->number_of_bounds - 1)
            return 0;
        if (key < texts->flagged) {
            const uint8_t *flags = texts->flags + key * texts->texts;
            for (Py_ssize_t text = 0; text < texts->texts; text++)
                shared[text] += flags[text];
            continue;
        }
        int64_t first = texts->bounds[key], end = texts->bounds[key + 1];
        if (first < 0 || end > texts->number_with_key)
            return 0;
        for (int64_t place = first; place < end; place++) {
            int32_t text = texts->with_key[place];
            if (text < 0 || text >= texts->texts)
                return 0;
            shared[text]++;
        }
    }
    return 1;
}

/* Choose the texts with most common keys, at most texts->most; of those with as many, the first. */
static void choose_by_keys(const Texts *texts, Choice *choice)
{
    int32_t with[2][MOST_KEYS + 1] = {{0}}; /* so many common keys; two counts, since most texts have as many */
    int64_t more = 0;
    Py_ssize_t least = MOST_KEYS;
    for (Py_ssize_t text = 0; text < texts->texts; text++) {
        if (texts->sizes[text] <= 0)
            choice->shared[text] = 0;
        with[text % 2][choice->shared[text]]++;
        if (choice->shared[text] >= texts->minimum) {
            choice->number++;
            choice->others += texts->sizes[text];
        }
    }
    for (; least > texts->minimum && more + with[0][least] + with[1][least] < texts->most; least--)
        more += with[0][least] + with[1][least];
    choice->compared = texts->most < choice->number ? texts->most : choice->number;
    int64_t room = choice->compared - more;
    for (Py_ssize_t text = 0, next = 0; next < choice->compared; text++)
        if (choice->shared[text] > least || (choice->shared[text] == least && room-- > 0))
            choice->places[next++] = text;
}

/* Choose those of them with most equal slots, at most texts->maximum; of as many, the first. */
static void choose_by_slots(const Texts *texts, Choice *choice)
{
    int64_t rank[MOST_SLOTS + 1] = {0}, before = 0;
    for (Py_ssize_t k = 0; k < choice->compared; k++) {
        const uint8_t *signature = texts->signatures + choice->places[k] * texts->slots;
        choice->equal[k] = count_equal(texts->signature, signature, texts->slots);
        rank[choice->equal[k]]++;
    }
    for (Py_ssize_t equal = texts->slots; equal >= 0; equal--) {
        int64_t some = rank[equal];
        rank[equal] = before;
        before += some;
    }
    choice->chosen = choice->compared < texts->maximum ? choice->compared : texts->maximum;
    for (Py_ssize_t k = 0; k < choice->compared; k++) {
        int64_t place = rank[choice->equal[k]]++;
        if (place < choice->chosen) {
            choice->best[place] = choice->places[k];
            choice->best_equal[place] = choice->equal[k];
            choice->others -= texts->sizes[choice->places[k]];
        }
    }
}

PyDoc_STRVAR(nearest_doc,
             "nearest(int32 keys, int64 bounds[all keys + 1], int32 with_key, uint8 flags[first keys, texts], int64 "
             "sizes[texts], uint8 signatures[texts, slots], signature, minimum, most, maximum) -> (int64 places, int16 equal slots, number, "
             "others): of the texts with at least the minimum of common keys, the most with most of them; of these, at "
             "most the maximum with most equal slots; the number of all texts that share keys, and of the documents "
             "with other texts than those chosen.");

static PyObject *nearest(PyObject *self, PyObject *args)
{
    Py_buffer keys, bounds, with_key, flags, sizes, signatures, signature;
    Texts texts = {0};
    Choice choice = {0};
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*y*y*nnn", &keys, &bounds, &with_key, &flags, &sizes, &signatures,
                          &signature, &texts.minimum, &texts.most, &texts.maximum))
        return NULL;
    texts.keys = keys.buf;
    texts.number_of_keys = keys.len / 4;
    texts.bounds = bounds.buf;
    texts.number_of_bounds = bounds.len / 8;
    texts.with_key = with_key.buf;
    texts.number_with_key = with_key.len / 4;
    texts.sizes = sizes.buf;
    texts.texts = sizes.len / 8;
    texts.flags = flags.buf;
    texts.flagged = texts.texts ? flags.len / texts.texts : 0;
    texts.signatures = signatures.buf;
    texts.signature = signature.buf;
    texts.slots = signature.len;
    size_t room = (size_t)(texts.most < texts.texts ? texts.most : texts.texts) + 1;
    int fits = texts.minimum > 0 && texts.most > 0 && texts.maximum >= 0 && texts.number_of_keys <= MOST_KEYS &&
               texts.slots <= MOST_SLOTS && signatures.len == texts.texts * texts.slots;
    if (fits) {
        choice.shared = calloc((size_t)texts.texts + 1, 1);
        choice.places = calloc(2 * room, sizeof(int64_t));
        choice.equal = calloc(2 * room, sizeof(int16_t));
    }
    int has_memory = choice.shared && choice.places && choice.equal;
    if (has_memory) {
        choice.best = choice.places + room;
        choice.best_equal = choice.equal + room;
        Py_BEGIN_ALLOW_THREADS;
        fits = count_keys(&texts, choice.shared);
        if (fits) {
            choose_by_keys(&texts, &choice);
            choose_by_slots(&texts, &choice);
        }
        Py_END_ALLOW_THREADS;
    }
    PyObject *result = NULL;
    if (!fits)
        PyErr_SetString(PyExc_ValueError, "arrays that do not fit together");
    else if (!has_memory)
        PyErr_NoMemory();
    else
        result = Py_BuildValue("(y#y#LL)", (const char *)choice.best, choice.chosen * (Py_ssize_t)sizeof(int64_t),
                               (const char *)choice.best_equal, choice.chosen * (Py_ssize_t)sizeof(int16_t),
                               (long long)choice.number, (long long)choice.others);
    free(choice.shared);
    free(choice.places);
    free(choice.equal);
    PyBuffer_Release(&keys);
    PyBuffer_Release(&bounds);
    PyBuffer_Release(&with_key);
    PyBuffer_Release(&flags);
    PyBuffer_Release(&sizes);
    PyBuffer_Release(&signatures);
    PyBuffer_Release(&signature);
    return result;
}

static PyMethodDef methods[] = {
    {"equal_slots", equal_slots, METH_VARARGS, equal_slots_doc},
    {"nearest", nearest, METH_VARARGS, nearest_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_nearest", .m_doc = "Comparing signatures.", .m_methods = methods};

PyMODINIT_FUNC PyInit__nearest(void)
{
    return PyModule_Create(&module);
}
