"""Verdicts on true pairs: whether the index finds them by its stored keys, and if not, why."""

from __future__ import annotations

import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_neardupe.errors import CorruptFingerprint
from es_neardupe.index.document_text import values_of
from es_neardupe.index.settings import Settings
from es_neardupe.index.stored_fields import decode, group_of, stored_fields
from es_neardupe.keys.arrays import U64, Bytes, Flags, Ints, Numbers, Positions
from es_neardupe.keys.bands import share_keys
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.keys.text import packed_hashes
from es_neardupe.records import Address, Fingerprint, FingerprintColumns, Hit, Reference, State, TextClasses


class LossReason(str, Enum):
    """Why the index does not find a pair. If there are several reasons, the first one counts."""

    UNPROCESSED = "unprocessed"
    """A document has no fingerprint of the index's scheme."""
    TOO_LARGE = "too_large"
    """A document was longer than ``max_chars``."""
    FAILED = "failed"
    """A document had no readable text when it was fingerprinted."""
    CORRUPT = "corrupt"
    """The stored fingerprint of a document cannot be read, or its keys are not those of its text."""
    STALE = "stale"
    """The text of a document has changed since it was fingerprinted."""
    BUCKET = "bucket"
    """Both share enough keys, but more texts than ``max_bucket`` share these keys."""
    BANDS = "bands"
    """Both share no key, or fewer than the scheme requires: chance, as described by the detection probability."""


_EDGES = (20, 100, 500, 2000)

LENGTHS = ("under 20", "20 to 99", "100 to 499", "500 to 1,999", "2,000 and more")
"""Classes of length, by the number of tokens."""

_CHARS = 5000
"""Characters at the beginning of a text that decide its script."""

_WIDTHS = ("FULLWIDTH", "HALFWIDTH")


def lengths(tokens: Ints) -> Positions:
    """The number of the class in `LENGTHS` of each count of tokens."""
    return np.searchsorted(_EDGES, tokens, side="right")


def script(text: str) -> str:
    """The script of most letters at the beginning of a text, such as ``Latin``, ``Han`` or ``Devanagari``, from the
    Unicode names of the letters; ``none`` for a text without letters."""
    letters = Counter(char for char in text[:_CHARS] if char.isalpha())
    scripts: Counter[str] = Counter()
    for char, number in letters.items():
        scripts[_script(char)] += number
    return min(scripts, key=lambda name: (-scripts[name], name), default="none")


@lru_cache(maxsize=10_000)
def _script(char: str) -> str:
    first, *others = unicodedata.name(char, "UNNAMED").split(" ")
    word = others[0] if first in _WIDTHS else first
    return "Han" if word == "CJK" else word.title()


FOUND = 0
"""The verdict on a pair that the index finds; other numbers are reasons, in the order of `LossReason`."""

_CODES = {loss: place for place, loss in enumerate(LossReason, 1)}
_REASONS = {State.TOO_LARGE: LossReason.TOO_LARGE, State.FAILED: LossReason.FAILED}


@dataclass(frozen=True, slots=True)
class DocumentStates:
    """Documents with the properties that decide whether they are found, as columns. n documents, b bands."""

    references: list[Reference]
    condition: NDArray[np.int8]
    """`FOUND` if the stored fingerprint is that of the current text, else the reason. Shape (n,)."""
    altered: Flags
    """Whether the stored keys are readable, but not those of the text. Shape (n,)."""
    content: Bytes
    """Hash of the current text, empty unless its keys are stored. Shape (n,)."""
    classes: Positions
    """Number of the class of equal texts, -1 if there is none. Shape (n,)."""
    keys: U64
    """Stored band keys, 0 if there are none. Shape (n, b)."""
    tokens: Ints
    """Number of tokens of the current text. Shape (n,)."""
    lengths: Positions
    """Number of the class in `LENGTHS`. Shape (n,)."""
    scripts: NDArray[np.str_]
    """Script of the current text. Shape (n,)."""

    @classmethod
    def joined(cls, parts: Sequence[DocumentStates]) -> DocumentStates:
        """All parts (at least one) in one table."""
        columns = {name: np.concatenate([getattr(one, name) for one in parts]) for name in cls.__slots__[1:]}
        return cls([reference for one in parts for reference in one.references], **columns)

    def address(self, number: int) -> Address:
        """Index and id of a document."""
        return Address(*self.references[number][:2])

    def among(self, candidacy: Candidacy) -> DocumentStates:
        """The documents with their classes among the candidates of an index. Those that were written after its keys
        were read are not among them."""
        classes = candidacy.numbers(self.content)
        unknown = (self.condition == FOUND) & (classes < 0)
        condition = np.where(unknown, _CODES[LossReason.UNPROCESSED], self.condition).astype(np.int8)
        return replace(self, classes=classes, condition=condition)


