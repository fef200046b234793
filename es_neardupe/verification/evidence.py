"""Evidence, in a hidden index: one entry for each text of a group and its principal, for each exact copy, and for each
two texts that only facts keep apart.

The id of an entry is derived from the addresses of its documents, so a pair has one entry however often it is verified.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from es_neardupe.errors import Forbidden, SettingsError
from es_neardupe.index import queries
from es_neardupe.index.hidden_indices import HiddenIndex, HiddenStore
from es_neardupe.index.index import Index
from es_neardupe.index.stored_fields import is_hash
from es_neardupe.keys.arrays import Bytes, Flags, Floats
from es_neardupe.keys.text import packed_hashes
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.records import Address, FingerprintColumns, Hit
from es_neardupe.server.bulk import chunked
from es_neardupe.similarity.pair_relation import Relation
from es_neardupe.stored_json import StoredJson
from es_neardupe.verification.criterion import MatchCriterion
from es_neardupe.verification.match_rules import WeightsUsed
from es_neardupe.wording import counted, option

_ENTRY_FIELDS = ["content_a", "content_b", "scheme", "measure", "min", "max", "verdict", "decision", "facts"]
"""The fields of an entry that `read_entries` needs."""

VERDICTS = (None, "same", "different")
"""Verdicts by their numbers in arrays."""

_PAGE = 5000

_ABOUT = 1000
"""Entries read by `evidence_with`: there is one for two contents, unless documents were grouped one by one."""


class EvidenceBasis(NamedTuple):
    """The scheme, measure and limits that decide about pairs."""

    scheme: str
    measure: str
    """Label of the measure, with the sample of its weights if it has any: equal labels mean equal similarities."""
    min: float
    max: float


@dataclass(frozen=True)
class StoredEvidence:
    """The stored evidence. e entries."""

    pairs: Bytes
    """The ids as bytes: the hashes of both addresses, S16[e]."""
    contents: Bytes
    """Content hashes of both documents as bytes, S16[e, 2]."""
    current: Flags
    """Whether an entry is of this scheme, bool[e]."""
    same_measure: Flags
    """Whether it is of this scheme and measure, bool[e]."""
    limits: Floats
    """Minimum and maximum of accepted similarities, float64[e, 2]."""
    verdict: NDArray[np.int8]
    """Numbers of `Verdicts`, int8[e]."""
    accepted: Flags
    """The decision, bool[e]."""
    other_facts: Flags
    """Whether a pair was rejected because facts differ, bool[e]."""
    invalid: tuple[str, ...]
    """Ids of entries that `write_evidence` cannot have written."""

    def __len__(self) -> int:
        return len(self.pairs) + len(self.invalid)


@dataclass(frozen=True)
class PairEvidence:
    """The entry about two contents."""

    decision: Literal["accepted", "rejected"]
    relation: Relation
    measure: str
    value: float
    """Similarity by the deciding measure."""
    at: str
    """When it was decided."""
    verdict: Literal["same", "different"] | None = None
    """What reviewers agreed on, as of the last run that used the pair."""


_PAIR_EVIDENCE: StoredJson[PairEvidence] = StoredJson(PairEvidence)


def read_entries(pages: Iterable[Sequence[Hit]], scheme: str, measure: str) -> StoredEvidence:
    """Split pages of entries into columns."""
    invalid: list[str] = []
    columns: list[tuple[NDArray[Any], ...]] = [_columns([], scheme, measure)]
    for page in pages:
        valid = [hit for hit in page if _is_valid(hit)]
        invalid += [hit.id for hit in page if not _is_valid(hit)]
        columns.append(_columns(valid, scheme, measure))
    pairs, contents, current, mine, limits, verdict, accepted, facts = map(np.concatenate, zip(*columns, strict=True))
    return StoredEvidence(pairs, contents, current, mine, limits, verdict, accepted, facts, tuple(invalid))


def _is_valid(hit: Hit) -> bool:
    source = hit.source
    hashes = hit.id, source.get("content_a"), source.get("content_b")
    names = source.get("scheme"), source.get("measure")
    numbers = [source.get(name) for name in ("min", "max")]
    return (
        all(map(is_hash, hashes))
        and all(isinstance(one, str) for one in names)
        and all(isinstance(one, int | float) and 0 <= one < 2 for one in numbers)  # a sum of weights may be above 1
        and source.get("verdict") in VERDICTS
        and isinstance(source.get("facts", []), list)
    )


def _columns(hits: Sequence[Hit], scheme: str, measure: str) -> tuple[NDArray[Any], ...]:
    """The columns of `StoredEvidence`."""
    sources = [hit.source for hit in hits]
    hashes = packed_hashes([one[side] for one in sources for side in ("content_a", "content_b")]).reshape(-1, 2)
    current = np.array([one["scheme"] == scheme for one in sources], np.bool_)
    return (
        packed_hashes([hit.id for hit in hits]),
        hashes,
        current,
        current & np.array([one["measure"] == measure for one in sources], np.bool_),
        np.array([[one["min"], one["max"]] for one in sources], np.float64).reshape(-1, 2),
        np.array([VERDICTS.index(one.get("verdict")) for one in sources], np.int8),
        np.array([one.get("decision") == "accepted" for one in sources], np.bool_),
        np.array([bool(one.get("facts")) for one in sources], np.bool_),
    )


class Evidence:
    """The evidence of an index, as far as it was read, and the basis of this run's decisions."""

    def __init__(self, index: Index, criterion: MatchCriterion) -> None:
        """See `evidence_of`."""
        measure = _measure(criterion.measure.label, criterion.weights)
        self.index = index
        self.criterion = criterion
        self.basis = EvidenceBasis(index.scheme_id, measure, criterion.min, criterion.max)
        self._store = HiddenStore(index, HiddenIndex.PAIRS)
        self._all: StoredEvidence | None = None
        self._some: dict[str, Hit] = {}
        self._queried: set[Address] = set()

    @property
    def stored(self) -> StoredEvidence:
        """The entries read so far."""
        if self._all is not None:
            return self._all
        return read_entries([list(self._some.values())], self.basis.scheme, self.basis.measure)

    def count(self) -> int:
        """The number of stored entries."""
        return self._store.count() if self._store.refreshed() else 0

    def read_all(self, progress: Progress = silent) -> None:
        """Read every entry."""
        self._all = _read(self.index, self.basis, progress)

    @property
    def examined(self) -> int:
        """The number of entries that `read_about` has read."""
        return len(self._some)

    def read_about(self, corpus: FingerprintColumns, rows: Flags) -> None:
        """Read the entries about some documents (bool of the rows), once each."""
        new = [
            address for row in np.flatnonzero(rows).tolist() if (address := corpus.address(row)) not in self._queried
        ]
        if not new or not self._store.exists():
            return
        self._store.refresh()
        self._queried.update(new)
        for chunk in chunked(new, queries.MAX_TERMS):
            ids = sorted({address.id for address in chunk})
            query = {"bool": {"should": [{"terms": {field: ids}} for field in ("a.id", "b.id")]}}
            for page in self._store.pages({"query": query, "_source": _ENTRY_FIELDS}, page_size=_PAGE):
                self._some.update((hit.id, hit) for hit in page)


