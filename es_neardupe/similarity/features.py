"""Features of a document: a source over fields, runs of its elements, what they hold; one model, one evaluator.

A feature is an atom, or a composite: a sequence of atoms. `Values` makes atoms; `Words`, `Characters` and `Sentences`
make one composite of each value; `Ngrams` makes composites of composites' runs; `Flatten` opens composites. Features
are compared by their hashes, which do not depend on the field: a copy between two fields collides.

Requests compose them freely as JSON (`es_neardupe.commands.duplicates.request_plan`). Options name the usual ones by a
string such as ``title:flatten(ngrams(5))``: `parse` reads it, `spelled` writes it.
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
from es_neardupe.keys.shingles import first_of_equals, sort_each, span_hashes, token_runs
from es_neardupe.keys.text import CHUNK_CHARS, CHUNK_TEXTS, normalize, tokenize

__all__ = [
    "INDEXED",
    "Characters",
    "Document",
    "FeatureTree",
    "Flatten",
    "Leaf",
    "Ngrams",
    "RaggedFeatures",
    "Sentences",
    "Values",
    "Words",
    "combined",
    "decided_by_tokens",
    "describe",
    "distinct",
    "example",
    "fields_of",
    "hashed",
    "hashes",
    "named_fields",
    "parse",
    "parse_all",
    "sentences",
    "spelled",
]


Document = Mapping[str, Sequence[str]]
"""The values of a document by field; a field may be missing. Under `INDEXED` those of the fields of the index."""

INDEXED = ""
"""Stands for the fields of the index, in their order."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    """Features straight from the values of fields."""

    fields: tuple[str, ...]
    joined: bool = False
    """Whether all values of a document are taken as one, each in a line of its own."""


@dataclass(frozen=True, slots=True)
class Values(_Leaf):
    """Each value of each field as it stands: one feature that holds nothing else."""

    blank: bool = False
    """Whether a blank value is a feature too."""


@dataclass(frozen=True, slots=True)
class Words(_Leaf):
    """Each value as the sequence of its words: one composite a value, none of a value without words."""


@dataclass(frozen=True, slots=True)
class Characters(_Leaf):
    """Each value as the sequence of its characters, normalised, with one blank between two words."""


@dataclass(frozen=True, slots=True)
class Sentences(_Leaf):
    """Each value as the sequence of its sentences: one composite a value, none of a value without words."""


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


def _leaf(tree: FeatureTree) -> Leaf:
    return _leaf(tree.source) if isinstance(tree, Ngrams | Flatten) else tree


def fields_of(tree: FeatureTree) -> tuple[str, ...]:
    """The fields that the features are made of, in the order of the request."""
    return _leaf(tree).fields


def named_fields(trees: Sequence[FeatureTree]) -> list[str]:
    """The fields that features name, without `INDEXED`; each once."""
    return list(dict.fromkeys(field for tree in trees for field in fields_of(tree) if field != INDEXED))


def decided_by_tokens(tree: FeatureTree) -> bool:
    """Whether documents with the same tokens in the fields of the index have the same features in any case."""
    leaf = _leaf(tree)
    return leaf.joined and leaf.fields == (INDEXED,) and isinstance(leaf, Words | Characters)


def describe(tree: FeatureTree) -> str:
    """The features in words: "5-grams of words from field: title"."""
    return f"{_kind(tree)} from field{'s'[: len(fields_of(tree)) > 1]}: {', '.join(fields_of(tree))}"


def _kind(tree: FeatureTree) -> str:
    if isinstance(tree, Ngrams):
        return f"{tree.window}-grams of {_kind(tree.source)}"
    if isinstance(tree, Flatten):
        return f"flattened composites of {_kind(tree.source)}"
    return _LEAVES[type(tree)]


_SPELLED = re.compile(r"(?P<name>\w+)(?:\(\s*(?P<size>-?[0-9]{1,9})\s*\))?")
_FLATTENED = re.compile(r"flatten\((?P<inner>.*)\)", re.DOTALL)

_SOURCES: dict[str, Callable[[tuple[str, ...], bool, int], FeatureTree]] = {
    "words": lambda fields, joined, _: Flatten(Words(fields, joined)) if joined else Words(fields),
    "ngrams": lambda fields, joined, size: Ngrams(size, Words(fields, joined)),
    "characters": lambda fields, joined, size: Ngrams(size, Characters(fields, joined)),
    "sentences": lambda fields, joined, _: Flatten(Sentences(fields, joined)),
    "values": lambda fields, joined, _: Values(fields, joined, blank=True),
}
_SIZES = {"ngrams": "w", "characters": "n"}
_KNOWN = ", ".join(f"{name}({_SIZES[name]})" if name in _SIZES else name for name in _SOURCES)


def parse_all(specs: Sequence[str]) -> tuple[FeatureTree, ...]:
    """Read the features that a user names. Raises `SettingsError`, also where some are named twice."""
    if isinstance(specs, str):
        raise SettingsError(f"features is a list of sources, not one: [{specs!r}].")
    trees = tuple(map(parse, specs))
    if len(set(trees)) < len(trees):
        raise SettingsError(f"A feature source is named twice: {', '.join(map(spelled, trees))}.")
    return trees


def parse(spec: str) -> FeatureTree:
    """Read ``SOURCE`` or ``FIELD:SOURCE``. Raises `SettingsError`.

    ``flatten(...)`` takes all values of a document as one; and of ``words``, each word.
    """
    field, separator, name = spec.rpartition(":")
    field, name = field.strip(), name.strip()
    if separator and not field:
        raise SettingsError(f"{spec!r} names no field before the colon.")
    flattened = _FLATTENED.fullmatch(name)
    found = _SPELLED.fullmatch(flattened["inner"].strip() if flattened else name)
    kind, size = (found["name"], found["size"]) if found else (name, None)
    if kind not in _SOURCES:
        raise SettingsError(
            f"There is no feature source {name!r}. Known: {_KNOWN}; each also as flatten(...), and for a field "
            f"as FIELD:SOURCE."
        )
    if (size is None) == (kind in _SIZES):
        wanted = f"{kind}(5)" if kind in _SIZES else kind
        raise SettingsError(f"{name!r} is no feature source: write {wanted}.")
    if not 1 <= (number := int(size or 1)) <= MAX_SHINGLE:
        raise SettingsError(f"{kind}({number}): the number must be 1 or more, and at most {MAX_SHINGLE:,}.")
    return _SOURCES[kind]((field or INDEXED,), flattened is not None, number)


def spelled(tree: FeatureTree) -> str:
    """The features as `parse` reads them; in words (`describe`) if it has no string for them."""
    leaf, size = _leaf(tree), tree.window if isinstance(tree, Ngrams) else 1
    for kind, made in _SOURCES.items():
        if len(leaf.fields) == 1 and made(leaf.fields, leaf.joined, size) == tree:
            name = f"{kind}({size})" if kind in _SIZES else kind
            name = f"flatten({name})" if leaf.joined else name
            return name if leaf.fields == (INDEXED,) else f"{leaf.fields[0]}:{name}"
    return describe(tree)


class RaggedFeatures(NamedTuple):
    """The features of some documents, one document after the other."""

    values: U64
    """uint64[total]: their hashes, in the order of the document, with repeats."""
    bounds: Ints
    """int64[documents + 1]: document i has ``values[bounds[i]:bounds[i + 1]]``."""

    def each(self) -> list[U64]:
        """Those of each document."""
        return [self.values[start:end] for start, end in pairwise(self.bounds.tolist())]


class _Composites(NamedTuple):
    """Features that are sequences: runs of the elements, which may overlap; none is empty."""

    elements: U64
    starts: Ints
    ends: Ints
    bounds: Ints
    """int64[documents + 1], in features."""


def hashes(tree: FeatureTree, documents: Sequence[Document]) -> RaggedFeatures:
    """The hashes of the features of each document, in order and with repeats. What comes out of a document does not
    depend on the others. Words make the same hashes as the shingles of the scheme."""
    found = [_hashed(_made(tree, values)) for values in _pieces(documents, _leaf(tree))]
    sizes = [np.zeros(1, np.int64), *(np.diff(one.bounds) for one in found)]
    return RaggedFeatures(
        np.concatenate([np.empty(0, np.uint64), *(one.values for one in found)]), np.cumsum(np.concatenate(sizes))
    )


def distinct(found: RaggedFeatures) -> RaggedFeatures:
    """The different features of each document, sorted; ``found`` is sorted in place."""
    sort_each(found.values, found.bounds)
    first = first_of_equals(found.values, found.bounds)
    return RaggedFeatures(found.values[first], _edges(first)[found.bounds])


def combined(trees: Sequence[FeatureTree], documents: Sequence[Document]) -> RaggedFeatures:
    """The hashes of the features by several sources, of each document one source after the other.

    The same words in two sources are different features, so that those of a title are none of a body's.
    """
    first, *others = (hashes(tree, documents) for tree in trees)
    if not others:
        return first
    apart = (
        RaggedFeatures(mix64(one.values + np.uint64(n) * GOLDEN), one.bounds).each() for n, one in enumerate(others, 1)
    )
    parts = [np.concatenate(of_one) for of_one in zip(first.each(), *apart, strict=True)]
    return RaggedFeatures(np.concatenate([np.empty(0, np.uint64), *parts]), _edges([len(one) for one in parts]))


def _pieces(documents: Sequence[Document], leaf: Leaf) -> Iterator[list[list[str]]]:
    """The values of each document, in pieces whose work stays in the processor's cache."""
    piece: list[list[str]] = []
    chars = 0
    for document in documents:
        values = _values(document, leaf)
        more = sum(map(len, values))
        if piece and (len(piece) == CHUNK_TEXTS or chars + more > CHUNK_CHARS):
            yield piece
            piece, chars = [], 0
        piece.append(values)
        chars += more
    if piece:
        yield piece


