"""Pages of more documents than are safe: only of documents that were measured, or that the server counts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fake_servers import AT_ONCE, OPENSEARCH_ROOT, Fake, Reply, error, fake_servers, reply

from es_neardupe.errors import UnexpectedAnswer
from es_neardupe.server.client import Client
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings

SEARCH = "POST /_search"


@pytest.fixture
def fake() -> Iterator[Fake]:
    with fake_servers() as run:
        made = run()
        made.on("GET /", reply(OPENSEARCH_ROOT))
        made.on("POST /i/_search/point_in_time", reply({"pit_id": "p"}))
        made.on("DELETE /_search/point_in_time", reply({}))
        yield made


@pytest.fixture
def client(fake: Fake) -> Iterator[Client]:
    opened = connect(ConnectionSettings(url=fake.url, retries=AT_ONCE))
    opened.pace.documents = 2
    yield opened
    opened.close()


def page(*ids: str) -> Reply:
    hits = [{"_index": "i", "_id": id, "sort": [1, 2], "_source": {"text": "x"}} for id in ids]
    return reply({"hits": {"hits": hits}})


def sizes(*values: Any) -> Reply:
    return reply({"hits": {"hits": [{"_index": "i", "sort": [1, 2], "fields": {"size": [one]}} for one in values]}})


def read(client: Client) -> str:
    body = {"query": {"match_all": {}}, "_source": ["text"]}
    return "".join(hit.id for one in client.pages("i", body, page_size=None) for hit in one)


def asked(fake: Fake) -> list[tuple[str, int]]:
    bodies = [json.loads(body) for seen, _, body in fake.seen if seen == SEARCH]
    return [("sizes" if "script_fields" in body else "page", body["size"]) for body in bodies]


@pytest.mark.parametrize(
    ("measured", "number"),
    [
        ([10, 10, 10, 10], 4),
        ([10, 3_999_000, 4_000_990, 10], 3),
        ([10, 3_999_000, 4_000_991, 10], 2),  # together more than 8 MB
        ([9_000_000, 10, 10, 10], 2),  # so many are safe, whatever their sizes
        ([10, 10, 10, 0], 3),  # the last was not measured
    ],
)
def test_pages_of_measured_documents(client: Client, fake: Fake, measured: list[int], number: int) -> None:
    fake.on(SEARCH, page("a", "b"), sizes(*measured), page(*"cdef"[:number]), sizes(), page())
    assert read(client) == "abcdef"[: 2 + number]
    assert asked(fake)[:3] == [("page", 2), ("sizes", 4), ("page", number)]


def test_sizes_are_measured_without_reading_the_documents(client: Client, fake: Fake) -> None:
    fake.on(SEARCH, page("a", "b"), sizes(1, 1, 1, 1), page())
    read(client)
    _, measuring, reading = (json.loads(body) for seen, _, body in fake.seen if seen == SEARCH)
    assert measuring["script_fields"]["size"]["script"]["params"]["left"] == {"bytes": 24_000_000}
    assert (measuring["stored_fields"], "_source" in measuring) == ("_none_", False)
    same = ("query", "pit", "sort", "search_after", "size")
    assert [measuring[name] for name in same] == [reading[name] for name in same]


@pytest.mark.parametrize("status", [400, 403, 500])
def test_a_server_without_scripts_is_asked_once(client: Client, fake: Fake, status: int) -> None:
    refused = error(status, "illegal_argument_exception", "cannot execute [inline] scripts")
    fake.on(SEARCH, page("a", "b"), refused, page("c", "d"), page("e", "f"), page())
    assert read(client) == "abcdef"
    assert asked(fake) == [("page", 2), ("sizes", 4), ("page", 2), ("page", 2), ("page", 2)]


def test_a_server_short_of_memory_is_asked_again_for_the_next_page(client: Client, fake: Fake) -> None:
    rejected = error(429, "circuit_breaking_exception", "[parent] Data too large")
    fake.on(SEARCH, page("a", "b"), rejected, page("c", "d"), sizes(1, 1, 1, 1), page())
    assert read(client) == "abcd"
    assert asked(fake) == [("page", 2), ("sizes", 4), ("page", 2), ("sizes", 4), ("page", 4)]


@pytest.mark.parametrize("size", ["1", None, [1], 1.5, True])
def test_an_answer_without_sizes(client: Client, fake: Fake, size: Any) -> None:
    fake.on(SEARCH, page("a", "b"), sizes(size))
    with pytest.raises(UnexpectedAnswer, match="lacks the sizes of documents"):
        read(client)


def test_another_answer(client: Client, fake: Fake) -> None:
    fake.on(SEARCH, page("a", "b"), page("c", "d"))
    with pytest.raises(UnexpectedAnswer, match="lacks the sizes of documents"):
        read(client)


def test_an_endless_answer(client: Client, fake: Fake) -> None:
    fake.on(SEARCH, page("a", "b"), reply({"hits": {"hits": ["x" * 9_000_000]}}))
    with pytest.raises(UnexpectedAnswer, match="larger than 8,000,000 bytes"):
        read(client)


def elasticsearch(version: str) -> Reply:
    headers = {"X-Elastic-Product": "Elasticsearch", "Content-Type": "application/json"}
    return reply({"version": {"number": version}}, headers=headers)


@pytest.mark.parametrize(
    ("version", "nodes", "second"),
    [("9.5.0", 1, 32), ("8.19.21", 1, 32), ("9.4.9", 1, 16), ("8.19.20", 1, 16), ("9.5.0", 2, 16)],
)
def test_elasticsearch_that_counts_documents(fake: Fake, version: str, nodes: int, second: int) -> None:
    """It rejects pages that are too large for its memory."""
    node = {"roles": ["data"], "jvm": {"mem": {"heap_max_in_bytes": 512_000_000}}}
    fake.on("GET /", elasticsearch(version))
    fake.on("GET /_nodes/jvm", reply({"nodes": {f"n{k}": node for k in range(nodes)}}))
    fake.on("POST /i/_pit", reply({"id": "p"}))
    fake.on("DELETE /_pit", reply({}))
    fake.on(SEARCH, page(*"abcdefghijklmnop"), page())
    client = connect(ConnectionSettings(url=fake.url, retries=AT_ONCE))
    assert read(client) == "abcdefghijklmnop"
    assert asked(fake) == [("page", 16), ("page", second)]
    client.close()
