"""Which documents contain a text, or are contained in it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_neardupe import options
from es_neardupe.commands.report_parts import one_line
from es_neardupe.errors import CorruptFingerprint, NotInitialised, SettingsError
from es_neardupe.index import queries
from es_neardupe.index.document_text import read_text, text_of
from es_neardupe.index.index import Index, opened
from es_neardupe.index.stored_fields import count_of, decode_samples, group_of, stored_fields
from es_neardupe.index.target import IndexTarget
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.keys.intervals import Estimate, exact_share
from es_neardupe.options import DEFAULT_MAX_CHARS, Matching
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.records import Address, Fingerprint, Hit, Reference
from es_neardupe.server.bulk import chunked
from es_neardupe.server.client import Client
from es_neardupe.server.search import count, search
from es_neardupe.similarity.comparison import Block, Side
from es_neardupe.similarity.containment import Containments, Direction
from es_neardupe.verification.criterion import check_min
from es_neardupe.verification.current_texts import current_hits, current_source

__all__ = [
    "SURE",
    "Contained",
    "ContainedHit",
    "SampledCandidates",
    "SampledDetection",
    "contained",
    "sampled_candidates",
]


_POSTINGS = 50
"""Pairs of a key and a document that are read for each candidate that is wanted."""
_FEW = 1000
"""If fewer candidates are wanted, they are the best of as many readings."""


@dataclass(frozen=True)
class SampledCandidates:
    """What the keys have found."""

    references: list[Reference]
    """The wanted ones, by the estimated containment in one or the other direction."""
    total: int
    """Documents that share a used key."""
    left_out: int
    """Keys that were not used: more documents have them than were to be read."""


def sampled_candidates(
    index: Index,
    keys: Sequence[str],
    *,
    scope: Mapping[str, Any],
    maximum: int,
    progress: Progress = silent,
) -> SampledCandidates:
    """The ``maximum`` best of the documents of the scope that share any of the sampled keys (distinct ones)."""
    asked = tracked(keys, progress, "asking for keys", len(keys))
    frequencies = _frequencies(index, asked, scope)
    used = _used(frequencies, _POSTINGS * max(maximum, _FEW))
    if not used:
        return SampledCandidates([], 0, 0)
    shared: Counter[Reference] = Counter()
    sizes: dict[Reference, int] = {}
    for batch in _batches(used, frequencies, index.target.max_result_window):
        body = queries.sampled_matches(index.fields, batch, size=index.target.max_result_window, scope=scope)
        for hit in search(index.client, index.path, body)["hits"]["hits"]:
            reference = (hit["_index"], hit["_id"], hit.get("_routing"))
            shared[reference] += round(hit["_score"])
            sizes[reference] = _features(hit, index.target)
    total = count(index.client, index.path, queries.all_of(queries.sampled(index.fields, used), scope))
    mod = index.settings.scheme.sample_mod

    def rank(reference: Reference) -> tuple[float, int, str, str]:
        expected = max(min(len(keys), sizes[reference] / mod), 1)  # keys of the smaller of both texts
        return -min(shared[reference] / expected, 1), -shared[reference], reference[0], reference[1]

    return SampledCandidates(sorted(shared, key=rank)[:maximum], total, len(+frequencies) - len(used))


def _frequencies(index: Index, keys: Iterable[str], scope: Mapping[str, Any]) -> Counter[str]:
    """The number of documents that have each key."""
    found: Counter[str] = Counter()
    for batch in chunked(keys, queries.MAX_CLAUSES):
        body = queries.sampled_frequencies(index.fields, batch, scope)
        buckets = search(index.client, index.path, body)["aggregations"]["keys"]["buckets"]
        found.update({key: bucket["doc_count"] for key, bucket in zip(batch, buckets, strict=True)})
    return found


def _used(frequencies: Counter[str], postings: int) -> list[str]:
    """The keys that any document has, rare ones first, as long as they have so many documents together; the rarest
    in any case."""
    used: list[str] = []
    for key in sorted(+frequencies, key=lambda key: (frequencies[key], key)):
        postings -= frequencies[key]
        if used and postings < 0:
            break
        used.append(key)
    return used


def _batches(keys: Sequence[str], frequencies: Counter[str], window: int) -> Iterator[list[str]]:
    """Keys of one search each: together they have no more documents than it returns, where that can be."""
    batch: list[str] = []
    documents = 0
    for key in keys:
        documents += frequencies[key]
        if batch and (documents > window or len(batch) == queries.MAX_CLAUSES):
            yield batch
            batch, documents = [], frequencies[key]
        batch.append(key)
    yield batch


def _features(hit: Mapping[str, Any], target: IndexTarget) -> int:
    """The stored number of features; whatever else stands there counts as none."""
    return count_of(stored_fields(hit["_source"], target.settings.prefix), "features")


SURE = 0.99
"""The probability from which on a text counts as found."""


@dataclass(frozen=True)
class ContainedHit:
    """A document that contains the probe, or is contained in it, by at least the wanted share of words."""

    index: str
    id: str
    direction: Direction
    of_probe: float
    """Share of the probe's words that are in common passages, exact."""
    of_document: float
    """Share of the document's words, likewise."""
    estimated_of_probe: Estimate
    """Share of the probe's shingles that the document has: matched keys / keys of the probe."""
    estimated_of_document: Estimate
    """Share of the document's shingles that the probe has: matched keys / keys of the document."""
    matched_keys: int
    common_words: int
    passages: tuple[Block, ...]
    """``a`` in the probe, ``b`` in the document, in characters."""
    excerpt: str
    """The longest passage, or its beginning."""
    group: str | None

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            id=self.id,
            of_probe=self.of_probe,
            of_document=self.of_document,
            passages=len(self.passages),
        )


