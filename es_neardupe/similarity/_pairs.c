/* The inner loops of comparing pairs of texts in C: greedy string tiling, edit distance, common features, numbers of
 * features, and the changes of tokens (_changes.h); the ordinary words of a text (_words.h), and the flags of its tokens
 * (_flags.h). They give the same results as the code in Python beside each of their callers, which does the work where
 * this was not built, and for pairs that are refused here. So time is at most proportional to the length of the texts
 * (for tiles times a logarithm), whatever they hold. Every access to memory is within what was handed in.
 *
 * Tiling: the windows of b are put into a hash table, those of a looked up. A pair of equal windows begins a run if the
 * words before it differ; the run is extended word by word. Tiles are chosen from the runs by a heap, the longest first.
 * Texts with too many pairs of equal windows are refused, and those whose hashes collide in the table. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MULTIPLIER UINT64_C(0xD1342543DE82EF95)
#define LONGEST (1 << 28) /* words of a text: sums of positions, and sizes of tables, fit into 32 bits */

#define LONGEST_PATTERN 1024 /* words of the shorter text, for the edit distance: others have a faster algorithm */

/* Limits for texts of so many words together: of pairs of equal windows (time), of runs (12 bytes each), and of other
 * entries that are met in the table. */
#define PAIRS(words) (64 * (words) + 100000)
#define RUNS(words) (16 * (words) + 10000)
#define PROBES(words) (16 * (words) + 1000)

#define REFUSED (-1)
#define NO_MEMORY (-2)

/* A run of equal words, or a tile: first word in a, first word in b, words. */
typedef struct {
    int32_t i, j, size;
} Run;

/* Memory that is used for one pair after the other. */
typedef struct {
    uint64_t *hashes; /* of each window, or word, in the table */
    uint64_t *vectors; /* the places of each word in the table, as bits */
    int32_t *following; /* the next window of b with the same hash, or -1 */
    int32_t *heads; /* the table: a number of a window, or word, or -1 */
    uint8_t *used; /* the words of a in tiles, then those of b */
    Run *runs, *tiles;
    size_t hashes_size, vectors_size, following_size, heads_size, used_size, runs_size, tiles_size;
} Memory;

static void release(Memory *memory)
{
    free(memory->hashes);
    free(memory->vectors);
    free(memory->following);
    free(memory->heads);
    free(memory->used);
    free(memory->runs);
    free(memory->tiles);
}

/* Make room for so many bytes, and keep what is there. */
static int reserve(void *place, size_t *size, size_t bytes)
{
    if (*size >= bytes)
        return 1;
    void *grown, *before;
    memcpy(&before, place, sizeof before);
    if (!(grown = realloc(before, bytes + bytes / 2)))
        return 0;
    memcpy(place, &grown, sizeof grown);
    *size = bytes + bytes / 2;
    return 1;
}

