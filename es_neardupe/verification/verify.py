"""Verification: candidate pairs compared exactly, by their current texts, and none that is known already."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from es_neardupe.candidates.fingerprints import classes_of
from es_neardupe.candidates.join import CandidatePairs, candidate_pairs
from es_neardupe.candidates.who_may_meet import DEFAULT_RULES, GroupRules
from es_neardupe.index.index import Index
from es_neardupe.index.settings import Settings
from es_neardupe.progress import Progress, silent
from es_neardupe.records import FingerprintColumns, TextClasses
from es_neardupe.server.client import Client
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification.current_texts import CurrentDocuments, PairComparer

__all__ = ["PairMemory", "Verified", "Verifier", "packed", "verified_pairs"]

Ints = NDArray[np.intp]
Bytes = NDArray[np.bytes_]
Floats = NDArray[np.float64]

_STAGE = "verifying pairs"
_EMPTY = (np.empty(0, "S32"), np.empty(0))


@dataclass(frozen=True)
class Verified:
    """The candidate pairs of a corpus with their exact similarity."""

    corpus: FingerprintColumns
    classes: TextClasses
    candidates: CandidatePairs
    verifier: Verifier
    similarity: Floats
    """Of each candidate pair; NaN where a text is no longer there."""
    inside: NDArray[np.bool_]
    """The rows whose pairs were all looked for, bool of the corpus; of two other rows no pair counts."""

    def confirmed(self, fits: Callable[[Floats], NDArray[np.bool_]], progress: Progress = silent) -> NDArray[np.bool_]:
        """Which candidates are matches of classes inside, after a look whether all their texts are still there."""
        left, right = self.candidates.left, self.candidates.right
        among = self.inside[self.classes.first]
        matches = fits(self.similarity) & among[left] & among[right]
        return self.verifier.confirmed(left, right, matches, progress, among=among)


def verified_pairs(
    index: Index,
    measure: Measure,
    corpus: FingerprintColumns,
    *,
    copies: bool,
    rules: GroupRules = DEFAULT_RULES,
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
    candidates = candidate_pairs(index, corpus, classes, rules)
    if inside is None:
        inside = np.ones(len(corpus), np.bool_)
    else:
        touched = classes.touching(inside)
        candidates = candidates.only(touched[candidates.left] | touched[candidates.right])
    verifier = Verifier(index.client, index.settings, corpus, classes, measure, memory=memory)
    if earlier is not None:
        verifier.adopt(earlier)
    similarity = verifier.similarities(candidates.left, candidates.right, progress)
    return Verified(corpus, classes, candidates, verifier, similarity, inside)


class Verifier(PairComparer):
    """Compares classes of equal texts by one measure, and remembers what it said of them."""

    def __init__(
        self,
        client: Client,
        settings: Settings,
        corpus: FingerprintColumns,
        classes: TextClasses,
        measure: Measure,
        *,
        memory: PairMemory | None = None,
    ) -> None:
        """``memory``: similarities by this measure that are known already; new ones are added. Not used where the
        measure looks at more than the tokens: the content hash does not decide then what it says."""
        super().__init__(CurrentDocuments.of_corpus(client, settings, corpus), {_STAGE: measure}, classes)
        self.corpus = corpus
        self.measure = measure
        self.memory = memory
        self.remembered = 0
        """Pairs taken from the memory."""
        self._content = corpus.content[self._first]
        self._answers: list[tuple[Ints, Ints, Floats]] = []

    def similarities(self, left: Ints, right: Ints, progress: Progress = silent) -> Floats:
        """The measure of pairs of classes; float64 of the pairs' number, NaN where a text is no longer there.

        What the memory knows is taken without reading anything: see `confirmed`.
        """
        result = self._recalled(left, right)
        unknown = np.flatnonzero(np.isnan(result))
        known = len(left) - len(unknown)
        self.remembered += known
        progress(_STAGE, known, len(left))

        def reported(stage: str, done: int, total: int | None) -> None:
            progress(stage, *((known + done, len(left)) if stage == _STAGE else (done, total)))

        (result[unknown],) = self.compare(left[unknown], right[unknown], reported).similarity
        self._remember(left[unknown], right[unknown], result[unknown])
        self._answers.append((left, right, result))
        return result

    def answered(self) -> tuple[Ints, Ints, Floats]:
        """Every pair of classes that has got a number so far, once, ``left < right``, with its number."""
        if not self._answers:
            return np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0)
        left, right, similarity = (np.concatenate(column) for column in zip(*self._answers, strict=True))
        left, right = np.minimum(left, right), np.maximum(left, right)
        there = np.flatnonzero(~np.isnan(similarity))
        _, first = np.unique(left[there] * len(self._first) + right[there], return_index=True)
        return left[there[first]], right[there[first]], similarity[there[first]]

    def adopt(self, earlier: Verifier) -> None:
        """Take over what another one, of a corpus with some of these documents, has seen of their texts.

        What it compared is counted as this one's, which finds it in the memory.
        """
        self.compared += earlier.compared
        self.remembered -= earlier.compared
        self.documents.adopt(earlier.documents)

    def _recalled(self, left: Ints, right: Ints) -> Floats:
        """What the memory knows of pairs of classes that are still there; float64 of the pairs' number, else NaN."""
        if self.memory is None or not self.measure.copies_are_equal:
            return np.full(len(left), np.nan)
        known = self.memory.lookup(self._content[left], self._content[right])
        known[~(self.there(left) & self.there(right))] = np.nan
        return known

    def _remember(self, left: Ints, right: Ints, similarity: Floats) -> None:
        if self.memory is not None and self.measure.copies_are_equal:
            self.memory.add(self._content[left], self._content[right], similarity)


