"""Entries of the sidecar index: reading them with their documents, the versions they were made from, writing and
removing them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from es_neardupe.errors import IndexUnusable
from es_neardupe.index import queries
from es_neardupe.index.sidecar.indices import REFERENCE, sidecar_name
from es_neardupe.index.sidecar.queries import SidecarNames, Source, addresses_of, ids_clause
from es_neardupe.index.stored_fields import stored_fields
from es_neardupe.index.target import IndexTarget
from es_neardupe.records import Action, Address, Hit, Reference
from es_neardupe.server.bulk import chunked
from es_neardupe.server.client import path, to_json
from es_neardupe.server.search import count, fetch

if TYPE_CHECKING:
    from es_neardupe.index.index import Index

__all__ = [
    "KnownEntries",
    "confirmation",
    "entries",
    "entry",
    "gone",
    "of_others",
    "parts_of",
    "read_params",
    "redirected",
    "successors",
    "their_parts",
    "their_values",
    "uuids",
    "with_inherited",
    "with_stored",
]


JSON = dict[str, Any]

_PAGE = 10_000
_BATCH = 1000
_TERM = 1 << 56
"""A version is one number: the primary term times this, and the sequence number."""

_UNFIT = -1


def read_params(target: IndexTarget, theirs: Source) -> JSON:
    """The part of a request that asks for parts of the user's documents: of ``_source``, or where that is not kept, of
    stored fields. Raises `IndexUnusable` for a field that is in neither."""
    assert target.sidecar is not None
    if not target.sidecar.stored or theirs is False:
        return {"_source": theirs}
    names = list(target.settings.fields) if theirs is True else list(theirs)
    if lacking := sorted(set(names) - set(target.settings.fields)):
        raise IndexUnusable(
            f"Index {target.name} keeps {', '.join(lacking)} not in _source: of its documents, only the stored fields "
            f"{', '.join(target.settings.fields)} can be read."
        )
    return {"_source": False, "stored_fields": names}


def their_parts(index: Index, references: Sequence[Reference], theirs: Source) -> list[Hit | None]:
    """The user's documents as they are now, in the order of the references, with the named parts; None for one that is
    gone. Raises what `fetch` does."""
    params = read_params(index.target, theirs)
    return list(fetch(index.plain, references, params["_source"], stored=params.get("stored_fields", ())))


def entries(index: Index, references: Sequence[Reference], ours: Source) -> list[Hit | None]:
    """Our entries of documents, of their own version but under the names of the user's indices; None where there is
    none. Raises what `fetch` does."""
    names = SidecarNames(index.target)
    asked = [(names.ours[concrete], id, routing) for concrete, id, routing in references]
    found = fetch(index.plain, asked, ours)
    return [None if one is None else replace(one, index=names.theirs[one.index]) for one in found]


def parts_of(found: Mapping[str, Any]) -> JSON:
    """What was read of a document, from ``_source`` or stored fields."""
    return {**found.get("_source", {}), **found.get("fields", {})}


def their_values(index: Index, references: Sequence[Reference], asked: Sequence[Any]) -> dict[Address, JSON]:
    """``docvalue_fields`` of the user's documents, as ``fields`` of a hit."""
    found: dict[Address, JSON] = {}
    if not asked:
        return found
    for chunk in chunked(references, _BATCH):
        query = ids_clause(Address(concrete, id) for concrete, id, _ in chunk)
        body = {"size": len(chunk), "query": query, "_source": False, "docvalue_fields": list(asked)}
        for hit in index.plain.request("POST", path(index.path, "_search"), body=body)["hits"]["hits"]:
            found[Address(hit["_index"], hit["_id"])] = hit.get("fields", {})
    return found


def uuids(index: Index) -> dict[str, str]:
    """Concrete index -> its uuid: one that was made anew under the same name begins its sequence numbers anew."""
    found = index.plain.request("GET", path(index.path, "_settings", "index.uuid"), params={"flat_settings": "true"})
    return {concrete: entry["settings"]["index.uuid"] for concrete, entry in found.items()}


def of_others(index: Index) -> dict[str, int]:
    """Concrete index -> entries of its sidecar that belong to an index that had its name before; none are left out."""
    names = SidecarNames(index.target)
    found = {
        concrete: count(
            index.plain, names.ours[concrete], {"bool": {"must_not": [{"term": {f"{REFERENCE}.uuid": uuid}}]}}
        )
        for concrete, uuid in uuids(index).items()
        if concrete not in index.target.new
    }
    return {concrete: number for concrete, number in found.items() if number}


