"""Reading in slices: the same results as without, and nothing is left open when a run ends early."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from server_tools import JSON, delete_all, family, living, make_index, ours, put, words

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import RequestError
from es_neardupe.records import Hit
from es_neardupe.server.client import Client, path

pytestmark = pytest.mark.server

SHARDS = 3


def filled(client: Client, index: str, *, sidecar: bool = False) -> NearDupe:
    """An index of several shards with near-duplicates, exact copies of some of them, and other texts."""
    make_index(client, index, settings={"number_of_shards": SHARDS, "number_of_replicas": 0})
    near = [family(number, 4, length=60) for number in range(6)]
    texts = [
        *(text for texts in near for text in texts),
        *near[0],
        *near[1],
        *(" ".join(words(n, 60)) for n in range(9)),
    ]
    put(client, index, {f"d{number:02}": {"text": text} for number, text in enumerate(texts)})
    news = NearDupe(index, client)
    news.init(Settings(("text",)), sidecar=sidecar)
    return news


def comparable(report: Any) -> Any:
    return replace(report, seconds=0)


def results(client: Client, index: str, slices: int, *, sidecar: bool) -> JSON:
    """Everything that a user sees after ``enrich`` and ``group``."""
    news = filled(client, index, sidecar=sidecar)
    found: JSON = {"enrich": comparable(news.enrich(slices=slices)), "group": comparable(news.group(slices=slices))}
    found["again"] = comparable(news.group(slices=slices, rebuild=True))
    found["registry"] = sorted(
        (one.group, one.size, one.principal, one.min_similarity) for one in living(client, index)
    )
    found["fields"] = ours(client, index)
    found["pairs"] = list(news.pairs(slices=slices))
    found["audit"] = comparable(news.audit(slices=slices))
    delete_all(client, index)
    return found


def nothing_open(client: Client, index: str) -> bool:
    """Whether neither threads nor searches are left of a run."""
    stats = client.request("GET", path(index, "_stats", "search"))
    threads = [one for one in threading.enumerate() if one.name.startswith("reader")]
    return not threads and stats["_all"]["total"]["search"]["open_contexts"] == 0


@pytest.mark.parametrize(
    ("sidecar", "numbers"),
    [
        pytest.param(False, (2, 5), id="inline"),
        pytest.param(True, (5,), id="sidecar"),
    ],
)
def test_the_order_of_reading_changes_no_result(
    client: Client, index_name: str, *, sidecar: bool, numbers: tuple[int, ...]
) -> None:
    without = results(client, index_name, 1, sidecar=sidecar)
    assert without["group"].groups.count == 6
    assert without["enrich"].writes.written == 41
    for slices in numbers:
        assert results(client, index_name, slices, sidecar=sidecar) == without


def test_a_run_that_ends_early_leaves_nothing_open(client: Client, index_name: str) -> None:
    news = filled(client, index_name)

    def interrupted(stage: str, done: int, total: int | None) -> None:
        if stage == "fingerprinting" and done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        news.enrich(slices=SHARDS, progress=interrupted)
    assert nothing_open(client, index_name)
    assert news.enrich().writes.written == 41


def test_an_error_in_one_slice_ends_the_run(client: Client, index_name: str) -> None:
    """The second page of one shard fails, while the others still have pages."""
    news = filled(client, index_name)
    pages = type(client).pages

    def failing(self: Client, index: str, body: Any, **options: Any) -> Iterator[list[Hit]]:
        for number, page in enumerate(pages(self, index, body, **{**options, "page_size": 2})):
            if number and options["shard"] == 1:
                raise RequestError("rejected", status=400)
            yield page

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(client), "pages", failing)
        with pytest.raises(RequestError, match="rejected"):
            news.enrich(slices=SHARDS)
    assert nothing_open(client, index_name)
    current = news.enrich().scope.current
    assert current is not None
    assert current < 41
    assert news.stats().scope.unprocessed == 0
