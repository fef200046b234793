"""Incremental runs of ``group``: choice between all and changed documents, and the documents that a change affects.

Affected documents are those that a change can move between groups. They are reached through matches and common groups,
from the documents that wait for ``group`` (or that ``--check`` found). No other document can get another group, so the
result is that of a run over the whole index.

What a deleted document has matched is not known any more. So the registry has the groups of each cluster of several
groups, and if one of them has changed or lost a document, all of them are affected.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from es_neardupe.candidates.fingerprints import read_corpus, requested
from es_neardupe.candidates.memory_limit import MemoryLimit
from es_neardupe.groups.clusters import ClusterSum
from es_neardupe.groups.decisions import (
    ContentPair,
    Decisions,
    PairDecisions,
    Verdict,
    WaitingDecisions,
    agreed_verdict,
)
from es_neardupe.groups.read import differing_groups
from es_neardupe.groups.registry import LastRun, Registry
from es_neardupe.groups.rules import RunRules
from es_neardupe.groups.waiting import (
    PAGE,
    SEARCHES,
    DocumentQuery,
    changed_since,
    counted_documents,
    why_unnoticed,
    with_other_fields,
)
from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.index.storage.change_feed import ChangeFeed
from es_neardupe.index.stored_fields import group_of, stored_fields
from es_neardupe.keys.arrays import Flags
from es_neardupe.progress import Progress
from es_neardupe.records import Address, FingerprintColumns, Hit
from es_neardupe.server.bulk import chunked
from es_neardupe.server.parallel import in_threads
from es_neardupe.verification.criterion import MatchCriterion
from es_neardupe.verification.evidence import Evidence
from es_neardupe.verification.verified_pairs import AffectedRows, verified_pairs
from es_neardupe.verification.verify import PairMemory, Verified
from es_neardupe.wording import counted

_MAX_WAITING = 0.25
"""If more than this share of the documents waits, reading all keys once costs less than queries for neighbours."""

_TERMS = 1000
"""Content hashes in one query."""


@dataclass(frozen=True, slots=True)
class RunScope:
    """The documents that a run starts from."""

    whole: bool
    """Whether the run processes all documents."""
    reason: str
    """Why it processes all of them, or how many it starts from."""
    documents: int
    """Documents with a fingerprint of the index's scheme."""
    settled: bool
    """Whether the last run had the same rules and indices, and finished."""
    seeds: tuple[DocumentQuery, ...] = ()
    """Queries for the documents that an incremental run starts from."""
    changed: bool = True
    """Whether anything was written or deleted since the last run, as far as is known."""
    broken: frozenset[str] = frozenset()
    """Ids of groups whose documents differ from the registry, and of the other groups of their clusters."""
    damaged: frozenset[str] = frozenset()
    """Ids of records in the registry that no run has stored."""
    unsatisfied: tuple[ContentPair, ...] = ()
    """The decisions *same* that the last run could not satisfy."""
    clusters: ClusterSum = field(default_factory=ClusterSum)
    """That of the records of clusters after the last run."""


@dataclass(frozen=True, kw_only=True)
class GroupRun:
    """What a run of ``group`` reads, and the rules by which it decides."""

    index: Index
    registry: Registry
    rules: RunRules
    criterion: MatchCriterion
    evidence: Evidence | None
    decisions: Decisions | None
    """None: they are ignored."""
    limit: MemoryLimit | None
    progress: Progress
    feed: ChangeFeed | None = None
    """The documents that were written since the last run; None if each of them has no similarity."""
    field_feed: ChangeFeed | None = None
    """Those that were written since the last run has used their fields; None if it has not, or `feed` shows them."""

    @property
    def shards(self) -> Sequence[int | None]:
        """The shards to read one after the other."""
        return (None,) if self.feed is None else self.feed.shards


