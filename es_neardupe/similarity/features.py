"""Features of a document as a request composes them: a source over fields, runs of its elements, what they hold.

A feature is an atom, or a composite: a sequence of atoms. `Values` makes atoms; `Words`, `Characters` and `Sentences`
make one composite of each value; `Ngrams` makes composites of composites' runs; `Flatten` opens composites. Features
are compared by their hashes, which do not depend on the field: a copy between two fields collides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain, islice, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import xxhash
from numpy.typing import NDArray

from es_neardupe.errors import SettingsError
from es_neardupe.keys.hashing import GOLDEN, U64, mix64
from es_neardupe.keys.scheme import MAX_SHINGLE
from es_neardupe.keys.shingles import first_of_equals, sort_each, span_hashes, token_hashes, token_runs, window_hashes
from es_neardupe.keys.text import CHUNK_CHARS, CHUNK_TEXTS, chunks, normalize, tokenize

__all__ = [
    "Characters",
    "Document",
    "FeatureSource",
    "FeatureTree",
    "FieldValues",
    "Flatten",
    "Kind",
    "Ngrams",
    "Ragged",
    "Sentences",
    "Values",
    "Words",
    "characters",
    "combined",
    "describe",
    "distinct",
    "example",
    "fields_of",
    "hashed",
    "hashes",
    "parse",
    "parse_all",
    "sentences",
    "wholes",
]


FieldValues = Mapping["str | None", Sequence[str]]
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

    def features(self, documents: Sequence[FieldValues]) -> list[U64]:
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


def combined(sources: Sequence[FeatureSource], documents: Sequence[FieldValues]) -> list[U64]:
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


Ints = NDArray[np.int64]
Document = Mapping[str, Sequence[str]]
"""The values of a document by field; a field may be missing."""


@dataclass(frozen=True, slots=True)
class Values:
    """Each value of each field as it stands: one feature that holds nothing else; none of a blank value."""

    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Words:
    """Each value as the sequence of its words: one composite a value, none of a value without words."""

    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Characters:
    """Each value as the sequence of its characters, normalised, with one blank between two words."""

    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sentences:
    """Each value as the sequence of its sentences: one composite a value, none of a value without words."""

    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ngrams:
    """Every run of ``window`` elements of each composite of the source; a shorter composite is one run as a whole.

    Where the source is flattened, the runs go over the whole sequence of the document. Raises `SettingsError` for a
    window below 1, and for a source of entire values, which hold nothing to make runs of.
    """

    window: int
    source: FeatureTree

    def __post_init__(self) -> None:
        if self.window < 1:
            raise SettingsError(f"An n-gram has 1 element or more, not {self.window}.")
        if isinstance(self.source, Values):
            raise SettingsError("Entire values hold nothing to make n-grams of: take words, characters or sentences.")


@dataclass(frozen=True, slots=True)
class Flatten:
    """What the composites of the source hold, opened one level; what is no composite stays as it is."""

    source: FeatureTree


Leaf: TypeAlias = Values | Words | Characters | Sentences
FeatureTree: TypeAlias = Leaf | Ngrams | Flatten

_LEAVES: dict[type[Leaf], str] = {
    Values: "entire values",
    Words: "words",
    Characters: "characters",
    Sentences: "sentences",
}


class Ragged(NamedTuple):
    """The features of some documents, one document after the other."""

    values: U64
    """uint64[total]: their hashes, in the order of the document, with repeats."""
    bounds: Ints
    """int64[documents + 1]: document i has ``values[bounds[i]:bounds[i + 1]]``."""


class _Composites(NamedTuple):
    """Features that are sequences: runs of the elements, which may overlap; none is empty."""

    elements: U64
    starts: Ints
    ends: Ints
    bounds: Ints
    """int64[documents + 1], in features."""


def fields_of(tree: FeatureTree) -> tuple[str, ...]:
    """The fields that the features are made of, in the order of the request."""
    return fields_of(tree.source) if isinstance(tree, Ngrams | Flatten) else tree.fields


def describe(tree: FeatureTree) -> str:
    """The features in words: "5-grams of words from field: title"."""
    return f"{_kind(tree)} from field{'s'[: len(fields_of(tree)) > 1]}: {', '.join(fields_of(tree))}"


def _kind(tree: FeatureTree) -> str:
    if isinstance(tree, Ngrams):
        return f"{tree.window}-grams of {_kind(tree.source)}"
    if isinstance(tree, Flatten):
        return f"flattened composites of {_kind(tree.source)}"
    return _LEAVES[type(tree)]


def hashes(tree: FeatureTree, documents: Sequence[Document]) -> Ragged:
    """The hashes of the features of each document, in order and with repeats. What comes out of a document does not
    depend on the others. Words make the same hashes as the shingles of the scheme."""
    found = [_hashed(_made(tree, values)) for values in _pieces(documents, fields_of(tree))]
    sizes = [np.zeros(1, np.int64), *(np.diff(one.bounds) for one in found)]
    return Ragged(
        np.concatenate([np.empty(0, np.uint64), *(one.values for one in found)]), np.cumsum(np.concatenate(sizes))
    )


def distinct(found: Ragged) -> Ragged:
    """The different features of each document, sorted; ``found`` is sorted in place."""
    sort_each(found.values, found.bounds)
    first = first_of_equals(found.values, found.bounds)
    return Ragged(found.values[first], _edges(first)[found.bounds])


def _pieces(documents: Sequence[Document], fields: Sequence[str]) -> Iterator[list[list[str]]]:
    """The values of each document, in pieces whose work stays in the processor's cache."""
    piece: list[list[str]] = []
    chars = 0
    for document in documents:
        values = [value for field in fields for value in document.get(field, ())]
        more = sum(map(len, values))
        if piece and (len(piece) == CHUNK_TEXTS or chars + more > CHUNK_CHARS):
            yield piece
            piece, chars = [], 0
        piece.append(values)
        chars += more
    if piece:
        yield piece


