"""Clusters of tens of thousands of texts on a real server: memory of ``group``, and complete groups."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from peak_memory import measuring
from server_tools import make_index, send, words

from es_neardupe import NearDupe, Settings
from es_neardupe.server.client import Client

_GROUP = """
import json, sys
from es_neardupe import NearDupe
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings

url, name, options = sys.argv[1:]
report = NearDupe(name, connect(ConnectionSettings(url=url))).group(**json.loads(options))
print(json.dumps({
    "memory": peak(),
    "groups": report.groups.count,
    "grouped": report.groups.grouped,
    "candidates": report.pairs.candidates,
    "matches": report.pairs.matches,
    "compared": report.pairs.compared_to_link,
    "open": report.pairs.open,
    "seconds": report.seconds,
}))
"""


def filled(client: Client, name: str, texts: list[str]) -> None:
    make_index(client, name)
    for start in range(0, len(texts), 2000):
        part = enumerate(texts[start : start + 2000], start)
        send(client, [({"index": {"_index": name, "_id": f"{row:05}"}}, {"text": text}) for row, text in part])
    NearDupe(name, client).init(Settings(("text",), threshold=0.8))
    NearDupe(name, client).enrich()


def grouped(url: str, name: str, **options: Any) -> dict[str, Any]:
    """A run of ``group`` in a process of its own, with its peak memory in bytes."""
    done = subprocess.run(
        [sys.executable, "-c", measuring(_GROUP), url, name, json.dumps(options)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    print(options, report)
    return report


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_memory_of_thirty_thousand_texts_with_a_footer(client: Client, index_name: str) -> None:
    """One cluster with millions of candidate pairs: neither star nor chain needs more than 1 GB. (It was 1.7 GB.)"""
    pytest.importorskip("resource")
    footer = " ".join(words("footer", 300))
    filled(client, index_name, [f"{' '.join(words(row, 8 + row % 5))} {footer}" for row in range(30_000)])
    for linkage in ("star", "chain"):
        found = grouped(client.url, index_name, linkage=linkage, dry_run=True)
        assert (found["groups"], found["grouped"]) == (1, 30_000)
        assert found["candidates"] > 8_000_000
        assert found["memory"] < 1_000_000_000


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_twenty_thousand_form_letters_are_one_complete_group(client: Client, index_name: str) -> None:
    """Letters that differ in one word: all 200 million pairs are similar, and those that are no candidates are
    compared. (They were 2,318 groups.) The candidates, 100 bytes each, take most of the memory."""
    pytest.importorskip("resource")
    letter = words("letter", 100)
    texts = [" ".join([*letter[: row % 90], f"name{row}", *letter[row % 90 + 1 :]]) for row in range(20_000)]
    filled(client, index_name, texts)
    found = grouped(client.url, index_name, linkage="complete", dry_run=True)
    assert (found["groups"], found["grouped"], found["open"]) == (1, 20_000, 0)
    assert found["compared"] == 20_000 * 19_999 // 2 - found["candidates"] > 150_000_000
    assert found["memory"] < 1_500_000_000
