/* A page as the walk of html_page.py finds it, its elements and pieces, made without a tree: tokens are read as the HTML
 * standard says, and each is added where it stands, as long as no rule puts it elsewhere. A page for which one does (text
 * directly within a table, a link that is closed across a block, ...), or whose reading is not certain, is given up:
 * the caller then asks a parser that makes trees. */

#include "_html_names.h"

/* A formatting element is moved out of at most 7 blocks at once, by the standard. */
enum { MAX_DEPTH = 1000, MAX_FORMATS = 250, MAX_ELEMENTS = 1 << 21, MAX_MOVED = 7 };

/* What the attributes of an element say. The rules of roles and names are bits of Kind.rules. */
enum { HIDDEN = 1, OPEN = 2, HREF = 4, TYPE_HIDDEN = 8, NAMED_APART = 16, HAS_ROLE = 32 };

typedef struct {
    const Kind *kind;
    Place name;
    int size;
    int role; /* rules of its first role */
    uint8_t marks;
    uint8_t is_end, is_closed;
} Tag;

typedef struct {
    const Kind *kind;
    Place name;
    int size;
    int role;
    uint8_t marks;
    uint8_t on_stack; /* whether it is an open element; one that was closed before those within it keeps its place */
    int parent;
    int first, last; /* pieces */
    int end;         /* the next element that is not within it */
} Element;

/* A text, or the edge of an element that separates words. */
typedef struct {
    size_t start, size;
} Piece;

enum Mode {
    INITIAL,
    BEFORE_HTML,
    BEFORE_HEAD,
    IN_HEAD,
    IN_HEAD_NOSCRIPT,
    AFTER_HEAD,
    IN_BODY,
    IN_TABLE,
    IN_CAPTION,
    IN_COLUMN_GROUP,
    IN_TABLE_BODY,
    IN_ROW,
    IN_CELL,
    AFTER_BODY,
    AFTER_AFTER_BODY
};

enum Quirks { NO_QUIRKS, QUIRKS, NOT_KNOWN };

typedef struct {
    Place at, end;
    int with_names;  /* whether roles, ids and classes matter */
    int has_returns; /* whether there may be line ends other than LF */
    Element *elements;
    int element_count, element_room;
    Piece *pieces;
    int piece_count, piece_room;
    uint8_t *text;
    size_t text_size, text_room;
    int stack[MAX_DEPTH], depth;
    int open_counts[KNOWN];
    int formats[MAX_FORMATS], format_count; /* the list of active formatting elements; a marker is -1 */
    int form;                               /* the element, or -1 */
    int foreign;                            /* the depth of the outermost element of foreign content, or 0 */
    int continues;                          /* whether text belongs to the last piece */
    enum Mode mode, outer_mode;             /* now, and around the template that is open */
    enum Quirks quirks;
    int given_up, out_of_memory;
} Page;

static void *grown(Page *page, void *array, size_t size)
{
    void *more = realloc(array, size);
    if (!more)
        page->given_up = page->out_of_memory = 1;
    return more;
}

static void free_page(Page *page)
{
    free(page->elements);
    free(page->pieces);
    free(page->text);
}

/* ---- Pieces and elements ---- */

static int add_piece(Page *page, size_t start, size_t size)
{
    if (page->piece_count == page->piece_room) {
        int room = 2 * page->piece_room + 256;
        Piece *more = grown(page, page->pieces, (size_t)room * sizeof *more);
        if (!more)
            return 0;
        page->pieces = more;
        page->piece_room = room;
    }
    page->pieces[page->piece_count++] = (Piece){start, size};
    return 1;
}

static Element *top(Page *page)
{
    return &page->elements[page->stack[page->depth - 1]];
}

static int top_is(Page *page, int number)
{
    return page->depth && top(page)->kind->number == number;
}

static int open_element(Page *page, const Tag *tag)
{
    if (page->depth == MAX_DEPTH || page->element_count == MAX_ELEMENTS) {
        page->given_up = 1;
        return -1;
    }
    if (page->element_count == page->element_room) {
        int room = 2 * page->element_room + 128;
        Element *more = grown(page, page->elements, (size_t)room * sizeof *more);
        if (!more)
            return -1;
        page->elements = more;
        page->element_room = room;
    }
    int number = page->element_count++, parent = page->depth ? page->stack[page->depth - 1] : -1;
    page->elements[number] = (Element){tag->kind,  tag->name, tag->size, tag->role,         tag->marks, 1,
                                       parent, page->piece_count, 0,         0};
    page->stack[page->depth++] = number;
    page->open_counts[tag->kind->number]++;
    if (!(tag->kind->rules & INLINE))
        add_piece(page, 0, 0);
    page->continues = 0;
    return number;
}

