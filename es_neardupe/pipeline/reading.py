"""Reading the texts of many documents, in pages of bounded size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from es_neardupe import documents
from es_neardupe.asking import search
from es_neardupe.clients import Client
from es_neardupe.indices import Target
from es_neardupe.records import Hit

__all__ = ["field_pages", "text_pages"]

_PAGE_CHARS = 8_000_000
"""Characters aimed at in one page."""

_FIRST_PAGE = 300
"""Most documents of the first page: while it is read, nobody else has anything to do."""

_SAMPLE = 20
"""Documents that tell how large the others are."""

_MOST = 0.6
"""Share of a document from which on it is read whole."""


def text_pages(client: Client, target: Target, query: Mapping[str, Any], source: Sequence[str]) -> Iterator[list[Hit]]:
    """The matching documents of an initialised index with the named parts, see `field_pages`.

    Those of an index that came behind the name since the target was opened are left for the next run: our mapping has
    to be there first. (Only where the indices are too many to be named in a request can there be any.)
    """
    known = frozenset(target.indices)
    for page in field_pages(client, target.path, target.settings.fields, query, source):
        if found := [hit for hit in page if hit.index in known]:
            yield found


def field_pages(
    client: Client, index: str, fields: Sequence[str], query: Mapping[str, Any], source: Sequence[str]
) -> Iterator[list[Hit]]:
    """The matching documents with the named parts, in pages of about `_PAGE_CHARS` characters of the fields, judged
    by the first.

    Where the texts are most of a document, it is read whole: to pick out parts costs the server more than to send all.
    """
    sample = search(client, index, {"size": _SAMPLE, "query": dict(query)})["hits"]["hits"]
    sources = [hit.get("_source", {}) for hit in sample]
    whole = sum(map(_length, sources))
    needed = sum(len(documents.text_of(one, fields)) for one in sources)
    read_whole = needed >= _MOST * whole
    chars = (whole if read_whole else needed) / max(len(sources), 1)
    page_size = max(10, min(1000, int(_PAGE_CHARS / max(chars, 1))))
    body = {"query": dict(query), "_source": True if read_whole else list(source)}
    return client.pages(index, body, page_size=page_size, first_page=min(_FIRST_PAGE, page_size))


def _length(source: object) -> int:
    """Characters of a source, about; 0 for one nested more deeply than Python follows, which has no text."""
    try:
        return len(str(source))
    except RecursionError:
        return 0
