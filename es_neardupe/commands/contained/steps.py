"""Steps of ``contained``: the probe, its candidates and their comparison, and the report."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from es_neardupe.commands.contained.report import ContainedHit, SampledDetection
from es_neardupe.errors import CorruptFingerprint, NotInitialised
from es_neardupe.index import queries
from es_neardupe.index.document_text import values_of
from es_neardupe.index.index import Index, opened
from es_neardupe.index.stored_fields import count_of, decode_samples, group_of, stored_fields
from es_neardupe.keys.arrays import Flags
from es_neardupe.keys.bands import keys_of_features
from es_neardupe.keys.intervals import exact_share
from es_neardupe.progress import Progress, tracked
from es_neardupe.records import Fingerprint, Hit, Reference
from es_neardupe.server.bulk import chunked
from es_neardupe.similarity.common_passages import covered_words
from es_neardupe.similarity.comparison import Containments
from es_neardupe.verification.common_shingles import CommonShingles
from es_neardupe.verification.current_texts import current_hits
from es_neardupe.wording import command

SURE = 0.99
"""Probability from which a document counts as certain to be found."""

_POSTINGS = 50
"""Maximum number of documents per candidate that are read by their keys."""

_MIN_CANDIDATES = 1000
"""Minimum number of candidates for which the limit by `_POSTINGS` is computed."""


# Report


# Command


def opened_with_samples(index: Index) -> Index:
    """The opened index. Raises `NotInitialised` if it has no sampled keys."""
    index = opened(index, texts=True)
    if not index.settings.scheme.sample_mod:
        raise NotInitialised(
            f"Index {index.name} has no sampled keys, which `contained` needs. They are part of the scheme: run "
            f"`{command('migrate', index.name)} --sample-mod 8` (or --sample-keys), or run `init` and `enrich` with "
            f"another prefix."
        )
    return index


def described(fingerprint: Fingerprint) -> dict[str, Any]:
    """What the report says of a fingerprint."""
    return {"state": fingerprint.state.value, "tokens": fingerprint.tokens, "features": fingerprint.features}


@dataclass(frozen=True)
class IgnoredWords:
    """What common shingles exclude."""

    keys: frozenset[str]
    """Their sampled keys."""
    words: Callable[[str], Flags] | None
    """Which words of a prepared text are in them; None: none."""

    @classmethod
    def of(cls, index: Index, common: CommonShingles | None) -> IgnoredWords:
        """Those of a list of shingles, if there is one."""
        if common is None:
            return cls(frozenset(), None)
        features, settings = common.ignored.features, index.settings
        words = partial(covered_words, covering=features, shingle=settings.shingle, unit=settings.unit)
        return cls(frozenset(keys_of_features(features, settings.scheme.sample_mod)), words)


def rank(hit: ContainedHit) -> tuple[float, int, str, str]:
    """Sort key: the largest share first."""
    return -max(hit.of_probe, hit.of_document), -hit.common_words, hit.index, hit.id


def detection(minimum: float, keys: int, mod: int) -> SampledDetection:
    """Each key is a random shingle of the probe, and each shingle of a document is a key with probability 1/mod."""
    shingles = 1 if mod == 1 else math.ceil(math.log(1 - SURE) / math.log(1 - 1 / mod))
    return SampledDetection(minimum, 1 - (1 - minimum) ** keys, shingles)


# Candidates


@dataclass(frozen=True)
class _Candidates:
    references: list[Reference]
    """The best candidates, by the higher of the estimated containments in both directions."""
    total: int
    """Documents that share a used key."""
    keys_left_out: int
    """Keys that were not used, because too many documents have them."""


def find_candidates(
    index: Index, keys: Sequence[str], *, scope: Mapping[str, Any], maximum: int, progress: Progress
) -> _Candidates:
    """The ``maximum`` best of the documents in scope that share any of the sampled keys, which are distinct."""
    frequencies = _frequencies(index, tracked(keys, progress, "looking up keys", len(keys)), scope)
    used = _used(frequencies, _POSTINGS * max(maximum, _MIN_CANDIDATES))
    if not used:
        return _Candidates([], 0, 0)
    shared: Counter[Reference] = Counter()
    sizes: dict[Reference, int] = {}
    for batch in _batches(used, frequencies, index.target.max_result_window):
        body = queries.sampled_matches(index.fields, batch, size=index.target.max_result_window, scope=scope)
        for hit in index.documents.search(body)["hits"]["hits"]:
            reference = (hit["_index"], hit["_id"], hit.get("_routing"))
            shared[reference] += round(hit["_score"])
            # A malformed number of features counts as 0.
            sizes[reference] = count_of(stored_fields(hit["_source"], index.settings.prefix), "features")
    total = index.documents.count(queries.all_of(queries.sampled(index.fields, used), scope))
    mod = index.settings.scheme.sample_mod

    def rank(reference: Reference) -> tuple[float, int, str, str]:
        expected = max(min(len(keys), sizes[reference] / mod), 1)  # keys of the text that has fewer of them
        return -min(shared[reference] / expected, 1), -shared[reference], reference[0], reference[1]

    return _Candidates(sorted(shared, key=rank)[:maximum], total, len(+frequencies) - len(used))


def _frequencies(index: Index, keys: Iterable[str], scope: Mapping[str, Any]) -> Counter[str]:
    """Key -> number of documents in scope that have it."""
    found: Counter[str] = Counter()
    for batch in chunked(keys, queries.MAX_CLAUSES):
        body = queries.sampled_frequencies(index.fields, batch, scope)
        buckets = index.documents.search(body)["aggregations"]["keys"]["buckets"]
        found.update({key: bucket["doc_count"] for key, bucket in zip(batch, buckets, strict=True)})
    return found


def _used(frequencies: Counter[str], postings: int) -> list[str]:
    """Keys of any documents, rarest first, as long as the sum of their frequencies is at most ``postings``. The rarest
    key is always used."""
    used: list[str] = []
    for key in sorted(+frequencies, key=lambda key: (frequencies[key], key)):
        postings -= frequencies[key]
        if used and postings < 0:
            break
        used.append(key)
    return used


def _batches(keys: Sequence[str], frequencies: Counter[str], window: int) -> Iterator[list[str]]:
    """Batches of keys for one search each, which no more than ``window`` documents match, unless a single key has
    more."""
    batch: list[str] = []
    documents = 0
    for key in keys:
        documents += frequencies[key]
        if batch and (documents > window or len(batch) == queries.MAX_CLAUSES):
            yield batch
            batch, documents = [], frequencies[key]
        batch.append(key)
    yield batch


class Comparer:
    """Compares candidates with the probe, and counts unreadable ones."""

    def __init__(self, index: Index, keys: Sequence[str], ignored: frozenset[str], containments: Containments) -> None:
        """``keys``: the sampled keys of the probe without ``ignored`` ones."""
        self._index = index
        self._keys = frozenset(keys)
        self._ignored = ignored
        self._containments = containments
        self.unreadable = 0

    def hits(self, references: Sequence[Reference], progress: Progress) -> Iterator[ContainedHit]:
        """The candidates that reach the minimum share; deleted ones are left out."""
        fields = [*self._index.settings.fields, self._index.fields.samples, self._index.fields.group]
        tracked_references = tracked(references, progress, "comparing", len(references))
        for hits in current_hits(self._index.client, tracked_references, fields):
            yield from filter(None, map(self._compared, hits))

    def _compared(self, hit: Hit) -> ContainedHit | None:
        stored = stored_fields(hit.source, self._index.settings.prefix)
        try:
            keys = frozenset(decode_samples(stored) or ()) - self._ignored
        except CorruptFingerprint:
            self.unreadable += 1
            return None
        found = self._containments.of(values_of(hit.source, self._index.settings.fields))
        if found is None or not keys:  # changed since it became a candidate
            return None
        matched = len(self._keys & keys)
        return ContainedHit(
            index=hit.index,
            id=hit.id,
            direction=found.direction,
            of_probe=found.of_probe,
            of_document=found.of_document,
            estimated_of_probe=exact_share(matched, len(self._keys)),
            estimated_of_document=exact_share(matched, len(keys)),
            matched_keys=matched,
            common_words=found.common_words,
            passages=found.passages,
            excerpt=found.excerpt,
            group=group_of(stored),
        )