def choose_scope(
    run: GroupRun, last: LastRun | None, decisions: WaitingDecisions, *, check: bool, rebuild: bool
) -> RunScope:
    """Choose between the whole index and a part of it. ``check`` compares all groups with the registry, and looks
    for records of clusters that others have changed; they are counted in any case. If a document that the last run has
    grouped was changed or deleted, the documents of all groups are counted. The documents that
    ``decisions`` are about are processed.

    If the measure depends on more than the words that fingerprints are made from, changes of other fields are not
    noticed, so each run processes the whole index.
    """
    index, registry, rules, feed, field_feed = run.index, run.registry, run.rules, run.feed, run.field_feed
    changed, other_fields = changed_since(index, feed, last), with_other_fields(index, field_feed)
    found = counted_documents(index, changed, other_fields)
    documents, waiting = found["documents"], found["waiting"]
    different = _differences(last, rules, run.evidence is not None)
    noted, uuids = (last.indices if last else {}), index.target.uuids
    settled = last is not None and last.finished and last.rules == rules and not different and noted == uuids
    reason = "rebuild requested" if rebuild else next(_why_whole(run, last, different, found, read=check), None)
    if reason is not None or last is None:
        return RunScope(whole=True, reason=str(reason), documents=documents, settled=settled)
    lost = (found["principals"], found["members"]) != (last.principals, last.members)
    lost = lost and not (feed is not None and feed.all_kept)  # changed documents are missing from the counts
    unreadable: frozenset[str] = frozenset()
    if check:
        registered = registry.living()
        broken = differing_groups(index, registered)
        unreadable = frozenset(id for id, one in registered.items() if one is None)
        broken |= _shrunk(index, ((id, 1) for id in registry.alone()))
        if feed is None:
            broken |= _of_several_principals(index)
    elif lost or not noted.items() <= uuids.items():  # an index was deleted, with its documents
        broken = _shrunk(index, chain(registry.sizes(), ((id, 1) for id in registry.alone())))
    else:
        broken = frozenset()
    ungrouped = queries.ungrouped(index.fields, index.scheme_id)
    related = broken | registry.related(broken)
    of_groups = (
        DocumentQuery({"terms": {index.fields.group: chunk}}) for chunk in chunked(sorted(related), queries.MAX_TERMS)
    )
    grouped = queries.grouped(index.fields, index.scheme_id)  # the others are read once, as ungrouped
    written = (DocumentQuery(queries.all_of(query, grouped), shard) for query, shard in chain(changed, other_fields))
    decided = (DocumentQuery(_with_content(index, chunk)) for chunk in chunked(sorted(decisions.contents), _TERMS))
    damaged = (DocumentQuery(queries.impossible_groupings(index.fields)),) if check else ()
    seeds = (DocumentQuery(ungrouped), *written, *of_groups, *decided, *damaged)
    reason = counted(waiting, "new or changed document")
    if broken:
        reason += f", {counted(len(broken), 'group that lost documents', 'groups that lost documents')}"
    if decisions:
        reason += f", {counted(len(decisions.versions), 'new decision')}"
    altered = lost or bool(changed or other_fields or decisions)
    return RunScope(
        whole=False,
        reason=reason,
        documents=documents,
        settled=settled,
        seeds=seeds,
        changed=altered,
        broken=related,
        damaged=unreadable,
        unsatisfied=last.unsatisfied,
        clusters=last.clusters or ClusterSum(),
    )


def damaged_clusters(registry: Registry, last: LastRun, *, read: bool = True) -> bool:
    """Whether others have changed or deleted records of clusters since the ``last`` run, which finished. Then only a
    run over all documents can form them again. Unless they are ``read``, they are only counted."""
    stored = last.clusters or ClusterSum()
    return ClusterSum.of(registry.clusters()) != stored if read else registry.count_clusters() != stored.number


def _with_content(index: Index, contents: Sequence[str]) -> dict[str, Any]:
    """Documents with one of these content hashes."""
    return {"terms": {index.fields.content: list(contents)}}


