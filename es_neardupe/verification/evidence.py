"""Evidence, in a hidden index: one entry for each text of a group and its principal, for each exact copy, and for each
two texts that only facts keep apart.

The id of an entry is derived from the addresses of its documents, so a pair has one entry however often it is verified.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from es_neardupe.candidates.pair_arrays import Portion, portions
from es_neardupe.errors import Forbidden, SettingsError
from es_neardupe.index import queries
from es_neardupe.index.hidden_indices import HiddenIndex, HiddenStore
from es_neardupe.index.index import Index
from es_neardupe.index.stored_fields import timestamp
from es_neardupe.keys.arrays import U64, Bytes, Flags, Floats, Ints, Numbers, Positions
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.text import hash_text, packed_hashes
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.records import Action, Address, FingerprintColumns, Hit
from es_neardupe.server.bulk import BulkCounts, chunked, write
from es_neardupe.server.client import Client
from es_neardupe.similarity.facts.differing import Fact, differing_facts
from es_neardupe.similarity.pair_relation import ComparedText, PairDescription, Relation, compared_texts, describe_pair
from es_neardupe.stored_json import StoredJson
from es_neardupe.verification.criterion import MatchCriterion, WeightsUsed
from es_neardupe.verification.current_texts import CurrentDocuments
from es_neardupe.verification.verify import Verified
from es_neardupe.wording import counted, option

Reader = Callable[[Positions], Iterable[tuple[int, str]]]

_ENTRY_FIELDS = ["content_a", "content_b", "scheme", "measure", "min", "max", "verdict", "decision", "facts"]
"""The fields of an entry that `read_entries` needs."""

_VERDICTS = (None, "same", "different")
"""Verdicts by their numbers in arrays."""

Verdicts = Callable[[Bytes, Bytes], NDArray[np.int8]]
"""What reviewers have decided about pairs of contents, both S16[p]: 0 nothing, 1 *same*, 2 *different*; int8[p]."""

_HASH = re.compile("[0-9a-f]{32}")
_PAGE = 5000

_BATCH_TOKENS = 5_000_000
"""Maximum tokens of the texts in memory, unless a single text has more."""

_FACTS = 10
"""Facts of a pair that are stored."""

_FACT_CHARACTERS = 200
"""Characters of each."""

LARGE_PAIR = 100_000
"""Words of two texts together from which on they are large: describing them takes longer than reading them."""


class EvidenceBasis(NamedTuple):
    """The scheme, measure and limits that decide about pairs."""

    scheme: str
    measure: str
    """Label of the measure, with the sample of its weights if it has any: equal labels mean equal similarities."""
    min: float
    max: float


class JudgedPairs(NamedTuple):
    """Verified pairs of documents, each once. p pairs."""

    left: Positions
    """Rows of the corpus."""
    right: Positions
    value: Floats
    """Similarity by the deciding measure."""
    accepted: Flags
    verdict: NDArray[np.int8]
    """Numbers of `Verdicts`."""
    other_facts: Flags
    """Similar enough, but rejected because facts differ."""

    def only(self, numbers: Positions) -> JudgedPairs:
        """The pairs with these numbers."""
        left, right, value = self.left[numbers], self.right[numbers], self.value[numbers]
        decided = (self.accepted[numbers], self.verdict[numbers], self.other_facts[numbers])
        return JudgedPairs(left, right, value, *decided)


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


class EvidencePlan(NamedTuple):
    """The entries to write and to delete."""

    fresh: Positions
    """Numbers of the judged pairs without a valid entry."""
    decided_again: Positions
    """Numbers of the judged pairs whose entry is valid, but was decided by other limits, or has another verdict."""
    unchanged: int
    stale: list[str]
    """Ids of entries about a changed or deleted document, of another scheme, or of two documents that are no longer a
    member and the principal of its group, and are not kept apart by facts."""


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
        all(isinstance(one, str) and _HASH.fullmatch(one) for one in hashes)
        and all(isinstance(one, str) for one in names)
        and all(isinstance(one, int | float) and 0 <= one < 2 for one in numbers)  # a sum of weights may be above 1
        and source.get("verdict") in _VERDICTS
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
        np.array([_VERDICTS.index(one.get("verdict")) for one in sources], np.int8),
        np.array([one.get("decision") == "accepted" for one in sources], np.bool_),
        np.array([bool(one.get("facts")) for one in sources], np.bool_),
    )


def plan(
    stored: StoredEvidence,
    judged: JudgedPairs,
    corpus: FingerprintColumns,
    basis: EvidenceBasis,
    *,
    inside: Flags,
    changed_or_deleted: Flags,
    whole: bool,
) -> EvidencePlan:
    """Compare stored entries with judged pairs. ``inside``: the rows that the run has processed; all other entries
    about them are stale. ``changed_or_deleted``: bool of the rows. ``whole``: the corpus has all documents of the
    index, so entries about other documents are stale."""
    addresses = _address_hashes(corpus)
    rows = _places(addresses, stored.pairs.view(">u8").astype(np.uint64)).reshape(-1, 2)
    content = np.append(np.where(changed_or_deleted, b"", corpus.content).astype("S16"), b"")
    current = np.where(rows >= 0, content[rows], b"" if whole else stored.contents)
    valid = stored.current & (current == stored.contents).all(axis=1)
    usable = np.flatnonzero(valid & stored.same_measure)
    ids = _ids(addresses[judged.left], addresses[judged.right])
    place = _places(stored.pairs[usable], ids)
    known = place >= 0
    known[known] = stored.other_facts[usable[place[known]]] == judged.other_facts[known]
    same = known.copy()
    entry = usable[place[known]]
    same[known] = (stored.limits[entry] == (basis.min, basis.max)).all(axis=1)
    same[known] &= stored.verdict[entry] == judged.verdict[known]
    same[known] &= stored.accepted[entry] == judged.accepted[known]
    examined = np.append(inside, np.False_)[rows].any(axis=1)
    stale = (~valid | examined) & ~np.isin(stored.pairs, ids)
    return EvidencePlan(
        fresh=np.flatnonzero(~known),
        decided_again=np.flatnonzero(known & ~same),
        unchanged=int(same.sum()),
        stale=[*_texts(stored.pairs[stale]), *stored.invalid],
    )


def _address_hashes(corpus: FingerprintColumns) -> U64:
    """A hash of the address of each row. (Documents with equal hashes would share entries, which would be written again
    in each run, since their contents differ.)"""
    addresses = ("\0".join(reference[:2]).encode("utf-8", "surrogatepass") for reference in corpus.references)
    return np.fromiter(map(xxhash.xxh3_64_intdigest, addresses), np.uint64, len(corpus))


def _ids(left: U64, right: U64) -> Bytes:
    """The id of each pair as bytes, the lower hash first; S16[p]."""
    both = np.stack([np.minimum(left, right), np.maximum(left, right)], axis=1)
    return both.astype(">u8").view("S16").reshape(-1)


def _texts(ids: Bytes) -> list[str]:
    """Ids as stored: 32 hexadecimal digits."""
    digits = ids.tobytes().hex()
    return [digits[start : start + 32] for start in range(0, len(digits), 32)]


def _places(known: NDArray[Any], values: NDArray[Any]) -> Positions:
    """The place of each value in ``known``, -1 if it is not there."""
    if not len(known):
        return np.full(len(values), -1, np.intp)
    order = np.argsort(known, kind="stable")
    place = order[np.minimum(np.searchsorted(known, values, sorter=order), len(known) - 1)]
    return np.where(known[place] == values, place, -1)


def entries(
    index: str,
    corpus: FingerprintColumns,
    judged: JudgedPairs,
    basis: EvidenceBasis,
    *,
    read: Reader,
    scheme: Scheme,
    at: str,
    progress: Progress = silent,
) -> Iterator[Action]:
    """The new entries of judged pairs, described by their current texts.

    ``read`` returns (row, text) of rows, without documents that have changed since they were fingerprinted: their pairs
    are left out.
    """
    addresses = _address_hashes(corpus)
    described = _described(corpus, judged, read, scheme, _PairProgress(progress, corpus, judged))
    for k, description, facts in described:
        sides = sorted((int(judged.left[k]), int(judged.right[k])), key=lambda row: int(addresses[row]))
        (id,) = _texts(_ids(addresses[sides[:1]], addresses[sides[1:]]))
        decision = _decision(bool(judged.accepted[k]), basis, at) | {"measure": basis.measure, "scheme": basis.scheme}
        body = {
            **_documents(corpus, sides),
            **decision,
            "value": float(judged.value[k]),
            **asdict(description),
            "relation": description.relation.value,
            **({"verdict": _VERDICTS[judged.verdict[k]]} if judged.verdict[k] else {}),
            **({"facts": _facts(facts, exchanged=sides[0] != judged.left[k])} if judged.other_facts[k] else {}),
        }
        yield Action(op="index", index=index, id=id, body=body)


def _described(
    corpus: FingerprintColumns, judged: JudgedPairs, read: Reader, scheme: Scheme, progress: _PairProgress
) -> Iterator[tuple[int, PairDescription, Sequence[Fact]]]:
    """Descriptions of pairs by their numbers, with the facts that differ if these decided. In clusters, so that each
    text is read once. Of a cluster that is larger than a batch, two parts are in memory at a time."""

    def parts(rows: Positions) -> dict[int, ComparedText]:
        texts = dict(read(rows))
        compared = compared_texts(list(texts.values()), scheme.shingle, scheme.unit)
        return dict(zip(texts, compared, strict=True))

    for portion in portions(judged.left, judged.right, corpus.tokens, _BATCH_TOKENS):
        tokens = corpus.tokens[portion.nodes].astype(np.int64)
        several = int(tokens.sum()) > _BATCH_TOKENS
        part = 2 * np.cumsum(tokens) // _BATCH_TOKENS * several
        held: dict[int, dict[int, ComparedText]] = {}
        for both, numbers in _by_parts(portion, judged, part):
            held = {number: texts for number, texts in held.items() if number in both}
            held |= {number: parts(portion.nodes[part == number]) for number in both if number not in held}
            texts = {row: text for number in both for row, text in held[number].items()}
            for k in numbers.tolist():
                one, other = texts.get(int(judged.left[k])), texts.get(int(judged.right[k]))
                if one and other:
                    facts = differing_facts(one.fact_tokens, other.fact_tokens) if judged.other_facts[k] else []
                    yield k, describe_pair(one, other, scheme.unit.passage(scheme.shingle)), facts
                progress.add(k)


def _facts(facts: Sequence[Fact], *, exchanged: bool) -> list[dict[str, Any]]:
    """The first facts that differ, as stored. ``exchanged``: the sides of the entry are those of the facts,
    exchanged."""
    found = []
    for fact in facts[:_FACTS]:
        words = [one[:_FACT_CHARACTERS] for one in (fact.words_a, fact.words_b)]
        a, b = reversed(words) if exchanged else words
        found.append({"kinds": [kind.value for kind in fact.kinds], "a": a, "b": b})
    return found


def _by_parts(portion: Portion, judged: JudgedPairs, part: Ints) -> Iterator[tuple[set[int], Positions]]:
    """The numbers of the pairs by the parts of their two texts. ``part``: of each node of the portion."""
    numbers = np.concatenate(list(portion.pairs()))
    sides = [part[np.searchsorted(portion.nodes, side[numbers])] for side in (judged.left, judged.right)]
    low, high = np.minimum(*sides), np.maximum(*sides)
    order = np.lexsort((high, low))
    changes = np.flatnonzero((np.diff(low[order]) != 0) | (np.diff(high[order]) != 0)) + 1
    for some in np.split(order, changes):
        yield {int(low[some[0]]), int(high[some[0]])}, numbers[some]


def _words(corpus: FingerprintColumns, judged: JudgedPairs) -> Ints:
    """The words of the two texts of each pair together."""
    return corpus.tokens[judged.left].astype(np.int64) + corpus.tokens[judged.right]


class _PairProgress:
    """Reports described pairs, and the words of their texts if some are large: one pair of large texts takes as long as
    thousands of others."""

    def __init__(self, progress: Progress, corpus: FingerprintColumns, judged: JudgedPairs) -> None:
        self._progress = progress
        self._words = _words(corpus, judged)
        large = int((self._words > LARGE_PAIR).sum())
        self._stage = f"words of {counted(large, 'pair')} of large texts, and of the others"
        self._totals = len(self._words), int(self._words.sum())
        self._some_are_large = large > 0
        self._pairs = self._done = self._reported = 0
        self._report()

    def add(self, number: int) -> None:
        """Count a pair."""
        self._pairs += 1
        self._done += int(self._words[number])
        if self._done - self._reported > LARGE_PAIR or self._pairs % 100 == 0 or self._pairs == self._totals[0]:
            self._report()

    def _report(self) -> None:
        self._reported = self._done
        self._progress("describing pairs", self._pairs, self._totals[0])
        if self._some_are_large:
            self._progress(self._stage, self._done, self._totals[1])


def _documents(corpus: FingerprintColumns, sides: Sequence[int]) -> dict[str, Any]:
    (index_a, id_a, _), (index_b, id_b, _) = (corpus.references[row] for row in sides)
    content_a, content_b = (hash_text(corpus.content[row]) for row in sides)
    return {
        "a": {"index": index_a, "id": id_a},
        "b": {"index": index_b, "id": id_b},
        "content_a": content_a,
        "content_b": content_b,
    }


def decisions(
    index: str, corpus: FingerprintColumns, judged: JudgedPairs, basis: EvidenceBasis, at: str
) -> Iterator[Action]:
    """Updates of valid entries that were decided by other limits, or have another verdict."""
    addresses = _address_hashes(corpus)
    ids = _texts(_ids(addresses[judged.left], addresses[judged.right]))
    for id, accepted, verdict in zip(ids, judged.accepted.tolist(), judged.verdict.tolist(), strict=True):
        doc = _decision(accepted, basis, at) | {"verdict": _VERDICTS[verdict]}
        yield Action(op="update", index=index, id=id, body={"doc": doc})


def _decision(accepted: bool, basis: EvidenceBasis, at: str) -> dict[str, Any]:
    return {"decision": "accepted" if accepted else "rejected", "min": basis.min, "max": basis.max, "at": at}


class Evidence:
    """The evidence of an index, as far as it was read, and the basis of this run's decisions."""

    def __init__(self, index: Index, basis: EvidenceBasis) -> None:
        self._index = index
        self._store = HiddenStore(index, HiddenIndex.PAIRS)
        self.basis = basis
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
        self._all = _read(self._index, self.basis, progress)

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


