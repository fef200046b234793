"""Stored fingerprints of an index, read into columns. Texts are not read."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from es_neardupe.candidates.keys_on_workers import KeptKeys, KeysOnWorkers, digest
from es_neardupe.candidates.memory_limit import MemoryLimit
from es_neardupe.candidates.pair_arrays import blocks
from es_neardupe.candidates.spill_to_disk import Scratch, SpilledColumn, SpilledKeys
from es_neardupe.candidates.who_may_meet import DEFAULT_RULES, GroupRules
from es_neardupe.columns import Growing, GrowingReferences, ValueSets
from es_neardupe.engines.engine import Engine
from es_neardupe.errors import CorruptFingerprint
from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.index.index_on_workers import IndexOnWorkers
from es_neardupe.index.mapping import Fields
from es_neardupe.index.slices import read_slices
from es_neardupe.index.storage.field_writes import checked_version
from es_neardupe.index.stored_fields import decode, decode_grouping, group_of, stored_fields
from es_neardupe.keys.arrays import U64, Numbers, Positions
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.records import Address, FingerprintColumns, Hit, State, TextClasses
from es_neardupe.wording import counted

_READ = (
    *("scheme", "state", "content", "bands", "tokens", "features"),
    *("group", "principal", "similarity", "checked"),
)
_PAGE = 2000


def read_fingerprints(
    index: Index,
    progress: Progress = silent,
    rules: GroupRules = DEFAULT_RULES,
    scope: Mapping[str, Any] | None = None,
    *,
    documents: int | None = None,
    shards: Sequence[int | None] = (None,),
    slices: int | None = 1,
    limit: MemoryLimit | None = None,
    files: Scratch | None = None,
) -> FingerprintColumns:
    """Read the fingerprints of the index's scheme, and the values that the rules need.

    ``scope``: query that selects documents; default: all. ``documents``: their number, if they were counted since the
    index was refreshed; otherwise it is refreshed now, and they are counted. ``shards``: the shards to read separately,
    so that the shard of each document is known; default: all together. ``slices``: see `read_slices`. ``limit`` and
    ``files``: columns that do not fit into memory are spilled to disk. On an engine, workers read the documents and
    keep the keys. Raises `SettingsError` if the limit is too small for so many documents, or if there is too little
    disk space.
    """
    query = queries.fingerprinted(index.fields, index.scheme_id)
    query = query if scope is None else queries.all_of(scope, query)
    if (total := documents) is None:
        index.documents.refresh_if_allowed()
        total = index.documents.count(query)
    body = {"query": query, **requested(index.fields, rules)}
    holding = None if limit is None else limit.holding(documents=total)
    if index.engine is not None:
        workers = index.engine.workers
        reading = _Reading(IndexOnWorkers.of(index, workers), rules, body)
        each = -(-workers // max(1, len(shards)))
        parts = [(shard, (k, each)) for shard in shards for k in range(each)]
        columns, kept = _read_on(index.engine, reading, parts, total, progress)
        return replace(columns, keys=KeysOnWorkers(index.engine, index.settings.scheme.bands, kept))
    bands = index.settings.scheme.bands
    spill = files if holding is not None and holding.spills(bands) else None

    def read(shard: int | None, part: tuple[int, int] | None) -> Iterator[list[Hit]]:
        return index.documents.pages(body, page_size=_PAGE, shard=shard, slice=part)

    def shown(stage: str, done: int, total: int | None) -> None:
        progress(stage, min(done * _PAGE, total or 0), total)

    with closing(read_slices(index, read, slices, shards=shards)) as pages:
        read_pages = tracked(pages, shown, "reading keys", total, step=1)
        return read_corpus(
            read_pages, index.settings.prefix, bands, rules, index.target.mark_seeds, expected=total, spill=spill
        )


@dataclass(frozen=True)
class _Reading:
    """What the workers that read fingerprints have in common."""

    index: IndexOnWorkers
    rules: GroupRules
    body: Mapping[str, Any]


_Part = tuple["int | None", tuple[int, int]]
"""Number of the shards, and slice of them, see ``Client.pages``."""


def _read_on(
    engine: Engine, reading: _Reading, parts: Sequence[_Part], total: int, progress: Progress
) -> tuple[FingerprintColumns, list[KeptKeys]]:
    """The columns without keys, and the keys on the workers in the order of the rows."""
    columns, keys = _GrowingColumns(0, reading.rules, total, None), list[KeptKeys]()
    progress("reading keys", 0, total)
    kept = [(one,) for one in engine.keep(_read_slice, reading, parts)]
    for (one,), part in engine.run(_without_keys, None, kept):
        columns.add(part)
        keys.append(KeptKeys(one, len(part.columns), part.digest))
        progress("reading keys", min(len(columns), total), total)
    progress("reading keys", total, total)
    return columns.taken(), keys


@dataclass(frozen=True)
class _Slice:
    """The documents that one worker has read, in the order of their ids: the same again if it reads them again."""

    columns: FingerprintColumns
    """Places and scopes are numbers of these values."""
    places: Sequence[Hashable]
    scopes: Sequence[Hashable]
    digest: int
    """Of the keys."""

    @property
    def keys(self) -> U64:
        """Band keys; shape (n, b)."""
        return cast(U64, self.columns.keys)


def _read_slice(reading: _Reading, part: _Part) -> _Slice:
    """Task: read the fingerprints of a slice."""
    index, (shard, slice) = reading.index.opened(), part
    columns = _GrowingColumns(index.settings.scheme.bands, reading.rules, 0, None)
    for page in index.documents.pages(reading.body, page_size=_PAGE, shard=shard, slice=slice):
        columns.extend(page, index.settings.prefix, index.target.mark_seeds)
    return columns.slice()


def _without_keys(_: None, part: tuple[_Slice]) -> _Slice:
    """Task: everything but the keys."""
    return replace(part[0], columns=part[0].columns.without_keys())


def requested(fields: Fields, rules: GroupRules) -> dict[str, Any]:
    """The part of a search body that requests the fields and values that `read_corpus` needs."""
    columns = rules.columns
    return {"_source": source_of(fields)} | ({"docvalue_fields": columns} if columns else {})


def source_of(fields: Fields) -> list[str]:
    """The fields of a stored fingerprint."""
    return [f"{fields.prefix}.{name}" for name in _READ]


def read_corpus(
    pages: Iterable[Sequence[Hit]],
    prefix: str,
    bands: int,
    rules: GroupRules = DEFAULT_RULES,
    seeds: Mapping[str, str] = MappingProxyType({}),
    *,
    expected: int = 0,
    spill: Scratch | None = None,
) -> FingerprintColumns:
    """Convert pages of hits to columns. The hits must have the ``docvalue_fields`` of the rules. ``seeds``: those
    of marks, to recognise checked documents. ``expected``: number of documents, if known. ``spill``: files for
    the keys, and for what only the writes of groups need, instead of memory."""
    columns = _GrowingColumns(bands, rules, expected, spill)
    for page in pages:
        columns.extend(page, prefix, seeds)
    return columns.taken()


class _GrowingColumns:
    """The columns of the documents that were read so far. Python objects are kept for one page only."""

    def __init__(self, bands: int, rules: GroupRules, expected: int, spill: Scratch | None) -> None:
        self._bands, self._rules = bands, rules
        self._references = GrowingReferences(expected)
        spilled = partial(Growing, expected=expected) if spill is None else partial(SpilledColumn, spill)
        self._arrays: dict[str, Growing[Any] | SpilledColumn[Any] | SpilledKeys] = {
            "versions": spilled(np.int64, 2),
            "shards": spilled(np.int16),
            "checked": spilled(np.int64),
            "content": Growing("S16", expected=expected),
            "tokens": Growing(np.int32, expected=expected),
            "keys": spilled(np.uint64, bands) if spill is None else SpilledKeys(spill, bands),
            "group_ids": Growing("S16", expected=expected),
            "leading": Growing(np.int8, expected=expected),
            "similarity": spilled(np.float64),
        }
        self._places, self._scopes, self._across = _Numbered(), _Numbered(), _Numbered()
        self._days: Growing[np.float64] = Growing(np.float64)
        self._states = dict.fromkeys((state.value for state in State), 0)
        self._corrupt: list[Address] = []

    def extend(self, page: Sequence[Hit], prefix: str, seeds: Mapping[str, str]) -> None:
        """Append the documents of a page."""
        hits, stored, fingerprints, keys = [], [], [], []
        for hit in page:
            fields = stored_fields(hit.source, prefix)
            try:
                fingerprint = decode(fields)
                keys.append(_joined(fingerprint.bands, self._bands, fingerprint.state))
            except CorruptFingerprint:
                self._corrupt.append(hit.address)
                continue
            hits.append(hit)
            stored.append(fields)
            fingerprints.append(fingerprint)
            self._states[fingerprint.state.value] += 1
        groupings = [decode_grouping(one) for one in stored]
        values: dict[str, Any] = {
            "versions": np.array([(hit.seq_no or 0, hit.primary_term or 0) for hit in hits], np.int64).reshape(-1, 2),
            "shards": [-1 if hit.shard is None else hit.shard for hit in hits],
            "checked": [checked_version(hit, seeds) for hit in hits],
            "content": [bytes.fromhex(one.content) for one in fingerprints],
            "tokens": [one.tokens for one in fingerprints],
            "keys": np.frombuffer("".join(keys).encode("latin-1"), np.uint64).reshape(-1, self._bands),
            "group_ids": [(group_of(one) or "").encode() for one in stored],
            "leading": [-1 if one is None else int(one.principal) for one in groupings],
            "similarity": [np.nan if one is None else one.similarity for one in groupings],
        }
        self._references.extend([hit.reference for hit in hits])
        for name, array in self._arrays.items():
            array.extend(values[name])
        if self._rules.columns:
            self._describe([{name: value for name, value in hit.source.items() if name != prefix} for hit in hits])

    def add(self, part: _Slice) -> None:
        """Append the documents that a worker has read; without keys."""
        for some in blocks(len(part.columns), 1 << 16):
            self._references.extend(part.columns.references[some])
        for name, array in self._arrays.items():
            array.extend(getattr(part.columns, name))
        for name, number in part.columns.states.items():
            self._states[name] += number
        self._corrupt += part.columns.corrupt
        if self._rules.principal.column:
            self._places.add(part.places, part.columns.places)
        if self._rules.within:
            self._scopes.add(part.scopes, part.columns.scopes)
        if self._rules.across:
            self._across.add(part.columns.across.sets, part.columns.across.numbers)
        if self._rules.window:
            self._days.extend(part.columns.days)

    def __len__(self) -> int:
        return len(self._references)

    def _describe(self, sources: Sequence[Mapping[str, Any]]) -> None:
        """Append the values that the rules need of each document."""
        rules = self._rules
        if rules.principal.column:
            self._places.extend([rules.principal.deciding(one) for one in sources])
        if rules.within:
            self._scopes.extend([rules.scope(one) for one in sources])
        if rules.across:
            self._across.extend([tuple(rules.across.values(one)) for one in sources])
        if rules.window:
            self._days.extend([rules.window.day(one) for one in sources])

    def taken(self) -> FingerprintColumns:
        """The columns. Nothing can be appended to them afterwards."""
        rules, references = self._rules, self._references.taken()
        size = len(references)
        places = self._places.numbers.taken()
        return FingerprintColumns(
            references=references,
            **cast(dict[str, Any], {name: array.taken() for name, array in self._arrays.items()}),
            states=self._states,
            corrupt=self._corrupt,
            places=rules.principal.ranks(self._places.values)[places] if rules.principal.column else _zeros(size, 0),
            scopes=self._scopes.numbers.taken() if rules.within else _zeros(size, 0),
            across=self._value_sets(size),
            days=self._days.taken() if rules.window else _zeros(size, 0.0),
        )

    def _value_sets(self, size: int) -> ValueSets:
        """The values of the field of the rule ``across``."""
        if not self._rules.across:
            return ValueSets(_zeros(size, 0))
        return ValueSets(self._across.numbers.taken(), list(self._across.values))

    def slice(self) -> _Slice:
        """The documents in the order of their ids. Nothing can be appended afterwards."""
        rules, size = self._rules, len(self._references)
        references = self._references.taken()
        rows = references.sorted(np.arange(size, dtype=np.int32))
        arrays = {name: cast(Any, array.taken())[rows] for name, array in self._arrays.items()}
        across = self._value_sets(size)
        columns = FingerprintColumns(
            references=references.take(rows),
            **arrays,
            states=self._states,
            corrupt=self._corrupt,
            places=self._places.numbers.taken()[rows] if rules.principal.column else _zeros(size, 0),
            scopes=self._scopes.numbers.taken()[rows] if rules.within else _zeros(size, 0),
            across=replace(across, numbers=across.numbers[rows]),
            days=self._days.taken()[rows] if rules.window else _zeros(size, 0.0),
        )
        return _Slice(columns, list(self._places.values), list(self._scopes.values), digest(arrays["keys"]))


class _Numbered:
    """A growing column of numbers, equal for equal values."""

    def __init__(self) -> None:
        self.values: dict[Any, int] = {}
        """Value -> its number, from 0 in the order of first occurrence."""
        self.numbers: Growing[np.int64] = Growing(np.int64)

    def extend(self, values: Sequence[Hashable]) -> None:
        self.numbers.extend([self.values.setdefault(value, len(self.values)) for value in values])

    def add(self, values: Sequence[Hashable], numbers: Positions) -> None:
        """Append numbers of other values."""
        self.numbers.extend(
            np.array([self.values.setdefault(value, len(self.values)) for value in values], np.int64)[numbers]
        )


def _zeros(size: int, zero: float) -> NDArray[Any]:
    """Zeros that take no memory."""
    return np.broadcast_to(zero, size)


def _joined(keys: Sequence[str], bands: int, state: State) -> str:
    """The keys of a document as one string of ``8 * bands`` characters, all NUL for a document without keys."""
    if not state.has_keys:
        return "\0" * (8 * bands)
    if len(keys) != bands:
        raise CorruptFingerprint(f"{counted(len(keys), 'band key')}, but the scheme has {bands}.")
    return "".join(keys)


def classes_of(corpus: FingerprintColumns, copies: bool = True, signs: U64 | None = None) -> TextClasses:
    """Group the rows that have keys by content, scope and date, and by ``signs``, a value of each row. Without
    ``copies``, each row is a class of its own, and so is each that has values of the rule ``across``: its copies may
    have the same, and then do not match it."""
    ordered = in_order(corpus, keyed_rows(corpus).astype(np.int32))
    if not copies or not len(ordered):
        return TextClasses(ordered, np.arange(len(ordered) + 1, dtype=np.int32))
    same = _identities(corpus, ordered, signs)
    by_value = np.argsort(same, kind="stable").astype(np.int32)  # equal ones in the order of principals
    same = same[by_value]
    fresh = np.ones(len(same), np.bool_)
    np.not_equal(same[1:], same[:-1], out=fresh[1:])
    del same
    # The place of the first row of its class decides between classes, and then the own one.
    first = by_value[fresh][np.cumsum(fresh, dtype=np.int32) - 1]
    place = np.empty_like(first)
    place[by_value] = first
    del by_value, first
    bounds = np.flatnonzero(place == np.arange(len(place), dtype=np.int32))
    sizes = np.bincount(place, minlength=len(place))[bounds]
    ordered = ordered[np.argsort(place, kind="stable")]
    return TextClasses(ordered, np.concatenate(([0], np.cumsum(sizes))).astype(np.int32))


def keyed_rows(corpus: FingerprintColumns) -> Positions:
    """The rows that have keys."""
    if isinstance(corpus.keys, KeysOnWorkers):
        return np.flatnonzero(corpus.content != b"")  # those that have keys, and no others
    keyed = np.zeros(len(corpus), np.bool_)
    for band in range(corpus.keys.shape[1]):
        keyed |= corpus.keys[:, band] != 0
    return np.flatnonzero(keyed)


def in_order(corpus: FingerprintColumns, rows: Numbers) -> Numbers:
    """The rows in the order of principals: by the policy, then the longest, then the oldest id."""
    rows = corpus.references.sorted(rows)
    rows = rows[np.argsort(-corpus.tokens[rows], kind="stable")]
    return rows[np.argsort(corpus.places[rows], kind="stable")] if corpus.places.any() else rows


def _identities(corpus: FingerprintColumns, rows: Numbers, signs: U64 | None) -> NDArray[Any]:
    """One value per row, equal for rows that every comparison treats alike. NaN dates are never equal."""
    content, apart = corpus.content[rows], corpus.across.given(rows)
    if not corpus.scopes.any() and not corpus.days.any() and not apart.any() and signs is None:
        return content
    scopes, days = corpus.scopes[rows], corpus.days[rows]
    _, texts = np.unique(content, return_inverse=True)
    _, dates = np.unique(days, return_inverse=True, equal_nan=False)
    alone = np.where(apart, rows.astype(np.int64) + 1, 0)
    _, others = np.unique(np.zeros(len(rows)) if signs is None else signs[rows], return_inverse=True)
    values = [texts.reshape(-1), scopes, dates.reshape(-1), others.reshape(-1), alone]
    _, same = np.unique(np.stack(values), axis=1, return_inverse=True)
    return same.reshape(-1)
