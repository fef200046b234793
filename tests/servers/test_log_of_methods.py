"""Log events of the methods of `NearDupe`: one start and one end for each call, whatever it calls itself."""

from __future__ import annotations

import inspect
import json
import logging
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from server_tools import family, make_index, put

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import NotFound, SettingsError
from es_neardupe.log_events import fields_of
from es_neardupe.server.client import Client

PROPERTIES = {"text": {"type": "text"}, "url": {"type": "keyword"}, "date": {"type": "date"}}
TEXTS = family("log", 3, length=60)


@pytest.fixture
def news(client: Client, index_name: str) -> NearDupe:
    make_index(client, index_name, PROPERTIES)
    sources = {f"d{n}": {"text": text, "url": f"u{n}", "date": f"2024-05-0{n + 1}"} for n, text in enumerate(TEXTS)}
    put(client, index_name, sources)
    return NearDupe(index_name, client, run="nightly")


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level(logging.INFO, logger="es_neardupe"):
        yield caplog


def events(log: pytest.LogCaptureFixture) -> list[tuple[str, dict[str, Any]]]:
    """The events since the last call."""
    found = [fields_of(record) for record in log.records]
    log.clear()
    return found


def commands(log: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(event, fields["command"]) for event, fields in events(log) if event in ("started", "finished")]


def test_events_of_a_command(news: NearDupe, log: pytest.LogCaptureFixture) -> None:
    begun = time.monotonic()
    news.init(Settings(("text",)))
    passed = time.monotonic() - begun
    (_, started), (_, finished) = events(log)
    context = {"run": "nightly", "command": "init", "index": news.name}
    assert started.items() >= context.items() <= finished.items()
    assert started["version"]
    assert started["arguments"]["settings"]["fields"] == ["text"]
    assert 0 < finished["seconds"] <= passed + 0.001  # it is rounded
    assert finished["error"] is None
    news.enrich(batch=100)
    found = events(log)
    names = Counter(event for event, _ in found)
    assert (names["started"], names["finished"]) == (1, 1)
    assert names["progress"] >= 1
    assert found[0][1]["arguments"] == {"batch": 100}
    assert {fields["command"] for _, fields in found} == {"enrich"}
    assert [fields["stage"] for event, fields in found if event == "progress"]
    assert len(set(map(json.dumps, (fields for _, fields in found)))) == len(found)


def test_one_start_and_one_end(news: NearDupe, log: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """Commands that run others too."""
    lines = tmp_path / "more.jsonl"
    lines.write_text(json.dumps({"id": "loaded", "text": "some words"}), "utf-8")
    news.init(Settings(("text",)))
    for call in (
        lambda: news.load([str(lines)]),
        news.enrich,
        lambda: news.group(tune=True),
        lambda: news.watch(once=True),
        lambda: news.migrate(threshold=0.7),
        news.groups,
        news.version,
        news.clean,
    ):
        log.clear()
        call()
        ((first, command), (last, same)) = commands(log)
        assert (first, last, command) == ("started", "finished", same)


def test_errors(news: NearDupe, log: pytest.LogCaptureFixture) -> None:
    """Only the kind: the message may contain a value."""
    with pytest.raises(SettingsError):
        news.similar(id="d0", text="both")
    (_, (_, finished)) = events(log)
    assert finished["error"] == "SettingsError"
    with pytest.raises(NotFound):
        NearDupe(f"{news.name}-absent", news.client).stats()
    assert events(log)[-1][1]["error"] == "NotFound"


def test_neither_texts_nor_documents(news: NearDupe, log: pytest.LogCaptureFixture) -> None:
    news.init(Settings(("text",)))
    news.enrich()
    log.clear()
    text = "private words of a private text"
    news.similar(text=text, query={"term": {"url": "u1"}})
    news.search(text)
    list(news.fingerprinted([{"_id": "new", "text": text}]))
    list(news.screened([{"_id": "new", "text": text}], min=0.9, on_match=lambda action, match: "mark"))
    shown = [fields["arguments"] for event, fields in events(log) if event == "started"]
    assert shown == [
        {"text": "(31 characters)", "query": {"term": {"url": "u1"}}},
        {"text": "(31 characters)"},
        {},
        {"min": 0.9},
    ]


def test_iterators(news: NearDupe, log: pytest.LogCaptureFixture) -> None:
    """They start with the first element, and end with the last one or when they are closed."""
    news.init(Settings(("text",)))
    news.enrich()
    log.clear()
    found = news.moved_all(["u0", "u1"])
    assert events(log) == []
    assert next(found).address == "u0"
    assert commands(log) == [("started", "moved_all")]
    assert len(list(found)) == 1
    assert commands(log) == [("finished", "moved_all")]
    closed: Any = news.moved_all(["u0", "u1"])
    next(closed)
    closed.close()
    assert [fields.get("error") for _, fields in events(log)] == [None, None]
    with pytest.raises(SettingsError):
        next(news.moved_all(["u0"], min=2.0))
    assert events(log)[-1][1]["error"] == "SettingsError"


def test_own_progress(news: NearDupe, log: pytest.LogCaptureFixture) -> None:
    """A callback takes the place of the events."""
    stages = []
    news.init(Settings(("text",)))
    news.enrich(progress=lambda stage, done, total: stages.append(stage))
    assert stages
    assert not [event for event, _ in events(log) if event == "progress"]


def test_the_command_line_logs_once(
    news: NearDupe, log: pytest.LogCaptureFixture, server_cli: Any, tmp_path: Path
) -> None:
    file = tmp_path / "log"
    news.init(Settings(("text",)))
    log.clear()
    assert server_cli("watch", news.name, "--once", "--log-file", str(file), "--log-format", "json").code == 0
    logged = [json.loads(line)["event"] for line in file.read_text("utf-8").splitlines()]
    assert (logged.count("started"), logged.count("finished")) == (1, 1)


def test_nothing_unless_configured(news: NearDupe, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="es_neardupe"):
        news.init(Settings(("text",)))
    assert caplog.records == []


def test_signatures_stay() -> None:
    assert list(inspect.signature(NearDupe.group).parameters)[:3] == ["self", "measure", "matching"]
    assert "Options:" in (NearDupe.enrich.__doc__ or "")
