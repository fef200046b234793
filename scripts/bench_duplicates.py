"""Time and memory of requests for duplicates, and their growth.

    python scripts/bench_duplicates.py [--url URL] [--texts FILE.jsonl[.gz|.xz]] [--titles 20000,200000]

First without a server, on one core: documents per second of feature hashing. Then on the server at URL (default: a
running local one): the texts by 5-grams validated on words, and made-up titles, one in ten of them a copy with another
word, by 5-grams and by single words, the latter with a group size that makes millions of candidates. Each run has its
own process; its memory is the peak of that process, minus its memory before the run.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

from bench_tools import create_index, drop_index, make_texts, pin_to_one_core, read_texts

from es_neardupe import NearDupe
from es_neardupe.candidates.spill_to_disk import SpilledEntries, scratch
from es_neardupe.commands.duplicates.hash_features import read_scope
from es_neardupe.commands.duplicates.results import PairsStageReport
from es_neardupe.local_server import control
from es_neardupe.records import Hit
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings
from es_neardupe.similarity.features import Characters, FeatureTree, Flatten, Ngrams, Sentences, Values, Words, describe

INDEX = "neardupe-bench-duplicates"
F = ("text",)
TREES: tuple[FeatureTree, ...] = (
    Ngrams(5, Flatten(Words(F))),
    Flatten(Words(F)),
    Flatten(Sentences(F)),
    Values(F),
    Ngrams(20, Characters(F)),
)


def main() -> None:
    """Measure and print."""
    arguments = parse_arguments()
    pin_to_one_core()
    if arguments.run:
        print(json.dumps(measured(arguments.url, json.loads(arguments.run))))
        return
    report_hashing(arguments.rounds)
    client = connect(ConnectionSettings(url=arguments.url or control.start(say=print).url))
    try:
        if arguments.texts:
            create_index(client, INDEX, read_texts(arguments.texts, 1_000_000))
            show("real texts, 5-grams", run(client.url, request(5, 200)))
        for size in map(int, arguments.titles.split(",")):
            create_index(client, INDEX, islice(titles(), size))
            show(f"{size:,} titles, 5-grams", run(client.url, request(5, 200)))
            show(f"{size:,} titles, words", run(client.url, request(1, arguments.max_group)))
    finally:
        drop_index(client, INDEX)
        client.close()


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--url", help="server (default: the local node)")
    parser.add_argument("--texts", type=Path, help="JSON lines with a field 'text'")
    parser.add_argument("--titles", default="20000,200000", help="numbers of titles, separated by commas")
    parser.add_argument("--max-group", type=int, default=75, help="largest group of a single word (default 75)")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of hashing (default 3)")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    return parser.parse_args()


def report_hashing(rounds: int) -> None:
    """Documents per CPU second from hits to entries, including files; the fastest round counts."""
    texts = make_texts(20_000)
    hits = [Hit("i", str(number), None, 1, 1, {"text": text}) for number, text in enumerate(texts)]
    pages = [hits[start : start + 1000] for start in range(0, len(hits), 1000)]
    size = sum(map(len, texts)) / len(texts)
    print(f"{len(texts):,} documents of {size:,.0f} characters, one core, no server")
    for tree in TREES:
        taken = []
        for _ in range(rounds):
            with scratch() as files:
                entries = SpilledEntries(files)
                start = time.process_time()
                read_scope(pages, tree, entries)
                taken.append(time.process_time() - start)
        print(f"{describe(tree):60} {len(texts) / min(taken):10,.0f} documents/CPU s {entries.total:14,} hashes")


def titles(seed: int = 1) -> Iterator[str]:
    """Titles of 6 to 12 words (Zipf); every tenth is an earlier one with another word."""
    chance = random.Random(seed)
    vocabulary = ["".join(chance.choices("etaoinshrdlucmfwygpbvk", k=chance.randint(3, 10))) for _ in range(30_000)]
    sums = list(accumulate(1 / (rank + 3) for rank in range(len(vocabulary))))
    recent: list[list[str]] = []
    while True:
        for words in [chance.choices(vocabulary, cum_weights=sums, k=chance.randint(6, 12)) for _ in range(1000)]:
            chosen = words
            if recent and chance.random() < 0.1:
                chosen = list(chance.choice(recent))
                chosen[chance.randrange(len(chosen))] = chance.choice(vocabulary)
            recent = [*recent[-999:], chosen]
            yield " ".join(chosen)


def request(window: int, maximum: int) -> dict[str, Any]:
    """Grouped by n-grams or by single words, validated on words."""
    words = {"type": "featureSource:words", "fields": {"type": "fields:simple", "fields": ["text"]}}
    flat = {"type": "featureSource:flatten", "source": words}
    grouping = {"type": "featureSource:ngrams", "window": window, "source": words} if window > 1 else flat
    ratio = {"type": "pairwiseSimilarity:featureIntersectionToUnionRatio", "features": flat}
    return {
        "stages": {
            "pairs": {
                "type": "documentPairs:duplicates",
                "hashGrouping": {"pairing": {"maxHashGroupSize": maximum}, "features": grouping},
                "validation": {"pairwiseSimilarity": ratio, "min": 0.8, "max": 1},
            }
        }
    }


def run(url: str, body: dict[str, Any]) -> dict[str, Any]:
    """Run a request in another process."""
    command = [sys.executable, __file__, "--url", url, "--run", json.dumps(body)]
    found: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return found


def measured(url: str, body: dict[str, Any]) -> dict[str, Any]:
    """The diagnostics of a run, its seconds, and the growth of the memory of this process."""
    client = connect(ConnectionSettings(url=url))
    before = resident("VmRSS")
    found = NearDupe(INDEX, client).duplicates(body)
    result = found.stages["pairs"]
    assert isinstance(result, PairsStageReport)
    hashed, grouped, validated = result.diagnostics.labelled().values()
    return {
        "seconds": found.seconds,
        "kilobytes": resident("VmHWM") - before,
        "hash": hashed,
        "group": grouped,
        "validate": validated,
    }


def resident(name: str) -> int:
    """Memory of this process in kilobytes, on Linux: VmRSS is the current value, VmHWM the peak. (The peak of
    `resource.getrusage` includes the process that started this one.)"""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def show(name: str, found: dict[str, Any]) -> None:
    """Print one run as a paragraph."""
    hashed, grouped, validated = found["hash"], found["group"], found["validate"]
    documents, pairs = hashed["Documents"], grouped["Candidate pairs"]
    bytes_each = found["kilobytes"] * 1024 / max(documents, 1)
    rate = pairs / max(validated["Seconds"], 1e-3)
    print(
        f"\n{name}: {documents:,} documents in {found['seconds']:.1f} s, {found['kilobytes'] / 1024:.0f} MB "
        f"({bytes_each:,.0f} bytes a document)\n"
        f"  hashing {hashed['Seconds']:.1f} s, {hashed['Hash count']:,} hashes\n"
        f"  grouping {grouped['Seconds']:.1f} s, {grouped['Hash collision groups']:,} groups "
        f"({grouped['Skipped large hash collision groups']:,} skipped), "
        f"{grouped['Pairwise hash comparisons']:,} comparisons, {pairs:,} candidates\n"
        f"  validation {validated['Seconds']:.1f} s, {validated['Documents read']:,} documents read, "
        f"{rate:,.0f} pairs/s, {validated['Pairs passing']:,} passing",
        flush=True,
    )


if __name__ == "__main__":
    main()
