"""Writing of groups: documents, order, and runs that are killed."""

from __future__ import annotations

import random
import threading
from typing import Any

import numpy as np
import pytest
from group_world import World, worlds
from unit_tools import FakeClient, hits

from es_neardupe.candidates.fingerprints import read_corpus
from es_neardupe.errors import Unreachable
from es_neardupe.groups.write import changes, write_groups
from es_neardupe.index.settings import Settings
from es_neardupe.index.storage.field_writes import FieldWriter
from es_neardupe.records import FingerprintColumns, Grouping, Groupings


class Index(FakeClient):
    """Client that stores documents until it is killed after a number of them."""

    def __init__(self, world: World, lives: float = float("inf")) -> None:
        super().__init__()
        self.world, self.lives, self.order = world, lives, list[int]()
        self.lock = threading.Lock()
        self.answer = self.store

    def bulk(self, body: bytes, *, params: Any = None, before: Any = None) -> Any:
        with self.lock:
            answer = super().bulk(body)
            if self.lives <= 0:
                raise Unreachable("killed")
            return answer

    def store(self, op: str, meta: dict[str, Any], body: dict[str, Any]) -> dict[str, Any]:
        assert op == "update"
        assert set(body) == {"doc"}
        self.lives -= 1
        if self.lives >= 0:
            row = int(meta["_id"][1:])
            self.order.append(row)
            self.world.stored[row] = Grouping(**body["doc"]["nd"])
        return {"status": 200}


def write(index: Index, dice: random.Random) -> Groupings:
    """Write as a run of ``group``, the registry first, and return the new groupings."""
    wanted = index.world.wanted()
    index.world.register(wanted)
    corpus = index.world.corpus()
    writer = FieldWriter(index, Settings(("text",), prefix="nd"), None)
    write_groups(writer, corpus, changes(corpus, wanted), batch=dice.randint(1, 3), workers=dice.randint(1, 3))
    return wanted


@pytest.mark.parametrize("cases", [100, pytest.param(400, marks=pytest.mark.long)])
def test_killed_runs_end_as_one_run(cases: int) -> None:
    """The real writer with several concurrent requests, killed repeatedly after any number of documents."""
    kills = 0
    for world, dice in worlds(cases):
        straight = world.wanted()
        while True:
            try:
                assert write(Index(world, lives=dice.randint(1, 6)), dice) == straight
                break
            except Unreachable:
                kills += 1
        assert {row: world.stored[row] for row in straight} == straight
        assert changes(world.corpus(), world.wanted()) == {}
    assert kills > cases / 4


def test_principals_come_first() -> None:
    for world, dice in worlds(100):
        index = Index(world)
        wanted = write(index, dice)
        flags = [wanted[row].principal for row in index.order]
        principals = sum(flags)
        assert flags == [True] * principals + [False] * (len(flags) - principals)
        assert len(set(index.order)) == len(index.order)


SETTINGS = Settings(("text",))


def corpus_of(texts: dict[str, str]) -> FingerprintColumns:
    return read_corpus([hits(texts)], SETTINGS.prefix, 16)


def groupings(size: int, rows: dict[int, Grouping]) -> Groupings:
    """New groupings of some of the rows, each with its principal among them."""
    ids = sorted({one.group for one in rows.values()})
    group_of, similarity = np.full(size, -1, np.int32), np.full(size, np.nan)
    principals = np.zeros(len(ids), np.intp)
    for row, one in rows.items():
        group_of[row], similarity[row] = ids.index(one.group), one.similarity
        if one.principal:
            principals[ids.index(one.group)] = row
    made = Groupings(group_of, similarity, principals, np.array([id.encode() for id in ids], "S16"))
    assert made == rows
    return made