class KnownEntries:
    """Of which version of each document our index has a fingerprint. Some 200 bytes a document."""

    def __init__(self, index: Index, uuids: Mapping[str, str]) -> None:
        """Reads all entries."""
        names, scheme, group = SidecarNames(index.target), index.fields.scheme, index.fields.group
        columns = [f"{REFERENCE}.{name}" for name in ("seq_no", "primary_term", "uuid")]
        body = {
            "query": {"match_all": {}},
            "_source": False,
            "docvalue_fields": [*columns, scheme, index.fields.group],
        }
        self._versions: dict[str, dict[str, int]] = {concrete: {} for concrete in index.target.indices}
        self._seen: dict[str, set[str]] = {concrete: set() for concrete in index.target.indices}
        wanted = [index.scheme_id]
        for page in index.plain.pages(names.path, body, page_size=_PAGE):
            for hit in page:
                concrete = names.theirs[hit.index]
                seq_no, term, uuid = (hit.source.get(name, [None])[0] for name in columns)
                fits = uuid == uuids[concrete] and hit.source.get(scheme) == wanted
                fits = fits and group in hit.source and None not in (seq_no, term)
                self._versions[concrete][hit.id] = term * _TERM + seq_no if fits else _UNFIT
        self.fitting = sum(version != _UNFIT for one in self._versions.values() for version in one.values())
        """Entries of the present scheme."""

    def has(self, hit: Hit) -> bool:
        """Whether there is an entry of a document."""
        return hit.id in self._versions[hit.index]

    def is_current(self, hit: Hit) -> bool:
        """Whether there is one of the present scheme, even if of another version."""
        return self._versions[hit.index].get(hit.id, _UNFIT) != _UNFIT

    def same(self, hit: Hit) -> bool:
        """Whether there is one of the present scheme and of this very version."""
        return self._versions[hit.index].get(hit.id) == (hit.primary_term or 0) * _TERM + (hit.seq_no or 0)

    def see(self, hit: Hit) -> None:
        """Note that a document is there."""
        self._seen[hit.index].add(hit.id)

    def unseen(self) -> Iterator[Address]:
        """The documents of entries that were not seen."""
        for index, versions in self._versions.items():
            yield from (Address(index, id) for id in versions if id not in self._seen[index])


def with_stored(index: Index, hits: list[Hit]) -> Iterator[tuple[Hit, Hit | None]]:
    """Documents, each with our stored fields in it and with its entry (None: there is none)."""
    names = ["scheme", "state", "content", "tokens", "features", "numeric", "group"]
    asked = [f"{index.settings.prefix}.{name}" for name in names]
    references = [hit.reference for hit in hits]
    for hit, found in zip(hits, entries(index, references, asked), strict=True):
        stored = stored_fields(found.source if found else {}, index.settings.prefix)
        source = {**hit.source, index.settings.prefix: stored}
        yield Hit(hit.index, hit.id, hit.routing, hit.seq_no, hit.primary_term, source), found


def with_inherited(index: Index, hits: Sequence[Hit]) -> list[Hit]:
    """Documents, each with the group id that it has under the prefix which the target inherits from."""
    if index.target.inherits is None:
        return list(hits)
    former = index.with_target(replace(index.target, settings=replace(index.settings, prefix=index.target.inherits)))
    references = [hit.reference for hit in hits]
    found = entries(former, references, [former.fields.group])
    return [
        replace(
            hit,
            source={
                **hit.source,
                index.target.inherits: stored_fields(one.source if one else {}, index.target.inherits),
            },
        )
        for hit, one in zip(hits, found, strict=True)
    ]


def successors(source: Index, wanted: Index, hits: Iterable[Hit]) -> Iterator[Action]:
    """The writes by which whole entries of ``source`` (the hits) take the place of those of ``wanted``, refused by the
    server if these changed since; none where both say the same.

    A group id that is in the user's document is still there if both are of the same version of it.
    """
    names, prefix = SidecarNames(source.target), wanted.settings.prefix
    for chunk in chunked(hits, _BATCH):
        asked = [(sidecar_name(names.theirs[hit.index], prefix), hit.id, hit.routing) for hit in chunk]
        for hit, (name, *_), there in zip(chunk, asked, fetch(source.plain, asked, True), strict=True):
            before: Mapping[str, Any] = {} if there is None else there.source
            made = _successor(hit, source.settings.prefix, before, prefix)
            if made is not None and made != before:
                yield Action(
                    op="create" if there is None else "index",
                    index=name,
                    id=hit.id,
                    body=made,
                    routing=hit.routing,
                    seq_no=None if there is None else there.seq_no,
                    primary_term=None if there is None else there.primary_term,
                )


