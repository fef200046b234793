"""``es-neardupe search``: an ordinary search with one hit for each group."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, IndexName
from es_neardupe.cli.connection import open_index
from es_neardupe.cli.derived import options_for, with_options_of
from es_neardupe.cli.output import as_json_text, print_json, print_table, say, show, warn
from es_neardupe.commands.search import search as library
from es_neardupe.commands.search import search_request
from es_neardupe.display_text import beginning, named, score_text
from es_neardupe.errors import SettingsError
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.wording import command, counted

if TYPE_CHECKING:
    from es_neardupe.commands.search.report import SearchHit, SearchReport


_SHOWN = 80
"""Characters of a text in a table."""


@with_options_of(library)
def search(
    index: IndexName,
    text: Annotated[
        str | None,
        typer.Argument(metavar="QUERY", help="Query string, as bridge AND title:ferry; or @FILE.", show_default=False),
    ] = None,
    dsl: Annotated[
        str | None,
        typer.Option("--dsl", metavar="FILE", help="File with a query (query DSL) instead, or -.", show_default=False),
    ] = None,
    *,
    show_request: Annotated[
        bool, typer.Option("--show-request", help="Print the request instead of sending it.")
    ] = False,
    prefix: options.Prefix = DEFAULT_PREFIX,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """
    Near-copies are the other documents of the group that match the query.

    Examples:

      es-neardupe search news 'bridge AND title:closed'

      es-neardupe search news wheat --expand --query '{"range": {"date": {"gte": "2024-08-01"}}}'

      es-neardupe search news --dsl query.json --size 50 --show-request
    """
    from es_neardupe.server.client import path

    if (text is None) == (dsl is None):
        raise typer.BadParameter("Give either QUERY or --dsl.")
    if text is not None and text.startswith("@"):
        dsl, text = text[1:], None
    searched = text if text is not None else _read(str(dsl))
    if show_request:
        body = search_request(open_index(index, prefix), searched, **options_for(search_request, given))
        say(f"POST {path(index, '_search')}")
        typer.echo(as_json_text(body, indent=None if as_json else 2))
        return None
    found = library(open_index(index, prefix), searched, **given)
    if as_json:
        print_json(found)
    elif found.documents or found.without_group:
        _show(found, given["expand"])
    else:
        return show("No document matches.")
    return _say_counts(found)


def _read(file: str) -> dict[str, Any]:
    """The JSON object in a file. Raises `InputError` or `SettingsError`."""
    from es_neardupe.readers.files import read_text_file

    try:
        found = json.loads(read_text_file(file))
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"The query in {file} is not valid JSON: {error}.") from error
    if not isinstance(found, dict):
        raise SettingsError(f"The query in {file} is not a JSON object.")
    return found


def _show(found: SearchReport, expand: bool) -> None:
    several = len(found.indices) > 1
    if found.hits:
        heads = ["score", "id", *found.hits[0].fields, "in the same group"]
        print_table(heads, [row for hit in found.hits for row in _rows(hit, several, expand)])
    if found.apart:
        rows = [(hit.score, named(hit, several), *_cells(hit.fields.values())) for hit in found.apart]
        print_table(["score", "id", *found.apart[0].fields], rows, title="Documents without a group id")
    if not found.hits and not found.apart:
        show(f"No hits after the first {found.start:,}.")


def _rows(hit: SearchHit, several: bool, expand: bool, related: str = "") -> Iterator[tuple[object, ...]]:
    """A row for a hit and, below it, indented rows for its near-copies and related hits."""
    many = f"and {counted(hit.near_copies, 'near-copy', 'near-copies')}" if hit.near_copies else ""
    indented = "  " if related else ""
    name = f"{indented}{named(hit, several)}"
    yield hit.score, name, *_cells(hit.fields.values()), ", ".join(part for part in (related, many) if part)
    if expand:
        for one in hit.members:
            like = "waits for group" if one.similarity is None else f"{score_text(one.similarity)} to the principal"
            relation = "the principal" if one.principal else like
            yield "", f"{indented}  {named(one, several)}", *_cells(one.fields.values()), relation
        if hit.near_copies > len(hit.members):
            rest = f"{indented}  ... and {hit.near_copies - len(hit.members):,} more"
            yield "", rest, *("" for _ in hit.fields), f"groups --group {hit.group}"
    for other in hit.related:
        yield from _rows(other, several, expand, "related")


def _cells(texts: Iterable[str]) -> Iterator[str]:
    return (beginning(text, _SHOWN) for text in texts)


def _say_counts(found: SearchReport) -> None:
    say(f"{counted(found.documents, 'document')} in about {counted(found.groups, 'group')}")
    if found.without_group:
        separate = counted(
            found.without_group,
            "document has no group id and is listed separately",
            "documents have no group id and are listed separately",
        )
        warn(f"{separate}, {len(found.apart):,} of them on this page: run `{command('enrich', found.index)}`.")
    if found.without_similarity > found.without_group:
        warn(
            f"{counted(found.without_similarity - found.without_group, 'document waits for', 'documents wait for')} "
            f"`{command('group', found.index)}`: until then, a changed text stays in its former group."
        )
