/* The masks of masks.py in C, on UTF-8: all expressions are ASCII, and a negated class accepts every other byte.
 *
 * Each function tries one kind at a place and returns the end of its match, or NULL. It finds what a leftmost-first
 * matcher of the expression beside it finds, without trying again: where two ways exist, the later parts decide which
 * one it is. A text ends with a zero byte, which belongs to no class, so no match reads beyond it: a zero byte inside
 * of a text is told from the end by its place. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef const unsigned char *Place;

enum { DIGIT = 1, LETTER = 2, HEX = 4, UNDERSCORE = 8, DOLLAR = 16, IN_PATH = 32, IN_LOCAL = 64, IN_SCHEME = 128 };
#define ALPHANUMERIC (DIGIT | LETTER)
#define WORD (ALPHANUMERIC | UNDERSCORE)
#define RUN (WORD | DOLLAR)

static unsigned char classes[256];

static void fill_classes(void)
{
    for (int c = 0; c < 128; c++) {
        int digit = c >= '0' && c <= '9', letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        int hex = digit || (c >= 'A' && c <= 'F') || (c >= 'a' && c <= 'f');
        int of = digit * DIGIT | letter * LETTER | hex * HEX | (c == '_') * UNDERSCORE | (c == '$') * DOLLAR;
        if (digit || letter || (c && strchr("_.@%+=,~$:-", c)))
            of |= IN_PATH;
        if (digit || letter || (c && strchr("._%+-", c)))
            of |= IN_LOCAL;
        if (digit || letter || (c && strchr("+.-", c)))
            of |= IN_SCHEME;
        classes[c] = (unsigned char)of;
    }
}

static int is(Place at, int class)
{
    return classes[*at] & class;
}

/* The end of at most `most` bytes of a class. */
static Place run_of(Place at, int class, int most)
{
    while (most-- > 0 && is(at, class))
        at++;
    return at;
}

/* The end of `least` to `most` digits. */
static Place digits(Place at, int least, int most)
{
    Place end = run_of(at, DIGIT, most);
    return end - at >= least ? end : NULL;
}

static int starts(Place at, const char *text)
{
    return strncmp((const char *)at, text, strlen(text)) == 0;
}

static int one_of(Place at, const char *characters)
{
    return *at && strchr(characters, *at) != NULL;
}

static const char *const EXTENSIONS[] = {"c",   "cc", "cpp", "cs",  "cxx", "erl", "ex", "go", "groovy", "h",     "hpp",   "java", "js",
                                         "jsx", "kt", "lua", "php", "pl",  "py",  "rb", "rs", "scala",  "swift", "ts",   "tsx",  NULL};

/* The end of HTTP/VERSION, where the version may be masked. */
static Place http_version(Place at)
{
    if (!starts(at, "HTTP/"))
        return NULL;
    if (starts(at + 5, "_num_"))
        return at + 10;
    Place found = digits(at + 5, 1, 1);
    return found && *found == '.' && is(found + 1, DIGIT) ? found + 2 : found;
}

/* HTTP/VERSION" STATUS */
static Place http_status(Place at)
{
    Place found = http_version(at);
    if (!found)
        return NULL;
    found += *found == '\\';
    return starts(found, "\" ") && one_of(found + 2, "12345") ? digits(found + 2, 3, 3) : NULL;
}

/* NAME.EXTENSION:NUMBER(:NUMBER)? | line NUMBER | HTTP/VERSION" STATUS */
static Place source(Place at, Place end)
{
    (void)end;
    if (is(at, LETTER | UNDERSCORE | DOLLAR)) {
        Place dot = run_of(at + 1, RUN, 99);
        Place last = *dot == '.' ? run_of(dot + 1, LETTER, 8) : dot;
        if (*dot == '.' && *last == ':' && is(last + 1, DIGIT)) {
            for (const char *const *one = EXTENSIONS; *one; one++)
                if (strlen(*one) == (size_t)(last - dot - 1) && !memcmp(*one, dot + 1, strlen(*one))) {
                    Place found = run_of(last + 1, DIGIT, 7);
                    return *found == ':' && is(found + 1, DIGIT) ? run_of(found + 1, DIGIT, 7) : found;
                }
        }
    }
    return starts(at, "line ") ? digits(at + 5, 1, 7) : http_status(at);
}