static uint64_t mix64(uint64_t value)
{
    value = (value ^ (value >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94D049BB133111EB);
    return value ^ (value >> 31);
}

/* Horner sums of windows: equal to those of window_hashes in shingles.py, but for a constant. */
static uint64_t first_hash(const uint64_t *words, int32_t size)
{
    uint64_t sum = 0;
    for (int32_t k = 0; k < size; k++)
        sum = sum * MULTIPLIER + words[k];
    return sum;
}

static uint64_t power(int32_t exponent)
{
    uint64_t result = 1, square = MULTIPLIER;
    for (; exponent; exponent >>= 1, square *= square)
        if (exponent & 1)
            result *= square;
    return result;
}

/* Make an empty table, at most half of which so many entries fill. Returns its last place, or 0 without memory. */
static size_t empty_table(Memory *memory, int32_t entries)
{
    size_t mask = 15;
    while (mask + 1 < 2 * (size_t)entries)
        mask = 2 * mask + 1;
    if (!reserve(&memory->hashes, &memory->hashes_size, (size_t)entries * sizeof *memory->hashes) ||
        !reserve(&memory->heads, &memory->heads_size, (mask + 1) * sizeof *memory->heads))
        return 0;
    memset(memory->heads, 0xFF, (mask + 1) * sizeof *memory->heads);
    return mask;
}

/* The place in the table of the entries with this hash, or the free one where it belongs; -1 if too many others were met
 * on the way. */
static int64_t place_of(const Memory *memory, uint64_t hash, size_t mask, int64_t *patience)
{
    size_t place = mix64(hash) & mask;
    for (; memory->heads[place] >= 0; place = (place + 1) & mask) {
        if (memory->hashes[memory->heads[place]] == hash)
            break;
        if (--*patience < 0)
            return -1;
    }
    return (int64_t)place;
}

/* Put the windows of b into the table. Returns 1, or 0 if it is refused. */
static int fill_table(Memory *memory, const uint64_t *b, int32_t windows, int32_t minimum, size_t mask, int64_t *patience)
{
    uint64_t hash = first_hash(b, minimum), leaving = power(minimum);
    for (int32_t j = 0; j < windows; j++) {
        if (j)
            hash = hash * MULTIPLIER + b[j + minimum - 1] - b[j - 1] * leaving;
        memory->hashes[j] = hash;
        int64_t place = place_of(memory, hash, mask, patience);
        if (place < 0)
            return 0;
        memory->following[j] = memory->heads[place];
        memory->heads[place] = j;
    }
    return 1;
}

/* The maximal runs of at least `minimum` equal words. Returns their number, or REFUSED or NO_MEMORY. */
static int64_t find_runs(Memory *memory, const uint64_t *a, int32_t n, const uint64_t *b, int32_t m, int32_t minimum)
{
    int32_t windows_a = n - minimum + 1, windows_b = m - minimum + 1;
    if (windows_a <= 0 || windows_b <= 0)
        return 0;
    int64_t words = (int64_t)n + m, patience = PROBES(words), pairs = 0, visited = 0, count = 0;
    size_t mask = empty_table(memory, windows_b);
    if (!mask || !reserve(&memory->following, &memory->following_size, (size_t)windows_b * sizeof *memory->following))
        return NO_MEMORY;
    if (!fill_table(memory, b, windows_b, minimum, mask, &patience))
        return REFUSED;
    uint64_t hash = first_hash(a, minimum), leaving = power(minimum);
    for (int32_t i = 0; i < windows_a; i++) {
        if (i)
            hash = hash * MULTIPLIER + a[i + minimum - 1] - a[i - 1] * leaving;
        int64_t place = place_of(memory, hash, mask, &patience);
        if (place < 0)
            return REFUSED;
        for (int32_t j = memory->heads[place]; j >= 0; j = memory->following[j]) {
            if (++visited > PAIRS(words))
                return REFUSED;
            if (i && j && a[i - 1] == b[j - 1])
                continue; /* part of a run that is known */
            int32_t size = minimum, most = n - i < m - j ? n - i : m - j;
            for (; size < most && a[i + size] == b[j + size]; size++)
                if (++pairs > PAIRS(words)) /* one more word is one more pair of equal windows */
                    return REFUSED;
            if (count == RUNS(words))
                return REFUSED;
            if (!reserve(&memory->runs, &memory->runs_size, ((size_t)count + 1) * sizeof *memory->runs))
                return NO_MEMORY;
            memory->runs[count++] = (Run){i, j, size};
        }
    }
    return count;
}

/* Whether a run comes before another: longer ones first, then by the sum of the positions, then by the first one. */
static int is_before(const Run *one, const Run *other)
{
    if (one->size != other->size)
        return one->size > other->size;
    if (one->i + one->j != other->i + other->j)
        return one->i + one->j < other->i + other->j;
    return one->i < other->i;
}

static void sift_down(Run *heap, int64_t count, int64_t place)
{
    Run sinking = heap[place];
    for (int64_t child = 2 * place + 1; child < count; child = 2 * place + 1) {
        if (child + 1 < count && is_before(&heap[child + 1], &heap[child]))
            child++;
        if (!is_before(&heap[child], &sinking))
            break;
        heap[place] = heap[child];
        place = child;
    }
    heap[place] = sinking;
}

/* Choose tiles from `count` runs. Tiles overlap a run only at its ends, since they are at least as long as the run: what
 * remains is one run, which waits again. Returns the number of tiles, or NO_MEMORY. */
static int64_t choose(Memory *memory, int64_t count, int32_t n, int32_t m, int32_t minimum)
{
    if (!reserve(&memory->used, &memory->used_size, (size_t)(n + m)))
        return NO_MEMORY;
    memset(memory->used, 0, (size_t)(n + m));
    uint8_t *used_a = memory->used, *used_b = used_a + n;
    Run *heap = memory->runs;
    int64_t chosen = 0;
    for (int64_t place = count / 2 - 1; place >= 0; place--)
        sift_down(heap, count, place);
    while (count) {
        Run run = heap[0];
        int32_t start = 0, end = run.size;
        while (end - start >= minimum && (used_a[run.i + start] || used_b[run.j + start]))
            start++;
        while (end - start >= minimum && (used_a[run.i + end - 1] || used_b[run.j + end - 1]))
            end--;
        if (end - start == run.size) {
            if (!reserve(&memory->tiles, &memory->tiles_size, ((size_t)chosen + 1) * sizeof *memory->tiles))
                return NO_MEMORY;
            memset(used_a + run.i, 1, (size_t)run.size);
            memset(used_b + run.j, 1, (size_t)run.size);
            memory->tiles[chosen++] = run;
        }
        if (end - start == run.size || end - start < minimum)
            heap[0] = heap[--count];
        else
            heap[0] = (Run){run.i + start, run.j + start, end - start};
        if (count)
            sift_down(heap, count, 0);
    }
    return chosen;
}

/* Whether a comes after b: the text whose first differing word has the greater hash, or the longer one. */
static int comes_after(const uint64_t *a, Py_ssize_t n, const uint64_t *b, Py_ssize_t m)
{
    Py_ssize_t size = n < m ? n : m, k = 0;
    while (k < size && a[k] == b[k])
        k++;
    return k < size ? a[k] > b[k] : n > m;
}

/* Whether a buffer has 64-bit numbers. */
static int has_numbers(const Py_buffer *buffer)
{
    return buffer->len % 8 == 0 && (!buffer->len || (uintptr_t)buffer->buf % 8 == 0);
}

/* The tiles of a pair, in any order. Returns their number, or REFUSED or NO_MEMORY. */
static int64_t tile(Memory *memory, const uint64_t *a, Py_ssize_t n, const uint64_t *b, Py_ssize_t m, Py_ssize_t minimum)
{
    if (n > LONGEST || m > LONGEST)
        return REFUSED;
    if (n == m && (!n || !memcmp(a, b, (size_t)n * sizeof *a))) {
        if (!reserve(&memory->tiles, &memory->tiles_size, sizeof *memory->tiles))
            return NO_MEMORY;
        memory->tiles[0] = (Run){0, 0, (int32_t)n};
        return n > 0;
    }
    if (minimum > n || minimum > m)
        return 0;
    int turned = comes_after(a, n, b, m);
    int64_t count = turned ? find_runs(memory, b, (int32_t)m, a, (int32_t)n, (int32_t)minimum)
                           : find_runs(memory, a, (int32_t)n, b, (int32_t)m, (int32_t)minimum);
    if (count <= 0)
        return count;
    count = turned ? choose(memory, count, (int32_t)m, (int32_t)n, (int32_t)minimum)
                   : choose(memory, count, (int32_t)n, (int32_t)m, (int32_t)minimum);
    for (int64_t k = 0; turned && k < count; k++) {
        Run *one = &memory->tiles[k];
        *one = (Run){one->j, one->i, one->size};
    }
    return count;
}

static int by_position(const void *one, const void *other)
{
    int32_t i = ((const Run *)one)->i, j = ((const Run *)other)->i;
    return (i > j) - (i < j);
}

PyDoc_STRVAR(tiles_doc,
             "tiles(uint64 a, uint64 b, minimum) -> int64[tiles, 3] as a bytearray, sorted by position in a: first word in "
             "a, first word in b, words. None for texts with too many repetitions.");

static PyObject *tiles(PyObject *self, PyObject *args)
{
    Py_buffer a, b;
    Py_ssize_t minimum;
    if (!PyArg_ParseTuple(args, "y*y*n", &a, &b, &minimum))
        return NULL;
    PyObject *found = NULL;
    Memory memory = {0};
    if (!has_numbers(&a) || !has_numbers(&b) || minimum < 1) {
        PyErr_Format(PyExc_ValueError, "arrays that do not fit together");
        goto done;
    }
    int64_t count;
    Py_BEGIN_ALLOW_THREADS;
    count = tile(&memory, a.buf, a.len / 8, b.buf, b.len / 8, minimum);
    if (count > 1)
        qsort(memory.tiles, (size_t)count, sizeof *memory.tiles, by_position);
    Py_END_ALLOW_THREADS;
    if (count == NO_MEMORY)
        PyErr_NoMemory();
    else if (count == REFUSED)
        found = Py_NewRef(Py_None);
    else if ((found = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)count * 3 * 8))) {
        char *at = PyByteArray_AsString(found);
        for (int64_t k = 0; k < count; k++, at += 3 * 8) {
            int64_t row[3] = {memory.tiles[k].i, memory.tiles[k].j, memory.tiles[k].size};
            memcpy(at, row, sizeof row);
        }
    }
