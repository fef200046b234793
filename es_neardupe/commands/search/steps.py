"""Steps of ``search``: the query, its checks, and the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from es_neardupe.errors import SettingsError
from es_neardupe.groups.related import folded
from es_neardupe.index import queries
from es_neardupe.index.index import Index, opened
from es_neardupe.index.shown_fields import UserFields, chosen_fields, shown_value, user_fields
from es_neardupe.index.storage.collapse import CollapsedSearch
from es_neardupe.index.stored_fields import decode_grouping, stored_fields
from es_neardupe.index.target import Definitions, IndexTarget
from es_neardupe.query_strings import problem_of_query
from es_neardupe.records import one_line
from es_neardupe.server.client import JSON
from es_neardupe.wording import option


@dataclass(frozen=True)
class Copy:
    """Another document of a hit's group that also matches the query."""

    index: str
    id: str
    similarity: float | None
    """To the principal of the group; None for a document that waits for ``group``."""
    principal: bool
    fields: Mapping[str, str]


@dataclass(frozen=True)
class SearchHit:
    """The first document of a group, in the order of the search; or one without a group id."""

    index: str
    id: str
    score: float | None
    """Score of the server; None if the hits are sorted by something else."""
    group: str | None
    near_copies: int
    """Number of other documents of the group that match the query; exact."""
    fields: Mapping[str, str]
    """Field -> its text, for the fields to show."""
    members: tuple[Copy, ...]
    """With ``expand``, up to 99 of the near-copies."""
    related: tuple[SearchHit, ...] = ()
    """With ``related``, the other hits of the page whose groups are related to this one."""

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
class SearchReport:
    """One page of hits, and the counts of all matching documents."""

    index: str
    documents: int
    """Documents with a group id that match the query."""
    groups: int
    """Number of their groups; the server's ``cardinality``, which is approximate."""
    without_group: int
    """Matching documents without a group id: they are in ``apart``, not in ``hits``."""
    without_similarity: int
    """Matching documents whose text has changed since ``group`` last ran, and those without a group id. With a sidecar,
    new documents too."""
    start: int
    size: int
    hits: tuple[SearchHit, ...]
    apart: tuple[SearchHit, ...]
    """The same page of the documents without a group id."""
    indices: tuple[str, ...]
    """Concrete indices that were searched."""

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            documents=self.documents,
            groups=self.groups,
            hits=len(self.hits),
            without_group=self.without_group,
        )


def hit_of(
    request: CollapsedSearch, raw: JSON, group: str | None, near_copies: int = 0, members: tuple[Copy, ...] = ()
) -> SearchHit:
    """A document as a hit."""
    return SearchHit(raw["_index"], raw["_id"], raw.get("_score"), group, near_copies, _texts(request, raw), members)


def copy_of(request: CollapsedSearch, raw: JSON, group: str, prefix: str) -> Copy:
    """A document as a near-copy of a hit."""
    stored = stored_fields(raw.get("_source", {}), prefix)
    grouping = decode_grouping({**stored, "group": group})
    return Copy(
        raw["_index"],
        raw["_id"],
        None if grouping is None else grouping.similarity,
        grouping is not None and grouping.principal,
        _texts(request, raw),
    )


def _texts(request: CollapsedSearch, raw: JSON) -> dict[str, str]:
    return {name: shown_value(raw.get("_source", {}), name) for name in request.shown}


def with_related(index: Index, hits: Sequence[SearchHit]) -> list[SearchHit]:
    """Those of a page of hits that are related to no earlier one, each with the later ones that are."""
    below: dict[str, list[SearchHit]] = {}
    groups = [one.group or "" for one in hits]
    for one, first in zip(hits, folded(index, groups), strict=True):
        below.setdefault(first, []).append(one)
    return [replace(first, related=tuple(others)) for first, *others in below.values()]


def checked(
    index: Index,
    text: str | Mapping[str, Any],
    *,
    query: Mapping[str, Any] | None,
    size: int,
    start: int,
    fields: Sequence[str],
    expand: bool,
) -> tuple[Index, CollapsedSearch]:
    """The opened index and the search of it, after checking the options. Raises what `search` raises."""
    index = opened(index, groups=True)
    if start + size > index.target.max_result_window:
        raise SettingsError(
            f"{option('start')} {start} and {option('size')} {size} reach beyond the result window of "
            f"{index.target.max_result_window:,} (index.max_result_window): narrow the search by more words or by "
            f"{option('query')}."
        )
    # The two prefixes differ while a migration switches.
    known = user_fields(Definitions(index.client, index.path).mappings().values(), index.prefix, index.settings.prefix)
    parsed, sort = _parsed(text, known)
    shown = chosen_fields(index, known, fields)
    return index, CollapsedSearch(_limited(parsed, query, index.target), sort, start, size, shown, expand)


def _limited(query: JSON, scope: Mapping[str, Any] | None, target: IndexTarget) -> JSON:
    """The query with the same scores, limited to the scope and without documents of excluded relations."""
    limits: JSON = {"filter": [dict(scope)]} if scope else {}
    if target.skipped_relations:
        limits["must_not"] = [queries.of_relations(target.skipped_relations)]
    return {"bool": {"must": [query], **limits}} if limits else query


def _parsed(text: str | Mapping[str, Any], known: UserFields) -> tuple[JSON, Any]:
    """A query and its order (None: by score). Raises `SettingsError`.

    The words of a query string are searched in all text fields of the user. (By default servers search every field,
    including ``neardupe.state``, so that the word "signed" would match all documents.)
    """
    if isinstance(text, str):
        if not text.strip():
            raise SettingsError("The query is empty. `*` finds every document.")
        return known.query_of(text), None
    body = text if "query" in text else {"query": text}
    if others := sorted(set(body) - {"query", "sort"}):
        raise SettingsError(
            f"A body can only have query and sort, not {', '.join(others)}. `--show-request` prints the whole request, "
            f"which you can change."
        )
    if not isinstance(body["query"], Mapping) or not body["query"]:
        raise SettingsError('The query must be an object such as {"match": {"body": "bridge"}}.')
    if problem := problem_of_query(body["query"]):
        raise SettingsError(problem)
    return dict(body["query"]), body.get("sort")