def _successor(hit: Hit, prefix: str, before: Mapping[str, Any], wanted: str) -> JSON | None:
    """An entry as it is to be under the other prefix, where ``before`` is now; None for what is none of ours."""
    fields, reference = stored_fields(hit.source, prefix), stored_fields(hit.source, REFERENCE)
    if not fields or not reference:
        return None
    former = stored_fields(before, REFERENCE)
    stays = stored_fields(before, wanted).get("group") == fields.get("group")
    same = {**former, "mirrored": None} == {**reference, "mirrored": None}
    return {wanted: fields, REFERENCE: {**reference, "mirrored": stays and same and former["mirrored"] is True}}


def entry(update: Action, found: Hit | None, prefix: str, uuid: str, *, current: bool) -> Action:
    """The write of an entry, from the update that the document itself would get inline, refused by the server if the
    entry changed since it was ``found``. A fingerprint that was not ``current`` takes the place of the whole entry."""
    fields = update.body["doc"][prefix]
    body = {prefix: fields, REFERENCE: _reference(update, uuid)}
    if current and found is not None:
        return _write("update", update, {"doc": body}, prefix, found)
    return _write("create" if found is None else "index", update, body, prefix, found)


def confirmation(update: Action, found: Hit, prefix: str, uuid: str) -> Action:
    """The write that says of an entry that it fits this version of the document too. Its group id may be missing in it
    by now."""
    return _write("update", update, {"doc": {REFERENCE: _reference(update, uuid)}}, prefix, found)


def _reference(update: Action, uuid: str) -> JSON:
    return {
        "index": update.index,
        "uuid": uuid,
        "id": update.id,
        **({} if update.routing is None else {"routing": update.routing}),
        "seq_no": update.seq_no,
        "primary_term": update.primary_term,
        "mirrored": False,
    }


def _write(op: str, update: Action, body: JSON, prefix: str, found: Hit | None) -> Action:
    return Action(
        op=op,
        index=sidecar_name(update.index, prefix),
        id=update.id,
        body=body,
        routing=update.routing,
        seq_no=None if found is None else found.seq_no,
        primary_term=None if found is None else found.primary_term,
    )


def gone(index: Index, addresses: Iterable[Address]) -> Iterator[Action]:
    """The removals of those entries whose document is not there any more, or is of a relation that is left alone;
    refused by the server if the entry changed.

    The documents are asked for by their address, in real time: no search that lags behind decides.
    """
    names = SidecarNames(index.target)
    for chunk in chunked(addresses, _BATCH):
        query = ids_clause(chunk, names.ours)
        body = {"size": len(chunk), "query": query, "_source": False, "seq_no_primary_term": True}
        hits = index.plain.request("POST", path(names.path, "_search"), body=body)["hits"]["hits"]
        references = [(names.theirs[hit["_index"]], hit["_id"], hit.get("_routing")) for hit in hits]
        left_alone = _left_alone(index, chunk)
        for hit, there in zip(hits, their_parts(index, references, False), strict=True):
            if there is None or there.address in left_alone:
                yield Action(
                    op="delete",
                    index=hit["_index"],
                    id=hit["_id"],
                    body={},
                    routing=hit.get("_routing"),
                    seq_no=hit["_seq_no"],
                    primary_term=hit["_primary_term"],
                )


def _left_alone(index: Index, addresses: Iterable[Address]) -> set[Address]:
    """The documents that belong to a relation of a join field which is left alone, even if only since a change."""
    if not index.target.left_alone:
        return set()
    query = queries.all_of(queries.of_relations(index.target.left_alone), ids_clause(addresses))
    return set(addresses_of(index.plain, index.path, query))


def redirected(body: bytes, names: Mapping[str, str], *, mark: bool) -> bytes:
    """The same bulk request with other names of indices. ``mark``: updates say that the user's document does not have
    its group id yet."""
    return b"".join(_lines(body.split(b"\n"), names, mark))


def _lines(lines: list[bytes], names: Mapping[str, str], mark: bool) -> Iterator[bytes]:
    waiting = iter(lines)
    for line in waiting:
        if not line:
            continue
        head: dict[str, Any] = json.loads(line)
        ((op, meta),) = head.items()
        ours = meta["_index"] in names
        meta["_index"] = names.get(meta["_index"], meta["_index"])
        yield to_json(head) + b"\n"
        if op == "delete":
            continue
        content = next(waiting)
        if mark and ours and op == "update":
            change = json.loads(content)
            change["doc"][REFERENCE] = {"mirrored": False}
            content = to_json(change)
        yield content + b"\n"
