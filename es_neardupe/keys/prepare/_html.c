/* The text of pages of HTML, `html` and `html-main`: what html.py makes of the tree of a parser, without a tree, for pages
 * whose text is certain without one. The rules are those of html_page.py and html_main.py, step by step. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "_text.h"

#include "_html_tree.h"

#include "_html_guard.h"

static Table table;
static Py_buffer arrays[4];

/* ---- What is left out ---- */

/* A page, and what the stages of html-main need to know of it. */
typedef struct {
    Page page;
    int *words;            /* of each piece that is shown */
    int *sums[3];          /* words before each piece that are kept, those of links, and those of paragraphs */
    uint8_t *shown, *kept; /* pieces */
    uint8_t *in_section, *holds_main, *holds_heading, *holds_label, *has_values; /* elements */
    const Element *text; /* holds most paragraphs */
    int *links;
    uint8_t *made; /* the tidy text */
    size_t made_size;
} Reading;

typedef int (*Rule)(Reading *reading, const Element *element, int most);

/* Leave out the elements of a rule. It is not asked for elements within them. */
static void leave_out(Reading *reading, uint8_t *kept, Rule rule, int most)
{
    Page *page = &reading->page;
    for (int number = 0; number < page->element_count;) {
        const Element *element = &page->elements[number];
        if (rule(reading, element, most)) {
            memset(kept + element->first, 0, (size_t)(element->last - element->first));
            number = element->end;
        } else
            number++;
    }
}

static int is_unseen(Reading *reading, const Element *element, int most)
{
    (void)reading, (void)most;
    return (element->kind->rules & UNSEEN) != 0;
}

static int is_unseen_or_hidden(Reading *reading, const Element *element, int most)
{
    (void)reading, (void)most;
    if (element->kind->rules & UNSEEN)
        return 1;
    return !(element->kind->rules & OUTER) &&
           ((element->marks & HIDDEN) || (element->kind->number == T_dialog && !(element->marks & OPEN)));
}

/* The words of each piece that is kept, up to `most` of all; 0 if they cannot be counted. */
static int count_pieces(Reading *reading, const uint8_t *kept, int most, int *all)
{
    Page *page = &reading->page;
    *all = 0;
    for (int k = 0; k < page->piece_count && *all < most; k++) {
        const Piece *piece = &page->pieces[k];
        Count count = {0};
        if (kept[k] && !count_words(&table, &count, page->text + piece->start, page->text + piece->start + piece->size, most))
            return 0;
        if (reading->words)
            reading->words[k] = count.words;
        *all += count.words;
    }
    return 1;
}

/* What html leaves out; if nothing else has words, hidden elements count. 0 if words cannot be counted. */
static int find_shown(Reading *reading, int most)
{
    size_t size = (size_t)reading->page.piece_count;
    int all;
    memset(reading->shown, 1, size);
    leave_out(reading, reading->shown, is_unseen_or_hidden, 0);
    if (!count_pieces(reading, reading->shown, most, &all))
        return 0;
    if (all)
        return 1;
    memset(reading->shown, 1, size);
    leave_out(reading, reading->shown, is_unseen, 0);
    return count_pieces(reading, reading->shown, most, &all);
}

/* ---- The tidy text ---- */

/* How many bytes from a place on, the first of which is no whitespace, are tidy: at most 8 of ASCII, with single blanks
 * within, or one. */
static int tidy_bytes(Place at, Place end)
{
    uint64_t word;
    if (end - at < 8)
        return 1;
    memcpy(&word, at, 8);
    if ((word & HIGH) || ((word - ONES * 0x20) & HIGH)) /* a byte that is not ASCII, or a control character */
        return 1;
    uint64_t blanks = (((word ^ ONES * 0x20) + ONES * 0x7F) & HIGH) ^ HIGH; /* the highest bits of blanks */
    if (blanks & (blanks << 8))
        return 1;
    return at[7] == ' ' ? 7 : 8;
}

