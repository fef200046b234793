"""The frozen records that travel between stages. They hold data and no behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

__all__ = ["Fingerprint", "Hit", "Product", "Server", "State"]


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
