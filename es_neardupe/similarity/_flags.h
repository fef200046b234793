/* The flags of the tokens of a text, as in facts/token_flags.py, which describes them. */

#define UNCERTAIN 8
#define INNER 16
#define CAPITALS 32
#define LOWER 4
#define IS_FACT 255 /* until the flags of a token are known */

static int ends_a_sentence(uint32_t c)
{
    return c == 0x2026 || c == 0x2022 || (c && c < 128 && strchr(".!?:;\n\t", (int)c));
}

/* Whether a sentence ends in what is between two tokens. */
static int has_an_end(const uint32_t *between, Py_ssize_t size)
{
    for (Py_ssize_t k = 0; size > 1 && k < size; k++)
        if (ends_a_sentence(between[k]) || (between[k] == '-' && k + 1 < size && between[k + 1] == '-'))
            return 1;
    return 0;
}

/* Whether this is a colon with blanks after it. */
static int is_after_label(const uint32_t *between, Py_ssize_t size)
{
    Py_ssize_t k = 1;
    if (size < 2 || between[0] != ':')
        return 0;
    while (k < size && (between[k] == ' ' || between[k] == '\t' || between[k] == 0xA0))
        k++;
    return k == size;
}

/* Whether this is what is between an abbreviation and the next word: a full stop with a hyphen or blanks after it. */
static int is_after_abbreviation(const uint32_t *between, Py_ssize_t size)
{
    Py_ssize_t k = 1;
    if (size < 2 || between[0] != '.')
        return 0;
    if (between[1] == '-')
        return size == 2;
    while (k < size && (between[k] == ' ' || between[k] == 0xA0))
        k++;
    return k == size;
}

/* The answer of a method of a string; -1 with an exception. */
static int answer(const uint32_t *text, Py_ssize_t size, const char *method)
{
    int order = -1;
    PyObject *string = PyUnicode_DecodeUTF32((const char *)text, 4 * size, "surrogatepass", &order), *found = NULL;
    if (string)
        found = PyObject_CallMethod(string, method, NULL);
    int is = found ? PyObject_IsTrue(found) : -1;
    Py_XDECREF(found);
    Py_XDECREF(string);
    return is;
}

static int is_in_capitals(const uint32_t *word, Py_ssize_t size)
{
    int letters = 0;
    for (Py_ssize_t k = 0; k < size; k++) {
        if (word[k] > 127)
            return answer(word, size, "isupper");
        if (is_small(word[k]))
            return 0;
        letters |= is_letter(word[k]);
    }
    return letters;
}

/* The flags of a word; -1 with an exception. `begins`: whether it is at the beginning of a sentence. */
static int flags_of_word(const uint32_t *word, Py_ssize_t size, int begins, int follows_label, PyObject *key,
                         PyObject *function_words)
{
    int is_function_word = PySequence_Contains(function_words, key);
    int is_lower = *word > 127 ? answer(word, 1, "islower") : is_small(*word);
    if (is_function_word < 0 || is_lower < 0)
        return -1;
    int flags = is_function_word ? 0 : CONTENT;
    if (is_lower)
        return flags | LOWER;
    int capitals = size > 1 && !is_small(word[size - 1]) ? is_in_capitals(word, size) : 0;
    if (capitals < 0)
        return -1;
    flags |= capitals ? CAPITALS : 0;
    return begins && !follows_label ? flags | UNCERTAIN : capitals ? flags : flags | INNER;
}

/* Whether a word before a full stop is abbreviated: a title, or an initial; -1 with an exception. A single capital that
 * begins a sentence is the letter of a list. */
static int is_abbreviated(const uint32_t *word, Py_ssize_t size, int its_flags, PyObject *key, PyObject *titles)
{
    if (its_flags == IS_FACT)
        return 0;
    int is_initial = size == 1 && !(its_flags & UNCERTAIN) ? is_in_capitals(word, size) : 0;
    return is_initial ? is_initial : PySequence_Contains(titles, key);
}

/* Mark the facts among the tokens. Returns 0 if there is no token with such a number. */
static int mark_facts(PyObject *kinds, uint8_t *flags, Py_ssize_t count)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    memset(flags, 0, (size_t)count);
    while (PyDict_Next(kinds, &at, &key, &value)) {
        Py_ssize_t k = PyLong_AsSsize_t(key);
        if (k < 0 || k >= count) {
            PyErr_Clear();
            return 0;
        }
        flags[k] = IS_FACT;
    }
    return 1;
}

PyDoc_STRVAR(flags_doc,
             "flags(uint32 text, keys, int64 starts, int64 ends, kinds, function_words, titles, uint8 out): the flags "
             "of tokens, given by a list of keys, their places, and the kinds of facts by their numbers.");

static PyObject *flags(PyObject *self, PyObject *args)
{
    Py_buffer buffer, starts, ends, out;
    PyObject *keys, *kinds, *function_words, *titles;
    if (!PyArg_ParseTuple(args, "y*O!y*y*O!OOw*", &buffer, &PyList_Type, &keys, &starts, &ends, &PyDict_Type, &kinds,
                          &function_words, &titles, &out))
        return NULL;
    const uint32_t *text = buffer.buf;
    const int64_t *first = starts.buf, *after = ends.buf;
    uint8_t *found = out.buf;
    Py_ssize_t count = out.len;
    int64_t size = buffer.len / 4, before = 0;
    int fit = (uintptr_t)text % sizeof *text == 0 && has_numbers(&starts) && has_numbers(&ends) &&
              starts.len / 8 == count && ends.len / 8 == count && PyList_Size(keys) == count &&
              mark_facts(kinds, found, count);
    int failed = 0, last = IS_FACT; /* the flags of the last token */
    for (Py_ssize_t k = 0; fit && !failed && k < count; k++) {
        int64_t start = first[k], end = after[k];
        if (!(fit = 0 <= start && start < end && end <= size && k < PyList_Size(keys)))
            break;
        const uint32_t *between = text + before;
        Py_ssize_t gap = start > before ? (Py_ssize_t)(start - before) : 0;
        int begins = !k || has_an_end(between, gap), more = 0;
        if (k && begins && is_after_abbreviation(between, gap)) {
            int is_one = is_abbreviated(text + first[k - 1], (Py_ssize_t)(before - first[k - 1]), last,
                                        PyList_GetItem(keys, k - 1), titles);
            failed = is_one < 0;
            begins = !is_one;
        }
        if (!failed && found[k] != IS_FACT)
            more = flags_of_word(text + start, (Py_ssize_t)(end - start), begins, k && is_after_label(between, gap),
                                 PyList_GetItem(keys, k), function_words);
        failed |= more < 0;
        last = found[k] == IS_FACT ? IS_FACT : begins | more;
        found[k] = (uint8_t)(begins | more);
        before = end;
    }
    PyBuffer_Release(&buffer);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&ends);
    PyBuffer_Release(&out);
    if (!fit)
        PyErr_SetString(PyExc_ValueError, "arrays that do not fit together");
    if (!fit || failed)
        return NULL;
    Py_RETURN_NONE;
}
