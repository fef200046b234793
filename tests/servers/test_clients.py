"""Clients on real servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from server_tools import put

from es_neardupe.errors import NotFound, RequestError, SettingsError
from es_neardupe.records import Hit, Product
from es_neardupe.server.client import Client, path
from es_neardupe.server.connect import connect, wrap
from es_neardupe.server.login.settings import ConnectionSettings

pytestmark = pytest.mark.server

COUNT = 5000


def fill(client: Client, index: str, count: int, shards: int = 4) -> None:
    settings = {"number_of_shards": shards, "number_of_replicas": 0}
    client.request("PUT", path(index), body={"settings": settings})
    lines = []
    for number in range(count):
        action: dict[str, Any] = {"_index": index, "_id": str(number)}
        if number % 10 == 0:
            action["routing"] = "r"
        lines += [json.dumps({"index": action}), json.dumps({"n": number, "even": number % 2 == 0})]
    body = "\n".join([*lines, ""]).encode()
    answer = client.bulk(body, params={"filter_path": "errors,items.*.error", "refresh": "true"})
    assert answer["errors"] is False


def numbers(pages: Iterator[list[Hit]]) -> list[int]:
    return [hit.source["n"] for page in pages for hit in page]


def open_contexts(client: Client, index: str) -> int:
    found: int = client.request("GET", path(index, "_stats", "search"))["_all"]["total"]["search"]["open_contexts"]
    return found


@pytest.mark.product("each")
def test_reads_each_document_once(client: Client, index_name: str) -> None:
    fill(client, index_name, COUNT)
    assert sorted(numbers(client.pages(index_name, {}, page_size=333))) == list(range(COUNT))
    halves = client.pages(index_name, {"query": {"term": {"even": True}}}, page_size=333)
    assert sorted(numbers(halves)) == list(range(0, COUNT, 2))


@pytest.mark.product("each")
def test_what_a_hit_holds(client: Client, index_name: str) -> None:
    fill(client, index_name, 20)
    pages = client.pages(index_name, {"_source": ["even"], "docvalue_fields": ["n"]}, page_size=7)
    hits = {hit.id: hit for page in pages for hit in page}
    assert hits["10"].routing == "r"
    assert hits["11"].routing is None
    assert dict(hits["11"].source) == {"even": False, "n": [11]}
    assert hits["11"].index == index_name
    assert (hits["11"].primary_term, type(hits["11"].seq_no)) == (1, int)


@pytest.mark.parametrize("slices", [1, 3, 8])
@pytest.mark.product("each")
def test_slices_are_disjoint_and_complete(client: Client, index_name: str, slices: int) -> None:
    fill(client, index_name, 1000)
    found: list[int] = []
    for number in range(slices):
        found += numbers(client.pages(index_name, {}, slice=(number, slices), page_size=100))
        # Writes move documents within the index, but not to another slice.
        put(client, index_name, {str(n): {"n": n} for n in range(1000) if n % 10})
    assert sorted(found) == list(range(1000))


@pytest.mark.product("each")
def test_a_page_that_is_exactly_full(client: Client, index_name: str) -> None:
    fill(client, index_name, 10)
    assert [len(page) for page in client.pages(index_name, {}, page_size=10)] == [10]
    assert [len(page) for page in client.pages(index_name, {}, page_size=5)] == [5, 5]


@pytest.mark.product("each")
def test_reads_as_of_one_moment(client: Client, index_name: str) -> None:
    fill(client, index_name, 100)
    pages = client.pages(index_name, {}, page_size=10)
    seen = [hit.id for hit in next(pages)]
    client.request("POST", path(index_name, "_doc"), params={"refresh": True}, body={"n": -1, "even": False})
    client.request("DELETE", path(index_name, "_doc", "99"), params={"refresh": True})
    assert sorted(int(i) for i in seen + [hit.id for page in pages for hit in page]) == list(range(100))


@pytest.mark.product("each")
def test_stopping_early_gives_the_snapshot_back(client: Client, index_name: str) -> None:
    fill(client, index_name, 100)
    before = open_contexts(client, index_name)
    pages = client.pages(index_name, {}, page_size=10)
    next(pages)
    assert open_contexts(client, index_name) > before
    pages.close()  # type: ignore[attr-defined]  # a generator
    assert open_contexts(client, index_name) == before


@pytest.mark.product("each")
def test_reads_aliases_lists_and_patterns(client: Client, index_name: str) -> None:
    fill(client, index_name, 10)
    alias = f"{index_name}-alias"
    client.request("PUT", path(index_name, "_alias", alias))
    for name in (alias, f"{index_name}*", f"{index_name},{alias}"):
        assert sorted(numbers(client.pages(name, {}))) == list(range(10))


@pytest.mark.parametrize("shard", [None, 0])
@pytest.mark.product("each")
def test_reads_each_document_of_several_indices_once(client: Client, index_name: str, shard: int | None) -> None:
    """Shards of the same number are equal in ``_shard_doc`` on OpenSearch."""
    names = [f"{index_name}-{name}" for name in "abc"]
    for name in names:
        fill(client, name, 60, shards=2)

    def read(size: int, part: tuple[int, int] | None = None) -> list[tuple[str, str]]:
        pages = client.pages(f"{index_name}-*", {}, page_size=size, shard=shard, slice=part)
        return sorted((hit.index, hit.id) for page in pages for hit in page)

    every = read(1000)
    assert len(every) == 180 or (shard == 0 and 0 < len(every) < 180)
    for size in (1, 7, 16):
        assert read(size) == every
    assert sorted(one for part in range(3) for one in read(3, (part, 3))) == every


@pytest.mark.product("each")
def test_an_empty_index_and_a_pattern_of_nothing(client: Client, index_name: str) -> None:
    client.request("PUT", path(index_name))
    assert list(client.pages(index_name, {})) == []
    assert list(client.pages(f"{index_name}-nothing-*", {})) == []


@pytest.mark.product("each")
def test_missing_index(client: Client, index_name: str) -> None:
    with pytest.raises(NotFound, match="index_not_found"):
        next(client.pages(index_name, {}))
    with pytest.raises(NotFound) as caught:
        client.request("POST", path(index_name, "_search"), body={})
    assert caught.value.type == "index_not_found_exception"
    with pytest.raises(NotFound):
        client.request("HEAD", path(index_name))


@pytest.mark.product("each")
def test_a_query_that_cannot_be_run(client: Client, index_name: str) -> None:
    fill(client, index_name, 1)
    body = {"query": {"range": {"n": {"gte": "abc"}}}}
    with pytest.raises(RequestError, match="abc") as caught:
        client.request("POST", path(index_name, "_search"), body=body)
    assert caught.value.status == 400


@pytest.mark.parametrize("id", ["a/b", "../../x", "..", ".", "a b", "ä😀", "%2F", "a?b#c", "+", "a,b*", "-", "\n"])
def test_odd_ids(client: Client, index_name: str, id: str) -> None:
    client.request("PUT", path(index_name, "_doc", id), params={"refresh": True}, body={"n": 1})
    assert client.request("GET", path(index_name, "_doc", id))["_id"] == id
    assert [hit.id for page in client.pages(index_name, {}) for hit in page] == [id]


def test_values_come_back_as_they_were(client: Client, index_name: str) -> None:
    sent = {"text": "lone \ud800, ä😀", "big": 2**53 + 1, "small": 5e-324, "third": 1 / 3}
    mapping = {"enabled": False}
    client.request("PUT", path(index_name), body={"mappings": mapping})
    client.request("PUT", path(index_name, "_doc", "1"), body=sent)
    back = client.request("GET", path(index_name, "_doc", "1"))["_source"]
    assert back == sent
    assert type(back["big"]) is int


def test_many_threads(client: Client, index_name: str) -> None:
    fill(client, index_name, 100)

    def count(_: int) -> int:
        return int(client.request("GET", path(index_name, "_count"))["count"])

    with ThreadPoolExecutor(24) as pool:
        assert set(pool.map(count, range(200))) == {100}


@pytest.fixture
def driver(client: Client) -> Iterator[Any]:
    if client.server.product is Product.OPENSEARCH:
        from opensearchpy import OpenSearch

        driver: Any = OpenSearch(client.url)
    else:
        from elasticsearch import Elasticsearch

        driver = Elasticsearch(client.url)
    yield driver
    driver.close()


@pytest.mark.product("each")
def test_wraps_a_driver(client: Client, driver: Any, index_name: str) -> None:
    wrapped = wrap(driver)
    assert wrapped.server == client.server
    assert wrapped.url == client.url
    fill(wrapped, index_name, 50)
    assert sorted(numbers(wrapped.pages(index_name, {}, page_size=9))) == list(range(50))
    wrapped.close()
    assert wrapped.request("GET", path(index_name, "_count"))["count"] == 50  # a wrapped client is not closed


@pytest.mark.parametrize("owned", [True, False])
@pytest.mark.product("each")
def test_a_closed_client(client: Client, driver: Any, owned: bool) -> None:
    """Fails at once, without the retries that follow a lost connection."""
    used = connect(ConnectionSettings(client.url)) if owned else wrap(driver)
    assert used.request("GET", "/_cluster/health")["status"]
    (used if owned else driver).close()
    with pytest.raises(SettingsError, match="this client is closed"):
        used.request("GET", "/_cluster/health")


def test_connects_by_url(client: Client) -> None:
    again = connect(ConnectionSettings(client.url))
    assert again.server == client.server
    again.close()
