"""Features of a document as a request composes them: a source over fields, runs of its elements, what they hold.

A feature is an atom, or a composite: a sequence of atoms. `Values` makes atoms; `Words`, `Characters` and `Sentences`
make one composite of each value; `Ngrams` makes composites of composites' runs; `Flatten` opens composites. Features
are compared by their hashes, which do not depend on the field: a copy between two fields collides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple, TypeAlias

import numpy as np
import xxhash
from numpy.typing import NDArray

from es_neardupe.errors import SettingsError
from es_neardupe.feature_sources import characters, hashed, sentences
from es_neardupe.keys.mixing import U64
from es_neardupe.keys.shingling import first_of_equals, sort_each, span_hashes, token_runs
from es_neardupe.keys.text import CHUNK_CHARS, CHUNK_TEXTS, normalize

__all__ = [
    "Characters",
    "Document",
    "FeatureTree",
    "Flatten",
    "Ngrams",
    "Ragged",
    "Sentences",
    "Values",
    "Words",
    "describe",
    "distinct",
    "fields_of",
    "hashes",
]

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
