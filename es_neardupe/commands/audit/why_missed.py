"""Stage: true pairs -> whether the index finds them by its stored keys, and if not, why."""

from __future__ import annotations

import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_neardupe.errors import CorruptFingerprint
from es_neardupe.index.document_text import text_of
from es_neardupe.index.settings import Settings
from es_neardupe.index.stored_fields import decode, group_of, stored_fields
from es_neardupe.keys.bands import share_keys
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.records import Address, Fingerprint, FingerprintColumns, Hit, State, TextClasses

__all__ = [
    "FOUND",
    "LENGTHS",
    "Candidacy",
    "DocumentStates",
    "LossReason",
    "lengths",
    "lost",
    "script",
    "source_of",
    "states_of",
    "verdicts",
]


class LossReason(str, Enum):
    """Why the index does not find a pair. Of several reasons the first one counts."""

    UNPROCESSED = "unprocessed"
    """A document has no fingerprint of the index's scheme."""
    TOO_LARGE = "too_large"
    """A document was longer than ``max_chars``."""
    FAILED = "failed"
    """A document had no readable text when it was fingerprinted."""
    CORRUPT = "corrupt"
    """The stored fingerprint of a document cannot be read, or its keys are not those of its text."""
    STALE = "stale"
    """A document has another text than the one that was fingerprinted."""
    BUCKET = "bucket"
    """They share enough keys, but more texts do than the bucket limit lets be compared."""
    BANDS = "bands"
    """They share no key, or fewer than the scheme asks for: chance, which the detection probability describes."""


_EDGES = (20, 100, 500, 2000)

LENGTHS = ("under 20", "20 to 99", "100 to 499", "500 to 1,999", "2,000 and more")
"""Classes of texts by their number of tokens."""

_CHARS = 5000
"""Characters of a text that decide its script."""

_WIDTHS = ("FULLWIDTH", "HALFWIDTH")


def lengths(tokens: NDArray[np.int64]) -> NDArray[np.intp]:
    """The number of the class in `LENGTHS` of each count of tokens."""
    return np.searchsorted(_EDGES, tokens, side="right")


def script(text: str) -> str:
    """The script of most letters at the beginning of a text, such as ``Latin``, ``Han`` or ``Devanagari``.

    By the Unicode names of the letters; ``none`` for a text without any.
    """
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


Ints = NDArray[np.intp]

FOUND = 0
"""The verdict on a pair that the index finds; the other numbers are reasons, the first of them lowest."""

_CODES = {loss: place for place, loss in enumerate(LossReason, 1)}
_OF_STATES = {State.TOO_LARGE: LossReason.TOO_LARGE, State.FAILED: LossReason.FAILED}


@dataclass(frozen=True, slots=True)
class DocumentStates:
    """Documents with what decides whether they are found, as columns. n documents, b bands."""

    addresses: list[Address]
    condition: NDArray[np.int8]
    """`FOUND` where the stored fingerprint is that of the present text, else the reason. Shape (n,)."""
    altered: NDArray[np.bool_]
    """Whether the stored keys are readable, but not those of the text. Shape (n,)."""
    classes: Ints
    """Number of the class of equal texts, -1 where there is none. Shape (n,)."""
    keys: NDArray[np.uint64]
    """Stored band keys, 0 where there are none. Shape (n, b)."""
    tokens: NDArray[np.int64]
    """Of the present text. Shape (n,)."""
    lengths: Ints
    """Class of length. Shape (n,)."""
    scripts: NDArray[np.str_]
    """Script of the present text. Shape (n,)."""

    @classmethod
    def joined(cls, parts: Sequence[DocumentStates]) -> DocumentStates:
        """One after the other; at least one part."""
        columns = {name: np.concatenate([getattr(one, name) for one in parts]) for name in cls.__slots__[1:]}
        return cls([address for one in parts for address in one.addresses], **columns)


class Candidacy:
    """The candidate pairs of an index, to be asked for by the content of two documents."""

    def __init__(
        self, corpus: FingerprintColumns, classes: TextClasses, left: Ints, right: Ints, agree: int = 1
    ) -> None:
        """``left`` and ``right``: the candidate pairs of classes; ``agree``: the keys that such a pair shares."""
        self.agree = agree
        contents = corpus.content[classes.first]
        self._order = np.argsort(contents)
        self._contents = contents[self._order]
        self._size = len(classes)
        self._codes = np.sort(self.coded(left, right))

    def numbers(self, contents: Sequence[str]) -> Ints:
        """The class of each content hash, -1 for one that no document with keys has."""
        wanted = np.array([content.encode() for content in contents], "S32")
        place = np.searchsorted(self._contents, wanted)
        found = np.full(len(wanted), -1, np.intp)
        there = np.flatnonzero(place < self._size)
        there = there[self._contents[place[there]] == wanted[there]]
        found[there] = self._order[place[there]]
        return found

    def coded(self, a: Ints, b: Ints) -> NDArray[np.int64]:
        """A number for each pair of classes, in any order of the two."""
        return np.minimum(a, b).astype(np.int64) * self._size + np.maximum(a, b)

    def together(self, a: Ints, b: Ints) -> NDArray[np.bool_]:
        """Whether pairs of classes (none of them -1) are compared: the same text, or a candidate pair."""
        codes = self.coded(a, b)
        place = np.searchsorted(self._codes, codes)
        found: NDArray[np.bool_] = np.equal(a, b)
        there = np.flatnonzero(place < len(self._codes))
        found[there] |= self._codes[place[there]] == codes[there]
        return found


