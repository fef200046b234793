"""The worked examples of "What is a near-dupe, really?" (Bill Dimm), to the percent that it prints."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from example_texts import EXAMPLES, LEFT_1, LEFT_2, LEFT_3, LEFT_4, RIGHT_1, RIGHT_2, RIGHT_3, RIGHT_4
from unit_tools import shingle_set, words

from es_neardupe.keys.fingerprint import signatures
from es_neardupe.keys.minhash import estimate
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.shingles import features, token_hashes
from es_neardupe.keys.text import tokenize
from es_neardupe.options import Matching, MeasureName
from es_neardupe.similarity.alignment import Alignment, align, information, literal
from es_neardupe.similarity.formulas import containment, containment_longer, jaccard, resemblance
from es_neardupe.similarity.measure import Measure

LITERAL, INFORMATION = Matching.LITERAL, Matching.INFORMATION
DOCS = Path(__file__).parents[3] / "docs"


def aligned(a: str, b: str, matching: Matching = LITERAL, minimum: int = 5) -> Alignment:
    one, other = token_hashes([a, b])
    return align(one, other, matching, minimum)


def shingles_alike(a: str, b: str, size: int = 5) -> float:
    one, other = features([a, b], size)
    return resemblance(one, other)


def percent(value: float) -> str:
    """As the article prints it."""
    return f"{value:.0%}"


def passages(a: str, b: str, matching: Matching = LITERAL) -> list[str]:
    """The common passages, as written in the first text."""
    said = tokenize(a)
    return [" ".join(said[i : i + size]) for i, _, size in aligned(a, b, matching).blocks.tolist()]


# Example 1: two long passages, a corrected typing error between them


@pytest.mark.parametrize("matching", Matching)
def test_example_1(matching: Matching) -> None:
    found = aligned(LEFT_1, RIGHT_1, matching)
    assert (found.longer, found.shorter, found.common, found.chunks) == (100, 97, 85, 2)
    assert percent(containment_longer(found)) == "85%"
    assert percent(jaccard(found)) == "76%"
    assert percent(shingles_alike(LEFT_1, RIGHT_1)) == "69%"


def test_example_1_has_one_word_between_its_passages() -> None:
    (i, j, size), (i_next, j_next, rest) = aligned(LEFT_1, RIGHT_1).blocks.tolist()
    assert (i_next, j_next) == (i + size + 1, j + size + 1)
    assert size + rest == 85
    assert (tokenize(LEFT_1)[i + size], tokenize(RIGHT_1)[j + size]) == ("too", "to")


def test_example_1_shingles() -> None:
    said = tokenize(LEFT_1)
    shingles = [" ".join(said[k : k + 5]) for k in range(len(said) - 4)]
    assert len(shingles) == len(features([LEFT_1], 5)[0]) == 93
    assert shingles[:4] == [
        "it is important to use",
        "is important to use available",
        "important to use available technologies",
        "to use available technologies to",
    ]
    assert shingles[91:] == ["llp and an expert on", "and an expert on ediscovery"]
    only_right = shingle_set(RIGHT_1) - shingle_set(LEFT_1)
    assert ("six", "years", "of", "experience", "in") in only_right


def test_who_has_read_either_text_knows_that_share_of_the_other() -> None:
    found = aligned(LEFT_1, RIGHT_1)
    assert found.common / found.shorter >= found.common / found.longer == containment_longer(found)
    assert percent(containment(found)) == "88%"


def test_length_of_the_shorter_text_changes_nothing_over_the_longer() -> None:
    """Three texts with the same passage in common; only S_J sees that one of the shorter has more of its own."""
    longest, short, middle = f"{words(0, 80)} {words(0, 20, 'x')}", words(0, 80), f"{words(0, 80)} {words(0, 15, 'y')}"
    one, other = aligned(longest, short), aligned(longest, middle)
    assert containment_longer(one) == containment_longer(other) == 0.8
    assert jaccard(one) == 0.8 > jaccard(other) == 80 / 115


# Example 2: the same text, pasted twice


def test_example_2() -> None:
    by_words, by_content = aligned(LEFT_2, RIGHT_2), aligned(LEFT_2, RIGHT_2, INFORMATION)
    assert by_words.words == (16, 32)
    assert (percent(jaccard(by_words)), percent(containment_longer(by_words))) == ("50%", "50%")
    assert (percent(jaccard(by_content)), percent(containment_longer(by_content))) == ("100%", "100%")
    assert by_content.words == (16, 16)
    assert shingles_alike(LEFT_2, RIGHT_2) == 12 / 16 == 0.75


def test_example_2_shingles_across_the_seam() -> None:
    left, right = shingle_set(LEFT_2), shingle_set(RIGHT_2)
    assert (len(left), len(right), len(right - left)) == (12, 16, 4)
    assert ("human", "reviewers", "predictive", "coding", "uses") in right - left
    assert left < right


def test_longer_repeated_text_resembles_itself_more() -> None:
    found = [shingles_alike(words(0, size), f"{words(0, size)} {words(0, size)}") for size in (8, 16, 100, 1000)]
    assert found == sorted(found)
    assert found == [(size - 4) / size for size in (8, 16, 100, 1000)]


def test_a_heading_on_every_page() -> None:
    """The case in which literal and information matching differ: a report that repeats its heading."""
    heading = words(0, 10, "h")
    pages = [f"{heading} {words(30 * page, 30)}" for page in range(20)]
    once = f"{heading} {words(0, 600)}"
    assert jaccard(aligned(once, " ".join(pages))) < 0.77
    assert jaccard(aligned(once, " ".join(pages), INFORMATION)) == 1


# Example 3: two passages that overlap


def test_example_3() -> None:
    by_words, by_content = aligned(LEFT_3, RIGHT_3), aligned(LEFT_3, RIGHT_3, INFORMATION)
    assert (by_words.longer, by_words.shorter, by_words.common, by_words.chunks) == (15, 9, 5, 1)
    assert passages(LEFT_3, RIGHT_3) == ["i will need money and"]
    assert by_content.common == 9
    assert passages(LEFT_3, RIGHT_3, INFORMATION) == ["i will need money and", "and cigars for the mayor"]
    left, right = shingle_set(LEFT_3), shingle_set(RIGHT_3)
    assert (len(left), len(right), len(left & right)) == (5, 11, 2)
    assert shingles_alike(LEFT_3, RIGHT_3) == 2 / 14
    assert percent(2 / 14) == "14%"


# Example 4: a short mail and its reply


@pytest.mark.parametrize("matching", Matching)
def test_example_4(matching: Matching) -> None:
    found = aligned(LEFT_4, RIGHT_4, matching)
    assert (found.shorter, found.longer) == (5, 6)
    assert jaccard(found) == 5 / 6
    assert percent(jaccard(found)) == "83%"
    assert shingles_alike(LEFT_4, RIGHT_4) == 1 / 2


# What a passage adds


@pytest.mark.parametrize(
    ("size", "in_jaccard", "in_resemblance"), [(3, 0, 0), (4, 0, 0), (5, 5, 1), (6, 6, 2), (7, 7, 3), (100, 100, 96)]
)
def test_what_a_passage_adds_to_the_numerators(size: int, in_jaccard: int, in_resemblance: int) -> None:
    a = f"{words(0, 10, 'x')} {words(0, size)} {words(10, 10, 'x')}"
    b = f"{words(0, 12, 'y')} {words(0, size)} {words(12, 9, 'y')}"
    assert aligned(a, b).common == aligned(a, b, INFORMATION).common == in_jaccard
    assert len(shingle_set(a) & shingle_set(b)) == in_resemblance
    one, other = features([a, b], 5)
    assert len(np.intersect1d(one, other)) == in_resemblance


@pytest.mark.parametrize("number", [1, 4])
def test_the_relation_holds_for_the_examples_without_repeats(number: int) -> None:
    a, b = EXAMPLES[number]
    found = aligned(a, b)
    c, n, whole = found.common, found.chunks, found.longer + found.shorter - found.common
    assert shingles_alike(a, b) == (c - 4 * n) / (whole + (n - 2) * 4)
    bracket = (1 - 4 * n / c) / (1 + (n - 2) * 4 / whole)
    assert shingles_alike(a, b) == pytest.approx(jaccard(found) * bracket)
    assert bracket <= 1


@pytest.mark.parametrize("number", [2, 3])
def test_the_relation_does_not_hold_where_passages_repeat_or_overlap(number: int) -> None:
    a, b = EXAMPLES[number]
    found = aligned(a, b)
    c, n, whole = found.common, found.chunks, found.longer + found.shorter - found.common
    assert shingles_alike(a, b) > (c - 4 * n) / (whole + (n - 2) * 4)


def test_more_passages_for_as_many_common_words_are_fewer_shingles() -> None:
    """C stays 60, n grows: S_J is the same as long as L and S are, S_R falls."""
    found = []
    for n in (1, 2, 3, 4, 6):
        parts = [words(k * 60 // n, 60 // n) for k in range(n)]
        texts = [" ".join(f"{part} {words(10 * k, 10, mark)}" for k, part in enumerate(parts)) for mark in ("x", "y")]
        a, b = (f"{text} {words(900, 60 - 10 * n, mark)}" for text, mark in zip(texts, "xy", strict=True))
        assert (aligned(a, b).common, aligned(a, b).chunks) == (60, n)
        assert jaccard(aligned(a, b)) == 60 / 180
        found.append(shingles_alike(a, b))
    assert all(one > other for one, other in pairwise(found))


# The estimate


def agreeing(count: int, slots: int) -> tuple[bytes, bytes]:
    return bytes(slots), bytes(count) + b"\1" * (slots - count)


def test_interval_of_200_samples() -> None:
    """ "An estimate of 69 % means that the value is really somewhere between 62 % and 76 %"; at most 7 % off."""
    found = estimate(*agreeing(139, 200))
    assert (percent(found.value), percent(found.low), percent(found.high)) == ("69%", "62%", "76%")
    for count in range(0, 201, 20):
        one = estimate(*agreeing(count, 200))
        assert (one.high - one.low) / 2 < 0.0745


@pytest.mark.parametrize("share", [0.3, 0.5, 0.69, 0.9])
def test_half_the_error_takes_four_times_the_samples(share: float) -> None:
    few, many = (estimate(*agreeing(round(share * slots), slots)) for slots in (200, 800))
    assert (few.high - few.low) / (many.high - many.low) == pytest.approx(2, rel=0.05)


def test_minimum_hashes_agree_as_often_as_shingles_are_shared() -> None:
    """12,800 slots of 100 seeds: S_R = 69 %, and 1 in 256 of the others by chance."""
    truth = shingles_alike(LEFT_1, RIGHT_1)
    equal = 0
    for seed in range(100):
        left, right = signatures([LEFT_1, RIGHT_1], Scheme(bands=16, rows=6, seed=seed))
        equal += int(np.count_nonzero(left == right))
    expected = truth + (1 - truth) / 256
    assert equal / 12_800 == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / 12_800))


def test_interval_holds_the_truth_of_example_1() -> None:
    truth = shingles_alike(LEFT_1, RIGHT_1)
    found = [
        estimate(*signatures([LEFT_1, RIGHT_1], Scheme(bands=16, rows=6, permutations=200, seed=seed)))
        for seed in range(200)
    ]
    assert sum(one.low <= truth <= one.high for one in found) >= 184  # 190 expected; 95 % is the promise


def test_repeated_shingles_change_nothing() -> None:
    """A text repeated three times has the same shingles as one repeated twice."""
    twice, thrice = (" ".join([LEFT_2] * times) for times in (2, 3))
    scheme = Scheme(bands=16, rows=6)
    one, other = features([twice, thrice], 5)
    assert one.tolist() == other.tolist()
    left, right = signatures([twice, thrice], scheme)
    assert left.tolist() == right.tolist()
    assert resemblance(one, other) == 1
    short, long = token_hashes([twice, thrice])
    assert literal(short, long).common == 32
    assert information(short, long).words == (16, 16)


def test_shingles_of_3000_words() -> None:
    assert len(features([words(0, 3000)], 5)[0]) == 2996


# The page about measures says the same


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading of docs/measures.md."""
    (below,) = re.findall(rf"^#+ {heading}\n(.*?)(?=^#|\Z)", (DOCS / "measures.md").read_text("utf-8"), re.M | re.S)
    found = re.findall(r"^\|.*\|$", below, re.M)[2:]
    assert found
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in found]


