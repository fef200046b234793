"""Frozen data objects that are passed between packages: fingerprints, hits, writes and their outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Action",
    "Address",
    "DocumentsInScope",
    "Fingerprint",
    "FingerprintColumns",
    "Grouping",
    "Hit",
    "Outcome",
    "Product",
    "Reference",
    "Server",
    "State",
    "TextClasses",
    "one_line",
]


_SHOWN = 40
"""Characters of a value in the ``repr`` of a report."""


def one_line(report: object, **main: object) -> str:
    """The ``repr`` of a report: its main values, each cut to one short piece."""
    return f"{type(report).__name__}({', '.join(f'{name}={_short(value)}' for name, value in main.items())})"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


class State(str, Enum):
    """Result of fingerprinting a document."""

    SIGNED = "signed"
    """At least w tokens: features are all shingles; has keys."""
    SHORT = "short"
    """Fewer than w tokens, but at least one: one feature made of all tokens; has keys."""
    EMPTY = "empty"
    """No token: no features and no keys, so never a candidate."""
    TOO_LARGE = "too_large"
    """Longer than ``max_chars``: not read, no keys."""
    FAILED = "failed"
    """A field contains something other than text, such as an object: no keys."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Keys and counts stored per document. ``content`` is a hash of 32 hexadecimal digits, or "" without tokens."""

    scheme: str
    state: State
    content: str
    bands: tuple[str, ...]
    signature: bytes
    """One byte per slot; empty if there are no features."""
    tokens: int
    """Number of tokens."""
    features: int
    """Number of distinct shingles."""
    numeric: bool = False
    """Whether all tokens are numbers: compared like any other text, but counted separately."""
    samples: tuple[str, ...] | None = None
    """The sampled keys; None if the scheme has none, or they were not read."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """The group of a document, and its exact similarity to the principal (1 for the principal itself)."""

    group: str
    principal: bool
    similarity: float


class Product(str, Enum):
    """Elasticsearch or OpenSearch."""

    ELASTICSEARCH = "elasticsearch"
    OPENSEARCH = "opensearch"


@dataclass(frozen=True, slots=True)
class Server:
    """Product and version of a server."""

    product: Product
    version: tuple[int, int, int]

    def __str__(self) -> str:
        name = {"elasticsearch": "Elasticsearch", "opensearch": "OpenSearch"}[self.product.value]
        return f"{name} {'.'.join(map(str, self.version))}"


class Address(NamedTuple):
    """A document's concrete index and id."""

    index: str  # type: ignore[assignment]  # hides tuple.index, which is not used
    id: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A document as read from the server: its address, its version, and the requested part of its source."""

    index: str
    id: str
    routing: str | None
    seq_no: int | None
    primary_term: int | None
    source: Mapping[str, Any]
    score: float | None = None
    version: int | None = None
    """``_version``: each write of the document increments it by one."""
    shard: int | None = None
    """Number of its shard; None if the documents of all shards were requested together."""

    @property
    def address(self) -> Address:
        """Index and id."""
        return Address(self.index, self.id)

    @property
    def reference(self) -> Reference:
        """Index, id and routing."""
        return self.index, self.id, self.routing


Reference = tuple[str, str, "str | None"]
"""Concrete index, id and routing, with which a document is read."""


@dataclass(frozen=True, slots=True)
class Action:
    """One write of one document. With ``seq_no`` and ``primary_term``, it fails if the document has changed."""

    op: str
    """``update``, ``index``, ``create`` or ``delete``."""
    index: str
    id: str
    body: Mapping[str, Any]
    """The second line in the bulk request; not sent for a deletion."""
    routing: str | None = None
    seq_no: int | None = None
    primary_term: int | None = None
    pipeline: str | None = None
    whole: bool = False
    """Whether ``body`` is the whole document of a user, to be written with the literals of its numbers."""
    document_bytes: int = 0
    """For an update: approximate size of the document, which the server reads and indexes again."""
    shard: int | None = None
    """Number of the shard of the document, if it is known."""

    @property
    def address(self) -> Address:
        """Index and id."""
        return Address(self.index, self.id)

    @property
    def reference(self) -> Reference:
        """Index, id and routing."""
        return self.index, self.id, self.routing


@dataclass(frozen=True, slots=True)
class Outcome:
    """The server's response to one action."""

    action: Action
    status: int
    type: str = ""
    reason: str = ""
    repeated: bool = False
    """Whether an answer was lost and the write was sent again: a conflict may be with its own first attempt."""
    seq_no: int | None = None
    """Sequence number of the document after the write; None if versions were not requested."""
    primary_term: int | None = None

    @property
    def done(self) -> bool:
        """Whether the write succeeded."""
        return 200 <= self.status < 300

    @property
    def conflict(self) -> bool:
        """Whether another client changed the document, or it already exists."""
        return self.status == 409

    @property
    def gone(self) -> bool:
        """Whether the document has been deleted."""
        return self.status == 404


