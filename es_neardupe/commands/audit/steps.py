"""Steps of ``audit``: the pairs of a sample, and the check of verified pairs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from es_neardupe.candidates.fingerprints import classes_of, read_fingerprints
from es_neardupe.candidates.join import candidate_pairs
from es_neardupe.candidates.who_may_meet import GroupRules
from es_neardupe.commands.audit.report import (
    BandsAdvice,
    RecallCounts,
    RefutedPair,
    ReviewedPairs,
    effective,
    ordered,
    recall_of,
)
from es_neardupe.commands.audit.true_pairs import PairSimilarities, SampleTexts, TruePairs, features_of, true_pairs
from es_neardupe.commands.audit.why_missed import (
    FOUND,
    Candidacy,
    DocumentStates,
    LossReason,
    source_of,
    states_of,
)
from es_neardupe.errors import IndexUnusable, SettingsError
from es_neardupe.groups.clusters import RelatedCounts
from es_neardupe.groups.decisions import ContentPair, Decisions, Verdict, agreed_verdict
from es_neardupe.groups.registry import Registry
from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.index.slices import address_hashes
from es_neardupe.index.stored_fields import decode_grouping, stored_fields
from es_neardupe.index.target import IndexTarget
from es_neardupe.keys.arrays import U64, Floats, Numbers
from es_neardupe.keys.scheme import choose_bands
from es_neardupe.keys.shingles import features
from es_neardupe.keys.text import packed_hashes
from es_neardupe.progress import Progress
from es_neardupe.records import FingerprintColumns, Grouping, Hit, Reference, TextClasses
from es_neardupe.similarity.formulas import resemblance
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification.boilerplate import Boilerplate, boilerplate, without
from es_neardupe.verification.current_texts import CurrentDocuments, current_hits
from es_neardupe.verification.on_workers import ComparingWorkers
from es_neardupe.verification.verify import Verifier
from es_neardupe.wording import counted

_PAGE = 10_000
_PRINCIPALS = 1000
"""Principals read by one request."""

EXAMPLES = 5

_DETECTIONS = (0.99, 0.995, 0.999, 0.9995, 0.9999)
"""Detection probabilities that are tried in this order for other bands."""

_TOLERANCE = 1e-9
"""Rounding error between two ways to compute a similarity."""

_STORED_TOLERANCE = 1e-6
"""Rounding error of a stored similarity, which a server may return as a 32-bit float."""


def drawn(index: Index, size: int, seed: int, progress: Progress) -> tuple[int, list[Reference]]:
    """The number of all documents, and a random sample: the documents whose addresses have the lowest hashes.

    The same seed draws the same documents, and a smaller sample is a part of a larger one.
    """
    everything = queries.matching(index.target.within())
    expected, read = index.documents.count(everything), 0
    hashes, drawn = np.empty(0, np.uint64), np.empty(0, object)
    for page in index.documents.pages({"query": everything, "_source": False}, page_size=_PAGE):
        references = np.empty(len(page), object)
        references[:] = [hit.reference for hit in page]
        hashes = np.concatenate((hashes, address_hashes((hit.reference for hit in page), seed)))
        drawn = np.concatenate((drawn, references))
        lowest = np.argsort(hashes, kind="stable")[:size]
        hashes, drawn = hashes[lowest], drawn[lowest]
        read += len(page)
        progress("drawing the sample", read, expected)
    if read < 2:
        raise IndexUnusable(f"Index {index.name} has {counted(read, 'document')}, but an audit needs at least 2.")
    return read, list(drawn)


class _AuditScope(NamedTuple):
    """The keys of the index and the documents of the sample, read before texts are compared."""

    corpus: FingerprintColumns
    classes: TextClasses
    left: Numbers
    right: Numbers
    """The candidate pairs of classes."""
    candidacy: Candidacy
    sample: DocumentStates
    features: list[U64]
    """Of each document of the sample."""


def audited_scope(
    index: Index,
    chosen: Sequence[Reference],
    *,
    max_bucket: int,
    slices: int | None,
    progress: Progress,
) -> _AuditScope:
    """Read the keys of the index and the documents of the sample."""
    corpus = read_fingerprints(index, progress, slices=slices)
    classes = classes_of(corpus)
    pairs = candidate_pairs(index, corpus, classes, GroupRules(max_bucket=max_bucket))
    candidacy = Candidacy(corpus, classes, pairs.left, pairs.right, index.settings.scheme.agree)
    parts: list[DocumentStates] = [states_of([], index.settings)]
    sampled: list[U64] = []
    for hits in current_hits(index.client, chosen, source_of(index.settings)):
        sampled += features_of(hits, index.settings)
        parts.append(states_of(hits, index.settings))
    sample = DocumentStates.joined(parts).among(candidacy)
    return _AuditScope(corpus.without_keys(), classes, pairs.left, pairs.right, candidacy, sample, sampled)


def pairs_of_sample(scope: _AuditScope, texts: SampleTexts, index: Index, progress: Progress) -> Iterator[TruePairs]:
    """Every true pair once: first those within the sample, then those of a sampled document and any other one."""
    for pairs in texts.inverted.within(texts.minimum):
        yield TruePairs(pairs, scope.sample, texts.only_boilerplate(pairs, texts.inverted.features))
    for found in true_pairs(index, texts, progress):
        yield found._replace(others=found.others.among(scope.candidacy))


def _verifier(index: Index, scope: _AuditScope) -> Verifier:
    """Compares texts by their resemblance."""
    measure = Measure(shingle=index.settings.shingle, unit=index.settings.unit)
    workers = ComparingWorkers.of(index, measure)
    return Verifier(index.client, index.settings, scope.corpus, scope.classes, measure, workers=workers)


def reviewed(index: Index, scope: _AuditScope, minimum: float, progress: Progress) -> ReviewedPairs | None:
    """What reviewers say about pairs of the index, compared by their current texts. A decision about more than two
    texts counts as all its pairs."""
    decided = Decisions(index).pairs()
    if not decided:
        return None
    similarity = _similarity_of_contents(index, scope, list(decided), progress)
    counts: Counter[str] = Counter()
    for said, value in zip(decided.values(), similarity.tolist(), strict=True):
        verdict = agreed_verdict(said)
        if math.isnan(value):
            counts["gone"] += 1
        elif verdict is None:
            counts["disputed"] += 1
        else:
            counts[f"{'' if value >= minimum else 'below_'}{verdict.value}"] += 1
    same, different = counts[Verdict.SAME.value], counts[Verdict.DIFFERENT.value]
    return ReviewedPairs(
        pairs=len(decided),
        same=same,
        different=different,
        below_same=counts["below_same"],
        below_different=counts["below_different"],
        disputed=counts["disputed"],
        gone=counts["gone"],
        precision=same / (same + different) if same + different else None,
    )


def _similarity_of_contents(
    index: Index, scope: _AuditScope, pairs: Sequence[ContentPair], progress: Progress
) -> Floats:
    """The similarity of pairs of contents; NaN if no document has one of them any more."""
    wanted = packed_hashes([content for pair in pairs for content in pair])
    known, first = np.unique(scope.corpus.content[scope.classes.first], return_index=True)
    place = np.minimum(np.searchsorted(known, wanted), max(len(known) - 1, 0))
    number = np.where(known[place] == wanted, first[place], -1) if len(known) else np.full(len(wanted), -1)
    left, right = number.reshape(-1, 2).T
    similarity = np.full(len(pairs), np.nan)
    both = np.flatnonzero((left >= 0) & (right >= 0))
    similarity[both] = _verifier(index, scope).similarities(left[both], right[both], progress)
    return similarity


class VerifiedPairsCheck:
    """Check of the candidate pairs with a sampled document that verification finds similar.

    The comparison with all texts must confirm each of them, with the same similarity.
    """

    def __init__(self, index: Index, scope: _AuditScope, minimum: float, progress: Progress) -> None:
        self._index, self._corpus, self._classes, self._minimum = index, scope.corpus, scope.classes, minimum
        self._candidacy = scope.candidacy
        self._verifier = _verifier(index, scope)
        sampled = np.zeros(len(scope.classes), np.bool_)
        sampled[scope.sample.classes[scope.sample.condition == FOUND]] = True
        touched = sampled[scope.left] | sampled[scope.right]
        left, right = scope.left[touched], scope.right[touched]
        similarity = self._verifier.similarities(left, right, progress)
        similar = similarity >= minimum
        self._left, self._right, self._similarity = left[similar], right[similar], similarity[similar]
        self._codes = scope.candidacy.coded(self._left, self._right)
        self._confirmed = np.zeros(len(self._codes), np.bool_)

    def __len__(self) -> int:
        return len(self._codes)

    def boilerplate(self) -> Boilerplate:
        """What only boilerplate holds together, of the clusters of these pairs."""
        return boilerplate(self._index, self._corpus, self._classes, self._left, self._right)

    def share_without(self, held: Boilerplate, progress: Progress) -> float:
        """The share of the pairs that are similar without the passages of boilerplate, too."""
        verifier = without(self._index, self._corpus, self._classes, held)
        similarity = verifier.similarities(self._left, self._right, progress)
        return float((similarity >= self._minimum).mean())

    def confirm(self, pairs: PairSimilarities, sample: DocumentStates, others: DocumentStates) -> None:
        """Confirm the verified pairs that are among these true pairs."""
        inside, given, similarity = pairs
        found = np.flatnonzero((sample.condition[inside] == FOUND) & (others.condition[given] == FOUND))
        codes = self._candidacy.coded(sample.classes[inside[found]], others.classes[given[found]])
        place = np.searchsorted(self._codes, codes)
        known = np.flatnonzero(place < len(self._codes))
        known = known[self._codes[place[known]] == codes[known]]
        same = np.abs(self._similarity[place[known]] - similarity[found[known]]) <= _TOLERANCE
        self._confirmed[place[known[same]]] = True

    def denied(self) -> Iterator[RefutedPair]:
        """The pairs that were not confirmed, compared once more; without pairs whose texts have changed since."""
        again = CurrentDocuments.of_corpus(self._index.client, self._index.settings, self._corpus)
        for k in np.flatnonzero(~self._confirmed).tolist():
            rows = self._verifier.first_rows(np.array([self._left[k], self._right[k]]))
            texts = [text for _, text in again.texts(rows)] if (rows >= 0).all() else []
            if len(texts) < 2:
                self._confirmed[k] = True
                continue
            settings = self._index.settings
            actual = resemblance(*features(texts, settings.shingle, settings.unit))
            claimed = float(self._similarity[k])
            one, other = map(self._corpus.address, rows.tolist())
            if abs(claimed - actual) > _TOLERANCE:
                yield RefutedPair(*ordered(one, other), claimed, actual)


class _Membership(RefutedPair):
    """The stored similarity of a member to its principal (``claimed``), and that of their texts."""

    @property
    def is_right(self) -> bool:
        """Whether both are equal."""
        return abs(self.claimed - self.actual) <= _STORED_TOLERANCE


def grouped_by_resemblance(index: Index) -> bool:
    """Whether the last run of ``group`` has finished and used the resemblance, so that its groups can be checked."""
    last = Registry(index).last_run()
    return last is not None and last.finished and last.rules is not None and last.rules.match.by_resemblance


def related_counts(index: Index) -> RelatedCounts | None:
    """The matches that are not in one group, by the last run of ``group``; None if it has not finished."""
    registry = Registry(index)
    last = registry.last_run()
    return registry.related_counts() if last is not None and last.finished else None


def memberships(index: Index, sample: Sequence[Reference], scope: _AuditScope, minimum: float) -> Iterator[_Membership]:
    """The sampled documents whose stored similarity to their principal is at least the minimum.

    Members are left out if one of both texts has changed since it was fingerprinted, or if no principal is stored.
    """
    settings = index.settings
    source = [*source_of(settings), index.fields.principal, index.fields.similarity]
    for page in current_hits(index.client, sample, source):
        groupings = ((hit, _grouping(hit, index.target)) for hit in page)
        members = [
            (hit, grouping)
            for hit, grouping in groupings
            if grouping and not grouping.principal and grouping.similarity >= minimum
        ]
        principals = _principals(index, sorted({grouping.group for _, grouping in members}), source)
        hits = [*(hit for hit, _ in members), *principals.values()]
        conditions = states_of(hits, settings).among(scope.candidacy).condition
        judged = zip(hits, conditions, features_of(hits, index.settings), strict=True)
        unchanged = {hit.reference: texts for hit, condition, texts in judged if condition == FOUND}
        for member, grouping in members:
            principal = principals.get(grouping.group)
            if principal is not None and {member.reference, principal.reference} <= unchanged.keys():
                actual = resemblance(unchanged[member.reference], unchanged[principal.reference])
                yield _Membership(*ordered(member.address, principal.address), grouping.similarity, actual)


def _grouping(hit: Hit, target: IndexTarget) -> Grouping | None:
    return decode_grouping(stored_fields(hit.source, target.settings.prefix))


def _principals(index: Index, groups: Sequence[str], source: Sequence[str]) -> dict[str, Hit]:
    """Group id -> its current principal, without groups that have several."""
    body = {"query": queries.groups_by_id(index.fields, groups), "_source": False}
    pages = index.documents.pages(body, page_size=_PRINCIPALS) if groups else ()
    references = [hit.reference for page in pages for hit in page]
    principals: dict[str, list[Hit]] = {}
    for hits in current_hits(index.client, references, source):
        for hit in hits:
            grouping = _grouping(hit, index.target)
            if grouping is not None and grouping.principal:
                principals.setdefault(grouping.group, []).append(hit)
    return {group: hits[0] for group, hits in principals.items() if len(hits) == 1}


def advice(target: IndexTarget, minimum: float, counts: RecallCounts, whole: bool) -> BandsAdvice | None:
    """Other bands, if those of the index find too few of the pairs that are lost for no other reason."""
    settings = target.settings
    by_bands = counts.lost[LossReason.BANDS]
    judged = recall_of(counts.all.found + by_bands, counts.all.found, effective(counts.all.degrees), whole=whole)
    expected = counts.expected(settings.scheme)
    if not by_bands or judged.high is None or expected is None or judged.found >= settings.detection * judged.pairs:
        return None
    if judged.high >= settings.detection <= expected:  # so few can be lost by chance
        return None
    for detection in (settings.detection, *_DETECTIONS):
        try:
            bands, rows = choose_bands(minimum, detection, settings.permutations)
        except SettingsError:  # not possible with this number of permutations
            return None
        other = replace(settings.scheme, bands=bands, rows=rows, agree=1)
        found = counts.expected(other)
        if found is not None and found > expected and found >= settings.detection:
            return BandsAdvice(bands, rows, settings.shingle, settings.unit, settings.permutations, detection, found)
    return None
