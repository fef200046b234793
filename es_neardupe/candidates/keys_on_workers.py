"""Band keys that stay on the workers of an engine, in the slices in which they were read, and their join.

Each slice is split by ranges of a hash of the keys. A task gets one range of all slices, so it has whole buckets. Only
pairs and the members of large buckets leave the workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import xxhash

from es_neardupe.candidates.pair_arrays import DistinctPairs, buckets
from es_neardupe.engines.engine import Engine, Kept
from es_neardupe.errors import IncompleteAnswer
from es_neardupe.keys.arrays import I32, U64, Numbers, Positions
from es_neardupe.keys.bands import joint_key
from es_neardupe.keys.hashing import GOLDEN

_RANGE_BYTES = 64_000_000
"""Approximate size of the keys and numbers of a range."""

_ENTRY = 12
"""Bytes of a key and the number of its document."""


class _Keys(Protocol):
    """A slice with keys, as read by a task."""

    @property
    def keys(self) -> U64: ...
    @property
    def digest(self) -> int: ...


@dataclass(frozen=True)
class KeptKeys:
    """A slice of documents whose keys are on a worker."""

    slice: Kept
    size: int
    digest: int
    """Of the keys: a worker that has lost the slice reads it again, and its keys must be the same then."""


class JoinedRange(NamedTuple):
    """The buckets of a range of keys."""

    pairs: tuple[I32, I32]
    """All pairs in small buckets, each once."""
    large: list[tuple[np.uint64, int, I32]]
    """Key, number of the choice of bands, and members of the large buckets."""


def digest(keys: U64) -> int:
    """A hash of keys and their order."""
    return xxhash.xxh3_64_intdigest(np.ascontiguousarray(keys).data)


class KeysOnWorkers:
    """Keys of n documents, shape (n, b); see `es_neardupe.records.BandKeys`."""

    def __init__(self, engine: Engine, bands: int, slices: Sequence[KeptKeys]) -> None:
        """``slices``: in the order of the rows."""
        self._engine = engine
        self._bands = bands
        self._slices = slices
        self._bounds = np.cumsum([0, *(one.size for one in slices)])
        self._rows: dict[int, U64] = {}

    @property
    def shape(self) -> tuple[int, int]:
        """Documents and bands."""
        return int(self._bounds[-1]), self._bands

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, place: Any) -> U64:
        """The keys of a document, or with ``[:, band]`` those of a band."""
        if isinstance(place, tuple):
            found = dict(self._some({k: (slice(None), place[1]) for k in range(len(self._slices))}))
            column = np.concatenate([np.zeros(0, np.uint64), *(found[k] for k in sorted(found))])
            return cast(U64, column[place[0]])
        if place not in self._rows:
            self.fetch(np.array([place]))
        return self._rows[place]

    def fetch(self, rows: Positions) -> None:
        """Get the keys of some documents from the workers, to have them here."""
        of = np.searchsorted(self._bounds, rows, side="right") - 1
        by_slice = {k: rows[of == k] for k in np.unique(of).tolist()}
        for k, keys in self._some({k: (some - self._bounds[k],) for k, some in by_slice.items()}):
            self._rows.update(zip(by_slice[k].tolist(), keys, strict=True))

    def _some(self, places: Mapping[int, tuple[Any, ...]]) -> Iterator[tuple[int, U64]]:
        """Slices by their numbers, each with the keys at some of its places."""
        parts = [(k, self._slices[k].slice, self._slices[k].digest, _Place(place)) for k, place in places.items()]
        return ((k, keys) for (k, *_), keys in self._engine.run(_keys_at, None, parts))

    def joined(self, rows: Numbers | None, choices: Sequence[Sequence[int]], maximum: int) -> Iterator[JoinedRange]:
        """The buckets of all keys of each choice of bands, by ranges. Members are numbered as in ``rows``."""
        numbers = np.full(len(self), -1, np.int32)
        size = len(self) if rows is None else len(rows)
        numbers[slice(None) if rows is None else rows] = np.arange(size, dtype=np.int32)
        ranges = max(2 * self._engine.workers, -(-size * len(choices) * _ENTRY // _RANGE_BYTES))
        splitting = _Splitting(tuple(map(tuple, choices)), ranges)
        parts = [
            (one.slice, one.digest, numbers[start:end])
            for one, (start, end) in zip(self._slices, pairwise(self._bounds.tolist()), strict=True)
        ]
        splits = [(one,) for one in self._engine.keep(_split, splitting, parts)]
        every = (tuple(self._engine.keep(_piece, k, splits)) for k in range(ranges))
        for _, found in self._engine.run(_joined_range, maximum, every):
            if members := [int(one[0]) for *_, one in found.large]:
                self.fetch(np.array(members) if rows is None else rows[members])
            yield found


def _checked(part: _Keys, digest: int) -> U64:
    """The keys of a slice. Raises `IncompleteAnswer` if they are not those that were read first."""
    if part.digest != digest:
        raise IncompleteAnswer(
            "A worker was lost with its keys, and documents were written before it read them again. Run the same "
            "command again."
        )
    return part.keys


@dataclass(frozen=True)
class _Place:
    """An index of an array of keys. (A tuple, or a list, would be searched for results that were kept.)"""

    index: tuple[Any, ...]


def _keys_at(_: None, part: tuple[int, _Keys, int, _Place]) -> U64:
    """Task: the keys at some places of a slice."""
    read, digest, place = part[1:]
    return cast(U64, _checked(read, digest)[place.index])


@dataclass(frozen=True)
class _Splitting:
    choices: tuple[tuple[int, ...], ...]
    """Bands that make one joint key."""
    ranges: int


_Pieces = list[tuple[U64, I32]]
"""For each choice of bands, the joint keys of a range, and the numbers of their documents."""


def _split(splitting: _Splitting, part: tuple[_Keys, int, I32]) -> list[_Pieces]:
    """Task: the keys of a slice by ranges. Documents with number -1 have no part in the join."""
    read, digest, numbers = part
    chosen = np.flatnonzero(numbers >= 0)
    keys, numbers = _checked(read, digest)[chosen], numbers[chosen]
    pieces: list[_Pieces] = [[] for _ in range(splitting.ranges)]
    for bands in splitting.choices:
        joint = joint_key([keys[:, band] for band in bands])
        range_of = ((joint * GOLDEN) >> np.uint64(32)) % np.uint64(splitting.ranges)
        range_of[joint == 0] = splitting.ranges
        order = np.argsort(range_of, kind="stable")
        bounds = np.searchsorted(range_of[order], np.arange(splitting.ranges + 1))
        for k, piece in enumerate(pieces):
            some = order[bounds[k] : bounds[k + 1]]
            piece.append((joint[some], numbers[some]))
    return pieces


def _piece(number: int, part: tuple[list[_Pieces]]) -> _Pieces:
    """Task: one range of a slice, so that only this is sent to another worker."""
    return part[0][number]


def _joined_range(maximum: int, slices: tuple[_Pieces, ...]) -> JoinedRange:
    """Task: the buckets of a range."""
    pairs, large = DistinctPairs(1 << 31), list[tuple[np.uint64, int, I32]]()
    for choice, parts in enumerate(zip(*slices, strict=True)):
        keys, numbers = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(numbers)
        for small, others in buckets(keys[order], numbers[order], maximum):
            for block in small:
                pairs.add(block.astype(np.int64))
            large += [(key, choice, members) for key, members in others]
    return JoinedRange(pairs.taken(), large)
