"""Evidence: every verified pair, accepted or rejected, in a hidden index beside the user's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from es_neardupe.errors import SettingsError
from es_neardupe.index import queries
from es_neardupe.index.hidden_indices import Companion, companion_name, ensure, exists
from es_neardupe.index.index import Index
from es_neardupe.index.stored_fields import timestamp
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.records import Action, Address, Corpus, Hit
from es_neardupe.server.bulk import Tally, chunked, write
from es_neardupe.server.client import Client
from es_neardupe.server.search import count, refresh, refresh_if_allowed
from es_neardupe.verification.criterion import MatchCriterion, WeightsUsed
from es_neardupe.verification.evidence_entries import READ, Basis, Judged, Kept, decisions, entries, plan, read_kept
from es_neardupe.verification.known_pairs import PairMemory
from es_neardupe.verification.read_texts import Texts
from es_neardupe.verification.verified_pairs import Verified

__all__ = [
    "Evidence",
    "EvidenceReport",
    "evidence_of",
    "load_evidence",
    "measure_kept",
    "read_evidence",
    "write_evidence",
]

_PAGE = 5000


class Evidence:
    """What is kept in an index, as far as it was read, and by what the pairs of this run are judged."""

    def __init__(self, index: Index, basis: Basis) -> None:
        self._index = index
        self.basis = basis
        self.memory = PairMemory()
        """For `verified_pairs`: pairs that need not be verified again."""
        self._all: Kept | None = None
        self._some: dict[str, Hit] = {}
        self._asked: set[Address] = set()

    @property
    def kept(self) -> Kept:
        """What was read."""
        if self._all is not None:
            return self._all
        return read_kept([list(self._some.values())], self.basis.scheme, self.basis.measure)

    def read_all(self, progress: Progress = silent) -> None:
        """Read every entry."""
        self._all = read_evidence(self._index, self.basis.measure, self.memory, progress)

    def read_about(self, corpus: Corpus, rows: NDArray[np.bool_]) -> None:
        """Read the entries about some documents (bool of the rows), and those about the contents that they bear. What
        was asked for before is not asked again."""
        name = companion_name(self._index.target, Companion.PAIRS)
        new = [row for row in np.flatnonzero(rows).tolist() if corpus.references[row][:2] not in self._asked]
        if not new or not exists(self._index.client, name):
            return
        refresh(self._index.client, name)
        self._asked.update(corpus.references[row][:2] for row in new)
        for chunk in chunked(new, queries.MOST_TERMS):
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
    """Pairs that were known from evidence, so that nobody compared them again."""
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
            f"said of two texts cannot be kept. Run `group` without --evidence, or choose another measure."
        )
    return Evidence(
        index, Basis(index.scheme_id, measure_kept(wanted.measure.label, wanted.weights), wanted.min, wanted.max)
    )


def load_evidence(index: Index, wanted: MatchCriterion, progress: Progress = silent) -> Evidence:
    """`evidence_of` an index, all of it read."""
    found = evidence_of(index, wanted)
    found.read_all(progress)
    return found


def read_evidence(index: Index, measure: str, memory: PairMemory | None = None, progress: Progress = silent) -> Kept:
    """All entries, with the values of one measure; none where there is no such index."""
    name = companion_name(index.target, Companion.PAIRS)
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
    name = ensure(index, Companion.PAIRS)
    corpus, verifier, basis = found.corpus, found.verifier, evidence.basis
    judged, at = _judged(found, wanted), timestamp()
    todo = plan(evidence.kept, judged, corpus, basis, away=verifier.away, whole=whole)
    described = _Counted(
        entries(
            name,
            corpus,
            _only(judged, todo.fresh),
            basis,
            read=Texts(index.client, index.settings, corpus).read,
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


def _send(client: Client, actions: Iterable[Action], *, batch: int, workers: int) -> Tally:
    tally = Tally()
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


def _judged(found: Verified, wanted: MatchCriterion) -> Judged:
    """The verified pairs as pairs of documents: one of each class, and each copy with the first of its class."""
    present = [[row for row in rows.tolist() if row not in found.verifier.away] for rows in found.classes.members]
    first = np.array([rows[0] if rows else -1 for rows in present], np.intp)
    *pairs, similarity = found.verifier.answered()
    left, right = (first[side] for side in pairs)
    there = (left >= 0) & (right >= 0)
    copies = np.array([(rows[0], row) for rows in present for row in rows[1:]], np.intp).reshape(-1, 2)
    value = np.concatenate([similarity[there], np.ones(len(copies))])
    return Judged(
        np.concatenate([left[there], copies[:, 0]]),
        np.concatenate([right[there], copies[:, 1]]),
        value,
        wanted.fits(value),
    )


def _only(judged: Judged, numbers: NDArray[np.intp]) -> Judged:
    return Judged(judged.left[numbers], judged.right[numbers], judged.value[numbers], judged.accepted[numbers])
