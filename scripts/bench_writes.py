"""Cost of the checks before writes, in ``enrich`` and ``group``, on a local node.

    python scripts/bench_writes.py [--server elasticsearch] [--count 6000] [--rounds 5]

Each round enriches and groups the same documents three times, in an order that alternates: as the commands are; without
the check of numbers, that is with only the text fields read, no search for numbers that a float does not hold, and no
mark in the documents; and without the checks of the uuids of indices. A ratio is the share of the rate without a check
that is left with it: the median of the rounds, the lowest and the highest. A first round warms the server up.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any
from unittest.mock import patch

from bench_tools import create_index, drop_index, make_texts, settle, timed

from es_neardupe import NearDupe, Settings
from es_neardupe.index.index import Index
from es_neardupe.index.storage import field_writes, inline
from es_neardupe.index.storage.field_writes import Change, FieldWriter
from es_neardupe.index.storage.same_indices import SameIndicesClient
from es_neardupe.local_server import control
from es_neardupe.records import Action, Hit
from es_neardupe.server.client import Client
from es_neardupe.server.connect import connect
from es_neardupe.server.drivers import driver
from es_neardupe.server.login.settings import ConnectionSettings

INDEX = "bench-writes"
SETTINGS = Settings(("text",))
MORE = {"price": 12.95, "rating": 4.5, "sold": 1207, "place": {"lat": 52.52, "lon": 13.405}}
"""Other fields of each document: numbers as they are common."""


def main() -> None:
    """Measure and print."""
    gc.freeze()  # as the command line does
    gc.set_threshold(50_000)
    arguments = parse_arguments()
    texts = make_texts(arguments.count // 2) * 2  # with a copy each
    client = connect(ConnectionSettings(url=arguments.url or control.start(arguments.server, say=print).url))
    print(f"{client.server}, {len(texts):,} texts of {statistics.mean(map(len, texts)):,.0f} characters")
    seconds: dict[str, list[dict[str, float]]] = {name: [] for name in VARIANTS}
    try:
        for number in range(arguments.rounds + 1):
            for name in rotated(list(VARIANTS), number):
                measured = measure(client, texts, VARIANTS[name]())
                if number:
                    seconds[name].append(measured)
    finally:
        drop_index(client, INDEX)
        client.close()
    for command in ("enrich", "group"):
        for name in ("the check of numbers", "the checks of uuids"):
            pairs = zip(seconds["as it is"], seconds[name], strict=True)
            ratios = sorted(without[command] / full[command] for full, without in pairs)
            median, spread = statistics.median(ratios), f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
            print(f"{command} keeps {median:.2f} of its rate without {name} ({spread} in {len(ratios)} rounds)")


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--server", default="opensearch", help="opensearch or elasticsearch")
    parser.add_argument("--url", help="a running server instead of a local node")
    parser.add_argument("--count", type=int, default=6000, help="how many documents (default 6000)")
    parser.add_argument("--rounds", type=int, default=5, help="how many rounds after the first (default 5)")
    return parser.parse_args()


def rotated(names: list[str], number: int) -> list[str]:
    """The names, each in another place in the next round."""
    first = number % len(names)
    return names[first:] + names[:first]


def measure(client: Client, texts: list[str], variant: AbstractContextManager[object]) -> dict[str, float]:
    """Seconds of each command."""
    create_index(client, INDEX, texts, MORE)
    NearDupe(INDEX, client).init(SETTINGS)
    settle(client, INDEX)
    with variant:
        enriching, enriched = timed(lambda: NearDupe(INDEX, client).enrich())
        settle(client, INDEX)
        grouping, grouped = timed(lambda: NearDupe(INDEX, client).group())
    written = enriched.writes.written, grouped.writes.written
    # A document is enriched as alone: of two copies, one stays as it is, and the other gets its group.
    assert written == (len(texts), len(texts) // 2), written
    return {"enrich": enriching, "group": grouping}


@contextmanager
def without_numbers() -> Iterator[None]:
    """Without the check of numbers."""

    def read_texts(index: Index, query: Any, skip: Any, *, shard: int | None, slice: Any) -> Iterator[list[Hit]]:
        body = {"query": dict(query), "_source": [*index.settings.fields, index.settings.prefix]}
        return index.documents.pages(body, page_size=None, skip=skip, shard=shard, slice=slice)

    def updated(writer: FieldWriter, change: Change, settings: Settings) -> Action:
        fields: Mapping[str, Any] = change.fields or {}
        return field_writes.partial_update(change.hit, settings, fields, change.document_bytes)

    with ExitStack() as stack:
        for owner, name, substitute in (
            (inline, "whole_pages", read_texts),
            (driver, "loads", json.loads),
            (field_writes, "has_unheld", lambda source: False),
            (FieldWriter, "_needs_source", lambda writer, change: False),
            (FieldWriter, "_partial", updated),
        ):
            stack.enter_context(patch.object(owner, name, substitute))
        yield


@contextmanager
def without_uuids() -> Iterator[None]:
    """Without the checks of uuids."""
    with patch.object(SameIndicesClient, "check", lambda client: None):
        yield


VARIANTS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "as it is": nullcontext,
    "the check of numbers": without_numbers,
    "the checks of uuids": without_uuids,
}


if __name__ == "__main__":
    main()
