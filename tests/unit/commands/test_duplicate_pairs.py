"""From documents to validated pairs, compared with brute force."""

from __future__ import annotations

import random
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_tools import FakeClient, columns, paged, words

from es_neardupe.candidates import spill_to_disk
from es_neardupe.candidates.spill_to_disk import SpilledEntries, SpilledRows, scratch
from es_neardupe.commands.duplicates.find_pairs import AlignmentNumbers, SimilarityFunction
from es_neardupe.commands.duplicates.hash_features import LISTED, HashGroups, enriched_scope, group_hashes, read_scope
from es_neardupe.errors import SettingsError
from es_neardupe.keys.text import tokenize
from es_neardupe.options import Matching, MeasureName
from es_neardupe.records import DocumentsInScope, Hit
from es_neardupe.similarity.features import FeatureTree, Flatten, Ngrams, Values, Words, fields_of
from es_neardupe.similarity.formulas import Weights
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification import current_texts
from es_neardupe.verification.current_texts import Compared, CurrentDocuments, PairComparer

T = ("title",)
WORDS = Flatten(Words(T))
PAIRS_OF_WORDS = Ngrams(2, Words(T))

TITLES = st.lists(st.lists(st.sampled_from("abcde"), max_size=5).map(" ".join), max_size=10)
BOUNDS = st.sampled_from([1, 5, 10_000])
"""Numbers held in memory; with few of them, everything is spilled to disk."""


@dataclass(frozen=True)
class Found:
    """Results of the steps of a stage."""

    scope: DocumentsInScope
    groups: HashGroups
    compared: Compared
    documents: CurrentDocuments

    def pairs(self) -> dict[tuple[str, str], float]:
        """Ids of each candidate pair and its similarity."""
        ids = [reference[1] for reference in self.scope.references]
        both = zip(self.groups.left.tolist(), self.groups.right.tolist(), strict=True)
        return {(ids[a], ids[b]): s for (a, b), s in zip(both, self.compared.similarity[0].tolist(), strict=True)}


def hits_of(titles: Sequence[str]) -> list[Hit]:
    """Documents whose ids are not in the order of their numbers."""
    return [Hit("i", f"d{number % 3}{number}", None, 1, 1, {"title": title}) for number, title in enumerate(titles)]


def ratio_of(tree: FeatureTree) -> SimilarityFunction:
    """Shared features among all distinct features of both documents."""
    return SimilarityFunction(Measure(sources=(tree,)), fields_of(tree))


def run(
    hits: Sequence[Hit],
    *,
    grouping: FeatureTree = WORDS,
    function: SimilarityFunction | None = None,
    max_group: int = 200,
    client: FakeClient | None = None,
    page: int = 3,
) -> Found:
    """All stages over documents in memory."""
    client = client or FakeClient({hit.address: hit.source for hit in hits})
    with scratch() as files:
        entries = SpilledEntries(files)
        scope = read_scope(paged(hits, page), grouping, entries)
        groups = group_hashes(entries, scope.numbers, max_group)
    chosen = function or ratio_of(WORDS)
    documents = CurrentDocuments.of_scope(client, scope, chosen.fields)
    found = PairComparer(documents, {"validating pairs": chosen.measure}).compare(groups.left, groups.right)
    return Found(scope, groups, found, documents)


def features(title: str, size: int) -> set[tuple[str, ...]]:
    """N-grams of a title; one of all words if there are fewer."""
    tokens = tokenize(title)
    return {tuple(tokens[k : k + size]) for k in range(max(1, len(tokens) - size + 1)) if tokens}


def ratio(one: str, other: str) -> float:
    """Shared words of all words; 0 where either has none."""
    a, b = features(one, 1), features(other, 1)
    return len(a & b) / len(a | b) if a and b else 0.0