def test_what_is_sent() -> None:
    corpus = corpus_of({"1": "a b c d e", "2": "a b c d f"})
    client = FakeClient()
    wanted = groupings(2, {1: Grouping("g", False, 0.875), 0: Grouping("g", True, 1.0)})
    tally = write_groups(FieldWriter(client, SETTINGS, None), corpus, wanted, batch=10, workers=1)
    sent = [pair for request in client.bulks for pair in request]
    assert sent == [
        (
            {"update": {"_index": "i", "_id": "1", "if_seq_no": 1, "if_primary_term": 1}},
            {"doc": {"neardupe": {"group": "g", "principal": True, "similarity": 1.0}}},
        ),
        (
            {"update": {"_index": "i", "_id": "2", "if_seq_no": 1, "if_primary_term": 1}},
            {"doc": {"neardupe": {"group": "g", "principal": False, "similarity": 0.875}}},
        ),
    ]
    assert +tally.counts == {"written": 2}


@pytest.mark.parametrize(
    ("now", "counted"),
    [
        ("same", {"written": 1}),
        ("other fields", {"written": 1}),
        ("other text", {"conflicts": 1}),
        ("no keys", {"conflicts": 1}),
        ("something else", {"conflicts": 1}),
        ("deleted", {"deleted": 1}),
    ],
)
def test_conflicts(now: str, counted: dict[str, int]) -> None:
    """A document that another client changed is read again: it gets its grouping, or is left for the next run."""
    (hit,) = hits({"1": "a b c d e"})
    (other,) = hits({"1": "z"})
    sources: dict[str, Any] = {
        "same": hit.source,
        "other fields": {**hit.source, "likes": 5},
        "other text": other.source,
        "no keys": {"text": "a b c d e"},
        "something else": {"neardupe": ["a", {"content": 5}]},
    }
    client = FakeClient({("i", "1"): sources[now]} if now in sources else {})
    client.answer = lambda op, meta, body: (
        {"status": 200}
        if len(client.bulks) > 1
        else {"status": 409, "error": {"type": "version_conflict_engine_exception", "reason": "x"}}
    )
    corpus = corpus_of({"1": "a b c d e"})
    tally = write_groups(
        FieldWriter(client, SETTINGS, None),
        corpus,
        groupings(1, {0: Grouping("g", True, 1.0)}),
        batch=10,
        workers=1,
    )
    assert {name: number for name, number in tally.counts.items() if number} == counted


def test_endless_conflicts_end() -> None:
    (hit,) = hits({"1": "a b c d e"})
    client = FakeClient({("i", "1"): hit.source})
    client.answer = lambda op, meta, body: {"status": 409, "error": {"type": "version_conflict", "reason": "x"}}
    corpus = corpus_of({"1": "a b c d e"})
    tally = write_groups(
        FieldWriter(client, SETTINGS, None),
        corpus,
        groupings(1, {0: Grouping("g", True, 1.0)}),
        batch=10,
        workers=1,
    )
    assert {name: number for name, number in tally.counts.items() if number} == {"conflicts": 1, "unsettled": 1}
    assert 1 < len(client.bulks) < 20


def test_deleted_and_refused_are_counted() -> None:
    answers: dict[str, dict[str, Any]] = {
        "1": {"status": 404, "error": {"type": "document_missing_exception", "reason": "x"}},
        "2": {"status": 400, "error": {"type": "mapper_parsing_exception", "reason": "bad"}},
        "3": {"status": 200},
    }
    client = FakeClient()
    client.answer = lambda op, meta, body: answers[meta["_id"]]
    corpus = corpus_of({"1": "a", "2": "b", "3": "c"})
    wanted = groupings(3, {row: Grouping(f"g{row}", True, 1.0) for row in range(3)})
    tally = write_groups(FieldWriter(client, SETTINGS, None), corpus, wanted, batch=10, workers=1)
    assert {name: number for name, number in tally.counts.items() if number} == {
        "deleted": 1,
        "refused": 1,
        "written": 1,
    }
    assert tally.refusals == ("mapper_parsing_exception: bad",)


def test_nothing_to_write_sends_nothing() -> None:
    client = FakeClient()
    writer, corpus = FieldWriter(client, SETTINGS, None), corpus_of({"1": "a"})
    tally = write_groups(writer, corpus, groupings(1, {}), batch=10, workers=1)
    assert client.bulks == []
    assert not any(tally.counts.values())
