/* The tokens of a page, and what each adds to it: the insertion modes of the HTML standard, as far as nothing is moved. */

#include "_html_page.h"

/* ---- Attributes ---- */

/* Whether the declarations of a style hide an element; the last one of a property counts. */
static int hides(Place at, Place end)
{
    static const char IMPORTANT[] = "!important";
    int none = 0, invisible = 0;
    while (at < end) {
        char words[2][12] = {"", ""}; /* the property and its value, as far as they matter */
        int sizes[2] = {0, 0}, part = 0, blanks = 0;
        for (; at < end && *at != ';'; at++) {
            if (!part && *at == ':') {
                part = 1;
                blanks = 0;
            } else if (part && end - at >= 10 && same_name(at, 10, (Place)IMPORTANT, 10)) {
                at += 9;
            } else if (is_space(*at)) {
                blanks = 1;
            } else {
                if (blanks && sizes[part] && sizes[part] < 11)
                    words[part][sizes[part]++] = ' ';
                if (sizes[part] < 11)
                    words[part][sizes[part]++] = (char)lower(*at);
                blanks = 0;
            }
        }
        at++;
        if (!strcmp(words[0], "display"))
            none = !strcmp(words[1], "none");
        else if (!strcmp(words[0], "visibility"))
            invisible = !strcmp(words[1], "hidden") || !strcmp(words[1], "collapse");
    }
    return none || invisible;
}

/* Whether one of some names, without - and _, is in the list of html_main.py. */
static int is_named_apart(Place at, Place end)
{
    while (at < end) {
        uint8_t name[LONGEST_NAME];
        int size = 0;
        for (; at < end && !is_space(*at); at++)
            if (*at != '-' && *at != '_') {
                if (size < LONGEST_NAME)
                    name[size] = lower(*at);
                size++;
            }
        at++;
        int number = size && size <= LONGEST_NAME ? number_of(&names, name, size) : -1;
        if (number >= 0 && (kinds[number].rules & APART_NAME))
            return 1;
    }
    return 0;
}

enum { ID = 1, CLASS = 2, ROLE = 4, STYLE = 8, HIDDEN_NAME = 16, HREF_NAME = 32, OPEN_NAME = 64, TYPE = 128 };

static int attribute_of(Place name, int64_t size)
{
    static const struct {
        const char *name;
        int size, attribute;
    } ALL[] = {{"class", 5, CLASS}, {"href", 4, HREF_NAME},      {"id", 2, ID},          {"style", 5, STYLE},
               {"role", 4, ROLE},   {"hidden", 6, HIDDEN_NAME}, {"open", 4, OPEN_NAME}, {"type", 4, TYPE}};
    for (int k = 0; k < 8; k++)
        if (size == ALL[k].size && lower(*name) == (uint8_t)ALL[k].name[0] && same_name(name, size, (Place)ALL[k].name, size))
            return ALL[k].attribute;
    return 0;
}

/* What an attribute says of an element. The first of several with the same name counts. */
static void read_attribute(Page *page, Tag *tag, int attribute, Place value, Place end)
{
    if (attribute == HREF_NAME)
        tag->marks |= HREF;
    else if (attribute == OPEN_NAME)
        tag->marks |= OPEN;
    else if (attribute < HREF_NAME || attribute == TYPE) {
        if (attribute == ROLE)
            tag->marks |= HAS_ROLE;
        if ((attribute == ID || attribute == CLASS || attribute == ROLE) && !page->with_names)
            return;
        for (Place at = value; at < end; at++) /* a reference, whitespace that is not ASCII, or the Kelvin sign, in lower case k */
            if (*at == '&' || (spaces[*at] == MAY_BE_SPACE && (unicode_space(at) || !memcmp(at, "\xE2\x84\xAA", 3)))) {
                page->given_up = 1;
                return;
            }
        if (attribute == STYLE && hides(value, end))
            tag->marks |= HIDDEN;
        if (attribute == HIDDEN_NAME && !same_name(value, end - value, (Place) "until-found", 11))
            tag->marks |= HIDDEN;
        if (attribute == TYPE && same_name(value, end - value, (Place) "hidden", 6))
            tag->marks |= TYPE_HIDDEN;
        if (attribute == ROLE)
            tag->role = kind_of(value, found(value, end, ' ') - value, end)->rules & (MAIN | ARTICLE | APART_ROLE);
        if ((attribute == ID || attribute == CLASS) && is_named_apart(value, end))
            tag->marks |= NAMED_APART;
    }
}

