"""The report of `shingles`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from es_neardupe.keys.shapes import shaped
from es_neardupe.keys.text import Range
from es_neardupe.keys.unit import Unit
from es_neardupe.records import State, one_line


class Token(NamedTuple):
    """A word of the normalised text."""

    text: str
    hash: str
    """64 bits as 16 hexadecimal digits."""
    characters: Range
    """Its place in the original text: the first character, and the one after the last."""


class Shingle(NamedTuple):
    """Consecutive tokens, or characters of the tokens without the blanks between them, or their shapes. Shingle number
    i begins with token, or character, number i."""

    units: Range
    """The first token or character, and the one after the last."""
    hash: str
    """64 bits as 16 hexadecimal digits. Equal shingles are one feature."""


class Slot(NamedTuple):
    """One byte of the signature."""

    minimum: str
    """v(p) of the scheme before its last mixing, 32 bits as 8 hexadecimal digits."""
    shingle: int
    """Number of the first shingle that has the minimum."""
    byte: int


class Band(NamedTuple):
    """A band key."""

    slots: Range
    """The first slot, and the one after the last."""
    key: str


class SampledKey(NamedTuple):
    """A sampled key."""

    shingle: int | None
    """Number of the first shingle with this hash; None if it is in a part that the preparation leaves out."""
    key: str


@dataclass(frozen=True)
class StoredKeys:
    """The keys that a document has, compared with those of its current text."""

    scheme: str | None
    """None: the document has no keys yet, or was marked as changed."""
    equal: bool
    differing: tuple[str, ...]
    """Names of the stored fields that are not those of the current text."""


@dataclass(frozen=True)
class ShinglesReport:
    """Every step from one text to its keys."""

    index: str | None
    """Concrete index of the document; None for a text."""
    name: str
    """Id of the document, or name of the file."""
    scheme: str
    settings: Mapping[str, int | str]
    """The settings of the scheme."""
    prepared: str | None
    """What the preparation of the scheme leaves of the text; None if there is none."""
    state: State
    content: str
    """Content hash; "" without tokens."""
    numeric: bool
    """Whether all tokens are numbers."""
    features: int
    """Number of different shingles."""
    tokens: tuple[Token, ...]
    shingles: tuple[Shingle, ...]
    slots: tuple[Slot, ...]
    signature: str
    """The bytes of the slots, in base64 as they are stored; "" without tokens."""
    bands: tuple[Band, ...]
    samples: tuple[SampledKey, ...] | None
    """None if the scheme has no sampled keys."""
    stored: StoredKeys | None
    """None for a text."""

    def __repr__(self) -> str:
        return one_line(
            self,
            name=self.name,
            scheme=self.scheme,
            state=self.state.value,
            tokens=len(self.tokens),
            equal=None if self.stored is None else self.stored.equal,
        )

    @property
    def unit(self) -> Unit:
        """What shingles consist of."""
        return Unit(self.settings.get("unit", Unit.WORD))

    @cached_property
    def _normalized(self) -> str:
        """What shingles of characters or shapes are parts of."""
        joined = "".join(token.text for token in self.tokens)
        return shaped(joined.encode()).decode() if self.unit is Unit.SHAPE else joined

    def words(self, shingle: int) -> str:
        """The text of the shingle with this number, normalised."""
        units = slice(*self.shingles[shingle].units)
        if self.unit is not Unit.WORD:
            return self._normalized[units]
        return " ".join(token.text for token in self.tokens[units])
