"""Recall in numbers: real texts, loaded and paired on real servers, compared with independently computed pairs.

Keys and pairs are computed by the client from what any server returns alike: each large set runs on one product, and on
the other one as a long test.
"""

from __future__ import annotations

import json
import lzma
import unicodedata
from itertools import islice
from pathlib import Path

import pytest
from conftest import Cli, read_data, read_truth
from scheme_oracle import oracle_features, oracle_tokens
from server_tools import JSON

from es_neardupe import NearDupe
from es_neardupe.server.client import Client

THRESHOLD = 0.8
TRUTH_FROM = 0.3
"""The lists of true pairs contain every pair from here on."""

Pairs = dict[tuple[str, str], float]


def load_and_pair(cli: Cli, index: str, file: Path) -> tuple[JSON, Pairs]:
    """init --create, load, pairs, as a user would; returns the report of load and the pairs."""
    assert cli("init", index, "--field", "text", "--create").code == 0
    loaded = cli("load", index, str(file), "--json")
    assert loaded.code == 0, loaded.err
    paired = cli("pairs", index, "--json")
    assert (paired.code, paired.err) == (0, "")
    return loaded.json, {(one["a"]["id"], one["b"]["id"]): one["resemblance"] for one in paired.lines}


def normalised(truth: Pairs, file: Path) -> Pairs:
    """The true pairs. They were computed from lower-case words: values of pairs in which normalisation does more, as it
    joins words divided by a soft hyphen, are computed again."""
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        texts = {one["id"]: one["text"] for one in map(json.loads, lines)}
    other = {id for id, text in texts.items() if "\u00ad" in text or not unicodedata.is_normalized("NFKC", text)}
    found = {id: oracle_features(oracle_tokens(texts[id]), 5) for pair in truth if other & {*pair} for id in pair}
    again = {
        pair: round(len(found[pair[0]] & found[pair[1]]) / len(found[pair[0]] | found[pair[1]]), 6)
        for pair in truth
        if other & {*pair}
    }
    return truth | again


@pytest.mark.parametrize(
    "articles",
    [
        "articles_100.train",
        "articles_1000.train.xz",
        pytest.param("articles_2500.train.xz", marks=pytest.mark.long),
    ],
)
def test_all_planted_pairs_and_no_other(
    articles: str, client: Client, index_name: str, server_cli: Cli, tmp_path: Path
) -> None:
    packed = read_data(f"ttds_articles/{articles}")
    raw = lzma.decompress(packed.read_bytes()) if packed.suffix == ".xz" else packed.read_bytes()
    lines = [line.split(" ", 1) for line in raw.decode("utf-8").splitlines()]
    file = tmp_path / "articles.jsonl"
    file.write_text("".join(json.dumps({"id": id, "text": text}) + "\n" for id, text in lines), "utf-8")
    planted = read_data(f"ttds_articles/{articles.partition('.')[0]}.truth").read_text("utf-8").splitlines()

    loaded, found = load_and_pair(server_cli, index_name, file)
    assert loaded["writes"]["written"] == len(lines)
    assert set(found) == {tuple(sorted(line.split())) for line in planted}
    grouped = NearDupe(index_name, client).group()
    assert (grouped.groups.count, grouped.groups.grouped) == (len(planted), 2 * len(planted))


def beginning(name: str, number: int, folder: Path) -> Path:
    """A file with the first documents of real texts."""
    file = folder / f"{number}.jsonl.xz"
    with lzma.open(read_data(f"{name}.jsonl.xz")) as lines, lzma.open(file, "w", preset=0) as first:
        first.writelines(islice(lines, number))
    return file


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("senate_press/sample_12_senators", 4_000),
        pytest.param("senate_press/sample_12_senators", 12_169, marks=pytest.mark.long),
        pytest.param("civil_codes/sections_field_family_20", 100_000, marks=pytest.mark.long),  # all of them
    ],
)
def test_recall_and_exactness(
    name: str, number: int, client: Client, index_name: str, server_cli: Cli, tmp_path: Path
) -> None:
    file = beginning(name, number, tmp_path)
    loaded, found = load_and_pair(server_cli, index_name, file)
    with lzma.open(file, "rt", encoding="utf-8") as lines:
        ids = {json.loads(line)["id"] for line in lines}
    assert loaded["writes"]["written"] == loaded["scope"]["read"] == len(ids) >= min(number, 12_000)
    every = read_truth(f"{name}.exact_pairs.tsv")
    truth = normalised({pair: value for pair, value in every.items() if ids >= {*pair}}, file)
    wanted = {pair: value for pair, value in truth.items() if value >= THRESHOLD}
    assert len(wanted) > 50
    assert {pair: round(value, 6) for pair, value in found.items()} == {pair: truth.get(pair) for pair in found}
    assert len(wanted.keys() & found.keys()) >= 0.99 * len(wanted)

    # Below the threshold fewer are found, but those reported are correct.
    low = {
        (one.a[1], one.b[1]): round(one.resemblance or 0.0, 6)
        for one in NearDupe(index_name, client).pairs(min=TRUTH_FROM)
    }
    assert low == {pair: truth.get(pair) for pair in low}
    assert len(low) > len(wanted)

    # Groups are made of these pairs: each member's similarity is that to the principal.
    report = NearDupe(index_name, client).group()
    assert (report.scope.documents, report.scope.stale, report.scope.corrupt, report.writes.refused) == (
        loaded["writes"]["written"],
        0,
        0,
        0,
    )
    assert (
        report.scope.documents
        == report.groups.grouped + report.groups.alone
        == report.writes.written + report.writes.unchanged
    )
    for group in NearDupe(index_name, client).groups():
        for member in group.members[1:]:
            one, other = sorted((group.members[0].id, member.id))
            assert round(found[one, other], 6) == pytest.approx(member.similarity, abs=1e-6)
            assert member.similarity >= THRESHOLD
    assert NearDupe(index_name, client).group().writes.written == 0
