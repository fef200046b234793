"""Whether ``group`` grows linearly with texts that ruin naive grouping, on a local node.

    python scripts/bench_group.py [--server elasticsearch] [--copies 5000,50000] [--letters 2000,20000]

*Copies* of one text, and *form letters* that differ in one word: the same work for each size, with the seconds of
every step, the pairs that were compared and the most memory that Python objects and arrays took in ``group``. The
last line of each kind says how much more the larger one took; linear growth is the ratio of the sizes, here 10.
"""

from __future__ import annotations

import argparse
import gc
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from typing import TypeVar

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import NotFound
from es_neardupe.index.hidden_indices import HiddenIndex, hidden_index_name
from es_neardupe.index.target import open_target
from es_neardupe.local_server import control
from es_neardupe.records import Action
from es_neardupe.server.bulk import write
from es_neardupe.server.client import Client, path
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings
from es_neardupe.server.search import refresh

T = TypeVar("T")

INDEX = "bench-group"
SETTINGS = Settings(("text",))
WORDS = [f"w{k}" for k in range(100)]


def copies(number: int) -> Iterator[str]:
    """The same text again and again."""
    return (" ".join(WORDS) for _ in range(number))


def letters(number: int) -> Iterator[str]:
    """Texts that differ in one word, half of them in the same place."""
    for row in range(number):
        place = 50 if row % 2 else 5 + row % 90
        yield " ".join([*WORDS[:place], f"name{row}", *WORDS[place + 1 :]])


KINDS: dict[str, Callable[[int], Iterator[str]]] = {"copies": copies, "letters": letters}


def main() -> None:
    """Measure and print."""
    arguments = parse_arguments()
    server = control.start(arguments.server, say=print)
    client = connect(ConnectionSettings(url=server.url))
    print(f"{client.server}, --max-bucket {arguments.max_bucket}")
    for kind, make in KINDS.items():
        sizes = [int(one) for one in getattr(arguments, kind).split(",")]
        seconds = [measure(client, f"{number:,} {kind}", list(make(number)), arguments.max_bucket) for number in sizes]
        grown = ", ".join(f"{b / a:.1f}" for a, b in pairwise(seconds))
        wanted = ", ".join(f"{b / a:.1f}" for a, b in pairwise(sizes))
        print(f"{kind}: group took {grown} times as long for {wanted} times as many")
    drop(client)
    client.close()


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--server", default="opensearch", help="opensearch or elasticsearch")
    parser.add_argument("--copies", default="5000,50000", help="how many copies of one text")
    parser.add_argument("--letters", default="2000,20000", help="how many form letters")
    parser.add_argument("--max-bucket", type=int, default=50, help="as for group")
    return parser.parse_args()


def measure(client: Client, name: str, texts: list[str], max_bucket: int) -> float:
    """Seconds of ``group``; its memory is traced in a run after it, which takes longer by that."""
    fill(client, texts)
    enriched = timed(lambda: NearDupe(INDEX, client).enrich())[0]
    gc.collect()
    seconds, report = timed(lambda: NearDupe(INDEX, client).group(max_bucket=max_bucket))
    tracemalloc.start()
    NearDupe(INDEX, client).group(max_bucket=max_bucket, rebuild=True, dry_run=True)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    print(
        f"{name}: enrich {enriched:.1f} s, group {seconds:.1f} s, {report.pairs.candidates:,} pairs compared, "
        f"{report.pairs.skipped:,} skipped, {report.groups.count:,} groups, "
        f"the largest of {report.groups.largest:,}, {peak:.0f} MB"
    )
    return seconds


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """Seconds that a function takes, and what it returns."""
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def fill(client: Client, texts: list[str]) -> None:
    """An index of these texts, prepared; one that was there before is replaced."""
    drop(client)
    client.request("PUT", path(INDEX), body={"mappings": {"properties": {"text": {"type": "text"}}}})
    for outcome in write(client, (Action("index", INDEX, f"{row:06}", {"text": one}) for row, one in enumerate(texts))):
        assert outcome.done, outcome
    refresh(client, INDEX)
    NearDupe(INDEX, client).init(SETTINGS)


def drop(client: Client) -> None:
    """Take the index away, and what belongs to it."""
    with suppress(NotFound):
        target = open_target(client, INDEX)
        for kind in HiddenIndex:
            with suppress(NotFound):
                client.request("DELETE", path(hidden_index_name(target, kind)))
    with suppress(NotFound):
        client.request("DELETE", path(INDEX))


if __name__ == "__main__":
    main()
