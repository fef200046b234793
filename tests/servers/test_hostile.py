"""Hostile documents: no command lets their content control a terminal, a page or a path."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli, Run
from every_command import LOOKING, NOT_RUN, WRITING, command_lines, names
from hostile import IDS, NAME, Page, check_json, check_shown, texts
from server_tools import JSON, hits, make_index, put, theirs, words

from es_neardupe import NearDupe, Settings
from es_neardupe.server.client import Client

VALID = texts(words("hostile", 60))[5].replace("\ud83d", "")
"""A text that commands take: half of a character is refused."""
DOCUMENTS = dict(zip(IDS, texts(words("hostile", 60)), strict=True))


def request() -> JSON:
    """A request of `duplicates` over the hostile field."""
    source = {"type": "featureSource:words", "fields": {"type": "fields:simple", "fields": [NAME]}}
    pairs = {
        "type": "documentPairs:duplicates",
        "query": {"type": "query:all"},
        "hashGrouping": {"pairing": {"maxHashGroupSize": 200}, "features": source},
        "validation": {
            "pairwiseSimilarity": {"type": "pairwiseSimilarity:featureIntersectionToUnionRatio", "features": source},
            "min": 0.5,
            "max": 1,
        },
        "output": {"explanations": True},
    }
    content = {
        "type": "documentContent",
        "documents": {
            "type": "documents:fromDocumentPairs",
            "documentPairs": {"type": "documentPairs:reference", "use": "similarPairs"},
        },
        "fields": {"type": "contentFields:simple", "fields": {NAME: {}}},
    }
    overlaps = {
        "type": "documentPairs:overlaps",
        "documentPairs": {"type": "documentPairs:reference", "use": "similarPairs"},
        "fields": {"type": "fields:simple", "fields": [NAME]},
    }
    return {"stages": {"similarPairs": pairs, "content": content, "overlaps": overlaps}}


@pytest.fixture
def values(client: Client, index_name: str, tmp_path: Path) -> dict[str, str]:
    """The index, grouped; and the values for the words of `every_command`."""
    properties = {NAME: {"type": "text"}, "url": {"type": "keyword"}, "date": {"type": "date"}}
    make_index(client, index_name, properties)
    settings = Settings((NAME,), threshold=0.5, sample_mod=2)
    put(
        client,
        index_name,
        {id: {NAME: text, "url": f"https://a.example/{id}", "date": "2024-05-01"} for id, text in DOCUMENTS.items()},
    )
    NearDupe(index_name, client).init(settings)
    NearDupe(index_name, client).enrich()
    NearDupe(index_name, client).group(evidence=True)
    (group,) = NearDupe(index_name, client).groups()
    files = {
        "REQUEST": json.dumps(request()),
        "DSL": json.dumps({"query": {"exists": {"field": NAME}}}),
        "ADDRESSES": "\n".join(f"https://a.example/{id}" for id in IDS if "\n" not in id),
        "LINES": json.dumps({"id": "\x1b[2J", NAME: "\x1b[31m some words"}) + '\n{"id": "\\u202e", "\x9b": }\n',
        "FILE": DOCUMENTS[IDS[0]],
        "FILE2": DOCUMENTS[IDS[1]],
    }
    found = {"INDEX": index_name, "ID": IDS[5], "ID2": IDS[6], "GROUP": group.group, "TEXT": VALID}
    for name, content in files.items():
        file = tmp_path / f"{name}{'.jsonl' if name == 'LINES' else ''}"
        file.write_text(content, "utf-8", "replace")
        found[name] = str(file)
    return found | {"NAME": NAME, "ADDRESS": f"https://a.example/{IDS[5]}", "OUT": str(tmp_path / "page.html")}


def test_no_command_is_forgotten() -> None:
    """A new command must be added to the tables of `every_command`."""
    assert set(names()) == NOT_RUN | LOOKING.keys() | WRITING.keys()


def checked(done: Run, line: list[str], as_json: bool) -> list[Any]:
    """A successful run; if it prints JSON, the parsed output."""
    assert done.code == 0, (line, done.err)
    check_shown(done.err)
    check_shown(done.out)
    if "--html" in line:
        page = Page(Path(line[line.index("--html") + 1]).read_text("utf-8"))
        page.check()
        assert "<img src=x onerror=alert(1)>" in page.text
    return check_json(done.out) if as_json else []


def test_every_command(values: dict[str, str], client: Client, server_cli: Cli) -> None:
    index = values["INDEX"]
    before = theirs(client, index)
    printed: list[Any] = []
    for table in (LOOKING, WRITING):
        for line in command_lines(table, values):
            both = table is LOOKING and "--pairs-only" not in line
            for as_json in (False, True) if both else (False,):
                done = server_cli(*line, *(["--json"] * as_json))
                printed += checked(done, line, as_json)
            if line[0] == "clean":
                assert "neardupe" not in json.dumps([hit["_source"] for hit in hits(client, index)])
    assert set(strings(printed, "id")) <= {*IDS, None}
    assert set(DOCUMENTS.values()) <= set(strings(printed, NAME))
    assert theirs(client, index) == before | {
        (index, "\x1b[2J"): json.dumps({"id": "\x1b[2J", NAME: "\x1b[31m some words"})
    }


def strings(value: Any, name: str) -> Iterator[Any]:
    """The values of a name, anywhere in JSON."""
    if isinstance(value, dict):
        for key, one in value.items():
            if key == name and not isinstance(one, dict | list):
                yield one
            yield from strings(one, name)
    elif isinstance(value, list):
        for one in value:
            yield from strings(one, name)