/* ---- Tags ---- */

/* The place after the name of a tag. */
static Place name_end(Place at, Place end)
{
    while (at < end && !is_blank(*at) && *at != '/' && *at != '>')
        at++;
    return at;
}

/* Read the attributes of a tag up to its end; the place after it, or NULL if the page ends before. */
static Place read_attributes(Page *page, Tag *tag, Place at)
{
    Place end = page->end;
    int seen = 0;
    for (;;) {
        while (at < end && (is_blank(*at) || *at == '/'))
            at++;
        if (at == end)
            return NULL;
        if (*at == '>') {
            tag->is_closed = at[-1] == '/';
            return at + 1;
        }
        Place name = at++; /* its first byte may be = */
        while (at < end && !is_blank(*at) && *at != '/' && *at != '>' && *at != '=')
            at++;
        Place last = at, value = at, value_end = at;
        while (at < end && is_blank(*at))
            at++;
        if (at < end && *at == '=') {
            do
                at++;
            while (at < end && is_blank(*at));
            if (at == end)
                return NULL;
            if (*at == '"' || *at == '\'') {
                value = at + 1;
                value_end = found(value, end, *at);
                if (value_end == end)
                    return NULL;
                at = value_end + 1;
            } else {
                value = at;
                while (at < end && !is_blank(*at) && *at != '>')
                    at++;
                value_end = at;
                if (at == end)
                    return NULL;
                if (*at == '>') { /* a slash before it belongs to the value */
                    int attribute = attribute_of(name, last - name);
                    if (!tag->is_end && attribute & ~seen)
                        read_attribute(page, tag, attribute, value, value_end);
                    return at + 1;
                }
            }
        }
        int attribute = attribute_of(name, last - name);
        if (!tag->is_end && attribute & ~seen)
            read_attribute(page, tag, attribute, value, value_end);
        seen |= attribute;
    }
}

/* Read a tag, from its name on; the place after it, or NULL if the page ends before. */
static Place read_tag(Page *page, Tag *tag, Place name, int is_end)
{
    Place end = name_end(name, page->end);
    *tag = (Tag){kind_of(name, end - name, page->end), name, (int)(end - name), 0, 0, (uint8_t)is_end, 0};
    Place custom = NULL;
    for (Place at = name; at < end; at++) {
        if (*at >= 0x80) { /* letters that are ASCII in another case */
            page->given_up = 1;
            return NULL;
        }
        if (*at == '-')
            custom = at + 1;
    }
    if (custom && page->with_names && !is_end && is_named_apart(custom, end))
        tag->marks |= NAMED_APART;
    return read_attributes(page, tag, end);
}

/* Whether an end tag of this name begins at a place, which is that of a <. */
static int is_end_of(Place at, Place end, Place name, int size)
{
    return end - at > size + 2 && at[1] == '/' && same_name(at + 2, size, name, size) &&
           (is_blank(at[2 + size]) || at[2 + size] == '/' || at[2 + size] == '>');
}

/* The end tag of an element whose content has no tags, or the end. */
static Place raw_end(Place at, Place end, const Tag *tag)
{
    while ((at = found(at, end, '<')) < end && !is_end_of(at, end, tag->name, tag->size))
        at++;
    return at;
}

/* The end tag of a script, or the end: within <!-- another script may begin and end. */
static Place script_end(Place at, Place end)
{
    static const uint8_t SCRIPT[] = "script";
    int escaped = 0, twice = 0;
    for (; at < end; at++) {
        if (*at == '-' && escaped) {
            if (end - at > 2 && at[1] == '-' && at[2] == '>')
                escaped = twice = 0;
        } else if (*at == '<') {
            if (is_end_of(at, end, SCRIPT, 6)) {
                if (!twice)
                    return at;
                twice = 0;
            } else if (!escaped) {
                if (end - at > 3 && !memcmp(at, "<!--", 4)) {
                    escaped = 1;
                    at++; /* its dashes may be those of --> */
                }
            } else if (!twice && end - at > 7 && same_name(at + 1, 6, SCRIPT, 6)) {
                twice = is_blank(at[7]) || at[7] == '/' || at[7] == '>';
            }
        } else if (!escaped) {
            at = found(at, end, '<') - 1;
        }
    }
    return end;
}

