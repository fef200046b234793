"""Client: the interface of a connection to a search server, and the encoding of paths and bodies."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol
from urllib.parse import quote, urlencode

from es_neardupe.errors import Conflict, DocumentTooLarge, InputError, NotFound
from es_neardupe.records import Hit, Server
from es_neardupe.server.pacing import Pace

JSON = dict[str, Any]
"""A JSON object in a request or an answer."""

Params = Mapping[str, str | int | bool]
"""Query parameters of a request."""

Before = Callable[[], None]
"""What is done directly before a request is sent, each time."""


NO_DOCUMENT = "es-neardupe-no-such-document"
"""An id that no document has: what the server answers to a write of it shows what it would do, and changes nothing."""


def checks_versions(request: Callable[..., Any], index_path: str) -> bool:
    """Whether the server rejects a write that depends on another version of a document. ``request`` sends the deletion
    of a document that does not exist, which changes nothing. ``index_path``: the path of an index."""
    try:
        request("DELETE", f"{index_path}/_doc/{NO_DOCUMENT}", params={"if_seq_no": 0, "if_primary_term": 1})
    except Conflict:
        return True
    except NotFound:
        pass
    return False


class Client(Protocol):
    """A connection to one server. Safe to share between threads.

    Every method raises errors of :mod:`es_neardupe.errors` only: ``ConnectError`` and its kinds,
    ``RequestError`` and its kinds, ``IncompleteAnswer``, ``UnexpectedAnswer``, ``InputError`` for values that JSON does
    not have.
    """

    @property
    def server(self) -> Server:
        """Product and version, as detected when the connection was opened."""

    @property
    def url(self) -> str:
        """The URL without credentials, for messages."""

    @property
    def login(self) -> str:
        """The authenticated user, without secrets: other users may see other documents. Empty without credentials, or
        if a wrapped client authenticates by other means than a header."""

    @property
    def options(self) -> Mapping[str, Any] | None:
        """See ``ConnectionSettings.options``: without credentials."""

    @property
    def pace(self) -> Pace:
        """The limits of this connection, which `es_neardupe.server.bulk.write` respects."""

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        """The parsed JSON answer (None if it is empty). Build ``path`` with :func:`path`.

        Raises ``IncompleteAnswer`` if shards failed or the request timed out. A ``filter_path`` must include
        ``timed_out,_shards``, or this is not noticed.
        """

    def bulk(self, body: bytes, *, params: Mapping[str, str] | None = None, before: Before | None = None) -> Any:
        """The parsed answer to newline-delimited actions; the caller handles errors of single items.

        ``sent`` is added to it: the number of times that the request was sent. ``before`` is called directly before
        each of them, and can prevent it by an error.
        """

    def pages(
        self,
        index: str,
        body: Mapping[str, Any],
        *,
        page_size: int | None = 1000,
        slice: tuple[int, int] | None = None,
        keep_alive: str = "5m",
        skip: Callable[[Hit, DocumentTooLarge], None] | None = None,
        shard: int | None = None,
    ) -> Iterator[list[Hit]]:
        """Every document that matches ``body``, exactly once, from one snapshot; no page is empty.

        ``index`` may be an alias, a pattern or a comma-separated list. ``slice`` is the number of the slice, from
        0, and the number of slices: slices are disjoint and together complete, also those of different calls, since ids
        determine them. ``keep_alive`` is the longest time
        between two pages. ``page_size`` None is for documents of any size: a page has as many as fit into memory
        (`es_neardupe.server.request_sizes`). ``body`` is a search body without ``sort`` and ``size``. Requested
        ``fields`` and ``docvalue_fields`` (lists by flat name)
        are added to ``Hit.source``.

        ``shard``: only documents in the shards with this number, one of each index.

        ``skip`` is called with each document that does not fit into memory, without its source; without ``skip``,
        `DocumentTooLarge` is raised. Through a scroll (OpenSearch before 3.3) the error of the request is raised.
        """

    def close(self) -> None:
        """Close the connections, except those of a wrapped driver client, which belong to its owner."""


# Created once: json.dumps with options would create one for every document.
_UTF8, _ASCII = (
    json.JSONEncoder(ensure_ascii=ascii_only, allow_nan=False, separators=(",", ":")) for ascii_only in (False, True)
)


def path(*parts: str) -> str:
    """A request path with percent-encoded parts: ``path("docs", "_doc", "a/b")`` is ``/docs/_doc/a%2Fb``.

    Commas and asterisks are kept, for lists and patterns of indices. Raises ``InputError`` for an empty part, which
    would change the path to another resource, and for text that is not valid Unicode.
    """
    return "".join("/" + _quoted(part) for part in parts)


def _quoted(part: str) -> str:
    if not part:
        raise InputError("An index name or a document id is empty.")
    if part in {".", ".."}:  # otherwise a proxy, or the client's own URL library, resolves it
        return part.replace(".", "%2E")
    try:
        return quote(part, safe=",*")
    except UnicodeEncodeError:
        raise InputError(f"{part!r} is not valid Unicode (a lone surrogate): no server can store it.") from None


def query_of(params: Params | None) -> str:
    """The query of a URL, with its question mark; empty without parameters."""
    if not params:
        return ""
    words = {k: str(v).lower() if isinstance(v, bool) else str(v) for k, v in params.items()}
    return "?" + urlencode(words, quote_via=quote, safe=",*")


def to_json(value: Mapping[str, Any]) -> bytes:
    """One line of JSON, always valid UTF-8. Integers and floats are read back unchanged.

    A lone surrogate is valid in JSON only as an escape, which servers accept and return unchanged; its raw bytes would
    be invalid UTF-8. Raises ``InputError`` for values that JSON does not have, such as NaN, infinity and dates.
    """
    try:
        return _UTF8.encode(value).encode()
    except UnicodeEncodeError:
        return _ASCII.encode(value).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"A request cannot be written as JSON: {error}.") from error


class ForwardingClient:
    """A :class:`~es_neardupe.server.client.Client` that sends its requests through another one. Subclasses change some
    of them."""

    def __init__(self, client: Client) -> None:
        self.plain = client
        """The other client."""

    @property
    def server(self) -> Server:
        """See ``Client.server``."""
        return self.plain.server

    @property
    def url(self) -> str:
        """See ``Client.url``."""
        return self.plain.url

    @property
    def login(self) -> str:
        """See ``Client.login``."""
        return self.plain.login

    @property
    def options(self) -> Mapping[str, Any] | None:
        """See ``Client.options``."""
        return self.plain.options

    @property
    def pace(self) -> Pace:
        """See ``Client.pace``."""
        return self.plain.pace

    def request(
        self, method: str, path: str, *, params: Params | None = None, body: Mapping[str, Any] | None = None
    ) -> Any:
        """See ``Client.request``."""
        return self.plain.request(method, path, params=params, body=body)

    def bulk(self, body: bytes, *, params: Mapping[str, str] | None = None, before: Before | None = None) -> Any:
        """See ``Client.bulk``."""
        return self.plain.bulk(body, params=params, before=before)

    def pages(self, index: str, body: Mapping[str, Any], **options: Any) -> Iterator[list[Hit]]:
        """See ``Client.pages``."""
        return self.plain.pages(index, body, **options)

    def close(self) -> None:
        """See ``Client.close``."""
        self.plain.close()