def _why_whole(
    run: GroupRun, last: LastRun | None, different: Sequence[str], found: Mapping[str, int], *, read: bool
) -> Iterator[str]:
    """Reasons why the run must process all documents; none if a part is enough. Each is looked for when it is asked
    for. ``different``: settings of the last run; ``found``: see `counted_documents`; ``read``: see `damaged_clusters`.
    """
    if last is None:
        earlier = (
            "rules, histories and decisions of reviewers about the groups that its documents have are not known here"
        )
        copied = found["members"] > 0 and run.registry.version() is None
        yield f"the first run; {earlier}" if copied else "the first run"
        return
    if not last.finished:
        yield "the last run did not finish"
    if different:
        yield f"the last run had other settings: {', '.join(different)}"
    if damaged_clusters(run.registry, last, read=read):
        yield "records of related groups were changed or deleted"
    if others := _copied(run.index, last.indices):
        yield f"restored or copied since the last run: {', '.join(others)}"
    if not run.criterion.measure.copies_are_equal:
        yield "the measure uses more than the words that keys are made from"
    for feed in (run.feed, run.field_feed):
        if unnoticed := why_unnoticed(feed, last.indices):
            yield unnoticed
    documents, waiting = found["documents"], found["waiting"]
    if waiting > _MAX_WAITING * documents:
        are = "is" if waiting == 1 else "are"
        yield f"{waiting:,} of {counted(documents, 'document')} {are} new or changed"


def _differences(last: LastRun | None, rules: RunRules, evidence: bool) -> list[str]:
    """The settings of the last run that differ from this one. A run without evidence after one with evidence makes the
    same groups, so that is no difference."""
    if last is None or last.rules is None:
        return []
    before, now = last.rules.deciding, rules.deciding
    different = [f"{name} {before[name]}" for name in sorted(now) if before[name] != now[name]]
    return different + ["evidence False"] * (evidence and not last.evidence)


def _copied(index: Index, noted: Mapping[str, str]) -> list[str]:
    """The concrete indices that the last run did not have, although some of their documents are in groups: restored
    from a snapshot, or made by shrink, split or clone. The registry can differ from the groups of such documents. An
    index that a rollover created has only documents that are alone or wait for ``group``."""
    new = [name for name, uuid in index.target.uuids.items() if noted.get(name) != uuid]
    members = queries.principals_and_members(index.fields, index.scheme_id)["members"]
    return [name for name in new if index.documents.count(queries.all_of({"term": {"_index": name}}, members))]


def _of_several_principals(index: Index) -> frozenset[str]:
    """The group ids of two or more documents that are marked as principals or alone: no run writes that."""
    found: set[str] = set()
    after: Mapping[str, Any] | None = None
    while True:
        answer = index.documents.search(queries.principals_by_group(index.fields, PAGE, after))
        groups = answer["aggregations"]["groups"]
        found.update(bucket["key"]["group"] for bucket in groups["buckets"] if bucket["doc_count"] > 1)
        after = groups.get("after_key")
        if after is None or len(groups["buckets"]) < PAGE:
            return frozenset(found)


def _shrunk(index: Index, registered: Iterable[tuple[str, Any]]) -> frozenset[str]:
    """The groups, of those ``registered`` with their size, that have lost documents, or their principal, and do not
    wait for ``group`` anyway. The server counts them. A document whose text has changed counts, since it keeps the id
    of its group until ``group`` processes it."""

    def within(sizes: dict[str, int]) -> Iterator[Set[str]]:
        answer = index.documents.search(queries.group_counts(index.fields, index.scheme_id, list(sizes)))
        for bucket in answer["aggregations"]["groups"]["buckets"]:
            complete = bucket["doc_count"] == sizes[bucket["key"]]
            if complete and bucket["principals"]["doc_count"] + bucket["ungrouped"]["doc_count"]:
                del sizes[bucket["key"]]
        yield sizes.keys()

    sources = [partial(within, dict(records)) for records in chunked(registered, queries.MAX_TERMS)]
    with closing(in_threads(sources, SEARCHES)) as parts:
        return frozenset(id for part in parts for id in part)