done:
    release(&memory);
    PyBuffer_Release(&a);
    PyBuffer_Release(&b);
    return found;
}

/* The edit distance of two texts, without the words that they begin and end with (Hyyroe 2003, after Myers 1999): columns
 * of the matrix as bits, 64 words of the shorter text at a time. Returns REFUSED for long texts, or NO_MEMORY. */
static int64_t distance(Memory *memory, const uint64_t *a, Py_ssize_t n, const uint64_t *b, Py_ssize_t m)
{
    for (; n && m && a[n - 1] == b[m - 1]; n--)
        m--;
    for (; n && m && *a == *b; n--, m--)
        a++, b++;
    if (n < m) {
        const uint64_t *text = a;
        Py_ssize_t size = n;
        a = b, n = m;
        b = text, m = size;
    }
    if (!m)
        return n;
    if (m > LONGEST_PATTERN)
        return REFUSED;
    size_t blocks = ((size_t)m + 63) / 64, mask = empty_table(memory, (int32_t)m);
    if (!mask || !reserve(&memory->vectors, &memory->vectors_size, ((size_t)m + 2) * blocks * sizeof *memory->vectors))
        return NO_MEMORY;
    uint64_t *positive = memory->vectors, *negative = positive + blocks, *places = negative + blocks;
    int64_t patience = PROBES((int64_t)n + m), found = m;
    int32_t words = 0;
    for (Py_ssize_t j = 0; j < m; j++) {
        int64_t place = place_of(memory, b[j], mask, &patience);
        if (place < 0)
            return REFUSED;
        if (memory->heads[place] < 0) {
            memset(places + (size_t)words * blocks, 0, blocks * sizeof *places);
            memory->hashes[words] = b[j];
            memory->heads[place] = words++;
        }
        places[(size_t)memory->heads[place] * blocks + (size_t)j / 64] |= UINT64_C(1) << (j % 64);
    }
    memset(positive, 0xFF, blocks * sizeof *positive);
    memset(negative, 0, blocks * sizeof *negative);
    for (Py_ssize_t i = 0; i < n; i++) {
        int64_t place = place_of(memory, a[i], mask, &patience);
        if (place < 0)
            return REFUSED;
        int32_t word = memory->heads[place];
        const uint64_t *equal = places + (word < 0 ? 0 : (size_t)word * blocks);
        uint64_t known = word < 0 ? 0 : UINT64_MAX, above = 1, below = 0;
        for (size_t block = 0; block < blocks; block++) {
            uint64_t same = (equal[block] & known) | below, up = positive[block], down = negative[block];
            uint64_t diagonal = (((same & up) + up) ^ up) | same | down;
            uint64_t right_up = down | ~(diagonal | up), right_down = diagonal & up;
            if (block + 1 == blocks)
                found += (int64_t)(right_up >> ((m - 1) % 64) & 1) - (int64_t)(right_down >> ((m - 1) % 64) & 1);
            uint64_t next_above = right_up >> 63, next_below = right_down >> 63;
            right_up = right_up << 1 | above;
            right_down = right_down << 1 | below;
            positive[block] = right_down | ~(diagonal | right_up);
            negative[block] = right_up & diagonal;
            above = next_above;
            below = next_below;
        }
    }
    return found;
}