@given(TITLES, st.sampled_from([1, 2]), st.integers(1, 6), BOUNDS, st.integers(1, 4))
def test_against_comparing_everything(titles: list[str], size: int, maximum: int, held: int, page: int) -> None:
    hits = hits_of(titles)
    having = defaultdict(set)
    for hit in hits:
        for feature in features(hit.source["title"], size):
            having[feature].add(hit.id)
    groups = {feature: ids for feature, ids in having.items() if len(ids) > 1}
    kept = [ids for ids in groups.values() if len(ids) <= maximum]
    expected = {tuple(sorted(pair)) for ids in kept for pair in combinations(ids, 2)}
    title = {hit.id: hit.source["title"] for hit in hits}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spill_to_disk, "HELD", held)
        patch.setattr(current_texts, "_BLOCK", held)
        patch.setattr(current_texts, "_CHARS", page * held)
        found = run(hits, grouping=Ngrams(size, Words(T)), max_group=maximum, page=page)
    assert found.pairs() == {(a, b): ratio(title[a], title[b]) for a, b in sorted(expected)}
    assert found.groups.groups == len(groups)
    assert found.groups.skipped == len(groups) - len(kept)
    assert found.groups.comparisons == sum(len(ids) * (len(ids) - 1) // 2 for ids in kept)
    skipped = Counter(len(ids) for ids in groups.values() if len(ids) > maximum)
    assert Counter(one.size for one in found.groups.largest) == skipped
    assert int(found.documents.seen.sum()) == len({id for pair in expected for id in pair})
    assert found.scope.empty == sum(not tokenize(text) for text in titles)


@given(TITLES, st.randoms(use_true_random=False), BOUNDS)
def test_the_order_of_arrival_changes_nothing(titles: list[str], chance: random.Random, held: int) -> None:
    hits = hits_of(titles)
    one = run(hits, max_group=3)
    shuffled = chance.sample(hits, len(hits))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spill_to_disk, "HELD", held)
        patch.setattr(current_texts, "_BLOCK", held)
        other = run(shuffled, max_group=3, page=chance.randint(1, 5))
    assert other.scope.references == one.scope.references
    assert other.groups.largest == one.groups.largest
    assert list(other.pairs().items()) == list(one.pairs().items())


@given(TITLES, st.data())
def test_deleted_and_changed_documents_are_counted(titles: list[str], data: st.DataObject) -> None:
    """Candidates = pairs with a similarity + pairs out of scope."""
    hits = hits_of(titles)
    gone = data.draw(st.sets(st.sampled_from([hit.id for hit in hits]))) if hits else set()
    changed = data.draw(st.sets(st.sampled_from([hit.id for hit in hits]))) if hits else set()
    read = [hit if hit.id not in changed else Hit("i", hit.id, None, 7, 1, hit.source) for hit in hits]
    client = FakeClient({hit.address: hit.source for hit in hits if hit.id not in gone})
    found = run(read, client=client)
    away = gone | changed
    for pair, similarity in found.pairs().items():
        assert np.isnan(similarity) == bool(away & set(pair))
    grouped = {id for pair in found.pairs() for id in pair}
    assert int(found.documents.changed_or_deleted.sum()) == len(grouped & away)
    assert len(client.asked) == len(set(client.asked)) == len(grouped)  # each text is read once


