"""Features of documents: trees of sources, n-grams and flattening, and their hashes.

A feature is an atom, or a composite: a sequence of atoms. `Values` produces atoms; `Words`, `Characters`, `Sentences`
and `Paragraphs` produce one composite per value; `Ngrams` produces composites from runs of elements; `Flatten` replaces
composites by their elements; `Combine` makes one atom of all features of a document. Features are compared by their
hashes. These do not depend on the field, so equal text in two fields has equal features, unless the fields are kept
``apart``.

Requests compose features freely as JSON (`es_neardupe.commands.duplicates.request_plan`). Options name the usual ones
by a string such as ``title:flatten(ngrams(5))``: `parse` reads it, `spelled` writes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
import xxhash

from es_neardupe.errors import SettingsError
from es_neardupe.keys.arrays import U64, Flags, Ints
from es_neardupe.keys.hashing import GOLDEN, mix64
from es_neardupe.keys.scheme import MAX_SHINGLE
from es_neardupe.keys.shingles import character_runs, distinct_runs, span_hashes, text_runs
from es_neardupe.keys.text import CHUNK_CHARS, CHUNK_TEXTS, normalize, tokenize

Document = Mapping[str, Sequence[str]]
"""The values of a document by field; a field may be missing. `INDEXED` has the values of the fields of the index."""

INDEXED = ""
"""Name for the fields of the index, in their order."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    """Features made directly from the values of fields."""

    fields: tuple[str, ...]
    joined: bool = False
    """Whether all values of a document are joined to one, separated by line breaks."""
    apart: bool = False
    """Whether equal values of two fields have different features."""


@dataclass(frozen=True, slots=True)
class Values(_Leaf):
    """Each unchanged value of each field: one atom."""

    blank: bool = False
    """Whether a blank value is a feature too."""


@dataclass(frozen=True, slots=True)
class Words(_Leaf):
    """Each value as the sequence of its words: one composite per value, none for a value without words."""


@dataclass(frozen=True, slots=True)
class Characters(_Leaf):
    """Each value as the sequence of the characters of its words, normalised and without blanks between words."""


@dataclass(frozen=True, slots=True)
class Sentences(_Leaf):
    """Each value as the sequence of its sentences: one composite per value, none for a value without words."""


@dataclass(frozen=True, slots=True)
class Paragraphs(_Leaf):
    """Each value as the sequence of its paragraphs: one composite per value, none for a value without words."""


@dataclass(frozen=True, slots=True)
class Ngrams:
    """Every run of ``window`` elements of each composite of the source; a shorter composite is one run.

    Runs of a flattened source are taken from the whole sequence of the document. Raises `SettingsError` for a window
    below 1, and for entire values and combinations, which have no elements.
    """

    window: int
    source: FeatureTree

    def __post_init__(self) -> None:
        if self.window < 1:
            raise SettingsError(f"An n-gram has 1 element or more, not {self.window}.")
        if isinstance(self.source, Values | Combine):
            raise SettingsError(
                "Entire values and combinations cannot be split into n-grams: use words, characters, sentences or "
                "paragraphs."
            )


@dataclass(frozen=True, slots=True)
class Flatten:
    """The elements of the composites of the source; atoms are unchanged."""

    source: FeatureTree


@dataclass(frozen=True, slots=True)
class Combine:
    """One atom per document: the sets of features of all sources together. Two documents share it if they have the
    same features of each source. A document without features of one of them has none."""

    sources: tuple[FeatureTree, ...]


_Composite: TypeAlias = Words | Characters | Sentences | Paragraphs
Leaf: TypeAlias = Values | _Composite
FeatureTree: TypeAlias = Leaf | Ngrams | Flatten | Combine

_LEAVES: dict[type[Leaf], str] = {
    Values: "entire values",
    Words: "words",
    Characters: "characters",
    Sentences: "sentences",
    Paragraphs: "paragraphs",
}


def _leaves(tree: FeatureTree) -> Iterator[Leaf]:
    if isinstance(tree, Combine):
        for source in tree.sources:
            yield from _leaves(source)
    elif isinstance(tree, Ngrams | Flatten):
        yield from _leaves(tree.source)
    else:
        yield tree


def fields_of(tree: FeatureTree) -> tuple[str, ...]:
    """The distinct fields of the features, in the order of the request."""
    return tuple(dict.fromkeys(field for leaf in _leaves(tree) for field in leaf.fields))


def named_fields(trees: Sequence[FeatureTree]) -> list[str]:
    """The distinct fields that the features name, without `INDEXED`."""
    return list(dict.fromkeys(field for tree in trees for field in fields_of(tree) if field != INDEXED))


def decided_by_tokens(tree: FeatureTree) -> bool:
    """Whether documents with the same tokens in the fields of the index always have the same features."""
    return all(
        leaf.joined and leaf.fields == (INDEXED,) and isinstance(leaf, Words | Characters) for leaf in _leaves(tree)
    )


def describe(tree: FeatureTree) -> str:
    """The features in words: "5-grams of words from field: title"."""
    if isinstance(tree, Combine):
        return f"combinations of {' and '.join(map(_part, tree.sources))}"
    if isinstance(tree, Flatten) and isinstance(tree.source, Combine):  # an atom already
        return describe(tree.source)
    fields = fields_of(tree)
    kept_apart = " (each field apart)" if any(leaf.apart for leaf in _leaves(tree)) else ""
    return f"{_kind(tree)} from field{'s'[: len(fields) > 1]}: {', '.join(fields)}{kept_apart}"


def _part(tree: FeatureTree) -> str:
    """The description of a source inside a combination."""
    return f"({describe(tree)})" if isinstance(tree, Combine) else describe(tree)


def _kind(tree: FeatureTree) -> str:
    if isinstance(tree, Ngrams):
        return f"{tree.window}-grams of {_kind(tree.source)}"
    if isinstance(tree, Flatten):
        return f"flattened composites of {_kind(tree.source)}"
    if isinstance(tree, Combine):
        return f"({describe(tree)})"
    return _LEAVES[type(tree)]


_SPELLED = re.compile(r"(?P<name>\w+)(?:\(\s*(?P<size>-?[0-9]{1,9})\s*\))?")
_FLATTENED = re.compile(r"flatten\((?P<inner>.*)\)", re.DOTALL)

_SOURCES: dict[str, Callable[[tuple[str, ...], bool, int], FeatureTree]] = {
    "words": lambda fields, joined, _: Flatten(Words(fields, joined)) if joined else Words(fields),
    "ngrams": lambda fields, joined, size: Ngrams(size, Words(fields, joined)),
    "characters": lambda fields, joined, size: Ngrams(size, Characters(fields, joined)),
    "sentences": lambda fields, joined, _: Flatten(Sentences(fields, joined)),
    "paragraphs": lambda fields, joined, _: Flatten(Paragraphs(fields, joined)),
    "values": lambda fields, joined, _: Values(fields, joined, blank=True),
}
_SIZES = {"ngrams": "w", "characters": "n"}
_KNOWN = ", ".join(f"{name}({_SIZES[name]})" if name in _SIZES else name for name in _SOURCES)


def parse_all(specs: Sequence[str]) -> tuple[FeatureTree, ...]:
    """Parse a list of feature sources. Raises `SettingsError` for an invalid or repeated source."""
    if isinstance(specs, str):
        raise SettingsError(f"features is a list of sources, not one: [{specs!r}].")
    trees = tuple(map(parse, specs))
    if len(set(trees)) < len(trees):
        raise SettingsError(f"A feature source is named twice: {', '.join(map(spelled, trees))}.")
    return trees


def parse(spec: str) -> FeatureTree:
    """Parse ``SOURCE`` or ``FIELD:SOURCE``. Raises `SettingsError`.

    ``flatten(...)`` joins all values of a document to one; ``flatten(words)`` has each word as a feature.
    """
    field, separator, name = spec.rpartition(":")
    field, name = field.strip(), name.strip()
    if separator and not field:
        raise SettingsError(f"{spec!r} has no field before the colon.")
    flattened = _FLATTENED.fullmatch(name)
    match = _SPELLED.fullmatch(flattened["inner"].strip() if flattened else name)
    kind, size = (match["name"], match["size"]) if match else (name, None)
    if kind not in _SOURCES:
        raise SettingsError(
            f"Unknown feature source {name!r}. Known: {_KNOWN}; each also as flatten(SOURCE) and, for one field, "
            f"as FIELD:SOURCE."
        )
    if (size is None) == (kind in _SIZES):
        correct = f"{kind}(5)" if kind in _SIZES else kind
        raise SettingsError(f"{name!r} is not a feature source: write {correct}.")
    if not 1 <= (number := int(size or 1)) <= MAX_SHINGLE:
        raise SettingsError(f"{kind}({number}): the number must be 1 or more, and at most {MAX_SHINGLE:,}.")
    return _SOURCES[kind]((field or INDEXED,), flattened is not None, number)


def spelled(tree: FeatureTree) -> str:
    """The features as a string for `parse`; if there is none, in words (`describe`)."""
    leaf, size = next(_leaves(tree)), tree.window if isinstance(tree, Ngrams) else 1
    for kind, made in _SOURCES.items():
        if len(leaf.fields) == 1 and made(leaf.fields, leaf.joined, size) == tree:
            name = f"{kind}({size})" if kind in _SIZES else kind
            name = f"flatten({name})" if leaf.joined else name
            return name if leaf.fields == (INDEXED,) else f"{leaf.fields[0]}:{name}"
    return describe(tree)


class RaggedFeatures(NamedTuple):
    """The features of several documents, one document after the other."""

    values: U64
    """uint64[total]: the hashes of the features, in the order of the document, with repeats."""
    bounds: Ints
    """int64[documents + 1]: document i has ``values[bounds[i]:bounds[i + 1]]``."""

    def each(self) -> list[U64]:
        """The hashes of each document."""
        return [self.values[start:end] for start, end in pairwise(self.bounds.tolist())]


class _Composites(NamedTuple):
    """Features that are sequences: non-empty runs of elements, which may overlap."""

    elements: U64
    starts: Ints
    ends: Ints
    bounds: Ints
    """int64[documents + 1]: document i has the runs ``bounds[i]`` to ``bounds[i + 1] - 1``."""


def hashes(tree: FeatureTree, documents: Sequence[Document]) -> RaggedFeatures:
    """The hashes of the features of each document, in order and with repeats.

    They do not depend on the other documents. N-grams of words and of characters have the same hashes as the shingles
    of the scheme.
    """
    parts = [_hashed(_features(tree, chunk)) for chunk in _chunks(documents, fields_of(tree))]
    sizes = [np.zeros(1, np.int64), *(np.diff(one.bounds) for one in parts)]
    return RaggedFeatures(
        np.concatenate([np.empty(0, np.uint64), *(one.values for one in parts)]), np.cumsum(np.concatenate(sizes))
    )


def distinct(found: RaggedFeatures) -> RaggedFeatures:
    """The distinct features of each document, sorted."""
    return RaggedFeatures(*distinct_runs(*found))


def combined(trees: Sequence[FeatureTree], documents: Sequence[Document]) -> RaggedFeatures:
    """The hashes of the features of several sources, for each document one source after the other.

    The same words in two sources are different features: words of a title do not match words of a body.
    """
    first, *others = (hashes(tree, documents) for tree in trees)
    if not others:
        return first
    apart = (
        RaggedFeatures(mix64(one.values + np.uint64(n) * GOLDEN), one.bounds).each() for n, one in enumerate(others, 1)
    )
    parts = [np.concatenate(of_one) for of_one in zip(first.each(), *apart, strict=True)]
    return RaggedFeatures(np.concatenate([np.empty(0, np.uint64), *parts]), _edges([len(one) for one in parts]))


def _chunks(documents: Sequence[Document], fields: Sequence[str]) -> Iterator[list[Document]]:
    """The documents in chunks whose values fit into the processor's cache."""
    chunk: list[Document] = []
    chars = 0
    for document in documents:
        more = sum(len(value) for field in fields for value in document.get(field, ()))
        if chunk and (len(chunk) == CHUNK_TEXTS or chars + more > CHUNK_CHARS):
            yield chunk
            chunk, chars = [], 0
        chunk.append(document)
        chars += more
    if chunk:
        yield chunk


