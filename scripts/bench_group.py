"""Growth of ``group`` with the number of texts that are hard to group, on a local node.

    python scripts/bench_group.py [--server elasticsearch] [--copies 5000,50000] [--letters 2000,20000]

*Copies* of one text, and *form letters* that differ in one word. For each size, the seconds of every step, the number
of compared pairs and the peak memory of Python objects and arrays in ``group`` are printed. The last line of each kind
has the growth of the time; linear growth is the ratio of the sizes, here 10.
"""

from __future__ import annotations

import argparse
import gc
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import pairwise

from bench_tools import create_index, drop_index, timed

from es_neardupe import NearDupe, Settings
from es_neardupe.local_server import control
from es_neardupe.server.client import Client
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings

INDEX = "bench-group"
SETTINGS = Settings(("text",))
WORDS = [f"w{k}" for k in range(100)]


def copies(number: int) -> Iterator[str]:
    """Copies of one text."""
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
    try:
        for kind, make in KINDS.items():
            sizes = [int(one) for one in getattr(arguments, kind).split(",")]
            seconds = [measure(client, f"{number:,} {kind}", make(number), arguments.max_bucket) for number in sizes]
            slower = ", ".join(f"{b / a:.1f}" for a, b in pairwise(seconds))
            larger = ", ".join(f"{b / a:.1f}" for a, b in pairwise(sizes))
            print(f"{kind}: group took {slower} times as long for {larger} times as many")
    finally:
        drop_index(client, INDEX)
        client.close()


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--server", default="opensearch", help="opensearch or elasticsearch")
    parser.add_argument("--copies", default="5000,50000", help="numbers of copies of one text")
    parser.add_argument("--letters", default="2000,20000", help="numbers of form letters")
    parser.add_argument("--max-bucket", type=int, default=50, help="as for group")
    return parser.parse_args()


def measure(client: Client, name: str, texts: Iterator[str], max_bucket: int) -> float:
    """Seconds of ``group``. Memory is traced in a second run, because tracing takes time."""
    create_index(client, INDEX, texts)
    NearDupe(INDEX, client).init(SETTINGS)
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


if __name__ == "__main__":
    main()
