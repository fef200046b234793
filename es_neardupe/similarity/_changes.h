/* Changes between the tokens of two texts, as in facts/token_changes.py, which describes them: blocks, steps of the edit
 * distance between blocks, and the rest of the sentences before and after blocks where passages moved. The time is
 * proportional to the length of the texts, since the gaps that are compared token by token are limited. */

#define MIN_TOKENS 4
#define SHORT_TEXT 40
#define TITLE 20
#define MAX_GAP 400
#define AROUND 6

#define STARTS 1 /* flags of a token: it begins a sentence */
#define CONTENT 2 /* a word with a meaning */

/* Tokens of a from x up to y that are replaced by tokens of b from z up to w. */
typedef struct {
    int32_t x, y, z, w;
} Change;

/* A block before or after which sentences are compared. */
typedef struct {
    int32_t anchor, size, is_before, row;
} Beside;

/* Both texts, with the state of each of their tokens. */
typedef struct {
    const uint64_t *keys[2];
    const uint8_t *flags[2];
    int32_t size[2];
    uint8_t *other[2]; /* has no equal token in the other text at the same place */
    uint8_t *compared[2]; /* was compared next to a moved passage */
    Run *rows; /* the blocks between two that stand for the beginning and the end */
    int32_t *in_b, *after, *before; /* numbers of rows: by position in b, and the next and the last one there */
    Beside *sides;
    uint16_t *distances;
    Change *found;
    int32_t row_count, count;
} Texts;

static void free_texts(Texts *texts)
{
    free(texts->other[0]);
    free(texts->compared[0]);
    free(texts->rows);
    free(texts->in_b);
    free(texts->sides);
    free(texts->distances);
    free(texts->found);
}

static int min32(int32_t one, int32_t other)
{
    return one < other ? one : other;
}

static int max32(int32_t one, int32_t other)
{
    return one > other ? one : other;
}

/* Where a row is in a text. */
static int32_t place_in(const Run *row, int side)
{
    return side ? row->j : row->i;
}

static void mark(Texts *texts, int32_t x, int32_t y, int32_t z, int32_t w, int value)
{
    memset(texts->other[0] + x, value, (size_t)(y - x));
    memset(texts->other[1] + z, value, (size_t)(w - z));
}

static void add_change(Texts *texts, int32_t x, int32_t y, int32_t z, int32_t w)
{
    mark(texts, x, y, z, w, 1);
    texts->found[texts->count++] = (Change){x, y, z, w};
}

/* Add the changes of two runs: those between their equal tokens by the edit distance. Of several shortest ways, the one
 * of rapidfuzz: from the end, deletions first, then insertions. Returns 0 without memory. */
static int compare_runs(Texts *texts, int32_t x, int32_t y, int32_t z, int32_t w)
{
    if (x == y && z == w)
        return 1;
    if (x == y || z == w || max32(y - x, w - z) > MAX_GAP) {
        add_change(texts, x, y, z, w);
        return 1;
    }
    mark(texts, x, y, z, w, 0);
    const uint64_t *a = texts->keys[0], *b = texts->keys[1];
    while (x < y && z < w && a[x] == b[z])
        x++, z++;
    while (x < y && z < w && a[y - 1] == b[w - 1])
        y--, w--;
    if (x == y || z == w) {
        if (x < y || z < w)
            add_change(texts, x, y, z, w);
        return 1;
    }
    int32_t columns = y - x, rows = w - z, width = columns + 1;
    if (columns == 1 && rows == 1) {
        add_change(texts, x, y, z, w);
        return 1;
    }
    if (!texts->distances && !(texts->distances = malloc((MAX_GAP + 1) * (MAX_GAP + 1) * sizeof *texts->distances)))
        return 0;
    uint16_t *line = texts->distances;
    for (int32_t column = 0; column <= columns; column++)
        line[column] = (uint16_t)column;
    for (int32_t row = 1; row <= rows; row++) {
        const uint16_t *above = line;
        uint64_t token = b[z + row - 1];
        uint16_t left = (uint16_t)row;
        line += width;
        line[0] = left;
        for (int32_t column = 1; column <= columns; column++) {
            uint16_t best = (uint16_t)(above[column - 1] + (a[x + column - 1] != token)), up = (uint16_t)(above[column] + 1);
            best = up < best ? up : best;
            left = (uint16_t)(left + 1) < best ? (uint16_t)(left + 1) : best;
            line[column] = left;
        }
    }
    int32_t column = columns, row = rows, end_a = columns, end_b = rows; /* of the change that is being walked through */
    while (row && column) {
        const uint16_t *here = texts->distances + (size_t)row * (size_t)width, *above = here - width;
        if (here[column] == here[column - 1] + 1) {
            column--;
        } else if (row > 1 && above[column] + 1 == above[column - 1]) {
            row--;
        } else {
            if (a[x + column - 1] == b[z + row - 1]) {
                if (column < end_a || row < end_b)
                    add_change(texts, x + column, x + end_a, z + row, z + end_b);
                end_a = column - 1, end_b = row - 1;
            }
            column--, row--;
        }
    }
    if (end_a || end_b)
        add_change(texts, x, x + end_a, z, z + end_b);
    return 1;
}

