"""New addresses of documents that are no longer at their address."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated

import typer

from es_neardupe import options

if TYPE_CHECKING:
    from es_neardupe.commands.moved.report import MovedReport
    from es_neardupe.index.index import Index


AddedFields = Annotated[
    Sequence[str],
    typer.Option("--field", metavar="FIELD", help="Field to show of each document. Repeatable.", show_default=False),
]
"""Shown besides what names the documents already: none by default."""
UrlField = Annotated[
    str | None,
    typer.Option(
        "--url-field", metavar="FIELD", help="Keyword field with the address.", show_default="found by its name"
    ),
]
DateField = Annotated[
    str | None, typer.Option("--date-field", metavar="FIELD", help="Date field.", show_default="the only one")
]
Earlier = Annotated[bool, typer.Option("--earlier", help="Also show copies with an earlier date.")]


def moved(
    index: Index,
    address: str,
    *,
    url_field: UrlField = None,
    date_field: DateField = None,
    min: options.Minimum = None,
    earlier: Earlier = False,
    max_candidates: options.CandidatesByKeys = 1000,
    fields: AddedFields = (),
) -> MovedReport:
    """Find the current address of a document that has moved: copies at other addresses, from its date on.

    Finds the current addresses of the document that was at an address, or that has it as its id.

    These are the documents with other addresses, of the same date or later, whose resemblance to it is at least
    ``min`` (default: the threshold of the index). ``earlier`` includes older ones. For a deleted document, evidence
    and the last grouping are used. ``fields`` are shown of all these documents. Raises `SettingsError` for an empty
    address, for options out of range, for an unknown field, and if the address or date field is ambiguous, missing or
    of the wrong type.

    >>> place, *others = pages.moved("https://news.example/bridge").places
    >>> place.address, round(place.similarity, 4), len(others)
    ('https://news.example/archive/bridge', 0.9205, 1)
    """
    (found,) = moved_all(
        index,
        [address],
        url_field=url_field,
        date_field=date_field,
        min=min,
        earlier=earlier,
        max_candidates=max_candidates,
        fields=fields,
    )
    return found


def moved_all(
    index: Index,
    addresses: Iterable[str],
    *,
    url_field: UrlField = None,
    date_field: DateField = None,
    min: options.Minimum = None,
    earlier: Earlier = False,
    max_candidates: options.CandidatesByKeys = 1000,
    fields: AddedFields = (),
) -> Iterator[MovedReport]:
    """`moved` for any number of addresses, in their order. A text that many of them have is a notice, and none of them
    the new place of another one. Holds the addresses, and a few results, in memory.

    Raises what `moved` does, when the first result is read.

    >>> for report in pages.moved_all(["https://news.example/bridge", "https://news.example/never"]):
    ...     print(report.address, len(report.places), report.reason)
    https://news.example/bridge 2 None
    https://news.example/never 0 unknown address
    """
    from es_neardupe.commands.moved.documents import address_fields
    from es_neardupe.commands.moved.steps import BATCH, WORKERS, Finder
    from es_neardupe.index.index import opened
    from es_neardupe.index.shown_fields import shown_fields
    from es_neardupe.server.bulk import chunked
    from es_neardupe.verification.criterion import check_min

    index = opened(index, texts=True)
    at = address_fields(index, url_field, date_field)
    minimum = check_min(index.settings.threshold if min is None else min)
    shown = shown_fields(index, fields or None)
    asked = list(addresses)
    finder = Finder(index, at, shown, asked, minimum=minimum, earlier=earlier, maximum=max_candidates)
    with ThreadPoolExecutor(WORKERS) as pool:
        for batch in chunked(asked, BATCH):
            yield from pool.map(finder.find, batch)
