/* Names of elements, roles and classes with what the rules say of them, and references of characters: all of them come
 * from Python, when the module is loaded. Names that the construction of trees knows have a number, too. */

/* What a name means to the rules of html_page.py, html_main.py and html_guard.py, in the order of html_kernel.py. */
enum {
    UNSEEN = 1 << 0,
    INLINE = 1 << 1,
    CHILDLESS = 1 << 2,
    OUTER = 1 << 3,
    MAIN = 1 << 4,
    ARTICLE = 1 << 5,
    SECTION = 1 << 6,
    APART = 1 << 7,
    LIST_BLOCK = 1 << 8,
    APART_ROLE = 1 << 9,
    APART_NAME = 1 << 10,
    GUARD_UNCOUNTED = 1 << 11,
    GUARD_FORMAT = 1 << 12,
    GUARD_FOREIGN = 1 << 13,
    GUARD_RAW = 1 << 14,
    GUARD_SCOPE = 1 << 15,
    GUARD_SPECIAL = 1 << 16
};

/* What an element means to the construction of trees, in the words of the HTML standard. */
enum {
    SPECIAL = 1 << 0,
    FORMATTING = 1 << 1,
    IN_SCOPE_ENDS = 1 << 2, /* "in scope" looks no further */
    IMPLIED_END = 1 << 3,
    CLOSES_P = 1 << 4,  /* its start tag ends a paragraph */
    ENDS_BLOCK = 1 << 5, /* its end tag ends what is open within it, and is ignored without it */
    HEADING = 1 << 6,
    TABLE_PART = 1 << 7,
    EMPTY = 1 << 8,    /* has no content and no end tag */
    BREAKS_OUT = 1 << 9, /* its start tag ends foreign content */
    RAW_TEXT = 1 << 10, /* has no elements within it */
    TEXT_POINT = 1 << 11 /* HTML begins again within it, in foreign content */
};

