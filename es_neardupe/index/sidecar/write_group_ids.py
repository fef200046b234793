"""Group ids written into the user's documents (``--write-group``), and nothing else.

Each entry says whether its document has its group id (``mirrored``), so that a killed run can be continued. A document
that changed since its fingerprint was made is left until ``enrich`` has seen it: otherwise the version that our write
gives it would hide that change.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from es_neardupe.index.sidecar.indices import REFERENCE
from es_neardupe.index.sidecar.queries import SidecarNames
from es_neardupe.index.storage import GroupIdsWritten
from es_neardupe.index.stored_fields import stored_fields
from es_neardupe.index.target import IndexTarget
from es_neardupe.records import Action, Hit, Outcome
from es_neardupe.server.bulk import write
from es_neardupe.server.search import count, refresh

if TYPE_CHECKING:
    from es_neardupe.index.index import Index

__all__ = ["write_group_ids"]


def write_group_ids(index: Index, *, batch: int, workers: int, dry_run: bool) -> GroupIdsWritten:
    """Write the group ids that the user's documents lack."""
    names, plain = SidecarNames(index.target), index.plain
    lacking = {"bool": {"must_not": [{"term": {f"{REFERENCE}.mirrored": True}}]}}
    if dry_run:
        return GroupIdsWritten(written=count(plain, names.path, lacking))
    refresh(index.client, index.path)
    tally = Counter[str]()
    for page in plain.pages(names.path, {"query": lacking, "_source": [index.fields.group, REFERENCE]}):
        found = {(names.theirs[hit.index], hit.id): hit for hit in page}
        updates = [_update(hit, concrete, index.target) for (concrete, _), hit in found.items()]
        outcomes = list(write(plain, updates, batch=batch, workers=workers, versions=True))
        marks = [_marking(found[one.action.address], one) for one in outcomes if one.done]
        marked = sum(one.done for one in write(plain, marks, batch=batch, workers=workers))
        tally.update(written=len(marks), left=len(outcomes) - marked)
    refresh(index.client, index.path)
    return GroupIdsWritten(tally["written"], tally["left"])


def _update(hit: Hit, index: str, target: IndexTarget) -> Action:
    reference = hit.source[REFERENCE]
    prefix = target.settings.prefix
    change: dict[str, Any] = {prefix: {"group": stored_fields(hit.source, prefix).get("group")}}
    version = reference["seq_no"], reference["primary_term"]
    return Action("update", index, hit.id, {"doc": change}, hit.routing, *version)


def _marking(entry: Hit, outcome: Outcome) -> Action:
    """The entry is now of the version that our own write gave the document."""
    reference = {"mirrored": True, "seq_no": outcome.seq_no, "primary_term": outcome.primary_term}
    version = entry.seq_no, entry.primary_term
    return Action("update", entry.index, entry.id, {"doc": {REFERENCE: reference}}, entry.routing, *version)