def test_documented_measures_of_the_examples() -> None:
    found = {}
    for name, *cells in rows("Results of all measures"):
        word, _, variant = name.replace("`", "").partition(", ")
        short, _, size = word.partition(" of ")
        matching = Matching(variant) if variant else LITERAL
        measure = Measure(MeasureName(short), matching, ngram=int(size[0]) if size else 1)
        found[name] = [percent(measure.score(*measure.prepare(EXAMPLES[number]))) for number in EXAMPLES]
        assert cells == found[name], name
    assert len(found) == 11


def test_documented_passages() -> None:
    for size, in_jaccard, in_resemblance in rows("Relations between measures"):
        one, other = (f"{words(0, int(size))} {end}" for end in ("x", "y"))
        assert aligned(one, other).common == int(in_jaccard)
        assert len(shingle_set(one) & shingle_set(other)) == int(in_resemblance)


def test_documented_intervals() -> None:
    shares = [0.5, 0.69, 0.8, 0.95]
    for slots, *cells in rows("Estimate"):
        found = [estimate(*agreeing(round(share * int(slots)), int(slots))) for share in shares]
        assert cells == [f"{percent(one.low)} to {percent(one.high)}" for one in found]


@pytest.mark.parametrize("number", EXAMPLES)
def test_pictures_show_the_examples(number: int) -> None:
    """Both texts, word by word, and one colour for each passage."""
    picture = ElementTree.parse(DOCS / "pictures" / f"example-{number}.svg").getroot()
    space = {"": "http://www.w3.org/2000/svg"}
    for side, text in zip(("left", "right"), EXAMPLES[number], strict=True):
        (group,) = picture.findall(f"./g[@id='{side}']", space)
        lines = [line.text or "" for line in group.findall("text", space) if line.get("class") != "head"]
        assert " ".join(lines).split() == text.split()
        colours = {one.get("class") for one in group.findall("rect", space)} - {"again"}
        assert len(colours) == aligned(*EXAMPLES[number], INFORMATION).chunks
    assert picture.findtext("title", namespaces=space)
