"""Runs that are killed at random moments and started again end as an undisturbed one, field by field."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from kill_tools import Command, Moment, State, copies_of, put_back, run_commands, run_to_death, writes_of
from server_tools import JSON, family, make_index, put, send, versions, words

from es_neardupe import NearDupe, Settings
from es_neardupe.server.client import Client

SEED = 5
MOMENTS = 2
"""Kills on each server, for each of the two beginnings."""

FAMILIES = 60

NEW: list[Command] = [("enrich", {}), ("group", {"evidence": True})]
CHANGED: list[Command] = [("enrich", {"check": True}), ("group", {"check": True, "evidence": True})]
"""With ``check``, because an interrupted run is repeated on the whole index, which notices every deletion."""

Prepare = Callable[[Client, str], None]


def size(n: int) -> int:
    """Documents of a family."""
    return 5 if n % 6 == 5 else 3


def filled(client: Client, index: str) -> None:
    """Families, two copies of one text, and unique texts; no document has keys yet."""
    make_index(client, index, {"text": {"type": "text"}, "odd": {"type": "object", "enabled": False}})
    odd = {"e": 1e300, "one": 1.0, "none": None, "list": [[], {}, 2**53 + 1], "ünï": "\u2028"}
    documents: dict[str, JSON] = {"copy": {"text": " ".join(words("copies", 40))}}
    documents["copy2"] = documents["copy"]
    for n in range(FAMILIES):
        texts = family(n, size(n), length=60)
        documents |= {f"f{n:03}-{k}": {"text": text, "odd": odd} for k, text in enumerate(texts)}
        documents[f"alone{n}"] = {"text": " ".join(words(f"alone{n}", 20))}
    put(client, index, documents)
    NearDupe(index, client).init(Settings(("text",), threshold=0.7))


def changed(client: Client, index: str) -> None:
    """The same after a first run, and then with every kind of change that concerns groups."""
    filled(client, index)
    run_commands(client, index, NEW)
    actions: list[tuple[JSON, JSON | None]] = []

    def text(id: str, *parts: str, op: str = "update") -> None:
        source = {"text": " ".join(parts)}
        actions.append(({op: {"_index": index, "_id": id}}, {"doc": source} if op == "update" else source))

    for n in range(0, FAMILIES, 12):  # so few that group works on part of the index
        texts = {f"f{m:03}-{k}": one for m in range(n, n + 6) for k, one in enumerate(family(m, size(m), length=60))}
        leaves, comes, grows, dies, again, splits = (f"f{m:03}" for m in range(n, n + 6))
        text(f"{leaves}-0", *words(f"away{n}", 30))  # the principal
        text(f"{comes}-0", texts[f"{leaves}-0"])
        text(f"{grows}-1", texts[f"{grows}-1"], "and more words")  # the longest now, so the principal
        actions.append(({"delete": {"_index": index, "_id": f"{dies}-0"}}, None))
        text(f"{again}-2", texts[f"{again}-2"], op="index")  # the neardupe fields are gone
        for k in (1, 2, 3):  # most members have the id; it stays with the principal, which becomes a member
            text(f"{splits}-{k}", *words(f"part{n}", 40))
        text(f"{splits}-4", texts[f"{splits}-4"], "and more words")
        text(f"new{n}", texts[f"{grows}-2"], op="index")
    text("copy2", *words("no copy", 40))
    send(client, actions)


BEGINNINGS = pytest.mark.parametrize(
    ("prepare", "commands"), [(filled, NEW), (changed, CHANGED)], ids=["new", "changed"]
)


@pytest.mark.either("prepare")
@BEGINNINGS
def test_killed_at_random_moments(prepare: Prepare, commands: list[Command], client: Client, index_name: str) -> None:
    prepare(client, index_name)
    check_moments(client, index_name, commands, MOMENTS, SEED)


@pytest.mark.long
@BEGINNINGS
def test_killed_at_many_moments(prepare: Prepare, commands: list[Command], client: Client, index_name: str) -> None:
    prepare(client, index_name)
    check_moments(client, index_name, commands, 100, random.randrange(10**6))


def check_moments(client: Client, index: str, commands: list[Command], number: int, seed: int) -> None:
    """Kill the commands at this many random moments, each time from the same beginning, and complete them by a second
    run."""
    beginning = copies_of(client, index)
    put_back(client, beginning)
    before = versions(client, index)
    writes = writes_of(client, index, commands)
    wanted = State.of(client, index)
    untouched = {address for address, version in versions(client, index).items() if before.get(address) == version}
    print(f"seed {seed}")  # pytest shows it if the test fails
    rng = random.Random(seed)
    for part in range(number):  # one moment in each part of the run, so that every phase is covered
        moment = Moment(1 + int((part + rng.random()) / number * writes), rng.choice(["before", "during", "after"]))
        print(f"{moment} of {writes}")
        put_back(client, beginning)
        before = versions(client, index)
        run_to_death(client, index, commands, moment)
        run_commands(client, index, commands)
        assert State.of(client, index) == wanted
        after = versions(client, index)
        assert {address for address in untouched if after[address] != before[address]} == set()
    for name, options in commands:
        assert getattr(NearDupe(index, client), name)(**options).writes.written == 0
