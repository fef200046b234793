"""The preset ``supershingles`` on real servers: pairs found by two common keys of six, by the same rule everywhere."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from conftest import Cli, read_jsonl, read_truth
from server_tools import hits, make_index, one_line, ours, put, shingles, words

from es_neardupe import NearDupe, Settings
from es_neardupe.server.client import Client, path

PRESET = Settings.chosen(("text",), preset="supershingles")
LOW = 1e-6
"""The minimum similarity of nearly all candidates."""

Pairs = dict[tuple[str, str], float]


def edited(seed: str, edits: int) -> str:
    """A text of 600 words, with a number of them replaced."""
    text, chance = words("supershingles", 600), random.Random(seed)
    for place in chance.sample(range(600), edits):
        text[place] = f"edit{seed}x{place}"
    return " ".join(text)


IDS = ("a/b", "with blanks in it", "grüße ✓ 東京", "100%", *(f"d{k}" for k in range(8)))
TEXTS = {id: edited(id, k) for k, id in enumerate(IDS)} | {"copy": edited("a/b", 0), "short": "a few words"}


def in_common(client: Client, index: str) -> dict[tuple[str, str], int]:
    """Number of stored keys that each pair of documents shares."""
    keys = {id: set(own.get("bands", ())) for id, own in sorted(ours(client, index).items())}
    assert {len(one) for one in keys.values()} == {6}
    return {pair: len(keys[pair[0]] & keys[pair[1]]) for pair in combinations(keys, 2)}


def exactly(a: str, b: str) -> float:
    """The resemblance by 8-word shingles."""
    one, other = shingles(TEXTS[a], 8), shingles(TEXTS[b], 8)
    return len(one & other) / len(one | other)


def found_pairs(client: Client, index: str, minimum: float) -> Pairs:
    found = NearDupe(index, client).pairs(min=minimum)
    return {(min(p.a[1], p.b[1]), max(p.a[1], p.b[1])): p.similarity for p in found}


@pytest.fixture
def filled(client: Client, index_name: str) -> str:
    make_index(client, index_name)
    put(client, index_name, {id: {"text": text} for id, text in TEXTS.items()})
    NearDupe(index_name, client).init(PRESET)
    assert NearDupe(index_name, client).enrich().writes.written == len(TEXTS)
    return index_name


def test_init(client: Client, index_name: str, server_cli: Cli) -> None:
    made = server_cli("init", index_name, "--field", "text", "--create", "--preset", "supershingles")
    assert made.code == 0
    assert "6 bands of 14 rows, of which 2 must agree; a pair exactly 0.976 similar" in made.out
    assert "with probability 0.9909" in made.out
    again = server_cli("init", index_name, "--field", "text", "--preset", "supershingles", "--json").json
    assert (again["prepared"], again["agree"], again["threshold"]) == ([], 2, 0.976)
    other = server_cli("init", index_name, "--field", "text")
    assert other.code == 1
    assert "agree: 2, not 1" in one_line(other.err)
    assert "of which 2 must agree, threshold 0.976" in server_cli("doctor", index_name).out
    low = server_cli(
        "init", f"{index_name}-low", "--field", "text", "--create", "--preset", "supershingles", "--threshold=0.8"
    )
    assert "exactly 0.8 similar becomes a candidate with probability 0.0258" in low.out
    assert "those of the preset supershingles" in low.err


def test_candidates_are_the_pairs_with_two_common_keys(client: Client, filled: str) -> None:
    common = in_common(client, filled)
    assert {0, 1, 2} < set(common.values())
    wanted = {pair for pair, number in common.items() if number >= 2}
    found = found_pairs(client, filled, LOW)
    assert found == pytest.approx({pair: exactly(*pair) for pair in wanted})
    for id in TEXTS:
        near = NearDupe(filled, client).similar(id=id, min=LOW)
        expected = {pair: common[pair] for pair in wanted if id in pair}
        shared = {(min(id, hit.id), max(id, hit.id)): hit.shared_bands for hit in near.hits}
        assert shared.items() <= expected.items()
        assert len(expected) == near.candidates == sum(1 + hit.copies for hit in near.hits)
        assert {TEXTS[hit.id] for hit in near.hits} == {TEXTS[one] for pair in expected for one in {*pair} - {id}}
    by_text = NearDupe(filled, client).similar(text=TEXTS["a/b"], min=0.5)
    (same,) = (hit for hit in by_text.hits if hit.resemblance == 1)
    assert (same.id in ("a/b", "copy"), same.copies) == (True, 1)
    assert by_text.detection.probability == PRESET.scheme.detection(0.5)


def test_groups_hold_as_documents_come_and_go(client: Client, filled: str) -> None:
    def settled() -> None:
        fresh = NearDupe(filled, client).group(min=0.9, evidence=True, rebuild=True, dry_run=True)
        assert (fresh.scope.whole, fresh.writes.written) == (True, 0)

    first = NearDupe(filled, client).group(min=0.9, evidence=True)
    assert first.scope.whole
    assert first.groups.grouped >= 3
    settled()
    put(client, filled, {f"new{k}": {"text": edited(f"new{k}", 3 * k)} for k in range(3)})
    put(client, filled, {"copy": {"text": edited("copy", 5)}})
    client.request("DELETE", path(filled, "_doc", "a/b"), params={"refresh": "true"})
    NearDupe(filled, client).enrich()
    changed = NearDupe(filled, client).group(min=0.9, evidence=True, check=True)
    assert (changed.scope.whole, changed.writes.written > 0) == (False, True)
    settled()
    (tried,) = NearDupe(filled, client).what_if(min=[0.95]).thresholds
    meant = NearDupe(filled, client).group(min=0.95, dry_run=True)
    assert (tried.groups, tried.grouped, tried.largest) == (
        meant.groups.count,
        meant.groups.grouped,
        meant.groups.largest,
    )
    assert tried.detection.probability == PRESET.scheme.detection(0.95)


def test_figures(client: Client, filled: str, server_cli: Cli) -> None:
    """The audit and the distribution count as candidates what is one, and stats names both keys of a bucket."""
    common = in_common(client, filled)
    true = [pair for pair in common if exactly(*pair) >= 0.7]
    report = NearDupe(filled, client).audit(min=0.7)
    lost = sum(common[pair] < 2 for pair in true)
    assert (report.recall.pairs, report.recall.found) == (len(true), len(true) - lost)
    assert {one.reason.value: one.pairs for one in report.lost if one.pairs} == {"bands": lost}
    assert (lost > 0, report.denied, report.promised) == (True, 0, PRESET.scheme.detection(0.7))
    advice = report.advice
    assert advice is not None
    other = Settings(("text",), threshold=0.7, detection=advice.detection, shingle=8, permutations=84).scheme
    assert (advice.shingle, advice.permutations, advice.bands, advice.rows) == (8, 84, other.bands, other.rows)
    assert "--shingle 8 --permutations 84`." in server_cli("audit", filled, "--min", "0.7").err
    for level in NearDupe(filled, client).distribution(thresholds=[0.7, 0.9]).distributions[0].levels:
        reached = [pair for pair in common if exactly(*pair) >= level.threshold]
        assert (level.sample_pairs, level.sample_found) == (len(reached), sum(common[pair] >= 2 for pair in reached))
        assert level.detection == PRESET.scheme.detection(level.threshold)
    reported = NearDupe(filled, client).stats(buckets=10)
    assert reported.buckets is not None
    keys = {hit["_id"]: set(hit["_source"]["neardupe"]["bands"]) for hit in hits(client, filled)}
    assert (reported.agree, len(reported.buckets.largest)) == (2, 10)
    for bucket in reported.buckets.largest:
        both = set(bucket.key.split("+"))
        assert (len(both), sum(both <= own for own in keys.values())) == (2, bucket.documents)


def test_an_alias_of_two_indices(client: Client, filled: str) -> None:
    """The same in several indices."""
    alone = found_pairs(client, filled, LOW)
    parts = [f"{filled}-{number}" for number in (1, 2)]
    for number, part in enumerate(parts):
        make_index(client, part, aliases={f"{filled}-all": {}})
        put(client, part, {id: {"text": text} for id, text in list(TEXTS.items())[number::2]})
    NearDupe(f"{filled}-all", client).init(PRESET)
    NearDupe(f"{filled}-all", client).enrich()
    assert found_pairs(client, f"{filled}-all", LOW) == alone
    assert {hit.index for hit in NearDupe(f"{filled}-all", client).similar(id="copy", min=LOW).hits} == set(parts)


def test_recall_on_real_texts(client: Client, index_name: str) -> None:
    """Press releases that resemble another one: of those above the preset's threshold all are found, and of others as
    many as it promises."""
    truth = read_truth("senate_press/sample_12_senators.exact_pairs.tsv")
    near = {id for pair, value in truth.items() if value >= 0.8 for id in pair}
    texts = {
        one["id"]: one["text"] for one in read_jsonl("senate_press/sample_12_senators.jsonl.xz") if one["id"] in near
    }
    sets = {id: shingles(text, 8) for id, text in texts.items()}
    exact = {(a, b): len(sets[a] & sets[b]) / len(sets[a] | sets[b]) for a, b in truth if {a, b} <= near}
    make_index(client, index_name)
    put(client, index_name, {id: {"text": text} for id, text in texts.items()})
    NearDupe(index_name, client).init(PRESET)
    NearDupe(index_name, client).enrich()
    found = found_pairs(client, index_name, LOW)
    assert {pair: round(value, 9) for pair, value in found.items() if pair in exact} == {
        pair: round(exact[pair], 9) for pair in found if pair in exact
    }
    assert all(value < 0.8 for pair, value in found.items() if pair not in exact)
    certain = {pair for pair, value in exact.items() if value >= PRESET.threshold}
    assert len(certain) > 50
    assert len(certain & found.keys()) >= 0.99 * len(certain)
    others = {pair: value for pair, value in exact.items() if 0.8 <= value < PRESET.threshold}
    promised = [PRESET.scheme.detection(value) for value in others.values()]
    spread = sum(one * (1 - one) for one in promised) ** 0.5
    assert len(others.keys() & found.keys()) == pytest.approx(sum(promised), abs=4 * spread)
