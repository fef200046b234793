"""The frozen records that travel between stages. They hold data, and at most say it in another form."""

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
    """What became of a document when it was fingerprinted."""

    SIGNED = "signed"
    """At least w tokens: full features and keys."""
    SHORT = "short"
    """Fewer than w tokens, but at least one: one feature made of all tokens, and keys."""
    EMPTY = "empty"
    """No token: no features, no keys, never a candidate."""
    TOO_LARGE = "too_large"
    """Longer than ``max_chars``: not read, no keys."""
    FAILED = "failed"
    """The fields do not hold text (an object where a string was expected): no keys."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What is stored per document. ``content`` is 32 hexadecimal digits, or "" without tokens."""

    scheme: str
    state: State
    content: str
    bands: tuple[str, ...]
    signature: bytes
    """One byte a slot; empty if there are no features."""
    tokens: int
    """Number of tokens."""
    features: int
    """Number of distinct shingles."""
    numeric: bool = False
    """Whether all tokens are numbers: compared like any other text, and counted apart."""
    samples: tuple[str, ...] | None = None
    """The sampled keys; None where the scheme samples nothing, or they were not read."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """Which group a document is in. ``similarity`` is the exact one to the principal (1 for itself)."""

    group: str
    principal: bool
    similarity: float


class Product(str, Enum):
    """The two families of servers."""

    ELASTICSEARCH = "elasticsearch"
    OPENSEARCH = "opensearch"


@dataclass(frozen=True, slots=True)
class Server:
    """What answers at a URL."""

    product: Product
    version: tuple[int, int, int]

    def __str__(self) -> str:
        name = {"elasticsearch": "Elasticsearch", "opensearch": "OpenSearch"}[self.product.value]
        return f"{name} {'.'.join(map(str, self.version))}"


class Address(NamedTuple):
    """The name of a document: its concrete index and id."""

    index: str  # type: ignore[assignment]  # hides tuple.index, which nobody needs here
    id: str


@dataclass(frozen=True, slots=True)
class Hit:
    """One document as it was read: where it lies, which version it is, and the asked part of its source."""

    index: str
    id: str
    routing: str | None
    seq_no: int | None
    primary_term: int | None
    source: Mapping[str, Any]
    score: float | None = None

    @property
    def address(self) -> Address:
        """Index and id."""
        return Address(self.index, self.id)

    @property
    def reference(self) -> Reference:
        """Index, id and routing."""
        return self.index, self.id, self.routing


Reference = tuple[str, str, "str | None"]
"""Concrete index, id and routing: what a document is read by."""


@dataclass(frozen=True, slots=True)
class Action:
    """One write, of one document. ``seq_no`` and ``primary_term`` make it fail where the document changed."""

    op: str
    """``update``, ``index``, ``create`` or ``delete``."""
    index: str
    id: str
    body: Mapping[str, Any]
    """What stands in the second line of the bulk request; that of a deletion is not sent."""
    routing: str | None = None
    seq_no: int | None = None
    primary_term: int | None = None
    pipeline: str | None = None

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
    """What the server said of one action."""

    action: Action
    status: int
    type: str = ""
    reason: str = ""
    repeated: bool = False
    """Whether an answer was lost and the write sent again: a conflict may be with ourselves."""
    seq_no: int | None = None
    """Of the document after the write, with the primary term; None where that was not asked for."""
    primary_term: int | None = None

    @property
    def done(self) -> bool:
        """Whether the write took place."""
        return 200 <= self.status < 300

    @property
    def conflict(self) -> bool:
        """Whether the document was changed by somebody, or exists already."""
        return self.status == 409

    @property
    def gone(self) -> bool:
        """Whether the document was deleted meanwhile."""
        return self.status == 404


@dataclass(frozen=True, slots=True)
class FingerprintColumns:
    """One row a document, in the order of reading. n rows, b bands."""

    references: list[Reference]
    versions: NDArray[np.int64]
    """Sequence number and primary term; shape (n, 2)."""
    content: NDArray[np.bytes_]
    """Content hash, 32 bytes of ASCII; empty without tokens. Shape (n,)."""
    tokens: NDArray[np.int64]
    keys: NDArray[np.uint64]
    """Band keys as the 8 bytes they are; 0 where a document has none. Shape (n, b)."""
    group_ids: list[str | None]
    groupings: list[Grouping | None]
    """What ``group`` wrote last; None for a document that waits for it."""
    states: dict[str, int]
    corrupt: list[Address]
    """Documents whose stored fingerprint cannot be read; they are in no row."""
    places: NDArray[np.int64]
    """Who comes first as principal, by the policy; equal where length and id decide. Shape (n,)."""
    scopes: NDArray[np.int64]
    """Rows of different numbers never meet. Shape (n,)."""
    days: NDArray[np.float64]
    """Date in days since 1970 where a window of time matters: NaN meets nobody; all 0 without a window. Shape (n,)."""

    def __len__(self) -> int:
        return len(self.references)


@dataclass(frozen=True, slots=True)
class TextClasses:
    """Rows with equal content (and scope and date), k classes, numbered in the order of principals.

    Exact copies go through candidate search and verification as one.
    """

    members: list[NDArray[np.intp]]
    """Rows of each class, in the order of principals."""

    @property
    def first(self) -> NDArray[np.intp]:
        """The first row of each class; shape (k,)."""
        return np.array([rows[0] for rows in self.members], np.intp)

    def touching(self, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which classes have one of these rows (bool of the corpus); shape (k,)."""
        return np.array([bool(rows[members].any()) for members in self.members], np.bool_)

    def __len__(self) -> int:
        return len(self.members)


@dataclass(frozen=True, slots=True)
class DocumentsInScope:
    """n documents, numbered by id and then index, whatever the order in which they came."""

    references: list[Reference]
    versions: NDArray[np.int64]
    """Sequence number and primary term of each when it was read; shape (n, 2)."""
    sizes: NDArray[np.int64]
    """Characters of each that were hashed, or its tokens; shape (n,)."""
    numbers: NDArray[np.intp]
    """The number of the document that was read as the k-th; shape (n,)."""
    empty: int
    """Documents without any feature: in no pair."""

    def __len__(self) -> int:
        return len(self.references)