def evidence_of(index: Index, criterion: MatchCriterion) -> Evidence:
    """The evidence of an index, not read yet.

    Raises `SettingsError` for a measure that depends on more than the words: equal content hashes do not mean equal
    similarities then; and `NameTaken` if another index has the name of the hidden one.
    """
    HiddenStore(index, HiddenIndex.PAIRS).exists()
    if not criterion.measure.copies_are_equal:
        raise SettingsError(
            f"Evidence is stored by the words of texts, and {criterion.measure.label} depends on more than these. Run "
            f"`group` without {option('evidence')}, or choose another measure."
        )
    return Evidence(index, criterion)


def _read(index: Index, basis: EvidenceBasis, progress: Progress) -> StoredEvidence:
    """All entries; none if the hidden index does not exist."""
    store = HiddenStore(index, HiddenIndex.PAIRS)
    if not store.refreshed():
        return read_entries([], basis.scheme, basis.measure)
    total = store.count()
    pages = store.pages({"query": {"match_all": {}}, "_source": _ENTRY_FIELDS}, page_size=_PAGE)
    pages = tracked(pages, lambda stage, done, _: progress(stage, done * _PAGE, total), "reading evidence", total, 1)
    return read_entries(pages, basis.scheme, basis.measure)


def evidence_with(index: Index, content: str, others: Collection[str]) -> dict[str, PairEvidence]:
    """The latest entry about a content hash and each of some others, by these. None about equal contents, or if this
    user may not read the evidence."""
    if not content or not others:
        return {}
    sides = ("content_a", "content_b")
    either = [
        queries.all_of({"term": {one: content}}, {"terms": {other: sorted(others)}})
        for one, other in (sides, sides[::-1])
    ]
    query = {"bool": {"filter": [{"term": {"scheme": index.scheme_id}}], "should": either, "minimum_should_match": 1}}
    body = {"size": _ABOUT, "query": query, "sort": [{"at": "desc"}]}
    store = HiddenStore(index, HiddenIndex.PAIRS)
    try:
        hits = store.search(body)["hits"]["hits"] if store.exists() else []
    except Forbidden:
        return {}
    found: dict[str, PairEvidence] = {}
    for hit in hits:
        with suppress(ValueError):  # not written by this version
            one = _PAIR_EVIDENCE.read(hit["_source"])
            a, b = (str(hit["_source"].get(side)) for side in sides)
            found.setdefault(b if a == content else a, one)
    return found


def pairs_with_other_facts(index: Index, contents: Collection[str]) -> Iterator[tuple[str, str]]:
    """The pairs of content hashes, one of them among some, whose texts are similar enough, but differ in the facts that
    decide. None if this user may not read the evidence."""
    store = HiddenStore(index, HiddenIndex.PAIRS)
    try:
        if not contents or not store.exists():
            return
        for chunk in chunked(sorted(contents), queries.MAX_TERMS // 2):
            either = [{"terms": {side: chunk}} for side in ("content_a", "content_b")]
            query = {
                "bool": {
                    "filter": [
                        {"term": {"scheme": index.scheme_id}},
                        {"term": {"decision": "rejected"}},
                        {"exists": {"field": "facts.kinds"}},
                    ],
                    "should": either,
                    "minimum_should_match": 1,
                }
            }
            for one in store.buckets(query, {"a": "content_a", "b": "content_b"}):
                yield one["a"], one["b"]
    except Forbidden:
        return


def _measure(label: str, weights: WeightsUsed | None) -> str:
    """Label of a measure in evidence, with the sample of its weights: other weights are another measure."""
    return (
        label if weights is None else f"{label}, weights of {counted(weights.documents, 'document')} taken {weights.at}"
    )
