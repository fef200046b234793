"""What two documents are compared by, where that is not the shingles of their keys: feature sources by name.

A source is ``words``, ``ngrams(w)``, ``characters(n)``, ``sentences`` or ``values``, taken from the values of a field
(``title:values``) or of the fields of the index (``values``). Without more, each value of a field stands for itself;
``flatten(...)`` puts the values of a document together, one a line, as the keys do, and takes the features of that.
So ``words`` of a value are *one* feature, the whole sequence of its words, and ``flatten(words)`` are the single
words (Lingo4G's composite and flattened features).

    >>> str(parse("title:flatten( ngrams(3) )"))
    'title:flatten(ngrams(3))'
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain, pairwise

import numpy as np
import xxhash
from numpy.typing import NDArray

from es_neardupe.errors import SettingsError
from es_neardupe.keys import token_hashes, window_hashes
from es_neardupe.keys.mixing import GOLDEN, mix64
from es_neardupe.keys.scheme import MAX_SHINGLE
from es_neardupe.keys.text import chunks, normalize

__all__ = [
    "FeatureSource",
    "Kind",
    "Values",
    "characters",
    "combined",
    "hashed",
    "parse",
    "parse_all",
    "sentences",
    "wholes",
]

U64 = NDArray[np.uint64]

Values = Mapping["str | None", Sequence[str]]
"""The values of a document by field; under None those of the fields of the index, in their order."""

_SENTENCE = re.compile(
    r"[.!?\u2026\u3002\uff01\uff1f\n]"  # one set of characters first: that is what the search can skip to
    r"(?:(?<=[.!?\u2026])(?P<blanks>[\"'\u2019\u201d)\]]*\s+)|(?<=[\u3002\uff01\uff1f])(?P<nothing>)|(?<=\n)\s*\n)"
)
"""What lies between sentences: blanks after a full stop and the like, nothing after those of Chinese and Japanese,
or an empty line."""

_SOURCE = re.compile(r"(?P<name>\w+)(?:\(\s*(?P<size>-?[0-9]{1,9})\s*\))?")
_FLATTEN = re.compile(r"flatten\((?P<inner>.*)\)", re.DOTALL)


class Kind(str, Enum):
    """The kinds of features."""

    WORDS = "words"
    NGRAMS = "ngrams"
    CHARACTERS = "characters"
    SENTENCES = "sentences"
    VALUES = "values"


_SIZED = {Kind.NGRAMS: "w", Kind.CHARACTERS: "n"}
_KNOWN = ", ".join(f"{kind.value}({_SIZED[kind]})" if kind in _SIZED else kind.value for kind in Kind)


@dataclass(frozen=True, slots=True)
class FeatureSource:
    """One source. ``size`` is the w of ``ngrams`` and the n of ``characters``. Raises `SettingsError` below 1."""

    kind: Kind
    size: int = 1
    flatten: bool = False
    field: str | None = None
    """None: the fields of the index."""

    def __post_init__(self) -> None:
        if not 1 <= self.size <= MAX_SHINGLE:
            raise SettingsError(
                f"{self.kind.value}({self.size}): the number must be 1 or more, and at most {MAX_SHINGLE:,}."
            )

    def __str__(self) -> str:
        name = f"{self.kind.value}({self.size})" if self.kind in _SIZED else self.kind.value
        name = f"flatten({name})" if self.flatten else name
        return name if self.field is None else f"{self.field}:{name}"

    @property
    def by_tokens(self) -> bool:
        """Whether documents with the same tokens have the same features, whatever else differs."""
        return self.field is None and self.flatten and self.kind in (Kind.WORDS, Kind.NGRAMS, Kind.CHARACTERS)

    def features(self, documents: Sequence[Values]) -> list[U64]:
        """The features of each document, in order and with repeats: uint64[n].

        A value with fewer than ``size`` words or characters, but at least one, is one feature as a whole. Words and
        characters are those of the normalised text, with a blank between words; ``values`` are taken as they stand.
        """
        values = [list(document[self.field]) for document in documents]
        if self.flatten:
            values = [["\n".join(one)] if one else [] for one in values]
        found = self._of_values(list(chain.from_iterable(values)))
        ends = np.cumsum([0, *map(len, values)]).tolist()
        none = [np.empty(0, np.uint64)]
        return [np.concatenate(none + found[start:end]) for start, end in pairwise(ends)]

    def _of_values(self, values: list[str]) -> list[U64]:
        """The features of each value."""
        if self.kind is Kind.VALUES:
            return [hashed([value]) for value in values]
        if self.kind is Kind.SENTENCES:
            return [wholes(sentences(value)) for value in values]
        if self.kind is Kind.CHARACTERS:
            return [_windows(points, self.size) for points in characters(values)]
        if self.kind is Kind.WORDS and not self.flatten:
            return [wholes([value]) for value in values]
        return [_windows(tokens, self.size) for tokens in token_hashes(values)]


def combined(sources: Sequence[FeatureSource], documents: Sequence[Values]) -> list[U64]:
    """The features of each document by all sources, one source after the other (uint64[n]).

    The same words in two sources are different features, so that those of a title are none of a body's.
    """
    each = [source.features(documents) for source in sources]
    for number, found in enumerate(each[1:], 1):
        each[number] = [mix64(one + np.uint64(number) * GOLDEN) for one in found]
    return [np.concatenate(parts) for parts in zip(*each, strict=True)]


def hashed(strings: Sequence[str]) -> U64:
    """The hashes of strings as they stand: uint64 of their number."""
    digests = [xxhash.xxh3_64_intdigest(one.encode("utf-8", "surrogatepass")) for one in strings]
    return np.array(digests, np.uint64)


def _windows(hashes: U64, size: int) -> U64:
    """As the scheme makes shingles: a text that is shorter than a window is one."""
    return window_hashes(hashes, min(size, len(hashes))) if len(hashes) else hashes


def sentences(value: str) -> list[str]:
    """The sentences of a value, also those without words."""
    parts, start = [], 0
    for found in _SENTENCE.finditer(value):
        between = found.lastgroup or 0  # an empty line is between sentences as a whole
        parts.append(value[start : found.start(between)])
        start = found.end(between)
    return [*parts, value[start:]]


def wholes(texts: Sequence[str]) -> U64:
    """One hash for each text that has words: that of their whole sequence (uint64 of the number of these texts)."""
    contents = [content for chunk in chunks(texts) for content in normalize(chunk) if content]
    return np.array(list(map(xxhash.xxh3_64_intdigest, contents)), np.uint64)


def characters(values: Sequence[str]) -> list[U64]:
    """The hashes of the characters of each normalised value (uint64[n]), with one blank between two words."""
    contents = [content.decode() for chunk in chunks(values) for content in normalize(chunk)]
    encoded = [np.frombuffer(content.encode("utf-32-le"), np.dtype("<u4")) for content in contents]
    return [mix64(points.astype(np.uint64) + GOLDEN) for points in encoded]


def parse_all(specs: Sequence[str]) -> tuple[FeatureSource, ...]:
    """Read the sources that a user names. Raises `SettingsError`, also where one is named twice."""
    if isinstance(specs, str):
        raise SettingsError(f"features is a list of sources, not one: [{specs!r}].")
    sources = tuple(map(parse, specs))
    if len(set(sources)) < len(sources):
        raise SettingsError(f"A feature source is named twice: {', '.join(map(str, sources))}.")
    return sources


def parse(spec: str) -> FeatureSource:
    """Read ``SOURCE`` or ``FIELD:SOURCE``. Raises `SettingsError`."""
    field, separator, name = spec.rpartition(":")
    field, name = field.strip(), name.strip()
    if separator and not field:
        raise SettingsError(f"{spec!r} names no field before the colon.")
    flatten = _FLATTEN.fullmatch(name)
    found = _SOURCE.fullmatch(flatten["inner"].strip() if flatten else name)
    try:
        kind = Kind(found["name"] if found else name)
    except ValueError:
        raise SettingsError(
            f"There is no feature source {name!r}. Known: {_KNOWN}; each also as flatten(...), and for a field "
            f"as FIELD:SOURCE."
        ) from None
    size = found["size"] if found else None
    if (size is None) == (kind in _SIZED):
        example = f"{kind.value}(5)" if kind in _SIZED else kind.value
        raise SettingsError(f"{name!r} is no feature source: write {example}.")
    return FeatureSource(kind, int(size or 1), flatten is not None, field or None)
