"""Time of an incremental run of ``group`` compared with a whole run, on a local node.

    python scripts/bench_incremental.py [--documents 100000] [--new 1000] [--server elasticsearch]

An index of made-up texts, a third of them in families of near-duplicates, is grouped. Then documents are added, half of
them similar to old ones. The incremental run and a whole run (a dry run from the same state) are timed, and must find
the same groups.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from typing import Any

from bench_tools import create_index, drop_index, timed

from es_neardupe import NearDupe, Settings
from es_neardupe.incoming.writes import fingerprinted_actions
from es_neardupe.index.target import Definitions, open_target
from es_neardupe.local_server import control
from es_neardupe.options import DEFAULT_MAX_CHARS
from es_neardupe.records import Action
from es_neardupe.server.bulk import write
from es_neardupe.server.client import Client, path
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings
from es_neardupe.server.search import refresh

INDEX = "bench-incremental"
SETTINGS = Settings(("text",))
WORDS, FAMILY = 120, 4


def main() -> None:
    """Measure and print."""
    arguments = parse_arguments()
    server = control.start(arguments.server, say=print)
    client = connect(ConnectionSettings(url=server.url))
    print(f"{client.server}, {arguments.documents:,} documents of {WORDS} words, {arguments.new:,} new ones")
    try:
        measure(client, arguments.documents, arguments.new)
    finally:
        drop_index(client, INDEX)
        client.close()


def measure(client: Client, documents: int, new: int) -> None:
    """Measure and print."""
    create_index(client, INDEX, ())
    NearDupe(INDEX, client).init(SETTINGS)
    add(client, texts(documents, seed=1))
    first, report = timed(lambda: NearDupe(INDEX, client).group())
    print(
        f"first run, with write-back: {first:.1f} s, {report.groups.count:,} groups, {report.pairs.candidates:,} pairs"
    )
    add(client, new_texts(documents, new))
    whole, expected = timed(lambda: NearDupe(INDEX, client).group(rebuild=True, dry_run=True))
    part, done = timed(lambda: NearDupe(INDEX, client).group())
    left = NearDupe(INDEX, client).group(rebuild=True, dry_run=True)
    assert not done.scope.whole
    written = [one.writes.written for one in (expected, done, left)]
    assert written == [written[0], written[0], 0], written
    print(f"whole run: {whole:.2f} s (without writing)")
    print(f"incremental run: {part:.2f} s (with writing), {done.scope.affected:,} documents affected")
    print(f"the incremental run takes {part / first:.3f} of the first run, which writes all documents,")
    print(f"and {part / whole:.3f} of the whole run; both find the same {done.groups.count:,} groups")


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000, help="how many documents (default 100000)")
    parser.add_argument("--new", type=int, default=1000, help="how many are added (default 1000)")
    parser.add_argument("--server", default="opensearch", help="opensearch or elasticsearch")
    return parser.parse_args()


def texts(number: int, seed: int) -> Iterator[str]:
    """In each twelve texts, a family of four and eight single texts."""
    for n in range(number):
        place = n % 12
        yield text(seed, n if place >= FAMILY else n - place, place if place < FAMILY else 0)


def new_texts(old: int, number: int) -> Iterator[str]:
    """Every other one joins a family of the old texts."""
    for n in range(number):
        yield text(1, (n * 12) % (old - old % 12), 50 + n) if n % 2 else text(2, n, 0)


def text(seed: int, base: int, edit: int) -> str:
    """A text of made-up words with one of them replaced."""
    dice = random.Random(f"{seed}/{base}")
    words = [f"w{dice.randrange(5000)}" for _ in range(WORDS)]
    if edit:
        words[(edit * 7) % (WORDS - 10) + 5] = f"edited{edit}"
    return " ".join(words)


def add(client: Client, made: Iterator[str]) -> None:
    """Index texts with their keys. Ids continue those of the index."""
    settings = open_target(Definitions(client, INDEX)).settings
    before = client.request("GET", path(INDEX, "_count"))["count"]
    plain: Iterator[dict[str, Any]] = (
        {"_op_type": "index", "_index": INDEX, "_id": f"{before + n:07}", "_source": {"text": one}}
        for n, one in enumerate(made)
    )
    keyed = fingerprinted_actions(plain, settings, index=INDEX, max_chars=DEFAULT_MAX_CHARS)
    actions = (Action("index", INDEX, one["_id"], one["_source"]) for one in keyed)
    for outcome in write(client, actions):
        assert outcome.done, outcome
    refresh(client, INDEX)


if __name__ == "__main__":
    main()
