"""The inner loops in C: the same bits as in numpy, for any input."""

from __future__ import annotations

import gc
import random
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lanes import WIDTHS, lanes

from es_neardupe.keys import hashing
from es_neardupe.keys.fingerprint import fingerprints, recipe
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.shingles import distinct_runs, features, token_hashes
from es_neardupe.keys.short_table import short_table
from es_neardupe.keys.text import tokenize
from es_neardupe.keys.unicode import table
from es_neardupe.keys.unit import Unit
from es_neardupe.records import Fingerprint, State

WORDS = st.text("ab é漢ก\N{COMBINING ACUTE ACCENT}\0\N{ROMAN NUMERAL ONE}ẞİ_-", max_size=30)
TEXTS = st.lists(st.text() | WORDS | WORDS.map(lambda word: f"{word} " * 20), max_size=12)

DEFAULT = Scheme(bands=16, rows=8)

pytestmark = pytest.mark.usefixtures("built_kernel")


@contextmanager
def numpy_alone() -> Iterator[None]:
    kernel, hashing.kernel = hashing.kernel, None
    try:
        yield
    finally:
        hashing.kernel = kernel


def with_and_without_kernel(work: Callable[[], Any]) -> Iterator[Any]:
    yield work()
    with numpy_alone():
        yield work()


@given(
    TEXTS,
    st.integers(1, 12),
    st.sampled_from([16, 127, 128, 256]),
    st.sampled_from(Unit),
    st.sampled_from([0, 1, 2, 7]),
)
def test_the_same_bits(texts: list[str], shingle: int, permutations: int, unit: Unit, sample_mod: int) -> None:
    scheme = Scheme(shingle=shingle, permutations=permutations, bands=4, rows=4, unit=unit, sample_mod=sample_mod)
    native_ones = features(texts, shingle, unit), token_hashes(texts)
    with numpy_alone():
        expected = fingerprints(texts, scheme)
        of_numpy = features(texts, shingle, unit), token_hashes(texts)
    for width in WIDTHS:
        with lanes(width):
            assert fingerprints(texts, scheme) == expected
    for found, others in zip(native_ones[0] + native_ones[1], of_numpy[0] + of_numpy[1], strict=True):
        np.testing.assert_array_equal(found, others)


@pytest.mark.parametrize("width", WIDTHS)
def test_texts_at_the_borders_of_blocks(width: int) -> None:
    """Blocks of 16 code points, 64 bytes and 64 tokens; words of 8 and 16 bytes; 32 multipliers; 65,535 features."""
    texts = [f"{'x' * before} {'Yz' * token}é" for before in (*range(14, 18), *range(62, 66)) for token in range(20)]
    texts += [" ".join(f"{number:x}" for number in range(size)) for size in (*range(62, 70), *range(127, 131), 70_000)]
    texts += ["a b " * 40_000, "é" * 200, "é " * 200, "漢" * 70, "a\N{COMBINING ACUTE ACCENT}" * 70]
    for permutations in (8, 127, 128, 129, 256):
        unit = Unit.CHARACTER if permutations == 127 else Unit.WORD
        scheme = Scheme(shingle=3, permutations=permutations, bands=2, rows=4, unit=unit)
        with numpy_alone():
            expected = fingerprints(texts, scheme)
        with lanes(width):
            assert fingerprints(texts, scheme) == expected


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("permutations", [64, 128])
def test_windows_of_characters(width: int, permutations: int) -> None:
    """They are hashed in four parts, letters of ASCII from their bytes. Equal ones are found while they are permuted,
    if there are two groups of permutations: up to 65,534 of them."""
    letters = "".join(random.Random(1).choices("abcd", k=65_537))
    texts = [one[:size] for one in (letters, f"é{letters}", "ab " * 20) for size in range(20)]
    texts += [letters[:size] for size in range(65_534, 65_538)]
    scheme = Scheme(shingle=3, permutations=permutations, bands=2, rows=4, unit=Unit.CHARACTER)
    with numpy_alone():
        expected = fingerprints(texts, scheme)
    with lanes(width):
        assert fingerprints(texts, scheme) == expected


def test_the_widest_vectors_are_used() -> None:
    assert hashing.kernel is not None
    assert hashing.kernel.use_lanes(0) == 0
    widest = hashing.kernel.use_lanes(2**40)
    assert widest in WIDTHS
    assert [hashing.kernel.use_lanes(bits) for bits in WIDTHS] == [min(bits, widest) for bits in WIDTHS]