@dataclass(frozen=True)
class SampledDetection:
    """What the sampled keys can find."""

    min: float
    probability: float
    """With which a document that has this share of the probe's shingles shares a used key with it, at least."""
    shingles: int
    """Different shingles from which on a document that is contained whole in the probe has a key with probability
    0.99."""


@dataclass(frozen=True)
class Contained:
    """The answer: highest share first, in whatever direction."""

    query: Mapping[str, Any]
    """``index`` and ``id``, or ``text`` (its beginning); with the probe's ``state``, ``tokens`` and ``features``."""
    hits: tuple[ContainedHit, ...]
    found: int
    """Documents that fulfil it, those not among the ``top`` too."""
    candidates: int
    """Documents that share a used key."""
    not_compared: int
    """Candidates beyond ``max_candidates``, those with the lowest estimates."""
    unreadable: int
    """Candidates whose sampled keys our code cannot have written: not compared."""
    unprocessed: int
    """Other documents that ``query`` allows, without keys: not found by any."""
    keys: int
    """Sampled keys of the probe."""
    keys_left_out: int
    """Of these, common keys that were not used to find candidates."""
    detection: SampledDetection
    sample_mod: int
    shingle: int
    matching: Matching

    def __repr__(self) -> str:
        return one_line(
            self,
            query=self.query,
            hits=len(self.hits),
            found=self.found,
            candidates=self.candidates,
        )


@dataclass(frozen=True)
class _Probe:
    side: Side
    name: dict[str, Any]
    address: Address | None


def contained(
    index: Index,
    *,
    id: options.Id = None,
    text: options.Text = None,
    matching: options.MatchingOfPassages = "literal",
    min: options.MinimumShare = 0.5,
    top: options.TopHits = 10,
    query: options.Query = None,
    max_candidates: options.CandidatesByEstimate = 1000,
    progress: Progress = silent,
) -> Contained:
    """Documents that have at least ``min`` of the words of a document, or of any text, in common passages with it, or
    at least ``min`` of their own.

    Give ``id`` or ``text``. Candidates share sampled keys with the probe; then both sides are compared by their present
    texts. ``query`` filters the documents. Nothing is written, and no group is made of it. Raises `NotInitialised` for
    an index without sampled keys, `NotFound` for an unknown id, `InputError` for a probe without readable text, and
    `SettingsError` for options out of range.
    """
    if (id is None) == (text is None):
        raise SettingsError("Give either the id of a document or a text.")
    if top < 1 or max_candidates < 1:
        raise SettingsError("`top` and `max_candidates` must be 1 or more.")
    check_min(min)
    index = _opened(index)
    how = _matching(matching)
    probe = _document(index, id) if id is not None else _text(text or "")
    (fingerprint,) = fingerprints([probe.side.text], index.settings.scheme, max_chars=DEFAULT_MAX_CHARS)
    keys = list(dict.fromkeys(fingerprint.samples or ()))
    scope = queries.others(query, probe.address)
    found = sampled_candidates(index, keys, scope=scope, maximum=max_candidates, progress=progress)
    comparing = _Comparing(keys, index.target, Containments(probe.side, how, index.settings.shingle, min))
    hits = sorted(comparing.hits(index.client, found, progress), key=_rank)
    return Contained(
        query=probe.name | _described(fingerprint),
        hits=tuple(hits[:top]),
        found=len(hits),
        candidates=found.total,
        not_compared=found.total - len(found.references),
        unreadable=comparing.unreadable,
        unprocessed=count(index.client, index.path, index.target.stale(scope)),
        keys=len(keys),
        keys_left_out=found.left_out,
        detection=_detection(min, len(keys) - found.left_out, index.settings.scheme.sample_mod),
        sample_mod=index.settings.scheme.sample_mod,
        shingle=index.settings.shingle,
        matching=how,
    )