/* Pairs of texts: words, or features, of all texts, where each text begins, and the numbers of both sides. */
typedef struct {
    Py_buffer words, bounds, left, right, out;
    Py_ssize_t count;
    Memory memory;
} Pairs;

/* Set where a text begins and ends among so many words; returns 0 if there is no such text. */
static int range_of(const Pairs *pairs, int64_t number, Py_ssize_t words, int64_t *start, int64_t *end)
{
    const volatile int64_t *bound = pairs->bounds.buf;
    if (number < 0 || number >= (int64_t)(pairs->bounds.len / 8) - 1)
        return 0;
    int64_t from = bound[number], to = bound[number + 1];
    if (from < 0 || to < from || to > (int64_t)words)
        return 0;
    *start = from;
    *end = to;
    return 1;
}

/* Set the words of a text; returns 0 if there is no such text. */
static int text_of(const Pairs *pairs, int64_t number, const uint64_t **text, Py_ssize_t *size)
{
    int64_t start, end;
    if (!range_of(pairs, number, pairs->words.len / 8, &start, &end))
        return 0;
    *text = (const uint64_t *)pairs->words.buf + start;
    *size = (Py_ssize_t)(end - start);
    return 1;
}

/* Set the words of both texts of a pair; returns 0 if there are no such texts. */
static int pair_of(const Pairs *pairs, Py_ssize_t k, const uint64_t **a, Py_ssize_t *n, const uint64_t **b, Py_ssize_t *m)
{
    return text_of(pairs, ((const int64_t *)pairs->left.buf)[k], a, n) &&
           text_of(pairs, ((const int64_t *)pairs->right.buf)[k], b, m);
}