def test_longer_texts_than_the_kernel_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["a b c", "Ångström a\N{COMBINING DIAERESIS}"]
    expected = fingerprints(texts, DEFAULT), features(texts, 2)
    monkeypatch.setattr("es_neardupe.keys.text.LONGEST", 4)
    assert hashing.kernel is not None
    monkeypatch.setattr(
        hashing, "kernel", SimpleNamespace(**vars(hashing.kernel) | {"signed_texts": None, "normalize": None})
    )
    found = fingerprints(texts, DEFAULT), features(texts, 2)
    assert found[0] == expected[0]
    assert list(map(list, found[1])) == list(map(list, expected[1]))


def test_records_refer_to_nothing_that_could_refer_to_them() -> None:
    """So the collector of cycles need not visit them: the kernel ends their tracking."""
    (record,) = fingerprints(["one two three four five six"], Scheme(bands=16, rows=8, sample_mod=1))
    assert not gc.is_tracked(record)
    tracked = [one for one in gc.get_referents(record) if gc.is_tracked(one)]
    assert [one for one in tracked if one is not Fingerprint] == [State.SIGNED]


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
        found = kernel.normalize(texts, composed, (entries, pool, table().combining, pairs), short_table())
        assert len(found) == len(texts)
        assert all(isinstance(one, (bytes, str)) for one in found)
        assert not composed or all(isinstance(one, bytes) for one in found)
    runs = kernel.text_runs(texts, (entries, pool, table().combining, pairs), short_table())
    for found, count in ((kernel.token_runs(contents), len(contents)), (runs, len(texts))):
        hashes, bounds = found or (b"", bytes(8 * (count + 1)))
        assert len(bounds) == 8 * (count + 1)
        assert len(hashes) == 8 * int(np.frombuffer(bounds, np.int64)[-1])


def test_tables_of_another_size() -> None:
    assert hashing.kernel is not None
    entries, pool, combining, pairs = table()
    for wrong in ((entries[1:], pool, combining, pairs), (entries, pool, combining[1:], pairs)):
        with pytest.raises(ValueError, match="do not fit"):
            hashing.kernel.normalize(["a"], False, wrong, short_table())
        with pytest.raises(ValueError, match="do not fit"):
            hashing.kernel.text_runs(["a"], wrong, short_table())


@pytest.mark.parametrize("text", ["Tất cả mọi người", "déjà élève", "Ångström Übermaß", "ΐ ἄνθρωπος ᾳ", "йога ў"])
def test_adjacent_pairs_are_composed_at_once(text: str) -> None:
    """Decomposed texts of these languages need no further composition, which would take much longer."""
    assert hashing.kernel is not None
    folded = text.casefold()
    decomposed = unicodedata.normalize("NFD", folded)
    (content,) = hashing.kernel.normalize([decomposed], False, tuple(table()), short_table())
    assert content == " ".join(tokenize(folded)).encode()
    assert hashing.kernel.text_runs([decomposed], tuple(table()), short_table()) is not None


def test_texts_that_must_be_composed_first() -> None:
    assert hashing.kernel is not None
    texts = ["a\N{COMBINING ACUTE ACCENT}\N{COMBINING DOT BELOW} b c", "b c", ""]
    assert hashing.kernel.text_runs(texts, tuple(table()), short_table()) is None
    native, of_numpy = with_and_without_kernel(lambda: [*map(list, features(texts, 2) + token_hashes(texts))])
    assert native == of_numpy


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
    if size:
        with pytest.raises(ValueError, match="do not fit"):
            hashing.kernel.distinct_runs(np.zeros(4, np.uint64), np.array(bounds, np.int64))


@pytest.mark.parametrize(
    ("different", "shift", "longest"),
    [
        pytest.param(2**64, 0, 300, id="hashes"),
        pytest.param(2**64, 0, 200_000, id="more hashes than parts"),
        pytest.param(9, 60, 5000, id="nearly all equal"),
        pytest.param(5000, 0, 5000, id="one part"),
        pytest.param(2**64, 0, 1, id="at most one hash"),
    ],
)
def test_distinct_values(different: int, shift: int, longest: int) -> None:
    chance = np.random.default_rng(longest)
    bounds = np.cumsum([0, *chance.integers(0, longest, 5, endpoint=True), 0, longest])
    values = chance.integers(0, different - 1, bounds[-1], np.uint64, endpoint=True) << np.uint64(shift)
    expected = [np.unique(values[start:end]).tolist() for start, end in pairwise(bounds)]
    for found, starts in with_and_without_kernel(partial(distinct_runs, values, bounds)):
        assert [found[start:end].tolist() for start, end in pairwise(starts)] == expected


