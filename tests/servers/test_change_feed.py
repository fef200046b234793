"""Changed texts are noticed without reading all documents, whoever wrote them and whenever.

The oracle is ``enrich --check``, which reads every text: after an ``enrich``, it finds nothing to write.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli
from kill_tools import Moment, run_to_death
from server_tools import TEXT, change, family, make_index, put, theirs, words

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import Conflict, NotFound
from es_neardupe.index import target
from es_neardupe.index.index import Index, opened
from es_neardupe.index.storage.change_feed import ChangeFeed, Consumer
from es_neardupe.index.storage.seq_nos import SeqNos
from es_neardupe.records import Action, Hit, Outcome
from es_neardupe.report_parts import EnrichReport
from es_neardupe.server.bulk import write
from es_neardupe.server.client import Client, ForwardingClient, path

SETTINGS = Settings(("text",))
FEED = "feed"


def text(seed: object) -> str:
    return " ".join(words(seed, 12))


def filled(client: Client, index: str, number: int = 60, shards: int = 2, **settings: Any) -> NearDupe:
    """An initialised index on several shards."""
    make_index(client, index, TEXT | {"n": {"type": "integer"}}, settings={"number_of_shards": shards, **settings})
    put(client, index, {f"d{k:02}": {"text": text(k), "n": 0} for k in range(number)})
    found = NearDupe(index, client)
    found.init(SETTINGS)
    return found


def numbers(report: EnrichReport) -> tuple[int, int, int]:
    """Documents read, those of them that were written since the last run, and documents written."""
    assert report.scope.read == report.writes.total
    assert report.scope.changed <= report.scope.read
    return report.scope.read, report.scope.changed, report.writes.written


def assert_nothing_missed(found: NearDupe) -> None:
    """The fingerprint of each document is that of its current text."""
    report = found.enrich(check=True, dry_run=True)
    assert (report.writes.written, report.writes.unchanged) == (0, report.scope.documents)


class Meddling(ForwardingClient):
    """Another client writes after each bulk request, before its answer is known."""

    def __init__(self, client: Client, write: Callable[[int], None]) -> None:
        super().__init__(client)
        self.write = write
        self.number = 0

    def bulk(self, body: bytes, **more: Any) -> Any:
        answer = self.plain.bulk(body, **more)
        self.number += 1
        self.write(self.number)
        return answer


@pytest.mark.product("each")
def test_writes_of_others_between_our_own(client: Client, index_name: str) -> None:
    """Only their documents are read again."""
    filled(client, index_name)
    meddled = set()

    def meddle(number: int) -> None:
        for id in (f"d{number:02}", f"d{59 - number}"):
            change(client, index_name, id, {"text": text(("new", id))})
            meddled.add(id)

    report = NearDupe(index_name, Meddling(client, meddle)).enrich(batch=10, workers=1)
    assert report.writes.conflicts == 0
    assert len(meddled) > 10
    read, changed, written = numbers(NearDupe(index_name, client).enrich())
    assert written > 0
    assert read == changed <= len(meddled)
    assert_nothing_missed(NearDupe(index_name, client))
    assert numbers(NearDupe(index_name, client).enrich()) == (0, 0, 0)


def test_a_query_reads_within_it_and_hides_nothing_else(client: Client, index_name: str) -> None:
    found = filled(client, index_name)
    found.enrich()
    for id in ("d01", "d02"):
        change(client, index_name, id, {"text": text(("new", id)), "n": int(id == "d01")})
    assert numbers(found.enrich(query={"term": {"n": 1}})) == (1, 1, 1)
    assert numbers(found.enrich(query={"term": {"n": 1}})) == (0, 0, 0)
    assert numbers(found.enrich()) == (1, 1, 1)
    assert_nothing_missed(found)


@pytest.mark.parametrize("moment", [Moment(2, "before", of=FEED), Moment(2, "after", of="_bulk")])
def test_a_killed_run(client: Client, index_name: str, moment: Moment) -> None:
    """The next one notices what was changed meanwhile in documents that were written already."""
    found = filled(client, index_name)
    run_to_death(client, index_name, [("enrich", {"workers": 1})], moment)
    done = range(0, 60, 7)
    for k in done:
        change(client, index_name, f"d{k:02}", {"text": text(("new", k))})
    report = found.enrich()
    assert report.scope.unnoticed == {}
    assert report.writes.written >= len(done)
    assert_nothing_missed(found)
    assert numbers(found.enrich()) == (0, 0, 0)


def test_two_runs_at_the_same_time(client: Client, index_name: str) -> None:
    """Each adds its progress to that of the other."""
    found = filled(client, index_name)
    found.enrich()
    barrier, reports, ids = threading.Barrier(2, timeout=60), [], iter(["d40", "d41"])
    for k in range(30):
        change(client, index_name, f"d{k:02}", {"text": text(("new", k))})

    def meddle(number: int) -> None:
        if number == 1:
            barrier.wait()
            change(client, index_name, next(ids), {"text": text("newest")})

    def run() -> None:
        reports.append(NearDupe(index_name, Meddling(client, meddle)).enrich(batch=10, workers=1))

    threads = [threading.Thread(target=run) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert len(reports) == 2
    assert sum(one.writes.written for one in reports) == 30
    assert numbers(found.enrich())[2] == 2
    assert_nothing_missed(found)
    assert numbers(found.enrich()) == (0, 0, 0)


@pytest.mark.product("each")
def test_indices_with_different_numbers_of_shards(client: Client, index_name: str) -> None:
    """And one that was closed for a while, and one that is new."""
    for name, shards in (("a", 1), ("b", 3)):
        filled(client, f"{index_name}-{name}", shards=shards)
    found = NearDupe(f"{index_name}-a,{index_name}-b", client)
    assert numbers(found.enrich()) == (120, 0, 120)
    for name in "ab":
        change(client, f"{index_name}-{name}", "d07", {"text": text("new")})
    client.request("POST", path(f"{index_name}-b", "_close"))
    client.request("POST", path(f"{index_name}-b", "_open"), params={"wait_for_active_shards": 1})
    assert numbers(found.enrich()) == (2, 2, 2)
    client.request("DELETE", path(f"{index_name}-a"))
    filled(client, f"{index_name}-a", shards=2)
    change(client, f"{index_name}-b", "d08", {"text": text("new")})
    report = found.enrich()
    assert (numbers(report), report.scope.unnoticed) == ((61, 1, 61), {})
    change(client, f"{index_name}-a", "d08", {"text": text("new")})
    assert numbers(found.enrich()) == (1, 1, 1)
    assert_nothing_missed(found)


def test_keys_of_an_earlier_version(client: Client, index_name: str) -> None:
    """Changes before the first run that stores its progress are not known: it reads all documents, and says so, unless
    only new ones are wanted."""
    found = filled(client, index_name)
    found.enrich()
    client.request("DELETE", path(f"{index_name}-neardupe-groups", "_doc", FEED))
    change(client, index_name, "d01", {"text": text("new")})
    unknown = {index_name: "it was not processed before"}
    for _ in range(2):  # what was skipped is not forgotten
        report = found.enrich(new_only=True)
        assert (numbers(report), report.scope.unnoticed, report.scope.reread) == ((0, 0, 0), unknown, {})
    report = found.enrich()
    assert (report.scope.read, report.writes.written) == (report.scope.documents, 1)
    assert (report.scope.unnoticed, report.scope.reread) == ({}, unknown)
    change(client, index_name, "d02", {"text": text("new")})
    report = found.enrich()
    assert (numbers(report), report.scope.unnoticed, report.scope.reread) == ((1, 1, 1), {}, {})
    assert_nothing_missed(found)


def test_loaded_documents_that_change(client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    """`load` stores what it has written, so that only changed texts are read."""
    file = tmp_path / "texts.jsonl"
    texts = family("loaded", 6)
    file.write_text("".join(json.dumps({"id": f"d{n}", "text": one}) + "\n" for n, one in enumerate(texts)), "utf-8")
    near = NearDupe(index_name, client)
    make_index(client, index_name, settings={"number_of_shards": 3})
    near.init(Settings(("text",)))
    assert server_cli("load", index_name, str(file), "--json").json["writes"]["written"] == 6
    near.group()
    assert [one.size for one in near.groups()] == [6]
    change(client, index_name, "d3", {"text": text("another")})
    report = near.enrich()
    assert (numbers(report), report.scope.reread) == ((1, 1, 1), {})
    assert not near.group().scope.whole
    assert [one.size for one in near.groups()] == [5]
    file.write_text(json.dumps({"id": "d7", "text": texts[0]}) + "\n", "utf-8")
    assert server_cli("load", index_name, str(file), "--json").json["writes"]["written"] == 1
    assert numbers(near.enrich()) == (0, 0, 0)


@pytest.mark.parametrize("writer", ["fingerprinted", "load into a filled index"])
def test_documents_with_keys_of_others_that_change(
    client: Client, index_name: str, server_cli: Cli, tmp_path: Path, writer: str
) -> None:
    """The first `enrich` finds what has changed since the keys were written, by any client."""
    texts = family("written", 4)
    near = NearDupe(index_name, client)
    make_index(client, index_name)
    near.init(Settings(("text",)))
    actions = near.fingerprinted({"_id": f"d{n}", "text": one} for n, one in enumerate(texts))
    put(client, index_name, {one["_id"]: {k: v for k, v in one.items() if k[0] != "_"} for one in actions})
    if writer != "fingerprinted":
        file = tmp_path / "texts.jsonl"
        file.write_text(json.dumps({"id": "more", "text": texts[0]}) + "\n", "utf-8")
        assert server_cli("load", index_name, str(file)).code == 0
    near.group()
    change(client, index_name, "d1", {"text": text("another")})
    report = near.enrich()
    assert (report.writes.written, report.scope.reread) == (1, {index_name: "it was not processed before"})
    near.group()
    (left,) = near.groups()
    assert "d1" not in {member.id for member in left.members}
    assert numbers(near.enrich()) == (0, 0, 0)


@pytest.mark.parametrize("ranges", ["?", [[0, 10**30]], [[-1, 5]], [[5, 3]], [[0]], [[0, 10**9]]])
def test_stored_progress_that_is_no_progress(client: Client, index_name: str, ranges: Any) -> None:
    """It is replaced."""
    found = filled(client, index_name, shards=1)
    found.enrich()
    document = path(f"{index_name}-neardupe-groups", "_doc", FEED)
    value = client.request("GET", document)["_source"]["value"]
    (of_index,) = value[SETTINGS.scheme.id]["texts"].values()
    of_index["0"]["ranges"] = ranges
    client.request("PUT", document, body={"kind": "feed", "value": value})
    why = "restored to an earlier state" if ranges == [[0, 10**9]] else "not processed before"
    assert found.enrich().scope.reread == {index_name: f"it was {why}"}
    change(client, index_name, "d02", {"text": text("new")})
    assert numbers(found.enrich()) == (1, 1, 1)


def test_sequence_numbers_are_disabled(client: Client, index_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such an index accepts no updates either. No released server has the setting: another one takes its place."""
    monkeypatch.setattr(target, "_UNNUMBERED", "index.requests.cache.enable")
    filled(client, index_name, 1, 1, **{"index.requests.cache.enable": True})
    feed = ChangeFeed(opened(Index(index_name, client)), Consumer.TEXTS)
    assert feed.reason == f"sequence numbers of index {index_name} are disabled"
    assert (list(feed.shards), feed.changed(None)) == ([None], None)
    feed.store(whole=True)


