"""Stage: candidates -> several measures of each, computed on the present texts, which are read once for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_neardupe.candidates.pair_arrays import portions
from es_neardupe.errors import NotFound, SettingsError
from es_neardupe.index.document_text import text_of, values_of
from es_neardupe.index.index import Index
from es_neardupe.index.settings import Settings
from es_neardupe.keys.text import contents
from es_neardupe.progress import Progress, silent
from es_neardupe.records import Classes, Corpus, Hit, Reference
from es_neardupe.server.bulk import chunked
from es_neardupe.server.client import Client
from es_neardupe.server.fetch import fetch
from es_neardupe.server.search import search
from es_neardupe.similarity.features import INDEXED, fields_of
from es_neardupe.similarity.measure import Measure, Prepared, measure_name

__all__ = ["Compared", "Texts", "compare", "compared_with", "prepared", "present_source"]


def prepared(
    measure: Measure, sources: Sequence[Mapping[str, Any]], texts: Sequence[str], fields: Sequence[str]
) -> list[Prepared]:
    """What the measure compares of documents that were read with ``measure.fields(fields)``; a field that holds an
    object has no values."""
    if not measure.sources:
        return measure.prepare(texts)
    names = {name for tree in measure.sources for name in fields_of(tree)}
    values = [{name: values_of(one, fields if name == INDEXED else [name]) for name in names} for one in sources]
    return measure.prepare(texts, values)


Rows = NDArray[np.intp]

_BATCH_TOKENS = 5_000_000
"""Tokens of the texts held at a time, unless one cluster of candidates alone has more."""

_FETCH_TOKENS = 1_000_000
_FETCH_DOCUMENTS = 500


@dataclass
class Texts:
    """Reads texts, and notes the rows whose document is gone or has another text than was fingerprinted."""

    client: Client
    settings: Settings
    corpus: Corpus
    away: set[int] = field(default_factory=set)

    def read(self, rows: Rows) -> Iterator[tuple[int, str]]:
        """(row, text) in the order of ``rows``, without those that are away."""
        for portion in self._portions(rows):
            references = [self.corpus.references[row] for row in portion]
            hits = fetch(self.client, references, self.settings.fields, batch=_FETCH_DOCUMENTS)
            sources = [{} if hit is None else hit.source for hit in hits]
            texts = [text_of(source, self.settings.fields) for source in sources]
            for row, text, content in zip(portion, texts, contents(texts), strict=True):
                if content.encode() == self.corpus.content[row]:
                    yield row, text
                else:
                    self.away.add(row)

    def _portions(self, rows: Rows) -> list[list[int]]:
        """Rows to fetch in one request: bounded in number and in text."""
        if not len(rows):
            return []
        weights = self.corpus.tokens[rows] + _FETCH_TOKENS // _FETCH_DOCUMENTS
        portion = np.cumsum(weights) // _FETCH_TOKENS
        return [part.tolist() for part in np.split(rows, np.flatnonzero(np.diff(portion)) + 1)]


@dataclass(frozen=True)
class Compared:
    """Candidates, pairs of classes of equal texts, with one measure of each."""

    left: Rows
    right: Rows
    similarity: NDArray[np.float64]
    """NaN where a text is no longer there."""
    sizes: NDArray[np.int64]
    """Documents of each class, without those that are away."""
    first: Rows
    """A row of each class that is not away, -1 where there is none."""


def compare(
    texts: Texts,
    classes: Classes,
    left: Rows,
    right: Rows,
    *,
    measures: Sequence[Measure],
    progress: Progress = silent,
) -> list[Compared]:
    """Compare the present texts of candidates by each measure. Of exact copies each is read, to see whether it is
    still one, and the first is compared for all of them."""
    sizes = np.array([len(rows) for rows in classes.members], np.int64)
    first = classes.first
    results = [Compared(left, right, np.full(len(left), np.nan), sizes, first) for _ in measures]
    weights = np.array([texts.corpus.tokens[rows].sum() for rows in classes.members], np.int64)
    read = np.zeros(len(classes), np.bool_)
    done = 0
    for portion in portions(left, right, weights, _BATCH_TOKENS):
        numbers = np.unique([left[portion], right[portion]])
        read[numbers] = True
        present = _present(texts, classes, numbers, sizes, first)
        for measure, result in zip(measures, results, strict=True):
            told = _part(progress, f"candidates, {measure_name(measure)}", done, len(left))
            _score(result, portion, present, measure, told)
        done += len(portion)
    copies = np.flatnonzero((sizes > 1) & ~read)
    for part in np.split(copies, np.flatnonzero(np.diff(np.cumsum(weights[copies]) // _BATCH_TOKENS)) + 1):
        _present(texts, classes, part, sizes, first)
    return results


def _present(texts: Texts, classes: Classes, numbers: Rows, sizes: NDArray[np.int64], first: Rows) -> dict[int, str]:
    """Class -> the text that is still there; and write down how many documents have it."""
    class_of = {int(row): int(number) for number in numbers for row in classes.members[number]}
    sizes[numbers], first[numbers] = 0, -1
    found: dict[int, str] = {}
    for row, text in texts.read(np.array(list(class_of), np.intp)):
        number = class_of[row]
        if number not in found:
            found[number] = text
            first[number] = row
        sizes[number] += 1
    return found


def _score(result: Compared, portion: Rows, present: dict[int, str], measure: Measure, progress: Progress) -> None:
    """Write down the measure of a portion of the pairs."""
    numbers = np.array(sorted(present), np.intp)
    pairs = portion[np.isin(result.left[portion], numbers) & np.isin(result.right[portion], numbers)]
    a, b = np.searchsorted(numbers, result.left[pairs]), np.searchsorted(numbers, result.right[pairs])
    prepared = measure.prepare([present[number] for number in numbers.tolist()])
    result.similarity[pairs] = measure.scores(prepared, a, b, progress)
    progress("", len(portion), None)


def _part(progress: Progress, name: str, before: int, whole: int) -> Progress:
    """Tell of a part of a stage as of the stage."""

    def told(stage: str, done: int, total: int | None) -> None:
        progress(name, before + done, whole)

    return told


_FETCH = 50
"""Texts compared at a time."""


def present_source(index: Index, id: str, fields: Sequence[str]) -> tuple[str, Mapping[str, Any]]:
    """The concrete index of a document and the named fields of its source, as they are now.

    A search finds it whatever its routing; a document that no search sees yet is asked for by its address.
    Raises `NotFound`, and `SettingsError` for an id that is empty or in two of the indices.
    """
    if id == "":
        raise SettingsError("The id is empty: no document has such a one.")
    body = {"size": 2, "query": {"ids": {"values": [id]}}, "_source": list(fields)}
    found = [(hit["_index"], hit["_source"]) for hit in search(index.client, index.path, body)["hits"]["hits"]]
    if not found:
        references: list[Reference] = [(concrete, id, None) for concrete in index.target.indices]
        hits = fetch(index.client, references, fields)
        found = [(hit.index, hit.source) for hit in hits if hit is not None]
    if not found:
        raise NotFound(f"There is no document {id!r} in {index.name}.", status=404)
    if len(found) > 1:
        raise SettingsError(f"Document {id!r} is in {found[0][0]} and in {found[1][0]}: name one of these indices.")
    return found[0]


def compared_with(
    index: Index,
    measure: Measure,
    probe: Mapping[str, Any],
    references: Sequence[Reference],
    *,
    more: Sequence[str] = (),
) -> Iterator[tuple[Hit, float]]:
    """Each document with the similarity of its present text to the probe (a source), exact; one that was deleted
    meanwhile is left out. ``more`` names fields to read besides."""
    fields = index.settings.fields
    own = _prepared(measure, [probe], fields)[0]
    for chunk in chunked(references, _FETCH):
        hits = [hit for hit in fetch(index.client, chunk, [*measure.fields(fields), *more]) if hit is not None]
        for hit, theirs in zip(hits, _prepared(measure, [hit.source for hit in hits], fields), strict=True):
            yield hit, measure.score(own, theirs)


def _prepared(measure: Measure, sources: Sequence[Mapping[str, Any]], fields: Sequence[str]) -> list[Prepared]:
    texts = [text_of(source, fields) for source in sources]
    return prepared(measure, sources, texts, fields)