/* An element without attributes that the standard inserts. */
static int open_implied(Page *page, int number)
{
    return open_element(page, &(Tag){&kinds[number], NULL, 0, 0, 0, 0, 0});
}

static void finish_top(Page *page)
{
    Element *element = top(page);
    if (element->kind->rules & CHILDLESS) { /* what it holds is no part of the page */
        page->element_count = page->stack[page->depth - 1] + 1;
        page->piece_count = element->first + 1;
    }
    if (!(element->kind->rules & INLINE))
        add_piece(page, 0, 0);
    element->last = page->piece_count;
    element->end = page->element_count;
    page->depth--;
    page->continues = 0;
}

static void forget(Page *page, Element *element)
{
    if (element->on_stack) {
        element->on_stack = 0;
        page->open_counts[element->kind->number]--;
    }
}

static void pop(Page *page)
{
    forget(page, top(page));
    finish_top(page);
    while (page->depth && !top(page)->on_stack)
        finish_top(page);
    if (page->depth < page->foreign)
        page->foreign = 0;
}

static void add_element(Page *page, const Tag *tag)
{
    if (open_element(page, tag) >= 0)
        pop(page);
}

/* ---- The stack of open elements ---- */

/* Whether an element is open in scope. Button and list item scope end at one or two further elements. */
static int in_scope(Page *page, int number, int ends1, int ends2)
{
    if (!page->open_counts[number])
        return 0;
    for (int depth = page->depth - 1; depth >= 0; depth--) {
        const Element *element = &page->elements[page->stack[depth]];
        const Kind *kind = element->kind;
        if (!element->on_stack)
            continue;
        if (kind->number == number)
            return 1;
        if ((kind->tree & IN_SCOPE_ENDS) || (ends1 && (kind->number == ends1 || kind->number == ends2)))
            return 0;
    }
    return 0;
}

static int in_table_scope(Page *page, int number)
{
    if (!page->open_counts[number])
        return 0;
    for (int depth = page->depth - 1; depth >= 0; depth--) {
        const Element *element = &page->elements[page->stack[depth]];
        if (element->on_stack && element->kind->number == number)
            return 1;
        if (element->on_stack && (element->kind->number == T_table || element->kind->number == T_html))
            return 0;
    }
    return 0;
}

static void end_implied(Page *page, int except)
{
    while (page->depth && (top(page)->kind->tree & IMPLIED_END) && top(page)->kind->number != except)
        pop(page);
}

static void pop_through(Page *page, int number)
{
    while (page->depth > 1 && !top_is(page, number))
        pop(page);
    if (page->depth > 1)
        pop(page);
}

/* End a paragraph that is open in button scope. */
static void close_p(Page *page)
{
    if (in_scope(page, T_p, T_button, T_button)) {
        end_implied(page, T_p);
        pop_through(page, T_p);
    }
}

/* ---- Active formatting elements ---- */

/* The first of the last ones that were closed with a block, and are to be opened again. */
static int first_closed(const Page *page)
{
    int at = page->format_count;
    while (at && page->formats[at - 1] >= 0 && !page->elements[page->formats[at - 1]].on_stack)
        at--;
    return at;
}

static void reconstruct(Page *page)
{
    for (int at = first_closed(page); at < page->format_count && !page->given_up; at++) {
        const Element element = page->elements[page->formats[at]];
        int number = open_element(page, &(Tag){element.kind, element.name, element.size, element.role, element.marks, 0, 0});
        if (number >= 0)
            page->formats[at] = number;
    }
}

static void add_format(Page *page, int number)
{
    int equal = 0;
    for (int at = page->format_count - 1; number >= 0 && at >= 0 && page->formats[at] >= 0; at--)
        equal += page->elements[page->formats[at]].kind == page->elements[number].kind;
    if (equal >= 3 || page->format_count == MAX_FORMATS) /* a fourth equal one would replace the first */
        page->given_up = 1;
    else
        page->formats[page->format_count++] = number;
}

static void clear_formats(Page *page)
{
    while (page->format_count && page->formats[--page->format_count] >= 0)
        ;
}

static void end_other(Page *page, const Tag *tag)
{
    for (int depth = page->depth - 1; depth >= 0; depth--) {
        const Element *element = &page->elements[page->stack[depth]];
        if (!element->on_stack)
            continue;
        if (element->kind == tag->kind &&
            (tag->kind != &kinds[OTHER] || same_name(element->name, element->size, tag->name, tag->size))) {
            end_implied(page, tag->kind->number ? tag->kind->number : -1);
            while (page->depth > depth)
                pop(page);
            return;
        }
        if (element->kind->tree & SPECIAL)
            return;
    }
}