def _values(document: Document, leaf: Leaf) -> list[str]:
    """The values that the features of a document are made of."""
    values = [value for field in leaf.fields for value in document.get(field, ())]
    if leaf.joined and values:
        values = ["\n".join(values)]
    if isinstance(leaf, Values) and not leaf.blank:
        values = [value for value in values if value.strip()]
    return values


def _made(tree: FeatureTree, documents: list[list[str]]) -> RaggedFeatures | _Composites:
    """The features of documents that are lists of values."""
    if isinstance(tree, Flatten):
        return _opened(_made(tree.source, documents))
    if isinstance(tree, Ngrams):
        return _runs(tree.window, _made(tree.source, documents))
    values = [value for document in documents for value in document]
    bounds = _edges([len(document) for document in documents])
    if isinstance(tree, Values):
        return RaggedFeatures(hashed(values), bounds)
    elements, edges = _elements(tree, values)
    there = np.diff(edges) > 0
    return _Composites(elements, edges[:-1][there], edges[1:][there], _edges(there)[bounds])


def hashed(strings: Sequence[str]) -> U64:
    """The hashes of strings as they stand: uint64 of their number."""
    digests = [xxhash.xxh3_64_intdigest(one.encode("utf-8", "surrogatepass")) for one in strings]
    return np.array(digests, np.uint64)


