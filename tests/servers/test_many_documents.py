"""More documents than a page, or than a result window, on several shards: nothing is lost or read twice."""

from __future__ import annotations

import pytest
from server_tools import family, make_index, send, words

from es_neardupe import NearDupe, Settings
from es_neardupe.server.client import Client
from es_neardupe.server.search import count


@pytest.mark.parametrize("number", [1_600, pytest.param(12_000, marks=pytest.mark.long)])
def test_many_documents_on_four_shards(number: int, client: Client, index_name: str) -> None:
    """More than fit into the pages of most requests, and than the result window."""
    window = number // 4  # below the pages of every command
    settings = {"number_of_shards": 4, "number_of_replicas": 0, "max_result_window": window}
    make_index(client, index_name, settings=settings)
    similar = number // 8
    texts = [text for n in range(similar) for text in family(n, 2, length=60)]
    texts += [" ".join(words(f"alone{n}", 12)) for n in range(number - len(texts))]
    for start in range(0, number, 4000):
        part = enumerate(texts[start : start + 4000], start)
        send(client, [({"index": {"_index": index_name, "_id": f"d{n:05}"}}, {"text": text}) for n, text in part])
    NearDupe(index_name, client).init(Settings(("text",), threshold=0.75))

    dry = NearDupe(index_name, client).enrich(dry_run=True)
    enriched = NearDupe(index_name, client).enrich()
    assert (dry.writes.written, enriched.writes.written, enriched.scope.read) == (number,) * 3
    assert count(client, index_name, {"exists": {"field": "neardupe.scheme"}}) == number
    grouped = NearDupe(index_name, client).group()
    assert (grouped.scope.documents, grouped.writes.written, grouped.scope.unprocessed) == (number, similar, 0)
    assert (grouped.groups.count, grouped.groups.grouped, grouped.groups.alone) == (
        similar,
        2 * similar,
        number - 2 * similar,
    )
    expected = {frozenset((f"d{2 * n:05}", f"d{2 * n + 1:05}")) for n in range(similar)}
    assert {frozenset(member.id for member in one.members) for one in NearDupe(index_name, client).groups()} == expected
    assert {frozenset((one.a[1], one.b[1])) for one in NearDupe(index_name, client).pairs()} == expected
    assert NearDupe(index_name, client).enrich(check=True).writes.unchanged == number
    assert NearDupe(index_name, client).group().writes.written == 0
    assert NearDupe(index_name, client).audit(sample=100).recall.recall == 1
    assert NearDupe(index_name, client).stats().groups.count == similar
    assert NearDupe(index_name, client).clean().writes.written == number
    assert count(client, index_name, {"exists": {"field": "neardupe"}}) == 0
