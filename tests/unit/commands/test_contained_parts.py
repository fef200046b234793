"""Sampled keys: estimates, choice of keys, batches, and the upper bound that avoids comparisons."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from server_tools import words

from es_neardupe.commands.contained.steps import _batches, _used
from es_neardupe.commands.contained.steps import detection as _detection
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.keys.intervals import exact_share
from es_neardupe.keys.prepare import preparation
from es_neardupe.keys.prepare.preparation import Preparation
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.shingles import token_hashes
from es_neardupe.options import Clean, Matching
from es_neardupe.similarity.alignment import literal
from es_neardupe.similarity.comparison import Containments, Side, WordsCompared


def test_matched_keys_estimate_how_much_of_a_text_another_contains() -> None:
    """A document has 70 % of each of 400 texts: the mean is right, and 95 % of the intervals contain the true value."""
    scheme = Scheme(bands=16, rows=6, sample_mod=8)
    held, estimates = 0.7, []
    for number in range(400):
        text = words(number, 304)
        document = text[: 4 + round(300 * held)]
        one, other = fingerprints([" ".join(text), " ".join(document)], scheme)
        keys, theirs = set(one.samples or ()), set(other.samples or ())
        assert theirs <= keys
        estimates.append(exact_share(len(theirs), len(keys)))
    assert np.mean([one.value for one in estimates]) == pytest.approx(held, abs=0.02)
    assert np.mean([one.low <= held <= one.high for one in estimates]) >= 0.94


@pytest.mark.parametrize("mod", [1, 2, 3, 8, 64])
def test_one_in_mod_is_sampled(mod: int) -> None:
    """As uniformly as random numbers, for any modulus: within 5 standard deviations."""
    (made,) = fingerprints([" ".join(words(mod, 20_004))], Scheme(bands=16, rows=6, sample_mod=mod))
    keys = made.samples or ()
    share = 1 / mod
    assert abs(len(keys) - made.features * share) <= 5 * (made.features * share * (1 - share)) ** 0.5
    assert len(set(keys)) == len(keys)
    used = Counter("".join(keys))
    assert len(used) == 64
    assert max(used.values()) < 1.5 * min(used.values()) + 50


def test_detection_is_a_lower_bound() -> None:
    """Of texts that share exactly half of their shingles, at least this fraction shares a key."""
    scheme = Scheme(bands=16, rows=6, shingle=1, sample_mod=10)
    found, promised = [], []
    for number in range(300):
        shared = [f"s{number}x{k}" for k in range(20)]
        probe = " ".join([*shared, *(f"p{number}x{k}" for k in range(20))])
        one, other = fingerprints([probe, " ".join(shared)], scheme)
        promised.append(_detection(0.5, len(one.samples or ()), 10).probability)
        found.append(bool(set(one.samples or ()) & set(other.samples or ())))
    assert np.mean(found) >= np.mean(promised) - 0.05
    assert _detection(0.5, 0, 10).probability == 0
    assert _detection(0.5, 3, 1).shingles == 1
    assert (1 - 1 / 10) ** _detection(0.5, 3, 10).shingles <= 0.01


FREQUENCIES = st.dictionaries(st.text("abc", min_size=1, max_size=4), st.integers(0, 30), min_size=1).map(Counter)


@given(FREQUENCIES, st.integers(1, 100))
def test_rare_keys_are_used_first(frequencies: Counter[str], postings: int) -> None:
    used = _used(frequencies, postings)
    left = [key for key in frequencies if frequencies[key] and key not in used]
    numbers = [frequencies[key] for key in used]
    assert numbers == sorted(numbers)
    assert all(numbers)
    assert bool(used) == any(frequencies.values())
    assert len(used) <= 1 or sum(numbers) <= postings
    for key in left:
        assert frequencies[key] >= max(numbers)
        assert sum(numbers) + min(frequencies[one] for one in left) > postings


@given(FREQUENCIES, st.integers(1, 60))
def test_no_search_is_asked_for_more_than_it_returns(frequencies: Counter[str], window: int) -> None:
    keys = _used(frequencies, 10_000)
    assume(keys)
    batches = list(_batches(keys, frequencies, window))
    assert [key for batch in batches for key in batch] == keys
    for batch in batches:
        assert len(batch) == 1 or sum(frequencies[key] for key in batch) <= window
    for one, after in pairwise(batches):
        assert sum(frequencies[key] for key in one) + frequencies[after[0]] > window


TEXTS = st.lists(st.sampled_from("abcd"), max_size=30).map(" ".join)


@given(TEXTS, TEXTS, st.integers(1, 4))
def test_texts_skipped_without_comparison_could_not_reach_the_minimum(probe: str, text: str, shingle: int) -> None:
    mine, theirs = token_hashes([probe, text])
    assume(len(mine) and len(theirs))
    comparing = Containments(Side.of("probe", probe), Matching.LITERAL, shingle, 0.5)
    found = literal(mine, theirs, shingle)
    assert comparing._upper_bound(theirs, min(len(mine), len(theirs))) >= max(
        found.common / size for size in found.words
    )


def test_a_hit_whose_places_take_long_has_no_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    probe, page = (" ".join(f"w{number}" for number in range(count)) for count in (20, 40))
    comparing = Containments(Side.of("probe", probe), Matching.LITERAL, 5, 0.5, WordsCompared(Preparation(Clean.HTML)))
    found = comparing.of(page)
    assert found is not None
    assert [(one.a, one.words) for one in found.passages] == [((0, len(probe)), 20)]
    monkeypatch.setattr(preparation, "_PLACED_WORDS", 30)
    long = comparing.of(page)
    assert long is not None
    assert (long.passages, long.excerpt, long.of_probe) == ((), found.excerpt, 1.0)
