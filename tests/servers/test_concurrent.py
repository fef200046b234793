"""Other clients write to the same documents while our commands run."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from server_tools import JSON, change, family, hits, make_index, ours, put, send, theirs, true_pairs, wait_until, words

from es_neardupe import NearDupe, Settings
from es_neardupe.commands.group.report import GroupReport
from es_neardupe.errors import LeaseHeld
from es_neardupe.progress import Progress
from es_neardupe.server.client import Client, path
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings

SETTINGS = Settings(("text",), threshold=0.7)
"""Lower than any similarity within a family: the keys find all of its pairs."""

FAMILIES = 80


ODD = {"one": 1.0, "none": None, "list": [[], {}, 2**53 + 1, -0.0], "\u00fcn\u00ef": "\u2028\ud83d\ude00"}
"""A value that must be preserved although no mapped field contains it."""


class Application(threading.Thread):
    """Updates, deletes, reindexes and adds documents one by one until it is stopped; knows the expected documents."""

    def __init__(self, url: str, index: str, documents: dict[str, JSON], seed: int) -> None:
        super().__init__(daemon=True)
        self.client = connect(ConnectionSettings(url=url))
        self.index = index
        self.state = {id: dict(source) for id, source in documents.items()}
        self.rng = random.Random(seed)
        self.done = 0
        self.stopped = threading.Event()

    def run(self) -> None:
        acts = [self.change_text, self.change_other, self.delete, self.put, self.read_and_put, self.bulk]
        while not self.stopped.is_set():
            (act,) = self.rng.choices(acts, weights=[6, 4, 2, 4, 3, 1])
            act(self.rng.choice(sorted(self.state)))
            self.done += 1
        self.client.close()

    def text(self) -> str:
        """A text of some family, so that groups gain and lose members and principals; or a unique one."""
        if self.rng.random() < 0.2:
            return " ".join(words(self.rng.random(), 60))
        return family(self.rng.randrange(FAMILIES), 6, length=120)[self.rng.randrange(6)]

    def change_text(self, id: str) -> None:
        """The neardupe fields stay, and no longer match the text."""
        self._update(id, {"text": self.text()})

    def change_other(self, id: str) -> None:
        self._update(id, {"n": self.done, "odd": {**ODD, "done": self.done}})

    def delete(self, id: str) -> None:
        del self.state[id]
        self.client.request("DELETE", path(self.index, "_doc", id))

    def put(self, id: str) -> None:
        """A whole document, which replaces one (its neardupe fields are lost) or is new."""
        id = self.rng.choice([id, f"new{self.done}"])
        self.state[id] = {"text": self.text(), "n": -1, "odd": ODD}
        self.client.request("PUT", path(self.index, "_doc", id), body=self.state[id])

    def read_and_put(self, id: str) -> None:
        """As many applications do: with the neardupe fields as they were when the document was read."""
        source = self.client.request("GET", path(self.index, "_doc", id))["_source"]
        change = {"n": self.done} if self.rng.random() < 0.5 else {"text": self.text()}
        self.state[id] |= change
        self.client.request("PUT", path(self.index, "_doc", id), body=source | change)

    def bulk(self, id: str) -> None:
        ids = self.rng.sample(sorted(self.state), 5)
        change = {"n": self.done}
        for id in ids:
            self.state[id] |= change
        send(
            self.client,
            [({"update": {"_index": self.index, "_id": id, "retry_on_conflict": 20}}, {"doc": change}) for id in ids],
        )

    def _update(self, id: str, doc: JSON) -> None:
        self.state[id] |= doc
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
        application.join(60)
    assert not application.is_alive()


def filled(client: Client, index: str) -> dict[str, JSON]:
    odd = {"type": "object", "enabled": False}
    make_index(client, index, {"text": {"type": "text"}, "n": {"type": "integer"}, "odd": odd})
    documents = {
        f"f{n:03}-{k}": {"text": text, "n": 0, "odd": ODD}
        for n in range(FAMILIES)
        for k, text in enumerate(family(n, 3, length=120))
    }
    put(client, index, documents)
    NearDupe(index, client).init(SETTINGS)
    return documents


def users_of(client: Client, index: str) -> dict[str, str]:
    """The application's fields of each document, unchanged."""
    sources = {hit["_id"]: dict(hit["_source"]) for hit in hits(client, index)}
    for source in sources.values():
        source.pop("neardupe", None)
    return as_text(sources)


