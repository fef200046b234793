"""`distinct`, compared with the same by brute force."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe import distinct, features, resemblance
from es_neardupe.errors import SettingsError

WORDS = st.lists(st.sampled_from("abcd"), max_size=12).map(" ".join)


@given(st.lists(WORDS, max_size=12), st.sampled_from([0.1, 0.25, 0.5, 0.8, 1.0]), st.integers(1, 3), st.data())
def test_as_by_brute_force(texts: list[str], least: float, shingle: int, data: st.DataObject) -> None:
    """Also with items that may not match because they have the same value."""
    values = data.draw(st.lists(st.sampled_from([None, None, 1, 2]), min_size=len(texts), max_size=len(texts)))
    made = features(texts, shingle)
    kept: list[int] = []
    removed = []
    for number, own in enumerate(made):
        others = [one for one in kept if values[one] is None or values[one] != values[number]]
        similar = [(resemblance(own, made[one]), -one) for one in others if len(own) and len(made[one])]
        best = max(similar, default=(0.0, 0))
        if best[0] >= least:
            removed.append((number, -best[1], best[0]))
        else:
            kept.append(number)
    found = distinct(
        list(enumerate(texts)),
        text=lambda item: item[1],
        min=least,
        shingle=shingle,
        across=lambda item: values[item[0]],
    )
    assert [item[0] for item in found.kept] == kept
    assert [(one.item[0], one.kept[0], one.similarity) for one in found.removed] == removed


def test_hits_of_a_search() -> None:
    text = "the quick brown fox jumps over the lazy dog"
    hits: list[dict[str, Any]] = [
        {"_id": "1", "_source": {"title": "x", "page": {"body": text}}},
        {"_id": "2", "_source": {"page": {"body": text.upper() + "."}}},
        {"_id": "3", "_source": {"page": {"body": "something else altogether, that is no copy"}}},
        {"_id": "4", "_source": {"title": "no body"}},
        {"_id": "5", "_source": {"page": {"body": ""}}},
    ]
    found = distinct(hits, text="page.body")
    assert [hit["_id"] for hit in found.kept] == ["1", "3", "4", "5"]
    assert [(one.item["_id"], one.kept["_id"], one.similarity) for one in found.removed] == [("2", "1", 1.0)]
    assert repr(found) == "Distinct(kept=4, removed=1)"
    assert len(distinct(hits, text="page.body", across="title").kept) == 4
    for hit in hits:
        hit["_source"]["title"] = "x"
    assert len(distinct(hits, text="page.body", across="title").kept) == 5
    assert distinct([hit["_source"] for hit in hits], text="page.body").kept[0] == hits[0]["_source"]


def test_an_item_is_compared_with_kept_ones_only() -> None:
    """The third resembles the second, which is removed, but not the first."""
    first, second, third = "a b c d e f g h", "a b c d e f g h i j", "c d e f g h i j k l"
    assert distinct([first, second, third], min=0.6).kept == (first, third)


def test_a_similarity_of_exactly_the_minimum() -> None:
    """Whatever the rounding of products of the minimum and numbers of words."""
    for words in range(2, 40):
        for common in range(1, words):
            same = [f"w{n}" for n in range(common)]
            one, other = (same + [f"{side}{n}" for n in range(words - common)] for side in "ab")
            least = common / (2 * words - common)
            found = distinct([" ".join(one), " ".join(other)], min=least, shingle=1)
            assert [copy.similarity for copy in found.removed] == [least]


def test_nothing() -> None:
    assert distinct([]).kept == ()
    assert distinct(["", " ", "..."]).kept == ("", " ", "...")


@pytest.mark.parametrize("least", [0, -1, 1.1])
def test_wrong_minimum(least: float) -> None:
    with pytest.raises(SettingsError, match="`min` must be above 0"):
        distinct(["a"], min=least)


def test_wrong_shingle() -> None:
    with pytest.raises(SettingsError, match="`shingle` must be 1 or more"):
        distinct(["a"], shingle=0)


@pytest.mark.parametrize(
    ("item", "text", "why"),
    [
        (1, None, "`text` must give a text for each item, not int"),
        (1, "body", "Field 'body' is for mappings, not for int"),
        ({"body": {"inner": 1}}, "body", "`text` must give a text for each item, not NoneType"),
        ({"body": "a"}, lambda item: None, "`text` must give a text for each item, not NoneType"),
    ],
)
def test_items_without_text(item: object, text: Any, why: str) -> None:
    with pytest.raises(TypeError, match=why):
        distinct([item], text=text)