class PairMemory:
    """Unordered pairs of content hashes, each with one number: 40 bytes a pair, three times that while it grows.

    A content hash is 32 hexadecimal digits of ASCII, as in `FingerprintColumns.content`; pairs with an empty one are
    not kept. The numbers must be of one measure that looks at nothing but the tokens (`Measure.copies_are_equal`).
    """

    def __init__(self) -> None:
        self._keys, self._values = _EMPTY
        self._waiting: list[tuple[Bytes, Floats]] = []

    def __len__(self) -> int:
        self._merge()
        return len(self._keys)

    def add(self, left: Bytes, right: Bytes, similarity: Floats) -> None:
        """Keep the numbers of pairs (n hashes, n hashes, n numbers). NaN is not kept; what is added last counts."""
        kept = ~np.isnan(similarity) & (left != b"") & (right != b"")
        if kept.any():
            self._waiting.append((_keys(left[kept], right[kept]), similarity[kept].astype(np.float64)))

    def lookup(self, left: Bytes, right: Bytes) -> Floats:
        """The numbers of pairs (n hashes, n hashes); float64[n], NaN where nothing is known."""
        self._merge()
        result = np.full(len(left), np.nan)
        if len(self._keys) and len(left):
            wanted = _keys(left, right)
            order = np.argsort(wanted)  # in order, the search stays where the last one ended
            wanted = wanted[order]
            places = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
            found = (self._keys[places] == wanted) & (left[order] != b"") & (right[order] != b"")
            result[order[found]] = self._values[places[found]]
        return result

    def _merge(self) -> None:
        """Sort in what was added since. Put off until somebody asks, so that many small additions cost one sort."""
        if not self._waiting:
            return
        parts = [(self._keys, self._values), *self._waiting]
        self._waiting = []
        keys, values = (np.concatenate(side) for side in zip(*parts, strict=True))
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        last = np.append(keys[1:] != keys[:-1], True)
        self._keys, self._values = keys[last], values[order[last]]


def packed(hashes: Bytes) -> Bytes:
    """Hashes of 32 hexadecimal digits as the 16 bytes they stand for; S16[n], in the same order as the digits.

    (Such strings are compared in their whole width: bytes that are zero at the end do no harm.)
    """
    digits = np.ascontiguousarray(hashes.astype("S32")).view(np.uint8).reshape(-1, 32)
    values = (digits & 15) + 9 * (digits >> 6)
    return (values[:, ::2] << 4 | values[:, 1::2]).astype(np.uint8).view("S16").reshape(-1)


def _keys(left: Bytes, right: Bytes) -> Bytes:
    """The two hashes of each pair as 16 bytes each, the lesser first; S32[n]."""
    one, other = packed(left), packed(right)
    turned = one > other
    return np.stack([np.where(turned, other, one), np.where(turned, one, other)], axis=1).view("S32").reshape(-1)
