"""An ordinary search whose hits are collapsed by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from es_neardupe import options

if TYPE_CHECKING:
    from es_neardupe.commands.search.report import SearchReport
    from es_neardupe.index.index import Index


Size = Annotated[int, typer.Option("--size", min=1, help="Number of hits per page.")]
Start = Annotated[int, typer.Option("--from", min=0, help="Number of hits to skip.")]
ShownFields = Annotated[
    Sequence[str],
    typer.Option(
        "--field", metavar="FIELD", help="Field to show. Repeatable.", show_default="title and the first text field"
    ),
]
Expand = Annotated[bool, typer.Option("--expand", help="Also show the near-copies, up to 99 of each hit.")]

FoldRelated = Annotated[
    bool,
    typer.Option(
        "--related", help="Show hits of related groups below the first of them, such as texts with other facts."
    ),
]


def search(
    index: Index,
    text: str | Mapping[str, Any],
    *,
    query: options.Query = None,
    size: Size = 10,
    start: Start = 0,
    fields: ShownFields = (),
    expand: Expand = False,
    related: FoldRelated = False,
) -> SearchReport:
    """Search as usual, but show each group once, with the number of its near-copies.

    ``text`` is a Lucene query string, a query of the query DSL, or a body with ``query`` and ``sort``. ``query`` is a
    filter. ``fields`` are shown of each document; by default its title, if one exists, and the first text field.
    With ``related``, hits of the page whose groups are related are one hit, with the others in ``related``.
    Raises `SettingsError` for unknown fields, other parts of a body, and a page beyond the result window;
    `RequestError` for a query that the server rejects.

    >>> for hit in news.search("bridge").hits:
    ...     print(hit.id, hit.near_copies, hit.fields["title"])
    1004 3 HARBOUR BRIDGE CLOSED
    """
    from es_neardupe.commands.search.report import SearchReport
    from es_neardupe.commands.search.steps import checked, copy_of, hit_of, with_related

    index, request = checked(index, text, query=query, size=size, start=start, fields=fields, expand=expand)
    page = index.storage.collapse(request)
    prefix = index.settings.prefix
    hits = []
    for one in page.hits:
        members = tuple(copy_of(request, copy, one.group, prefix) for copy in one.members)
        hits.append(hit_of(request, one.hit, one.group, one.near_copies, members))
    if related:
        hits = with_related(index, hits)
    return SearchReport(
        index=index.name,
        documents=page.documents,
        groups=page.groups,
        without_group=page.without_group,
        without_similarity=page.without_similarity,
        start=start,
        size=size,
        hits=tuple(hits),
        apart=tuple(hit_of(request, hit, None) for hit in page.apart),
        indices=index.target.indices,
    )


def search_request(
    index: Index,
    text: str | Mapping[str, Any],
    *,
    query: options.Query = None,
    size: Size = 10,
    start: Start = 0,
    fields: ShownFields = (),
    expand: Expand = False,
) -> dict[str, Any]:
    """The body that `search` sends to ``/INDEX/_search`` for its hits. Raises what `search` raises.

    >>> request = news.search_request("bridge")
    >>> request["collapse"]["field"]
    'neardupe.group'
    """
    from es_neardupe.commands.search.steps import checked

    index, request = checked(index, text, query=query, size=size, start=start, fields=fields, expand=expand)
    return index.storage.collapse_request(request)
