"""`audit` on real servers: every number compared with independent code that compares all pairs."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest
import xxhash
from conftest import Cli, read_data, read_jsonl
from server_tools import (
    JSON,
    change,
    family,
    hits,
    make_index,
    ours,
    put,
    shingles,
    true_pairs,
    versions,
    words,
)

from es_neardupe import NearDupe, Settings
from es_neardupe.commands.audit.report import AuditReport
from es_neardupe.commands.audit.why_missed import LossReason
from es_neardupe.errors import IndexUnusable, NotInitialised, SettingsError
from es_neardupe.server.client import Client
from es_neardupe.verification.verify import Verifier

SETTINGS = Settings(("text",), threshold=0.8, bands=9, rows=13)
"""Bands that lose most pairs near the threshold."""

Pair = tuple[str, str]

_HAN = [chr(0x4E00 + k) for k in range(3000)]


def han(seed: int, size: int) -> list[str]:
    """Near-duplicates of single Han characters, separated by spaces so that any code finds the words."""
    rng = np.random.default_rng(seed)
    base = [_HAN[k] for k in rng.integers(0, 3000, 400)]
    return [" ".join([*base[:200], _HAN[number], *base[200:]]) for number in range(size)]


def named(name: str, texts: Iterable[str]) -> dict[str, str]:
    return {f"{name}-{place}": text for place, text in enumerate(texts)}


CHANGED: dict[str, JSON] = {
    "scheme-1": {"scheme": "v1-00000000"},
    "large-1": {"state": "too_large", "content": None, "bands": None, "tokens": 0, "features": 0},
    "failed-1": {"state": "failed", "content": None, "bands": None, "tokens": 0, "features": 0},
    "removed-1": {"bands": None},
}
"""Damaged neardupe fields."""

REASONS = {
    "scheme-1": LossReason.UNPROCESSED,
    "new-1": LossReason.UNPROCESSED,
    "large-1": LossReason.TOO_LARGE,
    "failed-1": LossReason.FAILED,
    "removed-1": LossReason.CORRUPT,
    "altered-1": LossReason.CORRUPT,
    "stale-1": LossReason.STALE,
}

TEXTS = {
    **{
        id: text
        for name in ("fine", *{id.split("-")[0]: 0 for id in REASONS})
        for id, text in named(name, family(name, 3)).items()
    },
    **{id: text for k in range(12) for id, text in named(f"apart{k}", family(f"apart{k}", 3, edits=4)).items()},
    **{
        id: text for k in range(3) for id, text in named(f"long{k}", family(f"long{k}", 2, length=700, edits=6)).items()
    },
    **named("bucket", family("bucket", 12, length=400)),
    **named("han", han(1, 4)),
    **named("note", ["call me", "call me", "Call me!"]),
    **named("single", [" ".join(words(k, 80)) for k in range(12)]),
    **named("empty", ["", "..."]),
}
MAX_BUCKET = 5


@pytest.fixture
def damaged(client: Client, index_name: str) -> str:
    """An index with every kind of damage."""
    make_index(client, index_name, settings={"number_of_shards": 3})
    put(client, index_name, {id: {"text": text} for id, text in TEXTS.items() if id != "new-1"})
    NearDupe(index_name, client).init(SETTINGS)
    NearDupe(index_name, client).enrich()
    put(client, index_name, {"new-1": {"text": TEXTS["new-1"]}})
    for id, fields in CHANGED.items():
        change(client, index_name, id, {"neardupe": fields})
    stored = {hit["_id"]: hit["_source"].get("neardupe", {}) for hit in hits(client, index_name)}
    change(client, index_name, "altered-1", {"neardupe": {"bands": stored["single-0"]["bands"]}})
    change(client, index_name, "stale-1", {"text": TEXTS["stale-1"] + " and one more thing"})
    return index_name


def expected(client: Client, index: str, minimum: float) -> dict[Pair, LossReason | None]:
    """The true pairs and why each is lost, from the stored documents and from the list of `pairs`."""
    stored = {hit["_id"]: hit["_source"] for hit in hits(client, index)}
    texts = {id: one["text"] for id, one in stored.items()}
    ours = {id: one.get("neardupe", {}) for id, one in stored.items()}
    listed = {(one.a[1], one.b[1]) for one in NearDupe(index, client).pairs(min=minimum, max_bucket=MAX_BUCKET)}
    order = list(LossReason)
    found: dict[Pair, LossReason | None] = {}
    for a, b in true_pairs(texts, minimum):
        reasons = [REASONS[id] for id in (a, b) if id in REASONS]
        if (a, b) in listed:
            found[a, b] = None
        elif reasons:
            found[a, b] = min(reasons, key=order.index)
        else:
            found[a, b] = LossReason.BUCKET if set(ours[a]["bands"]) & set(ours[b]["bands"]) else LossReason.BANDS
    assert listed <= found.keys()
    return found


def check(report: AuditReport, truth: Mapping[Pair, LossReason | None], sampled: set[str]) -> None:
    """Each number compared with the true pairs of the sample."""
    mine = {pair: loss for pair, loss in truth.items() if sampled & set(pair)}
    inner = {pair: loss for pair, loss in truth.items() if sampled >= set(pair)}
    for one, pairs in ((report.recall, mine), (report.within, inner)):
        assert (one.pairs, one.found) == (len(pairs), sum(loss is None for loss in pairs.values()))
        assert one.recall == (one.found / one.pairs if one.pairs else None)
    reasons = Counter(loss for loss in mine.values() if loss)
    assert {one.reason: one.pairs for one in report.lost} == {loss: reasons[loss] for loss in LossReason}
    assert report.recall.pairs == report.recall.found + sum(one.pairs for one in report.lost)
    for parts in (report.lengths, report.scripts):
        assert sum(part.recall.pairs for part in parts) == report.recall.pairs
        assert sum(part.recall.found for part in parts) == report.recall.found
    for lost in report.lost:
        assert len(lost.examples) == min(5, lost.pairs)
        for example in lost.examples:
            assert mine[example.a.id, example.b.id] is lost.reason
    assert (report.denied, report.wrong, report.precision) == (0, (), 1.0)


def drawn(index: str, ids: Iterable[str], size: int, seed: int) -> set[str]:
    """The documents with the lowest hashes of their addresses."""
    return set(sorted(ids, key=lambda id: xxhash.xxh3_64_intdigest(f"{index}\0{id}".encode(), seed))[:size])


def test_every_reason_is_found(damaged: str, client: Client, server_cli: Cli) -> None:
    before = versions(client, damaged)
    for minimum in (0.5, 0.8):
        truth = expected(client, damaged, minimum)
        if minimum == 0.8:
            assert {loss for loss in truth.values() if loss} == set(LossReason)  # the index has them all
        report = NearDupe(damaged, client).audit(min=minimum, max_bucket=MAX_BUCKET)
        assert (report.documents, report.sampled) == (len(TEXTS), len(TEXTS))
        assert report.recall.low == report.recall.recall == report.recall.high  # nothing is estimated
        check(report, truth, set(TEXTS))
        scripts = {part.name: part.recall.pairs for part in report.scripts}
        assert scripts == {"Latin": len(truth) - 6, "Han": 6}
        notes = {part.name: part.recall for part in report.lengths}["under 20"]
        assert (notes.pairs, notes.found) == (3, 3)
        longest = {part.name: part.recall.pairs for part in report.lengths}["500 to 1,999"]
        assert longest == sum(pair[0].startswith("long") for pair in truth)
    truth = expected(client, damaged, 0.8)
    intervals = []
    for seed in range(4):
        report = NearDupe(damaged, client).audit(sample=40, seed=seed, max_bucket=MAX_BUCKET)
        check(report, truth, drawn(damaged, TEXTS, 40, seed))
        assert (report.sampled, report.seed) == (40, seed)
        intervals.append(report.recall)
    share = sum(loss is None for loss in truth.values()) / len(truth)
    assert sum(one.low <= share <= one.high for one in intervals if one.low and one.high) >= 2
    assert versions(client, damaged) == before  # nothing was written
    shows_all(damaged, client, server_cli)


def shows_all(index: str, client: Client, server_cli: Cli) -> None:
    """The command prints the numbers of the function, and other bands for an index whose bands lose too many pairs."""
    options = ("--min", "0.8", "--max-bucket", str(MAX_BUCKET))
    report = NearDupe(index, url=client.url).audit(min=0.8, max_bucket=MAX_BUCKET)
    printed = server_cli("audit", index, *options, "--json")
    assert printed.code == 0
    assert printed.json["recall"] == {name: getattr(report.recall, name) for name in printed.json["recall"]}
    assert [one["reason"] for one in printed.json["lost"]] == [loss.value for loss in LossReason]
    shown = server_cli("audit", index, *options)
    assert shown.code == 0
    for loss in LossReason:
        assert f" {loss.value} " in shown.out
    for said in (
        f"0.8 similar of {len(TEXTS)} of {len(TEXTS)} documents",
        "script Han",
        "tokens 100 to 499",
        f"enrich {index} --check",
    ):
        assert said in shown.out, said
    advice = report.advice
    assert advice is not None
    assert advice.expected >= SETTINGS.detection > (report.expected or 1)
    assert Settings(("text",), threshold=0.8, detection=advice.detection).scheme.bands == advice.bands
    assert f"{advice.bands} bands of {advice.rows} rows would find" in shown.err
    lower = NearDupe(index, client).audit(min=0.5).advice
    assert lower is not None
    assert lower.rows < advice.rows


def test_a_wrong_verification_is_denied(
    client: Client, index_name: str, server_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error in verification is an error of the program: shown, and exit code 1."""
    make_index(client, index_name)
    put(client, index_name, {id: {"text": text} for id, text in named("d", family("denied", 4, edits=2)).items()})
    NearDupe(index_name, client).init(Settings(("text",)))
    NearDupe(index_name, client).enrich()
    assert NearDupe(index_name, client).audit().precision == 1.0

    right = Verifier.similarities

    def wrong(self: Verifier, left: Any, right_: Any, *more: Any) -> Any:
        found = right(self, left, right_, *more)
        found[0] = 0.999
        return found

    monkeypatch.setattr(Verifier, "similarities", wrong)
    report = NearDupe(index_name, client).audit()
    (denied,) = report.wrong
    texts = dict(named("d", family("denied", 4, edits=2)))
    one, other = (shingles(texts[document.id]) for document in (denied.a, denied.b))
    assert denied.actual == pytest.approx(len(one & other) / len(one | other))
    assert (denied.claimed, report.denied, report.claims, report.precision) == (0.999, 1, 6, 5 / 6)
    shown = server_cli("audit", index_name)
    assert shown.code == 1
    assert "wrong: d-" in shown.out
    assert "this is a bug" in shown.err
    assert server_cli("audit", index_name, "--json").code == 1
    change(client, index_name, denied.a.id, {"text": "something else"})  # no longer a claim, but stale
    assert NearDupe(index_name, client).audit().recall.pairs == 3


