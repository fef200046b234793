/* What is a mail's own: the rules of mail.py in C, step by step, with the phrases of mail_phrases.py. What its expressions
 * say is done by hand: each function that stands for one shows it. Lines are folded as there: in lower case, without
 * blanks at the end. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "_text.h"

enum { OWN_WORDS = 5, SIGNATURE_LINES = 30, LIST_FOOTER_LINES = 12, LIST_FOOTER_BEGINNING = 6, HEADER_LINES = 20, MESSAGE_LINES = 500, DIGEST_RULE = 70, PART_RULE = 30, ATTRIBUTION_LINES = 4, ATTRIBUTION_CHARACTERS = 300, LEVELS = 8 };
enum { MOST_CHARACTERS = 1 << 20, MOST_LINES = 1 << 16 };

/* ---- Phrases ---- */

typedef struct {
    const char *bytes;
    Py_ssize_t size;
} Phrase;

/* Phrases, sorted by their bytes. */
typedef struct {
    Phrase *all;
    int count;
    int from[257]; /* the first phrase that begins with each byte */
} Phrases;

/* In the order of mail_kernel.py. */
enum {
    VERBS,
    OPENERS,
    DATE_OPENERS,
    VERBS_BETWEEN,
    QUOTING,
    PASSED_ON,
    VERBS_BEFORE_DATES,
    ORIGINALS,
    FORWARDS,
    FORWARDED_BY,
    FORWARDS_WITHOUT_RULE,
    SENDERS,
    SUBJECTS,
    DATES,
    OTHER_HEADERS,
    FORWARD_SUBJECTS,
    MAILING_LIST,
    REPLY_ABOVE,
    LISTS
};

/* The line of a program. */
typedef struct {
    Phrase begins, ends;
    int most, filled;
} Footer;

static Phrases phrases[LISTS];
static Footer *footers;
static int footers_from[257]; /* the first footer that begins with each byte */
static Table table;
static const uint32_t *lower; /* of each code point below CASED */
static Py_ssize_t cased;
static PyObject *kept_lists[2]; /* the bytes of phrases belong to them */

/* A part of a text. */
typedef struct {
    Place at, end;
} Part;

static Py_ssize_t size_of(Part part)
{
    return part.end - part.at;
}

static int starts(Part part, Phrase phrase)
{
    return size_of(part) >= phrase.size && !memcmp(part.at, phrase.bytes, (size_t)phrase.size);
}

static int ends(Part part, Phrase phrase)
{
    return size_of(part) >= phrase.size && !memcmp(part.end - phrase.size, phrase.bytes, (size_t)phrase.size);
}

static int equals(Part part, Phrase phrase)
{
    return size_of(part) == phrase.size && starts(part, phrase);
}

#define LITERAL(text) ((Phrase){text, sizeof(text) - 1})

