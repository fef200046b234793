"""Each step of `shingles` from a text to its keys, without a server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shingle_steps import check_steps

from es_neardupe.commands.shingles import shingles_of
from es_neardupe.errors import InputError
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.unit import Unit
from es_neardupe.options import DEFAULT_MAX_CHARS
from es_neardupe.records import State

TEXT = "The quick brown fox jumps over the lazy dog."
SCHEME = Scheme.for_threshold(0.8)
SCHEMES = [
    SCHEME,
    Scheme(shingle=1, permutations=9, bands=3, rows=3, sample_mod=1),
    Scheme(shingle=3, permutations=20, bands=4, rows=5, seed=7, sample_mod=2),
    Scheme(shingle=4, permutations=20, bands=4, rows=5, sample_mod=2, unit=Unit.CHARACTER),
    Scheme(shingle=3, permutations=20, bands=4, rows=5, unit=Unit.SHAPE),
]
TEXTS = st.lists(st.sampled_from(["a", "b", "Straße", "½", "東京", "—", "longer_than_eight_bytes"]), max_size=12).map(
    " ".join
)


@given(TEXTS, st.sampled_from(SCHEMES))
def test_every_step_is_that_of_the_scheme(text: str, scheme: Scheme) -> None:
    check_steps(shingles_of(text, scheme), text, scheme)


def test_places_of_tokens() -> None:
    report = shingles_of(TEXT, SCHEME, name="fox")
    assert [TEXT[slice(*one.characters)].lower() for one in report.tokens] == [one.text for one in report.tokens]
    assert (report.index, report.name, report.stored) == (None, "fox", None)
    assert report.settings == SCHEME.to_dict()


@pytest.mark.parametrize(("text", "state", "shingles", "keys"), [("", "empty", 0, 0), ("one two", "short", 1, 16)])
def test_short_and_empty_texts(text: str, state: str, shingles: int, keys: int) -> None:
    report = shingles_of(text, SCHEME)
    assert (report.state, len(report.shingles), len(report.bands)) == (State(state), shingles, keys)
    assert bool(report.slots) == bool(report.signature) == bool(keys)


def test_a_text_that_is_too_long_for_keys() -> None:
    with pytest.raises(InputError, match="10,000,001 characters"):
        shingles_of("a" * (DEFAULT_MAX_CHARS + 1), SCHEME)
