"""Requests for duplicates on real servers, from Python."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Cli, read_jsonl
from server_tools import change, delete_all, jaccard, make_index, new_name, put, true_pairs

from es_neardupe import NearDupe, Settings
from es_neardupe.candidates import spill_to_disk
from es_neardupe.commands.duplicates.results import (
    ContentStageReport,
    DuplicatesReport,
    OverlapsStageReport,
    PairsStageReport,
)
from es_neardupe.errors import IndexUnusable, NotFound, NotInitialised, RequestError, SettingsError
from es_neardupe.server.client import Client, path
from es_neardupe.verification import current_texts

TITLE = {"title": {"type": "text"}, "copy": {"type": "text"}, "kind": {"type": "keyword"}}
PASSED, FAILED, OUT, CANDIDATES = "Pairs passing", "Pairs failing", "Out of scope pairs", "Candidate pairs"


def source(kind: str, *fields: str) -> dict[str, Any]:
    """A leaf of a feature tree."""
    return {"type": f"featureSource:{kind}", "fields": {"type": "fields:simple", "fields": list(fields or ("title",))}}


def flat(inner: dict[str, Any]) -> dict[str, Any]:
    return {"type": "featureSource:flatten", "source": inner}


def ngrams(window: int, inner: dict[str, Any]) -> dict[str, Any]:
    return {"type": "featureSource:ngrams", "window": window, "source": inner}


WORDS = flat(source("words"))


def ratio(features: dict[str, Any]) -> dict[str, Any]:
    return {"type": "pairwiseSimilarity:featureIntersectionToUnionRatio", "features": features}


def stage(grouping: Any, similarity: dict[str, Any], *, min: float = 0.0, maximum: int = 200, **more: Any) -> Any:
    """One stage that finds pairs."""
    return {
        "type": "documentPairs:duplicates",
        "hashGrouping": {"pairing": {"maxHashGroupSize": maximum}, "features": grouping},
        "validation": {"pairwiseSimilarity": similarity, "min": min, "max": 1},
        "output": {"explanations": True},
        **more,
    }


def run(client: Client, index: str, made: Any, **options: Any) -> PairsStageReport:
    """The answer of a request of one stage; its diagnostics reconcile."""
    report = NearDupe(index, client).duplicates({"stages": {"pairs": made}}, **options)
    found = report.stages["pairs"]
    assert isinstance(found, PairsStageReport)
    counted = numbers(found)
    assert counted[CANDIDATES] == counted[PASSED] + counted[FAILED] + counted[OUT]
    assert counted[PASSED] == len(found.pairs)
    return found


def numbers(found: PairsStageReport) -> dict[str, Any]:
    """The counters of all headings together."""
    return {name: value for part in found.diagnostics.labelled().values() for name, value in part.items()}


def listed(found: PairsStageReport) -> list[tuple[str, str, float]]:
    return [(pair.a[1], pair.b[1], pair.similarity) for pair in found.pairs]


def fill(client: Client, index: str) -> str:
    """Ids with a slash, a blank, and letters of other scripts."""
    make_index(client, index, TITLE)
    titles = {"a/1": "Lucy had a gray cat.", "b 2": "Lucy had a blue cat.", "é猫": "Lucy had a gray cat.", "d": "Dogs"}
    put(client, index, {id: {"title": title} for id, title in titles.items()})
    return index


@pytest.fixture(scope="module")
def cats(client: Client, shared_index: str) -> str:
    """The index of all tests that change nothing."""
    return fill(client, shared_index)


def test_the_examples_of_the_cats(client: Client, cats: str) -> None:
    found = run(client, cats, stage(source("values"), ratio(source("values")), min=1))
    assert listed(found) == [("a/1", "é猫", 1.0)]
    (pair,) = found.pairs
    assert pair.explanation == "Documents share 1 out of 1 distinct feature (entire values from field: title)."
    assert list(found.diagnostics.labelled()) == [
        "Computing feature hashes",
        "Aggregating results",
        "Validating pairs using pairwiseSimilarity:featureIntersectionToUnionRatio [entire values from field: title]",
    ]
    counted = numbers(found)
    assert (counted["Documents"], counted["Hash count"], counted["Hash collision groups"]) == (4, 4, 1)
    assert (counted["Pairwise hash comparisons"], counted[CANDIDATES], counted["Similarity thresholds"]) == (
        1,
        1,
        [1, 1],
    )

    near = listed(run(client, cats, stage(ngrams(3, source("words")), ratio(WORDS))))
    assert near == [("a/1", "é猫", 1.0), ("a/1", "b 2", 4 / 6), ("b 2", "é猫", 4 / 6)]
    exact = listed(run(client, cats, stage(ngrams(4, source("words")), ratio(WORDS))))
    assert exact == [("a/1", "é猫", 1.0)]  # no 4-gram in common with the blue one
    whole = listed(run(client, cats, stage(source("words"), ratio(source("words")))))
    assert whole == [("a/1", "é猫", 1.0)]  # not flattened: one feature a value


def test_skipped_groups_are_listed(client: Client, cats: str) -> None:
    found = run(client, cats, stage(WORDS, ratio(WORDS), maximum=2))
    counted = numbers(found)
    assert counted["Skipped large hash collision groups"] == 4
    assert counted["Skipped pairwise hash comparisons"] == 4 * 3
    assert {one.example for one in found.skipped_groups} == {"lucy", "had", "a", "cat"}
    assert {one.size for one in found.skipped_groups} == {3}
    assert found.skipped_groups[0].documents == ((cats, "a/1"), (cats, "b 2"), (cats, "é猫"))
    assert listed(found) == [("a/1", "é猫", 1.0)]  # by the word gray


def test_a_default_limit_is_part_of_the_answer(client: Client, index_name: str) -> None:
    """Without a maximum in the request, a large group is skipped, counted, and listed."""
    make_index(client, index_name, {"title": {"type": "text"}})
    put(client, index_name, {f"d{n}": {"title": "the same title"} for n in range(201)})
    request = stage(source("values"), ratio(source("values")))
    del request["hashGrouping"]["pairing"]["maxHashGroupSize"]
    found = run(client, index_name, request)
    counted = numbers(found)
    assert (counted["Maximum size of hash collision groups"], len(found.pairs)) == (200, 0)
    assert counted["Skipped pairwise hash comparisons"] == 201 * 200 // 2
    assert [(one.size, one.example) for one in found.skipped_groups] == [(201, "the same title")]


def test_contents_and_overlaps_of_pairs(client: Client, cats: str) -> None:
    use = {"type": "documentPairs:reference", "use": "pairs"}
    fields = {"title": {"maxValueLength": 4}, "kind": {}}
    request = {
        "stages": {
            "pairs": stage(ngrams(3, source("words")), ratio(WORDS), min=0.9),
            "texts": {
                "type": "documentContent",
                "documents": {"type": "documents:fromDocumentPairs", "documentPairs": use},
                "fields": {"type": "contentFields:simple", "fields": fields},
            },
            "blocks": {
                "type": "documentPairs:overlaps",
                "documentPairs": use,
                "fields": {"type": "fields:simple", "fields": ["title"]},
                "minWords": 2,
            },
        }
    }
    report = NearDupe(cats, client).duplicates(request)
    assert isinstance(report, DuplicatesReport)
    assert (report.index, report.indices) == (cats, (cats,))
    texts, blocks = report.stages["texts"], report.stages["blocks"]
    assert isinstance(texts, ContentStageReport)
    assert texts.documents == tuple({"index": cats, "id": id, "fields": {"title": "Lucy"}} for id in ("a/1", "é猫"))
    assert (texts.cut, texts.missing, texts.not_read) == (2, 0, 0)
    assert isinstance(blocks, OverlapsStageReport)
    (pair,) = blocks.pairs
    assert (pair.a, pair.b, pair.overlaps.words) == ((cats, "a/1"), (cats, "é猫"), 5)


def test_copies_between_two_fields(client: Client, index_name: str) -> None:
    make_index(client, index_name, TITLE)
    put(client, index_name, {"a": {"title": "The same words"}, "b": {"copy": ["Other words", "The same words"]}})
    values = source("values", "title", "copy")
    assert listed(run(client, index_name, stage(values, ratio(values)))) == [("a", "b", 0.5)]


@pytest.fixture
def two(client: Client) -> Iterator[str]:
    """Two indices NAME-1 and NAME-2 behind the alias NAME, the same documents in both."""
    name = new_name()
    for number in (1, 2):
        make_index(client, f"{name}-{number}", TITLE, aliases={name: {}})
        put(client, f"{name}-{number}", {"x": {"title": "one two three"}, f"y{number}": {"title": "one two three"}})
    yield name
    delete_all(client, name)


@pytest.mark.parametrize("name", ["{0}", "{0}-*", "{0}-1,{0}-2"])
@pytest.mark.product("each")
def test_an_alias_of_two_indices(client: Client, two: str, name: str) -> None:
    found = run(client, name.format(two), stage(source("values"), ratio(source("values"))))
    first, second = f"{two}-1", f"{two}-2"
    places = [(first, "x"), (second, "x"), (first, "y1"), (second, "y2")]
    assert [(pair.a, pair.b) for pair in found.pairs] == [(a, b) for k, a in enumerate(places) for b in places[k + 1 :]]


def test_a_query_is_the_scope(client: Client, cats: str) -> None:
    query = {"ids": {"values": ["a/1", "b 2", "d"]}}
    found = run(client, cats, stage(WORDS, ratio(WORDS), query=query))
    assert listed(found) == [("a/1", "b 2", 4 / 6)]
    assert numbers(found)["Documents"] == 3
    none = run(client, cats, stage(WORDS, ratio(WORDS), query={"term": {"kind": "no such"}}))
    assert (listed(none), numbers(none)["Documents"], numbers(none)[CANDIDATES]) == ([], 0, 0)


def test_a_range_that_leaves_out_most_of_a_year(client: Client, cats: str, server_cli: Cli, tmp_path: Path) -> None:
    query = {"type": "query:string", "query": "created:[2015 TO 2017]"}
    file = tmp_path / "request.json"
    file.write_text(json.dumps({"stages": {"pairs": stage(WORDS, ratio(WORDS), query=query)}}), "utf-8")
    warning = "pairs: if created is a date, a range up to 2017 ends with the first day of 2017."
    for more in ([], ["--json"]):
        done = server_cli("duplicates", cats, "--request", str(file), *more)
        assert warning in done.err
    (said,) = done.json["warnings"]
    assert said.startswith(warning)


def test_requests_that_cannot_be_run(client: Client, cats: str) -> None:
    with pytest.raises(SettingsError, match=r"no field 'titel'.*copy, kind, title"):
        run(client, cats, stage(source("values", "titel"), ratio(WORDS)))
    with pytest.raises(SettingsError, match=r"no field 'titel'"):
        run(client, cats, stage(WORDS, ratio(source("values", "titel"))))
    with pytest.raises(RequestError, match=r"no_such_query|unknown query"):
        run(client, cats, stage(WORDS, ratio(WORDS), query={"no_such_query": {"title": "x"}}))
    with pytest.raises(NotFound, match="There is no index"):
        run(client, f"{cats}-not", stage(WORDS, ratio(WORDS)))
    with pytest.raises(NotInitialised, match="init"):
        run(client, cats, stage("scheme", ratio(WORDS)))


def test_an_index_without_source_is_rejected(client: Client, index_name: str) -> None:
    make_index(client, index_name, TITLE, _source={"enabled": False})
    with pytest.raises(IndexUnusable, match="_source disabled"):
        run(client, index_name, stage(WORDS, ratio(WORDS)))


@pytest.mark.parametrize("source", [{"excludes": ["ti*"]}, {"includes": ["body"]}])
def test_a_field_excluded_from_source_is_rejected(client: Client, index_name: str, source: dict[str, Any]) -> None:
    make_index(client, index_name, TITLE, _source=source)
    put(client, index_name, {"1": {"title": "same"}, "2": {"title": "same"}})
    with pytest.raises(IndexUnusable, match="excludes title from _source"):
        run(client, index_name, stage(WORDS, ratio(WORDS)))


def test_changes_during_a_run_are_counted(client: Client, index_name: str) -> None:
    """One document is deleted and one changed after they were hashed."""
    fill(client, index_name)
    done: list[str] = []

    def disturbing(stage: str, at: int, total: int | None) -> None:
        if stage == "grouping hashes" and not done:
            done.append(stage)
            client.request("DELETE", path(index_name, "_doc", "b 2"))
            change(client, index_name, "d", {"title": "Dogs and cats"})

    put(client, index_name, {"e": {"title": "Dogs"}})
    found = run(client, index_name, stage(WORDS, ratio(WORDS)), progress=disturbing)
    assert listed(found) == [("a/1", "é猫", 1.0)]
    assert numbers(found)[OUT] == 3  # two with the blue cat, one of the dogs
    assert numbers(found)["Documents deleted or changed"] == 2


def test_stored_keys_of_an_enriched_index(client: Client, index_name: str) -> None:
    texts = {one["id"]: one["text"] for one in read_jsonl("senate_press/sample_12_senators.jsonl.xz")[:150]}
    NearDupe(index_name, client).init(Settings(("text",), threshold=0.8), create=True)
    put(client, index_name, {id: {"text": text} for id, text in texts.items()})
    NearDupe(index_name, client).enrich()
    put(client, index_name, {"late": {"text": "without any keys"}})
    features = ngrams(5, flat(source("words", "text")))
    by_keys = run(client, index_name, stage("scheme", ratio(features), min=0.8))
    assert numbers(by_keys)["Documents"] == len(texts) + 1
    assert numbers(by_keys)["Documents without fingerprint"] == 1
    known = NearDupe(index_name, client).pairs(min=0.8)
    assert {(pair.a[1], pair.b[1]): pair.similarity for pair in by_keys.pairs} == {
        (pair.a[1], pair.b[1]): pair.similarity for pair in known
    }


def test_a_stored_key_that_many_share_is_shown_by_its_passage(client: Client, index_name: str) -> None:
    NearDupe(index_name, client).init(Settings(("text",), threshold=0.8), create=True)
    put(client, index_name, {f"d{k}": {"text": "these are the same eight words in all"} for k in range(4)})
    NearDupe(index_name, client).enrich()
    found = run(client, index_name, stage("scheme", ratio(source("values", "text")), maximum=3))
    assert not found.pairs
    assert {(one.size, one.example) for one in found.skipped_groups} == {(4, "these are the same eight words in all")}
    assert found.skipped_groups[0].documents == tuple((index_name, f"d{k}") for k in range(4))


def test_real_texts_against_brute_force(client: Client, index_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pair that shares a 5-gram is found, with or without files, and has its exact resemblance."""
    texts = {one["id"]: one["text"] for one in read_jsonl("senate_press/sample_12_senators.jsonl.xz")[:120]}
    make_index(client, index_name, {"text": {"type": "text"}}, settings={"number_of_shards": 2})
    put(client, index_name, {id: {"text": text} for id, text in texts.items()})
    features = ngrams(5, flat(source("words", "text")))
    asked = stage(features, ratio(features), min=0.1, maximum=1000)
    found = run(client, index_name, asked)
    expected = true_pairs(texts, 0.1)
    assert len(expected) > 10
    assert {(a, b): s for a, b, s in listed(found)} == expected
    assert all(np.isclose(pair.similarity, jaccard(texts[pair.a[1]], texts[pair.b[1]])) for pair in found.pairs)
    monkeypatch.setattr(spill_to_disk, "HELD", 2_000)
    monkeypatch.setattr(current_texts, "_BLOCK", 2_000)
    assert listed(run(client, index_name, asked)) == listed(found)


def test_weights_are_from_a_sample(client: Client, cats: str) -> None:
    weighted = {"type": "pairwiseSimilarity:weighted", "fields": source("words")["fields"], "shingle": 1}
    found = run(client, cats, stage(WORDS, weighted))
    assert numbers(found)["Documents sampled for weights"] == 4
    function = "pairwiseSimilarity:weighted [w = 1; texts from field: title]"
    assert numbers(found)["Pairwise similarity function"] == function
    similarity = {(a, b): s for a, b, s in listed(found)}
    assert similarity["a/1", "é猫"] == 1.0
    assert 0 < similarity["a/1", "b 2"] < 4 / 6  # what they do not share is rare