@pytest.mark.product("each")
def test_stored_groups_are_held_against_the_texts(client: Client, index_name: str, server_cli: Cli) -> None:
    make_index(client, index_name)
    put(client, index_name, {id: {"text": text} for id, text in named("d", family("stored", 5, edits=2)).items()})
    NearDupe(index_name, client).init(Settings(("text",)))
    NearDupe(index_name, client).enrich()
    NearDupe(index_name, client).group(measure="containment")
    assert NearDupe(index_name, client).audit().members is None  # similarities of another measure
    NearDupe(index_name, client).group(default_rules=True)
    report = NearDupe(index_name, client).audit()
    assert (report.members, report.denied, report.precision) == (4, 0, 1.0)
    assert NearDupe(index_name, client).audit(min=1.0).members == 0
    forged = next(id for id, one in ours(client, index_name).items() if not one["principal"])
    change(client, index_name, forged, {"neardupe": {"similarity": 0.999}})
    shown = server_cli("audit", index_name, "--json")
    assert shown.code == 1
    assert (shown.json["members"], shown.json["denied"], shown.json["precision"]) == (4, 1, 1 - 1 / 14)
    (denied,) = shown.json["wrong"]
    assert denied["claimed"] == 0.999
    assert forged in (denied["a"]["id"], denied["b"]["id"])
    change(client, index_name, forged, {"text": "something else"})  # whose similarity was another text's
    report = NearDupe(index_name, client).audit()
    assert (report.members, report.denied) == (3, 0)


