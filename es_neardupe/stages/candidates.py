"""Stage: band keys -> candidate pairs, joined in memory by one sort of all keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["DEFAULT_MAX_BUCKET", "Bucket", "Candidates", "bucket_sizes", "find_candidates"]

DEFAULT_MAX_BUCKET = 200
"""Classes of equal texts that may share a band key before only representatives are compared with all."""

_BLOCK = 4_000_000
"""Pairs made at a time, and the multiple of it that is kept before repeated pairs are thrown out."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """A band key that more classes share than ``max_bucket``."""

    key: str
    size: int
    compared: int
    """Pairs that became candidates through this key."""
    skipped: int
    """Pairs of this bucket that did not; some may be candidates through another key."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Pairs of class numbers, ``left < right``, each once, in ascending order."""

    left: NDArray[np.intp]
    right: NDArray[np.intp]
    large: tuple[Bucket, ...]

    def __len__(self) -> int:
        return len(self.left)

    @property
    def skipped(self) -> int:
        """Comparisons left out in large buckets, a pair counted once for each of them."""
        return sum(bucket.skipped for bucket in self.large)


def find_candidates(keys: NDArray[np.uint64], max_bucket: int = DEFAULT_MAX_BUCKET) -> Candidates:
    """All pairs of rows of ``keys`` (shape (k, b), 0 = no key) that share a key.

    In a bucket with more than ``max_bucket`` rows, each row is compared with the ``max_bucket`` first ones only
    (the longest texts, by the numbering of classes): work linear in its size, and what was left out is counted.
    """
    sorted_rows, starts, sizes, names = _sorted_buckets(keys)
    codes = _Distinct()
    for block in _small_buckets(sorted_rows, starts, sizes, max_bucket):
        codes.add(block, len(keys))
    large = []
    for number in np.flatnonzero(sizes > max_bucket):
        rows = sorted_rows[starts[number] : starts[number] + sizes[number]]
        compared = 0
        for pairs in _with_representatives(rows, max_bucket):
            codes.add(pairs, len(keys))
            compared += len(pairs)
        large.append(Bucket(_text(names[number]), len(rows), compared, len(rows) * (len(rows) - 1) // 2 - compared))
    left, right = np.divmod(codes.all(), max(len(keys), 1))
    large.sort(key=lambda bucket: (-bucket.size, bucket.key))
    return Candidates(left.astype(np.intp), right.astype(np.intp), tuple(large))


def bucket_sizes(keys: NDArray[np.uint64], most: int = 10) -> list[tuple[str, int]]:
    """The band keys that most rows share, with how many, largest first; only those that two or more share."""
    flat, counts = np.unique(keys[keys != 0], return_counts=True)
    order = np.argsort(-counts, kind="stable")[:most]
    return [(_text(flat[k]), int(counts[k])) for k in order if counts[k] > 1]


def _sorted_buckets(
    keys: NDArray[np.uint64],
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp], NDArray[np.uint64]]:
    """Rows sorted by key, and where each run of an equal key begins, how long it is, and the key.

    Within a run rows ascend. A row stands in a run once, since its keys differ in the band's position.
    """
    flat = keys.reshape(-1)
    rows = np.repeat(np.arange(len(keys)), keys.shape[1])
    there = flat != 0
    flat, rows = flat[there], rows[there]
    order = np.argsort(flat, kind="stable")
    flat, rows = flat[order], rows[order]
    starts = np.flatnonzero(np.concatenate([[True], flat[1:] != flat[:-1]])) if len(flat) else np.zeros(0, np.intp)
    sizes = np.diff(np.append(starts, len(flat)))
    return rows, starts, sizes, flat[starts]


def _small_buckets(
    rows: NDArray[np.intp], starts: NDArray[np.intp], sizes: NDArray[np.intp], max_bucket: int
) -> Iterator[NDArray[np.intp]]:
    """All pairs of every bucket up to ``max_bucket``, shape (pairs, 2); buckets of one size at a time."""
    for size in np.unique(sizes[(sizes > 1) & (sizes <= max_bucket)]):
        first, second = np.triu_indices(size, 1)
        of_size = starts[sizes == size]
        step = max(1, _BLOCK // len(first))
        for begin in range(0, len(of_size), step):
            members = rows[of_size[begin : begin + step, None] + np.arange(size)]
            yield np.stack([members[:, first].reshape(-1), members[:, second].reshape(-1)], axis=1)


def _with_representatives(rows: NDArray[np.intp], representatives: int) -> Iterator[NDArray[np.intp]]:
    """Pairs of each of the first rows with every later row, in blocks."""
    step = max(1, _BLOCK // len(rows))
    for begin in range(0, representatives, step):
        some = rows[begin : min(begin + step, representatives)]
        left, right = np.repeat(some, len(rows)), np.tile(rows, len(some))
        yield np.stack([left, right], axis=1)[left < right]


class _Distinct:
    """A growing set of pairs, each coded as one integer."""

    def __init__(self) -> None:
        self._parts: list[NDArray[np.int64]] = []
        self._size = 0
        self._limit = 4 * _BLOCK

    def add(self, pairs: NDArray[np.intp], rows: int) -> None:
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        self._parts.append(pairs[:, 0].astype(np.int64) * rows + pairs[:, 1])
        self._size += len(pairs)
        if self._size > self._limit:
            merged = self.all()
            self._parts, self._size = [merged], len(merged)
            self._limit = max(self._limit, 2 * len(merged))

    def all(self) -> NDArray[np.int64]:
        return np.unique(np.concatenate(self._parts)) if self._parts else np.zeros(0, np.int64)


def _text(key: np.uint64) -> str:
    return key.tobytes().decode("latin-1")
