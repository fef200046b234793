"""How many documents are requested at a time: by the sizes of those read before, and fewer after a rejection."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import fake_fixtures
import pytest
from fake_servers import AT_ONCE, ROOT, Fake, Reply, error, reply
from hypothesis import example, given
from hypothesis import strategies as st
from unit_tools import FakeClient

from es_neardupe.errors import AnswerTooLarge, DocumentTooLarge, RequestError
from es_neardupe.records import Action, Hit, Product, Reference
from es_neardupe.server import bulk, request_sizes
from es_neardupe.server.bulk import write
from es_neardupe.server.client import Client
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings
from es_neardupe.server.request_sizes import RequestSize, answer_limit, in_portions, request_limit, size_of
from es_neardupe.server.search import fetch_portions, find, search

MB = 1_000_000
BREAKER = "circuit_breaking_exception"


class Limited(FakeClient):
    """Documents of these sizes in MB; an answer of more than ``heap`` MB is rejected."""

    def __init__(self, sizes: list[int], *, heap: int) -> None:
        super().__init__({("i", f"d{k}"): {"size": size} for k, size in enumerate(sizes)})
        self.references = [("i", f"d{k}", None) for k in range(len(sizes))]
        self.heap = heap
        self.answered: list[int] = []

    def request(self, *words: Any, **more: Any) -> Any:
        answer = super().request(*words, **more)
        size = sum(doc["_source"]["size"] for doc in answer["docs"])
        if size > self.heap:
            raise RequestError("too large", status=429, type=BREAKER, reason="[parent] Data too large")
        self.answered.append(size)
        return answer


@pytest.fixture(autouse=True)
def _by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """The size of a document is a number in it."""
    measured = size_of

    def size(source: Any) -> int:
        return source["size"] * MB if isinstance(source, dict) and "size" in source else measured(source)

    monkeypatch.setattr(request_sizes, "size_of", size)


@given(
    st.lists(st.sampled_from([0, 0, 0, 1, 5, 10]), max_size=200),
    st.integers(10, 100),
    st.integers(1, 40),
)
def test_every_document_once_and_in_order(sizes: list[int], heap: int, documents: int) -> None:
    """Whatever fits into the memory of the server alone is read."""
    client = Limited(sizes, heap=heap)
    client.pace.documents = documents
    read = [hit for portion in fetch_portions(client, client.references, ["size"]) for hit in portion]
    assert [hit and hit.source["size"] for hit in read] == sizes
    assert max(client.requests, default=0) <= documents


@given(st.lists(st.integers(0, 10), min_size=1, max_size=200), st.integers(1, 40))
def test_only_documents_that_nothing_announced_make_a_large_request(sizes: list[int], documents: int) -> None:
    client = Limited(sizes, heap=10**6)
    client.pace.documents = documents
    list(fetch_portions(client, client.references, ["size"]))
    before = 16
    start = 0
    for number, size in zip(client.requests, client.answered, strict=True):
        assert number <= min(before, documents)
        assert size == sum(sizes[start : start + number])
        before, start = max(1, min(2 * number, 8 * number // size if size else 2 * number)), start + number


def test_short_documents_are_requested_in_large_numbers() -> None:
    client = Limited([0] * 3000, heap=1)
    list(fetch_portions(client, client.references, ["size"]))
    assert client.requests[:6] == [16, 32, 64, 128, 256, 500]


def test_one_document_that_is_too_large() -> None:
    client = Limited([0, 0, 30, 0], heap=20)
    words = r"^Document 'd2' of index i does not fit into memory \(\[parent\] Data too large\)\."
    with pytest.raises(DocumentTooLarge, match=words):
        list(fetch_portions(client, client.references, ["size"]))
    assert client.requests[-1] == 1
    skipped: list[Reference] = []

    def skip(reference: Reference, error: DocumentTooLarge) -> None:
        skipped.append(reference)

    read = chain.from_iterable(fetch_portions(client, client.references, ["size"], skip=skip))
    assert [hit and hit.id for hit in read] == ["d0", "d1", "d3"]
    assert skipped == [("i", "d2", None)]


def test_other_errors_are_not_retried_with_fewer() -> None:
    client = Limited([0] * 9, heap=20)
    client.sources.clear()
    with pytest.raises(KeyError):
        list(fetch_portions(client, client.references, ["size"]))
    assert client.requests == [9]


@pytest.mark.parametrize(
    ("nodes", "documents"),
    [
        ({"a": (512, ["data"])}, 16),
        ({"a": (4000, ["data", "master"]), "b": (1000, ["data_hot"]), "c": (500, ["master"])}, 31),
        ({"a": (500, ["cluster_manager"])}, 31),
        ({"a": (20, [])}, 1),
        ({}, 31),
        (None, 31),
    ],
)
def test_the_smallest_heap(nodes: dict[str, tuple[int, list[str]]] | None, documents: int) -> None:
    class Cluster(FakeClient):
        def request(self, method: str, path: str, *, params: Any = None, body: Any = None) -> Any:
            assert (method, path) == ("GET", "/_nodes/jvm")
            if nodes is None:
                raise RequestError("not permitted", status=403)
            return {
                "nodes": {
                    name: {"roles": roles, "jvm": {"mem": {"heap_max_in_bytes": heap * MB}}}
                    for name, (heap, roles) in nodes.items()
                }
            }

    client = Cluster()
    client.pace.documents = None
    assert RequestSize.of_documents(client, 1000).maximum == documents
    assert client.pace.documents == documents


@given(
    st.recursive(
        st.text() | st.integers() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
@example("é" * 20)
@example({"text": ["漢字" * 20]})
def test_the_size_is_at_least_that_of_the_texts(value: Any) -> None:
    assert size_of(value) >= sum(len(text.encode()) for text in texts_in(value))


def texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for one in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
        yield from texts_in(one)


def test_deeply_nested_values_have_a_size() -> None:
    value: Any = "x" * MB
    for _ in range(5000):
        value = [value]
    assert MB < size_of(value) < 2 * MB


@given(st.lists(st.integers(0, 10), max_size=60), st.integers(1, 20))
def test_portions(sizes: list[int], maximum: int) -> None:
    hits = [Hit("i", f"d{k}", None, 1, 1, {"size": size}) for k, size in enumerate(sizes)]
    portions = list(in_portions(hits, maximum))
    assert [hit for portion in portions for hit in portion] == hits
    for portion in portions:
        assert 0 < len(portion) <= maximum
        assert sum(hit.source["size"] for hit in portion[:-1]) <= 8


@given(st.lists(st.integers(0, 12), max_size=60))
def test_bulk_requests_are_bounded_by_the_documents_that_they_update(sizes: list[int]) -> None:
    client = FakeClient()
    actions = [Action("update", "i", f"d{k}", {"doc": {}}, document_bytes=size * MB) for k, size in enumerate(sizes)]
    assert [outcome.action for outcome in write(client, actions, workers=1)] == actions
    numbers = [[int(head["update"]["_id"][1:]) for head, _ in request] for request in client.bulks]
    assert all(len(some) == 1 or sum(sizes[k] for k in some) * MB < bulk.MAX_BYTES for some in numbers)


# ---- With a connection


start = fake_fixtures.start


@pytest.fixture(params=Product, ids=lambda one: one.value)
def fake(request: pytest.FixtureRequest, start: Callable[..., Fake]) -> Fake:
    made = start()
    made.on("GET /", ROOT[request.param])
    for target in ("POST /i/_pit", "POST /i/_search/point_in_time", "DELETE /_pit", "DELETE /_search/point_in_time"):
        made.on(target, reply({"id": "p", "pit_id": "p"}))
    return made


@pytest.fixture
def client(fake: Fake) -> Iterator[Client]:
    opened = connect(ConnectionSettings(url=fake.url, retries=AT_ONCE))
    yield opened
    opened.close()


def page(*ids: str, text: str = "") -> Reply:
    hits = [{"_index": "i", "_id": id, "sort": [1, 2], "_source": {"text": text}} for id in ids]
    return reply({"hits": {"hits": hits}})


def asked(fake: Fake, request: str) -> list[int]:
    return [json.loads(body)["size"] for seen, _, body in fake.seen if seen == request]


def test_a_page_that_the_server_rejects_is_requested_in_halves(client: Client, fake: Fake) -> None:
    """At once: the same page would be rejected again."""
    rejected = error(429, BREAKER, "[parent] Data too large")
    fake.on("POST /_search", rejected, rejected, page("a", "b", "c", "d"), page("e"))
    assert [[hit.id for hit in one] for one in client.pages("i", {}, page_size=None)] == [["a", "b", "c", "d"], ["e"]]
    assert asked(fake, "POST /_search") == [16, 8, 4, 8]


def test_a_page_of_one_document_is_requested_again(client: Client, fake: Fake) -> None:
    client.pace.documents, client.pace.measures = 1, False
    fake.on("POST /_search", error(429, BREAKER, "[parent] Data too large"), page("a"), page())
    assert [[hit.id for hit in one] for one in client.pages("i", {}, page_size=None)] == [["a"]]
    assert asked(fake, "POST /_search") == [1, 1, 1]


def test_a_page_that_is_too_large_for_the_client(client: Client, fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_sizes, "_MAX_BYTES", 10_000)
    client.pace.documents, client.pace.measures = 2, False
    fake.on("POST /_search", page("a", "b", text="x" * 6000), page("a", text="x" * 20_000), page("b"), page())
    assert [[hit.id for hit in one] for one in client.pages("i", {}, page_size=None)] == [["a"], ["b"]]
    assert asked(fake, "POST /_search") == [2, 1, 2]


def test_a_limit_ends_with_its_block(client: Client, fake: Fake) -> None:
    fake.on("POST /i/_search", page("a", text="x" * 1000))
    with answer_limit(1000), pytest.raises(AnswerTooLarge, match="larger than 1,000 bytes"):
        search(client, "i", {})
    assert search(client, "i", {})["hits"]


def test_a_search_by_ids_is_sent_in_halves(client: Client, fake: Fake) -> None:
    fake.on("POST /i/_search", *[error(429, BREAKER, "[parent] Data too large")] * 6, page("a", "b"), page("c"))
    assert [hit["_id"] for hit in find(client, "i", "abcd", ["text"])] == ["a", "b", "c"]
    assert asked(fake, "POST /i/_search") == [4] * 6 + [2, 2]


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"nodes": {}},
        {"nodes": {"a": {"http": {}}}},
        RequestError("not permitted", status=403),
        [],
    ],
)
def test_the_limit_of_a_server_that_does_not_report_it(answer: Any) -> None:
    assert request_limit(_Reporting(answer)) == 104_857_600


def test_the_limit_is_that_of_the_smallest_node_and_is_read_once() -> None:
    client = _Reporting(
        {"nodes": {name: {"http": {"max_content_length_in_bytes": size}} for name, size in (("a", 9), ("b", 7))}}
    )
    assert [request_limit(client), request_limit(client)] == [7, 7]
    assert client.paths == ["/_nodes/http"]


class _Reporting(FakeClient):
    """Answers one request."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self._answer = answer
        self.pace.request_bytes = None
        self.paths: list[str] = []

    def request(self, method: str, path: str, *, params: Any = None, body: Any = None) -> Any:
        self.paths.append(path)
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer
