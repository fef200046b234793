"""Common passages against plain implementations of their definitions, their properties, and their limits."""

from __future__ import annotations

import random
import time
import tracemalloc
from collections.abc import Callable, Sequence
from itertools import chain

import numpy as np
import pytest
from conftest import read_data, read_jsonl
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from es_neardupe.errors import SettingsError
from es_neardupe.keys.shingles import token_hashes
from es_neardupe.options import Matching
from es_neardupe.similarity.alignment import Alignment, align, information, literal
from es_neardupe.similarity.formulas import containment, containment_longer, jaccard
from es_neardupe.similarity.tiling import choose, runs_of, tiles, tiles_in_rounds

U64 = NDArray[np.uint64]
Block = tuple[int, int, int]
LITERAL, INFORMATION = Matching.LITERAL, Matching.INFORMATION

HASHES = np.random.default_rng(4).integers(0, 2**64, 300, np.uint64)
"""Word number -> its hash; not ascending, like real hashes."""


def text(numbers: Sequence[int]) -> U64:
    return HASHES[np.array(numbers, np.intp)]


def repetitive(limit: int = 40) -> st.SearchStrategy[list[int]]:
    """Texts of very few different words, with many repetitions."""
    return st.integers(1, 6).flatmap(lambda size: st.lists(st.integers(0, size - 1), max_size=limit))


PASSAGES = st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=9), min_size=1, max_size=4)


