"""Reading in slices: the same results as without, and nothing is left open when a run ends early."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest
from server_tools import JSON, family, living, make_index, ours, put, words

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import RequestError
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
    client.request("DELETE", path(f"{index}*"), params={"expand_wildcards": "all"})
    return found


@pytest.mark.parametrize("sidecar", [False, True], ids=["inline", "sidecar"])
def test_the_order_of_reading_changes_no_result(client: Client, index_name: str, *, sidecar: bool) -> None:
    without = results(client, index_name, 1, sidecar=sidecar)
    assert without["group"].groups.count == 6
    assert without["enrich"].writes.written == 41
    for slices in (2, 5):
        assert results(client, index_name, slices, sidecar=sidecar) == without


def test_a_run_that_ends_early_leaves_nothing_open(client: Client, index_name: str) -> None:
    news = filled(client, index_name)

    def interrupted(stage: str, done: int, total: int | None) -> None:
        if stage == "fingerprinting" and done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        news.enrich(slices=SHARDS, progress=interrupted)
    assert [one.name for one in threading.enumerate() if one.name.startswith("reader")] == []
    stats = client.request("GET", path(index_name, "_stats", "search"))
    assert stats["_all"]["total"]["search"]["open_contexts"] == 0
    assert news.enrich().writes.written == 41


def test_an_error_in_one_slice_ends_the_run(client: Client, index_name: str) -> None:
    news = filled(client, index_name)
    wrong = {"script": {"script": "doc['missing'].value > 0"}}
    with pytest.raises(RequestError):
        news.enrich(slices=SHARDS, query=wrong)
    assert [one.name for one in threading.enumerate() if one.name.startswith("reader")] == []
