"""Audit of an index: how many of the true pairs it finds, by comparing a random sample with all documents."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from es_neardupe import options
from es_neardupe.candidates.fingerprints import classes_of, read_fingerprints
from es_neardupe.candidates.join import candidate_pairs
from es_neardupe.candidates.who_may_meet import GroupRules
from es_neardupe.commands.audit.all_true_pairs import InvertedIndex, PairSimilarities
from es_neardupe.commands.audit.claims import AuditScope, Membership, VerifiedPairsCheck, by_resemblance, memberships
from es_neardupe.commands.audit.report import AuditReport, BandsAdvice, RecallCounts, effective, recalled
from es_neardupe.commands.audit.why_missed import Candidacy, DocumentStates, LossReason, source_of, states_of, verdicts
from es_neardupe.errors import IndexUnusable, SettingsError
from es_neardupe.index import queries
from es_neardupe.index.document_text import text_of, text_pages
from es_neardupe.index.index import Index, opened
from es_neardupe.index.random_samples import address_hashes
from es_neardupe.index.target import IndexTarget
from es_neardupe.keys.scheme import choose_bands
from es_neardupe.keys.shingles import features
from es_neardupe.options import DEFAULT_MAX_BUCKET
from es_neardupe.progress import Progress, silent
from es_neardupe.records import Hit, Reference
from es_neardupe.server.search import count, refresh_if_allowed
from es_neardupe.verification.criterion import check_min
from es_neardupe.verification.current_texts import current_hits

__all__ = ["audit"]

_PAGE = 10_000
_EXAMPLES = 5

_DETECTIONS = (0.99, 0.995, 0.999, 0.9995, 0.9999)
"""Tried one after the other for other bands."""


def audit(
    index: Index,
    *,
    sample: options.Sample = 2000,
    min: options.Minimum = None,
    seed: options.Seed = 1,
    max_bucket: options.MaxBucket = DEFAULT_MAX_BUCKET,
    progress: Progress = silent,
) -> AuditReport:
    """Compare a random sample of the documents with all documents, by the exact resemblance of their present texts.

    Every pair from ``min`` (default: the threshold of the index) on is true, and is found if both documents have the
    fingerprint of their text and their stored keys make them a candidate pair of `group` with that ``max_bucket``.
    Writes nothing; memory grows with the number of documents and the sample, not with texts or pairs. Raises
    `SettingsError` for values out of range, `IndexUnusable` with fewer than two documents.
    """
    started = time.monotonic()
    index = opened(index, texts=True)
    minimum = check_min(index.settings.threshold if min is None else min)
    _check(sample, seed)
    refresh_if_allowed(index.client, index.path)
    total, chosen = _drawn(index, sample, seed, progress)
    ground = _ground(index, chosen, minimum=minimum, max_bucket=max_bucket, progress=progress)
    claims = VerifiedPairsCheck(index, ground, progress)
    tally = RecallCounts(len(ground.sample.addresses))
    for pairs, others in _true_pairs(index, ground, progress):
        claims.confirm(pairs, ground.sample, others)
        verdict = verdicts(ground.candidacy, ground.sample, others, pairs.inside, pairs.given)
        tally.add(pairs, verdict, ground.sample, others)
    members = _members(index, chosen, ground)
    wrong = [*claims.denied(), *(one for one in members or () if not one.holds)]
    claimed = len(claims) + len(members or ())
    whole = len(ground.sample.addresses) >= total
    return AuditReport(
        index=index.name,
        indices=index.target.indices,
        scheme=index.scheme_id,
        min=minimum,
        max_bucket=max_bucket,
        seed=seed,
        documents=total,
        sampled=len(ground.sample.addresses),
        recall=tally.all.recall(whole),
        within=tally.within.recall(whole),
        promised=index.settings.scheme.detection(minimum),
        expected=tally.expected(index.settings.scheme),
        lengths=tally.lengths(whole),
        scripts=tally.scripts(whole),
        lost=tally.reasons(),
        claims=len(claims),
        members=None if members is None else len(members),
        denied=len(wrong),
        precision=1 - len(wrong) / claimed if claimed else None,
        wrong=tuple(wrong[:_EXAMPLES]),
        advice=_advice(index.target, minimum, tally, whole),
        seconds=time.monotonic() - started,
    )


def _check(sample: int, seed: int) -> None:
    if sample < 1:
        raise SettingsError(f"A sample has 1 document or more, not {sample}.")
    if not 0 <= seed < 2**64:
        raise SettingsError(f"`seed` must be 0 or more and fit into 64 bits, not {seed}.")


def _drawn(index: Index, size: int, seed: int, progress: Progress) -> tuple[int, list[Reference]]:
    """The number of all documents, and random ones of them: those whose addresses have the lowest hashes.

    The same seed draws the same documents, and a smaller sample is a part of a larger one.
    """
    everything = queries.matching(index.target.within())
    expected, read = count(index.client, index.path, everything), 0
    numbers, kept = np.empty(0, np.uint64), np.empty(0, object)
    for page in index.client.pages(index.path, {"query": everything, "_source": False}, page_size=_PAGE):
        references = np.empty(len(page), object)
        references[:] = [hit.reference for hit in page]
        numbers = np.concatenate((numbers, address_hashes((hit.reference for hit in page), seed)))
        kept = np.concatenate((kept, references))
        lowest = np.argsort(numbers, kind="stable")[:size]
        numbers, kept = numbers[lowest], kept[lowest]
        read += len(page)
        progress("drawing the sample", read, expected)
    if read < 2:
        raise IndexUnusable(f"Index {index.name} has {read} documents, and a pair takes two.")
    return read, list(kept)


def _ground(
    index: Index,
    chosen: Sequence[Reference],
    *,
    minimum: float,
    max_bucket: int,
    progress: Progress,
) -> AuditScope:
    """Read the keys of the index, and the sample."""
    corpus = read_fingerprints(index, progress)
    classes = classes_of(corpus)
    candidates = candidate_pairs(index, corpus, classes, GroupRules(max_bucket=max_bucket))
    candidacy = Candidacy(corpus, classes, candidates.left, candidates.right, index.settings.scheme.agree)
    parts: list[DocumentStates] = [states_of([], index.settings, candidacy)]
    found: list[NDArray[np.uint64]] = []
    for hits in current_hits(index.client, chosen, source_of(index.settings)):
        found += _features(hits, index.target)
        parts.append(states_of(hits, index.settings, candidacy))
    sample = DocumentStates.joined(parts)
    return AuditScope(
        corpus, classes, candidates.left, candidates.right, candidacy, sample, InvertedIndex(found), minimum
    )


def _members(index: Index, chosen: Sequence[Reference], ground: AuditScope) -> list[Membership] | None:
    """The stored similarities of the sample, None where another measure may have made them."""
    if not by_resemblance(index):
        return None
    return list(memberships(index, chosen, ground.candidacy, ground.minimum))


def _features(hits: Sequence[Hit], target: IndexTarget) -> list[NDArray[np.uint64]]:
    """Of the present texts; none for a document without a readable one."""
    texts = [text_of(hit.source, target.settings.fields) for hit in hits]
    return features(texts, target.settings.shingle)


def _true_pairs(
    index: Index, ground: AuditScope, progress: Progress
) -> Iterator[tuple[PairSimilarities, DocumentStates]]:
    """Every true pair once: first those within the sample, then those of a document of it and any other."""
    for pairs in ground.inverted.within(ground.minimum):
        yield pairs, ground.sample
    own = set(ground.sample.addresses)
    everything = queries.matching(index.target.within())
    total, read = count(index.client, index.path, everything), 0
    for page in text_pages(index, everything, source_of(index.settings)):
        others = [hit for hit in page if hit.address not in own]
        for inside, given, similarity in ground.inverted.similar(_features(others, index.target), ground.minimum):
            numbers, places = np.unique(given, return_inverse=True)
            theirs = states_of([others[k] for k in numbers.tolist()], index.settings, ground.candidacy)
            yield PairSimilarities(inside, places.reshape(-1), similarity), theirs
        read += len(page)
        progress("comparing with all texts", read, total)


def _advice(target: IndexTarget, minimum: float, tally: RecallCounts, whole: bool) -> BandsAdvice | None:
    """Other bands, if those of the index find too few of the pairs that nothing else loses."""
    settings = target.settings
    by_bands = tally.lost[LossReason.BANDS]
    judged = recalled(tally.all.found + by_bands, tally.all.found, effective(tally.all.degrees), whole=whole)
    expected = tally.expected(settings.scheme)
    if not by_bands or judged.high is None or expected is None or judged.found >= settings.detection * judged.pairs:
        return None
    if judged.high >= settings.detection <= expected:  # so few can be missing by chance
        return None
    for detection in (settings.detection, *_DETECTIONS):
        try:
            bands, rows = choose_bands(minimum, detection, settings.permutations)
        except SettingsError:  # beyond what so many permutations can do
            return None
        other = replace(settings.scheme, bands=bands, rows=rows, agree=1)
        found = tally.expected(other)
        if found is not None and found > expected and found >= settings.detection:
            return BandsAdvice(bands, rows, settings.shingle, settings.permutations, detection, found)
    return None