def _opened(index: Index) -> Index:
    index = opened(index, texts=True)
    if not index.settings.scheme.sample_mod:
        raise NotInitialised(
            f"Index {index.name} has no sampled keys, which contained needs. They are a part of the scheme: run "
            f"`es-neardupe migrate {index.name} --sample-mod 8` (or --sample-keys); or leave what is there and give "
            f"`init` and `enrich` another prefix."
        )
    return index


def _matching(name: Matching | str) -> Matching:
    try:
        return Matching(name)
    except ValueError:
        known = ", ".join(one.value for one in Matching)
        raise SettingsError(f"There is no matching {str(name)!r}. Known: {known}.") from None


def _document(index: Index, id: str) -> _Probe:
    fields = index.settings.fields
    concrete, source = current_source(index, id, fields)
    return _Probe(Side.of(id, read_text(source, fields)), {"index": concrete, "id": id}, Address(concrete, id))


def _text(text: str) -> _Probe:
    return _Probe(Side.of("text", text), {"text": text[:80]}, None)


def _described(fingerprint: Fingerprint) -> dict[str, Any]:
    return {"state": fingerprint.state.value, "tokens": fingerprint.tokens, "features": fingerprint.features}


class _Comparing:
    """Compares candidates with the probe, and counts those that cannot be."""

    def __init__(self, keys: Sequence[str], target: IndexTarget, containments: Containments) -> None:
        self.keys = frozenset(keys)
        self.target = target
        self.containments = containments
        self.unreadable = 0

    def hits(self, client: Client, found: SampledCandidates, progress: Progress) -> Iterator[ContainedHit]:
        """The candidates that reach the wanted share; one deleted meanwhile is no hit."""
        fields = [*self.target.settings.fields, self.target.fields.samples, self.target.fields.group]
        references = tracked(found.references, progress, "comparing", len(found.references))
        for hits in current_hits(client, references, fields):
            for hit in hits:
                if (one := self._compared(hit)) is not None:
                    yield one

    def _compared(self, hit: Hit) -> ContainedHit | None:
        settings = self.target.settings
        stored = stored_fields(hit.source, settings.prefix)
        try:
            theirs = frozenset(decode_samples(stored) or ())
        except CorruptFingerprint:
            self.unreadable += 1
            return None
        found = self.containments.of(text_of(hit.source, settings.fields))
        if found is None or not theirs:  # it may have changed since it was a candidate
            return None
        matched = len(self.keys & theirs)
        return ContainedHit(
            index=hit.index,
            id=hit.id,
            direction=found.direction,
            of_probe=found.of_probe,
            of_document=found.of_document,
            estimated_of_probe=exact_share(matched, len(self.keys)),
            estimated_of_document=exact_share(matched, len(theirs)),
            matched_keys=matched,
            common_words=found.common_words,
            passages=found.passages,
            excerpt=found.excerpt,
            group=group_of(stored),
        )


def _rank(hit: ContainedHit) -> tuple[float, int, str, str]:
    return -max(hit.of_probe, hit.of_document), -hit.common_words, hit.index, hit.id


def _detection(minimum: float, keys: int, mod: int) -> SampledDetection:
    """Each key of the probe is one of its shingles at random; each shingle of a document is a key once in ``mod``."""
    shingles = 1 if mod == 1 else math.ceil(math.log(1 - SURE) / math.log(1 - 1 / mod))
    return SampledDetection(minimum, 1 - (1 - minimum) ** keys, shingles)