/* Whether the arrays but for the words are of numbers, and the result has so many numbers for each pair. */
static int sides_fit(Pairs *pairs, Py_ssize_t numbers)
{
    pairs->count = pairs->left.len / 8;
    return pairs->left.len == pairs->right.len && pairs->out.len == numbers * pairs->left.len &&
           has_numbers(&pairs->bounds) && has_numbers(&pairs->left) && has_numbers(&pairs->right) &&
           has_numbers(&pairs->out);
}

/* The same, with the words. */
static int fit(Pairs *pairs, Py_ssize_t numbers)
{
    return sides_fit(pairs, numbers) && has_numbers(&pairs->words);
}

/* Whether an array is of so many numbers of 32 bits. */
static int has_short_numbers(const Py_buffer *buffer, Py_ssize_t count)
{
    return buffer->len == 4 * count && (!count || (uintptr_t)buffer->buf % 4 == 0);
}

/* Release everything. Returns None, or NULL with an exception. */
static PyObject *finished(Pairs *pairs, int fits, int has_memory)
{
    release(&pairs->memory);
    PyBuffer_Release(&pairs->words);
    PyBuffer_Release(&pairs->bounds);
    PyBuffer_Release(&pairs->left);
    PyBuffer_Release(&pairs->right);
    PyBuffer_Release(&pairs->out);
    if (!fits)
        return PyErr_Format(PyExc_ValueError, "arrays that do not fit together");
    if (!has_memory)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

PyDoc_STRVAR(totals_doc,
             "totals(uint64 words, int64 bounds[texts + 1], int64 left, int64 right, int64 out[pairs, 2], minimum): the "
             "words in tiles and the tiles of each pair of texts; -1 for texts with too many repetitions.");

static PyObject *totals(PyObject *self, PyObject *args)
{
    Pairs pairs = {0};
    Py_ssize_t minimum, n, m;
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*n", &pairs.words, &pairs.bounds, &pairs.left, &pairs.right, &pairs.out, &minimum))
        return NULL;
    int64_t *total = pairs.out.buf, count = 0;
    int fits = fit(&pairs, 2) && minimum >= 1;
    const uint64_t *a, *b;
    Py_BEGIN_ALLOW_THREADS;
    for (Py_ssize_t k = 0; fits && count != NO_MEMORY && k < pairs.count && (fits = pair_of(&pairs, k, &a, &n, &b, &m)); k++) {
        count = tile(&pairs.memory, a, n, b, m, minimum);
        total[2 * k] = count < 0 ? -1 : 0;
        total[2 * k + 1] = count < 0 ? -1 : count;
        for (int64_t number = 0; number < count; number++)
            total[2 * k] += pairs.memory.tiles[number].size;
    }
    Py_END_ALLOW_THREADS;
    return finished(&pairs, fits, count != NO_MEMORY);
}

PyDoc_STRVAR(distances_doc,
             "distances(uint64 words, int64 bounds[texts + 1], int64 left, int64 right, int64 out[pairs]): the edit "
             "distance of each pair of texts; -1 for long texts.");

static PyObject *distances(PyObject *self, PyObject *args)
{
    Pairs pairs = {0};
    Py_ssize_t n, m;
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*", &pairs.words, &pairs.bounds, &pairs.left, &pairs.right, &pairs.out))
        return NULL;
    int64_t *out = pairs.out.buf, found = 0;
    int fits = fit(&pairs, 1);
    const uint64_t *a, *b;
    Py_BEGIN_ALLOW_THREADS;
    for (Py_ssize_t k = 0; fits && found != NO_MEMORY && k < pairs.count && (fits = pair_of(&pairs, k, &a, &n, &b, &m)); k++)
        out[k] = found = distance(&pairs.memory, a, n, b, m);
    Py_END_ALLOW_THREADS;
    return finished(&pairs, fits, found != NO_MEMORY);
}

PyDoc_STRVAR(common_doc,
             "common(uint64 features, int64 bounds[texts + 1], int64 left, int64 right, int64 out[pairs]) -> int64 as a "
             "bytearray: the places of the features of the left text of each pair that the right one has, too, pair by "
             "pair; out: how many of each. The features of each text are sorted and distinct.");

/* The features of a that b has, too, as their numbers from `first` on; returns how many. */
static Py_ssize_t intersect(const uint64_t *a, Py_ssize_t n, const uint64_t *b, Py_ssize_t m, int64_t first, int64_t *out)
{
    Py_ssize_t i = 0, j = 0, count = 0, most = n < m ? n : m;
    while (i < n && j < m) {
        uint64_t one = a[i], other = b[j];
        if (one == other) {
            if (count == most) /* repeated features, against the rules */
                return count;
            out[count++] = first + i;
        }
        i += one <= other;
        j += other <= one;
    }
    return count;
}

static PyObject *common(PyObject *self, PyObject *args)
{
    Pairs pairs = {0};
    Py_ssize_t n, m, room = 0, used = 0;
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*", &pairs.words, &pairs.bounds, &pairs.left, &pairs.right, &pairs.out))
        return NULL;
    PyObject *found = NULL;
    const uint64_t *a, *b;
    int fits = fit(&pairs, 1);
    for (Py_ssize_t k = 0; fits && k < pairs.count && (fits = pair_of(&pairs, k, &a, &n, &b, &m)); k++)
        room += n < m ? n : m;
    if (fits && (found = PyByteArray_FromStringAndSize(NULL, 8 * room))) {
        int64_t *places = (int64_t *)PyByteArray_AsString(found), *counts = pairs.out.buf;
        Py_BEGIN_ALLOW_THREADS;
        for (Py_ssize_t k = 0; k < pairs.count && (fits = pair_of(&pairs, k, &a, &n, &b, &m)); k++) {
            if (!(fits = (n < m ? n : m) <= room - used))
                break; /* arrays that change */
            counts[k] = intersect(a, n, b, m, a - (const uint64_t *)pairs.words.buf, places + used);
            used += counts[k];
        }
        Py_END_ALLOW_THREADS;
        if (PyByteArray_Resize(found, 8 * used) < 0)
            Py_CLEAR(found);
    }
    PyObject *done = finished(&pairs, fits, 1);
    Py_XDECREF(done);
    if (!done || !found)
        Py_CLEAR(found);
    return found;
}

PyDoc_STRVAR(numbered_doc,
             "numbered(uint64 features, int32 out[features]) -> int: the number of each feature among the distinct ones, "
             "in the order in which they come first; returns how many there are, or -1 if there are too many, or too "
             "many collide.");

static int64_t number(Memory *memory, const uint64_t *features, Py_ssize_t n, int32_t *out)
{
    if (n > LONGEST)
        return REFUSED;
    size_t mask = empty_table(memory, (int32_t)n);
    if (!mask)
        return NO_MEMORY;
    int64_t patience = PROBES((int64_t)n);
    int32_t count = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        uint64_t feature = ((const volatile uint64_t *)features)[i];
        int64_t place = place_of(memory, feature, mask, &patience);
        if (place < 0)
            return REFUSED;
        if (memory->heads[place] < 0) {
            memory->hashes[count] = feature;
            memory->heads[place] = count++;
        }
        out[i] = memory->heads[place];
    }
    return count;
}

