"""Contents and text blocks of the documents in pairs, and lists of pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit_tools import FakeClient, words

from es_neardupe.commands.duplicates import texts as module
from es_neardupe.commands.duplicates.request_plan import ContentPlan, OverlapsPlan
from es_neardupe.commands.duplicates.results import DocumentPair, PairList
from es_neardupe.commands.duplicates.texts import contents, overlapping
from es_neardupe.progress import silent
from es_neardupe.records import Address

REFERENCES = [("i", "a", None), ("i", "b", "r"), ("j", "c", None), ("j", "d", None)]


def pairs(*both: tuple[int, int]) -> PairList:
    """Pairs of documents by their numbers, each a bit less similar than the one before."""
    left, right = np.array(both, np.intp).reshape(-1, 2).T
    return PairList(REFERENCES, left, right, 1 - np.arange(len(both)) / 10)


def texts(**by_id: Any) -> FakeClient:
    return FakeClient({(index, id): by_id[id] for index, id, _ in REFERENCES if id in by_id})


def test_documents_come_in_the_order_of_their_best_pairs() -> None:
    client = texts(**{id: {"t": id * 3} for id in "abcd"})
    found = contents(client, pairs((1, 3), (0, 1), (0, 2)), ContentPlan("c", "p", {"t": None}, None), silent)
    assert [one["id"] for one in found.documents] == ["b", "d", "a", "c"]
    assert found.documents[0] == {"index": "i", "id": "b", "fields": {"t": "bbb"}}
    assert (found.cut, found.missing, found.not_read) == (0, 0, 0)
    some = contents(client, pairs((1, 3), (0, 1), (0, 2)), ContentPlan("c", "p", {"t": None}, 3), silent)
    assert some.documents == found.documents[:3]
    assert some.not_read == 1


def test_values_are_truncated_at_any_depth_and_counted() -> None:
    source = {"t": ["12345", "12", 12345], "o": {"x": "abcdef", "y": [{"z": "abcd"}]}, "n": None, "e.f": "xyz"}
    plan = ContentPlan("c", "p", {"t": 3, "o": 4, "o.x": None, "n": 1, "e.f": 1, "none": None}, None)
    found = contents(texts(a=source), pairs((0, 1)), plan, silent)
    assert found.documents == (
        {
            "index": "i",
            "id": "a",
            "fields": {
                "t": ["123", "12", 12345],
                "o": {"x": "abcd", "y": [{"z": "abcd"}]},
                "o.x": "abcdef",
                "n": None,
                "e.f": "x",
            },
        },
    )
    assert (found.cut, found.missing) == (3, 1)


def test_overlaps_of_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CHARS", 100)
    monkeypatch.setattr(module, "_PAIRS", 2)
    base = words(0, 8)
    client = texts(a={"t": base, "u": "more"}, b={"t": f"and {base}"}, c={"t": "x" * 101})
    plan = OverlapsPlan("o", "p", ("t", "u"), 5, 3)
    found = overlapping(client, pairs((0, 1), (0, 2), (1, 3), (0, 3)), plan, silent)
    (one,) = found.pairs
    assert (one.a, one.b, one.similarity, one.overlaps.words) == (("i", "a"), ("i", "b"), 1.0, 8)
    assert one.overlaps.html_a.endswith("more")
    assert (found.too_long, found.missing, found.not_compared) == (1, 1, 1)


def test_pairs_are_created_on_access() -> None:
    some = pairs((0, 1), (0, 2), (1, 3))
    first = DocumentPair(Address("i", "a"), Address("i", "b"), 1.0)
    assert some[0] == first
    assert list(some)[1:] == some[1:] == [some[1], some[-1]]
    assert len(some) == 3
    assert first in some
    with pytest.raises(IndexError):
        some[3]
    explained = PairList(REFERENCES, some.left, some.right, some.similarity, lambda place: f"at {place}")
    assert explained[-1].explanation == "at 2"