@dataclass(frozen=True)
class EvidenceReport:
    """``pairs = accepted + rejected``, and ``pairs = written + decided_again + unchanged + left_out + refused``."""

    index: str
    """Hidden index with the evidence."""
    pairs: int
    """Pairs of this run: each text of a group with its principal, each exact copy with the first document of its
    class, and texts that only facts keep apart."""
    accepted: int
    rejected: int
    """Pairs that do not match: other texts, or decisions of reviewers, hold them together, or facts keep them
    apart."""
    written: int
    without_edit: int
    """Of these, pairs too long for the edit similarity; they are not classified as revisions."""
    without_passages: int
    """Of these, pairs that also repeat too much for common passages: they have no jaccard and no containment, and are
    not classified as contained."""
    large: int
    """Pairs without a valid entry, before this run, of texts that have more than 100,000 words together: describing one
    can take a second."""
    decided_again: int
    """Pairs whose entry only got a new decision."""
    unchanged: int
    left_out: int
    """Pairs with a document that was changed or deleted while evidence was written."""
    removed: int
    """Deleted entries: about a changed or deleted document, of another scheme, or of two documents that are no longer a
    member and the principal of its group, and are not kept apart by facts."""
    refused: int
    refusals: tuple[str, ...]


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
    measure = _measure(criterion.measure.label, criterion.weights)
    return Evidence(index, EvidenceBasis(index.scheme_id, measure, criterion.min, criterion.max))


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