/* The number of tokens of a row that are in the same sentence as those before or after it. */
static int32_t anchor_of(const Texts *texts, const Run *row, int is_before)
{
    int32_t anchor = row->size;
    for (int side = 0; side < 2; side++) {
        const uint8_t *flags = texts->flags[side];
        int32_t first = place_in(row, side), size = 1;
        if (first < 0 || first >= texts->size[side])
            continue; /* the beginning or the end of the texts */
        if (is_before)
            while (size < row->size && !(flags[first + size] & STARTS))
                size++;
        else
            while (size < row->size && !(flags[first + row->size - size] & STARTS))
                size++;
        anchor = min32(anchor, size);
    }
    return anchor;
}

/* Compare the rest of the sentences before or after a row. Returns 0 without memory. */
static int compare_beside(Texts *texts, int32_t number, int is_before)
{
    const Run *row = &texts->rows[number];
    const Run *near[2];
    near[0] = row + (is_before ? -1 : 1);
    near[1] = &texts->rows[(is_before ? texts->before : texts->after)[number]];
    int32_t low[2], high[2];
    for (int side = 0; side < 2; side++) {
        const uint8_t *flags = texts->flags[side], *compared = texts->compared[side];
        if (is_before) {
            int32_t earlier = place_in(near[side], side) + near[side]->size, at;
            high[side] = place_in(row, side);
            if (high[side] <= 0)
                return 1;
            for (at = min32(high[side], texts->size[side] - 1); at > earlier && !(flags[at] & STARTS); at--)
                ;
            low[side] = max32(earlier, at);
            while (low[side] < high[side] && compared[low[side]])
                low[side]++;
        } else {
            int32_t later = place_in(near[side], side), at = place_in(row, side) + row->size;
            low[side] = at;
            for (at += !at; at < later && !(flags[at] & STARTS); at++)
                ;
            high[side] = min32(later, at);
            while (low[side] < high[side] && compared[high[side] - 1])
                high[side]--;
        }
    }
    for (int side = 0; side < 2; side++)
        if (low[side] >= high[side] || high[side] - low[side] > MAX_GAP)
            return 1;
    for (int side = 0; side < 2; side++)
        if (memchr(texts->compared[side] + low[side], 1, (size_t)(high[side] - low[side])))
            return 1;
    for (int side = 0; side < 2; side++)
        memset(texts->compared[side] + low[side], 1, (size_t)(high[side] - low[side]));
    return compare_runs(texts, low[0], high[0], low[1], high[1]);
}

static int by_size(const void *left, const void *right)
{
    const Beside *one = left, *other = right;
    if (one->anchor != other->anchor)
        return one->anchor < other->anchor ? 1 : -1;
    if (one->size != other->size)
        return one->size < other->size ? 1 : -1;
    if (one->is_before != other->is_before)
        return one->is_before < other->is_before ? 1 : -1;
    return (one->row < other->row) - (one->row > other->row);
}

static int by_place(const void *left, const void *right)
{
    const Change *one = left, *other = right;
    int32_t x[4] = {one->x, one->y, one->z, one->w}, y[4] = {other->x, other->y, other->z, other->w};
    for (int k = 0; k < 4; k++)
        if (x[k] != y[k])
            return x[k] < y[k] ? -1 : 1;
    return 0;
}

/* Whether a run is on another side of a block in one text than in the other. */
static int is_moved(const Texts *texts, int32_t i, int32_t j)
{
    for (int32_t k = 0; k < texts->row_count; k++)
        if ((texts->rows[k].i < i) != (texts->rows[k].j < j))
            return 1;
    return 0;
}