/* Go through the phrases of a list that begin with the first byte of a part. */
#define EACH_BEGINNING(phrase, list, part)                                                                             \
    for (const Phrase *phrase = (list)->all + ((part).at < (part).end ? (list)->from[*(part).at] : 0),                   \
                      *after_##phrase = (list)->all + ((part).at < (part).end ? (list)->from[*(part).at + 1] : 0);       \
         phrase < after_##phrase; phrase++)
#define EACH(phrase, list) for (const Phrase *phrase = (list)->all; phrase < (list)->all + (list)->count; phrase++)

/* The first occurrence of a phrase with a blank before and after it, where this blank may begin; NULL for none. */
static Place spaced(Part part, Phrase phrase)
{
    for (Place at = part.at; part.end - at >= phrase.size + 2; at++) {
        at = memchr(at, ' ', (size_t)(part.end - at));
        if (!at || part.end - at < phrase.size + 2)
            return NULL;
        if (!memcmp(at + 1, phrase.bytes, (size_t)phrase.size) && at[phrase.size + 1] == ' ')
            return at;
    }
    return NULL;
}

static int has(Part part, Phrase phrase)
{
    for (Place at = part.at; part.end - at >= phrase.size; at++) {
        at = memchr(at, *phrase.bytes, (size_t)(part.end - at));
        if (!at || part.end - at < phrase.size)
            return 0;
        if (!memcmp(at, phrase.bytes, (size_t)phrase.size))
            return 1;
    }
    return 0;
}

static Py_ssize_t characters(Part part)
{
    Py_ssize_t found = 0;
    for (Place at = part.at; at < part.end; at++)
        found += (*at & 0xC0) != 0x80;
    return found;
}

/* Whether a part has from 1 to `most` characters. */
static int is_short(Part part, int most)
{
    return size_of(part) > 0 && size_of(part) <= 4 * (Py_ssize_t)most && characters(part) <= most;
}

static int is_digit(uint8_t byte)
{
    return (uint8_t)(byte - '0') < 10;
}

/* [:：] at the end of a part: its size, or 0 */
static int colon_at_end(Part part)
{
    if (part.end > part.at && part.end[-1] == ':')
        return 1;
    return ends(part, LITERAL("\xEF\xBC\x9A")) ? 3 : 0;
}

static int colon_at(Part part)
{
    if (part.at < part.end && *part.at == ':')
        return 1;
    return starts(part, LITERAL("\xEF\xBC\x9A")) ? 3 : 0;
}

static int space_at(Part part)
{
    if (part.at == part.end)
        return 0;
    return *part.at < 0x80 ? is_space(*part.at) : unicode_space(part.at);
}

static int space_at_end(Part part)
{
    if (part.at == part.end)
        return 0;
    if (part.end[-1] < 0x80)
        return is_space(part.end[-1]);
    for (int size = 2; size <= 3 && size <= size_of(part); size++)
        if ((part.end[-size] & 0xC0) != 0x80)
            return unicode_space(part.end - size) == size ? size : 0;
    return 0;
}

/* ---- Lines ---- */

enum Kind { OWN, QUOTED, ATTRIBUTION, SEPARATOR, FORWARDED, PART, HEADER, ORIGINAL, SIGNATURE, FOOTER };

typedef struct {
    Part text;
    Part folded;
    Place stripped; /* the first place of the folded line that is no blank */
    enum Kind kind;
} Line;

typedef struct {
    Line *lines;
    int count;
} Lines;

enum { FAILED = -1, NONE, MADE };

typedef struct {
    uint8_t *folded;
    uint8_t *made;
    Py_ssize_t made_size;
    int uncertain, out_of_memory;
} Mail;

static Part stripped(const Line *line)
{
    return (Part){line->stripped, line->folded.end};
}

static int is_filled(const Line *line)
{
    return size_of(line->folded) > 0;
}

static uint8_t *written(uint8_t *to, uint32_t point)
{
    if (point < 0x80) {
        *to++ = (uint8_t)point;
    } else if (point < 0x800) {
        *to++ = (uint8_t)(0xC0 | point >> 6);
        *to++ = (uint8_t)(0x80 | (point & 0x3F));
    } else if (point < 0x10000) {
        *to++ = (uint8_t)(0xE0 | point >> 12);
        *to++ = (uint8_t)(0x80 | (point >> 6 & 0x3F));
        *to++ = (uint8_t)(0x80 | (point & 0x3F));
    } else {
        *to++ = (uint8_t)(0xF0 | point >> 18);
        *to++ = (uint8_t)(0x80 | (point >> 12 & 0x3F));
        *to++ = (uint8_t)(0x80 | (point >> 6 & 0x3F));
        *to++ = (uint8_t)(0x80 | (point & 0x3F));
    }
    return to;
}

static int is_invisible(uint32_t point)
{
    return point == 0x200B || point == 0x200E || point == 0x200F || (point >= 0x202A && point <= 0x202E) ||
           (point >= 0x2066 && point <= 0x2069) || point == 0xFEFF;
}

/* Write a line in lower case, with blanks for some kinds of them, and without invisible characters; where it ends. */
static uint8_t *fold(Part part, uint8_t *restrict to)
{
    size_t size = (size_t)size_of(part);
    Place from = part.at;
    uint8_t all = 0;
    for (size_t k = 0; k < size; k++) {
        uint8_t byte = from[k];
        all |= byte;
        to[k] = byte == '\t' ? ' ' : (uint8_t)(byte + ((uint8_t)(byte - 'A') < 26 ? 32 : 0));
    }
    if (all < 0x80)
        return to + size;
    for (Place at = part.at; at < part.end;) {
        uint32_t point = code_point(&at);
        if (point == '\t' || point == 0xA0 || point == 0x2007 || point == 0x202F)
            *to++ = ' ';
        else if (point == 0x130) /* the one whose lower case has two characters */
            to = written(written(to, 'i'), DOT_ABOVE);
        else if (!is_invisible(point))
            to = written(to, point < cased ? lower[point] : point);
    }
    return to;
}

static void strip(Line *line)
{
    int size;
    line->stripped = line->folded.at;
    while ((size = space_at(stripped(line))))
        line->stripped += size;
}

/* The lines of a mail, folded. */
static int make_lines(Mail *mail, Part text, Lines *made)
{
    Py_ssize_t count = 1;
    int has_returns = memchr(text.at, '\r', (size_t)size_of(text)) != NULL;
    for (Place at = text.at; at < text.end; at++)
        count += *at == '\n' || *at == '\r';
    made->lines = malloc((size_t)count * sizeof(Line));
    uint8_t *to = mail->folded = malloc((size_t)size_of(text) / 2 * 3 + 3); /* no character grows by more */
    mail->made = malloc((size_t)size_of(text) + 1);
    if (!made->lines || !mail->folded || !mail->made) {
        mail->out_of_memory = 1;
        return 0;
    }
    made->count = 0;
    for (Place at = text.at;;) {
        Place end = memchr(at, '\n', (size_t)(text.end - at));
        end = end ? end : text.end;
        Place found = has_returns ? memchr(at, '\r', (size_t)(end - at)) : NULL;
        end = found ? found : end;
        Line *line = &made->lines[made->count++];
        line->text = (Part){at, end};
        line->kind = OWN;
        line->folded.at = to;
        to = fold(line->text, to);
        line->folded.end = to;
        for (int size; (size = space_at_end(line->folded));)
            line->folded.end -= size;
        strip(line);
        if (end == text.end)
            return 1;
        at = end + 1 + (*end == '\r' && end + 1 < text.end && end[1] == '\n');
    }
}

/* [>＞|] at a place: its size, or 0 */
static int quote_mark(Part part)
{
    if (part.at < part.end && (*part.at == '>' || *part.at == '|'))
        return 1;
    return starts(part, LITERAL("\xEF\xBC\x9E")) ? 3 : 0;
}

/* [ \xa0]{0,3}[>＞|] ? : remove it from the beginning of a quoted line */
static void remove_mark(Line *line)
{
    Part text = line->text;
    Py_ssize_t folded = 0;
    for (int blanks = 0; blanks < 3; blanks++) {
        int size = text.at < text.end && *text.at == ' ' ? 1 : starts(text, LITERAL("\xC2\xA0")) ? 2 : 0;
        text.at += size;
        folded += size > 0;
    }
    int size = quote_mark(text);
    if (!size)
        return;
    text.at += size;
    folded += size;
    if (text.at < text.end && *text.at == ' ') {
        text.at++;
        folded++;
    }
    line->text.at = text.at;
    line->folded.at += folded < size_of(line->folded) ? folded : size_of(line->folded);
    strip(line);
}

/* ---- Quotes ---- */

static int is_quoted(const Line *line)
{
    Part rest = stripped(line);
    if (!quote_mark(rest))
        return 0;
    for (Place at = line->folded.at; at < rest.at; at++) /* no other blanks, and at most three */
        if (*at != ' ')
            return 0;
    if (rest.at - line->folded.at > 3)
        return 0;
    if (*rest.at != '|')
        return !starts(line->text, LITERAL(">From "));
    Part next = {rest.at + 1 + (rest.at + 1 < rest.end && rest.at[1] == ' '), rest.end};
    if (next.at < next.end && (*next.at == '>' || *next.at == '|')) /* \| ?[>|] */
        return 1;
    if (next.at == rest.at + 1)
        return 0;
    return !memchr(next.at, '|', (size_t)size_of(next)); /* (?:\| )+[^|]*$ : a second bar is matched above */
}

/* ---- Attributions ---- */

/* Where the verb at the end of a part begins; NULL for none. No verb ends with another one. */
static Place verb_at_end(Part part)
{
    EACH(verb, &phrases[VERBS])
        if (ends(part, *verb))
            return part.end - verb->size;
    return NULL;
}

static Part without_blank(Part part)
{
    part.end -= part.end > part.at && part.end[-1] == ' ';
    return part;
}

/* VERB ? at the end of a part: where it begins; NULL for none */
static Place closing_verb(Part part)
{
    return verb_at_end(without_blank(part));
}

/* VERB ?(?:\([^()]*\))? ? */
static Place closing_verb_and_brackets(Part part)
{
    part = without_blank(part);
    Place verb = closing_verb(part);
    if (verb || part.at == part.end || part.end[-1] != ')')
        return verb;
    Place open = part.end - 1;
    while (open > part.at && open[-1] != '(' && open[-1] != ')')
        open--;
    if (open == part.at || open[-1] != '(')
        return NULL;
    return closing_verb((Part){part.at, open - 1});
}

/* The end of the first [0-9]{4}, or [0-9]{1,2}MARK[0-9]{2} with one of two marks; NULL for none. */
static Place date_end(Part part, int years, uint8_t mark, uint8_t other)
{
    int digits = 0;
    for (Place at = part.at; at < part.end; at++) {
        if (is_digit(*at)) {
            if (++digits == 4 && years)
                return at + 1;
            continue;
        }
        if (digits && (*at == mark || *at == other || *at == ':') && part.end - at > 2 && is_digit(at[1]) && is_digit(at[2]))
            return at + 3;
        digits = 0;
    }
    return NULL;
}

/* The end of the first [0-9]{4}; NULL for none. */
static Place year_end(Part part)
{
    for (int digits = 0; part.at < part.end; part.at++)
        if ((digits = is_digit(*part.at) ? digits + 1 : 0) == 4)
            return part.at + 1;
    return NULL;
}

static Place first_digit(Part part)
{
    while (part.at < part.end && !is_digit(*part.at))
        part.at++;
    return part.at < part.end ? part.at : NULL;
}

/* Where the shortest of some phrases with a blank, or `other`, after it ends at the beginning of a part; NULL for none. */
static Place opened(Part part, int list, char other)
{
    Place found = NULL;
    EACH_BEGINNING(phrase, &phrases[list], part) {
        Place end = part.at + phrase->size;
        if (starts(part, *phrase) && end < part.end && (*end == ' ' || *end == other) && (!found || end + 1 < found))
            found = end + 1;
    }
    return found;
}

/* (?:OPENER|---+ on)[ ,] at the beginning of a part: its end; NULL for none */
static Place opener_end(Part part)
{
    Place end = opened(part, OPENERS, ',');
    if (!end && starts(part, LITERAL("---"))) {
        while (part.at < part.end && *part.at == '-')
            part.at++;
        if (starts(part, LITERAL(" on ")) || starts(part, LITERAL(" on,")))
            end = part.at + 4;
    }
    return end;
}

/* OPENER.*VERB ?(?:\([^()]*\))? ? */
static int is_opened_and_closed(Part part)
{
    Place end = opener_end(part);
    Place verb = end ? closing_verb_and_brackets(part) : NULL;
    return verb && verb >= end;
}

/* (?:am|op|den|dne|\S+ den) .*[0-9].* (?:schrieb|schreef|skrev|napsal) .* */
static int has_verb_between(Part part)
{
    Place end = opened(part, DATE_OPENERS, ' ');
    if (!end) {
        Part rest = part;
        while (rest.at < rest.end && !space_at(rest))
            rest.at++;
        if (rest.at == part.at || !starts(rest, LITERAL(" den ")))
            return 0;
        end = rest.at + 5;
    }
    Place digit = first_digit((Part){end, part.end});
    if (digit)
        EACH(verb, &phrases[VERBS_BETWEEN])
            if (spaced((Part){digit + 1, part.end}, *verb))
                return 1;
    return 0;
}

/* op .*[0-9].* heeft .* geschreven ? */
static int is_dutch(Part part)
{
    if (!starts(part, LITERAL("op ")))
        return 0;
    Place digit = first_digit((Part){part.at + 3, part.end});
    Place verb = digit ? spaced((Part){digit + 1, part.end}, LITERAL("heeft")) : NULL;
    return verb && ends(without_blank((Part){verb + 7, part.end}), LITERAL(" geschreven"));
}

/* QUOTING .{1,120} */
static int is_quoting(Part part)
{
    EACH_BEGINNING(phrase, &phrases[QUOTING], part) {
        Place end = part.at + phrase->size;
        if (starts(part, *phrase) && end < part.end && *end == ' ' && is_short((Part){end + 1, part.end}, 120))
            return 1;
    }
    return 0;
}

/* .* (?:schrieb am|...) .*[0-9].* */
static int has_verb_before_date(Part part)
{
    EACH(verb, &phrases[VERBS_BEFORE_DATES]) {
        Place found = spaced(part, *verb);
        if (found && first_digit((Part){found + verb->size + 2, part.end}))
            return 1;
    }
    return 0;
}

/* .*(?:[0-9]{4}|TIME).*VERB ? */
static int has_date_before_verb(Part part)
{
    Place verb = closing_verb(part);
    return verb && date_end((Part){part.at, verb}, 1, '.', '.');
}

/* .*@.*VERB ? */
static int has_address_before_verb(Part part)
{
    Place verb = closing_verb(part);
    return verb && memchr(part.at, '@', (size_t)(verb - part.at));
}

/* [^<>@ ]* at the end of a part: where it begins */
static Place address_part(Part part)
{
    while (part.end > part.at && !strchr("<>@ ", part.end[-1] ? part.end[-1] : 'x'))
        part.end--;
    return part.end;
}

/* [<(][^<>@ ]+@[^<>@ ]+[>)] at the end of a part: where it begins; NULL for none */
static Place last_address(Part part)
{
    if (part.at == part.end || (part.end[-1] != '>' && part.end[-1] != ')'))
        return NULL;
    Place domain_end = part.end - 1, at = address_part((Part){part.at, domain_end});
    if (at == domain_end || at == part.at || at[-1] != '@')
        return NULL;
    Place name_end = at - 1, name = address_part((Part){part.at, name_end}), open = NULL;
    for (Place one = name; one + 1 < name_end; one++) /* the last bracket leaves most before it */
        if (*one == '(')
            open = one;
    return !open && name < name_end && name > part.at && name[-1] == '<' ? name - 1 : open;
}

/* .*[0-9]{4}.*TIME.*[<(][^<>@ ]+@[^<>@ ]+[>)] ? */
static int ends_with_address(Part part)
{
    Place open = last_address(without_blank(part));
    Place year = open ? year_end((Part){part.at, open}) : NULL;
    return year && date_end((Part){year, open}, 0, '.', '.');
}

/* .*ADDRESS VERB ? */
static int has_address_and_verb(Part part)
{
    Place verb = closing_verb(part);
    return verb && verb > part.at && verb[-1] == ' ' && last_address((Part){part.at, verb - 1});
}

/* [^<>@ ]+ at the beginning of a part: its end, NULL for none */
static Place address_end(Part part)
{
    Place at = part.at;
    while (at < part.end && *at != '<' && *at != '>' && *at != '@' && *at != ' ')
        at++;
    return at > part.at ? at : NULL;
}

/* ADDRESS = [<(][^<>@ ]+@[^<>@ ]+[>)] at the beginning of a part: its first end, NULL for none */
static Place bracketed_address(Part part)
{
    if (part.at == part.end || (*part.at != '<' && *part.at != '('))
        return NULL;
    Place name_end = address_end((Part){part.at + 1, part.end});
    if (!name_end || name_end == part.end || *name_end != '@')
        return NULL;
    Place domain_end = address_end((Part){name_end + 1, part.end});
    if (!domain_end)
        return NULL;
    for (Place at = name_end + 2; at < domain_end; at++)
        if (*at == ')')
            return at + 1;
    return domain_end < part.end && *domain_end == '>' ? domain_end + 1 : NULL;
}

/* .*DATE.*ADDRESS.* or .*ADDRESS.*DATE.*, where DATE is (?:[0-9]{4}|TIME) */
static int has_date_and_address(Part part)
{
    Place last = NULL, first_end = NULL;
    for (Place at = part.at; at < part.end; at++) {
        Place end = bracketed_address((Part){at, part.end});
        if (end) {
            last = at;
            first_end = !first_end || end < first_end ? end : first_end;
        }
    }
    return last && (date_end((Part){part.at, last}, 1, '.', '.') || date_end((Part){first_end, part.end}, 1, '.', '.'));
}

/* [0-9]{4}|[0-9]{1,2}[:.h][0-9]{2}|@ */
static int is_dated(Part part)
{
    return memchr(part.at, '@', (size_t)size_of(part)) || date_end(part, 1, '.', 'h');
}

/* (?:[!?]|[0-9a-z:]{2}\.)$ */
static int ends_sentence(Part part)
{
    if (part.end[-1] != '.' || size_of(part) < 3)
        return part.end[-1] == '!' || part.end[-1] == '?';
    for (Place at = part.end - 3; at < part.end - 1; at++)
        if (!is_digit(*at) && *at != ':' && (*at < 'a' || *at > 'z'))
            return 0;
    return 1;
}

/* Whether a line directly below the sender's own text can begin an attribution. */
static int begins_below_text(const Line *line, Part all)
{
    Part text = line->text, words = {all.at, all.end - colon_at_end(all)};
    if (has_date_and_address(words) || has_address_and_verb(words))
        return 1;
    for (int size; (size = space_at(text));)
        text.at += size;
    if (text.at < text.end && *text.at >= 'a' && *text.at <= 'z')
        return 0;
    return opener_end(all) || (year_end(all) && date_end(all, 0, ':', ':'));
}

typedef struct {
    const Line *lines;
    int first[ATTRIBUTION_LINES];
    Place begins[ATTRIBUTION_LINES];
    int count;
    Place end;
    uint8_t bytes[4 * ATTRIBUTION_CHARACTERS];
} Joined;

/* The first lines of what may be an attribution that ends with a line, and its lines in one: the shortest first. */
static void join(Joined *joined, const Line *lines, int last, int before_quote)
{
    uint8_t *end = joined->bytes + sizeof joined->bytes, *text = end;
    Py_ssize_t size = 0;
    joined->count = 0;
    joined->end = end;
    for (int first = last; first >= 0 && first > last - ATTRIBUTION_LINES; first--) {
        const Line *line = &lines[first];
        if (line->kind != OWN || !is_filled(line))
            return;
        Part part = stripped(line);
        if (first < last && ends_sentence(part))
            return; /* of the sender's own text, which stands directly above */
        if (size_of(part) + (text < end) > text - joined->bytes)
            return; /* more bytes than that many characters have */
        if (text < end) {
            *--text = ' ';
            size++;
        }
        text -= size_of(part);
        memcpy(text, part.at, (size_t)size_of(part));
        size += characters(part);
        if (size > ATTRIBUTION_CHARACTERS)
            return;
        if (first < last && !is_dated(part))
            continue; /* what an attribution begins with is its date or an address */
        const Line *before = first ? line - 1 : NULL;
        int starts_here = !before || !is_filled(before) || before->kind != OWN;
        Part all = {text, end};
        if (before_quote || (is_dated(all) && (starts_here || begins_below_text(line, all)))) {
            joined->first[joined->count] = first;
            joined->begins[joined->count++] = text;
        }
    }
}

/* The first line of an attribution that ends with a line; -1 if that is none. */
static int attribution_start(const Line *lines, int last, int before_quote)
{
    Joined joined;
    join(&joined, lines, last, before_quote);
    if (!joined.count)
        return -1;
    Place end = joined.end - colon_at_end((Part){joined.begins[0], joined.end});
    for (int k = 0; k < joined.count; k++) {
        Part part = {joined.begins[k], end};
        if (is_opened_and_closed(part) || has_verb_between(part) || is_dutch(part) || opened(part, PASSED_ON, ' ') || is_quoting(part))
            return joined.first[k];
    }
    for (int k = 0; k < joined.count && last - joined.first[k] < 2; k++) {
        Part part = {joined.begins[k], end};
        if (has_verb_before_date(part) || has_date_before_verb(part))
            return joined.first[k];
    }
    for (int k = 0; k < joined.count && last - joined.first[k] < 2; k++) {
        Part part = {joined.begins[k], end};
        if (has_address_before_verb(part) || ends_with_address(part))
            return joined.first[k];
    }
    for (int k = 0; before_quote && k < joined.count && last - joined.first[k] < 2; k++)
        if (has_date_and_address((Part){joined.begins[k], end}))
            return joined.first[k];
    return -1;
}

/* .{1,120}VERB ?(?:\([^()]*\))? ?[:：] */
static int is_name_and_verb(Part part)
{
    part.end -= colon_at_end(part);
    Place verb = closing_verb_and_brackets(part);
    return verb && is_short((Part){part.at, verb}, 120);
}

static int next_filled(Lines all, int number)
{
    while (number < all.count && !is_filled(&all.lines[number]))
        number++;
    return number;
}

static void mark_attributions(Lines all)
{
    for (int number = 0; number < all.count; number++) {
        Line *line = &all.lines[number];
        if (line->kind != OWN || !colon_at_end(line->folded))
            continue;
        int following = next_filled(all, number + 1);
        int quoted = following < all.count && all.lines[following].kind == QUOTED && following <= number + 3;
        int first = attribution_start(all.lines, number, quoted);
        if (first < 0 && quoted && is_name_and_verb(stripped(line)))
            first = number;
        for (int one = first; first >= 0 && one <= number; one++)
            all.lines[one].kind = ATTRIBUTION;
    }
}

/* ---- Separators ---- */

/* [-_*=~#+‐-―─] at a place: its size, or 0 */
static int rule_mark(Part part)
{
    if (part.at == part.end)
        return 0;
    if (*part.at < 0x80)
        return *part.at && strchr("-_*=~#+", *part.at) ? 1 : 0;
    if (*part.at != 0xE2 || size_of(part) < 3)
        return 0;
    return (part.at[1] == 0x80 && part.at[2] >= 0x90 && part.at[2] <= 0x95) || (part.at[1] == 0x94 && part.at[2] == 0x80) ? 3 : 0;
}

static Place after_blank(Part part)
{
    return part.at + (part.at < part.end && *part.at == ' ');
}

/* (?:[-_*=~#+‐-―─] ?){2,} : its end; NULL for none */
static Place rule_end(Part part)
{
    int marks = 0, size;
    while ((size = rule_mark(part))) {
        part.at += size;
        part.at = after_blank(part);
        marks++;
    }
    return marks >= 2 ? part.at : NULL;
}

/* [:：]? at the end of a line */
static int ends_there(Part part)
{
    part.at += colon_at(part);
    return part.at == part.end;
}

/* PHRASE ?(?:RULE)?[:：]? */
static int is_phrase_of(Part part, int list)
{
    EACH_BEGINNING(phrase, &phrases[list], part) {
        Part rest = {part.at + phrase->size, part.end};
        if (!starts(part, *phrase))
            continue;
        rest.at = after_blank(rest);
        Place end = rule_end(rest);
        rest.at = end ? end : rest.at;
        if (ends_there(rest))
            return 1;
    }
    return 0;
}

static enum Kind separator_kind(Part part)
{
    if (!rule_mark(part)) {
        EACH_BEGINNING(phrase, &phrases[FORWARDS_WITHOUT_RULE], part) {
            Part rest = {part.at + phrase->size, part.end};
            if (!starts(part, *phrase))
                continue;
            rest.at = after_blank(rest);
            if (ends_there(rest))
                return FORWARDED;
        }
        return OWN;
    }
    Place end = rule_end(part);
    if (!end)
        return OWN;
    part.at = end;
    part.at = after_blank(part);
    if (is_phrase_of(part, FORWARDS) || starts(part, *phrases[FORWARDED_BY].all))
        return FORWARDED;
    return is_phrase_of(part, ORIGINALS) ? SEPARATOR : OWN;
}

static void mark_separators(Lines all)
{
    int wrapped = 0;
    for (Line *line = all.lines; line < all.lines + all.count; line++) {
        int before = wrapped;
        Part part = stripped(line);
        wrapped = 0;
        if (line->kind != OWN || !is_filled(line))
            continue;
        if (before && ends(part, LITERAL("--"))) {
            line->kind = FORWARDED;
            continue;
        }
        line->kind = separator_kind(part);
        wrapped = line->kind == FORWARDED && has(part, *phrases[FORWARDED_BY].all) && part.end[-1] != '-';
    }
}

/* The last of some lines of one kind. */
static int last_alike(Lines all, int number)
{
    while (number + 1 < all.count && all.lines[number + 1].kind == all.lines[number].kind)
        number++;
    return number;
}

/* Quotes that begin with a line such as "Begin forwarded message", and have no attribution, are passed on. */
static void unquote_forwarded(Lines all)
{
    for (int number = 0, last; number < all.count; number = last + 1) {
        last = last_alike(all, number);
        if (all.lines[number].kind != QUOTED)
            continue;
        int before = number, first = number;
        while (before && !is_filled(&all.lines[before - 1]))
            before--;
        Line line = all.lines[first];
        for (remove_mark(&line); !is_filled(&line) && first < last; remove_mark(&line))
            line = all.lines[++first];
        if (separator_kind(stripped(&line)) != FORWARDED || (before && colon_at_end(all.lines[before - 1].folded)))
            continue;
        for (int one = number; one <= last; one++) {
            remove_mark(&all.lines[one]);
            all.lines[one].kind = is_quoted(&all.lines[one]) ? QUOTED : OWN;
        }
    }
}

/* ---- Headers ---- */

enum { SENDER = 1, SUBJECT = 2, DATED = 4, ADDRESS = 16 };

static int is_decoration(uint8_t byte)
{
    return byte == '*' || byte == '_' || byte == ' ';
}

/* [*_ ]{0,3}NAME[*_ ]{0,3}[:：].* : what kind of header; 0 for none */
static int header_kind(Part part)
{
    static const int LISTS_OF_NAMES[] = {SENDERS, SUBJECTS, DATES, OTHER_HEADERS};
    for (int size = 0; size < 3 && part.at < part.end && is_decoration(*part.at); size++)
        part.at++;
    for (int k = 0; k < 4; k++)
        EACH_BEGINNING(name, &phrases[LISTS_OF_NAMES[k]], part) {
            Part rest = {part.at + name->size, part.end};
            if (!starts(part, *name))
                continue;
            for (int size = 0; size < 3 && rest.at < rest.end && is_decoration(*rest.at); size++)
                rest.at++;
            if (colon_at(rest))
                return 1 << k;
        }
    return 0;
}

/* (?:\[[^\[\]]*\] ?)?(?:fw|fwd|...) ?[:：] */
static int is_forward_subject(Part part)
{
    if (part.at < part.end && *part.at == '[') {
        Place at = part.at + 1;
        while (at < part.end && *at != '[' && *at != ']')
            at++;
        if (at == part.end || *at == '[')
            return 0;
        part.at = at + 1;
        part.at = after_blank(part);
    }
    EACH_BEGINNING(phrase, &phrases[FORWARD_SUBJECTS], part) {
        Part rest = {part.at + phrase->size, part.end};
        if (!starts(part, *phrase))
            continue;
        rest.at = after_blank(rest);
        if (colon_at(rest))
            return 1;
    }
    return 0;
}

/* [*_ ]{0,3}(?:subject|...)[*_ ]{0,3}[:：][*_ ]*FORWARD_SUBJECT */
static int is_forward_header(Part part)
{
    for (int size = 0; size < 3 && part.at < part.end && is_decoration(*part.at); size++)
        part.at++;
    EACH_BEGINNING(name, &phrases[SUBJECTS], part) {
        Part rest = {part.at + name->size, part.end};
        if (!starts(part, *name))
            continue;
        for (int size = 0; size < 3 && rest.at < rest.end && is_decoration(*rest.at); size++)
            rest.at++;
        int colon = colon_at(rest);
        for (rest.at += colon; colon && rest.at < rest.end && is_decoration(*rest.at);)
            rest.at++;
        if (colon && is_forward_subject(rest))
            return 1;
    }
    return 0;
}

static int has_address(Part part)
{
    return memchr(part.at, '@', (size_t)size_of(part)) != NULL;
}

/* [0-9]{least,most} at the beginning of a part: remove them; whether they are there */
static int took_digits(Part *part, int least, int most)
{
    int count = 0;
    for (; part->at < part->end && is_digit(*part->at) && count < most; count++)
        part->at++;
    return count >= least;
}

static int took(Part *part, const char *marks)
{
    if (part->at == part->end || !*part->at || !strchr(marks, *part->at))
        return 0;
    part->at++;
    return 1;
}

/* [0-9]{1,4}[-/.][0-9]{1,2}[-/.][0-9]{1,4} [0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?(?: ?[ap]m)?(?: [a-z]{3,4})? */
static int is_date_with_time(Part part)
{
    if (!took_digits(&part, 1, 4) || !took(&part, "-/.") || !took_digits(&part, 1, 2) || !took(&part, "-/.") ||
        !took_digits(&part, 1, 4) || !took(&part, " ") || !took_digits(&part, 1, 2) || !took(&part, ":") || !took_digits(&part, 2, 2))
        return 0;
    if (took(&part, ":") && !took_digits(&part, 2, 2))
        return 0;
    Part half = {after_blank(part), part.end};
    if (took(&half, "ap") && took(&half, "m") && (half.at == half.end || *half.at == ' '))
        part = half;
    if (took(&part, " ")) {
        Place zone = part.at;
        while (part.at < part.end && *part.at >= 'a' && *part.at <= 'z')
            part.at++;
        if (part.at - zone < 3 || part.at - zone > 4)
            return 0;
    }
    return part.at == part.end;
}

/* The first line with the sender and the date above headers, as Lotus Notes writes them; -1 if none is there. */
static int sender_above(Lines all, int number)
{
    int date = number - 1;
    if (date >= 0 && !is_filled(&all.lines[date]))
        date--;
    if (date >= 0 && starts(stripped(&all.lines[date]), LITERAL("please respond to ")))
        date--;
    if (date < 0 || all.lines[date].kind != OWN)
        return -1;
    Part part = stripped(&all.lines[date]);
    if (!is_date_with_time(part)) { /* .{1,120} on DATE */
        for (Place at = part.at; (at = spaced((Part){at, part.end}, LITERAL("on"))); at++)
            if (is_short((Part){part.at, at}, 120) && is_date_with_time((Part){at + 4, part.end}))
                return date;
        return -1;
    }
    int name = date - 1;
    if (name >= 0 && starts(stripped(&all.lines[name]), LITERAL("sent by:")))
        name--;
    return name >= 0 && all.lines[name].kind == OWN && is_filled(&all.lines[name]) ? name : -1;
}

/* The line after headers that begin with a line; -1 if they are too few, or lack sender, or date and subject. Unless a
 * line above announces them, they need a subject or an address. */
static int headers_end(Lines all, int first, int announced, int has_sender)
{
    int headers = 0, kinds = 0, last = first;
    for (; last < all.count && last < first + HEADER_LINES; last++) {
        const Line *line = &all.lines[last];
        if (!is_filled(line) || line->kind != OWN)
            break;
        Part part = stripped(line);
        int kind = header_kind(part);
        headers += kind != 0;
        kinds |= kind | (kind && has_address(part) ? ADDRESS : 0);
        if (!kind && *line->folded.at != ' ' && !strchr(";,>", part.end[-1] ? part.end[-1] : 'x') && !has_address(part))
            break;
    }
    int dated = (kinds & SUBJECT) || ((kinds & DATED) && (announced || (kinds & ADDRESS)));
    return ((kinds & SENDER) || has_sender) && dated && headers >= (announced || has_sender ? 2 : 3) ? last : -1;
}

/* [-_*=~‐-―─ ]{5,} */
static int is_rule_line(Part part)
{
    int marks = 0, size;
    for (; part.at < part.end; part.at += size, marks++) {
        size = *part.at == ' ' ? 1 : *part.at == '#' || *part.at == '+' ? 0 : rule_mark(part);
        if (!size)
            return 0;
    }
    return marks >= 5;
}

/* Whether a part is -{70} or -{30}. */
static int is_rule_of(Part part, int size)
{
    while (part.at < part.end && *part.at == '-' && size)
        part.at++, size--;
    return part.at == part.end && !size;
}

/* Whether a mail has the rules of a digest: before its first part, and later between two. */
static int has_rules_of_digest(Lines all)
{
    int found = 0;
    for (int number = 0; number < all.count; number++) {
        Part part = stripped(&all.lines[number]);
        if (part.at == part.end || *part.at != '-')
            continue;
        if (is_rule_of(part, DIGEST_RULE))
            found = 1;
        else if (is_rule_of(part, PART_RULE))
            return found;
    }
    return 0;
}

/* message: ?[0-9]+ */
static int is_numbered_part(Part part)
{
    if (!starts(part, LITERAL("message:")))
        return 0;
    part.at += sizeof("message:") - 1;
    part.at = after_blank(part);
    if (part.at == part.end)
        return 0;
    while (part.at < part.end && is_digit(*part.at))
        part.at++;
    return part.at == part.end;
}

/* [a-z][a-z0-9-]*: at the beginning of a part: where the colon is; NULL for none */
static Place field_end(Part part)
{
    Place end = part.at;
    while (end < part.end && ((*end >= 'a' && *end <= 'z') || (end > part.at && (*end == '-' || is_digit(*end)))))
        end++;
    return end > part.at && end < part.end && *end == ':' ? end : NULL;
}

/* The line after the headers that a message begins with as it is sent; -1 if it does not. */
static int message_headers_end(Lines all, int first)
{
    int last = first, fields = 0, kinds = 0;
    if (first < all.count && starts(all.lines[first].folded, LITERAL("from ")))
        last++; /* of a file with messages */
    for (; last < all.count && is_filled(&all.lines[last]); last++) {
        if (last - first == MESSAGE_LINES)
            return -1;
        Part part = all.lines[last].folded, name = {part.at, field_end(part)};
        if (name.end) {
            fields++;
            int sender = equals(name, LITERAL("from"));
            kinds |= sender ? SENDER : 0;
            kinds |= (sender || equals(name, LITERAL("to"))) && has_address(part) ? ADDRESS : 0;
            kinds |= equals(name, LITERAL("subject")) ? SUBJECT : equals(name, LITERAL("date")) ? DATED : 0;
        } else if (!fields || *part.at != ' ') {
            return -1;
        }
    }
    int dated = (kinds & SUBJECT) || ((kinds & DATED) && (kinds & ADDRESS));
    return fields >= 3 && (kinds & SENDER) && dated ? last : -1;
}

static void mark_headers(Lines all)
{
    int first = next_filled(all, 0), end = message_headers_end(all, first);
    int has_rules = has_rules_of_digest(all);
    while (first < end)
        all.lines[first++].kind = HEADER;
    for (int number = 0; number < all.count;) {
        Line *line = &all.lines[number];
        if (line->kind != OWN || !header_kind(stripped(line))) {
            number++;
            continue;
        }
        int sender = sender_above(all, number), last = sender < 0 ? number : sender;
        while (last && !is_filled(&all.lines[last - 1]))
            last--;
        Line *before = last ? &all.lines[last - 1] : NULL;
        int announced = before && (before->kind == FORWARDED || before->kind == SEPARATOR);
        last = headers_end(all, number, announced, sender >= 0);
        if (last < 0) {
            number++;
            continue;
        }
        if (before && before->kind == OWN) {
            Part part = stripped(before);
            if (is_numbered_part(part) || (has_rules && (is_rule_of(part, DIGEST_RULE) || is_rule_of(part, PART_RULE)))) {
                before->kind = PART;
                while (last < all.count && all.lines[last].kind == OWN && field_end(stripped(&all.lines[last])))
                    last++;
            } else if (is_rule_line(part)) {
                before->kind = SEPARATOR;
            }
        }
        for (number = sender < 0 ? number : sender; number < last; number++)
            all.lines[number].kind = HEADER;
    }
}

/* ---- Footers and signatures ---- */

static int is_footer_of(Part part, const Footer *footer)
{
    if (!starts(part, footer->begins) || !ends(part, footer->ends) || size_of(part) <= footer->begins.size + footer->ends.size)
        return 0;
    Part middle = {part.at + footer->begins.size, part.end - footer->ends.size};
    return is_short(middle, footer->most) && !(footer->filled && space_at(middle));
}

static int is_footer(Part part)
{
    if (part.at == part.end)
        return 0;
    for (int k = 0; k < footers_from[0]; k++) /* those that begin with any character */
        if (is_footer_of(part, &footers[k]))
            return 1;
    for (int k = footers_from[*part.at]; k < footers_from[*part.at + 1]; k++)
        if (is_footer_of(part, &footers[k]))
            return 1;
    return 0;
}

/* [ .:] and marks of rules at the beginning of a part: where they end */
static Place around_end(Part part)
{
    int size = 1;
    for (; part.at < part.end && size && !(*part.at >= 'a' && *part.at <= 'z'); part.at += size)
        size = *part.at == ' ' || *part.at == '.' || *part.at == ':' ? 1 : rule_mark(part);
    return part.at;
}

/* A line of a ticket system, perhaps between marks. */
static int is_reply_above(Part part)
{
    part.at = around_end(part);
    EACH_BEGINNING(phrase, &phrases[REPLY_ABOVE], part)
        if (starts(part, *phrase) && around_end((Part){part.at + phrase->size, part.end}) == part.end)
            return 1;
    return 0;
}

static int is_signature(const Line *line)
{
    Part part = line->folded;
    return equals(part, LITERAL("--")) || equals(part, LITERAL("__")) || equals(part, LITERAL("\xE2\x80\x94"));
}

static void mark_footers(Lines all)
{
    for (int number = 0; number < all.count; number++) {
        Line *line = &all.lines[number];
        if (line->kind == OWN && is_reply_above(stripped(line)))
            line->kind = FOOTER;
        if (line->kind != OWN || !is_footer(stripped(line)))
            continue;
        int following = next_filled(all, number + 1);
        const Line *after = &all.lines[following];
        if (following == all.count || (after->kind >= QUOTED && after->kind <= HEADER) || is_signature(after))
            line->kind = FOOTER;
    }
}

static int begins_list_footer(Lines all, int number)
{
    Part part = all.lines[number].folded;
    if (!is_filled(&all.lines[number]) || !strchr("-_=", *part.at) || !is_rule_line(part))
        return 0;
    for (int following = number + 1; following < all.count && following <= number + LIST_FOOTER_BEGINNING; following++)
        EACH(phrase, &phrases[MAILING_LIST])
            if (has(all.lines[following].folded, *phrase))
                return 1;
    return 0;
}

static void mark_signatures(Lines all)
{
    for (int number = 0; number < all.count; number++) {
        if (all.lines[number].kind != OWN)
            continue;
        int most = is_signature(&all.lines[number]) ? SIGNATURE_LINES : begins_list_footer(all, number) ? LIST_FOOTER_LINES : 0;
        int last = number + 1, filled = 1;
        while (last < all.count && (all.lines[last].kind == OWN || all.lines[last].kind == FOOTER) && filled <= most)
            filled += is_filled(&all.lines[last++]);
        if (filled <= most)
            for (int one = number; one < last; one++)
                all.lines[one].kind = SIGNATURE;
    }
}

/* ---- What is the mail's own ---- */

/* The words of the lines of some kinds, or at least `most`; FAILED if they cannot be counted. */
static int words_of(Mail *mail, Lines all, int kinds, int most)
{
    int words = 0;
    for (int number = 0; number < all.count && words < most; number++) {
        Count count = {0};
        if (!(kinds >> all.lines[number].kind & 1))
            continue;
        if (!count_words(&table, &count, all.lines[number].text.at, all.lines[number].text.end, most - words)) {
            mail->uncertain = 1;
            return FAILED;
        }
        words += count.words;
    }
    return words;
}

/* Whether a mail has enough words of its own, asked while lines are passed; each line is counted once. */
typedef struct {
    int words, counted;
} OwnWords;

static int has_enough(Mail *mail, OwnWords *own, Lines all, int number)
{
    if (own->words < OWN_WORDS) {
        Lines passed = {all.lines + own->counted, number - own->counted};
        int words = words_of(mail, passed, 1 << OWN, OWN_WORDS - own->words);
        own->counted = number;
        own->words += words > 0 ? words : 0;
    }
    return own->words >= OWN_WORDS;
}

static void mark_originals(Mail *mail, Lines all, int passes_on)
{
    int cut = 0, forwarded = 0, digest = 0;
    OwnWords own = {0, 0};
    for (int first = next_filled(all, 0); first < all.count && header_kind(stripped(&all.lines[first])) && !passes_on; first++)
        passes_on = is_forward_header(stripped(&all.lines[first]));
    for (int number = 0; number < all.count && !mail->uncertain; number++) {
        Line *line = &all.lines[number];
        if (line->kind == FORWARDED) {
            forwarded = 1;
        } else if (line->kind == PART && (digest || !cut)) {
            digest = forwarded = 1;
            cut = 0;
        } else if (line->kind == SEPARATOR && !cut) {
            cut = !passes_on && has_enough(mail, &own, all, number);
            forwarded = forwarded || passes_on;
            passes_on = 0;
        } else if (line->kind == HEADER && !cut) {
            int last = last_alike(all, number);
            cut = !(forwarded || passes_on) && has_enough(mail, &own, all, number);
            passes_on = 0;
            for (; number <= last; number++)
                passes_on = passes_on || is_forward_header(stripped(&all.lines[number]));
            number = last;
        } else if (line->kind == ATTRIBUTION && !cut) {
            number = last_alike(all, number);
            int following = next_filled(all, number + 1);
            int quotes = following == all.count || all.lines[following].kind == QUOTED;
            cut = !(quotes || passes_on) && has_enough(mail, &own, all, number);
            passes_on = passes_on && quotes;
        } else if (line->kind == OWN && cut) {
            line->kind = ORIGINAL;
        } else if (line->kind == OWN) {
            forwarded = forwarded && !is_filled(line);
        }
    }
}

static void mark(Mail *mail, Lines all, int passes_on)
{
    for (int number = 0; number < all.count; number++)
        all.lines[number].kind = is_quoted(&all.lines[number]) ? QUOTED : OWN;
    unquote_forwarded(all);
    mark_attributions(all);
    mark_separators(all);
    mark_headers(all);
    mark_footers(all);
    mark_signatures(all);
    mark_originals(mail, all, passes_on);
}

/* Make the text of the lines of some kinds, without empty ones at its ends. */
static int make_text(Mail *mail, Lines all, int kinds)
{
    uint8_t *to = mail->made, *filled = to;
    for (int number = 0; number < all.count; number++) {
        const Line *line = &all.lines[number];
        size_t size = (size_t)size_of(line->text);
        if (!(kinds >> line->kind & 1) || (!size && filled == mail->made))
            continue;
        if (to > mail->made)
            *to++ = '\n';
        memcpy(to, line->text.at, size);
        to += size;
        filled = size ? to : filled;
    }
    mail->made_size = filled - mail->made;
    return MADE;
}

/* Make the text of the lines that are the mail's own, or else of those that it quotes. NONE if it stays as it is. */
static int make_own(Mail *mail, Lines all, int levels, int passes_on)
{
    enum { ALL = (1 << (FOOTER + 1)) - 1, KEPT = 1 << OWN | 1 << QUOTED | 1 << ORIGINAL };
    mark(mail, all, passes_on);
    int words = mail->uncertain ? FAILED : words_of(mail, all, 1 << OWN, OWN_WORDS);
    if (words < 0)
        return FAILED;
    if (words >= OWN_WORDS)
        return make_text(mail, all, 1 << OWN);
    Lines most = {malloc(((size_t)all.count + 1) * sizeof(Line)), 0};
    if (!most.lines) {
        mail->out_of_memory = 1;
        return FAILED;
    }
    int quotes = 0, ends = 0;
    for (int number = 0; number < all.count; number++) {
        Line *line = &most.lines[most.count];
        if (!(KEPT >> all.lines[number].kind & 1))
            continue;
        *line = all.lines[number];
        if (line->kind == QUOTED) {
            quotes = 1;
            remove_mark(line);
        }
        line->kind = OWN;
        if (!size_of(line->text) && !most.count)
            continue;
        most.count++;
        ends = size_of(line->text) ? most.count : ends;
    }
    most.count = ends;
    int made = levels && quotes ? make_own(mail, most, levels - 1, 0) : NONE;
    if (made == NONE) {
        words = words_of(mail, most, ALL, 1);
        made = words < 0 ? FAILED : words ? make_text(mail, most, ALL) : NONE;
    }
    free(most.lines);
    return made;
}

PyDoc_STRVAR(own_text_doc, "own_text(mail, passes_on)\n\nWhat is the mail's own; None for a mail with decomposed kana, or lone "
                           "surrogates, whose words are not certain.");

static PyObject *own_text(PyObject *self, PyObject *args)
{
    Py_ssize_t size = 0, ends = 0;
    PyObject *source;
    int passes_on;
    (void)self;
    if (!PyArg_ParseTuple(args, "Up", &source, &passes_on))
        return NULL;
    Place bytes = bytes_of(source, &size);
    if (!bytes)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    for (Py_ssize_t k = 0; k < size; k++)
        ends += bytes[k] == '\n' || bytes[k] == '\r';
    if (ends > MOST_LINES || PyUnicode_GetLength(source) > MOST_CHARACTERS)
        return Py_NewRef(source);
    Mail mail = {0};
    Lines lines = {0};
    PyObject *result = NULL;
    int made = make_lines(&mail, (Part){bytes, bytes + size}, &lines) ? make_own(&mail, lines, LEVELS, passes_on) : FAILED;
    if (mail.out_of_memory)
        PyErr_NoMemory();
    else if (made == FAILED)
        result = Py_NewRef(Py_None);
    else if (made == NONE)
        result = Py_NewRef(source);
    else
        result = PyUnicode_FromStringAndSize((char *)mail.made, mail.made_size);
    free(lines.lines);
    free(mail.folded);
    free(mail.made);
    return result;
}

/* ---- The module ---- */

/* The bytes of an item of a tuple as a phrase. */
static int get_phrase(PyObject *bytes, Phrase *phrase)
{
    char *found;
    if (!bytes || PyBytes_AsStringAndSize(bytes, &found, &phrase->size) < 0)
        return 0;
    phrase->bytes = found;
    return 1;
}

/* Set where the phrases with each first byte begin, given the first byte of each, or -1 for an empty one. */
static void set_bounds(int from[257], int number, int first)
{
    for (int byte = first + 1; byte <= 256; byte++)
        from[byte] = number + 1;
}

static int define_phrases(Phrases *list, PyObject *given)
{
    Py_ssize_t count = PyTuple_Size(given);
    list->all = count < 0 ? NULL : calloc((size_t)count + 1, sizeof(Phrase));
    if (!list->all)
        return 0;
    list->count = (int)count;
    for (int number = 0; number < count; number++) {
        if (!get_phrase(PyTuple_GetItem(given, number), &list->all[number]))
            return 0;
        set_bounds(list->from, number, (uint8_t)*list->all[number].bytes);
    }
    return 1;
}

static int define_footers(PyObject *given)
{
    Py_ssize_t count = PyTuple_Size(given);
    footers = count < 0 ? NULL : calloc((size_t)count + 1, sizeof(Footer));
    if (!footers)
        return 0;
    for (int number = 0; number < count; number++) {
        PyObject *one = PyTuple_GetItem(given, number), *begins, *end;
        Footer *footer = &footers[number];
        if (!one || !PyArg_ParseTuple(one, "SiSp", &begins, &footer->most, &end, &footer->filled) ||
            !get_phrase(begins, &footer->begins) || !get_phrase(end, &footer->ends))
            return 0;
        set_bounds(footers_from, number, footer->begins.size ? (uint8_t)*footer->begins.bytes : -1);
    }
    return 1;
}

PyDoc_STRVAR(define_doc,
             "define(phrases: tuple of tuples of bytes, footers: tuple of tuples, lower, entries, pool, combining, pairs)\n\n"
             "The phrases of mails, each list sorted, the lower case of code points, and the table of unicode.py. Called once.");

static PyObject *define(PyObject *self, PyObject *args)
{
    static Py_buffer arrays[4], small;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!O!y*y*y*y*y*", &PyTuple_Type, &kept_lists[0], &PyTuple_Type, &kept_lists[1], &small, &arrays[0],
                          &arrays[1], &arrays[2], &arrays[3]))
        return NULL;
    Py_INCREF(kept_lists[0]);
    Py_INCREF(kept_lists[1]);
    lower = small.buf;
    cased = small.len / 4;
    int defined = make_table(&table, arrays) && PyTuple_Size(kept_lists[0]) == LISTS && define_footers(kept_lists[1]);
    for (int list = 0; defined && list < LISTS; list++)
        defined = define_phrases(&phrases[list], PyTuple_GetItem(kept_lists[0], list));
    if (defined)
        Py_RETURN_NONE;
    return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "phrases of another kind");
}

static PyMethodDef methods[] = {
    {"define", define, METH_VARARGS, define_doc},
    {"own_text", own_text, METH_VARARGS, own_text_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_mail", .m_doc = "What is a mail's own.", .m_methods = methods};

PyMODINIT_FUNC PyInit__mail(void)
{
    return PyModule_Create(&module);
}
