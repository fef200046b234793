"""Frozen data objects that are passed between packages: fingerprints, hits, writes and their outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from es_neardupe.columns import References, RowLists, ValueSets

_BLOCK = 1 << 16
"""Rows converted at a time."""

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

    @property
    def has_keys(self) -> bool:
        """Whether documents in this state have keys."""
        return self in (State.SIGNED, State.SHORT)


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


class Service(str, Enum):
    """Who runs a server, as far as its answers show it. Services offer only a part of the requests of a product."""

    UNKNOWN = ""
    """The user, or a service that answers as the product does."""
    ELASTIC_HOSTED = "Elastic Cloud Hosted"
    ELASTIC_SERVERLESS = "Elastic Cloud Serverless"
    AMAZON_DOMAIN = "Amazon OpenSearch Service"
    AMAZON_COLLECTION = "Amazon OpenSearch Serverless"


@dataclass(frozen=True, slots=True)
class Server:
    """Product and version of a server, and the service that runs it."""

    product: Product
    version: tuple[int, int, int]
    """Zeros for Amazon OpenSearch Serverless, which reports none."""
    service: Service = Service.UNKNOWN

    @property
    def has_search_pipelines(self) -> bool:
        """Whether requests can name a search pipeline, and indices a default one."""
        return self.product is Product.OPENSEARCH and self.version >= (2, 9, 0)

    @property
    def is_collection(self) -> bool:
        """Whether it is a collection of Amazon OpenSearch Serverless."""
        return self.service is Service.AMAZON_COLLECTION

    @property
    def is_serverless(self) -> bool:
        """Whether the service chooses shards and replicas, and rejects or ignores those of a request."""
        return self.service in (Service.ELASTIC_SERVERLESS, Service.AMAZON_COLLECTION)

    def __str__(self) -> str:
        if self.is_serverless:
            return self.service.value
        name = {"elasticsearch": "Elasticsearch", "opensearch": "OpenSearch"}[self.product.value]
        version = f"{name} {'.'.join(map(str, self.version))}"
        return f"{version} on {self.service.value}" if self.service else version


class Address(NamedTuple):
    """A document's concrete index and id."""

    index: str  # type: ignore[assignment]  # hides tuple.index, which is not used
    id: str


@dataclass(slots=True)  # not frozen, like Action and Outcome: to make one takes half as long, and runs make millions
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


@dataclass(slots=True)
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
    version: int | None = None
    """The version that the document has and keeps, because its owner sets the versions; the write fails if it has a
    later one. Instead of ``seq_no`` and ``primary_term``."""

    @property
    def address(self) -> Address:
        """Index and id."""
        return Address(self.index, self.id)

    @property
    def reference(self) -> Reference:
        """Index, id and routing."""
        return self.index, self.id, self.routing


@dataclass(slots=True)
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
    dropped: bool = False
    """Whether an ingest pipeline dropped the document, which the server answers with a success; known if versions were
    requested."""

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


class Column(Protocol):
    """A column of n values, in memory (an array) or spilled to disk."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any, /) -> Any:
        """``[row]``: one value; ``[rows]``: those of ascending rows."""


class BandKeys(Protocol):
    """Band keys of n documents, in memory (an array) or spilled to disk; shape (n, b)."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, b)."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: Any, /) -> Any:
        """``[:, band]``: the keys of a band; ``[row]``: those of a document."""


