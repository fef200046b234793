"""Features, similarities and example requests of the command duplicates on real servers."""

from __future__ import annotations

import csv
import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli, read_data
from example_texts import EXAMPLES
from page_reader import Reader
from server_tools import make_index, put

from es_neardupe import NearDupe
from es_neardupe.commands.duplicates import find_pairs
from es_neardupe.commands.duplicates.request_json import example
from es_neardupe.commands.duplicates.results import PairsStageReport
from es_neardupe.keys.text import tokenize
from es_neardupe.server.client import Client

JSON = dict[str, Any]
TEXT = {"type": "fields:simple", "fields": ["text"]}
WORDS = {"type": "featureSource:flatten", "source": {"type": "featureSource:words", "fields": TEXT}}


def values(*fields: str, apart: bool = False) -> JSON:
    """The unchanged values of fields."""
    return {"type": "featureSource:values", "fields": {"type": "fields:simple", "fields": [*fields]}, "perField": apart}


def stage(grouping: JSON, *validations: JSON) -> JSON:
    """A request with one stage, and explanations."""
    return {
        "stages": {
            "pairs": {
                "type": "documentPairs:duplicates",
                "hashGrouping": {"features": grouping},
                "validation": validations[0] if len(validations) == 1 else list(validations),
                "output": {"explanations": True},
            }
        }
    }


def run(client: Client, index: str, request: JSON) -> PairsStageReport:
    found = NearDupe(index, client).duplicates(request).stages["pairs"]
    assert isinstance(found, PairsStageReport)
    return found


FACES = ("sex", "hair", "skin", "facial_hair", "age", "glasses")
THREE = {
    "1": ("female", "dark", "white", "none", "teen", "no"),
    "2": ("female", "dark", "white", "none", "teen", "no"),
    "3": ("female", "brown", "light brown", "none", "teen", "no"),
    "4": ("male", "none", "dark", "none", "child", "no"),
}
"""Three faces as in the documentation of Lingo4G, and one whose values are in other fields."""


@pytest.fixture
def faces(client: Client, index_name: str) -> str:
    make_index(client, index_name, {name: {"type": "keyword"} for name in FACES})
    put(client, index_name, {id: dict(zip(FACES, face, strict=True)) for id, face in THREE.items()})
    return index_name


def test_lookalikes_by_the_number_of_shared_features(
    client: Client, faces: str, server_cli: Cli, tmp_path: Path
) -> None:
    """Two with the same hair share all six features; dark hair is not dark skin."""
    similar = {"type": "pairwiseSimilarity:featureIntersectionSize", "features": values(*FACES, apart=True)}
    request = stage(values("glasses"), {"pairwiseSimilarity": similar, "min": 2})
    found = run(client, faces, request)
    expected = {
        (a, b): shared
        for a, b in combinations(sorted(THREE), 2)
        if (shared := sum(x == y for x, y in zip(THREE[a], THREE[b], strict=True))) >= 2
    }
    assert {(pair.a.id, pair.b.id): pair.similarity for pair in found.pairs} == expected
    assert expected["1", "2"] == 6
    first = found.pairs[0]
    assert (repr(first.similarity), first.similarities) == ("6", ())
    features = "entire values from fields: sex, hair, skin, facial_hair, age, glasses (each field apart)"
    assert first.explanation == f"Documents share 6 out of 6 distinct features ({features})."
    validating = list(found.diagnostics.labelled().values())[-1]
    assert validating["Similarity thresholds"] == [2, None]

    file, page = tmp_path / "faces.json", tmp_path / "faces.html"
    file.write_text(json.dumps(request), "utf-8")
    done = server_cli("duplicates", faces, "--request", str(file), "--json", "--html", str(page))
    assert done.json["stages"]["pairs"]["pairs"][0]["similarity"] == 6
    content = page.read_text("utf-8")
    assert '<b class="score">6</b>' in content
    assert "shared features" in content
    assert '<th scope="row">Similarity thresholds</th><td>2.0 or more</td>' in content
    assert re.search("Similarity thresholds +2.0 or more", server_cli("duplicates", faces, "--request", str(file)).out)
    Reader(content)


