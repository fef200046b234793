"""Killed at random moments and started again, a run ends as an undisturbed one does, field by field."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from kill_tools import Command, Moment, State, copies_of, put_back, requests_of, run_commands, run_to_death
from server_tools import JSON, family, make_index, put, send, versions, words

from es_neardupe import Settings, pipeline
from es_neardupe.clients import Client

SEED = 5
MOMENTS = 10
"""For each of the two beginnings: twenty on each server."""

NEW: list[Command] = [("enrich", {}), ("group", {})]
CHANGED: list[Command] = [("enrich", {"check": True}), ("group", {})]

Prepare = Callable[[Client, str], None]


def filled(client: Client, index: str) -> None:
    """Families of three, two copies of one text, and texts that are alone; no document has keys yet."""
    make_index(client, index, {"text": {"type": "text"}, "odd": {"type": "object", "enabled": False}})
    odd = {"e": 1e300, "one": 1.0, "none": None, "list": [[], {}, 2**53 + 1], "ünï": "\u2028"}
    documents: dict[str, JSON] = {"copy": {"text": " ".join(words("copies", 40))}}
    documents["copy2"] = documents["copy"]
    for n in range(120):
        documents |= {f"f{n:03}-{k}": {"text": text, "odd": odd} for k, text in enumerate(family(n, 3, length=60))}
        documents[f"alone{n}"] = {"text": " ".join(words(f"alone{n}", 20))}
    put(client, index, documents)
    pipeline.init(client, index, Settings(("text",), threshold=0.7))


def changed(client: Client, index: str) -> None:
    """The same after a first run, and then changed in every way that concerns groups."""
    filled(client, index)
    run_commands(client, index, NEW)
    actions: list[tuple[JSON, JSON | None]] = []

    def text(id: str, text: str, op: str = "update") -> None:
        source = {"text": text}
        actions.append(({op: {"_index": index, "_id": id}}, {"doc": source} if op == "update" else source))

    for n in range(0, 120, 6):
        base = family(n, 3, length=60)
        text(f"f{n:03}-0", " ".join(words(f"away{n}", 30)))  # the principal leaves
        text(f"f{n + 1:03}-0", base[0])  # one comes from elsewhere
        text(f"f{n + 2:03}-1", family(n + 2, 2, length=60)[1] + " and more words")  # a longer one: new principal
        actions.append(({"delete": {"_index": index, "_id": f"f{n + 3:03}-0"}}, None))
        text(f"f{n + 4:03}-2", family(n + 4, 3, length=60)[2], "index")  # our fields are gone
        text(f"new{n}", family(n + 5, 4, length=60)[3], "index")
    text("copy2", " ".join(words("no copy", 40)))
    send(client, actions)


BEGINNINGS = pytest.mark.parametrize(
    ("prepare", "commands"), [(filled, NEW), (changed, CHANGED)], ids=["new", "changed"]
)


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
    """Kill the commands at so many random moments, each time from the same beginning, and end them by a second run."""
    beginning = copies_of(client, index)
    put_back(client, beginning)
    before = versions(client, index)
    requests = requests_of(client, index, commands)
    wanted = State.of(client, index)
    untouched = {address for address, version in versions(client, index).items() if before.get(address) == version}
    print(f"seed {seed}")  # pytest shows it of a test that fails
    rng = random.Random(seed)
    for _ in range(number):
        moment = Moment(rng.randint(1, requests), rng.choice(["before", "during", "after"]))
        print(f"{moment} of {requests} requests")
        put_back(client, beginning)
        before = versions(client, index)
        run_to_death(client, index, commands, moment)
        run_commands(client, index, commands)
        assert State.of(client, index) == wanted
        after = versions(client, index)
        assert {address for address in untouched if after[address] != before[address]} == set()
    for name, options in commands:
        assert getattr(pipeline, name)(client, index, **options).written == 0
