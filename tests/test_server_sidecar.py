"""Keys beside an index, on real servers: the same answers as inline, and nothing of the user's index written."""

from __future__ import annotations

import random

import pytest
from conftest import Cli
from server_tools import JSON, change, family, hits, make_index, mapping, one_line, put, send, theirs
from sidecar_tools import PROPERTIES, Both, document, random_changes, state, texts, untouched

from es_neardupe import pipeline
from es_neardupe.clients import Client, path
from es_neardupe.errors import Blocked, IndexUnusable, NotInitialised, SchemeMismatch, SettingsError
from es_neardupe.settings import Settings


def test_groups_are_those_of_inline_keys_through_random_changes(client: Client, index_name: str) -> None:
    both, rng = Both(client, index_name), random.Random(7)
    both.init()
    documents = texts(1, 40)
    both.put(documents)
    for turn in range(3):
        if turn:
            random_changes(both, rng, documents, [f"n{turn}{k}" for k in range(5)])
        before = state(client, both.beside)
        pipeline.enrich(client, both.inline, check=True)
        pipeline.enrich(client, both.beside)
        options = {"check": True, "evidence": turn > 1}
        one, other = both.run(pipeline.group, **options)
        untouched(client, both.beside, before)
        assert both.groups(both.inline) == both.groups(both.beside), turn
        assert both.groups(both.beside).keys() == documents.keys()
        for name in ("documents", "groups", "grouped", "alone", "largest", "min_similarity", "matches", "stale"):
            assert one[name] == other[name], (turn, name)
        again = pipeline.group(client, both.beside, **options)
        assert (again.written, again.stale) == (0, 0)


def test_every_command_says_the_same(client: Client, index_name: str) -> None:
    both = Both(client, index_name)
    both.init(sample_mod=2)
    documents = texts(2, 40)
    both.put(documents)
    for index in both.names:
        pipeline.enrich(client, index, query={"range": {"date": {"lte": "2024-05-25"}}})
        pipeline.group(client, index, evidence=True, within="source", principal="date:asc")
    both.put({"late1": document("late1", documents["d000"]["text"]), "late2": document("late2", "quite new")})
    scope, by_url = {"term": {"source": "a"}}, {"query": {"match": {"title": "text"}}, "sort": ["url"]}
    id = next(id for id, one in documents.items() if one["text"] and one["date"] < "2024-05-20")
    commands = [
        (pipeline.stats, (), {}),
        (pipeline.groups, (), {}),
        (pipeline.suggest_keep, (), {"policy": "date:desc"}),
        (pipeline.similar, (), {"id": id, "min": 0.1}),
        (pipeline.similar, (), {"id": id, "min": 0.1, "query": scope}),
        (pipeline.contained, (), {"id": id, "min": 0.2, "query": scope}),
        (pipeline.moved, (f"http://example.org/{id}",), {"min": 0.1, "earlier": True}),
        (pipeline.distribution, (), {}),
        (pipeline.what_if, (), {"min": [0.5, 0.9]}),
        (pipeline.audit, (), {"sample": 100}),
        (pipeline.compare, (id, "late1"), {}),
        (pipeline.search, (by_url,), {"size": 5, "start": 3, "expand": True, "query": scope}),
        (pipeline.search, (by_url,), {"size": 50, "expand": True}),
        (pipeline.group, (), {"dry_run": True, "rebuild": True, "window": "7d:date"}),
        (pipeline.enrich, (), {"dry_run": True, "query": scope}),
    ]
    for command, arguments, options in commands:
        one, other = both.run(command, *arguments, **options)
        assert one == other, (command.__name__, options)
    pairs = [sorted((p.a[1], p.b[1], round(p.similarity, 9)) for p in pipeline.pairs(client, i)) for i in both.names]
    assert pairs[0] == pairs[1]
    assert pairs[0]
    orders = [[hit.id for hit in pipeline.search(client, index, by_url, size=9).hits] for index in both.names]
    assert orders[0] == orders[1]
