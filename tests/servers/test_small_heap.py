"""Large documents on a server with the smallest heap: every command that reads texts, and the memory of the client.

The first documents are short, so nothing announces the others. All of them together have more than half the size of the
heap, and the server ends when its memory does (``ExitOnOutOfMemoryError``).
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import pytest
from duplicates_requests import pairs_request
from every_command import LOOKING
from peak_memory import measuring
from server_tools import JSON, make_index, required

from es_neardupe.local_server import control
from es_neardupe.server.bulk import chunked
from es_neardupe.server.client import Client, path, to_json
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings

pytestmark = [pytest.mark.server, pytest.mark.timeout(1800)]

SHORT, LARGE, FAMILIES = 25, 60, 3
DEFAULT_HEAP, SMALLEST_HEAP = 512, 128
"""Megabytes. The large documents grow with the heap."""

FIELDS = {
    "n": {"type": "integer"},
    "at": {"type": "date"},
    "url": {"type": "keyword"},
    "text": {"type": "text", "index": False},
}
SETTINGS = {"number_of_shards": 1, "number_of_replicas": 0, "sort.field": "n", "refresh_interval": "-1"}
"""Documents are read in the order of ``n``: the short ones first."""

NOT_TEXTS = {"doctor", "bands", "fold", "pipeline", "version", "stats"}
PEAK = """
import sys
import es_neardupe.commands.distribution, es_neardupe.commands.enrich, es_neardupe.commands.group
from es_neardupe.cli.app import main
before = peak()
try:
    main()
finally:
    print(peak() - before)
"""


def document(number: int, size: int) -> JSON:
    """A short text like no other, or a large one of a family: all texts of a family have a resemblance above 0.99."""
    text = random_text(number % FAMILIES, size // 7) if number >= SHORT else random_text(-number - 1, 100)
    return {
        "n": number,
        "at": f"2024-01-01T00:00:{number % 60:02}Z",
        "url": f"https://a.example/{number}",
        "text": f"{text} edited{number}",
    }


@cache
def random_text(seed: int, number: int) -> str:
    """So many random words."""
    rng = random.Random(seed)
    vocabulary = ["".join(rng.choices("abcdefghij", k=6)) for _ in range(3000)]
    return " ".join(rng.choices(vocabulary, k=number))


def fill(client: Client, index: str, size: int, large: int) -> None:
    """Index the documents, in requests that fit into the memory of the server."""
    make_index(client, index, FIELDS, settings=SETTINGS)
    numbers = iter(range(SHORT + large))
    for some in (list(islice(numbers, SHORT)), *chunked(numbers, max(1, 4_000_000 // size))):
        lines = [part for k in some for part in ({"index": {"_index": index, "_id": f"d{k}"}}, document(k, size))]
        assert not client.bulk(b"".join(to_json(line) + b"\n" for line in lines))["errors"]
    client.request("POST", path(index, "_refresh"))


def family_of(number: int) -> list[str]:
    """The ids of the family of a large document."""
    return [f"d{k}" for k in range(SHORT, SHORT + LARGE) if k % FAMILIES == number % FAMILIES]


PAIRS = {pair for number in range(FAMILIES) for pair in combinations(sorted(family_of(number)), 2)}


@contextmanager
def filled_node(server: str, heap: int, folder: Path, large: int = LARGE) -> Iterator[Client]:
    """A connection to a node with a heap of so many megabytes, with an index ``docs``."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("ES_NEARDUPE_HOME", str(folder))
        with required():
            started = control.start(server, data=folder / "data", heap=f"{heap}m")
        client = connect(ConnectionSettings(url=started.url))
        try:
            fill(client, "docs", heap * 9570, large)  # 4.9 MB with the default heap
            yield client
        finally:
            client.close()
            control.stop()


