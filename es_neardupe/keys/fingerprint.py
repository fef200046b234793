"""Fingerprints of texts, which are stored with the documents. This is the hot path of `enrich`."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import repeat

import numpy as np
import xxhash

from es_neardupe.keys import hashing
from es_neardupe.keys.bands import band_keys, sample_keys
from es_neardupe.keys.minhash import Signatures, constants, sign
from es_neardupe.keys.prepare.preparation import Text, length
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.shapes import code_points
from es_neardupe.keys.shingles import Shingles, shingles
from es_neardupe.keys.short_table import short_table
from es_neardupe.keys.text import chunks, for_kernel, normalize
from es_neardupe.keys.unicode import DIGIT, table
from es_neardupe.keys.unit import Unit
from es_neardupe.lists import as_list
from es_neardupe.records import Fingerprint, State


def fingerprints(texts: Sequence[Text], scheme: Scheme, max_chars: int = 10_000_000) -> list[Fingerprint]:
    """The fingerprints of texts, in their order. A text may be given as the values of several fields.

    A text of more than ``max_chars`` characters is not read: it gets the state ``too_large`` and no keys.
    The fingerprint of a text does not depend on its neighbours.
    """
    return list(stream_fingerprints(texts, scheme, max_chars))


def signatures(texts: Sequence[str], scheme: Scheme) -> Signatures:
    """The signatures of texts: uint8[texts, permutations]. A text without tokens has a row of zeros, which must not be
    compared."""
    texts, nothing = as_list("texts", texts), bytes(scheme.permutations)
    joined = b"".join(one.signature or nothing for one in stream_fingerprints(texts, scheme, sys.maxsize))
    return np.frombuffer(joined, np.uint8).reshape(len(texts), scheme.permutations)


def stream_fingerprints(texts: Sequence[Text], scheme: Scheme, max_chars: int = 10_000_000) -> Iterator[Fingerprint]:
    """Like `fingerprints`, but yields the fingerprints of the first texts before the last texts are processed."""
    too_large = None
    for chunk in chunks(texts, length):
        if max(map(length, chunk)) <= max_chars:
            yield from _fingerprint_chunk(chunk, scheme)
            continue
        too_large = too_large or without_keys(scheme, State.TOO_LARGE)
        made = _fingerprint_chunk([text if length(text) <= max_chars else "" for text in chunk], scheme)
        yield from (one if length(text) <= max_chars else too_large for text, one in zip(chunk, made, strict=True))


def _fingerprint_chunk(texts: Sequence[Text], scheme: Scheme) -> list[Fingerprint]:
    prepared = scheme.preparation.texts(texts)
    if hashing.kernel is not None and not (scheme.preparation and scheme.sample_mod) and for_kernel(prepared):
        return _natively(prepared, scheme)
    contents = normalize(prepared)
    found = shingles(contents, scheme.shingle, scheme.unit)
    signed = sign(found, scheme)
    keys = band_keys(signed, scheme.bands, scheme.rows)
    tokens, features = found.tokens.tolist(), np.diff(found.bounds).tolist()
    states = [_state(count, scheme.shingle) for count in found.units.tolist()]
    hashes = [xxhash.xxh3_128_hexdigest(content) for content in contents]
    octets, width = signed.tobytes(), scheme.permutations
    slots = [octets[start : start + width] for start in range(0, len(octets), width)]
    numeric = map(_only_numbers, contents)
    samples = _samples(texts, found, scheme) if scheme.sample_mod else repeat(None)
    rows = zip(repeat(scheme.id), states, hashes, keys, slots, tokens, features, numeric, samples)
    return [Fingerprint(*row) if row[5] else without_keys(scheme, State.EMPTY) for row in rows]


def _samples(texts: Sequence[Text], found: Shingles, scheme: Scheme) -> list[tuple[str, ...]]:
    """The sampled keys of texts, given their shingles. They are those of whole texts: passages that are left out for
    other keys are found, too."""
    if scheme.preparation:
        found = shingles(normalize(scheme.preparation.whole.texts(texts)), scheme.shingle, scheme.unit)
    return sample_keys(found, scheme.sample_mod)


_FIELDS = tuple(Fingerprint.__dataclass_fields__)
_GROUP = 32


@lru_cache(maxsize=8)
def recipe(scheme: Scheme) -> tuple[object, ...]:
    """The arguments of the kernel that depend on the scheme only."""
    half = (scheme.permutations + 1) // 2
    shifts, multipliers = constants(scheme.seed, half)
    padded = np.append(multipliers, np.ones(-half % _GROUP, np.uint32))
    numbers = scheme.shingle, scheme.permutations, scheme.bands, scheme.rows, scheme.sample_mod
    states, empty = (State.SIGNED, State.SHORT), without_keys(scheme, State.EMPTY)
    characters = b"" if scheme.unit is Unit.WORD else code_points(scheme.unit is Unit.SHAPE)
    return (
        numbers,
        characters,
        shifts,
        padded,
        Fingerprint,
        _FIELDS,
        scheme.id,
        states,
        xxhash.xxh3_128_hexdigest,
        empty,
    )


def _natively(texts: Sequence[str], scheme: Scheme) -> list[Fingerprint]:
    """All of it in C; only canonical composition, which few texts need, is done here."""
    assert hashing.kernel is not None
    given = tuple(table()), short_table(), *recipe(scheme)
    found: list[Fingerprint]
    found, decomposed = hashing.kernel.signed_texts(list(texts), False, *given)
    if decomposed:
        composed = [unicodedata.normalize("NFC", str(found[number])) for number in decomposed]
        made, _ = hashing.kernel.signed_texts(composed, True, *given)
        for number, one in zip(decomposed, made, strict=True):
            found[number] = one
    return found


def _only_numbers(content: bytes) -> bool:
    """Whether all tokens consist of decimal digits of any script; the first byte, or token, says no to nearly every
    text."""
    if content[:1].isalpha() or not _are_digits(content.split(b" ", 1)[0]):
        return False
    return _are_digits(content.replace(b" ", b""))


def _are_digits(content: bytes) -> bool:
    points = np.frombuffer(content.decode().encode("utf-32-le"), np.dtype("<u4"))
    return bool((table().entries[points] & DIGIT).all())


def _state(units: int, shingle: int) -> State:
    if units >= shingle:
        return State.SIGNED
    return State.SHORT if units else State.EMPTY


def without_keys(scheme: Scheme, state: State) -> Fingerprint:
    """The fingerprint of a document without keys; ``state`` is the reason."""
    return Fingerprint(scheme.id, state, "", (), b"", 0, 0, samples=() if scheme.sample_mod else None)
