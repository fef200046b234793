"""Client that joins both indices: the user's documents with our fields, which are in the sidecar index.

It splits requests about the documents of the target. What is about our fields goes to the sidecar index, whose hits get
the names of the user's indices; the rest goes to these. A document that was deleted there is in no hit, even if the
sidecar index still has its entry; counts over our fields are those of the last ``enrich``. The version of a document
with our fields is that of its entry, and what is written to it is written to the entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from es_neardupe.errors import Blocked, Forbidden, SettingsError
from es_neardupe.index.sidecar.entries import entries, parts_of, read_params, redirected, their_parts, their_values
from es_neardupe.index.sidecar.queries import (
    MATCH_ALL,
    MAX_IDS,
    SidecarNames,
    Source,
    TooMany,
    asks_ours,
    joined,
    joined_parts,
    split_source,
    without_entry,
)
from es_neardupe.records import Address, Hit
from es_neardupe.server.client import ForwardingClient, path
from es_neardupe.server.search import count

if TYPE_CHECKING:
    from es_neardupe.index.index import Index

__all__ = ["SidecarClient"]

JSON = dict[str, Any]
_Params = Mapping[str, str | int | bool]


class SidecarClient(ForwardingClient):
    """A :class:`~es_neardupe.server.Client` over another one, for one target with a sidecar index."""

    def __init__(self, index: Index) -> None:
        target = index.target
        assert target.sidecar is not None
        super().__init__(index.plain)
        self._index = index
        self._target = target
        self._prefix = target.settings.prefix
        self._names = SidecarNames(target)
        self._paths = {path(name)[1:] for name in (target.name, target.path, *target.indices)}

    def close(self) -> None:
        """See ``Client.close``."""
        self.plain.close()

    def request(
        self, method: str, path: str, *, params: _Params | None = None, body: Mapping[str, Any] | None = None
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

    def bulk(self, body: bytes, *, params: Mapping[str, str] | None = None) -> Any:
        """See ``Client.bulk``."""
        assert self._target.sidecar is not None
        return self.plain.bulk(redirected(body, self._names.ours, mark=self._target.sidecar.write_group), params=params)

    def pages(
        self,
        index: str,
        body: Mapping[str, Any],
        *,
        page_size: int = 1000,
        slice: tuple[int, int] | None = None,
        keep_alive: str = "5m",
        first_page: int | None = None,
    ) -> Iterator[list[Hit]]:
        """See ``Client.pages``."""
        how: JSON = {"page_size": page_size, "slice": slice, "keep_alive": keep_alive, "first_page": first_page}
        if path(index)[1:] not in self._paths:
            return self.plain.pages(index, body, **how)
        ours, theirs = split_source(body.get("_source"), self._prefix)
        if not asks_ours(body, self._prefix):
            return self._their_pages(index, body, ours, theirs, how)
        return self._our_pages(body, ours, theirs, how)

    def _their_pages(
        self, index: str, body: Mapping[str, Any], ours: Source, theirs: Source, how: JSON
    ) -> Iterator[list[Hit]]:
        asked = {**body, **read_params(self._target, theirs)}
        for page in self.plain.pages(index, asked, **how):
            yield page if ours is False else self._with_entries(page, ours)

    def _with_entries(self, page: Sequence[Hit], ours: Source) -> list[Hit]:
        """The user's documents with our fields in them."""
        found = entries(self._index, [hit.reference for hit in page], ours)
        return [
            hit if one is None else replace(one, source={**hit.source, **one.source}, score=hit.score)
            for hit, one in zip(page, found, strict=True)
        ]

    def _our_pages(self, body: Mapping[str, Any], ours: Source, theirs: Source, how: JSON) -> Iterator[list[Hit]]:
        """Our entries with what else is asked of the user's documents, without those of documents that are gone."""
        values = body.get("docvalue_fields", [])
        rest = {name: part for name, part in body.items() if name not in ("query", "_source", "docvalue_fields")}
        for query in joined_parts(self._index, body.get("query", MATCH_ALL)):
            for page in self.plain.pages(self._names.path, {**rest, "query": query, "_source": ours}, **how):
                hits = [replace(hit, index=self._names.theirs[hit.index]) for hit in page]
                if completed := self._completed(hits, theirs, values):
                    yield completed

    def _completed(self, hits: Sequence[Hit], theirs: Source, values: Sequence[Any]) -> list[Hit]:
        references = [hit.reference for hit in hits]
        found = their_parts(self._index, references, theirs)
        described = their_values(self._index, references, values)
        return [
            replace(hit, source={**hit.source, **theirs_now.source, **described.get(hit.address, {})})
            for hit, theirs_now in zip(hits, found, strict=True)
            if theirs_now is not None
        ]

    def _search(self, body: Mapping[str, Any], params: _Params | None) -> Any:
        ours, theirs = split_source(body.get("_source"), self._prefix)
        if not asks_ours(body, self._prefix):
            asked = {**body, **(read_params(self._target, theirs) if body.get("size", 10) else {})}
            answer = self.plain.request("POST", path(self._target.path, "_search"), params=params, body=asked)
            self._add_entries(answer["hits"]["hits"], ours)
            return answer
        query = body.get("query", MATCH_ALL)
        if not body.get("size", 10):
            return self._count(query, body, params)
        if without_entry(query, self._prefix) is not False:
            raise SettingsError(
                "Searching documents with and without keys at once is not supported with a sidecar index."
            )
        rest = {name: part for name, part in body.items() if name != "docvalue_fields"}
        asked = {**rest, "query": joined(self._index, query), "_source": ours}
        answer = self.plain.request("POST", path(self._names.path, "_search"), params=params, body=asked)
        self._complete(answer["hits"], theirs, body.get("docvalue_fields", []))
        return answer

    def _add_entries(self, hits: list[JSON], ours: Source) -> None:
        """Put our fields, and stored ones of the user's, into hits of the user's index."""
        stored = self._target.sidecar is not None and bool(self._target.sidecar.stored)
        for hit in hits if stored else ():
            hit["_source"] = parts_of(hit)
        if ours is False or not hits:
            return
        references = [(hit["_index"], hit["_id"], hit.get("_routing")) for hit in hits]
        for hit, one in zip(hits, entries(self._index, references, ours), strict=True):
            if one is not None:
                hit["_source"] = {**hit.get("_source", {}), **one.source}

    def _count(self, query: Mapping[str, Any], body: Mapping[str, Any], params: _Params | None) -> Any:
        """What of our entries is counted, and the documents that have none where they count too."""
        parts = joined_parts(self._index, query)
        where = path(self._names.path, "_search")
        answer = self.plain.request("POST", where, params=params, body={**body, "query": next(parts)})
        for part in parts:
            if "aggs" in body:
                raise TooMany(
                    f"The query matches more than {MAX_IDS:,} documents, too many to count with a sidecar index: "
                    f"narrow it."
                )
            more = self.plain.request("POST", where, params=params, body={**body, "query": part})
            answer["hits"]["total"]["value"] += more["hits"]["total"]["value"]
        missing = _count_without_entry(self._index, self._names, query)
        return _with_those_without_entry(answer, missing, body, self._prefix)

    def _complete(self, found: JSON, theirs: Source, values: Sequence[Any]) -> None:
        """Make hits of our index to hits of the user's, without documents that are gone there."""
        hits = found["hits"]
        for hit in hits:
            hit["_index"] = self._names.theirs[hit["_index"]]
        references = [(hit["_index"], hit["_id"], hit.get("_routing")) for hit in hits]
        sources = their_parts(self._index, references, theirs)
        described = their_values(self._index, references, values)
        there = []
        for hit, source in zip(hits, sources, strict=True):
            if source is not None:
                hit["_source"] = {**hit.get("_source", {}), **source.source}
                hit["fields"] = described.get(Address(hit["_index"], hit["_id"]), {})
                there.append(hit)
        if "total" in found:
            found["total"]["value"] -= len(hits) - len(there)
        found["hits"] = there

    def _mget(self, body: Mapping[str, Any]) -> Any:
        """Documents by their address, each with our fields where it has an entry."""
        docs = body["docs"]
        split = [split_source(doc.get("_source"), self._prefix) for doc in docs]
        known = [doc["_index"] in self._names.ours for doc in docs]
        asked = [
            {**doc, **read_params(self._target, theirs)} if ours_too else doc
            for doc, (_, theirs), ours_too in zip(docs, split, known, strict=True)
        ]
        answer = self.plain.request("POST", "/_mget", body={"docs": asked})
        wanted = [k for k, one in enumerate(answer["docs"]) if known[k] and split[k][0] is not False and _there(one)]
        for ours in {tuple(split[k][0]) for k in wanted if not isinstance(split[k][0], bool)}:  # type: ignore[arg-type]
            some = [k for k in wanted if tuple(split[k][0]) == ours]  # type: ignore[arg-type]
            references = [(docs[k]["_index"], docs[k]["_id"], docs[k].get("routing")) for k in some]
            for k, entry in zip(some, entries(self._index, references, list(ours)), strict=True):
                answer["docs"][k] = _with_entry(answer["docs"][k], entry)
        return answer

    def _refresh(self) -> None:
        """The sidecar index, and the user's if this is allowed."""
        with suppress(Forbidden, Blocked):
            self.plain.request("POST", path(self._target.path, "_refresh"))
        self.plain.request("POST", path(self._names.path, "_refresh"))


def _there(found: Mapping[str, Any]) -> bool:
    return bool(found.get("found"))


def _with_entry(found: JSON, entry: Hit | None) -> JSON:
    """A document with our fields, and with the version of the entry that they are in."""
    if entry is None:
        return found
    version = {"_seq_no": entry.seq_no, "_primary_term": entry.primary_term}
    return {**found, **version, "_source": {**parts_of(found), **entry.source}}


def _count_without_entry(index: Index, names: SidecarNames, query: Mapping[str, Any]) -> int:
    """Documents that a query matches although our index does not know them.

    These are all that match without any field of ours, less those that it knows. Entries of deleted documents, which
    stand till the next ``enrich``, can make it too small, never less than none.
    """
    rest = without_entry(query, index.settings.prefix)
    if rest is False:
        return 0
    asked = MATCH_ALL if rest is True else rest
    assert not isinstance(asked, bool)
    known = sum(count(index.plain, names.path, part) for part in joined_parts(index, asked))
    return max(0, count(index.plain, index.path, asked) - known)


def _with_those_without_entry(answer: JSON, number: int, body: Mapping[str, Any], prefix: str) -> JSON:
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
    raise SettingsError("Counting over your fields and ours at once is not supported with a sidecar index.")
