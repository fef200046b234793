"""Each request for the documents of an index goes to it; no server is needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from unit_tools import FakeClient

from es_neardupe.records import Action, Hit
from es_neardupe.server.documents import Documents

ALL: dict[str, Any] = {"match_all": {}}


class Recording(FakeClient):
    """Remembers where requests go."""

    def __init__(self) -> None:
        super().__init__({("news", "1"): {"title": "a"}})
        self.sent: list[str] = []

    def request(self, method: str, path: str, *, params: Any = None, body: Any = None) -> Any:
        self.sent.append(f"{method} {path}")
        if "aggs" in (body or {}):
            return {"aggregations": {"values": {"doc_count": 3, "buckets": [{"key": {"group": "g"}}]}}}
        return super().request(method, path, params=params, body=body)

    def pages(self, *args: Any, **options: Any) -> Iterator[list[Hit]]:
        self.sent.append(f"pages of {args[0]} by {options['page_size']}")
        return iter([])


@pytest.mark.parametrize(
    ("ask", "answer", "sent"),
    [
        (lambda news: news.search({"query": ALL})["hits"]["hits"], [], "POST /news/_search"),
        (lambda news: news.first_hits({}, 5), [], "POST /news/_search"),
        (lambda news: news.count(), 0, "POST /news/_search"),
        (lambda news: news.counts(values=ALL), {"values": 3}, "POST /news/_search"),
        (lambda news: list(news.buckets(ALL, {"group": "group"})), [{"group": "g"}], "POST /news/_search"),
        (lambda news: list(news.pages({}, page_size=7)), [], "pages of news by 7"),
        (lambda news: [hit and hit.id for hit in news.fetch([("news", "1", None)], ["title"])], ["1"], "POST /_mget"),
        (lambda news: news.refresh(), None, "POST /news/_refresh"),
        (lambda news: news.refresh_if_allowed(), None, "POST /news/_refresh"),
    ],
)
def test_requests(ask: Callable[[Documents], Any], answer: Any, sent: str) -> None:
    client: Any = Recording()
    assert ask(Documents(client, "news")) == answer
    assert client.sent[-1] == sent


def test_writes() -> None:
    client: Any = FakeClient()
    (outcome,) = Documents(client, "news").write([Action("index", "news", "1", {"title": "a"})], workers=1)
    assert outcome.done
    assert client.bulks == [[({"index": {"_index": "news", "_id": "1"}}, {"title": "a"})]]
