"""The preset ``scans`` on a real server: copies with wrong characters, from `init` to the groups."""

from __future__ import annotations

import random
import string

import pytest
from conftest import Cli, read_jsonl
from server_tools import make_index, put, words

from es_neardupe import NearDupe, Settings
from es_neardupe.server.client import Client


def scanned(text: str, wrong: float, seed: int) -> str:
    """A text with a share of its characters replaced, and its lines broken inside words."""
    chance = random.Random(seed)
    read = "".join(chance.choice(string.ascii_lowercase) if chance.random() < wrong else one for one in text)
    return "-\n".join(read[start : start + 61] for start in range(0, len(read), 61))


def test_pages_that_were_read_twice_are_groups(client: Client, index_name: str, server_cli: Cli) -> None:
    pages = {number: " ".join(words(f"page{number}", 120)) for number in range(8)}
    made = server_cli("init", index_name, "--field", "text", "--create", "--preset", "scans")
    assert made.code == 0
    assert "80 bands of 3 rows; a pair exactly 0.25 similar becomes a candidate with probability 0.7163" in made.out
    assert "less than --detection" not in made.err
    again = server_cli("init", index_name, "--field", "text", "--preset", "scans", "--json").json
    assert (again["prepared"], again["threshold"]) == ([], 0.25)
    first = {f"{number}-a": {"text": text} for number, text in pages.items()}
    second = {f"{number}-b": {"text": scanned(text, 0.03, number)} for number, text in pages.items()}
    put(client, index_name, first | second)
    index = NearDupe(index_name, client)
    assert index.enrich().writes.written == 16
    assert {(pair.a[1], pair.b[1]) for pair in index.pairs()} == {(f"{n}-a", f"{n}-b") for n in pages}
    groups = index.group().groups
    assert (groups.count, groups.looked_at.facts) == (8, None)
    low = server_cli("init", f"{index_name}-low", "--field", "text", "--create", "--preset", "scans", "--threshold=0.2")
    assert "those of the preset scans" in low.err


def characters(text: str) -> set[str]:
    """The five-letter runs of a text without anything but letters and digits."""
    joined = "".join(one for one in text.lower() if one.isalnum())
    return {joined[start : start + 5] for start in range(len(joined) - 4)}


@pytest.mark.either("wrong")
@pytest.mark.parametrize(("wrong", "pages"), [("02", 200), ("05", 200), ("10", 180)])
def test_pages_read_twice_with_wrong_characters(client: Client, index_name: str, wrong: str, pages: int) -> None:
    """600 readings, 200 pages twice. Other pairs that are found have a passage in common, by the better readings."""
    read = {one["id"]: one for one in read_jsonl(f"cases/ocr{wrong}.jsonl.xz")}
    better = {one["id"]: characters(one["text"]) for one in read_jsonl("cases/ocr02.jsonl.xz")}
    make_index(client, index_name)
    put(client, index_name, {id: {"text": one["text"]} for id, one in read.items()})
    index = NearDupe(index_name, client)
    index.init(Settings.chosen(("text",), preset="scans"))
    index.enrich()
    found = {(pair.a.id, pair.b.id) for pair in index.pairs()}
    same = {(a, b) for a, b in found if read[a]["page"] == read[b]["page"]}
    assert len(same) >= pages
    for a, b in found - same:
        assert len(better[a] & better[b]) >= 0.25 * len(better[a] | better[b])