/* Whether blocks are closed within the blocks that are open from one depth to another, or other elements than inline ones
 * are open further down. */
static int holds_other_blocks(const Page *page, int depth, int last)
{
    for (int number = page->stack[depth]; number < page->element_count; number++) {
        if (depth < last && page->stack[depth] == number)
            depth++;
        else if (!(page->elements[number].kind->rules & INLINE))
            return 1;
    }
    return 0;
}

/* End a formatting element in which some blocks are open. The standard puts the blocks behind it, and copies of it around what
 * they hold. It makes no difference what an element without a role, a link or `hidden` holds, so here it only ends. But
 * where the parents of blocks count, none may be within a copy. */
static void end_around_blocks(Page *page, int depth, int blocks)
{
    Element *element = &page->elements[page->stack[depth]];
    int block = page->stack[depth + 1], last = depth + 1;
    while (last < page->depth && (page->elements[page->stack[last]].kind->tree & SPECIAL))
        last++;
    if (last - depth - 1 != blocks || blocks > MAX_MOVED || page->foreign || (element->marks & (HREF | HIDDEN | HAS_ROLE)) ||
        !page->elements[page->stack[depth - 1]].on_stack || (page->with_names && holds_other_blocks(page, depth + 1, last))) {
        page->given_up = 1;
        return;
    }
    while (page->depth > last)
        pop(page);
    forget(page, element);
    element->last = page->elements[block].first;
    element->end = block;
    page->elements[block].parent = page->stack[depth - 1];
    page->depth--;
    memmove(page->stack + depth, page->stack + depth + 1, (size_t)(page->depth - depth) * sizeof *page->stack);
    page->continues = 0;
}

/* The end of a formatting element. */
static void end_format(Page *page, const Tag *tag)
{
    int at = page->format_count - 1;
    while (at >= 0 && page->formats[at] >= 0 && page->elements[page->formats[at]].kind != tag->kind)
        at--;
    int number = at < 0 ? -1 : page->formats[at];
    if (top(page)->kind == tag->kind && page->stack[page->depth - 1] != number) {
        int listed = 0;
        for (int k = 0; k < page->format_count; k++)
            listed |= page->formats[k] == page->stack[page->depth - 1];
        if (listed)
            page->given_up = 1; /* it stands before a marker */
        else
            pop(page);
        return;
    }
    if (number < 0) {
        end_other(page, tag);
        return;
    }
    if (page->elements[number].on_stack) {
        int depth = page->depth - 1, blocks = 0;
        for (; page->stack[depth] != number; depth--) {
            const Element *within = &page->elements[page->stack[depth]];
            if (within->on_stack && (within->kind->tree & IN_SCOPE_ENDS))
                return;
            page->given_up |= !within->on_stack;
            blocks += (within->kind->tree & SPECIAL) != 0;
        }
        if (blocks)
            end_around_blocks(page, depth, blocks);
        while (!blocks && page->depth > depth)
            pop(page);
        if (page->given_up)
            return;
    }
    memmove(page->formats + at, page->formats + at + 1, (size_t)(page->format_count - at - 1) * sizeof *page->formats);
    page->format_count--;
}

/* ---- Text ---- */

static int reserve_text(Page *page, size_t size)
{
    if (page->text_room - page->text_size >= size)
        return 1;
    size_t room = 2 * page->text_room + size;
    uint8_t *more = grown(page, page->text, room);
    if (!more)
        return 0;
    page->text = more;
    page->text_room = room;
    return 1;
}

