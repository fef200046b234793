"""Stored form of the rules: it is read back unchanged, and nothing else is accepted."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe import Settings
from es_neardupe.candidates.who_may_meet import GroupRules, Policy, ReadField, Window, parse_window
from es_neardupe.errors import SettingsError
from es_neardupe.groups.rules import RunRules, column_of, decode_rules, encode_rules
from es_neardupe.index.target import IndexTarget
from es_neardupe.options import DECIDING, FactKind, Linkage, Matching, MeasureName
from es_neardupe.verification.match_rules import MatchRules, WeightsUsed

SHARES = st.floats(0, 1, exclude_min=True)
NAMES = st.text(min_size=1)
COLUMNS = st.builds(ReadField, NAMES, st.booleans())
POLICIES = st.sampled_from(["longest", "oldest", "newest"]) | st.builds(
    "{}:{}".format, NAMES, st.sampled_from(["asc", "desc"])
)
WINDOWS = st.builds(Window, COLUMNS, st.floats(0, 1e300))
MATCHES = st.builds(
    MatchRules,
    measure=st.sampled_from(DECIDING),
    matching=st.none() | st.sampled_from(Matching),
    min=st.none() | SHARES,
    max=SHARES,
    features=st.lists(NAMES).map(tuple),
    ngram=st.none() | st.integers(1, 7),
    whitespace=st.booleans(),
    ignore_common=st.none() | SHARES,
    facts=st.lists(st.sampled_from([one.value for one in FactKind]), unique=True).map(tuple),
)
GROUPS = st.builds(
    GroupRules,
    linkage=st.sampled_from(Linkage),
    principal=st.builds(Policy, POLICIES, st.none() | COLUMNS, st.booleans()),
    within=st.lists(COLUMNS, max_size=3).map(tuple),
    across=st.none() | COLUMNS,
    window=st.none() | WINDOWS,
    max_bucket=st.integers(2, 10**9),
)
WEIGHTS = st.builds(WeightsUsed, st.integers(0, 10**9), st.text())
RULES = st.builds(
    RunRules,
    MATCHES,
    GROUPS,
    st.text(),
    st.text(),
    st.none() | WEIGHTS,
    SHARES,
    st.sampled_from(["respected", "ignored"]),
)
DEFAULT = RunRules(MatchRules(), GroupRules(), "v1-0", "resemblance", None, 0.8)


@given(RULES)
def test_stored_rules_read_back_to_the_same(rules: RunRules) -> None:
    assert decode_rules(json.loads(json.dumps(encode_rules(rules)))) == rules


@given(WINDOWS)
def test_windows_read_back_as_users_write_them(window: Window) -> None:
    assert parse_window(str(window)) == (window.column.field, window.days)


def test_the_stored_form() -> None:
    """A change of the stored form needs a new version."""
    assert encode_rules(DEFAULT) == {
        "version": 1,
        "match": {
            "measure": "resemblance",
            "matching": None,
            "passage": None,
            "min": None,
            "max": 1.0,
            "features": [],
            "ngram": None,
            "whitespace": False,
            "ignore_common": None,
            "facts": [],
        },
        "group": {
            "linkage": "star",
            "principal": {"name": "longest", "column": None, "descending": False},
            "within": [],
            "across": None,
            "window": None,
            "max_bucket": 200,
        },
        "scheme": "v1-0",
        "measure": "resemblance",
        "weights": None,
        "min": 0.8,
        "reviews": "respected",
    }


def changed(**parts: Any) -> dict[str, Any]:
    return {**encode_rules(DEFAULT), **parts}


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (None, "version None, not 1"),
        ([], "version None, not 1"),
        (changed(version=2), "version 2, not 1"),
        (changed(version="1"), "version 1, not 1"),
        (changed(match={**encode_rules(DEFAULT)["match"], "measure": "likeness"}), r"match\.measure"),
        (changed(match={**encode_rules(DEFAULT)["match"], "measure": "estimate"}), "no run stores"),
        (changed(match={**encode_rules(DEFAULT)["match"], "min": "0.5"}), r"match\.min"),
        (changed(match={}), "no run stores"),
        (changed(more=1), "no run stores"),
        (changed(group=None), "group"),
        (changed(group={**encode_rules(DEFAULT)["group"], "linkage": "ring"}), r"group\.linkage"),
        (changed(group={**encode_rules(DEFAULT)["group"], "max_bucket": True}), r"group\.max_bucket"),
        (
            changed(
                group={
                    **encode_rules(DEFAULT)["group"],
                    "principal": {"name": "best", "column": None, "descending": False},
                }
            ),
            "not 'best'",
        ),
    ],
)
def test_nothing_else_is_read(stored: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decode_rules(stored)


@pytest.mark.parametrize(
    ("change", "shown"),
    [
        (lambda one: one, "measure resemblance, min 0.8 (the threshold of the index), max 1.0, "),
        (lambda one: replace(one, match=MatchRules(min=0.8)), "min 0.8, max 1.0"),
        (lambda one: replace(one, match=MatchRules(ignore_common=0.2)), "ignore-common 0.2"),
        (lambda one: replace(one, match=MatchRules(facts=("amount", "name"))), "max 1.0, facts amount and name, "),
        (
            lambda one: replace(one, measure="weighted", weights=WeightsUsed(3, "then")),
            "measure weighted, weights then",
        ),
        (lambda one: one, "max-bucket 200, linkage star, principal longest"),
        (
            lambda one: replace(
                one,
                group=GroupRules(
                    Linkage.CHAIN,
                    within=(ReadField("lang"), ReadField("site")),
                    window=Window(ReadField("at", True), 30),
                ),
            ),
            "linkage chain, principal longest, within lang and site, window at:30",
        ),
    ],
)
def test_all_rules_are_named(change: Callable[[RunRules], RunRules], shown: str) -> None:
    assert shown in str(change(DEFAULT))


def test_an_option_changes_one_rule() -> None:
    before = MatchRules().having({"measure": "bag", "ngram": 2, "min": 0.7, "max": 0.9})
    assert before.having({}) == before
    assert before.having({"min": 0.5}) == replace(before, min=0.5)
    assert before.having({"ngram": 3}) == replace(before, ngram=3)
    assert MatchRules(whitespace=True).having({"whitespace": False}) == MatchRules()
    assert MatchRules(features=("words",)).having({"features": []}) == MatchRules()
    for one in (one for one in MeasureName if one.symbol):
        assert before.having({"measure": one.symbol}) == before.having({"measure": one.value})
    for wrong in ({"measure": "estimate"}, {"matching": "loose"}, {"features": ["nothing(2)"]}):
        with pytest.raises(SettingsError):
            before.having(wrong)


def test_a_text_field_stands_for_its_only_multi_field_with_values() -> None:
    """As the dynamic mapping makes it. A field of an object, or one of several multi-fields, has to be named."""
    keyword, text = {"type": "keyword"}, {"type": "text"}
    properties = {
        "doc_id": text | {"fields": {"keyword": keyword, "english": text}},
        "place": {"properties": {"city": text | {"fields": {"raw": keyword}}, "zip": keyword}},
        "name": text | {"fields": {"raw": keyword, "lower": keyword}},
        "day": keyword | {"fields": {"text": text}},
    }
    target = IndexTarget("news", ("news",), Settings(("text",)), 10000, mappings={"news": {"properties": properties}})
    names = ("doc_id.keyword", "place.city.raw", "place.zip", "name.raw", "name.lower", "day")
    types = dict.fromkeys(names, "keyword")
    for given_name, field in {"doc_id": "doc_id.keyword", "place.city": "place.city.raw", "day": "day"}.items():
        assert column_of(given_name, types, target) == ReadField(field)
    for refused in ("place", "name", "doc_id.english", "doc"):
        with pytest.raises(SettingsError, match="no field with values to compare"):
            column_of(refused, types, target)
