"""``demo``: the texts, the index and the searches of the demonstration."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from es_neardupe.errors import IndexUnusable, InputError, NotFound, RequestError, SettingsError
from es_neardupe.folders import install_extra
from es_neardupe.index.index import Index
from es_neardupe.keys.text import tokenize
from es_neardupe.readers.files import FileRecord, Problem, check_paths, read_records
from es_neardupe.records import Action
from es_neardupe.server.client import path
from es_neardupe.wording import option

_MARK = "es-neardupe-demo"
_MIN_WORDS = 100
_PARTS = re.compile(r"---\n(.*?)^---\s*$(.*)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class DemoHit:
    """A hit of a full-text search."""

    id: str
    title: str
    group: str


def licence_records() -> list[FileRecord]:
    """The licence texts and notices of the package licensedcode-data that have 100 words or more.

    Raises `SettingsError` if it is not installed (extra ``demo``).
    """
    package = importlib.util.find_spec("licensedcode")
    if package is None or not package.submodule_search_locations:
        raise SettingsError(
            f"The demo texts are missing. Give your own with {option('file')}, or: {install_extra('demo')}"
        )
    data = Path(next(iter(package.submodule_search_locations))) / "data"
    files = sorted((*data.glob("licenses/*.LICENSE"), *data.glob("rules/*.RULE")), key=lambda file: file.name)
    read = (_licence(file) for file in files)
    return [record for record in read if len(tokenize(record.source["text"])) >= _MIN_WORDS]


def _licence(file: Path) -> FileRecord:
    """One file: a few lines of ``name: value`` between two lines of ``---``, then the text."""
    parts = _PARTS.fullmatch(file.read_text("utf-8"))
    if parts is None:
        raise InputError(f"{file} has an unknown format: install another version of licensedcode-data.")
    head, text = parts.groups()
    values = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line and not line.startswith(" "))
    title = values.get("name") or f"{values.get('license_expression', '?').strip()} ({file.stem})"
    return FileRecord(str(file), file.name, {"title": title, "text": text.strip()})


def file_records(name: str) -> list[FileRecord]:
    """The documents of a JSON lines or CSV file. Raises `InputError` at the first bad line."""
    check_paths([name])
    records = []
    for record in read_records([name], text_field="text"):
        if isinstance(record, Problem):
            raise InputError(f"{record.place}: {record.why}.")
        records.append(record if record.id is not None else FileRecord(record.place, record.place, record.source))
    return records


def create_index(index: Index, text_field: str) -> None:
    """Create an ordinary index with a title and a text, without keys.

    An index of an earlier demonstration is replaced. Raises `IndexUnusable` for any other index of that name.
    """
    try:
        mapping = index.definitions.mappings()
    except NotFound:
        mapping = {}
    if mapping:
        if not all(_MARK in one.get("_meta", {}) for one in mapping.values()):
            raise IndexUnusable(
                f"Index {index.name} exists and was not created by the demo: choose another {option('index')}."
            )
        index.server.request("DELETE", path(index.name))
    properties: dict[str, Any] = {"title": {"type": "text"}, text_field: {"type": "text"}}
    body = {"mappings": {"_meta": {_MARK: True}, "properties": properties}}
    index.server.request("PUT", path(index.name), body=body)


def index_plain(index: Index, records: Iterable[FileRecord]) -> int:
    """Index documents without keys, as any application does; returns their number."""
    done = 0
    actions = (Action("index", index.name, str(record.id), record.source) for record in records)
    for outcome in index.documents.write(actions):
        if not outcome.done:
            raise RequestError(
                f"The server rejected document {outcome.action.id!r}: {outcome.reason}.",
                status=outcome.status,
                type=outcome.type,
                reason=outcome.reason,
            )
        done += 1
    index.documents.refresh()
    return done


def search_hits(index: Index, text_field: str, words: str, group_field: str, *, collapse: bool) -> Iterator[DemoHit]:
    """The first hits of a full-text search, with or without ``collapse`` on the group id."""
    body: dict[str, Any] = {"size": 8, "query": {"match": {text_field: words}}, "_source": ["title", group_field]}
    if collapse:
        body["collapse"] = {"field": group_field}
    for hit in index.documents.search(body)["hits"]["hits"]:
        source = hit["_source"]
        prefix, _, name = group_field.partition(".")
        yield DemoHit(hit["_id"], str(source.get("title", "")), source[prefix][name])