@dataclass(frozen=True, slots=True)
class FingerprintColumns:
    """Fingerprints of n documents as columns with one row per document, in the order of reading; b bands."""

    references: References
    versions: Column
    """Sequence number and primary term; int64, shape (n, 2)."""
    shards: Column
    """Number of the shard of each document; -1 if it is unknown. int16, shape (n,)."""
    checked: Column
    """``_version`` of each document that is known to have no number that a partial update changes, see
    `es_neardupe.index.storage.field_writes`; 0 for others. int64, shape (n,)."""
    content: NDArray[np.bytes_]
    """The 16 bytes of the content hash; empty without tokens. S16, shape (n,)."""
    tokens: NDArray[np.signedinteger[Any]]
    """Number of tokens; shape (n,)."""
    keys: BandKeys
    """The 8 bytes of each band key; 0 for a document without keys. Shape (n, b)."""
    group_ids: NDArray[np.bytes_]
    """The stored group id; empty if there is none. S16, shape (n,)."""
    leading: NDArray[np.int8]
    """Whether ``group`` wrote that the document is the principal (1) or another member (0) of its group; -1 for a
    document that ``group`` has not processed since it last changed. Shape (n,)."""
    similarity: Column
    """Similarity to the principal, as last written by ``group``; NaN where ``leading`` is -1. float64, shape (n,)."""
    states: dict[str, int]
    corrupt: list[Address]
    """Documents whose stored fingerprint cannot be read; they have no row."""
    places: NDArray[np.int64]
    """Rank as principal by the policy, lowest first; equal if length and id decide. Shape (n,)."""
    scopes: NDArray[np.int64]
    """Scope number; rows of different scopes are never compared. Shape (n,)."""
    across: ValueSets
    """The values of which no two rows that are compared have one in common. n rows."""
    days: NDArray[np.float64]
    """Date in days since 1970, for a time window: NaN is never compared; all 0 without a window. Shape (n,)."""

    def __len__(self) -> int:
        return len(self.references)

    def without_keys(self) -> FingerprintColumns:
        """The other columns."""
        return replace(self, keys=np.zeros((len(self), 0), np.uint64))

    def address(self, row: int) -> Address:
        """Index and id of a document."""
        return Address(*self.references[row][:2])

    def grouping(self, row: int) -> Grouping | None:
        """The grouping as last written by ``group``; None for a document that ``group`` has not processed yet."""
        if self.leading[row] < 0:
            return None
        return Grouping(self.group_ids[row].decode(), bool(self.leading[row]), float(self.similarity[row]))


class TextClasses(RowLists):
    """k classes of rows with equal content, scope and date, numbered in the order of principals, as their rows are. A
    row with values of the rule ``across`` is a class of its own.

    Each class of exact copies is one text in candidate search and verification.
    """

    __slots__ = ()


class Groupings(Mapping[int, Grouping]):
    """Row -> new grouping, as columns: the rows that a run processed, and their g groups. n rows."""

    def __init__(
        self,
        group_of: NDArray[np.int32],
        similarity: NDArray[np.float64],
        principals: NDArray[np.signedinteger[Any]],
        ids: NDArray[np.bytes_],
    ) -> None:
        self.group_of = group_of
        """The number of the group of each row, -1 for a row without a new grouping; shape (n,)."""
        self.similarity = similarity
        """Similarity of each row to its principal; shape (n,)."""
        self.principals = principals
        """The row of the principal of each group; shape (g,)."""
        self.ids = ids
        """S16, shape (g,)."""

    @property
    def rows(self) -> NDArray[np.intp]:
        """The rows, ascending."""
        return np.flatnonzero(self.group_of >= 0)

    def leading(self, rows: NDArray[np.signedinteger[Any]]) -> NDArray[np.bool_]:
        """Whether some of the rows are principals."""
        principal: NDArray[np.bool_] = self.principals[self.group_of[rows]] == rows
        return principal

    def only(self, rows: NDArray[np.signedinteger[Any]]) -> Groupings:
        """The new groupings of some of the rows."""
        group_of = np.full(len(self.group_of), -1, np.int32)
        group_of[rows] = self.group_of[rows]
        return Groupings(group_of, self.similarity, self.principals, self.ids)

    def __getitem__(self, row: int) -> Grouping:
        if not 0 <= row < len(self.group_of) or (group := int(self.group_of[row])) < 0:
            raise KeyError(row)
        return Grouping(self.ids[group].decode(), int(self.principals[group]) == row, float(self.similarity[row]))

    def __iter__(self) -> Iterator[int]:
        rows = self.rows
        for start in range(0, len(rows), _BLOCK):
            yield from rows[start : start + _BLOCK].tolist()

    def __len__(self) -> int:
        return int((self.group_of >= 0).sum())


@dataclass(frozen=True, slots=True)
class DocumentsInScope:
    """n documents, numbered by id and then index, independently of the order of reading."""

    references: References
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
