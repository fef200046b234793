"""What the page of a duplicates request needs besides the report: the texts of the pairs that it opens."""

from __future__ import annotations

from collections.abc import Iterable

from es_neardupe import documents
from es_neardupe.asking import search
from es_neardupe.bulk import chunked
from es_neardupe.clients import Client
from es_neardupe.pipeline.duplicate_results import DocumentPair
from es_neardupe.records import Address
from es_neardupe.requests import DuplicatesPlan

__all__ = ["page_texts"]

_BATCH = 20
"""Documents read at a time: a text may have megabytes, and only its beginning is kept."""


def page_texts(
    client: Client, plan: DuplicatesPlan, pairs: Iterable[DocumentPair], characters: int
) -> dict[Address, str]:
    """The texts of the documents in the pairs: the values of the fields of the plan, one a line, and of these the first
    ``characters``; one more than the page shows tells it that there are more.

    A document that is gone is left out; one without these fields has the text "". They are found by a search, which
    needs no routing.
    """
    wanted: dict[str, dict[str, None]] = {}
    for pair in pairs:
        for index, id in (pair.a, pair.b):
            wanted.setdefault(index, {})[id] = None
    texts: dict[Address, str] = {}
    for index, ids in wanted.items():
        for chunk in chunked(ids, _BATCH):
            body = {"size": len(chunk), "query": {"ids": {"values": list(chunk)}}, "_source": list(plan.fields)}
            for hit in search(client, index, body)["hits"]["hits"]:
                text = documents.text_of(hit.get("_source", {}), plan.fields)
                texts[hit["_index"], hit["_id"]] = text[:characters]
    return texts
