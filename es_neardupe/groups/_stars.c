/* The exchange of centres of star groups in C. It gives the same result as the code in Python beside its caller, which
 * does the work where this was not built. Every access to memory is within what was handed in. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>

/* The texts of all clusters, and their groups. Texts have the order of principals within their cluster. */
typedef struct {
    const int64_t *bounds; /* the matches of text v are those from bounds[v] to bounds[v + 1], the most similar first */
    const int32_t *near, *similarity, *documents;
    int32_t *centre;
    int32_t *to_centre; /* similarity of each text to its centre */
    int32_t *texts; /* of the group of each centre */
    int64_t *sizes; /* documents of the group of each centre */
    uint8_t *is_centre;
    int32_t *affected, *before, *before_similarity; /* of one move */
    int32_t *out, *own, *alone; /* centres that may stop being one */
    int64_t kept, below, single; /* what a matching pair in one group is worth, another pair there, a document alone */
} Groups;

/* Find the most similar centre of a text that is none; -1 if it matches none. */
static int32_t nearest(const Groups *groups, int32_t text, int32_t *similarity)
{
    for (int64_t k = groups->bounds[text]; k < groups->bounds[text + 1]; k++)
        if (groups->is_centre[groups->near[k]]) {
            *similarity = groups->similarity[k];
            return groups->near[k];
        }
    return -1;
}

/* Move a text to the group of another centre. Returns what the value of the cluster grows by. */
static int64_t put(Groups *groups, int32_t text, int32_t to, int32_t similarity)
{
    int32_t from = groups->centre[text], fewer = 0, more = 0;
    for (int64_t k = groups->bounds[text]; k < groups->bounds[text + 1]; k++) {
        int32_t other = groups->centre[groups->near[k]];
        fewer += other == from;
        more += other == to;
    }
    int64_t gain = groups->kept * (more - fewer);
    gain += groups->below * ((int64_t)(groups->texts[to] - more) - (groups->texts[from] - 1 - fewer));
    gain -= groups->single * ((groups->sizes[from] == 1) + (groups->sizes[to] == 1));
    groups->texts[from]--;
    groups->texts[to]++;
    groups->sizes[from] -= groups->documents[text];
    groups->sizes[to] += groups->documents[text];
    gain += groups->single * ((groups->sizes[from] == 1) + (groups->sizes[to] == 1));
    groups->centre[text] = to;
    groups->to_centre[text] = similarity;
    return gain;
}

/* Make a text a centre (unless it is -1) and others none, if each text still matches a centre and the value grows. */
static int move(Groups *groups, int32_t new, const int32_t *out, int32_t count)
{
    int32_t *centre = groups->centre, size = 0, done = 0, other, similarity = 0;
    for (int32_t k = 0; k < count; k++)
        groups->is_centre[out[k]] = 0;
    for (int32_t k = 0; k < count; k++) {
        groups->affected[size++] = out[k];
        for (int64_t e = groups->bounds[out[k]]; e < groups->bounds[out[k] + 1]; e++)
            if (centre[groups->near[e]] == out[k])
                groups->affected[size++] = groups->near[e];
    }
    if (new >= 0) {
        if (groups->is_centre[centre[new]])
            groups->affected[size++] = new;
        for (int64_t e = groups->bounds[new]; e < groups->bounds[new + 1]; e++) {
            int32_t text = groups->near[e], is = groups->similarity[e], was = groups->to_centre[text];
            if (groups->is_centre[centre[text]] && centre[text] != text && (is > was || (is == was && new < centre[text])))
                groups->affected[size++] = text;
        }
        groups->is_centre[new] = 1;
    }
    int64_t gain = 0, nearer = 0;
    for (; done < size; done++) {
        int32_t text = groups->affected[done];
        other = text;
        similarity = 0;
        if (!groups->is_centre[text] && (other = nearest(groups, text, &similarity)) < 0)
            break;
        groups->before[done] = centre[text];
        groups->before_similarity[done] = groups->to_centre[text];
        nearer += similarity - groups->to_centre[text];
        if (other != centre[text])
            gain += put(groups, text, other, similarity);
    }
    if (done == size && (gain > 0 || (gain == 0 && nearer > 0)))
        return 1;
    while (done--)
        if (groups->before[done] != centre[groups->affected[done]])
            put(groups, groups->affected[done], groups->before[done], groups->before_similarity[done]);
    if (new >= 0)
        groups->is_centre[new] = 0;
    for (int32_t k = 0; k < count; k++)
        groups->is_centre[out[k]] = 1;
    return 0;
}

/* Make the first of these moves that raises the value: a centre stops being one; a text becomes one in place of its own
 * centre, of all centres that it matches, or of none. Centres without members that it matches stop, too. */
static int improve(Groups *groups, int32_t text)
{
    if (groups->is_centre[text])
        return move(groups, -1, &text, 1);
    int32_t all = 0, own = 0, alone = 0;
    for (int64_t e = groups->bounds[text]; e < groups->bounds[text + 1]; e++) {
        int32_t other = groups->near[e];
        if (!groups->is_centre[other])
            continue;
        groups->out[all++] = other;
        if (groups->texts[other] == 1)
            groups->alone[alone++] = groups->own[own++] = other;
        else if (other == groups->centre[text])
            groups->own[own++] = other;
    }
    return move(groups, text, groups->own, own) || (own < all && move(groups, text, groups->out, all)) ||
           move(groups, text, groups->alone, alone);
}