/* The place after a comment, whose first four bytes are read. */
static Place comment_end(Place at, Place end)
{
    if (at < end && *at == '>')
        return at + 1;
    if (end - at > 1 && at[0] == '-' && at[1] == '>')
        return at + 2;
    while ((at = found(at, end, '-')) < end) {
        if (end - at > 2 && at[1] == '-' && at[2] == '>')
            return at + 3;
        if (end - at > 3 && at[1] == '-' && at[2] == '!' && at[3] == '>')
            return at + 4;
        at++;
    }
    return end;
}

/* ---- Start tags ---- */

static void raw_element(Page *page, const Tag *tag)
{
    if (open_element(page, tag) < 0)
        return;
    int number = tag->kind->number;
    Place stop = number == T_script ? script_end(page->at, page->end) : raw_end(page->at, page->end, tag);
    if (!(tag->kind->rules & UNSEEN)) {
        size_t start = page->text_size;
        add_text(page, page->at, stop, number == T_title || number == T_textarea);
        add_text_piece(page, start);
    }
    page->at = stop;
    if (stop < page->end) {
        Tag end;
        Place after = read_tag(page, &end, stop + 2, 1);
        page->at = after ? after : page->end;
    }
    pop(page);
}

static void clear_to(Page *page, int one, int two, int three)
{
    while (page->depth > 1 && !top_is(page, one) && !top_is(page, two) && !top_is(page, three))
        pop(page);
}

static void reset_mode(Page *page)
{
    for (int depth = page->depth - 1; depth >= 0; depth--) {
        const Element *element = &page->elements[page->stack[depth]];
        switch (element->on_stack ? element->kind->number : OTHER) {
        case T_td:
        case T_th:
            page->mode = IN_CELL;
            return;
        case T_tr:
            page->mode = IN_ROW;
            return;
        case T_tbody:
        case T_thead:
        case T_tfoot:
            page->mode = IN_TABLE_BODY;
            return;
        case T_caption:
            page->mode = IN_CAPTION;
            return;
        case T_table:
            page->mode = IN_TABLE;
            return;
        case T_body:
            page->mode = IN_BODY;
            return;
        }
    }
}

static void open_list_item(Page *page, const Tag *tag)
{
    int number = tag->kind->number;
    for (int depth = page->depth - 1; depth >= 0; depth--) {
        const Element *element = &page->elements[page->stack[depth]];
        int one = element->on_stack ? element->kind->number : OTHER;
        if (number == T_li ? one == T_li : one == T_dd || one == T_dt) {
            end_implied(page, one);
            pop_through(page, one);
            break;
        }
        if (element->on_stack && (element->kind->tree & SPECIAL) && one != T_address && one != T_div && one != T_p)
            break;
    }
    close_p(page);
    open_element(page, tag);
}

static void open_marked(Page *page, const Tag *tag, enum Mode mode)
{
    open_element(page, tag);
    if (page->format_count < MAX_FORMATS)
        page->formats[page->format_count++] = -1;
    else
        page->given_up = 1;
    page->mode = mode;
}

/* A template, whose content is no part of the tree. */
static void open_template(Page *page, const Tag *tag)
{
    page->given_up |= page->open_counts[T_template];
    page->outer_mode = page->mode;
    open_marked(page, tag, IN_BODY);
}

static void close_template(Page *page)
{
    if (page->open_counts[T_template]) {
        pop_through(page, T_template);
        clear_formats(page);
        page->mode = page->outer_mode;
    }
}

