"""More documents than a result window, on several shards: nothing is lost or read twice."""

from __future__ import annotations

from server_tools import family, make_index, send, words

from es_neardupe import NearDupe, Settings
from es_neardupe.server.client import Client
from es_neardupe.server.search import count

NUMBER = 12_000
PAIRS = 1_500


def test_twelve_thousand_documents_on_four_shards(client: Client, index_name: str) -> None:
    make_index(client, index_name, settings={"number_of_shards": 4, "number_of_replicas": 0})
    texts = [text for n in range(PAIRS) for text in family(n, 2, length=60)]
    texts += [" ".join(words(f"alone{n}", 12)) for n in range(NUMBER - len(texts))]
    for start in range(0, NUMBER, 4000):
        part = enumerate(texts[start : start + 4000], start)
        send(client, [({"index": {"_index": index_name, "_id": f"d{n:05}"}}, {"text": text}) for n, text in part])
    NearDupe(index_name, client).init(Settings(("text",), threshold=0.75))

    dry = NearDupe(index_name, client).enrich(dry_run=True)
    enriched = NearDupe(index_name, client).enrich()
    assert (dry.writes.written, enriched.writes.written, enriched.scope.read) == (NUMBER,) * 3
    assert count(client, index_name, {"exists": {"field": "neardupe.scheme"}}) == NUMBER
    grouped = NearDupe(index_name, client).group()
    assert (grouped.scope.documents, grouped.writes.written, grouped.scope.unprocessed) == (NUMBER, NUMBER, 0)
    assert (grouped.groups.count, grouped.groups.grouped, grouped.groups.alone) == (
        PAIRS,
        2 * PAIRS,
        NUMBER - 2 * PAIRS,
    )
    expected = {frozenset((f"d{2 * n:05}", f"d{2 * n + 1:05}")) for n in range(PAIRS)}
    assert {frozenset(member.id for member in one.members) for one in NearDupe(index_name, client).groups()} == expected
    assert {frozenset((one.a[1], one.b[1])) for one in NearDupe(index_name, client).pairs()} == expected
    assert NearDupe(index_name, client).enrich(check=True).writes.unchanged == NUMBER
    assert NearDupe(index_name, client).group().writes.written == 0
    assert NearDupe(index_name, client).stats().groups.count == PAIRS
    assert NearDupe(index_name, client).clean().writes.written == NUMBER
    assert count(client, index_name, {"exists": {"field": "neardupe"}}) == 0
