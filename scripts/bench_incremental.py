"""How much of a whole run of ``group`` an incremental one costs, on a local node.

    python scripts/bench_incremental.py [--documents 100000] [--new 1000] [--server elasticsearch]

An index of made-up texts, a third of them in families of near-duplicates, is grouped whole; then new documents come,
half of them like old ones. The incremental run and a whole one (a dry run, from the same state) are timed, and
must want the same groups.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from es_neardupe import NearDupe, Settings
from es_neardupe.commands.fingerprinted import fingerprinted_actions
from es_neardupe.errors import NeardupeError, NotFound
from es_neardupe.index.hidden_indices import remove
from es_neardupe.index.index import Index, opened
from es_neardupe.index.target import open_target
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
    drop(client)
    client.request("PUT", path(INDEX), body={"mappings": {"properties": {"text": {"type": "text"}}}})
    NearDupe(INDEX, client).init(SETTINGS)
    add(client, texts(arguments.documents, seed=1))
    first, report = timed(lambda: NearDupe(INDEX, client).group())
    print(
        f"first run, with write-back: {first:.1f} s, {report.groups.count:,} groups, {report.pairs.candidates:,} pairs"
    )
    add(client, new_texts(arguments.documents, arguments.new))
    whole, wanted = timed(lambda: NearDupe(INDEX, client).group(rebuild=True, dry_run=True))
    part, done = timed(lambda: NearDupe(INDEX, client).group())
    left = NearDupe(INDEX, client).group(rebuild=True, dry_run=True)
    assert not done.scope.whole
    written = [one.writes.written for one in (wanted, done, left)]
    assert written == [written[0], written[0], 0], written
    print(f"whole run: {whole:.2f} s (without write-back)")
    print(f"incremental: {part:.2f} s (with it), {done.scope.affected:,} documents affected")
    print(f"an incremental run costs {part / first:.3f} of the first one, which writes all documents,")
    print(
        f"and {part / whole:.3f} of looking at all of them without writing; "
        f"both want the same {done.groups.count:,} groups"
    )
    drop(client)
    client.close()


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000, help="how many documents (default 100000)")
    parser.add_argument("--new", type=int, default=1000, help="how many come later (default 1000)")
    parser.add_argument("--server", default="opensearch", help="opensearch or elasticsearch")
    return parser.parse_args()


def texts(number: int, seed: int) -> Iterator[str]:
    """Each twelve: a family of four, and eight texts that are like no other."""
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
    """Index texts with their keys; ids go on from what is there."""
    settings = open_target(client, INDEX).settings
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


def timed(work: Any) -> tuple[float, Any]:
    """Seconds that a function takes, and what it returns."""
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def drop(client: Client) -> None:
    """Remove what an earlier run left."""
    with suppress(NeardupeError):
        remove(opened(Index(INDEX, client)))
    with suppress(NotFound):
        client.request("DELETE", path(INDEX))


if __name__ == "__main__":
    main()
