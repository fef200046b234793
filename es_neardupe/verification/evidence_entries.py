"""Entries of evidence that a run writes: what it has judged, described by the current texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from es_neardupe.candidates.pair_arrays import Portion, portions
from es_neardupe.index.hidden_indices import HiddenIndex, HiddenStore
from es_neardupe.index.stored_fields import timestamp
from es_neardupe.keys.arrays import U64, Bytes, Flags, Floats, Ints, Numbers, Positions
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.text import hash_text
from es_neardupe.progress import Progress, silent
from es_neardupe.records import Action, FingerprintColumns
from es_neardupe.server.bulk import BulkCounts, write
from es_neardupe.server.client import Client
from es_neardupe.similarity.facts.differing import Fact, differing_facts
from es_neardupe.similarity.pair_relation import ComparedText, PairDescription, compared_texts, describe_pair
from es_neardupe.verification.criterion import MatchCriterion
from es_neardupe.verification.current_texts import CurrentDocuments
from es_neardupe.verification.evidence import VERDICTS, Evidence, EvidenceBasis, StoredEvidence
from es_neardupe.verification.verify import Verified
from es_neardupe.wording import counted

Reader = Callable[[Positions], Iterable[tuple[int, str]]]

Verdicts = Callable[[Bytes, Bytes], NDArray[np.int8]]
"""What reviewers have decided about pairs of contents, both S16[p]: 0 nothing, 1 *same*, 2 *different*; int8[p]."""

_BATCH_TOKENS = 5_000_000
"""Maximum tokens of the texts in memory, unless a single text has more."""

_FACTS = 10
"""Facts of a pair that are stored."""

_FACT_CHARACTERS = 200
"""Characters of each."""

LARGE_PAIR = 100_000
"""Words of two texts together from which on they are large: describing them takes longer than reading them."""


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
            **({"verdict": VERDICTS[judged.verdict[k]]} if judged.verdict[k] else {}),
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
        doc = _decision(accepted, basis, at) | {"verdict": VERDICTS[verdict]}
        yield Action(op="update", index=index, id=id, body={"doc": doc})


def _decision(accepted: bool, basis: EvidenceBasis, at: str) -> dict[str, Any]:
    return {"decision": "accepted" if accepted else "rejected", "min": basis.min, "max": basis.max, "at": at}


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


def write_evidence(
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
    index, basis = evidence.index, evidence.basis
    store = HiddenStore(index, HiddenIndex.PAIRS)
    store.create()
    corpus, verifier = verified.corpus, verified.verifier
    judged, at = _judged(verified, principal, evidence.criterion, verdicts), timestamp()
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
