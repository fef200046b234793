"""Candidate pairs, against sets of keys compared one by one."""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from key_matrices import Keys, buckets, key, listed, matrices
from unit_tools import SETTINGS, hits, paged

from es_neardupe.candidates import large_buckets as counting
from es_neardupe.candidates import pair_arrays
from es_neardupe.candidates.fingerprints import classes_of, read_corpus
from es_neardupe.candidates.join import bucket_sizes, find_candidates, near_pairs
from es_neardupe.keys.fingerprint import signatures
from es_neardupe.keys.scheme import Scheme
from es_neardupe.similarity.common_passages import common_passage


def oracle(keys: Keys, max_bucket: int) -> tuple[list[tuple[int, int]], dict[str, tuple[int, int, int]], int]:
    """Candidates; size, compared and skipped pairs of each large bucket; all skipped pairs."""
    pairs: set[tuple[int, int]] = set()
    large: dict[str, list[int]] = {}
    for number, rows in buckets(keys).items():
        every = set(combinations(rows, 2))
        pairs |= {pair for pair in every if len(rows) <= max_bucket or pair[0] in rows[:max_bucket]}
        if len(rows) > max_bucket:
            large[key(number)] = rows
    return (
        sorted(pairs),
        {name: (len(rows), *_counted(combinations(rows, 2), pairs)) for name, rows in large.items()},
        len({pair for rows in large.values() for pair in combinations(rows, 2)} - pairs),
    )


def _counted(every: Iterable[tuple[int, int]], pairs: set[tuple[int, int]]) -> tuple[int, int]:
    compared = [pair in pairs for pair in every]
    return sum(compared), len(compared) - sum(compared)


@given(matrices(), st.integers(1, 10), st.sampled_from([1, 2, 5, 4_000_000]))
def test_against_brute_force(keys: Keys, max_bucket: int, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_arrays, "BLOCK", block)
        found = find_candidates(keys, max_bucket)
    pairs, large, skipped = oracle(keys, max_bucket)
    assert listed(found) == pairs
    assert len(found) == len(pairs)
    assert {one.key: (one.size, one.compared, one.skipped) for one in found.large} == large
    assert [one.size for one in found.large] == sorted((size for size, *_ in large.values()), reverse=True)
    assert found.skipped == skipped
    for one in found.large:
        assert one.compared + one.skipped == one.size * (one.size - 1) // 2


@given(matrices())
def test_default_is_complete_for_small_buckets(keys: Keys) -> None:
    """No pair without a shared key, and none with one missing."""
    sets = [set(row) - {0} for row in keys.tolist()]
    wanted = [pair for pair in combinations(range(len(sets)), 2) if sets[pair[0]] & sets[pair[1]]]
    found = find_candidates(keys)
    assert listed(found) == wanted
    assert found.large == ()


@given(matrices(), st.integers(1, 3), st.randoms(use_true_random=False))
def test_rows_with_equal_keys_are_equal(keys: Keys, max_bucket: int, shuffle: Any) -> None:
    """The order of rows does not change the pairs of small buckets, nor the large ones."""
    order = list(range(len(keys)))
    shuffle.shuffle(order)
    moved = find_candidates(keys[order], max_bucket)
    straight = find_candidates(keys, max_bucket)
    assert [(one.key, one.size) for one in moved.large] == [(one.key, one.size) for one in straight.large]
    back = {tuple(sorted((order[a], order[b]))) for a, b in listed(find_candidates(keys[order], 100))}
    assert back == set(listed(find_candidates(keys, 100)))


@given(matrices(), st.integers(0, 12))
def test_bucket_sizes(keys: Keys, maximum: int) -> None:
    counts = Counter({key(number): len(rows) for number, rows in buckets(keys).items() if len(rows) > 1})
    found = bucket_sizes(keys, maximum)
    assert [size for _, size in found] == sorted(counts.values(), reverse=True)[:maximum]
    assert all(counts[name] == size for name, size in found)
    assert len(dict(found)) == len(found)


def test_a_foreign_row_with_one_key_in_two_bands() -> None:
    """Such keys do not occur; even so, a row is never a candidate of itself."""
    found = find_candidates(np.array([[7, 7], [7, 7], [7, 9]], np.uint64))
    assert listed(found) == [(0, 1), (0, 2), (1, 2)]


