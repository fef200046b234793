"""`StoredBuckets` finds the texts that a comparison of all signatures finds."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from es_neardupe.incoming import nearest
from es_neardupe.incoming.recent_documents import Candidate
from es_neardupe.incoming.stored_buckets import StoredBuckets

SLOTS = 12


def document(number: int, chance: random.Random) -> Candidate:
    """A document of one of a few families; those with the same keys have the same signature and text."""
    keys = [f"{band}{chance.randrange(4)}" for band in range(4)]
    signature = bytes(random.Random(" ".join(keys)).randrange(3) for _ in range(SLOTS))
    return Candidate(("i", f"{number:03}", None), keys, "".join(keys), 9, None, number % 3 == 0, signature)


def shared(one: Candidate, other: Candidate) -> int:
    return len({*one.bands} & {*other.bands})


def equal(one: Candidate, other: Candidate) -> int:
    return sum(a == b for a, b in zip(one.signature, other.signature, strict=True))


def checked(buckets: StoredBuckets, new: Candidate, stored: Sequence[Candidate], minimum: int, maximum: int) -> None:
    """Compare `nearest` with all documents; every third one is replaced by the run."""
    replaced = {one.reference for one in stored[::3]}
    found = buckets.nearest(new, minimum, buckets.sizes(replaced), maximum)
    expected = [one for one in stored if shared(new, one) >= minimum and one.reference not in replaced]
    texts = {one.content: one for one in expected}
    assert found.number == len(texts)
    slots = sorted((equal(new, one) for one in texts.values()), reverse=True)[:maximum]
    assert found.equal_slots.tolist() == slots == [equal(new, copies[0]) for copies in found.texts]
    assert found.others + sum(found.sizes) == len(expected)
    for copies, size in zip(found.texts, found.sizes, strict=True):
        assert size == sum(one.reference not in replaced for one in copies)
        assert [one.principal for one in copies] == sorted((bool(one.principal) for one in copies), reverse=True)

    def even(documents: Sequence[Candidate]) -> list[Candidate]:
        return [one for one in documents if int(one.reference[1]) % 2 == 0]

    some = buckets.nearest(new, minimum, buckets.sizes(()), 1000, even)
    assert sum(some.sizes) == len(even([one for one in stored if shared(new, one) >= minimum]))


@pytest.mark.parametrize("dense", [1, 8, 1000])
@pytest.mark.parametrize("minimum", [1, 2])
def test_the_nearest_of_all_texts(minimum: int, dense: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "FREQUENT", dense)
    chance = random.Random(dense)
    stored = [document(number, chance) for number in range(150)]
    buckets = StoredBuckets(SLOTS, fold=True)
    buckets.add(stored[:90], ["x"])
    buckets.add(stored[60:], ["y"])
    assert (len(buckets), buckets.keys) == (150, {"x", "y"})
    for number in range(30):
        checked(buckets, document(number, chance), stored, minimum, maximum=chance.choice([1, 5, 1000]))
    stranger = Candidate(("i", "z", None), ["other"], "other", 9, None, None, bytes(SLOTS))
    assert buckets.nearest(stranger, minimum, buckets.sizes(()), 5).number == 0


def test_only_those_with_most_keys_are_compared_by_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "MOST", 20)
    chance = random.Random(3)
    stored = [document(number, chance) for number in range(150)]
    buckets = StoredBuckets(SLOTS, fold=False)
    buckets.add(stored, [])
    for number in range(20):
        new = document(number, chance)
        found = buckets.nearest(new, 1, buckets.sizes(()), 1000)
        keys = sorted((shared(new, one) for one in stored), reverse=True)[: len(found.texts)]
        assert sorted((shared(new, copies[0]) for copies in found.texts), reverse=True) == keys
        assert (len(found.texts), sum(found.sizes) + found.others) == (20, found.number)
