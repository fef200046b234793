"""Groups as stored in the documents, each with its principal and members."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from es_neardupe.errors import Forbidden, SettingsError
from es_neardupe.groups.registry import GroupRecord, Registry
from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.index.stored_fields import decode_grouping, stored_fields
from es_neardupe.records import Address, Hit, Reference, one_line
from es_neardupe.server.bulk import chunked

__all__ = ["Group", "Member", "known_records", "read_groups"]


_TERMS = 1000


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

    def __repr__(self) -> str:
        principal = None if self.principal is None else self.principal.id
        return one_line(self, group=self.group, principal=principal, size=self.size, min_similarity=self.min_similarity)


def read_groups(index: Index, *, min_size: int = 2, top: int | None = None, group: str | None = None) -> list[Group]:
    """As `groups`, but from the documents alone: ``known`` is None."""
    if min_size < 2 or (top is not None and top < 1):
        raise SettingsError("`min_size` must be 2 or more, `top` 1 or more.")
    prefix = index.settings.prefix
    members: dict[str, list[Member]] = {}
    for hit in _read(index, queries.grouped_members(index.fields, group)):
        _add(members, hit, prefix)
    principals: dict[str, list[Member]] = {}
    for ids in chunked(sorted(members), _TERMS):
        for hit in _read(index, queries.groups_by_id(index.fields, ids)):
            id = stored_fields(hit.source, prefix).get("group", "")
            principals.setdefault(id, []).append(Member(hit.index, hit.id, 1.0, _routing=hit.routing))
    records = known_records(index, [id for id, several in principals.items() if len(several) > 1])
    found = [_group(id, _principal(principals.get(id, []), records.get(id)), some) for id, some in members.items()]
    large = [one for one in found if one.size >= min_size]
    large.sort(key=lambda one: (-one.size, one.group))
    return large[:top]


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
    for page in index.client.pages(index.path, body, page_size=2000):
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
        min_similarity=min(member.similarity for member in others),
        members=tuple(ordered),
    )
