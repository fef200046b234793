"""The batch computation against a slow, plain Python implementation of scheme v1."""

from __future__ import annotations

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheme_oracle import (
    oracle,
    oracle_features,
    oracle_tokens,
)

from es_neardupe.keys import text
from es_neardupe.keys.bands import band_keys
from es_neardupe.keys.fingerprint import fingerprints, signatures
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.shingles import features
from es_neardupe.keys.text import spans, tokenize
from es_neardupe.keys.unit import Unit

pytestmark = pytest.mark.usefixtures("inner_loops")


ANY_CHARACTER = st.characters() | st.characters(categories=["Cs"])
INTERESTING = st.sampled_from(
    list("abcABC_09 .,\0\n'éÉßẞσΣςẛſİıIǅ\u0301\u0378\u212a\u212bȺȾ")
    + list("あアーｱ東\U00020000\U0003fffdไทยນ့ကក😀𐐀\ud800\udfff")
    + list("½ﬁ㎏ｶﾞか\u3099\u1112\u1161\u11ab한்\u0bc6\u0bbe=≠\u0338\u0323\u0327\u00ad\u200d\ufe0f\u20e3\u064b\u0640ة")
    + ["i\u0307", "I\u0307", "ị\u0307", "i\u0323", "į", "नमस्ते", "a b c d e f g", "pneumonoultramicroscopic"]
)
TEXTS = st.lists(st.text(ANY_CHARACTER) | st.lists(INTERESTING, max_size=40).map("".join), max_size=12)
SCHEMES = st.sampled_from(
    [
        Scheme(bands=16, rows=6),
        Scheme(bands=128, rows=1, shingle=1, seed=2**64 - 1),
        Scheme(bands=3, rows=3, permutations=9, shingle=3, seed=0),
        Scheme(bands=100, rows=2, permutations=201, shingle=40, sample_mod=1),
        Scheme(bands=16, rows=6, shingle=2, sample_mod=3),
        Scheme(bands=16, rows=6, shingle=1, sample_mod=8),
        Scheme(bands=16, rows=6, shingle=5, unit=Unit.CHARACTER),
        Scheme(bands=60, rows=2, shingle=1, unit=Unit.CHARACTER),
        Scheme(bands=16, rows=6, shingle=30, sample_mod=2, unit=Unit.CHARACTER),
        Scheme(bands=60, rows=2, shingle=1, unit=Unit.SHAPE),
        Scheme(bands=64, rows=3, permutations=192, shingle=7, sample_mod=2, unit=Unit.SHAPE),
    ]
)


@given(TEXTS, SCHEMES)
def test_fingerprints_are_those_of_the_oracle(texts: list[str], scheme: Scheme) -> None:
    assert fingerprints(texts, scheme, max_chars=60) == [oracle(text, scheme, 60) for text in texts]


@given(TEXTS)
def test_tokens_features_and_spans_are_those_of_the_oracle(texts: list[str]) -> None:
    tokens = [oracle_tokens(text) for text in texts]
    assert [tokenize(text) for text in texts] == tokens
    for found, expected in zip(features(texts, 3), tokens, strict=True):
        assert found.dtype == np.uint64
        assert found.tolist() == sorted(oracle_features(expected, 3))
    for source, expected in zip(texts, tokens, strict=True):
        places = spans(source).tolist()
        assert len(places) == len(expected)
        assert places == sorted(places)
        assert all(0 <= a < b <= len(source) for a, b in places)
        if unicodedata.is_normalized("NFKC", source) and not any(map(unicodedata.combining, source)):
            assert [oracle_tokens(source[a:b]) for a, b in places] == [[one] for one in expected]


@given(TEXTS, SCHEMES, st.integers(1, 5), st.sampled_from([1, 20, 1000]))
def test_results_depend_on_no_neighbour_and_no_chunk_size(
    texts: list[str], scheme: Scheme, size: int, chars: int
) -> None:
    whole = fingerprints(texts, scheme)
    assert [fingerprints([text], scheme)[0] for text in texts] == whole
    assert fingerprints(texts[::-1], scheme)[::-1] == whole
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text, "CHUNK_TEXTS", size)
        patch.setattr(text, "CHUNK_CHARS", chars)
        assert fingerprints(texts, scheme) == whole


@given(st.text(ANY_CHARACTER, min_size=1), st.integers(1, 3000))
def test_long_tokens_and_texts(unit: str, times: int) -> None:
    scheme = Scheme(bands=16, rows=6)
    source = unit * times
    assert fingerprints([source, "x" * times, source], scheme) == [
        oracle(source, scheme),
        oracle("x" * times, scheme),
        oracle(source, scheme),
    ]


def test_a_token_of_a_megabyte() -> None:
    scheme = Scheme(bands=16, rows=6)
    token = "abcdefghijk" * 90_909
    assert fingerprints([f"a {token}. b", "c"], scheme)[0] == oracle(f"a {token}. b", scheme)


def test_signatures_and_bands_can_be_remade() -> None:
    scheme = Scheme(bands=16, rows=6)
    texts = ["one two three four five six seven", "", "東京", "a b"]
    made = fingerprints(texts, scheme)
    signed = signatures(texts, scheme)
    assert signed.shape == (4, 128)
    assert signed.dtype == np.uint8
    assert not signed[1].any()
    assert [bytes(row) if f.signature else b"" for row, f in zip(signed, made, strict=True)] == [
        f.signature for f in made
    ]
    remade = band_keys(signed, 35, 3)
    other = fingerprints(texts, Scheme(bands=35, rows=3))
    assert [remade[i] for i in (0, 2, 3)] == [other[i].bands for i in (0, 2, 3)]


def test_many_texts_pass_several_chunks() -> None:
    scheme = Scheme(bands=16, rows=6)
    texts = [f"text number {i} " * (i % 7) + "é" * (i % 3) for i in range(1000)]
    made = fingerprints(texts, scheme)
    assert made[::97] == [oracle(text, scheme) for text in texts[::97]]
    assert fingerprints([], scheme) == []
    assert signatures([], scheme).shape == (0, 128)
    assert features([], 5) == []