static void add_code_point(Page *page, uint32_t point)
{
    uint8_t *to = page->text + page->text_size;
    if (point < 0x80)
        *to++ = (uint8_t)point;
    else if (point < 0x800) {
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
    page->text_size = (size_t)(to - page->text);
}

/* &#38; and &#x26; The place after it, or NULL if it is none. */
static Place add_numeric_reference(Page *page, Place at, Place end)
{
    static const uint16_t WINDOWS_1252[] = {0x20AC, 0x81,   0x201A, 0x192,  0x201E, 0x2026, 0x2020, 0x2021, 0x2C6, 0x2030, 0x160,
                                            0x2039, 0x152,  0x8D,   0x17D,  0x8F,   0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
                                            0x2013, 0x2014, 0x2DC,  0x2122, 0x161,  0x203A, 0x153,  0x9D,   0x17E, 0x178};
    uint32_t point = 0;
    Place from = at + 2;
    int is_hex = from < end && lower(*from) == 'x';
    Place one = from += is_hex;
    for (; one < end && (is_digit(*one) || (is_hex && is_letter(*one) && lower(*one) <= 'f')); one++) {
        uint32_t digit = is_digit(*one) ? (uint32_t)(*one - '0') : (uint32_t)(lower(*one) - 'a' + 10);
        point = point > 0x110000 ? point : point * (is_hex ? 16 : 10) + digit;
    }
    if (one == from)
        return NULL;
    if (!point || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000))
        point = 0xFFFD;
    else if (point >= 0x80 && point < 0xA0)
        point = WINDOWS_1252[point - 0x80];
    add_code_point(page, point);
    return one + (one < end && *one == ';');
}

/* &amp; The place after it, or NULL if it is none. */
static Place add_named_reference(Page *page, Place at, Place end)
{
    int size = 0;
    while (size < LONGEST_NAME && at + 1 + size < end && (is_letter(at[1 + size]) || is_digit(at[1 + size])))
        size++;
    if (at + 1 + size < end && at[1 + size] == ';')
        size++;
    for (; size > 1; size--) { /* the longest one; those without a semicolon may be followed by anything */
        int number = number_of(&references, at + 1, size);
        if (number >= 0) {
            memcpy(page->text + page->text_size, characters[number].bytes, characters[number].size);
            page->text_size += characters[number].size;
            return at + 1 + size;
        }
    }
    return NULL;
}

/* The first of such a byte, or the end. */
static Place found(Place at, Place end, uint8_t byte)
{
    Place place = at < end ? memchr(at, byte, (size_t)(end - at)) : NULL;
    return place ? place : end;
}

/* Write a part of the source behind the text, as its line ends and references are read. */
static void add_text(Page *page, Place at, Place end, int with_references)
{
    if (!reserve_text(page, 2 * (size_t)(end - at) + 16))
        return;
    while (at < end) {
        Place stop = found(at, end, '&'), line_end = page->has_returns ? found(at, stop, '\r') : stop;
        stop = line_end < stop ? line_end : stop;
        memcpy(page->text + page->text_size, at, (size_t)(stop - at));
        page->text_size += (size_t)(stop - at);
        if (stop == end)
            return;
        if (*stop == '\r') {
            page->text[page->text_size++] = '\n';
            at = stop + 1 + (stop + 1 < page->end && stop[1] == '\n');
            continue;
        }
        at = NULL;
        if (with_references && stop + 1 < end)
            at = stop[1] == '#' ? add_numeric_reference(page, stop, end) : add_named_reference(page, stop, end);
        if (!at) {
            page->text[page->text_size++] = '&';
            at = stop + 1;
        }
    }
}

/* Make the text from a place on a piece, or the end of one. */
static void add_text_piece(Page *page, size_t start)
{
    if (start == page->text_size)
        return;
    if (page->continues)
        page->pieces[page->piece_count - 1].size += page->text_size - start;
    else if (add_piece(page, start, page->text_size - start))
        page->continues = 1;
}

static void begin_body(Page *page)
{
    while (page->depth > 1) /* the head */
        pop(page);
    open_implied(page, T_body);
    page->mode = IN_BODY;
}

/* Add the text from a place on, as the mode says: before the body, whitespace is no part of it. */
static void characters_of(Page *page, size_t start)
{
    size_t at = start;
    while (at < page->text_size && is_blank(page->text[at]))
        at++;
    int filled = at < page->text_size;
    if (page->mode <= AFTER_HEAD) {
        if (!filled) {
            page->text_size = start;
            return;
        }
        start = at;
        switch (page->mode) {
        case INITIAL:
            page->quirks = QUIRKS;
            /* fall through */
        case BEFORE_HTML:
            open_implied(page, T_html);
            /* fall through */
        case BEFORE_HEAD:
            open_implied(page, T_head);
            /* fall through */
        default:
            begin_body(page);
        }
    }
    switch (page->mode) {
    case IN_TABLE:
    case IN_TABLE_BODY:
    case IN_ROW:
    case IN_COLUMN_GROUP:
        page->given_up |= filled; /* it would be put before the table */
        break;
    case AFTER_BODY:
    case AFTER_AFTER_BODY:
        page->mode = filled ? IN_BODY : page->mode;
        /* fall through */
    default:
        if (!page->foreign)
            reconstruct(page);
    }
    if (!page->given_up)
        add_text_piece(page, start);
}
