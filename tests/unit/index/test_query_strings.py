"""Query strings that no server answers are not sent."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from es_neardupe.errors import SettingsError
from es_neardupe.index.shown_fields import UserFields
from es_neardupe.options import parse_query
from es_neardupe.query_strings import problem_of_query, problem_of_string


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("bridge AND (ferry OR boat)", ""),
        ("(a) " * 2000, ""),
        ("(" * 100 + "a" + ")" * 100, ""),
        (")" * 200 + "(" * 100, ""),
        (r"\(" * 200 + '"' + "(" * 200 + r"\"" + '"', ""),
        ("(" * 101, "101 nested brackets"),
        (") " + "(a " * 101 + ")" * 101, "101 nested brackets"),
        ("a" * 10_001, "10,001 characters"),
        ("bridge* OR (title:ferr* -boat*^2) " * 100 + '"the bridge"~5 ' * 100, ""),
        (r"what\? a\*b \/x\/ a\~ " * 100 + '"a*b? /c/" ' * 100, ""),
        ("a*b " * 20 + "*", ""),
        ("a*b " * 21, "21 patterns"),
        ("a?b *a a~ a~2 /a b/ title:/(a|b)*/ " * 4, "24 patterns"),
        ("/" + "(a|b)" * 200 + "/", "1 pattern with 1,002 characters"),
    ],
)
def test_long_and_deep_strings(text: str, problem: str) -> None:
    assert problem in problem_of_string(text)
    assert bool(problem_of_string(text)) == bool(problem)
    for kind in ("query_string", "simple_query_string"):
        query: Any = {"bool": {"must": [{"term": {"a": 1}}, {kind: {"query": text, "fields": ["body"]}}]}}
        assert problem_of_query(query) == problem_of_string(text)
    assert problem_of_query({"match": {"body": text}}) == ""


def test_each_way_to_give_a_query() -> None:
    with pytest.raises(typer.BadParameter, match="5,000 nested brackets"):
        parse_query('{"query_string": {"query": "' + "(" * 5000 + '"}}')
    with pytest.raises(SettingsError, match="5,000 nested brackets"):
        UserFields({"body": "text"}, frozenset()).query_of("(" * 5000)