def test_rewrites_of_another_consumer(client: Client, index_name: str) -> None:
    """They are noted as processed, but not if they replaced a version that was not."""
    found = filled(client, index_name, 10)
    found.enrich()
    change(client, index_name, "d01", {"text": text("new")})
    index = opened(Index(index_name, client))
    feed = ChangeFeed(index, Consumer.TEXTS)
    hits = list(hits_of(index, feed))
    assert {hit.id for hit in hits if not feed.has_processed(hit)} == {"d01"}
    for outcome in write(client, (rewrite(hit) for hit in hits), versions=True):
        feed.note_rewritten(outcome)
    feed.store(whole=False)
    assert numbers(found.enrich()) == (1, 1, 1)
    assert_nothing_missed(found)


def hits_of(index: Index, feed: ChangeFeed) -> Iterator[Hit]:
    for shard in feed.shards:
        for page in index.client.pages(index.path, {"query": {"match_all": {}}}, shard=shard):
            yield from page


def rewrite(hit: Hit) -> Action:
    """A write that keeps the text."""
    doc = {"doc": {"n": 1}}
    return Action("update", hit.index, hit.id, doc, hit.routing, hit.seq_no, hit.primary_term, shard=hit.shard)


def test_progress_in_many_ranges(client: Client, index_name: str) -> None:
    """A bounded number of ranges is stored; the documents in the others are read again."""
    filled(client, index_name, 10, 1)
    index = opened(Index(index_name, client))
    feed = ChangeFeed(index, Consumer.GROUPS)
    assert feed.unknown == {index_name: "it was not processed before"}
    feed.begin({index_name})
    put(client, index_name, {f"more{k}": {"n": k} for k in range(300)})
    feed = ChangeFeed(index, Consumer.GROUPS)
    for number in range(10, 310, 2):
        feed.note_written(Outcome(Action("update", index_name, "d00", {}, shard=0), 200, seq_no=number))
    feed.store(whole=False)
    feed = ChangeFeed(index, Consumer.GROUPS)
    done = [Hit(index_name, "d00", None, number, 1, {}, shard=0) for number in range(310)]
    assert sum(map(feed.has_processed, done)) == 11 + 63  # of the first range, and of others
    assert feed.unknown == {}
    assert isinstance(feed.changed(0), dict)
    assert ChangeFeed(index, Consumer.TEXTS).unknown == {index_name: "it was not processed before"}
    assert SeqNos([(3, 5)]).has(4)