def test_too_little_to_measure(client: Client, index_name: str, server_cli: Cli) -> None:
    make_index(client, index_name)
    with pytest.raises(NotInitialised):
        NearDupe(index_name, client).audit()
    NearDupe(index_name, client).init(Settings(("text",)))
    with pytest.raises(IndexUnusable, match="has 0 documents, but an audit needs at least 2"):
        NearDupe(index_name, client).audit()
    put(client, index_name, {"a": {"text": "one two"}, "b": {"text": ""}})
    report = NearDupe(index_name, client).audit()
    assert (report.documents, report.sampled, report.claims) == (2, 2, 0)
    assert (report.precision, report.recall.recall, report.expected, report.advice) == (None,) * 4
    shown = server_cli("audit", index_name)
    assert shown.code == 0
    assert "recall cannot be measured" in shown.err
    with pytest.raises(SettingsError, match="`min`"):
        NearDupe(index_name, client).audit(min=0)
    for options, code in ((("--sample", "0"), 2), (("--seed", "-1"), 2), (("--min", "2"), 2)):
        said = server_cli("audit", index_name, *options)
        assert said.code == code


def test_several_indices(client: Client, index_name: str, server_cli: Cli) -> None:
    """Pairs of documents in all indices of a name, each document with its index."""
    names = [f"{index_name}-a", f"{index_name}-b"]
    for number, name in enumerate(names):
        make_index(client, name)
        put(client, name, {id: {"text": text} for id, text in named("d", family("several", 2)).items()}, routing="r")
        NearDupe(name, client).init(Settings(("text",)))
        NearDupe(name, client).enrich()
        change(client, name, "d-0", {"neardupe": {"scheme": None}} if number else {}, routing="r")
    client.request("PUT", f"/{names[1]}/_doc/unseen", body={"text": "no search has seen this yet"})
    reported: dict[str, tuple[int, int | None]] = {}
    report = NearDupe(f"{index_name}-*", client).audit(
        progress=lambda stage, done, total: reported.update({stage: (done, total)})
    )
    assert set(reported) == {"drawing the sample", "reading keys", "verifying pairs", "comparing with all texts"}
    assert reported["drawing the sample"] == reported["comparing with all texts"] == (5, 5)
    assert (report.indices, report.documents, report.sampled) == (tuple(names), 5, 5)
    assert (report.recall.pairs, report.recall.found, report.denied) == (6, 3, 0)
    assert {one.reason: one.pairs for one in report.lost if one.pairs} == {LossReason.UNPROCESSED: 3}
    assert f"{names[1]}/d-0" in server_cli("audit", f"{index_name}-*").out


