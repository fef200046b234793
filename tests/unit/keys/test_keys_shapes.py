"""Shapes: what letters that scanners confuse have in common, and what stays apart."""

from __future__ import annotations

import pytest
from scheme_oracle import SHAPES as EXPECTED

from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.shapes import SHAPES, shaped
from es_neardupe.keys.shingles import features
from es_neardupe.keys.text import normalize
from es_neardupe.keys.unit import Unit

pytestmark = pytest.mark.usefixtures("inner_loops")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The c0py of a letter.", "fbccapvafafcffcr"),
        ("tbe eopy ot o Ietler", "fbccapvafafcffcr"),  # as a scanner may read it
        ("Žluťoučký kůň, déjà vu, søen łódź", "zfnfanckvknndcfavnsacnfadz"),
        ("東京 привет ﬁ", "東京приветff"),
    ],
)
def test_texts(text: str, expected: str) -> None:
    (content,) = normalize([text])
    assert shaped(content).replace(b" ", b"").decode() == expected


def test_the_table_is_that_of_the_scheme() -> None:
    table = {chr(point): shape for point, shape in enumerate(SHAPES) if shape != " "}
    assert table == {one: shape for shape, alike in EXPECTED.items() for one in alike if one != shape}


def test_what_a_scanner_confuses_has_the_same_features() -> None:
    one, other, third = features(["a modern house", "o modcrn bonse", "a modern horse"], 4, Unit.SHAPE)
    assert one.tolist() == other.tolist() != third.tolist()


def test_content_hashes_and_words_are_those_of_the_text() -> None:
    scheme = Scheme(shingle=7, bands=16, rows=6, unit=Unit.SHAPE)
    one, other = fingerprints(["a modern house", "o modcrn bonse"], scheme)
    assert (one.bands, one.tokens) == (other.bands, other.tokens)
    assert one.content != other.content