def _values(document: Document, leaf: Leaf, fields: Sequence[str]) -> list[str]:
    """The values of some fields of a document from which the features are made."""
    values = [value for field in fields for value in document.get(field, ())]
    if leaf.joined and values:
        values = ["\n".join(values)]
    if isinstance(leaf, Values) and not leaf.blank:
        values = [value for value in values if value.strip()]
    return values


def _features(tree: FeatureTree, documents: Sequence[Document]) -> RaggedFeatures | _Composites:
    """The features of a chunk of documents."""
    if isinstance(tree, Combine):
        return _combinations([_hashed(_features(source, documents)) for source in tree.sources])
    if isinstance(tree, Flatten):
        return _flattened(_features(tree.source, documents))
    if isinstance(tree, Ngrams):
        return _runs(tree.window, _features(tree.source, documents))
    apart = [(field,) for field in tree.fields] if tree.apart else [tree.fields]
    each = [[_values(document, tree, fields) for fields in apart] for document in documents]
    values = [value for parts in each for part in parts for value in part]
    bounds = _edges([sum(map(len, parts)) for parts in each])
    salts = np.zeros(0, np.uint64)
    if tree.apart:
        salts = np.repeat(np.tile(hashed(tree.fields), len(each)), [len(part) for parts in each for part in parts])
    if isinstance(tree, Values):
        return RaggedFeatures(_salted(hashed(values), salts), bounds)
    elements, edges = _elements(tree, values)
    if tree.apart:
        elements = _salted(elements, np.repeat(salts, np.diff(edges)))
    filled = np.diff(edges) > 0
    return _Composites(elements, edges[:-1][filled], edges[1:][filled], _edges(filled)[bounds])