def _elements(tree: Words | Characters | Sentences, values: list[str]) -> tuple[U64, Ints]:
    """The elements of all values, and where those of each begin."""
    if isinstance(tree, Words):
        return token_runs(normalize(values))
    if isinstance(tree, Characters):
        each = [content.decode().encode("utf-32-le") for content in normalize(values)]
        points = np.frombuffer(b"".join(each), np.dtype("<u4"))
        return mix64(points.astype(np.uint64) + GOLDEN), _edges([len(one) // 4 for one in each])
    parts = [sentences(value) for value in values]
    contents = iter(normalize(list(chain.from_iterable(parts))))
    worded = [list(filter(None, islice(contents, len(part)))) for part in parts]
    digests = list(map(xxhash.xxh3_64_intdigest, chain.from_iterable(worded)))
    return np.array(digests, np.uint64), _edges([len(one) for one in worded])


_SENTENCE = re.compile(
    r"[.!?\u2026\u3002\uff01\uff1f\n]"  # one set of characters first: that is what the search can skip to
    r"(?:(?<=[.!?\u2026])(?P<blanks>[\"'\u2019\u201d)\]]*\s+)|(?<=[\u3002\uff01\uff1f])(?P<nothing>)|(?<=\n)\s*\n)"
)
"""What lies between sentences: blanks after a full stop and the like, nothing after those of Chinese and Japanese,
or an empty line."""


def sentences(value: str) -> list[str]:
    """The sentences of a value, also those without words."""
    parts, start = [], 0
    for found in _SENTENCE.finditer(value):
        between = found.lastgroup or 0  # an empty line is between sentences as a whole
        parts.append(value[start : found.start(between)])
        start = found.end(between)
    return [*parts, value[start:]]


def _edges(sizes: Sequence[int] | Flags | Ints) -> Ints:
    return np.concatenate(([0], np.cumsum(np.asarray(sizes, np.int64))))


def _opened(made: RaggedFeatures | _Composites) -> RaggedFeatures:
    if isinstance(made, RaggedFeatures):
        return made
    sizes = made.ends - made.starts
    edges = _edges(sizes)
    places = np.arange(edges[-1]) + np.repeat(made.starts - edges[:-1], sizes)
    return RaggedFeatures(made.elements[places], edges[made.bounds])


def _runs(window: int, made: RaggedFeatures | _Composites) -> _Composites:
    """The runs of each composite; of flattened features, of each document."""
    if isinstance(made, RaggedFeatures):
        there = np.diff(made.bounds) > 0
        made = _Composites(made.values, made.bounds[:-1][there], made.bounds[1:][there], _edges(there))
    counts = np.maximum(made.ends - made.starts - (window - 1), 1)
    edges = _edges(counts)
    starts = np.arange(edges[-1]) + np.repeat(made.starts - edges[:-1], counts)
    ends = np.minimum(starts + window, np.repeat(made.ends, counts))
    return _Composites(made.elements, starts, ends, edges[made.bounds])


def _hashed(made: RaggedFeatures | _Composites) -> RaggedFeatures:
    if isinstance(made, RaggedFeatures):
        return made
    return RaggedFeatures(span_hashes(made.elements, made.starts, made.ends), made.bounds)


def example(tree: FeatureTree, document: Document, hash: int) -> str | None:
    """The text of the first feature of a document that has this hash, None where it has none (any more)."""
    found = np.flatnonzero(hashes(tree, [document]).values == np.uint64(hash))
    if not len(found):
        return None
    chosen = next(islice(_texts(tree, _values(document, _leaf(tree))), int(found[0]), None))
    return chosen if isinstance(chosen, str) else _joint(tree).join(chosen)


def _joint(tree: FeatureTree) -> str:
    """The text between the elements of a composite."""
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
        yield from values
    else:
        yield from filter(None, (_parts(tree, value) for value in values))


def _parts(tree: Words | Characters | Sentences, value: str) -> list[str]:
    """The elements of a value."""
    if isinstance(tree, Sentences):
        return [one.strip() for one in sentences(value) if tokenize(one)]
    return tokenize(value) if isinstance(tree, Words) else list(" ".join(tokenize(value)))