@pytest.mark.parametrize("name", list(MeasureName))
def test_other_measures_are_those_of_two_texts(name: MeasureName, monkeypatch: pytest.MonkeyPatch) -> None:
    base = words(0, 40)
    titles = [base, f"{base} more", words(0, 30), words(5, 40), base.upper(), ""]
    weights = Weights(1, np.empty(0, np.uint64), np.empty(0, np.int64)) if name is MeasureName.WEIGHTED else None
    measure = Measure(name, Matching.LITERAL, weights=weights)
    function = SimilarityFunction(measure, T)
    monkeypatch.setattr(spill_to_disk, "HELD", 10)
    monkeypatch.setattr(current_texts, "_BLOCK", 10)
    found = run(hits_of(titles), function=function)
    by_id = {hit.id: hit.source["title"] for hit in hits_of(titles)}
    assert len(found.pairs()) == 10  # all but the empty one
    for (a, b), similarity in found.pairs().items():
        one, other = measure.prepare([by_id[a], by_id[b]])
        assert similarity == measure.score(one, other)
    details = function.details
    for (a, b), similarity in found.pairs().items():
        one, other = measure.prepare([by_id[a], by_id[b]])
        numbers = []
        if isinstance(details, AlignmentNumbers):
            places = details.scores([one, other], np.array([0]), np.array([1]))
            numbers = details.of(places, np.array([[len(one), len(other)]]))[0].tolist()
        elif details is not None:
            numbers = [details.score(*details.prepare([by_id[a], by_id[b]]))]
        said = function.explained(similarity, (len(one), len(other)), numbers)
        assert measure.label in said
        assert ("95 % interval" in said) == (name is MeasureName.ESTIMATE)
        ((part, whole),) = re.findall(r"title: ([\d,]+) of ([\d,]+) ", said)
        if name is MeasureName.WEIGHTED:  # without a sample, all weights are equal
            assert int(part) / int(whole) == pytest.approx(similarity)
        elif name is MeasureName.ESTIMATE:
            assert int(part) == np.count_nonzero(one == other)
        else:
            assert int(part) / int(whole) == similarity


@pytest.mark.parametrize(
    ("titles", "function", "expected"),
    [
        (
            ["Lucy had a gray cat.", "Lucy had a blue cat."],
            ratio_of(WORDS),
            "Documents share 4 out of 6 distinct features (flattened composites of words from field: title).",
        ),
        (
            ["Lucy", "Lucy"],
            ratio_of(Values(T)),
            "Documents share 1 out of 1 distinct feature (entire values from field: title).",
        ),
    ],
)
def test_explanations_have_the_words_of_the_example(
    titles: list[str], function: SimilarityFunction, expected: str
) -> None:
    found = run(hits_of(titles), function=function)
    sizes = found.compared.sizes[0].tolist()
    assert function.explained(float(found.compared.similarity[0, 0]), (sizes[0], sizes[1])) == expected


@given(st.integers(0, 300), st.integers(0, 300), st.data())
def test_the_counts_of_an_explanation_are_exact(a: int, b: int, data: st.DataObject) -> None:
    common = data.draw(st.integers(0, min(a, b)))
    total = a + b - common
    said = ratio_of(WORDS).explained(common / total if total else 0.0, (a, b))
    assert said.startswith(f"Documents share {common:,} out of {total:,} distinct feature")


def test_nine_of_ten_words_are_within_both_ends() -> None:
    ten = words(0, 10)
    found = run(hits_of([ten, words(0, 9)]))
    (similarity,) = found.pairs().values()
    assert 0.9 <= similarity <= 0.9


def test_documents_without_compared_features_are_not_similar() -> None:
    found = run(hits_of(["same", "same"]), function=ratio_of(Flatten(Words(("body",)))))
    assert list(found.pairs().values()) == [0.0]
    assert list(run(hits_of(["same", "same"])).pairs().values()) == [1.0]


def test_of_many_skipped_groups_the_largest_are_listed() -> None:
    titles = [words(0, LISTED + 20), words(0, LISTED + 20), words(0, LISTED), words(0, LISTED)]
    found = run(hits_of(titles), max_group=1)
    assert found.groups.skipped == LISTED + 20
    assert [one.size for one in found.groups.largest] == [4] * LISTED
    assert found.groups.largest[0].documents == (0, 1, 2, 3)
    assert not found.pairs()


@pytest.mark.long
def test_ten_million_features_of_one_document() -> None:
    text = " ".join(f"{number:x}" for number in range(10_000_000))
    found = run(hits_of([text, text, "a b"]))
    assert found.groups.groups == 10_000_000
    assert list(found.pairs().values()) == [1.0, 2 / 10_000_000, 2 / 10_000_000]


