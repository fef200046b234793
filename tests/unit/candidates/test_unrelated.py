"""Unrelated texts that keys make meet."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from server_tools import words

from es_neardupe.candidates.unrelated import unrelated_candidates
from es_neardupe.index.settings import Settings
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.shingles import features
from es_neardupe.keys.unit import Unit


@pytest.mark.parametrize("scheme", [Scheme(bands=20, rows=1), Scheme(bands=40, rows=3, shingle=4, unit=Unit.CHARACTER)])
def test_the_expected_number_is_what_happens(scheme: Scheme) -> None:
    """Texts of the same few hundred words in any order; keys are those of documents."""
    frequent = words("frequent", 300)
    texts = [
        " ".join(
            words((row, place), 1)[0] if place % 3 else frequent[(row * 7 + place * place) % 300]
            for place in range(150)
        )
        for row in range(150)
    ]
    found = unrelated_candidates(scheme, 0.8, features(texts, scheme.shingle, scheme.unit))
    keys = [set(one.bands) for one in fingerprints(texts, scheme)]
    pairs = list(combinations(keys, 2))
    met = sum(bool(one & other) for one, other in pairs) / len(pairs)
    assert found.documents == len(texts)
    assert found.of_a_million == pytest.approx(1e6 * met, rel=0.15)


@pytest.mark.parametrize(
    ("settings", "most", "too_many"),
    [
        ({}, 1, False),
        ({"preset": "reader"}, 1, False),
        ({"bands": 42, "rows": 1}, 160_000, True),
        ({"shingle": "5c", "threshold": 0.323}, 300_000, True),
        ({"shingle": "9c", "threshold": 0.5}, 1_000, False),
    ],
)
def test_texts_of_usual_lengths(settings: dict[str, Any], most: float, too_many: bool) -> None:
    chosen = Settings.chosen(("text",), **settings)
    found = unrelated_candidates(chosen.scheme, chosen.threshold)
    assert (found.documents, found.too_many) == (0, too_many)
    assert most / 1000 < found.of_a_million < most or found.of_a_million < 1 == most


def test_the_order_of_the_texts_changes_no_digit() -> None:
    """Servers return random documents in any order."""
    texts = [" ".join(words(("order", row), 10 + row) + words("shared", row % 7 + 3)) for row in range(40)]
    scheme = Scheme(bands=35, rows=3)
    found = features(texts, scheme.shingle, scheme.unit)
    numbers = {unrelated_candidates(scheme, 0.5, found[turn:] + found[:turn]) for turn in range(40)}
    assert len(numbers) == 1