/* The pieces of a range that are kept: their words with single blanks, and the lines that have any. */
static void make_tidy(Reading *reading, const uint8_t *kept, int first, int last)
{
    const Page *page = &reading->page;
    uint8_t *to = reading->made;
    int before = NO_SPACE;
    for (int k = first; k < last; k++) {
        const Piece *piece = &page->pieces[k];
        if (!kept[k] || !piece->size) {
            before = LINE_END;
            continue;
        }
        Place at = page->text + piece->start, end = at + piece->size;
        while (at < end) {
            int space = spaces[*at], size = 1;
            if (space == MAY_BE_SPACE) {
                size = unicode_space(at);
                space = size ? SPACE : NO_SPACE;
            }
            if (space) {
                before = space > before ? space : before;
                at += size;
                continue;
            }
            if (before && to > reading->made)
                *to++ = before == LINE_END ? '\n' : ' ';
            before = NO_SPACE;
            do {
                size = tidy_bytes(at, end);
                if (size > 1)
                    memcpy(to, at, 8); /* 8 bytes are there, and so is room for them */
                else
                    *to = *at;
                at += size;
                to += size;
            } while (at < end && (!spaces[*at] || (spaces[*at] == MAY_BE_SPACE && !unicode_space(at))));
        }
    }
    reading->made_size = (size_t)(to - reading->made);
}

/* ---- The main text ---- */

static int is(const Element *element, int rules)
{
    return ((element->kind->rules | element->role) & rules) != 0;
}

static int says_apart(Reading *reading, const Element *element, int most)
{
    int64_t number = element - reading->page.elements;
    (void)most;
    if ((element->kind->rules & OUTER) || reading->holds_main[number])
        return 0;
    return (element->kind->rules & APART) || (element->kind->number == T_header && !reading->in_section[number]) ||
           (element->role & APART_ROLE);
}

static int between(const int *sums, const Element *element)
{
    return sums[element->last] - sums[element->first];
}

static int words_of(Reading *reading, const Element *element)
{
    return between(reading->sums[0], element);
}

static int is_named(Reading *reading, const Element *element, int most)
{
    return (element->marks & NAMED_APART) && !(element->kind->rules & (INLINE | OUTER)) &&
           !reading->holds_main[element - reading->page.elements] && 2 * words_of(reading, element) <= most;
}

static int is_list_of_links(Reading *reading, const Element *element, int most)
{
    int64_t number = element - reading->page.elements;
    if (!(element->kind->rules & LIST_BLOCK) || reading->links[number] < 3 || reading->holds_main[number])
        return 0;
    int64_t words = words_of(reading, element), linked = between(reading->sums[1], element);
    return linked * 10 >= words * 8 && 2 * words <= most;
}

enum { PARAGRAPH = 5, SHORT = 10 };

static int has_links(Reading *reading, const Element *element)
{
    return (int64_t)between(reading->sums[1], element) * 5 >= words_of(reading, element);
}

static int is_teaser(Reading *reading, const Element *element, int most)
{
    return !(element->kind->rules & INLINE) && 2 * (int64_t)words_of(reading, element) <= most && has_links(reading, element);
}

/* Whether an element is a block that is no part of the text, holds no part of it, and no heading of the page. */
static int is_apart(Reading *reading, const Element *element)
{
    const Element *text = reading->text;
    int is_around = element->first < text->last && text->first < element->last;
    return !(element->kind->rules & INLINE) && !is_around && !reading->holds_heading[element - reading->page.elements];
}

enum { FIGURE = 1, COPYRIGHT = 2 };

/* Whether a place has the sign of a figure: one of ASCII, full width, Arabic, Persian or Devanagari. */
static int is_figure(Place at, Place end)
{
    int64_t size = end - at;
    if (*at < 0x80)
        return *at >= '0' && *at <= '9';
    if (size > 1 && ((at[0] == 0xD9 && at[1] >= 0xA0) || (at[0] == 0xDB && at[1] >= 0xB0)))
        return at[1] <= (at[0] == 0xD9 ? 0xA9 : 0xB9);
    return size > 2 && ((at[0] == 0xE0 && at[1] == 0xA5 && at[2] >= 0xA6 && at[2] <= 0xAF) ||
                        (at[0] == 0xEF && at[1] == 0xBC && at[2] >= 0x90 && at[2] <= 0x99));
}

/* What the kept pieces of an element have: a figure, or a colon before more text; a notice of copyright. */
static int values_of(Reading *reading, const uint8_t *kept, const Element *element)
{
    const Page *page = &reading->page;
    int found = 0, after_colon = 0;
    for (int k = element->first; k < element->last; k++) {
        const Piece *piece = &page->pieces[k];
        if (!kept[k])
            continue;
        Place at = page->text + piece->start, end = at + piece->size;
        for (; at < end; at++) {
            int64_t size = end - at;
            int is_wide_colon = size > 2 && !memcmp(at, "\xEF\xBC\x9A", 3);
            if (is_figure(at, end))
                found |= FIGURE;
            else if (size > 1 && !memcmp(at, "\xC2\xA9", 2))
                found |= COPYRIGHT;
            else if ((size > 2 && same_name(at, 3, (Place) "(c)", 3)) || (size > 8 && same_name(at, 9, (Place) "copyright", 9)))
                found |= COPYRIGHT;
            if (*at == ':' || is_wide_colon) {
                after_colon = 1;
                at += 2 * is_wide_colon;
            } else if (after_colon && *at > ' ')
                found |= FIGURE;
        }
    }
    return found;
}

