"""Counts that include documents without an entry of ours: those that ``enrich`` has not seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from es_neardupe.asking import count
from es_neardupe.clients import Client
from es_neardupe.errors import SettingsError
from es_neardupe.indices import Target
from es_neardupe.sidecar.joining import Names, joined_parts
from es_neardupe.sidecar.splitting import MATCH_ALL, without_entry

__all__ = ["count_without_entry", "with_those_without_entry"]

JSON = dict[str, Any]


def count_without_entry(client: Client, target: Target, names: Names, query: Mapping[str, Any]) -> int:
    """Documents that a query matches although our index does not know them.

    These are all that match without any field of ours, less those that it knows. Entries of deleted documents, which
    stand till the next ``enrich``, can make it too small, never less than none.
    """
    rest = without_entry(query, target.settings.prefix)
    if rest is False:
        return 0
    asked = MATCH_ALL if rest is True else rest
    assert not isinstance(asked, bool)
    known = sum(count(client, names.path, part) for part in joined_parts(client, target, asked))
    return max(0, count(client, target.path, asked) - known)


def with_those_without_entry(answer: JSON, number: int, body: Mapping[str, Any], prefix: str) -> JSON:
    """The answer to a search for counts, with so many more documents that have none of our fields."""
    if not number:
        return answer
    total = answer["hits"].get("total")
    if total is not None:
        total["value"] += number
    for name, asked in body.get("aggs", {}).items():
        found = answer["aggregations"][name]
        if "filter" in asked and _fits(asked["filter"], prefix):
            found["doc_count"] += number
        if "filters" in asked:
            fitting = [key for key, query in asked["filters"]["filters"].items() if _fits(query, prefix)]
            for key in fitting or [asked["filters"].get("other_bucket_key")]:
                if key is not None:
                    found["buckets"][key]["doc_count"] += number
    return answer


def _fits(query: Mapping[str, Any], prefix: str) -> bool:
    """Whether a document without any field of ours fulfils a query over them."""
    found = without_entry(query, prefix)
    if isinstance(found, bool):
        return found
    raise SettingsError("Counts over the user's fields and ours at once cannot be asked from the side.")
