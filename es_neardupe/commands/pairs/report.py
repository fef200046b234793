"""Result of ``pairs``, with the fields of its documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, combinations, islice, product, repeat, starmap
from typing import NamedTuple, overload

import numpy as np

from es_neardupe.candidates.detection import Detection
from es_neardupe.candidates.large_buckets import Bucket
from es_neardupe.columns import RowLists
from es_neardupe.index.index import Index
from es_neardupe.index.shown_fields import ShownFields, read_each_shown_fields
from es_neardupe.keys.arrays import Floats, Ints, Numbers
from es_neardupe.options import FactKind
from es_neardupe.records import Address, Reference, one_line
from es_neardupe.server.bulk import chunked
from es_neardupe.similarity.facts.agreement import facts_apart
from es_neardupe.similarity.facts.differing import Fact, in_words
from es_neardupe.similarity.facts.tokens import fact_tokens
from es_neardupe.tables import Table, Tabular
from es_neardupe.verification.boilerplate import Boilerplate
from es_neardupe.verification.common_shingles import CommonShinglesUsed
from es_neardupe.verification.current_texts import CurrentDocuments
from es_neardupe.verification.match_rules import WeightsUsed


@dataclass(frozen=True, slots=True)
class Pair:
    """Two documents, ``a < b`` by id and then index, and their exact similarity by ``measure``."""

    a: Address
    b: Address
    similarity: float
    measure: str = "resemblance"
    fields: Mapping[str, Mapping[str, str]] = field(default_factory=dict, hash=False)
    """``a`` and ``b`` -> field -> its text; only of `PairsReport.with_fields`."""
    cut: Mapping[str, Mapping[str, int]] = field(default_factory=dict, hash=False)
    """``a`` and ``b`` -> field -> number of characters of the whole text, of each one that was cut."""
    facts: tuple[Fact, ...] = field(default=(), hash=False)
    """The facts that decide and differ; only of `PairsReport.with_fields` of related pairs."""

    def __repr__(self) -> str:
        return one_line(self, a=self.a, b=self.b, similarity=self.similarity, measure=self.measure)

    @property
    def resemblance(self) -> float | None:
        """The similarity if it is the resemblance, None for another measure."""
        return self.similarity if self.measure == "resemblance" else None


_PAIRS_READ = 250
"""Pairs whose fields are read at a time."""
_WHOLE_READ = 5
"""The same if texts are not cut, each of which can have megabytes."""


class _Shown(NamedTuple):
    """The fields of a document."""

    values: dict[str, str]
    cut: dict[str, int]
    """Number of characters of each whole text that was cut."""


@dataclass(frozen=True)
class PairFields:
    """The fields to show of the documents in pairs."""

    index: Index
    shown: ShownFields
    maximum: int | None
    """Characters of a text, beyond which it is cut; None: never."""
    cut: set[tuple[Address, str]] = field(default_factory=set)
    """The documents and fields whose texts were cut so far."""

    def read(self, references: Iterable[Reference]) -> dict[Address, _Shown]:
        """The fields of some documents."""
        each = read_each_shown_fields(self.index, self.shown, list(dict.fromkeys(references)))
        return {address: self._cut(address, values) for address, values in each}

    def _cut(self, address: Address, values: dict[str, str]) -> _Shown:
        if self.maximum is None:
            return _Shown(values, {})
        long = {name: len(value) for name, value in values.items() if len(value) > self.maximum}
        self.cut.update((address, name) for name in long)
        return _Shown(values | {name: f"{values[name][: self.maximum]}..." for name in long}, long)


@dataclass(frozen=True)
class PairFacts:
    """The facts that keep related pairs apart."""

    documents: CurrentDocuments
    kinds: frozenset[FactKind]

    def read(self, pairs: Sequence[Sequence[int]]) -> Iterator[tuple[Fact, ...]]:
        """Of the documents in each pair of rows; none if one was changed or deleted meanwhile."""
        read = self.documents.texts(np.unique(np.array(pairs, np.intp)))
        tokens = {row: fact_tokens(text) for row, text in read}
        for one, other in pairs:
            known = {one, other} <= tokens.keys()
            yield tuple(facts_apart(tokens[one], tokens[other], self.kinds)) if known else ()


@dataclass(frozen=True, eq=False)
class PairsReport(Sequence[Pair], Tabular):
    """A sequence of pairs, most similar first; exact copies, which need no comparison, come before all others.

    There may be millions, so each `Pair` is made when it is accessed.
    """

    indices: tuple[str, ...]
    """Concrete indices that were read."""
    measure: str
    """Name of the measure with its options."""
    min: float
    max: float
    detection: Detection
    weights: WeightsUsed | None
    """For the measure weighted: the source of the weights."""
    common: CommonShinglesUsed | None
    """With ``ignore_common``: the ignored shingles."""
    boilerplate: Boilerplate
    """The clusters of linked pairs that only boilerplate holds together."""
    candidates: int
    """Pairs of distinct texts that were verified."""
    skipped: int
    """Pairs that share a large bucket and were not compared, each once."""
    large_buckets: tuple[Bucket, ...]
    stale: int
    """Documents whose text has changed since it was fingerprinted: in no pair."""
    unprocessed: int
    """Documents without a fingerprint of the index's scheme: in no pair."""
    _references: Sequence[Reference]
    _classes: RowLists
    """Rows with equal texts."""
    _left: Numbers
    _right: Numbers
    _similarity: Floats
    _copies: bool
    """Whether two exact copies are a pair."""
    _maximum_copies: int
    _shown: PairFields | None = None
    other_facts: int = 0
    """With ``facts``: pairs of distinct texts that are similar enough, and differ in these facts."""
    related: PairsReport | None = None
    """With ``related``: the pairs of all documents with these texts."""
    _facts: PairFacts | None = None

    def __repr__(self) -> str:
        return one_line(
            self,
            indices=self.indices,
            measure=self.measure,
            min=self.min,
            max=self.max,
            pairs=len(self),
            candidates=self.candidates,
            skipped=self.skipped,
        )

    def with_fields(self, top: int | None = None) -> Iterator[Pair]:
        """The pairs, or the first ``top`` of them, with the fields to show of both documents.

        Reads the fields of some hundred pairs at a time while it is iterated. A deleted document has no fields. Texts
        of more than 10,000 characters are cut, unless `pairs` got ``whole_fields``.
        """
        whole = self._shown is not None and self._shown.maximum is None
        apart = self._facts
        for some in chunked(islice(self._rows(), top), _WHOLE_READ if whole or apart else _PAIRS_READ):
            values = (
                {}
                if self._shown is None
                else self._shown.read(self._references[row] for *both, _ in some for row in both)
            )
            facts = repeat(()) if apart is None else apart.read([self._in_order(*both) for *both, _ in some])
            for pair, differing in zip(starmap(self._pair, some), facts, strict=False):
                sides = {side: values.get(address, _Shown({}, {})) for side, address in (("a", pair.a), ("b", pair.b))}
                yield replace(
                    pair,
                    fields={side: one.values for side, one in sides.items()},
                    cut={side: one.cut for side, one in sides.items() if one.cut},
                    facts=differing,
                )

    def table(self, top: int | None = None) -> Table:
        """A row for each pair, or for the first ``top`` of them, with the fields to show of both documents; then one
        for each related pair, if these are known, with the facts in words.

        Reads the fields as `with_fields` does.
        """
        names = () if self._shown is None else self._shown.shown.names
        shown = [(side, name) for side in "ab" for name in names]
        columns = {"a_index": str, "a_id": str, "b_index": str, "b_id": str, "measure": str, "similarity": float}
        columns |= {f"fields_{side}_{name}": str for side, name in shown}
        related = () if self.related is None else self.related.with_fields(top)
        rows = (
            (
                *pair.a,
                *pair.b,
                pair.measure,
                pair.similarity,
                *(pair.fields[side].get(name) for side, name in shown),
                *(() if self.related is None else [in_words(pair.facts)]),
            )
            for pair in chain(self.with_fields(top), related)
        )
        return Table(columns if self.related is None else columns | {"facts": str}, rows)

    @property
    def texts_cut(self) -> int:
        """The number of texts of documents that `with_fields` and `table` have cut so far, each once."""
        return 0 if self._shown is None else len(self._shown.cut)

    @property
    def copies_not_listed(self) -> int:
        """Pairs left out because one of the two is a copy beyond the ``max_bucket``-th of the same text."""
        return int(self._numbers(None).sum()) - len(self)

    def _numbers(self, maximum: int | None) -> Ints:
        """Number of pairs within each class of copies, then of each pair of classes."""
        sizes = self._classes.sizes.astype(np.int64)
        if maximum is not None:
            sizes = np.minimum(sizes, maximum)
        copies = sizes * (sizes - 1) // 2 * self._copies
        return np.concatenate([copies, sizes[self._left] * sizes[self._right]])

    @cached_property
    def _ends(self) -> Ints:
        """Place after the last pair of each of them."""
        return np.cumsum(self._numbers(self._maximum_copies))

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    @overload
    def __getitem__(self, place: int) -> Pair: ...
    @overload
    def __getitem__(self, place: slice) -> list[Pair]: ...
    def __getitem__(self, place: int | slice) -> Pair | list[Pair]:
        if isinstance(place, slice):
            return [self._at(k) for k in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        return self._at(place % len(self))

    def _at(self, place: int) -> Pair:
        """The pair at this place."""
        source = int(np.searchsorted(self._ends, place, "right"))
        rest = place - (int(self._ends[source - 1]) if source else 0)
        if source < len(self._classes):
            copies = self._members(source)
            return self._pair(*next(islice(combinations(copies, 2), rest, None)), 1.0)
        number = source - len(self._classes)
        left, right = (self._members(int(side[number])) for side in (self._left, self._right))
        one, other = divmod(rest, len(right))
        return self._pair(left[one], right[other], float(self._similarity[number]))

    def __iter__(self) -> Iterator[Pair]:
        return starmap(self._pair, self._rows())

    def _rows(self) -> Iterator[tuple[int, int, float]]:
        """The rows and the similarity of each pair."""
        for number in np.flatnonzero(self._classes.sizes > 1).tolist() if self._copies else []:
            for one, other in combinations(self._members(number), 2):
                yield one, other, 1.0
        for left, right, similarity in zip(self._left, self._right, self._similarity, strict=True):
            for one, other in product(self._members(int(left)), self._members(int(right))):
                yield one, other, float(similarity)

    def _members(self, number: int) -> list[int]:
        """The rows of a class, up to the maximum number."""
        members: list[int] = self._classes[number][: self._maximum_copies].tolist()
        return members

    def _pair(self, one: int, other: int, similarity: float) -> Pair:
        a, b = (Address(*self._references[row][:2]) for row in self._in_order(one, other))
        return Pair(a, b, similarity, self.measure)

    def _in_order(self, *rows: int) -> list[int]:
        """The rows of a pair in the order in which it is shown."""
        return sorted(rows, key=lambda row: self._references[row][1::-1])
