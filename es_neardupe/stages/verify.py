"""Stage: candidate pairs -> their exact similarity, computed on the present texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from es_neardupe import documents
from es_neardupe.clients import Client
from es_neardupe.fetch import fetch
from es_neardupe.graphs import portions
from es_neardupe.keys.content import contents
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.records import Classes, Corpus, Reference
from es_neardupe.scoring import Measure, Prepared
from es_neardupe.settings import Settings

__all__ = ["Verifier"]

_BATCH_TOKENS = 5_000_000
"""Tokens of the texts compared at a time: some 40 MB of features, unless one cluster alone is larger."""

_FETCH_TOKENS = 1_000_000
_FETCH_DOCUMENTS = 500

_STEP = 1000
"""Pairs between two reports of progress, for measures that take them one by one."""


@dataclass
class Verifier:
    """Compares classes of equal texts by the present text of one document of each.

    A document whose text no longer has the stored content hash is ``changed`` (or ``gone``), and the next one of its
    class is asked; a class without any left takes part in nothing (its pairs get NaN).
    """

    client: Client
    settings: Settings
    corpus: Corpus
    classes: Classes
    measure: Measure
    changed: set[int] = field(default_factory=set)
    """Rows whose text is another than the one that was fingerprinted."""
    gone: set[int] = field(default_factory=set)
    """Rows whose document was deleted."""
    seen: set[int] = field(default_factory=set)
    """Rows whose text was read."""

    def similarities(
        self, left: NDArray[np.intp], right: NDArray[np.intp], progress: Progress = silent
    ) -> NDArray[np.float64]:
        """The measure of pairs of classes; float64 of the pairs' number, NaN where a text is no longer there.

        Clusters of connected pairs are taken together, so that each text is read once however many pairs it is in.
        """
        result = np.full(len(left), np.nan)
        done = 0
        progress("verifying pairs", 0, len(left))
        weights = np.array([self.corpus.tokens[rows[0]] for rows in self.classes.members], np.int64)
        for batch in portions(left, right, weights, _BATCH_TOKENS):
            numbers = np.unique([left[batch], right[batch]])
            found = self._prepared(numbers)
            there = np.array([number in found for number in numbers.tolist()])
            pairs = batch[there[np.searchsorted(numbers, left[batch])] & there[np.searchsorted(numbers, right[batch])]]
            done += len(batch) - len(pairs)
            place_of, known = np.cumsum(there) - 1, list(found.values())
            for part in self._parts(pairs):
                a, b = (place_of[np.searchsorted(numbers, side[part])] for side in (left, right))
                result[part] = self.measure.scores(known, a, b)
                done += len(part)
                progress("verifying pairs", done, len(left))
        return result

    def _parts(self, pairs: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
        """The pairs at once where the measure compares them so, else in steps."""
        step = len(pairs) if self.measure.by_keys else _STEP
        return (pairs[start : start + step] for start in range(0, len(pairs), step or 1))

    def check_copies(self, progress: Progress = silent) -> None:
        """Read the texts of exact copies that were not needed for any pair, and note those that have changed.

        A copy is grouped without being compared, on the word of its stored content hash; an application that
        changes only the text leaves that hash standing.
        """
        copies = (row for rows in self.classes.members if len(rows) > 1 for row in rows.tolist())
        unseen = [row for row in copies if row not in self.seen]
        for _ in tracked(self._read(unseen), progress, "checking exact copies", len(unseen)):
            pass

    def _prepared(self, numbers: NDArray[np.intp]) -> dict[int, Prepared]:
        """What is compared of each class that has an unchanged document, in the order of the numbers."""
        found: dict[int, Prepared] = {}
        waiting = [int(number) for number in numbers]
        while asked := [(number, row) for number in waiting if (row := self.first_row(number)) is not None]:
            for (number, _), one in zip(asked, self._read([row for _, row in asked]), strict=True):
                if one is not None:
                    found[number] = one
            waiting = [number for number, _ in asked if number not in found]
        return {number: found[number] for number in numbers.tolist() if number in found}

    @property
    def away(self) -> set[int]:
        """Rows that are not as they were fingerprinted: changed or deleted."""
        return self.changed | self.gone

    def first_row(self, number: int) -> int | None:
        """The first document of a class that is not known to have changed, None if there is none."""
        rows = self.classes.members[number].tolist()
        return next((row for row in rows if row not in self.changed and row not in self.gone), None)

    def _read(self, rows: Sequence[int]) -> Iterator[Prepared | None]:
        """What is compared of rows, None for (and a note of) those that are not as they were fingerprinted."""
        fields = self.settings.fields
        wanted = self.measure.fields(fields)
        for chunk in self._fetches(rows):
            references: list[Reference] = [self.corpus.references[row] for row in chunk]
            hits = list(fetch(self.client, references, wanted, batch=_FETCH_DOCUMENTS))
            self.seen.update(chunk)
            sources = [{} if hit is None else hit.source for hit in hits]
            texts = [documents.readable_text(source, fields) or "" for source in sources]
            present = zip(contents(texts), documents.prepared(self.measure, sources, texts, fields), strict=True)
            for row, hit, (content, found) in zip(chunk, hits, present, strict=True):
                if hit is None:
                    self.gone.add(row)
                    yield None
                elif content.encode() != self.corpus.content[row]:
                    self.changed.add(row)
                    yield None
                else:
                    yield found

    def _fetches(self, rows: Sequence[int]) -> Iterator[list[int]]:
        """Rows to fetch in one request: bounded in number and in text."""
        chunk: list[int] = []
        tokens = 0
        for row in rows:
            weight = int(self.corpus.tokens[row])
            if chunk and (len(chunk) == _FETCH_DOCUMENTS or tokens + weight > _FETCH_TOKENS):
                yield chunk
                chunk, tokens = [], 0
            chunk.append(row)
            tokens += weight
        if chunk:
            yield chunk