def _salted(hashes: U64, salts: U64) -> U64:
    """Other hashes for each salt; without salts, the same.

    The salt is mixed: in a plain sum, the value a of field b would be the value b of field a.
    """
    return mix64(hashes + mix64(salts)) if len(salts) else hashes


def _combinations(sources: Sequence[RaggedFeatures]) -> RaggedFeatures:
    """The hash of the sets of features of all sources together, of each document that has features of each."""
    sets = [distinct(one) for one in sources]
    filled = np.logical_and.reduce([np.diff(one.bounds) > 0 for one in sets])
    each = [span_hashes(one.values, one.bounds[:-1][filled], one.bounds[1:][filled]) for one in sets]
    edges = np.arange(0, len(each) * int(filled.sum()) + 1, len(each))
    return RaggedFeatures(span_hashes(np.stack(each, axis=1).reshape(-1), edges[:-1], edges[1:]), _edges(filled))


def hashed(strings: Sequence[str]) -> U64:
    """The hashes of unchanged strings: uint64[strings]."""
    digests = [xxhash.xxh3_64_intdigest(one.encode("utf-8", "surrogatepass")) for one in strings]
    return np.array(digests, np.uint64)


def _elements(tree: _Composite, values: list[str]) -> tuple[U64, Ints]:
    """The elements of all values, and where those of each value begin."""
    if isinstance(tree, Words):
        return text_runs(values)
    if isinstance(tree, Characters):
        return character_runs(normalize(values))
    parts = [_SPLIT[type(tree)](value) for value in values]
    contents = iter(normalize(list(chain.from_iterable(parts))))
    worded = [list(filter(None, islice(contents, len(part)))) for part in parts]
    digests = list(map(xxhash.xxh3_64_intdigest, chain.from_iterable(worded)))
    return np.array(digests, np.uint64), _edges([len(one) for one in worded])


