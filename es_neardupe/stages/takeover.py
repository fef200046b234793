"""Stage: documents with keys under two prefixes -> the updates that put those of one in the place of the other's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from es_neardupe import documents
from es_neardupe.records import Action, Hit
from es_neardupe.schema import fields_mapping

__all__ = ["takeovers"]


def takeovers(hits: Iterable[Hit], source: str, target: str) -> Iterator[Action]:
    """Partial updates, refused by the server if the document changed since; none where both say the same.

    Documents without keys under ``source`` are left alone.
    """
    for hit in hits:
        wanted, there = (_every(hit, prefix) for prefix in (source, target))
        if wanted["scheme"] is not None and wanted != there:
            yield Action(
                op="update",
                index=hit.index,
                id=hit.id,
                body={"doc": {target: wanted}},
                routing=hit.routing,
                seq_no=hit.seq_no,
                primary_term=hit.primary_term,
            )


def _every(hit: Hit, prefix: str) -> dict[str, Any]:
    """Each of our fields, null where there is none: a partial update leaves what it does not name."""
    stored = documents.stored_fields(hit.source, prefix)
    return {name: stored.get(name) for name in fields_mapping()["properties"]}
