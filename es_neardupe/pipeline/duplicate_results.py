"""What a request for duplicates answers: plain records, a result for each stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from es_neardupe.overlaps import Overlaps
from es_neardupe.records import Address, Reference

__all__ = [
    "ContentResult",
    "DocumentPair",
    "DuplicatesReport",
    "Numbers",
    "OverlappingPair",
    "OverlapsResult",
    "PairList",
    "PairsResult",
    "SkippedGroup",
]

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
        return DocumentPair(self.references[left][:2], self.references[right][:2], similarity, said)


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


@dataclass(frozen=True, slots=True)
class OverlappingPair:
    """The text blocks that the documents of a pair share."""

    a: Address
    b: Address
    similarity: float
    overlaps: Overlaps


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


@dataclass(frozen=True)
class DuplicatesReport:
    """The results of all stages by their names, in the order in which they were run."""

    index: str
    """As it was named."""
    indices: tuple[str, ...]
    """The concrete indices behind the name."""
    stages: Mapping[str, PairsResult | ContentResult | OverlapsResult]
    seconds: float = field(compare=False)
