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


def test_related_texts_are_not_unrelated() -> None:
    """Copies, and versions that are nearly as similar as the threshold, should meet."""
    texts = [" ".join(words(("single", row), 60)) for row in range(110)]
    copies = [texts[0], f"{texts[1]} and more", texts[2].rpartition(" ")[0]]
    versions = [" ".join(text.split()[:45] + words(("version", row), 15)) for row, text in enumerate(texts[50:55])]
    chosen = Settings(("text",))
    found = unrelated_candidates(chosen.scheme, chosen.threshold, features([*texts, *copies, *versions], 5))
    assert (found.documents, found.too_many, found.of_a_million < 1) == (112, False, True)


@pytest.mark.parametrize("count", [2, 5, 99])
def test_a_few_texts_do_not_decide(count: int) -> None:
    """Two versions among them would be many of a million pairs."""
    texts = [" ".join(words(("few", row), 60)) for row in range(count - 1)]
    texts.append(" ".join(texts[0].split()[:52] + words("version", 8)))
    chosen = Settings(("text",))
    found = unrelated_candidates(chosen.scheme, chosen.threshold, features(texts, 5))
    assert found == unrelated_candidates(chosen.scheme, chosen.threshold)


def test_the_order_of_the_texts_changes_no_digit() -> None:
    """Servers return random documents in any order."""
    texts = [" ".join(words(("order", row), 10 + row) + words("shared", row % 7 + 3)) for row in range(140)]
    scheme = Scheme(bands=35, rows=3)
    found = features(texts, scheme.shingle, scheme.unit)
    numbers = {unrelated_candidates(scheme, 0.5, found[turn:] + found[:turn]) for turn in range(0, 140, 4)}
    assert len(numbers) == 1


def test_boilerplate_is_the_cause_if_its_passages_are() -> None:
    """A disclaimer of 60 words below texts of 10 to 30 words, and frequent words in any order."""
    disclaimer, frequent = " ".join(words("disclaimer", 60)), words("frequent", 4)
    mails = [f"{' '.join(words(('mail', row), 10 + row % 20))} {disclaimer}" for row in range(150)]
    chosen = Settings.chosen(("text",), threshold=0.5)
    found = unrelated_candidates(chosen.scheme, 0.95, features(mails, 5))
    assert (found.too_many, found.boilerplate, found.documents) == (True, True, 150)
    noise = [" ".join(frequent[(row * 7 + place * place * row) % 4] for place in range(80)) for row in range(150)]
    one_row = Scheme(bands=20, rows=1, shingle=2)
    assert not unrelated_candidates(one_row, 0.8, features(noise, 2)).boilerplate
