"""Helpers of the tests without a server: documents in memory, a client that reads and writes them, random texts."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from hypothesis import strategies as st

from es_neardupe.columns import References, ValueSets
from es_neardupe.commands.duplicates.diagnostics import GroupingDiagnostics, HashingDiagnostics, PairsDiagnostics
from es_neardupe.commands.duplicates.results import DocumentPair, PairList
from es_neardupe.errors import RequestError
from es_neardupe.index import permissions
from es_neardupe.index.document_text import fingerprint_sources
from es_neardupe.index.index import Index
from es_neardupe.index.settings import Settings
from es_neardupe.index.stored_fields import encode, own_group
from es_neardupe.index.target import IndexTarget
from es_neardupe.keys.text import packed_hashes, tokenize
from es_neardupe.options import DEFAULT_MAX_CHARS
from es_neardupe.records import FingerprintColumns, Hit, Product, Server
from es_neardupe.server.pacing import Pace

SETTINGS = Settings(("text",), threshold=0.8)
AT = "2024-05-01T00:00:00Z"

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
"""Any JSON value."""


class FakeClient:
    """A server in memory: ``_mget`` reads ``sources``; bulks are answered by ``answer`` (default: all succeed)."""

    server = Server(Product.OPENSEARCH, (3, 8, 0))
    url = "http://fake"
    login = ""
    options = None

    def __init__(self, sources: Mapping[tuple[str, str], Mapping[str, Any]] | None = None) -> None:
        self.pace = Pace()
        self.pace.documents = 500
        self.pace.request_bytes = 104_857_600
        self.sources = {address: dict(source) for address, source in (sources or {}).items()}
        self.asked: list[tuple[str, str]] = []
        self.requests: list[int] = []
        self.bulks: list[list[tuple[dict[str, Any], dict[str, Any]]]] = []
        self.bulk_bytes: list[int] = []
        self.answer: Callable[[str, dict[str, Any], dict[str, Any]], dict[str, Any]] = lambda op, meta, body: {
            "status": 200
        }

    def request(self, method: str, path: str, *, params: Any = None, body: Any = None) -> Any:
        if path.endswith(("/_refresh", f"/_settings/{','.join(permissions.BLOCK_SETTINGS)}", "index.final_pipeline")):
            return {}
        if method == "GET" and path.count("/") == 1:  # settings and mapping
            return {}
        if path.endswith("/_stats"):
            raise RequestError("no sequence numbers here", status=400)
        if path.endswith("/_search"):  # finds nothing
            empty = {name: {"doc_count": 0, "buckets": []} for name in body.get("aggs", ())}
            return {"hits": {"total": {"value": 0}, "hits": []}, "aggregations": empty}
        assert (method, path) == ("POST", "/_mget")
        self.requests.append(len(body["docs"]))
        self.asked += [(doc["_index"], doc["_id"]) for doc in body["docs"]]
        return {"docs": [self._found(doc) for doc in body["docs"]]}

    def _found(self, doc: dict[str, Any]) -> dict[str, Any]:
        head = {"_index": doc["_index"], "_id": doc["_id"]}
        source = self.sources.get((doc["_index"], doc["_id"]))
        if source is None:
            return head | {"found": False}
        return head | {"found": True, "_seq_no": 1, "_primary_term": 1, "_source": source}

    def bulk(self, body: bytes, *, params: Any = None, before: Any = None) -> Any:
        lines = [json.loads(line) for line in body.splitlines()]
        assert len(lines) % 2 == 0
        assert body.endswith(b"\n")
        pairs = list(zip(lines[::2], lines[1::2], strict=True))
        self.bulks.append(pairs)
        self.bulk_bytes.append(len(body))
        items = []
        for head, document in pairs:
            ((op, meta),) = head.items()
            items.append({op: self.answer(op, meta, document)})
        return {"errors": any("error" in one for item in items for one in item.values()), "items": items}

    def pages(self, *args: Any, **options: Any) -> Iterator[list[Hit]]:
        raise AssertionError("nothing is searched here")

    def close(self) -> None:
        pass


def hits(texts: Mapping[str, str], settings: Settings = SETTINGS, index: str = "i") -> list[Hit]:
    """Documents as ``enrich`` leaves them: text and fingerprint, in a group of their own, not yet grouped."""
    sources = [{"text": text} for text in texts.values()]
    found = fingerprint_sources(sources, settings, DEFAULT_MAX_CHARS)
    return [
        Hit(index, id, None, 1, 1, {**source, settings.prefix: stored(fingerprint, index, id)})
        for id, source, fingerprint in zip(texts, sources, found, strict=True)
    ]


def stored(fingerprint: Any, index: str, id: str) -> dict[str, Any]:
    """The neardupe fields of an enriched document."""
    return {**encode(fingerprint, AT), "group": own_group(index, id), "principal": None}


def shingle_set(text: str, size: int = 5) -> frozenset[tuple[str, ...]]:
    """The shingles of a text as tuples of words; one of all words if there are fewer."""
    words = tokenize(text)
    return frozenset(tuple(words[k : k + size]) for k in range(max(1, len(words) - size + 1)) if words)


def set_resemblance(a: frozenset[Any] | set[Any], b: frozenset[Any] | set[Any]) -> float:
    """|a & b| / |a | b|; 1 for two empty sets."""
    return len(a & b) / len(a | b) if a | b else 1.0


def words(start: int, count: int, mark: str = "w") -> str:
    """``count`` distinct words."""
    return " ".join(f"{mark}{k}" for k in range(start, start + count))


def pair_list(pairs: Sequence[DocumentPair]) -> PairList:
    """The result of a request for duplicates, made of its pairs."""
    addresses = list(dict.fromkeys(address for pair in pairs for address in (pair.a, pair.b)))
    number = {address: place for place, address in enumerate(addresses)}
    return PairList(
        [(index, id, None) for index, id in addresses],
        np.array([number[pair.a] for pair in pairs], np.intp),
        np.array([number[pair.b] for pair in pairs], np.intp),
        np.array([pair.similarity for pair in pairs]),
        lambda place: pairs[place].explanation or "",
    )


def pairs_diagnostics(
    features: str = "values", *, hashes: int = 0, candidates: int = 0, skipped: int = 0, seconds: float = 0
) -> PairsDiagnostics:
    """Some numbers of a request for duplicates; the others are 0."""
    hashing = HashingDiagnostics(features, 0, None, 0, hashes)
    return PairsDiagnostics(hashing, GroupingDiagnostics(200, 0, skipped, 0, 0, candidates, 0, seconds), ())


def paged(items: Sequence[Hit], size: int) -> list[Sequence[Hit]]:
    """The items in pages."""
    return [items[k : k + size] for k in range(0, len(items), size)]


def columns(size: int, **some: Any) -> FingerprintColumns:
    """A corpus of this many ungrouped documents, each with a distinct text; ``some`` columns replace the defaults."""
    plain: dict[str, Any] = {
        "references": References.of(("i", f"d{row}", None) for row in range(size)),
        "versions": np.zeros((size, 2), np.int64),
        "shards": np.full(size, -1, np.int16),
        "checked": np.zeros(size, np.int64),
        "content": packed_hashes([f"{row + 1:032}" for row in range(size)]),
        "tokens": np.ones(size, np.int64),
        "keys": np.ones((size, 1), np.uint64),
        "group_ids": np.zeros(size, "S16"),
        "leading": np.full(size, -1, np.int8),
        "similarity": np.full(size, np.nan),
        "states": {},
        "corrupt": [],
        "places": np.zeros(size, np.int64),
        "scopes": np.zeros(size, np.int64),
        "across": ValueSets(np.zeros(size, np.int64)),
        "days": np.zeros(size),
    }
    return FingerprintColumns(**plain | some)


def index_of(client: Any, target: IndexTarget) -> Index:
    """An opened index, made without requests to a server."""
    return Index(target.name, client, target=target)


_QUIET = 0.05
"""Seconds of the computation of `_slowness` on a quiet machine."""


def _slowness(clock: Callable[[], float]) -> float:
    """How many times as long as a quiet machine this one needs now for a known computation, by a clock; at least 1."""
    began = clock()
    sum(number * number for number in range(1_000_000))
    return max(1.0, (clock() - began) / _QUIET)


@contextmanager
def in_seconds(limit: float) -> Iterator[None]:
    """A block that takes much less processor time than this on a quiet machine. How long it waits for other processes
    does not count. It only separates seconds from the minutes of a wrong algorithm."""
    began = time.process_time()
    yield
    taken = time.process_time() - began
    assert taken < limit or taken < limit * _slowness(time.process_time), f"{taken:.1f} s instead of {limit:g}"


def patience(seconds: float) -> float:
    """The same for work of several processes: a limit of the time that passes, as much longer as this machine is slower
    now, busy as it is."""
    return seconds * _slowness(time.monotonic)
