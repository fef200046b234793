"""Evidence: every verified pair, accepted or rejected, one entry each, in a hidden index next to the user's.

The id of an entry is made of the addresses of the two documents, so that a pair has one however often it is verified.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from es_neardupe.candidates.pair_arrays import portions
from es_neardupe.errors import SettingsError
from es_neardupe.index import queries
from es_neardupe.index.hidden_indices import HiddenIndex, ensure, exists, hidden_index_name
from es_neardupe.index.index import Index
from es_neardupe.index.stored_fields import timestamp
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.records import Action, Address, FingerprintColumns, Hit
from es_neardupe.server.bulk import BulkCounts, chunked, write
from es_neardupe.server.client import Client
from es_neardupe.server.search import count, refresh, refresh_if_allowed
from es_neardupe.similarity.pair_relation import ComparedText, PairDescription, compared_texts, describe_pair
from es_neardupe.verification.criterion import MatchCriterion, WeightsUsed
from es_neardupe.verification.current_texts import CurrentDocuments
from es_neardupe.verification.verify import PairMemory, Verified, packed

__all__ = [
    "READ",
    "Evidence",
    "EvidenceBasis",
    "EvidencePlan",
    "EvidenceReport",
    "JudgedPairs",
    "StoredEvidence",
    "decisions",
    "entries",
    "evidence_of",
    "load_evidence",
    "measure_kept",
    "plan",
    "read_evidence",
    "read_kept",
    "standing",
    "write_evidence",
]

Ints = NDArray[np.intp]
Bytes = NDArray[np.bytes_]
Reader = Callable[[Ints], Iterable[tuple[int, str]]]

READ = ["content_a", "content_b", "scheme", "measure", "value", "min", "max"]
"""The parts of an entry that `read_kept` needs."""

_HASH = re.compile("[0-9a-f]{32}")
_PAGE = 5000

_BATCH_TOKENS = 5_000_000
"""Tokens of the texts held at a time, unless one cluster of pairs alone has more."""


class EvidenceBasis(NamedTuple):
    """By what pairs are judged."""

    scheme: str
    measure: str
    """In words, with the sample of its weights if it has any: equal words mean equal numbers."""
    min: float
    max: float


class JudgedPairs(NamedTuple):
    """Verified pairs of documents, each once. p pairs."""

    left: Ints
    """Rows of the corpus."""
    right: Ints
    value: NDArray[np.float64]
    """What the deciding measure says."""
    accepted: NDArray[np.bool_]


@dataclass(frozen=True)
class StoredEvidence:
    """The evidence as it was stored. e entries."""

    memory: PairMemory
    """Values of this scheme and measure."""
    pairs: Bytes
    """The ids as bytes: two numbers of addresses, S16[e]."""
    contents: NDArray[np.bytes_]
    """Content hashes of both sides as bytes, S16[e, 2]."""
    current: NDArray[np.bool_]
    """Whether an entry is of this scheme, bool[e]."""
    mine: NDArray[np.bool_]
    """Whether it is of this measure too, bool[e]."""
    limits: NDArray[np.float64]
    """Least and greatest value that was accepted, float64[e, 2]."""
    broken: tuple[str, ...]
    """Ids of entries that our code cannot have written."""

    def __len__(self) -> int:
        return len(self.pairs) + len(self.broken)


class EvidencePlan(NamedTuple):
    """What has to be written."""

    fresh: Ints
    """Numbers of judged pairs without an entry that holds."""
    judged_anew: Ints
    """Those whose entry holds, but was judged by other limits."""
    unchanged: int
    stale: list[str]
    """Ids of entries about a document that changed or went, and of those of another scheme."""


def read_kept(
    pages: Iterable[Sequence[Hit]], scheme: str, measure: str, memory: PairMemory | None = None
) -> StoredEvidence:
    """Take the pages of entries apart into columns, and add their values to a memory (default: a new one)."""
    broken: list[str] = []
    memory = PairMemory() if memory is None else memory
    columns: list[tuple[NDArray[Any], ...]] = [_columns([], scheme, measure)[1:]]
    for page in pages:
        fine = [hit for hit in page if _readable(hit)]
        broken += [hit.id for hit in page if not _readable(hit)]
        hashes, *part = _columns(fine, scheme, measure)
        values = np.array([hit.source["value"] for hit in fine], np.float64)
        mine = part[3]
        memory.add(hashes[mine, 0], hashes[mine, 1], values[mine])
        columns.append(tuple(part))
    pairs, contents, current, mine, limits = (np.concatenate(column) for column in zip(*columns, strict=True))
    return StoredEvidence(memory, pairs, contents, current, mine, limits, tuple(broken))


def _readable(hit: Hit) -> bool:
    source = hit.source
    hashes = hit.id, source.get("content_a"), source.get("content_b")
    words = source.get("scheme"), source.get("measure")
    numbers = [source.get(name) for name in ("value", "min", "max")]
    return (
        all(isinstance(one, str) and _HASH.fullmatch(one) for one in hashes)
        and all(isinstance(one, str) for one in words)
        and all(isinstance(one, int | float) and 0 <= one < 2 for one in numbers)  # a sum of weights may be above 1
    )


def _columns(hits: Sequence[Hit], scheme: str, measure: str) -> tuple[NDArray[Any], ...]:
    """Content hashes as they are, then the columns of `StoredEvidence`."""
    sources = [hit.source for hit in hits]
    hashes = np.array([[one["content_a"], one["content_b"]] for one in sources], "S32").reshape(-1, 2)
    current = np.array([one["scheme"] == scheme for one in sources], np.bool_)
    return (
        hashes,
        packed(np.array([hit.id for hit in hits], "S32")),
        packed(hashes.reshape(-1)).reshape(-1, 2),
        current,
        current & np.array([one["measure"] == measure for one in sources], np.bool_),
        np.array([[one["min"], one["max"]] for one in sources], np.float64).reshape(-1, 2),
    )


def plan(
    kept: StoredEvidence,
    judged: JudgedPairs,
    corpus: FingerprintColumns,
    basis: EvidenceBasis,
    *,
    changed_or_deleted: NDArray[np.bool_],
    whole: bool,
) -> EvidencePlan:
    """Compare what is kept with what was judged. ``changed_or_deleted``: bool of the rows; ``whole``: the corpus
    holds all documents of the index, so what is not in it was deleted."""
    numbers = _numbers(corpus)
    stale = ~standing(kept, corpus, changed_or_deleted=changed_or_deleted, whole=whole)
    live = np.flatnonzero(~stale & kept.mine)
    ids = _ids(numbers[judged.left], numbers[judged.right])
    place = _places(kept.pairs[live], ids)
    known = place >= 0
    same = known.copy()
    same[known] = (kept.limits[live[place[known]]] == (basis.min, basis.max)).all(axis=1)
    fresh = np.flatnonzero(~known)
    removed = kept.pairs[stale]
    return EvidencePlan(
        fresh=fresh,
        judged_anew=np.flatnonzero(known & ~same),
        unchanged=int(same.sum()),
        stale=[*_texts(removed[~np.isin(removed, ids[fresh])]), *kept.broken],
    )


def standing(
    kept: StoredEvidence,
    corpus: FingerprintColumns,
    *,
    changed_or_deleted: NDArray[np.bool_] | None = None,
    whole: bool = True,
) -> NDArray[np.bool_]:
    """Which entries are of this scheme and about contents that both documents still bear, as far as that is known;
    bool[e]. ``changed_or_deleted`` and ``whole`` as for `plan`."""
    content = packed(corpus.content)
    if changed_or_deleted is not None:
        content[changed_or_deleted] = b""
    rows = _places(_numbers(corpus), kept.pairs.view(">u8").astype(np.uint64)).reshape(-1, 2)
    borne = np.where(rows >= 0, np.append(content, b"")[rows], b"" if whole else kept.contents)
    found: NDArray[np.bool_] = kept.current & (borne == kept.contents).all(axis=1)
    return found


def _numbers(corpus: FingerprintColumns) -> NDArray[np.uint64]:
    """A number for the address of each row. (Two with the same one would share entries, which are then written
    anew each time, as their contents differ.)"""
    addresses = ("\0".join(reference[:2]).encode("utf-8", "surrogatepass") for reference in corpus.references)
    return np.fromiter(map(xxhash.xxh3_64_intdigest, addresses), np.uint64, len(corpus))


def _ids(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> Bytes:
    """The id of each pair as bytes, the side with the lesser number first; S16[p]."""
    both = np.stack([np.minimum(left, right), np.maximum(left, right)], axis=1)
    return both.astype(">u8").view("S16").reshape(-1)


def _texts(ids: Bytes) -> list[str]:
    """Ids as they are stored: 32 hexadecimal digits."""
    digits = ids.tobytes().hex()
    return [digits[start : start + 32] for start in range(0, len(digits), 32)]


def _places(known: NDArray[Any], wanted: NDArray[Any]) -> Ints:
    """Where each of the wanted stands in ``known``, -1 for those that do not."""
    if not len(known):
        return np.full(len(wanted), -1, np.intp)
    order = np.argsort(known, kind="stable")
    place = order[np.minimum(np.searchsorted(known, wanted, sorter=order), len(known) - 1)]
    return np.where(known[place] == wanted, place, -1)


def entries(
    index: str,
    corpus: FingerprintColumns,
    judged: JudgedPairs,
    basis: EvidenceBasis,
    *,
    read: Reader,
    shingle: int,
    at: str,
    progress: Progress = silent,
) -> Iterator[Action]:
    """What to write of pairs, described by their present texts. ``read`` gives (row, text) of rows, without those
    that are no longer as they were fingerprinted: their pairs are left out."""
    numbers = _numbers(corpus)
    made = _described(corpus, judged, read, shingle)
    for k, found in tracked(made, progress, "describing pairs", len(judged.left)):
        sides = sorted((int(judged.left[k]), int(judged.right[k])), key=lambda row: int(numbers[row]))
        (id,) = _texts(_ids(numbers[sides[:1]], numbers[sides[1:]]))
        verdict = _decision(bool(judged.accepted[k]), basis, at) | {"measure": basis.measure, "scheme": basis.scheme}
        body = {**_addresses(corpus, sides), **verdict, "value": float(judged.value[k]), **_measures(found)}
        yield Action(op="index", index=index, id=id, body=body)


def _described(
    corpus: FingerprintColumns, judged: JudgedPairs, read: Reader, shingle: int
) -> Iterator[tuple[int, PairDescription]]:
    """Pairs in clusters, so that each text is read once however many pairs it is in."""
    for portion in portions(judged.left, judged.right, corpus.tokens, _BATCH_TOKENS):
        rows = np.unique([judged.left[portion], judged.right[portion]])
        texts = dict(read(rows))
        words: dict[int, ComparedText] = dict(zip(texts, compared_texts(list(texts.values()), shingle), strict=True))
        for k in portion.tolist():
            one, other = words.get(int(judged.left[k])), words.get(int(judged.right[k]))
            if one and other:
                yield k, describe_pair(one, other, shingle)


def _addresses(corpus: FingerprintColumns, sides: Sequence[int]) -> dict[str, Any]:
    (index_a, id_a, _), (index_b, id_b, _) = (corpus.references[row] for row in sides)
    content_a, content_b = (corpus.content[row].decode() for row in sides)
    return {
        "a": {"index": index_a, "id": id_a},
        "b": {"index": index_b, "id": id_b},
        "content_a": content_a,
        "content_b": content_b,
    }


def _measures(found: PairDescription) -> dict[str, Any]:
    return {**asdict(found), "relation": found.relation.value}


def decisions(
    index: str, corpus: FingerprintColumns, judged: JudgedPairs, basis: EvidenceBasis, at: str
) -> Iterator[Action]:
    """The updates of entries that hold but for their limits."""
    numbers = _numbers(corpus)
    ids = _texts(_ids(numbers[judged.left], numbers[judged.right]))
    for id, accepted in zip(ids, judged.accepted.tolist(), strict=True):
        yield Action(op="update", index=index, id=id, body={"doc": _decision(accepted, basis, at)})


def _decision(accepted: bool, basis: EvidenceBasis, at: str) -> dict[str, Any]:
    return {"decision": "accepted" if accepted else "rejected", "min": basis.min, "max": basis.max, "at": at}


class Evidence:
    """What is kept in an index, as far as it was read, and by what the pairs of this run are judged."""

    def __init__(self, index: Index, basis: EvidenceBasis) -> None:
        self._index = index
        self.basis = basis
        self.memory = PairMemory()
        """For `verified_pairs`: pairs that need not be verified again."""
        self._all: StoredEvidence | None = None
        self._some: dict[str, Hit] = {}
        self._asked: set[Address] = set()

    @property
    def kept(self) -> StoredEvidence:
        """What was read."""
        if self._all is not None:
            return self._all
        return read_kept([list(self._some.values())], self.basis.scheme, self.basis.measure)

    def read_all(self, progress: Progress = silent) -> None:
        """Read every entry."""
        self._all = read_evidence(self._index, self.basis.measure, self.memory, progress)

    def read_about(self, corpus: FingerprintColumns, rows: NDArray[np.bool_]) -> None:
        """Read the entries about some documents (bool of the rows), and those about the contents that they bear. What
        was asked for before is not asked again."""
        name = hidden_index_name(self._index.target, HiddenIndex.PAIRS)
        new = [row for row in np.flatnonzero(rows).tolist() if corpus.references[row][:2] not in self._asked]
        if not new or not exists(self._index.client, name):
            return
        refresh(self._index.client, name)
        self._asked.update(corpus.references[row][:2] for row in new)
        for chunk in chunked(new, queries.MAX_TERMS):
            ids = sorted({corpus.references[row][1] for row in chunk})
            hashes = sorted({corpus.content[row].decode() for row in chunk})
            terms = {"a.id": ids, "b.id": ids, "content_a": hashes, "content_b": hashes}
            query = {"bool": {"should": [{"terms": {field: values}} for field, values in terms.items()]}}
            for page in self._index.client.pages(name, {"query": query, "_source": READ}, page_size=_PAGE):
                more = [hit for hit in page if hit.id not in self._some]
                self._some.update((hit.id, hit) for hit in more)
                read_kept([more], self.basis.scheme, self.basis.measure, self.memory)


@dataclass(frozen=True)
class EvidenceReport:
    """``pairs = accepted + rejected``, and ``pairs = written + judged_anew + unchanged + left_out + refused``."""

    index: str
    """The hidden index that holds the evidence."""
    pairs: int
    """Pairs that this run asked for: candidates of different texts, pairs within groups, and each exact copy with the
    first of its kind."""
    accepted: int
    rejected: int
    compared: int
    """Pairs whose texts were compared in this run."""
    remembered: int
    """Pairs that were known from evidence, which were not compared again."""
    written: int
    without_edit: int
    """Of these, pairs too long for the edit similarity; they are taken for no revision."""
    judged_anew: int
    """Pairs whose entry only got this run's decision."""
    unchanged: int
    left_out: int
    """Pairs with a document that changed or went while evidence was written."""
    removed: int
    """Entries taken out: about a document that changed or went, or of another scheme."""
    refused: int
    refusals: tuple[str, ...]


