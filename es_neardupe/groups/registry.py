"""Registry of groups, in a hidden index: a record of each group with its history, one of each cluster of several
groups, and the rules of the last run.

A run writes the registry before the documents, so if it is killed, the next run finds what it was about to write.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import chain
from math import fsum
from typing import Any

from es_neardupe.candidates.who_may_meet import DEFAULT_RULES, GroupRules
from es_neardupe.errors import RequestError, SettingsError
from es_neardupe.groups.clusters import (
    NO_UPDATE,
    ClusterSum,
    ClusterUpdate,
    RelatedCounts,
    SplitCluster,
    checksum,
)
from es_neardupe.groups.decisions import ContentPair
from es_neardupe.groups.rules import RunRules, decode_rules, encode_rules
from es_neardupe.index.hidden_indices import HiddenIndex, HiddenStore, StoredDocument
from es_neardupe.index.index import Index
from es_neardupe.index.queries import MAX_TERMS, all_of
from es_neardupe.index.settings import Settings
from es_neardupe.records import Action, Address, Hit, one_line
from es_neardupe.server.bulk import chunked
from es_neardupe.stored_json import StoredJson
from es_neardupe.verification.match_rules import MatchRules
from es_neardupe.wording import command

_RUN = "run"


@dataclass(frozen=True, slots=True)
class GroupEvent:
    """An event in the history of a group."""

    at: str
    event: str
    """``founded``, ``merged with``, ``merged into``, ``split from``, ``split into`` or ``dissolved``."""
    group: str | None = None
    """The other group."""


def mean_similarity(similarities: Sequence[float], counts: Sequence[int]) -> float:
    """The mean of similarities, each of which occurs ``counts`` times: the same in whatever order they come, and not
    below their minimum or above their maximum by a rounding."""
    mean = fsum(value * count for value, count in zip(similarities, counts, strict=True)) / sum(counts)
    return min(max(mean, min(similarities)), max(similarities))


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """A group in the registry. Its numbers are from the last run that wrote it."""

    group: str
    created: str
    updated: str
    ended: str | None
    size: int
    """Documents."""
    texts: int
    """Distinct texts among them."""
    principal: Address
    min_similarity: float
    """Minimum similarity of a member to the principal."""
    mean_similarity: float
    """Mean similarity of the other members to the principal."""
    pairs_below: int
    """Pairs of members that are less similar than the threshold."""
    pairs_not_compared: int
    """Pairs of members that were not compared, because the group is too large."""
    diameter: int | None
    """With linkage chain: maximum number of steps between two members. None otherwise, and for very large groups."""
    weakest: float | None
    """With linkage chain: the similarity of the weakest link without which the group would fall apart."""
    held: int
    """Members that do not match the principal, but that a decision *same* of a reviewer holds in the group."""
    settings: RunRules | None
    """None if another version wrote the record."""
    history: tuple[GroupEvent, ...] = ()

    def __repr__(self) -> str:
        return one_line(
            self,
            group=self.group,
            ended=self.ended,
            size=self.size,
            principal=self.principal.id,
            min_similarity=self.min_similarity,
            history=len(self.history),
        )

    @classmethod
    def read(cls, id: str, source: Mapping[str, Any]) -> GroupRecord | None:
        """The record that a run has stored; None for anything else, which the next run that writes the group
        replaces."""
        return _entry(id, source)

    def same(self, other: GroupRecord) -> bool:
        """Whether both are equal except for ``updated``."""
        return replace(self, updated=other.updated) == other


@dataclass(frozen=True, slots=True)
class LastRun:
    """The last run of ``group``."""

    finished: bool
    """Whether it finished."""
    evidence: bool
    """Whether it stored evidence."""
    rules: RunRules | None
    """Those of the last run that finished; None if none did."""
    indices: Mapping[str, str] = field(default_factory=dict)
    """Concrete index -> its uuid, of all indices of the run if it finished."""
    principals: int | None = None
    """Documents that are the principal of a group or alone, after the run; None if it did not finish."""
    members: int | None = None
    """The other documents in groups, after the run; None if it did not finish."""
    clusters: ClusterSum | None = None
    """That of the records of clusters, after the run; None if it did not finish."""
    unsatisfied: tuple[ContentPair, ...] = ()
    """The decisions *same* that the run could not satisfy."""


def remembered(last: LastRun | None, settings: Settings) -> tuple[MatchRules, GroupRules]:
    """Default rules of the next run: those of the last run that finished, else the defaults of ``group``."""
    if last is not None and last.rules:
        return last.rules.match, last.rules.group
    return MatchRules.of(settings), DEFAULT_RULES


@dataclass(frozen=True, slots=True)
class Totals:
    """Totals over groups of the registry."""

    groups: int = 0
    documents: int = 0
    largest: int = 0
    min_similarity: float | None = None


@dataclass(frozen=True)
class GroupHistoryUpdate:
    """The records to write after a run, from those before it and the groups that it made. Pure.

    ``before``: the records of all ids that documents have now or get. ``after``: the new groups of two or more
    documents, without history. ``previous_ids``: of each new id (also of documents that are alone), how many of its
    documents have which id of ``before`` now.
    """

    before: Mapping[str, GroupRecord]
    after: Mapping[str, GroupRecord]
    previous_ids: Mapping[str, Counter[str]]
    at: str

    def __iter__(self) -> Iterator[GroupRecord]:
        """The new records of known, new and ended groups, in this order, without those that would not change. There may
        be millions, so each is made when it is accessed.

        If only the first of them are written and the update is computed again, it returns the remaining ones: each
        event is recorded once.
        """
        known = (self._kept(id) for id in self.after if id in self._living)
        new = (self._founded(id) for id in self.after if id not in self._living)
        ended = (self._ended(id) for id in sorted(self._living - self.after.keys()))
        for one in chain(known, new, ended):
            if one.group not in self.before or not one.same(self.before[one.group]):
                yield one

    def __bool__(self) -> bool:
        return any(True for _ in self)

    @cached_property
    def _living(self) -> set[str]:
        return {id for id, record in self.before.items() if record.ended is None}

    @cached_property
    def _into(self) -> dict[str, str]:
        """The new id of most documents of each living id (ties: the lowest id)."""
        maximum: dict[str, tuple[int, str]] = {}
        for id in sorted(self.previous_ids):
            for stored, number in self.previous_ids[id].items():
                if stored in self._living and number > maximum.get(stored, (0, ""))[0]:
                    maximum[stored] = (number, id)
        return {stored: id for stored, (_, id) in maximum.items()}

    @cached_property
    def _parts(self) -> dict[str, list[str]]:
        """The new groups that were split from each group that continues."""
        parts = defaultdict(list)
        for id in sorted(self.after.keys() - self._living):
            for stored in self._origins(id):
                if stored in self.after:
                    parts[stored].append(id)
        return parts

    def _origins(self, id: str) -> list[str]:
        """The other living groups that documents of this group come from."""
        return sorted(stored for stored in self.previous_ids.get(id, ()) if stored != id and stored in self._living)

    def _merged(self, id: str) -> Iterator[GroupEvent]:
        for stored in self._origins(id):
            if stored not in self.after and self._into[stored] == id:
                yield GroupEvent(self.at, "merged with", stored)

    def _kept(self, id: str) -> GroupRecord:
        before = self.before[id]
        events = [*self._merged(id), *(GroupEvent(self.at, "split into", part) for part in self._parts.get(id, ()))]
        new = (event for event in events if not self._recorded(before, event))
        return replace(self.after[id], created=before.created, updated=self.at, history=(*before.history, *new))

    def _founded(self, id: str) -> GroupRecord:
        """A new group, or an ended one that exists again."""
        before = self.before.get(id)
        splits = (GroupEvent(self.at, "split from", stored) for stored in self._origins(id) if stored in self.after)
        history = before.history if before else ()
        history += (tuple(splits) or self._founding) + tuple(self._merged(id))
        created = before.created if before else self.at
        return replace(self.after[id], created=created, updated=self.at, history=history)

    @cached_property
    def _founding(self) -> tuple[GroupEvent, ...]:
        """The history of all groups that are new."""
        return (GroupEvent(self.at, "founded"),)

    def _ended(self, id: str) -> GroupRecord:
        into = self._into.get(id)
        event = GroupEvent(self.at, "merged into", into) if into in self.after else GroupEvent(self.at, "dissolved")
        before = self.before[id]
        return replace(before, updated=self.at, ended=self.at, history=(*before.history, event))

    def _recorded(self, before: GroupRecord, event: GroupEvent) -> bool:
        """Whether the event was recorded already, by a run that was killed before it wrote the other group."""
        other = self.before.get(event.group or "")
        return any(
            (one.event, one.group) == (event.event, event.group) and (other is None or other.updated <= one.at)
            for one in before.history
        )


class Registry:
    """The registry of one index. If it does not exist yet, reading returns nothing.

    All methods raise `NameTaken` if another index has its name.
    """

    def __init__(self, index: Index) -> None:
        self._index = index
        self._store = HiddenStore(index, HiddenIndex.GROUPS)
        self.name = self._store.name
        self._run: StoredDocument | None = None
        """The record of the last run, as it was read or written last."""
        self._refreshed = False

    def _searchable(self) -> bool:
        """Whether there is a registry. It is refreshed when this is first asked, and by `write`."""
        self._refreshed = self._refreshed or self._store.refreshed()
        return self._refreshed

    def last_run(self) -> LastRun | None:
        """The last run; None if the index has not been grouped, or was deleted since, and created again with other
        keys, for which the rules were not chosen. Raises `SettingsError` if the rules cannot be read: otherwise the
        next run would silently use other ones."""
        stored = self._stored_run()
        if stored is None:
            return None
        try:
            return self._decoded(stored)
        except ValueError as error:
            raise SettingsError(
                f"The rules of the last run, in {self.name}, cannot be read ({error}). To start from the defaults, run "
                f"`{command('group', self._index.name)} --default-rules` with the options that you need."
            ) from error

    def _decoded(self, stored: StoredDocument) -> LastRun | None:
        """A run; None if no index of it is left, and the present ones have other keys. With the same keys, the index
        was loaded again or restored, and its rules hold. Raises `ValueError` if it cannot be read."""
        last = _decode_run(stored.source)
        if last.rules is None or last.rules.scheme == self._index.scheme_id:
            return last
        before, now = (
            {uuid.partition("/")[0] for uuid in uuids.values()} for uuids in (last.indices, self._index.target.uuids)
        )
        return None if before and before.isdisjoint(now) else last

    def note_begun(self, at: str) -> None:
        """Record that a run has begun; the rules of the last finished run stay. Raises `Conflict` if another run
        recorded anything since `last_run`. Call it after `Lease.check`, which shows that the registry exists."""
        try:
            last = None if self._run is None else self._decoded(self._run)
        except ValueError:
            last = None
        self._note(LastRun(finished=False, evidence=False, rules=last.rules if last else None), at)

    def note_ended(
        self,
        rules: RunRules,
        at: str,
        *,
        evidence: bool,
        counted: Mapping[str, int],
        clusters: ClusterSum,
        unsatisfied: tuple[ContentPair, ...] = (),
    ) -> None:
        """Record that a run has finished, with its rules for the next one. ``counted``: ``principals`` and ``members``;
        empty if they are unknown, so that the next run compares all groups with the registry.
        Raises as `note_begun`."""
        self._store.create()
        uuids = self._index.target.uuids
        self._note(LastRun(True, evidence, rules, uuids, **counted, clusters=clusters, unsatisfied=unsatisfied), at)

    def hand_over_rules(self, rules: RunRules, at: str) -> None:
        """Store rules of another registry, so that the next run uses them and processes all documents. Does nothing if
        the next run would use the same rules anyway."""
        last = self.last_run()
        if last is None or remembered(last, self._index.settings) != (rules.match, rules.group):
            self._store.create()
            self._note(LastRun(finished=False, evidence=False, rules=rules), at)

    def _note(self, run: LastRun, at: str) -> None:
        settings = None if run.rules is None else encode_rules(run.rules)
        value = {
            "finished": run.finished,
            "evidence": run.evidence,
            "at": at,
            "indices": dict(run.indices),
            "principals": run.principals,
            "members": run.members,
            "clusters": None if run.clusters is None else asdict(run.clusters),
            "unsatisfied": run.unsatisfied,
        }
        self._run = self._store.put(_RUN, {"kind": "run", "settings": settings, "value": value}, self._run)

    def version(self) -> tuple[str, int] | None:
        """Changes with every run that has changed anything; None before the first one."""
        stored = self._stored_run()
        return None if stored is None else (str(stored.source.get("value")), stored.seq_no)

    def _stored_run(self) -> StoredDocument | None:
        self._run = self._store.read(_RUN) if self._store.exists() else None
        return self._run

    def records(self, ids: Collection[str]) -> dict[str, GroupRecord]:
        """The records of these ids, including ended groups; without those that do not exist."""
        if not ids or not self._store.exists():
            return {}
        hits = self._store.with_ids(sorted(ids), batch=500)
        return {record.group: record for hit in hits if (record := _entry(hit.id, hit.source)) is not None}

    def living(self) -> dict[str, GroupRecord | None]:
        """Id -> record of each group that has not ended, including those that a run wrote just before it was killed;
        None for a record that no run has stored, and that the next one replaces or deletes."""
        if not self._searchable():
            return {}
        return {hit.id: _entry(hit.id, hit.source) for hit in self._hits(_living(())) if hit.id != _RUN}

    def sizes(self) -> Iterator[tuple[str, Any]]:
        """Id and size of each group that has not ended, as they are stored; None for a group without a size."""
        if self._searchable():
            names = {"group": "group", "size": "size"}
            for one in self._store.buckets(_living(()), names, optional=["size"]):
                yield one["group"], one["size"]

    def texts(self, ids: Collection[str]) -> dict[str, int]:
        """The number of distinct texts of some groups; without groups that have ended or do not exist."""
        found: dict[str, int] = {}
        if ids and self._store.exists():
            names = {"group": "group", "texts": "texts"}
            for chunk in chunked(sorted(ids), MAX_TERMS):
                query = all_of(_living(()), {"terms": {"group": chunk}})
                for one in self._store.buckets(query, names):
                    found[one["group"]] = one["texts"]
        return found

    def search(
        self,
        clauses: Iterable[Mapping[str, Any]],
        body: Mapping[str, Any],
        scores: Sequence[Mapping[str, Any]] = (),
    ) -> Mapping[str, Any] | None:
        """The answer to one search for the groups that have not ended and satisfy all clauses. None if there is no
        registry. ``scores``: queries that make the score of those that satisfy them."""
        if not self._store.exists():
            return None
        query = _living(())
        query["bool"]["filter"].extend(clauses)
        query["bool"]["should"] = list(scores)
        return self._store.search({**body, "query": query})

    def led_by(self, id: str) -> GroupRecord | None:
        """The group whose principal has this id, in any of the indices; if there are several, the last one written."""
        if not self._store.exists():
            return None
        query = {"bool": {"filter": [{"term": {"kind": "group"}}, {"term": {"principal.id": id}}]}}
        body = {"size": 1, "query": query, "sort": [{"updated": "desc"}]}
        hits = self._store.search(body)["hits"]["hits"]
        return _entry(hits[0]["_id"], hits[0]["_source"]) if hits else None

    def totals(self, without: Iterable[str] = ()) -> Totals:
        """Totals over the groups that have not ended, except the ids ``without``."""
        if not self._store.exists():
            return Totals()
        sums = {
            "documents": {"sum": {"field": "size"}},
            "largest": {"max": {"field": "size"}},
            "least": {"min": {"field": "min_similarity"}},
        }
        body = {"size": 0, "track_total_hits": True, "query": _living(sorted(without)), "aggs": sums}
        answer = self._store.search(body)
        values = {name: answer["aggregations"][name]["value"] for name in sums}
        return Totals(
            groups=int(answer["hits"]["total"]["value"]),
            documents=int(values["documents"] or 0),
            largest=int(values["largest"] or 0),
            min_similarity=values["least"],
        )

    def clusters(self, ids: Collection[str] | None = None) -> dict[str, SplitCluster | None]:
        """Id -> record of each cluster that has one of these group ids, or of all; None for a record that no run has
        stored, and that the next one replaces."""
        if (ids is not None and not ids) or not self._searchable():
            return {}
        queries = [_CLUSTERS] if ids is None else map(_clusters_with, chunked(sorted(ids), MAX_TERMS))
        return {hit.id: _cluster(hit.source) for query in queries for hit in self._hits(query)}

    def count_clusters(self) -> int:
        """The number of records of clusters that a search finds: all that a finished run has written."""
        return self._store.count(_CLUSTERS) if self._store.exists() else 0

    def related(self, ids: Collection[str]) -> set[str]:
        """The ids of all groups, and documents alone, in the clusters of these ids."""
        return {id for one in self.clusters(ids).values() if one is not None for id in one.ids}

    def alone(self) -> Iterator[str]:
        """The group ids of the documents that are alone, although they are in a cluster."""
        if self._searchable():
            for hit in self._hits(all_of(_CLUSTERS, {"exists": {"field": "alone"}})):
                one = _cluster(hit.source)
                yield from () if one is None else one.alone

    def related_counts(self, without: Iterable[str] = ()) -> RelatedCounts:
        """Totals over the clusters of several groups, except the records with the ids ``without``."""
        if not self._store.exists():
            return RelatedCounts()
        excluded = [{"ids": {"values": chunk}} for chunk in chunked(sorted(without), MAX_TERMS)]
        sums = {
            "alone": {"sum": {"field": "alone_matching"}},
            "alone_similarity": {"max": {"field": "alone_similarity"}},
            "pairs": {"sum": {"field": "split_pairs"}},
            "similarity": {"max": {"field": "split_similarity"}},
        }
        query = {"bool": {"filter": [_CLUSTERS], "must_not": excluded}}
        answer = self._store.search({"size": 0, "query": query, "aggs": sums})
        found = {name: answer["aggregations"][name]["value"] for name in sums}
        found |= {name: int(found[name] or 0) for name in ("alone", "pairs")}
        return RelatedCounts(**found)

    def _hits(self, query: Mapping[str, Any]) -> Iterator[Hit]:
        for page in self._store.pages({"query": query}, page_size=2000):
            yield from page

    def write(
        self, records: Iterable[GroupRecord], clusters: ClusterUpdate = NO_UPDATE, damaged: Iterable[str] = ()
    ) -> None:
        """Delete the ``damaged`` records, store records in the given order, replacing existing ones, and delete those
        of former clusters. Raises `RequestError` if one is rejected. Call it after `Lease.check`, which shows that the
        registry exists."""
        actions = chain(
            (Action("delete", self.name, id, {}) for id in damaged),
            (Action("index", self.name, one.group, _source(one)) for one in records),
            (Action("index", self.name, one.id, {"kind": "cluster", **asdict(one)}) for one in clusters.written),
            (Action("delete", self.name, id, {}) for id in clusters.deleted),
        )
        for outcome in self._store.write_in_order(actions):
            if not outcome.done and not (outcome.action.op == "delete" and outcome.status == 404):
                raise RequestError(
                    f"The server rejected a record of the registry {self.name}: {outcome.reason}",
                    status=outcome.status,
                    type=outcome.type,
                    reason=outcome.reason,
                )


def _living(without: Iterable[str]) -> dict[str, Any]:
    """Query for the groups that have not ended, except the ids ``without``."""
    excluded = [{"terms": {"group": chunk}} for chunk in chunked(without, MAX_TERMS)]
    return {
        "bool": {
            "filter": [{"term": {"kind": "group"}}],
            "must_not": [{"exists": {"field": "ended"}}, *excluded],
        }
    }


_CLUSTERS = {"term": {"kind": "cluster"}}


def _clusters_with(ids: Sequence[str]) -> dict[str, Any]:
    """Query for the clusters that have one of these group ids."""
    some = [{"terms": {name: ids}} for name in ("groups", "alone")]
    return all_of(_CLUSTERS, {"bool": {"should": some, "minimum_should_match": 1}})


def _cluster(source: Mapping[str, Any]) -> SplitCluster | None:
    """The record of a cluster; None for anything that no run stores."""
    try:
        return _SPLIT.read({name: value for name, value in source.items() if name != "kind"})
    except ValueError:
        return None


def _source(record: GroupRecord) -> dict[str, Any]:
    index, id = record.principal
    history = [{"at": one.at, "event": one.event, "group": one.group} for one in record.history]
    source = {
        "kind": "group",
        **{name: getattr(record, name) for name in _PLAIN},
        "principal": {"index": index, "id": id},
        "settings": None if record.settings is None else encode_rules(record.settings),
        "history": {"events": history},
    }
    return source | {"checksum": checksum(source)}


def _entry(id: str, source: Mapping[str, Any]) -> GroupRecord | None:
    """Read the output of `_source`; None for anything else, which the next run that writes the group replaces."""
    try:
        principal, history = source["principal"], source["history"]["events"]
        parts = {
            **{name: source.get(name) for name in _PLAIN},
            "principal": (principal["index"], principal["id"]),
            "settings": _settings(source.get("settings")),
            "history": history,
        }
        record = _RECORDS.read(parts)
    except (KeyError, TypeError, ValueError):
        return None
    unchanged = source.get("checksum") == checksum({name: one for name, one in source.items() if name != "checksum"})
    return record if unchanged and source.get("kind") == "group" and record.group == id else None


def _settings(stored: object) -> RunRules | None:
    try:
        return decode_rules(stored)
    except ValueError:
        return None


def _decode_run(source: Mapping[str, Any]) -> LastRun:
    """Read a run that `Registry` recorded. Raises `ValueError` for anything else."""
    settings, value = source.get("settings"), source.get("value")
    run = value if isinstance(value, Mapping) else {}
    finished, evidence = run.get("finished"), run.get("evidence")
    if not isinstance(finished, bool) or not isinstance(evidence, bool) or (finished and settings is None):
        raise ValueError("values that no run stores")
    try:
        indices = _UUIDS.read(run.get("indices"))
        principals, members = (_COUNT.read(run.get(name)) for name in ("principals", "members"))
        clusters = _SUM.read(run.get("clusters"))
        unsatisfied = _PAIRS.read(run.get("unsatisfied", ()))
    except ValueError as error:
        raise ValueError("values that no run stores") from error
    rules = None if settings is None else decode_rules(settings)
    return LastRun(finished, evidence, rules, indices, principals, members, clusters, unsatisfied)


_RECORDS: StoredJson[GroupRecord] = StoredJson(GroupRecord)
_SPLIT: StoredJson[SplitCluster] = StoredJson(SplitCluster)
_UUIDS: StoredJson[dict[str, str]] = StoredJson(dict[str, str])
_COUNT: StoredJson[int | None] = StoredJson(int | None)
_SUM: StoredJson[ClusterSum | None] = StoredJson(ClusterSum | None)
_PAIRS: StoredJson[tuple[ContentPair, ...]] = StoredJson(tuple[ContentPair, ...])
_PLAIN = (
    "group",
    "created",
    "updated",
    "ended",
    "size",
    "texts",
    "min_similarity",
    "mean_similarity",
    "pairs_below",
    "pairs_not_compared",
    "diameter",
    "weakest",
    "held",
)
