"""The batch path against scheme v1 written again, slowly, in plain Python."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from es_neardupe.keys import text
from es_neardupe.keys.bands import band_keys
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.keys.minhash import signatures
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.shingles import features
from es_neardupe.keys.text import spans, tokenize
from es_neardupe.records import Fingerprint, State

pytestmark = pytest.mark.usefixtures("inner_loops")

M64, M32 = 2**64 - 1, 2**32 - 1
GOLDEN, MULTIPLIER = 0x9E3779B97F4A7C15, 0xD1342543DE82EF95
BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def mix64(x: int) -> int:
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & M64
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & M64
    return x ^ x >> 31


@lru_cache
def unicode_table() -> tuple[set[int], set[int], dict[int, int]]:
    data = json.loads((files("es_neardupe.keys") / "unicode_v1.json").read_text("ascii"))
    word, single = ({p for a, b in data[name] for p in range(a, b + 1)} for name in ("word", "single"))
    lower = {p: p + delta for a, b, step, delta in data["lower"] for p in range(a, b + 1, step)}
    return word, single, lower


def oracle_tokens(text: str) -> list[str]:
    word, single, lower = unicode_table()
    tokens, run = [], ""
    for point in [*map(ord, text), 0]:
        if point in word and point not in single:
            run += chr(lower.get(point, point))
            continue
        if run:
            tokens.append(run)
            run = ""
        if point in single:
            tokens.append(chr(lower.get(point, point)))
    return tokens


def oracle_token_hash(token: str) -> int:
    octets = token.encode()
    words = [int.from_bytes(octets[i : i + 8], "little") for i in range(0, len(octets), 8)]
    return sum(mix64(w + GOLDEN * (len(octets) + 2**32 * j) & M64) for j, w in enumerate(words)) & M64


def oracle_features(tokens: list[str], size: int) -> set[int]:
    size = min(size, len(tokens))
    hashes = [oracle_token_hash(token) for token in tokens]
    found = set()
    for start in range(len(tokens) - size + 1 if tokens else 0):
        h = size
        for token_hash in hashes[start : start + size]:
            h = h * MULTIPLIER + token_hash & M64
        found.add(mix64(h))
    return found


def oracle_signature(found: set[int], scheme: Scheme) -> bytes:
    def stream(i: int) -> int:
        return mix64(scheme.seed + GOLDEN * i & M64)

    half = (scheme.permutations + 1) // 2
    least, greatest = [], []
    for p in range(half):
        shift, multiplier = stream(1 + p % 8) >> 32, stream(9 + p) >> 32 | 1
        permuted = [((x & M32) + shift) * multiplier & M32 for x in found]
        least.append(min(permuted))
        greatest.append(max(permuted) ^ M32)
    return bytes(map(oracle_slot, (least + greatest)[: scheme.permutations]))


def oracle_slot(v: int) -> int:
    v ^= v >> 16
    v = v * 0x85EBCA6B & M32
    v ^= v >> 13
    v = v * 0xC2B2AE35 & M32
    return v >> 24


def oracle_bands(signature: bytes, scheme: Scheme) -> tuple[str, ...]:
    keys = []
    for band in range(scheme.bands):
        h = 0
        for slot in signature[band * scheme.rows : (band + 1) * scheme.rows]:
            h = h * MULTIPLIER + slot + 1 & M64
        h = mix64(h) >> 22
        place = BASE64[band] if band < 64 else chr(0xC0 + band - 64)
        keys.append(place + "".join(BASE64[h >> shift & 63] for shift in range(36, -1, -6)))
    return tuple(keys)


def oracle_samples(found: set[int], scheme: Scheme) -> tuple[str, ...] | None:
    if scheme.sample_mod == 0:
        return None
    chosen = [x >> 16 for x in sorted(found) if x % scheme.sample_mod == 0]
    return tuple("".join(BASE64[x >> shift & 63] for shift in range(42, -1, -6)) for x in chosen)


def oracle(text: str, scheme: Scheme, max_chars: int = 10_000_000) -> Fingerprint:
    if len(text) > max_chars:
        return Fingerprint(scheme.id, State.TOO_LARGE, "", (), b"", 0, 0, samples=oracle_samples(set(), scheme))
    tokens = oracle_tokens(text)
    if not tokens:
        return Fingerprint(scheme.id, State.EMPTY, "", (), b"", 0, 0, samples=oracle_samples(set(), scheme))
    found = oracle_features(tokens, scheme.shingle)
    signature = oracle_signature(found, scheme)
    return Fingerprint(
        scheme.id,
        State.SIGNED if len(tokens) >= scheme.shingle else State.SHORT,
        xxhash.xxh3_128_hexdigest(" ".join(tokens).encode()),
        oracle_bands(signature, scheme),
        signature,
        len(tokens),
        len(found),
        all(char.isdecimal() for token in tokens for char in token),
        oracle_samples(found, scheme),
    )


ANY_CHARACTER = st.characters() | st.characters(categories=["Cs"])
INTERESTING = st.sampled_from(
    list("abcABC_09 .,\0\n'éÉßẞσΣςẛſİıIǅ\u0301\u0378\u212a\u212bȺȾ")
    + list("あアーｱ東\U00020000\U0003fffdไทยນ့ကក😀𐐀\ud800\udfff")
    + ["नमस्ते", "a b c d e f g", "pneumonoultramicroscopic"]
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
    ]
)


@settings(max_examples=300, deadline=None)
@given(TEXTS, SCHEMES)
def test_fingerprints_are_those_of_the_oracle(texts: list[str], scheme: Scheme) -> None:
    assert fingerprints(texts, scheme, max_chars=60) == [oracle(text, scheme, 60) for text in texts]


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_tokens_features_and_spans_are_those_of_the_oracle(texts: list[str]) -> None:
    tokens = [oracle_tokens(text) for text in texts]
    assert [tokenize(text) for text in texts] == tokens
    for found, expected in zip(features(texts, 3), tokens, strict=True):
        assert found.dtype == np.uint64
        assert found.tolist() == sorted(oracle_features(expected, 3))
    for source, expected in zip(texts, tokens, strict=True):
        assert [tokenize(source[a:b]) for a, b in spans(source).tolist()] == [[token] for token in expected]


@settings(max_examples=100, deadline=None)
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


@settings(max_examples=50, deadline=None)
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