_SENTENCE = re.compile(
    r"[.!?\u2026\u3002\uff01\uff1f\n]"  # begins with a set of characters, to which the search can skip
    r"(?:(?<=[.!?\u2026])(?P<blanks>[\"'\u2019\u201d)\]]*\s+)|(?<=[\u3002\uff01\uff1f])(?P<nothing>)|(?<=\n)\s*\n)"
)
"""Separators of sentences: white space after a full stop or similar, nothing after those of Chinese and Japanese, or an
empty line."""


def sentences(value: str) -> list[str]:
    """The sentences of a value, including those without words."""
    parts, start = [], 0
    for match in _SENTENCE.finditer(value):
        separator = match.lastgroup or 0  # an empty line is a separator as a whole
        parts.append(value[start : match.start(separator)])
        start = match.end(separator)
    return [*parts, value[start:]]


_PARAGRAPH = re.compile(r"\u2029|\n\s*\n")
"""Separators of paragraphs: an empty line, or the paragraph separator of Unicode."""


def paragraphs(value: str) -> list[str]:
    """The paragraphs of a value, including those without words. Line breaks inside them are white space."""
    return _PARAGRAPH.split(value)


_SPLIT: dict[type[_Composite], Callable[[str], list[str]]] = {Sentences: sentences, Paragraphs: paragraphs}


