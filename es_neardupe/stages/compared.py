"""Stage: candidates -> several measures of each, computed on the present texts, which are read once for all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from es_neardupe import documents
from es_neardupe.allpairs import measure_name, of_pairs
from es_neardupe.clients import Client
from es_neardupe.fetch import fetch
from es_neardupe.graphs import portions
from es_neardupe.keys.content import contents
from es_neardupe.progress import Progress, silent
from es_neardupe.records import Classes, Corpus
from es_neardupe.scoring import Measure
from es_neardupe.settings import Settings

__all__ = ["Compared", "Texts", "compare"]

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
            texts = [documents.text_of(source, self.settings.fields) for source in sources]
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
    result.similarity[pairs] = of_pairs(measure, prepared, a, b, progress)
    progress("", len(portion), None)


def _part(progress: Progress, name: str, before: int, whole: int) -> Progress:
    """Tell of a part of a stage as of the stage."""

    def told(stage: str, done: int, total: int | None) -> None:
        progress(name, before + done, whole)

    return told
