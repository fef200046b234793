"""The inner loops in C: the same bits as in numpy, for any input."""

from __future__ import annotations

import random
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.keys import hashing
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.keys.scheme import Scheme, Unit
from es_neardupe.keys.shingles import features, token_hashes
from es_neardupe.keys.unicode import table

WORDS = st.text("ab é漢ก\N{COMBINING ACUTE ACCENT}\0\N{ROMAN NUMERAL ONE}ẞİ_-", max_size=30)
TEXTS = st.lists(st.text() | WORDS | WORDS.map(lambda word: f"{word} " * 20), max_size=12)

pytestmark = pytest.mark.usefixtures("built_kernel")


@given(TEXTS, st.integers(1, 12), st.sampled_from([16, 127, 128]), st.sampled_from(Unit))
def test_the_same_bits(texts: list[str], shingle: int, permutations: int, unit: Unit) -> None:
    scheme = Scheme(shingle=shingle, permutations=permutations, bands=4, rows=4, unit=unit)
    native_ones = fingerprints(texts, scheme), features(texts, shingle, unit), token_hashes(texts)
    kernel, hashing.kernel = hashing.kernel, None
    try:
        of_numpy = fingerprints(texts, scheme), features(texts, shingle, unit), token_hashes(texts)
    finally:
        hashing.kernel = kernel
    assert native_ones[0] == of_numpy[0]
    for found, expected in zip(native_ones[1] + native_ones[2], of_numpy[1] + of_numpy[2], strict=True):
        np.testing.assert_array_equal(found, expected)


@given(st.lists(st.text(), max_size=5), st.lists(st.binary(), max_size=5), st.randoms(use_true_random=False))
def test_any_arrays(texts: list[str], contents: list[bytes], chance: random.Random) -> None:
    """What callers never send: it reads no byte beyond its end, and ends."""
    kernel = hashing.kernel
    assert kernel is not None
    points = {ord(one) for text in texts for one in text} | {0x10FFFF}
    entries = table().entries.copy()
    entries[sorted(points)] = [chance.getrandbits(32) for _ in points]
    pool = np.array([chance.choice([0, 1, 3, 2**32 - 1, chance.getrandbits(32)]) for _ in range(9)], np.uint32)
    pairs = np.array([chance.getrandbits(64) for _ in range(9)], np.uint64)
    for composed in (False, True):
        found = kernel.normalize(texts, entries, pool, table().combining, pairs, composed)
        assert len(found) == len(texts)
        assert all(isinstance(one, (bytes, str)) for one in found)
        assert not composed or all(isinstance(one, bytes) for one in found)
    hashes, bounds = kernel.token_runs(contents)
    assert len(bounds) == 8 * (len(contents) + 1)
    assert len(hashes) == 8 * int(np.frombuffer(bounds, np.int64)[-1])


def test_tables_of_another_size() -> None:
    assert hashing.kernel is not None
    entries, pool, combining, pairs = table()
    for wrong in ((entries[1:], pool, combining, pairs), (entries, pool, combining[1:], pairs)):
        with pytest.raises(ValueError, match="do not fit"):
            hashing.kernel.normalize(["a"], *wrong, False)


@pytest.mark.parametrize("text", ["Tất cả mọi người", "déjà élève", "Ångström Übermaß", "ΐ ἄνθρωπος ᾳ", "йога ў"])
def test_adjacent_pairs_are_composed_at_once(text: str) -> None:
    """Decomposed texts of these languages need no further composition, which would take much longer."""
    assert hashing.kernel is not None
    folded = text.casefold()
    (mapped,) = hashing.kernel.normalize([unicodedata.normalize("NFD", folded)], *table(), False)
    assert mapped == unicodedata.normalize("NFC", folded)


@pytest.mark.parametrize(
    ("bounds", "half", "out"),
    [
        pytest.param([0, 5], 2, (4, 1), id="beyond the values"),
        pytest.param([2, 1, 4], 2, (4, 2), id="backwards"),
        pytest.param([-1, 4], 2, (4, 1), id="before the values"),
        pytest.param([0, 4], 2, (3, 1), id="too small a result"),
        pytest.param([], 2, (4, 0), id="no bounds"),
    ],
)
def test_arrays_that_do_not_fit(bounds: list[int], half: int, out: tuple[int, int]) -> None:
    assert hashing.kernel is not None
    values, shifts = np.zeros(4, np.uint32), np.ones(8, np.uint32)
    with pytest.raises(ValueError, match="do not fit"):
        hashing.kernel.extremes(
            values, np.array(bounds, np.int64), shifts, np.ones(half, np.uint32), np.zeros(out, np.uint32)
        )


@pytest.mark.parametrize(
    ("bounds", "size"),
    [
        pytest.param([0, 5], 2, id="beyond the tokens"),
        pytest.param([2, 1, 4], 2, id="backwards"),
        pytest.param([-1, 4], 2, id="before the tokens"),
        pytest.param([0, 4], 0, id="shingles of nothing"),
        pytest.param([], 2, id="no bounds"),
    ],
)
def test_shingles_that_cannot_be(bounds: list[int], size: int) -> None:
    assert hashing.kernel is not None
    with pytest.raises(ValueError, match="do not fit"):
        hashing.kernel.shingle_runs(np.zeros(4, np.uint64), np.array(bounds, np.int64), size)


def test_other_things_than_bytes() -> None:
    assert hashing.kernel is not None
    with pytest.raises(TypeError):
        hashing.kernel.token_runs(["text"])
    with pytest.raises(TypeError):
        hashing.kernel.normalize([b"bytes"], *table(), False)