def evidence_of(index: Index, wanted: MatchCriterion) -> Evidence:
    """The evidence of an index, of which nothing was read yet. Its memory takes the values of the index's scheme and
    of the wanted measure only.

    Raises `SettingsError` for a measure that looks at more than the words: equal content hashes do not tell then
    that it says the same again.
    """
    if not wanted.measure.copies_are_equal:
        raise SettingsError(
            f"Evidence is kept by the words of texts, and {wanted.measure.label} looks at more than these: what it "
            f"said of two texts cannot be kept. Run `group` without `evidence`, or choose another measure."
        )
    return Evidence(
        index,
        EvidenceBasis(index.scheme_id, measure_kept(wanted.measure.label, wanted.weights), wanted.min, wanted.max),
    )


def load_evidence(index: Index, wanted: MatchCriterion, progress: Progress = silent) -> Evidence:
    """`evidence_of` an index, all of it read."""
    found = evidence_of(index, wanted)
    found.read_all(progress)
    return found


def read_evidence(
    index: Index, measure: str, memory: PairMemory | None = None, progress: Progress = silent
) -> StoredEvidence:
    """All entries, with the values of one measure; none where there is no such index."""
    name = hidden_index_name(index.target, HiddenIndex.PAIRS)
    if not exists(index.client, name):
        return read_kept([], index.scheme_id, measure, memory)
    refresh_if_allowed(index.client, name)
    total = count(index.client, name)
    pages = index.client.pages(name, {"query": {"match_all": {}}, "_source": READ}, page_size=_PAGE)
    told = tracked(pages, lambda stage, done, _: progress(stage, done * _PAGE, total), "reading evidence", total, 1)
    return read_kept(told, index.scheme_id, measure, memory)


