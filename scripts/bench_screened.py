"""Rate of writing with ``screened`` compared with ``fingerprinted``, on a local node, and the pairs that it finds.

    python scripts/bench_screened.py [--documents 20000] [--actions 10000] [--server elasticsearch] [--words 100]

10,000 actions are sent by the bulk helper of the driver to an index of 20,000 made-up texts. 15 % of them are
near-copies of texts of the index, and 15 % of texts of earlier actions. They are written with ``fingerprinted`` and
with ``screened`` in turn, into copies of the same index. Then all pairs that share a band key are compared by
independent code, and the matches that ``screened`` has reported must be exactly those of 0.8 and more.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import elasticsearch
import elasticsearch.helpers
import opensearchpy
import opensearchpy.helpers
from bench_tools import _VOCABULARY, drop_index, timed, wait_for_merges

from es_neardupe import NearDupe, Settings, features, fingerprints
from es_neardupe.incoming.matches import Match, OtherMatch, ScreenReport
from es_neardupe.local_server import control
from es_neardupe.records import Product
from es_neardupe.server.client import Client
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings
from es_neardupe.server.search import refresh

INDEX = "bench-screened"
SETTINGS = Settings(("text",))


def main() -> None:
    """Measure, check and print."""
    gc.freeze()
    gc.set_threshold(50_000)
    arguments = parse_arguments()
    client = connect(ConnectionSettings(url=arguments.url or control.start(arguments.server, say=print).url))
    stored, sent = texts(arguments.documents, arguments.actions, arguments.words)
    print(f"{client.server}, {len(sent):,} actions of {arguments.words} words, {len(stored):,} documents in the index")
    seconds: dict[str, list[float]] = {}
    try:
        for _ in range(arguments.rounds):
            for way in ("fingerprinted", "screened"):
                prepare(client, stored)
                took, report = timed(partial(send, client, way, sent))
                seconds.setdefault(way, []).append(took)
                print(f"{way:>14}: {len(sent) / took:7,.0f} actions/s")
    finally:
        drop_index(client, INDEX)
        client.close()
    plain, compared = (statistics.median(seconds[way]) for way in ("fingerprinted", "screened"))
    print(f"screened: {len(sent) / compared:,.0f} actions/s, {plain / compared:.2f} of the rate of fingerprinted")
    print(vars(report.counts))
    check(stored, sent, report)


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--server", default="opensearch", help="opensearch or elasticsearch")
    parser.add_argument("--url", help="a running server instead")
    parser.add_argument("--documents", type=int, default=20_000, help="size of the index (default 20000)")
    parser.add_argument("--actions", type=int, default=10_000, help="how many are sent (default 10000)")
    parser.add_argument("--words", type=int, default=100, help="words of a text (default 100)")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each (default 3)")
    return parser.parse_args()


def texts(documents: int, actions: int, length: int) -> tuple[dict[str, str], dict[str, str]]:
    """The texts of the index, and those to send."""
    chance = random.Random(1)
    stored = {f"s{number}": " ".join(chance.choices(_VOCABULARY, k=length)) for number in range(documents)}
    sent: dict[str, str] = {}
    originals, earlier = list(stored.values()), list[str]()
    for number in range(actions):
        kind = chance.random()
        source = originals if kind < 0.15 else earlier if kind < 0.3 and earlier else None
        words = chance.choice(source).split() if source else chance.choices(_VOCABULARY, k=length)
        if source:
            for place in chance.sample(range(length), chance.choice([0, 1, 1, 2])):
                words[place] = f"changed{number}"
        sent[f"n{number}"] = " ".join(words)
        earlier.append(sent[f"n{number}"])
    return stored, sent


def prepare(client: Client, stored: Mapping[str, str]) -> None:
    """A new index with the stored texts, at rest."""
    drop_index(client, INDEX)
    news = NearDupe(INDEX, client)
    news.init(SETTINGS, create=True)
    bulk(client, news.fingerprinted(actions_of(stored)))
    refresh(client, INDEX)
    wait_for_merges(client, INDEX)


def send(client: Client, way: str, sent: Mapping[str, str]) -> ScreenReport:
    """Write the texts."""
    news, report = NearDupe(INDEX, client), ScreenReport()
    actions = actions_of(sent)
    bulk(client, news.screened(actions, report=report) if way == "screened" else news.fingerprinted(actions))
    return report


def actions_of(some: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Bulk actions."""
    return ({"_index": INDEX, "_id": id, "_source": {"text": text}} for id, text in some.items())


def bulk(client: Client, actions: Iterable[Mapping[str, Any]]) -> None:
    """Send actions by the helper of the driver."""
    if client.server.product is Product.ELASTICSEARCH:
        with elasticsearch.Elasticsearch(client.url) as driver:
            elasticsearch.helpers.bulk(driver, map(dict, actions))
    else:
        with opensearchpy.OpenSearch(client.url) as other:
            opensearchpy.helpers.bulk(other, actions)


def check(stored: Mapping[str, str], sent: Mapping[str, str], report: ScreenReport) -> None:
    """Compare the reported matches with all pairs that share a key, by brute force."""
    both = {**stored, **sent}
    keys = [one.bands for one in fingerprints(list(both.values()), SETTINGS.scheme)]
    sets = dict(zip(both, (set(one.tolist()) for one in features(list(both.values()), SETTINGS.shingle)), strict=True))
    by_key: dict[str, list[str]] = {}
    expected: dict[tuple[str, str], float] = {}
    for id, bands in zip(both, keys, strict=True):
        others = {other for key in bands for other in by_key.get(key, ())} if id in sent else ()
        for other in others:
            similarity = len(sets[id] & sets[other]) / len(sets[id] | sets[other])
            if similarity >= 0.8:
                expected[id, other] = similarity
        for key in bands:
            by_key.setdefault(key, []).append(id)
    found: dict[tuple[str, str], float] = {}
    for one in report.matches:
        named: list[Match | OtherMatch] = [one.match, *one.match.others]
        for match in named:
            for pair in [
                pair for pair in ((one.id, other) for other in both_equal(both, match.id)) if pair in expected
            ]:
                found[pair] = match.similarity
            assert abs(found.get((one.id, match.id), -1) - match.similarity) < 1e-12, (one.id, match)
    assert found.keys() == expected.keys(), f"{len(expected.keys() - found.keys())} of {len(expected)} pairs missed"
    print(f"all {len(expected):,} pairs of {len({one for one, _ in expected}):,} actions found, none is wrong")


_EQUAL: dict[str, list[str]] = {}


def both_equal(both: Mapping[str, str], id: str) -> list[str]:
    """The documents with the same text: of these, one is named."""
    if not _EQUAL:
        for other, text in both.items():
            _EQUAL.setdefault(text, []).append(other)
    return _EQUAL[both[id]]


if __name__ == "__main__":
    main()
