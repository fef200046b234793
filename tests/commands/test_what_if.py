"""what-if on real servers: it predicts the result of `group`, and writes nothing."""

from __future__ import annotations

from collections import Counter

import pytest
from conftest import Cli
from evidence_tools import prepared
from server_tools import JSON, change, family, one_line, ours, put, versions, words

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import IndexUnusable, SettingsError
from es_neardupe.server.client import Client, path

TRIED = (0.4, 0.5, 0.7, 0.9)


def corpus() -> dict[str, str]:
    """Families with different thresholds, a chain, exact copies, and texts without a group."""
    texts: dict[str, str] = {}
    for edits in (1, 3, 5, 8):
        texts |= {f"f{edits}-{k}": text for k, text in enumerate(family(edits, 4, edits=edits))}
    long = words("chain", 180)
    texts |= {f"chain-{k}": " ".join(long[12 * k : 12 * k + 120]) for k in range(6)}
    texts |= {"copy-a": texts["f3-0"], "copy-b": texts["f8-1"].upper(), "alone": " ".join(words("alone", 60))}
    return texts | {"empty": "..."}


def sizes(client: Client, index: str) -> dict[str, tuple[str, int]]:
    """The group of each document, and its size."""
    ids = {id: stored["group"] for id, stored in ours(client, index).items()}
    number = Counter(ids.values())
    return {id: (group, number[group]) for id, group in ids.items()}


def moves(before: dict[str, tuple[str, int]], after: dict[str, tuple[str, int]]) -> tuple[int, int, int]:
    """Documents that joined a group, left one, and moved from one to another."""
    both = [(before[id], after[id]) for id in before]
    joined = sum(one[1] == 1 and other[1] > 1 for one, other in both)
    left = sum(one[1] > 1 and other[1] == 1 for one, other in both)
    moved = sum(one[1] > 1 and other[1] > 1 and one[0] != other[0] for one, other in both)
    return joined, left, moved


def test_it_says_what_group_would_do(client: Client, index_name: str) -> None:
    """Numbers and moves are those of a run of `group`, for thresholds below and above; nothing is written."""
    prepared(client, index_name, corpus(), threshold=0.5)
    NearDupe(index_name, client).group(min=0.7)
    written = versions(client, index_name)
    for linkage in ("star", "chain", "complete"):
        found = NearDupe(index_name, client).what_if(min=TRIED, linkage=linkage)
        assert (found.min, found.linkage, found.unprocessed) == (0.7, linkage, 0)
        for one in found.thresholds:
            report = NearDupe(index_name, client).group(min=one.min, linkage=linkage, rebuild=True, dry_run=True)
            assert (one.groups, one.grouped, one.largest) == (
                report.groups.count,
                report.groups.grouped,
                report.groups.largest,
            )
            assert (one.detection, found.candidates) == (report.detection, report.pairs.candidates)
        assert len({one.grouped for one in found.thresholds}) > 2
    assert versions(client, index_name) == written


def test_it_says_what_moves(client: Client, index_name: str) -> None:
    """From each grouping to the next one; nothing moves from a grouping to itself."""
    prepared(client, index_name, corpus(), threshold=0.5)
    NearDupe(index_name, client).group()
    for minimum, linkage in ((0.9, "star"), (0.5, "chain"), (0.7, "complete"), (0.7, "complete")):
        before = sizes(client, index_name)
        found = NearDupe(index_name, client).what_if(min=[minimum], linkage=linkage)
        assert found.documents == len(before)
        assert found.grouped == sum(size > 1 for _, size in before.values())
        NearDupe(index_name, client).group(min=minimum, linkage=linkage)
        (one,), after = found.thresholds, sizes(client, index_name)
        assert moves(before, after) == (one.joined, one.left, one.moved)
        assert (before == after) == (found.linkage == "complete" and found.min == 0.7)