def as_text(sources: dict[str, JSON]) -> dict[str, str]:
    return {id: json.dumps(source, sort_keys=True) for id, source in sources.items()}


def partition(client: Client, index: str) -> dict[str, tuple[str, float]]:
    """The principal of each document, and its similarity to the principal."""
    stored = ours(client, index)
    principals = {one["group"]: id for id, one in stored.items() if one["principal"]}
    assert len(principals) == sum(one["principal"] for one in stored.values())
    return {id: (principals[one["group"]], round(one["similarity"], 6)) for id, one in stored.items()}


def check_all_is_well(client: Client, index: str, wanted: dict[str, JSON]) -> None:
    """No write of the application is lost or reverted; one more run makes everything consistent, and then nothing is
    left to do."""
    assert users_of(client, index) == as_text(wanted)
    assert NearDupe(index, client).enrich().writes.conflicts == 0
    report = NearDupe(index, client).group(check=True)
    assert (report.scope.stale, report.writes.conflicts, report.scope.unprocessed) == (0, 0, 0)
    texts = {id: source["text"] for id, source in wanted.items()}
    truth = true_pairs(texts, SETTINGS.threshold)
    assert {(one.a[1], one.b[1]): one.resemblance for one in NearDupe(index, client).pairs()} == pytest.approx(truth)
    found = partition(client, index)
    for id, (principal, similarity) in found.items():
        assert similarity == pytest.approx(1.0 if id == principal else truth[min(id, principal), max(id, principal)])
    assert NearDupe(index, client).enrich(check=True).writes.written == 0
    assert (
        NearDupe(index, client).group(check=True).writes.written == NearDupe(index, client).group().writes.written == 0
    )
    assert users_of(client, index) == as_text(wanted)

    fresh = f"{index}-fresh"
    make_index(client, fresh)
    put(client, fresh, {id: {"text": text} for id, text in texts.items()})
    NearDupe(fresh, client).init(SETTINGS)
    NearDupe(fresh, client).enrich()
    NearDupe(fresh, client).group()
    assert partition(client, fresh) == found


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 21))])
def test_an_application_writes_while_we_enrich_and_group(client: Client, index_name: str, seed: int) -> None:
    documents = filled(client, index_name)
    with writing(client, index_name, documents, seed) as application:
        for batch in (10, 50):
            report = NearDupe(index_name, client).enrich(batch=batch)
            assert (report.writes.refused, report.scope.read) == (0, report.writes.total)
            grouped = NearDupe(index_name, client).group(batch=batch)
            assert (
                grouped.scope.documents
                == grouped.groups.grouped + grouped.groups.alone + grouped.scope.untouched + grouped.scope.corrupt
            )
            assert grouped.writes.refused == grouped.scope.corrupt == 0
            NearDupe(index_name, client).groups()
            NearDupe(index_name, client).stats()
        NearDupe(index_name, client).enrich(all=True, batch=10)
    check_all_is_well(client, index_name, application.state)


def test_an_application_writes_while_we_clean(client: Client, index_name: str) -> None:
    documents = filled(client, index_name)
    NearDupe(index_name, client).enrich()
    with writing(client, index_name, documents) as application:
        report = NearDupe(index_name, client).clean(batch=10)
    assert report.documents >= report.writes.written > 0
    assert users_of(client, index_name) == as_text(application.state)
    if report.writes.left:
        NearDupe(index_name, client).clean()
    assert not any(ours(client, index_name).values())


def at(stage: str, act: Any) -> Progress:
    """A progress callback that acts once, when a stage begins."""
    acted = threading.Event()

    def progress(name: str, done: int, total: int | None) -> None:
        if name == stage and not acted.is_set():
            acted.set()
            act()

    return progress