static PyObject *numbered(PyObject *self, PyObject *args)
{
    Py_buffer features, out;
    Memory memory = {0};
    if (!PyArg_ParseTuple(args, "y*w*", &features, &out))
        return NULL;
    int64_t count = REFUSED;
    int fits = has_numbers(&features) && has_short_numbers(&out, features.len / 8);
    Py_BEGIN_ALLOW_THREADS;
    if (fits)
        count = number(&memory, features.buf, features.len / 8, out.buf);
    Py_END_ALLOW_THREADS;
    release(&memory);
    PyBuffer_Release(&features);
    PyBuffer_Release(&out);
    if (!fits)
        return PyErr_Format(PyExc_ValueError, "arrays that do not fit together");
    return count == NO_MEMORY ? PyErr_NoMemory() : PyLong_FromLongLong(count);
}

PyDoc_STRVAR(shared_doc,
             "shared(int32 features, int64 bounds[texts + 1], int64 left, int64 right, uint8 marks[distinct features], "
             "int64 out[pairs]): how many features of the right text of each pair the left one has, too. Those of a left "
             "text are marked once for all pairs in a row with it. All marks are 0, before and after.");

/* Set the marks of the features of a text. */
static void mark_set(const volatile int32_t *features, Py_ssize_t n, const Py_buffer *marks, uint8_t value)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        uint32_t feature = (uint32_t)features[i]; /* read once, as everything that another thread may change */
        if (feature < (size_t)marks->len)
            ((uint8_t *)marks->buf)[feature] = value;
    }
}