def measure_kept(label: str, weights: WeightsUsed | None) -> str:
    """The measure as evidence names it, with the sample of its weights: other weights are another measure."""
    return label if weights is None else f"{label}, weights of {weights.documents} documents taken {weights.at}"


def write_evidence(
    index: Index,
    wanted: MatchCriterion,
    evidence: Evidence,
    found: Verified,
    *,
    whole: bool = True,
    workers: int = 2,
    batch: int = 500,
    progress: Progress = silent,
) -> EvidenceReport:
    """Keep what was verified, and take out what no longer holds. A second run without changes writes nothing.

    ``evidence`` is that whose memory `verified_pairs` used, read as far as it is about documents of the corpus. To be
    called when all pairs were asked for, and after `Verifier.confirmed`, when it is known which texts are no longer
    there. ``whole``: whether the corpus holds all documents of the index; if not, entries about documents that are
    not in it stay. Makes the index if it is missing.
    """
    name = ensure(index, HiddenIndex.PAIRS)
    corpus, verifier, basis = found.corpus, found.verifier, evidence.basis
    judged, at = _judged(found, wanted), timestamp()
    todo = plan(
        evidence.kept, judged, corpus, basis, changed_or_deleted=verifier.documents.changed_or_deleted, whole=whole
    )
    described = _Counted(
        entries(
            name,
            corpus,
            _only(judged, todo.fresh),
            basis,
            read=CurrentDocuments.of_corpus(index.client, index.settings, corpus).texts,
            shingle=index.settings.shingle,
            at=at,
            progress=progress,
        )
    )
    send = partial(_send, index.client, batch=batch, workers=workers)
    written = send(described)
    anew = send(decisions(name, corpus, _only(judged, todo.judged_anew), basis, at))
    removed = send(Action(op="delete", index=name, id=id, body={}) for id in todo.stale)
    refresh(index.client, name)
    return EvidenceReport(
        index=name,
        pairs=len(judged.left),
        accepted=int(judged.accepted.sum()),
        rejected=int((~judged.accepted).sum()),
        compared=verifier.compared,
        remembered=verifier.remembered,
        written=written.counts["written"],
        without_edit=described.without_edit,
        judged_anew=anew.counts["written"],
        unchanged=todo.unchanged,
        left_out=len(todo.fresh) - described.number + anew.counts["deleted"],
        removed=removed.counts["written"] + removed.counts["deleted"],  # the answer to our deletion may have been lost
        refused=sum(tally.counts["refused"] for tally in (written, anew, removed)),
        refusals=written.refusals or anew.refusals or removed.refusals,
    )


