"""Every measure in similar, group and pairs: similarities are those of the texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Cli
from server_tools import (
    change,
    delete_all,
    family,
    make_index,
    new_name,
    one_line,
    ours,
    put,
    send,
    shared_and_own,
    words,
)

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import SettingsError
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.keys.text import tokenize
from es_neardupe.options import Matching, MeasureName
from es_neardupe.server.client import Client
from es_neardupe.similarity.features import INDEXED, parse_all
from es_neardupe.similarity.formulas import Weights
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification import feature_weights

KINDS = {
    "title": {"type": "text"},
    "text": {"type": "text"},
    "tags": {"type": "keyword"},
    "place": {"type": "geo_point"},
}
SETTINGS = Settings(("text",), threshold=0.3, detection=0.999)


def sources() -> dict[str, dict[str, Any]]:
    """Near-duplicates, copies, a short text inside a long one, a text pasted twice, and texts without keys."""
    texts = dict(zip("abcd", family("measures", 4, edits=3), strict=True))
    long = words("long", 120)
    texts |= {"long": " ".join(long), "short": " ".join(long[20:100]), "half": " ".join(long[60:])}
    texts |= {"twice": " ".join(long[:60] * 2), "copy": texts["a"].upper() + "!", "copy2": texts["a"]}
    made: dict[str, dict[str, Any]] = {
        id: {"title": f"About {id[0]}", "text": text, "tags": [id[0], "x"]} for id, text in texts.items()
    }
    made["a"]["tags"] = ["a", "b c"]
    made["copy2"] |= {"tags": [], "title": None}
    return made | {"empty": {"text": ""}, "large": {"text": "word " * 5000}, "none": {"title": "About a"}}


def enriched(client: Client, index: str) -> str:
    make_index(client, index, KINDS)
    put(client, index, sources())
    NearDupe(index, client).init(SETTINGS)
    NearDupe(index, client).enrich(max_chars=20_000)
    return index


filled, own = shared_and_own(enriched)


@pytest.fixture(scope="module")
def regrouped(client: Client) -> Iterator[str]:
    """Another one for tests that only group it, by rules that do not depend on former runs."""
    name = new_name()
    yield enriched(client, name)
    delete_all(client, name)


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Frequencies are stored in a temporary cache folder."""
    monkeypatch.setenv("ES_NEARDUPE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def truth(measure: Measure, made: Mapping[str, Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    """Each pair of documents with keys, scored directly."""
    ids = sorted(id for id, source in made.items() if source.get("text") and id != "large")
    values = [
        {name: _list(made[id].get(key)) for name, key in ((INDEXED, "text"), ("title", "title"), ("tags", "tags"))}
        for id in ids
    ]
    prepared = dict(zip(ids, measure.prepare([made[id]["text"] for id in ids], values), strict=True))
    return {(a, b): measure.score(prepared[a], prepared[b]) for a, b in combinations(ids, 2)}


def candidates(made: Mapping[str, Mapping[str, Any]]) -> set[tuple[str, str]]:
    """The pairs that share a key."""
    ids = sorted(id for id, source in made.items() if source.get("text") and id != "large")
    found = fingerprints([made[id]["text"] for id in ids], SETTINGS.scheme)
    keys = {id: set(one.bands) for id, one in zip(ids, found, strict=True)}
    return {(a, b) for a, b in combinations(ids, 2) if keys[a] & keys[b]}


def _list(value: Any) -> list[str]:
    return [] if value is None else value if isinstance(value, list) else [value]


CASES: list[tuple[Measure, dict[str, Any]]] = [
    (Measure(), {}),
    (Measure(MeasureName.JACCARD), {"measure": "jaccard"}),
    (Measure(MeasureName.JACCARD, Matching.INFORMATION), {"measure": "jaccard", "matching": "information"}),
    (Measure(MeasureName.CONTAINMENT), {"measure": "containment", "matching": "literal"}),
    (Measure(MeasureName.CONTAINMENT, Matching.INFORMATION), {"measure": "containment", "matching": "information"}),
    (Measure(MeasureName.CONTAINMENT, min_words=12), {"measure": "containment", "passage": 12}),
    (Measure(MeasureName.CONTAINMENT_LONGER), {"measure": "containment-longer"}),
    (Measure(MeasureName.BAG), {"measure": "bag"}),
    (Measure(MeasureName.BAG, ngram=3), {"measure": "bag", "ngram": 3}),
    (Measure(MeasureName.BAG, whitespace=True), {"measure": "bag", "whitespace": True}),
    (Measure(MeasureName.EDIT), {"measure": "edit"}),
    (Measure(sources=parse_all(["flatten(ngrams(2))"])), {"features": ["flatten(ngrams(2))"]}),
    (Measure(sources=parse_all(["title:words", "tags:values"])), {"features": ["title:words", "tags:values"]}),
    (Measure(MeasureName.BAG, sources=parse_all(["characters(4)"])), {"measure": "bag", "features": ["characters(4)"]}),
]
each_measure = pytest.mark.parametrize(("measure", "options"), CASES, ids=[measure.label for measure, _ in CASES])


@each_measure
def test_each_measure(measure: Measure, options: dict[str, Any], regrouped: str, client: Client) -> None:
    """pairs, similar and group agree with scoring the texts directly, for all pairs that are candidates."""
    scores = truth(measure, sources())
    close = candidates(sources())
    assert 20 <= len(close) < len(scores)

    listed = NearDupe(regrouped, client).pairs(min=0.05, **options)
    found = {(pair.a[1], pair.b[1]): pair.similarity for pair in listed}
    assert found == {pair: score for pair, score in scores.items() if pair in close and score >= 0.05}
    assert (listed.measure, len(listed)) == (measure.label, len(found))
    assert all(pair.resemblance == (pair.similarity if measure.by_keys else None) for pair in listed)

    hits = NearDupe(regrouped, client).similar(id="long", min=0.05, **options).hits
    assert {hit.id: hit.similarity for hit in hits} == {
        next(id for id in pair if id != "long"): score for pair, score in found.items() if "long" in pair
    }

    report = NearDupe(regrouped, client).group(min=0.4, default_rules=True, **options)
    stored = ours(client, regrouped)
    principals = {one["group"]: id for id, one in stored.items() if one.get("principal")}
    members = {id: one for id, one in stored.items() if one.get("principal") is False}
    assert report.rules.measure == measure.label
    assert len(members) == report.groups.grouped - report.groups.count
    for id, one in members.items():
        pair = tuple(sorted((id, principals[one["group"]])))
        assert one["similarity"] == scores[pair[0], pair[1]] >= 0.4
    lone = {id for id in principals.values() if id not in {principals[one["group"]] for one in members.values()}}
    assert {"empty", "large", "none"} <= lone
    assert not [pair for pair in combinations(sorted(principals.values()), 2) if found.get(pair, 0) >= 0.4]
    assert NearDupe(regrouped, client).group(min=0.4, **options).writes.written == 0


def test_symbols_of_measures(regrouped: str, client: Client, server_cli: Cli) -> None:
    """A symbol gives what the name of its measure gives, and is stored as this name."""
    for name, symbol in (("resemblance", "S_R"), ("jaccard", "S_J"), ("containment-longer", "S_L")):
        pairs = [server_cli("pairs", regrouped, "--min", "0.3", "--measure", one, "--json") for one in (name, symbol)]
        assert pairs[0].lines
        assert pairs[0].out == pairs[1].out
        hits = [NearDupe(regrouped, client).similar(id="long", min=0.1, measure=one) for one in (name, symbol)]
        assert hits[0] == hits[1]
        server_cli("group", regrouped, "--measure", symbol, "--min", "0.4", "--default-rules")
        (record, *_) = (one.known for one in NearDupe(regrouped, client).groups())
        assert record is not None
        assert record.settings is not None
        assert (record.settings.match.measure.value, record.settings.measure.partition(" ")[0]) == (name, name)
        again = server_cli("group", regrouped, "--measure", name, "--min", "0.4", "--json").json
        assert (again["rules"]["measure"], again["writes"]["written"]) == (record.settings.measure, 0)
    wrong = server_cli("pairs", regrouped, "--measure", "s_l")
    assert (wrong.code, "'s_l' is not one of" in wrong.err) == (2, True)


def test_min_and_max_are_included(filled: str, client: Client, server_cli: Cli) -> None:
    scores = truth(Measure(MeasureName.CONTAINMENT_LONGER), sources())
    at = scores["long", "short"]
    assert at == 80 / 120
    options: dict[str, Any] = {"measure": "containment-longer", "min": at, "max": at}
    found = {(pair.a[1], pair.b[1]) for pair in NearDupe(filled, client).pairs(**options)}
    assert found == {pair for pair, score in scores.items() if score == at}
    assert [hit.id for hit in NearDupe(filled, client).similar(id="long", **options).hits] == ["short"]

    copies = server_cli("pairs", filled, "--min", "1", "--max", "1", "--json")
    assert {(pair["a"]["id"], pair["b"]["id"]) for pair in copies.lines} == {
        ("a", "copy"),
        ("a", "copy2"),
        ("copy", "copy2"),
    }
    near = server_cli("pairs", filled, "--min", "0.7", "--max", "0.999", "--json")
    assert near.lines
    assert all(0.7 <= pair["resemblance"] <= 0.999 for pair in near.lines)
    assert {"a", "copy", "copy2"} <= {pair["a"]["id"] for pair in near.lines}
    assert "pairs 0.7 to 0.999 similar" in server_cli("pairs", filled, "--min", "0.7", "--max", "0.999").err


def test_groups_of_near_copies_only(regrouped: str, client: Client) -> None:
    """Exact copies do not match each other: they are members of the group of a text that each of them matches."""
    report = NearDupe(regrouped, client).group(min=0.7, max=0.999, default_rules=True)
    stored = ours(client, regrouped)
    assert (report.pairs.copies, report.rules.match.max) == (0, 0.999)
    near = ("a", "copy", "copy2", *"bcd")
    (principal,) = (id for id in near if stored[id]["principal"])
    assert principal in "bcd"
    assert {id: stored[id]["group"] for id in near} == dict.fromkeys(near, stored[principal]["group"])
    assert all(0.7 <= stored[id]["similarity"] <= 0.999 for id in near if id != principal)
    NearDupe(regrouped, client).group(min=1, max=1)
    stored = ours(client, regrouped)
    assert len({stored[id]["group"] for id in ("a", "copy", "copy2")}) == 1
    assert len({stored[id]["group"] for id in "abcd"}) == 4


def test_chains(regrouped: str, client: Client) -> None:
    NearDupe(regrouped, client).group(min=0.3, measure="jaccard", linkage="chain", default_rules=True)
    scores, stored = truth(Measure(MeasureName.JACCARD), sources()), ours(client, regrouped)
    ids = {"long", "short", "half", "twice"}
    (principal,) = (id for id in ids if stored[id]["principal"])
    for id in ids - {principal}:
        assert stored[id]["group"] == stored[principal]["group"]
        a, b = sorted((id, principal))
        assert stored[id]["similarity"] == scores[a, b]


def test_containment_makes_no_chains(regrouped: str, client: Client) -> None:
    """One text that contains ten others would join them all."""
    with pytest.raises(SettingsError, match="an anthology would link all texts"):
        NearDupe(regrouped, client).group(min=0.3, measure="containment", linkage="chain", default_rules=True)
    report = NearDupe(regrouped, client).group(
        min=0.3, measure="containment", linkage="complete", evidence=True, default_rules=True
    )
    assert report.groups.count > 0
    with pytest.raises(SettingsError, match="an anthology would link all texts"):
        NearDupe(regrouped, client).what_if(min=[0.5], linkage="chain")


def test_a_short_text_inside_a_long_one(regrouped: str, server_cli: Cli) -> None:
    """Its containment is 1; the command says how few of such pairs the keys find, and never the default's number."""
    done = server_cli("similar", regrouped, "--id", "short", "--measure", "containment", "--min", "0.9", "--json")
    answer = done.json
    assert {hit["id"]: hit["similarity"] for hit in answer["hits"]} == {"long": 1.0}
    assert set(answer["hits"][0]) == {
        "index",
        "id",
        "measure",
        "similarity",
        "shared_bands",
        "group",
        "copies",
        "fields",
    }
    assert answer["measure"] == answer["hits"][0]["measure"] == "containment (literal)"
    assert (answer["detection"]["min"], answer["detection"]["probability"]) == (0.9, None)
    assert answer["query"]["tokens"] == 80
    cases = {case["shape"]: case for case in answer["detection"]["cases"]}
    assert list(cases) == [
        "one passage, 80 and 80 words",
        "one passage, 80 and 160 words",
        "one passage, 80 and 400 words",
        "changes throughout, 80 and 80 words",
    ]
    assert cases["one passage, 80 and 400 words"]["resemblance"] == 68 / (76 + 396 - 68)
    assert cases["changes throughout, 80 and 80 words"]["resemblance"] == (72 - 9 * 4) / (76 + 76 - 36)
    assert all(case["probability"] == SETTINGS.scheme.detection(case["resemblance"]) for case in cases.values())
    assert f"{cases['one passage, 80 and 400 words']['probability']:.3f} (one passage, 80 and 400 words)" in done.err
    tokens = sorted(len(tokenize(source["text"])) for id, source in sources().items() if source.get("text"))
    tokens.remove(5000)  # of the text that is too large
    for command, *fresh in (("pairs",), ("group", "--default-rules")):
        said = server_cli(command, regrouped, "--measure", "containment", "--min", "0.9", *fresh).err
        (length,) = {int(one) for one in re.findall(r"\(one passage, (\d+) and", said)}
        assert tokens[(len(tokens) - 1) // 2] <= length <= tokens[len(tokens) // 2]  # the median
        assert f"(one passage, {length} and {5 * length} words)" in said
    report = server_cli("group", regrouped, "--measure", "edit", "--default-rules", "--dry-run", "--json").json
    assert (report["rules"]["measure"], report["detection"]["probability"]) == ("edit", None)
    assert "incomplete" not in server_cli("pairs", regrouped, "--measure", "bag").err  # all of them are found


def test_information_against_literal(filled: str, client: Client) -> None:
    """A text pasted twice contains nothing new, but half of its words have no counterpart."""

    def of(matching: str) -> float:
        hits = NearDupe(filled, client).similar(id="twice", measure="jaccard", matching=matching, min=0.01).hits
        return {hit.id: hit.similarity for hit in hits}["long"]

    assert of("information") == 60 / 120
    assert of("literal") == 60 / 180


def test_fields_of_features(filled: str, client: Client, server_cli: Cli) -> None:
    tags = server_cli("pairs", filled, "--features", "tags:values", "--min", "0.3", "--json").lines
    found = {(pair["a"]["id"], pair["b"]["id"]): pair["similarity"] for pair in tags}
    assert all(pair["measure"] == "resemblance (tags:values)" for pair in tags)
    assert found["b", "c"] == 1 / 3
    assert found["long", "short"] == 1 / 3
    assert not [pair for pair in found if "copy2" in pair]  # it has no tags, so it is similar to no other
    assert ("a", "copy") not in found  # a, b c; c, x
    titles = NearDupe(filled, client).similar(id="a", features=["title:flatten(words)"], min=0.3)
    assert {hit.id: hit.similarity for hit in titles.hits} == dict.fromkeys(["b", "c", "d", "copy"], 1 / 3)
    text = NearDupe(filled, client).similar(text=sources()["a"]["text"], features=["words"], min=0.3)
    assert {hit.id for hit in text.hits} == {"a", "copy", "copy2"}
    refused = server_cli("similar", filled, "--text", "some text", "--features", "title:words")
    assert (refused.code, "no field 'title'" in one_line(refused.err)) == (2, True)


REFUSED: list[tuple[tuple[str, ...], str]] = [
    (
        ("--measure", "cosine"),
        "is not one of resemblance, jaccard, containment, containment-longer, bag, weighted, edit, S_R, S_J, S_L.",
    ),
    (("--measure", "estimate"), "'estimate' is not one of resemblance"),
    (("--min", "0.9", "--max", "0.8"), "--min 0.9 is greater than --max 0.8"),
    (("--max", "0"), "0 is not in (0, 1]"),
    (("--min", "nan"), "nan is not in (0, 1]"),
    (("--measure", "edit", "--matching", "literal"), "--matching and --passage are for jaccard, containment"),
    (("--measure", "jaccard", "--matching", "fuzzy"), "'fuzzy' is not one of literal, information."),
    (("--ngram", "2"), "--ngram and --whitespace are for bag"),
    (("--measure", "bag", "--ngram", "8"), "1 to 7"),
    (("--measure", "bag", "--ngram", "0"), "1 to 7"),
    (("--measure", "bag", "--ngram", "2", "--features", "words"), "either the n-grams"),
    (("--measure", "containment", "--features", "words"), "compares words in order"),
    (("--features", "wrods"), "Known: words, ngrams(w)"),
    (("--features", "ngrams(0)"), "must be 1 or more"),
    (("--features", "tytle:words"), "Available: tags, text, title."),
    (("--features", "place:values"), "Available: tags, text, title."),
    (("--renew",), "--renew computes the frequencies of shingles again, and resemblance uses none."),
]


def test_refused(filled: str, server_cli: Cli) -> None:
    for options, said in REFUSED:
        for command in (("similar", filled, "--id", "a"), ("pairs", filled), ("group", filled)):
            done = server_cli(*command, *options)
            assert (done.code, done.out) == (2, ""), options
            assert said in " ".join(done.err.replace("│", " ").split())


def test_documents_without_keys(own: str, client: Client, server_cli: Cli) -> None:
    """Empty and too large documents are in no pair, a missing one is an error, a deleted one is counted."""
    for id, state in (("empty", "empty"), ("none", "empty")):
        found = NearDupe(own, client).similar(id=id, measure="edit", min=0.1)
        assert (found.query["state"], found.hits) == (state, ())
    assert "large" not in {pair.b[1] for pair in NearDupe(own, client).pairs(measure="bag", min=0.01)}
    done = server_cli("similar", own, "--id", "unknown", "--measure", "edit")
    assert (done.code, "no document 'unknown'" in one_line(done.err)) == (1, True)
    send(client, [({"delete": {"_index": own, "_id": "short"}}, None)])
    change(client, own, "half", {"text": "something else"})
    listed = NearDupe(own, client).pairs(measure="containment", min=0.1)
    assert not {"half", "short"} & {address[1] for pair in listed for address in (pair.a, pair.b)}
    assert listed.stale == 1


# Weights


def test_weighted(filled: str, client: Client, server_cli: Cli, cache: Path) -> None:
    """Frequent shingles have less weight; the frequencies of the index are stored and reported."""
    done = server_cli("pairs", filled, "--measure", "weighted", "--min", "0.05", "--json")
    (file,) = (cache / "frequencies").iterdir()
    with np.load(file) as stored:
        weights = Weights(int(stored["documents"]), stored["features"], stored["frequencies"])
        at = str(stored["at"])
    states = NearDupe(filled, client).stats().scope.states
    assert (
        weights.documents == states["signed"] + states["short"] < len(sources())
    )  # documents without keys are not sampled
    assert weights.frequencies.max() >= 5
    scores = truth(Measure(MeasureName.WEIGHTED, weights=weights), sources())
    found = {(pair["a"]["id"], pair["b"]["id"]): pair["similarity"] for pair in done.lines}
    assert found == {pair: score for pair, score in scores.items() if score >= 0.05 and pair in found}
    assert len(found) > 10
    assert found["a", "b"] != truth(Measure(), sources())["a", "b"]
    said = f"Feature weights: from {weights.documents} random documents, sampled {at}."
    assert said in done.err
    again = server_cli("similar", filled, "--id", "a", "--measure", "weighted")
    assert said in again.err  # the same frequencies
    hits = server_cli("group", filled, "--measure", "weighted", "--dry-run", "--json").json
    assert hits["rules"]["weights"] == {"documents": weights.documents, "at": at}


def test_frequencies_are_kept_for_a_day(
    filled: str, client: Client, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at(**options: Any) -> str:
        used = NearDupe(filled, client).similar(id="a", measure="weighted", **options).weights
        assert used is not None
        return used.at

    monkeypatch.setattr("es_neardupe.verification.feature_weights.timestamp", lambda: "2020-01-01T00:00:00Z")
    assert at() == "2020-01-01T00:00:00Z"
    monkeypatch.undo()
    monkeypatch.setenv("ES_NEARDUPE_CACHE", str(cache))
    first = at()
    assert first > "2024"
    (file,) = (cache / "frequencies").iterdir()
    written = file.stat().st_mtime_ns
    assert at() == first
    assert file.stat().st_mtime_ns == written
    assert at(renew=True) >= first
    assert file.stat().st_mtime_ns > written
    at(features=["flatten(words)"])
    assert len(list((cache / "frequencies").iterdir())) == 2  # other features have other frequencies


@pytest.mark.parametrize("damage", ["text", "empty", "half", "array", "pickle", "order", "counts"])
def test_damaged_frequencies_are_taken_anew(damage: str, filled: str, client: Client, cache: Path) -> None:
    options: dict[str, Any] = {"id": "a", "measure": "weighted", "min": 0.1}
    wanted = NearDupe(filled, client).similar(**options)
    (file,) = (cache / "frequencies").iterdir()
    with np.load(file) as stored:
        arrays = dict(stored)
    whole = file.read_bytes()
    if damage == "pickle":
        np.savez(file, **arrays | {"at": np.array([{"an": "object"}], object)})
    elif damage == "array":
        with file.open("wb") as opened:
            np.save(opened, arrays["features"])
    elif damage == "order":
        np.savez(file, **arrays | {"features": arrays["features"][::-1]})
    elif damage == "counts":
        np.savez(file, **arrays | {"frequencies": arrays["frequencies"] + 1000})
    else:
        file.write_bytes({"text": b"no archive", "empty": b"", "half": whole[: len(whole) // 2]}[damage])
    assert NearDupe(filled, client).similar(**options).hits == wanted.hits
    with np.load(file) as stored:
        assert all((stored[name] == arrays[name]).all() for name in ("features", "frequencies", "documents"))


def test_an_index_made_anew_has_other_frequencies(own: str, client: Client, cache: Path) -> None:
    NearDupe(own, client).similar(id="a", measure="weighted")
    client.request("DELETE", f"/{own}")
    make_index(client, own, KINDS)
    NearDupe(own, client).init(Settings(("text",), threshold=0.3))
    put(client, own, {"a": {"text": "only one text"}})
    NearDupe(own, client).enrich()
    used = NearDupe(own, client).similar(id="a", measure="weighted").weights
    assert used is not None
    assert used.documents == 1


def test_a_sample_is_bounded(filled: str, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def documents(**options: Any) -> int:
        used = NearDupe(filled, client).similar(id="a", measure="weighted", renew=True, **options).weights
        assert used is not None
        return used.documents

    monkeypatch.setattr(feature_weights, "SAMPLE", 5)
    assert documents() == 5
    monkeypatch.setattr(feature_weights, "_MAX_TOKENS", 1)
    assert 1 <= documents() <= 4  # three documents have no words at all


def test_a_cache_folder_that_is_a_file(filled: str, client: Client, cache: Path) -> None:
    cache.write_text("a file")
    with pytest.raises(SettingsError, match="ES_NEARDUPE_CACHE"):
        NearDupe(filled, client).similar(id="a", measure="weighted")


# Python


def test_python_takes_the_same_options(filled: str, server_url: str) -> None:
    with NearDupe(filled, url=server_url) as index:
        assert [hit.id for hit in index.similar(id="short", measure="containment", min=0.9).hits] == ["long"]
        assert index.pairs(measure=MeasureName.EDIT, min=0.9).measure == "edit"
        assert index.group(features=["flatten(words)"], dry_run=True).rules.measure == "resemblance (flatten(words))"
        for options in ({"measure": "x"}, {"features": "words"}, {"min": 0.9, "max": 0.1}, {"matching": "x"}):
            with pytest.raises(SettingsError):
                index.pairs(**options)
