"""Which groups documents and texts belong to, read from the values of fields instead of documents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Any

from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.index.stored_fields import group_of, stored_fields
from es_neardupe.progress import Progress, silent
from es_neardupe.server.bulk import chunked
from es_neardupe.server.search import buckets, refresh_if_allowed


def groups_with(index: Index, query: Mapping[str, Any]) -> Iterator[str]:
    """The ids of the groups that have a document that matches a query, ascending if they are many."""
    refresh_if_allowed(index.client, index.path)
    grouped = queries.all_of(queries.fingerprinted(index.fields, index.scheme_id), query)
    try:
        for one in buckets(index.client, index.path, grouped, {"group": index.fields.group}):
            yield one["group"]
    except queries.TooManyDocuments:  # raised before the first one: documents and entries are joined in this process
        found = set[str]()
        body = {"query": grouped, "_source": [index.fields.group]}
        for page in index.client.pages(index.path, body, page_size=5000):
            found.update(group_of(stored_fields(hit.source, index.settings.prefix)) or "" for hit in page)
        yield from sorted(found - {""})


def texts_of_groups(index: Index, query: Mapping[str, Any], maximum: int | None = None) -> dict[str, set[str]]:
    """Group -> content hashes of its documents that match a query, at most ``maximum`` in all."""
    refresh_if_allowed(index.client, index.path)
    matching = queries.all_of(queries.fingerprinted(index.fields, index.scheme_id), query)
    names = {"group": index.fields.group, "content": index.fields.content}
    found: dict[str, set[str]] = defaultdict(set)
    for one in islice(buckets(index.client, index.path, matching, names), maximum):
        found[one["group"]].add(one["content"])
    return found


def groups_of_texts(index: Index, contents: Collection[str], progress: Progress = silent) -> dict[str, set[str]]:
    """Group -> which of some content hashes its documents have."""
    found: dict[str, set[str]] = defaultdict(set)
    done = 0
    for chunk in chunked(sorted(contents), queries.MAX_TERMS):
        progress("texts", done, len(contents))
        for group, some in texts_of_groups(index, {"terms": {index.fields.content: chunk}}).items():
            found[group] |= some
        done += len(chunk)
    return found