def affected_pairs(run: GroupRun, scope: RunScope) -> tuple[Verified, PairDecisions]:
    """The verified pairs of the documents that a part of an index starts from, and of all others that they affect, and
    the decisions about their texts, with those that the last run left unsatisfied.

    Rows ``inside`` are affected. The other rows only share a key with an affected one, or have a text of an unsatisfied
    decision: pairs between two of them are ignored. Reads the evidence about rows inside. Raises `SettingsError` for
    more documents or pairs than the limit allows.
    """
    index, criterion, rules, evidence, limit = run.index, run.criterion, run.rules.group, run.evidence, run.limit
    memory = PairMemory()
    area = _Neighbourhood(run)
    area.inside.update(hit.address for hit in area.read(scope.seeds))
    still = area.read_unsatisfied(scope.unsatisfied)
    earlier = None
    while True:
        area.widen(run.progress)
        hits, bands = [area.hits[address] for address in sorted(area.hits)], index.settings.scheme.bands
        corpus = read_corpus([hits], index.settings.prefix, bands, rules, index.target.mark_seeds)
        inside = np.array([Address(index, id) in area.inside for index, id, _ in corpus.references], np.bool_)
        if evidence is not None:
            evidence.read_about(corpus, inside)
        verified = verified_pairs(
            index,
            criterion,
            corpus,
            rules=rules,
            affected=AffectedRows(inside, memory, earlier),
            limit=limit
            and limit.holding(
                examined_documents=len(area.hits), examined_pairs=0 if evidence is None else evidence.examined
            ),
            progress=run.progress,
        )
        earlier = verified.verifier
        new = _reached(verified, criterion) & ~inside
        if not new.any():
            return replace(verified, corpus=area.counted(corpus)), PairDecisions.of(still | area.decided)
        area.inside |= {corpus.address(row) for row in np.flatnonzero(new).tolist()}


def _reached(verified: Verified, criterion: MatchCriterion) -> Flags:
    """The rows that match a row inside, and all copies of rows inside."""
    left, right = verified.linked(verified.matches(criterion.matches))
    classes = verified.classes.touching(verified.inside)
    reached_classes = classes.copy()
    reached_classes[right[classes[left]]] = True
    reached_classes[left[classes[right]]] = True
    reached = np.zeros(len(verified.inside), np.bool_)
    reached[verified.classes.in_lists(reached_classes)] = True
    return reached