static void start_in_body(Page *page, const Tag *tag)
{
    int number = tag->kind->number, tree = tag->kind->tree;
    if (page->open_counts[T_select] && number != T_option && number != T_optgroup) {
        page->given_up = 1;
        return;
    }
    if (tree & CLOSES_P) {
        close_p(page);
        open_element(page, tag);
        return;
    }
    if (tree & HEADING) {
        close_p(page);
        if (top(page)->kind->tree & HEADING)
            pop(page);
        open_element(page, tag);
        return;
    }
    switch (number) {
    case T_html:
    case T_body:
        page->given_up |= (tag->marks & HAS_ROLE) != 0; /* it is added to the one that is open */
        return;
    case T_base:
    case T_basefont:
    case T_bgsound:
    case T_link:
    case T_meta:
    case T_param:
    case T_source:
    case T_track:
        add_element(page, tag);
        return;
    case T_title:
    case T_noframes:
    case T_style:
    case T_script:
    case T_iframe:
    case T_noembed:
        raw_element(page, tag);
        return;
    case T_textarea:
        page->given_up |= first_closed(page) < page->format_count; /* lexbor opens them within it */
        raw_element(page, tag);
        return;
    case T_xmp:
        close_p(page);
        reconstruct(page);
        raw_element(page, tag);
        return;
    case T_head:
    case T_frame:
        return;
    case T_template:
        open_template(page, tag);
        return;
    case T_frameset:
    case T_plaintext:
    case T_image:
    case T_keygen:
        page->given_up = 1;
        return;
    case T_form:
        page->given_up |= page->open_counts[T_template];
        if (page->form < 0) {
            close_p(page);
            page->form = open_element(page, tag);
        }
        return;
    case T_li:
    case T_dd:
    case T_dt:
        open_list_item(page, tag);
        return;
    case T_p:
        close_p(page);
        open_element(page, tag);
        return;
    case T_hr:
        close_p(page);
        add_element(page, tag);
        return;
    case T_button:
        if (in_scope(page, T_button, 0, 0)) {
            end_implied(page, 0);
            pop_through(page, T_button);
        }
        break;
    case T_a:
        for (int at = page->format_count - 1; at >= 0 && page->formats[at] >= 0; at--)
            if (page->elements[page->formats[at]].kind == tag->kind) {
                int before = page->format_count;
                end_format(page, tag);
                page->given_up |= page->format_count == before;
                break;
            }
        reconstruct(page);
        add_format(page, open_element(page, tag));
        return;
    case T_nobr:
        reconstruct(page);
        page->given_up |= page->open_counts[T_nobr] > 0;
        add_format(page, open_element(page, tag));
        return;
    case T_applet:
    case T_marquee:
    case T_object:
        reconstruct(page);
        open_marked(page, tag, page->mode);
        return;
    case T_table:
        if (page->quirks != QUIRKS) {
            if (page->quirks == NOT_KNOWN && in_scope(page, T_p, T_button, T_button))
                page->given_up = 1;
            close_p(page);
        }
        open_element(page, tag);
        page->mode = IN_TABLE;
        return;
    case T_option:
    case T_optgroup:
        if (page->open_counts[T_select])
            end_implied(page, number == T_option ? T_optgroup : 0);
        else if (top_is(page, T_option))
            pop(page);
        break;
    case T_rb:
    case T_rtc:
    case T_rp:
    case T_rt:
        if (in_scope(page, T_ruby, 0, 0))
            end_implied(page, number == T_rp || number == T_rt ? T_rtc : 0);
        open_element(page, tag);
        return;
    case T_svg:
    case T_math:
        reconstruct(page);
        if (tag->is_closed)
            add_element(page, tag);
        else if (open_element(page, tag) >= 0)
            page->foreign = page->depth;
        return;
    default:
        if (tree & TABLE_PART) {
            page->given_up |= page->open_counts[T_template]; /* whose first tag says what it holds */
            return;
        }
    }
    reconstruct(page);
    if (tree & EMPTY)
        add_element(page, tag);
    else if (tree & FORMATTING)
        add_format(page, open_element(page, tag));
    else
        open_element(page, tag);
}

