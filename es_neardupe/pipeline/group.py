"""Group the near-duplicates of an index: candidates, exact verification, groups, write-back."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_neardupe import documents, queries
from es_neardupe.alignment import Matching
from es_neardupe.clients import Client
from es_neardupe.indices import check_writable, count, open_target, refresh
from es_neardupe.pipeline.criteria import Choice, WeightsUsed, criterion
from es_neardupe.pipeline.detection import DetectionCase
from es_neardupe.pipeline.pairing import Verified, verified_pairs
from es_neardupe.progress import Progress, silent
from es_neardupe.records import Corpus, Grouping
from es_neardupe.settings import DEFAULT_PREFIX
from es_neardupe.stages.candidates import DEFAULT_MAX_BUCKET, Bucket
from es_neardupe.stages.groups import Linkage, assign_ids, chain, star
from es_neardupe.stages.verify import Verifier
from es_neardupe.stages.writeback import changes, write_groups
from es_neardupe.tally import Tally

__all__ = ["GroupReport", "group"]


@dataclass(frozen=True)
class GroupReport:
    """What a run found and wrote.

    ``documents = grouped + alone + stale + corrupt``; ``unprocessed`` documents have no fingerprint of the index's
    scheme and are not among them.
    """

    index: str
    scheme: str
    measure: str
    """What decided, in words; ``resemblance`` by default."""
    min: float
    max: float
    linkage: str
    detection: float | None
    """Probability that a pair exactly ``min`` similar became a candidate; None where the measure does not decide it."""
    detection_cases: tuple[DetectionCase, ...]
    """In that case, for some kinds of pairs."""
    weights: WeightsUsed | None
    """For the measure weighted: where the weights are from."""
    documents: int
    unprocessed: int
    states: Mapping[str, int]
    copies: int
    """Documents that are exact copies of another one and were taken as that one."""
    candidates: int
    """Pairs of distinct texts that share a band key: all of them were verified."""
    matches: int
    """Of these, pairs from ``min`` to ``max`` similar."""
    skipped: int
    """Comparisons left out in buckets over ``max_bucket``; a pair counts once for each of them."""
    large_buckets: tuple[Bucket, ...]
    groups: int
    """Of two documents or more."""
    grouped: int
    """Documents in them."""
    alone: int
    largest: int
    min_similarity: float | None
    """The true minimum of the similarities to the principals."""
    stale: int
    """Documents whose text is not the one that was fingerprinted, or that were deleted: left as they are."""
    corrupt: int
    """Documents whose stored fingerprint cannot be read."""
    written: int
    unchanged: int
    changed: int
    """Changed by somebody between reading and writing: left for the next run."""
    deleted: int
    refused: int
    refusals: tuple[str, ...]
    dry_run: bool
    seconds: float = field(compare=False)


def group(
    client: Client,
    index: str,
    *,
    prefix: str = DEFAULT_PREFIX,
    measure: str = "resemblance",
    matching: Matching | str | None = None,
    min: float | None = None,
    max: float = 1.0,
    features: Sequence[str] = (),
    ngram: int | None = None,
    whitespace: bool = False,
    renew: bool = False,
    linkage: Linkage | str = Linkage.STAR,
    max_bucket: int = DEFAULT_MAX_BUCKET,
    workers: int = 2,
    batch: int = 500,
    dry_run: bool = False,
    progress: Progress = silent,
) -> GroupReport:
    """Find the groups of an enriched index and write group, principal and similarity into every document.

    Two documents match if their exact similarity by ``measure`` lies between ``min`` (default: the threshold of the
    index) and ``max``, both included. A second run without changes writes nothing. Raises `SettingsError` for options
    that are unknown, contradict each other or mean nothing to the measure.
    """
    started = time.monotonic()
    target = open_target(client, index, prefix)
    linkage = Linkage(linkage)
    wanted = criterion(client, target, Choice(measure, matching, min, max, features, ngram, whitespace, renew))
    if not dry_run:
        check_writable(client, index)

    found = verified_pairs(
        client, target, wanted.measure, copies=wanted.copies_fit, max_bucket=max_bucket, progress=progress
    )
    matches = wanted.fits(found.similarity)
    principals = _link(linkage, found, matches, progress)
    found.verifier.check_copies(progress)
    groupings = _groupings(found.corpus, found.verifier, *principals)
    new = changes(found.corpus, groupings)
    tally = Tally()
    if dry_run:
        tally.counts["written"] = len(new)
    elif new:
        tally = write_groups(client, found.corpus, new, prefix, batch=batch, workers=workers)
        refresh(client, target.path)
    return GroupReport(
        index=index,
        scheme=target.scheme_id,
        measure=wanted.measure.label,
        min=wanted.min,
        max=wanted.max,
        linkage=linkage.value,
        detection=wanted.detection,
        detection_cases=wanted.detection_cases,
        weights=wanted.weights,
        documents=len(found.corpus) + len(found.corpus.corrupt),
        unprocessed=count(client, target.path, queries.stale(target.fields, target.scheme_id)),
        states=found.corpus.states,
        copies=sum(len(rows) - 1 for rows in found.classes.members),
        candidates=len(found.candidates),
        matches=int(matches.sum()),
        skipped=found.candidates.skipped,
        large_buckets=found.candidates.large,
        **_sizes(groupings.values()),
        stale=len(found.corpus) - len(groupings),
        corrupt=len(found.corpus.corrupt),
        **{name: tally.counts[name] for name in ("written", "changed", "deleted", "refused")},
        unchanged=len(groupings) - len(new),
        refusals=tally.refusals,
        dry_run=dry_run,
        seconds=time.monotonic() - started,
    )


def _sizes(groupings: Collection[Grouping]) -> dict[str, Any]:
    """How many groups there are, and how good they are, for the report."""
    sizes = Counter(one.group for one in groupings)
    several = [size for size in sizes.values() if size > 1]
    return {
        "groups": len(several),
        "grouped": sum(several),
        "alone": len(sizes) - len(several),
        "largest": max(several, default=0),
        "min_similarity": min((one.similarity for one in groupings if not one.principal), default=None),
    }


def _link(
    linkage: Linkage, found: Verified, matches: NDArray[np.bool_], progress: Progress
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The principal of each class and the similarity to it."""
    size = len(found.classes)
    left, right = found.candidates.left[matches], found.candidates.right[matches]
    principal = (star if linkage is Linkage.STAR else chain)(size, left, right)
    to_principal = np.ones(size)
    direct = principal[right] == left
    to_principal[right[direct]] = found.similarity[matches][direct]
    if linkage is Linkage.CHAIN:
        verified = np.zeros(size, np.bool_)
        verified[right[direct]] = True
        apart = np.flatnonzero((principal != np.arange(size)) & ~verified)
        to_principal[apart] = found.verifier.similarities(principal[apart], apart, progress)
    return principal, to_principal


