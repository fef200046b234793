"""Decisions of reviewers about texts, in a hidden index.

A decision is stored between *contents* (hashes of the words), so exact copies inherit it, and it holds as long as the
texts are unchanged. It divides its texts into parts: two texts of a part are the same, two of different parts are
different. It is one record, and binds like all these pairs. Of several decisions of a reviewer about a pair, the last
one counts. A withdrawn decision stays, as history. If two reviewers disagree, the pair is open.

A decision between texts waits for `group` until a run has applied it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from enum import Enum
from itertools import combinations
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import xxhash
from numpy.typing import NDArray

from es_neardupe.errors import Conflict, RequestError, SettingsError
from es_neardupe.index.hidden_indices import HiddenIndex, HiddenStore, StoredDocument
from es_neardupe.index.index import Index
from es_neardupe.index.migration_state import replaced_prefix
from es_neardupe.index.queries import MAX_TERMS, all_of
from es_neardupe.index.stored_fields import is_hash
from es_neardupe.keys.arrays import Bytes, Flags
from es_neardupe.keys.text import hash_text, packed_hashes
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.records import Action, Address, one_line
from es_neardupe.server.bulk import chunked
from es_neardupe.stored_json import StoredJson

CLAIM_MINUTES = 15
"""Minutes for which a claim of a group holds, counted from its last renewal."""

MAX_TEXTS = 1000
"""Texts in one decision."""

_PAGE = 10_000
_VERDICTS = ("low", "high", "verdict", "author", "at")
_MAX_NOTE = 4000
_MAX_NAME = 200


class Verdict(str, Enum):
    """What a reviewer says about texts, or about one."""

    SAME = "same"
    """They are always in one group."""
    DIFFERENT = "different"
    """No two of them are ever in one group."""
    SPLIT = "split"
    """Those of each part are always in one group, and never with those of another part."""
    KEEP = "keep"
    """This is the document to keep of its group."""
    NOTE = "note"
    """A remark, which changes nothing."""

    @property
    def decides(self) -> bool:
        """Whether it decides about groups."""
        return self in (Verdict.SAME, Verdict.DIFFERENT, Verdict.SPLIT)


ContentPair = tuple[str, str]
"""Two content hashes, ascending."""

PairVerdicts = Mapping[ContentPair, Mapping[str, Verdict]]
"""Two contents -> reviewer -> what they decided: *same* or *different*."""


def agreed_verdict(verdicts: Mapping[str, Verdict]) -> Verdict | None:
    """The verdict of all reviewers about a pair; None if they disagree."""
    (first, *others) = set(verdicts.values())
    return None if others else first


@dataclass(frozen=True)
class Decision:
    """A decision of one reviewer."""

    verdict: Verdict
    contents: tuple[str, ...]
    """The content hashes of the texts, in the order of ``documents``."""
    documents: tuple[Address, ...]
    """The documents that the reviewer saw, one for each text."""
    author: str
    at: str
    note: str | None = None
    similarity: float | None = None
    """Of both texts, by ``measure``; None if they were not compared."""
    measure: str | None = None
    withdrawn: str | None = None
    """When it was withdrawn; None: it holds."""
    parts: tuple[int, ...] | None = None
    """Of *split*: the number of the part of each text, from 1."""

    JSON_PROPERTIES: ClassVar = ("id",)
    """What its JSON form has besides the fields."""

    @property
    def id(self) -> str:
        """The same for each decision of a reviewer about the same texts, so that a later one replaces it: *same*,
        *different* and *split* replace each other."""
        slot = "pair" if self.verdict.decides else self.verdict.value
        key = "\0".join((slot, *self.between, self.author))
        return xxhash.xxh3_128_hexdigest(key.encode("utf-8", "surrogatepass"))

    @property
    def between(self) -> tuple[str, ...]:
        """The contents, ascending."""
        return tuple(sorted(self.contents))

    def pairs(self) -> Iterator[tuple[ContentPair, Verdict]]:
        """What it says about each two of its texts, *same* or *different*; nothing for *keep* and *note*."""
        if self.verdict.decides:
            size = len(self.contents)
            parts = self.parts or ([1] * size if self.verdict is Verdict.SAME else range(size))
            for (one, part), (other, its) in combinations(zip(self.contents, parts, strict=True), 2):
                pair = (one, other) if one <= other else (other, one)
                yield pair, Verdict.SAME if part == its else Verdict.DIFFERENT

    def document(self, content: str) -> Address:
        """The document that the reviewer saw of a text."""
        return self.documents[self.contents.index(content)]

    def __repr__(self) -> str:
        return one_line(self, verdict=self.verdict.value, documents=[one.id for one in self.documents])

    def checked(self) -> Decision:
        """The decision. Raises `SettingsError` for values that cannot be stored."""
        if not self.author.strip() or len(self.author) > _MAX_NAME or not self.author.isprintable():
            raise SettingsError(f"The name of a reviewer must have 1 to {_MAX_NAME} printable characters.")
        if self.note is not None and len(self.note) > _MAX_NOTE:
            raise SettingsError(f"A note can have {_MAX_NOTE:,} characters; this one has {len(self.note):,}.")
        if self.note is not None and "\0" in self.note:  # databases and readers of CSV files refuse it
            raise SettingsError("A note cannot have the character U+0000.")
        if self.verdict is Verdict.NOTE and not (self.note or "").strip():
            raise SettingsError("A note needs a text.")
        return self


SaidAboutPairs = Mapping[ContentPair, Mapping[str, tuple[Verdict, Decision]]]
"""Two texts -> reviewer -> verdict, with the decision that has it."""


def said_about_pairs(decisions: Iterable[Decision]) -> SaidAboutPairs:
    """What each reviewer says about each two texts, by the last of their decisions. ``decisions``: oldest first."""
    found: dict[ContentPair, dict[str, tuple[Verdict, Decision]]] = defaultdict(dict)
    for one in decisions:
        for pair, verdict in one.pairs():
            found[pair][one.author] = verdict, one
    return found


@dataclass(frozen=True)
class DecisionPage:
    """One page of decisions, newest first."""

    total: int
    decisions: tuple[Decision, ...]
    after: tuple[Any, ...] | None
    """Continues with the next page; None after the last one."""

    def __repr__(self) -> str:
        return one_line(self, total=self.total, decisions=len(self.decisions))


@dataclass(frozen=True)
class PairDecisions:
    """The verdicts about pairs of contents on which all reviewers agree. d pairs."""

    low: Bytes
    """Content hashes as bytes, the lower one of each pair; S16[d]."""
    high: Bytes
    same: Flags
    """Whether the verdict is *same*, otherwise it is *different*; bool[d]."""
    disputed: int = 0
    """Pairs on which reviewers disagree; they are not part of the arrays."""

    @classmethod
    def of(cls, verdicts: PairVerdicts) -> PairDecisions:
        """From the verdicts of all reviewers about each pair."""
        agreed = {pair: one for pair, some in verdicts.items() if (one := agreed_verdict(some)) is not None}
        hashes = packed_hashes([one for pair in agreed for one in pair]).reshape(-1, 2)
        same = np.array([one is Verdict.SAME for one in agreed.values()], np.bool_)
        return cls(hashes[:, 0], hashes[:, 1], same, len(verdicts) - len(agreed))

    def verdicts(self, left: Bytes, right: Bytes) -> NDArray[np.int8]:
        """The verdict about each pair of contents, S16[p] in any order: 0 none, 1 *same*, 2 *different*; int8[p]."""
        found = np.zeros(len(left), np.int8)
        if not len(self):
            return found
        known, asked = _joined(self.low, self.high), _joined(left, right)
        order = np.argsort(known, kind="stable")
        place = order[np.minimum(np.searchsorted(known, asked, sorter=order), len(known) - 1)]
        about = known[place] == asked
        found[about] = np.where(self.same[place[about]], 1, 2)
        return found

    def contents(self, place: int) -> ContentPair:
        """The contents of one pair."""
        return hash_text(self.low[place]), hash_text(self.high[place])

    def __len__(self) -> int:
        return len(self.low)


def _joined(left: Bytes, right: Bytes) -> Bytes:
    """Both hashes of each pair, the lower one first, as one value; S32[p]."""
    both = np.stack((left, right), axis=1).astype("S16")
    both.sort(axis=1)
    return both.view("S32").reshape(-1)


@dataclass(frozen=True)
class WaitingDecisions:
    """Decisions that no run of `group` has applied yet, with the versions that were read."""

    contents: frozenset[str] = frozenset()
    """The content hashes that they are about."""
    versions: Mapping[str, tuple[int, int]] = field(default_factory=dict, repr=False)
    """Id -> sequence number and primary term."""

    def __bool__(self) -> bool:
        return bool(self.versions)


@dataclass(frozen=True)
class Claim:
    """A reviewer works on a group."""

    group: str
    author: str
    until: str


class Decisions:
    """The decisions about the documents of one index. If there are none, the hidden index need not exist.

    All methods raise `NameTaken` if another index has its name.
    """

    def __init__(self, index: Index) -> None:
        # Under a second prefix, a migration makes groups that respect the decisions made under the first one.
        prefix = replaced_prefix(index.prefix)
        target = index.target
        owner = replace(target, settings=replace(target.settings, prefix=prefix))
        owning = index.with_target(owner) if prefix != index.prefix else index
        self._store = HiddenStore(owning, HiddenIndex.DECISIONS, index.server)
        self.name = self._store.name

    def exist(self) -> bool:
        """Whether anything was ever decided."""
        return self._store.exists()

    def put(self, decisions: Iterable[Decision], places: Mapping[str, Any] = MappingProxyType({})) -> None:
        """Store decisions; each replaces an earlier one of its reviewer about the same texts. ``places``: id of a
        decision -> what `seen_of` returns with it. Raises `RequestError` if one is rejected."""
        self._store.create()
        made = [one.checked() for one in decisions]
        applied = {hit.id for hit in self._store.with_ids({one.id for one in made}) if _is_applied(hit.source)}
        sources = ((one.id, _source(one, places.get(one.id), applied=one.id in applied)) for one in made)
        actions = (Action("index", self.name, id, source) for id, source in sources)
        for outcome in self._store.write_in_order(actions):
            if not outcome.done:
                raise RequestError(
                    f"The server rejected a decision in {self.name}: {outcome.reason}",
                    status=outcome.status,
                    type=outcome.type,
                    reason=outcome.reason,
                )

    def get(self, ids: Collection[str]) -> dict[str, Decision]:
        """The decisions with these ids, also withdrawn ones; without those that do not exist."""
        if not ids or not self.exist():
            return {}
        hits = self._store.with_ids(sorted(ids))
        return {hit.id: one for hit in hits if (one := _decision(hit.source)) is not None}

    def page(
        self,
        *,
        author: str | None = None,
        verdict: Verdict | None = None,
        withdrawn: bool | None = None,
        after: Sequence[Any] | None = None,
        size: int = 50,
    ) -> DecisionPage:
        """A page of decisions, newest first. ``withdrawn``: only those that were, or were not; None: all."""
        if not self._store.refreshed():
            return DecisionPage(0, (), None)
        state = {"exists": {"field": "withdrawn"}}
        clauses: list[dict[str, Any] | None] = [
            _KIND,
            None if author is None else {"term": {"author": author}},
            None if verdict is None else {"term": {"verdict": verdict.value}},
            None if withdrawn is None else (state if withdrawn else {"bool": {"must_not": [state]}}),
        ]
        body: dict[str, Any] = {
            "size": size + 1,
            "track_total_hits": True,
            "query": all_of(*clauses),
            "sort": [{"at": "desc"}, {"id": "asc"}],
        }
        if after is not None:
            body["search_after"] = list(after)
        answer = self._store.search(body)
        hits = answer["hits"]["hits"]
        found = (_decision(hit["_source"]) for hit in hits[:size])
        last = tuple(hits[size - 1]["sort"]) if len(hits) > size else None
        return DecisionPage(int(answer["hits"]["total"]["value"]), tuple(one for one in found if one), last)

    def all(self) -> Iterator[Decision]:
        """All decisions, also withdrawn ones, newest first."""
        after = None
        while True:
            page = self.page(after=after, size=1000)
            yield from page.decisions
            if (after := page.after) is None:
                return

    def about(self, contents: Collection[str]) -> list[Decision]:
        """The decisions that hold and are about at least one of these contents, oldest first."""
        if not contents or not self._store.refreshed():
            return []
        found: dict[str, Decision] = {}
        for chunk in chunked(sorted(contents), MAX_TERMS):
            for page in self._store.pages({"query": all_of(*_HOLDING, _about(chunk))}, page_size=2000):
                found.update((hit.id, one) for hit in page if (one := _decision(hit.source)) is not None)
        return sorted(found.values(), key=lambda one: (one.at, one.id))

    def seen_of(self, ids: Collection[str]) -> list[tuple[Decision, Any]]:
        """The decisions between texts that hold, of which the reviewer saw a document with one of these ids, oldest
        first, with what is stored about the places where these texts differed; any client can write that."""
        if not ids or not self._store.refreshed():
            return []
        found: dict[str, tuple[Decision, Any]] = {}
        for chunk in chunked(sorted(ids), MAX_TERMS):
            query = all_of(*_HOLDING, _DECIDING, {"terms": {"ids": chunk}})
            for page in self._store.pages({"query": query}, page_size=2000):
                found.update(
                    (hit.id, (one, hit.source["documents"].get("places")))
                    for hit in page
                    if (one := _decision(hit.source)) is not None
                )
        return sorted(found.values(), key=lambda one: (one[0].at, one[0].id))

    def last_of(self, author: str, contents: Collection[str]) -> list[Decision]:
        """The decisions of a reviewer that hold and are about at least one of these contents, of the last time that
        some were stored."""
        if not contents or not self._store.refreshed():
            return []
        own = (*_HOLDING, {"term": {"author": author}})
        newest: list[Decision] = []
        for chunk in chunked(sorted(contents), MAX_TERMS):
            body = {"size": 1, "query": all_of(*own, _about(chunk)), "sort": [{"at": "desc"}, {"id": "asc"}]}
            hits = self._store.search(body)["hits"]["hits"]
            newest += (one for hit in hits if (one := _decision(hit["_source"])) is not None)
        if not newest:
            return []
        at = max(one.at for one in newest)
        page = self._store.pages({"query": all_of(*own, {"term": {"at": at}})}, page_size=_PAGE)
        found = (_decision(hit.source) for hits in page for hit in hits)
        known = set(contents)
        return sorted((one for one in found if one and known & {*one.contents}), key=lambda one: one.id)

    def pairs(
        self, contents: Collection[str] | None = None, progress: Progress = silent
    ) -> dict[tuple[str, str], dict[str, Verdict]]:
        """The verdicts *same* and *different* that hold: those about at least one of the given contents, or all."""
        if (contents is not None and not contents) or not self._store.refreshed():
            return {}
        known = None if contents is None else set(contents)
        found: dict[ContentPair, dict[str, tuple[int, Verdict]]] = defaultdict(dict)
        for chunk in [None] if known is None else chunked(sorted(known), MAX_TERMS):
            query = all_of(*_HOLDING, _DECIDING, None if chunk is None else _about(chunk))
            keys = self._store.buckets(query, {name: name for name in _VERDICTS})
            for key in tracked(keys, progress, "decisions", None):
                if is_hash(key["low"]) and is_hash(key["high"]):  # any client can write documents
                    found[key["low"], key["high"]][key["author"]] = int(key["at"]), Verdict(key["verdict"])
            for one in self._of_several(query):
                for pair, verdict in one.pairs():
                    if known is None or not known.isdisjoint(pair):
                        said = found[pair]
                        said[one.author] = max((_milliseconds(one.at), verdict), said.get(one.author, (0, verdict)))
        return {pair: {author: verdict for author, (_, verdict) in said.items()} for pair, said in found.items()}

    def _of_several(self, query: Mapping[str, Any]) -> Iterator[Decision]:
        """The decisions about more than two texts that match a query."""
        pairs = {"exists": {"field": "low"}}
        for page in self._store.pages({"query": all_of(query, {"bool": {"must_not": [pairs]}})}, page_size=200):
            yield from (one for hit in page if (one := _decision(hit.source)) is not None)

    def kept(self) -> dict[str, set[str]]:
        """The content hash of each text of which reviewers keep a document -> these reviewers."""
        found: dict[str, set[str]] = defaultdict(set)
        if self._store.refreshed():
            query = all_of(*_HOLDING, {"term": {"verdict": Verdict.KEEP.value}})
            for key in self._store.buckets(query, {"content": "contents", "author": "author"}):
                if is_hash(key["content"]):
                    found[key["content"]].add(key["author"])
        return found

    def last_write(self) -> tuple[int, int] | None:
        """The number of the last write that is visible, and of the documents; None if nothing was ever decided."""
        if not self._store.refreshed():
            return None
        body = {
            "size": 1,
            "track_total_hits": True,
            "_source": False,
            "seq_no_primary_term": True,
            "sort": [{"_seq_no": "desc"}],
        }
        found = self._store.search(body)["hits"]
        return (int(found["hits"][0]["_seq_no"]), int(found["total"]["value"])) if found["hits"] else None

    def written_since(self, first: int) -> set[tuple[str, str]]:
        """The pairs of contents with a decision that was written since the write ``first``, also withdrawn ones."""
        query = all_of(_KIND, _DECIDING, {"range": {"_seq_no": {"gte": first}}})
        both = self._store.buckets(query, {"low": "low", "high": "high"})
        several = (pair for one in self._of_several(query) for pair, _ in one.pairs())
        return {*((one["low"], one["high"]) for one in both), *several}

    def waiting(self) -> WaitingDecisions:
        """The decisions that wait for `group`, also withdrawn ones."""
        contents, versions = set[str](), dict[str, tuple[int, int]]()
        if self._store.refreshed():
            body = {"query": all_of(_KIND, {"term": {"waiting": True}}), "_source": ["contents"]}
            for page in self._store.pages(body, page_size=_PAGE):
                for hit in page:
                    given = hit.source.get("contents")
                    contents.update(map(str, given if isinstance(given, list) else [given]))
                    versions[hit.id] = (hit.seq_no or 0, hit.primary_term or 0)
        return WaitingDecisions(frozenset(contents), versions)

    def count_waiting(self) -> int:
        """The number of decisions that wait for `group`, without those that were withdrawn before any run."""
        if not self._store.refreshed():
            return 0
        waiting = all_of(_KIND, {"term": {"waiting": True}})
        withdrawn = {
            "query": all_of(waiting, {"exists": {"field": "withdrawn"}}),
            "_source": ["waiting", "documents.applied"],
        }
        undone = sum(
            not _is_applied(hit.source) for page in self._store.pages(withdrawn, page_size=_PAGE) for hit in page
        )
        return self._store.count(waiting) - undone

    def settle(self, applied: WaitingDecisions) -> None:
        """Note that a run has applied decisions. Those that changed since they were read continue to wait."""
        actions = (
            Action("update", self.name, id, {"doc": {"waiting": False}}, seq_no=seq_no, primary_term=term)
            for id, (seq_no, term) in applied.versions.items()
        )
        for outcome in self._store.write_in_order(actions) if applied else ():
            if not (outcome.done or outcome.conflict or outcome.gone):
                raise RequestError(
                    f"The server rejected an update in {self.name}: {outcome.reason}",
                    status=outcome.status,
                    type=outcome.type,
                    reason=outcome.reason,
                )

    def totals(self, *, withdrawn: bool = False) -> dict[str, int]:
        """The number of decisions that hold, by reviewer. ``withdrawn``: also those that were withdrawn."""
        if not self._store.refreshed():
            return {}
        terms = {"authors": {"terms": {"field": "author", "size": 1000}}}
        query = _KIND if withdrawn else all_of(*_HOLDING)
        answer = self._store.search({"size": 0, "query": query, "aggs": terms})
        return {one["key"]: int(one["doc_count"]) for one in answer["aggregations"]["authors"]["buckets"]}

    def claim(self, group: str, author: str, now: datetime | None = None) -> Claim:
        """The claim of a group that holds now: a new or renewed one of this reviewer, or that of another one."""
        self._store.create()
        current = now or datetime.now(timezone.utc)
        before = self._store.read(_claim_id(group))
        held = _claim(before, current)
        if held is not None and held.author != author:
            return held
        until = (current + timedelta(minutes=CLAIM_MINUTES)).isoformat(timespec="seconds")
        claim = Claim(group, author, until)
        source = {"kind": "claim", "group": group, "author": author, "until": until}
        try:
            self._store.put(_claim_id(group), source, before)
        except Conflict:  # another reviewer was faster
            return _claim(self._store.read(_claim_id(group)), current) or claim
        return claim

    def claims(self, groups: Sequence[str], now: datetime | None = None) -> dict[str, Claim]:
        """The claims of these groups that hold now."""
        if not groups or not self.exist():
            return {}
        current = now or datetime.now(timezone.utc)
        hits = self._store.with_ids(map(_claim_id, groups))
        stored = (StoredDocument(hit.source, 0, 0) for hit in hits)
        return {one.group: one for found in stored if (one := _claim(found, current)) is not None}


_KIND: dict[str, Any] = {"term": {"kind": "decision"}}
_HOLDING: tuple[dict[str, Any], ...] = (_KIND, {"bool": {"must_not": [{"exists": {"field": "withdrawn"}}]}})
_DECIDING: dict[str, Any] = {"terms": {"verdict": [one.value for one in Verdict if one.decides]}}


def _about(contents: Sequence[str]) -> dict[str, Any]:
    return {"terms": {"contents": list(contents)}}


def _milliseconds(at: str) -> int:
    """A time as the server counts it."""
    try:
        return round(datetime.fromisoformat(at.replace("Z", "+00:00")).timestamp() * 1000)
    except (ValueError, OverflowError):
        return 0


def _is_applied(source: Mapping[str, Any]) -> bool:
    """Whether a run of `group` has applied a stored decision, or one that it has replaced."""
    documents = source.get("documents")
    return source.get("waiting") is False or (isinstance(documents, Mapping) and documents.get("applied") is True)


def _source(decision: Decision, places: Any, *, applied: bool) -> dict[str, Any]:
    """``applied``: whether a run of `group` has applied the stored decision with this id."""
    low, high = decision.between if len(decision.contents) == 2 else (None, None)
    parts = decision.parts or [None] * len(decision.contents)
    texts = zip(decision.documents, decision.contents, parts, strict=True)
    seen = [{"index": one.index, "id": one.id, "content": content, "part": part} for one, content, part in texts]
    return {
        "kind": "decision",
        "id": decision.id,
        "verdict": decision.verdict.value,
        "contents": decision.between,
        "low": low,
        "high": high,
        "ids": [one.id for one in decision.documents],
        "documents": {"seen": seen, "places": places, "applied": applied},
        "author": decision.author,
        "at": decision.at,
        "withdrawn": decision.withdrawn,
        "waiting": decision.verdict.decides,
        "note": decision.note,
        "similarity": decision.similarity,
        "measure": decision.measure,
    }


def _decision(source: Mapping[str, Any]) -> Decision | None:
    """Read the output of `_source`; None for anything else."""
    try:
        seen = source["documents"]["seen"]
        parts = {name: source.get(name) for name in _PLAIN}
        parts["documents"] = [(one["index"], one["id"]) for one in seen]
        parts["contents"] = [one["content"] for one in seen]
        parts["parts"] = [one.get("part") for one in seen] if source["verdict"] == Verdict.SPLIT.value else None
        found = _DECISIONS.read(parts)
        possible = 1 + found.verdict.decides <= len(found.contents) <= MAX_TEXTS
        return found if possible and all(map(is_hash, found.contents)) else None
    except (KeyError, TypeError, AttributeError, ValueError):
        return None


def _claim_id(group: str) -> str:
    return f"claim-{group}"


def _claim(stored: StoredDocument | None, now: datetime) -> Claim | None:
    """The claim of a document, if it holds now."""
    if stored is None or stored.source.get("kind") != "claim":
        return None
    try:
        claim = _CLAIMS.read({name: stored.source.get(name) for name in ("group", "author", "until")})
        return claim if datetime.fromisoformat(claim.until) > now else None
    except (ValueError, TypeError):
        return None


_PLAIN = ("verdict", "author", "at", "note", "similarity", "measure", "withdrawn")
_DECISIONS: StoredJson[Decision] = StoredJson(Decision)
_CLAIMS: StoredJson[Claim] = StoredJson(Claim)