@dataclass(frozen=True, slots=True)
class FingerprintColumns:
    """Fingerprints of n documents as columns with one row per document, in the order of reading; b bands."""

    references: list[Reference]
    versions: NDArray[np.int64]
    """Sequence number and primary term; shape (n, 2)."""
    shards: NDArray[np.int64]
    """Number of the shard of each document; -1 if it is unknown. Shape (n,)."""
    checked: NDArray[np.int64]
    """``_version`` of each document that is known to have no number that a partial update changes, see
    `es_neardupe.index.field_writes`; 0 for others. Shape (n,)."""
    content: NDArray[np.bytes_]
    """Content hash, 32 bytes of ASCII; empty without tokens. Shape (n,)."""
    tokens: NDArray[np.int64]
    """Number of tokens; shape (n,)."""
    keys: NDArray[np.uint64]
    """The 8 bytes of each band key; 0 for a document without keys. Shape (n, b)."""
    group_ids: list[str | None]
    groupings: list[Grouping | None]
    """As last written by ``group``; None for a document that ``group`` has not processed yet."""
    states: dict[str, int]
    corrupt: list[Address]
    """Documents whose stored fingerprint cannot be read; they have no row."""
    places: NDArray[np.int64]
    """Rank as principal by the policy, lowest first; equal if length and id decide. Shape (n,)."""
    scopes: NDArray[np.int64]
    """Scope number; rows of different scopes are never compared. Shape (n,)."""
    days: NDArray[np.float64]
    """Date in days since 1970, for a time window: NaN is never compared; all 0 without a window. Shape (n,)."""

    def __len__(self) -> int:
        return len(self.references)


@dataclass(frozen=True, slots=True)
class TextClasses:
    """k classes of rows with equal content, scope and date, numbered in the order of principals.

    Each class of exact copies is one text in candidate search and verification.
    """

    members: list[NDArray[np.intp]]
    """Rows of each class, in the order of principals."""

    @property
    def first(self) -> NDArray[np.intp]:
        """The first row of each class; shape (k,)."""
        return np.array([rows[0] for rows in self.members], np.intp)

    def touching(self, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether each class contains one of the selected rows. ``rows``: shape (n,); result: shape (k,)."""
        return np.array([bool(rows[members].any()) for members in self.members], np.bool_)

    def __len__(self) -> int:
        return len(self.members)


@dataclass(frozen=True, slots=True)
class DocumentsInScope:
    """n documents, numbered by id and then index, independently of the order of reading."""

    references: list[Reference]
    versions: NDArray[np.int64]
    """Sequence number and primary term of each when it was read; shape (n, 2)."""
    sizes: NDArray[np.int64]
    """Number of hashed characters of each document, or of its tokens; shape (n,)."""
    numbers: NDArray[np.intp]
    """The number of the k-th document read; shape (n,)."""
    empty: int
    """Number of documents without features, which are in no pair."""

    def __len__(self) -> int:
        return len(self.references)