def test_by_the_measure_and_rules_of_the_last_group(client: Client, index_name: str) -> None:
    prepared(client, index_name, corpus(), threshold=0.5)
    options: JSON = {"measure": "jaccard", "min": 0.9, "max": 0.99}
    NearDupe(index_name, client).group(linkage="chain", **options)
    found = NearDupe(index_name, client).what_if(min=[0.5, 0.9])
    assert (found.measure, found.max, found.linkage) == ("jaccard (literal)", 0.99, "chain")
    for one in found.thresholds:
        report = NearDupe(index_name, client).group(dry_run=True, min=one.min)
        assert (one.groups, one.grouped, one.largest) == (
            report.groups.count,
            report.groups.grouped,
            report.groups.largest,
        )
        assert one.detection.probability is None
        assert one.detection == report.detection
    assert (found.thresholds[1].joined, found.thresholds[1].left) == (0, 0)

    apart: JSON = {"within": ["part"], "principal": "part:desc"}
    NearDupe(index_name, client).group(default_rules=True, min=0.6, **apart)
    (again,) = NearDupe(index_name, client).what_if(min=[0.7]).thresholds
    report = NearDupe(index_name, client).group(min=0.7, dry_run=True)
    assert (again.groups, again.grouped, again.largest) == (
        report.groups.count,
        report.groups.grouped,
        report.groups.largest,
    )
    assert again.grouped < NearDupe(index_name, client).group(default_rules=True, min=0.7, dry_run=True).groups.grouped


def test_documents_that_have_changed_since(client: Client, index_name: str) -> None:
    """New documents, changed and deleted ones, also those that `enrich` has not seen."""
    texts = corpus()
    prepared(client, index_name, texts, threshold=0.5)
    NearDupe(index_name, client).group()
    new = {"new": {"text": texts["f1-1"].replace("edited", "new")}, "later": {"text": "not enriched"}}
    put(client, index_name, new)
    change(client, index_name, "f5-1", {"text": "something else"})
    client.request("DELETE", path(index_name, "_doc", "f8-2"), params={"refresh": True})
    NearDupe(index_name, client).enrich(query={"ids": {"values": ["new"]}})
    found = NearDupe(index_name, client).what_if(min=[0.6])
    report = NearDupe(index_name, client).group(min=0.6, rebuild=True, dry_run=True)
    assert (found.unprocessed, found.thresholds[0].grouped) == (1, report.groups.grouped)


@pytest.mark.product("each")
def test_a_threshold_that_is_given_twice(client: Client, index_name: str) -> None:
    prepared(client, index_name, corpus(), threshold=0.5)
    NearDupe(index_name, client).group()
    assert [one.min for one in NearDupe(index_name, client).what_if(min=[0.9, 0.5, 0.9]).thresholds] == [0.9, 0.5]


def test_the_command(server_cli: Cli, client: Client, index_name: str) -> None:
    """Errors with their advice, the table, the warning of thresholds below those of the keys, and JSON."""
    prepared(client, index_name, corpus(), threshold=0.5)
    refused = server_cli("what-if", index_name, "--min", "0.8")
    assert refused.code == 1
    assert "has not been grouped" in one_line(refused.err)
    NearDupe(index_name, client).group()
    shown = server_cli("what-if", index_name, "--min", "0.3,0.8")
    assert shown.code == 0
    assert "pairs exactly 0.3 similar become candidates with probability" in shown.err
    assert "pairs exactly 0.8" not in shown.err
    found = server_cli("what-if", index_name, "--min", "0.3,0.8", "--linkage", "chain", "--json").json
    assert [one["min"] for one in found["thresholds"]] == [0.3, 0.8]
    assert found["linkage"] == "chain"
    with NearDupe(index_name, url=client.url) as neardupe:
        assert [one.min for one in neardupe.what_if(min=[0.8]).thresholds] == [0.8]
        with pytest.raises(SettingsError, match="one threshold or more"):
            neardupe.what_if(min=[])
    assert server_cli("what-if", index_name, "--min", "much").code == 2
    assert server_cli("what-if", index_name, "--min", "1.5").code == 2


def test_an_index_without_documents(client: Client, index_name: str) -> None:
    NearDupe(index_name, client).init(Settings(("text",)), create=True)
    with pytest.raises(IndexUnusable, match="has not been grouped"):
        NearDupe(index_name, client).what_if(min=[0.8])