def test_hair_and_facial_hair_as_one_feature(client: Client, faces: str) -> None:
    """Only documents with both values equal are compared."""
    combine = {"type": "featureSource:combine", "sources": [values("hair"), values("facial_hair")]}
    similar = {"type": "pairwiseSimilarity:featureIntersectionToUnionRatio", "features": values(*FACES)}
    found = run(client, faces, stage(combine, {"pairwiseSimilarity": similar, "min": 0.1}))
    assert [(pair.a.id, pair.b.id) for pair in found.pairs] == [("1", "2")]
    assert found.diagnostics.hashing.hashes == len(THREE)
    assert found.diagnostics.grouping.candidates == 1


def test_paragraphs(client: Client, index_name: str) -> None:
    make_index(client, index_name, {"text": {"type": "text"}})
    notice = "Do not\nreply to this mail."
    put(
        client,
        index_name,
        {"1": {"text": f"One.\n\n{notice}"}, "2": {"text": "DO NOT reply to this mail\r\n \r\nTwo"}},
    )
    put(client, index_name, {"3": {"text": "One. Do not reply to this mail."}})
    paragraphs = {"type": "featureSource:flatten", "source": {"type": "featureSource:paragraphs", "fields": TEXT}}
    similar = {"type": "pairwiseSimilarity:featureIntersectionToUnionRatio", "features": paragraphs}
    (pair,) = run(client, index_name, stage(paragraphs, {"pairwiseSimilarity": similar, "min": 0.1})).pairs
    assert ((pair.a.id, pair.b.id), pair.similarity) == (("1", "2"), 1 / 3)


EXPLAINED = {
    "S_J": "by jaccard (literal) of the texts from field: text: 85 of 112 words in 2 passages, L = 100, S = 97.",
    "S_L": "by containment-longer (literal) of the texts from field: text: 85 of 100 words in 2 passages, L = 100, "
    "S = 97.",
    "containment": "by containment (literal) of the texts from field: text: 85 of 97 words in 2 passages, L = 100, "
    "S = 97.",
    "S_R": "by resemblance of the texts from field: text: 77 of 112 shingles.",
    "edit": " of 100 words unchanged.",
    "bag": "1-grams, counted with repetitions.",
    "weighted": "by weighted of the texts from field: text: 77 of 112 shingles, weighted by rarity.",
    "estimate": " of 128 slots of the signatures are equal.",
}


def test_every_explanation_has_its_counts(client: Client, index_name: str) -> None:
    """Of the first example of "What is a near-dupe, really?"."""
    make_index(client, index_name, {"text": {"type": "text"}})
    put(client, index_name, {str(number): {"text": text} for number, text in enumerate(EXAMPLES[1])})
    for measure, expected in EXPLAINED.items():
        similar = {"type": f"pairwiseSimilarity:{measure}", "fields": TEXT}
        (pair,) = run(client, index_name, stage(WORDS, {"pairwiseSimilarity": similar, "min": 0.1})).pairs
        assert pair.explanation is not None
        assert pair.explanation.endswith(expected)
        assert pair.explanation.startswith(f"Documents are {pair.similarity:.4f} similar")


