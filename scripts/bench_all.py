"""What the program itself costs, next to its limits: one table, measured on one machine.

    python scripts/bench_all.py [--server opensearch --server elasticsearch] [--documents 20000] [--rounds 5] [--large]

Each figure is a ratio of two measurements that take turns, or the processor time of the client: they depend less on the
machine than rates. "Before" is what the same work cost before it was made faster, in November 2026. Use a machine
without other work: above all the two threads need two free cores.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import bench_keys
import bench_scale
import bench_screened
import bench_server
import bench_similar
import psutil
from bench_tools import _VOCABULARY, create_index, drop_index, make_texts, read_texts, timed, write_synthetic

from es_neardupe import NearDupe, Settings
from es_neardupe.incoming.matches import ScreenReport
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.shingles import features
from es_neardupe.keys.text import normalize
from es_neardupe.keys.unit import Unit
from es_neardupe.local_server import control
from es_neardupe.server.client import Client
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings

Work = Callable[[], object]
COUNT = 4000
"""Texts of one measurement of signing."""


class Row(NamedTuple):
    """A line of the table."""

    work: str
    before: str
    limit: str
    goal: str
    reached: str


def main() -> None:
    """Measure and print."""
    gc.freeze()  # as the command line does
    gc.set_threshold(50_000)
    arguments = parse_arguments()
    print("| work | before | limit | goal | reached |\n|---|---|---|---|---|")
    for row in rows(arguments):
        print(f"| {' | '.join(row)} |", flush=True)


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--texts", type=Path, help="JSON lines with a field 'text' (default: made-up texts)")
    parser.add_argument("--server", action="append", help="opensearch or elasticsearch, or both (default: both)")
    parser.add_argument("--without-server", action="store_true", help="only what needs no server")
    parser.add_argument(
        "--documents",
        type=int,
        default=20_000,
        help="size of the indices; `similar` has five times as many (default 20000)",
    )
    parser.add_argument("--rounds", type=int, default=5, help="how many rounds (default 5)")
    parser.add_argument("--large", action="store_true", help="with 10 million fingerprints, and a million documents")
    return parser.parse_args()


def rows(arguments: argparse.Namespace) -> Iterator[Row]:
    """The lines of the table, as they are measured."""
    texts = read_texts(arguments.texts, COUNT) if arguments.texts else make_texts(COUNT)
    yield from signing(texts, arguments.rounds)
    yield from starts({}, {"--version": [], "bands": [], "compare": []}, arguments.rounds)
    yield synthetic(10_000_000 if arguments.large else 50 * arguments.documents)
    if arguments.without_server:
        return
    for kind in arguments.server or ("opensearch", "elasticsearch"):
        server = control.start(kind, say=partial(print, file=sys.stderr))
        client = connect(ConnectionSettings(url=server.url))
        try:
            yield from with_server(client, psutil.Process(server.pid), arguments, texts)
        finally:
            client.close()


def seconds(work: dict[str, Work], rounds: int) -> dict[str, float]:
    """The least processor time of this process for each work; they take turns."""
    taken: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds + 1):
        for name, one in work.items():
            started = time.process_time()
            one()
            taken[name].append(time.process_time() - started)
    return {name: min(some) for name, some in taken.items()}


# -- without a server


def signing(texts: list[str], rounds: int) -> Iterator[Row]:
    """Keys of texts, and what verification computes of them."""
    scheme = Scheme.for_threshold(0.8)
    size = statistics.mean(len(text.encode("utf-8", "surrogatepass")) for text in texts)
    accents = [text.replace("e", "é") for text in texts]
    decomposed = [unicodedata.normalize("NFD", text) for text in accents]
    characters = Scheme(bands=scheme.bands, rows=scheme.rows, shingle=9, unit=Unit.CHARACTER)
    sampled = Scheme(bands=scheme.bands, rows=scheme.rows, sample_mod=7)
    work: dict[str, Work] = {
        "words": partial(fingerprints, texts, scheme),
        "accents": partial(fingerprints, accents, scheme),
        "decomposed": partial(fingerprints, decomposed, scheme),
        "characters": partial(fingerprints, texts, characters),
        "samples": partial(fingerprints, texts, sampled),
        "normalize": partial(normalize, texts),
        "features": partial(features, texts, scheme.shingle),
    }
    daft = bench_keys.available(partial(bench_keys.daft_minhash, "murmurhash3"))
    if not isinstance(daft, str):
        work["daft"] = partial(daft, texts)
    took = {name: 1e6 * one / len(texts) for name, one in seconds(work, rounds).items()}
    signed = f"signing texts of {size:,.0f} bytes, CPU of one"
    ratio = f"{took['daft'] / took['words']:.1f} x Daft" if "daft" in took else f"Daft {daft}"
    yield Row(signed, "16 µs: 1.5 x Daft", "", "5 x Daft", f"{took['words']:.1f} µs: {ratio}")
    yield Row("the same in two threads", "0.9 x one", "2 x one", "1.9 x one", f"{two_threads(texts, scheme):.2f} x one")
    for name, other, earlier in (
        ("decomposed", "accents", "3.0"),
        ("characters", "words", "2.5"),
        ("samples", "words", "2.7"),
    ):
        ratio = f"{took[name] / took[other]:.1f} x ({took[name]:.1f} µs)"
        yield Row(f"signing: {name}, compared with {other}", f"{earlier} x", "1 x", "1.5 x", ratio)
    for name, before in (("normalize", 4.5), ("features", 9.6)):
        reached = f"{took[name]:.1f} µs: {before / took[name]:.1f} x"
        yield Row(f"verification: {name} of a text", f"{before} µs", "", "2 x as fast", reached)


def two_threads(texts: list[str], scheme: Scheme) -> float:
    """How many times the rate of one thread two have, while both work for a fifth of a second."""

    def sign() -> None:
        for _ in range(10):
            fingerprints(texts, scheme)

    def together(number: int) -> float:
        threads = [threading.Thread(target=sign) for _ in range(number)]

        def run() -> None:
            for one in threads:
                one.start()
            for one in threads:
                one.join()

        return timed(run)[0] / number

    taken = [(together(1), together(2)) for _ in range(9)]
    return min(one for one, _ in taken) / min(two for _, two in taken)


def starts(connection: dict[str, str], commands: Mapping[str, Sequence[str]], rounds: int) -> Iterator[Row]:
    """Processor time of commands that do little, compared with a Python that imports numpy."""
    before = {"bands": "6.1 x", "compare": "8.7 x", "stats": "8.4 x", "groups": "8.4 x"}
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / name) for name in ("a.txt", "b.txt")]
        for name in files:
            Path(name).write_text(f"one two three four five six seven eight {name}", "utf-8")
        lines = {"numpy": [sys.executable, "-c", "import numpy"]}
        for name, words in commands.items():
            more = files if name == "compare" else words
            options = [word for pair in connection.items() for word in pair]
            lines[name] = [sys.executable, "-m", "es_neardupe", name, *more, *options]
        took = {name: min(processor_time(line) for _ in range(rounds)) for name, line in lines.items()}
    for name in commands:
        reached = f"{took[name] / took['numpy']:.1f} x ({took[name]:.2f} s)"
        yield Row(
            f"`{name}`, CPU, compared with a Python that imports numpy", before.get(name, ""), "1 x", "3 x", reached
        )


def processor_time(line: Sequence[str]) -> float:
    """CPU seconds of a process, with modules that an earlier one compiled, as installed programs have them."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(line, check=True, capture_output=True, env=os.environ | {"PYTHONDONTWRITEBYTECODE": ""})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return sum(after[:2]) - sum(before[:2])