@st.composite
def related(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two texts made of the same passages, in any order, repeated, with other words between them."""
    passages = draw(PASSAGES)
    piece = st.sampled_from(passages) | st.lists(st.integers(41, 50), min_size=1, max_size=2)
    one, other = (list(chain.from_iterable(draw(st.lists(piece, max_size=7)))) for _ in range(2))
    return one, other


PAIRS = st.tuples(repetitive(), repetitive()) | related()
LEAST = st.integers(1, 7)


# The definitions, as plain programs


def tiled(a: Sequence[int], b: Sequence[int], minimum: int) -> list[Block]:
    """Greedy string tiling as Wise defines it: check all pairs of positions, take the best run, begin again."""
    turned = tuple(HASHES[list(a)].tolist()) > tuple(HASHES[list(b)].tolist())
    if turned:
        a, b = b, a
    free_a, free_b = [True] * len(a), [True] * len(b)
    found: list[Block] = []
    while True:
        best = (0, 0, 0)
        for i in range(len(a)):
            for j in range(len(b)):
                size = 0
                while i + size < len(a) and j + size < len(b) and a[i + size] == b[j + size]:
                    if not (free_a[i + size] and free_b[j + size]):
                        break
                    size += 1
                best = min(best, (-size, i + j, i))
        size, i, j = -best[0], best[2], best[1] - best[2]
        if size < minimum:
            return sorted((j, i, size) if turned else (i, j, size) for i, j, size in found)
        free_a[i : i + size] = free_b[j : j + size] = [False] * size
        found.append((i, j, size))


def windows(words: Sequence[int], minimum: int) -> list[tuple[int, ...]]:
    return [tuple(words[k : k + minimum]) for k in range(len(words) - minimum + 1)]


def fresh(words: Sequence[int], minimum: int) -> list[bool]:
    """Whether each word is not repeated: it is in no run that occurred before, or in that earlier occurrence itself."""
    first: dict[tuple[int, ...], int] = {}
    counts = [True] * len(words)
    for start, window in enumerate(windows(words, minimum)):
        former = first.setdefault(window, start)
        for place in range(max(start, former + minimum), start + minimum):
            counts[place] = counts[place] and former == start
    return counts


def counted(words: Sequence[int], others: Sequence[int], minimum: int) -> list[bool]:
    """Whether each word counts: it is not repeated, or is the opposite of a word that is not repeated, of which all
    opposites are repeated."""
    places: list[dict[tuple[int, ...], int]] = [{}, {}]
    for first, text_ in zip(places, (words, others), strict=True):
        for start, window in enumerate(windows(text_, minimum)):
            first.setdefault(window, start)
    shared = [(places[0][window], places[1][window]) for window in places[0].keys() & places[1].keys()]
    opposites = {(i + k, j + k) for i, j in shared for k in range(minimum)}
    own, their = fresh(words, minimum), fresh(others, minimum)
    counting = list(own)
    for place, _ in enumerate(others):
        found = [one for one, other in opposites if other == place]
        if their[place] and not any(own[one] for one in found):
            for one in found:
                counting[one] = True
    return counting


def counted_in_common(words: Sequence[int], others: Sequence[int], minimum: int) -> int:
    """The number of counted words in a run that the other text has too."""
    shared = set(windows(others, minimum))
    places = {
        place
        for start, window in enumerate(windows(words, minimum))
        if window in shared
        for place in range(start, start + minimum)
    }
    return sum(counts for place, counts in enumerate(counted(words, others, minimum)) if place in places)


def check_literal(a: Sequence[int], b: Sequence[int], minimum: int) -> None:
    found = literal(text(a), text(b), minimum)
    assert found.words == (len(a), len(b))
    expected = tiled(a, b, 1 if list(a) == list(b) else minimum)
    assert [tuple(row) for row in found.blocks.tolist()] == expected
    assert found.common == sum(size for _, _, size in expected)


def check_information(a: Sequence[int], b: Sequence[int], minimum: int) -> None:
    if list(a) == list(b) and len(a) < minimum:
        minimum = max(1, len(a))
    found = information(text(a), text(b), minimum)
    assert found.words == (sum(counted(a, b, minimum)), sum(counted(b, a, minimum)))
    assert found.common == min(counted_in_common(a, b, minimum), counted_in_common(b, a, minimum))


def random_pair(chance: random.Random, alphabet: int, longest: int) -> tuple[list[int], list[int]]:
    """Two texts of few words; half of the time the second is the first with some words changed, left out or moved."""
    a = chance.choices(range(alphabet), k=chance.randint(0, longest))
    if chance.random() < 0.5:
        return a, chance.choices(range(alphabet), k=chance.randint(0, longest))
    b = [chance.randrange(alphabet + 1) if chance.random() < 0.1 else word for word in a if chance.random() < 0.95]
    cut = chance.randint(0, len(b))
    return a, b[cut:] + b[:cut]


@pytest.mark.parametrize("alphabet", [1, 2, 3, 6, 30])
@pytest.mark.parametrize("check", [check_literal, check_information])
def test_against_the_definition(alphabet: int, check: Callable[[Sequence[int], Sequence[int], int], None]) -> None:
    """5,000 pairs in total for each matching."""
    chance = random.Random(alphabet)
    for _ in range(1000):
        a, b = random_pair(chance, alphabet, 24)
        check(a, b, chance.randint(1, 6))


@given(PAIRS, LEAST)
def test_against_the_definition_where_it_is_hard(pair: tuple[list[int], list[int]], minimum: int) -> None:
    check_literal(*pair, minimum)
    check_information(*pair, minimum)


def every_tile(a: U64, b: U64, minimum: int) -> list[Block]:
    return sorted(tuple(row) for row in tiles(a, b, minimum).tolist())


@given(PAIRS, LEAST, st.sampled_from([0, 1, 5, 30, 200]))
def test_rounds_find_the_same_tiles(pair: tuple[list[int], list[int]], minimum: int, limit: int) -> None:
    """With any limit above which pairs are not listed."""
    a, b = map(text, pair)
    in_rounds = sorted(tuple(row) for row in tiles_in_rounds(a, b, minimum, limit).tolist())
    assert in_rounds == every_tile(a, b, minimum)


@pytest.mark.parametrize("alphabet", [1, 2, 3, 6])
def test_rounds_find_the_same_tiles_in_long_texts(alphabet: int) -> None:
    """Texts of few words, long enough to be tiled in rounds."""
    chance = random.Random(alphabet)
    for _ in range(4):
        a, b = (text(numbers) for numbers in random_pair(chance, alphabet, 1500))
        alike = choose(runs_of(*pairs_of(a, b, 5), 5), len(a), len(b), 5)
        wanted = sorted(tuple(row) for row in alike.tolist())
        assert every_tile(a, b, 5) == wanted
        for limit in (0, 300):
            assert sorted(tuple(row) for row in tiles_in_rounds(a, b, 5, limit).tolist()) == wanted


def pairs_of(a: U64, b: U64, size: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All pairs of equal windows, by comparing all with all."""
    equal = a[:, None] == b[None, :]
    high, wide = max(len(a) - size + 1, 0), max(len(b) - size + 1, 0)
    same = np.ones((high, wide), np.bool_)
    for k in range(size):
        same &= equal[k : high + k, k : wide + k]
    i, j = np.nonzero(same)
    return i, j


def test_real_texts_against_the_definition() -> None:
    """Form letters of senators and other pairs, the first 70 words of each text."""
    known = {one["id"]: one["text"] for one in read_jsonl("senate_press/sample_12_senators.jsonl.xz")}
    lines = read_data("senate_press/sample_12_senators.exact_pairs.tsv").read_text("utf-8").splitlines()
    pairs = [line.split("\t")[:2] for line in lines if line[0] != "#"][::60]
    assert len(pairs) > 30
    for names in pairs:
        hashes = [one[:70] for one in token_hashes([known[name] for name in names])]
        numbers = {value: k for k, value in enumerate(np.unique(np.concatenate(hashes)).tolist())}
        a, b = ([numbers[value] for value in one.tolist()] for one in hashes)
        assert len(numbers) <= len(HASHES)
        check_literal(a, b, 5)
        check_information(a, b, 5)


# What always holds


@given(PAIRS, LEAST)
def test_literal_blocks_are_equal_runs_that_share_no_word(pair: tuple[list[int], list[int]], minimum: int) -> None:
    a, b = pair
    found = literal(text(a), text(b), minimum)
    used_a: list[int] = []
    used_b: list[int] = []
    for i, j, size in found.blocks.tolist():
        assert a[i : i + size] == b[j : j + size]
        assert size >= minimum or a == b
        assert i + size <= len(a)
        assert j + size <= len(b)
        used_a += range(i, i + size)
        used_b += range(j, j + size)
    assert len(used_a) == len(set(used_a)) == len(used_b) == len(set(used_b)) == found.common
    assert found.blocks.dtype == np.int64
    assert found.blocks.tolist() == sorted(found.blocks.tolist())


@given(PAIRS, LEAST)
def test_literal_leaves_nothing_that_could_be_a_tile(pair: tuple[list[int], list[int]], minimum: int) -> None:
    """No common run of ``minimum`` words is unused in both texts."""
    a, b = pair
    assume(a != b)
    left_a: list[int | None] = list(a)
    left_b: list[int | None] = list(b)
    for i, j, size in literal(text(a), text(b), minimum).blocks.tolist():
        left_a[i : i + size] = left_b[j : j + size] = [None] * size
    runs = [
        {tuple(left[k : k + minimum]) for k in range(len(left) - minimum + 1) if None not in left[k : k + minimum]}
        for left in (left_a, left_b)
    ]
    assert runs[0].isdisjoint(runs[1])


@given(PAIRS, LEAST)
def test_information_blocks_cover_what_is_common(pair: tuple[list[int], list[int]], minimum: int) -> None:
    a, b = pair
    assume(a != b or len(a) >= minimum)
    found = information(text(a), text(b), minimum)
    covered: tuple[set[int], set[int]] = set(), set()
    for i, j, size in found.blocks.tolist():
        assert a[i : i + size] == b[j : j + size]
        assert size >= minimum
        assert i + size <= len(a)
        assert j + size <= len(b)
        covered[0].update(range(i, i + size))
        covered[1].update(range(j, j + size))
    counts = (counted(a, b, minimum), counted(b, a, minimum))
    assert found.common == min(sum(one[k] for k in places) for one, places in zip(counts, covered, strict=True))
    assert found.blocks.tolist() == sorted(found.blocks.tolist())


@given(PAIRS, LEAST)
def test_information_blocks_lead_to_first_occurrences(pair: tuple[list[int], list[int]], minimum: int) -> None:
    """Every common run of ``minimum`` words is in one block, at its first occurrence in each text."""
    a, b = pair
    assume(a != b or len(a) >= minimum)
    first_a, first_b = (
        {window: k for k, window in reversed(list(enumerate(windows(words, minimum))))} for words in (a, b)
    )
    expected = sorted((first_a[window], first_b[window]) for window in first_a.keys() & first_b.keys())
    blocks = information(text(a), text(b), minimum).blocks.tolist()
    assert sorted((i + k, j + k) for i, j, size in blocks for k in range(size - minimum + 1)) == expected


@given(PAIRS, LEAST, st.sampled_from(Matching))
def test_both_orders_of_the_texts_give_the_same(
    pair: tuple[list[int], list[int]], minimum: int, matching: Matching
) -> None:
    a, b = map(text, pair)
    found, turned = align(a, b, matching, minimum), align(b, a, matching, minimum)
    assert (turned.words, turned.common) == (found.words[::-1], found.common)
    assert sorted(map(tuple, turned.blocks[:, [1, 0, 2]].tolist())) == [tuple(row) for row in found.blocks.tolist()]


@given(PAIRS, LEAST, st.sampled_from(Matching))
def test_ranges(pair: tuple[list[int], list[int]], minimum: int, matching: Matching) -> None:
    found = align(text(pair[0]), text(pair[1]), matching, minimum)
    assert 0 <= found.common <= found.shorter <= found.longer
    assert found.chunks == len(found.blocks)
    assert 0 <= jaccard(found) <= containment_longer(found) <= containment(found) <= 1


@pytest.mark.parametrize("size", [0, 1, 2, 4, 5, 6, 50])
@pytest.mark.parametrize("matching", Matching)
def test_identical_texts_are_one_passage(size: int, matching: Matching) -> None:
    words = text(range(size))
    found = align(words, words.copy(), matching)
    assert (found.words, found.common) == ((size, size), size)
    assert found.blocks.tolist() == ([[0, 0, size]] if size else [])


@given(repetitive(), LEAST, st.sampled_from(Matching))
def test_identical_texts_are_wholly_common(words: list[int], minimum: int, matching: Matching) -> None:
    found = align(text(words), text(words), matching, minimum)
    assert found.words[0] == found.words[1] == found.common
    assert jaccard(found) == containment(found) == containment_longer(found) == 1


@given(PAIRS, LEAST, st.sampled_from(Matching), st.lists(st.integers(200, 205), min_size=1, max_size=8), st.booleans())
def test_foreign_text_raises_nothing(
    pair: tuple[list[int], list[int]], minimum: int, matching: Matching, foreign: list[int], at_a: bool
) -> None:
    """Words that neither text has, appended to one: C stays (unless equal short texts part), lengths grow.

    Proof: no run has a foreign word. Tiles come by length, then places, then the first difference of the texts, and
    appending changes none of these. A run that repeats is still in its text only, and so are the words that count.
    """
    a, b = pair
    before = align(text(a), text(b), matching, minimum)
    more = (a + foreign, b) if at_a else (a, b + foreign)
    after = align(text(more[0]), text(more[1]), matching, minimum)
    if a != b or len(a) >= minimum:
        assert after.common == before.common
        assert after.blocks.tolist() == before.blocks.tolist()
    for measure in (jaccard, containment, containment_longer):
        assert measure(after) <= measure(before)


@given(PAIRS, LEAST)
def test_information_has_at_least_what_literal_has_where_nothing_repeats(
    pair: tuple[list[int], list[int]], minimum: int
) -> None:
    """Then all words count, and each word of a tile is in a common run."""
    a, b = pair
    assume(all(len(set(windows(words, minimum))) == len(windows(words, minimum)) for words in pair))
    one, other = (align(text(a), text(b), matching, minimum) for matching in (LITERAL, INFORMATION))
    assert one.words == other.words
    assert one.common <= other.common
    for measure in (jaccard, containment, containment_longer):
        assert measure(one) <= measure(other)


def test_literal_can_be_above_information_where_a_passage_repeats() -> None:
    """P P X against P P Y: two thirds are common by literal, a half by information matching."""
    passage, x, y = list(range(10)), list(range(20, 30)), list(range(30, 40))
    a, b = text(passage * 2 + x), text(passage * 2 + y)
    assert jaccard(literal(a, b)) == 20 / 40 > jaccard(information(a, b)) == 10 / 30
    assert containment_longer(literal(a, b)) == 20 / 30 > containment_longer(information(a, b)) == 10 / 20


@given(repetitive(20) | PASSAGES.map(lambda some: list(chain.from_iterable(some * 2))), LEAST, st.data())
def test_a_text_has_the_information_of_its_copies_in_a_row(words: list[int], minimum: int, data: st.DataObject) -> None:
    """X X against X X X, also if X repeats itself, and its repetitions overlap."""
    assume(len(words) >= minimum)
    one, other = (words * data.draw(st.integers(1, 4)) for _ in range(2))
    found = information(text(one), text(other), minimum)
    assert found.words[0] == found.words[1] == found.common > 0


def test_tick_tock() -> None:
    """In the text alone the last word is not repeated; in the text twice, a run across the seam repeats it."""
    (tick,) = token_hashes(["tick tock tick tock tick tock"])
    found = information(tick, np.tile(tick, 2))
    assert (found.words, found.common) == ((6, 6), 6)


def test_a_run_across_a_seam_has_a_counted_word_on_each_side() -> None:
    """The first word of the second copy is repeated there, but not in a text that has only the words at the seam."""
    passage = list(range(10))
    found = information(text([*passage[-4:], 0]), text(passage * 2))
    assert (found.words, found.common) == ((5, 11), 5)
    found = information(text(passage[5:] + passage[:5]), text(passage * 2))
    assert (found.words, found.common) == ((10, 10), 10)  # the second half of the passage is elsewhere, and counts


def test_greedy_tiles_can_be_fewer_than_the_best_ones() -> None:
    """`a b b a` against `b a a b b`: the longest run `a b b` leaves one word, `a b` and `b a` would be four."""
    one, other = token_hashes(["a b b a", "b a a b b"])
    assert literal(one, other, 2).blocks.tolist() == [[0, 2, 3]]
    a, b = one.tolist(), other.tolist()
    assert (a[:2], a[2:]) == (b[2:4], b[:2])


def test_ties_go_to_the_smaller_sum_of_places_then_to_the_same_text_whatever_the_order() -> None:
    passage = list(range(5))
    a, b = text([*passage, 20, *passage]), text([30, 31, *passage, 32])
    assert literal(a, b).blocks.tolist() == [[0, 2, 5]]
    overlapping = text([0, 1, 2, 3, 4, 5]), text([1, 2, 3, 4, 5, 9, 0, 1, 2, 3, 4])
    assert literal(*overlapping).blocks.tolist() == [[1, 0, 5]]


def test_a_cut_run_is_taken_up_again() -> None:
    """7 words of a run of 12 remain after a longer tile: they are a tile too."""
    a = text([*range(20), 50])
    b = text([*range(7, 20), 60, *range(12)])
    assert literal(a, b).blocks.tolist() == [[0, 14, 7], [7, 0, 13]]


# Limits


@pytest.mark.parametrize("minimum", [0, -3])
@pytest.mark.parametrize("matching", Matching)
def test_a_passage_has_a_word(minimum: int, matching: Matching) -> None:
    with pytest.raises(SettingsError, match="at least 1 word"):
        align(text([1]), text([1]), matching, minimum)


def fastest(*runs: Callable[[], object], rounds: int = 6) -> list[float]:
    """CPU seconds of the fastest round of each, measured alternately: other work on the machine only slows down."""
    taken: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for run, seconds in zip(runs, taken, strict=True):
            start = time.process_time()
            run()
            seconds.append(time.process_time() - start)
    return list(map(min, taken))


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("matching", "words", "common"), [(LITERAL, 1_000_000, 900_000), (INFORMATION, 5, 5)])
def test_one_word_a_million_times(matching: Matching, words: int, common: int) -> None:
    """In seconds, with less than 1 kB per word."""
    a = np.full(1_000_000, HASHES[0])
    tracemalloc.start()
    found = align(a, a[:900_000], matching)
    maximum = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found.longer, found.common) == (words, common)
    assert maximum < 1_000_000_000


