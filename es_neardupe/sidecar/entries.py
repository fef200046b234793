"""Entries of our index: what is known of the versions they were made from, how they are written, and removed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from es_neardupe import queries
from es_neardupe.bulk import chunked
from es_neardupe.clients import Client, path
from es_neardupe.documents import stored_fields
from es_neardupe.indices import Target
from es_neardupe.records import Action, Address, Hit
from es_neardupe.sidecar.completing import entries, their_parts
from es_neardupe.sidecar.joining import Names, addresses_of, ids_clause
from es_neardupe.sidecar.names import REFERENCE, sidecar_name

__all__ = ["Known", "confirmation", "entry", "gone", "uuids", "with_stored"]

JSON = dict[str, Any]

_PAGE = 10_000
_BATCH = 1000
_TERM = 1 << 56
"""A version is one number: the primary term times this, and the sequence number."""

_UNFIT = -1


def uuids(client: Client, target: Target) -> dict[str, str]:
    """Concrete index -> its uuid: one that was made anew under the same name begins its sequence numbers anew."""
    found = client.request("GET", path(target.path, "_settings", "index.uuid"), params={"flat_settings": "true"})
    return {index: entry["settings"]["index.uuid"] for index, entry in found.items()}


class Known:
    """Of which version of each document our index has a fingerprint. Some 200 bytes a document."""

    def __init__(self, client: Client, target: Target, uuids: Mapping[str, str]) -> None:
        """``client``: the one below the view. Reads all entries."""
        names, scheme, group = Names(target), target.fields.scheme, target.fields.group
        columns = [f"{REFERENCE}.{name}" for name in ("seq_no", "primary_term", "uuid")]
        body = {
            "query": {"match_all": {}},
            "_source": False,
            "docvalue_fields": [*columns, scheme, target.fields.group],
        }
        self._versions: dict[str, dict[str, int]] = {index: {} for index in target.indices}
        self._seen: dict[str, set[str]] = {index: set() for index in target.indices}
        wanted = [target.scheme_id]
        for page in client.pages(names.path, body, page_size=_PAGE):
            for hit in page:
                index = names.theirs[hit.index]
                seq_no, term, uuid = (hit.source.get(name, [None])[0] for name in columns)
                fits = uuid == uuids[index] and hit.source.get(scheme) == wanted
                fits = fits and group in hit.source and None not in (seq_no, term)
                self._versions[index][hit.id] = term * _TERM + seq_no if fits else _UNFIT
        self.fitting = sum(version != _UNFIT for one in self._versions.values() for version in one.values())
        """Entries of the present scheme."""

    def has(self, hit: Hit) -> bool:
        """Whether there is an entry of a document."""
        return hit.id in self._versions[hit.index]

    def fits(self, hit: Hit) -> bool:
        """Whether there is one of the present scheme, be it of another version."""
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
            yield from ((index, id) for id in versions if id not in self._seen[index])


def with_stored(client: Client, target: Target, hits: list[Hit]) -> Iterator[tuple[Hit, Hit | None]]:
    """Documents, each with our stored fields in it and with its entry (None: there is none)."""
    names = ["scheme", "state", "content", "tokens", "features", "numeric", "group"]
    asked = [f"{target.settings.prefix}.{name}" for name in names]
    references = [(hit.index, hit.id, hit.routing) for hit in hits]
    for hit, found in zip(hits, entries(client, target, references, asked), strict=True):
        stored = stored_fields(found.source if found else {}, target.settings.prefix)
        source = {**hit.source, target.settings.prefix: stored}
        yield Hit(hit.index, hit.id, hit.routing, hit.seq_no, hit.primary_term, source), found


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


def gone(client: Client, target: Target, addresses: Iterable[Address]) -> Iterator[Action]:
    """The removals of those entries whose document is not there any more, or is of a relation that is left alone;
    refused by the server if the entry changed.

    The documents are asked for by their address, in real time: no search that lags behind decides.
    """
    names = Names(target)
    for chunk in chunked(addresses, _BATCH):
        query = ids_clause(chunk, names.ours)
        body = {"size": len(chunk), "query": query, "_source": False, "seq_no_primary_term": True}
        hits = client.request("POST", path(names.path, "_search"), body=body)["hits"]["hits"]
        references = [(names.theirs[hit["_index"]], hit["_id"], hit.get("_routing")) for hit in hits]
        left_alone = _left_alone(client, target, chunk)
        for hit, there in zip(hits, their_parts(client, target, references, False), strict=True):
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


def _left_alone(client: Client, target: Target, addresses: Iterable[Address]) -> set[Address]:
    """The documents that belong to a relation of a join field which is left alone, be it since a change."""
    if not target.left_alone:
        return set()
    query = queries.all_of(queries.of_relations(target.left_alone), ids_clause(addresses))
    return set(addresses_of(client, target.path, query))
