"""Sizes of requests for documents: how many to request at a time, so that neither the server nor the client runs out of
memory.

A server keeps all documents of an answer in its heap, and nothing reports their sizes before they are read. So the
number follows the sizes of the documents read last, at most doubles from one request to the next, and never exceeds the
number of very large documents that fit into the smallest heap of the cluster: any request may be the first to meet
them. A page may have more if they were measured (`es_neardupe.server.document_sizes`), or if the server counts them in
its memory. The client stops reading an answer that is too large. If the server or the client rejects a request for its
size, the same documents are requested in halves.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import islice
from typing import Any, Protocol, TypeVar

from es_neardupe.errors import AnswerTooLarge, DocumentTooLarge, NeardupeError, RequestError, UnexpectedAnswer
from es_neardupe.log_events import log_event
from es_neardupe.records import Address, Hit, Product, Reference, Server
from es_neardupe.server.pacing import Pace
from es_neardupe.server.parallel import readers

PAGE_BYTES = 8_000_000
"""Approximate size of the documents in one answer."""

_MAX_BYTES = 64_000_000
"""Maximum size in bytes of an answer with several documents."""

_FIRST = 16
"""Maximum number of documents in the first request: until it is answered, no other work can start."""

_HEAP_PER_DOCUMENT = 32_000_000
"""Bytes of heap for each document in a request. A text of 10,000,000 characters, the longest that gets keys, has this
size as UTF-8, or exists three times in ASCII: compressed in a stored block, as a document, and in the answer."""

_UNKNOWN_HEAP = 1_000_000_000
"""Assumed heap of a server that does not report it."""

_DEFAULT_REQUEST = 104_857_600
"""Maximum size in bytes of a request to a server that does not report its own: the default of all servers, 100 MB."""

_ANSWER_LIMIT: ContextVar[int | None] = ContextVar("answer_limit", default=None)

_Answer = TypeVar("_Answer")
_Item = TypeVar("_Item")
_Found = TypeVar("_Found")


class Connection(Protocol):
    """The members of a client that are needed."""

    @property
    def server(self) -> Server: ...

    @property
    def url(self) -> str: ...

    @property
    def pace(self) -> Pace: ...

    def request(self, method: str, path: str, *, params: Any = None, body: Any = None) -> Any: ...


class RequestSize:
    """The number of documents for the next request of one reading."""

    def __init__(self, maximum: int, first: int, *, safe: int | None = None, small: bool = False) -> None:
        self.maximum = maximum
        self.safe = maximum if safe is None else safe
        """Number of documents that fit into memory, whatever their sizes. More must be measured before."""
        self.number = min(first, self.safe)
        self._small = small

    @classmethod
    def fixed(cls, number: int) -> RequestSize:
        """For documents of which only small fields are read."""
        return cls(number, number, small=True)

    @classmethod
    def of_documents(cls, client: Connection, maximum: int) -> RequestSize:
        """For documents of any size."""
        return cls(min(maximum, _safe_number(client)), _FIRST)

    @classmethod
    def of_pages(cls, client: Connection, maximum: int) -> RequestSize:
        """For pages of documents of any size, which can be measured before. Pages that are read at the same time share
        the memory."""
        safe = min(maximum, max(1, _safe_number(client) // readers()))
        return cls(maximum, _FIRST, safe=maximum if client.pace.counts else safe)

    def ask(self, request: Callable[[], _Answer]) -> _Answer | None:
        """The answer to a request for ``number`` documents. None if it is too large: then ``number`` is halved. Raises
        the error of a request for one document."""
        if self.number == 1:
            return request()
        try:
            with answer_limit(_MAX_BYTES):
                return request()
        except NeardupeError as error:
            if not is_too_large(error):
                raise
            log_event(logging.WARNING, "too_large", documents=self.number, error=type(error).__name__)
            self.number //= 2
            if _is_beyond_window(error):
                self.maximum = self.number
            return None

    def fit(self, number: int) -> None:
        """Request at most this number of documents, or what is safe."""
        self.number = min(self.number, max(number, self.safe))

    def read(self, documents: Sequence[Any]) -> None:
        """Adapt to the documents of an answer: objects of an answer, hits, or None."""
        fitting = self.maximum
        if not self._small:
            fitting = PAGE_BYTES * len(documents) // max(sum(map(_size_read, documents)), 1)
        self.number = max(1, min(2 * self.number, fitting, self.maximum))


def fits_at_once(client: Connection, documents: int) -> bool:
    """Whether one request for this number of documents is safe, whatever their size."""
    return documents <= RequestSize.of_documents(client, documents).maximum


def in_requests(
    size: RequestSize,
    items: Iterable[_Item],
    request: Callable[[list[_Item]], list[_Found]],
    reference: Callable[[_Item], Reference],
    skip: Callable[[Reference, DocumentTooLarge], None] | None = None,
) -> Iterator[list[_Found]]:
    """The results of requests for a part of the items each. ``request`` returns the documents that it found.

    An item that does not fit into memory raises `DocumentTooLarge` with its ``reference``, or has no result and is
    passed to ``skip``.
    """
    remaining, pending = iter(items), list[_Item]()
    while True:
        pending += islice(remaining, max(0, size.number - len(pending)))
        if not pending:
            return
        size.number = min(size.number, len(pending))
        asked = pending[: size.number]
        try:
            found = size.ask(partial(request, asked))
        except NeardupeError as error:
            if not is_too_large(error):
                raise
            index, id, _ = document = reference(asked[0])
            too_large = does_not_fit(Address(index, id), error)
            if skip is None:
                raise too_large from error
            skip(document, too_large)
            found = []
        if found is not None:
            pending = pending[len(asked) :]
            size.read(found)
            yield found


def in_portions(hits: Iterable[Hit], maximum: int) -> Iterator[list[Hit]]:
    """The hits in lists of at most ``maximum``, fewer if they are large."""
    portion, size = list[Hit](), 0
    for hit in hits:
        portion.append(hit)
        size += size_of(hit.source)
        if len(portion) == maximum or size > PAGE_BYTES:
            yield portion
            portion, size = [], 0
    if portion:
        yield portion


def _safe_number(client: Connection) -> int:
    """How many documents fit into the memory of each node, whatever their sizes. Also determines ``pace.counts``."""
    if client.pace.documents is None:
        heaps = _heaps(client)
        client.pace.documents = max(1, min(heaps, default=_UNKNOWN_HEAP) // _HEAP_PER_DOCUMENT)
        client.pace.counts = len(heaps) == 1 and _counts(client.server)
    return client.pace.documents


def _heaps(client: Connection) -> list[int]:
    """The heaps, in bytes, of the nodes that answer searches; empty if unknown."""
    wanted = {"filter_path": "nodes.*.roles,nodes.*.jvm.mem.heap_max_in_bytes"}
    try:
        nodes = client.request("GET", "/_nodes/jvm", params=wanted)["nodes"].values()
        return [int(node["jvm"]["mem"]["heap_max_in_bytes"]) for node in nodes if not _is_manager(node)]
    except (RequestError, UnexpectedAnswer, AttributeError, KeyError, TypeError, ValueError):
        return []  # not permitted, not available in a serverless cluster, or hidden by a proxy


_COUNTING = ((8, 19, 21), (9, 5, 0))
"""Releases of Elasticsearch 8 and 9 that count the documents of a search in the request circuit breaker of the node
that reads them (tested). A node that collects the documents of others does not, so this is safe for one node only."""


def _counts(server: Server) -> bool:
    since = next((one for one in _COUNTING if one[0] == server.version[0]), None)
    return server.product is Product.ELASTICSEARCH and since is not None and server.version >= since


def _is_manager(node: Mapping[str, Any]) -> bool:
    """Whether a node only manages the cluster."""
    roles = set(node.get("roles", ()))
    return bool(roles) and roles <= {"master", "cluster_manager", "voting_only"}


def request_limit(client: Connection) -> int:
    """The maximum size of a request in bytes that all nodes accept (``http.max_content_length``)."""
    if client.pace.request_bytes is None:
        wanted = {"filter_path": "nodes.*.http.max_content_length_in_bytes"}
        try:
            nodes = client.request("GET", "/_nodes/http", params=wanted)["nodes"].values()
            client.pace.request_bytes = min(int(node["http"]["max_content_length_in_bytes"]) for node in nodes)
        except (RequestError, UnexpectedAnswer, AttributeError, KeyError, TypeError, ValueError):  # as in _heaps
            client.pace.request_bytes = _DEFAULT_REQUEST
    return client.pace.request_bytes


@contextmanager
def answer_limit(maximum: int) -> Iterator[None]:
    """Within a ``with`` block, answers of more than ``maximum`` bytes raise `AnswerTooLarge`."""
    token = _ANSWER_LIMIT.set(maximum)
    try:
        yield
    finally:
        _ANSWER_LIMIT.reset(token)


def current_limit(maximum: int) -> int:
    """The limit of `answer_limit`, at most ``maximum``."""
    limit = _ANSWER_LIMIT.get()
    return maximum if limit is None else min(limit, maximum)


def is_too_large(error: BaseException) -> bool:
    """Whether a request for fewer documents may succeed: the answer does not fit into the memory that the server or the
    client has for it, or has more documents than the server allows."""
    if _is_beyond_window(error):
        return True
    if isinstance(error, RequestError):
        words = f"{error.type} {error.reason}"
        return any(one in words for one in ("circuit_breaking_exception", "Data too large", "more than 2GB"))
    return isinstance(error, AnswerTooLarge)


def _is_beyond_window(error: BaseException) -> bool:
    """Whether a page has more documents than ``index.max_result_window``."""
    windows = ("Result window is too large", "Batch size is too large")
    return isinstance(error, RequestError) and any(words in error.reason for words in windows)


def does_not_fit(address: Address, error: NeardupeError) -> DocumentTooLarge:
    """The error for a document that is too large to be read alone."""
    reason = error.reason if isinstance(error, RequestError) else "the answer is larger than its limit"
    explained = DocumentTooLarge(
        f"Document {address.id!r} of index {address.index} does not fit into memory ({reason.rstrip('.')}). Give the "
        "server a larger heap, or shorten the document."
    )
    explained.request = error.request
    return explained


def can_be_split(path: str, body: Mapping[str, Any] | None) -> bool:
    """Whether a request asks for several documents by `RequestSize`: if it is too large, fewer are requested at once,
    instead of the same ones a little later."""
    if body is None:
        return False
    return (path == "/_mget" and len(body["docs"]) > 1) or (path == "/_search" and body.get("size", 1) > 1)


def _size_read(document: Any) -> int:
    if isinstance(document, Hit):
        return size_of(document.source)
    if document is None:
        return 0
    return sum(size_of(document[part]) for part in ("_source", "fields") if part in document)


def size_of(source: Any) -> int:
    """Approximate size of a JSON value in bytes, as UTF-8; for other scripts than ASCII rather more than less."""
    size, values = 0, [source]
    for value in values:  # which grows
        size += 8
        if isinstance(value, str):
            size += len(value) if value.isascii() else 3 * len(value)
        elif isinstance(value, dict):
            size += len("".join(value))
            values += value.values()
        elif isinstance(value, list):
            values += value
    return size