def edited(words: U64, share: float, chance: np.random.Generator) -> U64:
    """The text with this share of its words replaced by words that occur nowhere else."""
    places = chance.random(len(words)) < share
    return np.where(places, chance.integers(0, 2**64, len(words), np.uint64), words)


def pages(count: int, chance: np.random.Generator) -> U64:
    """A report: a heading of 60 words on each page of 100."""
    own = chance.integers(0, 2**64, (count, 40), np.uint64)
    return np.concatenate([np.broadcast_to(HASHES[:60], (count, 60)), own], axis=1).reshape(-1)


def natural(size: int, chance: np.random.Generator) -> U64:
    """Words as frequent as in a language (Zipf)."""
    frequency = 1 / np.arange(4, 8004)
    return chance.integers(0, 2**64, 8000, np.uint64)[chance.choice(8000, size, p=frequency / frequency.sum())]


MAKERS: dict[str, Callable[[int, np.random.Generator], tuple[U64, U64]]] = {
    "one word": lambda size, _: (np.full(size, HASHES[0]), np.full(size - 7, HASHES[0])),
    "a b a b": lambda size, _: (np.resize(HASHES[:2], size), np.resize(HASHES[:2], size - 7)),
    "90 % equal": lambda size, chance: (one := natural(size, chance), edited(one, 0.1, chance)),
}


