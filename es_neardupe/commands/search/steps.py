"""Steps of ``search``: the query, its checks, and the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from es_neardupe.commands.search.report import Copy, SearchHit
from es_neardupe.errors import SettingsError
from es_neardupe.groups.related import folded
from es_neardupe.index import queries
from es_neardupe.index.index import Index, opened
from es_neardupe.index.shown_fields import UserFields, chosen_fields, shown_value, user_fields
from es_neardupe.index.storage.collapse import CollapsedSearch
from es_neardupe.index.stored_fields import decode_grouping, stored_fields
from es_neardupe.index.target import Definitions, IndexTarget
from es_neardupe.query_strings import problem_of_query
from es_neardupe.server.client import JSON
from es_neardupe.wording import option


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
