"""Time of ``similar`` compared with a bare ``terms`` query and ``more_like_this``, on a local node.

    python scripts/bench_similar.py [--documents 100000] [--probes 300] [--server elasticsearch]

An index of made-up texts of 100 words, 14 % of them in families of near-duplicates, is loaded and grouped. Then one
open `NearDupe` searches the near-duplicates of random documents, by id and by text. Each probe is also the subject of
two searches as a user would write them without es-neardupe: ``terms`` on its stored keys, which finds candidates and
compares no text, and ``more_like_this``, whose score is no similarity. The four take turns, so that they share the
conditions of the machine. The ratios are those of the medians.
"""

from __future__ import annotations

import argparse
import gc
import random
import statistics
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from bench_tools import drop_index, settle, synthetic_text, timed, write_synthetic

from es_neardupe import NearDupe, Settings
from es_neardupe.local_server import control
from es_neardupe.server.client import Client, path
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings
from es_neardupe.server.search import search

INDEX = "bench-similar"
WARM_UP = 50


def main() -> None:
    """Measure and print."""
    gc.freeze()
    gc.set_threshold(50_000)
    arguments = parse_arguments()
    client = connect(ConnectionSettings(url=arguments.url or control.start(arguments.server, say=print).url))
    print(f"{client.server}, {arguments.documents:,} documents of 100 words")
    try:
        prepare(client, arguments.documents)
        report(medians(client, arguments.documents, arguments.probes))
    finally:
        drop_index(client, INDEX)
        client.close()


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--server", default="opensearch", help="opensearch or elasticsearch")
    parser.add_argument("--url", help="a running server instead")
    parser.add_argument("--documents", type=int, default=100_000, help="size of the index (default 100000)")
    parser.add_argument("--probes", type=int, default=300, help="how many documents are searched (default 300)")
    return parser.parse_args()


def prepare(client: Client, documents: int) -> None:
    """Load and group the documents."""
    drop_index(client, INDEX)
    news = NearDupe(INDEX, client)
    news.init(Settings(("text",)), create=True)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "synthetic.jsonl"
        write_synthetic(file, range(documents))
        news.load([str(file)])
    news.group()
    settle(client, INDEX)


def medians(client: Client, documents: int, probes: int) -> dict[str, float]:
    """Median seconds of the four searches, which take turns."""
    news = NearDupe(INDEX, client)
    chosen = random.Random(1).choices(range(documents), k=WARM_UP + probes)
    seconds: dict[str, list[float]] = {}
    for number in chosen:
        id, text = f"{number:08}", synthetic_text(number)
        stored = client.request("GET", path(INDEX, "_doc", id))["_source"]["neardupe"]
        like = {"fields": ["text"], "like": [{"_index": INDEX, "_id": id}]}
        searches: Mapping[str, Callable[[], Any]] = {
            "terms": partial(query, client, {"terms": {"neardupe.bands": stored["bands"]}}),
            "more_like_this": partial(query, client, {"more_like_this": like}),
            "similar, by id": partial(news.similar, id=id, fields=None),
            "similar, by text": partial(news.similar, text=text, fields=None),
        }
        for name, work in searches.items():
            seconds.setdefault(name, []).append(timed(work)[0])
    return {name: statistics.median(some[WARM_UP:]) for name, some in seconds.items()}


def report(found: dict[str, float]) -> None:
    """Print the medians and their ratios."""
    for name, median in found.items():
        ratios = ", ".join(f"{median / found[one]:.2f} x {one}" for one in ("terms", "more_like_this"))
        print(f"{name:17} {1000 * median:5.1f} ms: {ratios}")


def query(client: Client, wanted: Mapping[str, Any]) -> Any:
    """A search that returns ten documents."""
    return search(client, INDEX, {"query": wanted})


if __name__ == "__main__":
    main()
