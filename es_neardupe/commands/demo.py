"""What the demonstration shows: real texts, an index that exists already, and a search before and after."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from es_neardupe.commands.input_files import FileRecord, Problem, check_paths, read_records
from es_neardupe.errors import IndexUnusable, InputError, NotFound, RequestError
from es_neardupe.index.target import mappings_of
from es_neardupe.keys.text import tokenize
from es_neardupe.records import Action
from es_neardupe.server.bulk import write
from es_neardupe.server.client import Client, path
from es_neardupe.server.search import refresh, search

__all__ = ["DemoHit", "create_index", "file_records", "index_plain", "licence_records", "search_hits"]

_MARK = "es-neardupe-demo"
_MIN_WORDS = 100
_PARTS = re.compile(r"---\n(.*?)^---\s*$(.*)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class DemoHit:
    """A hit of an ordinary search."""

    id: str
    title: str
    group: str


def licence_records() -> list[FileRecord]:
    """The licence texts and notices of 100 words or more that the package licensedcode-data holds.

    Raises `InputError` if it is not installed (extra ``demo``).
    """
    found = importlib.util.find_spec("licensedcode")
    if found is None or not found.submodule_search_locations:
        raise InputError("The demo texts are missing: pip install 'es-neardupe[demo]', or give your own with `file`.")
    data = Path(next(iter(found.submodule_search_locations))) / "data"
    files = sorted((*data.glob("licenses/*.LICENSE"), *data.glob("rules/*.RULE")), key=lambda file: file.name)
    read = (_licence(file) for file in files)
    return [record for record in read if len(tokenize(record.source["text"])) >= _MIN_WORDS]


def _licence(file: Path) -> FileRecord:
    """One file: a few lines of ``name: value`` between two lines of ``---``, then the text."""
    found = _PARTS.fullmatch(file.read_text("utf-8"))
    if found is None:
        raise InputError(f"{file} is not as the files of licensedcode-data were: install another version of it.")
    head, text = found.groups()
    said = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line and not line.startswith(" "))
    title = said.get("name") or f"{said.get('license_expression', '?').strip()} ({file.stem})"
    return FileRecord(str(file), file.name, {"title": title, "text": text.strip()})


def file_records(name: str) -> list[FileRecord]:
    """The documents of the user's own JSON lines or CSV file. Raises `InputError` at the first bad line."""
    check_paths([name])
    records = []
    for record in read_records([name], text_field="text"):
        if isinstance(record, Problem):
            raise InputError(f"{record.place}: {record.why}.")
        records.append(record if record.id is not None else FileRecord(record.place, record.place, record.source))
    return records


def create_index(client: Client, index: str, text_field: str) -> None:
    """An ordinary index with a title and a text, as it might have existed for years.

    One that an earlier demonstration made is replaced. Raises `IndexUnusable` for any other index of that name.
    """
    try:
        mapping = mappings_of(client, index)
    except NotFound:
        mapping = {}
    if mapping:
        if not all(_MARK in one.get("_meta", {}) for one in mapping.values()):
            raise IndexUnusable(f"Index {index} is there and was not made by the demo: choose another `index`.")
        client.request("DELETE", path(index))
    properties: dict[str, Any] = {"title": {"type": "text"}, text_field: {"type": "text"}}
    client.request("PUT", path(index), body={"mappings": {"_meta": {_MARK: True}, "properties": properties}})


def index_plain(client: Client, index: str, records: Iterable[FileRecord]) -> int:
    """Index documents as any application would, without our fields; returns how many."""
    done = 0
    actions = (Action("index", index, str(record.id), record.source) for record in records)
    for outcome in write(client, actions):
        if not outcome.done:
            raise RequestError(
                f"Document {outcome.action.id!r} was refused: {outcome.reason}.",
                status=outcome.status,
                type=outcome.type,
                reason=outcome.reason,
            )
        done += 1
    refresh(client, index)
    return done


def search_hits(
    client: Client, index: str, text_field: str, words: str, group_field: str, *, collapse: bool
) -> Iterator[DemoHit]:
    """The first hits of an ordinary full-text search, collapsed on the group id or not."""
    body: dict[str, Any] = {"size": 8, "query": {"match": {text_field: words}}, "_source": ["title", group_field]}
    if collapse:
        body["collapse"] = {"field": group_field}
    for hit in search(client, index, body)["hits"]["hits"]:
        source = hit["_source"]
        prefix, _, name = group_field.partition(".")
        yield DemoHit(hit["_id"], str(source.get("title", "")), source[prefix][name])
