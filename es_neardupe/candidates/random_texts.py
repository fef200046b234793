"""Texts of random documents, by which the keys of an index are judged."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any

from es_neardupe.index.document_text import values_of
from es_neardupe.index.handle import IndexHandle, UnpreparedIndex
from es_neardupe.index.slices import random_hits
from es_neardupe.keys.prepare.preparation import Text, length
from es_neardupe.server.search import fetch_portions

_SAMPLE = 200
_MAX_CHARACTERS = 10_000_000


def random_texts(index: IndexHandle | UnpreparedIndex, scope: Mapping[str, Any], window: int) -> list[tuple[str, Text]]:
    """The ids and values of up to 200 random documents in scope, until they have ten million characters. One that does
    not fit into memory is left out. ``window``: maximum number of hits of a search."""
    fields = index.settings.fields
    references = [hit.reference for hit in random_hits(index.documents, scope, min(_SAMPLE, window), source=False)]
    found, characters = list[tuple[str, Text]](), 0
    portions = fetch_portions(index.client, references, fields, skip=lambda *_: None)
    for hit in chain.from_iterable(portions):
        if hit is not None:
            values = values_of(hit.source, fields)
            found.append((hit.id, values))
            characters += length(values)
        if characters > _MAX_CHARACTERS:
            break
    return found