/* Whether the arrays describe texts that match others of their cluster, each once, and centres. */
static int fit(const int64_t *starts, Py_ssize_t clusters, const Groups *groups, Py_ssize_t texts, Py_ssize_t edges)
{
    int32_t *seen = groups->affected;
    if (starts[0] != 0 || starts[clusters] != texts || groups->bounds[0] != 0 || groups->bounds[texts] != edges)
        return 0;
    for (Py_ssize_t cluster = 0; cluster < clusters; cluster++) {
        int64_t start = starts[cluster], end = starts[cluster + 1];
        if (start > end || end > texts)
            return 0;
        for (int64_t text = start; text < end; text++) {
            int64_t first = groups->bounds[text], last = groups->bounds[text + 1], centre = groups->centre[text];
            if (first > last || last > edges)
                return 0;
            if (centre < start || centre >= end || groups->centre[centre] != centre)
                return 0;
            int found = centre == text;
            for (int64_t k = first; k < last; k++) {
                int32_t other = groups->near[k];
                if (other < start || other >= end || other == text || seen[other] == text + 1)
                    return 0;
                seen[other] = (int32_t)text + 1;
                found |= other == centre;
            }
            if (!found)
                return 0;
        }
    }
    return 1;
}

static void prepare(Groups *groups, Py_ssize_t texts)
{
    for (Py_ssize_t text = 0; text < texts; text++) {
        int32_t centre = groups->centre[text];
        groups->is_centre[text] = centre == text;
        groups->texts[centre]++;
        groups->sizes[centre] += groups->documents[text];
        for (int64_t k = groups->bounds[text]; k < groups->bounds[text + 1]; k++)
            if (groups->near[k] == centre)
                groups->to_centre[text] = groups->similarity[k];
    }
}

PyDoc_STRVAR(exchange_doc,
             "exchange(int64 starts[clusters + 1], int64 bounds[texts + 1], int32 near, int32 similarity, int32 "
             "documents[texts], int32 centre[texts], kept, below, alone, rounds): exchange centres while the value of "
             "their cluster grows. Changes centre.");

static PyObject *exchange(PyObject *self, PyObject *args)
{
    Py_buffer starts, bounds, near, similarity, documents, centre;
    Groups groups = {0};
    long long kept, below, single;
    int rounds;
    if (!PyArg_ParseTuple(args, "y*y*y*y*y*w*LLLi", &starts, &bounds, &near, &similarity, &documents, &centre, &kept,
                          &below, &single, &rounds))
        return NULL;
    Py_ssize_t texts = centre.len / 4, clusters = starts.len / 8 - 1;
    groups.bounds = bounds.buf;
    groups.near = near.buf;
    groups.similarity = similarity.buf;
    groups.documents = documents.buf;
    groups.centre = centre.buf;
    groups.kept = kept;
    groups.below = below;
    groups.single = single;
    size_t room = (size_t)texts + 1;
    groups.sizes = calloc(room, sizeof(int64_t));
    groups.is_centre = calloc(room, 1);
    int32_t *numbers = calloc(8 * room, sizeof(int32_t));
    int has_memory = groups.sizes && groups.is_centre && numbers;
    int fits = 1;
    if (has_memory) {
        groups.to_centre = numbers;
        groups.texts = numbers + room;
        groups.affected = numbers + 2 * room;
        groups.before = numbers + 3 * room;
        groups.before_similarity = numbers + 4 * room;
        groups.out = numbers + 5 * room;
        groups.own = numbers + 6 * room;
        groups.alone = numbers + 7 * room;
        fits = clusters >= 0 && texts < INT32_MAX && bounds.len == 8 * (texts + 1) && near.len == similarity.len &&
               documents.len == centre.len && fit(starts.buf, clusters, &groups, texts, near.len / 4);
    }
    if (has_memory && fits) {
        const int64_t *start = starts.buf;
        Py_BEGIN_ALLOW_THREADS;
        prepare(&groups, texts);
        for (Py_ssize_t cluster = 0; cluster < clusters; cluster++)
            for (int round = 0, improved = 1; improved && round < rounds; round++) {
                improved = 0;
                for (int64_t text = start[cluster]; text < start[cluster + 1]; text++)
                    improved |= improve(&groups, (int32_t)text);
            }
        Py_END_ALLOW_THREADS;
    }
    free(groups.sizes);
    free(groups.is_centre);
    free(numbers);
    PyBuffer_Release(&starts);
    PyBuffer_Release(&bounds);
    PyBuffer_Release(&near);
    PyBuffer_Release(&similarity);
    PyBuffer_Release(&documents);
    PyBuffer_Release(&centre);
    if (!has_memory)
        return PyErr_NoMemory();
    if (!fits)
        return PyErr_Format(PyExc_ValueError, "arrays that do not fit together");
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
    {"exchange", exchange, METH_VARARGS, exchange_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_stars", .m_doc = "The exchange of centres of star groups.", .m_methods = methods};

PyMODINIT_FUNC PyInit__stars(void)
{
    return PyModule_Create(&module);
}
