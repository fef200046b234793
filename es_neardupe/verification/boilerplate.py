"""Boilerplate that holds unrelated texts of an index together (``--ignore-common auto`` compares them by the rest)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from es_neardupe.candidates.fingerprints import classes_of, read_fingerprints
from es_neardupe.candidates.join import candidate_pairs
from es_neardupe.candidates.memory_limit import MemoryLimit
from es_neardupe.candidates.pair_arrays import components
from es_neardupe.candidates.spill_to_disk import scratch
from es_neardupe.columns import RowLists
from es_neardupe.display_text import beginning
from es_neardupe.index.document_text import prepared_text
from es_neardupe.index.index import Index
from es_neardupe.keys.arrays import U64, Numbers, Positions
from es_neardupe.keys.shingles import features
from es_neardupe.progress import Progress, silent
from es_neardupe.records import FingerprintColumns, TextClasses
from es_neardupe.similarity.boilerplate import boilerplate_of
from es_neardupe.similarity.measure import Ignored, Measure
from es_neardupe.verification.on_workers import ComparingWorkers
from es_neardupe.verification.verify import Verified, Verifier

MEMBERS = 5
"""Minimum number of different texts in a cluster that is examined."""

_CLUSTERS = 1000
"""Maximum number of clusters that are examined, the largest ones."""

_TEXTS = 20
"""Texts of a cluster that are compared with each other."""

_CHARACTERS = 100_000
"""Characters of each of them."""

_ROUNDS = 5
"""How often a sample is examined at most."""

_SAMPLE = 10_000
"""Maximum number of texts in a sample."""

_SHOWN = 3


@dataclass(frozen=True)
class SharedPassage:
    """A passage of boilerplate."""

    passage: str
    """Its beginning."""
    clusters: int
    """Clusters of which it is the longest passage of boilerplate."""
    documents: int


@dataclass(frozen=True)
class Boilerplate:
    """Passages that hold clusters of texts together, and say nothing about their subjects. A cluster is all that chains
    of matches connect."""

    examined: int
    """Clusters of five different texts and more, at most the 1,000 largest."""
    clusters: int
    """Those that only boilerplate holds together."""
    documents: int
    """Documents of these clusters."""
    passages: tuple[SharedPassage, ...]
    """The longest passage of each of them, those of most documents first; at most three."""
    _ignored: tuple[int, ...] = field(compare=False, repr=False)

    @cached_property
    def ignored(self) -> Ignored:
        """The shingles of all their passages."""
        return Ignored("boilerplate", np.array(self._ignored, np.uint64))

    def with_others(self, more: Boilerplate) -> Boilerplate:
        """These passages and others, of clusters that were found without these."""
        passages = sorted({*self.passages, *more.passages}, key=lambda one: (-one.documents, one.passage))
        return Boilerplate(
            examined=max(self.examined, more.examined),
            clusters=self.clusters + more.clusters,
            documents=self.documents + more.documents,
            passages=tuple(passages[:_SHOWN]),
            _ignored=tuple(sorted({*self._ignored, *more._ignored})),
        )

    def without(self, shingles: Sequence[U64]) -> list[U64]:
        """The shingles of each text (sorted) that are not in these passages; all of them if there are no others."""
        rest = map(self.ignored.without, shingles)
        return [some if len(some) else one for some, one in zip(rest, shingles, strict=True)]


def boilerplate(
    index: Index, corpus: FingerprintColumns, classes: TextClasses, left: Numbers, right: Numbers
) -> Boilerplate:
    """Examine the largest clusters of these matching pairs of classes, by the current texts of up to 20 members.

    None is examined if texts are masked: what is left of them is the template that they are meant to be grouped by.
    """
    masked = bool(index.settings.scheme.preparation.masks)
    clusters = [] if masked else largest_clusters(components(len(classes), left, right))
    sizes = classes.sizes
    held = list[tuple[str, int]]()
    passages = list[str]()
    for members in clusters:
        texts = _texts(index, corpus, classes, members)
        found = boilerplate_of(texts) if len(texts) >= MEMBERS else None  # some were deleted meanwhile
        if found is not None:
            held.append((beginning(found[0]), int(sizes[members].sum())))
            passages += found
    settings = index.settings
    of_passages = features(passages, settings.shingle, settings.unit)
    return Boilerplate(
        examined=len(clusters),
        clusters=len(held),
        documents=sum(documents for _, documents in held),
        passages=_shown(held),
        _ignored=tuple(np.unique(np.concatenate(of_passages)).tolist()) if of_passages else (),
    )


def sampled_boilerplate(
    index: Index, minimum: float, *, limit: MemoryLimit | None = None, progress: Progress = silent
) -> tuple[Boilerplate, int]:
    """The boilerplate of a sample, and the number of its texts, without comparing all candidates of the index.

    The sample are the texts of the largest clusters of candidates, all of them or evenly spread ones. Clusters of those
    with this ``minimum`` resemblance are examined, and again without the passages that were found: signatures hold
    texts together that are in one cluster because of a disclaimer. Raises `SettingsError` for more documents or pairs
    than ``limit`` allows.
    """
    measure = Measure(shingle=index.settings.shingle, unit=index.settings.unit)
    with scratch() as files:
        corpus = read_fingerprints(index, progress, limit=limit, files=files)
        classes = classes_of(corpus, copies=True)

        def check(pairs: int, bucket: int) -> None:
            if limit is not None:
                limit.holding(bucket, documents=len(corpus), candidate_pairs=pairs)

        candidates = candidate_pairs(index, corpus, classes, check=check)
        corpus = corpus.without_keys()
    clusters = largest_clusters(components(len(classes), candidates.left, candidates.right))
    sampled = np.zeros(len(classes), np.bool_)
    for members in _sample(clusters):
        sampled[members] = True
    inside = sampled[candidates.left] & sampled[candidates.right]
    left, right = candidates.left[inside], candidates.right[inside]
    found = Boilerplate(0, 0, 0, (), ())
    for _ in range(_ROUNDS):
        workers = ComparingWorkers.of(index, measure)
        verifier = Verifier(index.client, index.settings, corpus, classes, measure, workers=workers)
        matches = verifier.similarities(left, right, progress) >= minimum
        more = boilerplate(index, corpus, classes, left[matches], right[matches])
        if not more.clusters:
            break
        found = found.with_others(more)
        measure = replace(measure, ignored=found.ignored)
    return found, int(sampled.sum())


def _sample(clusters: Sequence[Positions]) -> list[Positions]:
    """Members of all clusters, of the largest ones only some, at most 10,000 together."""
    sizes = np.array([len(one) for one in clusters], np.intp)
    most = int(sizes.max(initial=0))
    while np.minimum(sizes, most).sum() > _SAMPLE:
        most = most * 9 // 10
    return [evenly_spread(one, most) for one in clusters]


def without(index: Index, corpus: FingerprintColumns, classes: TextClasses, found: Boilerplate) -> Verifier:
    """A verifier by the resemblance without the passages of boilerplate."""
    measure = Measure(shingle=index.settings.shingle, unit=index.settings.unit, ignored=found.ignored)
    workers = ComparingWorkers.of(index, measure)
    return Verifier(index.client, index.settings, corpus, classes, measure, workers=workers)


def groups_held(
    index: Index,
    verified: Verified,
    principal: Numbers,
    found: Boilerplate,
    *,
    minimum: float,
    progress: Progress = silent,
) -> int:
    """The number of groups of which fewer than half of the other texts match the principal without the passages of
    boilerplate. ``principal``: that of each class, itself if it is alone; shape (k,)."""
    if not found.clusters:
        return 0
    verifier = without(index, verified.corpus, verified.classes, found)
    members = np.flatnonzero(principal != np.arange(len(principal), dtype=np.int32))
    matching = verifier.similarities(principal[members], members, progress) >= minimum
    others = np.bincount(principal[members], minlength=len(principal))
    return int((2 * np.bincount(principal[members], matching, len(principal)) < others).sum())


def largest_clusters(cluster_of: Numbers) -> list[Positions]:
    """The classes of each cluster to examine, the largest first. ``cluster_of``: the cluster of each class."""
    order = np.argsort(cluster_of, kind="stable")
    clusters = RowLists(order, np.flatnonzero(np.diff(cluster_of[order], prepend=-1, append=-1)))
    chosen = np.flatnonzero(clusters.sizes >= MEMBERS)
    chosen = chosen[np.argsort(-clusters.sizes[chosen], kind="stable")][:_CLUSTERS]
    return [clusters[number] for number in chosen.tolist()]


def _texts(index: Index, corpus: FingerprintColumns, classes: TextClasses, members: Positions) -> list[str]:
    """The current texts of some of the classes."""
    references = [corpus.references[row] for row in classes.first_of(evenly_spread(members)).tolist()]
    hits = index.documents.fetch(references, index.settings.fields)
    return [prepared_text(hit.source, index.settings)[:_CHARACTERS] for hit in hits if hit is not None]


def evenly_spread(members: Positions, number: int = _TEXTS) -> Positions:
    """So many members of a cluster, or all if it has fewer; by default those whose texts are examined."""
    return members[np.linspace(0, len(members) - 1, min(number, len(members))).astype(np.intp)]


def _shown(held: Sequence[tuple[str, int]]) -> tuple[SharedPassage, ...]:
    """The passages (of each cluster, with its documents) to show."""
    of_each = [
        SharedPassage(passage, len(some), sum(some))
        for passage in dict.fromkeys(passage for passage, _ in held)
        if (some := [documents for other, documents in held if other == passage])
    ]
    return tuple(sorted(of_each, key=lambda one: (-one.documents, one.passage))[:_SHOWN])
