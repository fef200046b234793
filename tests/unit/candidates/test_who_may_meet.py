"""How the principal is chosen, and which documents are compared."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_tools import SETTINGS, columns, hits

from es_neardupe.candidates.fingerprints import classes_of, read_corpus
from es_neardupe.candidates.who_may_meet import GroupRules, Policy, ReadField, Window, parse_policy, parse_window
from es_neardupe.errors import SettingsError
from es_neardupe.options import Linkage

SITE, DAY = ReadField("site"), ReadField("published", date=True)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("longest", (None, False)),
        ("oldest", ("", False)),
        ("newest", ("", True)),
        ("rank:asc", ("rank", False)),
        ("meta.rank:desc", ("meta.rank", True)),
        ("a:b:asc", ("a:b", False)),
    ],
)
def test_policies(text: str, found: tuple[str | None, bool]) -> None:
    assert parse_policy(text) == found


@pytest.mark.parametrize("text", ["", "shortest", "rank", "rank:up", ":asc", "longest:asc:"])
def test_no_policies(text: str) -> None:
    with pytest.raises(SettingsError, match="FIELD:asc"):
        parse_policy(text)


def test_windows() -> None:
    assert parse_window("published:30") == ("published", 30.0)
    assert parse_window("a:b:0.5") == ("a:b", 0.5)
    for text in ("", "published", "published:", ":3", "published:-1", "published:nan", "published:inf", "published:x"):
        with pytest.raises(SettingsError, match="FIELD:DAYS"):
            parse_window(text)


@given(st.lists(st.lists(st.integers(0, 4), max_size=3)), st.booleans())
def test_places_sort_by_the_deciding_value(values: list[list[int]], descending: bool) -> None:
    policy = Policy("site", SITE, descending)
    sources: list[dict[str, Any]] = [{"site": one} if one else {} for one in values]
    places = policy.ranks(map(policy.deciding, sources)).tolist()
    deciding = [(max if descending else min)(one) if one else None for one in values]
    for one, place in zip(deciding, places, strict=True):
        for other, beside in zip(deciding, places, strict=True):
            if one is None or other is None:
                assert (place == beside) == (one == other)
                assert other is None or place > beside or one is not None
            else:
                assert (place < beside) == (one > other if descending else one < other)
    assert [Policy().deciding(one) for one in sources] == [None] * len(values)


def test_dates_are_days() -> None:
    window = Window(DAY, 3)
    assert window.day({"published": ["86400000", "172800000.5"]}) == 1
    assert math.isnan(window.day({}))


def test_documents_as_far_apart_as_the_window_may_meet() -> None:
    """But none farther, and none without a date."""
    rules, corpus = GroupRules(window=Window(DAY, 3)), columns(4, days=np.array([0.0, 3.0, 6.5, np.nan]))
    allowed = [rules.allow(corpus, np.full(4, row), np.arange(4)).tolist() for row in range(4)]
    none = [False] * 4
    assert allowed == [[True, True, False, False], [True, True, False, False], [False, False, True, False], none]


def test_what_is_read() -> None:
    rules = GroupRules(
        Linkage.CHAIN, Policy("published:asc", DAY), (SITE, ReadField("language")), window=Window(DAY, 7)
    )
    assert rules.columns == [
        {"field": "language"},
        {"field": "published", "format": "epoch_millis"},
        {"field": "site"},
    ]
    assert rules.scope({"site": ["b", "a"]}) == rules.scope({"site": ["a", "b"]}) == (("a", "b"), ())
    assert (GroupRules().columns, GroupRules().scope({"site": ["a"]})) == ([], ())


@given(st.lists(st.frozensets(st.sampled_from("abc"), max_size=3), min_size=1, max_size=12))
def test_documents_that_may_meet_across_a_field(values: list[frozenset[str]]) -> None:
    """Those without a common value; one without a value may meet every other, also its exact copy."""
    rules = GroupRules(across=SITE)
    found = hits({f"d{number}": "a b c" for number in range(len(values))})
    for hit, some in zip(found, values, strict=True):
        hit.source = {**hit.source, "site": sorted(some)}
    corpus = read_corpus([found], "neardupe", SETTINGS.scheme.bands, rules)
    rows = np.arange(len(values))
    for row, one in enumerate(values):
        expected = [one.isdisjoint(other) for other in values]
        assert rules.allow(corpus, np.full(len(rows), row), rows).tolist() == expected
        assert rules.allow(corpus, rows, np.int64(row)).tolist() == expected
    classes = [len(one) for one in classes_of(corpus)]
    assert sorted(classes) == sorted([1] * sum(map(bool, values)) + ([n] if (n := values.count(frozenset())) else []))