class Candidacy:
    """The candidate pairs of an index, for lookup by the contents of two documents."""

    def __init__(
        self, corpus: FingerprintColumns, classes: TextClasses, left: Numbers, right: Numbers, agree: int = 1
    ) -> None:
        """``left`` and ``right``: the candidate pairs of classes; ``agree``: the minimum of keys that a pair shares."""
        self.agree = agree
        contents = corpus.content[classes.first]
        self._order = np.argsort(contents)
        self._contents = contents[self._order]
        self._size = len(classes)
        self._codes = np.sort(self.coded(left, right))

    def numbers(self, hashes: Bytes) -> Positions:
        """The class of each content hash, -1 for one that no document with keys has."""
        place = np.searchsorted(self._contents, hashes)
        numbers = np.full(len(hashes), -1, np.intp)
        known = np.flatnonzero(place < self._size)
        known = known[self._contents[place[known]] == hashes[known]]
        numbers[known] = self._order[place[known]]
        return numbers

    def coded(self, a: Numbers, b: Numbers) -> Ints:
        """A number for each unordered pair of classes."""
        return np.minimum(a, b).astype(np.int64) * self._size + np.maximum(a, b)

    def together(self, a: Positions, b: Positions) -> Flags:
        """Whether pairs of classes (none of them -1) have the same text or are candidate pairs."""
        codes = self.coded(a, b)
        place = np.searchsorted(self._codes, codes)
        together: Flags = np.equal(a, b)
        inside = np.flatnonzero(place < len(self._codes))
        together[inside] |= self._codes[place[inside]] == codes[inside]
        return together


def source_of(settings: Settings) -> list[str]:
    """The fields of a document that `states_of` needs."""
    names = ("scheme", "state", "content", "bands", "tokens", "features", "group")
    return [*settings.fields, *(f"{settings.prefix}.{name}" for name in names)]


def states_of(hits: Sequence[Hit], settings: Settings) -> DocumentStates:
    """Compare the stored fingerprint of each document with that of its current text. Without classes."""
    texts = [values_of(hit.source, settings.fields) for hit in hits]
    current = fingerprints(texts, settings.scheme, max_chars=sys.maxsize)
    stored = [stored_fields(hit.source, settings.prefix) for hit in hits]
    condition = [_condition(*both) for both in zip(stored, current, strict=True)]
    usable = [loss is None for loss in condition]
    keys = [decode(one).bands if use else () for one, use in zip(stored, usable, strict=True)]
    codes = np.array([FOUND if loss is None else _CODES[loss] for loss in condition], np.int8)
    tokens = np.array([now.tokens for now in current], np.int64)
    return DocumentStates(
        references=[hit.reference for hit in hits],
        condition=codes,
        altered=np.array([bool(old) and old != now.bands for old, now in zip(keys, current, strict=True)], np.bool_),
        content=packed_hashes([now.content if use else "" for now, use in zip(current, usable, strict=True)]),
        classes=np.full(len(hits), -1, np.intp),
        keys=_joined(keys, settings.scheme.bands),
        tokens=tokens,
        lengths=lengths(tokens),
        scripts=np.array([script("\n".join(values)) for values in texts], np.str_),
    )


def _condition(stored: Mapping[str, Any], current: Fingerprint) -> LossReason | None:
    """Why the index cannot find any pair with a document; None if it can."""
    if stored.get("scheme") != current.scheme or group_of(stored) is None:
        return LossReason.UNPROCESSED
    try:
        fingerprint = decode(stored)
    except CorruptFingerprint:
        return LossReason.CORRUPT
    if fingerprint.state in _REASONS:
        return _REASONS[fingerprint.state]
    if fingerprint.content != current.content:
        return LossReason.STALE
    return None if len(fingerprint.bands) == len(current.bands) else LossReason.CORRUPT


def _joined(keys: Sequence[tuple[str, ...]], bands: int) -> U64:
    octets = "".join("".join(one) if one else "\0" * (8 * bands) for one in keys).encode("latin-1")
    return np.frombuffer(octets, np.uint64).reshape(-1, bands)


def verdicts(
    candidacy: Candidacy, one: DocumentStates, other: DocumentStates, a: Positions, b: Positions
) -> NDArray[np.int8]:
    """The verdict on each pair ``(one[a[k]], other[b[k]])``, `FOUND` or a reason; int8 of the same length."""
    first, second = one.condition[a], other.condition[b]
    verdict = np.where((first == FOUND) | ((second != FOUND) & (second < first)), second, first)
    findable = np.flatnonzero(verdict == FOUND)
    together = candidacy.together(one.classes[a[findable]], other.classes[b[findable]])
    apart = findable[~together]
    shared = share_keys(one.keys[a[apart]], other.keys[b[apart]], candidacy.agree)
    altered = one.altered[a[apart]] | other.altered[b[apart]]
    reason = np.select(
        [altered, shared], [_CODES[LossReason.CORRUPT], _CODES[LossReason.BUCKET]], _CODES[LossReason.BANDS]
    )
    verdict[apart] = reason.astype(np.int8)
    return verdict


def lost(verdict: NDArray[np.int8]) -> Iterator[tuple[LossReason, Positions]]:
    """Each reason that occurs, with the numbers of its pairs."""
    for loss, code in _CODES.items():
        if (numbers := np.flatnonzero(verdict == code)).size:
            yield loss, numbers
