"""Which document of each group a policy would keep. Nothing is deleted: that is the user's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from es_neardupe import documents, queries
from es_neardupe.asking import refresh_if_allowed
from es_neardupe.bulk import chunked
from es_neardupe.clients import Client
from es_neardupe.indices import Target
from es_neardupe.pipeline.groups import Group, read_groups
from es_neardupe.pipeline.ruling import policy_of
from es_neardupe.records import Address, Hit
from es_neardupe.registry import Registry
from es_neardupe.rules import Policy
from es_neardupe.settings import DEFAULT_PREFIX
from es_neardupe.sidecar import opened

__all__ = ["Advice", "suggest_keep"]

_TERMS = 1000


@dataclass(frozen=True)
class Advice:
    """What a policy says of one group."""

    group: str
    policy: str
    keep: Address
    """The document that comes first by the policy."""
    redundant: tuple[Address, ...]
    """All others, in the order of the policy."""
    is_principal: bool
    """Whether the document to keep is the one that the others were compared with."""


def suggest_keep(
    client: Client,
    index: str,
    *,
    policy: str | None = None,
    min_size: int = 2,
    top: int | None = None,
    group: str | None = None,
    prefix: str = DEFAULT_PREFIX,
) -> list[Advice]:
    """For each group, largest first, the document that ``policy`` keeps, and the others.

    Policies are those of ``group --principal``; by default the one that the index was grouped by. Raises
    `SettingsError` for one that cannot be read or a field that is not there.
    """
    client, target = opened(client, index, prefix)
    if policy is None:
        last = Registry(client, target).last_run()
        policy = str(last.settings["principal"]) if last else "longest"
    by = policy_of(client, target, policy)
    refresh_if_allowed(client, target.path)
    found = read_groups(client, target, min_size=min_size, top=top, group=group)
    advice = (one for part in chunked(found, _TERMS) for one in _advice(client, target, by, part))
    return list(advice)


def _advice(client: Client, target: Target, policy: Policy, found: list[Group]) -> Iterator[Advice]:
    members: dict[str, list[Hit]] = {one.group: [] for one in found}
    fields = target.fields
    body = {
        "query": queries.all_of({"terms": {fields.group: sorted(members)}}),
        "_source": [fields.group, fields.tokens],
        "docvalue_fields": [policy.column.request] if policy.column else [],
    }
    for page in client.pages(target.path, body):
        for hit in page:
            stored = documents.stored_fields(hit.source, target.settings.prefix)
            members.get(documents.group_of(stored) or "", []).append(hit)
    for one in found:
        ordered = _ordered(members[one.group], policy, target.settings.prefix)
        if len(ordered) > 1:  # not deleted meanwhile
            principal = one.members[0].address if one.principal is not None else None
            yield Advice(one.group, policy.name, ordered[0], tuple(ordered[1:]), ordered[0] == principal)


def _ordered(hits: list[Hit], policy: Policy, prefix: str) -> list[Address]:
    """As principals are chosen: by the policy, then the longest, then by id."""
    places = policy.places([hit.source for hit in hits])
    keys = [
        (place, -documents.count_of(documents.stored_fields(hit.source, prefix), "tokens"), hit.id, hit.index)
        for place, hit in zip(places, hits, strict=True)
    ]
    return [hits[k].address for k in sorted(range(len(hits)), key=keys.__getitem__)]
