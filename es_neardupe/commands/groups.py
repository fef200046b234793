"""Groups of an index, history of a group, and suggestions which document of each group to keep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from es_neardupe import options
from es_neardupe.candidates.who_may_meet import Policy
from es_neardupe.errors import Forbidden
from es_neardupe.groups.decisions import Decision, Decisions, Verdict
from es_neardupe.groups.read import Group, known_records, matching_record, read_groups, unknown_group
from es_neardupe.groups.registry import GroupRecord, Registry, remembered
from es_neardupe.groups.rules import policy_of
from es_neardupe.index import queries
from es_neardupe.index.index import Index, opened
from es_neardupe.index.permissions import check_sees_all
from es_neardupe.index.shown_fields import ShownFields, read_shown_fields, shown_fields
from es_neardupe.index.stored_fields import count_of, group_of, stored_fields
from es_neardupe.records import Address, Hit, one_line
from es_neardupe.server.bulk import chunked
from es_neardupe.server.search import refresh_if_allowed
from es_neardupe.tables import Cell, Table, Tabular

__all__ = ["Groups", "KeepAdvice", "KeepAdviceList", "group_history", "groups", "suggest_keep", "with_titles"]


class Groups(list[Group], Tabular):
    """Groups, largest first."""

    def __init__(self, found: Iterable[Group], names: Sequence[str]) -> None:
        """``names``: the fields to show of all members."""
        super().__init__(found)
        self._names = tuple(names)

    def table(self) -> Table:
        """A row for each member of each group, the principal first."""
        columns: dict[str, type] = {"group": str, "size": int, "min_similarity": float}
        columns |= {"diameter": int, "weakest": float, "principal_index": str, "principal_id": str}
        columns |= {"index": str, "id": str, "is_principal": bool, "similarity": float}
        columns |= {f"fields_{name}": str for name in self._names}
        return Table(columns, self._rows())

    def _rows(self) -> Iterator[tuple[Cell, ...]]:
        for one in self:
            known = (None, None) if one.known is None else (one.known.diameter, one.known.weakest)
            head = (one.group, one.size, one.min_similarity, *known, *(one.principal or (None, None)))
            for member in one.members:
                document = (member.index, member.id, member.address == one.principal, member.similarity)
                yield *head, *document, *map(member.fields.get, self._names)


def groups(
    index: Index,
    *,
    min_size: options.MinSize = 2,
    top: options.TopGroups = None,
    group: options.GroupId = None,
    fields: options.TitleFields = (),
) -> Groups:
    """The groups of an index, largest first; with ``group`` only this one.

    Reads only grouped documents. ``fields`` are shown of all members; None: none.
    """
    index = opened(index, groups=True)
    shown = shown_fields(index, fields)
    refresh_if_allowed(index.client, index.path)
    found = read_groups(index, min_size=min_size, top=top, group=group)
    records = known_records(index, [one.group for one in found])
    described = [replace(one, known=matching_record(records.get(one.group), one.size)) for one in found]
    return Groups(_with_fields(index, described, shown), shown.names)


def with_titles(index: Index, found: list[Group], fields: options.TitleFields = ()) -> list[Group]:
    """Some groups of an index with the ``fields`` to show of their principals, not of other members."""
    index = opened(index, groups=True)
    shown = shown_fields(index, fields)
    principals = [replace(one, members=one.members[:1]) for one in found]
    titled = _with_fields(index, principals, shown)
    return [replace(one, members=(*head.members, *one.members[1:])) for one, head in zip(found, titled, strict=True)]


def _with_fields(index: Index, found: list[Group], shown: ShownFields) -> list[Group]:
    values = read_shown_fields(index, shown, [member.reference for one in found for member in one.members])
    return [
        replace(one, members=tuple(replace(two, fields=values.get(two.address, {})) for two in one.members))
        for one in found
    ]


def group_history(index: Index, group: str) -> GroupRecord:
    """The record of a group in the registry, even if it has ended. Raises `NotFound` for an unknown id."""
    index = opened(index, groups=True)
    check_sees_all(index, "the history of groups")
    record = Registry(index).records({group}).get(group)
    if record is None:
        raise unknown_group(index, group)
    return record


_TERMS = 1000


@dataclass(frozen=True)
class KeepAdvice:
    """Suggestion which document of a group to keep."""

    group: str
    policy: str
    keep: Address
    """The first document by the policy."""
    redundant: tuple[Address, ...]
    """All others, in the order of the policy."""
    is_principal: bool
    """Whether the document to keep is the principal."""
    reviewer: str | None = None
    """Who decided to keep it; None: the policy did, because no reviewer has decided, or they disagree."""

    def __repr__(self) -> str:
        return one_line(
            self,
            group=self.group,
            policy=self.policy,
            keep=self.keep.id,
            redundant=len(self.redundant),
            is_principal=self.is_principal,
        )


class KeepAdviceList(list[KeepAdvice], Tabular):
    """Suggestions for groups, largest first."""

    def table(self) -> Table:
        """A row for each redundant document."""
        columns: dict[str, type] = {"group": str, "policy": str, "keep_index": str, "keep_id": str}
        columns |= {"is_principal": bool, "reviewer": str, "redundant_index": str, "redundant_id": str}
        rows = (
            (one.group, one.policy, *one.keep, one.is_principal, one.reviewer, *other)
            for one in self
            for other in one.redundant
        )
        return Table(columns, rows)


def suggest_keep(
    index: Index,
    *,
    policy: options.KeepPolicy = None,
    min_size: options.MinSize = 2,
    top: options.TopGroups = None,
    group: options.GroupId = None,
) -> KeepAdviceList:
    """For each group, largest first, the document to keep, and the others in the order of ``policy``. Deletes nothing.

    A document that reviewers decided to *keep* is kept; if there is none, or they disagree, or this user may not read
    their decisions, the first one by ``policy`` is.

    The policies are those of ``group --principal``; the default is that of the last run. Raises `SettingsError` for an
    invalid policy or an unknown field.
    """
    index = opened(index, groups=True)
    if policy is None:
        _, rules = remembered(Registry(index).last_run(), index.settings)
        policy = rules.principal.name
    chosen = policy_of(index, policy)
    refresh_if_allowed(index.client, index.path)
    found = read_groups(index, min_size=min_size, top=top, group=group)
    advice = (one for part in chunked(found, _TERMS) for one in _advice(index, chosen, part))
    return KeepAdviceList(advice)


def _advice(index: Index, policy: Policy, groups: list[Group]) -> Iterator[KeepAdvice]:
    members: dict[str, list[Hit]] = {one.group: [] for one in groups}
    fields = index.fields
    body = {
        "query": queries.all_of({"terms": {fields.group: sorted(members)}}),
        "_source": [fields.group, fields.tokens, fields.content],
        "docvalue_fields": [policy.column.request] if policy.column else [],
    }
    for page in index.client.pages(index.path, body):
        for hit in page:
            stored = stored_fields(hit.source, index.settings.prefix)
            members.get(group_of(stored) or "", []).append(hit)
    kept = _kept(index, [hit for hits in members.values() for hit in hits])
    for one in groups:
        ordered = _ordered(members[one.group], policy, index.settings.prefix)
        if len(ordered) > 1:  # otherwise they were deleted meanwhile
            principal = one.members[0].address if one.principal is not None else None
            decided = {address: kept[address] for address in ordered if address in kept}
            keep, authors = ordered[0], ""
            if len({decision.contents for decision in decided.values()}) == 1:
                seen = {address for decision in decided.values() for address in decision.documents}
                keep = next((address for address in decided if address in seen), next(iter(decided)))
                authors = decided[keep].author
            others = tuple(address for address in ordered if address != keep)
            yield KeepAdvice(one.group, policy.name, keep, others, keep == principal, authors or None)


def _kept(index: Index, hits: Sequence[Hit]) -> dict[Address, Decision]:
    """The documents whose text a reviewer decided to keep, with the first such decision. None for a user who may not
    read decisions."""
    contents = ((hit.address, stored_fields(hit.source, index.settings.prefix).get("content")) for hit in hits)
    stored = {address: content for address, content in contents if isinstance(content, str)}
    try:
        found = Decisions(index).about(set(stored.values()))
    except Forbidden:
        return {}
    keep = {one.contents[0]: one for one in reversed(found) if one.verdict is Verdict.KEEP}
    return {address: keep[content] for address, content in stored.items() if content in keep}


def _ordered(hits: list[Hit], policy: Policy, prefix: str) -> list[Address]:
    """In the order in which principals are chosen: by the policy, then the longest, then by id."""
    places = policy.ranks(policy.deciding(hit.source) for hit in hits).tolist()
    keys = [
        (place, -count_of(stored_fields(hit.source, prefix), "tokens"), hit.id, hit.index)
        for place, hit in zip(places, hits, strict=True)
    ]
    return [hits[k].address for k in sorted(range(len(hits)), key=keys.__getitem__)]
