"""Cluster of three nodes that loses one during a run and gets it back: the result is that of an undisturbed run."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest
from clusters import Cluster, cluster, copies, manager, wait_for_green
from kill_tools import WRITES, State
from server_tools import family, make_index, put, theirs, wait_until, words

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import IncompleteAnswer, NeardupeError
from es_neardupe.local_server import versions
from es_neardupe.server.client import Client, path
from es_neardupe.server.http_client import ServerClient
from es_neardupe.server.login.settings import Retries

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]  # four servers start, possibly on a busy machine

INDEX = "docs"
COMMANDS: dict[str, dict[str, Any]] = {"enrich": {}, "group": {"evidence": True}}
"""Commands with their options."""

SNAPSHOTS = re.compile("^POST .*/(_pit|point_in_time)")
OURS = 2
"""The node that our client connects to; it stays."""


@pytest.fixture(scope="module", params=["opensearch", pytest.param("elasticsearch", marks=pytest.mark.long)])
def three(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three nodes of the newest release of each product."""
    with cluster(versions.pick(request.param), tmp_path_factory.mktemp("cluster")) as found:
        yield found


class Disturbed:
    """A driver that counts requests of a kind, and calls a function before some of them."""

    def __init__(self, driver: Any, events: Mapping[int, Callable[[], None]], kind: re.Pattern[str] = WRITES) -> None:
        self._driver = driver
        self.events = dict(events)
        self.kind = kind
        self.seen = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def send(self, method: str, target: str, *rest: Any) -> Any:
        if self.kind.search(f"{method} {target}"):
            self.seen += 1
            self.events.pop(self.seen, lambda: None)()
        return self._driver.send(method, target, *rest)


def disturbed(client: Client, command: str, events: Mapping[int, Callable[[], None]], **options: Any) -> int:
    """Run a command with these events, all of which must happen; returns its number of write requests."""
    assert isinstance(client, ServerClient)
    calm = client._driver
    driver = client._driver = Disturbed(calm, events)
    try:
        getattr(NearDupe(INDEX, client), command)(batch=10, workers=1, **options)
    finally:
        client._driver = calm
    assert not driver.events
    return driver.seen


def fill(client: Client) -> None:
    """Families and unique texts on three shards, each with a copy; no document has keys yet."""
    make_index(client, INDEX, settings={"number_of_shards": 3, "number_of_replicas": 1})
    texts = {f"f{n}-{k}": text for n in range(10) for k, text in enumerate(family(n, 3, length=60))}
    texts |= {f"alone{n}": " ".join(words(n, 20)) for n in range(10)}
    put(client, INDEX, {id: {"text": text} for id, text in texts.items()})
    NearDupe(INDEX, client).init(Settings(("text",), threshold=0.7))
    wait_for_green(client, 3)


def another(three: Cluster, client: Client) -> int:
    """The node to lose: the cluster manager, unless our client is connected to it."""
    found = manager(client)
    return found if found != OURS else 0


