"""The results of all methods of `NearDupe` in a Python shell: one short line each."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from server_tools import family, make_index, put

from es_neardupe import NearDupe, Settings
from es_neardupe.commands.bands import bands
from es_neardupe.commands.duplicates.request_json import example
from es_neardupe.server.client import Client

MAX_LENGTH = 200
NO_REPORT = {"close", "fingerprinted", "moved_all", "on_engine", "screened", "search_request", "through", "with_target"}
"""Methods that return no report: iterators, requests, other views of the index."""

PROPERTIES = {
    "title": {"type": "text"},
    "body": {"type": "text"},
    "url": {"type": "keyword"},
    "date": {"type": "date"},
}


@pytest.fixture
def filled(client: Client, index_name: str) -> NearDupe:
    make_index(client, index_name, PROPERTIES)
    texts = family("reports", 6, length=90)
    sources = {
        f"{'document' * 6}-{n}": {
            "title": f"{'A long title ' * 8}{n}",
            "body": text,
            "url": f"https://site.example/{'page/' * 10}{n}",
            "date": f"2024-05-0{n + 1}",
        }
        for n, text in enumerate(texts)
    }
    put(client, index_name, sources)
    return NearDupe(index_name, client)


def test_short_reprs(filled: NearDupe, tmp_path: Path) -> None:
    one, other = (f"{'document' * 6}-{n}" for n in (0, 1))
    request = {"titles": json.loads(example("near-identical-titles"))}
    lines = tmp_path / "more.jsonl"
    lines.write_text(json.dumps({"id": "loaded", "title": "Loaded", "body": "some words of a text"}), "utf-8")
    calls: Mapping[str, Callable[[], Any]] = {
        "init": lambda: filled.init(Settings(("body",)), sample_keys=50),
        "enrich": filled.enrich,
        "group": lambda: filled.group(evidence=True),
        "load": lambda: filled.load([str(lines)]),
        "watch": lambda: filled.watch(once=True),
        "groups": filled.groups,
        "group_history": lambda: filled.group_history(filled.groups()[0].group),
        "suggest_keep": filled.suggest_keep,
        "decide": lambda: filled.decide("same", one, [other], author="a reviewer"),
        "decisions": filled.decisions,
        "withdraw": lambda: filled.withdraw([filled.decisions()[0].id]),
        "similar": lambda: filled.similar(id=one),
        "contained": lambda: filled.contained(id=one, min=0.2),
        "search": lambda: filled.search("*"),
        "pairs": filled.pairs,
        "documents": lambda: filled.documents(by="url"),
        "moved": lambda: filled.moved(f"https://site.example/{'page/' * 10}0", earlier=True),
        "compare": lambda: filled.compare(one, other),
        "duplicates": lambda: filled.duplicates(request["titles"]),
        "shingles": lambda: filled.shingles(one),
        "stats": filled.stats,
        "doctor": filled.doctor,
        "audit": filled.audit,
        "distribution": filled.distribution,
        "what_if": lambda: filled.what_if(min=[0.5, 0.8]),
        "fold": filled.fold,
        "pipeline": filled.pipeline,
        "version": filled.version,
        "migrate": lambda: filled.migrate(threshold=0.7),
        "clean": filled.clean,
    }
    methods = {name for name, _ in inspect.getmembers(NearDupe, inspect.isfunction) if name[0] != "_"}
    assert calls.keys() == methods - NO_REPORT, "a method is missing here"
    for name, call in calls.items():
        found = call()
        parts = found if isinstance(found, list) else [found, *getattr(found, "hits", ())]
        for report in parts:
            assert len(repr(report)) < MAX_LENGTH or name == "doctor", f"{name}: {report!r}"
            assert "\n" not in repr(report), name
    assert len(repr(bands(0.8))) < MAX_LENGTH
