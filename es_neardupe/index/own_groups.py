"""Own group ids of new documents: a document that is in no group has a group id of its own.

So a new document gets its final group fields together with its fingerprint, and ``group`` writes it again only if it
has near-duplicates. An exception is a document whose own id is in use: an earlier document of the same address was in a
group, and the others still have the id. Then ``group`` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from es_neardupe.index import queries
from es_neardupe.index.handle import IndexHandle
from es_neardupe.index.stored_fields import own_group, random_group
from es_neardupe.records import Address
from es_neardupe.server.bulk import chunked
from es_neardupe.server.search import count, search

InUse = Callable[[Sequence[str]], Collection[str]]
"""Returns those of some group ids that documents have already."""


def alone(group: str) -> queries.JSON:
    """The group fields of a document that is in no group with others, as `encode_grouping` makes them."""
    return {"group": group, "principal": True, "similarity": 1.0}


def waiting(group: str) -> queries.JSON:
    """The group fields of a document that waits for ``group``. It has a group id, since ``collapse`` would merge all
    documents without one."""
    return {"group": group, "principal": None, "similarity": None}


def first_groups(addresses: Sequence[Address | None], in_use: InUse) -> list[Mapping[str, Any]]:
    """The group fields of documents that are indexed as a whole. A document without an address (the server will choose
    its id) gets a random group id."""
    own = [None if address is None else own_group(*address) for address in addresses]
    used = in_use(sorted({id for id in own if id is not None}))
    return [alone(random_group()) if id is None else waiting(id) if id in used else alone(id) for id in own]


class GroupIdsInUse:
    """The group ids that documents have, as of the last refresh."""

    def __init__(self, index: IndexHandle) -> None:
        """``index``: an opened index."""
        self._index = index
        self.any = count(index.client, index.path, {"exists": {"field": index.fields.group}}) > 0
        """Whether there are any; a caller that writes some sets it."""

    def among(self, ids: Sequence[str]) -> Collection[str]:
        """Those of the ids that a document has."""
        found: set[str] = set()
        field = self._index.fields.group
        for chunk in chunked(ids, queries.MAX_TERMS) if self.any else ():
            aggregation = {"ids": {"terms": {"field": field, "size": len(chunk)}}}
            body = {"size": 0, "query": queries.all_of({"terms": {field: chunk}}), "aggs": aggregation}
            buckets = search(self._index.client, self._index.path, body)["aggregations"]["ids"]["buckets"]
            found.update(bucket["key"] for bucket in buckets)
        return found.intersection(ids)