def source_of(settings: Settings) -> list[str]:
    """The fields that `states_of` reads of a document."""
    ours = ("scheme", "state", "content", "bands", "tokens", "features", "group")
    return [*settings.fields, *(f"{settings.prefix}.{name}" for name in ours)]


def states_of(hits: Sequence[Hit], settings: Settings, candidacy: Candidacy) -> DocumentStates:
    """Compare the stored fingerprint of each document with that of its present text."""
    texts = [text_of(hit.source, settings.fields) for hit in hits]
    present = fingerprints(texts, settings.scheme, max_chars=sys.maxsize)
    stored = [stored_fields(hit.source, settings.prefix) for hit in hits]
    condition = [_condition(*both) for both in zip(stored, present, strict=True)]
    usable = [loss is None for loss in condition]
    classes = candidacy.numbers([now.content if use else "" for now, use in zip(present, usable, strict=True)])
    keys = [decode(one).bands if use else () for one, use in zip(stored, usable, strict=True)]
    codes = np.array([FOUND if loss is None else _CODES[loss] for loss in condition], np.int8)
    # Written after the keys were read: the candidates do not know of it yet.
    codes[(codes == FOUND) & (classes < 0)] = _CODES[LossReason.UNPROCESSED]
    tokens = np.array([now.tokens for now in present], np.int64)
    return DocumentStates(
        addresses=[hit.address for hit in hits],
        condition=codes,
        altered=np.array([bool(own) and own != now.bands for own, now in zip(keys, present, strict=True)], np.bool_),
        classes=classes,
        keys=_joined(keys, settings.scheme.bands),
        tokens=tokens,
        lengths=lengths(tokens),
        scripts=np.array([script(text) for text in texts], np.str_),
    )


def _condition(stored: Mapping[str, Any], present: Fingerprint) -> LossReason | None:
    """Why a document can be in no pair that the index finds."""
    if stored.get("scheme") != present.scheme or group_of(stored) is None:
        return LossReason.UNPROCESSED
    try:
        there = decode(stored)
    except CorruptFingerprint:
        return LossReason.CORRUPT
    if there.state in _OF_STATES:
        return _OF_STATES[there.state]
    if there.content != present.content:
        return LossReason.STALE
    return None if len(there.bands) == len(present.bands) else LossReason.CORRUPT


def _joined(keys: Sequence[tuple[str, ...]], bands: int) -> NDArray[np.uint64]:
    octets = "".join("".join(one) if one else "\0" * (8 * bands) for one in keys).encode("latin-1")
    return np.frombuffer(octets, np.uint64).reshape(-1, bands)


def verdicts(candidacy: Candidacy, mine: DocumentStates, theirs: DocumentStates, a: Ints, b: Ints) -> NDArray[np.int8]:
    """Judge the pairs ``(mine[a[k]], theirs[b[k]])``: int8 of their number, `FOUND` or a reason."""
    first, second = mine.condition[a], theirs.condition[b]
    verdict = np.where((first == FOUND) | ((second != FOUND) & (second < first)), second, first)
    fine = np.flatnonzero(verdict == FOUND)
    together = candidacy.together(mine.classes[a[fine]], theirs.classes[b[fine]])
    apart = fine[~together]
    shared = share_keys(mine.keys[a[apart]], theirs.keys[b[apart]], candidacy.agree)
    altered = mine.altered[a[apart]] | theirs.altered[b[apart]]
    why = np.select(
        [altered, shared], [_CODES[LossReason.CORRUPT], _CODES[LossReason.BUCKET]], _CODES[LossReason.BANDS]
    )
    verdict[apart] = why.astype(np.int8)
    return verdict


def lost(verdict: NDArray[np.int8]) -> Iterator[tuple[LossReason, Ints]]:
    """The reasons that there are, each with the numbers of its pairs."""
    for loss, code in _CODES.items():
        if (numbers := np.flatnonzero(verdict == code)).size:
            yield loss, numbers