static void start_foreign(Page *page, const Tag *tag)
{
    if ((tag->kind->tree & BREAKS_OUT) || (top(page)->kind->tree & TEXT_POINT) || (top(page)->kind->rules & CHILDLESS) ||
        same_name(top(page)->name, top(page)->size, (Place) "annotation-xml", 14))
        page->given_up = 1;
    else if (tag->is_closed)
        add_element(page, tag);
    else
        open_element(page, tag);
}

/* Close the cell that is open. */
static void close_cell(Page *page)
{
    end_implied(page, 0);
    clear_to(page, T_td, T_th, T_th);
    pop(page);
    clear_formats(page);
    page->mode = IN_ROW;
}

/* Close the body of a table that is open; 0 if there is none. */
static int close_table_body(Page *page)
{
    if (!in_table_scope(page, T_tbody) && !in_table_scope(page, T_thead) && !in_table_scope(page, T_tfoot))
        return 0;
    clear_to(page, T_tbody, T_thead, T_tfoot);
    pop(page);
    page->mode = IN_TABLE;
    return 1;
}

static int close_row(Page *page)
{
    if (!in_table_scope(page, T_tr))
        return 0;
    clear_to(page, T_tr, T_tr, T_tr);
    pop(page);
    page->mode = IN_TABLE_BODY;
    return 1;
}

static int close_caption(Page *page)
{
    if (!in_table_scope(page, T_caption))
        return 0;
    end_implied(page, 0);
    pop_through(page, T_caption);
    clear_formats(page);
    page->mode = IN_TABLE;
    return 1;
}

static int close_table(Page *page)
{
    if (!in_table_scope(page, T_table))
        return 0;
    pop_through(page, T_table);
    reset_mode(page);
    return 1;
}

/* A start tag directly within a table; whether it is read again in another mode. */
static int start_in_table(Page *page, const Tag *tag)
{
    switch (tag->kind->number) {
    case T_caption:
        clear_to(page, T_table, T_table, T_table);
        open_marked(page, tag, IN_CAPTION);
        return 0;
    case T_colgroup:
        clear_to(page, T_table, T_table, T_table);
        open_element(page, tag);
        page->mode = IN_COLUMN_GROUP;
        return 0;
    case T_col:
        clear_to(page, T_table, T_table, T_table);
        open_implied(page, T_colgroup);
        page->mode = IN_COLUMN_GROUP;
        return 1;
    case T_tbody:
    case T_thead:
    case T_tfoot:
        clear_to(page, T_table, T_table, T_table);
        open_element(page, tag);
        page->mode = IN_TABLE_BODY;
        return 0;
    case T_td:
    case T_th:
    case T_tr:
        clear_to(page, T_table, T_table, T_table);
        open_implied(page, T_tbody);
        page->mode = IN_TABLE_BODY;
        return 1;
    case T_table:
        return close_table(page);
    case T_style:
    case T_script:
        raw_element(page, tag);
        return 0;
    case T_template:
        open_template(page, tag);
        return 0;
    case T_form:
        if (page->form < 0) {
            page->form = open_element(page, tag);
            pop(page);
        }
        return 0;
    case T_input:
        if (tag->marks & TYPE_HIDDEN) {
            add_element(page, tag);
            return 0;
        }
        /* fall through */
    default:
        page->given_up = 1; /* it would be put before the table */
        return 0;
    }
}