static int64_t count_marked(const volatile int32_t *features, Py_ssize_t n, const Py_buffer *marks)
{
    const uint8_t *marked = marks->buf;
    int64_t count = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        uint32_t feature = (uint32_t)features[i];
        count += feature < (size_t)marks->len ? marked[feature] : 0;
    }
    return count;
}

static PyObject *shared(PyObject *self, PyObject *args)
{
    Pairs pairs = {0};
    Py_buffer marks;
    if (!PyArg_ParseTuple(args, "y*y*y*y*w*w*", &pairs.words, &pairs.bounds, &pairs.left, &pairs.right, &marks, &pairs.out))
        return NULL;
    const int32_t *features = pairs.words.buf;
    const int64_t *left = pairs.left.buf, *right = pairs.right.buf;
    int64_t *out = pairs.out.buf, start = 0, end = 0, from, to;
    Py_ssize_t total = pairs.words.len / 4;
    int fits = sides_fit(&pairs, 1) && has_short_numbers(&pairs.words, total);
    Py_BEGIN_ALLOW_THREADS;
    for (Py_ssize_t k = 0; fits && k < pairs.count; k++) {
        if (!k || left[k] != left[k - 1]) {
            mark_set(features + start, end - start, &marks, 0);
            start = end = 0;
            if (!(fits = range_of(&pairs, left[k], total, &start, &end)))
                break;
            mark_set(features + start, end - start, &marks, 1);
        }
        if ((fits = range_of(&pairs, right[k], total, &from, &to)))
            out[k] = count_marked(features + from, to - from, &marks);
    }
    mark_set(features + start, end - start, &marks, 0);
    Py_END_ALLOW_THREADS;
    PyBuffer_Release(&marks);
    return finished(&pairs, fits, 1);
}

#include "_changes.h"
#include "_words.h"
#include "_flags.h"

static PyMethodDef methods[] = {
    {"tiles", tiles, METH_VARARGS, tiles_doc},
    {"totals", totals, METH_VARARGS, totals_doc},
    {"distances", distances, METH_VARARGS, distances_doc},
    {"common", common, METH_VARARGS, common_doc},
    {"numbered", numbered, METH_VARARGS, numbered_doc},
    {"shared", shared, METH_VARARGS, shared_doc},
    {"changes", changes, METH_VARARGS, changes_doc},
    {"words", words, METH_VARARGS, words_doc},
    {"flags", flags, METH_VARARGS, flags_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_pairs", .m_doc = "The inner loops of comparing pairs.", .m_methods = methods};

PyMODINIT_FUNC PyInit__pairs(void)
{
    return PyModule_Create(&module);
}
