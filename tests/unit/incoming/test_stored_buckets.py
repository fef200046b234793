"""`StoredBuckets` finds the texts that a comparison of all signatures finds."""

from __future__ import annotations

import random
from base64 import b64encode
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from es_neardupe.incoming import nearest, stored_buckets
from es_neardupe.incoming.piece import NO_FIELDS, stored_candidate
from es_neardupe.incoming.stored_buckets import SequenceNumbers, StoredBuckets
from es_neardupe.incoming.texts_by_key import Candidate
from es_neardupe.keys.bands import band_keys
from es_neardupe.keys.scheme import Scheme
from es_neardupe.records import Hit
from es_neardupe.server.client import JSON

SCHEME = Scheme(permutations=12, bands=4, rows=2)
PREFIX = "neardupe"


def document(number: int, chance: random.Random) -> Candidate:
    """A document of one of a few families; those with the same keys have the same signature and text."""
    slots = [chance.randrange(4) for _ in range(SCHEME.bands)]
    signature = bytes(slot for slot in slots for _ in range(SCHEME.rows)) + bytes(
        random.Random(str(slots)).choices(range(3), k=4)
    )
    (keys,) = band_keys(np.frombuffer(signature, np.uint8).reshape(1, -1), SCHEME.bands, SCHEME.rows)
    return Candidate(("i", f"{number:03}", None), keys, "".join(keys), 9, f"{number:016}", number % 3 == 0, signature)


def hit(one: Candidate, **more: Any) -> Hit:
    """A document as it is read into the buckets, without its keys."""
    stored: JSON = {"scheme": SCHEME.id, "signature": b64encode(one.signature).decode(), "content": one.content}
    stored |= {"principal": one.principal, "group": one.group, "tokens": one.tokens, **more}
    return Hit(*one.reference, int(one.reference[1]), 1, {PREFIX: stored})


def filled(*parts: Sequence[Candidate], fold: bool) -> StoredBuckets:
    """The buckets, after these documents were added, some at a time."""
    buckets = StoredBuckets(SCHEME, PREFIX, partial(stored_candidate, prefix=PREFIX, fields=NO_FIELDS), fold=fold)
    for part in parts:
        hits = list(map(hit, part))
        buckets.add([hits[:20], hits[20:]], {key for one in part for key in one.bands})
    return buckets


def shared(one: Candidate, other: Candidate) -> int:
    return len({*one.bands} & {*other.bands})


def equal(one: Candidate, other: Candidate) -> int:
    return sum(a == b for a, b in zip(one.signature, other.signature, strict=True))


def checked(buckets: StoredBuckets, new: Candidate, stored: Sequence[Candidate], minimum: int, maximum: int) -> None:
    """Compare `nearest` with all documents; every third one is replaced by the run."""
    replaced, searched = {one.reference for one in stored[::3]}, (buckets.numbers([new])[new], new.signature)
    found = buckets.nearest(searched, minimum, buckets.sizes(replaced), maximum)
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

    some = buckets.nearest(searched, minimum, buckets.sizes(()), 1000, even)
    assert sum(some.sizes) == len(even([one for one in stored if shared(new, one) >= minimum]))


@pytest.mark.parametrize("dense", [1, 8, 1000])
@pytest.mark.parametrize("minimum", [1, 2])
def test_the_nearest_of_all_texts(minimum: int, dense: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "FREQUENT", dense)
    chance = random.Random(dense)
    stored = [document(number, chance) for number in range(150)]
    buckets = filled(stored[:90], stored[60:], fold=True)
    assert len(buckets) == 150
    assert buckets.keys == {key for one in stored for key in one.bands}
    for number in range(30):
        checked(buckets, document(number, chance), stored, minimum, maximum=chance.choice([1, 5, 1000]))
    stranger = Candidate(("i", "z", None), ["other"], "other", 9, None, None, bytes([9] * 12))
    assert (
        buckets.nearest((buckets.numbers([stranger])[stranger], bytes(12)), minimum, buckets.sizes(()), 5).number == 0
    )
    sizes = {key: len({one.content for one in stored if key in one.bands}) for key in buckets.keys}
    texts = len({one.content for one in stored})
    assert buckets.frequent == sorted(key for key, number in sizes.items() if number * dense >= texts)


def test_only_those_with_most_keys_are_compared_by_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "MOST", 20)
    chance = random.Random(3)
    stored = [document(number, chance) for number in range(150)]
    buckets, by_reference = filled(stored, fold=False), {one.reference: one for one in stored}
    for number in range(20):
        new = document(number, chance)
        found = buckets.nearest((buckets.numbers([new])[new], new.signature), 1, buckets.sizes(()), 20)
        keys = sorted((shared(new, one) for one in stored), reverse=True)[: len(found.texts)]
        assert sorted((shared(new, by_reference[one.reference]) for (one,) in found.texts), reverse=True) == keys
        assert (len(found.texts), sum(found.sizes) + found.others) == (20, found.number)


def test_sequence_numbers_are_those_of_all_documents_that_were_read() -> None:
    """Those without a signature count too, and a document that is read again does not."""
    stored = [document(number, random.Random(number)) for number in range(9)]
    buckets = filled(stored[:6], stored[4:8], fold=True)
    buckets.add([[hit(stored[8], signature=None)]], [])
    assert buckets.seq_nos == SequenceNumbers(9, sum(range(9)), 8)
    unknown = hit(document(9, random.Random(9)))
    unknown.seq_no = None
    buckets.add([[unknown]], [])
    assert buckets.seq_nos is None


def test_documents_are_read_again_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if they seem to be the same."""
    buckets = filled([document(0, random.Random(0))], fold=True)
    assert buckets.renewable
    monkeypatch.setattr(stored_buckets, "LONGEST", 0)
    assert not buckets.renewable


def test_leaders_are_principals() -> None:
    stored = [document(number, random.Random(number)) for number in range(9)]
    buckets = filled(stored[:4], stored[4:], fold=True)
    for one in stored:
        leader = buckets.leader(one.group or "")
        assert (leader and leader.reference) == (one.reference if one.principal else None)


def test_documents_whose_keys_do_not_follow_from_a_signature_are_returned() -> None:
    one, other, foreign = (document(number, random.Random(number)) for number in range(3))
    buckets = filled([one], fold=True)
    damaged = [hit(other, signature="?"), hit(other, signature=None), hit(other, signature="AAAA")]
    assert buckets.add([damaged, [hit(foreign, scheme="v1-other")]], []) == [other.reference] * 3 + [foreign.reference]
    assert len(buckets) == 1
    assert other.reference not in buckets


def test_no_documents() -> None:
    buckets, new = filled([], fold=True), document(1, random.Random(1))
    assert (len(buckets), buckets.frequent) == (0, [])
    assert buckets.nearest((buckets.numbers([new])[new], new.signature), 1, buckets.sizes(()), 5).number == 0