_ABOUT = 1000
"""Entries read by `evidence_with`: there is one for two contents, unless documents were grouped one by one."""

_PAIR_EVIDENCE: StoredJson[PairEvidence] = StoredJson(PairEvidence)


def _measure(label: str, weights: WeightsUsed | None) -> str:
    """Label of a measure in evidence, with the sample of its weights: other weights are another measure."""
    return (
        label if weights is None else f"{label}, weights of {counted(weights.documents, 'document')} taken {weights.at}"
    )


def write_evidence(
    index: Index,
    criterion: MatchCriterion,
    evidence: Evidence,
    verified: Verified,
    principal: Numbers,
    *,
    verdicts: Verdicts | None = None,
    whole: bool = True,
    workers: int = 2,
    batch: int = 500,
    progress: Progress = silent,
) -> EvidenceReport:
    """Store the pairs of the texts of each group and its principal, and those that facts keep apart, and delete entries
    that are no longer valid. A second run without changes writes nothing.

    ``evidence`` must have all entries about documents inside. Call this after all pairs were compared and after
    `Verifier.confirmed`, when changed and deleted texts are known. ``principal``: that of each class, itself if it is
    alone. ``verdicts``: of reviewers; None: they are ignored.
    ``whole``: whether the corpus has all documents of the index; if not, entries about other documents stay. Creates
    the hidden index if it does not exist.
    """
    store = HiddenStore(index, HiddenIndex.PAIRS)
    store.create()
    corpus, verifier, basis = verified.corpus, verified.verifier, evidence.basis
    judged, at = _judged(verified, principal, criterion, verdicts), timestamp()
    todo = plan(
        evidence.stored,
        judged,
        corpus,
        basis,
        inside=verified.inside,
        changed_or_deleted=verifier.documents.changed_or_deleted,
        whole=whole,
    )
    fresh = judged.only(todo.fresh)
    described = _Counted(
        entries(
            store.name,
            corpus,
            fresh,
            basis,
            read=CurrentDocuments.of_corpus(index.client, index.settings, corpus).texts,
            scheme=index.settings.scheme,
            at=at,
            progress=progress,
        )
    )
    send = partial(_send, store.client, batch=batch, workers=workers)
    written = send(described)
    decided_again = send(decisions(store.name, corpus, judged.only(todo.decided_again), basis, at))
    removed = send(Action(op="delete", index=store.name, id=id, body={}) for id in todo.stale)
    store.refresh()
    return EvidenceReport(
        index=store.name,
        pairs=len(judged.left),
        accepted=int(judged.accepted.sum()),
        rejected=int((~judged.accepted).sum()),
        written=written.counts["written"],
        without_edit=described.without_edit,
        without_passages=described.without_passages,
        large=int((_words(corpus, fresh) > LARGE_PAIR).sum()),
        decided_again=decided_again.counts["written"],
        unchanged=todo.unchanged,
        left_out=len(todo.fresh) - described.number + decided_again.counts["deleted"],
        removed=removed.counts["written"] + removed.counts["deleted"],  # deleted: the answer may have been lost
        refused=sum(sent.counts["refused"] for sent in (written, decided_again, removed)),
        refusals=written.refusals or decided_again.refusals or removed.refusals,
    )


