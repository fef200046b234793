"""Exports of decisions: CSV for people, JSON lines and Parquet for programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

from es_neardupe.commands.group_pages import titles_of
from es_neardupe.groups.decisions import Decisions
from es_neardupe.index.index import Index
from es_neardupe.index.shown_fields import ShownFields
from es_neardupe.json_results import decision_json
from es_neardupe.server.bulk import chunked

__all__ = ["decisions_csv", "decisions_jsonl", "decisions_parquet"]

_OWN = ("verdict", "author", "at", "withdrawn", "similarity", "measure", "note")
_SIDES = ("index", "id", "title", "content")
_COLUMNS = (*_OWN, *(f"{side}_{end}" for end in "ab" for side in _SIDES))
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def decisions_jsonl(index: Index, shown: ShownFields) -> Iterator[str]:
    """All decisions, also withdrawn ones, as JSON lines."""
    for one in Decisions(index).all():
        yield json.dumps(decision_json(one), ensure_ascii=False) + "\n"


def decisions_csv(index: Index, shown: ShownFields) -> Iterator[str]:
    """All decisions, also withdrawn ones, as CSV with the titles of their documents. It begins with a byte order mark,
    so that Excel reads UTF-8; cells that it would take for formulas begin with an apostrophe."""
    yield "\ufeff" + _line(_COLUMNS)
    for rows in _rows(index, shown):
        yield "".join(_line("" if row[name] is None else row[name] for name in _COLUMNS) for row in rows)


def decisions_parquet(index: Index, shown: ShownFields) -> Iterator[bytes]:
    """The same table as a Parquet file; needs pyarrow."""
    import pyarrow
    from pyarrow import parquet

    types = {"similarity": pyarrow.float64()}
    schema = pyarrow.schema([(name, types.get(name, pyarrow.string())) for name in _COLUMNS])
    sent = _Sent()
    with parquet.ParquetWriter(pyarrow.PythonFile(sent, mode="w"), schema) as file:
        for rows in _rows(index, shown):
            file.write_table(pyarrow.Table.from_pylist(rows, schema))
            yield sent.taken()
    yield sent.taken()


class _Sent(io.RawIOBase):
    """A file that is sent while it is written."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, part: Any) -> int:
        self._parts.append(bytes(part))
        self._size += len(part)
        return len(part)

    def tell(self) -> int:
        return self._size

    def taken(self) -> bytes:
        """What was written since the last call."""
        parts, self._parts = self._parts, []
        return b"".join(parts)


def _rows(index: Index, shown: ShownFields) -> Iterator[list[dict[str, Any]]]:
    """The rows of the table, some at a time. The documents of a decision are ``a`` and ``b``; None: it has only one."""
    for chunk in chunked(Decisions(index).all(), 500):
        titles = titles_of(index, shown, [two for one in chunk for two in one.documents])
        rows = []
        for one in chunk:
            row: dict[str, Any] = dict.fromkeys(_COLUMNS)
            row |= {name: getattr(one, name) for name in _OWN} | {"verdict": one.verdict.value}
            for end, address, content in zip("ab", one.documents, one.contents, strict=False):
                title = next((value for value in titles.get(address, {}).values() if value), "")
                sides = (address.index, address.id, title, content)
                row |= {f"{side}_{end}": value for side, value in zip(_SIDES, sides, strict=True)}
            rows.append(row)
        yield rows


def _line(cells: Iterable[object]) -> str:
    stream = io.StringIO()
    csv.writer(stream).writerow([_neutral(one) for one in cells])
    return stream.getvalue()


def _neutral(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
