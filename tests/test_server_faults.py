"""Commands behind a network and a server that fail in every way: they end in the right state, or say what happened and
end in it when they are run again; and nothing is lost, doubled or reverted."""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fault_proxy import (
    BULK,
    EVERYTHING,
    SEARCHES,
    WRITES,
    Fault,
    FaultProxy,
    Trouble,
    cut_off,
    cut_short,
    dropped,
    emptied,
    garbled,
    gateway,
    items_refused,
    lost_answer,
    refused,
)
from kill_tools import State
from server_tools import JSON, family, make_index, ours, put, send, theirs, words

from es_neardupe import Settings, pipeline
from es_neardupe.clients import Client, ConnectionSettings, Retries, connect, path
from es_neardupe.errors import NotFound

FEW = {"batch": 16}
"""Actions of a bulk request: so few that each run sends several."""

REJECTED = "es_rejected_execution_exception"
BREAKER = "circuit_breaking_exception"


def documents() -> dict[str, JSON]:
    """Families, copies, and texts that are alone, with a field of which no digit may change."""
    found: dict[str, JSON] = {f"copy{n}": {"text": " ".join(words("copies", 40))} for n in range(2)}
    for n in range(12):
        texts = {f"f{n:02}-{k}": text for k, text in enumerate(family(n, 3, length=60))}
        texts[f"alone{n}"] = " ".join(words(f"alone{n}", 20))
        found |= {id: {"text": text, "odd": {"e": 1e300, "one": 1.0, "n": n}} for id, text in texts.items()}
    return found


def change(client: Client, index: str) -> None:
    """What an application does between two runs."""
    texts = {id: one["text"] for id, one in documents().items()}
    send(
        client,
        [
            ({"update": {"_index": index, "_id": "f00-0"}}, {"doc": {"text": " ".join(words("away", 30))}}),
            ({"update": {"_index": index, "_id": "f01-1"}}, {"doc": {"text": texts["f01-1"] + " and more"}}),
            ({"update": {"_index": index, "_id": "f02-0"}}, {"doc": {"odd": {"one": 2.0}}}),
            ({"index": {"_index": index, "_id": "f03-2"}}, {"text": texts["f03-2"]}),
            ({"index": {"_index": index, "_id": "new"}}, {"text": texts["f04-1"]}),
            ({"delete": {"_index": index, "_id": "f05-0"}}, None),
        ],
    )


@dataclass(frozen=True)
class Step:
    """One command, and what its report must add up to."""

    name: str
    run: Callable[[Client, str], Any]
    check: Callable[[Any], None] = lambda report: None
    before: Callable[[Client, str], None] = lambda client, index: None
    """What the user does first, undisturbed."""


def steps(file: str) -> list[Step]:
    """The life of an index."""

    def init(client: Client, index: str) -> Any:
        return pipeline.init(client, index, Settings(("text",), threshold=0.7))

    def load(client: Client, index: str) -> Any:
        return pipeline.load(client, index, [file], **FEW)

    def enrich(client: Client, index: str) -> Any:
        return pipeline.enrich(client, index, check=True, **FEW)

    def group(client: Client, index: str) -> Any:
        return pipeline.group(client, index, check=True, evidence=True, **FEW)

    return [
        Step("init", init),
        Step("load", load, check_load),
        Step("enrich", enrich, check_enrich, before=user_writes),
        Step("group", group, check_group),
        Step("enrich again", enrich, check_enrich, before=change),
        Step("group again", group, check_group),
    ]


def user_writes(client: Client, index: str) -> None:
    """The other half of the documents comes by itself, without keys."""
    put(client, index, dict(list(documents().items())[25:]))


def check_load(report: Any) -> None:
    assert report.read == report.indexed + report.existing + report.bad + report.duplicates + report.refused == 25
    assert report.indexed == sum(report.states.values())
    assert (report.bad, report.duplicates, report.refused) == (0, 0, 0)


def check_enrich(report: Any) -> None:
    parts = (report.written, report.unchanged, report.deleted, report.conflicts, report.refused)
    assert report.read == sum(parts) == report.documents
    assert report.written == sum(report.states.values())
    assert parts[2:] == (0, 0, 0)


