"""Signatures compared in C: the same results as in numpy, for any texts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.incoming import nearest
from es_neardupe.incoming.nearest import TextArrays, equal_slots, slots_of

pytestmark = pytest.mark.usefixtures("built_kernel")

KEYS = 5


@contextmanager
def in_numpy() -> Iterator[None]:
    """Without C."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(nearest, "kernel", None)
        yield


@given(st.integers(0, 40), st.integers(0, 6), st.integers(0, 2**32 - 1))
def test_the_same_slots_are_equal(slots: int, number: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    size = chance.choice([slots, slots, slots, slots + 1, 0], number)
    signature, *others = (chance.integers(0, 3, one, np.uint8).tobytes() for one in [slots, *size])
    expected = [sum(map(int.__eq__, signature, one if len(one) == slots else bytes(slots))) for one in others]
    assert equal_slots(signature, others).tolist() == expected
    with in_numpy():
        assert equal_slots(signature, others).tolist() == expected


def test_signatures_of_all_sizes() -> None:
    for slots in range(257):
        equal = bytes([255] * slots)
        assert equal_slots(equal, [equal, bytes(slots), bytes([254, 1] * 128)[:slots]]).tolist() == [slots, 0, 0]
    with pytest.raises(ValueError, match="257 slots"):
        equal_slots(bytes(257), [])


def some_texts(chance: np.random.Generator, texts: int, slots: int) -> TextArrays:
    """Texts, each of which has some of a few keys and values of slots."""
    has = chance.random((KEYS, texts)) < chance.random((KEYS, 1))
    has = has[np.argsort(-has.sum(axis=1))]
    bounds = np.concatenate([[0], has.sum(axis=1).cumsum()])
    signatures = [chance.integers(0, 3, slots, np.uint8).tobytes() for _ in range(texts)]
    return TextArrays(slots_of(signatures, slots), bounds, np.nonzero(has)[1].astype(np.int32))


@given(st.integers(0, 60), st.integers(0, 20), st.integers(1, 70), st.integers(0, 70), st.integers(0, 2**32 - 1))
def test_the_nearest_are_those_of_numpy(texts: int, slots: int, most: int, maximum: int, seed: int) -> None:
    """Equal ones as well, which are many."""
    chance = np.random.default_rng(seed)
    arrays = some_texts(chance, texts, slots)
    keys = chance.permutation(KEYS)[: chance.integers(1, KEYS + 1)].astype(np.int32)
    sizes = chance.integers(-1, 4, texts)
    arguments = keys, chance.integers(0, 3, slots, np.uint8).tobytes(), sizes, int(chance.integers(1, 4)), maximum
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(nearest, "MOST", most)
        patched.setattr(nearest, "FREQUENT", int(chance.integers(1, 6)))
        found = arrays.nearest(*arguments)
        flagged = arrays.with_flags().nearest(*arguments)
        with in_numpy():
            expected = arrays.nearest(*arguments)
    for one in (found, flagged):
        assert [some.tolist() for some in one[:2]] == [some.tolist() for some in expected[:2]]
        assert one[2:] == expected[2:]
        assert len(one.places) == min(one.number, maximum)


@pytest.mark.parametrize(
    "wrong",
    [
        {"keys": [KEYS]},
        {"keys": [-1]},
        {"keys": [0] * 256},
        {"keys": [1], "bounds": [0, 3, 99]},
        {"keys": [1], "bounds": [0, -1, 9]},
        {"keys": [1], "with_key": [7] * 50},
        {"keys": [1], "with_key": [-1] * 50},
        {"sizes": [1] * 6},
        {"signature": bytes(9)},
        {"minimum": 0},
        {"most": 0},
        {"maximum": -1},
    ],
)
def test_arrays_that_do_not_fit_are_rejected(wrong: dict[str, Any]) -> None:
    fitting: dict[str, Any] = {
        "keys": [0, 1],
        "bounds": [10 * key for key in range(KEYS + 1)],
        "with_key": [0] * 50,
        "flags": [1] * 7,
        "sizes": [1] * 7,
    }
    fitting |= {"signatures": np.zeros((7, 8), np.uint8), "signature": bytes(8), "minimum": 1, "most": 5, "maximum": 5}
    kinds = {"keys": np.int32, "bounds": np.int64, "with_key": np.int32, "flags": np.uint8, "sizes": np.int64}

    def called(arguments: dict[str, Any]) -> object:
        assert nearest.kernel is not None
        arrays = {name: np.array(arguments[name], kind) for name, kind in kinds.items()}
        return nearest.kernel.nearest(*(arguments | arrays).values())

    called(fitting)
    with pytest.raises(ValueError, match="do not fit"):
        called(fitting | wrong)