def test_two_validations_at_once(client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    """The second is computed only for the pairs that pass the first; both are explained and written."""
    make_index(client, index_name, {"text": {"type": "text"}})
    texts = {"1": "a b c d e f g h", "2": "h g f e d c b a", "3": "a b c d e f g x", "4": "a y"}
    put(client, index_name, {id: {"text": text} for id, text in texts.items()})
    same_words = {"type": "pairwiseSimilarity:featureIntersectionToUnionRatio", "features": WORDS}
    same_order = {"type": "pairwiseSimilarity:S_J", "fields": TEXT, "shingle": 3}
    request = stage(
        WORDS, {"pairwiseSimilarity": same_words, "min": 0.5}, {"pairwiseSimilarity": same_order, "min": 0.5}
    )
    found = run(client, index_name, request)
    (pair,) = found.pairs
    assert ((pair.a.id, pair.b.id), pair.similarity, pair.similarities) == (("1", "3"), 7 / 9, (7 / 9, 7 / 9))
    assert pair.explanation == (
        "Documents share 7 out of 9 distinct features (flattened composites of words from field: text). Documents are "
        "0.7778 similar by jaccard (literal) of the texts from field: text: 7 of 9 words in 1 passage, L = 8, S = 8."
    )
    _, aggregated, first, second = found.diagnostics.labelled().values()
    assert (aggregated["Candidate pairs"], aggregated["Out of scope pairs"]) == (6, 0)
    assert (first["Pairs passing"], first["Pairs failing"]) == (3, 3)
    assert (second["Pairs passing"], second["Pairs failing"]) == (1, 2)

    file, rows = tmp_path / "both.json", tmp_path / "both.csv"
    file.write_text(json.dumps(request), "utf-8")
    done = server_cli("duplicates", index_name, "--request", str(file), "--pairs-only", "--output", str(rows))
    assert [one["similarities"] for one in done.lines] == [[7 / 9, 7 / 9]]
    (row,) = csv.DictReader(rows.read_text("utf-8-sig").splitlines())
    assert (row["similarity"], row["similarity_2"]) == (str(7 / 9), str(7 / 9))
    assert "similarity 2" in server_cli("duplicates", index_name, "--request", str(file)).out


def test_documents_that_change_before_they_are_explained(
    client: Client, index_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their pairs are out of scope, and the diagnostics reconcile."""
    make_index(client, index_name, {"text": {"type": "text"}})
    put(client, index_name, {id: {"text": "a b c d e"} for id in "123"})
    similar = {"type": "pairwiseSimilarity:jaccard", "fields": TEXT}
    request = stage(WORDS, {"pairwiseSimilarity": similar, "min": 0.5})
    explain = find_pairs._explain

    def changing_first(*arguments: Any) -> Any:
        put(client, index_name, {"3": {"text": "other"}})
        return explain(*arguments)

    monkeypatch.setattr(find_pairs, "_explain", changing_first)
    found = run(client, index_name, request)
    assert [(pair.a.id, pair.b.id) for pair in found.pairs] == [("1", "2")]
    aggregated, validating = list(found.diagnostics.labelled().values())[1:]
    assert (aggregated["Candidate pairs"], aggregated["Out of scope pairs"]) == (3, 2)
    assert (validating["Pairs passing"], validating["Pairs failing"]) == (1, 0)


def test_identical_headlines(client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    """The example with another field runs as it is: directly, and as it is printed. The field is only a text."""
    make_index(client, index_name, {"headline": {"type": "text"}, "teaser": {"type": "text"}})
    headlines = {"1": "Harbour closed", "2": "Harbour closed", "3": "Harbour CLOSED", "4": "Other"}
    put(client, index_name, {id: {"headline": headline, "teaser": "x"} for id, headline in headlines.items()})
    options = ("--example", "identical-titles", "--field", "headline")
    direct = server_cli("duplicates", index_name, *options, "--json")
    file = tmp_path / "headlines.json"
    file.write_text(server_cli("duplicates", *options).out, "utf-8")
    printed = server_cli("duplicates", index_name, "--request", str(file), "--json")
    for done in (direct, printed):
        assert done.code == 0
        (pair,) = done.json["stages"]["similarPairs"]["pairs"]
        assert [one["id"] for one in pair["pair"]] == ["1", "2"]
    near = server_cli("duplicates", index_name, "--example", "near-identical-titles", "--field", "headline", "--json")
    assert near.json["stages"]["documents"]["documents"] == []
    wrong = server_cli("duplicates", index_name, "--example", "identical-titles", "--field", "titel")
    assert (wrong.code, "no field 'titel'" in wrong.err) == (2, True)


@pytest.mark.parametrize(("query", "years"), [("created:[2015 TO 2017]", 2017), ("created:[2015 TO 2017-12-31]", 2018)])
@pytest.mark.product("each")
def test_a_range_of_years_ends_with_the_first_day_of_the_last(
    client: Client, index_name: str, server_cli: Cli, tmp_path: Path, query: str, years: int
) -> None:
    """What ``--explain`` warns of."""
    make_index(client, index_name, {"text": {"type": "text"}, "created": {"type": "date"}})
    days = ["2015-01-01", "2016-07-01", "2017-01-01T12:00:00Z", "2017-01-02", "2017-12-31T23:00:00Z", "2018-01-01"]
    put(client, index_name, {day: {"text": "same", "created": day} for day in days})
    similar = {"type": "pairwiseSimilarity:edit", "fields": TEXT}
    request = stage(WORDS, {"pairwiseSimilarity": similar, "min": 1})
    request["stages"]["pairs"]["query"] = {"type": "query:string", "query": query}
    file = tmp_path / "years.json"
    file.write_text(json.dumps(request), "utf-8")
    done = server_cli("duplicates", index_name, "--request", str(file), "--json", "--explain")
    expected = 3 if years == 2017 else 5
    assert done.json["stages"]["pairs"]["diagnostics"]["Computing feature hashes"]["Documents"] == expected
    warned = "a range up to 2017 ends with the first day of 2017. To include all of it, write 2017-12-31" in done.err
    assert warned == (years == 2017)


RECORDS = {"cytology_screening": (0.998, 0.976, 0.987), "respiratory": (0.988, 0.935, 0.961)}
"""Set -> precision, recall and F of the pairs that the example request finds, as in the documentation."""


@pytest.mark.either("name")
@pytest.mark.parametrize("name", RECORDS)
def test_records(client: Client, index_name: str, name: str) -> None:
    """Bibliographic records, compared with the given clusters, and with a plain computation of the same pairs."""
    with read_data(f"bib_records/{name}/records_pre_merged.csv").open(encoding="utf-8", newline="") as rows:
        records = {row["ID"]: {field: row[field] for field in FIELDS} for row in csv.DictReader(rows)}
    with read_data(f"bib_records/{name}/merged_record_ids.csv").open(encoding="utf-8", newline="") as rows:
        clusters = [sorted(row["merged_ids"].split(";")) for row in csv.DictReader(rows)]
    make_index(client, index_name, {field: {"type": "text"} for field in FIELDS})
    put(client, index_name, records)
    found = NearDupe(index_name, client).duplicates(example("records")).stages["similarPairs"]
    assert isinstance(found, PairsStageReport)
    pairs = {(pair.a.id, pair.b.id) for pair in found.pairs}
    assert pairs == similar_records(records)
    truth = {pair for cluster in clusters for pair in combinations(cluster, 2)}
    precision, recall = len(pairs & truth) / len(pairs), len(pairs & truth) / len(truth)
    scores = (precision, recall, 2 * precision * recall / (precision + recall))
    assert tuple(round(score, 3) for score in scores) == RECORDS[name]


FIELDS = ("title", "year", "volume", "pages")


def similar_records(records: JSON) -> set[tuple[str, str]]:
    """The pairs of the example request by its definition."""
    words = {id: {word for field in FIELDS for word in tokenize(one[field])} for id, one in records.items()}
    grams: dict[tuple[str, ...], set[str]] = {}
    for id, one in records.items():
        title = tokenize(one["title"])
        for place in range(max(len(title) - 1, min(len(title), 1))):
            grams.setdefault(tuple(title[place : place + 2]), set()).add(id)
    candidates = {pair for ids in grams.values() if len(ids) <= 200 for pair in combinations(sorted(ids), 2)}
    return {(a, b) for a, b in candidates if len(words[a] & words[b]) / len(words[a] | words[b]) >= 0.76}