def check_group(report: Any) -> None:
    assert report.documents == report.grouped + report.alone + report.stale + report.corrupt
    written = (report.written, report.unchanged, report.changed, report.deleted, report.refused)
    assert report.documents == sum(written) + report.stale + report.corrupt
    assert written[2:] == (0, 0, 0)
    kept = report.evidence
    assert kept.pairs == kept.accepted + kept.rejected
    assert kept.pairs == kept.written + kept.judged_anew + kept.unchanged + kept.left_out + kept.refused
    assert (kept.left_out, kept.refused) == (0, 0)


@dataclass(frozen=True)
class Course:
    """An index whose life is known: what it was like after each step of an undisturbed run."""

    client: Client
    index: str
    file: str
    states: list[State]
    reports: list[Any]

    def begin(self) -> None:
        """Make it anew, with nothing in it."""
        wipe(self.client, self.index)
        odd = {"type": "object", "enabled": False}
        make_index(self.client, self.index, {"text": {"type": "text"}, "odd": odd})

    @property
    def steps(self) -> list[Step]:
        return steps(self.file)


def wipe(client: Client, index: str) -> None:
    shown = {"h": "index", "format": "json", "expand_wildcards": "all"}
    for one in client.request("GET", path("_cat", "indices", f"{index}*"), params=shown):
        with contextlib.suppress(NotFound):
            client.request("DELETE", path(one["index"]))


@pytest.fixture(scope="module")
def course(client: Client, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Course]:
    file: Path = tmp_path_factory.mktemp("faults") / "half.jsonl"
    file.write_text("".join(json.dumps({"id": id, **one}) + "\n" for id, one in list(documents().items())[:25]))
    found = Course(client, f"test-{uuid.uuid4().hex[:12]}", str(file), [], [])
    found.begin()
    for step in found.steps:
        step.before(client, found.index)
        found.reports.append(step.run(client, found.index))
        step.check(found.reports[-1])
        found.states.append(State.of(client, found.index))
    yield found
    wipe(client, found.index)


@pytest.fixture
def proxy(server_url: str) -> Iterator[FaultProxy]:
    opened = FaultProxy(server_url)
    yield opened
    opened.close()


@pytest.fixture
def disturbed(proxy: FaultProxy) -> Iterator[Client]:
    """A client that reaches the server through the proxy, and does not wait long before it tries again."""
    opened = connect(ConnectionSettings(proxy.url, retries=Retries(attempts=6, wait=0.01), timeout=10))
    yield opened
    opened.close()


PASSING: dict[str, tuple[Trouble, str]] = {
    "dropped": (dropped, EVERYTHING),
    "lost answer": (lost_answer, WRITES),
    "cut off": (cut_off, EVERYTHING),
    "cut short": (cut_short, EVERYTHING),
    "garbled": (garbled, WRITES),
    "emptied": (emptied, WRITES),
    "rejected": (refused(429, REJECTED), EVERYTHING),
    "circuit breaker": (refused(429, BREAKER), SEARCHES),
    "unavailable, but done": (refused(503, "unavailable_shards_exception", done=True), WRITES),
    "gateway": (gateway, WRITES),
    "items rejected": (items_refused(429, REJECTED), BULK),
    "items unavailable": (items_refused(503, "unavailable_shards_exception"), BULK),
}
"""What passes by trying again."""


@pytest.mark.parametrize("kind", PASSING)
def test_what_passes(kind: str, course: Course, proxy: FaultProxy, disturbed: Client) -> None:
    """Each request suffers it once; each command comes to its end all the same."""
    trouble, on = PASSING[kind]
    course.begin()
    for step, wanted, undisturbed in zip(course.steps, course.states, course.reports, strict=True):
        step.before(course.client, course.index)
        fault = Fault(trouble, on, each=True)
        proxy.set(fault)
        report = step.run(disturbed, course.index)
        proxy.set()
        assert fault.met > 0
        assert State.of(course.client, course.index) == wanted, step.name
        step.check(report)
        print(step.name, report, undisturbed)
    _check_clean(course, proxy, disturbed, Fault(trouble, on, each=True))


def _check_clean(course: Course, proxy: FaultProxy, disturbed: Client, fault: Fault) -> None:
    proxy.set(fault)
    report = pipeline.clean(disturbed, course.index, batch=16)
    proxy.set()
    assert fault.met > 0
    assert theirs(course.client, course.index) == course.states[-1].users
    assert not any(ours(course.client, course.index).values())
    assert report.documents == report.cleaned + report.deleted + report.left == len(course.states[-1].users)
    assert (report.deleted, report.left) == (0, 0)
