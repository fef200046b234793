"""An ordinary search whose hits are collapsed by group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from es_neardupe import options
from es_neardupe.commands.search.request import checked_search
from es_neardupe.index.collapse import CollapsedSearch
from es_neardupe.index.document_text import text_of
from es_neardupe.index.index import Index
from es_neardupe.index.queries import JSON
from es_neardupe.index.stored_fields import decode_grouping, stored_fields
from es_neardupe.records import one_line

__all__ = ["Copy", "SearchHit", "SearchResult", "search"]


@dataclass(frozen=True)
class Copy:
    """Another document of a hit's group that the query finds too."""

    index: str
    id: str
    similarity: float | None
    """To the principal of the group; None for one that waits for ``group``."""
    principal: bool
    fields: Mapping[str, str]


@dataclass(frozen=True)
class SearchHit:
    """The first document of a group, in the order of the search; or one without a group id."""

    index: str
    id: str
    score: float | None
    """The server's; None where something else sorts."""
    group: str | None
    near_copies: int
    """Other documents of the group that the query finds. Exact."""
    fields: Mapping[str, str]
    """What is shown of the document: the texts of the named fields."""
    members: tuple[Copy, ...]
    """With ``expand``, up to 99 of the near-copies."""

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            id=self.id,
            score=self.score,
            group=self.group,
            near_copies=self.near_copies,
            fields=list(self.fields),
        )


@dataclass(frozen=True)
class SearchResult:
    """A page of the answer."""

    index: str
    documents: int
    """With a group id, that the query finds."""
    groups: int
    """About so many groups they are in: the server's ``cardinality``, which is approximate."""
    without_group: int
    """Documents that the query finds, but that have no group id: they are in ``apart``, not in ``hits``."""
    waiting: int
    """Documents that the query finds and that ``group`` has not seen yet, those without a group id included."""
    start: int
    size: int
    hits: tuple[SearchHit, ...]
    apart: tuple[SearchHit, ...]
    """The same page of the documents without a group id."""

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            documents=self.documents,
            groups=self.groups,
            hits=len(self.hits),
            without_group=self.without_group,
        )


def search(
    index: Index,
    text: str | Mapping[str, Any],
    *,
    query: options.Query = None,
    size: options.Size = 10,
    start: options.Start = 0,
    fields: options.ShownFields = (),
    expand: options.Expand = False,
) -> SearchResult:
    """What a query finds, one hit for each group, each with the number of its near-copies.

    ``text`` is a query string of Lucene's kind, or a query of the server's DSL, or a body with ``query`` and ``sort``.
    ``query`` filters. ``fields`` are shown of each document: by default its title, if there is one, and the first of
    the fields that have keys. Raises `SettingsError` for unknown fields, other parts of a body, and a page beyond the
    result window; `RequestError` for what the server rejects.
    """
    index, asked = checked_search(index, text, scope=query, size=size, start=start, fields=fields, expand=expand)
    page = index.storage.collapse(asked)
    prefix = index.settings.prefix
    hits = []
    for one in page.hits:
        members = tuple(_copy(asked, copy, one.group, prefix) for copy in one.members)
        hits.append(_hit(asked, one.hit, one.group, one.near_copies, members))
    return SearchResult(
        index=index.name,
        documents=page.documents,
        groups=page.groups,
        without_group=page.without_group,
        waiting=page.waiting,
        start=start,
        size=size,
        hits=tuple(hits),
        apart=tuple(_hit(asked, hit, None) for hit in page.apart),
    )


def _hit(
    asked: CollapsedSearch, raw: JSON, group: str | None, near_copies: int = 0, members: tuple[Copy, ...] = ()
) -> SearchHit:
    return SearchHit(raw["_index"], raw["_id"], raw.get("_score"), group, near_copies, _texts(asked, raw), members)


def _copy(asked: CollapsedSearch, raw: JSON, group: str, prefix: str) -> Copy:
    stored = stored_fields(raw.get("_source", {}), prefix)
    grouping = decode_grouping({**stored, "group": group})
    return Copy(
        raw["_index"],
        raw["_id"],
        None if grouping is None else grouping.similarity,
        grouping is not None and grouping.principal,
        _texts(asked, raw),
    )


def _texts(asked: CollapsedSearch, raw: JSON) -> dict[str, str]:
    return {name: text_of(raw.get("_source", {}), [name]) for name in asked.shown}