static int in_url(Place at, Place end)
{
    return at < end && !strchr(" \t\r\n\f\v<>\"'", *at ? *at : 'x');
}

/* SCHEME://..., without punctuation at its end */
static Place url(Place at, Place end)
{
    Place colon;
    if (!is(at, LETTER) || (colon = run_of(at + 1, IN_SCHEME, 15)) == at + 1 || !starts(colon, "://"))
        return NULL;
    Place last = NULL;
    for (Place one = colon + 3; in_url(one, end); one++)
        if (!one_of(one, ".,;:!?(){}[]"))
            last = one + 1;
    return last;
}

static Place label(Place at)
{
    int size = 0;
    while (size < 63 && (is(at, ALPHANUMERIC) || *at == '-'))
        at++, size++;
    return size ? at : NULL;
}

static Place email(Place at, Place end)
{
    (void)end;
    if (!is(at, ALPHANUMERIC))
        return NULL;
    Place found = run_of(at + 1, IN_LOCAL, 63), top = NULL;
    if (*found != '@' || !(found = label(found + 1)))
        return NULL;
    for (int labels = 0; labels <= 7 && found && *found == '.'; labels++) { /* the last of them that can end it */
        Place letters = run_of(found + 1, LETTER, 24);
        if (letters - found - 1 >= 2)
            top = letters;
        found = label(found + 1);
    }
    return top;
}

static Place uuid(Place at, Place end)
{
    static const int SIZES[] = {8, 4, 4, 4, 12};
    (void)end;
    for (int part = 0; part < 5; part++) {
        if (part && *at++ != '-')
            return NULL;
        Place found = run_of(at, HEX, SIZES[part]);
        if (found - at < SIZES[part])
            return NULL;
        at = found;
    }
    return at;
}

static Place any_of(Place at, const char *names)
{
    for (; *names; names += 3)
        if (!strncmp((const char *)at, names, 3))
            return at + 3;
    return NULL;
}

static Place month(Place at)
{
    return any_of(at, "JanFebMarAprMayJunJulAugSepOctNovDec");
}

static Place day(Place at)
{
    return any_of(at, "MonTueWedThuFriSatSun");
}

/* H:MM(:SS(.FRACTION)?)? */
static Place clock_time(Place at)
{
    Place hours = digits(at, 1, 2), minutes, seconds, fraction;
    if (!hours || *hours != ':' || !(minutes = digits(hours + 1, 2, 2)))
        return NULL;
    if (*minutes != ':' || !(seconds = digits(minutes + 1, 2, 2)))
        return minutes;
    return one_of(seconds, ".,:") && (fraction = digits(seconds + 1, 1, 9)) ? fraction : seconds;
}

/* ( ?ZONE)? */
static Place zone(Place at)
{
    Place sign = at + (*at == ' '), hours, minutes;
    if (*sign == 'Z')
        return sign + 1;
    if (starts(sign, "UTC") || starts(sign, "GMT"))
        return sign + 3;
    if (one_of(sign, "+-") && (hours = digits(sign + 1, 2, 2)) && (minutes = digits(hours + (*hours == ':'), 2, 2)))
        return minutes;
    return at;
}

/* YYYY-MM-DD with a clock, or with -HH.MM.SS, and a zone */
static Place iso(Place at)
{
    Place found = digits(at, 4, 4), clock;
    for (int part = 0; part < 2; part++)
        if (!found || !one_of(found, "-/.") || !(found = digits(found + 1, 2, 2)))
            return NULL;
    if (one_of(found, "T _-") && (clock = clock_time(found + 1)))
        found = clock;
    else if (*found == '-' && (clock = digits(found + 1, 2, 2)) && *clock == '.' && (clock = digits(clock + 1, 2, 2)) &&
             *clock == '.' && (clock = digits(clock + 1, 2, 2)))
        found = *clock == '.' && is(clock + 1, DIGIT) ? run_of(clock + 1, DIGIT, 9) : clock;
    return zone(found);
}

/* ,? CLOCK( YEAR)?ZONE */
static Place syslog_clock(Place at)
{
    at += *at == ',';
    Place found = *at == ' ' ? clock_time(at + 1) : NULL, year;
    if (!found)
        return NULL;
    if (*found == ' ' && (year = digits(found + 1, 4, 4)))
        found = year;
    return zone(found);
}