def _send(client: Client, actions: Iterable[Action], *, batch: int, workers: int) -> BulkCounts:
    tally = BulkCounts()
    for outcome in write(client, actions, batch=batch, workers=workers):
        tally.add(outcome)
    return tally


class _Counted:
    """Passes entries on, and counts them."""

    def __init__(self, actions: Iterable[Action]) -> None:
        self._actions = actions
        self.number = 0
        self.without_edit = 0

    def __iter__(self) -> Iterator[Action]:
        for action in self._actions:
            self.number += 1
            self.without_edit += action.body["edit"] is None
            yield action


def _judged(found: Verified, wanted: MatchCriterion) -> JudgedPairs:
    """The verified pairs as pairs of documents: one of each class, and each copy with the first of its class."""
    changed_or_deleted = found.verifier.documents.changed_or_deleted
    present = [[row for row in rows.tolist() if not changed_or_deleted[row]] for rows in found.classes.members]
    first = np.array([rows[0] if rows else -1 for rows in present], np.intp)
    *pairs, similarity = found.verifier.answered()
    left, right = (first[side] for side in pairs)
    there = (left >= 0) & (right >= 0)
    copies = np.array([(rows[0], row) for rows in present for row in rows[1:]], np.intp).reshape(-1, 2)
    value = np.concatenate([similarity[there], np.ones(len(copies))])
    return JudgedPairs(
        np.concatenate([left[there], copies[:, 0]]),
        np.concatenate([right[there], copies[:, 1]]),
        value,
        wanted.matches(value),
    )


def _only(judged: JudgedPairs, numbers: NDArray[np.intp]) -> JudgedPairs:
    return JudgedPairs(judged.left[numbers], judged.right[numbers], judged.value[numbers], judged.accepted[numbers])
