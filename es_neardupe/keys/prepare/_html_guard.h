/* The scan of html_guard.py: whether a parser would take much longer for a page than for others. */

enum {
    GUARD_CHARACTERS = 1 << 23,
    GUARD_MARKUP = 1 << 18,
    GUARD_DEPTH = 1000,
    GUARD_ATTRIBUTES = 1000,
    GUARD_FORMATS_BY_TAGS = 1000000
};

typedef struct {
    const Kind *kind;
    Place name;
    int size;
} Opened;

typedef struct {
    Opened stack[GUARD_DEPTH + 1], raw;
    int depth, foreign;
    int64_t formats;
    int counts[MOST];
} Scan;

static int is_named_as(const Opened *one, const Opened *other)
{
    return one->kind == other->kind && (one->kind != &kinds[OTHER] || same_name(one->name, one->size, other->name, other->size));
}

/* The number of the open element that an end tag closes; -1 if another one keeps it open, or there is none. */
static int closed_by(const Scan *scan, const Opened *end)
{
    int rules = end->kind->rules;
    for (int number = scan->depth - 1; number >= 0; number--) {
        const Opened *above = &scan->stack[number];
        if (is_named_as(above, end))
            return number;
        if (above->kind->number == T_template || ((above->kind->rules & GUARD_SCOPE) && !(rules & GUARD_SCOPE)) ||
            ((above->kind->rules & GUARD_SPECIAL) && !(rules & (GUARD_SPECIAL | GUARD_FORMAT | GUARD_SCOPE))))
            return -1;
    }
    return -1;
}

static void guard_close(Scan *scan, const Opened *end)
{
    if (!scan->counts[end->kind - kinds])
        return;
    if (scan->raw.kind) {
        if (!is_named_as(&scan->raw, end))
            return;
        scan->raw.kind = NULL;
    }
    int number = closed_by(scan, end);
    if (number < 0)
        return;
    if (end->kind->rules & GUARD_FORMAT) {
        memmove(scan->stack + number, scan->stack + number + 1, (size_t)(--scan->depth - number) * sizeof *scan->stack);
        scan->formats--;
        scan->counts[end->kind - kinds]--;
        return;
    }
    while (scan->depth > number) {
        const Kind *kind = scan->stack[--scan->depth].kind;
        scan->counts[kind - kinds]--;
        scan->foreign -= (kind->rules & GUARD_FOREIGN) != 0;
    }
}

static void guard_open(Scan *scan, const Opened *start, int is_closed)
{
    int rules = start->kind->rules;
    if ((rules & GUARD_UNCOUNTED) || (scan->foreign && is_closed && !(rules & (GUARD_SPECIAL | GUARD_FORMAT))))
        return;
    if ((rules & GUARD_RAW) && !scan->raw.kind)
        scan->raw = *start;
    scan->stack[scan->depth++] = *start;
    scan->counts[start->kind - kinds]++;
    scan->foreign += (rules & GUARD_FOREIGN) != 0;
    scan->formats += (rules & GUARD_FORMAT) != 0;
}

/* The place after the attributes of a tag, and the number of these. */
static Place attributes_end(Place at, Place end, int *count)
{
    for (*count = 0;; ++*count) {
        Place name = at;
        while (name < end && (is_blank(*name) || *name == '/'))
            name++;
        Place last = name += name < end && *name == '=';
        while (last < end && !is_blank(*last) && *last != '/' && *last != '>' && *last != '=')
            last++;
        if (last == name)
            return at;
        Place value = at = last;
        while (value < end && is_blank(*value))
            value++;
        if (value == end || *value != '=')
            continue;
        do
            value++;
        while (value < end && is_blank(*value));
        if (value < end && (*value == '"' || *value == '\'')) {
            Place quote = found(value + 1, end, *value);
            at = quote < end ? quote + 1 : at;
        } else {
            while (value < end && !is_blank(*value) && *value != '>')
                at = ++value;
        }
    }
}

/* Whether a small page is within the limits, as most are, whatever its tags mean: it has few, and none of what may be one has
 * many attributes. */
static int is_surely_cheap(Place at, Place end)
{
    int tags = 0, count;
    if (end - at > 1 << 16)
        return 0;
    while ((at = found(at, end, '<')) < end) {
        if (++at < end && is_letter(*at)) {
            Place last = at;
            while (last < end && !is_blank(*last) && *last != '/' && *last != '>')
                last++;
            if (++tags > GUARD_DEPTH)
                return 0;
            attributes_end(last, end, &count);
            if (count > GUARD_ATTRIBUTES)
                return 0;
        }
    }
    return 1; /* no more than 1,000 x 1,000 formats and tags */
}

/* The place after the first such end tag, without its >, or the end of the page. */
static Place after_end_of(Place at, Place end, const char *name)
{
    int size = (int)strlen(name);
    for (; (at = found(at, end, '<')) < end; at++)
        if (end - at >= size + 2 && at[1] == '/' && same_name(at + 2, size, (Place)name, size))
            return at + 2 + size;
    return end;
}

static int exceeds(Scan *scan, Place at, Place end)
{
    int64_t tags = 0, most = 0;
    while ((at = found(at, end, '<')) < end) {
        if (end - at >= 4 && !memcmp(at, "<!--", 4)) {
            for (at += 4; (at = found(at, end, '-')) < end; at++)
                if (end - at > 2 && at[1] == '-' && (at[2] == '>' || (at[2] == '!' && end - at > 3 && at[3] == '>')))
                    break;
            continue; /* what is left of its end is text */
        }
        int is_end = end - at > 1 && at[1] == '/', count;
        Place name = at + 1 + is_end, last = name;
        if (name >= end || !is_letter(*name)) {
            at++;
            continue;
        }
        while (last < end && !is_blank(*last) && *last != '/' && *last != '>')
            last++;
        Opened tag = {kind_of(name, last - name, end), name, (int)(last - name)};
        at = attributes_end(last, end, &count);
        int is_closed = 0;
        for (; at < end && (is_blank(*at) || *at == '/'); at++)
            is_closed |= *at == '/';
        if (is_end) {
            guard_close(scan, &tag);
            continue;
        }
        tags++;
        if (count > GUARD_ATTRIBUTES)
            return 1;
        if ((tag.kind->number == T_script || tag.kind->number == T_style) && !scan->foreign) {
            at = after_end_of(at, end, tag.kind->number == T_script ? "script" : "style");
            continue;
        }
        guard_open(scan, &tag, is_closed);
        if (scan->depth > GUARD_DEPTH)
            return 1;
        most = scan->formats > most ? scan->formats : most;
    }
    return most * tags > GUARD_FORMATS_BY_TAGS;
}
