"""Claims of an index: pairs that verification or a stored group calls similar, checked against comparing all texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from es_neardupe.commands.audit.all_true_pairs import InvertedIndex, PairSimilarities
from es_neardupe.commands.audit.report import RefutedPair, addressed
from es_neardupe.commands.audit.why_missed import FOUND, Candidacy, DocumentStates, source_of, states_of
from es_neardupe.groups.registry import Registry
from es_neardupe.index import queries
from es_neardupe.index.document_text import text_of
from es_neardupe.index.index import Index
from es_neardupe.index.stored_fields import decode_grouping, stored_fields
from es_neardupe.index.target import IndexTarget
from es_neardupe.keys.shingles import features
from es_neardupe.progress import Progress
from es_neardupe.records import Address, FingerprintColumns, Hit, Reference, TextClasses
from es_neardupe.similarity.formulas import resemblance
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification.current_texts import CurrentDocuments, current_hits
from es_neardupe.verification.verify import Verifier

__all__ = ["AuditScope", "Membership", "VerifiedPairsCheck", "by_resemblance", "memberships"]


_TOLERANCE = 1e-9
"""Two ways to divide the same numbers."""


class AuditScope(NamedTuple):
    """Known before texts are compared: the keys of the index, and the documents of the sample."""

    corpus: FingerprintColumns
    classes: TextClasses
    left: NDArray[np.intp]
    right: NDArray[np.intp]
    """The candidate pairs of classes."""
    candidacy: Candidacy
    sample: DocumentStates
    inverted: InvertedIndex
    """The features of the sample."""
    minimum: float


class VerifiedPairsCheck:
    """The candidate pairs with a document of the sample that verification calls similar.

    Comparing everything has to confirm each of them, with the same similarity.
    """

    def __init__(self, index: Index, ground: AuditScope, progress: Progress) -> None:
        self._index, self._corpus = index, ground.corpus
        self._candidacy = ground.candidacy
        measure = Measure(shingle=index.settings.shingle)
        self._verifier = Verifier(index.client, index.settings, ground.corpus, ground.classes, measure)
        sampled = np.zeros(len(ground.classes), np.bool_)
        sampled[ground.sample.classes[ground.sample.condition == FOUND]] = True
        touched = sampled[ground.left] | sampled[ground.right]
        left, right = ground.left[touched], ground.right[touched]
        similarity = self._verifier.similarities(left, right, progress)
        similar = similarity >= ground.minimum
        self._left, self._right, self._similarity = left[similar], right[similar], similarity[similar]
        self._codes = ground.candidacy.coded(self._left, self._right)
        self._confirmed = np.zeros(len(self._codes), np.bool_)

    def __len__(self) -> int:
        return len(self._codes)

    def confirm(self, pairs: PairSimilarities, sample: DocumentStates, others: DocumentStates) -> None:
        """Take note of true pairs."""
        inside, given, similarity = pairs
        fine = np.flatnonzero((sample.condition[inside] == FOUND) & (others.condition[given] == FOUND))
        codes = self._candidacy.coded(sample.classes[inside[fine]], others.classes[given[fine]])
        place = np.searchsorted(self._codes, codes)
        there = np.flatnonzero(place < len(self._codes))
        there = there[self._codes[place[there]] == codes[there]]
        same = np.abs(self._similarity[place[there]] - similarity[fine[there]]) <= _TOLERANCE
        self._confirmed[place[there[same]]] = True

    def denied(self) -> Iterator[RefutedPair]:
        """The claims that nothing confirmed, compared once more; one whose texts changed meanwhile is no claim."""
        again = CurrentDocuments.of_corpus(self._index.client, self._index.settings, self._corpus)
        for k in np.flatnonzero(~self._confirmed).tolist():
            rows = self._verifier.first_rows(np.array([self._left[k], self._right[k]]))
            texts = [text for _, text in again.texts(rows)] if (rows >= 0).all() else []
            if len(texts) < 2:
                self._confirmed[k] = True
                continue
            actual = resemblance(*features(texts, self._index.settings.shingle))
            claimed = float(self._similarity[k])
            one, other = (Address(*self._corpus.references[row][:2]) for row in rows.tolist())
            if abs(claimed - actual) > _TOLERANCE:
                yield RefutedPair(*addressed(one, other), claimed, actual)


_PAGE = 1000

_SIMILARITY_TOLERANCE = 1e-6
"""A server may give the stored number back with the precision of a 32-bit float."""


class Membership(RefutedPair):
    """A stored similarity (``claimed``) and the one that the two texts have."""

    @property
    def holds(self) -> bool:
        """Whether both are the same."""
        return abs(self.claimed - self.actual) <= _SIMILARITY_TOLERANCE


def by_resemblance(index: Index) -> bool:
    """Whether the last run of ``group`` came to its end and went by the resemblance: then the groups can be judged."""
    last = Registry(index).last_run()
    return last is not None and last.finished and last.rules is not None and last.rules.match.by_resemblance


def memberships(
    index: Index, sample: Sequence[Reference], candidacy: Candidacy, minimum: float
) -> Iterator[Membership]:
    """The members among some documents that are stored as ``minimum`` similar to their principal.

    Left out are those where either text is no longer the one that was fingerprinted, or no principal is stored.
    """
    settings = index.settings
    source = [*source_of(settings), index.fields.principal, index.fields.similarity]
    for present in current_hits(index.client, sample, source):
        members = {hit.address: hit for hit in present if _claim(hit, index.target) >= minimum}
        principals = _principals(index, list(members.values()), source)
        hits = [*members.values(), *principals.values()]
        texts = [text_of(hit.source, settings.fields) for hit in hits]
        judged = zip(states_of(hits, settings, candidacy).condition, features(texts, settings.shingle), strict=True)
        sound = {hit.address: found for hit, (code, found) in zip(hits, judged, strict=True) if code == FOUND}
        for member in members.values():
            principal = principals.get(_group(member, index.target))
            if principal is not None and {member.address, principal.address} <= sound.keys():
                actual = resemblance(sound[member.address], sound[principal.address])
                yield Membership(*addressed(member.address, principal.address), _claim(member, index.target), actual)


def _claim(hit: Hit, target: IndexTarget) -> float:
    """The stored similarity of a member; -1 for a principal and for a document that is in no group."""
    grouping = decode_grouping(_stored(hit, target))
    return -1.0 if grouping is None or grouping.principal else grouping.similarity


def _group(hit: Hit, target: IndexTarget) -> str:
    return str(_stored(hit, target)["group"])


def _stored(hit: Hit, target: IndexTarget) -> Mapping[str, Any]:
    return stored_fields(hit.source, target.settings.prefix)


def _principals(index: Index, members: Sequence[Hit], source: Sequence[str]) -> dict[str, Hit]:
    """Group -> its principal as it is this moment, where there is just one."""
    groups = sorted({_group(hit, index.target) for hit in members})
    body = {"query": queries.groups_by_id(index.fields, groups), "_source": False}
    pages = index.client.pages(index.path, body, page_size=_PAGE) if groups else ()
    references = [hit.reference for page in pages for hit in page]
    found: dict[str, list[Hit]] = {}
    for hits in current_hits(index.client, references, source):
        for hit in hits:
            grouping = decode_grouping(_stored(hit, index.target))
            if grouping is not None and grouping.principal:
                found.setdefault(grouping.group, []).append(hit)
    return {group: hits[0] for group, hits in found.items() if len(hits) == 1}