#define BLOCK (SPECIAL | CLOSES_P | ENDS_BLOCK)
#define ELEMENTS(X)                                                                                                    \
    X(a, FORMATTING) X(address, BLOCK) X(applet, SPECIAL | IN_SCOPE_ENDS) X(area, SPECIAL | EMPTY) X(article, BLOCK)    \
    X(aside, BLOCK) X(b, FORMATTING | BREAKS_OUT) X(base, SPECIAL | EMPTY) X(basefont, SPECIAL | EMPTY)                 \
    X(bgsound, SPECIAL | EMPTY) X(big, FORMATTING | BREAKS_OUT) X(blockquote, BLOCK | BREAKS_OUT)                       \
    X(body, SPECIAL | BREAKS_OUT) X(br, SPECIAL | EMPTY | BREAKS_OUT) X(button, SPECIAL | ENDS_BLOCK)                   \
    X(caption, SPECIAL | IN_SCOPE_ENDS | TABLE_PART) X(center, BLOCK | BREAKS_OUT) X(code, FORMATTING | BREAKS_OUT)     \
    X(col, SPECIAL | EMPTY | TABLE_PART) X(colgroup, SPECIAL | TABLE_PART) X(dd, SPECIAL | IMPLIED_END | BREAKS_OUT)    \
    X(desc, TEXT_POINT) X(details, BLOCK) X(dialog, CLOSES_P | ENDS_BLOCK) X(dir, BLOCK) X(div, BLOCK | BREAKS_OUT)     \
    X(dl, BLOCK | BREAKS_OUT) X(dt, SPECIAL | IMPLIED_END | BREAKS_OUT) X(em, FORMATTING | BREAKS_OUT)                  \
    X(embed, SPECIAL | EMPTY | BREAKS_OUT) X(fieldset, BLOCK) X(figcaption, BLOCK) X(figure, BLOCK)                     \
    X(font, FORMATTING | BREAKS_OUT) X(footer, BLOCK) X(foreignobject, TEXT_POINT) X(form, SPECIAL)                     \
    X(frame, SPECIAL) X(frameset, SPECIAL) X(h1, SPECIAL | HEADING | BREAKS_OUT) X(h2, SPECIAL | HEADING | BREAKS_OUT)  \
    X(h3, SPECIAL | HEADING | BREAKS_OUT) X(h4, SPECIAL | HEADING | BREAKS_OUT)                                         \
    X(h5, SPECIAL | HEADING | BREAKS_OUT) X(h6, SPECIAL | HEADING | BREAKS_OUT) X(head, SPECIAL | BREAKS_OUT)           \
    X(header, BLOCK) X(hgroup, BLOCK) X(hr, SPECIAL | EMPTY | BREAKS_OUT) X(html, SPECIAL | IN_SCOPE_ENDS)              \
    X(i, FORMATTING | BREAKS_OUT) X(iframe, SPECIAL | RAW_TEXT) X(image, 0) X(img, SPECIAL | EMPTY | BREAKS_OUT)        \
    X(input, SPECIAL | EMPTY) X(keygen, SPECIAL | EMPTY) X(li, SPECIAL | IMPLIED_END | BREAKS_OUT)                      \
    X(link, SPECIAL | EMPTY) X(listing, BLOCK | BREAKS_OUT) X(main, BLOCK) X(marquee, SPECIAL | IN_SCOPE_ENDS)          \
    X(math, 0) X(menu, BLOCK | BREAKS_OUT) X(meta, SPECIAL | EMPTY | BREAKS_OUT) X(mi, TEXT_POINT) X(mn, TEXT_POINT)    \
    X(mo, TEXT_POINT) X(ms, TEXT_POINT) X(mtext, TEXT_POINT) X(nav, BLOCK) X(nobr, FORMATTING | BREAKS_OUT)             \
    X(noembed, SPECIAL | RAW_TEXT) X(noframes, SPECIAL | RAW_TEXT) X(noscript, SPECIAL)                                 \
    X(object, SPECIAL | IN_SCOPE_ENDS) X(ol, BLOCK | BREAKS_OUT) X(optgroup, IMPLIED_END) X(option, IMPLIED_END)        \
    X(p, SPECIAL | IMPLIED_END | BREAKS_OUT) X(param, SPECIAL | EMPTY) X(plaintext, SPECIAL) X(pre, BLOCK | BREAKS_OUT) \
    X(rb, IMPLIED_END) X(rp, IMPLIED_END) X(rt, IMPLIED_END) X(rtc, IMPLIED_END) X(ruby, BREAKS_OUT)                    \
    X(s, FORMATTING | BREAKS_OUT) X(script, SPECIAL) X(search, BLOCK) X(section, BLOCK)                                 \
    X(select, SPECIAL | IN_SCOPE_ENDS | ENDS_BLOCK) X(small, FORMATTING | BREAKS_OUT) X(source, SPECIAL | EMPTY)        \
    X(span, BREAKS_OUT) X(strike, FORMATTING | BREAKS_OUT) X(strong, FORMATTING | BREAKS_OUT)                           \
    X(style, SPECIAL | RAW_TEXT) X(sub, BREAKS_OUT) X(summary, BLOCK) X(sup, BREAKS_OUT) X(svg, 0)                      \
    X(table, SPECIAL | IN_SCOPE_ENDS | BREAKS_OUT) X(tbody, SPECIAL | TABLE_PART)                                       \
    X(td, SPECIAL | IN_SCOPE_ENDS | TABLE_PART) X(template, SPECIAL | IN_SCOPE_ENDS) X(textarea, SPECIAL)               \
    X(tfoot, SPECIAL | TABLE_PART) X(th, SPECIAL | IN_SCOPE_ENDS | TABLE_PART) X(thead, SPECIAL | TABLE_PART)           \
    X(title, SPECIAL | TEXT_POINT) X(tr, SPECIAL | TABLE_PART) X(track, SPECIAL | EMPTY)                                \
    X(tt, FORMATTING | BREAKS_OUT) X(u, FORMATTING | BREAKS_OUT) X(ul, BLOCK | BREAKS_OUT) X(var, BREAKS_OUT)           \
    X(wbr, SPECIAL | EMPTY) X(xmp, SPECIAL | RAW_TEXT)

#define NUMBER_OF(name, tree) T_##name,
enum { OTHER, ELEMENTS(NUMBER_OF) KNOWN };
#undef NUMBER_OF

typedef struct {
    int number; /* OTHER for a name that the construction of trees does not know */
    int tree;
    int rules;
} Kind;

#define LONGEST_NAME 32 /* of a reference */
#define SLOTS 8192 /* more than twice the number of names or references: 2,231 */
#define MOST 4000

/* Strings of at most LONGEST_NAME bytes, by open addressing. */
typedef struct {
    uint64_t first; /* their first 8 bytes, or fewer */
    char bytes[LONGEST_NAME];
    uint8_t size;
    int16_t number;
} Slot;

