"""Exports of decisions: CSV for people, JSON lines for programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator

from es_neardupe.commands.group_pages import titles_of
from es_neardupe.groups.decisions import Decision, Decisions
from es_neardupe.index.index import Index
from es_neardupe.index.shown_fields import ShownFields
from es_neardupe.json_results import decision_json
from es_neardupe.server.bulk import chunked

__all__ = ["decisions_csv", "decisions_jsonl"]

_COLUMNS = ("verdict", "author", "at", "withdrawn", "similarity", "measure", "note")
_SIDES = ("index", "id", "title", "content")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def decisions_jsonl(index: Index, shown: ShownFields) -> Iterator[str]:
    """All decisions, also withdrawn ones, as JSON lines."""
    for one in Decisions(index).all():
        yield json.dumps(decision_json(one), ensure_ascii=False) + "\n"


def decisions_csv(index: Index, shown: ShownFields) -> Iterator[str]:
    """All decisions, also withdrawn ones, as CSV with the titles of their documents. It begins with a byte order mark,
    so that Excel reads UTF-8; cells that it would take for formulas begin with an apostrophe."""
    yield "\ufeff" + _line([*_COLUMNS, *(f"{name}_{side}" for side in "ab" for name in _SIDES)])
    for chunk in chunked(Decisions(index).all(), 500):
        titles = titles_of(index, shown, [two for one in chunk for two in one.documents])
        for one in chunk:
            row: list[object] = [_cell(one, name) for name in _COLUMNS]
            for place in (0, 1):
                if place < len(one.documents):
                    address = one.documents[place]
                    title = next((value for value in titles.get(address, {}).values() if value), "")
                    row += [address.index, address.id, title, one.contents[place]]
                else:
                    row += [""] * len(_SIDES)
            yield _line(row)


def _cell(one: Decision, name: str) -> object:
    value = getattr(one, name)
    return value.value if name == "verdict" else value


def _line(cells: Iterable[object]) -> str:
    stream = io.StringIO()
    csv.writer(stream).writerow([_neutral(one) for one in cells])
    return stream.getvalue()


def _neutral(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