@pytest.fixture(scope="module", params=["opensearch", pytest.param("elasticsearch", marks=pytest.mark.long)])
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A node with the smallest heap."""
    with filled_node(request.param, SMALLEST_HEAP, tmp_path_factory.mktemp("small")) as client:
        yield client


def run(url: str, *arguments: str) -> tuple[Any, int]:
    """The JSON that a command prints in a process of its own, and by how many MB its memory grew
    beyond that of its modules."""
    environment = os.environ | {"ES_NEARDUPE_URL": url}
    command = [sys.executable, "-c", measuring(PEAK), *arguments, "--json"]
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=600)
    assert not done.returncode, done.stderr
    *printed, peak = done.stdout.splitlines()
    return [json.loads(line) for line in printed], int(peak) // 1_000_000


def check_enrich(client: Client, large: int = LARGE) -> int:
    """Enrich all documents in a process of its own; by how many MB its memory grew."""
    run(client.url, "init", "docs", "--field", "text", "--sample-keys", "20")
    (report,), peak = run(client.url, "enrich", "docs")
    writes = report["writes"]
    assert (writes["written"], writes["refused"], writes["failed"]) == (SHORT + large, 0, 0)
    return peak


@pytest.mark.parametrize("large", [30, pytest.param(LARGE, marks=pytest.mark.long)])
def test_enrich_with_the_smallest_heap(large: int, tmp_path: Path) -> None:
    """A response with 30 large documents is too much as well."""
    with filled_node("opensearch", SMALLEST_HEAP, tmp_path, large) as client:
        assert check_enrich(client, large) < 200


@pytest.mark.long
@pytest.mark.parametrize("server", ["opensearch", "elasticsearch"])
def test_enrich_with_the_default_heap(server: str, tmp_path: Path) -> None:
    with filled_node(server, DEFAULT_HEAP, tmp_path) as client:
        assert check_enrich(client) < 300
        if server == "elasticsearch":  # it makes no keys itself
            return
        command = [sys.executable, "-m", "es_neardupe", "enrich", "docs", "--in-cluster", "--check", "--json"]
        environment = os.environ | {"ES_NEARDUPE_URL": client.url}
        done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=600)
        writes = json.loads(done.stdout)["writes"]
        assert (done.returncode, writes["unchanged"], writes["failed"]) == (1, SHORT, LARGE), done.stderr
        assert client.request("GET", path("_cluster", "health"))["status"] == "green"


@pytest.mark.long
def test_enrich_and_group(filled: Client) -> None:
    assert check_enrich(filled) < 200
    _, peak = run(filled.url, "group", "docs", "--evidence")
    assert peak < 300  # to describe a pair, both texts and their words are held
    hits = filled.request("POST", "/docs/_search", body={"size": 100, "_source": ["neardupe.group"]})["hits"]["hits"]
    groups: dict[str, set[str]] = {}
    for hit in hits:
        groups.setdefault(hit["_source"]["neardupe"]["group"], set()).add(hit["_id"])
    assert {frozenset(one) for one in groups.values() if len(one) > 1} == {frozenset(family_of(k)) for k in range(3)}


READING: Mapping[str, list[str]] = {
    "pairs": [],
    "documents": ["--by", "url"],
    "similar": ["--id", "d30"],
    "contained": ["--id", "d30"],
    "compare": ["d30", "d33"],
    "moved": ["https://a.example/30"],
    "distribution": ["--sample", "30"],
    "audit": ["--sample", "20"],
    "what-if": ["--min", "0.9"],
    "search": ["*", "--field", "text", "--expand", "--size", "50"],
    "shingles": ["d30"],
    "duplicates": ["--request", "REQUEST"],
    "groups": [],
    "watch": ["--once"],
    "enrich": ["--check"],
    "group": ["--rebuild"],
    "migrate": ["--threshold", "0.7", "--yes"],
    "clean": ["--yes"],
}


def test_every_reading_command_is_here() -> None:
    assert set(LOOKING) - NOT_TEXTS <= set(READING)


@pytest.mark.long
@pytest.mark.parametrize("command", READING)
def test_commands(command: str, filled: Client, tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(pairs_request()), "utf-8")
    options = [str(file) if one == "REQUEST" else one for one in READING[command]]
    printed, peak = run(filled.url, command, "docs", *options)
    print(command, peak, json.dumps(printed)[:1500])
    assert peak < (500 if command == "distribution" else 300)  # which holds the words of its sample
    if command == "pairs":
        assert {(one["a"]["id"], one["b"]["id"]) for one in printed if "a" in one} == PAIRS
