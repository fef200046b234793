"""Entries of a sidecar index: one for each fingerprinted document, with its fingerprint, its group, and a reference to
it.

The reference (``@source``) names the document and the version that the fingerprint was made from. The functions here
read entries with their documents, and build the writes of entries.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from es_neardupe.errors import IndexUnusable
from es_neardupe.index import queries
from es_neardupe.index.handle import IndexHandle
from es_neardupe.index.storage.sidecar.indices import REFERENCE, SidecarNames, sidecar_name
from es_neardupe.index.storage.sidecar.queries import Source, addresses_of, ids_clause
from es_neardupe.index.stored_fields import stored_fields
from es_neardupe.index.target import IndexTarget
from es_neardupe.records import Action, Address, Hit, Reference
from es_neardupe.server.bulk import chunked
from es_neardupe.server.client import JSON, path, to_json
from es_neardupe.server.documents import Documents

_PAGE = 10_000
_BATCH = 1000
_TERM = 1 << 56
"""`KnownEntries` stores a version as one integer: the primary term times this, plus the sequence number."""

_OUTDATED = -1
"""Marks an entry without a group, of another scheme, or of a deleted index of the same name."""


def reference_of(hit: Mapping[str, Any]) -> Reference:
    """Index, id and routing of a hit in an answer."""
    return hit["_index"], hit["_id"], hit.get("_routing")


def read_params(target: IndexTarget, source: Source) -> JSON:
    """The part of a request that selects fields of documents: of ``_source``, or stored fields if that is not kept.

    Raises `IndexUnusable` for a field that is in neither.
    """
    assert target.sidecar is not None
    if not target.sidecar.stored or source is False:
        return {"_source": source}
    names = list(target.settings.fields) if source is True else list(source)
    if lacking := sorted(set(names) - set(target.settings.fields)):
        raise IndexUnusable(
            f"Index {target.name} does not keep {', '.join(lacking)} in _source: only the stored fields "
            f"{', '.join(target.settings.fields)} of its documents can be read."
        )
    return {"_source": False, "stored_fields": names}


def fetch_documents(index: IndexHandle, references: Sequence[Reference], source: Source) -> list[Hit | None]:
    """The current documents with the given fields, in the order of the references; None for a deleted document. Raises
    what `fetch` raises."""
    params = read_params(index.target, source)
    return list(index.plain_documents.fetch(references, params["_source"], stored=params.get("stored_fields", ())))


def fetch_entries(index: IndexHandle, references: Sequence[Reference], source: Source) -> list[Hit | None]:
    """The entries of documents, in the order of the references: with their own version, but under the index name of the
    document; None if there is no entry. Raises what `fetch` raises."""
    names = SidecarNames(index.target)
    of_entries = [(names.sidecars[concrete], id, routing) for concrete, id, routing in references]
    entries = index.plain_documents.fetch(of_entries, source, batch=_BATCH)
    return [None if one is None else replace(one, index=names.indices[one.index]) for one in entries]


def fetched_fields(found: Mapping[str, Any]) -> JSON:
    """The fields in an answer about one document, from ``_source`` or stored fields."""
    return {**found.get("_source", {}), **found.get("fields", {})}


def fetch_docvalues(index: IndexHandle, references: Sequence[Reference], fields: Sequence[Any]) -> dict[Address, JSON]:
    """``docvalue_fields`` of documents, by address; in the form of ``fields`` of a hit."""
    values: dict[Address, JSON] = {}
    if not fields:
        return values
    for chunk in chunked(references, _BATCH):
        query = ids_clause(Address(concrete, id) for concrete, id, _ in chunk)
        body = {"size": len(chunk), "query": query, "_source": False, "docvalue_fields": list(fields)}
        for hit in index.server.request("POST", path(index.path, "_search"), body=body)["hits"]["hits"]:
            values[Address(hit["_index"], hit["_id"])] = hit.get("fields", {})
    return values


def replaced_entries(index: IndexHandle) -> dict[str, int]:
    """Concrete index -> number of its entries that belong to a deleted index of the same name, where there are any."""
    names = SidecarNames(index.target)
    numbers = {
        concrete: Documents(index.server, names.sidecars[concrete]).count(
            {"bool": {"must_not": [{"term": {f"{REFERENCE}.uuid": uuid}}]}}
        )
        for concrete, uuid in index.target.uuids.items()
        if concrete not in index.target.new
    }
    return {concrete: number for concrete, number in numbers.items() if number}


_VERSION = tuple(f"{REFERENCE}.{name}" for name in ("seq_no", "primary_term", "uuid"))


class KnownEntries:
    """The versions of documents that have an entry, and which documents were seen. About 200 bytes per entry."""

    def __init__(self, index: IndexHandle, entries: Iterable[tuple[Hit, Mapping[str, Any]]]) -> None:
        """``entries``: under the index name of their document, each with its fields by their full names."""
        scheme, group, uuids = index.fields.scheme, index.fields.group, index.target.uuids
        self._versions: dict[str, dict[str, int]] = {concrete: {} for concrete in index.target.indices}
        self._seen: dict[str, set[str]] = {concrete: set() for concrete in index.target.indices}
        for hit, fields in entries:
            seq_no, term, uuid = (fields.get(name) for name in _VERSION)
            current = uuid == uuids.get(hit.index) and fields.get(scheme) == index.scheme_id
            if current and fields.get(group) is not None and seq_no is not None and term is not None:
                self._versions[hit.index][hit.id] = term * _TERM + seq_no
            else:
                self._versions[hit.index][hit.id] = _OUTDATED
        self.current = sum(version != _OUTDATED for one in self._versions.values() for version in one.values())
        """Number of entries of the current scheme."""

    @classmethod
    def all(cls, index: IndexHandle) -> KnownEntries:
        """Reads all entries."""
        names, columns = SidecarNames(index.target), [*_VERSION, index.fields.scheme, index.fields.group]
        body = {"query": {"match_all": {}}, "_source": False, "docvalue_fields": columns}
        pages = index.server.pages(names.path, body, page_size=_PAGE)
        return cls(
            index,
            (
                (replace(hit, index=names.indices[hit.index]), {name: one[0] for name, one in hit.source.items()})
                for page in pages
                for hit in page
            ),
        )

    @classmethod
    def of(cls, index: IndexHandle, documents: Sequence[Hit]) -> KnownEntries:
        """Reads the entries of these documents."""
        columns = [*_VERSION, index.fields.scheme, index.fields.group]
        entries = fetch_entries(index, [hit.reference for hit in documents], columns)
        return cls(index, ((entry, _flat(entry.source)) for entry in entries if entry is not None))

    def has(self, hit: Hit) -> bool:
        """Whether a document has an entry."""
        return hit.id in self._versions[hit.index]

    def is_current(self, hit: Hit) -> bool:
        """Whether it has an entry of the current scheme, made from any version."""
        return self._versions[hit.index].get(hit.id, _OUTDATED) != _OUTDATED

    def is_same_version(self, hit: Hit) -> bool:
        """Whether it has an entry of the current scheme, made from exactly this version."""
        return self._versions[hit.index].get(hit.id) == (hit.primary_term or 0) * _TERM + (hit.seq_no or 0)

    def see(self, hit: Hit) -> None:
        """Note that a document exists."""
        self._seen[hit.index].add(hit.id)

    def unseen(self) -> Iterator[Address]:
        """The documents that have an entry and were not seen."""
        for index, versions in self._versions.items():
            yield from (Address(index, id) for id in versions if id not in self._seen[index])


def _flat(source: Mapping[str, Any]) -> JSON:
    """The fields of the objects of an entry, by their full names."""
    return {f"{prefix}.{name}": value for prefix, fields in source.items() for name, value in fields.items()}


def count_entries(index: IndexHandle) -> dict[str, int]:
    """Numbers of entries: those of the ``current`` scheme, as `KnownEntries` counts them, and the ``outdated`` ones."""
    uuids = {"terms": {f"{REFERENCE}.uuid": sorted(index.target.uuids.values())}}
    current = queries.all_of(queries.fingerprinted(index.fields, index.scheme_id), uuids)
    outdated = queries.without({"match_all": {}}, current)
    return Documents(index.server, SidecarNames(index.target).path).counts(current=current, outdated=outdated)


def with_entries(index: IndexHandle, hits: Sequence[Hit]) -> Iterator[tuple[Hit, Hit | None]]:
    """Documents with the stored fields of their entries, each with its entry (None if there is none)."""
    prefix = index.settings.prefix
    entries = fetch_entries(index, [hit.reference for hit in hits], [prefix])
    for hit, entry in zip(hits, entries, strict=True):
        stored = stored_fields(entry.source if entry else {}, prefix)
        yield Hit(hit.index, hit.id, hit.routing, hit.seq_no, hit.primary_term, {**hit.source, prefix: stored}), entry


def with_inherited(index: IndexHandle, hits: Sequence[Hit]) -> list[Hit]:
    """Documents with the group id of their entry under the prefix that the target inherits from, if any."""
    inherits = index.target.inherits
    if inherits is None:
        return list(hits)
    former = index.with_target(replace(index.target, settings=replace(index.settings, prefix=inherits)))
    entries = fetch_entries(former, [hit.reference for hit in hits], [former.fields.group])
    return [
        replace(hit, source={**hit.source, inherits: stored_fields(entry.source if entry else {}, inherits)})
        for hit, entry in zip(hits, entries, strict=True)
    ]


def entry_takeovers(source: IndexHandle, target: IndexHandle, hits: Iterable[Hit]) -> Iterator[Action]:
    """Writes that replace the entries of ``target`` by those of ``source`` (the hits), rejected by the server if an
    entry of ``target`` has changed since; none for equal entries.

    The group id in a document remains marked as written (``mirrored``) if both entries have it, for the same version.
    """
    names, prefix = SidecarNames(source.target), target.settings.prefix
    for chunk in chunked(hits, _BATCH):
        references = [(sidecar_name(names.indices[hit.index], prefix), hit.id, hit.routing) for hit in chunk]
        present = source.plain_documents.fetch(references, True, batch=_BATCH)
        for hit, (name, *_), former in zip(chunk, references, present, strict=True):
            before: Mapping[str, Any] = {} if former is None else former.source
            entry = _taken_over(hit, source.settings.prefix, before, prefix)
            if entry is not None and entry != before:
                yield Action(
                    op="create" if former is None else "index",
                    index=name,
                    id=hit.id,
                    body=entry,
                    routing=hit.routing,
                    seq_no=None if former is None else former.seq_no,
                    primary_term=None if former is None else former.primary_term,
                )


def _taken_over(hit: Hit, prefix: str, before: Mapping[str, Any], new_prefix: str) -> JSON | None:
    """The content of an entry under the other prefix, in the place of ``before``; None if the hit is not an entry."""
    fields, reference = stored_fields(hit.source, prefix), stored_fields(hit.source, REFERENCE)
    if not fields or not reference:
        return None
    former = stored_fields(before, REFERENCE)
    same_group = stored_fields(before, new_prefix).get("group") == fields.get("group")
    same_version = {**former, "mirrored": None} == {**reference, "mirrored": None}
    mirrored = same_group and same_version and former["mirrored"] is True
    return {new_prefix: fields, REFERENCE: {**reference, "mirrored": mirrored}}


def entry_write(update: Action, entry: Hit | None, prefix: str, uuid: str, *, current: bool) -> Action:
    """The write of an entry, rejected by the server if the ``entry`` that was read has changed since.

    ``update``: the update that the document would get with inline storage. A fingerprint that was not ``current``
    replaces the whole entry.
    """
    fields = update.body["doc"][prefix]
    body = {prefix: fields, REFERENCE: _reference(update, uuid)}
    if current and entry is not None:
        return _write("update", update, {"doc": body}, prefix, entry)
    return _write("create" if entry is None else "index", update, body, prefix, entry)


def confirmation(update: Action, entry: Hit, prefix: str, uuid: str) -> Action:
    """The update of an entry whose fingerprint is also that of the new version of its document. The new version may
    lack the group id."""
    return _write("update", update, {"doc": {REFERENCE: _reference(update, uuid)}}, prefix, entry)


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


def _write(op: str, update: Action, body: JSON, prefix: str, entry: Hit | None) -> Action:
    return Action(
        op=op,
        index=sidecar_name(update.index, prefix),
        id=update.id,
        body=body,
        routing=update.routing,
        seq_no=None if entry is None else entry.seq_no,
        primary_term=None if entry is None else entry.primary_term,
    )


def removals(index: IndexHandle, addresses: Iterable[Address]) -> Iterator[Action]:
    """Deletions of those entries whose document was deleted or belongs to a skipped relation; rejected by the server if
    the entry has changed since.

    Documents are read by their addresses, in real time: a search could miss documents that are not yet refreshed.
    """
    names = SidecarNames(index.target)
    for chunk in chunked(addresses, _BATCH):
        query = ids_clause(chunk, names.sidecars)
        body = {"size": len(chunk), "query": query, "_source": False, "seq_no_primary_term": True}
        hits = index.server.request("POST", path(names.path, "_search"), body=body)["hits"]["hits"]
        references = [(names.indices[hit["_index"]], hit["_id"], hit.get("_routing")) for hit in hits]
        skipped = _of_skipped_relations(index, chunk)
        for hit, document in zip(hits, fetch_documents(index, references, False), strict=True):
            if document is None or document.address in skipped:
                yield Action(
                    op="delete",
                    index=hit["_index"],
                    id=hit["_id"],
                    body={},
                    routing=hit.get("_routing"),
                    seq_no=hit["_seq_no"],
                    primary_term=hit["_primary_term"],
                )


def _of_skipped_relations(index: IndexHandle, addresses: Iterable[Address]) -> set[Address]:
    """Those of the documents that belong to a skipped relation of a join field, even if only since an update."""
    if not index.target.skipped_relations:
        return set()
    query = queries.all_of(queries.of_relations(index.target.skipped_relations), ids_clause(addresses))
    return set(addresses_of(index.plain_documents, query))


def redirect_bulk(body: bytes, names: Mapping[str, str], *, unmark: bool) -> bytes:
    """A bulk request with other names of indices.

    ``unmark``: updates also set ``mirrored`` to false, since the document does not have its new group id yet.
    """
    return b"".join(_redirected_lines(body.split(b"\n"), names, unmark))


def _redirected_lines(lines: list[bytes], names: Mapping[str, str], unmark: bool) -> Iterator[bytes]:
    remaining = iter(lines)
    for line in remaining:
        if not line:
            continue
        head: dict[str, Any] = json.loads(line)
        ((op, meta),) = head.items()
        redirected = meta["_index"] in names
        meta["_index"] = names.get(meta["_index"], meta["_index"])
        yield to_json(head) + b"\n"
        if op == "delete":
            continue
        content = next(remaining)
        if unmark and redirected and op == "update":
            change = json.loads(content)
            change["doc"][REFERENCE] = {"mirrored": False}
            content = to_json(change)
        yield content + b"\n"
