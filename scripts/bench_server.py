"""Speed of ``enrich`` compared with the writing speed of the server, and of ``group``, on a local node.

    python scripts/bench_server.py [--texts FILE.jsonl[.gz|.xz]] [--server elasticsearch] [--rounds 3]

Each round creates the same index twice. One is enriched; the other gets the same partial updates, prepared before the
measurement, from as many threads, in requests of the same size. The ratio of the two rates is the share that is left
after reading and signing. Segments are merged before each measurement, and a first round warms the server up.
"""

from __future__ import annotations

import argparse
import gc
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench_tools import create_index, drop_index, make_texts, read_texts, settle, timed

from es_neardupe import NearDupe, Settings
from es_neardupe.local_server import control
from es_neardupe.records import Action
from es_neardupe.server.bulk import write
from es_neardupe.server.client import Client
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings
from es_neardupe.server.search import refresh

WORKERS, BATCH = 2, 500
SETTINGS = Settings(("text",))


def main() -> None:
    """Measure and print."""
    gc.freeze()  # as the command line does
    gc.set_threshold(50_000)
    arguments = parse_arguments()
    texts = read_texts(arguments.texts, arguments.count) if arguments.texts else make_texts(arguments.count)
    texts *= arguments.copies
    server = control.start(arguments.server, say=print)
    client = connect(ConnectionSettings(url=server.url))
    print(f"{client.server}, {len(texts):,} texts of {statistics.mean(map(len, texts)):,.0f} characters")
    rounds = [measure(client, texts) for _ in range(arguments.rounds + 1)][1:]
    enriched, prepared, grouped = (
        statistics.median(one[name] for one in rounds) for name in ("enrich", "send", "group")
    )
    ratios = sorted(one["send"] / one["enrich"] for one in rounds)
    print(f"enrich {len(texts) / enriched:,.0f}/s, the same updates prepared {len(texts) / prepared:,.0f}/s")
    print(f"enrich keeps {statistics.median(ratios):.2f} of the rate (rounds: {', '.join(f'{r:.2f}' for r in ratios)})")
    print(f"group {grouped:.1f} s, {grouped / enriched:.2f} of the time of enrich")
    client.close()


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--texts", type=Path, help="JSON lines with a field 'text' (default: made-up texts)")
    parser.add_argument("--count", type=int, default=12_000, help="how many texts (default 12000)")
    parser.add_argument("--copies", type=int, default=1, help="repeat the texts, for a longer run (default 1)")
    parser.add_argument("--server", default="opensearch", help="opensearch or elasticsearch")
    parser.add_argument("--rounds", type=int, default=3, help="how many rounds after the first (default 3)")
    return parser.parse_args()


def measure(client: Client, texts: list[str]) -> dict[str, float]:
    """Seconds of one round."""
    for index in ("bench-enrich", "bench-send"):
        create_index(client, index, texts)
        NearDupe(index, client).init(SETTINGS)
        settle(client, index)
    seconds = {"enrich": timed(lambda: NearDupe("bench-enrich", client).enrich(workers=WORKERS, batch=BATCH))[0]}
    updates = prepared_updates(client)
    settle(client, "bench-enrich")
    seconds["send"] = timed(lambda: send(client, updates))[0]
    seconds["group"] = timed(lambda: NearDupe("bench-enrich", client).group(workers=WORKERS, batch=BATCH))[0]
    for index in ("bench-enrich", "bench-send"):
        drop_index(client, index)
    return seconds


def prepared_updates(client: Client) -> list[Action]:
    """The updates that ``enrich`` has written, for the other index."""
    refresh(client, "bench-enrich")
    fields = {hit.id: hit.source["neardupe"] for page in pages(client, "bench-enrich") for hit in page}
    return [
        Action(
            op="update",
            index=hit.index,
            id=hit.id,
            body={"doc": {"neardupe": fields[hit.id]}},
            seq_no=hit.seq_no,
            primary_term=hit.primary_term,
        )
        for page in pages(client, "bench-send")
        for hit in page
    ]


def pages(client: Client, index: str) -> Iterator[list[Any]]:
    """All documents of an index."""
    return client.pages(index, {"query": {"match_all": {}}, "_source": ["neardupe"]})


def send(client: Client, actions: list[Action]) -> None:
    """Send the updates as ``enrich`` does, without reading and signing."""
    assert all(outcome.done for outcome in write(client, actions, workers=WORKERS, batch=BATCH)), (
        "an update was rejected"
    )
    refresh(client, "bench-send")


if __name__ == "__main__":
    main()
