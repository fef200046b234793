"""Aliases and data streams that get new indices by rollover, from what a server answers about a name."""

from __future__ import annotations

import pytest

from es_neardupe.errors import IndexUnusable
from es_neardupe.index.rollover import RolloverAlias, _following, alias_named, rollover_aliases


@pytest.mark.parametrize(
    ("index", "following"),
    [("logs-000001", "logs-000002"), ("logs-000009", "logs-000010"), ("a-b-7", "a-b-000008"), ("news", "news-2")],
)
def test_the_next_index(index: str, following: str) -> None:
    assert _following(index) == following


def test_only_an_alias_with_a_write_index_rolls_over() -> None:
    aliases = {
        "logs-1": {"logs": {"is_write_index": False}, "all": {}},
        "logs-2": {"logs": {"is_write_index": True}, "all": {}},
    }
    found = rollover_aliases("logs", aliases, {"b": "stream", "a": "stream"})
    alias = RolloverAlias("logs", frozenset(("logs-1", "logs-2")), False, "logs-2")
    assert found == [RolloverAlias("stream", frozenset("ab"), True, ""), alias]
    assert (alias_named(found, "logs"), alias_named(found, "all")) == (alias, None)


def test_an_alias_with_a_filter_is_refused_if_it_was_named() -> None:
    aliases = {"logs-1": {"errors": {"filter": {"match_all": {}}}, "logs": {"is_write_index": True}}}
    assert len(rollover_aliases("logs", aliases, {})) == 1
    with pytest.raises(IndexUnusable, match="Alias errors of index logs-1 has a filter"):
        rollover_aliases("logs,errors", aliases, {})
