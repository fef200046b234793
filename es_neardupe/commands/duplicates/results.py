"""Results of a request for duplicates: plain records, one for each stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from es_neardupe.commands.duplicates.request_plan import DuplicatesPlan
from es_neardupe.display_text import escaped
from es_neardupe.index.document_text import text_of
from es_neardupe.index.shown_fields import read_at_once
from es_neardupe.keys.shingles import token_hashes
from es_neardupe.records import Address, Reference, one_line
from es_neardupe.server.bulk import chunked
from es_neardupe.server.client import Client
from es_neardupe.server.search import search
from es_neardupe.similarity.alignment import DEFAULT_MIN_WORDS, literal
from es_neardupe.similarity.comparison import Block, blocks_of, side_of

__all__ = [
    "ContentResult",
    "DocumentPair",
    "DuplicatesReport",
    "Numbers",
    "OverlappingPair",
    "OverlapsResult",
    "PairList",
    "PairOverlaps",
    "PairsResult",
    "SkippedGroup",
    "overlaps",
    "page_fields",
    "page_texts",
]


Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class PairOverlaps:
    """The common passages of two texts."""

    blocks: tuple[Block, ...]
    """By their place in a. No two share a word, in a or in b."""
    words: int
    """Words in all blocks."""
    html_a: str
    """Text a, escaped, with block n (counted from 1) in ``<mark class="overlap" data-block="n">``."""
    html_b: str
    """Text b likewise, with the same numbers."""


def overlaps(text_a: str, text_b: str, min_words: int = DEFAULT_MIN_WORDS) -> PairOverlaps:
    """The blocks of at least ``min_words`` equal words, found by greedy string tiling (`alignment.literal`): the
    longest first, and each word is in one block at most. Identical texts are one block, however short.

    Words are equal after normalisation: case and punctuation do not count. Raises `SettingsError` for ``min_words``
    below 1, `InputError` for a text longer than `comparison.MAX_CHARS`.
    """
    a, b = side_of("a", text_a), side_of("b", text_b)
    hashes_a, hashes_b = token_hashes([text_a, text_b])
    found = literal(hashes_a, hashes_b, min_words)
    blocks = blocks_of(a, b, found)
    marked = (_marked(text_a, [one.a for one in blocks]), _marked(text_b, [one.b for one in blocks]))
    return PairOverlaps(blocks, found.common, *marked)


def _marked(text: str, places: Sequence[Range]) -> str:
    """The whole text; ``places`` are those of the blocks in the order of their numbers, and do not overlap."""
    return "".join(_parts(text, sorted((place, number) for number, place in enumerate(places, 1))))


def _parts(text: str, places: Iterable[tuple[Range, int]]) -> Iterable[str]:
    at = 0
    for (start, end), number in places:
        yield escaped(text[at:start])
        yield f'<mark class="overlap" data-block="{number}">{escaped(text[start:end])}</mark>'
        at = end
    yield escaped(text[at:])


Numbers = NDArray[np.intp]
Diagnostics = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class DocumentPair:
    """Two documents, ``a < b`` by id and then index, and their similarity by the validation of the request."""

    a: Address
    b: Address
    similarity: float
    explanation: str | None = None


@dataclass(frozen=True, eq=False)
class PairList(Sequence[DocumentPair]):
    """Pairs, most similar first, equal ones by address: made as they are looked at, since there may be millions."""

    def __repr__(self) -> str:
        return one_line(self, pairs=len(self))

    references: Sequence[Reference] = field(repr=False)
    """The documents in scope, in pairs or not."""
    left: Numbers = field(repr=False)
    """The number of the one document of each pair; ``left < right``."""
    right: Numbers = field(repr=False)
    similarity: NDArray[np.float64]
    """Of each pair, in this order; float64 of their number."""
    _explained: Callable[[float, int, int], str] | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.left)

    @overload
    def __getitem__(self, place: int) -> DocumentPair: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[DocumentPair]: ...
    def __getitem__(self, place: int | slice) -> DocumentPair | Sequence[DocumentPair]:
        if isinstance(place, slice):
            return [self._pair(k) for k in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        return self._pair(place % len(self))

    def __iter__(self) -> Iterator[DocumentPair]:
        return map(self._pair, range(len(self)))

    def _pair(self, place: int) -> DocumentPair:
        left, right = int(self.left[place]), int(self.right[place])
        similarity = float(self.similarity[place])
        said = None if self._explained is None else self._explained(similarity, left, right)
        return DocumentPair(Address(*self.references[left][:2]), Address(*self.references[right][:2]), similarity, said)


@dataclass(frozen=True, slots=True)
class SkippedGroup:
    """A feature that more documents share than ``maxHashGroupSize``: it made no candidates."""

    size: int
    """Documents that have it."""
    documents: tuple[Address, ...]
    """The first of them by id and then index."""
    example: str | None
    """The feature as one of them writes it; None where none of those has it any more."""


@dataclass(frozen=True)
class PairsResult:
    """What a stage of type ``documentPairs:duplicates`` found."""

    pairs: PairList
    diagnostics: Diagnostics
    """Heading -> what is counted -> number or words. Candidate pairs = pairs passing + pairs failing + out of scope
    pairs."""
    skipped_groups: tuple[SkippedGroup, ...]
    """The largest ones; the diagnostics have the number of all."""

    def __repr__(self) -> str:
        return one_line(self, pairs=len(self.pairs), skipped_groups=len(self.skipped_groups))


@dataclass(frozen=True)
class ContentResult:
    """What a stage of type ``documentContent`` read."""

    documents: tuple[Mapping[str, Any], ...]
    """``index``, ``id`` and ``fields`` of each, in the order of their best pairs."""
    cut: int
    """Values that were longer than their ``maxValueLength``."""
    missing: int
    """Documents deleted meanwhile."""
    not_read: int
    """Documents beyond the limit."""
    seconds: float = field(compare=False)

    def __repr__(self) -> str:
        return one_line(self, documents=len(self.documents), cut=self.cut, missing=self.missing, not_read=self.not_read)


@dataclass(frozen=True, slots=True)
class OverlappingPair:
    """The text blocks that the documents of a pair share."""

    a: Address
    b: Address
    similarity: float
    overlaps: PairOverlaps


@dataclass(frozen=True)
class OverlapsResult:
    """What a stage of type ``documentPairs:overlaps`` found, in the order of the pairs."""

    pairs: tuple[OverlappingPair, ...]
    missing: int
    """Pairs of which a document was deleted meanwhile."""
    too_long: int
    """Pairs with a text too long to be compared word by word."""
    not_compared: int
    """Pairs beyond the limit."""
    seconds: float = field(compare=False)

    def __repr__(self) -> str:
        return one_line(
            self,
            pairs=len(self.pairs),
            missing=self.missing,
            too_long=self.too_long,
            not_compared=self.not_compared,
        )


@dataclass(frozen=True)
class DuplicatesReport:
    """The results of all stages by their names, in the order in which they were run."""

    index: str
    """As it was named."""
    indices: tuple[str, ...]
    """The concrete indices behind the name."""
    stages: Mapping[str, PairsResult | ContentResult | OverlapsResult]
    seconds: float = field(compare=False)

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            stages=list(self.stages),
        )


_BATCH = 20
"""Documents whose texts are read in one request: a text may have megabytes, and only its beginning is kept."""


def page_texts(
    client: Client, plan: DuplicatesPlan, pairs: Iterable[DocumentPair], characters: int
) -> dict[Address, str]:
    """The texts of the documents in the pairs: the values of the fields of the plan, one a line, and of these the first
    ``characters``; one more than the page shows, so that it knows that there are more.

    A deleted document is left out; a document without these fields has the text "".
    """
    sources = _sources(client, pairs, plan.fields, _BATCH)
    return {address: text_of(source, plan.fields)[:characters] for address, source in sources}


_FIELD_CHARACTERS = 1000
"""Characters that are kept of the value of a field: more than a page shows."""


def page_fields(client: Client, pairs: Iterable[DocumentPair], names: Sequence[str]) -> dict[Address, dict[str, str]]:
    """The beginnings of some fields of the documents in the pairs, without deleted documents."""
    sources = _sources(client, pairs, names, read_at_once(names))
    return {
        address: {name: text_of(source, [name])[:_FIELD_CHARACTERS] for name in names} for address, source in sources
    }


def _sources(
    client: Client, pairs: Iterable[DocumentPair], fields: Sequence[str], batch: int
) -> Iterator[tuple[Address, Mapping[str, Any]]]:
    """The fields of the documents in the pairs, found by searches, which need no routing."""
    wanted: dict[str, dict[str, None]] = {}
    for pair in pairs:
        for index, id in (pair.a, pair.b):
            wanted.setdefault(index, {})[id] = None
    for index, ids in wanted.items():
        for chunk in chunked(ids, batch):
            body = {"size": len(chunk), "query": {"ids": {"values": list(chunk)}}, "_source": list(fields)}
            for hit in search(client, index, body)["hits"]["hits"]:
                yield Address(hit["_index"], hit["_id"]), hit.get("_source", {})
