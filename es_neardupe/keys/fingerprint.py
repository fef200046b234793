"""Fingerprints of texts, which are stored with the documents. This is the hot path of `enrich`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat

import numpy as np
import xxhash

from es_neardupe.keys.bands import band_keys, sample_keys
from es_neardupe.keys.minhash import sign
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.shingles import feature_counts, shingles
from es_neardupe.keys.text import chunks, normalize
from es_neardupe.keys.unicode import DIGIT, table
from es_neardupe.records import Fingerprint, State


def fingerprints(texts: Sequence[str], scheme: Scheme, max_chars: int = 10_000_000) -> list[Fingerprint]:
    """The fingerprints of texts, in their order.

    A text of more than ``max_chars`` characters is not read: it gets the state ``too_large`` and no keys.
    The fingerprint of a text does not depend on its neighbours.
    """
    return list(stream_fingerprints(texts, scheme, max_chars))


def stream_fingerprints(texts: Sequence[str], scheme: Scheme, max_chars: int = 10_000_000) -> Iterator[Fingerprint]:
    """Like `fingerprints`, but yields the fingerprints of the first texts before the last texts are processed."""
    if isinstance(texts, str):
        raise TypeError("fingerprints takes a sequence of texts, not one text")
    allowed = [text if len(text) <= max_chars else "" for text in texts]
    made = (fingerprint for chunk in chunks(allowed) for fingerprint in _fingerprint_chunk(chunk, scheme))
    too_large = without_keys(scheme, State.TOO_LARGE)
    for text, fingerprint in zip(texts, made, strict=True):
        yield fingerprint if len(text) <= max_chars else too_large


def _fingerprint_chunk(texts: Sequence[str], scheme: Scheme) -> list[Fingerprint]:
    contents = normalize(texts)
    found = shingles(contents, scheme.shingle, scheme.unit)
    signed = sign(found, scheme)
    keys = band_keys(signed, scheme.bands, scheme.rows)
    tokens, features = found.tokens.tolist(), feature_counts(found).tolist()
    states = [_state(count, scheme.shingle) for count in found.units.tolist()]
    hashes = [xxhash.xxh3_128_hexdigest(content) for content in contents]
    octets, width = signed.tobytes(), scheme.permutations
    slots = [octets[start : start + width] for start in range(0, len(octets), width)]
    numeric = map(_only_numbers, contents)
    samples = sample_keys(found, scheme.sample_mod) if scheme.sample_mod else repeat(None)
    rows = zip(repeat(scheme.id), states, hashes, keys, slots, tokens, features, numeric, samples)
    return [Fingerprint(*row) if row[5] else without_keys(scheme, State.EMPTY) for row in rows]


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