/* Whether an element is a block with words. */
static int is_part(Reading *reading, const Element *element)
{
    return !(element->kind->rules & INLINE) && words_of(reading, element) > 0;
}

/* Find the short parts without links next to the text that have values, with those directly before and after them; but no
 * notices of copyright. */
static void find_values(Reading *reading, const uint8_t *kept)
{
    Page *page = &reading->page;
    for (int number = 0; number < page->element_count; number++) {
        const Element *around = &page->elements[number];
        if (around == reading->text || around->first > reading->text->first || reading->text->last > around->last)
            continue;
        int first = number + 1, has_value = 0; /* of the parts that are adjacent */
        for (int child = first; child <= around->end; child = page->elements[child].end) {
            const Element *element = &page->elements[child];
            int is_end = child == around->end;
            if (!is_end && !is_part(reading, element))
                continue;
            int values = 0;
            int is_short = !is_end && words_of(reading, element) < SHORT && !reading->links[child] && is_apart(reading, element) &&
                           !((values = values_of(reading, kept, element)) & COPYRIGHT);
            if (is_short)
                has_value |= values | reading->holds_label[child];
            else {
                for (; has_value && first < child; first = page->elements[first].end)
                    reading->has_values[first] = (uint8_t)is_part(reading, &page->elements[first]);
                if (is_end)
                    break;
                first = element->end;
                has_value = 0;
            }
        }
    }
}

/* Whether a part around the text is short and has no values, or has many links. */
static int is_beside(Reading *reading, const Element *element, int most)
{
    const Element *text = reading->text;
    (void)most;
    if (!is_apart(reading, element) || reading->has_values[element - reading->page.elements])
        return 0;
    const Element *parent = &reading->page.elements[element->parent];
    return has_links(reading, element) ||
           (words_of(reading, element) < SHORT && parent->first <= text->first && text->last <= parent->last);
}

/* Words before each piece, of those that are kept. */
static void sum_up(Reading *reading, const uint8_t *kept, int *sums)
{
    sums[0] = 0;
    for (int k = 0; k < reading->page.piece_count; k++)
        sums[k + 1] = sums[k] + (kept[k] ? reading->words[k] : 0);
}

/* Mark an element, and those that it is within. */
static void mark_up(Page *page, uint8_t *marks, int number)
{
    for (; number >= 0 && !marks[number]; number = page->elements[number].parent)
        marks[number] = 1;
}

/* What each element is within, and what it holds. */
static void find_places(Reading *reading)
{
    Page *page = &reading->page;
    for (int number = 0; number < page->element_count; number++) {
        const Element *element = &page->elements[number];
        int parent = element->parent;
        reading->in_section[number] = parent >= 0 && (reading->in_section[parent] || (page->elements[parent].kind->rules & SECTION));
        if (is(element, MAIN | ARTICLE))
            mark_up(page, reading->holds_main, number);
        if (element->kind->number == T_h1)
            mark_up(page, reading->holds_heading, number);
        if (element->kind->number == T_dt || element->kind->number == T_th)
            mark_up(page, reading->holds_label, number);
    }
    for (int number = page->element_count - 1; number >= 0; number--) {
        const Element *element = &page->elements[number];
        reading->links[number] += element->kind->number == T_a && (element->marks & HREF);
        if (element->parent >= 0)
            reading->links[element->parent] += reading->links[number];
    }
}

/* The words of links, of those that are kept. */
static void sum_up_links(Reading *reading, const uint8_t *kept, uint8_t *linked)
{
    Page *page = &reading->page;
    memset(linked, 0, (size_t)page->piece_count);
    for (int number = 0; number < page->element_count;) {
        const Element *element = &page->elements[number++];
        if (element->kind->number == T_a && (element->marks & HREF)) {
            memcpy(linked + element->first, kept + element->first, (size_t)(element->last - element->first));
            number = element->end;
        }
    }
    sum_up(reading, linked, reading->sums[1]);
}

