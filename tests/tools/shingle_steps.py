"""The steps of `shingles` from a text to its keys, against the plain implementation of the scheme."""

from __future__ import annotations

import base64

from scheme_oracle import (
    GOLDEN,
    M32,
    M64,
    mix64,
    oracle,
    oracle_features,
    oracle_slot,
    oracle_token_hash,
    oracle_tokens,
    oracle_units,
)

from es_neardupe.commands.shingles.report import ShinglesReport
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.unit import Unit


def check_steps(report: ShinglesReport, text: str, scheme: Scheme) -> None:
    """Each step against the plain implementation, and each step against the one before it."""
    made, tokens = oracle(text, scheme), oracle_tokens(text)
    assert (report.scheme, report.state, report.content) == (made.scheme, made.state, made.content)
    assert (report.numeric, report.features) == (made.numeric, made.features)
    assert [one.text for one in report.tokens] == tokens
    assert [int(one.hash, 16) for one in report.tokens] == list(map(oracle_token_hash, tokens))
    units, space = oracle_units(tokens, scheme), " " if scheme.unit is Unit.WORD else ""
    for number, one in enumerate(report.shingles):
        assert one.units == (number, min(number + scheme.shingle, len(units)))
        (feature,) = oracle_features(units[slice(*one.units)], scheme.shingle)
        assert int(one.hash, 16) == feature
        assert report.words(number) == space.join(units[slice(*one.units)])
    hashes = [int(one.hash, 16) for one in report.shingles]
    assert set(hashes) == oracle_features(units, scheme.shingle)
    assert len(report.shingles) == max(len(units) - scheme.shingle + 1, min(len(units), 1))
    for number, slot in enumerate(report.slots):
        numbers = [permuted(one, number, scheme) for one in hashes]
        assert int(slot.minimum, 16) == min(numbers)
        assert slot.shingle == numbers.index(min(numbers))
        assert slot.byte == oracle_slot(int(slot.minimum, 16))
    assert bytes(one.byte for one in report.slots) == base64.b64decode(report.signature) == made.signature
    assert tuple(one.key for one in report.bands) == made.bands
    assert [one.slots for one in report.bands] == [
        (k * scheme.rows, (k + 1) * scheme.rows) for k in range(len(report.bands))
    ]
    if scheme.sample_mod:
        assert report.samples is not None
        assert tuple(one.key for one in report.samples) == made.samples
        assert all(one.shingle is not None and hashes[one.shingle] % scheme.sample_mod == 0 for one in report.samples)
        assert [one.shingle for one in report.samples] == [
            hashes.index(one) for one in sorted(set(hashes)) if one % scheme.sample_mod == 0
        ]
    else:
        assert report.samples is None


def permuted(feature: int, slot: int, scheme: Scheme) -> int:
    """The number of a feature in a slot, whose minimum decides."""

    def stream(i: int) -> int:
        return mix64(scheme.seed + GOLDEN * i & M64)

    half = (scheme.permutations + 1) // 2
    p = slot % half
    number = ((feature & M32) + (stream(1 + p % 8) >> 32)) * (stream(9 + p) >> 32 | 1) & M32
    return number if slot < half else number ^ M32
