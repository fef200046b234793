"""Verifier: the exact similarity of candidate pairs by their current texts, and a memory of known similarities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from es_neardupe.candidates.join import CandidatePairs
from es_neardupe.candidates.pair_arrays import blocks
from es_neardupe.index.settings import Settings
from es_neardupe.keys.arrays import Bytes, Flags, Floats, Numbers, Positions
from es_neardupe.options import FactKind
from es_neardupe.progress import Progress, silent
from es_neardupe.records import FingerprintColumns, TextClasses
from es_neardupe.server.client import Client
from es_neardupe.similarity.facts.agreement import FactsAgree
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification.current_texts import CurrentDocuments, PairComparer
from es_neardupe.verification.on_workers import ComparedTexts, ComparingWorkers

_STAGE = "verifying pairs"

_MANY = 1000
"""Number of pairs, or of documents, from which on workers compare or read them."""
_EMPTY = (np.empty(0, "S32"), np.empty(0))


NEARLY = 0.2
"""How much less similar than the minimum candidates are that nearly match."""


def nearly_from(minimum: float) -> float:
    """The lowest similarity of candidates that nearly match."""
    return max(round(minimum - NEARLY, 9), 0)


@dataclass(frozen=True)
class Verified:
    """The candidate pairs of a corpus with their exact similarity. p pairs, n rows."""

    corpus: FingerprintColumns
    classes: TextClasses
    candidates: CandidatePairs
    verifier: Verifier
    similarity: Floats
    """Similarity of each candidate pair, NaN if a text was changed or deleted; shape (p,)."""
    inside: Flags
    """Rows whose pairs are complete; pairs of two other rows are ignored; shape (n,)."""
    other_facts: Flags | None = None
    """If facts decide: the candidate pairs that match by their similarity, but differ in these; shape (p,)."""

    def matches(self, matching: Callable[[Floats], Flags]) -> Flags:
        """The candidate pairs that match; shape (p,)."""
        matches = matching(self.similarity)
        return matches if self.other_facts is None else matches & ~self.other_facts

    def nearly(self, minimum: float) -> tuple[int, int]:
        """The number of candidate pairs between classes inside that are less similar than ``minimum``, by at most
        `NEARLY`, and the number of classes in these pairs."""
        left, right = self.candidates.left, self.candidates.right
        among, classes = self.inside[self.classes.first], np.zeros(len(self.classes), np.bool_)
        lowest, pairs = nearly_from(minimum), 0
        for some in blocks(len(self.similarity)):
            similarity, one, other = self.similarity[some], left[some], right[some]
            chosen = (similarity >= lowest) & (similarity < minimum) & among[one] & among[other]
            classes[one[chosen]] = classes[other[chosen]] = True
            pairs += int(chosen.sum())
        return pairs, int(classes.sum())

    def confirmed(self, matching: Callable[[Floats], Flags], progress: Progress = silent) -> Flags:
        """The matches between classes inside, after checking that all their texts still exist; shape (p,)."""
        left, right = self.candidates.left, self.candidates.right
        among = self.inside[self.classes.first]
        matches = self.matches(matching)
        for some in blocks(len(matches)):
            matches[some] &= among[left[some]] & among[right[some]]
        return self.verifier.confirmed(left, right, matches, progress, among=among)

    def facts(self, kinds: frozenset[FactKind]) -> FactsOfClasses:
        """The facts of some kinds in the current texts of the classes."""
        return FactsOfClasses(self.verifier.documents, self.classes, kinds)

    def linked(self, matches: Flags) -> tuple[Numbers, Numbers]:
        """The candidate pairs that match, as pairs of classes."""
        return self.candidates.left[matches], self.candidates.right[matches]

    def exist(self, left: Numbers, right: Numbers, progress: Progress = silent) -> Flags:
        """Whether the texts of pairs of classes inside still exist, after reading those that were not read yet; bool of
        the pairs."""
        among = self.inside[self.classes.first]
        return self.verifier.confirmed(left, right, among[left] & among[right], progress, among=among)


@dataclass(frozen=True)
class FactsOfClasses:
    """The facts of some kinds in the current texts of classes."""

    documents: CurrentDocuments
    classes: TextClasses
    kinds: frozenset[FactKind]

    def differ(self, left: Numbers, right: Numbers, progress: Progress = silent) -> Flags:
        """Whether the facts of pairs of classes differ; False for texts that were changed or deleted."""
        differ: Flags = self.comparer().compare(left, right, progress).similarity[0] == 0
        return differ

    def comparer(self) -> PairComparer:
        """Compares them: 0 if they differ."""
        return PairComparer(self.documents, {"comparing facts": FactsAgree(kinds=self.kinds)}, self.classes)


class Verifier(PairComparer):
    """Compares classes of equal texts by one measure, and remembers their similarities."""

    classes: TextClasses

    def __init__(
        self,
        client: Client,
        settings: Settings,
        corpus: FingerprintColumns,
        classes: TextClasses,
        measure: Measure,
        *,
        memory: PairMemory | None = None,
        workers: ComparingWorkers | None = None,
    ) -> None:
        """``memory``: known similarities by this measure; new ones are added. It is not used if the measure depends on
        more than the tokens, since the content hash does not determine the similarity then. ``workers`` compare the
        pairs if there are many."""
        super().__init__(CurrentDocuments.of_corpus(client, settings, corpus), {_STAGE: measure}, classes)
        self.corpus = corpus
        self.measure = measure
        self.memory = memory
        self.workers = workers
        self._answers: list[tuple[Numbers, Numbers, Floats]] = []

    def similarities(self, left: Numbers, right: Numbers, progress: Progress = silent) -> Floats:
        """The similarity of pairs of classes; float64 of the same length, NaN if a text was changed or deleted.

        Pairs in the memory are not read, so their texts may have changed: see `confirmed`.
        """
        if self.memory is None:
            progress(_STAGE, 0, len(left))
            result = self._similarities(left, right, progress)
        else:
            result = self._with_memory(self.memory, left, right, progress)
        self._answers.append((left, right, result))
        return result

    def _with_memory(self, memory: PairMemory, left: Numbers, right: Numbers, progress: Progress) -> Floats:
        result = self._recalled(memory, left, right)
        unknown = np.flatnonzero(np.isnan(result))
        known = len(left) - len(unknown)
        progress(_STAGE, known, len(left))

        def reported(stage: str, done: int, total: int | None) -> None:
            progress(stage, *((known + done, len(left)) if stage == _STAGE else (done, total)))

        result[unknown] = self._similarities(left[unknown], right[unknown], reported)
        if self.measure.copies_are_equal:
            for some in blocks(len(unknown)):
                new = unknown[some]
                memory.add(self._content(left[new]), self._content(right[new]), result[new])
        return result

    def _similarities(self, left: Numbers, right: Numbers, progress: Progress) -> Floats:
        """The similarity of pairs that are not in the memory."""
        if self.workers is None or len(left) < _MANY:
            similarity: Floats = self.compare(left, right, progress).similarity[0]
            return similarity
        similarity = np.full(len(left), np.nan)
        waiting = np.arange(len(left))
        while len(waiting):  # again with the next documents of classes whose first one was changed or deleted
            known = len(left) - len(waiting)
            rows = self.first_rows(np.arange(len(self._first)))
            sides = rows[left[waiting]], rows[right[waiting]]
            for pairs, found in self.workers.compare(self.corpus, *sides):
                similarity[waiting[pairs]] = found.similarity
                self._note(found)
                progress(_STAGE, known := known + len(pairs), len(left))
            waiting = waiting[np.isnan(similarity[waiting])]
            waiting = waiting[self.exist(left[waiting]) & self.exist(right[waiting])]
        self.compared += int((~np.isnan(similarity)).sum())
        return similarity

    def check(self, unseen: Positions, progress: Progress = silent) -> None:
        """See `PairComparer.check`."""
        if self.workers is None or len(unseen) < _MANY:
            super().check(unseen, progress)
            return
        done = 0
        progress("checking unread texts", 0, len(unseen))
        for rows, found in self.workers.check(self.corpus, unseen):
            self._note(found)
            progress("checking unread texts", done := done + len(rows), len(unseen))

    def _note(self, found: ComparedTexts) -> None:
        self.documents.seen[found.rows] = True
        self.documents.changed_or_deleted[found.rows[found.changed_or_deleted]] = True
        self.documents.deleted[found.rows[found.deleted]] = True
        self.common.update(found.rows[found.common].tolist())

    def _content(self, numbers: Numbers) -> Bytes:
        """The content hashes of classes."""
        return self.corpus.content[self._first[numbers]]

    def answered(self) -> tuple[Positions, Positions, Floats]:
        """Every pair of classes with a similarity so far, each once, as (left, right, similarity) with ``left <
        right``."""
        if not self._answers:
            return np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0)
        one, other, similarity = (np.concatenate(column) for column in zip(*self._answers, strict=True))
        left, right = np.minimum(one, other, dtype=np.intp), np.maximum(one, other, dtype=np.intp)
        valid = np.flatnonzero(~np.isnan(similarity))
        _, first = np.unique(left[valid] * len(self._first) + right[valid], return_index=True)
        return left[valid[first]], right[valid[first]], similarity[valid[first]]

    def adopt(self, earlier: Verifier) -> None:
        """Take over the documents that the verifier of a smaller corpus has read, and the number of its pairs."""
        self.compared += earlier.compared
        self.documents.adopt(earlier.documents)

    def _recalled(self, memory: PairMemory, left: Numbers, right: Numbers) -> Floats:
        """The similarity of pairs of existing classes in the memory; float64 of the same length, NaN for others."""
        if not self.measure.copies_are_equal:
            return np.full(len(left), np.nan)
        known = np.full(len(left), np.nan)
        for some in blocks(len(left)):
            known[some] = memory.lookup(self._content(left[some]), self._content(right[some]))
        known[~(self.exist(left) & self.exist(right))] = np.nan
        return known


class PairMemory:
    """Similarities of unordered pairs of content hashes: 40 bytes a pair, three times that while it grows.

    Content hashes are bytes, as in `FingerprintColumns.content`; pairs with an empty hash are not stored. All
    similarities must be by one measure that depends on the tokens only (`Measure.copies_are_equal`).
    """

    def __init__(self) -> None:
        self._keys, self._values = _EMPTY
        self._waiting: list[tuple[Bytes, Floats]] = []

    def __len__(self) -> int:
        self._merge()
        return len(self._keys)

    def add(self, left: Bytes, right: Bytes, similarity: Floats) -> None:
        """Store the similarities of pairs (n hashes, n hashes, n numbers), except NaN. Replaces existing ones."""
        valid = ~np.isnan(similarity) & (left != b"") & (right != b"")
        if valid.any():
            self._waiting.append((_keys(left[valid], right[valid]), similarity[valid].astype(np.float64)))

    def lookup(self, left: Bytes, right: Bytes) -> Floats:
        """The similarities of pairs (n hashes, n hashes); float64[n], NaN for unknown pairs."""
        self._merge()
        result = np.full(len(left), np.nan)
        if len(self._keys) and len(left):
            keys = _keys(left, right)
            order = np.argsort(keys)  # a sorted search stays near its last position
            keys = keys[order]
            places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            known = (self._keys[places] == keys) & (left[order] != b"") & (right[order] != b"")
            result[order[known]] = self._values[places[known]]
        return result

    def _merge(self) -> None:
        """Merge the added pairs. Done only before reading, so that many small additions cost one sort."""
        if not self._waiting:
            return
        parts = [(self._keys, self._values), *self._waiting]
        self._waiting = []
        keys, values = (np.concatenate(side) for side in zip(*parts, strict=True))
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        last = np.append(keys[1:] != keys[:-1], True)
        self._keys, self._values = keys[last], values[order[last]]


def _keys(left: Bytes, right: Bytes) -> Bytes:
    """The two hashes of each pair as 16 bytes each, the lower one first; S32[n]."""
    one, other = left.astype("S16", copy=False), right.astype("S16", copy=False)
    swap = one > other
    return np.stack([np.where(swap, other, one), np.where(swap, one, other)], axis=1).view("S32").reshape(-1)
