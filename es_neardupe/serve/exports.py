"""Exports of decisions: a table for people and programs, and JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator

from es_neardupe.commands.group_pages import titles_of
from es_neardupe.groups.decisions import Decisions
from es_neardupe.index.index import Index
from es_neardupe.index.shown_fields import ShownFields
from es_neardupe.json_results import decision_json
from es_neardupe.server.bulk import chunked
from es_neardupe.tables import Cell, Table

_OWN = ("verdict", "author", "at", "withdrawn", "similarity", "measure", "note")
_SIDES = ("index", "id", "title", "content")
_COLUMNS: dict[str, type] = {
    **dict.fromkeys(_OWN, str),
    "similarity": float,
    **dict.fromkeys((f"{end}_{side}" for end in "ab" for side in _SIDES), str),
}


def decisions_jsonl(index: Index) -> Iterator[str]:
    """All decisions, also withdrawn ones, as JSON lines."""
    for one in Decisions(index).all():
        yield json.dumps(decision_json(one), ensure_ascii=False) + "\n"


def decisions_table(index: Index, shown: ShownFields) -> Table:
    """All decisions, also withdrawn ones, with the titles of their documents ``a`` and ``b``; ``b`` is None of a
    decision about only one document."""
    return Table(_COLUMNS, _rows(index, shown))


def _rows(index: Index, shown: ShownFields) -> Iterator[list[Cell]]:
    for chunk in chunked(Decisions(index).all(), 500):
        titles = titles_of(index, shown, [two for one in chunk for two in one.documents])
        for one in chunk:
            row: dict[str, Cell] = dict.fromkeys(_COLUMNS)
            row |= {name: getattr(one, name) for name in _OWN} | {"verdict": one.verdict.value}
            for end, address, content in zip("ab", one.documents, one.contents, strict=False):
                title = next((value for value in titles.get(address, {}).values() if value), "")
                sides = (address.index, address.id, title, content)
                row |= {f"{end}_{side}": value for side, value in zip(_SIDES, sides, strict=True)}
            yield list(row.values())
