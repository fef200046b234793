"""The report of `stats`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from es_neardupe.records import one_line


@dataclass(frozen=True)
class BucketSize:
    """Number of documents with a band key."""

    key: str
    """If several bands must agree, their keys, joined by ``+``."""
    documents: int


@dataclass(frozen=True)
class LargestBuckets:
    """The band keys that most documents share, among the keys of a random sample.

    The documents of a key are counted exactly. A key that fewer than two documents of the sample have is not found: if
    the share p of all documents has it, this happens with probability ``(1 - p)^(n - 1) * (1 + (n - 1) * p)`` in a
    sample of n: 0.0005 for p = 0.001 and n = 10,000. A sample of all documents misses none.
    """

    sampled: int
    """Documents whose keys were read."""
    largest: tuple[BucketSize, ...]
    """Largest first."""


@dataclass(frozen=True)
class StatsScope:
    """Each document is counted once: ``documents = sum(states) + unknown + other_schemes + unprocessed``.

    Documents of the states ``signed`` and ``short`` have keys and are compared. ``numeric`` of them have only numbers
    as tokens; counted separately, ``documents = (signed + short - numeric) + numeric + empty + too_large + failed +
    unknown + other_schemes + unprocessed``.
    """

    documents: int
    """In scope."""
    skipped: int
    """In addition, documents of relations of a join field that are not processed."""
    states: Mapping[str, int]
    """Documents with a fingerprint of the index's scheme, by state."""
    numeric: int
    """Signed and short documents whose tokens are all numbers."""
    unknown: int
    """Documents of the index's scheme with an unknown state or none, written by another client."""
    other_schemes: int
    """Documents with a fingerprint of another scheme: ``enrich`` renews them."""
    schemes: Mapping[str, int]
    """Documents by the scheme of their fingerprint."""
    unprocessed: int
    """Documents without a fingerprint."""
    ungrouped: int
    """Documents with a fingerprint that are new or changed since the last run of ``group``."""
    deleted: int
    """In a sidecar index, entries of deleted documents that wait for ``group`` too: ``enrich`` removes them."""


@dataclass(frozen=True)
class GroupSizes:
    """Groups of two or more documents: ``count = sum(sizes.values())``, ``grouped`` = the sum of size times number."""

    count: int
    grouped: int
    """Documents in them."""
    largest: int
    sizes: Mapping[int, int]
    """Group size -> number of groups of that size."""

    @classmethod
    def of(cls, sizes: Iterable[int]) -> GroupSizes:
        """Count groups by their sizes."""
        numbers = dict(sorted(Counter(sizes).items(), reverse=True))
        grouped = sum(size * number for size, number in numbers.items())
        return cls(sum(numbers.values()), grouped, max(numbers, default=0), numbers)


@dataclass(frozen=True)
class StatsReport:
    """Result of `stats`."""

    index: str
    indices: tuple[str, ...]
    sidecars: tuple[str, ...]
    """The sidecar indices; empty if keys are stored in the documents."""
    scheme: str
    agree: int
    """Bands that a candidate pair shares."""
    fields: tuple[str, ...]
    threshold: float
    scope: StatsScope
    groups: GroupSizes
    buckets: LargestBuckets | None
    """None unless requested."""
    bytes_per_document: Mapping[str, float] | None
    """Mean bytes on disk of each ``neardupe`` field; None unless requested, or if the server does not report them."""

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            documents=self.scope.documents,
            groups=self.groups.count,
            grouped=self.groups.grouped,
            unprocessed=self.scope.unprocessed,
        )