class _Neighbourhood:
    """The documents read so far, and which of them are affected."""

    def __init__(self, run: GroupRun) -> None:
        self._index = run.index
        self._registry = run.registry
        self._decisions = run.decisions
        self._limit = run.limit
        self._shards = run.shards
        self._body = requested(run.index.fields, run.rules.group)
        self._queried: dict[str, set[str]] = {"bands": set(), "group": set(), "decided": set(), "content": set()}
        self._gathered: set[Address] = set()
        self._widened: set[Address] = set()
        self.hits: dict[Address, Hit] = {}
        self.inside: set[Address] = set()
        self.decided: dict[ContentPair, dict[str, Verdict]] = {}
        """The verdicts of reviewers about pairs with the content of an affected document."""

    def read(self, wanted: Iterable[DocumentQuery]) -> Iterator[Hit]:
        """The documents with a fingerprint of the scheme that match one of the queries. Adds them to ``hits``."""
        sources = [
            partial(self._pages, one.query, number)
            for one in wanted
            for number in (self._shards if one.shard is None else [one.shard])
        ]
        with closing(in_threads(sources, SEARCHES)) as pages:
            for page in pages:
                for hit in page:
                    self.hits[hit.address] = hit
                    yield hit
                if self._limit is not None:
                    self._limit.holding(examined_documents=len(self.hits))

    def _pages(self, query: dict[str, Any], shard: int | None) -> Iterator[list[Hit]]:
        target = self._index.target
        body = {"query": queries.all_of(queries.fingerprinted(target.fields, target.scheme_id), query), **self._body}
        return self._index.client.pages(target.path, body, page_size=PAGE, shard=shard)

    def widen(self, progress: Progress) -> None:
        """Read all documents in the groups of affected ones, or in other groups of their clusters, and those that a
        decision connects with an affected one: all of these are affected, too. Read those that share a key with one.

        A query for the keys of many documents cannot require several keys of one of them. If the scheme does, documents
        that share one key are read, and the join decides.
        """
        while True:
            while new := self.inside - self._gathered:
                self._gathered |= new
                progress("reading the neighbourhood", len(self._gathered), None)
                self.inside.update(hit.address for hit in self._sharing("group", new, _group_ids))
                self.inside.update(hit.address for hit in self._related(new))
            if not self._read_decided():
                break
        for _ in self._sharing("bands", self.inside - self._widened, _keys):
            pass
        self._widened |= self.inside

    def _related(self, new: set[Address]) -> Iterator[Hit]:
        """The documents of the other groups of clusters with a group of the new documents."""
        prefix, asked = self._index.target.settings.prefix, self._queried["group"]
        ids = {id for address in new for id in _group_ids(dict(stored_fields(self.hits[address].source, prefix)))}
        others = self._registry.related(ids) - asked
        asked |= others
        terms = chunked(sorted(others), queries.MAX_TERMS)
        return self.read(DocumentQuery({"terms": {self._index.fields.group: some}}) for some in terms)

    def read_unsatisfied(self, pairs: Collection[ContentPair]) -> dict[ContentPair, dict[str, Verdict]]:
        """Read the documents of decisions *same* that were not satisfied, without affecting them. Returns the decisions
        that still hold."""
        if self._decisions is None or not pairs:
            return {}
        contents = {content for pair in pairs for content in pair}
        for _ in self.read(
            DocumentQuery(_with_content(self._index, some)) for some in chunked(sorted(contents), _TERMS)
        ):
            pass
        known, wanted = self._decisions.pairs(contents), set(pairs)
        return {pair: one for pair, one in known.items() if pair in wanted and agreed_verdict(one) is Verdict.SAME}

    def _read_decided(self) -> bool:
        """Read the decisions about affected documents, and the documents that they connect with these. Returns whether
        further documents are affected."""
        if self._decisions is None:
            return False
        asked, read, prefix = self._queried["decided"], self._queried["content"], self._index.target.settings.prefix
        stored = (stored_fields(self.hits[address].source, prefix).get("content") for address in self.inside)
        contents = {one for one in stored if isinstance(one, str)} - asked
        if not contents:
            return False
        asked |= contents
        found = self._decisions.pairs(contents)
        self.decided.update(found)
        others = {content for pair in found for content in pair} - read
        read |= others
        before = len(self.inside)
        queried = (DocumentQuery(_with_content(self._index, some)) for some in chunked(sorted(others), _TERMS))
        self.inside |= {hit.address for hit in self.read(queried)}
        return len(self.inside) > before

    def counted(self, corpus: FingerprintColumns) -> FingerprintColumns:
        """The corpus with the states and corrupt fingerprints of affected documents only."""
        corrupt = [address for address in corpus.corrupt if address in self.inside]
        states = dict.fromkeys(corpus.states, 0)
        for address in self.inside.difference(corrupt):
            states[stored_fields(self.hits[address].source, self._index.target.settings.prefix)["state"]] += 1
        return replace(corpus, states=states, corrupt=corrupt)

    def _sharing(self, name: str, new: set[Address], values: Callable[[dict[str, Any]], list[str]]) -> Iterator[Hit]:
        """Other documents with a value that one of the new documents has in a ``neardupe`` field; each value is queried
        once.

        The values of a document are in one query, which does not return this document: it was read before.
        """
        return self.read(self._with_values(name, new, values))

    def _with_values(
        self, name: str, new: set[Address], values: Callable[[dict[str, Any]], list[str]]
    ) -> Iterator[DocumentQuery]:
        prefix, asked = self._index.target.settings.prefix, self._queried[name]
        terms: list[str] = []
        known: list[Address] = []
        for address in sorted(new):
            found = set(values(dict(stored_fields(self.hits[address].source, prefix)))) - asked
            if len(terms) + len(found) > queries.MAX_TERMS:
                yield DocumentQuery(queries.others({"terms": {f"{prefix}.{name}": terms}}, *known))
                terms, known = [], []
            terms += sorted(found)
            known.append(address)
            asked |= found
        if terms:
            yield DocumentQuery(queries.others({"terms": {f"{prefix}.{name}": terms}}, *known))


def _group_ids(stored: dict[str, Any]) -> list[str]:
    group = group_of(stored)
    return [] if group is None else [group]


def _keys(stored: dict[str, Any]) -> list[str]:
    keys = stored.get("bands") or []
    return [key for key in ([keys] if isinstance(keys, str) else keys) if isinstance(key, str)]