def test_boilerplate_costs_linear_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """5,000 rows with one common key and no signatures: each is compared with the first 100, the rest counted."""
    rows, maximum = 5_000, 100
    keys = np.arange(1, 2 * rows + 1, dtype=np.uint64).reshape(rows, 2) << np.uint64(8)
    keys[:, 0] = 5
    made = []
    add = pair_arrays.DistinctPairs.add

    def counted(self: pair_arrays.DistinctPairs, pairs: Any) -> Any:
        made.append(len(pairs))
        return add(self, pairs)

    monkeypatch.setattr(pair_arrays.DistinctPairs, "add", counted)
    found = find_candidates(keys, maximum)
    compared = maximum * (maximum - 1) // 2 + maximum * (rows - maximum)
    assert sum(made) == 2 * compared  # counted in the bucket, then added to the rest
    assert len(found) == compared
    (bucket,) = found.large
    assert (bucket.key, bucket.size, bucket.compared) == (key(5), rows, compared)
    assert bucket.skipped == found.skipped == rows * (rows - 1) // 2 - compared
    assert set(found.left.tolist()) == set(range(maximum))
    assert (found.left < found.right).all()
    assert bucket_sizes(keys) == [(key(5), rows)]


def test_repeated_pairs_are_thrown_out_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that share all keys produce each pair once per band; the memory depends on the distinct pairs."""
    rows, bands = 60, 30
    keys = np.tile(np.arange(1, bands + 1, dtype=np.uint64), (rows, 1))
    monkeypatch.setattr(pair_arrays, "BLOCK", 500)
    held = []
    add = pair_arrays.DistinctPairs.add

    def noting(self: Any, pairs: Any) -> None:
        add(self, pairs)
        held.append(self._size + self._waiting)

    monkeypatch.setattr(pair_arrays.DistinctPairs, "add", noting)
    found = find_candidates(keys)
    distinct = rows * (rows - 1) // 2
    assert len(found) == distinct
    assert max(held) <= 2 * distinct + 4 * 500 < bands * distinct
    assert len(held) > 10


@given(st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted))), st.sampled_from([1, 2, 3, 100]))
def test_distinct_pairs(added: list[list[list[int]]], block: int) -> None:
    """However many are merged at a time: each pair once, in ascending order."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_arrays, "BLOCK", block)
        found = pair_arrays.DistinctPairs(10)
        for number, pairs in enumerate(added):
            found.add(np.array(pairs, np.intp).reshape(-1, 2))
            distinct = {(a, b) for one in added[: number + 1] for a, b in one if a != b}
            if number % 3 == 0:
                assert len(found) == len(distinct)
        wanted = sorted({(a, b) for one in added for a, b in one if a != b})
        assert [tuple(pair) for some in found.blocks() for pair in some.tolist()] == wanted
        left, right = found.taken()
    assert list(zip(left.tolist(), right.tolist(), strict=True)) == wanted