@pytest.mark.parametrize("matching", Matching)
@pytest.mark.parametrize("name", MAKERS)
def test_five_times_the_words_take_about_five_times_the_time(name: str, matching: Matching) -> None:
    """50,000 words against 10,000, in one run: within twice of linear; quadratic would be 25."""
    small, large = (MAKERS[name](size, np.random.default_rng(1)) for size in (10_000, 50_000))
    short, long = fastest(lambda: align(*small, matching), lambda: align(*large, matching))
    assert long / short < 10


@pytest.mark.timeout(60)
def test_hard_repetition_answers_in_seconds() -> None:
    """Long texts of two words at random, of one word with gaps, and of pages with the same heading."""
    chance = np.random.default_rng(2)
    report = pages(500, chance)
    coins = [HASHES[chance.integers(0, 2, 50_000)] for _ in range(2)]
    gaps = [edited(np.full(50_000, HASHES[0]), 0.05, chance) for _ in range(2)]
    for a, b in ((report, edited(report, 0.05, chance)), coins, gaps):
        found = literal(a, b)
        starts, sizes = found.blocks[:, 0], found.blocks[:, 2]
        assert (starts[1:] >= (starts + sizes)[:-1]).all()
        assert found.common == sizes.sum() > 20_000


def test_alignment_knows_its_lengths() -> None:
    found = Alignment((3, 8), 2, np.array([[0, 1, 2]]))
    assert (found.shorter, found.longer, found.chunks) == (3, 8, 1)