def _send(client: Client, actions: Iterable[Action], *, batch: int, workers: int) -> BulkCounts:
    sent = BulkCounts()
    for outcome in write(client, actions, batch=batch, workers=workers):
        sent.add(outcome)
    return sent


class _Counted:
    """Counts entries while they are iterated."""

    def __init__(self, actions: Iterable[Action]) -> None:
        self._actions = actions
        self.number = 0
        self.without_edit = 0
        self.without_passages = 0

    def __iter__(self) -> Iterator[Action]:
        for action in self._actions:
            self.number += 1
            self.without_edit += action.body["edit"] is None
            self.without_passages += action.body["jaccard"] is None
            yield action


def _judged(
    verified: Verified, principal: Numbers, criterion: MatchCriterion, verdicts: Verdicts | None
) -> JudgedPairs:
    """Pairs of documents: the first of each class and of its principal's, or of a class that only facts keep apart; and
    each copy with the first of its class."""
    content = verified.corpus.content
    changed_or_deleted = verified.verifier.documents.changed_or_deleted
    classes = verified.classes
    first = verified.verifier.first_rows(np.arange(len(classes)))
    *pairs, similarity = verified.verifier.answered()
    differ = _are_among(verified, *pairs)
    chosen = (principal[pairs[0]] == pairs[1]) | (principal[pairs[1]] == pairs[0]) | differ
    pairs, similarity, differ = [side[chosen] for side in pairs], similarity[chosen], differ[chosen]
    left, right = (first[side] for side in pairs)
    exist = (left >= 0) & (right >= 0)
    of_row = first[classes.numbers]
    copy = ~changed_or_deleted[classes.rows] & (of_row != classes.rows)
    value = np.concatenate([similarity[exist], np.ones(int(copy.sum()))])
    differ = np.concatenate([differ[exist], np.zeros(int(copy.sum()), np.bool_)])
    left = np.concatenate([left[exist], of_row[copy]])
    right = np.concatenate([right[exist], classes.rows[copy]])
    verdict = _verdicts(verdicts, content[left], content[right])
    return JudgedPairs(left, right, value, criterion.matches(value) & ~differ, verdict, differ)


def _are_among(verified: Verified, left: Positions, right: Positions) -> Flags:
    """Whether pairs of classes are candidates that were rejected because facts differ."""
    if verified.other_facts is None:
        return np.zeros(len(left), np.bool_)
    size, candidates = len(verified.classes), verified.candidates
    rejected = candidates.left[verified.other_facts].astype(np.intp) * size + candidates.right[verified.other_facts]
    return np.isin(left * size + right, rejected)


def _verdicts(verdicts: Verdicts | None, left: Bytes, right: Bytes) -> NDArray[np.int8]:
    return np.zeros(len(left), np.int8) if verdicts is None else verdicts(left, right)