def test_written_between_counting_and_reading(client: Client, index_name: str) -> None:
    """A run over all documents counts those that it has read."""
    filled(client, index_name)
    NearDupe(index_name, client).enrich()
    late = {"_index": index_name, "_id": "late", "text": " ".join(words("late", 60))}
    (action,) = NearDupe(index_name, client).fingerprinted([late])

    def meanwhile() -> None:
        put(client, index_name, {"late": {name: action[name] for name in ("text", "neardupe")}})

    report = NearDupe(index_name, client).group(progress=at("reading keys", meanwhile))
    assert (report.scope.whole, report.scope.affected, report.scope.documents) == (
        True,
        3 * FAMILIES + 1,
        3 * FAMILIES + 1,
    )
    assert report.groups.grouped + report.groups.alone == 3 * FAMILIES + 1


def test_changed_and_deleted_between_reading_and_verifying(client: Client, index_name: str) -> None:
    """Texts change after the keys are read: such documents are counted and skipped."""
    filled(client, index_name)
    put(
        client,
        index_name,
        {"copy": {"text": " ".join(words("copies", 50))}, "copy2": {"text": " ".join(words("copies", 50))}},
    )
    NearDupe(index_name, client).enrich()
    NearDupe(index_name, client).group()
    change(client, index_name, "f000-0", {"text": " ".join(words("else", 120))})
    change(client, index_name, "copy2", {"text": " ".join(words("no copy", 50))})
    send(client, [({"delete": {"_index": index_name, "_id": "f001-1"}}, None)])
    before = ours(client, index_name)

    def meanwhile() -> None:
        change(client, index_name, "f002-0", {"text": " ".join(words("changed", 120))})
        send(client, [({"delete": {"_index": index_name, "_id": "f003-2"}}, None)])

    report = NearDupe(index_name, client).group(rebuild=True, progress=at("verifying pairs", meanwhile))
    assert report.scope.stale == 4  # f000-0, copy2, f002-0, f003-2; f001-1 does not exist
    assert report.scope.documents == report.groups.grouped + report.groups.alone + report.scope.untouched
    after = ours(client, index_name)
    for one in ("f000-0", "copy2", "f002-0"):  # alone, with the keys of the old text
        assert after[one] == before[one] | {"group": after[one]["group"], "principal": True, "similarity": 1}
    assert after["f000-1"]["principal"] is True
    assert after["f000-1"]["group"] == after["f000-2"]["group"]
    assert {pair.a[1] for pair in NearDupe(index_name, client).pairs()}.isdisjoint({"f000-0", "f002-0", "copy"})
    renewed = NearDupe(index_name, client).enrich(check=True)
    assert renewed.writes.written == 3
    NearDupe(index_name, client).group()
    now = ours(client, index_name)
    assert now["copy"]["group"] != now["copy2"]["group"]
    assert now["f000-0"]["group"] != now["f000-1"]["group"]
    assert now["f000-1"]["group"] == now["f000-2"]["group"]
    assert now["f003-0"]["group"] == now["f003-1"]["group"]


def test_a_copy_that_changes_has_no_say_in_who_is_principal(client: Client, index_name: str) -> None:
    """The oldest of two copies would rank their text first; it changes before it is read."""
    make_index(client, index_name)
    one, other = family("tie", 2, length=120)
    put(client, index_name, {"a": {"text": other}, "b": {"text": one}, "c": {"text": other}})
    NearDupe(index_name, client).init(SETTINGS)
    NearDupe(index_name, client).enrich()

    def meanwhile() -> None:
        change(client, index_name, "a", {"text": " ".join(words("else", 60))})

    NearDupe(index_name, client).group(progress=at("verifying pairs", meanwhile))
    stored = ours(client, index_name)
    assert [stored[id]["principal"] for id in "bc"] == [True, False]
    NearDupe(index_name, client).enrich(check=True)
    NearDupe(index_name, client).group()
    assert NearDupe(index_name, client).group(rebuild=True).writes.written == 0


