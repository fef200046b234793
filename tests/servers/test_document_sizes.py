"""Sizes of documents, measured by a script of a real server."""

from __future__ import annotations

import json
import random
from itertools import accumulate
from typing import Any

import pytest
from server_tools import JSON, make_index, put, wait_until, words

from es_neardupe.records import Product
from es_neardupe.server import document_sizes
from es_neardupe.server.client import Client, path
from es_neardupe.server.document_sizes import number_that_fits

pytestmark = pytest.mark.product("opensearch")

ANY = {"n": {"type": "integer"}, "o": {"type": "object", "enabled": False}}

DEEP: Any = ["in", ["many", {"lists": [["of"], "lists"]}]]

SOURCES: list[JSON] = [
    {},
    {"o": "a" * 50_000},
    {"o": "\u00e4\u4e2d\U0001f600" * 20_000},
    {"o": {f"a long name of a field {k}": k for k in range(2000)}},
    {"o": [None, True, 1, -1.5, 10**30, "text", {"x": ["y" * 1000]}] * 500},
    {"o": DEEP},
    {"o": "\ud800" * 3000},
]


@pytest.fixture
def search(client: Client, index_name: str) -> JSON:
    """The search of a page of ``index_name``."""
    opening = {Product.ELASTICSEARCH: ("_pit",), Product.OPENSEARCH: ("_search", "point_in_time")}
    make_index(client, index_name, ANY, settings={"number_of_shards": 1, "sort.field": "n"})
    sources = [source | {"n": number} for number, source in enumerate(SOURCES)]
    put(client, index_name, {f"d{source['n']}": source for source in sources})
    endpoint = path(index_name, *opening[client.server.product])
    opened = client.request("POST", endpoint, params={"keep_alive": "1m"})
    return {
        "size": 100,
        "pit": {"id": opened.get("pit_id") or opened["id"], "keep_alive": "1m"},
        "sort": ["_doc"],
        "_source": ["o"],
        "seq_no_primary_term": True,
    }


def wait_for_number(client: Client, search: JSON, maximum: int, number: int) -> None:
    """Wait until so many documents fit: none do while the node is short of memory, which other tests use."""
    wait_until(lambda: number_that_fits(client, search, maximum) == number)


@pytest.mark.product("each")
def test_sizes(client: Client, search: JSON, monkeypatch: pytest.MonkeyPatch) -> None:
    """At least the bytes of each document as UTF-8, and not much more than three times as many."""
    if client.server.product is Product.ELASTICSEARCH:
        assert number_that_fits(client, search, 10**9) == 0
        return
    monkeypatch.setattr(client.pace, "measures", True)
    read = document_sizes._size
    sizes: list[int] = []

    def noted(*given: Any) -> int:
        sizes.append(read(*given))
        return sizes[-1]

    with monkeypatch.context() as patched:
        patched.setattr(document_sizes, "_size", noted)
        wait_for_number(client, search, 10**9, len(SOURCES))
    sizes = sizes[-len(SOURCES) :]  # those of the last answer
    for source, found in zip(SOURCES, sizes, strict=True):
        size = len(json.dumps(source | {"n": 1}, ensure_ascii=False).encode("utf-8", "surrogatepass"))
        assert size <= found <= 3 * size + 24 * 5000
    for number, maximum in enumerate(accumulate(sizes), 1):
        wait_for_number(client, search, maximum, number)
        assert number_that_fits(client, search, maximum - 1) < number


def test_work_is_bounded(client: Client, search: JSON, monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents with too many values, and those after three times the maximum, are not measured."""
    monkeypatch.setattr(client.pace, "measures", True)
    wait_for_number(client, search, 10**9, len(SOURCES))
    monkeypatch.setattr(document_sizes, "_STEPS", 1000)
    wait_for_number(client, search, 10**9, 3)


@pytest.mark.parametrize("shards", [1, 3])
def test_pages(client: Client, index_name: str, shards: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every document once, and large ones in small pages."""
    make_index(client, index_name, settings={"number_of_shards": shards})
    rng = random.Random(1)
    texts = {f"d{k}": {"text": " ".join(words(k, rng.choice([10, 100, 20_000])))} for k in range(150)}
    put(client, index_name, texts)
    monkeypatch.setattr(client.pace, "documents", 4)
    monkeypatch.setattr(client.pace, "counts", False)

    def has_large_pages() -> bool:
        monkeypatch.setattr(client.pace, "measures", True)
        read = list(client.pages(index_name, {"query": {"match_all": {}}}, page_size=None))
        assert sorted(hit.id for one in read for hit in one) == sorted(texts)
        for one in read:
            assert len(one) <= 4 or sum(len(hit.source["text"]) for hit in one) < 3_000_000
        return max(map(len, read)) > 4

    if client.server.version >= (3, 3, 0):
        wait_until(has_large_pages)  # there are none while the node is short of memory, which other tests use
    else:
        assert not has_large_pages()  # all pages of a scroll have the same size