def _groupings(
    corpus: Corpus, verifier: Verifier, principal: NDArray[np.intp], similarity: NDArray[np.float64]
) -> dict[int, Grouping]:
    """The wanted grouping of every row that is as it was fingerprinted, rows without keys included."""
    rows_of: dict[int, list[int]] = {}
    similarity_of: dict[int, float] = {}
    keyed = np.zeros(len(corpus), np.bool_)
    away = verifier.away
    for number, rows in enumerate(verifier.classes.members):
        keyed[rows] = True
        if np.isnan(similarity[number]):  # its principal vanished while we looked
            continue
        present = [row for row in rows.tolist() if row not in away]
        rows_of.setdefault(int(principal[number]), []).extend(present)
        similarity_of.update(dict.fromkeys(present, float(similarity[number])))
    members = {rows[0]: rows for rows in rows_of.values() if rows}
    alone = np.flatnonzero(~keyed).tolist()
    members |= {row: [row] for row in alone}
    ids = assign_ids(
        members,
        corpus.group_ids,
        lambda row: (before := corpus.groupings[row]) is not None and before.principal,
        lambda row, attempt: documents.own_group(*corpus.references[row][:2], attempt),
        reserved=(id for row in away if (id := corpus.group_ids[row]) is not None),
    )
    return {
        row: Grouping(ids[first], row == first, 1.0 if row == first else similarity_of[row])
        for first, rows in members.items()
        for row in rows
    }