/* Sum up the words of paragraphs: of what no edge divides. */
static void sum_up_paragraphs(Reading *reading, const uint8_t *kept, uint8_t *edges)
{
    Page *page = &reading->page;
    int *sums = reading->sums[2], words = 0;
    memset(edges, 0, (size_t)page->piece_count);
    for (int number = 0; number < page->element_count; number++) {
        const Element *element = &page->elements[number];
        if (!(element->kind->rules & INLINE))
            edges[element->first] = edges[element->last - 1] = 1;
    }
    sums[0] = 0;
    for (int k = 0; k < page->piece_count; k++) {
        sums[k + 1] = sums[k];
        words += kept[k] ? reading->words[k] : 0;
        if (k + 1 == page->piece_count || edges[k + 1]) {
            if (words >= PARAGRAPH)
                sums[k + 1] += words;
            words = 0;
        }
    }
}

/* The innermost element with at least 4/5 of the words of paragraphs that is no paragraph itself; NULL for none. */
static const Element *find_text(Reading *reading)
{
    Page *page = &reading->page;
    int64_t all = reading->sums[2][page->piece_count];
    const Element *around = NULL, *found = NULL;
    for (int number = 0; number < page->element_count; number++) {
        const Element *element = &page->elements[number];
        int64_t words = between(reading->sums[2], element);
        if (words && !(element->kind->rules & INLINE) && words * 5 >= all * 4) {
            around = found;
            found = element;
        }
    }
    if (!found)
        return NULL;
    for (const Element *within = found + 1; within < page->elements + found->end; within++)
        if (!(within->kind->rules & INLINE))
            return found;
    return around;
}

/* The main element, or the one article, that holds enough of the words; NULL for none. */
static const Element *main_element(Reading *reading)
{
    Page *page = &reading->page;
    int64_t total = reading->sums[0][page->piece_count], longest = 0, second = 0;
    const Element *found = NULL;
    for (int number = 0; number < page->element_count; number++) {
        const Element *element = &page->elements[number];
        int64_t words = words_of(reading, element);
        if (is(element, MAIN) && words > 0 && words * 5 >= total)
            return element;
    }
    for (int number = 0, end = 0; number < page->element_count; number++) { /* the outermost that hold at most one other */
        const Element *element = &page->elements[number];
        if (number < end || !is(element, ARTICLE))
            continue;
        int others = 0;
        for (int within = number + 1; within < element->end && others < 2; within++)
            others += is(&page->elements[within], ARTICLE);
        if (others > 1)
            continue;
        end = element->end;
        int64_t words = words_of(reading, element);
        if (words > longest) {
            second = longest;
            longest = words;
            found = element;
        } else if (words > second)
            second = words;
    }
    return longest && longest * 3 >= total && longest >= 2 * second ? found : NULL;
}

enum { ENOUGH = 20, ALL = INT32_MAX };

/* The words of the pieces of a range that are kept, with those that an inline element cuts as one, up to `most` or some
 * more; -1 if they cannot be counted. */
static int words_kept(Reading *reading, const uint8_t *kept, int first, int last, int most)
{
    const Page *page = &reading->page;
    Count count = {0};
    for (int k = first; k < last && count.words < most; k++) {
        const Piece *piece = &page->pieces[k];
        if (!kept[k] || !piece->size) {
            memset(&count.context, 0, sizeof count.context);
            count.open = 0;
        } else if (!count_words(&table, &count, page->text + piece->start, page->text + piece->start + piece->size, most))
            return -1;
    }
    return count.words;
}

/* Whether a stage leaves enough of the text of the one before; -1 if words cannot be counted. */
static int leaves_enough(Reading *reading, const uint8_t *kept, const uint8_t *before, int first, int last)
{
    int words = words_kept(reading, kept, first, last, ENOUGH);
    if (words < 0 || words >= ENOUGH)
        return words < 0 ? -1 : 1;
    int words_before = words_kept(reading, before, first, last, ALL);
    return words_before < 0 ? -1 : (int64_t)words * 3 >= words_before;
}

/* Make the text of a range of pieces or, if it has no word, of the first title; 0 if words cannot be counted. */
static int make_kept(Reading *reading, const uint8_t *kept, int first, int last)
{
    Page *page = &reading->page;
    int words = words_kept(reading, kept, first, last, 1);
    if (words < 0)
        return 0;
    if (!words) {
        memset(reading->shown, 1, (size_t)page->piece_count);
        kept = reading->shown;
        first = last = 0;
        for (int number = 0; number < page->element_count && !last; number++)
            if (page->elements[number].kind->number == T_title) {
                first = page->elements[number].first;
                last = page->elements[number].last;
            }
    }
    make_tidy(reading, kept, first, last);
    return 1;
}

