"""Stage: candidate pairs -> their exact similarity, computed on the present texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from es_neardupe.candidates.fingerprints import classes_of
from es_neardupe.candidates.join import Candidates, candidate_pairs
from es_neardupe.candidates.pair_arrays import components, portions
from es_neardupe.candidates.who_may_meet import DEFAULT_RULES, Rules
from es_neardupe.index.document_text import text_of, values_by_field
from es_neardupe.index.index import Index
from es_neardupe.index.settings import Settings
from es_neardupe.keys.text import contents
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.records import Classes, Corpus, Reference, Scope
from es_neardupe.server.client import Client
from es_neardupe.server.fetch import fetch
from es_neardupe.similarity.measure import Measure, Prepared
from es_neardupe.verification.known_pairs import PairMemory
from es_neardupe.verification.read_texts import prepared
from es_neardupe.verification.spill_to_disk import Rows, Scratch

__all__ = ["Validated", "Verified", "Verifier", "validate", "verified_pairs"]


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
    memory: PairMemory | None = None
    """Similarities by this measure that are known already; new ones are added. Left alone where the measure looks
    at more than the tokens, as their hash does not tell what it says then."""
    changed: set[int] = field(default_factory=set)
    """Rows whose text is another than the one that was fingerprinted."""
    gone: set[int] = field(default_factory=set)
    """Rows whose document was deleted."""
    seen: set[int] = field(default_factory=set)
    """Rows whose text was read."""
    common: set[int] = field(default_factory=set)
    """Rows whose text has none but ignored shingles."""
    compared: int = 0
    """Pairs whose texts were compared."""
    remembered: int = 0
    """Pairs taken from the memory."""
    _answers: list[tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]] = field(default_factory=list)

    def similarities(
        self, left: NDArray[np.intp], right: NDArray[np.intp], progress: Progress = silent
    ) -> NDArray[np.float64]:
        """The measure of pairs of classes; float64 of the pairs' number, NaN where a text is no longer there.

        Clusters of connected pairs are taken together, so that each text is read once however many pairs it is in.
        What the memory knows is taken without reading anything: see `confirmed`.
        """
        result = self._recalled(left, right)
        unknown = np.flatnonzero(np.isnan(result))
        recalled = len(left) - len(unknown)
        self.remembered += recalled
        progress("verifying pairs", recalled, len(left))

        def told(stage: str, done: int, total: int | None) -> None:
            progress("verifying pairs", recalled + done, len(left))

        result[unknown] = self._compared(left[unknown], right[unknown], told)
        self._remember(left[unknown], right[unknown], result[unknown])
        self._answers.append((left, right, result))
        return result

    def answered(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
        """Every pair of classes that has got a number so far, once, ``left < right``, with its number."""
        if not self._answers:
            return np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0)
        left, right, similarity = (np.concatenate(column) for column in zip(*self._answers, strict=True))
        left, right = np.minimum(left, right), np.maximum(left, right)
        there = np.flatnonzero(~np.isnan(similarity))
        _, first = np.unique(left[there] * len(self.classes) + right[there], return_index=True)
        return left[there[first]], right[there[first]], similarity[there[first]]

    def _compared(self, left: NDArray[np.intp], right: NDArray[np.intp], progress: Progress) -> NDArray[np.float64]:
        """The measure of pairs by their texts, as `similarities` returns it."""
        result = np.full(len(left), np.nan)
        done = 0
        weights = self.corpus.tokens[self.classes.first]
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
                self.compared += len(part)
                progress("", done, len(left))
        return result

    def _recalled(self, left: NDArray[np.intp], right: NDArray[np.intp]) -> NDArray[np.float64]:
        """What the memory knows of pairs of classes that are still there; float64 of the pairs' number, else NaN."""
        if self.memory is None or not self.measure.copies_are_equal:
            return np.full(len(left), np.nan)
        content = self._content()
        known = self.memory.lookup(content[left], content[right])
        known[~(self._there(left) & self._there(right))] = np.nan
        return known

    def _remember(self, left: NDArray[np.intp], right: NDArray[np.intp], similarity: NDArray[np.float64]) -> None:
        if self.memory is not None and self.measure.copies_are_equal:
            content = self._content()
            self.memory.add(content[left], content[right], similarity)

    def _content(self) -> NDArray[np.bytes_]:
        """The content hash of each class."""
        content: NDArray[np.bytes_] = self.corpus.content[self.classes.first]
        return content

    def _parts(self, pairs: NDArray[np.intp]) -> Iterator[NDArray[np.intp]]:
        """The pairs at once where the measure compares them so, else in steps."""
        step = len(pairs) if self.measure.at_once else _STEP
        return (pairs[start : start + step] for start in range(0, len(pairs), step or 1))

    def adopt(self, earlier: Verifier) -> None:
        """Take over what another one, of a corpus with some of these documents, has seen of their texts.

        What it compared is counted as this one's, which finds it in the memory.
        """
        self.compared += earlier.compared
        self.remembered -= earlier.compared
        addresses = [reference[:2] for reference in self.corpus.references]
        for mine, theirs in ((self.seen, earlier.seen), (self.changed, earlier.changed), (self.gone, earlier.gone)):
            known = {earlier.corpus.references[row][:2] for row in theirs}
            mine.update(row for row, address in enumerate(addresses) if address in known)

    def check_copies(self, progress: Progress = silent) -> None:
        """Read the texts of exact copies that were not needed for any pair, and note those that have changed.

        A copy is grouped without being compared, on the word of its stored content hash; an application that
        changes only the text leaves that hash standing.
        """
        self.check_unread(np.empty(0, np.intp), progress)

    def check_unread(
        self, numbers: NDArray[np.intp], progress: Progress = silent, *, among: NDArray[np.bool_] | None = None
    ) -> None:
        """The same for all documents of these classes too: those of pairs that the memory knew were not read.

        Copies are checked in all classes, or in those that are ``among`` (bool of their number).
        """
        asked = set(numbers.tolist())
        several = (
            number
            for number, rows in enumerate(self.classes.members)
            if len(rows) > 1 and (among is None or among[number])
        )
        classes = (self.classes.members[number] for number in sorted(asked.union(several)))
        unseen = [row for rows in classes for row in rows.tolist() if row not in self.seen]
        for _ in tracked(self._read(unseen), progress, "checking unread texts", len(unseen)):
            pass

    def confirmed(
        self,
        left: NDArray[np.intp],
        right: NDArray[np.intp],
        matches: NDArray[np.bool_],
        progress: Progress = silent,
        *,
        among: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.bool_]:
        """Those of the matches (bool of the pairs' number) whose texts are still there, after reading every text that
        is in a match or a copy and was not read for it.

        To be called before matches are linked: a group must not be built around a text that is no longer there.
        """
        self.check_unread(np.unique([left[matches], right[matches]]), progress, among=among)
        return matches & self._there(left) & self._there(right)

    def _there(self, numbers: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which of the classes have a document that is not known to be away; bool of their number."""
        if not self.away:
            return np.ones(len(numbers), np.bool_)
        different, inverse = np.unique(numbers, return_inverse=True)
        there = np.array([self.first_row(number) is not None for number in different.tolist()], np.bool_)
        return there[inverse.reshape(-1)]

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
            texts = [text_of(source, fields) for source in sources]
            present = zip(contents(texts), prepared(self.measure, sources, texts, fields), strict=True)
            for row, hit, (content, found) in zip(chunk, hits, present, strict=True):
                if hit is None:
                    self.gone.add(row)
                    yield None
                elif content.encode() != self.corpus.content[row]:
                    self.changed.add(row)
                    yield None
                else:
                    if self.measure.only_ignored(found):
                        self.common.add(row)
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


@dataclass(frozen=True)
class Verified:
    """The candidate pairs of a corpus with their exact similarity."""

    corpus: Corpus
    classes: Classes
    candidates: Candidates
    verifier: Verifier
    similarity: NDArray[np.float64]
    """Of each candidate pair; NaN where a text is no longer there."""
    inside: NDArray[np.bool_]
    """The rows whose pairs were all looked for, bool of the corpus; of two other rows no pair counts."""

    def confirmed(
        self, fits: Callable[[NDArray[np.float64]], NDArray[np.bool_]], progress: Progress = silent
    ) -> NDArray[np.bool_]:
        """Which candidates are matches of classes inside, after a look whether all their texts are still there."""
        left, right = self.candidates.left, self.candidates.right
        among = self.inside[self.classes.first]
        matches = fits(self.similarity) & among[left] & among[right]
        return self.verifier.confirmed(left, right, matches, progress, among=among)


def verified_pairs(
    index: Index,
    measure: Measure,
    corpus: Corpus,
    *,
    copies: bool,
    max_bucket: int,
    rules: Rules = DEFAULT_RULES,
    memory: PairMemory | None = None,
    inside: NDArray[np.bool_] | None = None,
    earlier: Verifier | None = None,
    progress: Progress = silent,
) -> Verified:
    """Join the keys of a corpus, and compare each candidate pair by its current texts.

    ``copies``: whether exact copies go through all of it as one text. The rules say which documents may meet, the
    memory which pairs need no reading. ``inside`` (default: all rows): only pairs that touch such a row. ``earlier``:
    the verifier of a smaller corpus, whose reading need not be done again.
    """
    classes = classes_of(corpus, copies)
    candidates = candidate_pairs(index, corpus, classes, max_bucket=max_bucket, rules=rules)
    if inside is None:
        inside = np.ones(len(corpus), np.bool_)
    else:
        touched = classes.touching(inside)
        candidates = candidates.only(touched[candidates.left] | touched[candidates.right])
    verifier = Verifier(index.client, index.settings, corpus, classes, measure, memory)
    if earlier is not None:
        verifier.adopt(earlier)
    similarity = verifier.similarities(candidates.left, candidates.right, progress)
    return Verified(corpus, classes, candidates, verifier, similarity, inside)


Numbers = NDArray[np.intp]
Floats = NDArray[np.float64]
_FETCH_CHARS = 4_000_000
_FIELD_CHARS = 200
"""Characters that a document is taken to have at least: other fields may be validated than were hashed."""

_BLOCK = 1_000_000
"""Numbers compared at a time: 8 MB of them, from each side."""


@dataclass(frozen=True)
class Validated:
    """The similarities of some pairs."""

    similarity: Floats
    """Of each; NaN where a document was deleted or changed since it was hashed."""
    sizes: NDArray[np.int64]
    """Numbers compared of each document; 0 of one that was not read. Shape (n,)."""
    read: int
    """Documents whose texts were read."""
    away: int
    """Of these, deleted or changed."""


def validate(
    client: Client,
    scope: Scope,
    left: Numbers,
    right: Numbers,
    *,
    measure: Measure,
    fields: Sequence[str],
    files: Scratch,
    progress: Progress = silent,
) -> Validated:
    """Compare pairs of documents by the present values of ``fields``: those of the features of the measure, or of the
    text that it compares. A document with nothing to compare is like no other.

    What is compared of each lies in a file if it is much. Clusters of connected pairs lie together; two blocks of
    documents are compared at a time, so that memory is bounded however the pairs are connected.
    """
    order = _in_clusters(len(scope.references), left, right)
    rows = Rows(files)
    there = _read(client, scope, order, measure, fields, rows=rows, progress=progress)
    places = np.zeros(len(scope.references), np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    similarity = np.full(len(left), np.nan)
    similarity[there[places[left]] & there[places[right]]] = 0
    filled = rows.lengths > 0
    both = np.flatnonzero(filled[places[left]] & filled[places[right]])
    done = len(left) - len(both)
    progress("validating pairs", done, len(left))
    for some, arrays, one, other in _blocks(rows, places[left[both]], places[right[both]]):
        told = _after(done, len(left), progress)
        similarity[both[some]] = measure.scores(arrays, one, other, told)
        done += len(some)
        progress("validating pairs", done, len(left))
    sizes = np.zeros(len(scope.references), np.int64)
    sizes[order] = rows.lengths
    return Validated(similarity, sizes, len(order), int((~there).sum()))


def _after(before: int, pairs: int, progress: Progress) -> Progress:
    """Progress in a part of the pairs, told as that in all."""

    def told(stage: str, done: int, total: int | None) -> None:
        progress("validating pairs", before + done, pairs)

    return told


def _in_clusters(size: int, left: Numbers, right: Numbers) -> Numbers:
    """The documents that are in any pair, those that are connected one after the other."""
    there = np.zeros(size, np.bool_)
    there[left] = there[right] = True
    grouped = np.flatnonzero(there)
    return grouped[np.argsort(components(size, left, right)[grouped], kind="stable")] if len(grouped) else grouped


def _read(
    client: Client,
    scope: Scope,
    order: Numbers,
    measure: Measure,
    fields: Sequence[str],
    *,
    rows: Rows,
    progress: Progress,
) -> NDArray[np.bool_]:
    """Lay aside what is compared of the documents; which of them are as they were, bool of their number."""
    there = np.zeros(len(order), np.bool_)
    done = 0
    progress("reading candidates", 0, len(order))
    for chunk in _fetches(order, scope.sizes):
        references = [scope.references[number] for number in chunk.tolist()]
        hits = list(fetch(client, references, fields))
        versions = [(-1, -1) if hit is None else (hit.seq_no or 0, hit.primary_term or 0) for hit in hits]
        unchanged = (np.array(versions, np.int64).reshape(-1, 2) == scope.versions[chunk]).all(axis=1)
        values = [
            values_by_field(hit.source, fields) if hit is not None and same else {}
            for hit, same in zip(hits, unchanged.tolist(), strict=True)
        ]
        texts = ["\n".join(value for name in fields for value in one.get(name, ())) for one in values]
        rows.add(measure.prepare(texts, values))
        there[done : done + len(chunk)] = unchanged
        done += len(chunk)
        progress("reading candidates", done, len(order))
    return there


def _fetches(order: Numbers, sizes: NDArray[np.int64]) -> Iterator[Numbers]:
    """Documents to ask for in one request: bounded in number and in text."""
    start = chars = 0
    for place, size in enumerate(np.maximum(sizes[order], _FIELD_CHARS).tolist()):
        if place > start and (place - start == _FETCH_DOCUMENTS or chars + size > _FETCH_CHARS):
            yield order[start:place]
            start, chars = place, 0
        chars += size
    if len(order):
        yield order[start:]


def _blocks(
    rows: Rows, left: NDArray[np.int32], right: NDArray[np.int32]
) -> Iterator[tuple[Numbers, list[NDArray[np.uint64]], Numbers, Numbers]]:
    """The pairs of places in portions: which pairs, the arrays they need, and the two sides among these."""
    block = (np.cumsum(rows.lengths + 1) // _BLOCK).astype(np.int32)
    edges = np.searchsorted(block, np.arange(int(block[-1]) + 2 if len(block) else 1))
    for some in _by_blocks(block[left], block[right]):
        places = np.unique(np.concatenate((left[some], right[some])))
        arrays = []
        for one in np.unique(block[places]).tolist():
            first, last = int(edges[one]), int(edges[one + 1])
            held = rows.read(first, last)
            arrays += [held[place - first] for place in places[(places >= first) & (places < last)].tolist()]
        yield some, arrays, np.searchsorted(places, left[some]), np.searchsorted(places, right[some])


def _by_blocks(left: NDArray[np.int32], right: NDArray[np.int32]) -> list[Numbers]:
    """The pairs that have the same two blocks, whichever side is in which."""
    if not len(left):
        return []
    code = np.minimum(left, right).astype(np.int64) << 32 | np.maximum(left, right)
    order = np.argsort(code, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(code[order])) + 1)
