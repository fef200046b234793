"""The command distribution on real servers, compared with brute force."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli, read_data, read_jsonl
from server_tools import (
    TEXT,
    change,
    delete_all,
    family,
    jaccard,
    make_index,
    one_line,
    put,
    send,
    shared_and_own,
    shingles,
    true_pairs,
    words,
)

from es_neardupe import NearDupe, Settings
from es_neardupe.commands.distribution.report import Distribution, DistributionReport, LabelCounts, ThresholdLevel
from es_neardupe.errors import IndexUnusable, InputError, NotFound, NotInitialised, SettingsError
from es_neardupe.keys.unit import Unit
from es_neardupe.options import Matching, MeasureName
from es_neardupe.server.client import Client
from es_neardupe.similarity.measure import Measure

FAMILIES = {
    f"f{number}-{place}": text
    for number in range(6)
    for place, text in enumerate(family(f"distribution{number}", 3 + number % 3, edits=1 + number))
}
COPIES = {"copy-1": FAMILIES["f0-0"], "copy-2": FAMILIES["f0-0"].upper(), "copy-3": FAMILIES["f5-1"]}
SINGLES = {f"s{number}": " ".join(words(number, 120)) for number in range(10)}
TEXTS = FAMILIES | COPIES | SINGLES


def enriched(client: Client, index: str) -> str:
    make_index(client, index, TEXT, settings={"number_of_shards": 3})
    put(client, index, {id: {"text": text} for id, text in TEXTS.items()} | {"empty": {"text": "!"}})
    NearDupe(index, client).init(Settings(("text",), threshold=0.7))
    NearDupe(index, client).enrich()
    return index


filled, own = shared_and_own(enriched)


def levels(one: Distribution) -> dict[float, ThresholdLevel]:
    return {level.threshold: level for level in one.levels}


def check_totals(report: DistributionReport) -> None:
    for one in report.distributions:
        for histogram in (one.sample, one.candidates):
            assert histogram.pairs == histogram.zero + sum(histogram.counts) + histogram.one
        assert one.sample.pairs == one.sampled * (one.sampled - 1) // 2
        pairs = [level.pairs for level in one.levels]
        assert pairs == sorted(pairs, reverse=True)
        for level in one.levels:
            assert level.groups * 2 <= level.documents <= report.documents
            assert level.largest <= level.documents
            assert level.sample_found <= level.sample_pairs
            assert level.expected.low <= level.expected.pairs <= level.expected.high


def test_all_figures_of_a_whole_index(filled: str, client: Client) -> None:
    """The sample is the whole index, so nothing is estimated."""
    report = NearDupe(filled, client).distribution()
    (one,) = report.distributions
    check_totals(report)
    assert report.preset.preset == "reader"  # many revisions
    tried = {one.title: one for one in report.presets}
    assert tried["strict"].pairs == len(true_pairs(TEXTS, 0.8)) < tried["reader"].pairs
    assert tried["strict"].documents == len({id for pair in true_pairs(TEXTS, 0.8) for id in pair})
    assert (report.preset.texts, report.preset.clean) == (len(TEXTS), None)
    assert (report.documents, one.sampled, report.stale, report.skipped) == (len(TEXTS), len(TEXTS), 0, 0)
    assert (one.measure, one.matching, one.shingle, report.threshold) == ("resemblance", None, 5, 0.7)
    truth = {pair: jaccard(*(TEXTS[id] for id in pair)) for pair in combinations(sorted(TEXTS), 2)}
    expected = [sum(k / 50 <= value < (k + 1) / 50 for value in truth.values() if value) for k in range(50)]
    assert list(one.sample.counts) == expected
    assert one.sample.zero == sum(value == 0 for value in truth.values())
    assert one.sample.one == one.candidates.one == sum(value == 1 for value in truth.values()) == 4
    scheme = Settings(("text",), threshold=0.7).scheme
    for threshold, level in levels(one).items():
        similar = true_pairs(TEXTS, threshold)
        assert level.sample_pairs == level.expected.pairs == level.expected.high == len(similar)
        assert level.detection == scheme.detection(threshold)
        assert level.sample_found == level.pairs  # of both kinds those that share a key
    for threshold in (0.85, 0.9, 0.95, 1.0):
        level = levels(one)[threshold]
        similar = true_pairs(TEXTS, threshold)
        assert level.pairs == len(similar)
        assert level.documents == len({id for pair in similar for id in pair})


@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.9, 1.0])
def test_groups_are_those_of_group(filled: str, client: Client, threshold: float) -> None:
    (one,) = NearDupe(filled, client).distribution(thresholds=[threshold]).distributions
    report = NearDupe(filled, client).group(min=threshold, dry_run=True)
    level = levels(one)[threshold]
    assert (level.groups, level.largest) == (report.groups.count, report.groups.largest)
    assert level.pairs == len(NearDupe(filled, client).pairs(min=threshold))


@pytest.mark.parametrize("name", [name.value for name in MeasureName])
def test_every_measure(filled: str, client: Client, name: str) -> None:
    matching = "information" if name in ("jaccard", "containment", "containment-longer") else None
    report = NearDupe(filled, client).distribution(
        measure=[name],
        shingle=None if name == "edit" else [2, 5],
        matching=matching or Matching.LITERAL,
        thresholds=[0.5],
    )
    check_totals(report)
    found = [(one.measure, one.shingle, one.matching) for one in report.distributions]
    assert found == ([(name, None, None)] if name == "edit" else [(name, 2, matching), (name, 5, matching)])
    for one in report.distributions:
        assert all((level.detection is None) != (name == "resemblance" and one.shingle == 5) for level in one.levels)
        assert one.candidates.one >= 4
        assert one.sample.one >= 4
        assert one.sample.counts != one.candidates.counts
    if name == "bag":
        measure = Measure(MeasureName.BAG, ngram=2)
        prepared = dict(zip(TEXTS, measure.prepare(list(TEXTS.values())), strict=True))
        scores = [measure.score(prepared[a], prepared[b]) for a, b in combinations(TEXTS, 2)]
        assert levels(report.distributions[0])[0.5].sample_pairs == sum(score >= 0.5 for score in scores)


def test_a_sample(filled: str, client: Client) -> None:
    def drawn(seed: int, sample: int = 20) -> DistributionReport:
        return NearDupe(filled, client).distribution(sample=sample, seed=seed, measure=["resemblance", "edit"])

    one, again, other = drawn(1), drawn(1), drawn(2)
    assert one == again
    assert one.distributions[0].sample != other.distributions[0].sample
    assert one.distributions[0].candidates == other.distributions[0].candidates  # always those of the whole index
    for report in (one, other, drawn(1, 2), drawn(3, 10_000)):
        check_totals(report)
    assert {found.sampled for found in one.distributions} == {20}
    assert {found.sampled for found in drawn(3, 10_000).distributions} == {len(TEXTS)}
    expected = [levels(drawn(seed).distributions[0])[0.7].expected for seed in range(8)]
    assert all(one.low < one.high for one in expected)
    assert sum(one.low < len(true_pairs(TEXTS, 0.7)) < one.high for one in expected) > 4


def test_examples_are_the_nearest_pairs(filled: str, client: Client) -> None:
    (one,) = NearDupe(filled, client).distribution(threshold=0.8).distributions
    truth = {pair: value for pair, value in true_pairs(TEXTS, 0.01).items() if value < 1}
    above, below = ({v for v in truth.values() if (v >= 0.8) is side} for side in (True, False))
    assert one.above[0].similarity == min(above)
    assert one.below[0].similarity == max(below)
    for example in one.above + one.below:
        ids = tuple(sorted((example.a.id, example.b.id)))
        assert example.a.index == example.b.index == filled
        assert jaccard(TEXTS[ids[0]], TEXTS[ids[1]]) == pytest.approx(example.similarity)
        assert example.excerpt_a != example.excerpt_b
        assert example.excerpt_a.strip("… ") in TEXTS[example.a.id]
    assert len(one.above) == len(one.below) == 3
    assert [example.similarity >= 0.8 for example in one.above + one.below] == [True] * 3 + [False] * 3


def test_changed_and_deleted_documents_are_in_no_pair(own: str, client: Client) -> None:
    before = NearDupe(own, client).distribution().distributions[0]
    change(client, own, "copy-1", {"text": "something else by now"})
    send(client, [({"delete": {"_index": own, "_id": "s0"}}, None)])
    change(client, own, "f1-0", {"text": None})
    report = NearDupe(own, client).distribution()
    check_totals(report)
    (one,) = report.distributions
    left = {id: text for id, text in TEXTS.items() if id not in ("copy-1", "s0", "f1-0")}
    assert report.stale == 2  # the deleted one is not read any more
    assert one.sampled == len(left)
    assert one.sample.one == one.candidates.one == 2 < before.sample.one
    assert levels(one)[0.9].pairs == len(true_pairs(left, 0.9))


def test_progress_ends_at_the_total(filled: str, client: Client) -> None:
    found: dict[str, list[tuple[int, int | None]]] = {}
    NearDupe(filled, client).distribution(
        measure=["resemblance", "jaccard"],
        progress=lambda stage, done, total: found.setdefault(stage, []).append((done, total)),
    )
    names = {f"{part}, {measure} 5" for part in ("sample", "candidates") for measure in ("resemblance", "jaccard")}
    assert set(found) == names | {"reading keys", "reading the sample", "presets", "facts of pairs"}
    for stage, steps in found.items():
        done = [one for one, _ in steps]
        assert done == sorted(done), stage
        assert stage == "reading keys" or (done[-1] > 0 and steps[-1] == (done[-1], done[-1]))


def test_large_buckets_are_counted(own: str, client: Client, server_cli: Cli) -> None:
    base = words("alike", 300)
    put(client, own, {f"alike{k}": {"text": " ".join([*base, f"ending{k}"])} for k in range(6)})
    NearDupe(own, client).enrich()
    report = NearDupe(own, client).distribution(max_bucket=2)
    assert 0 < report.skipped <= 15
    said = server_cli("distribution", own, "--max-bucket", "2")
    comparisons = (
        "1 comparison in large buckets was"
        if report.skipped == 1
        else f"{report.skipped} comparisons in large buckets were"
    )
    assert f"{comparisons} skipped" in said.err


@pytest.mark.product("each")
def test_command(filled: str, server_cli: Cli, client: Client, tmp_path: Path) -> None:
    picture = tmp_path / "news.svg"
    shown = server_cli("distribution", filled, "--plot", str(picture), "--thresholds", "0.5,0.9", "--threshold", "0.75")
    assert shown.code == 0
    advice, wrote = shown.err.splitlines()
    assert advice.startswith("Preset for new keys (init, migrate): reader. Of 37 texts")
    assert wrote == f"Wrote {picture}"
    assert "threshold 0.75" in picture.read_text("utf-8")
    for said in ("resemblance, 5 words: all", "^ threshold 0.75", "just above", "just below", "candidates", "█"):
        assert said in shown.out
    made = server_cli("distribution", filled, "--thresholds", "0.5,0.9", "--threshold", "0.75", "--json")
    report = NearDupe(filled, url=client.url).distribution(thresholds=[0.5, 0.9], threshold=0.75)
    assert made.json["distributions"][0]["sample"]["counts"] == list(report.distributions[0].sample.counts)
    assert [one["threshold"] for one in made.json["distributions"][0]["levels"]] == [0.5, 0.75, 0.9]
    assert len(made.json["edges"]) == len(report.distributions[0].sample.counts) + 1
    several = server_cli(
        "distribution", filled, "--measure", "bag", "--measure", "jaccard", "--shingle", "1,3", "--json"
    )
    titles = [(one["measure"], one["shingle"]) for one in several.json["distributions"]]
    assert titles == [("bag", 1), ("bag", 3), ("jaccard", 1), ("jaccard", 3)]


def test_control_characters_of_documents_are_not_printed(client: Client, index_name: str, server_cli: Cli) -> None:
    base = words("steer", 60)
    ids = {"[red]x[/]": "\x1b[31m[bold]evil[/bold]", "<b>": "\u202emirror", "a:smile:": "good :smile:"}
    make_index(client, index_name)
    put(client, index_name, {id: {"text": f"{first} {' '.join(base)}"} for id, first in ids.items()})
    NearDupe(index_name, client).init(Settings(("text",)))
    NearDupe(index_name, client).enrich()
    out = server_cli("distribution", index_name, "--threshold", "0.9").out
    assert "[red]x[/]" in out
    assert "[bold]evil[/bold]" in out or "bold]evil[/bold]" in out
    assert ":smile:" in out
    assert "\x1b" not in out
    assert "\u202e" not in out


def test_several_indices(client: Client, index_name: str, server_cli: Cli) -> None:
    names = [f"{index_name}-{letter}" for letter in "ab"]
    try:
        for name in names:
            make_index(client, name)
            put(client, name, {f"d{k}": {"text": text} for k, text in enumerate(family(name[-1:] < "c", 3))})
            NearDupe(name, client).init(Settings(("text",)))
            NearDupe(name, client).enrich()
        report = NearDupe(f"{index_name}-*", client).distribution()
        assert report.documents == 6
        assert report.distributions[0].candidates.one == 3  # the same texts in both
        out = server_cli("distribution", f"{index_name}-*").out
        assert f"{names[0]}/d" in "".join(out.split())
    finally:
        for name in names:
            client.request("DELETE", f"/{name}")


# White space


def test_whitespace_keeps_case_and_punctuation(filled: str, client: Client, server_cli: Cli) -> None:
    """As in "Near Duplicates with Jaccard": bags of n-grams of the words as they stand. Copies in capitals are none."""
    report = NearDupe(filled, client).distribution(whitespace=True, shingle=[1, 4], thresholds=[0.25, 0.9])
    check_totals(report)
    assert [(one.title, one.whitespace) for one in report.distributions] == [
        ("bag, 1 word, split at white space", True),
        ("bag, 4 words, split at white space", True),
    ]

    def grams(text: str, n: int) -> Counter[tuple[str, ...]]:
        split = text.split()
        return Counter(tuple(split[k : k + n]) for k in range(len(split) + 1 - n))

    for one, n in zip(report.distributions, (1, 4), strict=True):
        found = {id: grams(text, n) for id, text in TEXTS.items()}
        truth = [(found[a] & found[b]).total() / (found[a] | found[b]).total() for a, b in combinations(TEXTS, 2)]
        for threshold, level in levels(one).items():
            assert level.sample_pairs == sum(value >= threshold for value in truth)
        assert one.sample.one == one.candidates.one == sum(value == 1 for value in truth) == 2
        assert one.sample.zero == sum(value == 0 for value in truth)
    shown = server_cli("distribution", filled, "--whitespace", "--shingle", "4", "--json")
    assert shown.json["distributions"][0]["sample"]["one"] == 2
    said = server_cli("distribution", filled, "--whitespace", "--measure", "edit")
    assert (said.code, "--whitespace is for the measure bag, not for edit." in one_line(said.err)) == (2, True)


# Labelled pairs


def write_labels(folder: Path, pairs: Iterable[tuple[str, str, bool]], *more: str) -> str:
    file = folder / "pairs.csv"
    lines = [f"{a},{b},{'same' if same else 'different'}" for a, b, same in pairs]
    file.write_text("\n".join(["a,b,label", *lines, *more]), "utf-8")
    return str(file)


LABELLED = [(a, b, a.split("-")[0] == b.split("-")[0]) for a, b in combinations(sorted(FAMILIES | SINGLES), 2)]
"""Pairs of a family are the same."""


def test_labelled_pairs(own: str, client: Client, tmp_path: Path) -> None:
    """All figures by brute force, also those of pairs that are no candidates."""
    change(client, own, "s1", {"text": "something else by now"})
    file = write_labels(tmp_path, LABELLED, "f0-0,nowhere,same", "s0,gone,different")
    report = NearDupe(own, client).distribution(labels=file, measure=["resemblance", "S_J"], thresholds=[0.3, 0.9])
    used = [pair for pair in LABELLED if "s1" not in pair[:2]]
    assert report.labels is not None
    same = sum(one for *_, one in used)
    assert report.labels == LabelCounts(
        file, len(LABELLED) + 2, same, len(used) - same, missing=2, changed=len(LABELLED) - len(used)
    )
    shown = {(pair.a.id, pair.b.id) for pair in NearDupe(own, client).pairs(min=0.01)}
    measures = (Measure(MeasureName.RESEMBLANCE), Measure(MeasureName.JACCARD))
    for one, measure in zip(report.distributions, measures, strict=True):
        prepared = dict(zip(TEXTS, measure.prepare(list(TEXTS.values())), strict=True))
        truth = {(a, b): measure.score(prepared[a], prepared[b]) for a, b, _ in used}
        assert one.labels is not None
        assert [level.threshold for level in one.labels.levels] == [0.3, 0.7, 0.9]
        for level in (*one.labels.levels, one.labels.best):
            reached = [pair for pair in used if truth[pair[:2]] >= level.threshold]
            hits = [pair[:2] for pair in reached if pair[2]]
            assert (level.same, level.different) == (len(hits), len(reached) - len(hits))
            assert level.found == len(shown.intersection(hits))
            assert level.precision == pytest.approx(len(hits) / len(reached))
            assert level.recall == pytest.approx(len(hits) / same)
            assert level.f == pytest.approx(2 * len(hits) / (len(reached) + same))
        assert one.labels.best.f >= max(level.f for level in one.labels.levels)
        assert one.labels.levels[0].found < one.labels.levels[0].same  # some are no candidates, and still count
    assert report.recommendation is not None
    assert report.recommendation.measure in ("resemblance", "jaccard")
    assert "10-fold cross-validation" in report.recommendation.text


def test_the_recommended_threshold_groups_the_labelled_pairs(
    filled: str, client: Client, server_cli: Cli, tmp_path: Path
) -> None:
    file = write_labels(tmp_path, LABELLED, "f0-0,nowhere,same")
    found = server_cli("distribution", filled, "--labels", file, "--measure", "S_L", "--thresholds", "0.5")
    assert found.code == 0
    report = NearDupe(filled, client).distribution(labels=file, measure=["S_L"], thresholds=[0.5])
    assert report.recommendation is not None
    assert report.recommendation.text in found.err
    assert f"1 of {len(LABELLED) + 1} labelled pairs was not used: 1 has a document" in found.err
    assert "containment-longer, literal, 5 words: labelled pairs that reach a threshold" in found.out
    assert f"best: {report.recommendation.threshold:g}" in found.out
    command = re.search(r"`es-neardupe (group .*?)`", report.recommendation.text)
    assert command is not None
    assert server_cli(*command[1].split(), "--dry-run").code == 0
    reported = NearDupe(filled, client).distribution(labels=file, measure=["edit", "estimate", "bag"], whitespace=True)
    assert reported.recommendation is not None
    assert "It is the best of 3 histograms" in reported.recommendation.text


def test_labels_choose_keys_and_options(client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    """Texts above a longer footer, and copies without it: only without the footer do the labels decide. The commands
    group what is labelled same."""
    footer = " ".join(words("footer", 60))
    own = [" ".join(words(row, 40)) for row in range(40)]
    texts = {f"t{row:02}": f"{text} {footer}" for row, text in enumerate(own)}
    texts |= {f"t{row:02}-copy": f"Re: {text}" for row, text in enumerate(own[:12])}
    same = [(f"t{row:02}", f"t{row:02}-copy") for row in range(12)]
    different = [(f"t{row:02}", f"t{row + 1:02}") for row in range(30)]
    news = NearDupe(index_name, client)
    make_index(client, index_name, TEXT)
    put(client, index_name, {id: {"text": text} for id, text in texts.items()})
    news.init(Settings(("text",), threshold=0.9))
    news.enrich()
    file = write_labels(tmp_path, [(*pair, True) for pair in same] + [(*pair, False) for pair in different])
    shown = server_cli("distribution", index_name, "--labels", file)
    assert not shown.code, shown.err
    assert "presets with options, tried on the labelled pairs" in shown.out
    report = news.distribution(labels=file)
    best = {(one.preset, one.ignore_common): one.validated.f for one in report.trials}
    assert best["strict", "auto"] == 1
    assert report.preset.preset == "strict"
    assert report.preset.reasons in shown.err
    migrate, group = re.findall(r"`es-neardupe (.*?)`", report.preset.reasons)
    assert not server_cli(*migrate.split(), "--yes").code
    assert not server_cli(*group.split()).code
    assert {tuple(sorted(one.id for one in found.members)) for found in news.groups()} == set(same)
    again = news.distribution(labels=file).preset.reasons
    assert "`es-neardupe migrate" not in again


def test_the_recommendation_names_the_unit_of_the_shingles(client: Client, index_name: str, tmp_path: Path) -> None:
    make_index(client, index_name, TEXT)
    put(client, index_name, {id: {"text": text} for id, text in TEXTS.items()})
    index = NearDupe(index_name, client)
    index.init(Settings(("text",), threshold=0.7, unit=Unit.CHARACTER))
    index.enrich()
    file = write_labels(tmp_path, LABELLED)
    expected: list[tuple[int | str, str, str]] = [
        ("5c", "resemblance", "--measure resemblance --min"),
        (5, "resemblance", "needs an index with shingles of 5 words"),
        ("5c", "S_L", "--measure containment-longer --matching literal --min"),
    ]
    for shingle, measure, use in expected:
        found = index.distribution(labels=file, measure=[measure], shingle=[shingle]).recommendation
        assert found is not None
        assert use in found.text
        assert found.unit is (Unit.CHARACTER if measure == "resemblance" and shingle == "5c" else Unit.WORD)
        assert ("migrate" in found.text) <= (found.unit is Unit.CHARACTER)


def test_wrong_labels(filled: str, client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    file = write_labels(tmp_path, LABELLED[:3], "f0-0,f0-1,perhaps")
    said = server_cli("distribution", filled, "--labels", file)
    assert (said.code, "pairs.csv:5: the label is none of same" in one_line(said.err)) == (1, True)
    file = write_labels(tmp_path, [pair for pair in LABELLED if pair[2]], "s1,nowhere,different")
    with pytest.raises(InputError, match=r"and 0 labelled different that can be compared \(1 has a missing document"):
        NearDupe(filled, client).distribution(labels=file)
    other = f"{index_name}-b"
    make_index(client, other)
    put(client, other, {"f0-0": {"text": FAMILIES["f0-0"]}})
    NearDupe(other, client).init(Settings(("text",), threshold=0.7))
    NearDupe(other, client).enrich()
    try:
        with pytest.raises(InputError, match="id 'f0-0' is in several indices"):
            NearDupe(f"{filled},{other}", client).distribution(labels=write_labels(tmp_path, LABELLED))
        lines = [
            {"a": {"index": filled, "id": a}, "b": {"index": filled, "id": b}, "label": same} for a, b, same in LABELLED
        ]
        lines.append({"a": {"index": filled, "id": "f0-0"}, "b": {"index": other, "id": "f0-0"}, "label": True})
        (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
        report = NearDupe(f"{filled},{other}", client).distribution(labels=str(tmp_path / "pairs.jsonl"))
        assert report.labels is not None
        assert report.labels.pairs == report.labels.same + report.labels.different == len(LABELLED) + 1
    finally:
        client.request("DELETE", f"/{other}")


# Bad input


def test_too_few_documents(client: Client, index_name: str, server_cli: Cli) -> None:
    make_index(client, index_name)
    with pytest.raises(NotInitialised):
        NearDupe(index_name, client).distribution()
    NearDupe(index_name, client).init(Settings(("text",)))
    for documents in ({}, {"a": {"text": "one two three four five six"}}, {"b": {"text": ""}}):
        if documents:
            put(client, index_name, documents)
            NearDupe(index_name, client).enrich()
        with pytest.raises(
            IndexUnusable, match=r"has (0 documents|1 document) with keys, but a distribution needs at least 2"
        ):
            NearDupe(index_name, client).distribution()
    said = server_cli("distribution", index_name)
    assert said.code == 1
    assert "es-neardupe enrich" in one_line(said.err)
    put(client, index_name, {"b": {"text": "one two three four five seven"}})
    NearDupe(index_name, client).enrich()
    (one,) = NearDupe(index_name, client).distribution().distributions
    assert (one.sample.pairs, one.sampled) == (1, 2)
    assert one.above == ()
    assert one.below[0].similarity == pytest.approx(len(shingles("one two three four five")) / 3)


BAD: list[tuple[list[str], str]] = [
    (["--sample", "1"], "--sample"),
    (["--measure", "cosine"], "resemblance"),
    (["--matching", "fuzzy"], "information"),
    (["--shingle", "1,x"], "is not a number of words (5), characters (5c) or shapes (7s)"),
    (["--shingle", ""], "is not a number of words (5), characters (5c) or shapes (7s)"),
    (["--shingle", "1,,2"], "is not a number of words (5), characters (5c) or shapes (7s)"),
    (["--thresholds", "0.5;0.6"], "is not a list of numbers"),
    (["--shingle", "0"], "is not a number of words (5), characters (5c) or shapes (7s)"),
    (["--measure", "bag", "--shingle", "8"], "1 to 7 words"),
    (["--thresholds", "0.5,1.5"], "not 1.5."),
    (["--thresholds", "nan"], "not nan."),
    (["--threshold", "0"], "0 is not in (0, 1]"),
    (["--plot", "a.pdf"], "ends in .png or .svg"),
    (["--plot", "/no/such/folder/a.png"], "its folder does not exist"),
    (["--seed", str(2**64)], "--seed"),
]


def test_wrong_options(filled: str, server_cli: Cli) -> None:
    for options, message in BAD:
        said = server_cli("distribution", filled, *options)
        assert (said.code, said.out) == (2, ""), options
        assert message in " ".join(said.err.replace("│", " ").split())


def test_wrong_arguments(filled: str, client: Client) -> None:
    with pytest.raises(SettingsError, match="Unknown measure 'cosine'"):
        NearDupe(filled, client).distribution(measure=["cosine"])
    with pytest.raises(SettingsError, match="`sample` must be 2 or more"):
        NearDupe(filled, client).distribution(sample=0)
    with pytest.raises(NotFound):
        NearDupe("no-such-index", client).distribution()


# Real texts


def test_real_press_releases(client: Client) -> None:
    """1,000 releases, and estimates from 350 of them. The true similarities were computed by other code.

    An interval misses the true number for one sample in twenty: most of several samples must contain it. They are
    always the same ones, because they depend on the name of the index.
    """
    index_name = "test-press-releases"
    documents: list[dict[str, Any]] = read_jsonl("senate_press/sample_12_senators.jsonl.xz")[:1000]
    texts = {one["id"]: one["text"] for one in documents}
    make_index(client, index_name)
    put(client, index_name, {id: {"text": text} for id, text in texts.items()})
    NearDupe(index_name, client).init(Settings(("text",)))
    NearDupe(index_name, client).enrich()
    whole = NearDupe(index_name, client).distribution(sample=1000)
    parts = [NearDupe(index_name, client).distribution(sample=350, seed=seed) for seed in range(5)]
    delete_all(client, index_name)
    lines = read_data("senate_press/sample_12_senators.exact_pairs.tsv").read_text("utf-8").splitlines()
    truth = [float(value) for a, b, value in (line.split("\t") for line in lines) if a in texts and b in texts]
    assert len(truth) > 100
    hits = 0
    for threshold in (0.3, 0.5, 0.8, 0.9):
        similar = sum(value >= threshold for value in truth)
        exact, *estimated = (levels(report.distributions[0])[threshold] for report in (whole, *parts))
        assert exact.sample_pairs == exact.expected.pairs == similar
        hits += sum(one.expected.low <= similar <= one.expected.high for one in estimated)
        assert exact.pairs == exact.sample_found <= similar
        assert exact.pairs >= 0.97 * similar or threshold < 0.8
    assert hits > 16  # of 20