/* Make the main text; 0 if words cannot be counted. */
static int make_main(Reading *reading)
{
    size_t size = (size_t)reading->page.piece_count;
    uint8_t *parts = reading->kept, *named = parts + size, *unlinked = named + size, *linked = unlinked + size, *alone = linked + size;
    if (!find_shown(reading, ALL))
        return 0;
    find_places(reading);
    memcpy(parts, reading->shown, size);
    leave_out(reading, parts, says_apart, 0);
    sum_up(reading, parts, reading->sums[0]);
    const Element *main = main_element(reading);
    int first = main ? main->first : 0, last = main ? main->last : reading->page.piece_count;
    int words = words_kept(reading, parts, first, last, 1);
    if (words < 0)
        return 0;
    const uint8_t *kept = reading->shown;
    if (!words) {
        first = 0;
        last = reading->page.piece_count;
    } else {
        int most = reading->sums[0][last] - reading->sums[0][first];
        kept = parts;
        memcpy(named, parts, size);
        leave_out(reading, named, is_named, most);
        int enough = leaves_enough(reading, named, parts, first, last);
        if (enough > 0) {
            kept = named;
            sum_up(reading, named, reading->sums[0]);
            sum_up_links(reading, named, linked);
            memcpy(unlinked, named, size);
            leave_out(reading, unlinked, is_list_of_links, most);
            enough = leaves_enough(reading, unlinked, named, first, last);
            kept = enough > 0 ? unlinked : named;
            if (enough > 0 && !main) {
                sum_up(reading, unlinked, reading->sums[0]);
                sum_up_links(reading, unlinked, linked);
                memcpy(alone, unlinked, size);
                leave_out(reading, alone, is_teaser, most);
                sum_up_paragraphs(reading, alone, linked);
                reading->text = find_text(reading);
            }
            if (reading->text) {
                find_values(reading, unlinked);
                memcpy(alone, unlinked, size);
                leave_out(reading, alone, is_beside, 0);
                sum_up(reading, alone, reading->sums[2]);
                if (2 * (int64_t)reading->sums[2][size] >= reading->sums[0][size]) {
                    enough = leaves_enough(reading, alone, unlinked, first, last);
                    kept = enough > 0 ? alone : unlinked;
                }
            }
        }
        if (enough < 0)
            return 0;
    }
    return make_kept(reading, kept, first, last);
}

/* Make the text of a page that was read; 0 if words cannot be counted, or memory is short. */
static int make_text(Reading *reading)
{
    Page *page = &reading->page;
    size_t pieces = (size_t)page->piece_count, elements = (size_t)page->element_count;
    int with_main = page->with_names, found = 0;
    reading->made = malloc(page->text_size + pieces + 1);
    reading->shown = malloc(pieces + 1);
    if (with_main) {
        reading->words = calloc(4 * pieces + 4 + elements, sizeof(int));
        reading->kept = malloc(5 * pieces + 1);
        reading->in_section = calloc(5 * elements + 1, 1);
    }
    if (!reading->made || !reading->shown || (with_main && (!reading->words || !reading->kept || !reading->in_section))) {
        page->out_of_memory = 1;
        return 0;
    }
    if (with_main) {
        reading->sums[0] = reading->words + pieces;
        reading->sums[1] = reading->sums[0] + pieces + 1;
        reading->sums[2] = reading->sums[1] + pieces + 1;
        reading->links = reading->sums[2] + pieces + 1;
        reading->holds_main = reading->in_section + elements;
        reading->holds_heading = reading->holds_main + elements;
        reading->holds_label = reading->holds_heading + elements;
        reading->has_values = reading->holds_label + elements;
        found = make_main(reading);
    } else
        found = find_shown(reading, 1) && make_kept(reading, reading->shown, 0, page->piece_count);
    return found;
}

/* Whether a page is over a limit of the guard; -1 if memory is short. */
static int is_too_costly(PyObject *page, Place bytes, Py_ssize_t size)
{
    if (is_surely_cheap(bytes, bytes + size))
        return 0;
    Py_ssize_t markup = 0;
    for (Py_ssize_t k = 0; k < size; k++)
        markup += bytes[k] == '<';
    if (markup > GUARD_MARKUP || PyUnicode_GetLength(page) > GUARD_CHARACTERS)
        return 1;
    Scan *scan = malloc(sizeof *scan);
    if (!scan) {
        PyErr_NoMemory();
        return -1;
    }
    scan->raw.kind = NULL;
    scan->depth = scan->foreign = 0;
    scan->formats = 0;
    memset(scan->counts, 0, (size_t)names.count * sizeof *scan->counts);
    int found = exceeds(scan, bytes, bytes + size);
    free(scan);
    return found;
}

