"""Somebody else writes to the same documents while our commands run."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from server_tools import JSON, change, family, hits, make_index, ours, put, send, theirs, true_pairs, wait_until, words

from es_neardupe import Settings, pipeline
from es_neardupe.clients import Client, ConnectionSettings, connect, path
from es_neardupe.progress import Progress

SETTINGS = Settings(("text",))


class Application(threading.Thread):
    """Updates, deletes, re-indexes and adds documents one by one till it is stopped; knows what must be there."""

    def __init__(self, url: str, index: str, documents: dict[str, JSON], seed: int) -> None:
        super().__init__(daemon=True)
        self.client = connect(ConnectionSettings(url=url))
        self.index = index
        self.state = {id: dict(source) for id, source in documents.items()}
        self.rng = random.Random(seed)
        self.done = 0
        self.stopped = threading.Event()

    def run(self) -> None:
        while not self.stopped.is_set():
            for _ in range(4):
                self._one()
            self.done += 4
        self.client.close()

    def _one(self) -> None:
        number = self.rng.random()
        id = self.rng.choice(sorted(self.state))
        text = " ".join(words(number, 60))
        if number < 0.4:  # a text only: our fields go on standing
            self.state[id]["text"] = text
            self._update(id, {"text": text})
        elif number < 0.7:
            self.state[id]["n"] = self.done
            self._update(id, {"n": self.done})
        elif number < 0.8:
            del self.state[id]
            self.client.request("DELETE", path(self.index, "_doc", id))
        else:  # whole documents: our fields are lost
            id = id if number < 0.9 else f"new{number}"
            self.state[id] = {"text": text, "n": -1}
            self.client.request("PUT", path(self.index, "_doc", id), body=self.state[id])

    def _update(self, id: str, doc: JSON) -> None:
        params = {"retry_on_conflict": 20}
        self.client.request("POST", path(self.index, "_update", id), params=params, body={"doc": doc})


@contextmanager
def writing(client: Client, index: str, documents: dict[str, JSON], seed: int = 1) -> Iterator[Application]:
    application = Application(client.url, index, documents, seed)
    application.start()
    try:
        wait_until(lambda: application.done > 20)
        yield application
    finally:
        application.stopped.set()
        application.join(30)
    assert not application.is_alive()


def filled(client: Client, index: str) -> dict[str, JSON]:
    make_index(client, index, {"text": {"type": "text"}, "n": {"type": "integer"}})
    documents = {
        f"f{n:03}-{k}": {"text": text, "n": 0} for n in range(80) for k, text in enumerate(family(n, 3, length=120))
    }
    put(client, index, documents)
    pipeline.init(client, index, SETTINGS)
    return documents


def check_all_is_well(client: Client, index: str, wanted: dict[str, JSON]) -> None:
    """Nothing of the user's is lost or reverted; after a re-run everything fits, and nothing is left to do."""
    users = {hit["_id"]: {k: v for k, v in hit["_source"].items() if k != "neardupe"} for hit in hits(client, index)}
    assert users == wanted
    assert pipeline.enrich(client, index, check=True).conflicts == 0
    report = pipeline.group(client, index)
    assert (report.stale, report.changed, report.unprocessed) == (0, 0, 0)
    texts = {id: source["text"] for id, source in wanted.items()}
    assert {(one.a[1], one.b[1]): one.resemblance for one in pipeline.pairs(client, index)} == pytest.approx(
        true_pairs(texts, SETTINGS.threshold)
    )
    assert pipeline.enrich(client, index, check=True).written == 0
    assert pipeline.group(client, index).written == 0
    stored = ours(client, index)
    principals = {one["group"]: id for id, one in stored.items() if one["principal"]}
    assert len(principals) == sum(one["principal"] for one in stored.values())
    truth = true_pairs(texts, SETTINGS.threshold)
    for id, one in stored.items():
        pair = tuple(sorted((id, principals[one["group"]])))
        assert one["similarity"] == pytest.approx(1.0 if pair[0] == pair[1] else truth[pair], abs=1e-6)
    users = {hit["_id"]: {k: v for k, v in hit["_source"].items() if k != "neardupe"} for hit in hits(client, index)}
    assert users == wanted


def test_an_application_writes_while_we_enrich_and_group(client: Client, index_name: str) -> None:
    documents = filled(client, index_name)
    with writing(client, index_name, documents) as application:
        for batch in (10, 50):
            report = pipeline.enrich(client, index_name, batch=batch, check=batch == 50)
            total = report.written + report.unchanged + report.deleted + report.conflicts + report.refused
            assert (report.refused, report.read) == (0, total)
            grouped = pipeline.group(client, index_name, batch=batch)
            assert grouped.documents == grouped.grouped + grouped.alone + grouped.stale + grouped.corrupt
            assert grouped.refused == grouped.corrupt == 0
            pipeline.groups(client, index_name)
            pipeline.stats(client, index_name)
        pipeline.enrich(client, index_name, all=True, batch=10)
    check_all_is_well(client, index_name, application.state)


def test_an_application_writes_while_we_clean(client: Client, index_name: str) -> None:
    documents = filled(client, index_name)
    pipeline.enrich(client, index_name)
    with writing(client, index_name, documents) as application:
        report = pipeline.clean(client, index_name, batch=10)
    assert report.documents >= report.cleaned > 0
    found = {
        hit["_id"]: {k: v for k, v in hit["_source"].items() if k != "neardupe"} for hit in hits(client, index_name)
    }
    assert found == application.state
    if report.left:
        pipeline.clean(client, index_name)
    assert not any(ours(client, index_name).values())


