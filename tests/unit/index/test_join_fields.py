"""Relations of join fields, and names of the hidden indices of rollover aliases; no server is needed."""

from __future__ import annotations

from typing import Any

import pytest

from es_neardupe import Settings
from es_neardupe.errors import IndexUnusable
from es_neardupe.index import queries
from es_neardupe.index.hidden_indices import HiddenIndex, hidden_index_name
from es_neardupe.index.mapping import (
    check_relations,
    lies_in,
    nested_objects,
    relation_in,
    relations,
    relations_to_skip,
)
from es_neardupe.index.rollover import RolloverAlias
from es_neardupe.index.target import IndexTarget

FORUM = {"properties": {"kind": {"type": "join", "relations": {"question": ["answer", "comment"], "answer": "vote"}}}}
SHOP = {"properties": {"of": {"properties": {"part": {"type": "join", "relations": {"shop": "ware"}}}}}}
PLAIN = {"properties": {"kind": {"type": "keyword"}}}


def test_relations_are_found_at_any_depth() -> None:
    assert dict(relations(FORUM["properties"])) == {"kind": {"question": ("answer", "comment"), "answer": ("vote",)}}
    assert dict(relations(SHOP["properties"])) == {"of.part": {"shop": ("ware",)}}
    assert not dict(relations(PLAIN["properties"]))


@pytest.mark.parametrize(
    ("mappings", "chosen", "skipped"),
    [
        ([PLAIN], (), {}),
        ([FORUM], (), {"kind": ("answer", "comment", "vote")}),
        ([FORUM], ("answer", "vote"), {"kind": ("comment", "question")}),
        ([FORUM], ("answer", "comment", "question", "vote"), {}),
        ([FORUM, PLAIN, SHOP], (), {"kind": ("answer", "comment", "vote"), "of.part": ("ware",)}),
        ([{}], (), {}),
    ],
)
def test_relations_to_skip(mappings: list[Any], chosen: tuple[str, ...], skipped: dict[str, tuple[str, ...]]) -> None:
    assert relations_to_skip(mappings, chosen) == skipped


def test_the_relation_of_a_document() -> None:
    assert relation_in({"kind": "answer"}, "kind") == "answer"
    assert relation_in({"kind": {"name": "answer", "parent": "1"}}, "kind") == "answer"
    assert relation_in({"of": {"part": "ware"}}, "of.part") == relation_in({"of.part": "ware"}, "of.part") == "ware"
    for source in ({}, {"kind": None}, {"kind": 7}, {"kind": {"parent": "1"}}, {"kind": ["answer"]}):
        assert relation_in(source, "kind") is None


def test_unknown_relations() -> None:
    check_relations("forum", FORUM, ("vote",))
    with pytest.raises(IndexUnusable, match=r"no relation reply, x\. Its relations: answer, comment, question, vote"):
        check_relations("forum", FORUM, ("reply", "vote", "x"))
    with pytest.raises(IndexUnusable, match="no join field"):
        check_relations("plain", PLAIN, ("reply",))


def test_relations_are_settings() -> None:
    chosen = Settings(("text",), relations=("vote", "answer", "vote"))
    assert chosen.relations == ("answer", "vote")
    assert Settings.from_meta(chosen.to_meta(), "neardupe").relations == chosen.relations
    assert "relations" not in Settings(("text",)).to_meta()
    assert chosen.differences(Settings(("text",))) == ["relations: answer+vote, not all but children"]
    with pytest.raises(IndexUnusable, match="relations is not a list of names"):
        Settings.from_meta(Settings(("text",)).to_meta() | {"relations": "answer"}, "neardupe")


def test_the_scope_as_a_query() -> None:
    of_kind = {"bool": {"should": [{"terms": {"kind": ["answer"]}}], "minimum_should_match": 1}}
    assert queries.of_relations({"kind": ("answer",)}) == of_kind
    assert queries.of_relations({}) == {"match_none": {}}
    assert queries.without_relations({}, None) is None
    query = {"term": {"language": "en"}}
    assert queries.without_relations({}, query) == query
    for scope, filtered in ((None, {"match_all": {}}), (query, query)):
        made = queries.without_relations({"kind": ("answer",)}, scope)
        assert made == {"bool": {"filter": [filtered], "must_not": [of_kind]}}


def test_fields_in_nested_objects() -> None:
    inner = {"type": "nested", "properties": {"text": {"type": "text"}}}
    properties = {"a": {"type": "nested", "properties": {"b": inner}}, "plain": {"properties": {"c": inner}}}
    objects = list(nested_objects(properties))
    assert objects == ["a", "a.b", "plain.c"]
    assert [lies_in(name, objects) for name in ("a.b.text", "a.x", "plain.c.text", "plain.x", "ab.x")] == [
        "a.b",
        "a",
        "plain.c",
        None,
        None,
    ]


def named(name: str, *indices: str, rollover: bool = False) -> str:
    alias = RolloverAlias(name, frozenset(indices), True, "") if rollover else None
    return hidden_index_name(IndexTarget(name, indices, Settings(("text",)), 10_000, alias), HiddenIndex.GROUPS)


def test_hidden_indices_of_a_rollover_alias_have_one_name() -> None:
    assert named("logs", ".ds-logs-1", rollover=True) == "neardupe-groups-logs"
    assert named("logs", ".ds-logs-1", ".ds-logs-2", rollover=True) == "neardupe-groups-logs"
    assert named("news", "news") == named("alias", "news") == "news-neardupe-groups"
    assert named("news", "news-1", "news-2") == "neardupe-groups-news"  # no template for news-* matches it
    alone = named(".ds-logs-1", ".ds-logs-1")
    assert alone.startswith("ds-logs-1-")
    assert alone.endswith("-neardupe-groups")
    assert alone != named("ds-logs-1", "ds-logs-1")