def arguments(**changed: Any) -> list[Any]:
    """Those of ``signed_texts`` for the default scheme, with some changed."""
    tables, (numbers, *others) = {**table()._asdict(), **dict(zip("ABC", short_table(), strict=True))}, recipe(DEFAULT)
    named = dict(
        zip(
            ("characters", "shifts", "multipliers", "class", "fields", "id", "states", "digest", "empty"),
            others,
            strict=True,
        )
    )
    given = {"texts": ["a text"], "composed": False, **tables, "numbers": numbers, **named} | changed
    arrays = [given.pop(name) for name in tables]
    texts, composed, *rest = given.values()
    return [texts, composed, tuple(arrays[:4]), tuple(arrays[4:]), *rest]


def test_signing_any_arrays() -> None:
    """What callers never send: it reads no byte beyond its end, and ends."""
    assert hashing.kernel is not None
    chance = np.random.default_rng(1)
    texts = ["".join(map(chr, chance.integers(32, 0xD800, 300))) for _ in range(20)]
    for width in WIDTHS:
        with lanes(width):
            for _ in range(5):
                noise = {
                    name: chance.integers(0, 2**32, len(array), np.uint32).astype(array.dtype)
                    for name, array in (*table()._asdict().items(), ("B", short_table()[1]), ("C", short_table()[2]))
                }
                found, later = hashing.kernel.signed_texts(*arguments(texts=texts, **noise))
                assert len(found) == len(texts)
                assert [isinstance(one, str) for one in found] == [number in later for number in range(len(texts))]


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"entries": np.zeros(9, np.uint32)}, id="entries"),
        pytest.param({"combining": np.zeros(9, np.uint8)}, id="classes"),
        pytest.param({"A": np.zeros(9, np.uint16)}, id="blocks"),
        pytest.param({"A": np.full(0x1100, 0xFFFF, np.uint16)}, id="blocks beyond the short table"),
        pytest.param({"C": np.zeros(9, np.uint8)}, id="flags"),
        pytest.param({"characters": np.zeros(0x17F, np.uint16)}, id="characters"),
        pytest.param({"characters": np.full(0x180, 0x180, np.uint16)}, id="characters beyond the first"),
        pytest.param({"shifts": np.zeros(7, np.uint32)}, id="shifts"),
        pytest.param({"multipliers": np.ones(65, np.uint32)}, id="part of a group"),
        pytest.param({"multipliers": np.ones(0, np.uint32)}, id="too few multipliers"),
        pytest.param({"numbers": (0, 128, 16, 8, 0)}, id="shingles of nothing"),
        pytest.param({"numbers": (5, 0, 16, 8, 0)}, id="no slots"),
        pytest.param({"numbers": (5, 128, 0, 8, 0)}, id="no bands"),
        pytest.param({"numbers": (5, 256, 129, 1, 0)}, id="too many bands"),
        pytest.param({"numbers": (5, 128, 16, 9, 0)}, id="more rows than slots"),
        pytest.param({"numbers": (2**62, 128, 16, 8, 0)}, id="endless shingles"),
        pytest.param({"numbers": (5, 128, 16, 8, -1)}, id="a negative remainder"),
        pytest.param({"fields": ("scheme",)}, id="fields"),
        pytest.param({"states": ()}, id="states"),
    ],
)
def test_arguments_of_signing_that_do_not_fit(changed: dict[str, Any]) -> None:
    assert hashing.kernel is not None
    with pytest.raises(ValueError, match="do not fit"):
        hashing.kernel.signed_texts(*arguments(**changed))


def test_what_cannot_be_signed() -> None:
    assert hashing.kernel is not None
    with pytest.raises(TypeError, match="texts"):
        hashing.kernel.signed_texts(*arguments(texts=["a", b"bytes"]))
    with pytest.raises(TypeError, match="slots"):
        hashing.kernel.signed_texts(*arguments(fields=("__doc__",) * 9))
    with pytest.raises(ZeroDivisionError):
        hashing.kernel.signed_texts(*arguments(digest=lambda content: 1 / 0))


def test_other_things_than_bytes() -> None:
    assert hashing.kernel is not None
    with pytest.raises(TypeError):
        hashing.kernel.token_runs(["text"])
    with pytest.raises(TypeError):
        hashing.kernel.normalize([b"bytes"], False, tuple(table()), short_table())
    with pytest.raises(TypeError, match="texts"):
        hashing.kernel.text_runs([b"bytes"], tuple(table()), short_table())