def at(stage: str, act: Any) -> Progress:
    """A progress that acts once, when a stage begins."""
    acted = threading.Event()

    def told(name: str, done: int, total: int | None) -> None:
        if name == stage and not acted.is_set():
            acted.set()
            act()

    return told


def test_changed_and_deleted_between_reading_and_verifying(client: Client, index_name: str) -> None:
    """The keys are read, then the texts change: such documents are counted and left alone."""
    filled(client, index_name)
    put(
        client,
        index_name,
        {"copy": {"text": " ".join(words("copies", 50))}, "copy2": {"text": " ".join(words("copies", 50))}},
    )
    pipeline.enrich(client, index_name)
    pipeline.group(client, index_name)
    change(client, index_name, "f000-0", {"text": " ".join(words("else", 120))})
    change(client, index_name, "copy2", {"text": " ".join(words("no copy", 50))})
    send(client, [({"delete": {"_index": index_name, "_id": "f001-1"}}, None)])
    before = ours(client, index_name)

    def meanwhile() -> None:
        change(client, index_name, "f002-0", {"text": " ".join(words("changed", 120))})
        send(client, [({"delete": {"_index": index_name, "_id": "f003-2"}}, None)])

    report = pipeline.group(client, index_name, progress=at("verifying pairs", meanwhile))
    assert report.stale == 4  # f000-0, copy2, f002-0, f003-2; f001-1 is not there at all
    assert report.documents == report.grouped + report.alone + report.stale
    after = ours(client, index_name)
    assert after["f000-0"] == before["f000-0"]
    assert after["f002-0"] == before["f002-0"]
    members = {one.principal: {member.id for member in one.members} for one in pipeline.groups(client, index_name)}
    assert members["f000-1"] >= {"f000-1", "f000-2"}
    assert {pair.a[1] for pair in pipeline.pairs(client, index_name)}.isdisjoint({"f000-0", "f002-0", "copy"})
    renewed = pipeline.enrich(client, index_name, check=True)
    assert renewed.written == 3
    pipeline.group(client, index_name)
    now = ours(client, index_name)
    assert now["copy"]["group"] != now["copy2"]["group"]
    assert now["f000-0"]["group"] != now["f000-1"]["group"]
    assert now["f000-1"]["group"] == now["f000-2"]["group"]
    assert now["f003-0"]["group"] == now["f003-1"]["group"]


def test_changed_between_verifying_and_writing(client: Client, index_name: str) -> None:
    filled(client, index_name)
    pipeline.enrich(client, index_name)

    def meanwhile(name: str, done: int, total: int | None) -> None:
        if name != "verifying pairs" or not done or done != total:
            return
        change(client, index_name, "f000-0", {"n": 5})  # not the text: it is grouped all the same
        put(client, index_name, {"f001-1": {"text": "a new document", "n": 6}})  # our fields are gone
        send(client, [({"delete": {"_index": index_name, "_id": "f002-0"}}, None)])

    report = pipeline.group(client, index_name, progress=meanwhile)
    assert (report.changed, report.deleted, report.refused) == (1, 1, 0)
    assert report.written + report.changed + report.deleted == report.grouped + report.alone
    stored = ours(client, index_name)
    assert stored["f000-0"]["principal"] is True
    assert stored["f001-1"] == {}
    found = {hit["_id"]: hit["_source"] for hit in hits(client, index_name)}
    assert (found["f000-0"]["n"], found["f001-1"]) == (5, {"text": "a new document", "n": 6})
    principals = {one.principal for one in pipeline.groups(client, index_name)}
    assert None in principals  # the principal of f002 is deleted, and groups says so
    pipeline.enrich(client, index_name)
    again = pipeline.group(client, index_name)
    assert (again.changed, again.stale, again.unprocessed) == (0, 0, 0)
    assert None not in {one.principal for one in pipeline.groups(client, index_name)}


def test_two_enrich_runs_at_once(client: Client, index_name: str) -> None:
    documents = filled(client, index_name)
    users = theirs(client, index_name)
    reports: list[Any] = []
    runs = [
        threading.Thread(target=lambda: reports.append(pipeline.enrich(client, index_name, batch=20))) for _ in range(2)
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join(60)
    assert len(reports) == 2
    assert [one.conflicts + one.refused + one.deleted for one in reports] == [0, 0]
    assert sum(one.written for one in reports) == len(documents)
    assert all(one.read == one.written + one.unchanged for one in reports)
    assert theirs(client, index_name) == users
    stored = ours(client, index_name)
    pipeline.enrich(client, index_name, all=True)
    assert ours(client, index_name) == stored


def test_two_group_runs_at_once(client: Client, index_name: str) -> None:
    documents = filled(client, index_name)
    pipeline.enrich(client, index_name)
    reports: list[Any] = []
    runs = [
        threading.Thread(target=lambda: reports.append(pipeline.group(client, index_name, batch=20))) for _ in range(2)
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join(60)
    assert [one.groups for one in reports] == [80, 80]
    assert [one.changed + one.refused for one in reports] == [0, 0]
    assert pipeline.group(client, index_name).unchanged == len(documents)