/* Add the blocks of short texts that have less than MIN_TOKENS tokens, the longest first. Only those of titles move. */
static void add_short_blocks(Texts *texts, int32_t head, int32_t tail)
{
    uint8_t used[2][SHORT_TEXT] = {{0}};
    int is_title = max32(texts->size[0], texts->size[1]) <= TITLE;
    const uint64_t *a = texts->keys[0], *b = texts->keys[1];
    int32_t end_a = texts->size[0] - tail, end_b = texts->size[1] - tail;
    for (int32_t k = 0; k < texts->row_count; k++) {
        const Run *row = &texts->rows[k];
        memset(used[0] + row->i, 1, (size_t)row->size);
        memset(used[1] + row->j, 1, (size_t)row->size);
    }
    for (int32_t size = MIN_TOKENS - 1; size; size--)
        for (int32_t distance = 0; distance < SHORT_TEXT; distance++)
            for (int32_t i = head; i + size <= end_a; i++)
                for (int32_t j = i - distance; j <= i + distance; j += distance ? 2 * distance : 1) {
                    if (j < head || j + size > end_b || memcmp(a + i, b + j, (size_t)size * sizeof *a) ||
                        memchr(used[0] + i, 1, (size_t)size) || memchr(used[1] + j, 1, (size_t)size))
                        continue;
                    int has_content = 0, same = 0;
                    for (int32_t k = 0; k < size; k++)
                        has_content |= texts->flags[0][i + k] & CONTENT;
                    for (int32_t k = head; size == 1 && k < end_a; k++)
                        same += a[k] == a[i];
                    for (int32_t k = head; size == 1 && k < end_b; k++)
                        same += b[k] == a[i];
                    if (!has_content || same > 2 || (!is_title && is_moved(texts, i, j)))
                        continue;
                    memset(used[0] + i, 1, (size_t)size);
                    memset(used[1] + j, 1, (size_t)size);
                    texts->rows[texts->row_count++] = (Run){i, j, size};
                }
}

/* Find the blocks, and the two rows that stand for the beginning and the end. Returns 1, or REFUSED or NO_MEMORY. */
static int64_t find_blocks(Memory *memory, Texts *texts)
{
    const uint64_t *a = texts->keys[0], *b = texts->keys[1];
    int32_t n = texts->size[0], m = texts->size[1], limit = min32(n, m), head = 0, tail = 0;
    while (head < limit && a[head] == b[head])
        head++;
    while (tail < limit - head && a[n - 1 - tail] == b[m - 1 - tail])
        tail++;
    int64_t count = tile(memory, a + head, n - head - tail, b + head, m - head - tail, MIN_TOKENS);
    if (count < 0)
        return count;
    if (!(texts->rows = malloc(((size_t)count + SHORT_TEXT + 4) * sizeof *texts->rows)))
        return NO_MEMORY;
    Run *rows = texts->rows;
    int32_t used = 0, joined = 1;
    for (int64_t k = 0; k < count; k++)
        rows[used++] = (Run){memory->tiles[k].i + head, memory->tiles[k].j + head, memory->tiles[k].size};
    texts->row_count = used;
    if (max32(n, m) <= SHORT_TEXT)
        add_short_blocks(texts, head, tail);
    used = texts->row_count;
    if (head)
        rows[used++] = (Run){0, 0, head};
    if (tail)
        rows[used++] = (Run){n - tail, m - tail, tail};
    rows[used++] = (Run){-1, -1, 1};
    rows[used++] = (Run){n, m, 1};
    qsort(rows, (size_t)used, sizeof *rows, by_position);
    for (int32_t k = 1; k < used; k++) { /* those that touch in both texts are one, but for the beginning and the end */
        Run *last = &rows[joined - 1];
        if (joined > 1 && k + 1 < used && last->i + last->size == rows[k].i && last->j + last->size == rows[k].j)
            last->size += rows[k].size;
        else
            rows[joined++] = rows[k];
    }
    texts->row_count = joined;
    return 1;
}

/* The rows in the order of b, and for each the next and the last one in b. Returns 0 without memory. */
static int order_in_b(Texts *texts)
{
    int32_t count = texts->row_count;
    Run *order = malloc((size_t)count * sizeof *order);
    if (!order || !(texts->in_b = malloc(3 * (size_t)count * sizeof *texts->in_b))) {
        free(order);
        return 0;
    }
    texts->after = texts->in_b + count;
    texts->before = texts->after + count;
    for (int32_t k = 0; k < count; k++)
        order[k] = (Run){texts->rows[k].j, k, 0};
    qsort(order, (size_t)count, sizeof *order, by_position);
    for (int32_t k = 0; k < count; k++)
        texts->in_b[k] = order[k].j;
    for (int32_t k = 0; k + 1 < count; k++) {
        texts->after[texts->in_b[k]] = texts->in_b[k + 1];
        texts->before[texts->in_b[k + 1]] = texts->in_b[k];
    }
    free(order);
    return 1;
}

