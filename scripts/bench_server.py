"""Speed of ``enrich`` compared with the writing speed of the server, and of ``group``, on a local node.

    python scripts/bench_server.py [--texts FILE.jsonl[.gz|.xz]] [--server elasticsearch] [--rounds 3]

Each round creates the same index three times. One is enriched. Another one gets the same partial updates, prepared
before the measurement, from as many threads, in requests of the same size. The ratio of the two rates is the share that
is left after reading and signing. The third one is read and signed as by ``enrich``, but gets prepared updates: this is
the floor, and what ``enrich`` takes more than that is its own. The three take turns in being the first. CPU seconds are
those of the client and of the node, per 10,000 documents. Segments are merged before each measurement, not in it:
whether a throttled merge of seconds falls into one depends on the number of refreshes. A first round warms the server
up. Use a machine without other work.
"""

from __future__ import annotations

import argparse
import gc
import statistics
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from bench_tools import create_index, drop_index, make_texts, read_texts, settle, timed, wait_for_merges

from es_neardupe import NearDupe, Settings
from es_neardupe.index.document_text import fingerprint_sources
from es_neardupe.local_server import control
from es_neardupe.records import Action
from es_neardupe.server.bulk import write
from es_neardupe.server.client import Client, path
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings
from es_neardupe.server.search import refresh, whole_source

WORKERS, BATCH, MAX_CHARS = 2, 500, 10_000_000
INDICES = {"enrich": "bench-enrich", "send": "bench-send", "floor": "bench-floor"}
PREPARED = "bench-prepared"
NAMES = {"enrich": "enrich", "send": "prepared updates", "floor": "reading, signing and prepared updates"}
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
    node = psutil.Process(server.pid)
    prepared = prepare(client, texts)
    rounds = [measure(client, node, texts, prepared, turn) for turn in range(arguments.rounds + 1)][1:]
    seconds = {name: statistics.median(one[name].wall for one in rounds) for name in rounds[0]}
    for name, what in NAMES.items():
        cpu = [statistics.median(getattr(one[name], part) for one in rounds) for part in ("client", "node")]
        per = 10_000 / len(texts)
        print(
            f"{what}: {len(texts) / seconds[name]:,.0f}/s, CPU of client {cpu[0] * per:.2f}, of node {cpu[1] * per:.2f}"
        )
    for name in ("send", "floor"):
        ratios = sorted(one[name].wall / one["enrich"].wall for one in rounds)
        shown = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        print(f"enrich keeps {statistics.median(ratios):.2f} of the rate of {NAMES[name]} (rounds: {shown})")
    print(f"group {seconds['group']:.1f} s, {seconds['group'] / seconds['enrich']:.2f} of the time of enrich")
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


class Cost(NamedTuple):
    """Seconds of one measurement."""

    wall: float
    client: float
    node: float


def cost(node: psutil.Process, work: Callable[[], Any]) -> Cost:
    """Run a function, and return its cost."""
    both = [psutil.Process()], [node, *node.children(recursive=True)]
    before = [cpu_seconds(one) for one in both]
    wall, _ = timed(work)
    return Cost(wall, *(cpu_seconds(one) - then for one, then in zip(both, before, strict=True)))


def cpu_seconds(processes: Iterable[psutil.Process]) -> float:
    """CPU seconds of processes so far."""
    return float(sum(sum(one.cpu_times()[:2]) for one in processes))


def prepare(client: Client, texts: list[str]) -> dict[str, Any]:
    """The fields that ``enrich`` writes, by id."""
    create_index(client, PREPARED, texts)
    NearDupe(PREPARED, client).init(SETTINGS)
    NearDupe(PREPARED, client).enrich(workers=WORKERS, batch=BATCH)
    fields = {hit.id: hit.source["neardupe"] for page in pages(client, PREPARED) for hit in page}
    drop_index(client, PREPARED)
    return fields


def measure(
    client: Client, node: psutil.Process, texts: list[str], prepared: dict[str, Any], turn: int
) -> dict[str, Cost]:
    """The costs of one round."""
    for index in INDICES.values():
        create_index(client, index, texts)
        NearDupe(index, client).init(SETTINGS)
        settle(client, index)
        set_merges(client, index, segments=1000)
    updates = prepared_updates(client, INDICES["send"], prepared)
    others = {one.id: one for one in prepared_updates(client, INDICES["floor"], prepared)}
    work: list[tuple[str, Callable[[], Any]]] = [
        ("enrich", lambda: NearDupe(INDICES["enrich"], client).enrich(workers=WORKERS, batch=BATCH)),
        ("send", lambda: send(client, INDICES["send"], updates)),
        ("floor", lambda: send(client, INDICES["floor"], read_and_signed(client, others))),
    ]
    first = turn % len(work)
    found = {}
    for name, step in work[first:] + work[:first]:
        found[name] = cost(node, step)
        wait_for_merges(client, INDICES[name])
    set_merges(client, INDICES["enrich"], segments=None)
    settle(client, INDICES["enrich"])
    found["group"] = cost(node, lambda: NearDupe(INDICES["enrich"], client).group(workers=WORKERS, batch=BATCH))
    for index in INDICES.values():
        drop_index(client, index)
    return found


def set_merges(client: Client, index: str, segments: int | None) -> None:
    """Let the server merge segments only if there are more than so many of one size; None: as by default."""
    client.request("PUT", path(index, "_settings"), body={"index.merge.policy.segments_per_tier": segments})


def read_and_signed(client: Client, prepared: dict[str, Action]) -> Iterator[Action]:
    """The updates of the documents, in the order in which they are read and signed."""
    body: dict[str, Any] = {"query": {"match_all": {}}, "_source": whole_source(client.server)}
    for page in client.pages(INDICES["floor"], body, page_size=None):
        for hit, _ in zip(page, fingerprint_sources([one.source for one in page], SETTINGS, MAX_CHARS), strict=True):
            yield prepared[hit.id]


def prepared_updates(client: Client, index: str, fields: dict[str, Any]) -> list[Action]:
    """The updates that ``enrich`` would write to an index."""
    return [
        Action(
            op="update",
            index=hit.index,
            id=hit.id,
            body={"doc": {"neardupe": fields[hit.id]}},
            seq_no=hit.seq_no,
            primary_term=hit.primary_term,
        )
        for page in pages(client, index)
        for hit in page
    ]


def pages(client: Client, index: str) -> Iterator[list[Any]]:
    """All documents of an index."""
    return client.pages(index, {"query": {"match_all": {}}, "_source": ["neardupe"]})


def send(client: Client, index: str, actions: Iterable[Action]) -> None:
    """Send the updates as ``enrich`` does."""
    assert all(outcome.done for outcome in write(client, actions, workers=WORKERS, batch=BATCH)), (
        "an update was rejected"
    )
    refresh(client, index)


if __name__ == "__main__":
    main()