typedef struct {
    Slot slots[SLOTS];
    int count;
} Map;

static Kind kinds[MOST];
static Map names;
static struct {
    uint8_t size;
    uint8_t bytes[8];
} characters[MOST];
static Map references;

/* The slot of a string, or the one where it would be. */
static const Slot *slot_of(const Map *map, uint64_t first, Place bytes, int size)
{
    uint64_t hash = (first + (uint64_t)size) * 0x9E3779B97F4A7C15u;
    for (int k = 8; k < size; k++)
        hash = (hash ^ bytes[k]) * 0x9E3779B97F4A7C15u;
    for (unsigned at = (unsigned)(hash >> 40);; at++) {
        const Slot *slot = &map->slots[at % SLOTS];
        if (!slot->size || (slot->first == first && slot->size == size && (size <= 8 || !memcmp(slot->bytes, bytes, (size_t)size))))
            return slot;
    }
}

/* The number of a string, or -1. */
static int number_of(const Map *map, const void *bytes, int size)
{
    if (size < 1 || size > LONGEST_NAME)
        return -1;
    const Slot *slot = slot_of(map, first_of(bytes, size), bytes, size);
    return slot->size ? slot->number : -1;
}

/* The number of a string, which is added if it is new; -1 for one that is too long, or one too many. */
static int numbered(Map *map, const void *bytes, int size)
{
    if (size < 1 || size > LONGEST_NAME)
        return -1;
    Slot *slot = (Slot *)slot_of(map, first_of(bytes, size), bytes, size);
    if (slot->size)
        return slot->number;
    if (map->count == MOST)
        return -1;
    slot->first = first_of(bytes, size);
    slot->size = (uint8_t)size;
    memcpy(slot->bytes, bytes, (size_t)size);
    return slot->number = (int16_t)map->count++;
}

static void fill_names(void)
{
    static const struct {
        const char *name;
        int tree;
    } ALL[] = {
        {"", 0},
#define NAME_OF(name, tree) {#name, tree},
        ELEMENTS(NAME_OF)
#undef NAME_OF
    };
    names.count = 1; /* the kind OTHER, of unknown names */
    for (int number = 1; number < KNOWN; number++) {
        numbered(&names, ALL[number].name, (int)strlen(ALL[number].name));
        kinds[number].number = number;
        kinds[number].tree = ALL[number].tree;
    }
}

static int is_letter(uint8_t byte)
{
    return (uint8_t)((byte | 0x20) - 'a') < 26;
}

static int is_digit(uint8_t byte)
{
    return (uint8_t)(byte - '0') < 10;
}

static uint8_t lower(uint8_t byte)
{
    return (uint8_t)(byte - 'A') < 26 ? byte | 0x20 : byte;
}

/* The whitespace of HTML. */
static int is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\n' || byte == '\t' || byte == '\r' || byte == '\f';
}

/* What a name in any case, before the end of its page, means; the kind OTHER for an unknown one. */
static const Kind *kind_of(Place name, int64_t size, Place end)
{
    uint8_t folded[LONGEST_NAME];
    if (size < 1 || size > LONGEST_NAME)
        return &kinds[OTHER];
    for (int k = 8; k < size; k++)
        folded[k] = lower(name[k]);
    uint64_t first = first_within(name, size, end);
    first |= (bytes_between(first & ~HIGH, 'A', 'Z') & ~first) >> 2; /* in lower case */
    if (size > 8)
        for (int k = 0; k < 8; k++)
            folded[k] = lower(name[k]);
    const Slot *slot = slot_of(&names, first, folded, (int)size);
    return &kinds[slot->size ? slot->number : OTHER];
}

/* Whether two names are equal in any case. */
static int same_name(Place one, int64_t size, Place other, int64_t other_size)
{
    if (size != other_size)
        return 0;
    for (int64_t k = 0; k < size; k++)
        if (lower(one[k]) != lower(other[k]))
            return 0;
    return 1;
}

enum { NO_SPACE, SPACE, LINE_END, MAY_BE_SPACE };
static uint8_t spaces[256];

static void fill_spaces(void)
{
    for (int c = 0; c < 128; c++)
        spaces[c] = is_space((uint8_t)c) ? SPACE : NO_SPACE;
    spaces['\n'] = LINE_END;
    spaces[0xC2] = spaces[0xE1] = spaces[0xE2] = spaces[0xE3] = MAY_BE_SPACE;
}