@given(matrices(30), st.integers(1, 4), st.sampled_from([1, 64, 200, 1 << 20]), st.randoms(use_true_random=False))
def test_skipped_pairs_are_counted_once(keys: Keys, max_bucket: int, tile: int, dice: Any) -> None:
    """However many keys a pair shares, and in an incremental run only pairs with an affected row."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "_BITS", tile)
        patch.setattr(counting, "_WORDS", tile)
        found = find_candidates(keys, max_bucket)
        pairs, _, skipped = oracle(keys, max_bucket)
        assert found.skipped == skipped
        among = np.array([dice.random() < 0.5 for _ in keys], np.bool_)
        part = found.only(among[found.left] | among[found.right], among)
        inside = {pair for pair in pairs if among[list(pair)].any()}
        rows = [rows for rows in buckets(keys).values() if len(rows) > max_bucket]
        shared = {pair for some in rows for pair in combinations(some, 2) if among[list(pair)].any()}
        assert part.skipped == len(shared - inside)
    for one in part.large:
        some = next(rows for number, rows in buckets(keys).items() if key(number) == one.key)
        every = [pair for pair in combinations(some, 2) if among[list(pair)].any()]
        assert (one.compared, one.skipped) == _counted(every, inside)


def test_pairs_of_a_cluster_are_counted_once() -> None:
    """2,000 rows that share most of 16 keys: fewer than all pairs are skipped, although each is in many buckets."""
    dice = np.random.default_rng(1)
    keys = np.where(dice.random((2000, 16)) < 0.8, np.arange(1, 17), 1000 * np.arange(2000)[:, None] + np.arange(16))
    found = find_candidates(keys.astype(np.uint64) << np.uint64(8), 50)
    same = sum((keys[:, None, band] == keys[None, :, band]).astype(int) for band in range(16))
    every = int((np.triu(same, 1) > 0).sum())
    assert found.skipped == every - len(found) < 1_999_000
    assert sum(one.skipped for one in found.large) > 5 * found.skipped


def test_no_rows() -> None:
    found = find_candidates(np.zeros((0, 16), np.uint64))
    assert (len(found), found.large, found.skipped) == (0, (), 0)
    assert len(find_candidates(np.zeros((5, 16), np.uint64))) == 0
    assert bucket_sizes(np.zeros((5, 16), np.uint64)) == []


# -- large buckets, refined by signatures ------------------------------------------------------------------------------

SLOTS = 16


@st.composite
def large_buckets(draw: st.DrawFn) -> tuple[Any, int]:
    """Signatures of the members of one bucket, some of them similar or equal, and a limit below its size."""
    size = draw(st.integers(3, 40))
    dice = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    bases = dice.integers(0, 256, (draw(st.integers(1, 5)), SLOTS), np.uint8)
    found = bases[dice.integers(0, len(bases), size)]
    changed = dice.random(found.shape) < draw(st.sampled_from([0.0, 0.1, 0.5]))
    found[changed] = dice.integers(0, 256, int(changed.sum()), np.uint8)
    return found, draw(st.integers(2, size - 1))


def in_one_bucket(size: int) -> Keys:
    """Keys of rows that share one, and nothing else."""
    keys = np.arange(1, 2 * size + 1, dtype=np.uint64).reshape(size, 2) << np.uint64(8)
    keys[:, 0] = 5
    return keys


@given(large_buckets())
def test_refined_buckets(bucket: tuple[Any, int]) -> None:
    """The first rows are compared with all, pairs are counted once, and their number is at most linear."""
    slots, maximum = bucket
    found = find_candidates(in_one_bucket(len(slots)), maximum, lambda rows: slots[rows])
    pairs = set(listed(found))
    assert {(0, row) for row in range(1, len(slots))} <= pairs
    assert len(pairs) == len(found) <= max(maximum, 6) * len(slots)
    assert (found.left < found.right).all()
    (one,) = found.large
    assert (one.size, one.compared, one.compared + one.skipped) == (
        len(slots),
        len(found),
        len(slots) * (len(slots) - 1) // 2,
    )


@given(large_buckets(), st.integers(0, 30), st.randoms(use_true_random=False))
def test_a_bucket_is_refined_alike_in_any_index(bucket: tuple[Any, int], others: int, shuffle: Any) -> None:
    """Only the members and their order matter, not the rows between them."""
    slots, maximum = bucket
    size = len(slots)
    alone = listed(find_candidates(in_one_bucket(size), maximum, lambda rows: slots[rows]))
    places = sorted(shuffle.sample(range(size + others), size))
    keys = np.zeros((size + others, 2), np.uint64)
    keys[places] = in_one_bucket(size)
    every = np.zeros((size + others, SLOTS), np.uint8)
    every[places] = slots
    within = listed(find_candidates(keys, maximum, lambda rows: every[rows]))
    assert within == [(places[a], places[b]) for a, b in alone]


@given(st.integers(3, 30), st.integers(2, 5), st.randoms(use_true_random=False), st.integers(1, 7))
@settings(max_examples=30)
def test_a_large_bucket_in_any_order_of_arrival(size: int, maximum: int, shuffle: Any, page: int) -> None:
    """The same documents give the same pairs, in whatever order and pages they come."""
    texts = {f"{k:02}": " ".join(f"w{j}" for j in range(60) if j != 3 * k % 59) for k in range(size)}
    found = hits(texts)

    def pairs() -> tuple[set[frozenset[str]], list[Any]]:
        corpus = read_corpus(paged(found, page), "neardupe", SETTINGS.scheme.bands)
        first = np.array([rows[0] for rows in classes_of(corpus)])
        slots = {hit.id: base64.b64decode(hit.source["neardupe"]["signature"]) for hit in found}
        every = np.array([list(slots[corpus.references[row][1]]) for row in first.tolist()], np.uint8)
        made = find_candidates(corpus.keys[first], maximum, lambda rows: every[rows])
        ids = [corpus.references[row][1] for row in first.tolist()]
        return {frozenset([ids[a], ids[b]]) for a, b in listed(made)}, [(one.key, one.skipped) for one in made.large]

    straight = pairs()
    shuffle.shuffle(found)
    assert pairs() == straight


@given(large_buckets())
def test_near_pairs(bucket: tuple[Any, int]) -> None:
    slots, maximum = bucket
    blocks = list(near_pairs(slots, maximum))
    pairs = np.concatenate(blocks)
    assert (pairs[:, 0] < pairs[:, 1]).all()
    assert len(pairs) <= max(maximum, 5) * len(slots)
    again = np.concatenate(list(near_pairs(slots, maximum)))
    assert pairs.tolist() == again.tolist()


def test_signatures_are_read_once_and_only_of_large_buckets() -> None:
    keys = np.array([[1, 11], [1, 11], [1, 11], [1, 12], [2, 12], [2, 13]], np.uint64)
    asked: list[list[int]] = []

    def read(rows: Any) -> Any:
        asked.append(rows.tolist())
        return np.zeros((len(rows), SLOTS), np.uint8)

    assert len(find_candidates(keys, 4, read)) > 0
    assert asked == []
    find_candidates(keys, 2, read)
    assert asked == [[0, 1, 2, 3]]


def test_documents_of_a_large_bucket() -> None:
    """Classes are compared, documents are counted."""
    (found,) = find_candidates(in_one_bucket(4), 2, documents=np.array([1, 5, 1, 2])).large
    assert (found.size, found.documents, found.sample) == (4, 9, (0, 1, 2, 3))


def _texts(number: int, boilerplate: int, own: int) -> list[str]:
    """Texts that share a long ending; every third one is a near-copy of the previous one, with a word changed."""
    ending = " ".join(f"legal{k}" for k in range(boilerplate))
    texts: list[str] = []
    for row in range(number):
        start = [f"t{row}x{k}" for k in range(own)]
        texts.append(texts[-1].replace(f"t{row - 1}x5 ", "else ") if row % 3 == 2 else " ".join([*start, ending]))
    return texts


def test_recall_in_boilerplate() -> None:
    """3,000 texts that are half boilerplate in one bucket: 1,000 near-copies are found among 4.5 million pairs."""
    texts = _texts(3000, 60, 60)
    slots = signatures(texts, Scheme(permutations=128, bands=16, rows=6))
    found = set(listed(find_candidates(in_one_bucket(3000), 100, lambda rows: slots[rows])))
    planted = {(row - 1, row) for row in range(2, 3000, 3)}
    assert len(found) <= 100 * 3000
    assert len(planted & found) >= 0.98 * len(planted)
    without = set(listed(find_candidates(in_one_bucket(3000), 100)))
    assert len(planted & without) < 0.05 * len(planted)


def test_a_cluster_behind_others_keeps_its_principal() -> None:
    """500 texts unlike all others come first; the first text of the cluster is compared with nearly all of it."""
    dice = np.random.default_rng(1)
    slots = dice.integers(0, 256, (4000, 128), np.uint8)
    base = slots[500].copy()
    alike = dice.random((3500, 128)) < 0.85
    slots[500:][alike] = np.broadcast_to(base, (3500, 128))[alike]
    slots[500] = base
    found = set(listed(find_candidates(in_one_bucket(4000), 100, lambda rows: slots[rows])))
    assert sum((500, row) in found for row in range(501, 4000)) >= 0.98 * 3499


def test_common_passage() -> None:
    notice = "This e-mail and any attachments are confidential, and may be\n privileged."
    texts = [f"{first} {notice} {last}" for first, last in (("Hello, you", "Bye"), ("See below", ""), ("", "X Y"))]
    assert common_passage(texts) == notice[:-1]
    assert common_passage([texts[0], texts[1].upper(), "something else"]) == notice[:-1]
    assert common_passage(["a b c d", "a b c d"]) == ""
    assert common_passage(["x a b c d e", "a b c d e y", "a b c d e f"]) == "a b c d e"
    assert common_passage(["", "", "a b c d e"]) == common_passage(["a b c d e f"]) == common_passage([]) == ""


@given(st.lists(st.lists(st.sampled_from("ab"), max_size=30).map(" ".join), min_size=2, max_size=4))
def test_common_passage_against_brute_force(texts: list[str]) -> None:
    """The longest run of at least five words that as many texts as possible have."""
    split = [text.split() for text in texts]
    runs = [{tuple(one[a:b]) for a in range(len(one)) for b in range(a + 5, len(one) + 1)} for one in split]
    best = 0
    for needed in range(len(texts), 1, -1):
        every = Counter(run for one in runs for run in one)
        best = max((len(run) for run, number in every.items() if number >= needed), default=0)
        if best:
            break
    found = common_passage(texts)
    assert len(found.split()) == best
    if found:
        assert sum(f" {found} " in f" {text} " for text in texts) >= needed
