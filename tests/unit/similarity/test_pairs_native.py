"""Pairs of texts scored in batches and in C: the same results as one by one and in Python, for any input."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import product
from types import ModuleType

import numpy as np
import pytest
from fact_letters import letters
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from recount import word_edits
from unit_tools import set_resemblance

from es_neardupe.errors import InputError, SettingsError
from es_neardupe.keys.hashing import mix64
from es_neardupe.options import FactKind, Matching
from es_neardupe.similarity import batch, formulas
from es_neardupe.similarity.alignment import Alignment, align, literal, totals
from es_neardupe.similarity.facts.reader import Tokens
from es_neardupe.similarity.facts.scanner import AFTER_NUMBERS, FOR_KERNEL, scan
from es_neardupe.similarity.facts.token_changes import token_changes
from es_neardupe.similarity.facts.token_flags import flags_of
from es_neardupe.similarity.facts.tokens import fact_tokens
from es_neardupe.similarity.formulas import FeatureSets, Weights, edit, edits, resemblances, weighted, weighted_pairs
from es_neardupe.similarity.measure import weights_of

U64 = NDArray[np.uint64]

HASHES = np.random.default_rng(5).integers(0, 2**64, 300, np.uint64)

pytestmark = pytest.mark.usefixtures("built_kernel")


def text(numbers: Sequence[int]) -> U64:
    return HASHES[np.array(numbers, np.intp)]


WORDS = st.integers(1, 8).flatmap(lambda size: st.lists(st.integers(0, size - 1), max_size=40))
TEXTS = st.lists(WORDS.map(text), max_size=6)


def kernel() -> ModuleType:
    assert batch.kernel is not None
    return batch.kernel


@contextmanager
def in_python() -> Iterator[None]:
    """Without the inner loops in C."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(batch, "kernel", None)
        yield


