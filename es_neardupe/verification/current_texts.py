"""Current texts of documents that were read before, and the similarity of pairs of them.

Texts are read in bounded portions. Documents that were changed or deleted since then are recorded, and are part of no
pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from es_neardupe.candidates.pair_arrays import Portion, blocks, portions
from es_neardupe.candidates.spill_to_disk import SpilledRows, scratch
from es_neardupe.columns import References
from es_neardupe.errors import NotFound, SettingsError
from es_neardupe.index import queries
from es_neardupe.index.document_text import TextFields, prepared_text, text_of, values_by_field
from es_neardupe.index.index import Index
from es_neardupe.index.settings import Settings
from es_neardupe.keys.arrays import U64, Bytes, Flags, Floats, Ints, Numbers, Positions
from es_neardupe.keys.text import contents, packed_hashes
from es_neardupe.progress import Progress, silent
from es_neardupe.records import Address, DocumentsInScope, Hit, Reference, TextClasses
from es_neardupe.server.client import Client
from es_neardupe.server.search import fetch, fetch_portions
from es_neardupe.similarity.features import INDEXED, fields_of
from es_neardupe.similarity.formulas import FeatureSets
from es_neardupe.similarity.measure import Measure, Prepared

Source = Mapping[str, Any]

_TOKENS = 1_000_000
_CHARS = 4_000_000
"""Size of the texts read by one request, and of those compared at a time: about 8 MB of features."""

_DOCUMENTS = 500
"""Documents read by one request."""

_BLOCK = 1_000_000
"""Numbers compared at a time if they are spilled to disk: 8 MB for each side."""


class StoredTexts(Protocol):
    """What is known of n texts from their fingerprints, as columns; see `FingerprintColumns`."""

    @property
    def references(self) -> References: ...
    @property
    def content(self) -> Bytes: ...
    @property
    def tokens(self) -> Ints: ...


class CurrentDocuments:
    """The current state of n documents that were read before, by their numbers (rows)."""

    portion = _TOKENS
    """Tokens of the texts that are compared at a time, if they have fingerprints."""

    def __init__(
        self,
        client: Client,
        references: Sequence[Reference],
        fields: TextFields,
        *,
        sizes: Ints,
        limit: int,
        unchanged: Callable[[Positions, Sequence[Hit | None]], Flags],
    ) -> None:
        """``fields`` are the text fields, ``sizes`` (shape (n,)) the sizes of the texts, and ``limit`` the maximum size
        of a portion; ``unchanged`` compares documents (rows, hits) with how they were first read."""
        self.fields = fields
        self.sizes = sizes
        self.limit = limit
        self.seen = np.zeros(len(references), np.bool_)
        """Documents that were read again; shape (n,)."""
        self.changed_or_deleted = np.zeros(len(references), np.bool_)
        """Documents that were changed or deleted since they were first read; shape (n,)."""
        self.deleted = np.zeros(len(references), np.bool_)
        """Those that were deleted; shape (n,)."""
        self._client = client
        self.references = references
        self._unchanged = unchanged

    @classmethod
    def of_corpus(cls, client: Client, settings: Settings, corpus: StoredTexts) -> CurrentDocuments:
        """Documents with fingerprints. They are unchanged if their text has the stored content hash."""

        def unchanged(rows: Positions, hits: Sequence[Hit | None]) -> Flags:
            texts = ["" if hit is None else prepared_text(hit.source, settings) for hit in hits]
            same: Flags = packed_hashes(contents(texts)) == corpus.content[rows]
            return same

        fields, sizes = TextFields.of(settings), corpus.tokens
        return cls(client, corpus.references, fields, sizes=sizes, limit=_TOKENS, unchanged=unchanged)

    @classmethod
    def of_scope(cls, client: Client, scope: DocumentsInScope, fields: Sequence[str]) -> CurrentDocuments:
        """Documents of any index. They are unchanged if they have the same version."""

        def unchanged(rows: Positions, hits: Sequence[Hit | None]) -> Flags:
            versions = [(-1, -1) if hit is None else (hit.seq_no or 0, hit.primary_term or 0) for hit in hits]
            same: Flags = (np.array(versions, np.int64) == scope.versions[rows]).all(axis=1)
            return same

        references, sizes = scope.references, scope.sizes
        texts = _ReadableValues(tuple(fields))
        return cls(client, references, texts, sizes=sizes, limit=_CHARS, unchanged=unchanged)

    @property
    def changed(self) -> Flags:
        """Documents that were changed, but not deleted; shape (n,)."""
        return self.changed_or_deleted & ~self.deleted

    def adopt(self, earlier: CurrentDocuments) -> None:
        """Take over the state of the documents that ``earlier`` has in common with these."""
        row_of = {reference[:2]: row for row, reference in enumerate(earlier.references)}
        earlier_rows = np.array([row_of.get(reference[:2], -1) for reference in self.references], np.intp)
        rows = np.flatnonzero(earlier_rows >= 0)
        earlier_rows = earlier_rows[rows]
        self.seen[rows] |= earlier.seen[earlier_rows]
        self.changed_or_deleted[rows] |= earlier.changed_or_deleted[earlier_rows]
        self.deleted[rows] |= earlier.deleted[earlier_rows]

    def adopt_all(self, same: CurrentDocuments) -> None:
        """Take over the state of the same documents."""
        self.seen |= same.seen
        self.changed_or_deleted |= same.changed_or_deleted
        self.deleted |= same.deleted

    def read(
        self, rows: Positions, fields: Sequence[str] | None = None
    ) -> Iterator[tuple[Positions, list[Source | None]]]:
        """Portions of the rows with the given fields of their documents (default: the text fields); None for a document
        that was changed or deleted."""
        for chunk in self._requests(rows):
            references = (self.references[row] for row in chunk.tolist())
            hits = list(fetch(self._client, references, fields or self.fields.names, batch=_DOCUMENTS))
            exists = np.array([hit is not None for hit in hits], np.bool_)
            same = exists & self._unchanged(chunk, hits)
            self.seen[chunk] = True
            self.changed_or_deleted[chunk[~same]] = True
            self.deleted[chunk[~exists]] = True
            yield chunk, [hit.source if hit and one else None for hit, one in zip(hits, same.tolist(), strict=True)]

    def texts(self, rows: Positions) -> Iterator[tuple[int, str]]:
        """(row, text) in the order of ``rows``, without documents that were changed or deleted."""
        for chunk, sources in self.read(rows):
            for row, source in zip(chunk.tolist(), sources, strict=True):
                if source is not None:
                    yield row, self.fields.text(source)

    def prepared(
        self, rows: Positions, measures: Sequence[Measure]
    ) -> Iterator[tuple[Positions, list[list[Prepared]]]]:
        """Portions of the rows, with the prepared input of each measure; empty for documents that were changed or
        deleted."""
        names = self.fields.names
        fields = list(dict.fromkeys([*names, *(name for one in measures for name in one.fields(names))]))
        for chunk, sources in self.read(rows, fields):
            documents = [{} if source is None else source for source in sources]
            yield chunk, [prepared(measure, documents, self.fields) for measure in measures]

    def _requests(self, rows: Positions) -> Iterator[Positions]:
        """The rows of each request, bounded in number and size."""
        for some in _requests(self.sizes[rows].tolist(), self.limit):
            yield rows[some]


def _requests(sizes: Sequence[int], limit: int) -> Iterator[slice]:
    """The places of the documents of each request, bounded in number and size."""
    start = total = 0
    for place, size in enumerate(sizes):
        if place > start and (place - start == _DOCUMENTS or total + size > limit):
            yield slice(start, place)
            start, total = place, 0
        total += size
    if len(sizes):
        yield slice(start, len(sizes))


class _ReadableValues(TextFields):
    """Fields of any index; objects have no value."""

    def text(self, source: Source) -> str:
        return "\n".join(value for values in values_by_field(source, self.names).values() for value in values)


def prepared(measure: Measure, sources: Sequence[Source], fields: TextFields) -> list[Prepared]:
    """The prepared input of the measure, for documents that were read with the fields of the measure."""
    if not measure.sources:
        return measure.prepare([fields.text(source) for source in sources])
    names = {name for tree in measure.sources for name in fields_of(tree)}
    documents = [values_by_field(source, sorted(names - {INDEXED})) for source in sources]
    if INDEXED in names:
        for document, source in zip(documents, sources, strict=True):
            document[INDEXED] = fields.values(source)
    return measure.prepare([""] * len(sources), documents)


class Compared(NamedTuple):
    """Pairs compared by m measures. p pairs of k documents or classes."""

    similarity: Floats
    """NaN if a text was changed or deleted. Shape (m, p)."""
    sizes: Ints
    """Size of the prepared input of each document (`Measure.prepare`); 0 if it was not read. Shape (m, k)."""


class PairComparer:
    """Compares pairs of documents, or of classes of documents with equal texts, by their current texts.

    One document of each class is read; if it was changed or deleted, the next one. A class without any unchanged
    document is part of no pair.
    """

    def __init__(
        self, documents: CurrentDocuments, measures: Mapping[str, Measure], classes: TextClasses | None = None
    ) -> None:
        """``measures``: by the names of their progress stages. ``classes``: compared instead of single documents."""
        self.documents = documents
        self.measures = measures
        self.classes = classes
        self.compared = 0
        """Pairs whose texts were compared."""
        self.common: set[int] = set()
        """Rows whose text has only ignored shingles."""
        self._first: Numbers = np.arange(len(documents.seen)) if classes is None else classes.first
        self._several = np.zeros(len(self._first), np.bool_) if classes is None else classes.sizes > 1

    def compare(self, left: Numbers, right: Numbers, progress: Progress = silent) -> Compared:
        """The similarity of pairs by each measure; 0 if there is nothing to compare in a document.

        Clusters of connected pairs are compared together, so that each text is read once, however many pairs it is in.
        The prepared input of a large cluster is spilled to disk, and its pairs are compared in blocks, so memory stays
        bounded.
        """
        count, size = len(self.measures), len(self._first)
        similarity, sizes = np.full((count, len(left)), np.nan), np.zeros((count, size), np.int64)
        places, done = np.zeros(size, np.int32), 0
        for portion in portions(left, right, self.documents.sizes[self._first], self.documents.limit):
            numbers = portion.nodes
            with scratch() as files:
                rows = [SpilledRows(files) for _ in self.measures]
                places[numbers] = self._read(numbers, rows, progress)
                existing = numbers[places[numbers] >= 0]
                for k, (stage, measure) in enumerate(self.measures.items()):
                    sizes[k, existing] = rows[k].lengths[places[existing]]
                    reported = _part(progress, stage, done, len(left))
                    compared = 0
                    for some in _by_texts(portion, sizes[k, numbers]):
                        pairs, a, b = some, places[left[some]], places[right[some]]
                        complete = (a >= 0) & (b >= 0)
                        if not complete.all():
                            pairs, a, b = some[complete], a[complete], b[complete]
                        similarity[k, pairs] = _scores(measure, rows[k], a, b, _part(reported, "", compared, 0))
                        compared += len(pairs)
                    reported("", len(portion), 0)
            done += len(portion)
            self.compared += compared
        return Compared(similarity, sizes)

    def read_classes(self, numbers: Positions, progress: Progress = silent) -> tuple[list[Prepared], Flags]:
        """The prepared input of classes for the only measure, and whether each class has an unchanged document; empty
        for those that have none."""
        with scratch() as files:
            rows = SpilledRows(files)
            places = self._read(numbers, [rows], progress)
            held = [*rows.read(0, len(rows.lengths)), np.empty(0, np.uint64)]  # the last one for places of -1
        return [held[place] for place in places.tolist()], places >= 0

    def _read(self, numbers: Positions, spilled: Sequence[SpilledRows], progress: Progress) -> NDArray[np.int32]:
        """Add the prepared input of each class and measure to ``spilled``, and return its place there; -1 for a class
        without any unchanged document."""
        places = np.full(len(numbers), -1, np.int32)
        waiting = np.arange(len(numbers))
        large = int(self.documents.sizes[self._first[numbers]].sum()) > self.documents.limit
        reported = progress if large else silent
        read = 0
        while len(waiting):
            rows = self.first_rows(numbers[waiting])
            waiting, rows = waiting[rows >= 0], rows[rows >= 0]
            places[waiting] = np.arange(read, read + len(waiting))
            for chunk, each in self.documents.prepared(rows, list(self.measures.values())):
                for spill, arrays in zip(spilled, each, strict=True):
                    spill.add(arrays)
                self._note_common(chunk, each)
                read += len(chunk)
                reported("reading candidates", min(read, len(numbers)), len(numbers))
            lost = self.documents.changed_or_deleted[rows]
            places[waiting[lost]] = -1
            waiting = waiting[lost]
        return places

    def _note_common(self, rows: Positions, each: Sequence[Sequence[Prepared]]) -> None:
        for measure, arrays in zip(self.measures.values(), each, strict=True):
            if measure.ignored is not None:
                pairs = zip(rows.tolist(), arrays, strict=True)
                self.common.update(row for row, one in pairs if measure.only_ignored(one))

    def first_rows(self, numbers: Numbers) -> Numbers:
        """The first document of each class that is not known to be changed or deleted; -1 if there is none."""
        rows = self._first[numbers]
        for place in np.flatnonzero(self.documents.changed_or_deleted[rows]).tolist():
            members = [] if self.classes is None else self.classes[int(numbers[place])].tolist()
            rows[place] = next((row for row in members if not self.documents.changed_or_deleted[row]), -1)
        return rows

    def check_copies(self, progress: Progress = silent) -> None:
        """Read the exact copies that were not read for any pair, and record those that were changed or deleted.

        Copies are grouped by their stored content hash, without being compared. An application that changes only the
        text leaves that hash unchanged.
        """
        self._check_unread(self._several, progress)

    def confirmed(
        self,
        left: Numbers,
        right: Numbers,
        matches: Flags,
        progress: Progress = silent,
        *,
        among: Flags | None = None,
    ) -> Flags:
        """The matches (bool of each pair) whose texts still exist, after reading every text of a match, and every copy,
        that was not read yet. Copies are those of all classes, or of the classes ``among`` (bool of each class).

        Call this before linking matches: a group must not be built around a text that was changed or deleted.
        """
        unconfirmed = self._several.copy() if among is None else self._several & among
        for some in blocks(len(left)):
            chosen = matches[some]
            unconfirmed[left[some][chosen]] = unconfirmed[right[some][chosen]] = True
        self._check_unread(unconfirmed, progress)
        return matches & self.exist(left) & self.exist(right)

    def exist(self, numbers: Numbers) -> Flags:
        """Whether each class has a document that is not known to be changed or deleted; bool of the same length."""
        if not self.documents.changed_or_deleted.any():
            return np.ones(len(numbers), np.bool_)
        return (self.first_rows(np.arange(len(self._first))) >= 0)[numbers]

    def _check_unread(self, chosen: Flags, progress: Progress) -> None:
        """Read the documents of the chosen classes (bool of each class) that were not read yet."""
        rows = np.flatnonzero(chosen) if self.classes is None else self.classes.in_lists(chosen)
        self.check(rows[~self.documents.seen[rows]], progress)

    def check(self, unseen: Positions, progress: Progress = silent) -> None:
        """Read documents that were not read yet, and record those that were changed or deleted."""
        ignoring = any(measure.ignored is not None for measure in self.measures.values())
        done = 0
        progress("checking unread texts", 0, len(unseen))
        for chunk, each in self.documents.prepared(unseen, list(self.measures.values()) if ignoring else ()):
            if ignoring:
                self._note_common(chunk, each)
            done += len(chunk)
            progress("checking unread texts", done, len(unseen))


def _by_texts(portion: Portion, lengths: Ints) -> Iterator[Positions]:
    """The positions of the pairs of a portion, in blocks whose left texts are in one block of texts. ``lengths``: of
    the prepared input of each node."""
    cuts = np.flatnonzero(np.diff(np.cumsum(lengths + 1) // _BLOCK)) + 1
    for first, last in pairwise([0, *cuts.tolist(), len(lengths)]):
        yield from portion.pairs(slice(first, last))


def _part(progress: Progress, name: str, before: int, whole: int) -> Progress:
    """Reports the progress in a part of the pairs as progress in all of them."""

    def reported(stage: str, done: int, total: int | None) -> None:
        progress(name, before + done, whole)

    return reported


def _scores(
    measure: Measure, rows: SpilledRows, left: NDArray[np.int32], right: NDArray[np.int32], reported: Progress
) -> Floats:
    """The similarity of pairs of rows; 0 if one of them is empty."""
    similarity = np.empty(len(left))
    done = 0
    reported("", done, len(left))
    for some, arrays, a, b in _blocks(rows, left, right):
        similarity[some] = measure.scores(arrays, a, b, _part(reported, "", done, len(left)))
        done += len(some)
        reported("", done, len(left))
    filled = rows.lengths > 0
    if not filled.all():
        similarity[~(filled[left] & filled[right])] = 0
    return similarity


def _blocks(
    rows: SpilledRows, left: NDArray[np.int32], right: NDArray[np.int32]
) -> Iterator[tuple[Positions, list[U64], Positions, Positions]]:
    """Portions of the pairs: numbers of the pairs, the arrays that they need, and both sides as places in these."""
    block = (np.cumsum(rows.lengths + 1) // _BLOCK).astype(np.int32)
    if not block.any():
        yield np.arange(len(left)), rows.read(0, len(block)), left.astype(np.intp), right.astype(np.intp)
        return
    edges = np.searchsorted(block, np.arange(int(block[-1]) + 2))
    for some in _by_blocks(block[left], block[right]):
        places = np.unique(np.concatenate((left[some], right[some])))
        arrays = []
        for one in np.unique(block[places]).tolist():
            first, last = int(edges[one]), int(edges[one + 1])
            held = rows.read(first, last)
            arrays += [held[place - first] for place in places[(places >= first) & (places < last)].tolist()]
        yield some, arrays, np.searchsorted(places, left[some]), np.searchsorted(places, right[some])


def _by_blocks(left: NDArray[np.int32], right: NDArray[np.int32]) -> list[Positions]:
    """The numbers of the pairs of each pair of blocks, whichever side is in which."""
    if not len(left):
        return []
    code = np.minimum(left, right).astype(np.int64) << 32 | np.maximum(left, right)
    order = np.argsort(code, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(code[order])) + 1)


def current_hits(client: Client, references: Iterable[Reference], fields: Sequence[str]) -> Iterator[list[Hit]]:
    """Documents by their addresses, in portions that fit into memory, without those that were deleted."""
    for found in fetch_portions(client, references, fields):
        yield [hit for hit in found if hit is not None]


def current_sources(
    client: Client, references: Sequence[Reference], tokens: Sequence[int], fields: Sequence[str]
) -> Iterator[Source | None]:
    """The fields of documents whose texts have about so many ``tokens``, in their order; None if one was deleted."""
    for some in _requests(tokens, _TOKENS):
        for hit in fetch(client, references[some], fields, batch=_DOCUMENTS):
            yield None if hit is None else hit.source


def similarities(
    measure: Measure, sources: Sequence[Source], fields: TextFields, left: Positions, right: Positions
) -> Floats:
    """The exact similarity of the pairs ``(sources[left[k]], sources[right[k]])``; 0 if one of them has nothing to
    compare. They have the text ``fields`` and those of the measure (`Measure.fields`)."""
    arrays = prepared(measure, sources, fields)
    similarity = measure.scores(arrays, left, right)
    filled = np.array([len(one) > 0 for one in arrays], np.bool_)
    similarity[~(filled[left] & filled[right])] = 0
    return similarity


def compared_with(
    index: Index, measure: Measure, probe: Source, portions: Iterable[Sequence[Hit]]
) -> Iterator[tuple[Hit, float]]:
    """Each document of the portions with the exact similarity of its text to the probe (a source). They have the fields
    of the index and of the measure (`Measure.fields`)."""
    fields = TextFields.of(index.settings)
    first = list[Prepared]()
    for hits in filter(None, portions):
        right = np.arange(1, len(hits) + 1)
        sources = [hit.source for hit in hits]
        arrays = first + prepared(measure, sources if first else [probe, *sources], fields)
        first = arrays[:1]
        yield from zip(hits, measure.scores(arrays, np.zeros_like(right), right).tolist(), strict=True)


_ROUTINGS = 100
"""Documents with one id that are compared: an index has at most one in each of its shards."""


def current_source(
    index: Index, document: str | Address, fields: Sequence[str], *, unique: bool = False
) -> tuple[Address, Source]:
    """The address of a document that is given by its id or its address, and the given fields of its current source. Of
    several indices, INDEX/ID is a document unless it is an id.

    In a single index, the document is read by its address, which is faster and also finds one that is new. A search
    finds a document in several indices, and one with a routing; of documents with the same id and text under different
    routings, any. Raises `NotFound`, and `SettingsError` for an id that is empty, for one without an index that is in
    two indices, and for one that different texts have under different routings; if it must be ``unique``, also for one
    that several documents with the same text have.
    """
    asked, id = document if isinstance(document, Address) else (None, document)
    if id == "":
        raise SettingsError("The id of a document cannot be empty.")
    indices = [one for one in index.target.indices if asked in (None, one)]
    found = [] if len(indices) > 1 else _by_address(index, indices, id, fields)
    if not found and indices:
        query = queries.all_of({"ids": {"values": [id]}}, None if asked is None else {"term": {"_index": asked}})
        body = {"size": _ROUTINGS, "query": query, "_source": list(fields)}
        found = [(Address(hit["_index"], id), hit["_source"]) for hit in index.documents.search(body)["hits"]["hits"]]
    if not found and len(indices) > 1:
        found = _by_address(index, indices, id, fields)
    if not found and asked is None and len(indices) > 1:
        concrete, _, rest = id.partition("/")  # as tables show it
        if rest and concrete in indices:
            return current_source(index, Address(concrete, rest), fields, unique=unique)
    if not found:
        where = index.name if asked in (None, index.name) else f"index {asked} of {index.name}"
        raise NotFound(f"There is no document {id!r} in {where}.", status=404)
    (first, source), *others = found
    for other, its in others:
        if other.index != first.index:
            raise SettingsError(
                f"Document {id!r} is in {first.index} and in {other.index}: give it as {first.index}/{id} or "
                f"{other.index}/{id}."
            )
        if unique or text_of(its, index.settings.fields) != text_of(source, index.settings.fields):
            raise SettingsError(
                f"Index {first.index} has several documents {id!r}, under different routings: give the text itself "
                f"instead of the id."
            )
    return first, source


def _by_address(index: Index, indices: Sequence[str], id: str, fields: Sequence[str]) -> list[tuple[Address, Source]]:
    """The documents with an id and without a routing, whether or not a search sees them."""
    references: list[Reference] = [(concrete, id, None) for concrete in indices]
    found = index.documents.fetch(references, fields)
    return [(hit.address, hit.source) for hit in found if hit is not None and hit.routing is None]


class OneWithMany:
    """The prepared texts of n classes, read once. Made for sets of features, and slow for other measures."""

    def __init__(self, comparer: PairComparer, classes: Positions, progress: Progress = silent) -> None:
        """``comparer`` has one measure."""
        (self._measure,) = comparer.measures.values()
        self._texts, self._exists = comparer.read_classes(classes, progress)
        self._filled = np.array([len(one) > 0 for one in self._texts], np.bool_)
        self._sets = FeatureSets(self._texts) if self._measure.at_once else None
        if self._sets is not None:
            self._texts = []

    def similarities(self, one: int, others: Positions) -> Floats:
        """The similarity of one class to others, by their places; float64 of the same length as ``others``. NaN if a
        text was changed or deleted; 0 if there is nothing to compare in a text."""
        left = np.full(len(others), one)
        if self._sets is not None:
            similarity = self._sets.resemblances(left, others)
        else:
            similarity = self._measure.scores(self._texts, left, others)
        similarity[~(self._filled[others] & self._filled[one])] = 0
        similarity[~(self._exists[others] & self._exists[one])] = np.nan
        return similarity
