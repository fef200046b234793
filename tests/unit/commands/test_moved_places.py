"""Places in their order, and as cells of a table that no spreadsheet computes."""

from __future__ import annotations

import csv
import io
import random
import re
from contextlib import redirect_stdout
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.cli.output import print_csv, without_controls
from es_neardupe.commands.moved import documents
from es_neardupe.commands.moved.report import NewPlace
from es_neardupe.commands.moved.steps import in_order
from es_neardupe.errors import SettingsError
from es_neardupe.tables import Table

DATES = st.sampled_from([None, "2024-01-01T00:00:00.000Z", "2024-01-01T00:00:00.000001Z", "2024-02-01T00:00:00.000Z"])
PLACES = st.builds(
    NewPlace,
    address=st.sampled_from("abc"),
    date=DATES,
    similarity=st.sampled_from([0.8, 0.9, 1.0]),
    replaced=DATES,
    index=st.just("i"),
    id=st.sampled_from("123456"),
    basis=st.just("texts"),
    measure=st.just("resemblance"),
    known_at=st.none(),
)


@given(st.lists(PLACES, unique_by=lambda one: one.id), st.randoms())
def test_the_order_is_one_whatever_came_first(places: list[NewPlace], rng: random.Random) -> None:
    shuffled = list(places)
    rng.shuffle(shuffled)
    assert in_order(shuffled) == in_order(places)
    found = in_order(places)
    assert sorted(found, key=repr) == sorted(places, key=repr)
    ranks = [(-one.similarity, one.replaced is not None) for one in found]
    assert ranks == sorted(ranks)
    for one, after in pairwise(found):
        if (one.similarity, one.replaced is None) == (after.similarity, after.replaced is None):
            assert after.date is None or not one.older_than(after.date)


def test_fractions_of_seconds_count() -> None:
    place = NewPlace("a", "2024-01-01T00:00:00.000Z", 1.0, None, "i", "1", "texts", "resemblance", None)
    assert place.older_than("2024-01-01T00:00:00.000001Z")
    assert not place.older_than("2024-01-01T00:00:00.000Z")
    assert not place.older_than("2023-12-31T23:59:59.999999Z")


@given(st.text(st.characters()))
def test_cells_are_harmless_and_come_back(text: str) -> None:
    """Whatever an address holds, its row has no control characters but tabs and line breaks, and no formula."""
    with redirect_stdout(io.StringIO(newline="")) as printed:
        print_csv(Table({"address": str, "end": str}, [(text, "end")]))
    assert without_controls(lines := re.sub(r"[\t\n]", "", printed.getvalue())) == lines
    heading, (cell, end) = csv.reader(io.StringIO(printed.getvalue(), newline=""))
    assert heading == ["address", "end"]
    assert cell.count("\n") == text.count("\n"), "line breaks are kept"
    assert end == "end"
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
    assert cell.removeprefix("'") == text.replace("\r\n", "\n").removeprefix("'") or "\ufffd" in cell


def test_the_url_field_is_guessed_only_if_one_field_has_such_a_name() -> None:
    index: Any = SimpleNamespace(name="news")
    assert documents._guessed_address(index, ["title.keyword", "url.keyword"]) == "url.keyword"
    for keywords, number in ((["link", "url"], "2 keyword fields have"), (["title"], "no keyword field has")):
        with pytest.raises(SettingsError, match=f"Cannot guess the URL field of index news: {number}"):
            documents._guessed_address(index, keywords)