def synthetic(documents: int) -> Row:
    """``group --memory 2GB`` of synthetic fingerprints."""
    found = bench_scale.synthetic(documents, "2GB")
    what = f"`group --memory 2GB` of {documents:,} fingerprints, without a server"
    reached = f"{found.seconds:.0f} s, {found.making:.0f} s of it to make the documents; {found.peak / 1e6:,.0f} MB"
    return Row(what, "10 million: 493 s", "", "10 million: 300 s", reached)


# -- with a server


def with_server(client: Client, node: psutil.Process, arguments: argparse.Namespace, texts: list[str]) -> Iterator[Row]:
    """What needs a server of one product."""
    product = client.server.product.value
    try:
        documents = 5 * arguments.documents  # the smaller the index, the less a bare query takes
        bench_similar.prepare(client, documents)
        medians = bench_similar.medians(client, documents, 300)
        for name, before, goal in (("by text", "1.41 x", "1.2 x"), ("by id", "1.88 x", "1.3 x")):
            reached = f"{medians[f'similar, {name}'] / medians['terms']:.2f} x"
            what = f"`similar` {name}, compared with a `terms` query, {documents:,} documents, {product}"
            yield Row(what, before, "1 x", goal, reached)
        index = bench_similar.INDEX
        some = {"stats": [index], "groups": [index, "--top", "5"]}
        for row in starts({"--url": client.url}, some, arguments.rounds):
            yield row._replace(work=f"{row.work}, {product}")
    finally:
        drop_index(client, bench_similar.INDEX)
    yield from enriching(client, node, texts, arguments.rounds)
    yield family(client, arguments.documents * 3 // 4)
    yield cluster(client, arguments.documents * 3 // 2)
    yield by_lengths(client, texts)
    yield first_group(client, 1_000_000 if arguments.large else 5 * arguments.documents)


def enriching(client: Client, node: psutil.Process, texts: list[str], rounds: int) -> Iterator[Row]:
    """The processor time of the client of ``enrich``, and its rate compared with the floor."""
    product = client.server.product.value
    texts = texts * 3  # so that what a command does once counts little
    prepared = bench_server.prepare(client, texts)
    found = [bench_server.measure(client, node, texts, prepared, turn) for turn in range(rounds + 1)][1:]
    cpu = {name: 1e6 * min(one[name].client for one in found) / len(texts) for name in bench_server.NAMES}
    before = {"opensearch": "67 µs", "elasticsearch": "59 µs"}[product]
    floor = f"{cpu['floor']:.0f} µs: reading, signing and prepared updates"
    yield Row(
        f"`enrich`, CPU of the client for a document, {product}", before, floor, "40 µs", f"{cpu['enrich']:.0f} µs"
    )
    for name, earlier, goal in (("floor", "0.88", "0.97"), ("send", "0.68", "0.80")):
        rate = statistics.median(one[name].wall / one["enrich"].wall for one in found)
        what = f"`enrich`, rate compared with {bench_server.NAMES[name]}, {product}"
        yield Row(what, earlier, "1", goal, f"{rate:.2f}")


def near_copy(number: int) -> str:
    """A text of 100 words that differs from one common text in one or two of them."""
    chance, words = random.Random(number), random.Random(5).choices(_VOCABULARY, k=100)
    for place in chance.sample(range(len(words)), chance.choice([1, 1, 2])):
        words[place] = chance.choice(_VOCABULARY)
    return " ".join(words)


def family(client: Client, size: int) -> Row:
    """``screened`` where each text is a near-copy of very many others."""
    try:
        bench_screened.prepare(client, {f"s{number}": near_copy(number) for number in range(size)})
        sent = {f"n{number}": near_copy(size + number) for number in range(1000)}
        report = ScreenReport()
        actions: Any = bench_screened.actions_of(sent)
        news = NearDupe(bench_screened.INDEX, client)
        took, _ = timed(lambda: list(news.screened(actions, on_match="skip", report=report)))
    finally:
        drop_index(client, bench_screened.INDEX)
    counts = report.counts
    reached = f"{len(sent) / took:,.0f}/s; {counts.unique}, {counts.unique - counts.unsure} uncounted"
    what = f"`screened` in a family of {size:,}: actions, and near-copies passed as new, {client.server.product.value}"
    return Row(what, "27/s; 2 of 1,000 uncounted", "3,000/s outside of families", "1,000/s; 0 uncounted", reached)


def with_boilerplate(number: int) -> str:
    """A text of 100 words, of which all but the last 15 are those of all others."""
    return " ".join([*random.Random(5).choices(_VOCABULARY, k=85), *random.Random(number).choices(_VOCABULARY, k=15)])


def cluster(client: Client, size: int) -> Row:
    """``group`` of texts that share most of their words, compared with half as many: they are one cluster."""
    index, found = bench_scale.INDEX, []
    try:
        for number in (size // 2, size):
            create_index(client, index, map(with_boilerplate, range(number)))
            news = NearDupe(index, client)
            news.init(Settings(("text",)))
            news.enrich()
            found.append(
                bench_scale.in_a_process("group --rebuild --dry-run", bench_scale.Work(client.url, "", number))
            )
    finally:
        drop_index(client, index)
    half, whole = found
    reached = (
        f"{whole.seconds / half.seconds:.1f} x ({whole.seconds:.0f} s); {whole.peak / half.peak:.1f} x "
        f"({whole.peak / 1e6:,.0f} MB)"
    )
    what = f"`group` of one cluster of {size:,} texts with boilerplate, compared with half: time, peak memory"
    return Row(f"{what}, {client.server.product.value}", "", "2 x", "2 x", reached)


def by_lengths(client: Client, texts: list[str]) -> Row:
    """The processor time of ``group`` after ``init --measure``, compared with bands for a lower threshold."""
    index = "bench-lengths"
    some = [f"{text} {other[: len(text) // 20]}" for text, other in zip(texts[::8], texts[1::8], strict=False)]
    ways: dict[str, tuple[float, str | None]] = {"by lengths": (0.8, "containment-longer"), "lower": (0.5, None)}
    took, matches = dict[str, float](), dict[str, int]()
    try:
        for name, (threshold, measure) in ways.items():
            create_index(client, index, [*texts, *some])
            news = NearDupe(index, client)
            news.init(Settings(("text",), threshold=threshold), measure=measure)
            news.enrich()
            started = time.process_time()
            report = news.group(measure="containment-longer", min=0.8, rebuild=True, dry_run=True)
            took[name], matches[name] = time.process_time() - started, report.pairs.matches
    finally:
        drop_index(client, index)
    reached = f"{took['by lengths'] / took['lower']:.1f} x ({matches['by lengths']} and {matches['lower']} matches)"
    what = "`group` after `init --measure containment-longer`, CPU, compared with `init --threshold 0.5`"
    return Row(f"{what}, {client.server.product.value}", "57 x", "", "3 x", reached)


def first_group(client: Client, documents: int) -> Row:
    """The first ``group``, compared with what is needed: a dry run, and the writes of members."""
    index, seconds = bench_scale.INDEX, dict[str, float]()
    try:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "synthetic.jsonl"
            write_synthetic(file, range(documents))
            for step in ("load", "group --rebuild --dry-run", "first group", "writes of members"):
                work = bench_scale.Work(client.url, str(file), documents)
                seconds[step] = bench_scale.in_a_process(step, work).seconds
    finally:
        drop_index(client, index)
    needed = seconds["group --rebuild --dry-run"] + seconds["writes of members"]
    reached = f"{seconds['first group'] / needed:.2f} x ({seconds['first group']:.0f} s)"
    what = f"first `group` of {documents:,} documents, compared with a dry run and the writes of members"
    return Row(f"{what}, {client.server.product.value}", "1.11 x", "1 x", "1.11 x", reached)


if __name__ == "__main__":
    main()
