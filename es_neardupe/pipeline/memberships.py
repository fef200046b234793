"""What the stored groups say of members and their principals, held against the texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from es_neardupe import documents, queries
from es_neardupe.audits import Denied, addressed
from es_neardupe.bulk import chunked
from es_neardupe.clients import Client
from es_neardupe.fetch import fetch
from es_neardupe.indices import Target
from es_neardupe.keys import features
from es_neardupe.measures import resemblance
from es_neardupe.records import Hit, Reference
from es_neardupe.registry import Registry
from es_neardupe.scoring import MeasureName
from es_neardupe.stages.verdicts import FOUND, Candidacy, described, source_of

__all__ = ["Membership", "by_resemblance", "memberships"]

_FETCH = 50
_PAGE = 1000

_TOLERANCE = 1e-6
"""A server may give the stored number back with the precision of a 32-bit float."""


class Membership(Denied):
    """A stored similarity (``claimed``) and the one that the two texts have."""

    @property
    def holds(self) -> bool:
        """Whether both are the same."""
        return abs(self.claimed - self.actual) <= _TOLERANCE


def by_resemblance(client: Client, target: Target) -> bool:
    """Whether the last run of ``group`` came to its end and went by the resemblance: then the groups can be judged."""
    last = Registry(client, target).last_run()
    return last is not None and last.finished and last.settings.get("measure") == MeasureName.RESEMBLANCE.value


def memberships(
    client: Client, target: Target, sample: Sequence[Reference], candidacy: Candidacy, least: float
) -> Iterator[Membership]:
    """The members among some documents that are stored as ``least`` similar to their principal.

    Left out are those where either text is no longer the one that was fingerprinted, or no principal is stored.
    """
    settings = target.settings
    source = [*source_of(settings), target.fields.principal, target.fields.similarity]
    for references in chunked(sample, _FETCH):
        present = (hit for hit in fetch(client, references, source) if hit is not None)
        members = {hit.address: hit for hit in present if _claim(hit, target) >= least}
        principals = _principals(client, target, list(members.values()), source)
        hits = [*members.values(), *principals.values()]
        texts = [documents.text_of(hit.source, settings.fields) for hit in hits]
        judged = zip(described(hits, settings, candidacy).condition, features(texts, settings.shingle), strict=True)
        sound = {hit.address: found for hit, (code, found) in zip(hits, judged, strict=True) if code == FOUND}
        for member in members.values():
            principal = principals.get(_group(member, target))
            if principal is not None and {member.address, principal.address} <= sound.keys():
                actual = resemblance(sound[member.address], sound[principal.address])
                yield Membership(*addressed(member.address, principal.address), _claim(member, target), actual)


def _claim(hit: Hit, target: Target) -> float:
    """The stored similarity of a member; -1 for a principal and for a document that is in no group."""
    grouping = documents.decode_grouping(_stored(hit, target))
    return -1.0 if grouping is None or grouping.principal else grouping.similarity


def _group(hit: Hit, target: Target) -> str:
    return str(_stored(hit, target)["group"])


def _stored(hit: Hit, target: Target) -> Mapping[str, Any]:
    return documents.stored_fields(hit.source, target.settings.prefix)


def _principals(client: Client, target: Target, members: Sequence[Hit], source: Sequence[str]) -> dict[str, Hit]:
    """Group -> its principal as it is this moment, where there is just one."""
    groups = sorted({_group(hit, target) for hit in members})
    body = {"query": queries.groups_by_id(target.fields, groups), "_source": False}
    pages = client.pages(target.path, body, page_size=_PAGE) if groups else ()
    references = [hit.reference for page in pages for hit in page]
    found: dict[str, list[Hit]] = {}
    for hit in fetch(client, references, source):
        grouping = None if hit is None else documents.decode_grouping(_stored(hit, target))
        if hit is not None and grouping is not None and grouping.principal:
            found.setdefault(grouping.group, []).append(hit)
    return {group: hits[0] for group, hits in found.items() if len(hits) == 1}