@pytest.mark.product("each")
def test_changed_between_verifying_and_writing(client: Client, index_name: str) -> None:
    filled(client, index_name)
    NearDupe(index_name, client).enrich()

    def meanwhile(name: str, done: int, total: int | None) -> None:
        if name != "verifying pairs" or not done or done != total:
            return
        change(client, index_name, "f000-0", {"n": 5})  # not the text: it is grouped anyway
        put(client, index_name, {"f001-1": {"text": "a new document", "n": 6}})  # the neardupe fields are gone
        send(client, [({"delete": {"_index": index_name, "_id": id}}, None) for id in ("f002-0", "f003-1")])

    report = NearDupe(index_name, client).group(progress=meanwhile)
    assert (report.writes.conflicts, report.writes.deleted, report.writes.refused) == (1, 1, 0)
    assert (
        report.writes.written + report.writes.unchanged + report.writes.conflicts + report.writes.deleted
        == report.groups.grouped + report.groups.alone
    )
    stored = ours(client, index_name)
    assert stored["f000-0"]["principal"] is True
    assert stored["f001-1"] == {}
    found = {hit["_id"]: hit["_source"] for hit in hits(client, index_name)}
    assert (found["f000-0"]["n"], found["f001-1"]) == (5, {"text": "a new document", "n": 6})
    principals = {one.principal and one.principal.id for one in NearDupe(index_name, client).groups()}
    assert None in principals  # the principal of f002 is deleted, and groups shows it
    NearDupe(index_name, client).enrich()
    again = NearDupe(index_name, client).group(check=True)
    assert (again.writes.conflicts, again.scope.stale, again.scope.unprocessed) == (0, 0, 0)
    assert None not in {one.principal for one in NearDupe(index_name, client).groups()}


def run_both(*command: str) -> list[JSON]:
    """Run the command line in two processes at once; returns their reports."""
    arguments = [sys.executable, "-m", "es_neardupe", *command, "--batch", "20", "--json"]
    runs = [subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [run.communicate(timeout=60) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], said
    return [json.loads(out) for out, _ in said]


@pytest.mark.parametrize("options", [(), ("--all",)])
def test_two_enrich_runs_at_once(client: Client, index_name: str, options: tuple[str, ...]) -> None:
    documents = filled(client, index_name)
    users = theirs(client, index_name)
    reports = run_both("enrich", index_name, "--url", client.url, *options)
    assert [one["writes"]["conflicts"] + one["writes"]["refused"] + one["writes"]["deleted"] for one in reports] == [
        0,
        0,
    ]
    assert all(one["scope"]["read"] == one["writes"]["written"] + one["writes"]["unchanged"] for one in reports)
    assert sum(one["writes"]["written"] for one in reports) >= len(documents)
    assert theirs(client, index_name) == users
    stored = ours(client, index_name)
    assert NearDupe(index_name, client).enrich(check=True).writes.written == 0
    assert NearDupe(index_name, client).enrich(all=True).writes.written == len(documents)
    assert ours(client, index_name) == stored


def test_two_group_runs_at_once(client: Client, index_name: str) -> None:
    """The second run names the first, or comes later and finds nothing to do."""
    documents = filled(client, index_name)
    NearDupe(index_name, client).enrich()
    ends: list[GroupReport | LeaseHeld] = []

    def run() -> None:
        try:
            ends.append(NearDupe(index_name, client).group(batch=20))
        except LeaseHeld as held:
            ends.append(held)

    runs = [threading.Thread(target=run) for _ in range(2)]
    for one in runs:
        one.start()
    for one in runs:
        one.join(60)
    reports = [one for one in ends if not isinstance(one, LeaseHeld)]
    assert len(ends) == 2
    assert sum(one.writes.written for one in reports) == len(documents) - FAMILIES  # principals have their fields
    assert [(one.groups.count, one.writes.conflicts + one.writes.refused) for one in reports] == [(FAMILIES, 0)] * len(
        reports
    )
    assert NearDupe(index_name, client).group(rebuild=True).writes.unchanged == len(documents)
