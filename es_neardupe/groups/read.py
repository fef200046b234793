"""Groups as stored in the documents, each with its principal and members."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from es_neardupe.errors import Forbidden, NameTaken, NotFound
from es_neardupe.groups.registry import GroupEvent, GroupRecord, Registry
from es_neardupe.groups.sizes import largest_groups
from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.index.stored_fields import count_of, decode_grouping, group_of, stored_fields
from es_neardupe.progress import Progress, silent
from es_neardupe.records import Address, Hit, Reference, one_line
from es_neardupe.server.bulk import chunked
from es_neardupe.server.responses import hit_of
from es_neardupe.wording import command

_TERMS = 1000

_PRECISION = 1e-6
"""More than the error of 32-bit floats, from which some servers rebuild ``_source``."""


@dataclass(frozen=True)
class Member:
    """A document of a group. The similarity of the principal is 1."""

    index: str
    id: str
    similarity: float
    fields: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    """Field -> its text, for the fields to show."""
    _routing: str | None = field(default=None, compare=False, repr=False)

    @property
    def address(self) -> Address:
        """Index and id."""
        return Address(self.index, self.id)

    @property
    def reference(self) -> Reference:
        """Index, id and routing."""
        return self.index, self.id, self._routing


@dataclass(frozen=True)
class Group:
    """A group of two or more documents: the principal, then the other members by descending similarity."""

    group: str
    principal: Address | None
    """None if this user may not read that document, or if it was deleted: then the next run of ``group`` chooses
    another one."""
    size: int
    min_similarity: float
    members: tuple[Member, ...]
    known: GroupRecord | None = None
    """Its record in the registry; None if there is none, if it is about other documents, or if this user may not read
    the registry."""
    other_facts: bool = False
    """Whether it is related to another group only because texts of both have the same form, and other facts."""

    def __repr__(self) -> str:
        principal = None if self.principal is None else self.principal.id
        return one_line(self, group=self.group, principal=principal, size=self.size, min_similarity=self.min_similarity)


@dataclass(frozen=True)
class MemberPage:
    """Some members of a group, in the order of `Group`; those with the same content follow each other."""

    group: str
    principal: Member | None
    """See `Group`."""
    size: int
    reachable: int
    """Members that can be read page by page: the result window of the index limits them."""
    min_similarity: float
    start: int
    """Number of the first member, from 0."""
    members: tuple[Member, ...]
    content: Mapping[Address, str]
    """The stored content hashes of principal and members, "" for none."""
    tokens: Mapping[Address, int]
    """The stored numbers of words of principal and members."""
    known: GroupRecord | None
    """See `Group`."""
    related: tuple[str, ...] = ()
    """The ids of the other groups of its cluster, ascending."""
    same_form: tuple[str, ...] = ()
    """The ids of other groups whose texts have the same form, and other facts, ascending."""


def read_members(index: Index, group: str, *, start: int = 0, size: int = 200) -> MemberPage | None:
    """A page of the members of a group of an opened index, with three searches, whatever the number of members; the
    last page if there are fewer. None for an unknown group."""
    if not group:
        return None
    fields, window = index.fields, index.target.max_result_window
    body = {"size": 10, "query": queries.groups_by_id(fields, [group]), "_source": _source(index)}
    leading = [hit_of(hit) for hit in index.documents.search(body)["hits"]["hits"]]
    record = known_records(index, [group]).get(group)
    principal = _principal([Member(hit.index, hit.id, 1.0, _routing=hit.routing) for hit in leading], record)
    first = int(principal is not None)
    start = min(start, (window + first - 1) // size * size)
    answer = index.documents.search(_page_of_members(index, group, start, size, first))
    total = int(answer["hits"]["total"]["value"])
    if not total:
        return None
    if start >= total + first:
        start = (total + first - 1) // size * size
        answer = index.documents.search(_page_of_members(index, group, start, size, first))
    hits = [hit_of(hit) for hit in answer["hits"]["hits"]]
    members: dict[str, list[Member]] = {group: [principal] if principal is not None and start == 0 else []}
    for hit in hits:
        _add(members, hit, index.settings.prefix)
    stored = {hit.address: stored_fields(hit.source, index.settings.prefix) for hit in [*leading, *hits]}
    (lowest,) = answer["aggregations"]["least"]["hits"]["hits"]
    return MemberPage(
        group=group,
        principal=principal,
        size=total + first,
        reachable=min(total, window) + first,
        min_similarity=float(stored_fields(lowest["_source"], index.settings.prefix)["similarity"]),
        start=start,
        members=tuple(members[group]),
        content={address: one.get("content") or "" for address, one in stored.items()},
        tokens={address: count_of(one, "tokens") for address, one in stored.items()},
        known=matching_record(record, total + first),
    )


def _source(index: Index) -> list[str]:
    fields = index.fields
    return [fields.group, fields.principal, fields.similarity, fields.content, fields.tokens]


def _page_of_members(index: Index, group: str, start: int, size: int, first: int) -> dict[str, Any]:
    """A search for some members without the principal, which is the ``first`` one on the first page."""
    fields = index.fields
    similar = {"range": {fields.similarity: {"gte": 0, "lte": 1}}}
    least = {"size": 1, "sort": [{fields.similarity: "asc"}], "_source": [fields.similarity]}
    skipped = max(start - first, 0)
    return {
        "from": skipped,
        "size": min(size if start else size - first, index.target.max_result_window - skipped),
        "query": queries.all_of(queries.grouped_members(fields, group), similar),
        "_source": _source(index),
        "sort": [
            {fields.similarity: "desc"},
            {fields.content: {"order": "asc", "unmapped_type": "keyword"}},
            {"_seq_no": "asc"},
        ],
        "track_total_hits": True,
        "aggs": {"least": {"top_hits": least}},
    }


def read_member(index: Index, group: str, document: str | Address) -> tuple[Member, int] | None:
    """A member of a group of an opened index, and its stored number of words; None for any other document. If several
    indices have an id, that of the first one."""
    concrete, id = document if isinstance(document, Address) else (None, document)
    known = queries.all_of({"term": {index.fields.group: group}}, {"ids": {"values": [id]}})
    answer = index.documents.search({"size": 100, "query": known, "_source": _source(index)})
    found = []
    for raw in answer["hits"]["hits"]:
        hit = hit_of(raw)
        stored = stored_fields(hit.source, index.settings.prefix)
        grouping = decode_grouping(stored)
        if grouping is not None and concrete in (None, hit.index):
            member = Member(hit.index, hit.id, grouping.similarity, _routing=hit.routing)
            found.append((member, count_of(stored, "tokens")))
    return min(found, key=lambda one: one[0].address, default=None)


def end_of_group(index: Index, group: str) -> GroupEvent | None:
    """What ended a group: merged into another one, or dissolved. None if there never was such a group, as far as this
    user may know, or if it has not ended."""
    if not group:
        return None
    with suppress(Forbidden, NameTaken):
        record = Registry(index).records({group}).get(group)
        if record is not None and record.ended is not None and record.history:
            return record.history[-1]
    return None


def unknown_group(index: Index, group: str) -> NotFound:
    """The error that there is no such group, or no longer."""
    if (end := end_of_group(index, group)) is not None:
        how = "dissolved it" if end.group is None else f"merged it into {end.group!r}"
        return NotFound(
            f"Group {group!r} of index {index.name} no longer exists: on {end.at[:10]}, `group` {how}. "
            f"`{command('groups', index.name)}` lists the groups.",
            status=404,
            type="group_not_found",
        )
    return NotFound(
        f"Unknown group {group!r} in index {index.name}: no two documents have this id. "
        f"`{command('groups', index.name)}` lists the groups.",
        status=404,
        type="group_not_found",
    )


def matching_record(record: GroupRecord | None, size: int) -> GroupRecord | None:
    """The record of a group if it is about these documents: this user may not be allowed to read some, or they were
    deleted."""
    return record if record is not None and record.size == size else None


def read_groups(index: Index, *, min_size: int = 2, top: int | None = None, group: str | None = None) -> list[Group]:
    """As `groups`, but from the documents alone: ``known`` is None."""
    found = None if top is None or group is not None else _largest_groups(index, top)
    if found is None:
        found = _groups(index, queries.grouped_members(index.fields, group))
    large = [one for one in found if one.size >= min_size]
    large.sort(key=lambda one: (-one.size, one.group))
    return large[:top]


def _largest_groups(index: Index, number: int) -> list[Group] | None:
    """So many of the largest groups, without reading the others. None if they are too many, or if the documents that
    are read are not those that were counted: some changed meanwhile, or are damaged or deleted."""
    if number > _TERMS:
        return None
    sizes = largest_groups(index, number)
    found = _groups(index, queries.members_of(index.fields, list(sizes)))
    return found if {one.group: one.size for one in found} == sizes else None


def _groups(index: Index, query: dict[str, Any]) -> list[Group]:
    """The groups whose members match a query."""
    members, principals = _members_and_principals(index, query)
    records = known_records(index, [id for id, several in principals.items() if len(several) > 1])
    return [_group(id, _principal(principals.get(id, []), records.get(id)), some) for id, some in members.items()]


def groups_with_ids(index: Index, ids: Collection[str]) -> list[Group]:
    """The groups of an opened index with these ids, ascending; a document that is alone is a group of one."""
    prefix = index.settings.prefix
    members: dict[str, list[Member]] = {}
    principals: dict[str, list[Member]] = {}
    for chunk in chunked(sorted(ids), _TERMS):
        for hit in _read(index, {"terms": {index.fields.group: chunk}}):
            grouping = decode_grouping(stored_fields(hit.source, prefix))
            if grouping is not None:
                _add(principals if grouping.principal else members, hit, prefix)
    records = known_records(index, ids)
    return [
        _group(id, _principal(principals.get(id, []), records.get(id)), members.get(id, []))
        for id in sorted(members.keys() | principals.keys())
    ]


def differing_groups(index: Index, registered: Mapping[str, GroupRecord | None]) -> frozenset[str]:
    """The groups whose size, principal or similarities differ between documents and registry, or that only one of them
    has; None is a damaged record."""
    members, principals = _members_and_principals(index, queries.grouped_members(index.fields))

    def differs(id: str) -> bool:
        record, similarities = registered[id], [member.similarity for member in members[id]]
        return record is None or (
            record.size != 1 + len(similarities)
            or [one.address for one in principals.get(id, [])] != [record.principal]
            or abs(record.min_similarity - min(similarities)) > _PRECISION
            or abs(record.mean_similarity - sum(similarities) / len(similarities)) > _PRECISION
        )

    different = {id for id in members.keys() & registered.keys() if differs(id)}
    return frozenset(different | (members.keys() ^ registered.keys()))


def _members_and_principals(
    index: Index, query: dict[str, Any]
) -> tuple[dict[str, list[Member]], dict[str, list[Member]]]:
    """Group id -> its members that match a query, without the principal; and the documents that are marked as its
    principal."""
    prefix = index.settings.prefix
    members: dict[str, list[Member]] = {}
    for hit in _read(index, query):
        _add(members, hit, prefix)
    principals: dict[str, list[Member]] = {}
    for ids in chunked(sorted(members), _TERMS):
        for hit in _read(index, queries.groups_by_id(index.fields, ids)):
            if (id := group_of(stored_fields(hit.source, prefix))) is not None:  # else edited by another program
                principals.setdefault(id, []).append(Member(hit.index, hit.id, 1.0, _routing=hit.routing))
    return members, principals


def known_records(index: Index, ids: Collection[str]) -> dict[str, GroupRecord]:
    """The records of these groups in the registry; none if this user may not read it."""
    try:
        return Registry(index).records(ids)
    except Forbidden:
        return {}


def _principal(candidates: list[Member], record: GroupRecord | None) -> Member | None:
    """The principal of a group. There can be two: a former one whose text has changed keeps the id until ``enrich``
    updates it. Then the registry decides, and the other document is in no group."""
    known = [one for one in candidates if record is not None and one.address == record.principal]
    return min(known or candidates, key=lambda one: one.address, default=None)


def _read(index: Index, query: dict[str, Any]) -> Iterator[Hit]:
    fields = index.fields
    body = {"query": query, "_source": [fields.group, fields.principal, fields.similarity]}
    for page in index.documents.pages(body, page_size=2000):
        yield from page


def _add(members: dict[str, list[Member]], hit: Hit, prefix: str) -> None:
    grouping = decode_grouping(stored_fields(hit.source, prefix))
    if grouping is not None:
        members.setdefault(grouping.group, []).append(
            Member(hit.index, hit.id, grouping.similarity, _routing=hit.routing)
        )


def _group(id: str, principal: Member | None, members: list[Member]) -> Group:
    others = sorted(members, key=lambda member: (-member.similarity, member.index, member.id))
    ordered = others if principal is None else [principal, *others]
    return Group(
        group=id,
        principal=principal.address if principal else None,
        size=len(ordered),
        min_similarity=min((member.similarity for member in others), default=1.0),
        members=tuple(ordered),
    )


def groups_with(index: Index, query: Mapping[str, Any]) -> Iterator[str]:
    """The ids of the groups that have a document that matches a query, ascending if they are many."""
    index.documents.refresh_if_allowed()
    grouped = queries.all_of(queries.fingerprinted(index.fields, index.scheme_id), query)
    try:
        for one in index.documents.buckets(grouped, {"group": index.fields.group}):
            yield one["group"]
    except queries.TooManyDocuments:  # raised before the first one: documents and entries are joined in this process
        found = set[str]()
        body = {"query": grouped, "_source": [index.fields.group]}
        for page in index.documents.pages(body, page_size=5000):
            found.update(group_of(stored_fields(hit.source, index.settings.prefix)) or "" for hit in page)
        yield from sorted(found - {""})


def with_other_documents(index: Index, groups: Collection[str]) -> set[str]:
    """Those of these groups that have several documents: a document that is alone has a group id as well."""
    return set(groups_with(index, queries.members_of(index.fields, sorted(groups)))) if groups else set()


def texts_of_groups(index: Index, query: Mapping[str, Any], maximum: int | None = None) -> dict[str, set[str]]:
    """Group -> content hashes of its documents that match a query, at most ``maximum`` in all."""
    index.documents.refresh_if_allowed()
    matching = queries.all_of(queries.fingerprinted(index.fields, index.scheme_id), query)
    names = {"group": index.fields.group, "content": index.fields.content}
    found: dict[str, set[str]] = defaultdict(set)
    for one in islice(index.documents.buckets(matching, names), maximum):
        found[one["group"]].add(one["content"])
    return found


def groups_of_texts(index: Index, contents: Collection[str], progress: Progress = silent) -> dict[str, set[str]]:
    """Group -> which of some content hashes its documents have."""
    found: dict[str, set[str]] = defaultdict(set)
    done = 0
    for chunk in chunked(sorted(contents), queries.MAX_TERMS):
        progress("texts", done, len(contents))
        for group, some in texts_of_groups(index, {"terms": {index.fields.content: chunk}}).items():
            found[group] |= some
        done += len(chunk)
    return found
