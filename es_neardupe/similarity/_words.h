/* The ordinary words of a text: those that `_RAW` (facts/raw_tokens.py) reads as words, and that begin no fact. Only what
 * is certainly one is taken here: a word of ASCII letters with signs around it that cannot make it part of a code, an
 * address or a unit. At anything else the loop stops, and Python reads the next token. */

#define LONGEST_WORD 64 /* letters */

static int is_letter(uint32_t c)
{
    return (c | 32) - 'a' < 26;
}

static int is_small(uint32_t c)
{
    return c - 'a' < 26;
}

static int is_digit(uint32_t c)
{
    return c - '0' < 10;
}

/* Characters that may be letters or digits of other scripts. Dashes and quotation marks are none. */
static int is_foreign(uint32_t c)
{
    return c > 127 && !(0x2013 <= c && c <= 0x201D);
}

/* A sign that may begin a number or an address, and no other token. */
static int is_sign(uint32_t c)
{
    return c > 127 ? !is_foreign(c) : c && strchr(" \n\t\r.,;:!?\"'()[]{}<>/\\*#&=|^~`@_+-", (int)c) != NULL;
}

/* A character that may be before the @ of an address. */
static int is_in_address(uint32_t c)
{
    return is_letter(c) || is_digit(c) || c == '.' || c == '_' || c == '+' || c == '-';
}

static uint32_t at_or_blank(const uint32_t *text, Py_ssize_t size, Py_ssize_t at)
{
    return at < size ? text[at] : ' ';
}

/* Whether a sign may begin a number, that of a telephone, or a comparison such as `>= -5` or `< $5`. */
static int begins_a_number(const uint32_t *text, Py_ssize_t size, Py_ssize_t at)
{
    uint32_t sign = text[at++];
    if (sign == '<' || sign == '>' || sign == '=') {
        at += at < size && (text[at] == '<' || text[at] == '>' || text[at] == '=');
        at += at < size && text[at] <= ' ';
        at += at < size && (text[at] == '+' || text[at] == '-');
        at += at < size && text[at] == '$';
    } else if (sign != '(' && sign != '+' && sign != '-')
        return 0;
    return at < size && (is_digit(text[at]) || is_foreign(text[at]));
}

/* Whether an address may begin: not in the middle of what may be one. */
static int begins_an_address(const uint32_t *text, Py_ssize_t size, Py_ssize_t at)
{
    if (at && is_in_address(text[at - 1]))
        return 0;
    while (at < size && is_in_address(text[at]))
        at++;
    return at < size && (text[at] == '@' || is_foreign(text[at]));
}

/* Whether the word text[at:end] may be part of something else. */
static int is_more_than_a_word(const uint32_t *text, Py_ssize_t size, Py_ssize_t at, Py_ssize_t end)
{
    uint32_t next = at_or_blank(text, size, end), after = at_or_blank(text, size, end + 1);
    if (is_digit(next) || is_foreign(next) || (next == '-' && is_digit(after))) /* a code */
        return 1;
    if ((next == '/' && end - at <= 2) || (next == ':' && after == '/') || (next == '.' && end - at == 3 && text[at] == 'w'))
        return 1; /* km/h, http://, www. */
    if ((next == '+' || next == '#' || next == '-') && end - at <= 3 && !is_letter(after))
        return 1; /* C++, C#, AA-, but not e-mail */
    Py_ssize_t capitals = at;
    while (capitals < end && !is_small(text[capitals]))
        capitals++;
    return capitals - at > 2 && capitals < end; /* PDFs */
}

/* Words that are found, before they are appended to the columns of tokens. */
typedef struct {
    PyObject *keys, *columns[2]; /* a list; arrays of 64-bit integers */
    int64_t places[2][128];      /* first character of each word, and the one after its last */
    Py_ssize_t count;
} Found;

static int append_places(Found *found)
{
    int failed = 0;
    for (int k = 0; k < 2 && found->count && !failed; k++) {
        PyObject *done = PyObject_CallMethod(found->columns[k], "frombytes", "y#", (char *)found->places[k],
                                             found->count * (Py_ssize_t)sizeof(int64_t));
        failed = !done;
        Py_XDECREF(done);
    }
    found->count = 0;
    return failed;
}

static int append_word(Found *found, PyObject *key, Py_ssize_t start, Py_ssize_t end)
{
    if (PyList_Append(found->keys, key) < 0)
        return 1;
    found->places[0][found->count] = start;
    found->places[1][found->count++] = end;
    return found->count == 128 && append_places(found);
}

PyDoc_STRVAR(words_doc,
             "words(uint32 text, at, read, read_if_capitalised, keys, starts, ends) -> int: append the ordinary words from `at` "
             "on to a list and two arrays of 64-bit integers: in lower case, the first character of each, the one after its "
             "last. Returns where something else may be: no token begins between the last of these words and that place. "
             "`read`: words that may begin a fact.");

static PyObject *words(PyObject *self, PyObject *args)
{
    Py_buffer buffer;
    Py_ssize_t at;
    PyObject *read[2];
    Found found = {.count = 0};
    if (!PyArg_ParseTuple(args, "y*nOOO!OO", &buffer, &at, &read[0], &read[1], &PyList_Type, &found.keys,
                          &found.columns[0], &found.columns[1]))
        return NULL;
    const uint32_t *text = buffer.buf;
    Py_ssize_t size = buffer.len / 4;
    int failed = at < 0 || (uintptr_t)text % sizeof *text;
    if (failed)
        PyErr_SetString(PyExc_ValueError, "no text of 32 bits a character, or no place in it");
    while (!failed && at < size) {
        uint32_t c = text[at];
        if (!is_letter(c) && (!is_sign(c) || begins_a_number(text, size, at)))
            break;
        if (is_in_address(c) && begins_an_address(text, size, at))
            break;
        if (!is_letter(c)) {
            at++;
            continue;
        }
        char letters[LONGEST_WORD];
        Py_ssize_t end = at;
        while (end < size && end - at < LONGEST_WORD && is_letter(text[end])) {
            letters[end - at] = (char)(text[end] | 32);
            end++;
        }
        if (end - at == LONGEST_WORD || is_more_than_a_word(text, size, at, end))
            break;
        PyObject *key = PyUnicode_FromStringAndSize(letters, end - at);
        int is_read = key ? PySequence_Contains(read[0], key) : -1;
        if (!is_read && !is_small(c))
            is_read = PySequence_Contains(read[1], key);
        failed = is_read < 0 || (!is_read && append_word(&found, key, at, end));
        Py_XDECREF(key);
        if (is_read)
            break;
        at = end;
    }
    failed = failed || append_places(&found);
    PyBuffer_Release(&buffer);
    return failed ? NULL : PyLong_FromSsize_t(at);
}
