"""Answers that are too large or have an unexpected form: plain errors with both drivers, without retries."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import fake_fixtures
import pytest
from fake_servers import ELASTIC, JSON, Fake, reply
from peak_memory import measuring

from es_neardupe.errors import IncompleteAnswer, NeardupeError, UnexpectedAnswer, UnsupportedServer
from es_neardupe.records import Action, Product
from es_neardupe.server.bulk import write
from es_neardupe.server.client import Client
from es_neardupe.server.connect import connect
from es_neardupe.server.drivers import driver
from es_neardupe.server.login.settings import ConnectionSettings
from es_neardupe.server.search import count, fetch, search

MB = 1_000_000
ZIPPED = {"Content-Encoding": "gzip"}


start, product = fake_fixtures.start, fake_fixtures.product
fake, client = fake_fixtures.fake, fake_fixtures.client


def sized(fake: Fake, size: int, headers: dict[str, str]) -> None:
    body = b'{"took":1}' + b" " * (size - 10)
    fake.on("POST /i/_search", reply(gzip.compress(body) if headers else body, headers=JSON | headers))


@pytest.mark.parametrize("headers", [{}, ZIPPED], ids=["plain", "gzip"])
def test_large_answers(fake: Fake, client: Client, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "MAX_ANSWER", 300_000)
    sized(fake, 300_000, headers)
    assert search(client, "i", {}) == {"took": 1}
    sized(fake, 300_001, headers)
    with pytest.raises(UnexpectedAnswer, match=r"larger than 300,000 bytes. Check any proxy .*\[request es-neardupe/"):
        search(client, "i", {})
    assert fake.count("POST /i/_search") == 2
    sized(fake, 1000, headers)
    assert search(client, "i", {}) == {"took": 1}


@pytest.mark.parametrize("broken", [False, True])
def test_more_refused_answers_than_connections(
    fake: Fake, client: Client, broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each gives its connection back, otherwise the next request would wait for ever."""
    monkeypatch.setattr(driver, "MAX_ANSWER", 300_000)
    sized(fake, 1_000_000, {})
    if broken:
        fake.on("POST /i/_search", reply(b"not compressed", headers=JSON | ZIPPED))
    for _ in range(driver.POOL_SIZE + 1):
        with pytest.raises(NeardupeError):
            search(client, "i", {})
    sized(fake, 1000, {})
    assert search(client, "i", {}) == {"took": 1}


_MEASURE = """
import sys
from es_neardupe.errors import UnexpectedAnswer
from es_neardupe.server.connect import connect
from es_neardupe.server.drivers import driver
from es_neardupe.server.login.settings import ConnectionSettings
driver.MAX_ANSWER = 50_000_000
client = connect(ConnectionSettings(sys.argv[1]))
before = peak()
try:
    client.request("GET", "/bomb")
except UnexpectedAnswer as error:
    print(error)
print(peak() - before)
"""


def test_an_answer_that_expands_to_a_gigabyte(fake: Fake) -> None:
    pytest.importorskip("resource")
    bomb = gzip.compress(b'{"x": "') + gzip.compress(b"x" * 100 * MB) * 10
    assert len(bomb) < 2 * MB
    fake.on("GET /bomb", reply(bomb, headers=JSON | ZIPPED))
    done = subprocess.run(
        [sys.executable, "-c", measuring(_MEASURE), fake.url], check=True, capture_output=True, text=True, timeout=120
    )
    error, grown = done.stdout.splitlines()
    assert "the answer is larger than 50,000,000 bytes" in error
    assert int(grown) < 250 * MB


SEARCHES: list[tuple[Any, str]] = [
    ({}, "the answer lacks 'hits'"),
    ({"hits": {}}, "the answer lacks 'total'"),
    ({"hits": {"total": {}}}, "the answer lacks 'value'"),
    ({"hits": []}, "unexpected form"),
    ({"hits": {"hits": {}}}, "unexpected form"),
    ({"hits": {"hits": ["x"]}}, "unexpected form"),
    ([], "unexpected form"),
    (5, "unexpected form"),
]


@pytest.mark.parametrize(("body", "words"), SEARCHES)
def test_search(fake: Fake, client: Client, body: Any, words: str) -> None:
    fake.on("POST /i/_search", reply(body))
    with pytest.raises(UnexpectedAnswer, match=words):
        count(client, "i")
    assert fake.count("POST /i/_search") == 1


@pytest.mark.parametrize(
    "body",
    [{}, {"hits": {}}, {"hits": {"hits": [{"_id": "a"}]}}, {"hits": {"hits": [{"_index": "i"}]}}, [], {"hits": "x"}],
)
def test_pages(fake: Fake, client: Client, product: Product, body: Any) -> None:
    opening = "/i/_search/point_in_time" if product is Product.OPENSEARCH else "/i/_pit"
    fake.on(f"POST {opening}", reply({"id": "p", "pit_id": "p"}))
    fake.on("POST /i/_search", reply(body))
    with pytest.raises(UnexpectedAnswer):
        list(client.pages("i", {}))
    fake.on("POST /i/_search", reply({"hits": {"hits": [{"_index": "i", "_id": "a"}]}}))  # a full page
    fake.on("POST /_search", reply(body))
    with pytest.raises(UnexpectedAnswer):
        list(client.pages("i", {}, page_size=1))
    fake.on(f"POST {opening}", reply({}))
    with pytest.raises(UnexpectedAnswer, match=r"lacks '(pit_)?id'"):
        list(client.pages("i", {}, page_size=1))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "the answer lacks 'docs'"),
        ({"docs": {}}, "unexpected form"),
        ({"docs": []}, "answered 0 of 1 document"),
        ({"docs": [5]}, "unexpected form"),
        ({"docs": [{"_index": "i", "_id": "a"}]}, "the answer lacks 'found'"),
        ({"docs": [{"found": True}]}, "the answer lacks '_index'"),
        ([], "unexpected form"),
    ],
)
def test_documents_by_id(fake: Fake, client: Client, body: Any, words: str) -> None:
    fake.on("POST /_mget", reply(body))
    with pytest.raises(UnexpectedAnswer, match=words):
        list(fetch(client, [("i", "a", None)], True))


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        ({}, IncompleteAnswer, "answered 0 of 1 write"),
        ({"items": {}}, UnexpectedAnswer, "unexpected form"),
        ({"items": ["x"]}, UnexpectedAnswer, "unexpected form"),
        ({"items": [{}]}, UnexpectedAnswer, "unexpected form"),
        ({"items": [{"index": 5}]}, UnexpectedAnswer, "unexpected form"),
        ({"items": [{"index": {}}]}, UnexpectedAnswer, "the answer lacks 'status'"),
        ({"items": [{"index": {"status": "200"}}]}, UnexpectedAnswer, "unexpected form"),
        ([], UnexpectedAnswer, "unexpected form"),
    ],
)
def test_bulk_requests(fake: Fake, client: Client, body: Any, kind: type[NeardupeError], words: str) -> None:
    fake.on("POST /_bulk", reply(body))
    with pytest.raises(kind, match=words):
        list(write(client, [Action("index", "i", "a", {})]))


@pytest.mark.parametrize("root", [[], [1], 5, {"version": []}, {"version": {"number": 5}}])
@pytest.mark.parametrize("headers", [JSON, ELASTIC])
def test_the_first_answer(start: Callable[..., Fake], root: Any, headers: dict[str, str]) -> None:
    fake = start()
    fake.on("GET /", reply(root, headers=headers))
    with pytest.raises(UnsupportedServer, match="not as Elasticsearch or OpenSearch"):
        connect(ConnectionSettings(fake.url))