/* Find the changes. Returns 1, or REFUSED or NO_MEMORY. */
static int64_t find_changes(Memory *memory, Texts *texts)
{
    size_t n = (size_t)texts->size[0], m = (size_t)texts->size[1];
    int64_t state = find_blocks(memory, texts);
    if (state < 0)
        return state;
    texts->other[0] = malloc(n + m + 1);
    texts->compared[0] = calloc(n + m + 1, 1);
    texts->found = malloc((n + m + 1) * sizeof *texts->found);
    texts->sides = malloc(2 * (size_t)texts->row_count * sizeof *texts->sides);
    if (!texts->other[0] || !texts->compared[0] || !texts->found || !texts->sides || !order_in_b(texts))
        return NO_MEMORY;
    texts->other[1] = texts->other[0] + n;
    texts->compared[1] = texts->compared[0] + n;
    memset(texts->other[0], 1, n + m);
    const Run *rows = texts->rows;
    size_t beside = 0;
    for (int32_t k = 1; k + 1 < texts->row_count; k++)
        mark(texts, rows[k].i, rows[k].i + rows[k].size, rows[k].j, rows[k].j + rows[k].size, 0);
    for (int32_t k = 0; k + 1 < texts->row_count; k++) {
        if (texts->after[k] == k + 1) {
            if (!compare_runs(texts, rows[k].i + rows[k].size, rows[k + 1].i, rows[k].j + rows[k].size, rows[k + 1].j))
                return NO_MEMORY;
            continue;
        }
        for (int32_t is_before = 0; is_before < 2; is_before++) {
            const Run *row = &rows[k + is_before];
            texts->sides[beside++] = (Beside){anchor_of(texts, row, is_before), row->size, is_before, k + is_before};
        }
    }
    qsort(texts->sides, beside, sizeof *texts->sides, by_size);
    for (size_t k = 0; k < beside; k++)
        if (!compare_beside(texts, texts->sides[k].row, texts->sides[k].is_before))
            return NO_MEMORY;
    qsort(texts->found, (size_t)texts->count, sizeof *texts->found, by_place);
    return 1;
}

/* How equal the tokens around a change are in one text: 0, 1 or 2, as `Surroundings`. */
static int surroundings(const Texts *texts, int side, int32_t first, int32_t end)
{
    const uint8_t *other = texts->other[side];
    int32_t low = max32(first - AROUND, 0), high = min32(end + AROUND, texts->size[side]), others = 0;
    if ((low < first && other[first - 1]) || (end < high && other[end]))
        return 0;
    for (int32_t k = low; k < first; k++)
        others += other[k];
    for (int32_t k = end; k < high; k++)
        others += other[k];
    int32_t around = first - low + high - end;
    return 5 * others <= around ? 2 : 2 * others <= around;
}

PyDoc_STRVAR(changes_doc,
             "changes(uint64 a, uint64 b, uint8 flags of a, uint8 flags of b) -> int64[changes, 5] as a bytearray: tokens "
             "of a, tokens of b, and how equal those around are, as `TokenChange`. None for texts with too many "
             "repetitions.");

static PyObject *changes(PyObject *self, PyObject *args)
{
    Py_buffer a, b, flags_a, flags_b;
    if (!PyArg_ParseTuple(args, "y*y*y*y*", &a, &b, &flags_a, &flags_b))
        return NULL;
    PyObject *found = NULL;
    Memory memory = {0};
    Texts texts = {.keys = {a.buf, b.buf}, .flags = {flags_a.buf, flags_b.buf}};
    if (!has_numbers(&a) || !has_numbers(&b) || flags_a.len != a.len / 8 || flags_b.len != b.len / 8) {
        PyErr_Format(PyExc_ValueError, "arrays that do not fit together");
        goto done;
    }
    int64_t state = REFUSED;
    Py_BEGIN_ALLOW_THREADS;
    if (a.len / 8 <= LONGEST && b.len / 8 <= LONGEST) {
        texts.size[0] = (int32_t)(a.len / 8);
        texts.size[1] = (int32_t)(b.len / 8);
        state = find_changes(&memory, &texts);
    }
    Py_END_ALLOW_THREADS;
    if (state == NO_MEMORY)
        PyErr_NoMemory();
    else if (state == REFUSED)
        found = Py_NewRef(Py_None);
    else if ((found = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)texts.count * 5 * 8))) {
        char *at = PyByteArray_AsString(found);
        for (int32_t k = 0; k < texts.count; k++, at += 5 * 8) {
            const Change *one = &texts.found[k];
            int around = min32(surroundings(&texts, 0, one->x, one->y), surroundings(&texts, 1, one->z, one->w));
            int64_t row[5] = {one->x, one->y, one->z, one->w, around};
            memcpy(at, row, sizeof row);
        }
    }
done:
    free_texts(&texts);
    release(&memory);
    PyBuffer_Release(&a);
    PyBuffer_Release(&b);
    PyBuffer_Release(&flags_a);
    PyBuffer_Release(&flags_b);
    return found;
}
