"""Results of a request for duplicates, one record per stage, and the text blocks and texts of their pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, overload

import numpy as np

from es_neardupe.commands.duplicates.diagnostics import PairsDiagnostics
from es_neardupe.commands.duplicates.request_plan import DuplicatesPlan
from es_neardupe.display_text import html_escaped
from es_neardupe.index.document_text import text_of
from es_neardupe.keys.arrays import Floats, Ints, Numbers
from es_neardupe.keys.shingles import token_hashes
from es_neardupe.keys.text import contents
from es_neardupe.records import Address, DocumentsInScope, Reference, one_line
from es_neardupe.report_parts import WriteCounts
from es_neardupe.server.bulk import chunked
from es_neardupe.server.client import Client
from es_neardupe.server.search import find
from es_neardupe.similarity.alignment import DEFAULT_MIN_WORDS, literal
from es_neardupe.similarity.comparison import Block, blocks_of, side_of
from es_neardupe.tables import Cell, Table, Tabular

Span = tuple[int, int]
"""Start and end of a block, in characters."""


@dataclass(frozen=True, slots=True)
class PairOverlaps:
    """Text blocks that two texts share."""

    blocks: tuple[Block, ...]
    """In the order of their position in a. Blocks do not overlap, neither in a nor in b."""
    words: int
    """Number of words in all blocks."""
    html_a: str
    """Text a, escaped, with block n (counted from 1) in ``<mark class="overlap" data-block="n">``."""
    html_b: str
    """Text b with the same blocks marked."""


def overlaps(text_a: str, text_b: str, min_words: int = DEFAULT_MIN_WORDS) -> PairOverlaps:
    """The blocks of at least ``min_words`` equal words, found by greedy string tiling (`alignment.literal`): longest
    blocks first, each word in at most one block. Identical texts are one block of any length.

    Words are compared after normalisation, so case and punctuation do not count. Raises `SettingsError` for
    ``min_words`` below 1, `InputError` for a text longer than `comparison.MAX_CHARS`.
    """
    a, b = side_of("a", text_a), side_of("b", text_b)
    hashes_a, hashes_b = token_hashes([text_a, text_b])
    found = literal(hashes_a, hashes_b, min_words)
    blocks = blocks_of(a, b, found)
    html_a, html_b = _marked(text_a, [block.a for block in blocks]), _marked(text_b, [block.b for block in blocks])
    return PairOverlaps(blocks, found.common, html_a, html_b)


def _marked(text: str, blocks: Sequence[Span]) -> str:
    """The escaped text with marked blocks, which are given in the order of their numbers and do not overlap."""
    return "".join(_parts(text, sorted((span, number) for number, span in enumerate(blocks, 1))))


def _parts(text: str, blocks: Iterable[tuple[Span, int]]) -> Iterator[str]:
    at = 0
    for (start, end), number in blocks:
        yield html_escaped(text[at:start])
        yield f'<mark class="overlap" data-block="{number}">{html_escaped(text[start:end])}</mark>'
        at = end
    yield html_escaped(text[at:])


@dataclass(frozen=True, slots=True)
class DocumentPair:
    """Two documents, ``a < b`` by id and then index, and the similarity that the validation of the request computes."""

    a: Address
    b: Address
    similarity: float
    """From 0 to 1, or an integer: the number of shared features. With several validations, that of the first."""
    explanation: str | None = None
    similarities: tuple[float, ...] = ()
    """With several validations: the similarity by each, in their order."""


@dataclass(frozen=True, eq=False)
class PairList(Sequence[DocumentPair]):
    """Pairs by falling similarity, equal ones by address. Since there may be millions, each is created on access."""

    def __repr__(self) -> str:
        return one_line(self, pairs=len(self))

    references: Sequence[Reference] = field(repr=False)
    """All documents in scope."""
    left: Numbers = field(repr=False)
    """Number of one document of each pair; ``left < right``. Shape (pairs,), as of the other arrays."""
    right: Numbers = field(repr=False)
    similarity: Floats | Ints
    _explained: Callable[[int], str] | None = field(default=None, repr=False)
    """The explanation of the pair at a place."""
    others: tuple[Floats | Ints, ...] = field(default=(), repr=False)
    """The similarities by further validations."""

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
        similarity, *others = (each[place].item() for each in (self.similarity, *self.others))
        explanation = None if self._explained is None else self._explained(place)
        a, b = (Address(*self.references[number][:2]) for number in (left, right))
        return DocumentPair(a, b, similarity, explanation, (similarity, *others) if others else ())


@dataclass(frozen=True, slots=True)
class SkippedGroup:
    """A feature shared by more than ``maxHashGroupSize`` documents. It makes no candidates."""

    size: int
    """Number of documents that share it."""
    documents: tuple[Address, ...]
    """The first of them, by id and then index."""
    example: str | None
    """The feature, as read from one of these documents; None if none of them has it any more."""


_PAIRS_READ = 250
"""Pairs whose fields are read at a time."""


@dataclass(frozen=True)
class PairsStageReport(Tabular):
    """Result of a stage of type ``documentPairs:duplicates``."""

    pairs: PairList
    diagnostics: PairsDiagnostics
    skipped_groups: tuple[SkippedGroup, ...]
    """The largest ones; the diagnostics have the number of all."""

    validations: int = 1
    """Number of validations that each pair has passed."""
    scope: DocumentsInScope | None = field(default=None, repr=False, compare=False)
    """All documents in scope."""

    def table(self, client: Client | None = None, fields: Sequence[str] = ()) -> Table:
        """A row for each pair. With ``client``, also these ``fields`` of both documents, which are read while the rows
        are made."""
        columns: dict[str, type] = {"a_index": str, "a_id": str, "b_index": str, "b_id": str}
        values = (self.pairs.similarity, *self.pairs.others)
        names = ["similarity", *(f"similarity_{number}" for number in range(2, len(values) + 1))]
        kinds = (int if np.issubdtype(each.dtype, np.integer) else float for each in values)
        columns |= {**dict(zip(names, kinds, strict=True)), "explanation": str}
        columns |= {f"fields_{side}_{name}": str for side in "ab" for name in fields}
        return Table(columns, self._rows(client, fields))

    def _rows(self, client: Client | None, fields: Sequence[str]) -> Iterator[list[Cell]]:
        for some in chunked(self.pairs, _PAIRS_READ):
            found = dict(_fields_of(client, some, fields)) if client is not None and fields else {}
            for pair in some:
                shown = [found.get(one, {}).get(name) for one in (pair.a, pair.b) for name in fields]
                yield [*pair.a, *pair.b, *(pair.similarities or [pair.similarity]), pair.explanation, *shown]

    def __repr__(self) -> str:
        return one_line(self, pairs=len(self.pairs), skipped_groups=len(self.skipped_groups))


@dataclass(frozen=True)
class ContentStageReport:
    """Result of a stage of type ``documentContent``."""

    documents: tuple[Mapping[str, Any], ...]
    """``index``, ``id`` and ``fields`` of each, in the order of their best pairs."""
    cut: int
    """Values that were truncated at their ``maxValueLength``."""
    missing: int
    """Documents deleted during the run."""
    not_read: int
    """Documents beyond the limit."""
    seconds: float = field(compare=False)

    def __repr__(self) -> str:
        return one_line(self, documents=len(self.documents), cut=self.cut, missing=self.missing, not_read=self.not_read)


@dataclass(frozen=True, slots=True)
class OverlappingPair:
    """A pair of documents with the text blocks that they share."""

    a: Address
    b: Address
    similarity: float
    overlaps: PairOverlaps


@dataclass(frozen=True)
class OverlapsStageReport:
    """Result of a stage of type ``documentPairs:overlaps``, in the order of the pairs."""

    pairs: tuple[OverlappingPair, ...]
    missing: int
    """Pairs with a document that was deleted during the run."""
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
class GroupsOfPairs:
    """The groups that were made of the pairs of a stage: ``documents = grouped + alone + changed``."""

    stage: str
    prefix: str
    """The object field that holds the groups."""
    count: int
    """Groups of two or more documents."""
    documents: int
    """Documents in scope, and those outside that have a group of an earlier run."""
    grouped: int
    alone: int
    """Documents in a group of their own."""
    changed: int
    """Documents that were changed or deleted during the run, which are left for the next one."""
    min_similarity: float | None
    """Minimum similarity of a member to its principal; None without groups."""
    pairs_below: int
    """Pairs of members that are less similar than the minimum of the first validation."""
    pairs_not_compared: int
    writes: WriteCounts
    dry_run: bool

    def __repr__(self) -> str:
        return one_line(self, prefix=self.prefix, groups=self.count, grouped=self.grouped, dry_run=self.dry_run)


@dataclass(frozen=True)
class DuplicatesReport:
    """The results of all stages by name, in the order of execution."""

    index: str
    """The name given to the command."""
    indices: tuple[str, ...]
    """The concrete indices that it resolves to."""
    stages: Mapping[str, PairsStageReport | ContentStageReport | OverlapsStageReport]
    seconds: float = field(compare=False)
    groups: GroupsOfPairs | None = None
    """The groups that were made of the pairs; None without ``write_groups``."""
    warnings: tuple[str, ...] = ()
    """What the request probably means in another way than it says, such as a range that ends with the first day of a
    year."""

    def __repr__(self) -> str:
        return one_line(self, index=self.index, stages=list(self.stages))


def page_texts(
    client: Client, plan: DuplicatesPlan, pairs: Iterable[DocumentPair], characters: int
) -> dict[Address, str]:
    """The texts of the documents in the pairs, truncated to a number of characters.

    A deleted document is left out; a document without these fields has the text "".
    """
    sources = _sources(client, pairs, plan.fields)
    return {address: text_of(source, plan.fields)[:characters] for address, source in sources}


_CONTENTS_AT_A_TIME = 256
"""Texts that are hashed at a time."""


def page_contents(client: Client, plan: DuplicatesPlan, pairs: Iterable[DocumentPair]) -> dict[Address, str]:
    """The content hash of the text (see `page_texts`) of each document in the pairs, without deleted documents."""
    found: dict[Address, str] = {}
    sources = _sources(client, pairs, plan.fields)
    while some := list(islice(sources, _CONTENTS_AT_A_TIME)):
        texts = [text_of(source, plan.fields) for _, source in some]
        found |= zip((address for address, _ in some), contents(texts), strict=True)
    return found


_FIELD_CHARACTERS = 1000
"""Characters that are kept of the value of a field: more than a page shows."""


def page_fields(client: Client, pairs: Iterable[DocumentPair], names: Sequence[str]) -> dict[Address, dict[str, str]]:
    """The beginnings of some fields of the documents in the pairs, without deleted documents."""
    found = _fields_of(client, pairs, names)
    return {address: {name: value[:_FIELD_CHARACTERS] for name, value in one.items()} for address, one in found}


def _fields_of(
    client: Client, pairs: Iterable[DocumentPair], names: Sequence[str]
) -> Iterator[tuple[Address, dict[str, str]]]:
    """Some fields of the documents in the pairs, without deleted documents."""
    for address, source in _sources(client, pairs, names):
        yield address, {name: text_of(source, [name]) for name in names}


def _sources(
    client: Client, pairs: Iterable[DocumentPair], fields: Sequence[str]
) -> Iterator[tuple[Address, Mapping[str, Any]]]:
    """The fields of the documents in the pairs."""
    wanted: dict[str, dict[str, None]] = {}
    for pair in pairs:
        for index, id in (pair.a, pair.b):
            wanted.setdefault(index, {})[id] = None
    for index, ids in wanted.items():
        for hit in find(client, index, ids, fields):
            yield Address(hit["_index"], hit["_id"]), hit.get("_source", {})