/* MONTH D( YEAR)?,? CLOCK( YEAR)?ZONE */
static Place syslog(Place at)
{
    Place found = month(at), year, clock;
    if (!found || *found != ' ')
        return NULL;
    found += found[1] == ' ' ? 2 : 1;
    if (!(found = digits(found, 1, 2)))
        return NULL;
    if (*found == ' ' && (year = digits(found + 1, 4, 4)) && (clock = syslog_clock(year)))
        return clock;
    return syslog_clock(found);
}

/* D MONTH YEAR CLOCK */
static Place apache(Place at)
{
    Place found = digits(at, 1, 2);
    if (!found || !one_of(found, " /-") || !(found = month(found + 1)) || !one_of(found, " /-") ||
        !(found = digits(found + 1, 4, 4)) || !one_of(found, ": ") || !(found = clock_time(found + 1)))
        return NULL;
    return zone(found);
}

/* M-D(-YEAR)? CLOCK */
static Place short_date(Place at)
{
    Place found = digits(at, 1, 2), year, clock;
    if (!found || !one_of(found, "-/.") || !(found = digits(found + 1, 1, 2)))
        return NULL;
    if (one_of(found, "-/.") && (year = digits(found + 1, 2, 4)) && *year == ' ' && (clock = clock_time(year + 1)))
        return clock;
    return *found == ' ' ? clock_time(found + 1) : NULL;
}

static Place time_stamp(Place at, Place end)
{
    Place found, other;
    (void)end;
    if (!is(at, ALPHANUMERIC))
        return NULL;
    if ((found = iso(at)))
        return found;
    if ((other = day(at)) && (other += *other == ',', *other == ' ') && (found = syslog(other + 1)))
        return found;
    if ((found = syslog(at)))
        return found;
    if ((other = day(at)) && starts(other, ", ") && (found = apache(other + 2)))
        return found;
    if ((found = apache(at)) || (found = short_date(at)))
        return found;
    if ((found = digits(at, 8, 8)) && *found == '-' && (found = clock_time(found + 1)))
        return found;
    if (!(found = digits(at, 1, 2)) || *found != ':' || !(found = digits(found + 1, 2, 2)) || *found != ':' ||
        !(found = digits(found + 1, 2, 2)))
        return NULL;
    return one_of(found, ".,") && is(found + 1, DIGIT) ? run_of(found + 1, DIGIT, 9) : found;
}

/* Up to `most` groups of hexadecimal digits with a colon after each; the number of them. */
static int groups(Place *at, int most)
{
    int found = 0;
    while (found < most) {
        Place colon = run_of(*at, HEX, 4);
        if (colon == *at || *colon != ':')
            break;
        *at = colon + 1;
        found++;
    }
    return found;
}

static Place ip_v6(Place at)
{
    Place found = at;
    if (groups(&found, 7) == 7 && is(found, HEX))
        return run_of(found, HEX, 4);
    found = at;
    int number = groups(&found, 6);
    if (number && *found == ':' && is(found + 1, HEX)) {
        for (int more = 0; more < 6 && *found == ':' && is(found + 1, HEX); more++)
            found = run_of(found + 1, HEX, 4);
        return found;
    }
    found = at;
    if (groups(&found, 7) && *found == ':')
        return found + 1;
    if (!starts(at, "::"))
        return NULL;
    Place before = found = at + 2;
    for (number = 0; number < 6; number++) {
        Place next = found;
        if (!groups(&next, 1))
            break;
        before = found;
        found = next;
    }
    if (is(found, HEX))
        return run_of(found, HEX, 4);
    return number ? run_of(before, HEX, 4) : NULL;
}

static Place ip(Place at, Place end)
{
    Place found = at;
    (void)end;
    for (int part = 0; part < 4 && found; part++) {
        if (part)
            found = *found == '.' ? found + 1 : NULL;
        found = found ? digits(found, 1, 3) : NULL;
    }
    if (found)
        return found;
    return is(at, HEX) || *at == ':' ? ip_v6(at) : NULL;
}

static Place path(Place at, Place end)
{
    int parts = 0;
    Place found = at;
    while (*found == '/' && is(found + 1, IN_PATH)) {
        found = run_of(found + 1, IN_PATH, INT32_MAX);
        parts++;
    }
    if (parts >= 2)
        return found + (*found == '/');
    if (!is(at, LETTER) || at[1] != ':' || at[2] != '\\')
        return NULL;
    for (found = at + 3; found < end && !strchr(" \t\r\n\f\v\"'<>|*?", *found ? *found : 'x');)
        found++;
    return found > at + 3 ? found : NULL;
}