def _edges(sizes: Sequence[int] | Flags | Ints) -> Ints:
    return np.concatenate(([0], np.cumsum(np.asarray(sizes, np.int64))))


def _flattened(source: RaggedFeatures | _Composites) -> RaggedFeatures:
    if isinstance(source, RaggedFeatures):
        return source
    sizes = source.ends - source.starts
    edges = _edges(sizes)
    positions = np.arange(edges[-1]) + np.repeat(source.starts - edges[:-1], sizes)
    return RaggedFeatures(source.elements[positions], edges[source.bounds])


def _runs(window: int, source: RaggedFeatures | _Composites) -> _Composites:
    """The runs of each composite, or of each document if the source is flattened."""
    if isinstance(source, RaggedFeatures):
        filled = np.diff(source.bounds) > 0
        source = _Composites(source.values, source.bounds[:-1][filled], source.bounds[1:][filled], _edges(filled))
    counts = np.maximum(source.ends - source.starts - (window - 1), 1)
    edges = _edges(counts)
    starts = np.arange(edges[-1]) + np.repeat(source.starts - edges[:-1], counts)
    ends = np.minimum(starts + window, np.repeat(source.ends, counts))
    return _Composites(source.elements, starts, ends, edges[source.bounds])


def _hashed(features: RaggedFeatures | _Composites) -> RaggedFeatures:
    if isinstance(features, RaggedFeatures):
        return features
    return RaggedFeatures(span_hashes(features.elements, features.starts, features.ends), features.bounds)


def example(tree: FeatureTree, document: Document, hash: int) -> str | None:
    """The text of the first feature of a document with this hash; None if the document has no such feature (any
    more)."""
    positions = np.flatnonzero(hashes(tree, [document]).values == np.uint64(hash))
    if not len(positions):
        return None
    chosen = next(islice(_texts(tree, document), int(positions[0]), None))
    if isinstance(chosen, str):
        return chosen
    return ("" if isinstance(next(_leaves(tree)), Characters) else " ").join(chosen)


def _texts(tree: FeatureTree, document: Document) -> Iterator[str | list[str]]:
    """The texts of the features in the order of `hashes`: an atom as a string, a composite as a list."""
    if isinstance(tree, Combine):
        each = [
            [one if isinstance(one, str) else " ".join(one) for one in _texts(source, document)]
            for source in tree.sources
        ]
        if all(each):
            yield " + ".join(", ".join(dict.fromkeys(some)) for some in each)
    elif isinstance(tree, Flatten):
        for one in _texts(tree.source, document):
            yield from [one] if isinstance(one, str) else one
    elif isinstance(tree, Ngrams):
        inner = _texts(tree.source, document)
        if isinstance(tree.source, Flatten):
            inner = iter([[one for one in inner if isinstance(one, str)]])
        for one in inner:
            for start in range(max(len(one) - tree.window + 1, len(one) > 0)):
                yield list(one[start : start + tree.window])
    else:
        values = _values(document, tree, tree.fields)
        yield from values if isinstance(tree, Values) else filter(None, (_parts(tree, value) for value in values))


def _parts(tree: _Composite, value: str) -> list[str]:
    """The elements of a value."""
    if isinstance(tree, Sentences | Paragraphs):
        return [one.strip() for one in _SPLIT[type(tree)](value) if tokenize(one)]
    return tokenize(value) if isinstance(tree, Words) else list("".join(tokenize(value)))
