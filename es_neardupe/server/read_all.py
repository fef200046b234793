"""Reading all matching documents, each exactly once: a few by one search, others by a point in time if the server can
page through it, else by scroll."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import xxhash
from numpy.typing import NDArray

from es_neardupe.errors import DocumentTooLarge, IncompleteAnswer, NeardupeError, NotFound, RequestError
from es_neardupe.records import Address, Hit, Product, Server
from es_neardupe.server.client import Params, path
from es_neardupe.server.document_sizes import number_that_fits
from es_neardupe.server.pacing import Pace, may_pass
from es_neardupe.server.parallel import pause, readers
from es_neardupe.server.request_sizes import PAGE_BYTES, RequestSize, does_not_fit, is_too_large
from es_neardupe.server.responses import hit_of
from es_neardupe.wording import counted


class SeenDocuments:
    """Documents that were read, by a hash of index and id.

    Among ten million documents, two have the same hash with a probability of three in a million; then one of them may
    be skipped after a restart, and the next run reads it.
    """

    def __init__(self) -> None:
        self._pages: list[NDArray[np.uint64]] = []
        self._known = np.zeros(0, np.uint64)

    def begin_again(self) -> None:
        """From now on, skip the documents seen so far."""
        self._known = np.sort(np.concatenate([self._known, *self._pages]))
        self._pages = []

    def fresh(self, page: list[Hit]) -> list[Hit]:
        """The hits of a page that were not seen before the last restart."""
        codes = np.array([_code(hit) for hit in page], np.uint64)
        self._pages.append(codes)
        if not len(self._known):
            return page
        places = np.minimum(np.searchsorted(self._known, codes), len(self._known) - 1)
        return [hit for hit, known in zip(page, self._known[places] == codes, strict=True) if not known]


def _code(hit: Hit) -> int:
    address = f"{len(hit.index)} {hit.index}{hit.id}"  # with the length, no other index and id give the same text
    return xxhash.xxh3_64_intdigest(address.encode("utf-8", "surrogatepass"))


_SNAPSHOTS = 4
"""Maximum number of snapshots for one reading."""

_PAUSE = 1.0
"""Seconds before another snapshot is taken."""

_FEW = 500
"""Maximum number of documents of small fields that are first requested by one search."""

_MAX_PAGE = 1000
_SCROLL_PAGE = 100
"""Maximum number of documents of any size in a page. Those of a scroll cannot adapt to the documents."""

_Body = Mapping[str, Any]

Skip = Callable[[Hit, DocumentTooLarge], None]
"""Called with a document that does not fit into memory, without its source."""


class Asked(Protocol):
    """The members of a client that opening a point in time needs."""

    @property
    def server(self) -> Server: ...

    def request(self, method: str, path: str, *, params: Params | None = None, body: _Body | None = None) -> Any: ...


class Sender(Protocol):
    """The members of `ServerClient` that reading needs."""

    @property
    def url(self) -> str: ...

    @property
    def server(self) -> Server: ...

    @property
    def pace(self) -> Pace: ...

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: _Body | None = None,
        again: bool = True,
    ) -> Any: ...


@dataclass(frozen=True, slots=True)
class ReadQuery:
    """A query and the way to page through its results."""

    index: str
    body: _Body
    page_size: int | None
    """Number of documents in a page; None for documents of any size."""
    slice: tuple[int, int] | None
    keep_alive: str
    skip: Skip | None = None
    shard: int | None = None

    def size(self, client: Sender) -> RequestSize:
        """The size of the pages."""
        if self.page_size is None:
            return RequestSize.of_pages(client, _MAX_PAGE)
        return RequestSize.fixed(self.page_size)

    @property
    def is_part(self) -> bool:
        """Whether only a part of the documents is read; servers reject a single slice."""
        return self.slice is not None and self.slice[1] > 1

    def has(self, id: str) -> bool:
        """Whether a document is in the slice, for servers that read no slices."""
        number, parts = self.slice or (0, 1)
        return xxhash.xxh3_64_intdigest(id.encode("utf-8", "surrogatepass")) % parts == number

    def search(self, server: Server, size: int, **more: Any) -> dict[str, Any]:
        """The search body of one page."""
        search = {**self.body, "size": size, "seq_no_primary_term": True, "version": True, **more}
        if self.is_part and not server.is_collection:
            # by default, points in time are sliced by positions in the index, which differ between two of them
            number, parts = self.slice or (0, 1)
            search["slice"] = {"field": "_id", "id": number, "max": parts}
        return search


def of_shard(server: Server, shard: int | None) -> Params:
    """The parameter of a search that selects the shards with this number; none for None.

    A copy of a shard may lag behind its primary on OpenSearch (segment replication); Elasticsearch has no such copies,
    and no way to ask for the primary.
    """
    if shard is None:
        return {}
    primary = "|_primary" if server.product is Product.OPENSEARCH else ""
    return {"preference": f"_shards:{shard}{primary}"}


def pages(client: Sender, reading: ReadQuery) -> Iterator[list[Hit]]:
    """Pages of all matching documents, each document once. If the snapshot is lost with a node, or a page of a scroll
    is lost or too large, another snapshot is taken, and documents that were already read are skipped.

    Raises ``IncompleteAnswer``, or the error of the lost page, if that does not help; ``DocumentTooLarge`` unless such
    documents are to be skipped.
    """
    names = reading.index.split(",") if client.server.is_collection else [reading.index]  # see `_sorts`
    for name in names:
        yield from _pages_of(client, replace(reading, index=name))


def _pages_of(client: Sender, reading: ReadQuery) -> Iterator[list[Hit]]:
    seen = SeenDocuments()
    if reading.page_size is None and not _by_points_in_time(client.server, reading):  # a scroll has pages of one size
        reading = replace(reading, page_size=min(_SCROLL_PAGE, reading.size(client).safe))
    left = _SNAPSHOTS
    while True:
        left -= 1
        try:
            for page, too_large in _snapshot(client, reading):
                if not (fresh := seen.fresh(page)):
                    continue
                if too_large is None:
                    yield fresh
                elif reading.skip is None:
                    raise too_large
                else:
                    reading.skip(page[0], too_large)
            return
        except _PageTooLarge as rejected:
            left += 1
            reading = replace(reading, page_size=rejected.number)
        except _PageLost as lost:
            if not left:
                raise lost.why from lost.why.__cause__  # not from `lost`, whose cause it is
        except RequestError as error:
            if not _is_lost(error) or not left:
                raise _explained(error, reading) from error.__cause__
        seen.begin_again()
        pause(_PAUSE)  # until the cluster has noticed that the node is gone


def _snapshot(client: Sender, reading: ReadQuery) -> Iterator[tuple[list[Hit], DocumentTooLarge | None]]:
    """The pages of one snapshot; a document that is too large is a page with an error."""
    with closing(_raw_pages(client, reading)) as raw_pages:
        for page in raw_pages if readers() > 1 else _read_ahead(raw_pages):
            if client.server.is_collection and not (page := [raw for raw in page if reading.has(raw["_id"])]):
                continue
            yield [hit_of(raw, reading.shard) for raw in page], page[0].get(_TOO_LARGE)


def _raw_pages(client: Sender, reading: ReadQuery) -> Generator[list[_Body], None, None]:
    few = _few(client, reading)
    if few is None:
        yield from (_by_point_in_time if _by_points_in_time(client.server, reading) else _by_scroll)(client, reading)
    elif few:
        yield few


def _few(client: Sender, reading: ReadQuery) -> list[_Body] | None:
    """All documents, if one search returns them, which reads each shard at one moment; None if there may be more. Most
    readings of hidden indices and of changes end here, with one request instead of three."""
    if reading.page_size is None or reading.is_part:
        return None
    size = min(reading.page_size, _FEW)
    params = {**_WHOLE, **of_shard(client.server, reading.shard)}
    search = reading.search(client.server, size, sort=["_doc"], track_total_hits=False)
    try:
        answer = client.request("POST", path(reading.index, "_search"), params=params, body=search)
    except NeardupeError as error:
        if not is_too_large(error):
            raise
        return None
    hits: list[_Body] = answer["hits"]["hits"]
    return hits if len(hits) < size else None


_TOO_LARGE = "too_large"
"""The place of the error in a hit."""


class _PageLost(Exception):
    """A page of a scroll was lost. The server may have moved on, so only another scroll can return it."""

    def __init__(self, why: NeardupeError) -> None:
        super().__init__(str(why))
        self.why = why


class _PageTooLarge(Exception):
    """A page of a scroll is too large for the memory of the server or the client. All pages of a scroll have the same
    size, so only another scroll can return smaller ones."""

    def __init__(self, number: int) -> None:
        super().__init__(f"try {counted(number, 'document')}")
        self.number = number


def _is_lost(error: RequestError) -> bool:
    """Whether the snapshot, or a node that held a part of it, is gone."""
    return _is_dropped(error) or (error.status in (500, 503) and error.type == "search_phase_execution_exception")


def _is_dropped(error: RequestError) -> bool:
    return isinstance(error, NotFound) and (
        "No search context" in error.reason or error.type == "search_context_missing_nodes_exception"
    )


def _explained(error: RequestError, reading: ReadQuery) -> NeardupeError:
    if not _is_dropped(error):
        return error
    return IncompleteAnswer(
        f"The server dropped its snapshot of {reading.index}: a node was restarted or lost, or more than "
        f"{reading.keep_alive} passed between two pages. Try again."
    )


def _read_ahead(raw_pages: Iterator[list[_Body]]) -> Iterator[list[_Body]]:
    """The same pages; each is requested while the caller works on the one before. The threads of `in_threads` do so
    anyway."""
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(next, raw_pages, None)
        while (page := coming.result()) is not None:
            coming = reader.submit(next, raw_pages, None)
            yield page


_SLICES_BY_ID = (9, 5, 0)
"""The first release of Elasticsearch that was seen to slice a point in time by ids; releases before March 2026 reject
it."""


def _by_points_in_time(server: Server, reading: ReadQuery) -> bool:
    """OpenSearch before 3.3 cannot sort by ``_shard_doc``; ``_doc`` alone loses documents there."""
    if server.product is Product.ELASTICSEARCH:
        return not reading.is_part or server.version >= _SLICES_BY_ID
    if server.is_collection:
        return True
    return server.version >= (3, 3, 0)


def _sorts(server: Server) -> list[Any]:
    """Sort keys in which all documents of a point in time differ. Those that are equal to the last one of a page are
    lost.

    ``_doc`` alone is equal in several shards; ``_shard_doc`` alone makes the server sort everything for each page. On
    OpenSearch, ``_shard_doc`` is equal in shards of one number of several indices.
    """
    if server.product is Product.ELASTICSEARCH:
        return ["_doc", "_shard_doc"]
    if server.is_collection:  # it may have no _shard_doc; only one index is read at a time
        return ["_doc", "_id"]
    return ["_doc", "_shard_doc", {"_index": {"unmapped_type": "keyword"}}]  # it is unmapped without any field


def _by_point_in_time(client: Sender, reading: ReadQuery) -> Generator[list[_Body], None, None]:
    try:
        pit = open_snapshot(client, reading.index, reading.keep_alive, reading.shard)
    except RequestError as error:
        # OpenSearch fails for a pattern that matches no index (400, a null pointer): there are no documents.
        if error.status == 400 and _matches_nothing(client, reading.index):
            return
        raise
    after: Any = None
    size = reading.size(client)
    try:
        while True:
            search = reading.search(
                client.server,
                size.number,
                pit={"id": pit, "keep_alive": reading.keep_alive},
                sort=_sorts(client.server),
                track_total_hits=False,
                **({"search_after": after} if after is not None else {}),
            )
            if size.number > size.safe:
                size.fit(number_that_fits(client, search, PAGE_BYTES))
                search["size"] = size.number
            try:
                answer = size.ask(partial(client.request, "POST", "/_search", params=_WHOLE, body=search))
            except NeardupeError as error:
                if not is_too_large(error):
                    raise
                answer = _without_source(client, search, error)
            if answer is None:
                continue
            pit = answer.get("pit_id", pit)
            hits = answer["hits"]["hits"]
            ended = len(hits) < search["size"]
            if hits:
                after = hits[-1]["sort"]
                size.read(hits)
                yield hits
            del answer, hits  # a large page is not kept while the next one is read
            if ended:
                return
    finally:
        _close(client, pit)


def _without_source(client: Sender, search: dict[str, Any], error: NeardupeError) -> Any:
    """The page of a document that is too large, with the error in its hit."""
    kept = {name: value for name, value in search.items() if name not in ("fields", "docvalue_fields")}
    answer = client.request("POST", "/_search", params=_WHOLE, body={**kept, "_source": False})
    for hit in answer["hits"]["hits"]:
        hit[_TOO_LARGE] = does_not_fit(Address(hit["_index"], hit["_id"]), error)
    return answer


def _by_scroll(client: Sender, reading: ReadQuery) -> Generator[list[_Body], None, None]:
    size = reading.size(client)
    endpoint, params = (
        path(reading.index, "_search"),
        {"scroll": reading.keep_alive, **_WHOLE, **of_shard(client.server, reading.shard)},
    )
    body = reading.search(client.server, size.number, sort=["_doc"])
    answer = _page(size, partial(client.request, "POST", endpoint, params=params, body=body))
    if "_scroll_id" not in answer:  # a pattern that matches no index
        return
    scroll = answer["_scroll_id"]
    expected, seen = answer["hits"]["total"]["value"], 0
    try:
        while hits := answer["hits"]["hits"]:
            seen += len(hits)
            yield hits
            following = {"scroll": reading.keep_alive, "scroll_id": scroll}
            answer = _page(size, partial(_next_of_scroll, client, following))
            scroll = answer["_scroll_id"]
        if seen != expected:
            raise IncompleteAnswer(
                f"Only {seen:,} of {counted(expected, 'document')} of {reading.index} {'was' if seen == 1 else 'were'} "
                f"read. Try again."
            )
    finally:
        _drop(client, "/_search/scroll", {"scroll_id": [scroll]})


def _page(size: RequestSize, request: Callable[[], Any]) -> Any:
    if (answer := size.ask(request)) is None:
        raise _PageTooLarge(size.number)
    return answer


def _next_of_scroll(client: Sender, body: _Body) -> Any:
    """The next page. The request is never repeated: the server may have moved on, and a page would be skipped."""
    try:
        return client.request("POST", "/_search/scroll", body=body, again=False)
    except NeardupeError as error:
        if may_pass(error) and not is_too_large(error):
            raise _PageLost(error) from error
        raise


_WHOLE: Params = {"allow_partial_search_results": False}
"""Failed shards make the whole request fail, so that it is retried."""


def open_snapshot(client: Asked, index: str, keep_alive: str, shard: int | None = None) -> str:
    """The id of a new point in time."""
    params = {"keep_alive": keep_alive, **of_shard(client.server, shard)}
    if client.server.product is Product.ELASTICSEARCH:
        answer = client.request("POST", path(index, "_pit"), params=params)
        return str(answer["id"])
    answer = client.request(
        "POST",
        path(index, "_search", "point_in_time"),
        params={**params, "allow_partial_pit_creation": False},
    )
    return str(answer["pit_id"])


def _matches_nothing(client: Sender, index: str) -> bool:
    answer = client.request("POST", path(index, "_search"), body={"size": 0})
    return bool(answer["_shards"]["total"] == 0)


def _close(client: Sender, pit: str) -> None:
    if client.server.product is Product.ELASTICSEARCH:
        _drop(client, "/_pit", {"id": pit})
    else:
        _drop(client, "/_search/point_in_time", {"pit_id": [pit]})


def _drop(client: Sender, endpoint: str, body: _Body) -> None:
    if sys.is_finalizing():  # an interrupted reading is closed with Python, when requests wait for threads forever
        return
    with suppress(NeardupeError):  # it expires by itself; an error here would hide the reason why the reading ended
        client.request("DELETE", endpoint, body=body, again=False)
