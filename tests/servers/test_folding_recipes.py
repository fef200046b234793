"""The requests of docs/fold.md and docs/collapse.md: sent as an application sends them, with the described answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from server_tools import JSON, exists, new_name, plain_request, send

from es_neardupe import NearDupe, Settings
from es_neardupe.index.on_server.folding import pipeline_body, pipeline_name
from es_neardupe.records import Product
from es_neardupe.server.client import Client, path
from es_neardupe.server.search import knows

pytestmark = pytest.mark.product("opensearch")

DOCS = Path(__file__).parents[2] / "docs"
FIELD = "neardupe_group"


def recipes(page: str) -> dict[str, str]:
    """Title -> the request of each section of a page that has one."""
    sections = re.findall(r"^##* (.*?)\n(.*?)(?=^#|\Z)", (DOCS / page).read_text("utf-8"), re.M | re.S)
    found = {title: re.findall(r"```http\n(.*?)```", text, re.DOTALL) for title, text in sections}
    return {title: block for title, blocks in found.items() for block in blocks}


STORY = "1001"
BRIDGE = {STORY, "1002", "1003", "1004"}
"""A group."""

READERS, REQUESTS = recipes("fold.md"), recipes("collapse.md")
PIPELINE = READERS.pop("fold")


def make_news(client: Client, name: str) -> NearDupe:
    """The index of the examples, with a group field."""
    news = NearDupe(name, client)
    news.init(Settings(("body",), group_field=FIELD), create=True)
    news.load([str(DOCS / "articles.jsonl")])
    news.group()
    return news


def remove(client: Client, news: NearDupe) -> None:
    news.clean()
    client.request("DELETE", path(news.name))


@pytest.fixture(scope="module")
def folded(client: Client) -> Iterator[str]:
    """The index with its search pipeline, which no test changes."""
    if client.server.product is not Product.OPENSEARCH:
        pytest.skip("Elasticsearch has no search pipelines")
    news = make_news(client, new_name())
    news.fold("install")
    yield news.name
    remove(client, news)


@pytest.fixture(scope="module")
def news(client: Client) -> Iterator[str]:
    """The index without a search pipeline, with a vector in each document where the server has vectors."""
    index = make_news(client, new_name())
    if client.server.product is Product.ELASTICSEARCH:
        vector = {"type": "dense_vector", "dims": 2, "similarity": "l2_norm"}
        client.request("PUT", path(index.name, "_mapping"), body={"properties": {"vector": vector}})
        updates = ({"update": {"_index": index.name, "_id": str(1001 + n)}} for n in range(9))
        send(client, [(one, {"doc": {"vector": [n + 1, 0]}}) for n, one in enumerate(updates)])
    yield index.name
    remove(client, index)


def ask(client: Client, recipe: str, name: str) -> tuple[int, JSON]:
    """Send a request of the page to an index."""
    head, _, text = recipe.partition("\n")
    method, _, target = head.partition(" ")
    body = json.loads(text.replace('"news-copy"', f'"{name}-copy"').replace('"news"', f'"{name}"'))
    return plain_request(client, method, target.replace("/news/", f"/{name}/"), body)


def ids(answer: JSON) -> list[str]:
    return [hit["_id"] for hit in answer["hits"]["hits"]]


def hits(*expected: str, total: int = 5) -> Callable[[int, JSON], None]:
    """The documents of one group have nearly the same scores, which differ between servers."""

    def check(status: int, answer: JSON) -> None:
        found = [STORY if id in BRIDGE else id for id in ids(answer)]
        assert (status, found, answer["hits"]["total"]["value"]) == (200, list(expected), total)

    return check


def one_hit(status: int, answer: JSON) -> None:
    assert (status, len(ids(answer))) == (200, 1)


def five_hits(status: int, answer: JSON) -> None:
    assert (status, set(ids(answer))) == (200, {*BRIDGE, "1008"})


def aggregations(status: int, answer: JSON) -> None:
    assert {name: one["value"] for name, one in answer["aggregations"].items()} == {"documents": 9, "stories": 5}


def rejected(code: int, reason: str) -> Callable[[int, JSON], None]:
    def check(status: int, answer: JSON) -> None:
        assert (status, reason in json.dumps(answer)) == (code, True), answer

    return check


def inner_hits(status: int, answer: JSON) -> None:
    hits(STORY, "1008")(status, answer)
    inner = [hit["inner_hits"]["others"]["hits"] for hit in answer["hits"]["hits"]]
    assert [(len(one["hits"]), one["total"]["value"]) for one in inner] == [(1, 4), (1, 1)]


ANSWERS: dict[str, Callable[[int, JSON], None]] = {
    "An unchanged search": hits(STORY, "1008"),
    "A search of all documents": five_hits,
    "A sorted search": hits("1008", STORY),
    "Aggregations": aggregations,
    "The second page": hits(STORY),
    "A large page": rejected(400, "Result window is too large"),
    "A search without the group field": one_hit,
    "A search of some fields": hits(STORY, "1008"),
    "A search with its own collapse": rejected(500, "already collapsed"),
    "A search with its own collapse and inner hits": inner_hits,
}
CHANGING = {"An export by scroll", "Update by query", "Reindex"}


def test_every_reader_is_tested() -> None:
    assert set(READERS) == {*ANSWERS, *CHANGING}
    head, _, body = PIPELINE.partition("\n")
    assert head == f"PUT /_search/pipeline/{pipeline_name(FIELD, 5)}"
    assert json.loads(body) == pipeline_body(FIELD, 5)


@pytest.mark.parametrize("title", ANSWERS)
def test_reader(title: str, client: Client, folded: str) -> None:
    ANSWERS[title](*ask(client, READERS[title], folded))


def test_search_expands_groups_of_a_folded_index(client: Client, folded: str) -> None:
    found = NearDupe(folded, client).search("bridge harbour", expand=True)
    assert [(hit.near_copies, len(hit.members)) for hit in found.hits] == [(3, 3), (0, 0)]


def test_an_export_by_scroll(client: Client, folded: str) -> None:
    exported: list[str] = []
    status, page = ask(client, READERS["An export by scroll"], folded)
    while ids(page):
        exported += ids(page)
        status, page = plain_request(
            client, "POST", "/_search/scroll", {"scroll": "1m", "scroll_id": page["_scroll_id"]}
        )
        assert status == 200
    assert len(exported) == 4
    assert len(list(NearDupe(folded, client).server.pages(folded, {}, page_size=4))) == 3, "our own are complete"


def test_an_export_by_a_point_in_time(client: Client, folded: str) -> None:
    """As the page says of scrolls: each page is folded, unless each request says otherwise."""
    for bypass, complete in (("", False), ("?search_pipeline=_none", True)):
        target = f"/{folded}/_search/point_in_time?keep_alive=1m"
        pit = plain_request(client, "POST", target)[1]["pit_id"]
        exported: list[str] = []
        after: JSON = {}
        while True:
            body: JSON = {"size": 2, "pit": {"id": pit, "keep_alive": "1m"}, "sort": [{"_seq_no": "asc"}], **after}
            _, page = plain_request(client, "POST", f"/_search{bypass}", body)
            if not ids(page):
                break
            exported += ids(page)
            after = {"search_after": page["hits"]["hits"][-1]["sort"]}
        plain_request(client, "DELETE", "/_search/point_in_time", {"pit_id": [pit]})
        assert (len(set(exported)) == 9) is complete


def test_requests_that_change_documents(client: Client, index_name: str) -> None:
    if client.server.product is not Product.OPENSEARCH:
        pytest.skip("Elasticsearch has no search pipelines")
    make_news(client, index_name).fold("install")
    update, copy = READERS["Update by query"], READERS["Reindex"]
    _, answer = ask(client, update, index_name)
    assert (answer["total"], answer["updated"]) == (9, 5)
    _, answer = ask(client, update.replace("?refresh=true", "?refresh=true&search_pipeline=_none"), index_name)
    assert (answer["total"], answer["updated"]) == (9, 9)
    _, answer = ask(client, copy, index_name)
    assert (answer["total"], answer["created"]) == (9, 5)
    _, answer = ask(
        client, copy.replace('"index": "news"}', '"index": "news", "search_pipeline": "_none"}'), index_name
    )
    assert (answer["total"], answer["updated"]) == (9, 5), "it has no parameter for it"
    everything = {"query": {"match": {"body": "bridge"}}}
    _, answer = plain_request(client, "POST", f"/{index_name}/_delete_by_query?refresh=true", everything)
    assert answer["deleted"] < answer["total"]
    NearDupe(index_name, client).clean()
    assert exists(client, f"{index_name}-copy")


def every_story(status: int, answer: JSON) -> None:
    assert status == 200, answer
    assert len(ids(answer)) == 5
    assert ids(answer)[0] == STORY


SAID: dict[str, Callable[[int, JSON], None]] = {
    "Retrievers": hits(STORY, "1008"),
    "kNN search": every_story,
    "Hybrid search": every_story,
    "Search templates": hits(STORY, "1008"),
}
VECTORS = {"kNN search", "Hybrid search", "Retrievers"}


def test_every_request_is_tested() -> None:
    assert set(REQUESTS) == set(SAID)


@pytest.mark.parametrize(
    "title",
    [pytest.param(one, marks=pytest.mark.product("elasticsearch" if one in VECTORS else "opensearch")) for one in SAID],
)
def test_request(title: str, client: Client, news: str) -> None:
    if title in VECTORS and client.server.product is not Product.ELASTICSEARCH:
        pytest.skip("a request of Elasticsearch")
    if title == "Search templates" and not knows(client, "POST", path(news, "_search", "template"), _TEMPLATE):
        pytest.skip("Elasticsearch as installed by pip has no templates")
    status, answer = ask(client, REQUESTS[title], news)
    SAID[title](status, answer)
    if title == "kNN search":
        assert len(ids(ask(client, REQUESTS[title].replace('"k": 9', '"k": 4'), news)[1])) == 1


_TEMPLATE: JSON = {"source": {"query": {"match_all": {}}}}
