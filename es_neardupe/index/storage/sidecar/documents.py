"""Client for sidecar storage: reads and writes documents as if they contained the fields of their sidecar entries.

The code that reads and writes keys and groups is written for inline storage: it searches an index for `neardupe`
fields, and finds them in documents. With sidecar storage, `SidecarClient` rewrites these requests:

- A search, or a read of all pages, whose query and aggregations use only document fields is sent to the index. Entry
  fields that ``_source`` names are then added to the hits.
- Any other search of the index is sent to the sidecar index. Parts of the query about document fields are answered by
  the index first, and replaced by ids (`es_neardupe.index.storage.sidecar.queries`). The hits get the index
  names and the requested fields of their documents; entries of deleted documents are removed. If the search is
  collapsed, another entry takes the place of each.
- A search with size 0 that uses `neardupe` fields counts entries. Documents without an entry that match too, such as
  all new ones for "has no keys", are counted in the index and added.
- ``_mget`` returns documents with the fields of their entries.
- A bulk request writes to the sidecar index.
- ``_refresh`` refreshes the sidecar index, and the index if the user may.
- All other requests, and those for other indices, are sent unchanged.

A document that is read with `neardupe` fields has the sequence number and primary term of its entry, since it is the
entry that a write to it changes. Counts over `neardupe` fields can include entries of documents that were deleted since
the last ``enrich``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from es_neardupe.errors import Blocked, Forbidden, SettingsError
from es_neardupe.index.handle import IndexHandle
from es_neardupe.index.queries import TooManyDocuments
from es_neardupe.index.storage.same_indices import SameSettingsClient
from es_neardupe.index.storage.sidecar.entries import (
    fetch_documents,
    fetch_docvalues,
    fetch_entries,
    fetched_fields,
    read_params,
    redirect_bulk,
    reference_of,
)
from es_neardupe.index.storage.sidecar.indices import SidecarNames, delete_unmarked
from es_neardupe.index.storage.sidecar.queries import (
    MATCH_ALL,
    MAX_IDS,
    Source,
    ids_clause,
    joined,
    joined_queries,
    split_source,
    uses_entries,
    without_entry,
)
from es_neardupe.records import Address, Hit
from es_neardupe.server.client import JSON, Before, ForwardingClient, Params, path
from es_neardupe.server.search import count

_ROUNDS = 10
"""Maximum number of times that a collapsed search is repeated without the entries of deleted documents, which can take
the place of others."""


class SameSidecarsClient(SameSettingsClient):
    """Writes entries only while the sidecar indices are as they were opened. `clean` can delete one between the check
    and the request: then the server creates it for the request, which is undone."""

    def __init__(self, index: IndexHandle) -> None:
        super().__init__(index)
        self._names = SidecarNames(index.target)

    def _undo(self) -> None:
        delete_unmarked(self.plain, self._names.existing)


class SidecarClient(ForwardingClient):
    """A :class:`~es_neardupe.server.client.Client` for one target with sidecar storage, on top of a plain one."""

    def __init__(self, index: IndexHandle) -> None:
        target = index.target
        assert target.sidecar is not None
        super().__init__(SameSidecarsClient(index))
        self._index = index
        self._target = target
        self._layout = target.sidecar
        self._prefix = target.settings.prefix
        self._names = SidecarNames(target)
        self._paths = {path(name)[1:] for name in (target.name, target.path, *target.indices)}

    def request(
        self, method: str, path: str, *, params: Params | None = None, body: Mapping[str, Any] | None = None
    ) -> Any:
        """See ``Client.request``."""
        name, _, action = path[1:].partition("/")
        if path == "/_mget" and body is not None:
            return self._mget(body)
        if name in self._paths:
            if action == "_search" and body is not None:
                return self._search(body, params)
            if action == "_refresh":
                return self._refresh()
        return self.plain.request(method, path, params=params, body=body)

    def bulk(self, body: bytes, *, params: Mapping[str, str] | None = None, before: Before | None = None) -> Any:
        """See ``Client.bulk``."""
        redirected = redirect_bulk(body, self._names.sidecars, unmark=self._layout.write_group)
        return self.plain.bulk(redirected, params=params, before=before)

    def pages(self, index: str, body: Mapping[str, Any], **options: Any) -> Iterator[list[Hit]]:
        """See ``Client.pages``."""
        if path(index)[1:] not in self._paths:
            return self.plain.pages(index, body, **options)
        if uses_entries(body, self._prefix):
            return self._pages_of_entries(body, options)
        return self._pages_of_documents(index, body, options)

    def _pages_of_documents(self, index: str, body: Mapping[str, Any], options: JSON) -> Iterator[list[Hit]]:
        of_entries, of_documents = split_source(body.get("_source"), self._prefix)
        for page in self.plain.pages(index, {**body, **read_params(self._target, of_documents)}, **options):
            yield page if of_entries is False else self._with_entries(page, of_entries)

    def _with_entries(self, page: Sequence[Hit], source: Source) -> list[Hit]:
        """Documents with the fields of their entries."""
        entries = fetch_entries(self._index, [hit.reference for hit in page], source)
        return [
            hit if entry is None else replace(entry, source={**hit.source, **entry.source}, score=hit.score)
            for hit, entry in zip(page, entries, strict=True)
        ]

    def _pages_of_entries(self, body: Mapping[str, Any], options: JSON) -> Iterator[list[Hit]]:
        """Entries with the requested fields of their documents, without those of deleted documents."""
        of_entries, of_documents = split_source(body.get("_source"), self._prefix)
        values = body.get("docvalue_fields", [])
        rest = {name: part for name, part in body.items() if name not in ("query", "_source", "docvalue_fields")}
        for query in joined_queries(self._index, body.get("query", MATCH_ALL)):
            for page in self.plain.pages(self._names.path, {**rest, "query": query, "_source": of_entries}, **options):
                entries = [replace(entry, index=self._names.indices[entry.index]) for entry in page]
                if hits := self._with_documents(entries, of_documents, values):
                    yield hits

    def _with_documents(self, entries: Sequence[Hit], source: Source, values: Sequence[Any]) -> list[Hit]:
        references = [entry.reference for entry in entries]
        documents = fetch_documents(self._index, references, source)
        docvalues = fetch_docvalues(self._index, references, values)
        return [
            replace(entry, source={**entry.source, **document.source, **docvalues.get(entry.address, {})})
            for entry, document in zip(entries, documents, strict=True)
            if document is not None
        ]

    def _search(self, body: Mapping[str, Any], params: Params | None) -> Any:
        if not uses_entries(body, self._prefix):
            return self._search_documents(body, params)
        query = body.get("query", MATCH_ALL)
        if not body.get("size", 10):
            return self._count(query, body, params)
        if without_entry(query, self._prefix) is not False:
            raise SettingsError(
                "Searching documents with and without keys at once is not supported with a sidecar index."
            )
        of_entries, of_documents = split_source(body.get("_source"), self._prefix)
        rest = {name: part for name, part in body.items() if name != "docvalue_fields"}
        sent = {**rest, "query": joined(self._index, query), "_source": of_entries}
        for _ in range(_ROUNDS):
            answer = self.plain.request("POST", path(self._names.path, "_search"), params=params, body=sent)
            deleted = self._add_documents(answer["hits"], of_documents, body.get("docvalue_fields", []))
            if not deleted or "collapse" not in body:
                break
            others = {"must": [sent["query"]], "must_not": [ids_clause(deleted, self._names.sidecars)]}
            sent = {**sent, "query": {"bool": others}}
        return answer

    def _search_documents(self, body: Mapping[str, Any], params: Params | None) -> Any:
        of_entries, of_documents = split_source(body.get("_source"), self._prefix)
        sent = {**body, **(read_params(self._target, of_documents) if body.get("size", 10) else {})}
        answer = self.plain.request("POST", path(self._target.path, "_search"), params=params, body=sent)
        self._add_entries(answer["hits"]["hits"], of_entries)
        return answer

    def _add_entries(self, hits: list[JSON], source: Source) -> None:
        """Add the fields of entries, and stored fields of documents, to the ``_source`` of documents."""
        for hit in hits if self._layout.stored else ():
            hit["_source"] = fetched_fields(hit)
        if source is False or not hits:
            return
        entries = fetch_entries(self._index, [reference_of(hit) for hit in hits], source)
        for hit, entry in zip(hits, entries, strict=True):
            if entry is not None:
                hit["_source"] = {**hit.get("_source", {}), **entry.source}

    def _count(self, query: Mapping[str, Any], body: Mapping[str, Any], params: Params | None) -> Any:
        """The answer to a search for counts: of entries, and of documents without an entry that match too."""
        parts = joined_queries(self._index, query)
        target = path(self._names.path, "_search")
        answer = self.plain.request("POST", target, params=params, body={**body, "query": next(parts)})
        for part in parts:
            if "aggs" in body:
                raise TooManyDocuments(
                    f"The query matches more than {MAX_IDS:,} documents, too many to count with a sidecar index: "
                    f"narrow it."
                )
            more = self.plain.request("POST", target, params=params, body={**body, "query": part})
            answer["hits"]["total"]["value"] += more["hits"]["total"]["value"]
        missing = _count_without_entry(self._index, self._names, query)
        return _with_documents_without_entry(answer, missing, body, self._prefix)

    def _add_documents(self, found: JSON, source: Source, values: Sequence[Any]) -> list[Address]:
        """Turn entries into hits of the index, with the requested fields, and remove and return those of deleted
        documents."""
        hits = found["hits"]
        for hit in hits:
            hit["_index"] = self._names.indices[hit["_index"]]
        references = [reference_of(hit) for hit in hits]
        documents = fetch_documents(self._index, references, source)
        docvalues = fetch_docvalues(self._index, references, values)
        existing, deleted = [], []
        for hit, document in zip(hits, documents, strict=True):
            if document is None:
                deleted.append(Address(hit["_index"], hit["_id"]))
                continue
            hit["_source"] = {**hit.get("_source", {}), **document.source}
            hit["fields"] = docvalues.get(Address(hit["_index"], hit["_id"]), {})
            existing.append(hit)
        if "total" in found:
            found["total"]["value"] -= len(deleted)
        found["hits"] = existing
        return deleted

    def _mget(self, body: Mapping[str, Any]) -> Any:
        """Documents by their addresses, with the fields of their entries."""
        docs = body["docs"]
        split = [split_source(doc.get("_source"), self._prefix) for doc in docs]
        in_target = [doc["_index"] in self._names.sidecars for doc in docs]
        sent = [
            {**doc, **read_params(self._target, of_documents)} if inside else doc
            for doc, (_, of_documents), inside in zip(docs, split, in_target, strict=True)
        ]
        answer = self.plain.request("POST", "/_mget", body={"docs": sent})
        by_source: dict[tuple[str, ...], list[int]] = {}
        for place, found in enumerate(answer["docs"]):
            of_entries = split[place][0]
            if in_target[place] and not isinstance(of_entries, bool) and found.get("found"):
                by_source.setdefault(tuple(of_entries), []).append(place)
        for source, places in by_source.items():
            references = [(docs[k]["_index"], docs[k]["_id"], docs[k].get("routing")) for k in places]
            for place, entry in zip(places, fetch_entries(self._index, references, list(source)), strict=True):
                answer["docs"][place] = _with_entry(answer["docs"][place], entry)
        return answer

    def _refresh(self) -> None:
        with suppress(Forbidden, Blocked):
            self.plain.request("POST", path(self._target.path, "_refresh"))
        self.plain.request("POST", path(self._names.path, "_refresh"))


def _with_entry(found: JSON, entry: Hit | None) -> JSON:
    """A document with the fields and the version of its entry."""
    if entry is None:
        return found
    version = {"_seq_no": entry.seq_no, "_primary_term": entry.primary_term}
    return {**found, **version, "_source": {**fetched_fields(found), **entry.source}}


def _count_without_entry(index: IndexHandle, names: SidecarNames, query: Mapping[str, Any]) -> int:
    """Number of documents that a query matches although they have no entry.

    These are all documents that match without `neardupe` fields, minus those that have an entry. Entries of deleted
    documents, which exist until the next ``enrich``, can make the number too small, but not negative.
    """
    condition = without_entry(query, index.settings.prefix)
    if condition is False:
        return 0
    documents = MATCH_ALL if condition is True else condition
    with_entry = sum(count(index.server, names.path, part) for part in joined_queries(index, documents))
    return max(0, count(index.server, index.path, documents) - with_entry)


def _with_documents_without_entry(answer: JSON, number: int, body: Mapping[str, Any], prefix: str) -> JSON:
    """The answer to a search for counts, with ``number`` documents without an entry added."""
    if not number:
        return answer
    total = answer["hits"].get("total")
    if total is not None:
        total["value"] += number
    for name, aggregation in body.get("aggs", {}).items():
        found = answer["aggregations"][name]
        if "filter" in aggregation and _matches_without_entry(aggregation["filter"], prefix):
            found["doc_count"] += number
        if "filters" in aggregation:
            filters = aggregation["filters"]
            matching = [key for key, query in filters["filters"].items() if _matches_without_entry(query, prefix)]
            for key in matching or [filters.get("other_bucket_key")]:
                if key is not None:
                    found["buckets"][key]["doc_count"] += number
    return answer


def _matches_without_entry(query: Mapping[str, Any], prefix: str) -> bool:
    """Whether documents without an entry match a query over `neardupe` fields."""
    condition = without_entry(query, prefix)
    if isinstance(condition, bool):
        return condition
    raise SettingsError("Combining document fields and keys in one count is not supported with a sidecar index.")