/* A start tag in the mode of the page; whether it is read again in another one. */
static int start_once(Page *page, const Tag *tag)
{
    int number = tag->kind->number;
    switch (page->mode) {
    case INITIAL:
        page->quirks = QUIRKS;
        page->mode = BEFORE_HTML;
        return 1;
    case BEFORE_HTML:
        page->mode = BEFORE_HEAD;
        if (number != T_html)
            return open_implied(page, T_html), 1;
        open_element(page, tag);
        return 0;
    case BEFORE_HEAD:
        if (number == T_html)
            break;
        page->mode = IN_HEAD;
        if (number != T_head)
            return open_implied(page, T_head), 1;
        open_element(page, tag);
        return 0;
    case IN_HEAD_NOSCRIPT:
        if (number == T_html || number == T_basefont || number == T_bgsound || number == T_link || number == T_meta ||
            number == T_noframes || number == T_style)
            break;
        if (number == T_head || number == T_noscript)
            return 0;
        pop(page);
        page->mode = IN_HEAD;
        return 1;
    case IN_HEAD:
        if (number == T_noscript) {
            open_element(page, tag);
            page->mode = IN_HEAD_NOSCRIPT;
            return 0;
        }
        /* fall through */
    case AFTER_HEAD:
        switch (number) {
        case T_html:
        case T_base:
        case T_basefont:
        case T_bgsound:
        case T_link:
        case T_meta:
        case T_title:
        case T_noframes:
        case T_style:
        case T_script:
        case T_template:
        case T_frameset:
        case T_head:
            break;
        default:
            begin_body(page);
            if (number != T_body)
                return 1;
            top(page)->marks = tag->marks;
            top(page)->role = tag->role;
            return 0;
        }
        break;
    case IN_CAPTION:
        if (tag->kind->tree & TABLE_PART)
            return close_caption(page);
        break;
    case IN_COLUMN_GROUP:
        if (number == T_html)
            break;
        if (number == T_col) {
            add_element(page, tag);
            return 0;
        }
        page->given_up |= number == T_template || !top_is(page, T_colgroup);
        pop(page);
        page->mode = IN_TABLE;
        return 1;
    case IN_TABLE_BODY:
        if (number == T_tr || number == T_td || number == T_th) {
            clear_to(page, T_tbody, T_thead, T_tfoot);
            page->mode = IN_ROW;
            if (number != T_tr)
                return open_implied(page, T_tr), 1;
            open_element(page, tag);
            return 0;
        }
        return tag->kind->tree & TABLE_PART ? close_table_body(page) : start_in_table(page, tag);
    case IN_ROW:
        if (number == T_td || number == T_th) {
            clear_to(page, T_tr, T_tr, T_tr);
            open_marked(page, tag, IN_CELL);
            return 0;
        }
        return tag->kind->tree & TABLE_PART ? close_row(page) : start_in_table(page, tag);
    case IN_TABLE:
        return start_in_table(page, tag);
    case IN_CELL:
        if (tag->kind->tree & TABLE_PART)
            return close_cell(page), 1;
        break;
    case AFTER_BODY:
    case AFTER_AFTER_BODY:
        if (number != T_html)
            page->mode = IN_BODY;
        break;
    case IN_BODY:
        break;
    }
    start_in_body(page, tag);
    return 0;
}

static void start_tag(Page *page, const Tag *tag)
{
    if (page->foreign)
        start_foreign(page, tag);
    else
        while (!page->given_up && start_once(page, tag))
            ;
}

/* ---- End tags ---- */

static void end_in_body(Page *page, const Tag *tag)
{
    int number = tag->kind->number, tree = tag->kind->tree;
    if (page->open_counts[T_select] && number != T_option && number != T_optgroup && number != T_select)
        page->given_up = 1;
    else if (tree & ENDS_BLOCK) {
        if (in_scope(page, number, 0, 0)) {
            end_implied(page, 0);
            pop_through(page, number);
        }
    } else if (tree & FORMATTING)
        end_format(page, tag);
    else if (tree & HEADING) {
        int open = 0;
        for (int depth = page->depth - 1; depth >= 0 && !open; depth--) {
            const Element *element = &page->elements[page->stack[depth]];
            if (element->on_stack && (element->kind->tree & HEADING))
                open = 1;
            else if (element->on_stack && (element->kind->tree & IN_SCOPE_ENDS))
                break;
        }
        if (open) {
            end_implied(page, 0);
            while (!(top(page)->kind->tree & HEADING))
                pop(page);
            pop(page);
        }
    } else
        switch (number) {
        case T_template:
            close_template(page);
            return;
        case T_body:
        case T_html:
            if (in_scope(page, T_body, 0, 0))
                page->mode = number == T_body ? AFTER_BODY : AFTER_AFTER_BODY;
            return;
        case T_form: {
            int form = page->form;
            page->form = -1;
            if (form < 0 || !page->elements[form].on_stack || !in_scope(page, T_form, 0, 0))
                return;
            end_implied(page, 0);
            if (page->stack[page->depth - 1] == form)
                pop(page);
            else
                forget(page, &page->elements[form]);
            return;
        }
        case T_p:
            if (!in_scope(page, T_p, T_button, T_button))
                open_implied(page, T_p);
            close_p(page);
            return;
        case T_li:
            if (in_scope(page, T_li, T_ol, T_ul)) {
                end_implied(page, T_li);
                pop_through(page, T_li);
            }
            return;
        case T_dd:
        case T_dt:
            if (in_scope(page, number, 0, 0)) {
                end_implied(page, number);
                pop_through(page, number);
            }
            return;
        case T_applet:
        case T_marquee:
        case T_object:
            if (in_scope(page, number, 0, 0)) {
                end_implied(page, 0);
                pop_through(page, number);
                clear_formats(page);
            }
            return;
        case T_br:
            reconstruct(page);
            if (open_implied(page, T_br) >= 0)
                pop(page);
            return;
        default:
            end_other(page, tag);
        }
}

