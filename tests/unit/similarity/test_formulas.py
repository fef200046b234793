"""Exact measures against plain implementations of their definitions, and their common properties."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise, product
from typing import Any

import numpy as np
import pytest
from conftest import read_data, read_jsonl
from example_texts import LEFT_2, LEFT_3, RIGHT_2
from hypothesis import assume, given
from hypothesis import strategies as st
from recount import word_edits
from unit_tools import set_resemblance, shingle_set, words

from es_neardupe.errors import SettingsError
from es_neardupe.keys.fingerprint import signatures
from es_neardupe.keys.minhash import estimate
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.shingles import features, token_hashes
from es_neardupe.keys.text import tokenize
from es_neardupe.options import Matching, MeasureName
from es_neardupe.similarity import formulas
from es_neardupe.similarity.alignment import literal
from es_neardupe.similarity.formulas import Weights, resemblance, resemblances
from es_neardupe.similarity.measure import ALIGNED, Measure

SETS = st.lists(st.frozensets(st.integers(0, 12) | st.integers(2**64 - 5, 2**64 - 1), max_size=12), max_size=8)
NONE = np.zeros(0, np.intp)


def arrays(sets: list[frozenset[int]]) -> list[np.ndarray[Any, Any]]:
    return [np.array(sorted(one), np.uint64) for one in sets]


@given(SETS, st.sampled_from([1, 3, 7, 4_000_000]), st.sampled_from([0, 2, 16]), st.sampled_from([1, 20]), st.data())
def test_against_sets(sets: list[frozenset[int]], part: int, many: int, few: int, data: st.DataObject) -> None:
    """One by one, and by numbers of all features; in C, in parts of any size."""
    every = list(product(range(len(sets)), repeat=2))
    pairs = data.draw(st.lists(st.sampled_from(every), max_size=40)) if every else []
    left, right = (np.array([pair[side] for pair in pairs], np.intp) for side in (0, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(formulas, "_PART", part)
        patch.setattr(formulas, "_AT_ONCE", part)
        patch.setattr(formulas, "_MANY", many)
        patch.setattr(formulas, "_FEW", few)
        found = resemblances(arrays(sets), left, right)
    assert found.dtype == np.float64
    assert found.tolist() == [set_resemblance(sets[a], sets[b]) for a, b in pairs]


@given(SETS)
def test_one_pair(sets: list[frozenset[int]]) -> None:
    made = arrays(sets)
    for a, b in product(range(len(sets)), repeat=2):
        assert resemblance(made[a], made[b]) == set_resemblance(sets[a], sets[b]) == resemblance(made[b], made[a])


def test_nothing() -> None:
    assert resemblances([], NONE, NONE).tolist() == []
    assert resemblances(arrays([frozenset({1})]), NONE, NONE).tolist() == []


def test_dense_cluster() -> None:
    """All pairs of 120 texts of one cluster: those with the same left side, or the same right side, in a row."""
    rng = np.random.default_rng(5)
    core = set(range(1000, 1300))
    sets = [frozenset((core - set(rng.choice(300, 40) + 1000)) | set(rng.integers(0, 999, 30))) for _ in range(120)]
    sets = [frozenset(map(int, one)) for one in sets] + [frozenset()]
    pairs = list(combinations(range(len(sets)), 2))
    left, right = np.array(pairs, np.intp).T
    wanted = [set_resemblance(sets[a], sets[b]) for a, b in pairs]
    assert len(pairs) > 16 * len(sets)
    assert resemblances(arrays(sets), left, right).tolist() == wanted
    assert resemblances(arrays(sets), right, left).tolist() == wanted
    assert 0.5 < max(wanted) < 1


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        ("", "", 1.0),
        ("", "word", 0.0),
        ("one two", "ONE, two!", 1.0),
        ("one two", "two one", 0.0),
        (words(0, 16), f"{words(0, 16)} {words(0, 16)}", 0.75),  # DESIGN 5: a 16-word text pasted twice
        (words(0, 5), words(0, 6), 0.5),  # a 5-word mail and a 6-word reply
        (words(0, 6), words(0, 6), 1.0),
    ],
)
def test_worked_examples(a: str, b: str, wanted: float) -> None:
    one, other = features([a, b], 5)
    assert resemblance(one, other) == wanted
    assert set_resemblance(shingle_set(a), shingle_set(b)) == wanted


# All measures, by name


def frequencies(texts: Sequence[str], size: int) -> Weights:
    """The number of texts that have each shingle."""
    every, counts = np.unique(np.concatenate(features(texts, size)), return_counts=True)
    return Weights(len(texts), every, counts)


VOCABULARY = ["the", "cat", "sat", "on", "a", "mat", "and", "he", "saw", "it"]
SAMPLE = [" ".join(random.Random(k).choices(VOCABULARY, k=30)) for k in range(40)]

MEASURES = [
    Measure(),
    Measure(shingle=1),
    *(Measure(name, matching, size) for name in ALIGNED for matching in Matching for size in (2, 5)),
    *(Measure(MeasureName.BAG, ngram=size) for size in (1, 2, 7)),
    *(Measure(MeasureName.WEIGHTED, shingle=size, weights=frequencies(SAMPLE, size)) for size in (1, 5)),
    Measure(MeasureName.EDIT),
    Measure(MeasureName.ESTIMATE),
]
EXACT = [measure for measure in MEASURES if measure.name is not MeasureName.ESTIMATE]

TEXTS = st.lists(st.sampled_from(VOCABULARY), max_size=25).map(" ".join)


def score(measure: Measure, a: str, b: str) -> float:
    return measure.score(*measure.prepare([a, b]))


def label(measure: Measure) -> str:
    return f"{measure.name.value}-{measure.matching.value}-{measure.shingle}-{measure.ngram}"


every_measure = pytest.mark.parametrize("measure", MEASURES, ids=label)
exact_measure = pytest.mark.parametrize("measure", EXACT, ids=label)


def test_every_measure_is_here() -> None:
    assert {measure.name for measure in MEASURES} == set(MeasureName)


@every_measure
@given(a=TEXTS, b=TEXTS)
def test_range_and_symmetry(measure: Measure, a: str, b: str) -> None:
    found = score(measure, a, b)
    assert 0 <= found <= 1
    assert found == score(measure, b, a)


@every_measure
@pytest.mark.parametrize("count", [0, 1, 2, 4, 5, 6, 40])
def test_identical_texts_are_exactly_1(measure: Measure, count: int) -> None:
    for text in (words(0, count), "again " * count):
        assert score(measure, text, text.upper()) == 1


@every_measure
@pytest.mark.parametrize("text", ["word", "two words", words(0, 50)])
def test_empty_against_anything_is_0(measure: Measure, text: str) -> None:
    assert score(measure, "", text) == score(measure, text, "") == score(measure, "... !", text) == 0
    assert score(measure, "", "... !") == 1


@every_measure
def test_texts_without_a_common_word_are_0(measure: Measure) -> None:
    assert score(measure, words(0, 40), words(40, 30)) == pytest.approx(0, abs=0.04 if measure not in EXACT else 0)


@pytest.mark.parametrize("measure", [one for one in EXACT if one.name is not MeasureName.EDIT], ids=label)
@given(a=TEXTS, b=TEXTS, more=st.lists(st.sampled_from(["zzz", "yyy", "xxx"]), min_size=1, max_size=9).map(" ".join))
def test_foreign_text_raises_no_measure_of_sets_bags_and_passages(measure: Measure, a: str, b: str, more: str) -> None:
    """The intersection does not grow, since it would need a word of the appended text; the union does not shrink."""
    assert score(measure, a, f"{b} {more}") <= score(measure, a, b)


def test_foreign_text_can_raise_the_edit_measure() -> None:
    """One edit replaces a word where one was deleted, and the longer text has a word more: 1 - 2/3, then 1 - 2/4."""
    measure = Measure(MeasureName.EDIT)
    assert score(measure, "x y z", "q x y") == pytest.approx(1 / 3)
    assert score(measure, "x y z", "q x y f") == 1 / 2


@given(a=TEXTS, b=TEXTS, more=st.lists(st.sampled_from(["zzz", "yyy"]), min_size=1, max_size=9).map(" ".join))
def test_foreign_text_takes_no_edits_away(a: str, b: str, more: str) -> None:
    """While the text that grows is not the longer one, the measure does not rise either."""
    assert word_edits(a.split(), f"{b} {more}".split()) >= word_edits(a.split(), b.split())
    if len(f"{b} {more}".split()) <= len(a.split()):
        assert score(Measure(MeasureName.EDIT), a, f"{b} {more}") <= score(Measure(MeasureName.EDIT), a, b)


def test_foreign_text_raises_estimates_by_chance_only() -> None:
    """A slot in which two texts differ can become equal in 1 of 256 cases, like any 8 bits."""
    chance = random.Random(9)
    differing = risen = 0
    for _ in range(300):
        common = " ".join(f"c{chance.getrandbits(40)}" for _ in range(30))
        a, b = (f"{common} {words(0, 30, f'{mark}{chance.getrandbits(40)}x')}" for mark in "ab")
        one, other, more = Measure(MeasureName.ESTIMATE).prepare([a, b, f"{b} {words(0, 60, 'foreign')}"])
        differing += int((one != other).sum())
        risen += int(((one != other) & (one == more)).sum())
    assert differing > 10_000
    assert risen / differing < 1.3 / 256


# Plain programs of the definitions


def grams(said: Sequence[str], size: int) -> Counter[tuple[str, ...]]:
    size = min(size, max(len(said), 1))
    return Counter(tuple(said[k : k + size]) for k in range(len(said) - size + 1))


def counted(a: Sequence[str], b: Sequence[str], size: int) -> float:
    """Jaccard of multisets by `collections.Counter`."""
    one, other = grams(a, size), grams(b, size)
    return (one & other).total() / (one | other).total() if one or other else 1.0


def idf(shingle: tuple[str, ...], sample: Sequence[frozenset[tuple[str, ...]]]) -> float:
    return math.log((len(sample) + 1) / (sum(shingle in one for one in sample) + 1)) + 1


def repetitive_pairs(count: int, longest: int) -> Iterator[tuple[str, str]]:
    """Texts of 1, 2, 3, 6 or 10 different words; half of the pairs are edited copies."""
    chance = random.Random(count)
    for k in range(count):
        known = VOCABULARY[: (1, 2, 3, 6, 10)[k % 5]]
        a = chance.choices(known, k=chance.randint(0, longest))
        b = chance.choices(known, k=chance.randint(0, longest))
        if chance.random() < 0.5:
            b = [word if chance.random() < 0.85 else chance.choice(VOCABULARY) for word in a if chance.random() < 0.95]
        yield " ".join(a), " ".join(b)


def senate_pairs(count: int) -> list[tuple[str, str]]:
    """Pairs of senators' texts that resemble each other, from slightly to completely."""
    known = {one["id"]: one["text"] for one in read_jsonl("senate_press/sample_12_senators.jsonl.xz")}
    lines = read_data("senate_press/sample_12_senators.exact_pairs.tsv").read_text("utf-8").splitlines()
    named = [line.split("\t") for line in lines if line[0] != "#"]
    return [(known[a], known[b]) for a, b, _ in named[:: max(1, len(named) // count)]]


@pytest.mark.parametrize("size", range(1, 8))
def test_bag_against_counters(size: int) -> None:
    measure = Measure(MeasureName.BAG, ngram=size)
    for a, b in repetitive_pairs(500, 30):
        assert score(measure, a, b) == counted(a.split(), b.split(), size)


def test_edit_against_the_table() -> None:
    measure = Measure(MeasureName.EDIT)
    for a, b in repetitive_pairs(2000, 25):
        longer = max(len(a.split()), len(b.split()))
        wanted = 1 - word_edits(a.split(), b.split()) / longer if longer else 1
        assert score(measure, a, b) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_weighted_against_dictionaries(size: int) -> None:
    measure = Measure(MeasureName.WEIGHTED, shingle=size, weights=frequencies(SAMPLE, size))
    sample = [shingle_set(one, size) for one in SAMPLE]
    for a, b in repetitive_pairs(300, 30):
        one, other = shingle_set(a, size), shingle_set(b, size)
        common, whole = (math.fsum(idf(item, sample) for item in items) for items in (one & other, one | other))
        assert score(measure, a, b) == pytest.approx(common / whole if whole else 1)


def test_real_texts_against_plain_programs() -> None:
    """Form letters and other pairs: bags, edits of the first 150 words, weights by the texts themselves."""
    pairs = senate_pairs(60)
    texts = [text for pair in pairs for text in pair]
    weights, sample = frequencies(texts, 5), [shingle_set(text) for text in texts]
    frequency = Counter(item for one in sample for item in one)
    for a, b in pairs:
        said_a, said_b = tokenize(a), tokenize(b)
        for size in (1, 3):
            assert score(Measure(MeasureName.BAG, ngram=size), a, b) == counted(said_a, said_b, size)
        head_a, head_b = said_a[:150], said_b[:150]
        wanted = 1 - word_edits(head_a, head_b) / max(len(head_a), len(head_b))
        assert score(Measure(MeasureName.EDIT), " ".join(head_a), " ".join(head_b)) == pytest.approx(wanted)
        one, other = shingle_set(a), shingle_set(b)
        common, whole = (
            math.fsum(math.log((len(texts) + 1) / (frequency[item] + 1)) + 1 for item in items)
            for items in (one & other, one | other)
        )
        assert score(Measure(MeasureName.WEIGHTED, weights=weights), a, b) == pytest.approx(common / whole)
        assert score(Measure(), a, b) == set_resemblance(one, other)


def test_weights_of_shingles() -> None:
    """A feature of all documents has weight 1, a feature of none the maximum; equal frequencies, equal weights."""
    found = Weights(9, np.array([3, 5, 8], np.uint64), np.array([9, 1, 1]))
    assert found.of(np.array([3, 5, 8, 4, 2**64 - 1], np.uint64)).tolist() == pytest.approx(
        [1, math.log(5) + 1, math.log(5) + 1, math.log(10) + 1, math.log(10) + 1]
    )
    assert Weights(0, np.empty(0, np.uint64), np.empty(0, np.int64)).of(np.array([7], np.uint64)).tolist() == [1]


@given(TEXTS, TEXTS)
def test_equal_weights_are_resemblance(a: str, b: str) -> None:
    unknown = Weights(100, np.empty(0, np.uint64), np.empty(0, np.int64))
    assert score(Measure(MeasureName.WEIGHTED, weights=unknown), a, b) == pytest.approx(score(Measure(), a, b))


def test_rare_shingles_count_more_than_boilerplate() -> None:
    """Two letters share their form, two others their subject: as many words each, but every letter has the form."""
    form = words(0, 20, "form")
    letters = [f"{form} {words(100 * k, 20)}" for k in range(30)]
    a, b = f"{form} {words(0, 20, 'a')}", f"{form} {words(0, 20, 'b')}"
    c, d = f"{words(0, 20, 'm')} {words(0, 20, 'c')}", f"{words(0, 20, 'm')} {words(0, 20, 'd')}"
    measure = Measure(MeasureName.WEIGHTED, weights=frequencies(letters, 5))
    assert score(Measure(), a, b) == score(Measure(), c, d)
    assert score(measure, a, b) < 0.6 * score(measure, c, d)


# How the measures of one pair are ordered


@st.composite
def without_repeats(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Texts that share passages of words which occur once in each, in any order, with other words between them."""
    sizes = draw(st.lists(st.integers(1, 12), min_size=1, max_size=5))
    passages = [list(range(100 * k, 100 * k + size)) for k, size in enumerate(sizes)]
    made = []
    for side in (1000, 2000):
        chosen = draw(st.permutations(passages))[: draw(st.integers(1, len(passages)))]
        gaps = draw(st.lists(st.integers(0, 7), min_size=len(chosen), max_size=len(chosen)))
        pieces = [
            (*passage, *range(side + 10 * k, side + 10 * k + gap))
            for k, (passage, gap) in enumerate(zip(chosen, gaps, strict=True))
        ]
        made.append([word for piece in pieces for word in piece])
    return made[0], made[1]


NUMBERS = st.lists(st.integers(0, 14), min_size=1, max_size=22)


def common_runs(a: Sequence[int], b: Sequence[int], minimum: int) -> list[tuple[int, int, int]]:
    """All maximal runs, by comparing all with all: (position in a, position in b, words)."""
    found = []
    for i, j in product(range(len(a)), range(len(b))):
        if i and j and a[i - 1] == b[j - 1]:
            continue
        size = 0
        while i + size < len(a) and j + size < len(b) and a[i + size] == b[j + size]:
            size += 1
        if size >= minimum:
            found.append((i, j, size))
    return found


def apart(spans: list[tuple[int, int]]) -> bool:
    return all(end <= start for (_, end), (start, _) in pairwise(sorted(spans)))


def simple(a: Sequence[int], b: Sequence[int], minimum: int) -> bool:
    """Whether the relation applies: no repeated shingle in a text, no overlapping common runs."""
    shingles = ([tuple(one[k : k + minimum]) for k in range(len(one) - minimum + 1)] for one in (a, b))
    runs = common_runs(a, b, minimum)
    return (
        min(len(a), len(b)) >= minimum
        and all(len(one) == len(set(one)) for one in shingles)
        and apart([(i, i + size) for i, _, size in runs])
        and apart([(j, j + size) for _, j, size in runs])
    )


@given(without_repeats() | st.tuples(NUMBERS, NUMBERS), st.integers(1, 5))
def test_relation_of_the_three_measures(pair: tuple[list[int], list[int]], w: int) -> None:
    """S_R = (C - n(w-1)) / (L + S - C + (n-2)(w-1)), and so S_R <= S_J <= S_L."""
    a, b = pair
    assume(simple(a, b, w))
    one, other = (" ".join(map(str, side)) for side in pair)
    tokens, others = token_hashes([one, other])
    found = literal(tokens, others, w)
    c, n, both = found.common, found.chunks, found.longer + found.shorter
    by_sets = set_resemblance(shingle_set(one, w), shingle_set(other, w))
    assert by_sets == score(Measure(shingle=w), one, other)
    assert by_sets == (c - n * (w - 1)) / (both - c + (n - 2) * (w - 1))
    assert by_sets <= formulas.jaccard(found) <= formulas.containment_longer(found) <= formulas.containment(found)


@pytest.mark.parametrize("measure", [one for one in EXACT if one.name is MeasureName.JACCARD], ids=label)
@given(a=TEXTS, b=TEXTS)
def test_jaccard_is_never_above_the_containments(measure: Measure, a: str, b: str) -> None:
    """For any two texts, also if shingles repeat."""
    longer, shorter = (
        Measure(name, measure.matching, measure.shingle)
        for name in (MeasureName.CONTAINMENT_LONGER, MeasureName.CONTAINMENT)
    )
    assert score(measure, a, b) <= score(longer, a, b) <= score(shorter, a, b)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (LEFT_2, RIGHT_2),  # a shingle twice: 75 % above 50 %
        (LEFT_3, " x x ".join(" ".join(LEFT_3.split()[k : k + 5]) for k in range(5))),  # five runs that overlap in a
    ],
)
def test_resemblance_can_be_above_literal_jaccard_elsewhere(a: str, b: str) -> None:
    assert score(Measure(), a, b) > score(Measure(MeasureName.JACCARD), a, b)


def test_estimate_is_near_the_resemblance_of_real_texts() -> None:
    """With all 128 slots, nearly all intervals contain the true value."""
    held = []
    for a, b in senate_pairs(200):
        one, other = signatures([a, b], Scheme(bands=16, rows=6))
        found = estimate(one, other)
        assert found.value == score(Measure(MeasureName.ESTIMATE), a, b)
        held.append(found.low <= score(Measure(), a, b) <= found.high)
    assert sum(held) / len(held) > 0.93


@pytest.mark.timeout(60)
@pytest.mark.parametrize("times", [100_000, pytest.param(1_000_000, marks=pytest.mark.long)])
@exact_measure
def test_one_word_many_times(measure: Measure, times: int) -> None:
    fewer = times * 9 // 10
    a, b = "again " * times, "again " * fewer
    found = score(measure, a, b)
    by_words = measure.matching is Matching.LITERAL and measure.name in (*ALIGNED, MeasureName.EDIT)
    if by_words and measure.name is not MeasureName.CONTAINMENT:
        assert found == 0.9
    elif measure.name is MeasureName.BAG:
        assert found == (fewer + 1 - measure.ngram) / (times + 1 - measure.ngram)
    else:
        assert found == 1


@pytest.mark.parametrize("name", [name for name in MeasureName if name is not MeasureName.WEIGHTED])
@pytest.mark.parametrize("size", [0, -1])
def test_a_shingle_has_a_word(name: MeasureName, size: int) -> None:
    with pytest.raises(SettingsError, match="A shingle has 1 word or more"):
        Measure(name, shingle=size)


@pytest.mark.parametrize("size", [0, 8])
def test_sizes_out_of_range_of_the_bag(size: int) -> None:
    with pytest.raises(SettingsError, match="an n-gram of the bag measure 1 to 7"):
        Measure(MeasureName.BAG, ngram=size)


def test_weighted_needs_weights() -> None:
    with pytest.raises(SettingsError, match="needs the frequencies"):
        Measure(MeasureName.WEIGHTED)