@pytest.mark.parametrize("sample", [10_000, 1])
def test_an_id_under_two_routings(client: Client, index_name: str, sample: int) -> None:
    """These are two documents, each with its own text."""
    make_index(client, index_name, settings={"number_of_shards": 3})
    for routing, text in zip("ad", family("routings", 2), strict=True):
        put(client, index_name, {"1": {"text": text}}, routing=routing)
    assert len(hits(client, index_name)) == 2  # in two shards
    news = NearDupe(index_name, client)
    news.init(Settings(("text",)))
    news.enrich()
    assert news.group().groups.grouped == 2
    report = news.audit(sample=sample)
    assert (report.documents, report.sampled, report.wrong) == (2, min(sample, 2), ())
    assert (report.recall.pairs, report.recall.found) == (1, 1)


TRUTH = "senate_press/sample_12_senators.exact_pairs.tsv"


def real_truth(ids: Iterable[str], minimum: float) -> set[Pair]:
    """The pairs that independent code found among these press releases."""
    known = set(ids)
    lines = (line.split("\t") for line in read_data(TRUTH).read_text("utf-8").splitlines() if line[0] != "#")
    return {(min(a, b), max(a, b)) for a, b, value in lines if float(value) >= minimum and {a, b} <= known}


def test_real_press_releases(client: Client, index_name: str) -> None:
    """1,000 releases: an audit of all of them, and of 300. Half of each of five releases is the same, and the rest is
    about other subjects: these pairs are counted apart."""
    documents = read_jsonl("senate_press/sample_12_senators.jsonl.xz")[:1000]
    make_index(client, index_name)
    put(client, index_name, {one["id"]: {"text": one["text"]} for one in documents})
    NearDupe(index_name, client).init(Settings(("text",)))
    NearDupe(index_name, client).enrich()
    whole = NearDupe(index_name, client).audit(min=0.5)
    truth = real_truth((one["id"] for one in documents), 0.5)
    assert (whole.boilerplate.clusters, whole.boilerplate.documents) == (1, 5)
    assert whole.only_boilerplate is not None
    assert whole.recall.pairs == whole.within.pairs == len(truth) - whole.only_boilerplate.pairs > 30
    found = {(pair.a[1], pair.b[1]) for pair in NearDupe(index_name, client).pairs(min=0.5)}
    assert whole.recall.found + whole.only_boilerplate.found == len(found & truth) == len(found)
    assert {one.reason for one in whole.lost if one.pairs} <= {LossReason.BANDS}
    part = NearDupe(index_name, client).audit(min=0.5, sample=300)
    sampled = drawn(index_name, (one["id"] for one in documents), 300, 1)
    apart = part.only_boilerplate.pairs if part.only_boilerplate else 0  # none if too few of the five are drawn
    assert part.recall.pairs + apart == sum(bool(sampled & set(pair)) for pair in truth)
    assert 0 <= sum(sampled >= set(pair) for pair in truth) - part.within.pairs <= apart
    assert part.precision == whole.precision == 1.0


