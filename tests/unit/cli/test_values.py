"""Values of arguments in Python: types and ranges are checked before anything is sent to a server."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from unit_tools import FakeClient

from es_neardupe import Address, NearDupe, Scheme, Settings, asgi, distinct, features, fingerprints
from es_neardupe.errors import SettingsError
from es_neardupe.keys.fingerprint import signatures
from es_neardupe.options import MeasureName
from es_neardupe.signatures import checked_values, signature_of


@pytest.fixture
def news() -> NearDupe:
    return NearDupe("news", FakeClient())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda news: news.similar(text=5), "`text` must be a text, not 5."),
        (lambda news: news.similar(id="1", min="0.8"), "`min` must be a number, not '0.8'."),
        (lambda news: news.similar(id="1", top=2.5), "`top` must be a whole number, not 2.5."),
        (lambda news: news.similar(id="1", top=0), "`top` must be 1 or more, not 0."),
        (lambda news: news.similar(id="1", top=None), "`top` must be a whole number, not None."),
        (lambda news: news.similar(id="1", top=True), "`top` must be a whole number, not True."),
        (lambda news: news.similar(id="1", query="x:1"), "`query` must be a dict, not 'x:1'."),
        (
            lambda news: news.similar(id="1", query={"range": {"date": {"gte": datetime(2026, 1, 1)}}}),
            "`query` must be JSON: Object of type datetime is not JSON serializable.",
        ),
        (
            lambda news: news.enrich(query={"term": {"size": float("nan")}}),
            "`query` must be JSON: Out of range float values are not JSON compliant.",
        ),
        (lambda news: news.pairs(fields=3), "`fields` must be a list, not 3."),
        (lambda news: news.enrich(workers=65), "`workers` must lie between 1 and 64, not 65."),
        (lambda news: news.enrich(batch=0), "`batch` must lie between 1 and 10,000, not 0."),
        (lambda news: news.enrich(slice=(1,)), "`slice` must be a pair, not (1,)."),
        (lambda news: news.enrich(dry_run=1), "`dry_run` must be True or False, not 1."),
        (lambda news: news.group(ignore_common="often"), "`ignore_common` must be a number, not 'often'."),
        (lambda news: news.what_if(min=0.5), "`min` must be a list, not 0.5."),
        (lambda news: news.stats(buckets=101), "`buckets` must lie between 1 and 100, not 101."),
        (lambda news: news.distribution(sample=1), "`sample` must be 2 or more, not 1."),
        (lambda news: news.init(Settings(("text",), threshold="0.5")), "threshold must be a number, not '0.5'."),  # type: ignore[arg-type]
        (lambda news: news.init(Settings(("text",), bands=4.5, rows=2)), "bands must be a whole number, not 4.5."),  # type: ignore[arg-type]
    ],
)
def test_wrong_values(news: NearDupe, call: Callable[[NearDupe], Any], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        call(news)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("command", "values"),
    [
        (NearDupe.similar, {"min": 1, "top": np.int64(3), "fields": ("title",), "query": {"match_all": {}}}),
        (NearDupe.similar, {"id": Address("news-1", "1"), "text": None, "measure": MeasureName.EDIT}),
        (NearDupe.group, {"min": np.float32(0.5), "facts": "figures", "within": None, "memory": 10**9}),
        (NearDupe.group, {"ignore_common": "auto"}),
        (NearDupe.enrich, {"slice": [1, 2], "since": ("updated", "now-1d"), "batch": 10_000}),
        (NearDupe.what_if, {"min": [0.5, 0.6]}),
    ],
)
def test_values_of_other_types_that_say_the_same(command: Callable[..., Any], values: dict[str, Any]) -> None:
    assert checked_values(signature_of(command).parameters, values) == values


@pytest.mark.parametrize(
    "call",
    [
        lambda news: news.load("docs/articles.jsonl"),
        lambda news: news.similar(id="1", fields="title"),
        lambda news: news.pairs(within="title"),
        lambda news: news.pairs(features="title:words"),
        lambda news: news.distribution(measure="edit"),
        lambda news: news.distribution(shingle="3"),
        lambda news: list(news.moved_all("https://news.example")),
        lambda news: news.withdraw("one"),
        lambda news: news.decide("same", "1", "2", author="Ada"),
        lambda news: news.decide(parts=["ab", "cd"], author="Ada"),
        lambda news: news.migrate(fields="body"),
        lambda news: list(news.fingerprinted("{}")),
        lambda news: asgi(news, token="0123456789abcdef", hosts="tools.example"),
        lambda news: asgi(news, token="0123456789abcdef", fields="title"),
        lambda news: Settings("text"),  # type: ignore[arg-type]
        lambda news: Settings(("text",), relations="reply"),  # type: ignore[arg-type]
        lambda news: distinct("some text"),
        lambda news: features("some text", 5),
        lambda news: fingerprints("some text", Scheme.for_threshold(0.8)),
        lambda news: signatures("some text", Scheme.for_threshold(0.8)),
    ],
)
def test_a_list_is_never_one_text(news: NearDupe, call: Callable[[NearDupe], Any]) -> None:
    with pytest.raises(SettingsError, match=r"` must be a list, not one text: \['"):
        call(news)


@pytest.mark.parametrize(
    ("command", "values", "read"),
    [
        (NearDupe.pairs, {"fields": iter(["title"])}, {"fields": ["title"]}),
        (NearDupe.pairs, {"within": {"title"}}, {"within": ["title"]}),
        (NearDupe.pairs, {"facts": iter(["figures"])}, {"facts": ["figures"]}),
        (NearDupe.what_if, {"min": iter([0.5, 0.6])}, {"min": [0.5, 0.6]}),
        (NearDupe.load, {"paths": iter(["a.jsonl"])}, {"paths": ["a.jsonl"]}),
        (NearDupe.load, {"paths": Path("a.jsonl")}, {"paths": Path("a.jsonl")}),
        (NearDupe.distribution, {"labels": Path("a.csv")}, {"labels": Path("a.csv")}),
        (NearDupe.withdraw, {"ids": iter(["one"])}, {"ids": ["one"]}),
        (NearDupe.decide, {"others": iter(["2"])}, {"others": ["2"]}),
        (NearDupe.decide, {"parts": iter([iter(["1"]), ("2", "3")])}, {"parts": [["1"], ("2", "3")]}),
    ],
)
def test_an_iterator_is_read_once(command: Callable[..., Any], values: dict[str, Any], read: dict[str, Any]) -> None:
    assert checked_values(signature_of(command).parameters, values) == read


def test_iterators_outside_of_an_index() -> None:
    texts, scheme = ["one two three four five six", "seven"], Scheme.for_threshold(0.8)
    assert Settings(iter(["text"])).fields == ("text",)  # type: ignore[arg-type]
    assert distinct(iter(texts)).kept == tuple(texts)
    assert [len(one) for one in features(iter(texts), 5)] == [2, 1]  # type: ignore[arg-type]
    assert fingerprints(iter(texts), scheme) == fingerprints(texts, scheme)  # type: ignore[arg-type]
    assert (signatures(iter(texts), scheme) == signatures(texts, scheme)).all()  # type: ignore[arg-type]