def _made(tree: FeatureTree, documents: list[list[str]]) -> Ragged | _Composites:
    """The features of documents that are lists of values."""
    if isinstance(tree, Flatten):
        return _opened(_made(tree.source, documents))
    if isinstance(tree, Ngrams):
        return _runs(tree.window, _made(tree.source, documents))
    if isinstance(tree, Values):
        documents = [[value for value in document if value.strip()] for document in documents]
    values = [value for document in documents for value in document]
    bounds = _edges([len(document) for document in documents])
    if isinstance(tree, Values):
        return Ragged(hashed(values), bounds)
    elements, edges = _elements(tree, values)
    there = np.diff(edges) > 0
    return _Composites(elements, edges[:-1][there], edges[1:][there], _edges(there)[bounds])


def _elements(tree: Words | Characters | Sentences, values: list[str]) -> tuple[U64, Ints]:
    """The elements of all values, and where those of each begin."""
    if isinstance(tree, Words):
        return token_runs(normalize(values))
    if isinstance(tree, Characters):
        each = characters(values)
        return np.concatenate([np.empty(0, np.uint64), *each]), _edges([len(one) for one in each])
    parts = [sentences(value) for value in values]
    contents = iter(normalize(list(chain.from_iterable(parts))))
    worded = [list(filter(None, islice(contents, len(part)))) for part in parts]
    digests = list(map(xxhash.xxh3_64_intdigest, chain.from_iterable(worded)))
    return np.array(digests, np.uint64), _edges([len(one) for one in worded])


def _edges(sizes: Sequence[int] | NDArray[np.bool_] | Ints) -> Ints:
    return np.concatenate(([0], np.cumsum(np.asarray(sizes, np.int64))))


def _opened(made: Ragged | _Composites) -> Ragged:
    if isinstance(made, Ragged):
        return made
    sizes = made.ends - made.starts
    edges = _edges(sizes)
    places = np.arange(edges[-1]) + np.repeat(made.starts - edges[:-1], sizes)
    return Ragged(made.elements[places], edges[made.bounds])


def _runs(window: int, made: Ragged | _Composites) -> _Composites:
    """The runs of each composite; of flattened features, of each document."""
    if isinstance(made, Ragged):
        there = np.diff(made.bounds) > 0
        made = _Composites(made.values, made.bounds[:-1][there], made.bounds[1:][there], _edges(there))
    counts = np.maximum(made.ends - made.starts - (window - 1), 1)
    edges = _edges(counts)
    starts = np.arange(edges[-1]) + np.repeat(made.starts - edges[:-1], counts)
    ends = np.minimum(starts + window, np.repeat(made.ends, counts))
    return _Composites(made.elements, starts, ends, edges[made.bounds])


def _hashed(made: Ragged | _Composites) -> Ragged:
    if isinstance(made, Ragged):
        return made
    return Ragged(span_hashes(made.elements, made.starts, made.ends), made.bounds)


def example(tree: FeatureTree, document: Document, hash: int) -> str | None:
    """The text of the first feature of a document that has this hash, None where it has none (any more)."""
    found = np.flatnonzero(hashes(tree, [document]).values == np.uint64(hash))
    if not len(found):
        return None
    values = [value for field in fields_of(tree) for value in document.get(field, ())]
    chosen = next(islice(_texts(tree, values), int(found[0]), None))
    return chosen if isinstance(chosen, str) else _joint(tree).join(chosen)


def _joint(tree: FeatureTree) -> str:
    """What stands between the elements of a composite."""
    if isinstance(tree, Ngrams | Flatten):
        return _joint(tree.source)
    return "" if isinstance(tree, Characters) else " "


def _texts(tree: FeatureTree, values: Sequence[str]) -> Iterator[str | list[str]]:
    """The features in the order of `hashes`, as texts: an atom as one, a composite as a list."""
    if isinstance(tree, Flatten):
        for one in _texts(tree.source, values):
            yield from [one] if isinstance(one, str) else one
    elif isinstance(tree, Ngrams):
        inner = _texts(tree.source, values)
        if isinstance(tree.source, Flatten):
            inner = iter([[one for one in inner if isinstance(one, str)]])
        for one in inner:
            for start in range(max(len(one) - tree.window + 1, len(one) > 0)):
                yield list(one[start : start + tree.window])
    elif isinstance(tree, Values):
        yield from filter(str.strip, values)
    else:
        yield from filter(None, (_parts(tree, value) for value in values))


def _parts(tree: Words | Characters | Sentences, value: str) -> list[str]:
    """The elements of a value."""
    if isinstance(tree, Sentences):
        return [one.strip() for one in sentences(value) if tokenize(one)]
    return tokenize(value) if isinstance(tree, Words) else list(" ".join(tokenize(value)))