/* The end of `least` to `most` of some characters. */
static Place among(Place at, const char *characters, int least, int most)
{
    int size = 0;
    while (size < most && one_of(at, characters))
        at++, size++;
    return size >= least ? at : NULL;
}

#define LOWER "abcdefghijklmnopqrstuvwxyz0123456789"

/* (HASH|TIME)-RANDOM */
static Place end_of_pod(Place at)
{
    static const char HASHED[] = "456789bcdf", RANDOM[] = "2456789bcdfghjklmnpqrstvwxz";
    Place found = among(at, HASHED, 6, 10), random;
    if (found && *found == '-' && (random = among(found + 1, RANDOM, 5, 5)))
        return random;
    found = digits(at, 8, 10);
    return found && *found == '-' ? among(found + 1, RANDOM, 5, 5) : NULL;
}

/* (PART-)*(HASH|TIME)-RANDOM(_NAMESPACE)? */
static Place pod(Place at, Place end)
{
    Place found = end_of_pod(at);
    (void)end;
    for (int part = 0; part < 12; part++) {
        Place hyphen = among(at, LOWER, 1, 63), later;
        if (!hyphen || *hyphen != '-')
            break;
        at = hyphen + 1;
        if ((later = end_of_pod(at)))
            found = later;
    }
    Place space = found && *found == '_' ? among(found + 1, LOWER "-", 1, 63) : NULL;
    return space ? space : found;
}

static Place hexadecimal(Place at, Place end)
{
    (void)end;
    if (*at == '0' && (at[1] == 'x' || at[1] == 'X') && is(at + 2, HEX))
        return run_of(at + 2, HEX, 64);
    Place found = at, before = at;
    int pairs = 0;
    while (pairs < 19 && is(found, HEX) && is(found + 1, HEX) && (found[2] == ':' || found[2] == '-')) {
        before = found;
        found += 3;
        pairs++;
    }
    if (pairs >= 5 && is(found, HEX) && is(found + 1, HEX))
        return found + 2;
    if (pairs >= 6)
        return before + 2;
    found = run_of(at, HEX, 128);
    return found - at >= 4 ? found : NULL;
}

static int has(Place at, Place end, int class, int except)
{
    for (; at < end; at++)
        if (is(at, class) && !is(at, except))
            return 1;
    return 0;
}

typedef Place (*Kind)(Place, Place);
static const Kind KINDS[] = {source, url, email, uuid, time_stamp, ip, path, pod, hexadecimal};
static const char *const PLACEHOLDERS[] = {"", "_url_", "_email_", "_uuid_", "_time_", "_ip_", "_path_", "_pod_", "_num_"};
enum { SOURCE, URL, EMAIL, UUID, TIME, IP, PATH, POD, HEXADECIMAL, NUMBERS };
#define NUMBER "_num_"

typedef struct {
    char *bytes;
    size_t size, room;
} Output;

static int add(Output *out, const void *bytes, size_t size)
{
    if (size > out->room - out->size) {
        size_t room = 2 * out->room + size;
        char *more = realloc(out->bytes, room);
        if (!more)
            return 0;
        out->bytes = more;
        out->room = room;
    }
    memcpy(out->bytes + out->size, bytes, size);
    out->size += size;
    return 1;
}

static unsigned short possible[256];
/* The kinds that a match may begin with each byte. */

static void fill_possible(void)
{
    for (int c = 0; c < 128; c++) {
        int digit = classes[c] & DIGIT, letter = classes[c] & LETTER, hex = classes[c] & HEX;
        int of = 0;
        if (classes[c] & (LETTER | UNDERSCORE | DOLLAR))
            of |= 1 << SOURCE;
        if (letter)
            of |= 1 << URL | 1 << PATH;
        if (letter || digit)
            of |= 1 << EMAIL;
        if (digit || (letter && c >= 'a'))
            of |= 1 << POD;
        if (hex)
            of |= 1 << UUID | 1 << HEXADECIMAL;
        if (digit || (c && strchr("ADFJMNOSTW", c)))
            of |= 1 << TIME;
        if (hex || c == ':')
            of |= 1 << IP;
        if (c == '/')
            of |= 1 << PATH;
        possible[c] = (unsigned short)of;
    }
}