def all_pairs(texts: Sequence[object]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Every text with every text, also with itself."""
    left, right = np.array(list(product(range(len(texts)), repeat=2)), np.intp).reshape(-1, 2).T
    return left.copy(), right.copy()


def check_tiles(a: U64, b: U64, minimum: int) -> None:
    found = literal(a, b, minimum)
    with in_python():
        expected = literal(a, b, minimum)
    assert (found.words, found.common) == (expected.words, expected.common)
    assert found.blocks.tolist() == expected.blocks.tolist()
    assert found.blocks.dtype == expected.blocks.dtype == np.int64


# Tiles. The definition, as a plain program, is in test_alignment.py.


@given(WORDS.map(text), WORDS.map(text), st.integers(1, 9))
def test_the_same_tiles(a: U64, b: U64, minimum: int) -> None:
    check_tiles(a, b, minimum)


@pytest.mark.parametrize("alphabet", [1, 2, 3, 6, 30, 250])
def test_the_same_tiles_of_random_texts(alphabet: int) -> None:
    """Also of copies with changes, and with words of both texts as characters of longer passages."""
    chance = random.Random(alphabet)
    for size in (3, 10, 40, 150, 400) * 30:
        a = chance.choices(range(alphabet), k=chance.randint(0, size))
        b = [chance.randrange(alphabet) if chance.random() < 0.1 else one for one in a if chance.random() < 0.95]
        cut = chance.randint(0, len(b))
        check_tiles(text(a), text(b[cut:] + b[:cut]), chance.randint(1, 7))


@pytest.mark.parametrize("minimum", [1, 2, 5, 40])
def test_the_same_tiles_of_long_repetitions(minimum: int) -> None:
    """Where pairs of windows are too many to be listed, and where they are just few enough."""
    for a, b in product((1, 7, 199, 3000), repeat=2):
        for period in (1, 2, 30, 299):
            check_tiles(np.resize(HASHES[:period], a), np.resize(HASHES[:period], b), minimum)
    assert kernel().tiles(np.resize(HASHES[:2], 3000), np.resize(HASHES[:2], 2999), minimum) is None


@pytest.mark.parametrize("minimum", [1, 5, 1_000_000])
def test_texts_without_tiles(minimum: int) -> None:
    none, one = text([]), text([1])
    for a, b in ((none, none), (none, one), (one, none), (one, text([2])), (text([1, 2, 3]), text([2, 1, 3]))):
        check_tiles(a, b, minimum)


def colliding(count: int) -> U64:
    """Words whose places in a table are the same: the inverse of `mix64` of multiples of 2^40."""
    values = [number << 40 for number in range(1, count + 1)]
    for shift, factor in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, 1)):
        values = [one ^ (one >> shift) ^ (one >> 2 * shift) for one in values]
        values = [one * pow(factor, -1, 2**64) % 2**64 for one in values]
    return np.array(values, np.uint64)


def test_words_that_collide_in_the_table() -> None:
    """Texts made for it are refused, since they would take quadratic time, and compared in Python."""
    words = colliding(3000)
    assert (mix64(words.copy()) % 2**40 == 0).all()
    other = np.roll(words, 7)
    assert kernel().tiles(words, other, 1) is None
    assert literal(words, other, 1).blocks.tolist() == [[0, 7, 2993], [2993, 0, 7]]
    short, long = words[:900], np.roll(words[:900], 1)[:-1]
    distance = np.zeros(1, np.int64)
    both = np.concatenate((short, long))
    kernel().distances(both, np.array([0, 900, 1799]), np.array([0]), np.array([1]), distance)
    assert distance.tolist() == [-1]
    assert edits([short, long], np.array([0]), np.array([1])).tolist() == [edit(short, long)]


# Batches


@pytest.mark.parametrize("compiled", [True, False])
@given(texts=TEXTS, matching=st.sampled_from(Matching), minimum=st.integers(1, 6), part=st.sampled_from([1, 50, 10**6]))
def test_totals_of_many_pairs(texts: list[U64], matching: Matching, minimum: int, part: int, compiled: bool) -> None:
    left, right = all_pairs(texts)
    expected = [align(texts[a], texts[b], matching, minimum).totals for a, b in zip(left, right, strict=True)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(batch, "_PART", part)
        if not compiled:
            patched.setattr(batch, "kernel", None)
        assert list(totals(texts, left, right, matching, minimum)) == expected


def test_totals_of_texts_with_many_repetitions_among_others() -> None:
    tick, tock = np.resize(HASHES[:2], 4000), np.resize(HASHES[:2], 3001)
    texts = [text(range(50)), tick, text(range(20, 60)), tock]
    left, right = all_pairs(texts)
    found = list(totals(texts, left, right, Matching.LITERAL))
    assert found == [literal(texts[a], texts[b]).totals for a, b in zip(left, right, strict=True)]
    assert found[7] == (4000, 3001, 3001, 1)
    assert found[2] == Alignment((50, 40), 30, np.array([[20, 0, 30]])).totals


def test_a_passage_has_a_word() -> None:
    texts, one = [text([1]), text([2])], np.array([0])
    with pytest.raises(SettingsError, match="at least 1 word"):
        list(totals(texts, one, one + 1, Matching.LITERAL, 0))


def test_parts_are_reported() -> None:
    seen: list[tuple[int, int | None]] = []
    texts = [text(range(k, k + 10)) for k in range(5)]
    left, right = all_pairs(texts)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(batch, "_PART", 100)
        edits(texts, left, right, lambda stage, done, total: seen.append((done, total)))
    assert [total for _, total in seen] == [25] * len(seen)
    done = [done for done, _ in seen]
    assert done == sorted(set(done))
    assert (done[0], done[-1], len(done) > 4) == (0, 25, True)


@pytest.mark.parametrize("compiled", [True, False])
@given(texts=TEXTS)
def test_edit_of_many_pairs(texts: list[U64], compiled: bool) -> None:
    left, right = all_pairs(texts)
    pairs = [(texts[a], texts[b]) for a, b in zip(left, right, strict=True)]
    with in_python() if not compiled else pytest.MonkeyPatch.context():
        found = edits(texts, left, right).tolist()
    assert found == [edit(a, b) for a, b in pairs]
    expected = [1 - word_edits(a.tolist(), b.tolist()) / max(len(a), len(b), 1) for a, b in pairs]
    assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("size", [1, 63, 64, 65, 127, 128, 129, 500, 1023, 1024, 1025, 1100])
def test_edit_of_texts_around_the_sizes_of_blocks(size: int) -> None:
    """64 words are compared at a time; above 1,024 another algorithm takes over."""
    chance = np.random.default_rng(size)
    texts = [HASHES[chance.integers(0, alphabet, size)] for alphabet in (2, 40, 300)]
    texts += [np.where(chance.random(size) < 0.1, HASHES[0], one)[: size - k] for k, one in enumerate(texts)]
    texts += [np.concatenate((texts[1], texts[2])), np.roll(texts[2], 1)]
    left, right = all_pairs(texts)
    assert edits(texts, left, right).tolist() == [edit(texts[a], texts[b]) for a, b in zip(left, right, strict=True)]


@pytest.mark.parametrize("compiled", [True, False])
@given(texts=st.lists(st.lists(st.integers(0, 60), max_size=50), max_size=6))
def test_weighted_of_many_pairs(texts: list[list[int]], compiled: bool) -> None:
    """To the last digit."""
    sets = [np.unique(text(one)) for one in texts]
    left, right = all_pairs(sets)
    weights = weights_of([np.unique(HASHES[: k * k]) for k in range(12)])
    with in_python() if not compiled else pytest.MonkeyPatch.context():
        found = weighted_pairs(sets, left, right, weights).tolist()
    assert found == [weighted(sets[a], sets[b], weights) for a, b in zip(left, right, strict=True)]


def test_weighted_of_long_texts() -> None:
    """Sums of many numbers depend on their order."""
    chance = np.random.default_rng(8)
    known = np.unique(chance.integers(0, 2**64, 20_000, np.uint64))
    weights = Weights(50_000, known, chance.integers(1, 40_000, len(known)))
    sets = [np.sort(chance.choice(known, size, replace=False)) for size in (0, 1, 7, 9, 129, 3000, 15_000)]
    left, right = all_pairs(sets)
    found = weighted_pairs(sets, left, right, weights).tolist()
    assert found == [weighted(sets[a], sets[b], weights) for a, b in zip(left, right, strict=True)]


FEATURES = np.concatenate((np.zeros(1, np.uint64), HASHES, colliding(1999)))
"""The last ones belong to the same place in a table."""


@pytest.mark.parametrize("compiled", [True, False])
@given(
    sets=st.lists(st.sets(st.integers(0, 40) | st.integers(290, 340), max_size=30), min_size=1, max_size=6),
    data=st.data(),
)
def test_features_that_many_pairs_share(sets: list[set[int]], compiled: bool, data: st.DataObject) -> None:
    """Pairs in any order, those with the same text on the left in a row or not; the same sets several times."""
    places = st.integers(0, len(sets) - 1)
    pairs = data.draw(st.lists(st.tuples(places, places), min_size=1, max_size=40))
    with in_python() if not compiled else pytest.MonkeyPatch.context():
        made = FeatureSets([np.sort(FEATURES[sorted(one)]) for one in sets])
        for some in (pairs, sorted(pairs), []):
            left, right = np.array(some, np.intp).reshape(-1, 2).T
            assert made.resemblances(left, right).tolist() == [set_resemblance(sets[a], sets[b]) for a, b in some]


def test_more_features_than_have_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formulas, "_MAX_DISTINCT", 3)
    with in_python():
        FeatureSets([FEATURES[:3], FEATURES[:2]])
        with pytest.raises(InputError, match="4 different features are too many to compare at once"):
            FeatureSets([FEATURES[:3], FEATURES[3:4]])


def test_features_that_collide() -> None:
    """Some do not matter, with too many the table is given up."""
    for features, distinct in ((HASHES, 300), (FEATURES[:350], 350), (FEATURES, -1), (FEATURES[:0], 0)):
        numbers = np.full(2 * len(features), -1, np.int32)
        assert kernel().numbered(np.concatenate((features, features[::-1])), numbers) == distinct
        if distinct >= 0:
            assert numbers.tolist() == [*range(distinct), *reversed(range(distinct))]
    same = resemblances([FEATURES, FEATURES[301:]], np.zeros(50, np.intp), np.ones(50, np.intp))
    assert same.tolist() == [(len(FEATURES) - 301) / len(FEATURES)] * 50


# What callers never send


SIZES = {"totals": 2, "distances": 1, "common": 1}


def run(name: str, words: U64, bounds: object, left: object, right: object, out: object) -> object:
    more = (3,) if name == "totals" else ()
    return getattr(kernel(), name)(words, bounds, left, right, out, *more)


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize(
    ("bounds", "left", "right"),
    [
        pytest.param([0, 5, 9], [0], [1], id="beyond the words"),
        pytest.param([0, 5, 4], [0], [1], id="backwards"),
        pytest.param([-1, 4, 8], [0], [1], id="before the words"),
        pytest.param([0, 4, 8], [0], [2], id="no such text"),
        pytest.param([0, 4, 8], [-1], [1], id="a negative text"),
        pytest.param([0, 4, 8], [2**62], [1], id="a great number"),
        pytest.param([], [0], [0], id="no bounds"),
        pytest.param([0], [0], [0], id="no texts"),
        pytest.param([0, 4, 8], [0], [0, 1], id="sides of different lengths"),
    ],
)
def test_arrays_that_do_not_fit(name: str, bounds: list[int], left: list[int], right: list[int]) -> None:
    words, out = HASHES[:8].copy(), np.zeros((len(left), SIZES[name]), np.int64)
    with pytest.raises(ValueError, match="do not fit"):
        run(name, words, np.array(bounds, np.int64), np.array(left, np.int64), np.array(right, np.int64), out)


@pytest.mark.parametrize("name", SIZES)
def test_numbers_of_another_size(name: str) -> None:
    words, bounds, zero = HASHES[:8].copy(), np.array([0, 4, 8]), np.zeros(1, np.int64)
    good = np.zeros((1, SIZES[name]), np.int64)
    run(name, words, bounds, zero, zero, good)
    octets = words.view(np.uint8)
    refused = partial(pytest.raises, ValueError, match="do not fit")
    with refused():
        run(name, words, bounds, zero, zero, np.zeros(3, np.int64))
    with refused():
        run(name, octets[:63], bounds, zero, zero, good)
    with refused():
        run(name, octets[3:59], np.array([0, 3, 7]), zero, zero, good)
    with refused():
        run(name, words, bounds, np.zeros(1, np.int32), np.zeros(1, np.int32), good)


def test_tiles_of_other_things() -> None:
    words = HASHES[:8].copy()
    for a, minimum in ((words, 0), (words, -5), (words.view(np.uint8)[:9], 1), (words.view(np.uint8)[1:9], 1)):
        with pytest.raises(ValueError, match="do not fit"):
            kernel().tiles(a, words, minimum)
    with pytest.raises(TypeError):
        kernel().tiles("text", words, 1)
    with pytest.raises(OverflowError):
        kernel().tiles(words, words, 2**64)


@given(st.lists(st.integers(0, 3), max_size=30), st.lists(st.integers(0, 3), max_size=30))
def test_features_that_are_not_sorted(one: list[int], other: list[int]) -> None:
    """Anything is found, but not more than there is."""
    words, count = text([*one, *other]), np.zeros(1, np.int64)
    bounds, zero = np.array([0, len(one), len(one) + len(other)]), np.zeros(1, np.int64)
    found = np.frombuffer(kernel().common(words, bounds, zero, zero + 1, count), np.int64)
    assert len(found) == count[0] <= min(len(one), len(other))
    assert all(words[place] in words[bounds[1] :] for place in found.tolist())


def test_numbers_of_features_beyond_the_marks() -> None:
    """They do not count, and marks are taken back."""
    bounds, sides, marks = np.array([0, 4, 8]), np.array([0, 1, 0]), np.zeros(5, np.uint8)
    features, counts = np.array([0, 1, 2, 7, 1, 2, -3, 5], np.int32), np.zeros(3, np.int64)
    kernel().shared(features, bounds, sides, sides[::-1].copy(), marks, counts)
    assert counts.tolist() == [3, 2, 3]
    kernel().shared(features, bounds, sides, np.array([1, 0, 1]), marks, counts)
    assert counts.tolist() == [2, 2, 2]
    assert not marks.any()


def test_negative_numbers_of_features_with_very_many_marks() -> None:
    """The array takes no memory as long as nothing is written into it."""
    marks, first, counts = np.zeros(2**31 + 16, np.uint8), np.zeros(2, np.int64), np.zeros(2, np.int64)
    kernel().shared(np.array([-(2**31), 3], np.int32), np.array([0, 2]), first, first, marks, counts)
    assert counts.tolist() == [2, 2]
    assert not marks[2**31 - 8 :].any()
    assert not marks[:8].any()


@pytest.mark.parametrize(
    ("bounds", "right"),
    [
        pytest.param([0, 4, 9], [0, 1], id="beyond the features"),
        pytest.param([0, 5, 4], [0, 1], id="backwards"),
        pytest.param([0, 4], [0, 1], id="no such text"),
        pytest.param([0, 4, 8], [0, 2], id="a great number"),
        pytest.param([0, 4, 8], [0, -1], id="a negative text"),
        pytest.param([0, 4, 8], [0, 0, 0], id="sides of different lengths"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_numbered_features_of_texts_that_do_not_exist(bounds: list[int], right: list[int], turned: bool) -> None:
    """On either side: marks are taken back."""
    sides = [np.zeros(2, np.int64), np.array(right, np.int64)]
    marks, counts = np.zeros(5, np.uint8), np.zeros(2, np.int64)
    features = np.array([0, 1, 2, 3, 1, 2, 3, 4], np.int32)
    with pytest.raises(ValueError, match="do not fit"):
        kernel().shared(features, np.array(bounds), *(reversed(sides) if turned else sides), marks, counts)
    assert not marks.any()


def test_numbers_of_features_of_another_size() -> None:
    bounds, sides, marks, counts = np.array([0, 1, 2]), np.array([0, 1]), np.zeros(2, np.uint8), np.zeros(2, np.int64)
    octets = np.zeros(9, np.uint8)
    refused = partial(pytest.raises, ValueError, match="do not fit")
    kernel().shared(octets[:8], bounds, sides, sides, marks, counts)
    for wrong in (octets[:7], octets[1:]):
        with refused():
            kernel().shared(wrong, bounds, sides, sides, marks, counts)
    with refused():
        kernel().shared(octets[:8], bounds, sides, sides, marks, counts[:1])
    assert kernel().numbered(HASHES[:2], octets[:8]) == 2
    for wrong in (octets[:7], octets[1:], octets[:4]):
        with refused():
            kernel().numbered(HASHES[:2], wrong)
    with refused():
        kernel().numbered(HASHES.view(np.uint8)[:9], np.zeros(1, np.int32))


def edited_text(choice: random.Random) -> tuple[str, str]:
    """A text of few different words, and the same with words removed, added, replaced and moved."""
    size = choice.choice((3, 8, 30, 200))
    words = [
        choice.choice(("the", "of", "Word", "")) + str(choice.randrange(size)) + choice.choice(("", "", "", ".", ";"))
        for _ in range(choice.randrange(choice.choice((5, 20, 45, 120))))
    ]
    other = list(words)
    for _ in range(choice.choice((0, 1, 3, 10))):
        place, count = choice.randrange(len(other) + 1), choice.choice((1, 1, 2, 5, 40))
        part = other[place : place + count]
        del other[place : place + count]
        kind = choice.randrange(4)
        if kind == 1:
            other[place:place] = [f"Word{choice.randrange(size)}" for _ in range(count)]
        elif kind == 2:
            other[place:place] = part[::-1]
        elif kind == 3:
            place = choice.randrange(len(other) + 1)
            other[place:place] = part
    return " ".join(words), " ".join(other)


@given(st.integers(0, 2**32))
def test_changes_of_tokens(seed: int) -> None:
    one, other = map(fact_tokens, edited_text(random.Random(seed)))
    found = token_changes(one, other)
    assert kernel().changes(one.keys, other.keys, one.flags, other.flags) is not None
    with in_python():
        assert token_changes(one, other) == found


# Ordinary words.

WRITTEN = """
    may May MAY sun Sun mar dec Mai
    a the second five hundred half million won can't doesn't cannot March Mon Sat No EUR USD iPhone PDFs
    PDf ABcd km/h m/s http:// https://a.b/c www. www.a.org a@b.org a.b+c@d-e.fr a_b _x x.y km m w http A12
    A-12 v2 v1.2.3 B2B naïve Straße größer Äpfel Москва 東京 3億円 \uff15 10 1,000 2026-03-03 7:30 +1 (555 (c) -5
    \u22125 $ € ° % © 24x85 ½ “so” don\u2019t e\u0301 \u0130 \u017f \U0001f600 \ud800 \x00 \x1c \u2013 \u2014
    … © "q" and/or x-y x-5 x- -- . , ; : ( ) @ / - + _ '
    C++ C++11 C# J++ A+ AA- A- AB\u2212 O+b <=5 >= > =< =>$5 ≥ ≤ ✓ ✗☐ ★★☆ ☆ ▲ ▼5 ‰ ¢ < = # x+ cm² \u2009 \u3000
"""
PIECES = st.sampled_from(WRITTEN.split()) | st.text(max_size=4)
NUMBERED = """
    0 1 7 12 20 31 007 123 1998 2010 12345 1.5 ½ 1/2 5km 1st 90s x am pm a.m. uhr o'clock of and half a dozen million
    days EUR cents kg per pro / - % " ( # : May 3) A12 555 1234567 \u00a0 Anne
"""
NUMBERS = st.sampled_from(NUMBERED.split()) | st.sampled_from(sorted(AFTER_NUMBERS))
GAPS = st.sampled_from(
    ["", " ", " ", " ", "\n", "\n\n", ". ", ", ", "; ", ") ", ": ", " - ", "  ", "\t", ".", ",", " / ", " " * 22]
)


def check_words(text: str) -> Tokens:
    found = scan(text)
    with in_python():
        assert scan(text) == found
    return found


@given(st.lists(st.tuples(PIECES, st.sampled_from(["", "", " ", " ", "\n", ", ", ". ", "\u00a0"])), max_size=12))
def test_ordinary_words(pieces: list[tuple[str, str]]) -> None:
    check_words("".join(piece + blank for piece, blank in pieces))


@given(st.lists(st.tuples(NUMBERS, GAPS), max_size=12))
def test_ordinary_numbers(pieces: list[tuple[str, str]]) -> None:
    check_words("".join(piece + blank for piece, blank in pieces))


@pytest.mark.parametrize("after", [". Redistributions", " contributors", ", 1999", ";", ")", "", " \n\n May"])
def test_numbers_that_stand_alone_are_read_in_c(after: str) -> None:
    text = f"in 1998{after}"
    keys: list[str] = []
    places, kinds = (array("q"), array("q")), dict[int, FactKind]()
    kernel().words(text.encode("utf-32-le"), 0, *FOR_KERNEL, keys, *places, kinds, {})
    assert keys[:2] == ["in", "n:1998"]
    assert kinds[1] is FactKind.DATE
    check_words(text)


LANGUAGES = """
    Kierownik kupił 3 lutego pięć książek za 45,90 zł. Новый мост длиной 1,5 км открыли 12 марта 2026 года. A ponte
    não custou € 3 milhões, nem 2! Το σπίτι κοστίζει 5.000 €. השיעור עולה 50 ₪. بلغ الطول ٣ كم. मूल्य ₹ ५०० है। 新桥长
    1.5公里，花了3億5千万円。 새 다리는 2026년 3월 12일 1.5만 명이 봤다. Cầu dài năm trăm mét. Dağıtım 5 ₺, İzmir'de.
    Skrevet i C++, ikke i C#: ≥ 5 %, ✓ A+ og ★★★☆☆. Straßenbahn, naïve, Ångström, O’Neill, l’été, d'août, e‐mail.
"""


def test_words_of_several_languages() -> None:
    assert len(check_words(LANGUAGES)) == 82
    for seed in range(0, 300, 20):
        check_words(letters(seed).a)


def test_ordinary_words_of_long_texts() -> None:
    assert len(check_words("word.other-" * 5000)) == 10_000
    assert check_words("a" * 63 + " " + "b" * 64 + " " + "c" * 65).ends.tolist() == [63, 128, 194]
    assert check_words("word.other-" * 500 + "x@example.org").keys == ["@:" + "word.other-" * 500 + "x@example.org"]


def test_ordinary_words_need_a_place_in_a_text() -> None:
    with pytest.raises(ValueError, match="place"):
        kernel().words(b"", -1, *FOR_KERNEL, [], array("q"), array("q"), {}, {})
    assert kernel().words(b"abc", 0, *FOR_KERNEL, [], array("q"), array("q"), {}, {}) == 0


def test_ordinary_words_need_arrays_for_their_places() -> None:
    text = "word".encode("utf-32-le")
    with pytest.raises(AttributeError, match="frombytes"):
        kernel().words(text, 0, *FOR_KERNEL, [], [], [], {}, {})


CAPITALS = """
    a I The MIT B Dr Ing Straße É ÉÉ Éa éb \u0130 \u0131 № Customer CAPS 5 $5 東京 can't \ud800 \u01c5
"""
CAPITALISED = st.sampled_from([*CAPITALS.split(), *WRITTEN.split()])
BETWEEN = st.sampled_from(
    ["", " ", ": ", ":\u00a0\t", ":", "\n", ". ", ".-", ".\u00a0", ".\n", "-- ", " - ", "… ", "•", "; a "]
)


@given(st.lists(st.tuples(CAPITALISED, BETWEEN), max_size=30), st.integers(0, 20))
def test_flags_of_tokens(pieces: list[tuple[str, str]], title: int) -> None:
    text = "".join(word + between for word, between in pieces)
    tokens = scan(text)
    found = flags_of(text, tokens, min(title, len(tokens)))
    with in_python():
        assert flags_of(text, tokens, min(title, len(tokens))).tolist() == found.tolist()


def test_flags_need_tokens_of_the_text() -> None:
    def flags(text: str, keys: list[str], starts: list[int], ends: list[int], number: int) -> list[int]:
        out = np.zeros(len(keys), np.uint8)
        places = array("q", starts), array("q", ends)
        lists = frozenset(["a"]), frozenset(["dr"])
        kernel().flags(text.encode("utf-32-le"), keys, *places, {number: FactKind.NUMBER}, *lists, out)
        return list(map(int, out))

    assert flags("a 5 B", ["a", "5", "b"], [0, 2, 4], [1, 3, 5], 1) == [5, 0, 18]
    for starts, ends, number in (
        ([0, 2, 4], [1, 3, 6], 1),
        ([-1, 2, 4], [1, 3, 5], 1),
        ([0, 2, 4], [1, 2, 5], 1),
        ([0, 2], [1, 3], 1),
        ([0, 2, 4], [1, 3, 5], 3),
        ([0, 2, 4], [1, 3, 5], -1),
    ):
        with pytest.raises(ValueError, match="fit together"):
            flags("a 5 B", ["a", "5", "b"], starts, ends, number)


def test_changes_of_texts_with_many_repetitions() -> None:
    """They are refused, and found in Python."""
    one, other = fact_tokens("a b " * 1500 + "c"), fact_tokens("d " + "b a " * 1500)
    assert kernel().changes(one.keys, other.keys, one.flags, other.flags) is None
    assert token_changes(one, other)


def test_changes_need_arrays_that_fit() -> None:
    one = fact_tokens("a text of words")
    with pytest.raises(ValueError, match="fit together"):
        kernel().changes(one.keys, one.keys, one.flags[:-1], one.flags)
