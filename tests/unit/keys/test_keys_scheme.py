"""The scheme and the choice of bands."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from es_neardupe.errors import SettingsError
from es_neardupe.keys.scheme import Scheme, choose_bands
from es_neardupe.keys.unit import Unit, shingle_of, shingle_text


@pytest.mark.parametrize(
    ("threshold", "detection", "permutations", "expected"),
    [
        (0.8, 0.99, 128, (16, 6)),
        (0.5, 0.99, 128, (35, 3)),
        (1.0, 0.99, 128, (1, 32)),
        (1.0, 0.99, 8, (1, 8)),
        (0.05, 0.99, 128, (90, 1)),
    ],
)
def test_chosen_bands(threshold: float, detection: float, permutations: int, expected: tuple[int, int]) -> None:
    assert choose_bands(threshold, detection, permutations) == expected


@given(st.floats(0.05, 1), st.floats(0.01, 0.99), st.integers(8, 256))
def test_chosen_bands_reach_the_detection_and_no_fewer_do(
    threshold: float, detection: float, permutations: int
) -> None:
    assume(1 - (1 - threshold) ** min(128, permutations) >= detection)
    bands, rows = choose_bands(threshold, detection, permutations)
    scheme = Scheme(permutations=permutations, bands=bands, rows=rows)
    assert scheme == Scheme.for_threshold(threshold, detection, permutations=permutations)
    assert scheme.detection(threshold) >= detection
    assert 1 - (1 - threshold**rows) ** (bands - 1) < detection
    more = rows + 1
    if more <= min(32, permutations):
        assert 1 - (1 - threshold**more) ** min(128, permutations // more) < detection


@pytest.mark.parametrize("threshold", [0, -1, 1.01, float("nan")])
def test_threshold_out_of_range(threshold: float) -> None:
    with pytest.raises(SettingsError, match="threshold"):
        choose_bands(threshold, 0.99, 128)


@pytest.mark.parametrize("detection", [0, 1, 2, float("nan")])
def test_detection_out_of_range(detection: float) -> None:
    with pytest.raises(SettingsError, match="detection"):
        choose_bands(0.8, detection, 128)


def test_unreachable_threshold_names_the_lowest() -> None:
    with pytest.raises(SettingsError, match=r"lowest threshold they reach is 0\.0354$"):
        choose_bands(0.01, 0.99, 128)
    assert choose_bands(0.0354, 0.99, 128) == (128, 1)


def test_detection_is_the_curve() -> None:
    scheme = Scheme(bands=16, rows=6)
    assert scheme.detection(0.8) == pytest.approx(1 - (1 - 0.8**6) ** 16)
    assert (scheme.detection(0), scheme.detection(1)) == (0, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bands": 20, "rows": 8}, r"b\*r = 20 x 8 = 160 is over the 128 slots"),
        ({"bands": 0}, "bands must be 1 to 128, not 0"),
        ({"bands": 129, "rows": 1, "permutations": 256}, "bands must be 1 to 128"),
        ({"rows": 0}, "rows must be at least 1"),
        ({"shingle": 0}, "shingle must be 1 to 1000000"),
        ({"permutations": 7}, "permutations must be 8 to 256"),
        ({"permutations": 257}, "permutations must be 8 to 256"),
        ({"version": 2}, "version must be 1"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**64}, "seed"),
        ({"rows": 6.0}, "rows must be a whole number, not 6.0"),
        ({"sample_mod": -1}, "sample_mod must be 0 to 65536"),
        ({"sample_mod": 2**16 + 1}, "sample_mod must be 0 to 65536"),
        ({"bands": True}, "bands must be a whole number, not True"),
        ({"shingle": "5"}, "shingle must be a whole number, not '5'"),
        ({"unit": "syllable"}, "unit must be word, character or shape, not 'syllable'"),
        ({"unit": 5}, "unit must be word, character or shape, not 5"),
    ],
)
def test_refused_settings(changes: dict[str, Any], message: str) -> None:
    settings = Scheme(bands=16, rows=6).to_dict() | changes
    with pytest.raises(SettingsError, match=message):
        Scheme.from_dict(settings)


def test_dictionary_and_back() -> None:
    scheme = Scheme(bands=35, rows=3, shingle=2, permutations=105, seed=9)
    assert Scheme.from_dict(scheme.to_dict()) == scheme
    assert scheme.to_dict() == {
        "version": 1,
        "shingle": 2,
        "permutations": 105,
        "bands": 35,
        "rows": 3,
        "seed": 9,
    }


def test_a_scheme_without_samples_is_what_it_was_before_there_were_any() -> None:
    """The id depends on the names of the settings, so a setting without effect must not be among them."""
    plain = Scheme(bands=16, rows=6)
    assert plain.id == Scheme(bands=16, rows=6, sample_mod=0).id == "v1-f812d244"
    assert "sample_mod" not in plain.to_dict()
    assert Scheme.from_dict(plain.to_dict() | {"sample_mod": 0}).id == plain.id
    sampled = Scheme(bands=16, rows=6, sample_mod=8)
    assert sampled.to_dict() == plain.to_dict() | {"sample_mod": 8}
    assert Scheme.from_dict(sampled.to_dict()) == sampled
    assert len({scheme.id for scheme in (plain, sampled, Scheme(bands=16, rows=6, sample_mod=9))}) == 3


def test_a_scheme_of_words_is_what_it_was_before_there_were_characters() -> None:
    words, characters = Scheme(bands=16, rows=6, unit=Unit.WORD), Scheme(bands=16, rows=6, unit=Unit.CHARACTER)
    assert (words.id, "unit" in words.to_dict()) == ("v1-f812d244", False)
    assert Scheme.from_dict(words.to_dict() | {"unit": "word"}) == words
    assert characters.to_dict() == words.to_dict() | {"unit": "character"}
    assert Scheme.from_dict(characters.to_dict()) == characters != words
    assert characters.id != words.id


@pytest.mark.parametrize(
    ("given", "expected", "text"),
    [
        (5, (5, Unit.WORD), "5 words"),
        ("1", (1, Unit.WORD), "1 word"),
        ("5c", (5, Unit.CHARACTER), "5 characters"),
        ("1c", (1, Unit.CHARACTER), "1 character"),
        ("7s", (7, Unit.SHAPE), "7 shapes"),
    ],
)
def test_shingles_as_written(given: int | str, expected: tuple[int, Unit], text: str) -> None:
    assert shingle_of(given) == expected
    assert shingle_text(*expected) == text


@pytest.mark.parametrize("given", ["", "c", "5w", "-5", "5 c", "٥", "12345678", True])
def test_no_shingles(given: int | str) -> None:
    with pytest.raises(SettingsError, match="A shingle is a number of words"):
        shingle_of(given)


def test_missing_and_unknown_settings() -> None:
    settings = Scheme(bands=16, rows=6).to_dict()
    with pytest.raises(SettingsError, match="lacks rows, seed"):
        Scheme.from_dict({key: value for key, value in settings.items() if key not in {"rows", "seed"}})
    with pytest.raises(SettingsError, match="unknown settings: colour"):
        Scheme.from_dict({**settings, "colour": 1})


def test_ids_differ_and_schemes_are_frozen() -> None:
    base = Scheme(bands=16, rows=6)
    others = [
        Scheme(bands=15, rows=6),
        Scheme(bands=16, rows=5),
        Scheme(bands=16, rows=6, shingle=4),
        Scheme(bands=16, rows=6, seed=2),
        Scheme(bands=16, rows=6, permutations=127),
    ]
    assert len({scheme.id for scheme in [base, *others]}) == 6
    with pytest.raises(FrozenInstanceError):
        base.bands = 3  # type: ignore[misc]  # a typing error