PyDoc_STRVAR(is_too_costly_doc, "is_too_costly(page)\n\nWhether a page is over a limit of the guard; None if it is no UTF-8.");

static PyObject *is_page_too_costly(PyObject *self, PyObject *page)
{
    Py_ssize_t size = 0;
    (void)self;
    Place bytes = bytes_of(page, &size);
    if (!bytes)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    int found = is_too_costly(page, bytes, size);
    return found < 0 ? NULL : PyBool_FromLong(found);
}

PyDoc_STRVAR(text_doc, "text(page, main)\n\nThe text of a page, or its main text; None if a parser is needed, or "
                       "the page is too costly.");

static PyObject *text(PyObject *self, PyObject *args)
{
    PyObject *source, *result = NULL;
    int with_main;
    Py_ssize_t size;
    (void)self;
    if (!PyArg_ParseTuple(args, "Up", &source, &with_main))
        return NULL;
    Place bytes = bytes_of(source, &size);
    if (!bytes)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
    if (size > INT32_MAX / 4 || memchr(bytes, 0, (size_t)size))
        Py_RETURN_NONE;
    int costly = is_too_costly(source, bytes, size);
    if (costly)
        return costly < 0 ? NULL : Py_NewRef(Py_None);
    Reading *reading = calloc(1, sizeof *reading);
    if (!reading)
        return PyErr_NoMemory();
    Page *page = &reading->page;
    page->at = bytes;
    page->end = bytes + size;
    page->with_names = with_main;
    page->has_returns = memchr(bytes, '\r', (size_t)size) != NULL;
    page->form = -1;
    read_page(page);
    int made = !page->given_up && make_text(reading);
    if (page->out_of_memory)
        PyErr_NoMemory();
    else if (made)
        result = PyUnicode_FromStringAndSize((char *)reading->made, (Py_ssize_t)reading->made_size);
    else
        result = Py_NewRef(Py_None);
    free_page(page);
    free(reading->words);
    free(reading->kept);
    free(reading->shown);
    free(reading->in_section);
    free(reading->made);
    free(reading);
    return result;
}

/* ---- The module ---- */

PyDoc_STRVAR(define_doc,
             "define(rules: dict of str and int, references: dict of str and str, entries, pool, combining, pairs)\n\n"
             "What names mean to the rules, the references of characters, and the table of unicode.py. Called once.");

static PyObject *define(PyObject *self, PyObject *args)
{
    PyObject *rules, *meanings, *key, *value;
    Py_ssize_t at = 0, size, value_size;
    (void)self;
    if (!PyArg_ParseTuple(args, "O!O!y*y*y*y*", &PyDict_Type, &rules, &PyDict_Type, &meanings, &arrays[0], &arrays[1], &arrays[2],
                          &arrays[3]))
        return NULL;
    if (!make_table(&table, arrays))
        return NULL;
    while (PyDict_Next(rules, &at, &key, &value)) {
        const char *name = PyUnicode_AsUTF8AndSize(key, &size);
        long bits = name ? PyLong_AsLong(value) : -1;
        int number = name ? numbered(&names, name, (int)size) : -1;
        if (bits < 0 || number < 0)
            return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "a name that is too long, or too many");
        kinds[number].rules = (int)bits;
    }
    at = 0;
    while (PyDict_Next(meanings, &at, &key, &value)) {
        const char *name = PyUnicode_AsUTF8AndSize(key, &size), *meant = name ? PyUnicode_AsUTF8AndSize(value, &value_size) : NULL;
        int number = meant && value_size <= 8 ? numbered(&references, name, (int)size) : -1;
        if (number < 0)
            return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "a reference that is too long, or too many");
        characters[number].size = (uint8_t)value_size;
        memcpy(characters[number].bytes, meant, (size_t)value_size);
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"define", define, METH_VARARGS, define_doc},
    {"is_too_costly", is_page_too_costly, METH_O, is_too_costly_doc},
    {"text", text, METH_VARARGS, text_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_html", .m_doc = "The text of pages of HTML.", .m_methods = methods};

PyMODINIT_FUNC PyInit__html(void)
{
    fill_names();
    fill_spaces();
    return PyModule_Create(&module);
}
