"""Smoke tests: every kind of request once, on the servers of --smoke, the older ones that are supported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import elasticsearch
import elasticsearch.helpers
import opensearchpy
import opensearchpy.helpers
import pytest
from conftest import Cli
from server_tools import change, family, hits, make_index, ours, put, require_driver_for, theirs, true_pairs, words

from es_neardupe import NearDupe, Settings
from es_neardupe.records import Product
from es_neardupe.server.client import Client, path

pytestmark = [pytest.mark.smoke, pytest.mark.product("each")]

SETTINGS = Settings(("text",), threshold=0.7, sample_mod=4)


def test_the_whole_job(client: Client, index_name: str) -> None:
    make_index(client, index_name, settings={"number_of_shards": 2})
    texts = {f"f{n:03}-{k}": text for n in range(30) for k, text in enumerate(family(n, 3, length=80))}
    texts |= {f"alone{n:04}": " ".join(words(n, 20)) for n in range(150)}
    put(client, index_name, {id: {"text": text} for id, text in texts.items()})
    users = theirs(client, index_name)
    assert NearDupe(index_name, client).init(SETTINGS).prepared == (index_name,)
    assert NearDupe(index_name, client).enrich().writes.written == len(texts)
    again = NearDupe(index_name, client).enrich(check=True, slices=4)  # more than there are shards
    assert again.writes.unchanged == len(texts)
    found = NearDupe(index_name, client).similar(id="f007-1", min=0.7)
    truth = true_pairs({id: text for id, text in texts.items() if id.startswith("f")}, 0.7)
    wanted = {(set(pair) - {"f007-1"}).pop(): value for pair, value in truth.items() if "f007-1" in pair}
    assert {hit.id: hit.resemblance for hit in found.hits} == pytest.approx(wanted)
    quoted = NearDupe(index_name, client).contained(text=" ".join(texts["f007-1"].split()[:40]), min=0.9)
    directions = {hit.id: hit.direction.name for hit in quoted.hits}
    assert (directions["f007-1"], directions["alone0007"]) == ("CONTAINS", "CONTAINED")  # which begins the family
    assert set(directions) <= {"f007-0", "f007-1", "f007-2", "alone0007"}
    grouped = NearDupe(index_name, client).group(evidence=True)
    grouped_as = (grouped.groups.count, grouped.groups.grouped, grouped.writes.written)
    assert grouped_as == (30, 90, 60)  # principals have their fields already
    assert NearDupe(index_name, client).group(evidence=True).writes.written == 0
    pairs = {(one.a[1], one.b[1]): one.resemblance for one in NearDupe(index_name, client).pairs()}
    assert pairs == pytest.approx(truth)
    assert {one.size for one in NearDupe(index_name, client).groups()} == {3}
    assert NearDupe(index_name, client).stats().scope.documents == len(texts)
    assert {one.level for one in NearDupe(index_name, client).doctor()} == {"ok"}
    assert theirs(client, index_name) == users
    assert NearDupe(index_name, client).clean().writes.written == len(texts)
    assert not any(ours(client, index_name).values())


def test_commands_from_a_file_to_a_collapsed_search(index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    stories = {"harbour": 4, "wheat": 2, "clocks": 1}
    texts = {
        f"{story}{n}": f"{story} {t}" for story, size in stories.items() for n, t in enumerate(family(story, size))
    }
    file = tmp_path / "texts.jsonl"
    file.write_text("".join(json.dumps({"id": id, "text": text}) + "\n" for id, text in texts.items()), "utf-8")
    assert server_cli("init", index_name, "--field", "text", "--create").code == 0
    assert server_cli("load", index_name, str(file), "--json").json["writes"]["written"] == len(texts)
    assert server_cli("group", index_name, "--json").json["groups"]["count"] == 2
    sizes = {one["principal"]["id"][:-1]: one["size"] for one in server_cli("groups", index_name, "--json").lines}
    assert sizes == {"harbour": 4, "wheat": 2}
    found = server_cli("search", index_name, "harbour wheat clocks", "--json").json
    assert {hit["id"][:-1]: hit["near_copies"] + 1 for hit in found["hits"]} == stories
    assert server_cli("clean", index_name, "--yes").code == 0


def test_incremental(client: Client, index_name: str) -> None:
    make_index(client, index_name)
    put(client, index_name, {f"{n:02}-{k}": {"text": t} for n in range(20) for k, t in enumerate(family(n, 3))})
    NearDupe(index_name, client).init(SETTINGS)
    NearDupe(index_name, client).enrich()
    NearDupe(index_name, client).group()
    before = {one.members[0].id: one.group for one in NearDupe(index_name, client).groups()}
    put(client, index_name, {"new": {"text": family(3, 1)[0]}})
    change(client, index_name, "05-1", {"text": " ".join(words("away", 200))})
    client.request("DELETE", path(index_name, "_doc", "07-2"), params={"refresh": "true"})
    assert NearDupe(index_name, client).enrich(check=True).writes.written == 2
    report = NearDupe(index_name, client).group(check=True)
    assert (report.scope.whole, report.groups.count, report.groups.largest, report.groups.alone) == (False, 20, 4, 1)
    assert {one.group for one in NearDupe(index_name, client).groups()} == set(before.values())
    again = NearDupe(index_name, client).group(rebuild=True, dry_run=True)
    assert (again.writes.written, again.writes.unchanged) == (0, len(hits(client, index_name)))


@pytest.mark.product("opensearch")  # elasticsearch-py 9 itself does not talk to 8.19
def test_own_driver(client: Client, index_name: str) -> None:
    """A wrapped client: its bulk helper sends documents with our fingerprints, and our requests use its connection."""
    driver: Any
    require_driver_for(client)
    if client.server.product is Product.ELASTICSEARCH:
        driver, bulk = elasticsearch.Elasticsearch(client.url), elasticsearch.helpers.bulk
    else:
        driver, bulk = opensearchpy.OpenSearch(client.url), opensearchpy.helpers.bulk
    with driver, NearDupe(index_name, driver) as near:
        make_index(client, index_name)
        near.init(SETTINGS)
        actions = [{"_id": f"d{n}", "text": text} for n, text in enumerate(family("own", 3))]
        assert bulk(driver, near.fingerprinted(actions), index=index_name, refresh=True)[0] == 3
        assert {state["state"] for state in ours(client, index_name).values()} == {"signed"}
        assert near.enrich().writes.written == 0
        assert near.group().groups.count == 1
