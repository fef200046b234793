"""Watching an index that grows: new documents, failures, and how it stops."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest
from conftest import Cli
from prometheus_client.parser import text_string_to_metric_families
from server_tools import JSON, TEXT, change, exists, family, make_index, one_line, ours, put, wait_until, words
from unit_tools import index_of

from es_neardupe import NearDupe, Settings
from es_neardupe.commands.watch.rounds import Lag, Round, WatchReport
from es_neardupe.errors import Blocked, Forbidden, LoginRefused, NotFound, RequestError, SettingsError, Unreachable
from es_neardupe.groups.registry import Registry
from es_neardupe.index.hidden_indices import HiddenDocuments, HiddenIndex, hidden_index_name
from es_neardupe.index.index import Index, opened
from es_neardupe.index.runs.lease import LEASE_ID, held
from es_neardupe.index.target import Definitions, open_target
from es_neardupe.server.client import Client, path
from es_neardupe.server.http_client import ServerClient
from es_neardupe.server.login.settings import Retries
from es_neardupe.server.responses import Answer


def prepared(client: Client, index: str, documents: Mapping[str, JSON]) -> None:
    make_index(client, index)
    put(client, index, documents)
    NearDupe(index, client).init(Settings(("text",), threshold=0.7))


def texts(seed: str, size: int) -> dict[str, JSON]:
    return {f"{seed}{k}": {"text": text} for k, text in enumerate(family(seed, size, length=60))}


def together(client: Client, index: str, *ids: str) -> bool:
    """Whether these documents have the same stored group."""
    stored = ours(client, index)
    return len({stored.get(id, {}).get("group", id) for id in ids}) == 1


def lease_is_free(client: Client, index: str) -> bool:
    found = HiddenDocuments(
        client, hidden_index_name(open_target(Definitions(client, index)), HiddenIndex.GROUPS)
    ).read(LEASE_ID)
    assert found is not None
    return "returned" in found.source["value"]


@contextmanager
def watching(client: Client, index: str, lag: Lag | None = None) -> Iterator[list[Round]]:
    """Watch in a thread while the block runs; yields the rounds so far."""
    stop, rounds = threading.Event(), list[Round]()
    reports: list[WatchReport] = []

    def run() -> None:
        reports.append(
            NearDupe(index, client).watch(every=0.01, check_every=3, stop=stop, lag=lag, on_round=rounds.append)
        )

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield rounds
    finally:
        stop.set()
        thread.join(60)
    assert [one.rounds for one in reports] == [len(rounds)]
    assert [one.round for one in rounds] == list(range(1, len(rounds) + 1))
    assert reports[0].failed == sum(one.error is not None for one in rounds)


def scraped(address: str) -> dict[str, float]:
    """The samples that Prometheus would read, all of one index."""
    with urllib.request.urlopen(address, timeout=60) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    samples = [sample for one in families for sample in one.samples]
    assert len({sample.labels["index"] for sample in samples}) == 1
    return {sample.name.removeprefix("es_neardupe_"): sample.value for sample in samples}


def test_the_service(client: Client, index_name: str) -> None:
    """A separate process: a line for each round, metrics, and an end without loss on SIGTERM."""
    prepared(client, index_name, texts("a", 3))
    options = ["--every", "1s", "--metrics-port", "0", "--json", "--url", client.url]
    command = [sys.executable, "-m", "es_neardupe", "watch", index_name, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stderr is not None
            address = process.stderr.readline().removeprefix("Metrics: ").strip()
            first = json.loads(process.stdout.readline())
            samples = scraped(address)
            put(client, index_name, texts("b", 2))
            wait_until(lambda: together(client, index_name, "b0", "b1"))
            wait_until(lambda: scraped(address)["documents_enriched_total"] == 5)
            later = scraped(address)
            process.send_signal(signal.SIGTERM)
            out, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0
    assert said.startswith("Stopping after the current step.")
    assert f"Stopped. Rounds: {1 + len(out.splitlines())}, failed: 0." in said
    rounds = [first, *map(json.loads, out.splitlines())]
    assert (
        first["scope"]["new"],
        first["writes"]["enriched"],
        first["writes"]["grouped"],
        first["pairs"]["candidates"],
    ) == (3, 3, 2, 3)  # the principal has its fields
    assert address.startswith("http://127.0.0.1:")
    assert (samples["documents"], samples["pairs_verified_total"]) == (3, 3)
    assert samples["round_seconds_count"] >= 1  # on a busy machine, further rounds have ended
    assert (later["documents"], later["lag_seconds"], later["documents_left"]) == (5, 0, 0)
    assert later["pairs_verified_total"] == sum(one["pairs"]["candidates"] for one in rounds)
    assert later["last_success_timestamp_seconds"] >= samples["last_success_timestamp_seconds"] > 1.7e9
    assert lease_is_free(client, index_name)


def test_once(client: Client, server_cli: Cli, index_name: str) -> None:
    """One round by the rules of the last run of ``group``: a document of another site stays alone."""
    make_index(client, index_name, {**TEXT, "site": {"type": "keyword"}, "at": {"type": "date"}})
    documents = texts("a", 3)
    for day, (id, source) in enumerate(documents.items(), 1):
        source |= {"site": "there" if id == "a2" else "here", "at": f"2024-05-0{day}"}
    put(client, index_name, documents)
    NearDupe(index_name, client).init(Settings(("text",), threshold=0.7))
    rules = ["--linkage", "complete", "--principal", "newest", "--within", "site", "--window", "at:30"]
    assert server_cli("group", index_name, *rules).code == 0
    run = server_cli("watch", index_name, "--once", "--json", "--evidence")
    assert (run.code, run.json["writes"]["grouped"], run.json["error"]) == (0, 1, None)
    assert together(client, index_name, "a0", "a1")
    assert not together(client, index_name, "a1", "a2")
    assert {id for id, one in ours(client, index_name).items() if one["principal"]} == {"a1", "a2"}
    target = open_target(Definitions(client, index_name))
    last = Registry(index_of(client, target)).last_run()
    assert last is not None
    assert last.rules is not None
    assert (last.evidence, last.rules.group.linkage.value, str(last.rules.group.window)) == (True, "complete", "at:30")
    assert exists(client, hidden_index_name(target, HiddenIndex.PAIRS))
    before = signal.getsignal(signal.SIGTERM)
    with held(opened(Index(index_name, client))):
        run = server_cli("watch", index_name, "--once")
    assert run.code == 1
    assert "is processing index" in one_line(run.err)
    assert signal.getsignal(signal.SIGTERM) is before


def test_what_comes_and_changes_while_it_runs(client: Client, index_name: str) -> None:
    prepared(client, index_name, texts("a", 2))
    lag = Lag()
    with watching(client, index_name, lag) as rounds:
        wait_until(lambda: together(client, index_name, "a0", "a1"))
        put(client, index_name, texts("b", 3) | texts("a", 3))  # removes the neardupe fields of a0 and a1
        wait_until(lambda: together(client, index_name, "b0", "b1", "b2"))
        wait_until(lambda: together(client, index_name, "a0", "a1", "a2"))
        change(client, index_name, "b1", {"text": " ".join(words("else", 60))})  # keeps the neardupe fields
        wait_until(lambda: not together(client, index_name, "b0", "b1"))
        done = len(rounds)
        wait_until(lambda: len(rounds) > done + 1)
    assert together(client, index_name, "b0", "b2")
    assert all(one.scope and one.pairs for one in rounds)
    assert sum(one.scope.new for one in rounds if one.scope) == 2 + 6
    assert sum(one.writes.enriched for one in rounds) == 2 + 6 + 1
    assert sum(one.pairs.candidates for one in rounds if one.pairs) >= 1 + 3 + 3
    assert {one.error for one in rounds} == {None}
    assert rounds[-1].scope is not None
    assert rounds[-1].scope.documents == 6
    assert (rounds[-1].lag, lag.seconds) == (0, 0)
    assert lease_is_free(client, index_name)


class Troubled:
    """A driver whose server answers once, then has each of these problems once, then answers again."""

    def __init__(self, client: Client, *troubles: Answer | Unreachable) -> None:
        assert isinstance(client, ServerClient)
        self.driver = client._driver
        self.troubles = list(troubles)
        self.sent = 0

    @property
    def url(self) -> str:
        return self.driver.url

    @property
    def login(self) -> str:
        return self.driver.login

    def send(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        self.sent += 1
        if self.sent < 2 or not self.troubles:
            return self.driver.send(method, target, body, headers)
        trouble = self.troubles.pop(0)
        if isinstance(trouble, Unreachable):
            raise trouble
        return trouble

    def close(self) -> None:
        raise AssertionError("it is the other client's")


def refused(status: int, kind: str) -> Answer:
    return Answer(status, {}, {"error": {"type": kind, "reason": "because"}, "status": status})


def impatient(driver: Troubled, client: Client) -> Client:
    """A client without retries."""
    return ServerClient(driver, client.server, Retries(attempts=1))


def test_trouble_that_passes(client: Client, index_name: str) -> None:
    prepared(client, index_name, texts("a", 2))
    full_disk = refused(429, "cluster_block_exception")  # the server removes this block itself
    driver = Troubled(
        client, Unreachable("gone"), refused(503, "unavailable"), full_disk, Answer(200, {}, {"timed_out": True})
    )
    with watching(impatient(driver, client), index_name) as rounds:
        wait_until(lambda: bool(rounds) and rounds[-1].error is None)
    kinds = ["Unreachable", "RequestError", "Blocked", "IncompleteAnswer"]
    assert [one.error for one in rounds[:5]] == [*kinds, None]
    assert [one.scope and one.scope.documents for one in rounds[:5]] == [None] * 4 + [2]
    assert together(client, index_name, "a0", "a1")


def test_trouble_that_does_not_pass(client: Client, index_name: str) -> None:
    prepared(client, index_name, texts("a", 2))
    for status, kind in ((403, Forbidden), (403, Blocked), (400, RequestError), (401, LoginRefused)):
        driver = Troubled(client, refused(status, "cluster_block_exception" if kind is Blocked else "no"))
        with pytest.raises(kind):
            NearDupe(index_name, impatient(driver, client)).watch(every=0.01)
        assert driver.sent == 2

    def deleted(done: Round) -> None:
        client.request("DELETE", path(index_name))

    with pytest.raises(NotFound, match="no index"):
        NearDupe(index_name, client).watch(every=0.01, on_round=deleted)


def test_another_run_is_waited_for(client: Client, index_name: str) -> None:
    prepared(client, index_name, texts("a", 2))
    with held(opened(Index(index_name, client))), watching(client, index_name) as rounds:
        wait_until(lambda: len(rounds) > 2)
    assert {one.error for one in rounds} == {"LeaseHeld"}
    assert "is processing index" in str(rounds[0].message)
    assert rounds[0].scope is not None
    assert (rounds[0].scope.documents, rounds[0].scope.new, rounds[0].writes.enriched, rounds[0].writes.grouped) == (
        2,
        2,
        2,
        0,
    )
    assert rounds[2].lag > rounds[1].lag > 0
    with watching(client, index_name) as rounds:
        wait_until(lambda: bool(rounds))
    assert (rounds[0].error, rounds[0].writes.grouped, rounds[0].lag) == (None, 1, 0)  # the principal has its fields


def test_a_stop_in_the_middle(client: Client, index_name: str) -> None:
    """The current step is not finished, the lease is released, and the next run ends as an undisturbed one."""
    prepared(client, index_name, texts("a", 3))
    for stage in ("fingerprinting", "verifying pairs"):
        stop, stages = threading.Event(), list[str]()

        def note_progress(name: str, done: int, total: int | None) -> None:
            stages.append(name)  # noqa: B023
            if name == stage:  # noqa: B023
                stop.set()  # noqa: B023

        report = NearDupe(index_name, client).watch(stop=stop, progress=note_progress)
        assert (report.rounds, stages[-1]) == (0, stage)
        assert not together(client, index_name, "a0", "a1")
    assert lease_is_free(client, index_name)
    NearDupe(index_name, client).watch(once=True)
    assert together(client, index_name, "a0", "a1", "a2")


# Wrong options


@pytest.mark.parametrize("text", ["", "30", "s", "0s", "25h", "-5s", "1.5m", "5 m", "5M", "5ms", "1h30m", "٣s", "5s\n"])
def test_what_is_no_duration(text: str, cli: Cli) -> None:
    run = cli("watch", "news", "--every", text)
    assert run.code == 2
    assert "is not a duration from 1s to 24h" in " ".join(run.err.replace("│", " ").split())


def test_the_time_between_rounds(client: Client) -> None:
    for wrong in ({"every": 0}, {"every": float("nan")}, {"every": 86_401}, {"check_every": -1}):
        with pytest.raises(SettingsError, match=r"time between rounds|must be 0 or more"):
            NearDupe("news", client).watch(**wrong)
