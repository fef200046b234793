"""Valid and stale evidence compared with plain dictionaries, and the entry of a pair. No server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_tools import SETTINGS, hits, words
from verifier_tools import all_pairs, verifier_of

from es_neardupe.candidates.fingerprints import read_corpus
from es_neardupe.candidates.join import find_candidates
from es_neardupe.columns import References
from es_neardupe.records import Action, FingerprintColumns, Hit
from es_neardupe.similarity.pair_relation import compared_texts
from es_neardupe.verification import evidence_entries
from es_neardupe.verification.criterion import MatchCriterion
from es_neardupe.verification.evidence import EvidenceBasis, read_entries
from es_neardupe.verification.evidence_entries import JudgedPairs, decisions, entries, plan
from es_neardupe.verification.verify import Verified

BASIS = EvidenceBasis("v1-aaaaaaaa", "resemblance", 0.8, 1.0)
TEXTS = {id: words(k, 20) for k, id in enumerate("abcdef")}
OTHER = words(500, 20)
PAIRS = list(combinations(range(len(TEXTS)), 2))


def corpus_of(texts: dict[str, str]) -> FingerprintColumns:
    return read_corpus([hits(texts)], "neardupe", SETTINGS.scheme.bands)


def judged_of(pairs: list[tuple[int, int]], verdict: int = 0) -> JudgedPairs:
    left, right = (np.array([pair[side] for pair in pairs], np.intp) for side in (0, 1))
    value = np.array([(a + b) / 10 for a, b in pairs], np.float64)
    accepted, other_facts = np.ones(len(pairs), np.bool_), np.zeros(len(pairs), np.bool_)
    return JudgedPairs(left, right, value, accepted, np.full(len(pairs), verdict, np.int8), other_facts)


def written(
    corpus: FingerprintColumns, judged: JudgedPairs, basis: EvidenceBasis, texts: dict[str, str] = TEXTS
) -> list[Action]:
    """The entries of all pairs; ``texts`` are the current ones by id."""

    def read(rows: Any) -> Iterator[tuple[int, str]]:
        for row in rows.tolist():
            if corpus.references[row][1] in texts:
                yield row, texts[corpus.references[row][1]]

    return list(entries("kept", corpus, judged, basis, read=read, scheme=SETTINGS.scheme, at="2024-05-01T00:00:00Z"))


def stored(actions: list[Action]) -> list[Hit]:
    """The entries as the server returns them."""
    return [Hit("kept", one.id, None, 1, 1, one.body) for one in actions]


def ids(actions: list[Action]) -> dict[frozenset[str], str]:
    return {frozenset((one.body["a"]["id"], one.body["b"]["id"])): one.id for one in actions}


def test_a_copy_that_was_changed_is_in_no_pair() -> None:
    """The first document of a class is the first that still has its text."""
    copies = dict.fromkeys("abc", words(0, 20))
    verifier, _ = verifier_of(copies | {"d": words(1, 20)}, {"a": OTHER})
    left, right = all_pairs(len(verifier.classes))
    inside = np.ones(len(verifier.corpus), np.bool_)
    candidates = find_candidates(verifier.corpus.keys, rows=verifier.classes.first)
    similarity = verifier.similarities(left, right)
    verified = Verified(verifier.corpus, verifier.classes, candidates, verifier, similarity, inside)
    criterion = MatchCriterion(verifier.measure, 0.5, 1.0, None, None)
    judged = evidence_entries._judged(verified, np.zeros(len(verifier.classes), np.intp), criterion, None)
    ids = [[verifier.corpus.references[row][1] for row in side] for side in (judged.left, judged.right)]
    assert {frozenset(pair) for pair in zip(*ids, strict=True)} == {frozenset("bc"), frozenset("bd")}


before = st.sampled_from(["absent", "same", "other min", "other max", "other verdict", "other measure", "other scheme"])
now = st.sampled_from(["same", "same", "same", "changed", "deleted", "away"])


@given(
    st.lists(before, min_size=len(PAIRS), max_size=len(PAIRS)),
    st.lists(now, min_size=len(TEXTS), max_size=len(TEXTS)),
    st.lists(st.booleans(), min_size=len(PAIRS), max_size=len(PAIRS)),
    st.booleans(),
)
def test_what_is_to_be_written(kinds: list[str], fates: list[str], asked: list[bool], whole: bool) -> None:
    """With any stored entries, changes of documents and judged pairs, each pair is in exactly one part of the plan."""
    others = {
        "same": BASIS,
        "other min": BASIS._replace(min=0.7),
        "other max": BASIS._replace(max=0.9),
        "other verdict": BASIS,
        "other measure": BASIS._replace(measure="edit"),
        "other scheme": BASIS._replace(scheme="v1-bbbbbbbb"),
    }
    first = corpus_of(TEXTS)
    kept_actions = [
        action
        for pair, kind in zip(PAIRS, kinds, strict=True)
        if kind != "absent"
        for action in written(first, judged_of([pair], verdict=2 * (kind == "other verdict")), others[kind])
    ]
    kept = read_entries([stored(kept_actions)], BASIS.scheme, BASIS.measure)
    fate = dict(zip(TEXTS, fates, strict=True))
    present = {id: OTHER if fate[id] == "changed" else text for id, text in TEXTS.items() if fate[id] != "deleted"}
    corpus = corpus_of(present)
    rows = {reference[1]: row for row, reference in enumerate(corpus.references)}
    away = {rows[id] for id in present if fate[id] == "away"}
    named = [tuple(list(TEXTS)[number] for number in pair) for pair in PAIRS]
    wanted = [
        (rows[a], rows[b])
        for (a, b), ask in zip(named, asked, strict=True)
        if ask and a in rows and b in rows and not away & {rows[a], rows[b]}
    ]
    mask = np.isin(np.arange(len(corpus)), list(away))
    every = np.ones(len(corpus), np.bool_)
    inside = every if whole else np.isin(np.arange(len(corpus)), [row for pair in wanted for row in pair])
    found = plan(kept, judged_of(wanted), corpus, BASIS, inside=inside, changed_or_deleted=mask, whole=whole)

    kind_of = {frozenset(pair): kind for pair, kind in zip(named, kinds, strict=True)}
    fine = {"same"} if whole else {"same", "deleted"}
    holds = {pair for pair, kind in kind_of.items() if all(fate[id] in fine for id in pair) and kind != "other scheme"}
    of_wanted = [frozenset(corpus.references[row][1] for row in pair) for pair in wanted]
    state = [kind_of[pair] if pair in holds else "absent" for pair in of_wanted]
    fresh = [k for k, kind in enumerate(state) if kind in ("absent", "other measure")]
    again = ("other min", "other max", "other verdict")
    assert found.fresh.tolist() == fresh
    assert found.decided_again.tolist() == [k for k, kind in enumerate(state) if kind in again]
    assert found.unchanged == state.count("same")
    stale = {pair for pair, kind in kind_of.items() if kind != "absent" and pair not in holds}
    examined = {corpus.references[row][1] for row in np.flatnonzero(inside).tolist()}
    stored_pairs = {pair for pair, kind in kind_of.items() if kind != "absent"}
    stale |= {pair for pair in stored_pairs if (whole or pair & examined) and pair not in of_wanted}
    names = ids(kept_actions)
    assert sorted(found.stale) == sorted(names[pair] for pair in stale - {of_wanted[k] for k in fresh})


def test_an_id_is_of_the_pair() -> None:
    """In any order, and with any other documents: a later run overwrites the same entry."""
    corpus, fewer = corpus_of(TEXTS), corpus_of({id: TEXTS[id] for id in "cfa"})
    (one,), (other,) = (written(corpus, judged_of([pair]), BASIS) for pair in [(0, 5), (5, 0)])
    (again,) = written(fewer, judged_of([(1, 2)]), BASIS)
    assert one.id == other.id == again.id
    assert one.body == other.body
    everything = written(corpus, judged_of(PAIRS), BASIS)
    assert len({action.id for action in everything}) == len(PAIRS)
    elsewhere = replace(
        corpus, references=References.of(("other", id, routing) for _, id, routing in corpus.references)
    )
    assert not {action.id for action in written(elsewhere, judged_of(PAIRS), BASIS)} & {one.id for one in everything}


def test_pairs_of_texts_that_are_away_are_left_out() -> None:
    corpus = corpus_of(TEXTS)
    left = {id: text for id, text in TEXTS.items() if id != "c"}
    found = {
        frozenset((one.body["a"]["id"], one.body["b"]["id"])) for one in written(corpus, judged_of(PAIRS), BASIS, left)
    }
    assert found == {frozenset(pair) for pair in combinations("abdef", 2)}


def test_portions_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    corpus, judged = corpus_of(TEXTS), judged_of([(0, 1), (1, 2), (3, 4)])
    whole = {one.id: one.body for one in written(corpus, judged, BASIS)}
    monkeypatch.setattr(evidence_entries, "_BATCH_TOKENS", 1)
    assert {one.id: one.body for one in written(corpus, judged, BASIS)} == whole


def test_a_decision_renews_what_depends_on_it() -> None:
    corpus, judged = corpus_of(TEXTS), judged_of([(4, 5), (0, 1)])
    bodies = {one.id: one.body for one in written(corpus, judged, BASIS)}
    anew = BASIS._replace(min=0.05, max=0.5)
    updates = list(decisions("kept", corpus, judged._replace(accepted=~judged.accepted), anew, "2025-01-01T00:00:00Z"))
    assert [one.op for one in updates] == ["update", "update"]
    assert {one.id for one in updates} == set(bodies)
    for one in updates:
        changed = bodies[one.id] | one.body["doc"]
        assert (changed["min"], changed["max"]) == (0.05, 0.5)
        assert {changed["decision"], bodies[one.id]["decision"]} == {"accepted", "rejected"}
        assert changed.keys() == bodies[one.id].keys() | {"verdict"}
        assert changed["verdict"] is None


@pytest.mark.parametrize("broken", [{"content_a": None}, {"content_b": "short"}])
def test_entries_that_cannot_be_read_are_taken_out(broken: dict[str, Any]) -> None:
    corpus = corpus_of(TEXTS)
    (action,) = written(corpus, judged_of([(0, 1)]), BASIS)
    foreign = [Hit("kept", id, None, 1, 1, action.body) for id in ("by hand", "z" * 32)]
    damaged = Hit("kept", action.id, None, 1, 1, {**action.body, **broken})
    kept = read_entries([[*foreign, damaged]], BASIS.scheme, BASIS.measure)
    none = np.zeros(len(corpus), np.bool_)
    found = plan(kept, judged_of([]), corpus, BASIS, inside=~none, changed_or_deleted=none, whole=True)
    assert sorted(found.stale) == sorted(["by hand", "z" * 32, action.id])


@pytest.mark.parametrize("limit", [1, 40, 90, 10_000])
def test_few_texts_are_in_memory(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster of any size: its entries are the same, and at most two parts of it are prepared at a time."""
    corpus, judged = corpus_of(TEXTS), judged_of(PAIRS)
    expected = written(corpus, judged, BASIS)
    monkeypatch.setattr(evidence_entries, "_BATCH_TOKENS", limit)
    prepared: list[int] = []

    def counted(texts: list[str], *given: Any) -> Any:
        prepared.append(len(texts))
        return compared_texts(texts, *given)

    monkeypatch.setattr(evidence_entries, "compared_texts", counted)
    found = written(corpus, judged, BASIS)
    assert sorted(found, key=lambda one: one.id) == sorted(expected, key=lambda one: one.id)
    assert max(prepared) <= max(1, limit // 2 // 20 + 1)
    if limit == 10_000:
        assert prepared == [len(TEXTS)]


def test_progress_shows_the_words_of_large_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """One pair can take as long as thousands of others."""
    monkeypatch.setattr(evidence_entries, "LARGE_PAIR", 1000)
    texts = {"a": words(0, 20), "b": words(1, 20), "c": words(0, 900), "d": words(1, 900)}
    reports: list[tuple[str, int, int | None]] = []
    corpus, judged = corpus_of(texts), judged_of([(0, 1), (2, 3)])
    one = entries(
        "kept",
        corpus,
        judged,
        BASIS,
        read=lambda rows: [(row, texts[corpus.references[row][1]]) for row in rows.tolist()],
        scheme=SETTINGS.scheme,
        at="2024-05-01T00:00:00Z",
        progress=lambda *report: reports.append(report),
    )
    assert len(list(one)) == 2
    stage = "words of 1 pair of large texts, and of the others"
    assert [(done, total) for name, done, total in reports if name == stage] == [(0, 1840), (1840, 1840)]
    assert [(done, total) for name, done, total in reports if name == "describing pairs"] == [(0, 2), (2, 2)]
