"""Fields that store fingerprints, from documents as they were read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from es_neardupe.errors import CorruptFingerprint
from es_neardupe.index import queries
from es_neardupe.index.document_text import fingerprint_sources
from es_neardupe.index.handle import IndexHandle
from es_neardupe.index.mapping import dotted_names
from es_neardupe.index.settings import Settings
from es_neardupe.index.stored_fields import content_of, decode, encode, group_of, own_group, random_group, stored_fields
from es_neardupe.records import Address, Fingerprint, Hit
from es_neardupe.server.bulk import chunked
from es_neardupe.server.client import JSON


class FingerprintedDocument(NamedTuple):
    """A document and the fingerprint of its current text."""

    hit: Hit
    fingerprint: Fingerprint
    alone: str | None = None
    """The id of the group of its own that a new document can have; None for any other document."""


def fingerprint_documents(
    pages: Iterable[Sequence[Hit]],
    settings: Settings,
    max_chars: int,
    *,
    inherits: str | None = None,
    in_use: InUse | None = None,
) -> Iterator[FingerprintedDocument]:
    """The documents of all pages with their fingerprints.

    ``inherits``: see `fingerprint_fields`. ``in_use``: returns the group ids that documents have already; None: every
    document is to wait for ``group``.
    """
    for page in pages:
        alone: list[str | None] = [None] * len(page)
        if in_use is not None:
            own = [None if _group(hit, settings, inherits) else own_group(hit.index, hit.id) for hit in page]
            new = {id for id in own if id is not None}
            new -= set(in_use(sorted(new))) if new else set()
            alone = [id if id in new else None for id in own]
        fingerprints = fingerprint_sources([hit.source for hit in page], settings, max_chars)
        yield from map(FingerprintedDocument, page, fingerprints, alone)


def _group(hit: Hit, settings: Settings, inherits: str | None) -> str | None:
    """The group id that a document has, or inherits."""
    group = group_of(stored_fields(hit.source, settings.prefix))
    return group if group or inherits is None else group_of(stored_fields(hit.source, inherits))


def is_current(document: FingerprintedDocument, settings: Settings) -> bool:
    """Whether the document has a group id and the fingerprint of its current text, and not another value of these
    fields under a name with a dot: the server would not `collapse` by two values."""
    stored = stored_fields(document.hit.source, settings.prefix)
    if not stored or dotted_names(document.hit.source, settings.prefix):
        return False
    try:
        before = decode(stored)
    except CorruptFingerprint:
        return False
    now = document.fingerprint
    return (before == now or _ordered(before) == _ordered(now)) and group_of(stored) is not None


def _has_same_text(document: FingerprintedDocument, settings: Settings) -> bool:
    """Whether the document has a group id, and the content hash of its current text in a fingerprint of the scheme."""
    stored, now = stored_fields(document.hit.source, settings.prefix), document.fingerprint
    same = (stored.get("scheme"), content_of(stored)) == (now.scheme, now.content)
    return same and stored.get("state") == now.state.value and group_of(stored) is not None


def _ordered(fingerprint: Fingerprint) -> Fingerprint:
    """With ascending keys: a server that rebuilds ``_source`` from columns returns them so, each once."""
    samples = None if fingerprint.samples is None else tuple(sorted(set(fingerprint.samples)))
    return replace(fingerprint, bands=tuple(sorted(set(fingerprint.bands))), samples=samples)


def has_copy(hit: Hit, settings: Settings) -> bool:
    """Whether the document has a copy of its group id, if the settings want one."""
    name = settings.group_field
    return name is None or hit.source.get(name) == _group(hit, settings, None)


def fingerprint_fields(
    document: FingerprintedDocument, settings: Settings, at: str, *, inherits: str | None = None
) -> dict[str, Any]:
    """The fields that store the fingerprint, for an update of the document.

    A new document gets a group of its own. A document with the text of its fingerprint stays as it is in its group. Any
    other one waits for ``group``: similarity and principal become null, but it keeps its group id, or the one that it
    has under the prefix ``inherits``.
    """
    hit = document.hit
    fields = encode(document.fingerprint, at)
    same = _has_same_text(document, settings)
    if document.alone is not None and not same:
        fields.update(alone(document.alone))
    elif not same:
        fields.update(waiting(_group(hit, settings, inherits) or own_group(hit.index, hit.id)))
    elif settings.group_field is not None:
        fields["group"] = _group(hit, settings, None)
    return fields


InUse = Callable[[Sequence[str]], Collection[str]]
"""Returns those of some group ids that documents have already."""


def alone(group: str) -> JSON:
    """The group fields of a document that is in no group with others, as `encode_grouping` makes them."""
    return {"group": group, "principal": True, "similarity": 1.0}


def waiting(group: str) -> JSON:
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
        self.any = index.documents.count({"exists": {"field": index.fields.group}}) > 0
        """Whether there are any; a caller that writes some sets it."""

    def among(self, ids: Sequence[str]) -> Collection[str]:
        """Those of the ids that a document has."""
        found: set[str] = set()
        field = self._index.fields.group
        for chunk in chunked(ids, queries.MAX_TERMS) if self.any else ():
            aggregation = {"ids": {"terms": {"field": field, "size": len(chunk)}}}
            body = {"size": 0, "query": queries.all_of({"terms": {field: chunk}}), "aggs": aggregation}
            buckets = self._index.documents.search(body)["aggregations"]["ids"]["buckets"]
            found.update(bucket["key"] for bucket in buckets)
        return found.intersection(ids)
