"""Steps of ``shingles``: from a text to its keys, and the report."""

from __future__ import annotations

from binascii import b2a_base64
from collections.abc import Mapping
from typing import Any

import numpy as np

from es_neardupe.commands.shingles.report import Band, SampledKey, Shingle, ShinglesReport, Slot, StoredKeys, Token
from es_neardupe.errors import InputError
from es_neardupe.index.stored_fields import encode
from es_neardupe.keys.arrays import U64
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.keys.minhash import slot_minima
from es_neardupe.keys.prepare.preparation import Text, length
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.shingles import features, token_hashes, window_hashes
from es_neardupe.keys.text import tokenize
from es_neardupe.options import DEFAULT_MAX_CHARS
from es_neardupe.records import Fingerprint

STORED = ("scheme", "state", "content", "bands", "samples", "signature", "tokens", "features", "numeric")
"""The stored fields that the text decides."""


def fingerprint_of(text: Text, scheme: Scheme) -> Fingerprint:
    """The fingerprint of a text. Raises `InputError` for one that is too long."""
    if length(text) > DEFAULT_MAX_CHARS:
        raise InputError(f"The text has {length(text):,} characters, the maximum is {DEFAULT_MAX_CHARS:,}. Shorten it.")
    (fingerprint,) = fingerprints([text], scheme)
    return fingerprint


def report(text: Text, fingerprint: Fingerprint, scheme: Scheme, name: str) -> ShinglesReport:
    """Every step from a text to its keys."""
    placed = scheme.preparation.placed(text)
    prepared = placed.prepared
    (hashes,) = token_hashes([prepared])
    (units,) = token_hashes([prepared], scheme.unit)
    size = min(scheme.shingle, max(len(units), 1))
    windows = window_hashes(units, size)
    words = zip(tokenize(prepared), hashes.tolist(), placed.spans.tolist(), strict=True)
    return ShinglesReport(
        index=None,
        name=name,
        scheme=scheme.id,
        settings=scheme.to_dict(),
        prepared=prepared if scheme.preparation else None,
        state=fingerprint.state,
        content=fingerprint.content,
        numeric=fingerprint.numeric,
        features=fingerprint.features,
        tokens=tuple(Token(word, _hex(value), (start, end)) for word, value, (start, end) in words),
        shingles=tuple(Shingle((first, first + size), _hex(value)) for first, value in enumerate(windows.tolist())),
        slots=_slots(windows, fingerprint, scheme),
        signature=b2a_base64(fingerprint.signature, newline=False).decode("ascii"),
        bands=tuple(
            Band((band * scheme.rows, (band + 1) * scheme.rows), key) for band, key in enumerate(fingerprint.bands)
        ),
        samples=_samples(text, windows, fingerprint, scheme),
        stored=None,
    )


def _hex(value: int) -> str:
    return f"{value:016x}"


def _slots(windows: U64, fingerprint: Fingerprint, scheme: Scheme) -> tuple[Slot, ...]:
    if not len(windows):
        return ()
    minima, places = slot_minima(windows, scheme)
    rows = zip(minima.tolist(), places.tolist(), fingerprint.signature, strict=True)
    return tuple(Slot(f"{minimum:08x}", place, byte) for minimum, place, byte in rows)


def _samples(text: Text, windows: U64, fingerprint: Fingerprint, scheme: Scheme) -> tuple[SampledKey, ...] | None:
    """The sampled keys in the order of the features that they are made of."""
    if fingerprint.samples is None:
        return None
    places = {value: len(windows) - 1 - back for back, value in enumerate(windows[::-1].tolist())}
    (whole,) = features([scheme.preparation.whole.text(text)], scheme.shingle, scheme.unit)
    chosen = whole[whole % np.uint64(scheme.sample_mod) == 0].tolist() if fingerprint.samples else []
    return tuple(SampledKey(places.get(value), key) for value, key in zip(chosen, fingerprint.samples, strict=True))


def compared(stored: Mapping[str, Any], fingerprint: Fingerprint) -> StoredKeys:
    """The stored fields of a document, compared with those that its text gives."""
    made = encode(fingerprint, "")
    differing = tuple(name for name in STORED if _value(stored.get(name)) != _value(made.get(name)))
    scheme = stored.get("scheme")
    return StoredKeys(scheme if isinstance(scheme, str) else None, not differing, differing)


def _value(value: Any) -> Any:
    """A value for comparison: null, false, 0 and a missing value are equal, and the order of a list does not matter."""
    return sorted(map(str, value)) or None if isinstance(value, list) else value or None