class Life:
    """Random writes of other clients and random runs, also killed ones."""

    def __init__(self, client: Client, index: str, seed: int) -> None:
        self.client, self.index, self.rng, self.number = client, index, random.Random(seed), 0
        self.found = filled(client, index, 20, 2)

    def write(self, _: int = 0) -> None:
        """A write of another client: of a whole document, a part, the keys of another text, or a deletion."""
        self.number += 1
        id, new = f"d{self.rng.randrange(30):02}", text(("life", self.number))
        act = self.rng.choice(["text", "text", "number", "whole", "delete"])
        document = path(self.index, "_doc", id)
        if act == "whole":
            self.client.request("PUT", document, body={"text": new, "n": self.number % 3})
            return
        with suppress(NotFound, Conflict):
            if act == "delete":
                self.client.request("DELETE", document)
            else:
                doc = {"text": new} if act == "text" else {"n": self.number % 3}
                self.client.request("POST", path(self.index, "_update", id), body={"doc": doc})

    def enrich(self) -> None:
        meddling = Meddling(self.client, self.write)
        query = {"term": {"n": 1}} if self.rng.random() < 0.3 else None
        report = NearDupe(self.index, meddling).enrich(query=query, batch=5, workers=self.rng.choice([1, 2]))
        assert report.scope.unnoticed == {}
        numbers(report)

    def die(self) -> None:
        moment = Moment(self.rng.randint(1, 5), self.rng.choice(["before", "during", "after"]))
        run_to_death(self.client, self.index, [("enrich", {"workers": 1})], moment)

    def group(self) -> None:
        NearDupe(self.index, Meddling(self.client, self.write)).group(batch=5)

    def check(self) -> None:
        before = theirs(self.client, self.index)
        report = self.found.enrich()
        assert report.scope.unnoticed == {}
        assert_nothing_missed(self.found)
        assert numbers(self.found.enrich()) == (0, 0, 0)
        assert theirs(self.client, self.index) == before


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 23))])
@pytest.mark.product("each")
def test_nothing_is_missed(client: Client, index_name: str, seed: int) -> None:
    life = Life(client, index_name, seed)
    for step in range(12):
        for _ in range(life.rng.randint(0, 6)):
            life.write()
        life.rng.choice([life.enrich, life.enrich, life.die, life.group])()
        if step % 3 == 2:
            life.check()
