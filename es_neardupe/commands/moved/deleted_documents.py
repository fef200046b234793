"""What is known of a document that is gone: by the evidence of its pairs, or by the group that it was principal of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from es_neardupe.errors import Forbidden
from es_neardupe.groups.registry import Registry
from es_neardupe.index import queries
from es_neardupe.index.document_text import text_of
from es_neardupe.index.hidden_indices import HiddenIndex, exists, hidden_index_name
from es_neardupe.index.index import Index
from es_neardupe.index.permissions import partly_visible
from es_neardupe.index.queries import JSON
from es_neardupe.index.stored_fields import decode_grouping, stored_fields
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.options import DEFAULT_MAX_CHARS
from es_neardupe.records import Hit
from es_neardupe.server.bulk import chunked
from es_neardupe.server.search import search

__all__ = ["DeletedDocument", "DeletedDocuments", "KnownCopy"]

_OURS = ("content", "group", "principal", "similarity")
"""What is read of our fields."""


@dataclass(frozen=True)
class KnownCopy:
    """A document of which it is known how similar it is to one that is gone."""

    hit: Hit
    similarity: float
    measure: str
    at: str
    """When that was found."""


@dataclass(frozen=True)
class DeletedDocument:
    """What is left of a document."""

    index: str
    id: str
    basis: str
    """``evidence`` or ``grouping``."""
    known: tuple[KnownCopy, ...]
    changed: int
    """Documents whose text is no longer the one that was compared."""


class DeletedDocuments:
    """Looks for documents that are gone by their ids."""

    def __init__(self, index: Index, asked: JSON) -> None:
        """``asked``: what else to ask of each document, as in a search body."""
        self._index = index
        self._asked = asked
        self._registry = Registry(index)
        self._pairs = hidden_index_name(index.target, HiddenIndex.PAIRS)
        self.forbidden = bool(partly_visible(index))
        """Whether the user may not read our indices beside the user's own, or not all of what these are about: to such
        a one, a document that is hidden looks like one that is gone."""

    def of(self, id: str) -> DeletedDocument | None:
        """Evidence says more than the last grouping, so it is asked first; None where both know nothing."""
        return self._allowed(lambda: self._by_evidence(id) or self._by_grouping(id))

    def before(self, id: str, present: str) -> DeletedDocument | None:
        """What evidence knows of the text that a document had before the ``present`` one (a content hash)."""
        return self._allowed(lambda: self._by_evidence(id, present))

    def _allowed(self, ask: Callable[[], DeletedDocument | None]) -> DeletedDocument | None:
        """None once it has shown that this user may not ask."""
        if self.forbidden:
            return None
        try:
            return ask()
        except Forbidden:
            self.forbidden = True
            return None

    def _by_evidence(self, id: str, present_content: str | None = None) -> DeletedDocument | None:
        """Other documents that bear a text which was once compared with that of the document, or that text itself; None
        where it is the present one."""
        if not exists(self._index.client, self._pairs):
            return None
        body = {"size": 1, "query": self._about({"a.id": id, "b.id": id}), "sort": [{"at": "desc"}]}
        found = search(self._index.client, self._pairs, body)["hits"]["hits"]
        if not found:
            return None
        told = _told(found[0]["_source"], id)
        if told is None or told.content == present_content:
            return None
        similar = {told.content: (1.0, told.at)} | self._compared_with(told.content)
        known, changed = [], 0
        for chunk in chunked(similar, queries.MAX_TERMS):
            for hit, present in self._read({"terms": {self._index.target.fields.content: chunk}}):
                if hit.id == id:
                    continue
                changed += present not in similar
                if present in similar:
                    known.append(KnownCopy(hit, similar[present][0], "resemblance", similar[present][1]))
        return DeletedDocument(told.where, id, "evidence", tuple(known), changed)

    def _compared_with(self, content: str) -> dict[str, tuple[float, str]]:
        """Content hash -> resemblance to a text, and when that was found."""
        similar: dict[str, tuple[float, str]] = {}
        body = {
            "query": self._about({"content_a": content, "content_b": content}),
            "_source": ["content_a", "content_b", "resemblance", "at"],
        }
        for page in self._index.client.pages(self._pairs, body):
            for one in (hit.source for hit in page):
                other = one.get("content_b") if one.get("content_a") == content else one.get("content_a")
                similarity, at = one.get("resemblance"), one.get("at")
                if isinstance(other, str) and isinstance(similarity, int | float) and isinstance(at, str):
                    similar[other] = float(similarity), at
        return similar

    def _about(self, terms: dict[str, str]) -> JSON:
        """Entries of the present scheme that have one of the values."""
        any_of = [{"term": {field: value}} for field, value in terms.items()]
        return queries.all_of({"term": {"scheme": self._index.target.scheme_id}}, {"bool": {"should": any_of}})

    def _by_grouping(self, id: str) -> DeletedDocument | None:
        """Members of the group that the document was principal of: their similarity to it is stored in them."""
        entry = self._registry.led_by(id)
        if entry is None:
            return None
        measure = entry.settings.measure if entry.settings else ""
        known, changed = [], 0
        for hit, present in self._read(queries.grouped_members(self._index.target.fields, entry.group)):
            stored = stored_fields(hit.source, self._index.target.settings.prefix)
            grouping = decode_grouping(stored)
            same = grouping is not None and present == stored.get("content")
            changed += not same
            if same and grouping is not None:
                known.append(KnownCopy(hit, grouping.similarity, measure, entry.updated))
        return DeletedDocument(*entry.principal, "grouping", tuple(known), changed)

    def _read(self, query: JSON) -> Iterator[tuple[Hit, str]]:
        """Documents, each with the content hash of its present text."""
        settings = self._index.target.settings
        body: dict[str, Any] = {**self._asked, "query": query}
        body["_source"] = [*settings.fields, *(f"{settings.prefix}.{name}" for name in _OURS)]
        for page in self._index.client.pages(self._index.target.path, body, page_size=200):
            texts = [text_of(hit.source, settings.fields) for hit in page]
            for hit, one in zip(page, fingerprints(texts, settings.scheme, max_chars=DEFAULT_MAX_CHARS), strict=True):
                yield hit, one.content


class _EvidenceSide(NamedTuple):
    """What an entry of evidence tells of one of its two documents."""

    where: str
    """Its index."""
    content: str
    at: str


def _told(entry: Mapping[str, Any], id: str) -> _EvidenceSide | None:
    """What there is of the document of this id; None for an entry that our code cannot have written."""
    for side in "ab":
        address = entry.get(side)
        if isinstance(address, dict) and address.get("id") == id:
            told = [address.get("index"), entry.get(f"content_{side}"), entry.get("at")]
            return _EvidenceSide(*map(str, told)) if all(isinstance(one, str) for one in told) else None
    return None
