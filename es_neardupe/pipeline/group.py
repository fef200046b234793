"""Group the near-duplicates of an index: candidates, exact verification, groups, write-back."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_neardupe import documents, queries
from es_neardupe.clients import Client
from es_neardupe.errors import SettingsError
from es_neardupe.indices import Target, check_writable, count, open_target, refresh
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.records import Classes, Corpus, Grouping
from es_neardupe.settings import DEFAULT_PREFIX
from es_neardupe.stages.candidates import DEFAULT_MAX_BUCKET, Bucket, Candidates, find_candidates
from es_neardupe.stages.corpus import classes_of, read_corpus, source_of
from es_neardupe.stages.groups import Linkage, assign_ids, chain, star
from es_neardupe.stages.verify import Verifier
from es_neardupe.stages.writeback import changes, write_groups
from es_neardupe.tally import Tally

__all__ = ["GroupReport", "group"]

_PAGE = 2000


@dataclass(frozen=True)
class GroupReport:
    """What a run found and wrote.

    ``documents = grouped + alone + stale + corrupt``; ``unprocessed`` documents have no fingerprint of the index's
    scheme and are not among them.
    """

    index: str
    scheme: str
    min: float
    linkage: str
    detection: float
    """Probability that a pair exactly ``min`` similar became a candidate."""
    documents: int
    unprocessed: int
    states: Mapping[str, int]
    copies: int
    """Documents that are exact copies of another one and were compared as that one."""
    candidates: int
    """Pairs of distinct texts that share a band key: all of them were verified."""
    matches: int
    """Of these, pairs at least ``min`` similar."""
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
    min: float | None = None,
    linkage: Linkage | str = Linkage.STAR,
    max_bucket: int = DEFAULT_MAX_BUCKET,
    workers: int = 2,
    batch: int = 500,
    dry_run: bool = False,
    progress: Progress = silent,
) -> GroupReport:
    """Find the groups of an enriched index and write group, principal and similarity into every document.

    ``min`` is the least exact resemblance (default: the threshold of the index). A second run without changes
    writes nothing.
    """
    started = time.monotonic()
    target = open_target(client, index, prefix)
    least = check_min(target.settings.threshold if min is None else min)
    linkage = Linkage(linkage)
    if not dry_run:
        check_writable(client, index)

    corpus = read_fingerprints(client, target, progress)
    classes = classes_of(corpus)
    candidates = find_candidates(class_keys(corpus, classes), max_bucket)
    verifier = Verifier(client, target.settings, corpus, classes)
    similarity = verifier.resemblances(candidates.left, candidates.right, progress)
    principals = _link(linkage, verifier, candidates, similarity, least=least, progress=progress)
    verifier.check_copies(progress)
    groupings = _groupings(corpus, verifier, *principals)
    wanted = changes(corpus, groupings)
    tally = Tally()
    if dry_run:
        tally.counts["written"] = len(wanted)
    elif wanted:
        tally = write_groups(client, corpus, wanted, prefix, batch=batch, workers=workers)
        refresh(client, target.path)
    return GroupReport(
        index=index,
        scheme=target.scheme_id,
        min=least,
        linkage=linkage.value,
        detection=target.settings.scheme.detection(least),
        documents=len(corpus) + len(corpus.corrupt),
        unprocessed=count(client, target.path, queries.stale(target.fields, target.scheme_id)),
        states=corpus.states,
        copies=sum(len(rows) - 1 for rows in classes.members),
        candidates=len(candidates),
        matches=int((similarity >= least).sum()),
        skipped=candidates.skipped,
        large_buckets=candidates.large,
        **_sizes(groupings.values()),
        stale=len(corpus) - len(groupings),
        corrupt=len(corpus.corrupt),
        **{name: tally.counts[name] for name in ("written", "changed", "deleted", "refused")},
        unchanged=len(groupings) - len(wanted),
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


def check_min(least: float) -> float:
    """Raises `SettingsError` unless the wanted resemblance lies in (0, 1]."""
    if not 0 < least <= 1:
        raise SettingsError(f"--min must lie in (0, 1], not {least}.")
    return least


def read_fingerprints(client: Client, target: Target, progress: Progress = silent) -> Corpus:
    """Read the fingerprints of the index's scheme as columns."""
    refresh(client, target.path)
    query = queries.fingerprinted(target.fields, target.scheme_id)
    total = count(client, target.path, query)
    body = {"query": query, "_source": source_of(target.fields)}
    pages = client.pages(target.path, body, page_size=_PAGE)
    told = tracked(pages, lambda stage, done, _: progress(stage, done * _PAGE, total), "reading keys", total, step=1)
    return read_corpus(told, target.settings.prefix, target.settings.scheme.bands)


def class_keys(corpus: Corpus, classes: Classes) -> NDArray[np.uint64]:
    """The keys of each class, shape (classes, bands)."""
    first = np.array([rows[0] for rows in classes.members], np.intp)
    keys: NDArray[np.uint64] = corpus.keys[first]
    return keys


def _link(
    linkage: Linkage,
    verifier: Verifier,
    candidates: Candidates,
    similarity: NDArray[np.float64],
    *,
    least: float,
    progress: Progress,
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The principal of each class and the similarity to it."""
    size, matches = len(verifier.classes), similarity >= least
    left, right = candidates.left[matches], candidates.right[matches]
    principal = (star if linkage is Linkage.STAR else chain)(size, left, right)
    to_principal = np.ones(size)
    direct = principal[right] == left
    to_principal[right[direct]] = similarity[matches][direct]
    if linkage is Linkage.CHAIN:
        verified = np.zeros(size, np.bool_)
        verified[right[direct]] = True
        apart = np.flatnonzero((principal != np.arange(size)) & ~verified)
        to_principal[apart] = verifier.resemblances(principal[apart], apart, progress)
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