static void end_foreign(Page *page, const Tag *tag)
{
    if (tag->kind->number == T_p || tag->kind->number == T_br) {
        page->given_up = 1;
        return;
    }
    for (int depth = page->depth; depth >= page->foreign; depth--) {
        const Element *element = &page->elements[page->stack[depth - 1]];
        if (same_name(element->name, element->size, tag->name, tag->size)) {
            while (page->foreign && page->depth >= depth)
                pop(page);
            return;
        }
        if (element->kind->tree & TEXT_POINT)
            break; /* HTML begins again within it */
    }
    page->given_up = 1;
}

/* An end tag in the mode of the page; whether it is read again in another one. */
static int end_once(Page *page, const Tag *tag)
{
    int number = tag->kind->number, is_part = tag->kind->tree & TABLE_PART;
    switch (page->mode) {
    case INITIAL:
        page->quirks = QUIRKS;
        page->mode = BEFORE_HTML;
        return 1;
    case BEFORE_HTML:
    case BEFORE_HEAD:
        if (number != T_head && number != T_body && number != T_html && number != T_br)
            return 0;
        open_implied(page, page->mode == BEFORE_HTML ? T_html : T_head);
        page->mode = page->mode == BEFORE_HTML ? BEFORE_HEAD : IN_HEAD;
        return 1;
    case IN_HEAD_NOSCRIPT:
        if (number != T_noscript && number != T_br)
            return 0;
        pop(page);
        page->mode = IN_HEAD;
        return number == T_br;
    case IN_HEAD:
        if (number == T_head) {
            page->mode = AFTER_HEAD; /* the head stays open for what belongs to it */
            return 0;
        }
        /* fall through */
    case AFTER_HEAD:
        if (number == T_template)
            close_template(page);
        if (number != T_body && number != T_html && number != T_br)
            return 0;
        begin_body(page);
        return 1;
    case IN_CAPTION:
        if (number == T_caption)
            return close_caption(page), 0;
        if (number == T_table)
            return close_caption(page);
        if (is_part || number == T_body || number == T_html)
            return 0;
        break;
    case IN_COLUMN_GROUP:
        if (number == T_col)
            return 0;
        page->given_up |= number == T_template || !top_is(page, T_colgroup);
        pop(page);
        page->mode = IN_TABLE;
        return number != T_colgroup;
    case IN_CELL:
        if (number == T_td || number == T_th) {
            if (in_table_scope(page, number)) {
                end_implied(page, 0);
                pop_through(page, number);
                clear_formats(page);
                page->mode = IN_ROW;
            }
            return 0;
        }
        if (number == T_table || number == T_tbody || number == T_thead || number == T_tfoot || number == T_tr)
            return in_table_scope(page, number) ? (close_cell(page), 1) : 0;
        if (is_part || number == T_body || number == T_html)
            return 0;
        break;
    case IN_ROW:
        if (number == T_tr)
            return close_row(page), 0;
        if (number == T_table)
            return close_row(page);
        if (number == T_tbody || number == T_thead || number == T_tfoot)
            return in_table_scope(page, number) ? close_row(page) : 0;
        goto in_table;
    case IN_TABLE_BODY:
        if (number == T_tbody || number == T_thead || number == T_tfoot) {
            if (in_table_scope(page, number))
                close_table_body(page);
            return 0;
        }
        if (number == T_table)
            return close_table_body(page);
        goto in_table;
    case IN_TABLE:
    in_table: /* a table ends the search for what any other end tag would close */
        if (number == T_table)
            close_table(page);
        else if (number == T_form)
            page->form = -1;
        else if (tag->kind->tree & FORMATTING)
            end_format(page, tag);
        else if (number == T_template)
            close_template(page);
        page->given_up |= number == T_p || number == T_br;
        return 0;
    case AFTER_BODY:
    case AFTER_AFTER_BODY:
        if (number == T_html && page->mode == AFTER_BODY) {
            page->mode = AFTER_AFTER_BODY;
            return 0;
        }
        page->mode = IN_BODY;
        return 1;
    case IN_BODY:
        break;
    }
    end_in_body(page, tag);
    return 0;
}

