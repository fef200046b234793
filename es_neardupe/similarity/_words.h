/* The ordinary words and numbers of a text: those that `_RAW` (facts/raw_tokens.py) reads as words and that begin no fact,
 * and numbers of which nothing else is known. Only what is certainly one is taken here: a word of ASCII letters with signs
 * around it that cannot make it part of a code, an address or a unit; up to four digits after a blank, without a unit or
 * the like after them. At anything else the loop stops, and Python reads the next token. */

#define LONGEST_WORD 64 /* letters */
#define LONGEST_NUMBER 4 /* digits */
#define LONGEST_GAP 20 /* characters between the parts of a fact */

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

/* Whether a sign begins the letter of a clause, `(a)` or `(iv)`, or a box, `[x]` or `[ ]`. */
static int begins_in_brackets(const uint32_t *text, Py_ssize_t size, Py_ssize_t at)
{
    uint32_t sign = text[at++];
    if (sign == '[')
        return at + 1 < size && ((text[at] | 32) == 'x' || text[at] == ' ') && text[at + 1] == ']';
    if (sign != '(')
        return 0;
    while (at < size && is_small(text[at]))
        at++;
    return at < size && text[at] == ')' && is_small(text[at - 1]);
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

/* The end of the word at a place, and its letters in lower case; the place itself if the word may be something else. */
static Py_ssize_t end_of_word(const uint32_t *text, Py_ssize_t size, Py_ssize_t at, char *letters)
{
    Py_ssize_t end = at;
    while (end < size && end - at < LONGEST_WORD && is_letter(text[end])) {
        letters[end - at] = (char)(text[end] | 32);
        end++;
    }
    return end - at == LONGEST_WORD || is_more_than_a_word(text, size, at, end) ? at : end;
}

/* Whether the next token, after blanks, is an ordinary word that is not one of some; -1 with an exception. */
static int precedes_a_word(const uint32_t *text, Py_ssize_t size, Py_ssize_t at, PyObject *others)
{
    char letters[LONGEST_WORD];
    if (at >= size || !is_letter(text[at]) || begins_an_address(text, size, at))
        return 0;
    Py_ssize_t end = end_of_word(text, size, at, letters);
    PyObject *word = PyUnicode_FromStringAndSize(letters, end - at);
    int is_other = word ? PySequence_Contains(others, word) : -1;
    Py_XDECREF(word);
    return is_other < 0 ? -1 : end > at && !is_other;
}

/* Whether what is after a number cannot belong to it; -1 with an exception. `following`: words that may. */
static int ends_alone(const uint32_t *text, Py_ssize_t size, Py_ssize_t end, PyObject *following)
{
    uint32_t sign = at_or_blank(text, size, end), next = at_or_blank(text, size, end + 1);
    int is_sign_after = sign == '.' || sign == ',' || sign == ';' || sign == ')', lines = 0;
    if (is_sign_after ? next != ' ' && next != '\n' : sign != ' ' && sign != '\n')
        return 0;
    Py_ssize_t at = end + is_sign_after;
    for (; at < size && (text[at] == ' ' || text[at] == '\n'); at++)
        lines += text[at] == '\n';
    if (at >= size)
        return 1;
    if (is_letter(text[at])) {
        if (sign == ';' || sign == ')' || lines > 1 || at - end > LONGEST_GAP)
            return 1;
        return precedes_a_word(text, size, at, following);
    }
    if (is_digit(text[at]))
        return is_sign_after;
    return text[at] < 128 && strchr("()[]{}<>\"'*#&=|~`:;!?\\", (int)text[at]) && !begins_a_number(text, size, at) &&
           !begins_in_brackets(text, size, at);
}

/* The end of the number at a place; the place itself if it may be something else, or -1 with an exception. */
static Py_ssize_t end_of_number(const uint32_t *text, Py_ssize_t size, Py_ssize_t at, PyObject *following)
{
    Py_ssize_t end = at;
    while (end < size && end - at <= LONGEST_NUMBER && is_digit(text[end]))
        end++;
    Py_ssize_t length = end - at;
    if ((at && text[at - 1] != ' ' && text[at - 1] != '\n') || length > LONGEST_NUMBER || (text[at] == '0' && length > 1))
        return at;
    if (text[end - 1] == '0' && (length == 2 || length == 4)) /* that of a decade */
        return at;
    int alone = ends_alone(text, size, end, following);
    return alone < 0 ? -1 : alone ? end : at;
}

/* Tokens that are found, before their places are appended to the columns. */
typedef struct {
    PyObject *keys, *columns[2]; /* a list; arrays of 64-bit integers */
    PyObject *kinds, *values;    /* dictionaries: the kind and the key of each number, by the number of the token */
    PyObject *number, *date;     /* kinds of facts */
    int64_t places[2][128];      /* first character of each token, and the one after its last */
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

static int append_number(Found *found, const uint32_t *text, Py_ssize_t start, Py_ssize_t end)
{
    char letters[LONGEST_NUMBER + 2] = "n:";
    for (Py_ssize_t k = 0; k < end - start && k < LONGEST_NUMBER; k++)
        letters[k + 2] = (char)text[start + k];
    int century = end - start == 4 ? 10 * (letters[2] - '0') + letters[3] - '0' : 0;
    PyObject *key = PyUnicode_FromStringAndSize(letters, end - start + 2);
    PyObject *place = PyLong_FromSsize_t(PyList_Size(found->keys));
    int failed = !key || !place ||
                 PyDict_SetItem(found->kinds, place, century == 19 || century == 20 ? found->date : found->number) < 0 ||
                 PyDict_SetItem(found->values, place, key) < 0 || append_word(found, key, start, end);
    Py_XDECREF(place);
    Py_XDECREF(key);
    return failed;
}

PyDoc_STRVAR(words_doc,
             "words(uint32 text, at, read, read_if_capitalised, following, kinds of numbers and years, "
             "keys, starts, ends, kinds, values) -> int: append the ordinary words and numbers from `at` on to the columns of "
             "tokens. Returns where something else may be: no token begins between the last of these and that place. `read`: "
             "words that may begin a fact; `following`: those that may belong to a number before them.");

static PyObject *words(PyObject *self, PyObject *args)
{
    Py_buffer buffer;
    Py_ssize_t at;
    PyObject *read[2], *following;
    Found found = {.count = 0};
    if (!PyArg_ParseTuple(args, "y*nOOO(OO)O!OOO!O!", &buffer, &at, &read[0], &read[1], &following, &found.number,
                          &found.date, &PyList_Type, &found.keys, &found.columns[0], &found.columns[1], &PyDict_Type,
                          &found.kinds, &PyDict_Type, &found.values))
        return NULL;
    const uint32_t *text = buffer.buf;
    Py_ssize_t size = buffer.len / 4;
    int failed = at < 0 || (uintptr_t)text % sizeof *text;
    if (failed)
        PyErr_SetString(PyExc_ValueError, "no text of 32 bits a character, or no place in it");
    while (!failed && at < size) {
        uint32_t c = text[at];
        if (is_in_address(c) && begins_an_address(text, size, at))
            break;
        if (is_digit(c)) {
            Py_ssize_t end = end_of_number(text, size, at, following);
            failed = end < 0 || (end > at && append_number(&found, text, at, end));
            if (end == at)
                break;
            at = end;
            continue;
        }
        if (!is_letter(c) && (!is_sign(c) || begins_a_number(text, size, at) || (c == '[' && begins_in_brackets(text, size, at))))
            break;
        if (!is_letter(c)) {
            at++;
            continue;
        }
        char letters[LONGEST_WORD];
        Py_ssize_t end = end_of_word(text, size, at, letters);
        if (end == at)
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
