"""Texts that are hard to group, through the steps in memory: mass copies, form letters, chains, dense real texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from conftest import read_jsonl
from unit_tools import columns, words

from es_neardupe.candidates.fingerprints import classes_of
from es_neardupe.candidates.join import CandidatePairs, find_candidates
from es_neardupe.columns import References
from es_neardupe.groups.linkage import chain
from es_neardupe.groups.stars import Matches, star
from es_neardupe.keys.bands import band_keys
from es_neardupe.keys.fingerprint import signatures
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.shingles import features
from es_neardupe.keys.text import packed_hashes
from es_neardupe.options import MeasureName
from es_neardupe.records import FingerprintColumns, TextClasses
from es_neardupe.similarity import formulas

Ints = Any


class Compared(NamedTuple):
    """Candidates of texts in the order of principals, and which of them match."""

    candidates: CandidatePairs
    similarity: Any
    matches: Any

    @property
    def left(self) -> Ints:
        return self.candidates.left[self.matches]

    @property
    def values(self) -> Ints:
        return self.similarity[self.matches]

    @property
    def right(self) -> Ints:
        return self.candidates.right[self.matches]


def keys_of(texts: Sequence[str], scheme: Scheme) -> tuple[Any, Any]:
    """Band keys as in the corpus, and signatures."""
    slots = signatures(texts, scheme)
    joined = "".join(key for keys in band_keys(slots, scheme.bands, scheme.rows) for key in keys)
    return np.frombuffer(joined.encode("latin-1"), np.uint64).reshape(len(texts), scheme.bands), slots


def compared(texts: Sequence[str], minimum: float, max_bucket: int) -> Compared:
    """The steps of `group` between reading and writing."""
    keys, slots = keys_of(texts, Scheme.for_threshold(minimum))
    found = find_candidates(keys, max_bucket, lambda rows: slots[rows])
    similarity = formulas.resemblances(features(texts, 5), found.left.astype(np.intp), found.right.astype(np.intp))
    return Compared(found, similarity, similarity >= minimum)


def stars(size: int, left: Ints, right: Ints, similarity: Ints) -> Ints:
    return star(Matches(left, right, similarity), np.ones(size, np.int32), MeasureName.RESEMBLANCE)


def corpus_of(keys: Any, content: Sequence[str]) -> FingerprintColumns:
    """A corpus of documents with these keys; ids are their numbers."""
    size = len(keys)
    references = References.of(("i", f"{row:06}", None) for row in range(size))
    tokens = np.full(size, 60, np.int64)
    return columns(size, references=references, content=packed_hashes(content), tokens=tokens, keys=keys)


@pytest.mark.parametrize("copies", [True, False])
def test_fifty_thousand_copies(copies: bool) -> None:
    """One class, and nothing to compare. If copies must be compared, a linear number of pairs makes one star."""
    size, maximum = 50_000, 4
    keys, slots = keys_of([words(0, 60)], Scheme.for_threshold(0.8))
    classes: TextClasses = classes_of(corpus_of(np.repeat(keys, size, axis=0), ["0" * 32] * size), copies)
    assert len(classes) == (1 if copies else size)
    assert sum(map(len, classes)) == size
    first = [rows[0] for rows in classes]
    found = find_candidates(np.repeat(keys[:, :4], size, axis=0)[first], maximum, lambda rows: slots[[0] * len(rows)])
    assert len(found) <= 6 * size * (not copies)
    assert set(stars(len(classes), found.left, found.right, np.ones(len(found))).tolist()) == {0}
    assert found.skipped == len(classes) * (len(classes) - 1) // 2 - len(found)


def form_letters(number: int) -> list[str]:
    """Letters that differ in one word, most of them in the same place."""
    base = words(0, 100).split()
    places = (50 if row % 2 else 5 + row % 90 for row in range(number))
    return [" ".join([*base[:place], f"name{row}", *base[place + 1 :]]) for row, place in enumerate(places)]


@pytest.mark.parametrize("number", [5_000, pytest.param(20_000, marks=pytest.mark.long)])
def test_form_letters_are_one_group_at_linear_cost(number: int) -> None:
    """Millions of pairs: at most 20 for each key and letter are compared, and all but a few are in one group."""
    letters, maximum = form_letters(number), 20
    found = compared(letters, 0.8, maximum)
    keys = Scheme.for_threshold(0.8).bands
    assert len(found.candidates) < maximum * keys * len(letters)
    assert len(found.candidates) < 100 * len(letters)
    pairs = number * (number - 1) // 2
    assert 0.9 * pairs < found.candidates.skipped + len(found.candidates) <= pairs
    principals = stars(len(letters), found.left, found.right, found.values)
    assert np.bincount(principals).max() >= 0.998 * len(letters)


def test_a_chain_of_neighbours() -> None:
    """1,000 texts, each 90 % similar to the next: a star has only similar texts, a chain has all of them."""
    shift, length = 10, 194
    texts = [words(shift * row, length) for row in range(1000)]
    near = formulas.resemblance(*features(texts[:2], 5))
    assert near == pytest.approx(0.9, abs=0.005)
    found = compared(texts, 0.8, 200)
    every = features(texts, 5)
    principals = stars(1000, found.left, found.right, found.values)
    for row, principal in enumerate(principals.tolist()):
        assert formulas.resemblance(every[row], every[principal]) >= 0.8
        assert abs(row - principal) <= 2
    assert len(set(principals.tolist())) > 200
    assert set(chain(1000, found.left, found.right).tolist()) == {0}


@pytest.mark.parametrize(
    ("every", "cluster", "groups", "pairs"),
    [(2, 1_000, 1_331, 867_959), pytest.param(1, 2_400, 2_058, 3_456_210, marks=pytest.mark.long)],
)
def test_dense_real_texts(every: int, cluster: int, groups: int, pairs: int) -> None:
    """Licence texts at 0.5, or every second one: the limit on buckets must not tear groups apart. ``groups`` and
    ``pairs`` are the numbers if all candidates are compared."""
    texts = sorted({one["text"] for one in read_jsonl("licence_texts/licence_texts.jsonl.xz")}, key=_order)
    texts = texts[::every]
    found = compared(texts, 0.5, 20)
    linked = chain(len(texts), found.left, found.right)
    assert found.candidates.skipped > pairs / 2
    assert np.bincount(linked).max() >= cluster
    principals = stars(len(texts), found.left, found.right, found.values)
    assert groups - 15 <= len(set(principals.tolist())) <= groups + 35
    assert len(found.candidates) < pairs / 2


def _order(text: str) -> tuple[int, str]:
    return -len(text.split()), text