def test_nothing() -> None:
    found = run([])
    assert not found.pairs()
    assert len(found.scope) == found.groups.groups == int(found.documents.seen.sum()) == 0


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1)), max_size=9), max_size=9),
    BOUNDS,
)
def test_entries_come_back_whole(parts: list[list[tuple[int, int]]], held: int) -> None:
    with pytest.MonkeyPatch.context() as patch, scratch() as files:
        patch.setattr(spill_to_disk, "HELD", held)
        entries = SpilledEntries(files)
        for part in parts:
            columns = np.array(part, np.uint64).reshape(-1, 2)
            entries.add(columns[:, 0], columns[:, 1].astype(np.uint32))
        pieces = [list(zip(a.tolist(), b.tolist(), strict=True)) for a, b in entries.pieces()]
    flat = [one for piece in pieces for one in piece]
    assert sorted(flat) == sorted(one for part in parts for one in part)
    assert entries.total == len(flat)
    where = defaultdict(set)
    for number, piece in enumerate(pieces):
        for hash, _ in piece:
            where[hash].add(number)
    assert all(len(numbers) == 1 for numbers in where.values())


@given(st.lists(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=4), max_size=5), BOUNDS, st.data())
def test_rows_come_back_whole(parts: list[list[list[int]]], held: int, data: st.DataObject) -> None:
    flat = [one for part in parts for one in part]
    first = data.draw(st.integers(0, len(flat)))
    last = data.draw(st.integers(first, len(flat)))
    with pytest.MonkeyPatch.context() as patch, scratch() as files:
        patch.setattr(spill_to_disk, "HELD", held)
        rows = SpilledRows(files)
        for part in parts:
            rows.add([np.array(one, np.uint64) for one in part])
        assert [one.tolist() for one in rows.read(first, last)] == flat[first:last]
        assert rows.lengths.tolist() == list(map(len, flat))


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill_to_disk, "HELD", 1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "not there"))
    with scratch() as files:
        entries = SpilledEntries(files)
        with pytest.raises(SettingsError, match="TMPDIR"):
            entries.add(np.zeros(2, np.uint64), np.zeros(2, np.uint32))


def test_a_full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill_to_disk, "HELD", 1)
    if not Path("/dev/full").exists():
        pytest.skip("this system has no device that is always full")
    with Path("/dev/full").open("r+b", buffering=0) as full:
        rows = SpilledRows(lambda: full)
        with pytest.raises(SettingsError, match="No space left on device"):
            rows.add([np.zeros(5, np.uint64)])


def test_nothing_is_left_in_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spill_to_disk, "HELD", 1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    opened: list[Any] = []
    with pytest.raises(RuntimeError, match="broken"):
        _broken(opened)
    assert all(file.closed for file in opened)
    assert len(opened) == 2
    assert not list(tmp_path.iterdir())


def _broken(opened: list[Any]) -> None:
    with scratch() as files:

        def noted() -> Any:
            opened.append(files())
            return opened[-1]

        entries = SpilledEntries(noted)
        entries.add(np.zeros(2, np.uint64), np.zeros(2, np.uint32))
        raise RuntimeError("broken")


def test_blank_values_are_no_features() -> None:
    """Documents without a title do not have the same title."""
    found = run(hits_of(["", "", "  ", "\t", "a", "a"]), grouping=Values(T), function=ratio_of(Values(T)))
    assert found.pairs() == {("d14", "d25"): 1.0}
    assert found.scope.empty == 4


@pytest.mark.parametrize(("agree", "expected"), [(1, [(0, 1), (0, 2), (1, 2)]), (2, [(0, 1)])])
def test_stored_keys_must_agree_as_often_as_the_scheme_requires(agree: int, expected: list[tuple[int, int]]) -> None:
    keys = np.array([[1, 2, 3], [1, 2, 4], [1, 5, 6], [0, 0, 0]], np.uint64)
    with scratch() as files:
        entries = SpilledEntries(files)
        scope = enriched_scope(columns(4, keys=keys), agree, entries)
        groups = group_hashes(entries, scope.numbers, 200)
    assert list(zip(groups.left.tolist(), groups.right.tolist(), strict=True)) == expected
    assert scope.empty == 1