/* The first kind that matches and is accepted; the end of its match. */
static Place first_kind(Place at, Place end, long kinds, int *kind)
{
    kinds &= possible[*at];
    for (*kind = 0; kinds >> *kind; ++*kind) {
        Place found = kinds >> *kind & 1 ? KINDS[*kind](at, end) : NULL;
        if (!found || is(found, WORD))
            continue;
        if (*kind == IP && !has(at, found, DIGIT, 0))
            continue;
        if (*kind == POD && !has(at, found, LETTER, 0))
            continue;
        if (*kind == HEXADECIMAL && at[1] != 'x' && at[1] != 'X' && !(has(at, found, DIGIT, 0) && has(at, found, HEX, DIGIT)))
            continue;
        return found;
    }
    return NULL;
}

/* A run of word characters with each of its numbers replaced, or a number with its decimal points; its end. */
static Place numbers_in(Place at, Place last, Output *out, int *written)
{
    Place one = at;
    if (run_of(at, DIGIT, INT32_MAX) >= last) {
        for (one = last; (*one == '.' || *one == ',') && is(one + 1, DIGIT);)
            one = run_of(one + 1, DIGIT, INT32_MAX);
        *written = add(out, NUMBER, strlen(NUMBER));
        return one;
    }
    *written = 1;
    while (one < last && *written) {
        Place next = one;
        while (next < last && !is(next, DIGIT))
            next++;
        *written = add(out, one, (size_t)(next - one));
        if (next < last) {
            while (next < last && is(next, DIGIT))
                next++;
            *written = *written && add(out, NUMBER, strlen(NUMBER));
        }
        one = next;
    }
    return last;
}

PyDoc_STRVAR(masked_doc, "masked(text, kinds)\n\nThe text with placeholders. kinds: one bit for each, the first kind is "
                         "the lowest. None for a text with lone surrogates.");

static PyObject *masked(PyObject *self, PyObject *args)
{
    PyObject *text;
    long kinds;
    Py_ssize_t size;
    (void)self;
    if (!PyArg_ParseTuple(args, "Ul", &text, &kinds))
        return NULL;
    const char *bytes = PyUnicode_AsUTF8AndSize(text, &size);
    if (!bytes) {
        if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError))
            return NULL;
        PyErr_Clear();
        Py_RETURN_NONE;
    }
    Place at = (Place)bytes, end = at + size;
    Output out = {malloc((size_t)size + 64), 0, (size_t)size + 64};
    int written = out.bytes != NULL;
    while (written && at < end) {
        int kind;
        Place next = is(at, RUN) || *at == '/' || *at == ':' ? first_kind(at, end, kinds, &kind) : NULL;
        if (next && *PLACEHOLDERS[kind]) {
            written = add(&out, PLACEHOLDERS[kind], strlen(PLACEHOLDERS[kind]));
        } else if (next || !is(at, RUN)) {
            Place version = next && kind == SOURCE && (kinds >> NUMBERS & 1) ? http_version(at) : NULL;
            if (version)
                written = add(&out, "HTTP/" NUMBER, strlen("HTTP/" NUMBER));
            next = next ? next : at + 1;
            while (next < end && !is(next, RUN) && *next != '/' && *next != ':')
                next++;
            at = version ? version : at;
            written = written && add(&out, at, (size_t)(next - at));
        } else {
            next = run_of(at, RUN, INT32_MAX);
            Place number = run_of(at, DOLLAR, INT32_MAX); /* an amount, or else a name that stays */
            int stays = !(kinds >> NUMBERS & 1) || (number > at && (number == next || run_of(number, DIGIT, INT32_MAX) < next));
            written = add(&out, at, (size_t)((stays ? next : number) - at));
            if (written && !stays)
                next = numbers_in(number, next, &out, &written);
        }
        at = next;
    }
    PyObject *result = written ? PyUnicode_FromStringAndSize(out.bytes, (Py_ssize_t)out.size) : PyErr_NoMemory();
    free(out.bytes);
    return result;
}

static PyMethodDef methods[] = {
    {"masked", masked, METH_VARARGS, masked_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_masks", .m_doc = "Masks of texts.", .m_methods = methods};

PyMODINIT_FUNC PyInit__masks(void)
{
    fill_classes();
    fill_possible();
    return PyModule_Create(&module);
}
