"""A cluster of three nodes loses one while we work, and gets it back: the end is that of an undisturbed run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from clusters import Cluster, cluster, copies, manager, wait_for_green
from kill_tools import WRITES, State
from server_tools import family, hits, make_index, put, theirs, words

from es_neardupe import Settings, node, pipeline
from es_neardupe.clients import Client, path
from es_neardupe.errors import NodeError

pytestmark = [pytest.mark.server, pytest.mark.timeout(900)]  # four servers start on what may be a busy machine

INDEX = "docs"
COMMANDS: dict[str, dict[str, Any]] = {"enrich": {}, "group": {"evidence": True}}
"""What is run, with its options."""

OURS = 2
"""The node that our client talks to; it stays."""


@pytest.fixture(scope="module", params=["opensearch", "elasticsearch"])
def three(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three nodes of the newest release of each product."""
    try:
        with cluster(node.pick(request.param), tmp_path_factory.mktemp("cluster")) as found:
            yield found
    except NodeError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no cluster to be had: {error}")


class Disturbed:
    """A driver that counts requests which write, and does something before some of them are sent."""

    def __init__(self, driver: Any, events: Mapping[int, Callable[[], None]]) -> None:
        self._driver = driver
        self.events = dict(events)
        self.writes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def send(self, method: str, target: str, *rest: Any) -> Any:
        if WRITES.search(f"{method} {target}"):
            self.writes += 1
            self.events.pop(self.writes, lambda: None)()
        return self._driver.send(method, target, *rest)


def disturbed(client: Client, command: str, events: Mapping[int, Callable[[], None]], **options: Any) -> int:
    """Run a command among these events, all of which must happen; how many requests of it write."""
    calm = client._driver  # type: ignore[attr-defined]
    driver = client._driver = Disturbed(calm, events)  # type: ignore[attr-defined]
    try:
        getattr(pipeline, command)(client, INDEX, batch=10, workers=1, **options)
    finally:
        client._driver = calm  # type: ignore[attr-defined]
    assert not driver.events
    return driver.writes


def fill(client: Client) -> None:
    """Families and texts that are alone on three shards, each with a copy; no document has keys yet."""
    make_index(client, INDEX, settings={"number_of_shards": 3, "number_of_replicas": 1})
    texts = {f"f{n}-{k}": text for n in range(40) for k, text in enumerate(family(n, 3, length=60))}
    texts |= {f"alone{n}": " ".join(words(n, 20)) for n in range(60)}
    put(client, INDEX, {id: {"text": text} for id, text in texts.items()})
    pipeline.init(client, INDEX, Settings(("text",), threshold=0.7))
    wait_for_green(client, 3)


def another(three: Cluster, client: Client) -> int:
    """The node to lose: the one that manages the cluster, unless our client talks to that."""
    found = manager(client)
    return found if found != OURS else 0


def test_a_run_survives_the_loss_and_return_of_a_node(three: Cluster) -> None:
    with three.client(OURS) as client:
        fill(client)
        users = theirs(client, INDEX)
        writes = {name: disturbed(client, name, {}, **more) for name, more in COMMANDS.items()}
        wanted = State.of(client, INDEX)
        pipeline.clean(client, INDEX)
        client.request("DELETE", path(INDEX))

        fill(client)
        lost = another(three, client)
        disturbed(client, "enrich", {writes["enrich"] // 2: lambda: three.kill(lost)}, **COMMANDS["enrich"])
        disturbed(client, "group", {writes["group"] // 4: lambda: three.spawn(lost)}, **COMMANDS["group"])
        three.join(lost)
        wait_for_green(client, 3)
        assert State.of(client, INDEX) == wanted
        assert theirs(client, INDEX) == users
        assert all(len(states) == 1 for states in copies(client, INDEX).values())
        assert pipeline.enrich(client, INDEX, check=True).written == 0
        assert pipeline.group(client, INDEX, rebuild=True, evidence=True).written == 0


def test_reading_goes_on_when_a_node_is_lost(three: Cluster) -> None:
    """The snapshot is lost with the node, which stays away; what is read is every document once all the same."""
    with three.client(OURS) as client:
        ids = sorted(hit["_id"] for hit in hits(client, INDEX))
        lost = another(three, client)
        pages = client.pages(INDEX, {"query": {"match_all": {}}, "_source": False}, page_size=20)
        read = [hit.id for hit in next(iter(pages))]
        three.kill(lost)
        read += [hit.id for page in pages for hit in page]
        assert sorted(read) == ids