static void end_tag(Page *page, const Tag *tag)
{
    if (page->foreign)
        end_foreign(page, tag);
    else
        while (!page->given_up && end_once(page, tag))
            ;
}

/* ---- Tokens ---- */

static void text_of(Page *page, Place at, Place end)
{
    size_t start = page->text_size;
    add_text(page, at, end, 1);
    if (page->text_size > start)
        characters_of(page, start);
}

/* <!doctype ...>: only the plain one and none at all say for certain whether a paragraph ends at a table. */
static void document_type(Page *page, Place at, Place end)
{
    if (page->mode != INITIAL)
        return;
    while (at < end && is_blank(*at))
        at++;
    Place last = end;
    while (last > at && is_blank(last[-1]))
        last--;
    page->quirks = same_name(at, last - at, (Place) "html", 4) ? NO_QUIRKS : NOT_KNOWN;
    page->mode = BEFORE_HTML;
}

/* Read what begins with a <; the place after it, or NULL if it is text. */
static Place markup(Page *page, Place at)
{
    Place end = page->end, next = at + 1, after;
    if (next == end)
        return NULL;
    if (is_letter(*next) || (*next == '/' && next + 1 < end && is_letter(next[1]))) {
        Tag tag;
        int is_end = *next == '/';
        after = read_tag(page, &tag, next + is_end, is_end);
        if (!after || page->given_up)
            return end; /* a tag that does not end is none */
        page->at = after;
        (is_end ? end_tag : start_tag)(page, &tag);
        return page->at;
    }
    if (*next == '/') {
        if (next + 1 == end)
            return NULL;
        if (next[1] == '>')
            return next + 2;
    } else if (*next != '!' && *next != '?')
        return NULL;
    else if (end - next > 2 && !memcmp(next, "!--", 3)) {
        page->continues &= page->mode >= AFTER_BODY;
        return comment_end(next + 3, end);
    } else if (end - next > 7 && same_name(next, 8, (Place) "!doctype", 8)) {
        after = found(next, end, '>');
        document_type(page, next + 8, after);
        return after < end ? after + 1 : end;
    } else if (page->foreign && *next == '!')
        page->given_up = 1; /* CDATA */
    page->continues &= page->mode >= AFTER_BODY;
    after = found(next, end, '>');
    return after < end ? after + 1 : end;
}

/* Read a page. If it is not given up, its elements and pieces are those of the tree. */
static void read_page(Page *page)
{
    while (page->at < page->end && !page->given_up) {
        Place start = page->at, stop = found(start, page->end, '<');
        if (stop > start)
            text_of(page, start, stop);
        if (stop == page->end || page->given_up)
            break;
        Place after = markup(page, stop);
        if (!after) {
            text_of(page, stop, stop + 1);
            after = stop + 1;
        }
        page->at = after;
    }
    if (page->mode <= AFTER_HEAD && !page->given_up) {
        if (page->mode <= BEFORE_HTML)
            open_implied(page, T_html);
        if (page->mode <= BEFORE_HEAD)
            open_implied(page, T_head);
        begin_body(page);
    }
    while (page->depth && !page->given_up)
        pop(page);
}