@pytest.mark.long
def test_an_application_that_writes_meanwhile(client: Client, index_name: str) -> None:
    """Texts change, documents are added and deleted, groups are made again: the sums hold, and nothing is refuted."""
    texts = {id: text for k in range(40) for id, text in named(f"w{k}", family(f"w{k}", 5, edits=2)).items()}
    make_index(client, index_name)
    put(client, index_name, {id: {"text": text} for id, text in texts.items()})
    NearDupe(index_name, client).init(Settings(("text",)))
    NearDupe(index_name, client).enrich()
    NearDupe(index_name, client).group()
    done, rounds = threading.Event(), [0]

    def write() -> None:
        rng = random.Random(1)
        while not done.is_set():
            chosen = rng.sample(sorted(texts), 10)
            put(client, index_name, {id: {"text": texts[id] + f" changed {rng.random()}"} for id in chosen[:5]})
            for id in chosen[5:]:
                change(
                    client,
                    index_name,
                    id,
                    {"text": texts[id]},
                )
            NearDupe(index_name, client).enrich(check=True)
            NearDupe(index_name, client).group()
            rounds[0] += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        reports = [NearDupe(index_name, client).audit(sample=150, seed=seed) for seed in range(25)]
    finally:
        done.set()
        writer.join()
    assert rounds[0] > 3
    for report in reports:
        assert report.denied == 0
        assert report.recall.pairs == report.recall.found + sum(one.pairs for one in report.lost) > 0


@pytest.mark.long
def test_all_real_press_releases(client: Client, index_name: str, server_cli: Cli) -> None:
    """12,169 releases, all of them in the sample: exactly the pairs that independent code found."""
    file = read_data("senate_press/sample_12_senators.jsonl.xz")
    assert server_cli("init", index_name, "--field", "text", "--create").code == 0
    assert server_cli("load", index_name, str(file)).code == 0
    ids = [one["id"] for one in read_jsonl("senate_press/sample_12_senators.jsonl.xz")]
    for minimum in (0.3, 0.8):
        truth = real_truth(ids, minimum)
        report = NearDupe(index_name, client).audit(sample=len(ids), min=minimum)
        assert report.recall.pairs == len(truth)
        assert (report.recall.recall or 0) >= 0.99 or minimum < 0.8
        assert report.precision == 1.0