@pytest.mark.parametrize("how", ["killed", pytest.param("suspended", marks=pytest.mark.long)])
def test_a_run_survives_the_loss_and_return_of_a_node(three: Cluster, how: str) -> None:
    """A suspended node keeps its connections open and its state; when it continues, it first believes to be a member,
    or even the manager."""
    lose, give_back = {"killed": (three.kill, three.spawn), "suspended": (three.suspend, three.resume)}[how]
    with three.client(OURS) as client:
        fill(client)
        users = theirs(client, INDEX)
        writes = {name: disturbed(client, name, {}, **more) for name, more in COMMANDS.items()}
        wanted = State.of(client, INDEX)
        NearDupe(INDEX, client).clean()
        client.request("DELETE", path(INDEX))

        fill(client)
        lost = another(three, client)

        def lose_replicated() -> None:
            wait_for_green(client, 3)  # a hidden index that the run has just created has no other copy before
            lose(lost)

        disturbed(client, "enrich", {writes["enrich"] // 2: lose_replicated}, **COMMANDS["enrich"])
        disturbed(client, "group", {writes["group"] // 4: lambda: give_back(lost)}, **COMMANDS["group"])
        if how == "killed":
            three.join(lost)
        wait_for_green(client, 3)
        assert State.of(client, INDEX) == wanted
        assert theirs(client, INDEX) == users
        assert [len(numbers) for numbers in copies(client, INDEX).values()] == [1, 1, 1]
        assert NearDupe(INDEX, client).enrich(check=True).writes.written == 0
        assert NearDupe(INDEX, client).group(rebuild=True, evidence=True).writes.written == 0
        NearDupe(INDEX, client).clean()
        client.request("DELETE", path(INDEX))


@pytest.mark.long
def test_a_copy_that_could_not_be_allocated(three: Cluster) -> None:
    """A file is where its folder would be; when it is removed, `wait_for_green` makes the server try again."""
    names = "index.routing.allocation.include._name"
    with three.client(OURS) as client:
        make_index(client, INDEX, settings={"number_of_shards": 1, "number_of_replicas": 0, names: "n0"})
        uuid = client.request("GET", path(INDEX))[INDEX]["settings"]["index"]["uuid"]
        (folder,) = (three.home / "n0").rglob(uuid)
        obstacle = three.home / "n1" / folder.relative_to(three.home / "n0") / "0"
        obstacle.parent.mkdir(parents=True)
        obstacle.write_text("")
        client.request("PUT", path(INDEX, "_settings"), body={names: "n0,n1", "index.number_of_replicas": 1})

        def given_up() -> bool:
            copy = {"index": INDEX, "shard": 0, "primary": False}
            explained = client.request("GET", path("_cluster", "allocation", "explain"), body=copy)
            return bool(explained.get("unassigned_info", {}).get("failed_allocation_attempts") == 5)

        wait_until(given_up, 60)
        obstacle.unlink()
        wait_for_green(client, 3)
        client.request("DELETE", path(INDEX))


class Writers(threading.Thread):
    """Clients that change texts of random documents by partial updates until they are stopped."""

    def __init__(self, client: Client) -> None:
        super().__init__(daemon=True)
        self.client, self.stopped, self.done = client, threading.Event(), 0

    def run(self) -> None:
        rng = random.Random(7)
        while not self.stopped.is_set():
            doc = {"doc": {"text": " ".join(words(("changed", self.done), 12))}}
            with suppress(NeardupeError):  # a node is lost
                target = path(INDEX, "_update", f"f{rng.randrange(24)}-{rng.randrange(3)}")
                self.client.request("POST", target, params={"retry_on_conflict": 9}, body=doc)
                self.done += 1


def enrich_through_a_failover(three: Cluster, lost: int, found: NearDupe, writers: Writers) -> None:
    """Kill a node between two runs, while others write; in the end no change was missed."""
    writers.start()
    found.enrich(batch=10)
    three.kill(lost)

    def enriched() -> bool:
        with suppress(IncompleteAnswer):  # until the other nodes have noticed the loss
            found.enrich(batch=10)
            return True
        return False

    for _ in range(4):
        wait_until(enriched, 60)
        goal = writers.done + 5
        wait_until(lambda goal=goal: writers.done > goal, 60)  # type: ignore[misc]  # mypy infers no type
    writers.stopped.set()
    writers.join(60)
    wait_until(enriched, 60)
    assert found.enrich(check=True, dry_run=True).writes.written == 0


REPLICATION: dict[str, dict[str, str]] = {"elasticsearch": {}, "opensearch": {"replication.type": "SEGMENT"}}
"""Copies of shards on OpenSearch lag behind with segment replication."""


@pytest.mark.long
def test_no_change_is_missed_in_a_failover(three: Cluster) -> None:
    """Primaries are lost while others write and enrich runs: the changes of all acknowledged writes are noticed."""
    with three.client(OURS) as client, three.client(OURS) as other:
        settings = {"number_of_shards": 3, "number_of_replicas": 1, **REPLICATION[three.release.server]}
        make_index(client, INDEX, settings=settings)
        put(client, INDEX, {f"f{n}-{k}": {"text": " ".join(words((n, k), 12))} for n in range(24) for k in range(3)})
        found = NearDupe(INDEX, client)
        found.init(Settings(("text",)))
        wait_for_green(client, 3)
        first = another(three, client)
        for lost in (first, 1 - first):
            enrich_through_a_failover(three, lost, found, Writers(other))
            three.spawn(lost)
            three.join(lost)
            wait_for_green(client, 3)
            report = found.enrich()
            assert (report.writes.written, report.scope.unnoticed) == (0, {})
            assert found.enrich(check=True, dry_run=True).writes.written == 0
        assert found.enrich().scope.read == 0
        found.clean()
        client.request("DELETE", path(INDEX))


@pytest.mark.long
@pytest.mark.parametrize("server", ["opensearch", "elasticsearch"])
def test_a_node_that_is_cut_off_from_the_others(server: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A run through that node ends with an error, and the others continue without it: a run through one of them
    completes the result. What the node had not replicated is gone when it returns, and so it was not acknowledged."""
    home = tmp_path_factory.mktemp("cut")
    with (
        cluster(versions.pick(server), home, links=True) as three,
        three.client(OURS, retries=Retries(attempts=2), timeout=10) as ours,
        three.client(0) as client,
    ):
        assert three.links is not None
        fill(client)
        users = theirs(client, INDEX)
        writes = {name: disturbed(client, name, {}, **more) for name, more in COMMANDS.items()}
        wanted = State.of(client, INDEX)
        for command, more in COMMANDS.items():
            NearDupe(INDEX, client).clean()
            client.request("DELETE", path(INDEX))
            fill(client)
            if command == "group":
                NearDupe(INDEX, client).enrich()
            cut = {writes[command] // 2: lambda: three.links.cut(OURS)}
            with pytest.raises(NeardupeError) as stopped:
                disturbed(ours, command, cut, **more)
            assert "\n" not in str(stopped.value)
            for name, options in COMMANDS.items():
                getattr(NearDupe(INDEX, client), name)(**options)
            assert theirs(client, INDEX) == users
            three.links.mend()
            wait_for_green(client, 3)
            assert State.of(client, INDEX) == State.of(ours, INDEX) == wanted
            assert [len(numbers) for numbers in copies(client, INDEX).values()] == [1, 1, 1]
            assert NearDupe(INDEX, ours).group(rebuild=True, evidence=True).writes.written == 0


def test_reading_goes_on_when_a_node_is_lost(three: Cluster) -> None:
    """Part of the snapshot is lost with the node, which does not return; every document is read exactly once."""
    name = "elsewhere"
    with three.client(OURS) as client:
        away = {"index.routing.allocation.exclude._name": f"n{OURS}"}
        make_index(client, name, settings={"number_of_shards": 2, "number_of_replicas": 1, **away})
        put(client, name, {f"d{n}": {"text": f"text {n}"} for n in range(150)})
        wait_for_green(client, 3)
        assert isinstance(client, ServerClient)
        driver = client._driver = Disturbed(client._driver, {}, SNAPSHOTS)
        pages = client.pages(name, {"query": {"match_all": {}}, "_source": False}, page_size=20)
        read = [hit.id for hit in next(pages)]
        three.kill(holder(client))
        read += [hit.id for page in pages for hit in page]
        assert sorted(read) == sorted(f"d{n}" for n in range(150))
        assert driver.seen == 2


def holder(client: Client) -> int:
    """The number of a node that holds part of a snapshot."""
    stats = client.request("GET", path("_nodes", "stats", "indices", "search"))["nodes"].values()
    names = [node["name"] for node in stats if node["indices"]["search"]["open_contexts"]]
    return int(names[0].removeprefix("n"))
