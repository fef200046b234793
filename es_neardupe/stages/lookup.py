"""One document by its id, wherever behind the name it lies; and others compared with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from es_neardupe import documents
from es_neardupe.asking import search
from es_neardupe.bulk import chunked
from es_neardupe.clients import Client
from es_neardupe.errors import NotFound, SettingsError
from es_neardupe.fetch import fetch
from es_neardupe.indices import Target
from es_neardupe.records import Hit, Reference
from es_neardupe.scoring import Measure, Prepared

__all__ = ["compared_with", "present_source"]

_FETCH = 50
"""Texts compared at a time."""


def present_source(client: Client, target: Target, id: str, fields: Sequence[str]) -> tuple[str, Mapping[str, Any]]:
    """The concrete index of a document and the named fields of its source, as they are now.

    A search finds it whatever its routing; a document that no search sees yet is asked for by its address.
    Raises `NotFound`, and `SettingsError` for an id that is empty or in two of the indices.
    """
    if id == "":
        raise SettingsError("The id is empty: no document has such a one.")
    body = {"size": 2, "query": {"ids": {"values": [id]}}, "_source": list(fields)}
    found = [(hit["_index"], hit["_source"]) for hit in search(client, target.path, body)["hits"]["hits"]]
    if not found:
        references: list[Reference] = [(index, id, None) for index in target.indices]
        hits = fetch(client, references, fields)
        found = [(hit.index, hit.source) for hit in hits if hit is not None]
    if not found:
        raise NotFound(f"There is no document {id!r} in {target.name}.", status=404)
    if len(found) > 1:
        raise SettingsError(f"Document {id!r} is in {found[0][0]} and in {found[1][0]}: name one of these indices.")
    return found[0]


def compared_with(
    client: Client,
    target: Target,
    measure: Measure,
    probe: Mapping[str, Any],
    references: Sequence[Reference],
    *,
    more: Sequence[str] = (),
) -> Iterator[tuple[Hit, float]]:
    """Each document with the similarity of its present text to the probe (a source), exact; one that was deleted
    meanwhile is left out. ``more`` names fields to read besides."""
    fields = target.settings.fields
    own = _prepared(measure, [probe], fields)[0]
    for chunk in chunked(references, _FETCH):
        hits = [hit for hit in fetch(client, chunk, [*measure.fields(fields), *more]) if hit is not None]
        for hit, theirs in zip(hits, _prepared(measure, [hit.source for hit in hits], fields), strict=True):
            yield hit, measure.score(own, theirs)


def _prepared(measure: Measure, sources: Sequence[Mapping[str, Any]], fields: Sequence[str]) -> list[Prepared]:
    texts = [documents.text_of(source, fields) for source in sources]
    return documents.prepared(measure, sources, texts, fields)
