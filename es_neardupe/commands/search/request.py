"""The request that an ordinary search becomes, so that its hits are collapsed by group."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from es_neardupe import options
from es_neardupe.errors import SettingsError
from es_neardupe.index import mapping as schema
from es_neardupe.index import queries
from es_neardupe.index.collapse import CollapsedSearch
from es_neardupe.index.index import Index, opened
from es_neardupe.index.queries import JSON
from es_neardupe.index.target import IndexTarget, mappings_of

__all__ = ["search_request"]

_TITLES = ("title", "headline", "subject", "name")
"""Fields by which people recognise a document."""


def search_request(
    index: Index,
    text: str | Mapping[str, Any],
    *,
    query: options.Query = None,
    size: options.Size = 10,
    start: options.Start = 0,
    fields: options.ShownFields = (),
    expand: options.Expand = False,
) -> JSON:
    """The body that `search` sends to ``/INDEX/_search`` for its hits. Raises as that does."""
    index, asked = checked_search(index, text, scope=query, size=size, start=start, fields=fields, expand=expand)
    return index.storage.collapse_request(asked)


def checked_search(
    index: Index,
    text: str | Mapping[str, Any],
    *,
    scope: Mapping[str, Any] | None,
    size: int,
    start: int,
    fields: Sequence[str],
    expand: bool,
) -> tuple[Index, CollapsedSearch]:
    """The opened index, and the search of it, after checking the options.

    Raises as `es_neardupe.commands.search.search` does.
    """
    if size < 1 or start < 0:
        raise SettingsError("`size` must be 1 or more, `start` 0 or more.")
    index = opened(index)
    if start + size > index.target.max_result_window:
        raise SettingsError(
            f"`start` {start} and `size` {size} reach beyond the result window of {index.target.max_result_window:,} "
            f"(index.max_result_window): narrow the search by more words or by `query`."
        )
    types: dict[str, str] = {}
    nested: set[str] = set()
    for mapping in mappings_of(index.client, index.path).values():
        types |= schema.field_types(mapping.get("properties", {}))
        nested.update(schema.nested_objects(mapping.get("properties", {})))
    ours = (f"{index.prefix}.", f"{index.settings.prefix}.")  # which differ while a migration switches
    types = {name: kind for name, kind in types.items() if not name.startswith(ours)}
    found, sort = _parsed(text, types, nested)
    whole = _limited(found, scope, index.target)
    shown = _shown(index.target, types, fields)
    return index, CollapsedSearch(whole, sort, start, size, shown, expand)


def _limited(found: JSON, scope: Mapping[str, Any] | None, target: IndexTarget) -> JSON:
    """The query, scored as it is, within the scope and without the documents that are left alone."""
    limits: JSON = {"filter": [dict(scope)]} if scope else {}
    if target.skipped_relations:
        limits["must_not"] = [queries.of_relations(target.skipped_relations)]
    return {"bool": {"must": [found], **limits}} if limits else found


def _parsed(given: str | Mapping[str, Any], types: Mapping[str, str], nested: Collection[str]) -> tuple[JSON, Any]:
    """A query and its order (None: by score). Raises `SettingsError`.

    The words of a query string are looked for in all texts of the user's. (By default servers look into every field:
    also into our ``state``, so that the word "signed" would find all documents.)
    """
    if isinstance(given, str):
        if not given.strip():
            raise SettingsError("The query is empty. `*` finds every document.")
        texts = sorted(name for name, kind in types.items() if kind in schema.TEXT_TYPES)
        return _of_words(given, texts, nested), None
    if "query" not in given:
        body: Mapping[str, Any] = {"query": given}
    else:
        body = given
    if others := sorted(set(body) - {"query", "sort"}):
        raise SettingsError(
            f"A body may hold query and sort, not {', '.join(others)}: the rest is ours. `--show-request` prints the "
            f"whole, to be changed as you like."
        )
    if not isinstance(body["query"], Mapping) or not body["query"]:
        raise SettingsError('The query must be an object such as {"match": {"body": "bridge"}}.')
    return dict(body["query"]), body.get("sort")


def _of_words(given: str, texts: Sequence[str], nested: Collection[str]) -> JSON:
    """Documents by words in any of the texts. Those of nested objects are documents of their own for a server: there it
    is one of them that has to fulfil the query, and the best one counts."""
    by_object: dict[str | None, list[str]] = {None: []}
    for name in texts:
        by_object.setdefault(schema.lies_in(name, nested), []).append(name)
    found = {path: {"query_string": {"query": given, "fields": names}} for path, names in by_object.items() if names}
    plain = found.pop(None, None)
    inside = [{"nested": {"path": path, "query": query, "score_mode": "max"}} for path, query in found.items()]
    if not inside:
        return plain or {"query_string": {"query": given, "fields": list(texts)}}
    return {"bool": {"should": [*([plain] if plain else ()), *inside], "minimum_should_match": 1}}


def _shown(target: IndexTarget, types: Mapping[str, str], fields: Sequence[str]) -> tuple[str, ...]:
    """The fields to show. Raises `SettingsError` for one that is not there."""
    there = sorted(name for name, kind in types.items() if kind != "multi-field")
    for name in fields:
        if name not in there:
            raise SettingsError(f"Index {target.name} has no field {name!r} to show. Fields: {', '.join(there)}.")
    title = next((name for name in _TITLES if name in there), None)
    chosen = fields or [name for name in (title, target.settings.fields[0]) if name is not None]
    return tuple(dict.fromkeys(chosen))
